//! The doctor's findings, and how they are printed.

use std::borrow::Cow;

use crate::base::visible::visible;
use crate::cli::stream_style::StreamStyle;
use crate::narrate::glyph::Glyph;
use crate::narrate::measure::columns;
use crate::ui::theme::StyleRole;

/// Largest width of the first column; a longer subject breaks the alignment.
const MAX_ABOUT: usize = 28;

/// Width of a line in columns.
const WIDTH: usize = 80;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rating {
    /// Nothing to do.
    Good,
    /// Worth knowing; the exit code stays 0.
    Note,
    /// Must be fixed; the exit code is 1.
    Bad,
}

/// One result of a check.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its severity.
    pub rating: Rating,
    /// The subject, such as `key` or `terminal`.
    pub about: Cow<'static, str>,
    /// The result.
    pub text: String,
    /// What to do about it, printed on a separate line.
    pub advice: Option<String>,
}

impl Finding {
    /// A finding without a problem.
    pub fn good(about: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        Self { rating: Rating::Good, about: about.into(), text: text.into(), advice: None }
    }

    /// A finding worth knowing.
    pub fn note(
        about: impl Into<Cow<'static, str>>,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { rating: Rating::Note, advice: Some(advice.into()), ..Self::good(about, text) }
    }

    /// A finding that must be fixed.
    pub fn bad(
        about: impl Into<Cow<'static, str>>,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { rating: Rating::Bad, ..Self::note(about, text, advice) }
    }

    /// Removes the advice, for a text that already contains it.
    pub fn without_advice(self) -> Self {
        Self { advice: None, ..self }
    }
}

/// The findings as lines: glyph, subject and result, with the advice below. The same advice several
/// times in a row is printed once, below the last of them.
pub fn lines(findings: &[Finding], paint: &StreamStyle) -> String {
    let widest = findings.iter().map(|finding| columns(&visible(&finding.about))).max();
    let width = widest.unwrap_or(0).clamp(10, MAX_ABOUT);
    let advice_of = |nth: usize| findings.get(nth).and_then(|finding| finding.advice.as_ref());
    let lines = findings.iter().enumerate().map(|(nth, finding)| {
        let advice = finding.advice.as_ref().filter(|own| advice_of(nth + 1) != Some(own));
        line(finding, advice, width, paint)
    });
    lines.collect()
}

fn line(finding: &Finding, advice: Option<&String>, width: usize, paint: &StreamStyle) -> String {
    let (glyph, role) = match finding.rating {
        Rating::Good => (Glyph::Done, StyleRole::Done),
        Rating::Note => (Glyph::Alert, StyleRole::Retry),
        Rating::Bad => (Glyph::Failed, StyleRole::Failed),
    };
    let sign = paint.role(role, paint.glyph(glyph));
    let about = visible(&finding.about);
    let gap = width.checked_sub(columns(&about));
    // 3: the glyph and two blanks.
    let rows = wrap_whole_words(&visible(&finding.text), WIDTH - width - 3);
    let mut text = format!("{sign} {about}");
    for (nth, row) in rows.iter().enumerate() {
        text += &match gap.filter(|_| nth == 0) {
            Some(gap) => format!("{} {row}", " ".repeat(gap)),
            None => format!("\n  {} {row}", " ".repeat(width)),
        };
    }
    text.push('\n');
    if let Some(advice) = advice {
        let arrow = paint.glyph(Glyph::Arrow);
        let room = WIDTH - width - 4 - columns(arrow);
        for (nth, row) in wrap_whole_words(&visible(advice), room).iter().enumerate() {
            let lead = if nth == 0 { arrow.to_owned() } else { " ".repeat(columns(arrow)) };
            let row = paint.role(StyleRole::Dim, row);
            text += &format!("  {} {lead} {row}\n", " ".repeat(width));
        }
    }
    text
}

/// Wraps a text to `width` columns. A longer word, such as a path or an address, gets a row of its
/// own and is not broken, so that it can be copied.
fn wrap_whole_words(text: &str, width: usize) -> Vec<String> {
    let mut rows: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        match rows.last_mut() {
            Some(row) if row.is_empty() => row.push_str(word),
            Some(row) if columns(row) + 1 + columns(word) <= width => {
                row.push(' ');
                row.push_str(word);
            }
            _ => rows.push(word.to_owned()),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::theme::Theme;

    #[test]
    fn rows_are_of_whole_words() {
        let long = "/home/somebody/a-path-that-is-longer-than-a-row";
        for (text, rows) in [
            ("", &[""][..]),
            ("one two three", &["one two", "three"]),
            ("exactly ten", &["exactly", "ten"]),
            ("five five x", &["five five", "x"]),
            (&format!("at {long} there"), &["at", long, "there"]),
            ("größe 日本 語", &["größe 日本", "語"]),
        ] {
            assert_eq!(wrap_whole_words(text, 10), rows, "{text}");
        }
    }

    #[test]
    fn lines_have_eighty_columns() {
        let words = "a few words and ".repeat(12);
        let paint = StreamStyle::new(false, Theme::default(), false);
        for about in
            ["key", "role market_research_analyst", "role somebody_with_a_name_of_forty_columns"]
        {
            let findings =
                [Finding::bad(about.to_owned(), &words, &words), Finding::good("x", "y")];
            let text = lines(&findings, &paint);
            let rows: Vec<&str> = text.lines().collect();
            assert!(rows.len() > 6, "{text}");
            assert!(rows.iter().all(|row| columns(row) <= 80), "{text}");
            assert!(rows[1].starts_with("    "), "continuation rows are indented: {text}");
        }
    }
}
