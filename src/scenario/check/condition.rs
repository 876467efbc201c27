//! Conditions and expectations (`[[expect]]`) of a file: their syntax, their names, the fields of
//! outcomes and the words of stop reasons that they may use.

use std::collections::BTreeMap;

use crate::base::name::ToolName;
use crate::scenario::cel::{Condition, RunFunction, split_prefix};
use crate::scenario::patterns::row::PatternRow;
use crate::scenario::people::OPERATOR;
use crate::scenario::read::format::{ExpectTable, ScenarioFile};
use crate::scenario::read::shape::{NonBlankString, Positioned};
use crate::scenario::read::template::TemplateScope;
use crate::scenario::read::{ReadContext, closest_name, suggest_declared_name, suggest_name};
use crate::scenario::spec::Expectation;
use crate::scenario::spec::tool::ToolSpec;
use crate::scenario::tools::mcp::split_name;

/// What a condition of a file may use.
pub(crate) struct ConditionScope<'f> {
    /// The names it may use.
    pub names: &'f [&'f str],
    pub file: &'f ScenarioFile,
    pub scope: &'f TemplateScope<'f>,
    /// Whether it is about a run that has ended, and may call the functions for that.
    pub of_run: bool,
}

/// Compiles a condition. Problems are reported to `cx`.
pub(crate) fn compile_condition(
    when: &NonBlankString,
    shown: &ConditionScope<'_>,
    cx: &mut ReadContext,
) -> Option<Condition> {
    let condition = parse_condition(when, shown.of_run, cx)?;
    let mut good = names_exist(&condition, when, shown.names, cx);
    for name in condition.names() {
        let at = cx.inner_span(when.at, name.at, name.at + name.path.join(".").len());
        match name.path[..] {
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

/// A condition that may only use these names.
pub(crate) fn condition_of_names(
    when: &NonBlankString,
    names: &[&str],
    cx: &mut ReadContext,
) -> Option<Condition> {
    let condition = parse_condition(when, false, cx)?;
    names_exist(&condition, when, names, cx).then_some(condition)
}

fn parse_condition(when: &NonBlankString, of_run: bool, cx: &mut ReadContext) -> Option<Condition> {
    let compiled = match of_run {
        true => Condition::compile_expectation(&when.text),
        false => Condition::compile(&when.text),
    };
    match compiled {
        Ok(condition) => Some(condition),
        Err(error) => {
            let at = match error.offset() {
                Some(at) => cx.inner_span(when.at, at, at + 1),
                None => when.at,
            };
            let help = "write a CEL condition such as facts.alerts >= 3 && inputs.region == 'EU'";
            cx.error(at, error.to_string(), help);
            None
        }
    }
}

/// Whether all names of a condition are among these. Others are reported to `cx`.
fn names_exist(
    condition: &Condition,
    when: &NonBlankString,
    names: &[&str],
    cx: &mut ReadContext,
) -> bool {
    let mut good = true;
    for name in condition.names() {
        let [first, ..] = name.path[..] else { continue };
        if names.contains(&first) {
            continue;
        }
        let help = match word_before_minus(&when.text[..name.at]) {
            Some(word) => format!("`-` subtracts: did you mean `{word}_{first}`?"),
            None => suggest_name(first, names.iter().copied()),
        };
        let at = cx.inner_span(when.at, name.at, name.at + first.len());
        cx.error(at, format!("`{first}` is not available in this condition"), help);
        good = false;
    }
    good
}

/// Builds the rows of a file that has nothing else: what they are about is not known, so only their
/// form is checked. Problems are reported to `cx`.
pub(crate) fn build_rows(
    rows: &[Positioned<ExpectTable>],
    cx: &mut ReadContext,
) -> Vec<Expectation> {
    let build = |(index, row): (usize, &Positioned<ExpectTable>), cx: &mut ReadContext| {
        let that = row.value.that.as_ref()?;
        let (line, _) = cx.position(that.at);
        let condition = cx.at_index(index, |cx| {
            cx.at_key("that", |cx| {
                let condition = parse_condition(that, true, cx)?;
                names_exist(&condition, that, &NAMES, cx).then_some(())?;
                for (function, name) in condition.run_names() {
                    if let Some((what, help)) = wrong_prefix(function, name) {
                        cx.error(that.at, what, help);
                    }
                }
                warn_of_unknown_reasons(&condition, that, cx);
                Some(condition)
            })
        })?;
        let message = row.value.message.as_ref().map(|message| message.text.clone());
        Some(Expectation { that: condition, message, line })
    };
    cx.at_key("expect", |cx| rows.iter().enumerate().filter_map(|row| build(row, cx)).collect())
}

/// What is wrong with a name of a function that is only about agents.
fn wrong_prefix(function: RunFunction, name: &str) -> Option<(String, String)> {
    let (prefix, bare) = split_prefix(name)?;
    match function {
        RunFunction::Order if prefix != "agent:" => {
            let what = format!("`{name}` is no role, worker or agent, and `order` is about those");
            Some((what, String::new()))
        }
        RunFunction::Asked | RunFunction::Approved => {
            let what = format!("`{}` takes a name without `{prefix}`", function.name());
            Some((what, format!("write {}(\"{bare}\")", function.name())))
        }
        _ => None,
    }
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
        self.scope.missing_fact(fields).filter(|_| !self.file.facts.broken)
    }
}

/// The names that an expectation may use.
const NAMES: [&str; 14] = [
    "outcome",
    "status",
    "stop_reason",
    "degraded",
    "elapsed_ms",
    "waited_ms",
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
pub(super) fn build_expectations(
    file: &ScenarioFile,
    own: &PatternRow,
    tools: &BTreeMap<ToolName, ToolSpec>,
    cites: bool,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Vec<Expectation> {
    let actors = || file.roles.names().chain(file.workers.names()).chain(file.agents.names());
    let called = file.workers.names().chain(file.agents.names());
    let tools = tools.keys().map(ToolName::as_str);
    let known = KnownNames {
        own_tools: tools.clone().chain(file.workers.names()).collect(),
        tools: ["llm"].into_iter().chain(tools).chain(called).collect(),
        actors: actors().collect(),
        people: file.people.names().chain([OPERATOR]).collect(),
        own,
        cites,
        domains: policy_domains(file),
    };
    let shown = ConditionScope { names: &NAMES, file, scope, of_run: true };
    let rows = file.expect.0.iter().enumerate();
    rows.filter_map(|(index, row)| {
        cx.at_key("expect", |cx| cx.at_index(index, |cx| expectation(row, &shown, &known, cx)))
    })
    .collect()
}

/// The names that the functions of expectations may name.
struct KnownNames<'f> {
    tools: Vec<&'f str>,
    /// The tools without agents.
    own_tools: Vec<&'f str>,
    actors: Vec<&'f str>,
    /// The people, with the operator.
    people: Vec<&'f str>,
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
            _ if wrong_prefix(function, name).is_some() => wrong_prefix(function, name),
            RunFunction::Calls | RunFunction::Failed if split_prefix(name).is_some() => {
                match split_prefix(name) {
                    Some(("tool:", bare)) => self.wrong(bare, "a tool", &self.own_tools),
                    Some(("agent:", bare)) => {
                        self.wrong(bare, "a role, worker or agent", &self.actors)
                    }
                    // The model of a run is set when it starts.
                    _ => None,
                }
            }
            RunFunction::Failed if self.actors.contains(&name) => None,
            RunFunction::Failed => self.wrong(name, "a tool", &self.tools),
            // A role is not called like a tool; its replies are among the events.
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
            RunFunction::Order => {
                let bare = name.strip_prefix("agent:").unwrap_or(name);
                self.wrong(bare, "a role, worker or agent", &self.actors)
            }
            RunFunction::Asked => self.wrong(name, "a person", &self.people),
            RunFunction::Approved => self.wrong(name, "a tool", &self.tools),
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
        let is_of_server = split_name(name).is_some_and(|(server, _)| known.contains(&server));
        if known.contains(&name) || is_of_server {
            return None;
        }
        let help = suggest_name(name, known.iter().copied());
        Some((format!("`{name}` is not {noun}"), help))
    }
}

/// The fields that outcomes of every pattern have.
pub(crate) const OF_ALL: [&str; 16] = [
    "status",
    "stop_reason",
    "phase",
    "detail",
    "error",
    "run_id",
    "pattern",
    "usage",
    "elapsed_ms",
    "paused_ms",
    "degraded",
    "cut",
    "replaced",
    "questions",
    "tools",
    "alerts",
];

/// The fields that only the outcome of a session of several messages has.
pub(crate) const OF_SESSION: [&str; 3] = ["messages", "answered", "session"];

/// Warns of fields that no outcome of the pattern has.
fn warn_of_unknown_fields(
    condition: &Condition,
    that: &NonBlankString,
    own: &PatternRow,
    cx: &mut ReadContext,
) {
    let session = if own.has_agents() { &OF_SESSION[..] } else { &[] };
    let fields =
        || own.outcome.iter().map(|field| field.name).chain(OF_ALL).chain(session.iter().copied());
    for name in condition.names() {
        let ["outcome", field, ..] = name.path[..] else { continue };
        if name.guarded || fields().any(|known| known == field) {
            continue;
        }
        let end = name.at + "outcome.".len() + field.len();
        let at = cx.inner_span(that.at, name.at, end);
        let help = cx.suggest(field, fields());
        let what = format!("outcomes of the pattern {} have no field `{field}`", own.name);
        cx.warn(at, what, help);
    }
}

/// The words of all stop reasons; what follows a colon depends on the run.
const WORDS: [&str; 50] = [
    "success",
    "max_messages",
    "max_rounds_reached",
    "max_seconds",
    "max_tokens_budget",
    "max_cost_budget",
    "max_calls",
    "repeats_reached",
    "llm_timeout",
    "llm_empty",
    "critical_task_failed",
    "task_timeout",
    "max_dispatches",
    "max_tool_rounds",
    "max_handoffs",
    "repetitive_handoff",
    "invalid_search",
    "no_sources_after_dedupe",
    "no_reliable_sources",
    "no_route",
    "program_failed",
    "span_failed",
    "waits_for_input",
    "guardrail_tripped",
    "nothing_reported",
    "cancelled",
    "too_many_questions",
    "store_failed",
    "internal_error",
    "invalid_contribution",
    "agent_denied",
    "llm_error",
    "invalid_plan",
    "stuck",
    "node_timeout",
    "invalid_step",
    "tool_invalid_output",
    "invalid_notes",
    "verification_failed",
    "invalid_answer",
    "invalid_route",
    "route_denied",
    "in_doubt",
    "approval_denied",
    "no_answer",
    "circuit_open",
    "bulkhead_full",
    "rate_reached",
    "script_missing",
    "tool_error",
];

/// The words of the stop reasons that only tasks of an orchestrator have.
const TASK_WORDS: [&str; 5] =
    ["worker_denied", "worker_missing", "worker_bad_args", "worker_bad_result", "worker_error"];

/// Warns of unknown words that `stop_reason` is compared with.
fn warn_of_unknown_reasons(condition: &Condition, that: &NonBlankString, cx: &mut ReadContext) {
    for reason in condition.texts_equal_to("stop_reason") {
        let word = reason.split(':').next().unwrap_or_default();
        // Tasks have reasons of their own: `outcome.trace[0].stop_reason`.
        if !WORDS.contains(&word) && !TASK_WORDS.contains(&word) {
            let help = cx.suggest(word, WORDS.into_iter().chain(TASK_WORDS));
            cx.warn(that.at, format!("`{word}` is not a stop reason"), help);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{TASK_WORDS, WORDS};
    use crate::log::event::stop::STOP_ROWS;
    use crate::log::facts::orchestrator::WorkerFault;
    use crate::scenario::patterns::ROWS;

    /// The names that a source file passes to `add`.
    fn added(source: &str) -> Vec<&str> {
        let calls = source.split("add(").skip(1);
        let names = calls.filter_map(|call| call.trim_start().strip_prefix('"')?.split('"').next());
        names.collect()
    }

    #[test]
    fn knows_each_field_of_each_pattern() {
        let sources = [
            ("collaboration", include_str!("../../log/world/collaboration.rs")),
            ("orchestrator", include_str!("../../log/world/orchestrator.rs")),
            ("team", include_str!("../../log/world/team.rs")),
            ("swarm", include_str!("../../log/world/team.rs")),
            ("resilience", include_str!("../../log/world/resilience.rs")),
            ("research", include_str!("../../log/world/research/outcome.rs")),
            ("router", include_str!("../../log/world/router.rs")),
        ];
        assert_eq!(sources.len(), ROWS.len());
        for (name, source) in sources {
            let row = ROWS.iter().find(|row| row.name == name).expect("a pattern");
            let added = added(source);
            assert!(!added.is_empty(), "{name}");
            for field in added {
                assert!(row.outcome.iter().any(|known| known.name == field), "{name}: {field}");
            }
        }
    }

    #[test]
    fn words_match_stop_reasons() {
        let rows = STOP_ROWS.iter().map(|row| row.word.split(':').next().unwrap_or_default());
        // It is not a row of that table. The others that are not are reasons of tasks.
        let mut words: Vec<&str> = rows.chain(["tool_error"]).collect();
        words.dedup();
        assert_eq!(words, WORDS);
        assert_eq!(WorkerFault::ALL.map(WorkerFault::word), TASK_WORDS);
    }
}
