//! Extracts the visible text of Markdown, as rendered.
//!
//! Left out: markup, link targets, pictures, comments, raw HTML blocks, and what inline HTML hides.
//! Sentences stay whole, so that quotes of the rendered text are found.
//!
//! Front matter of a Markdown text: `key: value` lines between two `---` lines.
//!
//! Limits on the cost of reading Markdown. A few megabytes of markup such as `- - - -` become a
//! tree of a hundred times their size, so markup is counted before it is parsed.

use std::collections::VecDeque;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::flow::{Flow, one_line};
use super::{ExtractedDocument, Unreadable, html};
use crate::base::time;

/// Most characters of a title.
const TITLE_CHARS: usize = 300;

/// Most events after an opening tag that are searched for its end tag.
const HIDDEN_EVENTS: usize = 1_000;

/// Elements that hide nothing unless an attribute says so: checked first, because they are common.
const VISIBLE_TAGS: [&str; 10] = ["br", "b", "i", "em", "strong", "kbd", "sub", "sup", "a", "span"];

/// Reads a Markdown text. Its title is that of the front matter, else the first heading. Its date
/// is that of the front matter.
///
/// # Errors
/// It exceeds the limits of [`marks`].
pub(crate) fn read(text: &str) -> Result<ExtractedDocument, Unreadable> {
    let (front, text) = split_front_matter(text);
    check_limits(text)?;
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
    Ok(ExtractedDocument {
        title: one_line(&title, TITLE_CHARS),
        published_at: front.published_at,
        text: reading.flow.finish(),
    })
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
    /// Level of the current heading.
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
    let seen = html::read(&format!("{tag}x")).ok()?;
    seen.text.is_empty().then_some(end + 1)
}

/// Most lines of front matter; a longer block is text.
const MOST_LINES: usize = 200;

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
    time::date_from_iso(&unquoted(value)).unwrap_or_default()
}

/// Most marks of a text: each line and each markup character creates at most two nodes.
const MAX_MARKS: usize = 500_000;

/// Most steps for lists and quotes: for each line, the parser visits all that are open.
const MAX_LIST_STEPS: usize = 50_000_000;

/// Checks that a text is small enough to be parsed.
///
/// # Errors
/// It has too much markup, or is nested too deeply.
fn check_limits(text: &str) -> Result<(), Unreadable> {
    let too_large = |what: &str| Err(Unreadable::Broken(format!("the text has {what}")));
    let MarkdownCost { marks, steps } = cost(text);
    if marks > MAX_MARKS {
        return too_large("more than 500,000 marks of Markdown");
    }
    if steps > MAX_LIST_STEPS {
        return too_large("too many lines in deeply nested lists and quotes");
    }
    Ok(())
}

/// Upper bound of the cost of a text.
#[derive(Debug, PartialEq, Eq)]
struct MarkdownCost {
    /// Lines and markup characters.
    marks: usize,
    /// Open lists and quotes, summed over all lines, plus the lines.
    steps: usize,
}

fn cost(text: &str) -> MarkdownCost {
    // Blank lines count only if there may be code or raw HTML.
    let blank = usize::from(text.contains(['`', '~', '<', '\t']) || text.contains("    "));
    let (mut marks, mut steps, mut open) = (0_usize, 0_usize, 0_usize);
    for line in text.as_bytes().split(|byte| matches!(byte, b'\n' | b'\r')) {
        let (signs, begun) = count_marks(line);
        let columns = indent_columns(line);
        marks = marks.saturating_add(signs + columns.map_or(blank, |_| 1));
        // A blank line continues all open blocks; another one those that its indentation or marks
        // allow.
        let lead = columns.map_or(open, |columns| columns.min(open));
        steps = steps.saturating_add(lead + 1);
        open = open.max(lead.saturating_add(begun));
    }
    MarkdownCost { marks, steps }
}

/// Markup characters of a line, and how many of them may start a list or quote.
fn count_marks(line: &[u8]) -> (usize, usize) {
    let (mut signs, mut begun) = (0, 0);
    // Braces after a heading contain its attributes, one word each.
    let (mut before, mut braces) = (b' ', false);
    for (at, byte) in line.iter().enumerate() {
        let ends = || line.get(at + 1).is_none_or(|next| matches!(next, b' ' | b'\t'));
        let begins = match byte {
            b'>' => true,
            b'-' | b'+' | b'*' => !before.is_ascii_alphanumeric() && ends(),
            b'.' | b')' => before.is_ascii_digit() && ends(),
            _ => false,
        };
        braces |= *byte == b'{';
        let sign = (braces && byte.is_ascii_whitespace())
            || matches!(
                byte,
                b'*' | b'_' | b'~' | b'`' | b'&' | b'<' | b'[' | b']' | b'\\' | b'|' | 0
            );
        signs += usize::from(begins || sign);
        begun += usize::from(begins);
        before = *byte;
    }
    (signs, begun)
}

/// Columns before the text of a line, quote marks included; `None` for a blank line.
fn indent_columns(line: &[u8]) -> Option<usize> {
    let mut columns = 0_usize;
    for byte in line {
        columns += match byte {
            b' ' | b'>' => 1,
            b'\t' => 4,
            _ => return Some(columns),
        };
    }
    line.contains(&b'>').then_some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(markdown: &str) -> String {
        read(markdown).expect("small enough").text
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
    fn what_is_not_seen_is_not_in_it() {
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
        let document =
            read("---\ntitle: Front\ndate: 2026-03-07\n---\n# Head\n\nText").expect("small");
        assert_eq!((&*document.title, &*document.published_at), ("Front", "2026-03-07"));
        assert_eq!(document.text, "Head\n\nText");
        let document = read("Text\n\n## The *first* `head`\n\n# The second").expect("small");
        assert_eq!((&*document.title, &*document.published_at), ("The first head", ""));
        assert_eq!(read("Text").expect("small").title, "");
    }

    #[test]
    fn depth_costs_no_stack_and_length_no_more_than_its_share() {
        for deep in ["> ", "- ", "[", "*a ", "**", "<b>", "<b hidden>", "<x>", "`"] {
            read(&deep.repeat(20_000)).expect("small enough");
        }
        let cells = format!("|{}\n|{}\n", "a|".repeat(500), "-|".repeat(500));
        assert!(text(&cells).starts_with("a a"));
    }

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
            assert_eq!(split_front_matter(text), (front, rest), "{text:?}");
        }
    }

    #[test]
    fn marks_and_steps_are_counted_before_anything_is_made() {
        for (text, marks, steps) in [
            ("", 0, 1),
            ("Plain words, and more: well-known ones (2024).", 1, 1),
            ("a\nb\r\nc", 3, 4),
            ("a\n\n\n\tb", 4, 4),
            ("*a* **b** `c` [d](e) <f>", 13, 1),
            ("- - - a", 4, 1),
            ("1. 2) 3.", 4, 1),
            ("> > a", 3, 1),
            // Three are open: a blank line continues them, an unindented one does not.
            ("- - - a\n\nb", 5, 6),
            ("- a\n  - b\n    - c\n      d", 7, 10),
            ("|a|b|\n|-|-|", 8, 2),
            ("-----\n***", 6, 2),
            ("# a b {#id .c .d}\na b", 4, 2),
        ] {
            assert_eq!(cost(text), MarkdownCost { marks, steps }, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_text_that_is_meant_to_be_read_is_refused() {
        let refused = |text: &str| check_limits(text).err().map(|why| why.to_string());
        let marks = Some("the text has more than 500,000 marks of Markdown".to_owned());
        assert_eq!(refused(&"- ".repeat(499_999)), None);
        assert_eq!(refused(&"- ".repeat(500_000)), marks);
        assert_eq!(refused(&"\n".repeat(5_000_000)), None);
        assert_eq!(refused(&("```".to_owned() + &"\n".repeat(500_000))), marks);
        let deep = "> ".repeat(2_000) + &format!("\n{}", "> ".repeat(100));
        assert_eq!(refused(&deep), None);
        // Lines of blanks that continue thousands of lists.
        let deep = "- ".repeat(20_000) + &"\n ".repeat(20_000);
        let lines = "the text has too many lines in deeply nested lists and quotes";
        assert_eq!(refused(&deep).as_deref(), Some(lines));
        let prose = "A line of a long report, with *one* word of weight in it.\n".repeat(100_000);
        assert_eq!(refused(&prose), None);
    }
}
