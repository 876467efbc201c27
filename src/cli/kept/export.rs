//! `roundtable export` and `import`: the log of a kept run as JSON lines or as a page of HTML, and
//! JSON lines into the store. A log is read in groups, as it is stored or with its texts redacted.

use std::io;
use std::io::{BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{ExportArgs, ImportArgs};
use crate::base::private_file::TempFile;
use crate::base::refused::Refused;
use crate::base::visible::visible;
use crate::cli::args::Global;
use crate::cli::exit::{Done, Exit};
use crate::cli::streams::{print_message, refuse};
use crate::cli::{run_to_end, streams};
use crate::host::{kept_runs, run_store, traced_runs};
use crate::log::event::redact::TextRedactor;
use crate::log::event::{Event, RunId, Seq, World};
use crate::store::EventGroup;
use crate::store::database::{Database, StoreError};
use crate::traces::sender::send_now;
use crate::traces::spans::RunSpans;
use crate::words::format::count_noun;
use crate::words::page::RunPageWriter;

/// Runs `roundtable export`.
pub fn export(args: &ExportArgs, global: &Global) -> Done {
    let (database, row) = super::open_run(&args.run)?;
    let key = match args.redact.then(|| run_store::find_or_make_key(database.path())).transpose() {
        Ok(key) => key,
        Err(error) => {
            let why = Refused::new("there is no key to redact with").because(error);
            return Err(refuse(&why, Exit::Stopped));
        }
    };
    let log = ExportedLog { database, run: row.id, key };
    if let Some(url) = &global.otlp {
        if args.output.is_some() || args.html {
            let why = Refused::new("--otlp sends the run, and writes nothing");
            return Err(refuse(&why.help("leave out --output and --html"), Exit::Usage));
        }
        return Ok(run_to_end(send(&log, url, global.otlp_content)));
    }
    let html = args.writes_page();
    let Some(path) = &args.output else {
        let mut out = BufWriter::new(streams::stdout_data());
        let written = write(&log, html, &mut out).and_then(|()| out.flush());
        return Ok(match written {
            Err(error) if is_of_store(&error) => unreadable(&log, error),
            written => streams::exit_after_write(written, Exit::Ok),
        });
    };
    Ok(match write_file(&log, html, path) {
        Ok(()) => Exit::Ok,
        Err(error) if is_of_store(&error) => unreadable(&log, error),
        Err(error) => {
            let what = format!("{} cannot be written", path.display());
            refuse(&Refused::new(what).because(error), Exit::Stopped)
        }
    })
}

/// Sends the spans of the run.
async fn send(log: &ExportedLog, url: &str, content: bool) -> Done {
    let target = traced_runs::target(Some(url).filter(|url| !url.is_empty()), content)
        .map_err(|why| refuse(&why, Exit::Usage))?;
    let (mut run, mut spans) = (RunSpans::new(target.has_texts), Vec::new());
    let read = log.each_event(|event| {
        run.take(&event, &mut spans);
        Ok(())
    });
    if let Err(error) = read {
        return Err(unreadable(log, error));
    }
    run.finish(&mut spans);
    let delivery = send_now(&target, traced_runs::client(), spans).await;
    if delivery.lost > 0 {
        let help = "try again: a span that is sent twice is the same span";
        let why = Refused::new(traced_runs::lost_text(&delivery));
        return Err(refuse(&why.help(help), Exit::Stopped));
    }
    print_message(&format!("{} sent", count_noun(delivery.sent, "span")));
    Ok(Exit::Ok)
}

/// Whether the log could not be read, as against the output that could not be written.
fn is_of_store(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<StoreError>())
}

fn unreadable(log: &ExportedLog, error: io::Error) -> Exit {
    let what = format!("{} cannot be exported whole", log.run);
    refuse(&Refused::new(what).because(error), Exit::Stopped)
}

/// Writes the log into a file that appears under its name when it is complete.
fn write_file(log: &ExportedLog, html: bool, path: &Path) -> io::Result<()> {
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

fn write(log: &ExportedLog, html: bool, out: &mut dyn Write) -> io::Result<()> {
    if html { log.write_page(out) } else { log.write_lines(out) }
}

/// Runs `roundtable import`.
pub fn import(args: &ImportArgs) -> Done {
    let database = super::open()?;
    let mut exit = Exit::Ok;
    for path in &args.files {
        let name = path.display().to_string();
        match kept_runs::import_file(&database, path) {
            Ok((id, notes)) => {
                for note in notes {
                    print_message(&visible(&format!("{name}: {note}")));
                }
                exit = streams::print(&format!("{id}\n"), exit);
            }
            Err(why) => exit = refuse(&why, Exit::Stopped),
        }
    }
    super::close(database);
    Ok(exit)
}

/// The log of a kept run.
pub struct ExportedLog {
    /// The store.
    pub database: Database,
    pub run: RunId,
    /// The key for the digests of texts; `None`: the texts stay.
    pub key: Option<[u8; 32]>,
}

impl ExportedLog {
    /// Writes the log as JSON lines. Blocks.
    ///
    /// # Errors
    /// Those of `out`, or that the store cannot be read.
    pub fn write_lines(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.key.is_none() {
            return self.each_group(|group| out.write_all(group.lines()));
        }
        self.each_event(|event| {
            let mut line = EventGroup::starting_at(event.seq);
            line.push(&event, &self.run).map_err(io::Error::other)?;
            out.write_all(line.lines())
        })
    }

    /// Writes the run as a page of HTML. Reads the log twice: the page begins with the result. Blocks.
    ///
    /// # Errors
    /// As [`write_lines`](Self::write_lines).
    pub fn write_page(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut world = World::new();
        self.each_event(|event| {
            world.apply(&event);
            Ok(())
        })?;
        let mut page = RunPageWriter::begin(out, &world)?;
        self.each_event(|event| page.event(&event))?;
        page.end()
    }

    /// Passes each event in order. Blocks.
    ///
    /// # Errors
    /// Those of `take`, or that the store cannot be read.
    pub fn each_event(&self, mut take: impl FnMut(Event) -> io::Result<()>) -> io::Result<()> {
        let mut redactor = self.key.map(TextRedactor::new);
        self.each_group(|group| {
            let events = group.events(group.first()).map_err(StoreError::from);
            for event in events.map_err(io::Error::other)? {
                let event = Event::clone(&event);
                take(match &mut redactor {
                    Some(redactor) => redactor.redact(event),
                    None => event,
                })?;
            }
            Ok(())
        })
    }

    fn each_group(&self, mut take: impl FnMut(&EventGroup) -> io::Result<()>) -> io::Result<()> {
        let mut from = Seq(0);
        loop {
            let read = self.database.some_groups(&self.run, from).map_err(io::Error::other)?;
            let Some((groups, _)) = read.filter(|(groups, _)| !groups.is_empty()) else {
                return Ok(());
            };
            for group in groups {
                take(&group)?;
                from = group.next();
            }
        }
    }
}
