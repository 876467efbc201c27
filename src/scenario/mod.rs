//! The scenario file: reading, validation with positions, CEL conditions, inputs and flags. Also
//! the configuration file, which is read in the same way. This module knows nothing of runs, models
//! or screens.

pub mod catalogue;
pub mod check;
pub mod condition;
pub mod config;
pub mod consent;
pub mod file;
pub(crate) mod pattern_row;
pub mod patterns;
mod shipped;
pub mod spec;
mod templates;

#[cfg(test)]
pub use file::load::MAX_BYTES;
pub(crate) use file::load::check_again;
pub use file::load::{CheckedScenario, check, load};
pub use file::overrides::{Override, OverrideError};
pub use file::problem::{Problem, ProblemPosition, Problems, Severity};
pub(crate) use file::prompts::{PromptText, prompts};
pub(crate) use file::reader::{closest_name, suggest_name};
#[cfg(any(test, feature = "tui"))]
pub(crate) use file::source::SourceError;
pub use file::source::{STDIN, ScenarioSource};
pub use patterns::schema;
pub use shipped::{ScenarioListing, ShippedScenario, shipped};
pub use spec::model::{Scenario, ScenarioOrigin};
pub use templates::{ScenarioTemplate, templates};
