//! Chat models behind an HTTP endpoint with OpenAI's chat completions API, streamed or not.
//!
//! A call is one attempt: one request, no retry, no timeout. Dropping the future cancels it, and
//! the endpoint sees the connection close.

use serde_json::Value;
use tokio::time::Instant;

use self::calls::PartialCalls;
use self::parameters::ChatParameters;
use self::stream::PartialCompletion;
use super::adaptation::ParameterSet;
use super::client::adapter::{ApiRequest, ModelApi};
use super::client::reply_end::end_of_completion;
use super::client::reported::bare_error;
use super::client::surrogates::read_body;
use super::client::{ApiWords, Client};
use super::{ChatRequest, Failure};
use crate::event::kind::Reply;
use crate::net::NetError;

mod calls;
mod parameters;
mod stream;
mod wire;

pub use super::client::TEXT_CAP;
pub use super::client::adapter::Adapter;
pub use super::client::probe::ProbeResult;
#[cfg(test)]
pub use super::client::{ANSWER_CAP, EVENT_CAP};

/// A chat model at an endpoint with the chat completions API.
pub type OpenAi = Adapter<ChatCompletions>;

/// OpenAI's chat completions API.
#[derive(Debug)]
pub enum ChatCompletions {}

impl ModelApi for ChatCompletions {
    const WORDS: ApiWords = ApiWords { reply: "chat completion" };
    const PATH: &'static [&'static str] = &["chat", "completions"];
    const LOOKS_UP_BY_NAME: bool = false;

    type PartialReply<'a> = PartialCompletion<'a>;

    fn request(
        client: &Client,
        request: &ChatRequest,
        stream: bool,
    ) -> Result<ApiRequest, serde_json::Error> {
        let refused = client.refused.refused_now();
        let parameters = ChatParameters::of(&client.tuning, &request.form, stream, refused);
        let body = wire::body(&client.endpoint.model().value, request, &parameters)?;
        Ok(ApiRequest { body, sent: parameters.sent })
    }

    fn partial_reply<'a>(
        client: &'a Client,
        request: &'a ChatRequest,
        asked: Instant,
        sent: ParameterSet,
    ) -> Self::PartialReply<'a> {
        PartialCompletion::of(client, request, asked, sent)
    }

    fn reply(
        client: &Client,
        request: &ChatRequest,
        sent: ParameterSet,
        status: u16,
        body: &[u8],
    ) -> Result<Reply, Box<Failure>> {
        let mut room = String::new();
        let completion: wire::Completion<'_> = match read_body(body, &mut room) {
            Ok(completion) => completion,
            Err(error) => return Err(client.unreadable(status, body, &error.to_string())),
        };
        let complained = |error: &Value| {
            Err(client.reported_failure(error, "instead of a chat completion", sent, None))
        };
        if let Some(error) = &completion.error {
            return complained(error);
        }
        let Some(choice) = completion.choices.and_then(|choices| choices.into_iter().next()) else {
            return match bare_error(body) {
                Some(error) => complained(&error),
                None => Err(client.unreadable(status, body, "it has no `choices`")),
            };
        };
        if let Some(error) = &choice.error {
            return complained(error);
        }
        let Some(message) = choice.message else {
            return Err(client.unreadable(status, body, "its first choice has no `message`"));
        };
        let reason = choice.finish_reason.as_ref().map(|text| &*text.0);
        let refusal = message.refusal.as_ref().map(|text| &*text.0);
        let end = end_of_completion(reason, refusal);
        let text = message.content.map(|text| text.0).unwrap_or_default();
        let mut calls = PartialCalls::default();
        for called in message.tool_calls.into_iter().flatten() {
            match calls.whole(called) {
                Err(why) if end.is_whole() => return Err(client.bad_tool_calls(why, None)),
                _ => {}
            }
        }
        if text.len() + calls.bytes() > TEXT_CAP {
            return Err(client.incomplete_answer(&NetError::TooLarge { cap: TEXT_CAP }, None));
        }
        let tool_calls = match calls.done(client, &request.messages) {
            Err(why) if end.is_whole() => return Err(client.bad_tool_calls(why, None)),
            calls => calls.unwrap_or_default(),
        };
        Ok(Reply {
            tool_calls,
            result: None,
            text: client.without_the_key(&text),
            usage: completion.usage.and_then(wire::CompletionUsage::usage),
            estimated: false,
            first_token_ms: None,
            model: completion.model.map(|model| client.model_name(&model.0)),
            finish: client.finish(reason, refusal),
            end,
            blocks: None,
            adopted: false,
        })
    }
}
