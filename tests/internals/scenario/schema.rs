//! The JSON schema says of the shipped files what the reader says of them.
use crate::scenario::{ScenarioOrigin, check, schema, shipped};
use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

struct Schema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Schema {
    fn new() -> Self {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("schema.json", schema()).expect("a resource");
        let index = compiler.compile("schema.json", &mut schemas).expect("a JSON schema");
        Self { schemas, index }
    }

    fn accepts(&self, text: &str) -> Result<(), String> {
        let value: toml::Value = toml::from_str(text).map_err(|error| error.to_string())?;
        self.accepts_value(&serde_json::to_value(value).map_err(|error| error.to_string())?)
    }

    fn accepts_value(&self, value: &Value) -> Result<(), String> {
        self.schemas.validate(value, self.index).map_err(|error| format!("{error:#}"))
    }
}

#[test]
fn every_shipped_scenario_is_valid() {
    let schema = Schema::new();
    for shipped in shipped() {
        assert_eq!(schema.accepts(shipped.text), Ok(()), "{}", shipped.path);
    }
}

/// Each change of a shipped file is refused by the schema and by the reader.
#[track_caller]
fn both_refuse(name: &str, changes: &[(&str, &str)]) {
    let schema = Schema::new();
    let good = shipped().iter().find(|one| one.name == name).expect("shipped").text;
    for (from, to) in changes {
        assert!(good.contains(from), "{from}");
        let bad = good.replacen(from, to, 1);
        assert!(schema.accepts(&bad).is_err(), "the schema takes {to}");
        let problems = check(&bad, ScenarioOrigin::File("x.toml".into()), &[]).problems;
        assert!(problems.errors() > 0, "the reader takes {to}");
    }
}

/// What can be judged field by field, the schema and the reader judge alike.
#[test]
fn schema_and_reader_refuse_alike() {
    both_refuse(
        "checkout-unanimous",
        &[
            ("max_rounds   = 3", "max_round = 3"),
            ("max_rounds   = 3", "max_rounds = 0"),
            ("max_rounds   = 3", "max_rounds = 3.5"),
            ("min_go_votes = 2", "min_go_votes = 65"),
            ("pattern = \"collaboration\"", "pattern = \"chat\""),
            ("pattern = \"collaboration\"", ""),
            ("kind = \"date\"", "kind = \"day\""),
            ("choices = [\"US\", \"EU\"]", "choices = []"),
            ("campaign    = {", "\"the campaign\" = {"),
            ("sequence        = [", "sequences = ["),
            ("\"finance_analyst\", \"risk_analyst\"]", "3]"),
            ("[collaboration]", "[collaboration]\non_no_decision = \"chair\""),
            ("[collaboration]", "[collaboration]\nconcurrency = \"both\""),
            ("[roles.demand_analyst]\nprompt", "[roles.demand_analyst]\npromt"),
            ("[roles.demand_analyst]", "[roles.demand_analyst]\nprompt_file = \"a.md\""),
            ("[roles.demand_analyst]\nprompt =", "[roles.demand_analyst]\nprompt_file ="),
            ("finalize_prompt =", "finalize_prompt_file ="),
            ("[roles.demand_analyst]", "[roles.demand_analyst]\nwhen_off = \"stop\""),
            ("latency = \"900ms..1.6s\"", "latency = \"1h\""),
            ("latency = \"900ms..1.6s\"", "fault = { times = 1 }"),
            ("latency = \"900ms..1.6s\"", "fault = { status = 503, kind = \"hang\" }"),
            ("latency = \"900ms..1.6s\"", "fault = { status = 99 }"),
            ("latency = \"900ms..1.6s\"", "raw = \"two answers\""),
            ("step    = \"finalize\"", "step = \"begin\""),
            ("[facts]", "[model]\nrepair = \"all\"\n[facts]"),
            ("[facts]", "[model.prices]\nprompt_usd_per_million = -1\n[facts]"),
            ("[facts]", "[tools.llm]\ntimeout_s = 0\n[facts]"),
            ("[facts]", "[tools.llm.retries]\nmax_attempts = 0\n[facts]"),
            ("[facts]", "[tools.http]\nurl = \"x\"\n[facts]"),
            ("[facts]", "[tools.http]\nbreaker = { mode = \"shut\" }\n[facts]"),
            ("[facts]", "[tools.http]\nfaults = [{ kind = \"latency\" }]\n[facts]"),
            ("[facts]", "[tools.http]\nfaults = [{ kind = \"hang\", ms = 1 }]\n[facts]"),
            ("[facts]", "[tools.llm]\nsafe_mode = {}\n[facts]"),
            ("[facts]", "[workers]\n[facts]"),
            ("[facts]", "[orchestrator]\n[facts]"),
            ("max_rounds   = 3", "max_tasks = 3"),
            ("[facts]", "[alerts]\nerror_rate = 1.5\n[facts]"),
        ],
    );
    both_refuse(
        "fraud-check",
        &[
            ("max_parallel         = 2", "max_parallel = 0"),
            ("max_parallel         = 2", "max_rounds = 2"),
            ("task_timeout_seconds = 2.5", "task_timeout_seconds = 0"),
            ("plan_prompt = ", "plan_promt = "),
            ("name      = \"health\"", ""),
            ("level = \"red\"", ""),
            ("description = \"Provides sales KPIs for a date and region\"", ""),
            ("[[workers.sales_worker.fixture.rows]]", "[[workers.sales_worker.fixture.row]]"),
            ("latency = \"1.2s\"", "raw = \"two answers\""),
            ("latency = \"1.2s\"", "fault = { status = 200 }"),
            ("suspicious_orders = \"number\"", "suspicious_orders = \"integer\""),
            (
                "[workers.fraud_worker.contract]",
                "[workers.fraud_worker.http]\nmethod = \"GET\"\n[workers.fraud_worker.contract]",
            ),
            (
                "[workers.fraud_worker.contract]",
                "[workers.fraud_worker.command]\nprogram = \"x\"\nenv = { \"A-B\" = \"x\" }\n[workers.fraud_worker.contract]",
            ),
            ("[model]", "[collaboration]\n[model]"),
            ("step    = \"plan\"", "step = \"report\""),
        ],
    );
    both_refuse(
        "vendor-brownout",
        &[
            ("turns   = 34", ""),
            ("pool    = 24", "pool = 0"),
            ("max_seconds = 180", "max_tasks = 180"),
            ("guarded = \"{{guarded}}\"", "guarded = \"perhaps\""),
            ("client_retries = 2", "client_retries = 21"),
            ("open_for_s = 3", "open_for_s = 0"),
            ("flaky_rate   = 0.8", "flaky_rate = 8"),
            ("flaky_from   = \"3s\"", "flaky_from = \"3h\""),
            ("capacity     = 8", ""),
            ("slow_rate = 0.6", "slow_rate = 0"),
            ("size = 20, ", ""),
            ("window = \"count\", ", ""),
            ("slow_call_ms = 700, ", ""),
            ("window = \"count\", ", "window = \"count\", fail_threshold = 5, "),
            ("allow_partial = true", "allow_partial = \"yes\""),
            ("p95_ms                   = 1500", "p95_ms = 0"),
        ],
    );
    both_refuse(
        "support-swarm",
        &[
            ("pattern = \"swarm\"", "pattern = \"team\""),
            ("[swarm]", "[team]\nroot = \"support\"\n[swarm]"),
            ("[swarm]", "[roles]\n[swarm]"),
            ("root       = \"support\"", ""),
            ("max_seconds = 60", "max_rounds = 3"),
            ("members                = [\"triage\", \"billing\", \"fraud\", \"refunds\"]", ""),
            ("[\"triage\", \"billing\", \"fraud\", \"refunds\"]", "[]"),
            ("\"fraud\", \"refunds\"]", "\"fraud\", \"fraud\"]"),
            ("\"fraud\", \"refunds\"]", "\"fraud\", \"\"]"),
            ("\"fraud\", \"refunds\"]", "\"fraud\", \"the refunds\"]"),
            ("entry                  = \"triage\"", "entry = \"\""),
            ("entry                  = \"triage\"", "entry = 3"),
            ("entry                  = \"triage\"", ""),
            ("cross_request_transfer = true", "cross_request_transfer = 1"),
            ("cross_request_transfer = true", "max_handoffs = -1"),
            ("cross_request_transfer = true", "node_timeout_s = -0.5"),
            ("cross_request_transfer = true", "instruction = \"Help.\""),
            ("cross_request_transfer = true", "parallel_tools = true"),
            ("[agents.billing]", "[agents.billing]\nmax_handoffs = 3"),
            ("[agents.billing]", "[agents.billing]\nmember_tools = {}"),
            ("[agents.billing]", "[agents.billing]\nmax_tool_rounds = 0"),
            ("description = \"Knows what was charged, when, and for what\"", ""),
            ("order = \"The order's number\"", "order = 3"),
            ("round   = 1", "turn = 0"),
            ("round   = 1", "message = 0"),
            ("calls   = [{ tool", "calls = [{ raw = \"x\", tool"),
            ("calls   = [{ tool = ", "calls = [{ name = "),
        ],
    );
    both_refuse(
        "dev-team",
        &[
            ("history_scope = \"parent_branch\"", "history_scope = \"all\""),
            ("inner_text    = \"include\"", "inner_text = \"some\""),
            ("parallel_tools = true", "parallel_tools = \"yes\""),
            ("parallel_tools = true", "repetitive_handoff_window = 8"),
            ("follow_ups = [", "follow_ups = [\"\", "),
        ],
    );
    both_refuse(
        "payments-incident",
        &[
            ("max_steps        = 8", "max_steps = 0"),
            ("max_urls         = 6", "max_urls = 6.5"),
            ("max_urls         = 6", "max_tasks = 6"),
            ("question = ", "questions = "),
            (
                "[\"official-status.example.com\", \"vendor.example.com\"]",
                "[\"https://vendor.example.com/\"]",
            ),
            ("[\"official-status.example.com\", \"vendor.example.com\"]", "[\"*.example.com\"]"),
            ("answer = \"model_when_live\"", "answer = \"modle\""),
            ("[research]", "[research]\nmisquotes = \"repair\""),
            ("[research]", "[research]\nmin_independent_sources = 0"),
            ("trust = 0.95", "trust = 1.95"),
            ("[sources.\"regulator.example.org\"]", "[sources.\"regulator.example.org/guidance\"]"),
            ("step    = \"notes\"", "step = \"note\""),
            ("[research]", "[roles]\n[research]"),
        ],
    );
}

/// What may be written in more than one way, the schema takes in each as the reader does.
#[test]
fn schema_and_reader_accept_alike() {
    let schema = Schema::new();
    for (name, from, to) in [
        ("checkout-unanimous", "latency = \"900ms..1.6s\"", "latency = 0.9"),
        ("checkout-unanimous", "[facts]", "[tools.llm]\ntimeout_s = \"2s\"\n[facts]"),
        ("checkout-unanimous", "[facts]", "[tools.llm]\ntimeout_s = 0.3\n[facts]"),
        (
            "checkout-unanimous",
            "[facts]",
            "[tools.llm]\nretries.backoff_ms = [\"0.5s\", 1]\nbulkhead.max_wait_ms = \"1s\"\n[facts]",
        ),
        ("checkout-unanimous", "[facts]", "[alerts]\np95_ms = \"2s\"\n[facts]"),
        ("vendor-brownout", "max_seconds = 180", "max_seconds = \"3m\""),
        ("vendor-brownout", "flaky_from   = \"3s\"", "flaky_from = 3"),
        ("vendor-brownout", "open_for_s = 3", "open_for_s = \"3s\""),
        ("support-swarm", "cross_request_transfer = true", "node_timeout_s = \"500ms\""),
        (
            "support-swarm",
            "[agents.billing]",
            "[tools.billing]\nsafe_mode.fallback = \"Later.\"\n[agents.billing]",
        ),
        ("payments-incident", "[\"official-status.example.com\", \"vendor.example.com\"]", "[]"),
    ] {
        let good = shipped().iter().find(|one| one.name == name).expect("shipped").text;
        assert!(good.contains(from), "{from}");
        let changed = good.replacen(from, to, 1);
        assert_eq!(schema.accepts(&changed), Ok(()), "{to}");
        let problems = check(&changed, ScenarioOrigin::File("x.toml".into()), &[]).problems;
        assert_eq!(problems.errors(), 0, "{to}: {problems}");
    }
}

/// Whether the file exists is for the reader to find; the form of its path is not.
#[test]
fn schema_requires_prompt_or_file() {
    let schema = Schema::new();
    for (name, table, key, is_needed) in [
        ("checkout-unanimous", "/collaboration", "finalize_prompt", true),
        ("checkout-unanimous", "/roles/demand_analyst", "prompt", true),
        ("fraud-check", "/orchestrator", "plan_prompt", true),
        ("front-desk", "/router", "prompt", true),
        ("dev-team", "/agents/dev_team", "instruction", false),
        ("payments-incident", "/research", "answer_prompt", false),
    ] {
        let good = shipped().iter().find(|one| one.name == name).expect("shipped").text;
        let good: Value = toml::from_str(good).expect("TOML");
        let with = |text: Option<&str>, file: Option<&str>| {
            let mut changed = good.clone();
            let table = changed.pointer_mut(table).and_then(Value::as_object_mut).expect(table);
            table.remove(key);
            table.extend(text.map(|text| (key.to_owned(), text.into())));
            table.extend(file.map(|file| (format!("{key}_file"), file.into())));
            schema.accepts_value(&changed).is_ok()
        };
        for file in ["a.md", "prompts/a b.md", "..a.md", "a/b../c"] {
            assert!(with(None, Some(file)), "{name}: {file}");
        }
        for file in ["", "/a.md", "..", "../a.md", "a/../b.md", "a\\b.md", "C:a.md"] {
            assert!(!with(None, Some(file)), "{name}: {file}");
        }
        assert!(with(Some("A prompt."), None) && !with(Some("A prompt."), Some("a.md")), "{name}");
        assert_eq!(with(None, None), !is_needed, "{name}");
    }
}

/// An editor shows these: no field is without a word, and what may be left out says what it is then.
#[test]
fn every_field_is_described() {
    fn walk(path: &str, schema: &Value, seen: &mut usize) {
        if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
            for (name, field) in fields {
                let path = format!("{path}.{name}");
                let about = field.get("description").and_then(Value::as_str).unwrap_or_default();
                assert!(about.ends_with('.'), "{path} is described as {about:?}");
                *seen += 1;
                walk(&path, field, seen);
            }
        }
        for inner in ["additionalProperties", "items"] {
            if let Some(inner) = schema.get(inner) {
                walk(path, inner, seen);
            }
        }
    }
    let mut seen = 0;
    walk("", &schema(), &mut seen);
    assert!(seen > 50, "{seen} fields");
    let budget = &schema()["properties"]["budget"]["properties"]["max_rounds"];
    assert_eq!(budget["default"], 3);
    assert_eq!((&budget["minimum"], &budget["maximum"]), (&1.into(), &1000.into()));
}
