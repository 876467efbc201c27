//! Three NATS servers of one cluster, on loopback, and what they say of their streams.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::nats::{NatsServer, free_port};

/// How long the servers may take to agree on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time between two looks at the servers.
const LOOK: Duration = Duration::from_millis(20);

/// The servers. They end with the value.
pub struct NatsGroup {
    servers: Vec<(NatsServer, u16)>,
}

impl NatsGroup {
    /// Starts three servers; `None`: there is no program, and the test is skipped.
    pub fn start() -> Option<Self> {
        let routes: Vec<u16> = (0..3).map(|_| free_port()).collect();
        let to = |port: &u16| format!("\"nats://127.0.0.1:{port}\"");
        let all: Vec<String> = routes.iter().map(to).collect();
        let servers = routes.iter().enumerate().map(|(nth, route)| {
            let http = free_port();
            let more = format!(
                "server_name: {}\nhttp: \"127.0.0.1:{http}\"\n\
                 cluster {{ name: group, listen: \"127.0.0.1:{route}\", routes: [{}] }}",
                name(nth),
                all.join(", "),
            );
            NatsServer::start_with(&more).map(|server| (server, http))
        });
        let group = Self { servers: servers.collect::<Option<_>>()? };
        group.wait_for("a leader of the group that each server knows", || {
            let about: Vec<Value> = (0..3).filter_map(|nth| group.about(nth)).collect();
            let knows = |it: &Value| it["meta_cluster"]["leader"].is_string();
            about.len() == 3
                && about.iter().all(knows)
                && about.iter().any(|it| are_current(&it["meta_cluster"]))
        });
        Some(group)
    }

    /// Their addresses, in one.
    pub fn url(&self) -> String {
        let urls: Vec<String> = self.servers.iter().map(|(server, _)| server.url()).collect();
        urls.join(",")
    }

    /// Ends a server at once, as a crash does.
    pub fn kill(&mut self, nth: usize) {
        self.servers[nth].0.kill();
    }

    /// Starts a server again, with its data.
    pub fn restart(&mut self, nth: usize) {
        self.servers[nth].0.restart();
    }

    /// Waits until a stream has a leader; which server that is.
    pub fn leader_of(&self, stream: &str) -> usize {
        let mut leader = None;
        self.wait_for(&format!("a leader of {stream}"), || {
            leader = (0..3).find(|nth| self.led_by(*nth, stream).is_some());
            leader.is_some()
        });
        leader.expect("found")
    }

    /// Waits until all servers have the stored messages of a stream.
    pub fn wait_until_equal(&self, stream: &str) {
        self.wait_for(&format!("the copies of {stream}"), || {
            (0..3).filter_map(|nth| self.led_by(nth, stream)).any(|group| are_current(&group))
        });
    }

    /// Waits until no server leads a stream.
    pub fn wait_until_stalled(&self, stream: &str) {
        self.wait_for(&format!("no leader of {stream}"), || {
            (0..3).all(|nth| self.led_by(nth, stream).is_none())
        });
    }

    /// What a server says of the copies of a stream, if it leads it.
    fn led_by(&self, nth: usize, stream: &str) -> Option<Value> {
        let about = self.about(nth)?;
        let accounts = about["account_details"].as_array()?.iter();
        let mut streams = accounts.filter_map(|it| it["stream_detail"].as_array()).flatten();
        let found = streams.find(|it| it["name"] == stream)?;
        let group = &found["cluster"];
        (group["leader"] == name(nth)).then(|| group.clone())
    }

    /// What a server says of its streams; `None`: it does not answer.
    fn about(&self, nth: usize) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.servers[nth].1)).ok()?;
        stream.write_all(b"GET /jsz?accounts=true&streams=true HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    fn wait_for(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let began = Instant::now();
        while !holds() {
            assert!(began.elapsed() < PATIENCE, "{what}: not in time");
            thread::sleep(LOOK);
        }
    }
}

/// Whether both other servers have what the leader has.
fn are_current(group: &Value) -> bool {
    let copies = group["replicas"].as_array().map_or(&[][..], Vec::as_slice);
    copies.len() == 2 && copies.iter().all(|copy| copy["current"] == true)
}

fn name(nth: usize) -> String {
    format!("server-{nth}")
}
