//! Documents as text: what a person sees of a page or file, with its title and its day. The same for
//! files of a folder and for pages of the web.
//!
//! What a document holds is data that anybody may have written. What cannot be seen in it is not in
//! the text: hidden elements and invisible characters are where orders to a model are put.

mod charset;
pub mod day;
mod effort;
mod flow;
mod front_matter;
mod hidden;
mod html;
mod markdown;
mod marks;
mod pdf;
mod plain;
mod style;
mod tree;

/// A document as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its title, one line; empty where it has none.
    pub title: String,
    /// The day on which it says that it was published, as `YYYY-MM-DD`; empty where it says none.
    pub published_at: String,
    /// What it says; a blank line stands between paragraphs.
    pub text: String,
}

/// What a document is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// HTML, and XHTML as browsers of old read it.
    Html,
    /// Markdown.
    Markdown,
    /// Text as it is.
    Plain,
    /// PDF.
    Pdf,
}

impl Format {
    /// The format of a media type such as `text/html; charset=utf-8`; `None` where it is not read.
    /// JSON is read as the text that it is: status pages speak it, and a quote is found in it.
    ///
    /// ```
    /// use roundtable::tool::document::Format;
    /// assert_eq!(Format::of_media_type("Text/HTML; charset=utf-8"), Some(Format::Html));
    /// assert_eq!(Format::of_media_type("image/png"), None);
    /// ```
    pub fn of_media_type(media_type: &str) -> Option<Self> {
        let bare = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        Some(match bare.as_str() {
            "text/html" | "application/xhtml+xml" => Self::Html,
            "text/markdown" | "text/x-markdown" => Self::Markdown,
            "text/plain" | "application/json" => Self::Plain,
            "application/pdf" => Self::Pdf,
            _ => return None,
        })
    }

    /// The format of a file by the end of its name, without the dot; `None` where it is not read.
    pub fn of_extension(extension: &str) -> Option<Self> {
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
    /// There is no text in it.
    #[error("there is no text in it")]
    Empty,
    /// Its bytes are no text in any charset that it may be in.
    #[error("its bytes are no text in its charset")]
    Charset,
    /// Its parser refuses it.
    #[error("{0}")]
    Broken(String),
}

/// Reads a document. `charset` is what whoever sent it says of it (`charset=` of its media type);
/// nothing depends on its being right.
///
/// It never panics and recurses nowhere, whatever the bytes are; it takes processor time in
/// proportion to them, so a caller that must not wait reads on another thread.
///
/// # Errors
/// Why there is no text to be had.
pub fn read(format: Format, bytes: &[u8], charset: Option<&str>) -> Result<Document, Unreadable> {
    read_while(format, bytes, charset, &|| true)
}

/// As [`read`], as long as it is wanted: what may take long asks on its way. What is given up is
/// [`Unreadable::Broken`], which says nothing of the document then.
///
/// # Errors
/// As [`read`].
pub fn read_while(
    format: Format,
    bytes: &[u8],
    charset: Option<&str>,
    wanted: &dyn Fn() -> bool,
) -> Result<Document, Unreadable> {
    let document = match format {
        Format::Html => html::read(&charset::decode(bytes, charset, charset::in_html(bytes))?)?,
        Format::Markdown => markdown::read(&charset::decode(bytes, charset, None)?)?,
        Format::Plain => plain::read(&charset::decode(bytes, charset, None)?),
        Format::Pdf => pdf::read(bytes, wanted)?,
    };
    if document.text.is_empty() { Err(Unreadable::Empty) } else { Ok(document) }
}
