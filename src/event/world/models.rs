//! The models of a run that uses more than one, by caller, as far as calls have named them.

use std::sync::Arc;

use crate::event::kind::{CallStarted, Purpose};
use crate::scenario::seated::Caller;

/// The model of each caller. Empty in a run that uses one model: its head names it.
#[derive(Clone, Debug, Default)]
pub struct AskedModels {
    of: Vec<(Caller, Arc<str>)>,
}

impl AskedModels {
    /// Records the model of a call.
    pub(super) fn asked(&mut self, call: &CallStarted) {
        let Some((caller, model)) = call.purpose.caller().zip(call.model.as_ref()) else { return };
        match self.of.iter_mut().find(|(known, _)| *known == caller) {
            Some((_, known)) => known.clone_from(model),
            None => self.of.push((caller, Arc::clone(model))),
        }
    }

    /// Whether no call has named its model: the run uses only one.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The model for calls with this purpose; for a member or a hop, that of the agent.
    pub fn of(&self, purpose: &Purpose) -> Option<&str> {
        match purpose {
            Purpose::Member { agent, .. } | Purpose::Hop { agent, .. } => {
                self.of_agent(agent.as_str())
            }
            purpose => self.find(|caller| purpose.is_of(caller)),
        }
    }

    /// The model of an agent.
    pub fn of_agent(&self, agent: &str) -> Option<&str> {
        self.find(|caller| matches!(caller, Caller::Agent(name) if name.as_str() == agent))
    }

    /// The planner's model, in an orchestrator or research.
    pub fn plan(&self) -> Option<&str> {
        self.find(|caller| *caller == Caller::Plan)
    }

    /// The model that takes notes from pages.
    pub fn notes(&self) -> Option<&str> {
        self.find(|caller| *caller == Caller::Notes)
    }

    /// The model that writes the answer of research.
    pub fn answer(&self) -> Option<&str> {
        self.find(|caller| *caller == Caller::Answer)
    }

    /// The model that writes the answer or the report at the end.
    pub fn finalize(&self) -> Option<&str> {
        self.find(|caller| *caller == Caller::Finalize)
    }

    fn find(&self, is: impl Fn(&Caller) -> bool) -> Option<&str> {
        self.of.iter().find(|(caller, _)| is(caller)).map(|(_, model)| &**model)
    }
}
