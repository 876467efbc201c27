//! The targets of the panes of a team: what Enter inspects, and what is copied.

use super::sequence::{Sequence, SequenceRow};
use super::subject::TeamSubject;
use super::view::TeamView;
use crate::app::run::data::RunData;
use crate::app::run::inspect::target::InspectTarget;
use crate::app::run::layout::Pane;
use crate::event::SpanId;

impl TeamView {
    /// The last call of the agent that answered, or that is in control.
    pub(super) fn holder_call(&self, run: &RunData) -> Option<SpanId> {
        let team = run.shown().agents()?;
        let holder = team.answered_by.as_ref().or(team.in_control.as_ref());
        team.agent(holder.or(team.plan.root.as_ref())?)?.last_call
    }

    /// The selected row of the diagram; the newest one if none is selected.
    fn row<'a>(&self, sequence: Sequence<'a>) -> Option<SequenceRow<'a>> {
        sequence.row(self.hops.row(sequence.len())?)
    }

    /// What Enter inspects in the panes of a team.
    pub(super) fn pane_target(&self, run: &RunData, focus: Pane) -> Option<InspectTarget> {
        let world = run.shown();
        let team = world.agents()?;
        let holder = || self.holder_call(run).map(InspectTarget::Call);
        match focus {
            Pane::First | Pane::Second => {
                if let Some(agent) = &self.agent {
                    return team.agent(agent)?.last_call.map(InspectTarget::Call);
                }
                let selected = focus == Pane::First || self.hops.cursor.is_some();
                let call = Sequence::of(run)
                    .filter(|_| selected)
                    .and_then(|sequence| sequence.call(self.row(sequence)?));
                call.map(InspectTarget::Call).or_else(holder)
            }
            Pane::Third => match self.lower.call(run) {
                Some(SpanId::RUN) => {
                    team.agent(team.plan.coordinator()?)?.last_call.map(InspectTarget::Call)
                }
                Some(call) => Some(InspectTarget::Call(call)),
                None => holder(),
            },
            Pane::Fourth => self.lower.transcript_target(run),
            Pane::Events => None,
        }
    }

    /// The text that is copied from the focused pane of a team.
    pub(super) fn pane_text(&self, run: &RunData, focus: Pane) -> Option<String> {
        let world = run.shown();
        let team = world.agents()?;
        if let (Pane::Fourth, Some(text)) = (focus, self.lower.line_text(run)) {
            return Some(text);
        }
        if focus == Pane::First && self.agent.is_none() {
            let row = Sequence::of(run).and_then(|sequence| self.row(sequence));
            if let Some(SequenceRow::Hop(_, hop)) = row {
                let from = hop.from.as_ref().map_or("you", |from| from.as_str());
                let message = hop.message.as_deref().unwrap_or_default();
                return Some(format!("{from} -> {}  {message}", hop.to).trim_end().to_owned());
            }
        }
        if let (Pane::Second, TeamSubject::Hop(..)) = (focus, self.subject(run)) {
            return self.document(run).map(|document| document.to_plain());
        }
        let partial = || team.partial.as_ref().map(|(text, _)| text.to_string());
        let outcome = || match self.subject(run) {
            TeamSubject::Outcome => self.document(run).map(|document| document.to_plain()),
            _ => None,
        };
        let answer = world.progress.answer.as_ref().map(|answer| answer.to_string());
        answer.or_else(partial).or_else(outcome)
    }
}
