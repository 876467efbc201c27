//! Arguments of `roundtable test`, and of the repeated runs of `roundtable run --times`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{FlagArg, RunArgs};

/// Arguments of `roundtable test`.
#[derive(Debug, Clone, Default, Args)]
pub struct TestArgs {
    /// Files, folders (their *.toml), names of scenarios, or - for standard input
    #[arg(required = true, value_name = "FILE|FOLDER|NAME|-")]
    pub scenarios: Vec<String>,
    /// How often each scenario runs, which of the runs have to pass, and how that is reported.
    #[command(flatten)]
    pub options: TestOptions,
    /// Call live models, as `run --live` does
    #[arg(long)]
    pub live: bool,
    /// The model of live runs, such as gpt-4.1-mini or anthropic/claude-haiku-4-5
    #[arg(long, value_name = "[PROVIDER/]MODEL", requires = "live")]
    pub model: Option<String>,
    /// Answer the model calls of one scenario from a recorded run
    #[cfg(feature = "store")]
    #[arg(long, value_name = "RUN|FILE.jsonl[.gz]", conflicts_with = "live")]
    pub replay: Option<String>,
    /// How the results are written
    #[arg(long, value_enum, default_value_t)]
    pub format: TestFormat,
    /// Override a field of each scenario, as `run --set` does
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Switch a flag of each scenario, as `run --flag` does
    #[arg(long = "flag", value_name = "NAME=on|off[@BOUNDARY]", value_parser = FlagArg::parse)]
    pub flags: Vec<FlagArg>,
    /// Seed of the runs' random numbers
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Allow without asking what scenarios that were not shipped would do, as `run --trust` does
    #[arg(long)]
    pub trust: bool,
    /// Call endpoints through this proxy, as `run --proxy` does
    #[arg(long, value_name = "URL|env")]
    pub proxy: Option<String>,
}

impl TestArgs {
    /// The arguments of the runs of one scenario.
    pub fn run_args(&self, scenario: &str) -> RunArgs {
        RunArgs {
            scenario: scenario.to_owned(),
            live: self.live,
            model: self.model.clone(),
            #[cfg(feature = "store")]
            replay: self.replay.clone(),
            set: self.set.clone(),
            flags: self.flags.clone(),
            seed: self.seed,
            trust: self.trust,
            proxy: self.proxy.clone(),
            ..RunArgs::default()
        }
    }
}

/// How often scenarios run, and which of the runs have to pass.
#[derive(Debug, Clone, Default, Args)]
pub struct TestOptions {
    /// Run each scenario so often, and report how many runs pass
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub times: Option<u32>,
    /// What differs between the runs of --times: with `seed` each has the next seed
    #[arg(long, value_enum, requires = "times")]
    pub vary: Option<Vary>,
    /// The share of the runs of a scenario that has to pass, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "times")]
    pub min_pass: Option<f64>,
    /// Fail a scenario that has warnings, also those of conditions that could not be evaluated
    #[arg(long)]
    pub deny_warnings: bool,
    /// Write a report for a CI system
    #[arg(long, value_name = "junit=FILE", value_parser = ReportArg::parse)]
    pub report: Vec<ReportArg>,
    /// Maximum number of runs at the same time; default: the number of processors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
}

impl TestOptions {
    /// The first option that `run` takes only with `--times`, if that is missing.
    pub(crate) fn needs_times(&self) -> Option<&'static str> {
        let given = [
            ("--deny-warnings", self.deny_warnings),
            ("--report", !self.report.is_empty()),
            ("--jobs", self.jobs.is_some()),
        ];
        let first = given.into_iter().find(|(_, is_given)| *is_given);
        first.filter(|_| self.times.is_none()).map(|(name, _)| name)
    }
}

/// What differs between repeated runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Vary {
    /// The seed
    Seed,
}

/// How the results of tests are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum TestFormat {
    /// A line for each scenario, then what failed
    #[default]
    Text,
    /// One object
    Json,
    /// Text with annotations for GitHub Actions
    Github,
}

/// A value of `--report`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportArg {
    /// Where a JUnit report is written.
    pub junit: PathBuf,
}

impl ReportArg {
    fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some(("junit", file)) if !file.is_empty() => Ok(Self { junit: file.into() }),
            _ => Err("write junit=FILE".to_owned()),
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a number from 0 to 1, such as 0.9".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_its_form_and_its_file() {
        let junit = ReportArg { junit: PathBuf::from("a=b.xml") };
        assert_eq!(ReportArg::parse("junit=a=b.xml"), Ok(junit));
        for wrong in ["junit", "junit=", "xml=a", ""] {
            assert!(ReportArg::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_share_is_between_none_and_all() {
        assert_eq!(share("0.95"), Ok(0.95));
        for wrong in ["1.01", "-0.1", "NaN", "95%", ""] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
