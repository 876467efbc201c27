//! A real NATS server for a test, on ports and in a folder of its own.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Names the server's program; else it is found in `PATH`.
const PROGRAM: &str = "ROUNDTABLE_NATS_SERVER";

/// How long a server may take to start on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server. It ends with the value.
pub struct NatsServer {
    folder: TempDir,
    port: u16,
    child: Option<Child>,
    more: String,
}

/// The server's program. `None`: there is none, which is said; in CI it is an error.
fn program() -> Option<PathBuf> {
    let named = std::env::var_os(PROGRAM).map(PathBuf::from);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = named.or_else(|| {
        std::env::split_paths(&paths).map(|it| it.join("nats-server")).find(|it| it.is_file())
    });
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "no nats-server: set {PROGRAM}");
        eprintln!("SKIPPED: no nats-server in PATH; install it, or set {PROGRAM}");
    }
    found
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("bound").port()
}

impl NatsServer {
    /// Starts a server; `None`: there is no program, and the test is skipped.
    pub fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// Starts a server with more lines of configuration.
    pub fn start_with(more: &str) -> Option<Self> {
        program()?;
        let folder = tempfile::tempdir().expect("a folder");
        let more = more.to_owned();
        let mut server = Self { folder, port: free_port(), child: None, more };
        server.restart();
        Some(server)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts it again, with its data, at its port.
    pub fn restart(&mut self) {
        self.kill();
        let config = self.path().join("server.conf");
        let text = format!(
            "listen: \"127.0.0.1:{}\"\nmax_payload: 2MB\njetstream {{ store_dir: {:?}, sync_interval: always, \
             max_file_store: 1GB }}\n{}\n",
            self.port,
            self.path().join("data"),
            self.more,
        );
        std::fs::write(&config, text).expect("written");
        let log = std::fs::File::create(self.path().join("log")).expect("a file");
        let child = Command::new(program().expect("a program"))
            .arg("-c")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the server starts");
        self.child = Some(child);
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(began.elapsed() < PATIENCE, "the server does not answer");
            thread::yield_now();
        }
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}
