//! Mistakes with keys and tables: misspelt, misplaced, missing, twice, or two that exclude each other.

use serde_json::Value;

use super::document::{Document, Header, Site};
use super::mistake::{Dice, SeededMistake, misspell};
use crate::scenario::read::tree::TomlValue;

fn taken<'d>(document: &'d Document) -> impl Fn(&str) -> bool + 'd {
    |word| document.taken.contains(word)
}

pub(super) fn misspelt_key(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    let sites = document.sites.iter().filter(|site| site.is_known() && !site.has_header);
    let made = sites.filter_map(|site| {
        let wrong = misspell(site.key_name(), dice, taken(document))?;
        let line = document.line(site.key.start);
        Some(SeededMistake::replace(site.key.clone(), &wrong, line).right(site.key_name()))
    });
    made.collect()
}

pub(super) fn misspelt_table(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    let mut made = Vec::new();
    for header in &document.headers {
        for (index, (name, range)) in header.names.iter().enumerate() {
            let is_known = document.taken.contains(name)
                && is_key_of_format(document, &header.names[..=index]);
            if is_known && let Some(wrong) = misspell(name, dice, taken(document)) {
                let line = document.line(range.start);
                made.push(SeededMistake::replace(range.clone(), &wrong, line).right(name));
            }
        }
    }
    made
}

/// Whether the last of these names is a key of the format, not a name that the file chooses.
fn is_key_of_format(document: &Document, names: &[(String, std::ops::Range<usize>)]) -> bool {
    let path: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
    document.sites.iter().any(|site| site.path == path && site.is_known())
}

pub(super) fn key_in_neighbour_table(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    let mut made = Vec::new();
    for site in document.sites.iter().filter(|site| site.is_known() && site.is_line) {
        let Some(own) = document.header_before(site.key.start) else { continue };
        let next = own + 1;
        let before = own.checked_sub(1);
        let there = [Some(next), before].into_iter().flatten().filter_map(|index| {
            document.headers.get(index).filter(|header| refuses(header, site.key_name()))
        });
        let there: Vec<&Header> = there.collect();
        if !there.is_empty() {
            let at = dice.pick(&there).line.end;
            made.push(moved(document, site, at).right(&site.table_name()));
        }
    }
    made
}

pub(super) fn key_at_the_top(document: &Document, _: &mut Dice) -> Vec<SeededMistake> {
    let title = document.sites.iter().find(|site| site.path == ["title"]).expect("a title");
    let at = document.line_end(title.value.end);
    let schema = crate::scenario::schema();
    let top = |key: &str| schema["properties"][key].is_object();
    let sites = document.sites.iter().filter(|site| site.is_known() && site.is_line);
    let sites = sites.filter(|site| site.path.len() > 1 && !top(site.key_name()));
    let sites = sites.filter(|site| document.header_before(site.key.start).is_some());
    sites.map(|site| moved(document, site, at).right(&site.table_name())).collect()
}

/// A key of the top of the file below the header of a table, so that it belongs to that table.
pub(super) fn top_key_in_a_table(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    let sites = document.sites.iter().filter(|site| site.is_known() && site.is_line);
    let sites = sites.filter(|site| site.path.len() == 1);
    let mut made = Vec::new();
    for site in sites {
        // A table of names refuses a string in place of a table.
        let there = document.headers.iter().filter(|header| {
            refuses(header, site.key_name())
                || header.schema["additionalProperties"]["type"] == "object"
        });
        let there: Vec<&Header> = there.take(4).collect();
        if !there.is_empty() {
            made.push(moved(document, site, dice.pick(&there).line.end).right("top"));
        }
    }
    made
}

/// Whether the table of a header cannot have this key.
fn refuses(header: &Header, key: &str) -> bool {
    header.schema["additionalProperties"] == Value::Bool(false)
        && header.schema["properties"][key].is_null()
}

/// The line of an entry at another place.
fn moved(document: &Document, site: &Site, at: usize) -> SeededMistake {
    let from = document.line_start(site.key.start)..document.line_end(site.value.end);
    let line = document.text[from.clone()].to_owned();
    let there = document.line(at) - usize::from(at > from.start);
    SeededMistake {
        edits: vec![(from, String::new()), (at..at, line)],
        lines: vec![there],
        right: Vec::new(),
        wrong: site.key_name().to_owned(),
    }
}

pub(super) fn missing_entry(document: &Document, _: &mut Dice) -> Vec<SeededMistake> {
    let mut made = Vec::new();
    for site in document.sites.iter().filter(|site| is_needed(site)) {
        let key = site.key_name();
        if site.is_line {
            let range = document.line_start(site.key.start)..document.line_end(site.value.end);
            let line = document.table_line(site.key.start);
            made.push(SeededMistake::replace(range, "", line).wrong(key).right(key));
        } else if !site.has_header && site.owner.entries.len() > 1 {
            // In an inline table, with one of the commas around it.
            let rest = &document.text[site.value.end..];
            let before = &document.text[..site.key.start];
            let range = if let Some(after) = rest.strip_prefix(',') {
                site.key.start..document.text.len() - after.trim_start().len()
            } else if before.trim_end().ends_with(',') {
                before.trim_end().len() - 1..site.value.end
            } else {
                continue;
            };
            let line = document.line(site.key.start);
            made.push(SeededMistake::replace(range, "", line).wrong(key).right(key));
        }
    }
    made
}

/// Whether the table is wrong without this entry.
fn is_needed(site: &Site) -> bool {
    let key = site.key_name();
    if site.is_item || !site.is_known() {
        return false;
    }
    let lists = |list: &Value| list.as_array().is_some_and(|keys| keys.iter().any(|it| it == key));
    if lists(&site.owner_schema["required"]) {
        // A missing table with a header is not one line.
        return !site.has_header;
    }
    // One of several keys, and no other of them is there.
    let rules = site.owner_schema["allOf"].as_array().into_iter().flatten();
    let choices = rules.map(|rule| &rule["oneOf"]).chain([&site.owner_schema["oneOf"]]);
    let of_key = choices.filter(|forms| {
        forms.as_array().is_some_and(|forms| forms.iter().any(|form| lists(&form["required"])))
    });
    // In a row of the script the calls are enough.
    of_key.count() > 0
        && !site.has_header
        && !(site.is_at("script.*") && site.owner.get("calls").is_some())
}

pub(super) fn key_twice(document: &Document, _: &mut Dice) -> Vec<SeededMistake> {
    let lines = document.sites.iter().filter(|site| site.is_line).map(|site| {
        let end = document.line_end(site.value.end);
        let line = document.text[document.line_start(site.key.start)..end].to_owned();
        let number = document.line(site.key.start) + 1;
        SeededMistake::replace(end..end, &line, number)
            .wrong(site.key_name())
            .right(site.key_name())
    });
    let tables = document.headers.windows(2).filter(|pair| !pair[0].is_list).map(|pair| {
        let at = pair[1].line.start;
        let header = &document.text[pair[0].line.clone()];
        let name = &pair[0].names.last().expect("a name").0;
        SeededMistake::replace(at..at, header, document.line(at)).wrong(name).right(name)
    });
    lines.chain(tables).collect()
}

/// Pairs of keys that exclude each other: the one that is there, and the one that is added.
const PAIRS: [(&str, &str, &str); 11] = [
    ("roles.*.prompt", "prompt_file", "\"prompts/it.md\""),
    ("agents.*.instruction", "instruction_file", "\"prompts/it.md\""),
    ("router.prompt", "prompt_file", "\"prompts/it.md\""),
    ("orchestrator.plan_prompt", "plan_prompt_file", "\"prompts/plan.md\""),
    ("orchestrator.finalize_prompt", "finalize_prompt_file", "\"prompts/report.md\""),
    ("collaboration.finalize_prompt", "finalize_prompt_file", "\"prompts/brief.md\""),
    ("script.text", "raw", "\"I cannot say.\""),
    ("script.reply", "text", "\"I cannot say.\""),
    ("tools.*.fixture.rows.result", "raw", "\"no JSON\""),
    ("workers.*.fixture.rows.result", "raw", "\"no JSON\""),
    ("tools.*.http", "command", "{ program = \"true\" }"),
];

pub(super) fn both_of_two(document: &Document, _: &mut Dice) -> Vec<SeededMistake> {
    let mut made = Vec::new();
    for site in document.sites.iter().filter(|site| !site.is_item) {
        let pair =
            PAIRS.iter().find(|(at, other, _)| site.is_at(at) && site.owner.get(other).is_none());
        let Some((_, other, value)) = pair else { continue };
        if site.has_header {
            continue;
        }
        let at = document.line_start(site.key.start);
        let first = document.line(at);
        let mut mistake =
            SeededMistake::replace(at..at, &format!("{other} = {value}\n"), first).wrong(other);
        // One of the two keys, or the row that has them.
        mistake.lines.extend([first + 1, document.table_line(at)]);
        made.push(mistake.right("remove").right("keep").right("one of"));
    }
    made
}

/// The table of an entry has this string under this key.
pub(super) fn neighbour<'d>(site: &'d Site, key: &str) -> Option<&'d str> {
    match site.owner.get(key).map(|node| &node.value) {
        Some(TomlValue::Text(text)) => Some(text),
        _ => None,
    }
}
