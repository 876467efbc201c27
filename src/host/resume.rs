//! Continues kept runs whose process ended before they did.

use super::keep::row_course;
use super::models::LiveModels;
use super::recorded::{RecordedRun, RecordedRunError};
use super::trust::Trust;
use crate::engine::{Launch, Resumption};
use crate::event::kind::Initiator;
use crate::event::run_row::{RunRow, RunStatus};
use crate::scenario::Scenario;
use crate::scenario::consent::Consent;
use crate::scenario::spec::in_doubt::InDoubt;
use crate::store::database::Database;

/// A kept run that can be continued now: this process owns it.
pub struct PreparedResume {
    /// What the run was started with.
    pub launch: Launch,
    /// Its stored events.
    pub resumption: Resumption,
    /// What the operator should know, one sentence each.
    pub notes: Vec<String>,
}

/// Prepares to continue a kept run, and takes it over. `allow` is asked where permission is needed;
/// `in_doubt` is what is done with a call in doubt. Blocks.
///
/// # Errors
/// See [`RecordedRunError`].
pub fn prepare_resume(
    database: &Database,
    row: &RunRow,
    in_doubt: InDoubt,
    with: (&LiveModels, &Trust),
    allow: impl FnOnce(&Consent, &Scenario) -> bool,
) -> Result<PreparedResume, RecordedRunError> {
    let id = &row.id;
    match &row.status {
        RunStatus::Interrupted => {}
        RunStatus::Waiting | RunStatus::Running => {
            return Err(format!("{id} is played by another process").into());
        }
        RunStatus::Ended(reason) => {
            return Err(format!("{id} has ended ({reason}): there is nothing to continue").into());
        }
    }
    let recorded = RecordedRun::read(database, row)?;
    if recorded.world.progress.closed.is_some() {
        // Its process died between its last event and its row.
        database
            .update_now(id, &row_course(&recorded.world))
            .map_err(|error| error.with_advice())?;
        return Err(format!("{id} has ended: there is nothing to continue").into());
    }
    let recording = recorded.recording()?;
    let scenario = recorded.scenario(&[])?;
    let (launch, notes) = recorded.launch(scenario, &recorded.model()?, with, allow)?;
    let owned = database
        .take_over(id)
        .map_err(|error| format!("{id} was not continued: {}", error.with_advice()))?;
    if owned.is_none() {
        return Err(format!("{id} is played by another process").into());
    }
    let resumption = Resumption { recording, by: Initiator::You, in_doubt };
    Ok(PreparedResume { launch, resumption, notes })
}
