//! The setup of a collaboration, for the head of its log.

use super::plan::{CollaborationPlan, DecideRowHead, RoleFlagHead};
use super::spec::{CollaborationSpec, Concurrency, Share, WhenOff};
use crate::event::id::millis;
use crate::event::patterns::PatternPlan;

/// The setup of a run. `recorded`: that of the run that it continues, or that answers it.
pub(crate) fn setup(
    spec: &CollaborationSpec,
    live: bool,
    recorded: Option<&PatternPlan>,
) -> CollaborationPlan {
    let (usual, live_rules) = match recorded {
        None => (Share::Arguments, live),
        Some(PatternPlan::Collaboration(plan)) => (plan.share, plan.live_rules),
        Some(_) => (Share::Stances, false),
    };
    let roles = || spec.roles.iter();
    let weighted = roles().filter(|(_, role)| role.weight != 1.0);
    CollaborationPlan {
        sequence: spec.sequence.clone(),
        role_flags: spec
            .roles
            .iter()
            .filter_map(|(name, role)| {
                let behind = role.role_flag.as_ref()?;
                let deny = behind.when_off == WhenOff::Deny;
                Some((name.clone(), RoleFlagHead { flag: behind.flag.clone(), deny }))
            })
            .collect(),
        parallel: spec.concurrency == Concurrency::Parallel,
        max_rounds: spec.budget.max_rounds,
        max_messages: spec.budget.max_messages,
        max_ms: millis(spec.budget.max_seconds),
        min_go_votes: spec.budget.min_go_votes,
        summary_inputs: spec.summary_inputs.clone(),
        share: spec.share.unwrap_or(usual),
        live_rules,
        decide: spec
            .decide
            .iter()
            .map(|row| DecideRowHead { when: row.when.text().to_owned(), decision: row.decision })
            .collect(),
        weights: weighted.map(|(name, role)| (name.clone(), role.weight)).collect(),
        vetoes: roles().filter(|(_, role)| role.veto).map(|(name, _)| name.clone()).collect(),
    }
}
