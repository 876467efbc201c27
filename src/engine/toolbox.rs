//! What answers for the tools of a scenario, made before its run starts, so that what is missing is
//! told before anything is spent.

use std::sync::Arc;
use std::time::Duration;

use crate::scenario::Scenario;
use crate::scenario::model::{CallPolicy, PatternSpec, SafeMode};
use crate::scenario::tool::{ToolKind, ToolSpec};
use crate::tool::fixture::FixtureTool;
use crate::tool::{Making, Tool};

/// The bound of an attempt where neither scenario nor pattern sets one (source `003`).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The tools of one run.
pub struct Toolbox(Vec<Making>);

impl Toolbox {
    /// The tools of a scenario as far as they can be had without the environment: a tool that needs
    /// more of it is not there. `instant` leaves the latencies of fixtures out.
    pub fn offline(scenario: &Scenario, instant: bool) -> Self {
        let made = scenario.tools.values().map(|spec| {
            let tool = spec.kind.as_ref().and_then(|kind| offline(kind, instant));
            making(scenario, spec, tool)
        });
        Self(made.collect())
    }

    /// Puts something else behind a name, in place of what the scenario says; nothing where it has
    /// no such tool.
    pub fn put(&mut self, name: &str, tool: Box<dyn Tool>) {
        if let Some(making) = self.0.iter_mut().find(|making| making.name.as_str() == name) {
            making.tool = Some(tool);
        }
    }

    pub(super) fn into_makings(self) -> Vec<Making> {
        self.0
    }
}

/// What answers without the environment.
fn offline(kind: &ToolKind, instant: bool) -> Option<Box<dyn Tool>> {
    match kind {
        ToolKind::Fixture(spec) => Some(Box::new(FixtureTool::new(Arc::clone(spec), instant))),
        ToolKind::Http(_) | ToolKind::Command(_) => None,
    }
}

fn making(scenario: &Scenario, spec: &ToolSpec, tool: Option<Box<dyn Tool>>) -> Making {
    let timeout = match &scenario.pattern {
        PatternSpec::Orchestrator(orchestrator) => orchestrator.budget.task_timeout,
        PatternSpec::Collaboration(_) | PatternSpec::Resilience(_) => DEFAULT_TIMEOUT,
    };
    Making {
        name: spec.name.clone(),
        tool,
        kind: spec.kind.as_ref().map_or("none", |kind| kind.word()),
        contract: spec.contract.clone(),
        policy: policy(scenario, spec),
        timeout,
        faults: spec.faults.clone(),
        shared: spec.shared,
    }
}

/// A tool's policy; in a naive run what is left of it: its time-out, and repeats at once.
fn policy(scenario: &Scenario, spec: &ToolSpec) -> CallPolicy {
    match &scenario.pattern {
        PatternSpec::Resilience(storm) if !storm.guarded => CallPolicy {
            timeout: spec.policy.timeout,
            max_attempts: storm.naive.tool_retries.saturating_add(1),
            backoff: [].into(),
            jitter: false,
            retry_budget: None,
            breaker: None,
            bulkhead: None,
            safe_mode: SafeMode::OFF,
            ..spec.policy.clone()
        },
        _ => spec.policy.clone(),
    }
}
