//! Arguments of the commands about the shell: completions, and the manual page.

use clap::{Args, ValueEnum};

/// Arguments of `roundtable completions`.
#[derive(Debug, Clone, Copy, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: ShellName,
}

/// A shell that has completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShellName {
    /// In ~/.bashrc: eval "$(roundtable completions bash)"
    Bash,
    /// As _roundtable in a folder of fpath
    Zsh,
    /// As ~/.config/fish/completions/roundtable.fish
    Fish,
}

/// Arguments of `roundtable complete`.
#[derive(Debug, Clone, Default, Args)]
pub struct CompleteArgs {
    /// The words of the command line behind the program's name; the last one is completed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<std::ffi::OsString>,
}

/// Arguments of `roundtable man`.
#[derive(Debug, Clone, Default, Args)]
pub struct ManArgs {
    /// The command; for a command of a command both words, such as runs pin
    pub command: Vec<String>,
}
