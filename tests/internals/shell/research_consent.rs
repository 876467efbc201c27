//! The permissions that a foreign scenario of research needs before it searches.

use crate::host::trust::Trust;
use crate::scenario::load;
use crate::scenario::{Override, Scenario, ScenarioOrigin, shipped};

fn copy(name: &str, sets: &[&str]) -> Scenario {
    let shipped = shipped().iter().find(|it| it.name == name).expect("shipped");
    let text = format!("{}\n# of somebody else\n", shipped.text);
    let sets: Vec<Override> = sets.iter().map(|set| set.parse().expect("an override")).collect();
    load(&text, ScenarioOrigin::File("copy.toml".into()), &sets).expect("a good scenario")
}

/// Nothing of what is shipped asks. A copy that was changed asks before it looks at a person's files
/// or networks, and not for what stands in it, in the program or on the open web.
#[test]
fn changed_copy_asks_before_private_access() {
    let trust = Trust::saved_in(None);
    let names = ["payments-incident", "own-notes", "web-status", "rumour-mill", "fabricated-quote"];
    for name in names {
        let shipped = shipped().iter().find(|it| it.name == name).expect("shipped");
        let as_it_is = load(shipped.text, shipped.origin(), &[]).expect("a good scenario");
        assert_eq!(trust.needed_consent(&as_it_is, None), None, "{name}");
        assert_eq!(trust.needed_consent(&copy(name, &[]), None), None, "a copy of {name}");
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
        ["read pages, also on local networks"]
    );
    assert_eq!(
        asks("web-status", "tools.read_source.read.allow_private=[\"wiki.corp:8080\"]"),
        ["read pages of wiki.corp:8080, also on local networks"]
    );
    assert_eq!(asks("web-status", "tools.read_source.read.robots=false"), ["ignore robots.txt"]);
    assert_eq!(
        asks("web-status", "tools.read_source.read.max_bytes=1000000000"),
        ["read pages of up to 1000 MB"]
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
