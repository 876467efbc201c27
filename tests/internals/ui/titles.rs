//! The title of the terminal's window.

use std::sync::Arc;

use crate::engine::Schedule;
use crate::log::event::{Event, EventKind};
use crate::screen::chrome::title;
use crate::screen::theme::Theme;
use crate::support::screen::{Dash, facts, until};
use crate::words::glyph::Glyphs;

fn title_of(dash: &Dash) -> String {
    title(&dash.state, &Theme::default(), Glyphs::new(false))
}

/// The first events of a run, with its name in place of the scenario's.
fn begun(scenario: &str) -> Vec<Arc<Event>> {
    let mut events = facts(scenario, &[], &[], Schedule::default());
    let end = until(&events, |kind| matches!(kind, EventKind::CallAnswered { .. }));
    events.truncate(end);
    events
}

#[test]
fn title_lists_live_then_ended_runs() {
    let mut dash = Dash::new(120, 36);
    assert_eq!(title_of(&dash), "roundtable");
    dash.run("r-0001", &begun("checkout-launch"));
    assert_eq!(title_of(&dash), "● live checkout-launch · roundtable");
    dash.run("r-0002", &begun("checkout-unanimous"));
    assert_eq!(title_of(&dash), "● 2 live · roundtable");
    let ascii = title(&dash.state, &Theme::default(), Glyphs::new(true));
    assert!(ascii.is_ascii() && ascii.contains("2 live"), "{ascii}");

    let mut dash = Dash::new(120, 36);
    dash.run("r-0001", &facts("checkout-launch", &[], &[], Schedule::default()));
    assert_eq!(title_of(&dash), "✓ done checkout-launch · roundtable");
    dash.press("Esc");
    dash.run("r-0002", &begun("checkout-unanimous"));
    assert_eq!(title_of(&dash), "● live checkout-unanimous · roundtable");
}

#[test]
fn title_escapes_control_characters() {
    let mut events = begun("checkout-launch");
    let mut first = Event::clone(&events[0]);
    if let EventKind::RunStarted(head) = &mut first.kind {
        Arc::make_mut(head).scenario = "\u{1b}]52;c;aGk=\u{7}\u{9b}31m\u{202e}x".into();
    }
    events[0] = Arc::new(first);
    let mut dash = Dash::new(120, 36);
    dash.run("r-0001", &events);
    let title = title_of(&dash);
    assert!(title.contains("␛]52;c;aGk=␇�31m�x"), "{title:?}");
}
