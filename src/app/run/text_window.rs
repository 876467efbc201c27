//! The part of a long text that is kept for a pane, so that a frame wraps little.

use std::borrow::Cow;

/// Most of a text that the pane holds, in bytes: more than any screen shows, and little enough to
/// wrap for each frame.
const WINDOW: usize = 24 * 1024;
/// Step by which the window of a streamed text moves, in bytes, so that rows keep their place.
const WINDOW_STEP: usize = 4096;

/// Where the last `most` bytes of a text begin: a multiple of [`WINDOW_STEP`], moved to the start of a
/// character.
pub(crate) fn tail_start(text: &str, most: usize) -> usize {
    let over = text.len().saturating_sub(most);
    let mut from = over.div_ceil(WINDOW_STEP) * WINDOW_STEP;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    from
}

/// The part of a text that the pane shows, and the bytes left out.
pub(super) fn windowed(text: Cow<'_, str>, coming: bool) -> (Cow<'_, str>, usize) {
    if text.len() <= WINDOW {
        return (text, 0);
    }
    let (from, to) = if coming {
        (tail_start(&text, WINDOW), text.len())
    } else {
        let mut to = WINDOW;
        while !text.is_char_boundary(to) {
            to -= 1;
        }
        (0, to)
    };
    let left_out = text.len() - (to - from);
    let text = match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[from..to]),
        Cow::Owned(text) => Cow::Owned(text[from..to].to_owned()),
    };
    (text, left_out)
}
