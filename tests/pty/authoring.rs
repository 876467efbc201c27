//! Scenario files from the dashboard: new ones from templates, the editor, files that change.
use crate::support::pty::{Start, Terminal};

#[test]
fn writes_edits_and_reloads_scenario() {
    let editor = "sed -i.bak 's/My team/Their team/'";
    let env = &[("EDITOR", editor)];
    let mut terminal = Terminal::start(Start { env, ..Start::default() });
    terminal.sees("checkout-launch");
    terminal.press("N");
    terminal.sees("New scenario from a template");
    terminal.press("jj\r");
    terminal.sees("scenarios/my-team.toml is written");
    terminal.sees("My team");
    let file = terminal.home.path().join("scenarios/my-team.toml");
    let template = include_str!("../../assets/templates/team.toml");
    assert_eq!(std::fs::read_to_string(&file).expect("written"), template);
    terminal.press("E");
    terminal.sees("Their team");
    // Another program changes the file.
    let text = std::fs::read_to_string(&file).expect("read");
    std::fs::write(&file, text.replace("pattern = \"team\"", "pattern = \"taem\""))
        .expect("written");
    terminal.sees("`taem` is not allowed here");
    std::fs::write(&file, &text).expect("written");
    terminal.sees("was reloaded");
    terminal.sees("Their team");
    // Another of the name gets a number.
    terminal.press("Njj\r");
    terminal.sees("scenarios/my-team-2.toml is written");
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn edits_copy_of_shipped_scenario() {
    let env = &[("VISUAL", "no-such-editor"), ("EDITOR", "true")];
    let mut terminal = Terminal::start(Start { env, ..Start::default() });
    terminal.sees("checkout-launch");
    terminal.press("E");
    terminal.sees("set EDITOR to an installed program");
    let file = terminal.home.path().join("scenarios/checkout-launch.toml");
    let text = include_str!("../../scenarios/checkout-launch.toml");
    assert_eq!(std::fs::read_to_string(&file).expect("a copy"), text);
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
}
