//! `roundtable resume` continues an interrupted run, `roundtable fork` makes a new run that continues from
//! a boundary of a kept one. `play` plays both without the dashboard.

use std::sync::Arc;

use super::{ForkArgs, PlayArgs, ResumeArgs};
use crate::base::refused::Refused;
use crate::base::visible::visible;
use crate::cli::args::{PauseArg, RunFormat};
use crate::cli::exit::{Done, Exit};
use crate::cli::headless::{HeadlessOptions, SessionTurn};
use crate::cli::launch::{
    FOLLOWED, engine_settings, flag_errors, needed_permission, overrides, print_notes,
    save_permission,
};
use crate::cli::output::RunWriter;
use crate::cli::people::PeopleArg;
use crate::cli::streams::{StreamStyle, print_message, refuse};
use crate::cli::{headless, streams};
use crate::host::day_account::user_engine;
use crate::host::kept_runs::{PreparedResume, prepare_resume};
use crate::host::models::LiveModels;
use crate::host::recorded::{
    ForkChanges, PreparedFork, RecordedRun, RecordedRunError, fork_places, prepare_fork,
};
use crate::host::run_store::{StoreFailure, StoreKeeper, StoredRuns};
use crate::host::traced_runs::traced;
use crate::host::trust::Trust;
use crate::host::{Dirs, models};
use crate::log::event::BoundaryId;
use crate::log::event::head::ForkPlace;
use crate::log::world::run_row::RunRow;
use crate::run::questions::PeopleMode;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::{Consent, ConsentAbout, Scenario};
use crate::screen::theme::Theme;
use crate::store::database::Database;
use crate::words::format::clock;

/// Runs `roundtable resume`.
pub async fn resume(args: &ResumeArgs, theme: Theme, ascii: bool) -> Done {
    if args.play.detach.detach {
        return Ok(detach(&args.play));
    }
    let player = Player::new(&args.play)?;
    let (database, row) = super::open_run(&args.run)?;
    let with = (&player.live, &player.trust);
    let allow = |consent: &_, of: &_| player.allows(consent, of);
    Ok(match prepare_resume(&database, &row, answerers(args.play.people), with, allow) {
        Ok(PreparedResume { mut launch, resumption, notes }) => {
            let pauses = launch.schedule.breaks.clone();
            if args.play.people.is_none() && !pauses.is_empty() && launch.people.are_people() {
                // A line of standard input ends a pause.
                launch.people = PeopleMode::Wait;
            }
            let turn = SessionTurn::Resumed(Box::new(launch), resumption);
            play(database, turn, &notes, &pauses, &args.play, (theme, ascii)).await
        }
        Err(error) => print_refusal(error, row.live),
    })
}

/// Who answers, if the command line says it.
fn answerers(people: Option<PeopleArg>) -> Option<PeopleMode> {
    people.map(|people| people.choice().into())
}

/// Plays the run in a background process.
fn detach(args: &PlayArgs) -> Exit {
    match headless::not_detached(args.people, args.format.is_some()) {
        Some(why) => refuse(&why, Exit::Usage),
        None => headless::detach(),
    }
}

/// What a recorded run is prepared with.
pub(crate) struct Player {
    pub live: LiveModels,
    pub trust: Trust,
    may_allow: bool,
    may_use_answers: bool,
}

impl Player {
    /// As the arguments say; on an error the message has been printed.
    pub fn new(args: &PlayArgs) -> Result<Self, Exit> {
        let via =
            models::parse_proxy(args.proxy.as_deref()).map_err(|why| refuse(&why, Exit::Usage))?;
        let trust = Trust::saved_in(Dirs::find().map(|dirs| dirs.trusted()));
        let (may_allow, may_use_answers) = (args.trust, args.trust_answers);
        Ok(Self { live: LiveModels::new(via), trust, may_allow, may_use_answers })
    }

    /// Whether the operator allows what a scenario would do, or the answers of its log.
    pub fn allows(&self, consent: &Consent, scenario: &Scenario) -> bool {
        let may = match consent.about {
            ConsentAbout::Scenario => self.may_allow,
            ConsentAbout::Answers => self.may_use_answers,
        };
        may && save_permission(&self.trust, consent, scenario)
    }
}

/// Prints why a recorded run cannot be continued; `live`: it would call live models.
pub(super) fn print_refusal(error: RecordedRunError, live: bool) -> Exit {
    match error {
        RecordedRunError::Refused(why) => refuse(&why, Exit::Stopped),
        RecordedRunError::Permission(scenario, consent) => {
            print_notes(&needed_permission(&scenario, &consent, live));
            Exit::Usage
        }
    }
}

/// Plays the run to its end, and keeps it.
pub(crate) async fn play(
    database: Database,
    turn: SessionTurn,
    notes: &[String],
    pauses: &[BoundaryId],
    args: &PlayArgs,
    (theme, ascii): (Theme, bool),
) -> Exit {
    notes.iter().for_each(|note| print_message(&visible(note)));
    if let Err(exit) = streams::check_stdout() {
        return exit;
    }
    let usual = if streams::stdout_is_terminal() { RunFormat::Text } else { RunFormat::Json };
    let paint = StreamStyle::of_stdout(theme, ascii);
    let output = RunWriter::new(args.format.unwrap_or(usual), paint, streams::stdout_data());
    let stored = StoredRuns::new(database, StoreFailure::StopAll);
    let engine = user_engine(
        engine_settings(FOLLOWED),
        traced(Some(Arc::new(StoreKeeper(Arc::clone(&stored))))),
    );
    let pauses: Vec<PauseArg> =
        pauses.iter().map(|at| PauseArg { at: at.clone(), length: None }).collect();
    let people = args.people;
    if people == Some(PeopleArg::Ask)
        && let Some(at) = pauses.first()
    {
        let at = visible(&at.at.display_name()).into_owned();
        let why = Refused::new(format!(
            "--people ask: the run pauses before {at}, and standard input answers the questions, so it cannot end a pause"
        ));
        return refuse(
            &why.help("use --people wait, script or nobody, or continue it in the dashboard"),
            Exit::Usage,
        );
    }
    let is_detached = args.detach.detached;
    let is_resumed = matches!(turn, SessionTurn::Resumed(..));
    let drive = HeadlessOptions { pauses: &pauses, fail_on: &[], people, is_detached, is_resumed };
    let exit = headless::run(&engine, vec![turn], drive, output).await;
    stored.finish().await;
    stored.database().checkpoint();
    for note in stored.take_notes() {
        print_message(&visible(&note));
    }
    // It may have ended before the store failed.
    if exit == Exit::Ok && stored.has_lost() { Exit::Stopped } else { exit }
}

/// Runs `roundtable fork`.
pub async fn fork(args: &ForkArgs, theme: Theme, ascii: bool) -> Done {
    let (name, at) = match args.run.split_once('@') {
        Some((name, at)) => (name, Some(BoundaryId::new(at))),
        None => (args.run.as_str(), None),
    };
    let (database, row) = super::open_run(name)?;
    let recorded = RecordedRun::read(&database, &row).map_err(|why| refuse(&why, Exit::Stopped))?;
    match at {
        Some(_) if args.play.detach.detach => Ok(detach(&args.play)),
        Some(at) => start(args, database, &row, recorded, at, (theme, ascii)).await,
        None if args.changes_something() => {
            let why = Refused::new("a change needs the boundary from which it holds");
            let help = format!(
                "`roundtable fork {name}` lists them, then `roundtable fork {name}@BOUNDARY …`"
            );
            Err(refuse(&why.help(help), Exit::Usage))
        }
        None => list(&recorded).await,
    }
}

/// Lists the boundaries of a run.
async fn list(recorded: &RecordedRun) -> Done {
    let passed = fork_places(recorded).await.map_err(|why| refuse(&why, Exit::Stopped))?;
    let line = |it: &ForkPlace| {
        format!("{:>8}  {:>7}  {}\n", clock(it.at), it.next.0, visible(it.id.as_str()))
    };
    let lines: String = passed.iter().map(line).collect();
    Ok(streams::print(&format!("{:>8}  {:>7}  boundary\n{lines}", "time", "event"), Exit::Ok))
}

async fn start(
    args: &ForkArgs,
    database: Database,
    row: &RunRow,
    recorded: RecordedRun,
    at: BoundaryId,
    style: (Theme, bool),
) -> Done {
    if overrides(&args.set).is_none() {
        return Err(Exit::Usage);
    }
    let player = Player::new(&args.play)?;
    let wrong = match recorded.scenario(&args.set) {
        Ok(scenario) => flag_errors(&scenario, &args.flags),
        Err(why) if !args.set.is_empty() => vec![why],
        Err(_) => Vec::new(),
    };
    for why in &wrong {
        refuse(why, Exit::Usage);
    }
    if !wrong.is_empty() {
        return Err(Exit::Usage);
    }
    let changes = changes(args);
    let with = (&player.live, &player.trust);
    let allow = |consent: &_, of: &_| player.allows(consent, of);
    let live = changes.model.as_ref().map_or(row.live, |it| matches!(it, RequestedModel::Live(_)));
    let people = answerers(args.play.detach.people(args.play.people));
    Ok(match prepare_fork(&recorded, at, &changes, people, with, allow) {
        Ok(PreparedFork { launch, fork, notes }) => {
            let turn = SessionTurn::Forked(Box::new(launch), Box::new(fork));
            play(database, turn, &notes, &[], &args.play, style).await
        }
        Err(error) => print_refusal(error, live),
    })
}

/// What the arguments change.
fn changes(args: &ForkArgs) -> ForkChanges {
    let (mut flags, mut later) = (Vec::new(), Vec::new());
    for flag in &args.flags {
        match &flag.at {
            Some(at) => later.push((at.clone(), flag.name.clone(), flag.on)),
            None => flags.push((flag.name.clone(), flag.on)),
        }
    }
    let model = match &args.model {
        Some(model) => Some(RequestedModel::Live(Some(model.as_str().into()))),
        None if args.live => Some(RequestedModel::Live(None)),
        None if args.scripted || args.instant => {
            Some(RequestedModel::Scripted { instant: args.instant })
        }
        None => None,
    };
    ForkChanges { set: args.set.clone(), flags, later, model }
}
