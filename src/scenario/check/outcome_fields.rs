//! The fields of outcomes that expectations may use.

use crate::scenario::condition::Condition;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::NonBlankString;
use crate::scenario::pattern_row::PatternRow;

/// The fields that outcomes of every pattern have.
pub(crate) const OF_ALL: [&str; 15] = [
    "status",
    "stop_reason",
    "phase",
    "detail",
    "error",
    "run_id",
    "pattern",
    "usage",
    "elapsed_ms",
    "paused_ms",
    "degraded",
    "cut",
    "replaced",
    "tools",
    "alerts",
];

/// The fields that only the outcome of a session of several messages has.
pub(crate) const OF_SESSION: [&str; 3] = ["messages", "answered", "session"];

/// Warns of fields that no outcome of the pattern has.
pub(crate) fn warn_of_unknown_fields(
    condition: &Condition,
    that: &NonBlankString,
    own: &PatternRow,
    cx: &mut ReadContext,
) {
    let session = if own.has_agents() { &OF_SESSION[..] } else { &[] };
    let fields =
        || own.outcome.iter().map(|field| field.name).chain(OF_ALL).chain(session.iter().copied());
    for name in condition.names() {
        let ["outcome", field, ..] = name.path[..] else { continue };
        if name.guarded || fields().any(|known| known == field) {
            continue;
        }
        let end = name.at + "outcome.".len() + field.len();
        let at = cx.inner_span(that.at, name.at, end);
        let help = cx.suggest(field, fields());
        let what = format!("outcomes of the pattern {} have no field `{field}`", own.name);
        cx.warn(at, what, help);
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::patterns::ROWS;

    /// The names that a source file passes to `add`.
    fn added(source: &str) -> Vec<&str> {
        let calls = source.split("add(").skip(1);
        let names = calls.filter_map(|call| call.trim_start().strip_prefix('"')?.split('"').next());
        names.collect()
    }

    #[test]
    fn each_field_that_a_pattern_adds_is_known() {
        let sources = [
            ("collaboration", include_str!("../../pattern/collaboration/outcome.rs")),
            ("orchestrator", include_str!("../../pattern/orchestrator/outcome.rs")),
            ("team", include_str!("../../pattern/team/outcome.rs")),
            ("swarm", include_str!("../../pattern/team/outcome.rs")),
            ("resilience", include_str!("../../pattern/resilience/outcome.rs")),
            ("research", include_str!("../../pattern/research/outcome.rs")),
            ("router", include_str!("../../pattern/router/outcome.rs")),
        ];
        assert_eq!(sources.len(), ROWS.len());
        for (name, source) in sources {
            let row = ROWS.iter().find(|row| row.name == name).expect("a pattern");
            let added = added(source);
            assert!(!added.is_empty(), "{name}");
            for field in added {
                assert!(row.outcome.iter().any(|known| known.name == field), "{name}: {field}");
            }
        }
    }
}
