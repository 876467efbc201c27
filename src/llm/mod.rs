//! Chat models: what is asked of one ([`ChatRequest`]), what it answers ([`Reply`]), how it fails
//! ([`Failure`]). `openai` and `anthropic` talk HTTP, `scripted` plays the scenario's script.
//!
//! One call of [`ChatModel::chat`] is one attempt: no model retries, waits or times out by itself
//! (the gateway does), and dropping the future cancels the attempt.

mod adaptation;
pub mod anthropic;
mod client;
pub mod endpoint;
mod form;
mod models;
pub mod openai;
pub mod prices;
pub mod scripted;

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;

pub use crate::scenario::tuning::{JsonRung, Tuning};
pub use adaptation::Adaptations;
pub use form::{Contract, Form};
pub use models::Models;

use crate::event::kind::{
    AttemptFailed, ChatMessage, FailureClass, ModelLabel, Purpose, Reply, ToolCall, ToolOffer,
};
use crate::scenario::condition::Shown;

/// What is asked of a model in one attempt.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// The whole conversation.
    pub messages: Conversation,
    /// The tools that it may call.
    pub tools: Arc<[ToolOffer]>,
    /// The form that the reply must have.
    pub form: Form,
    /// On whose behalf.
    pub purpose: Purpose,
    /// Which message of its session the run answers, from 1.
    pub message: u32,
    /// Which attempt of its call, from 1.
    pub attempt: u32,
    /// How often the same was asked before and the reply was refused.
    pub again: u32,
    /// A draw that is this attempt's own: a hash of (seed, span path, attempt).
    pub draw: u64,
    /// What conditions of a script may look at; empty for a live model.
    pub shown: Arc<Shown>,
}

/// A conversation as it is sent. What was put together once is shared by all that comes after, so
/// that a long chain of calls stays linear in what was said.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// Most conversations have one part, and need nothing more.
    first: Option<Part>,
    more: Option<Arc<Vec<Part>>>,
}

/// What was said between two calls.
#[derive(Clone, Debug)]
struct Part {
    messages: Arc<[ChatMessage]>,
    /// Words from the start of the conversation to the end of this part, once somebody asked: only
    /// a script does.
    words: OnceLock<u64>,
}

/// A place in a conversation that it can go back to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bookmark {
    parts: usize,
}

impl Conversation {
    /// Adds what was said since.
    pub fn push(&mut self, messages: Arc<[ChatMessage]>) {
        if !messages.is_empty() {
            let part = Part { messages, words: OnceLock::new() };
            match &mut self.first {
                None => self.first = Some(part),
                Some(_) => Arc::make_mut(self.more.get_or_insert_default()).push(part),
            }
        }
    }

    fn parts(&self) -> impl DoubleEndedIterator<Item = &Part> {
        self.first.iter().chain(self.more.iter().flat_map(|more| &**more))
    }

    /// The messages in their order.
    pub fn iter(&self) -> impl Iterator<Item = &ChatMessage> {
        self.parts().flat_map(|part| &*part.messages)
    }

    /// What stands for its tokens offline: words, counted. Each part is counted once, however many
    /// calls it is sent with.
    pub fn words(&self) -> u64 {
        let uncounted = self.parts().rev().take_while(|part| part.words.get().is_none()).count();
        let counted = self.parts().rev().nth(uncounted);
        let before = counted.and_then(|part| part.words.get().copied()).unwrap_or_default();
        self.parts().skip(self.end().parts - uncounted).fold(before, |before, part| {
            let own = || part.messages.iter().map(words_of).sum::<u64>();
            *part.words.get_or_init(|| before + own())
        })
    }

    /// Its end, to go back to.
    pub fn end(&self) -> Bookmark {
        let more = self.more.as_ref().map_or(0, |more| more.len());
        Bookmark { parts: usize::from(self.first.is_some()) + more }
    }

    /// Takes away what was added since.
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

fn words_of(message: &ChatMessage) -> u64 {
    words_said(&message.content, &message.tool_calls)
}

/// What stands for the tokens of a text and of the calls beside it.
pub fn words_said(text: &str, calls: &[ToolCall]) -> u64 {
    let calls = calls.iter().map(|call| 1 + words(&call.arguments));
    words(text) + calls.sum::<u64>()
}

/// What stands for tokens offline: words, as `split_ascii_whitespace` tells them apart. A script counts
/// every prompt, so this looks at pairs of bytes, many at a time, in place of cutting the text.
pub fn words(text: &str) -> u64 {
    const VERTICAL_TAB: u8 = 0x0b;
    let white =
        |byte: u8| (byte == b' ') | ((byte.wrapping_sub(b'\t') < 5) & (byte != VERTICAL_TAB));
    let bytes = text.as_bytes();
    let begins = bytes.first().is_some_and(|first| !white(*first));
    let pairs = bytes.iter().zip(bytes.get(1..).unwrap_or_default());
    let more = pairs.filter(|&(before, byte)| white(*before) & !white(*byte)).count();
    u64::from(begins) + more as u64
}

/// Takes the text of a reply while it comes: each piece as it arrives. It must not block.
pub trait Listener: Send + Sync {
    /// The next piece of the reply's text.
    fn piece(&self, text: &str);
    /// A condition of a script could not be evaluated; it counts as false.
    fn condition_failed(&self, place: &str, text: &str) {
        let _ = (place, text);
    }
}

/// How an attempt failed: the fact without the part of the text that had come.
pub type Failure = AttemptFailed;

/// A failure of a class with its text, nothing else known.
pub fn failure(class: FailureClass, text: impl Into<String>) -> Box<Failure> {
    AttemptFailed::of(class, text)
}

/// A chat model.
pub trait ChatModel: Send + Sync {
    /// What the screen and the log call it.
    fn label(&self) -> ModelLabel;

    /// Tokens of one reply at most, where that is set.
    fn max_tokens(&self) -> Option<u32> {
        None
    }

    /// Whether answers depend on what is shown to conditions; where not, nothing is prepared.
    fn reads_conditions(&self) -> bool {
        false
    }

    /// One attempt.
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>>;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Conversation, words};
    use crate::event::kind::{ChatMessage, Speaker};

    proptest! {
        /// Whatever is added, taken away and counted on the way, it is the list of what was said.
        #[test]
        fn a_conversation_is_the_list_of_what_was_said(
            steps in prop::collection::vec((0_usize..4, any::<bool>(), any::<bool>()), 0..20),
        ) {
            let mut conversation = Conversation::default();
            let (mut list, mut marks) = (Vec::new(), Vec::new());
            for (step, (adds, goes_back, counts)) in steps.into_iter().enumerate() {
                marks.push((conversation.end(), list.len()));
                let other = conversation.clone();
                let said = |nth: usize| ChatMessage::new(Speaker::User, format!("{step} {nth}"));
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
            prop_assert_eq!(words(&text), text.split_ascii_whitespace().count() as u64);
        }
    }
}
