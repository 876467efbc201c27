//! Splits a text into sentences, for the rules that quote and compare. Pure. (Words are compared by
//! the same stems as in the folder index.)

use unicode_segmentation::UnicodeSegmentation;

/// The sentences of a text, paragraph by paragraph, trimmed. A line break inside a paragraph does
/// not end a sentence.
pub fn sentences(text: &str) -> impl Iterator<Item = String> + '_ {
    paragraphs(text).flat_map(|paragraph| {
        let bounds: Vec<String> = paragraph
            .split_sentence_bounds()
            .map(|sentence| sentence.trim().to_owned())
            .filter(|sentence| !sentence.is_empty())
            .collect();
        bounds
    })
}

/// The paragraphs of a text: separated by blank lines, their white space folded.
fn paragraphs(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut lines = text.lines();
    let mut done = false;
    std::iter::from_fn(move || {
        let mut paragraph = String::new();
        while !done {
            let Some(line) = lines.next() else {
                done = true;
                break;
            };
            let mut words = line.split_whitespace().peekable();
            if words.peek().is_none() {
                if paragraph.is_empty() {
                    continue;
                }
                break;
            }
            for word in words {
                if !paragraph.is_empty() {
                    paragraph.push(' ');
                }
                paragraph.push_str(word);
            }
        }
        (!paragraph.is_empty()).then_some(paragraph)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_people_see_them_end() {
        let text =
            "Uptime is 99.95%. For P1, target\nis 15 minutes.\n\n\nNo. 5 is next, e.g. here!";
        let all: Vec<String> = sentences(text).collect();
        let expected =
            ["Uptime is 99.95%.", "For P1, target is 15 minutes.", "No. 5 is next, e.g. here!"];
        assert_eq!(all, expected);
    }
}
