//! Runs with questions that are resumed, replayed and forked.

use super::*;
use crate::engine::{ForkStart, Resumption};
use crate::log::bus::Recording;
use crate::log::event::{BoundaryId, Initiator, Subject};
use crate::scenario::spec::InDoubt;

/// The first events of a log, as a store gives them back.
pub(super) fn stored(events: &[Arc<Event>]) -> Recording {
    let lines = events.iter().map(|event| {
        let line = event.to_line().expect("JSON");
        Arc::new(Event::from_line(&line).expect("an event"))
    });
    Recording::new(lines.collect::<Vec<_>>()).expect("a recording")
}

/// The events of a live run so far.
pub(super) async fn so_far(run: &RunHandle) -> Vec<Arc<Event>> {
    let mut events = Vec::new();
    run.bus().reader(crate::log::event::Seq(0)).next_batch(&mut events, 1_024).await;
    events
}

/// Answers each question of a run as it comes; the events in the end.
async fn approve_all(run: &RunHandle) -> Vec<Arc<Event>> {
    let mut reader = run.bus().reader(crate::log::event::Seq(0));
    let mut events = Vec::new();
    let mut seen = 0;
    while reader.next_batch(&mut events, 64).await > 0 {
        let open: Vec<_> =
            world(&events).questions.open().map(|open| Arc::clone(&open.asked)).collect();
        if run.wait_until_live().await.is_ok() {
            for asked in open {
                answer(run, &asked, approve());
            }
        }
        assert!(events.len() > seen);
        seen = events.len();
    }
    run.wait_until_finished().await;
    events
}

/// Wherever the log ends: nothing is asked twice, nothing runs without an approval that is in the log
/// before it, and a call whose attempt may have taken effect is not made again.
#[tokio::test(start_paused = true)]
async fn resumed_runs_ask_nothing_twice() {
    let scenario = desk("approve = true", "");
    let tool = Recorder::default();
    let run = engine().start(launch(&scenario, &tool, PeopleMode::Wait));
    let full = approve_all(&run).await;
    assert_eq!((stop_reason(&full).as_str(), tool.calls().len()), ("success", 1));
    let at =
        |name: &str| full.iter().position(|event| event.kind.name() == name).expect("an event");
    let attempt = full
        .iter()
        .position(|event| {
            matches!(event.kind, EventKind::AttemptStarted { parent, .. }
            if full[at("question.asked")].span == parent)
        })
        .expect("an attempt");
    for cut in 1..full.len() {
        let tool = Recorder::default();
        let resumption = Resumption {
            recording: stored(&full[..cut]),
            by: Initiator::You,
            in_doubt: InDoubt::Stop,
        };
        let run = engine()
            .resume(launch(&scenario, &tool, PeopleMode::Wait), resumption)
            .expect("a run that has not ended");
        run.wait_until_live().await.unwrap_or_else(|error| panic!("cut after {cut}: {error}"));
        let events = approve_all(&run).await;
        assert_eq!(kinds(&events, &["question.asked"]).len(), 1, "cut after {cut}");
        assert_eq!(kinds(&events, &["question.answered"]).len(), 1, "cut after {cut}");
        // The tool is not idempotent: an attempt that was in flight is in doubt.
        let in_doubt = cut > attempt && cut <= attempt + 1;
        assert_eq!(stop_reason(&events) == "in_doubt:refund", in_doubt, "cut after {cut}");
        let made = cut <= attempt;
        assert_eq!(tool.calls().len(), usize::from(made), "cut after {cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn open_question_is_open_after_resume() {
    let scenario = desk("approve = { timeout = \"10m\" }", "");
    let (run, _) = start(&scenario);
    let first = asked(&run, 1).await;
    let events = so_far(&run).await;
    run.send(Command::Cancel);
    let tool = Recorder::default();
    let resumption =
        Resumption { recording: stored(&events), by: Initiator::You, in_doubt: InDoubt::Stop };
    let run =
        engine().resume(launch(&scenario, &tool, PeopleMode::Wait), resumption).expect("a run");
    run.wait_until_live().await.expect("it continues");
    let again = asked(&run, 1).await;
    assert_eq!((again.id, &again.digest, again.due_ms), (first.id, &first.digest, first.due_ms));
    answer(&run, &again, approve());
    facts(&run).await;
    assert_eq!(tool.calls().len(), 1);
}

/// An answer that comes from another thread at any moment after the run is live. Many times, because the
/// moment that matters is short.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn answers_at_once_are_kept() {
    let scenario = desk("approve = true", "");
    let (run, _) = start(&scenario);
    asked(&run, 1).await;
    let events = so_far(&run).await;
    run.send(Command::Cancel);
    for _ in 0..300 {
        let (tool, by) = (Recorder::default(), Initiator::You);
        let resumption = Resumption { recording: stored(&events), by, in_doubt: InDoubt::Stop };
        let run =
            engine().resume(launch(&scenario, &tool, PeopleMode::Wait), resumption).expect("a run");
        let open = asked(&run, 1).await;
        run.wait_until_live().await.expect("it continues");
        answer(&run, &open, approve());
        let ended = until(&run, |kind| {
            matches!(kind, EventKind::RunClosed(_))
                || matches!(kind, EventKind::QuestionAsked(asked) if asked.id != open.id)
        });
        assert!(matches!(ended.await.kind, EventKind::RunClosed(_)), "it was asked again");
        assert_eq!(tool.calls().len(), 1);
    }
}

/// A deadline that has passed while no process played the run.
#[tokio::test(start_paused = true)]
async fn deadline_passes_in_downtime() {
    let scenario = desk("approve = { timeout = \"10m\" }", "");
    let (run, _) = start(&scenario);
    asked(&run, 1).await;
    let events = so_far(&run).await;
    run.send(Command::Cancel);
    let late = events.iter().map(|event| match &event.kind {
        EventKind::QuestionAsked(asked) => {
            let asked = QuestionAsked { due_ms: Some(1), ..QuestionAsked::clone(asked) };
            Arc::new(Event {
                kind: EventKind::QuestionAsked(Arc::new(asked)),
                ..Event::clone(event)
            })
        }
        _ => Arc::clone(event),
    });
    let late: Vec<_> = late.collect();
    let resumption =
        Resumption { recording: stored(&late), by: Initiator::You, in_doubt: InDoubt::Stop };
    let tool = Recorder::default();
    let run =
        engine().resume(launch(&scenario, &tool, PeopleMode::Wait), resumption).expect("a run");
    let events = facts(&run).await;
    assert_eq!(answers(&events)[0].by, AnsweredBy::Nobody);
    assert_eq!(tool.calls().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn replay_takes_recorded_decisions() {
    let scenario = desk("approve = true", "");
    let (run, _) = start(&scenario);
    answer(&run, &*asked(&run, 1).await, deny("Not today."));
    let full = facts(&run).await;
    let tool = Recorder::default();
    let people = PeopleMode::recorded(full.iter().map(|event| &**event));
    let again = facts(&engine().start(launch(&scenario, &tool, people))).await;
    assert_eq!(said(&again), said(&full));
    assert_eq!(answers(&again)[0].by, ann());
    // What was not asked in the recorded run is answered by nobody.
    let other = desk("approve = true\neffects = \"irreversible\"", "");
    let people = PeopleMode::recorded(full.iter().map(|event| &**event));
    let again = facts(&engine().start(launch(&other, &tool, people))).await;
    assert_eq!(answers(&again)[0].by, AnsweredBy::Nobody);
    assert_eq!(tool.calls().len(), 0);
}

/// A fork keeps the answers before its boundary, and asks after it.
#[tokio::test(start_paused = true)]
async fn forks_ask_after_their_boundary() {
    let scenario = desk("approve = true", "");
    let (run, _) = start(&scenario);
    answer(&run, &*asked(&run, 1).await, approve());
    let full = facts(&run).await;
    for (at, asks) in [("ask:1:boss/billing.1", 1), ("ask:2:boss/billing.1", 0)] {
        let tool = Recorder::default();
        let fork = ForkStart {
            recording: stored(&full),
            at: BoundaryId::new(at),
            flags: Vec::new(),
            by: Initiator::You,
            in_doubt: InDoubt::Stop,
        };
        let run = engine().fork(launch(&scenario, &tool, PeopleMode::Nobody), fork);
        run.wait_until_live().await.unwrap_or_else(|error| panic!("{at}: {error}"));
        let events = facts(&run).await;
        let by_nobody = answers(&events).iter().filter(|it| it.by == AnsweredBy::Nobody).count();
        assert_eq!((by_nobody, tool.calls().len()), (asks, 0), "{at}");
        assert_eq!(kinds(&events, &["question.asked"]).len(), 1, "{at}");
    }
}

/// An approval that is in the log, and a tool that is another one since: it is withdrawn and asked again.
#[tokio::test(start_paused = true)]
async fn changed_tool_withdraws_its_approval() {
    let scenario = desk("approve = true", "");
    let (run, _) = start(&scenario);
    answer(&run, &*asked(&run, 1).await, approve());
    let full = facts(&run).await;
    let answered =
        full.iter().position(|event| event.kind.name() == "question.answered").expect("an answer");
    let changed = desk("approve = true\neffects = \"irreversible\"", "");
    for (cut, withdrawn) in [(answered, "open"), (answered + 1, "answered")] {
        let tool = Recorder::default();
        let resumption = Resumption {
            recording: stored(&full[..cut]),
            by: Initiator::You,
            in_doubt: InDoubt::Stop,
        };
        let run =
            engine().resume(launch(&changed, &tool, PeopleMode::Wait), resumption).expect("a run");
        run.wait_until_live().await.unwrap_or_else(|error| panic!("{withdrawn}: {error}"));
        let again = asked(&run, 2).await;
        answer(&run, &again, approve());
        let events = facts(&run).await;
        assert_eq!(kinds(&events, &["question.withdrawn"]).len(), 1, "{withdrawn}");
        let folded = world(&events);
        let questions = &folded.questions;
        let tally = questions.tally;
        assert_eq!((tally.asked, tally.by_person, tally.withdrawn), (2, 1, 1), "{withdrawn}");
        assert_eq!(questions.approved.values().sum::<u64>(), 1, "{withdrawn}");
        assert_eq!(tool.calls().len(), 1, "{withdrawn}");
        // What was withdrawn stays withdrawn in a run that continues this one.
        let begins = events.iter().position(|event| event.kind.name() == "question.withdrawn");
        for cut in begins.expect("it was withdrawn") + 1..events.len() {
            let kind = events[cut - 1].kind.name();
            let recording = stored(&events[..cut]);
            let (by, in_doubt) = (Initiator::You, InDoubt::Retry);
            let resumption = Resumption { recording, by, in_doubt };
            let launch = launch(&changed, &Recorder::default(), PeopleMode::Wait);
            let run = engine().resume(launch, resumption).expect("a run");
            run.wait_until_live()
                .await
                .unwrap_or_else(|error| panic!("{withdrawn} {kind}: {error}"));
            answer(&run, &*asked(&run, 2).await, approve());
            let events = facts(&run).await;
            let tally = world(&events).questions.tally;
            assert_eq!((tally.asked, tally.withdrawn), (2, 1), "{withdrawn} {kind}");
        }
    }
}

/// A log that shows other arguments than those of the call was edited.
#[tokio::test(start_paused = true)]
async fn edited_question_is_asked_again() {
    let scenario = desk("approve = true", "");
    let (run, _) = start(&scenario);
    answer(&run, &*asked(&run, 1).await, approve());
    let edited = facts(&run).await.into_iter().map(|event| match &event.kind {
        EventKind::QuestionAsked(asked) => {
            let mut asked = QuestionAsked::clone(asked);
            if let Subject::ToolCall { args, .. } = &mut asked.subject {
                *args = Arc::new(json!({ "amount_usd": 1 }));
            }
            let kind = EventKind::QuestionAsked(Arc::new(asked));
            Arc::new(Event { kind, ..Event::clone(&event) })
        }
        _ => event,
    });
    let edited: Vec<_> = edited.collect();
    let question =
        edited.iter().position(|it| it.kind.name() == "question.asked").expect("a question");
    for cut in [question + 1, question + 2] {
        let tool = Recorder::default();
        let (recording, by, in_doubt) = (stored(&edited[..cut]), Initiator::You, InDoubt::Stop);
        let resumption = Resumption { recording, by, in_doubt };
        let run =
            engine().resume(launch(&scenario, &tool, PeopleMode::Wait), resumption).expect("a run");
        run.wait_until_live().await.expect("it continues");
        let again = asked(&run, 2).await;
        let Subject::ToolCall { args, .. } = &again.subject else { panic!("a call") };
        assert_eq!(**args, json!({ "amount_usd": 150 }));
        answer(&run, &again, deny(""));
        facts(&run).await;
        assert_eq!(tool.calls().len(), 0);
    }
}

/// An answer has no effect before it is stored: a crash could lose it, and it would be asked again.
#[tokio::test(start_paused = true)]
async fn answer_takes_effect_once_stored() {
    for given in [approve(), deny("no")] {
        let (run, tool) = start(&desk("approve = true", ""));
        let question = asked(&run, 1).await;
        let mark = run.bus().stored_mark();
        answer(&run, &question, given.clone());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let events = so_far(&run).await;
        assert_eq!(events.last().expect("an event").kind.name(), "question.answered");
        mark.abandon();
        facts(&run).await;
        assert_eq!(tool.calls().len(), usize::from(given == approve()));
    }
}

/// A call that was approved and queued, and whose tool has changed since, is not made.
#[tokio::test(start_paused = true)]
async fn changed_tool_ends_queued_call() {
    let two = |more: &str| {
        let tool = format!(
            "idempotent = true\nbulkhead = {{ max_in_flight = 1, max_wait_ms = 60000 }}\n{more}"
        );
        let text = approvals::TWO.replace("EFFECTS", &tool);
        read(&text.replace("members = [", "parallel_tools = true\nmembers = ["), &[])
    };
    let slow = Recorder { takes: Duration::from_secs(5), ..Recorder::default() };
    let run = engine().start(launch(&two(""), &slow, PeopleMode::Wait));
    for number in [1, 2] {
        answer(&run, &*asked(&run, number).await, approve());
    }
    until(&run, |kind| matches!(kind, EventKind::AttemptQueued { .. })).await;
    let recording = stored(&so_far(&run).await);
    run.send(Command::Cancel);
    let tool = Recorder::default();
    let resumption = Resumption { recording, by: Initiator::You, in_doubt: InDoubt::Stop };
    let changed = two("effects = \"irreversible\"");
    let run =
        engine().resume(launch(&changed, &tool, PeopleMode::Nobody), resumption).expect("a run");
    let events = facts(&run).await;
    // The attempt that was in flight is made again; the queued one and the later call are not made.
    assert_eq!(tool.calls().len(), 1);
    assert_eq!(kinds(&events, &["question.withdrawn"]).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn call_in_doubt_is_a_question() {
    let scenario = desk("approve = true", "");
    let run = engine().start(launch(&scenario, &Recorder::default(), PeopleMode::Wait));
    let full = approve_all(&run).await;
    let asked_at =
        full.iter().position(|event| event.kind.name() == "question.asked").expect("a question");
    let attempt = full
        .iter()
        .position(|event| {
            matches!(event.kind, EventKind::AttemptStarted { parent, .. }
            if full[asked_at].span == parent)
        })
        .expect("an attempt");
    for (given, calls, reason, reads) in [
        (choose("again"), 1, "success", r#"{"ok":true}"#),
        (choose("stop"), 0, "in_doubt:refund", ""),
        (
            Answer::Result { result: Arc::new(json!({ "ok": "by hand" })) },
            0,
            "success",
            r#"{"ok":"by hand"}"#,
        ),
    ] {
        let tool = Recorder::default();
        let resume = |events: &[Arc<Event>]| {
            let (recording, by, in_doubt) = (stored(events), Initiator::You, InDoubt::Ask);
            let resumption = Resumption { recording, by, in_doubt };
            engine().resume(launch(&scenario, &tool, PeopleMode::Wait), resumption).expect("a run")
        };
        // The process that asks is killed too: the same question is open again.
        let killed = resume(&full[..=attempt]);
        asked(&killed, 2).await;
        let events = so_far(&killed).await;
        killed.send(Command::Cancel);
        for recorded in [&full[..=attempt], &events] {
            let called = tool.calls().len();
            let run = resume(recorded);
            run.wait_until_live().await.expect("it continues");
            let question = asked(&run, 2).await;
            // Nobody makes a call again.
            let (digest, again) = (Arc::clone(&question.digest), choose("again"));
            let by_nobody = QuestionAnswered::new(question.id, digest, AnsweredBy::Nobody, again);
            run.send(Command::Answer(Box::new(by_nobody)));
            answer(&run, &question, given.clone());
            let events = facts(&run).await;
            assert_eq!(kinds(&events, &["question.asked"]).len(), 2);
            assert_eq!(
                (tool.calls().len() - called, stop_reason(&events).as_str()),
                (calls, reason)
            );
            if reason == "success" {
                assert_eq!(said(&events), reads);
            }
        }
    }
}

/// A log that says that nobody approved a call was edited: the call is not made, resumed or replayed.
#[tokio::test(start_paused = true)]
async fn nobody_approves_in_edited_logs() {
    let scenario = desk("approve = true", "");
    let (run, _) = start(&scenario);
    answer(&run, &*asked(&run, 1).await, approve());
    let edited: Vec<_> = facts(&run)
        .await
        .iter()
        .map(|event| match &event.kind {
            EventKind::QuestionAnswered(answered) => {
                let by = AnsweredBy::Nobody;
                let answered = QuestionAnswered { by, ..QuestionAnswered::clone(answered) };
                let kind = EventKind::QuestionAnswered(Arc::new(answered));
                Arc::new(Event { kind, ..Event::clone(event) })
            }
            _ => Arc::clone(event),
        })
        .collect();
    let tool = Recorder::default();
    let people = PeopleMode::recorded(edited.iter().map(|event| &**event));
    let again = facts(&engine().start(launch(&scenario, &tool, people))).await;
    assert_eq!(answers(&again)[0].answer, deny(""));
    let answered = edited.iter().position(|event| event.kind.name() == "question.answered");
    let recording = stored(&edited[..=answered.expect("an answer")]);
    let resumption = Resumption { recording, by: Initiator::You, in_doubt: InDoubt::Stop };
    let run =
        engine().resume(launch(&scenario, &tool, PeopleMode::Wait), resumption).expect("a run");
    assert!(run.wait_until_live().await.is_err(), "the log is not that of a run");
    assert_eq!(tool.calls().len(), 0);
}
