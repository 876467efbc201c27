//! The setup of a research run, as the head of a log has it.

use serde::{Deserialize, Serialize};

use super::spec::{MisquotePolicy, StepExecutor};
use crate::base::name::FlagName;
use crate::event::plan::Plan;
use crate::event::redact::TextRedactor;
use crate::event::weight::texts;

/// Setup of a research run: the question, the allowed sources, and the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct ResearchPlan {
    /// The question.
    pub question: String,
    /// The day that ages are counted from, `YYYY-MM-DD`.
    pub as_of: String,
    /// Domains that may ever be read.
    pub allowed_domains_policy: Vec<String>,
    /// Domains that are switched on, including those that depend on a flag.
    pub allowed_domains_execution: Vec<String>,
    /// The scenario's rules for domains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceHead>,
    /// What makes the plan.
    pub plan_by: StepExecutor,
    /// What takes the notes.
    pub notes_by: StepExecutor,
    /// What writes the answer.
    pub answer_by: StepExecutor,
    /// What to do with a note whose quote is not on its page.
    pub misquotes: MisquotePolicy,
    /// Number of domains that have to support a claim.
    pub min_independent_sources: u32,
    /// Max age of a page in days; `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_days: Option<u32>,
    /// Max steps of a plan.
    pub max_steps: u32,
    /// Max sources to keep.
    pub max_urls: u32,
    /// Max pages to read.
    pub max_read_pages: u32,
    /// Max notes to take.
    pub max_notes: u32,
    /// Max characters of the answer.
    pub max_answer_chars: u32,
    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub max_ms: u64,
}

impl ResearchPlan {
    /// The scenario's rules for a domain, if there are any.
    pub fn source(&self, domain: &str) -> Option<&SourceHead> {
        self.sources.iter().find(|source| source.domain == domain)
    }
}

/// The scenario's rules for a domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct SourceHead {
    /// The domain.
    pub domain: String,
    /// How much it is trusted, from 0 to 1.
    pub trust: f64,
    /// The flag that removes it from the execution allowlist when off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<FlagName>,
}

impl Plan for ResearchPlan {
    fn max_ms(&self) -> u64 {
        self.max_ms
    }

    fn weight(&self) -> usize {
        let rules = self.sources.iter().map(|it| size_of_val(it) + it.domain.len());
        size_of::<Self>()
            + self.question.len()
            + texts(self.allowed_domains_policy.iter().map(String::as_str))
            + texts(self.allowed_domains_execution.iter().map(String::as_str))
            + rules.sum::<usize>()
    }

    fn redact(&mut self, by: &mut TextRedactor) {
        let Self {
            question,
            as_of: _,
            allowed_domains_policy,
            allowed_domains_execution,
            sources,
            plan_by: _,
            notes_by: _,
            answer_by: _,
            misquotes: _,
            min_independent_sources: _,
            max_age_days: _,
            max_steps: _,
            max_urls: _,
            max_read_pages: _,
            max_notes: _,
            max_answer_chars: _,
            max_ms: _,
        } = self;
        by.text(question);
        for domain in allowed_domains_policy.iter_mut().chain(allowed_domains_execution) {
            by.text(domain);
        }
        for SourceHead { domain, trust: _, flag: _ } in sources {
            by.text(domain);
        }
    }
}
