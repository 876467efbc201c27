//! `roundtable schema`: the JSON schema of the scenario format, for completion in editors.

use super::exit::Exit;
use super::stdout;
use crate::event::safe_json;
use crate::scenario::schema;

/// Prints the schema. Taplo and similar tools find it through a first line such as
/// `#:schema ./roundtable.schema.json` in a scenario.
pub fn run() -> Exit {
    match safe_json::pretty(&schema()) {
        Ok(json) => stdout::print(&(json + "\n"), Exit::Ok),
        Err(error) => {
            super::message::print_message(&error.to_string());
            Exit::Stopped
        }
    }
}
