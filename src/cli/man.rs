//! `roundtable man`: manual pages, made of the definition of the command line.

use std::io;

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::args::{Cli, ManArgs};
use super::environment::variables;
use super::exit::{EXIT_CODES, Exit};
use super::message::print_message;
use super::stdout;
use crate::base::visible::visible;
use crate::scenario::suggest_name;

/// Prints the manual page of the program, or of the command that is named.
pub fn run(args: &ManArgs) -> Exit {
    let command = match find(&args.command) {
        Ok(command) => command,
        Err(why) => {
            print_message(&visible(&why));
            return Exit::Usage;
        }
    };
    let mut page = Vec::new();
    // Writing into memory does not fail.
    let _ = render(command, args.command.is_empty(), &mut page);
    stdout::print_data(&String::from_utf8_lossy(&page), Exit::Ok)
}

/// The command of these words, with the name of its page: `roundtable-runs-pin`.
fn find(words: &[String]) -> Result<Command, String> {
    let mut command = Cli::command();
    command.build();
    let mut name = command.get_name().to_owned();
    for word in words {
        let Some(below) = command.find_subcommand(word).filter(|it| !it.is_hide_set()) else {
            let known = command.get_subcommands().filter(|it| !it.is_hide_set());
            let help = suggest_name(word, known.map(Command::get_name));
            return Err(format!("{word} is not a command of {}; {help}", name.replace('-', " ")));
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
