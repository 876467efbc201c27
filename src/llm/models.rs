//! The models of a run, and which of them each caller uses.

use std::sync::Arc;

use super::ChatModel;
use crate::event::kind::{ModelLabel, Purpose};
use crate::scenario::seated::Caller;

/// The models of a run: some callers have their own, all others use the default one. Cheap to clone.
#[derive(Clone)]
pub struct Models {
    usual: Arc<dyn ChatModel>,
    own: Arc<[(Caller, Arc<dyn ChatModel>)]>,
    /// Whether they are not all the same model at the same host.
    several: bool,
}

impl Models {
    /// The default model, and the callers that have their own.
    pub fn new(usual: Arc<dyn ChatModel>, own: Vec<(Caller, Arc<dyn ChatModel>)>) -> Self {
        let label = usual.label();
        let several = own.iter().any(|(_, model)| model.label() != label);
        Self { usual, own: own.into(), several }
    }

    /// The model that is asked for this purpose.
    pub fn of(&self, purpose: &Purpose) -> &Arc<dyn ChatModel> {
        let own = self.own.iter().find(|(caller, _)| purpose.is_of(caller));
        own.map_or(&self.usual, |(_, model)| model)
    }

    /// The default model.
    pub fn usual(&self) -> &Arc<dyn ChatModel> {
        &self.usual
    }

    /// What the run's head calls them: the names and hosts of all that are asked, each once.
    pub fn label(&self) -> ModelLabel {
        let (mut names, mut hosts) = (Vec::new(), Vec::new());
        let once = |list: &mut Vec<String>, word: String| {
            if !list.contains(&word) {
                list.push(word);
            }
        };
        for model in std::iter::once(&self.usual).chain(self.own.iter().map(|(_, model)| model)) {
            match model.label() {
                ModelLabel::Scripted => return ModelLabel::Scripted,
                ModelLabel::Live { name, host } => {
                    once(&mut names, name);
                    once(&mut hosts, host);
                }
            }
        }
        ModelLabel::Live { name: names.join(", "), host: hosts.join(", ") }
    }

    /// The name of the model that is asked for this purpose, where the run asks more than one.
    pub fn name_for(&self, purpose: &Purpose) -> Option<Arc<str>> {
        if !self.several {
            return None;
        }
        match self.of(purpose).label() {
            ModelLabel::Live { name, .. } => Some(name.into()),
            ModelLabel::Scripted => None,
        }
    }
}

impl<M: ChatModel + 'static> From<Arc<M>> for Models {
    fn from(model: Arc<M>) -> Self {
        Self::new(model, Vec::new())
    }
}

impl From<Arc<dyn ChatModel>> for Models {
    fn from(model: Arc<dyn ChatModel>) -> Self {
        Self::new(model, Vec::new())
    }
}
