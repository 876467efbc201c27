//! Questions to people: approvals of tool calls, and the other things that ask. For each known fault of
//! public implementations there is a test: executed something else than what was approved, executed
//! twice after a restart, a stale answer, an approval that held for others, a timeout recorded as a
//! person's no, a question that reached nobody.

mod approvals;
mod asking;
mod continued;
mod deadlines;
mod rules;
mod servers;
mod waiting;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::engine::{Launch, RunHandle, Toolbox};
use crate::gateway::{Tool, ToolRequest};
use crate::log::event::{
    Answer, AnsweredBy, AttemptFailed, Command, Event, EventKind, FailureClass, QuestionAnswered,
    QuestionAsked, QuestionId, World,
};
use crate::run::questions::PeopleMode;
use crate::scenario::Scenario;
use crate::support::table::{engine, facts, read, until};
use crate::words::glyph::Glyph;
use crate::words::headless;

/// A team of one agent that calls `refund`, and says what it got.
const DESK: &str = r#"
title = "A desk"
pattern = "team"
goal = "Refund me."
[budget]
max_seconds = 60
[team]
root = "boss"
[people.manager]
description = "Decides about exceptions."
[agents.boss]
description = "The coordinator."
members = ["billing"]
[agents.billing]
description = "Refunds."
tools = ["refund"]
people = ["manager"]
[tools.refund]
description = "Refunds a charge."
args = { amount_usd = { type = "number" } }
APPROVE
fixture = { rows = [{ result = { ok = true } }] }
[[script]]
agent = "boss"
round = 1
calls = [{ tool = "billing", args = { request = "Refund." } }]
[[script]]
agent = "boss"
text = "Done."
[[script]]
agent = "billing"
round = 1
text = "Charged twice."
calls = [{ tool = "refund", args = { amount_usd = 150 } }]
[[script]]
agent = "billing"
text = "{{results.0.text}}"
"#;

/// The desk with this setting of its tool.
fn desk(approve: &str, more: &str) -> Arc<Scenario> {
    read(&format!("{}{more}", DESK.replace("APPROVE", approve)), &[])
}

/// A tool that records its arguments; its first calls fail.
#[derive(Clone, Default)]
struct Recorder {
    called: Arc<Mutex<Vec<Map<String, Value>>>>,
    fails: usize,
    takes: Duration,
}

impl Recorder {
    fn calls(&self) -> Vec<Value> {
        let called = self.called.lock().expect("no panic");
        called.iter().cloned().map(Value::Object).collect()
    }
}

impl Tool for Recorder {
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        let mut called = self.called.lock().expect("no panic");
        called.push(request.args.clone());
        let fails = called.len() <= self.fails;
        Box::pin(async move {
            if !self.takes.is_zero() {
                tokio::time::sleep(self.takes).await;
            }
            match fails {
                true => Err(AttemptFailed::new(FailureClass::Timeout, "no reply".to_owned())),
                false => Ok(Arc::new(json!({ "ok": true }))),
            }
        })
    }
}

/// The launch of a run whose `refund` is recorded.
fn launch(scenario: &Arc<Scenario>, tool: &Recorder, people: PeopleMode) -> Launch {
    let mut tools = Toolbox::offline(scenario, true);
    tools.replace("refund", Box::new(tool.clone()));
    Launch { tools: Some(tools), people, ..Launch::scripted(Arc::clone(scenario), true) }
}

/// A run that people answer, and the calls of its tool.
fn start(scenario: &Arc<Scenario>) -> (RunHandle, Recorder) {
    let tool = Recorder::default();
    (engine().start(launch(scenario, &tool, PeopleMode::Wait)), tool)
}

/// The question with this number, once it is asked.
async fn asked(run: &RunHandle, number: u32) -> Arc<QuestionAsked> {
    let id = QuestionId(number);
    let is_it = |kind: &EventKind| matches!(kind, EventKind::QuestionAsked(it) if it.id == id);
    match &until(run, is_it).await.kind {
        EventKind::QuestionAsked(asked) => Arc::clone(asked),
        other => panic!("{other:?}"),
    }
}

fn ann() -> AnsweredBy {
    AnsweredBy::Person { name: "ann".into(), host: "laptop".into() }
}

/// Sends an answer to a question.
fn answer(run: &RunHandle, asked: &QuestionAsked, answer: Answer) {
    let (id, digest) = (asked.id, Arc::clone(&asked.digest));
    run.send(Command::Answer(Box::new(QuestionAnswered::new(id, digest, ann(), answer))));
}

fn approve() -> Answer {
    Answer::Approve { args: None }
}

fn deny(text: &str) -> Answer {
    Answer::Deny { text: text.into() }
}

fn choose(choice: &str) -> Answer {
    Answer::Choose { choice: choice.into(), text: Arc::default() }
}

/// The kinds of the events, those that are named only.
fn kinds<'e>(events: &'e [Arc<Event>], named: &[&str]) -> Vec<&'e str> {
    let kinds = events.iter().map(|event| event.kind.name());
    kinds.filter(|kind| named.iter().any(|start| kind.starts_with(start))).collect()
}

/// The answers of a log, each with who gave it.
fn answers(events: &[Arc<Event>]) -> Vec<Arc<QuestionAnswered>> {
    let answers = events.iter().filter_map(|event| match &event.kind {
        EventKind::QuestionAnswered(answered) => Some(Arc::clone(answered)),
        _ => None,
    });
    answers.collect()
}

fn world(events: &[Arc<Event>]) -> World {
    World::from_events(events.iter().map(|event| &**event))
}

/// The stop reason of a run that has ended.
fn stop_reason(events: &[Arc<Event>]) -> String {
    world(events).outcome().expect("an outcome").stop_reason.to_string()
}

/// What the agent said at last: the result of its call.
fn said(events: &[Arc<Event>]) -> String {
    let replies = events.iter().filter_map(|event| match &event.kind {
        EventKind::AttemptAnswered(reply) if reply.finish.is_some() => Some(reply.text.to_string()),
        _ => None,
    });
    let replies: Vec<String> = replies.collect();
    replies.iter().rev().nth(1).cloned().unwrap_or_default()
}

/// What headless text says of a run.
fn headless_text(events: &[Arc<Event>]) -> Vec<String> {
    let mut world = World::new();
    let mut text = Vec::new();
    for event in events {
        world.apply(event);
        for line in headless::lines(event, &world) {
            let parts = line.parts.iter().map(|part| match part.glyph {
                Some(Glyph::Done) => format!("DONE {}", part.text),
                _ => part.text.to_string(),
            });
            text.push(parts.collect::<String>());
        }
    }
    text
}
