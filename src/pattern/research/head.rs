//! The setup of a research run, for the head of its log.

use super::plan::{ResearchPlan, SourceHead};
use super::spec::ResearchSpec;
use crate::base::day::Day;
use crate::event::id::millis;

/// The setup of a run with a live or a scripted model, which begins at this time of the wall.
pub(crate) fn setup(spec: &ResearchSpec, live: bool, wall_ms: u64) -> ResearchPlan {
    let today = || Day::from_unix_ms(wall_ms).to_string();
    let budget = &spec.budget;
    ResearchPlan {
        question: spec.question.clone(),
        as_of: spec.as_of.clone().unwrap_or_else(today),
        allowed_domains_policy: spec.allowed_domains_policy.clone(),
        allowed_domains_execution: spec.allowed_domains_execution.clone(),
        sources: spec
            .sources
            .iter()
            .map(|rule| SourceHead {
                domain: rule.domain.clone(),
                trust: rule.trust,
                flag: rule.flag.clone(),
            })
            .collect(),
        plan_by: spec.plan.by.executor(live),
        notes_by: spec.notes.by.executor(live),
        answer_by: spec.answer.by.executor(live),
        misquotes: spec.misquotes,
        min_independent_sources: spec.min_independent_sources,
        max_age_days: spec.max_age_days,
        max_steps: budget.max_steps,
        max_urls: budget.max_urls,
        max_read_pages: budget.max_read_pages,
        max_notes: budget.max_notes,
        max_answer_chars: budget.max_answer_chars,
        max_ms: millis(budget.max_seconds),
    }
}
