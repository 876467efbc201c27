use super::*;
use crate::engine::EngineSettings;
use crate::net::ProxyMode;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::{Scenario, ScenarioOrigin, load, shipped};
use crate::screen::effect::{Contents, RequestId};

/// A foreign scenario with a program that needs an unset variable.
fn foreign() -> Scenario {
    let shipped = shipped().iter().find(|one| one.name == "real-services").expect("shipped");
    let (program, needs) = ("program = \"sh\"\n", "env = { A = { env = \"RT_NEVER_SET\" } }\n");
    let text = shipped.text.replace(program, &format!("{program}{needs}"));
    load(&text, ScenarioOrigin::File("foreign.toml".into()), &[]).expect("a good scenario")
}

#[tokio::test]
async fn foreign_file_asks_and_reports_missing() {
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
        begins: RunBeginning::New,
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
async fn writes_private_files_with_one_notice() {
    let folder = tempfile::tempdir().expect("a folder");
    let (services, mut answers) = writing_to(folder.path());
    let at = |name: &str| folder.path().join(name);
    for (text, names) in
        [("first", ["r-b7c0.md", "r-b7c0.jsonl"]), ("second", ["r-b7c0-2.md", "r-b7c0-2.jsonl"])]
    {
        services.export(report(text), Action::Export);
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
async fn failed_write_gives_advice() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a file");
    std::fs::write(&file, "").expect("written");
    let (services, mut answers) = writing_to(&file.join("beneath"));
    services.export(report("text"), Action::Export);
    for name in ["r-b7c0.md", "r-b7c0.jsonl"] {
        let Some(EffectResult::Msg(Msg::EffectFailed { what, text })) = answers.recv().await else {
            panic!("it is not said")
        };
        assert_eq!(what, "export");
        assert!(text.starts_with(&format!("cannot write {name}: ")), "{text}");
        assert!(text.ends_with("that roundtable was started in, then press e again"), "{text}");
    }
    drop(services);
    assert!(answers.recv().await.is_none(), "nothing was written");
}

#[cfg(feature = "store")]
#[tokio::test]
async fn a_damaged_row_is_noted_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("runs.db");
    let database = crate::store::database::Database::open(&path).expect("a store");
    let sql = "INSERT INTO run (id, started, next) VALUES ('r-1', -1, 1), ('r-2', 1, 1)";
    rusqlite::Connection::open(&path).expect("opens").execute(sql, []).expect("written");
    let (mut services, mut answers) = writing_to(folder.path());
    services.kept = super::kept_runs::KeptRuns::new(Some(database));
    for is_first in [true, false] {
        services.list_kept();
        if is_first {
            let Some(EffectResult::Msg(Msg::EffectFailed { text, .. })) = answers.recv().await
            else {
                panic!("it is not noted");
            };
            assert!(text.contains("r-1: its row cannot be read"), "{text}");
        }
        let Some(EffectResult::Msg(Msg::Kept { rows, .. })) = answers.recv().await else {
            panic!("no list");
        };
        assert_eq!(rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["r-2"]);
    }
}

#[test]
fn keeps_existing_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |text| write_numbered(folder.path(), "r-7f3a/../x.json", text).expect("written");
    let (first, second) = (write("one"), write("two"));
    assert_eq!(first, folder.path().join("r-7f3a_.._x.json"), "no way out of the folder");
    assert_eq!(second, folder.path().join("r-7f3a_.._x-2.json"));
    assert_eq!(std::fs::read_to_string(first).expect("reads"), "one");
}
