//! Logs of runs that have ended: compressed in the object store, and removed from the stream. Logs of
//! runs of other machines come here too.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::blobs::Blobs;
use super::connection::{Cluster, plain};
use super::entry::{LogEntry, LogPart, ends};
use super::names::LOGS;
use crate::event::{RunId, Seq};
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
    pub async fn add(&self, run: &RunId) -> Result<(), String> {
        let entries = self.0.entries(run).await.map_err(|error| error.to_string())?;
        let has_ended = entries.last().is_some_and(|last| match &last.part {
            LogPart::Events(group) => ends(group),
            _ => false,
        });
        let is_whole =
            entries.first().is_some_and(|first| matches!(first.part, LogPart::Requested(_)));
        let name = self.0.namespace().archive(run);
        let is_archived = Blobs(self.0).has(&name).await.map_err(|error| error.to_string())?;
        match (entries.is_empty(), is_archived) {
            (true, true) => return Ok(()),
            (true, false) => return Err(format!("there is no log of {run}")),
            (false, _) if !has_ended || !is_whole => {
                return Err(format!("the log of {run} is not complete: it is not archived"));
            }
            (false, true) => {}
            (false, false) => {
                if let Some(name) = entries.last().and_then(|last| last.session.as_deref()) {
                    let left = Blobs(self.0).get(name).await.map_err(|error| error.to_string())?;
                    let left = left
                        .ok_or_else(|| format!("what {run} left to its session is not stored"))?;
                    let name = self.0.namespace().session(run);
                    Blobs(self.0).put(&name, &left).await?;
                }
                self.put(run, &lines_of(&entries)).await?;
            }
        }
        let logs =
            self.0.context().get_stream_no_info(LOGS).await.map_err(|error| plain(&error))?;
        let subject = self.0.namespace().log(run);
        logs.purge().filter(subject).await.map_err(|error| plain(&error))?;
        Ok(())
    }

    /// Puts the lines of the log of a run that has ended into the archive.
    ///
    /// # Errors
    /// The server does not store them, in one sentence.
    pub async fn put(&self, run: &RunId, lines: &[u8]) -> Result<(), String> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(lines).map_err(|error| error.to_string())?;
        let packed = packed.finish().map_err(|error| error.to_string())?;
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
