//! The commands, one file or folder each, and the runtimes they need. Errors of the command line or
//! a scenario go to standard error, with exit code 2, before anything starts.

mod acp;
pub mod args;
mod cluster;
mod command_words;
mod complete;
mod config;
mod dashboard;
mod demo_service;
mod doctor;
mod effective;
pub mod exit;
mod guard;
mod headless;
mod kept;
mod launch;
pub mod man;
mod mcp;
mod new;
mod output;
pub mod people;
pub mod picture;
pub mod plain;
pub mod run;
mod scenarios;
mod stdio;
mod steer;
pub mod streams;
mod test;
mod tools;
mod validate;
mod watch;
mod watch_agent;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use self::args::{Cli, CliCommand, Global};
use self::dashboard::DashboardArgs;
use self::exit::Exit;
use self::launch::print_notes;
use self::streams::{StreamStyle, print_message, print_on_stderr, refuse};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::visible::visible;
use crate::host::config::{ConfigFile, set_user_config};
use crate::host::models::LiveModels;
use crate::host::program_log::{LogGuard, Sink};
use crate::host::{Dirs, models, program_log, traced_runs};
use crate::scenario::ScenarioSource;
use crate::scenario::config::UserConfig;
use crate::scenario::source::SourceError;
use crate::screen::form::quoted;
use crate::screen::keymap::{Keymap, use_keys};
use crate::screen::theme::Theme;
use crate::terminal::themes::{THEME_VARIABLE, ThemeChoice};
use crate::terminal::{screen_guard, signals, themes};

/// Runs the program.
pub fn main() -> ExitCode {
    screen_guard::install_hooks();
    signals::ignore_file_limit_signal();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return print_clap_error(&error).into(),
    };
    let mut file = ConfigFile::find();
    let configured = themes::from_config(&mut file);
    let keys = read_keys(&mut file);
    if file.failed() {
        file.config = UserConfig::default();
    }
    let global = Global {
        configured: file.config.ui.clone(),
        theme_variable: theme_variable(),
        ..cli.global
    };
    let needs = Needs::of(cli.command.as_ref(), &global);
    let theme = match resolve_theme(&global, needs, &file, configured) {
        Ok(theme) => theme,
        Err(exit) => return exit.into(),
    };
    set_user_config(file.config.clone());
    use_keys(keys);
    if global.otlp.is_some() && !needs.sends_spans {
        let why = Refused::new("--otlp: this command plays no run that sends spans");
        return refuse(&why.help("leave out --otlp"), Exit::Usage).into();
    }
    if let Err(why) = traced_runs::use_target(global.otlp.as_deref(), global.otlp_content) {
        return refuse(&why, Exit::Usage).into();
    }
    dispatch(cli.command, needs, &global, theme, &file).into()
}

/// What a command needs of the program besides its arguments.
#[derive(Clone, Copy, Default)]
struct Needs {
    /// The dashboard, or plain mode.
    dashboard: bool,
    /// Spans are sent: of the runs it plays, or of a kept run. Tests take simulated time.
    sends_spans: bool,
    /// The log goes to a file: standard error shows something else, or nothing.
    log_file: bool,
    /// It works without the configuration file: it reports its errors itself, or uses nothing of it.
    no_configuration: bool,
}

impl Needs {
    /// The row of each command. `None`: the dashboard at home.
    fn of(command: Option<&CliCommand>, global: &Global) -> Self {
        let nothing = Self::default();
        let plays = Self { sends_spans: true, ..nothing };
        let dashboard = Self { dashboard: true, log_file: true, ..plays };
        let Some(command) = command else { return dashboard };
        match command {
            CliCommand::Tour | CliCommand::Open(_) | CliCommand::Attach(_) => dashboard,
            CliCommand::Run(args) if !run::is_headless(args, global) => dashboard,
            CliCommand::Run(args) => Self {
                sends_spans: args.repeat.times.is_none() && !args.is_remote(),
                log_file: args.detach.detached,
                ..nothing
            },
            CliCommand::Watch(args) if !args.program.is_headless(global) => dashboard,
            CliCommand::Guard(args)
                if args.listen.is_none() && !args.program.is_headless(global) =>
            {
                dashboard
            }
            CliCommand::Resume(args) => Self { log_file: args.play.detach.detached, ..plays },
            CliCommand::Fork(args) => Self { log_file: args.play.detach.detached, ..plays },
            // A client shows what its agent or server writes to standard error.
            CliCommand::Acp(_) | CliCommand::Mcp(_) => Self { log_file: true, ..plays },
            CliCommand::Watch(_)
            | CliCommand::Guard(_)
            | CliCommand::Listen(_)
            | CliCommand::Export(_)
            | CliCommand::Runner(_) => plays,
            CliCommand::Config(_)
            | CliCommand::Doctor(_)
            | CliCommand::Schema(_)
            | CliCommand::DemoService { .. }
            | CliCommand::Completions(_)
            | CliCommand::Complete(_)
            | CliCommand::Man(_) => Self { no_configuration: true, ..nothing },
            #[cfg(debug_assertions)]
            CliCommand::PanicTest { .. } => Self { sends_spans: false, ..dashboard },
            _ => nothing,
        }
    }
}

/// The keys of the dashboard. Mistakes in them are errors of the configuration file.
fn read_keys(file: &mut ConfigFile) -> Keymap {
    match Keymap::configured(&file.config.keys) {
        Ok(keys) => keys,
        Err(errors) => {
            file.errors.extend(errors);
            Keymap::default()
        }
    }
}

/// The theme that the environment names.
fn theme_variable() -> Option<String> {
    let name = std::env::var_os(THEME_VARIABLE)?.to_string_lossy().trim().to_owned();
    (!name.is_empty()).then_some(name)
}

/// The theme of this command: of the command line, the environment, the configuration. On an error, of the theme or
/// of the configuration, the message has already been printed.
fn resolve_theme(
    global: &Global,
    needs: Needs,
    file: &ConfigFile,
    configured: Option<ThemeChoice>,
) -> Result<ThemeChoice, Exit> {
    if !needs.no_configuration {
        for line in file.warnings.iter().chain(&file.errors) {
            print_message(&visible(line));
        }
        if file.failed() {
            return Err(Exit::Usage);
        }
    }
    let found = match (&global.theme, &global.theme_variable) {
        (Some(wanted), _) => themes::find("--theme", wanted),
        (None, Some(wanted)) if !needs.no_configuration => themes::find(THEME_VARIABLE, wanted),
        _ => return Ok(configured.unwrap_or_default()),
    };
    found.map_err(|why| refuse(&why, Exit::Usage))
}

/// Prints clap's error or help text.
fn print_clap_error(error: &clap::Error) -> Exit {
    if let Some(text) = scenario_without_command(error) {
        print_message(&text);
        return Exit::Usage;
    }
    let text = error.render();
    if error.use_stderr() {
        let styled = StreamStyle::of_stderr(Theme::default(), false).colour();
        let text = if styled { text.ansi().to_string() } else { text.to_string() };
        print_on_stderr(&text, styled);
        return Exit::Usage;
    }
    let styled = StreamStyle::of_stdout(Theme::default(), false).colour();
    streams::print(&if styled { text.ansi().to_string() } else { text.to_string() }, Exit::Ok)
}

/// What to type instead, if a scenario was given in place of a command.
fn scenario_without_command(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::InvalidSubcommand
        || error.get(ContextKind::SuggestedSubcommand).is_some()
    {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let (is, name) = match ScenarioSource::find(word) {
        Ok(_) => ("is a scenario, not a command", word.clone()),
        Err(SourceError::NotFound { help: Some(name), .. }) => ("is not a command", name),
        Err(_) => return None,
    };
    let (word, name) = (visible(word), quoted(&name));
    Some(format!("{word} {is}; did you mean `roundtable run {name}`?"))
}

fn dispatch(
    command: Option<CliCommand>,
    needs: Needs,
    global: &Global,
    choice: ThemeChoice,
    file: &ConfigFile,
) -> Exit {
    if global.is_plain() {
        streams::use_plain();
    }
    let _log = match start_log(global, needs.log_file) {
        Ok(log) => log,
        Err(exit) => return exit,
    };
    let ascii = global.is_ascii();
    // Only the dashboard asks the terminal.
    let theme = choice.clone().theme();
    let paint = |theme| StreamStyle::of_stdout(theme, ascii);
    let open = |wanted: DashboardArgs<'_>| dashboard::open(wanted, global, choice).into();
    let Some(command) = command else { return open(DashboardArgs::default()) };
    match command {
        CliCommand::Tour => open(DashboardArgs { tour: true, ..DashboardArgs::default() }),
        CliCommand::Run(args) if needs.dashboard => open(DashboardArgs::of_run(&args)),
        CliCommand::Run(args) => run::run(&args, global, theme),
        CliCommand::Watch(args) => match watch_agent::run_args(&args) {
            Err(why) => refuse(&why, Exit::Usage),
            Ok(Some(run)) if needs.dashboard => open(DashboardArgs::of_run(&run)),
            Ok(Some(run)) => run::run(&run, global, theme),
            Ok(None) if needs.dashboard => {
                open(DashboardArgs { watched: Some(&args), ..DashboardArgs::default() })
            }
            Ok(None) => run_to_end(watch::watch(&args, global, theme)),
        },
        CliCommand::Guard(args) => {
            let args = match args.watch() {
                Ok(args) => args,
                Err(exit) => return exit,
            };
            let listens = args.guard.as_ref().is_some_and(|guard| guard.listening.is_some());
            match needs.dashboard {
                _ if listens => run_to_end(watch::guard_programs(&args, global, theme)),
                true => open(DashboardArgs { watched: Some(&args), ..DashboardArgs::default() }),
                false => run_to_end(watch::watch(&args, global, theme)),
            }
        }
        CliCommand::Listen(args) => run_to_end(watch::listen(&args, global, theme)),
        CliCommand::Mcp(args) => run_to_end(mcp::serve(args, global)),
        CliCommand::Acp(args) => run_to_end(acp::serve(args, global)),
        CliCommand::Test(args) => test::run(&args, global, theme),
        CliCommand::Validate(args) => validate::run(&args, theme, ascii),
        CliCommand::Tools(args) => run_to_end(tools::run(&args, paint(theme))),
        CliCommand::New(args) => new::run(&args, theme, ascii),
        CliCommand::Scenarios { name: Some(name), .. } => scenarios::print_one(&name),
        CliCommand::Scenarios { json, .. } => scenarios::run(json, theme, ascii),
        CliCommand::Runs(args) if args.on.is_some() => {
            run_to_end(cluster::list_runs(&args, theme, ascii))
        }
        CliCommand::Runs(args) => kept::runs(&args, theme, ascii).into(),
        CliCommand::Open(args) => match kept::OpenedRun::find(&args.run) {
            Ok(run) => open(DashboardArgs { opened: Some(run), ..DashboardArgs::default() }),
            Err(exit) => exit,
        },
        CliCommand::Show(args) => run_to_end(kept::show(&args, theme, ascii)),
        CliCommand::Resume(args) => run_to_end(kept::resume(&args, theme, ascii)),
        CliCommand::Fork(args) => run_to_end(kept::fork(&args, theme, ascii)),
        CliCommand::Diff(args) => kept::diff(&args, theme, ascii),
        CliCommand::Export(args) => kept::export(&args, global).into(),
        CliCommand::Import(args) => kept::import(&args).into(),
        CliCommand::Runner(args) => run_to_end(cluster::runner(&args)),
        CliCommand::Attach(args) => {
            open(DashboardArgs { attached: Some(&args), ..DashboardArgs::default() })
        }
        CliCommand::Ctl(args) => run_to_end(steer::ctl(args)),
        CliCommand::Answer(args) => run_to_end(steer::answer(args)),
        CliCommand::Cluster(args) => run_to_end(cluster::cluster(&args, &paint(theme))),
        CliCommand::Picture(args) => picture::picture(&args, global, theme),
        CliCommand::Schema(args) => validate::print_schema(&args),
        CliCommand::Completions(args) => complete::print_completions(&args),
        CliCommand::Complete(args) => complete::run(&args),
        CliCommand::Man(args) => man::run(&args),
        CliCommand::DemoService { port } => run_to_end(demo_service::run(port)),
        CliCommand::Config(args) => config::run(&args, global, file, &paint(theme)),
        CliCommand::Doctor(args) => match models::parse_proxy(args.proxy.as_deref()) {
            Ok(via) => run_to_end(doctor::run(&args, file, &LiveModels::new(via), &paint(theme))),
            Err(why) => refuse(&why, Exit::Usage),
        },
        #[cfg(debug_assertions)]
        CliCommand::PanicTest { place: args::PanicPlace::Headless } => stuck_run(global, theme),
        #[cfg(debug_assertions)]
        CliCommand::PanicTest { place } => {
            open(DashboardArgs { panic: Some(place), ..DashboardArgs::default() })
        }
    }
}

/// A headless run with all its threads blocked, for a test.
#[cfg(debug_assertions)]
fn stuck_run(global: &Global, theme: Theme) -> Exit {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(exit) => return exit,
    };
    dashboard::block_workers(runtime.handle());
    let scenario = "checkout-launch".to_owned();
    let format = Some(args::RunFormat::Jsonl);
    let args = run::RunArgs { scenario, format, ..run::RunArgs::default() };
    end_in(runtime, run::play(&args, global, theme))
}

/// Starts the log. If the file of `--log-file` cannot be opened, the command fails; without the
/// default log file it continues. `to_file`: standard error shows something else, or nothing.
fn start_log(global: &Global, to_file: bool) -> Result<Option<LogGuard>, Exit> {
    let kept = Dirs::find().map(|dirs| dirs.log()).filter(|_| to_file);
    let file = global.log_file.as_ref().or(kept.as_ref());
    let sink = match file {
        Some(path) => Sink::File(path),
        None if to_file => return Ok(None),
        None => Sink::Stderr,
    };
    let error = match program_log::start(sink) {
        Ok(guard) => return Ok(Some(guard)),
        Err(error) => error,
    };
    let path = file.map(|path| visible(&path.display().to_string()).into_owned());
    let path = path.unwrap_or_default();
    if global.log_file.is_none() {
        let why = Refused::new(format!("no log: cannot open {path}")).because(error);
        refuse(&why.help("choose another file with --log-file"), Exit::Ok);
        return Ok(None);
    }
    let why = Refused::new(format!("--log-file: cannot open {path}")).because(error);
    Err(refuse(&why.help("use a writable file, or omit the option"), Exit::Usage))
}

/// How long a command waits at its end for blocking threads.
const BLOCKING_GRACE: Duration = Duration::from_millis(200);

/// Runs to completion, and sends the last spans; abandons blocking threads after [`BLOCKING_GRACE`].
fn run_to_end(work: impl Future<Output = impl Into<Exit>>) -> Exit {
    match runtime() {
        Ok(runtime) => end_in(runtime, work),
        Err(exit) => exit,
    }
}

fn end_in(runtime: tokio::runtime::Runtime, work: impl Future<Output = impl Into<Exit>>) -> Exit {
    let exit = runtime.block_on(async {
        let exit = work.await.into();
        print_notes(traced_runs::finish().await.as_slice());
        exit
    });
    runtime.shutdown_timeout(BLOCKING_GRACE);
    exit
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Exit> {
    build_runtime(&mut builder())
}

pub(crate) fn builder() -> tokio::runtime::Builder {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all();
    builder
}

pub(crate) fn build_runtime(
    builder: &mut tokio::runtime::Builder,
) -> Result<tokio::runtime::Runtime, Exit> {
    builder.build().or_refuse("cannot start").map_err(|why| refuse(&why, Exit::Stopped))
}
