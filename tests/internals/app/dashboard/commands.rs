//! The list of commands, keys that do nothing, and keys of the configuration.

use crate::engine::Schedule;
use crate::log::event::Command;
use crate::screen::Effect;
use crate::screen::keymap::{Context, use_keys_in_test};

use crate::support::screen::{Dash, facts};

/// Where a text is on the screen: column and row of its first cell.
fn find(dash: &Dash, text: &str) -> (u16, u16) {
    let screen = dash.screen();
    let found = screen.lines().enumerate().find_map(|(y, line)| {
        let column = line[..line.find(text)?].chars().count();
        Some((u16::try_from(column).expect("a column"), u16::try_from(y).expect("a row")))
    });
    found.unwrap_or_else(|| panic!("{text} is not on the screen:\n{screen}"))
}

fn click(dash: &mut Dash, text: &str) {
    let (col, row) = find(dash, text);
    dash.click(col, row);
}

fn said(dash: &Dash) -> &str {
    dash.state.notices.current().map(|it| it.text.as_str()).unwrap_or_default()
}

fn keys(dash: &Dash) -> String {
    dash.screen().lines().last().expect("a key row").to_owned()
}

#[test]
fn finds_and_runs_commands_by_parts() {
    let mut dash = Dash::new(120, 36);
    assert!(keys(&dash).contains(": commands"), "{}", keys(&dash));
    dash.text(":");
    assert_eq!(dash.state.context(), Context::Commands);
    let screen = dash.screen();
    assert!(screen.contains("Commands") && screen.contains("new-run"), "{screen}");
    // Letters in their order are enough, also of the description.
    dash.text("nwrn");
    assert!(dash.screen().contains("> new-run"), "{}", dash.screen());
    dash.press("Enter");
    assert_eq!(dash.state.context(), Context::Form);
    dash.press("Esc :$EDITOR Enter");
    assert!(matches!(dash.asked()[..], [Effect::Edit(_)]));
    dash.text(":zzzz");
    assert!(dash.screen().contains("No command matches the search."), "{}", dash.screen());
    dash.press("Enter Esc");
    assert_eq!(dash.state.context(), Context::Home);
}

#[test]
fn unavailable_command_explains_why() {
    let mut dash = Dash::new(120, 36);
    dash.text(":step-round");
    let screen = dash.screen();
    assert!(screen.contains("no run is selected"), "{screen}");
    dash.press("Enter");
    assert_eq!(said(&dash), "step-round: no run is selected.");
    assert_eq!(dash.state.context(), Context::Commands, "the list stays open");
    dash.press("Esc Esc :zoom");
    assert!(dash.screen().contains("only in run"), "{}", dash.screen());
    // What can run is listed first.
    dash.press("Esc");
    let events = facts("checkout-launch", &[], &[], Schedule::default());
    dash.run("r-0001", &events).text(":kill");
    assert!(dash.screen().contains("the run has ended"), "{}", dash.screen());
}

#[test]
fn the_mouse_runs_a_command() {
    let mut dash = Dash::new(120, 36);
    dash.text(":new");
    click(&mut dash, "new-scenario");
    assert_eq!(dash.state.context(), Context::Commands, "a click selects");
    click(&mut dash, "new-scenario");
    assert_eq!(dash.state.context(), Context::Templates);
}

#[test]
fn idle_key_explains_itself() {
    let mut dash = Dash::new(120, 36);
    dash.text("z");
    assert_eq!(said(&dash), "z works in run only.");
    dash.text("2/");
    assert_eq!(said(&dash), "/: there are no runs yet.");
    assert_eq!(dash.state.context(), Context::Home);
    dash.text("v");
    assert_eq!(said(&dash), "v does nothing here; ? shows the keys.");
    dash.text("7");
    assert_eq!(said(&dash), "7: there is no pane 7.");
    let events = facts("checkout-launch", &[], &[], Schedule::default());
    dash.run("r-0001", &events).text("r");
    assert_eq!(said(&dash), "r works in home only.");
}

#[test]
fn click_on_key_row_presses_key() {
    let mut dash = Dash::new(120, 36);
    click(&mut dash, "? help");
    assert_eq!(dash.state.context(), Context::Help);
    click(&mut dash, "Esc close");
    assert_eq!(dash.state.context(), Context::Home);
    let (col, row) = find(&dash, "new run");
    dash.click(col + 4, row);
    assert_eq!(dash.state.context(), Context::Form, "the word is as good as the key");
    dash.press("Esc");
    // Each of two keys with one word is its own.
    let first = dash.state.home.scenario.clone();
    let (col, row) = find(&dash, "j k move");
    dash.click(col, row);
    assert_ne!(dash.state.home.scenario, first);
    dash.click(col + 2, row);
    assert_eq!(dash.state.home.scenario, first);
    dash.click(119, row);
    assert_eq!((dash.state.context(), dash.asked().len()), (Context::Home, 0));
}

#[test]
fn small_key_row_keeps_next_pane() {
    let dash = Dash::new(80, 24);
    assert!(keys(&dash).contains("Tab pane"), "{}", keys(&dash));
    assert!(keys(&dash).contains(": commands"), "{}", keys(&dash));
}

#[test]
fn configured_keys_replace_and_show() {
    let _keys = use_keys_in_test(
        "[keys]\nhelp = \"ctrl-g\"\nnew-run = [\"x\", \"F2\"]\npause-or-resume = \"b\"\nreload = []\n",
    );
    let mut dash = Dash::new(120, 36);
    let row = keys(&dash);
    assert!(row.contains("x new run") && row.contains("Ctrl-G help"), "{row}");
    assert!(dash.screen().contains("x opens the launch form"), "{}", dash.screen());
    dash.text("n?r");
    assert_eq!((dash.state.context(), dash.asked().len()), (Context::Home, 0));
    assert_eq!(said(&dash), "r does nothing here; Ctrl-G shows the keys.");
    dash.text("x");
    assert_eq!(dash.state.context(), Context::Form);
    dash.press("Esc C-g");
    let screen = dash.screen();
    assert!(screen.contains("x F2") && !screen.contains("║   n "), "{screen}");
    dash.press("Esc :reload");
    assert_eq!(dash.state.context(), Context::Commands);
    dash.press("Enter");
    assert!(matches!(dash.asked()[..], [Effect::Rescan]), "a command needs no key");
    let events = facts("checkout-launch", &[], &[], Schedule::default());
    dash.run("r-0001", &events[..10]).text("b");
    let asked = dash.asked();
    assert!(
        matches!(asked[..], [Effect::Command { command: Command::Pause { .. }, .. }]),
        "{asked:?}"
    );
    click(&mut dash, "b pause");
    assert_eq!(dash.asked().len(), 1);
}

#[test]
fn one_notice_says_what_was_copied() {
    let mut dash = Dash::new(120, 36);
    dash.text("y");
    assert!(said(&dash).starts_with("Copied: roundtable run "), "{}", said(&dash));
    assert_eq!(dash.state.notices.hidden_count(), 0);
    let events = facts("checkout-launch", &[], &[], Schedule::default());
    dash.run("r-0001", &events).text("5Gy");
    let count = events.len();
    assert!(said(&dash).starts_with(&format!("Copied event {count} (")), "{}", said(&dash));
    dash.text("1Y");
    assert!(said(&dash).ends_with(", as Markdown)."), "{}", said(&dash));
    assert_eq!(dash.state.notices.hidden_count(), 0);
}
