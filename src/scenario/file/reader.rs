//! Collects the problems of a file, with their positions, while it is read.

use super::problem::{AffectedRuns, Problems, Severity, UnplacedProblem, position};
use super::prompt_files::{PromptFileTexts, PromptFiles};
use super::toml_string;
use super::tree::{TextSpan, TomlNode, TomlTable, TomlValue};

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
    /// What to do.
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
        self.texts.get(at.text).map_or((1, 1), |text| position(text, at.start))
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
                let (line, _) = position(&self.texts[at.text], at.start);
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
        let start = at.start + toml_string::source_offset(raw, from);
        let end = at.start + toml_string::source_offset(raw, to);
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

    /// How to write a value that stands where a table is expected, if the table needs just one key:
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

    /// The suggestion for an unknown name, see [`among`]; empty if it would not be kept.
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
