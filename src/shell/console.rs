//! The terminal as the loop needs it: where frames go, where keys come from, and how it is given
//! away for a while. Tests bring a console of their own.

use std::io;

use crossterm::event::Event;
use futures::Stream;
use ratatui::layout::Size;

use super::pager;
use super::screen::{self, Screen};
use super::surface::{Canvas, Surface};
use super::warden::Warden;

/// Where keys come from: on Unix a thread of ours, elsewhere crossterm's.
#[cfg(unix)]
type Keys = super::keyboard::Keyboard;
#[cfg(not(unix))]
type Keys = crossterm::event::EventStream;

/// What shows a text and returns when the person has seen enough.
pub type Pager = Box<dyn FnOnce(&str) -> io::Result<()> + Send>;

/// A terminal.
pub trait Console {
    /// Where frames go.
    type Surface: Surface;
    /// Where keys come from. Dropped before the terminal is given away.
    type Input: Stream<Item = io::Result<Event>> + Unpin;

    /// What is drawn on; asked for once.
    ///
    /// # Errors
    /// When nothing can be drawn on.
    fn surface(&mut self) -> io::Result<Self::Surface>;
    /// The keys from now on.
    ///
    /// # Errors
    /// When they cannot be read.
    fn input(&mut self) -> io::Result<Self::Input>;
    /// The size now.
    fn size(&self) -> Size;
    /// Gives the terminal away for a while.
    fn leave(&mut self);
    /// Takes it again.
    ///
    /// # Errors
    /// When it is gone.
    fn enter(&mut self) -> io::Result<()>;
    /// Sends the program to the background; returns when it is back. Whether it was there.
    fn stop(&mut self) -> bool;
    /// What shows a text in the person's pager, and returns when the pager has ended. It is run on
    /// a thread of its own while the terminal is given away.
    fn pager(&self) -> Pager;
    /// Tells the pager to end; `now`: it did not, and is ended.
    fn end_pager(&mut self, _now: bool) {}
    /// Gives the terminal back to the shell after a pager that was ended.
    fn reclaim(&mut self) {}
    /// The loop turns: it is not stuck.
    fn turned(&self) {}
}

/// The terminal that the program was started in.
pub struct Tty {
    screen: Screen,
    warden: Warden,
}

impl Tty {
    /// Takes the terminal; the warden ends the program where its loop answers no Ctrl-C.
    ///
    /// # Errors
    /// As [`Screen::take`].
    pub fn take(warden: Warden) -> io::Result<Self> {
        Ok(Self { screen: Screen::take()?, warden })
    }
}

impl Console for Tty {
    type Surface = Canvas;
    type Input = Keys;

    fn surface(&mut self) -> io::Result<Canvas> {
        // A frame that was under way when the terminal was given away is not drawn on the shell.
        Canvas::new(self.size(), screen::write_frame)
    }

    #[cfg(unix)]
    fn input(&mut self) -> io::Result<Keys> {
        use std::os::fd::AsFd;

        use super::keyboard::is_interrupt;
        use super::warden::Ask;
        let warden = self.warden.clone();
        Keys::read(
            io::stdin().as_fd().try_clone_to_owned()?,
            move |event, give| match is_interrupt(&event) {
                true => warden.asked(Ask::Interrupt, || give(event)),
                false => give(event),
            },
        )
    }

    #[cfg(not(unix))]
    fn input(&mut self) -> io::Result<Keys> {
        Ok(Keys::new())
    }

    fn size(&self) -> Size {
        crossterm::terminal::size().map_or(Size::new(80, 24), |(cols, rows)| Size::new(cols, rows))
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
            .inspect_err(|error| tracing::warn!("cannot go to the background: {error}"))
            .is_ok()
    }

    #[cfg(not(unix))]
    fn stop(&mut self) -> bool {
        false
    }

    fn pager(&self) -> Pager {
        Box::new(pager::show)
    }

    fn end_pager(&mut self, now: bool) {
        pager::end(now);
    }

    fn reclaim(&mut self) {
        screen::give_back_after_pager();
    }

    fn turned(&self) {
        self.warden.turned();
    }
}
