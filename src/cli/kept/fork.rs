//! `roundtable fork`: a new run that continues from a boundary of a kept one.

use super::ForkArgs;
use super::resume::{Player, play, print_refusal};
use crate::base::refused::Refused;
use crate::base::visible::visible;
use crate::cli::exit::Exit;
use crate::cli::headless::SessionTurn;
use crate::cli::launch::{flag_errors, overrides};
use crate::cli::streams;
use crate::cli::streams::refuse;
use crate::host::recorded::{ForkChanges, PreparedFork, RecordedRun, fork_places, prepare_fork};
use crate::log::event::BoundaryId;
use crate::log::event::head::ForkPlace;
use crate::log::world::run_row::RunRow;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::spec::InDoubt;
use crate::screen::theme::Theme;
use crate::store::database::Database;
use crate::words::format::clock;

/// Runs `roundtable fork`.
pub async fn fork(args: &ForkArgs, theme: Theme, ascii: bool) -> Exit {
    let (name, at) = match args.run.split_once('@') {
        Some((name, at)) => (name, Some(BoundaryId::new(at))),
        None => (args.run.as_str(), None),
    };
    let (database, row) = match super::open_run(name) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let recorded = match RecordedRun::read(&database, &row) {
        Ok(recorded) => recorded,
        Err(why) => return refuse(&why, Exit::Stopped),
    };
    match at {
        Some(at) => start(args, database, &row, recorded, at, (theme, ascii)).await,
        None if args.changes_something() => {
            let why = Refused::new("a change needs the boundary from which it holds");
            let help = format!(
                "`roundtable fork {name}` lists them, then `roundtable fork {name}@BOUNDARY …`"
            );
            refuse(&why.help(help), Exit::Usage)
        }
        None => list(&recorded).await,
    }
}

/// Lists the boundaries of a run.
async fn list(recorded: &RecordedRun) -> Exit {
    let passed = match fork_places(recorded).await {
        Ok(passed) => passed,
        Err(why) => return refuse(&why, Exit::Stopped),
    };
    let line = |it: &ForkPlace| {
        format!("{:>8}  {:>7}  {}\n", clock(it.at), it.next.0, visible(it.id.as_str()))
    };
    let lines: String = passed.iter().map(line).collect();
    streams::print(&format!("{:>8}  {:>7}  boundary\n{lines}", "time", "event"), Exit::Ok)
}

async fn start(
    args: &ForkArgs,
    database: Database,
    row: &RunRow,
    recorded: RecordedRun,
    at: BoundaryId,
    style: (Theme, bool),
) -> Exit {
    if overrides(&args.set).is_none() {
        return Exit::Usage;
    }
    let player = match Player::new(&args.play) {
        Ok(player) => player,
        Err(exit) => return exit,
    };
    let wrong = match recorded.scenario(&args.set) {
        Ok(scenario) => flag_errors(&scenario, &args.flags),
        Err(why) if !args.set.is_empty() => vec![why],
        Err(_) => Vec::new(),
    };
    for why in &wrong {
        refuse(why, Exit::Usage);
    }
    if !wrong.is_empty() {
        return Exit::Usage;
    }
    let changes = changes(args);
    let with = (&player.live, &player.trust);
    let allow = |consent: &_, of: &_| player.allows(consent, of);
    let live = changes.model.as_ref().map_or(row.live, |it| matches!(it, RequestedModel::Live(_)));
    match prepare_fork(&recorded, at, &changes, InDoubt::Stop, with, allow) {
        Ok(PreparedFork { launch, fork, notes }) => {
            let turn = SessionTurn::Forked(Box::new(launch), Box::new(fork));
            play(database, turn, &notes, &[], &args.play, style).await
        }
        Err(error) => print_refusal(error, live),
    }
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
