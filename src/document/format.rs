//! Which formats of documents are read, and how they are recognised.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_is_read_without_its_parameters() {
        let html = DocumentFormat::from_media_type("Text/HTML; charset=utf-8");
        assert_eq!(html, Some(DocumentFormat::Html));
        assert_eq!(DocumentFormat::from_media_type("image/png"), None);
    }
}
