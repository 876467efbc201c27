//! Kept runs: listed, filtered, sorted, opened read only, pinned, removed and brought back.

use std::time::Duration;

use std::sync::Arc;

use crate::base::word_query::WordQuery;
use crate::engine::Schedule;
use crate::log::event::{Event, RunId};
use crate::log::world::run_row::RunRow;
use crate::screen::effect::{KeptChange, RequestId};
use crate::screen::state::ActiveScreen;
use crate::screen::{Effect, Msg};

use crate::support::kept::{NOW, answer_open, history, kept, list, opening, with_history};
use crate::support::screen::{Dash, facts};

fn ended() -> Vec<Arc<Event>> {
    facts("checkout-launch", &[], &[], Schedule::default())
}

fn listed(dash: &Dash) -> Vec<String> {
    let list = dash.state.listed();
    (0..list.len()).filter_map(|at| list.get(at)).map(|run| run.id().to_string()).collect()
}

#[test]
fn session_runs_list_first_and_once() {
    let mut dash = with_history();
    // A fork is below its parent, if both are kept runs.
    assert_eq!(listed(&dash), ["r-10aa", "r-20bb", "r-50ee", "r-30cc", "r-40dd"]);
    dash.run("r-20bb", &ended()).text("q");
    assert_eq!(listed(&dash), ["r-20bb", "r-10aa", "r-30cc", "r-40dd", "r-50ee"]);
}

#[test]
fn interrupted_runs_are_told_on_home() {
    let more = kept("r-60ff", 99, "front-desk", "Desk", "interrupted");
    let rows = || history().into_iter().chain([more.clone()]).collect::<Vec<_>>();
    const TOLD: &str = "2 runs were interrupted: r-40dd, r-60ff; select one, Space continues it";
    let mut dash = Dash::new(120, 36);
    list(&mut dash, rows());
    dash.after(Duration::from_secs(60));
    assert!(dash.screen().contains(TOLD), "{}", dash.screen());
    dash.press("Down");
    assert!(!dash.screen().contains("interrupted:"), "it was seen");
    list(&mut dash, rows());
    assert!(!dash.screen().contains("interrupted:"), "it is told once");

    // The key acts on the selected run only.
    for (keys, wanted, hint) in
        [("", None, ""), ("2", None, ""), ("2G", Some("r-60ff"), "Space continue")]
    {
        let mut dash = Dash::new(120, 36);
        list(&mut dash, rows());
        dash.text(keys);
        assert!(dash.screen().contains(hint), "{}", dash.screen());
        dash.asked();
        dash.press("Space");
        let asked = dash.asked();
        let resumed = asked.iter().find_map(|effect| match effect {
            Effect::Resume { run, .. } => Some(run.as_str()),
            _ => None,
        });
        assert_eq!(resumed, wanted, "{keys}: {asked:?}");
    }

    // Neither in a run nor over the first screen.
    let mut dash = Dash::new(120, 36);
    dash.run("r-20bb", &ended());
    list(&mut dash, rows());
    for key in ["", "?"] {
        dash.text(key);
        assert!(!dash.screen().contains("interrupted:"), "{}", dash.screen());
    }
    dash.press("Esc q");
    let screen = dash.screen();
    assert!(screen.contains("2 interrupted: select one, Space continues it"), "{screen}");
    assert!(screen.contains("runs of this session") && screen.contains("0 stopped"), "{screen}");
}

#[test]
fn a_message_stays_with_its_screen() {
    let mut dash = Dash::new(120, 36);
    dash.run("r-20bb", &ended()).text("w");
    assert!(dash.screen().contains("w does nothing here"));
    dash.text("q");
    assert!(!dash.screen().contains("does nothing here"), "{}", dash.screen());
    dash.text("w");
    assert!(dash.screen().contains("w does nothing here"));
    dash.text("?");
    assert!(!dash.screen().contains("does nothing here"), "{}", dash.screen());
}

/// The searches that were asked for since the last time.
fn searches(dash: &mut Dash) -> Vec<(RequestId, WordQuery)> {
    let asked = dash.asked().into_iter();
    asked
        .filter_map(|effect| match effect {
            Effect::SearchSaid { request, query } => Some((request, query)),
            _ => None,
        })
        .collect()
}

fn answer_search(dash: &mut Dash, request: RequestId, runs: &[&str], left: u64) {
    let found = Ok(runs.iter().map(|id| RunId::new(*id)).collect());
    dash.send(Msg::Said { request, found, left });
}

#[test]
fn said_filter_searches_store() {
    let mut dash = with_history();
    dash.text("/").text("said:");
    assert_eq!(searches(&mut dash), [], "no word yet");
    assert_eq!(listed(&dash).len(), 5);
    dash.text("ve");
    let asked = searches(&mut dash);
    assert_eq!(
        asked.iter().map(|it| &it.1).collect::<Vec<_>>().last(),
        Some(&&WordQuery::parse("ve"))
    );
    let first = asked[asked.len() - 1].0;
    assert_eq!(listed(&dash), [""; 0]);
    let screen = dash.screen();
    assert!(screen.contains("searching: said:ve") && screen.contains("Searching what"), "{screen}");
    answer_search(&mut dash, first, &["r-20bb", "r-30cc", "r-gone"], 12);
    assert_eq!(listed(&dash), ["r-20bb", "r-30cc"], "as far as it is searched");
    assert!(dash.screen().contains("searching, 12 runs left: said:ve"), "{}", dash.screen());
    dash.text("r");
    let [(second, _)] = searches(&mut dash)[..] else { panic!("one search") };
    answer_search(&mut dash, first, &["r-40dd"], 0);
    assert_eq!(listed(&dash), ["r-20bb", "r-30cc"], "an answer to an earlier question is dropped");
    answer_search(&mut dash, second, &["r-30cc", "r-40dd"], 0);
    assert_eq!(listed(&dash), ["r-30cc", "r-40dd"]);
    assert!(dash.screen().contains("filter: said:ver"), "{}", dash.screen());
    dash.text(" status:failed");
    assert_eq!((listed(&dash), searches(&mut dash)), (vec!["r-30cc".to_owned()], vec![]));
    dash.press("Enter");
    assert_eq!((listed(&dash).len(), searches(&mut dash)), (1, vec![]));
    // The runs are not the same any more: asked again, and listed meanwhile as before.
    list(&mut dash, history());
    let [(third, _)] = searches(&mut dash)[..] else { panic!("one search") };
    assert_eq!(listed(&dash), ["r-30cc"]);
    let found = Err("The store cannot be read: the disk.".to_owned());
    dash.send(Msg::Said { request: third, found, left: 0 });
    assert!(dash.screen().contains("The store cannot be read: the disk."), "{}", dash.screen());
    dash.press("Esc");
    assert_eq!((listed(&dash).len(), searches(&mut dash)), (5, vec![]));
    answer_search(&mut dash, third, &[], 0);
    assert_eq!(listed(&dash).len(), 5);
}

#[test]
fn filter_applies_live_and_clears() {
    let table: &[(&str, &[&str])] = &[
        ("refund", &["r-30cc"]),
        ("status:failed", &["r-30cc"]),
        ("status:interrupted", &["r-40dd"]),
        ("status:done", &["r-20bb"]),
        ("scenario:checkout", &["r-10aa", "r-20bb", "r-50ee"]),
        ("scenario:checkout status:cancelled", &["r-50ee"]),
        ("MESSAGE limit", &["r-30cc"]),
        ("pinned", &["r-30cc"]),
        ("nothing-has-this", &[]),
    ];
    for (filter, ids) in table {
        let mut dash = with_history();
        dash.text("/").text(filter);
        assert_eq!(listed(&dash), *ids, "{filter}");
        dash.press("Enter");
        assert_eq!(listed(&dash), *ids, "{filter}");
        assert!(dash.screen().contains(filter), "the title names it:\n{}", dash.screen());
        dash.press("Esc");
        assert_eq!(listed(&dash).len(), 5);
        dash.text("/").text(filter).press("Esc");
        assert_eq!(listed(&dash).len(), 5, "Esc removes what is typed");
    }
}

#[test]
fn up_recalls_last_filter() {
    let mut dash = with_history();
    dash.press("/status:failed Enter / Backspace d Esc /");
    assert_eq!(dash.state.history.filter.status().map(|it| it.text), Some(""));
    assert_eq!(listed(&dash).len(), 5, "nothing is filtered yet");
    let screen = dash.screen();
    assert!(screen.contains("↑ recalls status:failed"), "{screen}");
    assert!(screen.contains("⏎ keep  Esc clear"), "{screen}");
    dash.press("Up");
    assert_eq!(listed(&dash), ["r-30cc"]);
}

#[test]
fn filter_covers_session_runs() {
    let mut dash = with_history();
    dash.run("r-7777", &ended()).text("q/status:done");
    assert_eq!(listed(&dash), ["r-7777", "r-20bb"]);
    dash.press("Esc /r-77");
    assert_eq!(listed(&dash), ["r-7777"]);
}

#[test]
fn o_sorts_by_the_next_value() {
    let mut dash = with_history();
    let table = [
        ("cost", ["r-50ee", "r-30cc", "r-10aa", "r-20bb", "r-40dd"]),
        ("tokens", ["r-50ee", "r-40dd", "r-30cc", "r-20bb", "r-10aa"]),
        ("time", ["r-50ee", "r-40dd", "r-30cc", "r-20bb", "r-10aa"]),
        ("status", ["r-40dd", "r-10aa", "r-30cc", "r-50ee", "r-20bb"]),
        ("newest", ["r-10aa", "r-20bb", "r-50ee", "r-30cc", "r-40dd"]),
    ];
    for (word, ids) in table {
        dash.text("o");
        assert_eq!(listed(&dash), ids, "{word}");
        assert_eq!(dash.screen().contains(&format!("by {word}")), word != "newest");
    }
}

#[test]
fn a_removed_run_is_brought_back() {
    let mut dash = with_history();
    dash.text("jX");
    assert!(matches!(&dash.asked()[..], [Effect::RemoveKept(run)] if run.as_str() == "r-20bb"));
    let rows: Vec<RunRow> =
        history().into_iter().filter(|row| row.id.as_str() != "r-20bb").collect();
    let run = RunId::new("r-20bb");
    dash.send(Msg::Kept { rows, wall_ms: NOW, change: Some(KeptChange::Removed(run.clone())) });
    assert!(dash.screen().contains("r-20bb removed; u brings it back"));
    assert_eq!(dash.state.home.run.as_ref().map(|id| id.as_str()), Some("r-30cc"));
    dash.text("u");
    assert!(matches!(&dash.asked()[..], [Effect::RestoreKept(run)] if run.as_str() == "r-20bb"));
    let change = Some(KeptChange::Restored(run.clone()));
    dash.send(Msg::Kept { rows: history(), wall_ms: NOW, change });
    assert!(dash.screen().contains("r-20bb is back"));
    assert_eq!(dash.state.home.run, Some(run));
    dash.text("u");
    assert!(dash.asked().is_empty(), "there is nothing more to bring back");
}

#[test]
fn keeps_running_and_session_runs() {
    let mut dash = with_history();
    dash.text("gX");
    assert!(dash.asked().is_empty());
    assert!(dash.screen().contains("r-10aa is still running in another process"));
    dash.run("r-7777", &ended()).text("q").asked();
    dash.text("gX");
    assert!(dash.asked().is_empty());
    assert!(dash.screen().contains("r-7777 belongs to this session"));
}

#[test]
fn p_pins_and_unpins() {
    let mut dash = with_history();
    dash.text("p");
    assert!(matches!(&dash.asked()[..], [Effect::PinKept { pinned: true, .. }]));
    dash.text("jjjp");
    assert!(matches!(&dash.asked()[..], [Effect::PinKept { pinned: false, .. }]));
}

#[test]
fn kept_run_opens_read_only() {
    let mut dash = with_history();
    dash.press("j Enter Esc");
    let (run, request) = opening(&mut dash);
    assert!(dash.screen().contains("○ READING"), "{}", dash.screen());
    assert!(dash.screen().contains("reading 58 events"), "{}", dash.screen());
    let events = ended();
    for chunk in events.chunks(7) {
        let (run, events) = (run.clone(), chunk.to_vec());
        dash.send(Msg::Opened { run, request, events });
    }
    dash.send(Msg::OpenedToEnd { run: run.clone(), request, problem: None });
    let screen = dash.screen();
    assert!(screen.contains("✓ DONE"), "{screen}");
    assert!(screen.contains("kept, 3h ago"), "{screen}");
    let page = dash.state.visible_run().expect("a page");
    assert_eq!(page.log().len(), events.len());
    assert!(!page.is_scrubbed());
    for key in ["s", "S", "f", "K", "B", "i", "m", "+", "!"] {
        dash.text(key);
        assert!(dash.asked().is_empty(), "{key}");
        assert!(dash.state.overlays.is_empty(), "{key}");
        assert!(dash.screen().contains("r-20bb is a kept run: nothing of it can be changed"));
    }
    // Looking works: the playhead moves, and Space leads back to the end.
    dash.text(",,");
    assert!(dash.state.visible_run().is_some_and(|page| page.is_scrubbed()));
    dash.press("Space");
    assert!(dash.state.visible_run().is_some_and(|page| !page.is_scrubbed()));
    assert_eq!(dash.state.next_tick().filter(|_| dash.state.notices.current().is_none()), None);
    // The events that were read stay.
    dash.text("q").asked();
    assert_eq!(dash.state.home.run, Some(run.clone()));
    dash.press("Enter");
    assert!(dash.asked().is_empty());
    assert_eq!(dash.state.screen, ActiveScreen::Run(run));
}

#[test]
fn interrupted_run_stops_its_clock() {
    let mut dash = with_history();
    dash.press("jjj Enter");
    let events = ended();
    answer_open(&mut dash, &events[..events.len() / 2]);
    let screen = dash.screen();
    assert!(screen.contains("◆ INTERRUPTED"), "{screen}");
    let last = events[events.len() / 2 - 1].at;
    let page = dash.state.visible_run().expect("a page");
    assert_eq!(page.time(dash.now * 100), last);
    assert!(!page.world().progress.is_live());
    dash.press("Space");
    assert!(dash.asked().is_empty());
}

#[test]
fn follows_run_of_another_process() {
    let mut dash = with_history();
    dash.press("g Enter");
    let effects = dash.asked();
    let Some(Effect::OpenKept { run, request, follows: true }) = effects.first() else {
        panic!("it is not followed: {effects:?}")
    };
    let (run, request, events) = (run.clone(), *request, ended());
    let (first, rest) = events.split_at(9);
    dash.send(Msg::Opened { run: run.clone(), request, events: first.to_vec() });
    assert!(dash.screen().contains("ELSEWHERE"), "{}", dash.screen());
    dash.text("K");
    assert!(dash.state.overlays.is_empty() && dash.asked().is_empty());
    dash.send(Msg::Opened { run: run.clone(), request, events: rest.to_vec() });
    dash.send(Msg::OpenedToEnd { run, request, problem: None });
    assert!(dash.screen().contains("✓ DONE"), "{}", dash.screen());
}

#[test]
fn home_reports_unreadable_log() {
    let mut dash = with_history();
    dash.press("Enter");
    let (run, request) = opening(&mut dash);
    let problem = Some("there is no such run".to_owned());
    dash.send(Msg::OpenedToEnd { run, request, problem });
    assert_eq!(dash.state.screen, ActiveScreen::Home);
    assert!(dash.screen().contains("r-10aa cannot be read: there is no such run"));
}

#[test]
fn opened_logs_stay_bounded() {
    let mut dash = Dash::new(120, 36);
    let large = |id: &str, hours| RunRow {
        bytes: 200 << 20,
        ..kept(id, hours, "checkout-launch", "Large", "success")
    };
    list(&mut dash, vec![large("r-1000", 1), large("r-2000", 2)]);
    dash.press("2 Enter");
    let (first, request) = opening(&mut dash);
    dash.press("qj Enter");
    assert_eq!(dash.state.opened.len(), 1, "both are larger than the limit");
    dash.send(Msg::Opened { run: first, request, events: ended() });
    assert!(dash.state.opened.iter().all(|page| page.log().is_empty()));
    let stops = |effect: &Effect| matches!(effect, Effect::StopReading(it) if *it == request);
    assert!(dash.asked().iter().any(stops), "reading stops for a closed page");
}

#[test]
fn lists_hundred_thousand_runs() {
    let mut dash = Dash::new(80, 24);
    let row = |nth: u64| kept(&format!("r-{nth:05}"), nth, "checkout-launch", "Many", "success");
    list(&mut dash, (0..100_000).map(row).map(|row| RunRow { started_ms: 0, ..row }).collect());
    dash.text("2G");
    assert!(dash.screen().contains("r-99999"));
    dash.text("/r-500 ");
    assert_eq!(dash.state.listed().len(), 100);
}
