//! The effects of the dashboard, which the shell executes in the background: starting runs, writing
//! files, reading scenarios. The loop awaits none of them; results arrive through a channel.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::clipboard;
use super::signals::ProcessSignal;
use crate::app::Msg;
use crate::app::effect::{Export, LaunchRequest, RequestId};
use crate::app::state::ScenarioEntry;
use crate::base::private::TempFile;
use crate::base::visible::visible_lines;
use crate::bus::LogReader;
use crate::engine::{Engine, Launch, RunHandle, Schedule};
use crate::event::BoundaryId;
use crate::host::models::LiveModels;
use crate::host::prepare::{PrepareError, prepare};
use crate::host::trust::Trust;
use crate::host::{catalogue, pauses};
use crate::ui::format;

/// A result that goes back to the loop.
pub enum EffectResult {
    /// A message for the dashboard.
    Msg(Msg),
    /// A run has started.
    Started {
        /// The request that started it.
        request: RequestId,
        /// Handle of the run.
        run: RunHandle,
        /// Reader of its events, at the first one.
        facts: Box<LogReader>,
        /// The request itself, for the next message of its session.
        launch: Option<Box<LaunchRequest>>,
    },
    /// Bytes for the terminal that are not part of a frame.
    Bytes(Vec<u8>),
    /// A signal of the system.
    Signal(ProcessSignal),
    /// For tests: panic in the loop.
    #[cfg(debug_assertions)]
    Panic,
    /// For tests: hang the loop.
    #[cfg(debug_assertions)]
    Stuck,
}

/// Options of the command line that the launch form does not have.
#[derive(Debug, Clone, Default)]
pub struct LaunchExtras {
    /// Changes and pauses at boundaries.
    pub schedule: Schedule,
    /// The duration of each pause that ends automatically.
    pub timed_pauses: Vec<(BoundaryId, Duration)>,
}

/// The state that the effects of one program share. A clone refers to the same state.
#[derive(Clone)]
pub struct Services {
    /// Runs the scenarios.
    pub engine: Arc<Engine>,
    /// The live models.
    pub models: LiveModels,
    /// The permissions that the operator has given.
    pub trust: Trust,
    /// A scenario that the command line named, listed before the others.
    pub named: Option<String>,
    /// The folder for exported files.
    pub folder: PathBuf,
    /// The runtime of the runs, which is not the loop's.
    pub runtime: Handle,
    extras: Arc<Mutex<BTreeMap<RequestId, LaunchExtras>>>,
    answers: mpsc::UnboundedSender<EffectResult>,
}

impl Services {
    /// New services, and the channel from which the loop reads their results. Runs are executed in
    /// the runtime in which this is called; the loop may have another.
    ///
    /// # Panics
    /// Outside a runtime.
    pub fn new(
        engine: Engine,
        models: LiveModels,
        trust: Trust,
        named: Option<String>,
        folder: PathBuf,
    ) -> (Self, mpsc::UnboundedReceiver<EffectResult>) {
        let (answers, read) = mpsc::unbounded_channel();
        let (engine, extras, runtime) = (Arc::new(engine), Arc::default(), Handle::current());
        (Self { engine, models, trust, named, folder, runtime, extras, answers }, read)
    }

    /// Sends a result to the loop.
    pub fn answer(&self, answer: EffectResult) {
        // The loop is only gone when the program ends.
        let _ = self.answers.send(answer);
    }

    pub(super) fn send_msg(&self, msg: Msg) {
        self.answer(EffectResult::Msg(msg));
    }

    fn failed(&self, what: &'static str, text: String) {
        self.send_msg(Msg::EffectFailed { what, text });
    }

    /// Executes blocking work, such as disk access, outside the loop.
    pub(super) fn in_background(&self, work: impl FnOnce(Self) + Send + 'static) {
        let services = self.clone();
        self.runtime.spawn_blocking(move || work(services));
    }

    /// Adds the command line's options to a request.
    pub fn add(&self, request: RequestId, extra: LaunchExtras) {
        self.extras.lock().unwrap_or_else(PoisonError::into_inner).insert(request, extra);
    }

    /// Starts a run, or asks for permission first.
    pub fn start(&self, request: LaunchRequest) {
        self.in_background(move |services| services.start_now(request));
    }

    fn start_now(&self, request: LaunchRequest) {
        let LaunchRequest { id, scenario, model, .. } = &request;
        let stop = |text| self.send_msg(Msg::StartFailed { request: *id, text });
        let session = match &request.follows {
            None => None,
            Some(follows) => match self.engine.run(&follows.run) {
                Some(run) => match run.follow_up(Arc::clone(&follows.text)) {
                    Some(session) => Some(session),
                    None => return stop(format!("{} is still running", follows.run)),
                },
                None => {
                    let what = "was dropped to bound memory, and so was its session";
                    return stop(format!("{} {what}: n starts a new run", follows.run));
                }
            },
        };
        let prepared = match prepare(&self.models, &self.trust, scenario, model, 1, |_| false) {
            Ok(prepared) => prepared,
            Err(PrepareError::Endpoint(why)) => return stop(why),
            Err(PrepareError::Tools(missing)) => return stop(missing.join("; ")),
            Err(PrepareError::Permission(consent)) => {
                self.send_msg(Msg::Untrusted { request: Box::new(request), consent });
                return;
            }
        };
        for note in prepared.notes() {
            self.send_msg(Msg::Notice(note));
        }
        let extra = {
            let mut extras = self.extras.lock().unwrap_or_else(PoisonError::into_inner);
            extras.remove(id).unwrap_or_default()
        };
        let run = self.engine.start(Launch {
            tools: prepared.toolboxes.into_iter().next(),
            scenario: Arc::clone(scenario),
            model: prepared.model,
            flags: request.flags.clone(),
            schedule: extra.schedule,
            seed: request.seed,
            session,
        });
        let facts = run.first_reader();
        if !extra.timed_pauses.is_empty() {
            let reader = facts.clone();
            self.runtime.spawn(pauses::resume_timed_pauses(
                run.clone(),
                reader,
                extra.timed_pauses,
            ));
        }
        let id = *id;
        let facts = Box::new(facts);
        self.answer(EffectResult::Started {
            request: id,
            run,
            facts,
            launch: Some(Box::new(request)),
        });
    }

    /// Saves the operator's permission under this digest.
    pub fn allow(&self, digest: &str, title: &str) {
        if let Err(error) = self.trust.allow(digest, title) {
            let text = format!("allowed for now, but not saved: {error}");
            self.failed("trust", text);
        }
    }

    /// Copies a text to the clipboard. Control characters are escaped: a shell would execute them
    /// when the text is pasted.
    pub fn copy(&self, text: String) {
        self.in_background(move |services| {
            let text = visible_lines(&text).into_owned();
            let size = format::bytes(text.len() as u64);
            if clipboard::through_tmux(&text) {
                services.send_msg(Msg::Notice(format!("copied {size}, through tmux")));
                return;
            }
            services.answer(EffectResult::Bytes(clipboard::osc52(&text)));
            let doubt = if text.len() > clipboard::MAX_OSC52_BYTES {
                "; many terminals accept less: e exports it to a file"
            } else {
                ""
            };
            services.send_msg(Msg::Notice(format!("copied {size}{doubt}")));
        });
    }

    /// Exports files into the folder. An existing file is not overwritten: the new one gets a
    /// number.
    pub fn export(&self, files: Vec<Export>) {
        self.in_background(move |services| services.export_now(files));
    }

    fn export_now(&self, files: Vec<Export>) {
        let mut written: Vec<PathBuf> = Vec::new();
        let lacks: u64 = files.iter().map(|export| export.contents.dropped_events()).sum();
        for Export { file, contents } in files {
            match write_numbered(&self.folder, &file, &contents.into_text()) {
                Ok(path) => {
                    let file = path.display();
                    tracing::info!(target: "roundtable::files", %file, "written");
                    written.push(path);
                }
                Err(error) => {
                    let to_do = write_advice(error.kind());
                    self.failed("export", format!("cannot write {file}: {error}; {to_do}"));
                }
            }
        }
        let Some((first, rest)) = written.split_first() else { return };
        let mut text = format!("exported {}", first.display());
        for (nth, path) in rest.iter().enumerate() {
            // All are in the folder of the first one.
            let name = path.file_name().unwrap_or_default().display();
            text.push_str(&format!("{} {name}", if nth == 0 { " and" } else { "," }));
        }
        if lacks > 0 {
            let events = format::exact(lacks);
            text.push_str(&format!("; without {events} earlier events, dropped to bound memory"));
        }
        self.send_msg(Msg::Notice(text));
    }

    /// Reloads the scenarios.
    pub fn rescan(&self) {
        self.in_background(|services| services.send_msg(Msg::Scenarios(services.scenarios())));
    }

    fn scenarios(&self) -> Vec<ScenarioEntry> {
        let mut entries = catalogue::read();
        let Some(named) = &self.named else { return entries };
        if entries.iter().any(|entry| entry.path == *named || entry.name.as_str() == named) {
            return entries;
        }
        match catalogue::read_one(named) {
            Ok(entry) => entries.insert(0, entry),
            Err(error) => self.failed("scenario", error),
        }
        entries
    }
}

/// The advice for a file that could not be written.
fn write_advice(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "start roundtable in a writable folder"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free disk space, then press e again"
        }
        io::ErrorKind::FileTooLarge => "raise ulimit -f, then press e again",
        io::ErrorKind::AlreadyExists => "remove numbered files, then press e again",
        _ => "check the folder that roundtable was started in, then press e again",
    }
}

/// Largest number that is appended to a file name.
const MAX_FILE_NUMBER: u32 = 1000;

fn write_numbered(folder: &Path, file: &str, contents: &str) -> io::Result<PathBuf> {
    // The name contains a run's id or a scenario's name, which may hold any character.
    let name: String = file
        .chars()
        .map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' })
        .collect();
    let (stem, end) = name.rsplit_once('.').unwrap_or((&name, "txt"));
    // Written completely before it gets its name: a full disk leaves no partial file.
    let written = TempFile::write_next_to(&folder.join(&name), contents.as_bytes())?;
    for number in 1..MAX_FILE_NUMBER {
        let name = match number {
            1 => format!("{stem}.{end}"),
            _ => format!("{stem}-{number}.{end}"),
        };
        let path = folder.join(name);
        match written.rename_to(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::effect::{Contents, RequestId};
    use crate::engine::EngineSettings;
    use crate::net::ProxyMode;
    use crate::scenario::catalogue::RequestedModel;
    use crate::scenario::load;
    use crate::scenario::{Scenario, ScenarioOrigin, shipped};

    /// A foreign scenario with a program that needs an unset variable.
    fn foreign() -> Scenario {
        let shipped = shipped().iter().find(|one| one.name == "real-services").expect("shipped");
        let (program, needs) = ("program = \"sh\"\n", "env = { A = { env = \"RT_NEVER_SET\" } }\n");
        let text = shipped.text.replace(program, &format!("{program}{needs}"));
        load(&text, ScenarioOrigin::File("foreign.toml".into()), &[]).expect("a good scenario")
    }

    #[tokio::test]
    async fn a_foreign_file_with_programs_asks_first_and_says_what_is_missing() {
        let engine = Engine::new(EngineSettings::default());
        let (models, trust) = (LiveModels::new(ProxyMode::Direct), Trust::saved_in(None));
        let (services, mut answers) = Services::new(engine, models, trust, None, PathBuf::new());
        let scenario = Arc::new(foreign());
        let model = RequestedModel::Scripted { instant: true };
        let (id, flags) = (RequestId(7), Vec::new());
        let request = LaunchRequest {
            id,
            scenario: Arc::clone(&scenario),
            model,
            flags,
            seed: None,
            follows: None,
        };
        services.start_now(request.clone());
        let Some(EffectResult::Msg(Msg::Untrusted { consent, .. })) = answers.recv().await else {
            panic!("it is not asked");
        };
        let would = &consent.would;
        for line in ["run sh -c df", "pass $RT_NEVER_SET to it as A", "call 127.0.0.1:7878"] {
            assert!(would.iter().any(|said| said.trim().starts_with(line)), "{line}: {would:?}");
        }
        services.allow(&consent.digest, &scenario.title);
        services.start_now(request);
        let Some(EffectResult::Msg(Msg::StartFailed { text, .. })) = answers.recv().await else {
            panic!("it is started");
        };
        let says = "the tool disk_worker: A comes from $RT_NEVER_SET, which is not set: set it and \
                    start again";
        assert_eq!(text, says);
        assert!(services.engine.runs().is_empty());
    }

    /// Services that export into this folder, and their results.
    fn writing_to(folder: &Path) -> (Services, mpsc::UnboundedReceiver<EffectResult>) {
        let engine = Engine::new(EngineSettings::default());
        let (models, trust) = (LiveModels::new(ProxyMode::Direct), Trust::saved_in(None));
        Services::new(engine, models, trust, None, folder.to_path_buf())
    }

    fn report(text: &str) -> Vec<Export> {
        let file = |file: &str, text: &str| Export {
            file: file.to_owned(),
            contents: Contents::Text(text.to_owned()),
        };
        vec![file("r-b7c0.md", text), file("r-b7c0.jsonl", "{}\n")]
    }

    #[tokio::test]
    async fn files_are_written_once_for_their_owner_alone_and_one_notice_says_where() {
        let folder = tempfile::tempdir().expect("a folder");
        let (services, mut answers) = writing_to(folder.path());
        let at = |name: &str| folder.path().join(name);
        for (text, names) in [
            ("first", ["r-b7c0.md", "r-b7c0.jsonl"]),
            ("second", ["r-b7c0-2.md", "r-b7c0-2.jsonl"]),
        ] {
            services.export(report(text));
            let Some(EffectResult::Msg(Msg::Notice(said))) = answers.recv().await else {
                panic!("it is not said")
            };
            let [first, other] = names;
            assert_eq!(said, format!("exported {} and {other}", at(first).display()));
        }
        let read = |name: &str| std::fs::read_to_string(at(name)).expect("reads");
        assert_eq!([read("r-b7c0.md"), read("r-b7c0-2.md")], ["first", "second"]);
        assert_eq!(std::fs::read_dir(folder.path()).expect("reads").count(), 4);
        assert!(answers.try_recv().is_err(), "one notice for each time");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(at("r-b7c0.md")).expect("is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_said_with_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a file");
        std::fs::write(&file, "").expect("written");
        let (services, mut answers) = writing_to(&file.join("beneath"));
        services.export(report("text"));
        for name in ["r-b7c0.md", "r-b7c0.jsonl"] {
            let Some(EffectResult::Msg(Msg::EffectFailed { what, text })) = answers.recv().await
            else {
                panic!("it is not said")
            };
            assert_eq!(what, "export");
            assert!(text.starts_with(&format!("cannot write {name}: ")), "{text}");
            assert!(text.ends_with("that roundtable was started in, then press e again"), "{text}");
        }
        drop(services);
        assert!(answers.recv().await.is_none(), "nothing was written");
    }

    #[test]
    fn a_file_that_is_there_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let write =
            |text| write_numbered(folder.path(), "r-7f3a/../x.json", text).expect("written");
        let (first, second) = (write("one"), write("two"));
        assert_eq!(first, folder.path().join("r-7f3a_.._x.json"), "no way out of the folder");
        assert_eq!(second, folder.path().join("r-7f3a_.._x-2.json"));
        assert_eq!(std::fs::read_to_string(first).expect("reads"), "one");
    }
}
