//! A log that keeps a window of its facts: what has gone, what a slow reader still gets, and when
//! the run has to wait for one.

use std::sync::Arc;
use std::time::Duration;

use crate::log::bus::{Bus, LogLimits, LogReader};
use crate::log::event::{Event, EventKind, Seq, SpanId};
use crate::support::random_cases;
use proptest::prelude::*;

fn answered() -> EventKind {
    EventKind::CallAnswered { attempts: 1 }
}

fn heavy(bytes: usize) -> EventKind {
    EventKind::Warning { text: "x".repeat(bytes) }
}

fn publish(bus: &Bus, facts: u64) {
    for _ in 0..facts {
        bus.publish(SpanId::RUN, answered());
    }
}

fn take(reader: &mut LogReader, max: usize) -> Vec<Arc<Event>> {
    let mut out = Vec::new();
    reader.take(&mut out, max);
    out
}

fn seqs(facts: &[Arc<Event>]) -> Vec<u64> {
    facts.iter().map(|fact| fact.seq.0).collect()
}

const NOTHING_KEPT: LogLimits = LogLimits { window: 0, ahead: u64::MAX };

#[test]
fn unbounded_log_keeps_all_facts() {
    let bus = Bus::new();
    publish(&bus, 10_000);
    assert_eq!((bus.len(), bus.first_seq()), (10_000, Seq(0)));
    assert_eq!(take(&mut bus.reader(Seq(0)), usize::MAX).len(), 10_000);
    assert_eq!(bus.event(Seq(4_321)).map(|fact| fact.seq), Some(Seq(4_321)));
}

#[test]
fn window_drops_only_read_facts() {
    let bus = Bus::with_limits(NOTHING_KEPT);
    let (mut slow, mut fast) = (bus.reader(Seq(0)), bus.reader(Seq(0)));
    for _ in 0..100 {
        publish(&bus, 100);
        assert_eq!(take(&mut fast, usize::MAX).len(), 100);
    }
    assert_eq!(bus.len(), 10_000, "what has gone still counts");
    assert!(bus.first_seq() >= Seq(10_000 - 512), "{:?}", bus.first_seq());
    assert!(bus.event(Seq(0)).is_none());
    assert!(bus.event(Seq(9_999)).is_some());
    assert_eq!(seqs(&take(&mut slow, usize::MAX)), (0..10_000).collect::<Vec<_>>());
    assert_eq!((slow.missed(), fast.missed()), (0, 0));
}

#[test]
fn late_reader_counts_missed_facts() {
    let bus = Bus::with_limits(NOTHING_KEPT);
    publish(&bus, 5_000);
    let first = bus.first_seq().0;
    assert!(first > 4_000);
    let mut late = bus.reader(Seq(1_000));
    assert_eq!(seqs(&take(&mut late, usize::MAX)), (first..5_000).collect::<Vec<_>>());
    assert_eq!(late.missed(), first - 1_000);
    // One that waits for a fact that is gone before it looks is told so as well.
    let mut ahead = bus.reader(Seq(6_000));
    publish(&bus, 5_000);
    let first = bus.first_seq().0;
    assert_eq!(seqs(&take(&mut ahead, usize::MAX)), (first..10_000).collect::<Vec<_>>());
    assert_eq!((ahead.missed(), ahead.position()), (first - 6_000, Seq(10_000)));
}

#[test]
fn reader_at_end_misses_nothing() {
    // Also where the next fact begins a segment.
    for before in [0, 1, 31, 32, 33, 255, 256, 512, 1_024] {
        let bus = Bus::with_limits(NOTHING_KEPT);
        publish(&bus, before);
        let mut reader = bus.reader(Seq(before));
        publish(&bus, 2_000);
        assert!(bus.first_seq().0 > before);
        let came = seqs(&take(&mut reader, usize::MAX));
        assert_eq!(came, (before..before + 2_000).collect::<Vec<_>>(), "after {before}");
        assert_eq!(reader.missed(), 0);
    }
}

#[test]
fn cloned_reader_keeps_position() {
    let bus = Bus::with_limits(NOTHING_KEPT);
    let mut reader = bus.reader(Seq(0));
    publish(&bus, 1_000);
    assert_eq!(take(&mut reader, 300).len(), 300);
    let mut copy = reader.clone();
    assert_eq!(take(&mut reader, usize::MAX).len(), 700);
    publish(&bus, 1_000);
    assert_eq!(seqs(&take(&mut copy, usize::MAX)), (300..2_000).collect::<Vec<_>>());
}

#[test]
fn window_counts_bytes() {
    const MIB: u64 = 1 << 20;
    let bus = Bus::with_limits(LogLimits { window: 8 * MIB, ahead: u64::MAX });
    publish(&bus, 100_000);
    let light = bus.len() - bus.first_seq().0;
    assert!(light > 20_000, "many light facts stay: {light}");
    for _ in 0..200 {
        bus.publish(SpanId::RUN, heavy(1 << 20));
        assert!(bus.weight() <= 9 * MIB + 2 * MIB, "{}", bus.weight());
    }
    let few = bus.len() - bus.first_seq().0;
    assert!((6..=10).contains(&few), "{few} of a MiB each");
    bus.set_limits(LogLimits { window: 2 * MIB, ahead: u64::MAX });
    bus.publish(SpanId::RUN, heavy(1 << 20));
    assert!(bus.weight() <= 4 * MIB, "a smaller window holds from the next facts on");
}

/// A resumed run begins with a log that is larger than its limits, and waits before it publishes anything.
#[tokio::test(start_paused = true)]
async fn shrunk_log_frees_room_after_read() {
    let bus = Bus::new();
    publish(&bus, 50_000);
    let mut reader = bus.reader(Seq(0));
    bus.set_limits(LogLimits { window: 20 << 20, ahead: 1 << 20 });
    assert!(bus.is_within_limits(), "the limits are larger");
    bus.set_limits(LogLimits { window: 0, ahead: 1 << 20 });
    assert!(!bus.is_within_limits());
    let room = bus.wait_for_room();
    tokio::pin!(room);
    let hour = Duration::from_secs(3600);
    assert!(tokio::time::timeout(hour, room.as_mut()).await.is_err(), "nobody reads");
    assert_eq!(take(&mut reader, usize::MAX).len(), 50_000, "the reader misses nothing");
    assert!(tokio::time::timeout(hour, room).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn log_waits_for_slow_reader() {
    let bus = Bus::with_limits(LogLimits { window: 0, ahead: 1 << 20 });
    let mut reader = bus.reader(Seq(0));
    publish(&bus, 1_000);
    assert!(bus.is_within_limits());
    bus.wait_for_room().await;
    while bus.is_within_limits() {
        publish(&bus, 100);
    }
    let behind = bus.len();
    let room = bus.wait_for_room();
    tokio::pin!(room);
    let short = Duration::from_secs(3600);
    assert!(tokio::time::timeout(short, room.as_mut()).await.is_err(), "nobody reads");
    // It waits until the reader is well ahead again, not only a segment.
    take(&mut reader, 300);
    assert!(tokio::time::timeout(short, room.as_mut()).await.is_err());
    let mut out = Vec::new();
    let read = async {
        while reader.position().0 < behind {
            reader.next_batch(&mut out, 100).await;
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(room, read);
    assert!(bus.is_within_limits());
}

#[tokio::test(start_paused = true)]
async fn log_ignores_dropped_reader() {
    let bus = Bus::with_limits(LogLimits { window: 0, ahead: 1 << 20 });
    let reader = bus.reader(Seq(0));
    while bus.is_within_limits() {
        publish(&bus, 100);
    }
    let (room, _) = tokio::join!(bus.wait_for_room(), async { drop(reader) });
    assert_eq!(room, ());
    publish(&bus, 100_000);
    assert!(bus.is_within_limits(), "without readers nothing is held");
}

#[test]
fn slow_reader_drops_on_small_stack() {
    let bus = Bus::with_limits(NOTHING_KEPT);
    let reader = bus.reader(Seq(0));
    publish(&bus, 300_000);
    let small = std::thread::Builder::new().stack_size(64 * 1024);
    small.spawn(move || drop(reader)).expect("a thread").join().expect("no overflow");
    assert!(bus.is_within_limits());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_publishers_lose_no_fact() {
    const PUBLISHERS: u64 = 4;
    const EACH: u64 = 20_000;
    let bus = Bus::with_limits(LogLimits { window: 64 << 10, ahead: 256 << 10 });
    let readers: Vec<_> = [1, 7, 1024]
        .map(|batch| {
            let mut reader = bus.reader(Seq(0));
            tokio::spawn(async move {
                let (mut facts, mut next) = (Vec::new(), 0);
                while reader.next_batch(&mut facts, batch).await > 0 {
                    for fact in facts.drain(..) {
                        assert_eq!(fact.seq, Seq(next));
                        next += 1;
                    }
                }
                (next, reader.missed())
            })
        })
        .into();
    let publishers: Vec<_> = (0..PUBLISHERS)
        .map(|_| {
            let bus = bus.clone();
            tokio::spawn(async move {
                for _ in 0..EACH {
                    bus.wait_for_room().await;
                    bus.publish(SpanId::RUN, answered());
                }
            })
        })
        .collect();
    for publisher in publishers {
        publisher.await.expect("a publisher");
    }
    bus.close();
    for reader in readers {
        assert_eq!(reader.await.expect("a reader"), (PUBLISHERS * EACH, 0));
    }
    assert!(bus.weight() < 128 << 10, "{}", bus.weight());
}

/// A step on a log.
#[derive(Clone, Debug)]
enum Step {
    Publish(u16),
    Heavy(u32),
    Read { from: u32 },
    Take { reader: usize, max: u16 },
    Drop { reader: usize },
    Window(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1u16..700).prop_map(Step::Publish),
        1 => (0u32..400_000).prop_map(Step::Heavy),
        2 => (0u32..4_000).prop_map(|from| Step::Read { from }),
        4 => (any::<usize>(), any::<u16>()).prop_map(|(reader, max)| Step::Take { reader, max }),
        1 => any::<usize>().prop_map(|reader| Step::Drop { reader }),
        1 => (0u32..300_000).prop_map(Step::Window),
    ];
    proptest::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(random_cases(64))]

    /// A reader gets every fact from where it starts, in order, and knows how many it missed before;
    /// what the log still holds, it gives.
    #[test]
    fn readers_get_every_kept_fact(steps in steps()) {
        let bus = Bus::with_limits(LogLimits { window: 100_000, ahead: u64::MAX });
        // A reader, where it was to start, and how many it has got.
        let mut readers: Vec<(LogReader, u64, u64)> = Vec::new();
        for step in steps {
            match step {
                Step::Publish(facts) => publish(&bus, facts.into()),
                Step::Heavy(bytes) => drop(bus.publish(SpanId::RUN, heavy(bytes as usize))),
                Step::Window(window) => bus.set_limits(LogLimits { window: window.into(), ahead: u64::MAX }),
                Step::Read { from } => readers.push((bus.reader(Seq(from.into())), from.into(), 0)),
                Step::Take { reader, max } => {
                    let many = readers.len().max(1);
                    let Some((reader, from, got)) = readers.get_mut(reader % many) else { continue };
                    for fact in take(reader, max.into()) {
                        prop_assert_eq!(fact.seq.0, *from + reader.missed() + *got);
                        *got += 1;
                    }
                }
                Step::Drop { reader } if !readers.is_empty() => {
                    let at = reader % readers.len();
                    readers.remove(at);
                }
                Step::Drop { .. } => {}
            }
            let first = bus.first_seq().0;
            prop_assert!(first <= bus.len());
            for seq in [first, first + (bus.len() - first) / 2, bus.len().saturating_sub(1)] {
                let held = bus.event(Seq(seq)).map(|fact| fact.seq.0);
                prop_assert_eq!(held, (seq >= first && seq < bus.len()).then_some(seq));
            }
            prop_assert!(first == 0 || bus.event(Seq(first - 1)).is_none());
        }
        for (reader, from, got) in &mut readers {
            *got += take(reader, usize::MAX).len() as u64;
            if *from < bus.len() {
                prop_assert_eq!(*from + reader.missed() + *got, bus.len());
            }
        }
    }
}
