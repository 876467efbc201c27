//! The fields of a card: the arguments of a call, a reason, a reply, or the contribution of a seat.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::base::json_schema;
use crate::base::json_schema::SchemaChoice;
use crate::base::visible::is_hostile;
use crate::log::event::{Answer, Subject};
use crate::log::facts::collaboration::Stance;
use crate::screen::form::fields::{TextField, choice_of, shown_value};
use crate::screen::key::{KeyCode, KeyPress};

/// Rows of a text of several lines.
const TEXT_ROWS: u16 = 3;

/// The fields of an answer, and the one with the focus.
#[derive(Debug)]
pub struct AnswerFields {
    pub list: Vec<AnswerField>,
    pub focus: usize,
    makes: AnswerKind,
}

/// What the fields make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// Other arguments of a call, which are shown before they are approved.
    Args,
    Denial,
    Choice(Arc<str>),
    /// One of more choices than there are digits.
    LongChoice,
    Text,
    /// The reply of an agent, or a handoff.
    Turn,
    /// The contribution of a role.
    Contribution(String),
}

/// One field.
#[derive(Debug)]
pub struct AnswerField {
    pub name: String,
    /// What it is called on the screen.
    pub label: String,
    /// What it is for, in the words of its author; may be empty.
    pub about: String,
    /// What it takes, in a few words.
    pub hint: String,
    pub value: AnswerValue,
    /// The value at first; `None`: it was missing.
    first: Option<Value>,
    /// The types that a JSON schema allows; empty: any.
    types: Vec<String>,
    /// The values of its choices; empty: their texts. `None`: the field is left out.
    values: Vec<Option<Value>>,
    /// Whether it is left out when it is empty.
    is_left_out_empty: bool,
}

/// The value of a field.
#[derive(Debug)]
pub enum AnswerValue {
    Text(Box<TextField>),
    /// One of several choices.
    Choice {
        choices: Vec<String>,
        /// The chosen one.
        at: usize,
        /// The one that was chosen at first.
        first: usize,
    },
    /// Any number of several choices.
    Several {
        choices: Vec<String>,
        chosen: Vec<bool>,
        /// Which were chosen at first.
        first: Vec<bool>,
        /// The one that the next key is about.
        at: usize,
    },
}

impl AnswerField {
    fn new(name: &str, hint: &str, value: AnswerValue) -> Self {
        Self {
            name: name.to_owned(),
            label: name.to_owned(),
            about: String::new(),
            hint: hint.to_owned(),
            value,
            first: None,
            types: Vec::new(),
            values: Vec::new(),
            is_left_out_empty: false,
        }
    }

    fn line(name: &str, hint: &str) -> Self {
        Self::new(name, hint, AnswerValue::Text(Box::new(TextField::new("", false))))
    }

    fn lines(name: &str, hint: &str) -> Self {
        Self::new(name, hint, AnswerValue::Text(Box::new(TextField::new("", true))))
    }

    fn choice(name: &str, choices: Vec<String>) -> Self {
        Self::new(name, "", AnswerValue::Choice { choices, at: 0, first: 0 })
    }

    /// The field of an argument, by its property in the schema of the tool, or of a form (`of_form`).
    fn argument(
        name: &str,
        property: &Value,
        value: Option<&Value>,
        required: bool,
        of_form: bool,
    ) -> Self {
        let types = property.as_object().map(json_schema::types_of).unwrap_or_default();
        let text = value.map(shown_value).unwrap_or_default();
        let items = property.get("items").map(json_schema::choices).unwrap_or_default();
        let (field, values) = match named_choices(property, &types) {
            (choices, values) if !choices.is_empty() => one_of(choices, values, value, &text),
            _ if !items.is_empty() => several_of(items, value),
            _ => {
                let field = TextField::new(&text, text.contains('\n'));
                (AnswerValue::Text(Box::new(field)), Vec::new())
            }
        };
        let mut hint = hint_of(property, &types);
        if required && value.is_none() {
            hint.push_str(", required");
        }
        let words = |key: &str| property.get(key).and_then(Value::as_str).unwrap_or_default();
        let label = Some(words("title")).filter(|title| of_form && !title.is_empty());
        Self {
            label: label.unwrap_or(name).to_owned(),
            about: words("description").to_owned(),
            first: value.cloned(),
            types: types.into_iter().map(str::to_owned).collect(),
            values,
            is_left_out_empty: of_form && !required,
            ..Self::new(name, hint.trim_start_matches(", "), field)
        }
    }

    /// The text of the field.
    pub fn text(&self) -> String {
        match &self.value {
            AnswerValue::Text(text) => text.text(),
            AnswerValue::Choice { choices, at, .. } => {
                choices.get(*at).cloned().unwrap_or_default()
            }
            AnswerValue::Several { choices, chosen, .. } => {
                let chosen = choices.iter().zip(chosen).filter(|(_, chosen)| **chosen);
                chosen.map(|(choice, _)| choice.as_str()).collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// Gives it a value as it is typed in a line.
    pub(crate) fn set(&mut self, text: &str) -> Result<(), String> {
        match &mut self.value {
            AnswerValue::Text(field) => field.replace(text),
            AnswerValue::Choice { choices, at, .. } => {
                *at = choice_of(choices, text)?;
                Ok(())
            }
            AnswerValue::Several { choices, chosen, .. } => {
                let mut next = vec![false; choices.len()];
                for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
                    if let Some(is) = next.get_mut(choice_of(choices, word)?) {
                        *is = true;
                    }
                }
                *chosen = next;
                Ok(())
            }
        }
    }

    /// Whether Enter is a new line in it.
    pub fn has_lines(&self) -> bool {
        matches!(&self.value, AnswerValue::Text(text) if text.lines)
    }

    /// Its rows on the screen.
    pub fn rows(&self) -> u16 {
        if self.has_lines() { TEXT_ROWS } else { 1 }
    }

    /// The value as an argument; `None`: it is left out.
    fn to_value(&self) -> Option<Value> {
        match &self.value {
            AnswerValue::Choice { at, .. } if !self.values.is_empty() => {
                return self.values.get(*at).cloned().flatten();
            }
            AnswerValue::Several { chosen, first, .. } if chosen == first => {
                return self.first.clone();
            }
            AnswerValue::Several { chosen, .. } => {
                let chosen = self.values.iter().zip(chosen).filter(|(_, chosen)| **chosen);
                return Some(chosen.filter_map(|(value, _)| value.clone()).collect());
            }
            _ => {}
        }
        let text = self.text();
        if text.is_empty() && self.is_left_out_empty {
            return None;
        }
        let first_text = self.first.as_ref().map(shown_value).unwrap_or_default();
        if text == first_text {
            return self.first.clone();
        }
        let may_be_text = self.types.is_empty() || self.types.iter().any(|it| it == "string");
        let was_text = matches!(self.first, Some(Value::String(_)) | None);
        if may_be_text && was_text {
            return Some(Value::String(text));
        }
        match serde_json::from_str(text.trim()) {
            Ok(value) => Some(value),
            Err(_) if text.trim().is_empty() => None,
            // The check of the arguments says which type it has to be.
            Err(_) => Some(Value::String(text)),
        }
    }

    /// Takes a key; returns whether it changed the value or the cursor.
    fn on_key(&mut self, key: KeyPress) -> bool {
        match &mut self.value {
            AnswerValue::Text(text) => {
                let types = key.typed_char().is_some() || key.code == KeyCode::Enter;
                !(types && text.free_bytes() == 0) && text.on_key(key)
            }
            AnswerValue::Choice { choices, at, .. } => {
                let len = choices.len().max(1);
                let by = match key.code {
                    KeyCode::Right | KeyCode::Char(' ') => 1,
                    KeyCode::Left => len - 1,
                    _ => return false,
                };
                *at = (*at + by) % len;
                true
            }
            AnswerValue::Several { choices, chosen, at, .. } => {
                let len = choices.len().max(1);
                match key.code {
                    KeyCode::Right => *at = (*at + 1) % len,
                    KeyCode::Left => *at = (*at + len - 1) % len,
                    KeyCode::Char(' ') => {
                        if let Some(is) = chosen.get_mut(*at) {
                            *is = !*is;
                        }
                    }
                    _ => return false,
                }
                true
            }
        }
    }
}

/// The choices of a field, as they are shown, and their values.
fn named_choices(property: &Value, types: &[&str]) -> (Vec<String>, Vec<Option<Value>>) {
    let mut choices = json_schema::choices(property);
    if choices.is_empty() && *types == ["boolean"] {
        let truths = [true, false].map(|it| SchemaChoice { value: it.into(), title: None });
        choices = truths.into();
    }
    choices.into_iter().map(named_choice).unzip()
}

fn named_choice(choice: SchemaChoice) -> (String, Option<Value>) {
    let name = choice.title.unwrap_or_else(|| shown_value(&choice.value));
    (name, Some(choice.value))
}

/// The field for one of these choices. A value that is none of them stays possible, and so does none.
fn one_of(
    mut choices: Vec<String>,
    mut values: Vec<Option<Value>>,
    value: Option<&Value>,
    text: &str,
) -> (AnswerValue, Vec<Option<Value>>) {
    let known = value.and_then(|value| values.iter().position(|it| it.as_ref() == Some(value)));
    let at = known.unwrap_or_else(|| {
        choices.insert(0, text.to_owned());
        values.insert(0, value.cloned());
        0
    });
    (AnswerValue::Choice { choices, at, first: at }, values)
}

/// The field for any number of these choices.
fn several_of(
    items: Vec<SchemaChoice>,
    value: Option<&Value>,
) -> (AnswerValue, Vec<Option<Value>>) {
    let given = value.and_then(Value::as_array);
    let is_given = |item: &SchemaChoice| given.is_some_and(|given| given.contains(&item.value));
    let chosen: Vec<bool> = items.iter().map(is_given).collect();
    let (choices, values) = items.into_iter().map(named_choice).unzip();
    (AnswerValue::Several { choices, first: chosen.clone(), chosen, at: 0 }, values)
}

/// What a field takes: its format or its types, and its bounds.
fn hint_of(property: &Value, types: &[&str]) -> String {
    let format = property.get("format").and_then(Value::as_str).unwrap_or_default();
    let kind = match format {
        "email" => "email address".to_owned(),
        "uri" => "address (URL)".to_owned(),
        "date" => "date (YYYY-MM-DD)".to_owned(),
        "date-time" => "date and time".to_owned(),
        _ => types.join(" or "),
    };
    let bound = |key: &str| property.get(key).and_then(Value::as_f64);
    let bounds = [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " of them"),
    ];
    let bounds = bounds.into_iter().find_map(|(least, most, unit)| {
        Some(match (bound(least), bound(most)) {
            (Some(least), Some(most)) => format!("{least} to {most}{unit}"),
            (Some(least), None) => format!("at least {least}{unit}"),
            (None, Some(most)) => format!("at most {most}{unit}"),
            (None, None) => return None,
        })
    });
    match bounds {
        Some(bounds) => format!("{kind}, {bounds}"),
        None => kind,
    }
}

impl AnswerFields {
    fn new(makes: AnswerKind, list: Vec<AnswerField>) -> Self {
        Self { list, focus: 0, makes }
    }

    /// A line for the reason of a denial.
    pub fn denial() -> Self {
        Self::new(AnswerKind::Denial, vec![AnswerField::line("reason", "may be empty")])
    }

    /// A line for the reason of a choice.
    pub fn choice(choice: &Arc<str>) -> Self {
        let makes = AnswerKind::Choice(Arc::clone(choice));
        Self::new(makes, vec![AnswerField::line("reason", "may be empty")])
    }

    /// The fields of the answer to a question of this kind; `None`: it is answered by keys alone.
    pub fn reply(subject: &Subject) -> Option<Self> {
        Some(match subject {
            Subject::ToolCall { args, parameters, .. } => {
                let list = argument_fields(parameters, args, false);
                return (!list.is_empty()).then(|| Self::new(AnswerKind::Args, list));
            }
            Subject::Input { parameters, .. } => {
                let defaults = json_schema::defaults(parameters);
                let list = argument_fields(parameters, &defaults, true);
                return (!list.is_empty()).then(|| Self::new(AnswerKind::Args, list));
            }
            Subject::Agent { choices, .. } if choices.is_empty() => {
                Self::new(AnswerKind::Text, vec![AnswerField::lines("answer", "")])
            }
            Subject::Agent { choices, .. } | Subject::Permission { choices, .. }
                if choices.len() > 9 =>
            {
                let choices = choices.iter().map(|choice| choice.to_string()).collect();
                Self::new(AnswerKind::LongChoice, vec![AnswerField::choice("answer", choices)])
            }
            Subject::Turn { hand_over_to, .. } => {
                let mut list = vec![AnswerField::lines("reply", "")];
                if !hand_over_to.is_empty() {
                    let nobody = std::iter::once(NOBODY.to_owned());
                    let agents = hand_over_to.iter().map(|agent| agent.to_string());
                    list.push(AnswerField::choice("hand over", nobody.chain(agents).collect()));
                }
                Self::new(AnswerKind::Turn, list)
            }
            Subject::Seat { role, .. } => {
                let stances = Stance::ALL.iter().map(|stance| stance.word().to_owned()).collect();
                let list = vec![
                    AnswerField::choice("stance", stances),
                    AnswerField::line("confidence", "0 to 1"),
                    AnswerField::lines("summary", ""),
                    AnswerField::lines("actions", "one a line"),
                ];
                Self::new(AnswerKind::Contribution(role.to_string()), list)
            }
            _ => return None,
        })
    }

    pub fn kind(&self) -> &AnswerKind {
        &self.makes
    }

    /// The field with the focus.
    pub fn focused(&self) -> Option<&AnswerField> {
        self.list.get(self.focus)
    }

    /// Focuses the field that an error is about; returns the error with the name that the screen has for it.
    pub(super) fn focus_on(&mut self, why: &str) -> String {
        let is_about = |field: &AnswerField| why.contains(&format!("`{}`", field.name));
        let Some(at) = self.list.iter().position(is_about) else { return why.to_owned() };
        self.focus = at;
        let field = self.list.get(at).map(|field| (&field.name, &field.label));
        let Some((name, label)) = field else { return why.to_owned() };
        why.replacen(&format!("`{name}`"), &format!("`{label}`"), 1)
    }

    /// Focuses the next or previous field.
    pub fn move_focus(&mut self, forward: bool) {
        let len = self.list.len().max(1);
        self.focus = (self.focus + if forward { 1 } else { len - 1 }) % len;
    }

    /// Takes a key in the focused field; in fields of one line Up and Down change the field.
    pub fn on_key(&mut self, key: KeyPress) -> bool {
        let has_lines = self.focused().is_some_and(AnswerField::has_lines);
        match key.code {
            KeyCode::Up | KeyCode::Down if !has_lines => {
                self.move_focus(key.code == KeyCode::Down);
                true
            }
            _ => self.list.get_mut(self.focus).is_some_and(|field| field.on_key(key)),
        }
    }

    /// Inserts a pasted text into the focused field; returns what could not be taken.
    pub fn on_paste(&mut self, text: &str) -> Option<String> {
        let field = self.list.get_mut(self.focus)?;
        let AnswerValue::Text(field) = &mut field.value else { return None };
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let (text, left_out) = field.accepted_paste(&text);
        if text.len() > field.free_bytes() {
            return Some("The paste is too long: nothing was inserted.".to_owned());
        }
        field.on_paste(text);
        (left_out > 0).then(|| format!("{left_out} more lines of the paste were left out."))
    }

    /// Whether anything was typed or changed.
    pub fn is_changed(&self) -> bool {
        self.list.iter().any(|field| match &field.value {
            AnswerValue::Text(text) => text.changed(),
            AnswerValue::Choice { at, first, .. } => at != first,
            AnswerValue::Several { chosen, first, .. } => chosen != first,
        })
    }

    /// What was typed or changed, with the names of the fields where there are several; `None`: nothing.
    pub fn typed(&self) -> Option<String> {
        self.is_changed().then(|| match self.list.as_slice() {
            [field] => field.text(),
            fields => {
                let lines = fields.iter().filter(|field| !field.text().is_empty());
                let lines = lines.map(|field| format!("{}: {}", field.name, field.text()));
                lines.collect::<Vec<_>>().join("\n")
            }
        })
    }

    fn text_of(&self, name: &str) -> String {
        let field = self.list.iter().find(|field| field.name == name);
        field.map(AnswerField::text).unwrap_or_default()
    }

    /// The answer that the fields make.
    ///
    /// # Errors
    /// What is wrong in them.
    pub fn answer(&self) -> Result<Answer, String> {
        Ok(match &self.makes {
            AnswerKind::Args => Answer::Approve { args: Some(self.args().into()) },
            AnswerKind::Denial => Answer::Deny { text: self.text_of("reason").trim().into() },
            AnswerKind::Choice(choice) => {
                let (choice, text) = (choice.clone(), self.text_of("reason").trim().into());
                Answer::Choose { choice, text }
            }
            AnswerKind::LongChoice => {
                let choice = self.text_of("answer").into();
                Answer::Choose { choice, text: "".into() }
            }
            AnswerKind::Text => Answer::Text { text: written(&self.text_of("answer"), "answer")? },
            AnswerKind::Turn => {
                let (to, text) = (self.text_of("hand over"), self.text_of("reply"));
                match to.as_str() {
                    "" | NOBODY => Answer::Text { text: written(&text, "reply")? },
                    to => Answer::HandOver { to: to.into(), text: text.trim().into() },
                }
            }
            AnswerKind::Contribution(role) => {
                Answer::Contribute { contribution: self.contribution(role)?.into() }
            }
        })
    }

    /// The arguments that the fields say.
    pub fn args(&self) -> Value {
        let values = self.list.iter();
        let values = values.filter_map(|field| Some((field.name.clone(), field.to_value()?)));
        Value::Object(values.collect::<Map<String, Value>>())
    }

    fn contribution(&self, role: &str) -> Result<Value, String> {
        let confidence = self.text_of("confidence").trim().replace(',', ".");
        let confidence: Option<f64> = confidence.parse().ok();
        let Some(confidence) = confidence.filter(|it| (0.0..=1.0).contains(it)) else {
            return Err("the confidence is a number from 0 to 1".to_owned());
        };
        let summary = written(&self.text_of("summary"), "summary")?;
        let actions = self.text_of("actions");
        let actions: Vec<&str> =
            actions.lines().map(str::trim).filter(|action| !action.is_empty()).collect();
        if actions.is_empty() {
            return Err("a contribution needs at least one action".to_owned());
        }
        Ok(json!({
            "agent": role,
            "stance": self.text_of("stance"),
            "confidence": confidence,
            "summary": summary,
            "actions": actions,
        }))
    }
}

/// Arguments as JSON for the editor. Characters that could hide something there are escaped.
pub(super) fn json_text(args: &Value) -> String {
    let text = serde_json::to_string_pretty(args).unwrap_or_default();
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match is_hostile(c) && c != '\n' {
            true => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            false => out.push(c),
        }
    }
    out
}

/// The choice to answer without a handoff.
const NOBODY: &str = "nobody";

/// A text that must not be empty.
fn written(text: &str, name: &str) -> Result<Arc<str>, String> {
    match text.trim() {
        "" => Err(format!("the {name} is empty")),
        text => Ok(text.into()),
    }
}

/// A field for each argument: those of the schema, then those that it does not know. `of_form`: the schema is
/// that of a form.
pub(super) fn argument_fields(schema: &Value, args: &Value, of_form: bool) -> Vec<AnswerField> {
    let schema = json_schema::of_object(schema).unwrap_or_default();
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let known = properties.into_iter().flatten().map(|(name, property)| {
        let required = required.contains(&name.as_str());
        AnswerField::argument(name, property, args.get(name), required, of_form)
    });
    let is_known = |name: &str| properties.is_some_and(|all| all.contains_key(name));
    let others = args.as_object().into_iter().flatten();
    let others = others
        .filter(|(name, _)| !is_known(name))
        .map(|(name, value)| AnswerField::argument(name, &Value::Null, Some(value), false, false));
    known.chain(others).collect()
}
