//! The time axis of a run's page: which column shows which moment. The scrubber and the graphs of
//! the tools have the same one.

use ratatui::layout::Rect;

use crate::app::run::data::RunData;
use crate::event::Elapsed;
use crate::ui::cx::DrawContext;

/// The time range of a track of columns.
#[derive(Clone, Copy)]
pub(crate) struct TimeTrack {
    /// The start of the first column.
    pub from: Elapsed,
    /// The end of the last column.
    pub end: Elapsed,
    /// The columns.
    pub track: Rect,
}

impl TimeTrack {
    /// The time that the scrubber of a page shows, in these columns.
    pub(crate) fn new(data: &RunData, cx: &DrawContext, track: Rect) -> Self {
        Self { from: data.scrubber_start(), end: data.head_time(cx.now), track }
    }

    /// The column of a moment.
    pub(crate) fn column(&self, at: Elapsed) -> u16 {
        let Self { from, end, track } = self;
        let into = |at: Elapsed| at.0.min(end.0).saturating_sub(from.0);
        // Saturates only after centuries of microseconds.
        let nth = into(at).saturating_mul(u64::from(track.width)) / into(*end).max(1);
        let last = u64::from(track.width.saturating_sub(1));
        track.x + u16::try_from(nth.min(last)).unwrap_or(0)
    }

    /// The end of the column with this index.
    pub(crate) fn column_end(&self, nth: u16) -> Elapsed {
        let columns = u64::from(self.track.width).max(1);
        let time = self.end.0.saturating_sub(self.from.0);
        let into = time.saturating_mul(u64::from(nth) + 1) / columns;
        Elapsed(self.from.0.saturating_add(into))
    }
}
