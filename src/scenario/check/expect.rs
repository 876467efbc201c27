//! The expectations of a scenario (`[[expect]]`): builds them, and checks their names.

use std::collections::BTreeMap;

use super::condition_check::{ConditionScope, compile_condition};
use super::outcome_fields::warn_of_unknown_fields;
use super::stop_reasons::warn_of_unknown_reasons;
use crate::base::name::ToolName;
use crate::scenario::condition::{Condition, RunFunction};
use crate::scenario::file::format::{ExpectTable, ScenarioFile};
use crate::scenario::file::reader::{ReadContext, closest_name, suggest_name};
use crate::scenario::file::shape::Positioned;
use crate::scenario::file::template::TemplateScope;
use crate::scenario::pattern_row::PatternRow;
use crate::scenario::spec::expectation::Expectation;
use crate::scenario::spec::tool::ToolSpec;

/// The names that an expectation may use.
const NAMES: [&str; 13] = [
    "outcome",
    "status",
    "stop_reason",
    "degraded",
    "elapsed_ms",
    "answer",
    "tokens",
    "cost_usd",
    "live",
    "inputs",
    "facts",
    "flags",
    "events",
];

/// Builds the expectations of a file. `cites`: whether answers of its pattern cite sources. Problems
/// are reported to `cx`.
pub(crate) fn build(
    file: &ScenarioFile,
    own: &PatternRow,
    tools: &BTreeMap<ToolName, ToolSpec>,
    cites: bool,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Vec<Expectation> {
    let actors = || file.roles.names().chain(file.workers.names()).chain(file.agents.names());
    let called = file.workers.names().chain(file.agents.names());
    let tools = tools.keys().map(ToolName::as_str);
    let known = KnownNames {
        tools: ["llm"].into_iter().chain(tools).chain(called).collect(),
        actors: actors().collect(),
        own,
        cites,
        domains: policy_domains(file),
    };
    let shown = ConditionScope { names: &NAMES, file, filling, of_run: true };
    let rows = file.expect.0.iter().enumerate();
    rows.filter_map(|(index, row)| {
        cx.at_key("expect", |cx| cx.at_index(index, |cx| expectation(row, &shown, &known, cx)))
    })
    .collect()
}

/// The names that the functions of expectations may name.
struct KnownNames<'f> {
    tools: Vec<&'f str>,
    actors: Vec<&'f str>,
    own: &'f PatternRow,
    /// Whether answers of the pattern cite sources.
    cites: bool,
    /// The domains that research may read at all.
    domains: Vec<&'f str>,
}

fn policy_domains(file: &ScenarioFile) -> Vec<&str> {
    let lists = file.research.iter().flat_map(|table| &table.allowed_domains_policy);
    lists.flat_map(|list| &list.value.0).map(|domain| domain.name.as_str()).collect()
}

fn expectation(
    row: &Positioned<ExpectTable>,
    shown: &ConditionScope<'_>,
    known: &KnownNames<'_>,
    cx: &mut ReadContext,
) -> Option<Expectation> {
    let that = row.value.that.as_ref()?;
    let (line, _) = cx.position(that.at);
    let condition = cx.at_key("that", |cx| {
        let condition = compile_condition(that, shown, cx)?;
        for (what, help) in known.wrong_names(&condition) {
            cx.error(that.at, what, help);
        }
        for (what, help) in known.misspelt_hosts(&condition) {
            cx.warn(that.at, what, help);
        }
        warn_of_unknown_fields(&condition, that, known.own, cx);
        warn_of_unknown_reasons(&condition, that, cx);
        Some(condition)
    })?;
    let message = row.value.message.as_ref().map(|message| message.text.clone());
    Some(Expectation { that: condition, message, line })
}

impl KnownNames<'_> {
    /// The names that do not exist, each with what to write.
    fn wrong_names(&self, condition: &Condition) -> Vec<(String, String)> {
        let names = condition.run_names();
        let wrong = names.into_iter().filter_map(|(function, name)| match function {
            // Roles are not called as tools are; what they say is among the events.
            RunFunction::Calls if self.actors.contains(&name) && !self.tools.contains(&name) => {
                let what = format!("`{name}` is not a tool, but a role, worker or agent");
                let help = format!(
                    "write order(\"{name}\", \"…\") for who comes first, or look for it in \
                     outcome or events"
                );
                Some((what, help))
            }
            RunFunction::Calls => self.wrong(name, "a tool", &self.tools),
            RunFunction::Order if self.actors.is_empty() => {
                let what = format!("the pattern {} has no roles, workers or agents", self.own.name);
                Some((what, "remove `order`".to_owned()))
            }
            RunFunction::Order => self.wrong(name, "a role, worker or agent", &self.actors),
            RunFunction::Cites if self.cites => None,
            RunFunction::Cites => {
                let what = format!("the pattern {} cites no sources", self.own.name);
                Some((what, "remove `cites`".to_owned()))
            }
        });
        wrong.collect()
    }

    /// The hosts that differ a little from an allowed one. An expectation may also name a host that
    /// is not allowed, to say that it is not cited.
    fn misspelt_hosts(&self, condition: &Condition) -> Vec<(String, String)> {
        let names = condition.run_names().into_iter();
        let hosts = names.filter(|(function, name)| {
            let is_of = |domain: &&str| *domain == *name || domain.ends_with(&format!(".{name}"));
            *function == RunFunction::Cites && !self.domains.iter().any(is_of)
        });
        let misspelt = hosts.filter_map(|(_, name)| {
            let near = closest_name(name, self.domains.iter().copied())?;
            let what = format!("`{name}` is not in research.allowed_domains_policy");
            Some((what, format!("did you mean `{near}`?")))
        });
        misspelt.collect()
    }

    fn wrong(&self, name: &str, noun: &str, known: &[&str]) -> Option<(String, String)> {
        if known.contains(&name) {
            return None;
        }
        let help = suggest_name(name, known.iter().copied());
        Some((format!("`{name}` is not {noun}"), help))
    }
}
