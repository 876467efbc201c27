//! The rules of strict servers: what a chat template of Mistral or Gemma, the API's own checks, DeepSeek
//! and Gemini refuse in a history.

use serde_json::{Value, json};

/// Adds the fields that this server wants back to a message of its model.
pub fn adorn(message: &mut Value) {
    message["reasoning_content"] = json!(thought(message));
    for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
        let name = call["function"]["name"].as_str().unwrap_or_default().to_owned();
        call["extra_content"] = json!({ "google": { "thought_signature": signature(&name) } });
    }
}

fn thought(message: &Value) -> String {
    let text = message["content"].as_str().unwrap_or_default();
    let calls = message["tool_calls"].as_array().map_or(0, Vec::len);
    format!("{} bytes and {calls} calls", text.len())
}

fn signature(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().map(plain).collect()
}

/// Why this server refuses the history of a request; `None`: it does not.
pub fn refusal(body: &Value) -> Option<String> {
    let messages = body["messages"].as_array()?;
    let said = messages.iter().skip_while(|message| message["role"] == "system");
    let said: Vec<&Value> = said.collect();
    let refused = |at: usize, why: &str| Some(format!("message {at}: {why}"));
    let mut pending: Vec<&str> = Vec::new();
    for (at, message) in said.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let before = at.checked_sub(1).and_then(|at| said[at]["role"].as_str()).unwrap_or("system");
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if pending.is_empty() || pending.remove(0) != id {
                return refused(at, "a result that no call before it waits for");
            }
            continue;
        }
        if !pending.is_empty() {
            return refused(at, "a call before it has no result");
        }
        match (before, role) {
            ("system" | "assistant", "user") | ("user" | "tool", "assistant") => {}
            _ => return refused(at, "roles must alternate"),
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let name = call["function"]["name"].as_str().unwrap_or_default();
            let id = call["id"].as_str().unwrap_or_default();
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
                return refused(at, "the name of a function does not fit its pattern");
            }
            if id.is_empty() || id.len() > 40 {
                return refused(at, "the id of a call is too long");
            }
            if call["extra_content"]["google"]["thought_signature"] != json!(signature(name)) {
                return refused(at, "a call lacks its signature, which is missing");
            }
            pending.push(id);
        }
        let is_own = role == "assistant" && message["content"] != "(continued)";
        if is_own && message["reasoning_content"] != json!(thought(message)) {
            return refused(at, "what was thought must be passed back");
        }
    }
    match pending.is_empty() {
        true => None,
        false => Some("the last call has no result".to_owned()),
    }
}
