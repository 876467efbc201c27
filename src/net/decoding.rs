//! Decompresses bodies: pages are requested compressed, and some servers and proxies compress without
//! a request for it.

use std::io::{ErrorKind, Write};
use std::{fmt, io};

use brotli_decompressor::DecompressorWriter;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use hyper::body::Bytes;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use ruzstd::decoding::FrameDecoder;

use crate::base::visible::visible_within;

/// Most bytes that are decompressed at once: they may become thousands of times as many, and only then can a
/// reader's size limit stop them.
const PIECE: usize = 1 << 10;

/// Decompresses one body.
pub(crate) struct BodyDecoder {
    coding: Coding,
    /// What is not decompressed yet.
    rest: Bytes,
    /// Whether a part of the body has arrived: a header may name an encoding for an empty body too.
    begun: bool,
    ended: bool,
}

enum Coding {
    Known(Box<dyn Decompressor>),
    /// `deflate`, before its first byte tells which of its two forms it has.
    Deflate,
    /// An encoding that is not supported.
    Other(String),
}

/// A decompressor that writes into memory.
trait Decompressor: Write + Send + Sync {
    /// What was decompressed since the last call.
    fn output(&mut self) -> Vec<u8>;

    fn end(&mut self) -> io::Result<()>;
}

macro_rules! decompressor {
    ($($kind:ident),*) => {$(
        impl Decompressor for $kind<Vec<u8>> {
            fn output(&mut self) -> Vec<u8> {
                std::mem::take(self.get_mut())
            }

            fn end(&mut self) -> io::Result<()> {
                self.try_finish()
            }
        }
    )*};
}
decompressor!(MultiGzDecoder, ZlibDecoder, DeflateDecoder);

impl Decompressor for DecompressorWriter<Vec<u8>> {
    fn output(&mut self) -> Vec<u8> {
        std::mem::take(self.get_mut())
    }

    fn end(&mut self) -> io::Result<()> {
        self.close()
    }
}

/// Buffer of the decoder for Brotli, in bytes.
const BROTLI_BUFFER: usize = 4 << 10;

/// Longest header of a frame of Zstandard, in bytes.
const ZSTD_HEADER: usize = 18;

/// Decompresses Zstandard, block by block.
struct ZstdDecoder {
    frame: FrameDecoder,
    /// The beginning of a block.
    rest: Vec<u8>,
    output: Vec<u8>,
    /// Whether the header of the frame is read.
    is_begun: bool,
}

impl ZstdDecoder {
    fn new() -> Self {
        Self { frame: FrameDecoder::new(), rest: Vec::new(), output: Vec::new(), is_begun: false }
    }

    /// Decompresses the blocks that are complete.
    fn decode(&mut self) -> io::Result<()> {
        self.is_begun = true;
        let mut target = vec![0; 64 << 10];
        let (mut read, mut source) = (0, self.rest.as_slice());
        loop {
            let decoded = self.frame.decode_from_to(source, &mut target);
            let (taken, written) = decoded.map_err(io::Error::other)?;
            self.output.extend_from_slice(target.get(..written).unwrap_or_default());
            read += taken;
            source = source.get(taken..).unwrap_or_default();
            if taken == 0 && written == 0 {
                break;
            }
        }
        self.rest.drain(..read);
        Ok(())
    }
}

impl Write for ZstdDecoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        if self.is_begun || self.rest.len() >= ZSTD_HEADER {
            self.decode()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decompressor for ZstdDecoder {
    fn output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    fn end(&mut self) -> io::Result<()> {
        if !self.rest.is_empty() {
            self.decode()?;
        }
        match self.frame.is_finished() {
            true => Ok(()),
            false => Err(ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl fmt::Debug for BodyDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyDecoder").finish_non_exhaustive()
    }
}

impl BodyDecoder {
    /// The decoder for a body with these headers; `None` if it is not compressed.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(CONTENT_ENCODING)?;
        Self::named(&String::from_utf8_lossy(value.as_bytes()))
    }

    /// The decoder for this encoding; `None` if it is none.
    pub(crate) fn named(encoding: &str) -> Option<Self> {
        let name = encoding.trim().to_ascii_lowercase();
        let coding = match &*name {
            "" | "identity" => return None,
            "gzip" | "x-gzip" => Coding::Known(Box::new(MultiGzDecoder::new(Vec::new()))),
            "deflate" => Coding::Deflate,
            "br" => Coding::Known(Box::new(DecompressorWriter::new(Vec::new(), BROTLI_BUFFER))),
            "zstd" => Coding::Known(Box::new(ZstdDecoder::new())),
            other => Coding::Other(visible_within(other, 40)),
        };
        Some(Self { coding, rest: Bytes::new(), begun: false, ended: false })
    }

    pub(super) fn is_supported(&self) -> bool {
        !matches!(self.coding, Coding::Other(_))
    }

    /// Adds the next piece of the body.
    pub(crate) fn push(&mut self, piece: Bytes) {
        self.begun |= !piece.is_empty();
        self.rest = piece;
    }

    /// More of the decompressed body; `None` if the next piece is needed.
    pub(crate) fn next(&mut self) -> io::Result<Option<Bytes>> {
        while !self.rest.is_empty() {
            let piece = self.rest.split_to(self.rest.len().min(PIECE));
            let bytes = self.decompress(&piece)?;
            if !bytes.is_empty() {
                return Ok(Some(bytes.into()));
            }
        }
        Ok(None)
    }

    /// The end of the decompressed body, once the body has ended.
    pub(crate) fn finish(&mut self) -> io::Result<Option<Bytes>> {
        if std::mem::replace(&mut self.ended, true) || !self.begun {
            return Ok(None);
        }
        let Coding::Known(decompressor) = &mut self.coding else { return Ok(None) };
        decompressor.end()?;
        let bytes = decompressor.output();
        Ok((!bytes.is_empty()).then(|| bytes.into()))
    }

    fn decompress(&mut self, piece: &[u8]) -> io::Result<Vec<u8>> {
        if let (Coding::Deflate, Some(first)) = (&self.coding, piece.first()) {
            // The standard's form has a header; some servers leave it out.
            self.coding = Coding::Known(match first & 0x0f == 8 {
                true => Box::new(ZlibDecoder::new(Vec::new())),
                false => Box::new(DeflateDecoder::new(Vec::new())),
            });
        }
        match &mut self.coding {
            Coding::Known(decompressor) => {
                decompressor.write_all(piece)?;
                // So that each event of a stream is read as soon as it arrives.
                decompressor.flush()?;
                Ok(decompressor.output())
            }
            Coding::Deflate => Ok(Vec::new()),
            Coding::Other(name) => {
                let why = format!("{name} is not supported, only gzip, deflate, br and zstd are");
                Err(io::Error::new(ErrorKind::Unsupported, why))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use reqwest::header::HeaderValue;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    fn deflate(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    /// The text of `decodes_every_split_alike`, by the compressor of Node.
    const BROTLI: [u8; 29] = [
        27, 31, 0, 248, 141, 148, 174, 198, 82, 249, 86, 70, 87, 110, 119, 121, 200, 38, 157, 100,
        41, 231, 228, 244, 77, 16, 81, 63, 2,
    ];

    fn decoder(encoding: &'static str) -> Option<BodyDecoder> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
        BodyDecoder::of(&headers)
    }

    /// The body in these pieces, and the length of the longest part of it at once.
    fn decoded(encoding: &'static str, pieces: &[&[u8]]) -> io::Result<(Vec<u8>, usize)> {
        let mut decoder = decoder(encoding).expect("compressed");
        let (mut body, mut longest) = (Vec::new(), 0);
        let mut add = |bytes: Bytes| {
            longest = longest.max(bytes.len());
            body.extend_from_slice(&bytes);
        };
        for piece in pieces {
            decoder.push(Bytes::copy_from_slice(piece));
            while let Some(bytes) = decoder.next()? {
                add(bytes);
            }
        }
        if let Some(bytes) = decoder.finish()? {
            add(bytes);
        }
        Ok((body, longest))
    }

    #[test]
    fn decodes_every_split_alike() {
        let text = b"two members, one after the other".as_slice();
        let members = [gzip(text.split_at(9).0), gzip(text.split_at(9).1)].concat();
        for (encoding, whole) in [
            ("gzip", members),
            ("X-GZip ", gzip(text)),
            ("deflate", zlib(text)),
            ("deflate", deflate(text)),
            ("zstd", compress_to_vec(text, CompressionLevel::Fastest)),
            ("br", BROTLI.to_vec()),
        ] {
            for at in 0..=whole.len() {
                let (a, b) = whole.split_at(at);
                let (body, _) = decoded(encoding, &[a, b]).expect(encoding);
                assert_eq!(body, text, "{encoding} at {at}");
            }
        }
        assert!(decoder("identity").is_none() && decoder("").is_none());
        assert_eq!(decoded("gzip", &[]).expect("an empty body").0, b"");
    }

    #[test]
    fn small_body_decodes_in_bounded_parts() {
        let bomb = gzip(&vec![b' '; 64 << 20]);
        assert!(bomb.len() < 100 << 10);
        let (body, longest) = decoded("gzip", &[&bomb]).expect("gzip");
        assert_eq!(body.len(), 64 << 20);
        assert!(longest < 8 << 20, "{longest}");
        let bomb = compress_to_vec(&vec![b' '; 64 << 20][..], CompressionLevel::Fastest);
        let (body, longest) = decoded("zstd", &[&bomb]).expect("zstd");
        assert_eq!(body.len(), 64 << 20);
        assert!(longest < 64 << 20, "{longest}");
    }

    #[test]
    fn delivers_each_flushed_part() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let mut decoder = decoder("gzip").expect("compressed");
        for event in ["data: 1\n\n", "data: 2\n\n"] {
            encoder.write_all(event.as_bytes()).expect("memory");
            encoder.flush().expect("memory");
            decoder.push(std::mem::take(encoder.get_mut()).into());
            let mut read = Vec::new();
            while let Some(bytes) = decoder.next().expect("gzip") {
                read.extend_from_slice(&bytes);
            }
            assert_eq!(read, event.as_bytes());
        }
    }

    #[test]
    fn refuses_falsely_labelled_compression() {
        let whole = gzip(b"cut off in the middle");
        let cut = decoded("gzip", &[&whole[..whole.len() / 2]]).expect_err("cut");
        assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
        assert!(decoded("gzip", &[b"<html>no gzip at all</html>"]).is_err());
        let other = decoded("compress", &[b"x"]).expect_err("not supported");
        let why = "compress is not supported, only gzip, deflate, br and zstd are";
        assert_eq!(other.to_string(), why);
    }
}
