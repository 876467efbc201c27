//! `roundtable schema`: the JSON schemas of scenarios, events and outcomes.

use clap::Args;

use super::exit::Exit;
use super::streams;
use super::streams::refuse;
use crate::base::refused::Refused;
use crate::log::event::safe_json;
use crate::log::event::schema::{event_schema, outcome_schema};
use crate::scenario::schema;

/// Arguments of `roundtable schema`.
#[derive(Debug, Clone, Default, Args)]
pub struct SchemaArgs {
    /// The schema of events: the lines of `run --format jsonl`
    #[arg(long, conflicts_with = "outcome")]
    pub events: bool,
    /// The schema of the outcome that `run --format json` prints
    #[arg(long)]
    pub outcome: bool,
}

/// Prints a schema. Taplo and similar tools find that of scenarios through a first line such as
/// `#:schema ./roundtable.schema.json` in a scenario.
pub fn run(args: &SchemaArgs) -> Exit {
    let schema = match args {
        SchemaArgs { events: true, .. } => event_schema(),
        SchemaArgs { outcome: true, .. } => outcome_schema(),
        SchemaArgs { .. } => schema(),
    };
    match safe_json::pretty(&schema) {
        Ok(json) => streams::print_data(&(json + "\n"), Exit::Ok),
        Err(error) => refuse(&Refused::new(error.to_string()), Exit::Stopped),
    }
}
