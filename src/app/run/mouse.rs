//! What the page makes of the mouse: a click focuses and selects, the wheel scrolls what is under
//! it, a drag on the scrubber scrubs. Nothing here needs a mouse: every key does as much.

use super::layout::{self, Pane, holds};
use super::{Outcome, RunPage, Selection, table};
use crate::app::msg::{Mouse, MouseKind};
use crate::app::state::Size;
use crate::event::Elapsed;

/// Rows that one turn of the wheel moves.
const WHEEL: isize = 3;

impl RunPage {
    /// Answers the mouse.
    pub fn on_mouse(&mut self, mouse: Mouse, size: Size) -> Outcome {
        let Mouse { what, col, row } = mouse;
        if self.inspector.is_some() {
            return self.on_inspector_mouse(mouse, size);
        }
        let areas = self.areas_in(size);
        match what {
            MouseKind::Up => {
                self.dragging = false;
                Outcome::Handled { redraw: false }
            }
            MouseKind::Drag if self.dragging => self.scrub_to(col, size),
            MouseKind::Drag => Outcome::Handled { redraw: false },
            MouseKind::Down if holds(areas.scrubber, col, row) => {
                self.dragging = true;
                self.scrub_to(col, size)
            }
            MouseKind::Down if holds(areas.tabs, col, row) => {
                match layout::tab_at(areas.tabs, self.face(), col) {
                    Some(pane) => {
                        self.focus_on(pane);
                        Outcome::redraw()
                    }
                    None => Outcome::Handled { redraw: false },
                }
            }
            MouseKind::Down => match areas.at(col, row) {
                Some(pane) => {
                    self.focus_on(pane);
                    self.click_in(pane, col, row, size);
                    Outcome::redraw()
                }
                None => Outcome::Handled { redraw: false },
            },
            MouseKind::WheelUp | MouseKind::WheelDown => {
                let by = if what == MouseKind::WheelUp { -WHEEL } else { WHEEL };
                match areas.at(col, row) {
                    Some(Pane::Events) => {
                        let height = self.list_height(&areas);
                        self.list.scroll(by, self.log.len(), height);
                    }
                    Some(Pane::Second) => self.scroll_words(by, &areas),
                    _ => return Outcome::Handled { redraw: false },
                }
                Outcome::redraw()
            }
        }
    }

    fn on_inspector_mouse(&mut self, mouse: Mouse, size: Size) -> Outcome {
        let parts = layout::inspector(layout::page(size));
        let area = parts.text;
        let Some(inspector) = &mut self.inspector else { return Outcome::Ignored };
        match mouse.what {
            MouseKind::WheelUp => inspector.step(-WHEEL, area.width, area.height),
            MouseKind::WheelDown => inspector.step(WHEEL, area.width, area.height),
            MouseKind::Down if holds(parts.tabs, mouse.col, mouse.row) => {
                match layout::inspector_tab_at(parts.tabs, mouse.col) {
                    Some(tab) => inspector.open(tab),
                    None => return Outcome::Handled { redraw: false },
                }
                self.refresh_inspector();
            }
            MouseKind::Down | MouseKind::Drag | MouseKind::Up => {
                return Outcome::Handled { redraw: false };
            }
        }
        Outcome::redraw()
    }

    /// Puts the playhead where the scrubber was hit.
    fn scrub_to(&mut self, col: u16, size: Size) -> Outcome {
        let line = layout::scrubber_line(self.areas_in(size).scrubber);
        if line.width == 0 {
            return Outcome::Handled { redraw: false };
        }
        let col = col.clamp(line.left(), line.right() - 1) - line.left();
        let end = self.world.at.0;
        // The end of the column that was hit: what happened in it has happened.
        let at = (u128::from(end) * u128::from(col + 1) / u128::from(line.width)) as u64;
        if col + 1 == line.width {
            return self.seek(usize::MAX, size);
        }
        self.seek_time(Elapsed(at), size)
    }

    fn click_in(&mut self, pane: Pane, col: u16, row: u16, size: Size) {
        let areas = self.areas_in(size);
        let Some(area) = areas.pane(pane).filter(|area| holds(*area, col, row)) else { return };
        let seats = self.shown().collaboration().map_or(0, |(_, plan)| plan.sequence.len());
        let line = usize::from(row - area.y);
        match pane {
            Pane::Events => {
                let height = self.list_height(&areas);
                let rows = self.list.window(self.log.len(), height);
                if let Some(place) =
                    self.list.place(rows.start + line).filter(|_| line < rows.len())
                {
                    self.list.select(place, self.log.len(), height);
                }
            }
            Pane::Second => {}
            Pane::First => {
                let rows = area.height.saturating_sub(table::LIST_HEAD);
                let first = table::first_seat(self.selected_seat(), seats, usize::from(rows));
                if let Some(seat) = table::seat_at(area, seats, first, col, row) {
                    self.select(Selection::Seat(seat));
                }
            }
            Pane::Third | Pane::Fourth => {
                let head = usize::from(pane == Pane::Third);
                let first = table::first_seat(
                    self.selected_seat(),
                    seats,
                    usize::from(area.height).saturating_sub(1),
                );
                if let Some(seat) = line.checked_sub(head).map(|line| first + line)
                    && seat < seats
                {
                    self.select(Selection::Seat(seat));
                }
            }
        }
    }

    /// The seat that lists keep in view.
    pub fn selected_seat(&self) -> usize {
        match self.subject() {
            super::Subject::Seat { seat, .. } => seat,
            _ => 0,
        }
    }
}
