//! `roundtable run --on`: hands a run over to the runners of a cluster.

use std::io::{self, IsTerminal};

use super::batch::run_batch;
use super::connect::{connect, trouble};
use super::follow::{FollowEnd, follow};
use super::request::{hand_over, request_of};
use crate::cli::args::{Global, RunArgs, RunFormat};
use crate::cli::exit::Exit;
use crate::cli::headless::HeadlessOptions;
use crate::cli::message::print_message;
use crate::cli::output::RunWriter;
use crate::cli::run::{needed_permission, print_notes, read, save_permission};
use crate::cli::stdout;
use crate::cli::stream_style::StreamStyle;
use crate::host::dirs::Dirs;
use crate::host::trust::Trust;
use crate::ui::theme::Theme;

/// Runs `roundtable run --on`.
pub async fn run_remote(args: &RunArgs, global: &Global, theme: Theme) -> Exit {
    let Some(scenario) = read(args) else { return Exit::Usage };
    if let Some(why) = unsupported(args) {
        print_message(why);
        return Exit::Usage;
    }
    // The operator is asked here: a runner has no operator to ask.
    let trust = Trust::saved_in(Dirs::find().map(|dirs| dirs.trusted()));
    if let Some(consent) = trust.needed_consent(&scenario, None) {
        if !args.trust {
            print_notes(&needed_permission(&scenario, &consent, args.live));
            return Exit::Usage;
        }
        save_permission(&trust, &consent, &scenario);
    }
    if let Some(times) = args.repeat.times {
        return run_batch(args, &scenario, times).await;
    }
    let url = args.remote.on.as_ref().and_then(|on| on.as_deref());
    let cluster = match connect(url).await {
        Ok(cluster) => cluster,
        Err(exit) => return exit,
    };
    let request = match hand_over(&cluster, request_of(&scenario, args)).await {
        Ok(request) => request,
        Err(why) => return trouble(&why),
    };
    if args.messages.is_empty() && !scenario.pattern.get().follow_ups().is_empty() {
        print_message("a runner plays the first message of the scenario, not its follow-ups");
    }
    if args.remote.detach {
        return stdout::print(&format!("{}\n", request.run), Exit::Ok);
    }
    let stdout = io::stdout();
    let usual = if stdout.is_terminal() { RunFormat::Text } else { RunFormat::Json };
    let paint = StreamStyle::on(&stdout, theme, global.is_ascii());
    let output = RunWriter::new(args.format.unwrap_or(usual), paint, stdout);
    let drive = HeadlessOptions { pauses: &args.pause_at, fail_on: &args.fail_on };
    match follow(&cluster, &request, &drive, output).await {
        FollowEnd::Exit(exit) => exit,
        FollowEnd::Trouble(why) => trouble(&format!("{}: {why}", request.run)),
    }
}

/// What a runner cannot do for a run that is handed over.
fn unsupported(args: &RunArgs) -> Option<&'static str> {
    if args.replay.is_some() {
        return Some("--replay reads a log of this machine: it cannot be used with --on");
    }
    if args.messages.len() > 1 {
        return Some("--on plays one run: give one --message");
    }
    if args.pause_at.iter().any(|pause| pause.length.is_some()) {
        return Some("--pause-at with a duration cannot be used with --on");
    }
    None
}
