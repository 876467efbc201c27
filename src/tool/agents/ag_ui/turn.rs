//! One turn of an agent: what the events of its runs add up to. A turn has several runs if the agent asks
//! people.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::events::{
    AgentEvent, CallEvent, ErrorEvent, FinishedEvent, InterruptEvent, ResultEvent, SnapshotEvent,
    Spent, SubagentEvent, TextEvent, content_text,
};
use super::messages::{REPLY_KEY, assistant_message, made_id, tool_message};
use crate::base::visible::first_bytes;
use crate::log::event::{AgentStep, Reply, StepState};
use crate::model::host::AttemptProgress;
use crate::model::{ChatRequest, Listener};
use crate::net::Redactor;
use crate::net::redact::StreamRedactor;
use crate::scenario::spec::tool::ToolCall;
use crate::tool::redact_json;

/// Most messages, calls and subagents of a turn, each.
const MAX_PARTS: usize = 10_000;
/// Bytes that are kept of the results of the agent's own calls.
const RESULT_BYTES: usize = 256 << 10;
/// Bytes that are kept of what a subagent says.
const SUBAGENT_BYTES: usize = 4 << 10;
/// Most bytes of the agent's messages in the log of a run.
const LOGGED_BYTES: usize = 512 << 10;
/// Most types of unknown events that are counted.
const MAX_UNKNOWN: usize = 20;

/// Where a blank line joins two messages.
const BETWEEN: &str = "\n\n";

/// How a run of the agent ended.
pub(super) enum RunEnd {
    Finished(FinishedEvent),
    Failed(ErrorEvent),
}

/// The turn has more text than its limit.
#[derive(Debug)]
pub(super) struct TurnTooLarge;

/// What an agent has said and done in a turn.
pub(super) struct AgentTurn<'a> {
    listener: &'a dyn Listener,
    redactor: &'a Redactor,
    /// Names of the tools that this program offers.
    offered: BTreeSet<Arc<str>>,
    /// Most bytes of its texts and arguments.
    cap: usize,
    bytes: usize,
    result_bytes: usize,
    parts: Vec<TurnPart>,
    texts: BTreeMap<String, usize>,
    open_text: Option<String>,
    calls: BTreeMap<String, AgentCall>,
    /// The ids of the calls in their order.
    call_order: Vec<String>,
    /// The call that a chunk without an id continues.
    open_chunk: Option<String>,
    subagents: BTreeMap<String, Subagent>,
    snapshot: Option<Snapshot>,
    /// The text in the order in which it arrives, and the part whose text was the last.
    live: String,
    live_part: Option<usize>,
    said: StreamRedactor,
    interrupts: Vec<InterruptEvent>,
    /// The answer of an agent that sends no message.
    result: String,
    spent: Spent,
    unknown: BTreeMap<String, u32>,
}

/// A message that the agent made.
enum TurnPart {
    Text {
        id: String,
        text: String,
        /// The calls in the message.
        calls: Vec<String>,
        /// Whether it is a part of the reply: a message of the agent itself.
        is_reply: bool,
    },
    Result {
        id: String,
        call: String,
        content: String,
    },
}

/// A call of a tool.
#[derive(Default)]
struct AgentCall {
    name: String,
    arguments: String,
    /// Whether a step says that it has started.
    is_shown: bool,
    has_result: bool,
    /// A subagent makes it.
    by_subagent: bool,
}

#[derive(Default)]
struct Subagent {
    name: String,
    said: String,
}

/// The messages after the user's last one, and how many parts there were when they were sent.
struct Snapshot {
    messages: Vec<Value>,
    parts: usize,
}

impl<'a> AgentTurn<'a> {
    pub(super) fn new(
        request: &ChatRequest,
        listener: &'a dyn Listener,
        redactor: &'a Redactor,
        cap: usize,
    ) -> Self {
        Self {
            listener,
            redactor,
            offered: request.tools.iter().map(|offer| Arc::clone(&offer.name)).collect(),
            cap,
            bytes: 0,
            result_bytes: 0,
            parts: Vec::new(),
            texts: BTreeMap::new(),
            open_text: None,
            calls: BTreeMap::new(),
            call_order: Vec::new(),
            open_chunk: None,
            subagents: BTreeMap::new(),
            snapshot: None,
            live: String::new(),
            live_part: None,
            said: StreamRedactor::default(),
            interrupts: Vec::new(),
            result: String::new(),
            spent: Spent::default(),
            unknown: BTreeMap::new(),
        }
    }

    /// Adds an event. `Some`: the run has ended.
    pub(super) fn add(&mut self, event: AgentEvent) -> Result<Option<RunEnd>, TurnTooLarge> {
        self.listener.host().alive();
        let keeps_chunk_open = matches!(
            event,
            AgentEvent::CallChunk(_)
                | AgentEvent::Step(_)
                | AgentEvent::Alive
                | AgentEvent::Unknown(_)
        );
        if !keeps_chunk_open && let Some(open) = self.open_chunk.take() {
            self.show_call(&open);
        }
        match event {
            AgentEvent::Text(event) => self.add_text(event)?,
            AgentEvent::Call(event) => drop(self.add_call(event)?),
            AgentEvent::CallChunk(event) => {
                let open = self.open_chunk.take();
                let id = event.tool_call_id.clone().or_else(|| open.clone());
                if let Some(before) = open.filter(|open| Some(open) != id.as_ref()) {
                    self.show_call(&before);
                }
                self.open_chunk = self.add_call(CallEvent { tool_call_id: id, ..event })?;
            }
            AgentEvent::CallEnd(event) => {
                self.show_call(&event.tool_call_id.unwrap_or_default());
            }
            AgentEvent::Result(event) => self.add_result(event)?,
            AgentEvent::Step(event) => {
                let text = self.redactor.redact_known(&event.step_name).into_owned();
                self.listener.host().progress(AttemptProgress { text, done: 0.0, total: None });
            }
            AgentEvent::SubagentStarted(event) => self.start_subagent(event)?,
            AgentEvent::SubagentFinished(event) => self.end_subagent(&event, StepState::Done),
            AgentEvent::SubagentFailed(event) => self.end_subagent(&event, StepState::Failed),
            AgentEvent::Snapshot(event) => self.take_snapshot(event),
            AgentEvent::Interrupt(event) => {
                check(self.interrupts.len())?;
                self.interrupts.push(event);
            }
            AgentEvent::Finished(event) => {
                self.spent.add(event.spent());
                self.result = event.result.as_ref().map(content_text).unwrap_or_default();
                self.count(self.result.len())?;
                return Ok(Some(RunEnd::Finished(event)));
            }
            AgentEvent::Failed(event) => {
                self.spent.add(event.spent());
                return Ok(Some(RunEnd::Failed(event)));
            }
            AgentEvent::Alive => {}
            AgentEvent::Unknown(kind) => {
                if self.unknown.len() < MAX_UNKNOWN || self.unknown.contains_key(&kind) {
                    *self.unknown.entry(kind).or_default() += 1;
                }
            }
        }
        Ok(None)
    }

    fn count(&mut self, bytes: usize) -> Result<(), TurnTooLarge> {
        self.bytes += bytes;
        if self.bytes > self.cap { Err(TurnTooLarge) } else { Ok(()) }
    }

    fn add_text(&mut self, event: TextEvent) -> Result<(), TurnTooLarge> {
        let TextEvent { message_id, role, delta, subagent_run_id } = event;
        let delta = delta.unwrap_or_default();
        if let Some(by) = subagent_run_id.and_then(|id| self.subagents.get_mut(&id)) {
            let room = SUBAGENT_BYTES.saturating_sub(by.said.len());
            by.said.push_str(first_bytes(&delta, room));
            return Ok(());
        }
        self.count(delta.len())?;
        let id = message_id.or_else(|| self.open_text.clone());
        let id = id.unwrap_or_else(|| made_id(&format!("text {}", self.parts.len())));
        let part = match self.texts.get(&id) {
            Some(part) => *part,
            None => self.begin_text(&id, role.is_none_or(|role| role == "assistant"))?,
        };
        self.open_text = Some(id);
        let Some(TurnPart::Text { text, is_reply, .. }) = self.parts.get_mut(part) else {
            return Ok(());
        };
        text.push_str(&delta);
        if *is_reply && !delta.is_empty() {
            if !self.live.is_empty() && self.live_part != Some(part) {
                self.live.push_str(BETWEEN);
            }
            self.live_part = Some(part);
            self.live.push_str(&delta);
            if let Some(new) = self.said.next(self.redactor, &self.live) {
                self.listener.piece(&new);
            }
        }
        Ok(())
    }

    fn begin_text(&mut self, id: &str, is_reply: bool) -> Result<usize, TurnTooLarge> {
        check(self.parts.len())?;
        let (text, calls) = (String::new(), Vec::new());
        self.parts.push(TurnPart::Text { id: id.to_owned(), text, calls, is_reply });
        let part = self.parts.len() - 1;
        self.texts.insert(id.to_owned(), part);
        Ok(part)
    }

    /// Adds to a call, and returns its id.
    fn add_call(&mut self, event: CallEvent) -> Result<Option<String>, TurnTooLarge> {
        let CallEvent { tool_call_id, tool_call_name, parent_message_id, delta, subagent_run_id } =
            event;
        let Some(id) = tool_call_id else { return Ok(None) };
        let (name, delta) = (tool_call_name.unwrap_or_default(), delta.unwrap_or_default());
        self.count(name.len() + delta.len())?;
        if !self.calls.contains_key(&id) {
            check(self.calls.len())?;
            let by_subagent = subagent_run_id.is_some();
            self.calls.insert(id.clone(), AgentCall { by_subagent, ..AgentCall::default() });
            self.call_order.push(id.clone());
            if !by_subagent {
                self.attach_call(&id, parent_message_id)?;
            }
        }
        if let Some(call) = self.calls.get_mut(&id) {
            if call.name.is_empty() {
                call.name = name;
            }
            call.arguments.push_str(&delta);
        }
        Ok(Some(id))
    }

    /// Adds a call to the message that makes it: the parent, else the last message.
    fn attach_call(&mut self, id: &str, parent: Option<String>) -> Result<(), TurnTooLarge> {
        let last = self.parts.len().checked_sub(1);
        let is_text = |part: &usize| matches!(self.parts.get(*part), Some(TurnPart::Text { .. }));
        let part = match &parent {
            Some(parent) => self.texts.get(parent).copied(),
            None => last.filter(is_text),
        };
        let part = match part {
            Some(part) => part,
            None => self.begin_text(&parent.unwrap_or_else(|| id.to_owned()), true)?,
        };
        if let Some(TurnPart::Text { calls, .. }) = self.parts.get_mut(part) {
            calls.push(id.to_owned());
        }
        Ok(())
    }

    /// The arguments of a call are complete. A call of an offered tool is shown only if it gets a result
    /// from the agent: this program makes the others.
    fn show_call(&mut self, id: &str) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let is_ours = self.offered.contains(&*call.name) && !call.has_result;
        if is_ours || std::mem::replace(&mut call.is_shown, true) {
            return;
        }
        let (title, text) = (call.name.clone(), call.arguments.clone());
        self.step(id, &title, StepState::Started, &text);
    }

    fn add_result(&mut self, event: ResultEvent) -> Result<(), TurnTooLarge> {
        let ResultEvent { message_id, tool_call_id: id, content, subagent_run_id } = event;
        let content = content_text(&content);
        let call = self.calls.entry(id.clone()).or_default();
        if std::mem::replace(&mut call.has_result, true) {
            return Ok(());
        }
        let (title, by_subagent) = (call.name.clone(), call.by_subagent);
        check(self.parts.len().max(self.calls.len()))?;
        self.show_call(&id);
        self.step(&id, &title, StepState::Done, &content);
        if by_subagent || subagent_run_id.is_some() {
            return Ok(());
        }
        let room = RESULT_BYTES.saturating_sub(self.result_bytes);
        let content = first_bytes(&content, room).to_owned();
        self.result_bytes += content.len();
        let made = || made_id(&format!("result {id}"));
        let message = message_id.unwrap_or_else(made);
        self.parts.push(TurnPart::Result { id: message, call: id, content });
        Ok(())
    }

    fn start_subagent(&mut self, event: SubagentEvent) -> Result<(), TurnTooLarge> {
        check(self.subagents.len())?;
        let SubagentEvent { subagent_run_id: id, name, description, .. } = event;
        self.step(&id, &name, StepState::Started, &description.unwrap_or_default());
        self.subagents.insert(id, Subagent { name, said: String::new() });
        Ok(())
    }

    fn end_subagent(&mut self, event: &SubagentEvent, state: StepState) {
        // One that waits for a person starts again.
        if event.outcome.as_ref().is_some_and(|outcome| outcome.kind == "suspended") {
            return;
        }
        let known = self.subagents.get(&event.subagent_run_id);
        let name = known.map_or(event.name.clone(), |known| known.name.clone());
        let said = known.map(|known| known.said.clone()).filter(|said| !said.trim().is_empty());
        let result = event.result.as_ref().map(content_text);
        let text = event.description.clone().or(said).or(result).unwrap_or_default();
        self.step(&event.subagent_run_id, &name, state, &text);
    }

    fn step(&self, id: &str, title: &str, state: StepState, text: &str) {
        let clean = |text: &str| Arc::from(self.redactor.redact_known(text));
        let (id, title, text) = (clean(id), clean(title), clean(text));
        self.listener.host().step(AgentStep { id, title, state, text, carried_out: false });
    }

    fn take_snapshot(&mut self, event: SnapshotEvent) {
        let mut messages = event.messages;
        let is_user = |message: &Value| role_of(message) == Some("user");
        if let Some(last) = messages.iter().rposition(is_user) {
            messages.drain(..=last);
            self.snapshot = Some(Snapshot { messages, parts: self.parts.len() });
        }
    }

    /// What LangGraph waits for, since the last call of this.
    pub(super) fn take_interrupts(&mut self) -> Vec<InterruptEvent> {
        std::mem::take(&mut self.interrupts)
    }

    /// A call as a person reads it: its name and its arguments.
    pub(super) fn call_text(&self, id: &str) -> Option<(&str, &str)> {
        let call = self.calls.get(id)?;
        Some((&call.name, &call.arguments))
    }

    /// The next run of the turn begins.
    pub(super) fn begin_run(&mut self) {
        self.open_text = None;
        self.open_chunk = None;
    }

    /// The messages that the agent made so far, as a client sends them back.
    pub(super) fn messages(&self) -> Vec<Value> {
        let (mut messages, from) = match &self.snapshot {
            Some(Snapshot { messages, parts }) => (messages.clone(), *parts),
            None => (Vec::new(), 0),
        };
        messages.extend(self.parts.iter().skip(from).filter_map(|part| self.message(part)));
        messages
    }

    fn message(&self, part: &TurnPart) -> Option<Value> {
        match part {
            TurnPart::Text { is_reply: false, .. } => None,
            TurnPart::Text { text, calls, .. } if text.is_empty() && calls.is_empty() => None,
            TurnPart::Text { id, text, calls, .. } => {
                let calls = calls.iter().filter_map(|id| self.tool_call(id));
                Some(assistant_message(id, text, &calls.collect::<Vec<_>>()))
            }
            TurnPart::Result { id, call, content } => Some(tool_message(id, call, content)),
        }
    }

    fn tool_call(&self, id: &str) -> Option<ToolCall> {
        let call = self.calls.get(id)?;
        let arguments = if call.arguments.is_empty() { "{}" } else { &*call.arguments };
        Some(ToolCall {
            id: id.into(),
            name: call.name.as_str().into(),
            arguments: arguments.into(),
        })
    }

    /// The text of the reply so far.
    pub(super) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            TurnPart::Text { text, is_reply: true, .. } => Some(text.trim()),
            _ => None,
        });
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        if !texts.is_empty() {
            return texts.join(BETWEEN);
        }
        let sent = self.snapshot.iter().flat_map(|snapshot| snapshot.messages.iter().rev());
        let mut texts = sent
            .filter(|message| role_of(message) == Some("assistant"))
            .filter(|message| message.get("subagentRunId").is_none_or(Value::is_null))
            .map(|message| content_text(message.get("content").unwrap_or(&Value::Null)));
        let sent = texts.find(|text| !text.trim().is_empty());
        sent.unwrap_or_else(|| self.result.trim().to_owned())
    }

    /// The text so far for a failure, its secrets redacted.
    pub(super) fn partial(&self) -> Option<Arc<str>> {
        let text = self.text();
        (!text.is_empty()).then(|| self.redactor.redact_known(&text).into())
    }

    /// What the agent says that it has used so far.
    pub(super) fn spent(&self) -> &Spent {
        &self.spent
    }

    /// The reply, after the last run. `agent` and `thread` let the next request continue.
    pub(super) fn reply(mut self, agent: &str, thread: &str) -> Reply {
        if let Some(open) = self.open_chunk.take() {
            self.show_call(&open);
        }
        let pending = self.call_order.iter().filter_map(|id| {
            let call = self.calls.get(id)?;
            let is_ours = self.offered.contains(&*call.name);
            let call = (is_ours && !call.has_result).then(|| self.tool_call(id))??;
            let arguments = self.redactor.redact_whole(&call.arguments).into();
            Some(ToolCall { arguments, ..call })
        });
        let tool_calls: Arc<[ToolCall]> = pending.collect();
        let text: Arc<str> = self.redactor.redact_whole(&self.text()).into();
        let unknown = self.unknown.iter().map(|(kind, count)| format!("{kind} ({count})"));
        let unknown = unknown.collect::<Vec<_>>().join(", ");
        let mut blocks = json!({ "agent": agent, "thread": thread });
        let messages = redact_json(Value::Array(self.messages()), self.redactor);
        if messages.to_string().len() <= LOGGED_BYTES {
            blocks["messages"] = messages;
        }
        Reply {
            tool_calls,
            usage: self.spent.usage,
            cost_usd: self.spent.cost_usd,
            model: self.spent.model.as_deref().map(|model| self.redactor.redact(model).into()),
            blocks: Some(Arc::new(json!({ REPLY_KEY: blocks }))),
            ignored: (!unknown.is_empty()).then(|| self.redactor.redact(&unknown).into()),
            ..Reply::from_agent_text(text)
        }
    }

    /// Whether it has said or called anything.
    pub(super) fn has_begun(&self) -> bool {
        self.bytes > 0
    }
}

fn role_of(message: &Value) -> Option<&str> {
    message.get("role")?.as_str()
}

/// Whether there is room for one more.
fn check(parts: usize) -> Result<(), TurnTooLarge> {
    if parts >= MAX_PARTS { Err(TurnTooLarge) } else { Ok(()) }
}
