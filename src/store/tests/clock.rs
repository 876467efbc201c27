//! Runs that were started while the clock of the machine was wrong.

use super::*;
use crate::store::database::removal::Retention;

const DAY: u64 = 86_400_000;

/// A store with these runs, started in this order on these days, all of which have ended.
async fn started_on(days: &[(&str, u64)]) -> Temp {
    let temp = Temp::new();
    for (name, day) in days {
        let run = temp.begin(name, day * DAY, false);
        temp.database.append(&run, Seq(0), &group(0, &[closed()])).await.expect("appended");
        temp.end(&run, "success").await;
    }
    temp
}

fn listed(temp: &Temp) -> Vec<String> {
    temp.database.runs().expect("read").rows.iter().map(|row| row.id.to_string()).collect()
}

#[tokio::test]
async fn the_last_run_is_the_one_that_was_started_last_by_whichever_clock() {
    let temp = started_on(&[("r-1", 100), ("r-ahead", 500), ("r-2", 101), ("r-3", 101)]).await;
    let last = |back| temp.database.nth_last(back).expect("read").map(|row| row.id.to_string());
    assert_eq!(last(0).as_deref(), Some("r-3"));
    assert_eq!(last(1).as_deref(), Some("r-2"));
    assert_eq!(last(2).as_deref(), Some("r-ahead"));
    assert_eq!(last(4), None);
    // The list has the times of the clock, and one order.
    assert_eq!(listed(&temp), ["r-ahead", "r-3", "r-2", "r-1"]);
    assert_eq!(listed(&temp), listed(&temp));
}

#[tokio::test]
async fn a_run_is_not_removed_because_the_clock_was_set_back_before_it() {
    let days = [("r-ahead-1", 500), ("r-ahead-2", 501), ("r-1", 100), ("r-2", 101)];
    let temp = started_on(&days).await;
    let keep = Retention { runs: 2, days: 30, bytes: u64::MAX };
    assert_eq!(temp.database.prune(keep, 101 * DAY, 0).expect("pruned").runs, 2);
    assert_eq!(listed(&temp), ["r-2", "r-1"], "the last ones stay");
}

#[tokio::test]
async fn days_are_counted_by_what_was_started_before() {
    let keep = Retention { runs: 10, days: 30, bytes: u64::MAX };
    // The clock of a machine without a battery begins in 1970.
    let temp = started_on(&[("r-1", 100), ("r-1970", 0), ("r-ahead", 500), ("r-2", 120)]).await;
    let prune = |day: u64| temp.database.prune(keep, day * DAY, 0).expect("pruned").runs;
    assert_eq!(prune(121), 0);
    assert_eq!(prune(0), 0, "a clock that is behind makes no run old");
    // They are as old as the run that was started before them.
    assert_eq!(prune(131), 3);
    assert_eq!(listed(&temp), ["r-2"]);
}
