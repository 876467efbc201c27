//! Plain mode: the dashboard as lines of text, for screen readers and for terminals that only print. It has the
//! state and the services of the dashboard; words of the table in `words.rs` take the place of keys, and lines
//! the place of the screen. No cursor movement, no escape code, nothing that was printed changes.
//!
//! A line is read only when the one before it has had its effect, so that words can come from a pipe.

mod answers;
mod carry_out;
mod input;
mod runs;
mod show;
mod start;
mod steer;
mod tell;
pub mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use self::answers::{Dialog, question_name};
use self::input::{Input, read_lines};
use self::tell::{LineLevel, Out, RunLines};
use super::streams::stdin_is_terminal;
use crate::base::time::millis;
use crate::host::program_log;
use crate::log::event::{Command, Event, RunId, Seq, World};
use crate::log::world::RunState;
use crate::screen::by_word::ByWord;
use crate::screen::effect::{Contents, Export};
use crate::screen::layout::Size;
use crate::screen::questions::QuestionKey;
use crate::screen::state::ActiveScreen;
use crate::screen::theme::Theme;
use crate::screen::windows::Overlay;
use crate::screen::windows::confirm::OnYes;
use crate::screen::{Action, AppState, DrawContext, Effect, Msg, picture, update};
use crate::terminal::console::stop_process;
use crate::terminal::effects::{EffectResult, Services, TerminalEffect, execute, scenario_files};
use crate::terminal::event_loop::{CLOCK_AT_START, DashboardExit, KEPT_EVENTS, sleep_until};
use crate::terminal::feed::{Batch, Feed, News};
use crate::terminal::signals::{INTERRUPTED, ProcessSignal, Watchdog};
use crate::words::format;
use crate::words::glyph::Glyphs;

/// The screen that is not drawn: long enough that every window shows all of its text.
pub(super) const SCREEN: Size = Size { cols: 100, rows: 1_000 };
/// How long the next line waits for the answer to a job, such as a file that is written.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// How long the next line waits for what a command changes in a run.
const COMMAND_WAIT: Duration = Duration::from_millis(30);
/// How long a second Ctrl-C may follow the first to leave.
const INTERRUPT_WINDOW: Duration = Duration::from_secs(3);
/// How long to wait for cancelled runs at the end.
const SHUTDOWN: Duration = Duration::from_secs(1);

/// Most turns of events and answers, while a line waits.
const MAX_TURNS: u32 = 8;

/// A moment of a run that was looked up: the number of events before it, or the sentence to print.
type FoundMoment = (RunId, Result<usize, String>);

/// Plain mode while it runs.
struct PlainLoop {
    state: AppState,
    services: Services,
    answers: mpsc::UnboundedReceiver<EffectResult>,
    feed: Feed,
    facts: mpsc::Receiver<Batch>,
    input: mpsc::Receiver<Input>,
    input_ended: bool,
    moments: (mpsc::UnboundedSender<FoundMoment>, mpsc::UnboundedReceiver<FoundMoment>),
    out: Out,
    theme: Theme,
    started: Instant,
    watchdog: Watchdog,
    /// What was printed of each run that is not over.
    told: BTreeMap<RunId, RunLines>,
    level: LineLevel,
    questions: BTreeSet<QuestionKey>,
    screen: ActiveScreen,
    /// The window that was printed last, and is open.
    window: Option<String>,
    /// A question of plain mode itself, and what a yes does.
    asks: Option<(String, ByWord)>,
    dialog: Option<Dialog>,
    /// The next line waits for the run.
    wait: Option<Waiting>,
    /// The next line waits for an answer, until then.
    awaited: Option<Instant>,
    /// What to do when the answers that are awaited have come.
    then: Option<String>,
    /// The events of each run when it was last resumed or answered.
    went_on: BTreeMap<RunId, Seq>,
    interrupted: Option<Instant>,
    /// The line that was typed last.
    typed: String,
    /// Whether the comparison that is awaited is printed whole.
    compares_all: bool,
    /// The runs that the numbers of the last list name.
    numbered: Vec<RunId>,
    quit: Option<u8>,
}

/// For what the next line waits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Waiting {
    run: RunId,
    /// The number of events that are enough, too.
    events: Option<u64>,
}

/// Runs plain mode until the operator leaves it. All runs of this program have ended when this returns.
pub(super) async fn run(
    state: AppState,
    services: Services,
    answers: mpsc::UnboundedReceiver<EffectResult>,
    watchdog: Watchdog,
) -> io::Result<DashboardExit> {
    let mut plain = PlainLoop::new(state, services, answers, watchdog);
    plain.greet();
    plain.run_until_quit().await;
    plain.shut_down().await;
    plain.tell_ends();
    let PlainLoop { mut out, state, quit, theme, .. } = plain;
    out.end()?;
    Ok(DashboardExit { code: quit.unwrap_or(0), state, theme })
}

impl PlainLoop {
    fn new(
        mut state: AppState,
        services: Services,
        answers: mpsc::UnboundedReceiver<EffectResult>,
        watchdog: Watchdog,
    ) -> Self {
        let (feed, facts) = Feed::new();
        feed.follow_session(services.engine.log().reader(Seq(0)));
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        state.inbox.zero_wall_ms =
            wall.and_then(|wall| wall.checked_sub(CLOCK_AT_START)).map(millis);
        let ascii = state.settings.ascii;
        Self {
            state,
            services,
            answers,
            feed,
            facts,
            input: read_lines(),
            input_ended: false,
            moments: mpsc::unbounded_channel(),
            out: Out::new(ascii),
            theme: Theme::default(),
            started: Instant::now(),
            watchdog,
            told: BTreeMap::new(),
            level: LineLevel::Notable,
            questions: BTreeSet::new(),
            screen: ActiveScreen::Home,
            window: None,
            asks: None,
            dialog: None,
            wait: None,
            awaited: None,
            then: None,
            went_on: BTreeMap::new(),
            interrupted: None,
            typed: String::new(),
            compares_all: false,
            numbered: Vec::new(),
            quit: None,
        }
    }

    fn now(&self) -> Duration {
        CLOCK_AT_START + self.started.elapsed()
    }

    async fn run_until_quit(&mut self) {
        scenario_files::rescan(&self.services);
        scenario_files::watch(&self.services);
        self.services.list_kept();
        let mut turns = 0;
        while self.quit.is_none() && !self.out.is_broken() {
            self.watchdog.heartbeat();
            let takes_line = !self.is_held() && !self.input_ended;
            turns += 1;
            if turns > MAX_TURNS && takes_line {
                turns = 0;
                if let Ok(input) = self.input.try_recv() {
                    self.on_input(Some(input));
                    self.after_turn();
                    continue;
                }
            }
            if self.input_ended && !self.is_held() && self.leave_at_rest() {
                return;
            }
            self.out.flush();
            let deadline = self.awaited;
            tokio::select! {
                biased;
                Some(answer) = self.answers.recv() => self.on_answer(answer),
                Some(batch) = self.facts.recv() => self.on_batch(batch),
                Some(found) = self.moments.1.recv() => self.on_moment(found),
                input = self.input.recv(), if takes_line => {
                    turns = 0;
                    self.on_input(input);
                }
                () = sleep_until(deadline) => self.awaited = None,
            }
            self.after_turn();
        }
    }

    fn on_input(&mut self, input: Option<Input>) {
        match input {
            Some(Input::Line(line)) => self.on_line(&line),
            Some(Input::End) if stdin_is_terminal() => self.on_end_of_terminal(),
            Some(Input::End) | None => self.input_ended = true,
        }
    }

    /// Whether the next line has to wait for the effect of those before it.
    fn is_held(&self) -> bool {
        let shown = self.state.visible_run();
        let is_kept_read = |page: &crate::screen::run::RunPage| {
            page.kept.as_deref().is_some_and(|kept| !kept.is_read && !kept.is_elsewhere())
        };
        self.wait.is_some()
            || self.awaited.is_some()
            || !self.state.home.is_read
            || (self.services.kept.is_on() && !self.state.history.is_known())
            || (!self.state.starting.is_empty() && self.state.overlays.is_empty())
            || self.state.to_compare.awaited.is_some()
            || self.state.history.said.is_searching()
            || shown.is_some_and(|page| is_kept_read(page) || page.earlier.is_reading())
            // A run that has no event yet takes no command.
            || shown.is_some_and(|page| page.kept.is_none() && page.world().head.is_none())
    }

    /// Ends what the last turn has ended: a wait, or what follows an answer.
    fn after_turn(&mut self) {
        if let Some(wait) = self.wait.take_if(|wait| {
            self.state.run(&wait.run).is_none_or(|page| {
                let next = page.world().progress.next.0;
                wait.events.is_some_and(|events| next >= events)
                    || is_at_rest(page.world(), self.went_on.get(&wait.run).copied())
            })
        }) {
            self.tell_rest(&wait.run);
        }
        if !self.is_held()
            && let Some(line) = self.then.take()
        {
            self.on_line(&line);
        }
    }

    /// Nothing more is typed: leaves when no run of this program does anything by itself.
    fn leave_at_rest(&mut self) -> bool {
        if self.then.is_some() {
            return false;
        }
        let rests = |page: &crate::screen::run::RunPage| {
            is_at_rest(page.world(), self.went_on.get(page.id()).copied())
        };
        if self.state.own_live_runs().any(|page| !rests(page)) {
            return false;
        }
        let open: Vec<RunId> = self.state.own_live_runs().map(|page| page.id().clone()).collect();
        for run in open {
            self.out.line(&format!("{run} ends with this program: no line follows"));
        }
        self.quit = Some(0);
        true
    }

    /// Ctrl-D: as `quit`, and again as yes.
    fn on_end_of_terminal(&mut self) {
        if self.dialog.take().is_some() {
            return self.out.line("left: what was typed is dropped; Ctrl-D again is quit");
        }
        match self.state.overlays.last() {
            Some(Overlay::Confirm(asked)) if matches!(asked.on_yes, OnYes::Quit { .. }) => {
                self.by(ByWord::Act(Action::Confirm));
            }
            _ => {
                self.state.overlays.clear();
                self.asks = None;
                self.by(ByWord::Act(Action::Quit));
                if self.pending().is_some() {
                    self.out.line("Ctrl-D again is yes: it quits");
                }
            }
        }
    }

    fn on_answer(&mut self, answer: EffectResult) {
        if is_awaited(&answer) {
            self.awaited = None;
        }
        if let EffectResult::Msg(Msg::Suggested { run, id, answer }) = &answer {
            return self.tell_suggestion(QuestionKey { run: run.clone(), id: *id }, answer.clone());
        }
        // A run of a process that cannot be reached is followed in the store.
        if let EffectResult::Opened { msg: Msg::Opened { run, events, .. }, .. } = &answer
            && let Some(page) = self.state.run(run)
            && page.kept.as_deref().is_some_and(|kept| kept.is_elsewhere())
        {
            self.tell_events(run, events);
        }
        match answer.into_news(self.now()) {
            Ok(News { msgs, log }) => {
                msgs.into_iter().for_each(|msg| self.update(msg));
                if let Some((run, facts)) = log {
                    self.feed.follow(run, *facts);
                }
            }
            Err(answer) => match *answer {
                EffectResult::Signal(signal) => self.on_signal(signal),
                EffectResult::Edit(path) => {
                    let path = path.display();
                    self.out.line(&format!("edit {path}; the list is read again when it is saved"));
                }
                #[cfg(debug_assertions)]
                #[allow(clippy::panic, reason = "tests check the state it leaves behind")]
                EffectResult::Panic => panic!("a panic of the tests, in the loop"),
                #[cfg(debug_assertions)]
                EffectResult::Stuck => loop {
                    std::thread::park();
                },
                // Escape codes, and the editor of a terminal that has a screen.
                _ => {}
            },
        }
        if let Some([.., few]) = self.state.history.interrupted_lines() {
            self.state.history.interrupted_seen();
            self.out.line(&format!(
                "{few}: runs interrupted lists them; open one, then resume continues it"
            ));
        }
    }

    fn on_signal(&mut self, signal: ProcessSignal) {
        match signal {
            ProcessSignal::End(code) => {
                self.watchdog.end_taken();
                if code == INTERRUPTED { self.interrupt() } else { self.quit = Some(code) }
            }
            ProcessSignal::Suspend => self.by(ByWord::Act(Action::Suspend)),
            ProcessSignal::Resumed | ProcessSignal::Resized => {}
        }
    }

    /// Ctrl-C: ends what is awaited or asked, and asks whether to end the run; twice leaves.
    fn interrupt(&mut self) {
        if self.interrupted.is_some_and(|at| at.elapsed() < INTERRUPT_WINDOW) {
            self.quit = Some(INTERRUPTED);
            return;
        }
        self.interrupted = Some(Instant::now());
        (self.wait, self.dialog, self.asks) = (None, None, None);
        let own = self.state.own_live_runs().count() as u64;
        let ends = match own {
            0 => "again leaves".to_owned(),
            _ => format!("again leaves and ends {}", format::count_noun(own, "live run")),
        };
        let live = self.state.visible_run().filter(|page| page.world().progress.is_live());
        match live.filter(|page| page.remote.is_none()) {
            Some(_) => {
                self.state.overlays.clear();
                self.by(ByWord::Act(Action::Kill));
                self.out.line(&format!("Ctrl-C {ends}"));
            }
            None => self.out.line(&format!("Ctrl-C {ends}; no run of this program is open here")),
        }
    }

    fn on_batch(&mut self, Batch { run, events, first }: Batch) {
        let logged = if program_log::is_on() { events.clone() } else { Vec::new() };
        let Some(run) = run else {
            self.update(Msg::Session(events));
            return logged.iter().for_each(|event| program_log::log_event(event, &World::new()));
        };
        let last = events.last().map_or(0, |event| event.seq.0);
        let before = first.min(Seq(last.saturating_sub(KEPT_EVENTS)));
        self.tell_events(&run, &events);
        self.update(Msg::Events { run: run.clone(), events });
        self.log(&run, &logged);
        if before > Seq(0) {
            self.update(Msg::EventsDropped { run, before });
        }
    }

    fn log(&self, run: &RunId, events: &[Arc<Event>]) {
        if let Some(page) = self.state.run(run) {
            events.iter().for_each(|event| program_log::log_event(event, page.world()));
        }
    }

    fn update(&mut self, msg: Msg) {
        let now = self.now();
        let update = update(&mut self.state, now, msg);
        for effect in update.effects {
            self.execute(effect);
        }
        self.tell_news();
    }

    /// Does what a word asks for.
    fn by(&mut self, word: ByWord) {
        self.update(Msg::Word(Box::new(word)));
    }

    fn command(&mut self, run: RunId, command: Command) {
        self.by(ByWord::Do(Effect::Command { run, command }));
    }

    fn execute(&mut self, effect: Effect) {
        match &effect {
            Effect::Copy(text) => return self.save("markdown", text.clone()),
            Effect::Command { run, command } => {
                let sent = sent_text(run, command);
                let sent = sent.unwrap_or_else(|| format!("sent to {run}: {}", self.typed.trim()));
                self.out.line(&sent);
                self.awaited = self.awaited.or(Some(Instant::now() + COMMAND_WAIT));
                let goes_on = matches!(
                    command,
                    Command::Step | Command::StepRound | Command::Resume { .. } | Command::Cancel
                );
                if let Some(page) = self.state.run(run).filter(|_| goes_on) {
                    self.went_on.insert(run.clone(), page.world().progress.next);
                }
            }
            Effect::Answer { run, id, answer, remember, .. } => {
                let name = question_name(&QuestionKey { run: run.clone(), id: *id });
                let always = if *remember { ", and so is every later call like it" } else { "" };
                self.out.line(&format!("answered: {name}, {}{always}", answer.phrase()));
                if let Some(page) = self.state.run(run) {
                    self.went_on.insert(run.clone(), page.world().progress.next);
                }
            }
            Effect::Export(_)
            | Effect::Picture
            | Effect::NewScenario { .. }
            | Effect::Edit(_)
            | Effect::Rescan
            | Effect::Suggest { .. }
            | Effect::PinKept { .. }
            | Effect::RemoveKept(_)
            | Effect::RestoreKept(_) => self.awaited = Some(Instant::now() + ANSWER_WAIT),
            _ => {}
        }
        match execute(&self.services, effect) {
            Some(TerminalEffect::Page(text)) => self.out.block(&text),
            Some(TerminalEffect::Picture) => self.export_picture(),
            Some(TerminalEffect::Suspend) => {
                self.out.flush();
                if !stop_process() {
                    self.out.line("the program cannot be suspended here");
                }
                self.update(Msg::Continued);
            }
            Some(TerminalEffect::NextTheme | TerminalEffect::Redraw) | None => {}
            Some(TerminalEffect::Quit { code }) => self.quit = Some(code),
        }
    }

    /// Writes a text to a file of the run.
    fn save(&mut self, what: &str, text: String) {
        let name = self.state.visible_run().map_or("home", |page| page.id().as_str());
        let end = if what == "markdown" { "md" } else { "txt" };
        let file = match what {
            "markdown" => format!("{name}.{end}"),
            what => format!("{name}-{}.{end}", what.replace(' ', "-")),
        };
        self.awaited = Some(Instant::now() + ANSWER_WAIT);
        let file = Export { file, contents: Contents::Text(text) };
        self.services.export(vec![file], Action::Copy);
    }

    fn export_picture(&mut self) {
        let glyphs = Glyphs::new(self.state.settings.ascii);
        let cx = DrawContext { now: self.now(), theme: &self.theme, glyphs };
        let size = std::mem::replace(&mut self.state.size, show::PICTURE);
        let cells = picture::cells(&self.state, &cx);
        self.state.size = size;
        let name = self.state.visible_run().map_or("home", |page| page.id().as_str());
        let file = |end, text| Export {
            file: format!("roundtable-{name}.{end}"),
            contents: Contents::Text(text),
        };
        let svg = picture::svg(&cells, &self.theme, "The dashboard");
        let files = vec![file("svg", svg), file("txt", picture::text(&cells))];
        self.services.export(files, Action::Picture);
    }

    /// Ends every run of this program, and prints what is left to say.
    async fn shut_down(&mut self) {
        self.tell_goes_on();
        let engine = Arc::clone(&self.services.engine);
        let ends = tokio::spawn(async move { timeout(SHUTDOWN, engine.shutdown()).await.is_ok() });
        let until = Instant::now() + 2 * SHUTDOWN;
        loop {
            let behind = self.state.runs.iter().any(|page| {
                let run = self.services.engine.run(page.id());
                run.is_some_and(|run| page.world().progress.next.0 < run.bus().len())
            });
            if ends.is_finished() && !behind {
                break;
            }
            tokio::select! {
                biased;
                Some(batch) = self.facts.recv() => {
                    let Some(run) = batch.run else { continue };
                    self.tell_events(&run, &batch.events);
                    if let Some(page) = self.state.run_mut(&run) {
                        page.apply(&batch.events);
                    }
                    self.log(&run, &batch.events);
                }
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
                () = tokio::time::sleep_until(until) => break,
            }
        }
    }
}

/// What a run is asked to do, where no event says it at once.
fn sent_text(run: &RunId, command: &Command) -> Option<String> {
    Some(match command {
        Command::Pause { .. } => format!("{run} is asked to pause at its next boundary"),
        Command::Resume { .. } => format!("{run} is asked to resume"),
        Command::Step => format!("{run} is asked to run to its next boundary"),
        Command::StepRound => format!("{run} is asked to run to its next round"),
        Command::Cancel => format!("{run} is asked to end"),
        Command::SetFlag { flag, on, .. } => {
            format!("flag {flag} will be {} at the next boundary", if *on { "on" } else { "off" })
        }
        Command::Break { at, set: true } => format!("{run} will pause at {at}"),
        Command::Break { at, set: false } => format!("{run} will not pause at {at} any more"),
        _ => return None,
    })
}

/// Whether this is what an awaited job answers with.
fn is_awaited(answer: &EffectResult) -> bool {
    match answer {
        EffectResult::Edit(_) => true,
        EffectResult::Msg(msg) => matches!(
            msg,
            Msg::Notice(_)
                | Msg::EffectFailed { .. }
                | Msg::Scenarios(_)
                | Msg::ScenarioWritten(_)
                | Msg::Suggested { .. }
                | Msg::Kept { change: Some(_), .. }
        ),
        _ => false,
    }
}

/// Whether a run does nothing by itself: it has ended, is paused or waits for people. `after`: the events that
/// it had when it was last resumed or answered.
fn is_at_rest(world: &World, after: Option<Seq>) -> bool {
    let is_news = after.is_none_or(|after| world.progress.next > after);
    match world.progress.stage {
        RunState::Closed => true,
        RunState::Paused { .. } => is_news,
        RunState::Running => is_news && world.questions.oldest().is_some(),
        RunState::Empty | RunState::Pausing { .. } => false,
    }
}
