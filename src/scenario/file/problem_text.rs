//! Problems in words: on one line each, or with their lines of the file as compilers do it.

use std::fmt::{self, Write as _};

use unicode_width::UnicodeWidthStr;

use crate::scenario::file::problem::{Problem, ProblemPosition, Problems, Severity};

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
