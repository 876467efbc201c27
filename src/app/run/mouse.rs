//! The mouse on a run's page: a click focuses and selects, the wheel scrolls what is under it, a
//! drag on the scrubber scrubs. Keys do all of it as well.

use std::time::Duration;

use super::data::RunData;
use super::inspect::Inspector;
use super::layout::{self, Pane};
use super::run_view::PaneAt;
use super::time_track::TimeTrack;
use super::{InputOutcome, RunPage};
use crate::app::layout::{Size, hits};
use crate::app::msg::{Mouse, MouseKind};

/// Rows that one notch of the wheel scrolls.
const WHEEL: isize = 3;

impl RunPage {
    /// Handles a mouse event.
    ///
    /// `now` is the time since the start of the program.
    pub fn on_mouse(&mut self, mouse: Mouse, size: Size, now: Duration) -> InputOutcome {
        let outcome = self.take_mouse(mouse, size, now);
        self.views.refresh(&self.run);
        outcome
    }

    fn take_mouse(&mut self, mouse: Mouse, size: Size, now: Duration) -> InputOutcome {
        let Mouse { kind: what, col, row } = mouse;
        if let Some(inspector) = &mut self.inspector {
            return inspector.on_mouse(&self.run, mouse, size);
        }
        let areas = self.areas_in(size);
        match what {
            MouseKind::Up => {
                self.views.panes.dragging = false;
                InputOutcome::Handled { redraw: false }
            }
            MouseKind::Drag if self.views.panes.dragging => self.scrub_to(col, size, now),
            MouseKind::Drag => InputOutcome::Handled { redraw: false },
            MouseKind::Down if hits(areas.scrubber, col, row) => {
                self.views.panes.dragging = true;
                self.scrub_to(col, size, now)
            }
            MouseKind::Down if hits(areas.tabs, col, row) => {
                match layout::tab_at(areas.tabs, self.views.tabs(&self.run), col) {
                    Some(pane) => {
                        self.views.panes.focus_on(pane);
                        InputOutcome::redraw()
                    }
                    None => InputOutcome::Handled { redraw: false },
                }
            }
            MouseKind::Down => match areas.pane_at(col, row) {
                Some(pane) => {
                    self.views.panes.focus_on(pane);
                    self.click_in(pane, col, row, size);
                    InputOutcome::redraw()
                }
                None => InputOutcome::Handled { redraw: false },
            },
            MouseKind::WheelUp | MouseKind::WheelDown => {
                let by = if what == MouseKind::WheelUp { -WHEEL } else { WHEEL };
                match areas.pane_at(col, row) {
                    Some(Pane::Events) => {
                        let height = self.list_height(&areas);
                        self.list.scroll(by, self.run.log(), height);
                    }
                    Some(pane) => {
                        let view = self.views.shown_mut();
                        if !view.on_wheel(&self.run, PaneAt { pane, areas: &areas }, by) {
                            return InputOutcome::Handled { redraw: false };
                        }
                    }
                    None => return InputOutcome::Handled { redraw: false },
                }
                InputOutcome::redraw()
            }
        }
    }

    /// Moves the playhead to the clicked place of the scrubber.
    fn scrub_to(&mut self, col: u16, size: Size, now: Duration) -> InputOutcome {
        let line = layout::scrubber_line(self.areas_in(size).scrubber);
        if line.width == 0 {
            return InputOutcome::Handled { redraw: false };
        }
        let col = col.clamp(line.left(), line.right() - 1) - line.left();
        if col + 1 == line.width {
            return self.seek(usize::MAX, size);
        }
        // The end of the clicked column, so that everything in it has happened.
        let at = TimeTrack::new(&self.run, self.head_time(now), line).column_end(col);
        self.seek_time(at, size)
    }

    fn click_in(&mut self, pane: Pane, col: u16, row: u16, size: Size) {
        let areas = self.areas_in(size);
        let Some(area) = areas.pane(pane).filter(|area| hits(*area, col, row)) else {
            return;
        };
        if pane != Pane::Events {
            let view = self.views.shown_mut();
            return view.on_click(&self.run, PaneAt { pane, areas: &areas }, col, row);
        }
        let height = self.list_height(&areas);
        let rows = self.list.window(self.run.log(), height);
        let line = row.checked_sub(self.list_area(area).y).map(usize::from);
        if let Some(line) = line.filter(|line| *line < rows.len())
            && let Some(place) = self.list.place(rows.start + line)
        {
            self.list.select(place, self.run.log(), height);
        }
    }
}

impl Inspector {
    /// Handles a mouse event over the inspector.
    fn on_mouse(&mut self, run: &RunData, mouse: Mouse, size: Size) -> InputOutcome {
        let parts = layout::inspector(layout::page(size));
        let area = parts.text;
        match mouse.kind {
            MouseKind::WheelUp => self.step(-WHEEL, area.width, area.height),
            MouseKind::WheelDown => self.step(WHEEL, area.width, area.height),
            MouseKind::Down if hits(parts.tabs, mouse.col, mouse.row) => {
                match layout::inspector_tab_at(parts.tabs, self.callee, mouse.col) {
                    Some(tab) => self.open(tab),
                    None => return InputOutcome::Handled { redraw: false },
                }
                self.refresh(run);
            }
            MouseKind::Down | MouseKind::Drag | MouseKind::Up => {
                return InputOutcome::Handled { redraw: false };
            }
        }
        InputOutcome::redraw()
    }
}
