//! What a scenario needs of the machine that plays it, and what a runner allows: nothing that starts
//! programs, reads variables or files, reaches local networks or costs money, unless its command line allows it.

use crate::base::worded;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::base::refused::Refused;
use crate::host::models::sets_own_network;
use crate::scenario::Scenario;
use crate::scenario::spec::tool::Setting;
use crate::scenario::tools::ToolAction;
use crate::scenario::tools::agent::{AgentLink, OutsideAgent};
use crate::scenario::tools::command::CommandSpec;
use crate::scenario::tools::documents::{FolderSpec, PrivateHosts};
use crate::scenario::tools::mcp::{McpServerSpec, McpTransport};

/// Something that a runner may allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grant {
    /// Calls live models, within the cost limit of each run.
    Live,
    /// Starts programs.
    Command,
    /// Sends requests to services.
    Http,
    /// Reads variables of the environment.
    Env,
    /// Reaches local networks.
    PrivateNet,
    /// Reads folders of the machine.
    Folder,
}

worded! { Grant + ALL {
    Live = "live", Command = "command", Http = "http", Env = "env", PrivateNet = "private-net",
    Folder = "folder",
} }

impl Grant {
    /// What a scenario that needs it would do.
    fn would(self) -> &'static str {
        match self {
            Self::Live => "call live models",
            Self::Command => "start programs",
            Self::Http => "send requests to services",
            Self::Env => "read variables of the environment",
            Self::PrivateNet => "reach local networks",
            Self::Folder => "read folders",
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What a run of this scenario needs.
pub fn needed(scenario: &Scenario, live: bool) -> BTreeSet<Grant> {
    let mut needed = BTreeSet::new();
    if live {
        needed.insert(Grant::Live);
        if sets_own_network(scenario) {
            needed.insert(Grant::PrivateNet);
        }
    }
    for spec in scenario.tools.values() {
        match spec.action() {
            Some(ToolAction::Start(command)) => of_command(command, &mut needed),
            Some(ToolAction::Request(http) | ToolAction::Query(http)) => {
                of_address(&http.headers, http.allow_private, &mut needed);
            }
            Some(ToolAction::ReadFolder(folder)) => of_folder(folder, &mut needed),
            Some(ToolAction::ReadWeb(web)) => {
                needed.insert(Grant::Http);
                if web.allow_private != PrivateHosts::None {
                    needed.insert(Grant::PrivateNet);
                }
            }
            Some(ToolAction::Serve(server)) => of_server(server, &mut needed),
            Some(ToolAction::Employ(agent)) if live => of_agent(agent, &mut needed),
            Some(ToolAction::Employ(_)) | None => {}
        }
    }
    needed
}

/// An agent of another program, and the MCP servers that it starts.
fn of_agent(agent: &OutsideAgent, needed: &mut BTreeSet<Grant>) {
    match &agent.link {
        AgentLink::Acp(acp) => {
            of_command(&acp.command, needed);
            acp.servers.iter().for_each(|server| of_server(server, needed));
        }
        AgentLink::AgUi(ag_ui) => of_address(&ag_ui.headers, ag_ui.allow_private, needed),
    }
}

fn of_server(server: &McpServerSpec, needed: &mut BTreeSet<Grant>) {
    match &server.transport {
        McpTransport::Command(command) => of_command(command, needed),
        McpTransport::Url(url) => of_address(&url.headers, url.allow_private, needed),
        McpTransport::Configured => {
            needed.insert(Grant::Command);
        }
    }
}

fn of_command(command: &CommandSpec, needed: &mut BTreeSet<Grant>) {
    needed.insert(Grant::Command);
    if command.env.values().any(is_variable) {
        needed.insert(Grant::Env);
    }
}

fn is_variable(setting: &Setting) -> bool {
    matches!(setting, Setting::Env(_))
}

fn of_address(
    headers: &BTreeMap<String, Setting>,
    allow_private: bool,
    needed: &mut BTreeSet<Grant>,
) {
    needed.insert(Grant::Http);
    if headers.values().any(is_variable) {
        needed.insert(Grant::Env);
    }
    if allow_private {
        needed.insert(Grant::PrivateNet);
    }
}

/// The shipped corpus is part of the program.
fn of_folder(folder: &FolderSpec, needed: &mut BTreeSet<Grant>) {
    if folder.folder.is_some() {
        needed.insert(Grant::Folder);
    }
}

/// Whether a runner with these grants plays a run.
///
/// # Errors
/// It does not.
pub fn check(scenario: &Scenario, live: bool, allow: &BTreeSet<Grant>) -> Result<(), Refused> {
    let missing: Vec<Grant> = needed(scenario, live).difference(allow).copied().collect();
    if let [first, rest @ ..] = &missing[..] {
        let would = rest
            .iter()
            .fold(first.would().to_owned(), |text, grant| format!("{text}, {}", grant.would()));
        let words = missing.iter().map(|grant| grant.word()).collect::<Vec<_>>().join(",");
        let help = format!("start a runner with --allow {words}");
        return Err(Refused::new(format!("the scenario would {would}")).help(help));
    }
    if live && scenario.spending.max_cost_usd.is_none() {
        return Err(Refused::new("a live run needs a cost limit here").help(
            "set budget.max_cost_usd in the scenario, or hand it over with \
             --set budget.max_cost_usd=1",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{load, shipped};

    fn of(name: &str, set: &[&str]) -> Scenario {
        let found = shipped().iter().find(|it| it.name == name).expect("shipped");
        let set: Vec<_> = set.iter().map(|text| text.parse().expect("an override")).collect();
        load(found.text, found.origin(), &set).expect("a good scenario")
    }

    fn refusal(scenario: &Scenario, live: bool, allow: &BTreeSet<Grant>) -> Option<String> {
        check(scenario, live, allow).err().map(|why| format!("{why:#}"))
    }

    #[test]
    fn a_runner_allows_nothing_by_itself() {
        let none = BTreeSet::new();
        assert_eq!(refusal(&of("checkout-launch", &[]), false, &none), None);
        let services = of("real-services", &[]);
        let why = refusal(&services, false, &none).expect("refused");
        assert!(why.contains("--allow") && why.contains("http"), "{why}");
        assert_eq!(refusal(&services, false, &Grant::ALL.into()), None);
    }

    #[test]
    fn live_run_needs_permission_and_limit() {
        let (none, live) = (BTreeSet::new(), BTreeSet::from([Grant::Live]));
        let scenario = of("checkout-launch", &[]);
        assert!(refusal(&scenario, true, &none).expect("refused").contains("--allow live"));
        assert!(refusal(&scenario, true, &live).expect("refused").contains("max_cost_usd"));
        let limited = of("checkout-launch", &["budget.max_cost_usd=1"]);
        assert_eq!(refusal(&limited, true, &live), None);
        // A model server of the runner's own network.
        for address in ["http://127.0.0.1:8080/v1", "http://10.0.0.7/v1", "http://box.local/v1"] {
            let set = ["budget.max_cost_usd=1", &format!("model.base_url={address}")];
            let own = of("checkout-launch", &set);
            assert!(refusal(&own, true, &live).expect("refused").contains("private-net"));
            assert_eq!(refusal(&own, false, &none), None, "a scripted run calls nothing");
        }
    }
}
