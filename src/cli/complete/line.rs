//! A command line up to the cursor: which command and which argument its last word belongs to.

use std::borrow::Cow;

use clap::{Arg, Command};

use super::candidate::Candidate;
use super::names;

/// What the last word may be.
pub(super) fn candidates(root: &Command, words: &[String]) -> Vec<Candidate> {
    let Some((word, before)) = words.split_last() else { return Vec::new() };
    let line = CommandLine::read(root, before);
    let found = match (&line.open, word.strip_prefix("--").and_then(|it| it.split_once('='))) {
        (Some(option), _) => values(option, word, &line),
        (None, Some((name, value))) => {
            let option = line.command.get_arguments().find(|it| it.get_long() == Some(name));
            let prefix = |it: Candidate| Candidate { word: format!("--{name}={}", it.word), ..it };
            let of_option = option.map(|it| values(it, value, &line)).unwrap_or_default();
            of_option.into_iter().map(prefix).collect()
        }
        (None, None) if word.starts_with('-') && !line.only_values => options(line.command),
        (None, None) => {
            let mut found =
                if line.values.is_empty() { commands(line.command) } else { Vec::new() };
            found.extend(line.next_value().map(|it| values(it, word, &line)).unwrap_or_default());
            found
        }
    };
    found.into_iter().filter(|it| it.word.starts_with(word.as_str())).collect()
}

/// The words before the cursor.
struct CommandLine<'a> {
    root: &'a Command,
    command: &'a Command,
    /// The option that the next word is a value of.
    open: Option<&'a Arg>,
    /// The values that belong to no option.
    values: Vec<&'a str>,
    /// `--` has come: all words after it are values.
    only_values: bool,
}

impl<'a> CommandLine<'a> {
    fn read(root: &'a Command, words: &'a [String]) -> Self {
        let (values, only_values) = (Vec::new(), false);
        let mut line = Self { root, command: root, open: None, values, only_values };
        for word in words {
            if line.open.take().is_some() {
                continue;
            }
            match word.strip_prefix("--") {
                _ if line.only_values => line.values.push(word),
                Some("") => line.only_values = true,
                Some(name) => line.open = line.option(|it| it.get_long() == Some(name)),
                None if word.len() > 1 && word.starts_with('-') => {
                    let last = word.chars().last();
                    line.open = line.option(|it| it.get_short() == last);
                }
                None => match line.command.find_subcommand(word) {
                    Some(command) if line.values.is_empty() => line.command = command,
                    _ => line.values.push(word),
                },
            }
        }
        line
    }

    /// The first option that matches, if its value is a separate word.
    fn option(&self, is_it: impl Fn(&Arg) -> bool) -> Option<&'a Arg> {
        let option = self.command.get_arguments().find(|it| is_it(it))?;
        let takes_word = option.get_action().takes_values() && !option.is_require_equals_set();
        takes_word.then_some(option)
    }

    /// The scenario on the line, or the one of the kept run on it.
    fn scenario(&self) -> Option<Cow<'a, str>> {
        let first = self.command.get_positionals().next()?;
        let value = self.values.first().copied()?;
        match first.get_id().as_str() {
            id if id.starts_with("scenario") => Some(value.into()),
            "run" => names::scenario_of(value).map(Cow::from),
            _ => None,
        }
    }

    /// The argument that the next value belongs to.
    fn next_value(&self) -> Option<&'a Arg> {
        let last = || {
            let several = |it: &&Arg| it.get_num_args().is_some_and(|n| n.max_values() > 1);
            self.command.get_positionals().last().filter(several)
        };
        self.command.get_positionals().nth(self.values.len()).or_else(last)
    }
}

fn commands(command: &Command) -> Vec<Candidate> {
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help");
    shown.map(|it| Candidate::new(it.get_name(), about(it.get_about()))).collect()
}

fn options(command: &Command) -> Vec<Candidate> {
    let shown = command.get_arguments().filter(|it| !it.is_hide_set());
    let named = shown.filter_map(|it| {
        Some(Candidate::new(format!("--{}", it.get_long()?), about(it.get_help())))
    });
    named.collect()
}

fn about(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

/// The values of an argument.
fn values(arg: &Arg, word: &str, line: &CommandLine<'_>) -> Vec<Candidate> {
    let possible = arg.get_possible_values();
    if !possible.is_empty() {
        let shown = possible.iter().filter(|it| !it.is_hide_set());
        return shown.map(|it| Candidate::new(it.get_name(), about(it.get_help()))).collect();
    }
    match arg.get_id().as_str() {
        "scenario" | "scenarios" | "name" => names::scenarios(),
        "scenario_or_run" => names::scenarios().into_iter().chain(names::runs()).collect(),
        "from" => names::shipped_scenarios(),
        "pattern" => names::patterns(),
        "flags" => line.scenario().map(|it| names::flags(&it, word)).unwrap_or_default(),
        "set" => line.scenario().map(|it| names::inputs(&it)).unwrap_or_default(),
        "run" | "runs" | "left" | "right" | "replay" => names::runs(),
        "fail_on" => names::fail_on(),
        "theme" => names::themes(),
        "command" => {
            let below = |command: &'_ Command, word: &&str| command.find_subcommand(word).cloned();
            let found = line.values.iter().try_fold(line.root.clone(), |it, word| below(&it, word));
            found.map(|it| commands(&it)).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}
