//! Runs of other processes in the real dashboard: seen, answered and steered, and what is left when either
//! process is killed.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::people::press_until;
use crate::support::binary::Home;
use crate::support::people::DESK;
use crate::support::pty::{Start, Terminal};

/// A home with a run that a background process plays, and which waits for the operator.
fn detached() -> (Arc<Home>, String) {
    let home = Arc::new(Home::new());
    home.write("desk.toml", DESK);
    let run = home.run(&["run", "desk.toml", "--instant", "--detach"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = run.out.trim().to_owned();
    while home.run(&["runs", "--json"]).json()[0]["waits_for"][0] != "operator" {}
    (home, run)
}

fn kill(home: &Home) {
    let row = home.run(&["runs", "--json"]).json()[0].clone();
    let _ = Command::new("kill").args(["-s", "KILL", &row["process"]["pid"].to_string()]).status();
}

#[test]
fn dashboards_share_a_detached_run() {
    let (home, run) = detached();
    let mut first = Terminal::start_in(&home, Start::default());
    first.sees("WAITS");
    first.sees("Waiting for you");
    // Two dashboards: the second one opens it.
    let args = &["attach", &run[..]];
    let mut second = Terminal::start_in(&home, Start { args, ..Start::default() });
    second.sees("process ");
    second.press("a");
    second.sees("Inbox");
    second.press("a");
    second.sees("q1 approval: you answer as operator");
    second.press("G");
    press_until(&mut second, "y", "waits for manager");
    first.sees("waits for manager");
    // A dashboard that is killed takes nothing with it.
    second.signal("KILL");
    first.press("2");
    first.press("a");
    first.sees("Inbox");
    press_until(&mut first, "a", "q2 turn: you answer as manager");
    first.press("We are.");
    first.sees("We are.");
    press_until(&mut first, "\x13", "DONE");
    let log = home.run(&["export", &run]).lines();
    let of = |kind: &str| log.iter().filter(|line| line["kind"] == kind).count();
    assert_eq!((of("question.asked"), of("question.answered"), of("command.taken")), (2, 2, 2));
    first.signal("TERM");
    assert_eq!(first.ends(), 143);
}

/// A message goes to the process that plays the run, and its answer is shown next; the script's answer comes
/// from there too.
#[test]
fn sends_message_and_scripted_answer() {
    let home = Arc::new(Home::new());
    let text = DESK.to_owned() + "\n[[script]]\nperson = \"operator\"\napprove = true\n";
    home.write("desk.toml", &text);
    let begun = home.run(&["run", "desk.toml", "--instant", "--detach"]);
    let run = begun.out.trim().to_owned();
    let args = &["attach", &run[..]];
    let mut terminal = Terminal::start_in(&home, Start { args, ..Start::default() });
    terminal.sees("WAITS");
    press_until(&mut terminal, "i", "Message 2 to desk");
    terminal.press("Thank you.");
    terminal.sees("Thank you.");
    press_until(&mut terminal, "\x13", "Queued: its process answers it");
    press_until(&mut terminal, "a", "q1 approval: you answer as operator");
    press_until(&mut terminal, "s", "press y again");
    press_until(&mut terminal, "y", "waits for manager");
    press_until(&mut terminal, "a", "q2 turn: you answer as manager");
    terminal.press("We are.");
    terminal.sees("We are.");
    // Once: a later key would keep the page where it is.
    terminal.press("\x13");
    terminal.sees("message 2");
    let next = home.run(&["runs", "--json"]).json();
    assert_eq!(next.as_array().map(Vec::len), Some(2), "{next}");
    kill(&home);
}

/// Its process is killed: the page says it, and continues it here.
#[test]
fn killed_process_is_continued_here() {
    let (home, run) = detached();
    let args = &["attach", &run[..]];
    let mut terminal = Terminal::start_in(&home, Start { args, ..Start::default() });
    terminal.sees("process ");
    terminal.sees("WAITS");
    kill(&home);
    terminal.sees("interrupted");
    terminal.sees("INTERRUPTED");
    press_until(&mut terminal, " ", "WAITS");
    terminal.loses("process ");
    let asked = home.run(&["export", &run]).out.matches("\"question.asked\"").count();
    assert_eq!(asked, 1, "it is not asked twice");
    terminal.signal("TERM");
    assert_eq!(terminal.ends(), 143);
}

#[test]
fn attached_dashboard_is_idle() {
    let (home, run) = detached();
    let args = &["attach", &run[..]];
    let terminal = Terminal::start_in(&home, Start { args, ..Start::default() });
    terminal.sees("process ");
    terminal.sees("WAITS");
    terminal.quiet_for(Duration::from_secs(3));
    kill(&home);
}
