//! The middle of the round table: the round, the votes, the conflicts, the decision or its rule.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::log::facts::collaboration::{CollaborationPlan, Stance};
use crate::log::world::collaboration::{Collaboration, Round};
use crate::log::world::{RunState, World};
use crate::screen::DrawContext;
use crate::screen::layout::line;
use crate::screen::text::Pen;
use crate::words::badges;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::patterns::collaboration::{decided_by_text, decision_or_next};
use crate::words::styled::{Badge, StyleRole};

/// Draws the middle of the table.
pub(crate) fn render(
    cx: &DrawContext,
    area: Rect,
    world: &World,
    table: &Collaboration,
    plan: &CollaborationPlan,
    buf: &mut Buffer,
) {
    let mut rows: Vec<Vec<(String, StyleRole)>> = Vec::new();
    let one = |text: String, role| vec![(text, role)];
    let Some(round) = table.current() else {
        rows.push(one("no round yet".to_owned(), StyleRole::Dim));
        centre(cx, area, &rows, buf);
        return;
    };
    let of = format!("round {} of {}", round.number, plan.budget.max_rounds);
    rows.push(one(of, StyleRole::Strong));
    rows.push(votes(cx, round, usize::from(area.width)));
    rows.push(one(conflict_line(cx, table, round), conflict_role(round)));
    let mut state = state_line(cx, world, table, round);
    let width: usize = state.iter().map(|(text, _)| columns(text)).sum();
    if width > area.width.into() && state.len() > 1 {
        // The decision itself.
        state.remove(0);
    }
    let width: usize = state.iter().map(|(text, _)| columns(text)).sum();
    if width > area.width.into() && state.len() > 1 {
        state.truncate(1);
    }
    rows.push(state);
    let rule = rule(plan);
    if table.decision().is_none()
        && world.progress.is_live()
        && columns(&rule) + 2 <= area.width.into()
    {
        rows.push(one(rule, StyleRole::Dim));
    }
    // With few rows the less important ones are left out.
    let keep = usize::from(area.height);
    if rows.len() > keep {
        // In an open round the conflicts are dropped first, in a closed round the state.
        let drop = if round.closed.is_some() && table.decision().is_none() { 3 } else { 2 };
        if rows.len() > keep && rows.len() > 4 {
            rows.truncate(4);
        }
        if rows.len() > keep {
            rows.remove(drop);
        }
        rows.truncate(keep);
    }
    // A blank row after the round, if there is room.
    if rows.len() > 1 && rows.len() < keep {
        rows.insert(1, Vec::new());
    }
    centre(cx, area, &rows, buf);
}

/// The rule for a decision: the number of rows, or that of the collaboration source document
/// (`decide_round_outcome`) with the scenario's numbers.
pub(crate) fn rule(plan: &CollaborationPlan) -> String {
    match plan.decide.len() {
        0 => format!("needs {} go, no block", plan.budget.min_go_votes),
        1 => "one row decides".to_owned(),
        rows => format!("first of {rows} rows decides"),
    }
}

pub(crate) fn votes(cx: &DrawContext, round: &Round, width: usize) -> Vec<(String, StyleRole)> {
    let words = Stance::ALL.map(|stance| (badges::stance(stance), round.votes(stance)));
    let long: usize =
        words.iter().map(|(it, votes)| votes.to_string().len() + it.word.len() + 3).sum();
    let long = long + 6 <= width;
    let mut row = Vec::new();
    for (nth, (Badge { glyph, word, role }, votes)) in words.into_iter().enumerate() {
        if nth > 0 {
            row.push(("  ".to_owned(), StyleRole::Text));
        }
        let role = if votes == 0 { StyleRole::Dim } else { role };
        row.push((format!("{} ", cx.glyphs.symbol(glyph)), role));
        let text = if long { format!("{votes} {word}") } else { votes.to_string() };
        row.push((text, if votes == 0 { StyleRole::Dim } else { StyleRole::Text }));
    }
    row
}

/// The conflicts of this round if it is closed, else those of the previous round.
pub(super) fn conflict_line(cx: &DrawContext, table: &Collaboration, round: &Round) -> String {
    let alert = cx.glyphs.symbol(Glyph::Alert);
    let of = |round: &Round| match round.conflicts.as_slice() {
        [] => "no conflict".to_owned(),
        // Each one after the first implies those before it.
        [.., last] => format!("{alert} {}", last.phrase()),
    };
    if round.closed.is_some() {
        return of(round);
    }
    match round.number.checked_sub(1).and_then(|before| table.round(before)) {
        Some(before) => {
            let found = of(before);
            let found = found.strip_prefix(alert).unwrap_or(&found);
            format!("R{}: {}", before.number, found.trim_start())
        }
        None => String::new(),
    }
}

pub(super) fn conflict_role(round: &Round) -> StyleRole {
    match (round.closed.is_some(), round.conflicts.is_empty()) {
        (true, false) => StyleRole::Retry,
        _ => StyleRole::Dim,
    }
}

pub(super) fn state_line(
    cx: &DrawContext,
    world: &World,
    table: &Collaboration,
    round: &Round,
) -> Vec<(String, StyleRole)> {
    if let Some(decision) = table.decision() {
        let Badge { glyph, word, role } = badges::decision(decision);
        let mut parts = vec![
            ("decided ".to_owned(), StyleRole::Strong),
            (format!("{} {word}", cx.glyphs.symbol(glyph)), role),
        ];
        if let Some(by) = &round.decided_by {
            parts.push((format!(" {}", decided_by_text(by)), StyleRole::Dim));
        }
        return parts;
    }
    let (came, asked) = (round.contributions().count(), round.asked_seats());
    match (&world.progress.stage, round.closed) {
        (RunState::Closed, _) => {
            // The seat of a refused reply shows what is wrong with it.
            let reason = world.progress.closed.as_ref().map(|closed| match world.stop_refusal() {
                Some(_) => "stopped".to_owned(),
                None => closed.reason.phrase().into_owned(),
            });
            vec![(reason.unwrap_or_default(), StyleRole::Failed)]
        }
        (_, Some(_)) => {
            let text = decision_or_next(&table.plan, round.number, None, None);
            vec![(text, badges::UNDECIDED.role)]
        }
        (_, None) => vec![(format!("{came} of {asked} accepted"), StyleRole::Running)],
    }
}

/// Draws rows centred in an area, in both directions.
fn centre(cx: &DrawContext, area: Rect, rows: &[Vec<(String, StyleRole)>], buf: &mut Buffer) {
    let spare = area.height.saturating_sub(rows.len() as u16);
    for (nth, row) in rows.iter().enumerate() {
        let width: usize = row.iter().map(|(text, _)| columns(text)).sum();
        let at = line(area, spare / 2 + nth as u16);
        let pad = usize::from(area.width).saturating_sub(width) / 2;
        let mut pen = Pen::new(buf, at, cx.glyphs);
        pen.space(pad as u16);
        for (text, role) in row {
            pen.put(text, cx.theme.style(*role));
        }
    }
}
