//! Chat models behind an endpoint with Anthropic's Messages API, streamed or not.
//!
//! As with `openai`, a call is one attempt: one request, no retry, no timeout.

use tokio::time::Instant;

use self::content::MessageContent;
use self::parameters::MessageParameters;
use self::stream::PartialMessage;
use super::adaptation::OptionalParts;
use super::client::adapter::{ApiRequest, ModelApi};
use super::client::fields::{BadAnswer, read_whole};
use super::client::{ApiWords, Client};
use super::{ChatRequest, Failure};
use crate::event::kind::Reply;
use crate::net::NetError;

mod blocks;
mod content;
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
    const WORDS: ApiWords = ApiWords { reply: "message", marks: &["\"content", "\"message_"] };
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
        let body = wire::body(client.field_origin(), request, &parameters)?;
        Ok(ApiRequest { body, sent: parameters.sent.into() })
    }

    fn partial_reply<'a>(
        client: &'a Client,
        request: &'a ChatRequest,
        asked: Instant,
        _: OptionalParts,
    ) -> Self::PartialReply<'a> {
        PartialMessage::of(client, request, asked)
    }

    fn reply(
        client: &Client,
        request: &ChatRequest,
        _: &OptionalParts,
        status: u16,
        body: &[u8],
    ) -> Result<Reply, Box<Failure>> {
        let content = read_whole(body, |answer| {
            if answer.raw("content").is_none_or(|content| content.get() == "null") {
                return Err(BadAnswer::Unreadable("it has no `content`".to_owned()));
            }
            let mut content = MessageContent::default();
            content.add_message(answer, client)?;
            Ok(content)
        });
        let nothing = OptionalParts::default();
        let content = content.map_err(|bad| client.bad_answer(bad, &nothing, status, body))?;
        if let Some(cap) = content.blocks.beyond() {
            return Err(client.incomplete_answer(&NetError::TooLarge { cap }, None));
        }
        content.done(client, request).map_err(|why| client.bad_tool_calls(why, None))
    }
}
