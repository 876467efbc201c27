//! Extracts the visible text of a document, with its title and date. Used for files of a folder and
//! for pages of the web.
//!
//! A document is untrusted data. What a reader cannot see in it is left out of the text, because
//! hidden elements and invisible characters are where prompt injections are placed.
//!
//! Bytes are decoded to text here. Declared charsets are often wrong, so the bytes are examined too:
//!
//! 1. A byte order mark decides.
//! 2. Valid UTF-8 with non-ASCII characters *is* UTF-8, even if the label differs: text in another
//!    charset is valid UTF-8 only by accident, and only if it is short. (With NUL bytes it may be
//!    UTF-16, so the label counts.)
//! 3. The label of the HTTP header counts next, then that in the document, if it is known. A UTF-8
//!    label on invalid bytes is ignored if they contain no UTF-8 at all; else the invalid bytes
//!    become U+FFFD.
//! 4. ASCII is ASCII, and everything else is windows-1252, as in browsers.
//!
//! If a tenth of the result is unreadable, it was not text, or has another charset.

mod flow;
mod html;
mod markdown;
mod pdf;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use crate::base::catch_panic;

/// Most bytes of a part of a document when it is unpacked. The callers limit the document itself.
const MAX_BYTES: usize = 8 << 20;

/// Longest time for a document.
const MAX_TIME: Duration = Duration::from_secs(20);

/// How often to check whether the text is still wanted.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Extracts a document. `charset` is the sender's claim (`charset=` of the media type), which may
/// be wrong. Blocks; stops when `wanted` returns false. A stopped extraction returns
/// [`Unreadable::Broken`], which then says nothing about the document.
///
/// # Errors
/// Why there is no text.
pub fn read(
    format: DocumentFormat,
    bytes: Vec<u8>,
    charset: Option<&str>,
    wanted: &dyn Fn() -> bool,
) -> Result<ExtractedDocument, Unreadable> {
    let charset = charset.map(str::to_owned);
    within(MAX_TIME, wanted, move |goes_on| extract(format, &bytes, charset.as_deref(), goes_on))
}

/// Does the work on a thread of its own, for at most this time. Parsers may not stop at once, and may
/// panic: the thread then ends later.
fn within<T: Send + 'static>(
    time: Duration,
    wanted: &dyn Fn() -> bool,
    work: impl FnOnce(&dyn Fn() -> bool) -> Result<T, Unreadable> + Send + 'static,
) -> Result<T, Unreadable> {
    let broken = |why: &str| Err(Unreadable::Broken(why.to_owned()));
    let stopped = Arc::new(AtomicBool::new(false));
    let (result, results) = sync_channel(1);
    let is_stopped = Arc::clone(&stopped);
    thread::spawn(move || {
        let done = catch_panic::catch_panic(|| work(&|| !is_stopped.load(Ordering::Relaxed)));
        let _ = result.send(done.unwrap_or_else(|panic| Err(Unreadable::Broken(panic))));
    });
    for _ in 0..time.as_millis().div_ceil(CHECK_INTERVAL.as_millis()) {
        match results.recv_timeout(CHECK_INTERVAL) {
            Ok(done) => return done,
            Err(RecvTimeoutError::Disconnected) => return broken("its reader has ended"),
            Err(RecvTimeoutError::Timeout) if wanted() => {}
            Err(RecvTimeoutError::Timeout) => break,
        }
    }
    stopped.store(true, Ordering::Relaxed);
    broken("reading it takes too long")
}

fn extract(
    format: DocumentFormat,
    bytes: &[u8],
    charset: Option<&str>,
    wanted: &dyn Fn() -> bool,
) -> Result<ExtractedDocument, Unreadable> {
    let document = match format {
        DocumentFormat::Html => {
            html::read(&decode_text(bytes, charset, declared_in_html(bytes))?, wanted)?
        }
        DocumentFormat::Markdown => markdown::read(&decode_text(bytes, charset, None)?),
        DocumentFormat::Plain => flow::read_plain(&decode_text(bytes, charset, None)?),
        DocumentFormat::Pdf => pdf::read(bytes, wanted)?,
    };
    if document.text.is_empty() { Err(Unreadable::Empty) } else { Ok(document) }
}

/// The text of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractedDocument {
    /// Title in one line; empty if there is none.
    pub title: String,
    /// Publication date that the document states, as `YYYY-MM-DD`; empty if it states none.
    pub published_at: String,
    /// Visible text; paragraphs are separated by a blank line.
    pub text: String,
}

/// Why a document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It contains no text.
    #[error("it contains no text")]
    Empty,
    /// Its bytes cannot be decoded in any plausible charset.
    #[error("its bytes are not valid text in its charset")]
    Charset,
    /// The parser's error.
    #[error("{0}")]
    Broken(String),
}

/// Format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentFormat {
    /// HTML, and XHTML parsed like HTML.
    Html,
    Markdown,
    Plain,
    Pdf,
}

impl DocumentFormat {
    /// The format of a media type such as `text/html; charset=utf-8`; `None` if it is not
    /// supported. JSON counts as plain text: status pages use it, and quotes can be found in it.
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        let bare = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        Some(match bare.as_str() {
            "text/html" | "application/xhtml+xml" => Self::Html,
            "text/markdown" | "text/x-markdown" => Self::Markdown,
            "text/plain" | "application/json" => Self::Plain,
            "application/pdf" => Self::Pdf,
            _ => return None,
        })
    }

    /// The format of a file by its extension, without the dot; `None` if it is not supported.
    pub fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension.to_ascii_lowercase().as_str() {
            "html" | "htm" | "xhtml" => Self::Html,
            "md" | "markdown" => Self::Markdown,
            "txt" => Self::Plain,
            "pdf" => Self::Pdf,
            _ => return None,
        })
    }
}

/// Bytes that are searched for a label in the document; the standard says 1024.
const LABEL_BYTES: usize = 4 << 10;

/// Decodes bytes; `head` and `within` are the labels of the header and of the document.
fn decode_text<'b>(
    bytes: &'b [u8],
    head: Option<&str>,
    within: Option<&'static Encoding>,
) -> Result<Cow<'b, str>, Unreadable> {
    let (encoding, skip) = match Encoding::for_bom(bytes) {
        Some(marked) => marked,
        None => (guess_encoding(bytes, head, within), 0),
    };
    let (text, _) = encoding.decode_without_bom_handling(bytes.get(skip..).unwrap_or_default());
    if is_garbage(&text) { Err(Unreadable::Charset) } else { Ok(text) }
}

fn guess_encoding(
    bytes: &[u8],
    head: Option<&str>,
    within: Option<&'static Encoding>,
) -> &'static Encoding {
    let valid = std::str::from_utf8(bytes).is_ok();
    if valid && !bytes.is_ascii() && !bytes.contains(&0) {
        return UTF_8;
    }
    let head = head.and_then(|label| Encoding::for_label(label.trim_matches(QUOTES).as_bytes()));
    let fits = |encoding: &&'static Encoding| *encoding != UTF_8 || valid || has_utf8(bytes);
    let last = if valid { UTF_8 } else { WINDOWS_1252 };
    [head, within].into_iter().flatten().find(fits).unwrap_or(last)
}

const QUOTES: [char; 3] = ['"', '\'', ' '];

/// Whether most of the non-ASCII parts of these bytes are valid UTF-8.
fn has_utf8(bytes: &[u8]) -> bool {
    let (mut good, mut bad) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        good += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        bad += usize::from(!chunk.invalid().is_empty());
    }
    good > bad
}

fn is_garbage(text: &str) -> bool {
    let (mut all, mut bad) = (0_usize, 0_usize);
    for c in text.chars() {
        all += 1;
        let control = c.is_ascii_control() && !c.is_ascii_whitespace();
        bad += usize::from(control || c == char::REPLACEMENT_CHARACTER);
    }
    bad > 0 && bad * 10 >= all
}

/// The charset that an HTML or XML document declares. UTF-16 cannot be correct, because the label
/// would not have been found.
fn declared_in_html(bytes: &[u8]) -> Option<&'static Encoding> {
    let bytes = bytes.get(..LABEL_BYTES).unwrap_or(bytes).to_ascii_lowercase();
    let text = String::from_utf8_lossy(&bytes);
    let text = without_comments(&text);
    let declared = text.trim_start().strip_prefix("<?xml").and_then(|rest| {
        let (declaration, _) = rest.split_once("?>")?;
        attribute_value(declaration, "encoding")
    });
    let meta = || {
        text.split("<meta").skip(1).find_map(|after| {
            let tag = after.split('>').next()?;
            attribute_value(tag, "charset").and_then(|label| Encoding::for_label(label.as_bytes()))
        })
    };
    let found = declared.and_then(|label| Encoding::for_label(label.as_bytes())).or_else(meta)?;
    Some(if found.is_ascii_compatible() { found } else { UTF_8 })
}

fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!--") {
        out.push_str(before);
        rest = after.split_once("-->").map_or("", |(_, after)| after);
    }
    out + rest
}

/// Finds `charset=utf-8` in `content="text/html; charset=utf-8"`, or `charset="utf-8"`.
fn attribute_value<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let mut rest = tag;
    while let Some((_, after)) = rest.split_once(name) {
        if let Some(value) = after.trim_start().strip_prefix('=') {
            let value = value.trim_start().trim_start_matches(['"', '\'']);
            let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '/' | '>');
            return value.split(ends).next();
        }
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_limited_in_time() {
        let endless = |_: &dyn Fn() -> bool| {
            thread::sleep(Duration::from_millis(200));
            Ok(())
        };
        let why = "reading it takes too long".to_owned();
        assert_eq!(within(Duration::ZERO, &|| true, endless), Err(Unreadable::Broken(why)));
    }

    #[test]
    fn unwanted_work_is_stopped() {
        let (ended, has_ended) = sync_channel(1);
        let work = move |wanted: &dyn Fn() -> bool| {
            while wanted() {
                thread::yield_now();
            }
            ended.send(()).map_err(|_| Unreadable::Empty)
        };
        assert!(within(MAX_TIME, &|| false, work).is_err());
        assert!(has_ended.recv_timeout(MAX_TIME).is_ok());
        let panics = |_: &dyn Fn() -> bool| -> Result<(), _> { panic!("a bug in a parser") };
        assert!(matches!(within(MAX_TIME, &|| true, panics), Err(Unreadable::Broken(_))));
    }

    #[test]
    fn media_type_ignores_parameters() {
        let html = DocumentFormat::from_media_type("Text/HTML; charset=utf-8");
        assert_eq!(html, Some(DocumentFormat::Html));
        assert_eq!(DocumentFormat::from_media_type("image/png"), None);
    }

    fn decoded(bytes: &[u8], head: Option<&str>) -> Result<String, Unreadable> {
        decode_text(bytes, head, declared_in_html(bytes)).map(Cow::into_owned)
    }

    #[test]
    fn which_charset_is_taken() {
        let table: &[(&[u8], Option<&str>, &str)] = &[
            // A byte order mark decides.
            (b"\xef\xbb\xbfgr\xc3\xbcn", Some("windows-1252"), "grün"),
            (b"\xff\xfeg\0r\0\xfc\0n\0", Some("utf-8"), "grün"),
            (b"\xfe\xff\0g\0r\0\xfc\0n", None, "grün"),
            // Clearly UTF-8, even if the label says otherwise.
            ("Gebühr: 5 €".as_bytes(), Some("iso-8859-1"), "Gebühr: 5 €"),
            ("Gebühr: 5 €".as_bytes(), Some("shift_jis"), "Gebühr: 5 €"),
            ("<meta charset=latin1>grün".as_bytes(), None, "<meta charset=latin1>grün"),
            // The label of the header.
            (b"gr\xfcn", Some("iso-8859-1"), "grün"),
            (b"\xcf\xf0\xe8\xe2\xe5\xf2", Some("windows-1251"), "Привет"),
            (b"\x82\xb1\x82\xf1", Some("Shift_JIS"), "こん"),
            (b"g\0r\0u\0n\0", Some("utf-16le"), "grun"),
            (b"\x1b$B$3\x1b(B", Some("iso-2022-jp"), "こ"),
            // The label in the document, if that of the header is unknown.
            (b"<meta charset=\"windows-1251\">\xcf", None, "<meta charset=\"windows-1251\">П"),
            (b"<meta charset=koi8-r>\xf0", Some("no-such"), "<meta charset=koi8-r>П"),
            // A label that does not match the bytes.
            (b"caf\xe9", Some("utf-8"), "café"),
            (b"<meta charset=windows-1251>\xcf", Some("utf-8"), "<meta charset=windows-1251>П"),
            (
                b"gr\xc3\xbcne \xc3\x84pfel und ein \xff",
                Some("utf-8"),
                "grüne Äpfel und ein \u{fffd}",
            ),
            // No label.
            (b"caf\xe9 \x80", None, "café €"),
            (b"plain", Some("no such thing"), "plain"),
            (b"plain", Some("\"utf-8\""), "plain"),
        ];
        for (bytes, head, text) in table {
            assert_eq!(decoded(bytes, *head).as_deref(), Ok(*text), "{head:?}");
        }
    }

    #[test]
    fn what_is_no_text_is_told() {
        let pixels: Vec<u8> = (0..=255).cycle().take(4_096).collect();
        assert_eq!(decoded(&pixels, None), Err(Unreadable::Charset));
        assert_eq!(decoded(b"g\0r\0u\0n\0", None), Err(Unreadable::Charset), "UTF-16, unsaid");
        assert_eq!(decoded(b"whatever", Some("iso-2022-kr")), Err(Unreadable::Charset));
    }

    #[test]
    fn labels_within_are_found() {
        for (bytes, name) in [
            ("<meta http-equiv=x content='text/html; charset=KOI8-R'>", Some("KOI8-R")),
            ("<META CharSet = Big5 />", Some("Big5")),
            ("<?xml version='1.0' encoding='ISO-8859-2'?><html>", Some("ISO-8859-2")),
            ("<!-- <meta charset=big5> --><meta charset=euc-kr>", Some("EUC-KR")),
            ("<!-- <meta charset=big5>", None),
            ("<meta charset=utf-16>", Some("UTF-8")),
            ("<meta name=charset content=x><meta charset=gbk>", Some("GBK")),
            ("<meta charset=none-such>", None),
            ("charset=big5", None),
        ] {
            assert_eq!(declared_in_html(bytes.as_bytes()).map(Encoding::name), name, "{bytes}");
        }
    }
}
