//! Pane 1 of research: the funnel, the budgets, and a row for each source in search order with its
//! status, trust, age and score.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::ResearchView;
use super::items::ItemSign;
use super::steps::FunnelStage;
use crate::base::time::millis;
use crate::log::event::StopClass;
use crate::log::facts::research::{DropReason, ResearchPlan};
use crate::log::world::World;
use crate::log::world::research::{Research, SourceRow, SourceState};
use crate::screen::layout::line;
use crate::screen::list::Column;
use crate::screen::run::data::RunData;
use crate::screen::run::pane_text::text_area;
use crate::screen::text::Pen;
use crate::screen::theme::{StateSign, Theme};
use crate::screen::widgets::{bar, empty};
use crate::screen::{DrawContext, list};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::patterns::research::source::{age_text, source_state, trust};
use crate::words::styled::StyleRole;
use crate::words::verdict::why_stopped;

/// The areas of the sources pane, from top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceParts {
    /// The funnel: one row.
    pub funnel: Rect,
    /// The budgets, one or two rows.
    pub budgets: Rect,
    /// The row of column names.
    pub head: Rect,
    pub rows: Rect,
}

/// From this width on, the budgets fit in one row.
const ONE_ROW: u16 = 104;

/// Divides the rows of the sources pane.
pub fn source_parts(area: Rect) -> SourceParts {
    let wanted = if area.width >= ONE_ROW { 1 } else { 2 };
    let (funnel, budgets, head) = match area.height {
        0 => (0, 0, 0),
        1..=3 => (u16::from(area.height > 1), 0, 0),
        4..=6 => (1, 0, 1),
        _ => (1, wanted, 1),
    };
    let part = |before: u16, height: u16| Rect { y: area.y + before, height, ..area };
    let above = funnel + budgets + head;
    SourceParts {
        funnel: part(0, funnel),
        budgets: part(funnel, budgets),
        head: part(funnel + budgets, head),
        rows: part(above, area.height - above),
    }
}

/// Rows above the text of a page: title, address, age and trust, a gap.
pub const PAGE_HEAD: u16 = 4;

/// Columns left of the text of a page, for the ids of notes whose quotes begin there.
pub const GUTTER: u16 = 4;

/// The area of a page's text in its pane.
pub fn page_text(area: Rect) -> Rect {
    let area = text_area(area);
    let head = match area.height {
        10.. => PAGE_HEAD,
        6..10 => 2,
        3..6 => 1,
        _ => 0,
    };
    let gutter = if area.width >= 24 { GUTTER } else { 0 };
    Rect {
        x: area.x + gutter,
        y: area.y + head,
        width: area.width - gutter,
        height: area.height - head,
    }
}

/// Width of a source's number.
const NUMBER: u16 = 4;
/// Width of a status: room for `read, 2 notes, 1 refused`.
const STATUS: u16 = 25;
/// Width of the trust's figure.
const TRUST: u16 = 5;
/// Width of the trust's bar, which only wide panes show.
const TRUST_BAR: u16 = 5;
/// Width of an age: room for `undated`.
const AGE: u16 = 8;
/// Width of a score and its heading.
const SCORE: u16 = 6;

/// The optional columns, and the widths of the variable ones.
#[derive(Clone, Copy)]
struct SourceColumns {
    figures: bool,
    bar: bool,
    title: u16,
    domain: u16,
}

impl SourceColumns {
    fn for_width(width: u16) -> Self {
        let figures = width >= 66;
        let bar = width >= 104;
        let mut fixed = 3 + NUMBER + STATUS + AGE;
        fixed += if figures { TRUST + SCORE } else { 0 };
        fixed += if bar { TRUST_BAR + 1 } else { 0 };
        let room = width.saturating_sub(fixed);
        let domain = if room >= 44 { (room * 9 / 20).min(30) } else { 0 };
        let title = room.saturating_sub(if domain > 0 { domain + 1 } else { 0 });
        Self { figures, bar, title, domain }
    }
}

pub(crate) fn render(
    view: &ResearchView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let Some(research) = world.research() else { return };
    let plan = &*research.plan;
    let parts = source_parts(area);
    funnel(cx, parts.funnel, world, research, buf);
    budgets(data, cx, parts.budgets, (research, plan), buf);
    if research.sources.is_empty() {
        let rows = Rect { y: parts.head.y, height: parts.head.height + parts.rows.height, ..area };
        let text = match (world.progress.is_live(), research.query.is_some()) {
            (_, true) => "No sources: the search found nothing. Pane 5 has the query.".to_owned(),
            (true, _) => {
                "No sources yet: the search comes first. Pane 3 has the progress.".to_owned()
            }
            (false, _) => format!("No sources: {}.", why_stopped(world)),
        };
        return empty(cx, rows, &text, buf);
    }
    let places = SourceColumns::for_width(area.width);
    head(cx, parts.head, places, buf);
    let (list, selected) = view.source_list(data, area);
    for (at, here) in list.rows() {
        let Some(row) = research.sources.get(at) else { break };
        source_row(cx, here, row, plan, selected == Some(at), places, buf);
    }
}

/// Draws the number of sources at each stage; marks the stage where the run is or was stopped.
fn funnel(cx: &DrawContext, area: Rect, world: &World, research: &Research, buf: &mut Buffer) {
    let theme = cx.theme;
    let (dim, plain) = (theme.style(StyleRole::Dim), theme.style(StyleRole::Text));
    let counts = research.funnel();
    let over_limit = SourceState::Dropped(DropReason::MaxUrls);
    let is_cut = research.sources.iter().any(|row| row.state == over_limit);
    let kept = if is_cut { "within limit" } else { "deduped" };
    let all = [
        (FunnelStage::Found, "found", counts.found),
        (FunnelStage::Deduped, kept, counts.deduped),
        (FunnelStage::Allowed, "allowed", counts.allowed),
        (FunnelStage::Read, "read", counts.read),
        (FunnelStage::Notes, "notes", counts.notes),
        (FunnelStage::Cited, "cited", counts.cited),
    ];
    let current = FunnelStage::current(world, research);
    let (glyph, role) = match world.progress.closed.as_ref().map(|closed| closed.reason.class()) {
        None => (Glyph::Running, StyleRole::Running),
        Some(StopClass::Cancelled) => (Glyph::Off, StyleRole::Off),
        Some(_) => (Glyph::Failed, StyleRole::Failed),
    };
    let wide = |gap: usize| {
        let texts = all.iter().map(|(_, word, count)| columns(word) + 1 + count.to_string().len());
        texts.sum::<usize>() + all.len() * (1 + 2 * gap)
    };
    let gap = u16::from(wide(1) <= usize::from(area.width));
    let mut pen = Pen::new(buf, area, cx.glyphs);
    for (nth, (sieve, word, count)) in all.into_iter().enumerate() {
        let here = current == Some(sieve);
        let later = current.is_some_and(|current| sieve > current);
        pen.space(if nth > 0 { gap } else { 0 });
        match (here, nth) {
            (true, _) => pen.glyph(glyph, theme.style(role)),
            (false, 0) => pen.space(1),
            (false, _) => pen.put_within(cx.glyphs.symbol(Glyph::Right), 1, dim),
        };
        pen.space(gap);
        let style = match (here, later) {
            (true, _) => theme.style(role),
            (_, true) => dim,
            _ => plain,
        };
        pen.put(word, if here { style } else { dim }).space(1).put(&count.to_string(), style);
    }
}

/// Draws the use of each budget.
fn budgets(
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    (research, plan): (&Research, &ResearchPlan),
    buf: &mut Buffer,
) {
    if area.height == 0 {
        return;
    }
    let world = data.shown();
    let active = world.progress.active(data.time(cx.now));
    let spent = u64::try_from(active.as_millis()).unwrap_or(u64::MAX);
    let answer = world.progress.answer.as_ref().map_or(0, |answer| answer.chars().count());
    let kept = research.kept.as_ref().map_or(0, |(kept, _)| kept.len());
    let of = |used: usize, allowed: u32| (used as u64, u64::from(allowed));
    let all = [
        ("time", (spent, millis(plan.budget.max_seconds)), 1_000),
        ("pages", of(research.pages_read(), plan.budget.max_read_pages), 1),
        ("answer", of(answer, plan.budget.max_answer_chars), 1),
        ("urls", of(kept, plan.budget.max_urls), 1),
        ("notes", of(research.notes.len(), plan.budget.max_notes), 1),
    ];
    let in_row = if area.height > 1 { 3 } else { all.len() };
    let cell = area.width / u16::try_from(in_row).unwrap_or(1);
    let (dim, plain) = (cx.theme.style(StyleRole::Dim), cx.theme.style(StyleRole::Text));
    for (nth, (name, (used, allowed), unit)) in all.into_iter().enumerate() {
        let (row, column) = (nth / in_row, nth % in_row);
        let here = line(area, row as u16);
        let here =
            Rect { x: here.x + 1 + cell * column as u16, width: cell.saturating_sub(1), ..here };
        let mut pen = Pen::new(buf, here.intersection(area), cx.glyphs);
        let seconds = if unit > 1 { " s" } else { "" };
        let figures = format!("{}/{}{seconds}", used / unit, allowed / unit);
        pen.cell(name, 7, dim).cell(&figures, 9, plain);
        let room = pen.left().saturating_sub(1).min(10);
        if room >= 3 {
            bar(cx, &mut pen, used, allowed, room);
        }
    }
}

fn head(cx: &DrawContext, area: Rect, places: SourceColumns, buf: &mut Buffer) {
    let figure = |width| if places.figures { width } else { 0 };
    let (title, domain) = (places.title, places.domain);
    let heads = [
        Column::left("#", NUMBER),
        Column::left("status", STATUS),
        Column::left("trust", figure(TRUST + if places.bar { TRUST_BAR + 1 } else { 0 })),
        Column::right("age ", AGE),
        Column::left("score", figure(SCORE)),
        Column::left("title", title + u16::from(domain > 0)),
        if domain > 0 { Column::rest("domain") } else { Column::left("", 0) },
    ];
    list::heads(cx, Pen::new(buf, area, cx.glyphs).space(3), &heads);
}

fn source_row(
    cx: &DrawContext,
    area: Rect,
    row: &SourceRow,
    plan: &ResearchPlan,
    selected: bool,
    places: SourceColumns,
    buf: &mut Buffer,
) {
    let theme = cx.theme;
    let (dim, plain) = (theme.style(StyleRole::Dim), theme.style(StyleRole::Text));
    let sign = source_sign(theme, &row.state);
    let out = row.drop_phrase().is_some();
    let mut pen = list::row_or_blank(cx, area, selected, buf);
    pen.glyph(sign.glyph, sign.style).space(1);
    pen.cell(&row.no.to_string(), NUMBER, if out { dim } else { plain });
    let start = pen.x();
    pen.put_within(&source_state(row), STATUS - 1, sign.style).advance_to(start + STATUS);
    let figure = |stated: Option<f64>| {
        stated.map_or_else(|| cx.glyphs.symbol(Glyph::NotYet).to_owned(), format::confidence)
    };
    if places.figures {
        let trust = trust(row, plan);
        pen.cell(&figure(trust), TRUST, if out { dim } else { plain });
        if places.bar {
            let start = pen.x();
            if let Some(trust) = trust {
                // Not the style of a budget: high trust is not a warning.
                let full = (trust.clamp(0.0, 1.0) * f64::from(TRUST_BAR)).round() as u16;
                let (bar, left) = (theme.style(StyleRole::Bar), theme.style(StyleRole::BarEmpty));
                pen.glyphs(Glyph::BarFull, full, bar).glyphs(
                    Glyph::BarEmpty,
                    TRUST_BAR - full,
                    left,
                );
            }
            pen.advance_to(start + TRUST_BAR + 1);
        }
    }
    let start = pen.x();
    let age = age_text(row, plan);
    let age = if age.is_empty() { cx.glyphs.symbol(Glyph::NotYet) } else { &age };
    pen.right_aligned(age, AGE - 1, dim).advance_to(start + AGE);
    if places.figures {
        pen.cell(&figure(row.found.score), SCORE, dim);
    }
    let style = if out { dim } else { plain };
    pen.cell(row.title(), places.title, style);
    if places.domain > 0 {
        let host = if row.domain.is_empty() { host(&row.found.url) } else { &*row.domain };
        pen.space(1).name(host, places.domain, dim);
    }
}

/// The host part of an invalid address: the text up to the path, without a scheme.
fn host(url: &str) -> &str {
    let after = url.split_once("://").map_or(url, |(_, after)| after);
    after.split(['/', '?', '#']).next().unwrap_or(after)
}

/// The glyph at the start of an item, with its role.
pub(crate) fn lead(lead: ItemSign) -> Option<(Glyph, StyleRole)> {
    Some(match lead {
        ItemSign::None => return None,
        ItemSign::Done => (Glyph::Done, StyleRole::Done),
        ItemSign::Running => (Glyph::Running, StyleRole::Running),
        ItemSign::Waiting => (Glyph::Waiting, StyleRole::Waiting),
        ItemSign::Alert => (Glyph::Alert, StyleRole::Retry),
        ItemSign::Refused => (Glyph::Refused, StyleRole::Refused),
        ItemSign::Failed => (Glyph::Failed, StyleRole::Failed),
        ItemSign::Off => (Glyph::Off, StyleRole::Off),
    })
}

/// The sign of a source's progress.
pub(super) fn source_sign(theme: &Theme, state: &SourceState) -> StateSign {
    match state {
        SourceState::Found => theme.sign(Glyph::Waiting, "found", StyleRole::Waiting),
        SourceState::Waiting => theme.sign(Glyph::Waiting, "waiting", StyleRole::Waiting),
        SourceState::Reading => theme.sign(Glyph::Running, "reading", StyleRole::Running),
        SourceState::Noting => theme.sign(Glyph::Running, "taking notes", StyleRole::Running),
        SourceState::Read { .. } => theme.sign(Glyph::Done, "read", StyleRole::Done),
        SourceState::Denied { .. } => theme.sign(Glyph::Refused, "denied", StyleRole::Refused),
        SourceState::Skipped { .. } => theme.sign(Glyph::Failed, "skipped", StyleRole::Failed),
        SourceState::Dropped(_) => theme.sign(Glyph::Off, "dropped", StyleRole::Off),
        SourceState::NotReached(_) => theme.sign(Glyph::Off, "not reached", StyleRole::Off),
        SourceState::Cancelled => theme.sign(Glyph::Off, "cancelled", StyleRole::Off),
    }
}
