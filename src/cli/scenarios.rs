//! `roundtable scenarios`: lists the scenarios that can be run.

use std::path::Path;

use serde::Serialize;

use super::exit::Exit;
use super::streams;
use super::streams::{StreamStyle, refuse};
use crate::base::visible::visible;
use crate::host::catalogue;
use crate::log::event::safe_json;
use crate::scenario::{ScenarioListing, ScenarioSource, check, shipped};
use crate::screen::theme::Theme;
use crate::words::styled::StyleRole;

/// Lists the shipped scenarios and the files of `./scenarios`, by name.
pub fn run(json: bool, theme: Theme, ascii: bool) -> Exit {
    let rows = rows(Path::new(catalogue::FOLDER));
    let text = if json {
        safe_json::pretty(&rows).map(|json| json + "\n").unwrap_or_default()
    } else {
        table(&rows, &StreamStyle::of_stdout(theme, ascii))
    };
    streams::print(&text, Exit::Ok)
}

/// Prints the file of a scenario: as it is, or to a terminal without what could control it.
pub fn print_one(name: &str) -> Exit {
    match ScenarioSource::find(name) {
        Ok(source) if streams::stdout_is_terminal() => {
            let lines = source.text.lines().map(|line| visible(line).into_owned() + "\n");
            streams::print(&lines.collect::<String>(), Exit::Ok)
        }
        Ok(source) => streams::print_data(&source.text, Exit::Ok),
        Err(error) => refuse(&error.into(), Exit::Usage),
    }
}

/// A row of the list.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct ScenarioRow {
    name: String,
    title: String,
    about: String,
    pattern: String,
    /// Path for `roundtable run`, which also takes the name.
    path: String,
    /// The number of problems, or why the file cannot be read; `roundtable validate` shows details.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl ScenarioRow {
    fn of(listing: ScenarioListing, path: String) -> Self {
        let ScenarioListing { name, title, about, pattern } = listing;
        Self { name: name.to_string(), title, about, pattern, path, problem: None }
    }
}

/// A file of the folder replaces the shipped scenario of the same name.
fn rows(folder: &Path) -> Vec<ScenarioRow> {
    let mut rows: Vec<ScenarioRow> =
        shipped().iter().map(|one| ScenarioRow::of(one.listing(), one.path.to_owned())).collect();
    for path in catalogue::files(folder) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        // Unreadable files are listed too, with the reason.
        let (text, problem) = match ScenarioSource::read(&path) {
            Ok(source) => {
                let problems = check(&source.text, source.origin, &[]).problems;
                let problem = (problems.errors() > 0).then(|| problems.count());
                (source.text, problem)
            }
            Err(error) => (String::new(), Some(error.to_string())),
        };
        let listed =
            ScenarioRow::of(ScenarioListing::read(&stem, &text), path.display().to_string());
        let row = ScenarioRow { problem, ..listed };
        rows.retain(|other| other.name != row.name);
        rows.push(row);
    }
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}

fn table(rows: &[ScenarioRow], paint: &StreamStyle) -> String {
    use unicode_width::UnicodeWidthStr as _;
    let names: Vec<_> = rows.iter().map(|row| visible(&row.name)).collect();
    let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let mut lines = String::new();
    for (row, name) in rows.iter().zip(&names) {
        let gap = " ".repeat(width - name.width());
        let name = paint.role(StyleRole::Strong, name);
        let pattern = paint.role(StyleRole::Dim, &format!("({})", visible(&row.pattern)));
        lines.push_str(&format!("{name}{gap}  {} {pattern}\n", visible(&row.title)));
        if let Some(problem) = &row.problem {
            let sign = paint.role(StyleRole::Failed, "✗");
            let path = visible(&row.path);
            let text = format!("{sign} {}: roundtable validate {path}", visible(problem));
            lines.push_str(&format!("{}  {text}\n", " ".repeat(width)));
        }
        if !row.about.trim().is_empty() {
            lines.push_str(&format!("{}  {}\n", " ".repeat(width), visible(row.about.trim())));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_file_replaces_shipped_scenario() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("checkout-launch.toml");
        std::fs::write(&own, "title = \"Mine\"\nabout = \"Of\\u001b my own\"").expect("written");
        std::fs::write(folder.path().join("odd.toml"), [0xff]).expect("written");
        let rows = rows(folder.path());
        assert_eq!(rows.len(), shipped().len() + 1);
        assert!(rows.is_sorted_by(|a, b| a.name < b.name));
        let mine = rows.iter().find(|row| row.name == "checkout-launch").expect("listed");
        assert_eq!((mine.title.as_str(), &mine.path), ("Mine", &own.display().to_string()));
        let odd = rows.iter().find(|row| row.name == "odd").expect("listed");
        assert!(odd.problem.as_ref().is_some_and(|why| why.contains("UTF-8")), "{odd:?}");
        assert!(mine.problem.is_some(), "it has no goal");
        assert!(rows.iter().filter(|row| row.problem.is_none()).count() >= shipped().len() - 1);

        let text = table(&rows, &StreamStyle::new(false, Theme::default(), true));
        let line = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("  "));
            line.unwrap_or_else(|| panic!("{name} in {text}")).trim_start()
        };
        assert_eq!(line("checkout-launch"), "Mine ()");
        assert!(text.contains("Of␛ my own\n"), "{text}");
        assert_eq!(line("checkout-unanimous"), "Checkout v2: a clear go (collaboration)");
    }

    #[test]
    fn no_folder_is_no_files() {
        let rows = rows(Path::new("/no/such/folder"));
        assert_eq!(rows.len(), shipped().len());
    }
}
