//! What reaches the dashboard: everything that changes its state comes in as one of these.

use std::sync::Arc;
use std::time::Duration;

use super::consent::Consent;
use super::effect::{LaunchRequest, RequestId};
use super::entry::Entry;
use super::key::Key;
use super::live::{FoundLive, ModelPlace, NameList};
use crate::event::{Elapsed, Event, RunId, Seq, SpanId};

/// A message to the dashboard.
#[derive(Debug)]
pub enum Msg {
    /// A key was pressed.
    Key(Key),
    /// Text was pasted, whole.
    Paste(String),
    /// The mouse did something.
    Mouse(Mouse),
    /// The terminal has this size now.
    Resize {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
    /// Time has passed: the timer that [`State::next_tick`](super::State::next_tick) asked for.
    Tick,
    /// New facts of a run, in the log's order, none left out.
    Facts {
        /// Whose.
        run: RunId,
        /// The facts.
        events: Vec<Arc<Event>>,
    },
    /// A run's log has let go of the facts before this one, to bound memory.
    LetGo {
        /// Whose.
        run: RunId,
        /// The first fact that it still holds.
        before: Seq,
    },
    /// New facts of the session.
    Session(Vec<Arc<Event>>),
    /// Text that a span has given so far.
    Live {
        /// Whose.
        run: RunId,
        /// The span.
        span: SpanId,
        /// The text; `None` once the span has no live text any more.
        text: Option<LiveText>,
    },
    /// A run that was asked for has started.
    Started {
        /// Which request it answers.
        request: RequestId,
        /// The run.
        run: RunId,
        /// When the run's own time was zero, since the start of the program.
        zero: Duration,
        /// What was asked for: what a next message of its session goes on with.
        launch: Option<Box<LaunchRequest>>,
    },
    /// A run that was asked for could not be started.
    StartFailed {
        /// Which request it answers.
        request: RequestId,
        /// Why and what to do.
        text: String,
    },
    /// A run that was asked for would do something that a person must allow first: a scenario that
    /// was not shipped reaches an endpoint. Ask (a question that names each line); on yes answer
    /// with [`Effect::Trust`](super::Effect::Trust) and the same start again.
    Untrusted {
        /// What was asked for.
        request: Box<LaunchRequest>,
        /// What is to be allowed.
        consent: Consent,
    },
    /// The scenarios that there are, read anew.
    Scenarios(Vec<Entry>),
    /// Whom a live run of the launch form would ask.
    LiveFound {
        /// Which form asked.
        form: RequestId,
        /// With which model.
        model: Option<Arc<str>>,
        /// What was found.
        found: Box<FoundLive>,
    },
    /// What a place says of its models.
    ModelsListed {
        /// Which form asked.
        form: RequestId,
        /// Which place.
        place: ModelPlace,
        /// Its models.
        list: NameList,
    },
    /// Something went well that a person wants to know, such as where a file was written.
    Notice(String),
    /// Something that was asked of the shell failed.
    EffectFailed {
        /// What was asked, such as `copy`.
        what: &'static str,
        /// Why and what to do.
        text: String,
    },
    /// The program is back in the foreground.
    Continued,
    /// The process was asked to end (SIGTERM, SIGHUP): leave without asking.
    Terminate {
        /// The exit code.
        code: u8,
    },
}

/// The text of a span while it comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveText {
    /// What has come so far.
    pub text: String,
    /// In how many pieces.
    pub pieces: u64,
    /// When the first piece came.
    pub first_at: Option<Elapsed>,
    /// When the last piece came.
    pub last_at: Option<Elapsed>,
}

/// What the mouse did, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mouse {
    /// What.
    pub what: MouseKind,
    /// Column, from 0.
    pub col: u16,
    /// Row, from 0.
    pub row: u16,
}

/// What the mouse did. Only the left button and the wheel mean something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseKind {
    /// The left button went down.
    Down,
    /// It moved while down.
    Drag,
    /// It went up.
    Up,
    /// The wheel turned up.
    WheelUp,
    /// The wheel turned down.
    WheelDown,
}
