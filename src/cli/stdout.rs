//! The only way to standard output: text for people is made safe here, and a
//! stream that cannot be written gives the exit code.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use super::exit::Exit;
use super::message::print_message;
use crate::base::visible::visible_output;

/// Whether standard output was closed when the program started (`>&-`).
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Notes that standard output is closed. Called before `main`: from then on descriptor 1 is `/dev/null`,
/// which Rust opens in its place.
pub fn note_closed() {
    CLOSED.store(true, Ordering::Relaxed);
}

/// Whether standard output is a terminal.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Standard output as it is, without a buffer, for data that a program reads: exported logs, JSON,
/// pictures, scripts.
pub struct Stdout(io::Result<File>);

fn closed() -> io::Error {
    io::Error::other("standard output is closed")
}

/// Checks before a run starts that standard output is open: otherwise a live run would be paid for, and its
/// outcome could not be written. The error has been printed.
pub fn check_open() -> Result<(), Exit> {
    if CLOSED.load(Ordering::Relaxed) {
        print_message(&format!("nothing was started: {}", closed()));
        return Err(Exit::Stopped);
    }
    Ok(())
}

/// Standard output for data.
pub fn data() -> Stdout {
    if CLOSED.load(Ordering::Relaxed) {
        return Stdout(Err(closed()));
    }
    // The standard library's stream takes a descriptor that cannot be written for one that can.
    #[cfg(unix)]
    let file = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned().map(File::from);
    #[cfg(windows)]
    let file = std::os::windows::io::AsHandle::as_handle(&io::stdout())
        .try_clone_to_owned()
        .map(File::from);
    Stdout(file)
}

impl Stdout {
    fn file(&mut self) -> io::Result<&mut File> {
        match &mut self.0 {
            Ok(file) => Ok(file),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file()?.flush()
    }
}

/// A stream of text, with a buffer. Whatever text comes, no more than styles reaches a terminal.
pub struct TextStream<W: Write> {
    to: BufWriter<W>,
    styled: bool,
}

impl<W: Write> TextStream<W> {
    /// A stream to `to`; `styled` if this program's styles stay.
    pub fn new(to: W, styled: bool) -> Self {
        Self { to: BufWriter::new(to), styled }
    }

    /// Writes a text.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.to.write_all(visible_output(text, self.styled).as_bytes())
    }

    /// Writes data that is safe already, such as JSON.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn data(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)
    }

    /// Writes what the buffer holds.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Writes a text; its styles stay on a terminal. Returns `exit` if all of it was written, else as
/// [`exit_after_write`].
pub fn print(text: &str, exit: Exit) -> Exit {
    let mut out = TextStream::new(data(), is_terminal());
    exit_after_write(out.text(text).and_then(|()| out.flush()), exit)
}

/// Writes data as it is: for files and other programs.
pub fn print_data(text: &str, exit: Exit) -> Exit {
    let mut out = data();
    exit_after_write(out.write_all(text.as_bytes()).and_then(|()| out.flush()), exit)
}

/// The exit code after writing: `exit`, or a failure if the output could not be written. A command's own
/// failure is more important than the output's.
pub fn exit_after_write(written: io::Result<()>, exit: Exit) -> Exit {
    let Err(why) = written else { return exit };
    let failed = match why.kind() {
        // As for other programs of a pipeline, `head` needs no message.
        io::ErrorKind::BrokenPipe => Exit::CutOff,
        _ => {
            print_message(&match CLOSED.load(Ordering::Relaxed) {
                true => why.to_string(),
                false => format!("cannot write to standard output: {why}"),
            });
            Exit::Stopped
        }
    };
    if exit == Exit::Ok { failed } else { exit }
}
