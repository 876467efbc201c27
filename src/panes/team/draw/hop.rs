//! A hop's state and text.

use std::borrow::Cow;

use crate::agents::projection::{HopKind, HopRow, HopState};
use crate::event::StopReason;
use crate::event::world::World;
use crate::narrate::glyph::Glyph;
use crate::ui::sign::StateSign;
use crate::ui::theme::{StyleRole, Theme};

/// The state of a hop. After the run's end none is running.
pub(crate) fn hop_sign(theme: &Theme, world: &World, hop: &HopRow) -> StateSign {
    match &hop.state {
        HopState::Running if !world.progress.is_live() => {
            theme.sign(Glyph::Off, "stopped", StyleRole::Off)
        }
        HopState::Running => theme.sign(Glyph::Running, "working", StyleRole::Running),
        HopState::Done => theme.sign(Glyph::Done, "done", StyleRole::Done),
        HopState::HandedOver => theme.sign(Glyph::Done, "handed over", StyleRole::Done),
        HopState::Failed(StopReason::Cancelled) => {
            theme.sign(Glyph::Off, "cancelled", StyleRole::Off)
        }
        HopState::Degraded { .. } => theme.sign(Glyph::Alert, "degraded", StyleRole::Retry),
        HopState::Failed(_) => theme.sign(Glyph::Failed, "failed", StyleRole::Failed),
        HopState::Refused(_) => theme.sign(Glyph::Refused, "refused", StyleRole::Refused),
    }
}

/// The text of a hop: why it failed or was refused, else the message with it. What stopped the run is in
/// the last row, so that its hop keeps its message.
pub(crate) fn hop_words<'a>(world: &World, hop: &'a HopRow) -> (Cow<'a, str>, StyleRole) {
    let stop = world.progress.closed.as_ref().map(|closed| &closed.reason);
    match &hop.state {
        HopState::Failed(reason) if stop == Some(reason) => message(hop),
        HopState::Refused(why) => (format!("refused: {why}").into(), StyleRole::Refused),
        HopState::Failed(reason) => {
            let role = match reason {
                StopReason::Cancelled => StyleRole::Off,
                _ => StyleRole::Failed,
            };
            (reason.phrase().into_owned().into(), role)
        }
        HopState::Degraded { by, reason } => {
            (format!("{}; {}", reason.phrase(), by.word()).into(), StyleRole::Retry)
        }
        HopState::Running | HopState::Done | HopState::HandedOver => message(hop),
    }
}

/// The message with a hop.
fn message(hop: &HopRow) -> (Cow<'_, str>, StyleRole) {
    match (hop.message.as_deref(), hop.kind) {
        (Some(text), _) if !text.is_empty() => {
            (start_of(text).replace(['\n', '\r', '\t'], " ").into(), StyleRole::Text)
        }
        (_, HopKind::Start) => ("start".into(), StyleRole::Dim),
        (_, HopKind::Handoff) => ("without a message".into(), StyleRole::Dim),
        (_, HopKind::Consult) => ("".into(), StyleRole::Dim),
    }
}

/// The start of a text, which fills any row.
fn start_of(text: &str) -> &str {
    let end = (0..=text.len().min(1024)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
