//! `roundtable watch` starts a program and shows what it reports; `roundtable listen` only receives, from programs
//! that are started elsewhere. The program is theirs: its output, its exit code and Ctrl-C stay as
//! they are.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use clap::Args;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::args::{Global, RunFormat};
use super::exit::{Done, Exit};
use super::headless::on_stop;
use super::launch::{FOLLOWED, OnStoreFailure, StoreOfCommand, engine_settings, print_notes};
use super::output::RunWriter;
use super::people::PeopleArg;
use super::streams::{self, StreamStyle, print_message, refuse};
use super::test::TestFormat;
use super::test::trace::ExpectedRuns;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::to_hex;
use crate::base::visible::{visible, visible_output};
use crate::engine::{Engine, Launch, RunHandle};
use crate::host::Dirs;
use crate::host::config::user_config;
use crate::host::day_account::{day_account, user_engine};
use crate::host::traced_runs::traced;
use crate::log::event::{EventKind, Seq, StopReason, World};
use crate::log::world::Outcome;
use crate::model::prices::price_of_name;
use crate::net::redact::redact_command;
use crate::net::{Http, ProxyMode};
use crate::pattern::observed::{GuardAccount, PriceOf};
use crate::run::questions::PeopleMode;
use crate::scenario::Scenario;
use crate::scenario::patterns::observed::{GuardLimits, ObservedProgram};
use crate::scenario::rows::Rows;
use crate::screen::theme::Theme;
use crate::terminal::screen_guard;
use crate::watch::callers::program_name;
use crate::watch::child::{OutputSink, ProgramSignals, RunningProgram, WatchedProgram, write_tap};
use crate::watch::hub::{Hub, HubInput, HubReport, StartRun};
use crate::watch::port::{listen_held, raise_open_files};
use crate::watch::proxy::ModelProxy;
use crate::watch::proxy::variables::Upstreams;
use crate::watch::{ReceiverAddress, TOKEN_HEADER, serve};
use crate::words::format::count_noun;
use crate::words::verdict::run_stop_line;

/// How a program is started, by `watch` and `guard`.
#[derive(Debug, Clone, Args)]
pub struct ProgramArgs {
    /// Name of the runs in lists; without it that of the program
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Leave out the file that makes Python programs report when something starts
    #[arg(long)]
    pub no_tap: bool,
    /// Leave LangSmith's tracer as it is set up
    #[arg(long)]
    pub no_langsmith: bool,
    /// Without the dashboard: the program has this terminal, and a summary follows
    #[arg(long)]
    pub headless: bool,
    /// What is printed on standard output; the program's own output is then on standard error. Headless
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<RunFormat>,
    /// Check these [[expect]] rows at the end of the program: a file of them, or a scenario. If one fails
    /// and the program ended with 0, the exit code is 1
    #[arg(long, value_name = "ROWS.toml")]
    pub expect: Option<String>,
}

impl ProgramArgs {
    /// Whether it runs without the dashboard.
    pub fn is_headless(&self, global: &Global) -> bool {
        self.headless || self.format.is_some() || !global.can_be_interactive()
    }
}

/// Arguments of `roundtable watch`.
#[derive(Debug, Clone, Args)]
pub struct WatchArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// What an agent at an address (AG-UI) is asked. Give it several times for a conversation
    #[arg(short, long = "message", value_name = "TEXT")]
    pub messages: Vec<String>,
    /// A header of the requests to an agent at an address: 'Name: value', or 'NAME=$VARIABLE' of the
    /// environment, which is never kept
    #[arg(long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// Who answers the questions of an agent at an address [default: nobody; the dashboard asks you]
    #[arg(long, value_enum, value_name = "WHO")]
    pub people: Option<PeopleArg>,
    /// The program and its arguments, or the address of an agent that speaks AG-UI
    #[arg(
        value_name = "CMD|URL",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub command: Vec<String>,
    /// The limits of `roundtable guard`; `None`: the program is only watched.
    #[arg(skip)]
    pub guard: Option<GuardSetup>,
}

/// What `roundtable guard` adds to `watch`.
#[derive(Clone, Debug)]
pub struct GuardSetup {
    pub limits: GuardLimits,
    /// The rows of `--rules`.
    pub rows: Option<Arc<Rows>>,
    /// Where it serves programs that are started elsewhere; `None`: it starts one.
    pub listening: Option<Listening>,
}

/// Where a proxy serves programs that are started elsewhere.
#[derive(Clone, Debug)]
pub struct Listening {
    pub addr: SocketAddr,
    /// The pages in a browser that may use it, by their origins.
    pub origins: Vec<String>,
}

impl GuardSetup {
    /// What the programs may use; `is_shared`: several of them together.
    fn account(&self, is_shared: bool) -> Arc<GuardAccount> {
        Arc::new(GuardAccount::new(self.limits.clone(), day_account(), is_shared))
    }
}

/// Arguments of `roundtable listen`.
#[derive(Debug, Clone, Args)]
pub struct ListenArgs {
    /// Port of this machine (0: any free one), or IP:PORT; other machines reach it there with a token
    #[arg(value_name = "PORT|IP:PORT", default_value = "0", value_parser = listen_address)]
    pub addr: SocketAddr,
    /// Name of the runs in lists
    #[arg(long, value_name = "NAME", default_value = "program")]
    pub name: String,
    /// What is printed on standard output
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<RunFormat>,
    /// Check these [[expect]] rows at the end: a file of them, or a scenario. If one fails, the exit code is 1
    #[arg(long, value_name = "ROWS.toml")]
    pub expect: Option<String>,
}

impl WatchArgs {
    /// Whether an agent at an address is watched, and no program.
    pub fn names_address(&self) -> bool {
        let first = self.command.first().map(String::as_str).unwrap_or_default();
        first.starts_with("http://") || first.starts_with("https://")
    }

    /// Whether it has options that only an agent at an address takes.
    pub fn has_agent_options(&self) -> bool {
        !self.messages.is_empty() || !self.headers.is_empty() || self.people.is_some()
    }

    /// The rows that its runs have to meet; on an error the message has been printed.
    pub fn expected(&self) -> Result<Option<Arc<ExpectedRuns>>, Exit> {
        match self.guard.as_ref().and_then(|guard| guard.rows.clone()) {
            Some(rows) => ExpectedRuns::of_rules(rows).map(Some),
            None => expected_runs(self.program.expect.as_deref()),
        }
    }

    /// Name of its runs.
    fn run_name(&self) -> String {
        self.program.name.clone().unwrap_or_else(|| program_name(&self.command))
    }

    /// `is_apart`: the dashboard has the terminal, so the program gets its own.
    fn program(&self, is_apart: bool) -> WatchedProgram {
        let errors = streams::stderr_is_terminal();
        // With a format its output is on standard error, too.
        let output = match self.program.format {
            None => streams::stdout_is_terminal(),
            Some(_) => errors,
        };
        WatchedProgram {
            command: self.command.clone(),
            has_tap: !self.program.no_tap,
            has_langsmith: !self.program.no_langsmith,
            is_apart,
            on_terminal: [output, errors],
        }
    }
}

/// Inputs that the hub has not read yet: more make the receiver wait.
const QUEUED: usize = 256;

/// How long the last messages of the program are waited for.
const RECEIVED: Duration = Duration::from_millis(300);

/// How long a program may take to end before the operator gets a message.
const SILENT: Duration = Duration::from_secs(1);

/// How long a program that was asked to end may take.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// The environment variable that sets the token of `listen`: programs can be configured before it starts.
const TOKEN_VARIABLE: &str = "ROUNDTABLE_LISTEN_TOKEN";

/// Length of a token that cannot be guessed and fits into a path, in characters.
const TOKEN_CHARS: RangeInclusive<usize> = 16..=128;

pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let addr = port.ok().or_else(|| text.parse().ok());
    addr.ok_or_else(|| "give a port, or IP:PORT such as 0.0.0.0:4318".to_owned())
}

/// A token that nobody can guess.
fn random_token() -> Result<String, Refused> {
    let mut bytes = [0; 16];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| Refused::new("the system has no random numbers"))?;
    Ok(to_hex(&bytes))
}

/// The token of the environment; `None`: there is none.
fn chosen_token() -> Result<Option<String>, Refused> {
    let Some(token) = std::env::var_os(TOKEN_VARIABLE) else { return Ok(None) };
    let token = token.to_string_lossy().into_owned();
    let is_plain = token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if is_plain && TOKEN_CHARS.contains(&token.len()) {
        return Ok(Some(token));
    }
    let (least, most) = TOKEN_CHARS.into_inner();
    let why = Refused::new(format!("{TOKEN_VARIABLE} is no token"));
    Err(why.help(format!("give it {least} to {most} letters, digits, and -_. characters")))
}

async fn listen_on(
    wanted: SocketAddr,
    token: Option<String>,
) -> Result<(TcpListener, ReceiverAddress), Refused> {
    let refused = || format!("cannot listen on {wanted}");
    let listener = TcpListener::bind(wanted).await.or_refuse(refused())?;
    let addr = listener.local_addr().or_refuse(refused())?;
    let token = token.map_or_else(random_token, Ok)?;
    Ok((listener, ReceiverAddress { addr, token }))
}

/// The address without the token.
fn host_url(address: &ReceiverAddress) -> String {
    match address.addr.ip().is_unspecified() {
        true => format!("http://HOST:{}", address.addr.port()),
        false => format!("http://{}", address.addr),
    }
}

/// The variables that a program needs. Where `listen` takes all addresses, the reader replaces HOST.
fn variables(address: &ReceiverAddress) -> String {
    let token = &address.token;
    let url = match address.is_local() {
        true => address.url(),
        false => host_url(address),
    };
    let (key, headers) = match address.is_local() {
        true => ("any", String::new()),
        false => (&**token, format!("\n  OTEL_EXPORTER_OTLP_HEADERS={TOKEN_HEADER}={token}")),
    };
    format!(
        "listening; give a program these variables (Ctrl-C ends):\n  \
         OTEL_EXPORTER_OTLP_ENDPOINT={url} OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf{headers}\n  \
         LANGSMITH_TRACING=true LANGSMITH_ENDPOINT={url} LANGSMITH_API_KEY={key}"
    )
}

/// A program that is watched.
pub struct Watching {
    signals: ProgramSignals,
    ended: JoinHandle<(i32, HubReport)>,
    server: JoinHandle<()>,
    /// Lines for its input.
    pub input: mpsc::UnboundedSender<String>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Watching {
    /// Starts a program and the receiver. `start` starts a run; the output goes to the sinks.
    ///
    /// # Errors
    /// No port is free, or the program cannot be started; with the exit code for it.
    pub async fn begin(
        args: &WatchArgs,
        is_apart: bool,
        start: StartRun,
        sinks: [OutputSink; 2],
    ) -> Result<Self, (Refused, Exit)> {
        let program = args.program(is_apart);
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let stopped = |why| (why, Exit::Stopped);
        let listening = listen_held(local).or_refuse("no port of this machine is free");
        let (listener, held) = listening.map_err(stopped)?;
        let addr = listener.local_addr().or_refuse("the port is not known").map_err(stopped)?;
        let address = ReceiverAddress { addr, token: random_token().map_err(stopped)? };
        let get = |name: &str| std::env::var_os(name);
        let mut notes = program.notes(get);
        let tap = match (program.has_tap, Dirs::find()) {
            (true, Some(dirs)) => {
                write_tap(&dirs.state).map_err(|why| notes.push(format!("{why:#}"))).ok()
            }
            _ => None,
        };
        let mut environment = program.environment(&address, tap.as_deref(), get);
        let (sender, inputs) = mpsc::channel(QUEUED);
        let (mut proxy, mut account) = (None, None);
        let limits = args.guard.as_ref().map(|guard| &guard.limits);
        if let Some(guard) = &args.guard {
            account = Some(guard.account(false));
            let upstreams = Upstreams::of(&get);
            let (upstreams, more) = upstreams.map_err(|why| (why, Exit::Usage))?;
            notes.extend(more);
            environment.extend(upstreams.environment(&address.url()));
            let asks = guard.limits.asks_about_tools();
            environment.push(("ROUNDTABLE_TOOLS", if asks { "ask" } else { "tell" }.into()));
            let http = Http::forwarding(ProxyMode::Environment);
            proxy = Some(ModelProxy::new(upstreams, http, sender.clone()));
        }
        let serving = serve(listener, address.clone(), sender.clone(), proxy);
        let server = tokio::spawn(serving);
        let observed = ObservedProgram {
            name: args.run_name(),
            command: redact_command(&args.command),
            guard: limits.cloned(),
        };
        let is_guarded = account.is_some();
        let files = is_guarded.then(raise_open_files);
        let mut hub = Hub::new(observed, price_of(), account, start).hiding(&address.token);
        let what = format!("{} cannot be started", visible(&args.command[0]));
        for note in notes {
            let _ = sender.send(HubInput::Warning(note)).await;
        }
        let started = RunningProgram::start(&program, environment, sinks, &sender);
        drop(held);
        let (running, stdin) = started.map_err(|error| {
            let exit = Exit::of_unstarted(&error);
            (Refused::new(what).because(error), exit)
        })?;
        files.inspect(|files| files.restore_in(running.number()));
        hub.wait_for_trace().await;
        let (input, lines) = mpsc::unbounded_channel();
        if let Some(stdin) = stdin {
            tokio::spawn(stdin.write(lines));
        }
        let signals = running.signals();
        let ended = tokio::spawn(async move {
            let hub = tokio::spawn(hub.run(inputs));
            let code = running.wait().await;
            tokio::time::sleep(RECEIVED).await;
            let _ = sender.send(HubInput::Ended(code)).await;
            (code, hub.await.unwrap_or_default())
        });
        Ok(Self { signals, ended, server, input })
    }

    /// Sends signals to the program.
    pub fn signals(&self) -> ProgramSignals {
        self.signals.clone()
    }

    /// Waits for the end of the program and of its runs.
    pub async fn wait(mut self) -> (i32, HubReport) {
        (&mut self.ended).await.unwrap_or((1, HubReport::default()))
    }

    /// Ends the program: asks it first.
    pub async fn end(mut self) -> (i32, HubReport) {
        let notice = tokio::spawn(async {
            tokio::time::sleep(SILENT).await;
            print_message("waiting for the program to end; Ctrl-C twice kills it");
        });
        let mut ended = None;
        for ask in [ProgramSignals::interrupt, ProgramSignals::terminate, ProgramSignals::kill] {
            ask(&self.signals);
            if let Ok(report) = tokio::time::timeout(ENDS_WITHIN, &mut self.ended).await {
                ended = report.ok();
                break;
            }
        }
        notice.abort();
        ended.unwrap_or((137, HubReport::default()))
    }
}

/// The end of the output of a program, for the terminal after the dashboard.
#[derive(Clone, Default)]
pub struct ProgramOutput(Arc<Mutex<VecDeque<u8>>>);

/// Bytes of it that are kept.
const MAX_OUTPUT: usize = 1 << 20;

impl ProgramOutput {
    /// A sink that adds to it.
    pub fn sink(&self) -> OutputSink {
        let output = Arc::clone(&self.0);
        Box::new(move |bytes| {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            output.extend(bytes);
            let over = output.len().saturating_sub(MAX_OUTPUT);
            output.drain(..over);
        })
    }

    /// Prints it; control sequences other than styles are made visible.
    pub fn print(&self) {
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(output.make_contiguous()).into_owned();
        // The terminal may be closed or stalled; then it is not printed.
        let _ = screen_guard::write_last(visible_output(&text, true).as_bytes());
    }
}

/// The price of a model that another program calls.
fn price_of() -> PriceOf {
    Arc::new(|model| price_of_name(model, &user_config().prices))
}

/// A launch of the scenario of an observed run.
pub fn observed_launch(scenario: Scenario, people: PeopleMode) -> Launch {
    Launch { people, ..Launch::scripted(Arc::new(scenario), true) }
}

/// Interrupts the program when the operator ends its run.
pub async fn interrupt_with(run: RunHandle, signals: Arc<OnceLock<ProgramSignals>>) {
    run.wait_until_finished().await;
    let mut last = Vec::new();
    run.bus().reader(Seq(run.bus().len().saturating_sub(1))).take(&mut last, 1);
    let is_cancelled = |kind: &EventKind| matches!(kind, EventKind::RunClosed(closed) if closed.reason == StopReason::Cancelled);
    if last.first().is_some_and(|event| is_cancelled(&event.kind)) {
        signals.get().inspect(|signals| signals.interrupt());
    }
}

type DataWriter = RunWriter<Box<dyn io::Write + Send>>;

/// Writes the events of all runs; `None` once its reader is gone. The program continues then.
type SharedWriter = Arc<Mutex<Option<DataWriter>>>;

/// Runs `roundtable watch` without the dashboard.
pub async fn watch(args: &WatchArgs, global: &Global, theme: Theme) -> Done {
    streams::check_stdout()?;
    let expected = args.expected()?;
    let stored = StoreOfCommand::open(global, OnStoreFailure::Stop);
    print_notes(&stored.problems);
    let mut headless = HeadlessRuns::new(args.program.format, expected, global, theme, &stored);
    headless.people = PeopleArg::mode(args.people, true);
    let signals: Arc<OnceLock<ProgramSignals>> = Arc::default();
    let to_stdout = args.program.format.is_none();
    let sinks: [OutputSink; 2] = [
        Box::new(move |bytes| match to_stdout {
            true => streams::pass_on(bytes),
            false => streams::pass_on_as_errors(bytes),
        }),
        Box::new(streams::pass_on_as_errors),
    ];
    let begun = Watching::begin(args, false, headless.start(&signals), sinks).await;
    let watching = begun.map_err(|(why, exit)| refuse(&why, exit))?;
    let _ = signals.set(watching.signals());
    pass_signals(watching.signals());
    let (code, report) = watching.wait().await;
    let holds = headless.end(&report).await;
    print_notes(&stored.finish().await);
    Ok(exit_of(code, holds))
}

/// Runs `roundtable listen`: until an interrupt.
pub async fn listen(args: &ListenArgs, global: &Global, theme: Theme) -> Done {
    let expected = expected_runs(args.expect.as_deref())?;
    let program = ObservedProgram { name: args.name.clone(), ..ObservedProgram::default() };
    let run = Listener { addr: args.addr, format: args.format, people: None, expected, program };
    receive(run, None, global, theme).await
}

/// Runs `roundtable guard --listen`: until an interrupt.
pub async fn guard_programs(args: &WatchArgs, global: &Global, theme: Theme) -> Done {
    let expected = args.expected()?;
    let Some((guard, listening)) =
        args.guard.as_ref().and_then(|guard| Some((guard, guard.listening.as_ref()?)))
    else {
        return Err(Exit::Usage);
    };
    let name = args.program.name.clone().unwrap_or_else(|| "program".to_owned());
    let guarded = Some(guard.limits.clone());
    let program = ObservedProgram { name, command: Vec::new(), guard: guarded };
    let (addr, people) = (listening.addr, args.people);
    let run = Listener { addr, format: args.program.format, people, expected, program };
    receive(run, Some((guard, listening)), global, theme).await
}

/// The settings of a receiver for programs that are started elsewhere.
struct Listener {
    addr: SocketAddr,
    format: Option<RunFormat>,
    people: Option<PeopleArg>,
    expected: Option<Arc<ExpectedRuns>>,
    program: ObservedProgram,
}

async fn receive(
    run: Listener,
    guard: Option<(&GuardSetup, &Listening)>,
    global: &Global,
    theme: Theme,
) -> Done {
    streams::check_stdout()?;
    let stored = StoreOfCommand::open(global, OnStoreFailure::Stop);
    print_notes(&stored.problems);
    let token = chosen_token().map_err(|why| refuse(&why, Exit::Usage))?;
    let (listener, address) =
        listen_on(run.addr, token).await.map_err(|why| refuse(&why, Exit::Stopped))?;
    let mut text = variables(&address);
    let mut headless = HeadlessRuns::new(run.format, run.expected, global, theme, &stored);
    headless.people = PeopleArg::mode(run.people, true);
    let (sender, inputs) = mpsc::channel(QUEUED);
    let (mut proxy, mut account) = (None, None);
    if let Some((guard, listening)) = guard {
        let upstreams = Upstreams::of(&|name| std::env::var_os(name));
        let (upstreams, notes) = upstreams.map_err(|why| refuse(&why, Exit::Usage))?;
        print_notes(&notes);
        let prefix = format!("{}/{}", host_url(&address), address.token);
        // Only the tap reads this variable, and it is only in programs that are started here.
        let set = upstreams.environment(&prefix).into_iter();
        for (name, value) in set.filter(|(name, _)| *name != "ROUNDTABLE_GUARD") {
            text.push_str(&format!("\n  {name}={}", value.to_string_lossy()));
        }
        let http = Http::forwarding(ProxyMode::Environment);
        let origins = listening.origins.clone();
        proxy = Some(ModelProxy::new(upstreams, http, sender.clone()).for_many(origins));
        account = Some(guard.account(true));
        raise_open_files();
    }
    let server = tokio::spawn(serve(listener, address, sender.clone(), proxy));
    let start = headless.start(&Arc::default());
    let hub = Hub::new(run.program, price_of(), account, start);
    let stop = sender.clone();
    // From another thread: the queue of the hub may be full.
    let end = move || drop(std::thread::spawn(move || stop.blocking_send(HubInput::Ended(0))));
    let stops = on_stop(end, Exit::Cancelled.code());
    drop((sender, stops));
    // Who reads this may send a signal.
    print_message(&text);
    let report = hub.run(inputs).await;
    server.abort();
    let holds = headless.end(&report).await;
    print_notes(&stored.finish().await);
    Ok(exit_of(0, holds))
}

/// The rows of `--expect`; on an error the message has been printed.
pub fn expected_runs(file: Option<&str>) -> Result<Option<Arc<ExpectedRuns>>, Exit> {
    file.map(ExpectedRuns::read).transpose()
}

/// The code of the program, unless that is 0 and rows do not hold.
pub fn exit_of(code: i32, holds: bool) -> Exit {
    match (code, holds) {
        (0, false) => Exit::Stopped,
        (code, _) => Exit::Other(u8::try_from(code).unwrap_or(1)),
    }
}

/// The program decides when it ends: an interrupt of the terminal reaches it too, all else is passed on.
fn pass_signals(to: ProgramSignals) {
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let handled =
            crate::terminal::signals::handle_each(&[SIGINT, SIGTERM, SIGHUP], move |signal| {
                match signal {
                    SIGINT if is_in_foreground() => {}
                    SIGINT => to.interrupt(),
                    _ => to.terminate(),
                }
            });
        if let Err(error) = handled {
            tracing::warn!("signals end the program immediately: {error}");
        }
    }
    #[cfg(not(unix))]
    let _ = to;
}

/// Whether this process is in the foreground of its terminal, which then sends an interrupt to the program too.
#[cfg(unix)]
fn is_in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    let group = terminal.ok().and_then(|tty| rustix::termios::tcgetpgrp(tty).ok());
    group == Some(rustix::process::getpgrp())
}

/// The runs of a program without the dashboard.
struct HeadlessRuns {
    expected: Option<Arc<ExpectedRuns>>,
    /// How the results of rows are written, on standard error.
    rows: (StreamStyle, TestFormat),
    engine: Arc<Engine>,
    writer: Option<SharedWriter>,
    format: Option<RunFormat>,
    /// Who answers the questions of a guarded program.
    people: PeopleMode,
    /// Each returns the outcome if it is printed at the end.
    followers: Arc<Mutex<Vec<JoinHandle<Option<Outcome>>>>>,
    #[cfg(unix)]
    _server: Option<crate::host::peers::PeerServer>,
}

impl HeadlessRuns {
    fn new(
        format: Option<RunFormat>,
        expected: Option<Arc<ExpectedRuns>>,
        global: &Global,
        theme: Theme,
        stored: &StoreOfCommand,
    ) -> Self {
        let of_rows = match format {
            Some(RunFormat::Github) => TestFormat::Github,
            _ => TestFormat::Text,
        };
        let rows = (StreamStyle::of_stderr(theme.clone(), global.is_ascii()), of_rows);
        let engine = Arc::new(user_engine(engine_settings(FOLLOWED), traced(stored.keeper())));
        let paint = StreamStyle::of_stdout(theme, global.is_ascii());
        let out = || Box::new(streams::stdout_data()) as Box<dyn io::Write + Send>;
        let writer = format.map(|format| RunWriter::new(format, paint, out()));
        Self {
            expected,
            rows,
            #[cfg(unix)]
            _server: super::launch::serve_peers(&engine).ok().map(|(server, _)| server),
            engine,
            writer: writer.map(|writer| Arc::new(Mutex::new(Some(writer)))),
            format,
            people: PeopleMode::Nobody,
            followers: Arc::default(),
        }
    }

    fn start(&self, signals: &Arc<OnceLock<ProgramSignals>>) -> StartRun {
        let signals = Arc::clone(signals);
        let (engine, writer) = (Arc::clone(&self.engine), self.writer.clone());
        let (followers, format) = (Arc::clone(&self.followers), self.format);
        let (expected, people) = (self.expected.clone(), self.people.clone());
        Box::new(move |scenario| {
            let run = engine.start(observed_launch(scenario, people.clone()));
            expected.iter().for_each(|expected| expected.follow(&run, &Handle::current()));
            tokio::spawn(interrupt_with(run.clone(), Arc::clone(&signals)));
            let follower = tokio::spawn(follow(run.clone(), writer.clone(), format));
            let mut followers = followers.lock().unwrap_or_else(PoisonError::into_inner);
            if format != Some(RunFormat::Json) {
                followers.retain(|follower| !follower.is_finished());
            }
            followers.push(follower);
            Some(run)
        })
    }

    /// Waits for the runs, and prints what the operator should know. Returns whether the expected rows hold.
    async fn end(&self, report: &HubReport) -> bool {
        let followers: Vec<_> =
            self.followers.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect();
        let mut outcomes = Vec::new();
        for follower in followers {
            outcomes.extend(follower.await.ok().flatten());
        }
        if let Some(writer) = &self.writer {
            write_to(writer, |writer| writer.outcomes(&outcomes));
        }
        for text in report_notes(report) {
            print_message(&text);
        }
        let Some(expected) = &self.expected else { return true };
        let (paint, format) = &self.rows;
        expected.end(report).await.print(paint.clone(), *format, true)
    }
}

/// What the operator should know at the end of a program.
pub fn report_notes(report: &HubReport) -> Vec<String> {
    let mut notes = report.warnings.clone();
    if report.lost_lines > 0 {
        let lines = count_noun(report.lost_lines, "line");
        notes.push(format!("left out: {lines} while no run was open"));
    }
    if report.late > 0 {
        let late = count_noun(report.late, "message");
        notes.push(format!("left out: {late} after the end of a run"));
    }
    for ((protocol, framework), count) in &report.ignored {
        let count = count_noun(*count, "message");
        notes.push(format!(
            "left out: {count} by {protocol}, because {framework} is reported already"
        ));
    }
    notes
}

/// Prints the events of a run, or its warnings and its summary. Returns the outcome if it is printed at the end, with
/// those of the other runs.
async fn follow(
    run: RunHandle,
    writer: Option<SharedWriter>,
    format: Option<RunFormat>,
) -> Option<Outcome> {
    let (mut reader, mut world, mut batch) = (run.first_reader(), World::new(), Vec::new());
    while reader.next_batch(&mut batch, 256).await > 0 {
        for event in batch.drain(..) {
            world.apply(&event);
            match (&writer, &event.kind) {
                (Some(writer), _) => write_to(writer, |writer| writer.event(&event, &world)),
                (None, EventKind::Warning { text }) => print_message(&visible(text)),
                (None, _) => {}
            }
        }
        if let Some(writer) = &writer {
            write_to(writer, RunWriter::flush);
        }
    }
    match (&writer, world.outcome()) {
        (None, _) => print_message(&summary(&world)),
        (Some(_), Some(outcome)) if format == Some(RunFormat::Json) => return Some(outcome),
        (Some(writer), Some(outcome)) => {
            write_to(writer, |writer| writer.outcome(&outcome, &world));
        }
        (Some(_), None) => {}
    }
    None
}

fn write_to<T>(writer: &SharedWriter, write: impl FnOnce(&mut DataWriter) -> io::Result<T>) {
    let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(open) = &mut *writer
        && write(open).is_err()
    {
        *writer = None;
    }
}

/// A run in a few lines.
fn summary(world: &World) -> String {
    let (Some(head), Some(closed)) = (&world.head, &world.progress.closed) else {
        return String::new();
    };
    let end = run_stop_line(world, closed);
    let mut text = format!("{} {}: {}", head.run, visible(&head.title), visible(&end));
    if let (StopReason::NothingReported, Some(advice)) = (&closed.reason, closed.reason.advice()) {
        text.push_str("\n  ");
        text.push_str(advice);
    }
    if let Some(words) = crate::words::patterns::words_of(world) {
        let table = words.closing().table;
        for line in table.lines().filter(|line| !line.is_empty()) {
            text.push_str("\n  ");
            text.push_str(line);
        }
    }
    text
}
