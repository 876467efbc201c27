//! The view of a collaboration: the selected seat and round, and the scroll position of the speaker's
//! text. Its second header row has the rounds.

mod calls;
pub mod seat;
mod speaker;
mod stances;
mod table;
mod table_middle;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::seat::{SeatSubject, followed_subject, off_seats};
use self::speaker::{seat_markdown, text_pane};
use super::{HeaderNote, PaneAt, PaneTitle, TrackRow, View, pane_title};
use crate::base::time;
use crate::log::event::{Boundary, SpanId};
use crate::log::facts::collaboration::CollaborationPlan;
use crate::log::world::RunState;
use crate::log::world::collaboration::{Collaboration, Round, SeatState};
use crate::screen::DrawContext;
use crate::screen::action::Action;
use crate::screen::layout::below;
use crate::screen::list::{ListPane, stepped_index, window_start};
use crate::screen::run::data::RunData;
use crate::screen::run::layout::{Pane, PaneSizes, RowSize, inner_columns};
use crate::screen::run::pane_text::{TextPane, rows_scrolled};
use crate::screen::run::speech;
use crate::screen::scroll::Scroll;
use crate::screen::text::Pen;
use crate::words::badges;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::styled::{Badge, StyleRole};

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
                let waits = |round: u32| {
                    let seat = table.round(round).and_then(|round| round.seats.get(seat));
                    seat.is_some_and(|seat| seat.state == SeatState::Waiting)
                };
                // A waiting seat shows what it said in the round before.
                let last = if current > 1 && waits(current) { current - 1 } else { current };
                let round = self.round.unwrap_or(last);
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

    /// The list of the seats in pane 3, below the rounds, or in pane 4, above the brief and the budgets.
    fn seat_list(&self, run: &RunData, pane: Pane, area: Rect) -> ListPane {
        let table = run.shown().collaboration();
        let has_brief = table.is_some_and(|table| table.finalize.is_some());
        let area = match pane {
            Pane::Third => below(area, 1),
            _ => Rect { height: area.height.saturating_sub(1 + u16::from(has_brief)), ..area },
        };
        let seats = table.map_or(0, |table| table.plan.sequence.len());
        ListPane::new(area, seats, self.selected_seat(run))
    }

    pub fn text_pane<'a>(&self, run: &'a RunData) -> TextPane<'a> {
        text_pane(run, self.subject(run), self.subject_call(run), self.scroll)
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
            self.scroll = self.text_pane(run).scrolled(by, area);
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
        // The first step selects the seat that is shown now.
        let first = self.selected_seat(run);
        let rounds = focus == Pane::Third;
        match action {
            Action::Left | Action::Right if rounds => {
                let from = self.round.unwrap_or(last_round);
                let to = if action == Action::Left { from.saturating_sub(1) } else { from + 1 };
                let to = to.clamp(1, last_round.max(1));
                self.round = (to != last_round).then_some(to);
                self.scroll = None;
                if at.is_none() {
                    let shown = rows.get(first).or(rows.last());
                    self.select(shown.copied().unwrap_or_default());
                }
            }
            _ => {
                if let Some(to) = stepped_index(action, at, first, rows.len()) {
                    self.select(rows[to]);
                }
            }
        }
    }
}

impl View for CollaborationView {
    fn tabs(&self) -> [&'static str; 4] {
        ["Round table", "Speaker", "Stances", "Calls"]
    }

    fn shows_outcome(&self, run: &RunData) -> bool {
        matches!(self.subject(run), SeatSubject::Outcome)
    }

    fn titles(&self) -> [&'static str; 4] {
        ["Round table", "Speaker", "Stances and confidence by round", "Calls"]
    }

    fn layout(&self, run: &RunData, page: Rect) -> PaneSizes {
        let plan = run.world().collaboration().map(|table| &*table.plan);
        let rounds = plan.map_or(0, |plan| plan.budget.max_rounds);
        let rounds = u16::try_from(rounds).unwrap_or(u16::MAX).min(40);
        let names = u16::try_from(plan.map_or(0, names)).unwrap_or(u16::MAX).min(30);
        let inner = inner_columns(page);
        let most = inner.saturating_sub(66).min(inner / 2).max(30);
        PaneSizes {
            rows: RowSize::Content(plan.map_or(0, |plan| plan.sequence.len())),
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
        let seat = match at.pane {
            Pane::First => {
                let off = run.shown().collaboration().map(off_seats).unwrap_or_default();
                let rows = usize::from(table::seats_in_list(area, &off));
                let first = window_start(self.selected_seat(run), off.len(), rows);
                table::seat_at(area, &off, first, col, row)
            }
            Pane::Third | Pane::Fourth => self.seat_list(run, at.pane, area).row_at(row),
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
        Some(self.text_pane(run).to_text())
    }

    fn markdown(&self, run: &RunData, focus: Pane) -> Option<String> {
        let SeatSubject::Seat { round, seat } = self.subject(run) else { return None };
        if focus == Pane::Third {
            return None;
        }
        let seat = run.shown().collaboration()?.round(round)?.seats.get(seat);
        Some(match seat.and_then(|seat| seat.contribution.as_deref()) {
            Some(contribution) => seat_markdown(round, contribution),
            None => self.text_pane(run).words.text.into_owned(),
        })
    }

    fn pane(&self, data: &RunData, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => table::render(self, data, cx, area, buf),
            Pane::Second => speech::render(&self.text_pane(data), data, cx, area, buf),
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
            render(data, cx, row.area, table, &table.plan, buf);
        }
    }

    fn track_columns(&self, data: &RunData) -> (u16, u16) {
        let most =
            data.shown().collaboration().map_or(0, |table| table.plan.budget.max_rounds.min(3))
                as u16;
        ((BARE * most.max(1)).min(MIN_ROUND), MIN_ROUND * most)
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

/// Columns of the longest name of a seat, with its flag's sign.
fn names(plan: &CollaborationPlan) -> usize {
    let widths = plan.sequence.iter().map(|role| {
        let flag = if plan.role_flags.contains_key(role) { 2 } else { 0 };
        columns(role.as_str()) + flag
    });
    widths.max().unwrap_or(0)
}

/// Minimum width of a round with a bar.
pub(crate) const MIN_ROUND: u16 = 16;
/// Minimum width of a round: its number, its glyph, a gap.
const BARE: u16 = 7;

/// Draws the closed, current and future rounds.
pub(crate) fn render(
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    table: &Collaboration,
    plan: &CollaborationPlan,
    buf: &mut Buffer,
) {
    let current = table.current().map_or(0, |round| round.number);
    let last = plan.budget.max_rounds.max(current).max(1);
    // Bars are dropped before rounds are left out.
    let all = last.saturating_mul(u32::from(BARE)) <= u32::from(area.width);
    let fit = if all { last } else { u32::from((area.width / MIN_ROUND).max(1)).min(last) };
    // The current round, the next one, and as many earlier ones as fit.
    let from = current.max(1).saturating_sub(fit.saturating_sub(2)).clamp(1, last - fit + 1);
    let to = from + fit - 1;
    let mut pen = Pen::new(buf, area, cx.glyphs);
    let dim = cx.theme.style(StyleRole::Dim);
    if from > 1 {
        pen.glyph(Glyph::Ellipsis, dim).space(1);
    }
    let brief = data.shown().settings.breakpoints.contains(&Boundary::Finalize.id());
    let tail = if to < last { 2 } else { 0 } + if brief { 9 } else { 0 };
    let share = pen.left().saturating_sub(tail) / u16::try_from(fit).unwrap_or(u16::MAX).max(1);
    for number in from..=to {
        let end = pen.x() + share;
        one_round(data, cx, &mut pen, number, table.round(number), end);
        pen.advance_to(end);
    }
    if to < last {
        pen.glyph(Glyph::Ellipsis, dim);
    }
    if brief {
        pen.space(1).glyph(Glyph::Breakpoint, cx.theme.style(StyleRole::Paused));
        pen.put(" brief", cx.theme.style(StyleRole::Text));
    }
}

fn one_round(
    data: &RunData,
    cx: &DrawContext,
    pen: &mut Pen,
    number: u32,
    round: Option<&Round>,
    end: u16,
) {
    let theme = cx.theme;
    let live = data.shown().progress.is_live();
    let paused = matches!(data.shown().progress.stage, RunState::Paused { .. });
    let table = data.shown().collaboration();
    // After a decision no round follows.
    let is_over = !live || table.is_some_and(|table| table.decision().is_some());
    let (glyph, role, text) = match round {
        None if is_over => (Glyph::Off, StyleRole::Off, String::new()),
        None => (Glyph::Waiting, StyleRole::Waiting, String::new()),
        Some(round) => match round.closed {
            Some(closed) => {
                let took = data.shown().progress.active_between(round.opened, closed);
                (Glyph::Done, StyleRole::Done, time::duration_text(took))
            }
            None => {
                let (came, asked) = (round.contributions().count(), round.asked_seats());
                let long = format!("{came} of {asked} accepted");
                let fits = columns(&long) + 8 <= usize::from(end.saturating_sub(pen.x()));
                let text = if fits { long } else { format!("{came}/{asked}") };
                match (live, paused) {
                    (true, false) => (Glyph::Running, StyleRole::Running, text),
                    (true, true) => (Glyph::Paused, StyleRole::Paused, text),
                    (false, _) => (Glyph::Failed, StyleRole::Failed, text),
                }
            }
        },
    };
    let style = theme.style(role);
    pen.put(&format!("R{number} "), theme.style(StyleRole::Text));
    pen.glyph(glyph, style).space(1);
    let left = |pen: &Pen| end.saturating_sub(pen.x() + 2);
    // A breakpoint is always shown, even if the bar gets shorter.
    let at = Boundary::Round(number).id();
    if round.is_none() && !is_over && data.shown().settings.breakpoints.contains(&at) {
        let word = format!("{} break", cx.glyphs.symbol(Glyph::Breakpoint));
        let fits = columns(&word) as u16 <= left(pen) + 1;
        let word = if fits { &word } else { cx.glyphs.symbol(Glyph::Breakpoint) };
        pen.put(word, theme.style(StyleRole::Paused)).space(1);
    }
    if !text.is_empty() && columns(&text) as u16 + 3 <= left(pen) {
        pen.put(&text, style).space(1);
    }
    let width = left(pen);
    let empty = theme.style(StyleRole::TrackEmpty);
    match round {
        None if is_over => pen,
        None => pen.glyphs(Glyph::TrackEmpty, width, empty),
        Some(round) if round.closed.is_some() => {
            pen.glyphs(Glyph::TrackFull, width, theme.style(StyleRole::Track))
        }
        Some(round) => {
            let (came, asked) = (round.contributions().count(), round.asked_seats().max(1));
            let full = (usize::from(width) * came / asked).min(usize::from(width)) as u16;
            let tip = u16::from(full < width);
            let now = theme.style(if live { StyleRole::TrackNow } else { StyleRole::Failed });
            pen.glyphs(Glyph::TrackFull, full, now).glyphs(Glyph::TrackTip, tip, now);
            pen.glyphs(Glyph::TrackEmpty, width - full - tip, empty)
        }
    };
}
