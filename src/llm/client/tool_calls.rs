//! What every API's tool calls have in common: their bounds, and ids that tell them apart.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::event::kind::ToolCall;
use crate::llm::Conversation;

/// The most calls of one reply.
pub(in crate::llm) const MOST: usize = 64;
/// The most bytes of a tool's name; the API's own bound is 64.
pub(in crate::llm) const NAME_CAP: usize = 256;

/// What is wrong with the calls of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::llm) enum Miscalled {
    /// More than [`MOST`].
    TooMany,
    /// One does not say which tool.
    Nameless,
    /// The name of one is longer than [`NAME_CAP`].
    LongName,
}

/// Gives ids where there are none, and other ones to calls whose id another has: results are told
/// apart by them.
pub(in crate::llm) fn tell_apart(calls: &mut [ToolCall], before: &Conversation) {
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
