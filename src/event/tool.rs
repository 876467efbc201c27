//! The nouns of tools that stand in facts: their limits, how their breakers move, what stood in
//! for them.

use serde::{Deserialize, Serialize};

use crate::scenario::name::ToolName;
use crate::scenario::resilience::{BreakerCounts, BreakerMode, RetryBudgetLimits};
use crate::scenario::tool::Fault;

/// A tool behind the gateway, as a run was started with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolHead {
    /// Its name; `llm` for the model.
    pub name: ToolName,
    /// What answers: `model`, `fixture`, `http`, `command`, or `none`; of an agent that is
    /// consulted or handed over to `agent`, `team` or `swarm`.
    pub kind: String,
    /// Whether its breaker, bulkhead and budget are shared by the runs of one session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Its limits.
    pub limits: ToolLimits,
    /// Faults that are injected from the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

impl ToolHead {
    /// Whether an agent answers: what the gateway counts of it is how often it was put to work.
    pub fn is_agent(&self) -> bool {
        matches!(self.kind.as_str(), "agent" | "team" | "swarm")
    }
}

/// The limits of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolLimits {
    /// Milliseconds of one attempt.
    pub timeout_ms: u64,
    /// Attempts of one call, the first included.
    pub max_attempts: u32,
    /// Milliseconds before attempt 2, 3, …; the last repeats.
    pub backoff_ms: Vec<u64>,
    /// Whether half of each wait is drawn.
    pub jitter: bool,
    /// When the tool is no longer asked; `None`: always asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerHead>,
    /// How many attempts may be out at once; `None`: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulkhead: Option<BulkheadHead>,
    /// How many attempts may be repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_budget: Option<RetryBudgetLimits>,
    /// Whether something may stand in for it, and what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safe_mode: Option<SafeModeHead>,
}

/// Limits of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerHead {
    /// Failures in a row that open it.
    pub fail_threshold: u32,
    /// Milliseconds that it stays open.
    pub open_for_ms: u64,
    /// Attempts that half-open lets through.
    pub probe_permits: u32,
    /// How it works.
    pub mode: BreakerMode,
    /// What it counts.
    #[serde(default, skip_serializing_if = "BreakerCounts::is_of_source")]
    pub counts: BreakerCounts,
}

/// Limits of a bulkhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkheadHead {
    /// Attempts out at once.
    pub max_in_flight: u32,
    /// Milliseconds that an attempt may stand in line: 0 is not at all, `None` as long as the
    /// run's time lasts.
    pub max_wait_ms: Option<u64>,
}

/// What may stand in for a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SafeModeHead {
    /// Whether the run may go on without it.
    pub allow_partial: bool,
    /// Milliseconds that its last good value may be old; `None`: it is not kept.
    pub cache_ttl_ms: Option<u64>,
    /// Whether the scenario declares a value for it.
    pub fallback: bool,
}

/// A change of one limit of a tool, live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "limit", content = "value", rename_all = "snake_case")]
pub enum LimitChange {
    /// Milliseconds of one attempt.
    TimeoutMs(u64),
    /// Attempts of one call.
    MaxAttempts(u32),
    /// Milliseconds before each further attempt.
    WaitMs(u64),
    /// Whether half of each wait is drawn.
    Jitter(bool),
    /// Whether a call may be repeated at all.
    Idempotent(bool),
    /// Retries at most, in per cent of the attempts of the last minute.
    RetryPercent(u32),
    /// Retries that are allowed however few attempts there were.
    RetryMin(u32),
    /// Failures in a row that open the breaker.
    FailThreshold(u32),
    /// Milliseconds that the breaker stays open.
    OpenForMs(u64),
    /// Attempts that half-open lets through.
    ProbePermits(u32),
    /// How the breaker works.
    BreakerMode(BreakerMode),
    /// Attempts out at once.
    MaxInFlight(u32),
    /// Milliseconds that an attempt may stand in line.
    MaxWaitMs(u64),
    /// Whether something may stand in for the tool.
    SafeMode(bool),
    /// Whether the run may go on without it.
    AllowPartial(bool),
    /// Milliseconds that its last good value may be old; 0: it is not kept.
    CacheTtlMs(u64),
}

/// How a breaker stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerStage {
    /// Calls go through.
    #[default]
    Closed,
    /// Calls are refused until its time is up.
    Open,
    /// A few probes go through.
    HalfOpen,
    /// Calls are refused until it is reset by hand.
    Held,
    /// Calls go through, whatever fails.
    Disabled,
}

/// Why a breaker moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerWhy {
    /// So many failures in a row.
    Failures,
    /// Its open time was up, and the next call came.
    Cooled,
    /// A probe was answered.
    ProbeAnswered,
    /// A probe failed.
    ProbeFailed,
    /// A late answer came (`mode = "source"`).
    LateAnswer,
    /// A late failure started its open time anew (`mode = "source"`).
    LateFailure,
    /// It asked to be left alone for a time (Retry-After), and its call was not retried.
    RetryAfter,
    /// By hand.
    ByHand,
}

impl BreakerWhy {
    /// Whether failures of the tool moved it, as opposed to a person or a request to wait.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failures | Self::ProbeFailed)
    }
}

/// Which limit keeps a failed attempt from being followed by another, though what it failed of may
/// pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum RetryLimit {
    /// The retry budget of the tool is used up.
    RetryBudget {
        /// Retries of the last minute.
        used: u64,
        /// How many there may be.
        allowed: u64,
    },
    /// The run has less time left than the wait takes.
    Deadline {
        /// Milliseconds of the wait.
        wait_ms: u64,
        /// Milliseconds that are left of the run.
        left_ms: u64,
        /// The tool asked for the wait (`Retry-After`).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        asked: bool,
    },
}

impl RetryLimit {
    /// Its word in files.
    pub fn word(&self) -> &'static str {
        match self {
            Self::RetryBudget { .. } => "retry_budget",
            Self::Deadline { .. } => "deadline",
        }
    }

    /// What is in the way.
    pub fn words(&self) -> String {
        match *self {
            Self::RetryBudget { used, allowed } => {
                format!("{used} of {allowed} retries of the last minute are used up")
            }
            Self::Deadline { wait_ms, left_ms, asked } => {
                let wait = if asked { "it asked for a wait of" } else { "the wait is" };
                let (wait_for, left) = (seconds(wait_ms), seconds(left_ms));
                format!("{wait} {wait_for}, and {left} of the run were left")
            }
        }
    }

    /// It as a sentence, with the setting that states the limit for a tool of this name.
    pub fn sentence(&self, tool: &ToolName) -> String {
        let words = self.words();
        match self {
            Self::RetryBudget { .. } => {
                format!("Not retried: {words} (tools.{tool}.retry_budget).")
            }
            Self::Deadline { .. } => format!("Not retried: {words} (max_seconds)."),
        }
    }
}

/// A time for people, of milliseconds: `3600 s`, `1.5 s`, `40 ms`.
pub fn seconds(ms: u64) -> String {
    match (ms / 1_000, ms % 1_000 / 100) {
        (0, _) => format!("{ms} ms"),
        (whole, 0) => format!("{whole} s"),
        (whole, tenths) => format!("{whole}.{tenths} s"),
    }
}

/// What stood in for a tool that could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stand_in", rename_all = "snake_case")]
pub enum StandIn {
    /// Its last good value.
    Cached {
        /// How old it is, in milliseconds.
        age_ms: u64,
    },
    /// The value that the scenario declares.
    Fallback,
    /// Nothing: it was left out.
    LeftOut,
}

impl StandIn {
    /// Its word on the screen and in files.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Cached { .. } => "cached",
            Self::Fallback => "fallback",
            Self::LeftOut => "left_out",
        }
    }
}
