//! Which part of a file belongs to which pattern. Keys of another pattern are reported and removed
//! before the file is read, so that they cause no further errors.

use serde_json::{Map, Value, json};

use super::file::format::Pattern;
use super::file::reader::ReadContext;
use super::file::tree::{TextSpan, TomlKey, TomlNode, TomlTable, TomlValue};
use crate::agents::file::table::key_owner;

/// The keys of one pattern.
struct PatternKeys {
    pattern: Pattern,
    /// The required table; it has the pattern's name.
    name: &'static str,
    /// Other tables.
    tables: &'static [&'static str],
    /// Keys of `[budget]`, apart from those of all patterns: `max_seconds`, `max_total_tokens` and
    /// `max_cost_usd`.
    budget: &'static [&'static str],
}

impl PatternKeys {
    /// Whether a file with this pattern may have this table.
    fn has(&self, table: &str) -> bool {
        self.name == table || self.tables.contains(&table)
    }
}

const ALL: [PatternKeys; 6] = [
    PatternKeys {
        pattern: Pattern::Collaboration,
        name: "collaboration",
        tables: &["roles"],
        budget: &["max_rounds", "max_messages", "min_go_votes"],
    },
    PatternKeys {
        pattern: Pattern::Orchestrator,
        name: "orchestrator",
        tables: &["workers"],
        budget: &[
            "max_tasks",
            "max_parallel",
            "max_retries_per_task",
            "max_dispatches",
            "task_timeout_seconds",
        ],
    },
    PatternKeys { pattern: Pattern::Team, name: "team", tables: &["agents"], budget: &[] },
    PatternKeys { pattern: Pattern::Swarm, name: "swarm", tables: &["agents"], budget: &[] },
    PatternKeys { pattern: Pattern::Resilience, name: "resilience", tables: &[], budget: &[] },
    PatternKeys {
        pattern: Pattern::Research,
        name: "research",
        tables: &["sources"],
        budget: &["max_steps", "max_urls", "max_read_pages", "max_notes", "max_answer_chars"],
    },
];

/// Returns the pattern of a file: the one that it names or, if that is invalid, the one whose table
/// it has. Reports and removes keys of other patterns. Adds the pattern's own table if it is
/// missing, so that its required keys are reported.
pub(super) fn settle_pattern(
    file: &mut TomlTable,
    root: TextSpan,
    cx: &mut ReadContext,
) -> Pattern {
    let named = match file.get("pattern").map(|node| &node.value) {
        Some(TomlValue::Text(text)) => ALL.iter().find(|own| own.name == text),
        _ => None,
    };
    let Some(own) = named else {
        let guess = ALL.iter().find(|own| file.get(own.name).is_some());
        return guess.map_or(Pattern::Collaboration, |own| own.pattern);
    };
    for other in ALL.iter().filter(|other| other.pattern != own.pattern) {
        remove_foreign_keys(file, |key| other.has(key) && !own.has(key), other, own, cx);
        if let Some(TomlNode { value: TomlValue::Table(budget), .. }) = file.get_mut("budget") {
            cx.at_key("budget", |cx| {
                remove_foreign_keys(budget, |key| other.budget.contains(&key), other, own, cx);
            });
        }
    }
    if own.has("agents")
        && let Some(TomlNode { value: TomlValue::Table(budget), .. }) = file.get_mut("budget")
    {
        cx.at_key("budget", |cx| remove_agent_limits(budget, cx));
    }
    if file.get(own.name).is_none() {
        let key = TomlKey { at: root, text: own.name.to_owned() };
        file.entries.push((key, TomlNode::empty_table(root)));
    }
    own.pattern
}

fn remove_foreign_keys(
    table: &mut TomlTable,
    is: impl Fn(&str) -> bool,
    other: &PatternKeys,
    own: &PatternKeys,
    cx: &mut ReadContext,
) {
    table.entries.retain(|(key, _)| {
        let strange = is(&key.text);
        if strange {
            cx.at_key(&key.text, |cx| {
                let what = format!("`{}` belongs to the pattern {}", key.text, other.name);
                cx.error(key.at, what, format!("this scenario has pattern = \"{}\"", own.name));
            });
        }
        !strange
    });
}

/// Reports and removes limits of one swarm or agent; they are not limits of the run.
fn remove_agent_limits(budget: &mut TomlTable, cx: &mut ReadContext) {
    budget.entries.retain(|(key, _)| {
        let whose = key_owner(&key.text);
        if let Some(whose) = whose {
            cx.at_key(&key.text, |cx| {
                let what = format!("`{}` is not a limit of the run", key.text);
                cx.error(key.at, what, format!("move it to {whose}: [agents.NAME]"));
            });
        }
        whose.is_none()
    });
}

/// The same rules for the JSON schema.
pub(super) fn rules() -> Value {
    let rules = ALL.iter().map(|own| {
        let others = || ALL.iter().filter(|other| other.pattern != own.pattern);
        let mut properties: Map<String, Value> = others()
            .flat_map(|other| [other.name].into_iter().chain(other.tables.iter().copied()))
            .filter(|table| !own.has(table))
            .map(|name| (name.to_owned(), Value::Bool(false)))
            .collect();
        let foreign: Map<String, Value> = others()
            .flat_map(|other| other.budget.iter())
            .map(|key| ((*key).to_owned(), Value::Bool(false)))
            .collect();
        properties.insert("budget".to_owned(), json!({ "properties": foreign }));
        let mut required = vec![own.name];
        // A planner needs a worker, and a team needs agents.
        required.extend(match own.pattern {
            Pattern::Orchestrator => Some("workers"),
            Pattern::Team | Pattern::Swarm => Some("agents"),
            Pattern::Collaboration | Pattern::Resilience | Pattern::Research => None,
        });
        json!({
            "if": { "properties": { "pattern": { "const": own.name } }, "required": ["pattern"] },
            "then": { "required": required, "properties": properties },
        })
    });
    json!({ "allOf": rules.collect::<Vec<_>>() })
}
