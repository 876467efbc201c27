//! The width of a text in columns, and how it wraps. Any text is safe: control characters, escape
//! sequences and bidi controls count as the visible symbols that are drawn for them; wide and
//! combining characters take the columns that the terminal gives them.
//!
//! A text on one line, cut around the words that somebody looks for.

use std::borrow::Cow;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::base::visible::{first_hostile, visible, visible_char};
use crate::base::word_query::WordQuery;

/// The most characters in one cell: a letter with a few marks, a family emoji. A longer cluster is
/// not text: it is there to garble the cells around it.
const CELL_CHARS: usize = 16;

/// Symbol for a cluster that does not fit into a cell.
const REPLACEMENT: &str = "\u{fffd}";

/// The text of one cluster and its width in columns: 1 or 2, and up to [`CELL_CHARS`] in scripts
/// that join consonants, such as Devanagari.
pub type GraphemeCluster<'a> = (Cow<'a, str>, u16);

/// The clusters of a text, each safe to draw.
pub fn clusters(text: &str) -> impl Iterator<Item = GraphemeCluster<'_>> {
    text.graphemes(true).map(cluster)
}

/// A grapheme as it is drawn, with its width in columns.
pub fn cluster(grapheme: &str) -> GraphemeCluster<'_> {
    if let [byte @ b' '..=b'~'] = grapheme.as_bytes() {
        debug_assert!(byte.is_ascii());
        return (Cow::Borrowed(grapheme), 1);
    }
    // A line end or a tab in one row is a blank.
    if matches!(grapheme, "\n" | "\r\n" | "\r" | "\t") {
        return (Cow::Borrowed(" "), 1);
    }
    if let Some(c) = first_hostile(grapheme) {
        let shown = visible_char(c);
        return (Cow::Owned(shown.to_string()), 1);
    }
    if grapheme.chars().nth(CELL_CHARS).is_some() {
        return (Cow::Borrowed(REPLACEMENT), 1);
    }
    // Terminals disagree on the width of joined emoji and variation selectors: a joined cluster is
    // shown by its first character, one without a sure width by the replacement character. They
    // agree on flags, which are pairs of regional indicators.
    if grapheme.chars().any(has_ambiguous_width) && !is_flag(grapheme) {
        let first = grapheme.chars().next().filter(|c| !has_ambiguous_width(*c));
        let shown = first.map(String::from).filter(|shown| matches!(shown.width(), 1 | 2));
        return match shown {
            Some(shown) => {
                let width = if shown.width() == 2 { 2 } else { 1 };
                (Cow::Owned(shown), width)
            }
            None => (Cow::Borrowed(REPLACEMENT), 1),
        };
    }
    // Terminals give these two marks a column of their own.
    let marks = grapheme.chars().filter(|c| matches!(c, '\u{ff9e}' | '\u{ff9f}')).count();
    match u16::try_from(grapheme.width() + marks) {
        Ok(width @ 1..) => (Cow::Borrowed(grapheme), width),
        _ => (Cow::Borrowed(REPLACEMENT), 1),
    }
}

fn is_flag(grapheme: &str) -> bool {
    let mut chars = grapheme.chars();
    let indicator = |c: Option<char>| matches!(c, Some('\u{1f1e6}'..='\u{1f1ff}'));
    indicator(chars.next()) && indicator(chars.next()) && chars.next().is_none()
}

/// Whether terminals disagree on the width of a cluster with this character: joiners, variation
/// selectors, regional indicators, skin tones, tags and keycaps.
fn has_ambiguous_width(c: char) -> bool {
    matches!(
        c,
        '\u{200d}'
            | '\u{20e3}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{1f1e6}'..='\u{1f1ff}'
            | '\u{1f3fb}'..='\u{1f3ff}'
            | '\u{e0020}'..='\u{e01ef}'
    )
}

/// Width of a text in columns.
pub fn columns(text: &str) -> usize {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.len();
    }
    clusters(text).map(|(_, width)| usize::from(width)).sum()
}

/// Most columns that [`padded`] fills.
const MAX_PADDING: usize = 512;

/// The text, followed by blanks up to a width in columns. Column widths that come from data are padded here
/// and nowhere else: the padding of `format!` panics above 65,535 and counts characters.
pub fn padded(text: &str, width: usize) -> String {
    let blanks = width.min(MAX_PADDING).saturating_sub(columns(text));
    let mut out = String::with_capacity(text.len() + blanks);
    out.push_str(text);
    out.extend(std::iter::repeat_n(' ', blanks));
    out
}

/// The whole text on one line, with nothing hidden: control characters become visible, and any
/// white space but a single blank becomes one mark, `␊` where it contains a line end and `␣`
/// otherwise.
pub fn single_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let blank = first.is_whitespace();
        let end = rest.find(|c: char| c.is_whitespace() != blank).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        out.push_str(&match piece {
            _ if !blank => visible(piece),
            " " => Cow::Borrowed(" "),
            run if run.contains(['\n', '\r']) => Cow::Borrowed(" ␊ "),
            _ => Cow::Borrowed(" ␣ "),
        });
        rest = after;
    }
    out
}

/// Distance of the tab stops in columns.
const TAB: usize = 4;

/// Where a word that is longer than a row is broken: after one of these.
const SEPARATORS: [char; 14] =
    ['_', '-', '/', '.', ',', ':', ';', '?', '&', '=', '|', ')', ']', '}'];

/// The text in rows of at most `width` columns. A line end ends a row; words stay whole where they
/// fit into one; a tab extends to the next fourth column. No row contains a line end or a tab.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for_each_row(text, width, |row| {
        rows.push(row);
        true
    });
    rows
}

/// The first `most` rows of [`wrap`], and whether there are more.
pub fn wrap_within(text: &str, width: usize, most: usize) -> (Vec<String>, bool) {
    let mut rows = Vec::new();
    let mut more = false;
    for_each_row(text, width, |row| {
        more = rows.len() == most;
        if !more {
            rows.push(row);
        }
        !more
    });
    (rows, more)
}

/// The number of rows that [`wrap`] returns.
pub fn row_count(text: &str, width: usize) -> usize {
    if text.len() <= width && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return 1;
    }
    let mut rows = 0;
    for_each_row(text, width, |_| {
        rows += 1;
        true
    });
    rows
}

/// Step of the start position in [`wrap_end`], in bytes.
const STRIDE: usize = 4096;

/// The last `most` rows of [`wrap`], and whether there are more before them. It reads only as much
/// of the text's end as can fill them, so a long text costs no more than a short one. The start
/// position moves in large steps, so that rows keep their places while the text grows.
pub fn wrap_end(text: &str, width: usize, most: usize) -> (Vec<String>, bool) {
    let look = width.saturating_mul(most + 1).saturating_mul(4);
    let mut from = text.len().saturating_sub(look) / STRIDE * STRIDE;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    if from > 0 {
        from += text[from..].find([' ', '\n']).map_or(0, |at| at + 1);
    }
    let mut rows = wrap(&text[from..], width);
    let before = rows.len().saturating_sub(most);
    rows.drain(..before);
    (rows, before > 0 || from > 0)
}

/// Wraps `text` and passes each row to `take` until that returns false.
fn for_each_row(text: &str, width: usize, mut take: impl FnMut(String) -> bool) {
    let width = width.max(1);
    for line in text.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let mut row = WrappedRow { text: String::new(), width: 0 };
        for word in words(line) {
            let blank = word.starts_with([' ', '\t']);
            let wide = if word == "\t" { TAB - row.width % TAB } else { columns(word) };
            if row.width + wide <= width {
                row.push(word, wide);
                continue;
            }
            if blank {
                // Blanks at the end of a row are dropped.
                if !take(row.finish()) {
                    return;
                }
                continue;
            }
            if row.width > 0 && wide <= width {
                if !take(row.finish()) {
                    return;
                }
                row.push(word, wide);
                continue;
            }
            // A word that no row holds is broken after a separator where it has one.
            for piece in word.split_inclusive(SEPARATORS) {
                let wide = columns(piece);
                if wide <= width {
                    if row.width + wide > width && !take(row.finish()) {
                        return;
                    }
                    row.push(piece, wide);
                    continue;
                }
                for grapheme in piece.graphemes(true) {
                    let one = usize::from(cluster(grapheme).1);
                    if row.width + one > width && row.width > 0 && !take(row.finish()) {
                        return;
                    }
                    row.push(grapheme, one);
                }
            }
        }
        if !take(row.finish()) {
            return;
        }
    }
}

/// The blanks, tabs and words of a line, in order and complete.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = match first {
            '\t' => 1,
            ' ' => rest.find(|c| c != ' ').unwrap_or(rest.len()),
            _ => rest.find([' ', '\t']).unwrap_or(rest.len()),
        };
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

struct WrappedRow {
    text: String,
    width: usize,
}

impl WrappedRow {
    fn push(&mut self, piece: &str, width: usize) {
        if piece == "\t" {
            self.text.extend(std::iter::repeat_n(' ', width));
        } else {
            self.text.push_str(piece);
        }
        self.width += width;
    }

    fn finish(&mut self) -> String {
        self.width = 0;
        let mut text = std::mem::take(&mut self.text);
        text.truncate(text.trim_end_matches(' ').len());
        text
    }
}

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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn any_width_can_be_padded() {
        for (text, width, padded_to) in
            [("ab", 4, "ab  "), ("日本", 5, "日本 "), ("abc", 2, "abc"), ("", 0, "")]
        {
            assert_eq!(padded(text, width), padded_to);
        }
        assert_eq!(columns(&padded("a", usize::MAX)), MAX_PADDING);
        assert_eq!(padded(&"t".repeat(70_000), 70_000).len(), 70_000);
    }

    #[test]
    fn ambiguous_cluster_shows_its_safe_part() {
        for (text, shown, width) in [
            ("👩\u{200d}👩\u{200d}👧", "👩", 2),
            ("👍🏽", "👍", 2),
            ("🇬🇧", "🇬🇧", 2),
            ("🇬", REPLACEMENT, 1),
            ("❤\u{fe0f}", "❤", 1),
            ("1\u{fe0f}\u{20e3}", "1", 1),
            ("🚀", "🚀", 2),
        ] {
            let all: Vec<_> = clusters(text).collect();
            assert_eq!(all, [(Cow::Borrowed(shown), width)], "{text:?}");
            assert_eq!(columns(text), usize::from(width));
        }
    }

    /// Terminals advance by the width of each character, so a cluster is as wide as their sum.
    #[test]
    fn joined_consonants_are_drawn_whole() {
        for (text, width) in [("क्षि", 3), ("স্ত্র", 3), ("न्त्र्य", 4), ("நி", 2), ("ຳ", 1)]
        {
            let all: Vec<_> = clusters(text).collect();
            assert_eq!(all, [(Cow::Borrowed(text), width)], "{text:?}");
        }
        for text in ["क्षेत्रीय स्वास्थ्य", "রাষ্ট্রীয় স্বাস্থ্য", "🇬🇧🇮🇳 ok"]
        {
            let drawn: String = clusters(text).map(|(cluster, _)| cluster).collect();
            assert_eq!(drawn, text);
            let chars = text.chars().filter_map(unicode_width::UnicodeWidthChar::width);
            assert_eq!(columns(text), chars.sum::<usize>(), "{text:?}");
        }
    }

    #[test]
    fn words_stay_whole_where_they_fit() {
        let rows =
            wrap("Failed payments stay under\n\nthe line: http://verylongword.example/x", 12);
        assert_eq!(
            rows,
            [
                "Failed",
                "payments",
                "stay under",
                "",
                "the line:",
                "http://veryl",
                "ongword.",
                "example/x"
            ]
        );
        assert_eq!(wrap("source_denied_execution", 20), ["source_denied_", "execution"]);
        assert_eq!(wrap("abcdefgh_i", 4), ["abcd", "efgh", "_i"]);
        assert_eq!(wrap("a\tb", 10), ["a   b"]);
        assert_eq!(wrap("", 10), [""]);
        assert_eq!(wrap_within("a b c d", 1, 2), (vec!["a".to_owned(), "b".to_owned()], true));
    }

    #[test]
    fn finds_end_without_reading_start() {
        let long = "word ".repeat(50_000) + "\nlast line";
        let (rows, more) = wrap_end(&long, 20, 3);
        assert!(more);
        assert_eq!(rows.last().map(String::as_str), Some("last line"));
        assert_eq!(rows.len(), 3);
        let (grown, _) = wrap_end(&format!("{long} goes on"), 20, 3);
        assert_eq!(rows[..2], grown[..2], "rows stand still");
        assert_eq!(wrap_end("one\ntwo", 20, 3), (vec!["one".to_owned(), "two".to_owned()], false));
    }

    proptest! {
        #[test]
        fn wrapped_rows_fit_and_keep_text(text in "[ -~\\n宽é\\x1b]*", width in 2usize..30) {
            let rows = wrap(&text, width);
            prop_assert_eq!(rows.len(), row_count(&text, width));
            prop_assert!(rows.iter().all(|row| columns(row) <= width));
            let kept: String = rows.concat().split_whitespace().collect();
            let whole: String = text.split_whitespace().collect();
            prop_assert_eq!(kept, whole);
        }
    }

    #[test]
    fn single_line_shows_gaps_and_breaks() {
        assert_eq!(single_line("echo harmless      ; rm x"), "echo harmless ␣ ; rm x");
        assert_eq!(single_line("one\n\n  two"), "one ␊ two");
    }

    fn cut(text: &str, words: &str, width: usize) -> (String, Vec<String>) {
        let cut = excerpt(text, &WordQuery::parse(words), width);
        assert!(columns(&cut.text) <= width, "{cut:?}");
        let found = cut.places.iter().map(|place| cut.text[place.clone()].to_owned()).collect();
        (cut.text, found)
    }

    #[test]
    fn excerpt_shows_words_at_any_width() {
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
    fn short_text_stays_whole_on_line() {
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
