//! An observed run: what another program reports becomes the facts of a log. Spans come in any order: a parent
//! that only its children have named is open until it is reported.

mod attempts;
mod conversations;
mod guarded;
mod limits;
mod tools;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use self::attempts::make_attempt;
use self::conversations::{Conversations, LeftOut};
use self::guarded::{EndedAttempt, GuardedCalls};
use self::limits::SentRequests;
use self::tools::{EndedTool, HookedTools, make_tool_call};
use crate::base::name::ToolName;
use crate::log::bus::LiveSlot;
use crate::log::event::{
    BoundaryId, CallStarted, ChatMessage, EventKind, MessageRole, Purpose, Reply, RunId, SpanId,
    StopReason,
};
use crate::log::facts::observed::{
    ObservedFact, PartEnded, SPANS_MISSING, SpanAbout, SpanEnd, SpanRole, TEXTS_MISSING,
    TextStream, TraceAbout,
};
use crate::run::RunContext;
use crate::scenario::Scenario;
use crate::scenario::patterns::observed;
use crate::scenario::patterns::observed::{GuardLimits, ObservedProgram, ObservedSpec};
use crate::scenario::spec::Price;
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::spec::tool::ToolOffer;

pub use self::guarded::{
    AttemptReporter, Decision, GuardedRequest, MadeReply, RequestAbout, RequestRefusal,
};
pub use self::limits::GuardAccount;
pub use self::tools::{HookedCall, ToolAbout, ToolDecision, ToolReport};

/// What is observed of a program that is watched.
#[derive(Debug)]
pub enum Observation {
    /// A span began. `parent`: the id of the span around it; empty: the run.
    Opened { parent: Arc<str>, about: SpanAbout, call: Option<Box<ReportedCall>> },
    /// A span ended, whether or not its start was reported.
    Closed {
        parent: Arc<str>,
        end: SpanEnd,
        about: SpanAbout,
        call: Option<Box<ReportedCall>>,
        /// What happened in it.
        notes: Vec<Arc<str>>,
    },
    /// A line of the output (`span` is empty), or a log record.
    Text { span: Arc<str>, stream: TextStream, text: Arc<str> },
    /// The part of a model's reply that the program has received so far.
    Partial { span: Arc<str>, text: Arc<str> },
    /// Something that the operator should know of the receiver.
    Warning(String),
    /// The trace belongs to this test or cell.
    Part(Arc<str>),
    /// That test or cell has ended, with an error if it failed.
    PartEnded(Arc<str>, Option<Arc<str>>),
    /// The runs before and after this one in its thread.
    Neighbour { after: Option<RunId>, before: Option<RunId> },
    /// A request to a model of a program that is guarded.
    Request(GuardedRequest),
    /// A guarded program asks before it executes a tool.
    Tool(HookedCall),
    /// Nothing more comes for the run.
    Over(ObservedEnd),
}

/// What a span reports of a call of a model. Each text has at most 32 KiB.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportedCall {
    /// The messages of the prompt.
    pub messages: Vec<ChatMessage>,
    /// The tools that the model is offered.
    pub tools: Vec<ToolOffer>,
    pub reply: Option<ChatMessage>,
    /// Why the reply ended, in the provider's word (`stop`, `length`).
    pub finish: Option<Arc<str>>,
}

impl ReportedCall {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.reply.is_none()
    }
}

/// How an observed run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservedEnd {
    Spans,
    /// The program has ended, with this exit code.
    Program(i32),
}

/// Sends what happens in the program; it may wait for the run to read it.
pub type ObservationSender = mpsc::Sender<Observation>;

/// Observations that the run has not read yet: more make the sender wait.
const QUEUED: usize = 1_024;

/// The price of a model with this name; `None`: it is not known.
pub type PriceOf = Arc<dyn Fn(&str) -> Option<Price> + Send + Sync>;

/// What a run reads.
struct Source {
    observed: mpsc::Receiver<Observation>,
    price_of: PriceOf,
    account: Option<Arc<GuardAccount>>,
}

/// The scenario of one observed run of a program, and the sender of its observations. `price_of`: the prices of its
/// models; `account`: what it may use, if it is guarded.
pub fn scenario(
    program: &ObservedProgram,
    price_of: PriceOf,
    account: Option<Arc<GuardAccount>>,
) -> Option<(Scenario, ObservationSender)> {
    let (sender, observed) = mpsc::channel::<Observation>(QUEUED);
    let source = Box::new(Source { observed, price_of, account });
    Some((observed::scenario(program, source)?, sender))
}

/// Most spans of a run; more are counted. The dashboard needs about 1 KiB for each.
pub const MAX_SPANS: usize = 1_000_000;

/// Most lines of output, log records and notes of a run; more are counted.
const MAX_TEXTS: u64 = 200_000;

/// Reads what is observed of the program until it is over.
///
/// # Errors
/// The program, or its outermost span, failed.
pub async fn play(cx: &RunContext, spec: &ObservedSpec) -> Result<(), StopReason> {
    let source = spec.source().and_then(|it| it.downcast::<Source>().ok());
    let Some(mut source) = source else { return Err(StopReason::InternalError) };
    cx.set_phase("program".to_owned());
    let none = || Arc::new(GuardAccount::new(GuardLimits::default(), None, false));
    let account = source.account.unwrap_or_else(none);
    let mut run = ObservedRun::new(cx, source.price_of, account);
    set_pauses(cx, &run.account.limits);
    let mut attempts = FuturesUnordered::new();
    // Only the calls of the program pass boundaries.
    let _waits = cx.control.mark_waiting();
    let end = loop {
        // A reader of the log, or the store, may be behind.
        if !cx.bus().is_within_limits() {
            cx.bus().wait_for_room().await;
        }
        let failed = run.guarded.next_end();
        tokio::select! {
            // The end of an attempt comes before the request that tries again.
            biased;
            Some(ended) = attempts.next(), if !attempts.is_empty() => run.end_asked(ended),
            observed = source.observed.recv() => match observed {
                Some(Observation::Over(end)) => break end,
                Some(Observation::Request(request)) => {
                    let begun = run.begin_attempt(&request.about);
                    let made = make_attempt(cx, begun, request);
                    attempts.push(made.map(EndedCall::Request).boxed());
                }
                Some(Observation::Tool(call)) => {
                    // Beyond the limit of spans it gets no answer, and so is not executed.
                    if let Some(begun) = run.begin_tool(&call.about) {
                        let made = make_tool_call(cx, begun, call);
                        attempts.push(made.map(EndedCall::Tool).boxed());
                    }
                }
                Some(observed) => run.receive(observed),
                // The receiver has ended.
                None => break ObservedEnd::Spans,
            },
            () = sleep_until(failed.unwrap_or_else(Instant::now)), if failed.is_some() => {
                run.end_failed_calls(false);
            }
        }
    };
    // Those that have just ended.
    while let Some(Some(ended)) = attempts.next().now_or_never() {
        run.end_asked(ended);
    }
    drop(attempts);
    run.end_failed_calls(true);
    run.note_unasked_tools();
    run.end(end)
}

/// A request or a call of a tool that has ended.
enum EndedCall {
    Request(EndedAttempt),
    Tool(EndedTool),
}

/// Sets the breakpoints of the command line. Without people the run never pauses: its clients would hang.
fn set_pauses(cx: &RunContext, limits: &GuardLimits) {
    if limits.pause_at.is_empty() && limits.pauses.is_empty() {
        return;
    }
    if !cx.questions().are_for_people() {
        let text =
            "nobody is asked, so the run does not pause: use the dashboard, or --people wait";
        cx.publish(SpanId::RUN, EventKind::Warning { text: text.to_owned() });
        return;
    }
    for at in &limits.pause_at {
        cx.control.pause_at(BoundaryId::new(at.as_str()));
    }
}

/// A span that was reported, or named as a parent.
struct KnownSpan {
    id: SpanId,
    /// The place of the span around it; `None`: it is in the run.
    parent: Option<usize>,
    /// Whether only its children have named it.
    is_named_only: bool,
    is_open: bool,
    /// The model, of a call of one.
    model: Option<Arc<str>>,
    /// Of a model: the call in the log.
    call: Option<SpanId>,
    /// What is counted at this span.
    counted: Counted,
    /// What is counted at spans inside this one.
    inside: Counted,
    /// Whether a request that went through the proxy was sent in it: its call is that of the request.
    has_request: bool,
    /// The latest start of a child, and the latest end of an interrupted child, in microseconds.
    child_began_us: u64,
    child_asked_us: Option<u64>,
}

/// Which figures are counted.
#[derive(Clone, Copy, Default)]
struct Counted {
    /// The call of a model.
    call: bool,
    tokens: bool,
}

struct ObservedRun<'a> {
    cx: &'a RunContext,
    price_of: PriceOf,
    spans: Vec<KnownSpan>,
    places: HashMap<Arc<str>, usize>,
    conversations: Conversations,
    /// The partial replies of open calls of models, by the place of the span.
    partial: HashMap<usize, LiveSlot>,
    /// Spans beyond the limit.
    left_out: u64,
    /// Lines, records and notes, also those beyond the limit.
    texts: u64,
    /// The outermost span that ended last: its output is the answer.
    root: Option<(usize, SpanEnd, Arc<SpanAbout>)>,
    /// The last reply of a model: the answer where the outermost span has no output.
    last_reply: Option<Arc<str>>,
    /// The user's message in the first prompt: the title of the run if its outermost span has no input.
    first_asked: Option<Arc<str>>,
    /// The latest [`ObservedFact::Named`] of the run.
    named: TraceAbout,
    /// The first and the last time of its spans.
    range_us: Option<(u64, u64)>,
    has_tripped: bool,
    has_failed_part: bool,
    /// The calls of a guarded program.
    guarded: GuardedCalls,
    /// The number of its requests, and of its models.
    requests: u64,
    models: usize,
    hooked: HookedTools,
    /// The limits, and what is used of them.
    account: Arc<GuardAccount>,
    /// The number of its attempts, and its requests.
    attempts: u64,
    sent: SentRequests,
}

/// Deepest spans that are followed to the outermost one.
const MAX_DEPTH: usize = 64;

impl<'a> ObservedRun<'a> {
    fn new(cx: &'a RunContext, price_of: PriceOf, account: Arc<GuardAccount>) -> Self {
        Self {
            cx,
            price_of,
            spans: Vec::new(),
            places: HashMap::new(),
            conversations: Conversations::default(),
            partial: HashMap::new(),
            left_out: 0,
            texts: 0,
            root: None,
            last_reply: None,
            first_asked: None,
            named: TraceAbout::default(),
            range_us: None,
            has_tripped: false,
            has_failed_part: false,
            guarded: GuardedCalls::default(),
            requests: 0,
            models: 0,
            hooked: HookedTools::default(),
            account,
            attempts: 0,
            sent: SentRequests::default(),
        }
    }

    fn end_asked(&mut self, ended: EndedCall) {
        match ended {
            EndedCall::Request(ended) => self.end_attempt(ended),
            EndedCall::Tool(ended) => self.end_tool(ended),
        }
    }

    fn receive(&mut self, observed: Observation) {
        match observed {
            Observation::Opened { parent, about, call } => {
                self.see(parent.is_empty(), &about);
                let place = self.open(&parent, about, false);
                if let (Some(place), Some(call)) = (place, call) {
                    self.start_call(place, &call);
                }
            }
            Observation::Closed { parent, end, about, call, notes } => {
                self.close(&parent, end, about, (call.as_deref(), notes));
            }
            Observation::Text { span, stream, text } => {
                let span = self.id_at(self.places.get(&span).copied());
                self.add_text(span, ObservedFact::Text { stream, text });
            }
            Observation::Partial { span, text } => self.add_partial(&span, &text),
            Observation::Warning(text) => {
                self.cx.publish(SpanId::RUN, EventKind::Warning { text });
            }
            Observation::Part(part) => {
                self.name(TraceAbout { part: Some(part), ..TraceAbout::default() });
            }
            Observation::PartEnded(part, error) => {
                self.has_failed_part |= error.is_some();
                let exit_code = i32::from(error.is_some());
                let part = Some(Arc::new(PartEnded { part, error }));
                self.cx.publish(SpanId::RUN, ObservedFact::Ended { exit_code, part });
            }
            Observation::Neighbour { after, before } => {
                self.name(TraceAbout { after, before, ..TraceAbout::default() });
            }
            Observation::Request(_) | Observation::Tool(_) | Observation::Over(_) => {}
        }
    }

    /// Publishes the title, the thread and the neighbours of the run, if something is new.
    fn name(&mut self, later: TraceAbout) {
        let known = self.named.clone();
        let about = TraceAbout {
            part: known.part.or(later.part),
            input: known.input.or(later.input),
            thread: known.thread.or(later.thread),
            after: known.after.or(later.after),
            before: known.before.or(later.before),
        };
        if about != self.named {
            self.named = about.clone();
            self.cx.publish(SpanId::RUN, ObservedFact::Named { about: Arc::new(about) });
        }
    }

    /// Updates the duration, and the title and the thread of the run, from a span.
    fn see(&mut self, is_outermost: bool, about: &SpanAbout) {
        let [from, until] = [about.from_us, about.until_us].map(|time| time.map(|at| (at, at)));
        for (from, until) in [from, until].into_iter().flatten() {
            let known = self.range_us.unwrap_or((from, until));
            self.range_us = Some((known.0.min(from), known.1.max(until)));
        }
        let input = about.input.as_ref().filter(|_| is_outermost && self.named.input.is_none());
        let thread = about.thread.as_ref().filter(|_| self.named.thread.is_none());
        if input.is_some() || thread.is_some() {
            let (input, thread) = (input.map(conversations::asked_in), thread.cloned());
            self.name(TraceAbout { input, thread, ..TraceAbout::default() });
        }
    }

    fn add_text(&mut self, span: SpanId, fact: ObservedFact) {
        self.texts += 1;
        if self.texts <= MAX_TEXTS {
            self.cx.publish(span, fact);
        }
    }

    /// Shows what a reply has now. `text`: all of it, or the beginning of a long one.
    fn add_partial(&mut self, span: &str, text: &str) {
        let Some(place) = self.places.get(span).copied() else { return };
        let Some(known) = self.spans.get(place).filter(|known| known.is_open) else { return };
        let id = known.call.unwrap_or(known.id);
        let slot = self.partial.entry(place).or_insert_with(|| self.cx.bus().live(id));
        if let Some(new) = text.strip_prefix(&slot.text()).filter(|new| !new.is_empty()) {
            slot.push(new);
        }
    }

    /// The span at this place; the run, if there is none.
    fn id_at(&self, place: Option<usize>) -> SpanId {
        place.and_then(|place| self.spans.get(place)).map_or(SpanId::RUN, |known| known.id)
    }

    /// The place of the parent with this id, which is opened if it was never reported; `None`: the run.
    fn parent_of(&mut self, id: &Arc<str>, of: &SpanAbout) -> Option<usize> {
        if id.is_empty() || *id == of.id {
            return None;
        }
        if let Some(place) = self.places.get(id) {
            return Some(*place);
        }
        if self.spans.len() >= MAX_SPANS {
            return None;
        }
        let about = SpanAbout { id: Arc::clone(id), from_us: of.from_us, ..SpanAbout::default() };
        Some(self.add(None, about, (true, false)))
    }

    fn add(
        &mut self,
        parent: Option<usize>,
        about: SpanAbout,
        (is_named_only, at_end): (bool, bool),
    ) -> usize {
        let (key, model, about) = (Arc::clone(&about.id), about.model.clone(), Arc::new(about));
        let fact = ObservedFact::Opened { parent: self.id_at(parent), at_end, about };
        let id = self.cx.open_span(fact);
        let (place, counted) = (self.spans.len(), Counted::default());
        self.places.insert(key, place);
        self.spans.push(KnownSpan {
            id,
            parent,
            is_named_only,
            is_open: true,
            model,
            call: None,
            counted,
            inside: counted,
            has_request: false,
            child_began_us: 0,
            child_asked_us: None,
        });
        place
    }

    /// Opens a span, or adds to an open one; its place. `None`: there are too many.
    fn open(&mut self, parent: &Arc<str>, about: SpanAbout, at_end: bool) -> Option<usize> {
        if let Some(place) = self.places.get(&about.id).copied() {
            let known = self.spans.get(place)?;
            let (id, was_named_only) = (known.id, known.is_named_only);
            if !known.is_open {
                let is_hooked = known.has_request && about.role == SpanRole::Tool;
                return Some(if is_hooked { self.join_tool(place, parent, about) } else { place });
            }
            let parent = self.parent_of(parent, &about);
            let around = self.id_at(parent);
            let known = self.spans.get_mut(place)?;
            if was_named_only || known.parent != parent {
                (known.is_named_only, known.parent) = (false, parent);
                let about = Arc::new(about);
                self.cx.publish(id, ObservedFact::Opened { parent: around, at_end, about });
            }
            return Some(place);
        }
        if let Some(place) = self.hooked.same(&about) {
            return Some(self.join_tool(place, parent, about));
        }
        if self.spans.len() >= MAX_SPANS {
            if self.left_out == 0 {
                let text = format!(
                    "{SPANS_MISSING}the limit of {MAX_SPANS} spans is reached: later ones are only counted"
                );
                self.cx.publish(SpanId::RUN, EventKind::Warning { text });
            }
            self.left_out += 1;
            return None;
        }
        let parent = self.parent_of(parent, &about);
        Some(self.add(parent, about, (false, at_end)))
    }

    /// Publishes the start of a model's call, once its prompt or its reply is known. Returns the call.
    fn start_call(&mut self, place: usize, call: &ReportedCall) -> Option<SpanId> {
        if self.first_asked.is_none() {
            let asked = call.messages.iter().rev().find(|it| it.role == MessageRole::User);
            self.first_asked = asked.map(|message| Arc::clone(&message.content));
        }
        let known = self.spans.get_mut(place)?;
        let (parent, model) = (known.id, known.model.clone());
        if known.has_request {
            return None;
        }
        if known.call.is_none() && !call.is_empty() {
            let digests = conversations::beginnings(&call.messages);
            let (id, left_out) = self.conversations.start(call, digests, |prompt| {
                self.cx.open_span(EventKind::CallStarted(Box::new(CallStarted {
                    parent,
                    tool: ToolName::from("llm"),
                    purpose: Purpose::Watched,
                    prompt,
                    args: None,
                    model,
                    repeat: 0,
                })))
            });
            known.call = Some(id);
            self.note_left_out(parent, left_out);
            return Some(id);
        }
        known.call
    }

    fn note_left_out(&self, span: SpanId, left_out: LeftOut) {
        if let Some(note) = left_out.note() {
            self.cx.publish(span, ObservedFact::Note { text: note.into() });
        }
    }

    /// Publishes the end of a model's call.
    fn end_call(
        &mut self,
        place: usize,
        end: SpanEnd,
        about: &SpanAbout,
        call: Option<&ReportedCall>,
    ) {
        let started = call.and_then(|call| self.start_call(place, call));
        let Some(known) = self.spans.get(place) else { return };
        let (span, Some(id)) = (known.id, started.or(known.call)) else { return };
        let reason = match end {
            SpanEnd::Done | SpanEnd::Interrupted | SpanEnd::Tripped => {
                let reply = call.and_then(|call| call.reply.as_ref());
                let (text, calls) = match reply.map(|reply| self.conversations.reply(id, reply)) {
                    Some((reply, left_out)) => {
                        self.note_left_out(span, left_out);
                        (reply.content, reply.tool_calls)
                    }
                    None => (about.output.clone().unwrap_or_default(), Arc::default()),
                };
                let finish = call.and_then(|call| call.finish.clone());
                let (usage, cost_usd) = (about.usage(), about.cost_usd);
                let reply = Reply {
                    tool_calls: calls,
                    usage,
                    cost_usd,
                    model: about.model.clone(),
                    finish,
                    ..Reply::from_agent_text(text)
                };
                self.cx.publish(id, EventKind::AttemptAnswered(Arc::new(reply)));
                return;
            }
            SpanEnd::Failed => StopReason::SpanFailed,
            SpanEnd::Lost => StopReason::Cancelled,
        };
        self.cx.publish(id, EventKind::CallFailed { attempts: 0, reason });
    }

    fn close(
        &mut self,
        parent: &Arc<str>,
        end: SpanEnd,
        mut about: SpanAbout,
        (call, notes): (Option<&ReportedCall>, Vec<Arc<str>>),
    ) {
        self.see(parent.is_empty(), &about);
        self.has_tripped |= end == SpanEnd::Tripped;
        if parent.is_empty() && self.named.input.is_none() {
            let input = self.first_asked.take();
            self.name(TraceAbout { input, ..TraceAbout::default() });
        }
        let start = SpanAbout { output: None, error: None, until_us: None, ..about.clone() };
        let Some(place) = self.open(parent, start, true) else { return };
        let Some(known) = self.spans.get_mut(place).filter(|known| known.is_open) else { return };
        known.is_open = false;
        self.partial.remove(&place);
        let (id, around) = (known.id, known.parent);
        if let (Some(usage), None) = (about.usage(), about.cost_usd) {
            let model = about.model.as_ref().or(known.model.as_ref());
            let asked = about.asked_model.as_ref();
            let price =
                [model, asked].into_iter().flatten().find_map(|model| (self.price_of)(model));
            about.cost_usd = price.map(|price| price.cost(&usage));
        }
        if about.role == SpanRole::Model && about.output.is_some() {
            self.last_reply.clone_from(&about.output);
        }
        if about.role == SpanRole::Model {
            self.join_request(place, &about, call);
        }
        let [mut repeats_call, repeats_tokens] = self.count(place, &about);
        let has_call = || self.spans.get(place).is_some_and(|known| known.has_request);
        repeats_call |= about.role == SpanRole::Tool && has_call();
        self.see_child(around, end, &about);
        let about = Arc::new(about);
        // A parent of another program is named, and never reported.
        let is_unreported =
            around.and_then(|at| self.spans.get(at)).is_some_and(|it| it.is_named_only);
        if around.is_none() || is_unreported {
            self.root = Some((place, end, Arc::clone(&about)));
        }
        for text in notes {
            self.add_text(id, ObservedFact::Note { text });
        }
        self.end_call(place, end, &about, call);
        self.cx.publish(id, ObservedFact::Closed { end, repeats_call, repeats_tokens, about });
    }

    /// Updates what the span around one knows of its children, when one has ended.
    fn see_child(&mut self, around: Option<usize>, end: SpanEnd, about: &SpanAbout) {
        let Some(around) = around.and_then(|at| self.spans.get_mut(at)) else { return };
        around.child_began_us = around.child_began_us.max(about.from_us.unwrap_or(0));
        if end == SpanEnd::Interrupted {
            around.child_asked_us = about.until_us.or(Some(u64::MAX)).max(around.child_asked_us);
        }
    }

    /// The end of an outermost span. It is interrupted if a child was, and no other child began later.
    fn end_of_root(&self, place: usize, end: SpanEnd) -> SpanEnd {
        let asks = self.spans.get(place).is_some_and(|known| {
            known.child_asked_us.is_some_and(|asked| asked >= known.child_began_us)
        });
        if end == SpanEnd::Done && asks { SpanEnd::Interrupted } else { end }
    }

    /// Counts the call and the tokens of a span that ends, once for all spans that report them: at the innermost one, or
    /// at an outer one that ended earlier. Returns whether another span counts the call, and the tokens.
    fn count(&mut self, place: usize, about: &SpanAbout) -> [bool; 2] {
        let is_call = about.role == SpanRole::Model;
        let has_tokens = about.tokens_in.is_some() || about.cost_usd.is_some();
        let Some(known) = self.spans.get(place) else { return [false; 2] };
        let (inside, mut around) = (known.inside, Counted::default());
        let mut at = known.parent;
        for _ in 0..MAX_DEPTH {
            let Some(outer) = at.and_then(|at| self.spans.get_mut(at)) else { break };
            around.call |= outer.counted.call;
            around.tokens |= outer.counted.tokens;
            outer.inside.call |= is_call;
            outer.inside.tokens |= has_tokens;
            at = outer.parent;
        }
        let repeats_call = is_call && (inside.call || around.call);
        let repeats_tokens = has_tokens && (inside.tokens || around.tokens);
        if let Some(known) = self.spans.get_mut(place) {
            known.counted.call = is_call && !repeats_call;
            known.counted.tokens = has_tokens && !repeats_tokens;
        }
        [repeats_call, repeats_tokens]
    }

    fn end(mut self, end: ObservedEnd) -> Result<(), StopReason> {
        // Children first.
        for place in (0..self.spans.len()).rev() {
            let Some(id) = self.spans.get(place).filter(|it| it.is_open).map(|it| it.id) else {
                continue;
            };
            let about = Arc::<SpanAbout>::default();
            self.end_call(place, SpanEnd::Lost, &about, None);
            let (repeats_call, repeats_tokens) = (false, false);
            let lost =
                ObservedFact::Closed { end: SpanEnd::Lost, repeats_call, repeats_tokens, about };
            self.cx.publish(id, lost);
        }
        let left_out = [
            (self.left_out, SPANS_MISSING, format!("spans beyond {MAX_SPANS}")),
            (
                self.texts.saturating_sub(MAX_TEXTS),
                TEXTS_MISSING,
                format!("lines and notes beyond {MAX_TEXTS}"),
            ),
        ];
        for (count, missing, what) in left_out.into_iter().filter(|(count, ..)| *count > 0) {
            let text = format!("{missing}{count} {what} are left out");
            self.cx.publish(SpanId::RUN, EventKind::Warning { text });
        }
        if self.cx.scenario().pattern.get().is_guarded() && self.requests == 0 {
            let text = "no call of a model passed through roundtable, so no limit could hold: docs/guard.md says \
                        which calls do not pass";
            self.cx.publish(SpanId::RUN, EventKind::Warning { text: text.to_owned() });
        }
        if let Some((from, until)) = self.range_us {
            self.cx.set_elapsed(Duration::from_micros(until.saturating_sub(from)));
        }
        let root = self.root.take();
        let root_end = root.as_ref().map(|(place, end, _)| self.end_of_root(*place, *end));
        let answer = root.and_then(|(.., about)| about.output.clone()).or(self.last_reply);
        if let Some(answer) = answer {
            let end = ReplyEnd::default();
            self.cx.publish(SpanId::RUN, EventKind::AnswerComposed { text: answer, by: None, end });
        }
        let has_failed = match end {
            ObservedEnd::Program(exit_code) => {
                let ended = ObservedFact::Ended { exit_code, part: None };
                self.cx.publish(SpanId::RUN, ended);
                exit_code != 0
            }
            ObservedEnd::Spans => false,
        };
        // The exit code of the program says nothing about a trace that has its own result.
        match root_end {
            _ if self.has_tripped => Err(StopReason::GuardrailTripped),
            Some(SpanEnd::Failed) => Err(StopReason::SpanFailed),
            Some(SpanEnd::Interrupted) => Err(StopReason::WaitsForInput),
            Some(SpanEnd::Done) if self.has_failed_part => Err(StopReason::ProgramFailed),
            Some(SpanEnd::Done) => Ok(()),
            _ if has_failed || self.has_failed_part => Err(StopReason::ProgramFailed),
            _ if self.spans.is_empty() => Err(StopReason::NothingReported),
            _ => Ok(()),
        }
    }
}
