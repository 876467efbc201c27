//! The models of a run: those of a run that uses more than one by caller, as far as calls have named
//! them, and what each has used.

use std::sync::Arc;

use super::spending::SpendingTally;
use crate::event::kind::{CallStarted, Purpose};
use crate::scenario::spec::model_assignment::ModelCaller;
use crate::scenario::spec::script::ScriptStep;

/// The model of each caller, and what the models have used.
#[derive(Clone, Debug, Default)]
pub struct ModelsByCaller {
    /// Empty in a run that uses one model: its head names it.
    of: Vec<(ModelCaller, Arc<str>)>,
    pub(super) spending: SpendingTally,
}

impl ModelsByCaller {
    /// Records the model of a call.
    pub(super) fn record(&mut self, call: &CallStarted) {
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
    pub fn for_purpose(&self, purpose: &Purpose) -> Option<&str> {
        match purpose.called_agent() {
            Some(agent) => self.for_agent(agent.as_str()),
            None => self.find(|caller| purpose.is_called_by(caller)),
        }
    }

    /// The model of an agent.
    pub fn for_agent(&self, agent: &str) -> Option<&str> {
        self.find(|caller| matches!(caller, ModelCaller::Agent(name) if name.as_str() == agent))
    }

    /// The model of a step.
    pub fn for_step(&self, step: ScriptStep) -> Option<&str> {
        self.find(|caller| *caller == ModelCaller::Step(step))
    }

    fn find(&self, is: impl Fn(&ModelCaller) -> bool) -> Option<&str> {
        self.of.iter().find(|(caller, _)| is(caller)).map(|(_, model)| &**model)
    }
}
