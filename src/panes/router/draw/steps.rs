//! The second header row of a router: classify, route, and the agent that answers.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::run::data::RunData;
use crate::event::world::SpanState;
use crate::narrate::glyph::Glyph;
use crate::panes::agents::draw::agent::agent_sign;
use crate::pattern::router::spec::boundary::{CLASSIFY, ROUTE};
use crate::ui::cx::DrawContext;
use crate::ui::text::{Pen, columns};
use crate::ui::theme::StyleRole;

/// Draws the row.
pub(super) fn render(data: &RunData, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
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
