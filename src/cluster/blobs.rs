//! Objects in the object store: large groups, archived logs, what runs leave to their sessions.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::connection::{Cluster, plain};
use super::leader::{BEHIND, BEHIND_FOR, last_message};
use super::names::{BLOBS, BLOBS_STREAM};
use crate::store::ReadError;

/// The objects of a cluster.
#[derive(Clone, Copy)]
pub(super) struct Blobs<'a>(pub &'a Cluster);

impl Blobs<'_> {
    /// An object of the object store; `None`: there is none of this name.
    ///
    /// # Errors
    /// The server does not answer, or has no such store.
    pub(super) async fn get(&self, name: &str) -> Result<Option<Vec<u8>>, ReadError> {
        use async_nats::jetstream::object_store::GetErrorKind;
        use tokio::io::AsyncReadExt as _;
        let unreadable = |error: &dyn std::error::Error| ReadError::Unreadable(plain(error));
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
    ///
    /// # Errors
    /// The server does not store it, in one sentence.
    pub(super) async fn put(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let store =
            self.0.context().get_object_store(BLOBS).await.map_err(|error| plain(&error))?;
        let mut from = bytes;
        store.put(name, &mut from).await.map_err(|error| plain(&error))?;
        Ok(())
    }

    /// Whether there is an object of this name, by the leader of its stream.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(super) async fn has(&self, name: &str) -> Result<bool, ReadError> {
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
