//! The scenario format: accepted texts, and reports on mistakes.

mod condition_bounds;
mod conditions;
mod contracts;
mod from_run;
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
