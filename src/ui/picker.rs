//! The window over the launch form in which a model is chosen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cx::DrawContext;
use super::format;
use super::frame;
use super::pane::paragraph;
use super::text::{Pen, columns, elide_middle, paint};
use super::theme::StyleRole;
use crate::app::form::LaunchForm;
use crate::app::form::picker::{ModelPicker, PickRow, PickerParts};
use crate::app::layout::Size;
use crate::app::live::OfferedModels;
use crate::narrate::glyph::Glyph;
use crate::scenario::catalogue::LiveOffer;
use crate::ui::table;

/// The most columns of a model's name if a note follows it.
const NAME: u16 = 44;

/// Draws the window.
pub fn render(
    form: &LaunchForm,
    picker: &ModelPicker,
    cx: &DrawContext,
    size: Size,
    buf: &mut Buffer,
) {
    let parts = PickerParts::split(size);
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
    let rows = picker.rows.iter().enumerate().skip(picker.top);
    for ((at, row), y) in rows.zip(parts.list.top()..parts.list.bottom()) {
        let here = Rect { y, height: 1, ..parts.list };
        let selected = at == picker.selected && row.is_choice();
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
    table::mark(cx, &mut pen, selected);
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
