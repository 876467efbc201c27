//! Objects in the object store: large groups, archived logs, what runs leave to their sessions.

use super::connection::{Cluster, plain};
use super::names::BLOBS;
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
        let mut object = match store.get(name).await {
            Ok(object) => object,
            Err(error) if error.kind() == GetErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(&error)),
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

    /// Whether there is an object of this name.
    pub(super) async fn has(&self, name: &str) -> bool {
        match self.0.context().get_object_store(BLOBS).await {
            Ok(store) => store.info(name).await.is_ok(),
            Err(_) => false,
        }
    }
}
