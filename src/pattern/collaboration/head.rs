//! The setup of a collaboration, for the head of its log.

use super::plan::{CollaborationPlan, RoleFlagHead};
use super::spec::{CollaborationSpec, Concurrency, WhenOff};
use crate::event::id::millis;

/// The setup of a run.
pub(crate) fn setup(spec: &CollaborationSpec) -> CollaborationPlan {
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
    }
}
