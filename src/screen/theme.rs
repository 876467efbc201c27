//! The style of each role and the sign of each state: glyph, word and style. No pane names a colour
//! itself. Themes are data (`assets/themes/*.toml`, and the operator's own file): see
//! [`Theme::parse`].

use std::sync::LazyLock;

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

use crate::log::event::BreakerStage;
use crate::log::event::stop::StopClass;
use crate::log::facts::collaboration::Stance;
use crate::log::world::run_row::RunStatus;
use crate::log::world::tool_row::CallMark;
use crate::log::world::{RunState, World};
use crate::scenario::patterns::collaboration::Decision;
use crate::words::badges;
use crate::words::badges::run_state;
use crate::words::glyph::Glyph;
use crate::words::styled::{Badge, StyleRole};

/// Number of colours that the terminal shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColourDepth {
    /// 24 bits.
    #[default]
    True,
    /// The 256 of xterm.
    Indexed,
    /// None (`NO_COLOR`): only bold, dim, underlined and reversed text.
    Mono,
}

/// A style for every role.
#[derive(Clone, Debug, PartialEq)]
pub struct Theme {
    name: String,
    styles: Vec<Style>,
}

/// Error in a theme's file.
#[derive(Debug, thiserror::Error)]
pub enum ThemeError {
    /// It is not valid TOML of this form; the text says where.
    #[error("{}", form_text(.0))]
    Form(#[from] toml::de::Error),
    /// It names an unknown role.
    #[error("roles.{0}: unknown role; known roles: {1}")]
    StyleRole(String, String),
    /// A colour that cannot be parsed.
    #[error("roles.{role}: `{given}` is not a colour; use \"#56b4e9\", \"blue\" or \"75\"")]
    Colour {
        role: String,
        /// The text in the file.
        given: String,
    },
    /// Its `base` is an unknown theme.
    #[error("base = \"{0}\": unknown theme; known themes: {1}")]
    Base(String, String),
}

/// The error on one line, without the excerpt below it.
fn form_text(error: &toml::de::Error) -> String {
    let text = error.to_string();
    format!("{}: {}", text.lines().next().unwrap_or_default(), error.message())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThemeFile {
    name: String,
    base: Option<String>,
    #[serde(default)]
    roles: toml::Table,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RoleStyle {
    fg: Option<String>,
    bg: Option<String>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    reversed: bool,
}

const SHIPPED: [(&str, &str); 4] = [
    ("dark", include_str!("../../assets/themes/dark.toml")),
    ("light", include_str!("../../assets/themes/light.toml")),
    ("colour-blind", include_str!("../../assets/themes/colour-blind.toml")),
    ("mono", include_str!("../../assets/themes/mono.toml")),
];

/// A test reads each shipped file, so none is ever skipped here.
static THEMES: LazyLock<Vec<Theme>> = LazyLock::new(|| {
    SHIPPED.iter().filter_map(|(_, text)| Theme::read(text, Theme::plain()).ok()).collect()
});

impl Default for Theme {
    fn default() -> Self {
        Self::shipped("dark").unwrap_or_else(Self::plain)
    }
}

impl Theme {
    /// The names of the shipped themes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// A shipped theme by its name.
    pub fn shipped(name: &str) -> Option<Theme> {
        THEMES.iter().find(|theme| theme.name == name).cloned()
    }

    /// Parses the text of a theme's file: `name`, optionally `base` (a shipped theme, default
    /// `dark`), and `[roles]`, each a colour or a table with `fg`, `bg`, `bold`, `dim`, `italic`,
    /// `underline`, `reversed`.
    ///
    /// # Errors
    /// [`ThemeError`]: what is wrong, and the allowed values.
    pub fn parse(text: &str) -> Result<Theme, ThemeError> {
        let file: ThemeFile = toml::from_str(text)?;
        let base = file.base.as_deref().unwrap_or("dark");
        let base = Self::shipped(base).ok_or_else(|| {
            ThemeError::Base(base.to_owned(), Self::names().collect::<Vec<_>>().join(", "))
        })?;
        Self::read(text, base)
    }

    /// The theme on a background, as a terminal writes its colour (`rgb:ffff/ffff/ffff`); `None` if
    /// it is not known.
    pub(crate) fn on_background(colour: Option<&[u8]>) -> Theme {
        let colour = colour.and_then(|colour| xterm_color::Color::parse(colour).ok());
        let is_light = colour.is_some_and(|colour| colour.perceived_lightness() > 0.5);
        Self::shipped("light").filter(|_| is_light).unwrap_or_default()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The theme with no more colours than the terminal shows. Without colours every theme becomes
    /// the shipped `mono`.
    pub fn with_depth(self, depth: ColourDepth) -> Theme {
        match depth {
            ColourDepth::True => self,
            ColourDepth::Indexed => {
                let styles = self.styles.into_iter().map(|style| Style {
                    fg: style.fg.map(nearest_indexed),
                    bg: style.bg.map(nearest_indexed),
                    ..style
                });
                Theme { name: self.name, styles: styles.collect() }
            }
            ColourDepth::Mono => Self::shipped("mono").unwrap_or_else(Self::plain),
        }
    }

    /// Whether it is for a light background: its colours are dark.
    pub(crate) fn is_light(&self) -> bool {
        let colours = self.styles.iter().filter_map(|style| rgb(style.fg?));
        // Eyes see green as brighter than red, and red as brighter than blue (ITU-R BT.601).
        let brightness = |(red, green, blue): (u8, u8, u8)| {
            299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue)
        };
        let (sum, count) =
            colours.fold((0, 0), |(sum, count), it| (sum + brightness(it), count + 1));
        sum < count * 127_500
    }

    /// The style of a role.
    pub fn style(&self, role: StyleRole) -> Style {
        self.styles.get(role as usize).copied().unwrap_or_default()
    }

    fn plain() -> Theme {
        Theme { name: "plain".to_owned(), styles: vec![Style::new(); StyleRole::ALL.len()] }
    }

    fn read(text: &str, base: Theme) -> Result<Theme, ThemeError> {
        let file: ThemeFile = toml::from_str(text)?;
        let mut styles = base.styles;
        for (name, value) in file.roles {
            let Some(role) = StyleRole::ALL.iter().find(|role| role.name() == name) else {
                let all: Vec<_> = StyleRole::ALL.iter().map(|role| role.name()).collect();
                return Err(ThemeError::StyleRole(name, all.join(", ")));
            };
            let look = match value {
                toml::Value::String(fg) => RoleStyle { fg: Some(fg), ..RoleStyle::default() },
                other => other.try_into()?,
            };
            if let Some(slot) = styles.get_mut(*role as usize) {
                *slot = look.style(&name)?;
            }
        }
        Ok(Theme { name: file.name, styles })
    }
}

impl RoleStyle {
    fn style(&self, role: &str) -> Result<Style, ThemeError> {
        let colour = |given: &Option<String>| match given {
            None => Ok(None),
            Some(given) => given
                .parse::<Color>()
                .map(Some)
                .map_err(|_| ThemeError::Colour { role: role.to_owned(), given: given.clone() }),
        };
        let mut style = Style { fg: colour(&self.fg)?, bg: colour(&self.bg)?, ..Style::new() };
        for (on, modifier) in [
            (self.bold, Modifier::BOLD),
            (self.dim, Modifier::DIM),
            (self.italic, Modifier::ITALIC),
            (self.underline, Modifier::UNDERLINED),
            (self.reversed, Modifier::REVERSED),
        ] {
            if on {
                style = style.add_modifier(modifier);
            }
        }
        Ok(style)
    }
}

/// The nearest of xterm's 256 colours: from its cube of 6x6x6 or its 24 greys.
fn nearest_indexed(colour: Color) -> Color {
    let Color::Rgb(r, g, b) = colour else { return colour };
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    let step = |value: u8| match value {
        0..48 => 0,
        48..115 => 1,
        _ => (value - 35) / 40,
    };
    let far = |(x, y, z): (u8, u8, u8)| {
        let apart = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
        apart(x, r) + apart(y, g) + apart(z, b)
    };
    let (red, green, blue) = (step(r), step(g), step(b));
    let cube = far((level(red), level(green), level(blue)));
    let mean = (u16::from(r) + u16::from(g) + u16::from(b)) / 3;
    let grey = (mean.saturating_sub(3) / 10).min(23) as u8;
    let shade = 8 + 10 * grey;
    if far((shade, shade, shade)) < cube {
        Color::Indexed(232 + grey)
    } else {
        Color::Indexed(16 + 36 * red + 6 * green + blue)
    }
}

/// The sign of a state: a glyph and a word, then a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSign {
    pub glyph: Glyph,
    pub word: &'static str,
    pub style: Style,
}

impl Theme {
    pub(crate) fn sign(&self, glyph: Glyph, word: &'static str, role: StyleRole) -> StateSign {
        StateSign { glyph, word, style: self.style(role) }
    }

    /// The sign of a badge.
    pub fn badge(&self, badge: Badge) -> StateSign {
        self.sign(badge.glyph, badge.word, badge.role)
    }

    /// The sign of a stance.
    pub fn stance(&self, stance: Stance) -> StateSign {
        self.badge(badges::stance(stance))
    }

    /// The sign of a decision, which looks like the matching stance.
    pub fn decision(&self, decision: Decision) -> StateSign {
        self.badge(badges::decision(decision))
    }

    /// The sign of a breaker's state.
    pub fn breaker(&self, stage: BreakerStage) -> StateSign {
        match stage {
            BreakerStage::Closed => self.sign(Glyph::Done, "closed", StyleRole::Done),
            BreakerStage::Open => self.sign(Glyph::Refused, "OPEN", StyleRole::Refused),
            BreakerStage::HalfOpen => self.sign(Glyph::HalfOpen, "half-open", StyleRole::Retry),
            BreakerStage::Held => self.sign(Glyph::Refused, "HELD", StyleRole::Refused),
            BreakerStage::Disabled => self.sign(Glyph::Off, "off", StyleRole::Off),
        }
    }

    /// The sign of an attempt's result.
    pub fn mark(&self, mark: CallMark) -> StateSign {
        match mark {
            CallMark::Good => self.sign(Glyph::Done, "ok", StyleRole::Done),
            CallMark::Slow => self.sign(Glyph::Slow, "slow", StyleRole::Retry),
            CallMark::Bad => self.sign(Glyph::Failed, "failed", StyleRole::Failed),
            CallMark::NotCounted => self.sign(Glyph::NotYet, "not counted", StyleRole::Dim),
            CallMark::Refused => self.sign(Glyph::Refused, "refused", StyleRole::Refused),
        }
    }

    /// The sign of a run's stage.
    pub fn run(&self, world: &World) -> StateSign {
        match (&world.progress.stage, &world.progress.closed) {
            (RunState::Empty, _) => self.sign(Glyph::Waiting, "STARTING", StyleRole::Waiting),
            (RunState::Running, _) if world.progress.waits_since.is_some() => {
                StateSign { style: self.waiting_style(), ..self.badge(badges::WAITS) }
            }
            (RunState::Running, _) => self.sign(Glyph::Running, "LIVE", StyleRole::Running),
            (RunState::Pausing { since: None, .. }, _) => {
                self.sign(Glyph::Paused, "PAUSING", StyleRole::Paused)
            }
            (RunState::Pausing { .. } | RunState::Paused { .. }, _) => {
                self.sign(Glyph::Paused, "PAUSED", StyleRole::Paused)
            }
            // Only the log of an interrupted run is over without an end.
            (RunState::Closed, None) => self.badge(run_state(&RunStatus::Interrupted)),
            (RunState::Closed, Some(closed)) => self.ended(closed.reason.class()),
        }
    }

    /// The sign of something that waits for a person.
    pub fn waits(&self) -> StateSign {
        StateSign { glyph: Glyph::NeedsYou, word: "waits", style: self.waiting_style() }
    }

    /// The style of what waits for a person, where it is one row of many: without the background that
    /// calls the operator.
    pub fn waiting_style(&self) -> Style {
        self.style(StyleRole::NeedsYou).remove_modifier(Modifier::REVERSED)
    }

    /// The style of a role in one row or count of many.
    pub fn style_among_many(&self, role: StyleRole) -> Style {
        match role {
            StyleRole::NeedsYou => self.waiting_style(),
            role => self.style(role),
        }
    }

    /// The sign of a run that has ended, by the class of its stop reason.
    pub fn ended(&self, class: StopClass) -> StateSign {
        self.badge(badges::ended(class))
    }

    /// The style of a budget's bar, which warns above 80 %.
    pub fn budget(&self, used: u64, allowed: u64) -> Style {
        let high = u128::from(used) * 5 > u128::from(allowed) * 4;
        self.style(if high { StyleRole::BarHigh } else { StyleRole::Bar })
    }
}

/// The first 16 colours of xterm.
const NAMED: [(u8, u8, u8); 16] = [
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
];

/// The parts of a colour, those with a name or a number as xterm has them.
pub(super) fn rgb(colour: Color) -> Option<(u8, u8, u8)> {
    let nth = match colour {
        Color::Reset => return None,
        Color::Rgb(red, green, blue) => return Some((red, green, blue)),
        Color::Indexed(nth) => nth,
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
    };
    Some(match nth {
        0..16 => NAMED[usize::from(nth)],
        16..232 => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let cube = nth - 16;
            (level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        232.. => {
            let shade = 8 + 10 * (nth - 232);
            (shade, shade, shade)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::facts::collaboration::Stance;
    use crate::log::world::collaboration::SeatState;
    use crate::screen::run::views::collaboration::seat::state_sign;

    #[test]
    fn finds_every_shipped_theme_by_name() {
        for (name, text) in SHIPPED {
            let theme = Theme::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(theme.name(), name);
            assert_eq!(Theme::shipped(name).map(|theme| theme.name), Some(name.to_owned()));
        }
        assert_eq!(Theme::default().name(), "dark");
    }

    #[test]
    fn the_theme_fits_the_background() {
        for (colour, name) in [
            (Some("rgb:0000/0000/0000"), "dark"),
            (Some("rgb:1e1e/1e1e/2e2e"), "dark"),
            (Some("rgb:ffff/ffff/ffff"), "light"),
            (Some("rgb:fdfd/f6f6/e3e3"), "light"),
            (Some("rgb:ff/ff/ff"), "light"),
            (Some("rgba:ff/ff/ff/80"), "light"),
            (Some("rgb:zz/ff/ff"), "dark"),
            (Some(""), "dark"),
            (None, "dark"),
        ] {
            assert_eq!(Theme::on_background(colour.map(str::as_bytes)).name(), name, "{colour:?}");
        }
    }

    #[test]
    fn without_colour_there_is_none() {
        for name in Theme::names() {
            let theme = Theme::shipped(name).expect("shipped").with_depth(ColourDepth::Mono);
            for style in &theme.styles {
                assert_eq!((style.fg, style.bg), (None, None));
            }
            assert_ne!(theme.style(StyleRole::Selected), theme.style(StyleRole::Text));
        }
    }

    #[test]
    fn states_differ_in_glyph_and_word() {
        use SeatState::*;
        let theme = Theme::shipped("mono").expect("shipped");
        let states = [
            Waiting, Off, Speaking, Retrying, Answered, Accepted, Refused, Failed, Cancelled,
            Unused,
        ];
        for (at, one) in states.iter().enumerate() {
            for other in &states[at + 1..] {
                assert_ne!(state_sign(&theme, *one).word, state_sign(&theme, *other).word);
            }
        }
        let stances: Vec<_> = Stance::ALL.iter().map(|stance| theme.stance(*stance)).collect();
        assert_eq!(
            stances.iter().map(|sign| sign.word).collect::<Vec<_>>(),
            ["go", "caution", "block"]
        );
    }

    #[test]
    fn severity_is_one_ramp() {
        use StyleRole::{Block, Caution, Go, Undecided};
        for name in Theme::names() {
            let theme = Theme::shipped(name).expect("shipped");
            let ramp = [Go, Caution, Block, Undecided].map(|role| theme.style(role));
            for (at, one) in ramp.iter().enumerate() {
                assert!(!ramp[at + 1..].contains(one), "{name}: {:?}", ramp);
            }
            if name == "mono" {
                continue;
            }
            let [go, caution, block, undecided] =
                ramp.map(|style| rgb(style.fg.expect("a colour")).expect("its parts"));
            let is_grey = |(r, g, b): (u8, u8, u8)| r.abs_diff(b) < 30 && r.abs_diff(g) < 30;
            let is_amber = |(r, g, b): (u8, u8, u8)| r > g && g > b && g > r / 2;
            assert!(is_grey(undecided) && is_amber(caution), "{name}: {ramp:?}");
            // Where red and green look alike, the ramp is from blue to a strong amber.
            if name == "colour-blind" {
                assert!(go.2 > go.0 && is_amber(block) && block.2 < caution.2, "{ramp:?}");
            } else {
                assert!(go.1 > go.0 && go.1 > go.2, "{name}: green: {go:?}");
                assert!(block.0 > 2 * block.1.min(block.2), "{name}: red: {block:?}");
            }
            assert_eq!(theme.style(StyleRole::Failed).fg, theme.style(Block).fg, "{name}");
        }
    }

    #[test]
    fn own_theme_overrides_named_roles() {
        let theme = Theme::parse("name = \"mine\"\nbase = \"light\"\n[roles]\ngo = \"#123456\"\n")
            .expect("reads");
        let light = Theme::shipped("light").expect("shipped");
        assert_eq!(theme.style(StyleRole::Go).fg, Some(Color::Rgb(0x12, 0x34, 0x56)));
        assert_eq!(theme.style(StyleRole::Block), light.style(StyleRole::Block));
    }

    #[test]
    fn reports_errors_in_theme_file() {
        let wrong = |text: &str| Theme::parse(text).expect_err("wrong").to_string();
        assert!(
            wrong("name = \"x\"\n[roles]\ngoo = \"red\"").starts_with("roles.goo: unknown role")
        );
        assert!(
            wrong("name = \"x\"\n[roles]\ngo = \"reddish\"").contains("`reddish` is not a colour")
        );
        assert!(wrong("name = \"x\"\nbase = \"noon\"").contains("known themes: dark, light"));
        assert!(wrong("name = \"x\"\n[roles]\ngo = { bald = true }").contains("bald"));
        assert!(wrong("nam = 1").contains("line 1"));
    }

    #[test]
    fn a_budget_warns_past_four_fifths() {
        let theme = Theme::default();
        assert_eq!(theme.budget(8, 10), theme.style(StyleRole::Bar));
        assert_eq!(theme.budget(9, 10), theme.style(StyleRole::BarHigh));
        assert_eq!(theme.budget(0, 0), theme.style(StyleRole::Bar));
    }

    #[test]
    fn colours_of_the_cube_are_found() {
        assert_eq!(nearest_indexed(Color::Rgb(0, 0, 0)), Color::Indexed(16));
        assert_eq!(nearest_indexed(Color::Rgb(255, 255, 255)), Color::Indexed(231));
        assert_eq!(nearest_indexed(Color::Rgb(95, 175, 215)), Color::Indexed(74));
        assert_eq!(nearest_indexed(Color::Rgb(128, 128, 128)), Color::Indexed(244));
        assert_eq!(nearest_indexed(Color::Reset), Color::Reset);
        for value in 0..=255 {
            let _ = nearest_indexed(Color::Rgb(value, 255 - value, value));
        }
    }

    #[test]
    fn numbered_colours_match_xterm() {
        for (colour, parts) in [
            (Color::Indexed(16), (0, 0, 0)),
            (Color::Indexed(74), (0x5f, 0xaf, 0xd7)),
            (Color::Indexed(231), (255, 255, 255)),
            (Color::Indexed(244), (128, 128, 128)),
            (Color::LightBlue, (92, 92, 255)),
        ] {
            assert_eq!(rgb(colour), Some(parts));
        }
        assert_eq!(rgb(Color::Reset), None);
    }
}
