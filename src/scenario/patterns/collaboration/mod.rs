//! The settings of a collaboration (collaboration source document), their file format, and the fields
//! of the outcome that expectations may use.

pub(crate) mod check;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use serde_json::json;

use crate::base::name::{FlagName, InputName, PersonName, RoleName, ToolName};
use crate::base::time;
use crate::base::worded;
use crate::scenario::cel::Condition;
use crate::scenario::patterns::row::{LabelledText, LimitField, OutcomeField, Spec};
use crate::scenario::read::ReadContext;
use crate::scenario::read::amount::Number;
use crate::scenario::read::shape::{
    BoundedList, FormatShape, NonBlankString, ObjectSchema, Positioned, Requirement,
    join_doc_lines, record, words,
};
use crate::scenario::read::tree::{TomlNode, TomlValue};
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::script::{PromptTemplate, ScriptStep};
use crate::scenario::spec::tool::ToolSpec;
use crate::scenario::tools::agent::{OutsideAgent, OutsideCaller};

/// `pattern = "collaboration"`.
#[derive(Debug)]
pub struct CollaborationSpec {
    /// Limits as in the collaboration source document.
    pub budget: CollaborationBudget,
    /// The roles in speaking order (`TEAM_SEQUENCE` in the source document).
    pub sequence: Vec<RoleName>,
    /// Whether the seats of a round call the model in parallel.
    pub concurrency: Concurrency,
    /// What a seat reads of what the others said; `None`: the file does not say it.
    pub share: Option<Share>,
    /// The rows that decide a round; none: those of the collaboration source document.
    pub decide: Arc<[DecideRow]>,
    /// The roles by name, including every name of `sequence`.
    pub roles: BTreeMap<RoleName, RoleSpec>,
    /// The person who decides if no round does.
    pub on_no_decision: Option<PersonName>,
    /// System prompt of the launch brief.
    pub finalize_prompt: PromptTemplate,
    /// Inputs that are copied to `team_summary`, such as `report_date` and `region`.
    pub summary_inputs: Vec<InputName>,
    /// The agent of another program that writes the launch brief; `None`: a model.
    pub finalize_agent: Option<Arc<OutsideAgent>>,
}

/// Limits of a collaboration run, named as in the collaboration source document.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct CollaborationBudget {
    /// Maximum number of rounds, at least 1.
    pub max_rounds: u32,
    /// Maximum number of contributions.
    pub max_messages: u32,
    /// Time limit of the whole run, in the log in milliseconds; pauses are not counted.
    #[serde(rename = "max_ms", with = "time::as_millis")]
    #[schemars(with = "u64")]
    pub max_seconds: Duration,
    /// Votes for `go` that are needed for a decision, at least 1.
    pub min_go_votes: u32,
}

/// Whether the seats of a round call the model in parallel. The outcome is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// All in parallel: a round takes as long as its slowest seat.
    Parallel,
    /// One seat after another.
    Sequential,
}

impl CollaborationSpec {
    /// Whether a row that decides reads this name.
    pub(crate) fn reads(&self, wanted: &str) -> bool {
        let mut names = self.decide.iter().flat_map(|row| row.when.names());
        names.any(|name| name.path.first() == Some(&wanted))
    }
}

/// A row that may decide a round. The first row whose condition holds decides.
#[derive(Debug)]
pub struct DecideRow {
    pub when: Condition,
    /// The decision if it holds.
    pub decision: Decision,
}

/// A role at the table.
#[derive(Debug, Clone)]
pub struct RoleSpec {
    /// Its system prompt, without the required reply format.
    pub prompt: PromptTemplate,
    /// The person who has the seat; `None`: a model or an agent.
    pub person: Option<PersonName>,
    /// The agent of another program that has the seat; `None`: a model or a person.
    pub agent: Option<Arc<OutsideAgent>>,
    /// Its weight in the conditions of rows that decide.
    pub weight: f64,
    /// Whether its block is `no_go`.
    pub veto: bool,
    /// The flag that switches it on and off, if any.
    pub role_flag: Option<RoleFlag>,
}

/// The flag of a role, and what happens while it is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleFlag {
    pub flag: FlagName,
    /// What happens while the flag is off.
    pub when_off: WhenOff,
}

/// What happens to a role whose flag is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenOff {
    /// Its seat stays empty until the flag is on.
    Skip,
    /// The run stops with `agent_denied:<role>` at the role's turn.
    Deny,
}

impl Spec for CollaborationSpec {
    fn name(&self) -> &'static str {
        "collaboration"
    }

    fn max_time(&self) -> Duration {
        self.budget.max_seconds
    }

    fn size(&self) -> (u64, &'static str) {
        (self.roles.len() as u64, "role")
    }

    fn limits(&self) -> Vec<LimitField> {
        let budget = &self.budget;
        let mut limits = vec![
            LimitField::new("budget.max_rounds", "Max rounds", budget.max_rounds),
            LimitField::new("budget.max_messages", "Max messages", budget.max_messages),
            LimitField::max_seconds(budget.max_seconds),
        ];
        if self.decide.is_empty() || self.reads("min_go_votes") {
            let votes = budget.min_go_votes;
            limits.push(LimitField::new("budget.min_go_votes", "Go votes needed", votes));
        }
        limits
    }

    fn preview(&self) -> Vec<LabelledText> {
        let budget = &self.budget;
        let rule = match self.decide.len() {
            0 => format!("needs {} go, no block", budget.min_go_votes),
            1 => "one row decides".to_owned(),
            rows => format!("the first of {rows} rows decides"),
        };
        let limits = format!(
            "{} rounds, {} messages, {} s; {rule}",
            budget.max_rounds,
            budget.max_messages,
            budget.max_seconds.as_secs(),
        );
        let seats = self.sequence.iter().map(|name| {
            let role = self.roles.get(name);
            let behind = role.and_then(|role| role.role_flag.as_ref());
            let veto = role.is_some_and(|role| role.veto);
            let person = role.and_then(|role| role.person.as_ref());
            let agent = role.and_then(|role| role.agent.as_ref());
            let name = match (person, agent) {
                (Some(person), _) => format!("{name}, the person {person}"),
                (None, Some(agent)) => format!("{name}, the agent {}", agent.name),
                (None, None) => name.to_string(),
            };
            let name = if veto { format!("{name}, with a veto") } else { name };
            match behind.map(|behind| (&behind.flag, behind.when_off)) {
                None => name,
                Some((flag, WhenOff::Skip)) => format!("{name}, while flag {flag} is on"),
                Some((flag, WhenOff::Deny)) => {
                    format!("{name}; the run stops at its turn while flag {flag} is off")
                }
            }
        });
        let how = match self.concurrency {
            Concurrency::Parallel => "all seats in parallel",
            Concurrency::Sequential => "one seat after another",
        };
        let mut lines = vec![LabelledText::new("limits", limits)];
        lines.extend(LabelledText::list("seats", seats));
        lines.push(LabelledText { minor: true, ..LabelledText::new("order", how) });
        lines
    }

    fn check_boundary(&self, at: &str, _: &BTreeMap<ToolName, ToolSpec>) -> Result<(), String> {
        let mut parts = at.splitn(3, ':');
        if !matches!(parts.next(), Some("round" | "message" | "finalize")) {
            let there = "round:2, message:2:ROLE, finalize";
            return Err(format!("never reached here; use {there}"));
        }
        let round = parts.next().and_then(|round| round.parse::<u32>().ok()).unwrap_or(1);
        let most = self.budget.max_rounds;
        if round > most {
            return Err(format!("never reached: budget.max_rounds is {most}"));
        }
        // A seat behind a flag may be empty; then its message counts for another seat.
        let most = self.budget.max_messages;
        let empty = self.roles.values().any(|role| role.role_flag.is_some());
        let before = u64::from(round - 1) * self.sequence.len() as u64;
        if !empty && before >= u64::from(most) {
            return Err(format!("never reached: budget.max_messages is {most}"));
        }
        match parts.next() {
            Some(seat) => {
                let (role, nth) = match seat.split_once('#') {
                    None => (seat, Some(1)),
                    // The first seat of a role has no `#1` in its name.
                    Some((role, nth)) => (role, nth.parse().ok().filter(|nth| *nth > 1)),
                };
                let seats = self.sequence.iter().filter(|name| name.as_str() == role).count();
                if nth.is_some_and(|nth: usize| nth <= seats) {
                    return Ok(());
                }
                if seats > 0 {
                    return Err(format!("never reached: {role} has {seats} seats in the sequence"));
                }
                let names: Vec<&str> = self.sequence.iter().map(|name| name.as_str()).collect();
                Err(format!("no such role; use {}", names.join(", ")))
            }
            None => Ok(()),
        }
    }

    fn model_callers(&self) -> Vec<ModelCaller> {
        let is_model =
            |role: &&RoleName| self.roles.get(*role).is_none_or(|it| it.person.is_none());
        let seats = self.sequence.iter().filter(is_model).cloned().map(ModelCaller::Role);
        seats.chain([ModelCaller::Step(ScriptStep::Finalize)]).collect()
    }

    fn outside_callers(&self) -> Vec<OutsideCaller> {
        let seats = self.roles.iter().filter_map(|(name, role)| {
            let caller = ModelCaller::Role(name.clone());
            Some(OutsideCaller { caller, agent: role.agent.clone()? })
        });
        let brief = self.finalize_agent.iter().map(|agent| OutsideCaller {
            caller: ModelCaller::Step(ScriptStep::Finalize),
            agent: Arc::clone(agent),
        });
        seats.chain(brief).collect()
    }

    fn called_people(&self) -> BTreeSet<PersonName> {
        self.roles.values().filter_map(|role| role.person.clone()).collect()
    }

    fn decides(&self) -> bool {
        true
    }
}

record! {
    /// The order of the roles and the launch brief.
    struct CollaborationTable => {
        /// The roles in speaking order; each entry is a seat.
        sequence: Positioned<BoundedList<NonBlankString, 1, 64>> = needed,
        /// Whether the seats of a round call the model in parallel. The outcome is the same.
        concurrency: Concurrency = default(Concurrency::Parallel),
        /// What a seat reads of what the others said in the last two rounds. Default: arguments.
        share: Share = optional,
        /// The rows that decide a round, instead of budget.min_go_votes; the first one whose
        /// condition holds does. Without one, the next round begins.
        decide: BoundedList<DecideTable, 0, 64> = default(BoundedList(Vec::new())),
        /// Who decides if no round does: a person of [people]. Default: nobody, and the run stops
        /// with max_rounds_reached.
        on_no_decision: NoDecisionTable = optional,
        /// System prompt of the launch brief at the end.
        finalize_prompt: NonBlankString = needed_or_file,
        /// The model that writes the launch brief. Default: that of [model].
        finalize_model: NonBlankString = optional,
        /// The agent of [agents] that writes the launch brief, in place of a model.
        finalize_agent: NonBlankString = optional,
        /// Inputs that are copied to `team_summary` of the outcome.
        summary: BoundedList<NonBlankString, 0, 64> = default(BoundedList(Vec::new())),
    }
}

record! {
    /// What happens if no round decides.
    struct NoDecisionTable => {
        /// The person who is asked to decide, by the name in [people].
        ask: NonBlankString = needed,
    }
}

record! {
    /// A row that may decide a round. A role with a veto comes first: see roles.NAME.veto.
    struct DecideTable => {
        /// The condition: CEL over stances (stances.go, stances.caution and stances.block have the
        /// roles with that stance), weight (weight.go, …: the sum of their weights), confidences
        /// (confidences.NAME), seats (the roles that contributed), round, max_rounds and
        /// min_go_votes.
        when: NonBlankString = needed,
        /// The decision if the condition holds.
        decision: Decision = needed,
    }
}

words! { Decision:
    "go" => Decision::Go, "Start.";
    "go_with_caution" => Decision::GoWithCaution, "Start with care.";
    "no_go" => Decision::NoGo, "Do not start.";
}

words! { Share:
    "stances" => Share::Stances, "Stance and confidence of each seat, as in the source document.";
    "arguments" => Share::Arguments, "Summary and actions too.";
}

words! { Concurrency:
    "parallel" => Concurrency::Parallel, "All in parallel: a round takes as long as its slowest seat.";
    "sequential" => Concurrency::Sequential, "One after another.";
}

record! {
    /// A role at the table.
    struct RoleTable rule json!({
        "anyOf": [
            { "required": ["prompt"] }, { "required": ["prompt_file"] }, { "required": ["person"] },
        ],
        "if": { "required": ["person"] },
        "then": { "properties": { "prompt": false, "prompt_file": false, "model": false, "agent": false } },
    }) => {
        /// Its system prompt; the required reply format is appended. `{{input}}` is filled in.
        prompt: NonBlankString = needed_or_file_unless_person,
        /// The person of [people] who has this seat: no model is called, and the person fills in a
        /// form. Such a role has no prompt and no model.
        person: NonBlankString = optional,
        /// The flag that switches the role on and off.
        flag: NonBlankString = optional,
        /// What happens while that flag is off. Default: skip.
        when_off: Positioned<WhenOff> = optional,
        /// Its weight in the conditions of collaboration.decide. Default: 1.
        weight: Positioned<Number<0, 1_000>> = optional,
        /// Whether its block is a `no_go`, before the rows of collaboration.decide and whatever the
        /// others say.
        veto: bool = default(false),
        /// The model of this role, such as anthropic/claude-haiku-4-5. Default: that of [model].
        model: NonBlankString = optional,
        /// The agent of [agents] that has this seat, in place of a model: one with `acp` or `ag_ui`.
        agent: NonBlankString = optional,
    }
}

words! { WhenOff:
    "skip" => WhenOff::Skip, "The seat stays empty until the flag is on.";
    "deny" => WhenOff::Deny, "The run stops with agent_denied at its turn.";
}

/// The fields, in the order of an outcome.
pub(crate) const OUTCOME_FIELDS: &[OutcomeField] = &[
    OutcomeField::new("answer", "string|null", "The launch brief. With success."),
    OutcomeField::new(
        "final_decision",
        "string|null",
        "`go`, `go_with_caution` or `no_go`. With success.",
    ),
    OutcomeField::new(
        "decided_by",
        "object",
        "What decided where it was not the rule of the source document: `row` (its number, from 1) and `when`, or `veto` (a role), or `person` and `reason`.",
    ),
    OutcomeField::new("rounds_used", "integer", "Rounds that were closed. With success."),
    OutcomeField::new(
        "team_summary",
        "object|null",
        "The inputs that the scenario names, and `stances` and `conflicts` of the last round. With success.",
    ),
    OutcomeField::new("raw_contribution", "any", "The contribution that stopped the run."),
    OutcomeField::new(
        "unused_contributions",
        "array",
        "Valid contributions that came after another seat had stopped the run. In a live run.",
    ),
    OutcomeField::new(
        "brief",
        "string",
        "The brief of a table that did not decide: what keeps the seats apart. With `max_rounds_reached`, in a live run.",
    ),
    OutcomeField::new("trace", "array", "Each contribution and each closed round, in order."),
    OutcomeField::new("history", "array", "Each closed round with its whole contributions."),
];

/// What a seat reads of what the others said in the last rounds.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// Their stances and confidence, as in the collaboration source document.
    #[default]
    Stances,
    /// Their arguments too: summary and actions.
    Arguments,
}

impl Share {
    /// Whether it is the rule of the source document.
    pub fn is_stances(&self) -> bool {
        *self == Self::Stances
    }
}

/// The decision of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Start.
    Go,
    /// Start with care.
    GoWithCaution,
    /// Do not start.
    NoGo,
}

worded! { Decision + ALL + phrase + Display {
    Go = "go", GoWithCaution = "go_with_caution" | "go with caution", NoGo = "no_go" | "no go",
} }
