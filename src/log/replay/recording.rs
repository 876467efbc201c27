//! The recorded events of one run, checked and indexed, and why a recorded run cannot be continued.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::log::event::{
    Asks, BoundaryId, Elapsed, Event, EventKind, FailureClass, QuestionAsked, RunStarted, Seq,
    SpanId, Subject,
};

/// The recorded events of one run, from its head on: its whole log, or the part of it that was
/// stored. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Recording {
    head: Arc<RunStarted>,
    events: Arc<[Arc<Event>]>,
    /// The attempts of models and tools, by span.
    attempts: Arc<BTreeMap<SpanId, RecordedAttempt>>,
    /// The indices of the steps of calls, by span: what they do in their turn.
    steps: Arc<BTreeMap<SpanId, Vec<usize>>>,
    last_span: SpanId,
    /// The highest number of a question.
    last_question: u32,
    /// Where the run was forked from another one; 0: it was not.
    forked_at: Seq,
}

/// A recorded attempt of a model or a tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedAttempt {
    pub call: SpanId,
    /// Indices of the events that decide how the attempt continues, in order: that it was in doubt,
    /// and its end with the result of the model or tool. An open or cancelled attempt has no such
    /// end.
    pub steps: Vec<usize>,
    /// What its tool asked people for.
    pub questions: Vec<Arc<QuestionAsked>>,
}

/// Why events are not the log of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// The first event is not `run.started`.
    #[error("the log does not begin with run.started")]
    NoHead,
    /// Events are missing before this one, or out of order.
    #[error("events are missing or out of order before event {}", .0.0)]
    Gap(Seq),
    /// An event belongs to a span that no earlier event opened, or opens one that is open already.
    #[error("event {} belongs to no span of the run", .0.0)]
    Span(Seq),
}

impl Recording {
    /// Checks the events of a log and indexes them.
    ///
    /// # Errors
    /// [`RecordingError`] if they are not the log of a run, from its head on and without gaps.
    pub fn new(events: impl Into<Arc<[Arc<Event>]>>) -> Result<Self, RecordingError> {
        let events: Arc<[Arc<Event>]> = events.into();
        let head = match events.first().map(|event| &event.kind) {
            Some(EventKind::RunStarted(head)) => Arc::clone(head),
            _ => return Err(RecordingError::NoHead),
        };
        let mut attempts = BTreeMap::new();
        let mut steps: BTreeMap<SpanId, Vec<usize>> = BTreeMap::new();
        // Each span, and whether it is a call of a model or tool.
        let mut spans = BTreeMap::from([(SpanId::RUN, false)]);
        let mut before = Elapsed(0);
        let mut last_question = 0;
        for (place, event) in events.iter().enumerate() {
            if event.seq.0 != place as u64 || event.at < before {
                return Err(RecordingError::Gap(event.seq));
            }
            before = event.at;
            let wrong = RecordingError::Span(event.seq);
            match event.kind.opens().filter(|_| place > 0) {
                Some((parent, _)) => {
                    let of_leaf = *spans.get(&parent).ok_or(wrong)?;
                    let leaf = matches!(&event.kind, EventKind::CallStarted(call)
                        if call.purpose.asks() != Asks::Agent);
                    if event.span.0 >= LAST_SPAN || spans.insert(event.span, leaf).is_some() {
                        return Err(wrong);
                    }
                    if of_leaf && matches!(event.kind, EventKind::AttemptStarted { .. }) {
                        attempts.insert(
                            event.span,
                            RecordedAttempt {
                                call: parent,
                                steps: Vec::new(),
                                questions: Vec::new(),
                            },
                        );
                    }
                }
                None if !spans.contains_key(&event.span) => return Err(wrong),
                None => {}
            }
            if let EventKind::QuestionAsked(asked) = &event.kind {
                last_question = last_question.max(asked.id.0);
                match asked.subject {
                    Subject::InDoubt { .. } => {}
                    Subject::Input { .. } | Subject::Permission { .. } => {
                        if let Some(attempt) = attempts.get_mut(&event.span) {
                            attempt.questions.push(Arc::clone(asked));
                        }
                    }
                    // What a person does in an attempt is executed again.
                    _ => {
                        attempts.remove(&event.span);
                    }
                }
            }
            if let Some(call) = step_of(event) {
                steps.entry(call).or_default().push(place);
            }
            let continues = match &event.kind {
                EventKind::AttemptAnswered(_) | EventKind::CallInDoubt { .. } => true,
                EventKind::AttemptFailed(failed) => failed.class != FailureClass::Cancelled,
                _ => false,
            };
            if let Some(attempt) = attempts.get_mut(&event.span).filter(|_| continues) {
                attempt.steps.push(place);
            }
        }
        let last_span = spans.keys().next_back().copied().unwrap_or_default();
        let is_fork = |event: &&Arc<Event>| matches!(event.kind, EventKind::RunForked { .. });
        let forked_at = events.iter().rfind(is_fork).map_or(Seq(0), |event| event.seq);
        let (attempts, steps) = (Arc::new(attempts), Arc::new(steps));
        Ok(Self { head, events, attempts, steps, last_span, last_question, forked_at })
    }

    /// The head of the log: the setup of the run.
    pub(crate) fn head(&self) -> &RunStarted {
        &self.head
    }

    /// The events, from the head on.
    pub(crate) fn events(&self) -> &[Arc<Event>] {
        &self.events
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.events.last().is_some_and(|last| matches!(last.kind, EventKind::RunClosed(_)))
    }

    /// Time of the last event.
    pub(crate) fn last_at(&self) -> Elapsed {
        self.events.last().map_or(Elapsed(0), |last| last.at)
    }

    /// The events before this one come from the run that this one was forked from: other settings may
    /// have led to them.
    pub(crate) fn forked_at(&self) -> Seq {
        self.forked_at
    }

    pub(crate) fn last_span(&self) -> SpanId {
        self.last_span
    }

    /// The highest number of a question; 0: nothing was asked.
    pub(crate) fn last_question(&self) -> u32 {
        self.last_question
    }

    /// An attempt of a model or tool; `None` if the span is something else.
    pub(crate) fn attempt(&self, span: SpanId) -> Option<&RecordedAttempt> {
        self.attempts.get(&span)
    }

    /// What a tool asked people for in an attempt, in its order.
    pub(crate) fn questions_in(&self, attempt: SpanId) -> Vec<Arc<QuestionAsked>> {
        self.attempt(attempt).map(|it| it.questions.clone()).unwrap_or_default()
    }

    /// The indices of the steps of a call: that a person was asked about it, that it was admitted to the
    /// pool, and that an attempt was queued, refused or started.
    pub(super) fn steps_of(&self, call: SpanId) -> &[usize] {
        self.steps.get(&call).map_or(&[], |steps| steps)
    }
}

/// The call that an event is a step of.
fn step_of(event: &Event) -> Option<SpanId> {
    match &event.kind {
        EventKind::AttemptStarted { parent, .. } => Some(*parent),
        EventKind::CallAdmitted { .. }
        | EventKind::QuestionAsked(_)
        | EventKind::AttemptQueued { .. }
        | EventKind::AttemptRefused { .. } => Some(event.span),
        _ => None,
    }
}

/// Ids of spans end here, so that a log from elsewhere leaves enough of them.
const LAST_SPAN: u32 = u32::MAX / 2;

/// Why a recorded run is not continued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The run differs from its log.
    #[error(transparent)]
    Diverged(#[from] Divergence),
    /// A fork: the run does not reach the boundary.
    #[error("the run never came to {at}")]
    NotReached {
        at: BoundaryId,
        /// The boundaries that it reached, in this order.
        passed: Vec<PassedBoundary>,
    },
}

/// The run differs from its log, so it cannot be continued from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {} of the log is {recorded}, but the run has {executed} there", .seq.0)]
pub struct Divergence {
    /// The first event of the log that differs.
    pub seq: Seq,
    /// What the log has.
    pub recorded: String,
    /// What the run does.
    pub executed: String,
}

/// A boundary that a recorded run reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedBoundary {
    pub id: BoundaryId,
    /// The first event of the recording after it.
    pub next: Seq,
    /// Time of the run then.
    pub at: Elapsed,
}
