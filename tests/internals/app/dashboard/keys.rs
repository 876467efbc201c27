//! The binding table, and the documents made of it.

use std::collections::BTreeSet;

use crate::screen::key_hints::visible_hints;
use crate::screen::keymap::{BINDINGS, Context, bindings, lookup};
use crate::screen::windows::Overlay;
use crate::screen::windows::help::{Help, HelpLine, keys_markdown};
use crate::screen::{Action, Effect, KeyCode, KeyPress, Msg};

use crate::support::screen::Dash;

#[test]
fn no_context_has_a_key_twice() {
    for context in Context::ALL {
        let mut seen = BTreeSet::new();
        for row in bindings(context) {
            for key in row.keys {
                let reached = !(context.takes_text() && key.typed_char().is_some());
                assert!(
                    !reached || seen.insert(key.label(true).into_owned()),
                    "{} means two things in {}",
                    key.label(true),
                    context.word()
                );
            }
        }
    }
}

#[test]
fn picture_works_on_every_screen() {
    let mut dash = Dash::new(120, 36);
    let mut contexts = BTreeSet::new();
    for keys in ["", "n", "?", "/", ":", "N"] {
        dash.text(keys).asked();
        contexts.insert(dash.state.context().word());
        dash.press("C-p");
        assert!(matches!(dash.asked()[..], [Effect::Picture]), "{keys}");
        dash.press("Esc");
    }
    assert!(contexts.len() > 4, "{contexts:?}");
    // Chosen from the list of commands, it is one of the page.
    dash.press(":picture Enter");
    assert!(matches!(dash.asked()[..], [Effect::Picture]) && dash.state.overlays.is_empty());
}

/// Escape closes the form, and the key goes to the page below it.
#[test]
fn fast_escape_is_no_alt() {
    let mut dash = Dash::new(120, 36);
    dash.press("n");
    assert_ne!(dash.state.context(), Context::Home);
    dash.key(KeyPress { alt: true, ..KeyPress::char('?') });
    assert!(matches!(dash.state.overlays[..], [Overlay::Help(_)]), "{}", dash.screen());
    dash.press("Esc");
    assert_eq!(dash.state.context(), Context::Home, "Escape has closed the form");
}

#[test]
fn lists_every_action_once() {
    let table: Vec<Action> = BINDINGS.iter().map(|row| row.action).collect();
    let unique: BTreeSet<Action> = table.iter().copied().collect();
    assert_eq!(table.len(), unique.len(), "an action stands in the table twice");
    for context in Context::ALL {
        let mut shown: Vec<Action> = Help::open(context)
            .lines()
            .iter()
            .filter_map(|line| match line {
                HelpLine::Row(row) => Some(row.action),
                HelpLine::Heading(_) | HelpLine::Blank => None,
            })
            .collect();
        shown.sort();
        assert_eq!(shown, unique.iter().copied().collect::<Vec<_>>());
    }
    let markdown = keys_markdown();
    for row in BINDINGS {
        assert_eq!(markdown.matches(&format!("| {} |", row.help)).count(), 1, "{}", row.help);
    }
}

#[test]
fn bindings_avoid_reserved_keys() {
    for row in BINDINGS {
        assert!(!row.keys.contains(&KeyPress::ctrl('b')), "tmux and screen take Ctrl-B");
        assert!(!row.keys.contains(&KeyPress::ctrl('i')), "Ctrl-I is Tab");
        assert!(!row.help.is_empty() && !row.keys.is_empty());
        assert_eq!(row.rank == 0, row.word.is_empty() || row.action == Action::Cancel, "{row:?}");
    }
}

#[test]
fn kill_key_is_uppercase() {
    for row in BINDINGS.iter().filter(|row| row.action == Action::Kill) {
        assert!(row.keys.iter().all(|key| key.typed_char().is_some_and(char::is_uppercase)));
    }
}

#[test]
fn letters_type_in_text_fields() {
    for context in [Context::FormText, Context::Filter, Context::Help] {
        for c in ' '..='~' {
            assert_eq!(lookup(context, KeyPress::char(c)), None, "{c} in {}", context.word());
        }
    }
    assert_eq!(lookup(Context::FormText, KeyPress::ctrl('s')), Some(Action::Start));
    assert_eq!(lookup(Context::Help, KeyPress::new(KeyCode::Down)), Some(Action::Down));
}

#[test]
fn a_digit_names_its_pane() {
    for number in 1..=9u8 {
        let key = KeyPress::char(char::from(b'0' + number));
        assert_eq!(lookup(Context::Home, key), Some(Action::Pane(number)));
    }
}

#[test]
fn key_row_offers_available_actions() {
    let dash = Dash::new(120, 36);
    let words = |dash: &Dash| -> Vec<&str> {
        visible_hints(&dash.state, false).iter().map(|offer| offer.word).collect()
    };
    let offered = words(&dash);
    assert!(offered.contains(&"start") && offered.contains(&"quit"), "{offered:?}");
    for absent in ["pause", "step", "flags", "kill"] {
        assert!(!offered.contains(&absent), "{absent} with no run: {offered:?}");
    }
}

#[test]
fn help_finds_and_runs_action() {
    let mut dash = Dash::new(120, 36);
    dash.text("?").text("launch form: goal");
    assert_eq!(dash.state.context(), Context::Help);
    dash.press("Enter");
    assert_eq!(dash.state.context(), Context::Form, "the form is open and the help is gone");

    dash.press("Esc ? zzz Enter");
    assert_eq!(dash.state.context(), Context::Help, "nothing is found, nothing is done");
    dash.press("Backspace Backspace Backspace 'inspect the selection' Enter");
    let said = dash.state.notices.current().expect("a notice").text.clone();
    assert!(said.starts_with("Not available here: it works in "), "{said}");
    dash.press("Esc");
    assert_eq!(dash.state.context(), Context::Home);
}

#[test]
fn help_keeps_form_input() {
    let mut dash = Dash::new(120, 36);
    dash.press("n Tab x S-Tab ? Esc");
    assert!(dash.screen().contains("goal="), "the change is still in the command line");
}

#[test]
fn legend_fits_small_screens() {
    for (cols, rows) in [(60, 16), (80, 24), (120, 36)] {
        let mut dash = Dash::new(cols, rows);
        dash.text("?");
        let screen = dash.screen();
        for entry in ["✓ done", "▲ go", "◇ caution", "▼ block", "Δ changed", "⚑ flag"] {
            assert!(screen.contains(entry), "{entry} at {cols}x{rows}\n{screen}");
        }
    }
}

#[test]
fn tiny_screen_only_quits() {
    let mut dash = Dash::new(120, 36);
    dash.send(Msg::Resize { cols: 20, rows: 5 });
    for c in ('!'..='~').chain([' ']).filter(|c| *c != 'q') {
        dash.text(&c.to_string());
    }
    dash.press("Enter Tab Esc C-s");
    dash.send(Msg::Paste("x".to_owned()));
    assert!(dash.asked().is_empty() && dash.state.overlays.is_empty());
    dash.text("q");
    assert!(matches!(dash.asked()[..], [Effect::Quit { code: 0 }]), "quitting always works");
    dash.press("C-c C-c");
    assert!(matches!(dash.asked()[..], [Effect::Quit { code: 130 }]));
}
