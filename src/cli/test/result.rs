//! The results of tested scenarios.
//!
//! The share of runs that pass, and how sure it is.

use std::sync::Arc;

use crate::cli::exit::Exit;
use crate::engine::expectations::{ExpectationResult, Verdict};
use crate::log::event::{RunId, StopClass, StopReason};

/// The results of a command.
pub struct TestResults {
    /// The scenarios, in the order of the command line.
    pub cases: Vec<CaseResult>,
    /// The scenarios that could not be started.
    pub not_started: Vec<NotStarted>,
    /// The share of the runs of each that has to pass.
    pub min_pass: f64,
    /// The operator has cancelled: some runs are missing.
    pub is_cut_off: bool,
    /// Recorded or watched runs were checked, and none was made.
    pub is_of_traces: bool,
}

/// A scenario that could not be started: its file is invalid, or something that it needs is missing.
pub struct NotStarted {
    pub name: String,
    pub file: String,
    /// Why, in lines.
    pub why: String,
}

impl NotStarted {
    /// The scenario of this file, which could not be started.
    pub fn of(file: &str, why: String) -> Self {
        let name = std::path::Path::new(file).file_stem();
        let name = name.map_or_else(|| file.to_owned(), |name| name.to_string_lossy().into_owned());
        Self { name, file: file.to_owned(), why }
    }
}

/// The expectation of `--deny-warnings`.
pub const NO_WARNINGS: &str = "--deny-warnings";

/// The results of a scenario.
pub struct CaseResult {
    pub name: String,
    /// The arguments of `roundtable run` that run it again, without its seed.
    pub words: String,
    /// The seed that its file says.
    pub own_seed: u64,
    /// Its file, or its path in the repository if it was shipped.
    pub file: String,
    /// Whether a live model answered.
    pub is_live: bool,
    /// Whether the runs asked something outside of this program.
    pub is_outside: bool,
    pub is_kept: bool,
    /// Number of trials that were to be made.
    pub planned: usize,
    /// The trials that were made, in order.
    pub trials: Vec<TrialResult>,
}

/// The result of one run, or of the runs of a session.
pub struct TrialResult {
    /// The recorded run that was checked, as the command line of `roundtable open` names it; `None`: the
    /// run was made.
    pub trace: Option<String>,
    /// Seed of its random numbers.
    pub seed: u64,
    pub runs: Vec<RunId>,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// The error that stopped it, if any.
    pub error: Option<Arc<str>>,
    /// What may be the cause where it failed: warnings of the file, and conditions that could not be
    /// evaluated.
    pub warnings: Vec<String>,
    /// What to know where it failed: tools that failed, and what to do.
    pub notes: Vec<String>,
    /// Milliseconds, pauses not counted.
    pub elapsed_ms: u64,
    /// Tokens of prompts and replies.
    pub tokens: u64,
    /// The estimated cost in US dollars, if known.
    pub cost_usd: Option<f64>,
    /// The expectations, in the file's order.
    pub expectations: Vec<ExpectationResult>,
}

/// An expectation that did not hold in some of the trials.
pub struct FailedExpectation<'r> {
    /// Its index in the file, from 0.
    pub index: usize,
    /// The result in the first trial in which it did not hold.
    pub first: &'r ExpectationResult,
    pub trial: &'r TrialResult,
    /// The number of trials in which it did not hold.
    pub times: usize,
}

impl TestResults {
    /// What a case is.
    pub fn noun(&self) -> &'static str {
        if self.is_of_traces { "file" } else { "scenario" }
    }

    /// Whether enough runs of a scenario passed.
    pub fn passed(&self, case: &CaseResult) -> bool {
        case.passes(self.min_pass)
    }

    /// The scenarios that failed.
    pub fn failed(&self) -> impl Iterator<Item = &CaseResult> {
        self.cases.iter().filter(|case| !self.passed(case))
    }

    /// The exit code: 2 if a scenario could not be started, 1 if one failed, 6 if only because something
    /// could not be reached.
    pub fn exit(&self) -> Exit {
        if self.is_cut_off {
            return Exit::Cancelled;
        }
        if !self.not_started.is_empty() {
            Exit::Usage
        } else if self.failed().next().is_none() {
            Exit::Ok
        } else if self.failed().all(CaseResult::was_unreachable) {
            Exit::Unreachable
        } else {
            Exit::Stopped
        }
    }
}

impl CaseResult {
    /// Whether enough of its trials passed.
    pub fn passes(&self, min_pass: f64) -> bool {
        let (passed, all) = (self.passed(), self.trials.len());
        all > 0 && passed as f64 / all as f64 >= min_pass
    }

    /// Number of trials that passed.
    pub fn passed(&self) -> usize {
        self.trials.iter().filter(|trial| trial.passed()).count()
    }

    /// The share of trials that passed. `None` without any.
    pub fn rate(&self) -> Option<f64> {
        let (passed, all) = (self.passed(), self.trials.len());
        (all > 0).then(|| passed as f64 / all as f64)
    }

    /// The interval of 95 % of that share. `None` where the trials cannot differ: it would say something of chance
    /// that there is not.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let (passed, all) = (self.passed(), self.trials.len());
        wilson(passed, all).filter(|_| self.can_vary())
    }

    /// Whether its trials can differ: something outside answers them, they are recorded runs, or each has another
    /// seed. A script with one seed gives each run the same result.
    pub fn can_vary(&self) -> bool {
        let seed = self.trials.first().map(|trial| trial.seed);
        let is_apart = |trial: &TrialResult| trial.trace.is_some() || Some(trial.seed) != seed;
        self.is_outside
            || self.trials.iter().any(is_apart)
            || (1..self.trials.len()).contains(&self.passed())
    }

    /// The cost of all trials, if known.
    pub fn cost_usd(&self) -> Option<f64> {
        self.trials.iter().map(|trial| trial.cost_usd).sum()
    }

    /// The median time of the trials in milliseconds.
    pub fn median_ms(&self) -> u64 {
        let mut all: Vec<u64> = self.trials.iter().map(|trial| trial.elapsed_ms).collect();
        all.sort_unstable();
        all.get(all.len().saturating_sub(1) / 2).copied().unwrap_or_default()
    }

    /// The expectations that did not hold in some trial, in the file's order.
    pub fn failures(&self) -> Vec<FailedExpectation<'_>> {
        let count = self.trials.first().map_or(0, |trial| trial.expectations.len());
        let failed = (0..count).filter_map(|index| {
            let of_trial = |trial: &'_ TrialResult| {
                trial.expectations.get(index).is_some_and(|it| it.verdict != Verdict::Holds)
            };
            let mut failing = self.trials.iter().filter(|trial| of_trial(trial));
            let trial = failing.next()?;
            let first = trial.expectations.get(index)?;
            Some(FailedExpectation { index, first, trial, times: 1 + failing.count() })
        });
        failed.collect()
    }

    /// Whether every failed trial failed because something outside could not be reached.
    fn was_unreachable(&self) -> bool {
        let mut failed = self.trials.iter().filter(|trial| !trial.passed());
        self.is_outside && failed.all(|trial| trial.stop_reason.class() == StopClass::Unreachable)
    }
}

impl TrialResult {
    /// What tells it from the other trials.
    pub fn mark(&self) -> String {
        match &self.trace {
            Some(trace) => format!("is {trace}"),
            None => format!("has seed {}", self.seed),
        }
    }

    /// Whether every expectation holds.
    pub fn passed(&self) -> bool {
        self.expectations.iter().all(|it| it.verdict == Verdict::Holds)
    }
}

/// Normal quantile of a two-sided interval of 95 %.
const Z: f64 = 1.959_964;

/// The Wilson score interval of 95 % for a share of which `passed` of `all` were seen. `None`
/// without any.
pub fn wilson(passed: usize, all: usize) -> Option<(f64, f64)> {
    if all == 0 {
        return None;
    }
    let (n, share) = (all as f64, passed as f64 / all as f64);
    let z2 = Z * Z;
    let middle = share + z2 / (2.0 * n);
    let spread = Z * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z2 / n;
    // At the ends the interval touches 0 or 1 exactly; the arithmetic only nearly.
    let low = if passed == 0 { 0.0 } else { (middle - spread) / scale };
    let high = if passed == all { 1.0 } else { (middle + spread) / scale };
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(verdict: Verdict, stop_reason: &str) -> TrialResult {
        let expectation = ExpectationResult {
            that: "status == \"ok\"".to_owned(),
            message: None,
            line: Some(3),
            verdict,
            parts: Vec::new(),
        };
        TrialResult {
            trace: None,
            seed: 42,
            runs: Vec::new(),
            stop_reason: serde_json::from_value(stop_reason.into()).expect("a reason"),
            error: None,
            warnings: Vec::new(),
            notes: Vec::new(),
            elapsed_ms: 10,
            tokens: 0,
            cost_usd: None,
            expectations: vec![expectation],
        }
    }

    fn results(is_outside: bool, min_pass: f64, trials: Vec<TrialResult>) -> TestResults {
        let case = CaseResult {
            name: "it".to_owned(),
            words: "it".to_owned(),
            own_seed: 42,
            file: "it.toml".to_owned(),
            is_live: is_outside,
            is_outside,
            is_kept: false,
            planned: trials.len(),
            trials,
        };
        TestResults {
            cases: vec![case],
            not_started: Vec::new(),
            min_pass,
            is_cut_off: false,
            is_of_traces: false,
        }
    }

    #[test]
    fn exit_code_separates_scenario_from_network() {
        let good = || trial(Verdict::Holds, "success");
        let bad = || trial(Verdict::Fails, "success");
        let cut = || trial(Verdict::Fails, "llm_error:connection");
        for (is_outside, min_pass, trials, exit) in [
            (false, 1.0, vec![good()], Exit::Ok),
            (false, 1.0, vec![good(), bad()], Exit::Stopped),
            (false, 0.5, vec![good(), bad()], Exit::Ok),
            (false, 1.0, vec![trial(Verdict::Invalid("?".into()), "success")], Exit::Stopped),
            // A script that says so is not a network.
            (false, 1.0, vec![cut()], Exit::Stopped),
            (true, 1.0, vec![cut(), good()], Exit::Unreachable),
            (true, 1.0, vec![cut(), bad()], Exit::Stopped),
            // A run may be expected to end so.
            (true, 1.0, vec![trial(Verdict::Holds, "llm_error:connection")], Exit::Ok),
        ] {
            assert_eq!(results(is_outside, min_pass, trials).exit(), exit);
        }
    }

    #[test]
    fn groups_failures_under_first_failed_trial() {
        let trials = vec![
            trial(Verdict::Holds, "success"),
            TrialResult { seed: 43, ..trial(Verdict::Fails, "success") },
            trial(Verdict::Fails, "success"),
        ];
        let results = results(false, 1.0, trials);
        let failures = results.cases[0].failures();
        assert_eq!(failures.len(), 1);
        assert_eq!((failures[0].times, failures[0].trial.seed), (2, 43));
        assert_eq!(results.cases[0].median_ms(), 10);
    }

    #[test]
    fn equal_trials_have_no_interval() {
        let good = || trial(Verdict::Holds, "success");
        let other_seed = || TrialResult { seed: 43, ..good() };
        let bad = || trial(Verdict::Fails, "success");
        let interval = |is_outside, trials| results(is_outside, 1.0, trials).cases[0].interval();
        for (is_outside, trials, has_one) in [
            (false, vec![good(), good()], false),
            (false, vec![bad(), bad()], false),
            (true, vec![good(), good()], true),
            (false, vec![good(), other_seed()], true),
            // What differs has varied, however.
            (false, vec![good(), bad()], true),
            (true, vec![], false),
        ] {
            assert_eq!(interval(is_outside, trials).is_some(), has_one);
        }
    }

    /// Figures of the usual tables of this interval.
    #[test]
    fn the_interval_is_that_of_wilson() {
        for (passed, all, low, high) in [
            (0, 10, 0.0, 0.277_533),
            (10, 10, 0.722_467, 1.0),
            (5, 10, 0.236_593, 0.763_407),
            (90, 100, 0.825_635, 0.944_770),
            (1, 1, 0.206_549, 1.0),
        ] {
            let (found_low, found_high) = wilson(passed, all).expect("runs");
            assert!((found_low - low).abs() < 1e-4, "{passed}/{all}: {found_low}");
            assert!((found_high - high).abs() < 1e-4, "{passed}/{all}: {found_high}");
        }
        assert_eq!(wilson(0, 0), None);
    }
}
