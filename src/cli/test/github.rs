//! What GitHub Actions reads in a log: annotations at the lines of scenario files.

use super::result::{CaseResult, TestResults};
use crate::cli::workflow_command::{self, error};

pub use workflow_command::harmless;

/// An annotation for each expectation that did not hold in enough runs.
pub fn annotations(results: &TestResults) -> String {
    let mut text = String::new();
    for scenario in &results.not_started {
        let file = Some(scenario.file.as_str()).filter(|file| *file != crate::scenario::STDIN);
        text.push_str(&error(file, None, &scenario.name, &scenario.why));
    }
    for case in results.failed() {
        for failure in case.failures() {
            let result = failure.first;
            let says = result.message.as_deref().unwrap_or("an expectation does not hold");
            let parts =
                result.parts.iter().map(|part| format!("\n{} is {}", part.part, part.value));
            let trial = failure.trial;
            let ended = format!("\nthe run ended with {}", trial.stop_reason);
            let notes = trial.warnings.iter().chain(&trial.notes).map(|note| format!("\n{note}"));
            let parts: String = parts.chain([ended]).chain(notes).collect();
            let message = format!("{says}\n{}{parts}", result.that);
            text.push_str(&error(file_of(case), result.line, &case.name, &message));
        }
    }
    text
}

/// The file of a scenario in the repository; none for standard input.
fn file_of(case: &CaseResult) -> Option<&str> {
    Some(case.file.as_str()).filter(|file| *file != crate::scenario::STDIN)
}
