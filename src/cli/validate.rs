//! `roundtable validate`: reports every problem of scenario files. `roundtable schema`: the JSON schemas
//! of scenarios, events and outcomes.

use std::io;
use std::io::Write;

use clap::Args;

use super::args::FlagArg;
use super::exit::Exit;
use super::launch::{flag_errors, overrides, sources_named};
use super::streams;
use super::streams::StreamStyle;
use crate::base::refused::Refused;
use crate::base::visible::{visible, visible_output};
use crate::log::event::safe_json;
use crate::log::event::schema::{event_schema, outcome_schema};
use crate::scenario::rules::{check_rules, is_rules_file, rules_schema};
use crate::scenario::{Override, Scenario, ScenarioSource, check, schema};
use crate::screen::theme::Theme;
use crate::words::format::count_noun;
use crate::words::glyph::Glyph;
use crate::words::styled::StyleRole;

/// Arguments of `roundtable validate`.
#[derive(Debug, Clone, Default, Args)]
pub struct ValidateArgs {
    /// Files, folders (their *.toml), names of scenarios, or - for standard input
    #[arg(required = true, value_name = "FILE|FOLDER|NAME|-")]
    pub scenarios: Vec<String>,
    /// Override a field of each scenario, as `run --set` does
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Check that each scenario has this flag and boundary, as `run --flag` does
    #[arg(long = "flag", value_name = "NAME=on|off[@BOUNDARY]", value_parser = FlagArg::parse)]
    pub flags: Vec<FlagArg>,
}

/// Checks files, the `*.toml` of folders, standard input (`-`), or shipped scenarios by name, each
/// with `--set` and `--flag` applied. Prints a line for each valid scenario to standard output, and
/// problems to standard error.
pub fn run(args: &ValidateArgs, theme: Theme, ascii: bool) -> Exit {
    let Some(set) = overrides(&args.set) else { return Exit::Usage };
    let (on_out, on_err) =
        (StreamStyle::of_stdout(theme.clone(), ascii), StreamStyle::of_stderr(theme, ascii));
    let wanted = ValidateInput { scenarios: &args.scenarios, set, flags: &args.flags };
    let mut out = ReportStream::new(streams::stdout_data(), on_out);
    let mut err = ReportStream::new(io::stderr(), on_err);
    let exit = validate_all(&wanted, &mut out, &mut err);
    streams::exit_after_write(out.written, exit)
}

/// The scenarios to check, with the overrides and flags.
struct ValidateInput<'a> {
    scenarios: &'a [String],
    set: Vec<Override>,
    flags: &'a [FlagArg],
}

/// An output stream with its style.
struct ReportStream<W> {
    to: W,
    paint: StreamStyle,
    /// The first write error, if any.
    written: io::Result<()>,
}

impl<W: Write> ReportStream<W> {
    fn new(to: W, paint: StreamStyle) -> Self {
        Self { to, paint, written: Ok(()) }
    }

    /// Writes, unless a write has failed before; checking continues without output.
    fn write_text(&mut self, text: &str) {
        if self.written.is_ok() {
            let text = visible_output(text, self.paint.colour());
            self.written = self.to.write_all(text.as_bytes()).and_then(|()| self.to.flush());
        }
    }

    fn error(&mut self, why: &Refused) {
        let word = self.paint.role(StyleRole::Failed, "error");
        self.write_text(&format!("{word}: {}\n\n", why.lines().join("\n  ")));
    }
}

fn validate_all<O: Write, E: Write>(
    wanted: &ValidateInput<'_>,
    out: &mut ReportStream<O>,
    err: &mut ReportStream<E>,
) -> Exit {
    let (mut all, mut wrong) = (0, 0);
    for (place, what) in wanted.scenarios.iter().enumerate() {
        for source in sources_named(what, &wanted.scenarios[..place]) {
            all += 1;
            let good = match source {
                Ok(source) => validate_one(source, wanted, out, err),
                Err(why) => {
                    err.error(&why);
                    false
                }
            };
            wrong += usize::from(!good);
        }
    }
    if wrong == 0 {
        return Exit::Ok;
    }
    if all > 1 {
        err.write_text(&format!("{wrong} of {} cannot be run\n", count_noun(all, "scenario")));
    }
    Exit::Usage
}

fn validate_one<O: Write, E: Write>(
    source: ScenarioSource,
    wanted: &ValidateInput<'_>,
    out: &mut ReportStream<O>,
    err: &mut ReportStream<E>,
) -> bool {
    if is_rules_file(&source.text) {
        return validate_rules(&source, out, err);
    }
    let checked = check(&source.text, source.origin, &wanted.set);
    if !checked.problems.is_empty() {
        let colour = err.paint.colour();
        err.write_text(&format!("{}\n", checked.problems.pretty(colour)));
    }
    let Some(scenario) = checked.scenario else { return false };
    let flags = flag_errors(&scenario, wanted.flags);
    let is_good = flags.is_empty();
    for why in flags {
        err.error(&Refused { what: format!("{}: {}", scenario.origin, why.what), ..why });
    }
    if is_good {
        let sign = out.paint.role(StyleRole::Done, out.paint.glyph(Glyph::Done));
        out.write_text(&format!("{sign} {}\n", visible(&summary(&scenario))));
    }
    is_good
}

/// Checks a file of rules for guarded programs.
fn validate_rules<O: Write, E: Write>(
    source: &ScenarioSource,
    out: &mut ReportStream<O>,
    err: &mut ReportStream<E>,
) -> bool {
    let (rules, problems) = match check_rules(&source.text, &source.origin) {
        Ok((rules, problems)) => (Some(rules), problems),
        Err(problems) => (None, problems),
    };
    if !problems.is_empty() {
        let colour = err.paint.colour();
        err.write_text(&format!("{}\n", problems.pretty(colour)));
    }
    let Some(rules) = rules else { return false };
    let rows = rules.rows.as_ref().map_or(0, |rows| rows.expectations().len());
    let (models, rows) = (
        count_noun(rules.limits.models.len() as u64, "model rule"),
        count_noun(rows as u64, "row"),
    );
    let sign = out.paint.role(StyleRole::Done, out.paint.glyph(Glyph::Done));
    let line = format!("{}: rules of a guarded program, {models}, {rows}", source.origin);
    out.write_text(&format!("{sign} {}\n", visible(&line)));
    true
}

/// The line of a valid scenario, such as
/// `scenarios/checkout-launch.toml: collaboration, 4 roles, 3 inputs, 1 flag, 24 script rows`.
fn summary(scenario: &Scenario) -> String {
    let count = |count: usize, what| count_noun(count as u64, what);
    let (size, noun) = scenario.pattern.get().size();
    format!(
        "{}: {}, {}, {}, {}, {}",
        scenario.origin,
        scenario.pattern.get().name(),
        count_noun(size, noun),
        count(scenario.inputs.len(), "input"),
        count(scenario.flags.len(), "flag"),
        count(scenario.script.rows.len() + scenario.people.script.len(), "script row"),
    )
}

/// Arguments of `roundtable schema`.
#[derive(Debug, Clone, Default, Args)]
pub struct SchemaArgs {
    /// The schema of events: the lines of `run --format jsonl`
    #[arg(long, conflicts_with = "outcome")]
    pub events: bool,
    /// The schema of the outcome that `run --format json` prints
    #[arg(long)]
    pub outcome: bool,
    /// The schema of the rules of `guard --rules`
    #[arg(long, conflicts_with_all = ["events", "outcome"])]
    pub rules: bool,
}

/// Prints a schema. Taplo and similar tools find that of scenarios through a first line such as
/// `#:schema ./roundtable.schema.json` in a scenario.
pub fn print_schema(args: &SchemaArgs) -> Exit {
    let schema = match args {
        SchemaArgs { events: true, .. } => event_schema(),
        SchemaArgs { outcome: true, .. } => outcome_schema(),
        SchemaArgs { rules: true, .. } => rules_schema(),
        SchemaArgs { .. } => schema(),
    };
    match safe_json::pretty(&schema) {
        Ok(json) => streams::print_data(&(json + "\n"), Exit::Ok),
        Err(error) => streams::refuse(&Refused::new(error.to_string()), Exit::Stopped),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(scenarios: &[&str]) -> (Exit, String, String) {
        let paint = StreamStyle::new(false, Theme::default(), true);
        let scenarios: Vec<String> = scenarios.iter().map(|&what| what.to_owned()).collect();
        let wanted = ValidateInput { scenarios: &scenarios, set: Vec::new(), flags: &[] };
        let mut out = ReportStream::new(Vec::new(), paint.clone());
        let mut err = ReportStream::new(Vec::new(), paint);
        let exit = validate_all(&wanted, &mut out, &mut err);
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (exit, text(out.to), text(err.to))
    }

    #[test]
    fn a_good_scenario_is_summed_up() {
        let (exit, out, err) = judged(&["scenarios/checkout-unanimous.toml", "checkout-denied"]);
        assert_eq!((exit, err.as_str()), (Exit::Ok, ""));
        assert_eq!(
            out,
            "+ scenarios/checkout-unanimous.toml: collaboration, 3 roles, 3 inputs, 0 flags, 6 script rows\n\
             + scenarios/checkout-denied.toml: collaboration, 4 roles, 3 inputs, 1 flag, 5 script rows\n"
        );
    }

    #[test]
    fn reports_all_errors_and_valid_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).expect("written");
            path.display().to_string()
        };
        let wrong = file("wrong.toml", b"title = 3\npattern = \"chat\"\n");
        let bytes = file("bytes.toml", b"title = \"\xff\"");
        let (exit, out, err) =
            judged(&[&wrong, &bytes, "checkout-lunch", "checkout-blocked", "no\u{1b}such"]);
        assert_eq!(exit, Exit::Usage);
        assert_eq!(out.lines().count(), 1, "{out}");
        for said in [
            "wrong.toml:1:9",
            "expected a string, found the number 3",
            "wrong.toml:2:11",
            "bytes.toml is not a text file: byte 9 is not UTF-8",
            "did you mean `checkout-launch`?",
            "no file no␛such",
            "4 of 5 scenarios cannot be run",
        ] {
            assert!(err.contains(said), "{said} is not in\n{err}");
        }
        assert!(!err.contains('\u{1b}'));
    }

    #[test]
    fn a_warning_keeps_nothing_from_running() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("odd.toml");
        let text = include_str!("../../scenarios/checkout-unanimous.toml");
        std::fs::write(&path, text.replace("min_go_votes = 2", "min_go_votes = 4"))
            .expect("written");
        let (exit, out, err) = judged(&[&path.display().to_string()]);
        assert_eq!(exit, Exit::Ok);
        assert!(out.starts_with("+ "), "{out}");
        assert!(
            err.contains("warning: 4 votes for go are needed, but there are fewer seats"),
            "{err}"
        );
    }
}
