//! The fields of the launch form: made from a scenario, and turned back into overrides of it.

use std::sync::Arc;

use tui_textarea::{CursorMove, Input, TextArea, WrapMode};

use crate::base::name::{FlagName, InputName};
use crate::base::visible::{chars_with_hostility, is_hostile, visible_char};
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::read::prompts::PromptText;
use crate::scenario::spec::{InputKind, ScenarioInput};
use crate::scenario::{Override, Scenario};
use crate::screen::key::{KeyCode, KeyPress};

/// The fields of the form, and the focus.
#[derive(Debug)]
pub struct FormFields {
    /// The fields in order.
    pub list: Vec<Field>,
    pub focus: FieldId,
    /// Whether the focused text is being edited: Tab, Enter and a click start that, other moves do
    /// not.
    pub(crate) typing: bool,
}

impl FormFields {
    /// These fields, with the focus on the button that starts the run.
    pub(crate) fn new(list: Vec<Field>) -> Self {
        Self { list, focus: FieldId::Start, typing: false }
    }

    pub fn get(&self, id: &FieldId) -> Option<&Field> {
        self.list.iter().find(|field| field.id == *id)
    }

    /// The field with this id, to change it.
    pub(crate) fn get_mut(&mut self, id: &FieldId) -> Option<&mut Field> {
        self.list.iter_mut().find(|field| field.id == *id)
    }

    /// The focused field, to change it.
    pub(crate) fn focused(&mut self) -> Option<&mut Field> {
        self.list.iter_mut().find(|field| field.id == self.focus)
    }

    /// Whether characters are typed into the focused field.
    pub fn is_editing(&self) -> bool {
        self.typing && self.is_on_text()
    }

    /// Whether the focused field is a text, edited or not.
    pub fn is_on_text(&self) -> bool {
        matches!(self.get(&self.focus).map(|field| &field.value), Some(FieldValue::Text(_)))
    }

    /// Whether a field is shown now: the name of a model only for a live run.
    pub fn is_shown(&self, id: &FieldId) -> bool {
        *id != FieldId::ModelName || self.is_live()
    }

    /// Whether the operator has changed anything.
    pub fn changed(&self) -> bool {
        self.list.iter().any(Field::changed)
    }

    /// What answers the model calls.
    pub fn model(&self) -> RequestedModel {
        match self.get(&FieldId::Model).map(|field| &field.value) {
            Some(FieldValue::Choice { at: 1, .. }) => RequestedModel::Scripted { instant: true },
            Some(FieldValue::Choice { at: 2, .. }) => RequestedModel::Live(self.chosen_model()),
            _ => RequestedModel::Scripted { instant: false },
        }
    }

    /// Sets what answers the model calls at first.
    pub(super) fn set_model(&mut self, model: &RequestedModel) {
        let place = match model {
            RequestedModel::Scripted { instant: false } => 0,
            RequestedModel::Scripted { instant: true } => 1,
            RequestedModel::Live(_) => 2,
        };
        if let Some(Field { value: FieldValue::Choice { at, first, .. }, .. }) =
            self.get_mut(&FieldId::Model)
        {
            (*at, *first) = (place, place);
        }
    }

    /// Whether live models answer the calls.
    pub fn is_live(&self) -> bool {
        matches!(self.model(), RequestedModel::Live(_))
    }

    /// The model that the operator chose instead of those of the scenario and the environment.
    pub fn chosen_model(&self) -> Option<Arc<str>> {
        let text = self.get(&FieldId::ModelName)?.text();
        let text = text.trim();
        (!text.is_empty()).then(|| text.into())
    }

    /// Flags that start in another position than the scenario says.
    pub fn flags(&self) -> Vec<(FlagName, bool)> {
        let flag = |field: &Field| match (&field.id, &field.value) {
            (FieldId::Flag(name), FieldValue::Switch { on, first }) if on != first => {
                Some((name.clone(), *on))
            }
            _ => None,
        };
        self.list.iter().filter_map(flag).collect()
    }

    /// The overrides of the file, each with its field and the text that `--set` takes.
    pub(crate) fn overrides(&self) -> Vec<(FieldId, Override, String)> {
        self.list.iter().filter(|field| field.changed()).filter_map(override_of).collect()
    }

    /// Stops editing; the text keeps the focus.
    pub fn leave_text(&mut self) {
        self.typing = false;
    }

    /// Focuses a field; a text is then being edited.
    pub fn focus(&mut self, id: FieldId) {
        if self.get(&id).is_some() {
            self.focus = id;
            self.typing = true;
        }
    }

    /// Focuses the field at this index, shown or not.
    pub(super) fn focus_at(&mut self, at: usize) {
        if let Some(field) = self.list.get(at) {
            self.focus = field.id.clone();
        }
    }

    /// Focuses the other button.
    pub(super) fn switch_button(&mut self) {
        self.focus(if self.focus == FieldId::Start { FieldId::Cancel } else { FieldId::Start });
    }

    /// Focuses the next or previous field that is shown. Cancel is beside Start, and not below it.
    pub(super) fn move_focus(&mut self, forward: bool) {
        let len = self.list.len();
        let mut at = self.list.iter().position(|field| field.id == self.focus).unwrap_or(0);
        for _ in 0..len {
            at = if forward { (at + 1) % len } else { (at + len - 1) % len };
            let stops = |field: &Field| field.id != FieldId::Cancel && self.is_shown(&field.id);
            if self.list.get(at).is_some_and(stops) {
                return self.focus_at(at);
            }
        }
    }
}

/// The largest text that the form accepts, in bytes.
pub const MAX_TEXT_BYTES: usize = 256 * 1024;

/// The choices of the model field, in order: `FormFields::model` depends on it.
pub const MODEL_CHOICES: [&str; 3] = ["scripted", "scripted, no delays", "live"];

/// Which field of the form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FieldId {
    /// The boundary that a fork continues from.
    Boundary,
    Goal,
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
    pub id: FieldId,
    /// The label to its left.
    pub label: String,
    /// A note on the allowed values; empty where they are obvious.
    pub hint: String,
    /// The value is a string even if it looks like a number or another TOML value.
    pub literal: bool,
    pub value: FieldValue,
}

/// The value of a field.
#[derive(Debug)]
pub enum FieldValue {
    Text(Box<TextField>),
    /// One of several choices.
    Choice {
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

    /// Replaces the text as if it were typed.
    pub(crate) fn replace(&mut self, text: &str) -> Result<(), String> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(format!("it has {} bytes, and may have {MAX_TEXT_BYTES}", text.len()));
        }
        if !self.lines && text.contains('\n') {
            return Err("it takes one line".to_owned());
        }
        let mut empty = Self::new("", self.lines);
        empty.on_paste(text);
        self.area = empty.area;
        Ok(())
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

/// The place of a choice that is named, by its text, the start of its text or its number from 1.
pub(crate) fn choice_of(choices: &[String], text: &str) -> Result<usize, String> {
    let same = |choice: &String| choice.eq_ignore_ascii_case(text);
    let number = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let begins = || {
        let mut fits = choices.iter().enumerate().filter(|(_, choice)| choice.starts_with(text));
        fits.next().filter(|_| !text.is_empty() && fits.next().is_none()).map(|(at, _)| at)
    };
    let found = choices.iter().position(same).or_else(begins);
    let found = found.or(number.filter(|at| *at < choices.len()));
    found.ok_or_else(|| format!("it takes {}", choices.join(", ")))
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

    /// Takes a value as a typed word gives it.
    pub(super) fn set(&mut self, text: &str) -> Result<(), String> {
        match &mut self.value {
            FieldValue::Text(field) => field.replace(text)?,
            FieldValue::Choice { choices, at, .. } => *at = choice_of(choices, text)?,
            FieldValue::Switch { on, .. } => {
                *on = match text {
                    "on" | "true" | "yes" => true,
                    "off" | "false" | "no" => false,
                    _ => return Err("it takes on or off".to_owned()),
                }
            }
            FieldValue::Model { text: model, .. } => text.clone_into(model),
            FieldValue::Button => return Err("it has no value".to_owned()),
        }
        Ok(())
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

/// Every field with the scenario's value; `model` is the live model that replaces the scenario's.
pub(crate) fn fields_of(scenario: &Scenario, model: &str) -> Vec<Field> {
    let mut fields = vec![Field {
        id: FieldId::Goal,
        label: "Goal".to_owned(),
        hint: String::new(),
        literal: true,
        value: FieldValue::Text(Box::new(TextField::new(&scenario.goal, true))),
    }];
    fields.extend(scenario.inputs.iter().map(input_field));
    // The model can cost money: its field is high enough to be seen on a small screen.
    let choices = MODEL_CHOICES.iter().map(|&model| model.to_owned()).collect();
    fields.push(Field {
        id: FieldId::Model,
        label: "Replies".to_owned(),
        hint: String::new(),
        literal: true,
        value: FieldValue::Choice { choices, at: 0, first: 0 },
    });
    fields.push(Field {
        id: FieldId::ModelName,
        label: "Model".to_owned(),
        hint: String::new(),
        literal: true,
        value: FieldValue::Model { text: model.to_owned(), first: model.to_owned() },
    });
    fields.push(number_field(FieldId::Seed, "Seed", scenario.seed));
    fields.extend(scenario.flags.iter().map(|flag| Field {
        id: FieldId::Flag(flag.name.clone()),
        label: flag.name.to_string(),
        hint: flag.label.clone(),
        literal: false,
        value: FieldValue::Switch { on: flag.default, first: flag.default },
    }));
    let limits = scenario.pattern.get().limits().into_iter();
    fields.extend(
        limits.map(|limit| number_field(FieldId::Limit(limit.path), limit.label, limit.value)),
    );
    for (id, label) in [(FieldId::Start, "Start"), (FieldId::Cancel, "Cancel")] {
        let (label, hint) = (label.to_owned(), String::new());
        fields.push(Field { id, label, hint, literal: false, value: FieldValue::Button });
    }
    fields
}

/// The prompts of a scenario as fields.
pub(super) fn prompt_fields(prompts: Vec<PromptText>) -> impl Iterator<Item = Field> {
    prompts.into_iter().map(|PromptText { path, label, text }| Field {
        id: FieldId::Prompt(path),
        label,
        hint: String::new(),
        literal: true,
        value: FieldValue::Text(Box::new(TextField::new(text.trim(), true))),
    })
}

fn number_field(id: FieldId, label: &str, value: u64) -> Field {
    Field {
        id,
        label: label.to_owned(),
        hint: String::new(),
        literal: false,
        value: FieldValue::Text(Box::new(TextField::new(&value.to_string(), false))),
    }
}

fn input_field(input: &ScenarioInput) -> Field {
    let given = shown_value(&input.value);
    let text = |lines| FieldValue::Text(Box::new(TextField::new(&given, lines)));
    let (hint, literal, value) = match &input.kind {
        // One line unless the scenario's own text has more; Enter then moves to the next field.
        InputKind::Text => ("", true, text(given.contains('\n'))),
        InputKind::Date => ("a date, YYYY-MM-DD", false, text(false)),
        InputKind::Integer => ("a whole number", false, text(false)),
        InputKind::Number => ("a number", false, text(false)),
        InputKind::Bool => {
            let on = input.value == serde_json::Value::Bool(true);
            ("", false, FieldValue::Switch { on, first: on })
        }
        InputKind::Choice(choices) => {
            let at = choices.iter().position(|choice| *choice == given).unwrap_or(0);
            ("", true, FieldValue::Choice { choices: choices.clone(), at, first: at })
        }
    };
    let (label, hint) = (input.label.clone(), hint.to_owned());
    Field { id: FieldId::Input(input.name.clone()), label, hint, literal, value }
}

/// The path in a scenario that a field of the form sets.
pub(crate) fn path_of(id: &FieldId) -> Option<String> {
    match id {
        FieldId::Goal => Some("goal".to_owned()),
        FieldId::Input(name) => Some(format!("inputs.{name}")),
        FieldId::Limit(path) => Some((*path).to_owned()),
        FieldId::Prompt(path) => Some(path.clone()),
        FieldId::Seed => Some("seed".to_owned()),
        FieldId::Boundary
        | FieldId::Flag(_)
        | FieldId::Model
        | FieldId::ModelName
        | FieldId::Start
        | FieldId::Cancel => None,
    }
}

/// A changed field as an override, with the text of its `--set` option.
fn override_of(field: &Field) -> Option<(FieldId, Override, String)> {
    let path = path_of(&field.id)?;
    let text = field.text();
    let (laid, value) = if field.literal {
        (Override::literal(&path, &text), text_value(&text))
    } else {
        (Override::new(&path, &text), text.clone())
    };
    Some((field.id.clone(), laid.ok()?, format!("{path}={value}")))
}

/// The value of `--set` that results in this text: the text itself if it is not valid TOML, else a
/// TOML string.
fn text_value(text: &str) -> String {
    if toml::de::DeValue::parse(text).is_err() {
        return text.to_owned();
    }
    toml::Value::String(text.to_owned()).to_string()
}

/// A value as text, strings without quotes.
pub(crate) fn shown_value(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_text_that_resembles_toml() {
        assert_eq!(text_value("EU"), "EU");
        assert_eq!(text_value(" 12 "), " 12 ");
        assert_eq!(text_value("Decide whether it may start."), "Decide whether it may start.");
        for text in ["1", "true", "1.5", "2026-03-02", "\"x\"", "[1]", "{}", "inf"] {
            let value = text_value(text);
            let read = toml::de::DeValue::parse(&value)
                .unwrap_or_else(|error| panic!("{text:?} as {value:?}: {error}"));
            assert_eq!(read.get_ref().as_str(), Some(text), "{value}");
        }
    }
}
