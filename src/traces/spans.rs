//! The spans of a run, made of the events of its log. A span is complete when it ends: one of the run, of each round,
//! task and source, of each call with its attempts as events, and of each step of a coding agent.
//!
//! Ids are hashes of the run and of the number that the span has in its log, so a log that is sent twice, or by two
//! processes, is one trace.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::conventions::{Known, row_of, words_of};
use super::messages::{AnyKind, AnyValue, AnyValues, ERROR, KeyValue, OK, Span, SpanEvent, Status};
use crate::log::event::head::{ModelLabel, RunStarted};
use crate::log::event::kind::{
    AgentStep, AnsweredBy, Asks, CallStarted, ChatMessage, MessageRole, Purpose, QuestionAnswered,
    Reply, StepState, Usage,
};
use crate::log::event::result_text::reply_text;
use crate::log::event::{Elapsed, Event, EventKind, SpanId, SpanKind, SpanState, StopReason};
use crate::log::facts::observed::{ObservedFact, SpanAbout, SpanEnd, SpanRole};

/// Most events of a span: a call that is retried endlessly does not grow.
const MAX_EVENTS: usize = 64;

/// Most calls whose conversation is kept for the calls that continue it.
const MAX_CONVERSATIONS: usize = 256;

/// The kinds of spans of OpenTelemetry.
const INTERNAL: i32 = 1;
const CLIENT: i32 = 3;

/// Makes the spans of one run.
pub struct RunSpans {
    has_texts: bool,
    trace: Vec<u8>,
    /// What the ids of spans are hashes of.
    seed: Vec<u8>,
    head: Option<Arc<RunStarted>>,
    /// What the time of the log is added to, in nanoseconds since 1970.
    start_ns: u64,
    open: BTreeMap<SpanId, OpenSpan>,
    /// The open call of each attempt: an attempt has no span of its own.
    attempts: BTreeMap<SpanId, SpanId>,
    /// The messages of ended calls, for those that continue them. The oldest ones are forgotten.
    conversations: VecDeque<(SpanId, Vec<ChatMessage>)>,
    answer: Option<Arc<str>>,
    result: Option<String>,
    last: Elapsed,
}

/// A span that has not ended.
struct OpenSpan {
    parent: SpanId,
    since_ns: u64,
    name: String,
    role: SpanRole,
    attributes: AttributeList,
    events: Vec<SpanEvent>,
    call: Option<OpenCall>,
    /// Of a span of an observed run, what is known of it.
    observed: Option<SpanAbout>,
    /// The steps of a coding agent that are open: their ids, titles and starts.
    steps: BTreeMap<Arc<str>, OpenStep>,
}

struct OpenCall {
    started: Box<CallStarted>,
    attempts: Vec<SpanId>,
    usage: Usage,
    cost_usd: Option<f64>,
    reply: Option<Arc<Reply>>,
    /// The class of the last failure, and its text.
    failed: Option<(&'static str, String)>,
    messages: Vec<ChatMessage>,
}

struct OpenStep {
    number: usize,
    title: Arc<str>,
    text: Arc<str>,
    since_ns: u64,
}

impl RunSpans {
    /// `has_texts`: the spans have the texts of the run, such as prompts, replies, arguments and errors.
    pub fn new(has_texts: bool) -> Self {
        Self {
            has_texts,
            trace: Vec::new(),
            seed: Vec::new(),
            head: None,
            start_ns: 0,
            open: BTreeMap::new(),
            attempts: BTreeMap::new(),
            conversations: VecDeque::new(),
            answer: None,
            result: None,
            last: Elapsed::default(),
        }
    }

    /// Takes the next event of the log. Adds the spans that it ends.
    pub fn take(&mut self, event: &Event, to: &mut Vec<Span>) {
        self.last = event.at;
        match &event.kind {
            EventKind::RunStarted(head) => self.begin(head, event.at),
            // The clock of the log did not count the time until then.
            EventKind::RunResumed { downtime_ms, .. } => {
                self.start_ns = self.start_ns.saturating_add(nanos_of_ms(*downtime_ms));
            }
            EventKind::RunForked { .. } => {
                let launch = self.head.as_ref().and_then(|head| head.launch.as_ref());
                if let Some(forked) = launch.and_then(|launch| launch.forked.as_ref()) {
                    self.start_ns = nanos_of_ms(forked.wall_ms).saturating_sub(nanos(event.at));
                }
            }
            EventKind::AnswerComposed { text, .. } => self.answer = Some(Arc::clone(text)),
            EventKind::CallStarted(call) => self.begin_call(event, call),
            EventKind::AttemptStarted { parent, .. } => {
                let open = self.open.get_mut(parent);
                if let Some(call) = open.and_then(|open| open.call.as_mut()) {
                    call.attempts.push(event.span);
                    self.attempts.insert(event.span, *parent);
                }
            }
            EventKind::AttemptAnswered(reply) => self.answered(event.span, reply),
            EventKind::AttemptFailed(failed) => {
                let class = failed.class.word();
                let mut about = vec![("exception.type", class.into())];
                if self.has_texts {
                    about.push(("exception.message", failed.text.clone().into()));
                }
                self.note(event, "exception", about);
                if let Some(call) = self.call(event.span) {
                    call.failed = Some((class, failed.text.clone()));
                    call.usage.add(failed.usage.unwrap_or_default());
                }
            }
            EventKind::CallRetried { wait_ms, cause, .. } => {
                let about = vec![
                    ("roundtable.cause", cause.word().into()),
                    ("roundtable.wait_ms", (*wait_ms).into()),
                ];
                self.note(event, "retry", about);
            }
            EventKind::AttemptRefused { reason, .. } => {
                self.note(event, "refused", vec![("roundtable.cause", word_of(reason).into())]);
            }
            EventKind::BreakerChanged { tool, to, .. } => {
                let about = vec![
                    ("roundtable.tool", tool.as_str().into()),
                    ("roundtable.state", serde_json::to_value(to).unwrap_or_default()),
                ];
                self.note(event, "breaker", about);
            }
            EventKind::QuestionAsked(asked) if !asked.by_rule => {
                let about = serde_json::to_value(&asked.subject).unwrap_or_default();
                self.note(event, "question", vec![("roundtable.cause", about["about"].clone())]);
            }
            EventKind::QuestionAnswered(answered) if answered.by != AnsweredBy::Rule => {
                self.note(event, "answer", vec![("roundtable.state", word_of_answer(answered))]);
            }
            EventKind::AgentStep(step) => self.take_step(event, step, to),
            EventKind::Pattern(fact) => {
                if let Some(head) = &self.head {
                    self.result = fact.get().result(&head.plan).or(self.result.take());
                }
                fact.observed().into_iter().for_each(|fact| self.take_observed(event, fact));
            }
            _ => {}
        }
        match event.kind.opens() {
            Some((parent, SpanKind::Round(round))) => {
                let number = ("roundtable.round", round.into());
                self.begin_step(event, parent, format!("round {round}"), vec![number]);
            }
            Some((parent, SpanKind::Task { index })) => {
                self.begin_step(event, parent, format!("task {}", index + 1), Vec::new());
            }
            Some((parent, SpanKind::Source(source))) => {
                self.begin_step(event, parent, format!("source {source}"), Vec::new());
            }
            _ => {}
        }
        if let Some(state) = event.kind.closes()
            && !self.attempts.contains_key(&event.span)
        {
            self.end(event, state, to);
        }
    }

    /// Ends the spans that the log does not end: that of a run that was interrupted.
    pub fn finish(mut self, to: &mut Vec<Span>) {
        let at_ns = self.time(self.last);
        while let Some((id, mut open)) = self.open.pop_last() {
            open.attributes.add("roundtable.lost", true);
            to.push(self.span(id, open, at_ns, None));
        }
    }

    fn attributes(&self) -> AttributeList {
        AttributeList { list: Vec::new(), has_texts: self.has_texts }
    }

    fn time(&self, at: Elapsed) -> u64 {
        self.start_ns.saturating_add(nanos(at))
    }

    fn begin(&mut self, head: &Arc<RunStarted>, at: Elapsed) {
        self.start_ns = nanos_of_ms(head.wall_ms).saturating_sub(nanos(at));
        let forked = head.launch.as_ref().and_then(|launch| launch.forked.as_ref());
        let forked = forked.map_or(0, |forked| forked.wall_ms);
        self.seed = format!("{} {} {forked} ", head.run, head.wall_ms).into_bytes();
        self.trace = self.id("trace", 16);
        self.head = Some(Arc::clone(head));
        let mut attributes = self.attributes();
        attributes.add("roundtable.run", head.run.as_str());
        attributes.add("roundtable.pattern", head.plan.name());
        attributes.known(Known::Workflow, head.scenario.as_str());
        attributes.known(Known::Kind, "CHAIN");
        attributes.known(Known::Operation, "invoke_workflow");
        attributes.known(Known::Input, &*head.goal);
        let name = format!("invoke_workflow {}", head.scenario);
        self.open(SpanId::RUN, SpanId::RUN, at, name, SpanRole::Step, attributes);
    }

    fn open(
        &mut self,
        id: SpanId,
        parent: SpanId,
        at: Elapsed,
        name: String,
        role: SpanRole,
        attributes: AttributeList,
    ) -> &mut OpenSpan {
        let since_ns = self.time(at);
        self.open.entry(id).or_insert(OpenSpan {
            parent,
            since_ns,
            name,
            role,
            attributes,
            events: Vec::new(),
            call: None,
            observed: None,
            steps: BTreeMap::new(),
        })
    }

    /// A round, a task or a source begins.
    fn begin_step(
        &mut self,
        event: &Event,
        parent: SpanId,
        name: String,
        own: Vec<(&'static str, Value)>,
    ) {
        let mut attributes = self.attributes();
        attributes.known(Known::Kind, "CHAIN");
        own.into_iter().for_each(|(name, value)| attributes.add(name, value));
        self.open(event.span, parent, event.at, name, SpanRole::Step, attributes);
    }

    fn begin_call(&mut self, event: &Event, call: &CallStarted) {
        let purpose = &call.purpose;
        // An agent of another program answers in place of a model.
        let is_agent = purpose.asks() == Asks::Model && call.tool.as_str() != "llm";
        let role = match purpose.asks() {
            Asks::Model if is_agent => SpanRole::Agent,
            Asks::Model => SpanRole::Model,
            Asks::Agent => SpanRole::Agent,
            Asks::Tool => SpanRole::Tool,
        };
        let mut attributes = self.attributes();
        let (kind, operation) = words_of(role);
        attributes.known(Known::Kind, kind);
        operation.into_iter().for_each(|word| attributes.known(Known::Operation, word));
        // The agent of another program is the first part of the name of its guard.
        let guard = call.tool.as_str().split('.').next().filter(|_| is_agent);
        let speaker = purpose.speaker().or(guard);
        speaker.into_iter().for_each(|name| attributes.known(Known::Agent, name));
        match purpose {
            Purpose::Member { by, .. } => attributes.known(Known::AgentBefore, by.as_str()),
            Purpose::SwarmTurn { from: Some(from), .. } => {
                attributes.known(Known::AgentBefore, from.as_str());
            }
            _ => {}
        }
        if let Some(round) = purpose.round() {
            attributes.add("roundtable.round", round);
        }
        let target = match role {
            SpanRole::Model => self.describe_model(call, &mut attributes),
            SpanRole::Tool => {
                attributes.known(Known::Tool, call.tool.as_str());
                call.tool.to_string()
            }
            _ => speaker.unwrap_or(call.tool.as_str()).to_owned(),
        };
        let messages = match self.has_texts {
            true => self.messages_of(call),
            false => Vec::new(),
        };
        if self.has_texts {
            let args = call.args.as_ref().map(|args| args.to_string());
            if let Some(args) = &args {
                attributes.known(Known::Input, args.as_str());
                if role == SpanRole::Tool {
                    attributes.known(Known::Arguments, args.as_str());
                }
            } else if let Some(last) = messages.last() {
                attributes.known(Known::Input, &*last.content);
                attributes.known(Known::InputMessages, json_of(&messages).to_string());
            }
        }
        let name = format!("{} {target}", operation.unwrap_or("call"));
        let parent = self.attempts.get(&call.parent).copied().unwrap_or(call.parent);
        self.open(event.span, parent, event.at, name, role, attributes).call = Some(OpenCall {
            started: Box::new(call.clone()),
            attempts: Vec::new(),
            usage: Usage::default(),
            cost_usd: None,
            reply: None,
            failed: None,
            messages,
        });
    }

    /// The model of a call; returns its name.
    fn describe_model(&self, call: &CallStarted, attributes: &mut AttributeList) -> String {
        let (name, host) = match self.head.as_ref().map(|head| &head.model) {
            Some(ModelLabel::Live { name, host }) => (name.as_str(), host.as_str()),
            _ => ("scripted", "roundtable"),
        };
        let model = call.model.as_deref().unwrap_or(name);
        attributes.known(Known::Model, model);
        attributes.known(Known::Provider, provider_of(host));
        model.to_owned()
    }

    /// The whole prompt of a call.
    fn messages_of(&self, call: &CallStarted) -> Vec<ChatMessage> {
        let before = call.prompt.after.and_then(|after| {
            let mut known = self.conversations.iter();
            known.find(|(id, _)| *id == after).map(|(_, messages)| messages.clone())
        });
        let mut messages = before.unwrap_or_default();
        messages.extend(call.prompt.messages.iter().cloned());
        messages
    }

    fn call(&mut self, attempt: SpanId) -> Option<&mut OpenCall> {
        let call = self.attempts.get(&attempt)?;
        self.open.get_mut(call)?.call.as_mut()
    }

    fn answered(&mut self, attempt: SpanId, reply: &Arc<Reply>) {
        if let Some(call) = self.call(attempt) {
            call.usage.add(reply.usage.unwrap_or_default());
            if let Some(cost) = reply.cost_usd {
                call.cost_usd = Some(call.cost_usd.unwrap_or_default() + cost);
            }
            call.reply = Some(Arc::clone(reply));
        }
    }

    /// Adds an event to the span that it is in: that of its call, or the nearest one around it that is open.
    fn note(&mut self, event: &Event, name: &str, about: Vec<(&'static str, Value)>) {
        let time_unix_nano = self.time(event.at);
        let id = self.attempts.get(&event.span).copied().unwrap_or(event.span);
        let id = if self.open.contains_key(&id) { id } else { SpanId::RUN };
        let mut attributes = self.attributes();
        let Some(open) = self.open.get_mut(&id).filter(|open| open.events.len() < MAX_EVENTS)
        else {
            return;
        };
        about.into_iter().for_each(|(name, value)| attributes.add(name, value));
        open.events.push(SpanEvent {
            time_unix_nano,
            name: name.to_owned(),
            attributes: attributes.list,
        });
    }

    /// A step of a coding agent: a call of one of its own tools.
    fn take_step(&mut self, event: &Event, step: &AgentStep, to: &mut Vec<Span>) {
        let at_ns = self.time(event.at);
        let Some(call) = self.attempts.get(&event.span).copied() else { return };
        let Some(open) = self.open.get_mut(&call) else { return };
        if step.state == StepState::Started {
            let number = open.steps.len();
            let (title, text) = (Arc::clone(&step.title), Arc::clone(&step.text));
            let begun = OpenStep { number, title, text, since_ns: at_ns };
            open.steps.entry(Arc::clone(&step.id)).or_insert(begun);
            return;
        }
        let Some(begun) = open.steps.remove(&step.id) else { return };
        let mut attributes = self.attributes();
        let (kind, operation) = words_of(SpanRole::Tool);
        attributes.known(Known::Kind, kind);
        operation.into_iter().for_each(|word| attributes.known(Known::Operation, word));
        attributes.known(Known::Input, &*begun.text);
        attributes.known(Known::Output, &*step.text);
        let mut name = "execute_tool".to_owned();
        // The title of a step is a text.
        if self.has_texts {
            name = format!("{name} {}", begun.title);
            attributes.known(Known::Tool, &*begun.title);
        }
        let code = if step.state == StepState::Failed { ERROR } else { OK };
        let own = format!("{} step {} {}", event.span.0, step.id, begun.number);
        to.push(Span {
            trace_id: self.trace.clone(),
            span_id: self.id(&own, 8),
            parent_span_id: self.id(&call.0.to_string(), 8),
            name,
            kind: INTERNAL,
            start_time_unix_nano: begun.since_ns,
            end_time_unix_nano: at_ns,
            attributes: attributes.list,
            events: Vec::new(),
            status: Some(Status { message: String::new(), code }),
        });
    }

    /// Takes what another program reports.
    fn take_observed(&mut self, event: &Event, fact: &ObservedFact) {
        match fact {
            ObservedFact::Opened { parent, about, .. } => {
                let known = self.open.get_mut(&event.span);
                let open = match known {
                    Some(open) => open,
                    None => {
                        let none = self.attributes();
                        let (name, role) = (String::new(), SpanRole::Step);
                        self.open(event.span, *parent, event.at, name, role, none)
                    }
                };
                open.parent = *parent;
                open.observed.get_or_insert_default().add(about);
            }
            ObservedFact::Closed { about, .. } => {
                if let Some(open) = self.open.get_mut(&event.span) {
                    open.observed.get_or_insert_default().add(about);
                }
            }
            ObservedFact::Note { text } if self.has_texts => {
                self.note(event, "note", vec![("exception.message", text.to_string().into())]);
            }
            ObservedFact::Note { .. } | ObservedFact::Text { .. } => {}
        }
    }

    fn end(&mut self, event: &Event, state: SpanState, to: &mut Vec<Span>) {
        let at_ns = self.time(event.at);
        let Some(mut open) = self.open.remove(&event.span) else { return };
        let mut status = match state {
            SpanState::Failed(_) => Status { message: String::new(), code: ERROR },
            _ => Status { message: String::new(), code: OK },
        };
        match &event.kind {
            EventKind::RunClosed(closed) => {
                open.attributes.add("roundtable.stop_reason", word_of(&closed.reason));
                if let Some(result) = &self.result {
                    open.attributes.add("roundtable.result", result.as_str());
                }
                if let Some(answer) = &self.answer {
                    open.attributes.known(Known::Output, &**answer);
                }
                self.fail(&mut open, &mut status, &closed.reason);
            }
            EventKind::CallFailed { reason: StopReason::ApprovalDenied(_), .. } => {
                open.attributes.add("roundtable.denied", true);
            }
            EventKind::CallFailed { reason, .. } => self.fail(&mut open, &mut status, reason),
            EventKind::CallDegraded { reason, .. } => {
                open.attributes.add("roundtable.degraded", true);
                self.fail(&mut open, &mut status, reason);
            }
            EventKind::Pattern(fact) if fact.observed().is_some_and(is_lost) => {
                open.attributes.add("roundtable.lost", true);
            }
            _ => {}
        }
        if let Some(call) = open.call.take() {
            self.describe_end(event.span, &mut open, call);
        }
        to.push(self.span(event.span, open, at_ns, Some(status)));
    }

    /// Says why a span failed.
    fn fail(&self, open: &mut OpenSpan, status: &mut Status, reason: &StopReason) {
        if status.code != ERROR {
            return;
        }
        let failed = open.call.as_ref().and_then(|call| call.failed.as_ref());
        let class = failed.map_or(word_of(reason), |(class, _)| (*class).to_owned());
        open.attributes.known(Known::Error, class.as_str());
        status.message = match failed.filter(|_| self.has_texts) {
            Some((_, text)) => text.clone(),
            None if self.has_texts => reason.to_string(),
            None => class,
        };
    }

    /// What is known of a call at its end.
    fn describe_end(&mut self, id: SpanId, open: &mut OpenSpan, call: OpenCall) {
        let OpenCall { started, attempts, usage, cost_usd, reply, mut messages, .. } = call;
        let attributes = &mut open.attributes;
        if attempts.len() > 1 {
            attributes.add("roundtable.attempts", attempts.len());
        }
        for attempt in &attempts {
            self.attempts.remove(attempt);
        }
        if usage.total() > 0 {
            attributes.known(Known::TokensIn, usage.prompt_tokens);
            attributes.known(Known::TokensOut, usage.completion_tokens);
            if usage.cached_tokens > 0 {
                attributes.known(Known::TokensCached, usage.cached_tokens);
            }
            let price = self.head.as_ref().and_then(|it| it.price_of(started.model.as_deref()));
            let cost = cost_usd.or_else(|| Some(price?.cost(&usage)).filter(|cost| *cost > 0.0));
            cost.into_iter().for_each(|cost| attributes.known(Known::Cost, cost));
        }
        let Some(reply) = reply else { return };
        if let Some(model) = &reply.model {
            attributes.known(Known::ReportedModel, &**model);
        }
        if let Some(finish) = &reply.finish {
            attributes.known(Known::Finish, Value::from(vec![finish.to_string()]));
        }
        if !self.has_texts {
            return;
        }
        attributes.known(Known::Output, &*reply_text(&reply));
        match open.role {
            SpanRole::Model => {
                let message = ChatMessage::from_reply(&reply);
                let said = json_of(std::slice::from_ref(&message));
                attributes.known(Known::OutputMessages, said.to_string());
                messages.push(message);
                if self.conversations.len() >= MAX_CONVERSATIONS {
                    self.conversations.pop_front();
                }
                self.conversations.push_back((id, messages));
            }
            SpanRole::Tool => attributes.known(Known::Result, &*reply_text(&reply)),
            _ => {}
        }
    }

    fn span(&self, id: SpanId, mut open: OpenSpan, at_ns: u64, status: Option<Status>) -> Span {
        let (mut since_ns, mut until_ns) = (open.since_ns, at_ns);
        let mut status = status.unwrap_or_default();
        if let Some(about) = open.observed.take() {
            let ns = |us: Option<u64>| us.map(|us| us.saturating_mul(1_000));
            since_ns = ns(about.from_us).unwrap_or(since_ns);
            until_ns = ns(about.until_us).unwrap_or(until_ns);
            open.role = about.role;
            open.name = describe_observed(&about, &mut open.attributes);
            if let Some(error) = about.error.as_ref().filter(|_| status.code == ERROR) {
                status.message = if self.has_texts { error.to_string() } else { String::new() };
            }
        }
        let parent_span_id = match id == SpanId::RUN {
            true => Vec::new(),
            false => self.id(&open.parent.0.to_string(), 8),
        };
        Span {
            trace_id: self.trace.clone(),
            span_id: self.id(&id.0.to_string(), 8),
            parent_span_id,
            name: open.name,
            kind: if open.role == SpanRole::Model { CLIENT } else { INTERNAL },
            start_time_unix_nano: since_ns,
            end_time_unix_nano: until_ns.max(since_ns),
            attributes: open.attributes.list,
            events: open.events,
            status: Some(status),
        }
    }

    /// An id of so many bytes.
    fn id(&self, of: &str, bytes: usize) -> Vec<u8> {
        let mut hash = Sha256::new();
        hash.update(&self.seed);
        hash.update(of.as_bytes());
        hash.finalize().iter().take(bytes).copied().collect()
    }
}

fn nanos(at: Elapsed) -> u64 {
    u64::try_from(at.duration().as_nanos()).unwrap_or(u64::MAX)
}

/// A file may have any number.
fn nanos_of_ms(ms: u64) -> u64 {
    ms.saturating_mul(1_000_000)
}

/// A stop reason without the part after its colon, which may be a text of a model.
fn word_of(reason: &StopReason) -> String {
    let text = reason.to_string();
    text.split(':').next().unwrap_or_default().to_owned()
}

fn word_of_answer(answered: &QuestionAnswered) -> Value {
    let value = serde_json::to_value(&answered.answer).unwrap_or_default();
    value["answer"].clone()
}

/// The name that GenAI has for the provider of an endpoint; else its host.
fn provider_of(host: &str) -> &str {
    let known = [
        ("openai.azure.com", "azure.ai.openai"),
        ("openai.com", "openai"),
        ("anthropic.com", "anthropic"),
        ("googleapis.com", "gcp.gen_ai"),
        ("mistral.ai", "mistral_ai"),
        ("groq.com", "groq"),
        ("deepseek.com", "deepseek"),
        ("x.ai", "x_ai"),
        ("cohere.ai", "cohere"),
        ("perplexity.ai", "perplexity"),
    ];
    known.iter().find(|(end, _)| host.ends_with(end)).map_or(host, |(_, name)| name)
}

/// Messages in the form of GenAI (`gen_ai.input.messages`).
fn json_of(messages: &[ChatMessage]) -> Value {
    let message = |message: &ChatMessage| {
        let mut parts = Vec::new();
        match (&message.tool_call_id, message.role) {
            (Some(id), MessageRole::Tool) => parts.push(
                json!({ "type": "tool_call_response", "id": id, "response": message.content }),
            ),
            _ if !message.content.is_empty() => {
                parts.push(json!({ "type": "text", "content": message.content }));
            }
            _ => {}
        }
        parts.extend(message.tool_calls.iter().map(|call| {
            json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments })
        }));
        json!({ "role": message.role.word(), "parts": parts })
    };
    messages.iter().map(message).collect()
}

/// Whether the end of a span is not known.
fn is_lost(fact: &ObservedFact) -> bool {
    matches!(fact, ObservedFact::Closed { end: SpanEnd::Lost, .. })
}

/// Adds what another program has said of its span; returns its name.
fn describe_observed(about: &SpanAbout, to: &mut AttributeList) -> String {
    let (kind, operation) = words_of(about.role);
    to.known(Known::Kind, kind);
    operation.into_iter().for_each(|word| to.known(Known::Operation, word));
    let texts = [(Known::Agent, &about.agent), (Known::Model, &about.model)];
    for (known, text) in texts {
        text.iter().for_each(|text| to.known(known, &**text));
    }
    if about.role == SpanRole::Tool {
        to.known(Known::Tool, &*about.name);
    }
    let counts = [
        (Known::TokensIn, about.tokens_in),
        (Known::TokensCached, about.tokens_cached),
        (Known::TokensOut, about.tokens_out),
    ];
    for (known, count) in counts {
        count.into_iter().for_each(|count| to.known(known, count));
    }
    about.cost_usd.into_iter().for_each(|cost| to.known(Known::Cost, cost));
    for (known, text) in [(Known::Input, &about.input), (Known::Output, &about.output)] {
        text.iter().for_each(|text| to.known(known, &**text));
    }
    match operation {
        Some(word) => format!("{word} {}", about.name),
        None => about.name.to_string(),
    }
}

/// The attributes of a span that is sent.
#[derive(Default)]
struct AttributeList {
    list: Vec<KeyValue>,
    has_texts: bool,
}

impl AttributeList {
    fn add(&mut self, name: &str, value: impl Into<Value>) {
        let value = any_value(value.into());
        self.list.push(KeyValue { key: name.to_owned(), value: Some(value) });
    }

    /// Adds it by each name of its row; a text only where texts are sent.
    fn known(&mut self, known: Known, value: impl Into<Value>) {
        let row = row_of(known);
        if row.is_text && !self.has_texts {
            return;
        }
        let value = value.into();
        for name in row.sent {
            self.add(name, value.clone());
        }
    }
}

fn any_value(value: Value) -> AnyValue {
    let kind = match value {
        Value::Bool(is) => AnyKind::Bool(is),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => AnyKind::Int(whole),
            None => AnyKind::Double(number.as_f64().unwrap_or_default()),
        },
        Value::Array(values) => {
            AnyKind::Array(AnyValues { values: values.into_iter().map(any_value).collect() })
        }
        Value::String(text) => AnyKind::String(text),
        other => AnyKind::String(other.to_string()),
    };
    AnyValue { value: Some(kind) }
}
