//! Pane 1 of a team: who passed work to whom.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{agent_sign, dwell, empty, holds, names};
use crate::app::run::RunPage;
use crate::app::run::table::first_seat;
use crate::app::run::team::graph::LIST_HEAD;
use crate::app::run::team::pictured;
use crate::event::world::team::{AgentRow, Team};
use crate::scenario::name::AgentName;
use crate::ui::Cx;
use crate::ui::format;
use crate::ui::glyph::Glyph;
use crate::ui::run::{line, row_style};
use crate::ui::text::Pen;
use crate::ui::theme::Role;

/// Draws the pane.
pub(in super::super) fn render(page: &RunPage, cx: &Cx, area: Rect, buf: &mut Buffer) {
    let world = page.shown();
    let Some((team, plan)) = world.team() else {
        return empty(cx, area, "The run is being started.", buf);
    };
    let all: Vec<&AgentRow> =
        pictured(world, team, plan).filter_map(|name| team.agent(name)).collect();
    let name = names(plan).clamp(4, (area.width / 3).max(4));
    listed(page, cx, area, team, &all, name, buf);
}

/// Many agents, or little room: a row each.
fn listed(
    page: &RunPage,
    cx: &Cx,
    area: Rect,
    team: &Team,
    all: &[&AgentRow],
    name: u16,
    buf: &mut Buffer,
) {
    let world = page.shown();
    let theme = cx.theme;
    let (dim, plain) = (theme.style(Role::Dim), theme.style(Role::Text));
    let mut pen = Pen::new(buf, line(area, 0), cx.glyphs);
    pen.space(3).cell("agent", name + 3, dim).cell("runs", 6, dim).cell("held", 8, dim);
    pen.put("passed to", dim);
    let rows = usize::from(area.height.saturating_sub(LIST_HEAD));
    let selected = page.selected_agent();
    let at = selected.and_then(|name| all.iter().position(|row| row.name == *name));
    let first = first_seat(at.unwrap_or(0), all.len(), rows);
    let now = page.drawn_to(cx.now);
    for (nth, row) in all.iter().skip(first).take(rows).enumerate() {
        let here = line(area, LIST_HEAD + nth as u16);
        let chosen = selected == Some(&row.name);
        row_style(cx, here, chosen, buf);
        let mut pen = Pen::new(buf, here, cx.glyphs);
        let mark = if chosen { cx.glyphs.of(Glyph::Selected) } else { " " };
        pen.put(mark, theme.style(Role::Key));
        let sign = agent_sign(cx, world, row);
        let style = if row.turns == 0 { dim } else { plain };
        pen.glyph(sign.glyph, sign.style).space(1).name(row.name.as_str(), name, style).space(1);
        match holds(world, team, row) {
            true => pen.glyph(Glyph::Holder, theme.style(Role::Strong)),
            false => pen.space(1),
        };
        pen.space(1);
        if row.turns == 0 {
            pen.put("not used", dim);
            continue;
        }
        pen.cell(&row.turns.to_string(), 6, plain);
        pen.cell(&format::took(dwell(world, row, now)), 8, plain);
        pen.put(&passed(cx, team, &row.name), dim);
    }
}

/// Whom an agent passed work to, and how often.
fn passed(cx: &Cx, team: &Team, from: &AgentName) -> String {
    let mut told = Vec::new();
    for edge in team.edges.iter().filter(|edge| edge.from.as_ref() == Some(from)).take(12) {
        let how = cx.glyphs.of(if edge.consults { Glyph::Consults } else { Glyph::Arrow });
        let mut text = format!("{how} {} {}", edge.to, edge.count);
        if edge.refused > 0 {
            text.push_str(&format!(" {}{}", cx.glyphs.of(Glyph::Refused), edge.refused));
        }
        told.push(text);
    }
    told.join("  ")
}
