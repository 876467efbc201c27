//! `roundtable run --on`: hands a run over to the runners of a cluster.

use super::batch::run_batch;
use super::connect::{connect, trouble};
use super::follow::{FollowEnd, Followed, broken, follow, interrupts};
use super::request::request_of;
use crate::cli::args::{Global, RunArgs, RunFormat};
use crate::cli::exit::Exit;
use crate::cli::headless::{HeadlessOptions, exit_of};
use crate::cli::message::print_message;
use crate::cli::output::RunWriter;
use crate::cli::run::{messages, needed_permission, print_notes, read, save_permission};
use crate::cli::stdout;
use crate::cli::stream_style::StreamStyle;
use crate::event::StopReason;
use crate::event::world::SessionOutcome;
use crate::host::dirs::Dirs;
use crate::host::models::LiveCalls;
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
    if let Some(consent) = trust.needed_consent(&scenario, args.live.then_some(LiveCalls::OnRunner))
    {
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
    let messages = messages(&scenario, args);
    let usual = if stdout::is_terminal() { RunFormat::Text } else { RunFormat::Json };
    let paint = StreamStyle::of_stdout(theme, global.is_ascii());
    let output = RunWriter::new(args.format.unwrap_or(usual), paint, stdout::data());
    let drive = HeadlessOptions { pauses: &args.pause_at, fail_on: &args.fail_on };
    let count = messages.len();
    let mut followed =
        Followed { cluster: &cluster, output, interrupted: interrupts(), messages: count };
    let mut request = request_of(&scenario, args);
    let (mut outcomes, mut exit) = (Vec::new(), Exit::Ok);
    for (place, text) in messages.into_iter().enumerate() {
        if place > 0 || !args.messages.is_empty() {
            request.message = Some(text.to_string());
        }
        request = match cluster.hand_over(request).await {
            Ok(request) => request,
            Err(why) => return trouble(&why),
        };
        if args.remote.detach {
            if count > 1 {
                print_message(
                    "only the first message was handed over: --detach waits for no answer",
                );
            }
            return stdout::print(&format!("{}\n", request.run), Exit::Ok);
        }
        let (outcome, world) = match follow(&mut followed, &request, place + 1).await {
            FollowEnd::Ended(outcome, world) => (*outcome, *world),
            FollowEnd::Exit(exit) => return exit,
            FollowEnd::Trouble(why) => return trouble(&format!("{}: {why}", request.run)),
        };
        let written = match count {
            1 => followed.output.outcome(&outcome, &world),
            _ => followed.output.end_of_session_run(&outcome, &world),
        };
        if let Err(why) = written {
            return broken(&why);
        }
        let cancelled = outcome.stop_reason == StopReason::Cancelled;
        if exit == Exit::Ok || cancelled {
            exit = exit_of(&outcome, &world, &drive);
        }
        outcomes.push(outcome);
        if cancelled {
            if place + 1 < count {
                print_message(&format!("cancelled after message {} of {count}", place + 1));
            }
            break;
        }
        request.after = Some(request.run.clone());
    }
    if count > 1
        && let Err(why) = followed.output.session(&SessionOutcome::new(outcomes, count))
    {
        return broken(&why);
    }
    exit
}

/// What a runner cannot do for a run that is handed over.
fn unsupported(args: &RunArgs) -> Option<&'static str> {
    if args.replay.is_some() {
        return Some("--replay reads a log of this machine: it cannot be used with --on");
    }
    if args.pause_at.iter().any(|pause| pause.length.is_some()) {
        return Some("--pause-at with a duration cannot be used with --on");
    }
    None
}
