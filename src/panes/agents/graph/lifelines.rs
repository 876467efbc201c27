//! The picture of a swarm: its members side by side, and below them one line for each pair with a
//! handoff or a refused one. Pure geometry.

use ratatui::layout::Rect;

use super::parts::{AgentBox, BOX_EXTRA, BOX_ROWS, CALLER_COLUMNS, EdgeWork, Graph, Label, NAMES};
use crate::agents::projection::AgentsFold;
use crate::base::name::AgentName;
use crate::narrate::measure::columns;

/// Layouts, tried in order: columns of a box besides its name, and columns between two boxes (-1 if
/// neighbours share a side).
const LAYOUTS: [(u16, i32); 3] = [(BOX_EXTRA, 1), (BOX_EXTRA, -1), (BOX_EXTRA - 1, -1)];

/// The picture, or `None` if the members do not fit.
pub(super) fn lifelines(area: Rect, names: &[&AgentName], team: &AgentsFold) -> Option<Graph> {
    // Rows: boxes, the operator's message, one handoff, the work without a line, the legend.
    if area.height < BOX_ROWS + 4 {
        return None;
    }
    let widths = |beside: u16| {
        let name = |name: &&AgentName| u16::try_from(columns(name.as_str())).unwrap_or(u16::MAX);
        names.iter().map(move |it| i32::from(name(it).clamp(NAMES.0, NAMES.1) + beside))
    };
    let (beside, gap, wide) = LAYOUTS.into_iter().find_map(|(beside, gap)| {
        let wide = widths(beside).map(|width| width + gap).sum::<i32>() - gap;
        (wide <= i32::from(area.width)).then_some((beside, gap, wide))
    })?;
    let mut x = i32::from(area.x) + (i32::from(area.width) - wide) / 2;
    let mut boxes = Vec::new();
    for (name, width) in names.iter().zip(widths(beside)) {
        // The layout was chosen to fit, so every box is within the area.
        let frame = Rect::new(x as u16, area.y, width as u16, BOX_ROWS);
        boxes.push(AgentBox { agent: (*name).clone(), frame });
        x += width + gap;
    }
    let foot = area.y + BOX_ROWS;
    let unlined = Rect { y: area.bottom() - 2, height: 1, ..area };
    let mut graph = Graph {
        unlined_area: unlined,
        legend: Rect { y: unlined.bottom(), ..unlined },
        shared: gap < 0,
        lifelines: true,
        ..Graph::default()
    };
    let line = |name: &AgentName| {
        let boxed = boxes.iter().find(|boxed| boxed.agent == *name)?;
        Some(boxed.frame.x + boxed.frame.width / 2)
    };
    let asked = team.edges.iter().find(|edge| edge.from.is_none());
    let first = asked.and_then(|edge| line(&edge.to)).filter(|at| *at >= area.x + CALLER_COLUMNS);
    graph.start = first.map(|at| (at - CALLER_COLUMNS, foot));
    let mut y = foot + u16::from(first.is_some());
    for (nth, edge) in team.edges.iter().enumerate() {
        let Some(from) = &edge.from else { continue };
        let ends = line(from).zip(line(&edge.to)).filter(|_| !edge.is_consultation);
        let Some((from, to)) = ends.filter(|(from, to)| from != to && y < unlined.y) else {
            graph.unlined.push(nth);
            continue;
        };
        graph.wires.push(vec![(from, y), (to, y)]);
        let work = EdgeWork { consults: false, count: edge.count, refused: edge.refused };
        let (left, right) = (from.min(to), from.max(to));
        // The label is at the end that hands over, so that it is not read as another line's.
        let at = if from < to { left + 3 } else { right.saturating_sub(work.width() + 2) };
        let end = if from < to { right - 1 } else { left + 1 };
        let label =
            Label { at: (at, y), on_line: true, end: Some((end, y)), left: to < from, work };
        graph.labels.push(label);
        y += 1;
    }
    let mut stems = Vec::new();
    // Each stem reaches down to the last line that ends at it.
    let asked = graph.start.map(|(x, y)| (x + CALLER_COLUMNS, y));
    for boxed in &boxes {
        let x = boxed.frame.x + boxed.frame.width / 2;
        let meets = graph.wires.iter().filter(|wire| wire.iter().any(|end| end.0 == x));
        let last = meets.filter_map(|wire| Some(wire.first()?.1)).max();
        // The operator's message enters at a stem, so it needs one even without a line.
        let last = last.or(asked.filter(|asked| asked.0 == x).map(|asked| asked.1));
        stems.extend(last.map(|last| vec![(x, foot - 1), (x, last)]));
    }
    graph.wires.extend(stems);
    graph.boxes = boxes;
    Some(graph)
}
