//! A run without the dashboard: its facts go to standard output in one of three formats, the
//! outcome is written whatever ends it, and the exit code tells a script what came of it.

use std::io::{self, BufRead, Write};
use std::process;

use tokio::sync::mpsc;

use super::args::{FailOn, PauseArg};
use super::exit::Exit;
use super::output::Output;
use super::stop_signals::StopSignals;
use crate::engine::{Engine, Launch, RunHandle};
use crate::event::kind::By;
use crate::event::visible::{REASON_CHARS, visible_within};
use crate::event::{BoundaryId, Command, Event, EventKind, Seq, World};
use crate::shell::pauses;

/// Facts that are written at once.
const BATCH: usize = 256;

/// How a headless run is driven.
pub struct Drive<'a> {
    /// Where it rests.
    pub pauses: &'a [PauseArg],
    /// What fails it although it came to its end.
    pub fail_on: &'a [FailOn],
}

/// Runs to the end. The outcome is written, and every task of the run joined, before this returns.
///
/// The first interrupt (Ctrl-C, SIGTERM) cancels the run, the second ends the program at once with
/// exit code 130.
pub async fn run<W: Write>(
    engine: &Engine,
    launch: Launch,
    drive: Drive<'_>,
    mut output: Output<W>,
) -> Exit {
    let signals = StopSignals::listen();
    let run = engine.start(launch);
    let rests = drive.pauses.iter().filter_map(|pause| Some((pause.at.clone(), pause.rest?)));
    tokio::spawn(pauses::let_go(run.clone(), rests.collect()));
    let hand = drive.pauses.iter().filter(|pause| pause.rest.is_none());
    let hand: Vec<&BoundaryId> = hand.map(|pause| &pause.at).collect();
    let mut lines = None;

    match signals {
        Ok(signals) => drop(tokio::spawn(cancel_when_told(run.clone(), signals))),
        Err(error) => tracing::warn!("signals end the program at once: {error}"),
    }

    let mut reader = run.bus().reader(Seq(0));
    let mut world = World::new();
    let mut batch = Vec::new();
    let mut broken = None;
    let mut cut_off = false;
    while reader.next_batch(&mut batch, BATCH).await > 0 {
        for event in batch.drain(..) {
            world.apply(&event);
            if let Some(at) = rests_by_hand(&event, &hand) {
                let lines = lines.get_or_insert_with(lines_of_stdin);
                tokio::spawn(wait_for_hand(run.clone(), at, lines.clone()));
            }
            if broken.is_none() {
                broken = output.event(&event, &world).err();
            }
        }
        broken = broken.or_else(|| output.flush().err());
        if broken.is_some() {
            // Nobody reads: nothing more is to be spent on it.
            cut_off |= world.closed.is_none();
            run.send(Command::Cancel);
        }
    }
    run.finished().await;

    let Some(outcome) = world.outcome() else {
        let _ =
            writeln!(io::stderr(), "roundtable: the run left no outcome; this is a bug of ours");
        return Exit::Stopped;
    };
    match broken.or_else(|| output.outcome(&outcome, &world).err()) {
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            return if cut_off { Exit::CutOff } else { Exit::Ok };
        }
        Some(error) => {
            let _ = writeln!(io::stderr(), "roundtable: cannot write the outcome: {error}");
            return Exit::Stopped;
        }
        None => {}
    }
    let decision = world.collaboration().and_then(|(table, _)| table.decision());
    let failed = drive.fail_on.iter().any(|fail_on| match fail_on {
        FailOn::Decision(wanted) => decision == Some(*wanted),
        FailOn::Degraded => outcome.degraded,
    });
    match Exit::from(outcome.stop_reason.class()) {
        Exit::Ok if failed => Exit::Stopped,
        exit => exit,
    }
}

async fn cancel_when_told(run: RunHandle, mut signals: StopSignals) {
    signals.next().await;
    let _ = writeln!(io::stderr(), "roundtable: cancelling; once more ends at once");
    run.send(Command::Cancel);
    signals.next().await;
    process::exit(Exit::Cancelled.code().into());
}

/// Where a run rests that a person is to let go.
fn rests_by_hand(event: &Event, hand: &[&BoundaryId]) -> Option<BoundaryId> {
    match &event.kind {
        EventKind::Paused { at } => at.iter().find(|at| hand.contains(at)).cloned(),
        _ => None,
    }
}

/// Lines of standard input as they come; closed at its end. The thread that reads them is left
/// behind: a read from a terminal cannot be called off.
type Lines = std::sync::Arc<tokio::sync::Mutex<mpsc::Receiver<()>>>;

fn lines_of_stdin() -> Lines {
    let (line, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        for text in io::stdin().lock().lines() {
            if text.is_err() || line.blocking_send(()).is_err() {
                return;
            }
        }
    });
    std::sync::Arc::new(tokio::sync::Mutex::new(lines))
}

async fn wait_for_hand(run: RunHandle, at: BoundaryId, lines: Lines) {
    let place = visible_within(&at.for_people(), REASON_CHARS);
    let _ = writeln!(io::stderr(), "roundtable: paused before {place}; Enter goes on");
    let by = match lines.lock().await.recv().await {
        Some(()) => By::You,
        None => By::Schedule,
    };
    run.send(Command::Resume { by });
}
