//! A log whose texts are replaced by their lengths and digests, so that it can be shown to somebody
//! who may not read them. Names of the structure, numbers and times stay, so it folds as before.
//!
//! Each kind of event says which of its fields are texts (`kinds.rs`, [`Fact::redact`], [`Plan::redact`]) with every field named, so the compiler asks about a field that is added.
//!
//! [`Fact::redact`]: crate::log::facts::Fact::redact
//! [`Plan::redact`]: crate::log::facts::Plan::redact
//!
//! The texts of the first and the last event of a log.
//!
//! Which fields of the kinds of events are texts.
//!
//! The texts of calls: prompts, replies, tool calls.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::call::{CallStarted, ChatMessage, Prompt, Reply, ReplyRefused};
use super::head::{FlagAt, ForkOrigin, LaunchRecord, ModelLabel, RunClosed, RunStarted};
use super::id::BoundaryId;
use super::kind::AttemptFailed;
use super::purpose::Purpose;
use super::{Command, Event, EventKind};
use crate::base::keyed_digest;
use crate::base::name::TaskId;
use crate::scenario::spec::SourceText;
use crate::scenario::spec::script::ScriptStep;
use crate::scenario::spec::tool::{ToolCall, ToolOffer};

/// Hexadecimal digits of a digest in a marker.
const DIGITS: usize = 8;

/// Longest word of the program or an endpoint that stays as it is, in bytes.
const MAX_WORD: usize = 32;

/// Replaces the texts of events. Equal texts get equal markers under one key. Without the key a short
/// text cannot be found by trying texts.
pub struct TextRedactor {
    key: [u8; 32],
    /// Names that the run's setup declares. A model's reply may contain others.
    names: HashSet<Box<str>>,
}

impl TextRedactor {
    /// A redactor with this key.
    pub fn new(key: [u8; 32]) -> Self {
        let steps = [
            ScriptStep::Plan,
            ScriptStep::Notes,
            ScriptStep::Synthesize,
            ScriptStep::Classify,
            ScriptStep::Finalize,
        ];
        let names = steps.iter().map(|step| step.word().into()).chain(["llm".into()]).collect();
        Self { key, names }
    }

    /// The event without its texts. Events have to be passed in the order of the log, because the
    /// first ones declare the names that stay.
    pub fn redact(&mut self, mut event: Event) -> Event {
        event.kind.redact(self);
        event
    }

    /// Keeps this name wherever it occurs as a name.
    pub(crate) fn declare(&mut self, name: &str) {
        if !self.names.contains(name) {
            self.names.insert(name.into());
        }
    }

    /// Replaces a text. An empty text and a marker stay, so a redacted log stays as it is.
    pub(crate) fn text<T: Borrow<str> + From<String>>(&self, text: &mut T) {
        let plain: &str = (*text).borrow();
        if !plain.is_empty() && !is_marker(plain) {
            *text = self.marker(plain).into();
        }
    }

    /// Replaces a text, if there is one.
    pub(crate) fn some<T: Borrow<str> + From<String>>(&self, text: &mut Option<T>) {
        if let Some(text) = text {
            self.text(text);
        }
    }

    /// Replaces a name that is not declared: a model wrote it.
    pub(crate) fn name<T: Borrow<str> + From<String>>(&self, name: &mut T) {
        if !self.names.contains((*name).borrow()) {
            self.text(name);
        }
    }

    /// Replaces what is not a short identifier. For words that an endpoint or tool may have given.
    pub(crate) fn word<T: Borrow<str> + From<String>>(&self, word: &mut T) {
        let plain: &str = (*word).borrow();
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if plain.len() > MAX_WORD || !plain.bytes().all(is_word) {
            self.text(word);
        }
    }

    /// Replaces a value of any shape by one marker; its numbers are content too.
    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            Value::Null => {}
            Value::String(text) => self.text(text),
            other => *other = Value::String(self.marker(&other.to_string())),
        }
    }

    /// Replaces a value that is shared, if there is one.
    pub(crate) fn some_value(&self, value: &mut Option<Arc<Value>>) {
        if let Some(value) = value {
            self.value(Arc::make_mut(value));
        }
    }

    /// Replaces the values of a map, and keys that are not declared names.
    pub(crate) fn fields(&self, fields: &mut Map<String, Value>) {
        let entries = std::mem::take(fields).into_iter().map(|(mut name, mut value)| {
            self.name(&mut name);
            self.value(&mut value);
            (name, value)
        });
        *fields = entries.collect();
    }

    /// Replaces the id of a task, which the planner wrote.
    pub(crate) fn task(&self, task: &mut TaskId) {
        self.text(task);
    }

    /// Replaces the id of a task in a boundary; nothing else in it is a text.
    pub(crate) fn boundary(&self, boundary: &mut BoundaryId) {
        let mut parts = boundary.as_str().splitn(3, ':');
        if let (Some("dispatch"), Some(attempt), Some(task)) =
            (parts.next(), parts.next(), parts.next())
        {
            let (attempt, mut task) = (attempt.to_owned(), task.to_owned());
            self.text(&mut task);
            *boundary = BoundaryId::new(format!("dispatch:{attempt}:{task}"));
            return;
        }
        // All others consist of words and names of the setup.
        let in_name = |c: char| c.is_ascii_alphanumeric() || "_-.:/#[]@".contains(c);
        if !boundary.as_str().chars().all(in_name) && !is_marker(boundary.as_str()) {
            *boundary = BoundaryId::new(self.marker(boundary.as_str()));
        }
    }

    fn marker(&self, text: &str) -> String {
        let digest = keyed_digest(&self.key, text);
        let digest = digest.get(..DIGITS).unwrap_or_default();
        format!("‹{} chars digest:{digest}›", text.chars().count())
    }
}

/// Whether a text is exactly a marker.
pub(crate) fn is_marker(text: &str) -> bool {
    let parts = text
        .strip_prefix('‹')
        .and_then(|rest| rest.strip_suffix('›'))
        .and_then(|rest| rest.split_once(" chars digest:"));
    parts.is_some_and(|(chars, digest)| {
        (1..=20).contains(&chars.len())
            && chars.bytes().all(|byte| byte.is_ascii_digit())
            && digest.len() == DIGITS
            && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

impl RunStarted {
    /// Replaces the texts of the setup, and declares its names.
    pub(crate) fn redact(&mut self, by: &mut TextRedactor) {
        let Self {
            run: _,
            wall_ms: _,
            scenario: _,
            title,
            goal,
            model,
            inputs,
            flags,
            seed: _,
            prices: _,
            model_prices: _,
            tools,
            ask_again: _,
            shows_flags: _,
            alerts: _,
            spending: _,
            launch,
            redacted,
            plan,
        } = self;
        *redacted = true;
        inputs.keys().for_each(|name| by.declare(name));
        tools.iter().for_each(|tool| by.declare(tool.name.as_str()));
        by.text(title);
        by.text(goal);
        by.fields(inputs);
        for FlagAt { name, label, on: _ } in flags {
            by.declare(name.as_str());
            by.text(label);
        }
        match model {
            ModelLabel::Scripted => {}
            ModelLabel::Live { name: _, host } => by.text(host),
        }
        if let Some(launch) = launch {
            launch.redact(by);
        }
        plan.redact(by);
    }
}

impl LaunchRecord {
    fn redact(&mut self, by: &TextRedactor) {
        let Self { source, instant: _, model: _, flags, pauses, answered_by: _, forked } = self;
        let SourceText { text, set, file, prompt_files } = Arc::make_mut(source);
        by.text(text);
        set.iter_mut().for_each(|change| by.text(change));
        by.some(file);
        let files = std::mem::take(prompt_files).into_iter().map(|(mut path, mut text)| {
            by.text(&mut path);
            by.text(&mut text);
            (path, text)
        });
        *prompt_files = files.collect();
        flags.iter_mut().for_each(|(at, ..)| by.boundary(at));
        pauses.iter_mut().for_each(|at| by.boundary(at));
        if let Some(ForkOrigin { parent: _, at, wall_ms: _, flags: _, prices: _ }) = forked {
            by.boundary(at);
        }
    }
}

impl RunClosed {
    /// Replaces the texts of the end.
    pub(crate) fn redact(&mut self, by: &TextRedactor) {
        let Self { reason, phase: _, boundary, elapsed_ms: _, paused_ms: _, in_flight: _ } = self;
        reason.redact(by);
        if let Some(boundary) = boundary {
            by.boundary(boundary);
        }
    }
}

impl EventKind {
    /// Replaces the texts of an event.
    pub(crate) fn redact(&mut self, by: &mut TextRedactor) {
        match self {
            Self::RunStarted(head) => Arc::make_mut(head).redact(by),
            Self::RunClosed(closed) => closed.redact(by),
            Self::Pausing { by: _, at_round: _ }
            | Self::Resumed { by: _, paused_ms: _ }
            | Self::RunResumed { by: _, downtime_ms: _, events: _ }
            | Self::ConcurrencyChanged { max_parallel: _, by: _ }
            | Self::CallAnswered { attempts: _ }
            | Self::CallRetried { attempt: _, wait_ms: _, cause: _, status: _ }
            | Self::RetryRefused { attempt: _, limit: _ }
            | Self::CallQueued
            | Self::CallAdmitted { waited_ms: _ }
            | Self::AttemptQueued { attempt: _ }
            | Self::AttemptStarted {
                parent: _,
                attempt: _,
                timeout_ms: _,
                waited_ms: _,
                probe: _,
            }
            | Self::CallInDoubt { tool: _, decision: _, usage: _ }
            | Self::ClientRetried { request: _, cause: _ }
            | Self::BreakerChanged {
                tool: _,
                to: _,
                cause: _,
                open_for_ms: _,
                by: _,
                counted: _,
            }
            | Self::ResultIgnored { tool: _, success: _ }
            | Self::LimitsChanged { tool: _, limits: _, change: _, by: _ }
            | Self::FaultInjected { tool: _, fault: _, by: _ }
            | Self::FaultRemoved { tool: _, fault: _, by: _ }
            | Self::RequestAdapted { model: _, parameter: _ }
            | Self::BudgetReached(_)
            | Self::SessionRunStarted { run: _, scenario: _ }
            | Self::SessionRunDropped { run: _, events: _ }
            | Self::EventsDropped { events: _ } => {}
            Self::Paused { at } => at.iter_mut().for_each(|at| by.boundary(at)),
            Self::Stepped { step: _, boundary, paused_ms: _ }
            | Self::BreakpointChanged { at: boundary, set: _ }
            | Self::FlagChanged { flag: _, on: _, by: _, boundary }
            | Self::RunForked { by: _, parent: _, at: boundary, prices: _ } => {
                by.boundary(boundary);
            }
            Self::CommandTaken { command, by: sender, place: _ } => {
                "somebody".clone_into(sender);
                if let Command::Break { at, set: _ } = &mut **command {
                    by.boundary(at);
                }
            }
            Self::PlanRefused { reason, raw, details } => {
                reason.redact(by);
                by.value(Arc::make_mut(raw));
                by.some_value(details);
            }
            Self::AnswerComposed { text, by: _, end: _ } => by.text(text),
            Self::CallStarted(call) => call.redact(by),
            Self::CallFailed { attempts: _, reason }
            | Self::AttemptRefused { attempt: _, reason, retry_in_ms: _ }
            | Self::SessionRunClosed { run: _, reason } => reason.redact(by),
            Self::CallDegraded { attempts: _, reason, by: _, value } => {
                reason.redact(by);
                by.some_value(value);
            }
            Self::AttemptAnswered(reply) => Arc::make_mut(reply).redact(by),
            Self::AttemptFailed(failed) => {
                let AttemptFailed {
                    class: _,
                    status: _,
                    text,
                    retry_after_ms: _,
                    should_retry: _,
                    partial,
                    usage: _,
                    adapted: _,
                    slow: _,
                } = &mut **failed;
                by.text(text);
                by.some(partial);
            }
            Self::ReplyRepaired { repair, changed } => {
                by.word(repair);
                by.text(changed);
            }
            Self::ReplyRefused(refused) => refused.redact(by),
            Self::ConditionFailed { place: _, text } => by.text(text),
            Self::Warning { text } => by.text(text),
            Self::Pattern(fact) => fact.redact(by),
            // Which of its fields are texts is not known.
            Self::Unknown { kind: _, fields } => *fields = Arc::default(),
        }
    }
}

impl CallStarted {
    /// Replaces the prompt or the arguments, and declares the names of the offered tools.
    pub(crate) fn redact(&mut self, by: &mut TextRedactor) {
        let Self { parent: _, tool, purpose, prompt, args, model: _, repeat: _ } = self;
        by.declare(tool.as_str());
        if let Purpose::Task { task, index: _ } = purpose {
            by.task(task);
        }
        let Prompt { after: _, messages, tools } = prompt;
        for ToolOffer { name, description, parameters } in tools.iter_mut().flat_map(Arc::make_mut)
        {
            by.declare(name);
            by.text(description);
            by.value(Arc::make_mut(parameters));
        }
        for ChatMessage { role: _, content, tool_calls, tool_call_id, blocks } in
            Arc::make_mut(messages)
        {
            by.text(content);
            by.calls(tool_calls);
            by.some(tool_call_id);
            // Only the provider reads it.
            *blocks = None;
        }
        by.some_value(args);
    }
}

impl Reply {
    /// Replaces the text, the tool calls and the result.
    pub(crate) fn redact(&mut self, by: &TextRedactor) {
        let Self {
            text,
            tool_calls,
            result,
            usage: _,
            estimated: _,
            first_token_ms: _,
            slow: _,
            model: _,
            finish,
            end: _,
            blocks,
            ignored: _,
            adopted: _,
        } = self;
        by.text(text);
        by.calls(tool_calls);
        by.some_value(result);
        if let Some(finish) = finish {
            by.word(finish);
        }
        // Only the provider reads it.
        *blocks = None;
    }
}

impl ReplyRefused {
    /// Replaces what is said about the reply, and its beginning.
    pub(crate) fn redact(&mut self, by: &TextRedactor) {
        let Self { reason, detail, preview, repeat: _, repeats: _ } = self;
        reason.redact(by);
        by.text(detail);
        by.text(preview);
    }
}

impl TextRedactor {
    /// Replaces the ids and arguments of these tool calls, and names that no tool has.
    pub(crate) fn calls(&self, calls: &mut Arc<[ToolCall]>) {
        Arc::make_mut(calls).iter_mut().for_each(|call| self.call(call));
    }

    /// As [`calls`](Self::calls), for one.
    pub(crate) fn call(&self, call: &mut ToolCall) {
        let ToolCall { id, name, arguments } = call;
        self.text(id);
        self.name(name);
        self.text(arguments);
    }
}
