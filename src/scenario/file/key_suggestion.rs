//! Suggestions for a key in the wrong place: a synonym of an existing key, or a key of another
//! table.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::format::schema;
use super::reader::{UnknownKeys, closest_name, suggest_name};
use crate::agents::file::table::key_owner;

/// The rule for unknown keys of scenarios.
pub(crate) const REFUSED_KEYS: UnknownKeys =
    UnknownKeys::Refused { suggestion: suggest_key, place_of_top_key };

/// Synonyms, also from other programs: table (`*` stands for any name), the synonym, the key that
/// it means.
const KEY_SYNONYMS: [(&str, &str, &str); 21] = [
    ("flags.*", "value", "default"),
    ("inputs.*", "default", "value"),
    ("agents.*", "prompt", "instruction"),
    ("agents.*", "prompt_file", "instruction_file"),
    ("agents.*", "system_prompt", "instruction"),
    ("roles.*", "instruction", "prompt"),
    ("roles.*", "instruction_file", "prompt_file"),
    ("roles.*", "system_prompt", "prompt"),
    ("team", "coordinator", "root"),
    ("script.calls", "name", "tool"),
    ("script.calls", "arguments", "args"),
    ("tools.*.fixture.rows", "reply", "result"),
    ("tools.*.fixture.rows", "output", "result"),
    ("tools.*.fixture.rows", "value", "result"),
    ("tools.*.fixture.rows", "text", "raw"),
    ("workers.*.fixture.rows", "reply", "result"),
    ("workers.*.fixture.rows", "output", "result"),
    ("workers.*.fixture.rows", "value", "result"),
    ("workers.*.fixture.rows", "text", "raw"),
    ("model", "model", "name"),
    ("model", "url", "base_url"),
];

/// Maximum number of tables that are named for a key, and for one that is misspelt, too.
const MOST_PLACES: usize = 6;
const MOST_PLACES_NEAR: usize = 3;
/// Maximum number of keys of a table that are listed after the places of a key.
const MOST_KEYS_HERE: usize = 10;

/// The suggestion for an unknown key of the table at `path`, whose keys are `known`.
fn suggest_key(path: &str, key: &str, known: &[&str]) -> String {
    if let Some(help) = place_of_top_key(path, key) {
        return help;
    }
    let place = steps(path);
    let word = KEY_SYNONYMS.iter().find(|(of, word, _)| *word == key && is_place(of, &place));
    if let Some((_, _, right)) = word {
        return format!("did you mean `{right}`?");
    }
    let here = closest_name(key, known.iter().copied());
    if here.is_some() && places(key).is_none() {
        return suggest_name(key, known.iter().copied());
    }
    if matches!(place[..], ["team" | "swarm"]) && key_owner(key).is_some() {
        return "move it to the agent that `root` names: [agents.NAME]".to_owned();
    }
    // Short keys resemble many others.
    let near = || closest_name(key, PLACES.keys().map(String::as_str)).filter(|_| key.len() > 3);
    let (elsewhere, most) = match places(key) {
        Some(places) => (places, MOST_PLACES),
        None => (near().and_then(places).unwrap_or_default(), MOST_PLACES_NEAR),
    };
    // Do not suggest a key for the model that only tools have.
    let for_it = |place: &&String| !(path == "tools.llm" && place.starts_with("tools.NAME."));
    let elsewhere = elsewhere.iter().filter(for_it).map(String::as_str);
    let known_places: Vec<&str> = here.into_iter().chain(elsewhere).collect();
    let keys_here = match known.len() {
        1..=MOST_KEYS_HERE if here.is_none() && !path.is_empty() => {
            format!(" This table has {}", known.join(", "))
        }
        _ => String::new(),
    };
    match known_places[..] {
        [place] => format!("did you mean `{place}`?{keys_here}"),
        [ref first @ .., last] if first.len() < most => {
            let first: Vec<String> = first.iter().map(|place| format!("`{place}`")).collect();
            format!("did you mean {} or `{last}`?{keys_here}", first.join(", "))
        }
        _ => suggest_name(key, known.iter().copied()),
    }
}

/// What to do with a key of the scenario itself that is below the header of a table, so that it
/// belongs to that table. `path` is that of the table.
fn place_of_top_key(path: &str, key: &str) -> Option<String> {
    let is_top = !path.is_empty() && TOP_KEYS.iter().any(|top| top == key);
    is_top.then(|| "move it to the top of the file, above the first [table]".to_owned())
}

/// The keys of the scenario itself that are not tables or lists.
static TOP_KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let schema = schema();
    let keys = schema["properties"].as_object().into_iter().flatten();
    let plain = keys.filter(|(_, of)| of["type"] != "object" && of["type"] != "array");
    plain.map(|(key, _)| key.clone()).collect()
});

/// The names on the path of a table, without indices of lists.
fn steps(path: &str) -> Vec<&str> {
    let name = |step: &'_ str| step.find('[').unwrap_or(step.len());
    path.split('.').map(|step| &step[..name(step)]).collect()
}

fn is_place(pattern: &str, place: &[&str]) -> bool {
    let wanted: Vec<&str> = pattern.split('.').collect();
    let mut pairs = wanted.iter().zip(place);
    wanted.len() == place.len() && pairs.all(|(wanted, step)| *wanted == "*" || wanted == step)
}

fn places(key: &str) -> Option<&'static [String]> {
    PLACES.get(key).map(Vec::as_slice)
}

/// The paths of each key of the format, from the JSON schema.
static PLACES: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut places = BTreeMap::new();
    collect(&schema(), "", &mut places);
    places
});

fn collect(schema: &Value, path: &str, places: &mut BTreeMap<String, Vec<String>>) {
    let within = |step: &str| match path {
        "" => step.to_owned(),
        _ => format!("{path}.{step}"),
    };
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        let place = within(key);
        collect(inner, &place, places);
        places.entry(key.clone()).or_default().push(place);
    }
    collect_items(schema, path, &within("NAME"), places);
}

fn collect_items(
    schema: &Value,
    path: &str,
    named: &str,
    places: &mut BTreeMap<String, Vec<String>>,
) {
    if schema["additionalProperties"].is_object() {
        collect(&schema["additionalProperties"], named, places);
    }
    if schema["items"].is_object() {
        collect(&schema["items"], path, places);
    }
}

#[cfg(test)]
mod tests {
    use super::suggest_key;

    #[test]
    fn the_place_of_a_key_is_named() {
        let root = ["title", "pattern", "budget", "agents", "swarm"];
        for (path, key, expected) in [
            ("", "max_rounds", "did you mean `budget.max_rounds`?"),
            ("", "max_round", "did you mean `budget.max_rounds`?"),
            ("", "members", "did you mean `agents.NAME.members`?"),
            ("", "titel", "did you mean `title`?"),
            ("", "timeout_s", "did you mean `tools.llm.timeout_s` or `tools.NAME.timeout_s`?"),
            ("swarm", "members", "move it to the agent that `root` names: [agents.NAME]"),
            ("team", "coordinator", "did you mean `root`?"),
            ("flags.x", "value", "did you mean `default`?"),
            ("inputs.x", "default", "did you mean `value`?"),
            ("script[3].calls[0]", "arguments", "did you mean `args`?"),
            ("inputs.x", "goal", "move it to the top of the file, above the first [table]"),
            ("tools.x.fixture.rows[1]", "text", "did you mean `raw`?"),
            ("workers.x.fixture.rows[1]", "output", "did you mean `result`?"),
            (
                "tools.x.fixture.rows[1]",
                "rows",
                "did you mean `workers.NAME.fixture.rows` or `tools.NAME.fixture.rows`? This table has \
                 title, pattern, budget, agents, swarm",
            ),
            ("", "a", "one of title, pattern, budget, agents, swarm"),
        ] {
            assert_eq!(suggest_key(path, key, &root), expected, "{path} {key}");
        }
    }
}
