//! A scenario from nothing: `roundtable new`, `scenarios NAME`, and what a wrong command suggests.

use crate::support::binary::Home;

const PATTERNS: [&str; 7] =
    ["collaboration", "orchestrator", "team", "swarm", "resilience", "research", "router"];

#[test]
fn each_pattern_template_succeeds() {
    let home = Home::new();
    let listed = home.run(&["new"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    for pattern in PATTERNS {
        assert!(listed.out.contains(&format!("\n{pattern} ")) || listed.out.starts_with(pattern));
        let path = format!("scenarios/my-{pattern}.toml");
        let written = home.run(&["new", pattern]);
        assert_eq!(written.code, Some(0), "{written:?}");
        assert!(written.out.contains(&format!("roundtable run {path}")), "{}", written.out);
        let checked = home.run(&["validate", &path]);
        assert_eq!((checked.code, &*checked.err), (Some(0), ""), "{checked:?}");
        let name = format!("my-{pattern}");
        let ended = home.run(&["run", &name, "--instant", "--format", "json"]);
        assert_eq!(ended.code, Some(0), "{pattern}: {ended:?}");
        assert_eq!(ended.json()["stop_reason"], "success", "{pattern}");
    }
    let again = home.run(&["new", "team"]);
    assert_eq!((again.code, &*again.out), (Some(2), ""), "{again:?}");
    assert!(again.err.contains("exists and is not replaced"), "{}", again.err);
    let all = home.run(&["scenarios", "--json"]).json();
    let mine = all.as_array().expect("a list").iter();
    assert_eq!(mine.filter(|it| it["title"].as_str().unwrap_or("").starts_with("My ")).count(), 7);
}

#[test]
fn prints_and_copies_shipped_scenario() {
    let home = Home::new();
    let text = include_str!("../../scenarios/front-desk.toml");
    assert_eq!(home.run(&["scenarios", "front-desk"]).out, text);
    let copied = home.run(&["new", "--from", "front-desk", "mine/desk"]);
    assert_eq!(copied.code, Some(0), "{copied:?}");
    let path = home.path().join("mine/desk.toml");
    assert_eq!(std::fs::read_to_string(path).expect("a copy"), text);
    assert_eq!(home.run(&["scenarios", "mine/desk.toml"]).out, text);
    assert_eq!(
        home.run(&["new", "team", "-"]).out,
        include_str!("../../assets/templates/team.toml")
    );
}

#[test]
fn mistakes_suggest_correct_command() {
    let home = Home::new();
    home.write("my-swarm.toml", "");
    home.write("scenarios/my-team.toml", "");
    for (args, says) in [
        (
            &["checkout-launch"][..],
            "is a scenario, not a command; did you mean `roundtable run checkout-launch`?",
        ),
        (&["front-dsk"], "is not a command; did you mean `roundtable run front-desk`?"),
        (&["valdate"], "validate"),
        (&["new", "swram"], "swram is not a pattern\n  help: did you mean `swarm`?"),
        (&["new", "--from", "front-dsk"], "did you mean `front-desk`?"),
        (&["new", "team", "a", "--from", "front-desk"], "--from takes one FILE"),
        (&["new", "team", "--from", "front-desk"], "--from copies a scenario"),
        (&["scenarios", "front-dsk"], "front-desk"),
        // Files of one's own are suggested as they are written.
        (&["run", "my-swram"], "(did you mean `my-swarm.toml`?)"),
        (&["run", "my-swarm.tml"], "(did you mean `my-swarm.toml`?)"),
        (&["run", "./my-swram.toml"], "(did you mean `./my-swarm.toml`?)"),
        (&["run", "my-tema"], "(did you mean `my-team`?)"),
        (&["my-swram"], "is not a command; did you mean `roundtable run my-swarm.toml`?"),
        (&["test", "scenarois"], "(did you mean `scenarios/`?)"),
        (&["run", "my-swarm.toml", "--seed", "-1"], "invalid value '-1' for '--seed <N>'"),
    ] {
        let ended = home.run(args);
        assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(ended.err.contains(says), "{args:?}: {}", ended.err);
    }
}
