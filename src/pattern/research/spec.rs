//! The settings of the pattern `research` (research source document).

use std::collections::BTreeMap;

use crate::base::name::ToolName;
use crate::base::seeded_random::Latency;
use crate::scenario::spec::model_assignment::ModelCaller;
use crate::scenario::spec::pattern::{LabelledText, LimitField, Spec};
use crate::scenario::spec::prompt::PromptTemplate;
use crate::scenario::spec::script::ScriptStep;
use crate::scenario::spec::tool::ToolSpec;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::name::{FlagName, InputName};

/// The tool that searches for sources, named as in the research source document.
pub const SEARCH: &str = "search_sources";
/// The tool that reads a source, named as in the research source document.
pub const READ: &str = "read_source";

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResearchBudget {
    /// Time limit of the whole run; pauses are not counted.
    pub max_seconds: Duration,
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
}

impl ResearchBudget {
    /// Default timeout of one attempt of `read_source`: its share of the run's time, with two
    /// shares left for everything else, so that pages that hang cannot use up the run.
    pub fn read_timeout(&self) -> Duration {
        let part = self.max_seconds / self.max_read_pages.saturating_add(2);
        part.clamp(Duration::from_secs(2), Duration::from_secs(10))
    }
}

/// Settings of one domain.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceRule {
    /// The domain, in lower case.
    pub domain: String,
    /// Trust in the domain, from 0 to 1.
    pub trust: f64,
    /// A flag that takes it off the execution allowlist while it is off.
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
    /// The model.
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

/// Who does a step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub enum StepExecutor {
    /// The model.
    Model,
    /// A rule of the program.
    Rule,
}

/// What happens if a quote is not found on its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub enum MisquotePolicy {
    /// The note is kept as it is, and verification stops the run.
    Stop,
    /// The note is refused and counted; the run continues without it.
    Refuse,
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

impl ResearchStep {
    /// All steps in order.
    pub const ALL: [Self; 5] =
        [Self::Search, Self::Dedupe, Self::ReadExtract, Self::Verify, Self::Synthesize];

    /// The word for the step: the phase in the source document.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Dedupe => "dedupe",
            Self::ReadExtract => "read_extract",
            Self::Verify => "verify",
            Self::Synthesize => "synthesize",
        }
    }

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

impl Spec for ResearchSpec {
    fn name(&self) -> &'static str {
        "research"
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
