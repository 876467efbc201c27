//! The flags drawer: requested changes, changes in effect, and the effect of a switch.

use std::sync::Arc;

use crate::engine::Schedule;
use crate::log::event::{
    BoundaryId, Command, Elapsed, Event, EventKind, Initiator, RunId, Seq, SpanId, World,
};
use crate::log::facts::PatternFact;
use crate::log::facts::collaboration::{CollaborationFact, SeatStatus};
use crate::screen::keymap::Context;
use crate::screen::windows::flags::what_would_change;
use crate::screen::{Effect, Msg};

use super::started;
use crate::support::screen::{Dash, facts, until};

const FLAG: &str = "legal_analyst";

/// A run of checkout-launch up to the first fact that is so.
fn upto(sets: &[&str], flags: &[(&str, bool)], so: impl Fn(&EventKind) -> bool) -> Vec<Arc<Event>> {
    let mut events = facts("checkout-launch", sets, flags, Schedule::default());
    let end = until(&events, so);
    events.truncate(end);
    events
}

fn world(events: &[Arc<Event>]) -> World {
    World::from_events(events.iter().map(|event| &**event))
}

/// The world with one more fact at its end.
fn then(events: &[Arc<Event>], kind: EventKind) -> World {
    let mut world = world(events);
    world.apply(&Event {
        seq: world.progress.next,
        at: world.progress.at,
        span: SpanId::RUN,
        kind,
    });
    world
}

fn closed(round: u32) -> impl Fn(&EventKind) -> bool {
    move |kind| matches!(kind, EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundClosed { round: it, .. })) if *it == round)
}

fn said(world: &World, on: bool) -> String {
    what_would_change(world, &FLAG.into(), on).join("\n")
}

fn key_row(dash: &Dash) -> String {
    dash.screen().lines().last().expect("a key row").to_owned()
}

#[test]
fn before_the_first_round() {
    let events = upto(&[], &[], |kind| matches!(kind, EventKind::RunStarted(_)));
    assert_eq!(
        said(&world(&events), true),
        "Takes effect at round 1.\nlegal_analyst joins at round 1.\nThen 4 seats, messages left 12 \
         of 12 before they speak."
    );
}

#[test]
fn flag_waits_for_next_round() {
    // Every seat of round 2 has been asked, so its boundaries are behind.
    let mut calls = 0;
    let events = facts("checkout-launch", &[], &[], Schedule::default());
    let end = events
        .iter()
        .position(|event| {
            calls += usize::from(matches!(event.kind, EventKind::CallStarted(_)));
            calls == 6
        })
        .expect("six calls");
    assert_eq!(
        said(&world(&events[..=end]), true),
        "Takes effect at round 3, or at the final answer.\nlegal_analyst joins at round 3 unless round 2 \
         decides.\nThen 4 seats, messages left 6 of 12 before they speak."
    );
}

#[test]
fn switch_takes_effect_before_next_seat() {
    let events = upto(&[], &[], started(2));
    assert!(
        said(&world(&events), true).starts_with("Takes effect before demand_analyst in round 2.")
    );
}

#[test]
fn between_two_rounds() {
    let events = upto(&[], &[], closed(1));
    assert_eq!(
        said(&world(&events), true),
        "Takes effect at round 2.\nlegal_analyst joins at round 2.\nThen 4 seats, messages left 9 of \
         12 before they speak."
    );
}

#[test]
fn pause_before_round_lets_seat_join() {
    let events = upto(&[], &[], closed(1));
    let at = vec![BoundaryId::new("round:2")];
    let world = then(&events, EventKind::Paused { at });
    assert_eq!(
        said(&world, true),
        "Takes effect when the run resumes, at round 2.\nlegal_analyst joins at round 2.\nThen 4 \
         seats, messages left 9 of 12 before they speak."
    );
}

#[test]
fn pause_in_round_delays_join() {
    let events = upto(&[], &[], started(2));
    let at = vec![BoundaryId::new("message:2:demand_analyst")];
    let text = said(&then(&events, EventKind::Paused { at }), true);
    assert!(
        text.starts_with("Takes effect when the run resumes, at demand_analyst in round 2."),
        "{text}"
    );
    assert!(text.contains("joins at round 3 unless round 2 decides."), "{text}");
}

#[test]
fn leaving_keeps_what_is_being_said() {
    let events = upto(&[], &[(FLAG, true)], started(2));
    let text = said(&world(&events), false);
    assert!(text.contains("legal_analyst leaves at round 3 unless round 2 decides."), "{text}");
    assert!(text.contains("Its contribution to round 2 still counts."), "{text}");
    assert!(text.contains("Then 3 seats, messages left 4 of 12"), "{text}");
}

#[test]
fn denied_role_stops_run() {
    let sets = [r#"roles.legal_analyst.when_off="deny""#];
    let events = upto(&sets, &[(FLAG, true)], started(1));
    let text = said(&world(&events), false);
    assert!(
        text.contains("With legal_analyst denied, the run would stop at round 2 unless"),
        "{text}"
    );
    assert!(!text.contains("Then "), "no seats are counted of a round that stops: {text}");
}

#[test]
fn warns_when_messages_run_out() {
    let events = upto(&["budget.max_messages=6"], &[], closed(1));
    let text = said(&world(&events), true);
    assert!(
        text.contains(
            "Then 4 seats and 3 of 6 messages left: the run would stop at the message limit"
        ),
        "{text}"
    );
}

#[test]
fn last_round_admits_no_seat() {
    let events = upto(&[], &[], started(3));
    let text = said(&world(&events), true);
    assert!(text.contains("No further round is possible: no seat changes."), "{text}");
    let decided = upto(&[], &[], closed(3));
    let text = said(&world(&decided), true);
    assert!(text.starts_with("Takes effect at the final answer, the last boundary."), "{text}");
}

#[test]
fn after_the_end_nothing_changes() {
    let events = facts("checkout-launch", &[], &[], Schedule::default());
    assert_eq!(said(&world(&events), true), "The run has ended: its flags can no longer change.");
}

#[test]
fn what_was_promised_is_what_happens() {
    // The flag is switched while round 2 is open; the roster of round 3 is taken with it.
    let schedule = Schedule {
        flags: vec![(BoundaryId::new("message:2:risk_analyst"), FLAG.into(), true)],
        ..Schedule::default()
    };
    let events = facts("checkout-launch", &[], &[], schedule);
    let seats =
        |round| {
            events.iter().find_map(|event| match &event.kind {
                EventKind::Pattern(PatternFact::Collaboration(
                    CollaborationFact::RoundStarted { round: it, seats, .. },
                )) if *it == round => {
                    Some(seats.iter().filter(|seat| seat.status == SeatStatus::Asked).count())
                }
                _ => None,
            })
        };
    assert_eq!((seats(2), seats(3)), (Some(3), Some(4)));
}

#[test]
fn switch_stays_pending_until_confirmed() {
    let events = upto(&[], &[], started(2));
    let mut dash = Dash::new(120, 36);
    dash.run("r-0001", &events).text("f");
    assert_eq!(dash.state.context(), Context::Flags);
    assert!(dash.screen().contains("the scenario's default"));
    dash.press("Space");
    let flag = FLAG.into();
    match &dash.asked()[..] {
        [Effect::Command { run, command }] => {
            assert_eq!(run.as_str(), "r-0001");
            assert_eq!(*command, Command::SetFlag { flag, on: true, by: Initiator::You });
        }
        other => panic!("{other:?}"),
    }
    let screen = dash.screen();
    assert!(
        screen.contains("off → on (pending)") && screen.contains("[~] legal_analyst"),
        "{screen}"
    );
    assert!(screen.contains("joins R3"), "its seat says so: {screen}");
    assert!(screen.contains("It will be on"), "{screen}");
    assert!(screen.contains("Space takes the switch back."), "{screen}");
    assert!(screen.contains("Takes effect before demand_analyst in round 2."), "{screen}");

    let landed = Event {
        seq: Seq(events.len() as u64),
        at: Elapsed(4_000_000),
        span: SpanId::RUN,
        kind: EventKind::FlagChanged {
            flag: FLAG.into(),
            on: true,
            by: Initiator::You,
            boundary: BoundaryId::new("round:3"),
        },
    };
    dash.send(Msg::Events { run: RunId::new("r-0001"), events: vec![Arc::new(landed)] });
    let screen = dash.screen();
    assert!(!screen.contains("pending:") && screen.contains("[x] legal_analyst"), "{screen}");
    assert!(screen.contains("by you at 00:04.0, since round 3"), "{screen}");
}

#[test]
fn a_switch_can_be_taken_back() {
    let events = upto(&[], &[], started(2));
    let mut dash = Dash::new(120, 36);
    dash.run("r-0001", &events).text("f");
    let keys = key_row(&dash);
    assert!(keys.contains("Space switch") && !keys.contains("undo"), "{keys}");
    dash.press("Space");
    assert!(key_row(&dash).contains("u undo"));
    dash.text("u");
    let asked = dash.asked();
    assert_eq!(asked.len(), 2);
    match asked.last() {
        Some(Effect::Command { command: Command::SetFlag { on: false, .. }, .. }) => {}
        other => panic!("{other:?}"),
    }
    assert!(!dash.screen().contains("pending:"), "it is as it was: nothing is pending");
    dash.text("u");
    assert!(dash.asked().is_empty());
    let said = &dash.state.notices.current().expect("said").text;
    assert_eq!(said, "You have no flag change to undo.");
}

#[test]
fn switch_does_nothing_after_end() {
    let events = facts("checkout-launch", &[], &[], Schedule::default());
    let mut dash = Dash::new(120, 36);
    dash.run("r-0001", &events).press("f Space");
    assert!(dash.asked().is_empty());
    let keys = key_row(&dash);
    assert!(!keys.contains("switch") && !keys.contains("undo"), "{keys}");
    assert!(!dash.screen().contains("If it is switched"), "{}", dash.screen());
    assert!(dash.state.notices.current().expect("said").text.contains("has ended"));
    dash.press("Esc");
    assert_eq!(dash.state.context(), Context::Run);
}

#[test]
fn leaving_seat_shows_round() {
    let events = upto(&[], &[(FLAG, true)], started(1));
    let mut dash = Dash::new(120, 36);
    dash.run("r-0001", &events).press("f Space Esc");
    let screen = dash.screen();
    assert!(screen.contains("leaves R2") && !screen.contains("leaves R2: flag"), "{screen}");
}

#[test]
fn stopping_flag_moves_no_seat() {
    for flags in [&[][..], &[(FLAG, true)]] {
        let mut events = facts("checkout-denied", &[], flags, Schedule::default());
        events.truncate(until(&events, |kind| matches!(kind, EventKind::CallStarted(_))));
        let mut dash = Dash::new(120, 36);
        let screen = dash.run("r-0001", &events).press("f Space Esc").screen();
        assert!(screen.contains("Stances and confidence"), "{screen}");
        assert!(!screen.contains("leaves") && !screen.contains("joins"), "{flags:?}: {screen}");
    }
}
