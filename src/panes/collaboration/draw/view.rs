//! The drawing of a collaboration: which pane shows what, the titles, and the second header row.

use crate::app::run::run_view::RunView;
use crate::app::run::run_view::pane_title;
use crate::panes::collaboration::view::CollaborationView;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{calls, rounds, speaker, stances, table, table_middle};
use crate::app::run::data::RunData;
use crate::app::run::layout::Pane;
use crate::narrate::badges;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::Badge;
use crate::ui::cx::DrawContext;
use crate::ui::run::draw_view::{DrawView, HeaderNote, PaneTitle, TrackRow};
use crate::ui::run::speech;

impl DrawView for CollaborationView {
    fn pane(&self, data: &RunData, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => table::render(self, data, cx, area, buf),
            Pane::Second => speech::render(&self.spoken(data), data, cx, area, buf),
            Pane::Third => stances::render(self, data, cx, area, buf),
            Pane::Fourth => calls::render(self, data, cx, area, buf),
            Pane::Events => {}
        }
    }

    fn title(&self, data: &RunData, pane: Pane, cx: &DrawContext, _inside: Rect) -> PaneTitle {
        match pane {
            Pane::Second => PaneTitle::with_sign(speaker::title(self, data, cx)),
            _ => PaneTitle::plain(pane_title(self.titles(), pane)),
        }
    }

    fn track(&self, data: &RunData, cx: &DrawContext, row: TrackRow, buf: &mut Buffer) {
        if let Some(table) = data.shown().collaboration() {
            rounds::render(data, cx, row.area, table, &table.plan, buf);
        }
    }

    fn track_columns(&self, data: &RunData) -> (u16, u16) {
        let most =
            data.shown().collaboration().map_or(0, |table| table.plan.max_rounds.min(3)) as u16;
        ((rounds::BARE * most.max(1)).min(rounds::LEAST), rounds::LEAST * most)
    }

    /// The decision, or the rule for it.
    fn note(&self, data: &RunData, cx: &DrawContext) -> Option<HeaderNote> {
        let table = data.shown().collaboration()?;
        let Some(decision) = table.decision() else {
            let text = table_middle::rule(&table.plan);
            return Some(HeaderNote { text, role: StyleRole::Dim, matters: false });
        };
        let Badge { glyph, word, role } = badges::decision(decision);
        let text = format!("decided {} {word}", cx.glyphs.symbol(glyph));
        Some(HeaderNote { text, role, matters: true })
    }
}
