//! `roundtable diff`: two runs up to their first difference, and what differs after it.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::{DiffArgs, DiffFormat};
use crate::base::refused::Refused;
use crate::cli::exit::Exit;
use crate::cli::streams;
use crate::cli::streams::{StreamStyle, refuse};
use crate::host::{kept_runs, recorded};
use crate::log::event::{Event, safe_json};
use crate::screen::theme::Theme;
use crate::store::ReadError;
use crate::store::database::Database;
use crate::store::file::LogFile;
use crate::words::comparison::runs::{ComparedRun, comparison_text};
use crate::words::comparison::{DifferentEvent, LogComparison, compare};

/// Runs `roundtable diff`: exit code 0 where nothing differs but ids and times, 1 where something does, 2
/// where that is not known.
pub fn diff(args: &DiffArgs, theme: Theme, ascii: bool) -> Exit {
    let mut store = None;
    let mut read = |name: &str| read(name, &mut store);
    let Ok([left, right]) = read(&args.left).and_then(|left| Ok([left, read(&args.right)?])) else {
        return Exit::Usage;
    };
    let found = compare(&left, &right);
    let sides = [ComparedRun::of(&left), ComparedRun::of(&right)];
    let exit = if found.is_same() { Exit::Ok } else { Exit::Stopped };
    let text = match args.format {
        DiffFormat::Json => {
            let report = DiffReport { same: found.is_same(), runs: &sides, comparison: &found };
            safe_json::pretty(&report.json()).map(|json| json + "\n").unwrap_or_default()
        }
        DiffFormat::Text => {
            let style = StreamStyle::of_stdout(theme, ascii);
            comparison_text(&found, &sides, &|role, text| style.role(role, text))
        }
    };
    match streams::print(&text, exit) {
        // It could not be written.
        Exit::Stopped if found.is_same() => Exit::Usage,
        exit => exit,
    }
}

/// The events of a kept run or of a file; on an error the message has been printed. Opens the store if it
/// is not open yet.
fn read(name: &str, store: &mut Option<Database>) -> Result<Vec<Arc<Event>>, Exit> {
    let failed = |error: ReadError| {
        let why = Refused::new(format!("{name} cannot be read")).because(error);
        refuse(&why, Exit::Usage)
    };
    if kept_runs::is_file(name) {
        let file = LogFile::open(Path::new(name)).map_err(failed)?;
        return Ok(file.events);
    }
    let database = match store {
        Some(database) => database,
        None => store.insert(super::open()?),
    };
    let row = super::find(database, name)?;
    recorded::events(database, &row.id).map_err(failed)
}

struct DiffReport<'a> {
    same: bool,
    runs: &'a [ComparedRun; 2],
    comparison: &'a LogComparison,
}

impl DiffReport<'_> {
    fn json(&self) -> Value {
        let setup =
            self.comparison.setup.iter().map(
                |it| serde_json::json!({ "what": it.what, "left": it.left, "right": it.right }),
            );
        let side = |side: &Option<DifferentEvent>| match side {
            Some(side) => side
                .event
                .to_line()
                .ok()
                .and_then(|line| serde_json::from_str(&line).ok())
                .unwrap_or(Value::Null),
            None => Value::Null,
        };
        let differences = self.comparison.differences.iter().map(|it| {
            serde_json::json!({
                "path": it.path,
                "fields": it.fields.iter().map(|field| &field.name).collect::<Vec<_>>(),
                "left": side(&it.left),
                "right": side(&it.right),
            })
        });
        serde_json::json!({
            "same": self.same,
            "left": self.runs[0],
            "right": self.runs[1],
            "setup": setup.collect::<Vec<_>>(),
            "equal": self.comparison.equal,
            "differences": differences.collect::<Vec<_>>(),
        })
    }
}
