//! The flags drawer of a run, and the flag changes that are pending. The position that a drawer
//! shows is always the current one; a pending change is shown next to it.

use ratatui::layout::Rect;

use super::action::Action;
use super::layout::{DrawerParts, Size, drawer, keep_in_view};
use super::selection::moved_index;
use crate::base::name::FlagName;
use crate::event::kind::Initiator;
use crate::event::world::World;
use crate::event::{Command, Event, EventKind, RunId};

/// Rows of one flag: its position, and where that came from.
pub const FLAG_ROWS: u16 = 2;
/// Rows for the effect of a switch.
const FOOT: u16 = 9;

/// The parts of the drawer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlagsParts {
    /// All of it, border included.
    pub window: Rect,
    /// The flags.
    pub list: Rect,
    /// The effect of a switch.
    pub what_if: Rect,
    /// The first flag in view.
    pub top: usize,
}

/// The drawer over a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagsDrawer {
    /// The run of the flags.
    pub run: RunId,
    /// The selected flag.
    pub selected: Option<FlagName>,
}

impl FlagsDrawer {
    /// The drawer of a run, with its first flag selected.
    pub fn new(run: RunId, world: &World) -> Self {
        Self { run, selected: world.settings.flags.first().map(|flag| flag.name.clone()) }
    }

    /// The parts of its window at this size.
    pub fn parts(&self, size: Size, world: &World) -> FlagsParts {
        let flags = u16::try_from(world.settings.flags.len().max(1)).unwrap_or(u16::MAX);
        let list = flags.saturating_mul(FLAG_ROWS);
        let DrawerParts { window, list, note } = drawer(size.body(), list, FOOT);
        let at =
            world.settings.flags.iter().position(|flag| Some(&flag.name) == self.selected.as_ref());
        let rows = usize::from(list.height / FLAG_ROWS);
        FlagsParts {
            window,
            list,
            what_if: note,
            top: keep_in_view(0, at.unwrap_or(0), rows, world.settings.flags.len()),
        }
    }

    /// Selects the row on this line of the list; the row `top` is the first in view. Returns whether it
    /// was selected before and can be switched; `None` if the line has no row.
    pub(super) fn select_line(&mut self, line: usize, top: usize, world: &World) -> Option<bool> {
        let flag = world.settings.flags.get(top + line / usize::from(FLAG_ROWS))?;
        let before = self.selected.replace(flag.name.clone());
        Some(before.as_ref() == Some(&flag.name))
    }

    /// Moves the selection; returns whether the action was a movement.
    pub fn on_move(&mut self, action: Action, world: &World, page: usize) -> bool {
        let at =
            world.settings.flags.iter().position(|flag| Some(&flag.name) == self.selected.as_ref());
        match moved_index(action, at, world.settings.flags.len(), page)
            .and_then(|at| world.settings.flags.get(at))
        {
            Some(flag) => {
                self.selected = Some(flag.name.clone());
                true
            }
            None => false,
        }
    }
}

/// A manual flag change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingFlag {
    /// The run of the flag.
    pub run: RunId,
    /// The flag.
    pub flag: FlagName,
    /// The new position.
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

    /// Switches a flag. `None` if the run has ended or has no such flag.
    pub fn switch(&mut self, run: &RunId, flag: &FlagName, world: &World) -> Option<Command> {
        if !world.progress.is_live() || !world.settings.flags.iter().any(|row| row.name == *flag) {
            return None;
        }
        let on = self.next_position(run, flag, world);
        self.undoable.push(PendingFlag { run: run.clone(), flag: flag.clone(), on });
        Some(self.request_position(run, flag, on, world))
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
