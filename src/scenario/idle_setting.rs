//! Settings of teams and swarms that do nothing, or nothing but harm, beside the others.

use super::format::File;
use super::format_team::{AgentTable, Members};
use super::named::Entry;
use super::reader::Reader;

/// Of a coordinator's team: what is shown of members where nothing is, or where nothing is streamed.
pub(super) fn of_team(table: &AgentTable, file: &File, cx: &mut Reader) {
    let Some(tools) = table.member_tools.as_ref().map(|tools| &tools.value) else { return };
    let streams = file.model.as_ref().is_none_or(|model| model.stream);
    cx.within("member_tools", |cx| {
        if tools.inner_text.at.end > 0 && !tools.stream_inner.value {
            let what = "`inner_text` does nothing: what members say is not shown";
            let help = "add stream_inner = true, or leave it out";
            cx.within("inner_text", |cx| cx.warn(tools.inner_text.at, what, help));
        }
        if tools.stream_inner.value && !streams {
            let what = "`stream_inner` does nothing: model.stream is false";
            let help = "leave one of the two out";
            cx.within("stream_inner", |cx| cx.warn(tools.stream_inner.at, what, help));
        }
    });
}

/// Of a swarm: who starts the next message of a session, and when handoffs are refused.
pub(super) fn of_swarm(
    entry: &Entry<AgentTable>,
    table: &AgentTable,
    file: &File,
    cx: &mut Reader,
) {
    let root = file.swarm.as_ref().and_then(|swarm| swarm.root.as_ref());
    let transfer = &table.cross_request_transfer;
    if transfer.value && root.is_none_or(|root| root.text != entry.name) {
        let what = "`cross_request_transfer` does nothing in a swarm within another team";
        let help = "only the agent that a person talks to is given the next message";
        cx.within("cross_request_transfer", |cx| cx.warn(transfer.at, what, help));
    }
    refuses_all(table, cx);
    too_few(table, cx);
}

/// More different names among the last targets than there are members.
fn too_few(table: &AgentTable, cx: &mut Reader) {
    let (window, unique) = (&table.repetitive_handoff_window, &table.repetitive_handoff_min_unique);
    let Some(Members(members)) = &table.members else { return };
    let count = members.value.len();
    let too_many = unique.value.0 as usize > count && unique.value.0 <= window.value.0;
    if unique.at.end > 0 && window.value.0 > 0 && too_many {
        let what = format!(
            "{} different names cannot be among the targets: every handoff is refused once the \
             window is full",
            unique.value.0
        );
        let help = format!("members of the swarm: {count}");
        cx.within("repetitive_handoff_min_unique", |cx| cx.warn(unique.at, what, help));
    }
}

/// A window that can never hold so many different names.
fn refuses_all(table: &AgentTable, cx: &mut Reader) {
    let (window, unique) = (&table.repetitive_handoff_window, &table.repetitive_handoff_min_unique);
    let (names, most) = (unique.value.0, window.value.0);
    if most == 0 || names <= most {
        return;
    }
    let what = format!(
        "{names} different names cannot be among {most}: every hand-off is refused once the window \
         is full"
    );
    // Of the two the one that the file says; the other may be the usual.
    if unique.at.end > 0 {
        let help = "at most the window; 0: any number";
        cx.within("repetitive_handoff_min_unique", |cx| cx.warn(unique.at, what, help));
    } else {
        let help = format!("at least `repetitive_handoff_min_unique`, which is {names}; 0: none");
        cx.within("repetitive_handoff_window", |cx| cx.warn(window.at, what, help));
    }
}
