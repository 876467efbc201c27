//! What is known of live models while the launch form is open: whether a run can be live, whom it asks,
//! and the models that a provider lists. The shell finds all of it; no key is ever here.

use std::sync::Arc;

use super::effect::RequestId;
use crate::scenario::Scenario;

/// Whether a scenario can be run against live models, as the shell found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveOffer {
    /// It can.
    Ready {
        /// The hosts that it asks.
        host: String,
        /// The names of the models.
        model: String,
        /// Who names them, such as `from the scenario` or `the default of OpenAI`.
        model_from: String,
        /// Where the keys come from, such as `key from the shell`.
        key: String,
        /// Where lists of models can be asked for.
        places: Vec<ModelPlace>,
    },
    /// Several providers have a key, and nothing says which of them to ask.
    Choose {
        /// Which keys there are, and the ways to say which.
        why: String,
    },
    /// It cannot, and what to set.
    Missing {
        /// For people.
        why: String,
    },
}

/// A provider at a host: where models are asked, and listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelPlace {
    /// The provider's word before the `/` of a model's name, such as `openai`.
    pub provider: String,
    /// Its name, such as `OpenAI`.
    pub name: String,
    /// The host, with its port where it has one of its own.
    pub host: String,
}

impl ModelPlace {
    /// A model of this place as `--model` takes it: without the provider's word, a name such as
    /// `openai/gpt-oss-20b` would be another provider's.
    pub fn model(&self, name: &str) -> String {
        format!("{}/{name}", self.provider)
    }
}

/// A provider that has a key, with the model that it is asked for where none is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderOffer {
    /// Where.
    pub place: ModelPlace,
    /// Its default model.
    pub model: String,
    /// Where the key comes from, such as `key from .env`.
    pub key: String,
}

/// What the launch form asks the shell about live models.
#[derive(Clone, Debug)]
pub struct LiveQuery {
    /// Which form asks.
    pub form: RequestId,
    /// The scenario as the form has it.
    pub scenario: Arc<Scenario>,
    /// The model in place of those that the scenario names, where one is given.
    pub model: Option<Arc<str>>,
}

/// What the shell found for a [`LiveQuery`], without asking anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLive {
    /// Whether the run can be live.
    pub offer: LiveOffer,
    /// Every provider that has a key.
    pub providers: Vec<ProviderOffer>,
}

/// The models that a place lists, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameList {
    /// It was asked for.
    Loading,
    /// It is there.
    Listed {
        /// The names that can be chosen, sorted.
        names: Arc<[String]>,
        /// How many models the place lists; more than there are names where some are left out.
        all: usize,
    },
    /// The place gives no list, which is no failure: a name can be typed.
    NotGiven {
        /// The status of its answer.
        status: u16,
    },
    /// It could not be had.
    Failed {
        /// Why, and what to do.
        why: String,
    },
}
