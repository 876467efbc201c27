//! The effect of a flag change, shown before it is made. Its pattern says what would change.

use crate::base::name::FlagName;
use crate::event::World;
use crate::narrate::patterns::words;

/// The effects of switching `flag` to `on` now, one per line; the first says when it takes effect.
pub fn what_if(world: &World, flag: &FlagName, on: bool) -> Vec<String> {
    if !world.progress.is_live() {
        return vec!["The run has ended: its flags can no longer change.".to_owned()];
    }
    if world.settings.flags.iter().any(|row| row.name == *flag && row.on == on) {
        return vec!["Cancels the pending switch.".to_owned()];
    }
    match words(world) {
        Some(words) => words.if_flag(flag, on, world),
        None => vec!["Takes effect at the next boundary.".to_owned()],
    }
}
