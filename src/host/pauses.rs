//! Pauses of `--pause-at` with a duration, which end automatically.

use std::time::Duration;

use tokio::time::Instant;

use crate::bus::LogReader;
use crate::engine::RunHandle;
use crate::event::kind::Initiator;
use crate::event::{BoundaryId, Command, EventKind};

/// Events read at once.
const BATCH: usize = 64;

/// Resumes a run that is paused at one of these boundaries after the boundary's duration, unless it
/// is resumed earlier. `reader` is at the run's first event. Returns at the end of the run.
pub async fn resume_timed_pauses(
    run: RunHandle,
    mut reader: LogReader,
    rests: Vec<(BoundaryId, Duration)>,
) {
    let mut batch = Vec::new();
    let mut due: Option<Instant> = None;
    loop {
        batch.clear();
        tokio::select! {
            came = reader.next_batch(&mut batch, BATCH) => {
                if came == 0 {
                    return;
                }
            }
            () = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            } => {
                due = None;
                run.send(Command::Resume { by: Initiator::Schedule });
            }
        }
        for event in &batch {
            match &event.kind {
                EventKind::Paused { at } => {
                    let rest = rests.iter().find(|(boundary, _)| at.contains(boundary));
                    due = rest.and_then(|(_, rest)| Instant::now().checked_add(*rest));
                }
                EventKind::Resumed { .. } | EventKind::Stepped { .. } => due = None,
                _ => {}
            }
        }
    }
}
