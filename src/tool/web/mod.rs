//! The web as a tool: reads pages over HTTP, with limits, and politely. Clients, pace, `robots.txt`
//! rules, cache and clock are shared by all readers of the process.
//!
//! - Redirects are followed one by one; each has to pass the policy: its domain is allowed, and its
//!   address is public or its host may be private. The checked address is the one that is connected to.
//! - Bodies are capped by their decompressed size. No cookies, referrers or keys are sent.
//! - `robots.txt` is honoured, and pages are cached on disk for a while, then revalidated.

pub mod cache;
mod fetch;
mod hosts;
mod redirects;
mod robots;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use self::cache::{Cache, CachedPage};
use self::fetch::{
    FetchError, FetchErrorKind, FetchFailure, FetchedContent, FetchedResponse, PageFetch, RawPage,
    redacted_address,
};
use self::hosts::Hosts;
use self::robots::RobotsCache;
use super::text;
use super::text::{ExtractedDocument, Unreadable};
use crate::base::time;
use crate::base::time::WallClock;
use crate::gateway::{Tool, ToolRequest};
use crate::log::event::{AttemptFailed, FailureClass};
use crate::net::{Http, Reach};
use crate::scenario::read::names::domain_in_ascii;
use crate::scenario::tools::documents::WebSpec;

/// A tool that reads one page per attempt.
///
/// Its arguments are `url`, the address as it was found, and `allowed_domains`; without the latter,
/// only the domain of `url` is allowed. Its result is `{"status": "ok", "data": {url, title,
/// published_at, body, content_type, …}}`, or `{"status": "error", "error", "text"}` if the page
/// itself cannot be read.
#[derive(Debug)]
pub struct WebReader {
    spec: WebSpec,
    web: Web,
}

impl WebReader {
    /// The reader of this table.
    pub fn new(spec: WebSpec, web: Web) -> Self {
        Self { spec, web }
    }

    async fn page(&self, args: &Map<String, Value>) -> Result<Value, FetchFailure> {
        let Some(written) = args.get("url").and_then(Value::as_str) else {
            return Err(denied("the argument `url` is missing", "Add it to the arguments.").into());
        };
        let url = redirects::parse_url(written)?;
        let domain = redirects::domain(&url, written);
        let allowed = allowed_domains(args, &domain)?;
        let address = url.to_string();
        let known = self.cached_entry(&address, &allowed).await;
        let now = self.web.now();
        if let Some((entry, age_s)) = known.as_ref().and_then(|it| Some((it, it.age_s(now)?)))
            && self.spec.cache_ttl.is_some_and(|ttl| Duration::from_secs(age_s) < ttl)
        {
            return Ok(page_result(entry, Some(age_s)));
        }
        let visit = PageFetch { web: &self.web, spec: &self.spec, allowed: &allowed };
        let FetchedResponse { url, hops, redirects, content: what } =
            visit.page(url, domain, known.as_ref()).await?;
        let came_s = cache::unix_seconds(self.web.now());
        let (entry, cached_s, keep) = match (what, known) {
            (FetchedContent::NotModified, Some(known)) => {
                (CachedPage { came_s, hops, redirects, ..known }, Some(0), true)
            }
            (FetchedContent::NotModified, None) => {
                let what = format!(
                    "{} returned 304 (not modified) to an unconditional request",
                    redacted_address(url)
                );
                let failed = AttemptFailed::new(FailureClass::BadResponse, what);
                return Err(failed.into());
            }
            (FetchedContent::Page(page), _) => {
                let keep = !page.no_store;
                let entry = CachedPage {
                    form: CachedPage::FORM,
                    address,
                    url: url.to_string(),
                    redirects,
                    hops,
                    robots: self.spec.robots,
                    came_s,
                    bytes: page.bytes.len() as u64,
                    content_type: page.content_type.clone(),
                    etag: page.etag.clone(),
                    last_modified: page.last_modified.clone(),
                    title: String::new(),
                    published_at: String::new(),
                    dated_by_head: false,
                    text: String::new(),
                };
                (extract_text(entry, page).await?, None, keep)
            }
        };
        let answer = page_result(&entry, cached_s);
        if keep {
            self.store(entry).await;
        }
        Ok(answer)
    }

    /// The cached entry of an address, if it still satisfies the current policy.
    async fn cached_entry(&self, address: &str, allowed: &[String]) -> Option<CachedPage> {
        let cache = self.cache()?.clone();
        let address = address.to_owned();
        let entry = tokio::task::spawn_blocking(move || cache.get(&address)).await.ok()??;
        let hosts = entry.hops.iter().all(|hop| {
            let private = !hop.private || self.spec.allow_private.allow(&hop.host);
            private && allowed.contains(&hop.domain)
        });
        let robots = entry.robots || !self.spec.robots;
        let redirects = entry.redirects.len() <= self.spec.max_redirects as usize;
        (hosts && robots && redirects && entry.bytes <= self.spec.max_bytes).then_some(entry)
    }

    async fn store(&self, entry: CachedPage) {
        let Some(cache) = self.cache().cloned() else { return };
        // A page that cannot be cached is fetched again next time, so the read does not fail.
        let kept = tokio::task::spawn_blocking(move || cache.put(&entry)).await;
        if let Ok(Err(error)) = kept {
            tracing::debug!(%error, "a page was not cached");
        }
    }

    fn cache(&self) -> Option<&Cache> {
        self.spec.cache_ttl.and(self.web.cache())
    }
}

/// Domains whose pages may be read.
fn allowed_domains(
    args: &Map<String, Value>,
    own: &str,
) -> Result<Vec<String>, Box<AttemptFailed>> {
    let advice = "Pass a list of hosts.";
    let allowed: Vec<String> = match args.get("allowed_domains") {
        None | Some(Value::Null) => vec![own.to_owned()],
        Some(Value::Array(domains)) => {
            let as_asked = |text: &str| {
                domain_in_ascii(text.trim())
                    .map_or_else(|| text.trim().to_lowercase(), Cow::into_owned)
            };
            let all: Option<Vec<String>> =
                domains.iter().map(|it| it.as_str().map(as_asked)).collect();
            all.ok_or_else(|| denied("allowed_domains has an entry that is not a string", advice))?
        }
        Some(_) => return Err(denied("allowed_domains is not a list", advice)),
    };
    if allowed.iter().any(|domain| domain == own) {
        return Ok(allowed);
    }
    Err(denied(&format!("{own} is not in allowed_domains"), "Only allowed domains can be read."))
}

fn denied(what: &str, advice: &str) -> Box<AttemptFailed> {
    AttemptFailed::with_advice(FailureClass::Denied, what, advice)
}

/// Extracts the text of a page, on a blocking thread, since a large one takes a while.
async fn extract_text(entry: CachedPage, page: RawPage) -> Result<CachedPage, FetchError> {
    let RawPage { format, bytes, charset, last_modified, .. } = page;
    let read = move || text::read(format, bytes, charset.as_deref(), &|| true);
    let read = tokio::task::spawn_blocking(read).await;
    let read =
        read.unwrap_or_else(|_| Err(Unreadable::Broken("the extraction was cancelled".to_owned())));
    let ExtractedDocument { title, published_at, text } = read.map_err(|why| {
        let word = match why {
            Unreadable::Empty => FetchErrorKind::EmptyPage,
            Unreadable::Charset => FetchErrorKind::Charset,
            Unreadable::Broken(_) => FetchErrorKind::Unreadable,
        };
        FetchError::new(word, format!("{} cannot be read: {why}", redacted_address(&entry.url)))
    })?;
    let of_head = || last_modified.as_deref().and_then(time::from_http_date);
    let (published_at, dated_by_head) = match published_at.is_empty().then(of_head).flatten() {
        Some(day) => (day, true),
        None => (published_at, false),
    };
    Ok(CachedPage { title, published_at, dated_by_head, text, ..entry })
}

/// The result for this page. Queries of redirects may be keys that the site signs for one visit:
/// they are redacted, and the final address keeps its query only if that is the requested one.
fn page_result(entry: &CachedPage, cached_s: Option<u64>) -> Value {
    let mut data = json!({
        "url": redirects::strip_foreign_query(&entry.shown_address(), &entry.address),
        "title": entry.title,
        "published_at": entry.published_at,
        "body": entry.text,
        "content_type": entry.content_type,
    });
    if let Some(fields) = data.as_object_mut() {
        if !entry.redirects.is_empty() {
            let redirects: Vec<String> = entry.redirects.iter().map(redacted_address).collect();
            fields.insert("redirects".to_owned(), json!(redirects));
        }
        if let Some(age_s) = cached_s {
            fields.insert("cached_s".to_owned(), json!(age_s));
        }
        if entry.dated_by_head {
            fields.insert("dated_by".to_owned(), json!("modified"));
        }
    }
    json!({ "status": "ok", "data": data })
}

impl Tool for WebReader {
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        Box::pin(async move {
            match self.page(request.args).await {
                Ok(answer) => Ok(Arc::new(answer)),
                Err(FetchFailure::Page(missed)) => Ok(Arc::new(missed.to_result())),
                Err(FetchFailure::Attempt(failed)) => Err(failed),
            }
        })
    }
}

/// Shared state of polite crawling: concurrency and pace for each host, and `robots.txt` rules.
#[derive(Debug, Default)]
pub struct CrawlState {
    pub(crate) hosts: Hosts,
    pub(crate) robots: RobotsCache,
}

impl CrawlState {
    /// The state shared by the whole process.
    pub fn of_this_process() -> Arc<Self> {
        static MANNERS: LazyLock<Arc<CrawlState>> = LazyLock::new(Arc::default);
        Arc::clone(&MANNERS)
    }
}

/// State shared by all web readers. Clones share it.
#[derive(Clone)]
pub struct Web(Arc<WebState>);

struct WebState {
    anywhere: Http,
    internet: Http,
    crawl: Arc<CrawlState>,
    cache: Option<Cache>,
    clock: WallClock,
}

impl Web {
    /// Shared state with this crawl state, cache and clock.
    pub fn new(manners: Arc<CrawlState>, cache: Option<Cache>, clock: WallClock) -> Self {
        let (anywhere, internet) = (Http::direct(Reach::Anywhere), Http::direct(Reach::Internet));
        Self(Arc::new(WebState { anywhere, internet, crawl: manners, cache, clock }))
    }

    /// The client for public addresses, or for any.
    pub(crate) fn client(&self, anywhere: bool) -> &Http {
        if anywhere { &self.0.anywhere } else { &self.0.internet }
    }

    pub(super) fn crawl_state(&self) -> &CrawlState {
        &self.0.crawl
    }

    /// The cache of pages on disk, if there is one.
    pub(crate) fn cache(&self) -> Option<&Cache> {
        self.0.cache.as_ref()
    }

    pub(crate) fn now(&self) -> SystemTime {
        (self.0.clock)()
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Web").finish_non_exhaustive()
    }
}
