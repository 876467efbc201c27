//! A text on one line, cut around the words that somebody looks for.

use std::ops::Range;

use super::measure::{clusters, columns};
use crate::base::visible::visible;
use crate::base::word_query::WordQuery;

/// The part of a text that is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// The part on one line; `…` is where the rest was cut off.
    pub text: String,
    /// Where it has the words, in bytes; in order and without overlaps.
    pub places: Vec<Range<usize>>,
}

/// Cuts a text to `width` columns around the first of these words.
pub fn excerpt(text: &str, query: &WordQuery, width: usize) -> Excerpt {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&visible(word));
    }
    let start = query.places_in(&line).first().map_or(0, |place| place.start);
    let (before, after) = line.split_at(start);
    // A third of the width is for what precedes, more if what follows is short.
    let follows = columns_within(after, width);
    let room = (width / 3).max(width.saturating_sub(follows));
    let before = end_within(before, room);
    let mut text = format!("{before}{after}");
    if columns_within(&text, width + 1) > width {
        let mut used = 0;
        let fits = clusters(&text).take_while(|(_, columns)| {
            used += usize::from(*columns);
            used < width
        });
        let cut: String = fits.map(|(cluster, _)| cluster).collect();
        text = cut + "…";
    }
    let places = query.places_in(&text);
    Excerpt { text, places }
}

/// The width of a text, counted only as far as `most`.
fn columns_within(text: &str, most: usize) -> usize {
    let mut used = 0;
    for (_, columns) in clusters(text) {
        used += usize::from(columns);
        if used >= most {
            break;
        }
    }
    used
}

/// The end of a text that fits into `room` columns, from the beginning of a word if that is near; `…`
/// precedes it if something was cut off.
fn end_within(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let mut used = 1;
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        used += columns(c.encode_utf8(&mut [0; 4]));
        if used > room {
            break;
        }
        start = at;
    }
    let end = text.get(start..).unwrap_or_default();
    let word = end.find(' ').map_or(0, |blank| blank + 1);
    let end = if word <= end.len() / 2 { end.get(word..).unwrap_or_default() } else { end };
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, words: &str, width: usize) -> (String, Vec<String>) {
        let cut = excerpt(text, &WordQuery::parse(words), width);
        assert!(columns(&cut.text) <= width, "{cut:?}");
        let found = cut.places.iter().map(|place| cut.text[place.clone()].to_owned()).collect();
        (cut.text, found)
    }

    #[test]
    fn the_words_are_in_sight_whatever_the_width() {
        let long =
            format!("{} the verdict: no go, {}", "before it ".repeat(40), "and after ".repeat(40));
        for width in [24, 40, 80, 200] {
            let (text, found) = cut(&long, "verd", width);
            assert_eq!(found, ["verdict"], "{text}");
            assert!(text.starts_with('…') && text.ends_with('…'), "{text}");
        }
        assert_eq!(cut(&long, "verdict", 40).0, "…it the verdict: no go, and after and a…");
        assert_eq!(cut(&long, "absent", 12).0, "before it b…");
    }

    #[test]
    fn a_short_text_is_whole_and_on_one_line() {
        let (text, found) = cut("a\n\tb \u{1b}[2J no", "no", 40);
        assert_eq!((text.as_str(), found), ("a b ␛[2J no", vec!["no".to_owned()]));
        assert_eq!(cut("", "no", 40).0, "");
        let (text, _) = cut("x ".repeat(50).as_str(), "x", 10);
        assert_eq!(text, "x x x x x…");
        let end = format!("{} end", "some words ".repeat(20));
        assert_eq!(cut(&end, "\"end\"", 20).0, "…some words end");
        assert_eq!(cut("漢字漢字漢字漢字東京", "東京", 10).1, ["東京"]);
    }
}
