//! Which tools the tables list.

use crate::event::World;
use crate::event::world::Projection;
use crate::event::world::tool_row::ToolRow;

/// The tools that the tables list. A tool without a call is left out where the plan of the run does
/// not have it.
pub(crate) fn listed_tools(world: &World) -> Vec<&ToolRow> {
    let load = world.projection().and_then(Projection::tool_load);
    let rows = world.tools.rows().iter();
    let has_part = |row: &&ToolRow| match &load {
        Some(load) => row.tally.calls + row.tally.repeats > 0 || load.steps.contains(row.name()),
        None => true,
    };
    rows.filter(has_part).collect()
}

/// How many tools the tables leave out, in words; empty if none.
pub(crate) fn unused_tools(world: &World) -> String {
    match world.tools.rows().len() - listed_tools(world).len() {
        0 => String::new(),
        unused => format!("{unused} unused"),
    }
}
