//! The loops of source `002`.

use crate::event::StopReason;
use crate::run::RunContext;
use crate::scenario::Scenario;
use crate::scenario::agent::TeamSpec;

/// Plays a team or swarm to its end.
///
/// # Errors
/// The stop reason of a run that came to no answer.
pub async fn play(
    _cx: &RunContext,
    _scenario: &Scenario,
    _spec: &TeamSpec,
) -> Result<(), StopReason> {
    Err(StopReason::InternalError)
}
