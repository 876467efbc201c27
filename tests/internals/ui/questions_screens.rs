//! Questions to people on the screen: a run that waits, the inbox, and the card with its keys.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::shows;
use crate::base::name::PersonName;
use crate::engine::Schedule;
use crate::log::event::{
    Answer, AnsweredBy, Elapsed, Event, EventKind, ModelLabel, QuestionAnswered, QuestionAsked,
    QuestionId, RunId, RunStarted, Seq, Subject,
};
use crate::log::world::run_row::RunRow;
use crate::pattern::collaboration::policy::judge;
use crate::scenario::people::Effects;
use crate::scenario::{ScenarioOrigin, load};
use crate::screen::chrome::title;
use crate::screen::questions::{self, REPEAT_TIME};
use crate::screen::theme::Theme;
use crate::screen::windows::Overlay;
use crate::screen::{Effect, Msg};
use crate::support::kept::{history, kept, list, opening};
use crate::support::screen::{Dash, facts_of, until};
use crate::support::table::shipped_log;
use crate::words::glyph::Glyphs;

pub(super) const RUN: &str = "r-7f3a";

/// An agent that asks for a refund.
const DESK: &str = r#"
title = "Refund desk"
pattern = "swarm"
goal = "I was charged twice for two orders."

[swarm]
root = "desk"

[people.manager]
description = "Decides about money."
timeout = "10m"

[agents.desk]
description = "The desk."
members = ["billing", "care"]
entry = "billing"

[agents.billing]
description = "Refunds."
instruction = "Refund."
tools = ["refund"]

[agents.care]
description = "Writes."
instruction = "Write."

[tools.refund]
description = "Pays money back."
args = { charge = "The charge.", amount_usd = { type = "number" } }
approve = { who = "manager" }
effects = "write"
fixture = { rows = [{ result = { ok = true } }] }

[[script]]
agent = "billing"
round = 1
text = "The customer was charged twice; I refund the second charge."
calls = [{ tool = "refund", args = { charge = "ch_1", amount_usd = 20 } }]

[[script]]
agent = "billing"
text = "Refunded."

[[script]]
person = "manager"
approve = true
latency = "300ms"
"#;

/// Start of the tests' clock as Unix time in milliseconds.
pub(super) const WALL_MS: u64 = 1_772_442_000_000;

/// The run up to its question, with a deadline that does not depend on the clock, and two questions
/// more: another refund, and a payment.
pub(super) fn asked() -> Vec<Arc<Event>> {
    let origin = ScenarioOrigin::File("desk.toml".into());
    let scenario = load(DESK, origin, &[]).expect("a good scenario");
    let mut events = facts_of(scenario, &[], Schedule::default());
    let end = until(&events, |kind| matches!(kind, EventKind::QuestionAsked(_)));
    events.truncate(end);
    let first = with_question(&events.pop().expect("a question"), |_| ());
    let of = |subject: &Subject| match subject {
        Subject::ToolCall { definition, parameters, .. } => {
            (definition.clone(), parameters.clone())
        }
        other => panic!("no call: {other:?}"),
    };
    let second = with_question(&first, |asked| {
        let (tool, effects) = ("refund".into(), Effects::Write);
        let args = Arc::new(json!({ "charge": "ch_2", "amount_usd": 149.9 }));
        let (definition, parameters) = of(&asked.subject);
        asked.id = QuestionId(2);
        asked.subject = Subject::ToolCall { tool, args, definition, parameters, effects };
    });
    let third = with_question(&first, |asked| {
        let (tool, effects) = ("pay".into(), Effects::Irreversible);
        let (args, parameters) = (json!({ "to": "Acme" }).into(), json!({}).into());
        asked.id = QuestionId(3);
        asked.subject =
            Subject::ToolCall { tool, args, definition: "d".into(), parameters, effects };
    });
    for (nth, event) in [first, second, third].into_iter().enumerate() {
        let seq = Seq(event.seq.0 + nth as u64);
        events.push(Arc::new(Event { seq, ..Event::clone(&event) }));
    }
    events
}

/// The event with this change of its question.
pub(super) fn with_question(
    event: &Arc<Event>,
    change: impl FnOnce(&mut QuestionAsked),
) -> Arc<Event> {
    let EventKind::QuestionAsked(asked) = &event.kind else { return Arc::clone(event) };
    let mut asked = QuestionAsked::clone(asked);
    asked.due_ms = asked.due_ms.map(|_| WALL_MS + 610_000);
    change(&mut asked);
    Arc::new(Event { kind: EventKind::QuestionAsked(Arc::new(asked)), ..Event::clone(event) })
}

/// The first call that is asked about.
pub(super) fn asked_subject() -> Subject {
    let events = asked();
    let asked = events.iter().find_map(|event| match &event.kind {
        EventKind::QuestionAsked(asked) => Some(asked.subject.clone()),
        _ => None,
    });
    asked.expect("a question")
}

/// The run with this subject as its only question.
pub(super) fn asked_about(subject: Subject) -> Vec<Arc<Event>> {
    let mut events = asked();
    let first = events
        .iter()
        .position(|event| matches!(event.kind, EventKind::QuestionAsked(_)))
        .expect("a question");
    events.truncate(first + 1);
    let last = events.pop().expect("a question");
    events.push(with_question(&last, |asked| asked.subject = subject));
    events
}

pub(super) fn dash_of(cols: u16, rows: u16, events: &[Arc<Event>]) -> Dash {
    let mut dash = Dash::new(cols, rows);
    dash.state.inbox.zero_wall_ms = Some(WALL_MS - 10_000);
    dash.run(RUN, events);
    dash
}

pub(super) fn dash(cols: u16, rows: u16) -> Dash {
    dash_of(cols, rows, &asked())
}

/// The card of the nth question, which takes keys.
pub(super) fn card(dash: &mut Dash, nth: usize) -> &mut Dash {
    dash.press("a").press(&"Down ".repeat(nth)).press("Enter").after(Duration::from_millis(400))
}

/// The answers that were sent.
pub(super) fn answers(dash: &mut Dash) -> Vec<(QuestionId, Answer, bool)> {
    let sent = |effect: Effect| match effect {
        Effect::Answer { id, answer, remember, .. } => Some((id, answer, remember)),
        _ => None,
    };
    dash.asked().into_iter().filter_map(sent).collect()
}

pub(super) const APPROVE: Answer = Answer::Approve { args: None };

/// The log has this answer to a question.
pub(super) fn answered(dash: &mut Dash, id: u32, by: AnsweredBy, answer: Answer) {
    let page = dash.state.run(&RunId::new(RUN)).expect("a run");
    let questions = &page.world().questions;
    let question = questions.get(QuestionId(id)).expect("open").clone();
    let (seq, at) = (page.world().progress.next, page.world().progress.at);
    let (id, digest) = (question.asked.id, Arc::clone(&question.asked.digest));
    let answered = QuestionAnswered::new(id, digest, by, answer);
    let kind = EventKind::QuestionAnswered(Arc::new(answered));
    let at = Elapsed(at.0 + 12_000_000);
    let event = Event { seq, at, span: question.span, kind };
    dash.send(Msg::Events { run: RunId::new(RUN), events: vec![Arc::new(event)] });
}

pub(super) fn anna() -> AnsweredBy {
    AnsweredBy::Person { name: "anna".into(), host: "laptop".into() }
}

pub(super) fn has_card(dash: &Dash) -> bool {
    matches!(dash.state.overlays.last(), Some(Overlay::Card(_)))
}

#[test]
fn a_run_waits_for_people() {
    for (cols, rows) in [(80, 24), (120, 36)] {
        let mut dash = dash(cols, rows);
        insta::assert_snapshot!(format!("question_waiting_{cols}x{rows}"), dash.dump());
        dash.press("a");
        insta::assert_snapshot!(format!("question_inbox_{cols}x{rows}"), dash.dump());
        dash.press("Enter");
        insta::assert_snapshot!(format!("question_card_{cols}x{rows}"), dash.dump());
        dash.press("Esc Esc q");
        insta::assert_snapshot!(format!("question_home_{cols}x{rows}"), dash.press("2").dump());
    }
}

#[test]
fn quitting_names_open_questions() {
    let mut dash = dash(120, 36);
    dash.press("q q");
    shows(
        &dash,
        &["One run is live. Quit and end it?", "3 open questions stay without an answer."],
    );
}

/// An interrupted kept run says who it waits for; the inbox lists it below the open questions, and opens it.
#[test]
fn interrupted_runs_wait_too() {
    let waiting = |id: &str, hours, who: &[&str]| RunRow {
        waits_for: who.iter().map(|who| PersonName::new(*who)).collect(),
        ..kept(id, hours, "refund-desk", "Refund desk", "interrupted")
    };
    let rows = || {
        let mut rows = history();
        rows.insert(1, waiting("r-21bb", 2, &["manager"]));
        rows.insert(2, waiting("r-22bb", 2, &["chair", "operator"]));
        // This one is continued here.
        rows.push(waiting(RUN, 4, &["manager"]));
        rows[0].waits_for = vec![PersonName::new("cfo")];
        rows
    };
    for (cols, rows_of_screen) in [(80, 24), (120, 36), (200, 50)] {
        let size = format!("{cols}x{rows_of_screen}");
        let mut dash = dash(cols, rows_of_screen);
        list(&mut dash, rows());
        dash.press("q 2 j j");
        insta::assert_snapshot!(format!("question_interrupted_home_{size}"), dash.dump());
        dash.press("a");
        insta::assert_snapshot!(format!("question_interrupted_inbox_{size}"), dash.dump());
        let title = title(&dash.state, &Theme::default(), Glyphs::new(false));
        assert!(title.starts_with("◆ 3 questions"), "{title}");
        dash.asked();
        dash.press("Enter");
        assert_eq!(opening(&mut dash).0, RunId::new("r-21bb"));
        assert!(dash.state.overlays.is_empty());
    }
    // Without any open question the first of them is selected.
    let mut dash = Dash::new(80, 24);
    list(&mut dash, rows());
    shows(dash.press("a"), &[">◆ r-21bb  waits for manager", "0 open questions"]);
    dash.press("Enter");
    assert_eq!(opening(&mut dash).0, RunId::new("r-21bb"));
}

#[test]
fn paused_while_people_are_asked() {
    let mut events = asked();
    let last = Event::clone(events.last().expect("events"));
    let kind = EventKind::Paused { at: Vec::new() };
    events.push(Arc::new(Event { seq: Seq(last.seq.0 + 1), kind, ..last }));
    let mut dash = dash_of(120, 36, &events);
    dash.press("Esc q 2");
    shows(&dash, &["while it waits for manager and 2"]);
}

/// Each pattern's outcome counts the questions; that of a run without any does not.
#[test]
fn outcome_counts_questions() {
    for name in [
        "checkout-launch",
        "fraud-check",
        "front-desk",
        "nested-swarm",
        "payments-incident",
        "vendor-brownout",
    ] {
        let mut events = shipped_log(name);
        for (cols, rows) in [(80, 24), (120, 36), (200, 50)] {
            let screen = dash_of(cols, rows, &events).screen();
            assert!(!screen.to_lowercase().contains("questions"), "{name}: {screen}");
        }
        let end = Event::clone(&events.pop().expect("its end"));
        let questions = asked_about(Subject::Agent { text: "Which?".into(), choices: [].into() });
        let asked = questions.last().expect("a question").kind.clone();
        let EventKind::QuestionAsked(question) = &asked else { panic!("{asked:?}") };
        let text = Answer::Text { text: "This.".into() };
        let answered = QuestionAnswered::new(question.id, question.digest.clone(), anna(), text);
        let answered = EventKind::QuestionAnswered(Arc::new(answered));
        let kinds = [asked.clone(), answered, end.kind.clone()];
        for (seq, kind) in (end.seq.0..).zip(kinds) {
            events.push(Arc::new(Event { seq: Seq(seq), kind, ..end.clone() }));
        }
        for (cols, rows) in [(80, 24), (120, 36), (200, 50)] {
            let mut dash = dash_of(cols, rows, &events);
            if name == "payments-incident" {
                // It comes after the sentences of the answer.
                dash.press("3 G");
            }
            shows(&dash, &["uestions", "1 asked", "median"]);
        }
    }
}

#[test]
fn empty_inbox_says_so() {
    let mut dash = Dash::new(80, 24);
    shows(dash.press("a"), &["Inbox", "No questions: an agent or a tool"]);
    assert!(dash.press("Esc").state.overlays.is_empty());
}

#[test]
fn title_has_only_the_number() {
    let dash = dash(80, 24);
    let title = title(&dash.state, &Theme::default(), Glyphs::new(false));
    assert_eq!(title, "◆ 3 questions, desk · roundtable");
}

#[test]
fn arriving_question_takes_no_focus() {
    let events = asked();
    let before = events.len() - 3;
    let mut dash = dash_of(80, 24, &events[..before]);
    dash.send(Msg::Events { run: RunId::new(RUN), events: events[before..].to_vec() });
    assert!(dash.state.overlays.is_empty());
    // Keys mean what they meant before.
    dash.press("y n Y");
    assert!(answers(&mut dash).is_empty() && dash.state.overlays.is_empty());
}

#[test]
fn keys_are_dead_at_first() {
    let mut dash = dash(80, 24);
    dash.press("a a y n e m Y 1 s");
    assert!(answers(&mut dash).is_empty() && has_card(&dash));
    shows(&dash, &["Too soon"]);
    dash.after(Duration::from_millis(399)).press("y");
    assert!(answers(&mut dash).is_empty());
    dash.after(Duration::from_millis(1)).press("y");
    assert_eq!(answers(&mut dash), [(QuestionId(1), APPROVE, false)]);
    // The next card has the same time, once the log has the answer.
    answered(&mut dash, 1, anna(), APPROVE);
    shows(&dash, &["q2 approval: you answer as manager"]);
    dash.press("y");
    assert!(answers(&mut dash).is_empty());
    // Tab and Esc are not dead.
    shows(dash.press("Tab"), &["q3 approval: you answer as manager"]);
    dash.press("Esc");
    assert!(!has_card(&dash));
}

#[test]
fn card_is_dead_until_shown() {
    let mut dash = dash(120, 36);
    dash.press("a");
    dash.shows_frames = false;
    // A large card is drawn for a second; the key comes before the frame is on the terminal.
    dash.press("Enter").after(Duration::from_secs(1)).press("y");
    questions::on_frame_drawn(&mut dash.state);
    dash.after(Duration::from_secs(1)).press("y");
    assert!(answers(&mut dash).is_empty());
    questions::on_frame_shown(&mut dash.state, dash.now);
    dash.after(Duration::from_millis(399)).press("y");
    assert!(answers(&mut dash).is_empty());
    dash.after(Duration::from_millis(1)).press("y");
    assert_eq!(answers(&mut dash).len(), 1);
}

/// Of an irreversible call: a key that is held down repeats after half a second, and then often.
#[test]
fn held_key_is_no_second_press() {
    let mut dash = dash(120, 36);
    card(&mut dash, 2).press("G y");
    shows(&dash, &["press y again to approve it"]);
    dash.after(Duration::from_millis(660)).press("y");
    for _ in 0..100 {
        dash.after(Duration::from_millis(33)).press("y");
    }
    assert!(answers(&mut dash).is_empty());
    dash.after(REPEAT_TIME).press("y");
    assert_eq!(answers(&mut dash).len(), 1);
}

#[test]
fn unseen_end_is_not_read() {
    let mut dash = dash(80, 24);
    card(&mut dash, 2);
    dash.shows_frames = false;
    let Some(Overlay::Card(card)) = dash.state.overlays.last_mut() else { panic!("no card") };
    card.end_seen = false;
    dash.press("G y");
    shows(&dash, &["! read to the end first"]);
    dash.frame().press("y");
    shows(&dash, &["press y again to approve it"]);
}

#[test]
fn late_key_reaches_no_page() {
    let subject = asked_subject();
    let mut dash = dash_of(120, 36, &asked_about(subject));
    card(&mut dash, 0).press("y");
    assert_eq!(answers(&mut dash).len(), 1);
    answered(&mut dash, 1, anna(), APPROVE);
    assert!(dash.state.overlays.is_empty());
    dash.after(Duration::from_millis(399)).press("y n e m");
    assert!(dash.asked().is_empty() && dash.state.overlays.is_empty());
    shows(&dash, &["Too late: the card has closed."]);
    // Later the key means what it always does there.
    dash.after(Duration::from_millis(1)).press("y");
    assert!(matches!(dash.asked()[..], [Effect::Copy(_)]));
    assert!(dash.state.overlays.is_empty());
}

#[test]
fn enter_never_approves() {
    let mut dash = dash(120, 36);
    card(&mut dash, 0).press("Enter C-s Enter");
    // Neither does a row of the help, or changed arguments that are only shown.
    dash.press("? 'approve this call' Enter Esc Esc e Down Backspace Enter Enter Enter C-s");
    assert!(answers(&mut dash).is_empty(), "{}", dash.screen());
}

#[test]
fn irreversible_call_needs_two_keys() {
    let mut events = asked();
    let last = events.pop().expect("a question");
    let long = with_question(&last, |asked| {
        let Subject::ToolCall { args, .. } = &mut asked.subject else { panic!("no call") };
        *args = Arc::new(json!({ "to": "Acme\n".repeat(40) }));
    });
    events.push(long);
    let mut dash = dash_of(80, 24, &events);
    card(&mut dash, 2).press("y");
    shows(&dash, &["! read to the end first"]);
    dash.press("G y");
    shows(&dash, &["press y again to approve it"]);
    dash.press("y");
    assert!(answers(&mut dash).is_empty(), "a key that is held down repeats");
    dash.after(REPEAT_TIME).press("m Y Space");
    assert!(answers(&mut dash).is_empty());
    dash.press("y");
    assert_eq!(answers(&mut dash), [(QuestionId(3), APPROVE, false)]);
}

#[test]
fn marks_only_equal_shapes() {
    let mut dash = dash(120, 36);
    dash.press("a Down Down Space");
    shows(&dash, &["A call that cannot be undone must be approved one at a time."]);
    dash.press("Up Space Y");
    let both = [(QuestionId(1), APPROVE, false), (QuestionId(2), APPROVE, false)];
    assert_eq!(answers(&mut dash), both);
    dash.press("Space Space Y");
    // All were marked, then this one was not.
    assert_eq!(answers(&mut dash), both[..1]);
}

#[test]
fn approving_marked_shows_next_card() {
    let mut dash = dash(120, 36);
    card(&mut dash, 0).press("Space Y");
    assert_eq!(answers(&mut dash).len(), 2);
    answered(&mut dash, 1, anna(), APPROVE);
    answered(&mut dash, 2, anna(), APPROVE);
    shows(&dash, &["q3 approval: you answer as manager"]);
    assert!(dash.state.notices.current().is_none());
}

#[test]
fn arriving_question_gets_no_focus() {
    let mut dash = dash(120, 36);
    card(&mut dash, 0).press("y");
    assert_eq!(answers(&mut dash).len(), 1);
    answered(&mut dash, 3, anna(), APPROVE);
    answered(&mut dash, 2, anna(), APPROVE);
    let mut late = asked().pop().expect("a question");
    Arc::make_mut(&mut late).seq = dash.state.runs[0].world().progress.next;
    late = with_question(&late, |asked| asked.id = QuestionId(4));
    dash.send(Msg::Events { run: RunId::new(RUN), events: vec![late] });
    answered(&mut dash, 1, anna(), APPROVE);
    assert!(!dash.dump().contains("q4 approval"), "{}", dash.dump());
}

#[test]
fn inbox_opens_over_every_page() {
    let mut dash = dash(120, 36);
    // From the inspector, too.
    shows(dash.press("5 Enter a"), &["Inbox", "3 open questions"]);
    dash.press("Esc Esc");
    dash.run("r-0002", &asked()[..4]);
    assert!(dash.state.notices.current().is_none());
    let mut more = asked().pop().expect("a question");
    Arc::make_mut(&mut more).seq = dash.state.runs[0].world().progress.next;
    more = with_question(&more, |asked| asked.id = QuestionId(4));
    dash.send(Msg::Events { run: RunId::new(RUN), events: vec![more] });
    shows(&dash, &["r-7f3a waits for manager: a opens the inbox."]);
    shows(dash.press("a"), &["4 open questions"]);
}

#[test]
fn inbox_selects_run_on_screen() {
    let mut dash = dash(120, 36);
    dash.run("r-0002", &asked());
    shows(dash.press("a"), &[">◆ r-0002", "this run: "]);
}

/// Who has answered the last question of a run stays on its page: another run with open questions has other keys.
#[test]
fn answered_card_stays_with_its_run() {
    let mut dash = Dash::new(120, 36);
    dash.run("r-0002", &asked()).run(RUN, &asked_about(asked_subject()));
    card(&mut dash, 0);
    shows(&dash, &[RUN, "q1 approval"]);
    dash.press("y");
    assert_eq!(answers(&mut dash).len(), 1);
    answered(&mut dash, 1, anna(), APPROVE);
    assert!(!has_card(&dash), "{}", dash.screen());
    assert_eq!(dash.state.visible_run().expect("a page").id().as_str(), RUN);
}

#[test]
fn draft_survives_closing_and_resize() {
    let mut dash = dash(80, 24);
    shows(card(&mut dash, 1).press("e Down 5 Esc"), &["Draft kept: e continues it."]);
    dash.press("Esc Esc");
    card(&mut dash, 0).press("n 'too much'");
    dash.send(Msg::Resize { cols: 120, rows: 36 });
    shows(&dash, &["too much"]);
    dash.press("Esc Esc Esc q");
    assert!(dash.state.overlays.is_empty());
    card(&mut dash, 0).press("n");
    shows(&dash, &["too much"]);
    dash.press("Enter");
    let deny = Answer::Deny { text: "too much".into() };
    assert_eq!(answers(&mut dash), [(QuestionId(1), deny, false)]);
}

#[test]
fn approves_the_arguments_as_shown() {
    let mut dash = dash(120, 36);
    card(&mut dash, 1).press("e Down Backspace Backspace Backspace Backspace Backspace 99.5 C-s");
    shows(&dash, &["99.5", "before: 149.9", "approves exactly these arguments"]);
    dash.after(Duration::from_millis(400)).press("y");
    let args = json!({ "charge": "ch_2", "amount_usd": 99.5 });
    let edited = Answer::Approve { args: Some(args.into()) };
    assert_eq!(answers(&mut dash), [(QuestionId(2), edited, false)]);

    // A value of another type is refused, and no difference is none.
    let mut dash = dash_of(120, 36, &asked());
    card(&mut dash, 1).press("e Down x C-s");
    shows(&dash, &["! the argument `amount_usd` is not of type number"]);
    dash.press("Backspace C-s").after(Duration::from_millis(400)).press("y");
    assert_eq!(answers(&mut dash), [(QuestionId(2), APPROVE, false)]);
}

#[test]
fn remembering_shows_the_rule_first() {
    let mut dash = dash(120, 36);
    card(&mut dash, 0).press("m");
    shows(&dash, &["approve refund for billing in this run, as it is defined now"]);
    assert!(answers(&mut dash).is_empty());
    dash.after(REPEAT_TIME).press("m");
    assert_eq!(answers(&mut dash), [(QuestionId(1), APPROVE, true)]);
    // The key that approves once does no more, whatever is shown.
    let mut dash = self::dash(120, 36);
    card(&mut dash, 0).press("m").after(REPEAT_TIME).press("y");
    assert_eq!(answers(&mut dash), [(QuestionId(1), APPROVE, false)]);
}

#[test]
fn number_alone_repeats_no_call() {
    let subject = Subject::InDoubt { tool: "refund".into(), args: json!({}).into() };
    let mut dash = dash_of(120, 36, &asked_about(subject));
    card(&mut dash, 0).press("1");
    assert!(answers(&mut dash).is_empty());
    shows(&dash, &["Enter sends \"again\""]);
    dash.press("'It timed out.' Enter");
    let again = Answer::Choose { choice: "again".into(), text: "It timed out.".into() };
    assert_eq!(answers(&mut dash), [(QuestionId(1), again, false)]);
}

#[test]
fn late_answer_says_who_was_first() {
    let mut dash = dash(120, 36);
    card(&mut dash, 0).press("y");
    answered(&mut dash, 1, anna(), Answer::Deny { text: "".into() });
    let notice = dash.state.notices.current().expect("a notice").text.clone();
    assert!(notice.contains("denied by manager (anna at laptop), after 12"), "{notice}");
    // One's own answer is no news.
    card(&mut dash, 0).press("y");
    answered(&mut dash, 2, anna(), APPROVE);
    assert_eq!(dash.state.notices.current().expect("a notice").text, notice);
}

#[test]
fn answered_card_says_how_it_ended() {
    let mut dash = dash(80, 24);
    card(&mut dash, 0);
    answered(&mut dash, 1, anna(), Answer::Deny { text: "".into() });
    shows(&dash, &["denied by manager (anna at laptop)", "It is no longer open."]);
    dash.after(Duration::from_secs(1)).press("y n m");
    assert!(answers(&mut dash).is_empty());
}

#[test]
fn script_answers_with_a_second_key() {
    let mut dash = dash(120, 36);
    card(&mut dash, 0);
    assert!(matches!(dash.asked()[..], [Effect::Suggest { .. }]));
    // No key is offered before it is known that the script has an answer.
    assert!(!dash.press("s").screen().contains("script's answer"));
    let answer = Answer::Deny { text: "no".into() };
    let (run, id, answer) = (RunId::new(RUN), QuestionId(1), Some(answer));
    dash.send(Msg::Suggested { run, id, answer: answer.clone() });
    shows(&dash, &["s script's answer"]);
    shows(dash.press("s"), &["deny: no", "sends the script's answer"]);
    dash.press("s");
    assert!(dash.asked().is_empty(), "it has just appeared");
    dash.after(REPEAT_TIME).press("s");
    assert_eq!(answers(&mut dash), [(QuestionId(1), answer.expect("one"), false)]);
}

#[test]
fn live_run_offers_no_script() {
    let mut events = asked();
    let EventKind::RunStarted(head) = &events[0].kind else { panic!("no head") };
    let model = ModelLabel::Live { host: "api.example.com".into(), name: "small-1".into() };
    let head = RunStarted { model, ..RunStarted::clone(head) };
    let kind = EventKind::RunStarted(Arc::new(head));
    events[0] = Arc::new(Event { kind, ..Event::clone(&events[0]) });
    let mut dash = dash_of(120, 36, &events);
    card(&mut dash, 0).press("s");
    assert!(dash.asked().is_empty());
    assert!(!dash.screen().contains("script's"), "{}", dash.screen());
}

#[test]
fn seat_form_makes_valid_contribution() {
    let mut dash = dash_of(120, 36, &asked_about(Subject::Seat { round: 2, role: "cfo".into() }));
    card(&mut dash, 0);
    insta::assert_snapshot!("question_seat_120x36", dash.dump());
    dash.press(
        "Right Tab 0.8 Tab 'It is sound.' Enter Tab 'check the price' Enter 'tell the team' C-s",
    );
    let sent = answers(&mut dash);
    let [(_, Answer::Contribute { contribution }, _)] = &sent[..] else { panic!("{sent:?}") };
    let contribution: &Value = contribution;
    assert_eq!(contribution["actions"], json!(["check the price", "tell the team"]));
    let allowed = ["cfo".into()].into();
    judge(contribution, &"cfo".into(), &allowed).expect("a valid contribution");
}

#[test]
fn text_and_numbers_answer_questions() {
    let text = || Subject::Agent { text: "Which order?".into(), choices: [].into() };
    let mut dash = dash_of(80, 24, &asked_about(text()));
    card(&mut dash, 0).press("'the first' Enter 'and y' C-s");
    let answer = Answer::Text { text: "the first\nand y".into() };
    assert_eq!(answers(&mut dash), [(QuestionId(1), answer, false)]);

    let choices = ["a".into(), "b".into()].into();
    let subject = Subject::Agent { text: "Which?".into(), choices };
    let mut dash = dash_of(80, 24, &asked_about(subject));
    card(&mut dash, 0).press("3 y Enter 2 Enter");
    let answer = Answer::Choose { choice: "b".into(), text: "".into() };
    assert_eq!(answers(&mut dash), [(QuestionId(1), answer, false)]);

    let subject = Subject::Turn {
        agent: "care".into(),
        request: "Take over.".into(),
        hand_over_to: ["billing".into()].into(),
    };
    let mut dash = dash_of(80, 24, &asked_about(subject));
    card(&mut dash, 0).press("'It is yours.' Tab Right C-s");
    let answer = Answer::HandOver { to: "billing".into(), text: "It is yours.".into() };
    assert_eq!(answers(&mut dash), [(QuestionId(1), answer, false)]);

    let subject = Subject::Decision { stances: json!({}).into(), conflicts: [].into() };
    let mut dash = dash_of(80, 24, &asked_about(subject));
    card(&mut dash, 0).press("2 'with care' Enter");
    let answer = Answer::Choose { choice: "go_with_caution".into(), text: "with care".into() };
    assert_eq!(answers(&mut dash), [(QuestionId(1), answer, false)]);
}

#[test]
fn waiting_wakes_once_a_minute() {
    let mut dash = dash(120, 36);
    dash.after(Duration::from_millis(500)).send(Msg::Tick);
    for keys in ["", "a", "a", "Esc Esc q"] {
        let next = dash.press(keys).state.next_tick().expect("a tick");
        // A notice may go before.
        dash.after(Duration::from_secs(7)).send(Msg::Tick);
        let next = next.max(dash.state.next_tick().expect("a tick"));
        assert!(next > Duration::from_secs(5), "{keys}: {next:?}");
    }
    let dash = dash_of(120, 36, &asked());
    assert!(dash.state.next_tick().expect("a tick") <= Duration::from_secs(60));
}

/// No key and no size makes a panic, and only `y`, `Y` and a second `m` or `s` approve.
#[test]
fn senseless_keys_approve_nothing() {
    for (cols, rows) in [(20, 5), (60, 16), (61, 17), (80, 24), (200, 50)] {
        let mut dash = dash(cols, rows);
        for keys in ["a a", "Enter Space Tab 9 e", "1 Enter Tab Tab C-s PgDn Esc", "n Up Down Left"]
        {
            dash.press(keys).after(Duration::from_millis(500));
            dash.screen();
            dash.send(Msg::Resize { cols: 3, rows: 1 });
            dash.screen();
            dash.send(Msg::Resize { cols, rows });
            dash.click(cols / 2, rows / 2).wheel(true, cols / 2, rows - 3);
        }
        let approves =
            |(_, answer, _): &(QuestionId, Answer, bool)| matches!(answer, Answer::Approve { .. });
        assert!(!answers(&mut dash).iter().any(approves));
    }
}
