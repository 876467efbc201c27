//! The page of a kept run: made before its log is read, and closed when the log has been read.

use std::time::Duration;

use super::RunPage;
use super::kept_run::KeptRun;
use crate::event::run_row::RunStatus;
use crate::event::world::RunState;

/// The page of a kept run. It is empty until the events are read.
pub(in crate::app) fn kept_page(kept: KeptRun) -> RunPage {
    let mut page = RunPage::new(kept.row.id.clone(), Duration::ZERO);
    page.run.kept = Some(Box::new(kept));
    page
}

/// All of the kept log has been read. A run that has not ended in it was interrupted.
pub(in crate::app) fn end_reading(page: &mut RunPage) {
    let Some(kept) = &mut page.run.kept else { return };
    kept.is_read = true;
    let progress = &mut page.run.world.progress;
    kept.row.status = match &progress.closed {
        Some(closed) => RunStatus::Ended(closed.reason.to_string()),
        None => {
            progress.stage = RunState::Closed;
            RunStatus::Interrupted
        }
    };
}
