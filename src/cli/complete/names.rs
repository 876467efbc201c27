//! Names that complete a command line: of scenarios, flags, inputs, kept runs.

use std::path::Path;

use toml::{Table, Value};

use super::candidate::Candidate;
use crate::event::contribution::Decision;
use crate::host::catalogue;
use crate::scenario::{STDIN, ScenarioListing, ScenarioSource, shipped, templates};
use crate::ui::theme::Theme;

/// The files of `./scenarios` by their names, and the shipped scenarios.
pub(super) fn scenarios() -> Vec<Candidate> {
    let files = catalogue::files(Path::new(catalogue::FOLDER));
    let own = files.iter().filter_map(|path| {
        let stem = path.file_stem()?.to_str()?;
        let title =
            ScenarioSource::read(path).ok().map(|it| ScenarioListing::read(stem, &it.text).title);
        Some(Candidate::new(stem, title.unwrap_or_default()))
    });
    let mut all: Vec<Candidate> = own.chain(shipped_scenarios()).collect();
    all.sort_by(|a, b| a.word.cmp(&b.word));
    // A file of the folder comes first, and replaces the shipped scenario of its name.
    all.dedup_by(|later, first| later.word == first.word);
    all
}

/// The shipped scenarios.
pub(super) fn shipped_scenarios() -> Vec<Candidate> {
    shipped().iter().map(|it| Candidate::new(it.name, it.listing().title)).collect()
}

/// The patterns that `roundtable new` takes.
pub(super) fn patterns() -> Vec<Candidate> {
    templates().iter().map(|it| Candidate::new(&it.pattern, &it.about)).collect()
}

/// What `--fail-on` takes.
pub(super) fn fail_on() -> Vec<Candidate> {
    let decisions = Decision::ALL.into_iter().map(|it| Candidate::new(it.word(), "the decision"));
    let degraded =
        Candidate::new("degraded", "a fallback was used, a result left out or a reply cut");
    decisions.chain([degraded]).collect()
}

/// The shipped themes.
pub(super) fn themes() -> Vec<Candidate> {
    Theme::names().map(|it| Candidate::new(it, "")).collect()
}

/// The flags of a scenario, each switched on and off. Behind `@` comes a boundary, which only the
/// scenario's runs know.
pub(super) fn flags(scenario: &str, word: &str) -> Vec<Candidate> {
    if word.contains('@') {
        return Vec::new();
    }
    let of_flag = |(name, flag): (&String, &Value)| {
        let label = flag.get("label").and_then(Value::as_str).unwrap_or_default().to_owned();
        ["on", "off"].map(|state| Candidate::new(format!("{name}={state}"), label.clone()))
    };
    section(scenario, "flags").iter().flat_map(of_flag).collect()
}

/// The inputs of a scenario, as `--set` names them.
pub(super) fn inputs(scenario: &str) -> Vec<Candidate> {
    let of_input = |(name, input): (&String, &Value)| {
        let label = input.get("label").and_then(Value::as_str).unwrap_or_default();
        Candidate::new(format!("inputs.{name}="), label)
    };
    section(scenario, "inputs").iter().map(of_input).collect()
}

/// A table of a scenario's file; empty if the file cannot be read. Nothing is checked, so that a
/// scenario that is being written has completions too.
fn section(scenario: &str, name: &str) -> Table {
    let is_pipe = || Path::new(scenario).exists() && !Path::new(scenario).is_file();
    if scenario == STDIN || is_pipe() {
        return Table::new();
    }
    let source = ScenarioSource::find(scenario).ok();
    let file = source.and_then(|it| it.text.parse::<Table>().ok());
    match file.and_then(|mut it| it.remove(name)) {
        Some(Value::Table(table)) => table,
        _ => Table::new(),
    }
}

/// The newest kept runs.
#[cfg(feature = "store")]
fn kept_runs() -> Vec<crate::store::database::names::RunName> {
    use crate::host::dirs::Dirs;
    use crate::store::database::names::newest_names;

    let path = Dirs::find().map(|it| it.runs());
    path.map(|it| newest_names(&it)).unwrap_or_default()
}

/// The scenario of a kept run, which may be written with a boundary (`RUN@BOUNDARY`).
#[cfg(feature = "store")]
pub(super) fn scenario_of(run: &str) -> Option<String> {
    let id = run.split('@').next()?;
    let mut runs = kept_runs().into_iter();
    runs.find(|row| id == "last" || row.id == id).map(|row| row.scenario)
}

/// This program was built without a store.
#[cfg(not(feature = "store"))]
pub(super) fn scenario_of(_: &str) -> Option<String> {
    None
}

/// Kept runs, the newest first.
#[cfg(feature = "store")]
pub(super) fn runs() -> Vec<Candidate> {
    let rows = kept_runs();
    let last = rows.first().map(|_| Candidate::new("last", "the newest run"));
    let named =
        rows.into_iter().map(|it| Candidate::new(it.id, format!("{}, {}", it.scenario, it.status)));
    last.into_iter().chain(named).collect()
}

/// This program was built without a store.
#[cfg(not(feature = "store"))]
pub(super) fn runs() -> Vec<Candidate> {
    Vec::new()
}
