//! The requests of a guarded program to its models. A request is an attempt of a call. A client's retry is the next
//! attempt of the same call.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::conversations::{Beginning, beginnings};
use super::limits::{GuardAccount, ReachedLimit};
use super::{MAX_SPANS, ObservedRun, ReportedCall};
use crate::base::name::ToolName;
use crate::base::time::millis;
use crate::base::visible::first_bytes;
use crate::gateway::GuardedTool;
use crate::gateway::retry::is_retryable;
use crate::log::bus::LiveSlot;
use crate::log::clock::Clock;
use crate::log::event::{
    AttemptFailed, CallStarted, ChatMessage, EventKind, FailureClass, MessageRole, Purpose, Reply,
    SpanId, StopReason, Usage,
};
use crate::log::facts::observed::{ObservedFact, RecordedReply, SpanAbout, SpanEnd, SpanRole};
use crate::run::model_call::stop_reason;
use crate::run::model_tool;
use crate::scenario::spec::Price;
use crate::scenario::spec::policy::CallPolicy;
use crate::scenario::spec::tool::FaultKind;

/// A request of the program that waits for a decision.
pub struct GuardedRequest {
    pub about: Box<RequestAbout>,
    /// Its body without keys, for people; `None`: it cannot be shown.
    pub body: Box<dyn Fn() -> Option<Value> + Send + Sync>,
    pub decided: oneshot::Sender<Decision>,
}

impl fmt::Debug for GuardedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedRequest").field("about", &self.about).finish_non_exhaustive()
    }
}

/// What is known of a request.
#[derive(Debug, Default)]
pub struct RequestAbout {
    /// The provider that it goes to, else the host.
    pub provider: Arc<str>,
    /// The model; empty: it names none.
    pub model: Arc<str>,
    /// The span of the program in which it was sent; empty: not known.
    pub span: Arc<str>,
    pub call: ReportedCall,
    /// What it is, such as `GET /v1/models`, if it is no call of a model.
    pub unread: Option<Arc<str>>,
    /// SHA-256 of its variable, its path and its body, as it was sent.
    pub digest: [u8; 32],
    /// How many times the client has tried before, as it says.
    pub retry: Option<u32>,
    /// The most tokens that it may use.
    pub estimate: Usage,
    /// Whether it costs nothing, though it is not read.
    pub is_free: bool,
    /// Whether its response has the reply of a model: not with embeddings.
    pub has_reply: bool,
}

/// What happens to a request.
#[derive(Debug)]
pub enum Decision {
    /// It is sent. The result is expected from the reporter.
    Send(AttemptReporter),
    /// It is not sent, and gets this reply.
    Answer(MadeReply),
    Refuse(RequestRefusal),
}

/// A reply of a person or of a fault, in place of a model's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeReply {
    pub text: Arc<str>,
    /// Whether it is the refusal of a model.
    pub is_refusal: bool,
}

/// A request that is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRefusal {
    /// The HTTP status.
    pub status: u16,
    /// One sentence for the person who reads the program's error.
    pub text: String,
    pub retry_after: Option<Duration>,
    /// Whether the client may retry: not where a limit or a person refuses.
    pub may_retry: bool,
}

impl RequestRefusal {
    /// A refusal that the client must not retry.
    pub fn without_retry(status: u16, why: &str) -> Self {
        let text = format!("roundtable: {why}");
        Self { status, text, retry_after: None, may_retry: false }
    }
}

/// Tells the run how an attempt ends. If it is dropped before, the client has gone.
pub struct AttemptReporter {
    /// The reply so far; `None`: it is no call of a model.
    pub live: Option<LiveSlot>,
    /// The body that a person has put in place of the program's.
    pub body: Option<Arc<Value>>,
    /// What happens to the response.
    pub fault: Option<FaultKind>,
    pub(super) ended: oneshot::Sender<AttemptResult>,
}

impl fmt::Debug for AttemptReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptReporter").finish_non_exhaustive()
    }
}

impl AttemptReporter {
    /// The attempt has ended. `recorded`: the response that has passed.
    pub fn end(
        self,
        result: Result<Reply, Box<AttemptFailed>>,
        recorded: Option<Arc<RecordedReply>>,
    ) {
        let _ = self.ended.send(AttemptResult::Model(result.map(Box::new), recorded));
    }

    /// A request that is no call of a model has ended: its status, and the bytes of the response.
    pub fn end_unread(self, status: u16, bytes: u64) {
        let _ = self.ended.send(AttemptResult::Unread { status, bytes });
    }
}

/// How the proxy says that a request has ended.
pub(super) enum AttemptResult {
    Model(Result<Box<Reply>, Box<AttemptFailed>>, Option<Arc<RecordedReply>>),
    Unread { status: u16, bytes: u64 },
}

/// A call of the program.
pub(super) struct GuardedCall {
    /// The span of the program's request, and its place.
    span: SpanId,
    place: usize,
    /// The call in the log; `None`: it is no call of a model.
    call: Option<SpanId>,
    digest: [u8; 32],
    attempts: u32,
    /// The number of attempts in flight. A client can start the next attempt before the end of the last one is known.
    in_flight: u32,
    /// When its last attempt failed, and how.
    failed: Option<(Instant, Box<AttemptFailed>)>,
}

/// How long a failed call waits for the next attempt of its client.
const RETRIED: Duration = Duration::from_secs(60);

/// Longest name of a model in that of its guard, in bytes.
const MAX_NAME: usize = 120;

/// Maximum number of models with a guard of their own.
const MAX_MODELS: usize = 64;

/// An attempt that begins.
pub(super) struct BegunAttempt {
    pub(super) span: SpanId,
    pub(super) call: Option<SpanId>,
    pub(super) number: u32,
    pub(super) tool: Option<Arc<GuardedTool>>,
    pub(super) price: Option<Price>,
    /// Its number among the attempts of the program.
    pub(super) nth: u64,
    pub(super) reached: Option<ReachedLimit>,
    pub(super) account: Arc<GuardAccount>,
}

/// An attempt that has ended.
pub(super) struct EndedAttempt {
    pub(super) span: SpanId,
    pub(super) price: Option<Price>,
    pub(super) how: AttemptEnd,
}

/// How an attempt has ended.
pub(super) enum AttemptEnd {
    Answered(Arc<Reply>),
    Failed(Box<AttemptFailed>),
    /// It was not sent.
    Refused(StopReason),
    Unread {
        status: u16,
        bytes: u64,
    },
}

/// The calls that have not ended, in the order of their starts.
#[derive(Default)]
pub(super) struct GuardedCalls {
    open: VecDeque<GuardedCall>,
    /// The place of the first request of each conversation outside of spans, by its calls.
    first_of: HashMap<SpanId, usize>,
    /// The latest requests that are in no span of the program.
    alone: VecDeque<LoneRequest>,
}

/// A request that is in no span of the program, for the span that is reported later.
struct LoneRequest {
    place: usize,
    about: SpanAbout,
    /// The ids of the tool calls of its reply.
    calls: Vec<Arc<str>>,
}

/// Maximum number of such requests.
const MAX_ALONE: usize = 1_000;

/// How far the clocks of the span and of the request may be apart, in microseconds.
pub(super) const APART_US: u64 = 100_000;

impl GuardedCalls {
    /// The place of the call that a request retries. If the client says that it retries, the last attempt can still be in
    /// flight here.
    fn retried_by(&self, about: &RequestAbout) -> Option<usize> {
        let same = |call: &GuardedCall| call.digest == about.digest && call.call.is_some();
        let mut calls = self.open.iter();
        let is_in_flight = calls.any(|call| same(call) && call.in_flight > 0);
        // Some clients send 0 with each attempt.
        if about.retry.unwrap_or(0) == 0 && is_in_flight {
            return None;
        }
        let has_failed = |call: &GuardedCall| same(call) && call.failed.is_some();
        let failed = self.open.iter().rposition(has_failed);
        let last = || self.open.iter().rposition(same).filter(|_| about.retry.unwrap_or(0) > 0);
        failed.or_else(last)
    }

    /// When the next failed call ends because its client has not retried.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.open.iter().filter_map(|call| Some(call.failed.as_ref()?.0 + RETRIED)).min()
    }

    fn take(&mut self, span: SpanId) -> Option<GuardedCall> {
        let place = self.open.iter().position(|call| call.span == span)?;
        self.open.remove(place)
    }
}

impl ObservedRun<'_> {
    /// A request has come: the next attempt of its call, or the first one of a new call.
    pub(super) fn begin_attempt(&mut self, about: &RequestAbout) -> BegunAttempt {
        let tool = about.unread.is_none().then(|| self.model_guard(about));
        let name = tool.as_ref().map(|tool| tool.guard.name().clone());
        let price = (self.price_of)(&about.model);
        let account = Arc::clone(&self.account);
        let retried = self.guarded.retried_by(about);
        self.attempts += u64::from(tool.is_some());
        let nth = self.attempts;
        let sent = retried.is_none().then_some(&mut self.sent);
        let reached = tool.as_ref().and_then(|_| account.reached(self.cx, sent, about, price));
        if let Some(known) = retried.and_then(|at| self.guarded.open.get_mut(at))
            && let Some(call) = known.call
        {
            known.attempts += 1;
            known.in_flight += 1;
            let number = known.attempts;
            let (wait_ms, cause, status) = match known.failed.take() {
                Some((at, failed)) => (millis(at.elapsed()), failed.class, failed.status),
                None => (0, FailureClass::Cancelled, None),
            };
            let span = known.span;
            let retried = EventKind::CallRetried { attempt: number, wait_ms, cause, status };
            self.cx.publish(call, retried);
            let call = Some(call);
            return BegunAttempt { span, call, number, tool, price, nth, reached, account };
        }
        let digests = beginnings(&about.call.messages);
        let (span, place) = self.open_request(about, &digests);
        let call = name.map(|tool| self.start_guarded((span, place), tool, about, digests));
        if let Some(call) = call.filter(|_| about.span.is_empty()) {
            let first = self.spans.get(place).and_then(|known| known.parent).unwrap_or(place);
            if self.guarded.first_of.len() < MAX_SPANS {
                self.guarded.first_of.insert(call, first);
            }
        }
        let digest = about.digest;
        self.guarded.open.push_back(GuardedCall {
            span,
            place,
            call,
            digest,
            attempts: 1,
            in_flight: 1,
            failed: None,
        });
        BegunAttempt { span, call, number: 1, tool, price, nth, reached, account }
    }

    fn open_request(&mut self, about: &RequestAbout, digests: &[Beginning]) -> (SpanId, usize) {
        self.requests += 1;
        let text = |text: &Arc<str>| Some(Arc::clone(text)).filter(|it| !it.is_empty());
        let (name, role) = match &about.unread {
            Some(what) => (Arc::clone(what), SpanRole::Step),
            None => (text(&about.model).unwrap_or_else(|| "model".into()), SpanRole::Model),
        };
        let messages = &about.call.messages;
        let asked = messages.iter().rev().find(|it| it.role == MessageRole::User);
        let last = asked.or(messages.last());
        let of_program = SpanAbout {
            id: format!("request {}", self.requests).into(),
            name,
            role,
            model: text(&about.model).filter(|_| role == SpanRole::Model),
            provider: text(&about.provider),
            input: last.map(|message| Arc::clone(&message.content)),
            from_us: Some(now_us()),
            guarded: true,
            ..SpanAbout::default()
        };
        self.see(about.span.is_empty(), &of_program);
        let of_program_span = self.parent_of(&about.span, &of_program);
        // Without spans, the calls of one conversation belong together.
        let first = self.conversations.continued_by(digests);
        let parent = of_program_span.or_else(|| {
            self.guarded.first_of.get(&first?).copied().filter(|_| about.span.is_empty())
        });
        let counted = SpanAbout { tokens_in: Some(0), ..of_program.clone() };
        let place = self.add(parent, of_program.clone(), (false, false));
        if of_program_span.is_none() && role == SpanRole::Model {
            if self.guarded.alone.len() >= MAX_ALONE {
                self.guarded.alone.pop_front();
            }
            let lone = LoneRequest { place, about: of_program, calls: Vec::new() };
            self.guarded.alone.push_back(lone);
        }
        self.count(place, &counted);
        if let Some(known) = of_program_span.and_then(|at| self.spans.get_mut(at)) {
            known.has_request |= role == SpanRole::Model;
        }
        (self.id_at(Some(place)), place)
    }

    fn start_guarded(
        &mut self,
        (parent, place): (SpanId, usize),
        tool: ToolName,
        about: &RequestAbout,
        digests: Vec<Beginning>,
    ) -> SpanId {
        let model = Some(tool.as_str().into());
        let (id, left_out) = self.conversations.start(&about.call, digests, |prompt| {
            let (args, purpose) = (None, Purpose::Guarded);
            self.cx.open_span(EventKind::CallStarted(Box::new(CallStarted {
                parent,
                tool,
                purpose,
                prompt,
                args,
                model,
                repeat: 0,
            })))
        });
        if let Some(known) = self.spans.get_mut(place) {
            known.call = Some(id);
        }
        self.note_left_out(parent, left_out);
        id
    }

    /// The guard of the model that a request names.
    fn model_guard(&mut self, about: &RequestAbout) -> Arc<GuardedTool> {
        let model = match &*about.model {
            "" => "model",
            model => first_bytes(model, MAX_NAME),
        };
        let named = |model: &str| ToolName::from(format!("{}/{model}", about.provider));
        let mut name = named(model);
        if let Some(known) = self.cx.tools().get(&name) {
            return known;
        }
        if self.models >= MAX_MODELS {
            name = named("others");
            if let Some(known) = self.cx.tools().get(&name) {
                return known;
            }
        }
        self.models += 1;
        let rule = self.account.limits.models.iter().find(|rule| rule.fits(name.as_str()));
        let faults = rule.map(|rule| rule.faults.clone()).unwrap_or_default();
        let policy = rule.map(|rule| Arc::clone(&rule.policy));
        let policy = policy.unwrap_or_else(no_policy);
        let clock = match self.account.is_shared {
            true => Clock::real(),
            false => self.cx.bus().clock().clone(),
        };
        let make = || model_tool(name.clone(), policy, NO_TIMEOUT, faults, &clock);
        let guard = self.account.model(&name, make);
        let price = (self.price_of)(&about.model);
        self.cx.publish(SpanId::RUN, EventKind::ToolAdded { tool: Box::new(guard.head()), price });
        self.cx.tools().add(Arc::clone(&guard), self.cx.bus());
        guard
    }

    /// An attempt has ended.
    pub(super) fn end_attempt(&mut self, ended: EndedAttempt) {
        let EndedAttempt { span, price, how } = ended;
        let Some(known) = self.guarded.open.iter_mut().find(|call| call.span == span) else {
            return;
        };
        known.in_flight = known.in_flight.saturating_sub(1);
        match how {
            // The client retries already.
            AttemptEnd::Failed(_) | AttemptEnd::Refused(_) if known.in_flight > 0 => {}
            AttemptEnd::Failed(failed) if known.call.is_some() && may_be_retried(&failed) => {
                known.failed = Some((Instant::now(), failed));
            }
            how => {
                if let Some(known) = self.guarded.take(span) {
                    self.end_guarded(&known, how, price);
                }
            }
        }
    }

    /// A span of a model has ended in which no request is known: the one with the same reply was sent in it.
    pub(super) fn join_request(
        &mut self,
        place: usize,
        about: &SpanAbout,
        call: Option<&ReportedCall>,
    ) {
        if self.guarded.alone.is_empty() || self.spans.get(place).is_none_or(|it| it.has_request) {
            return;
        }
        let reply = call.and_then(|call| call.reply.as_ref());
        let output = about.output.as_ref().filter(|text| !text.is_empty());
        let is_same = |lone: &LoneRequest| {
            let made = reply.iter().flat_map(|reply| reply.tool_calls.iter());
            let has_call = made.map(|call| &call.id).any(|id| lone.calls.contains(id));
            let is_reply = output.is_some() && lone.about.output.as_ref() == output;
            has_call || is_reply && is_in_time(&lone.about, about)
        };
        let Some(at) = self.guarded.alone.iter().rposition(is_same) else { return };
        let Some(LoneRequest { place: request, about, .. }) = self.guarded.alone.remove(at) else {
            return;
        };
        if let Some(known) = self.spans.get_mut(request) {
            known.parent = Some(place);
        }
        let counted = SpanAbout { tokens_in: Some(0), ..about.clone() };
        self.count(request, &counted);
        if let Some(known) = self.spans.get_mut(place) {
            known.has_request = true;
        }
        let (parent, at_end) = (self.id_at(Some(place)), true);
        let (id, about) = (self.id_at(Some(request)), Arc::new(about));
        self.cx.publish(id, ObservedFact::Opened { parent, at_end, about });
    }

    /// Ends failed calls that their clients have not retried; `all`: every call, since the program has ended.
    pub(super) fn end_failed_calls(&mut self, all: bool) {
        let now = Instant::now();
        let is_over = |call: &GuardedCall| match &call.failed {
            Some((at, _)) => all || *at + RETRIED <= now,
            None => all,
        };
        while let Some(at) = self.guarded.open.iter().position(is_over) {
            let Some(mut known) = self.guarded.open.remove(at) else { return };
            let gone = || AttemptFailed::new(FailureClass::Cancelled, "the program has ended");
            let failed = known.failed.take().map_or_else(gone, |(_, failed)| failed);
            self.end_guarded(&known, AttemptEnd::Failed(failed), None);
        }
    }

    fn end_guarded(&mut self, known: &GuardedCall, how: AttemptEnd, price: Option<Price>) {
        let attempts = known.attempts;
        let mut about =
            SpanAbout { until_us: Some(now_us()), guarded: true, ..SpanAbout::default() };
        let (end, event) = match &how {
            AttemptEnd::Answered(reply) => {
                about.output = Some(Arc::clone(&reply.text)).filter(|it| !it.is_empty());
                if let Some(usage) = reply.usage {
                    about.tokens_in = Some(usage.prompt_tokens);
                    about.tokens_out = Some(usage.completion_tokens);
                    about.tokens_cached = Some(usage.cached_tokens).filter(|count| *count > 0);
                    about.tokens_written = Some(usage.cache_write_tokens).filter(|it| *it > 0);
                    about.cost_usd = price.map(|price| price.cost(&usage));
                }
                self.last_reply.clone_from(&about.output);
                self.hooked.called_by_model(&reply.tool_calls);
                if let Some(call) = known.call {
                    let message = ChatMessage::assistant(
                        Arc::clone(&reply.text),
                        Arc::clone(&reply.tool_calls),
                    );
                    self.conversations.reply(call, &message);
                }
                (SpanEnd::Done, EventKind::CallAnswered { attempts })
            }
            AttemptEnd::Failed(failed) => {
                about.error = Some(failed.text.as_str().into());
                let end = match failed.class {
                    FailureClass::Cancelled => SpanEnd::Lost,
                    _ => SpanEnd::Failed,
                };
                (end, EventKind::CallFailed { attempts, reason: stop_reason(failed) })
            }
            AttemptEnd::Refused(reason) => {
                about.error = Some(reason.phrase().into());
                (SpanEnd::Failed, EventKind::CallFailed { attempts, reason: reason.clone() })
            }
            AttemptEnd::Unread { status, bytes } => {
                about.output = Some(format!("HTTP {status}, {bytes} bytes").into());
                let failed = *status >= 400;
                about.error = failed.then(|| format!("HTTP {status}").into());
                let end = if failed { SpanEnd::Failed } else { SpanEnd::Done };
                (end, EventKind::CallAnswered { attempts })
            }
        };
        if let Some(call) = known.call {
            self.cx.publish(call, event);
        }
        self.see(false, &about);
        if let Some(lone) = self.guarded.alone.iter_mut().rev().find(|it| it.place == known.place) {
            lone.about.output.clone_from(&about.output);
            lone.about.until_us = about.until_us;
            if let AttemptEnd::Answered(reply) = &how {
                lone.calls = reply.tool_calls.iter().map(|call| Arc::clone(&call.id)).collect();
            }
        }
        if let Some(known) = self.spans.get_mut(known.place) {
            known.is_open = false;
        }
        // The call of the log counts both.
        let (repeats_call, repeats_tokens) = (true, true);
        let about = Arc::new(about);
        self.cx
            .publish(known.span, ObservedFact::Closed { end, repeats_call, repeats_tokens, about });
    }
}

/// The policy of a model or a tool that no rule names.
pub(super) fn no_policy() -> Arc<CallPolicy> {
    Arc::new(CallPolicy {
        timeout: None,
        max_attempts: 1,
        retry_budget: None,
        breaker: None,
        bulkhead: None,
        ..CallPolicy::default()
    })
}

/// A client may wait for an answer as long as it wants.
pub(super) const NO_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

/// Whether the client may try again. One that has gone may have had a timeout.
fn may_be_retried(failed: &AttemptFailed) -> bool {
    failed.class == FailureClass::Cancelled || is_retryable(failed)
}

pub(super) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Whether a request was sent and answered while a span was open.
fn is_in_time(request: &SpanAbout, span: &SpanAbout) -> bool {
    let from =
        span.from_us.is_none_or(|from| request.from_us.is_some_and(|it| it + APART_US >= from));
    from && span
        .until_us
        .is_none_or(|until| request.until_us.is_some_and(|it| it <= until + APART_US))
}
