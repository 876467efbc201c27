//! The flags drawer of a run, and the flag changes that are pending. The position that a drawer
//! shows is always the current one, with a pending change and its effect next to it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::base::name::FlagName;
use crate::log::event::{Command, Event, EventKind, Initiator, RunId};
use crate::log::world::available::{RunPart, Unavailable, available, can_change};
use crate::log::world::{FlagNow, World};
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::layout::{DrawerParts, Size};
use crate::screen::list::ListState;
use crate::screen::run::RunPage;
use crate::screen::text::Pen;
use crate::screen::widgets::list_below_heading;
use crate::screen::{AppState, DrawContext, frame, list};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::patterns::words_of;
use crate::words::styled::StyleRole;

/// Rows of one flag: its position, and where that came from.
pub const FLAG_ROWS: u16 = 2;
/// Rows for the effect of a switch.
const FOOT: u16 = 9;

/// The drawer over a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagsDrawer {
    pub run: RunId,
    pub list: ListState,
}

impl FlagsDrawer {
    pub fn selected<'a>(&self, world: &'a World) -> Option<&'a FlagNow> {
        world.settings.flags.get(self.list.selected)
    }

    /// The parts of its window at this size.
    pub fn parts(&self, size: Size, world: &World) -> DrawerParts {
        DrawerParts::split(size.body(), self.list, world.settings.flags.len(), FLAG_ROWS, FOOT)
    }

    /// The command of a key that changes a flag, or why there is none; `None` for other keys.
    pub(super) fn change(
        &mut self,
        action: Action,
        world: &World,
        pending: &mut PendingFlags,
    ) -> Option<Result<Command, String>> {
        match action {
            Action::Toggle => {
                let Some(flag) = self.selected(world).map(|flag| &flag.name) else {
                    return Some(Err("This run has no flags.".to_owned()));
                };
                let command = pending.switch(&self.run, flag, world);
                Some(command.map_err(|why| why.sentence()))
            }
            Action::Undo => {
                let undone = pending.undo(&self.run, world);
                Some(undone.ok_or("You have no flag change to undo.".to_owned()).map(
                    |(flag, command)| {
                        let mut flags = world.settings.flags.iter();
                        if let Some(at) = flags.position(|row| row.name == flag) {
                            self.list.selected = at;
                        }
                        command
                    },
                ))
            }
            _ => None,
        }
    }
}

/// A manual flag change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingFlag {
    pub run: RunId,
    pub flag: FlagName,
    pub on: bool,
}

/// The manual flag changes of all runs: those that are pending, and those that can be undone.
#[derive(Clone, Debug, Default)]
pub struct PendingFlags {
    pending: Vec<PendingFlag>,
    undoable: Vec<PendingFlag>,
}

impl PendingFlags {
    /// The pending position of a flag; `None` if no change is pending.
    pub fn pending_position(&self, run: &RunId, flag: &FlagName) -> Option<bool> {
        self.pending
            .iter()
            .find(|asked| asked.run == *run && asked.flag == *flag)
            .map(|asked| asked.on)
    }

    /// The position that the next switch would set: the opposite of the pending one, else of the
    /// current one.
    pub fn next_position(&self, run: &RunId, flag: &FlagName, world: &World) -> bool {
        !self.pending_position(run, flag).unwrap_or_else(|| position(world, flag))
    }

    /// Switches a flag.
    ///
    /// # Errors
    /// The run has ended, or has no such flag.
    pub fn switch(
        &mut self,
        run: &RunId,
        flag: &FlagName,
        world: &World,
    ) -> Result<Command, Unavailable> {
        let on = self.next_position(run, flag, world);
        available(&Command::SetFlag { flag: flag.clone(), on, by: Initiator::You }, world)?;
        self.undoable.push(PendingFlag { run: run.clone(), flag: flag.clone(), on });
        Ok(self.request_position(run, flag, on, world))
    }

    /// Whether there is a change of this run to undo.
    pub fn can_undo(&self, run: &RunId, world: &World) -> bool {
        world.progress.is_live() && self.undoable.iter().any(|asked| asked.run == *run)
    }

    /// Undoes the last change of this run.
    pub fn undo(&mut self, run: &RunId, world: &World) -> Option<(FlagName, Command)> {
        if !world.progress.is_live() {
            return None;
        }
        let at = self.undoable.iter().rposition(|asked| asked.run == *run)?;
        let last = self.undoable.remove(at);
        let command = self.request_position(run, &last.flag, !last.on, world);
        Some((last.flag, command))
    }

    fn request_position(
        &mut self,
        run: &RunId,
        flag: &FlagName,
        on: bool,
        world: &World,
    ) -> Command {
        self.pending.retain(|asked| asked.run != *run || asked.flag != *flag);
        // The run logs no event if the flag has this position already, so nothing becomes pending.
        if position(world, flag) != on {
            self.pending.push(PendingFlag { run: run.clone(), flag: flag.clone(), on });
        }
        Command::SetFlag { flag: flag.clone(), on, by: Initiator::You }
    }

    /// Removes the changes that these new events show to be in effect, and all changes of a run
    /// that has ended.
    pub fn remove_effective<'a>(
        &mut self,
        run: &RunId,
        events: impl IntoIterator<Item = &'a Event>,
    ) {
        for event in events {
            match &event.kind {
                EventKind::FlagChanged { flag, on, .. } => self
                    .pending
                    .retain(|asked| asked.run != *run || asked.flag != *flag || asked.on != *on),
                EventKind::RunClosed(_) => {
                    self.pending.retain(|asked| asked.run != *run);
                    self.undoable.retain(|asked| asked.run != *run);
                }
                _ => {}
            }
        }
    }
}

fn position(world: &World, flag: &FlagName) -> bool {
    world.settings.flags.iter().any(|row| row.name == *flag && row.on)
}

/// The effects of switching `flag` to `on` now, one per line; the first says when it takes effect.
pub fn what_would_change(world: &World, flag: &FlagName, on: bool) -> Vec<String> {
    if let Err(why) = can_change(RunPart::Flags, world) {
        return vec![why.sentence()];
    }
    if world.settings.flags.iter().any(|row| row.name == *flag && row.on == on) {
        return vec!["Cancels the pending switch.".to_owned()];
    }
    match words_of(world) {
        Some(words) => words.if_flag(flag, on, world),
        None => vec!["Takes effect at the next boundary.".to_owned()],
    }
}

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
        let width = parts.window.width.saturating_sub(4);
        let row =
            Rect { x: parts.list.x + 1, width, height: parts.list.height.min(1), ..parts.list };
        let text = "No flags: the scenario has none ([flags] in its file). Esc closes.";
        Pen::new(buf, row, cx.glyphs).put(text, cx.theme.style(StyleRole::Dim));
        return;
    }
    let rows = usize::from(parts.list.height / FLAG_ROWS);
    for (at, flag) in world.settings.flags.iter().enumerate().skip(parts.top).take(rows) {
        let y = parts.list.y + (at - parts.top) as u16 * FLAG_ROWS;
        let area = Rect { y, height: FLAG_ROWS, ..parts.list };
        flag_rows(flag, at == drawer.list.selected, page, state, cx, area, buf);
    }
    consequences(drawer, page, state, cx, parts.note, buf);
}

fn flag_rows(
    flag: &FlagNow,
    selected: bool,
    page: &RunPage,
    state: &AppState,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let first = Rect { height: 1, ..area };
    let second = Rect { y: area.y + 1, height: 1, ..area };
    let mut pen = list::row(cx, first, selected, buf);
    let word = |on| if on { "on" } else { "off" };
    let pending = state.pending_flags.pending_position(page.id(), &flag.name);
    let (mark, role) = match (pending, flag.on) {
        (Some(_), _) => ("[~] ", StyleRole::Flag),
        (None, true) => ("[x] ", StyleRole::Flag),
        (None, false) => ("[ ] ", StyleRole::Off),
    };
    pen.put(mark, cx.theme.style(role));
    // Room for the pending change too, where there is any to spare.
    let is_roomy = pen.left() >= 44;
    let value = match (is_roomy, pending) {
        (true, _) => 22,
        (false, Some(_)) => 10,
        (false, None) => 5,
    };
    let name = pen.left().saturating_sub(value);
    pen.name(flag.name.as_str(), name, plain).space(1).put(word(flag.on), cx.theme.style(role));
    if let Some(on) = pending {
        let style = cx.theme.style(StyleRole::Flag);
        pen.space(1).glyph(Glyph::Arrow, style).space(1).put(word(on), style);
        if is_roomy {
            pen.put(" (pending)", cx.theme.style(StyleRole::Notice));
        }
    }
    Pen::new(buf, second, cx.glyphs).space(5).put(&position_origin(flag, page, state), dim);
}

/// Where a flag's position came from: its last change, else the start of the run.
fn position_origin(flag: &FlagNow, page: &RunPage, state: &AppState) -> String {
    let origin = match &flag.changed {
        Some((at, boundary, by)) => {
            let when = format::time_in_run(page.world().progress.run_time(*at));
            format!("{} at {when}, since {}", by.phrase(), boundary.display_name())
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
    if flag.label.is_empty() { origin } else { format!("{origin}. {}", flag.label) }
}

/// Draws the effect of a switch of the selected flag, or of the pending one.
fn consequences(
    drawer: &FlagsDrawer,
    page: &RunPage,
    state: &AppState,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let Some(flag) = drawer.selected(page.world()).map(|flag| &flag.name) else { return };
    let pending = state.pending_flags.pending_position(page.id(), flag);
    let next = || state.pending_flags.next_position(page.id(), flag, page.world());
    let on = pending.unwrap_or_else(next);
    let position = if on { "on" } else { "off" };
    let heading = match (page.world().progress.is_live(), pending) {
        (false, _) => "Final positions".to_owned(),
        (true, None) => format!("If it is switched {position} now"),
        (true, Some(_)) => format!("It will be {position}"),
    };
    let mut effects = what_would_change(page.world(), flag, on);
    if pending.is_some() {
        effects.push(format!("{} takes the switch back.", key_of(Action::Toggle)));
    }
    list_below_heading(cx, area, &heading, &effects, buf);
}
