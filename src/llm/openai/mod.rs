//! Chat models behind an HTTP endpoint with OpenAI's chat completions API, streamed or not.
//!
//! A call is one attempt: one request, no retry, no timeout. Dropping the future cancels it, and
//! the endpoint sees the connection close.

use tokio::time::Instant;

use self::content::CompletionContent;
use self::parameters::ChatParameters;
use self::stream::PartialCompletion;
use super::adaptation::OptionalParts;
use super::client::adapter::{ApiRequest, ModelApi};
use super::client::fields::{BadAnswer, read_whole};
use super::client::kept_fields::returned_names;
use super::client::{ApiWords, Client};
use super::{ChatRequest, Failure};
use crate::event::kind::Reply;
use crate::net::NetError;

mod calls;
mod content;
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
    const WORDS: ApiWords = ApiWords { reply: "chat completion", marks: &["\"choices\""] };
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
        let (to, refused_fields) = (client.field_origin(), client.refused.refused_fields());
        let body = wire::body(to, &refused_fields, request, &parameters)?;
        let fields = returned_names(&request.messages, to, &refused_fields);
        Ok(ApiRequest { body, sent: OptionalParts { parameters: parameters.sent, fields } })
    }

    fn partial_reply<'a>(
        client: &'a Client,
        request: &'a ChatRequest,
        asked: Instant,
        sent: OptionalParts,
    ) -> Self::PartialReply<'a> {
        PartialCompletion::of(client, request, asked, sent)
    }

    fn reply(
        client: &Client,
        request: &ChatRequest,
        sent: &OptionalParts,
        status: u16,
        body: &[u8],
    ) -> Result<Reply, Box<Failure>> {
        let content = read_whole(body, |answer| {
            let mut content = CompletionContent::default();
            content.add(answer, &request.tools, client)?;
            let missing = |what: &str| Err(BadAnswer::Unreadable(what.to_owned()));
            match (content.has_choice, content.has_message) {
                (false, _) => missing("it has no `choices`"),
                // A filter may leave the message out.
                (true, false) if !content.has_begun() && !content.has_ended() => {
                    missing("its first choice has no `message`")
                }
                _ => Ok(content),
            }
        });
        let content = content.map_err(|bad| client.bad_answer(bad, sent, status, body))?;
        if let Some(cap) = content.exceeded_cap() {
            return Err(client.incomplete_answer(&NetError::TooLarge { cap }, None));
        }
        content.done(client, request).map_err(|why| client.bad_tool_calls(why, None))
    }
}
