//! Says why a condition does not hold: what its parts are.

use std::io;
use std::io::Write;

use serde_json::Value;

use super::decision::EvalBudget;
use super::expr::CelNode;
use super::value::{CelList, CelMap, CelValue};
use super::{CelBindings, EvalError, RunFunction, eval};

/// Most parts of a condition that are explained.
const MAX_PARTS: usize = 8;

/// Longest value that is shown, in characters.
const MAX_CHARS: usize = 160;

/// A part of a condition and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedPart {
    /// As it is written, such as `outcome.final_decision` or `calls("llm")`.
    pub part: String,
    /// Its value as JSON, shortened; `missing` if it has none.
    pub value: String,
}

/// The names in the calls of the functions of expectations.
pub(crate) fn run_names(node: &CelNode) -> Vec<(RunFunction, &str)> {
    let mut names = Vec::new();
    walk(node, &mut |node| {
        if let CelNode::OfRun(function, args) = node {
            names.extend(args.iter().map(|arg| (*function, arg.as_str())));
        }
        true
    });
    names
}

/// The texts that a bound name, or a field of this name, is compared with by `==` or `!=`.
pub(crate) fn texts_equal_to<'n>(node: &'n CelNode, name: &str) -> Vec<&'n str> {
    let mut texts = Vec::new();
    walk(node, &mut |node| {
        if let CelNode::Equal(_, sides) = node
            && let [CelNode::Bound(bound, _) | CelNode::Field(_, bound), CelNode::Text(text)]
            | [CelNode::Text(text), CelNode::Bound(bound, _) | CelNode::Field(_, bound)] =
                &**sides
            && bound == name
        {
            texts.push(text.as_str());
        }
        true
    });
    texts
}

/// The texts that are looked for with `in` in a bound name, or in a field of it.
pub(crate) fn texts_in<'n>(node: &'n CelNode, names: &[&str]) -> Vec<&'n str> {
    let mut texts = Vec::new();
    walk(node, &mut |node| {
        if let CelNode::In(sides) = node
            && let [CelNode::Text(text), list] = &**sides
        {
            let bound = match list {
                CelNode::Field(inner, _) => inner,
                other => other,
            };
            if let CelNode::Bound(name, _) = bound
                && names.contains(&name.as_str())
            {
                texts.push(text.as_str());
            }
        }
        true
    });
    texts
}

/// Whether a field with one of these names may be read, of whatever it is.
pub(crate) fn may_read_field(node: &CelNode, fields: &[&str]) -> bool {
    let mut found = false;
    walk(node, &mut |node| {
        found |= match node {
            CelNode::Field(_, field) | CelNode::Has(_, field) => fields.contains(&field.as_str()),
            CelNode::Index(sides) => match &sides[1] {
                CelNode::Text(field) => fields.contains(&field.as_str()),
                CelNode::Int(_) => false,
                _ => true,
            },
            _ => false,
        };
        !found
    });
    found
}

/// The values of the names and of the functions of expectations, without those that depend on the
/// variable of a loop.
pub(crate) fn explain(node: &CelNode, shown: &CelBindings) -> Vec<ObservedPart> {
    let mut parts = Vec::new();
    collect(node, shown, &mut parts);
    parts
}

/// The names by which a condition holds: of `||` those of the first side that holds, of `&&` those of
/// both. Names that are only guarded with `has` are not among them.
pub(crate) fn deciding_names(
    node: &CelNode,
    shown: &CelBindings,
    budget: &mut EvalBudget,
) -> Vec<String> {
    let mut names = Vec::new();
    add_deciding(node, shown, budget, &mut names);
    names
}

fn add_deciding(
    node: &CelNode,
    shown: &CelBindings,
    budget: &mut EvalBudget,
    names: &mut Vec<String>,
) {
    match node {
        CelNode::And(sides) => {
            sides.iter().for_each(|side| add_deciding(side, shown, budget, names));
        }
        CelNode::Or(sides) => {
            let holds = |side: &&CelNode| {
                matches!(eval::value(side, shown, budget), Ok(CelValue::Bool(true)))
            };
            if let Some(side) = sides.iter().find(holds) {
                add_deciding(side, shown, budget, names);
            }
        }
        node => walk(node, &mut |node| {
            if matches!(node, CelNode::Has(..)) {
                return false;
            }
            let Some(name) = written(node) else { return true };
            if names.len() < MAX_PARTS && !names.contains(&name) {
                names.push(name);
            }
            false
        }),
    }
}

fn collect(node: &CelNode, shown: &CelBindings, parts: &mut Vec<ObservedPart>) {
    walk(node, &mut |node| {
        if let CelNode::Loop(inner) = node
            && let Some((place, item)) = eval::deciding_element(inner, shown)
        {
            // Instead of the whole list.
            let list = written(&inner.range).unwrap_or_else(|| "the list".to_owned());
            parts.push(ObservedPart { part: format!("{list}[{place}]"), value: shortened(&item) });
            collect(&inner.body, shown, parts);
            return false;
        }
        // Of a loop that no element decides, its value.
        if let CelNode::Loop(inner) = node
            && let Some(list) = written(&inner.range)
            && let Ok(value) = eval::value(node, shown, &mut EvalBudget::default())
        {
            let part = format!("{list}.{}(…)", inner.kind.name());
            parts.push(ObservedPart { part, value: shortened(&value) });
            return false;
        }
        let Some(part) = written(node) else { return true };
        if parts.len() < MAX_PARTS && parts.iter().all(|known| known.part != part) {
            let value = match eval::value(node, shown, &mut EvalBudget::default()) {
                Ok(value) => shortened(&value) + &more_of(node, shown).unwrap_or_default(),
                // The evaluation itself says why.
                Err(EvalError::Failed(_)) if shown.missing(&part).is_some() => {
                    "not known".to_owned()
                }
                Err(EvalError::Failed(_)) => "missing".to_owned() + &keys_beside(node, shown),
                Err(EvalError::BudgetExceeded(spent)) => spent.to_string(),
            };
            parts.push(ObservedPart { part, value });
        }
        false
    });
}

/// What a function of expectations has seen, where it does not hold.
fn more_of(node: &CelNode, shown: &CelBindings) -> Option<String> {
    let CelNode::OfRun(function, args) = node else { return None };
    let facts = shown.run_facts()?;
    let (what, names) = match function {
        RunFunction::Calls | RunFunction::Asked => return None,
        RunFunction::Failed => {
            let found = facts.calls.get(args.first()?)?;
            return Some(format!(": {} of {} failed", found.failed, found.calls));
        }
        RunFunction::Approved => ("approved were", &facts.approved),
        RunFunction::Cites => ("it cites", &facts.cited),
        RunFunction::Order => ("control went", &facts.took_control),
    };
    let held = function.call(args, Some(facts), &mut EvalBudget::default());
    if matches!(held, Ok(CelValue::Bool(true))) {
        return None;
    }
    Some(format!(": {what} {}", listed(names.iter().map(String::as_str))))
}

/// The keys that a map has in place of a missing one.
fn keys_beside(node: &CelNode, shown: &CelBindings) -> String {
    let CelNode::Field(inner, _) = node else { return String::new() };
    match eval::value(inner, shown, &mut EvalBudget::default()) {
        Ok(CelValue::Map(CelMap::Borrowed(fields))) => {
            let there = listed(fields.keys().map(String::as_str));
            let is_outcome = matches!(&**inner, CelNode::Bound(name, _) if name == "outcome");
            match is_outcome && fields.get("status").and_then(Value::as_str) == Some("stopped") {
                true => format!(" in the outcome of a run that was stopped; there are {there}"),
                false => format!("; there are {there}"),
            }
        }
        _ => String::new(),
    }
}

/// Names with commas, the first of them.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut text = String::new();
    for name in names {
        if text.len() > MAX_CHARS {
            text.push_str(", …");
            break;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.extend(name.chars().take(MAX_CHARS));
    }
    if text.is_empty() { "nothing".to_owned() } else { text }
}

/// Visits the parts of a condition; those inside a part only if `visit` says so.
fn walk<'n>(node: &'n CelNode, visit: &mut impl FnMut(&'n CelNode) -> bool) {
    if !visit(node) {
        return;
    }
    match node {
        CelNode::Field(inner, _)
        | CelNode::Has(inner, _)
        | CelNode::Not(inner)
        | CelNode::Negate(inner) => walk(inner, visit),
        CelNode::Index(two)
        | CelNode::And(two)
        | CelNode::Or(two)
        | CelNode::Equal(_, two)
        | CelNode::Order(_, two)
        | CelNode::Arithmetic(_, two)
        | CelNode::In(two) => two.iter().for_each(|side| walk(side, visit)),
        CelNode::If(three) => three.iter().for_each(|part| walk(part, visit)),
        CelNode::List(items) | CelNode::Call(_, items) => {
            items.iter().for_each(|item| walk(item, visit));
        }
        CelNode::Map(entries) => entries.iter().for_each(|(key, value)| {
            walk(key, visit);
            walk(value, visit);
        }),
        CelNode::Loop(inner) => {
            walk(&inner.range, visit);
            walk(&inner.body, visit);
        }
        CelNode::Null
        | CelNode::Bool(_)
        | CelNode::Int(_)
        | CelNode::UInt(_)
        | CelNode::Double(_)
        | CelNode::Text(_)
        | CelNode::Bound(..)
        | CelNode::Variable(_)
        | CelNode::OfRun(..) => {}
    }
}

/// A name with its fields, or a call of a function of expectations, as it is written. `None` for
/// other parts, and for the names of types.
pub(super) fn written(node: &CelNode) -> Option<String> {
    match node {
        CelNode::Bound(name, None) => Some(name.clone()),
        CelNode::Field(inner, field) => Some(format!("{}.{field}", written(inner)?)),
        CelNode::Has(inner, field) => Some(format!("has({}.{field})", written(inner)?)),
        CelNode::Index(sides) => {
            let [inner, place] = &**sides;
            let place = match place {
                CelNode::Int(place) => place.to_string(),
                CelNode::Text(key) => format!("{key:?}"),
                _ => return None,
            };
            Some(format!("{}[{place}]", written(inner)?))
        }
        CelNode::OfRun(function, args) => {
            let args: Vec<String> = args.iter().map(|arg| format!("{arg:?}")).collect();
            Some(format!("{}({})", function.name(), args.join(", ")))
        }
        _ => None,
    }
}

/// A value as JSON, at most [`MAX_CHARS`] long.
fn shortened(value: &CelValue<'_>) -> String {
    let mut text = BoundedText(Vec::new());
    let whole = write_json(value, &mut text);
    let text = String::from_utf8_lossy(&text.0);
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None if whole.is_err() => format!("{}…", text.trim_end_matches('\u{fffd}')),
        None => text.into_owned(),
    }
}

fn write_json(value: &CelValue<'_>, text: &mut BoundedText) -> io::Result<()> {
    match value {
        CelValue::Text(it) => serde_json::to_writer(text, it.as_str())?,
        CelValue::List(CelList::Borrowed(items)) => serde_json::to_writer(text, items)?,
        CelValue::Map(CelMap::Borrowed(fields)) => serde_json::to_writer(text, fields)?,
        CelValue::List(CelList::Owned(items)) => {
            text.write_all(b"[")?;
            for (nth, item) in items.iter().enumerate() {
                text.write_all(if nth > 0 { b"," } else { b"" })?;
                write_json(item, text)?;
            }
            text.write_all(b"]")?;
        }
        CelValue::Map(CelMap::Owned(fields)) => {
            text.write_all(b"{")?;
            for (nth, (name, item)) in fields.iter().enumerate() {
                text.write_all(if nth > 0 { b"," } else { b"" })?;
                write_json(name, text)?;
                text.write_all(b":")?;
                write_json(item, text)?;
            }
            text.write_all(b"}")?;
        }
        CelValue::Null => serde_json::to_writer(text, &())?,
        CelValue::Bool(truth) => serde_json::to_writer(text, truth)?,
        CelValue::Int(whole) => serde_json::to_writer(text, whole)?,
        CelValue::UInt(whole) => serde_json::to_writer(text, whole)?,
        CelValue::Double(float) => serde_json::to_writer(text, float)?,
        CelValue::Type(name) => serde_json::to_writer(text, name)?,
    }
    Ok(())
}

/// A text of limited length; a longer one is an error, which ends the writing.
struct BoundedText(Vec<u8>);

impl Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = (MAX_CHARS * 4).saturating_sub(self.0.len());
        if room == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let taken = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
