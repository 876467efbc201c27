//! What agents do, folded from the events: the agent in control, consultations, the transcript, and the
//! limits of each swarm.

mod calls;
mod fold;
mod lines;
mod questions;
mod roots;
mod rows;
mod state;

pub use self::lines::shown_output;
pub use self::roots::{MAX_BELOW_ROOT, MAX_DEPTH, is_in_tree, root_of};
#[cfg(test)]
pub use self::rows::HopCounts;
pub use self::rows::{AgentRow, AgentState, HopKind, HopRow, HopState, LineKind, TranscriptLine};
pub use self::state::{AgentsFold, HANDED_OVER};
