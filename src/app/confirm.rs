//! A question before something that ends, spends or cannot be taken back.

use ratatui::layout::Rect;

use super::effect::LaunchRequest;
use super::layout::{centred, inside};
use super::state::Size;
use crate::event::RunId;

/// The widest that a question gets.
const COLS: u16 = 68;

/// A question with what follows a yes.
#[derive(Debug)]
pub struct Confirm {
    /// The question.
    pub question: String,
    /// What a person should know first, a line each.
    pub detail: Vec<String>,
    /// What a yes does.
    pub then: Then,
}

/// What a yes does.
#[derive(Debug)]
pub enum Then {
    /// Ends these runs.
    Kill(Vec<RunId>),
    /// Leaves the program.
    Quit {
        /// The exit code.
        code: u8,
    },
    /// Closes the launch form and drops what was changed in it.
    Discard,
    /// Starts a run that does what must be allowed, and trusts its file from now on.
    Trust(Box<LaunchRequest>),
}

impl Confirm {
    /// Before one run is ended.
    pub fn kill(run: &RunId, title: &str) -> Self {
        Self {
            question: format!("End run {run} now?"),
            detail: vec![
                title.to_owned(),
                "What is in flight is cancelled; what was said so far stays.".to_owned(),
            ],
            then: Then::Kill(vec![run.clone()]),
        }
    }

    /// Before every live run is ended.
    pub fn kill_all(runs: Vec<RunId>) -> Self {
        let names: Vec<_> = runs.iter().map(RunId::as_str).collect();
        Self {
            question: match runs.len() {
                1 => "End the one live run now?".to_owned(),
                count => format!("End all {count} live runs now?"),
            },
            detail: vec![
                names.join(", "),
                "What is in flight is cancelled; what was said so far stays.".to_owned(),
            ],
            then: Then::Kill(runs),
        }
    }

    /// Before the program is left while runs are live.
    pub fn quit(live: usize, code: u8) -> Self {
        Self {
            question: match live {
                1 => "One run is live. Quit and end it?".to_owned(),
                count => format!("{count} runs are live. Quit and end them?"),
            },
            detail: vec!["A summary of the session stays on the terminal.".to_owned()],
            then: Then::Quit { code },
        }
    }

    /// Before a changed form is closed.
    pub fn discard() -> Self {
        Self {
            question: "Drop what you changed?".to_owned(),
            detail: vec!["The form was not started.".to_owned()],
            then: Then::Discard,
        }
    }

    /// Before a file from outside does what a person must allow first.
    pub fn trust(request: Box<LaunchRequest>, would: Vec<String>) -> Self {
        let mut detail = would;
        detail.push("The answer is kept for this exact file.".to_owned());
        Self {
            question: format!("Allow \"{}\" this?", request.scenario.title),
            detail,
            then: Then::Trust(request),
        }
    }

    /// Its window at this size.
    pub fn window(&self, size: Size) -> Rect {
        // Lines of its own text, a blank one, the buttons, the border.
        let inner = usize::from(COLS.min(size.cols).saturating_sub(4)).max(1);
        let lines = std::iter::once(&self.question).chain(&self.detail);
        let rows: usize = lines.map(|line| line.chars().count() / inner + 1).sum();
        centred(size.body(), COLS, u16::try_from(rows + 4).unwrap_or(u16::MAX))
    }

    /// Where yes and no stand.
    pub fn buttons(&self, size: Size) -> (Rect, Rect) {
        let inner = inside(self.window(size));
        let row =
            Rect { y: inner.bottom().saturating_sub(1), height: inner.height.min(1), ..inner };
        let yes = Rect { x: row.x + 1, width: 9, ..row }.intersection(row);
        let no = Rect { x: row.x + 12, width: 8, ..row }.intersection(row);
        (yes, no)
    }
}
