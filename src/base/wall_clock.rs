//! The clock of the wall, for what outlives the process.

use std::sync::Arc;
use std::time::SystemTime;

/// Returns the current time. It is handed down by who may read the system's clock, so that tools
/// read none themselves.
pub type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;
