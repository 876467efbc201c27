//! Reads bodies of pages and decompresses them. The cap limits the decompressed size, because a few
//! bytes of gzip may hold thousands of times as many. Nothing above the cap is kept.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;

use crate::net::{HttpResponse, NetError};

/// Content encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentCoding {
    Identity,
    Gzip,
}

impl ContentCoding {
    /// Encoding named in the response's header; `None` for one that was not requested.
    pub(super) fn from_response(answer: &HttpResponse) -> Option<Self> {
        match answer.header("content-encoding").map(|it| it.trim().to_ascii_lowercase()).as_deref()
        {
            None | Some("" | "identity") => Some(Self::Identity),
            Some("gzip" | "x-gzip") => Some(Self::Gzip),
            Some(_) => None,
        }
    }
}

/// A body, possibly truncated.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    /// Whether the body is longer than the cap; the rest was not read.
    pub(super) cut: bool,
}

/// Why a body cannot be read.
#[derive(Debug)]
pub(super) enum BodyError {
    Net(NetError),
    /// The encoding does not match the header.
    Encoding(io::Error),
}

impl From<NetError> for BodyError {
    fn from(error: NetError) -> Self {
        Self::Net(error)
    }
}

/// Reads a body, at most `cap` bytes of it.
pub(super) async fn read(
    mut answer: HttpResponse,
    coding: ContentCoding,
    cap: usize,
) -> Result<Body, BodyError> {
    let mut unpacking = Decompressor::new(coding, cap);
    let mut came = false;
    while let Some(chunk) = answer.chunk().await? {
        came |= !chunk.is_empty();
        if unpacking.push(&chunk)? {
            return Ok(Body { bytes: unpacking.bytes(), cut: true });
        }
    }
    // The body has ended, so its connection can be reused.
    answer.release().await;
    // A header may name an encoding for an empty body, too.
    if came { unpacking.finish() } else { Ok(Body { bytes: Vec::new(), cut: false }) }
}

enum Decompressor {
    Identity(CappedBuffer),
    Gzip(Box<MultiGzDecoder<CappedBuffer>>),
}

impl Decompressor {
    fn new(coding: ContentCoding, cap: usize) -> Self {
        let capped = CappedBuffer { bytes: Vec::new(), cap, cut: false };
        match coding {
            ContentCoding::Identity => Self::Identity(capped),
            ContentCoding::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(capped))),
        }
    }

    fn capped(&mut self) -> &mut CappedBuffer {
        match self {
            Self::Identity(capped) => capped,
            Self::Gzip(decoder) => decoder.get_mut(),
        }
    }

    /// Adds a piece; returns whether the cap is reached.
    fn push(&mut self, piece: &[u8]) -> Result<bool, BodyError> {
        let taken = match self {
            Self::Identity(capped) => capped.write_all(piece),
            Self::Gzip(decoder) => decoder.write_all(piece),
        };
        self.is_cut(taken)
    }

    /// Whether the cap is reached; else any other error.
    fn is_cut(&mut self, taken: io::Result<()>) -> Result<bool, BodyError> {
        match taken {
            _ if self.capped().cut => Ok(true),
            Ok(()) => Ok(false),
            Err(error) => Err(BodyError::Encoding(error)),
        }
    }

    fn finish(mut self) -> Result<Body, BodyError> {
        let ended = match &mut self {
            Self::Identity(_) => Ok(()),
            Self::Gzip(decoder) => decoder.try_finish(),
        };
        let cut = self.is_cut(ended)?;
        Ok(Body { bytes: self.bytes(), cut })
    }

    fn bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.capped().bytes)
    }
}

/// Collects what is written up to the cap; writing more is an error.
struct CappedBuffer {
    bytes: Vec<u8>,
    cap: usize,
    cut: bool,
}

impl Write for CappedBuffer {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        let room = self.cap.saturating_sub(self.bytes.len());
        if more.len() > room {
            self.bytes.extend_from_slice(more.get(..room).unwrap_or_default());
            self.cut = true;
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).expect("packs");
        encoder.finish().expect("packs")
    }

    fn unpacked(pieces: &[&[u8]], coding: ContentCoding, cap: usize) -> Result<Body, BodyError> {
        let mut unpacking = Decompressor::new(coding, cap);
        for piece in pieces {
            if unpacking.push(piece)? {
                return Ok(Body { bytes: unpacking.bytes(), cut: true });
            }
        }
        unpacking.finish()
    }

    #[test]
    fn what_comes_out_counts_against_the_cap() {
        let bomb = packed(&vec![b' '; 64 << 20]);
        assert!(bomb.len() < 100 << 10);
        let out = unpacked(&[&bomb], ContentCoding::Gzip, 1_000).expect("as far as the cap");
        assert_eq!((out.bytes.len(), out.cut), (1_000, true));
        let mut unpacking = Decompressor::new(ContentCoding::Gzip, 1_000);
        assert!(unpacking.push(&bomb).expect("stops"));
        assert!(unpacking.capped().bytes.capacity() < 100_000, "nothing past the cap is kept");
    }

    #[test]
    fn every_split_of_a_packed_body_unpacks_alike() {
        let text = b"two members, one after the other".as_slice();
        let both = [packed(text.split_at(9).0), packed(text.split_at(9).1)].concat();
        for at in 0..=both.len() {
            let (a, b) = both.split_at(at);
            let out = unpacked(&[a, b], ContentCoding::Gzip, text.len()).expect("whole");
            assert_eq!(out, Body { bytes: text.to_vec(), cut: false }, "at {at}");
        }
        let plain = unpacked(&[text], ContentCoding::Identity, text.len() - 1).expect("cut");
        assert!(plain.cut && plain.bytes.len() == text.len() - 1);
    }

    #[test]
    fn what_is_not_packed_as_it_says_is_told() {
        let whole = packed(b"cut off in the middle");
        for bytes in [&whole[..whole.len() / 2], b"<html>no gzip at all</html>"] {
            let out = unpacked(&[bytes], ContentCoding::Gzip, 1_000);
            assert!(matches!(out, Err(BodyError::Encoding(_))), "{out:?}");
        }
    }
}
