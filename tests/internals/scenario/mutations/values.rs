//! Mistakes with values: another type, a word that is not allowed, a number out of range, another form
//! of a duration, and values of scripted replies.

use serde_json::Value;

use super::document::{Document, Site, variant};
use super::mistake::{Dice, SeededMistake, misspell};
use crate::scenario::read::tree::TomlValue;

/// One mistake for each site for which `change` has a wrong value and the right words.
fn each(
    document: &Document,
    mut change: impl FnMut(&Site) -> Option<(String, Vec<String>)>,
) -> Vec<SeededMistake> {
    let made = document.sites.iter().filter_map(|site| {
        let (wrong, right) = change(site)?;
        let mistake =
            SeededMistake::replace(site.value.clone(), &wrong, document.line(site.value.start));
        Some(SeededMistake { right, ..mistake })
    });
    made.collect()
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

pub(super) fn wrong_type(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    each(document, |site| {
        if site.has_header || document.text[site.value.clone()].contains('\n') {
            return None;
        }
        let raw = &document.text[site.value.clone()];
        let (wrong, right) = match (site.schema["type"].as_str()?, &site.node.value) {
            ("integer" | "number", _) => {
                ([format!("\"{raw}\""), "true".into()][dice.below(2)].clone(), "number")
            }
            ("boolean", _) => {
                (dice.pick(&["\"true\"", "\"yes\"", "1", "\"on\""]).to_string(), "true or false")
            }
            ("string", TomlValue::Text(_)) => (
                [format!("[{raw}]"), "7".into(), format!("{{ text = {raw} }}")][dice.below(3)]
                    .clone(),
                "string",
            ),
            ("array", TomlValue::List(items)) => match items.first().map(|item| &item.value) {
                Some(TomlValue::Text(first)) => (
                    [format!("\"{first}\""), format!("{{ first = \"{first}\" }}")][dice.below(2)]
                        .clone(),
                    "list",
                ),
                _ => ("{}".to_owned(), "list"),
            },
            ("object", TomlValue::Table(_)) => {
                (dice.pick(&["\"none\"", "[]", "true"]).to_string(), "table")
            }
            _ => return None,
        };
        Some((wrong, owned(&[right])))
    })
}

/// Words that people write for a word of the format.
const OTHER_WORDS: [(&str, &str); 22] = [
    ("parallel", "concurrent"),
    ("sequential", "serial"),
    ("skip", "ignore"),
    ("deny", "refuse"),
    ("text", "string"),
    ("number", "float"),
    ("integer", "int"),
    ("bool", "boolean"),
    ("date", "day"),
    ("list", "array"),
    ("table", "object"),
    ("choice", "enum"),
    ("finalize", "final"),
    ("plan", "planning"),
    ("classify", "classification"),
    ("synthesize", "answer"),
    ("model_when_live", "live"),
    ("rule", "rules"),
    ("refuse", "reject"),
    ("include", "all"),
    ("parent_branch", "parent"),
    ("two_state", "simple"),
];

pub(super) fn wrong_word(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    each(document, |site| {
        let old = site.string()?;
        let forms = site.schema["oneOf"].as_array()?;
        let words: Vec<&str> = forms.iter().filter_map(|form| form["const"].as_str()).collect();
        if !words.contains(&old) {
            return None;
        }
        let other = OTHER_WORDS.iter().find(|(word, _)| *word == old).map(|(_, other)| *other);
        let capital = old[..1].to_uppercase() + &old[1..];
        let wrong = match (other, dice.below(3)) {
            (Some(other), 0) if !words.contains(&other) => other.to_owned(),
            (_, 1) if !words.contains(&&*capital) => capital,
            _ => misspell(old, dice, |word| words.contains(&word))?,
        };
        Some((format!("\"{wrong}\""), owned(&[old])))
    })
}

/// Entries of scripted replies that a reply must have.
const NEEDED_IN_REPLIES: [&str; 15] = [
    "stance",
    "summary",
    "confidence",
    "actions",
    "kind",
    "tasks",
    "id",
    "worker",
    "critical",
    "steps",
    "action",
    "notes",
    "claim",
    "quote",
    "route",
];

pub(super) fn scripted_reply(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    let mut made = each(document, |site| {
        if site.is_item || !site.path.starts_with(&owned(&["script", "reply"])) {
            return None;
        }
        let word = |dice: &mut Dice, words: &[&str]| format!("\"{}\"", dice.pick(words));
        let old = document.text[site.value.clone()].trim_matches('"');
        let (wrong, right) = match site.key_name() {
            "stance" => {
                let others: &[&str] = match old {
                    "go" => &["Go!", "approve", "goo"],
                    "caution" => &["cautious", "cuation"],
                    _ => &["blocked", "blok"],
                };
                (word(dice, others), old)
            }
            "confidence" => {
                let wrong = [word(dice, &["high", "0.8"]), "1.4".into(), "85".into()];
                (dice.pick(&wrong).clone(), "0 to 1")
            }
            "critical" => (word(dice, &["yes", "true"]), "true or false"),
            "kind" => (word(dice, &["plans", "tasks"]), old),
            "actions" if matches!(site.node.value, TomlValue::List(_)) => {
                (word(dice, &["Wait"]), "list")
            }
            "action" => (format!("\"{}\"", misspell(old, dice, |_| false)?), old),
            _ => return None,
        };
        Some((wrong, owned(&[right])))
    });
    let keys = document.sites.iter().filter(|site| {
        site.path.starts_with(&owned(&["script", "reply"]))
            && !site.is_item
            && NEEDED_IN_REPLIES.contains(&site.key_name())
    });
    made.extend(keys.filter_map(|site| {
        let key = site.key_name();
        let wrong = misspell(key, dice, |word| site.owner.get(word).is_some())?;
        Some(
            SeededMistake::replace(site.key.clone(), &wrong, document.line(site.key.start))
                .right(key),
        )
    }));
    made
}

pub(super) fn wrong_duration(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    each(document, |site| {
        let form = variant(site.schema, "string")["pattern"].as_str()?;
        if !form.contains("(ms|s|m") {
            return None;
        }
        let raw = document.text[site.value.clone()].trim_matches('"');
        let (wrong, right) = if let Some((from, to)) = raw.split_once("..") {
            let wrong = [
                format!("{from}-{to}"),
                format!("{from} to {to}"),
                format!("{from}...{to}"),
                format!("{from} - {to}"),
            ];
            (dice.pick(&wrong).clone(), vec![raw.to_owned(), format!("{from} .. {to}")])
        } else if let Ok(number) = raw.parse::<f64>() {
            let is_ms = site.path.iter().any(|step| step.ends_with("_ms"));
            let unit = if is_ms { "ms" } else { "s" };
            let mut wrong = vec![format!("{number} {unit}")];
            match is_ms {
                true => wrong.extend([format!("{number} msec"), format!("{number}millis")]),
                false => wrong.extend([
                    format!("{number} sec"),
                    format!("{number} seconds"),
                    format!("{number}sec"),
                ]),
            }
            let mut right = vec![format!("{number}{unit}")];
            if !is_ms && number > 60.0 && number.fract() == 0.0 {
                let (minutes, rest) = ((number / 60.0).floor(), number % 60.0);
                wrong.extend([format!("{minutes}m{rest}"), format!("{minutes}m{rest}s")]);
                right.push(format!("{minutes}m {rest}s"));
            } else if !is_ms && number % 60.0 == 0.0 {
                wrong.push(format!("{} min", number / 60.0));
                right.push(format!("{}m", number / 60.0));
            }
            (dice.pick(&wrong).clone(), right)
        } else {
            let at = raw.find(|c: char| c.is_ascii_alphabetic())?;
            let (number, unit) = raw.split_at(at);
            let long = match unit {
                "ms" => ["millis", " ms", " msec"],
                "s" => ["sec", " s", " seconds"],
                _ => ["min", " m", " minutes"],
            };
            (format!("{number}{}", dice.pick(&long)), vec![raw.to_owned()])
        };
        Some((format!("\"{wrong}\""), right))
    })
}

pub(super) fn out_of_range(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    each(document, |site| {
        let schema = ["integer", "number"].into_iter().map(|kind| variant(site.schema, kind));
        let schema = schema.into_iter().find(|schema| schema["maximum"].is_number())?;
        if !matches!(site.node.value, TomlValue::Integer(_) | TomlValue::Number(_)) {
            return None;
        }
        let (least, most) = (schema["minimum"].as_f64()?, schema["maximum"].as_f64()?);
        let wrong = match dice.below(2) {
            0 => (least - 1.0).floor(),
            _ => (most + 1.0).floor() * if most > 1_000.0 { 10.0 } else { 1.0 },
        };
        let bound = |key: &str| match &schema[key] {
            Value::Number(number) => number.to_string().trim_end_matches(".0").to_owned(),
            _ => String::new(),
        };
        Some((format!("{wrong}"), vec![bound("minimum"), bound("maximum")]))
    })
}
