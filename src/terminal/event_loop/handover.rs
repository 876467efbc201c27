//! Which program has the terminal: this one, the shell, the pager or the editor; why it was handed
//! over, and how it is restored.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use ratatui::layout::{Rect, Size};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::DashboardLoop;
use crate::base::read_file::read_file;
use crate::screen::{AppState, KeyPress, Msg};
use crate::terminal::console::Console;
use crate::terminal::effects::{ArgsFile, scenario_files};
use crate::terminal::signals;
use crate::terminal::signals::ProcessSignal;
use crate::terminal::surface::Surface;

/// How long to wait for a frame that is being written before the terminal is handed over.
const FRAME_TIMEOUT: Duration = Duration::from_millis(500);

/// How long after a program's end a signal may still be meant for it.
const PROGRAM_SIGNAL_WINDOW: Duration = Duration::from_secs(1);

/// How long to wait for cancelled runs at the program's end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Most bytes of edited arguments.
const MAX_ARGS_BYTES: u64 = 1 << 24;

/// How long to wait for the end of the program that has the terminal before it is killed.
const PROGRAM_TIMEOUT: Duration = Duration::from_millis(300);

impl<C: Console> DashboardLoop<C> {
    pub(super) fn on_signal(&mut self, signal: ProcessSignal) -> io::Result<()> {
        if matches!(signal, ProcessSignal::End(_)) {
            self.console.end_taken();
        }
        match signal {
            // Ctrl-C in the pager reaches both processes; it is meant for the pager, which may
            // have ended before the signal arrives here. It is the same with an editor.
            ProcessSignal::End(signals::INTERRUPTED)
                if self.program.is_some()
                    || self
                        .program_ended
                        .is_some_and(|at| at.elapsed() < PROGRAM_SIGNAL_WINDOW) => {}
            ProcessSignal::End(code) => self.update(Msg::Terminate { code }),
            ProcessSignal::Suspend if self.program.is_some() => {
                self.resume_expected = self.console.stop()
            }
            ProcessSignal::Suspend => self.update(Msg::Key(KeyPress::ctrl('z'))),
            ProcessSignal::Resumed
                if std::mem::take(&mut self.resume_expected) || self.program.is_some() => {}
            ProcessSignal::Resumed => {
                // The program was stopped from outside: the terminal may be in the shell's state.
                self.release_terminal();
                self.acquire_terminal()?;
            }
            // The other program gets the signal too; the size is read when that program ends.
            ProcessSignal::Resized if self.input.is_none() => {}
            ProcessSignal::Resized => {
                let Size { width, height } = self.console.size();
                self.on_event(crossterm::event::Event::Resize(width, height));
            }
        }
        Ok(())
    }

    /// Hands over the terminal: to the shell until the program resumes, or to another program, while
    /// events are still folded.
    pub(super) async fn hand_over_terminal(&mut self, errand: TerminalHandoff) -> io::Result<()> {
        if self.program.is_some() {
            return Ok(());
        }
        // Otherwise the rest of the frame would appear on the other program's screen.
        let landed = self.terminal.backend().idle();
        let _ = timeout(FRAME_TIMEOUT, landed).await;
        self.release_terminal();
        match errand {
            TerminalHandoff::Stop => {
                self.resume_expected = self.console.stop();
                self.acquire_terminal()?;
                self.update(Msg::Continued);
            }
            TerminalHandoff::Page(text) => {
                let pager = self.console.pager();
                let task = tokio::task::spawn_blocking(move || pager(&text));
                self.program = Some(TerminalProgram { kind: ProgramKind::Pager, task });
            }
            TerminalHandoff::Edit(path) => {
                let editor = self.console.editor();
                let task = tokio::task::spawn_blocking(move || editor(&path));
                self.program = Some(TerminalProgram { kind: ProgramKind::Editor, task });
            }
            TerminalHandoff::EditArgs(args) => {
                let (editor, path) = (self.console.editor(), args.file.path().to_owned());
                let task = tokio::task::spawn_blocking(move || editor(&path));
                self.program = Some(TerminalProgram { kind: ProgramKind::ArgsEditor(args), task });
            }
        }
        Ok(())
    }

    pub(super) fn on_program_end(&mut self, ended: io::Result<()>) -> io::Result<()> {
        let kind = self.program.take().map_or(ProgramKind::Pager, |program| program.kind);
        self.program_ended = Some(Instant::now());
        self.acquire_terminal()?;
        let (what, variable) = match kind {
            ProgramKind::Pager => ("pager", "PAGER"),
            ProgramKind::Editor | ProgramKind::ArgsEditor(_) => ("editor", "EDITOR"),
        };
        let is_edited = ended.is_ok();
        if let Err(error) = ended {
            let text = match (error.kind(), &kind) {
                (io::ErrorKind::Other, ProgramKind::ArgsEditor(_)) => {
                    format!("{error}; nothing was read")
                }
                (io::ErrorKind::Other, _) => error.to_string(),
                _ => format!("{error}; set {variable} to an installed program"),
            };
            self.update(Msg::EffectFailed { what, text });
        }
        match kind {
            ProgramKind::Pager => {}
            ProgramKind::Editor => scenario_files::rescan(&self.services),
            ProgramKind::ArgsEditor(ArgsFile { run, id, file }) if is_edited => {
                let bytes = read_file(file.path(), MAX_ARGS_BYTES).map_err(|it| it.to_string());
                let text = bytes.and_then(|it| {
                    String::from_utf8(it).map_err(|_| "the file is not UTF-8".to_owned())
                });
                self.update(Msg::ArgsEdited { run, id, text });
            }
            ProgramKind::ArgsEditor(_) => {}
        }
        Ok(())
    }

    /// Hands over the terminal. Stops the reader of keys first: two readers would share the keys.
    fn release_terminal(&mut self) {
        self.input = None;
        self.console.leave();
    }

    fn acquire_terminal(&mut self) -> io::Result<()> {
        self.console.enter()?;
        self.input = Some(self.console.input()?);
        let size = self.console.size();
        let backend = self.terminal.backend_mut();
        backend.forget();
        self.announcer.forget_title();
        backend.set_size(size);
        self.update(Msg::Resize { cols: size.width, rows: size.height });
        self.repaint();
        Ok(())
    }

    /// Redraws the screen. Does not use `Terminal::clear`, which asks the terminal for the cursor's
    /// position and waits for a reply that the reader of keys would consume.
    pub(super) fn repaint(&mut self) {
        let size = self.console.size();
        let area = Rect::new(0, 0, size.width, size.height);
        if let Err(error) = self.terminal.resize(area) {
            tracing::warn!("cannot redraw: {error}");
        }
        self.dirty = true;
    }

    /// Ends every run, the program that has the terminal and the last frame concurrently, then folds the
    /// remaining events. Keys are read until then, so a second Ctrl-C ends the program immediately.
    pub(super) async fn shut_down(mut self) -> AppState {
        let engine = std::sync::Arc::clone(&self.services.engine);
        let runs = timeout(SHUTDOWN_TIMEOUT, engine.shutdown());
        let frame = timeout(FRAME_TIMEOUT, self.terminal.backend().idle());
        let program = end_program(&mut self.console, self.program.take());
        let (runs, _, ()) = tokio::join!(runs, frame, program);
        if runs.is_err() {
            tracing::warn!("quit before every run had ended");
        }
        self.input = None;
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, self.fold_remaining()).await.is_err() {
            tracing::warn!("quit before every event was folded");
        }
        self.state
    }
}

/// Ends the program that has the terminal, and restores the terminal for the shell.
async fn end_program<C: Console>(console: &mut C, program: Option<TerminalProgram>) {
    let Some(TerminalProgram { mut task, .. }) = program else { return };
    console.end_program(false);
    if timeout(PROGRAM_TIMEOUT, &mut task).await.is_err() {
        console.end_program(true);
        let _ = timeout(PROGRAM_TIMEOUT, task).await;
    }
    console.reclaim();
}

/// Why the terminal is handed over.
pub(crate) enum TerminalHandoff {
    /// To the shell: the program is suspended.
    Stop,
    /// To the pager, with this text.
    Page(String),
    /// To the editor, with this file.
    Edit(PathBuf),
    /// To the editor, with the arguments of a call.
    EditArgs(ArgsFile),
}

/// A program that has the terminal.
pub(crate) struct TerminalProgram {
    pub kind: ProgramKind,
    pub task: JoinHandle<io::Result<()>>,
}

/// What a program that gets the terminal does.
pub(crate) enum ProgramKind {
    Pager,
    Editor,
    /// The editor of the arguments of a call.
    ArgsEditor(ArgsFile),
}

/// The end of the program that has the terminal; waits forever if there is none.
pub(crate) async fn end_of(program: &mut Option<TerminalProgram>) -> io::Result<()> {
    match program {
        Some(program) => {
            (&mut program.task).await.unwrap_or_else(|gone| Err(io::Error::other(gone)))
        }
        None => std::future::pending().await,
    }
}
