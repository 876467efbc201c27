//! A file of `[[expect]]` rows alone: what has to hold in runs that were recorded, of whatever origin.
//! It is read like a scenario. Which rows mean something depends on the run, and is checked when the
//! run is known.

use std::sync::Arc;

use super::check::condition::build_rows;
use super::read::format::ExpectTable;
use super::read::problem::Problems;
use super::read::shape::{
    BoundedList, FormatShape, NonBlankString, ObjectSchema, Positioned, Requirement,
    join_doc_lines, record,
};
use super::read::tree::{TomlNode, TomlTable};
use super::read::{ReadContext, UnknownKeys, read_document, suggest_name, tree};
use super::spec::Expectation;
use super::{Scenario, ScenarioOrigin, name};

record! {
    /// Rows about runs that were recorded or watched.
    struct RowsTable => {
        /// Names that rows use and that need not occur in each run, such as `tool:delete_account`. A row
        /// with another name fails where no call has that name.
        names: BoundedList<NonBlankString, 0, 200> = default(BoundedList(Vec::new())),
        /// What has to hold when a run has ended.
        expect: BoundedList<Positioned<ExpectTable>, 1, 200> = needed,
    }
}

/// The rows of a file: of one that has nothing else, or those of a scenario.
#[derive(Debug)]
pub struct Rows {
    /// Name of the file without its ending.
    pub name: String,
    /// The file, or the path of a shipped scenario.
    pub file: String,
    /// The names that need not occur in a run.
    pub names: Vec<String>,
    /// The scenario, if the file is one.
    pub scenario: Option<Arc<Scenario>>,
    own: Vec<Expectation>,
}

impl Rows {
    /// Those of a scenario.
    pub fn of_scenario(scenario: Arc<Scenario>) -> Self {
        Self {
            name: scenario.name.to_string(),
            file: scenario.origin.to_string(),
            names: Vec::new(),
            scenario: Some(scenario),
            own: Vec::new(),
        }
    }

    /// Those of a file of rules.
    pub(super) fn of_rules(name: &str, origin: &ScenarioOrigin, own: Vec<Expectation>) -> Self {
        let (name, file) = (name.to_owned(), origin.to_string());
        Self { name, file, names: Vec::new(), scenario: None, own }
    }

    /// The conditions, in the file's order. Empty: a scenario that only has to succeed.
    pub fn expectations(&self) -> &[Expectation] {
        self.scenario.as_ref().map_or(&self.own, |scenario| &scenario.expectations)
    }
}

/// Whether a file has rows, and nothing that a scenario needs.
pub fn is_rows_file(text: &str) -> bool {
    has_tables(text, &["expect", "names"]) && !has_tables(text, &["budget", "models"])
}

/// Whether a file that is no scenario has one of these.
pub(super) fn has_tables(text: &str, wanted: &[&str]) -> bool {
    let Ok((document, _)) = tree::parse(text) else { return false };
    let table = TomlTable::from_toml(document.get_ref(), 0);
    let has =
        |wanted: &[&str]| table.entries.iter().any(|(key, _)| wanted.contains(&key.text.as_str()));
    has(wanted) && !has(&["title", "pattern", "goal"])
}

/// Reads a file of rows alone.
///
/// # Errors
/// All its problems. Warnings of valid rows are returned with them.
pub fn check_rows(text: &str, origin: &ScenarioOrigin) -> Result<(Rows, Problems), Problems> {
    let suggestion = |_: &str, key: &str, known: &[&str]| suggest_name(key, known.iter().copied());
    let unknown = UnknownKeys::Refused { suggestion, place_of_top_key: |_, _| None };
    let mut cx = ReadContext::new(origin.to_string(), text, Vec::new(), unknown);
    let read = read(text, &mut cx);
    let failed = cx.failed();
    let problems = cx.finish();
    match read.filter(|_| !failed) {
        Some((names, own)) => {
            let (name, file) = (name(origin).to_string(), origin.to_string());
            Ok((Rows { name, file, names, scenario: None, own }, problems))
        }
        None => Err(problems),
    }
}

fn read(text: &str, cx: &mut ReadContext) -> Option<(Vec<String>, Vec<Expectation>)> {
    let root = read_document(text, cx)?;
    let file = RowsTable::read(&root, cx)?;
    let rows = build_rows(&file.expect?.0, cx);
    let used: Vec<&str> =
        rows.iter().flat_map(|row| row.that.run_names()).map(|(_, name)| name).collect();
    // A name that no row uses is a misspelt one.
    for (index, listed) in file.names.0.iter().enumerate() {
        let name = listed.text.as_str();
        let is_used = |used: &&str| {
            *used == name || used.split_once(':').is_some_and(|(_, bare)| bare == name)
        };
        let bare = name.split_once(':').map_or(name, |(_, bare)| bare);
        if !used.iter().any(is_used) && !used.contains(&bare) {
            let help = suggest_name(name, used.iter().copied());
            let at = listed.at;
            cx.at_key("names", |cx| {
                cx.at_index(index, |cx| cx.error(at, format!("no row uses `{name}`"), help))
            });
        }
    }
    Some((file.names.0.into_iter().map(|name| name.text).collect(), rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let origin = ScenarioOrigin::File("rows.toml".into());
        match check_rows(text, &origin) {
            Ok((_, problems)) | Err(problems) => {
                problems.iter().map(|problem| problems.line(problem)).collect()
            }
        }
    }

    #[test]
    fn rows_are_read_with_places() {
        let text = "names = [\"tool:delete\"]\n\n[[expect]]\nthat = 'calls(\"tool:delete\") == 0'\n\
                    message = \"Nothing is deleted.\"\n\n[[expect]]\nthat = '!failed(\"refund\")'\n";
        let origin = ScenarioOrigin::File("gates/rows.toml".into());
        let (rows, found) = check_rows(text, &origin).expect("rows");
        assert_eq!((&*rows.name, &*rows.file), ("rows", "gates/rows.toml"));
        assert_eq!(rows.names, ["tool:delete"]);
        assert!(found.iter().next().is_none() && is_rows_file(text));
        let lines: Vec<usize> = rows.expectations().iter().map(|row| row.line).collect();
        assert_eq!(lines, [4, 8]);
        assert_eq!(rows.expectations()[0].message.as_deref(), Some("Nothing is deleted."));
        for other in ["title = \"a\"\n[[expect]]\nthat = 'true'\n", "a = 1", ""] {
            assert!(!is_rows_file(other), "{other}");
        }
    }

    #[test]
    fn wrong_rows_have_lines() {
        let row = |that: &str| format!("[[expect]]\nthat = '''{that}'''\n");
        for (text, wanted) in [
            (String::new(), "rows.toml:1:1: error: expect: `expect` is missing"),
            ("expect = []".to_owned(), "the list is empty"),
            (row("calls('x'"), "rows.toml:2:"),
            (
                row("tokns < 3"),
                "`tokns` is not available in this condition (did you mean `tokens`?)",
            ),
            (row("call('tool:x') == 1"), "there is no function `call`; did you mean `calls`?"),
            (row("order('a')"), "write `order("),
            (row("order('tool:a', 'b')"), "`tool:a` is no role, worker or agent"),
            (row("asked('tool:a') == 1"), "`asked` takes a name without `tool:`"),
            (row("stop_reason == 'sucess'"), "`sucess` is not a stop reason"),
            (row("true") + "thta = 'x'\n", "unknown key `thta` (did you mean `that`?)"),
            (format!("nams = []\n{}", row("true")), "unknown key `nams` (did you mean `names`?)"),
            (
                format!("names = [\"tool:refnd\"]\n{}", row("calls('tool:refund') == 0")),
                "rows.toml:1:10: error: names[0]: no row uses `tool:refnd` (did you mean `tool:refund`?)",
            ),
            ("[[expect]\nthat".to_owned(), "rows.toml:1:"),
        ] {
            let found = problems(&text);
            assert!(found.iter().any(|line| line.contains(wanted)), "{wanted}: {found:?}");
        }
    }
}
