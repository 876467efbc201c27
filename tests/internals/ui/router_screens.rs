//! What a router's run looks like: snapshots of text and styles.

use super::{shows, sizes_of};
use std::sync::Arc;

use crate::engine::Schedule;
use crate::log::event::{Event, EventKind};
use crate::log::facts::router::RouterFact;
use crate::support::screen::{Dash, facts, until};

fn dash(cols: u16, rows: u16, events: &[Arc<Event>]) -> Dash {
    let mut dash = Dash::new(cols, rows);
    dash.run("r-7f3a", events);
    dash
}

fn is_chosen(kind: &EventKind) -> bool {
    matches!(RouterFact::of(kind), Some(RouterFact::RouteChosen { .. }))
}

#[test]
fn while_the_classifier_reads_the_request() {
    let events = facts("front-desk", &[], &[], Schedule::default());
    let open = until(&events, |kind| matches!(kind, EventKind::AttemptStarted { .. }));
    insta::assert_snapshot!("router_classifies_80x24", dash(80, 24, &events[..open]).dump());
    let mut second = dash(80, 24, &events[..open]);
    second.text("2");
    shows(&second, &["─ 2 Decision ─", "│            The classifier reads the request. "]);
}

#[test]
fn draws_chosen_route_and_working_agent() {
    let events = facts("front-desk", &[], &[], Schedule::default());
    let open = until(&events, is_chosen) + 4;
    for &(cols, rows) in sizes_of("router_routed") {
        let dump = dash(cols, rows, &events[..open]).dump();
        insta::assert_snapshot!(format!("router_routed_{cols}x{rows}"), dump);
    }
}

#[test]
fn the_fallback_has_answered() {
    let set = ["inputs.request=It does not work."];
    let events = facts("front-desk", &set, &[], Schedule::default());
    insta::assert_snapshot!("router_fallback_120x36", dash(120, 36, &events).dump());
}

#[test]
fn there_is_no_route() {
    let flags = [("billing_desk", false), ("front_office", false)];
    let events = facts("front-desk", &[], &flags, Schedule::default());
    let mut dash = dash(80, 24, &events);
    insta::assert_snapshot!("router_no_route_80x24", dash.dump());
    dash.text("2");
    insta::assert_snapshot!("router_no_route_decision_80x24", dash.screen());
}

/// A selected route takes the place of the decision, and Esc gives it back.
#[test]
fn selected_route_shows_description() {
    let events = facts("front-desk", &[], &[], Schedule::default());
    let mut dash = dash(120, 36, &events);
    dash.press("Down Down");
    let screen = dash.screen();
    assert!(screen.contains("2 Route ─") && screen.contains("line_check, field_service"));
    dash.press("Esc");
    let screen = dash.screen();
    assert!(screen.contains("2 Outcome ✓ DONE ─") && !screen.contains("line_check, field_service"));
    // A click selects the row below the column names.
    dash.click(4, 7);
    assert!(dash.screen().contains("agent      agent"), "{}", dash.screen());
}

/// Names that are no routes are shown, and never called.
#[test]
fn unknown_route_is_marked() {
    let set = [
        r#"script[0].reply={ route = "billing", confidence = 0.9, reason = "r", alternatives = [{ route = "sales", confidence = 0.1 }] }"#,
    ];
    let events = facts("front-desk", &set, &[], Schedule::default());
    let mut dash = dash(80, 24, &events);
    let screen = dash.text("1").screen();
    assert!(screen.contains("sales") && screen.contains("not a route"), "{screen}");
}
