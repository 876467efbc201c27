//! Notices for the status row. News replaces older news, and belongs to a screen: it goes when that screen
//! is left. Errors stay until the operator dismisses them: one that is covered is shown again when the news
//! over it goes.

use std::collections::VecDeque;
use std::time::Duration;

/// Notice after a manual change while the playhead is in the past.
pub(super) const ACTS_ON_LIVE_RUN: &str = "This acts on the run as it is now, not at the playhead.";

/// How long an [`Info`](NoticeKind::Info) notice stays.
const INFO_LIFETIME: Duration = Duration::from_secs(6);
/// Maximum number of notices that are kept; older ones are only counted.
const MAX_NOTICES: usize = 64;

/// One notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// When it was made, as time since the start of the program.
    pub at: Duration,
    /// Its kind, which decides how long it stays.
    pub kind: NoticeKind,
    pub text: String,
}

/// The kind of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// News; disappears after some seconds, and when its screen is left.
    Info,
    /// Something failed; stays until dismissed.
    Error,
    /// The launch form was not started; disappears when the form is edited, started or closed.
    Form,
}

/// The notices that are still shown, the newest last.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    list: VecDeque<Notice>,
    dropped: u64,
    /// Whether the newest news was added since the last [`settle`](Self::settle).
    has_news: bool,
}

impl Notices {
    /// Adds a notice. News replaces older news; the same error again only gets the newer time.
    pub fn add(&mut self, at: Duration, kind: NoticeKind, text: String) {
        let is_news = kind == NoticeKind::Info;
        self.has_news |= is_news;
        self.list.retain(|notice| notice.kind != kind || (!is_news && notice.text != text));
        self.list.push_back(Notice { at, kind, text });
        if self.list.len() > MAX_NOTICES {
            self.list.pop_front();
            self.dropped += 1;
        }
    }

    /// The notice that the status row shows.
    pub fn current(&self) -> Option<&Notice> {
        self.list.back()
    }

    /// How many more there are behind it, the dropped ones included.
    pub fn hidden_count(&self) -> u64 {
        (self.list.len() as u64).saturating_sub(1) + self.dropped
    }

    /// Takes all of them, the newest last: a reader of lines has seen them then.
    pub(crate) fn take(&mut self) -> Vec<Notice> {
        self.dropped = 0;
        std::mem::take(&mut self.list).into()
    }

    /// Removes the current one; returns whether there was one.
    pub fn dismiss(&mut self) -> bool {
        let was = self.list.pop_back().is_some();
        if self.list.is_empty() {
            self.dropped = 0;
        }
        was
    }

    /// Removes those whose time is up; returns whether there were any.
    pub fn expire(&mut self, now: Duration) -> bool {
        let before = self.list.len();
        self.list.retain(|notice| {
            notice.kind != NoticeKind::Info || now.saturating_sub(notice.at) < INFO_LIFETIME
        });
        self.list.len() != before
    }

    /// Ends the handling of a message. If it led to another screen, news of the one before goes; news of
    /// this message stays. Returns whether any went.
    pub fn settle(&mut self, is_other_screen: bool) -> bool {
        let has_news = std::mem::take(&mut self.has_news);
        is_other_screen && !has_news && self.remove_kind(NoticeKind::Info)
    }

    /// Removes all notices of a kind; returns whether there were any.
    pub fn remove_kind(&mut self, kind: NoticeKind) -> bool {
        let before = self.list.len();
        self.list.retain(|notice| notice.kind != kind);
        if self.list.is_empty() {
            self.dropped = 0;
        }
        self.list.len() != before
    }

    /// Removes a notice that is no longer true; returns whether it was there.
    pub fn remove_text(&mut self, text: &str) -> bool {
        let before = self.list.len();
        self.list.retain(|notice| notice.text != text);
        self.list.len() != before
    }

    /// Time until the next notice disappears.
    pub fn next_expiry(&self, now: Duration) -> Option<Duration> {
        self.list
            .iter()
            .filter(|notice| notice.kind == NoticeKind::Info)
            .map(|notice| (notice.at + INFO_LIFETIME).saturating_sub(now))
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn error_returns_after_newer_notice_expires() {
        let mut notices = Notices::default();
        notices.add(Duration::ZERO, NoticeKind::Error, "broken".into());
        notices.add(SECOND, NoticeKind::Info, "copied".into());
        assert_eq!(notices.current().map(|n| n.text.as_str()), Some("copied"));
        assert_eq!(notices.hidden_count(), 1);
        assert_eq!(notices.next_expiry(SECOND * 2), Some(SECOND * 5));
        assert!(notices.expire(SECOND * 7));
        assert_eq!(notices.current().map(|n| n.text.as_str()), Some("broken"));
        assert!(!notices.expire(SECOND * 700), "errors stay");
        assert!(notices.dismiss());
        assert!(!notices.dismiss());
    }

    #[test]
    fn news_goes_with_its_screen() {
        let mut notices = Notices::default();
        let shown = |notices: &Notices| notices.current().map(|notice| notice.text.clone());
        notices.add(SECOND, NoticeKind::Error, "broken".into());
        notices.add(SECOND, NoticeKind::Info, "w does nothing here".into());
        assert!(!notices.settle(false), "the screen stays");
        assert!(notices.settle(true));
        assert_eq!(shown(&notices).as_deref(), Some("broken"));
        notices.add(SECOND, NoticeKind::Info, "r-1 is paused".into());
        assert!(!notices.settle(true), "said by what led to the other screen");
        assert_eq!(shown(&notices).as_deref(), Some("r-1 is paused"));
    }

    #[test]
    fn news_replaces_older_news() {
        let mut notices = Notices::default();
        for text in ["copied", "reloaded", "marked"] {
            notices.add(SECOND, NoticeKind::Info, text.into());
        }
        assert_eq!(notices.current().map(|n| n.text.as_str()), Some("marked"));
        assert_eq!(notices.hidden_count(), 0);
    }

    #[test]
    fn clears_one_kind_and_keeps_others() {
        let mut notices = Notices::default();
        notices.add(SECOND, NoticeKind::Form, "not started".into());
        notices.add(SECOND, NoticeKind::Error, "broken".into());
        assert!(!notices.expire(SECOND * 700), "neither goes by itself");
        assert!(notices.remove_kind(NoticeKind::Form));
        assert!(!notices.remove_kind(NoticeKind::Form));
        assert_eq!(notices.current().map(|n| n.text.as_str()), Some("broken"));
        assert_eq!(notices.hidden_count(), 0);
    }

    #[test]
    fn what_is_not_kept_is_counted() {
        let mut notices = Notices::default();
        for number in 0..MAX_NOTICES + 3 {
            notices.add(SECOND, NoticeKind::Error, number.to_string());
        }
        assert_eq!(notices.hidden_count(), MAX_NOTICES as u64 + 2);
        notices.add(SECOND, NoticeKind::Error, "again".into());
        let behind = notices.hidden_count();
        notices.add(SECOND * 2, NoticeKind::Error, "again".into());
        assert_eq!(notices.hidden_count(), behind, "the same news is one row");
    }
}
