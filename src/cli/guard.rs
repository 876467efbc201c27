//! `roundtable guard` starts a program as `watch` does, and the calls of its models pass here: with their attempts, limits
//! and faults.

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::args::{Global, RunFormat};
use super::exit::Exit;
use super::people::PeopleArg;
use super::streams::{StreamStyle, print_on_stderr, refuse};
use super::watch::{GuardSetup, WatchArgs};
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
    /// Name of the run in lists; without it that of the program
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Refuse calls beyond this cost in US dollars, estimated
    #[arg(long, value_name = "USD")]
    pub max_cost_usd: Option<f64>,
    /// Refuse calls beyond this number of tokens, of prompts and replies together
    #[arg(long, value_name = "N")]
    pub max_total_tokens: Option<u64>,
    /// Refuse calls beyond this number; each attempt of a client is one
    #[arg(long, value_name = "N")]
    pub max_calls: Option<u64>,
    /// Refuse calls after this time
    #[arg(long, value_name = "S")]
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
    /// Leave out the file that makes Python programs report when something starts
    #[arg(long)]
    pub no_tap: bool,
    /// Leave LangSmith's tracer as it is set up
    #[arg(long)]
    pub no_langsmith: bool,
    /// Without the dashboard: the program has this terminal, and a summary follows
    #[arg(long)]
    pub headless: bool,
    /// What is printed on standard output; the program's own output is then on standard error. Headless
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<RunFormat>,
    /// Check these [[expect]] rows at the end of the program: a file of them, or a scenario. If one fails
    /// and the program ended with 0, the exit code is 1
    #[arg(long, value_name = "ROWS.toml")]
    pub expect: Option<String>,
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
    /// Whether it runs without the dashboard.
    pub fn is_headless(&self, global: &Global) -> bool {
        self.headless || self.format.is_some() || !global.can_be_interactive()
    }

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
            name: self.name,
            no_tap: self.no_tap,
            no_langsmith: self.no_langsmith,
            headless: self.headless,
            format: self.format,
            expect: self.expect,
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
