//! The flags drawer over a run: current positions, pending changes, and the effect of a switch.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cx::DrawContext;
use super::pane::list_below_heading;
use super::text::Pen;
use super::theme::StyleRole;
use super::{format, frame};
use crate::app::AppState;
use crate::app::flags::{FLAG_ROWS, FlagsDrawer};
use crate::app::run::RunPage;
use crate::app::what_if::what_if;
use crate::event::kind::Initiator;
use crate::event::world::FlagNow;
use crate::narrate::glyph::Glyph;
use crate::ui::table;

/// Draws the drawer of a run.
pub fn render(
    drawer: &FlagsDrawer,
    page: &RunPage,
    state: &AppState,
    cx: &DrawContext,
    buf: &mut Buffer,
) {
    let world = page.world();
    let parts = drawer.parts(state.size, world);
    let title = frame::live_title("Flags", page.id().as_str(), world.progress.is_live());
    let foot = format::count_noun(world.settings.flags.len() as u64, "flag");
    frame::window(&title, &foot, cx, parts.window, buf);
    if world.settings.flags.is_empty() {
        let row = Rect { x: parts.list.x + 1, height: parts.list.height.min(1), ..parts.list };
        let text = "This scenario has no flags. Esc closes.";
        Pen::new(buf, row, cx.glyphs).put(text, cx.theme.style(StyleRole::Dim));
        return;
    }
    let rows = usize::from(parts.list.height / FLAG_ROWS);
    for (at, flag) in world.settings.flags.iter().skip(parts.top).take(rows).enumerate() {
        let y = parts.list.y + at as u16 * FLAG_ROWS;
        let area = Rect { y, height: FLAG_ROWS, ..parts.list };
        flag_rows(flag, drawer, page, state, cx, area, buf);
    }
    consequences(drawer, page, state, cx, parts.what_if, buf);
}

fn flag_rows(
    flag: &FlagNow,
    drawer: &FlagsDrawer,
    page: &RunPage,
    state: &AppState,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let selected = drawer.selected.as_ref() == Some(&flag.name);
    let first = Rect { height: 1, ..area };
    let second = Rect { y: area.y + 1, height: 1, ..area };
    let mut pen = table::row(cx, first, selected, buf);
    let word = |on| if on { "on" } else { "off" };
    let pending = state.pending_flags.pending_position(page.id(), &flag.name);
    let (mark, role) = match (pending, flag.on) {
        (Some(_), _) => ("[~] ", StyleRole::Flag),
        (None, true) => ("[x] ", StyleRole::Flag),
        (None, false) => ("[ ] ", StyleRole::Off),
    };
    pen.put(mark, cx.theme.style(role));
    // Room for the pending change too, where there is any to spare.
    let value = if pen.left() >= 44 || pending.is_some() { 22 } else { 5 };
    let name = pen.left().saturating_sub(value);
    pen.name(flag.name.as_str(), name, plain).space(1).put(word(flag.on), cx.theme.style(role));
    if let Some(on) = pending {
        let style = cx.theme.style(StyleRole::Flag);
        pen.space(1).glyph(Glyph::Arrow, style).space(1).put(word(on), style);
        pen.put(" (pending)", cx.theme.style(StyleRole::Notice));
    }
    // For a pending change: when it takes effect. Otherwise: where the position came from.
    let note = match pending {
        Some(on) => what_if(page.world(), &flag.name, on).into_iter().next().unwrap_or_default(),
        None => position_origin(flag, page, state),
    };
    Pen::new(buf, second, cx.glyphs).space(5).put(&note, dim);
}

/// Where a flag's position came from: its last change, else the start of the run.
fn position_origin(flag: &FlagNow, page: &RunPage, state: &AppState) -> String {
    let whence = match &flag.changed {
        Some((at, boundary, by)) => {
            let who = match by {
                Initiator::You => "you",
                Initiator::Schedule => "the command line",
                Initiator::Breakpoint => "a breakpoint",
                Initiator::Suspend => "a suspension",
                Initiator::Store => "the store",
                Initiator::Remote => "another machine",
                Initiator::Runner => "the runner",
            };
            let (when, place) =
                (format::time_in_run(page.world().progress.run_time(*at)), boundary.display_name());
            format!("by {who} at {when}, since {place}")
        }
        None => {
            let head = page.world().head.as_ref();
            let of_file = state
                .scenarios
                .iter()
                .find(|entry| head.is_some_and(|head| head.scenario == entry.name))
                .and_then(|entry| entry.scenario()?.flag(flag.name.as_str()))
                .map(|own| own.default);
            match of_file {
                Some(default) if default == flag.at_start => "the scenario's default".to_owned(),
                Some(_) => "set at the start".to_owned(),
                None => "as at the start".to_owned(),
            }
        }
    };
    if flag.label.is_empty() { whence } else { format!("{whence}. {}", flag.label) }
}

/// Draws the effect of a switch of the selected flag.
fn consequences(
    drawer: &FlagsDrawer,
    page: &RunPage,
    state: &AppState,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let Some(flag) = &drawer.selected else { return };
    let on = state.pending_flags.next_position(page.id(), flag, page.world());
    let position = if on { "on" } else { "off" };
    let heading = match page.world().progress.is_live() {
        true => format!("If you switch {flag} {position} now"),
        false => "Final positions".to_owned(),
    };
    list_below_heading(cx, area, &heading, &what_if(page.world(), flag, on), buf);
}
