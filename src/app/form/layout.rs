//! Layout of the form. Drawing and mouse hits use the same slots.

use ratatui::layout::Rect;
use tui_textarea::CursorMove;

use super::field::{FieldId, FieldValue};
use super::picker::PickerParts;
use super::{FormSection, LaunchForm};
use crate::app::layout::Size;
use crate::app::layout::{centred, inside};

/// Widest size of the form, in columns.
const COLS: u16 = 108;
/// Rows below the fields: the first problem, two rows of the command line, the buttons.
const FOOT: u16 = 4;
/// Columns of the labels.
pub const LABEL: u16 = 20;
/// The most rows of a text field.
const TEXT_ROWS: usize = 6;

/// The rows of one field or heading, counted from the top of all fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormSlot {
    /// The field; `None` for a heading.
    pub id: Option<FieldId>,
    /// The section that it belongs to.
    pub section: FormSection,
    /// Its first row.
    pub y: u16,
    /// Its rows.
    pub rows: u16,
}

/// The parts of the form's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormParts {
    /// All of it, border included.
    pub window: Rect,
    /// The fields in view.
    pub fields: Rect,
    /// The row of the first problem.
    pub fault: Rect,
    /// The command line.
    pub command: Rect,
    /// The buttons.
    pub buttons: Rect,
}

impl FormParts {
    /// Cuts the form's window out of the screen; `rows` is the number of rows that its fields need.
    pub fn split(size: Size, rows: u16) -> Self {
        let window = centred(size.body(), COLS, rows.saturating_add(FOOT + 2));
        let inner = inside(window);
        let inner =
            Rect { x: inner.x + inner.width.min(1), width: inner.width.saturating_sub(2), ..inner };
        let foot = FOOT.min(inner.height);
        let fields = Rect { height: inner.height - foot, ..inner };
        let row = |down: u16, rows: u16| {
            Rect { y: fields.bottom() + down, height: rows, ..inner }.intersection(inner)
        };
        Self { window, fields, fault: row(0, 1), command: row(1, 2), buttons: row(3, 1) }
    }

    /// Columns of a field's value; a note begins after them. A long field takes the whole width.
    pub fn widget(&self, long: bool) -> u16 {
        let room = self.fields.width.saturating_sub(LABEL);
        if long { room } else { room.min(30) }
    }
}

impl LaunchForm {
    /// The parts of the window at this size.
    pub fn parts(&self, size: Size) -> FormParts {
        let probe = FormParts::split(size, u16::MAX);
        FormParts::split(size, height(&self.slots(&probe)))
    }

    /// The slots of all fields, in order, for this width.
    pub fn slots(&self, parts: &FormParts) -> Vec<FormSlot> {
        let mut slots: Vec<FormSlot> = Vec::new();
        let mut y = 0;
        for field in self.fields.iter().filter(|field| self.is_shown(&field.id)) {
            let section = FormSection::of_field(&field.id);
            if section == FormSection::Buttons {
                continue;
            }
            if slots.last().is_none_or(|last| last.section != section) {
                slots.push(FormSlot { id: None, section, y, rows: 1 });
                y += 1;
            }
            let rows = match &field.value {
                FieldValue::Text(text) => {
                    let long = is_long(&field.id);
                    let cols = usize::from(parts.widget(long).saturating_sub(1)).max(1);
                    let least = if field.id == FieldId::Goal { 3 } else { 1 };
                    let rows: usize = text
                        .area
                        .lines()
                        .iter()
                        .map(|line| line.chars().count() / cols + 1)
                        .take(TEXT_ROWS)
                        .sum();
                    rows.clamp(least, TEXT_ROWS) as u16
                }
                _ => 1,
            };
            slots.push(FormSlot { id: Some(field.id.clone()), section, y, rows });
            y += rows;
        }
        slots
    }

    /// The labels of the fields above and below the view, partly visible ones included.
    pub fn hidden(&self, parts: &FormParts, slots: &[FormSlot]) -> [Vec<&str>; 2] {
        let end = self.top + parts.fields.height;
        let labels = |out: &dyn Fn(&FormSlot) -> bool| {
            let of = slots.iter().filter(|slot| out(slot)).filter_map(|slot| slot.id.as_ref());
            of.filter_map(|id| self.field(id)).map(|field| field.label.as_str()).collect()
        };
        [labels(&|slot| slot.y < self.top), labels(&|slot| slot.y + slot.rows > end)]
    }

    /// Keeps the focused field in view, and the selected row in the list of models.
    pub fn arrange(&mut self, size: Size) {
        if let Some(picker) = &mut self.picker {
            picker.arrange(usize::from(PickerParts::split(size).list.height));
        }
        let parts = self.parts(size);
        let slots = self.slots(&parts);
        let rows = parts.fields.height.max(1);
        let last = height(&slots).saturating_sub(rows);
        self.top = self.top.min(last);
        let Some(at) = slots.iter().position(|slot| slot.id.as_ref() == Some(&self.focus)) else {
            return;
        };
        // The heading scrolls with the first field under it.
        let first = match at.checked_sub(1).and_then(|before| slots.get(before)) {
            Some(head) if head.id.is_none() => head.y,
            _ => slots[at].y,
        };
        let end = slots[at].y + slots[at].rows;
        if end > self.top + rows {
            self.top = end - rows;
        }
        if first < self.top {
            self.top = first.min(last);
        }
    }

    /// Scrolls by one row.
    pub fn scroll(&mut self, up: bool, size: Size) {
        let parts = self.parts(size);
        let last = height(&self.slots(&parts)).saturating_sub(parts.fields.height);
        self.top = if up { self.top.saturating_sub(1) } else { (self.top + 1).min(last) };
    }

    /// The area of a field's value on the screen; empty where it is out of view.
    pub fn value_area(&self, parts: &FormParts, slot: &FormSlot) -> Rect {
        let end = self.top + parts.fields.height;
        let (from, to) = (slot.y.max(self.top), (slot.y + slot.rows).min(end));
        let long = slot.id.as_ref().is_some_and(is_long);
        Rect {
            x: parts.fields.x + LABEL.min(parts.fields.width),
            y: parts.fields.y + from.saturating_sub(self.top).min(parts.fields.height),
            width: parts.widget(long),
            height: to.saturating_sub(from),
        }
    }

    /// Moves the cursor of the focused text to the mouse.
    pub fn place_cursor(&mut self, size: Size, col: u16, row: u16) {
        let parts = self.parts(size);
        let slots = self.slots(&parts);
        let Some(slot) = slots.iter().find(|slot| slot.id.as_ref() == Some(&self.focus)) else {
            return;
        };
        let at = self.value_area(&parts, slot);
        // A text that is cut at the top begins above the first row in view.
        let cut = self.top.saturating_sub(slot.y);
        let Some(FieldValue::Text(text)) = self
            .fields
            .iter_mut()
            .find(|field| field.id == self.focus)
            .map(|field| &mut field.value)
        else {
            return;
        };
        let (down, right) = (row.saturating_sub(at.y) + cut, col.saturating_sub(at.x));
        let (top, left) = text.area.scroll_offset();
        let clicked = text.area.screen_to_data((down + top).into(), (right + left).into());
        let to = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
        text.area.move_cursor(CursorMove::Jump(to(clicked.0), to(clicked.1)));
    }

    /// The field or button under a cell of the screen.
    pub fn field_at(&self, size: Size, col: u16, row: u16) -> Option<FieldId> {
        let parts = self.parts(size);
        if crate::app::layout::hits(parts.buttons, col, row) {
            return Some(if col < parts.buttons.x + CANCEL_AT {
                FieldId::Start
            } else {
                FieldId::Cancel
            });
        }
        if !crate::app::layout::hits(parts.fields, col, row) {
            return None;
        }
        let y = row - parts.fields.y + self.top;
        let slots = self.slots(&parts);
        slots.into_iter().find(|slot| (slot.y..slot.y + slot.rows).contains(&y))?.id
    }
}

/// Offset of the second button, in columns.
pub const CANCEL_AT: u16 = 14;

/// Whether a field takes the whole width.
pub fn is_long(id: &FieldId) -> bool {
    matches!(id, FieldId::Goal | FieldId::Model | FieldId::ModelName)
}

/// Number of rows of all slots.
pub fn height(slots: &[FormSlot]) -> u16 {
    slots.last().map_or(0, |slot| slot.y + slot.rows)
}
