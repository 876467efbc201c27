//! The limits and ids of tool calls, for all APIs.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::event::kind::ToolCall;
use crate::llm::Conversation;

/// The most calls of one reply.
pub(in crate::llm) const MAX_CALLS: usize = 64;
/// The most bytes of a tool's name; the API's own limit is 64.
pub(in crate::llm) const NAME_CAP: usize = 256;

/// What is wrong with the tool calls of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::llm) enum ToolCallFault {
    /// More than [`MOST`].
    TooMany,
    /// A call without a tool name.
    Nameless,
    /// A call with a name longer than [`NAME_CAP`].
    LongName,
}

/// Gives calls without an id a new one, and replaces duplicate ids, because results are matched by
/// id.
pub(in crate::llm) fn make_ids_unique(calls: &mut [ToolCall], before: &Conversation) {
    let mut seen = BTreeSet::new();
    if calls.iter().all(|call| !call.id.is_empty() && seen.insert(&call.id)) {
        return;
    }
    let earlier = before.iter().flat_map(|message| &*message.tool_calls);
    let ids = calls.iter().chain(earlier).map(|call| Arc::clone(&call.id));
    let mut taken: BTreeSet<Arc<str>> = ids.collect();
    let mut seen = BTreeSet::new();
    for call in calls {
        if call.id.is_empty() || seen.contains(&call.id) {
            let (stem, first) = if call.id.is_empty() { ("call", 1) } else { (&*call.id, 2) };
            let mut made = (first..).map(|nth: u32| Arc::<str>::from(format!("{stem}_{nth}")));
            if let Some(id) = made.find(|id| !taken.contains(id)) {
                call.id = id;
            }
        }
        taken.insert(Arc::clone(&call.id));
        seen.insert(Arc::clone(&call.id));
    }
}
