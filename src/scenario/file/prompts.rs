//! The prompts of a scenario as its file has them, to be changed by an override.

use super::key_suggestion::REFUSED_KEYS;
use super::overrides::Override;
use super::prompt_files::{FILE_SUFFIX, PromptFileTexts};
use super::reader::ReadContext;
use super::text_or_file::GivenText;
use super::toml_text;
use super::tree::{TomlTable, TomlValue};
use crate::scenario::patterns::ROWS;

/// The tables in which no key is a prompt: what is in them is named by the author, or is data.
const WITHOUT_PROMPTS: [&str; 5] = ["inputs", "flags", "facts", "script", "tools"];

/// A prompt as the file has it, with the names in `{{ }}` that are filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptText {
    /// Its path, as an override names it (`roles.risk_analyst.prompt`).
    pub path: String,
    /// Who gets it, or the step that it is for.
    pub label: String,
    /// The text.
    pub text: String,
}

/// The prompts of a scenario after these overrides, in the order of its file; at the end the defaults of
/// steps for which the file has none. `files` has the texts of its prompt files.
pub fn prompts(text: &str, overrides: &[Override], files: &PromptFileTexts) -> Vec<PromptText> {
    let Ok((document, _)) = toml_text::parse(text) else { return Vec::new() };
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
    fn steps_without_a_prompt_have_their_default() {
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
    fn each_prompt_of_the_shipped_scenarios_can_be_overridden() {
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
