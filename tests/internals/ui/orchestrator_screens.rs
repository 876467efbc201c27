//! What an orchestrator's run looks like: snapshots of text and styles at three sizes.

use super::sizes_of;
use super::tools_screens::dash;
use crate::log::event::{BoundaryId, EventKind, Initiator, SpanId, World};
use crate::screen::state::DisplaySettings;
use crate::support::facts::tools;
use crate::support::facts::tools::ToolFacts;
use crate::support::screen::{Dash, shipped};
use crate::words::sentence::sentence;

fn pictures_of(name: &str, facts: &ToolFacts) {
    for &(cols, rows) in sizes_of(name) {
        insta::assert_snapshot!(format!("{name}_{cols}x{rows}"), dash(cols, rows, facts).dump());
    }
}

#[test]
fn pictures() {
    pictures_of("working", &tools::working());
    pictures_of("reported", &tools::reported());
    insta::assert_snapshot!("critical_120x36", dash(120, 36, &tools::critical()).screen());
}

#[test]
fn each_pane_alone() {
    for (pane, name) in [(2, "task"), (3, "results"), (4, "slots"), (5, "events")] {
        let mut dash = dash(80, 24, &tools::working());
        dash.text(&pane.to_string());
        insta::assert_snapshot!(format!("pane_{name}_80x24"), dash.screen());
    }
}

#[test]
fn a_selected_task_whole() {
    let mut dash = dash(120, 36, &tools::reported());
    dash.text("gjjj");
    insta::assert_snapshot!("selected_120x36", dash.dump());
    dash.press("Enter");
    insta::assert_snapshot!("inspected_120x36", dash.screen());
    dash.text("4");
    insta::assert_snapshot!("inspected_timing_120x36", dash.screen());
}

#[test]
fn draws_empty_and_overflowing_plans() {
    let facts = ToolFacts::orchestrator(4);
    insta::assert_snapshot!("waiting_120x36", dash(120, 36, &facts).screen());
    insta::assert_snapshot!("many_120x36", dash(120, 36, &tools::many(400)).screen());
}

#[test]
fn paused_before_a_dispatch() {
    let mut facts = ToolFacts::orchestrator(8);
    facts.plan(tools::story()).place(0).place(1);
    facts.add(SpanId::RUN, EventKind::Pausing { by: Initiator::You, at_round: false });
    let at = vec![BoundaryId::new("dispatch:1:t1"), BoundaryId::new("dispatch:1:t2")];
    facts.add(SpanId::RUN, EventKind::Paused { at });
    let screen = dash(120, 36, &facts).screen();
    let notice = "paused before t1, attempt 1 and 1 more";
    assert!(screen.contains(notice), "{screen}");
    assert!(screen.contains("paused before attempt 1"), "{screen}");
    // A paused run does not change with the clock.
    let mut later = dash(120, 36, &facts);
    later.after(std::time::Duration::from_secs(30));
    let pane =
        |screen: &str| screen.lines().skip(2).take(10).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(pane(&later.screen()), pane(&screen));
}

/// One of two slots is free: the tasks wait for the run.
#[test]
fn tasks_wait_for_paused_run() {
    let mut facts = ToolFacts::orchestrator(8);
    facts.plan(tools::story()).place(0);
    facts.add(SpanId::RUN, EventKind::Pausing { by: Initiator::You, at_round: false });
    let at = vec![BoundaryId::new("dispatch:1:t1")];
    facts.add(SpanId::RUN, EventKind::Paused { at });
    let screen = dash(120, 36, &facts).screen();
    assert!(screen.contains("waiting until the run continues"), "{screen}");
    assert!(!screen.contains("for a slot"), "{screen}");
}

#[test]
fn ascii_screen_is_all_ascii() {
    let settings = DisplaySettings { ascii: true, ..DisplaySettings::default() };
    let mut dash = Dash::over(120, 36, shipped(), settings);
    dash.run("r-81c2", &tools::working().log);
    let screen = dash.screen();
    assert!(screen.is_ascii(), "{screen}");
    insta::assert_snapshot!("ascii_120x36", screen);
}

#[test]
fn switch_preview_names_workers() {
    let mut dash = dash(120, 36, &tools::working());
    dash.text("f");
    let screen = dash.screen();
    assert!(screen.contains("weather_worker switched off"), "{screen}");
    assert!(!screen.contains("required task failed"), "the weather is not critical: {screen}");
}

#[test]
fn plan_sentence_names_every_task() {
    let log = tools::many(20).log;
    let world = World::from_events(log.iter().map(|event| &**event));
    let lines = log.iter().map(|event| sentence(event, &world)).filter(|it| it.brief.is_some());
    let plan = lines.map(|it| it.line()).next().expect("a plan");
    assert!(plan.contains("20 tasks: task_1 ") && plan.contains("task_20 "), "{plan}");
}
