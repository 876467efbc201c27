//! The tool hook: the tap asks before a tool of a guarded program is executed, and reports its end on the same
//! connection. A connection that closes withdraws the question, or ends the call without a result.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::callers::Caller;
use super::hub::HubInput;
use super::texts;
use crate::pattern::observed::{HookedCall, Observation, ToolAbout, ToolDecision, ToolReport};

/// A line of the tap about a call of a tool.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum HookLine {
    /// May it be executed?
    Ask(Box<AskedTool>),
    /// It was executed.
    Done(DoneTool),
}

#[derive(Deserialize)]
pub(super) struct AskedTool {
    name: String,
    #[serde(default)]
    args: Map<String, Value>,
    #[serde(default)]
    span: String,
    #[serde(default)]
    parent: String,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Value,
    #[serde(default)]
    definition: String,
}

#[derive(Deserialize)]
pub(super) struct DoneTool {
    id: u64,
    #[serde(default)]
    result: Value,
    /// Why it failed.
    error: Option<String>,
}

/// The answer to the tap.
#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(super) enum HookAnswer {
    /// It is executed, and its end is reported with this id.
    Go {
        id: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        args: Option<Arc<Map<String, Value>>>,
    },
    /// It has this result.
    Result { value: Arc<Value> },
    /// The model reads this in place of a result.
    Error { text: Arc<str> },
    /// The end of a call is known.
    Known,
}

/// The calls of tools that the program of a connection executes.
#[derive(Default)]
pub(super) struct ExecutedTools(Mutex<HashMap<u64, oneshot::Sender<ToolReport>>>);

impl ExecutedTools {
    /// Answers a line of the tap; waits until the call is decided.
    pub(super) async fn answer(
        &self,
        line: HookLine,
        caller: Option<Arc<Caller>>,
        hub: &mpsc::Sender<HubInput>,
    ) -> HookAnswer {
        let asked = match line {
            HookLine::Ask(asked) => *asked,
            HookLine::Done(done) => {
                let ended = self.lock().remove(&done.id);
                if let Some(ended) = ended {
                    let report = match done.error {
                        Some(error) => Err(texts::text(&error).to_string()),
                        None => Ok(Arc::new(done.result)),
                    };
                    let _ = ended.send(report);
                }
                return HookAnswer::Known;
            }
        };
        let (decided, decision) = oneshot::channel();
        // Dropped with this future, when the connection closes.
        let (_waits, gone) = oneshot::channel();
        let call = HookedCall { about: Box::new(asked.about()), decided, gone };
        let _ = hub.send(HubInput::Guarded(caller, Box::new(Observation::Tool(call)))).await;
        match decision.await {
            Ok(ToolDecision::Execute { args, ended }) => {
                let mut executed = self.lock();
                let id = executed.keys().max().map_or(1, |id| id + 1);
                executed.insert(id, ended);
                HookAnswer::Go { id, args }
            }
            Ok(ToolDecision::Result(value)) => HookAnswer::Result { value },
            Ok(ToolDecision::Error(text)) => HookAnswer::Error { text },
            Err(_) => {
                let text = "roundtable: the run has ended, so no tool is executed".into();
                HookAnswer::Error { text }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<ToolReport>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AskedTool {
    fn about(self) -> ToolAbout {
        ToolAbout {
            name: texts::name(&self.name),
            args: self.args,
            span: texts::name(&self.span),
            parent: texts::name(&self.parent),
            agent: self.agent.as_deref().map(texts::name).filter(|it| !it.is_empty()),
            description: texts::text(&self.description),
            parameters: self.parameters,
            definition: texts::name(&self.definition),
        }
    }
}
