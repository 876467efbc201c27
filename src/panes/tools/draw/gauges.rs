//! The second header row of the tools: totals of breakers, bulkheads and calls.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::run::data::RunData;
use crate::event::kind::BreakerStage;
use crate::narrate::format::percent;
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::text::{Pen, columns};
use crate::ui::theme::StyleRole;

/// Draws the row; a part that does not fit is left out.
pub(crate) fn render(data: &RunData, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let world = data.shown();
    let theme = cx.theme;
    let dim = theme.style(StyleRole::Dim);
    let tools = world.tools.rows();
    if tools.is_empty() {
        return;
    }
    let mut pieces: Vec<Vec<(String, StyleRole)>> = Vec::new();
    let mut breakers = vec![("breakers ".to_owned(), StyleRole::Dim)];
    for (stage, role) in [
        (BreakerStage::Closed, StyleRole::Text),
        (BreakerStage::Open, StyleRole::Refused),
        (BreakerStage::Held, StyleRole::Refused),
        (BreakerStage::HalfOpen, StyleRole::Retry),
        (BreakerStage::Disabled, StyleRole::Off),
    ] {
        let has = |it: &&crate::event::world::tool_row::ToolRow| {
            it.head.limits.breaker.is_some() && it.breaker == stage
        };
        let count = tools.iter().filter(has).count();
        if count == 0 && stage != BreakerStage::Closed {
            continue;
        }
        let sign = theme.breaker(stage);
        let mut text = format!("{count} {}  ", sign.word);
        if stage != BreakerStage::Closed {
            text = format!("{count} {} {}  ", sign.word, cx.glyphs.symbol(sign.glyph));
        }
        breakers.push((text, role));
    }
    if !tools.iter().any(|it| it.head.limits.breaker.is_some()) {
        breakers = vec![("no breakers".to_owned(), StyleRole::Off)];
    }
    if let Some((text, _)) = breakers.last_mut() {
        text.truncate(text.trim_end().len());
    }
    pieces.push(breakers);
    let walls = || tools.iter().filter_map(|it| Some((it, it.head.limits.bulkhead?)));
    if walls().next().is_some() {
        let busy: u64 = walls().map(|(it, _)| u64::from(it.in_flight)).sum();
        let permits: u64 = walls().map(|(_, wall)| u64::from(wall.max_in_flight)).sum();
        let queued: u64 = walls().map(|(it, _)| u64::from(it.queued)).sum();
        let refused: u64 = walls().map(|(it, _)| it.tally.bulkhead_full).sum();
        let mut piece = vec![
            ("bulkheads ".to_owned(), StyleRole::Dim),
            (format!("{busy}/{permits} busy"), StyleRole::Text),
        ];
        if queued > 0 {
            piece.push((format!("  {queued} queued"), StyleRole::Retry));
        }
        if refused > 0 {
            piece.push((format!("  {} refused", format::count(refused)), StyleRole::Refused));
        }
        pieces.push(piece);
    }
    let tally = world.tally;
    let over = tally.answered + tally.degraded + tally.failed;
    if over > 0 {
        let ok = percent(tally.answered as f64 / over as f64);
        pieces.push(vec![("ok ".to_owned(), StyleRole::Dim), (ok, StyleRole::Text)]);
    }
    let slow = tools.iter().filter_map(|it| Some((it.latencies.percentile(95)?, it)));
    if let Some((p95, tool)) = slow.max_by_key(|(p95, _)| *p95) {
        let text = format!("{} {}", format::duration_text(p95), tool.name());
        pieces.push(vec![("slowest p95 ".to_owned(), StyleRole::Dim), (text, StyleRole::Text)]);
    }
    let mut pen = Pen::new(buf, area, cx.glyphs);
    for (nth, piece) in pieces.iter().enumerate() {
        let width: usize = piece.iter().map(|(text, _)| columns(text)).sum();
        let gap = if nth > 0 { 4 } else { 0 };
        if nth > 0 && !pen.fits(width + gap) {
            continue;
        }
        pen.space(gap as u16);
        for (text, role) in piece {
            pen.put(text, if *role == StyleRole::Dim { dim } else { theme.style(*role) });
        }
    }
}
