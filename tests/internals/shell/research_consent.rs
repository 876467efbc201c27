//! The permissions that a scenario needs before it reads folders, starts programs and calls addresses.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::{Engine, EngineSettings};
use crate::host::consent::inputs_that_reach;
use crate::host::models::LiveModels;
use crate::host::trust::Trust;
use crate::net::ProxyMode;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::{Override, Scenario, ScenarioOrigin, load, shipped};
use crate::screen::Msg;
use crate::screen::effect::{LaunchRequest, RequestId, RunBeginning};
use crate::terminal::effects::{EffectResult, Services};

fn copy(name: &str, sets: &[&str]) -> Scenario {
    let shipped = shipped().iter().find(|it| it.name == name).expect("shipped");
    let text = format!("{}\n# of somebody else\n", shipped.text);
    let sets: Vec<Override> = sets.iter().map(|set| set.parse().expect("an override")).collect();
    load(&text, ScenarioOrigin::File("copy.toml".into()), &sets).expect("a good scenario")
}

/// Nothing of what is shipped asks. A copy that was changed asks before it reads a person's files or calls an
/// address, and not for what stands in it or in the program.
#[test]
fn changed_copy_asks_before_access() {
    const PAGES: &str = "read pages of www.githubstatus.com, www.cloudflarestatus.com, \
                         status.openai.com, status.python.org";
    let trust = Trust::saved_in(None);
    for (name, would) in [
        ("payments-incident", &[][..]),
        ("own-notes", &[]),
        ("web-status", &[PAGES]),
        ("rumour-mill", &[]),
        ("fabricated-quote", &[]),
    ] {
        let shipped = shipped().iter().find(|it| it.name == name).expect("shipped");
        let as_it_is = load(shipped.text, shipped.origin(), &[]).expect("a good scenario");
        assert_eq!(trust.needed_consent(&as_it_is, None), None, "{name}");
        let asked = trust.needed_consent(&copy(name, &[]), None);
        let asked = asked.map(|asked| asked.would).unwrap_or_default();
        assert_eq!(asked, would, "a copy of {name}");
    }
    let asks = |name, set| {
        trust.needed_consent(&copy(name, &[set]), None).map(|asked| asked.would).unwrap_or_default()
    };
    assert_eq!(
        asks("own-notes", "inputs.folder=/home/somebody/diary"),
        ["read the documents in /home/somebody/diary"]
    );
    assert_eq!(
        asks("web-status", "tools.read_source.read.allow_private=true"),
        [PAGES, "  also on local networks"]
    );
    assert_eq!(
        asks("web-status", "tools.read_source.read.allow_private=[\"wiki.corp:8080\"]"),
        [PAGES, "  of wiki.corp:8080 also on local networks"]
    );
    assert_eq!(
        asks("web-status", "tools.read_source.read.robots=false"),
        [PAGES, "  and ignore robots.txt"]
    );
    assert_eq!(
        asks("web-status", "tools.read_source.read.max_bytes=1000000000"),
        [PAGES, "  of up to 1000 MB"]
    );
    assert_eq!(
        asks(
            "own-notes",
            "tools.search_sources.search={ url = \"https://collector.example/?q={query}\" }"
        )
        .first()
        .map(String::as_str),
        Some("send search queries to collector.example")
    );
}

/// What a value from outside of the file makes of a scenario that is shipped, or that is allowed: it asks for
/// that value once.
#[test]
fn each_value_asks_once() {
    let address = "workers.orders_worker.http.url=http://a.example/x";
    for (name, set, other, says) in [
        ("own-notes", "inputs.folder=/a", "inputs.folder=/b", "read the documents in /a"),
        (
            "own-notes",
            "tools.read_source.read.folder=/a",
            "tools.read_source.read.folder=/b",
            "read the documents in /a",
        ),
        (
            "real-services",
            "workers.disk_worker.command.program=./x",
            "workers.disk_worker.command.program=./y",
            "run ./x -c",
        ),
        (
            "real-services",
            "workers.disk_worker.command.args=[\"-c\", \"rm x\"]",
            "workers.disk_worker.command.args=[\"-c\", \"rm y\"]",
            "run sh -c rm x",
        ),
        (
            "real-services",
            "workers.disk_worker.command.env={ A = { env = \"HOME\" } }",
            "workers.disk_worker.command.env={ A = { env = \"USER\" } }",
            "run sh -c",
        ),
        (
            "real-services",
            address,
            "workers.orders_worker.http.url=http://a.example/y",
            "send GET requests to a.example",
        ),
        (
            "real-services",
            "workers.orders_worker.http.headers={ a = { env = \"TOKEN\" } }",
            "workers.orders_worker.http.headers={ a = { env = \"KEY\" } }",
            "send GET requests to 127.0.0.1:7878",
        ),
        (
            "web-status",
            "research.allowed_domains_execution=[\"status.python.org\"]",
            "research.allowed_domains_execution=[\"www.githubstatus.com\"]",
            "read pages of status.python.org",
        ),
    ] {
        let shipped = shipped().iter().find(|it| it.name == name).expect("shipped");
        let given = |set: &str| {
            let set: Override = set.parse().expect("an override");
            load(shipped.text, shipped.origin(), &[set]).unwrap_or_else(|why| panic!("{why:?}"))
        };
        let trust = Trust::saved_in(None);
        let asked = trust.needed_consent(&given(set), None).unwrap_or_else(|| panic!("{set}"));
        assert!(asked.would[0].starts_with(says), "{set}: {:?}", asked.would);
        assert!(!asked.is_of_file && asked.scope.contains("these values"), "{asked:?}");
        trust.allow(&asked.digests, "a title").expect("kept");
        assert_eq!(trust.needed_consent(&given(set), None), None, "{set}: once");
        assert!(trust.needed_consent(&given(other), None).is_some(), "{other}: another value");

        // A permission for a file is none for values that are given to it.
        let trust = Trust::saved_in(None);
        if let Some(of_file) = trust.needed_consent(&copy(name, &[]), None) {
            trust.allow(&of_file.digests, "a title").expect("kept");
        }
        assert!(trust.needed_consent(&copy(name, &[set]), None).is_some(), "{set}");
        assert_eq!(trust.needed_consent(&copy(name, &["title=Mine"]), None), None, "{name}");
    }
}

#[test]
fn inputs_say_whether_they_reach_outside() {
    for shipped in shipped() {
        let scenario = load(shipped.text, shipped.origin(), &[]).expect("a good scenario");
        let reaching = inputs_that_reach(&scenario);
        let reaching: Vec<&str> = reaching.iter().map(|name| name.as_str()).collect();
        let expected = if shipped.name == "own-notes" { &["folder"][..] } else { &[] };
        assert_eq!(reaching, expected, "{}", shipped.name);
    }
}

#[tokio::test]
async fn reaching_value_of_form_asks_once() {
    let engine = Engine::new(EngineSettings::default());
    let (models, trust) = (LiveModels::new(ProxyMode::Direct), Trust::saved_in(None));
    let (services, mut answers) = Services::new(engine, models, trust, None, PathBuf::new());
    let shipped = shipped().iter().find(|one| one.name == "own-notes").expect("shipped");
    let request = |folder: &Path| {
        let set = Override::literal("inputs.folder", &folder.display().to_string());
        let set = [set.expect("an override")];
        LaunchRequest {
            id: RequestId(7),
            scenario: Arc::new(load(shipped.text, shipped.origin(), &set).expect("good")),
            model: RequestedModel::Scripted { instant: true },
            flags: Vec::new(),
            seed: None,
            begins: RunBeginning::New,
        }
    };
    let (one, other) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    services.start(request(one.path()));
    let Some(EffectResult::Msg(Msg::Untrusted { consent, .. })) = answers.recv().await else {
        panic!("it is not asked");
    };
    assert!(consent.would[0].starts_with("read the documents in /"), "{consent:?}");
    services.allow(&consent.digests, "a title");
    services.start(request(one.path()));
    let Some(EffectResult::Started { .. }) = answers.recv().await else {
        panic!("it is asked again");
    };
    services.start(request(other.path()));
    let Some(EffectResult::Msg(Msg::Untrusted { .. })) = answers.recv().await else {
        panic!("another folder is not asked about");
    };
}
