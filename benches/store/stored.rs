//! Groups that are appended.

use std::time::Duration;

use roundtable::RunId;
use roundtable::bench::{Database, EventGroup, RunLog as _, RunRow};
use tokio::runtime::Runtime;

use crate::paired::timed;

/// Appends groups, each when the one before it is stored.
pub fn append(
    runtime: &Runtime,
    database: &Database,
    run: &str,
    groups: &[EventGroup],
) -> Duration {
    let row = RunRow::begun(RunId::new(run));
    assert!(database.reserve(&row.id, 1).expect("reserved"));
    assert!(database.begin(&row, "00ff").expect("written"));
    timed(|| {
        runtime.block_on(async {
            for group in groups {
                database.append(&row.id, group.first(), group).await.expect("appended");
            }
        });
    })
}

/// The same group with nothing for the index.
pub fn silent(group: &EventGroup) -> EventGroup {
    EventGroup::stored(group.first(), group.len(), group.lines().to_vec())
}
