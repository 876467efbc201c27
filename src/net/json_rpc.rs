//! Messages of JSON-RPC 2.0, as the agent client protocol uses them: one JSON object a line, in both
//! directions, without batches.

use std::fmt;

use serde::Deserialize;
use serde_json::{Value, json};

/// A message of the other side.
#[derive(Clone, Debug, PartialEq)]
pub enum RpcMessage {
    /// It asks for something, and waits for the response with this id.
    Request {
        /// A number or a text, chosen by the other side.
        id: Value,
        /// What is requested.
        method: String,
        /// Its parameters; `null` if there are none.
        params: Value,
    },
    /// It says something, and waits for nothing.
    Notification {
        /// What it says.
        method: String,
        /// Its parameters; `null` if there are none.
        params: Value,
    },
    /// The response to a request of this side.
    Response {
        /// The id of the request.
        id: Value,
        /// The result, or the error.
        result: Result<Value, RpcError>,
    },
}

/// An error of JSON-RPC.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RpcError {
    /// What kind of error it is, such as [`METHOD_NOT_FOUND`].
    pub code: i64,
    /// What is wrong.
    #[serde(default)]
    pub message: String,
    /// More about it.
    #[serde(default)]
    pub data: Option<Value>,
}

/// Code of a request for something that this side does not offer.
pub const METHOD_NOT_FOUND: i64 = -32_601;
/// Code of a request with wrong parameters.
pub const INVALID_PARAMS: i64 = -32_602;
/// Code of a request that cannot be done now.
pub const REFUSED: i64 = -32_603;

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        match &self.data {
            // Many programs say only here what is wrong.
            Some(Value::String(data)) => write!(f, ": {data}"),
            Some(Value::Object(data)) => match data.get("details").or(data.get("message")) {
                Some(Value::String(details)) => write!(f, ": {details}"),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<RpcError>,
}

impl RpcMessage {
    /// The message of a line; `None`: the line is no message.
    pub fn from_line(line: &[u8]) -> Option<Self> {
        let Line { id, method, params, result, error } = serde_json::from_slice(line).ok()?;
        let id = id.filter(|id| id.is_number() || id.is_string());
        match (method, id) {
            (Some(method), Some(id)) => Some(Self::Request { id, method, params }),
            (Some(method), None) => Some(Self::Notification { method, params }),
            // A result may be `null`, which is read as absent.
            (None, Some(id)) => {
                let result = error.map_or(Ok(result.unwrap_or_default()), Err);
                Some(Self::Response { id, result })
            }
            (None, None) => None,
        }
    }

    /// The message as a line, with its line end.
    pub fn to_line(&self) -> Vec<u8> {
        let message = match self {
            Self::Request { id, method, params } => {
                json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
            }
            Self::Notification { method, params } => {
                json!({ "jsonrpc": "2.0", "method": method, "params": params })
            }
            Self::Response { id, result: Ok(result) } => {
                json!({ "jsonrpc": "2.0", "id": id, "result": result })
            }
            Self::Response { id, result: Err(RpcError { code, message, data }) } => {
                let mut error = json!({ "code": code, "message": message });
                if let Some(data) = data {
                    error["data"] = data.clone();
                }
                json!({ "jsonrpc": "2.0", "id": id, "error": error })
            }
        };
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_back() {
        let id = || json!(7);
        let error = RpcError { data: Some(json!("why")), ..RpcError::new(-32_000, "no") };
        for message in [
            RpcMessage::Request { id: json!("a"), method: "m".to_owned(), params: json!({"x": 1}) },
            RpcMessage::Notification { method: "n".to_owned(), params: json!([]) },
            RpcMessage::Response { id: id(), result: Ok(json!({ "y": null })) },
            RpcMessage::Response { id: id(), result: Ok(Value::Null) },
            RpcMessage::Response { id: id(), result: Err(error) },
        ] {
            let line = message.to_line();
            assert_eq!(RpcMessage::from_line(&line), Some(message));
            assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        }
    }

    #[test]
    fn other_lines_are_no_messages() {
        for line in ["", "Loading…", "[]", "{}", "{\"id\":null}", "{\"id\":{},\"result\":1}", "7"]
        {
            assert_eq!(RpcMessage::from_line(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn errors_say_their_details() {
        let said = |data| RpcError { data, ..RpcError::new(-32_000, "Internal error") }.to_string();
        assert_eq!(said(None), "Internal error");
        assert_eq!(said(Some(json!("no key"))), "Internal error: no key");
        assert_eq!(said(Some(json!({ "details": "no key" }))), "Internal error: no key");
        assert_eq!(said(Some(json!({ "x": 1 }))), "Internal error");
    }
}
