//! The one sentence for an event: its round, its subject, what happened. What all patterns share is
//! here, the rest in the words of the pattern. The list of events and headless text lay it out, and
//! filters match against it. Also commands in words: "ann pauses the run".

use std::borrow::Cow;

use super::glyph::Glyph;
use super::patterns::agents::calls_text;
use super::patterns::{Narrate, words_of};
use super::readable::top_text;
use super::styled::{Badge, StyleRole};
use super::tool_sentence::fill_tool_sentence;
use super::verdict::{place_after, run_lead};
use super::{badges, format, question};
use crate::base::time::{self, millis};
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::log::event::command::BreakerOverride;
use crate::log::event::{
    Answer, AnsweredBy, Asks, BoundaryId, Command, Event, EventKind, FailureClass, ModelLabel,
    Purpose, Reply, RunClosed, RunStarted, SpanId, StepSize, StopReason, Usage,
};
use crate::log::facts::collaboration::Stance;
use crate::log::world::{RunFold, SpanKind, World};
use crate::scenario::patterns::collaboration::Decision;
use crate::scenario::spec::Repair;
use crate::scenario::spec::script::ReplyEnd;

/// What an event says. The texts are as in the log: each layout escapes them.
#[derive(Clone, Debug, PartialEq)]
pub struct Sentence<'a> {
    /// The round that it belongs to, if any.
    pub round: Option<u32>,
    /// The kind of the event, as in the log.
    pub kind: &'a str,
    /// Its subject: a seat, agent, task, source or flag; empty for the run as a whole.
    pub subject: Cow<'a, str>,
    /// What it states or decides, if anything.
    pub stated: Option<Stated>,
    /// What happened.
    pub text: Cow<'a, str>,
    /// What a model, a tool or a page says about it; empty if nothing.
    pub detail: Cow<'a, str>,
    /// How its kind is painted.
    pub role: StyleRole,
    /// A shorter text for headless output, if the whole could be too long there.
    pub brief: Option<String>,
    /// How headless text shows it.
    pub headless: HeadlessForm,
}

/// How many of the places where a run pauses are named.
pub const PLACES: usize = 3;

/// What an event states or decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stated {
    /// A stance and its confidence.
    Stance(Stance, f64),
    /// The decision of a round; `None`: there is none.
    Decision(Option<Decision>),
}

impl Stated {
    /// Its badge.
    pub fn badge(self) -> Badge {
        match self {
            Self::Stance(stance, _) => badges::stance(stance),
            Self::Decision(decision) => decision.map_or(badges::UNDECIDED, badges::decision),
        }
    }
}

/// How headless text shows an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadlessForm {
    Hidden,
    /// The text behind a glyph and a word: the run as a whole.
    Run(Option<Glyph>, &'static str),
    /// The text behind a word in bold type: a step of the run.
    Step(&'static str),
    /// The subject and the text behind a glyph and a word: what happens within a step.
    Sign(Glyph, &'static str),
}

impl<'a> Sentence<'a> {
    /// Sets what happened, and how it is painted.
    pub fn set(&mut self, role: StyleRole, text: impl Into<Cow<'a, str>>) -> &mut Self {
        (self.role, self.text) = (role, text.into());
        self
    }

    /// Sets its subject.
    pub fn about(&mut self, subject: impl Into<Cow<'a, str>>) -> &mut Self {
        self.subject = subject.into();
        self
    }

    /// Sets what is said about it.
    pub fn with_detail(&mut self, detail: impl Into<Cow<'a, str>>) -> &mut Self {
        self.detail = detail.into();
        self
    }

    /// Shows it in headless text as a part of the run as a whole.
    pub fn as_run(&mut self, glyph: impl Into<Option<Glyph>>, word: &'static str) -> &mut Self {
        self.headless = HeadlessForm::Run(glyph.into(), word);
        self
    }

    /// Shows it in headless text as a step of the run.
    pub fn as_step(&mut self, word: &'static str) -> &mut Self {
        self.headless = HeadlessForm::Step(word);
        self
    }

    /// Shows it in headless text behind this sign.
    pub fn as_sign(&mut self, glyph: Glyph, word: &'static str) -> &mut Self {
        self.headless = HeadlessForm::Sign(glyph, word);
        self
    }

    /// What happened, and what is said about it.
    pub fn full_text(&self) -> Cow<'_, str> {
        match (&*self.text, &*self.detail) {
            (text, "") => text.into(),
            ("", detail) => detail.into(),
            (text, detail) => format!("{text}: {detail}").into(),
        }
    }

    /// The decision, if it states one, and what happened. A filter calls this `text`.
    pub fn decided_text(&self) -> Cow<'_, str> {
        match (self.stated, self.full_text()) {
            (Some(stated @ Stated::Decision(_)), text) if text.is_empty() => {
                stated.badge().word.into()
            }
            (Some(stated @ Stated::Decision(_)), text) => {
                format!("{}  {text}", stated.badge().word).into()
            }
            (_, text) => text,
        }
    }

    /// The sentence as one line, for copying and for filters by words.
    pub fn line(&self) -> String {
        let round = self.round.map_or_else(|| "--".to_owned(), |round| format!("R{round}"));
        let stance = match self.stated {
            Some(Stated::Stance(stance, confidence)) => {
                format!("{stance} {}", format::confidence(confidence))
            }
            _ => String::new(),
        };
        let parts = [&*round, self.kind, &self.subject, &stance, &self.decided_text()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ")
    }
}

/// The shortest name of a failure: its HTTP status, else its class.
pub fn failure_name(class: FailureClass, status: Option<u16>) -> Cow<'static, str> {
    match status {
        Some(status) => Cow::Owned(status.to_string()),
        None => Cow::Borrowed(class.phrase()),
    }
}

/// Where a run's model replies come from, for the screen.
pub fn model_text(label: &ModelLabel) -> String {
    match label {
        ModelLabel::Scripted => "scripted".to_owned(),
        ModelLabel::Observed { guarded: false } => "observed".to_owned(),
        ModelLabel::Observed { guarded: true } => "guarded".to_owned(),
        ModelLabel::Live { name, host } => format!("live {name} @ {host}"),
    }
}

/// A duration in milliseconds as it is shown: `1.5s`.
pub fn took_ms(millis: u64) -> String {
    time::duration_text(std::time::Duration::from_millis(millis))
}

/// What happened to a reply that is not whole, and to its calls: `cut at its token limit, its 2 calls
/// are not made`. Empty for a whole one.
pub fn cut_reply(end: ReplyEnd, calls: usize) -> String {
    let Some(mark) = end.mark() else { return String::new() };
    match calls {
        0 => mark.to_owned(),
        1 => format!("{mark}, its call is not made"),
        calls => format!("{mark}, its {calls} calls are not made"),
    }
}

/// The sentence for an event; `world` supplies what the event itself does not contain.
pub fn sentence<'a>(event: &'a Event, world: &'a World) -> Sentence<'a> {
    let words = words_of(world);
    let (round, purpose) = round_and_purpose(event.span, world);
    let mut it = Sentence {
        round,
        kind: event.kind.name(),
        subject: subject_of(event.span, purpose, world, words),
        stated: None,
        text: "".into(),
        detail: "".into(),
        brief: None,
        role: StyleRole::Text,
        headless: HeadlessForm::Hidden,
    };
    fill(&mut it, event, world, words);
    if let Some(words) = words {
        words.tell(event, world, &mut it);
    }
    it
}

/// Fills the sentence for an event in the words that all patterns share.
fn fill<'a>(
    it: &mut Sentence<'a>,
    event: &'a Event,
    run: &'a RunFold,
    words: Option<&'a dyn Narrate>,
) {
    match &event.kind {
        EventKind::RunStarted(_)
        | EventKind::RunClosed(_)
        | EventKind::Pausing { .. }
        | EventKind::Paused { .. }
        | EventKind::Resumed { .. }
        | EventKind::RunResumed { .. }
        | EventKind::CommandTaken { .. }
        | EventKind::RunForked { .. }
        | EventKind::Stepped { .. }
        | EventKind::BreakpointChanged { .. }
        | EventKind::FlagChanged { .. } => fill_run(it, event, run, words),
        EventKind::CallStarted(call) => {
            let size: usize = call.prompt.messages.iter().map(|said| said.content.len()).sum();
            it.about(subject_name(Some(&call.purpose), words));
            it.text = match &call.args {
                Some(args) => format!("calls {} with {}", call.tool, top_text(args)).into(),
                None => format!(
                    "calls {}: {}, {}",
                    call.model.as_deref().unwrap_or(call.tool.as_str()),
                    format::count_noun(call.prompt.messages.len() as u64, "message"),
                    format::bytes(size as u64)
                )
                .into(),
            };
        }
        EventKind::CallAnswered { attempts } => it.text = attempts_text(*attempts).into(),
        EventKind::CallFailed { reason: reason @ StopReason::ApprovalDenied(_), .. } => {
            it.set(StyleRole::Refused, reason.phrase().into_owned())
                .as_sign(Glyph::Refused, "denied");
        }
        EventKind::CallFailed { reason: reason @ StopReason::Cancelled, .. } => {
            let tool = run.tools.for_call(event.span).map(|tool| tool.name());
            let tool = tool.map_or_else(String::new, |tool| format!("{tool}: "));
            it.set(StyleRole::Off, format!("{tool}{}", reason.phrase()))
                .as_sign(Glyph::Off, "cancelled");
        }
        EventKind::CallFailed { attempts, reason } => {
            let text = format!("{} after {}", reason.phrase(), attempts_text(*attempts));
            it.set(StyleRole::Failed, text).as_sign(Glyph::Failed, "failed");
        }
        EventKind::CallRetried { attempt, wait_ms, cause, status } => {
            let (failed, wait) = (failure_name(*cause, *status), took_ms(*wait_ms));
            it.set(StyleRole::Retry, format!("{failed}, attempt {attempt} in {wait}"))
                .as_sign(Glyph::Retry, "retry");
        }
        EventKind::RetryRefused { attempt, limit } => {
            let tool = run.tools.for_call(event.span);
            let setting = tool.map(|tool| format!(" ({})", limit.setting(tool.name())));
            let (why, setting) = (limit.description(), setting.unwrap_or_default());
            it.set(StyleRole::Failed, format!("attempt {attempt} not made: {why}{setting}"))
                .as_sign(Glyph::Failed, "no retry");
        }
        EventKind::AttemptStarted { attempt, timeout_ms, .. } => {
            it.text = format!("attempt {attempt} (timeout {})", took_ms(*timeout_ms)).into();
        }
        EventKind::AttemptAnswered(reply) => match reply.result.as_deref() {
            Some(result) => it.text = top_text(result).into(),
            None => {
                let role = if reply.end.is_whole() { StyleRole::Text } else { StyleRole::Retry };
                it.set(role, reply_text(reply));
            }
        },
        EventKind::AttemptFailed(failed) => {
            it.set(StyleRole::Failed, failure_name(failed.class, failed.status))
                .with_detail(failed.text.as_str());
        }
        EventKind::QuestionAsked(_)
        | EventKind::QuestionAnswered(_)
        | EventKind::QuestionWithdrawn { .. }
        | EventKind::ApprovalWithdrawn { .. } => fill_question(it, event, run),
        EventKind::RequestAdapted { model, parameter } => {
            let text = format!("{model} does not accept {parameter}; retried without it");
            it.set(StyleRole::Retry, text).as_sign(Glyph::Retry, "adapted");
        }
        EventKind::ReplyRepaired { repair, changed } => {
            it.set(StyleRole::Retry, Repair::phrase(repair))
                .with_detail(changed.as_str())
                .as_sign(Glyph::Retry, "repaired");
        }
        EventKind::ReplyRefused(refused) => {
            match refused.repeat {
                Some(nth) => it.set(StyleRole::Retry, format!("{} (retry {nth})", refused.detail)),
                None => it.set(StyleRole::Refused, &*refused.detail),
            };
            it.with_detail(&*refused.preview).as_sign(Glyph::Refused, "refused");
        }
        EventKind::BudgetReached(reached) => {
            it.set(StyleRole::Failed, reached.sentence()).as_run(Glyph::Failed, "");
        }
        EventKind::ConditionFailed { place, text } => {
            it.set(StyleRole::Retry, format!("{place}: {text}")).as_run(Glyph::Alert, "");
        }
        // Headless, a warning is printed on standard error, in every format.
        EventKind::Warning { text } => {
            it.set(StyleRole::Retry, text.as_str());
        }
        EventKind::SessionRunStarted { run, scenario } => {
            it.about(run.as_str()).set(StyleRole::Text, scenario.as_str());
        }
        EventKind::SessionRunClosed { run, reason } => {
            it.about(run.as_str()).set(StyleRole::Text, reason.phrase());
        }
        EventKind::SessionRunDropped { run, events } => {
            it.about(run.as_str()).set(StyleRole::Text, format::count_noun(*events, "event"));
        }
        EventKind::EventsDropped { events } => {
            let text = format!("{} to bound memory", format::count_noun(*events, "event"));
            it.set(StyleRole::Retry, text);
        }
        EventKind::AnswerComposed { text, by, end } => {
            it.about(by.as_ref().map_or("finalize", |by| by.as_str()));
            match end.mark() {
                None => it.set(StyleRole::Done, &**text),
                Some(mark) => it.set(StyleRole::Retry, mark).with_detail(&**text),
            };
        }
        EventKind::Unknown { fields, .. } => {
            it.set(StyleRole::Retry, serde_json::to_string(&**fields).unwrap_or_default());
        }
        // The pattern has the words.
        EventKind::Pattern(_) => {}
        EventKind::PlanRefused { .. }
        | EventKind::ConcurrencyChanged { .. }
        | EventKind::CallQueued
        | EventKind::CallAdmitted { .. }
        | EventKind::CallDegraded { .. }
        | EventKind::AttemptRefused { .. }
        | EventKind::AttemptQueued { .. }
        | EventKind::ClientRetried { .. }
        | EventKind::AttemptProgressed { .. }
        | EventKind::AgentStep(_)
        | EventKind::ToolsListed { .. }
        | EventKind::CallInDoubt { .. }
        | EventKind::BreakerChanged { .. }
        | EventKind::ResultIgnored { .. }
        | EventKind::ToolAdded { .. }
        | EventKind::LimitsChanged { .. }
        | EventKind::FaultInjected { .. }
        | EventKind::FaultRemoved { .. } => fill_tool_sentence(it, &event.kind),
    }
}

/// The words for how a run begins, pauses, continues and ends, and for what people change in it.
fn fill_run<'a>(
    it: &mut Sentence<'a>,
    event: &'a Event,
    run: &'a RunFold,
    words: Option<&'a dyn Narrate>,
) {
    match &event.kind {
        // Headless text has its own first and last line.
        EventKind::RunStarted(head) => {
            it.text = run_started_text(head, words).into();
        }
        EventKind::RunClosed(closed) => {
            let success = closed.reason.is_success();
            let role = if success { StyleRole::Done } else { StyleRole::Failed };
            it.set(role, run_closed_text(run, closed, words));
            if let Some(cause) = run.stop_cause() {
                it.with_detail(cause.to_string());
            }
        }
        EventKind::Pausing { by, .. } => {
            it.set(StyleRole::Paused, by.phrase());
        }
        EventKind::Paused { at } => {
            let text = match at.is_empty() {
                true => "while people are asked".to_owned(),
                false => format!("before {}", places(at, PLACES)),
            };
            it.set(StyleRole::Paused, text).as_run(Glyph::Paused, "paused");
        }
        EventKind::Resumed { by, paused_ms } => {
            let text = format!("after {}, {}", took_ms(*paused_ms), by.phrase());
            it.set(StyleRole::Paused, text).as_run(None, "resumed");
        }
        EventKind::RunResumed { by, downtime_ms, events } => {
            let stored = format::count_noun(*events, "stored event");
            let down = took_ms(*downtime_ms);
            it.set(
                StyleRole::Paused,
                format!("from {stored}, stopped for {down}, {}", by.phrase()),
            )
            .as_run(None, "resumed");
        }
        EventKind::CommandTaken { command, by, .. } => {
            it.set(StyleRole::Paused, format!("{by} {}", command_words(command))).as_run(None, "");
        }
        EventKind::RunForked { by, parent, at, .. } => {
            let reused = run.tally.reused.map_or_else(String::new, |reused| {
                format!("; its first {} are reused", format::count_noun(reused.events, "event"))
            });
            let text = format!("from {parent} before {}, {}{reused}", place(at), by.phrase());
            it.set(StyleRole::Paused, text).as_run(None, "forked");
        }
        EventKind::Stepped { step, boundary, paused_ms } => {
            let far = match step {
                StepSize::Boundary => "to the next boundary",
                StepSize::Round => "to the next round",
            };
            let (past, paused) = (place(boundary), took_ms(*paused_ms));
            it.set(StyleRole::Paused, format!("past {past}, {far}, paused for {paused}"));
        }
        EventKind::BreakpointChanged { at, set } => {
            let what = if *set { "set before" } else { "removed before" };
            it.set(StyleRole::Paused, format!("{what} {}", place(at)));
        }
        EventKind::FlagChanged { flag, on, by, boundary } => {
            let position = if *on { "off to on" } else { "on to off" };
            let text = format!("{position} from {}, {}", place(boundary), by.phrase());
            it.set(StyleRole::Flag, text).about(flag.as_str()).as_sign(Glyph::Flag, "flag");
        }
        _ => {}
    }
}

/// The words for a question to a person, and for how it ends.
fn fill_question<'a>(it: &mut Sentence<'a>, event: &'a Event, run: &'a RunFold) {
    match &event.kind {
        // The answer follows, and says what the rule has decided.
        EventKind::QuestionAsked(asked) if asked.by_rule => {
            it.text = question::about(&asked.subject);
        }
        EventKind::QuestionAsked(asked) => {
            it.set(StyleRole::NeedsYou, question::asked_text(asked))
                .with_detail(asked.why.as_deref().unwrap_or_default())
                .as_sign(Glyph::NeedsYou, "asks");
        }
        // A fallback is no answer of a person.
        EventKind::QuestionAnswered(answered) if answered.by == AnsweredBy::Nobody => {
            let refused = matches!(answered.answer, Answer::Deny { .. } | Answer::Stop);
            let (role, glyph) = match refused {
                true => (StyleRole::Refused, Glyph::Refused),
                false => (StyleRole::Retry, Glyph::Alert),
            };
            it.set(role, question::answered_text(event, answered, run)).as_sign(glyph, "no answer");
        }
        EventKind::QuestionAnswered(answered) => {
            let refused = matches!(answered.answer, Answer::Deny { .. } | Answer::Stop);
            let (role, glyph) = match refused {
                true => (StyleRole::Refused, Glyph::Refused),
                false => (StyleRole::Done, Glyph::Done),
            };
            it.set(role, question::answered_text(event, answered, run))
                .with_detail(answered.answer.text().unwrap_or_default())
                .as_sign(glyph, "answer");
        }
        EventKind::QuestionWithdrawn { why, .. } => {
            it.set(StyleRole::Off, question::withdrawn_text(event, *why, run))
                .as_sign(Glyph::Off, "withdrawn");
        }
        EventKind::ApprovalWithdrawn { by, .. } => {
            it.set(StyleRole::Paused, by.phrase()).as_run(None, "approval withdrawn");
        }
        _ => {}
    }
}

/// The first boundaries, at most `most`, and how many more there are.
pub fn places(at: &[BoundaryId], most: usize) -> String {
    let named: Vec<_> = at.iter().take(most).map(place).collect();
    match at.len().saturating_sub(most) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// A boundary in a sentence. It is cut, because nothing limits the id of a task in it.
fn place(at: &BoundaryId) -> String {
    visible_within(&at.display_name(), REASON_CHARS)
}

/// A number of attempts: `2 attempts`.
pub(super) fn attempts_text(attempts: u32) -> String {
    format::count_noun(attempts.into(), "attempt")
}

/// The size of a reply, what it calls, its tokens, and whether it is whole.
fn reply_text(reply: &Reply) -> String {
    let mut text = format::bytes(reply.text.len() as u64);
    text.push_str(&calls_text(reply));
    if let Some(Usage { prompt_tokens, completion_tokens, .. }) = reply.usage {
        text.push_str(&format!(", {prompt_tokens} tokens in, {completion_tokens} out"));
    }
    if let Some(first) = reply.first_token_ms {
        text.push_str(&format!(", first token {}", took_ms(first)));
    }
    match reply.end.is_whole() {
        true => text,
        false => format!("{}; {text}", cut_reply(reply.end, reply.tool_calls.len())),
    }
}

fn run_started_text(head: &RunStarted, words: Option<&dyn Narrate>) -> String {
    let setup = format!("{}, {}", head.title, model_text(&head.model));
    match words.map(|words| words.started()) {
        Some((size, limit)) => format!("{setup}: {size}, {limit}"),
        None => setup,
    }
}

fn run_closed_text(run: &RunFold, closed: &RunClosed, words: Option<&dyn Narrate>) -> String {
    let own = words.and_then(|words| words.stop_detail(closed));
    let mut what = own.unwrap_or_else(|| run_lead(run, closed));
    what.push_str(&place_after(&what, closed));
    what.push_str(&format!(" after {}", took_ms(closed.elapsed_ms)));
    let waited = millis(run.progress.waited()).min(closed.paused_ms);
    if waited > 0 {
        what.push_str(&format!(", waited for people {}", took_ms(waited)));
    }
    if closed.paused_ms > waited {
        what.push_str(&format!(", paused for {}", took_ms(closed.paused_ms - waited)));
    }
    what
}

/// The round and the call that a span belongs to.
pub fn round_and_purpose(span: SpanId, run: &RunFold) -> (Option<u32>, Option<&Purpose>) {
    let mut at = run.spans.get(span);
    // Attempt, call, round, run: our spans nest no deeper, but those of a log from a file may.
    for _ in 0..4 {
        match at.map(|span| (&span.kind, span.parent)) {
            Some((SpanKind::Call(purpose), _)) => {
                return (purpose.round(), Some(purpose));
            }
            Some((SpanKind::Round(round), _)) => return (Some(*round), None),
            Some((SpanKind::Attempt(_) | SpanKind::Task { .. } | SpanKind::Source(_), parent)) => {
                at = run.spans.get(parent)
            }
            Some((SpanKind::Run | SpanKind::Observed(_), _)) | None => break,
        }
    }
    (None, None)
}

/// The seat, agent, task or step that a call is made for, for the screen.
pub fn purpose_name<'a>(purpose: Option<&'a Purpose>) -> Cow<'a, str> {
    purpose.map_or(Cow::Borrowed(""), Purpose::label)
}

/// The tool of a call with this purpose.
pub fn tool_of_purpose<'a>(purpose: &'a Purpose, world: &'a World) -> Option<&'a str> {
    tool_of_call(purpose, words_of(world))
}

fn tool_of_call<'a>(purpose: &'a Purpose, words: Option<&'a dyn Narrate>) -> Option<&'a str> {
    let own = match purpose {
        Purpose::Tool { tool, .. } => Some(tool.as_str()),
        _ => purpose.called_agent().map(|agent| agent.as_str()),
    };
    match purpose.asks() {
        Asks::Model => Some("llm"),
        Asks::Tool | Asks::Agent => own.or_else(|| words?.tool_of(purpose)),
    }
}

/// The subject of the events of this span, which belongs to a call with this purpose.
pub(super) fn subject_of<'a>(
    span: SpanId,
    purpose: Option<&'a Purpose>,
    run: &'a RunFold,
    words: Option<&'a dyn Narrate>,
) -> Cow<'a, str> {
    let span = run.spans.get(span).map(|span| &span.kind);
    let own = words.zip(span).and_then(|(words, span)| words.span_name(span));
    own.unwrap_or_else(|| subject_name(purpose, words))
}

/// The subject of an event of a call; if many agents call many tools, with the tool.
pub(super) fn subject_name<'a>(
    purpose: Option<&'a Purpose>,
    words: Option<&dyn Narrate>,
) -> Cow<'a, str> {
    match purpose {
        Some(step @ Purpose::AgentStep { .. }) => match tool_of_call(step, words) {
            Some(tool) => Cow::Owned(format!("{} {tool}", purpose_name(purpose))),
            None => purpose_name(purpose),
        },
        purpose => purpose_name(purpose),
    }
}

/// The task of this span, if it is the span of a task.
pub(crate) fn task_of_span(span: SpanId, world: &World) -> Option<Cow<'_, str>> {
    match &world.spans.get(span)?.kind {
        kind @ SpanKind::Task { .. } => words_of(world)?.span_name(kind),
        _ => None,
    }
}

/// What somebody does who sends this command.
pub fn command_words(command: &Command) -> String {
    match command {
        Command::Pause { .. } => "pauses the run".to_owned(),
        Command::Resume { .. } => "resumes the run".to_owned(),
        Command::Step => "steps to the next boundary".to_owned(),
        Command::StepRound => "steps to the next round".to_owned(),
        Command::SetFlag { flag, on, .. } => {
            format!("switches {flag} {}", if *on { "on" } else { "off" })
        }
        Command::Break { at, set: true } => format!("sets a breakpoint at {}", at.display_name()),
        Command::Break { at, set: false } => {
            format!("removes the breakpoint at {}", at.display_name())
        }
        Command::SetParallel { max_parallel, .. } => {
            format!("limits the run to {max_parallel} tasks at a time")
        }
        Command::SetLimit { tool, .. } => format!("changes a limit of {tool}"),
        Command::Breaker { tool, action, .. } => {
            let does = match action {
                BreakerOverride::Trip => "opens",
                BreakerOverride::Hold => "holds open",
                BreakerOverride::Disable => "disables",
                BreakerOverride::Reset => "resets",
            };
            format!("{does} the breaker of {tool}")
        }
        Command::Inject { tool, fault, .. } => {
            format!("injects {} into {tool}", fault.kind().word())
        }
        Command::RemoveFault { tool, kind, .. } => {
            format!("removes {} from {tool}", kind.word())
        }
        Command::Roster(roster) => roster.in_words(),
        Command::Answer(answered) => {
            format!("answers {}: {}", answered.id, answered.answer.phrase())
        }
        Command::WithdrawApproval { id, .. } => format!("withdraws the approval of {id}"),
        Command::Message { text, .. } => format!("queues a message: {text}"),
        Command::Cancel => "cancels the run".to_owned(),
    }
}
