//! The object store: large groups of events, what runs leave to their sessions, and the compressed
//! logs of ended runs, which are then removed from the stream. Logs of runs of other machines come
//! here too.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::entry::{LogEntry, LogPart, ends};
use super::names::{BLOBS, BLOBS_STREAM, LOGS};
use super::stream::{BEHIND, BEHIND_FOR, last_message};
use super::{Cluster, error_text};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::log::event::{RunId, Seq};
use crate::store::{EventGroup, ReadError};

/// Most bytes of an archived log, unpacked.
const MAX_LOG: u64 = 2 << 30;

/// Logs of runs that have ended, in the object store.
#[derive(Clone, Copy)]
pub struct RunArchive<'a>(pub &'a Cluster);

impl RunArchive<'_> {
    /// Puts the log of a run that has ended into the archive, then removes it from the stream. Several
    /// runners may do it at a time: a log that one of them has removed in part is left to that one.
    ///
    /// # Errors
    /// The run has not ended, or its log cannot be read or stored; the log is where it was then.
    pub async fn add(&self, run: &RunId) -> Result<(), Refused> {
        let unread = format!("the log of {run} cannot be read");
        let entries = self.0.entries(run).await.or_refuse(&unread)?;
        let has_ended = entries.last().is_some_and(|last| match &last.part {
            LogPart::Events(group) => ends(group),
            _ => false,
        });
        let is_whole =
            entries.first().is_some_and(|first| matches!(first.part, LogPart::Requested(_)));
        let name = self.0.namespace().archive(run);
        let is_archived = Blobs(self.0).has(&name).await.or_refuse(&unread)?;
        match (entries.is_empty(), is_archived) {
            (true, true) => return Ok(()),
            (true, false) => return Err(Refused::new(format!("there is no log of {run}"))),
            (false, _) if !has_ended || !is_whole => {
                let what = format!("the log of {run} is not complete: it is not archived");
                return Err(Refused::new(what));
            }
            (false, true) => {}
            (false, false) => {
                if let Some(name) = entries.last().and_then(|last| last.session.as_deref()) {
                    let left = Blobs(self.0).get(name).await.or_refuse(&unread)?;
                    let left = left
                        .or_refuse(format_args!("what {run} left to its session is not stored"))?;
                    let name = self.0.namespace().session(run);
                    Blobs(self.0).put(&name, &left).await?;
                }
                self.put(run, &lines_of(&entries)).await?;
            }
        }
        let unmoved = format!("the log of {run} cannot be removed from the stream");
        let logs = self.0.context().get_stream_no_info(LOGS).await.or_refuse(&unmoved)?;
        let subject = self.0.namespace().log(run);
        logs.purge().filter(subject).await.or_refuse(&unmoved)?;
        Ok(())
    }

    /// Puts the lines of the log of a run that has ended into the archive.
    ///
    /// # Errors
    /// The server does not store them.
    pub async fn put(&self, run: &RunId, lines: &[u8]) -> Result<(), Refused> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        let packed = packed.write_all(lines).and_then(|()| packed.finish());
        let packed = packed.or_refuse(format_args!("the log of {run} cannot be compressed"))?;
        Blobs(self.0).put(&self.0.namespace().archive(run), &packed).await
    }

    /// What a run left to the next message of its session, as its runner wrote it; `None`: nothing.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn left_session(&self, run: &RunId) -> Result<Option<Vec<u8>>, ReadError> {
        match self.0.last_entry(run).await? {
            Some(LogEntry { session: Some(name), .. }) => Blobs(self.0).get(&name).await,
            Some(_) => Ok(None),
            None => Blobs(self.0).get(&self.0.namespace().session(run)).await,
        }
    }

    /// Whether the cluster has the log of this run, in the stream or in the archive.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn has_run(&self, run: &RunId) -> Result<bool, ReadError> {
        Ok(self.0.last_entry(run).await?.is_some() || self.has_archived(run).await?)
    }

    /// Whether the log of this run is in the archive.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn has_archived(&self, run: &RunId) -> Result<bool, ReadError> {
        Blobs(self.0).has(&self.0.namespace().archive(run)).await
    }

    /// All events of a run so far, from the stream or from the archive; `None`: there is no such run,
    /// or it has no events yet.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn whole_log(&self, run: &RunId) -> Result<Option<EventGroup>, ReadError> {
        let mut lines = lines_of(&self.0.entries(run).await?);
        if lines.is_empty() {
            lines = self.lines(run).await?.unwrap_or_default();
        }
        let count = lines.iter().filter(|byte| **byte == b'\n').count();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        Ok((count > 0).then(|| EventGroup::stored(Seq(0), count, lines)))
    }

    /// The lines of an archived log; `None`: it is not archived.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn lines(&self, run: &RunId) -> Result<Option<Vec<u8>>, ReadError> {
        let Some(packed) = Blobs(self.0).get(&self.0.namespace().archive(run)).await? else {
            return Ok(None);
        };
        let mut lines = Vec::new();
        GzDecoder::new(packed.as_slice())
            .take(MAX_LOG)
            .read_to_end(&mut lines)
            .map_err(|error| ReadError::Damaged { at: 0, why: error.to_string() })?;
        Ok(Some(lines))
    }
}

/// The lines of the events of a log.
fn lines_of(entries: &[LogEntry]) -> Vec<u8> {
    let mut lines = Vec::new();
    for entry in entries {
        if let LogPart::Events(group) = &entry.part {
            lines.extend_from_slice(group.lines());
        }
    }
    lines
}

/// The objects of a cluster.
#[derive(Clone, Copy)]
pub(crate) struct Blobs<'a>(pub &'a Cluster);

impl Blobs<'_> {
    /// An object of the object store; `None`: there is none of this name.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<Vec<u8>>, ReadError> {
        use async_nats::jetstream::object_store::GetErrorKind;
        use tokio::io::AsyncReadExt as _;
        let unreadable = |error: &dyn std::error::Error| ReadError::Unreadable(error_text(error));
        let store =
            self.0.context().get_object_store(BLOBS).await.map_err(|error| unreadable(&error))?;
        let until = Instant::now() + BEHIND_FOR;
        let mut object = loop {
            match store.get(name).await {
                Ok(object) => break object,
                Err(error) if error.kind() == GetErrorKind::NotFound => {
                    // Any server may have answered. The leader knows whether there is one.
                    if Instant::now() >= until || !self.has(name).await? {
                        return Ok(None);
                    }
                    sleep(BEHIND).await;
                }
                Err(error) => return Err(unreadable(&error)),
            }
        };
        let mut bytes = Vec::new();
        object.read_to_end(&mut bytes).await.map_err(|error| unreadable(&error))?;
        Ok(Some(bytes))
    }

    /// Puts an object into the object store; replaces one of the same name.
    pub(crate) async fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Refused> {
        let unwritten = "the object store cannot be written";
        let store = self.0.context().get_object_store(BLOBS).await.or_refuse(unwritten)?;
        let mut from = bytes;
        store.put(name, &mut from).await.or_refuse(unwritten)?;
        Ok(())
    }

    /// Whether there is an object of this name, by the leader of its stream.
    pub(crate) async fn has(&self, name: &str) -> Result<bool, ReadError> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct ObjectAbout {
            deleted: bool,
        }
        // One request, where the client makes two.
        let subject = format!("$O.{BLOBS}.M.{}", URL_SAFE.encode(name));
        let Some(about) = last_message(self.0, BLOBS_STREAM, &subject).await? else {
            return Ok(false);
        };
        let about: ObjectAbout = serde_json::from_slice(&about.payload).unwrap_or_default();
        Ok(!about.deleted)
    }
}
