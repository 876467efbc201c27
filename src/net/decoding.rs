//! Decompresses bodies: pages are requested compressed, and some servers and proxies compress without
//! a request for it.

use std::io::{ErrorKind, Write};
use std::{fmt, io};

use brotli_decompressor::DecompressorWriter;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use hyper::body::Bytes;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use zstd::stream::raw::{self, Operation as _};

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
    /// The bytes that were decompressed since the last call.
    fn output(&mut self) -> Vec<u8>;

    fn end(&mut self) -> io::Result<()>;
}

/// Most bytes that one piece may become. A body that exceeds it is an attack.
const MAX_OUTPUT: usize = 8 << 20;

/// The memory that a decompressor writes into.
#[derive(Default)]
struct Output(Vec<u8>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT {
            return Err(io::Error::other("it becomes too large"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

macro_rules! decompressor {
    ($($kind:ident, $end:ident);*) => {$(
        impl Decompressor for $kind<Output> {
            fn output(&mut self) -> Vec<u8> {
                std::mem::take(&mut self.get_mut().0)
            }

            fn end(&mut self) -> io::Result<()> {
                self.$end()
            }
        }
    )*};
}
decompressor!(
    MultiGzDecoder, try_finish; ZlibDecoder, try_finish; DeflateDecoder, try_finish;
    DecompressorWriter, close
);

/// Buffer of the decoder for Brotli, in bytes.
const BROTLI_BUFFER: usize = 4 << 10;

/// The largest window of Zstandard, as a power of 2: what RFC 8878 asks of a decoder.
const ZSTD_WINDOW: u32 = 23;

/// Decompresses the frames of Zstandard.
struct ZstdDecoder {
    frames: raw::Decoder<'static>,
    buffer: Box<[u8]>,
    output: Output,
    is_complete: bool,
}

impl ZstdDecoder {
    fn new() -> io::Result<Self> {
        let mut frames = raw::Decoder::new()?;
        frames.set_parameter(raw::DParameter::WindowLogMax(ZSTD_WINDOW))?;
        let buffer = vec![0; 16 << 10].into_boxed_slice();
        Ok(Self { frames, buffer, output: Output::default(), is_complete: false })
    }
}

impl Write for ZstdDecoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut input = raw::InBuffer::around(bytes);
        loop {
            let mut target = raw::OutBuffer::around(&mut self.buffer[..]);
            let hint = self.frames.run(&mut input, &mut target)?;
            self.is_complete = hint == 0;
            let is_full = target.pos() == target.capacity();
            self.output.write_all(target.as_slice())?;
            if input.pos() == bytes.len() && (self.is_complete || !is_full) {
                return Ok(bytes.len());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decompressor for ZstdDecoder {
    fn output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output.0)
    }

    fn end(&mut self) -> io::Result<()> {
        match self.is_complete {
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
            "gzip" | "x-gzip" => Coding::Known(Box::new(MultiGzDecoder::new(Output::default()))),
            "deflate" => Coding::Deflate,
            "br" => {
                Coding::Known(Box::new(DecompressorWriter::new(Output::default(), BROTLI_BUFFER)))
            }
            "zstd" if let Ok(decoder) = ZstdDecoder::new() => Coding::Known(Box::new(decoder)),
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
                true => Box::new(ZlibDecoder::new(Output::default())),
                false => Box::new(DeflateDecoder::new(Output::default())),
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

    /// With a checksum, as command lines and servers write it.
    fn zstd(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).expect("memory");
        encoder.include_checksum(true).expect("memory");
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    /// 64 MiB of spaces, by the compressor of Node.
    const BROTLI_BOMB: [u8; 106] = [
        203, 255, 255, 63, 248, 37, 64, 226, 177, 64, 32, 247, 254, 143, 255, 255, 127, 240, 75, 0,
        196, 97, 17, 128, 238, 253, 31, 255, 255, 255, 224, 151, 0, 136, 195, 2, 0, 221, 251, 63,
        254, 255, 255, 193, 47, 1, 16, 135, 5, 0, 186, 247, 127, 252, 255, 255, 131, 95, 2, 32, 14,
        11, 0, 116, 239, 255, 248, 255, 255, 7, 191, 4, 64, 28, 22, 0, 232, 222, 255, 241, 255,
        255, 15, 126, 9, 128, 56, 44, 0, 208, 189, 255, 203, 255, 255, 63, 252, 18, 0, 113, 88, 0,
        160, 123, 255, 7,
    ];

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
            ("zstd", zstd(text)),
            ("zstd", [zstd(text.split_at(9).0), zstd(text.split_at(9).1)].concat()),
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
        // These become larger than any reply.
        for (encoding, bomb) in
            [("zstd", zstd(&vec![b' '; 64 << 20])), ("br", BROTLI_BOMB.to_vec())]
        {
            let failed = decoded(encoding, &[&bomb]).expect_err(encoding);
            assert_eq!(failed.to_string(), "it becomes too large", "{encoding}");
        }
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
        let whole = zstd(b"cut off in the middle");
        let cut = decoded("zstd", &[&whole[..whole.len() - 2]]).expect_err("cut");
        assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
        assert!(decoded("gzip", &[b"<html>no gzip at all</html>"]).is_err());
        let other = decoded("compress", &[b"x"]).expect_err("not supported");
        let why = "compress is not supported, only gzip, deflate, br and zstd are";
        assert_eq!(other.to_string(), why);
    }
}
