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
    match resolve_theme(&cli, &file, configured) {
        Ok(theme) => {
            set_user_config(file.config.clone());
            use_keys(keys);
            let (otlp, content) = (cli.global.otlp.as_deref(), cli.global.otlp_content);
            if otlp.is_some() && !plays_runs(&cli.command) {
                let why = Refused::new("--otlp: this command plays no run that sends spans");
                return refuse(&why.help("leave out --otlp"), Exit::Usage).into();
            }
            if let Err(why) = traced_runs::use_target(otlp, content) {
                return refuse(&why, Exit::Usage).into();
            }
            let global = Global {
                configured: file.config.ui.clone(),
                theme_variable: theme_variable(),
                ..cli.global
            };
            dispatch(Cli { global, ..cli }, theme, &file).into()
        }
        Err(exit) => exit.into(),
    }
}

/// Whether the runs of a command send spans, or it sends those of a kept run. Tests take simulated time.
fn plays_runs(command: &Option<CliCommand>) -> bool {
    match command {
        None | Some(CliCommand::Tour) => true,
        Some(CliCommand::Run(args)) => args.repeat.times.is_none() && !args.is_remote(),
        Some(CliCommand::Watch(_) | CliCommand::Listen(_) | CliCommand::Acp(_)) => true,
        Some(CliCommand::Mcp(_)) => true,
        Some(
            CliCommand::Open(_)
            | CliCommand::Resume(_)
            | CliCommand::Fork(_)
            | CliCommand::Export(_),
        ) => true,
        Some(CliCommand::Runner(_)) => true,
        Some(CliCommand::Attach(_)) => true,
        Some(_) => false,
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

/// The theme of this command: of the command line, the environment, the configuration. On an error, of the theme or of the configuration, the message has
/// already been printed.
fn resolve_theme(
    cli: &Cli,
    file: &ConfigFile,
    configured: Option<ThemeChoice>,
) -> Result<ThemeChoice, Exit> {
    // `config` and `doctor` report errors of the file themselves; the others do not use it.
    let uses_it = !matches!(
        cli.command,
        Some(
            CliCommand::Config(_)
                | CliCommand::Doctor(_)
                | CliCommand::Schema(_)
                | CliCommand::DemoService { .. }
                | CliCommand::Completions(_)
                | CliCommand::Complete(_)
                | CliCommand::Man(_)
        )
    );
    if uses_it {
        for line in file.warnings.iter().chain(&file.errors) {
            print_message(&visible(line));
        }
        if file.failed() {
            return Err(Exit::Usage);
        }
    }
    let found = match (&cli.global.theme, theme_variable()) {
        (Some(wanted), _) => themes::find("--theme", wanted),
        (None, Some(wanted)) if uses_it => themes::find(THEME_VARIABLE, &wanted),
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

fn dispatch(cli: Cli, choice: ThemeChoice, file: &ConfigFile) -> Exit {
    let global = &cli.global;
    if global.is_plain() {
        streams::use_plain();
    }
    // Only the dashboard asks the terminal.
    let theme = choice.clone().theme();
    let dashboard = match &cli.command {
        None | Some(CliCommand::Tour) => true,
        Some(CliCommand::Run(args)) => !run::is_headless(args, global),
        Some(CliCommand::Open(_)) => true,
        Some(CliCommand::Attach(_)) => true,
        Some(CliCommand::Watch(args)) => !args.is_headless(global),
        #[cfg(debug_assertions)]
        Some(CliCommand::PanicTest { .. }) => true,
        Some(_) => false,
    };
    // A client shows what its agent or server writes to standard error.
    let to_file = matches!(cli.command, Some(CliCommand::Acp(_)));
    let to_file = to_file || dashboard || is_detached(&cli.command);
    let to_file = to_file || matches!(cli.command, Some(CliCommand::Mcp(_)));
    let _log = match start_log(global, to_file) {
        Ok(log) => log,
        Err(exit) => return exit,
    };
    match cli.command {
        None => dashboard::open(DashboardArgs::default(), global, choice),
        Some(CliCommand::Tour) => {
            let wanted = DashboardArgs { tour: true, ..DashboardArgs::default() };
            dashboard::open(wanted, global, choice)
        }
        Some(CliCommand::Run(args)) if !dashboard => run::run(&args, global, theme),
        Some(CliCommand::Run(args)) => dashboard::open(
            DashboardArgs { run: Some(&args), ..DashboardArgs::default() },
            global,
            choice,
        ),
        Some(CliCommand::Watch(args)) if args.names_address() => {
            match watch_agent::run_args(&args) {
                Err(why) => refuse(&why, Exit::Usage),
                Ok(run) if !dashboard => run::run(&run, global, theme),
                Ok(run) => dashboard::open(
                    DashboardArgs { run: Some(&run), ..DashboardArgs::default() },
                    global,
                    choice,
                ),
            }
        }
        Some(CliCommand::Watch(args)) if args.has_agent_options() => {
            let why =
                Refused::new("--message, --header and --people are for an agent at an address");
            refuse(
                &why.help("give its address in place of the program, or leave them out"),
                Exit::Usage,
            )
        }
        Some(CliCommand::Watch(args)) if !dashboard => {
            run_to_end(watch::watch(&args, global, theme))
        }
        Some(CliCommand::Watch(args)) => dashboard::open(
            DashboardArgs { watched: Some(&args), ..DashboardArgs::default() },
            global,
            choice,
        ),
        Some(CliCommand::Listen(args)) => run_to_end(watch::listen(&args, global, theme)),
        Some(CliCommand::Mcp(args)) => run_to_end(mcp::serve(args, global)),
        Some(CliCommand::Acp(args)) => run_to_end(acp::serve(args, global)),
        Some(CliCommand::Test(args)) => test::run(&args, global, theme),
        Some(CliCommand::Validate(args)) => validate::run(&args, theme, global.is_ascii()),
        Some(CliCommand::Tools(args)) => {
            run_to_end(tools::run(&args, StreamStyle::of_stdout(theme, global.is_ascii())))
        }
        Some(CliCommand::New(args)) => new::run(&args, theme, global.is_ascii()),
        Some(CliCommand::Scenarios { name: Some(name), .. }) => scenarios::print_one(&name),
        Some(CliCommand::Scenarios { json, .. }) => scenarios::run(json, theme, global.is_ascii()),
        Some(CliCommand::Runs(args)) if args.on.is_some() => {
            run_to_end(cluster::list_runs(&args, theme, global.is_ascii()))
        }
        Some(CliCommand::Runs(args)) => kept::runs(&args, theme, global.is_ascii()),
        Some(CliCommand::Open(args)) => match kept::OpenedRun::find(&args.run) {
            Ok(opened) => {
                let wanted = DashboardArgs { opened: Some(opened), ..DashboardArgs::default() };
                dashboard::open(wanted, global, choice)
            }
            Err(exit) => exit,
        },
        Some(CliCommand::Show(args)) => run_to_end(kept::show(&args, theme, global.is_ascii())),
        Some(CliCommand::Resume(args)) => run_to_end(kept::resume(&args, theme, global.is_ascii())),
        Some(CliCommand::Fork(args)) => run_to_end(kept::fork(&args, theme, global.is_ascii())),
        Some(CliCommand::Diff(args)) => kept::diff(&args, theme, global.is_ascii()),
        Some(CliCommand::Export(args)) => kept::export(&args, global),
        Some(CliCommand::Import(args)) => kept::import(&args),
        Some(CliCommand::Runner(args)) => run_to_end(cluster::runner(&args)),
        Some(CliCommand::Attach(args)) => {
            let wanted = DashboardArgs { attached: Some(&args), ..DashboardArgs::default() };
            dashboard::open(wanted, global, choice)
        }
        Some(CliCommand::Ctl(args)) => run_to_end(steer::ctl(args)),
        Some(CliCommand::Answer(args)) => run_to_end(steer::answer(args)),
        Some(CliCommand::Cluster(args)) => {
            let paint = StreamStyle::of_stdout(theme, global.is_ascii());
            run_to_end(cluster::cluster(&args, &paint))
        }
        Some(CliCommand::Picture(args)) => picture::picture(&args, global, theme),
        Some(CliCommand::Schema(args)) => validate::print_schema(&args),
        Some(CliCommand::Completions(args)) => complete::print_completions(&args),
        Some(CliCommand::Complete(args)) => complete::run(&args),
        Some(CliCommand::Man(args)) => man::run(&args),
        Some(CliCommand::DemoService { port }) => run_to_end(demo_service::run(port)),
        #[cfg(debug_assertions)]
        Some(CliCommand::PanicTest { place: args::PanicPlace::Headless }) => match runtime() {
            Ok(runtime) => {
                dashboard::block_workers(runtime.handle());
                let scenario = "checkout-launch".to_owned();
                let format = Some(args::RunFormat::Jsonl);
                let args = run::RunArgs { scenario, format, ..run::RunArgs::default() };
                end_in(runtime, run::play(&args, global, theme))
            }
            Err(exit) => exit,
        },
        #[cfg(debug_assertions)]
        Some(CliCommand::PanicTest { place }) => {
            let wanted = DashboardArgs { panic: Some(place), ..DashboardArgs::default() };
            dashboard::open(wanted, global, choice)
        }
        Some(CliCommand::Config(args)) => {
            let paint = StreamStyle::of_stdout(theme, global.is_ascii());
            config::run(&args, global, file, &paint)
        }
        Some(CliCommand::Doctor(args)) => {
            let paint = StreamStyle::of_stdout(theme, global.is_ascii());
            let via = match models::parse_proxy(args.proxy.as_deref()) {
                Ok(via) => via,
                Err(why) => return refuse(&why, Exit::Usage),
            };
            run_to_end(doctor::run(&args, file, &LiveModels::new(via), &paint))
        }
    }
}

/// Whether this is the background process of a detached run.
fn is_detached(command: &Option<CliCommand>) -> bool {
    match command {
        Some(CliCommand::Run(args)) => args.detach.detached,
        Some(CliCommand::Resume(args)) => args.play.detach.detached,
        Some(CliCommand::Fork(args)) => args.play.detach.detached,
        _ => false,
    }
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
fn run_to_end(work: impl Future<Output = Exit>) -> Exit {
    match runtime() {
        Ok(runtime) => end_in(runtime, work),
        Err(exit) => exit,
    }
}

fn end_in(runtime: tokio::runtime::Runtime, work: impl Future<Output = Exit>) -> Exit {
    let exit = runtime.block_on(async {
        let exit = work.await;
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
