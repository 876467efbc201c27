//! Everything that touches the terminal and the system: the loop, keyboard, screen guard, signals,
//! effects, clipboard (OSC 52, in tmux its own buffer), and what the terminal can do. Behaviour and
//! drawing are in `screen/`.
//!
//! The loop has a runtime and a thread of its own, so busy runs do not delay it. Keys, signals and
//! output have threads too. Leaving is bounded: cancelled runs, the last frame, a pager and a
//! stalled terminal each have a limit, and a watchdog ends the program if the loop does not.

#[cfg(unix)]
pub mod console;
pub mod effects;
pub mod event_loop;
pub mod feed;
pub mod input;
#[cfg(unix)]
pub mod keyboard;
pub mod screen_guard;
pub mod signals;
pub mod surface;
pub mod themes;

use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};

use crossterm::clipboard::CopyToClipboard;
use crossterm::queue;
use ratatui::layout::Size;

use crate::screen::theme::ColourDepth;

/// The abilities of the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalFeatures {
    /// Its size; `None` if standard output is not a terminal.
    pub size: Option<Size>,
    /// Number of colours that it shows.
    pub depth: ColourDepth,
    /// Where the colour depth comes from, such as `COLORTERM=truecolor`.
    pub depth_from: String,
    /// The locale, if it has no Unicode.
    pub narrow_locale: Option<String>,
    /// Whether it cannot move its cursor (`TERM=dumb`).
    pub is_dumb: bool,
    /// The multiplexer, `tmux` or `screen`, if any.
    pub multiplexer: Option<&'static str>,
    /// Whether it is used over SSH.
    pub remote: bool,
    /// Whether it can be queried for its background.
    pub tells_background: bool,
    pub has_title: bool,
}

/// Size of the terminal. Some have none and report 0 x 0 (`script`, `expect`, CI): then it is that of
/// `COLUMNS` and `LINES`, else 80 x 24.
pub fn terminal_size() -> Size {
    let reported = crossterm::terminal::size().unwrap_or_default();
    known_size(reported, |name| std::env::var(name).ok())
}

fn known_size((columns, rows): (u16, u16), env: impl Fn(&str) -> Option<String>) -> Size {
    let known = |reported: u16, name, usual| match reported {
        0 => env(name)
            .and_then(|text| text.trim().parse().ok())
            .filter(|it| *it > 0)
            .unwrap_or(usual),
        reported => reported,
    };
    Size::new(known(columns, "COLUMNS", 80), known(rows, "LINES", 24))
}

impl TerminalFeatures {
    /// Reads the environment and the terminal's size.
    pub fn detect() -> Self {
        let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let size = std::io::stdout().is_terminal().then(terminal_size);
        Self { size, ..Self::from_env(env) }
    }

    fn from_env(env: impl Fn(&str) -> Option<String>) -> Self {
        let (depth, depth_from) = depth(&env);
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(|name| env(name).map(|value| format!("{name}={value}")));
        let narrow_locale = locale.filter(|locale| {
            let locale = locale.to_ascii_lowercase();
            !locale.contains("utf-8") && !locale.contains("utf8")
        });
        let multiplexer = match () {
            () if env("TMUX").is_some() => Some("tmux"),
            () if env("STY").is_some() => Some("screen"),
            () => None,
        };
        Self {
            size: None,
            depth,
            depth_from,
            narrow_locale,
            is_dumb: env("TERM").is_some_and(|term| term == "dumb"),
            multiplexer,
            remote: env("SSH_TTY").is_some() || env("SSH_CONNECTION").is_some(),
            tells_background: tells_background(depth, &env),
            // The Linux console has none, and its old versions print the text.
            has_title: cfg!(windows) || !is_term(&env, &["dumb", "linux"]),
        }
    }
}

fn is_term(env: &impl Fn(&str) -> Option<String>, names: &[&str]) -> bool {
    env("TERM").is_none_or(|term| names.contains(&term.as_str()))
}

/// Whether the terminal can be queried for its background. Not without colours, for which it does not
/// matter; not the Linux console, which is dark; not GNU screen, which answers in the wrong order;
/// not Eterm, which never answers. (tmux also calls itself `screen`, and answers.)
fn tells_background(depth: ColourDepth, env: &impl Fn(&str) -> Option<String>) -> bool {
    let is_tmux = env("TMUX").is_some();
    let is_screen = env("STY").is_some()
        || env("TERM").is_some_and(|term| term == "screen" || term.starts_with("screen."));
    depth != ColourDepth::Mono
        && !is_term(env, &["dumb", "linux", "Eterm"])
        && (is_tmux || !is_screen)
}

fn depth(env: &impl Fn(&str) -> Option<String>) -> (ColourDepth, String) {
    let term = env("TERM");
    if env("NO_COLOR").is_some() {
        return (ColourDepth::Mono, "NO_COLOR".to_owned());
    }
    if let Some(term) = term.as_deref().filter(|term| {
        matches!(*term, "dumb" | "unknown") || term.starts_with("vt1") || term.starts_with("vt2")
    }) {
        return (ColourDepth::Mono, format!("TERM={term}"));
    }
    if let Some(value) = env("COLORTERM").filter(|value| value == "truecolor" || value == "24bit") {
        return (ColourDepth::True, format!("COLORTERM={value}"));
    }
    if cfg!(windows) || env("WT_SESSION").is_some() {
        return (ColourDepth::True, "Windows".to_owned());
    }
    match term {
        Some(term) if term.ends_with("-direct") || term.contains("kitty") => {
            (ColourDepth::True, format!("TERM={term}"))
        }
        Some(term) => (ColourDepth::Indexed, format!("TERM={term}")),
        None => (ColourDepth::Mono, "no TERM".to_owned()),
    }
}

/// Bytes of text, before encoding, above which many terminals drop an OSC 52.
pub const MAX_OSC52_BYTES: usize = 74_994;

/// The escape sequence that copies a text to the terminal's clipboard.
pub fn osc52(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing into memory cannot fail.
    let _ = queue!(bytes, CopyToClipboard::to_clipboard_from(text));
    bytes
}

/// Why this terminal takes no text for the clipboard, where that is known.
pub fn why_no_clipboard(env: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    let is = |name: &str, value: &str| env(name).as_deref() == Some(value);
    match () {
        () if env("TMUX").is_some() => None,
        () if env("STY").is_some() => Some("GNU screen does not pass it on to the clipboard"),
        () if is("TERM", "linux") => Some("the Linux console has no clipboard"),
        () if is("TERM_PROGRAM", "Apple_Terminal") => {
            Some("Terminal.app lets no program write to the clipboard")
        }
        () => None,
    }
}

/// Whether tmux keeps what is copied in its own buffer (`set-clipboard off`). It may block.
pub fn tmux_keeps_copies() -> bool {
    let asked = Command::new("tmux")
        .args(["show-options", "-sv", "set-clipboard"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    asked.is_ok_and(|asked| asked.stdout.trim_ascii() == b"off")
}

/// Copies a text through tmux (3.2 or later) to tmux's buffer and the terminal's clipboard. `false`
/// outside tmux, or if tmux failed. It may block: do not call it in the loop.
pub fn through_tmux(text: &str) -> bool {
    if std::env::var_os("TMUX").is_none() {
        return false;
    }
    let tmux = Command::new("tmux")
        .args(["load-buffer", "-w", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut tmux) = tmux else { return false };
    let given = tmux.stdin.take().is_some_and(|mut stdin| stdin.write_all(text.as_bytes()).is_ok());
    tmux.wait().is_ok_and(|status| status.success()) && given
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tty(env: &[(&str, &str)]) -> TerminalFeatures {
        TerminalFeatures::from_env(|name| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn unknown_size_comes_from_the_environment() {
        for (reported, columns, lines, size) in [
            ((120, 36), Some("200"), Some("50"), (120, 36)),
            ((0, 0), None, None, (80, 24)),
            ((0, 0), Some("132"), Some(" 43 "), (132, 43)),
            ((0, 0), Some("0"), Some("many"), (80, 24)),
            ((0, 0), Some("-1"), Some("70000"), (80, 24)),
            ((0, 30), None, Some("43"), (80, 30)),
        ] {
            let env = |name: &str| match name {
                "COLUMNS" => columns.map(str::to_owned),
                _ => lines.map(str::to_owned),
            };
            let found = known_size(reported, env);
            assert_eq!((found.width, found.height), size, "{reported:?} {columns:?} {lines:?}");
        }
    }

    #[test]
    fn some_terminals_have_no_clipboard() {
        for (env, has_one) in [
            (&[("TERM", "xterm-256color")][..], true),
            (&[("TERM", "linux")], false),
            (&[("TERM", "linux"), ("TMUX", "x")], true),
            (&[("TERM", "screen"), ("STY", "1.pts")], false),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "Apple_Terminal")], false),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")], true),
        ] {
            let value = |name: &str| {
                env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(why_no_clipboard(value).is_none(), has_one, "{env:?}");
        }
    }

    #[test]
    fn colours_are_what_the_environment_says() {
        for (env, want) in [
            (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")][..], ColourDepth::True),
            (&[("TERM", "xterm-256color")], ColourDepth::Indexed),
            (&[("TERM", "xterm-kitty")], ColourDepth::True),
            (&[("TERM", "dumb"), ("COLORTERM", "truecolor")], ColourDepth::Mono),
            (
                &[("TERM", "xterm"), ("COLORTERM", "truecolor"), ("NO_COLOR", "1")],
                ColourDepth::Mono,
            ),
            (&[], ColourDepth::Mono),
        ] {
            assert_eq!(tty(env).depth, want, "{env:?}");
        }
    }

    #[test]
    fn queries_only_capable_colour_terminals() {
        let xterm = ("TERM", "xterm-256color");
        for (env, asked) in [
            (&[xterm][..], true),
            (&[xterm, ("SSH_TTY", "/dev/pts/1")], true),
            (&[("TERM", "screen"), ("TMUX", "x")], true),
            (&[("TERM", "tmux-256color"), ("TMUX", "x")], true),
            (&[xterm, ("NO_COLOR", "1")], false),
            (&[("TERM", "dumb")], false),
            (&[("TERM", "vt100")], false),
            (&[("TERM", "linux")], false),
            (&[("TERM", "Eterm")], false),
            (&[("TERM", "screen")], false),
            (&[("TERM", "screen.xterm-256color"), ("STY", "x")], false),
            (&[], false),
        ] {
            assert_eq!(tty(env).tells_background, asked, "{env:?}");
        }
    }

    #[test]
    fn a_locale_without_unicode_is_named() {
        assert_eq!(tty(&[("LANG", "C")]).narrow_locale.as_deref(), Some("LANG=C"));
        assert_eq!(tty(&[("LC_ALL", "de_DE.UTF-8"), ("LANG", "C")]).narrow_locale, None);
        assert_eq!(tty(&[]).narrow_locale, None, "nothing said");
        assert_eq!(tty(&[("TMUX", "x")]).multiplexer, Some("tmux"));
    }

    #[test]
    fn copies_text_as_base64() {
        assert_eq!(osc52("hi"), b"\x1b]52;c;aGk=\x1b\\");
    }
}
