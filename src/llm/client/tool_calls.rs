//! The limits and ids of tool calls, for all APIs.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::fields::{BadAnswer, Fields};
use crate::event::kind::ToolCall;
use crate::llm::Conversation;

/// The most calls of one reply.
pub(in crate::llm) const MAX_CALLS: usize = 64;
/// The most bytes of a tool's name; the API's own limit is 64.
pub(in crate::llm) const NAME_CAP: usize = 256;

/// What is wrong with the tool calls of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::llm) enum ToolCallFault {
    /// More than [`MAX_CALLS`].
    TooMany,
    /// A call without a tool name.
    Nameless,
    /// A call with a name longer than [`NAME_CAP`].
    LongName,
}

/// The arguments of a call, or the next part of them: JSON in a string or, from some servers, the JSON itself.
///
/// # Errors
/// They are a string that cannot be read.
pub(in crate::llm) fn arguments<'a>(
    fields: &Fields<'a>,
    name: &str,
) -> Result<Cow<'a, str>, BadAnswer> {
    match fields.raw(name).map(|json| json.get()) {
        None | Some("null" | "false") => Ok(Cow::Borrowed("")),
        Some(json) if json.starts_with('"') => fields.text(name),
        // The empty object of PHP.
        Some(json) if json.starts_with('[') && fields.get(name).is_none() => Ok("{}".into()),
        Some(json) => Ok(without_white_space(json).into()),
    }
}

/// JSON without the white space between its parts. Parsing it would change large numbers.
fn without_white_space(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let is_kept = |c: &char| {
        match c {
            _ if std::mem::take(&mut escaped) => {}
            '"' => in_string = !in_string,
            '\\' => escaped = true,
            _ => return in_string || !c.is_ascii_whitespace(),
        }
        true
    };
    json.chars().filter(is_kept).collect()
}

/// Complete arguments as they are kept: an empty list, which is how PHP writes an empty object, is one.
/// Everything else stays as the model wrote it.
pub(in crate::llm) fn whole_arguments(arguments: &str) -> &str {
    let inner = arguments.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if inner.is_some_and(|inner| inner.trim().is_empty()) { "{}" } else { arguments }
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
