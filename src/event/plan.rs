//! What is asked of the setup of a pattern.

use super::redact::TextRedactor;

/// The setup of a pattern with its limits at the start, as the head of a log has it.
pub trait Plan {
    /// Time limit of the whole run in milliseconds, pauses not counted.
    fn max_ms(&self) -> u64;

    /// The operator's message that the run answers, besides its goal.
    fn message(&self) -> Option<&str> {
        None
    }

    /// Approximate bytes of it.
    fn weight(&self) -> usize;

    /// Replaces its texts, and declares its names.
    fn redact(&mut self, by: &mut TextRedactor);
}
