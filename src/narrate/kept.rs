//! A kept run in words: its state, its result, its age.

use super::badges;
use super::glyph::Glyph;
use super::style_role::StyleRole;
use super::styled::Badge;
use crate::event::StopReason;
use crate::event::contribution::Decision;
use crate::event::run_row::RunStatus;

/// The badge of a kept run. A run that is running belongs to another process.
pub fn run_state(status: &RunStatus) -> Badge {
    match status {
        RunStatus::Waiting => Badge::new(Glyph::Waiting, "WAITING", StyleRole::Dim),
        RunStatus::Running => Badge::new(Glyph::Running, "ELSEWHERE", StyleRole::Running),
        RunStatus::Interrupted => Badge::new(Glyph::NeedsYou, "INTERRUPTED", StyleRole::NeedsYou),
        RunStatus::Ended(reason) => badges::ended(StopReason::from(reason.as_str()).class()),
    }
}

/// What the state does not say ([`RunRow::result`](crate::event::run_row::RunRow::result)): the result of a
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
pub fn age(ms: u64) -> String {
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
    fn an_age_has_its_largest_unit() {
        let table = [
            (0, "0s ago"),
            (59_999, "59s ago"),
            (60_000, "1m ago"),
            (7_200_000, "2h ago"),
            (172_800_000, "2d ago"),
        ];
        for (ms, text) in table {
            assert_eq!(age(ms), text);
        }
    }

    #[test]
    fn a_result_says_what_the_state_does_not() {
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
