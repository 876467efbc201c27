//! The abilities of the operator's terminal, from its environment.

use std::io::IsTerminal;

use ratatui::layout::Size;

use crate::ui::theme::ColourDepth;

/// The abilities of the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abilities {
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
}

impl Abilities {
    /// Reads the environment and the terminal's size.
    pub fn detect() -> Self {
        let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let size = crossterm::terminal::size()
            .ok()
            .filter(|_| std::io::stdout().is_terminal())
            .map(|(width, height)| Size::new(width, height));
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
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tty(env: &[(&str, &str)]) -> Abilities {
        Abilities::from_env(|name| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[cfg(not(windows))]
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
    fn a_locale_without_unicode_is_named() {
        assert_eq!(tty(&[("LANG", "C")]).narrow_locale.as_deref(), Some("LANG=C"));
        assert_eq!(tty(&[("LC_ALL", "de_DE.UTF-8"), ("LANG", "C")]).narrow_locale, None);
        assert_eq!(tty(&[]).narrow_locale, None, "nothing said");
        assert_eq!(tty(&[("TMUX", "x")]).multiplexer, Some("tmux"));
    }
}
