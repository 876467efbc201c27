//! Prompts that are in files of their own: what they may be, and that a run keeps their texts.
use std::path::PathBuf;
use std::sync::Arc;

use crate::engine::Launch;
use crate::log::event::Event;
use crate::log::event::redact::TextRedactor;
use crate::scenario::read::prompts::prompts;
use crate::scenario::spec::SourceText;
use crate::scenario::{
    CheckedScenario, Override, Scenario, ScenarioOrigin, check, check_again, load, shipped,
};
use crate::support::table;

const FILE: &str = r#"
title = "Prompts"
pattern = "collaboration"
goal = "Decide."
inputs.what = { value = "lunch" }
budget.min_go_votes = 1
script = [{ text = "x" }, { step = "finalize", text = "y" }]
[collaboration]
sequence = ["ann"]
finalize_prompt = "Sum up."
[roles.ann]
prompt_file = "prompts/ann.md"
"#;

/// Line of `prompt_file` in the scenario.
const LINE: &str = "12:15";

/// A scenario in a folder of its own.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        folder.write("mine.toml", FILE);
        folder.write("prompts/ann.md", "You are Ann, who likes {{what}}.\n");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    fn origin(&self) -> ScenarioOrigin {
        ScenarioOrigin::File(self.path("mine.toml"))
    }

    fn check(&self, set: &[&str]) -> CheckedScenario {
        check(FILE, self.origin(), &overrides(set))
    }

    fn load(&self, set: &[&str]) -> Scenario {
        let checked = self.check(set);
        checked.scenario.unwrap_or_else(|| panic!("{}", checked.problems))
    }

    /// The errors with this value of `prompt_file`.
    #[track_caller]
    fn errors(&self, prompt_file: &str) -> String {
        let text = FILE.replace("\"prompts/ann.md\"", &format!("{prompt_file:?}"));
        check(&text, self.origin(), &[]).problems.to_string()
    }
}

fn overrides(set: &[&str]) -> Vec<Override> {
    set.iter().map(|set| set.parse().expect("an override")).collect()
}

/// The prompts of a scenario as a run sends them.
fn settings(scenario: &Scenario) -> String {
    format!("{:?}", scenario.pattern)
}

#[test]
fn prompt_file_is_loaded_and_filled() {
    let folder = Folder::new();
    let scenario = folder.load(&[]);
    assert!(settings(&scenario).contains("You are Ann, who likes lunch."));
    assert_eq!(scenario.source.prompt_files.len(), 1);
    assert_eq!(&*scenario.source.text, FILE, "the text of the file stays as it is");
    // A file from Windows is the same prompt.
    folder.write("prompts/ann.md", "\u{feff}You are Ann,\r\nwho likes {{what}}.");
    assert!(settings(&folder.load(&[])).contains(r"You are Ann,\nwho likes lunch."));
}

#[test]
fn shipped_prompts_load_from_files() {
    let folder = Folder::new();
    let mut all = 0;
    for shipped in shipped() {
        let own = prompts(shipped.text, &[], &Default::default());
        let mut set = Vec::new();
        for (index, prompt) in own.iter().enumerate() {
            let file = format!("{}-{index}.md", shipped.name);
            folder.write(&file, &prompt.text);
            let path = format!("{}_file", prompt.path);
            set.push(Override::literal(&path, &file).expect("an override"));
        }
        let same = load(shipped.text, shipped.origin(), &[]).expect("a good scenario");
        let filed = check(shipped.text, folder.origin(), &set);
        let problems = filed.problems.to_string();
        let filed = filed.scenario.unwrap_or_else(|| panic!("{}: {problems}", shipped.name));
        assert_eq!(settings(&filed), settings(&same), "{}", shipped.name);
        assert_eq!(prompts(shipped.text, &set, &filed.source.prompt_files), own);
        assert_eq!(filed.hash == same.hash, own.is_empty(), "{}", shipped.name);
        all += own.len();
    }
    assert!(all > 60, "{all} prompts");
}

#[test]
fn prompt_file_errors_report_line() {
    let folder = Folder::new();
    folder.write("empty.md", " \n");
    folder.write("bytes.md", b"You \xff");
    folder.write("large.md", "x".repeat(1024 * 1024 + 1));
    folder.write("names.md", "You are\nfond of {{who}}.\n");
    folder.write("open.md", "You are {{what");
    let place = format!("mine.toml:{LINE}: error: roles.ann.prompt_file: ");
    for (file, text) in [
        ("", "the string is empty"),
        ("none.md", "cannot read none.md: No such file"),
        ("prompts", "cannot read prompts: it is a folder, not a regular file"),
        ("../mine.toml", "`../mine.toml` is not a path inside the scenario's folder"),
        ("prompts/../mine.toml", "is not a path inside the scenario's folder"),
        ("/etc/hostname", "`/etc/hostname` is not a path inside the scenario's folder"),
        ("prompts\\ann.md", "is not a path inside the scenario's folder"),
        ("C:ann.md", "is not a path inside the scenario's folder"),
        ("empty.md", "empty.md is empty (write the prompt in it)"),
        ("bytes.md", "bytes.md is not a text file: byte 4 is not UTF-8 (save it as UTF-8)"),
        ("large.md", "the prompt files are too large (at most 1048576 bytes in all)"),
        ("names.md", "`{{who}}` is not an input, in line 2 of names.md (the only one is what)"),
        ("open.md", "`{{` is not closed, in line 1 of open.md"),
    ] {
        let errors = folder.errors(file);
        assert!(errors.contains(&place) && errors.contains(text), "{file}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}

#[cfg(unix)]
#[test]
fn refuses_escaping_links_and_special_files() {
    use crate::support::pipe::make_pipe;
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    let elsewhere = tempfile::tempdir().expect("a folder");
    std::fs::write(elsewhere.path().join("secret.md"), "A secret.").expect("written");
    symlink(elsewhere.path().join("secret.md"), folder.path("link.md")).expect("a link");
    symlink(elsewhere.path(), folder.path("away")).expect("a link");
    symlink(folder.path("prompts/ann.md"), folder.path("near.md")).expect("a link");
    make_pipe(&folder.path("pipe.md"));
    for file in ["link.md", "away/secret.md"] {
        let text = format!("{file} is a link to a file outside the scenario's folder");
        assert!(folder.errors(file).contains(&text), "{}", folder.errors(file));
    }
    assert!(folder.errors("pipe.md").contains("it is a pipe, not a regular file"));
    assert_eq!(folder.errors("near.md"), "", "a link inside the folder");
}

#[test]
fn total_prompt_size_is_bounded() {
    let folder = Folder::new();
    folder.write("half.md", "x".repeat(600 * 1024));
    let set = ["collaboration.finalize_prompt_file=half.md", "roles.ann.prompt_file=half.md"];
    let problems = folder.check(&set).problems;
    assert!(problems.to_string().contains("the prompt files are too large"), "{problems}");
}

#[test]
fn requires_exactly_one_prompt_key() {
    let folder = Folder::new();
    let with = |text: &str| {
        let text = FILE.replace("prompt_file = \"prompts/ann.md\"", text);
        check(&text, folder.origin(), &[]).problems.to_string()
    };
    let both = with("prompt = \"Ann.\"\nprompt_file = \"prompts/ann.md\"");
    let what = "13:15: error: roles.ann.prompt_file: `prompt` and `prompt_file` are both set";
    assert!(both.contains(what) && both.contains("(remove one of them)"), "{both}");
    assert!(with("").contains("roles.ann.prompt: `prompt` is missing"), "{}", with(""));
}

#[test]
fn override_replaces_either_prompt_key() {
    let folder = Folder::new();
    folder.write("other.md", "You are somebody else.");
    for (set, text, files) in [
        (&["roles.ann.prompt=Typed."][..], "Typed.", 0),
        (&["roles.ann.prompt_file=other.md"], "You are somebody else.", 1),
        (&["roles.ann.prompt=Typed.", "roles.ann.prompt_file=other.md"], "somebody else.", 1),
        (&["roles.ann.prompt_file=none.md", "roles.ann.prompt=Typed."], "Typed.", 0),
        (&["collaboration.finalize_prompt_file=other.md"], "You are somebody else.", 2),
    ] {
        let scenario = folder.load(set);
        assert!(settings(&scenario).contains(text), "{set:?}");
        assert_eq!(scenario.source.prompt_files.len(), files, "{set:?}");
        let shown = prompts(FILE, &overrides(set), &scenario.source.prompt_files);
        assert!(shown.len() == 2 && shown.iter().any(|it| it.text.contains(text)), "{shown:?}");
    }
    let wrong = folder.check(&["roles.ann.prompt_file=none.md"]).problems.to_string();
    assert!(wrong.starts_with("--set roles.ann.prompt_file=none.md: error: "), "{wrong}");
}

#[test]
fn fileless_scenario_has_no_prompt_files() {
    let piped = check(FILE, ScenarioOrigin::File("stdin".into()), &[]).problems.to_string();
    let what = "this scenario has no folder: it was not read from a file (save the scenario to";
    assert!(piped.contains(what), "{piped}");
    let one = shipped().iter().find(|it| it.name == "checkout-unanimous").expect("shipped");
    let set = overrides(&["roles.risk_analyst.prompt_file=Cargo.toml"]);
    let problems = check(one.text, one.origin(), &set).problems.to_string();
    assert!(problems.contains("this scenario has no folder"), "{problems}");
    assert!(problems.contains("roundtable new --from"), "{problems}");
}

#[test]
fn digest_covers_prompt_files() {
    let folder = Folder::new();
    let first = folder.load(&[]).hash;
    assert_eq!(folder.load(&["budget.max_rounds=2"]).hash, first, "as without prompt files");
    folder.write("prompts/ann.md", "You are Ann, who does not like {{what}}.\n");
    let changed = folder.load(&[]).hash;
    assert_ne!(changed, first);
    folder.write("other.md", "You are Ann, who does not like {{what}}.\n");
    assert_ne!(folder.load(&["roles.ann.prompt_file=other.md"]).hash, changed, "another file");
}

#[test]
fn stored_scenario_needs_no_files() {
    let folder = Folder::new();
    let first = folder.load(&[]);
    let line = serde_json::to_string(&*first.source).expect("JSON");
    let stored: SourceText = serde_json::from_str(&line).expect("read back");
    assert_eq!(stored, *first.source);
    let again =
        |stored: &SourceText, set: &[&str]| check_again(stored, folder.origin(), &overrides(set));
    for gone in [false, true] {
        match gone {
            false => folder.write("prompts/ann.md", "Another prompt."),
            true => std::fs::remove_dir_all(folder.path("prompts")).expect("removed"),
        }
        let same = again(&stored, &[]).scenario.expect("a good scenario");
        assert_eq!((settings(&same), &same.hash), (settings(&first), &first.hash));
        let edited = again(&stored, &["roles.ann.prompt=Edited."]).scenario.expect("good");
        assert!(settings(&edited).contains("Edited."));
    }
    // No file is read for it, with any path in its log.
    folder.write("other.md", "Not read.");
    let refused = again(&stored, &["roles.ann.prompt_file=other.md"]).problems.to_string();
    assert!(refused.contains("the text of other.md is not stored"), "{refused}");
    let shown = prompts(FILE, &[], &stored.prompt_files);
    assert!(shown.iter().any(|it| it.text.starts_with("You are Ann")), "{shown:?}");
    // Logs without prompt files are as before.
    let plain = SourceText { prompt_files: Default::default(), ..stored };
    let line = serde_json::to_value(&plain).expect("JSON");
    assert!(line.get("prompt_files").is_none(), "{line}");
}

#[tokio::test(start_paused = true)]
async fn log_contains_unredacted_prompt_files() {
    let folder = Folder::new();
    let scenario = Arc::new(folder.load(&[]));
    let run = table::engine().start(Launch::scripted(scenario, true));
    let events = table::facts(&run).await;
    let first = events[0].to_line().expect("a line");
    assert!(first.contains("who likes {{what}}") && first.contains("prompts/ann.md"), "{first}");
    let mut redactor = TextRedactor::new([7; 32]);
    let redacted: Vec<Event> =
        events.iter().map(|event| redactor.redact(Event::clone(event))).collect();
    let first = redacted[0].to_line().expect("a line");
    assert!(first.contains("prompt_files") && !first.contains("ann.md"), "{first}");
    assert!(!first.contains("who likes"), "{first}");
}
