//! The fields of a router's outcome (docs/rules/patterns.md, "Router").

use serde_json::Value;

use super::projection::Router;
use crate::event::world::RunFold;
use crate::event::world::outcome::OutcomeFields;
use crate::event::world::outcome::fields::to_value;

impl Router {
    /// Adds the fields, as far as the run got.
    pub(super) fn outcome_fields(&self, run: &RunFold, fields: &mut OutcomeFields) {
        let mut add = |name: &'static str, value: Value| fields.add(name, &value);
        if let Some(choice) = self.route() {
            add("route", to_value(&choice.route));
        }
        if let Some(proposed) = &self.proposed {
            add("proposed_route", to_value(&proposed.route));
            add("confidence", proposed.confidence.into());
            add("reason", (*proposed.reason).into());
            add("alternatives", to_value(&proposed.alternatives));
        }
        if let Some(chosen) = &self.chosen {
            add("fallback_used", chosen.as_ref().is_ok_and(|it| it.fallback.is_some()).into());
            if let Some(cause) = self.cause() {
                add("fallback_cause", to_value(&cause));
            }
        }
        if run.progress.closed.as_ref().is_some_and(|closed| closed.reason.is_success()) {
            add("answer", run.progress.answer.as_deref().map_or(Value::Null, Value::from));
            add("final_agent", to_value(&self.agents.answered_by));
            if !self.agents.written_calls.is_empty() {
                add("written_calls", self.agents.written_call_rows());
            }
        }
    }
}
