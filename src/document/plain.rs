//! Plain text: lines are kept.

use super::extracted::ExtractedDocument;
use super::flow::Flow;

/// Most characters of a first line that counts as a title.
const TITLE_CHARS: usize = 120;

/// Reads a plain text. A short first line followed by a blank line is the title; there is no date.
pub(super) fn read(text: &str) -> ExtractedDocument {
    let mut flow = Flow::default();
    flow.push_lines(text);
    let text = flow.finish();
    let first = text.split_once("\n\n").map_or("", |(first, _)| first);
    let alone = !first.contains('\n') && first.chars().count() <= TITLE_CHARS;
    let title = if alone { first.to_owned() } else { String::new() };
    ExtractedDocument { title, published_at: String::new(), text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_first_line_that_stands_alone_is_the_title() {
        for (text, title) in [
            ("Runbook\n\nStop the queue.\n", "Runbook"),
            ("\r\nRunbook\r\n\r\nStop it.", "Runbook"),
            ("Stop the queue.\nThen wait.\n\nEnd.", ""),
            ("Stop the queue.", ""),
        ] {
            assert_eq!(read(text).title, title, "{text:?}");
        }
        assert_eq!(read("a \r\n b\r\n\r\n\r\nc").text, "a\n b\n\nc");
    }
}
