//! Conditions of a file: checks their syntax and their names.

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
                let help = match word_before_minus(&when.text[..name.at]) {
                    Some(word) => format!("`-` subtracts: did you mean `{word}_{first}`?"),
                    None => suggest_name(first, shown.names.iter().copied()),
                };
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
            ["aggregate", field, ..] | ["outcome", "aggregate", field, ..] if !name.guarded => {
                if let Some(help) = shown.missing_section(field) {
                    cx.warn(at, format!("the aggregate has no field `{field}`"), help);
                }
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

/// The word before a minus at the end of a text, without white space between.
fn word_before_minus(text: &str) -> Option<&str> {
    let text = text.strip_suffix('-')?;
    let start = text.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
    Some(&text[start..]).filter(|word| word.starts_with(char::is_alphabetic))
}

impl ConditionScope<'_> {
    /// The suggestion for a field that the aggregate of an orchestrator does not have.
    fn missing_section(&self, field: &str) -> Option<String> {
        let table = self.file.orchestrator.as_ref()?;
        let level = table.level.as_ref()?.name.as_ref()?.text.as_str();
        let echo = table.echo.0.iter().map(|input| input.text.as_str());
        let known = table.sections.names().chain([level, "failed_tasks"]).chain(echo);
        let known: Vec<&str> = known.collect();
        // A level with the name of a section is reported as an error.
        let is_known = known.contains(&field) || table.sections.has(level);
        (!is_known).then(|| suggest_name(field, known))
    }

    /// The suggestion for a missing field of the facts.
    fn missing_fact(&self, fields: &[&str]) -> Option<String> {
        self.filling.missing_fact(fields).filter(|_| !self.file.facts.broken)
    }
}
