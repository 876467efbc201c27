//! The geometry and the look of a card.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::document::document;
use super::fields::{AnswerField, AnswerFields, AnswerValue};
use super::{Card, CardStep};
use crate::log::event::kind::Answer;
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::layout::{Size, inside};
use crate::screen::questions::{is_irreversible, open_questions};
use crate::screen::run::inspector::WrappedDocument;
use crate::screen::scroll::{WrappingLines, draw_scrolled};
use crate::screen::state::AppState;
use crate::screen::text::Pen;
use crate::screen::widgets::render_text_field;
use crate::screen::{DrawContext, frame};
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::question::noun;
use crate::words::styled::{StyleRole, StyledText};

/// Columns of the name of a field.
const NAME: std::ops::Range<usize> = 8..20;
/// Maximum width of the text, so that its lines stay readable.
const MAX_TEXT: u16 = 110;
/// Minimum rows of the text above the fields.
const MIN_TEXT: u16 = 3;

/// The parts of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardParts {
    /// All of it, border included.
    pub window: Rect,
    /// The rows of its text that are in view.
    pub text: Rect,
    /// The rows of the fields that are in view.
    pub fields: Rect,
    /// The row that says what the next key does.
    pub prompt: Rect,
}

/// The parts of a card with this text. It takes at most three fifths of the body.
pub fn parts(card: &Card, document: &StyledText, size: Size) -> CardParts {
    let body = size.body();
    let width = body.width.saturating_sub(4).min(MAX_TEXT);
    let most = body.height.saturating_mul(3) / 5;
    let field_rows: u16 =
        card.fields().map_or(0, |fields| fields.list.iter().map(AnswerField::rows).sum());
    let field_rows = if field_rows > 0 { field_rows + 1 } else { 0 };
    // The border, and the row for what the next key does.
    let text_rows = WrappedDocument { document, width }.rows_within(most);
    let height = text_rows.saturating_add(field_rows).saturating_add(4).min(most);
    let window = Rect { y: body.bottom() - height, height, ..body };
    let inner = inside(window);
    let inner = Rect { x: inner.x + 1, width: width.min(inner.width.saturating_sub(2)), ..inner };
    let prompt = Rect { y: inner.bottom().saturating_sub(1), height: inner.height.min(1), ..inner };
    let above = inner.height.saturating_sub(1);
    let fields = field_rows.min(above.saturating_sub(MIN_TEXT.min(above)));
    // A blank row between the text and what is below it.
    let text = above.saturating_sub(fields).saturating_sub(u16::from(fields == 0 && above > 4));
    let fields = Rect { y: inner.y + above - fields, height: fields, ..inner };
    CardParts { window, text: Rect { height: text, ..inner }, fields, prompt }
}

/// Draws a card.
pub fn render(card: &Card, state: &AppState, cx: &DrawContext, buf: &mut Buffer) {
    let document = document(card, state);
    let parts = parts(card, &document, state.size);
    let asked = &card.asked;
    let title = format!("{} {} for {}", asked.id, noun(&asked.subject), asked.who);
    let key = card.key();
    let all = open_questions(&state.runs);
    let place = all.map(|it| it.key()).position(|it| it == key);
    let count = open_questions(&state.runs).count();
    let foot = match place {
        Some(place) if count > 1 => format!("{}, {} of {count}", card.run, place + 1),
        _ => card.run.to_string(),
    };
    frame::window(&title, &foot, cx, parts.window, buf);
    draw_scrolled(cx, parts.text, &document, card.scroll, buf);
    if let Some(fields) = card.fields() {
        draw_fields(fields, cx, parts.fields, buf);
    }
    prompt(card, cx, parts.prompt, buf);
}

/// Draws the fields; those above the focused one scroll out of view where there is no room.
fn draw_fields(fields: &AnswerFields, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let names = fields.list.iter().map(|field| columns(&field.name) + 2).max().unwrap_or(0);
    let names = names.clamp(NAME.start, NAME.end) as u16;
    let border = cx.theme.style(StyleRole::Border);
    let mut top = Pen::new(buf, Rect { height: area.height.min(1), ..area }, cx.glyphs);
    let width = top.left();
    top.glyphs(Glyph::Horizontal, width, border);
    let rows =
        Rect { y: area.y + area.height.min(1), height: area.height.saturating_sub(1), ..area };
    let mut first = 0;
    let needed = |first: usize| -> u16 {
        let shown = fields.list.iter().take(fields.focus + 1).skip(first);
        shown.map(AnswerField::rows).sum()
    };
    while first < fields.focus && needed(first) > rows.height {
        first += 1;
    }
    let mut y = rows.y;
    for (at, field) in fields.list.iter().enumerate().skip(first) {
        let height = field.rows().min(rows.bottom().saturating_sub(y));
        if height == 0 {
            break;
        }
        let focused = at == fields.focus;
        let role = if focused { StyleRole::Title } else { StyleRole::Dim };
        let mut pen = Pen::new(buf, Rect { y, height: 1, ..rows }, cx.glyphs);
        pen.put_within(&field.name, names - 1, cx.theme.style(role));
        let left = rows.x + names;
        let hint = u16::try_from(columns(&field.hint)).unwrap_or(0);
        let hint = if hint > 0 && rows.width > names + hint + 24 { hint + 2 } else { 0 };
        let width = rows.right().saturating_sub(left + hint);
        let place = Rect { x: left, y, width, height };
        match &field.value {
            AnswerValue::Text(text) => {
                render_text_field(text, cx, place, height, 0, focused, buf);
            }
            AnswerValue::Choice { choices, at, .. } => {
                let choice = choices.get(*at).map_or("", String::as_str).replace('_', " ");
                let choice = if choice.is_empty() { "not given".to_owned() } else { choice };
                let mut pen = Pen::new(buf, place, cx.glyphs);
                let style = cx.theme.style(if focused { StyleRole::Key } else { StyleRole::Text });
                let number = format!("  {} of {}", at + 1, choices.len());
                pen.put("< ", cx.theme.style(StyleRole::Dim)).put(&choice, style);
                pen.put(" >", cx.theme.style(StyleRole::Dim));
                pen.put(&number, cx.theme.style(StyleRole::Dim));
            }
        }
        if hint > 0 {
            let at = Rect { x: left + width + 2, y, width: hint, height: 1 };
            Pen::new(buf, at, cx.glyphs).put(&field.hint, cx.theme.style(StyleRole::Dim));
        }
        y += height;
    }
}

/// Draws what the next key does, or what is wrong.
fn prompt(card: &Card, cx: &DrawContext, row: Rect, buf: &mut Buffer) {
    let (text, role) = match &card.problem {
        Some(problem) => (format!("! {problem}"), StyleRole::Failed),
        None => prompt_text(card),
    };
    Pen::new(buf, row, cx.glyphs).put(&text, cx.theme.style(role));
}

fn prompt_text(card: &Card) -> (String, StyleRole) {
    let [approve, send, edit] = [Action::Approve, Action::Send, Action::EditAnswer].map(key_of);
    let needs = |text: String| (text, StyleRole::NeedsYou);
    match &card.step {
        CardStep::Reading if is_irreversible(&card.asked) && !card.end_seen => {
            needs(format!("It cannot be undone: read to the end, then {approve} twice."))
        }
        CardStep::Reading if is_irreversible(&card.asked) => {
            needs(format!("It cannot be undone: {approve} twice approves it."))
        }
        CardStep::Reading => (reading_text(card), StyleRole::Dim),
        CardStep::Reply if card.asked.subject.approves().is_some() => {
            let text = format!("{send} shows the changed arguments. Nothing is approved by that.");
            (text, StyleRole::Dim)
        }
        CardStep::Reply => (format!("{send} sends it, Esc keeps it as a draft."), StyleRole::Dim),
        CardStep::Reason if card.asked.subject.approves().is_some() => {
            ("Enter denies the call, Esc goes back.".to_owned(), StyleRole::Dim)
        }
        CardStep::Reason => ("Enter sends the decision, Esc goes back.".to_owned(), StyleRole::Dim),
        CardStep::Review(_) if is_irreversible(&card.asked) => {
            needs(format!("Read to the end, then {approve} twice: exactly these arguments."))
        }
        CardStep::Review(_) => {
            needs(format!("{approve} approves exactly these arguments, {edit} edits them again."))
        }
        CardStep::Certain(_) => {
            needs(format!("It cannot be undone: {approve} once more approves it, Esc goes back."))
        }
        CardStep::Remember => {
            let remember = key_of(Action::Remember);
            needs(format!("{remember} or {approve} approves it and adds the rule, Esc goes back."))
        }
        CardStep::Suggested(answer) => {
            let what = match answer {
                Answer::Approve { .. } => "approves it as the script would",
                _ => "sends the script's answer",
            };
            needs(format!("{} {what}, Esc goes back.", key_of(Action::Suggest)))
        }
        CardStep::Sent => ("Sent. The run takes it now.".to_owned(), StyleRole::Dim),
        CardStep::Ended(_) => ("It is no longer open.".to_owned(), StyleRole::Dim),
    }
}

/// Which keys answer a question that is read.
fn reading_text(card: &Card) -> String {
    let [approve, deny, edit] = [Action::Approve, Action::Deny, Action::EditAnswer].map(key_of);
    if card.asked.subject.approves().is_some() {
        return format!("{approve} approves this call once, {deny} denies it.");
    }
    match card.offers(Action::Pick(1)) {
        true => "The number of an answer chooses it.".to_owned(),
        false => format!("{edit} continues the answer."),
    }
}
