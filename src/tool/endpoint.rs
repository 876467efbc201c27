//! Search through a JSON endpoint, such as your own SearXNG: an HTTP tool whose result is mapped to
//! search results.

use std::cmp::Ordering;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::http::HttpTool;
use super::{Environment, NotReady};
use crate::base::time;
use crate::gateway::{Tool, ToolRequest};
use crate::log::event::{AttemptFailed, FailureClass};
use crate::net::Http;
use crate::scenario::tools::documents::{EndpointSpec, ResultFields};

/// Number of results if the request does not set `k`.
const RESULTS: u64 = 10;

/// A tool that sends a search request for each attempt.
///
/// Its arguments are `query` and `k`; its result is `{"status": "ok", "data": {"results": [{url,
/// title, snippet, score, published_at?}]}}`, best first, at most `k`.
///
/// Scores are from 0 to 1. If all are in that range, they stay as they are; else each is divided by
/// the greatest, and negative ones become 0. If one result has no score, the endpoint's order
/// counts: the result at place `i` of `n`, from 0, has the score `1 - i/n`.
#[derive(Debug)]
pub struct EndpointSearch {
    http: HttpTool,
    results: String,
    fields: ResultFields,
}

impl EndpointSearch {
    /// The search of this table, its variables looked up in `env`. The caller chooses the hosts
    /// that `http` may reach.
    ///
    /// # Errors
    /// Everything that keeps the endpoint from being called.
    pub fn new(
        spec: &EndpointSpec,
        http: Http,
        env: Environment<'_>,
    ) -> Result<Self, Vec<NotReady>> {
        let http = HttpTool::new(Arc::new(spec.http.clone()), http, env)?;
        Ok(Self { http, results: spec.results.clone(), fields: spec.fields.clone() })
    }

    async fn search(&self, request: ToolRequest<'_>) -> Result<Arc<Value>, Box<AttemptFailed>> {
        let answer = self.http.ask(request).await?;
        let most = request.args.get("k").and_then(Value::as_u64).unwrap_or(RESULTS).max(1);
        let results = map_results(&answer, &self.results, &self.fields).map_err(|what| {
            let what = format!("the reply of {} {what}", self.http.host());
            let advice = "Check `results` and `fields` of the search.";
            self.http.trouble(FailureClass::BadResponse, &what, advice)
        })?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let results: Vec<Value> = results.into_iter().take(most).collect();
        Ok(Arc::new(json!({ "status": "ok", "data": { "results": results } })))
    }
}

impl Tool for EndpointSearch {
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        Box::pin(self.search(request))
    }
}

/// The results of a reply, best first. A result whose URL is not a string is left out.
fn map_results(answer: &Value, at: &str, fields: &ResultFields) -> Result<Vec<Value>, String> {
    let place = if at.is_empty() { "at the top level".to_owned() } else { format!("at {at}") };
    let list = match answer.pointer(at) {
        Some(Value::Array(list)) => list,
        Some(_) => return Err(format!("is not a list {place}")),
        None => return Err(format!("has nothing {place}")),
    };
    let found: Vec<(&Value, &str)> = list
        .iter()
        .filter_map(|one| Some((one, text_at_pointer(one, &fields.url)?)))
        .filter(|(_, url)| !url.trim().is_empty())
        .collect();
    if found.is_empty() && !list.is_empty() {
        let (all, url) = (list.len(), &fields.url);
        return Err(format!("has {all} results, none with a string at {url}"));
    }
    let scores = normalised_scores(
        found.iter().map(|(one, _)| at_pointer(one, &fields.score)?.as_f64()).collect(),
    );
    let mut results: Vec<(f64, Value)> = scores
        .into_iter()
        .zip(found)
        .map(|(score, (one, url))| {
            let mut result = Map::new();
            let text = |pointer| text_at_pointer(one, pointer).unwrap_or_default();
            result.insert("url".to_owned(), json!(url));
            result.insert("title".to_owned(), json!(text(&fields.title)));
            result.insert("snippet".to_owned(), json!(text(&fields.snippet)));
            result.insert("score".to_owned(), json!(score));
            if let Some(day) = time::date_from_iso(text(&fields.published_at)) {
                result.insert("published_at".to_owned(), json!(day));
            }
            (score, Value::Object(result))
        })
        .collect();
    results.sort_by(|(a, _), (b, _)| b.partial_cmp(a).unwrap_or(Ordering::Equal));
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// The value at the pointer; `None` if the pointer is empty.
fn at_pointer<'v>(one: &'v Value, pointer: &str) -> Option<&'v Value> {
    if pointer.is_empty() { None } else { one.pointer(pointer) }
}

fn text_at_pointer<'v>(one: &'v Value, pointer: &str) -> Option<&'v str> {
    at_pointer(one, pointer)?.as_str()
}

/// Scores scaled to 0 to 1, or derived from the order if one is missing.
fn normalised_scores(given: Vec<Option<f64>>) -> Vec<f64> {
    let count = given.len() as f64;
    let Some(given) = given.iter().copied().collect::<Option<Vec<f64>>>() else {
        return (0..given.len()).map(|place| 1.0 - place as f64 / count).collect();
    };
    let greatest = given.iter().copied().fold(1.0, f64::max);
    given.into_iter().map(|score| (score / greatest).clamp(0.0, 1.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> ResultFields {
        ResultFields {
            url: "/url".to_owned(),
            title: "/title".to_owned(),
            snippet: "/content".to_owned(),
            score: "/score".to_owned(),
            published_at: "/publishedDate".to_owned(),
        }
    }

    fn scored(given: &[Value]) -> Vec<(String, f64)> {
        let list: Vec<Value> = given
            .iter()
            .enumerate()
            .map(|(n, score)| json!({ "url": n.to_string(), "score": score }))
            .collect();
        let results =
            map_results(&json!({ "results": list }), "/results", &fields()).expect("results");
        let pair = |one: &Value| {
            let url = one["url"].as_str().expect("an address").to_owned();
            (url, one["score"].as_f64().expect("a score"))
        };
        results.iter().map(pair).collect()
    }

    fn pairs(expected: &[(&str, f64)]) -> Vec<(String, f64)> {
        expected.iter().map(|(url, score)| ((*url).to_owned(), *score)).collect()
    }

    #[test]
    fn normalizes_scores_and_sorts_best_first() {
        let [high, low] = [json!(0.9), json!(0.25)];
        assert_eq!(scored(&[low.clone(), high.clone()]), pairs(&[("1", 0.9), ("0", 0.25)]));
        let [four, one, less] = [json!(4), json!(1.0), json!(-3)];
        assert_eq!(scored(&[one, less, four]), pairs(&[("2", 1.0), ("0", 0.25), ("1", 0.0)]));
        let missing = [low.clone(), Value::Null, high, json!("9")];
        assert_eq!(
            scored(&missing),
            pairs(&[("0", 1.0), ("1", 0.75), ("2", 0.5), ("3", 0.25)]),
            "the endpoint's order is what there is"
        );
        assert_eq!(scored(&[low.clone(), low]), pairs(&[("0", 0.25), ("1", 0.25)]));
        assert_eq!(scored(&[]), pairs(&[]));
    }

    #[test]
    fn maps_results_and_skips_addressless() {
        let answer = json!([
            { "url": 7, "title": "left out" },
            "left out",
            { "url": " " },
            { "url": "https://a.example/", "title": ["no text"], "score": 0.5,
              "content": "What it says.", "publishedDate": "2026-02-10T08:00:00" },
            { "url": "https://b.example/", "title": "B", "score": 0.4, "publishedDate": "soon" },
        ]);
        let mapped = map_results(&answer, "", &fields()).expect("results");
        assert_eq!(
            mapped,
            [
                json!({ "url": "https://a.example/", "title": "", "snippet": "What it says.",
                        "score": 0.5, "published_at": "2026-02-10" }),
                json!({ "url": "https://b.example/", "title": "B", "snippet": "", "score": 0.4 }),
            ]
        );
        let bare = ResultFields { score: String::new(), title: String::new(), ..fields() };
        let mapped = map_results(&answer, "", &bare).expect("results");
        assert_eq!((&mapped[1]["score"], &mapped[1]["title"]), (&json!(0.5), &json!("")));
    }

    #[test]
    fn reports_where_answer_shape_breaks() {
        for (answer, at, says) in [
            (json!({}), "/results", "has nothing at /results"),
            (json!({ "results": {} }), "/results", "is not a list at /results"),
            (json!({}), "", "is not a list at the top level"),
            (json!([{ "link": "x" }]), "", "has 1 results, none with a string at /url"),
        ] {
            assert_eq!(map_results(&answer, at, &fields()), Err(says.to_owned()));
        }
    }
}
