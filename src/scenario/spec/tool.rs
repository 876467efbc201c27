//! Tools as a scenario declares them: the implementation ([`ToolKind`]), the policy and the
//! contract of each, and the failures that a scenario scripts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::policy::CallPolicy;
use crate::base::json_schema;
use crate::base::name::ToolName;
use crate::base::sha256_of_text;
use crate::base::worded;
use crate::scenario::people::{Asking, Effects, ToolApproval};
use crate::scenario::tools::fixture::FixtureSpec;
use crate::scenario::tools::mcp::{McpSpec, full_name};
use crate::scenario::tools::{ToolAction, ToolKind};

/// The argument that tells a tool the id of the call. The program adds it.
pub(crate) const REQUEST_ID: &str = "request_id";

/// A tool behind the gateway.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// Its name at the gateway.
    pub name: ToolName,
    /// Its implementation; `None`: there is none (`worker_missing`).
    pub kind: Option<ToolKind>,
    /// The gateway's policy for its calls.
    pub policy: CallPolicy,
    /// The fields that its result must have.
    pub contract: ResultContract,
    /// Whether the runs of one session share its breaker, bulkhead and retry budget.
    pub shared: bool,
    /// Faults that are injected from the start of the run.
    pub faults: Vec<InjectedFault>,
    /// Its description for the agents that may call it.
    pub offer: ToolOffer,
    /// When its calls need approval; `None`: only where a rule of the file says so.
    pub approve: Option<Arc<ToolApproval>>,
    /// Who is asked about a call that neither `approve` nor a rule decides: only about tools of MCP
    /// servers.
    pub asks_by_default: Option<Asking>,
    /// What a call of it does, if the file says so.
    pub effects: Option<Effects>,
}

impl ToolSpec {
    /// What its calls do outside of this program; `None`: nothing.
    pub fn action(&self) -> Option<ToolAction<'_>> {
        self.kind.as_ref()?.action()
    }

    /// What a call of it does.
    pub fn effects(&self) -> Effects {
        let changes = self.kind.as_ref().is_some_and(ToolKind::has_effects);
        self.effects.unwrap_or(if changes { Effects::Write } else { Effects::Read })
    }

    /// SHA-256 of what the tool is: its name, description, arguments and implementation. `pin`: that of the
    /// definition which an MCP server gives; empty for other tools.
    pub fn definition(&self, pin: &str) -> String {
        let offer = serde_json::to_string(&self.offer).unwrap_or_default();
        sha256_of_text(&format!("{offer} {:?}{pin}", self.kind))
    }

    /// The full name of the tool of an MCP server that calls of `tool` go to; `tool` itself for others.
    pub fn server_tool(&self, tool: &ToolName) -> ToolName {
        match self.kind.as_ref().and_then(ToolKind::mcp) {
            Some(McpSpec { server, tool: Some(own) }) => full_name(&server.name, own).into(),
            _ => tool.clone(),
        }
    }

    /// The results that the scenario lists, if it is a fixture.
    pub fn fixture(&self) -> Option<&FixtureSpec> {
        self.kind.as_ref()?.fixture()
    }

    /// Whether its calls ask something outside of this program, in a scripted run too: a service, a program,
    /// the web.
    pub fn is_outside(&self) -> bool {
        let action = self.action();
        !matches!(action, None | Some(ToolAction::ReadFolder(_) | ToolAction::Employ(_)))
    }
}

/// The description of a tool for a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolOffer {
    /// The name under which a model calls it.
    pub name: Arc<str>,
    /// What it does, for the model; may be empty.
    pub description: Arc<str>,
    /// The JSON schema of its arguments, an object.
    pub parameters: Arc<Value>,
}

impl ToolOffer {
    /// A tool with only a name: any object is a valid argument.
    pub fn bare(name: &str) -> Self {
        Self {
            name: name.into(),
            description: Arc::from(""),
            parameters: Arc::new(serde_json::json!({ "type": "object" })),
        }
    }

    /// The schema of its arguments as requests to models have it: strict endpoints refuse a request for one
    /// schema that has no `properties`, or a `$ref` at its top.
    pub(crate) fn strict_parameters(&self) -> Value {
        let any = || serde_json::json!({ "type": "object", "properties": {} });
        json_schema::of_object(&self.parameters).unwrap_or_else(|_| any())
    }
}

/// A tool call as the model requested it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolCall {
    /// The model's id of this call; the result is sent back with it.
    pub id: Arc<str>,
    /// Name of the called tool.
    pub name: Arc<str>,
    /// The arguments as the model wrote them; they may be invalid JSON.
    pub arguments: Arc<str>,
}

/// The fields that a result must have; without them it counts as a failure of the tool
/// (`worker_bad_result`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultContract {
    /// Required keys, each with its type. The result is a JSON object.
    pub required: Vec<(String, FieldKind)>,
    /// Without required keys it may also be anything else: only models read it.
    pub any_shape: bool,
}

impl ResultContract {
    /// Checks a result. Additional keys are allowed.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn check(&self, answer: &Value) -> Result<(), String> {
        if self.required.is_empty() && (self.any_shape || answer.is_null()) {
            // docs/rules/decisions.md: a result of null is an empty section, not a broken result.
            return Ok(());
        }
        let Value::Object(fields) = answer else {
            return Err(format!("the result is {}, not a JSON object", kind_of(answer)));
        };
        for (key, kind) in &self.required {
            match fields.get(key) {
                None => return Err(format!("the result has no `{key}`")),
                Some(value) if !kind.is_kind_of(value) => {
                    let (wanted, found) = (kind.word(), kind_of(value));
                    return Err(format!("`{key}` of the result is {found}, not a {wanted}"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// The type of a field of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// A string.
    Text,
    Number,
    /// `true` or `false`.
    Bool,
    List,
    Table,
    /// Any value, `null` included.
    Any,
}

worded! { FieldKind {
    Text = "text", Number = "number", Bool = "bool", List = "list", Table = "table", Any = "any",
} }

impl FieldKind {
    /// Whether a value has this type.
    fn is_kind_of(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Bool => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Table => value.is_object(),
            Self::Any => true,
        }
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

/// A fault that is injected between the gateway and the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum InjectedFault {
    /// Each attempt takes longer.
    Latency {
        /// Added milliseconds.
        ms: u64,
    },
    /// A share of the attempts fails with this status.
    Errors {
        /// Percentage, from 1 to 100.
        percent: u8,
        /// The status, such as 503.
        status: u16,
        /// How many attempts fail; `None`: any number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        times: Option<u32>,
    },
    /// No response until the timeout.
    Hang,
    /// The response is not JSON.
    Malformed,
    /// The connection breaks in the middle of the body.
    Reset,
    /// The reply is empty.
    Empty,
    /// The model refuses.
    Refusal,
}

impl InjectedFault {
    /// The fault of this kind where its strength is not said: by a key, `ctl` or a word of plain mode.
    pub fn of(kind: FaultKind) -> Self {
        match kind {
            FaultKind::Latency => Self::Latency { ms: 2_000 },
            FaultKind::Errors => Self::Errors { percent: 30, status: 503, times: None },
            FaultKind::Hang => Self::Hang,
            FaultKind::Malformed => Self::Malformed,
            FaultKind::Reset => Self::Reset,
            FaultKind::Empty => Self::Empty,
            FaultKind::Refusal => Self::Refusal,
        }
    }

    /// Its kind. A tool has at most one fault of each kind.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Latency { .. } => FaultKind::Latency,
            Self::Errors { .. } => FaultKind::Errors,
            Self::Hang => FaultKind::Hang,
            Self::Malformed => FaultKind::Malformed,
            Self::Reset => FaultKind::Reset,
            Self::Empty => FaultKind::Empty,
            Self::Refusal => FaultKind::Refusal,
        }
    }
}

/// Kinds of [`InjectedFault`].
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Each attempt takes longer.
    Latency,
    /// A share of the attempts fails with a status.
    Errors,
    /// No response until the timeout.
    Hang,
    /// The response is not JSON.
    Malformed,
    /// The connection breaks in the middle of the body.
    Reset,
    /// The reply is empty.
    Empty,
    /// The model refuses.
    Refusal,
}

worded! { FaultKind + ALL {
    Latency = "latency", Errors = "errors", Hang = "hang", Malformed = "malformed",
    Reset = "reset", Empty = "empty", Refusal = "refusal",
} }

/// The value of a header, or of a variable of a program's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// The string in the file.
    Text(String),
    /// The value of this environment variable; it is a secret.
    Env(String),
}

/// A failure of the first `times` attempts of a call.
#[derive(Clone, PartialEq, Eq)]
pub struct ScriptFault {
    /// The kind of failure.
    pub kind: ScriptFaultKind,
    /// How many attempts of a call fail, from the first on.
    pub times: u32,
    /// What the failure says; `None`: a text of the program.
    pub text: Option<Arc<str>>,
    /// Whether the failure itself says that a retry helps, or not.
    pub retry: Option<bool>,
}

/// As of a row of a fixture: part of the digest of a tool's definition.
impl fmt::Debug for ScriptFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fault = f.debug_struct("ScriptFault");
        fault.field("kind", &self.kind).field("times", &self.times);
        if let Some(text) = &self.text {
            fault.field("text", text);
        }
        if let Some(retry) = &self.retry {
            fault.field("retry", retry);
        }
        fault.finish()
    }
}

impl ScriptFault {
    /// A failure of the first `times` attempts, with a text of the program.
    pub fn new(kind: ScriptFaultKind, times: u32) -> Self {
        Self { kind, times, text: None, retry: None }
    }
}

/// The failures of a scripted attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptFaultKind {
    /// The endpoint returns this HTTP status.
    Status {
        /// The status, such as 503.
        status: u16,
        /// The value of its `Retry-After` header, if any.
        retry_after: Option<Duration>,
    },
    /// No response until the timeout.
    Hang,
    /// The connection is refused.
    Refused,
    /// The connection breaks in the middle of the reply.
    Reset,
    /// A response body that is not a chat completion.
    BadResponse,
    /// The host name does not resolve.
    Resolve,
    /// The TLS handshake fails.
    Tls,
    /// The tool's own program fails.
    Tool,
    /// A body larger than its limit.
    TooLarge,
    /// Refused before the tool is called.
    Denied,
    /// The tool answers that it cannot do what the call asks.
    Rejected,
}

/// Name of the handoff tool. No agent and no other tool may use it.
pub const TRANSFER: &str = "transfer_to_agent";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn checks_answer_against_contract() {
        let contract = ResultContract {
            required: vec![
                ("rate".to_owned(), FieldKind::Number),
                ("skus".to_owned(), FieldKind::List),
                ("note".to_owned(), FieldKind::Any),
            ],
            any_shape: false,
        };
        let good = json!({ "rate": 0.5, "skus": [], "note": null, "more": 1 });
        assert_eq!(contract.check(&good), Ok(()));
        assert_eq!(ResultContract::default().check(&json!(null)), Ok(()));
        for (answer, wrong) in [
            (json!(null), "the result is null, not a JSON object"),
            (json!([1]), "the result is a list, not a JSON object"),
            (json!({ "skus": [], "note": 1 }), "the result has no `rate`"),
            (
                json!({ "rate": "1", "skus": [], "note": 1 }),
                "`rate` of the result is a text, not a number",
            ),
        ] {
            assert_eq!(contract.check(&answer), Err(wrong.to_owned()));
        }
    }
}
