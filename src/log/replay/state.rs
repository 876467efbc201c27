//! How much of a recording was executed again, the keys by which events are matched, and the parts of
//! them that must be equal.
//!
//! A fork executes a recording again up to a boundary and continues in a log of its own, which is
//! empty until then. Prompts are not compared, because the fork's settings are in force from the
//! start. Flags that were switched after the boundary are forgotten; attempts in flight at the
//! boundary return their recorded results.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use super::Turns;
use super::recording::{Divergence, PassedBoundary};
use crate::log::event::{BoundaryId, Command, Event, EventKind, Seq, SpanId};

/// How much of a recording was executed again, and what waits for the rest.
#[derive(Default)]
pub(crate) struct ReplayState {
    /// Which recorded events were matched.
    pub matched: Vec<bool>,
    /// The index of the first one that was not.
    pub next: usize,
    /// The indices of the events that were not matched, by their key, in their order.
    pub unmatched: HashMap<EventKey, VecDeque<usize>>,
    /// Events that the recording does not have, in their order.
    pub held: Vec<(SpanId, EventKind)>,
    /// Spans that have such an event.
    pub held_spans: BTreeSet<SpanId>,
    /// Attempts that continue as their next recorded event says.
    pub delivered: BTreeSet<SpanId>,
    /// Attempts that wait for this, or for the recording to be used up.
    pub waiting: BTreeMap<SpanId, Waker>,
    pub turns: Turns,
    /// Where the run left its recording.
    pub divergence: Option<Divergence>,
    /// Commands that were sent before the recording was used up.
    pub commands: Vec<Command>,
    /// What a fork takes from the recording; `None`: the log continues the recording.
    pub fork: Option<ForkLog>,
}

impl ReplayState {
    /// Matches an event with the first recorded one of this key.
    pub fn take(&mut self, key: &EventKey, events: &[Arc<Event>]) -> Option<usize> {
        let place = self.unmatched.get_mut(key)?.pop_front()?;
        self.mark(place, events);
        Some(place)
    }

    fn mark(&mut self, place: usize, events: &[Arc<Event>]) {
        self.matched[place] = true;
        if let (Some(fork), Some(event)) = (&mut self.fork, events.get(place)) {
            fork.take(event);
        }
        while self.matched.get(self.next) == Some(&true) {
            self.next += 1;
        }
    }

    /// Marks an event that the run does not publish as matched.
    pub fn skip(&mut self, place: usize, events: &[Arc<Event>]) {
        let Some(event) = events.get(place) else { return };
        // Not a scan: a log can have a million events with this key.
        if let Some(places) = self.unmatched.get_mut(&key_of(event))
            && let Ok(at) = places.binary_search(&place)
        {
            places.remove(at);
        }
        self.mark(place, events);
    }

    /// Keeps an event until the recording is used up.
    pub fn hold(&mut self, span: SpanId, kind: EventKind) {
        if self.divergence.is_none() {
            self.held_spans.insert(span);
            self.held.push((span, kind));
        }
    }

    /// The run leaves its recording at this event. The first one counts.
    pub fn diverge(&mut self, events: &[Arc<Event>], place: usize, executed: String) {
        let seq = Seq(place as u64);
        if self.divergence.as_ref().is_none_or(|known| seq < known.seq) {
            let recorded =
                events.get(place).map_or_else(String::new, |it| describe_event(&it.kind));
            self.divergence = Some(Divergence { seq, recorded, executed });
        }
    }
}

/// The key by which an event is matched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EventKey {
    /// Its span, or the parent of the span that it opens.
    span: SpanId,
    /// Its kind, and what distinguishes it from others of its kind.
    what: String,
}

impl EventKey {
    /// The key of an event that opens no span.
    pub(crate) fn new(span: SpanId, kind: &EventKind) -> Self {
        let name = kind.name();
        let what = match kind {
            EventKind::BreakerChanged { tool, .. }
            | EventKind::LimitsChanged { tool, .. }
            | EventKind::FaultInjected { tool, .. }
            | EventKind::FaultRemoved { tool, .. } => format!("{name} {tool}"),
            EventKind::FlagChanged { flag, .. } => format!("{name} {flag}"),
            EventKind::QuestionAsked(asked) => format!("{name} {}", asked.subject.key()),
            EventKind::QuestionAnswered(answered) => format!("{name} {}", answered.id),
            EventKind::QuestionWithdrawn { id, .. } | EventKind::ApprovalWithdrawn { id, .. } => {
                format!("{name} {id}")
            }
            EventKind::Warning { text } => format!("{name} {text}"),
            _ => name.to_owned(),
        };
        Self { span, what }
    }
}

/// The key of an event that opens a span, if it opens one.
pub(super) fn opening_key(kind: &EventKind) -> Option<EventKey> {
    let (parent, what) = kind.opens()?;
    let what = match kind {
        // The tool tells a call from another one of the same purpose; an agent's call is known by
        // its purpose.
        EventKind::CallStarted(call) => format!("{} {what:?} {}", kind.name(), call.repeat),
        _ => format!("{} {what:?}", kind.name()),
    };
    Some(EventKey { span: parent, what })
}

pub(crate) fn key_of(event: &Event) -> EventKey {
    let opening = opening_key(&event.kind).filter(|_| event.span != SpanId::RUN);
    opening.unwrap_or_else(|| EventKey::new(event.span, &event.kind))
}

/// Whether a call is the recorded one, if the event is a call.
pub(super) fn same_call(recorded: &EventKind, executed: &EventKind) -> Result<(), &'static str> {
    let (EventKind::CallStarted(recorded), EventKind::CallStarted(executed)) = (recorded, executed)
    else {
        return Ok(());
    };
    if recorded.tool != executed.tool {
        return Err("another tool");
    }
    if recorded.prompt != executed.prompt {
        return Err("another prompt");
    }
    if recorded.args != executed.args {
        return Err("other arguments");
    }
    if recorded.model != executed.model {
        return Err("another model");
    }
    Ok(())
}

/// Whether an event of a run is about its log, so that the run never publishes it again.
pub(super) fn is_never_repeated(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Unknown { .. }
            | EventKind::RunResumed { .. }
            | EventKind::RunForked { .. }
            | EventKind::CommandTaken { .. }
            | EventKind::EventsDropped { .. }
            | EventKind::SessionRunStarted { .. }
            | EventKind::SessionRunClosed { .. }
            | EventKind::SessionRunDropped { .. }
    )
}

/// An event in words, for an error.
pub(super) fn describe_event(kind: &EventKind) -> String {
    match kind {
        EventKind::CallStarted(call) => {
            format!("{} of {} ({:?})", kind.name(), call.tool, call.purpose)
        }
        _ => kind.name().to_owned(),
    }
}

/// What a fork takes from its recording.
pub(crate) struct ForkLog {
    /// The boundary to continue from.
    pub at: BoundaryId,
    /// Whether a branch of the run waits there.
    pub is_reached: bool,
    /// The branches that wait there.
    pub waiting: Vec<Waker>,
    /// The boundaries that the run reached, in this order.
    pub passed: Vec<PassedBoundary>,
    /// The recorded events that were executed again, in that order.
    events: Vec<Arc<Event>>,
}

impl ForkLog {
    pub fn new(at: BoundaryId) -> Self {
        Self { at, is_reached: false, waiting: Vec::new(), passed: Vec::new(), events: Vec::new() }
    }

    /// Takes a recorded event into the log.
    pub fn take(&mut self, event: &Arc<Event>) {
        self.events.push(Arc::clone(event));
    }

    /// The head of the log is the one of the fork.
    pub fn set_head(&mut self, kind: EventKind) {
        if let Some(first) = self.events.first_mut() {
            *first = Arc::new(Event { kind, ..Event::clone(first) });
        }
    }

    /// The events that the log begins with, in their recorded order, and the branches that wait.
    pub fn into_events(mut self) -> (Vec<Arc<Event>>, Vec<Waker>) {
        self.events.sort_by_key(|event| event.seq);
        for (seq, event) in (0..).map(Seq).zip(&mut self.events) {
            if event.seq != seq {
                *event = Arc::new(Event { seq, ..Event::clone(event) });
            }
        }
        (self.events, self.waiting)
    }
}
