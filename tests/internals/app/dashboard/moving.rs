//! Moving through a run and between runs: marks, levels of events, the next run, pausing them all.

use std::sync::Arc;

use crate::engine::Schedule;
use crate::log::event::{Command, Event, EventKind};
use crate::screen::Effect;
use crate::screen::run::RunPage;

use crate::support::screen::{Dash, facts, until};

fn table() -> Vec<Arc<Event>> {
    facts("checkout-launch", &[], &[], Schedule::default())
}

fn shown(dash: &Dash) -> &RunPage {
    dash.state.visible_run().expect("a run is shown")
}

fn kind_at_playhead(dash: &Dash) -> String {
    let page = shown(dash);
    page.log()
        .get(page.shown_event_count() - 1)
        .map_or_else(String::new, |event| event.kind.name().to_owned())
}

#[test]
fn playhead_jumps_between_marks() {
    let mut dash = Dash::new(120, 36);
    dash.run("r-1", &table());
    let mut kinds = Vec::new();
    // More often than there are marks.
    for _ in 0..40 {
        dash.text("<");
        kinds.push(kind_at_playhead(&dash));
    }
    kinds.dedup();
    assert_eq!(kinds.last(), Some(&"round.started".to_owned()), "{kinds:?}");
    assert!(kinds.iter().any(|kind| kind == "call.retried"), "{kinds:?}");
    assert!(!kinds.iter().any(|kind| kind == "attempt.started"), "{kinds:?}");
    assert!(dash.screen().contains("There is no mark before this moment."), "{}", dash.screen());
    let back = shown(&dash).shown_event_count();
    let first = until(&table(), |kind| kind.name() == "round.started");
    assert_eq!(back, first, "the first mark is that of the first round");
    dash.text(">");
    assert!(shown(&dash).shown_event_count() > back);
    for _ in 0..40 {
        dash.text(">");
    }
    assert!(!shown(&dash).is_scrubbed(), "behind the last mark is the end");
}

#[test]
fn lists_notable_events_by_default() {
    let mut dash = Dash::new(120, 36);
    let log = table();
    dash.run("r-1", &log).text("5");
    let listed = |dash: &Dash| shown(dash).list().len(shown(dash).log());
    let notable = log.iter().filter(|event| event.kind.is_notable()).count();
    assert!(notable < log.len() / 2);
    assert_eq!(listed(&dash), notable);
    assert!(!dash.screen().contains("attempt.answered"), "{}", dash.screen());
    dash.text("L");
    assert_eq!(listed(&dash), log.len());
    assert!(dash.screen().contains("attempt.answered"), "{}", dash.screen());
    dash.text("L");
    assert_eq!(listed(&dash), notable);
    // A filter searches all events, and goes back to the level.
    let started = log.iter().filter(|event| matches!(event.kind, EventKind::AttemptStarted { .. }));
    dash.press("/attempt.started Enter");
    assert_eq!(listed(&dash), started.count());
    dash.press("Esc");
    assert_eq!(listed(&dash), notable);
}

/// The target of a jump is always listed.
#[test]
fn jump_to_hidden_event_lists_all() {
    let mut dash = Dash::new(120, 36);
    let log = table();
    dash.run("r-1", &log).press("/call.retried Enter c");
    let page = shown(&dash);
    let cause = page.list().cursor().and_then(|place| page.log().get(place));
    assert!(cause.is_some_and(|event| matches!(event.kind, EventKind::AttemptFailed(_))));
    assert_eq!(page.list().len(page.log()), log.len());
}

#[test]
fn brackets_switch_runs() {
    let mut dash = Dash::new(120, 36);
    for run in ["r-1", "r-2", "r-3"] {
        dash.run(run, &table());
    }
    let here = |dash: &Dash| shown(dash).id().as_str().to_owned();
    assert_eq!(here(&dash), "r-3");
    let mut seen = vec![here(&dash)];
    for key in ["[", "[", "[", "]", "]", "]", "]"] {
        dash.text(key);
        seen.push(here(&dash));
    }
    seen.dedup();
    assert_eq!(seen, ["r-3", "r-2", "r-1", "r-2", "r-3"]);
    assert!(dash.screen().contains("This is the first run of the list."), "{}", dash.screen());
}

#[test]
fn one_key_pauses_and_resumes_all() {
    let mut dash = Dash::new(120, 36);
    let mut log = table();
    log.truncate(until(&log, |kind| matches!(kind, EventKind::CallAnswered { .. })));
    dash.run("r-1", &log).run("r-2", &table()).run("r-3", &log).text("q");
    dash.asked();
    dash.text("P");
    let paused = |effect: &Effect| match effect {
        Effect::Command { run, command: Command::Pause { .. } } => run.as_str().to_owned(),
        other => panic!("{other:?}"),
    };
    let mut runs: Vec<String> = dash.asked().iter().map(paused).collect();
    runs.sort();
    assert_eq!(runs, ["r-1", "r-3"]);
    assert!(dash.screen().contains("2 runs pause at their next boundaries."), "{}", dash.screen());
}

#[test]
fn the_scenarios_are_filtered_by_words() {
    let mut dash = Dash::new(120, 36);
    let all = dash.state.scenarios.len();
    let listed = |dash: &Dash| dash.state.home.lines(&dash.state.scenarios).entries().len();
    dash.text("/ping");
    assert!((1..all).contains(&listed(&dash)), "{}", listed(&dash));
    let selected = dash.state.home.selected_scenario(&dash.state.scenarios);
    assert_eq!(selected.map(|entry| entry.name.as_str()), Some("ping-pong"));
    assert!(dash.screen().contains("filter: ping"), "{}", dash.screen());
    dash.press("xyz Enter");
    assert_eq!(listed(&dash), 0);
    assert!(dash.screen().contains("No scenario matches the filter."), "{}", dash.screen());
    // Nothing is started that is not listed.
    dash.asked();
    dash.press("Enter");
    assert!(dash.asked().is_empty());
    dash.press("Esc");
    assert_eq!(listed(&dash), all);
}

/// What a drawer changes stays in sight: the page is laid out in the rows above it.
#[test]
fn drawer_leaves_run_visible() {
    for (cols, rows) in [(60, 16), (80, 24), (120, 36), (200, 50)] {
        let mut dash = Dash::new(cols, rows);
        let mut log = table();
        log.truncate(until(&log, |kind| matches!(kind, EventKind::CallAnswered { .. })));
        dash.run("r-1", &log).text("f");
        let screen = dash.screen();
        let lines: Vec<&str> = screen.lines().collect();
        let drawer = lines.iter().position(|line| line.contains("Flags of r-1")).expect("a drawer");
        assert!(drawer >= usize::from(rows) / 2, "{screen}");
        assert!(lines[drawer].starts_with('╔'), "{screen}");
        let above = lines[..drawer].join("\n");
        assert!(above.contains("_analyst"), "{cols}x{rows}\n{screen}");
        assert!(screen.contains("legal_analyst"), "{screen}");
        // The page ends above the drawer: its scrubber is there, where it has one.
        if rows >= 24 {
            assert!(lines[drawer - 2].starts_with(" 00:00"), "{screen}");
            assert!(lines[drawer - 1].contains("now"), "{screen}");
        }
    }
}
