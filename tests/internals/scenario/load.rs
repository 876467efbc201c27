//! What a good file comes to: every field, its defaults, templates and overrides.
use std::time::Duration;

use crate::base::seeded_random::Latency;
use crate::scenario;
use crate::scenario::patterns::PatternSpec;
use crate::scenario::patterns::collaboration::{CollaborationSpec, Concurrency, RoleFlag, WhenOff};
use crate::scenario::source::SourceError;
use crate::scenario::spec::script::ScriptStep;
use crate::scenario::spec::tool::{ScriptFault, ScriptFaultKind};
use crate::scenario::spec::{InputKind, Repair, Repairs};
use crate::scenario::{Override, Scenario, ScenarioOrigin, ScenarioSource, load};
use serde_json::{Value, json};

const MINIMAL: &str = r#"
title = "Least"
pattern = "collaboration"
goal = "Decide."
collaboration = { sequence = ["ann"], finalize_prompt = "Sum up." }
roles.ann.prompt = "You are Ann."
budget.min_go_votes = 1
script = [{ text = "x" }, { step = "finalize", text = "y" }]
"#;

const MAXIMAL: &str = r#"
title = "Most"
pattern = "collaboration"
about = "All there is."
goal = """Decide on {{what}}, {{ count }} times, by {{day}}. \\{{what}}"""
seed = 7
[inputs]
what = { value = "lunch", label = "The thing" }
count = { value = 3 }
share = { value = 0.5 }
loud = { value = true }
day = { value = 2026-02-28 }
taste = { value = "sweet", choices = ["sweet", "sour"] }
dish_name = { value = "7", kind = "text" }
[flags.third]
default = true
label = "A third"
[flags.fourth]
[budget]
max_rounds = 5
max_messages = 20
max_seconds = 90
min_go_votes = 3
[people.chair]
description = "Decides."
timeout = "3d"
[facts]
what = "{{what}}"
many = "{{count}}"
half = " {{share}}"
list = ["{{loud}}", { day = "{{day}}" }, 2026-01-01T10:00:00Z, 1.50]
[collaboration]
sequence = ["ann", "bob", "cy"]
concurrency = "sequential"
on_no_decision = { ask = "chair" }
finalize_prompt = "Sum up {{what}}."
summary = ["day", "what"]
[roles.ann]
prompt = "Ann of {{what}}."
[roles.bob]
prompt = "Bob."
flag = "third"
[roles.cy]
prompt = "Cy."
flag = "fourth"
when_off = "deny"
[model]
stream = false
name = "tiny"
base_url = "http://127.0.0.1:1/v1"
repair = "fences"
prices = { prompt_usd_per_million = 0.4, completion_usd_per_million = 2 }
[tools.llm]
timeout_s = 1.5
retries = { max_attempts = 4, backoff_ms = [10, 20], jitter = false }
idempotent = false
[[script]]
role = "ann"
round = 2
attempt = 3
when = "facts.many == 3"
latency = "900ms..1.8s"
fault = { status = 429, retry_after_s = 2.5, times = 2 }
reply = { stance = "go", summary = "{{facts.list}} {{what}}", confidence = 1, actions = ["{{facts.many}}"] }
[[script]]
attempt = 1
latency = "2m"
fault = { kind = "bad_response" }
reply = { agent = "bob", stance = "go", summary = "s", confidence = 1, actions = ["a"] }
[[script]]
role = "cy"
round = 1
raw = "```{{what}}"
[[script]]
step = "finalize"
text = "Done by {{day}}."
"#;

fn read(text: &str, set: &[&str]) -> Scenario {
    let set: Vec<Override> = set.iter().map(|set| set.parse().expect("an override")).collect();
    load(text, ScenarioOrigin::File("some/where/name.toml".into()), &set)
        .unwrap_or_else(|problems| panic!("{}", problems.pretty(false)))
}

fn spec(scenario: &Scenario) -> &CollaborationSpec {
    let PatternSpec::Collaboration(spec) = &scenario.pattern else {
        panic!("a collaboration");
    };
    spec
}

#[test]
fn missing_keys_take_defaults() {
    let scenario = read(MINIMAL, &[]);
    assert_eq!(scenario.name.as_str(), "name");
    assert_eq!((scenario.about.as_str(), scenario.seed), ("", 42));
    assert!(
        scenario.inputs.is_empty() && scenario.flags.is_empty() && *scenario.facts == json!({})
    );
    assert_eq!(scenario.warnings.every_run, Vec::<String>::new());
    let spec = spec(&scenario);
    assert_eq!((spec.budget.max_rounds, spec.budget.max_messages), (3, 12));
    assert_eq!(spec.budget.max_seconds, Duration::from_secs(40));
    assert_eq!(spec.concurrency, Concurrency::Parallel);
    assert!(spec.summary_inputs.is_empty());
    assert_eq!(spec.roles["ann"].role_flag, None);
    assert!(scenario.model.stream);
    assert!(scenario.model.repair.is_empty());
    assert_eq!(scenario.model.ask_again, None);
    assert_eq!((scenario.model.prices, &scenario.model.name), (None, &None));
    // As in the cascading failures source document: two attempts, 250 and 750 ms, jitter.
    let waits = [Duration::from_millis(250), Duration::from_millis(750)];
    assert_eq!((scenario.llm.max_attempts, &*scenario.llm.backoff), (2, &waits[..]));
    assert!(scenario.llm.jitter && scenario.llm.idempotent && scenario.llm.timeout.is_none());
    assert_eq!(scenario.script.rows[0].latency, Latency::default());
}

#[test]
fn everything_that_is_there_is_read() {
    let scenario = read(MAXIMAL, &[]);
    assert_eq!(scenario.warnings.every_run, Vec::<String>::new());
    assert_eq!(&*scenario.goal, "Decide on lunch, 3 times, by 2026-02-28. {{what}}");
    let inputs: Vec<(&str, &str, &Value, &InputKind)> = scenario
        .inputs
        .iter()
        .map(|input| (input.name.as_str(), input.label.as_str(), &input.value, &input.kind))
        .collect();
    let taste = InputKind::Choice(vec!["sweet".to_owned(), "sour".to_owned()]);
    assert_eq!(
        inputs,
        [
            ("what", "The thing", &json!("lunch"), &InputKind::Text),
            ("count", "Count", &json!(3), &InputKind::Integer),
            ("share", "Share", &json!(0.5), &InputKind::Number),
            ("loud", "Loud", &json!(true), &InputKind::Bool),
            ("day", "Day", &json!("2026-02-28"), &InputKind::Date),
            ("taste", "Taste", &json!("sweet"), &taste),
            ("dish_name", "Dish name", &json!("7"), &InputKind::Text),
        ]
    );
    let flags: Vec<_> = scenario
        .flags
        .iter()
        .map(|flag| (flag.name.as_str(), &*flag.label, flag.default))
        .collect();
    assert_eq!(flags, [("third", "A third", true), ("fourth", "Fourth", false)]);
    assert_eq!(
        scenario.facts.to_string(),
        r#"{"what":"lunch","many":3,"half":" 0.5","list":[true,{"day":"2026-02-28"},"2026-01-01T10:00:00Z",1.5]}"#
    );
    let spec = spec(&scenario);
    assert_eq!((spec.budget.max_rounds, spec.budget.min_go_votes), (5, 3));
    assert_eq!(spec.concurrency, Concurrency::Sequential);
    assert_eq!(&*spec.finalize_prompt.written(), "Sum up lunch.");
    assert_eq!(&*spec.roles["ann"].prompt.written(), "Ann of lunch.");
    let behind = |flag: &str, when_off| Some(RoleFlag { flag: flag.into(), when_off });
    assert_eq!(spec.roles["bob"].role_flag, behind("third", WhenOff::Skip));
    assert_eq!(spec.roles["cy"].role_flag, behind("fourth", WhenOff::Deny));
    let summary: Vec<&str> = spec.summary_inputs.iter().map(|name| name.as_str()).collect();
    assert_eq!(summary, ["day", "what"]);
    assert!(!scenario.model.stream && !scenario.llm.idempotent && !scenario.llm.jitter);
    assert_eq!(scenario.model.name.as_deref(), Some("tiny"));
    assert_eq!(scenario.model.base_url.as_deref(), Some("http://127.0.0.1:1/v1"));
    assert_eq!(scenario.model.repair, Repairs::from([Repair::Fences]));
    let prices = scenario.model.prices.expect("prices");
    assert_eq!((prices.prompt_usd_per_million, prices.completion_usd_per_million), (0.4, 2.0));
    assert_eq!(scenario.llm.timeout, Some(Duration::from_millis(1_500)));
    assert_eq!(scenario.llm.max_attempts, 4);

    let [full, kind, raw, brief] = &scenario.script.rows[..] else { panic!("four rows") };
    assert_eq!(full.role.as_ref().map(|role| role.as_str()), Some("ann"));
    assert_eq!((full.round, full.attempt), (Some(2), Some(3)));
    assert_eq!(full.when.as_ref().map(|when| when.text()), Some("facts.many == 3"));
    let (min, max) = (Duration::from_millis(900), Duration::from_millis(1_800));
    assert_eq!(full.latency, Latency { min, max });
    let retry_after = Some(Duration::from_millis(2_500));
    let status = ScriptFaultKind::Status { status: 429, retry_after };
    assert_eq!(full.fault, Some(ScriptFault::new(status, 2)));
    assert_eq!(
        &*full.reply_text,
        r#"{"agent":"ann","stance":"go","summary":"[true,{\"day\":\"2026-02-28\"},\"2026-01-01T10:00:00Z\",1.5] lunch","confidence":1,"actions":[3]}"#
    );
    assert_eq!(kind.fault, Some(ScriptFault::new(ScriptFaultKind::BadResponse, 1)));
    assert_eq!(kind.latency.min, Duration::from_secs(120));
    assert_eq!(
        &*kind.reply_for(Some(&"ann".into())),
        r#"{"agent":"bob","stance":"go","summary":"s","confidence":1,"actions":["a"]}"#
    );
    assert_eq!(&*raw.reply_text, "```lunch");
    assert_eq!(
        (brief.step, &*brief.reply_text),
        (Some(ScriptStep::Finalize), "Done by 2026-02-28.")
    );
}

#[test]
fn reply_for_any_role_is_signed() {
    let text =
        MINIMAL.replace("{ text = \"x\" }", "{ reply = {} }, { round = 9, reply = { a = 1 } }");
    let rows = read(&text, &["budget.max_rounds=9"]).script.rows;
    assert_eq!(&*rows[0].reply_for(Some(&"an\"n".into())), r#"{"agent":"an\"n"}"#);
    assert_eq!(&*rows[1].reply_for(Some(&"ann".into())), r#"{"agent":"ann","a":1}"#);
    assert_eq!(&*rows[1].reply_for(None), r#"{"a":1}"#);
}

#[test]
fn overrides_apply_before_validation() {
    let set = [
        "inputs.what=dinner for two",
        "inputs.count=4",
        "inputs.dish_name=2026",
        "inputs.taste=sour",
        "inputs.day=2028-02-29",
        "budget.max_rounds=1",
        "roles.ann.prompt=Hi, {{what}}!",
        "tools.llm.timeout_s=5",
        "facts.new.deep=[1, { a = \"{{count}}\" }]",
        "collaboration.sequence[2]=ann",
        "script[0].latency=\"1s\"",
        "script[1]={ text = \"{{taste}}\" }",
        "title=42",
        "seed=8",
        "seed=9",
        "model.name=true",
        "flags.third.default=false",
        "flags.\"third\".label=x=y",
    ];
    let scenario = read(MAXIMAL, &set);
    assert_eq!(&*scenario.goal, "Decide on dinner for two, 4 times, by 2028-02-29. {{what}}");
    assert_eq!((scenario.title.as_str(), scenario.seed), ("42", 9));
    assert_eq!(scenario.inputs[6].value, "2026");
    assert_eq!(scenario.facts["many"], 4);
    assert_eq!(scenario.facts["new"], json!({ "deep": [1, { "a": 4 }] }));
    let spec = spec(&scenario);
    assert_eq!(spec.budget.max_rounds, 1);
    assert_eq!(&*spec.roles["ann"].prompt.written(), "Hi, dinner for two!");
    assert_eq!(spec.sequence[2].as_str(), "ann");
    assert_eq!(scenario.llm.timeout, Some(Duration::from_secs(5)));
    assert_eq!(scenario.script.rows[0].latency.max, Duration::from_secs(1));
    assert_eq!(&*scenario.script.rows[1].reply_text, "sour");
    assert_eq!(scenario.model.name.as_deref(), Some("true"));
    assert_eq!((scenario.flags[0].default, &*scenario.flags[0].label), (false, "x=y"));
    // The permission of a person is stored for the file, not for its overrides.
    assert_eq!(scenario.hash, read(MAXIMAL, &[]).hash);
    assert_eq!(scenario.hash.len(), 64);
    assert_ne!(scenario.hash, read(MINIMAL, &[]).hash);
}

#[test]
fn text_override_stays_as_typed() {
    let text = r#"
title = "T"
pattern = "collaboration"
goal = "{{v}}"
[inputs]
v = { value = "1.0" }
count = { value = 5 }
[facts]
phone = "+49 30"
limit = 0.5
[collaboration]
sequence = ["ann"]
finalize_prompt = "Sum up."
[roles.ann]
prompt = "{{v}}"
"#;
    for typed in ["1.10", "+4930", "0x10", "1e5", "1_000", "2026-02-26", "true", "[1]", "49"] {
        let set = [format!("inputs.v={typed}"), format!("facts.phone={typed}")];
        let scenario = read(text, &[&set[0], &set[1]]);
        assert_eq!(scenario.inputs[0].value, typed);
        assert_eq!(&*scenario.goal, typed);
        assert_eq!(scenario.facts["phone"], typed);
    }
    let scenario = read(text, &["inputs.v=\"a b\"", "facts.limit=1e-1", "inputs.count=7"]);
    assert_eq!(scenario.inputs[0].value, "a b");
    assert_eq!(scenario.facts["limit"], 0.1);
    assert_eq!(scenario.inputs[1].value, 7);
}

#[test]
fn literal_override_is_always_text() {
    let set = Override::literal("inputs.what", "\"quoted\"\n= 7").expect("an override");
    let scenario =
        load(MAXIMAL, ScenarioOrigin::Shipped("scenarios/most.toml"), &[set]).expect("good");
    assert_eq!(scenario.inputs[0].value, "\"quoted\"\n= 7");
    assert_eq!(scenario.name.as_str(), "most");
    for wrong in ["", "=1", "a..b=1", "a.=1", ".a=1", "\"a=1", "\"a\"b=1", "a"] {
        assert!(wrong.parse::<Override>().is_err(), "{wrong}");
    }
}

/// A file from Windows reads the same, and its mistakes stand in the same places.
#[test]
fn line_endings_are_equivalent() {
    let windows = MAXIMAL.replace('\n', "\r\n");
    let (unix, windows) = (read(MAXIMAL, &[]), read(&windows, &[]));
    assert_eq!(unix.goal, windows.goal);
    assert_eq!(unix.facts, windows.facts);
    let text = MAXIMAL.replace("You", "").replace("Sum up {{what}}", "'''\nSum\n{{wat}}'''");
    let text = text.replace("\"'''", "'''").replace("'''.\"", "'''");
    let told = |text: &str| {
        load(text, ScenarioOrigin::File("x".into()), &[]).expect_err("wrong").to_string()
    };
    assert_eq!(told(&text), told(&text.replace('\n', "\r\n")));
    assert!(told(&text).contains("`{{wat}}` is not an input"), "{}", told(&text));
}

#[test]
fn finds_scenario_by_file_or_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("checkout-launch.toml");
    std::fs::write(&path, MINIMAL).expect("written");
    let own = ScenarioSource::find(&path.display().to_string()).expect("found");
    assert_eq!((own.text.as_str(), own.origin), (MINIMAL, ScenarioOrigin::File(path)));
    // The folder of this repository has files of the shipped names: a file wins.
    let listed = ScenarioSource::find("checkout-launch").expect("found");
    assert_eq!(listed.origin, ScenarioOrigin::File("scenarios/checkout-launch.toml".into()));
    let shipped = scenario::shipped().iter().find(|one| one.name == "checkout-launch");
    assert_eq!(Some(listed.text.as_str()), shipped.map(|one| one.text));
    assert!(matches!(
        ScenarioSource::find("nothing"),
        Err(SourceError::NotFound { help: None, .. })
    ));
    let folder = folder.path().display().to_string();
    assert!(matches!(ScenarioSource::find(&folder), Err(SourceError::Unreadable { .. })));
}
