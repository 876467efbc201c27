//! What answers for a run's tools, made from what this machine has before the run starts.

use crate::engine::Toolbox;
use crate::scenario::Scenario;

/// The tools of a scenario, its variables taken from the environment of this program.
///
/// # Errors
/// Everything that is missing, each as a line that says what to set.
pub fn toolbox(scenario: &Scenario, instant: bool) -> Result<Toolbox, Vec<String>> {
    Toolbox::make(scenario, instant, &|name| std::env::var(name).ok())
        .map_err(|troubles| troubles.iter().map(ToString::to_string).collect())
}
