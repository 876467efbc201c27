//! The two header rows of a run: its identity, then its progress or a notice.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::RunPage;
use super::views::{HeaderNote, TrackRow};
use crate::base::time;
use crate::log::event::{Initiator, ModelLabel, RunClosed};
use crate::log::world::{RunState, World};
use crate::screen::DrawContext;
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::text::{Pen, elide, elide_middle, paint};
use crate::screen::theme::StateSign;
use crate::screen::widgets::bar;
use crate::words::badges::{age_text, run_state};
use crate::words::format;
use crate::words::format::{first_sentence, short_error};
use crate::words::glyph::{Glyph, Glyphs};
use crate::words::measure::columns;
use crate::words::question::waits_for;
use crate::words::sentence::{model_text, places};
use crate::words::styled::StyleRole;
use crate::words::verdict::{RunVerdict, place_after, stop_lead};

/// Maximum width of a runner's name, on a narrow screen and on a wide one.
const MAX_RUNNER: Range<usize> = 12..20;
/// Minimum width of the model's name.
const MIN_MODEL: usize = 24;
/// Minimum width of a shortened cause.
const MIN_CAUSE: usize = 40;
/// Width of the budget's bar, on a narrow screen and on a wide one. It does not change during a run.
const BAR: Range<u16> = 5..8;
/// Columns of the longest state of a live run, so that the parts after it keep their place.
const STATE: usize = "PAUSING".len() + 2;
/// Columns that notes of the second row have next to the progress, which keeps its width during a run.
const NOTE: Range<u16> = 48..72;
/// From this width on they have the larger number.
const WIDE: u16 = 160;

/// A part of the first row. Parts with a high rank are left out first.
struct Piece {
    rank: u8,
    text: String,
    style: Style,
    /// Minimum width, so that the parts after it keep their place while it changes.
    least: usize,
    /// Number of blanks after it.
    gap: u16,
}

impl Piece {
    fn columns(&self) -> usize {
        columns(&self.text).max(self.least)
    }

    fn at_least(self, least: usize) -> Self {
        Self { least, ..self }
    }
}

/// Columns of a budget's text when all of it is used: `msgs 12/12`.
fn columns_when_used(text: &str) -> usize {
    let Some((used, allowed)) = text.rsplit_once('/') else { return 0 };
    let name = used.rsplit_once(' ').map_or(0, |(name, _)| columns(name) + 1);
    name + 2 * columns(allowed) + 1
}

/// Draws the first row: run, pattern, title, state, round, clock, cost, messages, model.
pub fn first_row(page: &RunPage, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let world = page.shown();
    let theme = cx.theme;
    let (dim, plain) = (theme.style(StyleRole::Dim), theme.style(StyleRole::Text));
    let piece = |rank, text: String, style, gap| Piece { rank, text, style, least: 0, gap };
    let head = world.head.as_ref();
    let title = head.map_or("", |head| head.title.as_str());
    let mut pieces = vec![
        piece(6, "roundtable".to_owned(), theme.style(StyleRole::Strong), 1),
        piece(6, cx.glyphs.symbol(Glyph::Vertical).to_owned(), theme.style(StyleRole::Border), 1),
        piece(2, page.id().to_string(), dim, 2),
    ];
    if let Some(head) = head {
        // Of a watched run the name of the model says the same.
        if world.observed().is_none() {
            pieces.push(piece(10, head.plan.name().to_owned(), dim, 2));
        }
        if let Some(forked) = head.launch.as_ref().and_then(|launch| launch.forked.as_ref()) {
            pieces.push(piece(8, format!("fork of {}", forked.parent), dim, 2));
        }
    }
    pieces.push(piece(0, String::new(), theme.style(StyleRole::Strong), 3));
    let state = if page.is_scrubbed() {
        format!("{} REPLAY", cx.glyphs.symbol(Glyph::Playhead))
    } else {
        let sign = sign_of(page, cx);
        format!("{} {}", cx.glyphs.symbol(sign.glyph), sign.word)
    };
    let style =
        if page.is_scrubbed() { theme.style(StyleRole::Playhead) } else { sign_of(page, cx).style };
    pieces.push(piece(1, state, style, 2).at_least(STATE));
    if let Some(kept) = page.kept.as_deref() {
        pieces.push(piece(2, format!("kept, {}", age_text(kept.age_ms(cx.now))), dim, 3));
    }
    if let Some(remote) = page.remote.as_deref() {
        let most = if area.width < 100 { MAX_RUNNER.start } else { MAX_RUNNER.end };
        let runner = elide_middle(&remote.runner, most, cx.glyphs);
        match remote.pid {
            Some(pid) => pieces.push(piece(2, format!("process {pid}"), dim, 3)),
            None if runner.is_empty() => pieces.push(piece(2, "on no runner".to_owned(), dim, 3)),
            None => {
                pieces.push(piece(2, format!("on {runner}"), dim, 3));
                pieces.push(piece(4, remote.ownership(), dim, 3));
            }
        }
    }
    let progress = page.progress();
    if let Some(far) = progress.text {
        pieces.push(piece(3, far, plain, 3));
    }
    let clock = format::clock(world.progress.active(page.time(cx.now)));
    pieces.push(piece(1, clock, plain, 3));
    if let Some(cost) = format::cost(world, cx.glyphs) {
        pieces.push(piece(7, cost, plain, 3));
    }
    // A spending limit is shown in place of messages and is left out last: the operator set it.
    let rank = if progress.spending.is_some() { 2 } else { 5 };
    let budget = progress.spending.or_else(|| {
        let (name, used, allowed) = progress.budget?;
        Some((format!("{name} {used}/{allowed}"), used, allowed))
    });
    if let Some((text, ..)) = &budget {
        pieces.push(piece(rank, text.clone(), plain, 1).at_least(columns_when_used(text)));
        let width = if area.width < 140 { BAR.start } else { BAR.end };
        pieces.push(piece(9, " ".repeat(width.into()), plain, 2));
    }
    // "live" or "scripted" is never left out.
    let who = head.map(|head| &head.model);
    let least_who = who.map_or_else(String::new, |who| model_within(who, MIN_MODEL, cx.glyphs));
    pieces.push(piece(1, least_who.clone(), dim, 0));
    let width = usize::from(area.width.saturating_sub(2));
    let taken = |pieces: &[Piece]| -> usize {
        pieces.iter().map(|piece| piece.columns() + usize::from(piece.gap)).sum()
    };
    // The title gets the remaining width, at least this much.
    let least = (columns(title) + 2).min(16);
    while taken(&pieces) + least > width {
        let most = pieces.iter().map(|piece| piece.rank).max().filter(|rank| *rank > 1);
        let Some(most) = most else { break };
        pieces.retain(|piece| piece.rank != most);
    }
    // Gaps are shortened before the title and the model's name.
    let whole_who = who.map_or(0, |who| columns(&model_text(who)));
    let unnamed = whole_who.saturating_sub(columns(&least_who));
    if taken(&pieces) + columns(title) + 2 + unnamed > width {
        for piece in &mut pieces {
            piece.gap = piece.gap.min(2);
        }
    }
    // The title is shortened before the model's name.
    if let (Some(who), Some(last)) = (who, pieces.last_mut()) {
        last.text.clear();
        let room = width.saturating_sub(taken(&pieces) + least.min(12));
        let text = model_within(who, room.max(columns(&least_who)), cx.glyphs);
        if let Some(last) = pieces.last_mut() {
            last.text = text;
        }
    }
    if !pieces.iter().any(|piece| piece.rank == 9)
        && let Some((text, ..)) = &budget
        && let Some(piece) = pieces.iter_mut().find(|piece| piece.text == *text)
    {
        piece.gap = 2;
    }
    let room = width.saturating_sub(taken(&pieces));
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.space(1);
    for piece in &pieces {
        match piece.rank {
            0 if title.is_empty() => {}
            0 => {
                let title = elide(title, room.saturating_sub(2), cx.glyphs);
                pen.put(&format!("\"{title}\""), piece.style).space(piece.gap);
            }
            9 => {
                if let Some((_, used, allowed)) = budget {
                    bar(cx, &mut pen, used, allowed, piece.text.len() as u16);
                }
                pen.space(piece.gap);
            }
            _ => {
                let end = pen.x().saturating_add(piece.columns() as u16);
                pen.put(&piece.text, piece.style).advance_to(end).space(piece.gap);
            }
        }
    }
}

/// The sign of the state; of a kept run that has not ended, who has it.
fn sign_of(page: &RunPage, cx: &DrawContext) -> StateSign {
    match page.kept.as_deref() {
        Some(kept) if !kept.is_read && !kept.is_elsewhere() => {
            cx.theme.sign(Glyph::Waiting, "READING", StyleRole::Waiting)
        }
        Some(kept) if kept.is_interrupted() || kept.is_elsewhere() => {
            cx.theme.badge(run_state(&kept.row.status))
        }
        _ => cx.theme.run(page.shown()),
    }
}

/// The model in about `width` columns: the name is shortened first, then the host.
fn model_within(label: &ModelLabel, width: usize, glyphs: Glyphs) -> String {
    let whole = model_text(label);
    let ModelLabel::Live { name, host } = label else { return whole };
    if columns(&whole) <= width {
        return whole;
    }
    let (models, hosts) = (name.split(", ").count(), host.split(", ").count());
    if models > 1 {
        let models = format::count_noun(models as u64, "model");
        let both = format!("live {models} @ {}", format::count_noun(hosts as u64, "host"));
        return if columns(&both) <= width { both } else { format!("live {models}") };
    }
    let room = width.saturating_sub(columns("live  @ ") + columns(host));
    if room >= 4 {
        return format!("live {} @ {host}", elide(name, room, glyphs));
    }
    let room = width.saturating_sub(columns("live @ "));
    if room >= 4 {
        return format!("live @ {}", elide_middle(host, room, glyphs));
    }
    "live".to_owned()
}

/// Draws the second row: the run's progress, and a notice at its end. `has_keys`: no window has the keys
/// that the notice names.
pub fn second_row(page: &RunPage, has_keys: bool, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let world = page.shown();
    if world.head.is_none() {
        return;
    }
    let row = Rect { x: area.x + 1.min(area.width), width: area.width.saturating_sub(2), ..area };
    let room = usize::from(row.width);
    let view = page.views.shown();
    if let Some(closed) = closed_now(page) {
        return verdict(page, closed, cx, row, buf);
    }
    let (least, wanted) = view.track_columns(page);
    // The progress keeps its width while notes come and go; where only one of them has room, it has the
    // whole row.
    let note_columns = if row.width < WIDE { NOTE.start } else { NOTE.end };
    let with_note = row.width.saturating_sub(note_columns + 3);
    let track = if with_note >= wanted { with_note } else { row.width };
    let has_bars = wanted < u16::MAX;
    let Some(note) = run_note(page, cx, world).or_else(|| view.note(page, cx)) else {
        let row = TrackRow { area: Rect { width: track, ..row }, free: Some(row.width - track) };
        return view.track(page, cx, row, buf);
    };
    let HeaderNote { text: mut note, role, matters } = note;
    if let Some((short, _)) = note.split_once('\n') {
        // The reason with the advice, or with the pane that shows it.
        let whole = note.replacen('\n', ": ", 1);
        note = if columns(&whole) <= room {
            whole
        } else {
            format!("{short}: see pane {}", view.advice_pane().number())
        };
    }
    // Of an important note only the keys are left out, which the key row has too; the decision rule is
    // shown only if there is room.
    let is_long = has_bars && columns(&note) + usize::from(track) + 3 > room;
    if (is_long || !has_keys)
        && let Some(at) = note.rfind(" (").filter(|_| note.ends_with(')'))
    {
        note.truncate(at);
    }
    let full = columns(&note);
    let width = full.min(room) as u16;
    let left = row.width - width;
    let next_to = match left.checked_sub(3) {
        Some(left) if left >= track => Some(track),
        Some(left) if matters && left >= least => Some(left),
        _ => None,
    };
    if let Some(width) = next_to.or((!matters).then_some(track)) {
        view.track(page, cx, TrackRow { area: Rect { width, ..row }, free: None }, buf);
    }
    if next_to.is_some() || matters {
        let width = if next_to.is_some() { width } else { row.width };
        let at = Rect { x: row.right() - width, width, ..row };
        Pen::new(buf, at, cx.glyphs).put(&note, cx.theme.style(role));
    }
}

/// How the run ended, if it has and the screen shows its end.
fn closed_now(page: &RunPage) -> Option<&RunClosed> {
    let is_unfinished = page.kept.as_deref().is_some_and(|kept| kept.is_interrupted());
    let closed = page.shown().progress.closed.as_deref();
    closed.filter(|_| !page.is_scrubbed() && !is_unfinished)
}

/// Draws the verdict as a bar in its colour: the result with its figures or why the run was stopped, the
/// time and the cost.
fn verdict(page: &RunPage, closed: &RunClosed, cx: &DrawContext, row: Rect, buf: &mut Buffer) {
    let world = page.shown();
    let RunVerdict { glyph, word, role, mut facts, cause, id } = RunVerdict::of_run(world, closed);
    // The longest first.
    let causes = match cause {
        // Of a task that failed, the error may have shorter words.
        Some(cause) => match cause.split_once(" failed: ") {
            Some((task, error)) => {
                let short = format!("{task} failed: {}", short_error(error));
                vec![first_sentence(&cause).to_owned(), short]
            }
            None => vec![cause],
        },
        None => {
            let place = place_after(&word, closed);
            if !closed.reason.is_success() && !place.is_empty() {
                facts.insert(0, place.trim_start().to_owned());
            }
            match world.stop_cause() {
                Some(cause) => {
                    let short = short_error(&cause);
                    vec![cause.to_string(), first_sentence(&cause).to_owned(), short]
                }
                None => world.stop_advice().map(str::to_owned).into_iter().collect(),
            }
        }
    };
    let style = cx.theme.style(role).add_modifier(Modifier::REVERSED | Modifier::BOLD);
    let light = style.remove_modifier(Modifier::BOLD);
    paint(buf, row, light);
    let mut end = time::duration_text(world.progress.active(page.time(cx.now)));
    if let Some(cost) = format::cost(world, cx.glyphs) {
        end = format!("{end}  {cost}");
    }
    let end_columns = u16::try_from(columns(&end)).unwrap_or(u16::MAX).saturating_add(1);
    let left = Rect { width: row.width.saturating_sub(end_columns + 1), ..row };
    let mut pen = Pen::new(buf, left, cx.glyphs);
    pen.space(1).glyph(glyph, style).space(1).put(&word.to_uppercase(), style).space(2);
    let mut text = facts.join(", ");
    if let Some(shortest) = causes.last() {
        let left = usize::from(pen.left());
        let room = left.saturating_sub(columns(&text) + 2);
        let shown = match causes.iter().find(|cause| columns(cause) <= room) {
            Some(cause) => cause.clone(),
            // The cause matters more than the place.
            None if causes.len() > 1 && columns(shortest) <= left => {
                text.clear();
                shortest.clone()
            }
            None if room >= MIN_CAUSE => shortest.clone(),
            None => format!("see pane {}", page.views.shown().advice_pane().number()),
        };
        text = if text.is_empty() { shown } else { format!("{text}: {shown}") };
    }
    pen.put(&text, light);
    if let Some(id) = id.filter(|id| pen.fits(columns(id) + 3)) {
        let dim = light.add_modifier(Modifier::DIM);
        let free = usize::from(pen.left()) - columns(&id);
        pen.space(free as u16 - 1).put(&id, dim);
    }
    let right = Rect { x: row.right().saturating_sub(end_columns), width: end_columns, ..row };
    Pen::new(buf, right.intersection(row), cx.glyphs).put(&end, style);
}

/// The note of the run itself: it is replayed, has stopped, or pauses.
fn run_note(page: &RunPage, cx: &DrawContext, world: &World) -> Option<HeaderNote> {
    let matters = |text: String, role| HeaderNote { text, role, matters: true };
    if page.is_scrubbed() {
        let (facts, all) = (page.shown_event_count(), page.log().len());
        // The state of the run itself, which is not what the screen shows.
        let run = match &page.world().progress.stage {
            RunState::Empty | RunState::Running => ", run continues",
            RunState::Pausing { since: None, .. } => ", run pausing",
            RunState::Pausing { .. } | RunState::Paused { .. } => ", run paused",
            RunState::Closed => "",
        };
        let is_live = page.world().progress.is_live();
        let to = if is_live { "back to now" } else { "back to the end" };
        let (one, other) = (key_of(Action::PauseResume), key_of(Action::Bottom));
        let text = format!("event {facts} of {all}{run} ({one} or {other}: {to})");
        return Some(matters(text, StyleRole::Playhead));
    }
    if page.kept.as_deref().is_some_and(|kept| kept.is_interrupted()) {
        let text = "interrupted: its process ended before the run did".to_owned();
        return Some(matters(text, StyleRole::NeedsYou));
    }
    if let Some(text) = page.remote.as_deref().and_then(|remote| remote.trouble()) {
        return Some(matters(text, StyleRole::NeedsYou));
    }
    Some(match (&world.progress.stage, &world.progress.closed) {
        (RunState::Closed, Some(closed)) if !closed.reason.is_success() => {
            let lead = stop_lead(world, closed);
            let mut text = format!(
                "{} {lead}{}",
                cx.glyphs.symbol(cx.theme.ended(closed.reason.class()).glyph),
                place_after(&lead, closed)
            );
            if let Some(advice) = world.stop_advice() {
                text.push_str(&format!("\n{advice}"));
            }
            let cancelled = closed.reason.class() == crate::log::event::StopClass::Cancelled;
            matters(text, if cancelled { StyleRole::Off } else { StyleRole::Failed })
        }
        (RunState::Paused { at, .. }, _) => {
            let place = match at.is_empty() {
                true => String::new(),
                false => format!(" before {}", places(at, 1)),
            };
            let waits = waits_for(world, page.time(cx.now));
            let waits = waits.map_or_else(String::new, |waits| format!(", {waits}"));
            matters(
                format!(
                    "paused{place}{waits} ({} resume, {} step)",
                    key_of(Action::PauseResume),
                    key_of(Action::Step)
                ),
                StyleRole::Paused,
            )
        }
        (RunState::Pausing { by: Initiator::Store, .. }, _) => {
            let text = "paused: no call starts until the run can be stored".to_owned();
            matters(text, StyleRole::NeedsYou)
        }
        (RunState::Pausing { by: who, .. }, _) => {
            let open = world.tally.open();
            // A step is followed by a pause as well. The operator is not named to the operator.
            let by = match who {
                Initiator::You => String::new(),
                _ => format!(", {}", who.phrase()),
            };
            let text = match open {
                0 => format!("pauses at the next boundary{by}"),
                1 => format!("pauses after 1 call{by}"),
                calls => format!("pauses after {calls} calls{by}"),
            };
            matters(text, StyleRole::Paused)
        }
        (RunState::Running, _) if world.questions.oldest().is_some() => {
            let waits = waits_for(world, page.time(cx.now)).unwrap_or_default();
            let glyph = cx.glyphs.symbol(Glyph::NeedsYou);
            let key = key_of(Action::Inbox);
            matters(format!("{glyph} {waits} ({key}: inbox)"), StyleRole::NeedsYou)
        }
        (RunState::Running, _) if world.settings.pauses_at_next_round => {
            matters("will pause at the next round".to_owned(), StyleRole::Paused)
        }
        _ => return None,
    })
}
