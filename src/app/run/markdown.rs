//! Tasks and tools of a run as text and Markdown, for the clipboard.

use std::fmt::Write as _;

use super::results::task_result;
use super::tool_summary::{
    factor_text, faults_text, percent, policy_fields, refused_and_fallbacks,
};
use crate::agents::projection::{HopKind, HopState};
use crate::event::World;
use crate::event::world::tools::ToolRow;
use crate::narrate::event_line_tool::breaker_state;
use crate::narrate::format;

/// A text made safe for a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

/// Writes the tasks of an orchestrator and their results.
pub(super) fn plan_markdown(out: &mut String, world: &World) {
    let Some(orchestrator) = world.orchestrator() else { return };
    if orchestrator.tasks.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## Tasks\n\n| task | worker | attempts | result |");
    let _ = writeln!(out, "| --- | --- | --- | --- |");
    for row in &orchestrator.tasks {
        let (id, worker) = (&row.task.id, &row.task.worker);
        let (attempts, told) = (row.attempts.len(), cell(&task_result(row)));
        let _ = writeln!(out, "| {id} | {worker} | {attempts} | {told} |");
    }
}

/// Writes the hops of a team: who handed over to or consulted whom.
pub(super) fn team_markdown(out: &mut String, world: &World) {
    /// Most hops that are listed; further ones are only counted.
    const MOST: usize = 500;
    let Some(team) = world.team().filter(|team| !team.hops.is_empty()) else { return };
    let _ = writeln!(out, "\n## Hops\n\n| # | from | to | how | why |");
    let _ = writeln!(out, "| --- | --- | --- | --- | --- |");
    for (nth, hop) in team.hops.iter().take(MOST).enumerate() {
        let from = hop.from.as_ref().map_or("you", |from| from.as_str());
        let how = match (&hop.state, hop.kind) {
            (HopState::Refused(_), _) => "refused",
            (_, HopKind::Consult) => "consults",
            (_, HopKind::Start | HopKind::Handoff) => "hands over",
        };
        let why = match &hop.state {
            HopState::Refused(why) => why.to_string(),
            HopState::Failed(reason) => reason.phrase().into_owned(),
            HopState::Degraded { by, reason } => {
                format!("{}; {}", reason.phrase(), by.word())
            }
            _ => cell(hop.message.as_deref().unwrap_or_default()),
        };
        let _ = writeln!(out, "| {} | {from} | {} | {how} | {why} |", nth + 1, hop.to);
    }
    if let Some(more) = team.hops.len().checked_sub(MOST).filter(|more| *more > 0) {
        let _ = writeln!(out, "\nAnd {}.", format::count_noun(more as u64, "more hop"));
    }
}

/// Writes the figures of the tools other than the model.
pub(super) fn tools_markdown(out: &mut String, world: &World) {
    let tools = || world.tools.rows().iter().filter(|tool| tool.name().as_str() != "llm");
    if tools().next().is_none() {
        return;
    }
    let _ = writeln!(out, "\n## Tools\n");
    let _ = writeln!(out, "| tool | breaker | calls | requests | amplification | errors | p95 |");
    let _ = writeln!(out, "| --- | --- | --- | --- | --- | --- | --- |");
    for tool in tools() {
        let tally = &tool.tally;
        let breaker = tool.head.limits.breaker.map_or("none", |_| breaker_state(tool.breaker));
        let _ = writeln!(
            out,
            "| {} | {breaker} | {} | {} | {} | {} | {} |",
            tool.name(),
            tally.calls,
            tally.requests(),
            tally.amplification().map(factor_text).unwrap_or_default(),
            tally.error_rate().map(percent).unwrap_or_default(),
            tool.latencies.percentile(95).map(format::duration_text).unwrap_or_default(),
        );
    }
}

/// One tool as text: its breaker, its figures and its policy.
pub(super) fn tool_text(tool: &ToolRow) -> String {
    let mut text = format!("{} ({})\n", tool.name(), tool.head.kind);
    if tool.head.limits.breaker.is_some() {
        let _ = writeln!(text, "breaker  {}", breaker_state(tool.breaker));
    }
    let (refused, instead) = refused_and_fallbacks(&tool.tally);
    for (name, told) in
        [("injected", faults_text(tool)), ("refused", refused), ("fallback", instead)]
    {
        if let Some(told) = told {
            let _ = writeln!(text, "{name}  {told}");
        }
    }
    for (name, told) in policy_fields(&tool.head.limits) {
        let _ = writeln!(text, "{name}  {told}");
    }
    text
}
