//! Multi-agent collaboration (source `000`): roles contribute in rounds until policy lets the
//! table decide.

mod detail;
pub mod payload;
pub mod plain;
pub mod play;
pub mod policy;
