//! All that a comparison of two runs shows.

use std::sync::Arc;

use super::compared_run::ComparedRun;
use super::texts::comparison_text;
use super::{ComparisonRow, LogComparison, compare};
use crate::event::Event;

/// Two runs with all that differs between them.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedRuns {
    /// The figures of the left and the right run.
    pub runs: [ComparedRun; 2],
    /// What differs.
    pub comparison: LogComparison,
    /// The comparison as rows.
    pub rows: Vec<ComparisonRow>,
    /// The comparison as a text, as `roundtable diff` prints it.
    pub text: String,
}

impl ComparedRuns {
    /// Compares two runs. Takes long where the logs are large.
    pub fn of(left: &[Arc<Event>], right: &[Arc<Event>]) -> Self {
        let runs = [ComparedRun::of(left), ComparedRun::of(right)];
        let comparison = compare(left, right);
        let text = comparison_text(&comparison, &runs, &|_, text| text.to_owned());
        Self { rows: comparison.rows(), runs, comparison, text }
    }
}
