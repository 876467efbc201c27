//! The problems of a scenario: position, error and help.

use std::ops::Range;

/// Error or warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The scenario cannot run.
    Error,
    /// The scenario can run, but probably not as intended.
    Warning,
}

impl Severity {
    /// Its word in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// Which runs of the scenario a problem affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AffectedRuns {
    /// Every run.
    All,
    /// Offline runs, which may stop because of it: the script has no reply to a call that may
    /// happen.
    SomeOffline,
    /// Live runs: an offline one reads what they do not.
    Live,
    /// All offline runs, which will stop because of it: the script has no reply to the first call.
    AllOffline,
}

/// The position of a problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemPosition {
    /// In the file.
    File {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// In an override (`--set …`).
    Override {
        /// Index of the override, from 0.
        index: usize,
        /// Column in characters of the override's text, from 1.
        column: usize,
    },
}

/// One error or warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Error or warning.
    pub severity: Severity,
    /// Its position.
    pub place: ProblemPosition,
    /// Path of the field, such as `budget.max_rounds` or `script[3].when`; may be empty.
    pub path: String,
    /// The error.
    pub what: String,
    /// What to do.
    pub help: Option<String>,
    /// Which runs it affects.
    pub affected_runs: AffectedRuns,
    /// Its byte range in the file or in the override's text.
    pub range: Range<usize>,
}

/// A problem without its position.
pub(crate) struct UnplacedProblem {
    pub severity: Severity,
    pub concerns: AffectedRuns,
    pub path: String,
    pub what: String,
    pub help: Option<String>,
}

/// All errors and warnings of one scenario, in the file's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) overrides: Vec<String>,
    pub(super) list: Vec<Problem>,
    /// How many errors and warnings came after the first [`MAX_KEPT`].
    more: (usize, usize),
}

/// Maximum number of problems that are kept; later ones are only counted.
const MAX_KEPT: usize = 200;

impl Problems {
    /// An empty list for a text with this name in messages, and for the overrides.
    pub(crate) fn new(name: String, text: String, overrides: Vec<String>) -> Self {
        Self { name, text, overrides, list: Vec::new(), more: (0, 0) }
    }

    /// Adds a problem. Once the list [is full](Self::is_full), use
    /// [`count_only`](Self::count_only).
    pub(crate) fn add(&mut self, text: usize, range: Range<usize>, problem: UnplacedProblem) {
        let UnplacedProblem { severity, concerns, path, what, help } = problem;
        let (path, what) = (truncate_text(path), truncate_text(what));
        let help = help.map(truncate_text);
        let source = self.source(text);
        let start = char_start(source, range.start);
        let end = char_start(source, range.end.max(start));
        let (line, column) = position(source, start);
        let place = match text.checked_sub(1) {
            None => ProblemPosition::File { line, column },
            Some(index) => ProblemPosition::Override { index, column },
        };
        let range = start..end;
        self.list.push(Problem {
            severity,
            place,
            path,
            what,
            help,
            affected_runs: concerns,
            range,
        });
    }

    /// Whether further problems are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= MAX_KEPT
    }

    /// Counts a problem without keeping it.
    pub(crate) fn count_only(&mut self, severity: Severity) {
        match severity {
            Severity::Error => self.more.0 += 1,
            Severity::Warning => self.more.1 += 1,
        }
    }

    /// Counts errors without keeping them.
    pub(crate) fn add_uncounted_errors(&mut self, errors: usize) {
        self.more.0 += errors;
    }

    /// Whether there is an error at this field or inside it.
    pub(crate) fn errors_under(&self, path: &str) -> bool {
        self.list.iter().any(|problem| {
            let inner = problem.path.strip_prefix(path);
            problem.severity == Severity::Error
                && inner.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }

    pub(crate) fn sort(&mut self) {
        self.list.sort_by(|a, b| (&a.place, a.severity).cmp(&(&b.place, b.severity)));
        self.list.dedup();
    }

    /// The problems that matter for a live or an offline run: a live run needs no script, an
    /// offline run cannot start without a reply to the first call.
    pub fn for_run(mut self, live: bool) -> Self {
        self.list.retain(|problem| match problem.affected_runs {
            AffectedRuns::All => true,
            AffectedRuns::Live => live,
            AffectedRuns::SomeOffline | AffectedRuns::AllOffline => !live,
        });
        for problem in &mut self.list {
            if problem.affected_runs == AffectedRuns::AllOffline {
                problem.severity = Severity::Error;
            }
        }
        self
    }

    pub(super) fn source(&self, text: usize) -> &str {
        match text.checked_sub(1) {
            None => &self.text,
            Some(index) => self.overrides.get(index).map_or("", String::as_str),
        }
    }

    /// The name of the file in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many problems were counted but not kept.
    pub fn more(&self) -> usize {
        self.more.0 + self.more.1
    }

    /// The kept problems in the file's order; those of overrides come last.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.list.iter()
    }

    /// Whether there are no problems.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Number of errors.
    pub fn errors(&self) -> usize {
        let kept = self.list.iter().filter(|problem| problem.severity == Severity::Error);
        kept.count() + self.more.0
    }

    /// Number of warnings.
    pub fn warnings(&self) -> usize {
        self.list.len() + self.more.0 + self.more.1 - self.errors()
    }

    /// `2 errors, 1 warning`.
    pub fn count(&self) -> String {
        let say = |count: usize, word: &str| match count {
            1 => format!("1 {word}"),
            _ => format!("{count} {word}s"),
        };
        match (self.errors(), self.warnings()) {
            (0, 0) => "no problems".to_owned(),
            (errors, 0) => say(errors, "error"),
            (0, warnings) => say(warnings, "warning"),
            (errors, warnings) => format!("{}, {}", say(errors, "error"), say(warnings, "warning")),
        }
    }
}

impl std::error::Error for Problems {}

/// Maximum length of a path, an error or a help text, in characters: they contain names from the
/// file, which may be long.
const MOST_CHARS: usize = 400;

fn truncate_text(text: String) -> String {
    match text.char_indices().nth(MOST_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Line and column of a byte of a text, both from 1.
pub(crate) fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..char_start(text, at)];
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[start..].chars().count() + 1)
}

/// The start of the character that contains this byte.
fn char_start(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
