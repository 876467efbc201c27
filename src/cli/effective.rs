//! The settings of live models that are in force, each with its value and origin.

use std::time::Duration;

use serde_json::{Value, json};

use crate::base::time;
use crate::base::visible::visible_within;
use crate::model::endpoint::{Endpoint, SettingOrigin, WithOrigin};
use crate::model::prices::{PriceTable, endpoint_price, is_priced_elsewhere};
use crate::net::Redactor;
use crate::scenario::config::{ModelDefaults, UserConfig};
use crate::scenario::spec::{JsonMode, Price, Tuning};
use crate::scenario::{Override, Scenario};

/// Length limit of a value that is shown, in characters.
const VALUE_CHARS: usize = 120;

/// A setting in force.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveSetting {
    /// Its name, as files and options spell it.
    pub key: String,
    /// Its value as JSON; `null` if it is not set.
    pub value: Value,
    /// Its value as it is shown.
    pub text: String,
    /// Where its value comes from.
    pub origin: SettingOrigin,
    /// Its origin as it is shown.
    pub from: String,
}

impl EffectiveSetting {
    /// A setting whose value is shown as `text`.
    pub fn new(
        key: &str,
        value: impl Into<Value>,
        text: impl AsRef<str>,
        origin: SettingOrigin,
    ) -> Self {
        let text = visible_within(text.as_ref(), VALUE_CHARS);
        Self { key: key.to_owned(), value: value.into(), text, origin, from: origin.to_string() }
    }

    fn unset(key: &str, text: &str) -> Self {
        Self::new(key, Value::Null, text, SettingOrigin::Default)
    }
}

/// The identifier of an origin in JSON.
pub fn origin_id(origin: SettingOrigin) -> &'static str {
    match origin {
        SettingOrigin::Shell => "shell",
        SettingOrigin::Dotenv => ".env",
        SettingOrigin::CommandLine => "command_line",
        SettingOrigin::Scenario => "scenario",
        SettingOrigin::Config => "configuration",
        SettingOrigin::Default => "default",
    }
}

/// A scenario with its `--set` overrides, to tell where a field comes from.
#[derive(Clone, Copy)]
pub struct OverriddenScenario<'a> {
    /// The scenario, with the overrides applied.
    pub scenario: &'a Scenario,
    pub set: &'a [Override],
}

impl OverriddenScenario<'_> {
    /// Origin of a field of the scenario.
    fn origin(&self, path: &[&str]) -> SettingOrigin {
        // `--set model.extra={…}` sets every field of it, `--set model.extra.seed=1` that one.
        let sets = |set: &Override| path.starts_with(&set.path());
        if self.set.iter().any(sets) { SettingOrigin::CommandLine } else { SettingOrigin::Scenario }
    }
}

/// The endpoint's settings: provider, model, host, key.
pub fn endpoint(endpoint: &Endpoint) -> Vec<EffectiveSetting> {
    let provider = endpoint.provider();
    let (name, url) = (endpoint.model(), endpoint.base_url());
    let variable = provider.key_name();
    let key = match endpoint.key() {
        Some(key) => {
            let value = json!({ "variable": variable, "set": true });
            EffectiveSetting::new("key", value, format!("{variable} is set"), key.origin)
        }
        None => {
            let value = json!({ "variable": variable, "set": false });
            EffectiveSetting::new("key", value, "none (none needed)", SettingOrigin::Default)
        }
    };
    vec![
        EffectiveSetting::new(
            "provider",
            provider.word(),
            provider.word(),
            endpoint.provider_origin(),
        ),
        EffectiveSetting::new("name", name.value.as_str(), &name.value, name.origin),
        EffectiveSetting::new("host", endpoint.host(), endpoint.host(), url.origin),
        key,
    ]
}

/// The timeout of one attempt.
pub fn timeout(asking: Option<OverriddenScenario<'_>>, endpoint: &Endpoint) -> EffectiveSetting {
    let own = asking.and_then(|asking| {
        let value = asking.scenario.llm_live().timeout?;
        Some(WithOrigin { value, origin: asking.origin(&["tools", "llm", "timeout_s"]) })
    });
    let found = own.as_ref().unwrap_or(endpoint.timeout());
    let text = format!("{} per attempt", time::duration_text(found.value));
    EffectiveSetting::new("timeout_s", seconds(found.value), text, found.origin)
}

fn seconds(time: Duration) -> Value {
    match time.subsec_nanos() {
        0 => time.as_secs().into(),
        _ => time.as_secs_f64().into(),
    }
}

/// The request settings, including those that are not set.
pub fn tuning(
    asking: Option<OverriddenScenario<'_>>,
    defaults: &ModelDefaults,
) -> Vec<EffectiveSetting> {
    let none = Tuning::default();
    let own = asking.map_or(&none, |asking| &asking.scenario.model.tuning);
    let all = defaults.fill(own);
    let origin = |in_scenario: bool, key: &[&str]| match asking.filter(|_| in_scenario) {
        Some(asking) => asking.origin(&[&["model"], key].concat()),
        None => SettingOrigin::Config,
    };
    let row = |key: &str, value: Option<Value>, in_scenario: bool| match value {
        None => EffectiveSetting::unset(key, "not sent"),
        Some(value) => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            EffectiveSetting::new(key, value, text, origin(in_scenario, &[key]))
        }
    };
    let effort = all.reasoning_effort.clone().map(Value::from);
    let mut rows = vec![
        row("temperature", all.temperature.map(Value::from), own.temperature.is_some()),
        row("max_tokens", all.max_tokens.map(Value::from), own.max_tokens.is_some()),
        row("reasoning_effort", effort, own.reasoning_effort.is_some()),
        match all.json {
            None => EffectiveSetting::unset("json", "the strictest mode accepted"),
            Some(_) => row("json", all.json.map(|rung| rung_word(rung).into()), own.json.is_some()),
        },
    ];
    rows.extend(all.extra.iter().map(|(key, value)| {
        // No key belongs here, but the file may contain one.
        let field = json!({ key: value }).to_string();
        let clean = Redactor::with_secrets([]).redact(&field).into_owned();
        let value = serde_json::from_str::<Value>(&clean).ok();
        let value = value.and_then(|it| it.get(key).cloned()).unwrap_or_else(|| "***".into());
        let text = value.to_string();
        let from = origin(own.extra.contains_key(key), &["extra", key]);
        EffectiveSetting::new(&format!("extra.{key}"), value, text, from)
    }));
    rows
}

fn rung_word(rung: JsonMode) -> &'static str {
    match rung {
        JsonMode::Text => "text",
        JsonMode::JsonObject => "json_object",
        JsonMode::JsonSchema => "json_schema",
    }
}

/// The model's price, if it is known.
pub fn price(
    asking: Option<OverriddenScenario<'_>>,
    endpoint: &Endpoint,
    config: &UserConfig,
) -> EffectiveSetting {
    let own = asking.and_then(|asking| {
        let prices = asking.scenario.model.prices?;
        let value = Price::new(prices.prompt_usd_per_million, prices.completion_usd_per_million);
        Some(WithOrigin { value, origin: asking.origin(&["model", "prices"]) })
    });
    match own.or_else(|| endpoint_price(endpoint, &config.prices)) {
        None if is_priced_elsewhere(endpoint) => EffectiveSetting::unset(
            "price",
            "unknown: list prices apply only at the provider's own address",
        ),
        None => EffectiveSetting::unset("price", "unknown: only tokens are counted"),
        Some(WithOrigin { value, origin }) => {
            let found = EffectiveSetting::new("price", json_of(&value), price_text(&value), origin);
            let table = || format!("the table of {}", PriceTable::shipped().date);
            let from = if origin == SettingOrigin::Default { table() } else { found.from };
            EffectiveSetting { from, ..found }
        }
    }
}

/// A price in JSON, in US dollars per million tokens.
pub fn json_of(price: &Price) -> Value {
    serde_json::to_value(price).unwrap_or(Value::Null)
}

/// A price as it is shown, per million tokens: `$0.40 in, $1.60 out, $0.10 cached`.
pub fn price_text(price: &Price) -> String {
    let dollars = |amount: f64| {
        let cents = format!("{amount:.2}");
        let exact = cents.parse().is_ok_and(|it: f64| (it - amount).abs() < 1e-9);
        if exact { format!("${cents}") } else { format!("${amount}") }
    };
    let mut text = format!("{} in, {} out", dollars(price.input), dollars(price.output));
    for (amount, what) in [(price.cached, "cached"), (price.cache_write, "cache write")] {
        if let Some(amount) = amount {
            text = format!("{text}, {} {what}", dollars(amount));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::endpoint::{EndpointRequest, find};
    use crate::scenario::{ScenarioOrigin as From, load};

    #[test]
    fn each_setting_names_its_origin() {
        let text = include_str!("../../scenarios/checkout-unanimous.toml");
        let own = "\n[model]\ntemperature = 0.5\nextra = { seed = 1 }\n\
                   prices = { prompt_usd_per_million = 1, completion_usd_per_million = 2 }\n";
        let set: Vec<Override> = ["model.max_tokens=9", "model.extra.top_k=3"]
            .map(|text| text.parse().expect("an override"))
            .into();
        let origin = From::File("x.toml".into());
        let scenario = load(&format!("{text}{own}"), origin, &set).expect("a scenario");
        let asking = OverriddenScenario { scenario: &scenario, set: &set };
        let mut config = UserConfig::default();
        config.model.tuning.temperature = Some(2.0);
        config.model.tuning.reasoning_effort = Some("low".to_owned());
        for (key, value) in [("seed", json!(7)), ("user", json!("u")), ("api_key", json!("k-1"))] {
            config.model.tuning.extra.insert(key.to_owned(), value);
        }
        let rows = tuning(Some(asking), &config.model);
        let found = |key: &str| {
            let row = rows.iter().find(|row| row.key == key).expect(key);
            (row.text.as_str(), row.origin)
        };
        for (key, expected) in [
            ("temperature", ("0.5", SettingOrigin::Scenario)),
            ("max_tokens", ("9", SettingOrigin::CommandLine)),
            ("reasoning_effort", ("low", SettingOrigin::Config)),
            ("json", ("the strictest mode accepted", SettingOrigin::Default)),
            ("extra.seed", ("1", SettingOrigin::Scenario)),
            ("extra.top_k", ("3", SettingOrigin::CommandLine)),
            ("extra.user", ("\"u\"", SettingOrigin::Config)),
        ] {
            assert_eq!(found(key), expected, "{key}");
        }
        assert!(!found("extra.api_key").0.contains("k-1"), "{rows:?}");
        let endpoint = |shell: &[(&str, &str)]| {
            let shell = shell.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            find(&shell.collect(), None, EndpointRequest::default()).expect("an endpoint")
        };
        let openai = endpoint(&[("OPENAI_API_KEY", "k")]);
        let own = price(Some(asking), &openai, &config);
        assert_eq!(
            (own.text.as_str(), own.origin),
            ("$1.00 in, $2.00 out", SettingOrigin::Scenario)
        );
        let listed = price(None, &openai, &config);
        let table = format!("the table of {}", PriceTable::shipped().date);
        assert_eq!(
            (listed.text.as_str(), listed.from),
            ("$0.40 in, $1.60 out, $0.10 cached", table)
        );
        let local = ("OPENAI_BASE_URL", "http://127.0.0.1:8089/v1");
        for (shell, text) in [
            (&[local][..], "unknown: list prices apply only at the provider's own address"),
            (&[local, ("OPENAI_MODEL", "own")], "unknown: only tokens are counted"),
        ] {
            let found = price(None, &endpoint(shell), &config);
            assert_eq!((found.text.as_str(), found.value), (text, Value::Null), "{shell:?}");
        }
    }

    #[test]
    fn shows_prices_to_last_digit() {
        let price =
            Price { cached: Some(0.0875), cache_write: Some(1.25), ..Price::new(0.4, 12.0) };
        assert_eq!(price_text(&price), "$0.40 in, $12.00 out, $0.0875 cached, $1.25 cache write");
    }
}
