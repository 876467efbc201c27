//! The scenario format: what is accepted, and what is said of mistakes.

mod condition_bounds;
mod conditions;
mod contracts;
mod hostile;
mod load;
mod mutations;
mod problems;
mod prompt_files;
mod properties;
mod research;
mod router;
mod schema;
mod shipped;
mod suggestions;
mod teams;
mod tools;
