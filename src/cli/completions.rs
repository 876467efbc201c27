//! `roundtable completions`: the script of a shell. The scripts ask the hidden command `complete`
//! what may follow, so that they know scenarios, flags and kept runs. What the program cannot
//! complete is left to the shell: names of files.

use super::args::{CompletionsArgs, ShellName};
use super::exit::Exit;
use super::stdout;

/// Prints the script.
pub fn run(args: &CompletionsArgs) -> Exit {
    let script = match args.shell {
        ShellName::Bash => include_str!("../../assets/completions/roundtable.bash"),
        ShellName::Zsh => include_str!("../../assets/completions/roundtable.zsh"),
        ShellName::Fish => include_str!("../../assets/completions/roundtable.fish"),
    };
    stdout::print_data(script, Exit::Ok)
}
