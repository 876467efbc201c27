//! `roundtable schema`: the JSON schemas of scenarios, events and outcomes.

use super::args::SchemaArgs;
use super::exit::Exit;
use super::stdout;
use crate::event::safe_json;
use crate::event::schema::{event_schema, outcome_schema};
use crate::scenario::schema;

/// Prints a schema. Taplo and similar tools find that of scenarios through a first line such as
/// `#:schema ./roundtable.schema.json` in a scenario.
pub fn run(args: &SchemaArgs) -> Exit {
    let schema = match args {
        SchemaArgs { events: true, .. } => event_schema(),
        SchemaArgs { outcome: true, .. } => outcome_schema(),
        SchemaArgs { .. } => schema(),
    };
    match safe_json::pretty(&schema) {
        Ok(json) => stdout::print_data(&(json + "\n"), Exit::Ok),
        Err(error) => {
            super::message::print_message(&error.to_string());
            Exit::Stopped
        }
    }
}
