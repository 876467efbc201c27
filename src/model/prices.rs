//! Model prices: a dated table that ships with the program, and overrides from the configuration.
//! Costs computed from them are estimates, not bills. A model in neither has no price.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::endpoint::{Endpoint, Provider, SettingOrigin, WithOrigin, split_model_name};
use crate::log::event::ModelPriceHead;
use crate::scenario::config::ConfiguredPrice;
use crate::scenario::spec::Price;

/// The prices that ship with the program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTable {
    /// The date of the figures, as `YYYY-MM-DD`.
    pub date: String,
    /// Where the figures come from.
    pub source: String,
    /// Prices by provider word, then by model name.
    models: BTreeMap<String, BTreeMap<String, Price>>,
}

/// A test parses this file, so the default is never used.
static SHIPPED: LazyLock<PriceTable> =
    LazyLock::new(|| toml::from_str(include_str!("../../assets/prices.toml")).unwrap_or_default());

impl PriceTable {
    /// The table that ships with the program.
    pub fn shipped() -> &'static Self {
        &SHIPPED
    }

    /// The number of models with a price.
    pub fn len(&self) -> usize {
        self.models.values().map(BTreeMap::len).sum()
    }

    /// The price of exactly this model name.
    fn get(&self, provider: Provider, model: &str) -> Option<Price> {
        self.models.get(provider.word())?.get(model).copied()
    }
}

/// The price of an endpoint's model and its origin: the configuration, else the shipped table
/// ([`SettingOrigin::Default`]), whose list prices apply only at the provider's own address. A snapshot
/// (`gpt-4.1-mini-2025-04-14`) without a price of its own has the price of its name without the
/// date.
pub fn endpoint_price(
    endpoint: &Endpoint,
    configured: &[ConfiguredPrice],
) -> Option<WithOrigin<Price>> {
    let (provider, model) = (endpoint.provider(), &endpoint.model().value);
    price_by_name(provider, model, configured, endpoint.is_providers_own())
}

/// Whether the shipped table has a price for an endpoint's model that does not apply at its
/// address.
pub fn is_priced_elsewhere(endpoint: &Endpoint) -> bool {
    let (provider, model) = (endpoint.provider(), &endpoint.model().value);
    !endpoint.is_providers_own() && price_by_name(provider, model, &[], true).is_some()
}

/// `listed`: whether list prices apply.
fn price_by_name(
    provider: Provider,
    model: &str,
    configured: &[ConfiguredPrice],
    listed: bool,
) -> Option<WithOrigin<Price>> {
    let exact = |model: &str| {
        let own = configured_price(provider, model, configured);
        let own = own.map(|value| WithOrigin { value, origin: SettingOrigin::Config });
        let shipped = || PriceTable::shipped().get(provider, model).filter(|_| listed);
        own.or_else(|| Some(WithOrigin { value: shipped()?, origin: SettingOrigin::Default }))
    };
    exact(model).or_else(|| exact(without_snapshot_date(model)?))
}

/// The prices of the models at these endpoints, once per name. If two models of the same name have
/// different prices, neither has a price, because calls only carry the name.
pub fn prices_at<'a>(
    endpoints: impl IntoIterator<Item = &'a Endpoint>,
    configured: &[ConfiguredPrice],
) -> Vec<ModelPriceHead> {
    let mut all: Vec<ModelPriceHead> = Vec::new();
    for endpoint in endpoints {
        let model = endpoint.model().value.as_str();
        let price = endpoint_price(endpoint, configured).map(|found| found.value);
        match all.iter_mut().find(|other| other.model == model) {
            Some(other) if other.price != price => other.price = None,
            Some(_) => {}
            None => all.push(ModelPriceHead { model: model.to_owned(), price }),
        }
    }
    all
}

/// The price of a model of which only the name is known: that of the configuration, else the list price. `None`:
/// there is none, or providers have different ones.
pub fn price_of_name(model: &str, configured: &[ConfiguredPrice]) -> Option<Price> {
    name_price(model, configured, PriceTable::shipped())
}

fn name_price(model: &str, configured: &[ConfiguredPrice], table: &PriceTable) -> Option<Price> {
    let exact = |model: &str| {
        let name = split_model_name(model).1;
        let own = configured.iter().filter(|row| split_model_name(&row.model).1 == name);
        let own: Vec<Price> = own.map(|row| row.price).collect();
        let listed = || table.models.values().filter_map(|of| of.get(name).copied()).collect();
        let prices = if own.is_empty() { listed() } else { own };
        let first = *prices.first()?;
        prices.iter().all(|other| *other == first).then_some(first)
    };
    exact(model).or_else(|| exact(without_snapshot_date(model)?))
}

/// The price in the configuration: under `provider/name`, else under the name alone. A name that is sent with its
/// provider in front is looked up without it.
fn configured_price(
    provider: Provider,
    model: &str,
    configured: &[ConfiguredPrice],
) -> Option<Price> {
    let model = match split_model_name(model) {
        (Some(of), name) if of == provider => name,
        _ => model,
    };
    let under = |wanted: Option<Provider>| {
        let mut rows = configured.iter();
        rows.find(|row| split_model_name(&row.model) == (wanted, model)).map(|row| row.price)
    };
    under(Some(provider)).or_else(|| under(None))
}

/// The name without the date of a snapshot: `-2025-04-14` or `-20251001`.
fn without_snapshot_date(model: &str) -> Option<&str> {
    let shapes: [&[usize]; 2] = [&[4, 2, 2], &[8]];
    shapes.into_iter().find_map(|shape| {
        let mut parts = model.rsplitn(shape.len() + 1, '-');
        let fits = shape.iter().rev().all(|digits| {
            let part = parts.next();
            part.is_some_and(|it| it.len() == *digits && it.bytes().all(|b| b.is_ascii_digit()))
        });
        parts.next().filter(|name| fits && !name.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::endpoint::{EndpointRequest, find};

    #[test]
    fn name_alone_has_one_price() {
        let own = ConfiguredPrice { model: "openai/own-1".to_owned(), price: Price::new(7.0, 8.0) };
        let price = |model: &str| price_of_name(model, std::slice::from_ref(&own));
        let listed = PriceTable::shipped().get(Provider::OpenAi, "gpt-4.1-mini");
        assert!(listed.is_some());
        assert_eq!(price("gpt-4.1-mini"), listed);
        assert_eq!(price("gpt-4.1-mini-2025-04-14"), listed);
        assert_eq!(price("own-1"), Some(own.price));
        assert_eq!(price("no-such-model"), None);
        let two = "date = ''\nsource = ''\n[models.openai]\nboth = { input = 1.0, output = 1.0 }\n\
                   one = { input = 1.0, output = 1.0 }\n[models.groq]\nboth = { input = 2.0, output = 1.0 }\n";
        let two: PriceTable = toml::from_str(two).expect("a table");
        assert_eq!(name_price("both", &[], &two), None);
        assert_eq!(name_price("one", &[], &two), Some(Price::new(1.0, 1.0)));
    }

    #[test]
    fn every_shipped_row_prices_known_provider() {
        let table: PriceTable =
            toml::from_str(include_str!("../../assets/prices.toml")).expect("a table");
        assert!(table.len() > 60, "{}", table.len());
        assert_eq!(table.date.len(), 10, "{}", table.date);
        assert!(table.source.contains("litellm"));
        for (provider, models) in &table.models {
            assert!(Provider::from_word(provider).is_some(), "{provider}");
            for (model, price) in models {
                let all = [Some(price.input), Some(price.output), price.cached, price.cache_write];
                let good = |price: f64| price > 0.0 && price < 1_000.0;
                assert!(all.into_iter().flatten().all(good), "{provider}/{model}: {price:?}");
                assert!(price.cached.is_none_or(|it| it <= price.input), "{provider}/{model}");
            }
        }
    }

    #[test]
    fn default_models_have_prices() {
        for provider in Provider::ALL {
            let price = price_by_name(provider, provider.model(), &[], true);
            assert_eq!(price.is_some(), provider != Provider::Ollama, "{provider}");
        }
    }

    #[test]
    fn matches_price_by_name_without_guessing() {
        let row = |model: &str, input| ConfiguredPrice {
            model: model.to_owned(),
            price: Price::new(input, 1.0),
        };
        let own = [
            row("gpt-4.1-mini", 7.0),
            row("openai/gpt-4.1", 8.0),
            row("llama3.2", 0.0),
            row("OpenRouter/openai/gpt-5", 9.0),
        ];
        use Provider::{Anthropic, Ollama, OpenAi, OpenRouter};
        use SettingOrigin::{Config, Default};
        for (provider, model, expected) in [
            (OpenAi, "gpt-4.1-mini", Some((7.0, Config))),
            (OpenAi, "gpt-4.1", Some((8.0, Config))),
            (OpenRouter, "openai/gpt-4.1", Some((2.0, Default))),
            (OpenRouter, "openai/gpt-5", Some((9.0, Config))),
            (OpenRouter, "gpt-4.1", None),
            (OpenAi, "gpt-4.1-mini-2025-04-14", Some((7.0, Config))),
            (OpenAi, "gpt-4o-2024-08-06", Some((2.5, Default))),
            (Anthropic, "claude-haiku-4-5-20251001", Some((1.0, Default))),
            (Anthropic, "claude-haiku-4-5-1", None),
            (Anthropic, "gpt-4o", None),
            (OpenAi, "GPT-4o", None),
            (OpenAi, "gpt-4o-mini-x", None),
            (Ollama, "llama3.2", Some((0.0, Config))),
            (Ollama, "mistral", None),
        ] {
            let found = price_by_name(provider, model, &own, true);
            let found = found.map(|found| (found.value.input, found.origin));
            assert_eq!(found, expected, "{provider}/{model}");
        }
    }

    #[test]
    fn list_prices_apply_only_at_provider() {
        let at = |shell: &[(&str, &str)]| {
            let shell = shell.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            find(&shell.collect(), None, EndpointRequest::default()).expect("an endpoint")
        };
        let (key, url, named) = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL");
        let openrouter = ("OPENROUTER_API_KEY", "k");
        for (shell, own, input) in [
            (&[(key, "k")][..], true, Some(0.4)),
            (&[(key, "k"), (url, "https://API.openai.com:443/v2/")], true, Some(0.4)),
            (&[(key, "k"), (url, "https://api.openai.com.example/v1")], false, None),
            (&[(key, "k"), (url, "https://api.openai.com:8443/v1")], false, None),
            (&[(url, "http://127.0.0.1:8089/v1")], false, None),
            (&[(key, "k"), (url, "http://127.0.0.1:8089/v1")], false, None),
            (&[(key, "k"), (url, "https://gateway.example/v1")], false, None),
            (&[openrouter], true, Some(0.4)),
            (&[openrouter, ("OPENROUTER_BASE_URL", "https://eu.example/v1")], false, None),
            (&[("OLLAMA_HOST", "localhost")], true, None),
        ] {
            let endpoint = at(shell);
            let found = endpoint_price(&endpoint, &[]).map(|found| found.value.input);
            assert_eq!((endpoint.is_providers_own(), found), (own, input), "{shell:?}");
            let elsewhere = !own && endpoint.provider() != Provider::Ollama;
            assert_eq!(is_priced_elsewhere(&endpoint), elsewhere, "{shell:?}");
            let heads = prices_at([&endpoint], &[]);
            assert_eq!(heads[0].price.map(|price| price.input), input, "{shell:?}");
        }
        // Prices in the configuration apply at any address.
        let endpoint = at(&[(url, "http://127.0.0.1:8089/v1"), (named, "gpt-4.1-mini-2025-04-14")]);
        assert!(endpoint_price(&endpoint, &[]).is_none() && is_priced_elsewhere(&endpoint));
        let row = ConfiguredPrice {
            model: "openai/gpt-4.1-mini".to_owned(),
            price: Price::new(3.0, 1.0),
        };
        let found =
            endpoint_price(&endpoint, &[row]).map(|found| (found.value.input, found.origin));
        assert_eq!(found, Some((3.0, SettingOrigin::Config)));
        assert!(!is_priced_elsewhere(&at(&[(url, "http://127.0.0.1:1/v1"), (named, "own")])));
    }

    #[test]
    fn strips_snapshot_date() {
        for (model, name) in [
            ("gpt-4.1-mini-2025-04-14", Some("gpt-4.1-mini")),
            ("claude-haiku-4-5-20251001", Some("claude-haiku-4-5")),
            ("gpt-4.1-mini", None),
            ("gpt-5-25-04-14", None),
            ("-20251001", None),
            ("a-2025-0414", None),
            ("a-2025-04-1x", None),
        ] {
            assert_eq!(without_snapshot_date(model), name, "{model}");
        }
    }
}
