//! Fetches a page: one request for each URL of its redirect chain.
//!
//! Pages that cannot be read for a reason of their own. That is a result of the reader, not a
//! failure of the tool; [`FetchFailure`] has both.

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH,
};
use serde_json::{Value, json};

use super::Web;
use super::cache::{CachedPage, RedirectHop};
use super::hosts::{HostBusy, RequestSlot};
use super::redirects::{RedirectChain, RedirectPolicy, redirect_target};
use super::robots::{CachedRobots, RobotsReply, RobotsRules};
use crate::base::time::millis;
use crate::base::visible::visible_within;
use crate::log::event::{AttemptFailed, FailureClass};
use crate::net::error::size;
use crate::net::{HttpResponse, NetError, Redactor, RequestTarget, read_within};
use crate::scenario::tools::documents::WebSpec;
use crate::tool::text::DocumentFormat;

/// Accepted media types, preferred ones first.
const ACCEPTED: &str = "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9, \
     application/pdf;q=0.8, application/json;q=0.7";

/// Longest `Crawl-delay` that is kept between two requests, since an attempt has its own timeout.
const MAX_CRAWL_DELAY: Duration = Duration::from_secs(5);

/// Most redirects of a `robots.txt` that are followed; the RFC asks for at least five.
const ROBOTS_REDIRECTS: u32 = 5;
/// Most bytes that are read of a `robots.txt`; the RFC asks for at least 500 KiB.
const ROBOTS_BYTES: usize = 500 << 10;

/// Fetches pages for one request of the reader.
#[derive(Clone, Copy)]
pub(crate) struct PageFetch<'a> {
    pub(crate) web: &'a Web,
    pub(crate) spec: &'a WebSpec,
    /// Domains whose pages may be read.
    pub(crate) allowed: &'a [String],
}

/// A fetched page with its redirect chain.
pub(crate) struct FetchedResponse {
    pub(crate) url: Url,
    pub(crate) hops: Vec<RedirectHop>,
    pub(super) redirects: Vec<String>,
    pub(crate) content: FetchedContent,
}

/// What the server returned.
pub(crate) enum FetchedContent {
    /// The cached page is still valid (HTTP 304).
    NotModified,
    Page(RawPage),
}

/// A page with its body, before text extraction.
pub(crate) struct RawPage {
    pub(crate) format: DocumentFormat,
    pub(crate) bytes: Vec<u8>,
    /// Media type without parameters.
    pub(crate) content_type: String,
    pub(crate) charset: Option<String>,
    pub(crate) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    /// Whether the page must not be cached.
    pub(crate) no_store: bool,
}

impl PageFetch<'_> {
    /// Fetches a page; a conditional request if a cached one is known.
    pub(crate) async fn page(
        &self,
        url: Url,
        domain: String,
        known: Option<&CachedPage>,
    ) -> Result<FetchedResponse, FetchFailure> {
        let mut way =
            RedirectChain::new(url, domain, self.redirect_policy(self.spec.max_redirects));
        loop {
            let pace =
                if self.spec.robots { self.check_robots(&way).await? } else { Duration::ZERO };
            let turn = self.wait_for_turn(&way, pace).await?;
            let known = known.filter(|known| known.url == way.url().as_str());
            let mut headers = vec![
                (ACCEPT, HeaderValue::from_static(ACCEPTED)),
                (ACCEPT_ENCODING, HeaderValue::from_static("gzip")),
            ];
            headers.extend(known.into_iter().flat_map(conditional_headers));
            let answer = self.get(&way, headers).await?;
            if let Some(location) = redirect_target(&answer) {
                way.follow(location)?;
                continue;
            }
            let what = self.read(&way, answer, known.is_some()).await?;
            drop(turn);
            let url = way.url().clone();
            return Ok(FetchedResponse {
                url,
                hops: way.hops,
                redirects: way.redirects,
                content: what,
            });
        }
    }

    fn redirect_policy(&self, most: u32) -> RedirectPolicy<'_> {
        RedirectPolicy {
            allowed: self.allowed,
            private: &self.spec.allow_private,
            max_redirects: most,
        }
    }

    async fn wait_for_turn(
        &self,
        way: &RedirectChain<'_>,
        pace: Duration,
    ) -> Result<RequestSlot, FetchError> {
        let pace = self.spec.pace.max(pace);
        let turn = self.web.crawl_state().hosts.acquire(way.host(), self.spec.per_host, pace).await;
        turn.map_err(|resting| retry_after_error(way, resting))
    }

    /// Result for a site that is busy. A `Retry-After` is stored for this host and not passed to
    /// the gateway, where all hosts are one tool. The next request to the host waits if the time is
    /// short; else the pages of the host fail.
    fn busy_host(&self, way: &RedirectChain<'_>, answer: &HttpResponse) -> FetchFailure {
        let status = answer.status();
        let asked = answer.retry_after();
        let rested =
            asked.map(|it| self.web.crawl_state().hosts.record_retry_after(way.host(), status, it));
        if let Some(Err(resting)) = rested {
            return retry_after_error(way, resting).into();
        }
        let advice = match status {
            429 => "Wait, or raise pace_ms.",
            _ => "Try again later.",
        };
        let mut busy = AttemptFailed::from_status(status, "");
        let what =
            format!("{} returned HTTP {status} to {}", way.host(), redacted_address(way.url()));
        busy.text = attempt_error(busy.class, &what, advice).text;
        busy.into()
    }

    async fn get(
        &self,
        way: &RedirectChain<'_>,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<HttpResponse, FetchFailure> {
        let target = RequestTarget::new(way.url().clone());
        let target = headers.into_iter().fold(target, |to, (name, value)| to.header(name, value));
        let client = self.web.client(way.is_private());
        client.get(&target).await.map_err(|error| request_error(way, &error))
    }

    async fn read(
        &self,
        way: &RedirectChain<'_>,
        answer: HttpResponse,
        known: bool,
    ) -> Result<FetchedContent, FetchFailure> {
        let here = || redacted_address(way.url());
        match answer.status() {
            304 if known => {
                answer.release().await;
                return Ok(FetchedContent::NotModified);
            }
            200..=299 => {}
            404 | 410 => {
                let text = format!("{} was not found (HTTP {})", here(), answer.status());
                return Err(FetchError::new(FetchErrorKind::NotFound, text).into());
            }
            429 | 500..=599 => return Err(self.busy_host(way, &answer)),
            status => {
                let text = format!("{} returned HTTP {status}", here());
                return Err(FetchError::new(FetchErrorKind::Status(status), text).into());
            }
        }
        if answer.is_unreadable() {
            let text = format!("{} has a content encoding that was not requested", here());
            return Err(FetchError::new(FetchErrorKind::Unreadable, text).into());
        }
        let media_type = answer.header("content-type").unwrap_or_default().to_owned();
        let Some(format) = DocumentFormat::from_media_type(&media_type) else {
            let is = match media_type.is_empty() {
                true => "has no content type".to_owned(),
                false => format!("is {}", visible_within(&media_type, 60)),
            };
            let text =
                format!("{} {is}: only HTML, Markdown, text, JSON and PDF are supported", here());
            return Err(FetchError::new(FetchErrorKind::ContentType, text).into());
        };
        let text_of = |name: &str| answer.header(name).map(str::to_owned);
        let (etag, last_modified) = (text_of("etag"), text_of("last-modified"));
        let no_store = answer
            .header("cache-control")
            .is_some_and(|it| it.split(',').any(|it| it.trim().eq_ignore_ascii_case("no-store")));
        let cap = usize::try_from(self.spec.max_bytes).unwrap_or(usize::MAX);
        if answer.content_length().is_some_and(|length| length > self.spec.max_bytes) {
            return Err(too_large(way, cap).into());
        }
        match read_within(answer, cap).await {
            Ok((_, true)) => Err(too_large(way, cap).into()),
            Ok((bytes, false)) => Ok(FetchedContent::Page(RawPage {
                format,
                bytes,
                content_type: media_type
                    .split(';')
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_lowercase(),
                charset: charset(&media_type),
                etag,
                last_modified,
                no_store,
            })),
            Err(error) => Err(request_error(way, &error)),
        }
    }

    /// Checks `robots.txt` for the current page; returns the pace that it asks for.
    async fn check_robots(&self, way: &RedirectChain<'_>) -> Result<Duration, FetchFailure> {
        let site = way.url().origin().ascii_serialization();
        let reply =
            self.web.crawl_state().robots.get_or_fetch(&site, || self.fetch_robots(way)).await?;
        let denied = |text| Err(FetchError::new(FetchErrorKind::RobotsDisallowed, text).into());
        match &*reply {
            RobotsReply::Rules(rules) if rules.allows(way.url()) => {
                Ok(rules.crawl_delay.unwrap_or_default().min(MAX_CRAWL_DELAY))
            }
            RobotsReply::Rules(_) => denied(format!(
                "{} is disallowed by {site}/robots.txt",
                redacted_address(way.url())
            )),
            RobotsReply::Unreachable(status) => denied(format!(
                "{site}/robots.txt is unavailable (HTTP {status}), so all pages are disallowed for \
                 now"
            )),
            RobotsReply::RedirectedAway(to) => denied(format!(
                "{site}/robots.txt redirects to {to}, which this run must not read, so all \
                 pages are disallowed"
            )),
        }
    }

    /// Fetches the `robots.txt` of the current site. A missing one, or one with a broken redirect
    /// chain, allows everything (RFC 9309, 2.3.1.2 and 2.3.1.3). One that redirects to an address
    /// that this run must not read has unknown rules: everything is disallowed, but only for this
    /// run, since another may read it.
    async fn fetch_robots(&self, to: &RedirectChain<'_>) -> Result<CachedRobots, FetchFailure> {
        let mut url = to.url().clone();
        url.set_path("/robots.txt");
        url.set_query(None);
        let domain = to.hops.last().map(|hop| hop.domain.clone()).unwrap_or_default();
        let mut way = RedirectChain::new(url, domain, self.redirect_policy(ROBOTS_REDIRECTS));
        loop {
            let turn = self.wait_for_turn(&way, Duration::ZERO).await?;
            let answer = match self.get(&way, Vec::new()).await {
                Ok(answer) => answer,
                Err(FetchFailure::Page(FetchError {
                    kind: FetchErrorKind::PrivateAddress,
                    ..
                })) if !way.redirects.is_empty() => {
                    return Ok(CachedRobots::uncached(RobotsReply::RedirectedAway(
                        redacted_address(way.url()),
                    )));
                }
                // An error of the site itself is reported: its pages would fail in the same way.
                Err(ended) => return Err(ended),
            };
            if let Some(location) = redirect_target(&answer) {
                match way.follow(location) {
                    Ok(()) => continue,
                    Err(FetchError { kind: FetchErrorKind::RedirectDenied, location, .. }) => {
                        let to = location.unwrap_or_default();
                        return Ok(CachedRobots::uncached(RobotsReply::RedirectedAway(to)));
                    }
                    Err(_) => {
                        return Ok(CachedRobots::cached(
                            RobotsReply::Rules(RobotsRules::default()),
                        ));
                    }
                }
            }
            return match answer.status() {
                200..=299 if !answer.is_unreadable() => {
                    let read = read_within(answer, ROBOTS_BYTES).await;
                    drop(turn);
                    let (bytes, _) = read.map_err(|error| request_error(&way, &error))?;
                    let rules = RobotsRules::parse(&String::from_utf8_lossy(&bytes));
                    Ok(CachedRobots::cached(RobotsReply::Rules(rules)))
                }
                429 => Err(self.busy_host(&way, &answer)),
                status @ 500..=599 => {
                    Ok(CachedRobots::briefly_cached(RobotsReply::Unreachable(status)))
                }
                _ => Ok(CachedRobots::cached(RobotsReply::Rules(RobotsRules::default()))),
            };
        }
    }
}

/// Headers of a conditional request.
fn conditional_headers(known: &CachedPage) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let etag = known.etag.as_ref().map(|etag| (IF_NONE_MATCH, etag));
    let since = known.last_modified.as_ref().map(|since| (IF_MODIFIED_SINCE, since));
    [etag, since]
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name, HeaderValue::try_from(value.as_str()).ok()?)))
}

/// Value of `charset` in a media type.
fn charset(media_type: &str) -> Option<String> {
    media_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().to_owned())
    })
}

fn attempt_error(class: FailureClass, what: &str, advice: &str) -> Box<AttemptFailed> {
    AttemptFailed::with_advice(class, &Redactor::default().redact(what), advice)
}

/// A host that requested a longer pause than we wait.
fn retry_after_error(way: &RedirectChain<'_>, HostBusy { status, left }: HostBusy) -> FetchError {
    let seconds = millis(left).div_ceil(1_000);
    let text = format!("{} asks to wait {seconds} s (HTTP {status}, Retry-After)", way.host());
    FetchError::new(FetchErrorKind::Status(status), text)
}

fn too_large(way: &RedirectChain<'_>, cap: usize) -> Box<AttemptFailed> {
    let what = format!("{} is larger than its cap of {}", redacted_address(way.url()), size(cap));
    attempt_error(FailureClass::TooLarge, &what, "Skip it, or raise max_bytes.")
}

/// Failure of a request without a response.
fn request_error(way: &RedirectChain<'_>, error: &NetError) -> FetchFailure {
    let advice = match error {
        NetError::OutOfReach { .. } => {
            let text = format!("{error}; if you mean this host, add it to allow_private");
            let missed = FetchError::new(FetchErrorKind::PrivateAddress, text);
            let redirected = !way.redirects.is_empty();
            return FetchFailure::Page(if redirected {
                missed.with_location(way.url())
            } else {
                missed
            });
        }
        NetError::Encoding { .. } => "Try again later.",
        NetError::Resolve { .. } => "Check the network; the site may be gone.",
        NetError::Connect { .. } => "The site may be down. Try again later.",
        NetError::Proxy { .. } | NetError::UnusableProxy { .. } => "Check the proxy.",
        NetError::Tls { .. } => "Its certificate may be invalid; nothing was read.",
        NetError::Client { .. } => "Install the system's CA certificates.",
        NetError::Broken { .. } => "Try again.",
        NetError::NotHttp { .. } => "Check that it is a website.",
        NetError::TooLarge { .. } => "Raise max_bytes.",
    };
    let class = FailureClass::from_word(error.word()).unwrap_or(FailureClass::Connect);
    FetchFailure::Attempt(attempt_error(class, &error.to_string(), advice))
}

/// Why a page cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FetchErrorKind {
    InvalidUrl,
    NotFound,
    /// Another status for which a retry is useless, or useless now.
    Status(u16),
    RobotsDisallowed,
    RedirectDenied,
    RedirectLoop,
    TooManyRedirects,
    PrivateAddress,
    ContentType,
    Charset,
    EmptyPage,
    Unreadable,
}

impl FetchErrorKind {
    /// Identifier in the result.
    fn word(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::InvalidUrl => "invalid_url",
            Self::NotFound => "not_found",
            Self::Status(status) => return Cow::Owned(format!("http_{status}")),
            Self::RobotsDisallowed => "robots_disallowed",
            Self::RedirectDenied => "redirect_denied",
            Self::RedirectLoop => "redirect_loop",
            Self::TooManyRedirects => "too_many_redirects",
            Self::PrivateAddress => "private_address",
            Self::ContentType => "content_type",
            Self::Charset => "charset",
            Self::EmptyPage => "empty_page",
            Self::Unreadable => "unreadable",
        })
    }
}

/// A page that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FetchError {
    pub(crate) kind: FetchErrorKind,
    pub(crate) text: String,
    /// Target of a redirect that is not followed.
    pub(crate) location: Option<String>,
}

/// Most characters of a reason's text.
const TEXT_CHARS: usize = 300;
/// Most characters of an address that a text quotes.
const ADDRESS_CHARS: usize = 160;

impl FetchError {
    pub(crate) fn new(kind: FetchErrorKind, text: impl AsRef<str>) -> Self {
        Self { kind, text: visible_within(text.as_ref(), TEXT_CHARS), location: None }
    }

    /// Adds the target of the redirect.
    pub(super) fn with_location(self, location: impl Display) -> Self {
        Self { location: Some(redacted_address(location)), ..self }
    }

    pub(super) fn to_result(&self) -> Value {
        let mut answer = json!({ "status": "error", "error": self.kind.word(), "text": self.text });
        if let (Some(location), Some(fields)) = (&self.location, answer.as_object_mut()) {
            fields.insert("location".to_owned(), Value::from(location.as_str()));
        }
        answer
    }
}

/// An address for display, its secrets redacted and cut to a maximum length.
pub(super) fn redacted_address(address: impl Display) -> String {
    visible_within(&Redactor::default().redact(&address.to_string()), ADDRESS_CHARS)
}

/// Why there is no page: the page cannot be read, or the attempt failed.
#[derive(Debug)]
pub(crate) enum FetchFailure {
    Page(FetchError),
    Attempt(Box<AttemptFailed>),
}

impl From<FetchError> for FetchFailure {
    fn from(missed: FetchError) -> Self {
        Self::Page(missed)
    }
}

impl From<Box<AttemptFailed>> for FetchFailure {
    fn from(failed: Box<AttemptFailed>) -> Self {
        Self::Attempt(failed)
    }
}
