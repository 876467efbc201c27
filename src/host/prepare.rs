//! Prepares runs before the engine starts them: the one way to launch, with a terminal or without.
//! The order matters: nothing is asked of a network, and no tool is made, before the operator has
//! allowed what a foreign scenario would do.

use super::models::{self, Endpoints, LiveCalls, LiveModels};
use super::tools;
use super::trust::Trust;
use crate::engine::{ModelChoice, Toolbox};
use crate::scenario::Scenario;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::consent::Consent;

/// What the runs of a scenario start with.
pub struct PreparedRuns {
    /// The scripted or live models.
    pub model: ModelChoice,
    /// A toolbox for each run.
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
    /// No live model can be called: what to set.
    Endpoint(String),
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
    let toolboxes = (0..runs).map(|_| tools::toolbox(scenario, instant));
    let toolboxes = toolboxes.collect::<Result<_, _>>().map_err(PrepareError::Tools)?;
    let model = match &endpoints {
        None => ModelChoice::Scripted { instant },
        Some(endpoints) => live.model_choice(scenario, endpoints),
    };
    Ok(PreparedRuns { model, toolboxes, endpoints })
}
