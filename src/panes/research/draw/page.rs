//! Pane 2 of research: the page of a source with the quotes of notes marked; for a dropped source
//! the reason and advice. Only the rows in view are wrapped.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::items::put_solids;
use super::sign::source_sign;
use crate::app::layout::line;
use crate::app::run::data::RunData;
use crate::app::run::scroll::WrappingLines;
use crate::app::run::subject_text::text_area;
use crate::narrate::glyph::Glyph;
use crate::narrate::verdict::why_stopped;
use crate::panes::research::areas::{GUTTER, page_text};
use crate::panes::research::page_layout::{PageLayout, PageLines, Quote, solids};
use crate::panes::research::selection::ResearchView;
use crate::pattern::research::plan::ResearchPlan;
use crate::pattern::research::projection::{SourcePage, SourceRow};
use crate::pattern::research::words::source::{age_days, missing_page_reason, source_state, trust};
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::pane::{empty, out_of_view};
use crate::ui::text::{Pen, columns, elide_middle, wrap_within};
use crate::ui::theme::{StateSign, StyleRole};

/// The selected source and its state.
pub(crate) fn title(
    view: &ResearchView,
    data: &RunData,
    cx: &DrawContext,
) -> (String, Option<StateSign>) {
    let source = || data.shown().research()?.source(view.page_source(data)?);
    let Some(row) = source() else { return ("Page".to_owned(), None) };
    // The note comes first, since the end of a long domain is cut.
    let note = view.page_note(data).map_or_else(String::new, |note| format!("{note} in "));
    let text = format!("{note}{} {}", row.no, row.domain);
    (text.trim_end().to_owned(), Some(source_sign(cx.theme, &row.state)))
}

/// Draws the pane.
pub(crate) fn render(
    view: &ResearchView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let Some(research) = data.shown().research() else { return };
    let plan = &*research.plan;
    let Some(row) = view.page_source(data).and_then(|no| research.source(no)) else {
        let world = data.shown();
        let text = match (world.progress.is_live(), research.sources.is_empty()) {
            (true, true) => "No page yet: the search comes first. 3 shows the progress.".to_owned(),
            (true, false) => "No source has been read yet: select one in 1 (j, k).".to_owned(),
            (false, true) => format!("No source was found: {}.", why_stopped(world)),
            (false, false) => "No source was read: select one in 1 (j, k).".to_owned(),
        };
        return empty(cx, area, &text, buf);
    };
    let text = page_text(area);
    let top = Rect { height: text.y - area.y, ..text_area(area) };
    head(view, cx, top, row, plan, data, buf);
    match (&row.page, view.page_layout(data)) {
        (Some(_), Some((reading, whole))) if !whole.trim().is_empty() => {
            marked_text(
                view,
                data,
                cx,
                (text, text.x > top.x),
                &reading.wrapped_at(whole, text.width),
                reading,
                buf,
            );
        }
        (Some(_), _) => {
            let left = Rect { x: top.x, width: top.width, ..text };
            put_texts(
                cx,
                left,
                &[("The page has no text, or the log no longer has it.", StyleRole::Dim)],
                buf,
            );
        }
        (None, _) => {
            dropped_source(cx, Rect { x: top.x, width: top.width, ..text }, row, plan, buf)
        }
    }
}

/// Draws title, address, date and trust.
fn head(
    view: &ResearchView,
    cx: &DrawContext,
    area: Rect,
    row: &SourceRow,
    plan: &ResearchPlan,
    data: &RunData,
    buf: &mut Buffer,
) {
    let theme = cx.theme;
    let dim = theme.style(StyleRole::Dim);
    if area.height == 0 {
        return;
    }
    let title = if row.title().is_empty() { "no title" } else { row.title() };
    Pen::new(buf, line(area, 0), cx.glyphs).put(title, theme.style(StyleRole::Strong));
    if area.height < 2 {
        return;
    }
    let address = row.page.as_ref().map_or(row.address(), |page| &page.url);
    let address = elide_middle(address, usize::from(area.width), cx.glyphs);
    Pen::new(buf, line(area, 1), cx.glyphs).put(&address, dim);
    if area.height < 3 {
        return;
    }
    let mut pen = Pen::new(buf, line(area, 2), cx.glyphs);
    for (nth, fact) in metadata(row, plan).iter().enumerate() {
        let gap = if nth > 0 { 3 } else { 0 };
        if pen.fits(columns(fact) + gap) {
            pen.space(gap as u16).put(fact, dim);
        }
    }
    if area.height > 3 && row.page.is_some() && row.drop_phrase().is_some() {
        // It was read, but dropped afterwards.
        let sign = source_sign(theme, &row.state);
        let text = format!("{}: {}", source_state(row), missing_page_reason(row, plan).0);
        let mut pen = Pen::new(buf, line(area, 3), cx.glyphs);
        pen.glyph(sign.glyph, sign.style).space(1).put(&text, sign.style);
        return;
    }
    let missing =
        view.page_layout(data).map(|(reading, _)| reading.missing.as_slice()).unwrap_or_default();
    if area.height > 3
        && let [first, rest @ ..] = missing
    {
        let more =
            if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        let text = format!("the quote of {first}{more} was not found on this page");
        let failed = theme.style(StyleRole::Failed);
        let mut pen = Pen::new(buf, line(area, 3), cx.glyphs);
        pen.glyph(Glyph::Failed, failed).space(1).put(&text, failed);
    }
}

/// The metadata of a page.
fn metadata(row: &SourceRow, plan: &ResearchPlan) -> Vec<String> {
    let mut facts = Vec::new();
    let days = age_days(row, plan);
    let published = row.page.as_ref().map_or(&*row.found.published_at, |page| &page.published_at);
    let changed = row.page.as_ref().is_some_and(|page| page.modified);
    let published = if changed { &format!("modified {published}") } else { published };
    facts.push(match days {
        Some(days @ 0..) => format!("{published}, {days} d old"),
        Some(days) => format!("{published}, {} d after {}", days.unsigned_abs(), plan.as_of),
        None if row.page.is_none() && published.is_empty() => "unknown date".to_owned(),
        None if published.is_empty() => "undated".to_owned(),
        None => published.to_owned(),
    });
    if let Some(trust) = trust(row, plan) {
        facts.push(format!("trust {}", format::confidence(trust)));
    }
    if let Some(page) = &row.page {
        facts.push(format::count_noun(page.chars, "character"));
        facts.extend(aside(page));
    }
    facts
}

/// What the tool reports about the fetch: truncated, cached, or redirected.
fn aside(page: &SourcePage) -> Option<String> {
    if page.result_field("cut").and_then(serde_json::Value::as_bool) == Some(true) {
        return Some("truncated".to_owned());
    }
    if let Some(age) = page.result_field("cached_s").and_then(serde_json::Value::as_u64) {
        return Some(format!(
            "cached {} ago",
            format::duration_text(std::time::Duration::from_secs(age))
        ));
    }
    let hops =
        page.result_field("redirects").and_then(serde_json::Value::as_array).map_or(0, Vec::len);
    (hops > 0).then(|| format::count_noun(hops as u64, "redirect"))
}

/// Draws the text with its quotes marked, and the note's name where its quote begins.
fn marked_text(
    view: &ResearchView,
    data: &RunData,
    cx: &DrawContext,
    (area, gutter): (Rect, bool),
    lines: &PageLines<'_>,
    reading: &PageLayout,
    buf: &mut Buffer,
) {
    let height = usize::from(area.height);
    let theme = cx.theme;
    let plain = theme.style(StyleRole::Text);
    let top = view.page_top(data, area.width, height);
    let shown = view.page_note(data);
    // Of two overlapping quotes the selected one is marked.
    let mut quotes: Vec<_> = reading.quotes().iter().collect();
    quotes.sort_by_key(|quote| (quote.solids.start, Some(&quote.note) != shown));
    let mut row = 0;
    let mut at = top.line;
    while row < height && at < lines.count() {
        let skip = if at == top.line { top.row } else { 0 };
        for (from, text) in lines.wrapped_rows(at).iter().skip(skip) {
            if row == height {
                break;
            }
            let here = line(area, row as u16);
            let until = from + solids(text);
            let mut stretches = Vec::new();
            let mut reached = *from;
            for quote in &quotes {
                let within = quote.solids.start < until && quote.solids.end > *from;
                if !within || quote.solids.end <= reached {
                    continue;
                }
                let role =
                    if Some(&quote.note) == shown { StyleRole::Found } else { StyleRole::Strong };
                stretches.push((quote.solids.start.max(reached), plain));
                stretches.push((quote.solids.end, theme.style(role)));
                reached = quote.solids.end;
            }
            stretches.push((usize::MAX, plain));
            put_solids(&mut Pen::new(buf, here, cx.glyphs), text, *from, stretches);
            let begins = |quote: &&&Quote| (*from..until).contains(&quote.solids.start);
            if let Some(quote) = quotes.iter().find(begins).filter(|_| gutter) {
                let role = if Some(&quote.note) == shown { StyleRole::Key } else { StyleRole::Dim };
                let at = Rect { x: here.x - GUTTER, width: GUTTER, ..here };
                Pen::new(buf, at, cx.glyphs).put_within(quote.note.as_str(), 3, theme.style(role));
            }
            row += 1;
        }
        at += 1;
    }
    out_of_view(cx, area, top, lines, buf);
}

/// Draws why there is no page, and the advice.
fn dropped_source(
    cx: &DrawContext,
    area: Rect,
    row: &SourceRow,
    plan: &ResearchPlan,
    buf: &mut Buffer,
) {
    let sign = source_sign(cx.theme, &row.state);
    let (text, to_do) = missing_page_reason(row, plan);
    let word = source_state(row);
    let mut said = vec![(text.as_str(), StyleRole::Text)];
    said.extend(to_do.as_deref().map(|to_do| (to_do, StyleRole::Dim)));
    let mut pen = Pen::new(buf, line(area, 0), cx.glyphs);
    pen.glyph(sign.glyph, sign.style).space(1).put(&word, sign.style);
    // The search result's snippet is the only text.
    let snippet = format!("Search result: \"{}\"", row.found.snippet.trim());
    if !row.found.snippet.is_empty() {
        said.extend([("", StyleRole::Dim), (snippet.as_str(), StyleRole::Dim)]);
    }
    let below =
        Rect { y: area.y + area.height.min(1), height: area.height.saturating_sub(1), ..area };
    put_texts(cx, below, &said, buf);
}

/// Draws wrapped texts below each other.
fn put_texts(cx: &DrawContext, area: Rect, texts: &[(&str, StyleRole)], buf: &mut Buffer) {
    let mut row = 0;
    for (text, role) in texts {
        let room = usize::from(area.height.saturating_sub(row));
        let (parts, _) = wrap_within(text, usize::from(area.width.max(1)), room);
        for part in &parts {
            Pen::new(buf, line(area, row), cx.glyphs).put(part, cx.theme.style(*role));
            row += 1;
        }
    }
}
