//! Extracts the visible text of a document, with its title and date. Used for files of a folder and
//! for pages of the web.
//!
//! A document is untrusted data. What a reader cannot see in it is left out of the text, because
//! hidden elements and invisible characters are where prompt injections are placed.

mod charset;
mod flow;
mod front_matter;
mod hidden;
mod html;
mod markdown;
mod markdown_limits;
mod pdf;
mod pdf_budget;
mod plain;
mod style;
mod tree;

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

/// Format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentFormat {
    /// HTML, and XHTML parsed like HTML.
    Html,
    /// Markdown.
    Markdown,
    /// Plain text.
    Plain,
    /// PDF.
    Pdf,
}

impl DocumentFormat {
    /// The format of a media type such as `text/html; charset=utf-8`; `None` if it is not
    /// supported. JSON counts as plain text: status pages use it, and quotes can be found in it.
    ///
    /// ```
    /// use roundtable::document::DocumentFormat;
    /// let html = DocumentFormat::from_media_type("Text/HTML; charset=utf-8");
    /// assert_eq!(html, Some(DocumentFormat::Html));
    /// assert_eq!(DocumentFormat::from_media_type("image/png"), None);
    /// ```
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

/// Extracts a document. `charset` is the sender's claim (`charset=` of the media type), which may
/// be wrong.
///
/// Never panics, and does not recurse, whatever the bytes are. Its processor time grows with the
/// input, so async callers use a blocking thread.
///
/// # Errors
/// Why there is no text.
pub fn read(
    format: DocumentFormat,
    bytes: &[u8],
    charset: Option<&str>,
) -> Result<ExtractedDocument, Unreadable> {
    read_while(format, bytes, charset, &|| true)
}

/// Like [`read`], but stops when `wanted` returns false, which long extractions check. A stopped
/// extraction returns [`Unreadable::Broken`], which then says nothing about the document.
///
/// # Errors
/// Same as [`read`].
pub fn read_while(
    format: DocumentFormat,
    bytes: &[u8],
    charset: Option<&str>,
    wanted: &dyn Fn() -> bool,
) -> Result<ExtractedDocument, Unreadable> {
    let document = match format {
        DocumentFormat::Html => {
            html::read(&charset::decode(bytes, charset, charset::declared_in_html(bytes))?)?
        }
        DocumentFormat::Markdown => markdown::read(&charset::decode(bytes, charset, None)?)?,
        DocumentFormat::Plain => plain::read(&charset::decode(bytes, charset, None)?),
        DocumentFormat::Pdf => pdf::read(bytes, wanted)?,
    };
    if document.text.is_empty() { Err(Unreadable::Empty) } else { Ok(document) }
}
