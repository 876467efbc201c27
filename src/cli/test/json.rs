//! The results as one JSON object.

use std::io;
use std::io::Write;

use serde::Serialize;

use super::result::{CaseResult, NotStarted, TestResults, TrialResult};
use crate::cli::exit::Exit;
use crate::engine::expectations::{ExpectationResult, Verdict};
use crate::log::event::kind::SCHEMA_VERSION;
use crate::log::event::{RunId, StopReason, safe_json};

/// The object that is printed.
#[derive(Serialize)]
struct TestObject<'r> {
    kind: &'static str,
    v: u32,
    passed: bool,
    /// Whether the operator cancelled, so runs are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cancelled: bool,
    min_pass: f64,
    scenarios: Vec<ScenarioObject<'r>>,
    /// The scenarios that could not be started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_started: Vec<NotStartedObject<'r>>,
}

#[derive(Serialize)]
struct NotStartedObject<'r> {
    scenario: &'r str,
    file: &'r str,
    error: &'r str,
}

#[derive(Serialize)]
struct ScenarioObject<'r> {
    scenario: &'r str,
    file: &'r str,
    live: bool,
    passed: bool,
    /// Number of runs (sessions), and of those that passed.
    times: usize,
    passes: usize,
    pass_rate: Option<f64>,
    /// The Wilson interval of 95 %.
    interval: Option<(f64, f64)>,
    median_ms: u64,
    cost_usd: Option<f64>,
    trials: Vec<TrialObject<'r>>,
}

#[derive(Serialize)]
struct TrialObject<'r> {
    passed: bool,
    seed: u64,
    runs: &'r [RunId],
    stop_reason: &'r StopReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'r str>,
    /// Warnings of the file, and conditions that could not be evaluated.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'r [String],
    /// Tools that failed, and what to do; only where the trial failed.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'r [String],
    elapsed_ms: u64,
    tokens: u64,
    cost_usd: Option<f64>,
    expectations: Vec<ExpectationObject<'r>>,
}

#[derive(Serialize)]
struct ExpectationObject<'r> {
    that: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'r str>,
    line: Option<usize>,
    passed: bool,
    /// Why it could not be evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'r str>,
    /// What its parts were, if it failed.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    values: serde_json::Map<String, serde_json::Value>,
}

/// Writes the results.
///
/// # Errors
/// The stream's error.
pub fn write(results: &TestResults, to: &mut impl Write) -> io::Result<()> {
    let object = TestObject {
        kind: "test",
        v: SCHEMA_VERSION,
        passed: results.exit() == Exit::Ok,
        cancelled: results.is_cut_off,
        min_pass: results.min_pass,
        scenarios: results.cases.iter().map(|case| scenario(results, case)).collect(),
        not_started: results.not_started.iter().map(not_started).collect(),
    };
    writeln!(to, "{}", safe_json::pretty(&object).map_err(io::Error::other)?)?;
    to.flush()
}

fn not_started(it: &NotStarted) -> NotStartedObject<'_> {
    NotStartedObject { scenario: &it.name, file: &it.file, error: &it.why }
}

fn scenario<'r>(results: &TestResults, case: &'r CaseResult) -> ScenarioObject<'r> {
    ScenarioObject {
        scenario: &case.name,
        file: &case.file,
        live: case.is_live,
        passed: results.passed(case),
        times: case.trials.len(),
        passes: case.passed(),
        pass_rate: case.rate().map(|(rate, _)| rate),
        interval: case.rate().map(|(_, interval)| interval),
        median_ms: case.median_ms(),
        cost_usd: case.cost_usd(),
        trials: case.trials.iter().map(trial).collect(),
    }
}

fn trial(trial: &TrialResult) -> TrialObject<'_> {
    TrialObject {
        passed: trial.passed(),
        seed: trial.seed,
        runs: &trial.runs,
        stop_reason: &trial.stop_reason,
        error: trial.error.as_deref(),
        warnings: &trial.warnings,
        notes: if trial.passed() { &[] } else { &trial.notes },
        elapsed_ms: trial.elapsed_ms,
        tokens: trial.tokens,
        cost_usd: trial.cost_usd,
        expectations: trial.expectations.iter().map(expectation).collect(),
    }
}

fn expectation(result: &ExpectationResult) -> ExpectationObject<'_> {
    let values = result.parts.iter().map(|part| (part.part.clone(), part.value.clone().into()));
    ExpectationObject {
        that: &result.that,
        message: result.message.as_deref(),
        line: result.line,
        passed: result.verdict == Verdict::Holds,
        error: match &result.verdict {
            Verdict::Invalid(why) => Some(why),
            Verdict::Holds | Verdict::Fails => None,
        },
        values: values.collect(),
    }
}
