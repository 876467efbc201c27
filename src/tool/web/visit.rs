//! Fetches a page: one request for each URL of its redirect chain.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH,
};

use super::Web;
use super::body::{self, Body, Coding, Unread};
use super::cache::{Entry, Hop};
use super::hosts::{Resting, Turn};
use super::miss::{Ended, Missed, Why, shown};
use super::permission::{Told, Verdict};
use super::robots::Rules;
use super::way::{Gate, Way, redirect};
use crate::event::id::millis;
use crate::event::kind::{AttemptFailed, FailureClass};
use crate::event::visible::visible_within;
use crate::net::error::size;
use crate::net::{Answer, NetError, Redactor, Target};
use crate::scenario::lookup::WebSpec;
use crate::tool::document::Format;

/// Accepted media types, preferred ones first.
const ACCEPTED: &str = "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9, \
     application/pdf;q=0.8, application/json;q=0.7";

/// Longest `Crawl-delay` that is kept between two requests, since an attempt has its own timeout.
const LONGEST_PACE: Duration = Duration::from_secs(5);

/// Most redirects of a `robots.txt` that are followed; the RFC asks for at least five.
const ROBOTS_REDIRECTS: u32 = 5;
/// Most bytes that are read of a `robots.txt`; the RFC asks for at least 500 KiB.
const ROBOTS_BYTES: usize = 500 << 10;

/// Fetches pages for one request of the reader.
#[derive(Clone, Copy)]
pub(super) struct Visit<'a> {
    pub(super) web: &'a Web,
    pub(super) spec: &'a WebSpec,
    /// Domains whose pages may be read.
    pub(super) allowed: &'a [String],
}

/// A fetched page with its redirect chain.
pub(super) struct Found {
    pub(super) url: Url,
    pub(super) hops: Vec<Hop>,
    pub(super) redirects: Vec<String>,
    pub(super) what: What,
}

/// What the server returned.
pub(super) enum What {
    /// The cached page is still valid (HTTP 304).
    Same,
    /// A new page.
    Page(Page),
}

/// A page with its body, before text extraction.
pub(super) struct Page {
    pub(super) format: Format,
    pub(super) bytes: Vec<u8>,
    /// Media type without parameters.
    pub(super) content_type: String,
    pub(super) charset: Option<String>,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    /// Whether the page must not be cached.
    pub(super) no_store: bool,
}

impl Visit<'_> {
    /// Fetches a page; a conditional request if a cached one is known.
    pub(super) async fn page(
        &self,
        url: Url,
        domain: String,
        known: Option<&Entry>,
    ) -> Result<Found, Ended> {
        let mut way = Way::new(url, domain, self.gate(self.spec.max_redirects));
        loop {
            let pace = if self.spec.robots { self.permitted(&way).await? } else { Duration::ZERO };
            let turn = self.turn(&way, pace).await?;
            let known = known.filter(|known| known.url == way.url().as_str());
            let mut headers = vec![
                (ACCEPT, HeaderValue::from_static(ACCEPTED)),
                (ACCEPT_ENCODING, HeaderValue::from_static("gzip")),
            ];
            headers.extend(known.into_iter().flat_map(conditions));
            let answer = self.get(&way, headers).await?;
            if let Some(location) = redirect(&answer) {
                way.follow(location)?;
                continue;
            }
            let what = self.read(&way, answer, known.is_some()).await?;
            drop(turn);
            let url = way.url().clone();
            return Ok(Found { url, hops: way.hops, redirects: way.redirects, what });
        }
    }

    fn gate(&self, most: u32) -> Gate<'_> {
        Gate { allowed: self.allowed, private: &self.spec.allow_private, most }
    }

    async fn turn(&self, way: &Way<'_>, pace: Duration) -> Result<Turn, Missed> {
        let pace = self.spec.pace.max(pace);
        let turn = self.web.manners().hosts.turn(way.host(), self.spec.per_host, pace).await;
        turn.map_err(|resting| left_alone(way, resting))
    }

    /// Result for a site that is busy. A `Retry-After` is stored for this host and not passed to
    /// the gateway, where all hosts are one tool. The next request to the host waits if the time is
    /// short; else the pages of the host fail.
    fn busy(&self, way: &Way<'_>, answer: &Answer) -> Ended {
        let status = answer.status();
        let asked = answer.retry_after();
        let rested = asked.map(|it| self.web.manners().hosts.leave_alone(way.host(), status, it));
        if let Some(Err(resting)) = rested {
            return left_alone(way, resting).into();
        }
        let advice = match status {
            429 => "Wait, or raise pace_ms.",
            _ => "Try again later.",
        };
        let mut busy = AttemptFailed::of_status(status, "");
        let what = format!("{} returned HTTP {status} to {}", way.host(), shown(way.url()));
        busy.text = failed(busy.class, &what, advice).text;
        busy.into()
    }

    async fn get(
        &self,
        way: &Way<'_>,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<Answer, Ended> {
        let target = Target::new(way.url().clone());
        let target = headers.into_iter().fold(target, |to, (name, value)| to.header(name, value));
        let client = self.web.client(way.is_private());
        client.get(&target).await.map_err(|error| unanswered(way, &error))
    }

    async fn read(&self, way: &Way<'_>, answer: Answer, known: bool) -> Result<What, Ended> {
        let here = || shown(way.url());
        match answer.status() {
            304 if known => {
                answer.settle().await;
                return Ok(What::Same);
            }
            200..=299 => {}
            404 | 410 => {
                let text = format!("{} was not found (HTTP {})", here(), answer.status());
                return Err(Missed::new(Why::NotFound, text).into());
            }
            429 | 500..=599 => return Err(self.busy(way, &answer)),
            status => {
                let text = format!("{} returned HTTP {status}", here());
                return Err(Missed::new(Why::Status(status), text).into());
            }
        }
        let Some(coding) = Coding::of(&answer) else {
            let text = format!("{} has a content encoding that was not requested", here());
            return Err(Missed::new(Why::Unreadable, text).into());
        };
        let media_type = answer.header("content-type").unwrap_or_default().to_owned();
        let Some(format) = Format::of_media_type(&media_type) else {
            let is = match media_type.is_empty() {
                true => "has no content type".to_owned(),
                false => format!("is {}", visible_within(&media_type, 60)),
            };
            let text =
                format!("{} {is}: only HTML, Markdown, text, JSON and PDF are supported", here());
            return Err(Missed::new(Why::ContentType, text).into());
        };
        let text_of = |name: &str| answer.header(name).map(str::to_owned);
        let (etag, last_modified) = (text_of("etag"), text_of("last-modified"));
        let no_store = answer
            .header("cache-control")
            .is_some_and(|it| it.split(',').any(|it| it.trim().eq_ignore_ascii_case("no-store")));
        let cap = usize::try_from(self.spec.max_bytes).unwrap_or(usize::MAX);
        if answer.announced().is_some_and(|length| length > self.spec.max_bytes) {
            return Err(too_large(way, cap).into());
        }
        match body::read(answer, coding, cap).await {
            Ok(Body { cut: true, .. }) => Err(too_large(way, cap).into()),
            Ok(Body { bytes, cut: false }) => Ok(What::Page(Page {
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
            Err(unread) => Err(broken(way, &unread)),
        }
    }

    /// Checks `robots.txt` for the current page; returns the pace that it asks for.
    async fn permitted(&self, way: &Way<'_>) -> Result<Duration, Ended> {
        let site = way.url().origin().ascii_serialization();
        let told = self.web.manners().permissions.of(&site, || self.ask_robots(way)).await?;
        let denied = |text| Err(Missed::new(Why::RobotsDisallowed, text).into());
        match &*told {
            Told::Rules(rules) if rules.allow(way.url()) => {
                Ok(rules.crawl_delay.unwrap_or_default().min(LONGEST_PACE))
            }
            Told::Rules(_) => {
                denied(format!("{} is disallowed by {site}/robots.txt", shown(way.url())))
            }
            Told::Unreachable(status) => denied(format!(
                "{site}/robots.txt is unavailable (HTTP {status}), so all pages are disallowed for \
                 now"
            )),
            Told::Elsewhere(to) => denied(format!(
                "{site}/robots.txt redirects to {to}, which this run must not read, so all \
                 pages are disallowed"
            )),
        }
    }

    /// Fetches the `robots.txt` of the current site. A missing one, or one with a broken redirect
    /// chain, allows everything (RFC 9309, 2.3.1.2 and 2.3.1.3). One that redirects to an address
    /// that this run must not read has unknown rules: everything is disallowed, but only for this
    /// run, since another may read it.
    async fn ask_robots(&self, to: &Way<'_>) -> Result<Verdict, Ended> {
        let mut url = to.url().clone();
        url.set_path("/robots.txt");
        url.set_query(None);
        let domain = to.hops.last().map(|hop| hop.domain.clone()).unwrap_or_default();
        let mut way = Way::new(url, domain, self.gate(ROBOTS_REDIRECTS));
        loop {
            let turn = self.turn(&way, Duration::ZERO).await?;
            let answer = match self.get(&way, Vec::new()).await {
                Ok(answer) => answer,
                Err(Ended::Missed(Missed { why: Why::PrivateAddress, .. }))
                    if !way.redirects.is_empty() =>
                {
                    return Ok(Verdict::once(Told::Elsewhere(shown(way.url()))));
                }
                // An error of the site itself is reported: its pages would fail in the same way.
                Err(ended) => return Err(ended),
            };
            if let Some(location) = redirect(&answer) {
                match way.follow(location) {
                    Ok(()) => continue,
                    Err(Missed { why: Why::RedirectDenied, location, .. }) => {
                        let to = location.unwrap_or_default();
                        return Ok(Verdict::once(Told::Elsewhere(to)));
                    }
                    Err(_) => return Ok(Verdict::keep(Told::Rules(Rules::default()))),
                }
            }
            return match (answer.status(), Coding::of(&answer)) {
                (200..=299, Some(coding)) => {
                    let read = body::read(answer, coding, ROBOTS_BYTES).await;
                    drop(turn);
                    let body = read.map_err(|unread| broken(&way, &unread))?;
                    let rules = Rules::read(&String::from_utf8_lossy(&body.bytes));
                    Ok(Verdict::keep(Told::Rules(rules)))
                }
                (429, _) => Err(self.busy(&way, &answer)),
                (status @ 500..=599, _) => Ok(Verdict::soon(Told::Unreachable(status))),
                _ => Ok(Verdict::keep(Told::Rules(Rules::default()))),
            };
        }
    }
}

/// Headers of a conditional request.
fn conditions(known: &Entry) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
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

fn failed(class: FailureClass, what: &str, advice: &str) -> Box<AttemptFailed> {
    AttemptFailed::advising(class, &Redactor::default().redact(what), advice)
}

/// A host that asked for a longer pause than we wait.
fn left_alone(way: &Way<'_>, Resting { status, left }: Resting) -> Missed {
    let seconds = millis(left).div_ceil(1_000);
    let text = format!("{} asks to wait {seconds} s (HTTP {status}, Retry-After)", way.host());
    Missed::new(Why::Status(status), text)
}

fn too_large(way: &Way<'_>, cap: usize) -> Box<AttemptFailed> {
    let what = format!("{} is larger than its cap of {}", shown(way.url()), size(cap));
    failed(FailureClass::TooLarge, &what, "Skip it, or raise max_bytes.")
}

/// Failure of a request without a response.
fn unanswered(way: &Way<'_>, error: &NetError) -> Ended {
    let advice = match error {
        NetError::OutOfReach { .. } => {
            let text = format!("{error}; if you mean this host, add it to allow_private");
            let missed = Missed::new(Why::PrivateAddress, text);
            let redirected = !way.redirects.is_empty();
            return Ended::Missed(if redirected { missed.leading(way.url()) } else { missed });
        }
        NetError::Resolve { .. } => "Check the network; the site may be gone.",
        NetError::Connect { .. } => "The site may be down. Try again later.",
        NetError::Tls { .. } => "Its certificate may be invalid; nothing was read.",
        NetError::Client { .. } => "Install the system's CA certificates.",
        NetError::Broken { .. } => "Try again.",
        NetError::NotHttp { .. } => "Check that it is a website.",
        NetError::TooLarge { .. } => "Raise max_bytes.",
    };
    let class = FailureClass::of(error.word()).unwrap_or(FailureClass::Connect);
    Ended::Failed(failed(class, &error.to_string(), advice))
}

/// Failure while reading the body.
fn broken(way: &Way<'_>, unread: &Unread) -> Ended {
    match unread {
        Unread::Net(error) => unanswered(way, error),
        Unread::Packed(error) => {
            let what = format!("{} is not valid gzip: {error}", shown(way.url()));
            failed(FailureClass::BadResponse, &what, "Try again later.").into()
        }
    }
}

impl Web {
    fn client(&self, anywhere: bool) -> &crate::net::Http {
        if anywhere { &self.0.anywhere } else { &self.0.internet }
    }

    fn manners(&self) -> &Arc<super::Manners> {
        &self.0.manners
    }
}
