//! The fields of a card: the arguments of a call, a reason, a reply, or the contribution of a seat.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::base::visible::is_hostile;
use crate::log::event::kind::{Answer, Subject};
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
    /// A denial with a reason.
    Denial,
    /// A choice with a reason.
    Choice(Arc<str>),
    /// One of more choices than there are digits.
    LongChoice,
    /// A text.
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
    /// What it takes, in a few words.
    pub hint: String,
    pub value: AnswerValue,
    /// The value at first; `None`: it was missing.
    first: Option<Value>,
    /// The types that a JSON schema allows; empty: any.
    types: Vec<String>,
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
}

impl AnswerField {
    fn new(name: &str, hint: &str, value: AnswerValue) -> Self {
        let (name, hint) = (name.to_owned(), hint.to_owned());
        Self { name, hint, value, first: None, types: Vec::new() }
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

    /// The field of an argument, by its property in the schema of the tool.
    fn argument(name: &str, property: &Value, value: Option<&Value>, required: bool) -> Self {
        let types: Vec<String> = match property.get("type") {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(many)) => {
                many.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        let text = value.map(shown_value).unwrap_or_default();
        let allowed = property.get("enum").and_then(Value::as_array);
        let allowed = allowed.filter(|allowed| allowed.iter().all(Value::is_string));
        let mut choices: Vec<String> = match allowed {
            Some(allowed) => allowed.iter().map(shown_value).collect(),
            None if types == ["boolean"] => vec!["true".to_owned(), "false".to_owned()],
            None => Vec::new(),
        };
        // A value that is none of them stays possible, and so does none.
        if !choices.is_empty() && !choices.contains(&text) {
            choices.insert(0, text.clone());
        }
        let at = choices.iter().position(|choice| *choice == text);
        let mut hint = types.join(" or ");
        if required && value.is_none() {
            hint.push_str(", required");
        }
        let value_field = match at {
            Some(at) => AnswerValue::Choice { choices, at, first: at },
            None => AnswerValue::Text(Box::new(TextField::new(&text, text.contains('\n')))),
        };
        Self { first: value.cloned(), types, ..Self::new(name, &hint, value_field) }
    }

    /// The text of the field.
    pub fn text(&self) -> String {
        match &self.value {
            AnswerValue::Text(text) => text.text(),
            AnswerValue::Choice { choices, at, .. } => {
                choices.get(*at).cloned().unwrap_or_default()
            }
        }
    }

    /// Gives it a value as it is typed in a line.
    ///
    /// # Errors
    /// What it takes instead.
    pub(crate) fn set(&mut self, text: &str) -> Result<(), String> {
        match &mut self.value {
            AnswerValue::Text(field) => field.replace(text),
            AnswerValue::Choice { choices, at, .. } => {
                *at = choice_of(choices, text)?;
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
        let text = self.text();
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
        }
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
                let list = argument_fields(parameters, args);
                return (!list.is_empty()).then(|| Self::new(AnswerKind::Args, list));
            }
            Subject::Input { parameters, .. } => {
                let list = argument_fields(parameters, &defaults(parameters));
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

/// The default values that a schema gives its properties.
fn defaults(schema: &Value) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let given =
        properties.filter_map(|(name, it)| Some((name.clone(), it.get("default")?.clone())));
    given.collect::<Map<String, Value>>().into()
}

/// A field for each argument: those of the schema, then those that it does not know.
pub(super) fn argument_fields(schema: &Value, args: &Value) -> Vec<AnswerField> {
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let known = properties.into_iter().flatten().map(|(name, property)| {
        AnswerField::argument(name, property, args.get(name), required.contains(&name.as_str()))
    });
    let is_known = |name: &str| properties.is_some_and(|all| all.contains_key(name));
    let others = args.as_object().into_iter().flatten();
    let others = others
        .filter(|(name, _)| !is_known(name))
        .map(|(name, value)| AnswerField::argument(name, &Value::Null, Some(value), false));
    known.chain(others).collect()
}
