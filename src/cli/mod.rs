//! The commands, one module each. Errors of the command line or a scenario go to standard error,
//! with exit code 2, before anything starts.

pub mod args;
mod boundaries;
mod config;
mod dashboard;
mod demo_service;
mod doctor;
pub mod exit;
mod headless;
mod in_force;
mod output;
mod paint;
mod progress;
mod run;
mod scenarios;
mod schema;
mod stdout;
mod stop_signals;
mod validate;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use self::args::{Cli, Global, RunArgs, Task};
use self::dashboard::Wanted;
use self::exit::Exit;
use self::paint::Paint;
use crate::event::visible::visible;
use crate::shell::config::{ConfigFile, keep};
use crate::shell::dirs::Dirs;
use crate::shell::log::{self, LogGuard, Sink};
use crate::shell::models::{self, LiveModels};
use crate::shell::{screen, signals, themes};
use crate::ui::theme::Theme;

/// How long a command waits at its end for blocking threads.
const LEFT_BEHIND: Duration = Duration::from_millis(200);

/// Runs the program.
pub fn main() -> ExitCode {
    screen::install_hooks();
    signals::outlive_file_limit();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return unparsed(&error).into(),
    };
    let file = ConfigFile::find();
    match themed(&cli, &file) {
        Ok(theme) => {
            keep(file.config.clone());
            let global = Global { configured: file.config.ui.clone(), ..cli.global };
            dispatch(Cli { global, ..cli }, theme, &file).into()
        }
        Err(exit) => exit.into(),
    }
}

/// The theme of this command. On an error, of the theme or of the configuration, the message has
/// already been printed.
fn themed(cli: &Cli, file: &ConfigFile) -> Result<Theme, Exit> {
    // `config` and `doctor` report errors of the file themselves; the others do not use it.
    let uses_it = !matches!(
        cli.command,
        Some(Task::Config(_) | Task::Doctor(_) | Task::Schema | Task::DemoService { .. })
    );
    if uses_it {
        for line in file.warnings.iter().chain(&file.errors) {
            run::say(&visible(line));
        }
        if file.failed() {
            return Err(Exit::Usage);
        }
    }
    match &cli.global.theme {
        Some(wanted) => themes::find(Some(wanted)).map_err(|text| {
            run::say(&text);
            Exit::Usage
        }),
        None => Ok(file.theme.clone().unwrap_or_default()),
    }
}

/// Prints clap's error or help text.
fn unparsed(error: &clap::Error) -> Exit {
    let printed = error.print();
    if error.use_stderr() {
        return Exit::Usage;
    }
    stdout::ended(printed.and_then(|()| io::stdout().flush()), Exit::Ok)
}

fn dispatch(cli: Cli, theme: Theme, file: &ConfigFile) -> Exit {
    let global = &cli.global;
    let dashboard = match &cli.command {
        None => true,
        Some(Task::Run(args)) => !run::is_headless(args),
        #[cfg(debug_assertions)]
        Some(Task::PanicTest { .. }) => true,
        Some(_) => false,
    };
    let _log = match start_log(global, dashboard) {
        Ok(log) => log,
        Err(exit) => return exit,
    };
    match cli.command {
        None => dashboard::open(&Wanted::default(), global, theme),
        Some(Task::Run(args)) if !dashboard => run_headless(&args, global, theme),
        Some(Task::Run(args)) => {
            dashboard::open(&Wanted { run: Some(&args), ..Wanted::default() }, global, theme)
        }
        Some(Task::Validate(args)) => validate::run(&args, theme, global.is_ascii()),
        Some(Task::Scenarios { json }) => scenarios::run(json, theme, global.is_ascii()),
        Some(Task::Schema) => schema::run(),
        Some(Task::DemoService { port }) => match runtime() {
            Ok(runtime) => to_its_end(runtime, demo_service::run(port)),
            Err(exit) => exit,
        },
        #[cfg(debug_assertions)]
        Some(Task::PanicTest { place: args::PanicPlace::Headless }) => match runtime() {
            Ok(runtime) => {
                dashboard::block_workers(runtime.handle());
                let scenario = "checkout-launch".to_owned();
                let format = Some(args::Format::Jsonl);
                let args = RunArgs { scenario, format, ..RunArgs::default() };
                to_its_end(runtime, run::headless(&args, global, theme))
            }
            Err(exit) => exit,
        },
        #[cfg(debug_assertions)]
        Some(Task::PanicTest { place }) => {
            dashboard::open(&Wanted { run: None, panic: Some(place) }, global, theme)
        }
        Some(Task::Config(args)) => {
            let paint = Paint::on(&io::stdout(), theme, global.is_ascii());
            config::run(&args, global, file, &paint)
        }
        Some(Task::Doctor(args)) => {
            let paint = Paint::on(&io::stdout(), theme, global.is_ascii());
            let via = match models::via(args.proxy.as_deref()) {
                Ok(via) => via,
                Err(why) => {
                    run::say(&format!("--proxy: {why}"));
                    return Exit::Usage;
                }
            };
            match runtime() {
                Ok(runtime) => {
                    to_its_end(runtime, doctor::run(&args, file, &LiveModels::new(via), &paint))
                }
                Err(exit) => exit,
            }
        }
    }
}

/// Runs to completion; abandons blocking threads after [`LEFT_BEHIND`].
fn to_its_end(runtime: tokio::runtime::Runtime, work: impl Future<Output = Exit>) -> Exit {
    let exit = runtime.block_on(work);
    runtime.shutdown_timeout(LEFT_BEHIND);
    exit
}

fn run_headless(args: &RunArgs, global: &Global, theme: Theme) -> Exit {
    match runtime() {
        Ok(runtime) => to_its_end(runtime, run::headless(args, global, theme)),
        Err(exit) => exit,
    }
}

/// Starts the log. If the file of `--log-file` cannot be opened, the command fails; without the
/// dashboard's default log file it continues.
fn start_log(global: &Global, dashboard: bool) -> Result<Option<LogGuard>, Exit> {
    let kept = Dirs::find().map(|dirs| dirs.log()).filter(|_| dashboard);
    let file = global.log_file.as_ref().or(kept.as_ref());
    let sink = match file {
        Some(path) => Sink::File(path),
        None if dashboard => return Ok(None),
        None => Sink::Stderr,
    };
    let error = match log::start(sink) {
        Ok(guard) => return Ok(Some(guard)),
        Err(error) => error,
    };
    let path = file.map(|path| visible(&path.display().to_string()).into_owned());
    let path = path.unwrap_or_default();
    if global.log_file.is_none() {
        run::say(&format!(
            "no log: cannot open {path}: {error}; choose another file with --log-file"
        ));
        return Ok(None);
    }
    let advice = "use a writable file, or omit the option";
    run::say(&format!("--log-file: cannot open {path}: {error}; {advice}"));
    Err(Exit::Usage)
}

fn runtime() -> Result<tokio::runtime::Runtime, Exit> {
    started(&mut builder())
}

fn builder() -> tokio::runtime::Builder {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all();
    builder
}

fn started(builder: &mut tokio::runtime::Builder) -> Result<tokio::runtime::Runtime, Exit> {
    builder.build().map_err(|error| {
        run::say(&format!("cannot start: {error}"));
        Exit::Stopped
    })
}
