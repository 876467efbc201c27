//! Every shipped scenario, cut after every event.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{faults, resume, scenario, stored};
use crate::engine::{Engine, EngineSettings, Launch, ModelChoice, ResumeError, Resumption};
use crate::log::bus::{LogLimits, Recording, RecordingError, ReplayError};
use crate::log::event::{
    ChatMessage, Elapsed, Event, EventKind, Initiator, MessageRole, Purpose, Reply, Seq, SpanId,
};
use crate::model::ChatModel;
use crate::scenario::shipped;
use crate::scenario::spec::InDoubt;
use crate::scenario::spec::script::ReplyEnd;
use crate::support::table::{engine, facts, memory, read};

/// Continues a scenario after each of its first events that `cuts` picks; returns the faults.
async fn continue_after(
    name: &str,
    instant: bool,
    cuts: impl Fn(usize, usize) -> bool,
) -> Vec<String> {
    let launch = || Launch::scripted(scenario(name), instant);
    let full = facts(&engine().start(launch())).await;
    let mut wrong = Vec::new();
    for cut in (1..full.len()).filter(|cut| cuts(*cut, full.len())) {
        let found = match resume(launch(), stored(&full[..cut])).await {
            Ok(continued) => faults(&full, cut, &continued),
            Err(divergence) => vec![divergence.to_string()],
        };
        let place = format!("{name}, instant {instant}, cut after {cut} of {}", full.len());
        wrong.extend(found.into_iter().map(|fault| format!("{place}: {fault}")));
    }
    wrong
}

async fn continue_all(cuts: impl Fn(usize, usize) -> bool) {
    let mut wrong = Vec::new();
    for shipped in shipped() {
        for instant in [false, true] {
            wrong.extend(continue_after(shipped.name, instant, &cuts).await);
        }
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn every_scenario_resumes_from_cut_log() {
    continue_all(|cut, len| cut % (len / 6).max(1) == 1 || cut + 1 == len).await;
}

/// Each place of each scenario, in a log of thousands of events some hundred places:
/// `cargo test --lib replay -- --ignored`.
#[tokio::test(start_paused = true)]
#[ignore = "takes minutes"]
async fn every_scenario_resumes_after_each_event() {
    continue_all(|cut, len| len < 1_000 || cut % (len / 200) == 1).await;
}

/// A headless run drops the events that were read, and waits for a reader that is too far behind. A resumed
/// run can begin with more events than that.
#[tokio::test(start_paused = true)]
async fn resumes_log_larger_than_limits() {
    let launch = || Launch::scripted(scenario("checkout-launch"), true);
    let full = facts(&engine().start(launch())).await;
    let cut = full.len() - 1;
    let log = LogLimits { window: 0, ahead: 1 };
    let engine = Engine::new(EngineSettings { log, ..EngineSettings::default() });
    let recording = stored(&full[..cut]);
    let resumption = Resumption { recording, by: Initiator::You, in_doubt: InDoubt::Retry };
    let run = engine.resume(launch(), resumption).expect("a run that has not ended");
    let (mut reader, mut continued) = (run.first_reader(), Vec::new());
    let read = async { while reader.next_batch(&mut continued, 8).await > 0 {} };
    tokio::time::timeout(Duration::from_secs(3600), read).await.expect("an end");
    assert_eq!(faults(&full, cut, &continued), Vec::<String>::new());
}

/// A run does not go on from a log that it would not have written.
#[tokio::test(start_paused = true)]
async fn changed_prompt_is_reported() {
    let launch = || Launch::scripted(scenario("checkout-launch"), false);
    let full = facts(&engine().start(launch())).await;
    let second_round = |event: &&Arc<Event>| {
        matches!(&event.kind, EventKind::CallStarted(call)
        if matches!(call.purpose, Purpose::Contribution { round: 2, .. }))
    };
    let expected = full.iter().find(second_round).expect("a second round").seq;
    let events: Vec<Arc<Event>> = full[..full.len() - 1]
        .iter()
        .map(|event| match &event.kind {
            EventKind::CallStarted(call) if event.seq == expected => {
                let mut call = call.clone();
                call.prompt.messages = [ChatMessage::new(MessageRole::User, "other")].into();
                Arc::new(Event { kind: EventKind::CallStarted(call), ..(**event).clone() })
            }
            _ => Arc::clone(event),
        })
        .collect();
    let resumption =
        Resumption { recording: stored(&events), by: Initiator::You, in_doubt: InDoubt::Stop };
    let run = engine().resume(launch(), resumption).expect("a run without its end");
    let Err(ReplayError::Diverged(divergence)) = run.wait_until_live().await else {
        panic!("another prompt");
    };
    assert_eq!(divergence.seq, expected);
    assert!(divergence.executed.ends_with("with another prompt"), "{divergence}");
    assert_eq!(facts(&run).await, events, "nothing was appended");
}

#[tokio::test(start_paused = true)]
async fn ended_or_open_run_cannot_resume() {
    let engine = engine();
    let run = engine.start(Launch::scripted(scenario("checkout-launch"), true));
    let full = facts(&run).await;
    let resume = |events| {
        let resumption =
            Resumption { recording: stored(events), by: Initiator::You, in_doubt: InDoubt::Stop };
        engine.resume(Launch::scripted(scenario("checkout-launch"), true), resumption).err()
    };
    assert_eq!(resume(&full), Some(ResumeError::Ended));
    // One that has ended here may have been continued elsewhere since.
    assert_eq!(resume(&full[..9]), None);
    let open = engine.start(Launch::scripted(scenario("checkout-launch"), false));
    let mut events = Vec::new();
    open.bus().reader(Seq(0)).next_batch(&mut events, 9).await;
    assert_eq!(resume(&events), Some(ResumeError::Present(open.id().clone())));
}

#[tokio::test(start_paused = true)]
async fn rejects_invalid_recording() {
    let run = engine().start(Launch::scripted(scenario("checkout-launch"), true));
    let first = Arc::clone(&facts(&run).await[0]);
    let event = |seq: u64, span: u32, kind: EventKind| {
        Arc::new(Event { seq: Seq(seq), at: Elapsed(seq), span: SpanId(span), kind })
    };
    let head = || first.kind.clone();
    let queued = || EventKind::CallQueued;
    let of = |events: Vec<Arc<Event>>| Recording::new(events).err();
    assert_eq!(of(Vec::new()), Some(RecordingError::NoHead));
    assert_eq!(of(vec![event(0, 0, queued())]), Some(RecordingError::NoHead));
    assert_eq!(of(vec![event(0, 0, head()), event(1, 0, queued())]), None);
    let gap = Some(RecordingError::Gap(Seq(2)));
    assert_eq!(of(vec![event(0, 0, head()), event(2, 0, queued())]), gap);
    let foreign = Some(RecordingError::Span(Seq(1)));
    assert_eq!(of(vec![event(0, 0, head()), event(1, 7, queued())]), foreign);
}

/// A member's reply that is cut, one that fails once, and an answer that is cut.
const CUT: &str = r#"
title = "A team"
pattern = "team"
goal = "How many?"
[team]
root = "lead"
[agents.lead]
description = "Leads"
instruction = "You lead."
members = ["writer"]
[agents.writer]
description = "Writes"
instruction = "You write."
[tools.llm]
retries = { max_attempts = 2, backoff_ms = [1], jitter = false }
[[script]]
agent = "lead"
round = 1
calls = [{ tool = "writer", args = { request = "Write." } }]
[[script]]
agent = "writer"
attempt = 1
text = "We h"
end = "failed"
[[script]]
agent = "writer"
text = "We have"
end = "length"
[[script]]
agent = "lead"
text = "Seven, I th"
end = "filtered"
"#;

async fn resumes_after_each_event(launch: impl Fn() -> Launch, full: &[Arc<Event>]) {
    for cut in 1..full.len() {
        let continued = resume(launch(), stored(&full[..cut])).await.expect("the same run");
        assert_eq!(faults(full, cut, &continued), Vec::<String>::new(), "after {cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_keeps_the_ends() {
    let launch = || Launch::scripted(read(CUT, &[]), true);
    let full = facts(&engine().start(launch())).await;
    let ended = super::outcome(&full);
    assert_eq!(
        ended["cut"],
        json!([
            { "who": "lead", "end": "filtered" },
            { "who": "writer", "end": "length" },
        ])
    );
    resumes_after_each_event(launch, &full).await;
}

/// A model that pauses three times before it has said everything.
fn pausing() -> Arc<dyn ChatModel> {
    memory(|request| {
        let said = request.messages.iter().filter(|it| it.role == MessageRole::Assistant).count();
        let end = if said < 3 { ReplyEnd::Paused } else { ReplyEnd::Stop };
        Ok(Reply { end, ..Reply::from_agent_text(format!("{said} ").into()) })
    })
}

#[tokio::test(start_paused = true)]
async fn resumed_run_continues_after_pauses() {
    let launch = || {
        let model = ModelChoice::Live(pausing().into(), Duration::from_secs(20));
        Launch { model, ..Launch::scripted(read(CUT, &[]), true) }
    };
    let full = facts(&engine().start(launch())).await;
    let ended = super::outcome(&full);
    assert_eq!((&ended["answer"], &ended["degraded"]), (&json!("0 1 2 3"), &json!(false)));
    resumes_after_each_event(launch, &full).await;
}
