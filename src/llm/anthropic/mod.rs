//! Chat models behind an endpoint with Anthropic's Messages API, streamed or not.
//!
//! As with `openai`, a call is one attempt: one request, no retry, no timeout.

use tokio::time::Instant;

use self::blocks::{ReplyBlocks, TextOnlyBlock, WholeBlock};
use self::parameters::MessageParameters;
use self::stream::PartialMessage;
use self::wire::MessageBody;
use super::adaptation::ParameterSet;
use super::client::adapter::{ApiRequest, ModelApi};
use super::client::json::read;
use super::client::surrogates::read_body;
use super::client::{ApiWords, Client};
use super::{ChatRequest, Failure};
use crate::event::kind::Reply;
use crate::net::NetError;

mod blocks;
mod conversation;
mod parameters;
mod schema;
mod stream;
mod wire;

pub use super::client::adapter::Adapter;
#[cfg(test)]
pub use super::client::probe::ProbeResult;
#[cfg(test)]
pub use super::client::{EVENT_CAP, TEXT_CAP};
#[cfg(test)]
pub use blocks::BLOCKS_CAP;

/// A chat model at an endpoint with the Messages API.
pub type Anthropic = Adapter<Messages>;

/// Anthropic's Messages API.
#[derive(Debug)]
pub enum Messages {}

impl ModelApi for Messages {
    const WORDS: ApiWords = ApiWords { reply: "message" };
    const PATH: &'static [&'static str] = &["messages"];
    const LOOKS_UP_BY_NAME: bool = true;

    type PartialReply<'a> = PartialMessage<'a>;

    fn request(
        client: &Client,
        request: &ChatRequest,
        stream: bool,
    ) -> Result<ApiRequest, serde_json::Error> {
        let refused = client.refused.refused_now();
        let parameters = MessageParameters::of(&client.tuning, &request.form, stream, refused);
        let body = wire::body(&client.endpoint.model().value, request, &parameters)?;
        Ok(ApiRequest { body, sent: parameters.sent })
    }

    fn partial_reply<'a>(
        client: &'a Client,
        request: &'a ChatRequest,
        asked: Instant,
        _: ParameterSet,
    ) -> Self::PartialReply<'a> {
        PartialMessage::of(client, request, asked)
    }

    fn reply(
        client: &Client,
        request: &ChatRequest,
        _: ParameterSet,
        status: u16,
        body: &[u8],
    ) -> Result<Reply, Box<Failure>> {
        if let Ok(plain) = read::<MessageBody<'_, TextOnlyBlock<'_>>>(body) {
            return whole(client, request, status, body, plain);
        }
        let mut room = String::new();
        match read_body::<MessageBody<'_>>(body, &mut room) {
            Ok(message) => whole(client, request, status, body, message),
            Err(error) => Err(client.unreadable(status, body, &error.to_string())),
        }
    }
}

/// The reply of an answer that is not streamed.
fn whole<B: WholeBlock>(
    client: &Client,
    request: &ChatRequest,
    status: u16,
    body: &[u8],
    message: MessageBody<'_, B>,
) -> Result<Reply, Box<Failure>> {
    if let Some(error) = &message.error {
        let nothing = ParameterSet::default();
        return Err(client.reported_failure(error, "instead of a message", nothing, None));
    }
    let Some(content) = message.content else {
        return Err(client.unreadable(status, body, "it has no `content`"));
    };
    let mut blocks = ReplyBlocks::default();
    for (index, block) in (0..).zip(content) {
        block.add(index, &mut blocks);
    }
    if let Some(cap) = blocks.beyond() {
        return Err(client.incomplete_answer(&NetError::TooLarge { cap }, None));
    }
    let (end, finish) = wire::finish(client, message.stop_reason, message.stop_details);
    let said = blocks.done(client, &request.messages, end);
    let said = said.map_err(|why| client.bad_tool_calls(why, None))?;
    Ok(Reply {
        text: client.without_the_key(&said.text),
        tool_calls: said.calls,
        result: None,
        usage: message.usage.and_then(wire::MessageUsage::usage),
        estimated: false,
        first_token_ms: None,
        model: message.model.map(|model| client.model_name(&model.0)),
        finish,
        end,
        blocks: said.kept,
        adopted: false,
    })
}
