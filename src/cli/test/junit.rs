//! The results as a JUnit report: a suite for each scenario, a case for each expectation.

use std::io;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::result::{CaseResult, FailedExpectation, TestResults};
use crate::base::visible::visible;
use crate::engine::expectations::{ExpectationResult, Verdict};

/// The report as XML.
///
/// # Errors
/// It cannot be written as XML.
pub fn report(results: &TestResults) -> io::Result<Vec<u8>> {
    let mut report = Report::new("roundtable");
    for case in &results.cases {
        report.add_test_suite(suite(results, case));
    }
    for scenario in &results.not_started {
        let mut suite = TestSuite::new(clean(&scenario.name));
        suite.add_property(("file", clean(&scenario.file).as_str()));
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message("the scenario could not be started");
        status.set_type("start");
        let lines: Vec<String> = scenario.why.lines().map(clean).collect();
        status.set_description(lines.join("\n"));
        let mut test = TestCase::new("the scenario starts", status);
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
        let (times, all, seed) = (failure.times, case.trials.len(), failure.trial.seed);
        text.push(format!("not in {times} of {all} runs; the first has seed {seed}"));
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
