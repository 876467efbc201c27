//! News for the status row. Nothing is lost in silence: what is covered by later news comes back
//! when that is gone, and errors stay until a person has dismissed them.

use std::collections::VecDeque;
use std::time::Duration;

/// How long good news stays.
const STAYS: Duration = Duration::from_secs(6);
/// The most that is kept; further ones are counted.
const KEPT: usize = 64;

/// A line of news.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// When it came, since the start of the program.
    pub at: Duration,
    /// What kind of news.
    pub kind: NoticeKind,
    /// What.
    pub text: String,
}

/// What kind of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// Good to know; goes by itself.
    Info,
    /// Something failed; stays until it is dismissed.
    Error,
    /// The launch form was not started; goes when the form is edited, started or closed.
    Form,
}

/// The news that has not gone yet, the newest last.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    list: VecDeque<Notice>,
    left_out: u64,
}

impl Notices {
    /// Adds news. The same news again only takes the newer time.
    pub fn say(&mut self, at: Duration, kind: NoticeKind, text: String) {
        self.list.retain(|notice| notice.kind != kind || notice.text != text);
        self.list.push_back(Notice { at, kind, text });
        if self.list.len() > KEPT {
            self.list.pop_front();
            self.left_out += 1;
        }
    }

    /// What the status row says.
    pub fn current(&self) -> Option<&Notice> {
        self.list.back()
    }

    /// How many more there are behind it, those that were not kept included.
    pub fn behind(&self) -> u64 {
        (self.list.len() as u64).saturating_sub(1) + self.left_out
    }

    /// Takes the current one away; says whether there was one.
    pub fn dismiss(&mut self) -> bool {
        let was = self.list.pop_back().is_some();
        if self.list.is_empty() {
            self.left_out = 0;
        }
        was
    }

    /// Takes away what has stayed long enough; says whether anything went.
    pub fn expire(&mut self, now: Duration) -> bool {
        let before = self.list.len();
        self.list.retain(|notice| {
            notice.kind != NoticeKind::Info || now.saturating_sub(notice.at) < STAYS
        });
        self.list.len() != before
    }

    /// Takes away all news of a kind; says whether there was any.
    pub fn forget(&mut self, kind: NoticeKind) -> bool {
        let before = self.list.len();
        self.list.retain(|notice| notice.kind != kind);
        if self.list.is_empty() {
            self.left_out = 0;
        }
        self.list.len() != before
    }

    /// Takes away news that is not so any more; says whether it was there.
    pub fn withdraw(&mut self, text: &str) -> bool {
        let before = self.list.len();
        self.list.retain(|notice| notice.text != text);
        self.list.len() != before
    }

    /// How long until something goes by itself.
    pub fn next_expiry(&self, now: Duration) -> Option<Duration> {
        self.list
            .iter()
            .filter(|notice| notice.kind == NoticeKind::Info)
            .map(|notice| (notice.at + STAYS).saturating_sub(now))
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_error_comes_back_when_the_news_over_it_has_gone() {
        let mut notices = Notices::default();
        notices.say(Duration::ZERO, NoticeKind::Error, "broken".into());
        notices.say(SECOND, NoticeKind::Info, "copied".into());
        assert_eq!(notices.current().map(|n| n.text.as_str()), Some("copied"));
        assert_eq!(notices.behind(), 1);
        assert_eq!(notices.next_expiry(SECOND * 2), Some(SECOND * 5));
        assert!(notices.expire(SECOND * 7));
        assert_eq!(notices.current().map(|n| n.text.as_str()), Some("broken"));
        assert!(!notices.expire(SECOND * 700), "errors stay");
        assert!(notices.dismiss());
        assert!(!notices.dismiss());
    }

    #[test]
    fn one_kind_is_forgotten_and_the_others_stay() {
        let mut notices = Notices::default();
        notices.say(SECOND, NoticeKind::Form, "not started".into());
        notices.say(SECOND, NoticeKind::Error, "broken".into());
        assert!(!notices.expire(SECOND * 700), "neither goes by itself");
        assert!(notices.forget(NoticeKind::Form));
        assert!(!notices.forget(NoticeKind::Form));
        assert_eq!(notices.current().map(|n| n.text.as_str()), Some("broken"));
        assert_eq!(notices.behind(), 0);
    }

    #[test]
    fn what_is_not_kept_is_counted() {
        let mut notices = Notices::default();
        for number in 0..KEPT + 3 {
            notices.say(SECOND, NoticeKind::Error, number.to_string());
        }
        assert_eq!(notices.behind(), KEPT as u64 + 2);
        notices.say(SECOND, NoticeKind::Error, "again".into());
        let behind = notices.behind();
        notices.say(SECOND * 2, NoticeKind::Error, "again".into());
        assert_eq!(notices.behind(), behind, "the same news is one row");
    }
}
