//! The loop of the dashboard: keys, facts and time go in, frames and effects come out.
//!
//! In the order of what must not wait: a frame that is due is drawn, then a key is answered, then
//! facts are folded. The frame's deadline is set anew *after* a draw, so a slow terminal starves
//! neither keys nor facts; while a frame is on its way to the terminal none is drawn. With nothing
//! new nothing is drawn, no byte is written and no timer runs.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use ratatui::Terminal;
use ratatui::layout::{Rect, Size};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::console::Console;
use super::effects::{Answer, Services};
use super::feed::{Batch, Feed};
use super::signals::{self, Told};
use super::surface::Surface;
use super::watch::Watch;
use super::{input, journal};
use crate::app::{Effect, Key, Msg, State, update};
use crate::event::{Event, RunId, Seq, World};
use crate::ui::glyph::Glyphs;
use crate::ui::theme::Theme;
use crate::ui::{self, Cx};

/// Between two frames at least: at most 30 a second.
pub const FRAME: Duration = Duration::from_nanos(33_333_334);

/// After the last frame, how soon one that answers a key may come: a person waits for it. Never two of
/// them in a row, so that a key that is held down draws little more than facts do.
pub const ANSWER: Duration = Duration::from_nanos(FRAME.as_nanos() as u64 / 2);

/// Facts that a page keeps at least, however far behind its log it is.
pub const SHOWN: u64 = 8_192;

/// How long a frame that is on its way may take before the terminal is given away all the same.
const LAND: Duration = Duration::from_millis(500);

/// How late a signal that was meant for the pager may come.
const LATE: Duration = Duration::from_secs(1);

/// How long the runs that are cancelled may take when the program ends.
const LEAVE: Duration = Duration::from_secs(1);

/// How long the pager may take to end when it is told to.
const PAGER: Duration = Duration::from_millis(300);

/// What the dashboard starts with.
pub struct Opening {
    /// Its state.
    pub state: State,
    /// How it looks.
    pub theme: Theme,
}

/// What is left of the dashboard when it ends.
pub struct Ending {
    /// The exit code that was asked for.
    pub code: u8,
    /// Its state, with every run folded to its end.
    pub state: State,
}

/// Runs the dashboard until it is left. Every run of the session has ended when this returns.
///
/// # Errors
/// When the terminal is gone; the runs have ended then as well.
pub async fn run<C: Console>(
    console: C,
    opening: Opening,
    services: Services,
    answers: mpsc::UnboundedReceiver<Answer>,
) -> io::Result<Ending> {
    let mut shown = Loop::new(console, opening, services, answers)?;
    let turned = shown.turn().await;
    let left = shown.leave().await;
    let code = turned?;
    Ok(Ending { code, state: left })
}

struct Loop<C: Console> {
    console: C,
    terminal: Terminal<C::Surface>,
    /// `None` while the terminal is given away.
    input: Option<C::Input>,
    state: State,
    theme: Theme,
    glyphs: Glyphs,
    services: Services,
    answers: mpsc::UnboundedReceiver<Answer>,
    feed: Feed,
    facts: mpsc::Receiver<Batch>,
    watch: Watch,
    started: Instant,
    /// There is something that the screen does not show.
    dirty: bool,
    drawn: Option<Instant>,
    /// Somebody pressed a key since, and waits for the answer.
    pressed: bool,
    /// The last frame was such an answer, and came before its time.
    early: bool,
    /// When the state was last changed, and when it asked to be told that time has passed.
    changed: Instant,
    tick: Option<Instant>,
    errand: Option<Errand>,
    /// The pager, while it has the terminal.
    pager: Option<JoinHandle<io::Result<()>>>,
    /// When the pager gave it back.
    paged: Option<Instant>,
    /// We stopped ourselves, so the signal that says we are back is no news.
    back_is_known: bool,
    quit: Option<u8>,
}

/// What the terminal is to be given away for.
enum Errand {
    /// The background.
    Stop,
    /// The pager, with this text.
    Page(String),
}

/// What woke the loop.
enum Woken {
    Frame,
    Landed,
    Input(Option<io::Result<crossterm::event::Event>>),
    Answer(Option<Answer>),
    Paged(io::Result<()>),
    Facts(Option<Batch>),
    Live,
    Tick,
}

impl<C: Console> Loop<C> {
    fn new(
        mut console: C,
        opening: Opening,
        services: Services,
        answers: mpsc::UnboundedReceiver<Answer>,
    ) -> io::Result<Self> {
        let terminal = Terminal::new(console.surface()?)?;
        let input = Some(console.input()?);
        let (feed, facts) = Feed::new();
        feed.follow_session(services.engine.session().reader(Seq(0)));
        let glyphs = Glyphs::new(opening.state.settings.ascii);
        let started = Instant::now();
        Ok(Self {
            console,
            terminal,
            input,
            state: opening.state,
            theme: opening.theme,
            glyphs,
            services,
            answers,
            feed,
            facts,
            watch: Watch::default(),
            started,
            dirty: true,
            drawn: None,
            pressed: false,
            early: false,
            changed: started,
            tick: None,
            errand: None,
            pager: None,
            paged: None,
            back_is_known: false,
            quit: None,
        })
    }

    async fn turn(&mut self) -> io::Result<u8> {
        // The scenarios are read after the first frame: nobody waits for them to see a screen.
        self.draw()?;
        self.services.rescan();
        loop {
            if let Some(code) = self.quit {
                return Ok(code);
            }
            if self.terminal.backend().is_lost() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            if let Some(errand) = self.errand.take() {
                self.go(errand).await?;
            }
            let woken = self.wait().await;
            self.console.turned();
            match woken {
                Woken::Frame => self.draw()?,
                Woken::Landed => {}
                Woken::Input(event) => match event {
                    Some(Ok(event)) => self.on_event(event),
                    Some(Err(error)) => return Err(error),
                    None => return Err(io::ErrorKind::UnexpectedEof.into()),
                },
                Woken::Answer(Some(answer)) => self.on_answer(answer)?,
                Woken::Facts(Some(batch)) => self.on_batch(batch),
                Woken::Answer(None) | Woken::Facts(None) => {}
                Woken::Paged(ended) => self.on_paged(ended)?,
                Woken::Live => self.dirty = true,
                Woken::Tick => {
                    self.tick = None;
                    self.update(Msg::Tick);
                }
            }
        }
    }

    /// Waits for whatever is first, in the order of what must not wait.
    async fn wait(&mut self) -> Woken {
        let shown = self.input.is_some();
        let busy = self.terminal.backend().is_busy();
        let frame = (shown && self.dirty && !busy)
            .then(|| self.drawn.map_or(self.started, |drawn| drawn + self.floor()));
        // A tick that was asked for is not put off by what happens before it: facts of another run
        // may come without a break.
        let wanted = self.state.next_tick().filter(|_| shown).map(|after| self.changed + after);
        self.tick = wanted.map(|at| self.tick.map_or(at, |sooner| sooner.min(at)));
        let tick = self.tick;
        let Self { input, answers, facts, watch, pager, terminal, dirty, .. } = self;
        tokio::select! {
            biased;
            () = until(frame) => Woken::Frame,
            event = next_of(input) => Woken::Input(event),
            answer = answers.recv() => Woken::Answer(answer),
            paged = paged(pager) => Woken::Paged(paged),
            () = terminal.backend().free(), if busy => Woken::Landed,
            () = until(tick) => Woken::Tick,
            batch = facts.recv() => Woken::Facts(batch),
            () = watch.changed(), if shown && !*dirty => Woken::Live,
        }
    }

    /// The least time between the last frame and the next.
    fn floor(&self) -> Duration {
        if self.pressed && !self.early { ANSWER } else { FRAME }
    }

    fn draw(&mut self) -> io::Result<()> {
        self.watch.turn_to(&self.state, &self.services.engine);
        for msg in self.watch.look() {
            self.update(msg);
        }
        let cx = Cx { now: self.started.elapsed(), theme: &self.theme, glyphs: self.glyphs };
        let state = &self.state;
        self.terminal.draw(|frame| {
            let area = frame.area();
            ui::render(state, &cx, area, frame.buffer_mut());
        })?;
        self.dirty = false;
        let now = Instant::now();
        self.early = self.drawn.is_some_and(|drawn| now < drawn + FRAME);
        self.pressed = false;
        self.drawn = Some(now);
        Ok(())
    }

    fn on_event(&mut self, event: crossterm::event::Event) {
        if let Some(msg) = input::message(event) {
            if let Msg::Resize { cols, rows } = msg {
                self.terminal.backend_mut().set_size(Size::new(cols, rows));
            }
            self.pressed = true;
            self.update(msg);
        }
    }

    fn on_answer(&mut self, answer: Answer) -> io::Result<()> {
        match answer {
            Answer::Msg(msg) => self.update(msg),
            Answer::Bytes(bytes) => self.terminal.backend_mut().send(bytes),
            Answer::Started { request, run, facts, launch } => {
                let zero = self.started.elapsed().saturating_sub(run.bus().now().duration());
                self.update(Msg::Started { request, run: run.id().clone(), zero, launch });
                self.feed.follow(run.id().clone(), *facts);
            }
            Answer::Told(told) => self.on_told(told)?,
            #[cfg(debug_assertions)]
            #[allow(clippy::panic, reason = "the tests look at what it leaves behind")]
            Answer::Panic => panic!("a panic of the tests, in the loop"),
            #[cfg(debug_assertions)]
            Answer::Stuck => loop {
                std::thread::park();
            },
        }
        Ok(())
    }

    fn on_batch(&mut self, Batch { run, events, first }: Batch) {
        let logged = if journal::is_on() { events.clone() } else { Vec::new() };
        let Some(run) = run else {
            self.update(Msg::Session(events));
            return logged.iter().for_each(|event| journal::note(event, &World::new()));
        };
        let last = events.last().map_or(0, |event| event.seq.0);
        // A loop that is behind shows what it has read last, though the log has let go of that.
        let before = first.min(Seq(last.saturating_sub(SHOWN)));
        self.update(Msg::Facts { run: run.clone(), events });
        self.log(&run, &logged);
        if before > Seq(0) {
            self.update(Msg::LetGo { run, before });
        }
    }

    /// Logs facts of a run that its page has folded.
    fn log(&self, run: &RunId, events: &[Arc<Event>]) {
        if let Some(page) = self.state.run(run) {
            events.iter().for_each(|event| journal::note(event, page.world()));
        }
    }

    fn on_told(&mut self, told: Told) -> io::Result<()> {
        match told {
            // Ctrl-C in the pager reaches both of us; it is the pager's. It may have ended of it
            // before the signal gets here.
            Told::End(signals::INTERRUPTED)
                if self.pager.is_some() || self.paged.is_some_and(|at| at.elapsed() < LATE) => {}
            Told::End(code) => self.update(Msg::Terminate { code }),
            Told::Stop if self.pager.is_some() => self.back_is_known = self.console.stop(),
            Told::Stop => self.update(Msg::Key(Key::ctrl('z'))),
            Told::Back if std::mem::take(&mut self.back_is_known) || self.pager.is_some() => {}
            Told::Back => {
                // Somebody stopped the program by force: the terminal may be as the shell left it.
                self.give();
                self.take()?;
            }
            // Who has the terminal now is told so too; we look when it is ours again.
            Told::Resized if self.input.is_none() => {}
            Told::Resized => {
                let Size { width, height } = self.console.size();
                self.on_event(crossterm::event::Event::Resize(width, height));
            }
        }
        Ok(())
    }

    fn update(&mut self, msg: Msg) {
        self.changed = Instant::now();
        let update = update(&mut self.state, self.changed - self.started, msg);
        self.dirty |= update.redraw;
        for effect in update.effects {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Start(request) => self.services.start(*request),
            Effect::Trust { digest, title } => self.services.allow(&digest, &title),
            Effect::Command { run, command } => match self.services.engine.run(&run) {
                Some(run) => run.send(command),
                None => tracing::debug!("{run} is forgotten; nothing to command"),
            },
            Effect::Copy(text) => self.services.copy(text),
            Effect::Export(files) => self.services.export(files),
            Effect::Rescan => self.services.rescan(),
            Effect::FindLive(query) => self.services.find_live(*query),
            Effect::ListModels { query, place } => self.services.list_models(*query, place),
            Effect::FindOllama { form } => self.services.find_ollama(form),
            Effect::Page(text) => self.errand = Some(Errand::Page(text)),
            Effect::Suspend => self.errand = Some(Errand::Stop),
            Effect::Redraw => self.repaint(),
            Effect::Quit { code } => self.quit = Some(code),
        }
    }

    /// Gives the terminal away: to the shell, until the program is back, or to the pager, while
    /// facts go on being folded.
    async fn go(&mut self, errand: Errand) -> io::Result<()> {
        if self.pager.is_some() {
            return Ok(());
        }
        // What is still on its way would land on another program's screen.
        let landed = self.terminal.backend().free();
        let _ = timeout(LAND, landed).await;
        self.give();
        match errand {
            Errand::Stop => {
                self.back_is_known = self.console.stop();
                self.take()?;
                self.update(Msg::Continued);
            }
            Errand::Page(text) => {
                let pager = self.console.pager();
                self.pager = Some(tokio::task::spawn_blocking(move || pager(&text)));
            }
        }
        Ok(())
    }

    fn on_paged(&mut self, ended: io::Result<()>) -> io::Result<()> {
        self.pager = None;
        self.paged = Some(Instant::now());
        self.take()?;
        if let Err(error) = ended {
            let text = format!("{error}; set PAGER to a program that is there");
            self.update(Msg::EffectFailed { what: "pager", text });
        }
        Ok(())
    }

    /// Gives the terminal away. The reader of keys goes first: two readers would share them.
    fn give(&mut self) {
        self.input = None;
        self.console.leave();
    }

    fn take(&mut self) -> io::Result<()> {
        self.console.enter()?;
        self.input = Some(self.console.input()?);
        let size = self.console.size();
        let backend = self.terminal.backend_mut();
        backend.forget();
        backend.set_size(size);
        self.update(Msg::Resize { cols: size.width, rows: size.height });
        self.repaint();
        Ok(())
    }

    /// Paints everything again. Not with `Terminal::clear`, which asks the terminal where its
    /// cursor is and waits for an answer that the reader of keys has taken away.
    fn repaint(&mut self) {
        let size = self.console.size();
        let area = Rect::new(0, 0, size.width, size.height);
        if let Err(error) = self.terminal.resize(area) {
            tracing::warn!("cannot repaint: {error}");
        }
        self.dirty = true;
    }

    /// Ends every run, the pager and the last frame, side by side; what is left of the facts is
    /// folded. Keys are read until it is done: who presses Ctrl-C once more does not wait.
    async fn leave(mut self) -> State {
        let engine = std::sync::Arc::clone(&self.services.engine);
        let runs = timeout(LEAVE, engine.shutdown());
        let frame = timeout(LAND, self.terminal.backend().free());
        let pager = end_pager(&mut self.console, self.pager.take());
        let (runs, _, ()) = tokio::join!(runs, frame, pager);
        if runs.is_err() {
            tracing::warn!("left before every run had ended");
        }
        self.input = None;
        if tokio::time::timeout(LEAVE, self.fold_the_rest()).await.is_err() {
            tracing::warn!("left before every fact was folded");
        }
        self.state
    }

    /// Takes what is still on its way, until every run that is held has been folded to its end: a log
    /// that keeps a window only cannot be read again.
    async fn fold_the_rest(&mut self) {
        loop {
            let behind = self.state.runs.iter().any(|page| {
                let run = self.services.engine.run(page.id());
                run.is_some_and(|run| page.world().next.0 < run.bus().len())
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

/// Ends the pager, and gives its terminal to the shell.
async fn end_pager<C: Console>(console: &mut C, pager: Option<JoinHandle<io::Result<()>>>) {
    let Some(mut pager) = pager else { return };
    console.end_pager(false);
    if timeout(PAGER, &mut pager).await.is_err() {
        console.end_pager(true);
        let _ = timeout(PAGER, pager).await;
    }
    console.reclaim();
}

/// Never, where there is no time.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn next_of<I: Stream + Unpin>(input: &mut Option<I>) -> Option<I::Item> {
    match input {
        Some(input) => input.next().await,
        None => std::future::pending().await,
    }
}

async fn paged(pager: &mut Option<JoinHandle<io::Result<()>>>) -> io::Result<()> {
    match pager {
        Some(pager) => pager.await.unwrap_or_else(|gone| Err(io::Error::other(gone))),
        None => std::future::pending().await,
    }
}
