//! Prepares runs before the engine starts them: the one way to launch, with a terminal or without.
//! The order matters: endpoints are found, then permission is checked, then tools are made. No
//! network is used before the operator has allowed what a foreign scenario would do.
//!
//! Pauses of `--pause-at` with a duration end here.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::config::user_config;
use super::models;
use super::models::{Endpoints, LiveCalls, LiveModels};
use super::trust::{SeenToolsFile, Trust};
use crate::base::refused::Refused;
use crate::engine::{ModelChoice, RunHandle, Toolbox};
use crate::log::bus::LogReader;
use crate::log::event::{BoundaryId, Command, EventKind, Initiator};
use crate::run::servers::Listing;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::tools::mcp::McpServerSpec;
use crate::scenario::{Consent, Scenario};

/// What the runs of a scenario start with.
pub struct PreparedRuns {
    /// The scripted or live models.
    pub model: ModelChoice,
    pub toolboxes: Vec<Toolbox>,
    /// The endpoints of live models.
    pub endpoints: Option<Endpoints>,
}

impl PreparedRuns {
    /// What the operator should know before the first call, such as where a setting comes from.
    pub fn notes(&self) -> Vec<String> {
        let endpoints = self.endpoints.iter();
        endpoints.flat_map(Endpoints::notes).map(str::to_owned).collect()
    }
}

/// Why runs cannot start.
#[derive(Debug)]
pub enum PrepareError {
    /// No live model can be called.
    Endpoint(Refused),
    /// The operator has not allowed what the scenario would do.
    Permission(Consent),
    /// Tools cannot be made: what is missing, one line each.
    Tools(Vec<String>),
}

/// Prepares so many runs of a scenario. `allow` is asked where permission is needed, and says
/// whether the operator gives it.
///
/// # Errors
/// See [`PrepareError`].
pub fn prepare(
    live: &LiveModels,
    trust: &Trust,
    scenario: &Scenario,
    wanted: &RequestedModel,
    runs: usize,
    allow: impl FnOnce(&Consent) -> bool,
) -> Result<PreparedRuns, PrepareError> {
    let (instant, endpoints) = match wanted {
        RequestedModel::Scripted { instant } => (*instant, None),
        RequestedModel::Live(name) => {
            let found = models::endpoints_of(scenario, name.as_deref());
            (false, Some(found.map_err(PrepareError::Endpoint)?))
        }
    };
    if let Some(consent) = trust.needed_consent(scenario, endpoints.as_ref().map(LiveCalls::Here))
        && !allow(&consent)
    {
        return Err(PrepareError::Permission(consent));
    }
    let model = match &endpoints {
        None => ModelChoice::Scripted { instant },
        Some(endpoints) => live.model_choice(scenario, endpoints),
    };
    let toolboxes = (0..runs).map(|_| toolbox(scenario, &model));
    let toolboxes = toolboxes.collect::<Result<_, _>>().map_err(PrepareError::Tools)?;
    Ok(PreparedRuns { model, toolboxes, endpoints })
}

/// The tools of a scenario for a run with these models, and for a live run its agents of other programs;
/// variables come from the environment of this program.
///
/// # Errors
/// Everything that is missing, one line each, with what to set.
pub fn toolbox(scenario: &Scenario, model: &ModelChoice) -> Result<Toolbox, Vec<String>> {
    let env = |name: &str| std::env::var(name).ok();
    let seen = Arc::new(SeenToolsFile::of_user());
    let instant = matches!(model, ModelChoice::Scripted { instant: true });
    let is_live = matches!(model, ModelChoice::Live(..) | ModelChoice::Agents);
    Toolbox::with_servers(scenario, instant, &env, &user_config().mcp, seen)
        .and_then(|tools| if is_live { tools.with_agents(scenario, &env) } else { Ok(tools) })
        .map_err(|troubles| troubles.iter().map(ToString::to_string).collect())
}

/// Asks an MCP server for its tools. It is started, and ends at the end of this call.
pub async fn list_tools(server: &Arc<McpServerSpec>) -> Result<Listing, Refused> {
    let env = |name: &str| std::env::var(name).ok();
    let tool = Toolbox::tools_of_server(server, &env, &user_config().mcp).map_err(|troubles| {
        let cause = troubles.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Refused::new(format!("the MCP server {} cannot be started", server.name)).because(cause)
    })?;
    let seen = SeenToolsFile::of_user();
    let listed = Listing::of_server(&*tool, &server.name, server.start_timeout, &seen).await;
    tool.end();
    listed
}

/// Events read at once.
const BATCH: usize = 64;

/// Resumes a run that is paused at one of these boundaries after the boundary's duration, unless it
/// is resumed earlier. `reader` is at the run's first event. Returns at the end of the run.
pub async fn resume_timed_pauses(
    run: RunHandle,
    mut reader: LogReader,
    rests: Vec<(BoundaryId, Duration)>,
) {
    let mut batch = Vec::new();
    let mut due: Option<Instant> = None;
    loop {
        batch.clear();
        tokio::select! {
            came = reader.next_batch(&mut batch, BATCH) => {
                if came == 0 {
                    return;
                }
            }
            () = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            } => {
                due = None;
                run.send(Command::Resume { by: Initiator::Schedule });
            }
        }
        for event in &batch {
            match &event.kind {
                EventKind::Paused { at } => {
                    let rest = rests.iter().find(|(boundary, _)| at.contains(boundary));
                    due = rest.and_then(|(_, rest)| Instant::now().checked_add(*rest));
                }
                EventKind::Resumed { .. } | EventKind::Stepped { .. } => due = None,
                _ => {}
            }
        }
    }
}
