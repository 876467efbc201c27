//! What failed, was refused or waits for another attempt: the causes behind a stop. And the replies
//! that are used though they are not whole.

use serde::Serialize;

use super::back_off::BackOff;
use super::last_errors::LastErrors;
use super::refusals::Refusals;
use super::spans::{SpanKind, Spans};
use crate::event::kind::{Asks, BudgetReached, ReplyEnd};
use crate::event::{Event, EventKind, SpanId};

/// Most cut replies to keep.
const MAX_CUT: usize = 1_000;

/// What failed, was refused or waits for another attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures {
    pub last_errors: LastErrors,
    pub refusals: Refusals,
    /// The call that was not made because it would exceed the budget.
    pub budget_reached: Option<BudgetReached>,
    pub back_off: BackOff,
    /// The replies of models that are used though they are not whole.
    pub cut: Vec<CutReply>,
}

/// A reply of a model that was used though it is not whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct CutReply {
    /// The role, agent or step that replied.
    pub who: Box<str>,
    /// How it ended.
    pub end: ReplyEnd,
    /// The call.
    #[serde(skip)]
    pub(crate) call: SpanId,
}

impl Failures {
    /// Keeps the causes that an event has, after the span tree.
    pub(super) fn apply(&mut self, event: &Event, spans: &Spans) {
        self.last_errors.apply(event, spans);
        self.apply_cut(event, spans);
    }

    fn apply_cut(&mut self, event: &Event, spans: &Spans) {
        let span = event.span;
        match &event.kind {
            EventKind::AttemptAnswered(reply)
                if !reply.end.is_whole() && self.cut.len() < MAX_CUT =>
            {
                let call = spans.get(span).and_then(|attempt| spans.get(attempt.parent));
                let Some((call, SpanKind::Call(purpose))) = call.map(|it| (it.id, &it.kind)) else {
                    return;
                };
                if purpose.asks() == Asks::Model {
                    let who = purpose.script_step().unwrap_or_default().into();
                    self.cut.push(CutReply { who, end: reply.end, call });
                }
            }
            _ if self.cut.is_empty() => {}
            EventKind::ReplyRefused(_) => self.cut.retain(|cut| cut.call != span),
            // The model continues its paused reply.
            EventKind::CallStarted(started) if started.prompt.after.is_some() => {
                let after = started.prompt.after;
                self.cut.retain(|cut| cut.end != ReplyEnd::Paused || Some(cut.call) != after);
            }
            // What an agent said in a failed attempt is not used.
            EventKind::AttemptFailed(_) => {
                self.cut.retain(|cut| !spans.is_within(cut.call, span));
            }
            _ => {}
        }
    }
}
