//! The real binary in a terminal of its own: bytes go in as a keyboard sends them, what comes out is
//! shown by a terminal emulator. Nothing waits for a fixed time; what never comes fails the test.

use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use vt100::{MouseProtocolMode, Parser};

use super::binary::Home;

/// How long anything may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// What has come from the program.
struct Output {
    parser: Parser,
    bytes: Vec<u8>,
    last: Instant,
    /// Nothing more comes: the program has ended, and all that it wrote has been read.
    ended: bool,
}

impl Output {
    /// Whether the screen is a whole frame: terminals show a synchronised update at once.
    fn is_whole(&self) -> bool {
        let last = |mark: &[u8]| self.bytes.windows(mark.len()).rposition(|bytes| bytes == mark);
        last(b"\x1b[?2026h") <= last(b"\x1b[?2026l")
    }

    /// What of the dashboard is left on the terminal.
    fn leaves(&self) -> Vec<&'static str> {
        let screen = self.parser.screen();
        let text = String::from_utf8_lossy(&self.bytes);
        let count = |code| text.matches(code).count();
        let last = text.rfind("\u{1b}]2;").map(|at| text[at..].starts_with("\u{1b}]2;\u{1b}\\"));
        let titles = count("\u{1b}[22;2t") != count("\u{1b}]2;\u{1b}\\\u{1b}[23;2t");
        let left = [
            ("no cursor", screen.hide_cursor()),
            ("the alternate screen", screen.alternate_screen()),
            ("bracketed paste", screen.bracketed_paste()),
            ("the mouse", screen.mouse_protocol_mode() != MouseProtocolMode::None),
            ("focus events", text.rfind("\u{1b}[?1004h") > text.rfind("\u{1b}[?1004l")),
            ("a title", titles || last == Some(false)),
        ];
        left.into_iter().filter_map(|(what, is)| is.then_some(what)).collect()
    }
}

/// A terminal with the program in it.
pub struct Terminal {
    master: Box<dyn MasterPty + Send>,
    keys: Arc<Mutex<Box<dyn Write + Send>>>,
    output: Arc<(Mutex<Output>, Condvar)>,
    ended: mpsc::Receiver<ExitStatus>,
    before: String,
    pid: u32,
    pub home: Arc<Home>,
}

/// How to start the program.
pub struct Start<'a> {
    pub args: &'a [&'a str],
    pub cols: u16,
    pub rows: u16,
    pub env: &'a [(&'a str, &'a str)],
    /// A program that starts it, with its first arguments.
    pub under: &'a [&'a str],
    /// Bytes that wait for the program when it starts.
    pub typed: &'a [u8],
    /// What the terminal answers when it is asked for its attributes: as most do that know no other
    /// question. Nothing: it never answers.
    pub attributes: &'static [u8],
}

impl Default for Start<'_> {
    fn default() -> Self {
        Self {
            args: &[],
            cols: 120,
            rows: 36,
            env: &[],
            under: &[],
            typed: &[],
            attributes: b"\x1b[?6c",
        }
    }
}

impl Terminal {
    /// The dashboard, at 120x36.
    pub fn open() -> Self {
        Self::start(Start::default())
    }

    pub fn start(start: Start<'_>) -> Self {
        Self::start_in(&Arc::new(Home::new()), start)
    }

    /// Starts the program in a home in which it may have run before.
    pub fn start_in(home: &Arc<Home>, start: Start<'_>) -> Self {
        let home = Arc::clone(home);
        let Start { args, cols, rows, env, under, typed, attributes } = start;
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pty");
        let program = [env!("CARGO_BIN_EXE_roundtable")];
        let mut words = under.iter().chain(&program).chain(args);
        let mut command = CommandBuilder::new(words.next().expect("a program"));
        command.args(words);
        command.cwd(home.path());
        command.env_clear();
        for (name, value) in home.env() {
            command.env(name, value);
        }
        for (name, value) in [("TERM", "xterm-256color"), ("COLORTERM", "truecolor")] {
            command.env(name, value);
        }
        for (name, value) in env {
            command.env(name, value);
        }
        let before = modes(&*pair.master);
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let mut keys = pair.master.take_writer().expect("a writer");
        keys.write_all(typed).expect("typed");
        let keys = Arc::new(Mutex::new(keys));
        let answers = Arc::clone(&keys);
        let mut child = pair.slave.spawn_command(command).expect("the program starts");
        drop(pair.slave);
        let pid = child.process_id().expect("a process");

        let output = Output {
            parser: Parser::new(rows, cols, 0),
            bytes: Vec::new(),
            last: Instant::now(),
            ended: false,
        };
        let output = Arc::new((Mutex::new(output), Condvar::new()));
        let shared = Arc::clone(&output);
        thread::spawn(move || {
            let mut chunk = [0; 65536];
            // The end of the pty is an error on Linux and no bytes elsewhere.
            let mut is_asked = false;
            while let Ok(read @ 1..) = reader.read(&mut chunk) {
                let mut output = shared.0.lock().expect("a lock");
                output.parser.process(&chunk[..read]);
                output.bytes.extend_from_slice(&chunk[..read]);
                output.last = Instant::now();
                shared.1.notify_all();
                // Asked once; the question may come in two reads.
                if !is_asked && output.bytes.windows(3).any(|some| some == b"\x1b[c") {
                    is_asked = true;
                    drop(output);
                    let _ = answers.lock().expect("a lock").write_all(attributes);
                }
            }
            shared.0.lock().expect("a lock").ended = true;
            shared.1.notify_all();
        });
        let (end, ended) = mpsc::channel();
        thread::spawn(move || {
            let _ = end.send(child.wait().expect("it ends"));
        });
        Self { master: pair.master, keys, output, ended, before, pid, home }
    }

    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.0.lock().expect("a lock")
    }

    /// Waits until the screen is as it should be.
    pub fn sees_that(&self, what: &str, is: impl Fn(&vt100::Screen) -> bool) -> String {
        let waiting = self.output();
        let (output, late) = self
            .output
            .1
            .wait_timeout_while(waiting, PATIENCE, |output| {
                !(output.is_whole() && is(output.parser.screen()))
            })
            .expect("a lock");
        let text = output.parser.screen().contents();
        assert!(!late.timed_out(), "never on the screen: {what}\n{text}");
        text
    }

    /// Waits until the screen shows a text.
    pub fn sees(&self, text: &str) -> String {
        self.sees_that(text, |screen| screen.contents().contains(text))
    }

    /// Waits until the screen shows a text no more.
    pub fn loses(&self, text: &str) -> String {
        let what = format!("anything without {text}");
        self.sees_that(&what, |screen| !screen.contents().contains(text))
    }

    /// Looks at the screen as it is now.
    pub fn with_screen(&self, look: impl FnOnce(&vt100::Screen)) {
        look(self.output().parser.screen());
    }

    /// The present contents of the screen.
    pub fn text(&self) -> String {
        self.output().parser.screen().contents()
    }

    /// Everything that was written so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.output().bytes.clone()
    }

    /// Waits until these bytes were written.
    pub fn writes(&self, wanted: &[u8]) {
        let has = |output: &Output| output.bytes.windows(wanted.len()).any(|some| some == wanted);
        let (output, late) = self
            .output
            .1
            .wait_timeout_while(self.output(), PATIENCE, |output| !has(output))
            .expect("a lock");
        drop(output);
        assert!(!late.timed_out(), "never written: {}", String::from_utf8_lossy(wanted));
    }

    /// Sends bytes as a keyboard does.
    pub fn press(&mut self, keys: &str) {
        let mut tty = self.keys.lock().expect("a lock");
        tty.write_all(keys.as_bytes()).and_then(|()| tty.flush()).expect("it listens");
        self.output().last = Instant::now();
    }

    /// A click of the left button, from zero.
    pub fn click(&mut self, col: u16, row: u16) {
        let (col, row) = (col + 1, row + 1);
        self.press(&format!("\u{1b}[<0;{col};{row}M\u{1b}[<0;{col};{row}m"));
    }

    /// Pulls the window to another size.
    pub fn resize(&self, cols: u16, rows: u16) {
        self.output().parser.screen_mut().set_size(rows, cols);
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        self.master.resize(size).expect("resized");
    }

    /// Waits until nothing has been written or pressed for this long; how many bytes there were.
    pub fn quiet_for(&self, time: Duration) -> usize {
        let limit = Instant::now() + PATIENCE;
        let mut output = self.output();
        loop {
            let silent = output.last.elapsed();
            if silent >= time {
                return output.bytes.len();
            }
            assert!(Instant::now() < limit, "never quiet");
            output = self.output.1.wait_timeout(output, time - silent).expect("a lock").0;
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let sent = std::process::Command::new("kill")
            .args(["-s", name, &self.pid.to_string()])
            .status()
            .expect("kill");
        assert!(sent.success());
    }

    /// The state letter of the process (Linux): `T` is stopped.
    #[cfg(target_os = "linux")]
    pub fn waits_for_state(&self, letter: char) {
        let limit = Instant::now() + PATIENCE;
        loop {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).expect("alive");
            let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next());
            if state == Some(letter) {
                return;
            }
            assert!(Instant::now() < limit, "in state {state:?}, not {letter}");
            thread::yield_now();
        }
    }

    /// Waits for the end of the program and gives its exit code; the terminal must be as it was.
    pub fn ends(&self) -> u32 {
        let status = self.ended.recv_timeout(PATIENCE);
        self.left_with(status.unwrap_or_else(|_| panic!("it does not end\n{}", self.text())))
    }

    /// Presses a key again and again until the program ends, as an impatient user does; then as
    /// [`ends`](Self::ends).
    pub fn ends_on(&mut self, key: &str) -> u32 {
        let limit = Instant::now() + PATIENCE;
        loop {
            // It may have ended since: its terminal then takes no more keys.
            let mut tty = self.keys.lock().expect("a lock");
            let _ = tty.write_all(key.as_bytes()).and_then(|()| tty.flush());
            drop(tty);
            if let Ok(status) = self.ended.recv_timeout(Duration::from_millis(300)) {
                return self.left_with(status);
            }
            assert!(Instant::now() < limit, "it does not end\n{}", self.text());
        }
    }

    /// The exit code of the program that has ended.
    fn left_with(&self, status: ExitStatus) -> u32 {
        // What it wrote last may still be on its way when it has ended.
        let waiting = self.output();
        let late = self.output.1.wait_timeout_while(waiting, PATIENCE, |output| !output.ended);
        assert!(!late.expect("a lock").1.timed_out(), "somebody else still has the terminal");
        self.sees_that("the normal screen", |screen| !screen.alternate_screen());
        self.is_as_it_was();
        status.exit_code()
    }

    /// Waits until nothing of the dashboard is left: screen, cursor, mouse, paste, modes. Its last bytes may
    /// still be on their way.
    pub fn is_as_it_was(&self) {
        let waiting = self.output();
        let leaves = |output: &mut Output| !output.leaves().is_empty();
        let (output, _) =
            self.output.1.wait_timeout_while(waiting, PATIENCE, leaves).expect("a lock");
        let left = output.leaves();
        drop(output);
        assert!(left.is_empty(), "the program leaves {left:?}");
        assert_eq!(modes(&*self.master), self.before, "the modes of the line");
    }
}

impl Drop for Terminal {
    /// A test that fails leaves nothing running.
    fn drop(&mut self) {
        if self.ended.try_recv().is_err() {
            let pid = self.pid.to_string();
            let _ = std::process::Command::new("kill").args(["-s", "KILL", &pid]).output();
        }
    }
}

fn modes(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios().expect("a terminal"))
}
