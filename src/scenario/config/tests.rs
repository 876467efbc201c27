use super::{ConfiguredTheme, *};

fn lines(text: &str) -> Vec<String> {
    let problems = check_config("config.toml", text).problems;
    problems.iter().map(|problem| problems.line(problem)).collect()
}

const WHOLE: &str = r#"
[model]
name = "anthropic/claude-haiku-4-5"
temperature = 0.2
max_tokens = 800
reasoning_effort = " low "
json = "json_object"
extra = { seed = 7, user = "me" }
timeout_s = 30

[prices."openai/gpt-4.1-mini"]
input = 0.5
output = 2
cached = 0.1
cache_write = 0.6
[prices."llama3.2"]
input = 0
output = 0

[ui]
theme = "light"
ascii = true
animation = false
title = false
notify = "osc9"

[store]
keep = false
keep_runs = 20
keep_days = 7
keep_bytes = 5_000_000

[keys]
step = "x"
flags = ["f", "ctrl-f"]
kill = []

[cluster]
url = " nats://a, nats://b "
namespace = "team-a"
credentials = "/etc/rt.creds"
tls_ca = "/etc/ca.pem"
tls_cert = "/etc/cert.pem"
tls_key = "/etc/key.pem"
monitor = "http://a:8222"
"#;

#[test]
fn a_whole_file_is_read() {
    let checked = check_config("config.toml", WHOLE);
    assert!(checked.problems.is_empty(), "{}", checked.problems);
    let UserConfig { model, prices, ui, store, keys, cluster } = checked.config;
    assert_eq!(model.name.as_deref(), Some("anthropic/claude-haiku-4-5"));
    assert_eq!(model.timeout, Some(Duration::from_secs(30)));
    assert_eq!((model.tuning.temperature, model.tuning.max_tokens), (Some(0.2), Some(800)));
    assert_eq!(model.tuning.reasoning_effort.as_deref(), Some("low"));
    assert_eq!(model.tuning.json, Some(JsonMode::JsonObject));
    assert_eq!(model.tuning.extra["seed"], 7);
    let dear = Price { input: 0.5, output: 2.0, cached: Some(0.1), cache_write: Some(0.6) };
    let named = |model: &str, price| ConfiguredPrice { model: model.to_owned(), price };
    assert_eq!(
        prices,
        [named("openai/gpt-4.1-mini", dear), named("llama3.2", Price::new(0.0, 0.0))]
    );
    let theme = ConfiguredTheme { name: "light".into(), place: "config.toml:21:9".into() };
    let told =
        UiDefaults { title: Some(false), notify: Some(NotifyBy::Osc9), ..UiDefaults::default() };
    let shown =
        UiDefaults { theme: Some(theme), ascii: Some(true), animation: Some(false), ..told };
    assert_eq!(ui, shown);
    let kept = StoreDefaults { keep: false, keep_runs: 20, keep_days: 7, keep_bytes: 5_000_000 };
    assert_eq!(store, kept);
    let file = |path: &str| Some(PathBuf::from(path));
    let known = ClusterDefaults {
        url: Some("nats://a, nats://b".to_owned()),
        namespace: Some("team-a".to_owned()),
        credentials: file("/etc/rt.creds"),
        tls_ca: file("/etc/ca.pem"),
        tls_cert: file("/etc/cert.pem"),
        tls_key: file("/etc/key.pem"),
        monitor: Some("http://a:8222".to_owned()),
    };
    assert_eq!(cluster, known);
    let key = |text: &str, place: &str| ConfiguredKey {
        text: text.to_owned(),
        place: format!("config.toml:{place}"),
    };
    let of = |action: &str, line, keys| ConfiguredKeys {
        action: action.to_owned(),
        place: format!("config.toml:{line}:1"),
        line,
        keys,
    };
    assert_eq!(
        keys,
        [
            of("step", 34, vec![key("x", "34:8")]),
            of("flags", 35, vec![key("f", "35:10"), key("ctrl-f", "35:15")]),
            of("kill", 36, Vec::new()),
        ]
    );
}

#[test]
fn an_empty_file_says_nothing() {
    for text in ["", "# nothing yet\n", "[model]\n[prices]\n[ui]\n[store]\n[cluster]\n"] {
        let checked = check_config("config.toml", text);
        assert!(checked.problems.is_empty(), "{text}: {}", checked.problems);
        assert_eq!(checked.config, UserConfig::default(), "{text}");
    }
}

#[test]
fn reports_all_errors_with_places() {
    let text = "[model]\ntemperature = 3\nmax_tokens = \"many\"\njson = \"yaml\"\nextra = { model = \"x\" }\n\
                timeout_s = 0\n[prices.x]\ninput = -1\n[ui]\nascii = \"yes\"\n";
    assert_eq!(check_config("config.toml", text).problems.warnings(), 0);
    let found = lines(text);
    let expected = [
        "config.toml:2:15: error: model.temperature: 3 is out of range (0 to 2)",
        "config.toml:3:14: error: model.max_tokens: expected a whole number from 1 to 10000000, found the string \"many\"",
        "config.toml:4:8: error: model.json: `yaml` is not allowed here (one of json_schema, json_object, text)",
        "config.toml:5:19: error: model.extra: `model` cannot be set here (other keys of the scenario set it)",
        "config.toml:6:13: error: model.timeout_s: 0 is out of range (0.001 to 86400)",
        "config.toml:7:1: error: prices.x.output: `output` is missing (Tokens of the reply.)",
        "config.toml:8:9: error: prices.x.input: -1 is out of range (0 to 1000000)",
        "config.toml:10:9: error: ui.ascii: expected true or false, found the string \"yes\"",
    ];
    assert_eq!(found, expected);
}

#[test]
fn invalid_toml_is_only_error() {
    let found = lines("[model]\nname = \nspeed = 3\n");
    assert_eq!(found, ["config.toml:2:8: error: not TOML: a value is missing"]);
}

#[test]
fn unknown_key_warns_with_suggestion() {
    for (text, said) in [
        (
            "[model]\ntemprature = 1",
            "model.temprature: unknown key `temprature` (did you mean `temperature`?)",
        ),
        (
            "[model]\nmax_token = 1",
            "model.max_token: unknown key `max_token` (did you mean `max_tokens`?)",
        ),
        (
            "temperature = 1",
            "temperature: unknown key `temperature` (did you mean `model.temperature`?)",
        ),
        ("[model]\ntheme = 'x'", "model.theme: unknown key `theme` (did you mean `ui.theme`?)"),
        (
            "[team]\nx = 1",
            "team: unknown key `team` (one of model, prices, ui, store, keys, cluster)",
        ),
        (
            "[prices.x]\ninput = 1\noutput = 1\ncache = 1",
            "prices.x.cache: unknown key `cache` (did you mean `cached`?)",
        ),
    ] {
        let checked = check_config("config.toml", text);
        assert_eq!(checked.problems.errors(), 0, "{text}");
        let found = lines(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with(&format!(": warning: {said}")), "{found:?}");
    }
}

#[test]
fn misplaced_secret_gets_place_stays_hidden() {
    for (key, place) in [
        ("api_key", "OPENAI_API_KEY"),
        ("openai_api_key", "remove it here"),
        ("token", "in the environment"),
        ("base_url", "OPENAI_BASE_URL"),
        ("ANTHROPIC_BASE_URL", "next to its key"),
    ] {
        for table in ["", "[model]\n"] {
            let text = format!("{table}{key} = \"hidden-value\"\n");
            assert_eq!(check_config("config.toml", &text).problems.errors(), 0);
            let found = lines(&text);
            assert!(found[0].contains("warning") && found[0].contains(place), "{found:?}");
            assert!(!found.concat().contains("hidden-value"), "{found:?}");
        }
    }
}

#[test]
fn scenario_overrides_defaults_by_key() {
    let defaults = check_config("config.toml", WHOLE).config.model;
    let scenario = Tuning {
        temperature: Some(1.0),
        extra: [("seed".to_owned(), 1.into())].into_iter().collect(),
        ..Tuning::default()
    };
    let filled = defaults.fill(&scenario);
    assert_eq!((filled.temperature, filled.max_tokens), (Some(1.0), Some(800)));
    assert_eq!(filled.reasoning_effort.as_deref(), Some("low"));
    assert_eq!((&filled.extra["seed"], &filled.extra["user"]), (&1.into(), &"me".into()));
    assert_eq!(ModelDefaults::default().fill(&scenario), scenario, "nothing is added by nothing");
}
