//! Limits on the cost of reading Markdown. A few megabytes of markup such as `- - - -` become a
//! tree of a hundred times their size, so markup is counted before it is parsed.

use super::extracted::Unreadable;

/// Most marks of a text: each line and each markup character creates at most two nodes.
const MAX_MARKS: usize = 500_000;

/// Most steps for lists and quotes: for each line, the parser visits all that are open.
const MAX_LIST_STEPS: usize = 50_000_000;

/// Checks that a text is small enough to be parsed.
///
/// # Errors
/// It has too much markup, or is nested too deeply.
pub(super) fn check_limits(text: &str) -> Result<(), Unreadable> {
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
