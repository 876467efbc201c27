//! The text of replies while they are received: sent to the dashboards that show the run, and not stored. Each message has
//! the whole text so far, so a message that is lost does no harm.
//!
//! Answers that came when their runner had lost the run: they were paid, so the next owner takes them
//! instead of asking again.

use std::time::Duration;

use async_nats::{HeaderMap, Subscriber};
use futures::StreamExt as _;
use tokio::time::{Instant, sleep, timeout_at};

use super::names::LATE;
use super::stream::{BEHIND, BEHIND_FOR, Published, last_message};
use super::{Cluster, error_text};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::log::event::kind::Reply;
use crate::log::event::{RunId, SpanId};
use crate::store::ReadError;

/// Most bytes of a text in one message: its end.
const MAX_TEXT: usize = 64 << 10;

/// The text received so far in a span; `None`: the span has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyText {
    pub span: SpanId,
    pub text: Option<String>,
}

impl Cluster {
    /// Sends the text of a span to the dashboards that show the run; `None`: it has ended.
    pub async fn speak(&self, run: &RunId, span: SpanId, text: Option<&str>) {
        let subject = self.namespace().text(run, span);
        let payload = text.map_or("", |text| tail(text, MAX_TEXT)).as_bytes().to_vec();
        if let Err(error) = self.client().publish(subject, payload.into()).await {
            tracing::debug!("live text was not sent: {}", error_text(&error));
        }
    }

    /// The texts that are received in a run, from now on.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn live_texts(&self, run: &RunId) -> Result<ReplyTexts, Refused> {
        let subject = self.namespace().texts(run);
        let live = self.client().subscribe(subject).await;
        let live = live.or_refuse(format_args!("the live text of {run} cannot be read"))?;
        Ok(ReplyTexts { live })
    }
}

/// The end of a text, at most this long, from the start of a character.
fn tail(text: &str, most: usize) -> &str {
    let start = text.len().saturating_sub(most);
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text.get(start..).unwrap_or(text)
}

/// Follows the texts of a run.
pub struct ReplyTexts {
    live: Subscriber,
}

impl ReplyTexts {
    /// Waits for the next text; `None`: the connection was closed. Cancel safe.
    pub async fn next(&mut self) -> Option<ReplyText> {
        loop {
            let message = self.live.next().await?;
            let span = message.subject.as_str().rsplit('.').next().and_then(|it| it.parse().ok());
            let Some(span) = span.map(SpanId) else { continue };
            let text = String::from_utf8_lossy(&message.payload).into_owned();
            return Some(ReplyText { span, text: (!text.is_empty()).then_some(text) });
        }
    }
}

/// How long servers that do not answer are tried again for an answer that was paid, and the time between.
const UNANSWERED: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(250);

impl Cluster {
    /// Leaves the answer to an attempt for the next owner of the run. The first one counts. Servers that do
    /// not answer are asked again for some time: the answer was paid.
    pub async fn leave_answer(&self, run: &RunId, attempt: SpanId, reply: &Reply) {
        let Ok(payload) = serde_json::to_vec(reply) else { return };
        let subject = self.namespace().late(run, attempt);
        let until = Instant::now() + UNANSWERED;
        loop {
            match self.store(subject.clone(), HeaderMap::new(), payload.clone(), None).await {
                Published::Stored(_) => {
                    tracing::info!(%run, "left a late answer for its next runner");
                    return;
                }
                Published::NoAnswer(_) | Published::NoLeader(_) | Published::AskAgain
                    if Instant::now() < until =>
                {
                    sleep(AGAIN).await;
                }
                other => {
                    tracing::warn!(%run, "a late answer was not stored: {other:?}");
                    return;
                }
            }
        }
    }

    /// Waits for the answer that a former owner of the run leaves for an attempt, until this moment. Then it
    /// is read for certain, for some time longer if the servers do not answer.
    pub async fn await_late_answer(
        &self,
        run: &RunId,
        attempt: SpanId,
        until: Instant,
    ) -> Option<Reply> {
        let subject = self.namespace().late(run, attempt);
        // What arrives says only that it is worth looking: the stream may have refused it.
        let mut arrivals = self.client().subscribe(subject).await.ok();
        loop {
            if let Ok(Some(reply)) = self.late_answer(run, attempt).await {
                return Some(reply);
            }
            let arrived = async {
                match &mut arrivals {
                    Some(arrivals) => arrivals.next().await,
                    None => std::future::pending().await,
                }
            };
            if !matches!(timeout_at(until, arrived).await, Ok(Some(_))) {
                break;
            }
            // It is seen before it is stored.
            let stored_by = Instant::now() + BEHIND_FOR;
            while Instant::now() < stored_by {
                if let Ok(Some(reply)) = self.late_answer(run, attempt).await {
                    return Some(reply);
                }
                sleep(BEHIND).await;
            }
        }
        // It may have come at the last moment.
        let until = until.max(Instant::now()) + UNANSWERED;
        loop {
            match self.late_answer(run, attempt).await {
                Ok(found) => return found,
                Err(error) if Instant::now() >= until => {
                    tracing::warn!(%run, "whether there is a late answer is not known: {error}");
                    return None;
                }
                Err(_) => sleep(AGAIN).await,
            }
        }
    }

    /// The answer that a former owner of the run has left for an attempt; one that cannot be read does not count.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn late_answer(
        &self,
        run: &RunId,
        attempt: SpanId,
    ) -> Result<Option<Reply>, ReadError> {
        let subject = self.namespace().late(run, attempt);
        let found = last_message(self, LATE, &subject).await?;
        Ok(found.and_then(|found| serde_json::from_slice(&found.payload).ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncates_long_text_between_characters() {
        assert_eq!(tail("häuser", 5), "user");
        assert_eq!(tail("häuser", 7), "häuser");
        assert_eq!(tail("", 3), "");
    }
}
