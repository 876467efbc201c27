//! The results as text: a row for each scenario as it ends, then what failed, and how many passed.
//!
//! What GitHub Actions reads in a log: annotations at the lines of scenario files.

use std::io;
use std::time::{Duration, Instant};

use super::TestFormat;
use super::play::{CaseListener, TestCase};
use super::result::{CaseResult, FailedExpectation, NO_WARNINGS, TestResults};
use crate::base::time;
use crate::base::visible::visible_within;
use crate::cli::output::error;
use crate::cli::streams;
use crate::cli::streams::{StreamStyle, TextStream, print_on_stderr};
use crate::engine::expectations::{ExpectationResult, Verdict};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::padded;
use crate::words::styled::StyleRole;

pub use crate::cli::output::harmless;

/// Longest name of a scenario in a row, in characters.
const NAME_CHARS: usize = 40;

/// Longest line of a condition, a value or an error, in characters.
const LINE_CHARS: usize = 400;

/// Writes results to standard output.
pub struct TextReport {
    paint: StreamStyle,
    format: TestFormat,
    min_pass: f64,
    repeats: bool,
    width: usize,
    started: Instant,
    written: io::Result<()>,
    has_heads: bool,
    /// Standard output belongs to a program that was watched.
    is_beside_output: bool,
}

impl TextReport {
    /// A report on these scenarios. With [`TestFormat::Json`] it writes nothing.
    pub fn new(cases: &[TestCase], paint: StreamStyle, format: TestFormat, min_pass: f64) -> Self {
        let names = cases.iter().map(|case| case.scenario.name.as_str());
        let repeats = cases.iter().any(|case| case.trials.len() > 1);
        Self::with_names(names, repeats, paint, format, min_pass)
    }

    /// A report on cases with these names. `repeats`: some have several runs.
    pub fn with_names<'n>(
        names: impl Iterator<Item = &'n str>,
        repeats: bool,
        paint: StreamStyle,
        format: TestFormat,
        min_pass: f64,
    ) -> Self {
        let names = names.map(|name| name.chars().count());
        Self {
            paint,
            format,
            min_pass,
            repeats,
            is_beside_output: false,
            width: names.max().unwrap_or(0).clamp(8, NAME_CHARS),
            started: Instant::now(),
            written: Ok(()),
            has_heads: false,
        }
    }

    /// The same on standard error.
    pub fn beside_output(self) -> Self {
        Self { is_beside_output: true, ..self }
    }

    /// The kind of the first error of writing, if any.
    pub fn write_error(&self) -> Option<io::ErrorKind> {
        self.written.as_ref().err().map(io::Error::kind)
    }

    /// The first error of writing, if any.
    pub fn failed(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.written, Ok(()))
    }

    /// Writes what failed, and how many scenarios passed.
    pub fn finish(&mut self, results: &TestResults) -> io::Result<()> {
        if results.cases.is_empty() {
            // Why nothing was started has been said.
            if self.format == TestFormat::Github {
                self.write(&annotations(results));
            }
            return self.failed();
        }
        let mut text = String::new();
        for scenario in &results.not_started {
            let sign = self.paint.role(StyleRole::Failed, self.paint.glyph(Glyph::Failed));
            let (name, width) = (visible_within(&scenario.name, NAME_CHARS), self.width);
            let word = if results.is_of_traces { "not checked" } else { "not started" };
            text.push_str(&format!("{sign} {}  {word}\n", padded(&name, width)));
        }
        for case in results.failed().filter(|case| !case.trials.is_empty()) {
            text.push('\n');
            text.push_str(&self.failed_case(case));
        }
        text.push_str(&format!("\n{}\n", self.summary(results)));
        if self.format == TestFormat::Github {
            text = harmless(&text) + &annotations(results);
        }
        self.write(&text);
        self.failed()
    }

    fn write(&mut self, text: &str) {
        if self.is_beside_output {
            print_on_stderr(text, self.paint.colour());
        } else if self.written.is_ok() {
            let mut out = TextStream::new(streams::stdout_data(), self.paint.colour());
            self.written = out.text(text).and_then(|()| out.flush());
        }
    }

    fn heads(&self) -> String {
        let heads = format!(
            "  {}  {:>9}  {:>6}  {:>9}  {:>8}  {:>9}",
            padded("scenario", self.width),
            "passed",
            "rate",
            "95 %",
            "time",
            "cost"
        );
        self.paint.role(StyleRole::Dim, heads.trim_end()) + "\n"
    }

    fn row(&self, case: &CaseResult) -> String {
        let (sign, role) = match (case.trials.is_empty(), case.passes(self.min_pass)) {
            (true, _) => (Glyph::Off, StyleRole::Dim),
            (false, true) => (Glyph::Done, StyleRole::Done),
            (false, false) => (Glyph::Failed, StyleRole::Failed),
        };
        let sign = self.paint.role(role, self.paint.glyph(sign));
        let name = padded(&visible_within(&case.name, NAME_CHARS), self.width);
        let time = time::duration_text(Duration::from_millis(case.median_ms()));
        let cost = case.cost_usd().map(format::usd);
        let row = if case.trials.is_empty() {
            format!("{sign} {name}  cancelled")
        } else if self.repeats {
            let passed = format!("{}/{}", case.passed(), case.trials.len());
            let rate = case.rate().map(format::percent).unwrap_or_default();
            let interval = match case.interval() {
                Some((low, high)) => format!("{:.0}-{:.0} %", low * 100.0, high * 100.0),
                None => "-".to_owned(),
            };
            let cost = cost.unwrap_or_else(|| "-".to_owned());
            format!("{sign} {name}  {passed:>9}  {rate:>6}  {interval:>9}  {time:>8}  {cost:>9}")
        } else {
            let cost = cost.map(|cost| format!("  {cost}")).unwrap_or_default();
            format!("{sign} {name}  {:<16}  {time:>8}{cost}", held(case))
        };
        let mut row = row.trim_end().to_owned() + "\n";
        // Those of a scenario that failed are listed with what failed.
        if case.passes(self.min_pass) {
            let warnings = case.trials.first().map_or(&[][..], |trial| &trial.warnings);
            row.extend(warnings.iter().map(|warning| self.warning(warning)));
        }
        row
    }

    /// What a scenario expected and did not get, and how to look at the run.
    fn failed_case(&self, case: &CaseResult) -> String {
        let sign = self.paint.role(StyleRole::Failed, self.paint.glyph(Glyph::Failed));
        let name = self.paint.role(StyleRole::Strong, &visible_within(&case.name, NAME_CHARS));
        let mut text = format!("{sign} {name}\n");
        let failed = case.trials.iter().find(|trial| !trial.passed());
        // What may be the cause comes before what it led to: warnings, the end of the run, tools.
        for warning in failed.into_iter().flat_map(|trial| &trial.warnings) {
            text.push_str(&self.warning(warning));
        }
        if let Some(trial) = failed {
            if !trial.stop_reason.is_success() {
                let why = trial.error.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
                let ended = one_line(&format!("{}{why}", trial.stop_reason));
                text.push_str(&format!("    the run ended with {ended}\n"));
            }
            for note in &trial.notes {
                text.push_str(&format!("    {}\n", one_line(note)));
            }
        }
        for failure in &case.failures() {
            text.push_str(&self.failed_expectation(case, failure));
        }
        if let Some(trial) = failed {
            let shows = match (trial.runs.last().filter(|_| case.is_kept), &trial.trace) {
                (_, Some(trace)) => format!("roundtable open {trace}"),
                (Some(run), None) => format!("roundtable open {run}"),
                (None, None) if trial.seed == case.own_seed => {
                    format!("roundtable run {}", case.words)
                }
                (None, None) => format!("roundtable run {} --seed {}", case.words, trial.seed),
            };
            let shows = self.paint.role(StyleRole::Dim, &one_line(&shows));
            text.push_str(&format!("    {shows}\n"));
        }
        text
    }

    fn warning(&self, text: &str) -> String {
        let sign = self.paint.role(StyleRole::Retry, self.paint.glyph(Glyph::Alert));
        format!("    {sign} {}\n", one_line(text))
    }

    fn failed_expectation(&self, case: &CaseResult, failure: &FailedExpectation<'_>) -> String {
        let result = failure.first;
        let place = match result.line {
            Some(line) => format!("{}:{line}", case.file),
            None if result.that == NO_WARNINGS => NO_WARNINGS.to_owned(),
            None => "no [[expect]]: its runs have to succeed".to_owned(),
        };
        let title = one_line(result.message.as_deref().unwrap_or(&result.that));
        let title = self.paint.role(StyleRole::Strong, &title);
        let place = self.paint.role(StyleRole::Dim, &one_line(&place));
        let mut text = format!("    {title}  {place}\n");
        if result.message.is_some() && result.that != NO_WARNINGS {
            text.push_str(&format!("      {}\n", one_line(&result.that)));
        }
        if case.trials.len() > 1 {
            let (times, all, mark) = (failure.times, case.trials.len(), failure.trial.mark());
            let mark = one_line(&mark);
            text.push_str(&format!("      not in {times} of {all} runs; the first {mark}\n"));
        }
        if let Verdict::Invalid(why) = &result.verdict {
            text.push_str(&format!("      {}\n", one_line(why)));
        }
        for part in &result.parts {
            let (part, value) = (one_line(&part.part), one_line(&part.value));
            text.push_str(&format!("      {part} is {value}\n"));
        }
        text
    }

    fn summary(&self, results: &TestResults) -> String {
        let all = results.cases.len() + results.not_started.len();
        let failed = results.failed().count() + results.not_started.len();
        let runs: usize = results.cases.iter().map(|case| case.trials.len()).sum();
        let took = time::duration_text(self.started.elapsed());
        let (word, role) = match failed {
            0 => ("passed".to_owned(), StyleRole::Done),
            _ => (format!("{failed} failed"), StyleRole::Failed),
        };
        let word = self.paint.role(role, &word);
        let counts = match failed {
            0 => format!("{} {word}", format::count_noun(all as u64, results.noun())),
            _ => format!(
                "{}: {} passed, {word}",
                format::count_noun(all as u64, results.noun()),
                all - failed
            ),
        };
        let cut = if results.is_cut_off { "; cancelled" } else { "" };
        // The times of the rows are those of the runs.
        let is_simulated = !results.cases.iter().any(|case| case.is_kept);
        let clock = if is_simulated { ", in simulated time" } else { "" };
        let runs = format::count_noun(runs as u64, "run");
        let summary = format!("{counts}; {runs} in {took}{clock}{cut}");
        let is_same = |case: &CaseResult| !case.trials.is_empty() && !case.can_vary();
        match self.repeats && results.cases.iter().any(is_same) {
            true => format!("{summary}\n{SAME_RUNS}"),
            false => summary,
        }
    }
}

/// Why a scenario has no interval.
const SAME_RUNS: &str = "- in 95 %: a script with one seed gives each run the same result; `--vary seed` gives each run \
                         another seed";

impl CaseListener for TextReport {
    fn case_done(&mut self, case: &CaseResult) -> io::Result<()> {
        if self.format == TestFormat::Json {
            return Ok(());
        }
        let mut text = String::new();
        if self.repeats && !self.has_heads {
            self.has_heads = true;
            text = self.heads();
        }
        text.push_str(&self.row(case));
        self.write(&text);
        match &self.written {
            Ok(()) => Ok(()),
            Err(error) => Err(error.kind().into()),
        }
    }
}

/// How many expectations of the only run hold.
fn held(case: &CaseResult) -> String {
    let Some(trial) = case.trials.first() else { return String::new() };
    let all = trial.expectations.len();
    let held = trial.expectations.iter().filter(|it| it.verdict == Verdict::Holds).count();
    match all - held {
        0 => format::count_noun(all as u64, "expectation"),
        failed => format!("{failed} of {all} failed"),
    }
}

/// A text in one line that is safe on a terminal.
fn one_line(text: &str) -> String {
    let joined: Vec<&str> = text.split_whitespace().collect();
    visible_within(&joined.join(" "), LINE_CHARS)
}

/// Most annotations of a step that GitHub shows.
const MAX_ANNOTATIONS: usize = 10;

/// Annotations: one for each run that failed, if there is more to say of it than of its rows, then one for
/// each row that did not hold in enough runs. Of too many, the last one counts the rest.
pub fn annotations(results: &TestResults) -> String {
    let mut all = Vec::new();
    for scenario in &results.not_started {
        let file = Some(scenario.file.as_str()).filter(|file| *file != crate::scenario::STDIN);
        all.push(error(file, None, &scenario.name, &scenario.why));
    }
    for case in results.failed() {
        let failures = case.failures();
        if let Some(about) = about_run(case, &failures) {
            all.push(error(file_of(case), None, &case.name, &about));
        }
        for result in failures.iter().map(|failure| failure.first).filter(|it| it.line.is_some()) {
            all.push(error(file_of(case), result.line, &case.name, &about_row(result)));
        }
    }
    if all.len() > MAX_ANNOTATIONS {
        let rest = (all.len() - MAX_ANNOTATIONS + 1) as u64;
        all.truncate(MAX_ANNOTATIONS - 1);
        let more =
            format!("{}: see the log of this step", format::count_noun(rest, "more problem"));
        all.push(error(None, None, "roundtable test", &more));
    }
    all.concat()
}

/// What is wrong with a run besides the rows of its file: how it ended, its warnings, and rules without a
/// line.
fn about_run(case: &CaseResult, failures: &[FailedExpectation<'_>]) -> Option<String> {
    let trial = failures.first().map(|failure| failure.trial);
    let trial = trial.or_else(|| case.trials.iter().find(|trial| !trial.passed()))?;
    let rules = failures.iter().map(|failure| failure.first).filter(|it| it.line.is_none());
    let mut lines: Vec<String> = rules.map(about_row).collect();
    if !trial.stop_reason.is_success() {
        lines.push(format!("the run ended with {}", trial.stop_reason));
    }
    lines.extend(trial.warnings.iter().chain(&trial.notes).cloned());
    Some(lines.join("\n")).filter(|text| !text.is_empty())
}

/// What a row expected, and what was there.
fn about_row(result: &ExpectationResult) -> String {
    let says = result.message.as_deref().unwrap_or("an expectation does not hold");
    let mut text = format!("{says}\n{}", result.that);
    if let Verdict::Invalid(why) = &result.verdict {
        text.push_str(&format!("\n{why}"));
    }
    for part in &result.parts {
        text.push_str(&format!("\n{} is {}", part.part, part.value));
    }
    text
}

/// The file of a scenario in the repository; none for standard input.
fn file_of(case: &CaseResult) -> Option<&str> {
    Some(case.file.as_str()).filter(|file| *file != crate::scenario::STDIN)
}
