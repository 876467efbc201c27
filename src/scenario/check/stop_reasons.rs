//! The words of stop reasons that expectations may compare with.

use crate::scenario::condition::Condition;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::NonBlankString;

/// The words of all stop reasons; what follows a colon depends on the run.
const WORDS: [&str; 39] = [
    "success",
    "max_messages",
    "max_rounds_reached",
    "max_seconds",
    "max_tokens_budget",
    "max_cost_budget",
    "llm_timeout",
    "llm_empty",
    "critical_task_failed",
    "task_timeout",
    "max_dispatches",
    "max_tool_rounds",
    "max_handoffs",
    "repetitive_handoff",
    "invalid_search",
    "no_sources_after_dedupe",
    "no_reliable_sources",
    "no_route",
    "cancelled",
    "store_failed",
    "internal_error",
    "invalid_contribution",
    "agent_denied",
    "llm_error",
    "invalid_plan",
    "stuck",
    "node_timeout",
    "invalid_step",
    "tool_invalid_output",
    "invalid_notes",
    "verification_failed",
    "invalid_answer",
    "invalid_route",
    "route_denied",
    "in_doubt",
    "circuit_open",
    "bulkhead_full",
    "script_missing",
    "tool_error",
];

/// Warns of unknown words that `stop_reason` is compared with.
pub(crate) fn warn_of_unknown_reasons(
    condition: &Condition,
    that: &NonBlankString,
    cx: &mut ReadContext,
) {
    for reason in condition.texts_equal_to("stop_reason") {
        let word = reason.split(':').next().unwrap_or_default();
        // Tasks have reasons of their own: `outcome.trace[0].stop_reason`.
        if !WORDS.contains(&word) && !word.starts_with("worker_") {
            let help = cx.suggest(word, WORDS);
            cx.warn(that.at, format!("`{word}` is not a stop reason"), help);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WORDS;
    use crate::event::stop::STOP_ROWS;

    #[test]
    fn the_words_are_those_of_the_stop_reasons_of_runs() {
        let rows = STOP_ROWS.iter().map(|row| row.word.split(':').next().unwrap_or_default());
        // It is not a row of that table. The others that are not are reasons of tasks.
        let mut words: Vec<&str> = rows.chain(["tool_error"]).collect();
        words.dedup();
        assert_eq!(words, WORDS);
    }
}
