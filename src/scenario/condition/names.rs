//! The names bound for each kind of condition.

/// Names bound in a condition on a role's contribution.
pub const CONTRIBUTION_NAMES: &[&str] = &[
    "facts",
    "inputs",
    "goal",
    "role",
    "round",
    "attempt",
    "flags",
    "recent_rounds",
    "open_conflicts",
];

/// Names bound in a condition on the launch brief.
pub const FINALIZE_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "final_decision", "history"];

/// Names bound in a condition on an orchestrator's plan.
pub const PLAN_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "max_tasks", "available_workers"];

/// Names bound in a condition on an orchestrator's report.
pub const REPORT_NAMES: &[&str] = &["facts", "inputs", "goal", "attempt", "flags", "aggregate"];

/// Names bound in a condition on a research plan.
pub const STEPS_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "question", "max_steps"];

/// Names bound in a condition on the notes of a page.
pub const NOTES_NAMES: &[&str] = &[
    "facts",
    "inputs",
    "goal",
    "attempt",
    "flags",
    "question",
    "url",
    "domain",
    "title",
    "body",
    "published_at",
    "notes",
];

/// Names bound in a condition on the answer of research.
pub const SYNTHESIZE_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "question", "notes"];

/// Names bound in a condition on a reply of an agent in a team.
pub const AGENT_NAMES: &[&str] = &[
    "facts", "inputs", "goal", "attempt", "flags", "agent", "input", "message", "turn", "round",
    "results", "handoffs", "from", "members",
];
