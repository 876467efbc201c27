//! The dashboard's look: pure functions from the state to cells. Nothing here changes anything.

pub mod chrome;
pub mod format;
pub mod glyph;
pub mod home;
pub mod run;
pub mod text;
pub mod theme;
pub mod too_small;

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::glyph::Glyphs;
use self::theme::Theme;
use crate::app::State;
use crate::app::state::Screen;

/// What every pane is drawn with.
#[derive(Clone, Copy, Debug)]
pub struct Cx<'a> {
    /// Time since the start of the program.
    pub now: Duration,
    /// How each role looks.
    pub theme: &'a Theme,
    /// Which set of glyphs.
    pub glyphs: Glyphs,
}

/// Draws the whole screen.
pub fn render(state: &State, cx: &Cx, area: Rect, buf: &mut Buffer) {
    if too_small::is(area) {
        too_small::render(area, buf);
        return;
    }
    let parts = chrome::Parts::of(area);
    chrome::render(state, cx, parts, buf);
    match (&state.screen, state.watched()) {
        (Screen::Run(_), Some(page)) => run::render(page, cx, parts.body, buf),
        _ => home::render(state, cx, parts.body, buf),
    }
}
