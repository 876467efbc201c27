//! The page of one run: its facts, the world they fold to, and where the eye is. What is drawn of
//! it stands in `ui/run`.

mod act;
mod beside;
mod cause;
mod copy;
pub mod document;
pub mod face;
pub mod filter;
mod gone;
pub mod hand;
pub mod inspect;
pub mod layout;
pub mod list;
mod markdown;
mod mouse;
mod next;
mod past;
pub mod picked;
pub mod progress;
pub mod research;
pub mod results;
pub mod run_log;
pub mod scroll;
pub mod speech;
pub mod subject;
pub mod table;
pub mod task;
pub mod team;
pub mod times;
pub mod told;
mod told_research;
mod told_team;
pub mod told_tool;
mod tool_calls;
pub mod tool_words;
mod turned;
mod typed;
pub mod waterfall;
pub mod whose;
pub mod words;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use self::beside::Beside;
pub use self::face::Face;
pub use self::inspect::{Asks, Inspector, Tab, Target};
pub use self::layout::{Areas, Pane, Shape};
pub use self::list::FactList;
pub use self::next::Next;
pub use self::run_log::RunLog;
pub use self::subject::Subject;
pub use self::turned::Turned;
pub use self::waterfall::Row;

use self::past::Past;
use self::scroll::Scroll;
use super::effect::{Effect, LaunchRequest};
use super::key::Key;
use super::keymap::Context;
use super::msg::LiveText;
use crate::event::world::Stage;
use crate::event::{Command, Elapsed, Event, RunId, Seq, SpanId, World};
use crate::scenario::name::ToolName;

/// How often a running clock is drawn anew.
const TICK: Duration = Duration::from_millis(100);
/// The same where nothing may move that carries no news.
const SLOW_TICK: Duration = Duration::from_secs(1);
/// New facts that a filter looks at as they come; more of them wait for a tick.
const AT_ONCE: usize = 64;

/// One run as the dashboard holds it.
#[derive(Debug)]
pub struct RunPage {
    id: RunId,
    zero: Duration,
    log: RunLog,
    world: World,
    past: Past,
    live: BTreeMap<SpanId, LiveText>,
    /// What it shows, where that is not its pattern's own.
    over: Option<Face>,
    focus: Pane,
    zoom: bool,
    upper: Pane,
    middle: Pane,
    selection: Selection,
    round: Option<u32>,
    /// The row of the waterfall that is selected; `None` follows what goes on.
    row: Option<Row>,
    /// The tool that is selected.
    tool: Option<ToolName>,
    /// The other kind of run of the same scenario.
    beside: Option<Beside>,
    turned: Turned,
    /// Where the eye is in the panes of a team.
    team: team::TeamView,
    /// Where the eye is in the panes of research.
    research: research::ResearchView,
    /// What the run was started with.
    launch: Option<Box<LaunchRequest>>,
    /// The next message of its session, as far as there is one.
    next: Next,
    list: FactList,
    /// Where the eye is in what the subject says; `None` stays with its newest words.
    said: Option<Scroll>,
    inspector: Option<Inspector>,
    /// Whether the button that went down on the scrubber is still down.
    dragging: bool,
}

/// Who is selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// No one: the page follows who speaks.
    #[default]
    Follow,
    /// A seat of the sequence, from 0.
    Seat(usize),
    /// The text at the end.
    Finalize,
}

/// What a page made of an action.
#[derive(Debug)]
pub enum Outcome {
    /// It took it.
    Handled {
        /// Whether the screen has changed.
        redraw: bool,
    },
    /// It took it, and the shell is asked for something.
    Emit(Vec<Effect>),
    /// It took it, and there is something to say about it.
    Say(String),
    /// It means nothing here; the dashboard may know better.
    Ignored,
}

impl Outcome {
    fn redraw() -> Self {
        Self::Handled { redraw: true }
    }
}

impl RunPage {
    /// A page before its first fact. `zero` is when the run's own time was zero, since the start
    /// of the program.
    pub fn new(id: RunId, zero: Duration) -> Self {
        Self {
            id,
            zero,
            log: RunLog::default(),
            world: World::new(),
            past: Past::default(),
            live: BTreeMap::new(),
            over: None,
            focus: Pane::First,
            zoom: false,
            upper: Pane::First,
            middle: Pane::Third,
            selection: Selection::Follow,
            round: None,
            row: None,
            tool: None,
            beside: None,
            turned: Turned::default(),
            team: team::TeamView::default(),
            research: research::ResearchView::default(),
            launch: None,
            next: Next::default(),
            list: FactList::default(),
            said: None,
            inspector: None,
            dragging: false,
        }
    }

    /// The run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// When the run's own time was zero, since the start of the program.
    pub fn zero(&self) -> Duration {
        self.zero
    }

    /// The run's facts so far, the last of which are held.
    pub fn log(&self) -> &RunLog {
        &self.log
    }

    /// The world at the head of the log.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The world at the playhead.
    pub fn shown(&self) -> &World {
        self.past.world().unwrap_or(&self.world)
    }

    /// What was asked of its limits and faults and has not come back as a fact yet.
    pub fn turned(&self) -> &Turned {
        &self.turned
    }

    /// This was asked of the run.
    pub fn asked(&mut self, command: &Command) {
        self.turned.ask(command);
    }

    /// How many facts the shown world holds.
    pub fn shown_facts(&self) -> usize {
        self.past.facts().unwrap_or(self.log.len())
    }

    /// Whether the playhead stands before the head of the log.
    pub fn is_scrubbed(&self) -> bool {
        self.past.facts().is_some()
    }

    /// The run's own time, where its head is shown that of the clock; else that of the playhead.
    /// `now` is the time since the start of the program.
    pub fn time(&self, now: Duration) -> Elapsed {
        let world = self.shown();
        if self.is_scrubbed() || !world.is_live() {
            return world.at;
        }
        Elapsed::of(now.saturating_sub(self.zero)).max(world.at)
    }

    /// The run's own time at the head of its log, playhead or not.
    pub fn head_time(&self, now: Duration) -> Elapsed {
        // A run at rest stands still.
        let rests = matches!(self.world.stage, Stage::Paused { .. });
        if rests || self.is_scrubbed() { self.world.at } else { self.time(now) }
    }

    /// The fact of this place in the log.
    pub fn fact(&self, seq: Seq) -> Option<&Event> {
        self.log.get(self.log.place(seq)).map(|event| &**event).filter(|event| event.seq == seq)
    }

    /// Where a fact stands, or would stand.
    fn place(&self, seq: Seq) -> usize {
        self.log.place(seq)
    }

    /// The text that a span has given so far. None of the past is kept.
    pub fn live(&self, span: SpanId) -> Option<&LiveText> {
        if self.is_scrubbed() { None } else { self.live.get(&span) }
    }

    /// The pane that is focused.
    pub fn focus(&self) -> Pane {
        self.focus
    }

    /// What the page shows: its pattern, or the tools over it.
    pub fn face(&self) -> Face {
        self.over.unwrap_or_else(|| Face::of(&self.world))
    }

    /// Who is selected.
    pub fn selection(&self) -> Selection {
        self.selection
    }

    /// The round that is selected among the stances.
    pub fn selected_round(&self) -> Option<u32> {
        self.round
    }

    /// The list of facts.
    pub fn list(&self) -> &FactList {
        &self.list
    }

    /// The inspector, while it is open.
    pub fn inspector(&self) -> Option<&Inspector> {
        self.inspector.as_ref()
    }

    /// What is focused, as the binding table knows it.
    pub fn context(&self) -> Context {
        if self.list.typing.is_some() {
            Context::Filter
        } else if self.inspector.is_some() {
            Context::Inspector
        } else {
            Context::Run
        }
    }

    /// Takes new facts.
    pub fn apply(&mut self, events: &[Arc<Event>]) {
        for event in events {
            self.world.apply(event);
            self.turned.landed(&event.kind);
            self.log.take(event);
            self.past.note(self.log.len(), &self.world);
            if event.kind.closes() {
                self.live.remove(&event.span);
            }
        }
        if events.len() <= AT_ONCE && self.list.is_behind(&self.log) {
            self.list.look(&self.log, &self.world);
        }
        if self.inspector.as_ref().is_some_and(|open| self.concerns(open.target, events)) {
            self.refresh_inspector();
        }
        self.refresh_reading();
    }

    /// Whether new facts may change what is known of a target.
    fn concerns(&self, target: Target, events: &[Arc<Event>]) -> bool {
        let Some(call) = self.call_of(target) else { return false };
        let of_call = |event: &Arc<Event>| {
            event.span == call
                || self.world.spans.get(event.span).is_some_and(|span| span.parent == call)
        };
        events.iter().any(of_call)
    }

    /// Whether the run's facts were dropped to bound memory.
    pub fn is_forgotten(&self) -> bool {
        self.log.is_empty() && self.world.tally.facts > 0
    }

    /// Takes the text that a span has given so far.
    pub fn set_live(&mut self, span: SpanId, text: Option<LiveText>) -> Outcome {
        let closed = self.world.spans.get(span).is_some_and(|span| span.closed.is_some());
        let changed = match text.filter(|_| !closed) {
            // What has come only grows: its length tells whether there is more of it.
            Some(text) if self.live.get(&span).is_some_and(|had| is_same(had, &text)) => false,
            Some(text) => {
                self.live.insert(span, text);
                true
            }
            // Its last text stands until the fact that closes it comes.
            None if !closed => false,
            None => self.live.remove(&span).is_some(),
        };
        let parent = self.world.spans.get(span).map(|span| span.parent);
        let inspected = self.inspector.as_ref().and_then(|open| self.call_of(open.target));
        if changed && inspected.is_some() && inspected == parent {
            self.refresh_inspector();
        }
        Outcome::Handled { redraw: changed && !self.is_scrubbed() }
    }

    /// Drops the facts of a run that has ended, and what was kept to look back. The world stays.
    pub fn forget(&mut self) {
        self.inspector = None;
        self.list = FactList::default();
        self.past = Past::default();
        self.log = RunLog::default();
    }

    /// Time has passed: the filter looks at another slice of the log.
    pub fn on_tick(&mut self) {
        if self.list.is_behind(&self.log) {
            self.list.look(&self.log, &self.world);
        }
    }

    /// How long until the page needs the next tick; `None` while nothing on it moves by itself.
    /// `animation`: whether things may move that carry no news.
    pub fn next_tick(&self, now: Duration, animation: bool) -> Option<Duration> {
        if self.list.is_behind(&self.log) {
            return Some(Duration::ZERO);
        }
        let moves = match self.world.stage {
            Stage::Empty | Stage::Closed | Stage::Paused { .. } => false,
            Stage::Running | Stage::Pausing { .. } => !self.is_scrubbed(),
        };
        let step = if animation { TICK } else { SLOW_TICK };
        // The next full step of the run's own clock.
        let into = now.saturating_sub(self.zero).as_micros() % step.as_micros();
        let into = Duration::from_micros(u64::try_from(into).unwrap_or(0));
        moves.then(|| step.saturating_sub(into).max(Duration::from_millis(1)))
    }

    /// Answers a key that is bound to nothing: what is typed into a filter.
    pub fn on_key(&mut self, key: Key) -> Outcome {
        let taken = self.list.typing.as_mut().is_some_and(|typed| typed.on_key(key));
        if !taken {
            return Outcome::Ignored;
        }
        self.filter_typed();
        Outcome::redraw()
    }

    /// Answers a paste.
    pub fn on_paste(&mut self, text: &str) -> Outcome {
        match &mut self.list.typing {
            Some(typed) => {
                typed.insert(text);
                self.filter_typed();
                Outcome::redraw()
            }
            None => Outcome::Ignored,
        }
    }

    fn filter_typed(&mut self) {
        self.list.typed(&self.log);
        self.list.look(&self.log, &self.world);
    }
}

/// Whether nothing has come since.
fn is_same(had: &LiveText, text: &LiveText) -> bool {
    let of = |live: &LiveText| (live.text.len(), live.pieces, live.first_at, live.last_at);
    of(had) == of(text)
}
