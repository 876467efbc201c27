//! The targets of the panes of a team: what Enter inspects, and what is copied.

use super::super::inspect::target::InspectTarget;
use super::super::layout::Pane;
use super::super::scroll::WrappingLines;
use super::super::{RunPage, View};
use crate::base::name::AgentName;
use crate::event::SpanId;

impl RunPage {
    /// What Enter inspects in the panes of a team.
    pub(crate) fn team_target(&self) -> Option<InspectTarget> {
        let world = self.shown();
        let team = world.team()?;
        let plan = &*team.plan;
        let said = |name: &AgentName| team.agent(name).and_then(|row| row.last_call);
        let of_holder = || {
            let whom = team.answered_by.as_ref().or(team.in_control.as_ref()).unwrap_or(&plan.root);
            said(whom).map(InspectTarget::Call)
        };
        match self.focus() {
            Pane::First => match &self.team.agent {
                Some(agent) => said(agent).map(InspectTarget::Call),
                None => of_holder(),
            },
            Pane::Second => {
                let row = self.team.hops.row(team.hops.len());
                let hop = row.and_then(|row| team.hops.get(row));
                hop.map_or_else(of_holder, |hop| Some(InspectTarget::Call(hop.span)))
            }
            Pane::Third => {
                let tree = self.call_tree()?;
                let row = self.call_cursor(&tree).row(tree.len());
                match row.and_then(|row| tree.row(row)) {
                    Some(node) if node.span == SpanId::RUN => {
                        said(&plan.root).map(InspectTarget::Call)
                    }
                    Some(node) => Some(InspectTarget::Call(node.span)),
                    None => of_holder(),
                }
            }
            Pane::Fourth => {
                let lines = self.transcript(80)?;
                let last = lines.count().checked_sub(1)?;
                let (seq, call) =
                    lines.event_of_line(self.team.line.line.unwrap_or(last).min(last))?;
                Some(call.map_or(InspectTarget::Event(seq), InspectTarget::Call))
            }
            Pane::Events => None,
        }
    }

    /// The text that is copied from the focused pane of a team.
    pub(crate) fn team_text(&self) -> Option<String> {
        let world = self.shown();
        let team = world.team().filter(|_| self.view() == View::Team)?;
        if let (Pane::Fourth, Some(line)) = (self.focus(), self.team.line.line) {
            return self.transcript(80)?.line(line).map(|spoken| spoken.text.into_owned());
        }
        if let (Pane::Second, Some(row)) = (self.focus(), self.team.hops.row(team.hops.len())) {
            let hop = team.hops.get(row)?;
            let from = hop.from.as_ref().map_or("you", |from| from.as_str());
            let message = hop.message.as_deref().unwrap_or_default();
            return Some(format!("{from} -> {}  {message}", hop.to).trim_end().to_owned());
        }
        let partial = || team.partial.as_ref().map(|(text, _)| text.to_string());
        world.answer.as_ref().map(|answer| answer.to_string()).or_else(partial)
    }
}
