//! The spans of a run, made of the events of its log. A span is complete when it ends: one of the run, of each round,
//! task and source, of each call with its attempts as events, and of each step of a coding agent.
//!
//! Ids are hashes of the run and of the number that the span has in its log, so a log that is sent twice, or by two
//! processes, is one trace.

mod watched;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::attributes::{
    AttributeList, describe_observed, prompt_json, provider_of, question_text, reply_json,
    said_text, word_of, word_of_answer,
};
use super::conventions::{Known, words_of};
use super::messages::{ERROR, OK, Span, SpanEvent, Status, nanos, nanos_of_ms};
use crate::base::name::AgentName;
use crate::log::event::head::{ModelLabel, RunStarted};
use crate::log::event::result_text::{reply_text, value_text};
use crate::log::event::{
    AgentStep, AnsweredBy, Asks, AttemptFailed, CallStarted, ChatMessage, Elapsed, Event,
    EventKind, MessageRole, Purpose, QuestionAsked, Reply, RunId, SpanId, SpanKind, SpanState,
    StepState, StopReason, Usage,
};
use crate::log::facts::observed::{ObservedFact, SpanAbout, SpanEnd, SpanRole};
use crate::log::facts::orchestrator::Task;
use crate::log::facts::research::FoundSource;
use crate::log::facts::{ForSpans, PatternFact};

/// Most events of a span: a call that is retried endlessly does not grow.
const MAX_EVENTS: usize = 64;

/// Most calls whose conversation is kept for the calls that continue it.
const MAX_CONVERSATIONS: usize = 256;

/// The event of a failed attempt. Viewers take a span with an `exception`, and some no other, for one that failed, and
/// count exceptions: so each of those has one, and no other span.
const ATTEMPT_FAILED: &str = "attempt_failed";
const EXCEPTION: &str = "exception";

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
    /// Of each open call of a watched program, the span around it.
    watched: BTreeMap<SpanId, SpanId>,
    /// The id of the session: that of the run of its first message.
    conversation: Option<RunId>,
    answer: Option<Arc<str>>,
    result: Option<String>,
    /// The tasks of the last plan, and the sources of the last search.
    tasks: Arc<[Task]>,
    sources: Arc<[FoundSource]>,
    /// The last handoff: who takes over, and with which message.
    handed: Option<(AgentName, Option<Arc<str>>)>,
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
    /// Of an agent whose call has no arguments, what it was given as far as it is known without its prompt. Taken
    /// when its prompt is known.
    given: Option<Arc<str>>,
    /// The last reply of the model of an agent.
    said: Option<Arc<Reply>>,
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
            watched: BTreeMap::new(),
            conversation: None,
            answer: None,
            result: None,
            tasks: Arc::default(),
            sources: Arc::default(),
            handed: None,
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
            EventKind::CallStarted(call) if call.purpose == Purpose::Watched => {
                self.begin_watched(event.span, call);
            }
            EventKind::CallStarted(call) => self.begin_call(event, call),
            EventKind::AttemptStarted { parent, .. } => {
                let open = self.open.get_mut(parent);
                if let Some(call) = open.and_then(|open| open.call.as_mut()) {
                    call.attempts.push(event.span);
                    self.attempts.insert(event.span, *parent);
                }
            }
            EventKind::AttemptAnswered(reply) => match self.watched.remove(&event.span) {
                Some(around) => self.watched_replied(event.span, around, reply),
                None => self.answered(event.span, reply),
            },
            EventKind::AttemptFailed(failed) => self.attempt_failed(event, failed),
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
            EventKind::QuestionAsked(asked) if !asked.by_rule => self.asked(event, asked),
            EventKind::QuestionAnswered(answered) if answered.by != AnsweredBy::Rule => {
                let mut about = vec![("roundtable.state", word_of_answer(answered))];
                let text = answered.answer.text().filter(|_| self.has_texts);
                text.into_iter().for_each(|text| about.push(("roundtable.text", text.into())));
                self.note(event, "answer", about);
            }
            EventKind::AgentStep(step) => self.take_step(event, step, to),
            EventKind::Pattern(fact) => {
                if let Some(head) = &self.head {
                    self.result = fact.get().result(&head.plan).or(self.result.take());
                }
                self.take_fact(event, fact);
            }
            _ => {}
        }
        match event.kind.opens() {
            Some((parent, SpanKind::Round(round))) => {
                let step = self.begin_step(event, parent, format!("round {round}"));
                step.add("roundtable.round", round);
            }
            Some((parent, SpanKind::Task { index })) => self.begin_task(event, parent, index),
            Some((parent, SpanKind::Source(source))) => {
                let found = source.index().and_then(|index| self.sources.get(index));
                let url = found.map(|found| Arc::clone(&found.url));
                let step = self.begin_step(event, parent, format!("source {source}"));
                url.into_iter().for_each(|url| step.known(Known::Input, &*url));
            }
            _ => {}
        }
        if let EventKind::RunClosed(closed) = &event.kind {
            self.end_inner(event.at, &closed.reason, to);
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
            self.describe_call(id, &mut open);
            to.push(self.span(id, open, at_ns, None));
        }
    }

    /// Ends the spans that the run has left open, such as a round in which it stopped: a viewer shows spans without
    /// a parent as traces of their own.
    fn end_inner(&mut self, at: Elapsed, reason: &StopReason, to: &mut Vec<Span>) {
        let at_ns = self.time(at);
        let (ends, run): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.open).into_iter().partition(|(id, _)| *id != SpanId::RUN);
        self.open = run;
        for (id, mut open) in ends.into_iter().rev() {
            let mut status = Status::default();
            if open.observed.is_some() {
                open.attributes.add("roundtable.lost", true);
            } else if !reason.is_success() {
                status.code = ERROR;
                self.fail(&mut open, &mut status, &word_of(reason), &reason.to_string());
            }
            self.describe_call(id, &mut open);
            to.push(self.span(id, open, at_ns, Some(status)));
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
        let session = head.plan.get().session();
        self.conversation = session.and_then(|session| match session.message {
            1 => Some(head.run.clone()),
            _ => session.first_run.clone(),
        });
        self.describe_conversation(&mut attributes);
        attributes.known(Known::Kind, "CHAIN");
        attributes.known(Known::Operation, "invoke_workflow");
        // A later run of a session answers a message, not the goal.
        let message = head.plan.get().message().unwrap_or(&head.goal);
        attributes.known(Known::Input, message);
        let name = format!("invoke_workflow {}", head.scenario);
        self.open(SpanId::RUN, SpanId::RUN, at, name, SpanRole::Step, attributes);
    }

    /// Viewers group the runs of a session by it.
    fn describe_conversation(&self, attributes: &mut AttributeList) {
        if let Some(run) = &self.conversation {
            attributes.known(Known::Conversation, run.as_str());
        }
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
            given: None,
            said: None,
            observed: None,
            steps: BTreeMap::new(),
        })
    }

    /// A round, a task or a source begins; returns the attributes of its span.
    fn begin_step(&mut self, event: &Event, parent: SpanId, name: String) -> &mut AttributeList {
        let mut attributes = self.attributes();
        attributes.known(Known::Kind, "CHAIN");
        &mut self.open(event.span, parent, event.at, name, SpanRole::Step, attributes).attributes
    }

    fn begin_task(&mut self, event: &Event, parent: SpanId, index: u32) {
        let task = usize::try_from(index).ok().and_then(|index| self.tasks.get(index)).cloned();
        let worker = task.as_ref().map(|task| format!(" {}", task.worker)).unwrap_or_default();
        let step = self.begin_step(event, parent, format!("task {}{worker}", index + 1));
        if let Some(task) = task {
            step.known(Known::Input, Value::Object((*task.args).clone()).to_string());
        }
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
        self.describe_conversation(&mut attributes);
        // The agent of another program is the first part of the name of its guard.
        let guard = call.tool.as_str().split('.').next().filter(|_| is_agent);
        // The agents of a resilience run have numbers.
        let numbered = matches!(purpose, Purpose::AgentStep { .. }).then(|| purpose.label());
        let speaker = purpose.speaker().or(guard).or(numbered.as_deref());
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
        // The name says who asks: the seats of a round, and agents with the same model, are told apart.
        let (target, who) = match role {
            SpanRole::Model => (self.describe_model(call, &mut attributes), purpose.script_step()),
            SpanRole::Tool => {
                attributes.known(Known::Tool, call.tool.as_str());
                (call.tool.to_string(), numbered.as_deref())
            }
            _ => (speaker.unwrap_or(call.tool.as_str()).to_owned(), None),
        };
        let who = who.map(|who| format!(" {who}")).unwrap_or_default();
        let messages = match self.has_texts {
            true => self.messages_of(call),
            false => Vec::new(),
        };
        let parent = self.attempts.get(&call.parent).copied().unwrap_or(call.parent);
        let mut given = None;
        if let Some(args) = call.args.as_ref().filter(|_| self.has_texts) {
            let args = args.to_string();
            attributes.known(Known::Input, &*args);
            if role == SpanRole::Tool {
                attributes.known(Known::Arguments, args);
            }
        } else if let Some(last) = messages.last() {
            let prompt = prompt_json(&messages);
            match role {
                SpanRole::Model => attributes.known(Known::Input, &*prompt),
                _ => attributes.known(Known::Input, &*last.content),
            }
            attributes.known(Known::InputMessages, prompt);
            self.give(parent, call);
        } else if role == SpanRole::Agent && self.has_texts {
            given = self.given_to(purpose);
        }
        let name = format!("{} {target}{who}", operation.unwrap_or("call"));
        let open = self.open(event.span, parent, event.at, name, role, attributes);
        open.given = given;
        open.call = Some(OpenCall {
            started: Box::new(call.clone()),
            attempts: Vec::new(),
            usage: Usage::default(),
            cost_usd: None,
            reply: None,
            failed: None,
            messages,
        });
    }

    /// What an agent in control was given, as far as it is known before its prompt.
    fn given_to(&self, purpose: &Purpose) -> Option<Arc<str>> {
        let Purpose::SwarmTurn { agent, from, .. } = purpose else { return None };
        if from.is_some() {
            let handed = self.handed.as_ref().filter(|(to, _)| to == agent);
            return Some(handed.and_then(|(_, message)| message.clone()).unwrap_or_default());
        }
        let head = self.head.as_ref()?;
        Some(head.plan.get().message().unwrap_or(&head.goal).into())
    }

    /// The prompt of an agent's model says best what the agent was given.
    fn give(&mut self, agent: SpanId, call: &CallStarted) {
        let asked = call.prompt.messages.iter().rev().find(|it| it.role == MessageRole::User);
        if let (Some(asked), Some(agent)) = (asked, self.open.get_mut(&agent))
            && agent.given.take().is_some()
        {
            agent.attributes.known(Known::Input, &*asked.content);
        }
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
        if let Some(first) = call.prompt.first.and_then(|first| usize::try_from(first).ok()) {
            messages.truncate(first);
        }
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

    fn attempt_failed(&mut self, event: &Event, failed: &AttemptFailed) {
        let class = failed.class.word();
        let mut about = vec![("exception.type", class.into())];
        if self.has_texts {
            about.push(("exception.message", failed.text.clone().into()));
        }
        self.note(event, ATTEMPT_FAILED, about);
        if let Some(call) = self.call(event.span) {
            call.failed = Some((class, failed.text.clone()));
            call.usage.add(failed.usage.unwrap_or_default());
        }
    }

    fn asked(&mut self, event: &Event, asked: &QuestionAsked) {
        let subject = serde_json::to_value(&asked.subject).unwrap_or_default();
        let mut about = vec![
            ("roundtable.cause", subject["about"].clone()),
            ("roundtable.person", asked.who.as_str().into()),
        ];
        if self.has_texts {
            about.push(("roundtable.text", question_text(&asked.subject).into()));
        }
        self.note(event, "question", about);
    }

    /// Takes what spans need of the fact of a pattern.
    fn take_fact(&mut self, event: &Event, fact: &PatternFact) {
        if let Some(fact) = fact.observed() {
            self.take_observed(event, fact);
        }
        match fact.for_spans() {
            Some(ForSpans::Tasks(tasks)) => self.tasks = Arc::clone(tasks),
            Some(ForSpans::Sources(sources)) => self.sources = Arc::clone(sources),
            Some(ForSpans::Handoff(to, message)) => {
                self.handed = Some((to.clone(), message.clone()))
            }
            Some(ForSpans::Answer(text)) => {
                self.answer.get_or_insert_with(|| Arc::clone(text));
            }
            _ => {}
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
                let reason = &closed.reason;
                self.fail(&mut open, &mut status, &word_of(reason), &reason.to_string());
            }
            EventKind::CallFailed { reason, .. } if state == SpanState::Denied => {
                open.attributes.add("roundtable.denied", true);
                open.attributes.known(Known::Output, reason.to_string());
            }
            EventKind::CallFailed { reason, .. } => self.fail_call(&mut open, &mut status, reason),
            EventKind::CallDegraded { reason, value, .. } => {
                open.attributes.add("roundtable.degraded", true);
                self.fail_call(&mut open, &mut status, reason);
                if let Some(value) = value {
                    open.attributes.known(Known::Output, &*value_text(value));
                }
            }
            EventKind::Pattern(fact) => self.describe_fact(fact, &mut open, &mut status),
            _ => {}
        }
        self.describe_call(event.span, &mut open);
        to.push(self.span(event.span, open, at_ns, Some(status)));
    }

    /// What the fact that ends a span says of it.
    fn describe_fact(&self, fact: &PatternFact, open: &mut OpenSpan, status: &mut Status) {
        match fact.for_spans() {
            Some(ForSpans::Decision(word)) => open.attributes.add("roundtable.result", word),
            Some(ForSpans::Failed { word, text, is_denied }) => {
                if is_denied {
                    open.attributes.add("roundtable.denied", true);
                }
                self.fail(open, status, &word, &text);
            }
            _ => {}
        }
        if let Some(ObservedFact::Closed { end, .. }) = fact.observed() {
            match end {
                SpanEnd::Lost => open.attributes.add("roundtable.lost", true),
                SpanEnd::Failed => {
                    let about = open.observed.as_ref();
                    let error = about.and_then(|about| about.error.clone()).unwrap_or_default();
                    self.fail(open, status, "_OTHER", &error);
                }
                SpanEnd::Done | SpanEnd::Interrupted | SpanEnd::Tripped => {}
            }
        }
    }

    /// Says why a call failed: its last attempt knows best.
    fn fail_call(&self, open: &mut OpenSpan, status: &mut Status, reason: &StopReason) {
        let failed = open.call.as_ref().and_then(|call| call.failed.clone());
        let (class, text) = match failed {
            Some((class, text)) => (class.to_owned(), text),
            None => (word_of(reason), reason.to_string()),
        };
        self.fail(open, status, &class, &text);
    }

    /// Says why a span failed.
    fn fail(&self, open: &mut OpenSpan, status: &mut Status, class: &str, text: &str) {
        if status.code != ERROR {
            return;
        }
        open.attributes.known(Known::Error, class);
        status.message = if self.has_texts { text.to_owned() } else { class.to_owned() };
        let mut about = self.attributes();
        about.add("exception.type", class);
        if self.has_texts && !text.is_empty() {
            about.add("exception.message", text);
        }
        // The last attempt is the failure of its call: it is said once.
        let last = open.events.iter_mut().rfind(|event| event.name == ATTEMPT_FAILED);
        match last.filter(|last| last.attributes == about.list) {
            Some(last) => EXCEPTION.clone_into(&mut last.name),
            None => {
                let time_unix_nano = self.time(self.last);
                let name = EXCEPTION.to_owned();
                open.events.push(SpanEvent { time_unix_nano, name, attributes: about.list });
            }
        }
    }

    /// What is known of a call at its end.
    fn describe_call(&mut self, id: SpanId, open: &mut OpenSpan) {
        let Some(call) = open.call.take() else { return };
        let OpenCall { started, attempts, usage, cost_usd, reply, mut messages, .. } = call;
        let attributes = &mut open.attributes;
        if let Some(given) = open.given.take().filter(|given| !given.is_empty()) {
            attributes.known(Known::Input, &*given);
        }
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
        if let Some(finish) = reply.finish.as_ref().filter(|_| open.role == SpanRole::Model) {
            attributes.known(Known::Finish, Value::from(vec![finish.to_string()]));
        }
        if !self.has_texts {
            return;
        }
        let text = reply_text(&reply);
        match open.role {
            SpanRole::Model => {
                let said = reply_json(&reply);
                attributes.known(Known::Output, &*said);
                attributes.known(Known::OutputMessages, said);
                messages.push(ChatMessage::from_reply(&reply));
                self.keep_conversation(id, messages);
                if let Some(agent) = self.open.get_mut(&open.parent) {
                    agent.said = Some(reply);
                }
            }
            SpanRole::Tool => {
                attributes.known(Known::Output, &*text);
                attributes.known(Known::Result, &*text);
            }
            // An agent that hands over says so with its last call.
            _ if text.is_empty() => {
                let said = open.said.take().map(|reply| said_text(&reply));
                said.into_iter().for_each(|text| attributes.known(Known::Output, text));
            }
            _ => attributes.known(Known::Output, &*text),
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
