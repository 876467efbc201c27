//! The drawing surface of the loop. A frame becomes bytes, which a dedicated thread writes to the
//! terminal, one frame at a time. On a stalled link frames are skipped, and keys and events are not
//! delayed.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::{io, thread};

use crossterm::queue;
use crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use ratatui::backend::{Backend, ClearType, CrosstermBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};
use tokio::sync::Notify;

/// A ratatui backend that outputs whole frames.
pub trait Surface: Backend<Error = io::Error> {
    /// Sets the terminal's new size.
    fn set_size(&mut self, size: Size);
    /// Sends other bytes, such as those for the clipboard, after the last frame.
    fn send(&mut self, bytes: Vec<u8>);
    /// Whether a frame is still being written.
    fn is_busy(&self) -> bool;
    /// Waits until no frame is being written.
    fn idle(&self) -> impl Future<Output = ()> + use<Self>;
    /// Whether the terminal was closed.
    fn is_lost(&self) -> bool;
    /// Forgets the known state of the terminal, since another program has drawn on it.
    fn forget(&mut self);
}

/// State shared by the loop and the writing thread.
#[derive(Debug, Default)]
struct FrameQueueState {
    queued: AtomicUsize,
    lost: AtomicBool,
    written: Notify,
}

/// The known state of the terminal's cursor. Ratatui sets it at every frame; it is written only
/// when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cursor {
    Unknown,
    Hidden,
    At(Position),
}

/// The bytes of the current frame.
#[derive(Debug, Clone, Default)]
struct FrameBytes(Arc<Mutex<Vec<u8>>>);

impl FrameBytes {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for FrameBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The terminal as a surface that frames are drawn on.
pub struct Canvas {
    pen: CrosstermBackend<FrameBytes>,
    ink: FrameBytes,
    size: Size,
    cursor: Cursor,
    wanted_cursor: Option<Position>,
    drawn: bool,
    flight: Arc<FrameQueueState>,
    frames: mpsc::Sender<Vec<u8>>,
}

impl Canvas {
    /// A surface of this size; a dedicated thread passes its bytes to `sink`. After an error of the
    /// sink the surface [is lost](Surface::is_lost).
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn new(
        size: Size,
        mut sink: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let flight = Arc::new(FrameQueueState::default());
        let (frames, queue) = mpsc::channel::<Vec<u8>>();
        let shared = Arc::clone(&flight);
        thread::Builder::new().name("terminal".to_owned()).spawn(move || {
            for bytes in queue {
                if let Err(error) = sink(&bytes) {
                    tracing::warn!("the terminal was closed: {error}");
                    shared.lost.store(true, Ordering::Release);
                }
                shared.queued.fetch_sub(1, Ordering::AcqRel);
                shared.written.notify_waiters();
            }
        })?;
        let ink = FrameBytes::default();
        Ok(Self {
            pen: CrosstermBackend::new(ink.clone()),
            ink,
            size,
            cursor: Cursor::Unknown,
            wanted_cursor: None,
            drawn: false,
            flight,
            frames,
        })
    }

    fn queue_frame(&mut self, bytes: Vec<u8>) {
        if self.flight.lost.load(Ordering::Acquire) {
            return;
        }
        self.flight.queued.fetch_add(1, Ordering::AcqRel);
        if self.frames.send(bytes).is_err() {
            self.flight.lost.store(true, Ordering::Release);
            self.flight.queued.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Surface for Canvas {
    fn set_size(&mut self, size: Size) {
        self.size = size;
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.queue_frame(bytes);
    }

    fn is_busy(&self) -> bool {
        self.flight.queued.load(Ordering::Acquire) > 0
    }

    fn idle(&self) -> impl Future<Output = ()> + use<> {
        let flight = Arc::clone(&self.flight);
        async move {
            loop {
                let landed = flight.written.notified();
                if flight.queued.load(Ordering::Acquire) == 0 {
                    return;
                }
                landed.await;
            }
        }
    }

    fn is_lost(&self) -> bool {
        self.flight.lost.load(Ordering::Acquire)
    }

    fn forget(&mut self) {
        self.cursor = Cursor::Unknown;
    }
}

impl Backend for Canvas {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut content = content.peekable();
        if content.peek().is_some() {
            self.drawn = true;
            if self.cursor != Cursor::Hidden {
                self.cursor = Cursor::Unknown;
            }
            self.pen.draw(content)?;
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.wanted_cursor = None;
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        // A query to the terminal would wait for a reply that the reader of keys consumes.
        Ok(self.wanted_cursor.unwrap_or_default())
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.wanted_cursor = Some(position.into());
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.drawn = true;
        self.pen.clear()
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.drawn = true;
        self.pen.clear_region(region)
    }

    fn size(&self) -> io::Result<Size> {
        Ok(self.size)
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size, pixels: Size::default() })
    }

    /// Ends the frame; an unchanged frame writes nothing.
    fn flush(&mut self) -> io::Result<()> {
        let wanted = self.wanted_cursor.map_or(Cursor::Hidden, Cursor::At);
        if self.cursor != wanted {
            match self.wanted_cursor {
                Some(at) => {
                    self.pen.set_cursor_position(at)?;
                    self.pen.show_cursor()?;
                }
                None => self.pen.hide_cursor()?,
            }
            self.cursor = wanted;
            self.drawn = true;
        }
        if !std::mem::take(&mut self.drawn) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        queue!(bytes, BeginSynchronizedUpdate)?;
        bytes.append(&mut self.ink.bytes());
        queue!(bytes, EndSynchronizedUpdate)?;
        self.queue_frame(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui::Terminal;

    use super::*;

    /// A terminal that accepts one frame for each message on the returned sender.
    fn stalled(size: Size) -> (Terminal<Canvas>, mpsc::Sender<()>, mpsc::Receiver<Vec<u8>>) {
        let (let_go, gate) = mpsc::channel::<()>();
        let (seen, written) = mpsc::channel();
        let canvas = Canvas::new(size, move |bytes| {
            gate.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            let _ = seen.send(bytes.to_vec());
            Ok(())
        });
        (Terminal::new(canvas.expect("a thread")).expect("a terminal"), let_go, written)
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    const SOON: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn writes_whole_frame_or_nothing() {
        let (mut terminal, let_go, written) = stalled(Size::new(20, 2));
        let draw = |terminal: &mut Terminal<Canvas>, word: &str| {
            let word = word.to_owned();
            terminal.draw(|frame| frame.render_widget(word, frame.area())).expect("drawn");
        };
        draw(&mut terminal, "hello");
        assert!(terminal.backend().is_busy(), "the link is slow");
        let_go.send(()).expect("let go");
        terminal.backend().idle().await;
        let first = text(&written.recv_timeout(SOON).expect("written"));
        assert!(first.contains("hello") && first.contains("\x1b[?25l"), "{first:?}");
        assert!(first.starts_with("\x1b[?2026h") && first.ends_with("\x1b[?2026l"), "{first:?}");

        draw(&mut terminal, "hello");
        assert!(!terminal.backend().is_busy(), "no byte for a frame without news");
        draw(&mut terminal, "hullo");
        let_go.send(()).expect("let go");
        terminal.backend().idle().await;
        let second = text(&written.recv_timeout(SOON).expect("written"));
        assert!(second.contains('u') && !second.contains("hello"), "{second:?}");
        assert!(!second.contains("\x1b[?25"), "the cursor is hidden already: {second:?}");
    }

    #[tokio::test]
    async fn reports_lost_terminal() {
        let (mut terminal, let_go, _written) = stalled(Size::new(20, 2));
        drop(let_go);
        terminal.draw(|frame| frame.render_widget("x", frame.area())).expect("drawn");
        terminal.backend().idle().await;
        assert!(terminal.backend().is_lost());
        terminal.backend_mut().send(b"more".to_vec());
        assert!(!terminal.backend().is_busy(), "nothing more is sent");
    }
}
