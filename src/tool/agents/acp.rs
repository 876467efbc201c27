//! A coding agent that speaks the agent client protocol (ACP), as a model.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::log::event::kind::{FailureClass, ModelLabel, Reply};
use crate::model::{ChatModel, ChatRequest, Failure, Listener, failure};
use crate::scenario::tools::agent::{AcpSpec, OutsideAgent};
use crate::tool::{Environment, NotReady};

/// The program of a coding agent.
pub(crate) struct AcpProgram {
    agent: Arc<OutsideAgent>,
}

impl AcpProgram {
    pub(crate) fn new(
        agent: &Arc<OutsideAgent>,
        _spec: &AcpSpec,
        _env: Environment<'_>,
    ) -> Result<Arc<Self>, Vec<NotReady>> {
        Ok(Arc::new(Self { agent: Arc::clone(agent) }))
    }

    pub(crate) fn session(self: &Arc<Self>) -> AcpModel {
        AcpModel { program: Arc::clone(self) }
    }
}

/// The sessions of a coding agent for one caller.
pub(crate) struct AcpModel {
    program: Arc<AcpProgram>,
}

impl ChatModel for AcpModel {
    fn label(&self) -> ModelLabel {
        let agent = &self.program.agent;
        ModelLabel::Live { name: agent.name.to_string(), host: agent.place() }
    }

    fn chat<'a>(
        &'a self,
        _request: &'a ChatRequest,
        _listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>> {
        Box::pin(async { Err(failure(FailureClass::Tool, "not built yet")) })
    }
}
