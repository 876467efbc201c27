//! Sends the text of replies while it is received, at most twenty times a second.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::sleep;

use crate::cluster::Cluster;
use crate::engine::RunHandle;
use crate::event::SpanId;

/// Least time between two messages of a span.
const LEAST: Duration = Duration::from_millis(50);

/// Sends the live text of a run, until it is dropped.
pub(super) async fn speak_live_text(cluster: Cluster, run: RunHandle) {
    let (mut seen, mut sent) = (u64::MAX, BTreeMap::<SpanId, u64>::new());
    loop {
        seen = run.bus().live_changed(seen).await;
        let spans = run.bus().live_spans();
        for span in &spans {
            let before = sent.get(span).copied().unwrap_or(0);
            let text = run.bus().with_live(*span, |live| {
                (live.pieces > before).then(|| (live.pieces, live.text.clone()))
            });
            if let Some((pieces, text)) = text.flatten() {
                sent.insert(*span, pieces);
                cluster.speak(run.id(), *span, Some(&text)).await;
            }
        }
        let ended: Vec<SpanId> = sent.keys().filter(|it| !spans.contains(it)).copied().collect();
        for span in ended {
            sent.remove(&span);
            cluster.speak(run.id(), span, None).await;
        }
        sleep(LEAST).await;
    }
}
