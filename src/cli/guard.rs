//! `roundtable guard` starts a program as `watch` does, and leads its model calls through the proxy: with limits, faults
//! and people who hold calls.

use std::sync::Arc;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};

use super::exit::Exit;
use super::people::PeopleArg;
use super::streams::{StreamStyle, print_on_stderr, refuse};
use super::watch::{GuardSetup, ProgramArgs, WatchArgs};
use crate::base::refused::Refused;
use crate::scenario::ScenarioSource;
use crate::scenario::patterns::observed::GuardLimits;
use crate::scenario::rules::{Rules, check_rules};

/// What happens to a request that is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnreadArg {
    Refuse,
    Pass,
}

/// Arguments of `roundtable guard`.
#[derive(Debug, Clone, Args)]
pub struct GuardArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Refuse calls beyond this cost in US dollars, estimated
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub max_cost_usd: Option<f64>,
    /// Refuse calls beyond this number of tokens, of prompts and replies together
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub max_total_tokens: Option<u64>,
    /// Refuse calls beyond this number; each attempt of a client is one
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub max_calls: Option<u64>,
    /// Refuse calls after this time
    #[arg(long, value_name = "S", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub max_seconds: Option<u64>,
    /// What happens under a limit to requests that are not read, so that their cost cannot be counted
    #[arg(long, value_enum, value_name = "WHAT", default_value = "refuse")]
    pub unread: UnreadArg,
    /// A file with limits, policies of models, and rows that have to hold; options take precedence
    #[arg(long, value_name = "RULES.toml", conflicts_with = "expect")]
    pub rules: Option<String>,
    /// Who answers questions, such as whether to extend a limit [default: nobody; the dashboard asks you]
    #[arg(long, value_enum, value_name = "WHO")]
    pub people: Option<PeopleArg>,
    /// The program and its arguments
    #[arg(
        value_name = "CMD",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub command: Vec<String>,
}

impl GuardArgs {
    /// The same as arguments of `watch`, with limits; on an error the message has been printed.
    pub fn watch(self) -> Result<WatchArgs, Exit> {
        if matches!(self.people, Some(PeopleArg::Ask | PeopleArg::Script)) {
            let why = Refused::new(
                "--people: a guarded program has its own standard input, and no script",
            );
            return Err(refuse(
                &why.help("use wait, and answer with roundtable answer"),
                Exit::Usage,
            ));
        }
        let Rules { mut limits, rows } = match &self.rules {
            Some(file) => rules(file)?,
            None => Rules { limits: GuardLimits::default(), rows: None },
        };
        let spending = &mut limits.spending;
        spending.max_total_tokens = self.max_total_tokens.or(spending.max_total_tokens);
        spending.max_cost_usd = self.max_cost_usd.or(spending.max_cost_usd);
        limits.max_calls = self.max_calls.or(limits.max_calls);
        limits.max_time = self.max_seconds.map(Duration::from_secs).or(limits.max_time);
        Ok(WatchArgs {
            program: self.program,
            messages: Vec::new(),
            headers: Vec::new(),
            people: self.people,
            command: self.command,
            guard: Some(GuardSetup {
                limits,
                rows: rows.map(Arc::new),
                passes_unread: self.unread == UnreadArg::Pass,
            }),
        })
    }
}

/// An amount above 0: a limit of `NaN` would never be reached.
fn dollars(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount > 0.0);
    amount.ok_or_else(|| "give an amount above 0, such as 0.50".to_owned())
}

/// The rules of a file; on an error the message has been printed.
fn rules(file: &str) -> Result<Rules, Exit> {
    let source = ScenarioSource::find(file);
    let source = source.map_err(|error| refuse(&error.into(), Exit::Usage))?;
    let (rules, problems) = match check_rules(&source.text, &source.origin) {
        Ok((rules, problems)) => (Some(rules), problems),
        Err(problems) => (None, problems),
    };
    if !problems.is_empty() {
        let colour = StreamStyle::of_stderr(Default::default(), false).colour();
        print_on_stderr(&problems.pretty(colour), true);
    }
    rules.ok_or(Exit::Usage)
}
