//! A run that a runner of a cluster plays: who plays it, what came after a lost connection, and where its
//! whole log is.

use crate::log::event::{Elapsed, RunId, Seq};
use crate::log::world::run_row::{RunRow, RunStatus};
use crate::screen::Msg;
use crate::screen::effect::Effect;
use crate::screen::run::origin::{AwayTime, RemoteRun};
use crate::support::screen::{Dash, styles};
use crate::support::{facts, table};

const RUN: &str = "r-0a0a";

fn remote() -> RemoteRun {
    RemoteRun { runner: "ann-7".to_owned(), epoch: 1_203, is_reached: true, ..RemoteRun::default() }
}

/// A run on the screen, on a runner.
fn watched(cols: u16, rows: u16, remote: RemoteRun) -> Dash {
    let mut dash = Dash::new(cols, rows);
    let log = facts::decided().log;
    dash.run(RUN, &log);
    dash.send(Msg::Remote { run: RunId::new(RUN), remote: Box::new(remote) });
    dash
}

/// The last two rows above the hints: the scrubber.
fn scrubber(dash: &Dash) -> String {
    let screen = dash.screen();
    let lines: Vec<&str> = screen.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.iter().rev().take(4).copied().collect::<Vec<_>>().join("\n")
}

#[test]
fn scrubber_marks_events_missed_offline() {
    let mut lost = remote();
    let log = facts::decided().log;
    let (from, until) = (log[log.len() / 3].at, log[log.len() / 2].at);
    lost.note_away(AwayTime { from, until, events: 12 });
    for (cols, rows) in [(80, 24), (120, 36), (200, 50)] {
        let dash = watched(cols, rows, lost.clone());
        assert!(scrubber(&dash).contains("12 events while away"), "{}", dash.screen());
        let screen = dash.screen();
        assert!(screen.contains("on ann-7"), "{screen}");
        // A narrow screen has no room for the epoch.
        assert!(cols < 120 || screen.contains("#1203"), "{screen}");
        // The columns of that time differ from the rest in their colour too.
        let plain = watched(cols, rows, remote());
        assert_ne!(styles(&dash.draw()), styles(&plain.draw()));
        assert!(!scrubber(&plain).contains("while away"));
    }
}

#[test]
fn keeps_only_recent_offline_times() {
    let mut many = remote();
    for at in 0..20 {
        many.note_away(AwayTime { from: Elapsed(at), until: Elapsed(at), events: at });
    }
    let kept: Vec<u64> = many.away.iter().map(|away| away.events).collect();
    assert_eq!(kept, (12..20).collect::<Vec<_>>());
}

#[test]
fn reads_dropped_events_from_cluster() {
    let mut dash = watched(120, 36, remote());
    let before = Seq(dash.state.visible_run().expect("a run").log().len() as u64 / 2);
    dash.send(Msg::EventsDropped { run: RunId::new(RUN), before });
    dash.text("5L");
    dash.asked();
    dash.text("gk");
    let asked = dash.asked();
    let reads =
        |effect: &Effect| matches!(effect, Effect::OpenKept { run, .. } if *run == RunId::new(RUN));
    assert!(asked.iter().any(reads), "{asked:?}");
    let said = dash.state.notices.current().map(|notice| notice.text.clone()).unwrap_or_default();
    assert!(said.contains("from the cluster"), "{said}");
}

#[test]
fn shows_whole_cluster_run_ids() {
    let row = |id: &str| RunRow {
        title: "Nested swarm: a diagnosis inside an incident".into(),
        runner: Some("ann-laptop-4711".into()),
        ..RunRow::begun(RunId::new(id))
    };
    for (cols, rows) in [(80, 24), (120, 36), (200, 50)] {
        let mut dash = Dash::new(cols, rows);
        let listed = vec![row("r-00ad92fe"), row("r-431b34e1")];
        dash.send(Msg::Kept { rows: listed, wall_ms: 3_000, change: None });
        dash.text("2");
        let screen = dash.screen();
        assert!(screen.contains(" r-00ad92fe ") && screen.contains(" r-431b34e1 "), "{screen}");
        assert!(screen.contains("2 runs") && !screen.contains("kept"), "{screen}");
    }
}

#[test]
fn long_title_leaves_room_for_runner() {
    let long = RemoteRun { runner: "ann-laptop-4711".to_owned(), ..remote() };
    let dash = watched(80, 24, long.clone());
    assert!(dash.screen().contains("on ann-la…-4711"), "{}", dash.screen());
    // What has no room beside it is the progress of the run, which the other rows show too.
    let log = std::thread::spawn(|| table::shipped_log("dev-team")).join().expect("a log");
    let mut dash = Dash::new(80, 24);
    dash.run(RUN, &log);
    dash.send(Msg::Remote { run: RunId::new(RUN), remote: Box::new(long) });
    let screen = dash.screen();
    assert!(screen.contains("on ann-la…-4711") && screen.contains("scripted"), "{screen}");
}

/// A run that another process of this user plays; the last events are not sent yet.
fn of_process(cols: u16, rows: u16, whole: bool) -> Dash {
    let mut dash = Dash::new(cols, rows);
    let log = facts::decided().log;
    let sent = if whole { log.len() } else { log.len() - 1 };
    let (run, zero) = (RunId::new(RUN), std::time::Duration::ZERO);
    dash.send(Msg::Followed { run, zero, launch: None });
    dash.send(Msg::Events { run: RunId::new(RUN), events: log[..sent].to_vec() });
    let remote = RemoteRun { pid: Some(4_711), is_reached: true, ..RemoteRun::default() };
    dash.send(Msg::Remote { run: RunId::new(RUN), remote: Box::new(remote) });
    dash
}

/// A run of another process is listed and not opened. When its process is gone, the store says what became of
/// it, also if the end of the run was not received.
#[test]
fn lost_process_leaves_what_is_stored() {
    let said = |dash: &Dash| dash.state.notices.current().map(|it| it.text.clone());
    let ended = || RunStatus::Ended("success".to_owned());
    for (whole, has_ended, status, notice) in [
        (true, true, ended(), None),
        // The end was received, and is not on the page yet.
        (false, true, ended(), None),
        (false, false, ended(), None),
        (
            false,
            false,
            RunStatus::Interrupted,
            Some("r-0a0a was interrupted: its process has ended."),
        ),
    ] {
        for shown in [false, true] {
            let mut dash = of_process(120, 36, whole);
            assert!(dash.state.visible_run().is_none(), "it is not opened");
            assert!(dash.screen().contains("r-0a0a"), "{}", dash.screen());
            if shown {
                dash.text("2").press("Enter");
                assert!(dash.screen().contains("process 4711"), "{}", dash.screen());
            }
            let row = RunRow { status: status.clone(), ..RunRow::begun(RunId::new(RUN)) };
            dash.send(Msg::Kept { rows: vec![row], wall_ms: 3_000, change: None });
            dash.asked();
            dash.send(Msg::FollowEnded { run: RunId::new(RUN), has_ended });
            assert_eq!(said(&dash).as_deref(), notice, "{status:?}");
            let reads = |effect: &Effect| matches!(effect, Effect::OpenKept { .. });
            assert_eq!(dash.asked().iter().any(reads), shown && !has_ended, "{status:?}");
            assert_eq!(dash.state.visible_run().is_some(), shown);
            // The page that is shown stays; the others are rows of the store.
            let stays = dash.state.runs.iter().any(|page| *page.id() == RunId::new(RUN));
            assert_eq!(stays, shown && has_ended, "{status:?}");
        }
    }
}
