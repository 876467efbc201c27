//! The tools of a run as text and Markdown, for the clipboard.

use std::fmt::Write as _;

use super::tool_summary::{faults_text, policy_fields, refused_and_fallbacks};
use crate::event::World;
use crate::event::world::tool_row::ToolRow;
use crate::narrate::event_line_tool::breaker_state;
use crate::narrate::format;

/// Writes the figures of the tools other than the model.
pub(super) fn tools_markdown(out: &mut String, world: &World) {
    let tools = || world.tools.rows().iter().filter(|tool| tool.name().as_str() != "llm");
    if tools().next().is_none() {
        return;
    }
    let _ = writeln!(out, "\n## Tools\n");
    let _ = writeln!(out, "| tool | breaker | calls | requests | requests a call | errors | p95 |");
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
            tally.amplification().map(format::requests_each).unwrap_or_default(),
            tally.error_rate().map(format::percent).unwrap_or_default(),
            tool.latencies.percentile(95).map(format::duration_text).unwrap_or_default(),
        );
    }
}

/// One tool as text: its breaker, its figures and its policy.
pub(crate) fn tool_text(tool: &ToolRow) -> String {
    let mut text = format!("{} ({})\n", tool.name(), tool.head.kind);
    if tool.head.limits.breaker.is_some() {
        let _ = writeln!(text, "breaker  {}", breaker_state(tool.breaker));
    }
    let (refused, instead) = refused_and_fallbacks(&tool.tally);
    for (name, value) in
        [("injected", faults_text(tool)), ("refused", refused), ("fallback", instead)]
    {
        if let Some(value) = value {
            let _ = writeln!(text, "{name}  {value}");
        }
    }
    for (name, value) in policy_fields(&tool.head.limits) {
        let _ = writeln!(text, "{name}  {value}");
    }
    text
}
