//! The session's next message while it is typed, over the lower part of a run.

use ratatui::buffer::Buffer;

use super::frame::{self, Frame};
use super::text::Pen;
use super::theme::Role;
use super::{Cx, typed};
use crate::app::message::{From, MessageBox};
use crate::app::run::RunPage;
use crate::app::state::Size;

/// Draws the box.
pub fn render(message: &MessageBox, page: &RunPage, cx: &Cx, size: Size, buf: &mut Buffer) {
    let title = format!("Message {} to {}", message.number, message.to);
    let foot = "Ctrl-S sends, Enter is a new line";
    let frame = Frame { title: &title, foot, focused: true, over: true, ..Frame::default() };
    frame::render(frame, cx, message.window(size), buf);
    let (text, below) = message.parts(size);
    typed::render(&message.text, cx, text, text.height, 0, true, buf);
    let from = match message.from {
        From::Scenario if !message.text.changed() => "as the scenario goes on; ",
        From::Waiting if !message.text.changed() => "waits already; empty takes it back; ",
        _ => "",
    };
    let when = match page.world().is_live() {
        true => "sent when this run has ended",
        false => "sent at once, to a run of its own",
    };
    let said = format!("{from}{when}");
    Pen::new(buf, below, cx.glyphs).put(&said, cx.theme.style(Role::Dim));
}
