//! The drawing of an orchestrator: which pane shows what, the titles, and the second header row.

use crate::app::run::run_view::RunView;
use crate::app::run::run_view::pane_title;
use crate::panes::orchestrator::view::OrchestratorView;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::phases::{self, Phases};
use super::{results, slots, task, waterfall};
use crate::app::run::data::RunData;
use crate::app::run::layout::Pane;
use crate::ui::cx::DrawContext;
use crate::ui::run::draw_view::{DrawView, PaneTitle, TrackRow};

impl DrawView for OrchestratorView {
    fn pane(&self, data: &RunData, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => waterfall::render(self, data, cx, area, buf),
            Pane::Second => task::render(self, data, cx, area, buf),
            Pane::Third => results::render(self, data, cx, area, buf),
            Pane::Fourth => slots::render(data, cx, area, buf),
            Pane::Events => {}
        }
    }

    fn title(&self, data: &RunData, pane: Pane, cx: &DrawContext, _inside: Rect) -> PaneTitle {
        match pane {
            Pane::Second => PaneTitle::with_sign(task::title(self, data, cx)),
            _ => PaneTitle::plain(pane_title(self.titles(), pane)),
        }
    }

    fn track(&self, data: &RunData, cx: &DrawContext, row: TrackRow, buf: &mut Buffer) {
        let TrackRow { area: row, free } = row;
        let Some(orchestrator) = data.shown().orchestrator() else { return };
        let phases = Phases::of(data, cx, orchestrator);
        let width = phases::aside_width(orchestrator);
        let all = row.width + free.unwrap_or(0);
        let beside = all.saturating_sub(width + 3);
        if free.is_some() && phases.least_width() <= beside {
            phases.draw(cx, Rect { width: row.width.min(beside), ..row }, buf);
            let aside = Rect { x: row.x + all - width, width, ..row };
            phases::aside(cx, aside, orchestrator, buf);
        } else {
            phases.draw(cx, Rect { width: all, ..row }, buf);
        }
    }

    fn track_columns(&self, _data: &RunData) -> (u16, u16) {
        (48, 48)
    }
}
