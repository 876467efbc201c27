//! `roundtable export` and `import`: the log of a kept run as JSON lines, or as a page
//! of HTML, and JSON lines back.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::kept_log::StoredLog;
use crate::base::private::TempFile;
use crate::base::visible::visible;
use crate::cli::args::kept::{ExportArgs, ImportArgs};
use crate::cli::exit::Exit;
use crate::cli::message::print_message;
use crate::cli::stdout;
use crate::host::{kept, redaction_key};
use crate::store::database::StoreError;

/// Runs `roundtable export`.
pub fn export(args: &ExportArgs) -> Exit {
    let (database, row) = match super::open_run(&args.run) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let key = match args.redact.then(|| redaction_key::find_or_make(database.path())).transpose() {
        Ok(key) => key,
        Err(error) => {
            print_message(&visible(&format!("there is no key to redact with: {error}")));
            return Exit::Stopped;
        }
    };
    let log = StoredLog { database, run: row.id, key };
    let html = args.writes_page();
    let Some(path) = &args.output else {
        let mut out = BufWriter::new(stdout::data());
        let written = write(&log, html, &mut out).and_then(|()| out.flush());
        return match written {
            Err(error) if is_of_store(&error) => unreadable(&log, &error),
            written => stdout::exit_after_write(written, Exit::Ok),
        };
    };
    match write_file(&log, html, path) {
        Ok(()) => Exit::Ok,
        Err(error) if is_of_store(&error) => unreadable(&log, &error),
        Err(error) => {
            let path = path.display().to_string();
            print_message(&format!("{} cannot be written: {error}", visible(&path)));
            Exit::Stopped
        }
    }
}

/// Whether the log could not be read, as against the output that could not be written.
fn is_of_store(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<StoreError>())
}

fn unreadable(log: &StoredLog, error: &io::Error) -> Exit {
    print_message(&visible(&format!("{} cannot be exported whole: {error}", log.run)));
    Exit::Stopped
}

/// Writes the log into a file that appears under its name when it is complete.
fn write_file(log: &StoredLog, html: bool, path: &Path) -> io::Result<()> {
    let file = TempFile::fill_next_to(path, |file| {
        if path.extension().is_some_and(|it| it == "gz") {
            let mut packed = GzEncoder::new(BufWriter::new(file), Compression::default());
            write(log, html, &mut packed)?;
            packed.finish()?.flush()
        } else {
            let mut out = BufWriter::new(file);
            write(log, html, &mut out)?;
            out.flush()
        }
    })?;
    file.rename_to(path)
}

fn write(log: &StoredLog, html: bool, out: &mut dyn Write) -> io::Result<()> {
    if html { log.write_page(out) } else { log.write_lines(out) }
}

/// Runs `roundtable import`.
pub fn import(args: &ImportArgs) -> Exit {
    let database = match super::open() {
        Ok(database) => database,
        Err(exit) => return exit,
    };
    let mut exit = Exit::Ok;
    for path in &args.files {
        let name = path.display().to_string();
        match kept::import(&database, path) {
            Ok((id, notes)) => {
                for note in notes {
                    print_message(&visible(&format!("{name}: {note}")));
                }
                exit = stdout::print(&format!("{id}\n"), exit);
            }
            Err(why) => {
                print_message(&visible(&format!("{name}: {why}")));
                exit = Exit::Stopped;
            }
        }
    }
    super::close(database);
    exit
}
