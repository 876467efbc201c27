//! Chat models: the request ([`ChatRequest`]), the reply ([`Reply`]), the failure ([`Failure`]),
//! the required form of a reply, and the models of a run by caller.
//!
//! One call of [`ChatModel::chat`] is one attempt. Models do not retry, wait or apply timeouts
//! themselves; the gateway does. Dropping the future cancels the attempt. A request has only what a
//! scenario or the operator set; what an endpoint refuses is left out later (`adaptation.rs`). All
//! models of a run share the guard `llm`.

mod adaptation;
pub mod anthropic;
mod client;
pub mod endpoint;
mod history;
pub mod host;
pub mod openai;
pub mod prices;
pub mod recorded;
pub mod script;

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use futures::future::BoxFuture;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::log::event::{
    AttemptFailed, ChatMessage, FailureClass, ModelLabel, ModelPriceHead, Purpose, Reply,
};
use crate::scenario::cel::CelBindings;
use crate::scenario::spec::tool::{ToolCall, ToolOffer};
use crate::scenario::spec::{ModelCaller, Price};

pub use self::adaptation::Adaptations;
use self::host::{AttemptHost, NoHost};

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
    /// How often the run has made a call for the same purpose, this time included; always 1 with a script
    /// that does not depend on it.
    pub nth: u32,
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

    /// The number of words, used as the token count offline. Each part is counted once, even if many
    /// calls send it.
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
    /// The run, for a model that is an agent of another program.
    fn host(&self) -> &dyn AttemptHost {
        &NoHost
    }
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

/// The required form of a reply. It only shapes the request; policy alone judges the reply.
#[derive(Clone, Debug, Default)]
pub enum ReplyForm {
    /// Any text.
    #[default]
    Text,
    /// One JSON object.
    Object,
    /// One JSON object that follows this contract.
    Contract(Arc<ReplyContract>),
}

/// The contract of a reply, as a JSON schema.
pub struct ReplyContract {
    /// The name of the schema for the provider: letters, digits and `_`.
    pub name: &'static str,
    /// Whether strict mode is possible: every object in the schema lists all of its keys.
    pub strict: bool,
    /// The schema as JSON, built when it is first sent; a script never needs it.
    schema: LazyLock<Box<RawValue>, Box<dyn FnOnce() -> Box<RawValue> + Send>>,
    /// The schema without bounds, for an API that does not support them; built when it is first
    /// sent. `None` if the schema has no bounds.
    without_bounds: OnceLock<Option<Box<RawValue>>>,
    /// What chat completions call the format of the reply, with the schema in it; built when it is first
    /// sent.
    chat_format: OnceLock<Box<RawValue>>,
}

impl fmt::Debug for ReplyContract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contract").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ReplyContract {
    /// The schema, as the JSON that is sent.
    pub fn schema(&self) -> &RawValue {
        &self.schema
    }

    /// The schema for an API that does not support bounds. `change` is called once; it returns
    /// `None` if the schema can stay as it is.
    pub(crate) fn schema_without_bounds(
        &self,
        change: impl FnOnce(&RawValue) -> Option<Box<RawValue>>,
    ) -> &RawValue {
        let changed = self.without_bounds.get_or_init(|| change(self.schema()));
        changed.as_deref().unwrap_or_else(|| self.schema())
    }

    /// The format of the reply for chat completions. `make` is called once.
    pub(crate) fn chat_format(&self, make: impl FnOnce() -> Box<RawValue>) -> &RawValue {
        self.chat_format.get_or_init(make)
    }

    /// The schema of an object with exactly these keys. Providers support a subset of JSON Schema
    /// with shapes and enumerated words, so bounds of numbers and lengths are stated in the prompt
    /// only.
    pub fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
        let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        let properties: Map<String, Value> =
            fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": names,
            "additionalProperties": false,
        })
    }

    /// The schema of a text that is one of these words.
    pub fn one_of<'w>(words: impl IntoIterator<Item = &'w str>) -> Value {
        json!({ "type": "string", "enum": words.into_iter().collect::<Vec<_>>() })
    }
}

impl ReplyForm {
    /// The form of a reply that follows this contract.
    pub fn with_contract(
        name: &'static str,
        strict: bool,
        schema: impl FnOnce() -> Value + Send + 'static,
    ) -> Self {
        // Our own schemas serialize without errors.
        let text = || to_raw_value(&schema()).unwrap_or_else(|_| RawValue::NULL.to_owned());
        let schema = LazyLock::new(Box::new(text) as Box<dyn FnOnce() -> Box<RawValue> + Send>);
        let (without_bounds, chat_format) = (OnceLock::new(), OnceLock::new());
        let contract = ReplyContract { name, strict, schema, without_bounds, chat_format };
        Self::Contract(Arc::new(contract))
    }

    /// Whether the reply must be JSON.
    pub fn is_json(&self) -> bool {
        !matches!(self, Self::Text)
    }

    /// The contract, if there is one.
    pub fn contract(&self) -> Option<&ReplyContract> {
        match self {
            Self::Contract(contract) => Some(contract),
            Self::Text | Self::Object => None,
        }
    }
}

/// The models of a run: some callers have their own, all others use the default one. Cheap to
/// clone.
#[derive(Clone)]
pub struct Models {
    default_model: Arc<dyn ChatModel>,
    own: Arc<[(ModelCaller, Arc<dyn ChatModel>)]>,
    /// The price of each model, by name.
    prices: Arc<[ModelPriceHead]>,
    /// One price for all models, which overrides `prices`.
    one_price: Option<Price>,
    /// Whether the run uses several models or hosts.
    several: bool,
    /// Whether an endpoint answers the default model's calls.
    is_live: bool,
}

impl Models {
    /// The default model, and the models of callers that have their own.
    pub fn new(
        default_model: Arc<dyn ChatModel>,
        own: Vec<(ModelCaller, Arc<dyn ChatModel>)>,
    ) -> Self {
        let label = default_model.label();
        let several = own.iter().any(|(_, model)| model.label() != label);
        let is_live = matches!(label, ModelLabel::Live { .. });
        let (own, prices) = (own.into(), Arc::default());
        Self { default_model, own, prices, one_price: None, several, is_live }
    }

    /// The same models, with more that answer for certain callers.
    pub fn with_own(self, more: &[(ModelCaller, Arc<dyn ChatModel>)]) -> Self {
        let own = self.own.iter().chain(more).cloned().collect();
        let (prices, one_price) = (self.prices, self.one_price);
        Self { prices, one_price, ..Self::new(self.default_model, own) }
    }

    /// The same models with these prices.
    pub fn with_prices(self, prices: Vec<ModelPriceHead>) -> Self {
        Self { prices: prices.into(), ..self }
    }

    /// The same models, all at this price if it is set; a scenario can set it.
    pub fn at_one_price(self, price: Option<Price>) -> Self {
        Self { one_price: price, ..self }
    }

    /// The price of each model, once per name; empty for scripted models.
    pub fn prices(&self) -> &[ModelPriceHead] {
        &self.prices
    }

    /// The token prices of a call for this purpose; `None` if they are unknown.
    pub fn price_for(&self, purpose: &Purpose) -> Option<Price> {
        self.one_price.or_else(|| match self.model_for(purpose).label() {
            ModelLabel::Live { name, .. } => self.prices.iter().find(|it| it.model == name)?.price,
            ModelLabel::Scripted | ModelLabel::Observed { .. } => None,
        })
    }

    /// The model for this purpose.
    pub fn model_for(&self, purpose: &Purpose) -> &Arc<dyn ChatModel> {
        let own = self.own.iter().find(|(caller, _)| purpose.is_called_by(caller));
        own.map_or(&self.default_model, |(_, model)| model)
    }

    /// The default model.
    pub fn default_model(&self) -> &Arc<dyn ChatModel> {
        &self.default_model
    }

    /// Whether an endpoint answers the calls of the default model, not a script.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live
    }

    /// The label for the run's header: the distinct names and hosts of all models.
    pub fn label(&self) -> ModelLabel {
        if self.own.is_empty() {
            return self.default_model.label();
        }
        let (mut names, mut hosts) = (Vec::new(), Vec::new());
        let once = |list: &mut Vec<String>, word: String| {
            if !list.contains(&word) {
                list.push(word);
            }
        };
        for model in
            std::iter::once(&self.default_model).chain(self.own.iter().map(|(_, model)| model))
        {
            match model.label() {
                other @ (ModelLabel::Scripted | ModelLabel::Observed { .. }) => return other,
                ModelLabel::Live { name, host } => {
                    once(&mut names, name);
                    once(&mut hosts, host);
                }
            }
        }
        ModelLabel::Live { name: names.join(", "), host: hosts.join(", ") }
    }

    /// The name of the model for this purpose; `None` if the run uses one model only.
    pub fn name_for(&self, purpose: &Purpose) -> Option<Arc<str>> {
        if !self.several {
            return None;
        }
        match self.model_for(purpose).label() {
            ModelLabel::Live { name, .. } => Some(name.into()),
            ModelLabel::Scripted | ModelLabel::Observed { .. } => None,
        }
    }
}

impl<M: ChatModel + 'static> From<Arc<M>> for Models {
    fn from(model: Arc<M>) -> Self {
        Self::new(model, Vec::new())
    }
}

impl From<Arc<dyn ChatModel>> for Models {
    fn from(model: Arc<dyn ChatModel>) -> Self {
        Self::new(model, Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;
    use proptest::prelude::*;

    use super::*;
    use crate::log::event::{ChatMessage, MessageRole, Reply};
    use crate::scenario::spec::script::ScriptStep;

    proptest! {
        /// After any sequence of additions, removals and counts it equals the plain list of
        /// messages.
        #[test]
        fn conversation_lists_messages_in_order(
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

    /// A model that has a name and is never called.
    struct NamedModel(&'static str);

    impl ChatModel for NamedModel {
        fn label(&self) -> ModelLabel {
            ModelLabel::Live { name: self.0.to_owned(), host: "models.example".to_owned() }
        }
        fn chat<'a>(
            &'a self,
            _: &'a ChatRequest,
            _: &'a dyn Listener,
        ) -> BoxFuture<'a, Result<Reply, Box<Failure>>> {
            unreachable!("nobody asks it")
        }
    }

    #[test]
    fn call_costs_price_of_its_model() {
        let own: Vec<(ModelCaller, Arc<dyn ChatModel>)> = vec![
            (ModelCaller::Step(ScriptStep::Plan), Arc::new(NamedModel("dear"))),
            (ModelCaller::Step(ScriptStep::Finalize), Arc::new(NamedModel("unknown"))),
        ];
        let price = |model: &str, input| ModelPriceHead {
            model: model.to_owned(),
            price: Some(Price::new(input, 1.0)),
        };
        let models = Models::new(Arc::new(NamedModel("usual")), own)
            .with_prices(vec![price("usual", 1.0), price("dear", 9.0)]);
        let input = |models: &Models, purpose| models.price_for(&purpose).map(|it| it.input);
        assert_eq!(input(&models, Purpose::Synthesize), Some(1.0));
        assert_eq!(input(&models, Purpose::Plan), Some(9.0));
        assert_eq!(input(&models, Purpose::Finalize), None);
        let models = models.at_one_price(Some(Price::new(5.0, 1.0)));
        for purpose in [Purpose::Synthesize, Purpose::Plan, Purpose::Finalize] {
            assert_eq!(input(&models, purpose), Some(5.0));
        }
    }
}
