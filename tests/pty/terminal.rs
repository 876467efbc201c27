//! What the program says to its terminal, byte by byte: colours, themes, the title, notifications.
use std::sync::Arc;

use crate::support::binary::Home;
use crate::support::pty::{Start, Terminal};

const CONFIG: &str = "config/roundtable/config.toml";
const QUESTION: &str = "\u{1b}]11;?";
const LIGHT: &[u8] = b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?6c";
const DARK: &[u8] = b"\x1b]11;rgb:1e1e/1e1e/2e2e\x07\x1b[?6c";

/// A run that waits before its first round.
const RESTING: &[&str] = &["run", "checkout-launch", "--instant", "--pause-at", "round:1"];

fn written(terminal: &Terminal) -> String {
    String::from_utf8_lossy(&terminal.bytes()).into_owned()
}

/// On the first screen.
fn home_with(config: &str, start: Start<'_>) -> Terminal {
    let home = Arc::new(Home::new());
    home.write(CONFIG, config);
    let terminal = Terminal::start_in(&home, start);
    terminal.sees("checkout-launch");
    terminal
}

/// The theme after the one in use, by the key for it. The order: dark, light, colour-blind, mono.
fn next_theme(terminal: &mut Terminal) -> String {
    terminal.press("T");
    let text = terminal.sees("Theme: ");
    let after = text.split("Theme: ").nth(1).expect("a name");
    after.split('.').next().expect("a name").to_owned()
}

fn leaves(mut terminal: Terminal) -> String {
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
    written(&terminal)
}

#[test]
fn theme_fits_terminal_background() {
    for (typed, next) in [(LIGHT, "colour-blind"), (DARK, "light")] {
        let mut terminal = home_with("", Start { typed, ..Start::default() });
        assert_eq!(next_theme(&mut terminal), next);
        assert_eq!(leaves(terminal).matches(QUESTION).count(), 1, "asked once");
    }
}

#[test]
fn keeps_keys_around_answer() {
    let typed = &[b"?", LIGHT].concat();
    let terminal = Terminal::start(Start { typed, ..Start::default() });
    terminal.sees("Help for home");
}

#[test]
fn late_split_answer_is_no_key() {
    for attributes in [&b""[..], b"\x1b[?6c"] {
        let mut terminal = home_with("", Start { attributes, ..Start::default() });
        for piece in ["\u{1b}]11;rgb", ":ffff/", "ff", "ff/ffff\u{1b}", "\\", "\u{1b}[?6", "2;22c"]
        {
            terminal.press(piece);
        }
        assert_eq!(next_theme(&mut terminal), "light", "too late to count");
        let text = terminal.text();
        assert!(!text.contains("type parts of a name"), "no key: {text}");
        assert_eq!(leaves(terminal).matches(QUESTION).count(), 1);
    }
}

/// The configuration, the arguments, the environment, and the theme that follows the first one.
type Case<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str)], &'a str);

#[test]
fn asks_terminal_only_when_needed() {
    let cases: &[Case] = &[
        ("", &["--theme", "dark"], &[("ROUNDTABLE_THEME", "light")], "light"),
        ("[ui]\ntheme = \"dark\"", &[], &[("ROUNDTABLE_THEME", "light")], "colour-blind"),
        ("[ui]\ntheme = \"light\"", &[], &[], "colour-blind"),
        ("[ui]\ntheme = \"colour-blind\"", &[], &[("ROUNDTABLE_THEME", "")], "mono"),
        ("", &[], &[("STY", "1.tty"), ("TERM", "screen.xterm")], "light"),
        ("", &[], &[("TERM", "linux")], "light"),
    ];
    for (config, args, env, next) in cases {
        let mut terminal = home_with(config, Start { args, env, ..Start::default() });
        assert_eq!(&next_theme(&mut terminal), next, "{config} {args:?} {env:?}");
        assert!(!leaves(terminal).contains(QUESTION), "{config} {args:?} {env:?}");
    }
    let env = &[("NO_COLOR", "1")];
    let mut terminal = home_with("", Start { env, args: &["--ascii"], ..Start::default() });
    terminal.press("T");
    terminal.sees("no colours");
    assert!(!leaves(terminal).contains(QUESTION));
    // `auto` on the command line overrides the configuration.
    let args = &["--theme", "auto"];
    let start = Start { args, typed: LIGHT, ..Start::default() };
    let mut terminal = home_with("[ui]\ntheme = \"mono\"", start);
    assert_eq!(next_theme(&mut terminal), "colour-blind");
    // Other commands do not ask.
    let terminal = Terminal::start(Start { args: &["scenarios"], ..Start::default() });
    terminal.sees("web-status");
    assert!(!written(&terminal).contains(QUESTION));
}

/// The colours of each cell, without the status row.
fn colours(screen: &vt100::Screen) -> Vec<String> {
    let (rows, cols) = screen.size();
    let cells = (0..rows - 2).flat_map(|row| (0..cols).map(move |col| (row, col)));
    let cells = cells.filter_map(|(row, col)| screen.cell(row, col));
    cells.map(|cell| format!("{:?} {:?}", cell.fgcolor(), cell.bgcolor())).collect()
}

#[test]
fn theme_change_redraws_whole_screen() {
    let home = Arc::new(Home::new());
    let log = home.run(&["run", "checkout-unanimous", "--headless", "--format", "jsonl"]);
    let events: Vec<&str> = log.out.lines().filter(|it| !it.contains("\"outcome\"")).collect();
    home.write("log.jsonl", &(events.join("\n") + "\n"));
    let opened = |theme| {
        let args = &["open", "./log.jsonl", "--theme", theme];
        let terminal = Terminal::start_in(&home, Start { args, ..Start::default() });
        terminal.sees("DONE");
        terminal.sees("run.closed");
        terminal
    };
    for (theme, next) in [("dark", "light"), ("light", "colour-blind"), ("colour-blind", "mono")] {
        let mut switched = opened(theme);
        switched.press("T");
        switched.sees(&format!("Theme: {next}."));
        let fresh = opened(next);
        let mut expected = Vec::new();
        fresh.with_screen(|screen| expected = colours(screen));
        switched.sees_that(&format!("{next} as if started with it"), |screen| {
            colours(screen) == expected
        });
    }
}

/// Whether the numbers of a sequence `ESC [ numbers m` set a colour.
fn sets_colour(numbers: &str) -> bool {
    let numbers = numbers.split([';', ':']).filter_map(|number| number.parse::<u8>().ok());
    numbers.into_iter().any(|it| matches!(it, 30..=38 | 40..=48 | 58 | 90..=97 | 100..=107))
}

/// A scenario whose seats send what no terminal should get.
fn hostile(home: &Home) {
    let text = include_str!("../../scenarios/checkout-unanimous.toml");
    let hostile = "gr\u{f6}\u{df}e \\u001b]2;owned\\u0007\\u001b[31m \u{65e5}\u{672c} \u{1f642} \\u009b31m \
                   \\u202e \\n\\u001b]52;c;aGk=\\u0007";
    let changed = text.replace("is far", hostile).replace("Failures at ", &format!("{hostile} "));
    assert_ne!(text, changed);
    home.write("hostile.toml", &changed);
}

#[test]
fn no_color_writes_no_colour() {
    let home = Arc::new(Home::new());
    hostile(&home);
    let args = &["run", "./hostile.toml", "--instant"];
    let env = &[("NO_COLOR", "1")];
    let mut terminal = Terminal::start_in(&home, Start { args, env, ..Start::default() });
    terminal.sees("DONE");
    for (key, sees) in [("T", "no colours"), ("t", "Circuit breakers"), ("?", "Help")] {
        terminal.press(key);
        terminal.sees(sees);
    }
    terminal.signal("TERM");
    assert_eq!(terminal.ends(), 143);
    let text = written(&terminal);
    for sequence in text.split("\u{1b}[").skip(1) {
        let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
        let (numbers, rest) = sequence.split_at(end);
        assert!(!(rest.starts_with('m') && sets_colour(numbers)), "a colour: {numbers}m");
    }
    assert!(text.contains("\u{1b}[1m") || text.contains("\u{1b}[2m"), "weight is no colour");
}

#[test]
fn ascii_writes_seven_bits() {
    let home = Arc::new(Home::new());
    hostile(&home);
    home.write(CONFIG, "[ui]\nnotify = \"osc9\"\n");
    let args = &["run", "./hostile.toml", "--instant", "--ascii"];
    let mut terminal = Terminal::start_in(&home, Start { args, ..Start::default() });
    terminal.sees("DONE");
    for (keys, sees) in [("", "gr??e"), ("\r", "1 Prompt"), ("?", "Help")] {
        terminal.press(keys);
        terminal.sees(sees);
    }
    terminal.signal("TERM");
    assert_eq!(terminal.ends(), 143);
    let bytes = terminal.bytes();
    let at = bytes.iter().position(|byte| *byte > 0x7e);
    let around = at.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(60)..at + 20]));
    assert_eq!(around, None);
    let text = written(&terminal);
    assert!(
        !text.contains("\u{1b}]2;owned") && !text.contains("\u{1b}]52"),
        "nothing gets through"
    );
    assert!(text.contains("\u{1b}]2;"), "the title has seven bits too");
}

#[test]
fn title_shows_run_states() {
    let mut terminal = Terminal::start(Start { args: RESTING, ..Start::default() });
    terminal.writes("\u{1b}]2;‖ paused checkout-launch · roundtable\u{1b}\\".as_bytes());
    terminal.press(" ");
    terminal.writes("\u{1b}]2;✓ done checkout-launch · roundtable\u{1b}\\".as_bytes());
    terminal.signal("INT");
    assert_eq!(terminal.ends(), 130);
    let text = written(&terminal);
    let titles: Vec<&str> = text.split("\u{1b}]2;").skip(1).collect();
    for pair in titles.windows(2) {
        let title = |text: &str| text.split('\u{1b}').next().map(str::to_owned);
        assert_ne!(title(pair[0]), title(pair[1]), "only what changes is written");
    }
    let kept = text.find("\u{1b}[22;2t").expect("the title is kept");
    assert!(kept < text.find("\u{1b}]2;").expect("a title"), "before it is changed");
}

#[test]
fn without_a_title_none_is_touched() {
    for (config, env) in [("[ui]\ntitle = false\n", "xterm"), ("", "linux")] {
        let home = Arc::new(Home::new());
        home.write(CONFIG, config);
        let env = &[("TERM", env)];
        let start = Start { args: RESTING, env, ..Start::default() };
        let mut terminal = Terminal::start_in(&home, start);
        terminal.sees("PAUSED");
        terminal.press(" ");
        terminal.sees("DONE");
        terminal.signal("TERM");
        assert_eq!(terminal.ends(), 143);
        let text = written(&terminal);
        for sequence in ["\u{1b}]2;", "\u{1b}[22;2t", "\u{1b}[23;2t"] {
            assert!(!text.contains(sequence), "{config} {sequence:?}");
        }
    }
}

/// A run that was paused and ended, with this setting; `focused`: the terminal had the focus.
fn notified(config: &str, env: &[(&str, &str)], focused: bool) -> String {
    let home = Arc::new(Home::new());
    home.write(CONFIG, config);
    let args = &["run", "checkout-launch", "--pause-at", "round:2", "--theme", "dark"];
    let mut terminal = Terminal::start_in(&home, Start { args, env, ..Start::default() });
    if focused {
        terminal.press("\u{1b}[I");
    }
    terminal.sees("PAUSED");
    terminal.press(" ");
    terminal.sees("DONE");
    // The end is announced before its frame is drawn.
    terminal.signal("TERM");
    assert_eq!(terminal.ends(), 143);
    written(&terminal)
}

#[test]
fn notifies_once_when_waiting_or_ended() {
    let told = notified("[ui]\nnotify = \"osc9\"\n", &[], false);
    let texts: Vec<&str> = told.split("\u{1b}]9;").skip(1).collect();
    let texts: Vec<&str> = texts.iter().filter_map(|text| text.split('\u{1b}').next()).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert_eq!(texts[0], "roundtable: checkout-launch is paused before round 2");
    assert!(texts[1].starts_with("roundtable: checkout-launch has ended: "), "{texts:?}");

    let tmux = notified("[ui]\nnotify = \"osc9\"\n", &[("TMUX", "/none,1,0")], false);
    assert_eq!(tmux.matches("\u{1b}Ptmux;\u{1b}\u{1b}]9;roundtable: ").count(), 2);

    let bell = notified("[ui]\nnotify = \"bell\"\n", &[], false);
    assert_eq!(bell.matches('\u{7}').count(), 2);
}

#[test]
fn no_notice_when_focused_or_disabled() {
    for (config, focused) in
        [("", false), ("[ui]\nnotify = \"off\"\n", false), ("[ui]\nnotify = \"bell\"\n", true)]
    {
        let text = notified(config, &[], focused);
        assert!(!text.contains('\u{7}') && !text.contains("\u{1b}]9;"), "{config}");
    }
}
