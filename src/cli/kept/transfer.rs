//! `roundtable export` and `import`: the log of a kept run as JSON lines, and back.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::base::private::TempFile;
use crate::base::visible::visible;
use crate::cli::args::kept::{ExportArgs, ImportArgs};
use crate::cli::exit::Exit;
use crate::cli::message::print_message;
use crate::cli::stdout;
use crate::event::Seq;
use crate::event::run_row::RunRow;
use crate::host::kept;
use crate::store::database::Database;

/// Runs `roundtable export`.
pub fn export(args: &ExportArgs) -> Exit {
    let (database, row) = match super::open_run(&args.run) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let Some(path) = &args.output else {
        let mut out = io::BufWriter::new(io::stdout().lock());
        let written = write(&database, &row, &mut out).and_then(|()| out.flush());
        return stdout::exit_after_write(written, Exit::Ok);
    };
    match write_file(&database, &row, path) {
        Ok(()) => Exit::Ok,
        Err(error) => {
            let path = path.display().to_string();
            print_message(&format!("{} cannot be written: {error}", visible(&path)));
            Exit::Stopped
        }
    }
}

/// Writes the log into a file that appears under its name when it is complete.
fn write_file(database: &Database, row: &RunRow, path: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    if path.extension().is_some_and(|it| it == "gz") {
        let mut packed = GzEncoder::new(&mut bytes, Compression::default());
        write(database, row, &mut packed)?;
        packed.finish()?;
    } else {
        write(database, row, &mut bytes)?;
    }
    TempFile::write_next_to(path, &bytes)?.rename_to(path)
}

fn write(database: &Database, row: &RunRow, out: &mut impl Write) -> io::Result<()> {
    let mut from = Seq(0);
    loop {
        let read = database.some_groups(&row.id, from).map_err(io::Error::other)?;
        let Some((groups, _)) = read.filter(|(groups, _)| !groups.is_empty()) else {
            return Ok(());
        };
        for group in groups {
            out.write_all(group.lines())?;
            from = group.next();
        }
    }
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
    exit
}
