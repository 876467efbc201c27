//! People in the sequence diagram: their lanes, and the rows of the questions that they are asked.

use std::sync::Arc;

use super::questions_screens::{
    APPROVE, RUN, anna, answered, asked, dash_of, has_card, with_question,
};
use super::shows;
use crate::engine::Schedule;
use crate::log::event::{
    Answer, AnsweredBy, Event, EventKind, QuestionId, RunId, RunStarted, Seq, Withdrawal,
};
use crate::log::facts::PatternPlan;
use crate::log::facts::agents::TeamPlan;
use crate::support::screen::{Dash, facts, until};

fn desk_events() -> Vec<Arc<Event>> {
    facts("refund-desk", &[], &[], Schedule::default())
}

/// The desk up to its first question.
fn waiting() -> Vec<Arc<Event>> {
    let mut events = desk_events();
    let end = until(&events, |kind| matches!(kind, EventKind::QuestionAsked(_)));
    events.truncate(end);
    events
}

/// The events with this change of their head.
fn with_head(mut events: Vec<Arc<Event>>, change: impl FnOnce(&mut RunStarted)) -> Vec<Arc<Event>> {
    let EventKind::RunStarted(head) = &events[0].kind else { panic!("no head") };
    let mut head = RunStarted::clone(head);
    change(&mut head);
    events[0] =
        Arc::new(Event { kind: EventKind::RunStarted(Arc::new(head)), ..Event::clone(&events[0]) });
    events
}

/// Makes these people the agents of a swarm.
fn play(head: &mut RunStarted, people: &[(&str, &str)]) {
    let PatternPlan::Swarm(plan) = &head.plan else { panic!("no swarm") };
    let mut plan = TeamPlan::clone(plan);
    let mut agents = plan.agents.to_vec();
    for agent in &mut agents {
        let person = people.iter().find(|(name, _)| *name == agent.name.as_str());
        agent.person = person.map(|(_, who)| (*who).into());
    }
    plan.agents = agents.into();
    head.plan = PatternPlan::Swarm(Arc::new(plan));
}

/// The row of the diagram with this question.
fn row_of(dash: &Dash, id: &str) -> String {
    let screen = dash.screen();
    let row = screen.lines().find(|line| line.contains(&format!("  {id} ")));
    row.unwrap_or_else(|| panic!("no row of {id}:\n{screen}")).to_owned()
}

#[test]
fn desk_that_waits() {
    insta::assert_snapshot!("refund_desk_waits_120x36", dash_of(120, 36, &waiting()).dump());
}

#[test]
fn desk_that_has_answered() {
    let mut dash = dash_of(120, 36, &desk_events());
    dash.text("1gjj");
    insta::assert_snapshot!("refund_desk_answered_120x36", dash.screen());
}

#[test]
fn person_who_approves_has_lane() {
    let dash = dash_of(120, 36, &asked());
    let head = dash.screen().lines().find(|line| line.contains("you")).expect("names").to_owned();
    assert!(head.contains("◆ manager"), "{head}");
    assert!(row_of(&dash, "q1").contains("⇄┊  refund ch_1, 20.00 USD"), "{}", row_of(&dash, "q1"));
}

#[test]
fn person_without_lane_is_named() {
    let old = with_head(asked(), |head| head.people.clear());
    let row = row_of(&dash_of(120, 36, &old), "q1");
    assert!(row.contains("billing ⇄ manager  refund ch_1"), "{row}");
    // The lanes of agents stay where there is no room for people.
    let many = with_head(asked(), |head| {
        head.people.extend((0..20).map(|nth| format!("person_{nth}").into()));
    });
    let dash = dash_of(80, 24, &many);
    shows(&dash, &["you ◆ billing◂ – care"]);
    assert!(row_of(&dash, "q1").contains("billing ⇄ manager"), "{}", row_of(&dash, "q1"));
}

#[test]
fn person_who_is_agent_has_lane() {
    let events = with_head(asked(), |head| play(head, &[("care", "manager")]));
    let dash = dash_of(120, 36, &events);
    let head = dash.screen().lines().find(|line| line.contains("you")).expect("names").to_owned();
    assert!(head.contains("care") && !head.contains("manager"), "{head}");
    assert!(row_of(&dash, "q1").contains("⇄┊  refund ch_1"), "{}", row_of(&dash, "q1"));
}

#[test]
fn enter_opens_card_of_open_question() {
    let mut dash = dash_of(120, 36, &asked());
    dash.text("1gj");
    shows(&dash, &["2 Question q1 ◆ waits", "waits for manager", "amount_usd"]);
    dash.press("Enter");
    assert!(has_card(&dash), "{}", dash.screen());
    dash.press("Esc");
    answered(&mut dash, 1, anna(), Answer::Deny { text: "Too much.".into() });
    dash.text("1gj");
    shows(
        &dash,
        &[
            "2 Question q1 ⊘ denied",
            "⊘ denied by manager (anna at",
            "laptop) after 12.0s",
            "Too much.",
        ],
    );
    dash.press("Enter");
    assert!(!has_card(&dash), "{}", dash.screen());
    let page = dash.state.run(&RunId::new(RUN)).expect("a run");
    assert!(page.inspector().is_some(), "{}", dash.screen());
}

#[test]
fn keys_and_mouse_select_each_question() {
    let mut dash = dash_of(120, 36, &asked());
    dash.press("1 Home Down Down Down");
    shows(&dash, &["2 Question q3"]);
    dash.press("Up");
    shows(&dash, &["2 Question q2"]);
    dash.press("Home PgDn");
    shows(&dash, &["2 Question q3"]);
    let screen = dash.screen();
    let row = screen.lines().position(|line| line.contains("  q1 ")).expect("a row") as u16;
    dash.click(10, row);
    shows(&dash, &["2 Question q1"]);
    dash.press("End");
    shows(&dash, &["Hops · following"]);
}

#[test]
fn question_rows_say_their_end() {
    let deny = || Answer::Deny { text: "".into() };
    for (by, answer, sign) in [
        (anna(), APPROVE, "Question q1 ✓ answered"),
        (anna(), deny(), "Question q1 ⊘ denied"),
        (AnsweredBy::Script, deny(), "Question q1 ⊘ denied"),
        (AnsweredBy::Nobody, deny(), "Question q1 ! not answered"),
    ] {
        let mut dash = dash_of(120, 36, &asked());
        answered(&mut dash, 1, by, answer);
        dash.text("1gj");
        shows(&dash, &[sign]);
    }
    let mut events = asked();
    let last = events.last().expect("a question");
    let seq = Seq(last.seq.0 + 1);
    let kind = EventKind::QuestionWithdrawn { id: QuestionId(1), why: Withdrawal::Cancelled };
    events.push(Arc::new(Event { seq, kind, ..Event::clone(last) }));
    let mut dash = dash_of(120, 36, &events);
    dash.text("1gj");
    shows(&dash, &["Question q1 – withdrawn"]);
}

#[test]
fn rule_answers_have_no_row() {
    let mut events = asked();
    let last = events.pop().expect("a question");
    events.push(with_question(&last, |asked| asked.by_rule = true));
    let screen = dash_of(120, 36, &events).screen();
    assert!(screen.contains("  q2 ") && !screen.contains("  q3 "), "{screen}");
}
