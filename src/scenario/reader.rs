//! Takes note, while a file is read, of everything that is wrong with it and where.

use super::literal;
use super::misplaced;
use super::problem::{Concerns, Problems, Severity, Told, position};
use super::tree::{Node, Span, Table, Tree};

/// Takes note of what is wrong while a file is read.
pub(super) struct Reader {
    texts: Vec<String>,
    problems: Problems,
    path: String,
    /// What is said of unknown keys; `None`: they are errors, told as a scenario's.
    unknown_key: Option<UnknownKeyRule>,
}

/// Says what is wrong with the key of a table at a path, which may have the keys that come last.
pub(super) type UnknownKeyRule = fn(path: &str, key: &str, known: &[&str]) -> UnknownKey;

/// What is told of a key that a table may not have.
pub(super) struct UnknownKey {
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub help: String,
}

impl Reader {
    /// A reader of a file and the overrides laid over it.
    pub fn new(name: String, text: &str, overrides: Vec<String>) -> Self {
        let mut texts = vec![text.to_owned()];
        texts.extend(overrides.iter().cloned());
        let problems = Problems::new(name, text.to_owned(), overrides);
        Self { texts, problems, path: String::new(), unknown_key: None }
    }

    /// The same for a file whose unknown keys are warnings.
    pub fn warning_of_unknown_keys(self, unknown_key: UnknownKeyRule) -> Self {
        Self { unknown_key: Some(unknown_key), ..self }
    }

    /// Line and column of a node of the file, both from 1.
    pub fn position(&self, at: Span) -> (usize, usize) {
        self.texts.get(at.text).map_or((1, 1), |text| position(text, at.start))
    }

    /// Everything that was found.
    pub fn finish(mut self) -> Problems {
        self.problems.sort();
        self.problems
    }

    /// Whether something keeps the scenario from being run.
    pub fn failed(&self) -> bool {
        self.problems.errors() > 0
    }

    /// Something is wrong here; `help` says what would be right.
    pub fn error(&mut self, at: Span, what: impl Into<String>, help: impl Into<String>) {
        self.note(Severity::Error, Concerns::Every, at, what.into(), help.into());
    }

    /// Something is odd here.
    pub fn warn(&mut self, at: Span, what: impl Into<String>, help: impl Into<String>) {
        self.note(Severity::Warning, Concerns::Every, at, what.into(), help.into());
    }

    /// An offline run has no reply to something; `certain`: it surely asks for it.
    pub fn silent(&mut self, at: Span, what: impl Into<String>, help: &str, certain: bool) {
        let concerns = if certain { Concerns::EveryOffline } else { Concerns::Offline };
        self.note(Severity::Warning, concerns, at, what.into(), help.to_owned());
    }

    fn note(
        &mut self,
        severity: Severity,
        concerns: Concerns,
        at: Span,
        what: String,
        help: String,
    ) {
        if self.is_full() {
            self.problems.count_only(severity);
            return;
        }
        let help = Some(help).filter(|help| !help.is_empty());
        let path = self.path.clone();
        let told = Told { severity, concerns, path, what, help };
        self.problems.add(at.text, at.start..at.end, told);
    }

    /// Another type of value than the one here is wanted.
    pub fn wrong_type(&mut self, node: &Node, wanted: &str) {
        self.error(node.at, format!("expected {wanted}, found {}", node.what()), "");
    }

    /// Reads what stands under a key: problems in it are told with its path.
    pub fn within<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.path.len();
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
        let value = read(self);
        self.path.truncate(before);
        value
    }

    /// Whether what is read stands under this key.
    pub fn is_at(&self, key: &str) -> bool {
        self.path.rsplit('.').next() == Some(key)
    }

    /// Reads an item of a list, counted from 0.
    pub fn item<T>(&mut self, index: usize, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.path.len();
        self.path.push_str(&format!("[{index}]"));
        let value = read(self);
        self.path.truncate(before);
        value
    }

    /// The stretch of a text node that holds the bytes `from..to` of the text it stands for.
    pub fn inside(&self, at: Span, from: usize, to: usize) -> Span {
        if self.is_full() {
            return at;
        }
        let raw = self.raw(at);
        let start = at.start + literal::offset(raw, from);
        let end = at.start + literal::offset(raw, to);
        Span { text: at.text, start, end: end.max(start) }
    }

    /// The text that a node was written as.
    pub fn raw(&self, at: Span) -> &str {
        self.texts.get(at.text).and_then(|text| text.get(at.start..at.end)).unwrap_or_default()
    }

    /// The table of a node, with its keys checked against those there are.
    pub fn table<'n>(&mut self, node: &'n Node, known: &[&str]) -> Option<&'n Table> {
        let Tree::Table(table) = &node.value else {
            self.wrong_type(node, "a table");
            return None;
        };
        for (key, _) in &table.entries {
            if !known.contains(&key.text.as_str()) {
                if let Some(unknown_key) = self.unknown_key {
                    let UnknownKey { what, help } = unknown_key(&self.path, &key.text, known);
                    self.within(&key.text, |cx| cx.warn(key.at, what, help));
                    continue;
                }
                let what = format!("unknown key `{}`", key.text);
                let help = match self.is_full() {
                    true => String::new(),
                    false => misplaced::meant(&self.path, &key.text, known),
                };
                self.within(&key.text, |cx| cx.error(key.at, what, help));
            }
        }
        Some(table)
    }

    /// What was meant by a name that is none of these, see [`among`]; nothing where nobody would
    /// read it.
    pub fn among<'n>(&self, given: &str, known: impl IntoIterator<Item = &'n str>) -> String {
        if self.is_full() { String::new() } else { among(given, known) }
    }

    /// A key must be there and is not; the path says which.
    pub fn missing(&mut self, node: &Node, about: String) {
        let key = self.path.rsplit('.').next().unwrap_or_default().to_owned();
        self.error(node.at, format!("`{key}` is missing"), about);
    }

    /// So many errors more that nothing but their number is said of.
    pub fn leave_out(&mut self, errors: usize) {
        self.problems.leave_out(errors);
    }

    /// Nothing that is told from now on is kept: what takes work to say need not be worked out.
    pub fn is_full(&self) -> bool {
        self.problems.is_full()
    }

    /// Whether an error was told of what stands here, or of anything in it.
    pub fn failed_here(&self) -> bool {
        self.problems.errors_under(&self.path)
    }
}

/// What was meant by a name that is none of these: the one that is close, or all there are.
pub(super) fn among<'n>(given: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    const SHOWN: usize = 16;
    let known: Vec<&str> = known.into_iter().collect();
    if let Some(name) = closest(given, known.iter().copied()) {
        return format!("did you mean `{name}`?");
    }
    match known.len() {
        0 => "there is none".to_owned(),
        1 => format!("there is only {}", known[0]),
        2..=SHOWN => format!("one of {}", known.join(", ")),
        more => format!("one of {}, … ({more} in all)", known[..SHOWN].join(", ")),
    }
}

/// The same of names of one kind, such as `inputs`, that a scenario may do without.
pub(super) fn among_own<'n>(
    kind: &str,
    given: &str,
    known: impl IntoIterator<Item = &'n str>,
) -> String {
    let mut known = known.into_iter().peekable();
    match known.peek() {
        None => format!("the scenario has no {kind}"),
        Some(_) => among(given, known),
    }
}

/// The name that is close enough to have been meant.
pub(super) fn closest<'n>(
    given: &str,
    known: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    /// The most names that are compared.
    const COMPARED: usize = 1_000;
    /// The most letters that a slip adds or takes away.
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
