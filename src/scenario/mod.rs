//! What is asked: the scenario file, its validation with positions, CEL conditions, inputs and
//! flags. Knows nothing of runs, models or screens.

pub mod alert;
mod amount;
mod build;
mod build_answers;
mod build_orchestrator;
mod build_storm;
mod build_tools;
pub mod canonical;
mod cel_functions;
mod cel_parse;
pub mod condition;
pub mod draw;
mod format;
mod format_patterns;
mod format_tools;
mod input;
mod literal;
mod load;
pub mod model;
pub mod name;
mod named;
pub mod orchestrator;
mod overrides;
mod pattern;
mod problem;
mod reader;
mod record;
pub mod resilience;
mod script;
mod shape;
mod shipped;
mod shown_value;
mod source;
pub mod storm;
mod template;
pub mod tool;
mod tree;
mod when;

pub use format::schema;
pub use load::{Checked, MAX_BYTES, check, load};
pub use model::{Origin, Scenario};
pub use overrides::{Override, OverrideError};
pub use problem::{Place, Problem, Problems, Severity};
pub use shipped::{Listing, Shipped, shipped};
pub use source::{Source, SourceError};
