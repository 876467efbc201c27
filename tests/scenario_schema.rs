//! The JSON schema says of the shipped files what the reader says of them.
use boon::{Compiler, SchemaIndex, Schemas};
use roundtable::scenario::{Origin, check, schema, shipped};
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
        let value: Value = serde_json::to_value(value).map_err(|error| error.to_string())?;
        self.schemas.validate(&value, self.index).map_err(|error| format!("{error:#}"))
    }
}

#[test]
fn every_shipped_scenario_is_valid() {
    let schema = Schema::new();
    for shipped in shipped() {
        assert_eq!(schema.accepts(shipped.text), Ok(()), "{}", shipped.path);
    }
}

/// What can be judged field by field, the schema and the reader judge alike.
#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let schema = Schema::new();
    let good = shipped().iter().find(|one| one.name == "checkout-unanimous").expect("shipped").text;
    for (from, to) in [
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
        ("[collaboration]", "[collaboration]\nescalate_after_blocks = 2"),
        ("[collaboration]", "[collaboration]\nconcurrency = \"both\""),
        ("[roles.demand_analyst]\nprompt", "[roles.demand_analyst]\npromt"),
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
    ] {
        assert!(good.contains(from), "{from}");
        let bad = good.replacen(from, to, 1);
        assert!(schema.accepts(&bad).is_err(), "the schema takes {to}");
        let problems = check(&bad, Origin::File("x.toml".into()), &[]).problems;
        assert!(problems.errors() > 0, "the reader takes {to}");
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
