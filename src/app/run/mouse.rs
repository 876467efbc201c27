//! The mouse on a run's page: a click focuses and selects, the wheel scrolls what is under it, a
//! drag on the scrubber scrubs. Keys do all of it as well.

use ratatui::layout::Rect;

use super::layout;
use super::layout::Pane;
use super::{InputOutcome, RunPage, Selection, View, WaterfallRow, results, table, waterfall};
use crate::app::action::Action;
use crate::app::layout::Size;
use crate::app::layout::hits;
use crate::app::msg::{Mouse, MouseKind};
use crate::event::Elapsed;

/// Rows that one notch of the wheel scrolls.
const WHEEL: isize = 3;

impl RunPage {
    /// Handles a mouse event.
    pub fn on_mouse(&mut self, mouse: Mouse, size: Size) -> InputOutcome {
        let outcome = self.take_mouse(mouse, size);
        self.refresh_page_layout();
        outcome
    }

    fn take_mouse(&mut self, mouse: Mouse, size: Size) -> InputOutcome {
        let Mouse { kind: what, col, row } = mouse;
        if self.inspector.is_some() {
            return self.on_inspector_mouse(mouse, size);
        }
        let areas = self.areas_in(size);
        match what {
            MouseKind::Up => {
                self.panes.dragging = false;
                InputOutcome::Handled { redraw: false }
            }
            MouseKind::Drag if self.panes.dragging => self.scrub_to(col, size),
            MouseKind::Drag => InputOutcome::Handled { redraw: false },
            MouseKind::Down if hits(areas.scrubber, col, row) => {
                self.panes.dragging = true;
                self.scrub_to(col, size)
            }
            MouseKind::Down if hits(areas.tabs, col, row) => {
                match layout::tab_at(areas.tabs, self.view(), col) {
                    Some(pane) => {
                        self.focus_on(pane);
                        InputOutcome::redraw()
                    }
                    None => InputOutcome::Handled { redraw: false },
                }
            }
            MouseKind::Down => match areas.pane_at(col, row) {
                Some(pane) => {
                    self.focus_on(pane);
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
                    Some(pane) if self.view() == View::Team => {
                        self.wheel_in_team(pane, by, &areas);
                    }
                    Some(pane) if self.view() == View::Research => {
                        self.wheel_in_research(pane, by, &areas);
                    }
                    Some(Pane::Second) if self.view() != View::Tools => {
                        self.scroll_text(by, &areas);
                    }
                    Some(Pane::First | Pane::Third) if self.view() == View::Orchestrator => {
                        let action = if by < 0 { Action::Up } else { Action::Down };
                        for _ in 0..WHEEL {
                            self.move_in_waterfall(action, &areas);
                        }
                    }
                    _ => return InputOutcome::Handled { redraw: false },
                }
                InputOutcome::redraw()
            }
        }
    }

    fn on_inspector_mouse(&mut self, mouse: Mouse, size: Size) -> InputOutcome {
        let parts = layout::inspector(layout::page(size));
        let area = parts.text;
        let Some(inspector) = &mut self.inspector else { return InputOutcome::Ignored };
        match mouse.kind {
            MouseKind::WheelUp => inspector.step(-WHEEL, area.width, area.height),
            MouseKind::WheelDown => inspector.step(WHEEL, area.width, area.height),
            MouseKind::Down if hits(parts.tabs, mouse.col, mouse.row) => {
                match layout::inspector_tab_at(parts.tabs, inspector.callee, mouse.col) {
                    Some(tab) => inspector.open(tab),
                    None => return InputOutcome::Handled { redraw: false },
                }
                self.refresh_inspector();
            }
            MouseKind::Down | MouseKind::Drag | MouseKind::Up => {
                return InputOutcome::Handled { redraw: false };
            }
        }
        InputOutcome::redraw()
    }

    /// Moves the playhead to the clicked place of the scrubber.
    fn scrub_to(&mut self, col: u16, size: Size) -> InputOutcome {
        let line = layout::scrubber_line(self.areas_in(size).scrubber);
        if line.width == 0 {
            return InputOutcome::Handled { redraw: false };
        }
        let col = col.clamp(line.left(), line.right() - 1) - line.left();
        let from = self.scrubber_start().0;
        let span = u128::from(self.run.world().at.0.saturating_sub(from));
        // The end of the clicked column, so that everything in it has happened.
        let at = from + (span * u128::from(col + 1) / u128::from(line.width)) as u64;
        if col + 1 == line.width {
            return self.seek(usize::MAX, size);
        }
        self.seek_time(Elapsed(at), size)
    }

    fn click_in(&mut self, pane: Pane, col: u16, row: u16, size: Size) {
        let areas = self.areas_in(size);
        let Some(area) = areas.pane(pane).filter(|area| hits(*area, col, row)) else {
            return;
        };
        let seats = self.shown().collaboration().map_or(0, |it| it.plan.sequence.len());
        let line = usize::from(row - area.y);
        match pane {
            Pane::Events => {
                let height = self.list_height(&areas);
                let rows = self.list.window(self.run.log(), height);
                let line = row.checked_sub(self.list_area(area).y).map(usize::from);
                if let Some(line) = line.filter(|line| *line < rows.len())
                    && let Some(place) = self.list.place(rows.start + line)
                {
                    self.list.select(place, self.run.log(), height);
                }
            }
            _ if self.view() == View::Team => self.click_in_team(pane, area, col, row),
            _ if self.view() == View::Research => self.click_in_research(pane, area, row, &areas),
            Pane::Second => {}
            _ if self.view() != View::Collaboration => self.click_on_row(pane, area, line),
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

    /// Selects the clicked row in the view of the orchestrator or of the tools.
    fn click_on_row(&mut self, pane: Pane, area: Rect, line: usize) {
        let first = |place, count, rows: u16| table::first_seat(place, count, usize::from(rows));
        match (self.view(), pane) {
            (View::Orchestrator, Pane::First) => {
                let tasks = self.shown().orchestrator().map_or(0, |it| it.tasks.len());
                let rows = area.height.saturating_sub(waterfall::HEAD);
                let top = first(self.shown_row().index(tasks), WaterfallRow::count(tasks), rows);
                if let Some(row) = line
                    .checked_sub(usize::from(waterfall::HEAD))
                    .and_then(|line| WaterfallRow::from_index(top + line, tasks))
                {
                    self.select_row(Some(row));
                }
            }
            (View::Orchestrator, Pane::Third) => {
                let top = first(self.shown_result(), self.result_count(), area.height);
                if let Some(results::ResultLine::Task(task, _)) = self.result_line(top + line) {
                    self.select_row(Some(WaterfallRow::Task(task)));
                }
            }
            (View::Tools, Pane::First | Pane::Third) => {
                let rows = area.height.saturating_sub(1);
                let top = first(self.tool_at().unwrap_or(0), self.shown().tools.rows().len(), rows);
                if let Some(line) = line.checked_sub(1) {
                    self.select_tool(top + line);
                }
            }
            _ => {}
        }
    }

    /// The seat that lists scroll to.
    pub fn selected_seat(&self) -> usize {
        match self.subject() {
            super::Subject::Seat { seat, .. } => seat,
            _ => 0,
        }
    }
}
