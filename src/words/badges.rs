//! The badge of each state that several patterns have: its glyph, its word and their role.
//!
//! A kept run in words: its state, its result, its age.

use super::glyph::Glyph;
use super::styled::{Badge, StyleRole};
use crate::log::event::stop::StopClass;
use crate::log::event::{Answer, AnsweredBy, StopReason};
use crate::log::facts::collaboration::Stance;
use crate::log::world::questions::{QuestionEnd, QuestionRow};
use crate::log::world::run_row::RunStatus;
use crate::scenario::patterns::collaboration::Decision;

/// A run in which every branch waits for a person.
pub const WAITS: Badge = Badge::new(Glyph::NeedsYou, "WAITS", StyleRole::NeedsYou);

/// The badge of a question of a run, which is live or has ended.
pub fn question(row: &QuestionRow, is_live: bool) -> Badge {
    let answered = match &row.ended {
        None if is_live => return Badge::new(Glyph::NeedsYou, "waits", StyleRole::NeedsYou),
        None => return Badge::new(Glyph::Off, "stopped", StyleRole::Off),
        Some((_, QuestionEnd::Withdrawn(_))) => {
            return Badge::new(Glyph::Off, "withdrawn", StyleRole::Off);
        }
        Some((_, QuestionEnd::Answered(answered))) => answered,
    };
    match (&answered.by, &answered.answer) {
        (AnsweredBy::Nobody, _) => Badge::new(Glyph::Alert, "not answered", StyleRole::Retry),
        (_, Answer::Deny { .. }) => Badge::new(Glyph::Refused, "denied", StyleRole::Refused),
        _ => Badge::new(Glyph::Done, "answered", StyleRole::Done),
    }
}

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
        StopClass::Stopped | StopClass::Budget | StopClass::Unreachable | StopClass::Waiting => {
            Badge::new(Glyph::Failed, "STOPPED", StyleRole::Failed)
        }
    }
}

/// The badge of a kept run. A run that is running belongs to another process.
pub fn run_state(status: &RunStatus) -> Badge {
    match status {
        RunStatus::Waiting => Badge::new(Glyph::Waiting, "WAITING", StyleRole::Dim),
        RunStatus::Running => Badge::new(Glyph::Running, "ELSEWHERE", StyleRole::Running),
        RunStatus::Interrupted => Badge::new(Glyph::NeedsYou, "INTERRUPTED", StyleRole::NeedsYou),
        RunStatus::Ended(reason) => self::ended(StopReason::from(reason.as_str()).class()),
    }
}

/// What the state does not say ([`RunRow::result`](crate::log::world::run_row::RunRow::result)): the result of a
/// run that completed, or why it stopped. Empty for one that was cancelled or has not ended.
pub fn run_result(status: &RunStatus, result: Option<&str>) -> String {
    match status {
        RunStatus::Ended(reason) if reason == "success" => {
            let result = result.unwrap_or_default();
            let decision = Decision::ALL.into_iter().find(|it| it.word() == result);
            decision.map_or_else(|| result.to_owned(), |it| it.phrase().to_owned())
        }
        RunStatus::Ended(reason) if reason != "cancelled" => {
            let phrase = || StopReason::from(reason.as_str()).phrase().into_owned();
            result.map_or_else(phrase, str::to_owned)
        }
        _ => String::new(),
    }
}

/// How long ago, in its largest unit; `ms` in milliseconds.
pub fn age_text(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..60 => format!("{seconds}s ago"),
        60..3_600 => format!("{}m ago", seconds / 60),
        3_600..172_800 => format!("{}h ago", seconds / 3_600),
        _ => format!("{}d ago", seconds / 86_400),
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

    #[test]
    fn an_age_has_its_largest_unit() {
        let table = [
            (0, "0s ago"),
            (59_999, "59s ago"),
            (60_000, "1m ago"),
            (7_200_000, "2h ago"),
            (172_800_000, "2d ago"),
        ];
        for (ms, text) in table {
            assert_eq!(age_text(ms), text);
        }
    }

    #[test]
    fn result_adds_to_state() {
        let ended = |reason: &str| RunStatus::Ended(reason.to_owned());
        assert_eq!(run_state(&ended("success")).word, "DONE");
        for (result, text) in [
            (None, ""),
            (Some("go_with_caution"), "go with caution"),
            (Some("yellow"), "yellow"),
            (Some("billing_desk"), "billing_desk"),
        ] {
            assert_eq!(run_result(&ended("success"), result), text);
        }
        assert_eq!(run_result(&ended("cancelled"), Some("go")), "");
        assert_eq!(run_state(&ended("max_messages")).word, "STOPPED");
        assert_eq!(run_result(&ended("max_messages"), None), "message limit");
        let refused = run_result(&ended("invalid_json"), Some("ann's reply is not JSON"));
        assert_eq!(refused, "ann's reply is not JSON");
        assert_eq!(run_state(&RunStatus::Interrupted).word, "INTERRUPTED");
    }
}
