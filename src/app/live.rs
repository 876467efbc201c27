//! What the launch form knows of live models: whether a run can be live, which hosts and models it
//! would call, and the models that a provider lists. The shell finds all of it; no key is ever
//! here.

use std::sync::Arc;

use super::effect::RequestId;
use crate::scenario::Scenario;

/// Whether a scenario can be run against live models, as the shell found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveOffer {
    /// It can be run live.
    Ready {
        /// The hosts that it calls.
        host: String,
        /// The names of the models.
        model: String,
        /// Where the names come from, such as `from the scenario` or `the default of OpenAI`.
        model_from: String,
        /// Where the keys come from, such as `key from the shell`.
        key: String,
        /// Providers that may have a list of models.
        places: Vec<ProviderHost>,
    },
    /// Several providers have a key, and nothing says which one to call.
    Choose {
        /// The keys that were found, and the ways to choose one.
        why: String,
    },
    /// It cannot be run live.
    Missing {
        /// What is missing and what to set.
        why: String,
    },
}

/// A provider at a host, which answers model calls and lists its models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderHost {
    /// The provider's prefix in a model's name, before the `/`, such as `openai`.
    pub provider: String,
    /// The provider's display name, such as `OpenAI`.
    pub name: String,
    /// The host, with the port where it is not the default one.
    pub host: String,
}

impl ProviderHost {
    /// A model of this provider as `--model` takes it. The prefix is needed: a bare name such as
    /// `openai/gpt-oss-20b` would mean another provider.
    pub fn model(&self, name: &str) -> String {
        format!("{}/{name}", self.provider)
    }
}

/// A provider that has a key, with its default model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderOffer {
    /// The provider and host.
    pub place: ProviderHost,
    /// Its default model.
    pub model: String,
    /// Where the key comes from, such as `key from .env`.
    pub key: String,
}

/// The launch form's question to the shell about live models.
#[derive(Clone, Debug)]
pub struct LiveQuery {
    /// The form that asks.
    pub form: RequestId,
    /// The scenario with the changes of the form.
    pub scenario: Arc<Scenario>,
    /// The model that replaces those of the scenario, where one is chosen.
    pub model: Option<Arc<str>>,
}

/// The shell's answer to a [`LiveQuery`]; no host was called for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveQueryResult {
    /// Whether the run can be live.
    pub offer: LiveOffer,
    /// Every provider that has a key.
    pub providers: Vec<ProviderOffer>,
}

/// The models that a provider lists, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferedModels {
    /// It was requested.
    Loading,
    /// It has arrived.
    Listed {
        /// The names that can be chosen, sorted.
        names: Arc<[String]>,
        /// Number of models that the provider lists, those left out of `names` included.
        all: usize,
    },
    /// The provider gives no list. This is not an error: a name can be typed.
    NotGiven {
        /// HTTP status of its answer.
        status: u16,
    },
    /// The request for the list failed.
    Failed {
        /// Why, and what to do.
        why: String,
    },
}
