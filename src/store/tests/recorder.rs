//! The recorder, over a log whose writes fail.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use super::MemoryLog;
use super::*;
use crate::log::bus::Bus;
use crate::log::event::Elapsed;
use crate::store::recorder::{RecordError, RecordListener, record};

/// Counts what a recorder tells.
#[derive(Default)]
struct Told {
    events: Vec<Seq>,
    failures: u32,
    recovered: u32,
    gives_up_after: u32,
    /// The events that were reported before the first failure.
    at_failure: usize,
}

impl RecordListener for Told {
    fn events(&mut self, events: &[Arc<Event>]) {
        self.events.extend(events.iter().map(|event| event.seq));
    }

    async fn stored(&mut self) {}

    fn failed(&mut self, _why: &str) -> bool {
        if self.failures == 0 {
            self.at_failure = self.events.len();
        }
        self.failures += 1;
        self.gives_up_after == 0 || self.failures < self.gives_up_after
    }

    fn recovered(&mut self) {
        self.recovered += 1;
    }
}

/// A slow log. Its writes can fail, also after the group was stored.
struct FlakyLog {
    inner: MemoryLog,
    failures: AtomicU32,
    stores_anyway: bool,
    /// How long a write takes.
    write: Duration,
    /// For each group: the number of its events, and how many of them have words (`None`: left out).
    groups: Mutex<Vec<(u32, Option<usize>)>>,
}

impl RunLog for FlakyLog {
    fn has_index(&self) -> bool {
        true
    }

    fn append<'a>(
        &'a self,
        run: &'a RunId,
        expect: Seq,
        group: &EventGroup,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        let group = group.clone();
        let words = group.said().map(|said| said.len());
        self.groups.lock().expect("groups").push((group.len(), words));
        Box::pin(async move {
            tokio::time::sleep(self.write).await;
            let left = self.failures.load(Ordering::SeqCst);
            if left == 0 {
                return self.inner.append(run, expect, &group).await;
            }
            self.failures.store(left - 1, Ordering::SeqCst);
            if self.stores_anyway {
                self.inner.append(run, expect, &group).await?;
            }
            Err(AppendError::Unsure("the disk is full".to_owned()))
        })
    }

    fn next<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Seq, AppendError>> {
        self.inner.next(run)
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
    ) -> BoxStream<'a, Result<EventGroup, ReadError>> {
        self.inner.read(run, from)
    }

    fn tail<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
    ) -> BoxStream<'a, Result<EventGroup, ReadError>> {
        self.inner.tail(run, from)
    }
}

fn flaky(failures: u32, stores_anyway: bool) -> (FlakyLog, RunId) {
    let (inner, run) = (MemoryLog::default(), id("r-1"));
    inner.begin(run.clone());
    let failures = AtomicU32::new(failures);
    let (write, groups) = (Duration::ZERO, Mutex::default());
    (FlakyLog { inner, failures, stores_anyway, write, groups }, run)
}

#[tokio::test(start_paused = true)]
async fn stores_every_event_once_despite_failures() {
    for (failures, stores_anyway) in [(0, false), (3, false), (1, true)] {
        let (log, run) = flaky(failures, stores_anyway);
        let (bus, mut told) = (Bus::new(), Told::default());
        let (mark, reader) = (bus.stored_mark(), bus.reader(Seq(0)));
        bus.publish(SpanId::RUN, warning("a"));
        bus.publish(SpanId::RUN, warning("b"));
        bus.publish(SpanId::RUN, closed());
        bus.close();
        let recorded = record(&log, &run, reader, Seq(0), &mark, &mut told).await;
        assert_eq!(recorded, Ok(()));
        assert_eq!(told.events, [Seq(0), Seq(1), Seq(2)]);
        assert_eq!((told.failures, told.recovered), (failures, failures.min(1)));
        let groups: Vec<EventGroup> =
            log.read(&run, Seq(0)).map(|it| it.expect("read")).collect().await;
        let read: Vec<String> = groups.iter().flat_map(texts).collect();
        assert_eq!(read, ["a", "b", "run.closed"], "{failures} {stores_anyway}");
    }
}

#[tokio::test(start_paused = true)]
async fn appends_next_groups_during_write() {
    for (failures, stores_anyway) in [(0, false), (1, false), (2, false), (1, true), (3, true)] {
        let (log, run) = flaky(failures, stores_anyway);
        let (bus, mut told) = (Bus::new(), Told::default());
        let (mark, reader) = (bus.stored_mark(), bus.reader(Seq(0)));
        for nth in 0..20 {
            bus.publish(SpanId::RUN, warning(&format!("{nth} {}", "x".repeat(100_000))));
        }
        bus.publish(SpanId::RUN, closed());
        bus.close();
        let recorded = record(&log, &run, reader, Seq(0), &mark, &mut told).await;
        assert_eq!(recorded, Ok(()));
        let groups: Vec<EventGroup> =
            log.read(&run, Seq(0)).map(|it| it.expect("read")).collect().await;
        let sizes: Vec<u32> = groups.iter().map(EventGroup::len).collect();
        assert_eq!(sizes, [3; 7], "{failures} {stores_anyway}");
        // Four groups were sent, and the fifth was made, when the first one failed.
        let at_failure = if failures == 0 { 0 } else { 15 };
        assert_eq!(told.at_failure, at_failure, "{failures} {stores_anyway}");
        assert_eq!((told.failures > 0, told.recovered > 0), (failures > 0, failures > 0));
        assert_eq!(told.events, (0..21).map(Seq).collect::<Vec<_>>());
        let read: Vec<String> = groups.iter().flat_map(texts).collect();
        for (nth, text) in read.iter().take(20).enumerate() {
            assert!(text.starts_with(&format!("{nth} ")), "{nth}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_stored_events_raise_mark() {
    let (log, run) = flaky(2, false);
    let (bus, mut told) = (Bus::new(), Told::default());
    let (mark, reader) = (bus.stored_mark(), bus.reader(Seq(0)));
    bus.publish(SpanId::RUN, warning("a"));
    let waits = {
        let bus = bus.clone();
        tokio::spawn(async move { bus.wait_until_stored().await })
    };
    tokio::task::yield_now().await;
    assert!(!waits.is_finished());
    let recording = {
        let mark = Arc::clone(&mark);
        tokio::spawn(async move { record(&log, &run, reader, Seq(0), &mark, &mut told).await })
    };
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waits.is_finished(), "the first write failed");
    tokio::time::timeout(Duration::from_secs(5), waits).await.expect("in time").expect("ends");
    bus.close();
    assert_eq!(recording.await.expect("ends"), Ok(()));
    let bus = Bus::new();
    bus.wait_until_stored().await;
}

#[tokio::test(start_paused = true)]
async fn recorder_ends_with_listener_or_log() {
    let (log, run) = flaky(9, false);
    let bus = Bus::new();
    let (mark, reader) = (bus.stored_mark(), bus.reader(Seq(0)));
    bus.publish(SpanId::RUN, warning("a"));
    let mut told = Told { gives_up_after: 2, ..Told::default() };
    let ended = record(&log, &run, reader.clone(), Seq(0), &mark, &mut told).await;
    assert_eq!(ended, Err(RecordError::GaveUp("the disk is full".to_owned())));
    let (log, run) = flaky(0, false);
    log.inner.remove(&run);
    let ended = record(&log, &run, reader, Seq(0), &mark, &mut Told::default()).await;
    assert_eq!(ended, Err(RecordError::Lost(AppendError::Gone)));
    let waits = {
        let bus = bus.clone();
        tokio::spawn(async move { bus.wait_until_stored().await })
    };
    tokio::task::yield_now().await;
    assert!(!waits.is_finished(), "the caller decides what becomes of the run first");
    mark.abandon();
    waits.await.expect("ends");
}

/// Something that is said.
fn answer(nth: u32) -> EventKind {
    EventKind::AnswerComposed {
        text: format!("answer {nth}").into(),
        by: None,
        end: Default::default(),
    }
}

/// A log that needs 10 ms for each write, and its run.
fn slow() -> (FlakyLog, RunId) {
    let (log, run) = flaky(0, false);
    (FlakyLog { write: Duration::from_millis(10), ..log }, run)
}

#[tokio::test(start_paused = true)]
async fn fast_run_leaves_words_to_search() {
    let (log, run) = slow();
    let (bus, mut told) = (Bus::new(), Told::default());
    let (mark, reader) = (bus.stored_mark(), bus.reader(Seq(0)));
    let play = async {
        for burst in [3, 2, 256, 257, 1] {
            for nth in 0..burst {
                bus.publish(SpanId::RUN, answer(nth));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bus.close();
    };
    let recording = record(&log, &run, reader, Seq(0), &mark, &mut told);
    let (recorded, ()) = futures::join!(recording, play);
    assert_eq!(recorded, Ok(()));
    let groups = log.groups.lock().expect("groups").clone();
    assert_eq!(groups, [(3, Some(3)), (2, Some(2)), (256, Some(256)), (257, None), (1, None)]);
}

#[test]
fn reused_group_keeps_no_old_events() {
    let run = id("r-1");
    let group = |first: u64, text: &str, mut group: EventGroup| {
        let kind =
            EventKind::AnswerComposed { text: text.into(), by: None, end: Default::default() };
        let event = Event { seq: Seq(first), at: Elapsed(0), span: SpanId::RUN, kind };
        group.push(&event, &run).expect("a line");
        group
    };
    let expected = group(7, "new", EventGroup::starting_at(Seq(7)));
    for is_shared in [false, true] {
        let stored = group(3, &"old ".repeat(300_000), EventGroup::starting_at(Seq(3)));
        let kept = is_shared.then(|| stored.clone());
        let next = group(7, "new", EventGroup::reusing(stored, Seq(7)));
        assert_eq!((&next, next.said()), (&expected, expected.said()));
        assert!(kept.is_none_or(|kept| kept.lines().len() > 1_000_000));
    }
}
