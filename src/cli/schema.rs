//! `roundtable schema`: the JSON schema of the scenario format, so that editors complete it.

use std::io::{self, Write};

use super::exit::Exit;
use super::safe_json;
use crate::scenario::schema;

/// Prints the schema. Taplo and its kin find it through a first line such as
/// `#:schema ./roundtable.schema.json` in a scenario.
pub fn run() -> Exit {
    match safe_json::pretty(&schema()) {
        Ok(json) => {
            // A reader that has gone wants no more of it.
            let _ = writeln!(io::stdout(), "{json}");
            Exit::Ok
        }
        Err(error) => {
            super::run::say(&error.to_string());
            Exit::Stopped
        }
    }
}
