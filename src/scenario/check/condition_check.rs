//! Conditions of a file: checks their syntax and their names.

use serde_json::Value;

use crate::scenario::condition::Condition;
use crate::scenario::file::format::ScenarioFile;
use crate::scenario::file::reader::{ReadContext, suggest_declared_name, suggest_name};
use crate::scenario::file::shape::NonBlankString;
use crate::scenario::file::template::TemplateScope;

/// What a condition of a file may use.
pub(crate) struct ConditionScope<'f> {
    /// The names it may use.
    pub names: &'f [&'f str],
    pub file: &'f ScenarioFile,
    pub filling: &'f TemplateScope<'f>,
    /// Whether it is about a run that has ended, and may call the functions for that.
    pub of_run: bool,
}

/// Compiles a condition. Problems are reported to `cx`.
pub(crate) fn compile_condition(
    when: &NonBlankString,
    shown: &ConditionScope<'_>,
    cx: &mut ReadContext,
) -> Option<Condition> {
    let compiled = match shown.of_run {
        true => Condition::compile_expectation(&when.text),
        false => Condition::compile(&when.text),
    };
    let condition = match compiled {
        Ok(condition) => condition,
        Err(error) => {
            let at = match error.offset() {
                Some(at) => cx.inner_span(when.at, at, at + 1),
                None => when.at,
            };
            let help = "write a CEL condition such as facts.alerts >= 3 && inputs.region == 'EU'";
            cx.error(at, error.to_string(), help);
            return None;
        }
    };
    let mut good = true;
    for name in condition.names() {
        let at = cx.inner_span(when.at, name.at, name.at + name.path.join(".").len());
        match name.path[..] {
            [first, ..] if !shown.names.contains(&first) => {
                let help = suggest_name(first, shown.names.iter().copied());
                let at = cx.inner_span(when.at, name.at, name.at + first.len());
                cx.error(at, format!("`{first}` is not available in this condition"), help);
                good = false;
            }
            ["inputs", field, ..] if !shown.file.inputs.has(field) => {
                cx.error(
                    at,
                    format!("`{field}` is not an input"),
                    suggest_declared_name("inputs", field, shown.file.inputs.names()),
                );
                good = false;
            }
            ["flags", field, ..] if !shown.file.flags.has(field) => {
                cx.error(
                    at,
                    format!("`{field}` is not a flag"),
                    suggest_declared_name("flags", field, shown.file.flags.names()),
                );
                good = false;
            }
            ["facts", ref fields @ ..] if !name.guarded => {
                if let Some(help) = shown.missing_fact(fields) {
                    let what = format!("there is no fact `{}`", name.path.join("."));
                    cx.warn(at, what, help);
                }
            }
            _ => {}
        }
    }
    good.then_some(condition)
}

impl ConditionScope<'_> {
    /// The suggestion for a missing field of the facts.
    fn missing_fact(&self, fields: &[&str]) -> Option<String> {
        let mut facts = self.filling.facts.filter(|_| !self.file.facts.broken)?;
        for field in fields {
            match facts.get(*field) {
                None => return Some(suggest_name(field, facts.keys().map(String::as_str))),
                Some(Value::Object(inner)) => facts = inner,
                // A field of a value that is not a table is an error during the run.
                Some(_) => return None,
            }
        }
        None
    }
}
