//! Plays a run that continues a recorded one, without the dashboard.

use std::sync::Arc;

use crate::base::visible::visible;
use crate::cli::args::kept::PlayArgs;
use crate::cli::args::{PauseArg, RunFormat};
use crate::cli::exit::Exit;
use crate::cli::headless::{self, HeadlessOptions, SessionTurn};
use crate::cli::message::print_message;
use crate::cli::output::RunWriter;
use crate::cli::run::{engine_settings, needed_permission, print_notes, save_permission};
use crate::cli::stdout;
use crate::cli::stream_style::StreamStyle;
use crate::engine::Engine;
use crate::event::BoundaryId;
use crate::host::dirs::Dirs;
use crate::host::keep::{StoreFailure, StoreKeeper, StoredRuns};
use crate::host::models::{self, LiveModels};
use crate::host::recorded::RecordedRunError;
use crate::host::trust::Trust;
use crate::scenario::Scenario;
use crate::scenario::consent::Consent;
use crate::store::database::Database;
use crate::ui::theme::Theme;

/// What a recorded run is prepared with.
pub(super) struct Player {
    pub live: LiveModels,
    pub trust: Trust,
    may_allow: bool,
}

impl Player {
    /// As the arguments say; on an error the message has been printed.
    pub fn new(args: &PlayArgs) -> Result<Self, Exit> {
        let via = models::parse_proxy(args.proxy.as_deref()).map_err(|why| {
            print_message(&format!("--proxy: {why}"));
            Exit::Usage
        })?;
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
        RecordedRunError::Refused(why) => {
            print_message(&visible(&why));
            Exit::Stopped
        }
        RecordedRunError::Permission(scenario, consent) => {
            print_notes(&needed_permission(&scenario, &consent, live));
            Exit::Usage
        }
    }
}

/// Plays the run to its end, and keeps it.
pub(super) async fn play(
    database: Database,
    turn: SessionTurn,
    notes: &[String],
    pauses: &[BoundaryId],
    args: &PlayArgs,
    (theme, ascii): (Theme, bool),
) -> Exit {
    notes.iter().for_each(|note| print_message(&visible(note)));
    if let Err(exit) = stdout::check_open() {
        return exit;
    }
    let usual = if stdout::is_terminal() { RunFormat::Text } else { RunFormat::Json };
    let paint = StreamStyle::of_stdout(theme, ascii);
    let output = RunWriter::new(args.format.unwrap_or(usual), paint, stdout::data());
    let stored = StoredRuns::new(database, StoreFailure::StopAll);
    let engine =
        Engine::with_keeper(engine_settings(), Some(Arc::new(StoreKeeper(Arc::clone(&stored)))));
    let pauses: Vec<PauseArg> =
        pauses.iter().map(|at| PauseArg { at: at.clone(), length: None }).collect();
    let drive = HeadlessOptions { pauses: &pauses, fail_on: &[] };
    let exit = headless::run(&engine, vec![turn], drive, output).await;
    stored.finish().await;
    stored.database().checkpoint();
    for note in stored.take_notes() {
        print_message(&visible(&note));
    }
    // It may have ended before the store failed.
    if exit == Exit::Ok && stored.has_lost() { Exit::Stopped } else { exit }
}
