//! The mouse.

use std::time::Duration;

use crate::engine::Schedule;
use crate::log::event::RunId;
use crate::screen::form::FieldId;
use crate::screen::home::HomePane;
use crate::screen::keymap::Context;
use crate::screen::state::{ActiveScreen, DisplaySettings};
use crate::screen::windows::Overlay;
use crate::screen::{Effect, Msg};

use crate::support::screen::{Dash, facts, own, shipped};

/// The place of a text on the screen: column and row of its first cell.
fn find(dash: &Dash, text: &str) -> (u16, u16) {
    let buf = dash.draw();
    for y in 0..buf.area.height {
        let row: Vec<&str> = (0..buf.area.width).map(|x| buf[(x, y)].symbol()).collect();
        for x in 0..row.len() {
            if row[x..].concat().starts_with(text) {
                return (x as u16, y);
            }
        }
    }
    panic!("{text} is not on the screen:\n{}", dash.screen());
}

fn click(dash: &mut Dash, text: &str) {
    let (col, row) = find(dash, text);
    dash.click(col, row);
}

fn many() -> Vec<crate::scenario::catalogue::ScenarioEntry> {
    let mut entries = shipped();
    for number in 0..40 {
        entries.push(own(&format!("own-{number:02}.toml"), "title = 1"));
    }
    entries
}

#[test]
fn click_selects_then_starts() {
    let mut dash = Dash::new(120, 36);
    click(&mut dash, "checkout-unanimous  ");
    assert_eq!(dash.state.home.scenario.as_deref(), Some("checkout-unanimous"));
    assert!(dash.asked().is_empty(), "a click selects");
    dash.after(Duration::from_secs(2));
    click(&mut dash, "checkout-unanimous  ");
    assert_eq!(dash.launch().scenario.name.as_str(), "checkout-unanimous");
}

#[test]
fn a_double_click_opens() {
    let events = facts("checkout-launch", &[], &[], Schedule::default());
    let mut dash = Dash::new(120, 36);
    dash.run("r-0001", &events).text("q").run("r-0002", &events).text("q1");
    let (col, row) = find(&dash, "r-0001");
    dash.click(col, row).after(Duration::from_millis(200)).click(col, row);
    assert_eq!(dash.state.screen, ActiveScreen::Run(RunId::new("r-0001")));
}

#[test]
fn click_focuses_pane_or_tab() {
    let mut dash = Dash::new(120, 36);
    click(&mut dash, "No runs yet");
    assert_eq!(dash.state.home.focus, HomePane::Runs);
    dash.send(Msg::Resize { cols: 80, rows: 24 });
    click(&mut dash, "3 Preview");
    assert_eq!(dash.state.home.focus, HomePane::Preview);
    click(&mut dash, "1 Scenarios");
    assert_eq!(dash.state.home.focus, HomePane::Scenarios);
}

#[test]
fn wheel_scrolls_and_keeps_selection() {
    let mut dash = Dash::over(80, 24, many(), DisplaySettings::default());
    let before = dash.state.home.scenario.clone();
    for _ in 0..5 {
        dash.wheel(false, 10, 10);
    }
    assert_eq!(dash.state.home.scenarios_top, 5);
    assert_eq!(dash.state.home.scenario, before);
    for _ in 0..100 {
        dash.wheel(false, 10, 10);
    }
    let last = dash.state.scenarios.last().expect("scenarios").name.to_string();
    assert!(dash.screen().contains(&last), "the end is the end");
    dash.text("j");
    let selected = dash.state.home.scenario.clone().expect("one");
    assert!(dash.screen().contains(&format!(">    {selected}")), "a key brings it back into view");
}

#[test]
fn resize_keeps_selection_visible() {
    let mut dash = Dash::over(200, 50, many(), DisplaySettings::default());
    dash.text("G");
    let selected = dash.state.home.scenario.clone().expect("one");
    for (cols, rows) in [(60, 16), (80, 24), (30, 5), (120, 36), (60, 16)] {
        dash.send(Msg::Resize { cols, rows });
        assert_eq!(dash.state.home.scenario.as_ref(), Some(&selected));
    }
    assert!(dash.screen().contains(selected.trim_end_matches(".toml")), "{}", dash.screen());
}

#[test]
fn the_form_is_worked_by_mouse() {
    let mut dash = Dash::new(120, 36);
    dash.text("n");
    click(&mut dash, "[ ] off");
    click(&mut dash, "2026-03-02  ");
    assert_eq!(dash.state.context(), Context::FormText);
    let Some(Overlay::Form(form)) = dash.state.overlays.last() else { panic!("no form") };
    assert_eq!(form.fields.focus, FieldId::Input("report_date".into()));
    click(&mut dash, "[ Start ]");
    assert_eq!(dash.launch().flags, [("legal_analyst".into(), true)]);
}

#[test]
fn click_moves_cursor() {
    let mut dash = Dash::new(120, 36);
    dash.text("n");
    // The text knows its width once it has been drawn.
    let (col, row) = find(&dash, "whether the Checkout");
    dash.click(col, row).text("if or ");
    assert!(dash.screen().contains("Decide if or whether the Checkout"), "{}", dash.screen());
}

#[test]
fn questions_are_answered_by_mouse() {
    let mut dash = Dash::new(120, 36);
    let mut events = facts("checkout-launch", &[], &[], Schedule::default());
    events.truncate(20);
    dash.run("r-0001", &events).text("K");
    click(&mut dash, "[ n no ]");
    assert_eq!(dash.state.context(), Context::Run);
    dash.text("K");
    click(&mut dash, "[ y yes ]");
    assert!(matches!(dash.asked()[..], [Effect::Command { .. }]));
}

#[test]
fn flags_and_help_accept_clicks() {
    let mut dash = Dash::new(120, 36);
    let mut events = facts("checkout-launch", &[], &[], Schedule::default());
    events.truncate(20);
    dash.run("r-0001", &events).text("f");
    click(&mut dash, "[ ] legal_analyst");
    assert!(matches!(dash.asked()[..], [Effect::Command { .. }]), "it was selected");
    dash.click(2, 20);
    assert_eq!(dash.state.context(), Context::Run, "a click beside the drawer closes it");
    dash.text("?");
    click(&mut dash, "step to the next boundary");
    assert!(dash.asked().is_empty(), "a click selects");
    click(&mut dash, "step to the next boundary");
    assert!(matches!(dash.asked()[..], [Effect::Command { .. }]));
}
