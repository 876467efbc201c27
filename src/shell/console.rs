//! The terminal as the loop needs it: where frames go, where keys come from, and how it is given
//! away for a while. Tests bring a console of their own.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use crossterm::event::{Event, EventStream};
use futures::Stream;
use ratatui::layout::Size;

use super::screen::{self, Screen};
use super::surface::{Canvas, Surface};

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
    fn input(&mut self) -> Self::Input;
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
}

/// The terminal that the program was started in.
pub struct Tty {
    screen: Screen,
}

impl Tty {
    /// Takes the terminal.
    ///
    /// # Errors
    /// As [`Screen::take`].
    pub fn take() -> io::Result<Self> {
        Ok(Self { screen: Screen::take()? })
    }
}

impl Console for Tty {
    type Surface = Canvas;
    type Input = EventStream;

    fn surface(&mut self) -> io::Result<Canvas> {
        // A frame that was under way when the terminal was given away is not drawn on the shell.
        Canvas::new(self.size(), screen::write_frame)
    }

    fn input(&mut self) -> EventStream {
        EventStream::new()
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
        Box::new(page)
    }
}

/// Shows a text in `$PAGER`, else `less`, else `more`.
fn page(text: &str) -> io::Result<()> {
    let wanted = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let pagers = match &wanted {
        Some(pager) => vec![pager.as_str()],
        None => vec!["less", "more"],
    };
    let mut failed = io::Error::from(io::ErrorKind::NotFound);
    for pager in pagers {
        match shell(pager).stdin(Stdio::piped()).spawn() {
            Ok(mut child) => {
                if let Some(mut stdin) = child.stdin.take() {
                    // A pager that is left early reads no further.
                    let _ = stdin.write_all(text.as_bytes());
                }
                let status = child.wait()?;
                if status.success() || status.code() != Some(127) {
                    return Ok(());
                }
                failed = io::Error::new(io::ErrorKind::NotFound, format!("no pager `{pager}`"));
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

#[cfg(unix)]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command);
    shell
}

#[cfg(not(unix))]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("cmd");
    shell.arg("/C").arg(command);
    shell
}
