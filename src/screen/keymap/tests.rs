use super::*;
use crate::scenario::config::check_config;

fn read(text: &str) -> Result<Keymap, Vec<String>> {
    let checked = check_config("c.toml", text);
    assert!(checked.problems.is_empty(), "{}", checked.problems);
    Keymap::configured(&checked.config.keys)
}

fn errors(text: &str) -> Vec<String> {
    read(text).expect_err(text)
}

#[test]
fn each_key_has_one_action() {
    let every: Vec<String> = BINDINGS
        .iter()
        .map(|row| {
            let keys: Vec<_> = row.keys.iter().map(|key| key.written()).collect();
            format!("{} = {keys:?}\n", row.action.name())
        })
        .collect();
    let keymap = read(&format!("[keys]\n{}", every.concat())).expect("no conflict");
    assert!(keymap.rows.iter().zip(BINDINGS).all(|(row, of)| row.keys == of.keys));
}

#[test]
fn configured_key_replaces_defaults() {
    let keymap =
        read("[keys]\nstep = \"x\"\nflags = [\"ctrl-f\", \"F5\"]\nkill = []\n").expect("keys");
    let press = KeyPress::char;
    assert_eq!(keymap.lookup(Context::Run, press('x')), Some(Action::Step));
    assert_eq!(keymap.lookup(Context::Run, press('s')), None);
    assert_eq!(keymap.lookup(Context::Run, KeyPress::ctrl('f')), Some(Action::Flags));
    let f5 = KeyPress::new(KeyCode::F(5));
    assert_eq!(keymap.lookup(Context::Home, f5), Some(Action::Flags));
    assert_eq!(keymap.lookup(Context::Run, press('K')), None);
    assert_eq!(keymap.lookup(Context::Run, press('2')), Some(Action::Pane(2)));
    assert!(keymap.is_configured(Action::Kill) && !keymap.is_configured(Action::Help));
    let panes = read("[keys]\npane = [\"f1\", \"f2\"]\nhelp = \"?\"\n").expect("keys");
    let f2 = KeyPress::new(KeyCode::F(2));
    assert_eq!(panes.lookup(Context::Run, f2), Some(Action::Pane(2)));
    // Two actions may change keys with each other, and contexts that differ may share one.
    read("[keys]\nstep = \"f\"\nflags = \"s\"\nsort = \"m\"\n").expect("no conflict");
}

#[test]
fn sentences_name_the_key_in_use() {
    assert_eq!((key_of(Action::Open), key_of(Action::Rescan)), ("Enter".into(), "r".into()));
    let keys = use_keys_in_test("[keys]\nreload = []\nopen = \"ctrl-o\"\n");
    assert_eq!(key_of(Action::Open), "Ctrl-O");
    assert_eq!(key_of(Action::Rescan), ":reload");
    drop(keys);
    let _keys = use_keys_in_test("[keys]\nreload = []\ncommands = []\n");
    assert_eq!(key_of(Action::Rescan), "reload (no key)");
}

#[test]
fn mistakes_are_told_with_their_lines() {
    let text = "[keys]\nstpe = \"x\"\nstep = \"ctr-x\"\nfork = [\"a\", \"ctrl-i\"]\n";
    let told = errors(text);
    assert_eq!(told.len(), 3, "{told:#?}");
    assert_eq!(told[0], "c.toml:2:1: error: keys.stpe: unknown action: did you mean `step`?");
    let start =
        "c.toml:3:8: error: keys.step: unknown key `ctr-x`: write a character (x, X, !), ctrl-x";
    assert!(told[1].starts_with(start), "{told:#?}");
    let tab = "c.toml:4:14: error: keys.fork: a terminal sends ctrl-i as tab: choose another key";
    assert_eq!(told[2], tab);
}

#[test]
fn conflict_names_both_actions_and_lines() {
    let both = "[keys]\nstep = \"x\"\n\nfork = [\"F\", \"x\"]\n";
    let told = "c.toml:4:14: error: keys.fork: x is also the key of `step` on line 2, in: \
                home, run, inspector: give one of them another key";
    assert_eq!(errors(both), [told]);
    let usual = "c.toml:2:8: error: keys.step: f is also the usual key of `flags`, in: home, \
                 run, inspector: choose another key, or give `flags` another one";
    assert_eq!(errors("[keys]\nstep = \"f\"\n"), [usual]);
}

#[test]
fn some_keys_cannot_be_taken_away() {
    for (text, why) in [
        (
            "interrupt = \"x\"",
            "ctrl-c cannot be taken away: it always stops the run, and twice quits; keep",
        ),
        (
            "close = []",
            "esc cannot be taken away: it always closes or cancels; keep esc in the list",
        ),
        ("press = \"space\"", "enter cannot be taken away: it always presses the field of a form"),
        ("step = \"ctrl-c\"", "ctrl-c is the key of `interrupt` and cannot be taken away"),
        ("step = \"esc\"", "esc is the key of `close` and cannot be taken away"),
        ("start = \"enter\"", "enter edits the text in: text of the launch form"),
        ("send-message = \"x\"", "a character is typed as text in: next message"),
        ("down = \"left\"", "left edits the text in: list of models"),
    ] {
        let told = errors(&format!("[keys]\n{text}\n"));
        assert!(told.len() == 1 && told[0].contains(why), "{text}: {told:#?}");
    }
    read("[keys]\npress = [\"enter\", \"x\"]\nclose = [\"esc\", \"ctrl-g\"]\n").expect("more");
}
