//! The registry of words: for each pattern what it says about its runs.

use super::pattern_words::Narrate;
use crate::event::world::{PatternWorld, World};

/// The words of the run's pattern; `None` before the head.
pub fn words(world: &World) -> Option<&dyn Narrate> {
    match &world.pattern {
        PatternWorld::None => None,
        PatternWorld::Collaboration(it) => Some(it),
        PatternWorld::Orchestrator(it) => Some(it),
        PatternWorld::Team(it) => Some(it),
        PatternWorld::Resilience(it) => Some(it),
        PatternWorld::Research(it) => Some(&**it),
        PatternWorld::Router(it) => Some(it),
    }
}
