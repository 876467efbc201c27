//! The window over the launch form in which a model is chosen: its name is typed, or picked from
//! the providers that have a key and from their lists.

use ratatui::layout::Rect;

use super::models::FormModels;
use crate::app::action::Action;
use crate::app::key::{KeyCode, KeyPress};
use crate::app::layout::Size;
use crate::app::layout::{centred, inside, keep_in_view};
use crate::app::live::OfferedModels;
use crate::app::selection::moved_index;
use crate::base::visible::{is_hostile, visible_within};
use crate::scenario::catalogue::LiveOffer;

/// Widest size of the window, in columns.
const COLS: u16 = 108;
/// Its height is fixed, so that it does not move while the list is filtered.
const ROWS: u16 = 24;
/// The longest text that can be typed, in characters: no model's name is longer.
const MAX_QUERY_CHARS: usize = 200;

/// The window in which a model is chosen.
#[derive(Clone, Debug, Default)]
pub struct ModelPicker {
    /// The typed text: search words, or a name.
    pub query: String,
    /// The rows that match it.
    pub rows: Vec<PickRow>,
    /// Index of the selected row.
    pub selected: usize,
    /// The first row in view.
    pub top: usize,
}

/// A row of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickRow {
    /// Nothing, between two groups.
    Gap,
    /// The heading of the providers that have a key.
    Providers,
    /// The heading of a list, by its index in [`FormModels::lists`], with its status.
    List(usize),
    /// No model is named: that of the scenario or the environment is called.
    AsSet,
    /// The default model of a provider, by its index in [`FormModels::providers`].
    Default(usize),
    /// A name from a list.
    Name {
        /// Index of the list.
        list: usize,
        /// Index of the name.
        at: usize,
    },
    /// The typed text, taken as a name.
    Typed,
}

/// The parts of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PickerParts {
    /// All of it, border included.
    pub window: Rect,
    /// The line with the typed text.
    pub query: Rect,
    /// The rows in view.
    pub list: Rect,
    /// The note on the selected row.
    pub note: Rect,
}

impl PickerParts {
    /// Cuts the window out of a screen of this size.
    pub fn split(size: Size) -> Self {
        let window = centred(size.body(), COLS, ROWS);
        let inner = inside(window);
        let inner =
            Rect { x: inner.x + inner.width.min(1), width: inner.width.saturating_sub(2), ..inner };
        let row = |y: u16, height: u16| Rect { y, height, ..inner }.intersection(inner);
        let note_rows = 2.min(inner.height.saturating_sub(4));
        let list = inner.height.saturating_sub(2 + note_rows);
        Self {
            window,
            query: row(inner.y, 1),
            list: row(inner.y + inner.height.min(2), list),
            note: row(inner.bottom() - note_rows, note_rows),
        }
    }
}

impl PickRow {
    /// Whether it can be chosen.
    pub fn is_choice(self) -> bool {
        !matches!(self, Self::Gap | Self::Providers | Self::List(_))
    }
}

impl ModelPicker {
    /// The window, with the row of `model` selected.
    pub(super) fn open(models: &FormModels, model: Option<&str>) -> Self {
        let mut picker = Self::default();
        picker.rebuild_rows(models);
        let now = picker.rows.iter().position(|row| {
            let value = picker.value(*row, models);
            row.is_choice() && value.as_deref() == model
        });
        picker.selected = now.or_else(|| picker.first_choice()).unwrap_or(0);
        picker
    }

    /// Fills the rows for the typed text.
    fn rebuild_rows(&mut self, models: &FormModels) {
        let query = self.query.trim();
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let found = |name: &str, of: &str| {
            let whole = format!("{of}/{name}").to_lowercase();
            words.iter().all(|word| whole.contains(word))
        };
        let mut rows = Vec::new();
        let is_set = matches!(models.base, LiveOffer::Ready { .. });
        if query.is_empty() && is_set {
            rows.push(PickRow::AsSet);
        }
        let mut group = |head: PickRow, of: &mut dyn Iterator<Item = PickRow>, alone: bool| {
            let mut of = of.peekable();
            if of.peek().is_none() && !alone {
                return;
            }
            if !rows.is_empty() {
                rows.push(PickRow::Gap);
            }
            rows.push(head);
            rows.extend(of);
        };
        // A single provider is the default already, so its group says nothing new.
        if models.providers.len() > 1 || !is_set {
            let defaults = models.providers.iter().enumerate();
            let mut defaults = defaults
                .filter(|(_, offer)| found(&offer.model, &offer.place.provider))
                .map(|(at, _)| PickRow::Default(at));
            group(PickRow::Providers, &mut defaults, false);
        }
        for (list, place, names) in models.lists_in_order() {
            let (names, there) = match names {
                OfferedModels::Listed { names, .. } => (&**names, true),
                _ => (&[][..], false),
            };
            let names = names.iter().enumerate();
            let mut names = names
                .filter(|(_, name)| found(name, &place.provider))
                .map(|(at, _)| PickRow::Name { list, at });
            group(PickRow::List(list), &mut names, !there || query.is_empty());
        }
        let is_query = |row: &PickRow| {
            row.is_choice() && self.value(*row, models).is_some_and(|value| value == query)
        };
        if !query.is_empty() && !rows.iter().any(is_query) {
            if !rows.is_empty() {
                rows.push(PickRow::Gap);
            }
            rows.push(PickRow::Typed);
        }
        self.rows = rows;
    }

    /// The first row that can be chosen.
    fn first_choice(&self) -> Option<usize> {
        self.rows.iter().position(|row| row.is_choice())
    }

    /// The typed text has changed: selects the row with exactly that name, else the first.
    fn on_query_changed(&mut self, models: &FormModels) {
        self.rebuild_rows(models);
        let query = self.query.trim();
        let named = |row: &PickRow| match *row {
            PickRow::Name { list, at } => models.name(list, at) == Some(query),
            PickRow::Typed => false,
            row => self.value(row, models).as_deref() == Some(query),
        };
        let whole = self.rows.iter().position(|row| !query.is_empty() && named(row));
        self.selected = whole.or_else(|| self.first_choice()).unwrap_or(0);
        self.top = 0;
    }

    /// New information has arrived: keeps the selected row selected.
    pub(super) fn refresh(&mut self, before: &FormModels, now: &FormModels) {
        let was = self.rows.get(self.selected).copied();
        let value = was.and_then(|row| self.value(row, before));
        self.rebuild_rows(now);
        let same = |row: &PickRow| match (was, *row) {
            (Some(PickRow::AsSet), PickRow::AsSet) | (Some(PickRow::Typed), PickRow::Typed) => true,
            (_, row) => row.is_choice() && value.is_some() && self.value(row, now) == value,
        };
        let at = self.rows.iter().position(same);
        self.selected = at.or_else(|| self.first_choice()).unwrap_or(0);
    }

    /// The value that choosing a row puts into the field; `None` clears it.
    pub fn value(&self, row: PickRow, models: &FormModels) -> Option<String> {
        match row {
            PickRow::AsSet | PickRow::Gap | PickRow::Providers | PickRow::List(_) => None,
            PickRow::Default(at) => {
                models.providers.get(at).map(|offer| offer.place.model(&offer.model))
            }
            PickRow::Name { list, at } => {
                let (place, _) = models.lists.get(list)?;
                Some(place.model(models.name(list, at)?))
            }
            PickRow::Typed => Some(self.query.trim().to_owned()),
        }
    }

    /// The selected row, if it can be chosen.
    pub fn chosen(&self) -> Option<PickRow> {
        self.rows.get(self.selected).copied().filter(|row| row.is_choice())
    }

    /// Takes a typed key; returns whether it was one.
    pub(super) fn on_key(&mut self, key: KeyPress, models: &FormModels) -> bool {
        match (key.typed_char(), key.code) {
            (Some(c), _) if is_hostile(c) || self.query.chars().count() >= MAX_QUERY_CHARS => {
                return false;
            }
            (Some(c), _) => self.query.push(c),
            (None, KeyCode::Backspace) => {
                self.query.pop();
            }
            _ => return false,
        }
        self.on_query_changed(models);
        true
    }

    /// Takes the first non-empty line of pasted text.
    pub(super) fn on_paste(&mut self, text: &str, models: &FormModels) {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let room = MAX_QUERY_CHARS.saturating_sub(self.query.chars().count());
        let line: String = line.chars().take(room).collect();
        self.query.push_str(&visible_within(&line, MAX_QUERY_CHARS));
        self.on_query_changed(models);
    }

    /// Moves the selection past headings; `page` is the number of rows in view.
    pub(super) fn on_move(&mut self, action: Action, page: usize) -> bool {
        let choices: Vec<usize> =
            (0..self.rows.len()).filter(|at| self.rows[*at].is_choice()).collect();
        let at = choices.iter().position(|at| *at == self.selected);
        let Some(to) = moved_index(action, at, choices.len(), page) else { return false };
        self.selected = choices.get(to).copied().unwrap_or(0);
        true
    }

    /// Selects the row on this line of the window; returns whether it was selected before, `None`
    /// if the line is not a choice.
    pub(super) fn select_line(&mut self, line: usize) -> Option<bool> {
        let at = self.top + line;
        self.rows.get(at).filter(|row| row.is_choice())?;
        Some(std::mem::replace(&mut self.selected, at) == at)
    }

    /// Keeps the selected row in view, and its heading if the row is the first under it.
    pub(super) fn arrange(&mut self, page: usize) {
        self.top = keep_in_view(self.top, self.selected, page, self.rows.len());
        while self.top > 0
            && self.top == self.selected.min(self.top)
            && self.rows.get(self.top - 1).is_some_and(|row| !row.is_choice())
            && self.selected - (self.top - 1) < page
        {
            self.top -= 1;
        }
    }
}
