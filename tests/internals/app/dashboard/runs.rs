//! Runs: starting, watching several, pausing, ending, leaving.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Schedule;
use crate::log::event::{
    Command, Elapsed, Event, EventKind, Initiator, RunId, Seq, SpanId, StopReason,
};
use crate::scenario::catalogue::RequestedModel;
use crate::screen::home::HomePane;
use crate::screen::keymap::Context;
use crate::screen::state::{ActiveScreen, DisplaySettings};
use crate::screen::{Effect, Msg};

use super::live;
use crate::support::facts::team;
use crate::support::kept::{kept, list};
use crate::support::screen::{Dash, facts, own};

fn ended() -> Vec<Arc<Event>> {
    facts("checkout-launch", &[], &[], Schedule::default())
}

fn commands(dash: &mut Dash) -> Vec<(String, Command)> {
    dash.asked()
        .into_iter()
        .map(|effect| match effect {
            Effect::Command { run, command } => (run.as_str().to_owned(), command),
            other => panic!("no command: {other:?}"),
        })
        .collect()
}

fn quits(dash: &mut Dash) -> Option<u8> {
    match &dash.asked()[..] {
        [Effect::Quit { code }] => Some(*code),
        _ => None,
    }
}

#[test]
fn enter_starts_checkout_launch() {
    let mut dash = Dash::new(80, 24);
    assert_eq!(dash.state.home.scenario.as_deref(), Some("checkout-launch"));
    dash.press("Enter");
    let request = dash.launch();
    assert_eq!(request.model, RequestedModel::Scripted { instant: false });
    assert!(dash.screen().contains("starting Checkout v2"));
    let run = RunId::new("r-0001");
    dash.send(Msg::Started { request: request.id, run: run.clone(), zero: dash.now, launch: None });
    assert_eq!(dash.state.screen, ActiveScreen::Run(run));
    assert!(dash.state.starting.is_empty());
}

#[test]
fn started_run_steals_no_focus() {
    let mut dash = Dash::new(80, 24);
    dash.press("Enter");
    let request = dash.launch();
    dash.text("j");
    let run = RunId::new("r-0001");
    dash.send(Msg::Started { request: request.id, run, zero: dash.now, launch: None });
    assert_eq!(dash.state.screen, ActiveScreen::Home);
    assert_eq!(dash.state.runs.len(), 1);
}

#[test]
fn failed_start_shows_until_dismissed() {
    let mut dash = Dash::new(80, 24);
    dash.press("Enter");
    let request = dash.launch().id;
    dash.send(Msg::StartFailed { request, text: "No key: set OPENAI_API_KEY.".to_owned() });
    dash.after(Duration::from_secs(60)).send(Msg::Tick);
    assert!(dash.screen().contains("! No key: set OPENAI_API_KEY."));
    assert!(dash.state.starting.is_empty());
    dash.press("Esc");
    assert!(!dash.screen().contains("No key"), "dismissed");
}

#[test]
fn run_rows_keep_their_place() {
    let mut dash = Dash::new(120, 36);
    dash.run("r-0001", &live()).text("q").run("r-0002", &ended()).text("q").run("r-0003", &live());
    dash.text("q");
    assert_eq!(dash.state.home.focus, HomePane::Runs);
    assert_eq!(dash.state.home.run, Some(RunId::new("r-0003")), "the one that was left");
    let rows = |dash: &Dash| -> Vec<String> {
        let row = |line: &&str| line.contains(" r-000") && line.contains("collaboration");
        dash.screen().lines().filter(row).map(str::to_owned).collect()
    };
    let before = rows(&dash);
    assert_eq!(before.len(), 3);
    assert!(before[0].contains("● LIVE") && before[0].contains("2/3"), "{before:?}");
    assert!(before[1].contains("✓ DONE") && before[1].contains("▲ go"), "{before:?}");
    assert!(before[0].contains("r-0003"), "the newest first: {before:?}");
    // It ends while one looks: its row stays where it is.
    dash.send(Msg::Events { run: RunId::new("r-0003"), events: ended().split_off(live().len()) });
    let after = rows(&dash);
    assert!(after[0].contains("r-0003") && after[0].contains("✓ DONE"), "{after:?}");
    assert_eq!(before[1], after[1]);
}

#[test]
fn next_message_lists_below_first() {
    let mut dash = Dash::new(120, 36);
    let further = team::follow_up();
    dash.run("r-90dd", &team::answered().log).text("q").run("r-0002", &ended()).text("q");
    dash.run("r-0003", &further.log).text("q");
    let screen = dash.screen();
    let row = |id: &str| {
        let is_row = |row: &str| row.contains(id) && (row.contains("DONE") || row.contains("LIVE"));
        screen.lines().position(is_row).expect("a row")
    };
    let [first, other, further] = ["r-90dd", "r-0002", "r-0003"].map(row);
    assert!(other < first && first + 1 == further, "{screen}");
}

#[test]
fn enter_opens_run_and_q_returns() {
    let mut dash = Dash::new(80, 24);
    dash.run("r-0001", &ended()).text("q").run("r-0002", &ended()).text("q");
    dash.press("j Enter");
    assert_eq!(dash.state.screen, ActiveScreen::Run(RunId::new("r-0001")));
    dash.text("q");
    assert_eq!(dash.state.screen, ActiveScreen::Home);
    assert_eq!(dash.state.home.run, Some(RunId::new("r-0001")));
}

#[test]
fn space_pauses_and_resumes_everywhere() {
    let mut dash = Dash::new(120, 36);
    let events = live();
    dash.run("r-0001", &events).press("Space");
    assert_eq!(commands(&mut dash), [("r-0001".into(), Command::Pause { by: Initiator::You })]);
    let pausing = Event {
        seq: Seq(events.len() as u64),
        at: Elapsed(3_000_000),
        span: SpanId::RUN,
        kind: EventKind::Pausing { by: Initiator::You, at_round: false },
    };
    dash.send(Msg::Events { run: RunId::new("r-0001"), events: vec![Arc::new(pausing)] });
    dash.press("q Space");
    assert_eq!(commands(&mut dash), [("r-0001".into(), Command::Resume { by: Initiator::You })]);
    dash.text("sS");
    let steps = commands(&mut dash);
    assert_eq!(steps[0].1, Command::Step);
    assert_eq!(steps[1].1, Command::StepRound);
}

#[test]
fn ended_run_ignores_commands() {
    let mut dash = Dash::new(120, 36);
    dash.run("r-0001", &ended()).text("q sK");
    assert!(dash.asked().is_empty());
    assert!(dash.state.notices.current().is_some());
}

#[test]
fn the_kill_switch_asks_first() {
    let mut dash = Dash::new(120, 36);
    dash.run("r-0001", &live()).text("q").run("r-0002", &live()).text("K");
    assert_eq!(dash.state.context(), Context::Confirm);
    dash.text("n");
    assert!(dash.asked().is_empty());
    dash.text("Ky");
    assert_eq!(commands(&mut dash), [("r-0002".into(), Command::Cancel)]);
    dash.press("qK Enter");
    let killed: Vec<_> = commands(&mut dash).into_iter().map(|(run, _)| run).collect();
    assert_eq!(killed, ["r-0001", "r-0002"], "on the first screen: every live run");
}

#[test]
fn q_asks_while_run_is_live() {
    let mut dash = Dash::new(80, 24);
    dash.text("q");
    assert_eq!(quits(&mut dash), Some(0));
    dash.run("r-0001", &live()).text("qq");
    assert_eq!(dash.state.context(), Context::Confirm);
    assert_eq!(quits(&mut dash), None);
    dash.text("y");
    assert_eq!(quits(&mut dash), Some(0));
}

#[test]
fn later_leaves_kept_runs() {
    for keeps in [true, false] {
        let mut dash = Dash::new(80, 24);
        dash.state.keeps_runs = keeps;
        dash.run("r-0001", &live()).text("qql");
        let asked = dash.asked();
        match keeps {
            true => assert!(
                matches!(asked[..], [Effect::LeaveRuns, Effect::Quit { code: 0 }]),
                "{asked:?}"
            ),
            false => assert!(asked.is_empty(), "they would be lost: {asked:?}"),
        }
    }
}

#[test]
fn escape_never_quits() {
    let mut dash = Dash::new(80, 24);
    dash.run("r-0001", &live());
    for _ in 0..5 {
        dash.press("Esc");
    }
    assert!(dash.asked().is_empty());
}

#[test]
fn ctrl_c_stops_then_quits() {
    let mut dash = Dash::new(80, 24);
    dash.run("r-0001", &live()).press("C-c");
    assert_eq!(dash.state.context(), Context::Confirm);
    dash.text("y");
    assert_eq!(commands(&mut dash), [("r-0001".into(), Command::Cancel)]);
    dash.press("C-c C-c");
    assert_eq!(quits(&mut dash), Some(130));
}

#[test]
fn ctrl_c_presses_expire() {
    let mut dash = Dash::new(80, 24);
    dash.press("C-c");
    assert_eq!(quits(&mut dash), None);
    assert!(dash.screen().contains("Ctrl-C again quits"));
    dash.after(Duration::from_secs(5)).send(Msg::Tick).press("C-c");
    assert_eq!(quits(&mut dash), None);
    dash.after(Duration::from_millis(500)).press("C-c");
    assert_eq!(quits(&mut dash), Some(130));
}

#[test]
fn ctrl_c_works_while_typing() {
    let mut dash = Dash::new(80, 24);
    dash.press("n Tab Tab");
    assert_eq!(dash.state.context(), Context::FormText);
    dash.press("C-c C-c");
    assert_eq!(quits(&mut dash), Some(130));
}

#[test]
fn a_signal_leaves_without_asking() {
    let mut dash = Dash::new(80, 24);
    dash.run("r-0001", &live()).send(Msg::Terminate { code: 143 });
    assert_eq!(quits(&mut dash), Some(143));
}

#[test]
fn suspend_pauses_and_resumes_running_runs() {
    let mut dash = Dash::new(80, 24);
    let mut paused = live();
    let at = vec![crate::log::event::BoundaryId::new("round:2")];
    let (seq, span) = (Seq(paused.len() as u64), SpanId::RUN);
    let kind = EventKind::Paused { at };
    paused.push(Arc::new(Event { seq, at: Elapsed(3_000_000), span, kind }));
    dash.run("r-0001", &live()).run("r-0002", &paused).run("r-0003", &ended());
    dash.press("C-z");
    let mut asked = dash.asked();
    assert!(matches!(asked.pop(), Some(Effect::Suspend)), "the last");
    assert_eq!(asked.len(), 1);
    dash.effects = asked;
    assert_eq!(commands(&mut dash), [("r-0001".into(), Command::Pause { by: Initiator::Suspend })]);
    dash.send(Msg::Continued);
    assert_eq!(
        commands(&mut dash),
        [("r-0001".into(), Command::Resume { by: Initiator::Suspend })]
    );
    assert!(dash.redraw);
}

#[test]
fn announces_run_ended_in_background() {
    let mut dash = Dash::new(120, 36);
    dash.run("r-0001", &live()).run("r-0002", &live());
    let kind = EventKind::SessionRunClosed {
        run: RunId::new("r-0001"),
        reason: StopReason::MaxRoundsReached,
    };
    let event = Event { seq: Seq(3), at: Elapsed(1), span: SpanId::RUN, kind };
    dash.send(Msg::Session(vec![Arc::new(event)]));
    assert!(dash.screen().contains("r-0001 has ended: round limit"));
}

#[test]
fn header_counts_dropped_events() {
    let mut dash = Dash::new(120, 36);
    dash.run("r-0001", &ended()).text("q");
    let kind = EventKind::SessionRunDropped { run: RunId::new("r-0001"), events: 61 };
    let event = Event { seq: Seq(9), at: Elapsed(1), span: SpanId::RUN, kind };
    dash.send(Msg::Session(vec![Arc::new(event)]));
    let screen = dash.screen();
    assert!(screen.contains("61 events of 1 finished run dropped to bound memory"), "{screen}");
}

/// The page of a run that the store has is removed once it is not shown and listed as ended; its row and
/// what it used stay.
#[test]
fn pages_of_stored_runs_are_removed() {
    let dropped = || {
        let kind = EventKind::SessionRunDropped { run: RunId::new("r-0001"), events: 61 };
        let event = Event { seq: Seq(9), at: Elapsed(1), span: SpanId::RUN, kind };
        Msg::Session(vec![Arc::new(event)])
    };
    let row = |status| kept("r-0001", 1, "checkout-launch", "Checkout", status);
    let pages = |dash: &Dash| dash.state.runs.len();
    let mut dash = Dash::new(120, 36);
    list(&mut dash, vec![row("running")]);
    dash.run("r-0001", &ended());
    let totals = dash.state.totals();
    assert!(totals.calls > 0 && totals.tokens > 0, "{totals:?}");
    dash.send(dropped());
    assert_eq!(pages(&dash), 1, "it is shown");
    dash.text("q");
    list(&mut dash, vec![row("running")]);
    assert_eq!(pages(&dash), 1, "the list does not say yet that it has ended");
    list(&mut dash, vec![row("success")]);
    assert_eq!(pages(&dash), 0);
    let after = dash.state.totals();
    assert_eq!((after.runs, after.calls, after.tokens), (1, totals.calls, totals.tokens));
    let screen = dash.screen();
    assert!(screen.contains("r-0001") && screen.contains("1 run, 0 live"), "{screen}");
    assert!(!screen.contains("dropped to bound memory"), "the store has it: {screen}");
}

#[test]
fn n_opens_form_of_selected_run() {
    let mut dash = Dash::new(120, 36);
    dash.text("j").run("r-0001", &live()).text("n");
    assert!(dash.screen().contains("New run of checkout-launch"));
}

#[test]
fn broken_files_show_error_position() {
    let text = "title = \"Mine\"\npattern = \"collaboration\"\ngoal = \"x\"\nbudgt = 3\n";
    let mut dash = Dash::over(120, 36, vec![own("./mine.toml", text)], DisplaySettings::default());
    let screen = dash.screen();
    assert!(screen.contains("✗ mine"), "{screen}");
    assert!(screen.contains("4:1"), "line and column: {screen}");
    assert!(screen.contains("budgt"), "{screen}");
    assert!(screen.contains("1 scenario, 1 broken"), "{screen}");
    dash.text("r");
    assert!(matches!(dash.asked()[..], [Effect::Rescan]));
    let mut read = crate::support::screen::shipped();
    let count = read.len() + 1;
    read.push(own("./mine.toml", text));
    dash.send(Msg::Scenarios(read.clone()));
    let said = |dash: &Dash| dash.state.notices.current().map(|it| it.text.clone());
    assert_eq!(said(&dash), Some(format!("{count} scenarios read, 1 broken.")));
    // Files that are read because they changed are not counted.
    dash.press("Esc").send(Msg::Scenarios(read));
    assert_eq!(said(&dash), None);
}

#[test]
fn scenarios_read_anew_keep_the_selection() {
    let mut dash = Dash::new(120, 36);
    dash.press("End");
    let before = dash.state.home.scenario.clone();
    let mut entries = dash.state.scenarios.clone();
    entries.insert(0, own("aaa.toml", "title = 1"));
    dash.send(Msg::Scenarios(entries));
    assert_eq!(dash.state.home.scenario, before);
    dash.send(Msg::Scenarios(Vec::new()));
    assert!(
        dash.screen().contains("No scenarios yet: put a file into ./scenarios"),
        "an empty pane says why"
    );
}

#[test]
fn small_screen_keeps_whole_title() {
    let events = facts("checkout-launch", &[], &[], Schedule::default());
    for (cols, activity) in [(80, false), (120, true)] {
        let mut dash = Dash::new(cols, 24);
        dash.run("r-0001", &events).text("q");
        let screen = dash.screen();
        assert!(
            screen.contains("r-0001") && screen.contains("Checkout v2: go or no-go "),
            "{screen}"
        );
        assert_eq!(screen.contains("activity"), activity, "{screen}");
        assert!(!screen.contains(" facts "), "{screen}");
    }
}

#[test]
fn new_run_waits_for_scenarios() {
    let mut dash = Dash::over(120, 36, Vec::new(), DisplaySettings::default());
    dash.text("n");
    let said = dash.state.notices.current().expect("said").text.clone();
    assert!(said.contains("Still reading the scenarios"), "{said}");
}
