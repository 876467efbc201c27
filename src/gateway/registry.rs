//! The tools of one run, each with its guard; shared tools belong to the engine.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::guard::{Guard, GuardSnapshot};
use super::interface::Tool;
use crate::base::name::ToolName;
use crate::bus::Bus;
use crate::clock::Clock;
use crate::event::Command;
use crate::event::kind::ToolHead;
use crate::scenario::spec::policy::CallPolicy;
use crate::scenario::spec::tool::{InjectedFault, ResultContract};

/// A tool with its guard.
pub struct GuardedTool {
    /// Guard of the tool.
    pub guard: Guard,
    /// The implementation; `None` for the model, which is called in another way, and for a tool
    /// that has none.
    pub tool: Option<Box<dyn Tool>>,
    /// Required fields of its result.
    pub contract: ResultContract,
    /// Kind of tool, in one word.
    pub kind: &'static str,
    /// Whether all runs of the engine share it.
    pub shared: bool,
}

/// Everything needed to build a guarded tool.
pub struct ToolSetup {
    /// Name of the tool.
    pub name: ToolName,
    /// The implementation, if it has one.
    pub tool: Option<Box<dyn Tool>>,
    /// Kind of tool, in one word.
    pub kind: &'static str,
    /// Required fields of its result.
    pub contract: ResultContract,
    /// Policy of its guard.
    pub policy: Arc<CallPolicy>,
    /// Timeout of an attempt if the policy sets none.
    pub timeout: Duration,
    /// Faults injected from the start.
    pub faults: Vec<InjectedFault>,
    /// Whether all runs of the engine share it.
    pub shared: bool,
    /// The whole definition as text: runs share tools with equal fingerprints.
    pub fingerprint: String,
}

impl GuardedTool {
    /// Whether an attempt may change something outside the run: everything except the results that a
    /// scenario lists, and what only searches and reads.
    pub fn has_effects(&self) -> bool {
        self.tool.is_some() && !matches!(self.kind, "fixture" | "search" | "read")
    }

    /// A tool with its guard in the initial state. The guard goes by this clock: that of its run, or
    /// a real one if runs share it.
    pub fn new(making: ToolSetup, clock: Clock) -> Arc<Self> {
        let ToolSetup {
            name,
            tool,
            kind,
            contract,
            policy,
            timeout,
            faults,
            shared,
            fingerprint: _,
        } = making;
        let guard = Guard::new(name, policy, timeout, &faults).with_clock(clock);
        Arc::new(Self { guard, tool, contract, kind, shared })
    }

    /// Entry of the tool in the head of a log.
    pub fn head(&self) -> ToolHead {
        ToolHead {
            name: self.guard.name().clone(),
            kind: self.kind.to_owned(),
            shared: self.shared,
            limits: self.guard.limits(),
            faults: self.guard.faults().to_vec(),
        }
    }
}

/// The tools of one run. Their guards publish to the run's log as long as this lives.
pub struct ToolRegistry {
    /// In the order of the scenario, the model first. A run has few, so lookup is linear.
    tools: Vec<Arc<GuardedTool>>,
    /// Number of the log at each tool's guard, once it is watched.
    watches: Mutex<Vec<u64>>,
}

impl ToolRegistry {
    /// Registers these tools.
    pub fn new(tools: Vec<Arc<GuardedTool>>) -> Self {
        Self { tools, watches: Mutex::default() }
    }

    /// Publishes every change of the guards to this log from now on, and at once each breaker that
    /// is not in its initial state. Called once the log has its head.
    pub fn watch(&self, bus: &Bus) {
        *self.watches() = self.tools.iter().map(|tool| tool.guard.watch(bus)).collect();
    }

    fn watches(&self) -> MutexGuard<'_, Vec<u64>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tool with this name.
    pub fn get(&self, name: &ToolName) -> Option<&Arc<GuardedTool>> {
        self.tools.iter().find(|tool| tool.guard.name() == name)
    }

    /// The tools in their order, the model first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<GuardedTool>> {
        self.tools.iter()
    }

    /// State of every guard.
    pub fn snapshots(&self) -> Vec<GuardSnapshot> {
        self.iter().map(|tool| tool.guard.snapshot()).collect()
    }

    /// Executes a command about a tool and returns any other. A command about an unknown tool is
    /// ignored.
    pub fn command(&self, command: Command) -> Option<Command> {
        let guard = |tool: &ToolName| self.get(tool).map(|tool| &tool.guard);
        match command {
            Command::SetLimit { tool, change, by } => {
                if let Some(guard) = guard(&tool) {
                    guard.change(change, by);
                }
            }
            Command::Breaker { tool, hand, by } => {
                if let Some(guard) = guard(&tool) {
                    guard.override_breaker(hand, by);
                }
            }
            Command::Inject { tool, fault, by } => {
                if let Some(guard) = guard(&tool) {
                    guard.inject(fault, by);
                }
            }
            Command::RemoveFault { tool, kind, by } => {
                if let Some(guard) = guard(&tool) {
                    guard.heal(kind, by);
                }
            }
            other => return Some(other),
        }
        None
    }

    /// Stops publishing to the run's log, because the run has ended.
    pub fn release(&self) {
        let watches = std::mem::take(&mut *self.watches());
        for (tool, number) in self.tools.iter().zip(watches) {
            tool.guard.unwatch(number);
        }
    }
}
