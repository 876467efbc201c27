//! The dashboard: its state, messages, keys and drawing. This layer has no terminal, no async
//! runtime and no clock: time comes in with the messages ([`msg`]), work for the terminal layer
//! goes out as effects ([`effect`]). [`render`] draws the state into cells and changes nothing.

pub mod action;
pub mod by_word;
pub mod chrome;
pub mod comparison;
pub mod effect;
mod filter_input;
pub mod form;
mod frame;
pub mod home;
mod input;
pub mod key;
pub mod key_hints;
pub mod keymap;
mod launch;
pub mod layout;
mod list;
mod mouse;
pub mod msg;
mod notice;
pub mod picture;
pub mod questions;
pub mod run;
mod scroll;
mod session;
pub mod state;
mod strip;
pub mod text;
pub mod theme;
pub mod tour;
mod update;
mod widgets;
pub mod windows;

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::layout::{MIN_SIZE, Size};
use self::state::ActiveScreen;
use self::text::Pen;
use self::theme::Theme;
use self::windows::{Overlay, commands, confirm, faults, flags, help, message, picker, templates};
use crate::words::glyph::Glyphs;
use crate::words::measure::columns;
use crate::words::styled::StyleRole;

pub use self::action::Action;
pub use self::effect::Effect;
pub use self::key::{KeyCode, KeyPress};
pub use self::msg::Msg;
pub use self::state::AppState;
pub use self::update::update;

/// Draws the whole screen.
pub fn render(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    draw(state, cx, area, buf);
    if state.settings.ascii {
        text::to_ascii(buf);
    }
}

fn draw(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    if layout::too_small(area) {
        render_too_small(state, cx, area, buf);
        return;
    }
    let parts = chrome::ScreenParts::with_strip(area, state.strip_rows());
    chrome::render(state, cx, parts, buf);
    strip::render(state, cx, parts.strip, buf);
    match (&state.screen, state.visible_run()) {
        (ActiveScreen::Run(_), Some(page)) => {
            let height = parts.body.height.saturating_sub(state.docked_rows());
            run::render(page, cx, Rect { height, ..parts.body }, buf);
        }
        _ => home::render(state, cx, parts.body, buf),
    }
    let size = Size { cols: area.width, rows: area.height - parts.strip.height };
    for (nth, overlay) in state.overlays.iter().enumerate() {
        match overlay {
            // The message box is hidden under an overlay, so that no two frames collide.
            Overlay::Message(_) if nth + 1 < state.overlays.len() => {}
            // A card takes the place of the inbox that it was opened from.
            Overlay::Inbox(_) if matches!(state.overlays.get(nth + 1), Some(Overlay::Card(_))) => {}
            Overlay::Inbox(inbox) => self::windows::inbox::render(inbox, state, cx, buf),
            Overlay::Card(card) => self::windows::card::render(card, state, cx, buf),
            // The list of models replaces the form.
            Overlay::Form(form) => match &form.picker {
                Some(picker) => picker::render(form, picker, cx, size, buf),
                None => form::drawing::render(form, cx, size, buf),
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
                    self::windows::members::render(drawer, page, state, cx, buf);
                }
            }
            Overlay::Message(message) => {
                if let Some(page) = state.run(&message.run) {
                    message::render(message, page, cx, size, buf);
                }
            }
            Overlay::Templates(list) => templates::render(list, cx, size, buf),
            Overlay::Comparison(view) => comparison::drawing::render(view, cx, size, buf),
            Overlay::Help(help) => help::render(help, cx, size, state.settings.ascii, buf),
            Overlay::Commands(list) => commands::render(list, cx, size, buf),
            Overlay::Confirm(confirm) => confirm::render(confirm, cx, size, buf),
        }
    }
}

/// Context of drawing: everything a pane needs besides its own data.
#[derive(Clone, Copy, Debug)]
pub struct DrawContext<'a> {
    /// Time since the start of the program.
    pub now: Duration,
    /// The theme.
    pub theme: &'a Theme,
    /// The glyph set.
    pub glyphs: Glyphs,
}

/// Shows the current and the needed size, which runs continue, and how to quit: other keys do
/// nothing on a screen that cannot show their effect.
pub fn render_too_small(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let (cols, rows) = MIN_SIZE;
    let live = state.live_runs().count();
    let goes_on = match (state.visible_run().filter(|page| page.world().progress.is_live()), live) {
        (Some(page), _) => format!("run {} continues", page.id()),
        (None, 0) => "no run is live".to_owned(),
        (None, 1) => "the run continues".to_owned(),
        (None, live) => format!("{live} runs continue"),
    };
    let lines = [
        (format!("{}x{}: too small", area.width, area.height), StyleRole::Strong),
        (format!("needs {cols}x{rows}"), StyleRole::Text),
        (goes_on, StyleRole::Dim),
        ("Ctrl-C twice quits".to_owned(), StyleRole::Dim),
    ];
    let top = area.y + area.height.saturating_sub(lines.len() as u16) / 2;
    for ((line, role), y) in lines.iter().zip(top..area.bottom()) {
        let width = u16::try_from(columns(line)).unwrap_or(u16::MAX).min(area.width);
        let row = Rect { x: area.x + (area.width - width) / 2, y, width, height: 1 };
        Pen::new(buf, row, cx.glyphs).put(line, cx.theme.style(*role));
    }
}
