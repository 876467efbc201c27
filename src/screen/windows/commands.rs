//! The list of commands: every action by its name, found by typing parts of its name or description.

use std::cmp::Reverse;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::help::{help_window, keys_of};
use crate::screen::action::Action;
use crate::screen::key::{KeyCode, KeyPress};
use crate::screen::keymap::{BINDINGS, Binding, Group};
use crate::screen::layout::{SearchParts, Size, line};
use crate::screen::list::ListState;
use crate::screen::text::Pen;
use crate::screen::{DrawContext, frame, list};
use crate::words::format;
use crate::words::glyph::{Glyph, Glyphs};
use crate::words::styled::StyleRole;

/// Maximum characters of the search.
const MAX_QUERY: usize = 100;
/// Minimum score for each typed character of a match in a description. Letters that are far apart score
/// less: they would be found in most descriptions.
const MIN_SCORE: u32 = 18;

/// The list of commands over a screen.
#[derive(Debug)]
pub struct CommandList {
    /// Every action, with why it cannot be carried out now.
    commands: Vec<ListedCommand>,
    /// The typed text.
    pub query: String,
    /// The rows that match: numbers in `commands`.
    found: Vec<usize>,
    pub list: ListState,
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
        let (query, found) = (String::new(), Vec::new());
        let mut list = Self { commands, query, found, list: ListState::default() };
        list.find();
        list
    }

    /// The rows from the first in view, each with whether it is selected.
    pub fn rows(&self) -> impl Iterator<Item = (&ListedCommand, bool)> {
        let shown = self.found.iter().enumerate().skip(self.list.top);
        shown.filter_map(|(nth, at)| Some((self.commands.get(*at)?, nth == self.list.selected)))
    }

    /// How many rows match.
    pub fn count(&self) -> usize {
        self.found.len()
    }

    /// The selected row.
    pub fn selected(&self) -> Option<&ListedCommand> {
        self.commands.get(*self.found.get(self.list.selected)?)
    }

    /// Lists the matching actions: first those that can be carried out now, the best match first.
    /// Movements are the last of equal matches, since they are rarely searched for.
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
        self.list = ListState::default();
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
}

/// Columns of the names and of the keys.
const NAME: u16 = 18;
const KEYS: u16 = 12;

/// Draws the list of commands.
pub fn render(list: &CommandList, cx: &DrawContext, size: Size, buf: &mut Buffer) {
    let foot = format::count_noun(list.count() as u64, "command");
    let SearchParts { window, query, list: rows, note } = SearchParts::split(help_window(size));
    frame::window("Commands", &foot, cx, window, buf);
    let (dim, plain) = (cx.theme.style(StyleRole::Dim), cx.theme.style(StyleRole::Text));
    let cursor = cx.theme.style(StyleRole::Cursor);
    let mut pen = Pen::new(buf, query, cx.glyphs);
    pen.put(":", dim);
    if list.query.is_empty() {
        pen.glyph(Glyph::Cursor, cursor).put(" type parts of a name or description", dim);
    } else {
        pen.put(&list.query, plain).glyph(Glyph::Cursor, cursor);
    }
    if list.count() == 0 {
        Pen::new(buf, line(rows, 0), cx.glyphs)
            .put("No command matches the search. Backspace widens it.", dim);
    }
    for ((command, is_selected), y) in list.rows().zip(rows.y..rows.bottom()) {
        let (binding, here) = (command.binding, command.refusal.is_none());
        let keys = keys_of(binding, cx.glyphs == Glyphs::Ascii);
        let mut pen = list::row(cx, Rect { y, height: 1, ..rows }, is_selected, buf);
        pen.space(1).cell(binding.action.name(), NAME, if here { plain } else { dim });
        pen.cell(&keys, KEYS, if here { cx.theme.style(StyleRole::Key) } else { dim });
        match &command.refusal {
            Some(why) => pen.put(why, dim),
            None => pen.put(binding.help, plain),
        };
    }
    // The help of the selected row in full: in the list it may be cut, or replaced by the reason.
    if let Some(command) = list.selected() {
        Pen::new(buf, line(note, 1), cx.glyphs).put(command.binding.help, dim);
    }
}
