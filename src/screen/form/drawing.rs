//! The launch form over a screen. Drawing and mouse hits use the same slots.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use tui_textarea::CursorMove;

use super::fields::FormFields;
use super::{Field, FieldId, FieldValue, FormProblem, FormSection, LaunchForm};
use crate::scenario::catalogue::{LiveOffer, RequestedModel};
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::layout::{SearchParts, Size, centred, hits, inside};
use crate::screen::text::{Pen, elide, elide_middle};
use crate::screen::widgets::{heading, paragraph};
use crate::screen::windows::picker;
use crate::screen::{DrawContext, frame, list, widgets};
use crate::words::glyph::Glyph;
use crate::words::measure::{columns, row_count, wrap_within};
use crate::words::styled::StyleRole;

/// Maximum width of the form, in columns.
const COLS: u16 = 108;
/// Rows below the fields: the first problem, two rows of the command line, the buttons.
const FOOT: u16 = 4;
/// Minimum and maximum columns of the labels.
const LABEL: std::ops::RangeInclusive<u16> = 20..=34;
/// Columns of a value that has a note beside it.
const VALUE: u16 = 30;
/// Columns of the mark before a problem.
pub const PROBLEM_MARK: u16 = 2;
/// Maximum rows that a problem takes from the fields.
const MORE_PROBLEM_ROWS: usize = 4;
/// Maximum rows of a text field.
const TEXT_ROWS: usize = 6;

/// The rows of one field or heading, counted from the top of all fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormSlot {
    /// The field; `None` for a heading.
    pub id: Option<FieldId>,
    pub section: FormSection,
    /// Its first row.
    pub y: u16,
    pub rows: u16,
    /// Whether its value takes the whole width.
    pub is_long: bool,
}

/// The parts of the form's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormParts {
    /// All of it, border included.
    pub window: Rect,
    /// Columns of the labels.
    pub label: u16,
    /// The fields in view.
    pub fields: Rect,
    /// The row of the first problem.
    pub fault: Rect,
    pub command: Rect,
    pub buttons: Rect,
}

impl FormParts {
    /// Divides the form's window. `rows`: the rows that its fields need; `more`: the rows that the first
    /// problem needs beyond its own row and those of the command line.
    pub fn split(size: Size, rows: u16, more: u16, longest_label: usize) -> Self {
        let foot = FOOT + more;
        let window = centred(size.body(), COLS, rows.saturating_add(foot + 2));
        let inner = inside(window);
        let inner =
            Rect { x: inner.x + inner.width.min(1), width: inner.width.saturating_sub(2), ..inner };
        let foot = foot.min(inner.height);
        let fields = Rect { height: inner.height - foot, ..inner };
        let row = |down: u16, rows: u16| {
            Rect { y: fields.bottom() + down, height: rows, ..inner }.intersection(inner)
        };
        let label = u16::try_from(longest_label + 3).unwrap_or(u16::MAX);
        let most = (*LABEL.end()).min(inner.width / 3).max(*LABEL.start());
        Self {
            window,
            label: label.clamp(*LABEL.start(), most),
            fields,
            fault: row(0, 1),
            command: row(1, 2 + more),
            buttons: row(3 + more, 1),
        }
    }

    /// Columns of a field's value; a note begins after them. A long field takes the whole width.
    pub fn widget(&self, is_long: bool) -> u16 {
        let room = self.fields.width.saturating_sub(self.label);
        if is_long { room } else { room.min(VALUE) }
    }
}

/// Where the parts of the form and its fields are at one size of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormLayout {
    pub parts: FormParts,
    /// The slots of all fields, in order.
    pub slots: Vec<FormSlot>,
    /// The first row in view.
    pub top: u16,
}

impl FormLayout {
    /// The layout of these fields, where `top` is the first row in view.
    fn of(fields: &FormFields, top: u16, size: Size, problem: Option<&str>) -> Self {
        let labels = fields.list.iter().map(|field| columns(&field.label));
        let longest = labels.max().unwrap_or(0);
        let all = FormParts::split(size, u16::MAX, 0, longest);
        let slots = slots(fields, &all);
        let width = usize::from(all.fault.width.saturating_sub(PROBLEM_MARK));
        let rows = problem.map_or(0, |text| row_count(text, width));
        let more = rows.saturating_sub(usize::from(FOOT) - 1).min(MORE_PROBLEM_ROWS) as u16;
        Self { parts: FormParts::split(size, height(&slots), more, longest), slots, top }
    }

    /// The slot of a field; a button has none.
    fn slot(&self, id: &FieldId) -> Option<&FormSlot> {
        self.slots.iter().find(|slot| slot.id.as_ref() == Some(id))
    }

    /// The row after the last one in view.
    fn end(&self) -> u16 {
        self.top + self.parts.fields.height
    }

    /// The slots with a row in view.
    pub fn visible(&self) -> impl Iterator<Item = &FormSlot> {
        self.slots.iter().filter(|slot| slot.y < self.end() && slot.y + slot.rows > self.top)
    }

    /// The fields above and below the view, partly visible ones included.
    pub fn hidden(&self) -> [Vec<&FieldId>; 2] {
        let ids = |out: &dyn Fn(&FormSlot) -> bool| {
            self.slots.iter().filter(|slot| out(slot)).filter_map(|slot| slot.id.as_ref()).collect()
        };
        [ids(&|slot| slot.y < self.top), ids(&|slot| slot.y + slot.rows > self.end())]
    }

    /// The last row that may be the first in view.
    fn last_top(&self, rows: u16) -> u16 {
        height(&self.slots).saturating_sub(rows)
    }

    /// The first row in view that shows this field.
    fn top_for(&self, id: &FieldId) -> u16 {
        let rows = self.parts.fields.height.max(1);
        let last = self.last_top(rows);
        let mut top = self.top.min(last);
        let Some(at) = self.slots.iter().position(|slot| slot.id.as_ref() == Some(id)) else {
            return top;
        };
        // The heading scrolls with the first field under it.
        let first = match at.checked_sub(1).and_then(|before| self.slots.get(before)) {
            Some(head) if head.id.is_none() => head.y,
            _ => self.slots[at].y,
        };
        let end = self.slots[at].y + self.slots[at].rows;
        if end > top + rows {
            top = end - rows;
        }
        if first < top {
            top = first.min(last);
        }
        top
    }

    /// The first row in view after scrolling by one row.
    fn scrolled(&self, up: bool) -> u16 {
        let last = self.last_top(self.parts.fields.height);
        if up { self.top.saturating_sub(1) } else { (self.top + 1).min(last) }
    }

    /// The screen row of a row of the form.
    pub fn row(&self, y: u16) -> Rect {
        let area = self.parts.fields;
        let down = y.saturating_sub(self.top).min(area.height);
        Rect { y: area.y + down, height: 1, ..area }.intersection(area)
    }

    /// The area of a field's value on the screen; empty where it is out of view.
    pub fn value_area(&self, slot: &FormSlot) -> Rect {
        let parts = &self.parts;
        let (from, to) = (slot.y.max(self.top), (slot.y + slot.rows).min(self.end()));
        Rect {
            x: parts.fields.x + parts.label.min(parts.fields.width),
            y: parts.fields.y + from.saturating_sub(self.top).min(parts.fields.height),
            width: parts.widget(slot.is_long),
            height: to.saturating_sub(from),
        }
    }

    /// The field or button under a cell of the screen.
    pub fn field_at(&self, col: u16, row: u16) -> Option<FieldId> {
        let parts = &self.parts;
        if hits(parts.buttons, col, row) {
            return Some(if col < parts.buttons.x + CANCEL_AT {
                FieldId::Start
            } else {
                FieldId::Cancel
            });
        }
        if !hits(parts.fields, col, row) {
            return None;
        }
        let y = row - parts.fields.y + self.top;
        self.slots.iter().find(|slot| (slot.y..slot.y + slot.rows).contains(&y))?.id.clone()
    }
}

impl LaunchForm {
    /// The problem that is shown below the fields: that of the focused field, else the first one.
    pub fn shown_problem(&self) -> Option<&FormProblem> {
        let first =
            self.problems.iter().find(|fault| fault.error).or_else(|| self.problems.first());
        self.problem_of(&self.fields.focus).or(first)
    }

    /// Its text, with the name of its field where another one is focused.
    pub fn problem_text(&self) -> Option<String> {
        let problem = self.shown_problem()?;
        let mut text = String::new();
        if self.problem_of(&self.fields.focus).is_none()
            && let Some(field) = problem.field.as_ref().and_then(|id| self.fields.get(id))
        {
            text = format!("{}: ", field.label);
        }
        text.push_str(&problem.text);
        if let more @ 1.. = self.problems.len() - 1 {
            text.push_str(&format!("  (+{more} more)"));
        }
        Some(text)
    }

    /// Where the fields are at this size.
    pub fn layout(&self, size: Size) -> FormLayout {
        let problem = self.problem_text().filter(|_| !self.is_startable());
        FormLayout::of(&self.fields, self.top, size, problem.as_deref())
    }

    /// Keeps the focused field in view, and the selected row in the list of models.
    pub fn arrange(&mut self, size: Size) {
        if let Some(picker) = &mut self.picker {
            let parts = SearchParts::split(picker::window(size));
            picker.arrange(usize::from(parts.list.height));
        }
        self.top = self.layout(size).top_for(&self.fields.focus);
    }

    /// Scrolls by one row.
    pub fn scroll(&mut self, up: bool, size: Size) {
        self.top = self.layout(size).scrolled(up);
    }

    /// Moves the cursor of the focused text to the mouse.
    pub fn place_cursor(&mut self, size: Size, col: u16, row: u16) {
        let layout = self.layout(size);
        let Some(slot) = layout.slot(&self.fields.focus) else { return };
        let at = layout.value_area(slot);
        // A text that is cut at the top begins above the first row in view.
        let cut = self.top.saturating_sub(slot.y);
        let Some(Field { value: FieldValue::Text(text), .. }) = self.fields.focused() else {
            return;
        };
        let (down, right) = (row.saturating_sub(at.y) + cut, col.saturating_sub(at.x));
        let (top, left) = text.area.scroll_offset();
        let clicked = text.area.screen_to_data((down + top).into(), (right + left).into());
        let to = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
        text.area.move_cursor(CursorMove::Jump(to(clicked.0), to(clicked.1)));
    }
}

/// The slots of all fields that are shown, in order; `parts` has their width.
fn slots(fields: &FormFields, parts: &FormParts) -> Vec<FormSlot> {
    let mut slots: Vec<FormSlot> = Vec::new();
    let mut y = 0;
    for field in fields.list.iter().filter(|field| fields.is_shown(&field.id)) {
        let section = FormSection::of_field(&field.id);
        if section == FormSection::Buttons {
            continue;
        }
        if slots.last().is_none_or(|last| last.section != section) {
            slots.push(FormSlot { id: None, section, y, rows: 1, is_long: true });
            y += 1;
        }
        let is_long = is_long(field);
        let rows = match &field.value {
            FieldValue::Text(text) => {
                let cols = usize::from(parts.widget(is_long).saturating_sub(1)).max(1);
                let least = if field.id == FieldId::Goal { 3 } else { 1 };
                let lines = text.area.lines().iter();
                let rows = lines.map(|line| row_count(line, cols).max(1)).take(TEXT_ROWS);
                rows.sum::<usize>().clamp(least, TEXT_ROWS) as u16
            }
            _ => 1,
        };
        slots.push(FormSlot { id: Some(field.id.clone()), section, y, rows, is_long });
        y += rows;
    }
    slots
}

/// Offset of the second button, in columns.
pub const CANCEL_AT: u16 = 14;

/// Whether a field takes the whole width: also a text that does not fit beside its note.
fn is_long(field: &Field) -> bool {
    match (&field.id, &field.value) {
        (
            FieldId::Boundary
            | FieldId::Goal
            | FieldId::Model
            | FieldId::ModelName
            | FieldId::Prompt(_),
            _,
        ) => true,
        (_, FieldValue::Text(text)) => {
            text.area.lines().iter().any(|line| columns(line) >= usize::from(VALUE))
        }
        _ => false,
    }
}

/// Number of rows of all slots.
fn height(slots: &[FormSlot]) -> u16 {
    slots.last().map_or(0, |slot| slot.y + slot.rows)
}

pub fn render(form: &LaunchForm, cx: &DrawContext, size: Size, buf: &mut Buffer) {
    let layout = form.layout(size);
    let parts = &layout.parts;
    let title = match &form.fork {
        Some(fork) => format!("Fork of {}, {}", fork.run, form.entry.name),
        None => format!("New run of {}", form.entry.name),
    };
    let room = usize::from(parts.window.width).saturating_sub(8);
    let foot = hidden(form, &layout, cx);
    let foot = elide(&foot, room, cx.glyphs);
    frame::window(&title, &foot, cx, parts.window, buf);
    for slot in layout.visible() {
        match slot.id.as_ref().and_then(|id| form.fields.get(id)) {
            None => heading(cx, layout.row(slot.y), slot.section.title(form.fork.is_some()), buf),
            Some(field) => draw(field, slot, form, &layout, cx, buf),
        }
    }
    fault(form, parts, cx, buf);
    command(form, parts, cx, buf);
    buttons(form, parts, cx, buf);
}

/// The labels of fields out of view, so that the reader knows that they exist.
fn hidden(form: &LaunchForm, layout: &FormLayout, cx: &DrawContext) -> String {
    let part = |glyph, ids: Vec<&FieldId>| {
        let arrow = cx.glyphs.symbol(glyph);
        let fields = ids.into_iter().filter_map(|id| form.fields.get(id));
        let labels: Vec<&str> = fields.map(|field| field.label.as_str()).collect();
        (!labels.is_empty())
            .then(|| format!("{arrow} {} more: {}", labels.len(), labels.join(", ")))
    };
    let [above, below] = layout.hidden();
    let parts = [part(Glyph::Down, below), part(Glyph::Up, above)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

fn draw(
    field: &Field,
    slot: &FormSlot,
    form: &LaunchForm,
    layout: &FormLayout,
    cx: &DrawContext,
    buf: &mut Buffer,
) {
    let focused = form.fields.focus == field.id;
    let (dim, plain) = (cx.theme.style(StyleRole::Dim), cx.theme.style(StyleRole::Text));
    let place = layout.value_area(slot);
    if slot.y >= layout.top {
        let mut pen = Pen::new(buf, layout.row(slot.y), cx.glyphs);
        list::mark(cx, &mut pen, focused);
        let style = if focused { cx.theme.style(StyleRole::Strong) } else { plain };
        pen.name(&field.label, layout.parts.label - 3, style);
        if field.changed() {
            pen.space(1).put("*", cx.theme.style(StyleRole::Changed));
        }
    }
    match &field.value {
        FieldValue::Text(text) => {
            let typing = focused && form.fields.is_editing();
            let cut = layout.top.saturating_sub(slot.y);
            widgets::render_text_field(text, cx, place, slot.rows, cut, typing, buf);
        }
        FieldValue::Choice { choices, at, .. } => {
            let mut pen = Pen::new(buf, place, cx.glyphs);
            let arrow = if focused { cx.theme.style(StyleRole::Key) } else { dim };
            pen.glyph(Glyph::Left, arrow).space(1);
            let chosen = choices.get(*at).map_or("", String::as_str);
            pen.put(chosen, if focused { cx.theme.style(StyleRole::Strong) } else { plain });
            pen.space(1).glyph(Glyph::Right, arrow).space(2);
            if field.id == FieldId::Model {
                answers(form, cx, &mut pen);
            } else {
                pen.put(&format!("{} of {}", at + 1, choices.len()), dim);
                if focused && choices.len() > 1 {
                    let keys = format!("{} {}", key_of(Action::Left), key_of(Action::Right));
                    pen.space(2).put(&keys, cx.theme.style(StyleRole::Key)).put(" change", dim);
                }
            }
        }
        FieldValue::Switch { on, .. } => {
            let (mark, role) =
                if *on { ("[x] on", StyleRole::Flag) } else { ("[ ] off", StyleRole::Off) };
            Pen::new(buf, place, cx.glyphs).put(mark, cx.theme.style(role));
        }
        FieldValue::Model { text, .. } => {
            model(form, text, focused, cx, Pen::new(buf, place, cx.glyphs));
        }
        FieldValue::Button => {}
    }
    note(field, slot, form, layout, cx, buf);
}

/// Draws the note next to a field: its problem, else its hint.
fn note(
    field: &Field,
    slot: &FormSlot,
    form: &LaunchForm,
    layout: &FormLayout,
    cx: &DrawContext,
    buf: &mut Buffer,
) {
    if slot.y < layout.top {
        return;
    }
    let row = layout.row(slot.y);
    let from = layout.parts.label + layout.parts.widget(slot.is_long) + 1;
    let area =
        Rect { x: row.x + from.min(row.width), width: row.width.saturating_sub(from), ..row };
    let mut pen = Pen::new(buf, area, cx.glyphs);
    match form.problem_of(&field.id) {
        Some(fault) => {
            let (glyph, role) = marked(fault.error);
            let style = cx.theme.style(role);
            pen.glyph(glyph, style).space(1).put(&fault.text, style);
        }
        None => {
            pen.put(&field.hint, cx.theme.style(StyleRole::Dim));
        }
    }
}

fn marked(error: bool) -> (Glyph, StyleRole) {
    if error { (Glyph::Failed, StyleRole::Failed) } else { (Glyph::Alert, StyleRole::Retry) }
}

/// Draws the source of the answers to model calls: the script, or the host and the origin of its key,
/// never the key.
fn answers(form: &LaunchForm, cx: &DrawContext, pen: &mut Pen) {
    let dim = cx.theme.style(StyleRole::Dim);
    match form.fields.model() {
        RequestedModel::Scripted { instant: false } => {
            pen.put("offline: scripted replies with their delays", dim);
        }
        RequestedModel::Scripted { instant: true } => {
            pen.put("offline: scripted replies, no delays", dim);
        }
        RequestedModel::Live(_) if form.is_checking_model() => {
            pen.put("looking for the model's key and address", dim);
        }
        RequestedModel::Live(_) => match &form.models.offer {
            LiveOffer::Ready { host, key, .. } => {
                let style = cx.theme.style(StyleRole::Text);
                // The origin of the key is always shown in full; the host is shortened.
                let room = usize::from(pen.left()).saturating_sub(columns(key) + 5);
                let host = elide_middle(host, room.max(8), cx.glyphs);
                pen.put(&format!("at {host}, {key}"), style);
            }
            LiveOffer::Choose { .. } => {
                pen.put("several providers have a key", cx.theme.style(StyleRole::Failed));
            }
            // The whole sentence is below the fields.
            LiveOffer::Missing { why } => {
                let short = why.split(": ").next().unwrap_or(why);
                pen.put(short, cx.theme.style(StyleRole::Failed));
            }
        },
    }
}

/// Draws the model that would be called, and where its name comes from.
fn model(form: &LaunchForm, text: &str, focused: bool, cx: &DrawContext, mut pen: Pen) {
    let dim = cx.theme.style(StyleRole::Dim);
    let style = cx.theme.style(if focused { StyleRole::Strong } else { StyleRole::Text });
    let named = match &form.models.offer {
        _ if !text.is_empty() => {
            let changed = form.fields.get(&FieldId::ModelName).is_some_and(Field::changed);
            Some((text, if changed { "chosen here" } else { form.models.given.as_str() }))
        }
        LiveOffer::Ready { model, model_from, .. } if !form.is_checking_model() => {
            Some((model.as_str(), model_from.as_str()))
        }
        LiveOffer::Choose { .. } => {
            pen.glyph(Glyph::NeedsYou, cx.theme.style(StyleRole::NeedsYou)).space(1);
            pen.put("choose one", style).space(2).put("Enter lists the providers", dim);
            return;
        }
        _ => None,
    };
    let Some((name, from)) = named else {
        pen.put("none", dim).space(2).put("Enter to choose one", dim);
        return;
    };
    let room = usize::from(pen.left());
    let hint = "; Enter lists others";
    let hinted = focused && columns(name) + columns(from) + columns(hint) + 2 <= room;
    let hint = if hinted { hint } else { "" };
    let note = columns(from) + columns(hint) + 2;
    // The name is shortened last.
    let whole = room.saturating_sub(note).max(room.min(24));
    pen.put(&elide_middle(name, whole, cx.glyphs), style).space(2).put(from, dim).put(hint, dim);
}

/// Draws the problem of the focused field, else the first one of the form. If the form cannot be
/// started it takes the rows of the command line too, since a text ends with what to do.
fn fault(form: &LaunchForm, parts: &FormParts, cx: &DrawContext, buf: &mut Buffer) {
    let (Some(fault), Some(text)) = (form.shown_problem(), form.problem_text()) else { return };
    let (glyph, role) = marked(fault.error);
    let style = cx.theme.style(role);
    let area = if form.is_startable() { parts.fault } else { parts.fault.union(parts.command) };
    Pen::new(buf, Rect { height: 1, ..area }, cx.glyphs).glyph(glyph, style);
    let mark = PROBLEM_MARK.min(area.width);
    let inside = Rect { x: area.x + mark, width: area.width - mark, ..area };
    paragraph(cx, inside, &text, style, buf);
}

/// Draws the command line that starts the same run.
fn command(form: &LaunchForm, parts: &FormParts, cx: &DrawContext, buf: &mut Buffer) {
    // A command line that cannot run is of no use.
    if !form.is_startable() {
        return;
    }
    let (dim, key) = (cx.theme.style(StyleRole::Dim), cx.theme.style(StyleRole::Key));
    let area = parts.command;
    if let Some(why) = form.no_command() {
        return paragraph(cx, area, why, dim, buf);
    }
    let line = form.command_line();
    let label = 10.min(area.width);
    Pen::new(buf, area, cx.glyphs).put("same as", dim);
    let text = Rect { x: area.x + label, width: area.width - label, ..area };
    let (rows, cut) = wrap_within(&line, usize::from(text.width).max(1), text.height.into());
    for (at, (row, y)) in rows.iter().zip(text.top()..text.bottom()).enumerate() {
        let mut pen = Pen::new(buf, Rect { y, height: 1, ..text }, cx.glyphs);
        pen.put(row, cx.theme.style(StyleRole::Text));
        if cut && at + 1 == rows.len() {
            let end = Rect { x: text.right().saturating_sub(9), y, width: 9, height: 1 };
            let mut pen = Pen::new(buf, end.intersection(area), cx.glyphs);
            pen.cell(cx.glyphs.symbol(Glyph::Ellipsis), 3, dim).cell("y all", 6, key);
        }
    }
}

fn buttons(form: &LaunchForm, parts: &FormParts, cx: &DrawContext, buf: &mut Buffer) {
    let area = parts.buttons;
    let mut button = |id: FieldId, text: &str, right: u16, good: bool| {
        let row = Rect { x: area.x + right.min(area.width), ..area }.intersection(area);
        let style: Style = match (form.fields.focus == id, good) {
            (true, _) => cx.theme.style(StyleRole::Button).add_modifier(Modifier::REVERSED),
            (false, true) => cx.theme.style(StyleRole::Key),
            (false, false) => cx.theme.style(StyleRole::Dim),
        };
        Pen::new(buf, row, cx.glyphs).put(text, style);
    };
    button(FieldId::Start, "[ Start ]", 0, form.is_startable());
    button(FieldId::Cancel, "[ Cancel ]", CANCEL_AT, true);
    let rest = CANCEL_AT + 13;
    let row = Rect { x: area.x + rest.min(area.width), ..area }.intersection(area);
    let text = if form.fields.is_editing() {
        format!("{} starts, Esc leaves the text", key_of(Action::Start))
    } else if form.no_command().is_some() {
        format!("{} starts", key_of(Action::Start))
    } else {
        format!("{} copies the command line", key_of(Action::Copy))
    };
    Pen::new(buf, row, cx.glyphs).put(&text, cx.theme.style(StyleRole::Dim));
}
