//! Tasks and tools of a run as text and Markdown, for the clipboard.

use std::fmt::Write as _;

use super::results::told;
use super::told_tool::stage;
use super::tool_words::{effect, faults, percent, policy, times};
use crate::app::format;
use crate::event::World;
use crate::event::world::tools::ToolRow;

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

/// The tasks of an orchestrator and what they came to.
pub(super) fn plan_markdown(out: &mut String, world: &World) {
    let Some((orchestrator, _)) = world.orchestrator() else { return };
    if orchestrator.tasks.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## Tasks\n\n| task | worker | attempts | result |");
    let _ = writeln!(out, "| --- | --- | --- | --- |");
    for row in &orchestrator.tasks {
        let (id, worker) = (&row.task.id, &row.task.worker);
        let (attempts, told) = (row.attempts.len(), cell(&told(row)));
        let _ = writeln!(out, "| {id} | {worker} | {attempts} | {told} |");
    }
}

/// The tools beside the model, and their figures.
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
        let breaker = tool.head.limits.breaker.map_or("none", |_| stage(tool.stage));
        let _ = writeln!(
            out,
            "| {} | {breaker} | {} | {} | {} | {} | {} |",
            tool.name(),
            tally.asked,
            tally.requests(),
            tally.amplification().map(times).unwrap_or_default(),
            tally.error_rate().map(percent).unwrap_or_default(),
            tool.latencies.percentile(95).map(format::took).unwrap_or_default(),
        );
    }
}

/// What is known of one tool.
pub(super) fn tool_text(tool: &ToolRow) -> String {
    let mut text = format!("{} ({})\n", tool.name(), tool.head.kind);
    if tool.head.limits.breaker.is_some() {
        let _ = writeln!(text, "breaker  {}", stage(tool.stage));
    }
    let (refused, instead) = effect(&tool.tally);
    for (name, told) in [("injected", faults(tool)), ("refused", refused), ("instead", instead)] {
        if let Some(told) = told {
            let _ = writeln!(text, "{name}  {told}");
        }
    }
    for (name, told) in policy(&tool.head.limits) {
        let _ = writeln!(text, "{name}  {told}");
    }
    text
}
