//! `roundtable run --replay`: a recorded run that answers the model calls of a new one.

use std::path::Path;
use std::sync::Arc;

use crate::base::visible::visible;
use crate::cli::exit::Exit;
use crate::cli::message::print_message;
use crate::engine::ModelChoice;
use crate::event::World;
use crate::event::kind::RunStarted;
use crate::event::world::Projection;
use crate::host::{kept, recorded};
use crate::llm::recorded::RecordedModel;
use crate::run::Session;
use crate::store::file::LogFile;

/// A recorded run that answers the model calls of a new one.
pub struct ReplayedRun {
    head: Arc<RunStarted>,
    model: Arc<RecordedModel>,
    session: Option<Session>,
}

impl ReplayedRun {
    /// What answers the model calls.
    pub fn model_choice(&self) -> ModelChoice {
        ModelChoice::Recorded(Arc::clone(&self.model), Arc::clone(&self.head))
    }

    /// The message of a session that it answered, with the history before it.
    pub fn session(&self) -> Option<Session> {
        self.session.clone()
    }
}

/// Reads the run of this name; on an error the message has been printed.
pub fn replayed(name: &str) -> Result<ReplayedRun, Exit> {
    let failed = |why: String| {
        print_message(&visible(&format!("--replay: {why}")));
        Exit::Stopped
    };
    let events = if kept::is_file(name) {
        LogFile::open(Path::new(name)).map_err(|error| failed(error.to_string()))?.events
    } else {
        let (database, row) = super::open_run(name)?;
        recorded::events(&database, &row.id).map_err(|error| failed(error.to_string()))?
    };
    let world = World::from_events(events.iter().map(|event| &**event));
    let head = world.head.as_ref().ok_or_else(|| failed("the log has no head".to_owned()))?;
    if head.redacted {
        return Err(failed("the texts of the log are redacted".to_owned()));
    }
    let head = Arc::clone(head);
    let session = world.projection().and_then(Projection::session).map(Session::of_head);
    let model = Arc::new(RecordedModel::new(head.run.clone(), &events));
    Ok(ReplayedRun { head, model, session })
}
