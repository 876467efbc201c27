//! Small tables: exit codes, stop reasons, variables, providers, the shipped scenarios.

use std::path::Path;

use regex_lite::Regex;

use super::{cell, cell_with_code};
use crate::cli::exit::{EXIT_CODES, Exit};
use crate::cli::man;
use crate::log::event::StopReason;
use crate::log::event::stop::STOP_ROWS;
use crate::model::endpoint::Provider;
use crate::scenario::shipped;
use crate::support::files;
use crate::traces::conventions::{ATTRIBUTES, OWN};
use crate::watch::proxy::variables::VARIABLES;

pub fn exit_codes() -> String {
    let mut out = String::from("| exit code | what it means |\n| --- | --- |\n");
    for (exit, what) in EXIT_CODES {
        out += &format!("| `{}` | {} |\n", exit.code(), cell_with_code(what));
    }
    out
}

pub fn stop_reasons() -> String {
    let head =
        "| stop reason | exit code | what happened | what to do |\n| --- | --- | --- | --- |\n";
    let mut out = head.to_owned();
    let mut row = |reason: String, exit: u8, about: &str, advice: &str| {
        let cells = (cell_with_code(about.trim()), cell_with_code(advice));
        out += &format!("| `{reason}` | {exit} | {} | {} |\n", cells.0, cells.1);
    };
    for stop in STOP_ROWS {
        let phrase = stop.phrase.replace("{}", "…");
        let about = match stop.about.trim().trim_end_matches('.') {
            "" => phrase,
            about => format!("{phrase}. {about}"),
        };
        let reason = format!("{}{}", stop.word, if stop.has_part { ":…" } else { "" });
        row(reason, Exit::from(stop.class).code(), &about, stop.advice.unwrap_or_default());
    }
    for text in [
        "worker_denied:w",
        "worker_missing:w",
        "worker_bad_args:w",
        "worker_bad_result:w",
        "worker_error:w",
        "tool_error:t:bad_response",
    ] {
        let reason = StopReason::from(text);
        let word = text.split_once(':').expect("a part").0;
        let about = match word {
            "tool_error" => "A tool that the run needs was not available",
            _ => "Of an orchestrator's task",
        };
        row(
            format!("{word}:…"),
            Exit::from(reason.class()).code(),
            about,
            reason.advice().unwrap_or_default(),
        );
    }
    out
}

pub fn variables() -> String {
    let mut out = String::from("| variable | what it does |\n| --- | --- |\n");
    for (names, what) in man::variables() {
        let names = names.split(", ").map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
        out += &format!("| {names} | {} |\n", cell_with_code(&what));
    }
    out
}

pub fn providers() -> String {
    let head = "| provider | key | another address | default model |\n| --- | --- | --- | --- |\n";
    let mut out = head.to_owned();
    for it in Provider::ALL {
        let key = it.key_name();
        let (word, address, model) = (it.word(), it.address_name(), it.model());
        out += &format!("| `{word}` | `{key}` | `{address}` | `{model}` |\n");
    }
    out
}

pub fn guarded_variables() -> String {
    let mut out = String::from("| variable | read by | default |\n| --- | --- | --- |\n");
    for it in &VARIABLES {
        let default = if it.default.is_empty() { "only if it is set" } else { it.default };
        out += &format!("| `{}` | {} | {default} |\n", it.name, it.read_by);
    }
    out
}

pub fn shipped_scenarios() -> String {
    let mut out = String::from("| scenario | pattern | what it shows |\n| --- | --- | --- |\n");
    for one in shipped() {
        let listing = one.listing();
        out += &format!("| `{}` | {} | {} |\n", one.name, listing.pattern, cell(&listing.about));
    }
    out
}

/// Every variable that the sources name has a row.
#[test]
fn every_read_variable_is_listed() {
    let read = Regex::new(r#"(?:var|var_os|env|set)\("([A-Z][A-Z_]+)"\)"#).expect("a pattern");
    let listed = variables();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = 0;
    for path in files::files(&src, "rs") {
        let text = std::fs::read_to_string(&path).expect("a source");
        for found in read.captures_iter(&text).filter(|found| &found[1] != "PATH") {
            assert!(
                listed.contains(&format!("`{}`", &found[1])),
                "{}: {}",
                path.display(),
                &found[1]
            );
            seen += 1;
        }
    }
    assert!(seen >= 10, "{seen} variables");
}

/// The names of what is known of a span, sent and read.
pub fn attributes() -> String {
    let names = |names: &[&str]| {
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        quoted.join(", ")
    };
    let mut out =
        String::from("| what | sent | read, the first one that is there |\n| --- | --- | --- |\n");
    for row in &ATTRIBUTES {
        let about =
            if row.is_text { format!("{} (a text)", row.about) } else { row.about.to_owned() };
        out += &format!("| {about} | {} | {} |\n", names(row.sent), names(row.read));
    }
    out
}

/// The attributes for which there is no convention.
pub fn own_attributes() -> String {
    let rows = OWN.iter().map(|(name, about)| format!("| `{name}` | {about} |\n"));
    format!("| attribute | what it says |\n| --- | --- |\n{}", rows.collect::<String>())
}
