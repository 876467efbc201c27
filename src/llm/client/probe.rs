//! Checks whether an endpoint is reachable and which models it lists, for `roundtable doctor` and
//! the launch form.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::Client;
use super::fields::{BadAnswer, Fields, read_answer};
use super::refusal::{Requested, error_text};
use crate::base::visible::visible_within;
use crate::event::kind::FailureClass;
use crate::llm::endpoint::{Provider, Wire};
use crate::llm::{Failure, failure};

/// The most bytes of a list of models.
const LIST_CAP: usize = 4 << 20;
/// The most names kept from a list of models.
const MAX_NAMES: usize = 2_000;
/// The most characters of a model's name. Longer names are dropped, because a shortened name could
/// be another model's.
const MAX_NAME_CHARS: usize = 200;

/// The result for an endpoint that answers and accepts the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeResult {
    /// It lists its models.
    Lists {
        /// The number of models.
        models: usize,
        /// Whether the configured model is among them.
        has_model: bool,
        /// Their names as requests use them, sorted: at most 2,000, and only those with at most 200
        /// characters and without control characters.
        names: Arc<[String]>,
    },
    /// It has no such list, like some endpoints; only the first call shows whether the model
    /// exists.
    NoList {
        /// The HTTP status of the answer.
        status: u16,
        /// The error text of the answer, which may be about more than the missing list.
        said: Option<String>,
    },
}

/// The models of a list, with or without the envelope `{"data": […]}`, which Together leaves out; `None` if
/// it is another object.
///
/// # Errors
/// It reports an error; it is neither an object nor a list of models.
fn listed_models(body: &str) -> Result<Option<Vec<Fields<'_>>>, BadAnswer> {
    let body = body.strip_prefix('\u{feff}').unwrap_or(body);
    let models = match serde_json::from_str::<Vec<Option<Fields<'_>>>>(body) {
        Ok(models) => models,
        Err(_) => {
            let data = read_answer(body)?.raw("data");
            match data.and_then(|data| serde_json::from_str(data.get()).ok()) {
                Some(models) => models,
                None => return Ok(None),
            }
        }
    };
    let models: Vec<Fields<'_>> = models.into_iter().flatten().collect();
    if let Some(error) = models.first().and_then(Fields::error) {
        return Err(BadAnswer::Reported(error));
    }
    Ok(Some(models))
}

impl Client {
    /// Requests the list of models, which is free of charge. `by_name`: a model that is not on the
    /// list is looked up by its name too, because a list may be shortened and omits aliases.
    ///
    /// # Errors
    /// The failures of a call, and [`FailureClass::Timeout`] if there is no answer in time.
    pub(in crate::llm) async fn probe(
        &self,
        within: Duration,
        by_name: bool,
    ) -> Result<ProbeResult, Box<Failure>> {
        let asked = tokio::time::timeout(within, self.list(by_name));
        asked.await.unwrap_or_else(|_| {
            let host = self.endpoint.host();
            let waited = within.as_secs_f32();
            let text = format!("{host} did not answer within {waited} s. Check the network.");
            Err(failure(FailureClass::Timeout, text))
        })
    }

    async fn list(&self, by_name: bool) -> Result<ProbeResult, Box<Failure>> {
        let mut target = self.endpoint.target(&["models"]);
        if self.endpoint.provider().wire() == Wire::Messages {
            // The default limit is 20.
            target = target.query("limit", "1000");
        }
        let answer = self.http.get(&target).await.map_err(|error| self.unanswered(&error))?;
        let status = answer.status();
        match status {
            200..=299 => {}
            400 => {
                let said =
                    Some(self.read_refusal(answer).await.text).filter(|said| !said.is_empty());
                return Ok(ProbeResult::NoList { status, said });
            }
            404 | 405 | 501 => return Ok(ProbeResult::NoList { status, said: None }),
            _ => return Err(self.refusal(answer, Requested::Models).await),
        }
        let body =
            answer.collect(LIST_CAP).await.map_err(|error| self.incomplete_answer(&error, None))?;
        let read = std::str::from_utf8(&body)
            .map_err(|error| BadAnswer::Unreadable(error.to_string()))
            .and_then(listed_models);
        match read {
            Ok(Some(models)) => {
                let ids = models.iter().filter_map(|model| model.word("id"));
                let ids: Vec<Cow<'_, str>> = ids.collect();
                let wanted = &self.endpoint.model().value;
                let provider = self.endpoint.provider();
                let listed = ids.iter().any(|id| plain(provider, id) == wanted);
                let has_model = listed || (by_name && self.has(wanted).await);
                let names = self.names(&ids);
                Ok(ProbeResult::Lists { models: models.len(), has_model, names })
            }
            Ok(None) => Ok(ProbeResult::NoList { status, said: None }),
            Err(BadAnswer::Reported(error)) => {
                let said = error_text(&error).map(|said| self.quotable(&said));
                Ok(ProbeResult::NoList { status, said })
            }
            Err(BadAnswer::Unreadable(why)) => {
                Err(self.unreadable(status, &body, "list of models", &why))
            }
        }
    }

    /// The names on a list that can be offered as a choice.
    fn names(&self, ids: &[Cow<'_, str>]) -> Arc<[String]> {
        let provider = self.endpoint.provider();
        let names = ids.iter().map(|id| plain(provider, id));
        let good = |name: &&str| {
            let shown = !name.is_empty() && visible_within(name, MAX_NAME_CHARS) == **name;
            shown && *self.without_the_key(name) == **name
        };
        let mut names: Vec<String> = names.filter(good).map(str::to_owned).collect();
        names.sort_by_cached_key(|name| (name.to_lowercase(), name.clone()));
        names.dedup();
        names.truncate(MAX_NAMES);
        names.into()
    }

    /// Whether the endpoint has a model of this name.
    async fn has(&self, name: &str) -> bool {
        let answer = self.http.get(&self.endpoint.target(&["models", name])).await;
        answer.is_ok_and(|answer| (200..300).contains(&answer.status()))
    }
}

/// A model's name as requests use it: Gemini's list puts `models/` before each.
fn plain(provider: Provider, id: &str) -> &str {
    let id = id.trim();
    match provider {
        Provider::Gemini => id.strip_prefix("models/").unwrap_or(id),
        _ => id,
    }
}
