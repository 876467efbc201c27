//! The one way a duration, a clock, a count, a confidence or an amount is written: see
//! [`app::format`](crate::app::format), where the dashboard's behaviour needs it too.

pub use crate::app::format::*;
