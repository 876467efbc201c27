//! Warns of settings of teams and swarms that have no effect or only do harm together with others.

use crate::agents::file::table::{AgentTable, Members};
use crate::scenario::file::format::ScenarioFile;
use crate::scenario::file::named::NamedEntry;
use crate::scenario::file::reader::ReadContext;

/// Settings of a team: output of members that is not shown, or not streamed.
pub(crate) fn warn_of_team_settings(table: &AgentTable, file: &ScenarioFile, cx: &mut ReadContext) {
    let Some(tools) = table.member_tools.as_ref().map(|tools| &tools.value) else { return };
    let streams = file.model.as_ref().is_none_or(|model| model.stream);
    cx.at_key("member_tools", |cx| {
        if tools.inner_text.at.end > 0 && !tools.stream_inner.value {
            let what = "`inner_text` has no effect: output of members is not shown";
            let help = "add stream_inner = true, or remove it";
            cx.at_key("inner_text", |cx| cx.warn(tools.inner_text.at, what, help));
        }
        if tools.stream_inner.value && !streams {
            let what = "`stream_inner` has no effect: model.stream is false";
            let help = "remove one of the two";
            cx.at_key("stream_inner", |cx| cx.warn(tools.stream_inner.at, what, help));
        }
    });
}

/// Settings of a swarm: where the next message starts, and when handoffs are refused.
pub(crate) fn warn_of_swarm_settings(
    entry: &NamedEntry<AgentTable>,
    table: &AgentTable,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    let root = file.swarm.as_ref().and_then(|swarm| swarm.root.as_ref());
    let transfer = &table.cross_request_transfer;
    if transfer.value && root.is_none_or(|root| root.text != entry.name) {
        let what = "`cross_request_transfer` has no effect in a swarm within another team";
        let help = "only the root agent receives the next message";
        cx.at_key("cross_request_transfer", |cx| cx.warn(transfer.at, what, help));
    }
    warn_of_small_window(table, cx);
    warn_of_few_members(table, cx);
}

/// Warns if more different names are required than there are members.
fn warn_of_few_members(table: &AgentTable, cx: &mut ReadContext) {
    let (window, unique) = (&table.repetitive_handoff_window, &table.repetitive_handoff_min_unique);
    let Some(Members(members)) = &table.members else { return };
    let count = members.value.len();
    let too_many = unique.value.0 as usize > count && unique.value.0 <= window.value.0;
    if unique.at.end > 0 && window.value.0 > 0 && too_many {
        let what = format!(
            "the targets cannot have {} different names: every handoff is refused once the \
             window is full",
            unique.value.0
        );
        let help = format!("members of the swarm: {count}");
        cx.at_key("repetitive_handoff_min_unique", |cx| cx.warn(unique.at, what, help));
    }
}

/// Warns if more different names are required than the window has entries.
fn warn_of_small_window(table: &AgentTable, cx: &mut ReadContext) {
    let (window, unique) = (&table.repetitive_handoff_window, &table.repetitive_handoff_min_unique);
    let (names, most) = (unique.value.0, window.value.0);
    if most == 0 || names <= most {
        return;
    }
    let what = format!(
        "{most} targets cannot have {names} different names: every handoff is refused once the \
         window is full"
    );
    // The warning is at the one of the two that the file sets; the other may be a default.
    if unique.at.end > 0 {
        let help = "set it to at most the window, or 0 for no check";
        cx.at_key("repetitive_handoff_min_unique", |cx| cx.warn(unique.at, what, help));
    } else {
        let help = format!(
            "set it to at least `repetitive_handoff_min_unique` ({names}), or 0 for no check"
        );
        cx.at_key("repetitive_handoff_window", |cx| cx.warn(window.at, what, help));
    }
}
