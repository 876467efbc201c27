//! One field of the launch form.

use tui_textarea::{CursorMove, Input, TextArea, WrapMode};

use crate::app::key::{KeyCode, KeyPress};
use crate::base::name::{FlagName, InputName};
use crate::base::visible::{chars_with_hostility, is_hostile, visible_char};

/// The largest text that the form accepts, in bytes.
pub const MAX_TEXT_BYTES: usize = 256 * 1024;

/// The choices of the model field, in order: `FormFields::model` depends on it.
pub const MODEL_CHOICES: [&str; 3] = ["scripted", "scripted, no delays", "live"];

/// Which field of the form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FieldId {
    /// The boundary that a fork continues from.
    Boundary,
    /// The goal of the run.
    Goal,
    /// An input of the scenario.
    Input(InputName),
    /// The position of a flag at the start.
    Flag(FlagName),
    /// A limit, by its path in the scenario.
    Limit(&'static str),
    /// A prompt, by its path in the scenario.
    Prompt(String),
    /// What answers the model calls: the script or live models.
    Model,
    /// The name of the live model.
    ModelName,
    /// The seed of all random numbers.
    Seed,
    /// The button that starts the run.
    Start,
    /// The button that closes the form.
    Cancel,
}

/// A field and its value.
#[derive(Debug)]
pub struct Field {
    /// Which field it is.
    pub id: FieldId,
    /// The label to its left.
    pub label: String,
    /// A note on the allowed values; empty where they are obvious.
    pub hint: String,
    /// The value is a string even if it looks like a number or another TOML value.
    pub literal: bool,
    /// Its value.
    pub value: FieldValue,
}

/// The value of a field.
#[derive(Debug)]
pub enum FieldValue {
    /// A text.
    Text(Box<TextField>),
    /// One of several choices.
    Choice {
        /// The choices.
        choices: Vec<String>,
        /// The chosen one.
        at: usize,
        /// The one that was chosen at first.
        first: usize,
    },
    /// An on-off switch.
    Switch {
        /// The position.
        on: bool,
        /// The position at first.
        first: bool,
    },
    /// A model, chosen in a window of its own.
    Model {
        /// Name of the model as `--model` takes it; empty for the model of the scenario or the
        /// environment.
        text: String,
        /// The name at first.
        first: String,
    },
    /// A button.
    Button,
}

/// A text that can be edited.
#[derive(Debug)]
pub struct TextField {
    /// The text and its cursor.
    pub area: TextArea<'static>,
    /// Whether Enter inserts a line end; otherwise the field has one line.
    pub lines: bool,
    first: String,
}

impl TextField {
    /// A field with this text.
    pub fn new(text: &str, lines: bool) -> Self {
        Self { area: area(text), lines, first: text.to_owned() }
    }

    /// The whole text.
    pub fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    /// Whether the text differs from the first one.
    pub fn changed(&self) -> bool {
        let mut first = self.first.split('\n');
        !(self.area.lines().iter().all(|line| first.next() == Some(line)) && first.next().is_none())
    }

    /// Replaces the text, which also becomes the first one.
    pub fn reset(&mut self, text: &str) {
        if self.first != text || self.changed() {
            *self = Self::new(text, self.lines);
        }
    }

    /// Takes a key; returns whether the text or the cursor may have changed.
    pub fn on_key(&mut self, key: KeyPress) -> bool {
        let Some(input) = input(key) else { return false };
        self.area.input(input);
        true
    }

    /// The part of a pasted text that fits into the field, and the number of non-empty lines left
    /// out: a field with one line takes the first.
    pub fn accepted_paste<'a>(&self, text: &'a str) -> (&'a str, usize) {
        if self.lines {
            return (text, 0);
        }
        let mut lines = text.split(['\n', '\r']).filter(|line| !line.trim().is_empty());
        (lines.next().unwrap_or_default(), lines.count())
    }

    /// Inserts pasted text. Control characters other than line ends become visible symbols; returns
    /// how many.
    pub fn on_paste(&mut self, text: &str) -> usize {
        let mut signs = 0;
        let mut plain = String::with_capacity(text.len());
        for (c, hides) in chars_with_hostility(text) {
            match c {
                '\n' => plain.push('\n'),
                '\t' => plain.push_str("    "),
                c if hides => {
                    signs += 1;
                    plain.push(visible_char(c));
                }
                c => plain.push(c),
            }
        }
        self.area.insert_str(plain);
        signs
    }

    /// Number of invisible characters in the text: a file may contain them, and they count as text.
    pub fn invisible_chars(&self) -> usize {
        self.area
            .lines()
            .iter()
            .flat_map(|line| chars_with_hostility(line))
            .filter(|(_, hides)| *hides)
            .count()
    }

    /// How many more bytes fit.
    pub fn free_bytes(&self) -> usize {
        let taken: usize = self.area.lines().iter().map(|line| line.len() + 1).sum();
        MAX_TEXT_BYTES.saturating_sub(taken)
    }
}

fn area(text: &str) -> TextArea<'static> {
    let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.move_cursor(CursorMove::Bottom);
    area.move_cursor(CursorMove::End);
    area
}

fn input(key: KeyPress) -> Option<Input> {
    use tui_textarea::Key as TextKey;
    let code = match key.code {
        KeyCode::Char(c) if is_hostile(c) => return None,
        KeyCode::Char(c) => TextKey::Char(c),
        KeyCode::Enter => TextKey::Enter,
        KeyCode::Backspace => TextKey::Backspace,
        KeyCode::Delete => TextKey::Delete,
        KeyCode::Up => TextKey::Up,
        KeyCode::Down => TextKey::Down,
        KeyCode::Left => TextKey::Left,
        KeyCode::Right => TextKey::Right,
        KeyCode::Home => TextKey::Home,
        KeyCode::End => TextKey::End,
        KeyCode::PageUp => TextKey::PageUp,
        KeyCode::PageDown => TextKey::PageDown,
        KeyCode::Esc | KeyCode::Tab | KeyCode::BackTab | KeyCode::Insert | KeyCode::F(_) => {
            return None;
        }
    };
    Some(Input { key: code, ctrl: key.ctrl, alt: key.alt, shift: key.shift })
}

impl Field {
    /// Whether its value differs from the first one.
    pub fn changed(&self) -> bool {
        match &self.value {
            FieldValue::Text(text) => text.changed(),
            FieldValue::Choice { at, first, .. } => at != first,
            FieldValue::Switch { on, first } => on != first,
            FieldValue::Model { text, first } => text != first,
            FieldValue::Button => false,
        }
    }

    /// Its value as text.
    pub fn text(&self) -> String {
        match &self.value {
            FieldValue::Text(text) => text.text(),
            FieldValue::Choice { choices, at, .. } => choices.get(*at).cloned().unwrap_or_default(),
            FieldValue::Switch { on, .. } => on.to_string(),
            FieldValue::Model { text, .. } => text.clone(),
            FieldValue::Button => String::new(),
        }
    }

    /// Selects the next or previous choice, or flips the switch; returns whether the field has
    /// either.
    pub fn cycle(&mut self, forward: bool) -> bool {
        match &mut self.value {
            FieldValue::Choice { choices, at, .. } if !choices.is_empty() => {
                let steps = if forward { 1 } else { choices.len() - 1 };
                *at = (*at + steps) % choices.len();
                true
            }
            FieldValue::Switch { on, .. } => {
                *on = !*on;
                true
            }
            _ => false,
        }
    }
}
