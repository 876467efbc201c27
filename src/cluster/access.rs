//! What the login of this program may do in a cluster: each subject is tried with a message that no stream
//! stores.

use std::time::Duration;

use async_nats::HeaderMap;
use tokio::time::sleep;

use super::Cluster;
use super::names::{BLOBS, COMMANDS, LATE, LOGS, QUEUE, RUNNERS, RUNS};
use super::stream::EXPECTED_LAST;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::log::event::{RunId, SpanId};

/// A number that no message has: a stream refuses a message that expects it.
const NEVER: &str = "9007199254740993";

/// How long the client may take to report the refusals that it has received: another task does it.
const SETTLE: Duration = Duration::from_millis(200);

/// Something that people do with a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterUse {
    Watch,
    /// Send commands to runs.
    Steer,
    HandOver,
    /// Play runs, as a runner.
    Play,
}

impl ClusterUse {
    /// All of them, from the one that needs the least.
    pub const ALL: [Self; 4] = [Self::Watch, Self::Steer, Self::HandOver, Self::Play];

    /// What it is, after "may".
    pub fn words(self) -> &'static str {
        match self {
            Self::Watch => "watch runs",
            Self::Steer => "send commands to runs",
            Self::HandOver => "hand runs over",
            Self::Play => "play runs",
        }
    }
}

/// What a login may not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedUse {
    /// What it cannot be used for.
    pub denied: ClusterUse,
    /// The first subject that the server refuses, as the server says it.
    pub why: String,
}

/// What the login of a cluster is allowed to do.
#[derive(Clone, Copy)]
pub struct ClusterAccess<'a>(pub &'a Cluster);

impl ClusterAccess<'_> {
    /// What the login may not do; nothing: it may do everything. Nothing is stored.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn denied(&self) -> Result<Vec<DeniedUse>, Refused> {
        let unknown = "the permissions of this login are not known";
        let run = RunId::new("doctor");
        let client = self.0.client();
        let watched = self.subjects_to_watch(&run);
        let mut subscriptions = Vec::new();
        for (_, subject) in &watched {
            let subscription = client.subscribe(subject.clone()).await;
            subscriptions.push(subscription.or_refuse(unknown)?);
        }
        let to_publish = self.subjects_to_publish(&run);
        for (_, subject) in &to_publish {
            let mut headers = HeaderMap::new();
            headers.insert(EXPECTED_LAST, NEVER);
            let sent = client.publish_with_reply_and_headers(
                subject.clone(),
                client.new_inbox(),
                headers,
                Vec::new().into(),
            );
            sent.await.or_refuse(unknown)?;
        }
        // What the server refuses it says before it answers this.
        self.0.context().query_account().await.or_refuse(unknown)?;
        sleep(SETTLE).await;
        let said = self.0.denials();
        let denied = |subject: &str| {
            let quoted = format!("\"{subject}\"");
            said.iter().find(|text| text.contains(&quoted)).map(|text| text.to_string())
        };
        let mut found = Vec::new();
        for of in ClusterUse::ALL {
            let subjects =
                watched.iter().chain(&to_publish).filter(|(needed_by, _)| *needed_by == of);
            if let Some(why) = subjects.into_iter().find_map(|(_, subject)| denied(subject)) {
                found.push(DeniedUse { denied: of, why });
            }
        }
        Ok(found)
    }

    fn subjects_to_watch(&self, run: &RunId) -> Vec<(ClusterUse, String)> {
        use ClusterUse::{HandOver, Play, Watch};
        let names = self.0.namespace();
        vec![
            (Watch, names.live(run)),
            (Watch, names.texts(run)),
            (HandOver, names.notes(run)),
            (Play, names.commands(run)),
            (Play, names.late(run, SpanId(0))),
        ]
    }

    fn subjects_to_publish(&self, run: &RunId) -> Vec<(ClusterUse, String)> {
        use ClusterUse::{HandOver, Play, Steer, Watch};
        let (names, keys) = (self.0.namespace(), self.0.namespace().keys());
        // Without a body nothing is made, and there is no consumer of this name to take anything from.
        vec![
            (Watch, format!("$JS.API.DIRECT.GET.{LOGS}")),
            (Watch, format!("$JS.API.DIRECT.GET.KV_{RUNS}")),
            (Watch, format!("$JS.API.DIRECT.GET.OBJ_{BLOBS}")),
            (Watch, format!("$JS.API.STREAM.MSG.GET.{LOGS}")),
            (Watch, format!("$JS.API.STREAM.INFO.KV_{RUNS}")),
            (Watch, format!("$JS.API.CONSUMER.CREATE.KV_{RUNS}.doctor.$KV.{RUNS}.{keys}")),
            (Watch, format!("$JS.API.CONSUMER.MSG.NEXT.KV_{RUNS}.doctor")),
            (Watch, format!("$JS.API.STREAM.INFO.OBJ_{BLOBS}")),
            (Watch, format!("$JS.API.CONSUMER.CREATE.OBJ_{BLOBS}.doctor.$O.{BLOBS}.C.doctor")),
            (Steer, names.commands(run)),
            (HandOver, format!("$JS.API.STREAM.MSG.GET.OBJ_{BLOBS}")),
            (HandOver, names.log(run)),
            (HandOver, names.queue("doctor")),
            (HandOver, format!("$KV.{RUNS}.{}", names.row("20000101", run))),
            (Play, format!("$JS.API.CONSUMER.CREATE.{QUEUE}.doctor.{}", names.queue("doctor"))),
            (Play, format!("$JS.API.CONSUMER.MSG.NEXT.{QUEUE}.doctor")),
            (Play, format!("$JS.ACK.{QUEUE}.doctor.1.1.1.1.0")),
            (Play, format!("$JS.API.DIRECT.GET.{QUEUE}")),
            (Play, format!("$JS.API.DIRECT.GET.{COMMANDS}")),
            (Play, format!("$JS.API.STREAM.MSG.GET.{LATE}")),
            (Play, format!("$JS.API.STREAM.INFO.{LOGS}")),
            (Play, format!("$KV.{RUNNERS}.{}", names.runner("doctor"))),
            (Play, names.late(run, SpanId(0))),
            (Play, names.text(run, SpanId(0))),
            (Play, names.notes(run)),
            (Play, format!("$O.{BLOBS}.M.doctor")),
            (Play, format!("$O.{BLOBS}.C.doctor")),
        ]
    }
}
