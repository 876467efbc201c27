//! Agents of real frameworks that speak AG-UI, with models that are made up.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The interpreter with the frameworks; `None`: the tests have none.
pub fn agents_python() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("ROUNDTABLE_AG_UI") else {
        println!("SKIPPED: ROUNDTABLE_AG_UI does not say where the frameworks are");
        return None;
    };
    let python = PathBuf::from(folder).join("bin/python");
    assert!(python.exists(), "there is no {}", python.display());
    Some(python)
}

/// A server with an agent. It ends with the value.
pub struct AgentServer {
    child: Child,
    address: String,
}

impl AgentServer {
    /// Starts a script of `tests/senders`, which prints its port. `None`: the tests have no frameworks.
    pub fn start(script: &str) -> Option<Self> {
        let python = agents_python()?;
        let script = format!("{}/tests/senders/{script}", env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new(python);
        let command = command.arg(&script).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let mut port = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut port).expect("a line");
        let port: u16 = port.trim().parse().unwrap_or_else(|_| panic!("{script} has no port"));
        Some(Self { child, address: format!("http://127.0.0.1:{port}") })
    }

    /// The address of an agent.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }
}

impl Drop for AgentServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
