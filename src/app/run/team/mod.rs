//! The page of a coordinator team or a swarm: the selections in its panes, and how keys and the
//! mouse change them.

pub mod call_tree;
pub mod graph;
pub mod row_cursor;
mod target;
pub mod transcript;

use std::collections::BTreeSet;

use ratatui::layout::Rect;

use self::call_tree::Fold;
use self::row_cursor::RowCursor;
use super::RunPage;
use super::layout::{Areas, Pane};
use super::list_cursor::ListCursor;
use super::scroll::Scroll;
use crate::agents::projection::Team;
use crate::app::action::Action;
use crate::base::name::AgentName;
use crate::event::SpanId;
use crate::event::kind::TeamPlan;

/// Rows of the summary below the hops, if there is room for it.
const FOOT: u16 = 4;
/// Rows above the hops: the column names.
pub const HOPS_HEAD: u16 = 1;

/// Selections and scroll positions in the panes of a team.
#[derive(Debug, Default)]
pub(super) struct TeamView {
    agent: Option<AgentName>,
    hops: RowCursor,
    /// The selected call of the tree.
    call: Option<SpanId>,
    calls_top: usize,
    /// The calls that the operator has folded.
    closed: BTreeSet<SpanId>,
    /// The selected line of the transcript.
    line: ListCursor,
}

impl TeamView {
    /// Clears the selections; returns whether there were any. Folded calls stay folded.
    pub(super) fn clear_selections(&mut self) -> bool {
        let any = self.agent.is_some()
            || self.hops.cursor.is_some()
            || self.call.is_some()
            || self.line.line.is_some();
        if any {
            let closed = std::mem::take(&mut self.closed);
            *self = Self { closed, ..Self::default() };
        }
        any
    }

    /// Folds or unfolds a call.
    fn toggle_fold(&mut self, call: SpanId) {
        if !self.closed.remove(&call) {
            self.closed.insert(call);
        }
    }
}

/// The agents in the picture: all but the swarm that the operator talks to, whose members speak for
/// it, and agents that no one can ever call. It depends on the plan alone.
pub fn agents_in_picture(plan: &TeamPlan) -> impl Iterator<Item = &AgentName> {
    let swarm = plan.swarm(&plan.root).is_some();
    let rosters = plan.agents.iter().any(|agent| agent.swarm.is_some());
    plan.agents.iter().map(|agent| &agent.name).filter(move |name| {
        let member = || plan.agents.iter().any(|agent| agent.members.contains(name));
        if **name == plan.root { !swarm } else { rosters || member() }
    })
}

/// Whether no one can call an agent at present: it is in no team, and in no swarm's current
/// members.
pub fn is_on_bench(team: &Team, plan: &TeamPlan, name: &AgentName) -> bool {
    let teams = plan.agents.iter().filter(|agent| agent.swarm.is_none());
    *name != plan.root
        && !teams.flat_map(|agent| &agent.members).any(|member| member == name)
        && !team.swarms.iter().any(|swarm| swarm.members.contains(name))
}

/// The areas of the hops and of the summary below them.
pub fn hop_areas(area: Rect) -> (Rect, Rect) {
    let foot = match area.height {
        10.. => FOOT,
        7..10 => area.height - 6,
        _ => 0,
    };
    let head = HOPS_HEAD.min(area.height);
    let rows = Rect { y: area.y + head, height: area.height - head - foot, ..area };
    (rows, Rect { y: rows.bottom(), height: foot, ..area })
}

impl RunPage {
    /// The agent that is selected in the picture.
    pub fn selected_agent(&self) -> Option<&AgentName> {
        self.team.agent.as_ref()
    }

    /// The hops in view in a window of this height, and the selected one.
    pub fn hop_rows(&self, height: usize) -> (std::ops::Range<usize>, Option<usize>) {
        let len = self.shown().team().map_or(0, |team| team.hops.len());
        let rows = self.team.hops;
        (rows.window(len, height), rows.cursor.and(rows.row(len)))
    }

    /// Whether the hops follow the newest one.
    pub fn follows_hops(&self) -> bool {
        self.team.hops.cursor.is_none()
    }

    /// Whether the transcript follows its end.
    pub fn follows_transcript(&self) -> bool {
        self.team.line.line.is_none()
    }

    /// The calls in view in a window of this height, and the selected one.
    pub fn call_rows(
        &self,
        tree: &call_tree::CallTree<'_>,
        height: usize,
    ) -> (std::ops::Range<usize>, Option<usize>) {
        let rows = self.call_cursor(tree);
        (rows.window(tree.len(), height), rows.cursor)
    }

    fn call_cursor(&self, tree: &call_tree::CallTree<'_>) -> RowCursor {
        let cursor = self.team.call.and_then(|call| tree.place(call));
        RowCursor { cursor, top: self.team.calls_top }
    }

    /// The first line and row of the transcript in view, and the selected line.
    pub fn transcript_position(
        &self,
        lines: &transcript::Transcript<'_>,
        height: usize,
    ) -> (Scroll, Option<usize>) {
        self.team.line.position(lines, height)
    }

    /// Moves the selection in the panes of a team.
    pub(super) fn move_in_team(&mut self, action: Action, areas: &Areas) {
        let height =
            |pane| areas.pane(pane).map_or(1, |area: Rect| usize::from(area.height)).max(1);
        match self.panes.focus {
            Pane::First => self.move_among_agents(action),
            Pane::Second => {
                let len = self.shown().team().map_or(0, |team| team.hops.len());
                let rows = areas.pane(Pane::Second).map_or(1, |it| hop_areas(it).0.height);
                self.team.hops = self.team.hops.after_action(action, len, usize::from(rows).max(1));
            }
            Pane::Third => self.move_in_tree(action, height(Pane::Third)),
            Pane::Fourth => self.move_in_transcript(action, areas),
            Pane::Events => {}
        }
    }

    fn move_among_agents(&mut self, action: Action) {
        let Some(team) = self.shown().team() else { return };
        let plan = &*team.plan;
        let all: Vec<AgentName> = agents_in_picture(plan).cloned().collect();
        let Some(last) = all.len().checked_sub(1) else { return };
        let at = self.team.agent.as_ref().and_then(|name| all.iter().position(|it| it == name));
        let holder = team.in_control.as_ref();
        // The first step selects the agent in control.
        let first = || holder.and_then(|it| all.iter().position(|name| name == it)).unwrap_or(0);
        let to = match action {
            Action::Up | Action::Left => at.map_or_else(first, |at| at.saturating_sub(1)),
            Action::Down | Action::Right => at.map_or_else(first, |at| (at + 1).min(last)),
            Action::Top | Action::PageUp => 0,
            Action::Bottom | Action::PageDown => last,
            _ => return,
        };
        self.team.agent = all.into_iter().nth(to);
    }

    fn move_in_tree(&mut self, action: Action, height: usize) {
        let Some(tree) = self.call_tree() else { return };
        let rows = self.call_cursor(&tree);
        let Some(node) = rows.row(tree.len()).and_then(|row| tree.row(row)) else { return };
        match action {
            // Right unfolds a call, left folds it; left on a folded call selects its parent.
            Action::Left | Action::Right => {
                let open = action == Action::Right;
                let turns = if open { node.fold == Fold::Closed } else { node.fold == Fold::Open };
                let above = tree.parent(node.span).unwrap_or(node.span);
                let select = if turns || open { node.span } else { above };
                if turns {
                    self.team.toggle_fold(node.span);
                }
                self.select_call(select, height);
            }
            action => {
                let moved = rows.after_action(action, tree.len(), height);
                let call = moved.cursor.and_then(|row| tree.row(row)).map(|node| node.span);
                self.team.call = call;
                self.team.calls_top = moved.top;
            }
        }
    }

    fn select_call(&mut self, call: SpanId, height: usize) {
        let Some(tree) = self.call_tree() else { return };
        let Some(row) = tree.place(call) else { return };
        let rows = self.call_cursor(&tree).select(row, tree.len(), height);
        self.team.call = Some(call);
        self.team.calls_top = rows.top;
    }

    fn move_in_transcript(&mut self, action: Action, areas: &Areas) {
        let Some(area) = areas.pane(Pane::Fourth) else { return };
        let height = usize::from(area.height).max(1);
        let Some(lines) = self.transcript(area.width) else { return };
        self.team.line = self.team.line.after_action(action, &lines, height);
    }

    /// Scrolls a pane of a team with the wheel.
    pub(super) fn wheel_in_team(&mut self, pane: Pane, by: isize, areas: &Areas) {
        let Some(area) = areas.pane(pane) else { return };
        let height = usize::from(area.height).max(1);
        match pane {
            Pane::First => {
                let action = if by < 0 { Action::Up } else { Action::Down };
                self.move_among_agents(action);
            }
            Pane::Second => {
                let len = self.shown().team().map_or(0, |team| team.hops.len());
                let rows = usize::from(hop_areas(area).0.height).max(1);
                self.team.hops = self.team.hops.after_wheel(by, len, rows);
            }
            Pane::Third => {
                let Some(tree) = self.call_tree() else { return };
                let rows = self.call_cursor(&tree).after_wheel(by, tree.len(), height);
                let call = rows.cursor.and_then(|row| tree.row(row)).map(|node| node.span);
                self.team.call = call;
                self.team.calls_top = rows.top;
            }
            Pane::Fourth => {
                let Some(lines) = self.transcript(area.width) else { return };
                self.team.line = self.team.line.after_wheel(by, &lines, height);
            }
            Pane::Events => {}
        }
    }

    /// Selects the clicked row of a pane of a team.
    pub(super) fn click_in_team(&mut self, pane: Pane, area: Rect, col: u16, row: u16) {
        let line = usize::from(row - area.y);
        let height = usize::from(area.height);
        match pane {
            Pane::First => {
                if let Some(agent) = self.agent_at(area, col, row) {
                    self.team.agent = Some(agent);
                }
            }
            Pane::Second => {
                let (rows, _) = hop_areas(area);
                let height = usize::from(rows.height);
                let (window, _) = self.hop_rows(height);
                let Some(line) = row.checked_sub(rows.y).map(usize::from) else { return };
                if line < window.len() && line < height {
                    let len = self.shown().team().map_or(0, |team| team.hops.len());
                    self.team.hops = self.team.hops.select(window.start + line, len, height);
                }
            }
            Pane::Third => {
                let Some(tree) = self.call_tree() else { return };
                let (window, _) = self.call_rows(&tree, height);
                let Some(node) = tree.row(window.start + line) else { return };
                let selected = self.team.call == Some(node.span);
                if selected && matches!(node.fold, Fold::Open | Fold::Closed) {
                    self.team.toggle_fold(node.span);
                }
                self.select_call(node.span, height.max(1));
            }
            Pane::Fourth => {
                let Some(lines) = self.transcript(area.width) else { return };
                self.team.line = self.team.line.after_click(line, &lines, height);
            }
            Pane::Events => {}
        }
    }
}
