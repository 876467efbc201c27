//! `roundtable test`, and `roundtable run --times`: runs scenarios and checks what they expect of
//! their runs (`[[expect]]`).

mod play;
mod reports;
mod result;
mod text;
pub mod trace;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};

use self::play::{TestCase, play_all};
use self::result::{NotStarted, TestResults};
use super::args::{FlagArg, Global, RunFormat};
use super::exit::Exit;
use super::headless::InterruptTarget;
use super::launch::{
    OnStoreFailure, StoreOfCommand, overrides, print_notes, read_scenario, read_source,
    sources_named,
};
use super::run::RunArgs;
use super::streams::{StreamStyle, refuse};
use super::{runtime, streams};
use crate::base::refused::Refused;
use crate::scenario::rows::is_rows_file;
use crate::scenario::{Scenario, ScenarioOrigin};
use crate::screen::theme::Theme;

/// Arguments of `roundtable test`.
#[derive(Debug, Clone, Default, Args)]
pub struct TestArgs {
    /// Files, folders (their *.toml), names of scenarios, or - for standard input
    #[arg(required = true, value_name = "FILE|FOLDER|NAME|-")]
    pub scenarios: Vec<String>,
    /// How often each scenario runs, which of the runs have to pass, and how that is reported.
    #[command(flatten)]
    pub options: TestOptions,
    /// Call live models, as `run --live` does
    #[arg(long)]
    pub live: bool,
    /// The model of live runs, such as gpt-4.1-mini or anthropic/claude-haiku-4-5
    #[arg(long, value_name = "[PROVIDER/]MODEL", requires = "live")]
    pub model: Option<String>,
    /// Answer the model calls of one scenario from a recorded run
    #[arg(long, value_name = "RUN|FILE.jsonl[.gz]", conflicts_with = "live")]
    pub replay: Option<String>,
    /// With --replay: use the answers of people in a log from elsewhere
    #[arg(long, requires = "replay")]
    pub trust_answers: bool,
    /// Check the rows of the files against a recorded run, of roundtable or of a program that was watched,
    /// and run nothing. Several count like repeated runs. A file may have rows alone
    #[arg(
        long,
        value_name = "RUN|FILE.jsonl[.gz]",
        conflicts_with_all = [
            "live", "replay", "set", "flags", "seed", "trust", "proxy", "times", "jobs",
        ]
    )]
    pub trace: Vec<String>,
    /// How the results are written
    #[arg(long, value_enum, default_value_t)]
    pub format: TestFormat,
    /// Override a field of each scenario, as `run --set` does
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Switch a flag of each scenario, as `run --flag` does
    #[arg(long = "flag", value_name = "NAME=on|off[@BOUNDARY]", value_parser = FlagArg::parse)]
    pub flags: Vec<FlagArg>,
    /// Seed of the runs' random numbers
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Allow without asking what the scenarios would do, as `run --trust` does
    #[arg(long)]
    pub trust: bool,
    /// Call endpoints through this proxy, as `run --proxy` does
    #[arg(long, value_name = "URL|env")]
    pub proxy: Option<String>,
}

impl TestArgs {
    /// The arguments of the runs of one scenario.
    pub fn run_args(&self, scenario: &str) -> RunArgs {
        RunArgs {
            scenario: scenario.to_owned(),
            live: self.live,
            model: self.model.clone(),
            replay: self.replay.clone(),
            trust_answers: self.trust_answers,
            set: self.set.clone(),
            flags: self.flags.clone(),
            seed: self.seed,
            trust: self.trust,
            proxy: self.proxy.clone(),
            ..RunArgs::default()
        }
    }
}

/// How often scenarios run, and which of the runs have to pass.
#[derive(Debug, Clone, Default, Args)]
pub struct TestOptions {
    /// Run each scenario so often, and report how many runs pass
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub times: Option<u32>,
    /// What differs between the runs of --times: with `seed` each has the next seed
    #[arg(long, value_enum, requires = "times")]
    pub vary: Option<Vary>,
    /// The share of the runs of a scenario that has to pass, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub min_pass: Option<f64>,
    /// Fail a scenario that has warnings, also those of conditions that could not be evaluated
    #[arg(long)]
    pub deny_warnings: bool,
    /// Write a report for a CI system
    #[arg(long, value_name = "junit=FILE", value_parser = ReportArg::parse)]
    pub report: Vec<ReportArg>,
    /// Maximum number of runs at the same time; default: the number of processors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
}

impl TestOptions {
    /// The first option that `run` takes only with `--times`, if that is missing.
    pub(super) fn needs_times(&self) -> Option<&'static str> {
        let given = [
            ("--min-pass", self.min_pass.is_some()),
            ("--deny-warnings", self.deny_warnings),
            ("--report", !self.report.is_empty()),
            ("--jobs", self.jobs.is_some()),
        ];
        let first = given.into_iter().find(|(_, is_given)| *is_given);
        first.filter(|_| self.times.is_none()).map(|(name, _)| name)
    }
}

/// What differs between repeated runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Vary {
    /// The seed
    Seed,
}

/// How the results of tests are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum TestFormat {
    /// A line for each scenario, then what failed
    #[default]
    Text,
    /// One object
    Json,
    /// Text with annotations for GitHub Actions
    Github,
}

/// A value of `--report`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportArg {
    /// Where a JUnit report is written.
    pub junit: PathBuf,
}

impl ReportArg {
    fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some(("junit", file)) if !file.is_empty() => Ok(Self { junit: file.into() }),
            _ => Err("write junit=FILE".to_owned()),
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a number from 0 to 1, such as 0.9".to_owned()),
    }
}

/// Executes `roundtable test`. What cannot be started is reported as failed, and the rest runs.
pub fn run(args: &TestArgs, global: &Global, theme: Theme) -> Exit {
    // Whatever happens, no report of an earlier command is taken for that of this one.
    for report in &args.options.report {
        let _ = std::fs::remove_file(&report.junit);
    }
    if overrides(&args.set).is_none() || !folders_exist(&args.options.report) {
        return Exit::Usage;
    }
    if !args.trace.is_empty() {
        return trace::check(args, global, theme);
    }
    if args.options.min_pass.is_some() && args.options.times.is_none() {
        let why = Refused::new("--min-pass is about several runs");
        return refuse(&why.help("add --times N, or --trace for recorded runs"), Exit::Usage);
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
            let word = match &source.origin {
                ScenarioOrigin::File(path) => path.display().to_string(),
                ScenarioOrigin::Shipped(_) => what.clone(),
            };
            let run = args.run_args(&word);
            if is_rows_file(&source.text) {
                let why = Refused::new(format!("{word} has rows, and nothing to run"));
                let why = why.help("check them against recorded runs with --trace RUN");
                refuse(&why, Exit::Usage);
                not_started.push(NotStarted::of(&word, format!("{why:#}")));
                continue;
            }
            match read_source(source, &run) {
                // Once, however often it is named.
                Ok(scenario) if is_known(&scenario.origin, &found) => {}
                Ok(scenario) => found.push((run, scenario)),
                Err(why) => {
                    why.print(&word);
                    not_started.push(NotStarted::of(&word, why.text()));
                }
            }
        }
    }
    if args.replay.is_some() && found.len() + not_started.len() > 1 {
        let why = Refused::new("--replay: a recorded run answers one scenario");
        return refuse(&why.help("name one"), Exit::Usage);
    }
    execute(found, not_started, &args.options, args.format, false, global, theme)
}

/// If the scenario is that of a file that was read already.
fn is_known(origin: &ScenarioOrigin, found: &[(RunArgs, Arc<Scenario>)]) -> bool {
    let place = |origin: &ScenarioOrigin| match origin {
        ScenarioOrigin::File(path) => std::fs::canonicalize(path).ok(),
        ScenarioOrigin::Shipped(name) => Some((*name).into()),
    };
    let wanted = place(origin);
    wanted.is_some() && found.iter().any(|(_, known)| place(&known.origin) == wanted)
}

/// Executes `roundtable run --times`: the runs take the time that one run takes.
pub fn repeat(args: &RunArgs, global: &Global, theme: Theme) -> Exit {
    let format = match args.format {
        None | Some(RunFormat::Text) => TestFormat::Text,
        Some(RunFormat::Json) => TestFormat::Json,
        Some(RunFormat::Github) => TestFormat::Github,
        Some(RunFormat::Jsonl | RunFormat::Markdown) => {
            let why = Refused::new("--times prints a table");
            return refuse(&why.help("use --format text, json or github"), Exit::Usage);
        }
    };
    if !folders_exist(&args.repeat.report) {
        return Exit::Usage;
    }
    let Some(scenario) = read_scenario(args) else { return Exit::Usage };
    execute(vec![(args.clone(), scenario)], Vec::new(), &args.repeat, format, true, global, theme)
}

/// Runs the scenarios so often, and reports. `in_real_time`: no run takes simulated time.
fn execute(
    found: Vec<(RunArgs, Arc<Scenario>)>,
    mut not_started: Vec<NotStarted>,
    options: &TestOptions,
    format: TestFormat,
    in_real_time: bool,
    global: &Global,
    theme: Theme,
) -> Exit {
    // A report in a file is written all the same.
    if options.report.is_empty()
        && let Err(exit) = streams::check_stdout()
    {
        return exit;
    }
    // Tools and connections are made within a runtime.
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(exit) => return exit,
    };
    let guard = runtime.enter();
    let mut cases = Vec::new();
    for (args, scenario) in found {
        let word = args.scenario.clone();
        match TestCase::prepare(args, scenario, options, in_real_time) {
            Ok(case) => cases.push(case),
            Err(why) => {
                why.print(&word);
                not_started.push(NotStarted::of(&word, why.text()));
            }
        }
    }
    let needs_store = cases.iter().any(|case| case.is_kept);
    let store = Global { no_store: global.no_store || !needs_store, ..global.clone() };
    let stored = StoreOfCommand::open(&store, OnStoreFailure::Stop);
    if needs_store {
        print_notes(&stored.problems);
    }
    let interrupt = InterruptTarget::of_this_process(stored.keeper(), false);
    drop(guard);
    let paint = StreamStyle::of_stdout(theme, global.is_ascii());
    let min_pass = options.min_pass.unwrap_or(1.0);
    let mut report = text::TextReport::new(&cases, paint, format, min_pass);
    let results = play_all(cases, &runtime, options.jobs, &stored, &interrupt, &mut report);
    if needs_store {
        print_notes(&runtime.block_on(stored.finish()));
    }
    runtime.shutdown_background();
    let results = TestResults {
        cases: results,
        not_started,
        min_pass,
        is_cut_off: interrupt.is_cancelled(),
        is_of_traces: false,
    };
    finish(report, &results, format, options)
}

/// Writes what has not been written yet, and returns the exit code.
fn finish(
    mut report: text::TextReport,
    results: &TestResults,
    format: TestFormat,
    options: &TestOptions,
) -> Exit {
    let exit = match report.write_error() {
        None => results.exit(),
        // The runs were cancelled because nothing could be written any more.
        Some(io::ErrorKind::BrokenPipe) => Exit::CutOff,
        Some(_) => Exit::Stopped,
    };
    let written = match format {
        TestFormat::Json if results.cases.is_empty() => report.failed(),
        TestFormat::Json => {
            report.failed().and_then(|()| reports::write_json(results, &mut streams::stdout_data()))
        }
        TestFormat::Text | TestFormat::Github => report.finish(results),
    };
    let exit = streams::exit_after_write(written, exit);
    write_reports(&options.report, results, exit)
}

/// Whether each report can be written into its folder; says which cannot, before any run.
fn folders_exist(reports: &[ReportArg]) -> bool {
    let folders = reports.iter().filter_map(|report| report.junit.parent());
    let missing: Vec<&Path> =
        folders.filter(|it| !it.as_os_str().is_empty() && !it.is_dir()).collect();
    for folder in &missing {
        let what = format!("--report: there is no folder {}", folder.display());
        refuse(&Refused::new(what).help("create it"), Exit::Usage);
    }
    missing.is_empty()
}

/// Writes the reports to their files. A report that cannot be written fails a command that passed.
fn write_reports(reports: &[ReportArg], results: &TestResults, exit: Exit) -> Exit {
    let mut exit = exit;
    for report in reports {
        if let Err(error) = write_junit(&report.junit, results) {
            let what = format!("--report: cannot write {}", report.junit.display());
            let failed = refuse(&Refused::new(what).because(error), Exit::Stopped);
            if exit == Exit::Ok {
                exit = failed;
            }
        }
    }
    exit
}

fn write_junit(path: &Path, results: &TestResults) -> io::Result<()> {
    std::fs::write(path, reports::junit(results)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_report_format_and_file() {
        let junit = ReportArg { junit: PathBuf::from("a=b.xml") };
        assert_eq!(ReportArg::parse("junit=a=b.xml"), Ok(junit));
        for wrong in ["junit", "junit=", "xml=a", ""] {
            assert!(ReportArg::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn share_is_between_zero_and_one() {
        assert_eq!(share("0.95"), Ok(0.95));
        for wrong in ["1.01", "-0.1", "NaN", "95%", ""] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
