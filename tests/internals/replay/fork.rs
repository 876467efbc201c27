//! Forks: a run continues from a boundary of another one, in a log of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{differences, outcome, scenario, stored};
use crate::base::name::FlagName;
use crate::engine::{ForkStart, Launch, Schedule};
use crate::log::bus::{PassedBoundary, Recording, ReplayError};
use crate::log::event::{
    Asks, BoundaryId, Elapsed, Event, EventKind, Initiator, Seq, SpanId, World,
};
use crate::scenario::spec::InDoubt;
use crate::scenario::{load, shipped};
use crate::support::table::{engine, facts};

fn start(recording: Recording, at: &str) -> ForkStart {
    ForkStart {
        recording,
        at: BoundaryId::new(at),
        flags: Vec::new(),
        by: Initiator::You,
        in_doubt: InDoubt::Retry,
    }
}

/// Forks a run; all events of the fork.
async fn fork(launch: Launch, fork: ForkStart) -> Result<Vec<Arc<Event>>, ReplayError> {
    let run = engine().fork(launch, fork);
    run.wait_until_live().await?;
    Ok(facts(&run).await)
}

/// The boundaries of a recorded run.
async fn boundaries(launch: Launch, recording: Recording) -> Vec<PassedBoundary> {
    match fork(launch, start(recording, "")).await {
        Err(ReplayError::NotReached { passed, .. }) => passed,
        other => panic!("the boundary does not exist: {other:?}"),
    }
}

/// Where the fork begins.
fn first_own(events: &[Arc<Event>]) -> usize {
    let is_fork = |event: &Arc<Event>| matches!(event.kind, EventKind::RunForked { .. });
    events.iter().position(is_fork).expect("run.forked")
}

/// How often each prompt was sent to a model, or arguments to a tool.
fn asked(events: &[Arc<Event>]) -> BTreeMap<String, usize> {
    let mut asked = BTreeMap::new();
    for event in events {
        if let EventKind::CallStarted(call) = &event.kind
            && call.purpose.asks() != Asks::Agent
        {
            // The number of the span that asked may be another one.
            let purpose = format!("{:?}", call.purpose);
            let purpose = match purpose.split_once("SpanId(") {
                Some((before, after)) => {
                    format!("{before}{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
                }
                None => purpose,
            };
            *asked.entry(format!("{purpose} {}", call.repeat)).or_default() += 1;
        }
    }
    asked
}

/// The faults of a fork without any change.
fn faults(full: &[Arc<Event>], forked: &[Arc<Event>]) -> Vec<String> {
    let mut faults = Vec::new();
    let cut = first_own(forked);
    if !(0..).zip(forked).all(|(place, event)| event.seq.0 == place) {
        faults.push("the events are not numbered".to_owned());
    }
    if forked.windows(2).any(|pair| pair[0].at > pair[1].at) {
        faults.push("time goes back".to_owned());
    }
    let mut known = full.iter();
    for event in &forked[1..cut] {
        let same = |it: &&Arc<Event>| (it.span, &it.kind) == (event.span, &event.kind);
        if known.find(same).is_none() {
            faults.push(format!("event {} is not its parent's, or not in its order", event.seq.0));
            break;
        }
    }
    if forked.iter().any(|event| matches!(event.kind, EventKind::CallInDoubt { .. })) {
        faults.push("a call is in doubt".to_owned());
    }
    for attempt in in_flight(&forked[..cut]) {
        let (before, now) = (end_of(full, attempt), end_of(&forked[cut..], attempt));
        if before != now {
            faults.push(format!("{attempt:?} ends otherwise: {before:?} and {now:?}"));
        }
    }
    let asked_before = asked(full);
    for (what, times) in asked(forked) {
        let before = asked_before.get(&what).copied().unwrap_or_default();
        if times > before {
            faults.push(format!("{what} is asked {times} times, not {before}"));
        }
    }
    faults.extend(differences("outcome", &outcome(full), &outcome(forked)));
    faults
}

/// The attempts that have not ended in this part of a log.
fn in_flight(events: &[Arc<Event>]) -> BTreeSet<SpanId> {
    let mut open = BTreeSet::new();
    for event in events {
        match event.kind {
            EventKind::AttemptStarted { .. } => drop(open.insert(event.span)),
            _ => drop(open.remove(&event.span)),
        }
    }
    open
}

/// When and how an attempt ended.
fn end_of(events: &[Arc<Event>], attempt: SpanId) -> Option<(Elapsed, EventKind)> {
    let is_end = |kind: &EventKind| {
        matches!(kind, EventKind::AttemptAnswered(_) | EventKind::AttemptFailed(_))
    };
    let end = events.iter().find(|event| event.span == attempt && is_end(&event.kind))?;
    Some((end.at, end.kind.clone()))
}

#[tokio::test(start_paused = true)]
async fn fork_keeps_results_of_running_calls() {
    let mut tried = 0;
    for name in ["checkout-launch", "morning-report", "fraud-check"] {
        let launch = || Launch::scripted(scenario(name), false);
        let full = facts(&engine().start(launch())).await;
        for boundary in boundaries(launch(), stored(&full)).await {
            let at = start(stored(&full), boundary.id.as_str());
            let forked = fork(launch(), at).await.expect("a fork");
            let open = in_flight(&forked[..first_own(&forked)]);
            tried += open.iter().filter(|span| end_of(&full, **span).is_some()).count();
            assert_eq!(faults(&full, &forked), Vec::<String>::new(), "{name} at {}", boundary.id);
        }
    }
    assert!(tried >= 5, "{tried} calls in flight");
}

/// Forks a scenario at each of its boundaries that `picks` takes, without any change.
async fn fork_all(picks: impl Fn(usize, usize) -> bool) {
    let mut wrong = Vec::new();
    for shipped in shipped() {
        for instant in [false, true] {
            let launch = || Launch::scripted(scenario(shipped.name), instant);
            let full = facts(&engine().start(launch())).await;
            let recording = stored(&full);
            let passed = boundaries(launch(), recording.clone()).await;
            assert!(!passed.is_empty(), "{} has boundaries", shipped.name);
            for (place, boundary) in passed.iter().enumerate() {
                if !picks(place, passed.len()) {
                    continue;
                }
                let found =
                    match fork(launch(), start(recording.clone(), boundary.id.as_str())).await {
                        Ok(forked) => faults(&full, &forked),
                        Err(error) => vec![error.to_string()],
                    };
                let at = format!("{}, instant {instant}, at {}", shipped.name, boundary.id);
                wrong.extend(found.into_iter().map(|fault| format!("{at}: {fault}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn unchanged_fork_matches_parent() {
    fork_all(|place, len| place % (len / 3).max(1) == 0).await;
}

/// Each boundary of each scenario: `cargo test --lib replay -- --ignored`.
#[tokio::test(start_paused = true)]
#[ignore = "takes minutes"]
async fn fork_at_each_boundary_matches_parent() {
    fork_all(|place, len| len < 200 || place % (len / 100) == 0).await;
}

#[tokio::test(start_paused = true)]
async fn fork_switches_flags_at_boundary() {
    let launch = || Launch::scripted(scenario("checkout-launch"), false);
    let parent = engine().start(launch());
    let full = facts(&parent).await;
    let recording = stored(&full);
    let (flag, on) = first_flag(&full);
    let flags = vec![(flag, !on)];
    let flagged = ForkStart { flags: flags.clone(), ..start(recording, "round:2") };
    let forked = fork(launch(), flagged).await.expect("a fork");
    let cut = first_own(&forked);
    let EventKind::FlagChanged { flag, on, boundary, .. } = &forked[cut + 1].kind else {
        panic!("the flag is switched first: {:?}", forked[cut + 1]);
    };
    assert_eq!((flag, *on, boundary.as_str()), (&flags[0].0, flags[0].1, "round:2"));
    let world = World::from_events(forked.iter().map(|event| &**event));
    let head = world.head.as_ref().expect("a head");
    assert_ne!(&head.run, parent.id());
    let origin = head.launch.as_ref().and_then(|it| it.forked.as_ref()).expect("its origin");
    assert_eq!((&origin.parent, origin.at.as_str()), (parent.id(), "round:2"));
    assert_eq!(origin.flags, flags);
    let reused = world.tally.reused.expect("a part of its parent");
    assert_eq!(reused.events, cut as u64);
    assert!(reused.tokens > 0 && reused.tokens < world.tally.usage.total());

    // A fork of the fork before the switch does not switch it.
    let again = fork(launch(), start(stored(&forked), "message:1:risk_analyst")).await;
    let again = again.expect("a fork of a fork");
    assert!(!again.iter().any(|event| matches!(event.kind, EventKind::FlagChanged { .. })));
    // After it, the switch is part of the reused events.
    let behind = fork(launch(), start(stored(&forked), "round:3")).await;
    if let Ok(behind) = behind {
        let cut = behind.iter().rposition(|it| matches!(it.kind, EventKind::RunForked { .. }));
        let switched = |it: &Arc<Event>| matches!(it.kind, EventKind::FlagChanged { .. });
        assert_eq!(behind[..cut.expect("a fork")].iter().filter(|it| switched(it)).count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn parent_schedule_applies_once() {
    let one = shipped().iter().find(|it| it.name == "checkout-launch").expect("shipped");
    let launch = |set: &[&str]| {
        let set: Vec<_> = set.iter().map(|it| it.parse().expect("an override")).collect();
        let scenario = load(one.text, one.origin(), &set).expect("a good scenario");
        let at = (BoundaryId::new("round:2"), "legal_analyst".into(), true);
        let schedule = Schedule { flags: vec![at], ..Schedule::default() };
        Launch { schedule, ..Launch::scripted(Arc::new(scenario), true) }
    };
    let full = facts(&engine().start(launch(&[]))).await;
    let switched = |it: &Arc<Event>| matches!(it.kind, EventKind::FlagChanged { .. });
    assert_eq!(full.iter().filter(|it| switched(it)).count(), 1);
    let shorter = launch(&["budget.max_rounds=1"]);
    let forked = fork(shorter, start(stored(&full), "round:1")).await.expect("a fork");
    let unreached = forked.iter().filter(|it| match &it.kind {
        EventKind::Warning { text, .. } => text.contains("round:2 was never reached"),
        _ => false,
    });
    assert_eq!(unreached.count(), 1);
}

fn first_flag(full: &[Arc<Event>]) -> (FlagName, bool) {
    let EventKind::RunStarted(head) = &full[0].kind else { panic!("a head") };
    let flag = head.flags.first().expect("a flag");
    (flag.name.clone(), flag.on)
}

/// An edited prompt is sent from the boundary on; the earlier texts stay.
#[tokio::test(start_paused = true)]
async fn edited_prompt_applies_at_boundary() {
    let launch = || Launch::scripted(scenario("checkout-launch"), false);
    let full = facts(&engine().start(launch())).await;
    let one = shipped().iter().find(|it| it.name == "checkout-launch").expect("shipped");
    let goal = "goal=Launch it on a Friday?".parse().expect("an override");
    let changed = Arc::new(load(one.text, one.origin(), &[goal]).expect("a good scenario"));
    let forked = fork(Launch::scripted(changed, false), start(stored(&full), "round:2")).await;
    let forked = forked.expect("a fork");
    let cut = first_own(&forked);
    let friday = |events: &[Arc<Event>]| {
        let said = events.iter().filter(|event| match &event.kind {
            EventKind::CallStarted(call) => {
                call.prompt.messages.iter().any(|message| message.content.contains("Friday"))
            }
            _ => false,
        });
        said.count()
    };
    assert_eq!(friday(&forked[..cut]), 0);
    assert!(friday(&forked[cut..]) > 0);
    // Its log can be resumed: the texts before the fork may differ from those of its settings.
    let one = shipped().iter().find(|it| it.name == "checkout-launch").expect("shipped");
    let goal = "goal=Launch it on a Friday?".parse().expect("an override");
    let changed = Arc::new(load(one.text, one.origin(), &[goal]).expect("a good scenario"));
    let cut_off = stored(&forked[..forked.len() - 3]);
    let resumed = super::resume(Launch::scripted(changed, false), cut_off).await.expect("goes on");
    assert_eq!(differences("outcome", &outcome(&forked), &outcome(&resumed)), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn unreached_boundary_starts_no_run() {
    let launch = || Launch::scripted(scenario("checkout-launch"), true);
    let full = facts(&engine().start(launch())).await;
    let engine = engine();
    let run = engine.fork(launch(), start(stored(&full), "round:99"));
    let error = run.wait_until_live().await.expect_err("there is no such round");
    assert_eq!(error.to_string(), "the run never came to round:99");
    let ReplayError::NotReached { passed, .. } = error else { panic!("{error}") };
    let first = passed.first().expect("a boundary");
    assert_eq!(first.id.as_str(), "round:1");
    assert!(passed.is_sorted_by_key(|it| (it.next, it.at)));
    run.wait_until_finished().await;
    assert!(run.bus().is_empty());
    assert!(engine.run(run.id()).is_none());
    assert!(first.next > Seq(0));
}
