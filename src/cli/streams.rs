//! The only way to standard output and standard error. Text for people is made safe here, styled
//! with the dashboard's theme on a terminal, and a stream that cannot be written gives the exit
//! code.

use std::fs::File;
use std::io;
use std::io::{BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::prelude::IntoCrossterm as _;
use ratatui::style::Style;

use super::exit::Exit;
use crate::base::refused::Refused;
use crate::base::visible::{visible_lines, visible_output};
use crate::screen::theme::{ColourDepth, StateSign, Theme};
use crate::terminal::TerminalFeatures;
use crate::words::glyph::{Glyph, Glyphs};
use crate::words::measure::padded;
use crate::words::styled::{StyleRole, StyledLine};

/// Whether standard output was closed when the program started (`>&-`).
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Notes that standard output is closed. Called before `main`: from then on descriptor 1 is `/dev/null`,
/// which Rust opens in its place.
pub fn note_stdout_closed() {
    CLOSED.store(true, Ordering::Relaxed);
}

/// Whether standard output is a terminal.
pub fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether standard input is a terminal.
pub fn stdin_is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Whether plain mode is on: no style reaches any stream.
static PLAIN: AtomicBool = AtomicBool::new(false);

/// Switches styles off for the whole program.
pub fn use_plain() {
    PLAIN.store(true, Ordering::Relaxed);
}

/// Standard output as it is, without a buffer, for data that a program reads: exported logs, JSON,
/// pictures, scripts.
pub struct Stdout(io::Result<File>);

fn closed() -> io::Error {
    io::Error::other("standard output is closed")
}

/// Checks before a run starts that standard output is open: otherwise a live run would be paid for, and its
/// outcome could not be written. The error has been printed.
pub fn check_stdout() -> Result<(), Exit> {
    if CLOSED.load(Ordering::Relaxed) {
        print_message(&format!("nothing was started: {}", closed()));
        return Err(Exit::Stopped);
    }
    Ok(())
}

/// Standard output for data.
pub fn stdout_data() -> Stdout {
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
    let mut out = TextStream::new(stdout_data(), stdout_is_terminal());
    exit_after_write(out.text(text).and_then(|()| out.flush()), exit)
}

/// Writes data as it is: for files and other programs.
pub fn print_data(text: &str, exit: Exit) -> Exit {
    let mut out = stdout_data();
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

/// Prints a line to standard error, prefixed with the program's name.
pub fn print_message(text: &str) {
    print_on_stderr(&format!("roundtable: {text}\n"), false);
}

/// Prints why a command did not do something, and returns its exit code.
pub fn refuse(why: &Refused, exit: Exit) -> Exit {
    print_message(&why.lines().join("\n  "));
    exit
}

/// Prints a text to standard error; with `styled` its styles stay.
pub fn print_on_stderr(text: &str, styled: bool) {
    let _ = io::stderr().write_all(visible_output(text, styled).as_bytes());
}

/// Passes on what a program of the user has written, as it is. The reader may be gone: the program is watched to
/// its end all the same.
pub fn pass_on(bytes: &[u8]) {
    let mut out = io::stdout();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// The same on standard error.
pub fn pass_on_as_errors(bytes: &[u8]) {
    let _ = io::stderr().write_all(bytes);
}

/// Whether standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Style of the output on one stream.
#[derive(Debug, Clone)]
pub struct StreamStyle {
    theme: Theme,
    colour: bool,
    glyphs: Glyphs,
}

impl StreamStyle {
    /// The style for standard output.
    pub fn of_stdout(theme: Theme, ascii: bool) -> Self {
        Self::new(stdout_is_terminal(), theme, ascii)
    }

    /// The style for standard error.
    pub fn of_stderr(theme: Theme, ascii: bool) -> Self {
        Self::new(stderr_is_terminal(), theme, ascii)
    }

    /// The style for a stream that is a terminal, or not.
    pub fn new(is_terminal: bool, theme: Theme, ascii: bool) -> Self {
        let depth = TerminalFeatures::detect().depth;
        let is_plain = PLAIN.load(Ordering::Relaxed);
        let colour = is_terminal && depth != ColourDepth::Mono && !is_plain;
        Self { theme: theme.with_depth(depth), colour, glyphs: Glyphs::new(ascii) }
    }

    /// Whether colours are used.
    pub fn colour(&self) -> bool {
        self.colour
    }

    /// The theme, at the stream's colour depth.
    pub fn theme(&self) -> &Theme {
        &self.theme
    }

    /// The text of a glyph.
    pub fn glyph(&self, glyph: Glyph) -> &'static str {
        self.glyphs.symbol(glyph)
    }

    /// Applies a style to a text.
    pub fn with(&self, style: Style, text: &str) -> String {
        if self.colour && style != Style::default() {
            // A style in the text itself would end this one.
            style.into_crossterm().apply(visible_lines(text)).to_string()
        } else {
            text.to_owned()
        }
    }

    /// Applies a role's style to a text.
    pub fn role(&self, role: StyleRole, text: &str) -> String {
        self.with(self.theme.style(role), text)
    }

    /// A line with its styles. No blanks follow its last part.
    pub fn line(&self, line: &StyledLine) -> String {
        let mut out = String::new();
        for (at, part) in line.parts.iter().enumerate() {
            let text = match part.glyph {
                Some(glyph) if part.text.is_empty() => self.glyph(glyph).to_owned(),
                Some(glyph) => format!("{} {}", self.glyph(glyph), visible_lines(&part.text)),
                None => visible_lines(&part.text).into_owned(),
            };
            let is_last = at + 1 == line.parts.len();
            let width = if is_last { 0 } else { usize::from(part.width) };
            let text = padded(&text, width);
            match part.role {
                Some(role) => out.push_str(&self.role(role, &text)),
                None => out.push_str(&text),
            }
        }
        out
    }

    /// A state as its glyph and word, styled.
    pub fn sign(&self, sign: StateSign) -> String {
        self.with(sign.style, &format!("{} {}", self.glyph(sign.glyph), sign.word))
    }
}
