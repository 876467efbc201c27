//! Keys of the configuration, in a real terminal.
use std::sync::Arc;

use crate::support::binary::Home;
use crate::support::pty::{Start, Terminal};

#[test]
fn configured_key_replaces_default() {
    let home = Arc::new(Home::new());
    home.write(
        "config/roundtable/config.toml",
        "[keys]\nhelp = \"ctrl-x\"\nnew-run = \"f2\"\nquit = [\"x\", \"ctrl-q\"]\n",
    );
    let mut terminal = Terminal::start_in(&home, Start::default());
    let screen = terminal.sees("checkout-launch");
    let keys = screen.lines().last().expect("a key row");
    for hint in ["F2 new run", "Ctrl-X help", "x quit"] {
        assert!(keys.contains(hint), "{hint}: {keys}");
    }
    terminal.press("q");
    terminal.sees("q works in run");
    terminal.press("?");
    terminal.sees("? does nothing here; Ctrl-X shows the keys");
    terminal.press("\u{18}");
    let help = terminal.sees("Help for home");
    assert!(help.contains("F2"), "{help}");
    terminal.press("\u{1b}");
    terminal.loses("Help for home");
    terminal.press("\u{1b}OQ");
    terminal.sees("y copies the command line");
    terminal.press("\u{1b}");
    terminal.loses("y copies the command line");
    terminal.press("x");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn click_on_key_row_runs_command() {
    let terminal = Terminal::open();
    terminal.sees("checkout-launch");
    let mut terminal = terminal;
    let text = terminal.text();
    let (row, keys) = text.lines().enumerate().last().expect("a key row");
    let column = keys[..keys.find("commands").expect("the hint")].chars().count();
    terminal.click(u16::try_from(column).expect("a column"), u16::try_from(row).expect("a row"));
    terminal.sees("type parts of a name or description");
    terminal.press("quit\r");
    assert_eq!(terminal.ends(), 0);
}
