//! `roundtable run --on`: makes the request of a run from the command line, hands it over to the
//! runners of a cluster, and follows it with the same output and exit codes as a run of this
//! machine.

use std::collections::BTreeSet;
use std::io;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::batch::run_batch;
use super::connect;
use crate::base::refused::Refused;
use crate::base::time::now_ms;
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::cli::args::{Global, RunFormat};
use crate::cli::exit::{Done, Exit};
use crate::cli::headless::{HeadlessOptions, exit_of, on_stop, report_message_start};
use crate::cli::launch::{
    messages, needed_permission, print_notes, read_scenario, save_permission, schedule,
};
use crate::cli::output::RunWriter;
use crate::cli::people::PeopleArg;
use crate::cli::run::RunArgs;
use crate::cli::streams;
use crate::cli::streams::{StreamStyle, print_message, refuse};
use crate::cluster::entry::{LogEntry, LogPart};
use crate::cluster::follow::LogNews;
use crate::cluster::request::RunRequest;
use crate::cluster::{Cluster, names};
use crate::host::Dirs;
use crate::host::models::LiveCalls;
use crate::host::trust::Trust;
use crate::log::event::head::{LaunchRecord, PeopleChoice};
use crate::log::event::{Command, EventKind, Seq, StopReason, World};
use crate::log::world::{Outcome, SessionOutcome};
use crate::scenario::Scenario;
use crate::screen::theme::Theme;

/// Runs `roundtable run --on`.
pub async fn run_remote(args: &RunArgs, global: &Global, theme: Theme) -> Done {
    let Some(scenario) = read_scenario(args) else { return Err(Exit::Usage) };
    if let Some(why) = unsupported(args) {
        print_message(why);
        return Err(Exit::Usage);
    }
    // The operator is asked here: a runner has no operator to ask.
    let trust = Trust::saved_in(Dirs::find().map(|dirs| dirs.trusted()));
    if let Some(consent) = trust.needed_consent(&scenario, args.live.then_some(LiveCalls::OnRunner))
    {
        if !args.trust {
            print_notes(&needed_permission(&scenario, &consent, args.live));
            return Err(Exit::Usage);
        }
        save_permission(&trust, &consent, &scenario);
    }
    if let Some(times) = args.repeat.times {
        return Ok(run_batch(args, &scenario, times).await);
    }
    let url = args.remote.on.as_ref().and_then(|on| on.as_deref());
    let cluster = connect(url).await?;
    let messages = messages(&scenario, args);
    let usual = if streams::stdout_is_terminal() { RunFormat::Text } else { RunFormat::Json };
    let paint = StreamStyle::of_stdout(theme, global.is_ascii());
    let output = RunWriter::new(args.format.unwrap_or(usual), paint, streams::stdout_data());
    let drive = HeadlessOptions {
        pauses: &args.pause_at,
        fail_on: &args.fail_on,
        ..HeadlessOptions::default()
    };
    let count = messages.len();
    let mut followed =
        Followed { cluster: &cluster, output, interrupted: interrupts(), messages: count };
    let mut request = request_of(&scenario, args);
    let (mut outcomes, mut exit) = (Vec::new(), Exit::Ok);
    for (place, text) in messages.into_iter().enumerate() {
        if place > 0 || !args.messages.is_empty() {
            request.message = Some(text.to_string());
        }
        request = cluster.hand_over(request).await.map_err(|why| refuse(&why, Exit::Stopped))?;
        if args.detach.detach {
            if count > 1 {
                print_message(
                    "only the first message was handed over: --detach waits for no answer",
                );
            }
            return Ok(streams::print(&format!("{}\n", request.run), Exit::Ok));
        }
        let (outcome, world) = match follow_run(&mut followed, &request, place + 1).await {
            FollowEnd::Ended(outcome, world) => (*outcome, *world),
            FollowEnd::Exit(exit) => return Ok(exit),
            FollowEnd::Trouble(why) => {
                let what = format!("{} cannot be followed", request.run);
                return Err(refuse(&Refused::new(what).because(why), Exit::Stopped));
            }
        };
        let written = match count {
            1 => followed.output.outcome(&outcome, &world),
            _ => followed.output.end_of_session_run(&outcome, &world),
        };
        if let Err(why) = written {
            return Err(write_error_exit(&why));
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
        return Err(write_error_exit(&why));
    }
    Ok(exit)
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

/// The request of a run; it has no id yet.
pub(super) fn request_of(scenario: &Scenario, args: &RunArgs) -> RunRequest {
    let (flags, schedule) = schedule(args);
    let request = RunRequest::of(scenario);
    RunRequest {
        launch: LaunchRecord {
            instant: args.instant,
            model: args.model.as_deref().map(Arc::from),
            flags: schedule.flags,
            pauses: schedule.breaks,
            ..request.launch
        },
        live: args.live,
        flags,
        seed: args.seed,
        message: args.messages.first().cloned(),
        pool: args.remote.pool.clone().unwrap_or(request.pool),
        people: match args.people {
            Some(PeopleArg::Script) => PeopleChoice::Script,
            Some(PeopleArg::Nobody) => PeopleChoice::Nobody,
            Some(PeopleArg::Wait | PeopleArg::Ask) => PeopleChoice::Wait,
            // Nobody answers many runs at once.
            None if args.repeat.times.is_some() && args.live => PeopleChoice::Nobody,
            None if args.repeat.times.is_some() => PeopleChoice::Script,
            None => PeopleChoice::Wait,
        },
        by: names::user_name(),
        wall_ms: now_ms(),
        ..request
    }
}

/// How long a run may wait for a runner before it is said.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// Most characters of what a runner says of a run.
pub(super) const NOTE_CHARS: usize = 400;

/// How following a run ended.
pub(crate) enum FollowEnd {
    Ended(Box<Outcome>, Box<World>),
    /// The reader of the output has ended, or the operator does not wait.
    Exit(Exit),
    /// The log cannot be read.
    Trouble(Refused),
}

/// What follows the runs of a command.
pub(crate) struct Followed<'a, W: Write> {
    pub cluster: &'a Cluster,
    pub output: RunWriter<W>,
    /// Interrupts of the operator.
    pub interrupted: mpsc::UnboundedReceiver<()>,
    /// Number of the messages of the session.
    pub messages: usize,
}

/// The interrupts of the operator (Ctrl-C, SIGTERM): the first one cancels, the second one ends the program.
pub(crate) fn interrupts() -> mpsc::UnboundedReceiver<()> {
    let (interrupt, interrupted) = mpsc::unbounded_channel();
    let first = move || {
        print_message("cancelling; interrupt again to end immediately");
        let _ = interrupt.send(());
    };
    if let Err(error) = on_stop(first, Exit::Cancelled.code()) {
        tracing::warn!("signals end the program immediately: {error}");
    }
    interrupted
}

/// Writes the events of the run that answers this message (from 1), as they are stored, until its end.
async fn follow_run<W: Write>(
    followed: &mut Followed<'_, W>,
    request: &RunRequest,
    message: usize,
) -> FollowEnd {
    let Followed { cluster, output, interrupted, messages } = followed;
    let run = &request.run;
    let mut notes = match cluster.notes(run).await {
        Ok(notes) => notes,
        Err(why) => return FollowEnd::Trouble(why),
    };
    let (mut said, mut owner) = (BTreeSet::new(), None::<String>);
    let impatient = sleep_until(Instant::now() + PATIENCE);
    tokio::pin!(impatient);
    let mut follower = cluster.follow(run);
    let mut world = World::new();
    loop {
        let news = tokio::select! {
            news = follower.news() => news,
            Some(note) = notes.next() => {
                // A runner says it each time that it is offered the run.
                if said.insert(note.clone()) {
                    print_message(&visible_within(&note, NOTE_CHARS));
                }
                continue;
            }
            Some(()) = interrupted.recv() => {
                let by = names::user_name();
                if let Err(why) = cluster.send_command(run, &Command::Cancel, &by).await {
                    let why = Refused::new("the run was not cancelled").because(why);
                    refuse(&why, Exit::Stopped);
                } else if owner.is_none() {
                    print_message(&format!("{run} ends when a runner takes it"));
                    return FollowEnd::Exit(Exit::Cancelled);
                }
                continue;
            }
            () = &mut impatient, if owner.is_none() && said.is_empty() => {
                let pool = &request.pool;
                let text = format!("no runner of pool {pool} has taken {run} yet");
                print_message(&text);
                said.insert(text);
                continue;
            }
        };
        match news {
            None => break,
            Some(Err(error)) => return FollowEnd::Trouble(Refused::new(error.to_string())),
            Some(Ok(LogNews::LinkLost)) => print_message("the cluster is not reached; waiting"),
            Some(Ok(LogNews::LinkBack)) => print_message("the cluster is reached again"),
            Some(Ok(LogNews::UpToDate)) => {}
            Some(Ok(LogNews::Entry(LogEntry { part, .. }))) => match part {
                LogPart::Claimed(claim) => {
                    if owner.as_ref().is_some_and(|before| *before != claim.owner) {
                        let runner = visible_within(&claim.runner, REASON_CHARS);
                        print_message(&format!("{runner} continues {run}"));
                    }
                    owner = Some(claim.owner);
                }
                LogPart::Events(group) => {
                    let events = match group.events(Seq(0)) {
                        Ok(events) => events,
                        Err(error) => {
                            return FollowEnd::Trouble(Refused::new(error.to_string()));
                        }
                    };
                    let mut written = Ok(());
                    for event in &events {
                        world.apply(event);
                        if *messages > 1 && matches!(event.kind, EventKind::RunStarted(_)) {
                            report_message_start(&world, message, *messages);
                        }
                        if let EventKind::Warning { text } = &event.kind {
                            print_message(&visible_within(text, NOTE_CHARS));
                        }
                        written = written.and_then(|()| output.event(event, &world));
                    }
                    if let Err(why) = written.and_then(|()| output.flush()) {
                        return FollowEnd::Exit(write_error_exit(&why));
                    }
                    world.forget_old(events.len());
                }
                LogPart::Requested(_) | LogPart::Released(_) | LogPart::Elsewhere(..) => {}
            },
        }
    }
    match world.outcome() {
        Some(outcome) => FollowEnd::Ended(Box::new(outcome), Box::new(world)),
        None => FollowEnd::Trouble(Refused::new("the log has no end")),
    }
}

/// The reader of the output is gone; the run continues, since others may follow it.
pub(crate) fn write_error_exit(why: &io::Error) -> Exit {
    match why.kind() {
        io::ErrorKind::BrokenPipe => Exit::CutOff,
        _ => refuse(&Refused::new(format!("cannot write the outcome: {why}")), Exit::Stopped),
    }
}
