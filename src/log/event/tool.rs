//! The parts of events about tools: their limits, the moves of their breakers, their fallbacks.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call_window::WindowCounts;
use crate::base::name::ToolName;
use crate::scenario::spec::policy::{
    BreakerLimits, BreakerMode, BulkheadLimits, Rate, RetryBudgetLimits, WindowLimits, max,
};
use crate::scenario::spec::tool::InjectedFault;

/// A tool behind the gateway, as the run was started with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolHead {
    /// Name of the tool; `llm` for the model.
    pub name: ToolName,
    /// Kind of its implementation: `model`, `fixture`, `http`, `command`, `search`, `read`, `mcp` or
    /// `none`; `agent`, `team` or `swarm` for an agent that is consulted or handed over to.
    pub kind: String,
    /// Whether all runs of the process share its breaker, bulkhead and retry budget.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Its limits at the start.
    pub limits: ToolLimits,
    /// Faults that are injected from the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<InjectedFault>,
}

/// A tool as an MCP server lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfferedTool {
    /// The server's name of it.
    pub name: String,
    /// What it does, for the model; may be empty.
    pub description: String,
    /// JSON schema of its arguments, an object.
    pub parameters: Value,
    /// JSON schema of its structured result, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Whether it says that it only reads.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads_only: bool,
}

/// A tool of an MCP server, as the run knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ListedTool {
    /// Its name in the run: `files.read_text_file`.
    pub name: ToolName,
    /// Its name in requests to a model.
    pub model_name: String,
    /// SHA-256 of its name, description and schemas.
    pub pin: String,
    /// Whether its calls are made without asking, because the operator has allowed it before or now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allowed: bool,
}

impl ToolHead {
    /// A tool of another program: its limits are not known. Its kind is `observed`, which no log has.
    pub(crate) fn observed(name: &str) -> Self {
        let limits = ToolLimits {
            timeout_ms: 0,
            max_attempts: 1,
            backoff_ms: Vec::new(),
            jitter: false,
            breaker: None,
            bulkhead: None,
            rate: None,
            retry_budget: None,
            safe_mode: None,
        };
        let (name, kind) = (ToolName::from(name), "observed".to_owned());
        Self { name, kind, shared: false, limits, faults: Vec::new() }
    }

    /// Whether it is a tool or a model. The calls of the others, agents and people, are the times they
    /// were put to work.
    pub fn is_tool(&self) -> bool {
        !matches!(self.kind.as_str(), "agent" | "team" | "swarm" | "person")
    }

    /// Whether it belongs to another program.
    pub fn is_observed(&self) -> bool {
        self.kind == "observed"
    }

    /// Whether it is a person.
    pub fn is_person(&self) -> bool {
        self.kind == "person"
    }
}

/// The limits of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolLimits {
    /// Timeout of one attempt in milliseconds.
    pub timeout_ms: u64,
    /// Max attempts of one call, the first included.
    pub max_attempts: u32,
    /// Waits before attempts 2, 3, … in milliseconds; the last one repeats.
    pub backoff_ms: Vec<u64>,
    /// Whether half of each wait is random.
    pub jitter: bool,
    /// Limits of its breaker; `None`: it has no breaker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerLimits>,
    /// Limits of its bulkhead; `None`: unlimited concurrency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulkhead: Option<BulkheadLimits>,
    /// Most attempts that start in a minute; `None`: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// The share of attempts that may be retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_budget: Option<RetryBudgetLimits>,
    /// Its fallbacks, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safe_mode: Option<SafeModeHead>,
}

/// Fallbacks of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SafeModeHead {
    /// Whether the run may continue without a result.
    pub allow_partial: bool,
    /// Max age of a cached value in milliseconds; `None`: no cache.
    pub cache_ttl_ms: Option<u64>,
    /// Whether the scenario has a default value.
    pub fallback: bool,
}

/// A change of one limit of a tool in a running run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "limit", content = "value", rename_all = "snake_case")]
pub enum LimitChange {
    /// Timeout of one attempt in milliseconds.
    TimeoutMs(u64),
    /// Max attempts of one call.
    MaxAttempts(u32),
    /// Wait before each further attempt in milliseconds.
    WaitMs(u64),
    /// Whether half of each wait is random.
    Jitter(bool),
    /// Whether a call may be retried at all.
    Idempotent(bool),
    /// Max retries, in percent of the attempts of the last minute.
    RetryPercent(u32),
    /// Number of retries that are always allowed.
    RetryMin(u32),
    /// Number of failures in a row that open the breaker.
    FailThreshold(u32),
    /// Milliseconds that the breaker stays open.
    OpenForMs(u64),
    /// Number of probes that half-open lets through.
    ProbePermits(u32),
    /// How the breaker closes again, and whether late results count.
    BreakerMode(BreakerMode),
    /// Size of the breaker's window, in calls or seconds.
    WindowSize(u32),
    /// Calls in the window before it decides.
    MinCalls(u32),
    /// Share of failed calls in the window that opens the breaker.
    FailureRate(Rate),
    /// Milliseconds after which a call is slow.
    SlowCallMs(u64),
    /// Share of slow calls in the window that opens the breaker.
    SlowRate(Rate),
    /// Max concurrent attempts.
    MaxInFlight(u32),
    /// Max milliseconds that an attempt may be queued.
    MaxWaitMs(u64),
    /// Max attempts that start in a minute.
    Rate(u32),
    /// Whether fallbacks are used.
    SafeMode(bool),
    /// Whether the run may continue without a result.
    AllowPartial(bool),
    /// Max age of a cached value in milliseconds; 0: no cache.
    CacheTtlMs(u64),
}

impl LimitChange {
    /// The change with its value between the bounds of a scenario file.
    pub fn clamped(self) -> Self {
        let time = |ms: u64, min| ms.clamp(min, max::TIME_MS.into());
        match self {
            Self::TimeoutMs(ms) => Self::TimeoutMs(time(ms, 1)),
            Self::MaxAttempts(most) => Self::MaxAttempts(most.clamp(1, max::ATTEMPTS)),
            Self::WaitMs(ms) => Self::WaitMs(ms.min(max::BACKOFF_MS.into())),
            Self::RetryPercent(percent) => Self::RetryPercent(percent.min(100)),
            Self::RetryMin(min) => Self::RetryMin(min.min(max::FREE_RETRIES)),
            Self::FailThreshold(most) => Self::FailThreshold(most.clamp(1, max::FAIL_THRESHOLD)),
            Self::OpenForMs(ms) => Self::OpenForMs(time(ms, 1)),
            Self::ProbePermits(most) => Self::ProbePermits(most.clamp(1, max::PROBES)),
            Self::WindowSize(size) => Self::WindowSize(size.clamp(1, WindowLimits::MAX_SIZE)),
            Self::MinCalls(min) => Self::MinCalls(min.clamp(1, WindowLimits::MAX_SIZE)),
            Self::SlowCallMs(ms) => Self::SlowCallMs(time(ms, 1)),
            Self::MaxInFlight(most) => Self::MaxInFlight(most.clamp(1, max::IN_FLIGHT)),
            Self::MaxWaitMs(ms) => Self::MaxWaitMs(time(ms, 0)),
            Self::Rate(most) => Self::Rate(most.clamp(1, max::RATE)),
            Self::CacheTtlMs(ms) => Self::CacheTtlMs(time(ms, 0)),
            Self::Jitter(_)
            | Self::Idempotent(_)
            | Self::BreakerMode(_)
            | Self::FailureRate(_)
            | Self::SlowRate(_)
            | Self::SafeMode(_)
            | Self::AllowPartial(_) => self,
        }
    }
}

/// State of a breaker.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum BreakerStage {
    /// Calls go through.
    #[default]
    Closed,
    /// Calls are refused until the cool-down is over.
    Open,
    /// Some probes go through.
    HalfOpen,
    /// Calls are refused until a manual reset.
    Held,
    /// All calls go through, even if they fail.
    Disabled,
}

/// Why a breaker changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerCause {
    /// Too many failures in a row.
    Failures,
    /// Too many of the calls in its window failed.
    FailureRate,
    /// Too many of the calls in its window were slow.
    SlowCalls,
    /// The cool-down was over, and a call came.
    CooldownOver,
    /// A probe succeeded.
    ProbeAnswered,
    /// A probe failed.
    ProbeFailed,
    /// A probe was slow.
    ProbeSlow,
    /// A late success closed it (`mode = "two_state"`).
    LateSuccess,
    /// A late failure restarted the cool-down (`mode = "two_state"`).
    LateFailure,
    /// The tool sent Retry-After, and the call was not retried.
    RetryAfter,
    /// A manual override.
    Manual,
}

impl BreakerCause {
    /// Whether the tool's failures or slow calls caused it, not the operator or a request to wait.
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            Self::Failures
                | Self::FailureRate
                | Self::SlowCalls
                | Self::ProbeFailed
                | Self::ProbeSlow
        )
    }

    /// The cause as words. `counted`: what the breaker's window had, if it opened the breaker.
    pub fn description(self, counted: Option<WindowCounts>) -> Cow<'static, str> {
        match (self, counted) {
            (Self::FailureRate, Some(window)) => {
                let rate = percent_text(window.failure_share());
                return format!("failure rate {rate} of {} calls", window.calls).into();
            }
            (Self::SlowCalls, Some(window)) => {
                let rate = percent_text(window.slow_share());
                return format!("slow calls {rate} of {} calls", window.calls).into();
            }
            _ => {}
        }
        let text = match self {
            Self::Failures => "too many failures in a row",
            Self::FailureRate => "too many calls failed",
            Self::SlowCalls => "too many calls were slow",
            Self::CooldownOver => "cool-down over",
            Self::ProbeAnswered => "a probe succeeded",
            Self::ProbeFailed => "a probe failed",
            Self::ProbeSlow => "a probe was slow",
            Self::LateSuccess => "a late result arrived",
            Self::LateFailure => "a late failure arrived",
            Self::RetryAfter => "the tool sent Retry-After",
            Self::Manual => "manual",
        };
        text.into()
    }
}

/// The limit because of which a failed attempt is not retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum RetryLimit {
    /// The retry budget of the tool is used up.
    RetryBudget {
        /// Retries in the last minute.
        used: u64,
        /// Max retries in the last minute.
        allowed: u64,
    },
    /// The wait is longer than the time left until the run's limit.
    Deadline {
        /// The wait in milliseconds.
        wait_ms: u64,
        /// Time left in milliseconds.
        left_ms: u64,
        /// Whether the tool itself requested the wait (`Retry-After`).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        requested: bool,
    },
    /// A worker without a `[tools.…]` table: only timeouts are retried, as in the orchestrator source
    /// document, and this was another failure that the tool gateway would retry.
    OnlyTimeouts,
}

impl RetryLimit {
    /// The word in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::RetryBudget { .. } => "retry_budget",
            Self::Deadline { .. } => "deadline",
            Self::OnlyTimeouts => "only_timeouts",
        }
    }

    /// The reason, for display.
    pub fn description(&self) -> String {
        match *self {
            Self::RetryBudget { used, allowed } => {
                format!("{used} of {allowed} retries of the last minute are used up")
            }
            Self::Deadline { wait_ms, left_ms, requested: asked } => {
                let wait = if asked { "the requested wait is" } else { "the wait is" };
                let (wait_for, left) = (format_millis(wait_ms), format_millis(left_ms));
                format!("{wait} {wait_for}, but only {left} of the run were left")
            }
            Self::OnlyTimeouts => {
                "a worker without a [tools] table is retried only after timeouts".to_owned()
            }
        }
    }

    /// The setting that limits the retries of the tool with this name.
    pub(crate) fn setting(&self, tool: &ToolName) -> String {
        match self {
            Self::RetryBudget { .. } => format!("tools.{tool}.retry_budget"),
            Self::Deadline { .. } => "max_seconds".to_owned(),
            Self::OnlyTimeouts => format!("tools.{tool}.retries"),
        }
    }

    /// The reason as a sentence that names the setting for the tool with this name.
    pub fn sentence(&self, tool: &ToolName) -> String {
        format!("Not retried: {} ({}).", self.description(), self.setting(tool))
    }
}

/// A share from 0 to 1 in percent, rounded down to a tenth: `80 %`, `66.6 %`.
pub fn percent_text(share: f64) -> String {
    // The added thousandth makes up for binary fractions: 0.29 must not become 28.9 %.
    let tenths = (share * 1_000.0 + 0.001).floor().clamp(0.0, 1_000.0) as u32;
    match tenths % 10 {
        0 => format!("{} %", tenths / 10),
        tenth => format!("{}.{tenth} %", tenths / 10),
    }
}

/// A time in milliseconds for display: `3600 s`, `1.5 s`, `40 ms`.
pub fn format_millis(ms: u64) -> String {
    match (ms / 1_000, ms % 1_000 / 100) {
        (0, _) => format!("{ms} ms"),
        (whole, 0) => format!("{whole} s"),
        (whole, tenths) => format!("{whole}.{tenths} s"),
    }
}

/// The fallback that was used for a tool that was not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "fallback", rename_all = "snake_case")]
pub enum FallbackKind {
    /// Its cached value.
    Cached {
        /// Age of the value in milliseconds.
        age_ms: u64,
    },
    /// The scenario's default value.
    Default,
    /// No value: the result was omitted.
    Omitted,
}

impl FallbackKind {
    /// The word on the screen and in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Cached { .. } => "cached",
            Self::Default => "default",
            Self::Omitted => "omitted",
        }
    }
}
