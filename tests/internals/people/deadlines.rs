//! Deadlines: one place decides whether an answer came in time, by the time at which it was accepted.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::SystemTime;

use proptest::prelude::*;
use tokio::time::{Instant, sleep_until};

use super::continued::{so_far, stored};
use super::*;
use crate::base::time::{WallClock, unix_ms};
use crate::engine::Resumption;
use crate::gateway::{InputReply, InputRequest};
use crate::log::event::Initiator;
use crate::log::event::question::MAX_ANSWER_BYTES;
use crate::run::questions::StoredAnswers;
use crate::scenario::spec::InDoubt;
use crate::support::random_cases;
use crate::support::table::{engine_at, paused_runtime, tokio_wall};

/// An answer to a question, as another process sends it.
fn sent(asked: &QuestionAsked, by: AnsweredBy, answer: Answer) -> Command {
    let (id, digest) = (asked.id, Arc::clone(&asked.digest));
    Command::Answer(Box::new(QuestionAnswered::new(id, digest, by, answer)))
}

/// The warnings of a log.
fn warnings(events: &[Arc<Event>]) -> Vec<String> {
    let warnings = events.iter().filter_map(|event| match &event.kind {
        EventKind::Warning { text } => Some(text.clone()),
        _ => None,
    });
    warnings.collect()
}

/// For each `otherwise`: an answer of the last millisecond counts, one at the deadline or after it does not,
/// though no timer has fired yet, and a warning says to its sender what has happened instead.
#[tokio::test(start_paused = true)]
async fn answer_counts_until_its_deadline() {
    for (otherwise, stays) in
        [("\"deny\"", "the call is denied"), ("\"stop\"", "the run stops"), ("\"pause\"", "")]
    {
        for late_ms in [-1_i64, 0, 1_000] {
            let approve_key = format!("approve = {{ timeout = \"10m\", otherwise = {otherwise} }}");
            let (run, tool) = start(&desk(&approve_key, ""));
            let question = asked(&run, 1).await;
            let due_ms = question.due_ms.expect("a deadline");
            // As a cluster does: the time at which the answer was stored.
            let at_ms = due_ms.checked_add_signed(late_ms).expect("a time");
            assert!(run.take(sent(&question, ann(), approve()), "ann", 1, at_ms));
            run.send(Command::Resume { by: Initiator::You });
            let events = facts(&run).await;
            let counts = late_ms < 0 || otherwise == "\"pause\"";
            let about = format!("{otherwise} {late_ms}");
            assert_eq!(tool.calls().len(), usize::from(counts), "{about}");
            let first = &answers(&events)[0];
            assert_eq!(first.by == ann(), counts, "{about}");
            assert!(first.at_ms.is_some(), "{about}");
            let told = warnings(&events).iter().any(|text| {
                text.contains("an answer to q1 was refused: too late, the deadline was ")
                    && text.ends_with(&format!(" UTC; operator did not answer: {stays}"))
            });
            assert_eq!(told, !counts, "{about}: {:?}", warnings(&events));
        }
    }
}

/// A late answer to a question that its deadline has ended already.
#[tokio::test(start_paused = true)]
async fn late_sender_is_told() {
    let approve_key = "approve = { timeout = \"10m\" }";
    let (run, tool) = start(&desk(approve_key, ""));
    let question = asked(&run, 1).await;
    // The run is held after its deadline, so that it is there for the late answer.
    run.send(Command::Pause { by: Initiator::You });
    until(&run, |kind| matches!(kind, EventKind::QuestionAnswered(_))).await;
    answer(&run, &question, approve());
    run.send(Command::Resume { by: Initiator::You });
    let events = facts(&run).await;
    assert_eq!(tool.calls().len(), 0);
    let told = warnings(&events).iter().any(|text| text.contains("too late, the deadline was "));
    assert!(told, "{:?}", warnings(&events));
}

/// The answer of another thread at the deadline: after the run has looked at the clock, before it pauses.
#[test]
fn answer_at_deadline_leaves_no_pause() {
    paused_runtime().block_on(async {
        let handle: Arc<OnceLock<(RunHandle, Arc<QuestionAsked>)>> = Arc::default();
        let (wall, has_answered) = (tokio_wall(), AtomicBool::new(false));
        let seen = Arc::clone(&handle);
        let clock: WallClock = Arc::new(move || {
            let now = wall();
            if let Some((run, question)) = seen.get()
                && question.due_ms.is_some_and(|due_ms| due_ms <= unix_ms(now))
                && !has_answered.swap(true, Ordering::SeqCst)
            {
                answer(run, question, approve());
            }
            now
        });
        let scenario = desk("approve = { timeout = \"10m\", otherwise = \"pause\" }", "");
        let tool = Recorder::default();
        let run = engine_at(clock).start(launch(&scenario, &tool, PeopleMode::Wait));
        let question = asked(&run, 1).await;
        assert!(handle.set((run.clone(), question)).is_ok());
        let events = facts(&run).await;
        assert_eq!(tool.calls().len(), 1);
        assert_eq!(kinds(&events, &["paus"]), [""; 0]);
    });
}

/// Authors, names and sizes of what comes from elsewhere.
#[tokio::test(start_paused = true)]
async fn answers_from_elsewhere_are_of_people() {
    for by in [AnsweredBy::Rule, AnsweredBy::Script, AnsweredBy::Nobody] {
        let (run, tool) = start(&desk("approve = true", ""));
        let question = asked(&run, 1).await;
        run.take_remote(sent(&question, by, approve()), "ann").expect("taken");
        let events = facts(&run).await;
        let AnsweredBy::Person { name, .. } = &answers(&events)[0].by else { panic!("{events:?}") };
        assert_eq!((&**name, tool.calls().len()), ("ann", 1));
    }
    let (run, tool) = start(&desk("approve = true", ""));
    let question = asked(&run, 1).await;
    let large = "x".repeat(2 << 20);
    let why = run.take_remote(sent(&question, ann(), deny(&large)), "ann").expect_err("too large");
    assert_eq!(why, "the answer has 2049 KiB, and at most 256 KiB are allowed");
    assert!(kinds(&so_far(&run).await, &["command."]).is_empty());
    // The same limit for those of this process.
    answer(&run, &question, deny(&large));
    let fits = "x".repeat(MAX_ANSWER_BYTES - 100);
    answer(&run, &question, deny(&fits));
    let events = facts(&run).await;
    assert!(warnings(&events)[0].contains("at most 256 KiB are allowed"));
    assert_eq!((answers(&events)[0].answer.clone(), tool.calls().len()), (deny(&fits), 0));
}

/// A tool that asks more often than an attempt may, as another program can.
struct Flood;

impl Tool for Flood {
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        Box::pin(async move {
            let mut cancelled = 0;
            for _ in 0..1_200 {
                let (from, text, schema) = ("flood".to_owned(), "More?".to_owned(), json!({}));
                let reply = request.host.ask(InputRequest { from, text, schema }).await;
                cancelled += u32::from(reply == InputReply::Cancel);
            }
            Ok(Arc::new(json!({ "cancelled": cancelled })))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn attempt_asks_a_thousand_questions() {
    let scenario = desk("", "");
    let mut launch = launch(&scenario, &Recorder::default(), PeopleMode::Nobody);
    let mut tools = Toolbox::offline(&scenario, true);
    tools.replace("refund", Box::new(Flood));
    launch.tools = Some(tools);
    let events = facts(&engine().start(launch)).await;
    assert_eq!(kinds(&events, &["question.asked"]).len(), 1_000);
    assert_eq!(warnings(&events).len(), 1, "{:?}", warnings(&events));
    assert!(said(&events).contains("1200"), "{}", said(&events));
}

/// What happens to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Its process is killed, or another one continues it.
    Switched,
    /// Somebody answers. While no process plays the run the answer is stored, as in a cluster.
    Answered,
    /// The wall clock is set by so many seconds.
    ClockSet(i64),
}

/// What became of the only answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Counts,
    TooLate,
    /// The clock was set back behind a deadline that it had passed: the run may have seen that or not.
    Either,
}

/// The plain reference. The steps have different seconds, in their order; the question is asked at 0.
fn expected(due: i64, steps: &[(u64, Step)]) -> Fate {
    let (mut set, mut is_alive, mut was_over) = (0, true, false);
    for (at, step) in steps {
        let at = i64::try_from(*at).expect("seconds");
        // The last moment before the step: a process that plays the run looks at the clock until then.
        was_over |= is_alive && at + set >= due;
        match step {
            Step::Answered if at + set >= due => return Fate::TooLate,
            Step::Answered if was_over => return Fate::Either,
            Step::Answered => return Fate::Counts,
            Step::Switched => is_alive = !is_alive,
            Step::ClockSet(by) => set += by,
        }
        was_over |= is_alive && at + set >= due;
    }
    Fate::TooLate
}

/// Answers that are stored where no process has read them.
#[derive(Default)]
struct Mailbox {
    sent: Mutex<Vec<(Command, u64)>>,
    run: OnceLock<RunHandle>,
}

impl Mailbox {
    fn give(&self) {
        let sent = std::mem::take(&mut *self.sent.lock().expect("no panic"));
        for (command, at_ms) in sent {
            self.run.get().expect("a run").take(command, "ann", 1, at_ms);
        }
    }
}

impl StoredAnswers for Mailbox {
    fn deliver(&self) -> BoxFuture<'_, ()> {
        self.give();
        Box::pin(std::future::ready(()))
    }
}

/// The log of a run to which these steps happen, and the calls of its tool.
async fn played(timeout_s: u64, steps: &[(u64, Step)]) -> (Vec<Arc<Event>>, usize) {
    let scenario = desk(&format!("approve = {{ timeout = \"{timeout_s}s\" }}"), "");
    let (tool, start, set) = (Recorder::default(), Instant::now(), Arc::new(AtomicI64::new(0)));
    // Far from 1970, in either direction.
    let wall = {
        let set = Arc::clone(&set);
        let base = SystemTime::UNIX_EPOCH + Duration::from_hours(1_000);
        Arc::new(move || {
            let now = base + start.elapsed();
            let by = Duration::from_secs(set.load(Ordering::SeqCst).unsigned_abs());
            if set.load(Ordering::SeqCst) < 0 { now - by } else { now + by }
        })
    };
    let mut run = engine_at(wall.clone()).start(launch(&scenario, &tool, PeopleMode::Wait));
    let question = asked(&run, 1).await;
    let mut left: Option<Vec<Arc<Event>>> = None;
    let mut stored_answers = Vec::new();
    for (at, step) in steps {
        sleep_until(start + Duration::from_secs(*at)).await;
        match (step, left.take()) {
            (Step::ClockSet(by), before) => {
                set.fetch_add(*by, Ordering::SeqCst);
                left = before;
            }
            (Step::Answered, before) => {
                // Whatever it says of itself.
                let command = sent(&question, AnsweredBy::Rule, approve());
                let at_ms = unix_ms(wall());
                match before {
                    Some(_) => stored_answers.push((command, at_ms)),
                    None => drop(run.take_remote(command, "ann")),
                }
                left = before;
            }
            // A run that has ended is not continued.
            (Step::Switched, None) if run.is_over() => {}
            (Step::Switched, None) => {
                left = Some(so_far(&run).await);
                run.send(Command::Cancel);
            }
            (Step::Switched, Some(events)) => {
                run = resumed(&scenario, &tool, &wall, &events, &mut stored_answers).await;
            }
        }
    }
    if let Some(events) = left {
        run = resumed(&scenario, &tool, &wall, &events, &mut stored_answers).await;
    }
    (facts(&run).await, tool.calls().len())
}

/// Another process continues the run.
async fn resumed(
    scenario: &Arc<Scenario>,
    tool: &Recorder,
    wall: &Arc<impl Fn() -> SystemTime + Send + Sync + 'static>,
    events: &[Arc<Event>],
    answers: &mut Vec<(Command, u64)>,
) -> RunHandle {
    let (recording, by) = (stored(events), Initiator::You);
    let resumption = Resumption { recording, by, in_doubt: InDoubt::Stop };
    let launch = launch(scenario, tool, PeopleMode::Wait);
    let run = engine_at(wall.clone()).resume(launch, resumption).expect("a run");
    let mailbox = Arc::new(Mailbox::default());
    assert!(mailbox.run.set(run.clone()).is_ok());
    mailbox.sent.lock().expect("no panic").append(answers);
    run.set_stored_answers(Arc::clone(&mailbox) as _);
    run.wait_until_live().await.expect("it continues");
    mailbox.give();
    run
}

/// So many steps, at different seconds, one of which is the answer.
fn any_steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        3 => Just(Step::Switched),
        2 => (-400_i64..400).prop_map(Step::ClockSet),
    ];
    (prop::collection::btree_map(1_u64..400, step, 0..5), 1_u64..400).prop_map(|(others, at)| {
        let mut steps: Vec<_> = others.into_iter().filter(|(other, _)| *other != at).collect();
        steps.push((at, Step::Answered));
        steps.sort_by_key(|(at, _)| *at);
        steps
    })
}

proptest! {
    #![proptest_config(random_cases(300))]

    /// Wherever the run is played, whenever its process is killed, and however the clock is set: the call is made
    /// if the answer was accepted before the deadline, once, and else not at all. The log alone shows it.
    #[test]
    fn only_answers_in_time_approve(timeout_s in 1_u64..400, steps in any_steps()) {
        let due = i64::try_from(timeout_s).expect("seconds");
        let (events, calls) = paused_runtime().block_on(played(timeout_s, &steps));
        let fate = expected(due, &steps);
        let log = answers(&events);
        let approved = log.iter().find(|it| it.answer == approve());
        let asked = events.iter().find_map(|event| match &event.kind {
            EventKind::QuestionAsked(asked) => Some(Arc::clone(asked)),
            _ => None,
        });
        let due_ms = asked.and_then(|asked| asked.due_ms).expect("a deadline");
        prop_assert_eq!(log.len(), 1, "{:?}", log);
        prop_assert_eq!(calls, usize::from(approved.is_some()));
        prop_assert!(approved.is_none_or(|it| it.at_ms.is_some_and(|at_ms| at_ms < due_ms)));
        match fate {
            Fate::Counts => prop_assert_eq!(calls, 1),
            Fate::TooLate => prop_assert_eq!(calls, 0),
            Fate::Either => {}
        }
    }
}
