//! The log under many publishers and readers, and the wire form of facts.

use std::sync::Arc;
use std::time::Duration;

use crate::log::bus::Bus;
use crate::log::event::{Event, EventKind, Seq, SpanId, World};
use crate::log::facts::PatternFact;
use crate::log::facts::collaboration::CollaborationFact;
use crate::support::table::{BRIEF, says};
use crate::support::{random_cases, table};
use proptest::prelude::*;

fn warning(text: impl Into<String>) -> EventKind {
    EventKind::Warning { text: text.into() }
}

async fn read_all(bus: &Bus, batch: usize) -> Vec<Arc<Event>> {
    let mut reader = bus.reader(Seq(0));
    let mut facts = Vec::new();
    while reader.next_batch(&mut facts, batch).await > 0 {}
    facts
}

#[tokio::test(start_paused = true)]
async fn time_begins_with_the_first_event() {
    let bus = Bus::new();
    tokio::time::advance(Duration::from_millis(6)).await;
    bus.publish(SpanId::RUN, warning("first"));
    tokio::time::advance(Duration::from_millis(2)).await;
    bus.publish(SpanId::RUN, warning("second"));
    bus.close();
    let times: Vec<u64> = read_all(&bus, 8).await.iter().map(|event| event.at.0).collect();
    assert_eq!(times, [0, 2_000]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_publishers_keep_order() {
    const PUBLISHERS: u32 = 8;
    const EACH: u32 = 2_000;
    let bus = Bus::new();
    let readers: Vec<_> = [1, 7, 256, 4096]
        .map(|batch| {
            let bus = bus.clone();
            tokio::spawn(async move { read_all(&bus, batch).await })
        })
        .into();
    let publishers: Vec<_> = (0..PUBLISHERS)
        .map(|publisher| {
            let bus = bus.clone();
            tokio::task::spawn_blocking(move || {
                for n in 0..EACH {
                    bus.publish(SpanId(publisher), warning(n.to_string()));
                }
            })
        })
        .collect();
    for publisher in publishers {
        publisher.await.expect("a publisher");
    }
    bus.close();
    for reader in readers {
        let facts = reader.await.expect("a reader");
        assert_eq!(facts.len(), (PUBLISHERS * EACH) as usize, "no reader loses a fact");
        assert!(facts.iter().enumerate().all(|(at, fact)| fact.seq == Seq(at as u64)));
        assert!(facts.windows(2).all(|pair| pair[0].at <= pair[1].at));
        for publisher in 0..PUBLISHERS {
            let mut own = facts.iter().filter(|fact| fact.span == SpanId(publisher));
            assert!(
                (0..EACH)
                    .all(|n| own.next().map(|fact| &fact.kind) == Some(&warning(n.to_string())))
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn reader_waits_for_start_position() {
    let bus = Bus::new();
    let mut reader = bus.reader(Seq(300));
    let waiting = {
        let bus = bus.clone();
        async move {
            for n in 0..301 {
                tokio::time::sleep(Duration::from_millis(1)).await;
                bus.publish(SpanId::RUN, warning(n.to_string()));
            }
        }
    };
    let mut facts = Vec::new();
    let ((), came) = tokio::join!(waiting, reader.next_batch(&mut facts, 10));
    assert_eq!((came, facts[0].seq, reader.position()), (1, Seq(300), Seq(301)));
    assert_eq!(bus.event(Seq(299)).map(|fact| fact.kind.clone()), Some(warning("299")));
    assert!(bus.event(Seq(301)).is_none());
    bus.close();
    assert_eq!(reader.next_batch(&mut facts, 10).await, 0);
}

#[tokio::test(start_paused = true)]
async fn cancelled_read_takes_nothing() {
    let bus = Bus::new();
    let mut reader = bus.reader(Seq(0));
    let mut facts = Vec::new();
    let waited =
        tokio::time::timeout(Duration::from_secs(1), reader.next_batch(&mut facts, 1)).await;
    assert!(waited.is_err());
    bus.publish(SpanId::RUN, warning("later"));
    assert_eq!(reader.next_batch(&mut facts, 1).await, 1);
}

#[test]
fn long_log_drops_on_small_stack() {
    let bus = Bus::new();
    let mut reader = bus.reader(Seq(0));
    for _ in 0..300_000 {
        bus.publish(SpanId::RUN, EventKind::CallAnswered { attempts: 1 });
    }
    let mut first = Vec::new();
    assert_eq!(reader.take(&mut first, 1), 1, "it holds on to the first segment");
    drop(bus);
    let small = std::thread::Builder::new().stack_size(64 * 1024);
    small.spawn(move || drop(reader)).expect("a thread").join().expect("no overflow");
}

#[test]
fn log_weight_grows_with_facts() {
    let weight = |kind: EventKind| {
        let bus = Bus::new();
        bus.publish(SpanId::RUN, kind);
        bus.weight()
    };
    let small = weight(warning("x"));
    assert!(weight(warning("x".repeat(1 << 20))) > small + (1 << 20) - 16);
    let refused = |raw: &str| {
        EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::ContributionRefused {
            round: 1,
            seat: 0,
            role: "a".into(),
            reason: "max_messages".into(),
            raw: Some(Arc::new(serde_json::json!({ "invalid": true, "raw": raw }))),
        }))
    };
    assert!(weight(refused(&"x".repeat(1 << 20))) > weight(refused("x")) + (1 << 20) - 16);
}

#[tokio::test(start_paused = true)]
async fn closed_log_stays_closed() {
    let log = a_log().await;
    let (head, end) = (&log[0], &log[log.len() - 1]);
    let world = World::from_events([&**end, &**head]);
    assert!(!world.progress.is_live());
}

#[test]
fn live_slot_appears_with_first_piece() {
    let bus = Bus::new();
    let (silent, slot) = (bus.live(SpanId(2)), bus.live(SpanId(3)));
    assert!(bus.live_spans().is_empty());
    slot.push("one");
    assert_eq!((bus.live_spans(), slot.text()), (vec![SpanId(3)], "one".to_owned()));
    let seen = bus.live_version();
    assert_eq!(silent.text(), "");
    drop(silent);
    assert_eq!((bus.live_version(), bus.live_spans()), (seen, vec![SpanId(3)]));
}

#[tokio::test(start_paused = true)]
async fn live_text_ends_with_slot() {
    let bus = Bus::new();
    let slot = bus.live(SpanId(3));
    slot.push("one ");
    slot.push("two");
    assert_eq!(
        bus.with_live(SpanId(3), |live| (live.text.clone(), live.pieces)),
        Some(("one two".into(), 2))
    );
    let seen = bus.live_version();
    assert!(bus.is_empty(), "no piece is a fact");
    drop(slot);
    assert_ne!(bus.live_changed(seen).await, seen);
    assert!(bus.with_live(SpanId(3), |_| ()).is_none());
}

/// A log with every common kind in it, made by a run.
async fn a_log() -> Vec<Arc<Event>> {
    let rows = [
        says("a", "", "go"),
        says("b", "round = 1\nfault = { status = 503, times = 1 }", "block"),
        says("b", "", "go"),
        says("c", "", "caution"),
    ]
    .concat()
        + BRIEF;
    let launch = crate::engine::Launch {
        flags: vec![("third".into(), true)],
        ..crate::engine::Launch::scripted(table::scenario(&rows, &[]), true)
    };
    table::facts(&table::engine().start(launch)).await
}

#[tokio::test(start_paused = true)]
async fn line_with_run_round_trips() {
    let run = crate::log::event::RunId::new("r-7f3a");
    let line_of = |event: &Event| {
        let mut line = Vec::new();
        event.append_line(Some(&run), &mut line).expect("a line");
        String::from_utf8(line).expect("text")
    };
    for fact in a_log().await {
        let line = line_of(&fact);
        assert_eq!(line.matches("\"run\":").count(), 1, "once, also of the head: {line}");
        assert_eq!(Event::from_line(&line).expect("a fact"), *fact);
    }
    // A kind of a later version may have a field of that name: it stays the kind's.
    let line = r#"{"v":2,"seq":4,"at_us":17,"span":2,"kind":"table.flipped","run":"r-0001"}"#;
    let later = Event::from_line(line).expect("a fact");
    let again = line_of(&later);
    assert!(again.contains("r-0001") && !again.contains("r-7f3a"), "{again}");
    assert_eq!(Event::from_line(&again).expect("a fact"), later);
}

#[test]
fn keeps_facts_of_later_version() {
    let line = r#"{"v":2,"seq":4,"at_us":17,"span":2,"kind":"table.flipped","by":"you","n":[1,2]}"#;
    let fact = Event::from_line(line).expect("a fact");
    assert_eq!(fact.kind.name(), "table.flipped");
    let again = Event::from_line(&fact.to_line().expect("a line")).expect("a fact");
    assert_eq!(again, fact);
    let mut world = World::new();
    world.apply(&fact);
    assert_eq!(world.tally.unknown, 1);
    // A known kind with fields that this version cannot read is kept the same way.
    let odd = Event::from_line(r#"{"v":2,"seq":0,"at_us":0,"span":0,"kind":"paused","at_":1}"#);
    assert!(matches!(odd.expect("a fact").kind, EventKind::Unknown { .. }));
    for broken in ["", "{}", "[]", "null", r#"{"seq":-1,"at_us":0,"span":0,"kind":"x"}"#] {
        assert!(Event::from_line(broken).is_err(), "{broken}");
    }
}

fn look(world: &World) -> String {
    format!("{world:?}")
}

proptest! {
    #![proptest_config(random_cases(48))]

    /// fold(prefix), kept as a checkpoint, + fold(rest) = fold(all); and any order is total.
    #[test]
    fn folds_resume_and_accept_any_order(cut in 0usize..200, seed in any::<u64>()) {
        let runtime = crate::support::table::paused_runtime();
        let log = runtime.block_on(a_log());
        let cut = cut.min(log.len());
        let whole = World::from_events(log.iter().map(|fact| &**fact));
        let mut world = World::from_events(log[..cut].iter().map(|fact| &**fact));
        let checkpoint = world.clone();
        let before = look(&checkpoint);
        for fact in &log[cut..] {
            world.apply(fact);
        }
        prop_assert_eq!(look(&world), look(&whole));
        prop_assert_eq!(look(&checkpoint), before, "a checkpoint does not move with the world it was taken of");

        let mut shuffled: Vec<_> = log.iter().collect();
        shuffled.sort_by_key(|fact| fact.seq.0.wrapping_mul(seed | 1).rotate_left(17));
        let odd = World::from_events(shuffled.iter().map(|fact| &***fact));
        prop_assert_eq!(odd.tally.events, whole.tally.events);
        odd.outcome();
    }

    /// Numbers that only a broken or hostile file holds.
    #[test]
    fn the_fold_takes_any_numbers(seq in any::<u64>(), at in any::<u64>(), span in any::<u32>(), parent in any::<u32>(), round in any::<u32>(), seat in any::<u16>()) {
        use crate::log::event::*;
        use crate::log::event::{BoundaryId, Elapsed};
        let kinds = [
            EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundStarted { parent: SpanId(parent), round, seats: vec![] })),
            EventKind::AttemptStarted { parent: SpanId(parent), attempt: round, timeout_ms: at , waited_ms: 0, probe: false},
            EventKind::CallRetried { attempt: round, wait_ms: at, cause: FailureClass::Timeout, status: None },
            EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::ContributionRefused { round, seat, role: "x".into(), reason: "max_messages".into(), raw: None })),
            EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundClosed { round, conflicts: vec![], decision: None, decided_by: None })),
            EventKind::Resumed { by: Initiator::You, paused_ms: at },
            EventKind::Paused { at: vec![BoundaryId::new("x")] },
            EventKind::AttemptAnswered(Arc::new(Reply { usage: Some(Usage::new(at, at)), ..Reply::from_agent_text("".into()) })),
        ];
        let runtime = crate::support::table::paused_runtime();
        let head = runtime.block_on(a_log())[0].clone();
        let mut world = World::from_events([&*head]);
        prop_assert!(world.collaboration().is_some());
        for kind in kinds.iter().chain(&kinds) {
            world.apply(&Event { seq: Seq(seq), at: Elapsed(at), span: SpanId(span), kind: kind.clone() });
        }
        world.progress.active(Elapsed(seq));
        world.over_time.activity.columns(Elapsed(at), 80);
        prop_assert!(world.outcome().is_none());
    }
}
