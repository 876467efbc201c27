//! An agent that is a server and speaks AG-UI, as a model.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::log::event::kind::{FailureClass, ModelLabel, Reply};
use crate::model::{ChatModel, ChatRequest, Failure, Listener, failure};
use crate::scenario::tools::agent::{AgUiSpec, OutsideAgent};
use crate::tool::{Environment, NotReady};

/// A server that speaks AG-UI.
pub(crate) struct AgUiModel {
    agent: Arc<OutsideAgent>,
}

impl AgUiModel {
    /// The agent at this address. It is not called.
    ///
    /// # Errors
    /// Why it cannot be called.
    pub(crate) fn new(
        agent: &Arc<OutsideAgent>,
        _spec: &AgUiSpec,
        _env: Environment<'_>,
    ) -> Result<Self, Vec<NotReady>> {
        Ok(Self { agent: Arc::clone(agent) })
    }
}

impl ChatModel for AgUiModel {
    fn label(&self) -> ModelLabel {
        ModelLabel::Live { name: self.agent.name.to_string(), host: self.agent.place() }
    }

    fn chat<'a>(
        &'a self,
        _request: &'a ChatRequest,
        _listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>> {
        Box::pin(async { Err(failure(FailureClass::Tool, "not built yet")) })
    }
}
