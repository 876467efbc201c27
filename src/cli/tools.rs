//! `roundtable tools`: what MCP servers offer. The servers are started, and end with the command.

use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::exit::{Done, Exit};
use super::launch::{needed_permission, overrides, read_scenario, save_permission};
use super::run::RunArgs;
use super::streams;
use super::streams::{StreamStyle, print_message, refuse};
use crate::base::refused::Refused;
use crate::base::visible::visible;
use crate::host::config::user_config;
use crate::host::trust::{SeenToolsFile, Trust};
use crate::host::{Dirs, prepare};
use crate::run::servers::Listing;
use crate::scenario::read::suggest_name;
use crate::scenario::tools::mcp::{McpServerSpec, full_name, model_name};
use crate::words::format;
use crate::words::measure::{columns, wrap_within};
use crate::words::styled::StyleRole;

/// Hex digits of a pin that are shown.
const PIN_DIGITS: usize = 8;
/// Columns of a line.
const WIDTH: usize = 100;

/// Arguments of `roundtable tools`.
#[derive(Debug, Clone, Default, Args)]
pub struct ToolsArgs {
    /// A scenario: its servers; without one and without --mcp, those of the configuration
    pub scenario: Option<String>,
    /// Only this server
    #[arg(long, value_name = "NAME")]
    pub mcp: Option<String>,
    /// Set a value of the scenario, as for run
    #[arg(long = "set", value_name = "PATH=VALUE", requires = "scenario")]
    pub set: Vec<String>,
    /// Allow what the scenario would do and accept tools that have changed, and remember it
    #[arg(long)]
    pub trust: bool,
    /// Print JSON: the definitions of the tools
    #[arg(long)]
    pub json: bool,
}

/// Starts the servers and prints what they list.
pub async fn run(args: &ToolsArgs, paint: StreamStyle) -> Done {
    let servers = servers(args)?;
    let (mut text, mut found, mut failed) = (String::new(), Vec::new(), false);
    for server in &servers {
        match prepare::list_tools(server).await {
            Ok(listing) => {
                let accepted =
                    args.trust.then(|| listing.accept_changes(&SeenToolsFile::of_user()));
                let is_accepted = matches!(accepted, Some(Ok(())));
                if let Some(Err(why)) = accepted {
                    failed = true;
                    refuse(&why, Exit::Stopped);
                }
                text.push_str(&lines(server, &listing, is_accepted, &paint));
                found.extend(listing.tools.iter().map(|tool| {
                    let mut value = tool.definition();
                    let full = full_name(&server.name, &tool.name);
                    value["server"] = json!(server.name);
                    value["model_name"] = json!(model_name(&full));
                    value["reads_only"] = json!(tool.reads_only);
                    value["state"] = json!(listing.state_of(tool));
                    value["pin"] = json!(tool.pin());
                    value["changes"] = json!(listing.changes_of(tool));
                    value
                }));
            }
            Err(why) => {
                failed = true;
                refuse(&why, Exit::Stopped);
            }
        }
    }
    let exit = if failed { Exit::Stopped } else { Exit::Ok };
    Ok(match args.json {
        true => {
            let text = serde_json::to_string_pretty(&Value::Array(found)).unwrap_or_default();
            streams::print(&(text + "\n"), exit)
        }
        false => streams::print(&text, exit),
    })
}

/// The servers to start. An error was printed.
fn servers(args: &ToolsArgs) -> Result<Vec<Arc<McpServerSpec>>, Exit> {
    let (mut servers, place): (Vec<_>, _) = match &args.scenario {
        None => (user_config().mcp.values().cloned().collect(), "the configuration".to_owned()),
        Some(named) => {
            overrides(&args.set).ok_or(Exit::Usage)?;
            let scenario = read_scenario(&RunArgs {
                scenario: named.clone(),
                set: args.set.clone(),
                // No model is called, so there need be no script.
                live: true,
                ..RunArgs::default()
            })
            .ok_or(Exit::Usage)?;
            let trust = Trust::saved_in(Dirs::find().map(|dirs| dirs.trusted()));
            if let Some(consent) = trust.needed_consent(&scenario, None) {
                if !args.trust {
                    for line in needed_permission(&scenario, &consent, false) {
                        print_message(&visible(&line));
                    }
                    return Err(Exit::Usage);
                }
                save_permission(&trust, &consent, &scenario);
                print_message(&visible(&format!("allowed, for {}:", consent.scope)));
                consent.would.iter().for_each(|line| print_message(&visible(&format!("  {line}"))));
            }
            (scenario.servers().cloned().collect(), scenario.name.to_string())
        }
    };
    let names: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
    if let Some(only) = &args.mcp {
        servers.retain(|server| server.name == *only);
        if servers.is_empty() {
            let help = suggest_name(only, names.iter().map(String::as_str));
            let why = Refused::new(format!("{place} has no MCP server {only}"));
            return Err(refuse(&why.help(help), Exit::Usage));
        }
    }
    if servers.is_empty() {
        let why = Refused::new(format!("{place} has no MCP server"));
        let help = "add [mcp.NAME] with a command or a url; roundtable doctor finds those of other programs";
        return Err(refuse(&why.help(help), Exit::Usage));
    }
    Ok(servers)
}

/// A server and its tools: name, whether it says that it only reads, what was seen of it, its pin, and the
/// beginning of its description. Below a tool that has changed: what is different.
fn lines(
    server: &McpServerSpec,
    listing: &Listing,
    is_accepted: bool,
    paint: &StreamStyle,
) -> String {
    let count = format::count_noun(listing.tools.len() as u64, "tool");
    let mut text = format!("{}: {count}\n", paint.role(StyleRole::Strong, &server.name));
    let name = |name: &str| visible(name).into_owned();
    let width = listing.tools.iter().map(|tool| columns(&name(&tool.name))).max().unwrap_or(0);
    for tool in &listing.tools {
        let shown = name(&tool.name);
        let gap = " ".repeat(width.saturating_sub(columns(&shown)));
        let reads = if tool.reads_only { "reads " } else { "      " };
        // A change asks first, also where the file allows the calls.
        let state = match listing.state_of(tool) {
            "changed" => "changed",
            _ if server.allows(&tool.name) => "allowed",
            state => state,
        };
        let pin = tool.pin();
        let pin = pin.get(..PIN_DIGITS).unwrap_or(&pin);
        let row = format!("  {shown}{gap}  {reads} {state:7}  {pin}  ");
        let room = WIDTH.saturating_sub(columns(&row)).max(20);
        let about = tool.description.lines().find(|line| !line.trim().is_empty());
        let about = first_columns(&visible(about.unwrap_or_default().trim()), room);
        text.push_str(format!("{row}{about}").trim_end());
        text.push('\n');
        let Some(changes) = listing.changes_of(tool) else { continue };
        let after = match is_accepted {
            true => "accepted: the next run uses it as it is now, and its calls ask again",
            false => "the next run asks whether to use it; --trust accepts it",
        };
        for line in changes.lines().chain([after]) {
            text.push_str(&format!("      {}\n", visible(line)));
        }
    }
    text
}

/// The beginning of a text.
fn first_columns(text: &str, width: usize) -> String {
    let (lines, is_cut) = wrap_within(text, width.saturating_sub(2), 1);
    let first = lines.into_iter().next().unwrap_or_default();
    if is_cut { format!("{} …", first.trim_end()) } else { first }
}
