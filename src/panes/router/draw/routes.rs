//! Pane 1 of a router: a row for each route with what the classifier claims, and what became of it.
//! The figures are the model's claim; only the comparison with `min_confidence` uses them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::layout::line;
use crate::app::run::data::RunData;
use crate::event::world::World;
use crate::narrate::glyph::Glyph;
use crate::panes::agents::draw::agent::agent_sign;
use crate::panes::router::view::{ROUTES_HEAD, RouterView};
use crate::pattern::router::plan::RouteHead;
use crate::pattern::router::projection::Router;
use crate::pattern::router::words::decision::standing;
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::table::{self, Column, heads};
use crate::ui::text::{Pen, columns};
use crate::ui::theme::StyleRole;

/// Width of the figure of a confidence, with a blank.
const CLAIM: u16 = 4;
/// Width of the kind of the agent, with a blank.
const KIND: u16 = 6;

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
            50..70 => Self { name, kind: 0, bar: 10 },
            _ => Self { name, kind: 0, bar: 0 },
        }
    }
}

/// Draws the pane.
pub(super) fn render(
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
            Column::left("claimed", claim + 1),
            Column::rest("state"),
        ],
    );
    let (window, _) = view.routes_in_view(data, area);
    let first = window.start;
    for (nth, route) in router.plan.routes.iter().enumerate().skip(first).take(window.len()) {
        let here = line(area, ROUTES_HEAD + (nth - first) as u16);
        let selected = view.route() == Some(&route.agent);
        let mut pen = table::row(cx, here, selected, buf);
        route_row(cx, world, router, route, &mut pen, widths);
    }
    let below = ROUTES_HEAD + window.len() as u16;
    strangers(cx, router, Rect { y: area.y + below, height: area.height - below, ..area }, buf);
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
    let state = standing(router, &route.agent, &world.run);
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

/// Draws what the classifier named besides the routes: such names are shown and never called.
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
