//! Forks, restarts and interrupted runs that are continued, from the keys of the dashboard.

use std::sync::Arc;

use std::time::Duration;

use crate::engine::Schedule;
use crate::log::event::head::ForkPlace;
use crate::log::event::{BoundaryId, RunId, Seq};
use crate::log::world::run_row::RunRow;
use crate::scenario::catalogue::{LiveOffer, RequestedModel, ScenarioEntry};
use crate::scenario::{Scenario, load, shipped};
use crate::screen::effect::{ForkRequest, LaunchRequest, RequestId, RunBeginning};
use crate::screen::form::fork::ForkOffer;
use crate::screen::{Effect, Msg};
use crate::support::kept::{NOW, answer_open, kept, list, with_history};
use crate::support::screen::{Dash, facts};

/// The answer to `F`: a run of checkout-launch whose flag was switched on before round 3.
fn offer(run: &str) -> ForkOffer {
    let one = shipped().iter().find(|it| it.name == "checkout-launch").expect("shipped");
    let none = LiveOffer::Missing { why: "no key".to_owned() };
    let place = |at: &str, next: u64, on: bool| ForkPlace {
        id: BoundaryId::new(at),
        next: Seq(next),
        at: Duration::from_secs(next),
        flags: vec![("legal_analyst".into(), on)],
    };
    let set = vec!["budget.max_messages=11".parse().expect("an override")];
    let loaded = load(one.text, one.origin(), &set).expect("a good scenario");
    let entry = ScenarioEntry::from_text(run.to_owned(), one.origin(), one.text.into(), none);
    ForkOffer {
        run: RunId::new(run),
        entry: ScenarioEntry { loaded: Ok(Arc::new(loaded)), ..entry },
        set,
        model: RequestedModel::Scripted { instant: true },
        places: vec![
            place("round:1", 1, false),
            place("round:2", 18, false),
            place("round:3", 40, true),
        ],
    }
}

/// Presses F and answers it; the form is open then.
fn fork(dash: &mut Dash, run: &str) {
    dash.text("F");
    let asked = dash.asked();
    let Some(Effect::ReadFork(source)) = asked.first() else { panic!("{asked:?}") };
    assert_eq!((source.run.as_str(), source.imported), (run, false));
    let (request, fork) = (source.request, Box::new(offer(run)));
    dash.send(Msg::ForkReady { request, fork });
}

fn started(dash: &mut Dash) -> (LaunchRequest, ForkRequest) {
    dash.asked();
    dash.press("C-s");
    let request = dash.launch();
    let RunBeginning::Fork(fork) = request.begins.clone() else { panic!("{request:?}") };
    (*request, fork)
}

#[test]
fn forks_at_last_boundary_by_default() {
    let mut dash = with_history();
    fork(&mut dash, "r-10aa");
    let screen = dash.screen();
    for text in ["Fork of r-10aa", "round 3, at 00:40", "3 of 3", "Flags from there on"] {
        assert!(screen.contains(text), "{text}: {screen}");
    }
    assert!(screen.contains("roundtable fork r-10aa@round:3"), "{screen}");
    assert!(!screen.contains("Seed"), "that of the run: {screen}");
    let (request, at_last) = started(&mut dash);
    let (run, at) = (RunId::new("r-10aa"), BoundaryId::new("round:3"));
    assert_eq!(at_last, ForkRequest { run, at, set: Vec::new(), flags: Vec::new() });
    assert_eq!(request.model, RequestedModel::Scripted { instant: true });

    fork(&mut dash, "r-10aa");
    dash.press("Left");
    assert!(dash.screen().contains("round 2, at 00:18"));
    let (_, earlier) = started(&mut dash);
    assert_eq!(earlier.at.as_str(), "round:2");
}

#[test]
fn fork_keeps_flags_of_boundary() {
    let mut dash = with_history();
    fork(&mut dash, "r-10aa");
    assert!(dash.screen().contains("[x] on"), "{}", dash.screen());
    dash.press("Left");
    assert!(dash.screen().contains("[ ] off"), "{}", dash.screen());
    // A flag that the operator has switched stays so.
    while !dash.screen().contains(">legal_analyst") {
        dash.press("Down");
    }
    dash.press("Space");
    assert!(dash.screen().contains("--flag legal_analyst=on"), "{}", dash.screen());
    let (_, forked) = started(&mut dash);
    assert_eq!(forked.flags, [("legal_analyst".into(), true)]);
}

#[test]
fn fork_overrides_only_changed_limit() {
    let mut dash = with_history();
    fork(&mut dash, "r-10aa");
    assert!(dash.screen().contains("Max messages       11"), "{}", dash.screen());
    while !dash.screen().contains(">Max rounds") {
        dash.press("Down");
    }
    dash.press("Enter Backspace 2");
    let (_, forked) = started(&mut dash);
    assert_eq!(forked.set, ["budget.max_rounds=2"], "only what is new");
}

#[test]
fn an_edited_prompt_is_an_override() {
    let mut dash = with_history();
    fork(&mut dash, "r-10aa");
    while !dash.screen().contains(">risk_analyst") {
        dash.press("Down");
    }
    assert!(dash.screen().contains("Prompts from there on"), "{}", dash.screen());
    dash.press("Enter ' Be \"strict\".'");
    assert!(dash.screen().contains("Be \"strict\"."), "{}", dash.screen());
    let (request, forked) = started(&mut dash);
    let [set] = &forked.set[..] else { panic!("{:?}", forked.set) };
    let prompt = set.strip_prefix("roles.risk_analyst.prompt=").expect("its path");
    assert!(prompt.contains("Be") && prompt.contains("strict"), "{prompt}");
    // The command line says the same.
    let laid = vec!["budget.max_messages=11".parse().expect("one"), set.parse().expect("a path")];
    let one = shipped().iter().find(|it| it.name == "checkout-launch").expect("shipped");
    let same = load(one.text, one.origin(), &laid).expect("a good scenario");
    let prompts = |of: &Scenario| format!("{:?}", of.pattern);
    assert_eq!(prompts(&same), prompts(&request.scenario));
}

#[test]
fn playhead_picks_fork_boundary() {
    let mut dash = Dash::new(120, 36);
    let events = facts("checkout-launch", &[], &[], Schedule::default());
    dash.run("r-20bb", &events);
    dash.asked();
    for _ in 0..200 {
        dash.text(",");
        let page = dash.state.visible_run().expect("a page");
        if page.shown().progress.next < Seq(40) {
            break;
        }
    }
    dash.text("F");
    let asked = dash.asked();
    let Some(Effect::ReadFork(source)) = asked.first() else { panic!("{asked:?}") };
    let log = source.events.as_ref().expect("nothing is kept: the page has its events");
    assert_eq!(log.len(), events.len());
    let (request, fork) = (source.request, Box::new(offer("r-20bb")));
    dash.send(Msg::ForkReady { request, fork });
    assert!(dash.screen().contains("round 2, at 00:18"), "{}", dash.screen());
}

#[test]
fn late_fork_reply_opens_no_form() {
    let mut dash = with_history();
    dash.text("F");
    let asked = dash.asked();
    let Some(Effect::ReadFork(source)) = asked.first() else { panic!("{asked:?}") };
    dash.text("?");
    dash.send(Msg::ForkReady { request: source.request, fork: Box::new(offer("r-10aa")) });
    assert!(!dash.screen().contains("Fork of"), "the help is open: {}", dash.screen());
    dash.press("Esc F j");
    let asked = dash.asked();
    let Some(Effect::ReadFork(source)) = asked.first() else { panic!("{asked:?}") };
    dash.send(Msg::ForkReady { request: source.request, fork: Box::new(offer("r-10aa")) });
    assert!(!dash.screen().contains("Fork of"), "something else was done");
}

#[test]
fn restart_takes_one_key() {
    let mut dash = with_history();
    dash.text("R");
    let asked = dash.asked();
    let Some(Effect::Restart(source)) = asked.first() else { panic!("{asked:?}") };
    assert_eq!(source.run.as_str(), "r-10aa");
    assert!(source.events.is_none(), "it is read from the store");
    let text = "r-10aa cannot be continued".to_owned();
    dash.send(Msg::StartFailed { request: source.request, text });
    assert!(dash.screen().contains("r-10aa cannot be continued"), "{}", dash.screen());
}

fn select(dash: &mut Dash, run: &str) {
    dash.text("g");
    for _ in 0..20 {
        if dash.state.home.run.as_ref().is_some_and(|id| id.as_str() == run) {
            return;
        }
        dash.text("j");
    }
    panic!("{run} is not listed");
}

#[test]
fn space_resumes_interrupted_run() {
    let mut dash = with_history();
    select(&mut dash, "r-40dd");
    dash.asked();
    dash.press("Space");
    let asked = dash.asked();
    let Some(Effect::Resume { request, run }) = asked.first() else { panic!("{asked:?}") };
    assert_eq!(run.as_str(), "r-40dd");
    let (request, run, zero) = (*request, run.clone(), dash.now);
    dash.send(Msg::Started { request, run, zero, launch: None });
    assert!(dash.state.visible_run().is_some_and(|page| page.id().as_str() == "r-40dd"));

    // One that has ended says what can be done instead.
    let mut dash = with_history();
    select(&mut dash, "r-20bb");
    dash.asked();
    dash.press("Space");
    assert!(dash.asked().is_empty());
    assert!(dash.screen().contains("R starts it again, F forks it."), "{}", dash.screen());
}

#[test]
fn resuming_ends_read_only() {
    let mut dash = with_history();
    select(&mut dash, "r-40dd");
    dash.asked();
    dash.press("Enter");
    let events = facts("checkout-launch", &[], &[], Schedule::default());
    answer_open(&mut dash, &events[..20]);
    dash.asked();
    dash.press("Space");
    let asked = dash.asked();
    let Some(Effect::Resume { request, run }) = asked.first() else { panic!("{asked:?}") };
    let (request, run, zero) = (*request, run.clone(), dash.now);
    dash.send(Msg::Started { request, run, zero, launch: None });
    let page = dash.state.visible_run().expect("a page");
    assert!(page.kept.is_none() && dash.state.opened.is_empty());
}

/// A run that is opened by its name is read before the list of the runs is.
#[test]
fn opened_run_resumes_unlisted() {
    let mut dash = Dash::new(120, 36);
    let (row, request) =
        (Box::new(kept("r-40dd", 1, "front-desk", "Desk", "interrupted")), RequestId(99));
    dash.send(Msg::OpenKept { row, is_file: false, wall_ms: NOW, request });
    let events = facts("checkout-launch", &[], &[], Schedule::default());
    let run = RunId::new("r-40dd");
    dash.send(Msg::Opened { run: run.clone(), request, events: events[..20].to_vec() });
    dash.send(Msg::OpenedToEnd { run, request, problem: None });
    dash.asked();
    dash.press("Space");
    let asked = dash.asked();
    assert!(matches!(asked.first(), Some(Effect::Resume { .. })), "{asked:?}");
}

/// Opens an exported log with the id of an interrupted run in the store.
fn open_file(dash: &mut Dash) {
    let row = Box::new(kept("r-40dd", 1, "front-desk", "Desk", "interrupted"));
    let request = RequestId(99);
    dash.send(Msg::OpenKept { row, is_file: true, wall_ms: NOW, request });
    let (run, events) =
        (RunId::new("r-40dd"), facts("checkout-launch", &[], &[], Schedule::default()));
    dash.send(Msg::Opened { run: run.clone(), request, events: events[..20].to_vec() });
    dash.send(Msg::OpenedToEnd { run, request, problem: None });
    dash.asked();
}

#[test]
fn imported_log_forks_own_events() {
    let mut dash = with_history();
    open_file(&mut dash);
    for key in ["F", "R"] {
        dash.text(key);
        let asked = dash.asked();
        let (Some(Effect::ReadFork(source)) | Some(Effect::Restart(source))) = asked.first() else {
            panic!("{key}: {asked:?}")
        };
        assert_eq!(source.events.as_ref().map(Vec::len), Some(20), "{key}: its own events");
        assert!(source.imported, "{key}: somebody else may have written them");
    }
    dash.press("Space");
    assert!(dash.asked().is_empty());
    assert!(dash.screen().contains("r-40dd is not in the store"), "{}", dash.screen());

    // Its row on the first screen is that of the kept run.
    dash.text("q");
    select(&mut dash, "r-40dd");
    dash.asked();
    dash.text("F");
    let asked = dash.asked();
    let Some(Effect::ReadFork(source)) = asked.first() else { panic!("{asked:?}") };
    assert!(source.events.is_none(), "it is read from the store");
    dash.press("Enter");
    assert!(matches!(dash.asked().first(), Some(Effect::OpenKept { .. })), "read again");
}

/// The first screen with one kept run, which called live models.
fn with_live_run(status: &str) -> Dash {
    let mut dash = Dash::new(120, 36);
    let row = kept("r-70aa", 1, "front-desk", "Desk", status);
    list(&mut dash, vec![RunRow { live: true, cost_usd: Some(1.25), ..row }]);
    dash.text("2");
    dash.asked();
    dash
}

#[test]
fn live_resume_asks_first() {
    let mut dash = with_live_run("interrupted");
    dash.press("Space");
    assert!(dash.asked().is_empty());
    let screen = dash.screen();
    assert!(screen.contains("Continue run r-70aa?") && screen.contains("$1.25"), "{screen}");
    dash.text("y");
    assert!(matches!(dash.asked().first(), Some(Effect::Resume { .. })));
}

#[test]
fn live_restart_asks_first() {
    let mut dash = with_live_run("success");
    for answer in ["n", "y"] {
        dash.text("R");
        assert!(dash.asked().is_empty());
        let screen = dash.screen();
        assert!(screen.contains("Start run r-70aa again?") && screen.contains("$1.25"), "{screen}");
        dash.text(answer);
        let started = matches!(dash.asked().first(), Some(Effect::Restart(_)));
        assert_eq!(started, answer == "y");
    }
}

#[test]
fn forks_follow_their_parent() {
    let mut dash = Dash::new(120, 36);
    let fork = |id: &str, hours: u64, parent: &str, at: &str| RunRow {
        parent: Some(RunId::new(parent)),
        forked_at: Some(at.to_owned()),
        ..kept(id, hours, "checkout-launch", "Checkout v2", "success")
    };
    let rows = vec![
        fork("r-3333", 1, "r-2222", "finalize"),
        kept("r-9999", 2, "front-desk", "Desk", "success"),
        fork("r-2222", 3, "r-1111", "round:2"),
        kept("r-1111", 4, "checkout-launch", "Checkout v2", "success"),
        fork("r-0000", 5, "r-gone", "round:3"),
    ];
    list(&mut dash, rows);
    let screen = dash.screen();
    let place = |text: &str| {
        let line = screen.lines().position(|line| line.contains(text));
        line.unwrap_or_else(|| panic!("{text}: {screen}"))
    };
    let lines =
        ["r-1111", "↳ round 2", "  ↳ the final answer", "r-9999", "↳ r-gone, round 3"].map(place);
    assert!(lines.is_sorted(), "{screen}");
}
