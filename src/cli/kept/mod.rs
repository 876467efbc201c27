//! The commands about kept runs: list, show, resume, fork, compare, export, import, remove.

mod diff;
mod fork;
mod grep;
mod kept_log;
mod list;
mod open;
mod play;
mod replayed;
mod resume;
mod show;
mod transfer;

use crate::base::visible::visible;
use crate::cli::exit::Exit;
use crate::cli::message::print_message;
use crate::event::run_row::RunRow;
use crate::host::keep;
use crate::host::kept::{self, FindRunError};
use crate::store::database::Database;
use crate::store::database::lock::LockWaits;

pub use diff::diff;
pub use fork::fork;
#[cfg(feature = "nats")]
pub use list::print_rows;
pub use list::runs;
pub use open::OpenedRun;
pub use replayed::replayed;
pub use resume::resume;
pub use show::show;
pub use transfer::{export, import};

/// Opens the store; on an error the message has been printed.
pub fn open() -> Result<Database, Exit> {
    match keep::open(LockWaits::new(print_message)) {
        Ok((database, _)) => Ok(database),
        Err(why) => {
            print_message(&visible(&why));
            Err(Exit::Stopped)
        }
    }
}

/// Ends the use of the store: its file alone has every run then.
fn close(database: Database) {
    database.checkpoint();
}

/// The store, and its run of this name; on an error the message has been printed.
fn open_run(name: &str) -> Result<(Database, RunRow), Exit> {
    let database = open()?;
    let row = find(&database, name)?;
    Ok((database, row))
}

/// The kept run of this name; on an error the message has been printed.
pub fn find(database: &Database, name: &str) -> Result<RunRow, Exit> {
    kept::find(database, name).map_err(|error| {
        print_message(&visible(&error.to_string()));
        match error {
            FindRunError::None(_) | FindRunError::Several(..) => Exit::Usage,
            FindRunError::Store(_) => Exit::Stopped,
        }
    })
}
