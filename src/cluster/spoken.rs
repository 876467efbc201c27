//! The text of replies while they are received: sent to the dashboards that show the run, and not stored. Each message has
//! the whole text so far, so a message that is lost does no harm.

use async_nats::Subscriber;
use futures::StreamExt as _;

use super::connection::{Cluster, plain};
use crate::event::{RunId, SpanId};

/// Most bytes of a text in one message: its end.
const MAX_TEXT: usize = 64 << 10;

/// The text received so far in a span; `None`: the span has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpokenText {
    /// The span.
    pub span: SpanId,
    /// Its text.
    pub text: Option<String>,
}

impl Cluster {
    /// Sends the text of a span to the dashboards that show the run; `None`: it has ended.
    pub async fn speak(&self, run: &RunId, span: SpanId, text: Option<&str>) {
        let subject = self.namespace().text(run, span);
        let payload = text.map_or("", |text| tail(text, MAX_TEXT)).as_bytes().to_vec();
        if let Err(error) = self.client().publish(subject, payload.into()).await {
            tracing::debug!("live text was not sent: {}", plain(&error));
        }
    }

    /// The texts that are received in a run, from now on.
    ///
    /// # Errors
    /// The server does not answer, in one sentence.
    pub async fn spoken(&self, run: &RunId) -> Result<SpokenTexts, String> {
        let subject = self.namespace().texts(run);
        let live = self.client().subscribe(subject).await.map_err(|error| plain(&error))?;
        Ok(SpokenTexts { live })
    }
}

/// The end of a text, at most this long, from the start of a character.
fn tail(text: &str, most: usize) -> &str {
    let start = text.len().saturating_sub(most);
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text.get(start..).unwrap_or(text)
}

/// Follows the texts of a run.
pub struct SpokenTexts {
    live: Subscriber,
}

impl SpokenTexts {
    /// Waits for the next text; `None`: the connection was closed. Cancel safe.
    pub async fn next(&mut self) -> Option<SpokenText> {
        loop {
            let message = self.live.next().await?;
            let span = message.subject.as_str().rsplit('.').next().and_then(|it| it.parse().ok());
            let Some(span) = span.map(SpanId) else { continue };
            let text = String::from_utf8_lossy(&message.payload).into_owned();
            return Some(SpokenText { span, text: (!text.is_empty()).then_some(text) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_its_beginning_between_characters() {
        assert_eq!(tail("häuser", 5), "user");
        assert_eq!(tail("häuser", 7), "häuser");
        assert_eq!(tail("", 3), "");
    }
}
