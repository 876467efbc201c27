//! The commands, from clap's definition.

use clap::{Arg, Command, CommandFactory};

use super::cell_with_code;
use crate::cli::args::Cli;

pub fn markdown() -> String {
    let mut root = Cli::command();
    root.build();
    let mut out = String::from("## Options of every command\n\n");
    out += &table(root.get_arguments().filter(|it| it.is_global_set()));
    below(&root, "roundtable", &mut out);
    out
}

fn below(command: &Command, name: &str, out: &mut String) {
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    for command in shown.filter(|it| it.get_name() != "help") {
        let name = format!("{name} {}", command.get_name());
        let mut usage = command.clone();
        let usage = usage.render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").trim();
        let usage: Vec<String> = usage
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        *out += &format!("\n## {name}\n\n{}.\n\n```text\n", text(command.get_about()));
        *out += &format!("{}\n```\n", usage.join("\n"));
        let own = |it: &&Arg| !it.is_global_set() && !it.is_hide_set() && it.get_id() != "help";
        let own: Vec<&Arg> = command.get_arguments().filter(own).collect();
        if !own.is_empty() {
            *out += "\n";
            *out += &table(own.into_iter());
        }
        below(command, &name, out);
    }
}

fn table<'a>(args: impl Iterator<Item = &'a Arg>) -> String {
    let mut out = String::from("| argument | what it does |\n| --- | --- |\n");
    for arg in args.filter(|it| !it.is_hide_set() && it.get_id() != "help") {
        out += &format!("| {} | {} |\n", cell_with_code(&spelling(arg)), meaning(arg));
    }
    out
}

/// The argument as it is typed.
fn spelling(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default().join(" ");
    let values = if arg.get_action().takes_values() { values } else { String::new() };
    match (arg.get_long(), arg.get_short()) {
        (None, None) => format!("`{values}`"),
        (long, short) => {
            let long = long.map(|it| format!("--{it}"));
            let short = short.map(|it| format!("-{it}"));
            let names: Vec<String> = [short, long].into_iter().flatten().collect();
            let between = match () {
                () if values.is_empty() => "",
                () if arg.is_require_equals_set() => "=",
                () => " ",
            };
            format!("`{}{between}{values}`", names.join(", "))
        }
    }
}

fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help());
    let mut meaning = cell_with_code(&text(help));
    let values = arg.get_possible_values();
    if arg.get_action().takes_values() && !arg.is_hide_possible_values_set() && !values.is_empty() {
        let values = values.iter().filter(|it| !it.is_hide_set()).map(|it| match it.get_help() {
            Some(help) => format!("`{}`: {}", it.get_name(), cell_with_code(&help.to_string())),
            None => format!("`{}`", it.get_name()),
        });
        meaning += &format!(". {}", values.collect::<Vec<_>>().join("; "));
    }
    let defaults = arg.get_default_values();
    if !defaults.is_empty() && arg.get_action().takes_values() {
        let defaults = defaults.iter().map(|it| format!("`{}`", it.to_string_lossy()));
        meaning += &format!(". Default: {}", defaults.collect::<Vec<_>>().join(", "));
    }
    if arg.is_required_set() && !arg.is_positional() {
        meaning += ". Required";
    }
    meaning
}

fn text(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}
