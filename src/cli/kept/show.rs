//! `roundtable show`: a kept run, or an exported one, in each of the formats of a headless run.
//! `roundtable diff`: two runs up to their first difference, and what differs after it.

use std::io;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use futures::StreamExt as _;
use serde_json::Value;

use super::{DiffArgs, DiffFormat, ShowArgs};
use crate::base::refused::Refused;
use crate::base::visible::visible;
use crate::cli::args::RunFormat;
use crate::cli::exit::Exit;
use crate::cli::output::RunWriter;
use crate::cli::streams;
use crate::cli::streams::{StreamStyle, print_message, refuse};
use crate::host::{kept_runs, recorded};
use crate::log::event::{Event, RunId, Seq, World, safe_json};
use crate::screen::theme::Theme;
use crate::store::database::Database;
use crate::store::file::LogFile;
use crate::store::{ReadError, RunLog};
use crate::words::comparison::runs::{ComparedRun, comparison_text};
use crate::words::comparison::{DifferentEvent, LogComparison, compare};

/// Runs `roundtable show`.
pub async fn show(args: &ShowArgs, theme: Theme, ascii: bool) -> Exit {
    let format = match args.format {
        Some(format) => format,
        None if streams::stdout_is_terminal() => RunFormat::Text,
        None => RunFormat::Json,
    };
    let paint = StreamStyle::of_stdout(theme, ascii);
    let output = RunWriter::new(format, paint, streams::stdout_data());
    let mut shown = Shown { output, world: World::new() };
    let read = if kept_runs::is_file(&args.run) {
        LogFile::open(Path::new(&args.run)).map(|file| {
            for note in &file.notes {
                print_message(&visible(note));
            }
            shown.events(&file.events)
        })
    } else {
        match super::open_run(&args.run) {
            Ok((database, row)) => shown.stored(&database, &row.id, args.follow).await,
            Err(exit) => return exit,
        }
    };
    match read {
        Ok(Ok(())) => shown.end(format),
        Ok(Err(why)) => streams::exit_after_write(Err(why), Exit::Ok),
        Err(error) => {
            let why = Refused::new(format!("{} cannot be read", args.run)).because(error);
            refuse(&why, Exit::Stopped)
        }
    }
}

/// A run that is shown event by event.
struct Shown<W: Write> {
    output: RunWriter<W>,
    world: World,
}

impl<W: Write> Shown<W> {
    fn events(&mut self, events: &[Arc<Event>]) -> io::Result<()> {
        for event in events {
            self.world.apply(event);
            self.output.event(event, &self.world)?;
        }
        self.world.forget_old(events.len());
        Ok(())
    }

    /// Shows a stored log; with `follow` until its run has ended.
    async fn stored(
        &mut self,
        log: &dyn RunLog,
        run: &RunId,
        follow: bool,
    ) -> Result<io::Result<()>, ReadError> {
        let mut groups = if follow { log.tail(run, Seq(0)) } else { log.read(run, Seq(0)) };
        while let Some(group) = groups.next().await {
            let shown = self.events(&group?.events(Seq(0))?);
            if let Err(why) = shown.and_then(|()| self.output.flush()) {
                return Ok(Err(why));
            }
        }
        Ok(Ok(()))
    }

    fn end(mut self, format: RunFormat) -> Exit {
        let Some(outcome) = self.world.outcome() else {
            let written = self.output.flush();
            let run = self.world.head.as_ref().map_or("RUN", |head| head.run.as_str());
            print_message(&format!(
                "the run has not ended, so it has no outcome: --format text shows how far it is, roundtable resume {run} continues it if it was interrupted"
            ));
            let exit = if format == RunFormat::Json { Exit::Stopped } else { Exit::Ok };
            return streams::exit_after_write(written, exit);
        };
        streams::exit_after_write(self.output.outcome(&outcome, &self.world), Exit::Ok)
    }
}

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
