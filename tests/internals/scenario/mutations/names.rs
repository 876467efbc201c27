//! Mistakes with names: of roles, agents, workers, tools, inputs, flags and facts, in keys, texts and
//! calls.

use std::ops::Range;

use super::document::{Document, Site};
use super::keys::neighbour;
use super::mistake::{Dice, SeededMistake, misspell};
use crate::scenario::read::tree::TomlValue;

/// The places with a name of something else.
const REFERENCES: [&str; 26] = [
    "collaboration.sequence",
    "collaboration.summary",
    "script.role",
    "script.agent",
    "script.calls.tool",
    "script.calls.args.agent_name",
    "script.reply.route",
    "script.reply.tasks.worker",
    "agents.*.members",
    "agents.*.tools",
    "agents.*.entry",
    "team.root",
    "swarm.root",
    "roles.*.flag",
    "workers.*.flag",
    "sources.*.flag",
    "router.routes.*.flag",
    "router.fallback",
    "router.echo",
    "orchestrator.echo",
    "orchestrator.sections.*",
    "research.echo",
    "resilience.steps",
    "resilience.guarded",
    "research.allowed_domains_execution",
    "tools.*.search.folder",
];

/// Whether the file or the format has this name.
fn taken<'d>(document: &'d Document) -> impl Fn(&str) -> bool + 'd {
    |word| document.taken.contains(word)
}

pub(super) fn wrong_reference(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    let mut made = Vec::new();
    for site in document.sites.iter().filter(|site| !site.has_header) {
        let Some(old) = site.string().filter(|old| !old.contains(['{', '.'])) else { continue };
        if !REFERENCES.iter().any(|place| site.is_at(place)) {
            continue;
        }
        if let Some(wrong) = misspell(old, dice, taken(document)) {
            let line = document.line(site.value.start);
            made.push(
                SeededMistake::replace(site.value.clone(), &format!("\"{wrong}\""), line)
                    .right(old)
                    .wrong(&wrong),
            );
        }
    }
    for header in &document.headers {
        let [(first, _), (second, _), (name, range)] = &header.names[..] else { continue };
        if first == "router"
            && second == "routes"
            && let Some(wrong) = misspell(name, dice, taken(document))
        {
            made.push(
                SeededMistake::replace(range.clone(), &wrong, document.line(range.start))
                    .right(name),
            );
        }
    }
    made
}

/// A misspelt or missing argument of a scripted call or of a task in a scripted plan.
pub(super) fn wrong_call_argument(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    let mut made = Vec::new();
    for call in document.sites.iter().filter(|site| !site.is_item && site.key_name() == "args") {
        let (declared, needed) = if call.is_at("script.calls.args") {
            arguments(document, neighbour(call, "tool").unwrap_or_default())
        } else if call.is_at("script.reply.tasks.args") {
            let worker = neighbour(call, "worker").unwrap_or_default();
            let args = declared(document, "workers", worker);
            (args.clone(), args)
        } else {
            continue;
        };
        let TomlValue::Table(given) = &call.node.value else { continue };
        let args = document.sites.iter().filter(|site| site.path.len() == call.path.len() + 1);
        for site in args.filter(|site| call.value.contains(&site.key.start)) {
            let (key, line) = (site.key_name(), document.line(site.key.start));
            if dice.below(2) == 0 {
                if declared.contains(&key)
                    && let Some(wrong) = misspell(key, dice, |word| given.get(word).is_some())
                {
                    made.push(SeededMistake::replace(site.key.clone(), &wrong, line).right(key));
                }
                continue;
            }
            if !needed.contains(&key) {
                continue;
            }
            let (before, rest) =
                (&document.text[..site.key.start], &document.text[site.value.end..]);
            let range = match (rest.strip_prefix(", "), before.trim_end().strip_suffix(',')) {
                (Some(after), _) => site.key.start..document.text.len() - after.len(),
                (None, Some(before)) => before.len()..site.value.end,
                (None, None) => site.key.start..site.value.end,
            };
            made.push(SeededMistake::replace(range, "", line).wrong(key).right(key));
        }
    }
    made
}

/// The arguments of a tool that an agent calls, and those that a call must have. A call of a tool of
/// the file may omit some: nested-swarm does.
fn arguments<'d>(document: &'d Document, tool: &str) -> (Vec<&'d str>, Vec<&'d str>) {
    if tool == "transfer_to_agent" {
        return (vec!["agent_name", "message"], vec!["agent_name"]);
    }
    match document.names("agents").contains(&tool) {
        true => (vec!["request"], vec!["request"]),
        false => (declared(document, "tools", tool), Vec::new()),
    }
}

/// The arguments that a tool or a worker declares.
fn declared<'d>(document: &'d Document, table: &str, name: &str) -> Vec<&'d str> {
    let args = document.sites.iter().filter(|site| site.is_at(&format!("{table}.*.args.*")));
    args.filter(|site| site.path[1] == name).map(Site::key_name).collect()
}

/// The places of `{{name}}` in texts: all of it, and the name.
fn templates(document: &Document) -> Vec<(Range<usize>, Range<usize>)> {
    let mut found = Vec::new();
    let texts = document.sites.iter().filter(|site| site.string().is_some());
    for site in texts.filter(|site| site.key_name() != "handoff_input") {
        let mut at = site.value.start;
        while let Some(open) = document.text[at..site.value.end].find("{{").map(|open| at + open) {
            let close = open + document.text[open..].find("}}").expect("closed braces");
            found.push((open..close + 2, open + 2..close));
            at = close;
        }
    }
    found
}

pub(super) fn braces(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    let made = templates(document).into_iter().map(|(whole, name)| {
        let (right, name) = (&document.text[whole.clone()], &document.text[name]);
        let wrong = match dice.below(4) {
            0 => format!("{{{{{name}}}"),
            1 => format!("${{{name}}}"),
            _ => format!("{{{name}}}"),
        };
        let line = document.line(whole.start);
        SeededMistake::replace(whole.clone(), &wrong, line).right(right)
    });
    made.collect()
}

pub(super) fn wrong_name_in_text(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    let mut made = Vec::new();
    for (_, name) in templates(document) {
        let steps: Vec<&str> = document.text[name.clone()].split('.').collect();
        let last = steps.last().expect("a name");
        let from = name.end - last.len();
        if let Some(wrong) = misspell(last, dice, taken(document)) {
            let line = document.line(name.start);
            made.push(SeededMistake::replace(from..name.end, &wrong, line).right(last));
        }
    }
    made
}
