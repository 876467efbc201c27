//! Extracts the visible text of a document, with its title and date. Used for files of a folder and
//! for pages of the web.
//!
//! A document is untrusted data. What a reader cannot see in it is left out of the text, because
//! hidden elements and invisible characters are where prompt injections are placed.

mod charset;
mod crowded_tag;
mod extracted;
mod flow;
mod format;
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

pub use extracted::{ExtractedDocument, Unreadable};
pub use format::DocumentFormat;

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
