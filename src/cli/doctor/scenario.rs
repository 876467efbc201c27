//! `roundtable doctor SCENARIO`: what applies to a live run of the scenario. Only MCP servers are started, and
//! only if the operator has allowed the scenario.

use std::sync::Arc;

use super::DoctorArgs;
use super::models::{key, not_asked, per_million, probe_finding};
use super::{Finding, Rating};
use crate::base::visible::visible;
use crate::cli::effective::{EffectiveSetting, OverriddenScenario};
use crate::cli::run::RunArgs;
use crate::cli::{effective, launch};
use crate::engine::ModelChoice;
use crate::host::models::LiveModels;
use crate::host::trust::Trust;
use crate::host::{Dirs, config, prepare};
use crate::model::endpoint::{Endpoint, SettingOrigin};
use crate::scenario::Override;
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::tool::ToolSpec;
use crate::scenario::tools::ToolAction;
use crate::scenario::tools::agent::AgentLink;
use crate::scenario::tools::mcp::McpServerSpec;
use crate::screen::form::quoted;
use crate::terminal::effects::models::{CallerModel, models_by_caller};
use crate::tool::command;
use crate::words::format;

/// Checks the named scenario. `None`: it cannot be run, and the error has already been printed.
pub async fn findings(named: &str, args: &DoctorArgs, models: &LiveModels) -> Option<Vec<Finding>> {
    let set = launch::overrides(&args.set)?;
    let scenario = launch::read_scenario(&RunArgs {
        scenario: named.to_owned(),
        live: true,
        set: args.set.clone(),
        ..RunArgs::default()
    })?;
    let asking = OverriddenScenario { scenario: &scenario, set: &set };
    let title =
        format!("{}: {} ({})", scenario.name, scenario.title, scenario.pattern.get().name());
    let mut findings = vec![Finding::good("scenario", title)];
    let all = models_by_caller(&scenario, args.model.as_deref());
    if all.is_empty() && scenario.pattern.get().outside_callers().is_empty() {
        let text = format!("a run of the pattern {} calls no model", scenario.pattern.get().name());
        findings.push(Finding::good("model", text));
    }
    findings.extend(all.iter().map(|one| caller_finding(one, args.live, &set)));
    let endpoints = distinct_endpoints(&all);
    let several = endpoints.len() > 1;
    for endpoint in &endpoints {
        findings.extend(key_and_price(endpoint, several, asking));
        findings.push(if args.live {
            probe_finding(models, endpoint).await
        } else {
            not_asked(endpoint)
        });
    }
    if let Some(first) = endpoints.first() {
        let timeout = effective::timeout(Some(asking), first);
        let text = format!("{}, from {}", timeout.text, timeout.origin);
        findings.push(Finding::good("timeout", text));
        findings.extend(request_settings(asking));
    }
    // With the agents of a live run.
    if let Err(missing) = prepare::toolbox(&scenario, &ModelChoice::Agents) {
        let line = |text: String| Finding::bad("tools", text, "").without_advice();
        findings.extend(missing.into_iter().map(line));
    }
    findings.extend(scenario.tools.values().filter_map(program_finding));
    let trust = Trust::saved_in(Dirs::find().map(|dirs| dirs.trusted()));
    let is_allowed = trust.needed_consent(&scenario, None).is_none();
    for server in scenario.servers() {
        findings.push(server_finding(server, is_allowed, named).await);
    }
    Some(findings)
}

/// Whether an MCP server starts, and how many tools it lists.
async fn server_finding(server: &Arc<McpServerSpec>, is_allowed: bool, named: &str) -> Finding {
    let about = format!("server {}", server.name);
    if !is_allowed {
        let named = quoted(named);
        let advice = format!("allow the scenario first: roundtable tools {named} --trust");
        return Finding::note(about, "not started: the scenario is not allowed yet", advice);
    }
    let listing = match prepare::list_tools(server).await {
        Ok(listing) => listing,
        Err(why) => return Finding::refused(about, &why),
    };
    let count = format::count_noun(listing.tools.len() as u64, "tool");
    let changed: Vec<&str> = listing
        .tools
        .iter()
        .filter(|tool| listing.state_of(tool) == "changed")
        .map(|tool| tool.name.as_str())
        .collect();
    match changed.is_empty() {
        true => Finding::good(about, count),
        false => {
            let text = format!("{count}; changed since they were seen: {}", changed.join(", "));
            Finding::note(about, visible(&text), "the next run asks whether to use them")
        }
    }
}

/// The caller's model and where it was chosen, or what is missing.
fn caller_finding(one: &CallerModel, live: bool, set: &[Override]) -> Finding {
    let about = caller_name(&one.caller);
    match &one.endpoint {
        Ok(endpoint) => {
            let model = endpoint.model();
            let place = match (&one.place, model.origin) {
                (Some(place), SettingOrigin::CommandLine) => format!(" (--set {place})"),
                (Some(place), _) => format!(" ({place})"),
                (None, SettingOrigin::CommandLine) if sets_name(set) => {
                    " (--set model.name)".to_owned()
                }
                (None, SettingOrigin::CommandLine) => " (--model)".to_owned(),
                (None, SettingOrigin::Scenario) => " (model.name)".to_owned(),
                (None, _) => String::new(),
            };
            let (name, host) = (endpoint.full_model_name(), endpoint.host());
            let text = format!("{name} at {host}, from {}{place}", model.origin);
            Finding::good(about, text)
        }
        // Only a note without `--live`: a scripted run needs no model.
        Err(missing) => {
            let rating = if live { Rating::Bad } else { Rating::Note };
            Finding { rating, ..Finding::refused(about, missing) }
        }
    }
}

fn sets_name(set: &[Override]) -> bool {
    set.iter().any(|set| set.path() == ["model", "name"])
}

/// A caller as it is shown.
fn caller_name(caller: &ModelCaller) -> String {
    match caller {
        ModelCaller::Role(role) => format!("role {role}"),
        ModelCaller::Agent(agent) => format!("agent {agent}"),
        ModelCaller::Step(step) => format!("step {}", step.word()),
    }
}

/// Whether the program of a tool can be started. `None`: the tool has none.
fn program_finding(tool: &ToolSpec) -> Option<Finding> {
    let (about, program) = match tool.action()? {
        ToolAction::Start(command) => (format!("tool {}", tool.name), &command.program),
        ToolAction::Employ(agent) => {
            let about = format!("agent {}", agent.name);
            match &agent.link {
                AgentLink::Acp(acp) => (about, &acp.command.program),
                AgentLink::AgUi(ag_ui) => {
                    return Some(Finding::note(about, visible(&ag_ui.url), "not asked"));
                }
            }
        }
        _ => return None,
    };
    let path = std::env::var("PATH").ok();
    let is_agent = matches!(tool.action(), Some(ToolAction::Employ(_)));
    Some(match command::find_program(program, path.as_deref()) {
        // It is missing in the toolbox.
        None if is_agent => return None,
        Some(found) if command::is_program(&found) => {
            Finding::good(about, found.display().to_string())
        }
        Some(found) => {
            let text = format!("{} is not executable", found.display());
            Finding::bad(about, text, format!("chmod +x {program}"))
        }
        None if command::is_relative(program) => Finding::bad(
            about,
            format!("there is no program {program}"),
            "a relative path starts at the folder in which roundtable is started",
        ),
        None => {
            let text = format!("there is no program {program}");
            Finding::bad(about, text, command::not_found_advice(program))
        }
    })
}

/// The endpoints with their models, without duplicates.
fn distinct_endpoints(all: &[CallerModel]) -> Vec<&Endpoint> {
    let mut each: Vec<&Endpoint> = Vec::new();
    for endpoint in all.iter().filter_map(|one| one.endpoint.as_ref().ok()) {
        let same = |other: &&Endpoint| {
            (other.host(), &other.model().value) == (endpoint.host(), &endpoint.model().value)
        };
        if !each.iter().any(same) {
            each.push(endpoint);
        }
    }
    each
}

/// The key, price and notes of one endpoint.
fn key_and_price(
    endpoint: &Endpoint,
    several: bool,
    asking: OverriddenScenario<'_>,
) -> Vec<Finding> {
    let (provider, name) = (endpoint.provider(), &endpoint.model().value);
    let price = effective::price(Some(asking), endpoint, config::user_config());
    let of = if several { format!(" ({}/{name})", provider.word()) } else { String::new() };
    let mut findings = vec![key(endpoint)];
    findings.push(Finding::good("price", format!("{}{of}", per_million(&price))));
    for note in endpoint.notes() {
        findings.push(Finding::note("endpoint", note.clone(), "").without_advice());
    }
    findings
}

/// The request settings, set ones first.
fn request_settings(asking: OverriddenScenario<'_>) -> Vec<Finding> {
    let rows = effective::tuning(Some(asking), &config::user_config().model);
    let (set, unset): (Vec<EffectiveSetting>, Vec<_>) =
        rows.into_iter().partition(|it| !it.value.is_null());
    let line = |row: EffectiveSetting| {
        Finding::good(row.key, format!("{}, from {}", row.text, row.origin))
    };
    let mut findings: Vec<Finding> = set.into_iter().map(line).collect();
    if !unset.is_empty() {
        let names: Vec<&str> = unset.iter().map(|row| row.key.as_str()).collect();
        let text = format!("{}: the provider's defaults apply", names.join(", "));
        findings.push(Finding::good("not set", text));
    }
    findings
}
