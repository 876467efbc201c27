//! The loop of the dashboard: keys, events and ticks go in, frames and effects come out.
//!
//! By priority: a due frame is drawn, then a key is handled, then events are folded. The next
//! frame's deadline is set *after* a draw, so a slow terminal starves neither keys nor events;
//! while a frame is being written, none is drawn. If nothing is new, nothing is drawn, no byte is
//! written and no timer runs.

mod announcer;
mod handover;

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::{Stream, StreamExt as _};
use ratatui::Terminal;
use ratatui::layout::Size;
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::announcer::Announcer;
use self::handover::{TerminalHandoff, TerminalProgram, end_of};
use super::console::Console;
use super::effects::{EffectResult, Services, TerminalEffect, execute, scenario_files};
use super::feed::{Batch, Feed, LiveTextWatcher, News};
use super::input;
use super::surface::Surface;
use super::themes::ThemeCycle;
use crate::base::time::millis;
use crate::host::program_log;
use crate::log::event::{Event, RunId, Seq, World};
use crate::screen;
use crate::screen::effect::{Contents, Export};
use crate::screen::picture::{cells, svg, text};
use crate::screen::questions;
use crate::screen::theme::Theme;
use crate::screen::{Action, AppState, DrawContext, Effect, Msg, update};
use crate::words::format::time_in_run;
use crate::words::glyph::Glyphs;

pub use self::announcer::TerminalSettings;

/// Minimum time between two frames: at most 30 per second.
pub const FRAME: Duration = Duration::from_nanos(33_333_334);

/// Minimum time before a frame that answers a key, which the operator waits for. Never applied
/// twice in a row, so a key that is held down draws few extra frames.
pub const KEY_FRAME: Duration = Duration::from_nanos(FRAME.as_nanos() as u64 / 4);

/// The dashboard's time at its start: a run that is continued from its log began before it.
pub(crate) const CLOCK_AT_START: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Minimum number of events that a page keeps, even if it is far behind its log.
pub const KEPT_EVENTS: u64 = 8_192;

/// Initial state of the dashboard.
pub struct DashboardConfig {
    /// State of the app.
    pub state: AppState,
    /// The theme.
    pub theme: Theme,
    /// Colours, title and notifications of the terminal.
    pub terminal: TerminalSettings,
}

/// Final state of the dashboard.
pub struct DashboardExit {
    pub code: u8,
    /// State of the app, with every run folded to its end.
    pub state: AppState,
    /// The theme that was in use.
    pub theme: Theme,
}

/// Runs the dashboard until the operator leaves it. All runs have ended when this returns.
///
/// # Errors
/// If the terminal was closed; all runs have ended then too.
pub async fn run<C: Console>(
    console: C,
    opening: DashboardConfig,
    services: Services,
    answers: mpsc::UnboundedReceiver<EffectResult>,
) -> io::Result<DashboardExit> {
    let mut shown = DashboardLoop::new(console, opening, services, answers)?;
    let turned = shown.run_until_quit().await;
    let theme = shown.themes.current().clone();
    let left = shown.shut_down().await;
    let code = turned?;
    Ok(DashboardExit { code, state: left, theme })
}

struct DashboardLoop<C: Console> {
    console: C,
    terminal: Terminal<C::FrameSurface>,
    /// `None` while another program has the terminal.
    input: Option<C::KeyInput>,
    state: AppState,
    themes: ThemeCycle,
    glyphs: Glyphs,
    announcer: Announcer,
    services: Services,
    answers: mpsc::UnboundedReceiver<EffectResult>,
    feed: Feed,
    facts: mpsc::Receiver<Batch>,
    watch: LiveTextWatcher,
    started: Instant,
    /// The screen is out of date.
    dirty: bool,
    drawn: Option<Instant>,
    /// The last frame has not been on the terminal yet.
    is_unseen: bool,
    /// A key was pressed since the last frame.
    pressed: bool,
    /// The last frame answered a key and was drawn early.
    early: bool,
    /// When the state last changed, and when it wants the next tick.
    changed: Instant,
    tick: Option<Instant>,
    handoff: Option<TerminalHandoff>,
    program: Option<TerminalProgram>,
    program_ended: Option<Instant>,
    /// The program suspended itself, so it ignores the signal that it was resumed.
    resume_expected: bool,
    quit: Option<u8>,
}

/// What the loop reacts to next.
enum LoopEvent {
    Frame,
    FrameWritten,
    Input(Option<io::Result<crossterm::event::Event>>),
    Answer(Option<Box<EffectResult>>),
    ProgramEnded(io::Result<()>),
    Facts(Option<Batch>),
    Live,
    Tick,
    Title,
}

impl<C: Console> DashboardLoop<C> {
    fn new(
        mut console: C,
        opening: DashboardConfig,
        services: Services,
        answers: mpsc::UnboundedReceiver<EffectResult>,
    ) -> io::Result<Self> {
        let terminal = Terminal::new(console.surface()?)?;
        let input = Some(console.input()?);
        let (feed, facts) = Feed::new();
        feed.follow_session(services.engine.log().reader(Seq(0)));
        let glyphs = Glyphs::new(opening.state.settings.ascii);
        let started = Instant::now();
        let mut state = opening.state;
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        state.inbox.zero_wall_ms =
            wall.and_then(|wall| wall.checked_sub(CLOCK_AT_START)).map(millis);
        Ok(Self {
            console,
            terminal,
            input,
            state,
            themes: ThemeCycle::new(opening.theme, opening.terminal.depth),
            glyphs,
            announcer: Announcer::new(opening.terminal),
            services,
            answers,
            feed,
            facts,
            watch: LiveTextWatcher::default(),
            started,
            dirty: true,
            drawn: None,
            is_unseen: false,
            pressed: false,
            early: false,
            changed: started,
            tick: None,
            handoff: None,
            program: None,
            program_ended: None,
            resume_expected: false,
            quit: None,
        })
    }

    async fn run_until_quit(&mut self) -> io::Result<u8> {
        // After the first frame, so that they do not delay it.
        self.draw()?;
        scenario_files::rescan(&self.services);
        scenario_files::watch(&self.services);
        self.services.list_kept();
        loop {
            if let Some(code) = self.quit {
                return Ok(code);
            }
            if self.terminal.backend().is_lost() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            if let Some(errand) = self.handoff.take() {
                self.hand_over_terminal(errand).await?;
            }
            self.note_frame();
            let woken = self.wait().await;
            self.note_frame();
            self.console.heartbeat();
            match woken {
                LoopEvent::Frame => self.draw()?,
                LoopEvent::FrameWritten => {}
                LoopEvent::Input(event) => match event {
                    Some(Ok(event)) => self.on_event(event),
                    Some(Err(error)) => return Err(error),
                    None => return Err(io::ErrorKind::UnexpectedEof.into()),
                },
                LoopEvent::Answer(Some(answer)) => self.on_answer(*answer)?,
                LoopEvent::Facts(Some(batch)) => self.on_batch(batch),
                LoopEvent::Answer(None) | LoopEvent::Facts(None) => {}
                LoopEvent::ProgramEnded(ended) => self.on_program_end(ended)?,
                LoopEvent::Live => self.dirty = true,
                LoopEvent::Tick => {
                    self.tick = None;
                    self.update(Msg::Tick);
                }
                LoopEvent::Title => self.write_title(),
            }
        }
    }

    /// Waits for the next event, by priority.
    async fn wait(&mut self) -> LoopEvent {
        let shown = self.input.is_some();
        let busy = self.terminal.backend().is_busy();
        let frame = (shown && self.dirty && !busy)
            .then(|| self.drawn.map_or(self.started, |drawn| drawn + self.min_frame_gap()));
        // Other events do not postpone a requested tick: those of another run may arrive
        // continuously.
        let wanted = self.state.next_tick().filter(|_| shown).map(|after| self.changed + after);
        self.tick = wanted.map(|at| self.tick.map_or(at, |sooner| sooner.min(at)));
        let tick = self.tick;
        let title = self.announcer.title_due().filter(|_| shown && !busy);
        let Self { input, answers, facts, watch, program, terminal, dirty, .. } = self;
        tokio::select! {
            biased;
            () = due(frame) => LoopEvent::Frame,
            event = next_of(input) => LoopEvent::Input(event),
            answer = answers.recv() => LoopEvent::Answer(answer.map(Box::new)),
            ended = end_of(program) => LoopEvent::ProgramEnded(ended),
            () = terminal.backend().idle(), if busy => LoopEvent::FrameWritten,
            // It waits for tokio's timer: while a filter is behind, a tick is always due, and without this
            // pause no event would be read.
            () = sleep_until(tick) => LoopEvent::Tick,
            () = sleep_until(title) => LoopEvent::Title,
            batch = facts.recv() => LoopEvent::Facts(batch),
            () = watch.changed(), if shown && !*dirty => LoopEvent::Live,
        }
    }

    /// Minimum time between the last frame and the next.
    fn min_frame_gap(&self) -> Duration {
        if self.pressed && !self.early { KEY_FRAME } else { FRAME }
    }

    /// The time that the dashboard goes by.
    fn now(&self) -> Duration {
        CLOCK_AT_START + self.started.elapsed()
    }

    fn draw(&mut self) -> io::Result<()> {
        self.watch.follow_visible(&self.state, &self.services.engine);
        for msg in self.watch.take_changes() {
            self.update(msg);
        }
        let cx = DrawContext { now: self.now(), theme: self.themes.current(), glyphs: self.glyphs };
        let state = &self.state;
        self.terminal.draw(|frame| {
            let area = frame.area();
            screen::render(state, &cx, area, frame.buffer_mut());
        })?;
        self.dirty = false;
        self.is_unseen = true;
        questions::on_frame_drawn(&mut self.state);
        let now = Instant::now();
        self.early = self.drawn.is_some_and(|drawn| now < drawn + FRAME);
        self.pressed = false;
        self.drawn = Some(now);
        Ok(())
    }

    /// Records that the terminal shows the last frame, once it has been written.
    fn note_frame(&mut self) {
        if self.is_unseen && !self.terminal.backend().is_busy() {
            self.is_unseen = false;
            let now = self.now();
            questions::on_frame_shown(&mut self.state, now);
        }
    }

    fn on_event(&mut self, event: crossterm::event::Event) {
        self.announcer.follow_focus(&event);
        if let Some(msg) = input::message(event) {
            if let Msg::Resize { cols, rows } = msg {
                self.terminal.backend_mut().set_size(Size::new(cols, rows));
            }
            self.pressed = true;
            self.update(msg);
        }
    }

    fn on_answer(&mut self, answer: EffectResult) -> io::Result<()> {
        match answer.into_news(self.now()) {
            Ok(News { msgs, log }) => {
                msgs.into_iter().for_each(|msg| self.update(msg));
                if let Some((run, facts)) = log {
                    self.feed.follow(run, *facts);
                }
            }
            Err(answer) => self.on_request(*answer)?,
        }
        Ok(())
    }

    /// Does what a result asks of the terminal.
    fn on_request(&mut self, answer: EffectResult) -> io::Result<()> {
        match answer {
            EffectResult::Bytes(bytes) => self.terminal.backend_mut().send(bytes),
            EffectResult::Signal(signal) => self.on_signal(signal)?,
            EffectResult::Edit(path) => self.handoff = Some(TerminalHandoff::Edit(path)),
            EffectResult::EditArgs(file) => self.handoff = Some(TerminalHandoff::EditArgs(file)),
            #[cfg(debug_assertions)]
            #[allow(clippy::panic, reason = "tests check the state it leaves behind")]
            EffectResult::Panic => panic!("a panic of the tests, in the loop"),
            #[cfg(debug_assertions)]
            EffectResult::Stuck => loop {
                std::thread::park();
            },
            EffectResult::Msg(_)
            | EffectResult::Opened { .. }
            | EffectResult::Started { .. }
            | EffectResult::Clock(..)
            | EffectResult::Attached { .. }
            | EffectResult::Followed { .. } => {}
        }
        Ok(())
    }

    fn on_batch(&mut self, Batch { run, events, first }: Batch) {
        let logged = if program_log::is_on() { events.clone() } else { Vec::new() };
        let Some(run) = run else {
            self.update(Msg::Session(events));
            return logged.iter().for_each(|event| program_log::log_event(event, &World::new()));
        };
        let last = events.last().map_or(0, |event| event.seq.0);
        // A loop that is behind keeps its latest events, even if the log has dropped them.
        let before = first.min(Seq(last.saturating_sub(KEPT_EVENTS)));
        let pause = self.announcer.before(&self.state, &run, &events);
        self.update(Msg::Events { run: run.clone(), events });
        self.notify(&run, pause);
        self.log(&run, &logged);
        if before > Seq(0) {
            self.update(Msg::EventsDropped { run, before });
        }
    }

    /// Logs events of a run that its page has folded.
    fn log(&self, run: &RunId, events: &[Arc<Event>]) {
        if let Some(page) = self.state.run(run) {
            events.iter().for_each(|event| program_log::log_event(event, page.world()));
        }
    }

    fn update(&mut self, msg: Msg) {
        self.changed = Instant::now();
        self.announcer.state_changed();
        let update = update(&mut self.state, CLOCK_AT_START + (self.changed - self.started), msg);
        self.dirty |= update.redraw;
        for effect in update.effects {
            self.execute(effect);
        }
    }

    fn execute(&mut self, effect: Effect) {
        match execute(&self.services, effect) {
            Some(TerminalEffect::Page(text)) => self.handoff = Some(TerminalHandoff::Page(text)),
            Some(TerminalEffect::Picture) => self.export_picture(),
            Some(TerminalEffect::Suspend) => self.handoff = Some(TerminalHandoff::Stop),
            Some(TerminalEffect::NextTheme) => self.next_theme(),
            Some(TerminalEffect::Redraw) => self.repaint(),
            Some(TerminalEffect::Quit { code }) => self.quit = Some(code),
            None => {}
        }
    }

    /// Folds the queued events until every run is complete: a log that keeps only a window cannot
    /// be read again.
    async fn fold_remaining(&mut self) {
        loop {
            let behind = self.state.runs.iter().any(|page| {
                let run = self.services.engine.run(page.id());
                run.is_some_and(|run| page.world().progress.next.0 < run.bus().len())
            });
            if !behind {
                return;
            }
            let Some(batch) = self.facts.recv().await else { return };
            let Some(run) = batch.run else { continue };
            if let Some(page) = self.state.run_mut(&run) {
                page.apply(&batch.events);
            }
            self.log(&run, &batch.events);
        }
    }
}

impl<C: Console> DashboardLoop<C> {
    /// Exports the screen as an SVG and as text. It is drawn again, since the terminal may show an older
    /// frame.
    fn export_picture(&self) {
        let (now, theme) = (self.now(), self.themes.current());
        let cells = cells(&self.state, &DrawContext { now, theme, glyphs: self.glyphs });
        let page = self.state.visible_run();
        let name = page.map_or("home", |page| page.id().as_str());
        let title = match page.and_then(|page| Some((page, page.world().head.as_ref()?))) {
            Some((page, head)) => {
                let time = page.shown().progress.run_time(page.time(now));
                format!("A run of {} in the dashboard, at {}", head.scenario, time_in_run(time))
            }
            None => "The first screen of the dashboard".to_owned(),
        };
        let file = |end, text| Export {
            file: format!("roundtable-{name}.{end}"),
            contents: Contents::Text(text),
        };
        let svg = svg(&cells, theme, &title);
        self.services.export(vec![file("svg", svg), file("txt", text(&cells))], Action::Picture);
    }
}

/// Like [`sleep_until`], but a time that has come is seen at once: a timer of tokio fires only when its
/// runtime looks at the clock, which it rarely does while events keep arriving.
pub(crate) async fn due(at: Option<Instant>) {
    if at.is_none_or(|at| at > Instant::now()) {
        sleep_until(at).await;
    }
}

/// Waits until a time; forever if there is none.
pub(crate) async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The next item of a stream; waits forever if there is none.
pub(crate) async fn next_of<I: Stream + Unpin>(input: &mut Option<I>) -> Option<I::Item> {
    match input {
        Some(input) => input.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn past_deadline_is_due_at_once() {
        let now = Instant::now();
        assert!(due(Some(now)).now_or_never().is_some());
        let later = now + std::time::Duration::from_secs(3_600);
        assert!(due(Some(later)).now_or_never().is_none());
        assert!(due(None).now_or_never().is_none());
    }
}
