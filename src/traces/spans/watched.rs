//! The spans of a watched program, with the prompts and replies of its models.

use super::{MAX_CONVERSATIONS, RunSpans};
use crate::log::event::{CallStarted, ChatMessage, Event, Reply, SpanId};
use crate::log::facts::observed::{ObservedFact, SpanRole};
use crate::traces::attributes::{prompt_json, reply_json};
use crate::traces::conventions::Known;

impl RunSpans {
    /// Takes what another program reports.
    pub(super) fn take_observed(&mut self, event: &Event, fact: &ObservedFact) {
        match fact {
            ObservedFact::Opened { parent, about, .. } => {
                let known = self.open.get_mut(&event.span);
                let open = match known {
                    Some(open) => open,
                    None => {
                        let none = self.attributes();
                        let (name, role) = (String::new(), SpanRole::Step);
                        self.open(event.span, *parent, event.at, name, role, none)
                    }
                };
                open.parent = *parent;
                open.observed.get_or_insert_default().add(about);
            }
            ObservedFact::Closed { about, .. } => {
                if let Some(open) = self.open.get_mut(&event.span) {
                    open.observed.get_or_insert_default().add(about);
                }
            }
            ObservedFact::Note { text } if self.has_texts => {
                self.note(event, "note", vec![("roundtable.text", text.to_string().into())]);
            }
            ObservedFact::Named { about } => {
                if let (Some(thread), Some(run)) = (&about.thread, self.open.get_mut(&SpanId::RUN))
                {
                    run.attributes.known(Known::Conversation, &**thread);
                }
            }
            ObservedFact::Ended { .. }
            | ObservedFact::Note { .. }
            | ObservedFact::Text { .. }
            | ObservedFact::Recorded { .. } => {}
        }
    }

    pub(super) fn keep_conversation(&mut self, of: SpanId, messages: Vec<ChatMessage>) {
        if self.conversations.len() >= MAX_CONVERSATIONS {
            self.conversations.pop_front();
        }
        self.conversations.push_back((of, messages));
    }

    /// Adds the prompt of a watched program's call to the span around it.
    pub(super) fn begin_watched(&mut self, id: SpanId, call: &CallStarted) {
        if !self.has_texts {
            return;
        }
        let messages = self.messages_of(call);
        if let Some(around) = self.open.get_mut(&call.parent).filter(|_| !messages.is_empty()) {
            around.attributes.known(Known::InputMessages, prompt_json(&messages));
        }
        self.watched.insert(id, call.parent);
        self.keep_conversation(id, messages);
    }

    pub(super) fn watched_replied(&mut self, id: SpanId, around: SpanId, reply: &Reply) {
        if let Some(around) = self.open.get_mut(&around) {
            around.attributes.known(Known::OutputMessages, reply_json(reply));
        }
        let mut known = self.conversations.iter_mut();
        if let Some((_, messages)) = known.find(|(of, _)| *of == id) {
            messages.push(ChatMessage::from_reply(reply));
        }
    }
}
