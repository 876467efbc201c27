//! Chat models behind an HTTP endpoint that speaks OpenAI's chat completions, streamed or not.
//!
//! A call is one attempt: one request, no retry, no bound on its time. Whoever drops its future
//! ends it, and the endpoint sees the connection close.

use tokio::time::Instant;

use self::calls::Calls;
use self::parameters::ChatParameters;
use self::stream::Gathered;
use super::client::adapter::{ApiRequest, ModelApi};
use super::client::json::read;
use super::client::{ApiWords, Client};
use super::{ChatRequest, Failure};
use crate::event::kind::Reply;
use crate::net::NetError;

mod calls;
mod parameters;
mod stream;
mod wire;

pub use super::client::adapter::Adapter;
pub use super::client::probe::Reach;
pub use super::client::{ANSWER_CAP, EVENT_CAP, STREAM_CAP, TEXT_CAP};

/// A chat model at an endpoint of chat completions.
pub type OpenAi = Adapter<ChatCompletions>;

/// OpenAI's chat completions API.
#[derive(Debug)]
pub enum ChatCompletions {}

impl ModelApi for ChatCompletions {
    const WORDS: ApiWords = ApiWords { reply: "chat completion" };
    const PATH: &'static [&'static str] = &["chat", "completions"];
    const ASKS_BY_NAME: bool = false;

    type Gathered<'a> = Gathered<'a>;

    fn request(
        client: &Client,
        request: &ChatRequest,
        stream: bool,
    ) -> Result<ApiRequest, serde_json::Error> {
        let refused = client.refused.now();
        let parameters = ChatParameters::of(&client.tuning, &request.form, stream, refused);
        let body = wire::body(&client.endpoint.model().value, request, &parameters)?;
        Ok(ApiRequest { body, sent: parameters.sent })
    }

    fn gathered<'a>(
        client: &'a Client,
        request: &'a ChatRequest,
        asked: Instant,
    ) -> Self::Gathered<'a> {
        Gathered::of(client, request, asked)
    }

    fn reply(
        client: &Client,
        request: &ChatRequest,
        status: u16,
        body: &[u8],
    ) -> Result<Reply, Box<Failure>> {
        let completion: wire::Completion<'_> = match read(body) {
            Ok(completion) => completion,
            Err(error) => return Err(client.unreadable(status, body, &error.to_string())),
        };
        if let Some(error) = &completion.error {
            return Err(client.complained(error, "instead of a chat completion", None));
        }
        let Some(choice) = completion.choices.and_then(|choices| choices.into_iter().next()) else {
            return Err(client.unreadable(status, body, "it has no `choices`"));
        };
        let Some(message) = choice.message else {
            return Err(client.unreadable(status, body, "its first choice has no `message`"));
        };
        let text = message.content.map(|text| text.0).unwrap_or_default();
        let mut calls = Calls::default();
        for called in message.tool_calls.into_iter().flatten() {
            calls.whole(called).map_err(|why| client.miscalled(why, None))?;
        }
        if text.len() + calls.bytes() > TEXT_CAP {
            return Err(client.broke_off(&NetError::TooLarge { cap: TEXT_CAP }, None));
        }
        let calls = calls.done(client, &request.messages);
        Ok(Reply {
            tool_calls: calls.map_err(|why| client.miscalled(why, None))?,
            result: None,
            text: client.without_the_key(&text),
            usage: completion.usage.and_then(wire::Counted::usage),
            estimated: false,
            first_token_ms: None,
            model: completion.model.map(|model| client.model_name(&model.0)),
            finish: client.finish(
                choice.finish_reason.as_ref().map(|text| &*text.0),
                message.refusal.as_ref().map(|text| &*text.0),
            ),
            blocks: None,
        })
    }
}
