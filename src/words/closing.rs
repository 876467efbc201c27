//! The end of headless text: the answer, what was replaced, the load on each tool, and the summary
//! of a session.

use std::fmt::Write as _;
use std::time::Duration;

use super::format;
use super::headless::cost_part;
use super::measure::{columns, padded};
use super::patterns::words_of;
use super::styled::StyledLine;
use crate::base::name::ToolName;
use crate::base::time;
use crate::base::visible::{REASON_CHARS, visible, visible_within};
use crate::log::event::{FallbackKind, Usage, World};
use crate::log::world::tool_row::MIN_SAMPLES;
use crate::log::world::{CutReply, Outcome, SessionOutcome};

/// The text below the last line: the answer, or what to do about a stop.
pub fn closing(outcome: &Outcome, world: &World) -> String {
    let mut out = String::new();
    let own = words_of(world).map(|words| words.closing()).unwrap_or_default();
    if let Some(answer) = &own.answer {
        out.push('\n');
        out.push_str(answer);
    } else if let Some(answer) = &world.progress.answer {
        out.push('\n');
        for line in answer.lines() {
            out.push_str(&visible(line));
            out.push('\n');
        }
    }
    out.push_str(&after_answer_with(outcome, world, &own.table));
    out
}

/// The text below the answer: fallbacks, tables, the error and what to do about it.
pub fn after_answer(outcome: &Outcome, world: &World) -> String {
    let own = words_of(world).map(|words| words.closing()).unwrap_or_default();
    after_answer_with(outcome, world, &own.table)
}

fn after_answer_with(outcome: &Outcome, world: &World, table: &str) -> String {
    let mut out = fallbacks_and_tools(outcome, world, table);
    for said in [world.stop_cause().as_deref(), world.stop_advice()].into_iter().flatten() {
        out.push_str(&visible(said));
        out.push('\n');
    }
    out
}

/// The summary line below the last run of a session.
pub fn session(outcome: &SessionOutcome) -> StyledLine {
    let messages = format::count_noun(outcome.messages as u64, "message");
    let calls = format::count_noun(outcome.usage.calls, "call");
    let took = time::duration_text(Duration::from_millis(outcome.elapsed_ms));
    let mut line = StyledLine::default()
        .then(format!("session  {} of {messages} answered, {calls}, {took}", outcome.answered));
    if outcome.usage.tokens != Usage::default() {
        line.push(format!(", tokens {}", format::tokens(outcome.usage.tokens)));
    }
    if let Some(cost) = outcome.usage.cost_usd {
        line.push(", ");
        line.parts.push(cost_part(cost));
    }
    line
}

/// What is said of replies that were used though they are not whole: of the answer first, then of
/// those that others have read.
pub fn cut_replies(world: &World) -> Vec<String> {
    let mut lines: Vec<String> = answer_mark(world).into_iter().collect();
    let mut cut = world.cut_replies();
    if let (1, Some((_, before))) = (lines.len(), cut.split_last()) {
        // The answer is from the last one.
        cut = before;
    }
    for (nth, it) in cut.iter().enumerate() {
        let same = |other: &&CutReply| (&other.who, other.end) == (&it.who, it.end);
        if cut[..nth].iter().any(|other| same(&other)) {
            continue;
        }
        let (who, mark) = (visible(&it.who), it.end.mark().unwrap_or_default());
        lines.push(match cut.iter().filter(same).count() {
            1 => format!("{who}: a reply was {mark}"),
            times => format!("{who}: {times} replies were {mark}"),
        });
    }
    lines
}

/// The sentence for an answer that is not whole.
pub fn answer_mark(world: &World) -> Option<String> {
    let mark = world.progress.answer_end.mark()?;
    Some(format!("The answer was {mark}."))
}

/// The text below the last line: the fallbacks used, the pattern's own table, and the load on each
/// tool.
fn fallbacks_and_tools(outcome: &Outcome, world: &World, table: &str) -> String {
    let mut out = String::new();
    for line in cut_replies(world) {
        let _ = write!(out, "\n{line}");
    }
    for it in &outcome.replaced {
        let whose = match &it.task_id {
            Some(task) => format!("{} of {}", it.tool, visible_within(task.as_str(), REASON_CHARS)),
            None => format!("{}, {}", it.tool, format::count_noun(it.times.unwrap_or(1), "time")),
        };
        let by = match it.by {
            FallbackKind::Cached { age_ms } => {
                let age = time::duration_text(Duration::from_millis(age_ms));
                format!("fallback: cached value, at most {age} old")
            }
            FallbackKind::Default => "fallback: default value".to_owned(),
            FallbackKind::Omitted => "omitted".to_owned(),
        };
        let _ = write!(out, "\n{whose}: {by}");
        if let Some(reason) = &it.reason {
            let _ = write!(out, " ({})", reason.phrase());
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(table);
    let is_tool = |name: &ToolName| {
        world.tools.rows().iter().any(|row| row.name() == name && row.head.is_tool())
    };
    let tools = || outcome.tools.iter().filter(|it| is_tool(&it.tool));
    if tools().next().is_none() {
        return out;
    }
    let name = |tool: &ToolName| visible_within(tool.as_str(), REASON_CHARS);
    let width = tools().map(|it| columns(&name(&it.tool))).max().unwrap_or(0).max(4);
    let _ = writeln!(
        out,
        "\n{}  {:>6}  {:>8}  {:>6}  {:>8}  {:>7}  {:>7}  {:>7}",
        padded("tool", width),
        "calls",
        "requests",
        "a call",
        "answered",
        "refused",
        "p50",
        "p95"
    );
    let took = |ms: Option<u64>| {
        ms.map_or_else(|| "-".to_owned(), |ms| time::duration_text(Duration::from_millis(ms)))
    };
    for it in tools() {
        let each = it.amplification.map_or_else(|| "-".to_owned(), format::requests_each);
        let _ = writeln!(
            out,
            "{}  {:>6}  {:>8}  {:>6}  {:>8}  {:>7}  {:>7}  {:>7}",
            padded(&name(&it.tool), width),
            it.calls,
            it.requests,
            each,
            it.answered,
            it.circuit_open + it.bulkhead_full,
            took(it.p50_ms),
            took(it.p95_ms),
        );
    }
    for it in tools().filter(|it| it.denied > 0) {
        let _ =
            writeln!(out, "{}: {} denied", name(&it.tool), format::count_noun(it.denied, "call"));
    }
    if tools().any(|it| it.p50_ms.is_none() || it.p95_ms.is_none()) {
        out.push_str(&format!("p50, p95: - means fewer than {MIN_SAMPLES} answered calls\n"));
    }
    out
}
