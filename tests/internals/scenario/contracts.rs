//! Settings of a scenario without effect, in the wrong place, or against the contract of their reader:
//! reported when it is loaded, each with its field and the right form.

use crate::log::facts::collaboration::Stance;
use crate::scenario::patterns::research::ResearchStep;
use crate::scenario::{ScenarioOrigin, check, load, shipped};

use super::judge_as;

/// The reports on a text, without the places.
fn told(text: &str) -> Vec<String> {
    let problems = check(text, ScenarioOrigin::File("a.toml".into()), &[]).problems;
    let line = |problem| {
        let line = problems.line(problem);
        let (_, rest) = line.split_once(": ").expect("a place");
        rest.to_owned()
    };
    problems.iter().map(line).collect()
}

/// Judges all reports on each mistake, without their places.
#[track_caller]
fn judge(good: &str, table: &str) {
    assert_eq!(told(good), Vec::<String>::new());
    judge_as(told, good, table);
}

const TABLE: &str = r#"title = "T"
pattern = "collaboration"
goal = "g"
collaboration = { sequence = ["ann", "bob"], finalize_prompt = "f" }
roles.ann.prompt = "a"
roles.bob.prompt = "b"
flags.late = {}
inputs.sure = { value = 0.5 }
[[script]]
reply = { stance = "go", summary = "s", confidence = 0.9, actions = ["a"] }
[[script]]
step = "finalize"
text = "Done."
"#;

#[test]
fn scripted_contribution_keeps_contract_or_warns() {
    judge(
        TABLE,
        r#"
- stance = "go"
+ stance = "cautious"
warning: script[0].reply.stance: `cautious` is not a stance: the run stops with invalid_contribution:stance (did you mean `caution`?)

- summary =
+ sumary =
warning: script[0].reply.summary: `summary` is missing: the run stops with invalid_contribution:missing_keys (rename `sumary`)

- summary = "s"
+ summary = " "
warning: script[0].reply.summary: expected a string that is not empty, found the string " ": the run stops with invalid_contribution:summary

- confidence = 0.9
+ confidence = 80
warning: script[0].reply.confidence: expected a number from 0 to 1, found the number 80: the run stops with invalid_contribution:confidence_range

- confidence = 0.9
+ confidence = "high"
warning: script[0].reply.confidence: expected a number from 0 to 1, found the string "high": the run stops with invalid_contribution:confidence_type

- actions = ["a"]
+ actions = []
warning: script[0].reply.actions: the list is empty: the run stops with invalid_contribution:actions

- actions = ["a"]
+ actions = [3]
warning: script[0].reply.actions[0]: expected a string that is not empty, found the number 3: the run stops with invalid_contribution:action_item

- stance = "go"
+ agent = "bop", stance = "go"
warning: script[0].reply.agent: `bop` is not a role: the run stops with invalid_contribution:agent_not_allowed:bop (did you mean `bob`?)
"#,
    );
    const GO: &str = r#"{ stance = "go", summary = "s", confidence = 0.9, actions = ["a"] }"#;
    // An input's value is known later, and `raw` is meant literally.
    for reply in [
        r#"reply = { stance = "go", summary = "s", confidence = "{{sure}}", actions = ["a"] }"#,
        r#"raw = "{}""#,
        r#"text = "no JSON""#,
    ] {
        assert_eq!(told(&TABLE.replace(&format!("reply = {GO}"), reply)), [""; 0], "{reply}");
    }
}

#[test]
fn contract_words_match_patterns() {
    let odd = TABLE.replace("\"go\"", "\"xxxxxxxx\"");
    let words = Stance::ALL.map(Stance::word).join(", ");
    assert!(told(&odd)[0].ends_with(&format!("(one of {words})")), "{:?}", told(&odd));
    let actions = ResearchStep::ALL.map(ResearchStep::action);
    assert_eq!(actions, crate::scenario::patterns::research::ACTIONS);
    for shipped in shipped() {
        let scenario = load(shipped.text, shipped.origin(), &[]).expect("good");
        assert_eq!(
            (scenario.warnings.every_run, scenario.warnings.offline),
            (vec![], vec![]),
            "{}",
            shipped.name
        );
    }
}

const PLAN: &str = r#"title = "T"
pattern = "orchestrator"
goal = "g"
[orchestrator]
plan_prompt = "p"
finalize_prompt = "f"
level = { name = "health", otherwise = "green" }
[workers.sales]
description = "S"
args = { region = "Which" }
fixture.rows = [{ args = { region = "EU" }, result = {} }]
[[script]]
step = "plan"
reply = { kind = "plan", tasks = [{ id = "t1", worker = "sales", args = { region = "EU" }, critical = true }] }
[[script]]
step = "finalize"
text = "Done."
"#;

#[test]
fn scripted_plan_and_rows_keep_contract() {
    judge(
        PLAN,
        r#"
- kind = "plan", tasks
+ tasks
warning: script[0].reply.kind: a plan needs kind = "plan": the run stops with invalid_plan:kind (write kind = "plan")

- worker = "sales"
+ worker = "sale"
warning: script[0].reply.tasks[0].worker: `sale` is not a worker: the run stops with invalid_plan:worker_not_allowed (did you mean `sales`?)

- args = { region = "EU" }, critical
+ args = { regoin = "EU" }, critical
warning: script[0].reply.tasks[0].args.regoin: `regoin` is not an argument of `sales`: the task fails with worker_bad_args:sales (did you mean `region`?)
warning: script[0].reply.tasks[0].args.region: `region` is missing: the task fails with worker_bad_args:sales (rename `regoin`)

- , critical = true
warning: script[0].reply.tasks[0].critical: `critical` is missing: the run stops with invalid_plan:missing_keys

- rows = [{ args = { region
+ rows = [{ args = { area
error: workers.sales.fixture.rows[0].args.area: `area` is not an argument of its calls: the row is never used (the only one is region)
"#,
    );
}

const RESEARCH: &str = r#"title = "T"
pattern = "research"
goal = "g"
[research]
question = "q"
allowed_domains_policy = ["a.example"]
allowed_domains_execution = ["a.example"]
notes = "rule"
answer = "rule"
[[tools.search_sources.fixture.rows]]
args = { query = "q" }
result = { status = "ok", data = { results = [{ url = "https://a.example/p" }] } }
[[tools.read_source.fixture.rows]]
args = { url = "https://a.example/p" }
result = { status = "ok", data = { body = "The page of the question q." } }
[[tools.read_source.fixture.rows]]
result = { status = "error", error = "not_found" }
[[script]]
step = "plan"
reply = { steps = [
  { id = "r1", action = "search_sources", args = { query = "q" } },
  { id = "r2", action = "dedupe_urls", args = {} },
  { id = "r3", action = "read_extract_notes", args = {} },
  { id = "r4", action = "verify_notes", args = {} },
  { id = "r5", action = "synthesize_answer", args = {} },
] }
"#;

#[test]
fn research_fixtures_keep_envelope() {
    judge(
        RESEARCH,
        r#"
- status = "ok", data = { results = [{ url = "https://a.example/p" }] } }
+ results = [{ url = "https://a.example/p" }] }
warning: tools.search_sources.fixture.rows[0].result: `status` is missing: the run stops with tool_invalid_output:search_sources (result = { status = "ok", data = { results = [{ url = "https://…" }] } })

- status = "ok", data = { results
+ status = "ok", dat = { results
warning: tools.search_sources.fixture.rows[0].result: `data` is missing: the run stops with tool_invalid_output:search_sources (result = { status = "ok", data = { results = [{ url = "https://…" }] } })

- results = [{ url = "https://a.example/p" }]
+ results = 7
warning: tools.search_sources.fixture.rows[0].result.data.results: expected a list, found the number 7: the run stops with tool_invalid_output:search_sources (result = { status = "ok", data = { results = [{ url = "https://…" }] } })

- status = "error", error
+ status = "error", eror
warning: tools.read_source.fixture.rows[1].result: `error` is missing: the page is skipped with tool_invalid_output:read_source (result = { status = "ok", data = { body = "…" } }, or { status = "error", error = "not_found" })

- args = { query = "q" }
- result
+ args = { q = "q" }
+ result
error: tools.search_sources.fixture.rows[0].args.q: `q` is not an argument of its calls: the row is never used (did you mean `k`?)

- "dedupe_urls"
+ "dedupe"
warning: script[0].reply.steps[1].action: `dedupe` is not the step here: the run stops with invalid_plan:step_sequence (write "dedupe_urls")

-   { id = "r5", action = "synthesize_answer", args = {} },
-
warning: script[0].reply.steps: `synthesize_answer` is missing: the run stops with invalid_plan:step_sequence (the steps are search_sources, dedupe_urls, read_extract_notes, verify_notes, synthesize_answer)
"#,
    );
}

#[test]
fn warns_of_empty_allowlist() {
    for (from, what) in [
        ("allowed_domains_policy = [\"a.example\"]", "may be read"),
        ("allowed_domains_execution = [\"a.example\"]", "is switched on"),
    ] {
        let key = from.split_once(' ').expect("a key").0;
        let text = RESEARCH.replace(from, &format!("{key} = []"));
        let expected =
            format!("warning: research.{key}: every source will be denied: no domain {what}");
        assert_eq!(told(&text), [expected]);
    }
}

const SWARM: &str = r#"title = "T"
pattern = "swarm"
goal = "g"
swarm.root = "desk"
inputs.name = { value = "n" }
flags.late = { default = true }
[agents.desk]
description = "D"
members = ["a", "b", "c"]
entry = "a"
handoff_input = "{root_input}: {message}"
[agents.a]
description = "A"
tools = ["look"]
[agents.b]
description = "B"
instruction = "Late is {{flags.late}}."
[agents.c]
description = "C"
[tools.look]
description = "Looks"
args = { order = "Which" }
timeout_s = 0.3
fixture.rows = [{ args = { order = "1" }, latency = 0.3, result = {} }]
[[script]]
agent = "a"
round = 1
calls = [
  { tool = "look", args = { order = "1" } },
  { tool = "transfer_to_agent", args = { agent_name = "b", message = "m" } },
]
[[script]]
text = "x"
"#;

#[test]
fn scripted_call_arguments_match_callee() {
    judge(
        SWARM,
        r#"
- agent_name = "b", message
+ to = "b", message
error: script[0].calls[1].args.to: `to` is not an argument of transfer_to_agent (one of agent_name, message)

- agent_name = "b", message
+ message
warning: script[0].calls[1].args.agent_name: transfer_to_agent is called without `agent_name` and will be refused (write args = { agent_name = "…" })

- tool = "look", args = { order
+ tool = "look", args = { ordr
warning: script[0].calls[0].args.ordr: `ordr` is not an argument of look (did you mean `order`?)

- rows = [{ args = { order
+ rows = [{ args = { odrer
warning: tools.look.fixture.rows[0].args.odrer: `odrer` is not an argument of its calls: the row is never used (did you mean `order`?)

- args = { agent_name = "b", message = "m" }
+ raw = "{}"
"#,
    );
}

#[test]
fn misplaced_key_suggests_right_place() {
    judge(
        SWARM,
        r#"
- goal = "g"
+ goal = "g"
+ max_seconds = 2
error: max_seconds: unknown key `max_seconds` (did you mean `budget.max_seconds`?)

- swarm.root = "desk"
+ swarm = { root = "desk", members = ["a"] }
error: swarm.members: unknown key `members` (move it to the agent that `root` names: [agents.NAME])

- { default = true }
+ { value = true }
error: flags.late.value: unknown key `value` (did you mean `default`?)

- "{root_input}: {message}"
+ "{{root_input}}: {{name}}"
error: agents.desk.handoff_input: `{{root_input}}` is not an input (write `{root_input}`)
"#,
    );
    let set = ["max_rounds=2".parse().expect("an override")];
    let problems = check(TABLE, ScenarioOrigin::File("a.toml".into()), &set).problems;
    assert!(problems.to_string().contains("did you mean `budget.max_rounds`?"), "{problems}");
}

#[test]
fn rules_without_calls_are_reported() {
    let team = r#"title = "T"
pattern = "team"
goal = "g"
team.root = "pm"
[people.ann]
description = "Ann"
otherwise = "stop"
[tools.pay]
description = "Pays"
fixture = { rows = [{ result = { ok = true } }] }
[tools.look]
description = "Looks"
approve = { who = "ann" }
fixture = { rows = [{ result = { ok = true } }] }
[[approve]]
tool = "p*"
agent = "a"
do = "ask"
[agents.pm]
description = "P"
members = ["a", "b"]
[agents.a]
description = "A"
tools = ["pay", "look"]
[agents.b]
description = "B"
person = "ann"
[[script]]
text = "x"
[[script]]
person = "ann"
text = "y"
"#;
    judge(
        team,
        r#"
- agent = "a"
+ agent = "b"
warning: approve[0].agent: the rule has no effect: b is a person and calls no tools (remove the rule, or name another agent)

- tools = ["pay", "look"]
+ tools = ["look"]
warning: tools.pay: `pay` is never called (add it to the `tools` of an agent)
warning: approve[0].agent: the rule has no effect: a has no such tool (tools of a: look)

- otherwise = "stop"
+ otherwise = { answer = "ok" }

- otherwise = "stop"
+ [people.bob]
+ description = "Bob"
+ otherwise = { answer = "ok" }
warning: people.bob.otherwise: the answer has no effect: bob only approves calls (deny, stop or pause)
"#,
    );
}

#[test]
fn settings_that_do_nothing_are_told() {
    judge(
        SWARM,
        r#"
- entry = "a"
+ entry = "a"
+ repetitive_handoff_min_unique = 4
warning: agents.desk.repetitive_handoff_min_unique: the targets cannot have 4 different names: every handoff is refused once the window is full (members of the swarm: 3)

- entry = "a"
+ entry = "a"
+ repetitive_handoff_min_unique = 0

- entry = "a"
+ entry = "a"
+ cross_request_transfer = true
"#,
    );
    let team = r#"title = "T"
pattern = "team"
goal = "g"
team.root = "pm"
model.stream = true
[agents.pm]
description = "P"
members = ["desk"]
member_tools = { stream_inner = true, inner_text = "exclude" }
[agents.desk]
description = "D"
members = ["a"]
entry = "a"
[agents.a]
description = "A"
[[script]]
text = "x"
"#;
    judge(
        team,
        r#"
- stream_inner = true, inner_text
+ inner_text
warning: agents.pm.member_tools.inner_text: `inner_text` has no effect: output of members is not shown (add stream_inner = true, or remove it)

- model.stream = true
+ model.stream = false
warning: agents.pm.member_tools.stream_inner: `stream_inner` has no effect: model.stream is false (remove one of the two)

- entry = "a"
+ entry = "a"
+ cross_request_transfer = true
warning: agents.desk.cross_request_transfer: `cross_request_transfer` has no effect in a swarm within another team (only the root agent receives the next message)
"#,
    );
}

#[test]
fn durations_are_numbers_or_text() {
    let set = |from: &str, to: &str| told(&SWARM.replacen(from, to, 1));
    for good in ["0.3", "\"300ms\"", "\"2s\"", "\" 1.5m \"", "86400", "\"1440m\""] {
        assert_eq!(set("timeout_s = 0.3", &format!("timeout_s = {good}")), [""; 0], "{good}");
    }
    for (bad, why) in [
        ("0", "0 is out of range (0.001 to 86400)"),
        ("\"0s\"", "\"0s\" is out of range (0.001 to 86400 seconds)"),
        ("\"1441m\"", "\"1441m\" is out of range (0.001 to 86400 seconds)"),
        ("\"300\"", "\"300\" is not a duration (such as 300ms, 1.5s or 2m)"),
        ("true", "expected a number from 0.001 to 86400, found true"),
    ] {
        let expected = format!("error: tools.look.timeout_s: {why}");
        assert_eq!(set("timeout_s = 0.3", &format!("timeout_s = {bad}")), [expected], "{bad}");
    }
    for good in ["0.3", "0", "1", "\"300ms\"", "\"300ms..2s\""] {
        assert_eq!(set("latency = 0.3", &format!("latency = {good}")), [""; 0], "{good}");
    }
    let policy = |setting: &str| set("timeout_s = 0.3", setting);
    for good in [
        "retries.backoff_ms = [\"250ms\", 500, \"0.75s\"]",
        "bulkhead.max_wait_ms = \"2s\"",
        "breaker.open_for_s = \"500ms\"",
        "safe_mode.cache_ttl_s = \"5m\"",
        "faults = [{ kind = \"latency\", ms = \"2s\" }]",
    ] {
        assert_eq!(policy(good), [""; 0], "{good}");
    }
    assert_eq!(
        policy("retries.backoff_ms = [\"0.5ms\"]"),
        [
            "error: tools.look.retries.backoff_ms[0]: \"0.5ms\" is not a whole number of milliseconds (0 to 600000 milliseconds)"
        ]
    );
    let budget =
        |time: &str| set("goal = \"g\"", &format!("goal = \"g\"\nbudget.max_seconds = {time}"));
    assert_eq!((budget("\"2m\""), budget("90")), (vec![], vec![]));
    assert_eq!(
        budget("\"1500ms\""),
        [
            "error: budget.max_seconds: \"1500ms\" is not a whole number of seconds (1 to 86400 seconds)"
        ]
    );
    let swarm =
        |time: &str| set("entry = \"a\"", &format!("entry = \"a\"\nnode_timeout_s = {time}"));
    assert_eq!((swarm("\"500ms\""), swarm("0.5")), (vec![], vec![]));
    // They come to the same.
    let read = |time: &str| {
        let text = SWARM.replacen("timeout_s = 0.3", &format!("timeout_s = {time}"), 1);
        let scenario = load(&text, ScenarioOrigin::File("a.toml".into()), &[]).expect("good");
        scenario.tools["look"].policy.timeout
    };
    assert_eq!(read("0.3"), read("\"300ms\""));
}
