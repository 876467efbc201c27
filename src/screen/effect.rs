//! What the dashboard asks of the shell. Data only: this module carries nothing out.

use std::sync::Arc;

use super::form::models::LiveQuery;
use crate::base::name::FlagName;
use crate::base::word_query::WordQuery;
use crate::log::event::{Answer, BoundaryId, Command, Event, EventKind, QuestionId, RunId};
use crate::scenario::catalogue::{ProviderHost, RequestedModel};
use crate::scenario::{Scenario, ScenarioOrigin};

/// A job for the shell; it answers with a [`Msg`](crate::screen::Msg) where there is news.
#[derive(Debug)]
pub enum Effect {
    /// Start a run. Answered with `Started`, `StartFailed` or `Untrusted`.
    Start(Box<LaunchRequest>),
    /// Read a run to fork it. Answered with `ForkReady` or `StartFailed`.
    ReadFork(RecordedSource),
    /// Start a run with the settings of this one. Answered like `Start`.
    Restart(RecordedSource),
    /// Compare two recorded runs. Answered with `Compared`.
    Compare {
        request: RequestId,
        /// The left and the right run.
        runs: Box<[RecordedSource; 2]>,
    },
    /// Continue a kept run that was interrupted. Answered like `Start`.
    Resume { request: RequestId, run: RunId },
    /// The operator allows what `Untrusted` listed for this scenario.
    Trust {
        /// [`Consent::digests`](crate::scenario::Consent::digests).
        digests: Vec<String>,
        /// The scenario's title, so that the list of answers can be read later.
        title: String,
    },
    /// Watch a run that a runner of the cluster plays. Answered with `Started`, then its events.
    Attach { request: RequestId, run: RunId },
    /// A command to a run; its effects arrive as events.
    Command { run: RunId, command: Command },
    /// Answer a question of a run, as the person at this program.
    Answer {
        run: RunId,
        id: QuestionId,
        /// The digest of the question as it was shown.
        digest: Arc<str>,
        answer: Answer,
        /// Whether equal calls are approved from now on.
        remember: bool,
    },
    /// Write a line to the input of the program that is watched.
    Input(String),
    /// Ask the run what the script of its scenario would answer. Answered with `Suggested`.
    Suggest { run: RunId, id: QuestionId },
    /// Edit the arguments of a call in the operator's editor. Answered with `ArgsEdited`.
    EditArgs {
        run: RunId,
        id: QuestionId,
        /// The arguments as JSON.
        text: String,
    },
    /// Copy this to the clipboard.
    Copy(String),
    /// Write these files into the working directory. Answered with one `Notice` that names all
    /// files that were written, and with an `EffectFailed` for each that was not.
    Export(Vec<Export>),
    /// Show this text in the operator's pager.
    Page(String),
    /// Reload the scenarios. Answered with `Scenarios`.
    Rescan,
    /// Write the template of a pattern to a new file. Answered with `Scenarios`, then
    /// `ScenarioWritten`.
    NewScenario { pattern: String },
    /// Open the file of a scenario in the operator's editor; of a shipped one a copy. Answered with
    /// `Scenarios` when the editor has ended.
    Edit(ScenarioOrigin),
    /// Read the list of kept runs. Answered with `Kept`, where runs are kept.
    ListKept,
    /// Read the log of a kept run. Answered with `Opened`, then `OpenedToEnd`.
    OpenKept {
        /// Repeated in the answers.
        request: RequestId,
        run: RunId,
        /// Whether events that are appended later are read too, until the run has ended.
        follows: bool,
    },
    /// Stop reading the log of a kept run: nothing shows it any more.
    StopReading(RequestId),
    /// Search the texts that were said in the kept runs. Answered with `Said`, several times if runs are
    /// not in the index yet; a later search ends this one.
    SearchSaid {
        /// Repeated in the answers.
        request: RequestId,
        query: WordQuery,
    },
    /// Pin a kept run, or take its pin away. Answered with `Kept`.
    PinKept {
        run: RunId,
        /// Whether it is pinned then.
        pinned: bool,
    },
    /// Remove a kept run. Answered with `Kept`.
    RemoveKept(RunId),
    /// Bring back a removed run. Answered with `Kept`.
    RestoreKept(RunId),
    /// Find out which models a live run would call, without calling any. Answered with `LiveFound`.
    FindLive(Box<LiveQuery>),
    /// Ask a provider for the models that it lists. Answered with `ModelsListed`.
    ListModels {
        /// The run that the list is for.
        query: Box<LiveQuery>,
        /// The provider and host to ask.
        place: ProviderHost,
    },
    /// Look for Ollama on this machine. Answered with `ModelsListed` where it runs.
    FindOllama { form: RequestId },
    /// Export a picture of the screen, as an SVG and as text. Answered like `Export`.
    Picture,
    /// Do not end the live runs of this program when it quits: they are interrupted, and can be continued.
    LeaveRuns,
    /// Suspend to the background; the commands before it have told live runs to pause.
    Suspend,
    /// Draw with the next theme. Answered with a `Notice` that names it.
    NextTheme,
    /// Redraw the whole screen.
    Redraw,
    /// Quit the program.
    Quit { code: u8 },
}

/// A file to write.
#[derive(Debug)]
pub struct Export {
    /// Its name, without a folder.
    pub file: String,
    pub contents: Contents,
}

/// Contents of an exported file.
#[derive(Debug)]
pub enum Contents {
    Text(String),
    /// Events, one line of JSON each. The shell makes the lines, since there may be many.
    Events(Vec<Arc<Event>>),
}

impl Contents {
    /// Number of events of the run that are missing: they were dropped to bound memory.
    pub fn dropped_events(&self) -> u64 {
        let Self::Events(facts) = self else { return 0 };
        // The page puts this event right after the head.
        match facts.get(1).map(|fact| &fact.kind) {
            Some(EventKind::EventsDropped { events: facts }) => *facts,
            _ => 0,
        }
    }

    /// The text of the file. Text that an event quotes is escaped, so that printing the file cannot
    /// control a terminal.
    pub fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Events(facts) => {
                let run = facts.iter().find_map(|fact| match &fact.kind {
                    EventKind::RunStarted(head) => Some(&head.run),
                    _ => None,
                });
                let mut lines = Vec::new();
                for fact in &facts {
                    if fact.append_line(run, &mut lines).is_ok() {
                        lines.push(b'\n');
                    }
                }
                String::from_utf8(lines).unwrap_or_default()
            }
        }
    }
}

/// The request for a run.
#[derive(Clone, Debug)]
pub struct LaunchRequest {
    pub id: RequestId,
    /// The scenario, with every change of the form applied.
    pub scenario: Arc<Scenario>,
    /// What answers its model calls.
    pub model: RequestedModel,
    /// Flags that start in another position than the scenario's.
    pub flags: Vec<(FlagName, bool)>,
    /// Seed of all random numbers; `None` for the scenario's.
    pub seed: Option<u64>,
    pub begins: RunBeginning,
}

/// What a requested run begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunBeginning {
    /// With nothing.
    New,
    /// With nothing. It is the run of the tour: it is not kept, and pauses before each round, so that it
    /// does not end while the tour waits.
    Tour,
    /// With the session that another run belongs to.
    FollowUp(FollowUp),
    /// With another run up to a boundary.
    Fork(ForkRequest),
    /// With its own log: it is a kept run that was interrupted.
    Resume(RunId),
}

/// The boundary where a run is forked, and the changes from there on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkRequest {
    pub run: RunId,
    pub at: BoundaryId,
    /// Overrides of the scenario, as on the command line.
    pub set: Vec<String>,
    /// The flags to switch at the boundary.
    pub flags: Vec<(FlagName, bool)>,
}

/// A recorded run to be read.
#[derive(Clone, Debug)]
pub struct RecordedSource {
    pub request: RequestId,
    pub run: RunId,
    /// Its events, if it is not kept here.
    pub events: Option<Vec<Arc<Event>>>,
    /// Whether another person may have written the events.
    pub imported: bool,
}

/// The next message of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowUp {
    /// The run that answered the previous message.
    pub run: RunId,
    pub text: Arc<str>,
}

/// The result of a message.
#[derive(Debug, Default)]
pub struct Update {
    /// Whether the screen must be redrawn.
    pub redraw: bool,
    /// Jobs for the shell, in this order.
    pub effects: Vec<Effect>,
}

impl Update {
    /// No change.
    pub fn idle() -> Self {
        Self::default()
    }
    /// A redraw, without effects.
    pub fn redraw() -> Self {
        Self { redraw: true, effects: Vec::new() }
    }
    /// A redraw and one effect.
    pub fn effect(effect: Effect) -> Self {
        Self { redraw: true, effects: vec![effect] }
    }
    /// A redraw if something has changed.
    pub(crate) fn when(changed: bool) -> Self {
        Self { redraw: changed, effects: Vec::new() }
    }
}

/// A change of a kept run that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptChange {
    Removed(RunId),
    /// It was brought back.
    Restored(RunId),
    /// It was pinned, or is no longer.
    Pinned(RunId, bool),
    /// It could not be changed; the sentence says why.
    Refused(String),
}

/// Matches answers to requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

impl RequestId {
    /// A run that nobody has requested: it is opened only where a run that has ended is on the screen.
    pub const UNASKED: Self = Self(u64::MAX - 1);
}
