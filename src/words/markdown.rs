//! A run as a Markdown document: a pure function of [`World`](crate::log::event::World). Text of
//! pages and models is shown literally: a title cannot end a link, a quote cannot begin a heading,
//! an address cannot run a script.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::base::visible::{is_hostile, visible};
use crate::log::event::StopReason;

/// A text on one line of Markdown, in the middle of a paragraph. White space becomes single blanks,
/// and control characters become visible.
pub(crate) fn text(text: &str) -> String {
    let folded = line(text);
    let mut out = String::with_capacity(folded.len());
    let mut rest = folded.as_str();
    while let Some(c) = rest.chars().next() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '~' | '|' | '^' | '$' => out.extend(['\\', c]),
            // Prevents automatic links and mentions.
            ':' if rest.starts_with("://") => out.push_str("\\:"),
            '.' if ends_in_www(&out) => out.push_str("\\."),
            '@' => out.push_str("&#64;"),
            _ => out.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// A text of our own log in a cell of a table: on one line; it does not end the cell, and has no tags.
pub(crate) fn table_cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace(['\n', '\r'], " ")
}

/// A Markdown text of a model, below a heading of our own: its tags of HTML are shown and not active, and
/// a fence that it leaves open is closed.
pub(crate) fn model_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut fence: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        let sign = bare.chars().next().filter(|c| matches!(c, '`' | '~'));
        let length = sign.map_or(0, |sign| bare.len() - bare.trim_start_matches(sign).len());
        let run = &bare[..length];
        match fence {
            Some(open) => {
                out.push_str(line);
                if run == bare && run.starts_with(open) {
                    fence = None;
                }
            }
            // The info of a fence of backticks has none.
            None if length >= 3 && !(sign == Some('`') && bare[length..].contains('`')) => {
                out.push_str(line);
                fence = Some(run);
            }
            None => push_without_tags(line, &mut out),
        }
    }
    if let Some(open) = fence {
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(open);
    }
    out
}

/// Adds a line of Markdown in which no `<` outside of code begins a tag.
fn push_without_tags(line: &str, out: &mut String) {
    let mut rest = line;
    while let Some(at) = rest.find(['<', '`', '\\']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let mut taken = 1;
        if from.starts_with('<') {
            out.push_str("&lt;");
        } else if let Some(escaped) = from.strip_prefix('\\') {
            taken += escaped.chars().next().map_or(0, char::len_utf8);
            out.push_str(&from[..taken].replace('<', "&lt;"));
        } else {
            // Code ends with as many backticks as it begins with.
            let ticks = from.len() - from.trim_start_matches('`').len();
            let code = from[ticks..].match_indices(&from[..ticks]).find(|(end, _)| {
                let (before, after) = (&from[ticks..ticks + end], &from[ticks + end + ticks..]);
                !before.ends_with('`') && !after.starts_with('`')
            });
            taken = code.map_or(ticks, |(end, _)| ticks + end + ticks);
            out.push_str(&from[..taken]);
        }
        rest = &from[taken..];
    }
    out.push_str(rest);
}

/// A text at the beginning of a line, where some characters begin a list or a heading.
pub(crate) fn paragraph(own: &str) -> String {
    let escaped = text(own);
    let digits = escaped.bytes().take_while(u8::is_ascii_digit).count();
    match escaped[digits..].chars().next() {
        Some('#' | '+' | '-' | '=' | '!' | '%' | ':') if digits == 0 => format!("\\{escaped}"),
        Some('.' | ')') if digits > 0 => {
            format!("{}\\{}", &escaped[..digits], &escaped[digits..])
        }
        _ => escaped,
    }
}

/// A text as code: literal, on one line, and never read as Markdown.
pub(crate) fn code(text: &str) -> String {
    let text = line(text);
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Why a run ended in these words, followed by the identifier of its stop reason.
pub(crate) fn reason_markdown(lead: &str, reason: &StopReason) -> String {
    let id = reason.to_string();
    if lead == id { code(&id) } else { format!("{} ({})", text(lead), code(&id)) }
}

/// A link if the address is http or https; otherwise the address is shown as code.
pub(crate) fn link(title: &str, url: &str) -> String {
    match target(url) {
        Some(target) => format!("[{}]({target})", text(title)),
        None => format!("{} at {}", text(title), code(url)),
    }
}

/// An address as the target of a link; `None` unless it is http or https.
fn target(url: &str) -> Option<String> {
    let url = url.trim();
    let start = |scheme: &str| {
        url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    if !start("http://") && !start("https://") {
        return None;
    }
    let mut out = String::with_capacity(url.len());
    for c in url.chars() {
        match c {
            // Markdown resolves entities in a target.
            '&' => out.push_str("&amp;"),
            '(' | ')' | '<' | '>' | '"' | '\'' | '\\' | '`' | '|' | '[' | ']' | '*' | '_' | '^' => {
                percent(c, &mut out);
            }
            c if c.is_whitespace() || c.is_control() || is_hostile(c) => percent(c, &mut out),
            c => out.push(c),
        }
    }
    Some(out)
}

fn percent(c: char, out: &mut String) {
    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
        let _ = write!(out, "%{byte:02X}");
    }
}

/// A text on one line: white space becomes single blanks, control characters become visible.
fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let folded = words.join(" ");
    match visible(&folded) {
        Cow::Owned(shown) => shown,
        Cow::Borrowed(_) => folded,
    }
}

/// Whether the text so far ends with the word `www`.
fn ends_in_www(text: &str) -> bool {
    let Some(before) = text.len().checked_sub(3).filter(|at| text.is_char_boundary(*at)) else {
        return false;
    };
    text[before..].eq_ignore_ascii_case("www")
        && !text[..before].ends_with(|c: char| c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_markdown() {
        for (given, shown) in [
            (
                "Failed payment rate is 3.4% (at 14:30 UTC).",
                "Failed payment rate is 3.4% (at 14:30 UTC).",
            ),
            ("a](javascript:x) [b", "a\\](javascript:x) \\[b"),
            (
                "**bold** _so_ `x` ~~no~~ | $x$ [^n9]",
                "\\*\\*bold\\*\\* \\_so\\_ \\`x\\` \\~\\~no\\~\\~ \\| \\$x\\$ \\[\\^n9\\]",
            ),
            ("<script>x&lt;</script>", "&lt;script&gt;x&amp;lt;&lt;/script&gt;"),
            (
                "see https://x.example and WWW.x.example",
                "see https\\://x.example and WWW\\.x.example",
            ),
            ("ask me@x.example, @team", "ask me&#64;x.example, &#64;team"),
            ("two\n\n# lines\t\u{1b}[2J\u{202e}", "two # lines ␛\\[2J\u{fffd}"),
            ("back\\slash", "back\\\\slash"),
        ] {
            assert_eq!(text(given), shown);
        }
    }

    #[test]
    fn model_text_has_no_active_tags() {
        for (given, shown) in [
            ("Use `<b>` and <b>bold</b>.", "Use `<b>` and &lt;b>bold&lt;/b>."),
            ("a < b, <!-- x -->\n<script>", "a &lt; b, &lt;!-- x -->\n&lt;script>"),
            ("```html\n<b>\n```\n<i>", "```html\n<b>\n```\n&lt;i>"),
            ("```\nopen <b>", "```\nopen <b>\n```"),
            ("~~~~\n```\n~~~\n", "~~~~\n```\n~~~\n~~~~"),
            ("``` `x` <b>", "``` `x` &lt;b>"),
            ("an open ` tick <b>", "an open ` tick &lt;b>"),
            ("``a`<b>`` <i>", "``a`<b>`` &lt;i>"),
            ("\\`<b>` \\<i>", "\\`&lt;b>` \\&lt;i>"),
            ("**kept** [a](b)\n\n- one", "**kept** [a](b)\n\n- one"),
            ("", ""),
        ] {
            assert_eq!(model_markdown(given), shown, "{given:?}");
        }
        assert_eq!(table_cell("<img src=x> | y\nz"), "&lt;img src=x> \\| y z");
    }

    #[test]
    fn nothing_begins_a_block() {
        for (given, shown) in [
            ("# no heading", "\\# no heading"),
            ("- no item", "\\- no item"),
            ("+1", "\\+1"),
            ("3. March", "3\\. March"),
            ("12) twelve", "12\\) twelve"),
            ("=====", "\\====="),
            ("> no quote", "&gt; no quote"),
            ("3.4% of them", "3\\.4% of them"),
            ("Plain", "Plain"),
            ("", ""),
        ] {
            assert_eq!(paragraph(given), shown);
        }
    }

    #[test]
    fn links_only_to_web() {
        for (title, url, shown) in [
            (
                "SLA",
                "https://v.example/a_b?x=1&y=(2)",
                "[SLA](https://v.example/a%5Fb?x=1&amp;y=%282%29)",
            ),
            (
                "a](http://evil.example",
                "https://v.example/",
                "[a\\](http\\://evil.example](https://v.example/)",
            ),
            ("x", "HTTPS://v.example/ \"t\"", "[x](HTTPS://v.example/%20%22t%22)"),
            ("x", "javascript:alert(1)", "x at `javascript:alert(1)`"),
            ("x", "java\nscript:alert(`1`)", "x at ``java script:alert(`1`)``"),
            ("x", "data:text/html,<p>", "x at `data:text/html,<p>`"),
            ("x", "", "x at (empty)"),
        ] {
            assert_eq!(link(title, url), shown);
        }
    }

    proptest::proptest! {
        /// For any title there is exactly one link, and only our own brackets are active.
        #[test]
        fn no_title_breaks_its_link(title in r"([\[\]()\\`<>!*_&:/. \n]|https?|www|\PC){0,40}") {
            let shown = link(&title, "https://v.example/");
            proptest::prop_assert!(!shown.contains('\n'));
            let mut escaped = false;
            let mut brackets = Vec::new();
            for (at, c) in shown.char_indices() {
                match c {
                    _ if escaped => escaped = false,
                    '\\' => escaped = true,
                    '[' | ']' | '<' | '`' => brackets.push((at, c)),
                    _ => {}
                }
            }
            let end = shown.len() - "](https://v.example/)".len();
            proptest::prop_assert_eq!(brackets, [(0, '['), (end, ']')]);
        }
    }
}
