//! Front matter of a Markdown text: `key: value` lines between two `---` lines.

use crate::base::iso_day;

/// Most lines of front matter; a longer block is text.
const MOST_LINES: usize = 200;

/// The values that are used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FrontMatter {
    pub(super) title: String,
    /// `YYYY-MM-DD`, or empty.
    pub(super) published_at: String,
}

/// Separates the front matter from the text. A text that only starts with a rule has none.
pub(super) fn split(text: &str) -> (FrontMatter, &str) {
    let none = (FrontMatter::default(), text);
    let Some(mut rest) = after_rule(text, "---") else { return none };
    let (mut front, mut date) = (FrontMatter::default(), String::new());
    for _ in 0..MOST_LINES {
        if let Some(text) = after_rule(rest, "---").or_else(|| after_rule(rest, "...")) {
            if front.published_at.is_empty() {
                front.published_at = date;
            }
            return (front, text);
        }
        let Some((line, after)) = rest.split_once('\n') else { return none };
        rest = after;
        let line = line.trim_end();
        let goes_on = line.is_empty() || line.starts_with([' ', '\t', '-', '#']);
        match line.split_once(':') {
            _ if goes_on => {}
            Some((key, _)) if key.contains(' ') => return none,
            Some((key, value)) => match key.to_ascii_lowercase().as_str() {
                "title" => front.title = unquoted(value),
                "published_at" => front.published_at = date_value(value),
                "date" => date = date_value(value),
                _ => {}
            },
            None => return none,
        }
    }
    none
}

/// The text after a line that consists of `rule`.
fn after_rule<'t>(text: &'t str, rule: &str) -> Option<&'t str> {
    let (line, after) = text.split_once('\n').unwrap_or((text, ""));
    (line.trim_end() == rule).then_some(after)
}

fn unquoted(value: &str) -> String {
    let value = value.trim();
    let inner = ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote)));
    inner.unwrap_or(value).trim().to_owned()
}

fn date_value(value: &str) -> String {
    // A comment may follow.
    let value = value.split(" #").next().unwrap_or_default();
    iso_day::from_iso(&unquoted(value)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_and_day_are_taken_and_the_rest_is_left() {
        for (text, title, day, rest) in [
            ("---\ntitle: A: b\ndate: 2026-03-07\n---\nText", "A: b", "2026-03-07", "Text"),
            ("---\r\ntitle: \"A\"\r\n---\r\nText", "A", "", "Text"),
            (
                "---\ndate: 2026-01-01\npublished_at: '2026-03-07T10:00:00Z' # late\n...\nT",
                "",
                "2026-03-07",
                "T",
            ),
            ("---\ntags:\n  - a\n- b\n# c\nDate: soon\n---\n", "", "", ""),
            ("---\n---\nText", "", "", "Text"),
            ("---", "", "", "---"),
            ("---\ntitle: A", "", "", "---\ntitle: A"),
            ("---\nA text\n---\n", "", "", "---\nA text\n---\n"),
            ("---\nA text: with more\n---\n", "", "", "---\nA text: with more\n---\n"),
            ("Text\n---\ntitle: A\n---\n", "", "", "Text\n---\ntitle: A\n---\n"),
        ] {
            let front = FrontMatter { title: title.to_owned(), published_at: day.to_owned() };
            assert_eq!(split(text), (front, rest), "{text:?}");
        }
    }
}
