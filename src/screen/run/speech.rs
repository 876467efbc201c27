//! The pane of the selected text, for all patterns: the text, the attempts of its call with waits
//! and speed, tokens; at the end of a run its outcome.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::data::RunData;
use super::inspector::documents::token_rate;
use super::pane_text::{
    ACTION, RowShares, TextLines, TextPane, TextState, action_rows, question_rows, text_area,
};
use crate::base::time;
use crate::log::event::{EventKind, FailureClass, SpanId, World};
use crate::log::world::{Projection, Span, SpanKind, SpanState};
use crate::screen::DrawContext;
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::layout::line;
use crate::screen::scroll::Scroll;
use crate::screen::text::{Pen, elide_middle};
use crate::words::glyph::Glyph;
use crate::words::measure::{columns, wrap, wrap_within};
use crate::words::patterns::words_of;
use crate::words::sentence::{failure_name, model_text, took_ms};
use crate::words::styled::StyleRole;
use crate::words::tool_sentence::progress_text;
use crate::words::verdict::{place_after, reason_id};
use crate::words::{badges, format};

pub(crate) fn render(
    spoken: &TextPane<'_>,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let words = &spoken.words;
    let area = text_area(area);
    let shares = RowShares::divide(area, spoken.is_outcome, words);
    if shares.above > 0 {
        end_rows(data, cx, Rect { height: shares.above, ..area }, buf);
    }
    let text = Rect { y: area.y + shares.above, height: shares.words, ..area };
    text_rows(spoken, cx, text, buf);
    let below = Rect { y: text.bottom(), height: shares.below, ..area };
    detail_rows(spoken, data, cx, below, buf);
}

/// Draws how the run ended: the reason, the phase, the decision.
fn end_rows(data: &RunData, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let world = data.shown();
    let theme = cx.theme;
    let dim = theme.style(StyleRole::Dim);
    let Some(closed) = &world.progress.closed else { return };
    let sign = theme.ended(closed.reason.class());
    let decides = world.projection().is_some_and(Projection::decides);
    let decision = world.projection().and_then(Projection::decision);
    let words = words_of(world);
    let far = words.and_then(|words| words.reached());
    let far = far.unwrap_or_else(|| format::count_noun(world.tally.calls, "call"));
    let cost = format::cost(world, cx.glyphs);
    let mut figures: Vec<String> =
        [far, took_ms(closed.elapsed_ms)].into_iter().chain(cost).collect();
    let mut pen = Pen::new(buf, line(area, 0), cx.glyphs);
    // What stopped the run is the text below; of a reason without a detail, its words.
    let is_told = !closed.reason.is_success()
        && (world.stop_refusal().is_some()
            || words.is_some_and(|words| words.stop_detail(closed).is_some()));
    let head = if is_told { "stopped".into() } else { closed.reason.phrase() };
    pen.glyph(sign.glyph, sign.style).space(1).put(&head, sign.style);
    if closed.reason.is_success() {
        if let Some(decision) = decision {
            let sign = theme.decision(decision);
            pen.space(3).glyph(sign.glyph, sign.style).space(1).put(sign.word, sign.style);
        }
        if let Some((name, level)) = words.and_then(|words| words.level()) {
            pen.space(3).put(name, dim).space(1).line(&level.into(), theme);
        }
        if let Some(mark) = world.progress.answer_end.mark() {
            pen.space(3).put(&format!("answer {mark}"), theme.style(StyleRole::Retry));
        } else if world.is_degraded() {
            pen.space(3).put("degraded", theme.style(StyleRole::Retry));
        }
        // Without rounds the header already shows the progress.
        let fits = |pen: &Pen<'_>, figures: &[String]| pen.fits(columns(&figures.join(", ")) + 3);
        while figures.len() > 1 && !fits(&pen, &figures) {
            figures.pop();
        }
        if decides || fits(&pen, &figures) {
            pen.space(3).put(&figures.join(", "), dim);
        }
        return;
    }
    let place = place_after(&head, closed);
    if let Some(place) = place.strip_prefix(" in ") {
        pen.put("  in ", dim).put(place, theme.style(StyleRole::Text));
    }
    if let Some(id) = reason_id(closed).filter(|id| pen.fits(columns(id) + 2)) {
        pen.space(2).put(&id, dim);
    }
    let after = figures.join(", ");
    let mut pen = Pen::new(buf, line(area, 1), cx.glyphs);
    match decision {
        Some(decision) => {
            let sign = theme.decision(decision);
            pen.put("decided ", dim).glyph(sign.glyph, sign.style).space(1);
            pen.put(sign.word, sign.style);
        }
        None if decides => {
            let sign = theme.badge(badges::UNDECIDED);
            pen.glyph(sign.glyph, sign.style).space(1).put(sign.word, sign.style);
        }
        None => {
            pen.put(&after, dim);
            return;
        }
    }
    pen.put(&format!(", {after}"), dim);
}

/// Draws the text: its end while it arrives, else from the scroll position.
fn text_rows(spoken: &TextPane<'_>, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let words = &spoken.words;
    let theme = cx.theme;
    let style = theme.style(match words.state {
        TextState::Streaming | TextState::Complete => StyleRole::Text,
        TextState::Note => StyleRole::Dim,
        TextState::Problem => StyleRole::Strong,
    });
    let coming = words.state == TextState::Streaming;
    let note_rows = words.left_out_rows(area.height);
    let mut area = area;
    if note_rows > 0 {
        // Above an arriving text, below a complete one.
        let size = format::bytes(words.left_out as u64);
        let (text, at) = if coming {
            (format!("{size} above"), area.y)
        } else {
            (format!("{size} more: {} shows all", key_of(Action::Inspect)), area.bottom() - 1)
        };
        let at = Rect { y: at, height: 1, ..area };
        let dim = theme.style(StyleRole::Dim);
        Pen::new(buf, at, cx.glyphs).glyph(Glyph::Ellipsis, dim).space(1).put(&text, dim);
        area.height -= note_rows;
        area.y += if coming { note_rows } else { 0 };
    }
    let height = usize::from(area.height);
    let lines = TextLines::new(&words.text, area.width);
    let end = Scroll::end(&lines, height);
    let start = if coming { end } else { Scroll::default() };
    let top = spoken.scroll.map_or(start, |at| at.clamped(&lines, height));
    let mut row = 0;
    let mut last = (area.x, area.y);
    let mut at = top.line;
    while let Some(text) = lines.line(at)
        && row < height
    {
        let skip = if at == top.line { top.row } else { 0 };
        for part in wrap(text, usize::from(area.width)).iter().skip(skip) {
            if row == height {
                break;
            }
            let place = line(area, row as u16);
            let mut pen = Pen::new(buf, place, cx.glyphs);
            pen.put(part, style);
            last = (pen.x(), place.y);
            row += 1;
        }
        at += 1;
    }
    if coming && top == end && last.0 < area.right() {
        let place = Rect { x: last.0, y: last.1, width: 1, height: 1 }.intersection(area);
        Pen::new(buf, place, cx.glyphs).glyph(Glyph::Cursor, theme.style(StyleRole::Cursor));
    }
    // Scroll arrows in the blank column next to the text.
    let more = Rect { x: area.right(), width: 1, height: area.height.min(1), ..area };
    if top > Scroll::default() {
        Pen::new(buf, more, cx.glyphs).glyph(Glyph::Up, theme.style(StyleRole::Key));
    }
    if top != end {
        let last = Rect { y: area.bottom().saturating_sub(1), ..more };
        Pen::new(buf, last, cx.glyphs).glyph(Glyph::Down, theme.style(StyleRole::Key));
    }
}

/// Draws the actions, the attempts, the tokens and the key for the prompt: from the bottom up, so
/// that the most important rows stay when there is little room.
fn detail_rows(
    spoken: &TextPane<'_>,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let (words, call) = (&spoken.words, spoken.call);
    let theme = cx.theme;
    let dim = theme.style(StyleRole::Dim);
    let mut left = area;
    let bottom = |left: &mut Rect, buf: &mut Buffer, draw: &mut dyn FnMut(&mut Pen)| {
        if left.height == 0 {
            return;
        }
        left.height -= 1;
        let row = Rect { y: left.bottom(), height: 1, ..*left };
        draw(&mut Pen::new(buf, row, cx.glyphs));
    };
    if call.is_some() {
        bottom(&mut left, buf, &mut |pen| {
            pen.put("p", theme.style(StyleRole::Key)).put(spoken.prompt, dim);
        });
    }
    bottom(&mut left, buf, &mut |pen| tokens(spoken, data, cx, pen));
    for (nth, text) in question_rows(area.width, words).iter().enumerate().rev() {
        let name = if nth == 0 { "questions" } else { "" };
        bottom(&mut left, buf, &mut |pen| {
            pen.cell(name, ACTION, dim).put(text, theme.style(StyleRole::Text));
        });
    }
    if let Some(call) = call.filter(|_| !spoken.is_outcome) {
        bottom(&mut left, buf, &mut |pen| put_attempts(data, cx, pen, call, "attempt "));
    }
    // The actions start at the top of the remaining area, with a blank row before and after.
    let rows = action_rows(area.width, words);
    let spare = left.height.saturating_sub(rows.iter().sum());
    let mut at =
        Rect { y: left.y + spare.min(1), height: left.height.saturating_sub(spare.min(2)), ..left };
    for ((nth, action), rows) in words.actions.iter().enumerate().zip(rows) {
        let rows = rows.min(at.height);

        let width = usize::from(at.width.saturating_sub(ACTION));
        let (text, cut) = wrap_within(action, width, usize::from(rows));
        for (row, part) in text.iter().take(usize::from(rows)).enumerate() {
            let mut pen = Pen::new(buf, line(at, row as u16), cx.glyphs);
            if row == 0 {
                let name = if nth == 0 { "actions" } else { "" };
                pen.cell(name, ACTION - 2, dim).cell(&(nth + 1).to_string(), 2, dim);
            }
            pen.advance_to(at.x + ACTION).put(part, theme.style(StyleRole::Text));
            if cut && row + 1 == usize::from(rows) {
                pen.glyph(Glyph::Ellipsis, dim);
            }
        }
        let used = rows.min(at.height);
        at = Rect { y: at.y + used, height: at.height - used, ..at };
    }
}

/// Draws the counted tokens, or the bytes received so far, and the model.
fn tokens(spoken: &TextPane<'_>, data: &RunData, cx: &DrawContext, pen: &mut Pen) {
    let call = spoken.call;
    let world = data.shown();
    let (dim, plain) = (cx.theme.style(StyleRole::Dim), cx.theme.style(StyleRole::Text));
    let gap = if spoken.is_outcome { 2 } else { 3 };
    let pair = |pen: &mut Pen, name: &str, value: String| {
        if pen.fits(columns(name) + 1 + columns(&value)) {
            pen.put(name, dim).space(1).put(&value, plain).space(gap);
        }
    };
    if spoken.is_outcome {
        let tally = world.tally;
        pen.put(&format::calls(&tally), plain).space(gap);
        if tally.attempts != tally.calls {
            pair(pen, "attempts", tally.attempts.to_string());
        }
        pair(pen, "in", format::count(tally.usage.prompt_tokens));
        pair(pen, "out", format::count(tally.usage.completion_tokens));
    } else if let Some(last) = call.and_then(|call| world.spans.last_child(call)) {
        match last.closed_by.and_then(|seq| data.event(seq)).map(|event| &event.kind) {
            Some(EventKind::AttemptAnswered(reply)) => {
                if let Some(mark) = reply.end.mark() {
                    pen.put(mark, cx.theme.style(StyleRole::Retry)).space(3);
                }
                match reply.usage {
                    Some(usage) => {
                        pair(pen, "in", format::count(usage.prompt_tokens));
                        pair(pen, "out", format::count(usage.completion_tokens));
                    }
                    None => {
                        pen.put("tokens not counted", dim).space(3);
                    }
                }
            }
            _ => {
                if let Some(live) = data.live(last.id) {
                    pair(pen, "received", format::bytes(live.text.len() as u64));
                }
                // What an agent of another program does.
                if let Some(it) = call.and_then(|call| world.tools.progress_of(call)) {
                    let text = progress_text(&it.text, it.done, it.total);
                    let room = usize::from(pen.left()).saturating_sub(gap.into());
                    pen.put(&elide_middle(&text, room, cx.glyphs), plain).space(gap);
                }
            }
        }
    }
    // For a call its own model; for the run the label of its header.
    let own = call.filter(|_| !spoken.is_outcome).and_then(|call| {
        match world.spans.get(call).map(|span| &span.kind) {
            Some(SpanKind::Call(purpose)) => world.models.for_purpose(purpose).map(str::to_owned),
            _ => None,
        }
    });
    if let Some(who) = own.or_else(|| Some(model_text(&world.head.as_ref()?.model)))
        && pen.fits(columns(&who).min(20))
    {
        pen.put(&elide_middle(&who, usize::from(pen.left()), cx.glyphs), dim);
    }
}

/// Draws a call's attempts, the last one always in view; `word` precedes each number.
pub(super) fn put_attempts(
    data: &RunData,
    cx: &DrawContext,
    pen: &mut Pen,
    call: SpanId,
    word: &str,
) {
    let world = data.shown();
    let mut chain: Vec<Vec<(String, StyleRole)>> = Vec::new();
    let mut before: Option<&Span> = None;
    for attempt in world.spans.children(call) {
        let SpanKind::Attempt(nth) = attempt.kind else { continue };
        let mut link = Vec::new();
        if let Some(closed) = before.and_then(|before| before.closed) {
            let line = cx.glyphs.symbol(Glyph::Wait);
            let wait = time::duration_text(world.progress.active_between(closed, attempt.opened));
            link.push((format!(" {line}{wait}{line} "), StyleRole::Dim));
        }
        link.push((format!("{word}{nth} "), StyleRole::Text));
        link.extend(attempt_state(data, cx, world, attempt));
        chain.push(link);
        before = Some(attempt);
    }
    if chain.is_empty() {
        pen.put("not called yet", cx.theme.style(StyleRole::Dim));
        return;
    }
    let width = |chain: &[Vec<(String, StyleRole)>]| -> usize {
        chain.iter().flatten().map(|(text, _)| columns(text)).sum()
    };
    let mut first = 0;
    while first + 1 < chain.len() && width(&chain[first..]) + 2 > usize::from(pen.left()) {
        first += 1;
    }
    if first > 0 {
        pen.glyph(Glyph::Ellipsis, cx.theme.style(StyleRole::Dim));
    }
    for (text, role) in chain.iter().skip(first).flatten() {
        pen.put(text, cx.theme.style(*role));
    }
    if let Some(rate) = before.and_then(|last| rate(data, last))
        && pen.fits(columns(&rate) + 3)
    {
        pen.space(3).put(&rate, cx.theme.style(StyleRole::Dim));
    }
}

fn attempt_state(
    data: &RunData,
    cx: &DrawContext,
    world: &World,
    attempt: &Span,
) -> Vec<(String, StyleRole)> {
    let took = {
        let end = attempt.closed.unwrap_or(data.time(cx.now));
        time::duration_text(world.progress.active_between(attempt.opened, end))
    };
    let glyph = |glyph: Glyph| cx.glyphs.symbol(glyph);
    match attempt.state {
        SpanState::Open if !world.progress.is_live() => {
            vec![(glyph(Glyph::Off).to_owned(), StyleRole::Off)]
        }
        SpanState::Open => vec![(format!("{} {took}", glyph(Glyph::Running)), StyleRole::Running)],
        SpanState::Done => {
            vec![
                (glyph(Glyph::Done).to_owned(), StyleRole::Done),
                (format!(" {took}"), StyleRole::Text),
            ]
        }
        SpanState::Failed(Some(FailureClass::Cancelled)) => {
            vec![(format!("{} cancelled", glyph(Glyph::Off)), StyleRole::Off)]
        }
        SpanState::Denied => {
            vec![(format!("{} denied", glyph(Glyph::Refused)), StyleRole::Refused)]
        }
        SpanState::Failed(class) => {
            let status = attempt.closed_by.and_then(|seq| data.event(seq)).and_then(|event| {
                match &event.kind {
                    EventKind::AttemptFailed(failed) => failed.status,
                    _ => None,
                }
            });
            let why = class.map_or("failed".into(), |class| failure_name(class, status));
            vec![(format!("{} {why}", glyph(Glyph::Failed)), StyleRole::Failed)]
        }
    }
}

fn rate(data: &RunData, attempt: &Span) -> Option<String> {
    match &data.event(attempt.closed_by?)?.kind {
        EventKind::AttemptAnswered(reply) => {
            let took = attempt.closed?.since(attempt.opened);
            token_rate(reply.usage?.completion_tokens, reply.first_token_ms, took)
        }
        _ => None,
    }
}
