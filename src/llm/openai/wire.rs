//! The bodies of the chat completions API: what is sent, and what is read of what comes.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::event::kind::Usage;
use crate::llm::{ChatRequest, Conversation};

#[derive(Serialize)]
struct Ask<'a> {
    model: &'a str,
    #[serde(serialize_with = "messages")]
    messages: &'a Conversation,
    temperature: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Format>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct Format {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

fn messages<S: Serializer>(conversation: &&Conversation, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(conversation.iter())
}

/// The body of a request, straight from what is asked.
///
/// # Errors
/// None that a request of ours can cause; serde_json's signature has one.
pub(super) fn body(
    model: &str,
    request: &ChatRequest,
    stream: bool,
) -> Result<Vec<u8>, serde_json::Error> {
    let texts: usize = request.messages.iter().map(|message| message.content.len() + 40).sum();
    // Text that is JSON itself grows by a backslash for each quote.
    let mut body = Vec::with_capacity(texts + texts / 4 + model.len() + 160);
    let ask = Ask {
        model,
        messages: &request.messages,
        temperature: 0,
        response_format: request.json.then_some(Format { kind: "json_object" }),
        stream: stream.then_some(true),
        stream_options: stream.then_some(StreamOptions { include_usage: true }),
    };
    serde_json::to_writer(&mut body, &ask)?;
    Ok(body)
}

/// A string that is borrowed where it can be, also within an `Option`.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// A whole answer, or one event of a stream.
#[derive(Debug, Deserialize)]
pub(super) struct Completion<'a> {
    #[serde(borrow, default)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    pub(super) usage: Option<Counted>,
    #[serde(borrow, default)]
    pub(super) model: Option<Text<'a>>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

/// One of the answers; we ask for one. A whole answer has a `message`, an event of a stream a
/// `delta`, and some servers put both into their events.
#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow, default)]
    pub(super) message: Option<Message<'a>>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Message<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Option<Text<'a>>,
}

/// What the model says, whole or the next piece of it.
#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) content: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) refusal: Option<Text<'a>>,
}

/// Tokens; some servers count them in floats.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Counted {
    #[serde(default)]
    prompt_tokens: Option<f64>,
    #[serde(default)]
    completion_tokens: Option<f64>,
}

impl Counted {
    /// As a fact has them; `None` where nothing was counted.
    pub(super) fn usage(self) -> Option<Usage> {
        // The conversion saturates: a negative count is none.
        let tokens = |count: Option<f64>| count.unwrap_or(0.0) as u64;
        (self.prompt_tokens.is_some() || self.completion_tokens.is_some()).then(|| Usage {
            prompt_tokens: tokens(self.prompt_tokens),
            completion_tokens: tokens(self.completion_tokens),
        })
    }
}

/// The list of models, of which only the names matter.
#[derive(Debug, Deserialize)]
pub(super) struct Models<'a> {
    #[serde(borrow)]
    pub(super) data: Vec<Model<'a>>,
}

/// One model of the list.
#[derive(Debug, Deserialize)]
pub(super) struct Model<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
}

/// What a server says went wrong, in the forms that are met: `{"error": {"message": …}}`,
/// `{"error": …}`, `{"message": …}`, `{"detail": …}`.
pub(super) fn complaint(body: &Value) -> Option<String> {
    let error = body.get("error").unwrap_or(body);
    [Some(error), error.get("message"), error.get("detail"), body.get("detail")]
        .into_iter()
        .flatten()
        .find_map(Value::as_str)
        .map(str::to_owned)
}
