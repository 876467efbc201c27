//! The words of stop reasons that expectations may compare with.

use crate::scenario::condition::Condition;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::NonBlankString;

/// The words of all stop reasons; what follows a colon depends on the run.
const WORDS: [&str; 38] = [
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
];

/// Warns of unknown words that `stop_reason` is compared with.
pub(crate) fn warn_of_unknown_reasons(
    condition: &Condition,
    that: &NonBlankString,
    cx: &mut ReadContext,
) {
    for reason in condition.texts_equal_to("stop_reason") {
        let word = reason.split(':').next().unwrap_or_default();
        if !WORDS.contains(&word) {
            let help = cx.suggest(word, WORDS);
            cx.warn(that.at, format!("`{word}` is not a stop reason"), help);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WORDS;

    #[test]
    fn the_words_are_those_of_the_stop_reasons() {
        let source = include_str!("../../event/stop.rs");
        let rows = source.lines().filter_map(|line| line.split_once(" = \"")?.1.split_once("\", "));
        let rows = rows.filter(|(_, class)| class.starts_with(char::is_uppercase));
        let mut words: Vec<&str> = rows.filter_map(|(word, _)| word.split(':').next()).collect();
        words.dedup();
        assert!(words.len() > 20, "{words:?}");
        assert_eq!(words, WORDS);
    }
}
