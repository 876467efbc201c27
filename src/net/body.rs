//! Reads bodies up to a size limit.

use hyper::body::Bytes;

use super::error::NetError;
use super::http::{HttpResponse, yield_to_pool};

/// Most bytes allocated in advance: a `Content-Length` is only a claim.
const MAX_PREALLOCATED: usize = 256 << 10;

impl HttpResponse {
    /// The whole body, at most `cap` bytes. A body that arrives in one piece is not copied.
    ///
    /// # Errors
    /// [`NetError::TooLarge`] as soon as the size is known, else as [`HttpResponse::chunk`].
    pub async fn collect(mut self, cap: usize) -> Result<Bytes, NetError> {
        let announced = self.content_length().and_then(|length| usize::try_from(length).ok());
        if announced.is_some_and(|length| length > cap) {
            return Err(NetError::TooLarge { cap });
        }
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        check_size(first.len(), cap)?;
        let mut whole = Vec::new();
        while let Some(more) = self.chunk().await? {
            if whole.is_empty() {
                whole.reserve(
                    announced.unwrap_or(0).min(MAX_PREALLOCATED).max(first.len() + more.len()),
                );
                whole.extend_from_slice(&first);
            }
            check_size(whole.len() + more.len(), cap)?;
            whole.extend_from_slice(&more);
        }
        yield_to_pool().await;
        Ok(if whole.is_empty() { first } else { whole.into() })
    }
}

fn check_size(length: usize, cap: usize) -> Result<(), NetError> {
    if length > cap { Err(NetError::TooLarge { cap }) } else { Ok(()) }
}

/// The first `most` bytes of a body, and whether it was cut there or by an error. For the text of
/// an error message, where half a body is better than none.
pub async fn read_prefix(answer: HttpResponse, most: usize) -> (Vec<u8>, bool) {
    let mut read = Vec::new();
    let is_cut = fill(answer, most, &mut read).await.unwrap_or(true);
    (read, is_cut)
}

/// The first `most` bytes of a body, and whether more would follow.
///
/// # Errors
/// Same as [`HttpResponse::chunk`].
pub async fn read_within(answer: HttpResponse, most: usize) -> Result<(Vec<u8>, bool), NetError> {
    let mut read = Vec::new();
    let is_cut = fill(answer, most, &mut read).await?;
    Ok((read, is_cut))
}

async fn fill(mut answer: HttpResponse, most: usize, read: &mut Vec<u8>) -> Result<bool, NetError> {
    while let Some(more) = answer.chunk().await? {
        let room = most - read.len();
        if more.len() > room {
            read.extend_from_slice(more.get(..room).unwrap_or(&more));
            return Ok(true);
        }
        read.extend_from_slice(&more);
    }
    yield_to_pool().await;
    Ok(false)
}
