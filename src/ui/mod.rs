//! The dashboard's look: pure functions from the state to cells. Nothing here changes the state.

pub(crate) mod border;
pub mod chrome;
mod colour;
mod commands;
pub(crate) mod comparison;
pub mod confirm;
pub mod cx;
pub(crate) mod document;
pub mod faults;
pub mod flags;
pub mod format;
pub mod frame;
pub mod header;
pub mod help;
pub mod home;
pub mod inspector;
pub mod launch;
pub mod message;
pub(crate) mod pane;
pub mod picker;
pub mod picture;
pub mod run;
pub(crate) mod seven_bits;
pub mod sign;
pub(crate) mod table;
mod templates;
pub mod text;
mod text_field;
pub mod theme;
pub(crate) mod title;
pub mod too_small;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::cx::DrawContext;
use crate::app::AppState;
use crate::app::layout::Size;
use crate::app::overlay::Overlay;
use crate::app::state::ActiveScreen;

/// Draws the whole screen.
pub fn render(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    draw(state, cx, area, buf);
    if state.settings.ascii {
        seven_bits::apply(buf);
    }
}

fn draw(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    if too_small::is(area) {
        too_small::render(state, cx, area, buf);
        return;
    }
    let parts = chrome::ScreenParts::split(area);
    chrome::render(state, cx, parts, buf);
    match (&state.screen, state.visible_run()) {
        (ActiveScreen::Run(_), Some(page)) => {
            let height = parts.body.height.saturating_sub(state.docked_rows());
            run::render(page, cx, Rect { height, ..parts.body }, buf);
        }
        _ => home::render(state, cx, parts.body, buf),
    }
    let size = Size { cols: area.width, rows: area.height };
    for (nth, overlay) in state.overlays.iter().enumerate() {
        match overlay {
            // The message box is hidden under an overlay, so that no two frames collide.
            Overlay::Message(_) if nth + 1 < state.overlays.len() => {}
            // The list of models replaces the form.
            Overlay::Form(form) => match &form.picker {
                Some(picker) => picker::render(form, picker, cx, size, buf),
                None => launch::render(form, cx, size, buf),
            },
            Overlay::Flags(drawer) => {
                if let Some(page) = state.run(&drawer.run) {
                    flags::render(drawer, page, state, cx, buf);
                }
            }
            Overlay::Faults(drawer) => {
                if let Some(page) = state.run(&drawer.run) {
                    faults::render(drawer, page, state, cx, buf);
                }
            }
            Overlay::Members(drawer) => {
                if let Some(page) = state.run(&drawer.run) {
                    crate::panes::agents::draw::members::render(drawer, page, state, cx, buf);
                }
            }
            Overlay::Message(message) => {
                if let Some(page) = state.run(&message.run) {
                    message::render(message, page, cx, size, buf);
                }
            }
            Overlay::Templates(list) => templates::render(list, cx, size, buf),
            Overlay::Comparison(view) => comparison::render(view, cx, size, buf),
            Overlay::Help(help) => help::render(help, cx, size, state.settings.ascii, buf),
            Overlay::Commands(list) => commands::render(list, cx, size, buf),
            Overlay::Confirm(confirm) => confirm::render(confirm, cx, size, buf),
        }
    }
}
