//! The progress of the run that a page shows.

use super::RunPage;
use crate::event::World;
use crate::narrate::patterns::words;
use crate::narrate::progress::{Progress, closest_limit};

/// The progress in this world.
pub fn progress_of(world: &World) -> Progress {
    let pattern = words(world).map(|words| words.progress(world)).unwrap_or_default();
    Progress { spending: closest_limit(world), ..pattern }
}

impl RunPage {
    /// The progress in the world that is shown.
    pub fn progress(&self) -> Progress {
        progress_of(self.shown())
    }
}
