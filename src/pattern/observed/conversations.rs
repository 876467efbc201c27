//! The prompts of a program: equal beginnings of growing conversations are stored once. A prompt is the part that is
//! new since the call with which it shares the most messages.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::ReportedCall;
use crate::log::event::{ChatMessage, Prompt, SpanId};
use crate::scenario::spec::tool::ToolOffer;

/// Most bytes of the new messages of a call: the first one and the last ones stay.
pub(super) const MAX_CALL: usize = 256 << 10;

/// Most beginnings of conversations that are known; later ones are stored whole.
const MAX_KNOWN: usize = 200_000;

/// The digest of the first messages of a conversation.
type Beginning = [u8; 32];

/// The conversations of a run.
#[derive(Default)]
pub(super) struct Conversations {
    /// The call that has a beginning, and how many of its messages that is.
    known: HashMap<Beginning, (SpanId, u32)>,
    calls: HashMap<SpanId, StartedCall>,
}

struct StartedCall {
    /// Digest and number of its messages.
    all: (Beginning, u32),
    tools: Arc<[ToolOffer]>,
}

impl Conversations {
    /// Starts a call with the part of its prompt that no earlier call has. `open` puts it into the log.
    pub(super) fn start(
        &mut self,
        call: &ReportedCall,
        open: impl FnOnce(Prompt) -> SpanId,
    ) -> SpanId {
        let mut last = Beginning::default();
        let mut digests = Vec::with_capacity(call.messages.len());
        for message in &call.messages {
            last = beginning(last, message);
            digests.push(last);
        }
        let shared = digests.iter().enumerate().rev();
        let shared =
            shared.map(|(nth, digest)| Some((nth + 1, *self.known.get(digest)?))).find_map(|it| it);
        let (count, after) =
            shared.map_or((0, None), |(count, (of, first))| (count, Some((of, first))));
        let (messages, left_out) = within_limit(call.messages.get(count..).unwrap_or_default());
        let before = after.and_then(|(of, _)| self.calls.get(&of)).map(|before| &before.tools);
        let tools: Arc<[ToolOffer]> = call.tools.as_slice().into();
        let is_same = before.map_or(tools.is_empty(), |before| *before == tools);
        let id = open(Prompt {
            after: after.map(|(of, _)| of),
            first: after.map(|(_, first)| first),
            left_out,
            messages,
            tools: (!is_same).then(|| Arc::clone(&tools)),
        });
        // What it has left out, nobody can continue.
        if left_out == 0 && self.known.len() < MAX_KNOWN {
            let count = u32::try_from(digests.len()).unwrap_or(u32::MAX);
            for (nth, digest) in (1..).zip(digests) {
                self.known.entry(digest).or_insert((id, nth));
            }
            self.calls.insert(id, StartedCall { all: (last, count), tools });
        }
        id
    }

    /// The call has this reply, which may be a message of the next prompt.
    pub(super) fn reply(&mut self, id: SpanId, reply: &ChatMessage) {
        let Some(StartedCall { all: (digest, count), .. }) = self.calls.get(&id) else { return };
        self.known.entry(beginning(*digest, reply)).or_insert((id, count.saturating_add(1)));
    }
}

/// The digest of some messages and another one.
fn beginning(before: Beginning, message: &ChatMessage) -> Beginning {
    let calls = message.tool_calls.iter();
    let parts = calls.flat_map(|call| [&call.id, &call.name, &call.arguments]);
    let parts = [&message.content].into_iter().chain(&message.tool_call_id).chain(parts);
    let mut digest = Sha256::new();
    digest.update(before);
    digest.update([message.role as u8]);
    for part in parts {
        digest.update(part.len().to_le_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize().into()
}

/// The messages that are kept, and how many are left out after the first one.
fn within_limit(messages: &[ChatMessage]) -> (Arc<[ChatMessage]>, u32) {
    let size = |message: &ChatMessage| {
        let calls = message.tool_calls.iter().map(|call| call.arguments.len() + call.name.len());
        message.content.len() + calls.sum::<usize>()
    };
    let Some((first, rest)) = messages.split_first() else { return (Arc::default(), 0) };
    let mut room = MAX_CALL.saturating_sub(size(first));
    let fits = |message: &&ChatMessage| {
        let fits = size(message) <= room;
        room = room.saturating_sub(size(message));
        fits
    };
    let kept = rest.iter().rev().take_while(fits).count();
    let left_out = rest.len() - kept;
    let kept = [first].into_iter().chain(rest.iter().skip(left_out)).cloned().collect();
    (kept, u32::try_from(left_out).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::log::event::MessageRole;

    /// A conversation: whether it continues an earlier one, how much of that, and what is new.
    fn conversation() -> impl Strategy<Value = (usize, usize, Vec<u8>, Option<u8>)> {
        let new = proptest::collection::vec(0..3_u8, 0..4);
        (0..8_usize, 0..12_usize, new, proptest::option::of(0..3_u8))
    }

    fn message(of: u8) -> ChatMessage {
        ChatMessage::new(MessageRole::User, format!("message {of}"))
    }

    proptest! {
        #[test]
        fn stored_parts_make_the_prompts(
            steps in proptest::collection::vec(conversation(), 1..20)
        ) {
            let mut conversations = Conversations::default();
            // The whole messages with the reply, and what is stored.
            let mut whole: Vec<Vec<ChatMessage>> = Vec::new();
            let mut stored: Vec<(Prompt, Option<ChatMessage>)> = Vec::new();
            for (earlier, first, new, reply) in steps {
                let mut messages = whole.get(earlier).cloned().unwrap_or_default();
                messages.truncate(first);
                messages.extend(new.into_iter().map(message));
                let call = ReportedCall { messages: messages.clone(), ..ReportedCall::default() };
                let id = SpanId(stored.len() as u32);
                conversations.start(&call, |prompt| {
                    stored.push((prompt, None));
                    id
                });
                let mut at = stored.len() - 1;
                let mut parts: Vec<(Vec<ChatMessage>, Option<u32>)> = Vec::new();
                loop {
                    let (prompt, reply) = &stored[at];
                    let reply = reply.iter().filter(|_| !parts.is_empty()).cloned();
                    parts.push((prompt.messages.iter().cloned().chain(reply).collect(), prompt.first));
                    let Some(after) = prompt.after else { break };
                    at = after.0 as usize;
                }
                let mut read = Vec::new();
                for (part, first) in parts.into_iter().rev() {
                    read.truncate(first.map_or(usize::MAX, |first| first as usize));
                    read.extend(part);
                }
                prop_assert_eq!(&read, &messages);
                if let Some(reply) = reply.map(message) {
                    conversations.reply(id, &reply);
                    stored.last_mut().expect("a call").1 = Some(reply.clone());
                    messages.push(reply);
                }
                whole.push(messages);
            }
        }
    }
}
