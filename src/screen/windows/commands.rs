//! The list of commands: every action by its name, found by typing parts of its name or description.
//!
//! The list of commands over a screen.

use std::cmp::Reverse;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::help::{help_window, keys_of};
use crate::screen::action::Action;
use crate::screen::key::{KeyCode, KeyPress};
use crate::screen::keymap::{BINDINGS, Binding, Group};
use crate::screen::layout::{Size, keep_in_view};
use crate::screen::list::moved_index;
use crate::screen::text::Pen;
use crate::screen::{DrawContext, frame, list};
use crate::words::format;
use crate::words::glyph::{Glyph, Glyphs};
use crate::words::styled::StyleRole;

/// Most characters of the search.
const MAX_QUERY: usize = 100;
/// Least score for each typed character of a match in a description. Letters that are far apart
/// score less, and would be found in most descriptions.
const MIN_SCORE: u32 = 18;

/// The list of commands over a screen.
#[derive(Debug)]
pub struct CommandList {
    /// Every action, with why it cannot be carried out now.
    commands: Vec<ListedCommand>,
    /// What is typed.
    pub query: String,
    /// The rows that match: numbers in `commands`.
    found: Vec<usize>,
    selected: usize,
    top: usize,
}

/// One action of the list.
#[derive(Debug)]
pub struct ListedCommand {
    /// Its row of the binding table.
    pub binding: &'static Binding,
    /// Why it cannot be carried out now.
    pub refusal: Option<String>,
}

impl CommandList {
    /// The list; `refusal` says why an action cannot be carried out now.
    pub(crate) fn new(refusal: impl Fn(Action) -> Option<String>) -> Self {
        let command =
            |binding: &'static Binding| ListedCommand { binding, refusal: refusal(binding.action) };
        let commands = BINDINGS.iter().map(command).collect();
        let mut list =
            Self { commands, query: String::new(), found: Vec::new(), selected: 0, top: 0 };
        list.find();
        list
    }

    /// The rows from the first in view, each with whether it is selected.
    pub fn rows(&self) -> impl Iterator<Item = (&ListedCommand, bool)> {
        let shown = self.found.iter().enumerate().skip(self.top);
        shown.filter_map(|(nth, at)| Some((self.commands.get(*at)?, nth == self.selected)))
    }

    /// How many rows match.
    pub fn count(&self) -> usize {
        self.found.len()
    }

    /// The selected row.
    pub fn selected(&self) -> Option<&ListedCommand> {
        self.commands.get(*self.found.get(self.selected)?)
    }

    /// Lists what matches: first what can be carried out now, the best match first. Movements, which
    /// few look for, are the last of equal matches.
    fn find(&mut self) {
        let pattern =
            Pattern::new(&self.query, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy);
        let mut matcher = Matcher::new(Config::DEFAULT);
        let typed = self.query.chars().filter(|c| !c.is_whitespace()).count();
        let least = MIN_SCORE * u32::try_from(typed).unwrap_or(u32::MAX / MIN_SCORE);
        let mut buffer = Vec::new();
        let mut score = |text: &str| pattern.score(Utf32Str::new(text, &mut buffer), &mut matcher);
        let mut found: Vec<(bool, Reverse<u32>, bool, usize)> = Vec::new();
        for (at, command) in self.commands.iter().enumerate() {
            let binding = command.binding;
            // A match in the name counts twice.
            let name = score(binding.action.name()).map(|points| points.saturating_mul(2));
            let description = score(binding.help).filter(|points| *points >= least);
            if let Some(points) = name.max(description) {
                let moves = binding.group == Group::Move;
                found.push((command.refusal.is_some(), Reverse(points), moves, at));
            }
        }
        found.sort_unstable();
        self.found = found.into_iter().map(|(.., at)| at).collect();
        (self.selected, self.top) = (0, 0);
    }

    /// Takes a typed key; returns whether it was text.
    pub(crate) fn on_key(&mut self, key: KeyPress) -> bool {
        match (key.typed_char(), key.code) {
            (Some(c), _) => self.on_paste(c.encode_utf8(&mut [0; 4])),
            (None, KeyCode::Backspace) => {
                self.query.pop();
                self.find();
            }
            _ => return false,
        }
        true
    }

    /// Takes the first line of a text.
    pub(crate) fn on_paste(&mut self, text: &str) {
        let room = MAX_QUERY.saturating_sub(self.query.chars().count());
        self.query.extend(text.lines().next().unwrap_or_default().chars().take(room));
        self.find();
    }

    /// Moves the selection; returns whether it was a movement.
    pub(crate) fn on_move(&mut self, action: Action, page: usize) -> bool {
        let Some(to) = moved_index(action, Some(self.selected), self.found.len(), page) else {
            return false;
        };
        self.selected = to;
        self.arrange(page);
        true
    }

    /// Keeps the selected row in view; `page` is the number of rows in view.
    pub(crate) fn arrange(&mut self, page: usize) {
        self.top = keep_in_view(self.top, self.selected, page, self.found.len());
    }

    /// Scrolls by one row.
    pub(crate) fn scroll(&mut self, up: bool, page: usize) {
        let last = self.found.len().saturating_sub(page);
        self.top = if up { self.top.saturating_sub(1) } else { (self.top + 1).min(last) };
    }

    /// Selects the row on a line of the window; returns whether it was selected already.
    pub(crate) fn select_line(&mut self, line: usize) -> Option<bool> {
        let at = Some(self.top + line).filter(|at| *at < self.found.len())?;
        let was = std::mem::replace(&mut self.selected, at);
        Some(was == at)
    }
}

/// Columns of the names and of the keys.
const NAME: u16 = 18;
const KEYS: u16 = 12;

/// Draws the list of commands.
pub fn render(list: &CommandList, cx: &DrawContext, size: Size, buf: &mut Buffer) {
    let foot = format::count_noun(list.count() as u64, "command");
    let inner = frame::window("Commands", &foot, cx, help_window(size), buf);
    let row = |y: u16| {
        Rect { x: inner.x + 1, y, width: inner.width.saturating_sub(2), height: 1 }
            .intersection(inner)
    };
    let (dim, plain) = (cx.theme.style(StyleRole::Dim), cx.theme.style(StyleRole::Text));
    let cursor = cx.theme.style(StyleRole::Cursor);
    let mut pen = Pen::new(buf, row(inner.y), cx.glyphs);
    pen.put(":", dim);
    if list.query.is_empty() {
        pen.glyph(Glyph::Cursor, cursor).put(" type parts of a name or description", dim);
    } else {
        pen.put(&list.query, plain).glyph(Glyph::Cursor, cursor);
    }
    let rows =
        Rect { y: inner.y + inner.height.min(2), height: inner.height.saturating_sub(4), ..inner };
    if list.count() == 0 {
        Pen::new(buf, row(rows.y), cx.glyphs).put("No match (Backspace to widen).", dim);
    }
    for ((command, is_selected), y) in list.rows().zip(rows.y..rows.bottom()) {
        let (binding, here) = (command.binding, command.refusal.is_none());
        let keys = keys_of(binding, cx.glyphs == Glyphs::Ascii);
        let mut pen = list::row(cx, row(y), is_selected, buf);
        pen.space(1).cell(binding.action.name(), NAME, if here { plain } else { dim });
        pen.cell(&keys, KEYS, if here { cx.theme.style(StyleRole::Key) } else { dim });
        match &command.refusal {
            Some(why) => pen.put(why, dim),
            None => pen.put(binding.help, plain),
        };
    }
    // What the selected row does, in full: above it may be cut, or be the reason.
    if let Some(command) = list.selected() {
        let area = row(inner.bottom().saturating_sub(1));
        Pen::new(buf, area, cx.glyphs).put(command.binding.help, dim);
    }
}
