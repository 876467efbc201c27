//! Reads keys on a dedicated thread, so that a busy loop or runtime does not delay them, and a
//! Ctrl-C that the loop does not answer is noticed.
//!
//! Before keys are read, it asks the terminal for its background colour. Everything that arrives
//! meanwhile goes through the parser of keys, so no key is lost, and a late answer is not read as
//! keys.

pub mod parser;
mod sequence;

use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::mpsc as std_mpsc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use std::{io, thread};

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use futures::Stream;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::mpsc;

use self::parser::Parser;

/// Capacity of the queue to the loop, in events. If the loop hangs, later events are dropped.
const QUEUE_EVENTS: usize = 1 << 16;

/// Bytes read at once.
const CHUNK: usize = 4096;

/// How long to wait for the thread's end.
const JOIN_TIMEOUT: Duration = Duration::from_millis(200);

/// A terminal's events as a stream. Dropping it stops the reading, so that the next program that
/// uses the terminal gets all bytes.
#[derive(Debug)]
pub struct Keyboard {
    events: mpsc::Receiver<io::Result<Event>>,
    /// Closed to stop the thread.
    going: Option<PipeWriter>,
    /// Closed by the thread when it has stopped.
    ended: std_mpsc::Receiver<()>,
}

impl Keyboard {
    /// Starts reading a terminal, after the input that was read before. `pass` is called on the reading
    /// thread with each event and a function that sends it to the loop.
    ///
    /// # Errors
    /// If a thread or pipe cannot be created.
    pub fn read(
        tty: OwnedFd,
        start: KeyboardStart,
        pass: impl FnMut(Event, &dyn Fn(Event)) + Send + 'static,
    ) -> io::Result<Self> {
        let (gone, going) = io::pipe()?;
        let (give, events) = mpsc::channel(QUEUE_EVENTS);
        let (reads, ended) = std_mpsc::channel();
        thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
            read(&tty, &gone, &give, start, pass);
            drop(reads);
        })?;
        Ok(Self { events, going: Some(going), ended })
    }
}

impl Stream for Keyboard {
    type Item = io::Result<Event>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_recv(cx)
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        drop(self.going.take());
        // The thread only waits for the terminal or for this signal. If another program has taken
        // the bytes that `poll` reported, its read blocks, and it is abandoned.
        let _ = self.ended.recv_timeout(JOIN_TIMEOUT);
    }
}

/// Whether the event is Ctrl-C.
pub fn is_interrupt(event: &Event) -> bool {
    matches!(event, Event::Key(key)
        if key.code == KeyCode::Char('c')
            && key.modifiers == KeyModifiers::CONTROL
            && key.kind != KeyEventKind::Release)
}

/// Reads until the stream is dropped or the terminal is closed.
fn read(
    tty: &OwnedFd,
    gone: &PipeReader,
    events: &mpsc::Sender<io::Result<Event>>,
    mut start: KeyboardStart,
    mut pass: impl FnMut(Event, &dyn Fn(Event)),
) {
    let mut chunk = [0; CHUNK];
    let mut give = |event: Event| {
        pass(event, &|event| {
            // If the queue is full, the event is dropped.
            let _ = events.try_send(Ok(event));
        });
    };
    std::mem::take(&mut start.events).into_iter().for_each(&mut give);
    let failed = loop {
        let woken = wait(tty, gone, &start.parser);
        start.give_up_late_answer();
        let parser = &mut start.parser;
        match woken {
            Ok(KeyboardWakeup::Gone) => return,
            Ok(KeyboardWakeup::Silent) => {
                parser.on_timeout(&mut give);
                continue;
            }
            Ok(KeyboardWakeup::Bytes) => {}
            Err(Errno::INTR) => continue,
            Err(error) => break error.into(),
        }
        match rustix::io::read(tty, &mut chunk) {
            Ok(0) => break io::ErrorKind::UnexpectedEof.into(),
            Ok(read) => parser.feed(&chunk[..read], &mut give),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => break error.into(),
        }
    };
    // If the queue is full, the stream just ends.
    let _ = events.try_send(Err(failed));
}

enum KeyboardWakeup {
    Bytes,
    Silent,
    Gone,
}

fn wait(tty: &OwnedFd, gone: &PipeReader, parser: &Parser) -> rustix::io::Result<KeyboardWakeup> {
    let mut both = [
        PollFd::from_borrowed_fd(tty.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(gone.as_fd(), PollFlags::IN),
    ];
    let patience = parser.timeout().and_then(|patience| Timespec::try_from(patience).ok());
    let woken = poll(&mut both, patience.as_ref())?;
    if both[0].revents().contains(PollFlags::NVAL) {
        // Some systems cannot poll `/dev/tty`.
        return Err(Errno::NOTSUP);
    }
    Ok(match both.map(|fd| fd.revents().is_empty()) {
        _ if woken == 0 => KeyboardWakeup::Silent,
        [_, false] => KeyboardWakeup::Gone,
        _ => KeyboardWakeup::Bytes,
    })
}

/// The question for the background colour, then the one for the terminal's attributes, which every
/// terminal answers: its answer alone means that the colour stays unknown. The first one ends with
/// BEL, since some versions of urxvt answer the other end with half of it.
pub const QUESTION: &[u8] = b"\x1b]11;?\x07\x1b[c";

/// How long the answer may delay the first frame.
pub const ANSWER_TIMEOUT: Duration = Duration::from_millis(50);

/// How long a late answer is expected. Until then a lone Escape waits at least a quarter of a second.
const LATE: Duration = Duration::from_secs(5);

/// What the reader of keys starts with.
#[derive(Debug, Default)]
pub struct KeyboardStart {
    /// The parser, which may be within a sequence.
    pub(crate) parser: Parser,
    /// Events that have not been passed on yet.
    pub(crate) events: Vec<Event>,
    /// When the terminal was asked.
    asked: Option<Instant>,
}

impl KeyboardStart {
    /// Sets how long a lone ESC waits for the rest of a sequence before it is the Escape key.
    pub fn set_escape_timeout(&mut self, timeout: Duration) {
        self.parser.set_escape_timeout(timeout);
    }

    /// Stops expecting an answer that is too late to come.
    fn give_up_late_answer(&mut self) {
        if self.asked.is_some_and(|asked| asked.elapsed() > LATE) {
            self.parser.give_up_reply();
            self.asked = None;
        }
    }
}

/// Asks, and waits for at most [`ANSWER_TIMEOUT`]. Returns the colour as the terminal writes it; other
/// input is kept in `start`.
pub fn ask_background(
    tty: &impl AsFd,
    start: &mut KeyboardStart,
    write: impl FnOnce(&[u8]) -> io::Result<()>,
) -> Option<Vec<u8>> {
    // The reader of keys reports a terminal that was closed.
    write(QUESTION).ok()?;
    let asked = Instant::now();
    start.asked = Some(asked);
    start.parser.await_reply();
    let mut colour = None;
    while colour.is_none() && start.parser.awaits_reply() {
        let left = ANSWER_TIMEOUT.saturating_sub(asked.elapsed());
        if left.is_zero() || !read_some(tty, left, start) {
            break;
        }
        colour = start.parser.take_colour();
    }
    colour
}

/// Reads the input that arrives within this time; `false`: nothing, or the terminal cannot be read.
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
    use futures::StreamExt;

    use super::*;

    #[tokio::test]
    async fn delivers_keys_and_lone_escape() {
        let (mut keys, tty) = UnixStream::pair().expect("a pair");
        let (passed, seen) = std::sync::mpsc::channel();
        let pass = move |event: Event, give: &dyn Fn(Event)| {
            passed.send(event.clone()).expect("the test looks");
            give(event);
        };
        let mut keyboard =
            Keyboard::read(tty.into(), KeyboardStart::default(), pass).expect("a thread");
        keys.write_all(b"a\x1b[A\x1b").expect("typed");
        for code in [KeyCode::Char('a'), KeyCode::Up, KeyCode::Esc] {
            let next = keyboard.next().await.expect("a key").expect("read");
            assert_eq!(next, Event::Key(code.into()));
        }
        keys.write_all(b"\x1b[<\x03").expect("typed");
        let last = keyboard.next().await.expect("a key").expect("read");
        assert!(is_interrupt(&last), "{last:?}");
        assert_eq!(seen.iter().take(4).last(), Some(last));
        drop(keys);
        let end = keyboard.next().await.expect("an end").expect_err("nobody is there");
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn stopped_reader_leaves_bytes_to_next() {
        let (mut keys, tty) = UnixStream::pair().expect("a pair");
        let same = || tty.try_clone().expect("the same terminal").into();
        let mut first = Keyboard::read(same(), KeyboardStart::default(), |event, give| give(event))
            .expect("a thread");
        keys.write_all(b"a").expect("typed");
        first.next().await.expect("a key").expect("read");
        drop(first);
        keys.write_all(b"b").expect("typed");
        let mut second =
            Keyboard::read(same(), KeyboardStart::default(), |event, give| give(event))
                .expect("a thread");
        let next = second.next().await.expect("a key").expect("read");
        assert_eq!(next, Event::Key(KeyCode::Char('b').into()));
    }

    /// What comes of the question at a terminal that sends these bytes at once.
    fn asked(answer: &[u8]) -> (Option<Vec<u8>>, KeyboardStart) {
        let (mut terminal, tty) = UnixStream::pair().expect("a pair");
        let mut written = Vec::new();
        let mut start = KeyboardStart::default();
        let colour = ask_background(&tty, &mut start, |bytes| {
            written.extend_from_slice(bytes);
            terminal.write_all(answer)
        });
        assert_eq!(written, QUESTION);
        (colour, start)
    }

    fn keys(start: &KeyboardStart) -> Vec<KeyCode> {
        let code = |event: &Event| match event {
            Event::Key(key) => key.code,
            other => panic!("{other:?}"),
        };
        start.events.iter().map(code).collect()
    }

    #[test]
    fn reads_reply_and_keeps_surrounding_keys() {
        let (colour, start) = asked(b"j\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62;22ck");
        assert_eq!(colour.as_deref(), Some(&b"rgb:ffff/ffff/ffff"[..]));
        assert_eq!(keys(&start), [KeyCode::Char('j'), KeyCode::Char('k')]);
        assert!(!start.parser.awaits_reply());
    }

    #[test]
    fn unanswered_question_delays_nothing() {
        let (colour, start) = asked(b"\x1b[?6cq");
        assert_eq!(colour, None);
        assert_eq!(keys(&start), [KeyCode::Char('q')]);
    }

    #[test]
    fn silent_or_closed_terminal_keeps_keys() {
        let (colour, mut start) = asked(b"q\x1b]11;rgb:ff");
        assert_eq!((colour, keys(&start)), (None, vec![KeyCode::Char('q')]));
        let mut events = Vec::new();
        start.parser.feed(b"ff/ffff/ffff\x07\x1b[?6ck", |event| events.push(event));
        assert_eq!(events, [Event::Key(KeyCode::Char('k').into())], "the rest is dropped");
        let (_, tty) = UnixStream::pair().expect("a pair");
        let closed = |_: &[u8]| Err(io::ErrorKind::BrokenPipe.into());
        assert_eq!(ask_background(&tty, &mut KeyboardStart::default(), closed), None);
    }
}
