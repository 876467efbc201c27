//! The prompts of a scenario: as overrides may change them, and from the text files that
//! `prompt_file` names, read from the scenario's folder or taken from the log of a run.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::overrides::Override;
use super::shape::GivenText;
use super::tree::{TomlTable, TomlValue};
use super::{REFUSED_KEYS, ReadContext, tree};
use crate::base::read_file;
use crate::base::read_file::Links;
use crate::scenario::patterns::ROWS;

/// The tables without prompts: the author names their keys, or they hold data.
const WITHOUT_PROMPTS: [&str; 5] = ["inputs", "flags", "facts", "script", "tools"];

/// A prompt as the file has it, with the names in `{{ }}` that are filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptText {
    /// Its path, as an override names it (`roles.risk_analyst.prompt`).
    pub path: String,
    /// Who gets it, or the step that it is for.
    pub label: String,
    pub text: String,
}

/// The prompts of a scenario after these overrides, in the order of its file; at the end the defaults of
/// steps for which the file has none. `files` has the texts of its prompt files.
pub fn prompts(text: &str, overrides: &[Override], files: &PromptFileTexts) -> Vec<PromptText> {
    let Ok((document, _)) = tree::parse(text) else { return Vec::new() };
    let mut root = TomlTable::from_toml(document.get_ref(), 0);
    // What is wrong is reported where the scenario is read.
    let mut cx = ReadContext::new(String::new(), text, Vec::new(), REFUSED_KEYS);
    for (index, set) in overrides.iter().enumerate() {
        set.apply(index + 1, &mut root, &mut cx);
    }
    root.entries.retain(|(key, _)| !WITHOUT_PROMPTS.contains(&key.text.as_str()));
    let mut found = Vec::new();
    collect(&root, &mut Vec::new(), files, &mut found);
    add_defaults(&root, &mut found);
    found
}

/// Adds the default prompts of the steps that the model does and for which the file has none.
fn add_defaults(root: &TomlTable, found: &mut Vec<PromptText>) {
    let own = ROWS.iter().find(|row| text_of(root, "pattern") == Some(row.name));
    let Some(row) = own else { return };
    let Some(TomlValue::Table(table)) = root.get(row.name).map(|node| &node.value) else { return };
    for default in row.default_prompts {
        if GivenText::of(table, default.key).is_none()
            && text_of(table, default.step) != Some("rule")
        {
            found.push(PromptText {
                path: path_of(&[row.name, default.key]),
                label: default.step.to_owned(),
                text: default.text.to_owned(),
            });
        }
    }
}

fn text_of<'t>(table: &'t TomlTable, key: &str) -> Option<&'t str> {
    match &table.get(key)?.value {
        TomlValue::Text(text) => Some(text),
        _ => None,
    }
}

fn collect<'t>(
    table: &'t TomlTable,
    path: &mut Vec<&'t str>,
    files: &PromptFileTexts,
    found: &mut Vec<PromptText>,
) {
    for (key, node) in &table.entries {
        let name = match &node.value {
            // A prompt is listed under the key of its text, by which it can be overridden.
            TomlValue::Text(_) => key.text.strip_suffix(FILE_SUFFIX).unwrap_or(&key.text),
            _ => &key.text,
        };
        path.push(name);
        match &node.value {
            TomlValue::Table(table) => collect(table, path, files, found),
            TomlValue::Text(given) => {
                let step = name.strip_suffix("_prompt");
                let is_own = matches!(name, "prompt" | "instruction");
                let owner = path.len().checked_sub(2).and_then(|at| path.get(at)).copied();
                let text = match GivenText::of(table, name) {
                    Some(GivenText::Text(it)) if it.at == node.at => Some(given.clone()),
                    Some(GivenText::File(it)) if it.at == node.at => {
                        files.get(given).map(|text| text.to_string())
                    }
                    _ => None,
                };
                if let (Some(label), Some(text)) = (step.or(owner.filter(|_| is_own)), text) {
                    found.push(PromptText { path: path_of(path), label: label.to_owned(), text });
                }
            }
            _ => {}
        }
        path.pop();
    }
}

/// A path as an override names it.
fn path_of(names: &[&str]) -> String {
    let quoted = |name: &&str| match name.contains(['.', '=', ' ']) {
        true => format!("\"{name}\""),
        false => (*name).to_owned(),
    };
    names.iter().map(quoted).collect::<Vec<_>>().join(".")
}

/// The texts of prompt files by their paths, as the scenario writes these.
pub(crate) type PromptFileTexts = BTreeMap<String, Arc<str>>;

/// Maximum size of all prompt files of a scenario together, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// What is appended to the key of a prompt for the key that names its file.
pub(super) const FILE_SUFFIX: &str = "_file";

/// Where the texts of prompt files come from.
#[derive(Debug)]
enum PromptFileOrigin {
    /// The folder of the scenario's file.
    Folder(PathBuf),
    /// There is no such folder: the scenario was shipped, or came through a pipe.
    NoFolder { help: &'static str },
    /// They were read before.
    Stored(PromptFileTexts),
}

/// Why a prompt file cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PromptFileError {
    /// What is wrong.
    pub what: String,
    pub help: String,
}

/// Reads prompt files, and keeps the texts of those that the scenario uses.
#[derive(Debug)]
pub(crate) struct PromptFiles {
    origin: PromptFileOrigin,
    used: PromptFileTexts,
    /// Bytes of all uses: a file that two prompts name counts twice.
    bytes: u64,
}

impl PromptFiles {
    /// The prompt files below a folder.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self::new(PromptFileOrigin::Folder(folder))
    }

    /// There is no folder; `help` says what to do.
    pub fn without_folder(help: &'static str) -> Self {
        Self::new(PromptFileOrigin::NoFolder { help })
    }

    /// Texts that were read before: no file is read.
    pub fn stored(texts: PromptFileTexts) -> Self {
        Self::new(PromptFileOrigin::Stored(texts))
    }

    fn new(origin: PromptFileOrigin) -> Self {
        Self { origin, used: PromptFileTexts::new(), bytes: 0 }
    }

    /// The texts that were used so far.
    pub fn take_used(&mut self) -> PromptFileTexts {
        std::mem::take(&mut self.used)
    }

    /// The text of a file, by its path as the scenario writes it.
    pub fn text(&mut self, path: &str) -> Result<Arc<str>, PromptFileError> {
        let stored = match &self.origin {
            PromptFileOrigin::Stored(texts) => texts.get(path),
            _ => self.used.get(path),
        };
        let text = match (stored.cloned(), &self.origin) {
            (Some(text), _) => {
                self.bytes += text.len() as u64;
                text
            }
            (None, PromptFileOrigin::Folder(folder)) => {
                let found = locate(folder, path)?;
                let most = MAX_BYTES.saturating_sub(self.bytes);
                let file =
                    read_file::open_file(&found, OpenOptions::new().read(true), Links::Refused);
                match file.and_then(|file| read_file::read_within(file, most)) {
                    Ok(bytes) => {
                        self.bytes += bytes.len() as u64;
                        decode(path, bytes)?.into()
                    }
                    // After this one no further file is read.
                    Err(why) if why.kind() == io::ErrorKind::FileTooLarge => {
                        self.bytes = MAX_BYTES + 1;
                        return Err(too_large());
                    }
                    Err(why) => return Err(unreadable(folder, path, &why)),
                }
            }
            (None, PromptFileOrigin::NoFolder { help }) => {
                let what = "this scenario has no folder: it was not read from a file";
                return Err(error(what, *help));
            }
            (None, PromptFileOrigin::Stored(_)) => {
                let what = format!("the text of {path} is not stored with this scenario");
                return Err(error(what, "set the text itself"));
            }
        };
        if self.bytes > MAX_BYTES {
            return Err(too_large());
        }
        self.used.insert(path.to_owned(), Arc::clone(&text));
        Ok(text)
    }
}

fn error(what: impl Into<String>, help: impl Into<String>) -> PromptFileError {
    PromptFileError { what: what.into(), help: help.into() }
}

fn too_large() -> PromptFileError {
    error("the prompt files are too large", format!("at most {MAX_BYTES} bytes in all"))
}

fn unreadable(folder: &Path, path: &str, why: &io::Error) -> PromptFileError {
    let help = format!("the path starts at the scenario's folder, {}", folder.display());
    error(format!("cannot read {path}: {why}"), help)
}

/// The file that a path names in a folder, after all links.
fn locate(folder: &Path, path: &str) -> Result<PathBuf, PromptFileError> {
    if !is_inside(path) {
        let help = "name a file of that folder or below it, such as `prompts/risk.md`";
        return Err(error(format!("`{path}` is not a path inside the scenario's folder"), help));
    }
    let resolved = |path: &Path| path.canonicalize();
    let root = resolved(folder).map_err(|why| unreadable(folder, path, &why))?;
    let found = resolved(&root.join(path)).map_err(|why| unreadable(folder, path, &why))?;
    if !found.starts_with(&root) {
        let what = format!("{path} is a link to a file outside the scenario's folder");
        return Err(error(what, "copy that file into the folder"));
    }
    Ok(found)
}

/// Whether a path names something below a folder, on every system.
fn is_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty()
        && !path.contains(['\\', ':', '\0'])
        && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// The text of a file. Lines end as on Unix, so that a prompt does not depend on the system.
fn decode(path: &str, bytes: Vec<u8>) -> Result<String, PromptFileError> {
    let text = String::from_utf8(bytes).map_err(|wrong| {
        let at = wrong.utf8_error().valid_up_to();
        error(format!("{path} is not a text file: byte {at} is not UTF-8"), "save it as UTF-8")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n");
    match text.trim().is_empty() {
        true => Err(error(format!("{path} is empty"), "write the prompt in it")),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{check, shipped};

    fn none() -> PromptFileTexts {
        PromptFileTexts::new()
    }

    const FILE: &str = r#"
title = "Mine"
[inputs.prompt]
value = "x"
instruction = "no prompt"
[roles."a.b"]
prompt = "You are {{who}}."
[roles.c]
prompt = "You are c."
flag = "prompt"
[collaboration]
finalize_prompt = "Write the brief."
[[script]]
prompt = "no prompt"
"#;

    #[test]
    fn prompts_are_found_with_their_overrides() {
        let set = [r#"roles.c.prompt=Another one."#.parse().expect("an override")];
        let found: Vec<_> = prompts(FILE, &set, &none())
            .into_iter()
            .map(|it| (it.path, it.label, it.text))
            .collect();
        let row = |path: &str, label: &str, text: &str| {
            (path.to_owned(), label.to_owned(), text.to_owned())
        };
        assert_eq!(
            found,
            [
                row("roles.\"a.b\".prompt", "a.b", "You are {{who}}."),
                row("roles.c.prompt", "c", "Another one."),
                row("collaboration.finalize_prompt", "finalize", "Write the brief."),
            ]
        );
        assert_eq!(prompts("[[[", &[], &none()), []);
    }

    #[test]
    fn steps_without_prompt_use_default() {
        let file = "pattern = \"research\"\n[research]\nnotes = \"rule\"\nplan_prompt = \"Mine.\"";
        let found: Vec<_> =
            prompts(file, &[], &none()).into_iter().map(|it| (it.path, it.label)).collect();
        let row = |path: &str, label: &str| (path.to_owned(), label.to_owned());
        assert_eq!(
            found,
            [row("research.plan_prompt", "plan"), row("research.answer_prompt", "answer")]
        );
    }

    #[test]
    fn allows_override_of_each_shipped_prompt() {
        let mut all = 0;
        for scenario in shipped() {
            let found = prompts(scenario.text, &[], &none());
            let set: Vec<Override> = found
                .iter()
                .map(|it| Override::literal(&it.path, "Another prompt.").expect("a path"))
                .collect();
            let checked = check(scenario.text, scenario.origin(), &set);
            assert!(checked.scenario.is_some(), "{}: {:?}", scenario.name, checked.problems);
            assert!(
                prompts(scenario.text, &set, &none()).iter().all(|it| it.text == "Another prompt.")
            );
            all += found.len();
        }
        assert!(all > 60, "{all} prompts");
    }
}
