//! The problems of a scenario: position, error and help.
//!
//! Problems in words: on one line each, or with their lines of the file as compilers do it.

use crate::base::worded;
use std::fmt;
use std::fmt::Write as _;
use std::ops::Range;

use unicode_width::UnicodeWidthStr;

/// Error or warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The scenario cannot run.
    Error,
    /// The scenario can run, but probably not as intended.
    Warning,
}

worded! { Severity { Error = "error", Warning = "warning" } }

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
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) overrides: Vec<String>,
    pub(crate) list: Vec<Problem>,
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
        let (line, column) = line_and_column(source, start);
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
    pub(super) fn count_only(&mut self, severity: Severity) {
        match severity {
            Severity::Error => self.more.0 += 1,
            Severity::Warning => self.more.1 += 1,
        }
    }

    /// Counts errors without keeping them.
    pub(super) fn add_uncounted_errors(&mut self, errors: usize) {
        self.more.0 += errors;
    }

    /// Whether there is an error at this field or inside it.
    pub(super) fn errors_under(&self, path: &str) -> bool {
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

    pub(crate) fn source(&self, text: usize) -> &str {
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
const MAX_CHARS: usize = 400;

fn truncate_text(text: String) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Line and column of a byte of a text, both from 1.
pub(super) fn line_and_column(text: &str, at: usize) -> (usize, usize) {
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

impl fmt::Display for Problems {
    /// Each problem on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            if index > 0 {
                f.write_char('\n')?;
            }
            f.write_str(&self.line(problem))?;
        }
        if self.more() > 0 {
            write!(f, "\n… and {} more", self.more())?;
        }
        Ok(())
    }
}

/// Maximum width of a line of the file in messages, in columns.
const LINE_COLUMNS: usize = 110;

/// The visible part of a line, and the position of its carets.
struct LineExcerpt {
    line: String,
    indent: usize,
    width: usize,
}

impl LineExcerpt {
    fn excerpt_around(line: &str, before: &str, marked: &str) -> Self {
        // Escaping and measuring a very long line would be slow, so only its visible part is used.
        if line.len() <= 4 * LINE_COLUMNS {
            let whole = escape_for_terminal(line);
            if whole.width() <= LINE_COLUMNS {
                return Self {
                    line: whole,
                    indent: escape_for_terminal(before).width(),
                    width: escape_for_terminal(marked).width(),
                };
            }
        }
        // Start a little before the mark, at a character boundary of the line.
        let lead: String = before.chars().rev().take(40).collect();
        let lead: String = lead.chars().rev().collect();
        let cut = lead.len() < before.len();
        let rest = line.get(before.len()..).unwrap_or_default();
        let tail: String = rest.chars().take(60).collect();
        let more = tail.len() < rest.len();
        let head = format!("{}{}", if cut { "…" } else { "" }, escape_for_terminal(&lead));
        let marked: String = marked.chars().take(60).collect();
        Self {
            indent: head.width(),
            width: escape_for_terminal(&marked).width(),
            line: format!("{head}{}{}", escape_for_terminal(&tail), if more { "…" } else { "" }),
        }
    }
}

#[derive(Clone, Copy)]
struct AnsiPaint {
    colour: bool,
}

impl AnsiPaint {
    fn paint_text(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// The text made safe for a terminal: non-printing characters are escaped, a tab becomes one space.
fn escape_for_terminal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push(' '),
            '"' | '\'' | '\\' => out.push(c),
            _ => out.extend(c.escape_debug()),
        }
    }
    out
}

impl Problems {
    /// A problem on one line: `file:3:14: error: budget.max_rounds: what (help)`.
    pub fn line(&self, problem: &Problem) -> String {
        let mut line = format!("{}: {}: ", self.place(problem), problem.severity.word());
        if !problem.path.is_empty() {
            let _ = write!(line, "{}: ", escape_for_terminal(&problem.path));
        }
        line.push_str(&escape_for_terminal(&problem.what));
        if let Some(help) = &problem.help {
            let _ = write!(line, " ({})", escape_for_terminal(help));
        }
        line
    }

    /// The first error in one line, such as `line 3: budget.max_rounds: what (and 2 errors more)`.
    pub(crate) fn first_error(&self) -> String {
        let errors = self.errors();
        let Some(first) = self.list.iter().find(|it| it.severity == Severity::Error) else {
            return self.count();
        };
        let place = match first.place {
            ProblemPosition::File { line, .. } => format!("line {line}"),
            ProblemPosition::Override { .. } => self.place(first),
        };
        let path = match first.path.as_str() {
            "" => String::new(),
            path => format!("{}: ", escape_for_terminal(path)),
        };
        let more = match errors - 1 {
            0 => String::new(),
            1 => " (and 1 error more)".to_owned(),
            more => format!(" (and {more} errors more)"),
        };
        format!("{place}: {path}{}{more}", escape_for_terminal(&first.what))
    }

    fn place(&self, problem: &Problem) -> String {
        match &problem.place {
            ProblemPosition::File { line, column } => {
                format!("{}:{line}:{column}", escape_for_terminal(&self.name))
            }
            ProblemPosition::Override { index, .. } => {
                let text = self.overrides.get(*index).map_or("", String::as_str);
                let text = text.lines().next().unwrap_or_default();
                format!("--set {}", escape_for_terminal(text))
            }
        }
    }

    /// All problems, each with its line and a caret as compilers do it, warnings before errors, and
    /// a last line with the count. `colour` switches ANSI colours on.
    pub fn pretty(&self, colour: bool) -> String {
        let paint = AnsiPaint { colour };
        let mut out = String::new();
        // Errors come last, where users look first.
        for severity in [Severity::Warning, Severity::Error] {
            for problem in self.list.iter().filter(|problem| problem.severity == severity) {
                self.write_pretty(&mut out, problem, paint);
                out.push('\n');
            }
        }
        if self.more() > 0 {
            let _ = writeln!(out, "… and {} more\n", self.more());
        }
        let _ = writeln!(out, "{}: {}", escape_for_terminal(&self.name), self.count());
        out
    }

    fn write_pretty(&self, out: &mut String, problem: &Problem, paint: AnsiPaint) {
        let tone = match problem.severity {
            Severity::Error => "1;31",
            Severity::Warning => "1;33",
        };
        let head = paint.paint_text(tone, problem.severity.word());
        let _ =
            writeln!(out, "{head}: {}", paint.paint_text("1", &escape_for_terminal(&problem.what)));

        let (source, number) = match &problem.place {
            ProblemPosition::File { line, .. } => (self.text.as_str(), line.to_string()),
            ProblemPosition::Override { index, .. } => (self.source(index + 1), "--set".to_owned()),
        };
        let margin = " ".repeat(number.len());
        let bar = paint.paint_text("34", "|");
        let _ = write!(out, "{margin}{} ", paint.paint_text("34", "-->"));
        let _ = match &problem.place {
            ProblemPosition::File { .. } => writeln!(out, "{}", self.place(problem)),
            ProblemPosition::Override { column, .. } => writeln!(out, "override, column {column}"),
        };

        let from = source[..problem.range.start].rfind('\n').map_or(0, |at| at + 1);
        let to = source[from..].find('\n').map_or(source.len(), |at| from + at);
        let line = source[from..to].trim_end_matches('\r');
        let before = &source[from..problem.range.start.min(from + line.len())];
        let marked_end = problem.range.end.min(from + line.len()).max(problem.range.start);
        let marked = source.get(problem.range.start..marked_end).unwrap_or_default();
        if !source.is_empty() {
            let window = LineExcerpt::excerpt_around(line, before, marked);
            let _ = writeln!(out, "{margin} {bar}");
            let _ = writeln!(out, "{} {bar} {}", paint.paint_text("34", &number), window.line);
            let carets = paint.paint_text(tone, &"^".repeat(window.width.max(1)));
            let _ = writeln!(out, "{margin} {bar} {}{carets}", " ".repeat(window.indent));
        }
        if !problem.path.is_empty() {
            let _ = writeln!(
                out,
                "{margin} {} field: {}",
                paint.paint_text("34", "="),
                escape_for_terminal(&problem.path)
            );
        }
        if let Some(help) = &problem.help {
            let _ = writeln!(
                out,
                "{margin} {} help: {}",
                paint.paint_text("34", "="),
                escape_for_terminal(help)
            );
        }
    }
}
