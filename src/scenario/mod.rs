//! The scenario file: reading, validation with positions, CEL conditions, inputs and flags; and the
//! configuration file, which is read in the same way. All problems are reported at once, and
//! reading is bounded work. This layer knows nothing of runs, models or screens.

pub mod catalogue;
pub mod cel;
pub mod check;
pub mod config;

pub mod patterns;
pub mod people;
pub mod read;
pub mod rows;
pub mod rules;
pub mod source;
pub mod spec;
pub mod telemetry;
pub mod tools;

use std::path::Path;

use self::read::format::ScenarioFile;
use self::read::problem::AffectedRuns;
use self::read::prompts::{PromptFileTexts, PromptFiles};
use self::read::shape::FormatShape as _;
use self::read::tree::{
    MAX_TABLES, TextSpan, TomlNode, TomlTable, TomlValue, report_syntax_errors,
};
use self::read::{REFUSED_KEYS, ReadContext, tree};
use self::spec::{ScenarioWarnings, SourceText};
use crate::base::name::ScenarioName;

pub use self::catalogue::{ScenarioTemplate, templates};
pub use self::patterns::schema;
pub use self::read::overrides::{Override, OverrideError};
pub use self::read::problem::{Problem, ProblemPosition, Problems, Severity};
pub use self::source::{STDIN, ScenarioListing, ScenarioSource, ShippedScenario, shipped};
pub use self::spec::{Scenario, ScenarioOrigin};

/// Maximum size of a scenario file, in bytes.
pub const MAX_BYTES: u64 = 1024 * 1024;

/// The result of reading a scenario.
#[derive(Debug)]
pub struct CheckedScenario {
    /// The scenario; `None` if there is an error.
    pub scenario: Option<Scenario>,
    /// Errors and warnings.
    pub problems: Problems,
}

/// Reads a scenario: applies the overrides to the file, then checks everything. Prompt files are read
/// from the folder of the file that `origin` names.
///
/// # Errors
/// All problems, errors and warnings. If there are only warnings, the scenario is returned and has
/// them in [`Scenario::warnings`].
pub fn load(
    text: &str,
    origin: ScenarioOrigin,
    overrides: &[Override],
) -> Result<Scenario, Problems> {
    let checked = check(text, origin, overrides);
    checked.scenario.ok_or(checked.problems)
}

/// The same as [`load`], but returns the problems of a valid scenario, too.
pub fn check(text: &str, origin: ScenarioOrigin, overrides: &[Override]) -> CheckedScenario {
    let prompt_files = prompt_files_of(&origin);
    check_with(text, origin, overrides, prompt_files)
}

/// The same as [`check`] for a scenario that was read before: no prompt file is read, the texts of
/// `source` are used.
pub(crate) fn check_again(
    source: &SourceText,
    origin: ScenarioOrigin,
    overrides: &[Override],
) -> CheckedScenario {
    let prompt_files = PromptFiles::stored(source.prompt_files.clone());
    check_with(&source.text, origin, overrides, prompt_files)
}

fn check_with(
    text: &str,
    origin: ScenarioOrigin,
    overrides: &[Override],
    prompt_files: PromptFiles,
) -> CheckedScenario {
    let set = overrides.iter().map(|set| set.text().to_owned()).collect();
    let called = match &origin {
        // The path in the repository is not a path on this machine.
        ScenarioOrigin::Shipped(_) => name(&origin).to_string(),
        ScenarioOrigin::File(_) => origin.to_string(),
    };
    let mut cx = ReadContext::new(called, text, set, REFUSED_KEYS).with_prompt_files(prompt_files);
    if text.len() as u64 > MAX_BYTES {
        cx.error(
            TextSpan::new(0, 0..0),
            "the file is too large",
            format!("at most {MAX_BYTES} bytes"),
        );
        return CheckedScenario { scenario: None, problems: cx.finish() };
    }
    let document = match tree::parse(text) {
        Ok((document, errors)) if errors.is_empty() => document,
        Ok((_, errors)) => {
            report_syntax_errors(text, &errors, &mut cx);
            return CheckedScenario { scenario: None, problems: cx.finish() };
        }
        Err(at) => {
            let help = format!("at most {MAX_TABLES}");
            cx.error(TextSpan::new(0, at..at + 1), "the file has too many tables", help);
            return CheckedScenario { scenario: None, problems: cx.finish() };
        }
    };
    let mut table = TomlTable::from_toml(document.get_ref(), 0);
    for (index, set) in overrides.iter().enumerate() {
        set.apply(index + 1, &mut table, &mut cx);
    }
    let source = SourceText {
        text: text.into(),
        set: overrides.iter().map(|set| set.text().to_owned()).collect(),
        file: match &origin {
            ScenarioOrigin::Shipped(_) => None,
            ScenarioOrigin::File(path) => Some(path.display().to_string()),
        },
        // They are known once the tables are read.
        prompt_files: PromptFileTexts::new(),
    };
    let at = TextSpan::new(0, 0..0);
    let pattern = check::settle_pattern(&mut table, at, &mut cx);
    let root = TomlNode { at, value: TomlValue::Table(table) };
    let built = ScenarioFile::read(&root, &mut cx).and_then(|file| {
        let source = SourceText { prompt_files: cx.take_prompt_files(), ..source };
        check::build(file, pattern, name(&origin), origin, source, &mut cx)
    });
    let failed = cx.failed();
    let problems = cx.finish();
    let scenario = built.filter(|_| !failed).map(|scenario| {
        let lines = |of: &[AffectedRuns]| -> Vec<String> {
            let of = problems.iter().filter(|it| of.contains(&it.affected_runs));
            of.map(|problem| problems.line(problem)).collect()
        };
        let mut warnings = lines(&[AffectedRuns::All]);
        if problems.more() > 0 {
            warnings.push(format!("… and {} more", problems.more()));
        }
        let warnings = ScenarioWarnings {
            every_run: warnings,
            offline: lines(&[AffectedRuns::SomeOffline, AffectedRuns::AllOffline]),
            live: lines(&[AffectedRuns::Live]),
        };
        Scenario { warnings, ..scenario }
    });
    CheckedScenario { scenario, problems }
}

/// The prompt files of a scenario that is read: those in the folder of its file, if it is one.
fn prompt_files_of(origin: &ScenarioOrigin) -> PromptFiles {
    const COPY: &str = "copy the scenario with `roundtable new --from`, or set the text itself";
    const SAVE: &str = "save the scenario to a file, or set the text itself";
    match origin {
        ScenarioOrigin::File(path) if path.is_file() => {
            let folder = path.parent().filter(|folder| *folder != Path::new(""));
            PromptFiles::in_folder(folder.unwrap_or(Path::new(".")).to_owned())
        }
        ScenarioOrigin::File(_) => PromptFiles::without_folder(SAVE),
        ScenarioOrigin::Shipped(_) => PromptFiles::without_folder(COPY),
    }
}

/// The name of a scenario: its file name without the extension.
fn name(origin: &ScenarioOrigin) -> ScenarioName {
    let path = match origin {
        ScenarioOrigin::Shipped(path) => Path::new(path),
        ScenarioOrigin::File(path) => path,
    };
    ScenarioName::new(path.file_stem().unwrap_or_default().to_string_lossy().as_ref())
}

/// What the operator is asked to allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsentAbout {
    /// The actions of a scenario.
    Scenario,
    /// The answers of people in a log that came from elsewhere.
    Answers,
}

/// The actions that the operator has to allow, and the keys under which a yes is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    pub about: ConsentAbout,
    /// Keys of the stored answer: a digest of the scenario's file and of the programs next to it that it
    /// runs, and one for each action that a value from outside of the file adds; or that of the log.
    pub digests: Vec<String>,
    /// What the answer holds for, such as `this version of the file`.
    pub scope: &'static str,
    /// Whether the file alone needs it; else values do that were given for its inputs and fields.
    pub is_of_file: bool,
    /// What the run would do, one line each; a line that begins with spaces belongs to the one
    /// above. Of answers: each with what it is about.
    pub would: Vec<String>,
    /// Why a yes cannot be stored, and what to do; `None` if it can.
    pub not_kept: Option<String>,
}
