//! Pauses of the command line (`--pause-at`) that end by themselves.

use std::time::Duration;

use tokio::time::Instant;

use crate::bus::Reader;
use crate::engine::RunHandle;
use crate::event::kind::By;
use crate::event::{BoundaryId, Command, EventKind};

/// Facts that are looked at at once.
const BATCH: usize = 64;

/// Lets a run go on that rests at one of these boundaries, after the time that stands beside it.
/// `reader` stands at the run's first fact. Ends with the run. Whoever lets the run go on earlier is
/// first.
pub async fn let_go(run: RunHandle, mut reader: Reader, rests: Vec<(BoundaryId, Duration)>) {
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
                run.send(Command::Resume { by: By::Schedule });
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
