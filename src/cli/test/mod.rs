//! `roundtable test`, and `roundtable run --times`: runs scenarios, and checks what they expect of
//! their runs (`[[expect]]`).

mod case;
mod github;
mod json;
mod junit;
mod play;
mod rate;
mod result;
mod text;

use std::io;
use std::path::Path;
use std::sync::Arc;

use self::case::TestCase;
use self::play::play_all;
use self::result::{NotStarted, TestResults};
use super::args::{Global, ReportArg, RunArgs, RunFormat, TestArgs, TestFormat, TestOptions};
use super::exit::Exit;
use super::interrupt::InterruptTarget;
use super::message::print_message;
use super::run::{overrides, print_notes, read, read_source};
use super::runtime::runtime;
use super::sources::sources_named;
use super::stdout;
use super::stored::{OnStoreFailure, StoreOfCommand};
use super::stream_style::StreamStyle;
use crate::base::visible::visible;
use crate::scenario::{Scenario, ScenarioOrigin};
use crate::ui::theme::Theme;

/// Executes `roundtable test`. What cannot be started is reported as failed, and the rest runs.
pub fn run(args: &TestArgs, global: &Global, theme: Theme) -> Exit {
    // Whatever happens, no report of an earlier command is taken for that of this one.
    for report in &args.options.report {
        let _ = std::fs::remove_file(&report.junit);
    }
    if overrides(&args.set).is_none() || !folders_exist(&args.options.report) {
        return Exit::Usage;
    }
    let (mut found, mut not_started) = (Vec::new(), Vec::new());
    for (place, what) in args.scenarios.iter().enumerate() {
        for source in sources_named(what, &args.scenarios[..place]) {
            let source = match source {
                Ok(source) => source,
                Err(why) => {
                    print_message(&visible(&why));
                    not_started.push(NotStarted::of(what, why));
                    continue;
                }
            };
            let word = match &source.origin {
                ScenarioOrigin::File(path) => path.display().to_string(),
                ScenarioOrigin::Shipped(_) => what.clone(),
            };
            let run = args.run_args(&word);
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
    #[cfg(feature = "store")]
    if args.replay.is_some() && found.len() + not_started.len() > 1 {
        print_message("--replay: a recorded run answers one scenario; name one");
        return Exit::Usage;
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
            print_message("--times prints a table: use --format text, json or github");
            return Exit::Usage;
        }
    };
    if !folders_exist(&args.repeat.report) {
        return Exit::Usage;
    }
    let Some(scenario) = read(args) else { return Exit::Usage };
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
        && let Err(exit) = stdout::check_open()
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
    let interrupt = InterruptTarget::of_this_process(stored.keeper());
    drop(guard);
    let paint = StreamStyle::of_stdout(theme, global.is_ascii());
    let min_pass = options.min_pass.unwrap_or(1.0);
    let mut report = text::TextReport::new(&cases, paint, format, min_pass);
    let results = play_all(cases, &runtime, options.jobs, &stored, &interrupt, &mut report);
    if needs_store {
        print_notes(&runtime.block_on(stored.finish()));
    }
    runtime.shutdown_background();
    let results =
        TestResults { cases: results, not_started, min_pass, is_cut_off: interrupt.is_cancelled() };
    let exit = match report.write_error() {
        None => results.exit(),
        // The runs were cancelled because nothing could be written any more.
        Some(io::ErrorKind::BrokenPipe) => Exit::CutOff,
        Some(_) => Exit::Stopped,
    };
    let written = match format {
        TestFormat::Json if results.cases.is_empty() => report.failed(),
        TestFormat::Json => {
            report.failed().and_then(|()| json::write(&results, &mut stdout::data()))
        }
        TestFormat::Text | TestFormat::Github => report.finish(&results),
    };
    let exit = stdout::exit_after_write(written, exit);
    write_reports(&options.report, &results, exit)
}

/// Whether each report can be written into its folder; says which cannot, before any run.
fn folders_exist(reports: &[ReportArg]) -> bool {
    let folders = reports.iter().filter_map(|report| report.junit.parent());
    let missing: Vec<&Path> =
        folders.filter(|it| !it.as_os_str().is_empty() && !it.is_dir()).collect();
    for folder in &missing {
        let folder = folder.display().to_string();
        print_message(&format!("--report: there is no folder {}: create it", visible(&folder)));
    }
    missing.is_empty()
}

/// Writes the reports to their files. A report that cannot be written fails a command that passed.
fn write_reports(reports: &[ReportArg], results: &TestResults, exit: Exit) -> Exit {
    let mut exit = exit;
    for report in reports {
        if let Err(error) = write_junit(&report.junit, results) {
            let path = report.junit.display().to_string();
            print_message(&format!("--report: cannot write {}: {error}", visible(&path)));
            if exit == Exit::Ok {
                exit = Exit::Stopped;
            }
        }
    }
    exit
}

fn write_junit(path: &Path, results: &TestResults) -> io::Result<()> {
    std::fs::write(path, junit::report(results)?)
}
