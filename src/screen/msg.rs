//! Messages to the dashboard: every change of its state arrives as one of these.

use std::sync::Arc;
use std::time::Duration;

use super::by_word::ByWord;
use super::effect::{KeptChange, LaunchRequest, RequestId};
use super::form::fork::ForkOffer;
use super::form::models::{LiveQueryResult, OfferedModels};
use super::key::KeyPress;
use super::run::origin::RemoteRun;
use crate::log::event::{Answer, Elapsed, Event, QuestionId, RunId, Seq, SpanId};
use crate::log::world::run_row::RunRow;
use crate::scenario::Consent;
use crate::scenario::catalogue::{ProviderHost, ScenarioEntry};
use crate::words::comparison::runs::ComparedRuns;

/// A message to the dashboard. `request` is the number of the effect that it answers.
#[derive(Debug)]
pub enum Msg {
    Key(KeyPress),
    /// What a typed word asks for, where there is no screen for keys.
    Word(Box<ByWord>),
    /// Text was pasted; this is all of it.
    Paste(String),
    Mouse(Mouse),
    /// The terminal was resized.
    Resize {
        cols: u16,
        rows: u16,
    },
    /// The time that [`AppState::next_tick`](crate::screen::AppState::next_tick) returned is over.
    Tick,
    /// New events of a run, in the log's order, with no gap.
    Events {
        run: RunId,
        events: Vec<Arc<Event>>,
    },
    /// A run's log has dropped the events before `before`, to bound memory.
    EventsDropped {
        run: RunId,
        /// The first event that the log still holds.
        before: Seq,
    },
    /// New events about all runs of the program.
    Session(Vec<Arc<Event>>),
    /// The text that a span has produced so far.
    Live {
        run: RunId,
        span: SpanId,
        /// The text; `None` once the span has no live text any more.
        text: Option<PartialText>,
    },
    /// A requested run has started.
    Started {
        request: RequestId,
        run: RunId,
        /// The run's own time zero, as time since the start of the program.
        zero: Duration,
        /// The request; the session's next message starts from it.
        launch: Option<Box<LaunchRequest>>,
    },
    /// A run that is played elsewhere is followed: one of another process of this user, or one of the cluster
    /// that waits for people.
    Followed {
        run: RunId,
        /// As that of `Started`.
        zero: Duration,
        /// As that of `Started`.
        launch: Option<Box<LaunchRequest>>,
    },
    /// Such a run is not followed any more: it has ended, or its process has. The list of kept runs was read
    /// since.
    FollowEnded {
        run: RunId,
        /// Whether the end of its log was received: the page has it, or gets it soon.
        has_ended: bool,
    },
    /// News of who plays a run.
    Remote {
        run: RunId,
        /// The runner or process, and how far its log is behind.
        remote: Box<RemoteRun>,
    },
    /// The clock of a watched run is another one from now on: the run's own time zero, as time since the
    /// start of the program.
    Clock(RunId, Duration),
    /// A requested run could not be started.
    StartFailed {
        request: RequestId,
        /// Why, and what to do.
        text: String,
    },
    /// A run that is to be forked was read.
    ForkReady {
        request: RequestId,
        /// What the form starts from.
        fork: Box<ForkOffer>,
    },
    /// Two runs were compared.
    Compared {
        request: RequestId,
        /// What differs, or why they cannot be compared.
        result: Result<Box<ComparedRuns>, String>,
    },
    /// A requested run would do something that the operator must allow first: its scenario was not
    /// shipped and reaches an endpoint. Ask with a question that lists each line of the consent;
    /// after a yes, send [`Effect::Trust`](crate::screen::Effect::Trust) and the same start again.
    Untrusted {
        request: Box<LaunchRequest>,
        /// What the operator has to allow.
        consent: Consent,
    },
    /// All scenarios, freshly read.
    Scenarios(Vec<ScenarioEntry>),
    /// A new scenario was written to this path; the list has it.
    ScenarioWritten(String),
    /// The answer to a live query of the launch form: which hosts and models the run would call.
    LiveFound {
        form: RequestId,
        /// The model that the query named.
        model: Option<Arc<str>>,
        found: Box<LiveQueryResult>,
    },
    /// The list of models of one provider.
    ModelsListed {
        form: RequestId,
        place: ProviderHost,
        list: OfferedModels,
    },
    /// The kept runs, freshly read.
    Kept {
        /// Their rows, the newest first.
        rows: Vec<RunRow>,
        wall_ms: u64,
        /// The change that led to these rows.
        change: Option<KeptChange>,
    },
    /// The runs that a search for words found.
    Said {
        request: RequestId,
        /// The runs, or why the search is not possible.
        found: Result<Vec<RunId>, String>,
        /// How many runs are not searched yet; another answer follows unless it is 0.
        left: u64,
    },
    /// Show a run that the command line names; its events follow.
    OpenKept {
        row: Box<RunRow>,
        /// Whether it is in an exported log, and not in the store.
        is_file: bool,
        wall_ms: u64,
        request: RequestId,
    },
    /// Events of the log of a kept run, in their order.
    Opened {
        run: RunId,
        request: RequestId,
        events: Vec<Arc<Event>>,
    },
    /// The log of a kept run has been read to its end, or cannot be read further.
    OpenedToEnd {
        run: RunId,
        request: RequestId,
        /// Why it cannot be read.
        problem: Option<String>,
    },
    /// What the script of a run's scenario would answer to an open question.
    Suggested {
        run: RunId,
        id: QuestionId,
        /// The answer; `None`: no row of the script fits.
        answer: Option<Answer>,
    },
    /// The operator has edited the arguments of a call.
    ArgsEdited {
        run: RunId,
        id: QuestionId,
        /// The text of the file, or why it cannot be read.
        text: Result<String, String>,
    },
    /// Good news for the operator, such as the name of an exported file.
    Notice(String),
    /// An effect failed in the shell.
    EffectFailed {
        /// Name of the effect, such as `copy`.
        what: &'static str,
        /// Why, and what to do.
        text: String,
    },
    /// The program is back in the foreground.
    Continued,
    /// The process received SIGTERM or SIGHUP: quit without a question.
    Terminate {
        code: u8,
    },
}

/// The text of a span while it streams in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartialText {
    pub text: String,
    pub pieces: u64,
    /// When the first piece arrived.
    pub first_at: Option<Elapsed>,
    /// When the last piece arrived.
    pub last_at: Option<Elapsed>,
}

/// A mouse event and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mouse {
    /// What happened.
    pub kind: MouseKind,
    /// Column, from 0.
    pub col: u16,
    /// Row, from 0.
    pub row: u16,
}

/// What the mouse did. Only the left button and the wheel have a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseKind {
    /// The left button was pressed.
    Down,
    /// The mouse moved while the button was down.
    Drag,
    /// The button was released.
    Up,
    /// The wheel turned up.
    WheelUp,
    /// The wheel turned down.
    WheelDown,
}
