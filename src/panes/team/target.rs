//! The targets of the panes of a team: what Enter inspects, and what is copied.

use super::view::TeamView;
use crate::app::run::data::RunData;
use crate::app::run::inspect::target::InspectTarget;
use crate::app::run::layout::Pane;
use crate::base::name::AgentName;
use crate::event::SpanId;

impl TeamView {
    /// What Enter inspects in the panes of a team.
    pub(super) fn pane_target(&self, run: &RunData, focus: Pane) -> Option<InspectTarget> {
        let world = run.shown();
        let team = world.agents()?;
        let plan = &team.plan;
        let said = |name: &AgentName| team.agent(name).and_then(|row| row.last_call);
        let of_holder = || {
            let whom =
                team.answered_by.as_ref().or(team.in_control.as_ref()).or(plan.root.as_ref())?;
            said(whom).map(InspectTarget::Call)
        };
        match focus {
            Pane::First => match &self.agent {
                Some(agent) => said(agent).map(InspectTarget::Call),
                None => of_holder(),
            },
            Pane::Second => {
                let row = self.hops.row(team.hops.len());
                let hop = row.and_then(|row| team.hops.get(row));
                hop.map_or_else(of_holder, |hop| Some(InspectTarget::Call(hop.span)))
            }
            Pane::Third => match self.lower.call(run) {
                Some(SpanId::RUN) => said(plan.coordinator()?).map(InspectTarget::Call),
                Some(call) => Some(InspectTarget::Call(call)),
                None => of_holder(),
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
        if let (Pane::Second, Some(row)) = (focus, self.hops.row(team.hops.len())) {
            let hop = team.hops.get(row)?;
            let from = hop.from.as_ref().map_or("you", |from| from.as_str());
            let message = hop.message.as_deref().unwrap_or_default();
            return Some(format!("{from} -> {}  {message}", hop.to).trim_end().to_owned());
        }
        let partial = || team.partial.as_ref().map(|(text, _)| text.to_string());
        world.progress.answer.as_ref().map(|answer| answer.to_string()).or_else(partial)
    }
}
