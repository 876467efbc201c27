//! The rows above the status row in which the program itself tells the operator what to do: the tour, and what a
//! new user finds on the first screen. The pages and windows get the rows above, so that nothing is covered.
//! Where a terminal has no rows to spare, the status row says the first line.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::DrawContext;
use super::keymap::{BINDINGS, key_of};
use super::layout::{MIN_SIZE, Size};
use super::state::{ActiveScreen, AppState};
use super::text::Pen;
use super::tour;
use crate::words::measure::columns;
use crate::words::styled::StyleRole;

/// What the first screen tells a new user.
const WELCOME: [&str; 3] = [
    "{open} starts the selected scenario: scripted replies, free, no account.",
    "{tour} starts the tour: six keys in a running scenario. {close} hides these lines.",
    "`roundtable watch -- python my_agent.py` in a shell shows your own agent here.",
];

/// The first start of a new user.
#[derive(Clone, Copy, Debug)]
pub struct FirstScreen {
    /// Whether kept runs are looked for: until they are known, nothing is said.
    pub waits_for_rows: bool,
}

/// A word with its style.
type Word = (String, StyleRole);

/// What is said now, as lines; the label before the first of them is empty if there is none.
fn said(state: &AppState) -> Option<(String, Vec<Vec<Word>>)> {
    if let Some(tour) = tour::text(state) {
        let lines = tour.lines.iter().filter(|line| !line.is_empty());
        return Some((tour.label, lines.map(|line| words(line)).collect()));
    }
    let first = state.first_screen?;
    let is_known = !first.waits_for_rows || state.history.is_known();
    let is_home = state.screen == ActiveScreen::Home;
    let lines = || WELCOME.iter().map(|line| words(line)).collect();
    (is_known && is_home).then(|| (String::new(), lines()))
}

/// The words of a line. `{name}` is the key of the action with this name, and what stands between backquotes is
/// one word, typed in a shell.
fn words(line: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let typed = rest.strip_prefix('`').and_then(|typed| typed.split_once('`'));
        let (word, after) = match typed {
            Some((word, after)) => (vec![(word.to_owned(), StyleRole::Key)], after),
            None => {
                let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
                (keys_in(word), after)
            }
        };
        words.extend(word);
        rest = after.trim_start();
    }
    words
}

/// A word, or the key that it names with the characters around it, which stay together.
fn keys_in(word: &str) -> Vec<Word> {
    let named = word.split_once('{').and_then(|(before, rest)| {
        let (name, after) = rest.split_once('}')?;
        Some((before, BINDINGS.iter().find(|row| row.action.name() == name)?.action, after))
    });
    match named {
        Some((before, action, after)) => {
            vec![(format!("{before}{}{after}", key_of(action)), StyleRole::Key)]
        }
        None => vec![(word.to_owned(), StyleRole::Text)],
    }
}

/// Columns between the label and the text, and before the label.
const GAP: u16 = 2;
const MARGIN: u16 = 1;

/// The rows of the lines, wrapped at words.
fn rows(lines: &[Vec<Word>], width: u16) -> Vec<Vec<Word>> {
    let mut rows = Vec::new();
    for line in lines {
        let (mut row, mut taken) = (Vec::new(), 0);
        for word in line {
            let more = columns(&word.0) + 1;
            if taken > 0 && taken + more > usize::from(width) + 1 {
                rows.push(std::mem::take(&mut row));
                taken = 0;
            }
            taken += more;
            row.push(word.clone());
        }
        rows.push(row);
    }
    rows
}

/// Columns that the label takes.
fn label_width(label: &str) -> u16 {
    match u16::try_from(columns(label)).unwrap_or(u16::MAX) {
        0 => 0,
        width => width.saturating_add(GAP),
    }
}

fn text_width(label: &str, cols: u16) -> u16 {
    cols.saturating_sub(label_width(label) + 2 * MARGIN)
}

/// The rows that are needed in this terminal; none where the page above would be too small then.
fn wanted_rows(state: &AppState, terminal: Size) -> u16 {
    let Some((label, lines)) = said(state) else { return 0 };
    let rows = rows(&lines, text_width(&label, terminal.cols)).len();
    let rows = u16::try_from(rows).unwrap_or(u16::MAX);
    let has_room = terminal.rows.saturating_sub(rows) >= MIN_SIZE.1;
    if has_room { rows } else { 0 }
}

/// Gives the strip the rows that it needs, and the pages the others. Returns whether that has changed.
pub(super) fn settle(state: &mut AppState) -> bool {
    let terminal = state.terminal;
    let rows = terminal.rows - wanted_rows(state, terminal);
    let size = Size { rows, ..terminal };
    let is_new = state.size != size;
    if is_new {
        super::update::lay_out(state, size);
    }
    is_new
}

/// One line, where the strip has no rows: the status row says it.
pub(super) fn line_without_rows(state: &AppState) -> Option<String> {
    let (label, lines) = said(state).filter(|_| state.size == state.terminal)?;
    let short = tour::text(state).map(|tour| words(tour.short));
    let line = short.as_ref().or(lines.first())?;
    let words: Vec<&str> = line.iter().map(|(word, _)| word.as_str()).collect();
    let text = words.join(" ");
    Some(if label.is_empty() { text } else { format!("{label}: {text}") })
}

/// Draws the strip.
pub(super) fn render(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let Some((label, lines)) = said(state) else { return };
    let rows = rows(&lines, text_width(&label, area.width));
    for (nth, (row, y)) in rows.iter().zip(area.top()..area.bottom()).enumerate() {
        let mut pen = Pen::new(buf, Rect { y, height: 1, ..area }, cx.glyphs);
        pen.space(MARGIN);
        if nth == 0 {
            pen.put(&label, cx.theme.style(StyleRole::Selected));
        }
        pen.advance_to(area.x + MARGIN + label_width(&label));
        for (word, role) in row {
            pen.put(word, cx.theme.style(*role)).space(1);
        }
    }
}

/// Hides the lines for a new user once something was done.
pub(super) fn follow_first_start(state: &mut AppState) {
    let has_begun = !state.runs.is_empty() || !state.starting.is_empty();
    if has_begun || !state.history.rows().is_empty() {
        state.first_screen = None;
    }
}

/// Esc on the first screen: hides the lines for a new user. Returns whether they were shown.
pub(super) fn dismiss(state: &mut AppState) -> bool {
    state.screen == ActiveScreen::Home && state.first_screen.take().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_keys_and_commands() {
        let told = words("({step-round} runs; `a b c` is typed)");
        let texts: Vec<&str> = told.iter().map(|(word, _)| word.as_str()).collect();
        assert_eq!(texts, ["(S", "runs;", "a b c", "is", "typed)"]);
    }

    #[test]
    fn welcome_fits_eighty_columns() {
        let lines: Vec<_> = WELCOME.iter().map(|line| words(line)).collect();
        assert_eq!(rows(&lines, text_width("", 80)).len(), 3);
        for width in 1..80 {
            assert!(rows(&lines, width).iter().all(|row| !row.is_empty()), "{width}");
        }
    }
}
