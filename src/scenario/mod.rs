//! What is asked: the scenario file, its validation with positions, CEL conditions, inputs and
//! flags. Knows nothing of runs, models or screens.

pub mod condition;
pub mod draw;
pub mod model;
pub mod name;

pub use model::Scenario;
