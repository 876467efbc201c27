//! What the dashboard asks of the shell. Data only: nothing here is carried out by this room.

use std::sync::Arc;

use super::live::{LiveQuery, ModelPlace};
use crate::event::{Command, Event, EventKind, RunId, safe_json};
use crate::scenario::Scenario;
use crate::scenario::name::FlagName;

/// Something for the shell to do; it answers with a [`Msg`](super::Msg) where there is news.
#[derive(Debug)]
pub enum Effect {
    /// Start a run. Answered with `Started`, `StartFailed` or `Untrusted`.
    Start(Box<LaunchRequest>),
    /// A person allows what `Untrusted` said of this scenario.
    Trust {
        /// [`Consent::digest`](super::consent::Consent::digest).
        digest: String,
        /// Its title, for whoever reads the list later.
        title: String,
    },
    /// A command to a run; what comes of it are facts.
    Command {
        /// To which run.
        run: RunId,
        /// What.
        command: Command,
    },
    /// Put this on the clipboard.
    Copy(String),
    /// Write these files into the working directory. Answered with one `Notice` of all that were
    /// written, and with an `EffectFailed` for each that was not.
    Export(Vec<Export>),
    /// Show this in the person's pager.
    Page(String),
    /// Read the scenarios again. Answered with `Scenarios`.
    Rescan,
    /// Find out whom a live run would ask; nobody is asked for it. Answered with `LiveFound`.
    FindLive(Box<LiveQuery>),
    /// Ask a place of the run's models for those that it lists. Answered with `ModelsListed`.
    ListModels {
        /// The run.
        query: Box<LiveQuery>,
        /// Where.
        place: ModelPlace,
    },
    /// Look for Ollama on this machine. Answered with `ModelsListed` where it is there.
    FindOllama {
        /// Which form asks.
        form: RequestId,
    },
    /// Go to the background; live runs have been told to pause by the commands before it.
    Suspend,
    /// Paint everything again.
    Redraw,
    /// Leave the program.
    Quit {
        /// The exit code.
        code: u8,
    },
}

/// A file to write.
#[derive(Debug)]
pub struct Export {
    /// Its name, without a folder.
    pub file: String,
    /// What it holds.
    pub contents: Contents,
}

/// What an exported file holds.
#[derive(Debug)]
pub enum Contents {
    /// A text.
    Text(String),
    /// Facts, one line of JSON each; whoever writes them makes the lines, since there may be many.
    Facts(Vec<Arc<Event>>),
}

impl Contents {
    /// How many facts of the run it lacks: they were dropped to bound memory before it was made.
    pub fn lacks(&self) -> u64 {
        let Self::Facts(facts) = self else { return 0 };
        // Right after the head, as the page puts it.
        match facts.get(1).map(|fact| &fact.kind) {
            Some(EventKind::FactsDropped { facts }) => *facts,
            _ => 0,
        }
    }

    /// The text of the file. What a fact quotes of others is escaped, so that nobody's terminal is
    /// steered by looking at it.
    pub fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Facts(facts) => {
                let run = facts.iter().find_map(|fact| match &fact.kind {
                    EventKind::RunStarted(head) => Some(&head.run),
                    _ => None,
                });
                facts
                    .iter()
                    .filter_map(|fact| {
                        run.map_or_else(|| fact.to_line(), |run| fact.to_line_of(run)).ok()
                    })
                    .fold(String::new(), |text, line| {
                        text + &safe_json::escape(&line, false) + "\n"
                    })
            }
        }
    }
}

/// Tells the answers to requests apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A run that is asked for.
#[derive(Clone, Debug)]
pub struct LaunchRequest {
    /// Comes back with the answer.
    pub id: RequestId,
    /// The scenario, with every change of the form laid over it.
    pub scenario: Arc<Scenario>,
    /// Who answers its model calls.
    pub model: ModelWanted,
    /// Positions of flags at the start that differ from the scenario's.
    pub flags: Vec<(FlagName, bool)>,
    /// Start of every random number, where it is not the scenario's.
    pub seed: Option<u64>,
    /// The run whose session it goes on with, where it begins none.
    pub follows: Option<Follows>,
}

/// The next message of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follows {
    /// The run that answered the message before.
    pub run: RunId,
    /// The message.
    pub text: Arc<str>,
}

/// Who answers the model calls of a run that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelWanted {
    /// The scenario's script.
    Scripted {
        /// Without the script's latency.
        instant: bool,
    },
    /// Live models, as the shell finds them (see [`LiveOffer`](super::live::LiveOffer)): this one
    /// where it is named, in place of those that the scenario names.
    Live(Option<Arc<str>>),
}
