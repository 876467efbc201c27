//! Events, and the world that is folded from them.

mod golden;
mod redaction;
mod schema;
mod team_world;
mod tools_outcome;
mod tools_world;
