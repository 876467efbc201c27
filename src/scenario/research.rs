//! What the pattern `research` (source `004`) needs of its scenario.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::name::{FlagName, InputName};

/// The tool that finds sources, by the source's name.
pub const SEARCH: &str = "search_sources";
/// The tool that reads a source, by the source's name.
pub const READ: &str = "read_source";

/// `pattern = "research"`.
#[derive(Debug)]
pub struct ResearchSpec {
    /// Limits of `004`, clamped as it clamps them.
    pub budget: ResearchBudget,
    /// What is to be found out.
    pub question: String,
    /// Inputs that the planner is shown beside the question, such as `report_date`.
    pub echo: Vec<InputName>,
    /// Domains that may ever be read, in lower case.
    pub allowed_domains_policy: Vec<String>,
    /// Domains that are switched on, in lower case; a flag may take one off.
    pub allowed_domains_execution: Vec<String>,
    /// What is said of domains, in the file's order.
    pub sources: Vec<SourceRule>,
    /// Who makes the plan.
    pub plan: Done,
    /// Who takes notes.
    pub notes: Done,
    /// Who puts the answer together.
    pub answer: Done,
    /// What an answer by rule begins with; may be empty.
    pub preface: String,
    /// What an answer by rule ends with; may be empty.
    pub closing: String,
    /// Characters of a page that the model is shown at most.
    pub page_chars: u32,
    /// Notes of one page at most that a model may propose; what is beyond is cut.
    pub notes_per_page: u32,
    /// Notes of one page that a rule takes at most: the best.
    pub notes_by_rule: u32,
    /// What is done with a quote that is not in its page.
    pub misquotes: Misquotes,
    /// Domains that a claim needs, at least 1.
    pub min_independent_sources: u32,
    /// Days after which a page is too old; `None`: never.
    pub max_age_days: Option<u32>,
    /// The day that it is asked about, `YYYY-MM-DD`; `None`: the day on which the run starts.
    pub as_of: Option<String>,
}

/// `notes_per_page` where a scenario does not set it.
pub const NOTES_PER_PAGE: u32 = 20;

/// Notes of one page that a rule takes where a scenario does not set `notes_per_page`: a rule finds a
/// sentence in most paragraphs, and one page would leave no room for others.
pub const NOTES_BY_RULE: u32 = 3;

/// Limits of research, named as in `004`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResearchBudget {
    /// Bound of the whole run, pauses not counted.
    pub max_seconds: Duration,
    /// Steps of a plan at most.
    pub max_steps: u32,
    /// Sources that are kept at most, 1 to 20.
    pub max_urls: u32,
    /// Pages that are read at most, 1 to 10.
    pub max_read_pages: u32,
    /// Notes that are taken at most, 1 to 20.
    pub max_notes: u32,
    /// Characters of the answer at most, 120 to 2000.
    pub max_answer_chars: u32,
}

impl ResearchBudget {
    /// How long one attempt to read a page may take where `read_source` has no time-out: its part of
    /// the run's time, with two parts for all else, so that pages that hang do not end the run.
    pub fn read_timeout(&self) -> Duration {
        let part = self.max_seconds / self.max_read_pages.saturating_add(2);
        part.clamp(Duration::from_secs(2), Duration::from_secs(10))
    }
}

/// What is said of a domain.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceRule {
    /// The domain, in lower case.
    pub domain: String,
    /// How far it is trusted, from 0 to 1.
    pub trust: f64,
    /// The flag that takes it off the execution allowlist when off.
    pub flag: Option<FlagName>,
}

/// How a step of research is done.
#[derive(Debug, Clone)]
pub struct Done {
    /// Who does it.
    pub by: Who,
    /// The system prompt of the model, how it must reply not yet added.
    pub prompt: Arc<str>,
}

/// Who does a step, as the file says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The model.
    Model,
    /// A rule of the program.
    Rule,
    /// The model where the run is live, else a rule.
    ModelWhenLive,
}

impl Who {
    /// Who it is in a run that is live, or not.
    pub fn in_a_run(self, live: bool) -> DoneBy {
        match self {
            Self::Model => DoneBy::Model,
            Self::ModelWhenLive if live => DoneBy::Model,
            Self::Rule | Self::ModelWhenLive => DoneBy::Rule,
        }
    }
}

/// Who does a step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoneBy {
    /// The model.
    Model,
    /// A rule of the program.
    Rule,
}

/// What is done with a quote that does not stand in its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Misquotes {
    /// The note is kept as it is, and verification stops the run.
    Stop,
    /// The note is refused and counted; the run goes on without it.
    Refuse,
}

impl ResearchSpec {
    /// What is said of a domain.
    pub fn rule(&self, domain: &str) -> Option<&SourceRule> {
        self.sources.iter().find(|rule| rule.domain == domain)
    }

    /// How far a domain is trusted; 1 where nothing is said of it.
    pub fn trust(&self, domain: &str) -> f64 {
        self.rule(domain).map_or(1.0, |rule| rule.trust)
    }
}

/// The actions of a plan, in their order: every plan has these steps.
pub const ACTIONS: [&str; 5] =
    ["search_sources", "dedupe_urls", "read_extract_notes", "verify_notes", "synthesize_answer"];
