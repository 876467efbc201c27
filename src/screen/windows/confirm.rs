//! Questions before actions that end something, cost money or cannot be undone.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::log::event::RunId;
use crate::scenario::{Consent, ConsentAbout};
use crate::screen::action::Action;
use crate::screen::effect::LaunchRequest;
use crate::screen::keymap::key_of;
use crate::screen::layout::{Size, centred, inside, too_small};
use crate::screen::list::moved_index;
use crate::screen::text::Pen;
use crate::screen::{DrawContext, frame};
use crate::words::format::count_noun;
use crate::words::glyph::Glyph;
use crate::words::measure::{single_line, wrap};
use crate::words::styled::StyleRole;

/// Maximum width of the window, in columns.
const COLS: u16 = 68;

/// A question and the action that a yes carries out.
#[derive(Debug)]
pub struct Confirm {
    pub question: String,
    /// What the operator should know before the answer, one line each.
    pub detail: Vec<String>,
    pub on_yes: OnYes,
    /// The first row of its text in view.
    pub top: usize,
    /// Whether the end of its text was in view at least once.
    pub end_seen: bool,
}

/// The parts of a question's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfirmParts {
    /// All of it, border included.
    pub window: Rect,
    /// The rows of its text that are in view.
    pub text: Rect,
    /// The row that says how many more lines there are.
    pub more: Rect,
    pub yes: Rect,
    pub no: Rect,
    /// Where the third answer is, if there is one.
    pub later: Rect,
}

/// The action that a yes carries out.
#[derive(Debug)]
pub enum OnYes {
    /// Ends these runs.
    Kill(Vec<RunId>),
    /// Quits the program. `later`: live runs can be left, to be continued later.
    Quit { code: u8, later: bool },
    /// Closes the launch form and drops its changes.
    Discard,
    /// Continues an interrupted run, which calls live models.
    Resume(RunId),
    /// Starts a run again that calls live models, with its title.
    Restart(RunId, String),
    /// Starts a run that needs permission, and remembers the permission.
    Trust {
        request: Box<LaunchRequest>,
        /// [`Consent::digests`].
        digests: Vec<String>,
    },
}

impl Confirm {
    fn new(question: String, detail: Vec<String>, on_yes: OnYes) -> Self {
        Self { question, detail, on_yes, top: 0, end_seen: false }
    }

    /// Asks before one run is ended.
    pub fn kill(run: &RunId, title: &str) -> Self {
        let stays = "Running calls are cancelled; what was said is kept.";
        Self::new(
            format!("End run {run} now?"),
            vec![title.to_owned(), stays.to_owned()],
            OnYes::Kill(vec![run.clone()]),
        )
    }

    /// Asks before every live run is ended.
    pub fn kill_all(runs: Vec<RunId>) -> Self {
        let names: Vec<_> = runs.iter().map(RunId::as_str).collect();
        let question = match runs.len() {
            1 => "End the one live run now?".to_owned(),
            count => format!("End all {count} live runs now?"),
        };
        let stays = "Running calls are cancelled; what was said is kept.";
        Self::new(question, vec![names.join(", "), stays.to_owned()], OnYes::Kill(runs))
    }

    /// Asks before quitting with live runs or unsent messages; `questions`: those of the live runs; `later`:
    /// whether the runs are kept, so that they can be continued.
    pub fn quit(live: usize, questions: usize, unsent: usize, later: bool, code: u8) -> Self {
        let asked = match questions {
            0 => None,
            1 => Some("One open question stays without an answer.".to_owned()),
            more => Some(format!("{more} open questions stay without an answer.")),
        };
        let key = key_of(Action::Later);
        let left = later.then(|| {
            format!("{key} quits too, and leaves what is live as it is, to be continued later.")
        });
        let dropped = match unsent {
            0 => None,
            1 => Some("One unsent message is lost.".to_owned()),
            more => Some(format!("{more} unsent messages are lost.")),
        };
        let question = match live {
            0 => "Quit and lose unsent messages?".to_owned(),
            1 => "One run is live. Quit and end it?".to_owned(),
            count => format!("{count} runs are live. Quit and end them?"),
        };
        let stays = "A summary of the runs stays on the terminal.".to_owned();
        let detail = asked.into_iter().chain(dropped).chain(left).chain([stays]).collect();
        Self::new(question, detail, OnYes::Quit { code, later })
    }

    /// Asks before an interrupted run calls live models again.
    pub fn resume(run: &RunId, title: &str, cost: &str) -> Self {
        let more = format!("It calls live models, and has cost {cost} so far.");
        Self::new(
            format!("Continue run {run}?"),
            vec![title.to_owned(), more],
            OnYes::Resume(run.clone()),
        )
    }

    /// Asks before a run that calls live models is started again.
    pub fn restart(run: &RunId, title: &str, cost: &str) -> Self {
        let more = format!("It calls live models. {run} has cost {cost}.");
        Self::new(
            format!("Start run {run} again?"),
            vec![title.to_owned(), more],
            OnYes::Restart(run.clone(), title.to_owned()),
        )
    }

    /// Asks before a changed form is closed.
    pub fn discard() -> Self {
        let detail = vec!["The run was not started.".to_owned()];
        Self::new("Discard your changes?".to_owned(), detail, OnYes::Discard)
    }

    /// Asks before a scenario from outside does what the operator must allow first.
    pub fn trust(request: Box<LaunchRequest>, consent: Consent) -> Self {
        let Consent { about, digests, scope, would: mut detail, not_kept, .. } = consent;
        detail.push(match not_kept {
            Some(why) => format!("Remembered until you quit: {}.", single_line(&why)),
            None => format!("Remembered for {scope}."),
        });
        let title = single_line(&request.scenario.title);
        let question = match about {
            ConsentAbout::Scenario => format!("Allow \"{title}\" to:"),
            ConsentAbout::Answers => {
                format!("The log of \"{title}\" came from elsewhere. Use its answers?")
            }
        };
        Self::new(question, detail, OnYes::Trust { request, digests })
    }

    /// Whether Enter does not count as a yes and the text must be read to its end first.
    pub fn must_be_read(&self) -> bool {
        matches!(self.on_yes, OnYes::Trust { .. })
    }

    /// Whether live runs can be left to be continued later.
    pub fn has_later(&self) -> bool {
        matches!(self.on_yes, OnYes::Quit { later: true, .. })
    }

    /// Whether a yes is accepted now.
    pub fn accepts_yes(&self) -> bool {
        self.end_seen || !self.must_be_read()
    }

    /// The rows of its text, and how many of them belong to the question.
    pub fn rows(&self, size: Size) -> (Vec<String>, usize) {
        let width = usize::from(COLS.min(size.cols).saturating_sub(4)).max(1);
        let mut rows = wrap(&self.question, width);
        let question = rows.len();
        rows.extend(self.detail.iter().flat_map(|line| wrap(line, width)));
        (rows, question)
    }

    pub fn parts(&self, size: Size) -> ConfirmParts {
        // The text, one row for how much more there is, the buttons, the border.
        let rows = u16::try_from(self.rows(size).0.len() + 4).unwrap_or(u16::MAX);
        let window = centred(size.body(), COLS, rows);
        let inner = inside(window);
        let text = Rect {
            x: inner.x + 1,
            width: inner.width.saturating_sub(2),
            height: inner.height.saturating_sub(2),
            ..inner
        };
        let more = Rect { y: text.bottom(), height: inner.height.min(1), ..text };
        let row =
            Rect { y: inner.bottom().saturating_sub(1), height: inner.height.min(1), ..inner };
        let yes = Rect { x: row.x + 1, width: 9, ..row }.intersection(row);
        let no = Rect { x: row.x + 12, width: 8, ..row }.intersection(row);
        let later = match self.has_later() {
            true => Rect { x: row.x + 22, width: 11, ..row }.intersection(row),
            false => Rect::default(),
        };
        ConfirmParts { window, text, more, yes, no, later }
    }

    /// Whether its text is too long to be in view at once.
    pub fn is_long(&self, size: Size) -> bool {
        self.last_top(size) > 0
    }

    fn last_top(&self, size: Size) -> usize {
        let shown = usize::from(self.parts(size).text.height);
        self.rows(size).0.len().saturating_sub(shown)
    }

    /// Keeps the scroll position valid at this size, and records whether the end was in view.
    pub fn arrange(&mut self, size: Size) {
        let last = self.last_top(size);
        self.top = self.top.min(last);
        self.end_seen |= self.top == last && !too_small(size.area());
    }

    /// Scrolls its text; returns whether the action was a movement.
    pub fn on_move(&mut self, action: Action, size: Size) -> bool {
        let page = usize::from(self.parts(size).text.height).saturating_sub(1).max(1);
        let Some(top) = moved_index(action, Some(self.top), self.last_top(size) + 1, page) else {
            return false;
        };
        self.top = top;
        self.arrange(size);
        true
    }
}

/// Draws a question.
pub fn render(confirm: &Confirm, cx: &DrawContext, size: Size, buf: &mut Buffer) {
    let parts = confirm.parts(size);
    frame::window("Confirm", "", cx, parts.window, buf);
    let (rows, question) = confirm.rows(size);
    let text = parts.text;
    let shown = rows.iter().enumerate().skip(confirm.top);
    for ((at, row), y) in shown.zip(text.y..text.bottom()) {
        let role = if at < question { StyleRole::Strong } else { StyleRole::Text };
        Pen::new(buf, Rect { y, height: 1, ..text }, cx.glyphs).put(row, cx.theme.style(role));
    }
    let below = rows.len().saturating_sub(confirm.top + usize::from(text.height));
    let mut pen = Pen::new(buf, parts.more, cx.glyphs);
    let key = cx.theme.style(StyleRole::Key);
    if below > 0 {
        let more = count_noun(below as u64, "more line");
        pen.glyph(Glyph::Down, key).put(
            &format!(" {more} below: {}", keys([Action::Down, Action::PageDown, Action::Bottom])),
            key,
        );
    } else if confirm.top > 0 {
        let more = count_noun(confirm.top as u64, "line");
        pen.glyph(Glyph::Up, key).put(
            &format!(" {more} above: {}", keys([Action::Up, Action::PageUp, Action::Top])),
            key,
        );
    }
    let yes = if confirm.accepts_yes() { StyleRole::Button } else { StyleRole::Dim };
    Pen::new(buf, parts.yes, cx.glyphs)
        .put(&format!("[ {} yes ]", key_of(Action::Confirm)), cx.theme.style(yes));
    Pen::new(buf, parts.no, cx.glyphs).put(&format!("[ {} no ]", key_of(Action::Decline)), key);
    let later = format!("[ {} later ]", key_of(Action::Later));
    Pen::new(buf, parts.later, cx.glyphs).put(&later, key);
}

/// The keys of actions, separated by commas.
fn keys(actions: [Action; 3]) -> String {
    actions.map(key_of).join(", ")
}
