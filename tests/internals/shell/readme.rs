//! The README's picture is of a real screen. `just readme` draws it again.

use clap::Parser;

use crate::cli::args::{Cli, CliCommand, Global};
use crate::cli::picture;
use crate::screen::theme::Theme;

const JUSTFILE: &str = include_str!("../../../justfile");
const PICTURE: &str = include_str!("../../../assets/round-table.svg");

/// The whole run of the first screen. In its second round, the lawyer is seated and a retry on its way.
#[test]
fn picture_shows_real_screen() {
    let recipe = JUSTFILE.split("\nreadme:\n").nth(1).expect("a recipe");
    let line = recipe.lines().next().expect("a command");
    let (words, file) = line.split_once(" > ").expect("a file");
    assert_eq!(file, "assets/round-table.svg");
    let words = words.split_once(" -- ").expect("a command of this program").1;
    let draw = |more: &[&str]| {
        let words = ["roundtable"].into_iter().chain(words.split(' ')).chain(more.iter().copied());
        // One moment of it is a still picture.
        let words = words.filter(|word| more.is_empty() || *word != "--animate");
        match Cli::try_parse_from(words).expect("a command line").command {
            Some(CliCommand::Picture(args)) => {
                picture::draw(&args, &Global::default(), &Theme::default()).expect("a picture")
            }
            other => panic!("no picture: {other:?}"),
        }
    };
    let text = draw(&["--text", "--at", "5.2s"]);
    for part in [
        "Round table",
        "Stances and confidence",
        "Calls",
        "Events",
        "call.retried",
        "joined in R2",
        "attempt 2 ●",
        "chargeback alerts are",
    ] {
        assert!(text.contains(part), "no {part} on it:\n{text}");
    }
    // Screens change: the picture is drawn again now and then, and is always one of this run.
    let title = |svg: &str| {
        let title = svg.split("</title>").next().expect("a title");
        title.split("<title>").nth(1).map(str::to_owned)
    };
    assert_eq!(title(PICTURE), title(&draw(&[])), "`just readme` draws it again");
    for part in ["legal_analyst", "attempt 2", "call.retried", "@keyframes", "GO WITH CAUTION"] {
        assert!(PICTURE.contains(part), "{part}: `just readme` draws it again");
    }
}
