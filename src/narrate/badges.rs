//! The badge of each state that several patterns have: its glyph, its word and their role.

use super::glyph::Glyph;
use super::style_role::StyleRole;
use super::styled::Badge;
use crate::event::contribution::{Decision, Stance};
use crate::event::stop::StopClass;

/// The badge of a stance.
pub fn stance(stance: Stance) -> Badge {
    match stance {
        Stance::Go => Badge::new(Glyph::Go, "go", StyleRole::Go),
        Stance::Caution => Badge::new(Glyph::Caution, "caution", StyleRole::Caution),
        Stance::Block => Badge::new(Glyph::Block, "block", StyleRole::Block),
    }
}

/// The badge of a decision, which looks like the matching stance.
pub fn decision(decision: Decision) -> Badge {
    let looks_like = match decision {
        Decision::Go => Stance::Go,
        Decision::GoWithCaution => Stance::Caution,
        Decision::NoGo => Stance::Block,
    };
    Badge { word: decision.phrase(), ..stance(looks_like) }
}

/// The badge of a round without a decision.
pub const UNDECIDED: Badge = Badge::new(Glyph::Waiting, "no decision", StyleRole::Undecided);

/// The badge of a level that is one of a traffic light's, which looks like the stance of this severity;
/// other words have none.
pub fn level(word: &str) -> Option<Badge> {
    Some(stance(match word {
        "green" => Stance::Go,
        "yellow" | "amber" | "orange" => Stance::Caution,
        "red" => Stance::Block,
        _ => return None,
    }))
}

/// The badge of a run that has ended, by the class of its stop reason.
pub fn ended(class: StopClass) -> Badge {
    match class {
        StopClass::Ok => Badge::new(Glyph::Done, "DONE", StyleRole::Done),
        StopClass::Cancelled => Badge::new(Glyph::Off, "CANCELLED", StyleRole::Off),
        StopClass::Stopped | StopClass::Budget | StopClass::Unreachable => {
            Badge::new(Glyph::Failed, "STOPPED", StyleRole::Failed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_looks_like_its_stance() {
        for (word, like) in
            [("green", Stance::Go), ("yellow", Stance::Caution), ("red", Stance::Block)]
        {
            assert_eq!(level(word), Some(stance(like)));
        }
        assert_eq!(level("calm"), None);
    }
}
