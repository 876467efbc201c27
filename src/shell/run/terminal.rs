//! Who has the terminal: this program, the shell or the pager; and how it is restored at the end.

use std::io;
use std::time::Duration;

use ratatui::layout::{Rect, Size};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::{DashboardLoop, TerminalHandoff};
use crate::app::{AppState, KeyPress, Msg};
use crate::shell::console::Console;
use crate::shell::signals::{self, ProcessSignal};
use crate::shell::surface::Surface;

/// How long to wait for a frame that is being written before the terminal is handed over.
const FRAME_TIMEOUT: Duration = Duration::from_millis(500);

/// How long after the pager's end a signal may still be meant for the pager.
const PAGER_SIGNAL_WINDOW: Duration = Duration::from_secs(1);

/// How long to wait for cancelled runs at the program's end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// How long to wait for the pager's end before it is killed.
const PAGER_TIMEOUT: Duration = Duration::from_millis(300);

impl<C: Console> DashboardLoop<C> {
    pub(super) fn on_signal(&mut self, signal: ProcessSignal) -> io::Result<()> {
        if matches!(signal, ProcessSignal::End(_)) {
            self.console.end_taken();
        }
        match signal {
            // Ctrl-C in the pager reaches both processes; it is meant for the pager, which may
            // have ended before the signal arrives here.
            ProcessSignal::End(signals::INTERRUPTED)
                if self.pager.is_some()
                    || self.pager_ended.is_some_and(|at| at.elapsed() < PAGER_SIGNAL_WINDOW) => {}
            ProcessSignal::End(code) => self.update(Msg::Terminate { code }),
            ProcessSignal::Suspend if self.pager.is_some() => {
                self.resume_expected = self.console.stop()
            }
            ProcessSignal::Suspend => self.update(Msg::Key(KeyPress::ctrl('z'))),
            ProcessSignal::Resumed
                if std::mem::take(&mut self.resume_expected) || self.pager.is_some() => {}
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

    /// Hands over the terminal: to the shell until the program resumes, or to the pager, while
    /// events are still folded.
    pub(super) async fn hand_over_terminal(&mut self, errand: TerminalHandoff) -> io::Result<()> {
        if self.pager.is_some() {
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
                self.pager = Some(tokio::task::spawn_blocking(move || pager(&text)));
            }
        }
        Ok(())
    }

    pub(super) fn on_paged(&mut self, ended: io::Result<()>) -> io::Result<()> {
        self.pager = None;
        self.pager_ended = Some(Instant::now());
        self.acquire_terminal()?;
        if let Err(error) = ended {
            let text = format!("{error}; set PAGER to an installed program");
            self.update(Msg::EffectFailed { what: "pager", text });
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

    /// Ends every run, the pager and the last frame concurrently, then folds the remaining events.
    /// Keys are read until then, so a second Ctrl-C ends the program immediately.
    pub(super) async fn shut_down(mut self) -> AppState {
        let engine = std::sync::Arc::clone(&self.services.engine);
        let runs = timeout(SHUTDOWN_TIMEOUT, engine.shutdown());
        let frame = timeout(FRAME_TIMEOUT, self.terminal.backend().idle());
        let pager = end_pager(&mut self.console, self.pager.take());
        let (runs, _, ()) = tokio::join!(runs, frame, pager);
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

/// Ends the pager and restores the terminal for the shell.
async fn end_pager<C: Console>(console: &mut C, pager: Option<JoinHandle<io::Result<()>>>) {
    let Some(mut pager) = pager else { return };
    console.end_pager(false);
    if timeout(PAGER_TIMEOUT, &mut pager).await.is_err() {
        console.end_pager(true);
        let _ = timeout(PAGER_TIMEOUT, pager).await;
    }
    console.reclaim();
}
