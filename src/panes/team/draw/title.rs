//! The titles of a team's panes, and what follows them.

use ratatui::layout::Rect;

use super::hop::hop_sign;
use crate::app::run::data::RunData;
use crate::app::run::layout::Pane;
use crate::app::run::run_view::{RunView, pane_title};
use crate::narrate::glyph::Glyph;
use crate::panes::team::agent_list::AgentList;
use crate::panes::team::sequence::{Diagram, Sequence};
use crate::panes::team::subject::TeamSubject;
use crate::panes::team::view::TeamView;
use crate::ui::cx::DrawContext;
use crate::ui::sign::StateSign;
use crate::ui::table::range;

/// The title of a pane and the state of what it shows.
pub(crate) fn title(
    view: &TeamView,
    data: &RunData,
    cx: &DrawContext,
    pane: Pane,
) -> (String, Option<StateSign>) {
    let plain = pane_title(view.titles(), pane).to_owned();
    if pane != Pane::Second {
        return (plain, None);
    }
    match view.subject(data) {
        TeamSubject::Agents => (plain, None),
        TeamSubject::Hop(at, hop) => {
            (format!("Hop {}", at + 1), Some(hop_sign(cx.theme, data.shown(), hop)))
        }
        TeamSubject::Outcome => ("Outcome".to_owned(), Some(cx.theme.run(data.shown()))),
    }
}

/// Whether the pane follows the run, after its title.
pub(crate) fn follows(view: &TeamView, data: &RunData, cx: &DrawContext, pane: Pane) -> String {
    let follows = match pane {
        Pane::First => view.follows_hops(),
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
    let (window, all) = match pane {
        Pane::First => {
            let (Some(diagram), Some(sequence)) = (Diagram::of(data, area), Sequence::of(data))
            else {
                return String::new();
            };
            (view.hop_rows(data, usize::from(diagram.rows.height)).0, sequence.len())
        }
        Pane::Second if matches!(view.subject(data), TeamSubject::Agents) => {
            let list = AgentList::of(&team.plan, view.selected_agent(), area);
            (list.rows, list.count)
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
