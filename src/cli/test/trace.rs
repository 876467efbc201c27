//! Rows over runs that are not made here: `test --trace` checks recorded ones, `watch --expect` and
//! `listen --expect` those of a program that is watched. What has no meaning for a run is refused before
//! anything is checked or started.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::TestFormat;
use super::play::CaseListener as _;
use super::play::{add_failed_condition, no_warnings, notes_on};
use super::result::{CaseResult, TestResults, TrialResult};
use super::text::TextReport;
use crate::base::refused::Refused;
use crate::cli::exit::Exit;
use crate::cli::launch::{CannotRun, read_source};
use crate::cli::run::RunArgs;
use crate::cli::streams::{StreamStyle, print_on_stderr, refuse};
use crate::engine::RunHandle;
use crate::engine::expectations::{ExpectationResult, ExpectedOf, RunObserver, Verdict};
use crate::engine::observed_facts::{unfit_for_observed, unknown_kind};
use crate::log::event::{Event, EventKind, RunId, RunStarted, Seq, StopReason, World};
use crate::log::facts::observed::SPANS_MISSING;
use crate::scenario::ScenarioSource;
use crate::scenario::rows::{Rows, check_rows, is_rows_file};
use crate::watch::hub::HubReport;
use crate::words::format::count_noun;

/// The rows of a file, or those of a scenario.
fn read_rows(source: ScenarioSource, word: &str) -> Result<Rows, CannotRun> {
    if is_rows_file(&source.text) {
        let (rows, warnings) = check_rows(&source.text, &source.origin)
            .map_err(|problems| CannotRun::of_problems(&problems))?;
        if !warnings.is_empty() {
            let colour = StreamStyle::of_stderr(Default::default(), false).colour();
            print_on_stderr(&warnings.pretty(colour), true);
        }
        return Ok(rows);
    }
    // Nothing of it is played, so it needs no script.
    let args = RunArgs { scenario: word.to_owned(), live: true, ..RunArgs::default() };
    read_source(source, &args).map(Rows::of_scenario)
}

/// Why rows cannot be about such a run, each with its line. `None`: they can.
fn unfit(rows: &Rows, is_observed: bool) -> Option<CannotRun> {
    let mut why = Vec::new();
    for row in rows.expectations() {
        let of_program = || unfit_for_observed(row).filter(|_| is_observed);
        if let Some((what, help)) = unknown_kind(row).or_else(of_program) {
            why.push(Refused::new(format!("{}:{}: {what}", rows.file, row.line)).help(help));
        }
    }
    (!why.is_empty()).then(|| CannotRun::because(why))
}

/// Follows one run for some rows.
struct RunTrial {
    observer: RunObserver,
    world: World,
    warnings: Vec<String>,
    events: u64,
}

/// Most warnings of a run that are shown.
const MAX_WARNINGS: usize = 20;

impl RunTrial {
    fn new(rows: &Rows) -> Self {
        let (observer, world) = (RunObserver::new(rows.expectations()), World::new());
        Self { observer, world, warnings: Vec::new(), events: 0 }
    }

    fn event(&mut self, event: &Event) {
        if event.seq.0 != self.events {
            self.observer.lack_spans("events of the run were not read");
        }
        self.events = event.seq.0 + 1;
        self.world.apply(event);
        self.observer.event(event);
        add_failed_condition(event, &mut self.warnings);
        if let EventKind::Warning { text } = &event.kind
            && self.warnings.len() < MAX_WARNINGS
            && !self.warnings.contains(text)
        {
            self.warnings.push(text.clone());
        }
    }

    /// Judges the run. `facts`: those of its scenario, or why they are not known.
    fn judge(
        mut self,
        rows: &Rows,
        trace: Option<String>,
        facts: Result<Arc<serde_json::Value>, Arc<str>>,
    ) -> TrialResult {
        let head = self.world.head.clone();
        if !self.observer.end_of_run(&self.world) {
            return nothing(rows, trace, "the run has not ended");
        }
        let is_observed = self.world.observed().is_some();
        let is_of = |head: &RunStarted| {
            rows.scenario.as_ref().is_some_and(|it| is_observed || it.name == head.scenario)
        };
        let of = ExpectedOf {
            messages: 1,
            facts,
            live: None,
            listed: rows.names.clone(),
            is_checked: head.as_ref().is_some_and(|head| is_of(head)),
        };
        let Some(runs) = self.observer.finish(of) else {
            return nothing(rows, trace, "the run has not ended");
        };
        let expectations = runs.judge(rows.expectations());
        let stopped = runs.outcome.runs().iter().find(|run| !run.stop_reason.is_success());
        TrialResult {
            trace,
            seed: head.as_ref().map_or(0, |head| head.seed),
            runs: head.iter().map(|head| head.run.clone()).collect(),
            stop_reason: runs.outcome.stop_reason().clone(),
            error: stopped.and_then(|run| run.error.clone()),
            warnings: self.warnings,
            notes: notes_on(&self.world),
            elapsed_ms: runs.outcome.elapsed_ms(),
            tokens: runs.tokens,
            cost_usd: runs.outcome.cost_usd(),
            expectations,
        }
    }
}

/// The result where there is no run to judge, for this reason: no row holds.
fn nothing(rows: &Rows, trace: Option<String>, why: &str) -> TrialResult {
    let result = |that: &str, message: Option<String>, line| ExpectationResult {
        that: that.to_owned(),
        message,
        line,
        verdict: Verdict::Invalid(why.to_owned()),
        parts: Vec::new(),
    };
    let of_rows = rows.expectations().iter();
    let mut expectations: Vec<_> =
        of_rows.map(|row| result(row.that.text(), row.message.clone(), Some(row.line))).collect();
    if expectations.is_empty() {
        expectations.push(result("status == \"ok\"", None, None));
    }
    TrialResult {
        trace,
        seed: 0,
        runs: Vec::new(),
        stop_reason: StopReason::Other("no run".into()),
        error: None,
        warnings: Vec::new(),
        notes: Vec::new(),
        elapsed_ms: 0,
        tokens: 0,
        cost_usd: None,
        expectations,
    }
}

/// The result of rows over these runs.
fn case(rows: &Rows, trials: Vec<TrialResult>) -> CaseResult {
    CaseResult {
        name: rows.name.clone(),
        words: String::new(),
        own_seed: 0,
        file: rows.file.clone(),
        is_live: false,
        is_outside: false,
        is_kept: true,
        planned: trials.len(),
        trials,
    }
}

/// The rows that the runs of a watched program have to meet.
pub struct ExpectedRuns {
    rows: Arc<Rows>,
    followers: Mutex<Vec<(RunId, JoinHandle<TrialResult>)>>,
}

/// Most runs that are judged: `listen` may receive them for weeks.
const MAX_RUNS: usize = 10_000;

impl ExpectedRuns {
    /// Reads the file of `--expect`; on an error the message has been printed.
    pub fn read(file: &str) -> Result<Arc<Self>, Exit> {
        let source = ScenarioSource::find(file);
        let source = source.map_err(|error| refuse(&error.into(), Exit::Usage))?;
        let rows = read_rows(source, file).map_err(|why| why.print("--expect"))?;
        match unfit(&rows, true) {
            Some(why) => Err(why.print("--expect")),
            None => Ok(Arc::new(Self { rows: Arc::new(rows), followers: Mutex::default() })),
        }
    }

    /// The rows of a file of rules, which has been read.
    pub fn of_rules(rows: Arc<Rows>) -> Result<Arc<Self>, Exit> {
        match unfit(&rows, true) {
            Some(why) => Err(why.print("--rules")),
            None => Ok(Arc::new(Self { rows, followers: Mutex::default() })),
        }
    }

    /// Follows a run that has just started.
    pub fn follow(&self, run: &RunHandle, runtime: &Handle) {
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        if followers.len() > MAX_RUNS {
            return;
        }
        let (rows, mut reader) = (Arc::clone(&self.rows), run.bus().reader(Seq(0)));
        // One more than is judged: it says that others were not.
        let is_beyond = followers.len() == MAX_RUNS;
        let follower = runtime.spawn(async move {
            if is_beyond {
                return nothing(
                    &rows,
                    None,
                    &format!("only the first {MAX_RUNS} runs were checked"),
                );
            }
            let (mut trial, mut batch) = (RunTrial::new(&rows), Vec::new());
            while reader.next_batch(&mut batch, 256).await > 0 {
                batch.drain(..).for_each(|event| trial.event(&event));
            }
            trial.judge(&rows, None, Err("the program has no facts".into()))
        });
        followers.push((run.id().clone(), follower));
    }

    /// Judges the runs, after the last of them.
    pub async fn end(&self, report: &HubReport) -> JudgedRuns {
        let followers: Vec<_> =
            self.followers.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect();
        let mut trials = Vec::new();
        for (run, follower) in followers {
            let mut trial = match follower.await {
                Ok(trial) => trial,
                Err(_) => nothing(&self.rows, None, "the run could not be followed"),
            };
            let late = report.late_of.get(&run).map(|late| {
                let messages = count_noun(*late, "message");
                format!("{SPANS_MISSING}{messages} came after the end of the run")
            });
            let other = report.warnings.iter().find(|it| it.starts_with(SPANS_MISSING)).cloned();
            if let Some(why) = late.or(other) {
                // What was judged did not have them.
                let held = trial.expectations.iter_mut().filter(|it| it.verdict == Verdict::Holds);
                held.for_each(|result| result.verdict = Verdict::Invalid(why.clone()));
                trial.warnings.push(why);
            }
            trials.push(trial);
        }
        if trials.is_empty() {
            trials.push(nothing(&self.rows, None, "the program reported nothing: there is no run"));
        }
        for trial in &mut trials {
            trial.trace = trial.runs.first().map(ToString::to_string);
        }
        JudgedRuns(TestResults {
            cases: vec![case(&self.rows, trials)],
            not_started: Vec::new(),
            min_pass: 1.0,
            is_cut_off: false,
            is_of_traces: true,
        })
    }
}

/// The runs of a watched program, judged.
pub struct JudgedRuns(TestResults);

impl JudgedRuns {
    /// Prints the results, on standard output or beside that of the program. Returns whether the rows hold
    /// in all runs.
    pub fn print(&self, paint: StreamStyle, format: TestFormat, is_beside: bool) -> bool {
        let Self(results) = self;
        let names = results.cases.iter().map(|case| case.name.as_str());
        let repeats = results.cases.iter().any(|case| case.trials.len() > 1);
        let report = TextReport::with_names(names, repeats, paint, format, results.min_pass);
        let mut report = if is_beside { report.beside_output() } else { report };
        for case in &results.cases {
            let _ = report.case_done(case);
        }
        let _ = report.finish(results);
        results.exit() == Exit::Ok
    }
}

/// `roundtable test --trace`.
pub use self::recorded::check;

mod recorded {
    use super::super::result::NotStarted;
    use super::super::{TestArgs, finish};
    use super::*;
    use crate::cli::args::Global;
    use crate::cli::kept::{TraceEvents, trace_events};
    use crate::cli::launch::sources_named;
    use crate::cli::streams;
    use crate::host::kept_runs;
    use crate::host::recorded::RecordedRun;
    use crate::scenario::Scenario;
    use crate::scenario::cel::Name;
    use crate::screen::form::quoted;
    use crate::screen::theme::Theme;

    /// Checks the rows of files against recorded runs, and reports. What cannot be checked is reported as
    /// failed, and the rest is checked.
    pub fn check(args: &TestArgs, global: &Global, theme: Theme) -> Exit {
        if args.options.report.is_empty()
            && let Err(exit) = streams::check_stdout()
        {
            return exit;
        }
        let (mut found, mut not_started) = (Vec::new(), Vec::new());
        for (place, what) in args.scenarios.iter().enumerate() {
            for source in sources_named(what, &args.scenarios[..place]) {
                let source = match source {
                    Ok(source) => source,
                    Err(why) => {
                        refuse(&why, Exit::Usage);
                        not_started.push(NotStarted::of(what, format!("{why:#}")));
                        continue;
                    }
                };
                let word = source.origin.to_string();
                match read_rows(source, &word) {
                    // Once, however often it is named.
                    Ok(rows)
                        if found.iter().any(|(known, _): &(Rows, _)| known.file == rows.file) => {}
                    Ok(rows) => found.push((rows, Vec::new())),
                    Err(why) => {
                        why.print(&word);
                        not_started.push(NotStarted::of(&word, why.text()));
                    }
                }
            }
        }
        for name in &args.trace {
            let trace = match trace_events(name) {
                Ok(events) => events,
                Err(why) => {
                    refuse(&why, Exit::Usage);
                    not_started.push(NotStarted::of(name, format!("{why:#}")));
                    continue;
                }
            };
            let mut fitting = Vec::new();
            for (rows, mut trials) in found {
                let is_observed = trace.head.plan.name() == "observed";
                match unfit(&rows, is_observed) {
                    Some(why) => {
                        why.print("");
                        not_started.push(NotStarted::of(&rows.file, why.text()));
                    }
                    None => {
                        trials.push(judged(&rows, name, &trace, args.options.deny_warnings));
                        fitting.push((rows, trials));
                    }
                }
            }
            found = fitting;
        }
        // A file without any run that could be read says nothing.
        let cases = found.into_iter().filter(|(_, trials)| !trials.is_empty());
        let cases: Vec<CaseResult> = cases.map(|(rows, trials)| case(&rows, trials)).collect();
        let paint = StreamStyle::of_stdout(theme, global.is_ascii());
        let min_pass = args.options.min_pass.unwrap_or(1.0);
        let names = cases.iter().map(|case| case.name.as_str());
        let mut report =
            TextReport::with_names(names, args.trace.len() > 1, paint, args.format, min_pass);
        for case in &cases {
            if report.case_done(case).is_err() {
                break;
            }
        }
        let results =
            TestResults { cases, not_started, min_pass, is_cut_off: false, is_of_traces: true };
        finish(report, &results, args.format, &args.options)
    }

    fn judged(rows: &Rows, name: &str, trace: &TraceEvents, denies_warnings: bool) -> TrialResult {
        let mut trial = RunTrial::new(rows);
        trace.events.iter().for_each(|event| trial.event(event));
        let of_scenario = |(file, of): (&Arc<Scenario>, &RunStarted)| {
            (file.name == of.scenario).then(|| Arc::clone(&file.facts))
        };
        let facts = rows.scenario.as_ref().map(|file| (file, &*trace.head)).and_then(of_scenario);
        let facts = facts.map_or_else(|| facts_of(rows, trace), Ok);
        let trace = match kept_runs::is_file(name) {
            true => quoted(name),
            false => trace.head.run.to_string(),
        };
        let mut result = trial.judge(rows, Some(trace), facts);
        if denies_warnings {
            result.expectations.push(no_warnings(&result.warnings));
        }
        result
    }

    /// The facts of the scenario as the run had it; read only where a row asks for them.
    fn facts_of(rows: &Rows, trace: &TraceEvents) -> Result<Arc<serde_json::Value>, Arc<str>> {
        let asks = |name: &Name<'_>| name.path.first() == Some(&"facts");
        if !rows.expectations().iter().any(|row| row.that.names().iter().any(asks)) {
            return Err("no row asks for them".into());
        }
        let run = RecordedRun::new(trace.head.run.clone(), trace.events.clone(), true);
        let scenario = run.and_then(|run| run.scenario(&[]));
        scenario.map(|it| it.facts).map_err(|why| why.without_help().into())
    }
}
