//! Builds a run's tools before the run starts.

use crate::engine::Toolbox;
use crate::scenario::Scenario;

/// The tools of a scenario; variables come from the environment of this program.
///
/// # Errors
/// Everything that is missing, one line each, with what to set.
pub fn toolbox(scenario: &Scenario, instant: bool) -> Result<Toolbox, Vec<String>> {
    Toolbox::make(scenario, instant, &|name| std::env::var(name).ok())
        .map_err(|troubles| troubles.iter().map(ToString::to_string).collect())
}
