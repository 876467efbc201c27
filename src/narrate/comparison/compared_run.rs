//! The figures of a run that is compared.

use std::sync::Arc;

use serde::Serialize;

use crate::event::run_row::RunStatus;
use crate::event::{Event, World};
use crate::narrate::event_line::model_text;

/// The figures of one of the two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRun {
    /// Its id.
    pub run: String,
    /// The name of its scenario.
    pub scenario: String,
    /// The name of its pattern.
    #[serde(skip)]
    pub pattern: String,
    /// What answered its model calls.
    #[serde(skip)]
    pub model: String,
    /// The stop reason; `None`: it has not ended.
    pub stop_reason: Option<String>,
    /// Number of its events.
    pub events: usize,
    /// Time without pauses in milliseconds.
    pub elapsed_ms: u64,
    /// Tokens used.
    pub tokens: u64,
    /// US dollars, estimated; `None`: unknown.
    pub cost_usd: Option<f64>,
}

impl ComparedRun {
    /// The figures that these events give.
    pub fn of(events: &[Arc<Event>]) -> Self {
        let world = World::from_events(events.iter().map(|event| &**event));
        let head = world.head.as_deref();
        let elapsed = world.progress.active(world.progress.at);
        Self {
            run: head.map(|head| head.run.to_string()).unwrap_or_default(),
            scenario: head.map(|head| head.scenario.to_string()).unwrap_or_default(),
            pattern: head.map(|head| head.plan.name().to_owned()).unwrap_or_default(),
            model: head.map(|head| model_text(&head.model)).unwrap_or_default(),
            stop_reason: world.outcome().map(|outcome| outcome.stop_reason.to_string()),
            events: events.len(),
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            tokens: world.tally.usage.total(),
            cost_usd: world.cost_usd(),
        }
    }

    /// How far it is; `live`: it was still running when it was read.
    pub fn status(&self, live: bool) -> RunStatus {
        match &self.stop_reason {
            Some(reason) => RunStatus::Ended(reason.clone()),
            None if live => RunStatus::Running,
            None => RunStatus::Interrupted,
        }
    }
}
