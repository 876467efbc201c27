//! The launch form over a screen.

use crate::app::action::Action;
use crate::app::keys_in_use::key_of;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::cx::DrawContext;
use super::frame;
use super::pane::{heading, paragraph};
use super::text::{Pen, columns, elide, elide_middle, wrap_within};
use super::text_field;
use super::theme::StyleRole;
use crate::app::form::{
    CANCEL_AT, Field, FieldId, FieldValue, FormLayout, FormParts, FormSlot, LABEL, LaunchForm,
    PROBLEM_MARK,
};
use crate::app::layout::Size;
use crate::narrate::glyph::Glyph;
use crate::scenario::catalogue::LiveOffer;
use crate::scenario::catalogue::RequestedModel;
use crate::ui::table;

/// Draws the form.
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
        table::mark(cx, &mut pen, focused);
        let style = if focused { cx.theme.style(StyleRole::Strong) } else { plain };
        pen.name(&field.label, LABEL - 3, style);
        if field.changed() {
            pen.space(1).put("*", cx.theme.style(StyleRole::Changed));
        }
    }
    match &field.value {
        FieldValue::Text(text) => {
            let typing = focused && form.fields.is_editing();
            let cut = layout.top.saturating_sub(slot.y);
            text_field::render(text, cx, place, slot.rows, cut, typing, buf);
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
    let from = LABEL + layout.parts.widget(Some(&field.id)) + 1;
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

/// Draws what answers the model calls: the script, or the host and where its key comes from; never
/// the key.
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
    let line = form.command_line();
    let area = parts.command;
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
    } else {
        format!("{} copies the command line", key_of(Action::Copy))
    };
    Pen::new(buf, row, cx.glyphs).put(&text, cx.theme.style(StyleRole::Dim));
}
