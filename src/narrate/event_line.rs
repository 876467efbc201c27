//! An event as one line: its round, its subject, what happened. The list of events shows it, and
//! filters match against it.

use std::borrow::Cow;

use crate::event::contribution::Stance;
use crate::event::kind::{FailureClass, Initiator, ModelLabel, ReplyEnd};
use crate::narrate::format;
use crate::narrate::style_role::StyleRole;

/// The parts of the line of an event.
#[derive(Clone, Debug, PartialEq)]
pub struct EventLine<'a> {
    /// The round that it belongs to, if any.
    pub round: Option<u32>,
    /// The kind of the event, as in the log.
    pub kind: &'a str,
    /// Its subject: a seat, agent, task, source or flag; empty for the run as a whole.
    pub subject: Cow<'a, str>,
    /// The stance and confidence that it states, if any.
    pub stance: Option<(Stance, f64)>,
    /// What happened.
    pub text: Cow<'a, str>,
    /// How its kind is painted.
    pub tone: StyleRole,
}

impl EventLine<'_> {
    /// The line as text, for copying and for filters by words.
    pub fn line(&self) -> String {
        let mut line = match self.round {
            Some(round) => format!("R{round}"),
            None => "--".to_owned(),
        };
        for part in [self.kind, &self.subject] {
            if !part.is_empty() {
                line.push_str("  ");
                line.push_str(part);
            }
        }
        if let Some((stance, confidence)) = self.stance {
            line.push_str(&format!("  {stance} {}", format::confidence(confidence)));
        }
        if !self.text.is_empty() {
            line.push_str("  ");
            line.push_str(&self.text);
        }
        line
    }
}

/// Who or what caused an event, for the screen.
pub fn actor(by: Initiator) -> &'static str {
    match by {
        Initiator::You => "by you",
        Initiator::Schedule => "by schedule",
        Initiator::Breakpoint => "by a breakpoint",
        Initiator::Suspend => "by suspending",
        Initiator::Store => "by the store",
        Initiator::Remote => "from another machine",
        Initiator::Runner => "by the runner",
    }
}

/// The shortest name of a failure: its HTTP status, else its class.
pub fn failure_name(class: FailureClass, status: Option<u16>) -> Cow<'static, str> {
    match status {
        Some(status) => Cow::Owned(status.to_string()),
        None => Cow::Borrowed(class.phrase()),
    }
}

/// Where a run's model replies come from, for the screen.
pub fn model_text(label: &ModelLabel) -> String {
    match label {
        ModelLabel::Scripted => "scripted".to_owned(),
        ModelLabel::Live { name, host } => format!("live {name} @ {host}"),
    }
}

/// A duration in milliseconds as it is shown: `1.5s`.
pub fn took_ms(millis: u64) -> String {
    format::duration_text(std::time::Duration::from_millis(millis))
}

/// What happened to a reply that is not whole, and to its calls: `cut at its token limit, its 2 calls
/// are not made`. Empty for a whole one.
pub fn cut_reply(end: ReplyEnd, calls: usize) -> String {
    let Some(mark) = end.mark() else { return String::new() };
    match calls {
        0 => mark.to_owned(),
        1 => format!("{mark}, its call is not made"),
        calls => format!("{mark}, its {calls} calls are not made"),
    }
}
