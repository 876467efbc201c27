//! Text as HTML or XML: what would end its element is escaped, control characters are made visible.

use crate::base::visible::{visible, visible_lines};

/// The text of an element, in which line breaks stay.
pub(super) fn lines(text: &str) -> String {
    escaped(&visible_lines(text))
}

/// The text of an element on one line.
pub(crate) fn line(text: &str) -> String {
    escaped(&visible(text))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}
