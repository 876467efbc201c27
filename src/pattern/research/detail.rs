//! What exactly is wrong with a plan, with notes or with an answer that policy refused. Pure.

use serde_json::Value;

use super::policy::{QUOTE_CHARS, is_long_enough};
use crate::event::ResearchStep;
use crate::event::StopReason;
use crate::event::stop::{AnswerFault, NotesFault, PlanFault, StepFault};
use crate::pattern::reply::detail::{listed, not, other_name, said};

/// The sentence for a plan that is refused for this reason.
pub fn of_plan(reason: &StopReason, raw: &Value, max_steps: u32) -> String {
    let steps = raw.get("steps");
    let list = steps.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    match reason {
        StopReason::InvalidPlan(PlanFault::Steps) => match steps {
            None if raw.is_object() => "keys missing: steps".to_owned(),
            None => format!("the reply is {}, not an object", said(raw)),
            Some(steps) => not("steps", steps, "a list of steps"),
        },
        StopReason::InvalidPlan(PlanFault::TooManySteps) => {
            format!("{} steps, budget.max_steps is {max_steps}", list.len())
        }
        StopReason::InvalidPlan(PlanFault::StepSequence) => {
            let wanted = ResearchStep::ALL.map(ResearchStep::action);
            let came: Vec<&str> =
                list.iter().filter_map(|step| step.get("action")?.as_str()).collect();
            let other =
                wanted.iter().zip(&came).enumerate().find(|(_, (wanted, came))| wanted != came);
            match other {
                Some((nth, (wanted, came))) => {
                    let place = format!("steps[{nth}].action");
                    other_name(&place, came, &format!("wanted is {wanted}"), &[wanted])
                }
                None => {
                    format!("{} steps, wanted are {}: {}", came.len(), wanted.len(), listed(wanted))
                }
            }
        }
        StopReason::InvalidStep(fault) => of_step(*fault, list),
        _ => reason.to_string(),
    }
}

fn of_step(fault: StepFault, steps: &[Value]) -> String {
    let (key, wanted): (&str, &str) = match fault {
        StepFault::NotObject => {
            let bad = steps.iter().enumerate().find(|(_, step)| !step.is_object());
            let (nth, step) = bad.unwrap_or((0, &Value::Null));
            return not(&format!("steps[{nth}]"), step, "an object");
        }
        StepFault::Id => ("id", "a text"),
        StepFault::Action => ("action", "an action"),
        StepFault::Args => ("args", "an object"),
    };
    let good = |step: &Value| match step.get(key) {
        Some(Value::Object(_)) => key == "args",
        Some(Value::String(text)) => key != "args" && !text.trim().is_empty(),
        _ => false,
    };
    let bad = steps.iter().enumerate().find(|(_, step)| !good(step));
    let (nth, step) = bad.unwrap_or((0, &Value::Null));
    match step.get(key) {
        None => format!("steps[{nth}]: keys missing: {key}"),
        Some(value) => not(&format!("steps[{nth}].{key}"), value, wanted),
    }
}

/// The sentence for a reply that is no list of notes.
pub fn of_no_notes(raw: &Value) -> String {
    match raw.get("notes") {
        None if raw.is_object() => "keys missing: notes".to_owned(),
        None => format!("the reply is {}, not an object", said(raw)),
        Some(notes) => not("notes", notes, "a list of notes"),
    }
}

/// The sentence for the note at this place, which breaks the contract.
pub fn of_note(fault: NotesFault, nth: usize, note: &Value) -> String {
    let place = format!("notes[{nth}]");
    let field = |key: &str| match note.get(key) {
        None => format!("{place}: keys missing: {key}"),
        Some(value) => not(&format!("{place}.{key}"), value, "a text"),
    };
    match fault {
        NotesFault::Claim => field("claim"),
        NotesFault::Quote => match note.get("quote").and_then(Value::as_str).map(str::trim) {
            Some(quote) if !quote.is_empty() && !is_long_enough(quote) => format!(
                "{place}.quote has {} characters, at least {QUOTE_CHARS} are needed",
                quote.chars().count()
            ),
            _ => field("quote"),
        },
        NotesFault::Item => not(&place, note, "an object"),
        NotesFault::Id => field("id"),
        NotesFault::Url => field("url"),
        NotesFault::Empty => "there are no notes".to_owned(),
        NotesFault::TooMany => "there are too many notes".to_owned(),
    }
}

/// The sentence for an answer with this fault.
pub fn of_answer(fault: AnswerFault, raw: &Value, notes: &[&str], max_chars: u32) -> String {
    match fault {
        AnswerFault::Empty => match (raw.get("sentences"), raw.get("answer")) {
            (None | Some(Value::Null), None) if raw.is_object() => {
                "keys missing: sentences".to_owned()
            }
            (None | Some(Value::Null), None) => {
                format!("the reply is {}, not an object", said(raw))
            }
            (Some(Value::Array(_)), _) => "the sentences have no text".to_owned(),
            (Some(sentences), _) if !sentences.is_null() => {
                not("sentences", sentences, "a list of sentences")
            }
            (_, answer) => not("answer", answer.unwrap_or(&Value::Null), "a text"),
        },
        AnswerFault::TooLong => {
            let chars = |text: &Value| text.as_str().map_or(0, |text| text.trim().chars().count());
            let of_rows = |rows: &Vec<Value>| {
                let texts = rows.iter().filter_map(|row| row.get("text")).map(chars);
                texts.sum::<usize>() + rows.len().saturating_sub(1)
            };
            let rows = raw.get("sentences").and_then(Value::as_array).map(of_rows);
            let chars = rows.or_else(|| raw.get("answer").map(chars)).unwrap_or(0);
            format!("the answer has {chars} characters, budget.max_answer_chars is {max_chars}")
        }
        AnswerFault::Citations => {
            "the answer cites no note, or its citations are no list of ids".to_owned()
        }
        AnswerFault::CitationUnknown => {
            let known = |id: &str| notes.contains(&id);
            let listed_ids = |value: &Value| -> Option<String> {
                let ids = value.get("citations")?.as_array()?.iter().filter_map(Value::as_str);
                ids.map(str::trim).find(|id| !id.is_empty() && !known(id)).map(str::to_owned)
            };
            let rows = raw.get("sentences").and_then(Value::as_array).into_iter().flatten();
            let unknown = listed_ids(raw).or_else(|| rows.filter_map(listed_ids).next());
            let unknown =
                unknown.map_or_else(|| "a mark in the text".to_owned(), |id| said(&id.into()));
            format!("{unknown} is no note: notes are {}", listed(notes.iter().copied()))
        }
    }
}
