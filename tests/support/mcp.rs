//! A client of `roundtable mcp` that speaks lines, and where the official SDK is.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::process::ExitStatus;

use serde_json::{Value, json};

use super::binary::Home;
use super::line_client;
use super::line_client::LineClient;

/// The interpreter with the official Python SDK; `None`: the tests have none.
pub fn sdk_python() -> Option<PathBuf> {
    line_client::sdk_python("ROUNDTABLE_MCP")
}

/// A client and its server.
pub struct McpClient {
    client: LineClient,
    /// The notes of progress so far.
    pub notes: Vec<Value>,
}

impl Deref for McpClient {
    type Target = LineClient;

    fn deref(&self) -> &LineClient {
        &self.client
    }
}

impl DerefMut for McpClient {
    fn deref_mut(&mut self) -> &mut LineClient {
        &mut self.client
    }
}

impl McpClient {
    /// Starts a server and says hello.
    pub fn start(home: &Home, options: &[&str]) -> Self {
        Self::start_with(home, options, json!({}))
    }

    /// A client with these capabilities.
    pub fn start_with(home: &Home, options: &[&str], capabilities: Value) -> Self {
        let mut client = Self::connect(home, options);
        let hello = client.request(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "clientInfo": { "name": "lines", "version": "1" },
            }),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "roundtable", "{hello}");
        client.notify("notifications/initialized", json!({}));
        client
    }

    /// Starts a server, and says nothing.
    pub fn connect(home: &Home, options: &[&str]) -> Self {
        let args = [&["mcp"], options].concat();
        Self { client: LineClient::start(home, &args), notes: Vec::new() }
    }

    /// Starts a call of a tool, with notes of progress.
    pub fn begin(&mut self, tool: &str, args: Value) -> u64 {
        let params = json!({ "name": tool, "arguments": args, "_meta": { "progressToken": "p" } });
        self.send("tools/call", params)
    }

    /// The reply to a request. Notes of progress before it are kept.
    pub fn reply(&mut self, id: u64) -> Value {
        loop {
            let message = self.read().expect("the server has ended");
            if message["method"] == "notifications/progress" {
                self.notes.push(message["params"].clone());
            } else if message["id"] == id {
                return message;
            } else {
                panic!("not a reply to {id}: {message}");
            }
        }
    }

    /// Waits for a note of progress.
    pub fn note(&mut self) -> Value {
        let message = self.read().expect("the server has ended");
        assert_eq!(message["method"], "notifications/progress", "{message}");
        self.notes.push(message["params"].clone());
        message["params"].clone()
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.reply(id)
    }

    /// Calls a tool, and returns its result.
    pub fn call(&mut self, tool: &str, args: Value) -> Value {
        let reply = self.request("tools/call", json!({ "name": tool, "arguments": args }));
        reply.get("result").unwrap_or_else(|| panic!("{reply}")).clone()
    }

    /// What a tool returns as data.
    pub fn data(&mut self, tool: &str, args: Value) -> Value {
        let result = self.call(tool, args);
        assert_eq!(result["isError"], false, "{result}");
        result["structuredContent"].clone()
    }

    /// Why a tool refuses.
    pub fn refusal(&mut self, tool: &str, args: Value) -> String {
        let result = self.call(tool, args);
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    /// Asks until this server's last run has these fields in a list, such as a status.
    pub fn wait_for_run(&mut self, is_so: impl Fn(&Value) -> bool) -> Value {
        loop {
            let row = self.data("list_runs", json!({ "limit": 1 }))["runs"][0].clone();
            if is_so(&row) {
                return row;
            }
        }
    }

    /// Closes the input, and waits for the end of the server.
    pub fn end(self) -> (ExitStatus, String, String) {
        self.client.end()
    }

    /// Waits for the end of the server; the input stays open.
    pub fn wait(self) -> (ExitStatus, String, String) {
        self.client.wait()
    }
}
