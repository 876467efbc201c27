//! The handle of a run: its log, its commands, its end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::base::visible::first_bytes;
use crate::gateway::{GuardSnapshot, ToolRegistry};
use crate::log::bus::{Bus, LogReader, ReplayError, publish_unless_ended};
use crate::log::event::question::SENDER_BYTES;
use crate::log::event::{
    Answer, Command, EventKind, Initiator, QuestionId, RunId, Seq, SpanId, StopReason,
};
use crate::run::questions::Questions;
use crate::run::questions::StoredAnswers;
use crate::run::{LiveControl, RunControl, Session};

/// The state of a run that continues a recording.
#[derive(Clone, Debug)]
pub(crate) enum ReplayEnd {
    /// Its recording is executed again.
    Open,
    Live,
    /// It cannot be continued.
    Failed(ReplayError),
}

/// The end of a run.
pub(crate) struct RunEnd {
    over: AtomicBool,
    ended: Notify,
}

/// Marks the run as over when it is dropped.
pub(crate) struct RunEndGuard(Arc<RunEnd>);

impl RunEnd {
    /// The end of a run that is not over yet, and the guard that marks it as over.
    pub(crate) fn new() -> (RunEndGuard, Arc<Self>) {
        let end = Arc::new(Self { over: AtomicBool::new(false), ended: Notify::new() });
        (RunEndGuard(Arc::clone(&end)), end)
    }
}

impl Drop for RunEndGuard {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Release);
        self.0.ended.notify_waiters();
    }
}

/// Handle of a run. Cheap to clone.
#[derive(Clone)]
pub struct RunHandle {
    pub(crate) id: RunId,
    pub(crate) bus: Bus,
    pub(crate) control: Arc<RunControl>,
    pub(crate) tools: Arc<ToolRegistry>,
    pub(crate) questions: Arc<Questions>,
    /// The part of the pattern that commands change.
    pub(crate) live: Option<Arc<dyn LiveControl>>,
    pub(crate) session: Session,
    pub(crate) end: Arc<RunEnd>,
    /// Whether the run is past its recording, if it continues one.
    pub(crate) replayed: Option<watch::Receiver<ReplayEnd>>,
    /// Held while a command from elsewhere is taken: what it causes at once follows it in the log.
    pub(crate) taking: Arc<Mutex<()>>,
    /// Reader from the first event; only for a log that does not keep everything.
    pub(crate) first: Option<Arc<Mutex<Option<LogReader>>>>,
}

impl RunHandle {
    /// Id of the run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Log of the run.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// A reader that was created before the first event, for the screen or output that shows the run.
    /// It misses nothing, even with a small window, and the run waits for it if it is too far behind.
    /// Later callers get a reader of the events that the log still has.
    pub fn first_reader(&self) -> LogReader {
        let first = self.first.as_ref();
        let first =
            first.and_then(|first| first.lock().unwrap_or_else(PoisonError::into_inner).take());
        first.unwrap_or_else(|| self.bus.reader(Seq(0)))
    }

    /// Whether the run has ended and its log is closed.
    pub(crate) fn is_over(&self) -> bool {
        self.end.over.load(Ordering::Acquire)
    }

    /// Sends a command to the run. It becomes events in the log when it takes effect. A run that is
    /// resumed takes it once it is live.
    pub fn send(&self, command: Command) {
        if self.is_over() {
            return;
        }
        let now = match self.bus.replay() {
            Some(replay) => replay.queue_command(command),
            None => Some(command),
        };
        if let Some(command) = now {
            self.deliver(command);
        }
    }

    /// Gives the run a command that somebody has sent from elsewhere, with its number there, and when it was
    /// stored there, as Unix time in milliseconds. It is in the log before it takes effect. `false`: the run
    /// has ended.
    pub(crate) fn take(&self, command: Command, by: &str, place: u64, at_ms: u64) -> bool {
        let _taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        let command = match command.sent_by(Initiator::Remote) {
            Command::Answer(answered) => {
                Command::Answer(Box::new(answered.received_from(by, at_ms)))
            }
            other => other,
        };
        let by = first_bytes(by, SENDER_BYTES).to_owned();
        let taken = EventKind::CommandTaken { command: Box::new(command.clone()), by, place };
        let is_taken = publish_unless_ended(&self.bus, SpanId::RUN, taken);
        if is_taken {
            self.send(command);
        }
        is_taken
    }

    /// Gives the run a command that somebody else has sent to this process. Returns its number in the log.
    pub(crate) fn take_remote(&self, command: Command, by: &str) -> Result<u64, String> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        if let Command::Answer(answered) = &command {
            answered.answer.check_size()?;
        }
        let place = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let at_ms = self.questions.wall_ms();
        match self.take(command, by, place, at_ms) {
            true => Ok(place),
            false => Err(format!("{} has ended", self.id)),
        }
    }

    /// Whether the run continues a recording.
    pub(crate) fn was_resumed(&self) -> bool {
        self.bus.is_resumed()
    }

    /// Waits until a run that is resumed or forked has executed its recording again and is live. A run that
    /// was started is live from its start.
    ///
    /// # Errors
    /// `ReplayError` if the run differs from its log, or a fork does not reach its boundary. It is
    /// not continued then, and nothing was appended to its log.
    pub async fn wait_until_live(&self) -> Result<(), ReplayError> {
        let Some(mut replayed) = self.replayed.clone() else { return Ok(()) };
        let ended = replayed.wait_for(|it| !matches!(it, ReplayEnd::Open)).await;
        match ended.as_deref() {
            Ok(ReplayEnd::Failed(error)) => Err(error.clone()),
            // An error means that the run's task is gone.
            _ => Ok(()),
        }
    }

    pub(super) fn deliver(&self, command: Command) {
        let left = self.tools.command(command).and_then(|it| self.questions.take(it));
        let left = left.and_then(|it| match &self.live {
            Some(live) => live.take(it),
            None => Some(it),
        });
        if let Some(command) = left {
            self.control.command(command);
        }
    }

    /// Stops the run with this reason, before its next call.
    pub(crate) fn stop(&self, reason: StopReason) {
        self.control.stop(reason);
    }

    /// A snapshot of each tool's guard. The numbers of shared tools include the other runs that use
    /// them.
    pub fn tool_snapshots(&self) -> Vec<GuardSnapshot> {
        self.tools.snapshots()
    }

    /// The next message of the same session. `None` while the run is not finished, and for patterns
    /// without sessions.
    pub fn follow_up(&self, text: impl Into<Arc<str>>) -> Option<Session> {
        self.session.next(self.id.clone(), text)
    }

    /// Whether this run can leave memory without loss: its log is stored, and no message can follow.
    pub(super) fn is_only_a_log(&self) -> bool {
        let stored = self.bus.stored_mark().next().0;
        let is_stored = stored >= self.bus.len() && !self.bus.stored_mark().is_abandoned();
        self.session.left().is_none() && is_stored
    }

    /// What the run leaves to the next message of its session, as [`follow_up`](Self::follow_up) takes it.
    pub(crate) fn left_session(&self) -> Option<crate::run::LeftSession> {
        self.session.left()
    }

    /// The answer that the script of the scenario would give to an open question.
    pub fn suggested_answer(&self, id: QuestionId) -> Option<Answer> {
        self.questions.suggestion(id)
    }

    /// Waits until every branch waits for people, and has done so for this time. Only questions that people
    /// answer count.
    pub(crate) async fn until_everybody_waits(&self, at_least: Duration) {
        if !self.questions.are_for_people() {
            return std::future::pending().await;
        }
        loop {
            self.control.until_everybody_waits().await;
            tokio::time::sleep(at_least).await;
            if self.control.everybody_waits() {
                return;
            }
        }
    }

    /// Sets what stores the answers to the run before the run has them.
    pub(crate) fn set_stored_answers(&self, stored: Arc<dyn StoredAnswers>) {
        self.questions.set_stored_answers(stored);
    }

    /// The next deadline of an open question, as Unix time in milliseconds.
    pub(crate) fn next_deadline_ms(&self) -> Option<u64> {
        self.questions.next_deadline_ms()
    }

    /// From now on nobody answers the questions of the run: what they say for that case happens.
    pub fn nobody_answers(&self) {
        self.questions.nobody_from_now();
    }

    /// Number of attempts in flight.
    pub fn in_flight(&self) -> u32 {
        self.control.in_flight().load(Ordering::Acquire)
    }

    /// Waits until the run has ended and its log is closed.
    pub async fn wait_until_finished(&self) {
        let ended = self.end.ended.notified();
        if !self.is_over() {
            ended.await;
        }
    }
}
