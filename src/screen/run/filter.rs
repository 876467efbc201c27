//! A filter over the events of a run: plain words, each of which must occur in the event's line, or
//! a CEL condition over its fields. It is applied in bounded slices, newest events first, so that a
//! long log never blocks the screen.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::EventWindow;
use crate::log::event::{Event, EventKind, Purpose, StopReason, World};
use crate::scenario::cel::{CelBindings, Condition, ConditionError, EvalBudget, EvalLimits};
use crate::words::badges;
use crate::words::sentence::{Sentence, Stated, sentence};

/// The names that a condition may use. Every event has all of them; a field that the event lacks is
/// null. `event` is the whole event as in the log; `fact`, its old name, is accepted too.
pub const NAMES: &str = "kind round role agent tool task who stance confidence attempt status wait_ms flag on \
                         reason text seq at event";

/// Maximum cost of a filter per event. The screen waits for it, so it is lower than that of a run's
/// condition.
const EVENT_LIMITS: EvalLimits = EvalLimits { steps: 100_000, bytes: 1 << 20 };

/// A parsed filter.
#[derive(Debug)]
pub(crate) enum Filter {
    /// The event must be notable.
    Notable,
    /// Each of these must occur in the line; case is ignored.
    Words(Vec<String>),
    /// This condition must hold.
    Condition {
        condition: Condition,
        /// Whether it uses `event`, which costs more.
        whole: bool,
    },
}

impl Filter {
    /// Parses the typed text: `None` if it is blank. Text with an operator or a quote in it is CEL.
    pub(crate) fn parse(text: &str) -> Result<Option<Filter>, ConditionError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        if !text.contains(['=', '<', '>', '&', '|', '(', '"', '\'', '!']) {
            return Ok(Some(Self::Words(text.split_whitespace().map(str::to_lowercase).collect())));
        }
        let condition = Condition::compile(text)?;
        let whole = text.contains("event") || text.contains("fact");
        Ok(Some(Self::Condition { condition, whole }))
    }

    /// How many events may be filtered before the screen must be drawn again.
    fn batch_size(&self) -> usize {
        match self {
            Self::Notable => 65_536,
            Self::Words(_) => 8_192,
            Self::Condition { whole: false, .. } => 2_048,
            Self::Condition { whole: true, .. } => 512,
        }
    }

    /// Cost of converting an event for a condition, in steps of an evaluation.
    fn conversion_cost(&self, event: &Event) -> u64 {
        match self {
            Self::Condition { whole: true, .. } => event.kind.weight() as u64 / 64,
            Self::Condition { whole: false, .. } | Self::Words(_) | Self::Notable => 0,
        }
    }

    /// Whether this event passes the filter, within a budget.
    pub(crate) fn matches(
        &self,
        event: &Event,
        world: &World,
        budget: &mut EvalBudget,
    ) -> Result<bool, ConditionError> {
        match self {
            Self::Notable => Ok(event.kind.is_notable()),
            Self::Words(words) => {
                let line = sentence(event, world).line().to_lowercase();
                let more = state_words(event);
                Ok(words.iter().all(|word| line.contains(word.as_str()) || more.contains(&**word)))
            }
            Self::Condition { condition, whole } => {
                let described = sentence(event, world);
                let mut shown = CelBindings::default();
                bind_fields(&mut shown, event, &described, world);
                let value = if *whole { event_value(event) } else { Value::Null };
                shown.bind("event", &value);
                shown.bind("fact", &value);
                condition.holds_within(&shown, budget)
            }
        }
    }
}

/// Words by which the screen counts and names an event, besides its line: `retry` finds the call that
/// was retried.
fn state_words(event: &Event) -> String {
    let again = |attempt: u32| if attempt > 1 { "retry retried retrying" } else { "" };
    let ended = |reason: &StopReason| {
        format!("{} {reason} {}", reason.phrase(), badges::ended(reason.class()).word)
    };
    let words = match &event.kind {
        EventKind::CallRetried { .. } | EventKind::ClientRetried { .. } => again(2).to_owned(),
        EventKind::AttemptStarted { attempt, .. } => format!("running {}", again(*attempt)),
        EventKind::CallAnswered { attempts } => format!("answered done {}", again(*attempts)),
        EventKind::AttemptAnswered(_) => "answered".to_owned(),
        EventKind::AttemptFailed(failed) => {
            format!("failed {} {}", failed.class.word(), failed.class.phrase())
        }
        EventKind::RetryRefused { .. } => "retry refused".to_owned(),
        EventKind::CallFailed { reason: reason @ StopReason::ApprovalDenied(_), .. } => {
            format!("denied {}", reason.phrase())
        }
        EventKind::CallFailed { attempts, reason } => {
            format!("failed {} {}", ended(reason), again(*attempts))
        }
        EventKind::CallDegraded { attempts, reason, .. } => {
            format!("degraded fallback {} {}", ended(reason), again(*attempts))
        }
        EventKind::AttemptRefused { reason, .. } => format!("refused {}", ended(reason)),
        EventKind::CallQueued | EventKind::AttemptQueued { .. } => "queued waiting".to_owned(),
        EventKind::ReplyRefused(refused) => {
            let retried = if refused.repeat.is_some() { again(2) } else { "" };
            format!("refused {} {retried}", ended(&refused.reason))
        }
        EventKind::ReplyRepaired { .. } => "repaired".to_owned(),
        EventKind::RunClosed(closed) => ended(&closed.reason),
        EventKind::FlagChanged { on, .. } => if *on { "on" } else { "off" }.to_owned(),
        EventKind::Pattern(fact) => {
            let about = fact.get().about();
            let reason = about.reason.as_deref().map(StopReason::from);
            let reason = reason.as_ref().map(ended).unwrap_or_default();
            format!("{reason} {}", about.attempt.map_or("", again))
        }
        _ => String::new(),
    };
    words.to_lowercase()
}

fn event_value(event: &Event) -> Value {
    event.to_line().ok().and_then(|line| serde_json::from_str(&line).ok()).unwrap_or(Value::Null)
}

fn bind_fields(shown: &mut CelBindings, event: &Event, described: &Sentence<'_>, world: &World) {
    let (_, purpose) = crate::words::sentence::round_and_purpose(event.span, world);
    let mut role = purpose.and_then(Purpose::speaker);
    let mut tool =
        purpose.and_then(|purpose| crate::words::sentence::tool_of_purpose(purpose, world));
    let task = purpose.and_then(Purpose::task).map(|task| Cow::Borrowed(task.as_str()));
    let task = task.or_else(|| crate::words::sentence::task_of_span(event.span, world));
    let mut agent = purpose.and_then(|purpose| purpose.agent()).map(|agent| agent.as_str());
    let (mut attempt, mut status, mut wait_ms) = (None, None, None);
    let (mut flag, mut on, mut reason) = (None, None, None);
    match &event.kind {
        EventKind::AttemptStarted { attempt: nth, .. } => attempt = Some(*nth),
        EventKind::AttemptFailed(failed) => {
            status = failed.status;
            reason = Some(failed.class.word().to_owned());
        }
        EventKind::CallRetried { attempt: nth, wait_ms: wait, status: had, cause: after } => {
            attempt = Some(*nth);
            wait_ms = Some(*wait);
            status = *had;
            reason = Some(after.word().to_owned());
        }
        EventKind::RetryRefused { attempt: nth, limit } => {
            attempt = Some(*nth);
            reason = Some(limit.word().to_owned());
        }
        EventKind::CallAnswered { attempts } => attempt = Some(*attempts),
        EventKind::CallFailed { attempts, reason: why } => {
            attempt = Some(*attempts);
            reason = Some(why.to_string());
        }
        EventKind::FlagChanged { flag: which, on: position, .. } => {
            flag = Some(which.as_str());
            on = Some(*position);
        }
        EventKind::AttemptRefused { attempt: nth, reason: why, .. } => {
            attempt = Some(*nth);
            reason = Some(why.to_string());
        }
        EventKind::CallDegraded { attempts, reason: why, .. } => {
            attempt = Some(*attempts);
            reason = Some(why.to_string());
        }
        EventKind::Pattern(fact) => {
            let about = fact.get().about();
            role = about.role.or(role);
            agent = about.agent.or(agent);
            (attempt, reason) = (about.attempt, about.reason);
        }
        EventKind::AnswerComposed { by: Some(by), .. } => agent = Some(by.as_str()),
        EventKind::PlanRefused { reason: why, .. } => reason = Some(why.to_string()),
        EventKind::BreakerChanged { tool: of, .. }
        | EventKind::ResultIgnored { tool: of, .. }
        | EventKind::LimitsChanged { tool: of, .. }
        | EventKind::FaultInjected { tool: of, .. }
        | EventKind::FaultRemoved { tool: of, .. } => tool = Some(of.as_str()),
        EventKind::ToolAdded { tool: of, .. } => tool = Some(of.name.as_str()),
        EventKind::ReplyRefused(refused) => reason = Some(refused.reason.to_string()),
        EventKind::RunClosed(closed) => reason = Some(closed.reason.to_string()),
        _ => {}
    }
    let stance = described.stated.and_then(|stated| match stated {
        Stated::Stance(stance, confidence) => Some((stance, confidence)),
        Stated::Decision(_) => None,
    });
    for (name, value) in [
        ("kind", Value::from(described.kind)),
        ("round", Value::from(described.round)),
        ("role", Value::from(role)),
        ("agent", Value::from(agent)),
        ("tool", Value::from(tool)),
        ("task", Value::from(task.as_deref())),
        ("who", Value::from(&*described.subject)),
        ("stance", Value::from(stance.map(|(stance, _)| stance.word()))),
        ("confidence", Value::from(stance.map(|(_, confidence)| confidence))),
        ("attempt", Value::from(attempt)),
        ("status", Value::from(status)),
        ("wait_ms", Value::from(wait_ms)),
        ("flag", Value::from(flag)),
        ("on", Value::from(on)),
        ("reason", Value::from(reason)),
        ("text", Value::from(&*described.decided_text())),
        ("seq", Value::from(event.seq.0)),
        ("at", Value::from(event.at.0 as f64 / 1e6)),
    ] {
        shown.bind(name, &value);
    }
}

/// Maximum cost of a filter between two frames, in steps of its evaluation.
const SCAN_STEPS: u64 = 200_000;

/// Which events are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EventLevel {
    /// Those that a reader of a run wants to know.
    #[default]
    Notable,
    All,
}

impl EventLevel {
    /// Its filter over a log, of which a first slice is filtered; `None`: everything passes.
    pub(crate) fn filter(self, log: &EventWindow) -> Option<ActiveFilter> {
        (self == Self::Notable).then(|| {
            let mut active = ActiveFilter::new(String::new(), Filter::Notable, log);
            // Whether an event is notable does not depend on the state of the run.
            active.scan(log, &World::new());
            active
        })
    }
}

/// The state of the filter, for the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterStatus<'a> {
    /// Its text, as typed.
    pub text: &'a str,
    /// The filter before it, which the arrow up recalls; empty: none.
    pub last: &'a str,
    /// While it is typed: where the next character goes, in bytes.
    pub typing: Option<usize>,
    /// What is wrong with it, if anything.
    pub error: Option<&'a str>,
    /// How much of the log was filtered, in percent.
    pub percent: u8,
}

#[derive(Debug)]
pub(crate) struct ActiveFilter {
    pub(crate) text: String,
    pub(crate) filter: Filter,
    /// Places of the events that pass, in order.
    pub(crate) found: VecDeque<usize>,
    /// The part of the log that was filtered so far.
    pub(super) scanned: Range<usize>,
    /// Events for which the condition could not be evaluated.
    pub(crate) failed: u64,
    /// The error of the first of them.
    pub(crate) error: Option<String>,
}

impl ActiveFilter {
    /// A filter that has seen nothing of the log.
    pub(crate) fn new(text: String, filter: Filter, log: &EventWindow) -> Self {
        let scanned = log.len()..log.len();
        Self { text, filter, found: VecDeque::new(), scanned, failed: 0, error: None }
    }

    pub(crate) fn is_typed(&self) -> bool {
        !matches!(self.filter, Filter::Notable)
    }

    /// Filters the next slice of the log: new events first, then backwards.
    pub(crate) fn scan(&mut self, log: &EventWindow, world: &World) {
        let mut left = self.filter.batch_size();
        let mut steps = SCAN_STEPS;
        if self.scanned.is_empty() {
            self.scanned = log.len()..log.len();
        }
        while left > 0 && steps > 0 && self.scanned.end < log.len() {
            let place = self.scanned.end;
            self.scanned.end += 1;
            left -= 1;
            if self.matches(log.get(place), world, &mut steps) {
                self.found.push_back(place);
            }
        }
        while left > 0 && steps > 0 && self.scanned.start > log.dropped_count() {
            self.scanned.start -= 1;
            left -= 1;
            let place = self.scanned.start;
            if self.matches(log.get(place), world, &mut steps) {
                self.found.push_front(place);
            }
        }
    }

    /// Whether an event passes. The cost is subtracted from `steps`.
    pub(crate) fn matches(
        &mut self,
        event: Option<&Arc<Event>>,
        world: &World,
        steps: &mut u64,
    ) -> bool {
        let Some(event) = event else { return false };
        let mut budget = EvalBudget::new(EVENT_LIMITS);
        let lets = self.filter.matches(event, world, &mut budget);
        *steps = steps.saturating_sub(budget.steps() + self.filter.conversion_cost(event));
        match lets {
            Ok(lets) => lets,
            Err(error) => {
                self.failed += 1;
                self.error.get_or_insert_with(|| first_line(&error.to_string()));
                false
            }
        }
    }
}

pub(super) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}
