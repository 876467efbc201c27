//! The commands about kept runs and their arguments: list, show, open, resume, fork, replay,
//! compare, export, import, remove.

mod export;
mod list;
mod resume;
mod show;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};

use super::args::{FlagArg, RunFormat};
use super::exit::Exit;
use super::streams::{print_message, refuse};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::time::now_ms;
use crate::base::visible::visible;
use crate::cli::headless::DetachArgs;
use crate::cli::people::PeopleArg;
use crate::engine::ModelChoice;
use crate::host::kept_runs::FindRunError;
use crate::host::{kept_runs, recorded, run_store};
use crate::log::event::{Event, EventKind, RunStarted, World};
use crate::log::world::run_row::{RunRow, RunStatus, StatusFilter};
use crate::log::world::{Projection, RunFold};
use crate::model::recorded::RecordedModel;
use crate::run::Session;
use crate::run::questions::PeopleMode;
use crate::screen::Msg;
use crate::screen::effect::RequestId;
use crate::store::database::Database;
use crate::store::database::writer::LockWaits;
use crate::store::file::LogFile;
use crate::terminal::effects::kept_runs::KeptRuns;
use crate::terminal::effects::{EffectResult, Services};

pub use self::export::{export, import};
pub use self::list::print_rows;
pub use self::list::row_values;
pub use self::list::runs;
pub use self::resume::{fork, resume};
pub use self::show::{diff, show};

/// Arguments of `roundtable runs`.
#[derive(Debug, Clone, Default, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RunsArgs {
    /// What to do with runs; without it they are listed.
    #[command(subcommand)]
    pub action: Option<RunsAction>,
    /// List the runs of a cluster; without an address that of the configuration
    #[arg(long, value_name = "URL", num_args = 0..=1, conflicts_with = "grep")]
    pub on: Option<Option<String>>,
    /// Only runs with this status: waiting, running, interrupted, ended, done, stopped, cancelled, or a
    /// stop reason
    #[arg(long)]
    pub status: Option<StatusFilter>,
    /// Only runs of this scenario
    #[arg(long, value_name = "NAME")]
    pub scenario: Option<String>,
    /// Only runs in which somebody said this: words (also their beginnings), "phrases"
    #[arg(long, value_name = "WORDS")]
    pub grep: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What is done with whole runs.
#[derive(Debug, Clone, Subcommand)]
pub enum RunsAction {
    /// Remove what the configuration does not keep, and what was removed before, for good
    Prune,
    /// Never remove these runs by themselves
    Pin {
        /// Runs: an id, the beginning of one, last, or last~2
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
        /// Take the pin away
        #[arg(long)]
        off: bool,
    },
    /// Remove runs
    Rm {
        /// Runs: an id, the beginning of one, last, or last~2
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
    },
    /// Bring back a run that was removed since the last prune
    Restore {
        /// Id of the run
        #[arg(value_name = "RUN")]
        run: String,
    },
}

/// Arguments of `roundtable open`.
#[derive(Debug, Clone, Args)]
pub struct OpenArgs {
    /// A kept run (an id, the beginning of one, last, last~2), or a file of JSON lines
    #[arg(value_name = "RUN|FILE.jsonl[.gz]")]
    pub run: String,
}

/// Arguments of `roundtable show`.
#[derive(Debug, Clone, Args)]
pub struct ShowArgs {
    /// A kept run (an id, the beginning of one, last, last~2), or a file of JSON lines
    #[arg(value_name = "RUN|FILE.jsonl[.gz]")]
    pub run: String,
    /// Output format; default: text on a terminal, json elsewhere
    #[arg(long, value_enum)]
    pub format: Option<RunFormat>,
    /// Show a run that another process plays until it has ended
    #[arg(long, short)]
    pub follow: bool,
}

/// Arguments of `roundtable resume`.
#[derive(Debug, Clone, Args)]
pub struct ResumeArgs {
    /// An interrupted run: an id, the beginning of one, last, or last~2
    #[arg(value_name = "RUN")]
    pub run: String,
    /// How to play it
    #[command(flatten)]
    pub play: PlayArgs,
}

/// Arguments of `roundtable fork`.
#[derive(Debug, Clone, Args)]
pub struct ForkArgs {
    /// A kept run (an id, the beginning of one, last, last~2) and the boundary to continue from, such
    /// as last@round:2. Without a boundary, those of the run are listed
    #[arg(value_name = "RUN[@BOUNDARY]")]
    pub run: String,
    /// Override a field of the scenario from the boundary on, such as budget.max_rounds=1 or a prompt
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Switch a flag where the fork begins, or at a later boundary: legal_analyst=on@round:3
    #[arg(long = "flag", value_name = "NAME=on|off[@BOUNDARY]", value_parser = FlagArg::parse)]
    pub flags: Vec<FlagArg>,
    /// Call live models from the boundary on, as run --live does
    #[arg(long)]
    pub live: bool,
    /// The model to call from the boundary on
    #[arg(long, value_name = "[PROVIDER/]MODEL")]
    pub model: Option<String>,
    /// Answer from the scenario's script from the boundary on
    #[arg(long, conflicts_with_all = ["live", "model"])]
    pub scripted: bool,
    /// Like --scripted, without the latency of scripted replies
    #[arg(long, conflicts_with_all = ["live", "model"])]
    pub instant: bool,
    /// How to play it
    #[command(flatten)]
    pub play: PlayArgs,
}

impl ForkArgs {
    /// Whether the fork is to differ from its parent.
    pub fn changes_something(&self) -> bool {
        let model = self.live || self.model.is_some() || self.scripted || self.instant;
        let detaches = self.play.detach.detach;
        model || detaches || !self.set.is_empty() || !self.flags.is_empty()
    }
}

/// How a recorded run is continued.
#[derive(Debug, Clone, Args)]
pub struct PlayArgs {
    /// Output format; default: text on a terminal, json elsewhere
    #[arg(long, value_enum)]
    pub format: Option<RunFormat>,
    /// Who answers the questions of the run [default: who answered them before]
    #[arg(long, value_enum, value_name = "WHO")]
    pub people: Option<PeopleArg>,
    /// Whether a background process plays the run.
    #[command(flatten)]
    pub detach: DetachArgs,
    /// Allow without asking what its scenario would do, as `run --trust` does
    #[arg(long)]
    pub trust: bool,
    /// Use the answers of people in a log that was imported; without it they are listed, and the run is
    /// not continued
    #[arg(long)]
    pub trust_answers: bool,
    /// Call the endpoint through this proxy; env: the proxy of HTTPS_PROXY and similar variables
    #[arg(long, value_name = "URL|env")]
    pub proxy: Option<String>,
}

/// Arguments of `roundtable diff`.
#[derive(Debug, Clone, Args)]
pub struct DiffArgs {
    /// A kept run, or a file of JSON lines
    #[arg(value_name = "RUN|FILE")]
    pub left: String,
    /// The run to compare it with
    #[arg(value_name = "RUN|FILE")]
    pub right: String,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: DiffFormat,
}

/// Output format of `roundtable diff`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// Both sides, to the first difference and what follows
    Text,
    /// Every difference, with both events
    Json,
}

const REDACT_HELP: &str = "\
Replace every text by its length and digest, such as ‹412 chars digest:1a2b3c4d›: goal, inputs, \
prompts, replies, arguments and results of tools, notes, addresses, errors, the scenario. Names of \
agents, tools, models and flags stay, and so do numbers, times and costs, so the log can be opened, \
shown and compared, but not resumed. Equal texts have equal digests in all logs that you redact: the \
key of the digests stays next to your store";

/// Arguments of `roundtable export`.
#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// A kept run: an id, the beginning of one, last, or last~2
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Write to this file: a page if its name ends in .html, compressed if it ends in .gz; default:
    /// standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace every text by its length and digest; names, numbers and times stay
    #[arg(long, long_help = REDACT_HELP)]
    pub redact: bool,
    /// Write one page of HTML: the run as a story, readable without a network
    #[arg(long)]
    pub html: bool,
}

impl ExportArgs {
    /// Whether a page is written: the option says so, or the ending of the file's name.
    pub fn writes_page(&self) -> bool {
        let name = self.output.as_deref().and_then(Path::file_name).unwrap_or_default();
        let name = name.to_string_lossy().to_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        self.html || name.ends_with(".html") || name.ends_with(".htm")
    }
}

/// Arguments of `roundtable import`.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// Exported logs, compressed or not
    #[arg(required = true, value_name = "FILE.jsonl[.gz]")]
    pub files: Vec<PathBuf>,
}

/// Opens the store; on an error the message has been printed.
pub fn open() -> Result<Database, Exit> {
    match run_store::open_store(LockWaits::new(print_message)) {
        Ok((database, _)) => Ok(database),
        Err(why) => Err(refuse(&why, Exit::Stopped)),
    }
}

/// Ends the use of the store: its file alone has every run then.
fn close(database: Database) {
    database.checkpoint();
}

/// The store, and its run of this name; on an error the message has been printed.
fn open_run(name: &str) -> Result<(Database, RunRow), Exit> {
    let database = open()?;
    let row = find(&database, name)?;
    Ok((database, row))
}

/// The kept run of this name; on an error the message has been printed.
pub fn find(database: &Database, name: &str) -> Result<RunRow, Exit> {
    kept_runs::find_run(database, name).map_err(|error| {
        let exit = match error {
            FindRunError::None(_) | FindRunError::Several(..) => Exit::Usage,
            FindRunError::Store(_) => Exit::Stopped,
        };
        refuse(&error.into(), exit)
    })
}

/// A run that was found, before the dashboard shows it.
pub struct OpenedRun {
    row: RunRow,
    from: RunSource,
}

enum RunSource {
    Store(Database),
    File(LogFile),
}

impl OpenedRun {
    /// Finds the run of this name; on an error the message has been printed.
    pub fn find(name: &str) -> Result<Self, Exit> {
        if !kept_runs::is_file(name) {
            let (database, row) = open_run(name)?;
            return Ok(Self { row, from: RunSource::Store(database) });
        }
        let unreadable = |why: Refused| refuse(&why, Exit::Stopped);
        let log = LogFile::open(Path::new(name))
            .or_refuse(format_args!("{name} cannot be read"))
            .map_err(unreadable)?;
        let head = log.head().or_refuse(format_args!("{name} has no head")).map_err(unreadable)?;
        let run = RunFold::course_of(log.events.iter().map(|event| &**event));
        let row = run_store::row_of_log(head, &run, log.events.len() as u64);
        let row = RunRow { imported: true, ..row };
        Ok(Self { row, from: RunSource::File(log) })
    }

    /// All of its events. Blocks; on an error the message has been printed.
    pub fn events(self) -> Result<Vec<Arc<Event>>, Exit> {
        match self.from {
            RunSource::Store(database) => recorded::events(&database, &self.row.id)
                .or_refuse(format_args!("{} cannot be read", self.row.id))
                .map_err(|why| refuse(&why, Exit::Stopped)),
            RunSource::File(log) => {
                log.notes.iter().for_each(|note| print_message(&visible(note)));
                Ok(log.events)
            }
        }
    }

    /// Shows its page and sends its events.
    pub fn show(self, services: &mut Services, request: RequestId) {
        let Self { row, from } = self;
        let (run, follows) = (row.id.clone(), row.status == RunStatus::Running);
        let (row, wall_ms) = (Box::new(row), now_ms());
        let is_file = matches!(from, RunSource::File(_));
        services.answer(EffectResult::Msg(Msg::OpenKept { row, is_file, wall_ms, request }));
        match from {
            RunSource::Store(database) => {
                // A run that is continued is taken over by the database that stores its events. Runs are
                // listed even where this command keeps none.
                if services.kept.database().is_none() {
                    services.kept = KeptRuns::new(Some(database));
                }
                services.open_kept(run, request, follows);
            }
            RunSource::File(log) => {
                for note in &log.notes {
                    services.answer(EffectResult::Msg(Msg::Notice(note.clone())));
                }
                services.send_log(run, request, log);
            }
        }
    }
}

/// The whole log of a recorded run that has ended.
pub struct TraceEvents {
    pub head: Arc<RunStarted>,
    pub events: Vec<Arc<Event>>,
}

/// Reads a kept run, or a file, that is to be checked. Blocks.
///
/// # Errors
/// It cannot be found or read, or its log does not tell everything: it has a hole, no end, or no texts.
pub fn trace_events(name: &str) -> Result<TraceEvents, Refused> {
    let events = if kept_runs::is_file(name) {
        let log =
            LogFile::open(Path::new(name)).or_refuse(format_args!("{name} cannot be read"))?;
        if let Some(note) = log.notes.into_iter().next() {
            return Err(Refused::new(format!("{name} is not a whole log")).because(note));
        }
        log.events
    } else {
        let (database, _) = run_store::open_store(LockWaits::new(print_message))?;
        let row = kept_runs::find_run(&database, name)?;
        recorded::events(&database, &row.id).or_refuse(format_args!("{} cannot be read", row.id))?
    };
    let why = match (events.first().map(|it| &it.kind), events.last().map(|it| &it.kind)) {
        (Some(EventKind::RunStarted(head)), _) if head.redacted => "its texts are redacted",
        (_, last) if !matches!(last, Some(EventKind::RunClosed(_))) => "the run has not ended",
        _ if events.iter().zip(0..).any(|(event, seq)| event.seq.0 != seq) => "events are missing",
        _ if events.iter().any(|it| matches!(it.kind, EventKind::EventsDropped { .. })) => {
            "events were dropped from it"
        }
        _ if events.iter().any(|it| matches!(it.kind, EventKind::Unknown { .. })) => {
            "a later version of roundtable wrote it"
        }
        (Some(EventKind::RunStarted(head)), _) => {
            return Ok(TraceEvents { head: Arc::clone(head), events });
        }
        _ => "it has no head",
    };
    Err(Refused::new(format!("{} cannot be checked", visible(name))).because(why))
}

/// A recorded run that answers the model calls of a new one.
pub struct ReplayedRun {
    head: Arc<RunStarted>,
    model: Arc<RecordedModel>,
    session: Option<Session>,
    people: PeopleMode,
    /// Its answers, if its log came from elsewhere.
    pub from_elsewhere: Vec<String>,
}

impl ReplayedRun {
    /// What answers the questions.
    pub fn people(&self) -> PeopleMode {
        self.people.clone()
    }

    /// What answers the model calls.
    pub fn model_choice(&self) -> ModelChoice {
        ModelChoice::Recorded(Arc::clone(&self.model), Arc::clone(&self.head))
    }

    /// The message of a session that it answered, with the history before it.
    pub fn session(&self) -> Option<Session> {
        self.session.clone()
    }
}

/// Reads the run of this name; on an error the message has been printed.
pub fn replayed(name: &str) -> Result<ReplayedRun, Exit> {
    let failed = |why: &str| refuse(&Refused::new(format!("--replay: {why}")), Exit::Stopped);
    let opened = OpenedRun::find(name)?;
    let (id, imported) = (opened.row.id.clone(), opened.row.imported);
    let events = opened.events()?;
    let from_elsewhere = recorded::RecordedRun::new(id, events.clone(), imported)
        .map_err(|why| failed(&format!("{why:#}")))?
        .answers_from_elsewhere();
    let world = World::from_events(events.iter().map(|event| &**event));
    let head = world.head.as_ref().ok_or_else(|| failed("the log has no head"))?;
    if head.redacted {
        return Err(failed("the texts of the log are redacted"));
    }
    let head = Arc::clone(head);
    let session = world.projection().and_then(Projection::session).map(Session::of_head);
    let model = Arc::new(RecordedModel::new(head.run.clone(), &events));
    let people = PeopleMode::recorded(events.iter().map(|event| &**event));
    Ok(ReplayedRun { head, model, session, people, from_elsewhere })
}
