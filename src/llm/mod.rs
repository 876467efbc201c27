//! Chat models: the request ([`ChatRequest`]), the reply ([`Reply`]), the failure ([`Failure`]).
//! `openai` and `anthropic` use HTTP, `scripted` plays the scenario's script.
//!
//! One call of [`ChatModel::chat`] is one attempt. Models do not retry, wait or apply timeouts
//! themselves; the gateway does. Dropping the future cancels the attempt.

mod adaptation;
pub mod anthropic;
mod client;
pub mod endpoint;
mod form;
mod history;
mod models;
pub mod openai;
pub mod prices;
pub mod recorded;
pub mod scripted;

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;

pub use crate::scenario::spec::tuning::{JsonMode, Tuning};
pub use adaptation::Adaptations;
pub use form::{ReplyContract, ReplyForm};
pub use models::Models;

use crate::event::kind::{
    AttemptFailed, ChatMessage, FailureClass, ModelLabel, Purpose, Reply, ToolCall, ToolOffer,
};
use crate::scenario::condition::CelBindings;

/// The request of one attempt.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// The whole conversation.
    pub messages: Conversation,
    /// The tools that it may call.
    pub tools: Arc<[ToolOffer]>,
    /// The required form of the reply.
    pub form: ReplyForm,
    /// What the call is for, and which agent or role makes it.
    pub purpose: Purpose,
    /// Number of the session's message that the run answers, from 1.
    pub message: u32,
    /// Number of the attempt within its call, from 1.
    pub attempt: u32,
    /// How many refused replies came before this call.
    pub again: u32,
    /// A random number for this attempt: a hash of (seed, span path, attempt).
    pub draw: u64,
    /// The values that conditions of a script can read; empty for a live model.
    pub shown: Arc<CelBindings>,
}

/// A conversation as it is sent. Earlier parts are shared between calls, so a long chain of calls
/// uses memory in proportion to its text.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// Most conversations have a single part.
    first: Option<ConversationPart>,
    more: Option<Arc<Vec<ConversationPart>>>,
}

/// The messages added between two calls.
#[derive(Clone, Debug)]
struct ConversationPart {
    messages: Arc<[ChatMessage]>,
    /// Words from the start of the conversation to the end of this part, counted on first use; only
    /// a script uses them.
    words: OnceLock<u64>,
}

/// A position in a conversation to return to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bookmark {
    parts: usize,
}

impl Conversation {
    /// Appends new messages.
    pub fn push(&mut self, messages: Arc<[ChatMessage]>) {
        if !messages.is_empty() {
            let part = ConversationPart { messages, words: OnceLock::new() };
            match &mut self.first {
                None => self.first = Some(part),
                Some(_) => Arc::make_mut(self.more.get_or_insert_default()).push(part),
            }
        }
    }

    fn parts(&self) -> impl DoubleEndedIterator<Item = &ConversationPart> {
        self.first.iter().chain(self.more.iter().flat_map(|more| &**more))
    }

    /// The messages in order.
    pub fn iter(&self) -> impl Iterator<Item = &ChatMessage> {
        self.parts().flat_map(|part| &*part.messages)
    }

    /// The number of words, used as the token count offline. Each part is counted once, in however
    /// many calls it is sent.
    pub fn words(&self) -> u64 {
        let uncounted = self.parts().rev().take_while(|part| part.words.get().is_none()).count();
        let counted = self.parts().rev().nth(uncounted);
        let before = counted.and_then(|part| part.words.get().copied()).unwrap_or_default();
        self.parts().skip(self.end().parts - uncounted).fold(before, |before, part| {
            let own = || part.messages.iter().map(count_message_words).sum::<u64>();
            *part.words.get_or_init(|| before + own())
        })
    }

    /// The current end, for a later [`go_back`](Self::go_back).
    pub fn end(&self) -> Bookmark {
        let more = self.more.as_ref().map_or(0, |more| more.len());
        Bookmark { parts: usize::from(self.first.is_some()) + more }
    }

    /// Removes everything that was added after `to`.
    pub fn go_back(&mut self, to: Bookmark) {
        if to.parts >= self.end().parts {
            return;
        }
        match to.parts.checked_sub(1) {
            None => *self = Self::default(),
            Some(0) => self.more = None,
            Some(more) => {
                if let Some(parts) = &mut self.more {
                    Arc::make_mut(parts).truncate(more);
                }
            }
        }
    }
}

impl From<Arc<[ChatMessage]>> for Conversation {
    fn from(messages: Arc<[ChatMessage]>) -> Self {
        let mut conversation = Self::default();
        conversation.push(messages);
        conversation
    }
}

fn count_message_words(message: &ChatMessage) -> u64 {
    count_reply_words(&message.content, &message.tool_calls)
}

/// The number of words of a text and its tool calls, used as the token count offline.
pub fn count_reply_words(text: &str, calls: &[ToolCall]) -> u64 {
    let calls = calls.iter().map(|call| 1 + count_words(&call.arguments));
    count_words(text) + calls.sum::<u64>()
}

/// The number of words in the sense of `split_ascii_whitespace`, used as the token count offline. A
/// script counts every prompt, so this compares pairs of bytes, which the compiler vectorizes,
/// instead of splitting the text.
pub fn count_words(text: &str) -> u64 {
    const VERTICAL_TAB: u8 = 0x0b;
    let white =
        |byte: u8| (byte == b' ') | ((byte.wrapping_sub(b'\t') < 5) & (byte != VERTICAL_TAB));
    let bytes = text.as_bytes();
    let begins = bytes.first().is_some_and(|first| !white(*first));
    let pairs = bytes.iter().zip(bytes.get(1..).unwrap_or_default());
    let more = pairs.filter(|&(before, byte)| white(*before) & !white(*byte)).count();
    u64::from(begins) + more as u64
}

/// Receives the text of a reply while it streams. Implementations must not block.
pub trait Listener: Send + Sync {
    /// The next piece of the reply's text.
    fn piece(&self, text: &str);
    /// A condition of a script could not be evaluated; it counts as false.
    fn condition_failed(&self, place: &str, text: &str) {
        let _ = (place, text);
    }
}

/// How an attempt failed: the event without the partial text.
pub type Failure = AttemptFailed;

/// A failure with its class and text only.
pub fn failure(class: FailureClass, text: impl Into<String>) -> Box<Failure> {
    AttemptFailed::new(class, text)
}

/// A chat model.
pub trait ChatModel: Send + Sync {
    /// Name and host for the screen and the log.
    fn label(&self) -> ModelLabel;

    /// The token limit of a reply, if one is set.
    fn max_tokens(&self) -> Option<u32> {
        None
    }

    /// Whether replies depend on the values for conditions; if not, callers do not compute them.
    fn reads_conditions(&self) -> bool {
        false
    }

    /// Whether its replies are those of an endpoint, now or when they were recorded.
    fn has_live_replies(&self) -> bool {
        matches!(self.label(), ModelLabel::Live { .. })
    }

    /// Makes one attempt.
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>>;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Conversation, count_words};
    use crate::event::kind::{ChatMessage, MessageRole};

    proptest! {
        /// After any sequence of additions, removals and counts it equals the plain list of
        /// messages.
        #[test]
        fn a_conversation_is_the_list_of_what_was_said(
            steps in prop::collection::vec((0_usize..4, any::<bool>(), any::<bool>()), 0..20),
        ) {
            let mut conversation = Conversation::default();
            let (mut list, mut marks) = (Vec::new(), Vec::new());
            for (step, (adds, goes_back, counts)) in steps.into_iter().enumerate() {
                marks.push((conversation.end(), list.len()));
                let other = conversation.clone();
                let said = |nth: usize| ChatMessage::new(MessageRole::User, format!("{step} {nth}"));
                let added: Vec<ChatMessage> = (0..adds).map(said).collect();
                list.extend(added.clone());
                conversation.push(added.into());
                if goes_back {
                    let (mark, length) = marks[step / 2];
                    if length < list.len() {
                        conversation.go_back(mark);
                        list.truncate(length);
                        marks.truncate(step / 2 + 1);
                        while marks.len() <= step {
                            marks.push((conversation.end(), list.len()));
                        }
                    }
                }
                if counts {
                    prop_assert_eq!(conversation.words(), 2 * list.len() as u64);
                    prop_assert_eq!(other.words(), 2 * other.iter().count() as u64);
                }
                prop_assert_eq!(conversation.iter().cloned().collect::<Vec<_>>(), list.clone());
            }
        }


        #[test]
        fn words_are_those_between_white_space(text in "[a ü\t\n\u{b}\u{c}\r\u{85}\u{a0} ]{0,80}") {
            prop_assert_eq!(count_words(&text), text.split_ascii_whitespace().count() as u64);
        }
    }
}
