//! The picture of a team as boxes, each agent with its members below it.

use ratatui::layout::Rect;

use crate::agents::plan::AgentsPlan;
use crate::agents::projection::AgentsFold;
use crate::base::name::AgentName;
use crate::narrate::measure::columns;
use crate::panes::agents::graph::arrangement::{ARRANGEMENTS, Arrangement, Forest, LayerLayout};
use crate::panes::agents::graph::parts::{
    AgentBox, BOX_EXTRA, BOX_ROWS, CALLER_COLUMNS, EdgeWork, Graph, Label, NAMES,
};

/// The picture as boxes, each agent with its members below it.
pub(super) fn boxes(
    area: Rect,
    names: &[&AgentName],
    forest: &Forest,
    team: &AgentsFold,
    plan: &AgentsPlan,
) -> Option<Graph> {
    let swarms = plan.agents.iter().any(|agent| agent.swarm.is_some());
    let high = area.height.checked_sub(1)?;
    let widths = |most: u16| -> Vec<u16> {
        let name = |it: &&AgentName| u16::try_from(columns(it.as_str())).unwrap_or(u16::MAX);
        names.iter().map(|it| name(it).clamp(NAMES.0, most) + BOX_EXTRA).collect()
    };
    let tries = [NAMES.1, 12, 9].map(widths);
    // Handoffs have no lines here; without a row of their own they take the last one.
    let handoff_rows = if swarms { [1, 0] } else { [0, 0] };
    let mut found = tries.iter().flat_map(|widths| {
        ARRANGEMENTS.into_iter().flat_map(move |(stand, between)| {
            // Boxes that share a side must be equally wide.
            let widest = vec![widths.iter().copied().max().unwrap_or(0); widths.len()];
            let widths = if stand == Arrangement::Tight { widest } else { widths.clone() };
            let shape = LayerLayout { widths: &widths, between, arrangement: stand };
            let block = shape.all_parts(forest, area.width);
            handoff_rows.map(|handoff_rows| (widths.clone(), stand, handoff_rows, block.clone()))
        })
    });
    let (widths, stand, handoff_rows, block) = found.find(|(_, _, handoff_rows, block)| {
        block.wide <= area.width && block.high + handoff_rows <= high
    })?;
    let spare = area.width - block.wide;
    // The caller is shown before the agent that it called, if there is room.
    let before = CALLER_COLUMNS.saturating_sub(block.root).min(spare);
    let stacked = matches!(stand, Arrangement::Stacked | Arrangement::Tight);
    let left = area.x + if stacked { before } else { before.max(spare / 2) };
    let move_to = |(x, y): (u16, u16)| (left + x, area.y + y);
    let mut boxes: Vec<(usize, Rect)> = block
        .boxes
        .iter()
        .map(|(agent, x, y)| {
            let (x, y) = move_to((*x, *y));
            (*agent, Rect::new(x, y, widths[*agent], BOX_ROWS))
        })
        .collect();
    boxes.sort_by_key(|(agent, _)| *agent);
    let asked = team.edges.iter().find(|edge| edge.from.is_none()).map(|edge| &edge.to);
    let asked = asked.or(plan.root.as_ref());
    let frame = boxes.iter().find(|(agent, _)| Some(names[*agent]) == asked).map(|it| it.1);
    let start = frame.map(|frame| (frame.x, frame.y + 1));
    let start = start.filter(|(x, _)| *x >= area.x + CALLER_COLUMNS);
    let clear = |(x, y): &(u16, u16)| {
        let words = Rect::new(*x - CALLER_COLUMNS, *y, CALLER_COLUMNS, 1);
        !boxes.iter().any(|(_, other)| words.intersects(*other))
    };
    let mut lined = vec![false; team.edges.len()];
    let mut labels = Vec::new();
    for spot in &block.spots {
        let (from, to) = (names[spot.from], names[spot.to]);
        let mut work = EdgeWork::default();
        for (edge, lined) in team.edges.iter().zip(&mut lined) {
            if edge.from.as_ref() == Some(from) && edge.to == *to {
                *lined = true;
                work.consults |= edge.is_consultation;
                work.count += edge.count;
                work.refused += edge.refused;
            }
        }
        if work != EdgeWork::default() {
            let (x, y) = move_to(spot.at);
            let x = if spot.before { x.saturating_sub(work.width() + 2) } else { x + 2 };
            let on_line = spot.on_line;
            labels.push(Label { at: (x, y), on_line, end: None, left: false, work });
        }
    }
    let also = team.edges.iter().zip(&lined).enumerate();
    let also = also.filter(|(_, (edge, lined))| edge.from.is_some() && !**lined);
    let bottom = area.bottom() - 1;
    let below = (area.y + block.high).min(bottom);
    let room = bottom - below;
    let below = Rect { y: below, height: room.max(u16::from(swarms && handoff_rows == 0)), ..area };
    Some(Graph {
        start: start.filter(clear).map(|(x, y)| (x - CALLER_COLUMNS, y)),
        unlined: also.map(|(nth, _)| nth).collect(),
        boxes: boxes
            .into_iter()
            .map(|(agent, frame)| AgentBox { agent: names[agent].clone(), frame })
            .collect(),
        wires: block.wires.iter().map(|wire| wire.iter().copied().map(move_to).collect()).collect(),
        labels,
        unlined_area: below,
        shared: stand == Arrangement::Tight,
        legend: Rect { y: bottom, height: 1, ..area },
        ..Graph::default()
    })
}
