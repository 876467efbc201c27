//! From a scenario to the fields of the form, and from a changed field back to an override of the
//! scenario.

use super::field::{Field, FieldId, FieldValue, MODEL_CHOICES, TextField};
use crate::app::form::shown_value::shown_value;
use crate::scenario::spec::model::{InputKind, ScenarioInput};
use crate::scenario::{Override, PromptText, Scenario};

/// Every field with the scenario's value; `model` is the live model that replaces the scenario's.
pub(super) fn fields_of(scenario: &Scenario, model: &str) -> Vec<Field> {
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
pub(super) fn path_of(id: &FieldId) -> Option<String> {
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
pub(super) fn override_of(field: &Field) -> Option<(FieldId, Override, String)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_toml_is_written_as_a_string() {
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
