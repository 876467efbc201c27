//! Sends spans over OTLP/HTTP. A run never waits for it: what does not fit in the queue, or cannot be sent in time,
//! is counted and dropped, and the program says so at its end.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures::FutureExt as _;
use prost::Message as _;
use reqwest::Url;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::messages::{
    AnyKind, AnyValue, KeyValue, Resource, ResourceSpans, Scope, ScopeSpans, Span, TracesRequest,
    TracesResponse,
};
use super::spans::RunSpans;
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::log::bus::{LogReader, StoredMark};
use crate::log::event::Seq;
use crate::net::{Http, HttpResponse, RequestTarget};

/// Where spans are sent.
#[derive(Clone, Debug)]
pub struct TraceTarget {
    /// The address of the receiver; spans go to `v1/traces` below it.
    pub url: Url,
    /// Headers of each request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether spans have the texts of runs.
    pub has_texts: bool,
}

/// Most spans of a request.
const MAX_SPANS: usize = 512;
/// Most bytes of a request before it is compressed. One span may be larger.
const MAX_BYTES: usize = 4 << 20;
/// Most spans that wait to be sent, and their bytes.
const MAX_WAITING: usize = 16_384;
const MAX_WAITING_BYTES: usize = 64 << 20;
/// How long spans wait for others to be sent with.
const GATHER: Duration = Duration::from_millis(500);
/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The waits between the attempts to send a request.
const WAITS: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];
/// Longest wait that a receiver may ask for.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// How long the end of the program waits for the last spans.
const AT_END: Duration = Duration::from_secs(5);
/// Most bytes of an answer that are read.
const MAX_ANSWER: usize = 64 << 10;
/// Events that are read of a log at a time.
const BATCH: usize = 256;

/// What became of the spans so far.
#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    lost: AtomicU64,
    waiting_bytes: AtomicUsize,
    /// Why the first ones were lost.
    why: Mutex<Option<String>>,
}

impl Counts {
    fn lose(&self, spans: u64, why: &str) {
        self.lost.fetch_add(spans, Ordering::Relaxed);
        let mut first = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| visible_within(why, REASON_CHARS));
    }
}

/// What became of the spans that were to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Spans that the receiver has taken.
    pub sent: u64,
    /// Spans that it has not.
    pub lost: u64,
    /// Why the first of them were lost.
    pub why: Option<String>,
}

/// Sends the spans of the runs of this process while they are played.
pub struct TraceSender {
    has_texts: bool,
    counts: Arc<Counts>,
    /// The program ends, and with it each wait between attempts.
    ends: watch::Sender<bool>,
    state: Mutex<SenderState>,
    followers: Mutex<Vec<JoinHandle<()>>>,
}

enum SenderState {
    /// No run has begun.
    Idle(Box<Receiver>),
    Sending(mpsc::Sender<Span>, JoinHandle<()>),
    Ended,
}

impl TraceSender {
    /// A sender, which begins with the first run.
    pub fn new(target: &TraceTarget, http: Http) -> Self {
        let (ends, ending) = watch::channel(false);
        Self {
            has_texts: target.has_texts,
            counts: Arc::default(),
            ends,
            state: Mutex::new(SenderState::Idle(Box::new(Receiver::new(target, http, ending)))),
            followers: Mutex::default(),
        }
    }

    fn set_state(&self, next: impl FnOnce(SenderState) -> SenderState) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *state, SenderState::Ended);
        *state = next(before);
    }

    /// The queue of spans; `None`: the program ends.
    fn queue(&self) -> Option<mpsc::Sender<Span>> {
        let mut queue = None;
        self.set_state(|state| match state {
            SenderState::Idle(receiver) => {
                let (sender, spans) = mpsc::channel(MAX_WAITING);
                let sending = tokio::spawn(send_all(*receiver, spans, Arc::clone(&self.counts)));
                queue = Some(sender.clone());
                SenderState::Sending(sender, sending)
            }
            SenderState::Sending(sender, sending) => {
                queue = Some(sender.clone());
                SenderState::Sending(sender, sending)
            }
            SenderState::Ended => SenderState::Ended,
        });
        queue
    }

    /// Sends the spans of a run as they end. `reader` is before its first event. With `stored` only what is
    /// stored is sent: a process that continues the run after a crash has no other spans. Must be called
    /// within a tokio runtime.
    pub fn follow(&self, mut reader: LogReader, stored: Option<Arc<StoredMark>>) {
        let Some(queue) = self.queue() else { return };
        let (mut spans, counts) = (RunSpans::new(self.has_texts), Arc::clone(&self.counts));
        let follower = tokio::spawn(async move {
            let (mut events, mut ended) = (Vec::new(), Vec::new());
            while reader.next_batch(&mut events, BATCH).await > 0 {
                let mut is_stored = true;
                if let (Some(mark), Some(last)) = (&stored, events.last()) {
                    mark.reached(Seq(last.seq.0 + 1)).await;
                    is_stored = !mark.is_abandoned();
                }
                events.drain(..).for_each(|event| spans.take(&event, &mut ended));
                for span in ended.drain(..) {
                    if !is_stored {
                        counts.lose(1, "the run was not kept any more");
                        continue;
                    }
                    let bytes = span.encoded_len();
                    let waiting = counts.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
                    if waiting > MAX_WAITING_BYTES || queue.try_send(span).is_err() {
                        counts.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
                        counts.lose(1, "too many were waiting to be sent");
                    }
                }
            }
        });
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        followers.retain(|follower| !follower.is_finished());
        followers.push(follower);
    }

    /// Waits until the spans of the runs that have ended are sent, but not for long. What is left is lost.
    pub async fn finish(&self) -> Delivery {
        let until = Instant::now() + AT_END;
        self.ends.send_replace(true);
        let followers = {
            let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *followers)
        };
        for mut follower in followers {
            if timeout_at(until, &mut follower).await.is_err() {
                follower.abort();
                // At least its last span is lost.
                self.counts.lose(1, "a run was not stored in time");
            }
        }
        let mut sending = None;
        self.set_state(|state| {
            if let SenderState::Sending(_, task) = state {
                sending = Some(task);
            }
            SenderState::Ended
        });
        if let Some(mut sending) = sending
            && timeout_at(until, &mut sending).await.is_err()
        {
            sending.abort();
            // It counts what it had not sent when it is dropped.
            let _ = sending.await;
        }
        self.delivery()
    }

    fn delivery(&self) -> Delivery {
        let why = self.counts.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Delivery {
            sent: self.counts.sent.load(Ordering::Relaxed),
            lost: self.counts.lost.load(Ordering::Relaxed),
            why,
        }
    }
}

/// Sends these spans and waits for the end, with retries while the receiver is busy.
pub async fn send_now(target: &TraceTarget, http: Http, spans: Vec<Span>) -> Delivery {
    // A receiver that is not there is reported at once.
    let (_ends, ending) = watch::channel(true);
    let (receiver, mut delivery) = (Receiver::new(target, http, ending), Delivery::default());
    let mut spans = spans.into_iter().peekable();
    while spans.peek().is_some() {
        let mut bytes = 0;
        let mut request = Vec::new();
        while let Some(span) = spans.next_if(|span| {
            bytes == 0 || (bytes + span.encoded_len() < MAX_BYTES && request.len() < MAX_SPANS)
        }) {
            bytes += span.encoded_len();
            request.push(span);
        }
        let count = request.len() as u64;
        let outcome = receiver.send(request).await;
        let lost = outcome.lost.min(count);
        delivery.sent += count - lost;
        delivery.lost += lost;
        delivery.why = delivery.why.or(outcome.why);
    }
    delivery
}

/// The spans that were taken from the queue and are not sent: they are lost if the task is ended.
struct Taken {
    counts: Arc<Counts>,
    receiver: Receiver,
    spans: mpsc::Receiver<Span>,
    in_hand: u64,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.spans.close();
        let mut left = self.in_hand;
        while self.spans.try_recv().is_ok() {
            left += 1;
        }
        if left > 0 {
            let trouble = self.receiver.trouble.lock().unwrap_or_else(PoisonError::into_inner);
            let why = trouble.as_deref().unwrap_or("the receiver did not take them in time");
            self.counts.lose(left, why);
        }
    }
}

async fn send_all(receiver: Receiver, spans: mpsc::Receiver<Span>, counts: Arc<Counts>) {
    let mut taken = Taken { counts: Arc::clone(&counts), receiver, spans, in_hand: 0 };
    while let Some(first) = taken.spans.recv().await {
        let mut bytes = first.encoded_len();
        let mut request = vec![first];
        taken.in_hand = 1;
        let until = Instant::now() + GATHER;
        while request.len() < MAX_SPANS && bytes < MAX_BYTES {
            let next = match taken.spans.recv().now_or_never() {
                Some(next) => Ok(next),
                None => timeout_at(until, taken.spans.recv()).await,
            };
            let Ok(Some(span)) = next else { break };
            bytes += span.encoded_len();
            request.push(span);
            taken.in_hand += 1;
        }
        counts.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        let count = request.len() as u64;
        let outcome = taken.receiver.send(request).await;
        taken.in_hand = 0;
        let lost = outcome.lost.min(count);
        counts.sent.fetch_add(count - lost, Ordering::Relaxed);
        if lost > 0 {
            counts.lose(lost, outcome.why.as_deref().unwrap_or("the receiver did not take them"));
        }
    }
}

/// Where requests go.
struct Receiver {
    http: Http,
    target: RequestTarget,
    /// Why the last attempt failed.
    trouble: Mutex<Option<String>>,
    /// Becomes true when the program ends.
    ending: watch::Receiver<bool>,
}

/// What became of a request.
struct Outcome {
    lost: u64,
    why: Option<String>,
}

/// Why a request was not taken.
enum NotTaken {
    /// The receiver is busy: another attempt may succeed, after this wait if it says one.
    Busy(String, Option<Duration>),
    /// No answer.
    Silent(String),
    ForGood(String),
}

impl Receiver {
    fn new(target: &TraceTarget, http: Http, ending: watch::Receiver<bool>) -> Self {
        let mut url = target.url.clone();
        let path = url.path().trim_end_matches('/');
        if !path.ends_with("/v1/traces") {
            let path = format!("{path}/v1/traces");
            url.set_path(&path);
        }
        let mut target_of = RequestTarget::new(url)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"))
            .header(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        for (name, value) in &target.headers {
            target_of = target_of.header(name.clone(), value.clone());
        }
        Self { http, target: target_of, trouble: Mutex::default(), ending }
    }

    fn note_trouble(&self, why: String) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    async fn send(&self, spans: Vec<Span>) -> Outcome {
        let count = spans.len() as u64;
        let body = match body_of(spans) {
            Ok(body) => body,
            Err(why) => return Outcome { lost: count, why: Some(why.to_string()) },
        };
        let (mut waits, mut ending) = (WAITS.into_iter(), self.ending.clone());
        loop {
            let posted = self.post(body.clone()).await;
            let is_silent = matches!(posted, Err(NotTaken::Silent(_)));
            let (why, wait) = match posted {
                Ok(outcome) => return outcome,
                Err(NotTaken::ForGood(why)) => (why, None),
                Err(NotTaken::Busy(why, wait)) => {
                    (why, waits.next().map(|own| wait.map_or(own, |wait| wait.min(MAX_WAIT))))
                }
                // The end of the program does not wait for a receiver that is not there.
                Err(NotTaken::Silent(why)) => {
                    let has_ended = *ending.borrow();
                    (why, waits.next().filter(|_| !has_ended))
                }
            };
            if let Some(wait) = wait {
                self.note_trouble(why);
                let _ = timeout(wait, ending.wait_for(|ends| *ends && is_silent)).await;
                continue;
            }
            return Outcome { lost: count, why: Some(why) };
        }
    }

    async fn post(&self, body: Vec<u8>) -> Result<Outcome, NotTaken> {
        let asked = timeout(TIMEOUT, self.http.post(&self.target, body)).await;
        let host = self.target.host();
        let answer = match asked {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(NotTaken::Silent(error.to_string())),
            Err(_) => {
                let seconds = TIMEOUT.as_secs();
                let why = format!("{host} did not answer within {seconds} s");
                return Err(NotTaken::Silent(why));
            }
        };
        let status = answer.status();
        match status {
            200..=299 => Ok(read_answer(answer).await),
            429 | 502 | 503 | 504 => {
                let wait = answer.retry_after();
                Err(NotTaken::Busy(format!("{host} answered {status}"), wait))
            }
            _ => Err(NotTaken::ForGood(format!("{host} answered {status}"))),
        }
    }
}

/// What a receiver says of a request that it has accepted: it may have rejected some of its spans.
async fn read_answer(answer: HttpResponse) -> Outcome {
    let is_json = answer.has_media_type("application/json");
    let body = timeout(TIMEOUT, answer.collect(MAX_ANSWER)).await;
    let body = body.ok().and_then(Result::ok).unwrap_or_default();
    let partial = match is_json {
        true => TracesResponse::of_json(&body),
        false => TracesResponse::decode(body).unwrap_or_default(),
    };
    let partial = partial.partial_success.unwrap_or_default();
    let lost = u64::try_from(partial.rejected_spans).unwrap_or(0);
    let why = (lost > 0).then(|| match partial.error_message.is_empty() {
        true => "the receiver rejected them".to_owned(),
        false => format!("the receiver rejected them: {}", partial.error_message),
    });
    Outcome { lost, why }
}

fn body_of(spans: Vec<Span>) -> std::io::Result<Vec<u8>> {
    let text = |key: &str, value: &str| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(AnyKind::String(value.to_owned())) }),
    };
    let version = env!("CARGO_PKG_VERSION");
    let resource = Resource {
        attributes: vec![text("service.name", "roundtable"), text("service.version", version)],
    };
    let scope = Scope { name: "roundtable".to_owned(), version: version.to_owned() };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans }];
    let resource_spans = vec![ResourceSpans { resource: Some(resource), scope_spans }];
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&TracesRequest { resource_spans }.encode_to_vec())?;
    gzip.finish()
}
