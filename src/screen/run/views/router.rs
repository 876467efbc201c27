//! The view of a router: a row for each route with what the classifier claims, how the route was
//! decided, then the calls and the transcript that all patterns of agents show. The figures are the
//! model's claim; only the comparison with `min_confidence` uses them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::agents::{LowerPanes, add_outcome, agent_sign, calls, transcript};
use super::{PaneAt, PaneTitle, TrackRow, View, follow_note, has_swarms, pane_title};
use crate::base::name::AgentName;
use crate::log::event::SpanId;
use crate::log::facts::router::{FallbackCause, RouteHead};
use crate::log::world::router::Router;
use crate::log::world::{RunState, SpanState, World};
use crate::scenario::patterns::router::{CLASSIFY, ROUTE};
use crate::screen::action::Action;
use crate::screen::key_hints::Why;
use crate::screen::layout::{below, line};
use crate::screen::list::{Column, ListPane, heads, stepped_index};
use crate::screen::run::data::RunData;
use crate::screen::run::inspector::{InspectTarget, WrappedDocument};
use crate::screen::run::layout::{EndedSize, Pane, PaneSizes, RowSize, inner_columns};
use crate::screen::run::pane_text::{MAX_ROWS, rows_scrolled, text_area};
use crate::screen::scroll::{Scroll, WrappingLines, draw_scrolled};
use crate::screen::text::Pen;
use crate::screen::{DrawContext, list};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::patterns::router::{
    confidence_compared, decision_text, no_fallback_text, route_state,
};
use crate::words::styled::{Badge, StyleRole, StyledText};

/// Rows above the routes: the column names.
pub const ROUTES_HEAD: u16 = 1;

/// Selections and scroll positions in the panes of a router.
#[derive(Debug, Default)]
pub struct RouterView {
    /// The selected route; `None`: the decision.
    route: Option<AgentName>,
    /// The first row in view of pane 2.
    scroll: Scroll,
    lower: LowerPanes,
}

impl RouterView {
    /// The selected route.
    pub fn route(&self) -> Option<&AgentName> {
        self.route.as_ref()
    }

    /// The call tree and the transcript.
    pub fn lower(&self) -> &LowerPanes {
        &self.lower
    }

    /// The list of the routes in pane 1.
    pub fn route_list(&self, router: &Router, area: Rect) -> ListPane {
        let routes = &router.plan.routes;
        let shown = self.route.as_ref().or(router.route().map(|choice| &choice.route));
        let at = shown.and_then(|name| routes.iter().position(|route| route.agent == *name));
        ListPane::new(below(area, ROUTES_HEAD), routes.len(), at.unwrap_or(0))
    }

    fn select(&mut self, route: Option<AgentName>) {
        if self.route != route {
            self.route = route;
            self.scroll.reset();
        }
    }

    fn move_among_routes(&mut self, run: &RunData, action: Action) {
        let Some(router) = run.shown().router() else { return };
        let routes = &router.plan.routes;
        let place = |name: &AgentName| routes.iter().position(|route| route.agent == *name);
        let at = self.route.as_ref().and_then(place);
        // The first step selects the route that the request takes.
        let first = router.route().and_then(|choice| place(&choice.route)).unwrap_or(0);
        if let Some(to) = stepped_index(action, at, first, routes.len()) {
            self.select(routes.get(to).map(|route| route.agent.clone()));
        }
    }

    fn scroll_text(&mut self, run: &RunData, area: Option<Rect>, by: isize) {
        if let Some(area) = area {
            self.scroll = self.scroll.step_in(by, &document(run, self.route()), area);
        }
    }
}

impl View for RouterView {
    fn tabs(&self) -> [&'static str; 4] {
        ["Routes", "Decision", "Calls", "Transcript"]
    }

    fn asking_pane(&self) -> Pane {
        Pane::Fourth
    }

    fn titles(&self) -> [&'static str; 4] {
        let second = if self.route.is_some() { "Route" } else { "Decision" };
        ["Routes", second, "Call tree", "Transcript"]
    }

    fn shows_outcome(&self, run: &RunData) -> bool {
        self.route.is_none() && run.shown().progress.stage == RunState::Closed
    }

    fn layout(&self, run: &RunData, page: Rect) -> PaneSizes {
        let inner = inner_columns(page);
        let left = inner.saturating_mul(48) / 100;
        let ended = run.shown().router().filter(|_| run.shown().progress.closed.is_some());
        let ended = ended.map(|router| {
            let document = document(run, None);
            let width = (inner - left).saturating_sub(2);
            let lines = WrappedDocument { document: &document, width };
            let picture = router.plan.routes.len().min(usize::from(MAX_ROWS)) as u16;
            EndedSize {
                left,
                picture: ROUTES_HEAD + picture,
                outcome: lines.rows_within(MAX_ROWS),
                rows: u16::MAX,
            }
        });
        PaneSizes { rows: RowSize::Texts, first: left, third: left, ended }
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
            (Pane::First, _) => self.move_among_routes(run, Action::of_wheel(by)),
            (Pane::Second, area) => self.scroll_text(run, area, by),
            (pane, Some(area)) => self.lower.on_wheel(run, pane, area, by),
            (_, None) => {}
        }
        true
    }

    fn on_click(&mut self, run: &RunData, at: PaneAt<'_>, _col: u16, row: u16) {
        let Some(area) = at.area() else { return };
        match at.pane {
            Pane::First => {
                let Some(router) = run.shown().router() else { return };
                if let Some(at) = self.route_list(router, area).row_at(row) {
                    self.select(router.plan.routes.get(at).map(|route| route.agent.clone()));
                }
            }
            pane => self.lower.on_click(run, pane, area, usize::from(row - area.y)),
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
        self.scroll.reset()
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

    fn available(&self, run: &RunData, _focus: Pane, action: Action) -> Result<(), Why> {
        Why::unless(action == Action::Members && has_swarms(run))
    }

    fn pane(&self, data: &RunData, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => render_routes(self, data, cx, area, buf),
            Pane::Second => {
                let text = document(data, self.route());
                draw_scrolled(cx, text_area(area), &text, self.scroll, buf);
            }
            Pane::Third => calls::render(self.lower(), data, cx, area, buf),
            Pane::Fourth => transcript::render(self.lower(), data, cx, area, buf),
            Pane::Events => {}
        }
    }

    fn title(&self, data: &RunData, pane: Pane, cx: &DrawContext, inside: Rect) -> PaneTitle {
        let title = match pane {
            Pane::Second if self.shows_outcome(data) => {
                let sign = cx.theme.run(data.shown());
                PaneTitle::with_sign(("Outcome".to_owned(), Some(sign)))
            }
            _ => PaneTitle::plain(pane_title(self.titles(), pane)),
        };
        let aside = match (pane, data.shown().router()) {
            (Pane::First, Some(router)) => self.route_list(router, inside).range_text(),
            (Pane::Third, _) => self.lower().calls_in_view(data, inside),
            _ => String::new(),
        };
        let notes = match pane {
            Pane::Fourth => vec![follow_note(cx, self.lower().follows_transcript())],
            _ => Vec::new(),
        };
        PaneTitle { notes, aside, ..title }
    }

    fn track(&self, data: &RunData, cx: &DrawContext, row: TrackRow, buf: &mut Buffer) {
        render_steps(data, cx, row.area, buf);
    }

    fn track_columns(&self, _data: &RunData) -> (u16, u16) {
        (30, 48)
    }
}

/// The glyphs of a check that holds, and of one that does not.
const HOLDS: Badge = Badge::new(Glyph::Done, "", StyleRole::Done);
const FAILS: Badge = Badge::new(Glyph::Refused, "", StyleRole::Refused);

/// The text for the selected route or, without one, for the decision.
pub fn document(run: &RunData, selected: Option<&AgentName>) -> StyledText {
    let mut text = StyledText::default();
    let Some(router) = run.shown().router() else { return text };
    match selected {
        Some(route) => add_route(router, route, run, &mut text),
        None => add_decision(router, run, &mut text),
    }
    text
}

fn add_decision(router: &Router, run: &RunData, text: &mut StyledText) {
    let world = run.shown();
    if world.progress.stage == RunState::Closed {
        let by = router.agents.answered_by.as_ref().or(router.route().map(|choice| &choice.route));
        let call = by.and_then(|name| router.agents.agent(name)?.last_call).or(router.classify);
        add_outcome(run, call, text);
        text.gap();
    }
    match (&router.proposed, router.classify) {
        (Some(proposed), _) => {
            text.field("proposed", proposed.route.as_str());
            let claimed = format::confidence(proposed.confidence);
            text.field("confidence", format!("{claimed}, as the classifier says"));
            text.paragraph("reason", &proposed.reason);
        }
        (None, Some(call)) => {
            let open = world.spans.get(call).is_some_and(|span| span.state == SpanState::Open);
            if open && world.progress.is_live() {
                text.item("", StyleRole::Running, "The classifier reads the request.");
            }
            if let Some(refused) = &router.refused {
                text.error("refused", &**refused);
            }
        }
        (None, None) if world.progress.stage == RunState::Closed => {}
        (None, None) => {
            text.item("", StyleRole::Dim, "No route yet: the classifier is called first.")
        }
    }
    if router.chosen.is_some() {
        add_checks(router, text);
        if let Some(decision) = decision_text(router) {
            let role =
                if router.route().is_some() { StyleRole::Strong } else { StyleRole::Refused };
            text.item("route", role, decision);
        }
    }
}

/// Adds the checks of policy in their order, up to the first that does not hold.
fn add_checks(router: &Router, text: &mut StyledText) {
    let (Some(proposed), Some(chosen)) = (&router.proposed, &router.chosen) else { return };
    let cause = router.cause();
    let route = &proposed.route;
    let count = format::count_noun(router.plan.routes.len() as u64, "route");
    text.signed("checks", HOLDS, format!("{route} is one of the {count}"));
    if cause == Some(FallbackCause::RouteOff) {
        let flag = router.plan.route(route).and_then(|it| it.flag.as_ref());
        let flag = flag.map_or_else(String::new, |flag| format!(": the flag {flag} was off"));
        text.signed("", FAILS, format!("{route} is switched off{flag}"));
    } else {
        text.signed("", HOLDS, format!("{route} is switched on"));
        let (claimed, least) = confidence_compared(router).unwrap_or_default();
        match cause {
            None => text.signed("", HOLDS, format!("{claimed} is at least {least}")),
            Some(_) => text.signed("", FAILS, format!("{claimed} is below {least}")),
        }
    }
    if chosen.is_err() {
        text.signed("", FAILS, no_fallback_text(router));
    }
}

fn add_route(router: &Router, route: &AgentName, run: &RunData, text: &mut StyledText) {
    let world = run.shown();
    text.field("route", route.as_str());
    let claimed = router.proposed.as_ref().and_then(|proposed| proposed.confidence_in(route));
    if let Some(claimed) = claimed {
        let said = format!("{}, as the classifier says", format::confidence(claimed));
        text.field("confidence", said);
    }
    let standing = route_state(router, route, &world.run);
    if !standing.is_empty() {
        text.field("state", standing);
    }
    let Some(head) = router.agents.plan.agent(route) else { return };
    text.field("agent", &head.kind);
    text.field("does", &head.description);
    if !head.members.is_empty() {
        let members: Vec<&str> = head.members.iter().map(AgentName::as_str).collect();
        text.field("members", members.join(", "));
    }
    if let Some(flag) = router.plan.route(route).and_then(|route| route.flag.as_ref()) {
        let on = router.flag_off(route, &world.run).is_none();
        text.field("flag", format!("{flag} is {}", if on { "on" } else { "off" }));
    }
    if let Some(row) = router.agents.agent(route).filter(|row| row.turns > 0) {
        text.field("turns", row.turns.to_string());
    }
}

/// Width of the figure of a confidence, with a blank.
const CLAIM: u16 = 4;
/// Width of the kind of the agent, with a blank.
const KIND: u16 = 6;

/// Columns besides the name and the kind: signs, bar, figure, and the words for the state.
const BESIDE_KIND: u16 = 4 + 11 + CLAIM + 1 + 20;

/// The widths of the columns.
#[derive(Clone, Copy)]
struct RouteColumns {
    name: u16,
    kind: u16,
    bar: u16,
}

impl RouteColumns {
    fn for_width(width: u16, router: &Router) -> Self {
        let longest = router.plan.routes.iter().map(|route| columns(route.agent.as_str())).max();
        let longest = u16::try_from(longest.unwrap_or(0)).unwrap_or(u16::MAX);
        let name = longest.clamp(5, 20).min((width / 3).max(5));
        match width {
            70.. => Self { name, kind: KIND, bar: 16 },
            50..70 => {
                let kind = if width >= BESIDE_KIND + name + KIND { KIND } else { 0 };
                Self { name, kind, bar: 10 }
            }
            _ => Self { name, kind: 0, bar: 0 },
        }
    }
}

fn render_routes(
    view: &RouterView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let Some(router) = world.router() else { return };
    let widths = RouteColumns::for_width(area.width, router);
    let mut pen = Pen::new(buf, line(area, 0), cx.glyphs);
    pen.space(3);
    let claim = widths.bar + u16::from(widths.bar > 0) + CLAIM;
    let kind = if widths.kind > 0 { "agent" } else { "" };
    heads(
        cx,
        &mut pen,
        &[
            Column::left("route", widths.name + 1),
            Column::left(kind, widths.kind),
            Column::left(if widths.bar > 0 { "confidence" } else { "conf" }, claim + 1),
            Column::rest("state"),
        ],
    );
    let list = view.route_list(router, area);
    for (at, here) in list.rows() {
        let Some(route) = router.plan.routes.get(at) else { break };
        let selected = view.route() == Some(&route.agent);
        let mut pen = list::row(cx, here, selected, buf);
        route_row(cx, world, router, route, &mut pen, widths);
    }
    strangers(cx, router, below(list.area, list.window.len() as u16), buf);
}

fn route_row(
    cx: &DrawContext,
    world: &World,
    router: &Router,
    route: &RouteHead,
    pen: &mut Pen,
    widths: RouteColumns,
) {
    let theme = cx.theme;
    let dim = theme.style(StyleRole::Dim);
    let chosen = router.route().is_some_and(|choice| choice.route == route.agent);
    let proposed = router.proposed.as_ref().is_some_and(|it| it.route == route.agent);
    let off = router.flag_off(&route.agent, &world.run).is_some();
    let row = router.agents.agent(&route.agent).filter(|_| chosen);
    let (glyph, style, text) = match row {
        Some(row) => {
            let sign = agent_sign(cx, world, row);
            (sign.glyph, sign.style, theme.style(StyleRole::Strong))
        }
        None if proposed && router.chosen.is_some() => {
            (Glyph::Refused, theme.style(StyleRole::Refused), theme.style(StyleRole::Text))
        }
        None if off => (Glyph::Off, theme.style(StyleRole::Off), theme.style(StyleRole::Off)),
        None => (Glyph::NotYet, dim, theme.style(StyleRole::Text)),
    };
    pen.glyph(glyph, style).space(1);
    pen.name(route.agent.as_str(), widths.name, text).space(1);
    if widths.kind > 0 {
        let kind = router.agents.plan.agent(&route.agent).map_or("", |agent| &agent.kind);
        pen.cell(kind, widths.kind, dim);
    }
    let claim = router.proposed.as_ref().and_then(|it| it.confidence_in(&route.agent));
    claim_cell(cx, pen, claim, router.plan.min_confidence, widths.bar);
    let state = route_state(router, &route.agent, &world.run);
    let role = match (chosen, proposed, off) {
        (true, ..) => StyleRole::Strong,
        (_, true, _) if router.chosen.is_some() => StyleRole::Refused,
        (_, _, true) => StyleRole::Off,
        _ => StyleRole::Dim,
    };
    pen.put(&state, theme.style(role));
}

/// Draws a confidence as a bar and a figure; one below `min_confidence` is dimmed.
fn claim_cell(cx: &DrawContext, pen: &mut Pen, claim: Option<f64>, least: f64, bar: u16) {
    let theme = cx.theme;
    let (dim, empty) = (theme.style(StyleRole::Dim), theme.style(StyleRole::BarEmpty));
    let enough = claim.is_some_and(|claim| claim >= least);
    let style = theme.style(if enough { StyleRole::Done } else { StyleRole::Dim });
    if bar > 0 {
        let part = claim.unwrap_or(0.0).clamp(0.0, 1.0);
        let full = (part * f64::from(bar)).round() as u16;
        // Only a confidence of 0 has an empty bar.
        let full = if part > 0.0 { full.max(1) } else { 0 }.min(bar);
        pen.glyphs(Glyph::BarFull, full, style).glyphs(Glyph::BarEmpty, bar - full, empty);
        pen.space(1);
    }
    let figure = claim.map_or_else(|| "-".to_owned(), format::confidence);
    let role = if enough { StyleRole::Text } else { StyleRole::Dim };
    pen.right_aligned(&figure, CLAIM - 1, theme.style(role)).put("  ", dim);
}

/// Draws the names that the classifier gave besides the routes: they are shown and never called.
fn strangers(cx: &DrawContext, router: &Router, area: Rect, buf: &mut Buffer) {
    let Some(proposed) = &router.proposed else { return };
    let known = |name: &str| router.plan.routes.iter().any(|it| it.agent.as_str() == name);
    let others = proposed.alternatives.iter().filter(|score| !known(&score.route));
    let dim = cx.theme.style(StyleRole::Dim);
    for (nth, score) in others.take(usize::from(area.height)).enumerate() {
        let mut pen = Pen::new(buf, line(area, nth as u16), cx.glyphs);
        pen.space(3).name(&score.route, (area.width / 3).max(5), dim).space(1);
        pen.put(&format::confidence(score.confidence), dim).put("  not a route", dim);
    }
}

fn render_steps(data: &RunData, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let world = data.shown();
    let Some(router) = world.router() else { return };
    let theme = cx.theme;
    let call = router.classify.and_then(|call| world.spans.get(call)).map(|span| &span.state);
    let classify = match (call, &router.proposed) {
        (None, _) => (Glyph::NotYet, StyleRole::Dim),
        (Some(_), Some(_)) => (Glyph::Done, StyleRole::Done),
        (Some(SpanState::Open), None) if world.progress.is_live() => {
            (Glyph::Running, StyleRole::Running)
        }
        (Some(_), None) if world.progress.is_live() => (Glyph::Retry, StyleRole::Retry),
        (Some(_), None) => (Glyph::Failed, StyleRole::Failed),
    };
    let route = match &router.chosen {
        None => (Glyph::NotYet, StyleRole::Dim),
        Some(Ok(choice)) if choice.fallback.is_some() => (Glyph::Alert, StyleRole::Retry),
        Some(Ok(_)) => (Glyph::Done, StyleRole::Done),
        Some(Err(_)) => (Glyph::Refused, StyleRole::Refused),
    };
    let dim = theme.style(StyleRole::Dim);
    let gap = format!(" {} ", cx.glyphs.symbol(Glyph::Horizontal).repeat(2));
    let rests = |step: &str| world.settings.breakpoints.iter().any(|at| at.as_str() == step);
    let mut pen = Pen::new(buf, area, cx.glyphs);
    for (nth, (step, (glyph, role))) in [(CLASSIFY, classify), (ROUTE, route)].iter().enumerate() {
        let style = theme.style(*role);
        if nth > 0 {
            pen.put(&gap, dim);
        }
        pen.put(step, style).space(1).glyph(*glyph, style);
        if rests(step) && *glyph == Glyph::NotYet {
            pen.space(1).glyph(Glyph::Breakpoint, theme.style(StyleRole::NeedsYou));
        }
    }
    let agent = router.route().and_then(|choice| router.agents.agent(&choice.route));
    if let Some(row) = agent {
        let sign = agent_sign(cx, world, row);
        pen.put(&gap, dim);
        let room = pen.left().saturating_sub(2).min(columns(row.name.as_str()) as u16);
        pen.name(row.name.as_str(), room, sign.style).space(1).glyph(sign.glyph, sign.style);
    }
}
