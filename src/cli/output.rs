//! Writes a headless run to standard output, in each of the formats. In a log of GitHub Actions, no
//! text of a model, a tool or a file becomes a workflow command (a line that begins with `::`).

use std::io;
use std::io::Write;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;

use self::error as annotation;
use super::args::RunFormat;
use super::streams::{StreamStyle, TextStream};
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::log::event::{Event, EventKind, RunId, SCHEMA_VERSION, World, safe_json};
use crate::log::world::{Outcome, SessionOutcome};
use crate::scenario::STDIN;
use crate::words::headless::lines;
use crate::words::patterns::words_of;
use crate::words::styled::StyleRole;
use crate::words::verdict::stop_lead;
use crate::words::{closing, format};

/// The last line of `jsonl`: the outcome. Its `kind` tells it from the events before it.
#[derive(Serialize)]
struct LastLine<'a, T> {
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a RunId>,
    kind: &'static str,
    #[serde(flatten)]
    outcome: &'a T,
}

/// Writes a run in one format.
pub struct RunWriter<W: Write> {
    format: RunFormat,
    paint: StreamStyle,
    to: TextStream<W>,
    /// Space for a line.
    line: Vec<u8>,
}

impl<W: Write> RunWriter<W> {
    /// A writer of this format.
    pub fn new(format: RunFormat, paint: StreamStyle, to: W) -> Self {
        Self { format, to: TextStream::new(to, paint.colour()), paint, line: Vec::new() }
    }

    /// Whether the format has the error of a run in words.
    pub fn says_errors(&self) -> bool {
        matches!(self.format, RunFormat::Text | RunFormat::Github)
    }

    /// Writes an event; `world` already includes it.
    ///
    /// # Errors
    /// The stream's error; `BrokenPipe` if the reader has closed it.
    pub fn event(&mut self, event: &Event, world: &World) -> io::Result<()> {
        match self.format {
            RunFormat::Json | RunFormat::Markdown => Ok(()),
            RunFormat::Jsonl => {
                let run = world.head.as_ref().map(|head| &head.run);
                self.line.clear();
                event.append_line(run, &mut self.line).map_err(io::Error::other)?;
                self.line.push(b'\n');
                self.to.data(&self.line)
            }
            RunFormat::Text | RunFormat::Github => {
                if self.format == RunFormat::Github
                    && matches!(event.kind, EventKind::RunStarted(_))
                {
                    self.to.text(&group(&title(world)))?;
                }
                let time = format::time_in_run(world.progress.run_time(event.at));
                for line in lines(event, world) {
                    let time = self.paint.role(StyleRole::Dim, &time);
                    self.write_line(&format!("{time}  {}", self.paint.line(&line)))?;
                }
                Ok(())
            }
        }
    }

    /// Flushes what was written so far.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Writes the outcome of a run, at its end.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn outcome(&mut self, outcome: &Outcome, world: &World) -> io::Result<()> {
        match self.format {
            RunFormat::Json | RunFormat::Jsonl => {
                self.result("outcome", Some(&outcome.run_id), outcome)
            }
            RunFormat::Text => self.text(&closing::closing(outcome, world)),
            RunFormat::Github => self.end_of_group(outcome, world),
            RunFormat::Markdown => {
                let report = words_of(world).and_then(|words| words.report(world));
                self.text(&report.unwrap_or_default())
            }
        }
    }

    /// Writes the outcomes of a program's runs as one JSON value: an object for one run, a list for several.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn outcomes(&mut self, outcomes: &[Outcome]) -> io::Result<()> {
        match outcomes {
            [] => Ok(()),
            [one] => self.result("outcome", Some(&one.run_id), one),
            several => self.result("outcome", None, &several),
        }
    }

    /// Writes the end of one run of a session; another run or the session's outcome follows.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn end_of_session_run(&mut self, outcome: &Outcome, world: &World) -> io::Result<()> {
        match self.format {
            RunFormat::Json | RunFormat::Jsonl => self.flush(),
            RunFormat::Text => self.text(&format!("{}\n", closing::closing(outcome, world))),
            RunFormat::Github => self.end_of_group(outcome, world),
            // No pattern that answers several messages writes a report.
            RunFormat::Markdown => Ok(()),
        }
    }

    /// Writes the outcome of a session, at its end.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn session(&mut self, outcome: &SessionOutcome) -> io::Result<()> {
        match self.format {
            RunFormat::Json | RunFormat::Jsonl => self.result("session", None, outcome),
            RunFormat::Text | RunFormat::Github => {
                let line = self.paint.line(&closing::session(outcome));
                self.write_line(&line)?;
                self.flush()
            }
            RunFormat::Markdown => Ok(()),
        }
    }

    /// Writes a line of text; in the log of GitHub Actions none is a command.
    fn write_line(&mut self, line: &str) -> io::Result<()> {
        match self.format {
            RunFormat::Github => self.to.text(&(harmless(line) + "\n")),
            _ => self.to.text(&format!("{line}\n")),
        }
    }

    /// Ends the group of a run's lines. Its answer follows, with an annotation if it was stopped.
    fn end_of_group(&mut self, outcome: &Outcome, world: &World) -> io::Result<()> {
        let mut text = END_OF_GROUP.to_owned() + &harmless(&closing::closing(outcome, world));
        if !outcome.stop_reason.is_success() {
            let source = world.head.as_ref().and_then(|head| head.launch.as_ref());
            let file = source.and_then(|launch| launch.source.file.as_deref());
            let why = world.stop_cause().map(|why| format!("\n{why}")).unwrap_or_default();
            let lead = world.progress.closed.as_deref().map(|closed| stop_lead(world, closed));
            let lead = lead.unwrap_or_else(|| outcome.stop_reason.phrase().into_owned());
            let (run, id) = (&outcome.run_id, &outcome.stop_reason);
            let message = format!("{run} stopped: {lead} ({id}){why}");
            let file = file.filter(|file| *file != STDIN);
            text.push_str(&annotation(file, None, &title(world), &message));
        }
        self.text(&text)
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        self.to.text(text)?;
        self.to.flush()
    }

    fn result(
        &mut self,
        kind: &'static str,
        run: Option<&RunId>,
        outcome: &impl Serialize,
    ) -> io::Result<()> {
        let json = match self.format {
            RunFormat::Json => safe_json::pretty(outcome),
            RunFormat::Jsonl | RunFormat::Text | RunFormat::Markdown | RunFormat::Github => {
                safe_json::line(&LastLine { v: SCHEMA_VERSION, run, kind, outcome })
            }
        };
        let json = json.map_err(io::Error::other)? + "\n";
        self.to.data(json.as_bytes())?;
        self.to.flush()
    }
}

/// What is run: the title of the scenario, and the run.
fn title(world: &World) -> String {
    let Some(head) = &world.head else { return String::new() };
    format!("{} ({})", visible_within(&head.title, REASON_CHARS), head.run)
}

/// An annotation: an error at a line of a file. Its path is the one that GitHub knows: relative to the
/// folder of the repository.
pub fn error(file: Option<&str>, line: Option<usize>, title: &str, message: &str) -> String {
    let mut properties = Vec::new();
    if let Some(file) = file {
        let workspace = std::env::var_os("GITHUB_WORKSPACE").map(PathBuf::from);
        let here = std::env::current_dir().unwrap_or_default();
        let file = path_within(file, &here, workspace.as_deref().unwrap_or(&here));
        properties.push(format!("file={}", property(&file)));
    }
    if let Some(line) = line {
        properties.push(format!("line={line}"));
    }
    properties.push(format!("title={}", property(title)));
    format!("::error {}::{}\n", properties.join(","), data(message))
}

/// A file, named in this folder, relative to another folder: without `./` and `..`. One that is not in it
/// keeps its name.
fn path_within(file: &str, here: &Path, folder: &Path) -> String {
    let plain = |path: &Path| {
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => drop(plain.pop()),
                part => plain.push(part),
            }
        }
        plain
    };
    // Either name may lead through a link.
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| plain(path));
    let (path, folder) = (here.join(file), here.join(folder));
    let found = plain(&path).strip_prefix(plain(&folder)).map(Path::to_path_buf);
    let found = found.or_else(|_| whole(&path).strip_prefix(whole(&folder)).map(Path::to_path_buf));
    found.map_or_else(|_| file.to_owned(), |found| found.display().to_string())
}

/// The start of a group of lines that can be folded.
pub fn group(title: &str) -> String {
    format!("::group::{}\n", data(title))
}

/// The end of a group.
pub const END_OF_GROUP: &str = "::endgroup::\n";

/// A text of which no line is a command. The runner ignores blanks before `::`, and finds the older
/// form, `##[`, anywhere in a line.
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive(['\n', '\r']) {
        let start = line.len() - line.trim_start().len();
        if line[start..].starts_with("::") {
            out.push_str(&line[..start]);
            out.push('\\');
            out.push_str(&line[start..].replace("##[", "##\\["));
        } else {
            out.push_str(&line.replace("##[", "##\\["));
        }
    }
    out
}

/// The text of a command in one line.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_workflow_commands() {
        for (text, safe) in [
            ("::error::x", "\\::error::x"),
            ("a\n  ::set-env name=A::b\n", "a\n  \\::set-env name=A::b\n"),
            ("a\r::group::", "a\r\\::group::"),
            ("\u{a0}::x", "\u{a0}\\::x"),
            ("say ##[error]x", "say ##\\[error]x"),
            ("::##[a", "\\::##\\[a"),
            ("a::b : :", "a::b : :"),
        ] {
            assert_eq!(harmless(text), safe);
        }
    }

    #[test]
    fn paths_are_those_of_the_repository() {
        for (file, here, expected) in [
            ("gate/s.toml", "/repo", "gate/s.toml"),
            ("./gate/s.toml", "/repo", "gate/s.toml"),
            ("gate/../gate/./s.toml", "/repo", "gate/s.toml"),
            ("/repo/gate/s.toml", "/elsewhere", "gate/s.toml"),
            ("s.toml", "/repo/gate", "gate/s.toml"),
            ("../s.toml", "/repo/gate/sub", "gate/s.toml"),
            ("../../s.toml", "/repo/gate", "../../s.toml"),
            ("/other/s.toml", "/repo", "/other/s.toml"),
            ("s.toml", "/repository", "s.toml"),
        ] {
            let found = path_within(file, Path::new(here), Path::new("/repo"));
            assert_eq!(found, expected, "{file} in {here}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::create_dir(&real).expect("made");
        std::fs::write(real.join("s.toml"), "").expect("written");
        std::os::unix::fs::symlink(&real, &link).expect("a link");
        let file = link.join("s.toml").display().to_string();
        assert_eq!(path_within(&file, Path::new("/"), &real), "s.toml");
    }

    #[test]
    fn annotation_is_one_line() {
        let line = error(Some("a,b:c.toml"), Some(3), "x", "50 %\r\n::error::y");
        assert_eq!(line, "::error file=a%2Cb%3Ac.toml,line=3,title=x::50 %25%0D%0A::error::y\n");
        assert_eq!(error(None, None, "x", "y"), "::error title=x::y\n");
        assert_eq!(group("a\nb"), "::group::a%0Ab\n");
    }
}
