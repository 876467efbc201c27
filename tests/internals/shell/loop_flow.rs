//! The dashboard's loop, whole: when it draws, when it does not, and how it gives the terminal
//! away. Time is paused, so every figure here is exact.

use std::time::Duration;

use crate::engine::RunHandle;
use crate::log::bus::LogLimits;
use crate::log::event::{Command, EventKind, Initiator, SpanId, StopReason};
use crate::support::console::{Person, scenario};
use crate::terminal::event_loop::{FRAME, KEPT_EVENTS, KEY_FRAME};
use crate::terminal::signals::ProcessSignal;
use crossterm::event::KeyCode;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn unchanged_screen_is_not_redrawn() {
    let mut person = Person::at(120, 36);
    person.sees("checkout-launch").await;
    let quiet = person.settles().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(person.now().frames, quiet.frames, "an hour, and not a frame");

    person.starts(scenario("checkout-unanimous", &[]), true);
    person.sees_that("the run's page", |seen| !seen.text.contains("checkout-launch")).await;
    let quiet = person.settles().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(person.now().frames, quiet.frames, "nor for a run that has ended");
}

#[tokio::test(start_paused = true)]
async fn key_redraws_quiet_screen_at_once() {
    let mut person = Person::at(120, 36);
    person.sees("checkout-launch").await;
    let before = person.settles().await;
    let pressed = Instant::now();
    person.key(KeyCode::Char('?'));
    let seen = person.sees_that("the help", |seen| seen.changes > before.changes).await;
    assert_eq!(seen.at, pressed, "no time passes between the key and its frame");
}

async fn first_run(person: &Person) -> RunHandle {
    loop {
        match person.services.engine.runs().pop() {
            Some(run) => break run,
            None => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn event_flood_keeps_keys_responsive() {
    let mut person = Person::at(120, 36);
    person.starts(scenario("checkout-launch", &["budget.max_seconds=86400"]), false);
    let run = first_run(&person).await;
    run.send(Command::Pause { by: Initiator::You });
    person.sees("PAUSED").await;
    let before = person.settles().await;
    let started = Instant::now();
    let mut answered = None;
    // 100 facts a millisecond, for two seconds.
    for millisecond in 0..2000_u64 {
        for _ in 0..100 {
            run.bus().publish(SpanId::RUN, EventKind::Warning { text: "flood".to_owned() });
        }
        if millisecond == 1000 {
            person.key(KeyCode::Char('?'));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        if millisecond >= 1000 && answered.is_none() && person.now().text.contains("search") {
            answered = Some(person.now().at - started - Duration::from_millis(1000));
        }
    }
    let frames = person.now().frames - before.frames;
    let most = (started.elapsed().as_secs_f64() * 30.0).ceil() as u64 + 1;
    assert!(frames <= most, "{frames} frames in {:?}", started.elapsed());
    assert!(frames >= most / 2, "{frames} frames: the screen does follow");
    let answered = answered.expect("the key was answered during the flood");
    assert!(answered <= KEY_FRAME, "after {answered:?}");

    person.settles().await;
    person.told(ProcessSignal::End(143));
    let ending = person.ends().await.expect("an end");
    let world = ending.state.runs[0].world();
    assert!(world.tally.events > 200_000, "{} facts: none is lost", world.tally.events);
}

/// The log has let go of what the loop reads: the last of it is shown all the same.
#[tokio::test(start_paused = true)]
async fn lagging_page_shows_latest_events() {
    let mut person = Person::at(120, 36);
    person.starts(scenario("checkout-launch", &["budget.max_seconds=86400"]), false);
    let run = first_run(&person).await;
    run.send(Command::Pause { by: Initiator::You });
    person.sees("PAUSED").await;
    run.bus().set_limits(LogLimits { window: 64 << 10, ahead: u64::MAX / 2 });
    for _ in 0..3 * KEPT_EVENTS {
        run.bus().publish(SpanId::RUN, EventKind::Warning { text: "flood".to_owned() });
    }
    assert!(run.bus().first_seq().0 > 2 * KEPT_EVENTS, "the log has let go of most of them");
    person.settles().await;
    person.told(ProcessSignal::End(143));
    let ending = person.ends().await.expect("an end");
    let log = ending.state.runs[0].log();
    let held = (log.len() - log.dropped_count()) as u64;
    assert!((KEPT_EVENTS..2 * KEPT_EVENTS).contains(&held), "{held} events are held");
}

/// A key that is held down repeats faster than frames are drawn.
#[tokio::test(start_paused = true)]
async fn held_key_draws_bounded_frames() {
    let mut person = Person::at(120, 36);
    person.sees("checkout-launch").await;
    let before = person.settles().await;
    let started = Instant::now();
    for press in 0..1_000 {
        person.key(if press % 2 == 0 { KeyCode::Down } else { KeyCode::Up });
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let frames = person.now().frames - before.frames;
    // An early frame and one in time, in turns.
    let most = started.elapsed().as_nanos() / (FRAME + KEY_FRAME).as_nanos() * 2 + 2;
    assert!(u128::from(frames) <= most, "{frames} frames, at most {most}");
    assert!(u128::from(frames) >= most / 2, "{frames} frames: the screen does follow");
}

#[tokio::test(start_paused = true)]
async fn stalled_link_skips_frames_not_keys() {
    let mut person = Person::at(120, 36);
    person.sees("checkout-launch").await;
    let before = person.settles().await;
    person.stall(true);
    person.key(KeyCode::Down);
    person.sees_that("one more frame", |seen| seen.frames == before.frames + 1).await;
    person.key(KeyCode::Char('?'));
    person.key(KeyCode::Esc);
    person.key(KeyCode::Char('?'));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(person.now().frames, before.frames + 1, "none while one is on its way");
    person.stall(false);
    let after = person.sees_that("the frame", |seen| seen.frames > before.frames + 1).await;
    assert!(after.text.contains("Help"), "the latest, not the next:\n{}", after.text);
    assert_eq!(person.settles().await.frames, before.frames + 2, "one, not three");
}

#[tokio::test(start_paused = true)]
async fn suspend_holds_runs_and_restores_terminal() {
    let mut person = Person::at(120, 36);
    person.sees("checkout-launch").await;
    person.starts(scenario("checkout-launch", &["budget.max_seconds=100"]), false);
    person.sees("LIVE").await;
    person.deeds.lock().expect("a lock").clear();
    person.ctrl('z');
    while !person.deeds.lock().expect("a lock").contains(&"enter") {
        tokio::task::yield_now().await;
    }
    let deeds = person.deeds.lock().expect("a lock").clone();
    assert_eq!(deeds, ["keys are let go", "leave", "stop", "enter"]);
    person.sees("DONE").await;
    person.told(ProcessSignal::End(143));
    let ending = person.ends().await.expect("an end");
    let log = ending.state.runs[0].log();
    let held = log.iter().position(|event| {
        event.kind == EventKind::Pausing { by: Initiator::Suspend, at_round: false }
    });
    let resumed = log
        .iter()
        .position(|event| matches!(event.kind, EventKind::Resumed { by: Initiator::Suspend, .. }));
    assert!(held.is_some() && held < resumed, "the run was held while the program was away");
}

#[tokio::test(start_paused = true)]
async fn signal_ends_program_and_runs() {
    let mut person = Person::at(120, 36);
    person.starts(scenario("checkout-launch", &[]), false);
    person.sees("LIVE").await;
    let services = person.services.clone();
    person.told(ProcessSignal::End(143));
    let ending = person.ends().await.expect("an end");
    assert_eq!(ending.code, 143);
    assert_eq!(services.engine.in_flight(), 0);
    let closed = ending.state.runs[0].world().progress.closed.clone().expect("folded to its end");
    assert_eq!(closed.reason, StopReason::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn lost_terminal_ends_program() {
    let mut person = Person::at(120, 36);
    person.sees("checkout-launch").await;
    person.hang_up();
    person.key(KeyCode::Down);
    assert!(person.ends().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn another_size_is_drawn_whole() {
    let mut person = Person::at(120, 36);
    person.sees("checkout-launch").await;
    person.resize(20, 3);
    person.sees("20x3").await;
    person.resize(100, 30);
    let seen = person.sees("checkout-launch").await;
    assert_eq!(seen.text.lines().count(), 30);
    assert!(seen.text.lines().all(|line| line.chars().count() <= 100));
}

#[tokio::test(start_paused = true)]
async fn clock_ticks_despite_other_runs() {
    let mut person = Person::at(120, 36);
    person.starts(scenario("checkout-launch", &[]), false);
    person.sees("LIVE").await;
    let other = person.services.engine.runs()[0].clone();
    other.send(Command::Pause { by: Initiator::You });
    person.sees("PAUSED").await;
    // No seat of the new run replies for a minute.
    let silent = [0, 1, 2].map(|row| format!("script[{row}].latency=\"60s\""));
    let silent: Vec<&str> = silent.iter().map(String::as_str).collect();
    person.starts(scenario("checkout-unanimous", &silent), false);
    person.sees("a clear go").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = person.now();
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(40)).await;
        other.bus().publish(SpanId::RUN, EventKind::Warning { text: "elsewhere".to_owned() });
    }
    let frames = person.now().frames - before.frames;
    assert!(frames >= 3, "{frames} frames in 400 ms: the spinner stands still");
}
