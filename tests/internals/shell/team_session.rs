//! Sessions and members in the dashboard: the next message is typed, kept, sent and answered by a
//! run of its own; agents join and leave a swarm.

use std::sync::Arc;

use crate::log::event::{Command, Initiator, RunId, SpanId};
use crate::log::facts::agents::{AgentFact, RosterChange, RosterCommand};
use crate::scenario::catalogue::RequestedModel;
use crate::screen::Msg;
use crate::screen::effect::{Effect, FollowUp, LaunchRequest, RequestId, RunBeginning};
use crate::screen::state::ActiveScreen;
use crate::support::console::{Person, scenario};
use crate::support::facts::team;
use crate::support::screen::Dash;
use crossterm::event::KeyCode as Code;

const RUN: &str = "r-90de";

/// What a request for the next message of a session says of it.
fn followed(request: &LaunchRequest) -> FollowUp {
    match &request.begins {
        RunBeginning::FollowUp(follow_up) => follow_up.clone(),
        other => panic!("not the next message: {other:?}"),
    }
}

/// A desk on the screen, and what it was started with.
fn desk(facts: &team::TeamFacts) -> Dash {
    let mut dash = Dash::new(120, 36);
    begin(&mut dash, RUN, facts);
    dash
}

/// A run of a desk begins, and is on the screen.
fn begin(dash: &mut Dash, run: &str, facts: &team::TeamFacts) {
    let launch = LaunchRequest {
        id: RequestId(1),
        scenario: scenario("support-swarm", &[]),
        model: RequestedModel::Scripted { instant: true },
        flags: Vec::new(),
        seed: Some(3),
        begins: RunBeginning::New,
    };
    let (run, zero, launch) = (RunId::new(run), dash.now, Some(Box::new(launch)));
    dash.send(Msg::Started { request: RequestId(1), run: run.clone(), zero, launch });
    dash.send(Msg::Events { run, events: facts.log.clone() });
}

#[test]
fn message_continues_latest_run() {
    let mut dash = Dash::new(120, 36);
    begin(&mut dash, "r-90dd", &team::answered());
    begin(&mut dash, RUN, &team::follow_up());
    dash.state.screen = ActiveScreen::Run(RunId::new("r-90dd"));
    dash.text("i");
    assert_eq!(dash.state.screen, ActiveScreen::Run(RunId::new(RUN)));
    let screen = dash.screen();
    assert!(screen.contains("Message 3 to support"), "{screen}");
    assert!(screen.contains("r-90dd has a later run: the session continues from r-90de."));
    dash.press("'Thanks!' C-s");
    assert!(dash.asked().is_empty(), "no second answer to the first run is begun");
    let next = dash.state.run(&RunId::new(RUN)).expect("the run").next_message().clone();
    assert_eq!(next, crate::screen::run::NextMessage::Waiting("Thanks!".into()));
}

#[test]
fn message_to_ended_run_starts_next() {
    let mut dash = desk(&team::answered());
    dash.text("i");
    let screen = dash.screen();
    assert!(screen.contains("Message 2 to support"), "{screen}");
    assert!(screen.contains("sent at once"), "{screen}");
    // The scenario's own words are a suggestion; these take their place.
    assert!(screen.contains("typing replaces it"), "{screen}");
    dash.press("'When is' Enter 'the next bill?'");
    dash.asked();
    dash.press("C-s");
    let request = dash.launch();
    let follows = followed(&request);
    assert_eq!((follows.run.as_str(), &*follows.text), (RUN, "When is\nthe next bill?"));
    assert_eq!(request.seed, Some(3));
    assert_eq!(request.flags, [("weekend".into(), false)], "as they stand");
    let next = RunId::new("r-90df");
    let (request, zero) = (request.id, dash.now);
    dash.send(Msg::Started { request, run: next.clone(), zero, launch: None });
    assert_eq!(dash.state.screen, ActiveScreen::Run(next));
}

#[test]
fn closing_keeps_draft_unsent() {
    let mut dash = desk(&team::answered());
    dash.press("i 'Hello' Esc");
    assert!(dash.asked().is_empty());
    dash.text("i");
    let screen = dash.screen();
    assert!(screen.contains("Hello"), "{screen}");
}

#[test]
fn message_waits_for_run_end() {
    let facts = team::working();
    let mut dash = desk(&facts);
    dash.press("i 'Thanks!' C-s");
    assert!(dash.asked().is_empty(), "nothing is started while it goes on");
    let screen = dash.screen();
    assert!(screen.contains("next"), "{screen}");
    assert!(screen.contains("Queued: sent when this run ends. Press i to edit it."), "{screen}");
    let rest = team::answered().log.split_off(facts.log.len());
    dash.send(Msg::Events { run: RunId::new(RUN), events: rest });
    let request = dash.launch();
    assert_eq!(&*followed(&request).text, "Thanks!");
}

#[test]
fn failed_run_keeps_queued_message() {
    let mut facts = team::working();
    let mut dash = desk(&facts);
    dash.press("i 'Thanks!' C-s").asked();
    let before = facts.log.len();
    facts.ends("max_seconds", None);
    let events = facts.log.split_off(before);
    dash.send(Msg::Events { run: RunId::new(RUN), events });
    assert!(dash.asked().is_empty(), "nothing is started");
    let screen = dash.screen();
    assert!(screen.contains("Not sent, since the run ended: time limit"), "{screen}");
    dash.text("i");
    assert!(dash.screen().contains("Thanks!"));
}

#[test]
fn a_long_paste_is_one_message() {
    let mut dash = desk(&team::answered());
    let pasted: Vec<String> = (1..=40).map(|nth| format!("line {nth}")).collect();
    dash.text("i").send(Msg::Paste(pasted.join("\r\n")));
    let screen = dash.screen();
    assert!(screen.contains("line 40"), "{screen}");
    dash.press("C-s");
    let text = followed(&dash.launch()).text;
    assert_eq!(*text, *pasted.join("\n"));
}

#[test]
fn suggestion_can_be_sent_or_edited() {
    let mut dash = desk(&team::answered());
    let suggested = {
        dash.press("i C-s");
        followed(&dash.launch()).text
    };
    assert!(!suggested.is_empty());
    dash.press("i Esc");
    assert!(!dash.screen().contains("draft"), "{}", dash.screen());
    dash.press("i Backspace C-s");
    assert!(dash.asked().is_empty(), "it was emptied");
    assert!(dash.screen().contains("Nothing to send: type a message, or press Esc."));
    dash.press("Esc i End ! C-s");
    let text = followed(&dash.launch()).text;
    assert_eq!(*text, format!("{suggested}!"));
}

#[test]
fn queued_message_can_be_edited() {
    let mut dash = desk(&team::working());
    dash.press("i 'Thanks!' C-s");
    assert!(dash.screen().contains("i queued message"), "{}", dash.screen());
    dash.text("i");
    let screen = dash.screen();
    assert!(screen.contains("queued until the run ends; edit it here"), "{screen}");
    dash.press("'And when?' C-s");
    let next = dash.state.run(&RunId::new(RUN)).expect("the run").next_message().clone();
    assert_eq!(next, crate::screen::run::NextMessage::Waiting("Thanks!\nAnd when?".into()));
    // Left as it is, it waits; cleared and sent, it is withdrawn.
    dash.press("i Esc i C-u C-s");
    assert!(dash.screen().contains("The queued message was withdrawn."), "{}", dash.screen());
}

#[test]
fn message_under_edit_is_not_sent() {
    let facts = team::working();
    let mut dash = desk(&facts);
    dash.press("i 'Thanks!' C-s i 'And'");
    let rest = team::answered().log.split_off(facts.log.len());
    dash.send(Msg::Events { run: RunId::new(RUN), events: rest });
    assert!(dash.asked().is_empty());
    let screen = dash.screen();
    assert!(screen.contains("The run has ended: press Ctrl-S to send the message."), "{screen}");
    dash.press("C-s");
    assert_eq!(*followed(&dash.launch()).text, *"Thanks!\nAnd");
}

#[test]
fn draft_is_shown_and_guards_quit() {
    let mut dash = desk(&team::answered());
    dash.press("i 'Hello' Esc");
    let screen = dash.screen();
    assert!(screen.contains("Draft kept, not sent.") && screen.contains("i draft"), "{screen}");
    dash.text("qq");
    assert!(dash.asked().is_empty(), "it asks first");
    let screen = dash.screen();
    assert!(screen.contains("Quit and lose unsent messages?"), "{screen}");
    dash.text("y");
    assert!(matches!(dash.asked().as_slice(), [Effect::Quit { code: 0 }]));
}

#[test]
fn message_box_shows_overflow_and_help() {
    let mut dash = desk(&team::working());
    let pasted: Vec<String> = (1..=40).map(|nth| format!("line {nth}")).collect();
    dash.text("i").send(Msg::Paste(pasted.join("\n")));
    let screen = dash.screen();
    assert!(screen.contains("Message 2 to support, 28 rows above"), "{screen}");
    let first = screen.lines().find(|row| row.contains("line 29")).expect("its first row");
    assert!(first.contains('↑'), "{screen}");
    dash.press("F1");
    let screen = dash.screen();
    assert!(screen.contains("Help") && !screen.contains("Message 2"), "{screen}");
    dash.press("Esc C-c");
    let screen = dash.screen();
    assert!(screen.contains("Confirm") && !screen.contains("Message 2"), "{screen}");
    dash.text("n");
    assert!(dash.screen().contains("line 40"), "{}", dash.screen());
}

#[test]
fn small_terminal_shows_message_hints() {
    let mut dash = desk(&team::working());
    dash.send(Msg::Resize { cols: 60, rows: 16 }).text("i");
    let whole = |dash: &Dash| {
        let screen = dash.screen();
        let rows: Vec<&str> = screen.lines().map(|row| row.trim_matches(['║', ' '])).collect();
        rows.join(" ")
    };
    let screen = whole(&dash);
    assert!(screen.contains("typing replaces it; sent when this run ends"), "{screen}");
    dash.press("'Thanks!' C-s i");
    let screen = whole(&dash);
    assert!(screen.contains("or clear it and press Ctrl-S to withdraw it"), "{screen}");
}

#[test]
fn roster_shows_pending_changes() {
    let mut facts = team::working();
    let mut dash = desk(&facts);
    dash.text("m");
    let screen = dash.screen();
    assert!(screen.contains("entry: must stay"), "{screen}");
    dash.text(" ");
    assert!(dash.asked().is_empty(), "the entry stays");
    assert!(dash.screen().contains("support starts with triage: it cannot leave."));
    // The lawyer sits on the bench.
    dash.press("G Enter");
    let change = RosterChange::Add { agent: "lawyer".into() };
    let (run, swarm) = (RunId::new(RUN), "support".into());
    let command =
        Command::Roster(RosterCommand { swarm, change: change.clone(), by: Initiator::You });
    let asked = dash.asked();
    assert!(
        matches!(asked.as_slice(), [Effect::Command { run: of, command: it }] if *of == run && *it == command),
        "{asked:?}"
    );
    assert!(dash.screen().contains("pending: join"), "{}", dash.screen());
    let members = ["triage", "billing", "fraud", "refunds", "tech", "lawyer"];
    let members: Arc<[_]> = members.map(Into::into).into();
    let swarm = "support".into();
    facts.add(
        SpanId::RUN,
        AgentFact::RosterChanged { swarm, members, change, by: Initiator::You }.into(),
    );
    let last = facts.log.last().cloned().expect("the fact");
    dash.send(Msg::Events { run, events: vec![last] });
    let screen = dash.screen();
    assert!(!screen.contains("pending: join"), "{screen}");
    let row = screen.lines().find(|line| line.contains("] lawyer")).expect("a row");
    assert!(row.contains("[x]"), "{row}");
}

#[tokio::test(start_paused = true)]
async fn session_continues_in_real_program() {
    let mut person = Person::at(120, 36);
    person.sees("checkout-launch").await;
    person.starts(scenario("support-swarm", &[]), true);
    person.sees("DONE").await;
    person.key(Code::Char('i'));
    person.sees("Message 2 to").await;
    person.types(" And thanks.");
    person.ctrl('s');
    let seen = person.sees("message 2").await;
    assert!(seen.text.contains("hop"), "{}", seen.text);
    person.types("4g");
    let seen = person.sees("before").await;
    assert!(seen.text.contains("charged twice"), "{}", seen.text);
}
