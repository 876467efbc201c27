//! Executes a recorded run again, until its recording is used up, or, as a fork, until it reaches a
//! boundary; then the run continues live.
//!
//! The run is polled until it is idle: nothing woke it, and it waits for nothing outside. Then the
//! first recorded event that it has not published says what comes next: what a model or tool
//! returned, a command, a timer, or that it is the turn of a call to continue. Time moves to that
//! event, and only what leads to it happens. If nothing leads to it, the run differs from its log
//! ([`Divergence`](crate::log::replay::Divergence)).

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;

use super::control::RunControl;
use super::redelivery::redeliver;
use crate::base::name::FlagName;
use crate::log::bus::{Bus, Recording, ReplayError};
use crate::log::event::command::BreakerOverride;
use crate::log::event::{
    AnsweredBy, BreakerCause, BreakerStage, Command, Event, EventKind, Initiator, QuestionAnswered,
    QuestionId, Seq, StepSize, Withdrawal,
};
use crate::log::replay::{RecordedInput, Replay};

/// What reaches a run from outside while it is executed again.
pub(crate) struct RunInputs<'a> {
    /// The log, which continues a recording.
    pub bus: &'a Bus,
    pub control: &'a RunControl,
    /// Gives the run a command.
    pub send: &'a (dyn Fn(Command) + Send + Sync),
    /// Withdraws an open question.
    pub withdraw: &'a (dyn Fn(QuestionId) + Send + Sync),
    /// The first event after the recording.
    pub first: &'a (dyn Fn(&Recording) -> EventKind + Send + Sync),
    /// Flags that a fork switches where it begins.
    pub flags: &'a [(FlagName, bool)],
    /// Called when the recording is used up.
    pub live: &'a (dyn Fn() + Send + Sync),
}

/// The most steps of a run before other tasks have their turn.
const STEPS_AT_ONCE: u32 = 64;

/// The result of one step of a run.
enum Step<T> {
    /// The run has to be polled again.
    Continue,
    Wait,
    Ended(Result<T, ReplayError>),
}

/// Plays a run whose log continues a recording.
pub(crate) async fn execute_again<T>(
    inputs: &RunInputs<'_>,
    run: impl Future<Output = T>,
) -> Result<T, ReplayError> {
    let mut run = pin!(run);
    if let Some(replay) = inputs.bus.replay() {
        for event in replay.recording().events() {
            // The launch schedules the changes of the command line.
            if let EventKind::FlagChanged { flag, on, by, boundary } = &event.kind
                && *by != Initiator::Schedule
            {
                inputs.control.schedule(boundary.clone(), flag.clone(), *on, *by);
            }
        }
        let flag = Arc::new(WakeFlag::default());
        let waker = Waker::from(Arc::clone(&flag));
        let mut driver = Driver { inputs, replay, delivered: None };
        driver.deliver_first_commands();
        let ended = poll_fn(|cx| {
            flag.register(cx);
            for _ in 0..STEPS_AT_ONCE {
                flag.take();
                let polled = run.as_mut().poll(&mut Context::from_waker(&waker));
                let step = match polled {
                    Poll::Pending if driver.replay.is_at_fork() => driver.begin_fork(),
                    Poll::Ready(ended) => driver.end(ended),
                    Poll::Pending if flag.take() => Step::Continue,
                    Poll::Pending => driver.step(),
                };
                match step {
                    Step::Continue => {}
                    Step::Wait => return Poll::Pending,
                    Step::Ended(ended) => return Poll::Ready(Some(ended)),
                }
                if driver.replay.is_live() {
                    return Poll::Ready(None);
                }
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        if let Some(ended) = ended {
            return ended;
        }
    }
    Ok(run.await)
}

/// A waker for one future of a task: remembers that it was woken, and wakes the task.
#[derive(Default)]
struct WakeFlag {
    woken: AtomicBool,
    task: AtomicWaker,
}

impl WakeFlag {
    /// Wakes this task from now on.
    fn register(&self, task: &Context<'_>) {
        self.task.register(task.waker());
    }

    /// Whether it was woken since the last call.
    fn take(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

/// Decides what happens next in a run that is executed again.
struct Driver<'a> {
    inputs: &'a RunInputs<'a>,
    replay: &'a Replay,
    /// The event whose command was given last.
    delivered: Option<Seq>,
}

impl Driver<'_> {
    /// Gives the run the commands that it had before its first step.
    fn deliver_first_commands(&mut self) {
        while let Some(command) = self.replay.next_event().as_deref().and_then(command_of) {
            if self.delivered.replace(self.replay.position()) == Some(self.replay.position()) {
                break;
            }
            (self.inputs.send)(command);
        }
    }

    /// One step of a run that is idle.
    fn step<T>(&mut self) -> Step<T> {
        if let Some(divergence) = self.replay.divergence() {
            return Step::Ended(Err(self.replay.diverged(divergence)));
        }
        if self.replay.clock().waits_outside() {
            return Step::Wait;
        }
        match self.replay.next_input() {
            RecordedInput::Over => match self.replay.not_reached() {
                Some(error) => Step::Ended(Err(error)),
                None => {
                    self.go_live(self.open_commands());
                    Step::Continue
                }
            },
            RecordedInput::Delivered | RecordedInput::Skipped => Step::Continue,
            RecordedInput::Event(event) => self.lead_to(&event),
        }
    }

    /// Lets the run publish this event.
    fn lead_to<T>(&mut self, event: &Event) -> Step<T> {
        if let Some(command) = command_of(event)
            && self.delivered != Some(event.seq)
        {
            self.delivered = Some(event.seq);
            (self.inputs.send)(command);
            return Step::Continue;
        }
        if let EventKind::QuestionWithdrawn { id, why: Withdrawal::Changed } = event.kind
            && self.delivered.replace(event.seq) != Some(event.seq)
        {
            (self.inputs.withdraw)(id);
            return Step::Continue;
        }
        // The turn of a call may begin with an event of the run, such as of a breaker.
        if self.replay.clock().fire() || self.replay.give_turn(false) {
            return Step::Continue;
        }
        // Another version of the program may warn of something else.
        if let EventKind::Warning { .. } = event.kind {
            self.replay.skip_next();
            return Step::Continue;
        }
        if self.replay.give_turn(true) {
            return Step::Continue;
        }
        match self.replay.diverge() {
            Some(divergence) => Step::Ended(Err(self.replay.diverged(divergence))),
            None => Step::Continue,
        }
    }

    /// A fork has reached its boundary.
    fn begin_fork<T>(&self) -> Step<T> {
        if let Some(divergence) = self.replay.divergence() {
            return Step::Ended(Err(divergence.into()));
        }
        self.inputs.control.forget_recorded_flags();
        for (flag, on) in self.inputs.flags {
            let flag = flag.clone();
            (self.inputs.send)(Command::SetFlag { flag, on: *on, by: Initiator::You });
        }
        self.go_live(Vec::new());
        Step::Continue
    }

    /// The run has ended.
    fn end<T>(&self, ended: T) -> Step<T> {
        if let Some(divergence) = self.replay.divergence() {
            return Step::Ended(Err(divergence.into()));
        }
        if !self.replay.is_used_up() {
            return match self.replay.diverge() {
                Some(divergence) => Step::Ended(Err(divergence.into())),
                None => Step::Ended(Ok(ended)),
            };
        }
        if let Some(error) = self.replay.not_reached() {
            return Step::Ended(Err(error));
        }
        self.go_live(self.open_commands());
        Step::Ended(Ok(ended))
    }

    /// The commands that the run had taken, and that had not taken effect when it stopped.
    fn open_commands(&self) -> Vec<Command> {
        redeliver(self.replay.recording().events())
    }

    /// `again`: commands before those that were sent meanwhile.
    fn go_live(&self, again: Vec<Command>) {
        let first = (self.inputs.first)(self.replay.recording());
        let commands = self.inputs.bus.go_live(first);
        (self.inputs.live)();
        for command in again.into_iter().chain(commands) {
            (self.inputs.send)(command);
        }
    }
}

/// The command that this event says has taken effect; `None` if no command caused it. A flag is
/// switched at its boundary, and needs no command.
pub(crate) fn command_of(event: &Event) -> Option<Command> {
    Some(match &event.kind {
        EventKind::Pausing { by: Initiator::Breakpoint, .. } => return None,
        EventKind::Pausing { at_round: true, .. } => Command::StepRound,
        EventKind::Pausing { by, at_round: false } => Command::Pause { by: *by },
        EventKind::Resumed { by, .. } => Command::Resume { by: *by },
        EventKind::Stepped { step: StepSize::Boundary, .. } => Command::Step,
        EventKind::Stepped { step: StepSize::Round, .. } => Command::StepRound,
        EventKind::BreakpointChanged { at, set } => Command::Break { at: at.clone(), set: *set },
        EventKind::ConcurrencyChanged { max_parallel, by } => {
            Command::SetParallel { max_parallel: *max_parallel, by: *by }
        }
        EventKind::QuestionAnswered(answered) if answered.by == AnsweredBy::Rule => return None,
        EventKind::QuestionAnswered(answered) => {
            Command::Answer(Box::new(QuestionAnswered::clone(answered)))
        }
        EventKind::ApprovalWithdrawn { id, by } => Command::WithdrawApproval { id: *id, by: *by },
        EventKind::LimitsChanged { tool, change, by, .. } => {
            Command::SetLimit { tool: tool.clone(), change: *change, by: *by }
        }
        EventKind::FaultInjected { tool, fault, by } => {
            Command::Inject { tool: tool.clone(), fault: *fault, by: *by }
        }
        EventKind::FaultRemoved { tool, fault, by } => {
            Command::RemoveFault { tool: tool.clone(), kind: *fault, by: *by }
        }
        EventKind::BreakerChanged {
            tool, to, cause: BreakerCause::Manual, by: Some(by), ..
        } => {
            let action = match to {
                BreakerStage::Open => BreakerOverride::Trip,
                BreakerStage::Held => BreakerOverride::Hold,
                BreakerStage::Disabled => BreakerOverride::Disable,
                BreakerStage::Closed | BreakerStage::HalfOpen => BreakerOverride::Reset,
            };
            Command::Breaker { tool: tool.clone(), action, by: *by }
        }
        kind => return kind.pattern()?.get().confirms(),
    })
}
