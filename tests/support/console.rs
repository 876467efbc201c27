//! A console of the tests: keys are sent, a screen is awaited, and every change of the terminal is
//! recorded. The loop runs whole, under paused time.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use futures::Stream;
use ratatui::backend::{Backend, ClearType, TestBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};
use roundtable::engine::{Engine, EngineSettings};
use roundtable::host::models::LiveModels;
use roundtable::host::trust::Trust;
use roundtable::net::ProxyMode;
use roundtable::scenario::catalogue::RequestedModel;
use roundtable::scenario::{Override, Scenario, load, shipped};
use roundtable::screen::AppState;
use roundtable::screen::effect::{LaunchRequest, RequestId, RunBeginning};
use roundtable::screen::state::DisplaySettings;
use roundtable::screen::theme::Theme;
use roundtable::terminal::console::{Console, Editor, Pager};
use roundtable::terminal::effects::{EffectResult, LaunchExtras, Services};
use roundtable::terminal::event_loop;
use roundtable::terminal::event_loop::{DashboardConfig, DashboardExit};
use roundtable::terminal::surface::Surface;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The contents of the screen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its text, a line per row.
    pub text: String,
    /// Frames drawn so far.
    pub frames: u64,
    /// Frames that changed a cell.
    pub changes: u64,
    /// When the last frame was drawn.
    pub at: Instant,
}

/// The changes of the terminal, in order.
pub type Deeds = Arc<Mutex<Vec<&'static str>>>;

#[derive(Default)]
struct Link {
    stalled: AtomicBool,
    busy: AtomicBool,
    lost: AtomicBool,
    landed: Notify,
}

/// A terminal in memory.
pub struct Page {
    inner: TestBackend,
    seen: watch::Sender<Seen>,
    changed: bool,
    link: Arc<Link>,
}

fn never<T>(result: Result<T, std::convert::Infallible>) -> io::Result<T> {
    result.map_err(|never| match never {})
}

impl Surface for Page {
    fn set_size(&mut self, size: Size) {
        self.inner.resize(size.width, size.height);
    }
    fn send(&mut self, _: Vec<u8>) {}
    fn is_busy(&self) -> bool {
        self.link.busy.load(Ordering::SeqCst)
    }
    fn idle(&self) -> impl Future<Output = ()> + use<> {
        let link = Arc::clone(&self.link);
        async move {
            loop {
                let landed = link.landed.notified();
                if !link.busy.load(Ordering::SeqCst) {
                    return;
                }
                landed.await;
            }
        }
    }
    fn is_lost(&self) -> bool {
        self.link.lost.load(Ordering::SeqCst)
    }
    fn forget(&mut self) {}
}

impl Backend for Page {
    type Error = io::Error;
    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut content = content.peekable();
        self.changed |= content.peek().is_some();
        never(self.inner.draw(content))
    }
    fn hide_cursor(&mut self) -> io::Result<()> {
        never(self.inner.hide_cursor())
    }
    fn show_cursor(&mut self) -> io::Result<()> {
        never(self.inner.show_cursor())
    }
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        never(self.inner.get_cursor_position())
    }
    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        never(self.inner.set_cursor_position(position))
    }
    fn clear(&mut self) -> io::Result<()> {
        never(self.inner.clear())
    }
    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        never(self.inner.clear_region(region))
    }
    fn size(&self) -> io::Result<Size> {
        never(self.inner.size())
    }
    fn window_size(&mut self) -> io::Result<WindowSize> {
        never(self.inner.window_size())
    }
    fn flush(&mut self) -> io::Result<()> {
        let buffer = self.inner.buffer();
        let width = usize::from(buffer.area.width).max(1);
        let rows = buffer.content.chunks(width);
        let text =
            rows.map(|row| row.iter().map(Cell::symbol).collect::<String>() + "\n").collect();
        let changed = std::mem::take(&mut self.changed);
        self.seen.send_modify(|seen| {
            *seen = Seen {
                text,
                frames: seen.frames + 1,
                changes: seen.changes + u64::from(changed),
                at: Instant::now(),
            };
        });
        self.link.busy.store(self.link.stalled.load(Ordering::SeqCst), Ordering::SeqCst);
        Ok(())
    }
}

/// Keys that are sent; says when it is dropped.
pub struct Keys {
    keys: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Event>>>,
    guard: Option<tokio::sync::OwnedMutexGuard<mpsc::UnboundedReceiver<Event>>>,
    deeds: Deeds,
}

impl Stream for Keys {
    type Item = io::Result<Event>;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.guard.is_none() {
            self.guard = Arc::clone(&self.keys).try_lock_owned().ok();
        }
        match &mut self.guard {
            Some(keys) => keys.poll_recv(cx).map(|event| event.map(Ok)),
            None => panic!("two readers of keys at once"),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.deeds.lock().expect("a lock").push("keys are let go");
    }
}

struct TestConsole {
    page: Option<Page>,
    keys: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Event>>>,
    size: Arc<Mutex<Size>>,
    deeds: Deeds,
}

impl TestConsole {
    fn did(&self, what: &'static str) {
        self.deeds.lock().expect("a lock").push(what);
    }
}

impl Console for TestConsole {
    type FrameSurface = Page;
    type KeyInput = Keys;
    fn surface(&mut self) -> io::Result<Page> {
        self.page.take().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
    fn input(&mut self) -> io::Result<Keys> {
        Ok(Keys { keys: Arc::clone(&self.keys), guard: None, deeds: Arc::clone(&self.deeds) })
    }
    fn size(&self) -> Size {
        *self.size.lock().expect("a lock")
    }
    fn leave(&mut self) {
        self.did("leave");
    }
    fn enter(&mut self) -> io::Result<()> {
        self.did("enter");
        Ok(())
    }
    fn stop(&mut self) -> bool {
        self.did("stop");
        true
    }
    fn editor(&self) -> Editor {
        let deeds = Arc::clone(&self.deeds);
        Box::new(move |_| {
            deeds.lock().expect("a lock").push("editor");
            Err(io::Error::new(io::ErrorKind::NotFound, "no editor here"))
        })
    }
    fn pager(&self) -> Pager {
        let deeds = Arc::clone(&self.deeds);
        Box::new(move |_| {
            deeds.lock().expect("a lock").push("pager");
            Err(io::Error::new(io::ErrorKind::NotFound, "no pager here"))
        })
    }
}

/// The whole loop with a person before it.
pub struct Person {
    keys: mpsc::UnboundedSender<Event>,
    seen: watch::Receiver<Seen>,
    link: Arc<Link>,
    /// What the loop shares with its effects.
    pub services: Services,
    /// The changes of the terminal.
    pub deeds: Deeds,
    size: Arc<Mutex<Size>>,
    shell: JoinHandle<io::Result<DashboardExit>>,
}

impl Person {
    /// Sits down at a dashboard of this size.
    pub fn at(cols: u16, rows: u16) -> Self {
        let (keys, keys_read) = mpsc::unbounded_channel();
        let first = Seen { text: String::new(), frames: 0, changes: 0, at: Instant::now() };
        let (seen_send, seen) = watch::channel(first);
        let (link, deeds) = (Arc::<Link>::default(), Deeds::default());
        let size = Arc::new(Mutex::new(Size::new(cols, rows)));
        let page = Page {
            inner: TestBackend::new(cols, rows),
            seen: seen_send,
            changed: false,
            link: Arc::clone(&link),
        };
        let console = TestConsole {
            page: Some(page),
            keys: Arc::new(tokio::sync::Mutex::new(keys_read)),
            size: Arc::clone(&size),
            deeds: Arc::clone(&deeds),
        };
        let engine = Engine::new(EngineSettings::default());
        let models = LiveModels::new(ProxyMode::Direct);
        let (services, answers) =
            Services::new(engine, models, Trust::saved_in(None), None, PathBuf::new());
        let state = AppState::new(
            roundtable::screen::layout::Size { cols, rows },
            DisplaySettings::default(),
            Vec::new(),
        );
        let opening =
            DashboardConfig { state, theme: Theme::default(), terminal: Default::default() };
        let shell = tokio::spawn(event_loop::run(console, opening, services.clone(), answers));
        Self { keys, seen, link, services, deeds, size, shell }
    }

    /// Presses a key.
    pub fn key(&self, code: KeyCode) {
        self.event(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }
    /// Types characters.
    pub fn types(&self, text: &str) {
        text.chars().for_each(|c| self.key(KeyCode::Char(c)));
    }
    /// Presses a key with Ctrl.
    pub fn ctrl(&self, c: char) {
        self.event(Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)));
    }
    /// Pulls the window to another size.
    pub fn resize(&self, cols: u16, rows: u16) {
        *self.size.lock().expect("a lock") = Size::new(cols, rows);
        self.event(Event::Resize(cols, rows));
    }
    fn event(&self, event: Event) {
        self.keys.send(event).expect("the loop listens");
    }

    /// The present contents of the screen.
    pub fn now(&self) -> Seen {
        self.seen.borrow().clone()
    }
    /// Waits until the screen shows a text.
    pub async fn sees(&mut self, text: &str) -> Seen {
        self.sees_that(text, |seen| seen.text.contains(text)).await
    }
    /// Waits until the screen is as it should be.
    pub async fn sees_that(&mut self, what: &str, is: impl Fn(&Seen) -> bool) -> Seen {
        let last = self.seen.clone();
        let found = tokio::time::timeout(Duration::from_secs(3600), self.seen.wait_for(is)).await;
        match found {
            Ok(Ok(seen)) => return seen.clone(),
            Ok(Err(_)) => panic!("the loop has ended and never showed {what}"),
            Err(_) => {}
        }
        panic!("never on the screen: {what}\n{}", last.borrow().text)
    }
    /// Waits until nothing has been drawn for a while.
    pub async fn settles(&mut self) -> Seen {
        loop {
            let before = self.now().frames;
            tokio::time::sleep(Duration::from_secs(2)).await;
            if self.now().frames == before {
                return self.now();
            }
        }
    }

    /// The link to the terminal stalls after the next frame, or flows again.
    pub fn stall(&self, stalled: bool) {
        self.link.stalled.store(stalled, Ordering::SeqCst);
        if !stalled {
            self.link.busy.store(false, Ordering::SeqCst);
            self.link.landed.notify_waiters();
        }
    }
    /// The terminal goes away.
    pub fn hang_up(&self) {
        self.link.lost.store(true, Ordering::SeqCst);
    }
    /// The system says something.
    pub fn told(&self, told: roundtable::terminal::signals::ProcessSignal) {
        self.services.answer(EffectResult::Signal(told));
    }
    /// Starts a scenario as the dashboard would.
    pub fn starts(&self, scenario: Arc<Scenario>, instant: bool) {
        self.starts_with(scenario, instant, LaunchExtras::default());
    }
    /// The same, with what only the command line can say.
    pub fn starts_with(&self, scenario: Arc<Scenario>, instant: bool, extra: LaunchExtras) {
        self.services.add(RequestId(u64::MAX), extra);
        let model = RequestedModel::Scripted { instant };
        self.services.start(LaunchRequest {
            id: RequestId(u64::MAX),
            scenario,
            model,
            flags: Vec::new(),
            seed: None,
            begins: RunBeginning::New,
        });
    }
    /// Waits for the end of the program.
    pub async fn ends(self) -> io::Result<DashboardExit> {
        let ended = tokio::time::timeout(Duration::from_secs(3600), self.shell).await;
        ended.expect("it ends").expect("no panic")
    }
}

/// A shipped scenario, with fields set over it.
pub fn scenario(name: &str, set: &[&str]) -> Arc<Scenario> {
    let one = shipped().iter().find(|one| one.name == name).expect("a shipped scenario");
    let set: Vec<Override> = set.iter().map(|set| set.parse().expect("an override")).collect();
    Arc::new(load(one.text, one.origin(), &set).expect("a good scenario"))
}
