//! `roundtable open`: a kept run, or an exported one, in the dashboard.

use std::path::Path;
use std::sync::Arc;

use crate::app::Msg;
use crate::app::request::RequestId;
use crate::base::visible::visible;
use crate::cli::exit::Exit;
use crate::cli::message::print_message;
use crate::event::Event;
use crate::event::run_row::{RunRow, RunStatus};
use crate::event::world::RunFold;
use crate::host::{keep, kept, recorded};
use crate::shell::effects::{EffectResult, Services};
use crate::shell::kept_store::KeptRuns;
use crate::store::database::Database;
use crate::store::file::LogFile;

/// A run that was found, before the dashboard shows it.
pub struct OpenedRun {
    row: RunRow,
    from: RunSource,
}

enum RunSource {
    Store(Database),
    File(LogFile),
}

impl OpenedRun {
    /// Finds the run of this name; on an error the message has been printed.
    pub fn find(name: &str) -> Result<Self, Exit> {
        if !kept::is_file(name) {
            let (database, row) = super::open_run(name)?;
            return Ok(Self { row, from: RunSource::Store(database) });
        }
        let unreadable = |why: &str| {
            print_message(&format!("{} cannot be read: {}", visible(name), visible(why)));
            Exit::Stopped
        };
        let log = LogFile::open(Path::new(name)).map_err(|it| unreadable(&it.to_string()))?;
        let head = log.head().ok_or_else(|| unreadable("it has no head"))?;
        let run = RunFold::course_of(log.events.iter().map(|event| &**event));
        let course = keep::row_course(&run);
        let row = RunRow {
            status: match course.ended {
                Some(reason) => RunStatus::Ended(reason),
                None => RunStatus::Interrupted,
            },
            events: log.events.len() as u64,
            elapsed_ms: course.elapsed_ms,
            tokens: course.tokens,
            cost_usd: course.cost_usd,
            result: course.result,
            imported: true,
            ..keep::row_of(head)
        };
        Ok(Self { row, from: RunSource::File(log) })
    }

    /// All of its events. Blocks; on an error the message has been printed.
    pub fn events(self) -> Result<Vec<Arc<Event>>, Exit> {
        match self.from {
            RunSource::Store(database) => {
                recorded::events(&database, &self.row.id).map_err(|error| {
                    print_message(&visible(&format!("{} cannot be read: {error}", self.row.id)));
                    Exit::Stopped
                })
            }
            RunSource::File(log) => {
                log.notes.iter().for_each(|note| print_message(&visible(note)));
                Ok(log.events)
            }
        }
    }

    /// Shows its page and sends its events.
    pub fn show(self, services: &mut Services, request: RequestId) {
        let Self { row, from } = self;
        let (run, follows) = (row.id.clone(), row.status == RunStatus::Running);
        let (row, wall_ms) = (Box::new(row), keep::now_ms());
        let is_file = matches!(from, RunSource::File(_));
        services.answer(EffectResult::Msg(Msg::OpenKept { row, is_file, wall_ms, request }));
        match from {
            RunSource::Store(database) => {
                // Runs are listed even where this command does not keep any.
                services.kept = KeptRuns::new(Some(database));
                services.open_kept(run, request, follows);
            }
            RunSource::File(log) => {
                for note in &log.notes {
                    services.answer(EffectResult::Msg(Msg::Notice(note.clone())));
                }
                services.send_log(run, request, log);
            }
        }
    }
}
