//! Whether an endpoint can be reached, for `roundtable doctor`.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;

use super::Client;
use super::refusal::Requested;
use crate::event::kind::FailureClass;
use crate::llm::{Failure, failure};

/// The most bytes of a list of models.
const LIST_CAP: usize = 4 << 20;

/// An endpoint that answers and takes the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It lists its models.
    Lists {
        /// How many.
        models: usize,
        /// Whether the one that is asked for is among them.
        has_model: bool,
    },
    /// It has no such list, as some have not; whether the model is there shows at the first call.
    NoList {
        /// The status it answered with.
        status: u16,
    },
}

/// The list of models, of which only the names matter.
#[derive(Debug, Deserialize)]
struct ModelList<'a> {
    #[serde(borrow)]
    data: Vec<Model<'a>>,
}

/// One model of the list.
#[derive(Debug, Deserialize)]
struct Model<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
}

impl Client {
    /// Asks for the list of models, which costs nothing. `by_name`: a model that is not on the list
    /// is asked for by its name too, since a list may be cut off and leaves out other names of a model.
    ///
    /// # Errors
    /// As a call fails, and [`FailureClass::Timeout`] when the answer is not there in time.
    pub(in crate::llm) async fn probe(
        &self,
        within: Duration,
        by_name: bool,
    ) -> Result<Reach, Box<Failure>> {
        let asked = tokio::time::timeout(within, self.list(by_name));
        asked.await.unwrap_or_else(|_| {
            let host = self.endpoint.host();
            let waited = within.as_secs_f32();
            let text = format!("{host} did not answer within {waited} s. Check the network.");
            Err(failure(FailureClass::Timeout, text))
        })
    }

    async fn list(&self, by_name: bool) -> Result<Reach, Box<Failure>> {
        let target = self.endpoint.target(&["models"]);
        let answer = self.http.get(&target).await.map_err(|error| self.unanswered(&error))?;
        let status = answer.status();
        match status {
            200..=299 => {}
            400 | 404 | 405 | 501 => return Ok(Reach::NoList { status }),
            _ => return Err(self.refusal(answer, Requested::Models).await),
        }
        let body = answer.collect(LIST_CAP).await.map_err(|error| self.broke_off(&error, None))?;
        match serde_json::from_slice::<ModelList<'_>>(&body) {
            Ok(models) => {
                let wanted = &self.endpoint.model().value;
                // Gemini lists its models as resources: `models/gemini-2.5-flash`.
                let name = |model: &Model<'_>| model.id.strip_prefix("models/") == Some(wanted);
                let listed = models.data.iter().any(|it| it.id == wanted.as_str() || name(it));
                let has_model = listed || (by_name && self.has(wanted).await);
                Ok(Reach::Lists { models: models.data.len(), has_model })
            }
            Err(_) if body.first().is_some_and(|first| *first == b'{') => {
                Ok(Reach::NoList { status })
            }
            Err(error) => Err(self.unreadable(status, &body, &error.to_string())),
        }
    }

    /// Whether it has a model of this name.
    async fn has(&self, name: &str) -> bool {
        let answer = self.http.get(&self.endpoint.target(&["models", name])).await;
        answer.is_ok_and(|answer| (200..300).contains(&answer.status()))
    }
}
