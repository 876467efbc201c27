//! The badges of a collaboration's states.

use crate::narrate::glyph::Glyph;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::Badge;
use crate::pattern::collaboration::projection::SeatState;

/// The badge of a seat's progress.
pub fn seat_badge(state: SeatState) -> Badge {
    match state {
        SeatState::Waiting => Badge::new(Glyph::Waiting, "waiting", StyleRole::Waiting),
        SeatState::Off => Badge::new(Glyph::Off, "off", StyleRole::Off),
        SeatState::Speaking => Badge::new(Glyph::Running, "speaking", StyleRole::Running),
        SeatState::Retrying => Badge::new(Glyph::Retry, "retrying", StyleRole::Retry),
        SeatState::Answered => Badge::new(Glyph::Running, "answered", StyleRole::Running),
        SeatState::Accepted => Badge::new(Glyph::Done, "accepted", StyleRole::Done),
        SeatState::Refused => Badge::new(Glyph::Refused, "refused", StyleRole::Refused),
        SeatState::Failed => Badge::new(Glyph::Failed, "failed", StyleRole::Failed),
        SeatState::Unused => Badge::new(Glyph::Off, "not used", StyleRole::Off),
        SeatState::Cancelled => Badge::new(Glyph::Off, "cancelled", StyleRole::Off),
    }
}
