//! The programs that a listening proxy serves: on this machine a process, found by its connection; else an address.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A program that has sent requests.
#[derive(Debug)]
pub struct Caller {
    /// Its unique key.
    pub key: Arc<str>,
    /// Its name, for lists.
    pub name: String,
    process: Option<Process>,
}

/// A process: its number and its start, because numbers are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    number: u32,
    began: u64,
}

impl Caller {
    /// Whether its process is known; otherwise only its address is.
    pub fn is_process(&self) -> bool {
        self.process.is_some()
    }

    /// Whether its process has not ended; of an address: whether it has an open connection. `own`: the number of
    /// references besides those of its connections.
    pub fn is_alive(self: &Arc<Self>, own: usize) -> bool {
        match self.process {
            Some(process) => began(process.number) == Some(process.began),
            None => Arc::strong_count(self) > own,
        }
    }
}

/// The programs with open connections.
#[derive(Debug, Default)]
pub struct Callers(Mutex<HashMap<Arc<str>, Weak<Caller>>>);

impl Callers {
    /// The program at the other end of a connection.
    pub fn of(&self, remote: SocketAddr, own: SocketAddr) -> Arc<Caller> {
        let process = remote.ip().is_loopback().then(|| process_of(remote, own)).flatten();
        let key: Arc<str> = match process {
            Some(process) => format!("process {} {}", process.number, process.began).into(),
            None => format!("address {}", remote.ip()).into(),
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, caller| caller.strong_count() > 0);
        if let Some(caller) = known.get(&key).and_then(Weak::upgrade) {
            return caller;
        }
        let name = match process {
            Some(process) => name_of(process.number),
            None => remote.ip().to_string(),
        };
        let caller = Arc::new(Caller { key: Arc::clone(&key), name, process });
        known.insert(key, Arc::downgrade(&caller));
        caller
    }
}

/// The process that has a connection, where the system tells it (Linux, the processes of this user).
fn process_of(remote: SocketAddr, own: SocketAddr) -> Option<Process> {
    let table = if remote.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
    let inode = inode_of(&std::fs::read_to_string(table).ok()?, remote, own)?;
    let wanted = format!("socket:[{inode}]");
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |number: &u32| {
        let files = std::fs::read_dir(format!("/proc/{number}/fd"));
        let mut files = files.into_iter().flatten().flatten();
        files.any(|file| std::fs::read_link(file.path()).is_ok_and(|to| to == Path::new(&wanted)))
    };
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    let number = numbers.into_iter().find(has)?;
    Some(Process { number, began: began(number)? })
}

/// The number of the socket with these two ends in a table of the kernel.
fn inode_of(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<u64> {
    let (local, remote) = (in_table(local), in_table(remote));
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_it = fields.next()? == local && fields.next()? == remote;
        fields.nth(6).filter(|_| is_it)?.parse().ok()
    })
}

/// An address as the kernel writes it: words of four bytes in the order of this machine.
fn in_table(addr: SocketAddr) -> String {
    let bytes = match addr.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = bytes.chunks_exact(4).map(|word| {
        let word: [u8; 4] = word.try_into().unwrap_or_default();
        format!("{:08X}", u32::from_ne_bytes(word))
    });
    format!("{}:{:04X}", words.collect::<String>(), addr.port())
}

/// The start of a process, in ticks of the kernel; `None`: it has ended.
fn began(number: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // Its name may have spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let is_gone = fields.next().is_some_and(|state| matches!(state, "Z" | "X"));
    fields.nth(18).filter(|_| !is_gone)?.parse().ok()
}

fn name_of(number: u32) -> String {
    let words = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
    let words = words.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    program_name(&words)
}

/// The name of a program: of an interpreter the script or the module that it executes, which says more, but
/// never a piece of code, which may have keys.
pub fn program_name(command: &[String]) -> String {
    const RUNNERS: [&str; 13] = [
        "python", "node", "uv", "poetry", "npx", "deno", "bun", "ruby", "sh", "bash", "zsh",
        "dash", "perl",
    ];
    const CODE: [&str; 7] = ["-c", "-e", "-p", "--eval", "--print", "eval", "--command"];
    let file = |text: &str| {
        let name = Path::new(text).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        name.unwrap_or_else(|| text.to_owned())
    };
    let program = command.first().map(|program| file(program)).unwrap_or_default();
    let mut words = command.iter().skip(1).map(String::as_str);
    if !RUNNERS.iter().any(|runner| program.starts_with(runner)) {
        return program;
    }
    let is_plain = |word: &&str| {
        word.chars().all(|c| c.is_alphanumeric() || "/\\._-@+".contains(c)) && word.contains('.')
    };
    while let Some(word) = words.next() {
        let is_code_of_shell = program.ends_with("sh")
            && word.strip_prefix('-').is_some_and(|flags| {
                flags.ends_with('c') && flags.chars().all(|flag| flag.is_ascii_alphabetic())
            });
        match word {
            code if CODE.contains(&code) || is_code_of_shell => break,
            "-m" => {
                let is_name =
                    |word: &&str| word.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
                return words.next().filter(is_name).map_or(program, str::to_owned);
            }
            word if word.starts_with('-') => {}
            word if is_plain(&word) => return file(word),
            _ => {}
        }
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_socket_by_its_ends() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1\n   \
                     1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 22 1\n";
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(inode_of(table, at(50_000), at(8_080)), Some(22));
        assert_eq!(inode_of(table, at(50_001), at(8_080)), None);
    }

    #[test]
    fn a_connection_tells_its_process() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let own = listener.local_addr().expect("its address");
        let client = std::net::TcpStream::connect(own).expect("a connection");
        let callers = Callers::default();
        let caller = callers.of(client.local_addr().expect("its address"), own);
        assert!(caller.is_alive(1));
        if cfg!(target_os = "linux") {
            let process = caller.process.expect("this process");
            assert_eq!(process.number, std::process::id());
        }
    }

    #[test]
    fn names_never_come_from_code() {
        for (command, name) in [
            ("python3 agents/desk.py --n 1", "desk"),
            ("python3 -u desk.py", "desk"),
            ("python -m agents.desk", "agents.desk"),
            ("python -c x=1.5;y=2", "python"),
            ("sh -c curl_http://a/v1?key=k1", "sh"),
            ("bash -lc ./run.sh?key=k1", "bash"),
            ("node -e fetch('a.example?key=k1')", "node"),
            ("uv run python desk.py", "desk"),
            ("npx tsx src/desk.ts", "desk"),
            ("./my_agent a.b", "my_agent"),
            ("python http://a.example/v1?key=k1", "python"),
        ] {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(program_name(&words), name, "{command}");
        }
    }
}
