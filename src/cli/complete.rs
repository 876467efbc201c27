//! `roundtable completions` (the script of a shell) and the hidden `roundtable complete`, which the
//! script calls at each Tab: what may follow on the command line. It is quick, prints no errors and
//! changes nothing. Names of files are left to the shell.

use std::borrow::Cow;
use std::path::Path;

use clap::{Arg, Args, Command, CommandFactory, ValueEnum};
use toml::{Table, Value};

use super::args::Cli;
use super::exit::Exit;
use super::streams;
use crate::base::visible::visible;
use crate::host::catalogue;
use crate::scenario::patterns::collaboration::Decision;
use crate::scenario::{STDIN, ScenarioListing, ScenarioSource, shipped, templates};
use crate::screen::theme::Theme;

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

/// Prints a line for each candidate: the word, a tab, what it is.
pub fn run(args: &CompleteArgs) -> Exit {
    let mut words: Vec<String> =
        args.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    // Shells pass the words on as they are typed. The last one is completed as it is.
    let home = std::env::home_dir().unwrap_or_default();
    let before = words.len().saturating_sub(1);
    words[..before].iter_mut().for_each(|word| expand_home(word, &home.to_string_lossy()));
    let mut command = Cli::command();
    command.build();
    let found = candidates(&command, &words);
    let lines = found.iter().filter(|it| is_plain(&it.word)).map(|it| {
        let about = it.about.lines().next().unwrap_or_default();
        format!("{}\t{}\n", it.word, visible(about))
    });
    streams::print_data(&lines.collect::<String>(), Exit::Ok)
}

/// Writes the home folder out where a word begins with it.
fn expand_home(word: &mut String, home: &str) {
    let below = ["~/", "$HOME/", "${HOME}/"].iter().find_map(|start| word.strip_prefix(start));
    if let Some(below) = below.filter(|_| !home.is_empty()) {
        *word = format!("{home}/{below}");
    }
}

/// Whether a word can be put on a command line as it is. A name with blanks or quotes would need the
/// quotes of its shell.
fn is_plain(word: &str) -> bool {
    let special =
        |c: char| c.is_whitespace() || c.is_control() || "\"'`$\\;&|<>()*?![]{}#".contains(c);
    !word.chars().any(special)
}

/// A word, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub word: String,
    pub about: String,
}

impl Candidate {
    pub fn new(word: impl Into<String>, about: impl Into<String>) -> Self {
        Self { word: word.into(), about: about.into() }
    }
}

/// What the last word may be.
fn candidates(root: &Command, words: &[String]) -> Vec<Candidate> {
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
            "run" => scenario_of_run(value).map(Cow::from),
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
        "scenario" | "scenarios" | "name" => scenario_names(),
        "scenario_or_run" => scenario_names().into_iter().chain(run_names()).collect(),
        "from" => shipped_scenario_names(),
        "pattern" => pattern_names(),
        "flags" => line.scenario().map(|it| flag_names(&it, word)).unwrap_or_default(),
        "set" => line.scenario().map(|it| input_names(&it)).unwrap_or_default(),
        "run" | "runs" | "left" | "right" | "replay" | "trace" => run_names(),
        "fail_on" => fail_on_values(),
        "theme" => theme_names(),
        "command" => {
            let below = |command: &'_ Command, word: &&str| command.find_subcommand(word).cloned();
            let found = line.values.iter().try_fold(line.root.clone(), |it, word| below(&it, word));
            found.map(|it| commands(&it)).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// The files of `./scenarios` by their names, and the shipped scenarios.
fn scenario_names() -> Vec<Candidate> {
    let files = catalogue::files(Path::new(catalogue::FOLDER));
    let own = files.iter().filter_map(|path| {
        let stem = path.file_stem()?.to_str()?;
        let title =
            ScenarioSource::read(path).ok().map(|it| ScenarioListing::read(stem, &it.text).title);
        Some(Candidate::new(stem, title.unwrap_or_default()))
    });
    let mut all: Vec<Candidate> = own.chain(shipped_scenario_names()).collect();
    all.sort_by(|a, b| a.word.cmp(&b.word));
    // A file of the folder comes first, and replaces the shipped scenario of its name.
    all.dedup_by(|later, first| later.word == first.word);
    all
}

/// The shipped scenarios.
fn shipped_scenario_names() -> Vec<Candidate> {
    shipped().iter().map(|it| Candidate::new(it.name, it.listing().title)).collect()
}

/// The patterns that `roundtable new` takes.
fn pattern_names() -> Vec<Candidate> {
    templates().iter().map(|it| Candidate::new(&it.pattern, &it.about)).collect()
}

/// What `--fail-on` takes.
fn fail_on_values() -> Vec<Candidate> {
    let decisions = Decision::ALL.into_iter().map(|it| Candidate::new(it.word(), "the decision"));
    let degraded =
        Candidate::new("degraded", "a fallback was used, a result left out or a reply cut");
    decisions.chain([degraded]).collect()
}

/// The shipped themes.
fn theme_names() -> Vec<Candidate> {
    Theme::names().map(|it| Candidate::new(it, "")).collect()
}

/// The flags of a scenario, each switched on and off. Behind `@` comes a boundary, which only the
/// scenario's runs know.
fn flag_names(scenario: &str, word: &str) -> Vec<Candidate> {
    if word.contains('@') {
        return Vec::new();
    }
    let of_flag = |(name, flag): (&String, &Value)| {
        let label = flag.get("label").and_then(Value::as_str).unwrap_or_default().to_owned();
        ["on", "off"].map(|state| Candidate::new(format!("{name}={state}"), label.clone()))
    };
    section(scenario, "flags").iter().flat_map(of_flag).collect()
}

/// The inputs of a scenario, as `--set` names them.
fn input_names(scenario: &str) -> Vec<Candidate> {
    let of_input = |(name, input): (&String, &Value)| {
        let label = input.get("label").and_then(Value::as_str).unwrap_or_default();
        Candidate::new(format!("inputs.{name}="), label)
    };
    section(scenario, "inputs").iter().map(of_input).collect()
}

/// A table of a scenario's file; empty if the file cannot be read. Nothing is checked, so that a
/// scenario that is being written has completions too.
fn section(scenario: &str, name: &str) -> Table {
    let is_pipe = || Path::new(scenario).exists() && !Path::new(scenario).is_file();
    if scenario == STDIN || is_pipe() {
        return Table::new();
    }
    let source = ScenarioSource::find(scenario).ok();
    let file = source.and_then(|it| it.text.parse::<Table>().ok());
    match file.and_then(|mut it| it.remove(name)) {
        Some(Value::Table(table)) => table,
        _ => Table::new(),
    }
}

/// The newest kept runs.
fn kept_runs() -> Vec<crate::store::database::rows::RunName> {
    use crate::host::Dirs;
    use crate::store::database::rows::newest_names;

    let path = Dirs::find().map(|it| it.runs());
    path.map(|it| newest_names(&it)).unwrap_or_default()
}

/// The scenario of a kept run, which may be written with a boundary (`RUN@BOUNDARY`).
fn scenario_of_run(run: &str) -> Option<String> {
    let id = run.split('@').next()?;
    let mut runs = kept_runs().into_iter();
    runs.find(|row| id == "last" || row.id == id).map(|row| row.scenario)
}

/// Kept runs, the newest first.
pub(crate) fn run_names() -> Vec<Candidate> {
    let rows = kept_runs();
    let last = rows.first().map(|_| Candidate::new("last", "the newest run"));
    let named =
        rows.into_iter().map(|it| Candidate::new(it.id, format!("{}, {}", it.scenario, it.status)));
    last.into_iter().chain(named).collect()
}

/// Prints the script.
pub fn print_completions(args: &CompletionsArgs) -> Exit {
    let script = match args.shell {
        ShellName::Bash => include_str!("../../assets/completions/roundtable.bash"),
        ShellName::Zsh => include_str!("../../assets/completions/roundtable.zsh"),
        ShellName::Fish => include_str!("../../assets/completions/roundtable.fish"),
    };
    streams::print_data(script, Exit::Ok)
}
