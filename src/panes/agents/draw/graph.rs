//! Pane 1 of a team: the graph of agents with their handoffs and consultations.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::agent::{MODEL, agent_sign, is_active_agent, names, put_model, time_held};
use crate::agents::plan::AgentsPlan;
use crate::agents::projection::{AgentRow, AgentsFold};
use crate::app::layout::line;
use crate::app::run::data::RunData;
use crate::base::name::AgentName;
use crate::narrate::glyph::Glyph;
use crate::panes::agents::graph::parts::{AgentBox, CALLER_COLUMNS, EdgeWork, Graph};
use crate::panes::agents::graph::{LIST_HEAD, graph, listed};
use crate::panes::agents::picture::{agents_in_picture, is_on_bench};
use crate::ui::border::Borders;
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::pane::empty;
use crate::ui::table;
use crate::ui::text::{Pen, columns, on_border};
use crate::ui::theme::StyleRole;

/// Minimum width of a box whose frame shows a model.
const LEAST_FRAME: u16 = 12;

/// Draws the pane.
pub(crate) fn render(
    selected: Option<&AgentName>,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let Some(team) = world.agents() else {
        return empty(cx, area, "The run is starting.", buf);
    };
    let plan = &team.plan;
    let all: Vec<&AgentRow> = agents_in_picture(plan).filter_map(|name| team.agent(name)).collect();
    match graph(data, area) {
        Some(graph) => render_graph(selected, data, cx, area, &graph, (team, plan), buf),
        None => {
            let name = names(plan).clamp(4, (area.width / 3).max(4));
            render_agent_list(selected, data, cx, area, (team, plan), (&all, name), buf);
        }
    }
}

/// Draws the boxes and the lines between them.
fn render_graph(
    selected: Option<&AgentName>,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    graph: &Graph,
    (team, plan): (&AgentsFold, &AgentsPlan),
    buf: &mut Buffer,
) {
    let world = data.shown();
    let theme = cx.theme;
    let dim = theme.style(StyleRole::Dim);
    let holder = graph.boxes.iter().find(|boxed| {
        team.agent(&boxed.agent)
            .is_some_and(|row| row.turns > 0 && is_active_agent(world, team, row))
    });
    // The selected agent has the focused frame, else the active agent.
    let framed = selected.or(holder.map(|boxed| &boxed.agent));
    let mut borders = Borders::new(area);
    // Drawn last, so that a shared side has the focused style.
    let is_framed = |boxed: &&AgentBox| framed == Some(&boxed.agent);
    for boxed in graph.boxes.iter().filter(|boxed| !is_framed(boxed)) {
        borders.frame(boxed.frame, StyleRole::Border);
    }
    for boxed in graph.boxes.iter().filter(is_framed) {
        borders.frame(boxed.frame, StyleRole::BorderFocus);
    }
    for wire in &graph.wires {
        borders.wire(wire, StyleRole::Border);
    }
    borders.paint(cx, buf);
    for boxed in &graph.boxes {
        let Some(row) = team.agent(&boxed.agent) else { continue };
        let frame = boxed.frame;
        let inside = Rect::new(frame.x + 1, frame.y + 1, frame.width.saturating_sub(2), 1);
        let bench = is_on_bench(team, plan, &boxed.agent);
        if bench {
            // On the side without lines.
            let y = if graph.lifelines { frame.y } else { frame.bottom() - 1 };
            let mut pen = Pen::new(buf, Rect { y, ..inside }.intersection(area), cx.glyphs);
            pen.put(" bench ", on_border(theme.style(StyleRole::Dim)));
        }
        if let Some(model) = world.models.for_agent(boxed.agent.as_str()) {
            on_frame(cx, frame.intersection(area), model, buf);
        }
        let sign = agent_sign(cx, world, row);
        let style = match (row.turns, holder == Some(boxed)) {
            (0, _) => dim,
            (_, true) => theme.style(StyleRole::Strong),
            _ if bench => dim,
            _ => theme.style(StyleRole::Text),
        };
        let mut pen = Pen::new(buf, inside.intersection(area), cx.glyphs);
        // The name, its state and the mark of the active agent. If there is no blank before them,
        // the selection mark is on the frame.
        let room = pen.left().saturating_sub(3);
        let width = room.min(columns(boxed.agent.as_str()) as u16);
        let before = (room - width).div_ceil(2);
        pen.space(before).name(boxed.agent.as_str(), width, style).space(1);
        pen.glyph(sign.glyph, sign.style);
        if holder == Some(boxed) {
            pen.glyph(Glyph::Holder, theme.style(StyleRole::Strong));
        }
        if selected == Some(&boxed.agent) {
            let x = if before > 0 { inside.x } else { frame.x };
            let at = Rect { x, width: 1, ..inside }.intersection(area);
            Pen::new(buf, at, cx.glyphs).glyph(Glyph::Selected, theme.style(StyleRole::Key));
        }
    }
    for label in &graph.labels {
        let (x, y) = label.at;
        let width = area.right().saturating_sub(x.saturating_sub(1));
        let at = Rect { x: x.saturating_sub(1), y, width, height: 1 }.intersection(area);
        let mut pen = Pen::new(buf, at, cx.glyphs);
        let plain = on_border(theme.style(StyleRole::Text));
        match label.on_line {
            true => pen.put(" ", plain),
            false => pen.space(1),
        };
        edge_label(cx, &mut pen, label.work);
        if label.on_line {
            pen.put(" ", plain);
        }
        if let Some((x, y)) = label.end {
            let glyph = if label.left { Glyph::ArrowBack } else { Glyph::Arrow };
            let arrow = cx.glyphs.symbol(glyph);
            let wide = columns(arrow) as u16;
            let x = if label.left { x } else { x + 1 - wide };
            let at = Rect { x, y, width: wide, height: 1 }.intersection(area);
            Pen::new(buf, at, cx.glyphs).put(arrow, theme.style(StyleRole::Border));
        }
    }
    if let Some((x, y)) = graph.start {
        let at = Rect { x, y, width: CALLER_COLUMNS, height: 1 }.intersection(area);
        let arrow = cx.glyphs.symbol(Glyph::Arrow);
        let mut pen = Pen::new(buf, at, cx.glyphs);
        pen.put("you ", dim).put(arrow, theme.style(StyleRole::Border));
    }
    if graph.unlined.is_empty() || !graph.unlined_area.intersects(graph.legend) {
        legend(selected, cx, graph, buf);
    }
    edges_without_line(cx, graph, team, buf);
}

/// Draws an agent's model on a side of its box that has no lines.
fn on_frame(cx: &DrawContext, frame: Rect, model: &str, buf: &mut Buffer) {
    if frame.width < LEAST_FRAME || frame.height < 2 {
        return;
    }
    let bare = cx.glyphs.symbol(Glyph::Horizontal);
    let free = |y: u16| {
        let inner = frame.left() + 1..frame.right() - 1;
        inner.into_iter().all(|x| buf.cell((x, y)).is_some_and(|cell| cell.symbol() == bare))
    };
    let Some(y) = [frame.bottom() - 1, frame.y].into_iter().find(|y| free(*y)) else { return };
    let dim = on_border(cx.theme.style(StyleRole::Dim));
    let width = (columns(model) as u16).min(frame.width - 4);
    let at = Rect { x: frame.x + 1, y, width: frame.width - 2, height: 1 };
    let mut pen = Pen::new(buf, at, cx.glyphs);
    pen.put(" ", dim);
    put_model(cx, &mut pen, model, width, dim);
    pen.put(" ", dim);
}

/// Draws the label of a line: how often work was passed, and refused.
fn edge_label(cx: &DrawContext, pen: &mut Pen, work: EdgeWork) {
    let theme = cx.theme;
    let (plain, refused) =
        (on_border(theme.style(StyleRole::Text)), on_border(theme.style(StyleRole::Refused)));
    if work.consults {
        pen.glyph(Glyph::Consults, on_border(theme.style(StyleRole::Dim))).put(" ", plain);
    }
    if work.count > 0 {
        pen.put(&work.count.to_string(), plain);
    }
    if work.refused > 0 {
        pen.put(if work.count > 0 { " " } else { "" }, plain);
        pen.glyph(Glyph::Refused, refused).put(&work.refused.to_string(), refused);
    }
}

/// Draws the edges without a line as text.
fn edges_without_line(cx: &DrawContext, graph: &Graph, team: &AgentsFold, buf: &mut Buffer) {
    let theme = cx.theme;
    let (dim, plain) = (theme.style(StyleRole::Dim), theme.style(StyleRole::Text));
    if graph.unlined.is_empty() {
        return;
    }
    let mut row = 0;
    let mut pen = Pen::new(buf, line(graph.unlined_area, row), cx.glyphs);
    // "also" only if other edges have lines.
    let indent = if graph.wires.is_empty() { 1 } else { 6 };
    pen.space(1).put(if indent > 1 { "also " } else { "" }, dim);
    let mut gap = 0;
    for (nth, edge) in graph.unlined.iter().filter_map(|at| team.edges.get(*at)).enumerate() {
        let from = edge.from.as_ref().map_or("you", |from| from.as_str());
        let how =
            cx.glyphs.symbol(if edge.is_consultation { Glyph::Consults } else { Glyph::Arrow });
        let mut text = format!("{from} {how} {}", edge.to);
        if edge.count > 0 {
            text.push_str(&format!(" {}", edge.count));
        }
        let refused = match edge.refused {
            0 => String::new(),
            count => format!(" {}{count}", cx.glyphs.symbol(Glyph::Refused)),
        };
        let last = row + 1 >= graph.unlined_area.height;
        // The last row keeps room for the number of omitted edges.
        let more = if last && nth + 1 < graph.unlined.len() { 4 } else { 0 };
        if !pen.fits(columns(&text) + columns(&refused) + usize::from(gap) + more) {
            if last {
                pen.space(1).put(&format!("+{}", graph.unlined.len() - nth), dim);
                break;
            }
            row += 1;
            gap = 0;
            pen = Pen::new(buf, line(graph.unlined_area, row), cx.glyphs);
            pen.space(indent);
        }
        pen.space(gap).put(&text, plain).put(&refused, theme.style(StyleRole::Refused));
        gap = 3;
    }
}

/// Draws the agents without a box, then the meaning of the lines.
fn legend(selected: Option<&AgentName>, cx: &DrawContext, graph: &Graph, buf: &mut Buffer) {
    let dim = cx.theme.style(StyleRole::Dim);
    let glyph = |glyph: Glyph| cx.glyphs.symbol(glyph);
    let mut pen = Pen::new(buf, graph.legend, cx.glyphs);
    pen.space(1);
    if !graph.bench.is_empty() {
        pen.glyph(Glyph::Off, dim).put(" bench:", dim);
        for (nth, name) in graph.bench.iter().enumerate() {
            pen.put(if nth > 0 { "," } else { "" }, dim);
            table::mark(cx, &mut pen, selected == Some(name));
            pen.put(name.as_str(), dim);
        }
        pen.space(3);
    }
    let passes = format!("{}{} hands over", glyph(Glyph::Horizontal), glyph(Glyph::Arrow));
    let consults = format!("{} consults", glyph(Glyph::Consults));
    let refused = format!("{} refused", glyph(Glyph::Refused));
    for text in [passes, consults, refused] {
        if pen.fits(columns(&text)) {
            pen.put(&text, dim).space(2);
        }
    }
}

/// Draws a row for each agent, if there are many agents or little room.
fn render_agent_list(
    selected: Option<&AgentName>,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    (team, plan): (&AgentsFold, &AgentsPlan),
    (all, name): (&[&AgentRow], u16),
    buf: &mut Buffer,
) {
    let world = data.shown();
    let theme = cx.theme;
    let (dim, plain) = (theme.style(StyleRole::Dim), theme.style(StyleRole::Text));
    let mut pen = Pen::new(buf, line(area, 0), cx.glyphs);
    pen.space(3).cell("agent", name + 3, dim).cell("turns", 6, dim).cell("held", 8, dim);
    // With little room the model is shortened; the hops pane shows who passed work.
    let model = match pen.left() {
        _ if world.models.is_empty() => 0,
        room @ 0..24 => room.saturating_sub(1).min(MODEL),
        room => (room / 2).min(MODEL),
    };
    if model > 0 {
        pen.cell("model", model + 1, dim);
    }
    pen.put("passed to", dim);
    let window = listed(plan, selected, area);
    let now = data.drawn_to(cx.now);
    for (nth, row) in all.iter().skip(window.start).take(window.len()).enumerate() {
        let here = line(area, LIST_HEAD + nth as u16);
        let chosen = selected == Some(&row.name);
        let mut pen = table::row_or_blank(cx, here, chosen, buf);
        let sign = agent_sign(cx, world, row);
        let style = if row.turns == 0 { dim } else { plain };
        pen.glyph(sign.glyph, sign.style).space(1).name(row.name.as_str(), name, style).space(1);
        match is_active_agent(world, team, row) {
            true => pen.glyph(Glyph::Holder, theme.style(StyleRole::Strong)),
            false => pen.space(1),
        };
        pen.space(1);
        if row.turns == 0 {
            let bench = is_on_bench(team, plan, &row.name);
            pen.put(if bench { "bench" } else { "unused" }, dim);
            continue;
        }
        pen.cell(&row.turns.to_string(), 6, plain);
        pen.cell(&format::duration_text(time_held(world, row, now)), 8, plain);
        if model > 0 {
            let name = world.models.for_agent(row.name.as_str()).unwrap_or_default();
            put_model(cx, &mut pen, name, model, dim);
            pen.space(1);
        }
        pen.put(&outgoing_work(cx, team, row), dim);
    }
}

/// The agents that an agent passed work to, with counts.
fn outgoing_work(cx: &DrawContext, team: &AgentsFold, from: &AgentRow) -> String {
    let mut parts = Vec::new();
    for edge in team.edges.iter().filter(|edge| edge.from.as_ref() == Some(&from.name)).take(12) {
        let how =
            cx.glyphs.symbol(if edge.is_consultation { Glyph::Consults } else { Glyph::Arrow });
        let mut text = format!("{how} {} {}", edge.to, edge.count);
        if edge.refused > 0 {
            text.push_str(&format!(" {}{}", cx.glyphs.symbol(Glyph::Refused), edge.refused));
        }
        parts.push(text);
    }
    parts.join("  ")
}
