//! What follows the titles of a team's panes.

use crate::panes::agents::graph::graph;
use crate::panes::agents::graph::listed;
use crate::panes::team::view::TeamView;
use ratatui::layout::Rect;

use crate::app::run::data::RunData;
use crate::app::run::layout::Pane;
use crate::narrate::glyph::Glyph;
use crate::panes::agents::picture::agents_in_picture;
use crate::panes::team::view::hop_areas;
use crate::ui::cx::DrawContext;
use crate::ui::table::range;

/// Whether the pane follows the run, after its title.
pub(crate) fn follows(view: &TeamView, data: &RunData, cx: &DrawContext, pane: Pane) -> String {
    let follows = match pane {
        Pane::Second => view.follows_hops(),
        Pane::Fourth => view.lower().follows_transcript(),
        _ => return String::new(),
    };
    let dot = cx.glyphs.symbol(Glyph::Dot);
    match follows {
        _ if data.shown().agents().is_none() => String::new(),
        true => format!(" {dot} following {}", cx.glyphs.symbol(Glyph::Down)),
        false => format!(" {dot} G: follow"),
    }
}

/// The range of rows in view, such as `1-11 of 12`; empty if all fit.
pub(crate) fn rows_in_view(view: &TeamView, data: &RunData, pane: Pane, area: Rect) -> String {
    let Some(team) = data.shown().agents() else { return String::new() };
    let plan = &team.plan;
    let (window, all) = match pane {
        Pane::First if graph(data, area).is_none() => {
            (listed(plan, view.selected_agent(), area), agents_in_picture(plan).count())
        }
        Pane::Second => {
            let (rows, _) = hop_areas(area);
            (view.hop_rows(data, usize::from(rows.height)).0, team.hops.len())
        }
        Pane::Third => match view.lower().calls_in_view(data, area) {
            Some(found) => found,
            None => return String::new(),
        },
        _ => return String::new(),
    };
    if window.is_empty() || window.len() >= all {
        return String::new();
    }
    range(window.start, window.len(), all)
}
