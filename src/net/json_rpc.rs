//! Messages of JSON-RPC 2.0, one JSON object a line in both directions, and what programs write in their
//! place ([`LineRead`]).

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::base::json_text::read_lenient;

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
        /// The id of the request; `null` with an error: the other side could not read it.
        id: Value,
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

/// Code of a message that cannot be read.
pub const PARSE_ERROR: i64 = -32_700;
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
        f.write_str(&error_text(&self.message, self.data.as_ref()))
    }
}

/// The text of an error with its `data`: many programs say only there what is wrong.
pub fn error_text(message: &str, data: Option<&Value>) -> String {
    match data.map(data_text) {
        Some(said) if !said.is_empty() => format!("{message}: {said}"),
        _ => message.to_owned(),
    }
}

/// The `data` of an error as a text: what it says, else its JSON; empty if it has nothing.
fn data_text(data: &Value) -> String {
    let said = |key: &str| data.get(key).and_then(Value::as_str);
    match data {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        // Nothing is left out where there is more than that.
        Value::Object(fields) if fields.len() == 1 => {
            said("details").or(said("message")).map_or_else(|| data.to_string(), str::to_owned)
        }
        _ => data.to_string(),
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
            // The other side could not read a request.
            (None, None) => {
                error.map(|error| Self::Response { id: Value::Null, result: Err(error) })
            }
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

/// What a line of another program is.
#[derive(Clone, Debug, PartialEq)]
pub enum LineRead<M> {
    /// Messages; more than one if they are sent as a list.
    Messages(Vec<M>),
    /// Something else, such as a line of a log.
    Other,
    /// A message that cannot be read, and why.
    Unreadable(String),
}

/// Reads the messages of a line. `strict` reads a message as the protocol has it. What programs get wrong
/// is corrected first where that fails: a list of messages, no `jsonrpc`, `"error": null` beside a result,
/// the code of an error as a text, half an emoji, and sequences for a terminal before the message.
pub fn read_line<M>(line: &[u8], strict: impl Fn(&[u8]) -> Option<M>) -> LineRead<M> {
    if let Some(message) = strict(line) {
        return LineRead::Messages(vec![message]);
    }
    let text = String::from_utf8_lossy(line);
    let text = without_sequences(&text);
    let values = match read_lenient(text.as_bytes()) {
        Ok(Value::Array(items)) if items.iter().any(is_message) => items,
        Ok(value) if is_message(&value) => vec![value],
        Ok(_) => return LineRead::Other,
        Err(_) if !text.contains("\"jsonrpc\"") => return LineRead::Other,
        Err(error) => return LineRead::Unreadable(error.to_string()),
    };
    let corrected = values.into_iter().map(|value| {
        let fields = corrected(value)?;
        strict(Value::Object(fields).to_string().as_bytes())
    });
    match corrected.collect() {
        Some(messages) => LineRead::Messages(messages),
        None => LineRead::Unreadable("it is not as JSON-RPC says".to_owned()),
    }
}

/// Whether a value is meant as a message. One that neither asks nor answers is none.
fn is_message(value: &Value) -> bool {
    let has = |key: &str| value.get(key).is_some();
    let is_call = value.get("method").is_some_and(Value::is_string);
    is_call || ((has("jsonrpc") || has("id")) && (has("result") || has("error")))
}

fn corrected(value: Value) -> Option<Map<String, Value>> {
    let Value::Object(mut fields) = value else { return None };
    fields.insert("jsonrpc".to_owned(), "2.0".into());
    let error = match fields.remove("error") {
        None | Some(Value::Null) => return Some(fields),
        Some(Value::Object(error)) => corrected_error(error),
        Some(Value::String(text)) => json!({ "code": REFUSED, "message": text }),
        Some(_) => return None,
    };
    fields.remove("result");
    fields.insert("error".to_owned(), error);
    Some(fields)
}

/// The code of an error becomes a number. One that is a word is kept in the text.
fn corrected_error(mut error: Map<String, Value>) -> Value {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let (code, mut message) = (text(error.get("code")), text(error.get("message")));
    let number = error.get("code").and_then(Value::as_i64).or_else(|| code.trim().parse().ok());
    if number.is_none() && !code.is_empty() {
        message = format!("{code}: {message}");
    }
    error.insert("code".to_owned(), number.unwrap_or(REFUSED).into());
    error.insert("message".to_owned(), message.into());
    Value::Object(error)
}

/// The text without a byte order mark and the sequences for a terminal before it, such as the title of its
/// window.
fn without_sequences(text: &str) -> &str {
    let mut text = text.trim_start_matches('\u{feff}').trim_start();
    while let Some(sequence) = text.strip_prefix('\u{1b}') {
        let end = match sequence.as_bytes().first() {
            // OSC, up to BEL or ESC \.
            Some(b']') => match (sequence.find('\u{7}'), sequence.find("\u{1b}\\")) {
                (Some(bell), None) => bell + 1,
                (Some(bell), Some(end)) if bell < end => bell + 1,
                (_, Some(end)) => end + 2,
                (None, None) => return text,
            },
            // CSI, up to its last byte.
            Some(b'[') => {
                match sequence.bytes().skip(1).position(|it| (0x40..0x7f).contains(&it)) {
                    Some(end) => end + 2,
                    None => return text,
                }
            }
            Some(_) => 1,
            None => return text,
        };
        text = sequence.get(end..).unwrap_or_default().trim_start();
    }
    text
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
        assert_eq!(said(Some(json!({ "x": 1 }))), "Internal error: {\"x\":1}");
        assert_eq!(
            said(Some(json!({ "message": "no key", "key": "A" }))),
            "Internal error: {\"message\":\"no key\",\"key\":\"A\"}"
        );
        for nothing in [json!(null), json!({}), json!("")] {
            assert_eq!(said(Some(nothing)), "Internal error");
        }
    }

    #[test]
    fn lines_of_careless_programs_are_read() {
        let answer = |result| RpcMessage::Response { id: json!(1), result };
        let done = || answer(Ok(json!({ "a": 1 })));
        let failed = |code, message: &str| answer(Err(RpcError::new(code, message)));
        let note =
            || RpcMessage::Notification { method: "n".to_owned(), params: json!("\u{fffd}") };
        for (line, messages) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#, vec![done()]),
            (r#"{"id":1,"result":{"a":1},"error":null}"#, vec![done()]),
            (r#"[{"jsonrpc":"2.0","id":1,"result":{"a":1}}]"#, vec![done()]),
            (
                r#"[{"id":1,"result":{"a":1}},{"method":"n","params":"\ude00"}]"#,
                vec![done(), note()],
            ),
            (r#"{"jsonrpc":"2.0","method":"n","params":"\ud83d"}"#, vec![note()]),
            ("\u{1b}]0;agent\u{7}{\"id\":1,\"result\":{\"a\":1}}", vec![done()]),
            ("\u{1b}]0;agent\u{1b}\\\u{1b}[?25l {\"id\":1,\"result\":{\"a\":1}}", vec![done()]),
            ("\u{feff}{\"id\":1,\"result\":{\"a\":1}}", vec![done()]),
            (r#"{"id":1,"error":{"code":"-32000","message":"no"}}"#, vec![failed(-32_000, "no")]),
            (
                r#"{"id":1,"error":{"code":"E401","message":"no"}}"#,
                vec![failed(REFUSED, "E401: no")],
            ),
            (r#"{"id":1,"error":{"message":"no"}}"#, vec![failed(REFUSED, "no")]),
            (r#"{"id":1,"error":"no"}"#, vec![failed(REFUSED, "no")]),
        ] {
            let read = read_line(line.as_bytes(), RpcMessage::from_line);
            assert_eq!(read, LineRead::Messages(messages), "{line}");
        }
        for line in [
            "Loading…",
            "{not json",
            "[]",
            "7",
            "{}",
            r#"{"jsonrpc":"2.0"}"#,
            r#"{"level":"info"}"#,
            "\u{1b}[2J",
        ] {
            assert_eq!(
                read_line(line.as_bytes(), RpcMessage::from_line),
                LineRead::Other,
                "{line}"
            );
        }
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"resu"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":'b'}}"#,
            r#"{"jsonrpc":"2.0","id":{},"result":1}"#,
            r#"[{"jsonrpc":"2.0","id":1,"result":1},7]"#,
        ] {
            let read = read_line(line.as_bytes(), RpcMessage::from_line);
            assert!(matches!(read, LineRead::Unreadable(_)), "{line}: {read:?}");
        }
    }
}
