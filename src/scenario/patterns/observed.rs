//! The pattern `observed`: another program, which is only watched. No file has it: `watch` and `listen` make its
//! scenario.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::PatternSpec;
use super::row::{LabelledText, LimitField, Spec};
use crate::base::name::ToolName;
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::tool::ToolSpec;
use crate::scenario::{Scenario, ScenarioOrigin, load};

/// `pattern = "observed"`.
pub struct ObservedSpec {
    /// The program and its arguments; empty: it was not started here.
    pub command: Vec<String>,
    /// What the run reads: the pattern knows its type.
    source: Mutex<Option<Box<dyn Any + Send>>>,
}

impl fmt::Debug for ObservedSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservedSpec").field("command", &self.command).finish_non_exhaustive()
    }
}

impl ObservedSpec {
    /// What the run reads; `None`: a run reads it already.
    pub(crate) fn source(&self) -> Option<Box<dyn Any + Send>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The scenario of one run of a program that reads this source. `name`: of the program, for lists; `command`: the
/// program and its arguments, empty if it was not started here.
pub(crate) fn scenario(
    name: &str,
    command: Vec<String>,
    source: Box<dyn Any + Send>,
) -> Option<Scenario> {
    // What all scenarios have, with the usual values.
    let blank = load(BLANK, ScenarioOrigin::Shipped("observed"), &[]).ok()?;
    let goal = match command.is_empty() {
        true => name.to_owned(),
        false => command.join(" "),
    };
    let spec = ObservedSpec { command, source: Mutex::new(Some(source)) };
    Some(Scenario {
        name: name.into(),
        title: name.to_owned(),
        goal: goal.into(),
        pattern: PatternSpec::Observed(spec),
        ..blank
    })
}

const BLANK: &str = r#"
title = "observed"
pattern = "team"
goal = "observed"

[team]
root = "observed"

[agents.observed]
description = "observed"
members = ["inner"]
instruction = "observed"

[agents.inner]
description = "inner"
instruction = "inner"

[[script]]
agent = "observed"
text = "observed"

[[script]]
agent = "inner"
text = "inner"
"#;

/// A program may run for years.
const NO_LIMIT: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

impl Spec for ObservedSpec {
    fn name(&self) -> &'static str {
        "observed"
    }

    fn max_time(&self) -> Duration {
        NO_LIMIT
    }

    fn size(&self) -> (u64, &'static str) {
        (1, "program")
    }

    fn limits(&self) -> Vec<LimitField> {
        Vec::new()
    }

    fn preview(&self) -> Vec<LabelledText> {
        vec![LabelledText::new("program", self.command.join(" "))]
    }

    fn check_boundary(&self, _: &str, _: &BTreeMap<ToolName, ToolSpec>) -> Result<(), String> {
        Err("another program plays the run: it has no boundaries".to_owned())
    }

    fn is_observed(&self) -> bool {
        true
    }

    fn model_callers(&self) -> Vec<ModelCaller> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_program_has_a_scenario() {
        let command = vec!["python".to_owned(), "desk.py".to_owned()];
        let scenario = scenario("desk", command, Box::new(())).expect("a scenario");
        assert_eq!((&*scenario.title, &*scenario.goal), ("desk", "python desk.py"));
        assert_eq!(scenario.run_warnings(false).count(), 0);
    }
}
