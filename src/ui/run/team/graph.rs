//! Pane 1 of a team: who passed work to whom.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{agent_sign, dwell, empty, holds, names};
use crate::app::run::RunPage;
use crate::app::run::table::first_seat;
use crate::app::run::team::graph::{Graph, LIST_HEAD, START, Work};
use crate::app::run::team::pictured;
use crate::event::world::team::{AgentRow, Team};
use crate::ui::Cx;
use crate::ui::format;
use crate::ui::glyph::Glyph;
use crate::ui::run::{Tiles, line, row_style};
use crate::ui::text::{Pen, columns, on_line};
use crate::ui::theme::Role;

/// Draws the pane.
pub(in super::super) fn render(page: &RunPage, cx: &Cx, area: Rect, buf: &mut Buffer) {
    let world = page.shown();
    let Some((team, plan)) = world.team() else {
        return empty(cx, area, "The run is being started.", buf);
    };
    let all: Vec<&AgentRow> = pictured(team, plan).filter_map(|name| team.agent(name)).collect();
    match page.graph(area) {
        Some(graph) => drawn(page, cx, area, &graph, team, buf),
        None => {
            let name = names(plan).clamp(4, (area.width / 3).max(4));
            listed(page, cx, area, team, &all, name, buf);
        }
    }
}

/// The boxes and the lines between them.
fn drawn(page: &RunPage, cx: &Cx, area: Rect, graph: &Graph, team: &Team, buf: &mut Buffer) {
    let world = page.shown();
    let theme = cx.theme;
    let dim = theme.style(Role::Dim);
    let selected = page.selected_agent();
    let holder = graph.boxes.iter().find(|boxed| {
        team.agent(&boxed.agent).is_some_and(|row| row.turns > 0 && holds(world, team, row))
    });
    // Who is selected has the frame of what is focused, else who is in control.
    let framed = selected.or(holder.map(|boxed| &boxed.agent));
    let mut tiles = Tiles::new(area);
    for boxed in &graph.boxes {
        let focused = framed == Some(&boxed.agent);
        tiles.frame(boxed.frame, if focused { Role::BorderFocus } else { Role::Border });
    }
    for wire in &graph.wires {
        tiles.wire(wire, Role::Border);
    }
    tiles.paint(cx, buf);
    for boxed in &graph.boxes {
        let Some(row) = team.agent(&boxed.agent) else { continue };
        let frame = boxed.frame;
        let inside = Rect::new(frame.x + 1, frame.y + 1, frame.width.saturating_sub(2), 1);
        let mut pen = Pen::new(buf, inside.intersection(area), cx.glyphs);
        match selected == Some(&boxed.agent) {
            true => pen.glyph(Glyph::Selected, theme.style(Role::Key)),
            false => pen.space(1),
        };
        let sign = agent_sign(cx, world, row);
        let style = match (row.turns, holder == Some(boxed)) {
            (0, _) => dim,
            (_, true) => theme.style(Role::Strong),
            _ => theme.style(Role::Text),
        };
        let room = pen.left().saturating_sub(3);
        let width = room.min(columns(boxed.agent.as_str()) as u16);
        pen.space((room - width) / 2).name(boxed.agent.as_str(), width, style).space(1);
        pen.glyph(sign.glyph, sign.style);
        if holder == Some(boxed) {
            pen.glyph(Glyph::Holder, theme.style(Role::Strong));
        }
    }
    for label in &graph.labels {
        let (x, y) = label.at;
        let width = area.right().saturating_sub(x.saturating_sub(1));
        let at = Rect { x: x.saturating_sub(1), y, width, height: 1 }.intersection(area);
        let mut pen = Pen::new(buf, at, cx.glyphs);
        let plain = on_line(theme.style(Role::Text));
        match label.on_line {
            true => pen.put(" ", plain),
            false => pen.space(1),
        };
        work(cx, &mut pen, label.work, label.end.is_some());
        if label.on_line {
            pen.put(" ", plain);
        }
        if let Some((x, y)) = label.end {
            let arrow = cx.glyphs.of(Glyph::Arrow);
            let wide = columns(arrow) as u16;
            let at = Rect { x: x + 1 - wide, y, width: wide, height: 1 }.intersection(area);
            Pen::new(buf, at, cx.glyphs).put(arrow, theme.style(Role::Border));
        }
    }
    if let Some((x, y)) = graph.start {
        let at = Rect { x, y, width: START, height: 1 }.intersection(area);
        let arrow = cx.glyphs.of(Glyph::Arrow);
        let mut pen = Pen::new(buf, at, cx.glyphs);
        pen.put("you ", dim).put(arrow, theme.style(Role::Border));
    }
    also(cx, graph, team, buf);
    legend(cx, graph, buf);
}

/// How often work went there and back.
fn work(cx: &Cx, pen: &mut Pen, work: Work, across: bool) {
    let theme = cx.theme;
    let (plain, refused) = (on_line(theme.style(Role::Text)), on_line(theme.style(Role::Refused)));
    if work.consults {
        pen.glyph(Glyph::Consults, on_line(theme.style(Role::Dim))).put(" ", plain);
    }
    pen.put(&work.there.to_string(), plain);
    let part = |pen: &mut Pen, glyph: Glyph, count: u32, style| {
        if count > 0 {
            pen.put(" ", plain).glyph(glyph, style).put(&count.to_string(), style);
        }
    };
    part(pen, Glyph::Refused, work.refused, refused);
    let back = if across { Glyph::Left } else { Glyph::Up };
    part(pen, back, work.back, plain);
    part(pen, Glyph::Refused, work.back_refused, refused);
}

/// Work that went another way than the lines, and who was not used and has no box.
fn also(cx: &Cx, graph: &Graph, team: &Team, buf: &mut Buffer) {
    let theme = cx.theme;
    let (dim, plain) = (theme.style(Role::Dim), theme.style(Role::Text));
    let mut pen = Pen::new(buf, graph.told, cx.glyphs);
    pen.space(1).put("also ", dim);
    for (nth, edge) in graph.also.iter().filter_map(|at| team.edges.get(*at)).enumerate() {
        let from = edge.from.as_ref().map_or("you", |from| from.as_str());
        let how = cx.glyphs.of(if edge.consults { Glyph::Consults } else { Glyph::Arrow });
        let mut text = format!("{from} {how} {}", edge.to);
        if edge.count > 0 {
            text.push_str(&format!(" {}", edge.count));
        }
        let refused = match edge.refused {
            0 => String::new(),
            count => format!(" {}{count}", cx.glyphs.of(Glyph::Refused)),
        };
        let gap = if nth > 0 { 3 } else { 0 };
        if !pen.fits(columns(&text) + columns(&refused) + gap + 2) {
            pen.space(1).put(&format!("+{}", graph.also.len() - nth), dim);
            break;
        }
        pen.space(gap as u16).put(&text, plain).put(&refused, theme.style(Role::Refused));
    }
}

/// What the lines mean; where there is room, who was not used as well.
fn legend(cx: &Cx, graph: &Graph, buf: &mut Buffer) {
    let dim = cx.theme.style(Role::Dim);
    let glyph = |glyph: Glyph| cx.glyphs.of(glyph);
    let mut pen = Pen::new(buf, graph.legend, cx.glyphs);
    pen.space(1);
    if !graph.unused.is_empty() {
        let names: Vec<&str> = graph.unused.iter().map(|name| name.as_str()).collect();
        let text = format!("{} not used: {}", glyph(Glyph::Off), names.join(", "));
        pen.put(&text, dim).space(3);
    }
    let passes = format!("{}{} passes control", glyph(Glyph::Horizontal), glyph(Glyph::Arrow));
    let consults = format!("{} consults", glyph(Glyph::Consults));
    let refused = format!("{} refused", glyph(Glyph::Refused));
    for text in [passes, consults, refused] {
        if pen.fits(columns(&text)) {
            pen.put(&text, dim).space(2);
        }
    }
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
        pen.put(&passed(cx, team, row), dim);
    }
}

/// Whom an agent passed work to, and how often.
fn passed(cx: &Cx, team: &Team, from: &AgentRow) -> String {
    let mut told = Vec::new();
    for edge in team.edges.iter().filter(|edge| edge.from.as_ref() == Some(&from.name)).take(12) {
        let how = cx.glyphs.of(if edge.consults { Glyph::Consults } else { Glyph::Arrow });
        let mut text = format!("{how} {} {}", edge.to, edge.count);
        if edge.refused > 0 {
            text.push_str(&format!(" {}{}", cx.glyphs.of(Glyph::Refused), edge.refused));
        }
        told.push(text);
    }
    told.join("  ")
}
