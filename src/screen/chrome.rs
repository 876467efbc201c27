//! The frame of every screen: the header rows, the status row, the key row and the title of the
//! terminal's window.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::comparison::AwaitedComparison;
use super::key_hints::{HINT_GAP, fitting_hints};
use super::notice::NoticeKind;
use super::questions::open_questions;
use super::run::RunPage;
use super::text::Pen;
use super::theme::Theme;
use super::windows::Overlay;
use super::{AppState, DrawContext, run, text};
use crate::base::visible::visible_within;
use crate::log::event::stop::StopClass;
use crate::log::world::RunState;
use crate::words::format;
use crate::words::glyph::{Glyph, Glyphs};
use crate::words::measure::columns;
use crate::words::styled::StyleRole;

pub use super::layout::ScreenParts;

/// Draws header, status and keys.
pub fn render(state: &AppState, cx: &DrawContext, parts: ScreenParts, buf: &mut Buffer) {
    render_header(state, cx, parts.header, buf);
    status(state, cx, parts.status, buf);
    keys(state, cx, parts.keys, buf);
}

/// One count of the status row.
struct StatusCount {
    glyph: Glyph,
    role: StyleRole,
    count: u64,
    word: &'static str,
}

impl StatusCount {
    fn width(&self) -> usize {
        let word = if self.word.is_empty() { 0 } else { 1 + columns(self.word) };
        2 + columns(&self.count.to_string()) + word + 2
    }

    fn draw(&self, cx: &DrawContext, pen: &mut Pen) {
        let role = if self.count == 0 { StyleRole::Dim } else { self.role };
        let style = cx.theme.style_among_many(role);
        pen.glyph(self.glyph, style).put(&format!(" {}", self.count), style);
        if !self.word.is_empty() {
            pen.space(1).put(self.word, style);
        }
        pen.space(2);
    }
}

/// Counts on the left, the latest notice on the right. A long notice takes the room of the counts,
/// the last of them first; only a notice longer than the row is cut.
fn status(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let (of, mut counts) = counts(state);
    let room = usize::from(area.width).saturating_sub(2);
    let counted = |counts: &[StatusCount]| {
        columns(of) + 2 + counts.iter().map(StatusCount::width).sum::<usize>()
    };
    let (text, more, role) = news(state, room.saturating_sub(counted(&counts)));
    let taken = columns(&text) + columns(&more);
    while counted(&counts) + taken > room {
        if counts.pop().is_none() {
            break;
        }
    }
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.space(1);
    if !counts.is_empty() {
        pen.put(of, cx.theme.style(StyleRole::Dim)).space(2);
    }
    for count in counts {
        count.draw(cx, &mut pen);
    }
    let taken = u16::try_from(taken).unwrap_or(u16::MAX);
    let free = pen.left().saturating_sub(1);
    pen.space(free.saturating_sub(taken));
    let behind = u16::try_from(columns(&more)).unwrap_or(u16::MAX);
    let width = pen.left().saturating_sub(behind.saturating_add(1));
    pen.put_within(&text, width, cx.theme.style(role)).put(&more, cx.theme.style(StyleRole::Dim));
}

/// The text of the status row, the number of further notices, and the style. `room` is the width that
/// the counts leave free.
fn news(state: &AppState, room: usize) -> (String, String, StyleRole) {
    if let Some(notice) = state.notices.current() {
        let (mark, role) = match notice.kind {
            NoticeKind::Info => ("", StyleRole::Notice),
            NoticeKind::Error | NoticeKind::Form => ("! ", StyleRole::Failed),
        };
        let more = match state.notices.hidden_count() {
            0 => String::new(),
            more => format!("  {more} more, Esc"),
        };
        return (format!("{mark}{}", notice.text), more, role);
    }
    if let Some(lines) = state.interrupted_lines() {
        let text = lines.iter().find(|line| columns(line) <= room);
        let text = text.or(lines.last()).cloned().unwrap_or_default();
        return (text, String::new(), StyleRole::Notice);
    }
    if let Some(line) = super::strip::line_without_rows(state) {
        return (line, String::new(), StyleRole::Notice);
    }
    if let Some(kept) =
        state.visible_run().and_then(|page| page.kept.as_deref()).filter(|it| !it.is_read)
    {
        let events = format::count_noun(kept.row.events, "event");
        let text = if kept.is_elsewhere() { String::new() } else { format!("reading {events}") };
        return (text, String::new(), StyleRole::Dim);
    }
    if let Some(AwaitedComparison { runs: [left, right], .. }) = &state.to_compare.awaited {
        let text = format!("comparing {left} with {right}");
        return (text, String::new(), StyleRole::Dim);
    }
    let starting =
        state.starting.last().map(|starting| format!("{} {}", starting.doing, starting.title));
    (starting.unwrap_or_default(), String::new(), StyleRole::Dim)
}

/// The heading of the counts, and the counts, the most important first: the calls of the run on the
/// screen, or the runs of this session.
fn counts(state: &AppState) -> (&'static str, Vec<StatusCount>) {
    let count = |glyph, role, count, word| StatusCount { glyph, role, count, word };
    // The comparison covers the page of the run that is counted.
    if state.overlays.iter().any(|it| matches!(it, Overlay::Comparison(_))) {
        return ("", Vec::new());
    }
    if let Some(page) = state.visible_run() {
        let tally = page.shown().tally;
        // The calls of a run that was interrupted are open for ever.
        let is_cut = tally.open() > 0 && !page.shown().progress.is_live();
        let waits = page.shown().questions.open().len() as u64;
        // While every branch waits for a person, the calls around the questions wait too.
        let running = match page.shown().progress.waits_since {
            Some(_) => 0,
            None => match page.shown().observed().filter(|_| page.shown().progress.is_live()) {
                Some(observed) => observed.open_calls(),
                None => tally.open().saturating_sub(waits),
            },
        };
        let open = match is_cut {
            true => count(Glyph::Off, StyleRole::Off, tally.open(), "cut off"),
            false => count(Glyph::Running, StyleRole::Running, running, "running"),
        };
        let mut counts = vec![
            count(Glyph::Done, StyleRole::Done, tally.answered, "answered"),
            open,
            count(Glyph::Failed, StyleRole::Failed, tally.failed + tally.omitted, "failed"),
            count(Glyph::Retry, StyleRole::Retry, tally.retries, "retried"),
        ];
        if waits > 0 && !is_cut {
            let word = if waits == 1 { "waits for you" } else { "wait for you" };
            counts.insert(0, count(Glyph::NeedsYou, StyleRole::NeedsYou, waits, word));
        }
        for (glyph, role, number, word) in [
            (Glyph::Alert, StyleRole::Retry, tally.degraded - tally.omitted, "degraded"),
            (Glyph::Refused, StyleRole::Refused, tally.refused_replies, "refused"),
            (Glyph::Refused, StyleRole::Refused, tally.denied, "denied"),
        ] {
            if number > 0 {
                // Before the retries, which are left out first where there is little room.
                counts.insert(counts.len() - 1, count(glyph, role, number, word));
            }
        }
        if tally.cancelled > 0 {
            counts.push(count(Glyph::Off, StyleRole::Off, tally.cancelled, "cancelled"));
        }
        return ("calls", counts);
    }
    if state.runs.is_empty() {
        return ("", Vec::new());
    }
    let ended = |class: fn(StopClass) -> bool| {
        let of = |page: &&super::run::RunPage| {
            let closed = page.world().progress.closed.as_ref();
            closed.is_some_and(|closed| class(closed.reason.class()))
        };
        state.runs.iter().filter(of).count() as u64
    };
    let stopped = ended(|class| !matches!(class, StopClass::Ok | StopClass::Cancelled));
    let waits = state.live_runs().filter(|page| page.waits_for_person()).count() as u64;
    let live = state.live_runs().count() as u64 - waits;
    let mut counts = vec![
        count(Glyph::Running, StyleRole::Running, live, "live"),
        count(Glyph::Done, StyleRole::Done, ended(|class| class == StopClass::Ok), "done"),
        count(
            Glyph::Off,
            StyleRole::Off,
            ended(|class| class == StopClass::Cancelled),
            "cancelled",
        ),
        count(Glyph::Failed, StyleRole::Failed, stopped, "stopped"),
    ];
    if waits > 0 {
        let word = if waits == 1 { "waits for you" } else { "wait for you" };
        counts.insert(0, count(Glyph::NeedsYou, StyleRole::NeedsYou, waits, word));
    }
    let elsewhere = state.runs.iter().any(|page| page.remote.is_some());
    (if elsewhere { "runs here and elsewhere" } else { "runs of this session" }, counts)
}

/// The keys of the focused context.
fn keys(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let (gap, margin) = HINT_GAP;
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.space(margin);
    let (key, dim) = (cx.theme.style(StyleRole::Key), cx.theme.style(StyleRole::Dim));
    for hint in fitting_hints(state, area.width) {
        let labels: Vec<&str> = hint.keys.iter().map(|(label, _)| label.as_str()).collect();
        pen.put(&labels.join(" "), key).put(" ", dim);
        pen.put(hint.word, dim).space(gap);
    }
}

/// Draws both rows.
pub fn render_header(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let first = Rect { height: area.height.min(1), ..area };
    let second = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    match state.visible_run() {
        Some(page) => {
            run::header::first_row(page, cx, first, buf);
            let has_keys = state.overlays.is_empty();
            run::header::second_row(page, has_keys, cx, second, buf);
        }
        None => home(state, cx, first, second, buf),
    }
}

fn brand(cx: &DrawContext, pen: &mut Pen) {
    pen.space(1).put("roundtable ", cx.theme.style(StyleRole::Strong));
    pen.glyph(Glyph::Vertical, cx.theme.style(StyleRole::Border)).space(1);
}

fn home(state: &AppState, cx: &DrawContext, first: Rect, second: Rect, buf: &mut Buffer) {
    let dim = cx.theme.style(StyleRole::Dim);
    let mut pen = Pen::new(buf, first, cx.glyphs);
    brand(cx, &mut pen);
    pen.put("home", cx.theme.style(StyleRole::Text));
    let live = state.live_runs().count();
    let text = match state.runs.len() + state.removed_count() {
        0 if state.history.rows().is_empty() => "no runs yet".to_owned(),
        0 => {
            let noun = if state.history.summary.has_cluster { "run" } else { "kept run" };
            format::count_noun(state.history.rows().len() as u64, noun)
        }
        runs => format!("{}, {live} live", format::count_noun(runs as u64, "run")),
    };
    let taken = u16::try_from(columns(&text)).unwrap_or(u16::MAX);
    let room = pen.left().saturating_sub(1);
    pen.space(room.saturating_sub(taken).max(2));
    let role = if live > 0 { StyleRole::Running } else { StyleRole::Dim };
    pen.put(&text, cx.theme.style(role));

    let mut pen = Pen::new(buf, second, cx.glyphs);
    pen.space(1);
    let broken = state.scenarios.iter().filter(|entry| entry.loaded.is_err()).count();
    pen.put(&format::count_noun(state.scenarios.len() as u64, "scenario"), dim);
    if broken > 0 {
        pen.put(", ", dim).put(&format!("{broken} broken"), cx.theme.style(StyleRole::Failed));
    }
    let totals = state.totals();
    if totals.calls > 0 {
        let calls = format::count_noun(totals.calls, "call");
        pen.put(&format!("   {calls}, {} tok", format::count(totals.tokens)), dim);
    }
    if let Some(cost) = totals.cost_usd() {
        pen.put(&format!(", {}", format::estimate(cost, cx.glyphs)), dim);
    }
    if totals.estimated > 0 {
        pen.put(&format!(" ({} estimated)", replies(totals.estimated)), dim);
    }
    if !state.dropped_runs.is_empty() {
        let facts = state.dropped_runs.iter().map(|(_, facts)| facts).sum();
        let runs = format::count_noun(state.dropped_runs.len() as u64, "finished run");
        let text =
            format!("   {} of {runs} dropped to bound memory", format::count_noun(facts, "event"));
        pen.put(&text, cx.theme.style(StyleRole::Notice));
    }
}

fn replies(number: u64) -> String {
    if number == 1 { "1 reply".to_owned() } else { format!("{number} replies") }
}

/// Maximum characters of a scenario's name.
const NAME: usize = 60;

/// The title: the number of open questions, else runs that are paused, else those that are live, else how the last one ended.
pub(crate) fn title(state: &AppState, theme: &Theme, glyphs: Glyphs) -> String {
    let live: Vec<&RunPage> = state.live_runs().collect();
    let questions = open_questions(&state.runs).count();
    let is_paused = |page: &&RunPage| waits(&page.world().progress.stage);
    let paused: Vec<&RunPage> = live.iter().copied().filter(is_paused).collect();
    let says = match (&paused[..], &live[..]) {
        // Their number, never what they are about.
        _ if questions > 0 => {
            let count = format::count_noun(questions as u64, "question");
            let waits = live.iter().filter(|page| page.world().questions.oldest().is_some());
            let runs: Vec<String> = waits.map(|page| name(page)).collect();
            let of = match &runs[..] {
                [one] => one.clone(),
                runs => format!("{} runs", runs.len()),
            };
            Some(format!("{} {count}, {of}", glyphs.symbol(Glyph::NeedsYou)))
        }
        ([], []) => last(state).map(|page| {
            let sign = theme.run(page.world());
            named(glyphs, sign.glyph, &sign.word.to_lowercase(), page)
        }),
        ([], [one]) => Some(named(glyphs, Glyph::Running, "live", one)),
        ([], live) => Some(format!("{} {} live", glyphs.symbol(Glyph::Running), live.len())),
        ([one], [_]) => Some(named(glyphs, Glyph::Paused, "paused", one)),
        (paused, live) => {
            let (glyph, paused, going) =
                (glyphs.symbol(Glyph::Paused), paused.len(), live.len() - paused.len());
            Some(match going {
                0 => format!("{glyph} {paused} paused"),
                _ => format!("{glyph} {paused} paused, {going} live"),
            })
        }
    };
    let text = match says {
        Some(says) => format!("{says} {} roundtable", glyphs.symbol(Glyph::Dot)),
        None => "roundtable".to_owned(),
    };
    match glyphs {
        Glyphs::Ascii => text::ascii_text(&text),
        Glyphs::Unicode => text,
    }
}

/// Whether a run waits to be resumed: its clock is stopped.
pub(crate) fn waits(stage: &RunState) -> bool {
    matches!(stage, RunState::Paused { .. } | RunState::Pausing { since: Some(_), .. })
}

/// The run on the screen, else the one that started last.
fn last(state: &AppState) -> Option<&RunPage> {
    state.visible_run().or_else(|| state.runs.last())
}

fn named(glyphs: Glyphs, glyph: Glyph, word: &str, page: &RunPage) -> String {
    format!("{} {word} {}", glyphs.symbol(glyph), name(page))
}

/// The name of a run's scenario, as one line without control characters.
pub(crate) fn name(page: &RunPage) -> String {
    let head = page.world().head.as_ref();
    head.map_or_else(
        || page.id().to_string(),
        |head| visible_within(&head.scenario.to_string(), NAME),
    )
}
