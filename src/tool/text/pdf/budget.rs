//! Limits on the cost of reading a PDF. A crafted file of a few kilobytes can expand to millions of
//! tokens, each of which becomes an object of hundreds of bytes. Tokens are therefore counted
//! before they are parsed.

use std::cell::Cell;

use lopdf::{Object, ObjectId, Stream};

use crate::tool::text::Unreadable;

/// Most bytes of one object stream after decompression.
pub(super) const MAX_STREAM_BYTES: usize = 4 << 20;

/// Most bytes of one page after decompression.
const MAX_PAGE_BYTES: usize = 2 << 20;

/// Most bytes of all pages together after decompression.
const MAX_PAGES_BYTES: usize = 32 << 20;

/// Most tokens of a page: numbers, names, brackets, strings, operators.
pub(super) const MAX_PAGE_TOKENS: usize = 200_000;

/// Most tokens of all object streams together.
const MAX_OBJECT_TOKENS: usize = 1_000_000;

/// Most steps for a file: the tokens of its pages, and the objects they are made of.
const MAX_PDF_STEPS: usize = 5_000_000;

/// Remaining budget for a file, and whether the result is still wanted.
pub(crate) struct PdfBudget<'w> {
    bytes: usize,
    steps: usize,
    wanted: &'w dyn Fn() -> bool,
}

impl<'w> PdfBudget<'w> {
    /// Full budget of a file. `wanted` is called throughout and stops the extraction.
    pub(crate) fn new(wanted: &'w dyn Fn() -> bool) -> Self {
        Self { bytes: MAX_PAGES_BYTES, steps: MAX_PDF_STEPS, wanted }
    }

    /// Most bytes that the next page may have.
    pub(super) fn page_bytes(&self) -> usize {
        MAX_PAGE_BYTES.min(self.bytes)
    }

    /// Subtracts decompressed bytes.
    pub(super) fn spend_bytes(&mut self, bytes: usize) -> Result<(), Unreadable> {
        let left = self.bytes.checked_sub(bytes).filter(|left| *left > 0);
        self.bytes = left.ok_or_else(|| broken("its pages have more than 32 MiB"))?;
        Ok(())
    }

    /// Subtracts steps, and checks whether the result is still wanted.
    pub(super) fn spend_steps(&mut self, steps: usize) -> Result<(), Unreadable> {
        if !(self.wanted)() {
            return Err(broken("the call was cancelled"));
        }
        let left = self.steps.checked_sub(steps);
        self.steps = left.ok_or_else(|| broken("it is too complex (over 5,000,000 steps)"))?;
        Ok(())
    }
}

fn broken(why: &str) -> Unreadable {
    Unreadable::Broken(why.to_owned())
}

/// Number of tokens, an upper bound of the objects that the parser creates. Tokens inside strings
/// count too, because only the parser knows where a string ends.
pub(super) fn count_tokens(bytes: &[u8]) -> usize {
    #[derive(PartialEq, Clone, Copy)]
    enum TokenKind {
        Space,
        Number,
        Word,
        Mark,
    }
    let (mut count, mut before, mut dots) = (0, TokenKind::Space, 0);
    for byte in bytes {
        let kind = match byte {
            0 | b'\t' | b'\n' | 12 | b'\r' | b' ' => TokenKind::Space,
            b'0'..=b'9' | b'.' => TokenKind::Number,
            b'a'..=b'z' | b'A'..=b'Z' | b'*' | b'\'' | b'"' | 0x80.. => TokenKind::Word,
            _ => TokenKind::Mark,
        };
        let begins = kind != TokenKind::Space && (kind != before || kind == TokenKind::Mark);
        dots = if begins { 0 } else { dots } + usize::from(*byte == b'.');
        // `.1.1` is two numbers.
        count += usize::from(begins || (*byte == b'.' && dots > 1));
        before = kind;
    }
    count
}

thread_local! {
    /// Remaining tokens for the object streams of the file being loaded; `None`: limit exceeded.
    /// Thread-local, since `lopdf` takes a plain function as its filter and calls it on this
    /// thread.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Loads a file with [`bounded`] as filter; `None` if an object stream exceeds its limits.
pub(super) fn load_with_limits<T>(load: impl FnOnce() -> T) -> Option<T> {
    LEFT.set(Some(MAX_OBJECT_TOKENS));
    let loaded = load();
    LEFT.take().map(|_| loaded)
}

/// Filter for `lopdf`: called before an object stream is expanded.
pub(super) fn object_filter(id: ObjectId, object: &mut Object) -> Option<(ObjectId, Object)> {
    match object {
        Object::Stream(stream) => {
            if stream.dict.has_type(b"ObjStm") {
                let signs = count_object_tokens(stream);
                LEFT.set(LEFT.get().and_then(|left| left.checked_sub(signs?)));
                LEFT.get()?;
            }
            // For a stream, only `Some` or `None` matters.
            Some((id, Object::Null))
        }
        object => Some((id, object.clone())),
    }
}

/// Number of tokens of an object stream; `None` if its objects overlap or if it exceeds the limit
/// of a page.
fn count_object_tokens(stream: &Stream) -> Option<usize> {
    let Ok(content) = stream.get_plain_content_with_limit(MAX_STREAM_BYTES) else {
        // It fails when it is decompressed.
        return Some(0);
    };
    let signs = count_tokens(&content);
    let first = stream.dict.get(b"First").and_then(Object::as_i64).ok();
    let Some((index, body)) =
        first.and_then(|first| content.split_at_checked(usize::try_from(first).ok()?))
    else {
        return Some(0);
    };
    // Comments are removed, as in the parser.
    let index = String::from_utf8_lossy(index);
    let numbers = index
        .split(['\r', '\n'])
        .flat_map(|line| line.split('%').next().unwrap_or_default().split_whitespace());
    let mut places: Vec<usize> =
        numbers.skip(1).step_by(2).filter_map(|it| it.parse().ok()).collect();
    places.sort_unstable();
    (signs <= MAX_PAGE_TOKENS && are_disjoint(body, &places)).then_some(signs)
}

/// Whether the objects at these offsets do not overlap, so that reading all of them reads nothing
/// twice.
fn are_disjoint(body: &[u8], places: &[usize]) -> bool {
    let mut places = places.iter().peekable();
    let (mut depth, mut text, mut comment, mut escaped) = (0_usize, 0_usize, false, false);
    for (at, byte) in body.iter().enumerate() {
        let begins = places.next_if(|place| **place == at).is_some();
        let mut again = || places.peek().is_some_and(|place| **place == at);
        if begins && (depth > 0 || text > 0 || again()) {
            return false;
        }
        match byte {
            _ if escaped => escaped = false,
            b'\r' | b'\n' if comment => comment = false,
            _ if comment => {}
            b'\\' if text > 0 => escaped = true,
            b'(' => text += 1,
            b')' => text = text.saturating_sub(1),
            _ if text > 0 => {}
            b'%' => comment = true,
            b'[' | b'<' => depth += 1,
            b']' | b'>' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_counted_however_close_they_stand() {
        for (content, count) in [
            ("", 0),
            ("BT /F1 12 Tf (ab) Tj ET", 11),
            ("n n n n", 4),
            ("1n1n'", 4),
            ("0 0 0", 3),
            ("-1.5-2.5+3", 6),
            (".1.1.1", 3),
            ("[[]]<<>>", 8),
        ] {
            assert_eq!(count_tokens(content.as_bytes()), count, "{content}");
        }
    }

    #[test]
    fn objects_that_run_into_each_other_are_told() {
        for (body, places, are_apart) in [
            ("<</a 1>> [2 3] (4)", &[0, 9, 15][..], true),
            ("(a\\)[) 1", &[0, 7], true),
            ("1 % [ (\n2", &[0, 8], true),
            ("[1 2 3]", &[0, 1], false),
            ("((((", &[0, 1, 2], false),
            ("1 2", &[0, 0], false),
        ] {
            assert_eq!(are_disjoint(body.as_bytes(), places), are_apart, "{body}");
        }
    }

    #[test]
    fn work_that_nobody_wants_or_that_is_too_much_ends() {
        assert!(PdfBudget::new(&|| false).spend_steps(1).is_err());
        let mut effort = PdfBudget::new(&|| true);
        assert!(effort.spend_steps(MAX_PDF_STEPS).is_ok() && effort.spend_steps(1).is_err());
        assert!(effort.spend_bytes(MAX_PAGES_BYTES - 1).is_ok() && effort.spend_bytes(1).is_err());
        assert_eq!(effort.page_bytes(), 1);
    }
}
