//! Reads keys on a dedicated thread, so that a busy loop or runtime does not delay them, and a
//! Ctrl-C that the loop does not answer is noticed.

pub mod parser;
mod question;
mod reply;
mod sequence;

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::mpsc as std_mpsc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use futures::Stream;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::mpsc;

use self::parser::Parser;
pub use self::question::{KeyboardStart, ask_background};

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
    /// Starts reading a terminal, after what has been read before. `pass` is called on the reading thread with each event and a
    /// function that sends it to the loop.
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use futures::StreamExt;

    use super::*;

    #[tokio::test]
    async fn keys_come_as_they_are_typed_and_a_lone_escape_comes_too() {
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
    async fn who_stops_reading_leaves_the_bytes_to_the_next() {
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
}
