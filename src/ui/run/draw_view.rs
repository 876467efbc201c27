//! What drawing asks of the view that fills a page's panes: one implementation per folder in
//! `panes/`, found by [`draw_view`](crate::panes::draw::draw_view).

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::run::data::RunData;
use crate::app::run::layout::Pane;
use crate::narrate::style_role::StyleRole;
use crate::ui::cx::DrawContext;
use crate::ui::sign::StateSign;

/// The title of a pane.
#[derive(Debug, Default)]
pub(crate) struct PaneTitle {
    /// The title itself. Its end is cut off where there is no room.
    pub text: String,
    /// The state of what the pane shows, right after the title.
    pub sign: Option<StateSign>,
    /// What follows, such as a model's name: each part only where it fits.
    pub notes: Vec<String>,
    /// The text at the right end, such as the rows in view; it needs room next to the title.
    pub aside: String,
}

impl PaneTitle {
    /// A title and nothing else.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A title and a state.
    pub(crate) fn with_sign((text, sign): (String, Option<StateSign>)) -> Self {
        Self { text, sign, ..Self::default() }
    }
}

/// The text at the end of the second header row.
#[derive(Debug)]
pub(crate) struct HeaderNote {
    /// The text; after a line end its advice.
    pub text: String,
    /// Its style.
    pub role: StyleRole,
    /// Whether it is more important than the progress. If not, it is shown only where there is room.
    pub matters: bool,
}

/// The part of the second header row that the progress may use.
#[derive(Clone, Copy)]
pub(crate) struct TrackRow {
    /// Where it is drawn.
    pub area: Rect,
    /// The free columns after it; `None`: a note shares the row.
    pub free: Option<u16>,
}

/// The drawing of a view.
pub(crate) trait DrawView {
    /// Draws one of the first four panes into the area inside its frame.
    fn pane(&self, data: &RunData, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer);

    /// The title of one of the first four panes, of which `inside` is the area inside the frame.
    fn title(&self, data: &RunData, pane: Pane, cx: &DrawContext, inside: Rect) -> PaneTitle;

    /// Draws the progress into the second header row.
    fn track(&self, data: &RunData, cx: &DrawContext, row: TrackRow, buf: &mut Buffer);

    /// Columns that the progress needs: the minimum, and those for all of it, [`u16::MAX`] if it is text
    /// without bars, which takes what is free.
    fn track_columns(&self, data: &RunData) -> (u16, u16);

    /// The note where the run has none of its own.
    fn note(&self, _data: &RunData, _cx: &DrawContext) -> Option<HeaderNote> {
        None
    }

    /// The pane that explains why a run was stopped.
    fn advice_pane(&self) -> Pane {
        Pane::Second
    }
}
