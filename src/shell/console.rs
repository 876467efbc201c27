//! The terminal as the loop uses it: output of frames, input of keys, and handing it over to the
//! shell or another program. Tests have their own implementation.

use std::io;
use std::path::Path;

use crossterm::event::Event;
use futures::Stream;
use ratatui::layout::Size;

#[cfg(unix)]
use super::keyboard::{KeyboardStart, ask_background};
use super::screen::{self, ScreenGuard};
use super::surface::{Canvas, Surface};
use super::terminal_program;
use super::tty::terminal_size;
use super::watchdog::Watchdog;

/// Source of keys: on Unix our own thread, elsewhere crossterm's.
#[cfg(unix)]
type Keys = super::keyboard::Keyboard;
#[cfg(not(unix))]
type Keys = crossterm::event::EventStream;

/// Shows a text and returns when the operator leaves it.
pub type Pager = Box<dyn FnOnce(&str) -> io::Result<()> + Send>;

/// Opens a file in an editor and returns when the operator leaves it.
pub type Editor = Box<dyn FnOnce(&Path) -> io::Result<()> + Send>;

/// A terminal.
pub trait Console {
    /// Destination of frames.
    type FrameSurface: Surface;
    /// Source of keys. Dropped before the terminal is handed over.
    type KeyInput: Stream<Item = io::Result<Event>> + Unpin;

    /// Creates the surface for drawing; called once.
    ///
    /// # Errors
    /// If the surface cannot be created.
    fn surface(&mut self) -> io::Result<Self::FrameSurface>;
    /// Starts reading keys.
    ///
    /// # Errors
    /// If they cannot be read.
    fn input(&mut self) -> io::Result<Self::KeyInput>;
    /// The current size.
    fn size(&self) -> Size;
    /// Restores the terminal for another program.
    fn leave(&mut self);
    /// Takes the terminal back after [`leave`](Self::leave).
    ///
    /// # Errors
    /// If it has been closed.
    fn enter(&mut self) -> io::Result<()>;
    /// Suspends the program; returns when it resumes. `false`: it could not be suspended.
    fn stop(&mut self) -> bool;
    /// The function that shows a text in the operator's pager and returns when the pager ends. It
    /// runs on its own thread while the pager has the terminal.
    fn pager(&self) -> Pager;
    /// The function that opens a file in the operator's editor, as [`pager`](Self::pager) does.
    fn editor(&self) -> Editor;
    /// Asks the program that has the terminal to end, or kills it (`now`).
    fn end_program(&mut self, _now: bool) {}
    /// Restores the terminal for the shell after a program was ended.
    fn reclaim(&mut self) {}
    /// Reports that the loop is not stuck.
    fn heartbeat(&self) {}
    /// Reports that the loop has taken a signal to end.
    fn end_taken(&self) {}
}

/// The terminal that the program was started in.
pub struct Tty {
    screen: ScreenGuard,
    warden: Watchdog,
    /// What came while the terminal was asked.
    #[cfg(unix)]
    start: KeyboardStart,
}

impl Tty {
    /// Takes the terminal, with its title (`titled`). The warden ends the program if the loop does not
    /// answer Ctrl-C.
    ///
    /// # Errors
    /// As [`ScreenGuard::take`].
    pub fn take(warden: Watchdog, titled: bool) -> io::Result<Self> {
        Ok(Self {
            screen: ScreenGuard::take(titled)?,
            warden,
            #[cfg(unix)]
            start: KeyboardStart::default(),
        })
    }

    /// The terminal's background colour as it writes it (`rgb:ffff/ffff/ffff`), if it answers within
    /// 50 ms. To be called before keys are read.
    #[cfg(unix)]
    pub fn ask_background(&mut self) -> Option<Vec<u8>> {
        let (colour, start) = ask_background(&io::stdin(), screen::write);
        self.start = start;
        colour
    }

    /// The terminal's background colour, which is not queried on this system.
    #[cfg(not(unix))]
    pub fn ask_background(&mut self) -> Option<Vec<u8>> {
        None
    }
}

impl Console for Tty {
    type FrameSurface = Canvas;
    type KeyInput = Keys;

    fn surface(&mut self) -> io::Result<Canvas> {
        // `write_frame` drops a frame that is still queued after the terminal was restored.
        Canvas::new(self.size(), screen::write_frame)
    }

    #[cfg(unix)]
    fn input(&mut self) -> io::Result<Keys> {
        use std::os::fd::AsFd;

        use super::keyboard::is_interrupt;
        use super::watchdog::EndRequest;
        let warden = self.warden.clone();
        Keys::read(
            io::stdin().as_fd().try_clone_to_owned()?,
            std::mem::take(&mut self.start),
            move |event, give| match is_interrupt(&event) {
                true => warden.request_end(EndRequest::Interrupt, || give(event)),
                false => give(event),
            },
        )
    }

    #[cfg(not(unix))]
    fn input(&mut self) -> io::Result<Keys> {
        Ok(Keys::new())
    }

    fn size(&self) -> Size {
        terminal_size()
    }

    fn leave(&mut self) {
        self.screen.leave();
    }

    fn enter(&mut self) -> io::Result<()> {
        self.screen.enter()
    }

    #[cfg(unix)]
    fn stop(&mut self) -> bool {
        use signal_hook::{consts::SIGTSTP, low_level::emulate_default_handler};
        emulate_default_handler(SIGTSTP)
            .inspect_err(|error| tracing::warn!("cannot suspend: {error}"))
            .is_ok()
    }

    #[cfg(not(unix))]
    fn stop(&mut self) -> bool {
        false
    }

    fn pager(&self) -> Pager {
        Box::new(terminal_program::show_in_pager)
    }

    fn editor(&self) -> Editor {
        Box::new(terminal_program::edit)
    }

    fn end_program(&mut self, now: bool) {
        terminal_program::stop(now);
    }

    fn reclaim(&mut self) {
        screen::restore_after_program();
    }

    fn heartbeat(&self) {
        self.warden.heartbeat();
    }

    fn end_taken(&self) {
        self.warden.end_taken();
    }
}
