//! A real NATS server for a test, on ports and in a folder of its own.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Names the server's program; else it is found in `PATH`.
const PROGRAM: &str = "ROUNDTABLE_NATS_SERVER";

/// Names the program of a server of version 2.9.
const OLD_PROGRAM: &str = "ROUNDTABLE_NATS_OLD_SERVER";

/// How long a server may take to start on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a server may store.
const FILE_LIMIT: &str = "1GB";

/// A running server. It ends with the value.
pub struct NatsServer {
    folder: TempDir,
    port: u16,
    program: PathBuf,
    child: Option<Child>,
    more: String,
    file_limit: String,
}

/// The server's program; `None`, with a message, if it is missing; in CI that is an error.
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

/// A port that is free now.
pub fn free_port() -> u16 {
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
        let mut server = Self::prepare(program()?, more);
        server.start_anywhere();
        Some(server)
    }

    /// Starts a server of version 2.9; `None`: there is no program, and the test is skipped.
    pub fn start_old() -> Option<Self> {
        let Some(program) = std::env::var_os(OLD_PROGRAM) else {
            eprintln!("SKIPPED: no nats-server of version 2.9; set {OLD_PROGRAM}");
            return None;
        };
        let mut server = Self::prepare(program.into(), "");
        server.start_anywhere();
        Some(server)
    }

    fn prepare(program: PathBuf, more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (more, file_limit) = (more.to_owned(), FILE_LIMIT.to_owned());
        Self { folder, port: free_port(), program, child: None, more, file_limit }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// From the next start on it stores no more than this, such as `64KB`.
    pub fn limit_files(&mut self, limit: &str) {
        self.file_limit = limit.to_owned();
    }

    /// Starts it at a port that no other program takes meanwhile.
    fn start_anywhere(&mut self) {
        self.begin();
        while !self.is_ready() {
            self.port = free_port();
            self.begin();
        }
    }

    /// Starts it again, with its data, at its port.
    pub fn restart(&mut self) {
        self.begin();
        self.wait_until_it_answers();
    }

    /// Starts it again, and does not wait for it.
    pub fn begin(&mut self) {
        self.kill();
        let config = self.path().join("server.conf");
        // Versions before 2.10 know no interval.
        let is_old = std::env::var_os(OLD_PROGRAM).is_some_and(|it| self.program == it);
        let sync = if is_old { "" } else { "sync_interval: always, " };
        let text = format!(
            "listen: \"127.0.0.1:{}\"\nmax_payload: 2MB\njetstream {{ store_dir: {:?}, {sync}max_file_store: {} }}\n{}\n",
            self.port,
            self.path().join("data"),
            self.file_limit,
            self.more,
        );
        std::fs::write(&config, text).expect("written");
        let log = std::fs::File::create(self.path().join("log")).expect("a file");
        let child = Command::new(&self.program)
            .arg("-c")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the server starts");
        self.child = Some(child);
    }

    /// Waits until a client can connect.
    pub fn wait_until_it_answers(&mut self) {
        // A connection of another test may have its port for a moment.
        while !self.is_ready() {
            self.begin();
        }
    }

    /// Waits until it is ready; `false`: it has ended. What answers at its port may be another server.
    fn is_ready(&mut self) -> bool {
        let began = Instant::now();
        loop {
            if self.log().contains("Server is ready") && TcpStream::connect(self.address()).is_ok()
            {
                return true;
            }
            if self
                .child
                .as_mut()
                .is_none_or(|child| child.try_wait().is_ok_and(|end| end.is_some()))
            {
                let log = self.log();
                assert!(log.contains("address already in use"), "the server has ended: {log}");
                return false;
            }
            assert!(began.elapsed() < PATIENCE, "the server does not answer: {}", self.log());
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

    /// Its host and port.
    pub fn address(&self) -> (&'static str, u16) {
        ("127.0.0.1", self.port)
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// What it has logged since its last start.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path().join("log")).unwrap_or_default()
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}
