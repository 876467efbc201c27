//! The view of a router: the selected route, the scroll position of the decision, and the two lower
//! panes of all agents.

use std::ops::Range;

use ratatui::layout::Rect;

use super::decision::document;
use crate::app::action::Action;
use crate::app::run::data::RunData;
use crate::app::run::inspect::WrappedDocument;
use crate::app::run::inspect::target::InspectTarget;
use crate::app::run::layout::{EndedWish, Pane, PaneWish, RowWish, inner_columns, window_start};
use crate::app::run::run_view::{PaneAt, RunView};
use crate::app::run::scroll::{Scroll, WrappingLines};
use crate::app::run::subject_text::{MAX_ROWS, rows_scrolled, text_area};
use crate::base::name::AgentName;
use crate::event::SpanId;
use crate::event::world::RunState;
use crate::panes::agents::lower::LowerPanes;

/// Rows above the routes: the column names.
pub const ROUTES_HEAD: u16 = 1;

/// Selections and scroll positions in the panes of a router.
#[derive(Debug, Default)]
pub struct RouterView {
    /// The selected route; `None`: the decision.
    route: Option<AgentName>,
    scroll: Option<Scroll>,
    /// The call tree and the transcript.
    lower: LowerPanes,
}

impl RouterView {
    /// The selected route.
    pub fn route(&self) -> Option<&AgentName> {
        self.route.as_ref()
    }

    /// The first row in view of pane 2.
    pub fn scroll(&self) -> Scroll {
        self.scroll.unwrap_or_default()
    }

    /// The call tree and the transcript.
    pub fn lower(&self) -> &LowerPanes {
        &self.lower
    }

    /// The routes in view in an area, by index, and how many there are.
    pub fn routes_in_view(&self, run: &RunData, area: Rect) -> (Range<usize>, usize) {
        let rows = usize::from(area.height.saturating_sub(ROUTES_HEAD));
        let Some(router) = run.shown().router() else { return (0..0, 0) };
        let routes = &router.plan.routes;
        let shown = self.route.as_ref().or(router.route().map(|choice| &choice.route));
        let at = shown.and_then(|name| routes.iter().position(|route| route.agent == *name));
        let first = window_start(at.unwrap_or(0), routes.len(), rows);
        (first..(first + rows).min(routes.len()), routes.len())
    }

    fn select(&mut self, route: Option<AgentName>) {
        if self.route != route {
            self.route = route;
            self.scroll = None;
        }
    }

    fn move_among_routes(&mut self, run: &RunData, action: Action) {
        let Some(router) = run.shown().router() else { return };
        let routes = &router.plan.routes;
        let Some(last) = routes.len().checked_sub(1) else { return };
        let place = |name: &AgentName| routes.iter().position(|route| route.agent == *name);
        let at = self.route.as_ref().and_then(place);
        // The first step selects the route that the request takes.
        let first = || router.route().and_then(|choice| place(&choice.route)).unwrap_or(0);
        let to = match action {
            Action::Up | Action::Left => at.map_or_else(first, |at| at.saturating_sub(1)),
            Action::Down | Action::Right => at.map_or_else(first, |at| (at + 1).min(last)),
            Action::Top | Action::PageUp => 0,
            Action::Bottom | Action::PageDown => last,
            _ => return,
        };
        self.select(routes.get(to).map(|route| route.agent.clone()));
    }

    fn scroll_text(&mut self, run: &RunData, area: Option<Rect>, by: isize) {
        let Some(area) = area.map(text_area) else { return };
        let document = document(run, self.route());
        let lines = WrappedDocument { document: &document, width: area.width };
        let to = self.scroll().step(by, &lines, usize::from(area.height));
        self.scroll = (to != Scroll::default()).then_some(to);
    }
}

impl RunView for RouterView {
    fn tabs(&self) -> [&'static str; 4] {
        ["Routes", "Decision", "Calls", "Transcript"]
    }

    fn titles(&self) -> [&'static str; 4] {
        let second = if self.route.is_some() { "Route" } else { "Decision" };
        ["Routes", second, "Call tree", "Transcript"]
    }

    fn shows_outcome(&self, run: &RunData) -> bool {
        self.route.is_none() && run.shown().progress.stage == RunState::Closed
    }

    fn layout(&self, run: &RunData, page: Rect) -> PaneWish {
        let inner = inner_columns(page);
        let left = inner.saturating_mul(48) / 100;
        let ended = run.shown().router().filter(|_| run.shown().progress.closed.is_some());
        let ended = ended.map(|router| {
            let document = document(run, None);
            let width = (inner - left).saturating_sub(2);
            let lines = WrappedDocument { document: &document, width };
            let picture = router.plan.routes.len().min(usize::from(MAX_ROWS)) as u16;
            EndedWish {
                left,
                picture: ROUTES_HEAD + picture,
                outcome: lines.rows_within(MAX_ROWS),
                rows: u16::MAX,
            }
        });
        PaneWish { rows: RowWish::Texts, first: left, third: left, ended }
    }

    fn on_move(&mut self, run: &RunData, at: PaneAt<'_>, action: Action) {
        match (at.pane, rows_scrolled(action, at.area())) {
            (Pane::Second, Some(by)) => self.scroll_text(run, at.area(), by),
            (Pane::First | Pane::Second, _) => self.move_among_routes(run, action),
            (Pane::Third | Pane::Fourth, _) => self.lower.on_move(run, at, action),
            (Pane::Events, _) => {}
        }
    }

    fn on_wheel(&mut self, run: &RunData, at: PaneAt<'_>, by: isize) -> bool {
        match (at.pane, at.area()) {
            (Pane::First, _) => {
                let action = if by < 0 { Action::Up } else { Action::Down };
                self.move_among_routes(run, action);
            }
            (Pane::Second, area) => self.scroll_text(run, area, by),
            (pane, Some(area)) => self.lower.on_wheel(run, pane, area, by),
            (_, None) => {}
        }
        true
    }

    fn on_click(&mut self, run: &RunData, at: PaneAt<'_>, _col: u16, row: u16) {
        let Some(area) = at.area() else { return };
        let line = usize::from(row - area.y);
        match at.pane {
            Pane::First => {
                let (window, _) = self.routes_in_view(run, area);
                let Some(line) = line.checked_sub(usize::from(ROUTES_HEAD)) else { return };
                let routes = run.shown().router().map(|router| &router.plan.routes);
                let route = routes.and_then(|routes| routes.get(window.start + line));
                if let Some(route) = route.filter(|_| line < window.len()) {
                    self.select(Some(route.agent.clone()));
                }
            }
            pane => self.lower.on_click(run, pane, area, line),
        }
    }

    fn clear_selection(&mut self, with_tool: bool) -> bool {
        let any = self.route.is_some() || self.lower.has_selection();
        if with_tool || !any {
            return false;
        }
        self.select(None);
        self.lower.clear_selection();
        true
    }

    fn reset_scroll(&mut self) -> bool {
        self.scroll.take().is_some()
    }

    fn target(&self, run: &RunData, focus: Pane) -> Option<InspectTarget> {
        let call = match focus {
            Pane::Third => self.lower.call(run).map(InspectTarget::Call),
            Pane::Fourth => self.lower.transcript_target(run),
            Pane::First | Pane::Second | Pane::Events => None,
        };
        call.or_else(|| self.subject_call(run).map(InspectTarget::Call))
    }

    fn subject_call(&self, run: &RunData) -> Option<SpanId> {
        let router = run.shown().router()?;
        let last = |name: &AgentName| router.agents.agent(name)?.last_call;
        self.route.as_ref().and_then(last).or(router.classify)
    }

    fn text(&self, run: &RunData, focus: Pane) -> Option<String> {
        if focus == Pane::Fourth
            && let Some(line) = self.lower.line_text(run)
        {
            return Some(line);
        }
        let document = document(run, self.route());
        (!document.lines.is_empty()).then(|| document.to_plain())
    }

    fn offers(&self, run: &RunData, _focus: Pane, action: Action) -> bool {
        let swarms = || run.world().agents().is_some_and(|agents| !agents.swarms.is_empty());
        action == Action::Members && swarms()
    }
}
