//! Reads the live text of the run on the screen once per frame, so that all changes between two
//! frames are one change.

use std::collections::BTreeMap;

use crate::app::msg::PartialText;
use crate::app::{AppState, Msg};
use crate::bus::Bus;
use crate::engine::Engine;
use crate::event::{RunId, SpanId};

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
pub fn partial_text(live: &crate::bus::LiveText) -> PartialText {
    PartialText {
        text: live.text.clone(),
        pieces: live.pieces,
        first_at: live.first_at,
        last_at: live.last_at,
    }
}
