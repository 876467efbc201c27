//! `roundtable man`: manual pages, made from the definition of the command line; and the
//! environment variables that the program reads, for these pages and the documents.

use std::io;

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::args::Cli;
use super::exit::{EXIT_CODES, Exit};
use super::streams;
use super::streams::refuse;
use crate::base::refused::Refused;
use crate::model::endpoint::Provider;
use crate::scenario::read::suggest_name;

/// Arguments of `roundtable man`.
#[derive(Debug, Clone, Default, Args)]
pub struct ManArgs {
    /// The command; for a command of a command both words, such as runs pin
    pub command: Vec<String>,
}

/// Prints the manual page of the program, or of the command that is named.
pub fn run(args: &ManArgs) -> Exit {
    let command = match find(&args.command) {
        Ok(command) => command,
        Err(why) => return refuse(&why, Exit::Usage),
    };
    let mut page = Vec::new();
    // Writing into memory does not fail.
    let _ = render(command, args.command.is_empty(), &mut page);
    streams::print_data(&String::from_utf8_lossy(&page), Exit::Ok)
}

/// The command of these words, with the name of its page: `roundtable-runs-pin`.
fn find(words: &[String]) -> Result<Command, Refused> {
    let mut command = Cli::command();
    command.build();
    let mut name = command.get_name().to_owned();
    for word in words {
        let Some(below) = command.find_subcommand(word).filter(|it| !it.is_hide_set()) else {
            let known = command.get_subcommands().filter(|it| !it.is_hide_set());
            let help = suggest_name(word, known.map(Command::get_name));
            let what = format!("{word} is not a command of {}", name.replace('-', " "));
            return Err(Refused::new(what).help(help));
        };
        name = format!("{name}-{word}");
        command = below.clone();
    }
    let words = name.replacen("roundtable-", "roundtable ", 1);
    Ok(command.display_name(name).bin_name(words).disable_help_subcommand(true))
}

fn render(command: Command, is_program: bool, page: &mut Vec<u8>) -> io::Result<()> {
    let source = concat!("roundtable ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command).manual("roundtable").source(source);
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    man.render_subcommands_section(page)?;
    if is_program {
        let codes = EXIT_CODES.iter().map(|(code, what)| (code.code().to_string(), *what));
        section("EXIT STATUS", codes).to_writer(page)?;
        let variables = variables();
        let rows = variables.iter().map(|(name, what)| ((*name).to_owned(), what.as_str()));
        section("ENVIRONMENT", rows).to_writer(page)?;
    }
    man.render_extra_section(page)?;
    let mut pages = Roff::new();
    pages.control("SH", ["SEE ALSO"]);
    pages.text([roman("The page of a command: "), bold("roundtable man"), roman(" and its name.")]);
    pages.to_writer(page)
}

/// A section with a term and its meaning in each row.
fn section<'a>(title: &str, rows: impl Iterator<Item = (String, &'a str)>) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for (term, meaning) in rows {
        roff.control("TP", []);
        roff.text([bold(term)]);
        roff.text([roman(meaning.replace('`', ""))]);
    }
    roff
}

/// A variable, and what it does, in Markdown.
pub type VariableRow = (&'static str, String);

/// Every variable, in the order in which a reader needs them.
pub fn variables() -> Vec<VariableRow> {
    let mut rows = Vec::new();
    for provider in Provider::ALL {
        let word = provider.word();
        // A server of one's own usually has no key.
        let optional = if provider == Provider::Ollama { ", if it needs one" } else { "" };
        rows.push((provider.key_name(), format!("the key of `{word}`{optional}")));
        let url = provider.base_url();
        rows.push((
            provider.address_name(),
            format!("another address of `{word}`; default: `{url}`"),
        ));
    }
    let fixed = [
        ("OPENAI_MODEL", "the model of `openai`, where the scenario names none"),
        ("OPENAI_TIMEOUT_SECONDS", "timeout of one attempt of a live model call, in seconds"),
        (
            "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY",
            "proxies (`http://` or `https://`), also in lower case; used only with `--proxy env`, which \
             refuses values that it cannot use",
        ),
        (
            "ROUNDTABLE_LOG",
            "filter of the log: `error`, `warn`, `info`, `debug`, `trace`, `off`, or by target",
        ),
        ("XDG_CONFIG_HOME", "folder of the configuration; default: `~/.config`"),
        (
            "LC_ALL, LC_CTYPE, LANG",
            "without UTF-8 in it, the dashboard draws with ASCII characters",
        ),
        ("XDG_STATE_HOME", "folder of kept runs and of the log; default: `~/.local/state`"),
        (
            "ROUNDTABLE_THEME",
            "the theme, where `--theme` names none: `auto`, a shipped one, or a theme file",
        ),
        ("ROUNDTABLE_NATS_USER, ROUNDTABLE_NATS_PASSWORD", "the login at the servers of a cluster"),
        (
            "ROUNDTABLE_NATS_TOKEN, ROUNDTABLE_NATS_NKEY, ROUNDTABLE_NATS_CREDS",
            "other logins: a token, the seed of an nkey, or a file of credentials",
        ),
        (
            "GITHUB_WORKSPACE",
            "folder of the repository; the paths of `--format github` are relative to it",
        ),
        ("USER, LOGNAME", "the name that a cluster shows for what is sent from here"),
        ("NO_COLOR", "set to anything: no colours"),
        ("TERM, COLORTERM", "how many colours the terminal has; `TERM=dumb`: no dashboard"),
        ("COLUMNS, LINES", "the size of a terminal that reports none; default: 80 x 24"),
        ("PAGER", "the pager for raw JSON in the dashboard; default: `less`, else `more`"),
        ("VISUAL, EDITOR", "the editor for scenario files; default: `vi`"),
        (
            "TMUX, STY, SSH_TTY, SSH_CONNECTION, WT_SESSION",
            "what the terminal runs in: how text is copied, and what `doctor` says",
        ),
    ];
    rows.extend(fixed.map(|(name, what)| (name, what.to_owned())));
    rows
}
