//! The details of a refused plan, of refused notes or of a refused answer: what exactly is wrong.
//! Pure.

use serde_json::Value;

use super::{MIN_QUOTE_CHARS, is_long_enough};
use crate::log::event::StopReason;
use crate::log::facts::plan_fault::PlanFault;
use crate::log::facts::research::{AnswerFault, NotesFault, StepFault};
use crate::pattern::reply::{Detail, listed, show_value, wrong_name, wrong_value};
use crate::scenario::patterns::research::ResearchStep;

/// The sentence that describes why a plan is refused.
pub fn describe_refused_plan(reason: &StopReason, raw: &Value, max_steps: u32) -> Detail {
    let steps = raw.get("steps");
    let list = steps.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    match reason {
        StopReason::InvalidPlan(PlanFault::Steps) => match steps {
            None if raw.is_object() => "keys missing: steps".into(),
            None => format!("the reply is {}, not an object", show_value(raw)).into(),
            Some(steps) => wrong_value("steps", steps, "a list of steps").into(),
        },
        StopReason::InvalidPlan(PlanFault::TooManySteps) => {
            format!("{} steps, budget.max_steps is {max_steps}", list.len()).into()
        }
        StopReason::InvalidPlan(PlanFault::StepSequence) => {
            let wanted = ResearchStep::ALL.map(ResearchStep::action);
            // As the rule compares them.
            let came: Vec<&str> =
                list.iter().filter_map(|step| Some(step.get("action")?.as_str()?.trim())).collect();
            let other =
                wanted.iter().zip(&came).enumerate().find(|(_, (wanted, came))| wanted != came);
            match other {
                Some((nth, (wanted, came))) => {
                    let place = format!("steps[{nth}].action");
                    wrong_name(&place, came, &format!("expected {wanted}"), &[wanted])
                }
                None => {
                    format!("{} steps, expected {}: {}", came.len(), wanted.len(), listed(wanted))
                        .into()
                }
            }
        }
        StopReason::InvalidStep(fault) => describe_step_fault(*fault, list).into(),
        StopReason::InvalidSearchQuery => match raw.pointer("/steps/0/args/query") {
            None => "steps[0].args: keys missing: query".into(),
            Some(query) => wrong_value("steps[0].args.query", query, "text").into(),
        },
        _ => reason.to_string().into(),
    }
}

fn describe_step_fault(fault: StepFault, steps: &[Value]) -> String {
    let (key, wanted): (&str, &str) = match fault {
        StepFault::NotObject => {
            let bad = steps.iter().enumerate().find(|(_, step)| !step.is_object());
            let (nth, step) = bad.unwrap_or((0, &Value::Null));
            return wrong_value(&format!("steps[{nth}]"), step, "an object");
        }
        StepFault::Id => ("id", "text"),
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
        Some(value) => wrong_value(&format!("steps[{nth}].{key}"), value, wanted),
    }
}

/// The sentence for a reply without a list of notes.
pub fn describe_missing_notes(raw: &Value) -> String {
    match raw.get("notes") {
        None if raw.is_object() => "keys missing: notes".to_owned(),
        None => format!("the reply is {}, not an object", show_value(raw)),
        Some(notes) => wrong_value("notes", notes, "a list of notes"),
    }
}

/// The sentence for the note at index `nth`, which breaks the contract.
pub fn describe_note_fault(fault: NotesFault, nth: usize, note: &Value) -> String {
    let place = format!("notes[{nth}]");
    let field = |key: &str| match note.get(key) {
        None => format!("{place}: keys missing: {key}"),
        Some(value) => wrong_value(&format!("{place}.{key}"), value, "text"),
    };
    match fault {
        NotesFault::Claim => field("claim"),
        NotesFault::Quote => match note.get("quote").and_then(Value::as_str).map(str::trim) {
            Some(quote) if !quote.is_empty() && !is_long_enough(quote) => format!(
                "{place}.quote has {} characters, at least {MIN_QUOTE_CHARS} are needed",
                quote.chars().count()
            ),
            _ => field("quote"),
        },
        NotesFault::Item => wrong_value(&place, note, "an object"),
        NotesFault::Id => field("id"),
        NotesFault::Url => field("url"),
        NotesFault::Empty => "there are no notes".to_owned(),
        NotesFault::TooMany => "there are too many notes".to_owned(),
    }
}

/// The sentence for an answer with this fault.
pub fn describe_answer_fault(
    fault: AnswerFault,
    raw: &Value,
    notes: &[&str],
    max_chars: u32,
) -> String {
    match fault {
        AnswerFault::Empty => match (raw.get("sentences"), raw.get("answer")) {
            (None | Some(Value::Null), None) if raw.is_object() => {
                "keys missing: sentences, or answer with citations".to_owned()
            }
            (None | Some(Value::Null), None) => {
                format!("the reply is {}, not an object", show_value(raw))
            }
            (Some(Value::Array(_)), _) => "the sentences have no text".to_owned(),
            (Some(sentences), _) if !sentences.is_null() => {
                wrong_value("sentences", sentences, "a list of sentences")
            }
            (_, answer) => wrong_value("answer", answer.unwrap_or(&Value::Null), "text"),
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
            "the answer cites no note, or its citations are not a list of ids".to_owned()
        }
        AnswerFault::CitationUnknown => {
            let known = |id: &str| notes.contains(&id);
            let listed_ids = |value: &Value| -> Option<String> {
                let ids = value.get("citations")?.as_array()?.iter().filter_map(Value::as_str);
                ids.map(str::trim).find(|id| !id.is_empty() && !known(id)).map(str::to_owned)
            };
            let rows = raw.get("sentences").and_then(Value::as_array).into_iter().flatten();
            let unknown = listed_ids(raw).or_else(|| rows.filter_map(listed_ids).next());
            let unknown = unknown
                .map_or_else(|| "a mark in the text".to_owned(), |id| show_value(&id.into()));
            format!("{unknown} is not a note: notes are {}", listed(notes.iter().copied()))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pattern::research::policy;
    use crate::pattern::research::policy::answer;

    fn steps() -> Vec<Value> {
        let step = |action: &str| json!({ "id": "r", "action": action, "args": {} });
        ResearchStep::ALL.map(|it| step(it.action())).into()
    }

    #[test]
    fn each_plan_fault_names_its_place() {
        let with = |nth: usize, key: &str, value: Value| {
            let mut steps = steps();
            steps[nth][key] = value;
            json!({ "steps": steps })
        };
        let table = [
            (json!("no"), "the reply is \"no\", not an object"),
            (json!({}), "keys missing: steps"),
            (json!({ "steps": {} }), "steps is an object, not a list of steps"),
            (json!({ "steps": ([steps(), steps()].concat()) }), "10 steps, budget.max_steps is 8"),
            (json!({ "steps": ["search"] }), "steps[0] is \"search\", not an object"),
            (with(1, "id", json!("")), "steps[1].id is empty, not text"),
            (with(2, "action", json!(7)), "steps[2].action is 7, not an action"),
            (with(0, "args", json!([])), "steps[0].args is an empty list, not an object"),
            (
                with(0, "action", json!("Search Sources")),
                "steps[0].action is \"Search Sources\", expected search_sources; repair = \
                 [\"case\"] would accept it",
            ),
            (
                {
                    let mut raw = with(0, "action", json!(" search_sources "));
                    raw["steps"][1]["action"] = json!("dedupe");
                    raw
                },
                "steps[1].action is \"dedupe\", expected dedupe_urls",
            ),
            (
                json!({ "steps": &steps()[..2] }),
                "2 steps, expected 5: search_sources, dedupe_urls, read_extract_notes, \
                 verify_notes, synthesize_answer",
            ),
        ];
        for (raw, expected) in table {
            let steps = raw.get("steps").unwrap_or(&Value::Null);
            let bad = policy::validate_plan(steps, 8).expect_err(expected);
            assert_eq!(describe_refused_plan(&bad.reason, &raw, 8).to_string(), expected);
        }
        for (args, expected) in [
            (json!({}), "steps[0].args: keys missing: query"),
            (json!({ "query": " " }), "steps[0].args.query is empty, not text"),
            (json!({ "query": ["a"] }), "steps[0].args.query is a list, not text"),
        ] {
            let raw = with(0, "args", args);
            let said = describe_refused_plan(&StopReason::InvalidSearchQuery, &raw, 8);
            assert_eq!(said.to_string(), expected);
        }
    }

    #[test]
    fn each_note_fault_names_its_place() {
        let quote = "The service is up again since noon.";
        let table = [
            (json!("note"), "notes[3] is \"note\", not an object"),
            (json!({ "quote": quote }), "notes[3]: keys missing: claim"),
            (json!({ "claim": " ", "quote": quote }), "notes[3].claim is empty, not text"),
            (json!({ "claim": "It is up." }), "notes[3]: keys missing: quote"),
            (
                json!({ "claim": "It is up.", "quote": "It is up." }),
                "notes[3].quote has 9 characters, at least 20 are needed",
            ),
        ];
        for (note, expected) in table {
            let fault = policy::validate_draft(&note).expect_err(expected);
            assert_eq!(describe_note_fault(fault, 3, &note), expected);
        }
        assert_eq!(describe_missing_notes(&json!({ "note": [] })), "keys missing: notes");
        assert_eq!(
            describe_missing_notes(&json!({ "notes": "none" })),
            "notes is \"none\", not a list of notes"
        );
        assert_eq!(describe_missing_notes(&json!([])), "the reply is an empty list, not an object");
    }

    #[test]
    fn each_answer_fault_explains_itself() {
        let sentence =
            |text: &str, ids: Value| json!({ "sentences": [{ "text": text, "citations": ids }] });
        let table = [
            (json!({ "text": "It is so." }), "keys missing: sentences, or answer with citations"),
            (json!({ "answer": "" }), "answer is empty, not text"),
            (json!("It is so."), "the reply is \"It is so.\", not an object"),
            (
                json!({ "sentences": "It is so." }),
                "sentences is \"It is so.\", not a list of sentences",
            ),
            (sentence(" ", json!(["n1"])), "the sentences have no text"),
            (
                sentence("It is so, and so it stays.", json!(["n1"])),
                "the answer has 26 characters, budget.max_answer_chars is 20",
            ),
            (
                sentence("It is so.", json!([])),
                "the answer cites no note, or its citations are not a list of ids",
            ),
            (sentence("It is so.", json!(["n9"])), "\"n9\" is not a note: notes are n1, n2"),
            (
                sentence("It is so [n8].", json!([])),
                "a mark in the text is not a note: notes are n1, n2",
            ),
        ];
        for (raw, expected) in table {
            let fault = answer::judge_answer(&raw, ["n1", "n2"], 20).expect_err(expected);
            assert_eq!(describe_answer_fault(fault, &raw, &["n1", "n2"], 20), expected);
        }
    }
}
