//! What the launch form knows of live models: whether a run can be live, which hosts and models it
//! would call, and the models that a provider lists. The shell finds all of it; no key is ever
//! here.

use std::sync::Arc;

use crate::scenario::catalogue::{LiveOffer, ProviderOffer};

use super::request::RequestId;
use crate::scenario::Scenario;

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
