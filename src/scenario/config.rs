//! The user's configuration file: defaults of live models, prices, the look of the dashboard, keys
//! of actions. It is read like a scenario, with all problems and their positions; an unknown key is
//! only a warning, so that a file for a newer version still works. The dashboard checks the names
//! of actions and keys.

use crate::base::worded;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::check::{Requests, tuning};
use super::read::amount::{Dollars, Number, Seconds};
use super::read::names::{NameRule, NamedEntries, NamedEntry};
use super::read::problem::Problems;
use super::read::shape::{
    FormatShape, FreeTable, IntegerField, NonBlankString, ObjectSchema, Positioned, Requirement,
    StringField, join_doc_lines, record, words,
};
use super::read::tree::{TomlNode, TomlValue};
use super::read::{
    ReadContext, UnknownKey, UnknownKeys, closest_name, read_document, suggest_name,
};
use super::rules::LimitsTable;
use super::spec::{JsonMode, Price, SpendingLimits, Tuning};
use super::telemetry::{TelemetryDefaults, TelemetryTable};
use super::tools::mcp::{McpServerSpec, McpTable, ServerName, build_server};

/// Maximum size of a configuration file, in bytes.
pub const MAX_CONFIG_BYTES: u64 = 256 * 1024;

/// The contents of a configuration file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserConfig {
    /// Defaults of live models.
    pub model: ModelDefaults,
    /// Prices that override the shipped table, in the file's order.
    pub prices: Vec<ConfiguredPrice>,
    /// How the dashboard looks.
    pub ui: UiDefaults,
    pub store: StoreDefaults,
    /// What all live and guarded runs may spend on a day.
    pub day: SpendingLimits,
    /// Keys of the dashboard's actions, in the file's order.
    pub keys: Vec<ConfiguredKeys>,
    /// The cluster whose runs are shown and played.
    pub cluster: ClusterDefaults,
    /// MCP servers for scenarios that name them, by name.
    pub mcp: BTreeMap<String, Arc<McpServerSpec>>,
    /// Where the spans of runs are sent.
    pub telemetry: TelemetryDefaults,
}

/// Defaults of live models. Each applies where a scenario does not set the key. A scripted run uses
/// none of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelDefaults {
    /// Name of the model, with or without its provider.
    pub name: Option<String>,
    /// Settings of requests.
    pub tuning: Tuning,
    /// Timeout of one attempt.
    pub timeout: Option<Duration>,
}

impl ModelDefaults {
    /// The settings of a scenario, with these as defaults. `extra` is merged key by key.
    pub fn fill(&self, scenario: &Tuning) -> Tuning {
        let own = &self.tuning;
        let mut extra = own.extra.clone();
        extra.extend(scenario.extra.clone());
        let effort = scenario.reasoning_effort.as_ref().or(own.reasoning_effort.as_ref());
        Tuning {
            temperature: scenario.temperature.or(own.temperature),
            max_tokens: scenario.max_tokens.or(own.max_tokens),
            reasoning_effort: effort.cloned(),
            json: scenario.json.or(own.json),
            extra,
        }
    }
}

/// The price of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfiguredPrice {
    /// The model: `provider/model`, or `model` for any provider's.
    pub model: String,
    pub price: Price,
}

/// Which runs are kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreDefaults {
    pub keep: bool,
    /// Most runs that are kept; scripted and live ones are counted apart.
    pub keep_runs: u32,
    /// Most days that a run is kept.
    pub keep_days: u32,
    /// Most bytes of all kept runs together.
    pub keep_bytes: u64,
}

impl Default for StoreDefaults {
    fn default() -> Self {
        Self { keep: true, keep_runs: 1_000, keep_days: 90, keep_bytes: 1 << 30 }
    }
}

/// What the configuration says of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterDefaults {
    /// Addresses of its servers, separated by commas.
    pub url: Option<String>,
    /// The namespace of the team.
    pub namespace: Option<String>,
    /// A file of credentials.
    pub credentials: Option<PathBuf>,
    /// Certificates of the authorities that are trusted.
    pub tls_ca: Option<PathBuf>,
    /// Certificate of this client.
    pub tls_cert: Option<PathBuf>,
    /// Key of this client's certificate.
    pub tls_key: Option<PathBuf>,
    /// Address of the monitoring port of its server.
    pub monitor: Option<String>,
}

record! {
    /// The configuration of roundtable.
    struct ConfigTable => {
        /// Defaults of live models.
        model: ModelDefaultsTable = table,
        /// Prices by model: `provider/model`, or `model`.
        prices: NamedEntries<ConfiguredPriceTable, ModelName> = default(NamedEntries::default()),
        /// Defaults of the display options.
        ui: UiTable = table,
        /// Which runs are kept, and for how long.
        store: StoreTable = table,
        /// What live and guarded runs may spend.
        limits: LimitsTable = table,
        /// Keys of the dashboard's actions: a key or a list of keys by the name of the action.
        keys: NamedEntries<KeyList, ActionName> = default(NamedEntries::default()),
        /// The cluster whose runs are shown and played.
        cluster: ClusterTable = table,
        /// MCP servers by name. A scenario uses one with an empty table of the same name.
        mcp: NamedEntries<McpTable, ServerName> = default(NamedEntries::default()),
        /// Where the spans of runs are sent.
        telemetry: TelemetryTable = table,
    }
}

record! {
    /// Defaults of live models, used where a scenario does not set the key.
    struct ModelDefaultsTable => {
        /// Name of the model, with or without its provider.
        name: NonBlankString = optional,
        /// The sampling temperature.
        temperature: Number<0, 2> = optional,
        /// Maximum number of tokens of a reply.
        max_tokens: IntegerField<1, 10_000_000> = optional,
        /// How much the model reasons before it answers.
        reasoning_effort: NonBlankString = optional,
        /// How a JSON reply is requested.
        json: JsonMode = optional,
        /// More fields of the request, sent unchanged.
        extra: FreeTable = default(FreeTable::default()),
        /// Timeout of one attempt, in seconds.
        timeout_s: Seconds = optional,
    }
}

record! {
    /// US dollars per million tokens.
    struct ConfiguredPriceTable => {
        /// Tokens of the prompt.
        input: Dollars = needed,
        /// Tokens of the reply.
        output: Dollars = needed,
        /// Tokens of the prompt that are read from the provider's cache.
        cached: Dollars = optional,
        /// Tokens of the prompt that are written to the provider's cache.
        cache_write: Dollars = optional,
    }
}

record! {
    /// Which runs are kept, and for how long.
    struct StoreTable => {
        /// Whether runs are kept.
        keep: bool = optional,
        /// Most runs that are kept; scripted and live ones are counted apart.
        keep_runs: IntegerField<1, 10_000_000> = optional,
        /// Most days that a run is kept.
        keep_days: IntegerField<1, 36_500> = optional,
        /// Most bytes of all kept runs together.
        keep_bytes: IntegerField<1_000_000, 4_000_000_000> = optional,
    }
}

record! {
    /// The cluster whose runs are shown and played. Its login comes from the environment, or from a file of
    /// credentials.
    struct ClusterTable => {
        /// Address of its NATS server, such as `nats://10.0.0.5`; several are separated by commas.
        url: NonBlankString = optional,
        /// Namespace of the team: letters, digits, `-` and `_`.
        namespace: NonBlankString = optional,
        /// File of credentials (a JWT and its seed).
        credentials: NonBlankString = optional,
        /// File with the certificates of the authorities that are trusted.
        tls_ca: NonBlankString = optional,
        /// File with the certificate of this client.
        tls_cert: NonBlankString = optional,
        /// File with the key of that certificate.
        tls_key: NonBlankString = optional,
        /// Address of the server's monitoring port, which `doctor --cluster` reads; default: port 8222 of the
        /// server.
        monitor: NonBlankString = optional,
    }
}

/// Name of a model.
#[derive(Debug, Clone)]
pub(crate) struct ModelName;

impl NameRule for ModelName {
    const PATTERN: &'static str = "^.{1,200}$";
    const WORDS: &'static str = "1 to 200 characters, none of them a control character";
    fn fits(text: &str) -> bool {
        (1..=200).contains(&text.chars().count())
            && !text.chars().any(char::is_control)
            && !text.trim().is_empty()
    }
}

/// The JSON schema of a configuration file, for the documents.
#[cfg(test)]
pub(crate) fn config_schema() -> serde_json::Value {
    ConfigTable::schema()
}

/// The result of reading a configuration file.
#[derive(Debug)]
pub struct CheckedConfig {
    /// The contents, as far as they are valid.
    pub config: UserConfig,
    /// Errors and warnings. With an error the configuration cannot be used.
    pub problems: Problems,
}

/// Reads a configuration file. `name` is its name in messages.
pub fn check_config(name: &str, text: &str) -> CheckedConfig {
    let mut cx =
        ReadContext::new(name.to_owned(), text, Vec::new(), UnknownKeys::Ignored(unknown_key));
    let mut config = parse(text, &mut cx).unwrap_or_default();
    let problems = cx.finish();
    if let Some(theme) = &mut config.ui.theme {
        theme.place = format!("{name}:{}", theme.place);
    }
    for entry in &mut config.keys {
        entry.place = format!("{name}:{}", entry.place);
        for key in &mut entry.keys {
            key.place = format!("{name}:{}", key.place);
        }
    }
    CheckedConfig { config, problems }
}

fn parse(text: &str, cx: &mut ReadContext) -> Option<UserConfig> {
    let root = read_document(text, cx)?;
    let file = ConfigTable::read(&root, cx)?;
    // A table with an error does not hide those of the others.
    let model = file.model.map(|model| cx.at_key("model", |cx| defaults(model, cx)));
    let prices = file.prices.entries.into_iter().filter_map(|entry| {
        let table = entry.value?;
        let price = Price {
            input: table.input?.0,
            output: table.output?.0,
            cached: table.cached.map(|dollars| dollars.0),
            cache_write: table.cache_write.map(|dollars| dollars.0),
        };
        Some(ConfiguredPrice { model: entry.name.trim().to_owned(), price })
    });
    let prices = prices.collect();
    let ui = file.ui.map(|ui| ui.defaults(cx)).unwrap_or_default();
    let usual = StoreDefaults::default();
    let store = file.store.map_or(usual, |store| StoreDefaults {
        keep: store.keep.unwrap_or(usual.keep),
        keep_runs: store.keep_runs.map_or(usual.keep_runs, |it| it.0),
        keep_days: store.keep_days.map_or(usual.keep_days, |it| it.0),
        keep_bytes: store.keep_bytes.map_or(usual.keep_bytes, |it| u64::from(it.0)),
    });
    let day = file.limits.map(LimitsTable::of_day).unwrap_or_default();
    let place = |at| {
        let (line, column) = cx.position(at);
        (line, format!("{line}:{column}"))
    };
    let keys = file.keys.entries.into_iter().filter_map(|entry| {
        let (line, at) = place(entry.at);
        let key = |key: StringField| ConfiguredKey { place: place(key.at).1, text: key.text };
        let keys = entry.value?.0.into_iter().map(key).collect();
        Some(ConfiguredKeys { action: entry.name, place: at, line, keys })
    });
    let keys = keys.collect();
    let text = |field: Option<NonBlankString>| field.map(|field| field.text.trim().to_owned());
    let path = |field: Option<NonBlankString>| text(field).map(PathBuf::from);
    let cluster = file.cluster.map(|cluster| ClusterDefaults {
        url: text(cluster.url),
        namespace: text(cluster.namespace),
        credentials: path(cluster.credentials),
        tls_ca: path(cluster.tls_ca),
        tls_cert: path(cluster.tls_cert),
        tls_key: path(cluster.tls_key),
        monitor: text(cluster.monitor),
    });
    let (model, cluster) = (model.unwrap_or_default(), cluster.unwrap_or_default());
    let servers = file.mcp.entries.iter();
    let servers = servers.filter_map(|entry| cx.at_key("mcp", |cx| server(entry, cx)));
    let mcp = servers.collect();
    let telemetry = file.telemetry.map(|table| table.defaults()).unwrap_or_default();
    Some(UserConfig { model, prices, ui, store, day, keys, cluster, mcp, telemetry })
}

/// An MCP server of the configuration, which has to say how it is reached.
fn server(
    entry: &NamedEntry<McpTable>,
    cx: &mut ReadContext,
) -> Option<(String, Arc<McpServerSpec>)> {
    cx.at_key(&entry.name, |cx| {
        let table = entry.value.as_ref()?;
        let of_scenario = [
            ("allow", table.allow.0.first().map(|tool| tool.at)),
            ("tools", table.tools.entries.first().map(|tool| tool.at)),
        ];
        for (key, at) in of_scenario.into_iter().filter_map(|(key, at)| Some((key, at?))) {
            let what = format!("`{key}` has no effect here");
            cx.at_key(key, |cx| cx.error(at, what, "write it into the scenario"));
        }
        let server = build_server(&entry.name, table).map_err(|wrong| wrong.report(cx)).ok()?;
        if server.is_configured() {
            cx.error(entry.at, "the server has no command and no url", "add one of them");
            return None;
        }
        Some((entry.name.clone(), Arc::new(server)))
    })
}

fn defaults(table: ModelDefaultsTable, cx: &mut ReadContext) -> ModelDefaults {
    let name = table.name.map(|name| name.text.trim().to_owned());
    let timeout = table.timeout_s.map(|seconds| seconds.0);
    let requests = Requests {
        temperature: table.temperature,
        max_tokens: table.max_tokens,
        reasoning_effort: table.reasoning_effort,
        json: table.json,
        extra: table.extra,
    };
    ModelDefaults { name, tuning: tuning(requests, cx), timeout }
}

/// The problem of an unknown key, with a suggestion.
fn unknown_key(_path: &str, key: &str, known: &[&str]) -> UnknownKey {
    let word = key.to_ascii_lowercase();
    let ends =
        |words: &[&str]| words.iter().any(|end| word == *end || word.ends_with(&format!("_{end}")));
    let unknown = |help| UnknownKey { what: format!("unknown key `{key}`"), help };
    if closest_name(key, known.iter().copied()).is_some() {
        return unknown(suggest_name(key, known.iter().copied()));
    }
    if ends(&["key", "apikey", "token", "secret", "password"]) {
        return UnknownKey {
            what: format!("`{key}`: API keys do not belong in this file"),
            help: "set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY in \
                   the environment or in a .env file, and remove it here"
                .to_owned(),
        };
    }
    if ends(&["url", "host", "address", "endpoint"]) {
        return UnknownKey {
            what: format!("`{key}`: URLs do not belong in this file"),
            help: "set it next to its key: OPENAI_BASE_URL, ANTHROPIC_BASE_URL, \
                   GEMINI_BASE_URL, OPENROUTER_BASE_URL or OLLAMA_HOST in the environment or in a \
                   .env file"
                .to_owned(),
        };
    }
    let schema = ConfigTable::schema();
    let tables = schema["properties"].as_object().into_iter().flatten();
    let mut places = tables.filter(|(_, table)| table["properties"].get(key).is_some());
    match places.next() {
        Some((table, _)) => unknown(format!("did you mean `{table}.{key}`?")),
        None => unknown(suggest_name(key, known.iter().copied())),
    }
}

/// How long a lone ESC waits for the rest of a key, where the configuration does not say. Over a slow link
/// the rest of an arrow may come this much later.
pub const ESCAPE_TIMEOUT: Duration = Duration::from_millis(150);

/// Defaults of the display options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UiDefaults {
    pub theme: Option<ConfiguredTheme>,
    /// Draw with ASCII characters only.
    pub ascii: Option<bool>,
    /// Whether spinners and sparklines move.
    pub animation: Option<bool>,
    /// Whether the dashboard is lines of text.
    pub plain: Option<bool>,
    /// Whether the terminal's title says what the runs do.
    pub title: Option<bool>,
    /// How the terminal tells that a run has ended or waits for somebody.
    pub notify: Option<NotifyBy>,
    /// How long a lone ESC waits for the rest of a key.
    pub escape: Option<Duration>,
}

/// A theme that the configuration selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredTheme {
    /// `auto`, name of a shipped theme, or path of a theme file.
    pub name: String,
    /// Position in the configuration file: `FILE:LINE:COLUMN`.
    pub place: String,
}

/// How the terminal tells that a run has ended or waits for somebody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotifyBy {
    /// Not at all.
    #[default]
    Off,
    Bell,
    /// With a notification of the desktop (`OSC 9`).
    Osc9,
}

worded! { NotifyBy { Off = "off", Bell = "bell", Osc9 = "osc9" } }

words! { NotifyBy:
    "off" => NotifyBy::Off, "Not at all.";
    "bell" => NotifyBy::Bell, "With the terminal's bell.";
    "osc9" => NotifyBy::Osc9, "With a notification of the desktop, in terminals that know `OSC 9`.";
}

record! {
    /// How the dashboard looks.
    struct UiTable => {
        /// `auto` (light or dark, as the terminal's background is), name of a shipped theme, or path of a theme file.
        theme: Positioned<NonBlankString> = optional,
        /// Draw with ASCII characters only.
        ascii: bool = optional,
        /// Whether spinners and sparklines move.
        animation: bool = optional,
        /// Whether the dashboard is lines of text, as with `--plain`.
        plain: bool = optional,
        /// Whether the terminal's title says what the runs do.
        title: bool = optional,
        /// How the terminal tells that a run has ended, or waits at a breakpoint.
        notify: NotifyBy = optional,
        /// How long the Escape key waits, in milliseconds: the bytes of an arrow that come later than
        /// this after one another are Escape and letters. 150 if it is not set.
        escape_ms: IntegerField<5, 2_000> = optional,
    }
}

impl UiTable {
    /// The values of the table.
    pub(crate) fn defaults(self, cx: &ReadContext) -> UiDefaults {
        let theme = self.theme.map(|theme| {
            let (line, column) = cx.position(theme.at);
            let name = theme.value.text.trim().to_owned();
            ConfiguredTheme { name, place: format!("{line}:{column}") }
        });
        let Self { ascii, animation, plain, title, notify, escape_ms, .. } = self;
        let escape = escape_ms.map(|ms| Duration::from_millis(u64::from(ms.0)));
        UiDefaults { theme, ascii, animation, plain, title, notify, escape }
    }
}

/// Most keys of one action.
const MAX_KEYS: usize = 9;

/// The keys of one action, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredKeys {
    pub action: String,
    /// Position of the name in the configuration file: `FILE:LINE:COLUMN`.
    pub place: String,
    pub line: usize,
    /// The keys; none: the action has no key.
    pub keys: Vec<ConfiguredKey>,
}

/// One key of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredKey {
    /// The key as it is written.
    pub text: String,
    /// Its position in the configuration file: `FILE:LINE:COLUMN`.
    pub place: String,
}

/// A key, or a list of keys.
#[derive(Debug, Clone)]
pub(crate) struct KeyList(pub Vec<StringField>);

impl FormatShape for KeyList {
    fn schema() -> Value {
        let list = json!({ "type": "array", "items": StringField::schema(), "maxItems": MAX_KEYS });
        json!({ "oneOf": [StringField::schema(), list] })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match &node.value {
            TomlValue::Text(_) => StringField::read(node, cx).map(|key| Self(vec![key])),
            TomlValue::List(items) if items.len() > MAX_KEYS => {
                let what = format!("{} keys are too many", items.len());
                cx.error(node.at, what, format!("at most {MAX_KEYS}"));
                None
            }
            TomlValue::List(items) => {
                let read = |(index, item)| cx.at_index(index, |cx| StringField::read(item, cx));
                items.iter().enumerate().map(read).collect::<Option<_>>().map(Self)
            }
            _ => {
                cx.wrong_type(node, "a key (\"x\") or a list of keys ([\"x\", \"ctrl-x\"])");
                None
            }
        }
    }
}

/// Name of an action.
#[derive(Debug, Clone)]
pub(crate) struct ActionName;

impl NameRule for ActionName {
    const PATTERN: &'static str = "^[a-z]+(-[a-z]+)*$";
    const WORDS: &'static str =
        "the name of an action, as docs/keys.md and the list of commands have it";
    /// Every text: the dashboard tells an unknown name, with a suggestion.
    fn fits(_: &str) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{ConfiguredTheme, *};
    use crate::scenario::spec::tool::Setting;

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
plain = true
title = false
notify = "osc9"
escape_ms = 40

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

[telemetry]
otlp = "http://a:4318"
headers = { authorization = { env = "TRACES_TOKEN" } }
content = true

[limits.day]
cost_usd = 5.0
total_tokens = 2000000
"#;

    #[test]
    fn a_whole_file_is_read() {
        let checked = check_config("config.toml", WHOLE);
        assert!(checked.problems.is_empty(), "{}", checked.problems);
        let UserConfig { model, prices, ui, store, day, keys, cluster, mcp: _, telemetry } =
            checked.config;
        assert_eq!((telemetry.otlp.as_deref(), telemetry.content), (Some("http://a:4318"), true));
        let token = Setting::Env("TRACES_TOKEN".to_owned());
        assert_eq!(telemetry.headers, BTreeMap::from([("authorization".to_owned(), token)]));
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
        let told = UiDefaults {
            plain: Some(true),
            title: Some(false),
            notify: Some(NotifyBy::Osc9),
            escape: Some(Duration::from_millis(40)),
            ..UiDefaults::default()
        };
        let shown =
            UiDefaults { theme: Some(theme), ascii: Some(true), animation: Some(false), ..told };
        assert_eq!(ui, shown);
        let kept =
            StoreDefaults { keep: false, keep_runs: 20, keep_days: 7, keep_bytes: 5_000_000 };
        assert_eq!(store, kept);
        assert_eq!((day.max_cost_usd, day.max_total_tokens), (Some(5.0), Some(2_000_000)));
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
                of("step", 36, vec![key("x", "36:8")]),
                of("flags", 37, vec![key("f", "37:10"), key("ctrl-f", "37:15")]),
                of("kill", 38, Vec::new()),
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
                "team: unknown key `team` (one of model, prices, ui, store, limits, keys, cluster, mcp, telemetry)",
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
        assert_eq!(
            ModelDefaults::default().fill(&scenario),
            scenario,
            "nothing is added by nothing"
        );
    }
}
