//! Logs of runs that have ended: compressed in the object store, and removed from the stream.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::connection::{Cluster, plain};
use super::entry::LogPart;
use super::names::{BLOBS, LOGS};
use crate::event::RunId;
use crate::store::ReadError;

/// Most bytes of an archived log, unpacked.
const MAX_LOG: u64 = 2 << 30;

impl Cluster {
    /// Puts the log of a run that has ended into the archive, then removes it from the stream. A log that is
    /// archived already is only removed.
    ///
    /// # Errors
    /// It cannot be read or stored; the log is where it was then.
    pub async fn archive_run(&self, run: &RunId) -> Result<(), String> {
        let name = self.namespace().archive(run);
        let store = self.context().get_object_store(BLOBS).await.map_err(|error| plain(&error))?;
        if store.info(&name).await.is_err() {
            let entries = self.entries(run).await.map_err(|error| error.to_string())?;
            let mut packed = GzEncoder::new(Vec::new(), Compression::default());
            for entry in &entries {
                if let LogPart::Events(group) = &entry.part {
                    packed.write_all(group.lines()).map_err(|error| error.to_string())?;
                }
            }
            let packed = packed.finish().map_err(|error| error.to_string())?;
            let mut from = packed.as_slice();
            store.put(name.as_str(), &mut from).await.map_err(|error| plain(&error))?;
        }
        let logs = self.context().get_stream_no_info(LOGS).await.map_err(|error| plain(&error))?;
        let subject = self.namespace().log(run);
        logs.purge().filter(subject).await.map_err(|error| plain(&error))?;
        Ok(())
    }

    /// The lines of an archived log; `None`: it is not archived.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn archived_lines(&self, run: &RunId) -> Result<Option<Vec<u8>>, ReadError> {
        let Some(packed) = self.object(&self.namespace().archive(run)).await? else {
            return Ok(None);
        };
        let mut lines = Vec::new();
        GzDecoder::new(packed.as_slice())
            .take(MAX_LOG)
            .read_to_end(&mut lines)
            .map_err(|error| ReadError::Unreadable(error.to_string()))?;
        Ok(Some(lines))
    }
}
