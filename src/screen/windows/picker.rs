//! The window over the launch form in which a model is chosen: its name is typed, or picked from
//! the providers that have a key and from their lists.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::base::visible::{is_hostile, visible_within};
use crate::scenario::catalogue::LiveOffer;
use crate::screen::form::LaunchForm;
use crate::screen::form::models::{FormModels, OfferedModels};
use crate::screen::key::{KeyCode, KeyPress};
use crate::screen::layout::{SearchParts, Size, centred};
use crate::screen::list::ListState;
use crate::screen::text::{Pen, elide_middle, paint};
use crate::screen::widgets::paragraph;
use crate::screen::{DrawContext, frame, list};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::styled::StyleRole;

/// Maximum width of the window, in columns.
const COLS: u16 = 108;
/// Its height is fixed, so that it does not move while the list is filtered.
const ROWS: u16 = 24;
/// Maximum length of the typed text, in characters: no model's name is longer.
const MAX_QUERY_CHARS: usize = 200;

/// The window in which a model is chosen.
#[derive(Clone, Debug, Default)]
pub struct ModelPicker {
    /// The typed text: search words, or a name.
    pub query: String,
    /// The rows that match it.
    pub rows: Vec<PickRow>,
    pub list: ListState,
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

/// All of the window, border included.
pub(crate) fn window(size: Size) -> Rect {
    centred(size.body(), COLS, ROWS)
}

impl PickRow {
    /// Whether it can be chosen.
    pub fn is_choice(self) -> bool {
        !matches!(self, Self::Gap | Self::Providers | Self::List(_))
    }
}

impl ModelPicker {
    /// The window, with the row of `model` selected.
    pub(crate) fn open(models: &FormModels, model: Option<&str>) -> Self {
        let mut picker = Self::default();
        picker.rebuild_rows(models);
        let now = picker.rows.iter().position(|row| {
            let value = picker.value(*row, models);
            row.is_choice() && value.as_deref() == model
        });
        picker.list.selected = now.or_else(|| picker.first_choice()).unwrap_or(0);
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
        self.list.selected = whole.or_else(|| self.first_choice()).unwrap_or(0);
        self.list.top = 0;
    }

    /// New information has arrived: keeps the selected row selected.
    pub(crate) fn refresh(&mut self, before: &FormModels, now: &FormModels) {
        let was = self.rows.get(self.list.selected).copied();
        let value = was.and_then(|row| self.value(row, before));
        self.rebuild_rows(now);
        let same = |row: &PickRow| match (was, *row) {
            (Some(PickRow::AsSet), PickRow::AsSet) | (Some(PickRow::Typed), PickRow::Typed) => true,
            (_, row) => row.is_choice() && value.is_some() && self.value(row, now) == value,
        };
        let at = self.rows.iter().position(same);
        self.list.selected = at.or_else(|| self.first_choice()).unwrap_or(0);
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
        self.rows.get(self.list.selected).copied().filter(|row| row.is_choice())
    }

    /// Takes a typed key; returns whether it was one.
    pub(crate) fn on_key(&mut self, key: KeyPress, models: &FormModels) -> bool {
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
    pub(crate) fn on_paste(&mut self, text: &str, models: &FormModels) {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let room = MAX_QUERY_CHARS.saturating_sub(self.query.chars().count());
        let line: String = line.chars().take(room).collect();
        self.query.push_str(&visible_within(&line, MAX_QUERY_CHARS));
        self.on_query_changed(models);
    }

    /// The rows that can be chosen.
    pub(super) fn choices(&self) -> Vec<usize> {
        (0..self.rows.len()).filter(|at| self.rows[*at].is_choice()).collect()
    }

    /// Keeps the selected row in view, and its heading if the row is the first under it.
    pub(crate) fn arrange(&mut self, page: usize) {
        self.list.arrange(self.rows.len(), page);
        let list = &mut self.list;
        while list.top > 0
            && self.rows.get(list.top - 1).is_some_and(|row| !row.is_choice())
            && list.selected - (list.top - 1) < page
        {
            list.top -= 1;
        }
    }
}

/// Maximum width of a model's name if a note follows it.
const NAME: u16 = 44;

pub fn render(
    form: &LaunchForm,
    picker: &ModelPicker,
    cx: &DrawContext,
    size: Size,
    buf: &mut Buffer,
) {
    let parts = SearchParts::split(window(size));
    let names = || picker.rows.iter().filter(|row| matches!(row, PickRow::Name { .. }));
    let listed: usize = form.models.lists.iter().map(|(_, list)| length(list)).sum();
    let foot = match names().count() {
        _ if listed == 0 => String::new(),
        shown if shown < listed => {
            format!("{shown} of {}", format::count_noun(listed as u64, "model"))
        }
        _ => format::count_noun(listed as u64, "model"),
    };
    let title = format!("New run of {}: model", form.entry.name);
    frame::window(&title, &foot, cx, parts.window, buf);
    let (dim, plain) = (cx.theme.style(StyleRole::Dim), cx.theme.style(StyleRole::Text));
    let mut pen = Pen::new(buf, parts.query, cx.glyphs);
    if picker.query.is_empty() {
        pen.glyph(Glyph::Cursor, cx.theme.style(StyleRole::Cursor));
        pen.put(" type to search, or to name a model: provider/model", dim);
    } else {
        let width = usize::from(pen.left()).saturating_sub(1);
        pen.put(tail(&picker.query, width), plain);
        pen.glyph(Glyph::Cursor, cx.theme.style(StyleRole::Cursor));
    }
    let rows = picker.rows.iter().enumerate().skip(picker.list.top);
    for ((at, row), y) in rows.zip(parts.list.top()..parts.list.bottom()) {
        let here = Rect { y, height: 1, ..parts.list };
        let selected = at == picker.list.selected && row.is_choice();
        if selected {
            paint(buf, here, cx.theme.style(StyleRole::Selected));
        }
        draw_row(form, picker, *row, selected, cx, here, buf);
    }
    draw_choice_note(form, picker, cx, parts.note, buf);
}

fn length(list: &OfferedModels) -> usize {
    match list {
        OfferedModels::Listed { names, .. } => names.len(),
        _ => 0,
    }
}

/// The end of the typed text that fits into `width` columns.
fn tail(text: &str, width: usize) -> &str {
    let mut start = 0;
    while columns(&text[start..]) > width {
        start += text[start..].chars().next().map_or(1, char::len_utf8);
    }
    &text[start..]
}

fn draw_row(
    form: &LaunchForm,
    picker: &ModelPicker,
    row: PickRow,
    selected: bool,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let models = &form.models;
    let (dim, plain) = (cx.theme.style(StyleRole::Dim), cx.theme.style(StyleRole::Text));
    let title = cx.theme.style(StyleRole::Title);
    let mut pen = Pen::new(buf, area, cx.glyphs);
    match row {
        PickRow::Providers => {
            pen.put("Providers with a key", title).put(", with their default models", dim);
            return;
        }
        PickRow::List(at) => {
            let Some((place, list)) = models.lists.get(at) else { return };
            pen.put(&place.name, title).space(1);
            let (text, role) = list_status(list);
            pen.put(&format!("at {}, ", place.host), dim).put(&text, cx.theme.style(role));
            return;
        }
        PickRow::Gap => return,
        _ => {}
    }
    list::mark(cx, &mut pen, selected);
    pen.space(1);
    let width = noted_name_width(form).min(NAME).min(pen.left() * 3 / 5);
    match row {
        PickRow::AsSet => {
            let LiveOffer::Ready { model, model_from, .. } = &models.base else { return };
            let start = pen.x();
            pen.put_within(model, width, plain).advance_to(start + width);
            pen.space(2).put(model_from, dim);
        }
        PickRow::Default(at) => {
            let Some(offer) = models.providers.get(at) else { return };
            let start = pen.x();
            pen.put_within(&offer.place.model(&offer.model), width, plain)
                .advance_to(start + width);
            pen.space(2).put(&offer.key, dim);
        }
        PickRow::Name { list, at } => {
            let Some(name) = models.name(list, at) else { return };
            let room = usize::from(pen.left());
            let chosen =
                picker.value(row, models).as_deref() == form.fields.chosen_model().as_deref();
            let room = if chosen { room.saturating_sub(8) } else { room };
            pen.put(&elide_middle(name, room, cx.glyphs), plain);
            if chosen {
                pen.space(2).put("chosen", dim);
            }
        }
        PickRow::Typed => {
            let note = "as typed";
            let room = usize::from(pen.left()).saturating_sub(note.len() + 2);
            pen.put(&elide_middle(picker.query.trim(), room, cx.glyphs), plain);
            pen.space(2).put(note, dim);
        }
        PickRow::Gap | PickRow::Providers | PickRow::List(_) => {}
    }
}

/// Width of the longest name with a note after it, in columns.
fn noted_name_width(form: &LaunchForm) -> u16 {
    let set = match &form.models.base {
        LiveOffer::Ready { model, .. } => columns(model),
        _ => 0,
    };
    let longest =
        form.models.providers.iter().map(|offer| columns(&offer.place.model(&offer.model))).max();
    u16::try_from(set.max(longest.unwrap_or(0))).unwrap_or(u16::MAX)
}

/// The status of a list, in a few words.
fn list_status(list: &OfferedModels) -> (String, StyleRole) {
    match list {
        OfferedModels::Loading => ("loading the list".to_owned(), StyleRole::Running),
        OfferedModels::Listed { names, .. } if names.is_empty() => {
            ("lists no model".to_owned(), StyleRole::Dim)
        }
        OfferedModels::Listed { names, all } if names.len() < *all => {
            let all = format::exact(*all as u64);
            (format!("{} of {all} models", format::exact(names.len() as u64)), StyleRole::Dim)
        }
        OfferedModels::Listed { all, .. } => {
            (format::count_noun(*all as u64, "model"), StyleRole::Dim)
        }
        OfferedModels::NotGiven { status } => {
            (format!("gives no list (status {status}): type a name"), StyleRole::Dim)
        }
        OfferedModels::Failed { .. } => {
            ("the list could not be loaded".to_owned(), StyleRole::Failed)
        }
    }
}

/// Why a list could not be loaded; else the value that the selected row would set.
fn draw_choice_note(
    form: &LaunchForm,
    picker: &ModelPicker,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let failed = form.models.lists.iter().find_map(|(_, list)| match list {
        OfferedModels::Failed { why } => Some(why.as_str()),
        _ => None,
    });
    let chosen = picker.chosen().map(|row| match picker.value(row, &form.models) {
        Some(value) => format!("--model {value}"),
        None => match &form.models.base {
            LiveOffer::Ready { model, .. } => format!("without --model: {model}"),
            _ => String::new(),
        },
    });
    let (text, role) = match (failed, chosen) {
        (Some(why), _) => (why.to_owned(), StyleRole::Failed),
        (None, Some(chosen)) => (chosen, StyleRole::Dim),
        (None, None) => ("Nothing to choose: type a name.".to_owned(), StyleRole::Dim),
    };
    paragraph(cx, area, &text, cx.theme.style(role), buf);
}
