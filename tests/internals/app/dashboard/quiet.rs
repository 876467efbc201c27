//! Idle costs nothing: what changes nothing draws nothing, and no timer runs while nothing moves.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Schedule;
use crate::log::event::{BoundaryId, Elapsed, Event, EventKind, RunId, Seq, SpanId};
use crate::screen::Msg;
use crate::screen::state::DisplaySettings;

use super::live;
use crate::support::screen::{Dash, facts, shipped};

#[test]
fn nothing_ticks_without_live_run() {
    let mut dash = Dash::new(120, 36);
    assert_eq!(dash.state.next_tick(), None);
    dash.run("r-0001", &facts("checkout-launch", &[], &[], Schedule::default()));
    assert_eq!(dash.state.next_tick(), None);
    dash.text("q");
    assert_eq!(dash.state.next_tick(), None);
    assert!(!dash.send(Msg::Tick).redraw, "a late tick draws nothing");
}

#[test]
fn what_changes_nothing_draws_nothing() {
    let mut dash = Dash::new(120, 36);
    assert!(!dash.send(Msg::Resize { cols: 120, rows: 36 }).redraw, "the same size");
    for key in ["F7", "Esc", "Insert"] {
        assert!(!dash.press(key).redraw, "{key}");
    }
    let run = RunId::new("r-9999");
    assert!(!dash.send(Msg::Events { run: run.clone(), events: live() }).redraw, "a run not known");
    assert!(!dash.send(Msg::Session(Vec::new())).redraw);
    dash.run("r-0001", &live()).run("r-0002", &live());
    let run = RunId::new("r-0001");
    assert!(!dash.send(Msg::Events { run, events: live() }).redraw, "not the run on the screen");
    let run = RunId::new("r-0002");
    assert!(dash.send(Msg::Events { run, events: live() }).redraw);
}

#[test]
fn live_run_ticks_spinner_or_clock() {
    const SECOND: Duration = Duration::from_secs(1);
    let tick = |animation, keys: &str| {
        let settings = DisplaySettings { animation, ..DisplaySettings::default() };
        let mut dash = Dash::over(120, 36, shipped(), settings);
        dash.run("r-0001", &live()).text(keys);
        let wait = dash.state.next_tick().expect("it is live");
        dash.after(wait).send(Msg::Tick);
        assert!(dash.redraw);
        dash.state.next_tick().expect("it is live still")
    };
    let spins = tick(true, "").as_millis();
    assert!((100..=125).contains(&spins), "eight to ten times a second, not {spins} ms");
    assert_eq!(tick(false, ""), SECOND);
    assert_eq!(tick(true, "q"), SECOND, "on the first screen only the clock moves");
    assert_eq!(tick(false, "q"), SECOND);
}

#[test]
fn pending_filter_leaves_home_idle() {
    let mut dash = Dash::new(120, 36);
    let ended = facts("checkout-launch", &[], &[], Schedule::default());
    dash.run("r-0001", &ended).press("/round q Esc Esc");
    dash.text("q");
    assert_eq!(dash.state.next_tick(), None);
}

#[test]
fn a_paused_run_stands_still() {
    let mut dash = Dash::new(120, 36);
    let mut events = live();
    let at = vec![BoundaryId::new("round:2")];
    let kind = EventKind::Paused { at };
    let seq = Seq(events.len() as u64);
    events.push(Arc::new(Event { seq, at: Elapsed(3_000_000), span: SpanId::RUN, kind }));
    dash.run("r-0001", &events);
    assert_eq!(dash.state.next_tick(), None);
    dash.text("q");
    assert_eq!(dash.state.next_tick(), None);
    let before = dash.screen();
    dash.after(Duration::from_secs(90));
    dash.state.now = dash.now;
    assert_eq!(dash.screen(), before, "its clock stands");
}

#[test]
fn tiny_screen_never_ticks() {
    let mut dash = Dash::new(120, 36);
    dash.run("r-0001", &live()).send(Msg::Resize { cols: 40, rows: 10 });
    assert_eq!(dash.state.next_tick(), None);
    assert!(dash.screen().contains("run r-0001 continues"));
}

#[test]
fn good_news_goes_by_itself_once() {
    let mut dash = Dash::new(120, 36);
    dash.send(Msg::Notice("Wrote r-0001.jsonl".to_owned()));
    let wait = dash.state.next_tick().expect("it goes");
    dash.after(wait).send(Msg::Tick);
    assert!(dash.redraw, "it has gone");
    assert_eq!(dash.state.next_tick(), None);
    assert!(!dash.screen().contains("Wrote"));
}

#[test]
fn failures_stay_until_dismissed() {
    let mut dash = Dash::new(120, 36);
    for what in ["copy", "export"] {
        dash.send(Msg::EffectFailed { what, text: "the disk is full".to_owned() });
    }
    let screen = dash.screen();
    assert!(screen.contains("! export: the disk is full  1 more, Esc"), "{screen}");
    dash.press("Esc");
    assert!(dash.screen().contains("! copy: the disk is full"));
}

#[test]
fn hostile_text_never_reaches_the_terminal() {
    let mut dash = Dash::new(120, 36);
    dash.send(Msg::Notice("\u{1b}]0;gone\u{7}\u{202e}x\u{9b}2J".to_owned()));
    dash.run("r-\u{1b}[31m", &live()).text("q");
    for size in [(60, 16), (120, 36), (30, 8)] {
        dash.send(Msg::Resize { cols: size.0, rows: size.1 });
        let buf = dash.draw();
        for cell in buf.content() {
            assert!(
                !cell.symbol().chars().any(crate::base::visible::is_hostile),
                "{:?}",
                cell.symbol()
            );
        }
    }
}

#[test]
fn long_notice_takes_status_row() {
    let row = |dash: &Dash| dash.screen().lines().rev().nth(1).expect("a row").to_owned();
    let mut dash = Dash::new(80, 24);
    dash.run("r-7f3a", &live()).text("q");
    dash.send(Msg::Notice("short".to_owned()));
    assert!(
        row(&dash).contains("runs of this session")
            && row(&dash).contains("0 stopped")
            && row(&dash).ends_with("short"),
        "{}",
        row(&dash)
    );
    for long in [45, 78] {
        let text = "x".repeat(long);
        dash.send(Msg::Notice(text.clone()));
        dash.after(std::time::Duration::from_secs(7)).send(Msg::Notice(text.clone()));
        assert!(row(&dash).contains(&text), "{}", row(&dash));
        assert_eq!(row(&dash).contains("live"), long == 45, "{}", row(&dash));
    }
    dash.after(std::time::Duration::from_secs(7)).send(Msg::Notice("x".repeat(90)));
    assert!(row(&dash).ends_with('…'), "{}", row(&dash));
}
