//! The file as text: TOML with positions, the reader that collects every problem with its place,
//! the tables of the format (which are also its JSON schema), overrides, templates, and suggestions
//! for keys in the wrong place. It knows the words of the format and not what they mean together.

pub mod amount;
pub mod format;
pub mod names;
pub mod overrides;
pub mod problem;
pub mod prompts;
pub mod shape;
pub mod template;
pub mod tree;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use self::format::schema;
use self::problem::{AffectedRuns, Problems, Severity, UnplacedProblem, line_and_column};
use self::prompts::{PromptFileTexts, PromptFiles};
use self::tree::{MAX_TABLES, TextSpan, TomlNode, TomlTable, TomlValue, report_syntax_errors};
use super::MAX_BYTES;
use crate::scenario::patterns::agents::table::key_owner;

/// The tables of a file that is no scenario. `None`: it cannot be read, and why is reported.
pub(crate) fn read_document(text: &str, cx: &mut ReadContext) -> Option<TomlNode> {
    let start = TextSpan::new(0, 0..0);
    if text.len() as u64 > MAX_BYTES {
        cx.error(start, "the file is too large", format!("at most {MAX_BYTES} bytes"));
        return None;
    }
    let document = match tree::parse(text) {
        Ok((document, errors)) if errors.is_empty() => document,
        Ok((_, errors)) => {
            report_syntax_errors(text, &errors, cx);
            return None;
        }
        Err(at) => {
            let help = format!("at most {MAX_TABLES}");
            cx.error(TextSpan::new(0, at..at + 1), "the file has too many tables", help);
            return None;
        }
    };
    let table = TomlTable::from_toml(document.get_ref(), 0);
    Some(TomlNode { at: start, value: TomlValue::Table(table) })
}

/// Collects problems while a file is read.
pub(crate) struct ReadContext {
    texts: Vec<String>,
    problems: Problems,
    path: String,
    unknown_keys: UnknownKeys,
    prompt_files: PromptFiles,
    /// The texts after those of the file and its overrides.
    included: Vec<IncludedText>,
}

/// A text from a file that the scenario names. Its problems are reported where it is named.
struct IncludedText {
    /// Where the scenario names it.
    at: TextSpan,
    /// What the scenario calls it.
    name: String,
    /// Path of the key that names it.
    path: String,
}

/// The rule for unknown keys of the table at `path`, whose keys are `known`.
#[derive(Clone, Copy)]
pub(crate) enum UnknownKeys {
    /// They are errors; `suggestion` makes the help. `place_of_top_key` makes the help for a value
    /// in place of a table under a name.
    Refused {
        suggestion: fn(path: &str, key: &str, known: &[&str]) -> String,
        place_of_top_key: fn(path: &str, key: &str) -> Option<String>,
    },
    /// They are warnings; the function makes them.
    Ignored(fn(path: &str, key: &str, known: &[&str]) -> UnknownKey),
}

/// The problem of an unknown key.
pub(crate) struct UnknownKey {
    /// The warning.
    pub what: String,
    pub help: String,
}

impl ReadContext {
    /// A reader of a file and its overrides.
    pub fn new(
        name: String,
        text: &str,
        overrides: Vec<String>,
        unknown_keys: UnknownKeys,
    ) -> Self {
        let mut texts = vec![text.to_owned()];
        texts.extend(overrides.iter().cloned());
        let problems = Problems::new(name, text.to_owned(), overrides);
        let prompt_files = PromptFiles::stored(PromptFileTexts::new());
        let (path, included) = (String::new(), Vec::new());
        Self { texts, problems, path, unknown_keys, prompt_files, included }
    }

    /// The same with these prompt files; without them a file has none.
    pub fn with_prompt_files(self, prompt_files: PromptFiles) -> Self {
        Self { prompt_files, ..self }
    }

    /// The prompt files.
    pub fn prompt_files(&mut self) -> &mut PromptFiles {
        &mut self.prompt_files
    }

    /// Adds a text from a file that is named here, and returns its span. The current path is that
    /// of the key that names it.
    pub fn include_text(&mut self, at: TextSpan, name: String, text: &str) -> TextSpan {
        self.included.push(IncludedText { at, name, path: self.path.clone() });
        self.texts.push(text.to_owned());
        TextSpan::new(self.texts.len() - 1, 0..text.len())
    }

    /// The included text that a span belongs to.
    fn included(&self, at: TextSpan) -> Option<&IncludedText> {
        let first = self.texts.len() - self.included.len();
        at.text.checked_sub(first).and_then(|index| self.included.get(index))
    }

    /// Line and column of a node in the file, both from 1.
    pub fn position(&self, at: TextSpan) -> (usize, usize) {
        self.texts.get(at.text).map_or((1, 1), |text| line_and_column(text, at.start))
    }

    /// All problems, sorted.
    pub fn finish(mut self) -> Problems {
        self.problems.sort();
        self.problems
    }

    /// The texts of the prompt files that were used.
    pub fn take_prompt_files(&mut self) -> PromptFileTexts {
        self.prompt_files.take_used()
    }

    /// Whether there is an error.
    pub fn failed(&self) -> bool {
        self.problems.errors() > 0
    }

    /// Reports an error; `help` says what to do.
    pub fn error(&mut self, at: TextSpan, what: impl Into<String>, help: impl Into<String>) {
        self.note(Severity::Error, AffectedRuns::All, at, what.into(), help.into());
    }

    /// Reports a warning.
    pub fn warn(&mut self, at: TextSpan, what: impl Into<String>, help: impl Into<String>) {
        self.note(Severity::Warning, AffectedRuns::All, at, what.into(), help.into());
    }

    /// Warns that an offline run has no reply to a call; `certain`: every offline run makes this
    /// call.
    pub fn warn_no_reply(
        &mut self,
        at: TextSpan,
        what: impl Into<String>,
        help: &str,
        certain: bool,
    ) {
        let concerns = if certain { AffectedRuns::AllOffline } else { AffectedRuns::SomeOffline };
        self.note(Severity::Warning, concerns, at, what.into(), help.to_owned());
    }

    /// Warns of something that only a live run lacks.
    pub fn warn_live(&mut self, at: TextSpan, what: impl Into<String>, help: impl Into<String>) {
        self.note(Severity::Warning, AffectedRuns::Live, at, what.into(), help.into());
    }

    fn note(
        &mut self,
        severity: Severity,
        concerns: AffectedRuns,
        at: TextSpan,
        what: String,
        help: String,
    ) {
        if self.is_full() {
            self.problems.count_only(severity);
            return;
        }
        let help = Some(help).filter(|help| !help.is_empty());
        let (at, path, what) = match self.included(at) {
            None => (at, self.path.clone(), what),
            Some(text) => {
                let (line, _) = line_and_column(&self.texts[at.text], at.start);
                let is_part = at.end - at.start < self.texts[at.text].len();
                let what = match is_part {
                    true => format!("{what}, in line {line} of {}", text.name),
                    false => what,
                };
                (text.at, text.path.clone(), what)
            }
        };
        let problem = UnplacedProblem { severity, concerns, path, what, help };
        self.problems.add(at.text, at.start..at.end, problem);
    }

    /// Reports a value of the wrong type.
    pub fn wrong_type(&mut self, node: &TomlNode, wanted: &str) {
        self.error(node.at, format!("expected {wanted}, found {}", node.describe()), "");
    }

    /// Reads the value under a key; its problems get the key in their path.
    pub fn at_key<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.path.len();
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
        let value = read(self);
        self.path.truncate(before);
        value
    }

    /// Reads the value under a longer key: the last one of the path with a suffix.
    pub fn at_key_suffix<T>(&mut self, suffix: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.path.len();
        self.path.push_str(suffix);
        let value = read(self);
        self.path.truncate(before);
        value
    }

    /// Whether the current value is under this key.
    pub fn is_at(&self, key: &str) -> bool {
        self.path.rsplit('.').next() == Some(key)
    }

    /// Reads an item of a list, with its index from 0; its problems get the index in their path.
    pub fn at_index<T>(&mut self, index: usize, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.path.len();
        self.path.push_str(&format!("[{index}]"));
        let value = read(self);
        self.path.truncate(before);
        value
    }

    /// The span in the file of the bytes `from..to` of a decoded string.
    pub fn inner_span(&self, at: TextSpan, from: usize, to: usize) -> TextSpan {
        if self.is_full() {
            return at;
        }
        if self.included(at).is_some() {
            return TextSpan { text: at.text, start: from, end: to };
        }
        let raw = self.raw(at);
        let start = at.start + tree::source_offset(raw, from);
        let end = at.start + tree::source_offset(raw, to);
        TextSpan { text: at.text, start, end: end.max(start) }
    }

    /// The original text of a node.
    pub fn raw(&self, at: TextSpan) -> &str {
        self.texts.get(at.text).and_then(|text| text.get(at.start..at.end)).unwrap_or_default()
    }

    /// The table of a node; reports its unknown keys. `needed` are those that it must have.
    pub fn table<'n>(
        &mut self,
        node: &'n TomlNode,
        known: &[&str],
        needed: &[&str],
    ) -> Option<&'n TomlTable> {
        let TomlValue::Table(table) = &node.value else {
            let help = self.place_of_top_key().or_else(|| self.table_form(node, needed));
            let help = help.unwrap_or_default();
            self.error(node.at, format!("expected a table, found {}", node.describe()), help);
            return None;
        };
        for (key, _) in &table.entries {
            if !known.contains(&key.text.as_str()) {
                match self.unknown_keys {
                    UnknownKeys::Ignored(warning) => {
                        let UnknownKey { what, help } = warning(&self.path, &key.text, known);
                        self.at_key(&key.text, |cx| cx.warn(key.at, what, help));
                    }
                    UnknownKeys::Refused { suggestion, .. } => {
                        let what = format!("unknown key `{}`", key.text);
                        let help = match self.is_full() {
                            true => String::new(),
                            false => suggestion(&self.path, &key.text, known),
                        };
                        self.at_key(&key.text, |cx| cx.error(key.at, what, help));
                    }
                }
            }
        }
        Some(table)
    }

    /// How to write a value that is in the place of a table, if the table needs just one key:
    /// `write region = { value = "EU" }`.
    fn table_form(&self, node: &TomlNode, needed: &[&str]) -> Option<String> {
        const MAX_CHARS: usize = 40;
        let [key] = needed else { return None };
        let fits = matches!(node.value, TomlValue::Text(_)) || *key == "value";
        let (_, name) = self.path.rsplit_once('.')?;
        let raw = self.raw(node.at);
        let short = raw.chars().count() <= MAX_CHARS && !raw.contains('\n');
        let value = if short { raw } else { "…" };
        fits.then(|| format!("write {name} = {{ {key} = {value} }}"))
    }

    /// What to do if the current key is one of the top of the file, and not the name of a table.
    fn place_of_top_key(&self) -> Option<String> {
        let UnknownKeys::Refused { place_of_top_key, .. } = self.unknown_keys else { return None };
        let (path, key) = self.path.rsplit_once('.')?;
        place_of_top_key(path, key)
    }

    /// The suggestion for an unknown name, see [`suggest_name`]; empty if it would not be kept.
    pub fn suggest<'n>(&self, given: &str, known: impl IntoIterator<Item = &'n str>) -> String {
        if self.is_full() { String::new() } else { suggest_name(given, known) }
    }

    /// Reports a missing key: the last one of the path.
    pub fn report_missing_key(&mut self, node: &TomlNode, about: String) {
        let key = self.path.rsplit('.').next().unwrap_or_default().to_owned();
        self.error(node.at, format!("`{key}` is missing"), about);
    }

    /// Counts errors without keeping them.
    pub fn count_errors(&mut self, errors: usize) {
        self.problems.add_uncounted_errors(errors);
    }

    /// Whether further problems are only counted, so that their texts need not be built.
    pub fn is_full(&self) -> bool {
        self.problems.is_full()
    }

    /// Whether there is an error at the current value or inside it.
    pub fn has_error_here(&self) -> bool {
        self.problems.errors_under(&self.path)
    }
}

/// The suggestion for an unknown name: the closest name, or a list of all.
pub(crate) fn suggest_name<'n>(given: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    const SHOWN: usize = 16;
    let known: Vec<&str> = known.into_iter().collect();
    if let Some(name) = closest_name(given, known.iter().copied()) {
        return format!("did you mean `{name}`?");
    }
    match known.len() {
        0 => "there are none".to_owned(),
        1 => format!("the only one is {}", known[0]),
        2..=SHOWN => format!("one of {}", known.join(", ")),
        more => format!("one of {}, … ({more} in all)", known[..SHOWN].join(", ")),
    }
}

/// The same for optional names of one kind, such as `inputs`.
pub(crate) fn suggest_declared_name<'n>(
    kind: &str,
    given: &str,
    known: impl IntoIterator<Item = &'n str>,
) -> String {
    let mut known = known.into_iter().peekable();
    match known.peek() {
        None => format!("the scenario has no {kind}"),
        Some(_) => suggest_name(given, known),
    }
}

/// The closest name, if it is close enough to be a typo.
pub(crate) fn closest_name<'n>(
    given: &str,
    known: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    /// Maximum number of names that are compared.
    const COMPARED: usize = 1_000;
    /// Maximum difference in length, in characters.
    const SLIP: usize = 3;
    let letters = given.chars().count();
    if letters > 64 {
        return None;
    }
    let given = given.to_lowercase();
    known
        .into_iter()
        .take(COMPARED)
        .filter(|name| name.len() <= 4 * 64 && name.chars().count().abs_diff(letters) <= SLIP)
        .map(|name| (strsim::damerau_levenshtein(&given, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= (name.chars().count() / 3).clamp(1, 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The rule for unknown keys of scenarios.
pub(super) const REFUSED_KEYS: UnknownKeys =
    UnknownKeys::Refused { suggestion: suggest_key, place_of_top_key };

/// Synonyms, also from other programs: table (`*` stands for any name), the synonym, the key that
/// it means.
const KEY_SYNONYMS: [(&str, &str, &str); 21] = [
    ("flags.*", "value", "default"),
    ("inputs.*", "default", "value"),
    ("agents.*", "prompt", "instruction"),
    ("agents.*", "prompt_file", "instruction_file"),
    ("agents.*", "system_prompt", "instruction"),
    ("roles.*", "instruction", "prompt"),
    ("roles.*", "instruction_file", "prompt_file"),
    ("roles.*", "system_prompt", "prompt"),
    ("team", "coordinator", "root"),
    ("script.calls", "name", "tool"),
    ("script.calls", "arguments", "args"),
    ("tools.*.fixture.rows", "reply", "result"),
    ("tools.*.fixture.rows", "output", "result"),
    ("tools.*.fixture.rows", "value", "result"),
    ("tools.*.fixture.rows", "text", "raw"),
    ("workers.*.fixture.rows", "reply", "result"),
    ("workers.*.fixture.rows", "output", "result"),
    ("workers.*.fixture.rows", "value", "result"),
    ("workers.*.fixture.rows", "text", "raw"),
    ("model", "model", "name"),
    ("model", "url", "base_url"),
];

/// Maximum number of tables that are named for a key, and for one that is misspelt, too.
const MAX_PLACES: usize = 6;
const MAX_PLACES_NEAR: usize = 3;
/// Maximum number of keys of a table that are listed after the places of a key.
const MAX_KEYS_HERE: usize = 10;

/// The suggestion for an unknown key of the table at `path`, whose keys are `known`.
fn suggest_key(path: &str, key: &str, known: &[&str]) -> String {
    if let Some(help) = place_of_top_key(path, key) {
        return help;
    }
    let place = steps(path);
    let word = KEY_SYNONYMS.iter().find(|(of, word, _)| *word == key && is_place(of, &place));
    if let Some((_, _, right)) = word {
        return format!("did you mean `{right}`?");
    }
    let here = closest_name(key, known.iter().copied());
    if here.is_some() && places(key).is_none() {
        return suggest_name(key, known.iter().copied());
    }
    if matches!(place[..], ["team" | "swarm"]) && key_owner(key).is_some() {
        return "move it to the agent that `root` names: [agents.NAME]".to_owned();
    }
    // Short keys resemble many others.
    let near = || closest_name(key, PLACES.keys().map(String::as_str)).filter(|_| key.len() > 3);
    let (elsewhere, most) = match places(key) {
        Some(places) => (places, MAX_PLACES),
        None => (near().and_then(places).unwrap_or_default(), MAX_PLACES_NEAR),
    };
    // Do not suggest a key for the model that only tools have.
    let for_it = |place: &&String| !(path == "tools.llm" && place.starts_with("tools.NAME."));
    let elsewhere = elsewhere.iter().filter(for_it).map(String::as_str);
    let known_places: Vec<&str> = here.into_iter().chain(elsewhere).collect();
    let keys_here = match known.len() {
        1..=MAX_KEYS_HERE if here.is_none() && !path.is_empty() => {
            format!(" This table has {}", known.join(", "))
        }
        _ => String::new(),
    };
    match known_places[..] {
        [place] => format!("did you mean `{place}`?{keys_here}"),
        [ref first @ .., last] if first.len() < most => {
            let first: Vec<String> = first.iter().map(|place| format!("`{place}`")).collect();
            format!("did you mean {} or `{last}`?{keys_here}", first.join(", "))
        }
        _ => suggest_name(key, known.iter().copied()),
    }
}

/// What to do with a key of the scenario itself that is below the header of a table, so that it
/// belongs to that table. `path` is that of the table.
fn place_of_top_key(path: &str, key: &str) -> Option<String> {
    let is_top = !path.is_empty() && TOP_KEYS.iter().any(|top| top == key);
    is_top.then(|| "move it to the top of the file, above the first [table]".to_owned())
}

/// The keys of the scenario itself that are not tables or lists.
static TOP_KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let schema = schema();
    let keys = schema["properties"].as_object().into_iter().flatten();
    let plain = keys.filter(|(_, of)| of["type"] != "object" && of["type"] != "array");
    plain.map(|(key, _)| key.clone()).collect()
});

/// The names on the path of a table, without indices of lists.
fn steps(path: &str) -> Vec<&str> {
    let name = |step: &'_ str| step.find('[').unwrap_or(step.len());
    path.split('.').map(|step| &step[..name(step)]).collect()
}

fn is_place(pattern: &str, place: &[&str]) -> bool {
    let wanted: Vec<&str> = pattern.split('.').collect();
    let mut pairs = wanted.iter().zip(place);
    wanted.len() == place.len() && pairs.all(|(wanted, step)| *wanted == "*" || wanted == step)
}

fn places(key: &str) -> Option<&'static [String]> {
    PLACES.get(key).map(Vec::as_slice)
}

/// The paths of each key of the format, from the JSON schema.
static PLACES: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut places = BTreeMap::new();
    collect(&schema(), "", &mut places);
    places
});

fn collect(schema: &Value, path: &str, places: &mut BTreeMap<String, Vec<String>>) {
    let within = |step: &str| match path {
        "" => step.to_owned(),
        _ => format!("{path}.{step}"),
    };
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        let place = within(key);
        // Its tables are those of [tools].
        if place != "mcp.NAME.tools" {
            collect(inner, &place, places);
        }
        places.entry(key.clone()).or_default().push(place);
    }
    collect_items(schema, path, &within("NAME"), places);
}

fn collect_items(
    schema: &Value,
    path: &str,
    named: &str,
    places: &mut BTreeMap<String, Vec<String>>,
) {
    if schema["additionalProperties"].is_object() {
        collect(&schema["additionalProperties"], named, places);
    }
    if schema["items"].is_object() {
        collect(&schema["items"], path, places);
    }
}

#[cfg(test)]
mod tests {
    use super::suggest_key;

    #[test]
    fn suggests_place_of_misplaced_key() {
        let root = ["title", "pattern", "budget", "agents", "swarm"];
        for (path, key, expected) in [
            ("", "max_rounds", "did you mean `budget.max_rounds`?"),
            ("", "max_round", "did you mean `budget.max_rounds`?"),
            ("", "members", "did you mean `agents.NAME.members`?"),
            ("", "titel", "did you mean `title`?"),
            ("", "timeout_s", "did you mean `tools.llm.timeout_s` or `tools.NAME.timeout_s`?"),
            ("swarm", "members", "move it to the agent that `root` names: [agents.NAME]"),
            ("team", "coordinator", "did you mean `root`?"),
            ("flags.x", "value", "did you mean `default`?"),
            ("inputs.x", "default", "did you mean `value`?"),
            ("script[3].calls[0]", "arguments", "did you mean `args`?"),
            ("inputs.x", "goal", "move it to the top of the file, above the first [table]"),
            ("tools.x.fixture.rows[1]", "text", "did you mean `raw`?"),
            ("workers.x.fixture.rows[1]", "output", "did you mean `result`?"),
            (
                "tools.x.fixture.rows[1]",
                "rows",
                "did you mean `workers.NAME.fixture.rows` or `tools.NAME.fixture.rows`? This table has \
                 title, pattern, budget, agents, swarm",
            ),
            ("", "a", "one of title, pattern, budget, agents, swarm"),
        ] {
            assert_eq!(suggest_key(path, key, &root), expected, "{path} {key}");
        }
    }
}
