//! The rules of strict servers: what a chat template of Mistral or Gemma and the API's own checks refuse
//! in a history.

use serde_json::Value;

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
            pending.push(id);
        }
    }
    match pending.is_empty() {
        true => None,
        false => Some("the last call has no result".to_owned()),
    }
}
