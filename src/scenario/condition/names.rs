//! The names that are available to each kind of condition.

/// The names that a condition on a role's contribution may use.
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

/// The names that a condition on the launch brief may use.
pub const FINALIZE_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "final_decision", "history"];

/// The names that a condition on an orchestrator's plan may use.
pub const PLAN_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "max_tasks", "available_workers"];

/// The names that a condition on an orchestrator's report may use.
pub const REPORT_NAMES: &[&str] = &["facts", "inputs", "goal", "attempt", "flags", "aggregate"];

/// The names that a condition on the plan of research may use.
pub const STEPS_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "question", "max_steps"];

/// The names that a condition on the notes of a page may use.
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

/// The names that a condition on the answer of research may use.
pub const SYNTHESIZE_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "question", "notes"];

/// The names that a condition on what an agent of a team says may use.
pub const AGENT_NAMES: &[&str] = &[
    "facts", "inputs", "goal", "attempt", "flags", "agent", "input", "message", "turn", "round",
    "results", "handoffs", "from", "members",
];
