//! The inputs of a scenario: their kinds, and the check of their values.

use serde_json::Value;

use crate::base::day::Day;
use crate::base::name::InputName;
use crate::scenario::file::format::{InputTable, KindWord};
use crate::scenario::file::named::NamedEntry;
use crate::scenario::file::reader::{ReadContext, suggest_name};
use crate::scenario::file::tree::{TomlNode, TomlValue};
use crate::scenario::spec::model::{InputKind, ScenarioInput};

/// Turns a name into a label: `report_date` becomes `Report date`.
pub(crate) fn label(name: &str) -> String {
    let mut label = name.replace('_', " ");
    if let Some(first) = label.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    label
}

pub(crate) fn input(entry: &NamedEntry<InputTable>, cx: &mut ReadContext) -> Option<ScenarioInput> {
    let table = entry.value.as_ref()?;
    cx.at_key(&entry.name, |cx| {
        let choices = table.choices.as_ref().map(|choices| {
            choices.value.0.iter().map(|choice| choice.text.clone()).collect::<Vec<_>>()
        });
        let given = table.value.as_ref()?;
        let kind = kind(table, choices, &given.0, cx)?;
        let value = cx.at_key("value", |cx| input_value(&given.0, &kind, cx))?;
        Some(ScenarioInput {
            name: InputName::from(entry.name.as_str()),
            label: table.label.as_ref().map_or_else(|| label(&entry.name), |l| l.text.clone()),
            value,
            kind,
        })
    })
}

fn kind(
    table: &InputTable,
    choices: Option<Vec<String>>,
    value: &TomlNode,
    cx: &mut ReadContext,
) -> Option<InputKind> {
    let word = match (&table.kind, &choices) {
        (Some(word), Some(_)) if word.value != KindWord::Choice => {
            let help = "remove `choices`, or set kind = \"choice\"";
            cx.at_key("kind", |cx| {
                cx.error(word.at, "`choices` is only for kind = \"choice\"", help)
            });
            return None;
        }
        (Some(word), None) if word.value == KindWord::Choice => {
            let help = "add choices = [\"one\", \"other\"]";
            cx.at_key("kind", |cx| cx.error(word.at, "kind = \"choice\" needs `choices`", help));
            return None;
        }
        (Some(word), _) => word.value,
        (None, Some(_)) => KindWord::Choice,
        (None, None) => match value.value {
            TomlValue::Integer(_) => KindWord::Integer,
            TomlValue::Number(_) => KindWord::Number,
            TomlValue::Boolean(_) => KindWord::Bool,
            TomlValue::Date(_) => KindWord::Date,
            _ => KindWord::Text,
        },
    };
    Some(match word {
        KindWord::Text => InputKind::Text,
        KindWord::Date => InputKind::Date,
        KindWord::Integer => InputKind::Integer,
        KindWord::Number => InputKind::Number,
        KindWord::Bool => InputKind::Bool,
        KindWord::Choice => InputKind::Choice(choices.unwrap_or_default()),
    })
}

fn input_value(node: &TomlNode, kind: &InputKind, cx: &mut ReadContext) -> Option<Value> {
    // A value given with `--set` (`inputs.campaign=2026`) is a string where a string is expected.
    let text = match &node.value {
        TomlValue::Text(text) => Some(text.clone()),
        TomlValue::Date(date) => Some(date.clone()),
        _ if node.at.text > 0 => Some(cx.raw(node.at).to_owned()),
        _ => None,
    };
    match (kind, &node.value) {
        (InputKind::Text, _) if text.is_some() => text.map(Value::String),
        (InputKind::Date, _) => match text {
            Some(text) if text.parse::<Day>().is_ok() => Some(Value::String(text)),
            _ => {
                let help = "write a date as YYYY-MM-DD, such as 2026-03-02";
                cx.error(node.at, format!("{} is not a date", node.describe()), help);
                None
            }
        },
        (InputKind::Choice(choices), _) if text.is_some() => {
            let text = text.unwrap_or_default();
            if choices.contains(&text) {
                return Some(Value::String(text));
            }
            let help = suggest_name(&text, choices.iter().map(String::as_str));
            cx.error(node.at, format!("`{text}` is not one of the choices"), help);
            None
        }
        (InputKind::Integer, TomlValue::Integer(Some(number))) => Some(Value::from(*number)),
        (InputKind::Number, TomlValue::Integer(Some(number))) => Some(Value::from(*number)),
        (InputKind::Number, TomlValue::Number(number)) if number.is_finite() => {
            Some(Value::from(*number))
        }
        (InputKind::Bool, TomlValue::Boolean(truth)) => Some(Value::Bool(*truth)),
        _ => {
            let wanted = match kind {
                InputKind::Text => "a string",
                InputKind::Choice(_) => "one of the choices",
                InputKind::Integer => "a whole number",
                InputKind::Number => "a number",
                InputKind::Bool => "true or false",
                InputKind::Date => "a date",
            };
            cx.wrong_type(node, wanted);
            None
        }
    }
}
