//! `roundtable show`: a kept run, or an exported one, in each of the formats of a headless run.

use std::io;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use futures::StreamExt as _;

use super::ShowArgs;
use crate::base::refused::Refused;
use crate::base::visible::visible;
use crate::cli::args::RunFormat;
use crate::cli::exit::Exit;
use crate::cli::output::RunWriter;
use crate::cli::streams;
use crate::cli::streams::{StreamStyle, print_message, refuse};
use crate::host::kept_runs;
use crate::log::event::{Event, RunId, Seq, World};
use crate::screen::theme::Theme;
use crate::store::file::LogFile;
use crate::store::{ReadError, RunLog};

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
            print_message("the run has not ended, so it has no outcome");
            let exit = if format == RunFormat::Json { Exit::Stopped } else { Exit::Ok };
            return streams::exit_after_write(written, exit);
        };
        streams::exit_after_write(self.output.outcome(&outcome, &self.world), Exit::Ok)
    }
}
