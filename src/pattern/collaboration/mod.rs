//! Multi-agent collaboration (source `000`): roles contribute in rounds until policy lets the
//! table decide.

pub mod payload;
pub mod play;
pub mod policy;
