//! A NATS server, a home, and runners of the real binary that play runs over it.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::binary::{Ended, Home, Running, end, without_times};
use super::counting_endpoint::CountingEndpoint;
use super::nats::NatsServer;

/// How long anything may take on a machine that is busy with other tests.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A live run needs a cost limit, and a cost limit a price.
pub const LIVE: [&str; 10] = [
    "--live",
    "--set",
    "budget.max_cost_usd=5",
    "--set",
    "model.prices.prompt_usd_per_million=1",
    "--set",
    "model.prices.completion_usd_per_million=1",
    "--set",
    "tools.llm.timeout_s=5",
    "--trust",
];

/// A server with what runs need, and a home.
pub struct RunnerTeam {
    pub server: NatsServer,
    pub home: Home,
}

/// A runner, and what it said.
pub struct TestRunner {
    pub process: Running,
}

impl TestRunner {
    /// Waits until it says something with these words.
    pub fn until(&mut self, words: &str) -> String {
        let mut said = String::new();
        loop {
            let line = self.process.complains();
            assert!(!line.is_empty(), "the runner ended before it said `{words}`: {said}");
            if line.contains(words) {
                return line;
            }
            said.push_str(&line);
        }
    }
}

impl Drop for TestRunner {
    fn drop(&mut self) {
        self.process.kill();
    }
}

impl RunnerTeam {
    /// `None`, with a message, if there is no server.
    pub fn start() -> Option<Self> {
        let team = Self { server: NatsServer::start()?, home: Home::new() };
        let made = team.home.run(&["cluster", "init", "--on", &team.server.url()]);
        assert_eq!(made.code, Some(0), "{made:?}");
        Some(team)
    }

    /// A runner that takes runs of others over after a second.
    pub fn runner(&self, name: &str, endpoint: Option<&CountingEndpoint>) -> TestRunner {
        self.runner_with(name, endpoint, |_| ())
    }

    /// The same, after changes to its command.
    pub fn runner_with(
        &self,
        name: &str,
        endpoint: Option<&CountingEndpoint>,
        change: impl FnOnce(&mut Command),
    ) -> TestRunner {
        runner_at(&self.home, &self.server.url(), name, |command| {
            if let Some(endpoint) = endpoint {
                command.envs(endpoint.env());
            }
            change(command);
        })
    }

    pub fn args<'a>(&self, url: &'a str, args: &[&'a str]) -> Vec<&'a str> {
        [&["run"], args, &["--on", url]].concat()
    }

    /// Hands a run over and follows it to its end.
    pub fn run(&self, args: &[&str]) -> Ended {
        let url = self.server.url();
        end(&mut self.home.command(&self.args(&url, args)))
    }

    /// Hands a run over and follows it.
    pub fn follow(&self, args: &[&str]) -> Running {
        let url = self.server.url();
        let mut command = self.home.command(&self.args(&url, args));
        Running::start(&mut command)
    }
}

/// A runner of the servers at this address, after changes to its command.
pub fn runner_at(
    home: &Home,
    url: &str,
    name: &str,
    change: impl FnOnce(&mut Command),
) -> TestRunner {
    let args = ["runner", "--on", url, "--name", name, "--takeover-after", "1s", "--allow", "live"];
    let mut command = home.command(&args);
    change(&mut command);
    let mut runner = TestRunner { process: Running::start(&mut command) };
    runner.until("plays runs of pool");
    runner
}

/// The outcome of a scenario that is played here, of its whole session if it has one.
pub fn local(scenario: &str) -> Value {
    let ran = Home::new().run(&["run", scenario, "--instant", "--no-store", "--format", "json"]);
    without_times(&ran.json())
}

/// The places of each run are contiguous, it ends once, and the outcome is that of an undisturbed run.
pub fn check_log(lines: &[Value], expected: &Value) {
    let (outcome, events) = lines.split_last().expect("an outcome");
    for run in events.chunk_by(|_, next| next["kind"] != "run.started") {
        for (place, event) in run.iter().enumerate() {
            assert_eq!(event["seq"], place, "{event}");
        }
        let ends = run.iter().filter(|event| event["kind"] == "run.closed").count();
        assert_eq!(ends, 1);
    }
    let mut outcome = without_times(outcome);
    for key in ["v", "run", "kind"] {
        outcome.as_object_mut().expect("an object").remove(key);
    }
    assert_eq!(outcome, *expected);
}

pub fn lines_of(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}
