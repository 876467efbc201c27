//! What follows the titles of a team's panes.

use ratatui::layout::Rect;

use crate::app::run::team::{agents_in_picture, hop_areas};
use crate::app::run::{Pane, RunPage};
use crate::ui::cx::DrawContext;
use crate::ui::glyph::Glyph;
use crate::ui::table::range;

/// Whether the pane follows the run, after its title.
pub(crate) fn follows(page: &RunPage, cx: &DrawContext, pane: Pane) -> String {
    let follows = match pane {
        Pane::Second => page.follows_hops(),
        Pane::Fourth => page.follows_transcript(),
        _ => return String::new(),
    };
    let dot = cx.glyphs.symbol(Glyph::Dot);
    match follows {
        _ if page.shown().team().is_none() => String::new(),
        true => format!(" {dot} following {}", cx.glyphs.symbol(Glyph::Down)),
        false => format!(" {dot} G: follow"),
    }
}

/// The range of rows in view, such as `1-11 of 12`; empty if all fit.
pub(crate) fn rows_in_view(page: &RunPage, pane: Pane, area: Rect) -> String {
    let Some(team) = page.shown().team() else { return String::new() };
    let plan = &*team.plan;
    let (window, all) = match pane {
        Pane::First if page.graph(area).is_none() => {
            (page.listed(plan, area), agents_in_picture(plan).count())
        }
        Pane::Second => {
            let (rows, _) = hop_areas(area);
            (page.hop_rows(usize::from(rows.height)).0, team.hops.len())
        }
        Pane::Third => match page.call_tree() {
            Some(tree) => (page.call_rows(&tree, usize::from(area.height)).0, tree.len()),
            None => return String::new(),
        },
        _ => return String::new(),
    };
    if window.is_empty() || window.len() >= all {
        return String::new();
    }
    range(window.start, window.len(), all)
}
