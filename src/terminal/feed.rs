//! Feeds events to the loop: one task per log reads it and sends batches into one bounded channel.
//! If the loop is slow, the tasks wait, and a run that is too far ahead of them waits too, so
//! memory is bounded and no event is lost.
//!
//! The live text of the run on the screen is read once per frame, so that all changes between two
//! frames are one change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::effects::EffectResult;
use crate::engine::Engine;
use crate::log::bus::{Bus, LogReader};
use crate::log::event::{Event, RunId, Seq, SpanId};
use crate::screen::msg::PartialText;
use crate::screen::{AppState, Msg};

/// Events in one batch: small enough that processing one does not delay a key noticeably.
const BATCH: usize = 512;

/// Capacity of the channel, in batches.
const CHANNEL_BATCHES: usize = 16;

/// Consecutive events of one log.
#[derive(Debug)]
pub struct Batch {
    /// The run that they belong to; `None`: the log of the engine's session.
    pub run: Option<RunId>,
    /// The events, in the log's order.
    pub events: Vec<Arc<Event>>,
    /// The first event that the log still held when it was read; earlier ones are dropped.
    pub first: Seq,
}

/// What a result means for the state, whatever shows it.
pub(crate) struct News {
    /// The messages, in this order.
    pub msgs: Vec<Msg>,
    /// A run whose events are to be followed after them.
    pub log: Option<(RunId, Box<LogReader>)>,
}

impl EffectResult {
    /// The news in it; `now` is the time since the start of the program.
    pub(crate) fn into_news(self, now: Duration) -> Result<News, Box<Self>> {
        let (msgs, log) = match self {
            Self::Msg(msg) | Self::Opened { msg, .. } => (vec![msg], None),
            Self::Clock(run, age) => (vec![Msg::Clock(run, now.saturating_sub(age))], None),
            Self::Started { request, run, facts, launch } => {
                let zero = now.saturating_sub(run.bus().now().duration());
                let run = run.id().clone();
                let started = Msg::Started { request, run: run.clone(), zero, launch };
                (vec![started], Some((run, facts)))
            }
            Self::Attached { request, run, age, facts, launch, remote } => {
                let zero = now.saturating_sub(age);
                let started = Msg::Started { request, run: run.clone(), zero, launch };
                let remote = Msg::Remote { run: run.clone(), remote };
                (vec![started, remote], Some((run, facts)))
            }
            Self::Followed { run, age, facts, launch, remote } => {
                let zero = now.saturating_sub(age);
                let followed = Msg::Followed { run: run.clone(), zero, launch };
                let remote = Msg::Remote { run: run.clone(), remote };
                (vec![followed, remote], Some((run, facts)))
            }
            asks => return Err(Box::new(asks)),
        };
        Ok(News { msgs, log })
    }
}

/// The sending end of the channel.
#[derive(Debug, Clone)]
pub struct Feed(mpsc::Sender<Batch>);

impl Feed {
    /// Creates the channel; the loop gets the receiving end.
    pub fn new() -> (Self, mpsc::Receiver<Batch>) {
        let (send, receive) = mpsc::channel(CHANNEL_BATCHES);
        (Self(send), receive)
    }

    /// Sends a run's events, from the reader's position, until its log is closed.
    pub fn follow(&self, run: RunId, facts: LogReader) {
        tokio::spawn(forward(facts, Some(run), self.0.clone()));
    }

    /// Sends the events of the engine's session.
    pub fn follow_session(&self, session: LogReader) {
        tokio::spawn(forward(session, None, self.0.clone()));
    }
}

async fn forward(mut reader: LogReader, run: Option<RunId>, feed: mpsc::Sender<Batch>) {
    loop {
        let mut events = Vec::new();
        if reader.next_batch(&mut events, BATCH).await == 0 {
            return;
        }
        let first = reader.log_start();
        if feed.send(Batch { run: run.clone(), events, first }).await.is_err() {
            return;
        }
    }
}

/// Follows the live text of one run at a time.
#[derive(Default)]
pub struct LiveTextWatcher {
    run: Option<WatchedRun>,
}

struct WatchedRun {
    id: RunId,
    bus: Bus,
    /// The version of the text that the screen shows.
    seen: u64,
    /// Number of pieces of each span that the screen shows.
    shown: BTreeMap<SpanId, u64>,
}

impl LiveTextWatcher {
    /// Follows the run that is on the screen.
    pub fn follow_visible(&mut self, state: &AppState, engine: &Engine) {
        let wanted = state.visible_run().map(|page| page.id());
        if wanted == self.run.as_ref().map(|watched| &watched.id) {
            return;
        }
        self.run = wanted.and_then(|id| engine.run(id)).map(|run| WatchedRun {
            id: run.id().clone(),
            bus: run.bus().clone(),
            // Never a real version, so the existing text is read first.
            seen: u64::MAX,
            shown: BTreeMap::new(),
        });
    }

    /// Waits for live text that the screen does not show yet.
    pub async fn changed(&self) {
        match &self.run {
            Some(watched) => {
                watched.bus.live_changed(watched.seen).await;
            }
            None => std::future::pending().await,
        }
    }

    /// The changes since the last call.
    pub fn take_changes(&mut self) -> Vec<Msg> {
        let Some(watched) = &mut self.run else { return Vec::new() };
        let version = watched.bus.live_version();
        if version == watched.seen {
            return Vec::new();
        }
        watched.seen = version;
        let mut now = BTreeMap::new();
        let mut changes = Vec::new();
        for span in watched.bus.live_spans() {
            let before = watched.shown.get(&span).copied();
            let text = watched.bus.with_live(span, |live| {
                (live.pieces, (Some(live.pieces) != before).then(|| partial_text(live)))
            });
            if let Some((pieces, text)) = text {
                now.insert(span, pieces);
                changes.extend(text.map(|text| (span, Some(text))));
            }
        }
        for gone in watched.shown.keys().filter(|span| !now.contains_key(span)) {
            changes.push((*gone, None));
        }
        watched.shown = now;
        let run = &watched.id;
        changes.into_iter().map(|(span, text)| Msg::Live { run: run.clone(), span, text }).collect()
    }
}

/// The text received so far, for a page.
pub fn partial_text(live: &crate::log::bus::LiveText) -> PartialText {
    PartialText {
        text: live.text.clone(),
        pieces: live.pieces,
        first_at: live.first_at,
        last_at: live.last_at,
    }
}
