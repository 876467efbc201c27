//! `roundtable resume`: continues a kept run whose process ended before it did.

use super::play::{Player, play, print_refusal};
use crate::cli::args::kept::ResumeArgs;
use crate::cli::exit::Exit;
use crate::cli::headless::SessionTurn;
use crate::host::resume::{PreparedResume, prepare_resume};
use crate::scenario::spec::in_doubt::InDoubt;
use crate::ui::theme::Theme;

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
