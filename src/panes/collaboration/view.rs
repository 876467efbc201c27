//! The view of a collaboration: the selected seat and round, and the scroll position of what is
//! spoken.

use ratatui::layout::Rect;

use super::speaker::{seat_markdown, spoken};
use super::subject::{SeatSubject, followed_subject, off_seats};
use super::table;
use crate::app::action::Action;
use crate::app::run::data::RunData;
use crate::app::run::layout::{Pane, PaneWish, RowWish, inner_columns, window_start};
use crate::app::run::run_view::{PaneAt, RunView};
use crate::app::run::scroll::Scroll;
use crate::app::run::subject_text::{Spoken, rows_scrolled};
use crate::event::SpanId;
use crate::event::world::RunState;
use crate::narrate::measure::columns;
use crate::pattern::collaboration::plan::CollaborationPlan;
use crate::pattern::collaboration::projection::SeatState;

/// Columns of a seat in one round: change mark, stance, confidence, two blanks.
pub const STANCE: u16 = 9;

/// The selected seat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// None: the page follows the current speaker.
    #[default]
    Follow,
    /// A seat of the sequence, from 0.
    Seat(usize),
    /// The model call at the end that composes the answer.
    Finalize,
}

/// Selections and scroll position in the panes of a collaboration.
#[derive(Debug, Default)]
pub struct CollaborationView {
    selection: Selection,
    round: Option<u32>,
    /// First row in view of the speaker's text; `None` follows its newest words.
    scroll: Option<Scroll>,
}

impl CollaborationView {
    /// The selected seat.
    pub fn selection(&self) -> Selection {
        self.selection
    }

    /// The selected round among the stances.
    pub fn selected_round(&self) -> Option<u32> {
        self.round
    }

    /// The subject in the world that is shown.
    pub fn subject(&self, run: &RunData) -> SeatSubject {
        let world = run.shown();
        let Some(table) = world.collaboration() else {
            return match world.progress.stage {
                RunState::Closed => SeatSubject::Outcome,
                _ => SeatSubject::None,
            };
        };
        let current = table.current().map_or(0, |round| round.number);
        match self.selection {
            Selection::Seat(seat) => {
                let round = self.round.unwrap_or(current);
                let there = table.round(round).is_some_and(|round| seat < round.seats.len());
                if there { SeatSubject::Seat { round, seat } } else { SeatSubject::None }
            }
            Selection::Finalize if table.finalize.is_some() => SeatSubject::Finalize,
            Selection::Finalize | Selection::Follow => followed_subject(world, table),
        }
    }

    /// The seat that lists scroll to.
    pub fn selected_seat(&self, run: &RunData) -> usize {
        match self.subject(run) {
            SeatSubject::Seat { seat, .. } => seat,
            _ => 0,
        }
    }

    /// What is spoken.
    pub fn spoken<'a>(&self, run: &'a RunData) -> Spoken<'a> {
        spoken(run, self.subject(run), self.subject_call(run), self.scroll)
    }

    /// Selects a seat, or follows the run.
    fn select(&mut self, selection: Selection) {
        if self.selection != selection {
            self.selection = selection;
            self.scroll = None;
        }
    }

    fn scroll_text(&mut self, run: &RunData, at: PaneAt<'_>, by: isize) {
        if let Some(area) = at.areas.pane(Pane::Second) {
            self.scroll = self.spoken(run).scrolled(by, area);
        }
    }

    fn move_among_seats(&mut self, run: &RunData, focus: Pane, action: Action) {
        let Some(table) = run.shown().collaboration() else { return };
        let seats = table.plan.sequence.len();
        let last_round = table.current().map_or(0, |round| round.number);
        let mut rows: Vec<Selection> = (0..seats).map(Selection::Seat).collect();
        if table.finalize.is_some() {
            rows.push(Selection::Finalize);
        }
        let at = rows.iter().position(|row| *row == self.selection);
        let first = self.selected_seat(run);
        let last = rows.len().saturating_sub(1);
        let step = |by: isize| match at {
            Some(at) => at.saturating_add_signed(by).min(last),
            // The first step selects what is shown now.
            None => first.min(last),
        };
        let pick = |place: usize| rows.get(place).copied().unwrap_or_default();
        let rounds = focus == Pane::Third;
        match action {
            Action::Left | Action::Right if rounds => {
                let from = self.round.unwrap_or(last_round);
                let to = if action == Action::Left { from.saturating_sub(1) } else { from + 1 };
                let to = to.clamp(1, last_round.max(1));
                self.round = (to != last_round).then_some(to);
                self.scroll = None;
                if at.is_none() {
                    self.select(pick(step(0)));
                }
            }
            Action::Up | Action::Left => self.select(pick(step(-1))),
            Action::Down | Action::Right => self.select(pick(step(1))),
            Action::Top | Action::PageUp => self.select(pick(0)),
            Action::Bottom | Action::PageDown => self.select(pick(last)),
            _ => {}
        }
    }
}

impl RunView for CollaborationView {
    fn tabs(&self) -> [&'static str; 4] {
        ["Round table", "Speaker", "Stances", "Calls"]
    }

    fn shows_outcome(&self, run: &RunData) -> bool {
        matches!(self.subject(run), SeatSubject::Outcome)
    }

    fn titles(&self) -> [&'static str; 4] {
        ["Round table", "Speaker", "Stances by round", "Calls"]
    }

    fn layout(&self, run: &RunData, page: Rect) -> PaneWish {
        let plan = run.world().collaboration().map(|table| &*table.plan);
        let rounds = plan.map_or(0, |plan| plan.max_rounds);
        let rounds = u16::try_from(rounds).unwrap_or(u16::MAX).min(40);
        let names = u16::try_from(plan.map_or(0, names)).unwrap_or(u16::MAX).min(30);
        let inner = inner_columns(page);
        let most = inner.saturating_sub(66).min(inner / 2).max(30);
        PaneWish {
            rows: RowWish::Content(plan.map_or(0, |plan| plan.sequence.len())),
            first: (page.width.saturating_mul(57) / 100).clamp(66, 96),
            third: (5 + names + STANCE * rounds).clamp(30, most),
            ended: None,
        }
    }

    fn on_move(&mut self, run: &RunData, at: PaneAt<'_>, action: Action) {
        let text = at.pane == Pane::Second;
        match (rows_scrolled(action, at.area()).filter(|_| text), action) {
            (Some(by), _) => self.scroll_text(run, at, by),
            (None, Action::Left) if text => self.move_among_seats(run, at.pane, Action::Up),
            (None, Action::Right) if text => self.move_among_seats(run, at.pane, Action::Down),
            (None, _) => self.move_among_seats(run, at.pane, action),
        }
    }

    fn on_wheel(&mut self, run: &RunData, at: PaneAt<'_>, by: isize) -> bool {
        if at.pane == Pane::Second {
            self.scroll_text(run, at, by);
        }
        at.pane == Pane::Second
    }

    fn on_click(&mut self, run: &RunData, at: PaneAt<'_>, col: u16, row: u16) {
        let Some(area) = at.area() else { return };
        let seats = run.shown().collaboration().map_or(0, |table| table.plan.sequence.len());
        let first = |rows: u16| window_start(self.selected_seat(run), seats, usize::from(rows));
        let seat = match at.pane {
            Pane::First => {
                let off = run.shown().collaboration().map(off_seats).unwrap_or_default();
                let first = first(table::seats_in_list(area, &off));
                table::seat_at(area, &off, first, col, row)
            }
            Pane::Third | Pane::Fourth => {
                let head = usize::from(at.pane == Pane::Third);
                let first = first(area.height.saturating_sub(1));
                let line = usize::from(row - area.y).checked_sub(head);
                line.map(|line| first + line).filter(|seat| *seat < seats)
            }
            Pane::Second | Pane::Events => None,
        };
        if let Some(seat) = seat {
            self.select(Selection::Seat(seat));
        }
    }

    fn clear_selection(&mut self, with_tool: bool) -> bool {
        if with_tool || (self.selection == Selection::Follow && self.round.is_none()) {
            return false;
        }
        self.select(Selection::Follow);
        self.round = None;
        true
    }

    fn reset_scroll(&mut self) -> bool {
        self.scroll.take().is_some()
    }

    fn subject_call(&self, run: &RunData) -> Option<SpanId> {
        let table = run.shown().collaboration()?;
        match self.subject(run) {
            SeatSubject::Seat { round, seat } => table.round(round)?.seats.get(seat)?.call,
            SeatSubject::Finalize => table.finalize,
            // For the outcome: the call of the brief, else the call that prevented it.
            SeatSubject::Outcome => table.finalize.or_else(|| {
                // A failed seat comes before those that were cancelled because of it.
                let seats = &table.current()?.seats;
                let of =
                    |states: &[SeatState]| seats.iter().find(|seat| states.contains(&seat.state));
                let failed = of(&[SeatState::Refused, SeatState::Failed]);
                failed.or_else(|| of(&[SeatState::Cancelled]))?.call
            }),
            SeatSubject::None => None,
        }
    }

    fn text(&self, run: &RunData, _focus: Pane) -> Option<String> {
        Some(self.spoken(run).to_text())
    }

    fn markdown(&self, run: &RunData, focus: Pane) -> Option<String> {
        let SeatSubject::Seat { round, seat } = self.subject(run) else { return None };
        if focus == Pane::Third {
            return None;
        }
        let seat = run.shown().collaboration()?.round(round)?.seats.get(seat);
        Some(match seat.and_then(|seat| seat.contribution.as_deref()) {
            Some(contribution) => seat_markdown(round, contribution),
            None => self.spoken(run).words.text.into_owned(),
        })
    }
}

/// Columns of the longest name of a seat, with its flag's sign.
fn names(plan: &CollaborationPlan) -> usize {
    let widths = plan.sequence.iter().map(|role| {
        let flag = if plan.role_flags.contains_key(role) { 2 } else { 0 };
        columns(role.as_str()) + flag
    });
    widths.max().unwrap_or(0)
}
