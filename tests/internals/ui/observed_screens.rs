//! The page of an observed run: a graph with parallel branches, a tool that takes a second, and a failed step.

use std::sync::Arc;

use super::questions_screens::dash_of;
use super::shows;
use crate::log::event::Event;

const LOG: &str = include_str!("../../vectors/watch/langgraph_desk.jsonl");

fn events() -> Vec<Arc<Event>> {
    LOG.lines().map(|line| Arc::new(Event::from_line(line).expect("an event"))).collect()
}

#[test]
fn page_shows_spans_and_hops() {
    let events = events();
    for (cols, rows) in [(80, 24), (120, 36), (200, 50)] {
        let mut dash = dash_of(cols, rows, &events);
        insta::assert_snapshot!(format!("observed_ended_{cols}x{rows}"), dash.dump());
        dash.press("1 g");
        insta::assert_snapshot!(format!("observed_span_{cols}x{rows}"), dash.press("j j").dump());
    }
    // Half of it: a tool is open.
    let half =
        events.iter().position(|event| event.to_line().expect("a line").contains("search_orders"));
    let mut dash = dash_of(120, 36, &events[..=half.expect("a tool")]);
    insta::assert_snapshot!("observed_live_120x36", dash.dump());
    for key in ["Space", "s", "f", "!", "F"] {
        dash.press(key);
        shows(&dash, &["it is only watched"]);
    }
}

#[test]
fn folded_spans_hide_their_children() {
    let mut dash = dash_of(120, 36, &events());
    dash.press("1 g Left");
    shows(&dash, &["support_desk"]);
    assert!(!dash.dump().contains("RunnableWithFallbacks"));
    dash.press("Right");
    shows(&dash, &["intake"]);
}
