//! The figures of a run that is compared.

use std::sync::Arc;

use serde::Serialize;

use crate::event::run_row::RunStatus;
use crate::event::{Elapsed, Event, World};
use crate::narrate::event_line::model_text;
use crate::narrate::patterns::words;
use crate::narrate::verdict::RunVerdict;

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
    /// Its result, or its progress, in a few words.
    #[serde(skip)]
    pub result: String,
    /// Number of its events.
    pub events: usize,
    /// Time without pauses in milliseconds.
    pub elapsed_ms: u64,
    /// Calls of models and tools.
    pub calls: u64,
    /// Requests that were made for these calls.
    pub requests: u64,
    /// Requests per call; `None`: there was no call.
    pub amplification: Option<f64>,
    /// Tokens used.
    pub tokens: u64,
    /// US dollars, estimated; `None`: unknown.
    pub cost_usd: Option<f64>,
}

impl ComparedRun {
    /// The figures that these events give.
    pub fn of(events: &[Arc<Event>]) -> Self {
        let world = World::from_events(events.iter().map(|event| &**event));
        Self { events: events.len(), ..Self::of_world(&world, world.progress.at) }
    }

    /// The figures of a run at a moment.
    pub(crate) fn of_world(world: &World, at: Elapsed) -> Self {
        let head = world.head.as_deref();
        let elapsed = world.progress.active(at);
        let closed = world.progress.closed.as_deref();
        let result = match (words(world), closed) {
            (_, Some(closed)) => RunVerdict::of_run(world, closed).text(),
            (Some(words), None) => {
                let progress = words.progress(world);
                progress.text.unwrap_or(progress.short)
            }
            (None, None) => String::new(),
        };
        let tools = world.tools.rows().iter().map(|row| row.tally);
        let (calls, requests) = tools.fold((0, 0), |(calls, requests), tally| {
            (calls + tally.calls, requests + tally.requests())
        });
        Self {
            run: head.map(|head| head.run.to_string()).unwrap_or_default(),
            scenario: head.map(|head| head.scenario.to_string()).unwrap_or_default(),
            pattern: head.map(|head| head.plan.name().to_owned()).unwrap_or_default(),
            model: head.map(|head| model_text(&head.model)).unwrap_or_default(),
            stop_reason: closed.map(|closed| closed.reason.to_string()),
            result,
            events: usize::try_from(world.tally.events).unwrap_or(usize::MAX),
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            calls,
            requests,
            amplification: (calls > 0).then(|| requests as f64 / calls as f64),
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
