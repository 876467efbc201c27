//! The contract of every log.

use futures::StreamExt as _;
use proptest::prelude::*;

use super::*;
use crate::store::memory::MemoryLog;

/// The same questions to every log.
async fn keeps_the_contract(log: &dyn RunLog, run: &RunId) {
    let (first, second) =
        (group(0, &[warning("a"), warning("b")]), group(2, &[warning("c"), closed()]));
    assert_eq!(log.next(run).await, Ok(Seq(0)));
    assert_eq!(log.append(run, Seq(0), &first).await, Ok(Seq(2)));
    // The same group again, a gap, and another's place.
    assert_eq!(log.append(run, Seq(0), &first).await, Err(AppendError::Fenced));
    assert_eq!(log.append(run, Seq(3), &group(3, &[closed()])).await, Err(AppendError::Fenced));
    assert_eq!(log.append(&id("r-none"), Seq(0), &first).await, Err(AppendError::Gone));
    assert_eq!(log.next(&id("r-none")).await, Err(AppendError::Gone));

    let mut tail = log.tail(run, Seq(1));
    let told = tail.next().await.expect("a group").expect("read");
    assert_eq!(told, first, "the group that has event 1");
    let (later, appended) = tokio::join!(tail.next(), log.append(run, Seq(2), &second));
    assert_eq!(appended, Ok(Seq(4)));
    assert_eq!(later.expect("a group").expect("read"), second);
    drop(tail);

    let read: Vec<EventGroup> =
        log.read(run, Seq(0)).map(|group| group.expect("read")).collect().await;
    assert_eq!(read, [first, second.clone()]);
    let rest: Vec<EventGroup> =
        log.read(run, Seq(3)).map(|group| group.expect("read")).collect().await;
    assert_eq!(rest, [second]);
    assert_eq!(log.read(run, Seq(4)).count().await, 0);
    let none: Vec<_> = log.read(&id("r-none"), Seq(0)).collect().await;
    assert_eq!(none, [Err(ReadError::NoSuchRun)]);
}

#[tokio::test]
async fn a_log_in_memory_keeps_the_contract() {
    let log = MemoryLog::default();
    log.begin(id("r-1"));
    keeps_the_contract(&log, &id("r-1")).await;
}

#[tokio::test]
async fn a_log_in_the_database_keeps_the_contract() {
    let temp = Temp::new();
    let run = temp.begin("r-1", 1, false);
    keeps_the_contract(&temp.database, &run).await;
}

#[tokio::test]
async fn a_tail_ends_with_its_run() {
    let temp = Temp::new();
    let run = temp.begin("r-1", 1, false);
    temp.database.append(&run, Seq(0), &group(0, &[closed()])).await.expect("appended");
    temp.end(&run, "success").await;
    assert_eq!(temp.database.tail(&run, Seq(0)).count().await, 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// Any division of a log into groups reads back as the same events, from any event on.
    #[test]
    fn however_a_log_is_divided_it_reads_the_same(
        sizes in prop::collection::vec(1_usize..6, 1..12),
        from in 0_u64..60,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let (temp, memory) = (Temp::new(), MemoryLog::default());
            let run = temp.begin("r-1", 1, false);
            memory.begin(run.clone());
            let mut next = Seq(0);
            for size in sizes {
                let kinds: Vec<_> = (0..size).map(|at| warning(&format!("{}", next.0 + at as u64))).collect();
                let group = group(next.0, &kinds);
                memory.append(&run, next, &group).await.expect("appended");
                next = temp.database.append(&run, next, &group).await.expect("appended");
            }
            let logs: [&dyn RunLog; 2] = [&temp.database, &memory];
            for log in logs {
                let groups: Vec<EventGroup> = log.read(&run, Seq(from)).map(|it| it.expect("read")).collect().await;
                let read: Vec<Seq> = groups.iter().flat_map(|it| it.events(Seq(from)).expect("events")).map(|it| it.seq).collect();
                prop_assert_eq!(read, (from..next.0).map(Seq).collect::<Vec<_>>());
            }
            Ok(())
        })?;
    }
}
