//! Good files of an orchestrator or of the pattern resilience and their result, and bad ones and their
//! reports.
use std::time::Duration;

use crate::base::seeded_random::Latency;
use crate::scenario::Scenario;
use crate::scenario::patterns::PatternSpec;
use crate::scenario::patterns::resilience::Naive;
use crate::scenario::spec::policy::{
    BreakerCounts, BreakerLimits, BreakerMode, BulkheadLimits, CallPolicy, Rate, RetryBudgetLimits,
    RetryOn, SafeMode, WindowKind, WindowLimits,
};
use crate::scenario::spec::script::ScriptStep;
use crate::scenario::spec::tool::{
    FieldKind, InjectedFault, ScriptFault, ScriptFaultKind, Setting, ToolSpec,
};
use crate::scenario::tools::ToolKind;
use crate::scenario::tools::fixture::FixtureAnswer;
use crate::scenario::tools::http::HttpMethod;
use serde_json::{Value, json};

use super::{judge, read, told};

const PLAN: &str = r#"title = "A report"
pattern = "orchestrator"
goal = "Report on {{day}}."
[inputs]
day = { value = "2026-02-26", kind = "date" }
size = { value = 3 }
[flags.stock]
[budget]
max_parallel = 2
[orchestrator]
plan_prompt = "Plan {{day}}."
finalize_prompt = "Write."
echo = ["day"]
sections = { sales = "seller", stock = "keeper" }
[orchestrator.level]
name = "health"
otherwise = "green"
rules = [{ level = "red", when = "has(stock.out) && truthy(stock.out)" }]
[workers.seller]
description = "Sells on {{day}}"
args = { day = "YYYY-MM-DD" }
contract = { sold = "number", by = "any" }
[[workers.seller.fixture.rows]]
args = { day = "{{day}}" }
attempt = 1
latency = "400ms"
fault = { status = 503, times = 1 }
result = { sold = "{{size}}", by = "{{day}}!" }
[[workers.seller.fixture.rows]]
raw = "[1"
[workers.keeper]
description = "Keeps"
args = { sku = "SKU" }
flag = "stock"
[workers.keeper.http]
url = "https://stock.example/v1/{sku}?r={sku}"
headers = { Authorization = { env = "STOCK_KEY" }, Accept = "text/json" }
pointer = "/data"
[tools.keeper]
timeout_s = 1.5
[[script]]
step = "plan"
reply = { kind = "plan", tasks = [] }
[[script]]
step = "finalize"
when = "aggregate.health == 'red'"
text = "Red."
[[script]]
step = "finalize"
text = "Fine."
"#;

const STORM: &str = r#"title = "A storm"
pattern = "resilience"
goal = "Weather it."
[inputs]
guarded = { value = true }
name = { value = "x" }
[resilience]
agents = 4
turns = 2
steps = ["vendor", "own"]
pool = 3
pace = "50ms..150ms"
guarded = "{{guarded}}"
[tools.vendor]
timeout_s = 2
retries = { max_attempts = 3, backoff_ms = [10], jitter = false }
idempotent = false
shared = true
retry_budget = { percent = 20, min = 1 }
breaker = { fail_threshold = 2, open_for_s = 4, probe_permits = 2, mode = "two_state", counts = "calls" }
bulkhead = { max_in_flight = 5, max_wait_ms = 20 }
safe_mode = { allow_partial = false, cache_ttl_s = 300, fallback = { name = "{{name}}" } }
faults = [{ kind = "latency", ms = 20 }, { kind = "errors", percent = 30 }, { kind = "hang" }]
[tools.vendor.fixture]
load = { capacity = 9, flaky_rate = 0.5, flaky_from = "2s", flaky_until = "8s" }
rows = [{ result = {} }]
[tools.own]
breaker = { enabled = false }
bulkhead = { enabled = false }
safe_mode = { enabled = false }
command = { program = "sh", args = ["-c", "cat"], env = { LANG = "C", PATH = { env = "PATH" } } }
[tools.llm]
bulkhead = { max_in_flight = 2 }
faults = [{ kind = "reset" }]
[alerts]
error_rate = 0.2
p95_ms = 900
"#;

fn tool<'s>(scenario: &'s Scenario, name: &str) -> &'s ToolSpec {
    scenario.tools.get(name).expect("a tool")
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn reads_orchestrator_workers_and_sections() {
    let scenario = read(PLAN, &[]);
    let PatternSpec::Orchestrator(spec) = &scenario.pattern else { panic!("an orchestrator") };
    let budget = spec.budget;
    // What the file leaves out has the values of the orchestrator source document.
    assert_eq!((budget.max_tasks, budget.max_parallel, budget.max_retries_per_task), (4, 2, 1));
    assert_eq!((budget.max_dispatches, budget.task_timeout), (8, ms(2_000)));
    assert_eq!(budget.max_seconds, ms(25_000));
    assert_eq!(
        (&*spec.plan_prompt.written(), &*spec.finalize_prompt.written()),
        ("Plan 2026-02-26.", "Write.")
    );
    let workers: Vec<(&str, &str, Value, Option<&str>)> = spec
        .workers
        .iter()
        .map(|worker| {
            let flag = worker.flag.as_ref().map(|flag| flag.as_str());
            (worker.name.as_str(), &*worker.description, worker.args.clone().into(), flag)
        })
        .collect();
    assert_eq!(
        workers,
        [
            ("seller", "Sells on 2026-02-26", json!({ "day": "YYYY-MM-DD" }), None),
            ("keeper", "Keeps", json!({ "sku": "SKU" }), Some("stock")),
        ]
    );
    let sections: Vec<(&str, &str)> =
        spec.sections.iter().map(|it| (it.name.as_str(), it.worker.as_str())).collect();
    assert_eq!(sections, [("sales", "seller"), ("stock", "keeper")]);
    assert_eq!((spec.level.name.as_str(), spec.level.otherwise.as_str()), ("health", "green"));
    assert_eq!(spec.level.rules[0].level, "red");
    let steps: Vec<_> = scenario.script.rows.iter().map(|row| row.step).collect();
    assert_eq!(
        steps,
        [Some(ScriptStep::Plan), Some(ScriptStep::Finalize), Some(ScriptStep::Finalize)]
    );
    // A plan is no contribution: it is not signed.
    assert_eq!(&*scenario.script.rows[0].reply_for(None), r#"{"kind":"plan","tasks":[]}"#);
}

#[test]
fn worker_defaults_to_source_policy() {
    let scenario = read(PLAN, &["budget.max_retries_per_task=2"]);
    let own = CallPolicy {
        timeout: None,
        max_attempts: 3,
        backoff: [].into(),
        jitter: false,
        idempotent: true,
        retry_on: RetryOn::Timeout,
        retry_budget: None,
        breaker: None,
        bulkhead: None,
        rate: None,
        safe_mode: SafeMode::OFF,
    };
    assert_eq!(tool(&scenario, "seller").policy, own);
    // A table replaces all of it with section 5's.
    let table = CallPolicy {
        timeout: Some(ms(1_500)),
        safe_mode: SafeMode { enabled: true, ..SafeMode::OFF },
        ..CallPolicy::default()
    };
    assert_eq!(tool(&scenario, "keeper").policy, table);
    assert!(!tool(&scenario, "keeper").shared);
}

#[test]
fn reads_worker_fixture_templates() {
    let scenario = read(PLAN, &[]);
    let seller = tool(&scenario, "seller");
    assert_eq!(
        seller.contract.required,
        [("sold".to_owned(), FieldKind::Number), ("by".to_owned(), FieldKind::Any)]
    );
    let Some(ToolKind::Fixture(fixture)) = &seller.kind else { panic!("a fixture") };
    let [row, raw] = &fixture.rows[..] else { panic!("two rows") };
    assert_eq!(Value::Object(row.args.clone()), json!({ "day": "2026-02-26" }));
    assert_eq!((row.attempt, row.latency), (Some(1), Latency { min: ms(400), max: ms(400) }));
    let status = ScriptFaultKind::Status { status: 503, retry_after: None };
    assert_eq!(row.fault, Some(ScriptFault::new(status, 1)));
    // An input without text around it keeps its type.
    let FixtureAnswer::Value(value) = &row.answer else { panic!("a value") };
    assert_eq!(**value, json!({ "sold": 3, "by": "2026-02-26!" }));
    assert!(matches!(&raw.answer, FixtureAnswer::Raw(text) if &**text == "[1"));
    let Some(ToolKind::Http(http)) = &tool(&scenario, "keeper").kind else { panic!("http") };
    assert_eq!(
        (http.method, http.pointer.as_str(), http.max_bytes),
        (HttpMethod::Get, "/data", 1_000_000)
    );
    assert_eq!(http.url, "https://stock.example/v1/{sku}?r={sku}");
    assert_eq!(http.headers["Authorization"], Setting::Env("STOCK_KEY".to_owned()));
    assert_eq!(http.headers["Accept"], Setting::Text("text/json".to_owned()));
    assert!(!http.send_args && !http.allow_private);
}

#[test]
fn reads_old_breaker_mode_word() {
    let (new, old) = (read(STORM, &[]), read(&STORM.replace("two_state", "source"), &[]));
    assert_eq!(tool(&old, "vendor").policy, tool(&new, "vendor").policy);
}

#[test]
fn reads_storm_tools_faults_and_alerts() {
    let scenario = read(STORM, &[]);
    let PatternSpec::Resilience(spec) = &scenario.pattern else { panic!("a storm") };
    assert_eq!((spec.agents, spec.turns, spec.pool, spec.guarded), (4, 2, 3, true));
    assert_eq!(spec.pace, Latency { min: ms(50), max: ms(150) });
    assert_eq!(spec.max_seconds, ms(60_000));
    let steps: Vec<&str> = spec.steps.iter().map(|step| step.as_str()).collect();
    assert_eq!(steps, ["vendor", "own"]);
    assert_eq!(spec.naive, Naive { client_retries: 2, tool_retries: 2, agent_retries: 3 });
    let vendor = tool(&scenario, "vendor");
    let policy = CallPolicy {
        timeout: Some(ms(2_000)),
        max_attempts: 3,
        backoff: [ms(10)].into(),
        jitter: false,
        idempotent: false,
        retry_on: RetryOn::Transient,
        retry_budget: Some(RetryBudgetLimits { ratio_percent: 20, min: 1 }),
        breaker: Some(BreakerLimits {
            fail_threshold: 2,
            open_for: ms(4_000),
            probe_permits: 2,
            mode: BreakerMode::TwoState,
            counts: BreakerCounts::Calls,
            window: None,
        }),
        bulkhead: Some(BulkheadLimits { max_in_flight: 5, max_wait: Some(ms(20)) }),
        rate: None,
        safe_mode: SafeMode {
            enabled: true,
            allow_partial: false,
            cache_ttl: Some(ms(300_000)),
            fallback: Some(json!({ "name": "x" }).into()),
        },
    };
    assert_eq!(vendor.policy, policy);
    assert!(vendor.shared);
    let faults = [
        InjectedFault::Latency { ms: 20 },
        InjectedFault::Errors { percent: 30, status: 503, times: None },
        InjectedFault::Hang,
    ];
    assert_eq!(vendor.faults, faults);
    let Some(ToolKind::Fixture(fixture)) = &vendor.kind else { panic!("a fixture") };
    let load = fixture.load.map(|it| (it.capacity, it.flaky_rate, it.flaky_from, it.flaky_until));
    assert_eq!(load, Some((9, 0.5, ms(2_000), ms(8_000))));
    let own = tool(&scenario, "own");
    assert_eq!((own.policy.breaker, own.policy.bulkhead), (None, None));
    assert!(!own.policy.safe_mode.enabled);
    let Some(ToolKind::Command(command)) = &own.kind else { panic!("a program") };
    assert_eq!(
        (command.program.as_str(), &command.args[..]),
        ("sh", &["-c", "cat"].map(str::to_owned)[..])
    );
    assert_eq!(command.env["PATH"], Setting::Env("PATH".to_owned()));
    // The model's calls stand in line, those of tools do not.
    let line = BulkheadLimits { max_in_flight: 2, max_wait: None };
    assert_eq!(
        (scenario.llm.bulkhead, &scenario.llm_faults[..]),
        (Some(line), &[InjectedFault::Reset][..])
    );
    assert_eq!(scenario.llm.safe_mode, SafeMode::OFF);
    let alerts = scenario.alerts;
    assert_eq!(
        (alerts.breaker_opens_per_minute, alerts.error_rate, alerts.p95_ms),
        (None, Some(0.2), Some(900))
    );
}

/// The windows that a breaker's table in the storm gives.
#[test]
fn window_has_defaults() {
    let whole = WindowLimits {
        kind: WindowKind::Count,
        size: 20,
        min_calls: 10,
        failure_rate: Rate::from_share(0.5),
        slow_call_ms: None,
        slow_rate: Rate::ALL,
    };
    let slow = WindowLimits {
        kind: WindowKind::Time,
        size: 60,
        min_calls: 30,
        failure_rate: Rate::from_share(0.25),
        slow_call_ms: Some(700),
        slow_rate: Rate::from_share(0.6),
    };
    let table = [
        ("window = \"count\", size = 20", whole),
        ("window = \"count\", size = 4", WindowLimits { size: 4, min_calls: 4, ..whole }),
        (
            "window = \"time\", size = 60, min_calls = 30, failure_rate = 0.25, slow_call_ms = 700, slow_rate = 0.6",
            slow,
        ),
    ];
    for (keys, window) in table {
        let text = STORM.replace(IN_A_ROW, &format!("{keys}, open_for_s = 4"));
        let breaker = tool(&read(&text, &[]), "vendor").policy.breaker.expect("a breaker");
        assert_eq!(breaker.window, Some(window), "{keys}");
        assert_eq!(breaker.open_for, ms(4_000));
    }
    assert_eq!(tool(&read(STORM, &[]), "vendor").policy.breaker.and_then(|it| it.window), None);
}

/// The keys of the storm's breaker that have no effect with a window.
const IN_A_ROW: &str =
    "fail_threshold = 2, open_for_s = 4, probe_permits = 2, mode = \"two_state\"";

#[test]
fn a_window_without_effect_is_refused() {
    let count = "window = \"count\", size = 20";
    let table = [
        (
            "size = 20",
            "size: `size` has no effect without a window (add window = \"count\" or \"time\")",
        ),
        (
            "slow_rate = 0.5",
            "slow_rate: `slow_rate` has no effect without a window (add window = \"count\" or \"time\")",
        ),
        (
            "window = \"counts\", size = 20",
            "window: `counts` is not allowed here (did you mean `count`?)",
        ),
        ("window = \"count\"", "size: `size` is missing (size = 20)"),
        ("window = \"count\", size = 0", "size: 0 is out of range (1 to 3600)"),
        ("window = \"time\", size = 3601", "size: 3601 is out of range (1 to 3600)"),
        (
            "window = \"count\", size = 5, min_calls = 6",
            "min_calls: 6 is more than the 5 calls of the window (such a breaker never opens)",
        ),
        (&format!("{count}, failure_rate = 0"), "failure_rate: 0 is out of range (0.01 to 1)"),
        (
            &format!("{count}, fail_threshold = 5"),
            "fail_threshold: `fail_threshold` has no effect with a window (remove it, or remove window to count failures in a row)",
        ),
        (
            &format!("{count}, mode = \"two_state\""),
            "mode: a breaker with a window needs probes (remove mode, or window)",
        ),
        (
            &format!("{count}, slow_rate = 0.5"),
            "slow_rate: `slow_rate` has no effect without slow_call_ms (slow_call_ms = 1000)",
        ),
        (
            &format!("{count}, slow_call_ms = 2000"),
            "slow_call_ms: no attempt takes that long: its timeout ends it (less than 2000 ms, or a longer timeout_s)",
        ),
    ];
    for (keys, expected) in table {
        let text = STORM.replace(IN_A_ROW, keys);
        let told = told(&text, &[]);
        let [told] = &told[..] else { panic!("{keys}: {told:#?}") };
        assert!(told.starts_with("20:"), "{told}");
        let (_, told) = told.split_once("error: tools.vendor.breaker.").unwrap_or(("", told));
        assert_eq!(told, expected, "{keys}");
    }
}

#[test]
fn guards_switch_by_input_or_directly() {
    for (set, guarded) in [
        (&["inputs.guarded=false"][..], false),
        (&["resilience.guarded=false"], false),
        (&["inputs.guarded=false", "resilience.guarded=true"], true),
    ] {
        let PatternSpec::Resilience(spec) = read(STORM, set).pattern else { panic!("a storm") };
        assert_eq!(spec.guarded, guarded, "{set:?}");
    }
}

#[test]
fn foreign_pattern_keys_name_their_pattern() {
    judge(
        PLAN,
        r#"
- max_parallel = 2
+ max_rounds = 2
9:1: error: budget.max_rounds: `max_rounds` belongs to the pattern collaboration (this scenario has pattern = "orchestrator")

- [orchestrator.level]
+ [roles.ann]
+ [collaboration]
+ [orchestrator.level]
15:2: error: roles: `roles` belongs to the pattern collaboration (this scenario has pattern = "orchestrator")
16:2: error: collaboration: `collaboration` belongs to the pattern collaboration (this scenario has pattern = "orchestrator")

- pattern = "orchestrator"
+ pattern = "resilience"
1:1: error: resilience.agents: `agents` is missing (Number of concurrent agents.)
1:1: error: resilience.turns: `turns` is missing (How often each agent repeats its steps.)
1:1: error: resilience.steps: `steps` is missing (The tools that an agent calls in one turn, in order.)
1:1: error: resilience.pool: `pool` is missing (Number of call slots that all agents share.)
9:1: error: budget.max_parallel: `max_parallel` belongs to the pattern orchestrator (this scenario has pattern = "resilience")
10:2: error: orchestrator: `orchestrator` belongs to the pattern orchestrator (this scenario has pattern = "resilience")
19:2: error: workers: `workers` belongs to the pattern orchestrator (this scenario has pattern = "resilience")
39:8: warning: tools.keeper: `keeper` is never called (it is not in resilience.steps)
41:1: error: script: the pattern resilience does not call the model (remove [[script]])

- step = "plan"
-
41:1: error: script[0]: `step` is missing: an orchestrator has no roles (step = "plan" or step = "finalize")

- step = "plan"
+ step = "plan"
+ role = "ann"
+ round = 1
43:8: error: script[0].role: a step of the pattern is not a role's turn (remove `role` or `step`)
44:9: error: script[0].round: the step plan belongs to no round (remove `round`)
"#,
    );
    judge(
        STORM,
        r#"
- [resilience]
+ [budget]
+ max_parallel = 2
+ [resilience]
8:1: error: budget.max_parallel: `max_parallel` belongs to the pattern orchestrator (this scenario has pattern = "resilience")

- [alerts]
+ [[script]]
+ text = "x"
+ [alerts]
35:1: error: script: the pattern resilience does not call the model (remove [[script]])

- pattern = "resilience"
+ pattern = "collaboration"
1:1: error: collaboration.sequence: `sequence` is missing (The roles in speaking order; each entry is a seat.)
1:1: error: collaboration.finalize_prompt: `finalize_prompt` is missing (System prompt of the launch brief at the end.)
7:2: error: resilience: `resilience` belongs to the pattern resilience (this scenario has pattern = "collaboration")
14:8: warning: tools.vendor: `vendor` is never called (a collaboration calls only llm)
27:8: warning: tools.own: `own` is never called (a collaboration calls only llm)
"#,
    );
}

#[test]
fn orchestrator_parts_must_match() {
    judge(
        PLAN,
        r#"
- max_parallel = 2
+ max_parallel = 0
9:16: error: budget.max_parallel: 0 is out of range (1 to 1024)

- max_parallel = 2
+ max_retries_per_task = -1
9:24: error: budget.max_retries_per_task: -1 is out of range (0 to 19)

- plan_prompt = "Plan {{day}}."
-
10:1: error: orchestrator.plan_prompt: `plan_prompt` is missing (System prompt of the planner; the required reply format is appended. `{{input}}` is filled in.)

- echo = ["day"]
+ echo = ["dya"]
13:9: error: orchestrator.echo[0]: `dya` is not an input of this scenario (did you mean `day`?)

- stock = "keeper"
+ stock = "keepr"
14:40: error: orchestrator.sections.stock: `keepr` is not a worker of this scenario (did you mean `keeper`?)

- sales = "seller"
+ inputs = "seller", day = "seller", list = "seller"
14:14: error: orchestrator.sections.inputs: `inputs` is reserved in conditions (choose another name)
14:33: error: orchestrator.sections.day: `day` is already an input in orchestrator.echo (choose another name)
14:49: error: orchestrator.sections.list: `list` is reserved in conditions (choose another name)

- name = "health"
+ name = "sales"
16:8: error: orchestrator.level.name: the aggregate already has a field `sales` (choose another name)

- name = "health"
-
15:1: error: orchestrator.level.name: `name` is missing (Its name in the aggregate, such as health.)

- [orchestrator.level]
- name = "health"
- otherwise = "green"
- rules = [{ level = "red", when = "has(stock.out) && truthy(stock.out)" }]
-
10:1: error: orchestrator.level: `level` is missing (The level of the aggregate: [orchestrator.level] with name = "health" and otherwise = "green", or other words.)

- truthy(stock.out)
+ truthy(stok.out)
18:60: error: orchestrator.level.rules[0].when: `stok` is not available in this condition (did you mean `stock`?)

- truthy(stock.out)
+ inputs.size > 2
18:53: error: orchestrator.level.rules[0].when: `size` is not in orchestrator.echo (rules see only the inputs in orchestrator.echo: add it there)

- truthy(stock.out)
+ truthy(
18:60: error: orchestrator.level.rules[0].when: not a condition: it ends too early (write a CEL condition such as facts.alerts >= 3 && inputs.region == 'EU')

- flag = "stock"
+ flag = "stok"
34:8: error: workers.keeper.flag: `stok` is not a flag of this scenario (did you mean `stock`?)

- aggregate.health == 'red'
+ final_decision == 'go'
46:9: error: script[1].when: `final_decision` is not available in this condition (one of facts, inputs, goal, attempt, flags, aggregate, results)

- step = "plan"
+ step = "plan"
+ when = "max_taks > 2"
43:9: error: script[0].when: `max_taks` is not available in this condition (did you mean `max_tasks`?)

- [[script]]
- step = "plan"
- reply = { kind = "plan", tasks = [] }
-
11:15: warning: orchestrator.plan_prompt: there is no scripted plan for offline runs (add a row in [[script]] with step = "plan")
"#,
    );
}

#[test]
fn worker_needs_exactly_one_implementation() {
    judge(
        PLAN,
        r#"
- [workers.keeper.http]
+ [workers.keeper.command]
+ program = "x"
+ [workers.keeper.http]
35:1: error: workers.keeper: the tool has two implementations (keep one of fixture, http, command and mcp)

- [tools.keeper]
+ [tools.keeper]
+ command = { program = "x" }
40:11: error: tools.keeper: `workers.keeper` already has an implementation (remove one of the two)

- [tools.keeper]
+ [tools.keper]
35:1: warning: workers.keeper.http: only timeouts of this worker are retried, as in the source document (add [tools.keeper] with retries = { max_attempts = 2 })
39:8: warning: tools.keper: `keper` is never called (did you mean `keeper`?)

- [workers.keeper]
+ [workers.llm]
+ description = "x"
+ [workers.keeper]
31:10: error: workers.llm: `llm` is reserved for calls of the model (choose another name)

- raw = "[1"
+ raw = "[1"
+ result = {}
29:1: error: workers.seller.fixture.rows[1]: the row has two results (write one of `result` and `raw`)

- raw = "[1"
+ latency = "1s"
29:1: error: workers.seller.fixture.rows[1]: the row has no result (write one of `result` and `raw`)

- raw = "[1"
+ raw = "[1"
+ [[workers.seller.fixture.rows]]
+ result = {}
31:1: warning: workers.seller.fixture.rows[2]: this row can never be used (rows[1] comes first and matches every call of this row)

- attempt = 1
+ attempt = 3
25:11: warning: workers.seller.fixture.rows[0]: this row can never be used (budget.max_retries_per_task is 1)

- fault = { status = 503, times = 1 }
+ fault = {}
27:9: error: workers.seller.fixture.rows[0].fault: the fault has no status and no kind (write status = 503, or kind = "hang")

- "{{day}}!"
+ "{{dya}}!"
28:37: error: workers.seller.fixture.rows[0].result: `{{dya}}` is not an input (did you mean `day`?)

- sold = "number"
+ sold = "numbr"
22:21: error: workers.seller.contract.sold: `numbr` is not allowed here (did you mean `number`?)

- https://stock.example
+ stock.example
36:7: error: workers.keeper.http.url: "stock.example/v1/{sku}?r={sku}" is not a URL (begin it with http:// or https://)

- https://stock.example/v1/
+ https://{sku}.example/v1/
36:16: error: workers.keeper.http.url: an argument cannot choose the host (a model chooses the arguments: use them in the path or after it)

- {sku}?
+ {sky}?
36:33: error: workers.keeper.http.url: `{sky}` is not an argument of this worker (did you mean `sku`?)

- ?r={sku}
+ ?r={sku
36:41: error: workers.keeper.http.url: `{` is not closed (`{name}` is replaced by the argument of that name)

- pointer = "/data"
+ pointer = "data"
38:11: error: workers.keeper.http.pointer: "data" is not a JSON pointer (write one such as /data/0)

- Accept = "text/json"
+ "Ac cept" = "a\nb"
37:52: error: workers.keeper.http.headers.Ac cept: `Ac cept` is not a valid name (write a header such as Authorization or X-Api-Key)
37:64: error: workers.keeper.http.headers.Ac cept: a header is one line without control characters

- { env = "STOCK_KEY" }
+ { evn = "STOCK_KEY" }
37:29: error: workers.keeper.http.headers.Authorization.env: `env` is missing (The name of the variable.)
37:31: error: workers.keeper.http.headers.Authorization.evn: unknown key `evn` (did you mean `env`?)
"#,
    );
}

#[test]
fn validates_policies_faults_and_storms() {
    judge(
        STORM,
        r#"
- steps = ["vendor", "own"]
+ steps = ["vendr", "own"]
10:10: error: resilience.steps[0]: `vendr` is not a tool of this scenario (did you mean `vendor`?)
14:8: warning: tools.vendor: `vendor` is never called (it is not in resilience.steps)

- guarded = "{{guarded}}"
+ guarded = "{{name}}"
13:11: error: resilience.guarded: this is not a boolean (write true, false, or "{{input}}" with a boolean input)

- guarded = "{{guarded}}"
+ guarded = "{{guard}}"
13:12: error: resilience.guarded: `{{guard}}` is not an input (did you mean `guarded`?)

- guarded = "{{guarded}}"
+ guarded = 1
13:11: error: resilience.guarded: expected true, false, or "{{input}}", found the number 1

- agents = 4
-
7:1: error: resilience.agents: `agents` is missing (Number of concurrent agents.)

- mode = "two_state"
+ mode = "two_states"
20:75: error: tools.vendor.breaker.mode: `two_states` is not allowed here (did you mean `two_state`?)

- "latency", ms = 20
+ "latency", ms = 20, status = 500
23:49: error: tools.vendor.faults[0].status: this kind of fault has no `status` (it takes ms)

- { kind = "hang" }
+ { kind = "hang", ms = 1 }
23:99: error: tools.vendor.faults[2].ms: this kind of fault has no `ms` (it has no settings)

- { kind = "latency", ms = 20 }
+ { kind = "latency" }
23:11: error: tools.vendor.faults[0].ms: `ms` is missing (ms = 2000)

- { kind = "hang" }
+ { kind = "latency", ms = 1 }
23:77: error: tools.vendor.faults[2]: there is already a fault `latency` (use each kind once)

- percent = 30
+ percent = 0
23:71: error: tools.vendor.faults[1].percent: 0 is out of range (1 to 100)

- flaky_until = "8s"
+ flaky_until = "1s"
25:75: error: tools.vendor.fixture.load.flaky_until: the flaky time ends before it begins (set it later than flaky_from)

- flaky_rate = 0.5
+ flaky_rate = 1.5
25:37: error: tools.vendor.fixture.load.flaky_rate: 1.5 is out of range (0 to 1)

- flaky_from = "2s"
+ flaky_from = true
25:55: error: tools.vendor.fixture.load.flaky_from: expected a number from 0 to 3600, found true

- rows = [{ result = {} }]
+ rows = []
26:8: error: tools.vendor.fixture.rows: the list is empty (at least 1)

- {{name}}
+ {{nam}}
22:78: error: tools.vendor.safe_mode.fallback: `{{nam}}` is not an input (did you mean `name`?)

- command = {
+ hidden = {
31:1: error: tools.own.hidden: unknown key `hidden` (one of description, args, timeout_s, retries, idempotent, approve, effects, retry_budget, breaker, bulkhead, rate, safe_mode, shared, faults, fixture, http, … (21 in all))

- bulkhead = { max_in_flight = 2 }
+ safe_mode = {}
33:1: error: tools.llm.safe_mode: unknown key `safe_mode` (one of timeout_s, retries, idempotent, retry_budget, breaker, bulkhead, rate, faults)

- error_rate = 0.2
+ error_rate = 2
36:14: error: alerts.error_rate: 2 is out of range (0 to 1)
"#,
    );
}
