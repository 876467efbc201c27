//! The models of a run that asks more than one, by who asks them, as far as calls have named them.

use std::sync::Arc;

use crate::event::kind::{CallStarted, Purpose};
use crate::scenario::seated::Caller;

/// The model of each caller; empty in a run that asks one model, which the head names.
#[derive(Clone, Debug, Default)]
pub struct AskedModels {
    of: Vec<(Caller, Arc<str>)>,
}

impl AskedModels {
    /// Folds a call.
    pub(super) fn asked(&mut self, call: &CallStarted) {
        let Some((caller, model)) = call.purpose.caller().zip(call.model.as_ref()) else { return };
        match self.of.iter_mut().find(|(known, _)| *known == caller) {
            Some((_, known)) => known.clone_from(model),
            None => self.of.push((caller, Arc::clone(model))),
        }
    }

    /// Whether no call has named its model: the run asks one alone.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The model that calls of this purpose ask. Of a member or a hop it is the agent's own.
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

    /// The planner's model: of tasks, or of the steps of research.
    pub fn plan(&self) -> Option<&str> {
        self.find(|caller| *caller == Caller::Plan)
    }

    /// The model that takes notes of pages.
    pub fn notes(&self) -> Option<&str> {
        self.find(|caller| *caller == Caller::Notes)
    }

    /// The model that puts the answer of research together.
    pub fn answer(&self) -> Option<&str> {
        self.find(|caller| *caller == Caller::Answer)
    }

    /// The model that writes the text at the end.
    pub fn finalize(&self) -> Option<&str> {
        self.find(|caller| *caller == Caller::Finalize)
    }

    fn find(&self, is: impl Fn(&Caller) -> bool) -> Option<&str> {
        self.of.iter().find(|(caller, _)| is(caller)).map(|(_, model)| &**model)
    }
}
