//! What two runs were started with.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::event::kind::RunStarted;
use crate::narrate::event_line::model_text;

/// One thing that the runs were started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupDifference {
    /// What it is: `scenario`, `flag legal_analyst`, `override budget.max_rounds`, …
    pub what: String,
    /// What the left run has; empty for nothing.
    pub left: String,
    /// What the right run has.
    pub right: String,
}

/// What two runs were started with, where that differs.
pub(super) fn setup_differences(left: &RunStarted, right: &RunStarted) -> Vec<SetupDifference> {
    let mut found = Vec::new();
    let mut note = |what: String, left: String, right: String| {
        if left != right {
            found.push(SetupDifference { what, left, right });
        }
    };
    note("scenario".to_owned(), left.scenario.to_string(), right.scenario.to_string());
    note("goal".to_owned(), left.goal.clone(), right.goal.clone());
    let model = |head: &RunStarted| model_text(&head.model);
    note("model".to_owned(), model(left), model(right));
    note("seed".to_owned(), left.seed.to_string(), right.seed.to_string());
    let flags = |head: &RunStarted| -> BTreeMap<String, String> {
        let on = |on| if on { "on" } else { "off" };
        head.flags.iter().map(|it| (it.name.to_string(), on(it.on).to_owned())).collect()
    };
    note_each("flag", &flags(left), &flags(right), &mut note);
    let inputs = |head: &RunStarted| -> BTreeMap<String, String> {
        head.inputs.iter().map(|(name, value)| (name.clone(), plain_text(value))).collect()
    };
    note_each("input", &inputs(left), &inputs(right), &mut note);
    let set = |head: &RunStarted| -> BTreeMap<String, String> {
        let set = head.launch.iter().flat_map(|launch| &launch.source.set);
        set.filter_map(|it| it.split_once('='))
            .map(|(path, value)| (path.to_owned(), value.to_owned()))
            .collect()
    };
    note_each("override", &set(left), &set(right), &mut note);
    let files = |head: &RunStarted| -> BTreeMap<String, String> {
        let files = head.launch.iter().flat_map(|launch| &launch.source.prompt_files);
        files.map(|(path, text)| (path.clone(), lines_of(text))).collect()
    };
    if left.scenario == right.scenario {
        note_each("prompt file", &files(left), &files(right), &mut note);
    }
    let text = |head: &RunStarted| head.launch.as_ref().map(|it| Arc::clone(&it.source.text));
    if let (Some(one), Some(other)) = (text(left), text(right))
        && left.scenario == right.scenario
        && one != other
    {
        note("text of the scenario".to_owned(), lines_of(&one), lines_of(&other));
    }
    found
}

fn note_each(
    what: &str,
    left: &BTreeMap<String, String>,
    right: &BTreeMap<String, String>,
    note: &mut impl FnMut(String, String, String),
) {
    let names: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    for name in names {
        let of = |side: &BTreeMap<String, String>| side.get(name).cloned().unwrap_or_default();
        note(format!("{what} {name}"), of(left), of(right));
    }
}

fn lines_of(text: &str) -> String {
    let digest = crate::base::digest::sha256_of_text(text);
    format!("{} lines, {}", text.lines().count(), digest.get(..8).unwrap_or_default())
}

/// A value as a text: a text as it is, anything else as JSON.
pub(super) fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
