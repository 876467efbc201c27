//! `roundtable complete`: what may follow on a command line. The scripts of `roundtable completions`
//! call it at each Tab, so it is quick, prints no errors and changes nothing.

mod candidate;
mod line;
mod names;

use clap::CommandFactory;

use super::args::{Cli, CompleteArgs};
use super::exit::Exit;
use super::stdout;
use crate::base::visible::visible;

/// Prints a line for each candidate: the word, a tab, what it is.
pub fn run(args: &CompleteArgs) -> Exit {
    let words: Vec<String> =
        args.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut command = Cli::command();
    command.build();
    let found = line::candidates(&command, &words);
    let lines = found.iter().filter(|it| is_plain(&it.word)).map(|it| {
        let about = it.about.lines().next().unwrap_or_default();
        format!("{}\t{}\n", it.word, visible(about))
    });
    stdout::print_data(&lines.collect::<String>(), Exit::Ok)
}

/// Whether a word can be put on a command line as it is. A name with blanks or quotes would need the
/// quotes of its shell.
fn is_plain(word: &str) -> bool {
    let special =
        |c: char| c.is_whitespace() || c.is_control() || "\"'`$\\;&|<>()*?![]{}#".contains(c);
    !word.chars().any(special)
}
