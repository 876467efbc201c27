//! What the launch form knows of the available live models.

use std::sync::Arc;

use crate::app::live::OfferedModels;
use crate::app::request::RequestId;
use crate::scenario::catalogue::{LiveOffer, ProviderHost, ProviderOffer};

/// What is known of live models while the form is open.
#[derive(Clone, Debug)]
pub struct FormModels {
    pub(super) form: RequestId,
    /// Whether the run can be live with the model `offer_of`.
    pub offer: LiveOffer,
    pub(super) offer_of: Option<Arc<str>>,
    /// Where the form's first model came from; empty if it had none.
    pub given: String,
    /// The offer without a chosen model: with that of the scenario or the environment.
    pub base: LiveOffer,
    /// The providers that have a key.
    pub providers: Vec<ProviderOffer>,
    /// The lists that were requested, in order of the requests.
    pub lists: Vec<(ProviderHost, OfferedModels)>,
    /// The model of the latest question to the shell.
    pub(super) asked: Option<Option<Arc<str>>>,
    /// Whether the shell has answered that question.
    pub(super) answered: bool,
}

impl FormModels {
    pub(super) fn new(form: RequestId, offer: LiveOffer, given: String) -> Self {
        Self {
            form,
            given,
            base: offer.clone(),
            offer,
            offer_of: None,
            providers: Vec::new(),
            lists: Vec::new(),
            asked: None,
            answered: false,
        }
    }

    /// The lists with their indices in [`lists`](Self::lists), those of the run's own providers
    /// first.
    pub(super) fn lists_in_order(&self) -> Vec<(usize, &ProviderHost, &OfferedModels)> {
        let asked = |place: &ProviderHost| match &self.offer {
            LiveOffer::Ready { places, .. } => places.contains(place),
            _ => false,
        };
        let lists = self.lists.iter().enumerate();
        let mut lists: Vec<_> = lists.map(|(at, (place, list))| (at, place, list)).collect();
        lists.sort_by_key(|(_, place, _)| !asked(place));
        lists
    }

    /// A name from a list, by the indices of list and name.
    pub fn name(&self, list: usize, at: usize) -> Option<&str> {
        match self.lists.get(list) {
            Some((_, OfferedModels::Listed { names, .. })) => names.get(at).map(String::as_str),
            _ => None,
        }
    }
}
