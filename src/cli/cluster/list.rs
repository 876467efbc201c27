//! `roundtable runs --on`: the runs of a cluster.

use super::connect::{connect, trouble};
use crate::cli::args::kept::RunsArgs;
use crate::cli::exit::Exit;
use crate::cli::kept;
use crate::cli::message::print_message;
use crate::cluster::rows::RunRows;
use crate::event::run_row::RunRow;
use crate::ui::theme::Theme;

/// Lists the runs of a cluster, the newest first.
pub async fn list_runs(args: &RunsArgs, theme: Theme, ascii: bool) -> Exit {
    if args.action.is_some() {
        print_message("prune, pin, rm and restore are for runs of this machine: leave out --on");
        return Exit::Usage;
    }
    let cluster = match connect(args.on.as_ref().and_then(|on| on.as_deref())).await {
        Ok(cluster) => cluster,
        Err(exit) => return exit,
    };
    match RunRows(&cluster).all().await {
        Ok(rows) => {
            let rows: Vec<RunRow> = rows.iter().map(|row| row.to_run_row()).collect();
            kept::print_rows(&rows, args, theme, ascii)
        }
        Err(why) => trouble(&why),
    }
}
