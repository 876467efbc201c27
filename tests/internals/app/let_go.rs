//! What Esc lets go, one thing at a time and in which order, and what keeps its place meanwhile.

use std::sync::Arc;

use crate::log::event::Event;
use crate::screen::run::{Pane, RunPage};
use crate::support::facts;
use crate::support::facts::{research, team, tools};
use crate::support::screen::Dash;

fn dash(log: &[Arc<Event>]) -> Dash {
    let mut dash = Dash::new(120, 36);
    dash.run("r-1e60", log);
    dash
}

fn page(dash: &Dash) -> &RunPage {
    dash.state.visible_run().expect("a run")
}

fn tool_is_selected(dash: &Dash) -> bool {
    page(dash).views.tools.tool_is_selected()
}

/// Presses Esc until it changes nothing, and returns how often it did change the screen.
fn steps_of_escape(dash: &mut Dash) -> usize {
    let mut before = dash.screen();
    for step in 0..10 {
        dash.press("Esc");
        let after = dash.screen();
        if after == before {
            return step;
        }
        before = after;
    }
    panic!("Esc never ends");
}

/// The screens after each of these keys, the first before any.
fn screens(dash: &mut Dash, keys: &[&str]) -> Vec<String> {
    let mut screens = vec![dash.screen()];
    for keys in keys {
        dash.text(keys);
        screens.push(dash.screen());
    }
    screens
}

/// Esc goes back through these screens, and is without effect at the first.
fn goes_back(dash: &mut Dash, screens: &[String], what: &str) {
    for (nth, before) in screens.iter().enumerate().rev() {
        assert_eq!(dash.screen(), *before, "{what}, at {nth}");
        dash.press("Esc");
    }
    assert_eq!(dash.screen(), screens[0], "{what}: nothing is left to let go");
}

#[test]
fn escape_clears_selection_zoom_then_scroll() {
    let mut dash = dash(&facts::decided().log);
    dash.text("3");
    // A seat of an earlier round, both selected by one key.
    let seat = screens(&mut dash, &["h"]);
    assert_ne!(seat[0], seat[1]);
    goes_back(&mut dash, &seat, "a seat and its round");

    // The selection is cleared before the zoom, in either order of the two.
    dash.text("1jz");
    let zoomed = dash.screen();
    dash.press("Esc");
    assert_ne!(dash.screen(), zoomed, "the seat");
    dash.text("z");
    let open = dash.screen();
    dash.press("Esc");
    assert_eq!(dash.screen(), open, "neither is left");

    // The text stays scrolled until the zoom is gone.
    let mut small = Dash::new(84, 34);
    small.run("r-1e60", &facts::stopped().log);
    small.text("2");
    let start = small.screen();
    small.text("jjj");
    let scrolled = small.screen();
    if scrolled != start {
        small.press("z Esc");
        assert_eq!(small.screen(), scrolled, "the zoom goes first");
        small.press("Esc");
        assert_eq!(small.screen(), start, "then the scroll");
    }
}

#[test]
fn escape_clears_filter_before_tools() {
    let mut dash = dash(&tools::working().log);
    dash.text("1jjz");
    let row = dash.screen();
    dash.text("t");
    let shown = dash.screen();
    assert_ne!(row, shown);
    dash.press("/revenue Enter");
    assert!(page(&dash).list().is_filtered());
    dash.press("Esc");
    assert!(!page(&dash).list().is_filtered());
    dash.text("1");
    assert_eq!(dash.screen(), shown);
    dash.press("Esc");
    assert_eq!(dash.screen(), row, "the row and the zoom are still there");
    assert_eq!(steps_of_escape(&mut dash), 2, "the row, then the zoom");
}

#[test]
fn tools_keep_selected_row() {
    let mut dash = dash(&tools::working().log);
    dash.text("1gj");
    let row = dash.screen();
    dash.text("t").text("jjkG");
    assert!(tool_is_selected(&dash));
    dash.press("Esc");
    assert!(!tool_is_selected(&dash), "Esc closes the tools and lets the tool go");
    assert_eq!(dash.screen(), row);

    dash.text("tjt");
    assert!(tool_is_selected(&dash), "t closes the tools and keeps the tool");
    assert_eq!(dash.screen(), row);
    dash.press("Esc");
    assert!(!tool_is_selected(&dash));
    assert_ne!(dash.screen(), row, "the row goes together with the tool");
    assert_eq!(steps_of_escape(&mut dash), 0);
}

#[test]
fn escape_clears_tool_before_panes() {
    let mut dash = dash(&team::office().log);
    dash.text("1j3g");
    let selected = dash.screen();
    dash.text("tjt");
    assert!(tool_is_selected(&dash));
    assert_eq!(dash.screen(), selected);
    dash.press("Esc");
    assert!(!tool_is_selected(&dash));
    assert_eq!(dash.screen(), selected, "nothing else goes with it");
    assert_eq!(steps_of_escape(&mut dash), 1, "all panes follow again at once");
}

#[test]
fn folded_calls_stay_folded() {
    let mut dash = dash(&team::office().log);
    dash.text("3gjj");
    let open = dash.screen();
    dash.text("h");
    let folded = dash.screen();
    assert_ne!(folded, open);
    dash.press("Esc gjj");
    assert_eq!(dash.screen(), folded);
}

#[test]
fn research_escape_clears_page_with_lists() {
    let mut dash = dash(&research::answered().log);
    dash.text("4j3j2j1j");
    let selected = dash.screen();
    dash.text("tjt");
    assert!(tool_is_selected(&dash));
    dash.press("Esc");
    assert_eq!(dash.screen(), selected, "the tool alone");
    dash.text("z");
    assert_eq!(steps_of_escape(&mut dash), 2, "the selections, then the zoom");
}

#[test]
fn escape_clears_tool_before_zoom() {
    let mut dash = dash(&tools::brownout(true).log);
    dash.text("1jz");
    assert!(tool_is_selected(&dash));
    dash.press("Esc");
    assert!(!tool_is_selected(&dash));
    assert_eq!(steps_of_escape(&mut dash), 1, "the zoom");
}

#[test]
fn c_without_cause_does_nothing() {
    let mut dash = Dash::new(120, 36);
    dash.run("r-1e60", &[]);
    let before = dash.screen();
    dash.text("c");
    assert_eq!(dash.screen(), before, "before the first fact");

    for log in [
        &facts::decided().log[..1],
        &tools::working().log[..1],
        &team::office().log[..1],
        &research::answered().log[..1],
        &tools::brownout(true).log[..1],
    ] {
        let mut dash = self::dash(log);
        for keys in ["1c", "2c", "3c", "4c", "5c"] {
            dash.text(&keys[..1]);
            let before = dash.screen();
            dash.text(&keys[1..]);
            assert_eq!(dash.screen(), before, "{keys}");
        }
        assert_eq!(page(&dash).focus(), Pane::Events);
    }
}

#[test]
fn c_reports_missing_quote() {
    let said = |dash: &Dash| {
        dash.state.notices.current().map(|notice| notice.text.clone()).unwrap_or_default()
    };
    let mut facts = research::reading();
    facts.refuses(1, "A claim", "A quote that is not there");
    let mut dash = dash(&facts.log);
    dash.text("4Gc");
    let notice = said(&dash);
    assert!(
        notice.is_empty() || notice == "That note was refused: it has no quote to show.",
        "{notice}"
    );
    dash.text("1c");
    assert_eq!(page(&dash).focus(), Pane::Events, "elsewhere c jumps to the cause");
}
