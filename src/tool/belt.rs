//! The tools of one run, each behind its guard; those that are shared belong to the session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::answering::Tool;
use super::guard::{Guard, GuardSnapshot};
use crate::bus::Bus;
use crate::event::Command;
use crate::event::kind::ToolHead;
use crate::scenario::model::CallPolicy;
use crate::scenario::name::ToolName;
use crate::scenario::tool::{Contract, Fault};

/// A tool behind its guard.
pub struct GuardedTool {
    /// What stands before it.
    pub guard: Guard,
    /// What answers; `None` for the model, which is asked otherwise, and where nothing is there.
    pub tool: Option<Box<dyn Tool>>,
    /// What its answer must hold.
    pub contract: Contract,
    /// What answers, in a word.
    pub kind: &'static str,
    /// Whether all runs of the session have it in common.
    pub shared: bool,
}

/// What a guarded tool is made of.
pub struct Making {
    /// Its name.
    pub name: ToolName,
    /// What answers.
    pub tool: Option<Box<dyn Tool>>,
    /// In a word.
    pub kind: &'static str,
    /// What its answer must hold.
    pub contract: Contract,
    /// Its policy.
    pub policy: CallPolicy,
    /// Bound of an attempt where the policy sets none.
    pub timeout: Duration,
    /// Faults from the start.
    pub faults: Vec<Fault>,
    /// Whether all runs of the session have it in common.
    pub shared: bool,
    /// All that was asked of it, as a text: runs have in common what has the same.
    pub fingerprint: String,
}

impl GuardedTool {
    /// A tool with its guard at rest.
    pub fn new(making: Making) -> Arc<Self> {
        let Making { name, tool, kind, contract, policy, timeout, faults, shared, fingerprint: _ } =
            making;
        let guard = Guard::new(name, policy, timeout, &faults);
        Arc::new(Self { guard, tool, contract, kind, shared })
    }

    /// As it stands in the head of a log.
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

/// The tools of one run, which its log watches as long as this lives.
pub struct Belt {
    /// In their order, the model first; a run has few.
    tools: Vec<Arc<GuardedTool>>,
    /// The number under which each of them has the log, once it is watched.
    watches: Mutex<Vec<u64>>,
}

impl Belt {
    /// These tools.
    pub fn new(tools: Vec<Arc<GuardedTool>>) -> Self {
        Self { tools, watches: Mutex::default() }
    }

    /// From now on this log is told of every move, and at once of each breaker that is not at rest:
    /// called once the log has its head.
    pub fn watch(&self, bus: &Bus) {
        *self.watches() = self.tools.iter().map(|tool| tool.guard.watch(bus)).collect();
    }

    fn watches(&self) -> MutexGuard<'_, Vec<u64>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tool of this name.
    pub fn get(&self, name: &ToolName) -> Option<&Arc<GuardedTool>> {
        self.tools.iter().find(|tool| tool.guard.name() == name)
    }

    /// The tools in their order, the model first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<GuardedTool>> {
        self.tools.iter()
    }

    /// Everything of every guard, each at one moment.
    pub fn snapshots(&self) -> Vec<GuardSnapshot> {
        self.iter().map(|tool| tool.guard.snapshot()).collect()
    }

    /// Takes a command about a tool; gives back any other. One about a tool that is not there does
    /// nothing.
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
                    guard.by_hand(hand, by);
                }
            }
            Command::Inject { tool, fault, by } => {
                if let Some(guard) = guard(&tool) {
                    guard.inject(fault, by);
                }
            }
            Command::Heal { tool, kind, by } => {
                if let Some(guard) = guard(&tool) {
                    guard.heal(kind, by);
                }
            }
            other => return Some(other),
        }
        None
    }

    /// The run has ended: its log is told no more.
    pub fn release(&self) {
        for (tool, number) in self.tools.iter().zip(self.watches().drain(..)) {
            tool.guard.unwatch(number);
        }
    }
}
