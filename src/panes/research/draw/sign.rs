//! The state of a source, and the glyph at the start of an item.

use crate::narrate::glyph::Glyph;
use crate::narrate::style_role::StyleRole;
use crate::panes::research::item::ItemSign;
use crate::pattern::research::projection::SourceState;
use crate::ui::sign::StateSign;
use crate::ui::theme::Theme;

/// The glyph at the start of an item, with its role.
pub(crate) fn lead(lead: ItemSign) -> Option<(Glyph, StyleRole)> {
    Some(match lead {
        ItemSign::None => return None,
        ItemSign::Done => (Glyph::Done, StyleRole::Done),
        ItemSign::Running => (Glyph::Running, StyleRole::Running),
        ItemSign::Waiting => (Glyph::Waiting, StyleRole::Waiting),
        ItemSign::Alert => (Glyph::Alert, StyleRole::Retry),
        ItemSign::Refused => (Glyph::Refused, StyleRole::Refused),
        ItemSign::Failed => (Glyph::Failed, StyleRole::Failed),
        ItemSign::Off => (Glyph::Off, StyleRole::Off),
    })
}

/// The sign of a source's progress.
pub(crate) fn source_sign(theme: &Theme, state: &SourceState) -> StateSign {
    match state {
        SourceState::Found => theme.sign(Glyph::Waiting, "found", StyleRole::Waiting),
        SourceState::Waiting => theme.sign(Glyph::Waiting, "waiting", StyleRole::Waiting),
        SourceState::Reading => theme.sign(Glyph::Running, "reading", StyleRole::Running),
        SourceState::Noting => theme.sign(Glyph::Running, "taking notes", StyleRole::Running),
        SourceState::Read { .. } => theme.sign(Glyph::Done, "read", StyleRole::Done),
        SourceState::Denied { .. } => theme.sign(Glyph::Refused, "denied", StyleRole::Refused),
        SourceState::Skipped { .. } => theme.sign(Glyph::Failed, "skipped", StyleRole::Failed),
        SourceState::Dropped(_) => theme.sign(Glyph::Off, "dropped", StyleRole::Off),
        SourceState::NotReached(_) => theme.sign(Glyph::Off, "not reached", StyleRole::Off),
        SourceState::Cancelled => theme.sign(Glyph::Off, "cancelled", StyleRole::Off),
    }
}
