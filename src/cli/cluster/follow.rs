//! Follows a run that a runner plays: the same output and exit codes as of a run of this machine.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::base::visible::{REASON_CHARS, visible_within};
use crate::cli::exit::Exit;
use crate::cli::headless::report_message_start;
use crate::cli::message::print_message;
use crate::cli::output::RunWriter;
use crate::cli::stop_signals::on_stop;
use crate::cluster::Cluster;
use crate::cluster::entry::{LogEntry, LogPart};
use crate::cluster::follow::LogNews;
use crate::cluster::request::RunRequest;
use crate::event::world::Outcome;
use crate::event::{Command, EventKind, Seq, World};
use crate::host::machine;

/// How long a run may wait for a runner before it is said.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// Most characters of what a runner says of a run.
pub(super) const NOTE_CHARS: usize = 400;

/// How following a run ended.
pub(super) enum FollowEnd {
    /// The run has ended.
    Ended(Box<Outcome>, Box<World>),
    /// The reader of the output has ended, or the operator does not wait.
    Exit(Exit),
    /// The log cannot be read.
    Trouble(String),
}

/// What follows the runs of a command.
pub(super) struct Followed<'a, W: Write> {
    pub cluster: &'a Cluster,
    pub output: RunWriter<W>,
    /// Interrupts of the operator.
    pub interrupted: mpsc::UnboundedReceiver<()>,
    /// Number of the messages of the session.
    pub messages: usize,
}

/// The interrupts of the operator (Ctrl-C, SIGTERM): the first one cancels, the second one ends the program.
pub(super) fn interrupts() -> mpsc::UnboundedReceiver<()> {
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
pub(super) async fn follow<W: Write>(
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
                let by = machine::user_name();
                if let Err(why) = cluster.send_command(run, &Command::Cancel, &by).await {
                    print_message(&format!("the run was not cancelled: {why}"));
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
            Some(Err(error)) => return FollowEnd::Trouble(error.to_string()),
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
                        Err(error) => return FollowEnd::Trouble(error.to_string()),
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
                        return FollowEnd::Exit(broken(&why));
                    }
                    world.forget_old(events.len());
                }
                LogPart::Requested(_) | LogPart::Elsewhere(..) => {}
            },
        }
    }
    match world.outcome() {
        Some(outcome) => FollowEnd::Ended(Box::new(outcome), Box::new(world)),
        None => FollowEnd::Trouble("the log has no end".to_owned()),
    }
}

/// The reader of the output is gone; the run continues, since others may follow it.
pub(super) fn broken(why: &io::Error) -> Exit {
    match why.kind() {
        io::ErrorKind::BrokenPipe => Exit::CutOff,
        _ => {
            print_message(&format!("cannot write the outcome: {why}"));
            Exit::Stopped
        }
    }
}
