//! Asks the terminal for its background colour, before keys are read. Everything that comes
//! meanwhile goes through the parser of keys, so that no key is lost and a late answer is not read as keys.
//! (A library that reads the answer itself drops the keys before it, and leaves the rest of an
//! answer that comes after its timeout to the reader of keys.)

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use crossterm::event::Event;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::parser::Parser;

/// The question for the background colour, then the one for the terminal's attributes, which every
/// terminal answers: its answer alone means that the colour stays unknown. The first one ends with
/// BEL, since some versions of urxvt answer the other end with half of it.
pub const QUESTION: &[u8] = b"\x1b]11;?\x07\x1b[c";

/// How long the answer may delay the first frame.
pub const ANSWER_TIMEOUT: Duration = Duration::from_millis(50);

/// How long a late answer is expected. Until then a lone Escape needs a quarter of a second.
const LATE: Duration = Duration::from_secs(5);

/// What the reader of keys starts with.
#[derive(Debug, Default)]
pub struct KeyboardStart {
    /// The parser, which may be within a sequence.
    pub(super) parser: Parser,
    /// Events that have not been passed on yet.
    pub(super) events: Vec<Event>,
    /// When the terminal was asked.
    asked: Option<Instant>,
}

impl KeyboardStart {
    /// Stops expecting an answer that is too late to come.
    pub(super) fn give_up_late_answer(&mut self) {
        if self.asked.is_some_and(|asked| asked.elapsed() > LATE) {
            self.parser.give_up_reply();
            self.asked = None;
        }
    }
}

/// Asks, and waits for at most [`ANSWER_TIMEOUT`]. Returns the colour as the terminal writes it, and
/// what the reader of keys starts with.
pub fn ask_background(
    tty: &impl AsFd,
    write: impl FnOnce(&[u8]) -> io::Result<()>,
) -> (Option<Vec<u8>>, KeyboardStart) {
    let mut start = KeyboardStart::default();
    // The reader of keys reports a terminal that was closed.
    if write(QUESTION).is_err() {
        return (None, start);
    }
    let asked = Instant::now();
    start.asked = Some(asked);
    start.parser.await_reply();
    let mut colour = None;
    while colour.is_none() && start.parser.awaits_reply() {
        let left = ANSWER_TIMEOUT.saturating_sub(asked.elapsed());
        if left.is_zero() || !read_some(tty, left, &mut start) {
            break;
        }
        colour = start.parser.take_colour();
    }
    (colour, start)
}

/// Reads what comes within this time; `false`: nothing, or the terminal cannot be read.
fn read_some(tty: &impl AsFd, time: Duration, start: &mut KeyboardStart) -> bool {
    let mut input = [PollFd::new(tty, PollFlags::IN)];
    let time = Timespec::try_from(time).unwrap_or_default();
    match poll(&mut input, Some(&time)) {
        Ok(1..) if input[0].revents().contains(PollFlags::IN) => {}
        Err(Errno::INTR) => return true,
        _ => return false,
    }
    let mut chunk = [0; 256];
    match rustix::io::read(tty, &mut chunk) {
        Ok(read @ 1..) => {
            let KeyboardStart { parser, events, .. } = start;
            parser.feed(&chunk[..read], |event| events.push(event));
            true
        }
        Err(Errno::INTR | Errno::AGAIN) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use crossterm::event::KeyCode;

    use super::*;

    /// What comes of the question at a terminal that sends these bytes at once.
    fn asked(answer: &[u8]) -> (Option<Vec<u8>>, KeyboardStart) {
        let (mut terminal, tty) = UnixStream::pair().expect("a pair");
        let mut written = Vec::new();
        let asked = ask_background(&tty, |bytes| {
            written.extend_from_slice(bytes);
            terminal.write_all(answer)
        });
        assert_eq!(written, QUESTION);
        asked
    }

    fn keys(start: &KeyboardStart) -> Vec<KeyCode> {
        let code = |event: &Event| match event {
            Event::Key(key) => key.code,
            other => panic!("{other:?}"),
        };
        start.events.iter().map(code).collect()
    }

    #[test]
    fn an_answer_is_read_and_the_keys_around_it_are_kept() {
        let (colour, start) = asked(b"j\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62;22ck");
        assert_eq!(colour.as_deref(), Some(&b"rgb:ffff/ffff/ffff"[..]));
        assert_eq!(keys(&start), [KeyCode::Char('j'), KeyCode::Char('k')]);
        assert!(!start.parser.awaits_reply());
    }

    #[test]
    fn a_terminal_that_does_not_know_the_question_delays_nothing() {
        let (colour, start) = asked(b"\x1b[?6cq");
        assert_eq!(colour, None);
        assert_eq!(keys(&start), [KeyCode::Char('q')]);
    }

    #[test]
    fn a_terminal_that_does_not_answer_or_is_closed_keeps_the_keys() {
        let (colour, mut start) = asked(b"q\x1b]11;rgb:ff");
        assert_eq!((colour, keys(&start)), (None, vec![KeyCode::Char('q')]));
        let mut events = Vec::new();
        start.parser.feed(b"ff/ffff/ffff\x07\x1b[?6ck", |event| events.push(event));
        assert_eq!(events, [Event::Key(KeyCode::Char('k').into())], "the rest is dropped");
        let (_, tty) = UnixStream::pair().expect("a pair");
        assert_eq!(ask_background(&tty, |_| Err(io::ErrorKind::BrokenPipe.into())).0, None);
    }
}
