//! Pane 2 of a collaboration: the title of what is spoken. [`speech`](crate::ui::run::speech) draws
//! the rest.

use super::seat::seat_sign;
use crate::app::run::data::RunData;
use crate::narrate::glyph::Glyph;
use crate::narrate::style_role::StyleRole;
use crate::panes::collaboration::subject::SeatSubject;
use crate::panes::collaboration::view::CollaborationView;
use crate::ui::cx::DrawContext;
use crate::ui::sign::StateSign;

/// Title and state of the speaker's pane.
pub(crate) fn title(
    view: &CollaborationView,
    data: &RunData,
    cx: &DrawContext,
) -> (String, Option<StateSign>) {
    let world = data.shown();
    match (view.subject(data), world.collaboration()) {
        (SeatSubject::Seat { round, seat }, Some(table)) => {
            let seat = table.round(round).and_then(|round| round.seats.get(seat));
            let who = seat.map_or("", |seat| seat.role.as_str());
            (
                format!("{who} {} round {round}", cx.glyphs.symbol(Glyph::Dot)),
                seat.map(|seat| seat_sign(cx, world, Some(seat))),
            )
        }
        (SeatSubject::Finalize, _) => {
            let (glyph, word, role) = match (&world.progress.answer, world.progress.is_live()) {
                (Some(_), _) => (Glyph::Done, "composed", StyleRole::Done),
                (None, true) => (Glyph::Running, "writing", StyleRole::Running),
                (None, false) => (Glyph::Failed, "not written", StyleRole::Failed),
            };
            let style = cx.theme.style(role);
            ("launch brief".to_owned(), Some(StateSign { glyph, word, style }))
        }
        (SeatSubject::Outcome, _) => ("Outcome".to_owned(), Some(cx.theme.run(world))),
        _ => ("Speaker".to_owned(), None),
    }
}
