//! People in a scenario: who there is, which calls of tools need their approval, and what they answer
//! in an offline run: the tables, the settings, the checks.
//!
//! Whether a call needs approval is decided by the first of these that applies: a rule that denies,
//! a remembered approval, the tool's own `approve` or a rule that asks, a rule that allows, `allow` of its
//! MCP server or what the operator has allowed of it. Otherwise only a tool of an MCP server needs it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::cel::{CelBindings, Condition};
use super::check::condition::{ConditionScope, compile_condition};
use super::check::script::report_unknown_name;
use super::patterns::agents::check::{gives_answers, warn_of_no_calls};
use super::read::ReadContext;
use super::read::amount::OpenTime;
use super::read::format::tools::fill_table;
use super::read::format::{ScenarioFile, ScriptTable};
use super::read::names::{ActorName, NamedEntries, NamedEntry};
use super::read::shape::{
    FormatShape, FreeTable, NonBlankString, ObjectSchema, Positioned, Requirement, StringField,
    join_doc_lines, record, words,
};
use super::read::template::TemplateScope;
use super::read::tree::{TomlNode, TomlValue};
use super::tools::mcp::split_name;
use crate::base::name::{AgentName, PersonName, ToolName};
use crate::base::seeded_random::Latency;
use crate::base::worded;

/// The people of a file.
pub(crate) type PeopleTables = NamedEntries<PersonTable, ActorName>;

/// Who is asked if a scenario names nobody: the person who steers the run.
pub const OPERATOR: &str = "operator";

/// The tool by which an agent asks a person begins with this; the name of the person follows.
pub const ASK: &str = "ask_";

record! {
    /// A person who may be asked. Any person who steers the run can answer: the name is no permission.
    struct PersonTable => {
        /// What the person decides about, shown to the agents that may ask, and on the card of the question.
        description: NonBlankString = needed,
        /// How long a question to this person stays open, in seconds, or such as 10m, 4h or 3d. Default: until
        /// it is answered.
        timeout: OpenTime = optional,
        /// What happens if nobody answers. Default: stop.
        otherwise: Positioned<Otherwise> = optional,
    }
}

record! {
    /// When a call of a tool needs approval.
    struct ApproveTable => {
        /// The person who is asked, by the name in [people]. Default: the operator.
        who: NonBlankString = optional,
        /// Only if this CEL condition holds. It may use args, agent (empty for a worker or a page) and
        /// flags. A condition that cannot be evaluated asks.
        when: NonBlankString = optional,
        /// How long the question stays open, in seconds, or such as 10m, 4h or 3d. Default: that of the
        /// person, else until it is answered.
        timeout: OpenTime = optional,
        /// What happens if nobody answers: deny, stop or pause. Default: deny.
        otherwise: Positioned<Otherwise> = optional,
    }
}

record! {
    /// A rule about calls of tools: it allows, asks or denies.
    struct RuleTable => {
        /// The tools: a name, or the beginning of names and `*`.
        tool: NonBlankString = needed,
        /// Only for this agent.
        agent: NonBlankString = optional,
        /// Only if this CEL condition holds. It may use args, agent and flags. If it cannot be
        /// evaluated, a rule that allows does not apply, and any other asks.
        when: NonBlankString = optional,
        /// What the rule does.
        r#do: RuleAction = needed,
        /// For a rule that asks: the person who is asked. Default: the operator.
        who: NonBlankString = optional,
        /// For a rule that asks: how long the question stays open.
        timeout: OpenTime = optional,
        /// For a rule that asks: what happens if nobody answers. Default: deny.
        otherwise: Positioned<Otherwise> = optional,
    }
}

impl RuleTable {
    /// Whether it may ask about calls of this tool.
    pub(crate) fn asks_about(&self, tool: &str) -> bool {
        self.r#do == Some(RuleAction::Ask)
            && self.tool.as_ref().is_some_and(|named| names_tool(named.text.trim(), tool))
    }
}

/// Whether the `tool` of a rule names this tool.
pub(crate) fn names_tool(named: &str, tool: &str) -> bool {
    match named.strip_suffix('*') {
        Some(start) => tool.starts_with(start),
        None => named == tool,
    }
}

/// What a rule does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleAction {
    /// The call is made unasked.
    Allow,
    /// A person is asked.
    Ask,
    /// The call is not made.
    Deny,
}

words! { RuleAction:
    "allow" => RuleAction::Allow, "The call is made unasked.";
    "ask" => RuleAction::Ask, "A person is asked.";
    "deny" => RuleAction::Deny, "The call is not made.";
}

worded! { RuleAction { Allow = "allow", Ask = "ask", Deny = "deny" } }

/// What a call of a tool does outside of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effects {
    /// Nothing: it only reads.
    Read,
    /// It changes something, which can be changed back.
    Write,
    /// It changes something for good: an approval is never remembered.
    Irreversible,
}

worded! { Effects + phrase {
    Read = "read" | "only reads",
    Write = "write" | "changes something",
    Irreversible = "irreversible" | "cannot be undone",
} }

words! { Effects:
    "read" => Effects::Read, "It only reads.";
    "write" => Effects::Write, "It changes something, which can be changed back.";
    "irreversible" => Effects::Irreversible, "It cannot be undone: calls are approved one at a time.";
}

/// What happens if nobody answers a question. It never approves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Otherwise {
    /// The call is not made.
    Deny,
    /// The run stops with `no_answer:WHO`.
    Stop,
    /// The run pauses, and the question stays open.
    Pause,
    /// This is the answer: a text, or one of the choices.
    Answer(Arc<str>),
}

impl FormatShape for Otherwise {
    fn schema() -> Value {
        json!({ "oneOf": [
            { "enum": ["deny", "stop", "pause"] },
            {
                "type": "object",
                "required": ["answer"],
                "properties": { "answer": NonBlankString::schema() },
                "additionalProperties": false,
            },
        ] })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match &node.value {
            TomlValue::Text(text) => match text.as_str() {
                "deny" => Some(Self::Deny),
                "stop" => Some(Self::Stop),
                "pause" => Some(Self::Pause),
                "approve" | "allow" => {
                    let what = "a timeout cannot approve a call";
                    cx.error(node.at, what, "deny, stop or pause");
                    None
                }
                _ => {
                    let what = format!("`{text}` is not allowed here");
                    cx.error(node.at, what, "deny, stop, pause, or { answer = \"…\" }");
                    None
                }
            },
            TomlValue::Table(_) => {
                let table = cx.table(node, &["answer"], &["answer"])?;
                let answer = table.get("answer")?;
                let text = cx.at_key("answer", |cx| NonBlankString::read(answer, cx))?.text;
                Some(Self::Answer(text.into()))
            }
            _ => {
                cx.wrong_type(node, "deny, stop, pause, or { answer = \"…\" }");
                None
            }
        }
    }
}

/// `true`, `false`, or a table that says when.
#[derive(Debug, Clone)]
pub(crate) enum ApproveKey {
    Always(bool),
    When(Box<ApproveTable>),
}

impl FormatShape for ApproveKey {
    fn schema() -> Value {
        json!({ "oneOf": [bool::schema(), ApproveTable::schema()] })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match &node.value {
            TomlValue::Boolean(truth) => Some(Self::Always(*truth)),
            TomlValue::Table(_) => {
                ApproveTable::read(node, cx).map(|table| Self::When(Box::new(table)))
            }
            _ => {
                cx.wrong_type(node, "true, false, or { who = \"…\", when = \"…\" }");
                None
            }
        }
    }
}

/// In a row of a script: whether the person approves, and with which arguments.
#[derive(Debug, Clone)]
pub(crate) enum ApproveReply {
    Verdict(bool),
    With(FreeTable),
}

impl FormatShape for ApproveReply {
    fn schema() -> Value {
        json!({ "oneOf": [bool::schema(), FreeTable::schema()] })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match &node.value {
            TomlValue::Boolean(truth) => Some(Self::Verdict(*truth)),
            TomlValue::Table(_) => FreeTable::read(node, cx).map(Self::With),
            _ => {
                cx.wrong_type(node, "true, false, or a table of other arguments");
                None
            }
        }
    }
}

/// The people of a scenario, and the rules about calls of tools.
#[derive(Debug, Default)]
pub struct People {
    pub named: BTreeMap<PersonName, Person>,
    /// The rules, in the file's order.
    pub rules: Vec<ApproveRule>,
    /// What people answer in an offline run: the first row whose conditions hold is used.
    pub script: Vec<PersonRow>,
}

/// A person who may be asked.
#[derive(Debug, Clone)]
pub struct Person {
    /// What the person decides about.
    pub description: Arc<str>,
    /// How long a question stays open; `None`: until it is answered.
    pub timeout: Option<Duration>,
    /// What happens if nobody answers; `None`: the default of the question.
    pub otherwise: Option<Otherwise>,
}

/// Who is asked, how long, and what happens if nobody answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    pub who: PersonName,
    /// How long the question stays open; `None`: until it is answered.
    pub timeout: Option<Duration>,
    /// What happens if nobody answers.
    pub otherwise: Otherwise,
}

impl Asking {
    /// Nobody: a rule answers.
    pub fn nobody() -> Self {
        Self { who: OPERATOR.into(), timeout: None, otherwise: Otherwise::Deny }
    }
}

/// The tool's own setting of approval.
#[derive(Debug)]
pub struct ToolApproval {
    /// Only if this holds.
    pub when: Option<Condition>,
    pub asking: Asking,
}

/// A rule about calls of tools.
#[derive(Debug)]
pub struct ApproveRule {
    /// A name, or the beginning of names and `*`.
    pub tool: String,
    pub agent: Option<AgentName>,
    /// Only if this holds.
    pub when: Option<Condition>,
    /// What it does.
    pub action: RuleAction,
    pub asking: Asking,
    /// The rule in one line, for the card and the log.
    pub text: Arc<str>,
}

impl ApproveRule {
    /// Whether it is about calls of this tool by this agent, apart from its condition.
    fn is_about(&self, tool: &ToolName, agent: &str) -> bool {
        names_tool(&self.tool, tool.as_str())
            && self.agent.as_ref().is_none_or(|own| own.as_str() == agent)
    }
}

/// A call of a tool, before it is decided whether it is made.
#[derive(Clone)]
pub struct CallToDecide<'c> {
    pub tool: &'c ToolName,
    /// The agent that calls it; empty for a worker or a page.
    pub agent: &'c str,
    /// The tool's own setting.
    pub own: Option<&'c ToolApproval>,
    /// Whether a person had the run remember an equal call.
    pub remembered: bool,
    /// What allows calls of this tool where no rule asks.
    pub allowed: Option<Arc<str>>,
    /// Who is asked where nothing else decides.
    pub asks_by_default: Option<&'c Asking>,
}

impl<'c> CallToDecide<'c> {
    /// A call about which only the rules decide.
    pub fn by_rules(tool: &'c ToolName, agent: &'c str) -> Self {
        Self { tool, agent, own: None, remembered: false, allowed: None, asks_by_default: None }
    }
}

/// What is decided about a call before it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallDecision {
    /// It is made, and nothing is recorded.
    Unasked,
    /// This rule allows it, or `None`: a remembered approval.
    Allowed(Option<Arc<str>>),
    /// This rule denies it.
    Denied(Arc<str>),
    /// A person is asked, because of this rule or of the tool's own setting.
    Asked(Asking, Option<Arc<str>>),
}

/// A condition that could not be evaluated: its place in the file, and the error.
pub type FailedCondition = (String, String);

impl People {
    /// What is decided about a call. `shown`: args, agent and flags; `fits`: whether the arguments fit the
    /// schema of the tool, for which conditions are written. Also the conditions that could not be
    /// evaluated.
    pub fn decide(
        &self,
        call: CallToDecide<'_>,
        shown: &CelBindings,
        fits: Result<(), String>,
    ) -> (CallDecision, Vec<FailedCondition>) {
        let CallToDecide { tool, agent, own, remembered, allowed, asks_by_default } = call;
        let mut failed = Vec::new();
        // `None`: it cannot be evaluated.
        let mut holds = |when: &Option<Condition>, place: &dyn Fn() -> String| match when {
            None => Some(true),
            Some(when) => match fits
                .clone()
                .and_then(|()| when.holds(shown).map_err(|error| error.to_string()))
            {
                Ok(holds) => Some(holds),
                Err(why) => {
                    failed.push((place(), why));
                    None
                }
            },
        };
        let mut asks = None;
        let mut allows = None;
        let rules = self.rules.iter().enumerate();
        for (index, rule) in rules.filter(|(_, rule)| rule.is_about(tool, agent)) {
            let applies = holds(&rule.when, &|| format!("approve[{index}].when"));
            match (rule.action, applies) {
                (RuleAction::Deny, Some(true)) => {
                    return (CallDecision::Denied(Arc::clone(&rule.text)), failed);
                }
                // It must not let the call through.
                (RuleAction::Deny, None) | (RuleAction::Ask, Some(true) | None) => {
                    asks = asks.or(Some(rule));
                }
                (RuleAction::Allow, Some(true)) => allows = allows.or(Some(rule)),
                (RuleAction::Allow, None) | (_, Some(false)) => {}
            }
        }
        let own = own.filter(|own| {
            holds(&own.when, &|| format!("tools.{tool}.approve.when")).unwrap_or(true)
        });
        let decision = match (remembered, own, asks, allows) {
            (true, ..) => CallDecision::Allowed(None),
            (_, Some(own), ..) => CallDecision::Asked(own.asking.clone(), None),
            (_, None, Some(rule), _) => {
                CallDecision::Asked(rule.asking.clone(), Some(Arc::clone(&rule.text)))
            }
            (_, None, None, Some(rule)) => CallDecision::Allowed(Some(Arc::clone(&rule.text))),
            (_, None, None, None) => match (allowed, asks_by_default) {
                (Some(by), _) => CallDecision::Allowed(Some(by)),
                (None, Some(asking)) => CallDecision::Asked(asking.clone(), None),
                (None, None) => CallDecision::Unasked,
            },
        };
        (decision, failed)
    }

    /// Whether the run can ask anybody anything.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.rules.is_empty()
    }
}

/// What a person answers in an offline run (`[[script]]` with `person`).
#[derive(Debug)]
pub struct PersonRow {
    pub person: PersonName,
    /// Only if this holds.
    pub when: Option<Condition>,
    /// How long the answer takes.
    pub latency: Latency,
    pub answer: ScriptedAnswer,
    /// Its place in the file: the number of the row, from 0.
    pub row: usize,
}

/// The answer of a scripted person.
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptedAnswer {
    /// Approves, perhaps with other arguments.
    Approve(Option<Arc<Value>>),
    /// Denies, with a reason.
    Deny(Arc<str>),
    /// Picks a choice, with a reason.
    Choose(Arc<str>, Arc<str>),
    /// Says a text.
    Text(Arc<str>),
    /// Hands over, with a message.
    HandOver(AgentName, Arc<str>),
    Contribute(Arc<Value>),
}

/// The names that the conditions of rows of people may use.
const ROW_NAMES: [&str; 12] = [
    "about", "tool", "args", "agent", "question", "choices", "role", "round", "nth", "flags",
    "inputs", "facts",
];

/// The names that the conditions of approvals may use.
pub(super) const APPROVE_NAMES: [&str; 3] = ["args", "agent", "flags"];

/// Builds the people of a file, its rules, and what people answer. Problems are reported to `cx`.
pub(crate) fn build(
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<People> {
    let named = cx.at_key("people", |cx| {
        let people = file.people.entries.iter();
        let people =
            people.map(|entry| cx.at_key(&entry.name, |cx| person(entry, file, scope, cx)));
        people.collect::<Vec<_>>()
    });
    let rules = cx.at_key("approve", |cx| {
        let tables = file.approve.0.iter().enumerate();
        tables
            .map(|(index, table)| cx.at_index(index, |cx| rule(table, file, scope, cx)))
            .collect::<Vec<_>>()
    });
    let rows = cx.at_key("script", |cx| {
        let rows = file.script.0.iter().enumerate();
        let rows = rows.filter(|(_, row)| row.value.person.is_some());
        rows.map(|(index, row)| cx.at_index(index, |cx| person_row(index, row, file, scope, cx)))
            .collect::<Vec<_>>()
    });
    Some(People {
        named: named.into_iter().collect::<Option<_>>()?,
        rules: rules.into_iter().collect::<Option<_>>()?,
        script: rows.into_iter().collect::<Option<_>>()?,
    })
}

fn person(
    entry: &NamedEntry<PersonTable>,
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<(PersonName, Person)> {
    let name = entry.name.as_str();
    let others = file.roles.names().chain(file.workers.names()).chain(file.agents.names());
    let tools = file.tools.iter().flat_map(|tools| tools.named.names());
    if let Some(other) = others.chain(tools).find(|other| *other == name) {
        let what = format!("`{other}` is already the name of a role, a worker, an agent or a tool");
        cx.error(entry.at, what, "choose another name");
    }
    let tools = file.tools.iter().flat_map(|tools| &tools.named.entries);
    if let Some(tool) = tools.into_iter().find(|tool| tool.name == format!("{ASK}{name}")) {
        let what = format!("`{}` is reserved: agents ask {name} with it", tool.name);
        cx.error(tool.at, what, "choose another name");
    }
    let table = entry.value.as_ref()?;
    let description = table.description.as_ref()?;
    let text = cx.at_key("description", |cx| scope.text(&description.text, description.at, cx));
    if let Some(Positioned { value: Otherwise::Answer(_), at }) = &table.otherwise
        && !gives_answers(name, file)
    {
        let what = format!("the answer has no effect: {name} only approves calls");
        cx.at_key("otherwise", |cx| cx.warn(*at, what, "deny, stop or pause"));
    }
    let person = Person {
        description: text.into(),
        timeout: table.timeout.map(|it| it.0),
        otherwise: table.otherwise.as_ref().map(|it| it.value.clone()),
    };
    Some((PersonName::from(name), person))
}

/// The person with this name in a key of the file; an unknown name is reported.
pub(crate) fn declared(
    name: &NonBlankString,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) -> Option<PersonName> {
    if !file.people.has(name.text.trim()) {
        report_unknown_name(name, "a person", file.people.names(), cx);
        return None;
    }
    Some(PersonName::from(name.text.trim()))
}

/// Who is asked, of a file's keys. The defaults are the person's, then `otherwise`.
fn asking(
    who: Option<&NonBlankString>,
    timeout: Option<OpenTime>,
    otherwise: Option<&Positioned<Otherwise>>,
    people: &PeopleTables,
    cx: &mut ReadContext,
) -> Asking {
    let name = who.map_or(OPERATOR, |who| who.text.trim());
    let person = people.entries.iter().find(|entry| entry.name == name);
    if let (Some(who), None) = (who, person)
        && name != OPERATOR
    {
        cx.at_key("who", |cx| {
            report_unknown_name(who, "a person", people.names().chain([OPERATOR]), cx);
        });
    }
    if let Some(Positioned { value: Otherwise::Answer(_), at }) = otherwise {
        cx.at_key("otherwise", |cx| {
            cx.error(*at, "an approval has no fixed answer", "deny, stop or pause");
        });
    }
    let person = person.and_then(|entry| entry.value.as_ref());
    let of_person = person.and_then(|it| it.otherwise.as_ref());
    let of_person = of_person.filter(|it| !matches!(it.value, Otherwise::Answer(_)));
    Asking {
        who: PersonName::from(name),
        timeout: timeout.or_else(|| person?.timeout).map(|it| it.0),
        otherwise: otherwise.or(of_person).map_or(Otherwise::Deny, |it| it.value.clone()),
    }
}

/// A condition of an approval; outer `None`: it has a mistake.
fn condition(
    when: Option<&NonBlankString>,
    names: &[&str],
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<Option<Condition>> {
    let Some(when) = when else { return Some(None) };
    let shown = ConditionScope { names, file, scope, of_run: false };
    cx.at_key("when", |cx| compile_condition(when, &shown, cx)).map(Some)
}

/// The approval of a tool. Outer `None`: it has a mistake; inner `None`: it needs none.
pub(crate) fn tool_approval(
    key: Option<&Positioned<ApproveKey>>,
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<Option<Arc<ToolApproval>>> {
    let condition = |when: Option<&NonBlankString>, cx: &mut ReadContext| {
        condition(when, &APPROVE_NAMES, file, scope, cx)
    };
    cx.at_key("approve", |cx| build_approval(key, &file.people, condition, cx))
}

pub(super) fn build_approval(
    key: Option<&Positioned<ApproveKey>>,
    people: &PeopleTables,
    condition: impl Fn(Option<&NonBlankString>, &mut ReadContext) -> Option<Option<Condition>>,
    cx: &mut ReadContext,
) -> Option<Option<Arc<ToolApproval>>> {
    let approval = match key.map(|key| &key.value) {
        None | Some(ApproveKey::Always(false)) => return Some(None),
        Some(ApproveKey::Always(true)) => {
            ToolApproval { when: None, asking: asking(None, None, None, people, cx) }
        }
        Some(ApproveKey::When(table)) => {
            let (who, otherwise) = (table.who.as_ref(), table.otherwise.as_ref());
            let when = condition(table.when.as_ref(), cx)?;
            ToolApproval { when, asking: asking(who, table.timeout, otherwise, people, cx) }
        }
    };
    Some(Some(Arc::new(approval)))
}

fn rule(
    table: &Positioned<RuleTable>,
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ApproveRule> {
    let RuleTable { tool, agent, when, .. } = &table.value;
    let condition = condition(when.as_ref(), &APPROVE_NAMES, file, scope, cx);
    if let Some(agent) = agent
        && !file.agents.has(agent.text.trim())
    {
        cx.at_key("agent", |cx| {
            report_unknown_name(agent, "an agent", file.agents.names(), cx);
        });
    }
    let built = build_rule(table, &file.people, condition, cx);
    let tool = tool.as_ref()?;
    warn_of_no_calls(tool, agent.as_ref(), file, cx);
    let tools = || {
        let named = file.tools.iter().flat_map(|tools| tools.named.names());
        named.chain(file.workers.names())
    };
    let named = tool.text.trim();
    if !has_inner_star(named)
        && !tools().any(|name| names_tool(named, name))
        && !split_name(named).is_some_and(|(server, _)| file.mcp.has(server))
    {
        cx.at_key("tool", |cx| report_unknown_name(tool, "a tool", tools(), cx));
    }
    built
}

/// Whether a `*` stands elsewhere than at the end.
fn has_inner_star(named: &str) -> bool {
    named.strip_suffix('*').unwrap_or(named).contains('*')
}

/// A rule, whether or not its tools and its agent are known. `condition`: outer `None`: it has a mistake.
pub(super) fn build_rule(
    table: &Positioned<RuleTable>,
    people: &PeopleTables,
    condition: Option<Option<Condition>>,
    cx: &mut ReadContext,
) -> Option<ApproveRule> {
    let RuleTable { tool, agent, when, r#do, who, timeout, otherwise } = &table.value;
    let asking = asking(who.as_ref(), *timeout, otherwise.as_ref(), people, cx);
    let given = [
        ("who", who.as_ref().map(|it| it.at)),
        ("timeout", timeout.map(|_| table.at)),
        ("otherwise", otherwise.as_ref().map(|it| it.at)),
    ];
    if r#do.is_some_and(|action| action != RuleAction::Ask) {
        for (key, at) in given.into_iter().filter_map(|(key, at)| Some((key, at?))) {
            let what = format!("`{key}` has no effect: nobody is asked");
            cx.at_key(key, |cx| cx.error(at, what, "remove it, or set do = \"ask\""));
        }
    }
    let (tool, action) = (tool.as_ref()?, (*r#do)?);
    if has_inner_star(tool.text.trim()) {
        let help = "give a whole name, or the beginning of names and one `*`";
        cx.at_key("tool", |cx| cx.error(tool.at, "`*` stands only at the end", help));
    }
    let agent = agent.as_ref().map(|agent| AgentName::from(agent.text.trim()));
    let mut text = format!("{} {}", action.word(), tool.text.trim());
    if let Some(agent) = &agent {
        text.push_str(&format!(" for {agent}"));
    }
    if let Some(when) = when {
        text.push_str(&format!(" when {}", when.text.trim()));
    }
    Some(ApproveRule {
        tool: tool.text.trim().to_owned(),
        agent,
        when: condition?,
        action,
        asking,
        text: text.into(),
    })
}

fn person_row(
    index: usize,
    row: &Positioned<ScriptTable>,
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<PersonRow> {
    let table = &row.value;
    let person = table.person.as_ref()?;
    let name = person.text.trim();
    if name != OPERATOR && !file.people.has(name) {
        cx.at_key("person", |cx| {
            report_unknown_name(person, "a person", file.people.names().chain([OPERATOR]), cx);
        });
    }
    for (key, at) in table.keys_of_models() {
        let what = format!("`{key}` is not allowed in a row with `person`");
        cx.at_key(key, |cx| cx.error(at, what, "remove it, or remove `person`"));
    }
    let when = condition(table.when.as_ref(), &ROW_NAMES, file, scope, cx);
    let filled = |text: Option<&StringField>, cx: &mut ReadContext| -> Arc<str> {
        let text = text.map(|text| cx.at_key("text", |cx| scope.text(&text.text, text.at, cx)));
        text.unwrap_or_default().into()
    };
    let text = filled(table.text.as_ref(), cx);
    let values = |free: &FreeTable, cx: &mut ReadContext| -> Arc<Value> {
        let map: Map<String, Value> =
            fill_table(free, &mut |text, at| scope.value_of(text, at, cx));
        Arc::new(Value::Object(map))
    };
    let approve = table.approve.as_ref().map(|it| &it.value);
    let answer = match (approve, &table.choice, &table.hand_over_to, &table.reply) {
        (Some(ApproveReply::Verdict(true)), None, None, None) => ScriptedAnswer::Approve(None),
        (Some(ApproveReply::Verdict(false)), None, None, None) => ScriptedAnswer::Deny(text),
        (Some(ApproveReply::With(args)), None, None, None) => {
            ScriptedAnswer::Approve(Some(cx.at_key("approve", |cx| values(args, cx))))
        }
        (None, Some(choice), None, None) => ScriptedAnswer::Choose(choice.text.trim().into(), text),
        (None, None, Some(agent), None) => {
            if !file.agents.has(agent.text.trim()) {
                cx.at_key("hand_over_to", |cx| {
                    report_unknown_name(agent, "an agent", file.agents.names(), cx);
                });
            }
            ScriptedAnswer::HandOver(AgentName::from(agent.text.trim()), text)
        }
        (None, None, None, Some(reply)) => {
            ScriptedAnswer::Contribute(cx.at_key("reply", |cx| values(&reply.value, cx)))
        }
        (None, None, None, None) if table.text.is_some() => ScriptedAnswer::Text(text),
        _ => {
            let what = "the row needs exactly one answer";
            cx.error(row.at, what, "write one of approve, choice, text, hand_over_to and reply");
            return None;
        }
    };
    Some(PersonRow {
        person: PersonName::from(name),
        when: when?,
        latency: table.latency,
        answer,
        row: index,
    })
}
