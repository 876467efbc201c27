//! The settings of research (research source document), their file format and limits, and the
//! fields of the outcome that expectations may use.

pub(crate) mod check;
pub(crate) mod script;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::name::{FlagName, InputName, ToolName};
use crate::base::seeded_random::Latency;
use crate::base::time;
use crate::base::worded;
use crate::scenario::patterns::row::{LabelledText, LimitField, OutcomeField, Spec};
use crate::scenario::read::ReadContext;
use crate::scenario::read::amount::Fraction;
use crate::scenario::read::format::BudgetTable;
use crate::scenario::read::names::Domain;
use crate::scenario::read::shape::{
    BoundedList, FormatShape, IntegerField, NonBlankString, ObjectSchema, Positioned, Requirement,
    StringField, join_doc_lines, record, words,
};
use crate::scenario::read::tree::{TextSpan, TomlNode, TomlValue};
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::script::{PromptTemplate, ScriptStep};
use crate::scenario::spec::tool::ToolSpec;

/// `pattern = "research"`.
#[derive(Debug)]
pub struct ResearchSpec {
    /// Limits as in the research source document, clamped in the same way.
    pub budget: ResearchBudget,
    /// The question to answer.
    pub question: String,
    /// Inputs that the planner sees together with the question, such as `report_date`.
    pub echo: Vec<InputName>,
    /// Domains that may be read at all (the policy allowlist), in lower case.
    pub allowed_domains_policy: Vec<String>,
    /// Domains that are switched on (the execution allowlist), in lower case; a flag may remove
    /// one.
    pub allowed_domains_execution: Vec<String>,
    /// Settings of domains, in the file's order.
    pub sources: Vec<SourceRule>,
    /// Who makes the plan.
    pub plan: StepSpec,
    /// Who takes notes.
    pub notes: StepSpec,
    /// Who writes the answer.
    pub answer: StepSpec,
    /// Text before an answer by rule; may be empty.
    pub preface: String,
    /// Text after an answer by rule; may be empty.
    pub closing: String,
    /// When two addresses are the same page; `None`: not in the file.
    pub same_page: Option<SamePage>,
    /// Maximum number of characters of a page that the model sees.
    pub page_chars: u32,
    /// Maximum number of notes per page that a model may propose; the rest is dropped.
    pub notes_per_page: u32,
    /// Maximum number of notes per page that a rule takes: the best ones.
    pub notes_by_rule: u32,
    /// What happens if a quote is not found on its page.
    pub misquotes: MisquotePolicy,
    /// Domains that must support a claim, at least 1.
    pub min_independent_sources: u32,
    /// Age in days beyond which a page is not used; `None` means no limit.
    pub max_age_days: Option<u32>,
    /// The date of the question, `YYYY-MM-DD`; `None`: the date on which the run starts.
    pub as_of: Option<String>,
    /// The pause at each step and each source of an offline run.
    pub pace: Latency,
}

/// Default of `notes_per_page`.
pub const NOTES_PER_PAGE: u32 = 20;

/// Default of `notes_per_page` for a rule: it finds a sentence in most paragraphs, so one page
/// could take all the room.
pub const NOTES_BY_RULE: u32 = 3;

/// Limits of research, named as in the research source document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ResearchBudget {
    /// Maximum number of steps in a plan.
    pub max_steps: u32,
    /// Maximum number of sources that are kept, 1 to 20.
    pub max_urls: u32,
    /// Maximum number of pages that are read, 1 to 10.
    pub max_read_pages: u32,
    /// Maximum number of notes, 1 to 20.
    pub max_notes: u32,
    /// Maximum length of the answer in characters, 120 to 2000.
    pub max_answer_chars: u32,
    /// Time limit of the whole run, in the log in milliseconds; pauses are not counted.
    #[serde(rename = "max_ms", with = "time::as_millis")]
    #[schemars(with = "u64")]
    pub max_seconds: Duration,
}

impl ResearchBudget {
    /// Default timeout of one attempt of `read_source`: its share of the run's time, with two
    /// shares left for everything else, so that pages that hang cannot use up the run.
    pub fn read_timeout(&self) -> Duration {
        let part = self.max_seconds / self.max_read_pages.saturating_add(2);
        part.clamp(Duration::from_secs(2), Duration::from_secs(10))
    }
}

/// The scenario's rules for a domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "SourceHead")]
pub struct SourceRule {
    /// The domain, in lower case.
    pub domain: String,
    /// How much it is trusted, from 0 to 1.
    pub trust: f64,
    /// The flag that removes it from the execution allowlist while it is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<FlagName>,
}

/// Who does a step of research, and with which prompt.
#[derive(Debug, Clone)]
pub struct StepSpec {
    /// Who does it.
    pub by: StepMode,
    /// System prompt of the model, without the required reply format.
    pub prompt: PromptTemplate,
}

/// Who does a step, as in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepMode {
    Model,
    /// A rule of the program.
    Rule,
    /// The model in a live run, otherwise a rule.
    ModelWhenLive,
}

impl StepMode {
    /// Who does the step in a live or an offline run.
    pub fn executor(self, live: bool) -> StepExecutor {
        match self {
            Self::Model => StepExecutor::Model,
            Self::ModelWhenLive if live => StepExecutor::Model,
            Self::Rule | Self::ModelWhenLive => StepExecutor::Rule,
        }
    }
}

impl ResearchSpec {
    /// The settings of a domain, if the scenario has any.
    pub fn rule(&self, domain: &str) -> Option<&SourceRule> {
        self.sources.iter().find(|rule| rule.domain == domain)
    }

    /// Trust in a domain; 1 by default.
    pub fn trust(&self, domain: &str) -> f64 {
        self.rule(domain).map_or(1.0, |rule| rule.trust)
    }
}

impl Spec for ResearchSpec {
    fn name(&self) -> &'static str {
        "research"
    }

    fn page_hosts(&self) -> &[String] {
        &self.allowed_domains_execution
    }

    fn max_time(&self) -> Duration {
        self.budget.max_seconds
    }

    fn size(&self) -> (u64, &'static str) {
        (self.allowed_domains_policy.len() as u64, "domain")
    }

    fn limits(&self) -> Vec<LimitField> {
        vec![LimitField::max_seconds(self.budget.max_seconds)]
    }

    fn preview(&self) -> Vec<LabelledText> {
        let budget = &self.budget;
        let limits = format!(
            "{} sources, {} pages, {} notes, {} characters, {} s",
            budget.max_urls,
            budget.max_read_pages,
            budget.max_notes,
            budget.max_answer_chars,
            budget.max_seconds.as_secs(),
        );
        let on = |domain: &String| self.allowed_domains_execution.contains(domain);
        let domains = self.allowed_domains_policy.iter().map(|domain| {
            let switched = if on(domain) { "" } else { ", switched off" };
            format!("{domain}, trust {}{switched}", self.trust(domain))
        });
        let mut lines = vec![
            LabelledText::new("question", self.question.as_str()),
            LabelledText::new("limits", limits),
        ];
        lines.extend(LabelledText::list("domains", domains));
        lines
    }

    /// Checks `plan`, the steps, and `source:PLACE`.
    fn check_boundary(&self, at: &str, _: &BTreeMap<ToolName, ToolSpec>) -> Result<(), String> {
        let steps = ResearchStep::ALL.map(ResearchStep::word);
        if at == "plan" || steps.contains(&at) {
            return Ok(());
        }
        let most = self.budget.max_urls;
        let place = at.strip_prefix("source:").and_then(|place| place.parse::<u32>().ok());
        match place {
            Some(place) if (1..=most).contains(&place) => Ok(()),
            Some(0) => Err("never reached: sources are counted from 1".to_owned()),
            Some(_) => Err(format!("never reached: budget.max_urls is {most}")),
            None => {
                let there = steps.join(", ");
                Err(format!("never reached here; use plan, {there}, source:1"))
            }
        }
    }

    /// The steps that the model does in a live run.
    fn model_callers(&self) -> Vec<ModelCaller> {
        let steps = [
            (self.plan.by, ModelCaller::Step(ScriptStep::Plan)),
            (self.notes.by, ModelCaller::Step(ScriptStep::Notes)),
            (self.answer.by, ModelCaller::Step(ScriptStep::Synthesize)),
        ];
        let by_model = |(who, caller): (StepMode, _)| {
            (who.executor(true) == StepExecutor::Model).then_some(caller)
        };
        steps.into_iter().filter_map(by_model).collect()
    }

    fn cites(&self) -> bool {
        true
    }

    fn attempt_time(&self, tool: &ToolName) -> Option<Duration> {
        (tool.as_str() == READ).then(|| self.budget.read_timeout())
    }

    fn reads_flag(&self, flag: &FlagName) -> bool {
        let asks = [&self.plan, &self.notes, &self.answer].map(|step| step.by != StepMode::Rule);
        asks.contains(&true) || self.sources.iter().any(|rule| rule.flag.as_ref() == Some(flag))
    }
}

record! {
    /// The question, the domains that may be read, and who does each step.
    struct ResearchTable => {
        /// The question to answer. `{{input}}` is filled in.
        question: NonBlankString = needed,
        /// Inputs that the planner sees together with the question.
        echo: BoundedList<NonBlankString, 0, 64> = default(BoundedList(Vec::new())),
        /// Domains that may be read at all (the policy allowlist): hosts, each with its port if its
        /// URLs have one.
        allowed_domains_policy: Positioned<BoundedList<Domain, 0, 500>> = needed,
        /// Domains that are switched on (the execution allowlist). Sources of other domains are
        /// denied.
        allowed_domains_execution: Positioned<BoundedList<Domain, 0, 500>> = needed,
        /// Who makes the plan of steps.
        plan: Positioned<StepMode> = default(Positioned::not_in_file(StepMode::Model)),
        /// Who takes notes of a page.
        notes: Positioned<StepMode> = default(Positioned::not_in_file(StepMode::Model)),
        /// Who writes the answer from the notes.
        answer: Positioned<StepMode> = default(Positioned::not_in_file(StepMode::Model)),
        /// System prompt of the plan; the required reply format is appended. There is a default.
        plan_prompt: NonBlankString = optional_or_file,
        /// System prompt of the notes; the required reply format is appended. There is a default.
        notes_prompt: NonBlankString = optional_or_file,
        /// System prompt of the answer; the required reply format is appended. There is a default.
        answer_prompt: NonBlankString = optional_or_file,
        /// The model that plans. Default: that of [model].
        plan_model: NonBlankString = optional,
        /// The model that takes notes. Default: that of [model].
        notes_model: NonBlankString = optional,
        /// The model that writes the answer. Default: that of [model].
        answer_model: NonBlankString = optional,
        /// Text before an answer by rule.
        preface: StringField = optional,
        /// Text after an answer by rule.
        closing: StringField = optional,
        /// When two addresses are the same page, so that the second is dropped as a duplicate. Default:
        /// query.
        same_page: SamePage = optional,
        /// Maximum number of characters of a page that the model sees.
        page_chars: IntegerField<200, 1_000_000> = default(IntegerField(24_000)),
        /// Maximum number of notes per page. If it is not set, a rule takes the best 3.
        notes_per_page: Positioned<IntegerField<1, 20>> = default(Positioned::not_in_file(IntegerField(NOTES_PER_PAGE))),
        /// What happens if a quote is not found on its page.
        misquotes: MisquotePolicy = default(MisquotePolicy::Stop),
        /// Domains that must support a claim; with fewer it is marked unconfirmed.
        min_independent_sources: Positioned<IntegerField<1, 20>> = default(Positioned::not_in_file(IntegerField(1))),
        /// Age in days beyond which a page is not used. 0: no limit.
        max_age_days: IntegerField<0, 36_500> = default(IntegerField(0)),
        /// The date of the question, as YYYY-MM-DD. `{{input}}` is filled in. Default: the date on
        /// which the run starts.
        as_of: AsOf = optional,
        /// A pause at each step and each source of an offline run, so that it can be watched: `300ms`,
        /// or `200ms..400ms` for a random time from the seed. Live and instant runs leave it out.
        pace: Latency = default(Latency::default()),
    }
}

words! { StepMode:
    "model" => StepMode::Model, "The model; in an offline run, the script.";
    "rule" => StepMode::Rule, "A rule of the program, without a model.";
    "model_when_live" => StepMode::ModelWhenLive, "The model in a live run, otherwise the rule.";
}

words! { SamePage:
    "query" => SamePage::Query, "Path and query are the same; parameters that only track visitors, such as utm_source, make no difference.";
    "path" => SamePage::Path, "The path is the same, whatever the query, as in the research source document.";
}

words! { MisquotePolicy:
    "stop" => MisquotePolicy::Stop, "The run stops with verification_failed:quote_not_in_source.";
    "refuse" => MisquotePolicy::Refuse, "The note is refused and counted, and the run continues.";
}

record! {
    /// Settings of one domain.
    struct SourceTable => {
        /// Trust in the domain, from 0 to 1: sources are read in the order of score times trust.
        trust: Fraction = default(Fraction(1.0)),
        /// A flag that takes it off the execution allowlist while it is off.
        flag: NonBlankString = optional,
    }
}

/// A date, or a text with an input that is one.
#[derive(Debug, Clone)]
pub(crate) struct AsOf {
    pub at: TextSpan,
    pub text: String,
}

impl FormatShape for AsOf {
    fn schema() -> Value {
        NonBlankString::schema()
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match &node.value {
            TomlValue::Date(day) => Some(Self { at: node.at, text: day.clone() }),
            _ => {
                NonBlankString::read(node, cx).map(|NonBlankString { at, text }| Self { at, text })
            }
        }
    }
}

pub(crate) fn budget(table: &BudgetTable) -> ResearchBudget {
    ResearchBudget {
        max_seconds: table.max_seconds(25),
        max_steps: table.max_steps.value.0,
        max_urls: table.max_urls.0,
        max_read_pages: table.max_read_pages.0,
        max_notes: table.max_notes.0,
        max_answer_chars: table.max_answer_chars.0,
    }
}

/// The number of steps in every plan.
const STEPS: u32 = ACTIONS.len() as u32;

pub(super) fn warn_of_few_steps(budget: &BudgetTable, cx: &mut ReadContext) {
    let steps = &budget.max_steps;
    if steps.value.0 < STEPS {
        cx.at_key("budget.max_steps", |cx| {
            let what = format!("every plan will be refused: a plan has {STEPS} steps");
            cx.warn(steps.at, what, format!("set it to at least {STEPS}"));
        });
    }
}

/// The fields, in the order of an outcome.
pub(crate) const OUTCOME_FIELDS: &[OutcomeField] = &[
    OutcomeField::new("outcome", "string", "`grounded_research_answer`. With success."),
    OutcomeField::new("answer", "string|null", "The answer. With success."),
    OutcomeField::new("citations", "array", "The ids of the cited notes. With success."),
    OutcomeField::new(
        "citation_details",
        "array",
        "The cited notes: `id`, `url`, `title`, `published_at`. With success.",
    ),
    OutcomeField::new(
        "sentences",
        "array",
        "Each sentence of the answer with the notes that support it. With success.",
    ),
    OutcomeField::new(
        "aggregate",
        "object",
        "The query, and how many pages, notes and citations there were. With success.",
    ),
    OutcomeField::new("details", "any", "What was expected of a refused plan, and what came."),
    OutcomeField::new("raw_plan", "any", "The plan that was refused."),
    OutcomeField::new("denied_sources", "array", "Sources that the policy denied."),
    OutcomeField::new("raw_answer", "any", "The answer that was refused."),
    OutcomeField::new("verification", "object", "What the verification of the quotes found."),
    OutcomeField::new(
        "dropped_sources",
        "array",
        "Results of the search that were dropped, each with its reason.",
    ),
    OutcomeField::new(
        "skipped_sources",
        "array",
        "Sources that were not read, each with its reason.",
    ),
    OutcomeField::new("refused_notes", "array", "Notes that were refused, each with its reason."),
    OutcomeField::new(
        "cut_notes",
        "array",
        "Pages of which notes were cut, by `notes_per_page` or by `max_notes`.",
    ),
    OutcomeField::new("unsearched", "any", "What the search left out."),
    OutcomeField::new(
        "unanswered",
        "array",
        "Parts of the question that no note says anything about.",
    ),
    OutcomeField::new("conflicts", "array", "Notes that contradict each other."),
    OutcomeField::new("unconfirmed", "array", "Notes that too few independent sources confirm."),
    OutcomeField::new("notes", "array", "The notes with their quotes."),
    OutcomeField::new("trace", "array", "Each step with its counts."),
    OutcomeField::new("history", "array", "Each step with its data."),
];

/// The tool that searches for sources, named as in the research source document.
pub const SEARCH: &str = "search_sources";

/// The tool that reads a source, named as in the research source document.
pub const READ: &str = "read_source";

/// Who does a step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepExecutor {
    /// The model.
    Model,
    /// A rule of the program.
    Rule,
}

/// When two addresses are the same page. A fragment and a slash at the end make no difference.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SamePage {
    /// The path is the same: the research source document drops the query.
    #[default]
    Path,
    /// Path and query are the same, without the parameters that only track visitors.
    Query,
}

impl SamePage {
    /// Whether it is the rule of the source document.
    pub fn is_path(&self) -> bool {
        *self == Self::Path
    }
}

/// What happens if a quote is not found on its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MisquotePolicy {
    /// The note is kept as it is, and verification stops the run.
    Stop,
    /// The note is refused and counted; the run continues without it.
    Refuse,
}

/// The actions of a plan in order: every plan has these steps.
pub const ACTIONS: [&str; 5] =
    ["search_sources", "dedupe_urls", "read_extract_notes", "verify_notes", "synthesize_answer"];

/// The steps of research after its plan (research source document).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResearchStep {
    /// Search for sources.
    Search,
    /// Merge sources that have the same page.
    Dedupe,
    /// Read the sources one after another, and take notes.
    ReadExtract,
    /// Verify the notes.
    Verify,
    /// Write the answer.
    Synthesize,
}

worded! { ResearchStep + ALL {
    Search = "search", Dedupe = "dedupe", ReadExtract = "read_extract", Verify = "verify",
    Synthesize = "synthesize",
} }

impl ResearchStep {
    /// The name of this step in the plan.
    pub fn action(self) -> &'static str {
        match self {
            Self::Search => "search_sources",
            Self::Dedupe => "dedupe_urls",
            Self::ReadExtract => "read_extract_notes",
            Self::Verify => "verify_notes",
            Self::Synthesize => "synthesize_answer",
        }
    }
}
