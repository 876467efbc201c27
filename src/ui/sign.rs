//! The glyph, word and role of each state.

use ratatui::style::Style;

use super::glyph::Glyph;
use super::theme::{Role, Theme};
use crate::app::run::results::state_word;
use crate::event::contribution::{Decision, Stance};
use crate::event::kind::BreakerStage;
use crate::event::stop::{StopClass, StopReason};
use crate::event::world::collaboration::SeatState;
use crate::event::world::orchestrator::TaskState;
use crate::event::world::research::SourceState;
use crate::event::world::team::{AgentState, HopState};
use crate::event::world::tools::CallMark;
use crate::event::world::{Stage, World};

/// The sign of a state: a glyph and a word, then a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    /// Its glyph.
    pub glyph: Glyph,
    /// Its word.
    pub word: &'static str,
    /// Its style.
    pub style: Style,
}

impl Theme {
    fn sign(&self, glyph: Glyph, word: &'static str, role: Role) -> Sign {
        Sign { glyph, word, style: self.style(role) }
    }

    /// The sign of a stance.
    pub fn stance(&self, stance: Stance) -> Sign {
        match stance {
            Stance::Go => self.sign(Glyph::Go, "go", Role::Go),
            Stance::Caution => self.sign(Glyph::Caution, "caution", Role::Caution),
            Stance::Block => self.sign(Glyph::Block, "block", Role::Block),
        }
    }

    /// The sign of a decision, which looks like the matching stance.
    pub fn decision(&self, decision: Decision) -> Sign {
        match decision {
            Decision::Go => self.sign(Glyph::Go, decision.word(), Role::Go),
            Decision::GoWithCaution => self.sign(Glyph::Caution, decision.word(), Role::Caution),
            Decision::NoGo => self.sign(Glyph::Block, decision.word(), Role::Block),
        }
    }

    /// The sign of a seat's progress.
    pub fn seat(&self, state: SeatState) -> Sign {
        match state {
            SeatState::Waiting => self.sign(Glyph::Waiting, "waiting", Role::Waiting),
            SeatState::Off => self.sign(Glyph::Off, "off", Role::Off),
            SeatState::Speaking => self.sign(Glyph::Running, "speaking", Role::Running),
            SeatState::Retrying => self.sign(Glyph::Retry, "retrying", Role::Retry),
            SeatState::Answered => self.sign(Glyph::Running, "answered", Role::Running),
            SeatState::Accepted => self.sign(Glyph::Done, "accepted", Role::Done),
            SeatState::Refused => self.sign(Glyph::Refused, "refused", Role::Refused),
            SeatState::Failed => self.sign(Glyph::Failed, "failed", Role::Failed),
            SeatState::Cancelled => self.sign(Glyph::Off, "cancelled", Role::Off),
        }
    }

    /// The sign of a task's progress.
    pub fn task(&self, state: TaskState) -> Sign {
        let (glyph, role) = match state {
            TaskState::Waiting => (Glyph::Waiting, Role::Waiting),
            TaskState::Running => (Glyph::Running, Role::Running),
            TaskState::Retrying => (Glyph::Retry, Role::Retry),
            TaskState::Done => (Glyph::Done, Role::Done),
            TaskState::Degraded => (Glyph::Alert, Role::Retry),
            TaskState::Failed => (Glyph::Failed, Role::Failed),
            TaskState::Cancelled => (Glyph::Off, Role::Off),
        };
        self.sign(glyph, state_word(state), role)
    }

    /// The sign of a breaker's state.
    pub fn breaker(&self, stage: BreakerStage) -> Sign {
        match stage {
            BreakerStage::Closed => self.sign(Glyph::Done, "closed", Role::Done),
            BreakerStage::Open => self.sign(Glyph::Refused, "OPEN", Role::Refused),
            BreakerStage::HalfOpen => self.sign(Glyph::HalfOpen, "half-open", Role::Retry),
            BreakerStage::Held => self.sign(Glyph::Refused, "HELD", Role::Refused),
            BreakerStage::Disabled => self.sign(Glyph::Off, "off", Role::Off),
        }
    }

    /// The sign of an attempt's result.
    pub fn mark(&self, mark: CallMark) -> Sign {
        match mark {
            CallMark::Good => self.sign(Glyph::Done, "ok", Role::Done),
            CallMark::Slow => self.sign(Glyph::Slow, "slow", Role::Retry),
            CallMark::Bad => self.sign(Glyph::Failed, "failed", Role::Failed),
            CallMark::Neither => self.sign(Glyph::NotYet, "not counted", Role::Dim),
            CallMark::Refused => self.sign(Glyph::Refused, "refused", Role::Refused),
        }
    }

    /// The sign of an agent in a team.
    pub fn agent(&self, state: AgentState) -> Sign {
        match state {
            AgentState::Idle => self.sign(Glyph::Off, "not used", Role::Off),
            AgentState::Running => self.sign(Glyph::Running, "working", Role::Running),
            AgentState::Done => self.sign(Glyph::Done, "done", Role::Done),
            AgentState::Failed => self.sign(Glyph::Failed, "failed", Role::Failed),
            AgentState::Cancelled => self.sign(Glyph::Off, "cancelled", Role::Off),
        }
    }

    /// The sign of a hop.
    pub fn hop(&self, state: &HopState) -> Sign {
        match state {
            HopState::Running => self.sign(Glyph::Running, "working", Role::Running),
            HopState::Done | HopState::HandedOver => self.sign(Glyph::Done, "done", Role::Done),
            HopState::Failed(StopReason::Cancelled) => {
                self.sign(Glyph::Off, "cancelled", Role::Off)
            }
            HopState::Degraded { .. } => self.sign(Glyph::Alert, "degraded", Role::Retry),
            HopState::Failed(_) => self.sign(Glyph::Failed, "failed", Role::Failed),
            HopState::Refused(_) => self.sign(Glyph::Refused, "refused", Role::Refused),
        }
    }

    /// The sign of a source's progress.
    pub fn source(&self, state: &SourceState) -> Sign {
        match state {
            SourceState::Found => self.sign(Glyph::Waiting, "found", Role::Waiting),
            SourceState::Waiting => self.sign(Glyph::Waiting, "waiting", Role::Waiting),
            SourceState::Reading => self.sign(Glyph::Running, "reading", Role::Running),
            SourceState::Noting => self.sign(Glyph::Running, "taking notes", Role::Running),
            SourceState::Read { .. } => self.sign(Glyph::Done, "read", Role::Done),
            SourceState::Denied { .. } => self.sign(Glyph::Refused, "denied", Role::Refused),
            SourceState::Skipped { .. } => self.sign(Glyph::Failed, "skipped", Role::Failed),
            SourceState::Dropped(_) => self.sign(Glyph::Off, "dropped", Role::Off),
            SourceState::NotReached(_) => self.sign(Glyph::Off, "not reached", Role::Off),
            SourceState::Cancelled => self.sign(Glyph::Off, "cancelled", Role::Off),
        }
    }

    /// The sign of a run's stage.
    pub fn run(&self, world: &World) -> Sign {
        match (&world.stage, &world.closed) {
            (Stage::Empty, _) => self.sign(Glyph::Waiting, "STARTING", Role::Waiting),
            (Stage::Running, _) => self.sign(Glyph::Running, "LIVE", Role::Running),
            (Stage::Pausing { .. }, _) => self.sign(Glyph::Paused, "PAUSING", Role::Paused),
            (Stage::Paused { .. }, _) => self.sign(Glyph::Paused, "PAUSED", Role::Paused),
            (Stage::Closed, None) => self.sign(Glyph::Done, "DONE", Role::Done),
            (Stage::Closed, Some(closed)) => self.ended(closed.reason.class()),
        }
    }

    /// The sign of a run that has ended, by the class of its stop reason.
    pub fn ended(&self, class: StopClass) -> Sign {
        match class {
            StopClass::Ok => self.sign(Glyph::Done, "DONE", Role::Done),
            StopClass::Cancelled => self.sign(Glyph::Off, "CANCELLED", Role::Off),
            StopClass::Stopped | StopClass::Budget | StopClass::Unreachable => {
                self.sign(Glyph::Failed, "STOPPED", Role::Failed)
            }
        }
    }

    /// The style of a budget's bar, which warns above 80 %.
    pub fn budget(&self, used: u64, allowed: u64) -> Style {
        let high = u128::from(used) * 5 > u128::from(allowed) * 4;
        self.style(if high { Role::BarHigh } else { Role::Bar })
    }
}
