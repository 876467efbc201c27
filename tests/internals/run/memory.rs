//! Long runs: their memory, and that the events kept in it have the same outcome.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crate::base::refused::Refused;
use crate::engine::{Engine, EngineSettings, Launch, RunHandle, RunKeeper};
use crate::log::bus::{LogLimits, LogReader};
use crate::log::event::{Command, Event, EventKind, RunId, Seq, StopReason, World};
use crate::scenario;
use crate::support::random_cases;
use crate::support::storm::{scenario_of, shown};
use proptest::prelude::*;

use crate::support::table::paused_runtime;

const PING_PONG: &str = include_str!("../../../scenarios/ping-pong.toml");

/// What a headless run holds, with a smaller lead of the run.
const HEADLESS: LogLimits = LogLimits { window: 0, ahead: 1 << 20 };

fn engine(log: LogLimits) -> Engine {
    Engine::new(EngineSettings { log, ..EngineSettings::default() })
}

fn start(engine: &Engine, agents: u32, turns: u32, sets: &[&str]) -> RunHandle {
    engine.start(Launch::scripted(Arc::new(scenario_of(agents, turns, sets)), true))
}

/// Reads to the end as a headless run does: what lies some way back is forgotten.
async fn fold_lean(mut reader: LogReader) -> (World, u64) {
    let (mut world, mut batch, mut most) = (World::new(), Vec::new(), 0);
    while reader.next_batch(&mut batch, 256).await > 0 {
        for event in batch.drain(..) {
            world.apply(&event);
        }
        most = most.max(world.spans.opened() - world.spans.forgotten());
        world.forget_before(Seq(world.progress.next.0.saturating_sub(1_000)));
    }
    (world, most)
}

#[test]
fn folding_many_events_keeps_memory_bounded() {
    let peak = |turns: u32| {
        let mut told = None;
        let counted = allocation_counter::measure(|| {
            paused_runtime().block_on(async {
                let run = start(&engine(HEADLESS), 100, turns, &[]);
                let (world, spans) = fold_lean(run.first_reader()).await;
                run.wait_until_finished().await;
                assert!(run.bus().weight() < 1 << 20, "{}", run.bus().weight());
                told = Some((shown(&world), world.tally.events, spans));
            });
        });
        let (outcome, facts, spans) = told.expect("a run");
        (outcome, facts, spans, counted.bytes_max)
    };
    let (_, few, _, short) = peak(50);
    let (outcome, many, spans, long) = peak(500);
    assert!(few > 20_000 && many > 200_000, "{few} and {many} facts");
    assert!(long < short + (2 << 20), "{few} facts take {short} bytes, {many} take {long}");
    assert!(long < 16 << 20, "{long} bytes");
    assert!(spans < 2_500, "{spans} spans are held at once");

    let whole = paused_runtime().block_on(async {
        let run = start(&engine(LogLimits::default()), 100, 500, &[]);
        run.wait_until_finished().await;
        let mut facts = Vec::new();
        run.first_reader().take(&mut facts, usize::MAX);
        assert_eq!(facts.len() as u64, many);
        shown(&World::from_events(facts.iter().map(|fact| &**fact)))
    });
    assert_eq!(outcome, whole, "the same outcome as without the bound");
}

#[tokio::test(start_paused = true)]
async fn run_waits_for_slow_reader() {
    let engine = engine(LogLimits { window: 0, ahead: 256 << 10 });
    let run = start(&engine, 20, 200, &[]);
    let mut reader = run.first_reader();
    // Without a reader the run stops well before its end.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let stands = run.bus().len();
    assert!((500..5_000).contains(&stands), "{stands}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(run.bus().len(), stands);
    let mut facts = Vec::new();
    while reader.next_batch(&mut facts, 64).await > 0 {}
    assert_eq!((facts.len() as u64, reader.missed()), (run.bus().len(), 0));
    assert!(facts.iter().zip(0..).all(|(fact, seq)| fact.seq == Seq(seq)));
    assert!(facts.len() as u64 > 3 * stands, "it went on: {}", facts.len());
    let world = World::from_events(facts.iter().map(|fact| &**fact));
    assert_eq!(
        world.run.progress.closed.map(|closed| closed.reason.clone()),
        Some(StopReason::Success)
    );
}

#[tokio::test(start_paused = true)]
async fn cancel_and_deadline_end_waiting_run() {
    for (cancel, reason) in [(true, StopReason::Cancelled), (false, StopReason::MaxSeconds)] {
        let engine = engine(LogLimits { window: 0, ahead: 256 << 10 });
        let run = start(&engine, 20, 200, &["budget.max_seconds=90"]);
        let mut reader = run.first_reader();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!run.bus().is_within_limits(), "it waits");
        if cancel {
            run.send(Command::Cancel);
        }
        run.wait_until_finished().await;
        let mut facts = Vec::new();
        reader.take(&mut facts, usize::MAX);
        let last = facts.last().map(|fact| &fact.kind);
        let Some(EventKind::RunClosed(closed)) = last else { panic!("no end: {last:?}") };
        assert_eq!((&closed.reason, closed.in_flight), (&reason, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn active_runs_share_window() {
    const MIB: u64 = 1 << 20;
    let engine = engine(LogLimits { window: 16 * MIB, ahead: 4 * MIB });
    let weighs = |run: &RunHandle| run.bus().weight();
    let alone = start(&engine, 50, 500, &[]);
    let (world, _) = fold_lean(alone.first_reader()).await;
    alone.wait_until_finished().await;
    assert!(world.tally.events > 100_000);
    assert!((13 * MIB..19 * MIB).contains(&weighs(&alone)), "{}", weighs(&alone));
    let two = [start(&engine, 50, 500, &[]), start(&engine, 50, 500, &[])];
    let [one, other] = &two;
    let _ = tokio::join!(fold_lean(one.first_reader()), fold_lean(other.first_reader()));
    assert!(two.iter().any(|run| weighs(run) < 10 * MIB), "half each while both went on");
    assert!((13 * MIB..19 * MIB).contains(&weighs(&alone)), "{}", weighs(&alone));
}

/// A scenario's name and its log.
type Named = (String, Vec<Arc<Event>>);

/// The logs of all shipped scenarios, with their own latencies, and of a storm.
fn logs() -> &'static [Named] {
    static LOGS: LazyLock<Vec<Named>> = LazyLock::new(make_logs);
    &LOGS
}

/// The events of a run.
fn read(scenario: scenario::Scenario, instant: bool) -> Vec<Arc<Event>> {
    paused_runtime().block_on(async {
        let engine = engine(LogLimits::default());
        let run = engine.start(Launch::scripted(Arc::new(scenario), instant));
        run.wait_until_finished().await;
        let mut facts = Vec::new();
        run.first_reader().take(&mut facts, usize::MAX);
        facts
    })
}

fn make_logs() -> Vec<Named> {
    let shipped = scenario::shipped().iter().filter_map(|shipped| {
        let scenario = scenario::load(shipped.text, shipped.origin(), &[]).ok()?;
        Some((shipped.name.to_owned(), read(scenario, false)))
    });
    let mut logs: Vec<_> = shipped.collect();
    let naive = ["resilience.guarded=false", "resilience.pool=3"];
    logs.push(("storm".to_owned(), read(scenario_of(8, 6, &naive), false)));
    logs
}

fn outcome(world: &World) -> String {
    let outcome = world.outcome().map(|outcome| serde_json::to_string(&outcome).expect("JSON"));
    format!("{outcome:?} {:?} {:?}", world.tally, world.progress.stage)
}

proptest! {
    #![proptest_config(random_cases(12))]

    /// Whatever is forgotten when, and whatever facts a file lacks: the outcome is that of the fold
    /// that forgets nothing.
    #[test]
    fn lean_fold_gives_same_outcome(
        seed in any::<u64>(),
        every in 1u64..40,
        back in 0u64..60,
        holes in 0u64..3,
    ) {
        let mut forgot = 0;
        for (name, log) in logs() {
            let lacks = |fact: &&Arc<Event>| {
                let hash = (fact.seq.0 + 1).wrapping_mul(seed | 1).rotate_left(23) % 100;
                fact.seq.0 > 0 && hash < 5 * holes
            };
            let (mut whole, mut lean) = (World::new(), World::new());
            for (at, fact) in (0u64..).zip(log.iter().filter(|fact| !lacks(fact))) {
                whole.apply(fact);
                lean.apply(fact);
                if at % every == 0 {
                    lean.forget_before(Seq(fact.seq.0.saturating_sub(back)));
                }
            }
            prop_assert_eq!(outcome(&lean), outcome(&whole), "{}", name);
            prop_assert_eq!(lean.spans.open(), whole.spans.open());
            prop_assert_eq!(lean.spans.opened(), whole.spans.opened());
            forgot += lean.spans.forgotten();
        }
        prop_assert!(forgot > 100, "only {} spans were forgotten", forgot);
    }
}

/// Folds a log and forgets, after so many events each time, what is so far back; also the most chunks of
/// spans that were looked at.
fn forgetting(log: &[Arc<Event>], every: usize, back: u64) -> (World, usize) {
    let (mut world, mut most) = (World::new(), 0);
    for (at, event) in log.iter().enumerate() {
        world.apply(event);
        if at % every == 0 {
            let before = Seq(event.seq.0.saturating_sub(back));
            most = most.max(world.spans.chunks_to_look_at(before).count());
            world.forget_before(before);
            assert_eq!(world.spans.forgettable(before), 0, "event {at}");
        }
    }
    (world, most)
}

#[test]
fn kept_spans_are_not_rescanned() {
    let swarm = PING_PONG.replace("max_handoffs                  = 20", "max_handoffs = 2000");
    let swarm = swarm.replace("repetitive_handoff_window     = 8", "repetitive_handoff_window = 0");
    let origin = scenario::ScenarioOrigin::Shipped("scenarios/ping-pong.toml");
    let log = read(scenario::load(&swarm, origin, &[]).expect("a good scenario"), true);
    let (world, most) = forgetting(&log, 500, 500);
    let stay = world.spans.opened() - world.spans.forgotten();
    assert!(stay > 3_000 && world.spans.forgotten() > 3_000, "{stay} spans stay");
    assert!(most < 16, "{most} chunks of 64 spans were looked at");
}

/// The dashboard keeps hundreds of thousands of events: what it forgets is at their start.
#[test]
fn later_spans_are_not_scanned() {
    let log = read(scenario_of(20, 500, &[]), true);
    let (world, most) = forgetting(&log, 100, 20_000);
    let held = world.spans.opened() - world.spans.forgotten();
    assert!(held > 8_000 && world.spans.forgotten() > 8_000, "{held} spans are held");
    assert!(most < 6, "{most} chunks of 64 spans were looked at");
}

#[test]
fn forgetting_keeps_span_tree_valid() {
    for (name, log) in logs() {
        let mut world = World::new();
        for fact in log {
            world.apply(fact);
            world.forget_before(Seq(fact.seq.0.saturating_sub(20)));
            let spans = &world.spans;
            let held = (0..=u32::try_from(spans.opened()).expect("few"))
                .filter_map(|id| spans.get(crate::log::event::SpanId(id)));
            for span in held {
                let children: Vec<_> = spans.children(span.id).collect();
                assert_eq!(
                    children.last().map(|last| last.id),
                    spans.last_child(span.id).map(|last| last.id),
                    "{name}, fact {}",
                    fact.seq.0
                );
                assert!(children.iter().all(|child| child.parent == span.id));
                assert!(children.windows(2).all(|two| two[0].opened_by < two[1].opened_by));
                let above = spans.get(span.parent);
                assert!(above.is_some(), "{name}: {span:?} stands in nothing");
            }
        }
    }
}

/// A keeper that stores nothing, and says that it has stored a log, or that storing it failed.
struct SaysStored(bool);

impl RunKeeper for SaysStored {
    fn reserve(&self, _: &RunId) -> Result<bool, Refused> {
        Ok(true)
    }

    fn keep(&self, run: &RunHandle, mut reader: LogReader, _: Seq) {
        let (mark, is_stored) = (run.bus().stored_mark(), self.0);
        tokio::spawn(async move {
            let mut batch = Vec::new();
            while reader.next_batch(&mut batch, 256).await > 0 {
                if let Some(last) = batch.drain(..).next_back() {
                    mark.raise(Seq(last.seq.0 + 1));
                }
            }
            if !is_stored {
                mark.abandon();
            }
        });
    }
}

/// How many of twenty ended runs are in memory, with room for none that is stored.
fn ended_runs_in_memory(scenario: &str, keeper: Option<SaysStored>) -> usize {
    let settings = EngineSettings { stored_bytes: 0, ..EngineSettings::default() };
    let one = scenario::shipped().iter().find(|it| it.name == scenario).expect("shipped");
    let scenario = Arc::new(scenario::load(one.text, one.origin(), &[]).expect("good"));
    paused_runtime().block_on(async {
        let keeper = keeper.map(|keeper| Arc::new(keeper) as Arc<dyn RunKeeper>);
        let engine = Engine::with_keeper(settings, keeper);
        for _ in 0..20 {
            let run = engine.start(Launch::scripted(Arc::clone(&scenario), true));
            run.wait_until_finished().await;
            // Another task marks its end as stored.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        }
        engine.runs().len()
    })
}

#[test]
fn stored_runs_leave_memory() {
    assert_eq!(ended_runs_in_memory("checkout-launch", Some(SaysStored(true))), 1, "the last one");
    assert_eq!(
        ended_runs_in_memory("checkout-launch", Some(SaysStored(false))),
        20,
        "it is lost elsewhere"
    );
    assert_eq!(ended_runs_in_memory("checkout-launch", None), 20, "it is nowhere else");
    assert_eq!(
        ended_runs_in_memory("dev-team", Some(SaysStored(true))),
        20,
        "its session is only here"
    );
}
