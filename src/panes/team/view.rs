//! The view of a coordinator team or a swarm: the selections in its panes, and how keys and the
//! mouse change them.

use std::collections::BTreeSet;

use ratatui::layout::Rect;

use crate::app::action::Action;
use crate::app::run::data::RunData;
use crate::app::run::inspect::target::InspectTarget;
use crate::app::run::layout::{Pane, PaneWish, RowWish, inner_columns};
use crate::app::run::list_cursor::ListCursor;
use crate::app::run::run_view::{PaneAt, RunView};
use crate::app::run::scroll::Scroll;
use crate::base::name::AgentName;
use crate::event::SpanId;
use crate::panes::agents::call_tree::{CallTree, Fold, call_tree};
use crate::panes::agents::graph::agent_at;
use crate::panes::agents::picture::agents_in_picture;
use crate::panes::agents::row_cursor::RowCursor;
use crate::panes::agents::transcript::Transcript;

/// Rows of the summary below the hops, if there is room for it.
const FOOT: u16 = 4;
/// Rows above the hops: the column names.
pub const HOPS_HEAD: u16 = 1;

/// Selections and scroll positions in the panes of a team.
#[derive(Debug, Default)]
pub struct TeamView {
    pub(super) agent: Option<AgentName>,
    pub(super) hops: RowCursor,
    /// The selected call of the tree.
    call: Option<SpanId>,
    calls_top: usize,
    /// The calls that the operator has folded.
    pub(super) closed: BTreeSet<SpanId>,
    /// The selected line of the transcript.
    pub(super) line: ListCursor,
}

impl TeamView {
    /// Folds or unfolds a call.
    fn toggle_fold(&mut self, call: SpanId) {
        if !self.closed.remove(&call) {
            self.closed.insert(call);
        }
    }
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

impl TeamView {
    /// The agent that is selected in the picture.
    pub fn selected_agent(&self) -> Option<&AgentName> {
        self.agent.as_ref()
    }

    /// The hops in view in a window of this height, and the selected one.
    pub fn hop_rows(
        &self,
        run: &RunData,
        height: usize,
    ) -> (std::ops::Range<usize>, Option<usize>) {
        let len = run.shown().agents().map_or(0, |team| team.hops.len());
        let rows = self.hops;
        (rows.window(len, height), rows.cursor.and(rows.row(len)))
    }

    /// Whether the hops follow the newest one.
    pub fn follows_hops(&self) -> bool {
        self.hops.cursor.is_none()
    }

    /// Whether the transcript follows its end.
    pub fn follows_transcript(&self) -> bool {
        self.line.line.is_none()
    }

    /// The calls that the operator has folded.
    pub fn folded(&self) -> &BTreeSet<SpanId> {
        &self.closed
    }

    /// The calls in view in a window of this height, and the selected one.
    pub fn call_rows(
        &self,
        tree: &CallTree<'_>,
        height: usize,
    ) -> (std::ops::Range<usize>, Option<usize>) {
        let rows = self.call_cursor(tree);
        (rows.window(tree.len(), height), rows.cursor)
    }

    pub(super) fn call_cursor(&self, tree: &CallTree<'_>) -> RowCursor {
        let cursor = self.call.and_then(|call| tree.place(call));
        RowCursor { cursor, top: self.calls_top }
    }

    /// The first line and row of the transcript in view, and the selected line.
    pub fn transcript_position(
        &self,
        lines: &Transcript<'_>,
        height: usize,
    ) -> (Scroll, Option<usize>) {
        self.line.position(lines, height)
    }

    fn move_among_agents(&mut self, run: &RunData, action: Action) {
        let Some(team) = run.shown().agents() else { return };
        let plan = &team.plan;
        let all: Vec<AgentName> = agents_in_picture(plan).cloned().collect();
        let Some(last) = all.len().checked_sub(1) else { return };
        let at = self.agent.as_ref().and_then(|name| all.iter().position(|it| it == name));
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
        self.agent = all.into_iter().nth(to);
    }

    fn move_in_tree(&mut self, run: &RunData, action: Action, height: usize) {
        let Some(tree) = call_tree(run, &self.closed) else { return };
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
                    self.toggle_fold(node.span);
                }
                self.select_call(run, select, height);
            }
            action => {
                let moved = rows.after_action(action, tree.len(), height);
                let call = moved.cursor.and_then(|row| tree.row(row)).map(|node| node.span);
                self.call = call;
                self.calls_top = moved.top;
            }
        }
    }

    fn select_call(&mut self, run: &RunData, call: SpanId, height: usize) {
        let Some(tree) = call_tree(run, &self.closed) else { return };
        let Some(row) = tree.place(call) else { return };
        let rows = self.call_cursor(&tree).select(row, tree.len(), height);
        self.call = Some(call);
        self.calls_top = rows.top;
    }

    fn move_in_transcript(&mut self, run: &RunData, action: Action, area: Rect, height: usize) {
        let Some(lines) = Transcript::of_run(run, area.width) else { return };
        self.line = self.line.after_action(action, &lines, height);
    }

    /// Scrolls a pane with the wheel.
    fn scroll(&mut self, run: &RunData, pane: Pane, area: Rect, by: isize) {
        let height = usize::from(area.height).max(1);
        match pane {
            Pane::First => {
                let action = if by < 0 { Action::Up } else { Action::Down };
                self.move_among_agents(run, action);
            }
            Pane::Second => {
                let len = run.shown().agents().map_or(0, |team| team.hops.len());
                let rows = usize::from(hop_areas(area).0.height).max(1);
                self.hops = self.hops.after_wheel(by, len, rows);
            }
            Pane::Third => {
                let Some(tree) = call_tree(run, &self.closed) else { return };
                let rows = self.call_cursor(&tree).after_wheel(by, tree.len(), height);
                let call = rows.cursor.and_then(|row| tree.row(row)).map(|node| node.span);
                self.call = call;
                self.calls_top = rows.top;
            }
            Pane::Fourth => {
                let Some(lines) = Transcript::of_run(run, area.width) else { return };
                self.line = self.line.after_wheel(by, &lines, height);
            }
            Pane::Events => {}
        }
    }
}

impl RunView for TeamView {
    fn tabs(&self) -> [&'static str; 4] {
        ["Handoffs", "Hops", "Calls", "Transcript"]
    }

    fn titles(&self) -> [&'static str; 4] {
        ["Handoffs", "Hops", "Call tree", "Transcript"]
    }

    fn layout(&self, _run: &RunData, page: Rect) -> PaneWish {
        // One dividing line down the page: picture and call tree at the left, texts at the right.
        let left = inner_columns(page).saturating_mul(43) / 100;
        PaneWish { rows: RowWish::Texts, first: left, third: left }
    }

    fn on_move(&mut self, run: &RunData, at: PaneAt<'_>, action: Action) {
        match at.pane {
            Pane::First => self.move_among_agents(run, action),
            Pane::Second => {
                let len = run.shown().agents().map_or(0, |team| team.hops.len());
                let rows = at.area().map_or(1, |it| hop_areas(it).0.height);
                self.hops = self.hops.after_action(action, len, usize::from(rows).max(1));
            }
            Pane::Third => self.move_in_tree(run, action, at.height()),
            Pane::Fourth => {
                if let Some(area) = at.area() {
                    self.move_in_transcript(run, action, area, at.height());
                }
            }
            Pane::Events => {}
        }
    }

    fn on_wheel(&mut self, run: &RunData, at: PaneAt<'_>, by: isize) -> bool {
        if let Some(area) = at.area() {
            self.scroll(run, at.pane, area, by);
        }
        true
    }

    fn on_click(&mut self, run: &RunData, at: PaneAt<'_>, col: u16, row: u16) {
        let (pane, Some(area)) = (at.pane, at.area()) else { return };
        let line = usize::from(row - area.y);
        let height = usize::from(area.height);
        match pane {
            Pane::First => {
                if let Some(agent) = agent_at(run, self.agent.as_ref(), area, (col, row)) {
                    self.agent = Some(agent);
                }
            }
            Pane::Second => {
                let (rows, _) = hop_areas(area);
                let height = usize::from(rows.height);
                let (window, _) = self.hop_rows(run, height);
                let Some(line) = row.checked_sub(rows.y).map(usize::from) else { return };
                if line < window.len() && line < height {
                    let len = run.shown().agents().map_or(0, |team| team.hops.len());
                    self.hops = self.hops.select(window.start + line, len, height);
                }
            }
            Pane::Third => {
                let Some(tree) = call_tree(run, &self.closed) else { return };
                let (window, _) = self.call_rows(&tree, height);
                let Some(node) = tree.row(window.start + line) else { return };
                let selected = self.call == Some(node.span);
                if selected && matches!(node.fold, Fold::Open | Fold::Closed) {
                    self.toggle_fold(node.span);
                }
                self.select_call(run, node.span, height.max(1));
            }
            Pane::Fourth => {
                let Some(lines) = Transcript::of_run(run, area.width) else { return };
                self.line = self.line.after_click(line, &lines, height);
            }
            Pane::Events => {}
        }
    }

    // Folded calls stay folded.
    fn clear_selection(&mut self, with_tool: bool) -> bool {
        let any = self.agent.is_some()
            || self.hops.cursor.is_some()
            || self.call.is_some()
            || self.line.line.is_some();
        if with_tool || !any {
            return false;
        }
        let closed = std::mem::take(&mut self.closed);
        *self = Self { closed, ..Self::default() };
        true
    }

    fn target(&self, run: &RunData, focus: Pane) -> Option<InspectTarget> {
        let target = self.pane_target(run, focus);
        target.or_else(|| self.subject_call(run).map(InspectTarget::Call))
    }

    fn subject_call(&self, run: &RunData) -> Option<SpanId> {
        let team = run.shown().agents()?;
        let holder = team.answered_by.as_ref().or(team.in_control.as_ref());
        team.agent(holder.or(team.plan.root.as_ref())?)?.last_call
    }

    fn text(&self, run: &RunData, focus: Pane) -> Option<String> {
        self.pane_text(run, focus)
    }

    fn offers(&self, run: &RunData, _focus: Pane, action: Action) -> bool {
        match action {
            Action::Message => true,
            Action::Members => run.world().agents().is_some_and(|team| !team.swarms.is_empty()),
            _ => false,
        }
    }

    fn rank(&self, run: &RunData, action: Action) -> Option<u8> {
        if !run.world().is_live() {
            return None;
        }
        // A team at work is watched, sent messages and changed: a new run can wait.
        match action {
            Action::NextPane | Action::Message | Action::Members => Some(3),
            Action::NewRun => Some(6),
            _ => None,
        }
    }
}
