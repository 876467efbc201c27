//! The roles of the screen: see [`narrate::style_role`](crate::narrate::style_role).

pub use crate::narrate::style_role::StyleRole;
