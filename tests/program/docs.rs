//! What README.md and the pages of `docs` show: every scenario and configuration is valid, and every
//! command line is run and exits as its page says.
//!
//! A comment above a block says what is special about it: `<!-- part of: PATTERN -->` (or
//! `configuration`), `<!-- not run: REASON -->`, `<!-- not checked: REASON -->`. A command whose exit
//! code is not 0 says so behind `#`: `# exit code 4`. The commands of a page run in one home, in their
//! order.

use std::path::{Path, PathBuf};
use std::process::Command;

use toml::{Table, Value};

use crate::support::binary::{Ended, Home, end};

/// A fenced block of a page.
struct Block {
    page: String,
    line: usize,
    language: String,
    /// What the comment above it says.
    marker: String,
    text: String,
}

impl Block {
    fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }

    /// The rest of the marker, if it begins so.
    fn marked(&self, word: &str) -> Option<&str> {
        let rest = self.marker.strip_prefix(word)?.strip_prefix(':')?.trim();
        assert!(!rest.is_empty(), "{}: say why", self.place());
        Some(rest)
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn pages() -> Vec<PathBuf> {
    let docs = std::fs::read_dir(root().join("docs")).expect("a folder");
    let paths = docs.map(|entry| entry.expect("an entry").path());
    let mut pages: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "md")).collect();
    pages.push(root().join("README.md"));
    pages.sort();
    pages
}

fn blocks(path: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(path).expect("a page");
    let page = path.strip_prefix(root()).expect("below the root").display().to_string();
    let (mut blocks, mut marker, mut open) = (Vec::new(), String::new(), None::<Block>);
    for (nth, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text += &format!("{line}\n"),
            (None, Some(language)) => {
                let (page, language) = (page.clone(), language.to_owned());
                let marker = std::mem::take(&mut marker);
                open = Some(Block { page, line: nth + 1, language, marker, text: String::new() });
            }
            (None, None) => {
                let comment = line.strip_prefix("<!-- ").and_then(|it| it.strip_suffix(" -->"));
                marker = comment.unwrap_or_default().to_owned();
            }
        }
    }
    assert!(open.is_none(), "{page}: a block without an end");
    blocks
}

#[test]
fn every_code_block_is_checkable() {
    for block in pages().iter().flat_map(|page| blocks(page)) {
        let known = match &*block.language {
            "console" => block.marker.is_empty() || block.marked("not run").is_some(),
            "toml" => {
                block.marker.is_empty()
                    || block.marked("part of").is_some()
                    || block.marked("not run").is_some()
                    || block.marked("not checked").is_some()
            }
            "json" => serde_json::from_str::<serde_json::Value>(&block.text).is_ok(),
            // Output, and what other programs read.
            "text" | "yaml" => true,
            _ => false,
        };
        assert!(known, "{}: {} {}", block.place(), block.language, block.marker);
    }
}

#[test]
fn every_shown_scenario_is_valid() {
    let home = Home::new();
    let (mut seen, mut wrong) = (0, Vec::new());
    for block in pages().iter().flat_map(|page| blocks(page)) {
        if block.language != "toml" || block.marked("not checked").is_some() {
            continue;
        }
        seen += 1;
        let ended = match block.marked("part of") {
            Some("configuration") => {
                home.write("config/roundtable/config.toml", &block.text);
                let ended = home.run(&["config"]);
                std::fs::remove_dir_all(home.path().join("config")).expect("removed");
                ended
            }
            Some(pattern) => {
                let text = home.run(&["new", pattern, "-"]).out;
                let mut whole: Table = text.parse().expect("a template");
                let part: Table = block.text.parse().expect("TOML");
                merge(&mut whole, part);
                home.write("shown.toml", &toml::to_string(&whole).expect("TOML"));
                home.run(&["validate", "shown.toml"])
            }
            None => {
                home.write("shown.toml", &block.text);
                home.run(&["validate", "shown.toml"])
            }
        };
        // Warnings are printed there.
        if (ended.code, &*ended.err) != (Some(0), "") {
            wrong.push(format!("{}\n{}", block.place(), ended.err));
        }
    }
    assert!(wrong.is_empty(), "{} blocks:\n{}", wrong.len(), wrong.join("\n"));
    assert!(seen >= 15, "{seen} blocks");
}

/// Puts a part into a scenario: tables are joined, rows come first, other values are replaced.
fn merge(whole: &mut Table, part: Table) {
    for (key, value) in part {
        match (whole.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(value)) => merge(inner, value),
            (Some(Value::Array(rows)), Value::Array(mut value))
                if value.first().is_some_and(Value::is_table) =>
            {
                value.append(rows);
                *rows = value;
            }
            (_, value) => {
                whole.insert(key, value);
            }
        }
    }
}

#[test]
fn whole_scenarios_run_as_expected() {
    let home = Home::new();
    for block in pages().iter().flat_map(|page| blocks(page)) {
        let is_whole = block.language == "toml" && block.marker.is_empty();
        // The examples of research read a folder of the reader, and the web.
        if is_whole && !block.text.contains("pattern = \"research\"") {
            home.write("shown.toml", &block.text);
            let ended = home.run(&["test", "shown.toml"]);
            assert_eq!((ended.code, &*ended.err), (Some(0), ""), "{}: {ended:?}", block.place());
        }
    }
}

/// A command line of a page, with its lines of output, if the page shows any.
struct Shown {
    place: String,
    command: String,
    output: String,
}

fn commands(page: &Path) -> Vec<Shown> {
    let mut found = Vec::new();
    for block in blocks(page) {
        if block.language != "console" || block.marked("not run").is_some() {
            continue;
        }
        for (nth, line) in block.text.lines().enumerate() {
            let place = format!("{}:{}", block.page, block.line + 1 + nth);
            match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => {
                    found.push(Shown { place, command: command.to_owned(), output: String::new() });
                }
                (None, Some(Shown { output, .. })) => *output += &format!("{line}\n"),
                (None, None) => panic!("{place}: output of nothing"),
            }
        }
    }
    found
}

impl Shown {
    /// The exit code that the page says.
    fn code(&self) -> i32 {
        let said = self.command.split_once("# exit code ").map(|(_, rest)| rest);
        let digits =
            said.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        digits.map_or(0, |it| it.parse().expect("an exit code"))
    }

    fn run(&self, home: &Home) -> Ended {
        let program = Path::new(env!("CARGO_BIN_EXE_roundtable"));
        let folder = program.parent().expect("a folder").display();
        let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("bash");
        command.args(["-c", &format!("set -o pipefail\n{}", self.command)]);
        command.current_dir(home.path()).env_clear().envs(home.env()).env("PATH", path);
        command.stdin(std::process::Stdio::null());
        end(&mut command)
    }
}

#[test]
fn shown_commands_exit_as_documented() {
    let wrong = std::sync::Mutex::new(Vec::new());
    let counted = std::sync::atomic::AtomicUsize::new(0);
    let pages = pages();
    std::thread::scope(|scope| {
        for page in &pages {
            let (wrong, counted) = (&wrong, &counted);
            scope.spawn(move || {
                let home = Home::new();
                home.write("home/notes/lease.md", "# Lease\n\nThe lease ends on 31 March 2027.\n");
                for file in ["examples/gate/desk.py", "examples/gate/rows.toml"] {
                    let text = std::fs::read_to_string(root().join(file)).expect("an example");
                    home.write(file, &text);
                }
                for shown in commands(page) {
                    let ended = shown.run(&home);
                    counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let says =
                        ended.code == Some(shown.code()) && ended.out.contains(&shown.output);
                    if !says {
                        let mut wrong = wrong.lock().expect("no panic");
                        wrong.push(format!("{}: {}\n{ended:?}", shown.place, shown.command));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{} commands:\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(counted.into_inner() >= 60, "commands were lost");
}
