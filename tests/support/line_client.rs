//! A client that speaks lines of JSON-RPC with the program, over its standard input and output.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{ChildStdin, ExitStatus, Stdio};

use serde_json::{Value, json};

use super::binary::{Home, Running};

/// The interpreter with an official SDK, in the folder that this variable names; `None`: the tests have none.
pub fn sdk_python(variable: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os(variable) else {
        println!("SKIPPED: {variable} does not say where the SDK is");
        return None;
    };
    let python = PathBuf::from(folder).join("py/bin/python");
    assert!(python.exists(), "there is no {}", python.display());
    Some(python)
}

/// A client and the program that serves it.
pub struct LineClient {
    server: Running,
    stdin: Option<ChildStdin>,
    last: u64,
}

impl LineClient {
    /// Starts the program, and says nothing.
    pub fn start(home: &Home, args: &[&str]) -> Self {
        let mut server = Running::start(home.command(args).stdin(Stdio::piped()));
        let stdin = Some(server.stdin());
        Self { server, stdin, last: 0 }
    }

    /// Writes a line.
    pub fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("open");
        // A server that has ended does not read.
        let _ = stdin.write_all(format!("{line}\n").as_bytes());
    }

    /// The next line of the server.
    pub fn line(&mut self) -> String {
        self.server.lines().next().expect("the server has ended").expect("a line")
    }

    /// The next message of the server; `None`: it has ended.
    pub fn read(&mut self) -> Option<Value> {
        let line = self.server.lines().next()?.expect("a line");
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }

    /// Sends a request, and returns its number.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.write(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(),
        );
        id
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Answers a request of the server.
    pub fn respond(&mut self, request: &Value, result: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string());
    }

    pub fn server(&self) -> &Running {
        &self.server
    }

    /// Closes the input, and waits for the end of the server.
    pub fn end(mut self) -> (ExitStatus, String, String) {
        self.stdin = None;
        self.server.end()
    }

    /// Waits for the end of the server; the input stays open.
    pub fn wait(mut self) -> (ExitStatus, String, String) {
        let stdin = self.stdin.take();
        let ended = self.server.end();
        drop(stdin);
        ended
    }
}
