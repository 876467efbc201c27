//! The view of a coordinator team or a swarm: the selections in its panes, and how keys and the
//! mouse change them.

use std::ops::Range;

use ratatui::layout::Rect;

use super::agent_list::AgentList;
use super::sequence::{Diagram, Sequence};
use crate::app::action::Action;
use crate::app::run::data::RunData;
use crate::app::run::inspect::WrappedDocument;
use crate::app::run::inspect::target::InspectTarget;
use crate::app::run::layout::{EndedWish, Pane, PaneWish, RowWish, inner_columns};
use crate::app::run::run_view::{PaneAt, RunView};
use crate::app::run::scroll::{Scroll, WrappingLines};
use crate::app::run::subject_text::{MAX_ROWS, rows_scrolled, text_area};
use crate::base::name::AgentName;
use crate::event::SpanId;
use crate::panes::agents::lower::LowerPanes;
use crate::panes::agents::picture::agents_in_picture;
use crate::panes::agents::row_cursor::RowCursor;

/// Selections and scroll positions in the panes of a team.
#[derive(Debug, Default)]
pub struct TeamView {
    pub(super) agent: Option<AgentName>,
    pub(super) hops: RowCursor,
    /// The first row in view of the text in pane 2.
    scroll: Option<Scroll>,
    /// The call tree and the transcript.
    pub(super) lower: LowerPanes,
}

impl TeamView {
    /// The selected agent.
    pub fn selected_agent(&self) -> Option<&AgentName> {
        self.agent.as_ref()
    }

    /// The rows of the diagram in view in a window of this height, and the selected one.
    pub fn hop_rows(&self, run: &RunData, height: usize) -> (Range<usize>, Option<usize>) {
        let len = Sequence::of(run).map_or(0, |sequence| sequence.len());
        let rows = self.hops;
        let selected = rows.cursor.and(rows.row(len)).filter(|_| self.agent.is_none());
        (rows.window(len, height), selected)
    }

    /// Whether the hops follow the newest one.
    pub fn follows_hops(&self) -> bool {
        self.hops.cursor.is_none()
    }

    /// The first row in view of the text in pane 2.
    pub fn scroll(&self) -> Scroll {
        self.scroll.unwrap_or_default()
    }

    /// The call tree and the transcript.
    pub fn lower(&self) -> &LowerPanes {
        &self.lower
    }

    fn select_agent(&mut self, agent: Option<AgentName>) {
        self.agent = agent;
        self.scroll = None;
    }

    fn select_hops(&mut self, hops: RowCursor) {
        self.hops = hops;
        self.select_agent(None);
    }

    fn move_among_agents(&mut self, run: &RunData, action: Action) {
        let Some(team) = run.shown().agents() else { return };
        let all: Vec<&AgentName> = agents_in_picture(&team.plan).collect();
        let Some(last) = all.len().checked_sub(1) else { return };
        let at = self.agent.as_ref().and_then(|name| all.iter().position(|it| *it == name));
        let holder = team.in_control.as_ref();
        // The first step selects the agent in control.
        let first = || holder.and_then(|it| all.iter().position(|name| *name == it)).unwrap_or(0);
        let to = match action {
            Action::Up | Action::Left => at.map_or_else(first, |at| at.saturating_sub(1)),
            Action::Down | Action::Right => at.map_or_else(first, |at| (at + 1).min(last)),
            Action::Top | Action::PageUp => 0,
            Action::Bottom | Action::PageDown => last,
            _ => return,
        };
        self.select_agent(all.get(to).map(|name| (*name).clone()));
    }

    fn move_among_hops(&mut self, run: &RunData, at: PaneAt<'_>, action: Action) {
        let Some(sequence) = Sequence::of(run) else { return };
        let diagram = at.area().and_then(|area| Diagram::of(run, area));
        let rows = diagram.map_or(1, |diagram| usize::from(diagram.rows.height)).max(1);
        self.select_hops(self.hops.after_action(action, sequence.len(), rows));
    }

    fn scroll_text(&mut self, run: &RunData, area: Option<Rect>, by: isize) {
        let (Some(area), Some(document)) = (area.map(text_area), self.document(run)) else {
            return;
        };
        let lines = WrappedDocument { document: &document, width: area.width };
        let to = self.scroll().step(by, &lines, usize::from(area.height));
        self.scroll = (to != Scroll::default()).then_some(to);
    }
}

impl RunView for TeamView {
    fn tabs(&self) -> [&'static str; 4] {
        ["Hops", "Agents", "Calls", "Transcript"]
    }

    fn titles(&self) -> [&'static str; 4] {
        ["Hops", "Agents", "Call tree", "Transcript"]
    }

    fn shows_outcome(&self, run: &RunData) -> bool {
        self.is_about_outcome(run)
    }

    fn layout(&self, run: &RunData, page: Rect) -> PaneWish {
        // The diagram needs the width; the texts below have theirs at the right.
        let inner = inner_columns(page);
        let share = |percent: u16| inner.saturating_mul(percent) / 100;
        let ended = Sequence::of(run).filter(|_| run.shown().progress.closed.is_some());
        let ended = ended.map(|sequence| {
            let left = share(56);
            let document = self.outcome_document(run);
            let width = (inner - left).saturating_sub(2);
            let lines = WrappedDocument { document: &document, width };
            let area = Rect { width: left, ..page };
            let head = Diagram::of(run, area).map_or(1, |diagram| diagram.head.height);
            let rows = sequence.len().min(usize::from(MAX_ROWS)) as u16;
            // A blank row before the legend.
            EndedWish {
                left,
                picture: head + rows + 2,
                outcome: lines.rows_within(MAX_ROWS),
                rows: u16::MAX,
            }
        });
        PaneWish { rows: RowWish::Texts, first: share(64), third: share(43), ended }
    }

    fn on_move(&mut self, run: &RunData, at: PaneAt<'_>, action: Action) {
        match (at.pane, rows_scrolled(action, at.area())) {
            (Pane::First, _) if matches!(action, Action::Left | Action::Right) => {
                self.move_among_agents(run, action);
            }
            (Pane::First, _) => self.move_among_hops(run, at, action),
            (Pane::Second, Some(by)) if self.document(run).is_some() => {
                self.scroll_text(run, at.area(), by);
            }
            (Pane::Second, _) => self.move_among_agents(run, action),
            (Pane::Third | Pane::Fourth, _) => self.lower.on_move(run, at, action),
            (Pane::Events, _) => {}
        }
    }

    fn on_wheel(&mut self, run: &RunData, at: PaneAt<'_>, by: isize) -> bool {
        let Some(area) = at.area() else { return true };
        match at.pane {
            Pane::First => {
                let len = Sequence::of(run).map_or(0, |sequence| sequence.len());
                let rows = Diagram::of(run, area).map_or(1, |diagram| diagram.rows.height).max(1);
                self.select_hops(self.hops.after_wheel(by, len, usize::from(rows)));
            }
            Pane::Second if self.document(run).is_some() => {
                self.scroll_text(run, Some(area), by);
            }
            Pane::Second => {
                let action = if by < 0 { Action::Up } else { Action::Down };
                self.move_among_agents(run, action);
            }
            Pane::Third | Pane::Fourth => self.lower.on_wheel(run, at.pane, area, by),
            Pane::Events => {}
        }
        true
    }

    fn on_click(&mut self, run: &RunData, at: PaneAt<'_>, col: u16, row: u16) {
        let (pane, Some(area)) = (at.pane, at.area()) else { return };
        let line = row - area.y;
        match pane {
            Pane::First => {
                let Some(diagram) = Diagram::of(run, area) else { return };
                if let Some(agent) = diagram.named_at(col, row) {
                    return self.select_agent(Some(agent.clone()));
                }
                let height = usize::from(diagram.rows.height);
                let (window, _) = self.hop_rows(run, height);
                let Some(line) = row.checked_sub(diagram.rows.y).map(usize::from) else { return };
                if line < window.len() {
                    let len = Sequence::of(run).map_or(0, |sequence| sequence.len());
                    self.select_hops(self.hops.select(window.start + line, len, height));
                }
            }
            Pane::Second if self.document(run).is_none() => {
                let Some(team) = run.shown().agents() else { return };
                let list = AgentList::of(&team.plan, self.selected_agent(), area);
                if let Some(agent) = list.agent_at(&team.plan, line) {
                    self.select_agent(Some(agent.clone()));
                }
            }
            Pane::Third | Pane::Fourth => self.lower.on_click(run, pane, area, usize::from(line)),
            Pane::Second | Pane::Events => {}
        }
    }

    fn clear_selection(&mut self, with_tool: bool) -> bool {
        let any = self.agent.is_some() || self.hops.cursor.is_some() || self.lower.has_selection();
        if with_tool || !any {
            return false;
        }
        let mut lower = std::mem::take(&mut self.lower);
        lower.clear_selection();
        *self = Self { lower, ..Self::default() };
        true
    }

    fn reset_scroll(&mut self) -> bool {
        self.scroll.take().is_some()
    }

    fn target(&self, run: &RunData, focus: Pane) -> Option<InspectTarget> {
        let target = self.pane_target(run, focus);
        target.or_else(|| self.subject_call(run).map(InspectTarget::Call))
    }

    fn subject_call(&self, run: &RunData) -> Option<SpanId> {
        self.holder_call(run)
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
        if !run.world().progress.is_live() {
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
