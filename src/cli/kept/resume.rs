//! `roundtable resume`: continues a kept run whose process ended before it did.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use crate::base::visible::visible;
use crate::bus::LogLimits;
use crate::cli::args::kept::ResumeArgs;
use crate::cli::args::{PauseArg, RunFormat};
use crate::cli::exit::Exit;
use crate::cli::headless::{self, HeadlessOptions, SessionTurn};
use crate::cli::message::print_message;
use crate::cli::output::RunWriter;
use crate::cli::run::{MAX_AHEAD, print_needed_permission, save_permission};
use crate::cli::stream_style::StreamStyle;
use crate::engine::{Engine, EngineSettings};
use crate::host::dirs::Dirs;
use crate::host::keep::{StoreKeeper, StoredRuns};
use crate::host::models::{self, LiveModels};
use crate::host::resume::{PreparedResume, ResumeFailure, prepare_resume};
use crate::host::trust::Trust;
use crate::ui::theme::Theme;

/// Runs `roundtable resume`.
pub async fn resume(args: &ResumeArgs, theme: Theme, ascii: bool) -> Exit {
    let via = match models::parse_proxy(args.proxy.as_deref()) {
        Ok(via) => via,
        Err(why) => {
            print_message(&format!("--proxy: {why}"));
            return Exit::Usage;
        }
    };
    let (database, row) = match super::open_run(&args.run) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let trust = Trust::saved_in(Dirs::find().map(|dirs| dirs.trusted()));
    let prepared = prepare_resume(&database, &row, &LiveModels::new(via), &trust, |consent, of| {
        args.trust && save_permission(&trust, consent, of)
    });
    let PreparedResume { launch, resumption, notes } = match prepared {
        Ok(prepared) => prepared,
        Err(ResumeFailure::Refused(why)) => {
            print_message(&visible(&why));
            return Exit::Stopped;
        }
        Err(ResumeFailure::Permission(scenario, consent)) => {
            print_needed_permission(&scenario, &consent, row.live);
            return Exit::Usage;
        }
    };
    notes.iter().for_each(|note| print_message(&visible(note)));
    let out = io::stdout();
    let usual = if out.is_terminal() { RunFormat::Text } else { RunFormat::Json };
    let output =
        RunWriter::new(args.format.unwrap_or(usual), StreamStyle::on(&out, theme, ascii), out);
    let stored = StoredRuns::new(database, false);
    let log = LogLimits { window: 0, ahead: MAX_AHEAD };
    let settings = EngineSettings { log, ..EngineSettings::default() };
    let engine = Engine::with_keeper(settings, Some(Arc::new(StoreKeeper(Arc::clone(&stored)))));
    let pauses: Vec<PauseArg> =
        launch.schedule.breaks.iter().map(|at| PauseArg { at: at.clone(), length: None }).collect();
    let drive = HeadlessOptions { pauses: &pauses, fail_on: &[] };
    let turn = SessionTurn::Resumed(Box::new(launch), resumption);
    let exit = headless::run(&engine, vec![turn], drive, output).await;
    stored.finish().await;
    for note in stored.take_notes() {
        print_message(&visible(&note));
    }
    exit
}
