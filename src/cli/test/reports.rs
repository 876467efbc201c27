//! The results as one JSON object, and as a JUnit report: a suite for each scenario, a case for each
//! expectation.

use std::io;
use std::io::Write;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;

use super::result::{CaseResult, FailedExpectation, NotStarted, TestResults, TrialResult};
use crate::base::visible::visible;
use crate::cli::exit::Exit;
use crate::engine::expectations::{ExpectationResult, Verdict};
use crate::log::event::{RunId, SCHEMA_VERSION, StopReason, safe_json};

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
    /// The Wilson interval of 95 %; `null` where the runs cannot differ.
    interval: Option<(f64, f64)>,
    median_ms: u64,
    cost_usd: Option<f64>,
    trials: Vec<TrialObject<'r>>,
}

#[derive(Serialize)]
struct TrialObject<'r> {
    passed: bool,
    /// The recorded run that was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'r str>,
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
pub fn write_json(results: &TestResults, to: &mut impl Write) -> io::Result<()> {
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
        pass_rate: case.rate(),
        interval: case.interval(),
        median_ms: case.median_ms(),
        cost_usd: case.cost_usd(),
        trials: case.trials.iter().map(trial).collect(),
    }
}

fn trial(trial: &TrialResult) -> TrialObject<'_> {
    TrialObject {
        passed: trial.passed(),
        trace: trial.trace.as_deref(),
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

/// The report as XML.
///
/// # Errors
/// It cannot be written as XML.
pub fn junit(results: &TestResults) -> io::Result<Vec<u8>> {
    let mut report = Report::new("roundtable");
    for case in &results.cases {
        report.add_test_suite(suite(results, case));
    }
    for scenario in &results.not_started {
        let mut suite = TestSuite::new(clean(&scenario.name));
        suite.add_property(("file", clean(&scenario.file).as_str()));
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        let [message, title] = match results.is_of_traces {
            false => ["the scenario could not be started", "the scenario starts"],
            true => ["it could not be checked", "it can be checked"],
        };
        status.set_message(message);
        status.set_type("start");
        let lines: Vec<String> = scenario.why.lines().map(clean).collect();
        status.set_description(lines.join("\n"));
        let mut test = TestCase::new(title, status);
        test.set_classname(clean(&scenario.name));
        suite.add_test_case(test);
        report.add_test_suite(suite);
    }
    let mut xml = Vec::new();
    report.serialize(&mut xml).map_err(io::Error::other)?;
    Ok(xml)
}

fn suite(results: &TestResults, case: &CaseResult) -> TestSuite {
    let mut suite = TestSuite::new(clean(&case.name));
    let time = Duration::from_millis(case.median_ms());
    suite.set_time(time);
    suite.add_property(("file", clean(&case.file).as_str()));
    suite.add_property(("runs", case.trials.len().to_string().as_str()));
    // Runs that ask nothing outside are made in simulated time, and are not kept.
    suite.add_property(("time", if case.is_kept { "real" } else { "simulated" }));
    let failures = case.failures();
    let failing = !results.passed(case);
    let expected = case.trials.first().map_or(&[][..], |trial| &trial.expectations);
    for (index, result) in expected.iter().enumerate() {
        let failure = failures.iter().find(|it| it.index == index).filter(|_| failing);
        let mut test = TestCase::new(title(result), status(case, failure));
        test.set_classname(clean(&case.name));
        suite.add_test_case(test);
    }
    if let Some(trial) = case.trials.first().filter(|trial| !trial.warnings.is_empty()) {
        let lines: Vec<String> = trial.warnings.iter().map(|line| clean(line)).collect();
        suite.set_system_out(lines.join("\n"));
    }
    if case.trials.is_empty() {
        let mut status = TestCaseStatus::skipped();
        status.set_message("cancelled");
        suite.add_test_case(TestCase::new("the run", status));
    }
    suite
}

fn title(result: &ExpectationResult) -> String {
    clean(result.message.as_deref().unwrap_or(&result.that))
}

fn status(case: &CaseResult, failure: Option<&FailedExpectation<'_>>) -> TestCaseStatus {
    let Some(failure) = failure else { return TestCaseStatus::success() };
    let result = failure.first;
    let kind = match result.verdict {
        Verdict::Invalid(_) => NonSuccessKind::Error,
        Verdict::Holds | Verdict::Fails => NonSuccessKind::Failure,
    };
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(clean(&result.that));
    status.set_type("expect");
    let mut text = Vec::new();
    if let Some(line) = result.line {
        text.push(format!("{}:{line}", case.file));
    }
    text.push(result.that.clone());
    if let Verdict::Invalid(why) = &result.verdict {
        text.push(why.clone());
    }
    text.extend(result.parts.iter().map(|part| format!("{} is {}", part.part, part.value)));
    if case.trials.len() > 1 {
        let (times, all, mark) = (failure.times, case.trials.len(), failure.trial.mark());
        text.push(format!("not in {times} of {all} runs; the first {mark}"));
    }
    text.push(format!("the run ended with {}", failure.trial.stop_reason));
    text.extend(failure.trial.warnings.iter().chain(&failure.trial.notes).cloned());
    let lines: Vec<String> = text.iter().map(|line| clean(line)).collect();
    status.set_description(lines.join("\n"));
    status
}

/// A text without control characters, which XML cannot hold.
fn clean(text: &str) -> String {
    visible(text).into_owned()
}
