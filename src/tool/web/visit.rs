//! A visit to a page: request after request along its way.

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

/// What is read, and what rather.
const ACCEPTED: &str = "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9, \
     application/pdf;q=0.8, application/json;q=0.7";

/// The longest that `Crawl-delay` makes us wait between two requests: an attempt has its own bound.
const LONGEST_PACE: Duration = Duration::from_secs(5);

/// Redirects of a `robots.txt` that are followed; the RFC asks for five at least.
const ROBOTS_REDIRECTS: u32 = 5;
/// How much of a `robots.txt` is read; the RFC asks for 500 KiB at least.
const ROBOTS_BYTES: usize = 500 << 10;

/// Who visits.
#[derive(Clone, Copy)]
pub(super) struct Visit<'a> {
    pub(super) web: &'a Web,
    pub(super) spec: &'a WebSpec,
    /// Whose pages may be read.
    pub(super) allowed: &'a [String],
}

/// Where a page was found.
pub(super) struct Found {
    pub(super) url: Url,
    pub(super) hops: Vec<Hop>,
    pub(super) redirects: Vec<String>,
    pub(super) what: What,
}

/// What was found there.
pub(super) enum What {
    /// The page that we have.
    Same,
    /// A page.
    Page(Page),
}

/// A page as it came.
pub(super) struct Page {
    pub(super) format: Format,
    pub(super) bytes: Vec<u8>,
    /// Its media type, without parameters.
    pub(super) content_type: String,
    pub(super) charset: Option<String>,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    /// It asks not to be kept.
    pub(super) no_store: bool,
}

impl Visit<'_> {
    /// Asks for a page. Where one is known, for no more than whether it is the same still.
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

    /// A site that says that it cannot answer now. Where it says for how long it is kept for the
    /// host and never told to the gateway, for which all hosts are one tool: a moment is waited out
    /// by the next request, and for longer its pages cannot be had.
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
        let what = format!("{} answered HTTP {status} to {}", way.host(), shown(way.url()));
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
                let text = format!("{} is not there (HTTP {})", here(), answer.status());
                return Err(Missed::new(Why::NotFound, text).into());
            }
            429 | 500..=599 => return Err(self.busy(way, &answer)),
            status => {
                let text = format!("{} answered HTTP {status}", here());
                return Err(Missed::new(Why::Status(status), text).into());
            }
        }
        let Some(coding) = Coding::of(&answer) else {
            let text = format!("{} comes packed in a way that nobody asked for", here());
            return Err(Missed::new(Why::Unreadable, text).into());
        };
        let media_type = answer.header("content-type").unwrap_or_default().to_owned();
        let Some(format) = Format::of_media_type(&media_type) else {
            let is = match media_type.is_empty() {
                true => "says nothing of what it is".to_owned(),
                false => format!("is {}", visible_within(&media_type, 60)),
            };
            let text = format!("{} {is}: HTML, Markdown, text, JSON and PDF are read", here());
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

    /// Whether `robots.txt` of the site at hand lets us read the page at hand, and the pace that it
    /// asks for.
    async fn permitted(&self, way: &Way<'_>) -> Result<Duration, Ended> {
        let site = way.url().origin().ascii_serialization();
        let told = self.web.manners().permissions.of(&site, || self.ask_robots(way)).await?;
        let denied = |text| Err(Missed::new(Why::RobotsDisallowed, text).into());
        match &*told {
            Told::Rules(rules) if rules.allow(way.url()) => {
                Ok(rules.crawl_delay.unwrap_or_default().min(LONGEST_PACE))
            }
            Told::Rules(_) => {
                denied(format!("{} is closed to programs by {site}/robots.txt", shown(way.url())))
            }
            Told::Unreachable(status) => denied(format!(
                "{site}/robots.txt cannot be had (HTTP {status}), which counts as a no until it can"
            )),
            Told::Elsewhere(to) => denied(format!(
                "{site}/robots.txt redirects to {to}, where this run may not go: rules that \
                 cannot be read count as a no"
            )),
        }
    }

    /// Asks for the `robots.txt` of the site at hand. One that is not there, or whose redirects end
    /// nowhere, forbids nothing (RFC 9309, 2.3.1.2 and 2.3.1.3). One that redirects to where this
    /// run may not go has rules that we cannot know: they count as a no, for this run alone, since
    /// another may go there.
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
                // Of the site itself this is told; a page of it would meet the same.
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

/// What asks whether a page has changed.
fn conditions(known: &Entry) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let etag = known.etag.as_ref().map(|etag| (IF_NONE_MATCH, etag));
    let since = known.last_modified.as_ref().map(|since| (IF_MODIFIED_SINCE, since));
    [etag, since]
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name, HeaderValue::try_from(value.as_str()).ok()?)))
}

/// The charset that a media type names.
fn charset(media_type: &str) -> Option<String> {
    media_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().to_owned())
    })
}

fn failed(class: FailureClass, what: &str, advice: &str) -> Box<AttemptFailed> {
    AttemptFailed::advising(class, &Redactor::default().redact(what), advice)
}

/// A host that is left alone as it asks.
fn left_alone(way: &Way<'_>, Resting { status, left }: Resting) -> Missed {
    let seconds = millis(left).div_ceil(1_000);
    let text = format!("{} asks to be left alone for {seconds} s (HTTP {status})", way.host());
    Missed::new(Why::Status(status), text)
}

fn too_large(way: &Way<'_>, cap: usize) -> Box<AttemptFailed> {
    let what = format!("{} is larger than its cap of {}", shown(way.url()), size(cap));
    failed(FailureClass::TooLarge, &what, "Leave it out, or raise max_bytes.")
}

/// No answer came.
fn unanswered(way: &Way<'_>, error: &NetError) -> Ended {
    let advice = match error {
        NetError::OutOfReach { .. } => {
            let text = format!("{error}; where it is meant, name the host in allow_private");
            let missed = Missed::new(Why::PrivateAddress, text);
            let redirected = !way.redirects.is_empty();
            return Ended::Missed(if redirected { missed.leading(way.url()) } else { missed });
        }
        NetError::Resolve { .. } => "Check the network; the site may be gone.",
        NetError::Connect { .. } => "The site may be down. Try again later.",
        NetError::Tls { .. } => "Its certificate may be bad; nothing was read.",
        NetError::Client { .. } => "Install the system's CA certificates.",
        NetError::Broken { .. } => "Try again.",
        NetError::NotHttp { .. } => "Check that it is a web site.",
        NetError::TooLarge { .. } => "Raise max_bytes.",
    };
    let class = FailureClass::of(error.word()).unwrap_or(FailureClass::Connect);
    Ended::Failed(failed(class, &error.to_string(), advice))
}

/// A body did not come as it should.
fn broken(way: &Way<'_>, unread: &Unread) -> Ended {
    match unread {
        Unread::Net(error) => unanswered(way, error),
        Unread::Packed(error) => {
            let what = format!("{} is no gzip, as it says it is: {error}", shown(way.url()));
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
