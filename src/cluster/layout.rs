//! The streams and buckets that roundtable needs, and how far a cluster has them.

use std::time::Duration;

use async_nats::jetstream::stream::{
    Config, DiscardPolicy, Republish, RetentionPolicy, StorageType,
};
use async_nats::jetstream::{kv, object_store};

use super::Cluster;
use super::names::{BLOBS, BLOBS_STREAM, COMMANDS, LATE, LOGS, QUEUE, RUNNERS, RUNS};
use crate::base::refused::{OrRefuse as _, Refused};

/// Largest message of a log. Larger groups are in the object store.
const MAX_MESSAGE: i32 = 1 << 20;

/// How long commands and late answers are kept.
const COMMANDS_FOR: Duration = Duration::from_secs(7 * 24 * 3_600);
const LATE_FOR: Duration = Duration::from_secs(24 * 3_600);

/// How long a runner that says nothing is listed.
pub const RUNNER_TTL: Duration = Duration::from_secs(30);

/// What a cluster has of a stream or bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is there, with the settings that roundtable needs.
    Ready,
    /// It is there, with other settings.
    Differs,
    Missing,
}

/// A stream or bucket, and what the cluster has of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutPart {
    pub name: &'static str,
    pub purpose: &'static str,
    /// What the cluster has.
    pub presence: Presence,
    /// How many servers keep it, if it is there.
    pub replicas: Option<usize>,
    /// Messages and bytes in it.
    pub messages: u64,
    pub bytes: u64,
}

/// The streams, with what each is for.
fn streams(replicas: usize) -> Vec<(Config, &'static str)> {
    let stream = |name: &str, subject: &str| Config {
        name: name.to_owned(),
        subjects: vec![subject.to_owned()],
        storage: StorageType::File,
        num_replicas: replicas,
        allow_direct: true,
        max_message_size: MAX_MESSAGE,
        ..Config::default()
    };
    let logs = Config {
        deny_delete: true,
        republish: Some(Republish {
            source: "rt.*.f.00.*".to_owned(),
            destination: "rt.{{wildcard(1)}}.live.{{wildcard(2)}}".to_owned(),
            headers_only: false,
        }),
        ..stream(LOGS, "rt.*.f.00.*")
    };
    let queue = Config { retention: RetentionPolicy::WorkQueue, ..stream(QUEUE, "rt.*.todo.*") };
    let commands = Config { max_age: COMMANDS_FOR, ..stream(COMMANDS, "rt.*.cmd.*") };
    let late = Config {
        max_age: LATE_FOR,
        max_messages_per_subject: 1,
        discard: DiscardPolicy::New,
        discard_new_per_subject: true,
        ..stream(LATE, "rt.*.late.*.*")
    };
    vec![
        (logs, "logs of runs"),
        (queue, "runs that wait for a runner"),
        (commands, "commands to runs"),
        (late, "answers that came after a takeover"),
    ]
}

/// The settings that have to be as roundtable needs them.
fn has_settings(found: &Config, wanted: &Config) -> bool {
    found.subjects == wanted.subjects
        && found.retention == wanted.retention
        && found.storage == wanted.storage
        && found.deny_delete == wanted.deny_delete
        && found.allow_direct == wanted.allow_direct
        && found.max_age == wanted.max_age
        && found.republish.as_ref().map(|it| (&it.source, &it.destination))
            == wanted.republish.as_ref().map(|it| (&it.source, &it.destination))
        && found.max_messages_per_subject.max(0) == wanted.max_messages_per_subject
}

/// The buckets: their streams in the server, and what each is for.
const BUCKETS: [(&str, &str, &str); 3] = [
    (RUNS, "KV_RT_RUNS", "the list of runs"),
    (RUNNERS, "KV_RT_RUNNERS", "runners that are alive"),
    (BLOBS, BLOBS_STREAM, "large groups and archived logs"),
];

/// The streams and buckets of a cluster.
#[derive(Clone, Copy)]
pub struct ClusterLayout<'a>(pub &'a Cluster);

impl ClusterLayout<'_> {
    /// Whether the server has JetStream.
    ///
    /// # Errors
    /// It has none, or this login may not use it.
    pub async fn check_jetstream(&self) -> Result<(), Refused> {
        let account = self.0.context().query_account().await.map(drop);
        account
            .or_refuse("the NATS server has no JetStream for this login")
            .map_err(|why| why.help("start it with -js, or use `roundtable cluster serve`"))
    }

    /// What the cluster has of the streams and buckets.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn parts(&self) -> Result<Vec<LayoutPart>, Refused> {
        self.check_jetstream().await?;
        let mut parts = Vec::new();
        for (wanted, purpose) in streams(1) {
            let name = [LOGS, QUEUE, COMMANDS, LATE].into_iter().find(|it| *it == wanted.name);
            let found = self.stream_config(&wanted.name).await?;
            parts.push(part(name.unwrap_or(LOGS), purpose, found, |config| {
                has_settings(config, &wanted)
            }));
        }
        for (name, stream, purpose) in BUCKETS {
            let found = self.stream_config(stream).await?;
            parts.push(part(name, purpose, found, |_| true));
        }
        Ok(parts)
    }

    /// Settings and size of a stream; `None`: there is none of this name.
    async fn stream_config(&self, name: &str) -> Result<Option<(Config, u64, u64)>, Refused> {
        use async_nats::jetstream::context::GetStreamErrorKind;
        match self.0.context().get_stream(name).await {
            Ok(stream) => {
                let info = stream.cached_info();
                Ok(Some((info.config.clone(), info.state.messages, info.state.bytes)))
            }
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(why) if why.code() == 404 => Ok(None),
                _ => Err(error).or_refuse(format_args!("{name} cannot be read")),
            },
        }
    }

    /// Makes the streams and buckets that are missing, and sets what differs. Changes nothing else.
    ///
    /// # Errors
    /// What could not be made.
    pub async fn make(&self, replicas: usize) -> Result<(), Refused> {
        self.check_jetstream().await?;
        for (wanted, _) in streams(replicas) {
            let name = wanted.name.clone();
            match self.stream_config(&name).await? {
                None => {
                    let made = self.0.context().create_stream(wanted).await;
                    made.or_refuse(format_args!("{name} cannot be made"))?;
                }
                Some((found, ..))
                    if !has_settings(&found, &wanted) || found.num_replicas != replicas =>
                {
                    let changed = self.0.context().update_stream(wanted).await;
                    changed.or_refuse(format_args!("{name} cannot be changed"))?;
                }
                Some(_) => {}
            }
        }
        let runs = kv::Config {
            bucket: RUNS.to_owned(),
            history: 1,
            num_replicas: replicas,
            ..kv::Config::default()
        };
        let runners =
            kv::Config { bucket: RUNNERS.to_owned(), max_age: RUNNER_TTL, ..runs.clone() };
        for config in [runs, runners] {
            let name = config.bucket.clone();
            let made = self.0.context().create_or_update_key_value(config).await;
            made.or_refuse(format_args!("{name} cannot be made"))?;
        }
        if let Some((found, ..)) = self.stream_config(BLOBS_STREAM).await? {
            if found.num_replicas != replicas {
                let config = Config { num_replicas: replicas, ..found };
                let changed = self.0.context().update_stream(config).await;
                changed.or_refuse(format_args!("{BLOBS} cannot be changed"))?;
            }
        } else {
            let config = object_store::Config {
                bucket: BLOBS.to_owned(),
                num_replicas: replicas,
                ..object_store::Config::default()
            };
            let made = self.0.context().create_object_store(config).await;
            made.or_refuse(format_args!("{BLOBS} cannot be made"))?;
        }
        Ok(())
    }
}

fn part(
    name: &'static str,
    purpose: &'static str,
    found: Option<(Config, u64, u64)>,
    fits: impl FnOnce(&Config) -> bool,
) -> LayoutPart {
    let (presence, replicas, messages, bytes) = match found {
        None => (Presence::Missing, None, 0, 0),
        Some((config, messages, bytes)) => {
            let presence = if fits(&config) { Presence::Ready } else { Presence::Differs };
            (presence, Some(config.num_replicas), messages, bytes)
        }
    };
    LayoutPart { name, purpose, presence, replicas, messages, bytes }
}
