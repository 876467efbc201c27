//! The glyph, word and role of each state.

use ratatui::style::Style;

use super::glyph::Glyph;
use super::theme::{StyleRole, Theme};
use crate::agents::projection::{AgentState, HopState};
use crate::app::run::results::state_word;
use crate::event::contribution::{Decision, Stance};
use crate::event::kind::BreakerStage;
use crate::event::stop::{StopClass, StopReason};
use crate::event::world::tools::CallMark;
use crate::event::world::{RunState, World};
use crate::pattern::collaboration::projection::SeatState;
use crate::pattern::orchestrator::projection::TaskState;
use crate::pattern::research::projection::SourceState;

/// The sign of a state: a glyph and a word, then a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSign {
    /// Its glyph.
    pub glyph: Glyph,
    /// Its word.
    pub word: &'static str,
    /// Its style.
    pub style: Style,
}

impl Theme {
    fn sign(&self, glyph: Glyph, word: &'static str, role: StyleRole) -> StateSign {
        StateSign { glyph, word, style: self.style(role) }
    }

    /// The sign of a stance.
    pub fn stance(&self, stance: Stance) -> StateSign {
        match stance {
            Stance::Go => self.sign(Glyph::Go, "go", StyleRole::Go),
            Stance::Caution => self.sign(Glyph::Caution, "caution", StyleRole::Caution),
            Stance::Block => self.sign(Glyph::Block, "block", StyleRole::Block),
        }
    }

    /// The sign of a decision, which looks like the matching stance.
    pub fn decision(&self, decision: Decision) -> StateSign {
        match decision {
            Decision::Go => self.sign(Glyph::Go, decision.phrase(), StyleRole::Go),
            Decision::GoWithCaution => {
                self.sign(Glyph::Caution, decision.phrase(), StyleRole::Caution)
            }
            Decision::NoGo => self.sign(Glyph::Block, decision.phrase(), StyleRole::Block),
        }
    }

    /// The sign of a seat's progress.
    pub fn seat(&self, state: SeatState) -> StateSign {
        match state {
            SeatState::Waiting => self.sign(Glyph::Waiting, "waiting", StyleRole::Waiting),
            SeatState::Off => self.sign(Glyph::Off, "off", StyleRole::Off),
            SeatState::Speaking => self.sign(Glyph::Running, "speaking", StyleRole::Running),
            SeatState::Retrying => self.sign(Glyph::Retry, "retrying", StyleRole::Retry),
            SeatState::Answered => self.sign(Glyph::Running, "answered", StyleRole::Running),
            SeatState::Accepted => self.sign(Glyph::Done, "accepted", StyleRole::Done),
            SeatState::Refused => self.sign(Glyph::Refused, "refused", StyleRole::Refused),
            SeatState::Failed => self.sign(Glyph::Failed, "failed", StyleRole::Failed),
            SeatState::Cancelled => self.sign(Glyph::Off, "cancelled", StyleRole::Off),
        }
    }

    /// The sign of a task's progress.
    pub fn task(&self, state: TaskState) -> StateSign {
        let (glyph, role) = match state {
            TaskState::Waiting => (Glyph::Waiting, StyleRole::Waiting),
            TaskState::Running => (Glyph::Running, StyleRole::Running),
            TaskState::Retrying => (Glyph::Retry, StyleRole::Retry),
            TaskState::Done => (Glyph::Done, StyleRole::Done),
            TaskState::Degraded => (Glyph::Alert, StyleRole::Retry),
            TaskState::Failed => (Glyph::Failed, StyleRole::Failed),
            TaskState::Cancelled => (Glyph::Off, StyleRole::Off),
        };
        self.sign(glyph, state_word(state), role)
    }

    /// The sign of a breaker's state.
    pub fn breaker(&self, stage: BreakerStage) -> StateSign {
        match stage {
            BreakerStage::Closed => self.sign(Glyph::Done, "closed", StyleRole::Done),
            BreakerStage::Open => self.sign(Glyph::Refused, "OPEN", StyleRole::Refused),
            BreakerStage::HalfOpen => self.sign(Glyph::HalfOpen, "half-open", StyleRole::Retry),
            BreakerStage::Held => self.sign(Glyph::Refused, "HELD", StyleRole::Refused),
            BreakerStage::Disabled => self.sign(Glyph::Off, "off", StyleRole::Off),
        }
    }

    /// The sign of an attempt's result.
    pub fn mark(&self, mark: CallMark) -> StateSign {
        match mark {
            CallMark::Good => self.sign(Glyph::Done, "ok", StyleRole::Done),
            CallMark::Slow => self.sign(Glyph::Slow, "slow", StyleRole::Retry),
            CallMark::Bad => self.sign(Glyph::Failed, "failed", StyleRole::Failed),
            CallMark::NotCounted => self.sign(Glyph::NotYet, "not counted", StyleRole::Dim),
            CallMark::Refused => self.sign(Glyph::Refused, "refused", StyleRole::Refused),
        }
    }

    /// The sign of an agent in a team.
    pub fn agent(&self, state: AgentState) -> StateSign {
        match state {
            AgentState::Idle => self.sign(Glyph::Off, "not used", StyleRole::Off),
            AgentState::Running => self.sign(Glyph::Running, "working", StyleRole::Running),
            AgentState::Done => self.sign(Glyph::Done, "done", StyleRole::Done),
            AgentState::Failed => self.sign(Glyph::Failed, "failed", StyleRole::Failed),
            AgentState::Cancelled => self.sign(Glyph::Off, "cancelled", StyleRole::Off),
        }
    }

    /// The sign of a hop.
    pub fn hop(&self, state: &HopState) -> StateSign {
        match state {
            HopState::Running => self.sign(Glyph::Running, "working", StyleRole::Running),
            HopState::Done | HopState::HandedOver => {
                self.sign(Glyph::Done, "done", StyleRole::Done)
            }
            HopState::Failed(StopReason::Cancelled) => {
                self.sign(Glyph::Off, "cancelled", StyleRole::Off)
            }
            HopState::Degraded { .. } => self.sign(Glyph::Alert, "degraded", StyleRole::Retry),
            HopState::Failed(_) => self.sign(Glyph::Failed, "failed", StyleRole::Failed),
            HopState::Refused(_) => self.sign(Glyph::Refused, "refused", StyleRole::Refused),
        }
    }

    /// The sign of a source's progress.
    pub fn source(&self, state: &SourceState) -> StateSign {
        match state {
            SourceState::Found => self.sign(Glyph::Waiting, "found", StyleRole::Waiting),
            SourceState::Waiting => self.sign(Glyph::Waiting, "waiting", StyleRole::Waiting),
            SourceState::Reading => self.sign(Glyph::Running, "reading", StyleRole::Running),
            SourceState::Noting => self.sign(Glyph::Running, "taking notes", StyleRole::Running),
            SourceState::Read { .. } => self.sign(Glyph::Done, "read", StyleRole::Done),
            SourceState::Denied { .. } => self.sign(Glyph::Refused, "denied", StyleRole::Refused),
            SourceState::Skipped { .. } => self.sign(Glyph::Failed, "skipped", StyleRole::Failed),
            SourceState::Dropped(_) => self.sign(Glyph::Off, "dropped", StyleRole::Off),
            SourceState::NotReached(_) => self.sign(Glyph::Off, "not reached", StyleRole::Off),
            SourceState::Cancelled => self.sign(Glyph::Off, "cancelled", StyleRole::Off),
        }
    }

    /// The sign of a run's stage.
    pub fn run(&self, world: &World) -> StateSign {
        match (&world.stage, &world.closed) {
            (RunState::Empty, _) => self.sign(Glyph::Waiting, "STARTING", StyleRole::Waiting),
            (RunState::Running, _) => self.sign(Glyph::Running, "LIVE", StyleRole::Running),
            (RunState::Pausing { .. }, _) => self.sign(Glyph::Paused, "PAUSING", StyleRole::Paused),
            (RunState::Paused { .. }, _) => self.sign(Glyph::Paused, "PAUSED", StyleRole::Paused),
            (RunState::Closed, None) => self.sign(Glyph::Done, "DONE", StyleRole::Done),
            (RunState::Closed, Some(closed)) => self.ended(closed.reason.class()),
        }
    }

    /// The sign of a run that has ended, by the class of its stop reason.
    pub fn ended(&self, class: StopClass) -> StateSign {
        match class {
            StopClass::Ok => self.sign(Glyph::Done, "DONE", StyleRole::Done),
            StopClass::Cancelled => self.sign(Glyph::Off, "CANCELLED", StyleRole::Off),
            StopClass::Stopped | StopClass::Budget | StopClass::Unreachable => {
                self.sign(Glyph::Failed, "STOPPED", StyleRole::Failed)
            }
        }
    }

    /// The style of a budget's bar, which warns above 80 %.
    pub fn budget(&self, used: u64, allowed: u64) -> Style {
        let high = u128::from(used) * 5 > u128::from(allowed) * 4;
        self.style(if high { StyleRole::BarHigh } else { StyleRole::Bar })
    }
}
