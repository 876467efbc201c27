//! Extracts the visible text of Markdown, as rendered, and its front matter (`key: value` lines between
//! two `---` lines).
//!
//! Left out: markup, link targets, pictures, comments, raw HTML blocks, and what inline HTML hides.
//! Sentences stay whole, so that quotes of the rendered text are found.

use std::collections::VecDeque;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::flow::{Flow, one_line};
use super::{ExtractedDocument, html};
use crate::base::time;

/// Most characters of a title.
const TITLE_CHARS: usize = 300;

/// Most events after an opening tag that are searched for its end tag.
const HIDDEN_EVENTS: usize = 1_000;

/// Elements that hide nothing unless an attribute says so: checked first, because they are common.
const VISIBLE_TAGS: [&str; 10] = ["br", "b", "i", "em", "strong", "kbd", "sub", "sup", "a", "span"];

/// Reads a Markdown text. Its title is that of the front matter, else the first heading. Its date
/// is that of the front matter.
pub(crate) fn read(text: &str) -> ExtractedDocument {
    let (front, text) = split_front_matter(text);
    let parser = Parser::new_ext(text, options());
    let mut events = Events { parser, ahead: VecDeque::new() };
    let mut reading = MarkdownReader::default();
    while let Some(event) = events.next_event() {
        if let Event::InlineHtml(tag) = &event
            && let Some(end) = hidden_length(tag, &mut events)
        {
            events.ahead.drain(..end);
            continue;
        }
        reading.handle(&event);
    }
    let title = if front.title.is_empty() { reading.heading } else { front.title };
    ExtractedDocument {
        title: one_line(&title, TITLE_CHARS),
        published_at: front.published_at,
        text: reading.flow.finish(),
    }
}

/// Parser events with lookahead. Collecting all events would need many times the memory of the
/// text.
struct Events<'t> {
    parser: Parser<'t>,
    ahead: VecDeque<Event<'t>>,
}

impl<'t> Events<'t> {
    fn next_event(&mut self) -> Option<Event<'t>> {
        self.ahead.pop_front().or_else(|| self.parser.next())
    }

    /// The event after `others` more events.
    fn peek_at(&mut self, others: usize) -> Option<&Event<'t>> {
        while self.ahead.len() <= others {
            self.ahead.push_back(self.parser.next()?);
        }
        self.ahead.get(others)
    }
}

fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_WIKILINKS
        | Options::ENABLE_GFM
}

/// The text so far, and the state of the current position.
#[derive(Default)]
struct MarkdownReader {
    flow: Flow,
    heading: String,
    in_heading: Option<HeadingLevel>,
    in_code: bool,
    /// Number of open elements that are not shown: pictures, raw HTML.
    hidden_depth: u32,
}

impl MarkdownReader {
    fn handle(&mut self, event: &Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(*tag),
            _ if self.hidden_depth > 0 => {}
            Event::Text(text) if self.in_code => self.flow.push_lines(text),
            Event::Text(text)
            | Event::Code(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => self.inline(text),
            Event::SoftBreak => self.inline(" "),
            Event::HardBreak => self.flow.end_line(),
            Event::InlineHtml(tag) if is_break(tag) => self.flow.end_line(),
            Event::Rule => self.flow.end_paragraph(),
            Event::Html(_)
            | Event::InlineHtml(_)
            | Event::FootnoteReference(_)
            | Event::TaskListMarker(_) => {}
        }
    }

    fn inline(&mut self, text: &str) {
        self.flow.push_folded(text);
        if self.in_heading.is_some() {
            self.heading.push_str(text);
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.flow.end_paragraph();
                if self.heading.is_empty() {
                    self.in_heading = Some(*level);
                }
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) => {
                self.flow.end_paragraph();
                self.in_code = true;
            }
            Tag::HtmlBlock | Tag::Image { .. } | Tag::MetadataBlock(_) => self.hidden_depth += 1,
            Tag::TableCell => self.flow.end_word(),
            Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Superscript
            | Tag::Subscript
            | Tag::Link { .. } => {}
            _ => self.flow.end_paragraph(),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.flow.end_paragraph();
                self.in_heading = None;
            }
            TagEnd::CodeBlock => {
                self.flow.end_paragraph();
                self.in_code = false;
            }
            TagEnd::HtmlBlock | TagEnd::Image | TagEnd::MetadataBlock(_) => {
                self.hidden_depth = self.hidden_depth.saturating_sub(1);
            }
            end if is_inline(end) => {}
            TagEnd::TableCell => self.flow.end_word(),
            _ => self.flow.end_paragraph(),
        }
    }
}

fn is_inline(end: TagEnd) -> bool {
    matches!(
        end,
        TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::Link
            | TagEnd::Image
    )
}

fn is_break(tag: &str) -> bool {
    tag_name(tag).is_some_and(|name| name.eq_ignore_ascii_case("br"))
}

/// Name of an opening tag.
fn tag_name(tag: &str) -> Option<&str> {
    let name = tag.strip_prefix('<')?;
    let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
    name.get(..end).filter(|name| !name.is_empty())
}

/// If a tag hides something: the number of following events up to its end tag, which has to be
/// close and in the same block of text. A text that mentions `<script>` without code marks hides
/// nothing.
fn hidden_length(tag: &str, after: &mut Events<'_>) -> Option<usize> {
    let name = tag_name(tag)?;
    let bare = tag.len() <= name.len() + 3;
    if bare && VISIBLE_TAGS.iter().any(|seen| name.eq_ignore_ascii_case(seen)) {
        return None;
    }
    let closes = |event: &Event<'_>| match event {
        Event::InlineHtml(tag) => tag
            .strip_prefix("</")
            .is_some_and(|closing| closing.trim_end_matches('>').trim().eq_ignore_ascii_case(name)),
        _ => false,
    };
    let ends = |event: &Event<'_>| matches!(event, Event::End(end) if !is_inline(*end));
    let mut end = 0;
    loop {
        let event = after.peek_at(end).filter(|event| !ends(event))?;
        if closes(event) {
            break;
        }
        end += 1;
        if end == HIDDEN_EVENTS {
            return None;
        }
    }
    // Only the HTML reader decides what is visible.
    let seen = html::read(&format!("{tag}x"), &|| true).ok()?;
    seen.text.is_empty().then_some(end + 1)
}

/// Most lines of front matter; a longer block is text.
const MAX_LINES: usize = 200;

/// The values that are used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    pub(crate) title: String,
    /// `YYYY-MM-DD`, or empty.
    pub(crate) published_at: String,
}

/// Separates the front matter from the text. A text that only starts with a rule has none.
fn split_front_matter(text: &str) -> (FrontMatter, &str) {
    let none = (FrontMatter::default(), text);
    let Some(mut rest) = after_rule(text, "---") else { return none };
    let (mut front, mut date) = (FrontMatter::default(), String::new());
    for _ in 0..MAX_LINES {
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
    time::date_from_iso(&unquoted(value)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(markdown: &str) -> String {
        read(markdown).text
    }

    #[test]
    fn what_is_seen_is_the_text() {
        for (markdown, seen) in [
            ("A *b* **c** ~~d~~ `e`\nf.", "A b c d e f."),
            (
                "A [link](https://x.example/?a \"t\") <https://y.example> [ref].\n\n[ref]: /z",
                "A link https://y.example ref.",
            ),
            ("A [[Page|shown]] and [[Page]].", "A shown and Page."),
            ("![a picture](x.png) of it", "of it"),
            ("Un*frigging*believable", "Unfriggingbelievable"),
            ("one<br>two  \nthree", "one\ntwo\nthree"),
            ("- one\n  more\n- two\n  1. deep\n- [x] done", "one more\n\ntwo\n\ndeep\n\ndone"),
            ("> quoted\n> on\n\nend", "quoted on\n\nend"),
            ("| a | b |\n|---|--:|\n| 1 | *2* |\n| 3 | |", "a b\n\n1 2\n\n3"),
            ("```rust\nfn a() {\n    b();\n}\n```\nend", "fn a() {\n    b();\n}\n\nend"),
            ("A note.[^1]\n\n[^1]: The foot.", "A note.\n\nThe foot."),
            ("# H {#id}\n\ntext\n\n---\n\nmore", "H\n\ntext\n\nmore"),
            ("&lt;b&gt; &amp; \\*x\\*", "<b> & *x*"),
            ("", ""),
        ] {
            assert_eq!(text(markdown), seen, "{markdown}");
        }
    }

    #[test]
    fn skips_hidden_content() {
        for (markdown, seen) in [
            ("a <!-- ignore your instructions --> b", "a b"),
            ("<!-- ignore\n\nyour instructions -->\n\nb", "b"),
            ("<div>\nraw\n</div>\n\nb", "b"),
            ("a <b>bold</b> b", "a bold b"),
            ("a <span style=\"display:none\">cite *n9*</span> b", "a b"),
            ("a <b hidden>cite n9</b> b", "a b"),
            ("a <SCRIPT>x()</script > b", "a b"),
            ("the <script> element is text", "the element is text"),
            ("one <textarea>\n\ntwo </textarea>", "one\n\ntwo"),
            ("a\u{200b}b\u{202e}c", "abc"),
        ] {
            assert_eq!(text(markdown), seen, "{markdown}");
        }
    }

    #[test]
    fn title_and_day() {
        let document = read("---\ntitle: Front\ndate: 2026-03-07\n---\n# Head\n\nText");
        assert_eq!((&*document.title, &*document.published_at), ("Front", "2026-03-07"));
        assert_eq!(document.text, "Head\n\nText");
        let document = read("Text\n\n## The *first* `head`\n\n# The second");
        assert_eq!((&*document.title, &*document.published_at), ("The first head", ""));
        assert_eq!(read("Text").title, "");
    }

    #[test]
    fn deep_nesting_overflows_no_stack() {
        for deep in ["> ", "- ", "[", "*a ", "**", "<b>", "<b hidden>", "<x>", "`"] {
            read(&deep.repeat(20_000));
        }
        let cells = format!("|{}\n|{}\n", "a|".repeat(500), "-|".repeat(500));
        assert!(text(&cells).starts_with("a a"));
    }

    #[test]
    fn reads_title_and_date_from_header() {
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
            assert_eq!(split_front_matter(text), (front, rest), "{text:?}");
        }
    }
}
