//! A program that is watched in the real dashboard.

use std::sync::Arc;

use crate::support::binary::Home;
use crate::support::pty::{Start, Terminal};
use crate::support::senders::{SENDER, sender_of};

#[test]
fn program_is_shown_while_it_runs() {
    let home = Arc::new(Home::new());
    home.write("desk.py", SENDER);
    let args = &["watch", "python3", "desk.py", "waits"];
    let mut terminal = Terminal::start_in(&home, Start { args, ..Start::default() });
    // It has begun and not ended: its tool is open.
    terminal.sees("refund()");
    terminal.sees("LIVE");
    terminal.press(" ");
    terminal.sees("it is only watched");
    terminal.press("i");
    terminal.sees("Line for the program");
    terminal.press("re_77");
    terminal.sees("re_77");
    terminal.press("\r");
    terminal.sees("DONE");
    terminal.sees("Refunded.");
    // Its output is on the terminal after the dashboard.
    assert_eq!(terminal.ends_on("qq"), 0);
    assert!(terminal.text().contains("got re_77"), "{}", terminal.text());
}

#[test]
fn quitting_ends_the_program() {
    let home = Arc::new(Home::new());
    let args = &["watch", "--name", "sleeper", "sh", "-c", "echo begun; sleep 1000"];
    let mut terminal = Terminal::start_in(&home, Start { args, ..Start::default() });
    terminal.sees("begun");
    terminal.sees("waits for the first span");
    terminal.press("q");
    terminal.sees("1 live");
    terminal.press("q");
    terminal.sees("Quit and end it?");
    // SIGINT ends it.
    assert_eq!(terminal.ends_on("y"), 130);
}

/// A program has a terminal where it would have had one: the one of this program, without the dashboard.
#[test]
fn programs_keep_their_terminal() {
    let home = Arc::new(Home::new());
    let script = "test -t 0 && test -t 1 && test -t 2 && stty size <&1 && printf 'Publish? ' && \
                  read answer && printf '\\033[32m%s it is\\033[0m\\n' $answer";
    let args = &["watch", "--headless", "--name", "asks", "sh", "-c", script];
    let mut terminal =
        Terminal::start_in(&home, Start { args, cols: 60, rows: 17, ..Start::default() });
    terminal.sees("17 60");
    terminal.sees("Publish? ");
    assert_eq!(terminal.ends_on("yes\r"), 0);
    assert!(terminal.text().contains("yes it is"), "{}", terminal.text());
    let rows = home.run(&["runs", "--json"]).json();
    let log = home.run(&["export", rows[0]["id"].as_str().expect("an id")]);
    assert!(log.out.contains("yes it is\"}"), "without its colours: {log:?}");
}

/// Beside the dashboard it has a terminal of its own: what asks for a password asks there, and not on the screen.
#[test]
fn programs_have_a_terminal_apart() {
    let home = Arc::new(Home::new());
    let script = "test -t 0 && test -t 1 && test -t 2 && size=$(stty size) && stty -echo && \
                  printf \"Which word for $size? \" > /dev/tty && read word < /dev/tty && echo ${#word} letters && read line";
    let args = &["watch", "--name", "asks", "sh", "-c", script];
    let mut terminal =
        Terminal::start_in(&home, Start { args, cols: 80, rows: 24, ..Start::default() });
    // Also where one pane fits: it has no spans to show.
    terminal.sees("Its last line: Which word for 24 80?");
    terminal.press("i");
    terminal.sees("Enter sends");
    terminal.press("secret\r");
    terminal.sees("6 letters");
    assert!(!terminal.text().contains("secret"), "{}", terminal.text());
    terminal.press("i");
    terminal.sees("Enter sends");
    terminal.press("\r");
    terminal.sees("STOPPED");
    assert_eq!(terminal.ends_on("qq"), 0);
}

/// What LangChain streams is shown while it comes.
#[test]
fn streamed_replies_are_shown_early() {
    let home = Arc::new(Home::new());
    let Some(desk) = sender_of("langgraph", "langchain_desk.py", home.path()) else { return };
    let gate = home.path().join("more");
    let args = ["watch", &desk[0], &desk[1]];
    let env = &[("MODEL_WAITS", &*gate.to_string_lossy())];
    let mut terminal = Terminal::start_in(&home, Start { args: &args, env, ..Start::default() });
    terminal.sees("There are");
    assert!(!terminal.text().contains("7 lamps"), "{}", terminal.text());
    home.write("more", "");
    terminal.sees("There are 7 lamps.");
    terminal.sees("DONE");
    assert_eq!(terminal.ends_on("qq"), 0);
}
