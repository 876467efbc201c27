//! The view of a coordinator team or a swarm: the selections in its panes, and how keys and the
//! mouse change them.

use ratatui::layout::Rect;

use crate::app::action::Action;
use crate::app::run::data::RunData;
use crate::app::run::inspect::target::InspectTarget;
use crate::app::run::layout::{Pane, PaneWish, RowWish, inner_columns};
use crate::app::run::run_view::{PaneAt, RunView};
use crate::base::name::AgentName;
use crate::event::SpanId;
use crate::panes::agents::graph::agent_at;
use crate::panes::agents::lower::LowerPanes;
use crate::panes::agents::picture::agents_in_picture;
use crate::panes::agents::row_cursor::RowCursor;

/// Rows of the summary below the hops, if there is room for it.
const FOOT: u16 = 4;
/// Rows above the hops: the column names.
pub const HOPS_HEAD: u16 = 1;

/// Selections and scroll positions in the panes of a team.
#[derive(Debug, Default)]
pub struct TeamView {
    pub(super) agent: Option<AgentName>,
    pub(super) hops: RowCursor,
    /// The call tree and the transcript.
    pub(super) lower: LowerPanes,
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

    /// The call tree and the transcript.
    pub fn lower(&self) -> &LowerPanes {
        &self.lower
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

    /// Scrolls a pane with the wheel.
    fn scroll(&mut self, run: &RunData, pane: Pane, area: Rect, by: isize) {
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
            Pane::Third | Pane::Fourth => self.lower.on_wheel(run, pane, area, by),
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

    fn answer_pane(&self) -> Pane {
        Pane::Fourth
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
            Pane::Third | Pane::Fourth => self.lower.on_move(run, at, action),
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
            Pane::Third | Pane::Fourth => self.lower.on_click(run, pane, area, line),
            Pane::Events => {}
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
