//! Screens, as snapshots.

mod comparison_screens;
mod dashboard_screens;
mod model_names_screens;
mod observed_screens;
mod orchestrator_screens;
mod people_screens;
mod question_cards;
mod questions_screens;
mod remote_screens;
mod research_screens;
mod router_screens;
mod runview_screens;
mod runview_sizes;
mod runview_window;
mod team_screens;
mod titles;
mod tools_screens;

use crate::support::screen::Dash;

/// The sizes that every page is made for.
const SIZES: [(u16, u16); 3] = [(80, 24), (120, 36), (200, 50)];

/// The state of each page that is a picture in every size.
const PAGES: [&str; 13] = [
    "brownout",
    "comparison",
    "form_list",
    "help",
    "home_runs",
    "inspector_prompt",
    "office",
    "reading",
    "router_routed",
    "ring_30",
    "streaming",
    "swarm",
    "working",
];

/// Windows over a page, which are no larger at the largest size.
const WINDOWS: [&str; 3] = ["confirm_kill", "drawer", "flags"];

/// The sizes in which this state is a picture. Another one at 120x36 is enough: `runview_sizes.rs` checks
/// every state in every size for what a picture would show.
fn sizes_of(state: &str) -> &'static [(u16, u16)] {
    match state {
        _ if PAGES.contains(&state) => &SIZES,
        _ if WINDOWS.contains(&state) => &SIZES[..2],
        _ => &SIZES[1..2],
    }
}

/// A state that differs from a picture in a few texts: these are on its screen.
fn shows(dash: &Dash, texts: &[&str]) {
    let screen = dash.screen();
    for text in texts {
        assert!(screen.contains(text), "{text}:\n{screen}");
    }
}
