//! The gateway: every call of a tool or model goes through it. It applies the policies that keep a
//! failure from spreading (cascading failures source document): timeouts, retries, breaker,
//! bulkhead, retry budget, safe mode and injected faults.
//!
//! [`breaker`], [`bulkhead`] and [`budget`] are pure state machines with the clock passed in; a
//! [`CallGuard`] holds those of one tool. This layer knows nothing of patterns, runs or tools: it uses a
//! run through the trait [`CallScope`], the other end of a call through `Callee`, and a tool through
//! [`Tool`]. [`ToolRegistry`] has the tools of one run; shared tools belong to the engine.

pub mod attempt;
pub mod breaker;
pub mod bulkhead;
mod call;
mod change;
mod guard;
mod last_good;
pub mod retry;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::base::name::ToolName;
use crate::log::bus::{Bus, LiveSlot};
use crate::log::clock::Clock;
use crate::log::event::{AttemptFailed, Command, Reply, SpanId, StopReason, ToolHead, Usage};
use crate::scenario::spec::InDoubt;
use crate::scenario::spec::policy::CallPolicy;
use crate::scenario::spec::tool::{InjectedFault, ResultContract};
use crate::scenario::tools::mcp::split_name;

pub use self::call::{CallFailed, CallSuccess, Denial, GatewayCall};
pub use self::guard::{CallGuard, GuardRefusal, GuardSnapshot};
pub use crate::model::host::{
    AttemptHost, AttemptProgress, InputReply, InputRequest, NoHost, PermissionRequest,
};

/// What the gateway needs from the calling run.
pub trait CallScope: Send + Sync {
    /// Log that receives the events.
    fn bus(&self) -> &Bus;
    /// Time left for the run.
    fn remaining(&self) -> Duration;
    /// Random bits for this call, attempt and use: a hash of (seed, path, attempt, use).
    fn random_bits(&self, attempt: u32, what: &str) -> u64;
    /// Called when an attempt starts (`true`) and when it ends (`false`), for any reason.
    fn in_flight(&self, out: bool);
    /// Stop reason for a run that cannot continue without this call.
    fn reason(&self, failure: &AttemptFailed) -> StopReason;
    /// Whether a call keeps the reason of its last failed attempt when the breaker refuses the next
    /// one (otherwise the reason is `circuit_open`): the failure of this call may differ from those
    /// that opened the breaker.
    fn keeps_reason(&self) -> bool {
        false
    }
    /// An attempt was rejected because of parameters; the next one is sent without them.
    fn on_adapted(&self, call: SpanId, failed: &AttemptFailed) {
        let _ = (call, failed);
    }
    /// Records the estimated token use of a failed attempt that had begun to receive a reply.
    fn estimate_usage(&self, failed: &mut AttemptFailed) {
        let _ = failed;
    }
    /// What is done with an attempt that was in flight when the run stopped, if its tool is not
    /// idempotent.
    fn in_doubt(&self) -> InDoubt {
        InDoubt::Stop
    }
    /// Counts what an attempt in doubt may have used, and returns it: an estimate of its prompt.
    fn usage_in_doubt(&self) -> Option<Usage> {
        None
    }
    /// Carries out the decision about an attempt in doubt: asks the operator, or stops the run and never
    /// returns. `Some`: the result of the attempt, which is not made again.
    fn settle_doubt(
        &self,
        attempt: SpanId,
        tool: ToolName,
        decision: InDoubt,
    ) -> BoxFuture<'_, Option<Arc<Value>>> {
        let _ = (attempt, tool, decision);
        Box::pin(std::future::pending())
    }
    /// Host that an attempt calls, if the tool's name does not say it: the host of a model.
    fn callee_host(&self) -> Option<String> {
        None
    }
    /// Whether an attempt costs money or changes something outside the run: it is made only once the
    /// log says so durably.
    fn has_effects(&self) -> bool {
        false
    }
    /// Awaited before each attempt: a boundary, or the caller's own policy. `None`: no wait. A
    /// refused attempt counts as used.
    fn admit(&self, attempt: u32) -> Option<BoxFuture<'_, Result<(), StopReason>>> {
        let _ = attempt;
        None
    }
    /// Whether the call must be approved: awaited once, before the first attempt. `None`: nobody has
    /// to be asked.
    fn asks_before(&self, call: SpanId) -> Option<BoxFuture<'_, Result<(), Denial>>> {
        let _ = call;
        None
    }
    /// Withdraws an approval from a recording if what it is about has changed since. Returns whether it
    /// did: the call must be approved again.
    fn withdraw_approval_if_changed(&self) -> bool {
        false
    }
    /// Cache key of the arguments that were approved, if a person has changed them.
    fn changed_key(&self) -> Option<String> {
        None
    }
    /// Whether a run that is executed again takes the recorded reply of an attempt. `false`: what the
    /// attempt does is executed again, too.
    fn has_recorded_replies(&self) -> bool {
        true
    }
    /// Completes when an attempt or call with this span has used up `limit` by the caller's own clock,
    /// which stops while the run is paused or a person is asked. `None`: real time counts.
    fn timeout_clock(&self, limit: Duration, span: SpanId) -> Option<BoxFuture<'_, ()>> {
        let _ = (limit, span);
        None
    }
    /// Completes when a person is asked inside an attempt: then it does not keep its probe.
    fn person_is_asked(&self, attempt: SpanId) -> Option<BoxFuture<'_, ()>> {
        let _ = attempt;
        None
    }
    /// Asks the questions of a recorded attempt again, while its recorded result is waited for. Never
    /// completes. `None`: nothing was asked.
    fn repeat_questions(&self, attempt: SpanId) -> Option<BoxFuture<'_, ()>> {
        let _ = attempt;
        None
    }
    /// Name of what is called, where a guard is for several tools; `None`: that of the guard.
    fn called(&self) -> Option<&ToolName> {
        None
    }
    /// Timeout of an attempt, if it is not that of the tool.
    fn timeout(&self) -> Option<Duration> {
        None
    }
    /// The attempt is queued at the tool's bulkhead until the returned value is dropped: other
    /// calls have to finish first.
    fn enter_queue(&self) -> Option<Box<dyn QueueMarker + '_>> {
        None
    }
    /// Call slots shared with other calls: a call holds one from before its first attempt to its
    /// end.
    fn call_slots(&self) -> Option<&Semaphore> {
        None
    }
}

/// Guard value of a queued attempt; dropping it ends the queueing.
pub trait QueueMarker: Send {}

impl<T: Send> QueueMarker for T {}

/// What a callee receives for one attempt: its number and where to publish partial text.
pub struct Attempt<'a> {
    pub number: u32,
    /// Live slot of the attempt's span.
    pub live: &'a LiveSlot,
    pub call: SpanId,
    pub span: SpanId,
}

/// The other end of the gateway: a tool or a model.
pub trait Callee: Send + Sync {
    /// Makes one attempt. Has no retries and no timeout of its own; dropping the future cancels it.
    fn attempt<'a>(
        &'a self,
        attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Reply, Box<AttemptFailed>>>;
}

/// What a tool receives for one attempt.
#[derive(Clone, Copy)]
pub struct ToolRequest<'a> {
    /// Name of the tool in the run; one of an MCP server begins with the server's: `files.read`.
    pub tool: &'a str,
    /// Arguments of the call.
    pub args: &'a Map<String, Value>,
    /// Number of the attempt within its call, from 1.
    pub attempt: u32,
    /// How often the run has made the same call, this time included; always 1 for a tool that does not
    /// depend on it.
    pub nth: u32,
    /// Random bits for this attempt: a hash of (seed, path, attempt).
    pub draw: u64,
    /// Time since the start of the run, pauses excluded.
    pub active: Duration,
    /// The run, for a tool that says how far it is, or needs an answer of a person.
    pub(crate) host: &'a dyn AttemptHost,
}

impl<'a> ToolRequest<'a> {
    /// The first attempt of a call outside of a run.
    pub fn bare(args: &'a Map<String, Value>) -> Self {
        Self { tool: "", args, attempt: 1, nth: 1, draw: 0, active: Duration::ZERO, host: &NoHost }
    }
}

/// A tool: one attempt per call of `ask`. It has no retries and no timeout of its own. Dropping the
/// future cancels the attempt and everything that it started.
pub trait Tool: Send + Sync {
    /// Makes one attempt.
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>>;

    /// The run has ended: the tool ends what outlives an attempt, such as a server that it started.
    fn end(&self) {}
}

/// Kind of a tool of an MCP server.
pub const MCP: &str = "mcp";

/// Kind of a tool that has no implementation in its scenario.
pub const NO_IMPLEMENTATION: &str = "none";

/// A tool with its guard.
pub struct GuardedTool {
    pub guard: CallGuard,
    /// The implementation; `None` for the model, which is called in another way, and for a tool
    /// that has none.
    pub tool: Option<Box<dyn Tool>>,
    /// Required fields of its result.
    pub contract: ResultContract,
    /// Kind of tool, in one word.
    pub kind: &'static str,
    /// Whether a call of its implementation may change something outside of the run.
    has_effects: bool,
    /// Whether all runs of the engine share it.
    pub shared: bool,
}

/// Everything needed to build a guarded tool.
pub struct ToolSetup {
    pub name: ToolName,
    /// The implementation, if it has one.
    pub tool: Option<Box<dyn Tool>>,
    /// Kind of tool, in one word.
    pub kind: &'static str,
    /// Whether a call may change something outside of the run.
    pub has_effects: bool,
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
    /// Whether the scenario gives it no implementation. Where a recorded run is only executed again, a
    /// tool that needs the network or a program has none either, but is not missing.
    pub fn is_missing(&self) -> bool {
        self.kind == NO_IMPLEMENTATION && self.tool.is_none()
    }

    /// Whether an attempt may change something outside of the run. A tool without an implementation
    /// changes nothing.
    pub fn has_effects(&self) -> bool {
        self.has_effects && self.tool.is_some()
    }

    /// A tool with its guard in the initial state. The guard goes by this clock: that of its run, or
    /// a real one if runs share it.
    pub fn new(setup: ToolSetup, clock: Clock) -> Arc<Self> {
        let ToolSetup {
            name,
            tool,
            kind,
            has_effects,
            contract,
            policy,
            timeout,
            faults,
            shared,
            fingerprint: _,
        } = setup;
        let guard = CallGuard::new(name, policy, timeout, &faults).with_clock(clock);
        Arc::new(Self { guard, tool, contract, kind, has_effects, shared })
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
    tools: RwLock<Vec<Arc<GuardedTool>>>,
    /// Number of the log at each tool's guard, once it is watched.
    watches: Mutex<Vec<u64>>,
}

impl ToolRegistry {
    /// Registers these tools.
    pub fn new(tools: Vec<Arc<GuardedTool>>) -> Self {
        Self { tools: RwLock::new(tools), watches: Mutex::default() }
    }

    /// Adds a tool that the run did not know at its start, and publishes the changes of its guard to this log.
    pub(crate) fn add(&self, tool: Arc<GuardedTool>, bus: &Bus) {
        let mut watches = self.watches();
        watches.push(tool.guard.watch(bus));
        self.tools.write().unwrap_or_else(PoisonError::into_inner).push(tool);
    }

    /// Publishes every change of the guards to this log from now on, and at once each breaker that
    /// is not in its initial state. Called once the log has its head.
    pub fn watch(&self, bus: &Bus) {
        *self.watches() = self.all().iter().map(|tool| tool.guard.watch(bus)).collect();
    }

    fn watches(&self) -> MutexGuard<'_, Vec<u64>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tool with this name; for a tool of an MCP server without an entry, the entry of the server.
    pub fn get(&self, name: &ToolName) -> Option<Arc<GuardedTool>> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        let named = |name: &str| tools.iter().find(|it| it.guard.name().as_str() == name);
        named(name.as_str()).or_else(|| named(split_name(name.as_str())?.0)).cloned()
    }

    /// The tools in their order, the model first.
    pub fn all(&self) -> Vec<Arc<GuardedTool>> {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// State of every guard.
    pub fn snapshots(&self) -> Vec<GuardSnapshot> {
        self.all().iter().map(|tool| tool.guard.snapshot()).collect()
    }

    /// Executes a command about a tool and returns any other. A command about an unknown tool is
    /// ignored.
    pub fn command(&self, command: Command) -> Option<Command> {
        match command {
            Command::SetLimit { tool, change, by } => {
                if let Some(tool) = self.get(&tool) {
                    tool.guard.change(change, by);
                }
            }
            Command::Breaker { tool, action, by } => {
                if let Some(tool) = self.get(&tool) {
                    tool.guard.override_breaker(action, by);
                }
            }
            Command::Inject { tool, fault, by } => {
                if let Some(tool) = self.get(&tool) {
                    tool.guard.inject(fault, by);
                }
            }
            Command::RemoveFault { tool, kind, by } => {
                if let Some(tool) = self.get(&tool) {
                    tool.guard.remove_fault(kind, by);
                }
            }
            other => return Some(other),
        }
        None
    }

    /// Stops publishing to the run's log, because the run has ended.
    pub fn release(&self) {
        let watches = std::mem::take(&mut *self.watches());
        let tools = self.all();
        for (tool, number) in tools.iter().zip(watches) {
            tool.guard.unwatch(number);
        }
        for tool in tools.iter().filter(|tool| !tool.shared) {
            tool.tool.iter().for_each(|tool| tool.end());
        }
    }
}
