//! A client of `roundtable acp` that speaks lines.

use std::ops::{Deref, DerefMut};
use std::process::ExitStatus;

use serde_json::{Value, json};

use super::binary::Home;
use super::line_client::LineClient;

/// A client and its agent.
pub struct AcpClient {
    client: LineClient,
    /// The updates so far.
    pub updates: Vec<Value>,
}

impl Deref for AcpClient {
    type Target = LineClient;

    fn deref(&self) -> &LineClient {
        &self.client
    }
}

impl DerefMut for AcpClient {
    fn deref_mut(&mut self) -> &mut LineClient {
        &mut self.client
    }
}

/// The part of a prompt that is a text.
pub fn text(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

impl AcpClient {
    /// Starts an agent and says hello.
    pub fn start(home: &Home, args: &[&str]) -> Self {
        let client = LineClient::start(home, &[&["acp"], args].concat());
        let mut client = Self { client, updates: Vec::new() };
        let hello =
            json!({ "protocolVersion": 1, "clientInfo": { "name": "lines", "version": "1" } });
        let hello = client.request("initialize", hello);
        assert_eq!(hello["result"]["agentInfo"]["name"], "roundtable", "{hello}");
        client
    }

    /// Opens a session, and returns its id.
    pub fn open(&mut self) -> String {
        let opened = self.request("session/new", json!({ "cwd": "/", "mcpServers": [] }));
        opened["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned()
    }

    /// Sends a prompt.
    pub fn begin(&mut self, session: &str, prompt: &str) -> u64 {
        self.send("session/prompt", json!({ "sessionId": session, "prompt": text(prompt) }))
    }

    /// The next message that is no update.
    pub fn next(&mut self) -> Value {
        loop {
            let message = self.read().expect("the agent has ended");
            if message["method"] != "session/update" {
                return message;
            }
            self.updates.push(message["params"].clone());
        }
    }

    /// The response to a request.
    pub fn reply(&mut self, id: u64) -> Value {
        let message = self.next();
        assert_eq!((&message["id"], &message["method"]), (&json!(id), &Value::Null), "{message}");
        message
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.reply(id)
    }

    /// Sends a prompt, and returns why it ended.
    pub fn prompt(&mut self, session: &str, prompt: &str) -> String {
        let id = self.begin(session, prompt);
        let reply = self.reply(id);
        reply["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
    }

    /// The next message is a request for permission.
    pub fn permission(&mut self) -> Value {
        let asked = self.next();
        assert_eq!(asked["method"], "session/request_permission", "{asked}");
        asked
    }

    /// Answers a request for permission with this option.
    pub fn select(&mut self, asked: &Value, option: &str) {
        let outcome = json!({ "outcome": "selected", "optionId": option });
        self.respond(asked, json!({ "outcome": outcome }));
    }

    /// The updates of this kind so far.
    pub fn of_kind(&self, kind: &str) -> Vec<Value> {
        let updates = self.updates.iter().map(|params| params["update"].clone());
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// What the agent has said so far.
    pub fn said(&self) -> String {
        let chunks = self.of_kind("agent_message_chunk");
        chunks.iter().map(|chunk| chunk["content"]["text"].as_str().expect("a text")).collect()
    }

    /// Closes the input, and waits for the end of the agent.
    pub fn end(self) -> (ExitStatus, String, String) {
        self.client.end()
    }

    /// Waits for the end of the agent; the input stays open.
    pub fn wait(self) -> (ExitStatus, String, String) {
        self.client.wait()
    }
}
