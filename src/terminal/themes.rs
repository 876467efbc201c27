//! Finds the chosen theme: a shipped one, a file, or the one that fits the terminal's background.

use std::io::ErrorKind;
use std::path::Path;

use crate::base::read_file;
use crate::base::refused::Refused;
use crate::base::visible::visible;
use crate::host::config::ConfigFile;
use crate::screen::theme::{ColourDepth, Theme};

/// The environment variable that names a theme.
pub const THEME_VARIABLE: &str = "ROUNDTABLE_THEME";

/// The name of the choice by the terminal's background.
pub const AUTO: &str = "auto";

/// Size limit of a theme file, in bytes.
const MAX_THEME_BYTES: u64 = 1 << 20;

/// Which theme is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ThemeChoice {
    /// The light theme on a light background, else the dark one.
    #[default]
    Auto,
    Fixed(Theme),
}

impl ThemeChoice {
    /// The theme where the background is not known.
    pub fn theme(self) -> Theme {
        match self {
            Self::Auto => Theme::default(),
            Self::Fixed(theme) => theme,
        }
    }
}

/// The theme that the command line or the environment (`origin`) names.
///
/// # Errors
/// It cannot be used.
pub fn find(origin: &str, wanted: &str) -> Result<ThemeChoice, Refused> {
    shipped_or_file(wanted, Path::new(wanted))
        .map_err(|why| Refused { what: format!("{origin} {}", why.what), ..why })
}

/// The theme that the configuration file names; a theme file is relative to its folder. One that
/// cannot be used is an error of the configuration file.
pub fn from_config(file: &mut ConfigFile) -> Option<ThemeChoice> {
    let wanted = file.config.ui.theme.clone()?;
    let folder = file.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    match shipped_or_file(&wanted.name, &folder.join(&wanted.name)) {
        Ok(theme) => Some(theme),
        Err(why) => {
            file.errors.push(format!("{}: error: ui.theme: {why:#}", wanted.place));
            None
        }
    }
}

/// A shipped theme by name, else the theme file at `path`.
fn shipped_or_file(wanted: &str, path: &Path) -> Result<ThemeChoice, Refused> {
    if wanted == AUTO {
        return Ok(ThemeChoice::Auto);
    }
    if let Some(theme) = Theme::shipped(wanted) {
        return Ok(ThemeChoice::Fixed(theme));
    }
    let name = visible(wanted);
    let bytes = read_file::read_file(path, MAX_THEME_BYTES);
    let bytes = bytes.map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let names: Vec<&str> = [AUTO].into_iter().chain(Theme::names()).collect();
            let what = format!("{name}: no such theme and no such file");
            Refused::new(what).because(error).help(format!("use {}", names.join(", ")))
        }
        _ => Refused::new(format!("{name} cannot be read")).because(error),
    })?;
    let text =
        String::from_utf8(bytes).map_err(|_| Refused::new(format!("{name} is not UTF-8")))?;
    Theme::parse(&text)
        .map(ThemeChoice::Fixed)
        .map_err(|error| Refused::new(format!("{name}: {error}")))
}

/// The themes that the operator goes through while the dashboard is open, and the one in use.
#[derive(Clone, Debug)]
pub struct ThemeCycle {
    /// With all their colours.
    themes: Vec<Theme>,
    /// The one in use.
    current: Theme,
    /// Its place in the list.
    at: usize,
    depth: ColourDepth,
}

impl ThemeCycle {
    /// The shipped themes, and the one in use if it is not among them.
    pub fn new(in_use: Theme, depth: ColourDepth) -> Self {
        let mut themes: Vec<Theme> = Theme::names().filter_map(Theme::shipped).collect();
        let at = themes.iter().position(|theme| *theme == in_use).unwrap_or_else(|| {
            themes.push(in_use.clone());
            themes.len() - 1
        });
        Self { themes, current: in_use.with_depth(depth), at, depth }
    }

    /// The theme in use.
    pub fn current(&self) -> &Theme {
        &self.current
    }

    /// Uses the next one; returns what to tell the operator.
    pub fn advance(&mut self) -> String {
        if self.depth == ColourDepth::Mono {
            return "This terminal shows no colours: there is no other theme.".to_owned();
        }
        self.at = (self.at + 1) % self.themes.len();
        if let Some(theme) = self.themes.get(self.at) {
            self.current = theme.clone().with_depth(self.depth);
        }
        let name = visible(self.current().name()).into_owned();
        match Theme::shipped(&name) {
            Some(_) => {
                format!("Theme: {name}. Keep it: theme = \"{name}\" in [ui] of config.toml.")
            }
            None => format!("Theme: {name}, from your file."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycle_visits_every_theme() {
        let own = Theme::parse("name = \"mine\"\n[roles]\ngo = \"#123456\"").expect("a theme");
        let mut cycle = ThemeCycle::new(own.clone(), ColourDepth::True);
        assert_eq!(cycle.current(), &own);
        let mut seen = Vec::new();
        for _ in 0..5 {
            let notice = cycle.advance();
            let name = cycle.current().name().to_owned();
            assert!(notice.starts_with(&format!("Theme: {name}")), "{notice}");
            assert!(notice.chars().count() <= 78, "fits in a narrow terminal: {notice}");
            seen.push(name);
        }
        assert_eq!(seen, ["dark", "light", "colour-blind", "mono", "mine"]);
    }

    #[test]
    fn colourless_terminal_has_one_theme() {
        let mut cycle = ThemeCycle::new(Theme::default(), ColourDepth::Mono);
        let before = cycle.current().clone();
        assert!(cycle.advance().contains("no colours"));
        assert_eq!(cycle.current(), &before);
    }

    #[test]
    fn broken_theme_names_line_once() {
        let why = Theme::parse("a = = 3").expect_err("broken").to_string();
        assert!(why.starts_with("TOML parse error at line 1, column 5: "), "{why}");
        assert_eq!(why.lines().count(), 1, "{why}");
    }

    #[test]
    fn auto_is_choice_without_file() {
        assert_eq!(find("--theme", "auto").expect("a theme"), ThemeChoice::Auto);
        let light = Theme::shipped("light").expect("shipped");
        assert_eq!(find("--theme", "light").expect("a theme"), ThemeChoice::Fixed(light));
        let why = find(THEME_VARIABLE, "pink").expect_err("no such theme");
        assert!(why.what.starts_with("ROUNDTABLE_THEME pink: no such theme"), "{why}");
        assert!(why.help.is_some_and(|help| help.starts_with("use auto, dark,")));
    }
}
