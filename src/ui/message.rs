//! The message box, over the lower part of a run.

use crate::app::action::Action;
use crate::app::keys_in_use::key_of;
use ratatui::buffer::Buffer;

use super::cx::DrawContext;
use super::frame::{self, Frame};
use super::pane::{paragraph, scroll_arrows};
use super::text::paint;
use super::theme::StyleRole;
use super::{format, text_field};
use crate::app::layout::Size;
use crate::app::message::{DraftOrigin, MessageBox};
use crate::app::run::RunPage;

/// Draws the box.
pub fn render(
    message: &MessageBox,
    page: &RunPage,
    cx: &DrawContext,
    size: Size,
    buf: &mut Buffer,
) {
    let mut title = format!("Message {} to {}", message.number, message.to);
    let foot = format!("{} sends, Enter is a new line", key_of(Action::Send));
    let window = message.window(size);
    frame::window_border(cx, window, buf);
    let (text, below) = message.parts(size);
    text_field::render(&message.text, cx, text, text.height, 0, true, buf);
    if message.is_suggested() {
        // A suggestion is not the operator's own text yet.
        paint(buf, text, cx.theme.style(StyleRole::Dim));
    }
    // The widget scrolls while it is drawn: only now is it known which rows are out of view.
    let above = message.text.area.scroll_offset().0;
    let hidden = [above > 0, more_below(message, above, text.height)];
    scroll_arrows(cx, window.right() - 1, text, hidden, buf);
    if above > 0 {
        title.push_str(&format!(", {} above", format::count_noun(above.into(), "row")));
    }
    let frame = Frame { title: &title, foot: &foot, focused: true, ..Frame::default() };
    frame::label(frame, cx, window, buf);
    let note = message_note(message, page);
    paragraph(cx, below, &note, cx.theme.style(StyleRole::Dim), buf);
}

/// Whether another row follows the last one in view.
fn more_below(message: &MessageBox, above: u16, height: u16) -> bool {
    let area = &message.text.area;
    let next = usize::from(above) + usize::from(height);
    next > 0 && area.screen_to_data(next, 0) != area.screen_to_data(next - 1, 0)
}

/// Where the text came from, and when it is sent.
fn message_note(message: &MessageBox, page: &RunPage) -> String {
    let live = page.world().progress.is_live();
    let send = key_of(Action::Send);
    let from = match message.from {
        DraftOrigin::Scenario => {
            format!("the scenario's suggestion: {send} sends it, typing replaces it; ")
        }
        DraftOrigin::Queued if live => {
            return format!(
                "queued until the run ends; edit it here, or clear it and press {send} to \
                 withdraw it"
            );
        }
        DraftOrigin::Draft if !message.text.changed() => "your draft; ".to_owned(),
        _ => String::new(),
    };
    let when = match live {
        true => "sent when this run ends",
        false => "sent at once, in a new run",
    };
    format!("{from}{when}")
}
