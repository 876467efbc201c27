//! `roundtable guard` starts a program as `watch` does, and leads its model calls through the proxy: with limits, faults
//! and people who hold calls.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};

use super::exit::Exit;
use super::people::PeopleArg;
use super::streams::{
    StreamStyle, print_message, print_on_stderr, refuse, stderr_is_terminal, stdin_is_terminal,
};
use super::watch::{GuardSetup, Listening, ProgramArgs, WatchArgs, listen_address};
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
    /// Pause before a call: call:3, model:openai/gpt-5.1, model:openai/*; or after a reply that calls a tool: tool:NAME
    #[arg(long, value_name = "WHERE", value_parser = pause_place)]
    pub pause_at: Vec<String>,
    /// Serve programs that are started elsewhere, at this port (0: any free one) or IP:PORT
    #[arg(long, value_name = "PORT|IP:PORT", value_parser = listen_address, conflicts_with = "command")]
    pub listen: Option<SocketAddr>,
    /// With --listen: let pages of this origin use it from a browser
    #[arg(long, value_name = "ORIGIN", requires = "listen")]
    pub allow_origin: Vec<String>,
    /// With --listen at an address of other machines: do not ask whether keys may cross the network in clear
    #[arg(long, requires = "listen")]
    pub yes: bool,
    /// A file with limits, policies of models, and rows that have to hold; options take precedence
    #[arg(long, value_name = "RULES.toml", conflicts_with = "expect")]
    pub rules: Option<String>,
    /// Who answers questions, such as whether to extend a limit [default: nobody; the dashboard asks you]
    #[arg(long, value_enum, value_name = "WHO")]
    pub people: Option<PeopleArg>,
    /// The program and its arguments
    #[arg(
        value_name = "CMD",
        required_unless_present = "listen",
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
        if limits.asks_about_tools() && (self.program.no_tap || self.listen.is_some()) {
            let why = "the rules ask about tools, and only the tap of a program that is started here does so";
            return Err(refuse(
                &Refused::new(why)
                    .help("leave out --no-tap and --listen, or the rules about tools"),
                Exit::Usage,
            ));
        }
        limits.refuses_unread = self.unread == UnreadArg::Refuse;
        limits.pause_at = self.pause_at;
        let spending = &mut limits.spending;
        spending.max_total_tokens = self.max_total_tokens.or(spending.max_total_tokens);
        spending.max_cost_usd = self.max_cost_usd.or(spending.max_cost_usd);
        limits.max_calls = self.max_calls.or(limits.max_calls);
        limits.max_time = self.max_seconds.map(Duration::from_secs).or(limits.max_time);
        let listening = match self.listen {
            Some(addr) => {
                may_cross_network(addr, self.yes)?;
                Some(Listening { addr, origins: self.allow_origin })
            }
            None => None,
        };
        Ok(WatchArgs {
            program: self.program,
            messages: Vec::new(),
            headers: Vec::new(),
            people: self.people,
            command: self.command,
            guard: Some(GuardSetup { limits, rows: rows.map(Arc::new), listening }),
        })
    }
}

/// Keys and prompts of other machines come in clear: asks whether they may.
fn may_cross_network(addr: SocketAddr, yes: bool) -> Result<(), Exit> {
    if addr.ip().is_loopback() || yes {
        return Ok(());
    }
    let why = format!("at {addr} keys and prompts cross the network in clear");
    if !(stdin_is_terminal() && stderr_is_terminal()) {
        return Err(refuse(&Refused::new(why).help("--yes allows it"), Exit::Usage));
    }
    print_message(&format!("{why}. Listen there? [y/N]"));
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    match line.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Exit::Cancelled),
    }
}

/// Where a run pauses.
fn pause_place(text: &str) -> Result<String, String> {
    let is_place = match text.split_once(':') {
        Some(("call", number)) => number.parse::<u64>().is_ok_and(|number| number > 0),
        Some(("model", name)) => name.contains('/'),
        Some(("tool", name)) => !name.is_empty(),
        _ => false,
    };
    match is_place {
        true => Ok(text.to_owned()),
        false => Err("use call:NUMBER, model:PROVIDER/MODEL or tool:NAME".to_owned()),
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
