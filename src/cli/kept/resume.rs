//! `roundtable resume`: continues an interrupted run. `play` plays a run that continues a recorded
//! one, without the dashboard; `fork` uses it too.

use std::sync::Arc;

use super::{PlayArgs, ResumeArgs};
use crate::base::visible::visible;
use crate::cli::args::{PauseArg, RunFormat};
use crate::cli::exit::Exit;
use crate::cli::headless::{HeadlessOptions, SessionTurn};
use crate::cli::launch::{engine_settings, needed_permission, print_notes, save_permission};
use crate::cli::output::RunWriter;
use crate::cli::people::PeopleArg;
use crate::cli::streams::{StreamStyle, print_message, refuse};
use crate::cli::{headless, streams};
use crate::engine::Engine;
use crate::host::kept_runs::{PreparedResume, prepare_resume};
use crate::host::models::LiveModels;
use crate::host::recorded::RecordedRunError;
use crate::host::run_store::{StoreFailure, StoreKeeper, StoredRuns};
use crate::host::trust::Trust;
use crate::host::{Dirs, models};
use crate::log::event::BoundaryId;
use crate::scenario::spec::InDoubt;
use crate::scenario::{Consent, Scenario};
use crate::screen::theme::Theme;
use crate::store::database::Database;

/// Runs `roundtable resume`.
pub async fn resume(args: &ResumeArgs, theme: Theme, ascii: bool) -> Exit {
    let player = match Player::new(&args.play) {
        Ok(player) => player,
        Err(exit) => return exit,
    };
    let (database, row) = match super::open_run(&args.run) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    // Without a dashboard there is no one to ask about a call in doubt.
    let with = (&player.live, &player.trust);
    let allow = |consent: &_, of: &_| player.allows(consent, of);
    match prepare_resume(&database, &row, InDoubt::Stop, with, allow) {
        Ok(PreparedResume { launch, resumption, notes }) => {
            let pauses = launch.schedule.breaks.clone();
            let turn = SessionTurn::Resumed(Box::new(launch), resumption);
            play(database, turn, &notes, &pauses, &args.play, (theme, ascii)).await
        }
        Err(error) => print_refusal(error, row.live),
    }
}

/// What a recorded run is prepared with.
pub(crate) struct Player {
    pub live: LiveModels,
    pub trust: Trust,
    may_allow: bool,
}

impl Player {
    /// As the arguments say; on an error the message has been printed.
    pub fn new(args: &PlayArgs) -> Result<Self, Exit> {
        let via =
            models::parse_proxy(args.proxy.as_deref()).map_err(|why| refuse(&why, Exit::Usage))?;
        let trust = Trust::saved_in(Dirs::find().map(|dirs| dirs.trusted()));
        Ok(Self { live: LiveModels::new(via), trust, may_allow: args.trust })
    }

    /// Whether the operator allows what a scenario would do.
    pub fn allows(&self, consent: &Consent, scenario: &Scenario) -> bool {
        self.may_allow && save_permission(&self.trust, consent, scenario)
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
    mut turn: SessionTurn,
    notes: &[String],
    pauses: &[BoundaryId],
    args: &PlayArgs,
    (theme, ascii): (Theme, bool),
) -> Exit {
    notes.iter().for_each(|note| print_message(&visible(note)));
    if args.people.is_some() {
        turn.launch().people = PeopleArg::mode(args.people, false);
    }
    if let Err(exit) = streams::check_stdout() {
        return exit;
    }
    let usual = if streams::stdout_is_terminal() { RunFormat::Text } else { RunFormat::Json };
    let paint = StreamStyle::of_stdout(theme, ascii);
    let output = RunWriter::new(args.format.unwrap_or(usual), paint, streams::stdout_data());
    let stored = StoredRuns::new(database, StoreFailure::StopAll);
    let engine =
        Engine::with_keeper(engine_settings(), Some(Arc::new(StoreKeeper(Arc::clone(&stored)))));
    let pauses: Vec<PauseArg> =
        pauses.iter().map(|at| PauseArg { at: at.clone(), length: None }).collect();
    let asks = args.people == Some(PeopleArg::Ask);
    let drive = HeadlessOptions { pauses: &pauses, fail_on: &[], asks };
    let exit = headless::run(&engine, vec![turn], drive, output).await;
    stored.finish().await;
    stored.database().checkpoint();
    for note in stored.take_notes() {
        print_message(&visible(&note));
    }
    // It may have ended before the store failed.
    if exit == Exit::Ok && stored.has_lost() { Exit::Stopped } else { exit }
}
