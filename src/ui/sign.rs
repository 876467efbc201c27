//! The glyph, word and role of each state.

use ratatui::style::Style;

use super::theme::{StyleRole, Theme};
use crate::event::contribution::{Decision, Stance};
use crate::event::kind::BreakerStage;
use crate::event::run_row::RunStatus;
use crate::event::stop::StopClass;
use crate::event::world::tool_row::CallMark;
use crate::event::world::{RunState, World};
use crate::narrate::badges;
use crate::narrate::glyph::Glyph;
use crate::narrate::kept::run_state;
use crate::narrate::styled::Badge;

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
    /// The sign with this glyph and word in the style of this role.
    pub(crate) fn sign(&self, glyph: Glyph, word: &'static str, role: StyleRole) -> StateSign {
        StateSign { glyph, word, style: self.style(role) }
    }

    /// The sign of a badge.
    pub fn badge(&self, badge: Badge) -> StateSign {
        self.sign(badge.glyph, badge.word, badge.role)
    }

    /// The sign of a stance.
    pub fn stance(&self, stance: Stance) -> StateSign {
        self.badge(badges::stance(stance))
    }

    /// The sign of a decision, which looks like the matching stance.
    pub fn decision(&self, decision: Decision) -> StateSign {
        self.badge(badges::decision(decision))
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

    /// The sign of a run's stage.
    pub fn run(&self, world: &World) -> StateSign {
        match (&world.progress.stage, &world.progress.closed) {
            (RunState::Empty, _) => self.sign(Glyph::Waiting, "STARTING", StyleRole::Waiting),
            (RunState::Running, _) => self.sign(Glyph::Running, "LIVE", StyleRole::Running),
            (RunState::Pausing { since: None, .. }, _) => {
                self.sign(Glyph::Paused, "PAUSING", StyleRole::Paused)
            }
            (RunState::Pausing { .. } | RunState::Paused { .. }, _) => {
                self.sign(Glyph::Paused, "PAUSED", StyleRole::Paused)
            }
            // Only the log of an interrupted run is over without an end.
            (RunState::Closed, None) => self.badge(run_state(&RunStatus::Interrupted)),
            (RunState::Closed, Some(closed)) => self.ended(closed.reason.class()),
        }
    }

    /// The sign of a run that has ended, by the class of its stop reason.
    pub fn ended(&self, class: StopClass) -> StateSign {
        self.badge(badges::ended(class))
    }

    /// The style of a budget's bar, which warns above 80 %.
    pub fn budget(&self, used: u64, allowed: u64) -> Style {
        let high = u128::from(used) * 5 > u128::from(allowed) * 4;
        self.style(if high { StyleRole::BarHigh } else { StyleRole::Bar })
    }
}
