//! Positions of the agents in the picture of a team. They depend on the plan alone, so that nothing
//! moves during a run: events change states, counts and lines. Pure geometry, so that a click finds
//! its agent.
//!
//! A coordinator has its members below it, at one level; the members of a swarm that the operator
//! talks to are side by side. Of several layouts the first that fits is used. Work that follows
//! none of the lines is listed in words.

mod arrangement;
mod boxes;
mod lifelines;
pub mod parts;

use ratatui::layout::Rect;

use self::arrangement::Forest;
use self::boxes::boxes;
use self::lifelines::lifelines;
use self::parts::Graph;
use super::picture::{agents_in_picture, is_on_bench};
use crate::agents::plan::AgentsPlan;
use crate::agents::projection::AgentsFold;
use crate::app::run::data::RunData;
use crate::app::run::layout::window_start;
use crate::base::name::AgentName;

/// Header rows above the list of agents.
pub const LIST_HEAD: u16 = 1;
/// Most agents in a picture; more of them are shown in a list.
const MOST: usize = 12;

/// The picture of the shown world in an area; `None` if there is a list instead.
pub fn graph(run: &RunData, area: Rect) -> Option<Graph> {
    let team = run.shown().agents()?;
    Graph::for_team(area, team, &team.plan)
}

/// The agent at this cell, in the picture or in the list.
pub fn agent_at(
    run: &RunData,
    selected: Option<&AgentName>,
    area: Rect,
    (col, row): (u16, u16),
) -> Option<AgentName> {
    if let Some(graph) = graph(run, area) {
        return graph.agent_at_cell(col, row).cloned();
    }
    let plan = &run.shown().agents()?.plan;
    let all: Vec<&AgentName> = agents_in_picture(plan).collect();
    let line = row.checked_sub(area.y + LIST_HEAD)?;
    let at = listed(plan, selected, area).start + usize::from(line);
    all.get(at).map(|name| (*name).clone())
}

/// The agents in view in a list, by index.
pub fn listed(
    plan: &AgentsPlan,
    selected: Option<&AgentName>,
    area: Rect,
) -> std::ops::Range<usize> {
    let count = agents_in_picture(plan).count();
    let rows = usize::from(area.height.saturating_sub(LIST_HEAD));
    let at = selected.and_then(|name| agents_in_picture(plan).position(|it| it == name));
    let first = window_start(at.unwrap_or(0), count, rows);
    first..(first + rows).min(count)
}

impl Graph {
    /// The picture in an area; `None` if the agents have to be shown in a list.
    pub fn for_team(area: Rect, team: &AgentsFold, plan: &AgentsPlan) -> Option<Graph> {
        let all: Vec<&AgentName> = agents_in_picture(plan).collect();
        // If there is no room for all, agents that joined later are left out.
        let start = |name: &&&AgentName| {
            let member = plan.agents.iter().any(|agent| agent.members.contains(name));
            plan.is_root(name) || member || !is_on_bench(team, plan, name)
        };
        let members: Vec<&AgentName> = all.iter().filter(start).copied().collect();
        let drawn = |names: &[&AgentName]| {
            if names.is_empty() || names.len() > MOST {
                return None;
            }
            let forest = Forest::of(names, plan);
            let swarm = plan.outer_swarm().is_some() && forest.is_flat();
            let lines = if swarm { lifelines(area, names, team) } else { None };
            lines.map_or_else(|| boxes(area, names, &forest, team, plan), Some)
        };
        // For a swarm, lines for its handoffs matter more than a box for every agent.
        let whole = drawn(&all);
        let few = whole.as_ref().is_none_or(|it| !it.lifelines) && members.len() < all.len();
        let fewer = if few { drawn(&members) } else { None };
        let better = |it: &Graph| whole.is_none() || it.lifelines;
        let mut graph = fewer.filter(better).or(whole)?;
        let has_box = |name: &&&AgentName| graph.boxes.iter().any(|boxed| boxed.agent == ***name);
        graph.bench = all.iter().filter(|it| !has_box(it)).map(|it| (**it).clone()).collect();
        Some(graph)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::parts::AgentBox;
    use super::*;
    use crate::agents::plan::{AgentHead, SwarmHead};
    use crate::agents::projection::Edge;
    use crate::app::layout::hits;

    /// A plan in which agent `n + 1` is a member of agent `above[n]`.
    fn plan(above: &[usize], swarm: bool) -> AgentsPlan {
        let name = |nth: usize| AgentName::from(format!("agent_{nth}").as_str());
        let agents = (0..=above.len()).map(|nth| AgentHead {
            name: name(nth),
            description: String::new(),
            kind: String::new(),
            members: (0..above.len())
                .filter(|at| above[*at] == nth)
                .map(|at| name(at + 1))
                .collect(),
            instruction: Arc::from(""),
            tools: Vec::new(),
            max_tool_rounds: None,
            parallel_tools: false,
            member_tools: None,
            swarm: (swarm && nth == 0).then(|| SwarmHead {
                entry: name(1),
                max_handoffs: 20,
                repetitive_handoff_window: 8,
                repetitive_handoff_min_unique: 3,
                max_rejections: 3,
                node_timeout_ms: 1_000,
                cross_request_transfer: false,
                independent_history: false,
                handoff_input: None,
            }),
        });
        AgentsPlan { root: Some(name(0)), agents: agents.collect() }
    }

    /// A team with one handoff and one refusal for each of these pairs.
    fn team(plan: &AgentsPlan, pairs: &[(usize, usize)]) -> AgentsFold {
        let mut team = AgentsFold::new(plan.clone(), &"hello".into());
        let count = plan.agents.len();
        let name = |nth: usize| plan.agents[nth % count].name.clone();
        team.edges.push(Edge {
            from: None,
            to: name(1),
            is_consultation: false,
            count: 1,
            refused: 0,
        });
        for (from, to) in pairs {
            let (from, to) = (Some(name(*from)), name(*to));
            if !team.edges.iter().any(|edge| edge.from == from && edge.to == to) {
                team.edges.push(Edge { from, to, is_consultation: false, count: 1, refused: 1 });
            }
        }
        team
    }

    fn above() -> impl Strategy<Value = Vec<usize>> {
        proptest::collection::vec(0usize..12, 1..12)
            .prop_map(|above| above.iter().enumerate().map(|(nth, at)| at % (nth + 1)).collect())
    }

    proptest! {
        #[test]
        fn boxes_stand_apart_and_no_line_goes_through_one(
            above in above(),
            swarm: bool,
            pairs in proptest::collection::vec((0usize..12, 0usize..12), 0..30),
            width in 40u16..180,
            height in 8u16..60,
        ) {
            let area = Rect::new(3, 2, width, height);
            let plan = plan(&above, swarm);
            let Some(graph) = Graph::for_team(area, &team(&plan, &pairs), &plan) else { return Ok(()) };
            for (nth, one) in graph.boxes.iter().enumerate() {
                prop_assert_eq!(one.frame.intersection(area), one.frame);
                for other in &graph.boxes[nth + 1..] {
                    let shared = u16::from(graph.shared);
                    let inner = |frame: Rect| Rect {
                        width: frame.width - shared,
                        height: frame.height - shared,
                        ..frame
                    };
                    let (one, other) = (inner(one.frame), inner(other.frame));
                    prop_assert!(!one.intersects(other), "{:?} {:?}", one, other);
                }
            }
            for wire in &graph.wires {
                for pair in wire.windows(2) {
                    let ((ax, ay), (bx, by)) = (pair[0], pair[1]);
                    for x in ax.min(bx)..=ax.max(bx) {
                        for y in ay.min(by)..=ay.max(by) {
                            let within = |boxed: &&AgentBox| {
                                let frame = boxed.frame;
                                let inside = Rect::new(frame.x + 1, frame.y + 1, frame.width - 2, 1);
                                hits(inside, x, y)
                            };
                            prop_assert!(!graph.boxes.iter().any(|it| within(&it)), "{x},{y}");
                        }
                    }
                }
            }
            for label in &graph.labels {
                for x in label.at.0..label.at.0 + label.work.width() {
                    let hit = graph.boxes.iter().any(|it| hits(it.frame, x, label.at.1));
                    prop_assert!(!hit, "{label:?}");
                }
            }
        }

        #[test]
        fn what_happens_moves_no_box(
            above in above(),
            swarm: bool,
            pairs in proptest::collection::vec((0usize..12, 0usize..12), 0..30),
            width in 20u16..180,
            height in 4u16..60,
        ) {
            let area = Rect::new(0, 0, width, height);
            let plan = plan(&above, swarm);
            let boxes = |team: &AgentsFold| Graph::for_team(area, team, &plan).map(|graph| graph.boxes);
            prop_assert_eq!(boxes(&AgentsFold::new(plan.clone(), &"hello".into())), boxes(&team(&plan, &pairs)));
        }
    }

    #[test]
    fn members_stand_side_by_side_below_the_one_that_has_them() {
        let plan = plan(&[0, 0, 1, 1], false);
        let graph =
            Graph::for_team(Rect::new(0, 0, 80, 30), &team(&plan, &[]), &plan).expect("room");
        let frame = |nth: usize| graph.boxes[nth].frame;
        assert!(frame(1).y > frame(0).y);
        assert_eq!(frame(2).y, frame(1).y);
        assert!(frame(3).y > frame(1).y);
        assert_eq!(frame(4).y, frame(3).y);
    }

    #[test]
    fn each_pair_of_a_swarm_has_its_line_and_what_has_no_room_is_told() {
        let plan = plan(&[0, 0, 0], true);
        let pairs = [(1, 2), (2, 3), (3, 1), (2, 1)];
        let of = |height| {
            Graph::for_team(Rect::new(0, 0, 60, height), &team(&plan, &pairs), &plan).expect("room")
        };
        let graph = of(12);
        assert!(graph.lifelines);
        assert_eq!(graph.boxes.len(), 3, "the swarm itself has no box");
        assert_eq!((graph.labels.len(), graph.unlined.len()), (4, 0));
        assert!(graph.labels.iter().all(|label| label.end.is_some()));
        let low = of(8);
        assert_eq!((low.labels.len(), low.unlined.len()), (2, 2));
        assert_eq!(low.boxes, graph.boxes);
    }
}
