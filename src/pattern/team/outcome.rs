//! The fields of a team's or swarm's outcome (teams source document).

use serde_json::{Value, json};

use crate::event::world::RunFold;
use crate::event::world::outcome::OutcomeFields;
use crate::event::world::outcome::fields::to_value;
use crate::pattern::team::projection::Team;

impl Team {
    /// Adds the fields that the source document defines.
    pub(super) fn outcome_fields(&self, run: &RunFold, fields: &mut OutcomeFields) {
        let success = run.progress.closed.as_ref().is_some_and(|closed| closed.reason.is_success());
        let (plan, agents) = (&*self.plan, &self.agents);
        let mut add = |name: &'static str, value: Value| fields.add(name, &value);
        if success {
            add("answer", run.progress.answer.as_deref().map_or(Value::Null, Value::from));
            add("final_agent", to_value(&agents.answered_by));
            // Added by roundtable: failed calls that the answer does not mention.
            if !agents.missing.is_empty() {
                let missing = agents.missing.iter();
                add(
                    "missing",
                    missing.map(|it| json!({ "of": it.name, "text": it.text })).collect(),
                );
            }
            if !agents.written_calls.is_empty() {
                add("written_calls", agents.written_call_rows());
            }
        } else if let Some((text, _)) = &agents.partial {
            add("partial_answer", (**text).into());
        }
        fields.add("handoffs", &agents.handoff_rows());
        let mut add = |name: &'static str, value: Value| fields.add(name, &value);
        // A stopped run leaves the session with its previous owner.
        let owner = if success { &agents.answered_by } else { &plan.session.owner };
        add("owner", to_value(owner));
        // Added by roundtable: the number of the session's message, and the previous run.
        add("message", plan.session.message.into());
        if let Some(after) = &plan.session.previous_run {
            add("after", to_value(after));
        }
        fields.add("trace", &agents.turn_rows(run));
        fields.add("history", &agents.transcript_rows());
    }
}
