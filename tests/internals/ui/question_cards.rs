//! What the card of a question shows, and how it ends while somebody types.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::questions_screens::{
    APPROVE, RUN, WALL_MS, anna, answered, answers, asked, asked_about, card, dash_of, has_card,
    with_question,
};
use super::{SIZES, shows};
use crate::engine::Schedule;
use crate::log::event::{
    AgentStep, Answer, AnsweredBy, Elapsed, Event, EventKind, QuestionId, RunId, Seq, StepState,
    Subject, Withdrawal,
};
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::people::Effects;
use crate::scenario::{ScenarioOrigin, load, shipped};
use crate::screen::effect::{LaunchRequest, RequestId, RunBeginning};
use crate::screen::questions::REPEAT_TIME;
use crate::screen::theme::Theme;
use crate::screen::{Effect, Msg, chrome};
use crate::support::screen::{Dash, facts_of, until};
use crate::words::glyph::Glyphs;

/// A call with these arguments and effects.
fn call(args: Value, effects: Effects) -> Subject {
    let parameters = json!({ "properties": { "charge": {}, "note": { "type": "string" } } });
    let (tool, definition) = ("refund".into(), "d".into());
    Subject::ToolCall {
        tool,
        args: args.into(),
        definition,
        parameters: parameters.into(),
        effects,
    }
}

/// The row of the screen that has this text.
fn row_of(screen: &str, text: &str) -> usize {
    let row = screen.lines().position(|row| row.contains(text));
    row.unwrap_or_else(|| panic!("no {text:?}:\n{screen}"))
}

/// The card's question has these arguments in the editor of the operator.
fn edited(dash: &mut Dash, text: Result<String, String>) {
    let (run, id) = (RunId::new(RUN), QuestionId(1));
    dash.send(Msg::ArgsEdited { run, id, text }).after(Duration::from_millis(400));
}

/// The text that the card gives to the editor.
fn editor_text(dash: &mut Dash) -> String {
    dash.asked();
    let effects = dash.press("E").asked();
    let [Effect::EditArgs { text, .. }] = &effects[..] else { panic!("{effects:?}") };
    text.clone()
}

#[test]
fn arguments_come_before_the_reason() {
    let mut events = asked();
    events.truncate(events.len() - 2);
    let last = events.pop().expect("a question");
    events.push(with_question(&last, |asked| {
        asked.why = Some("Because.\n".repeat(30).into());
        asked.subject = call(
            json!({ "charge": "ch_1", "note": "for you", "amount_usd": 20, "to": "Eve" }),
            Effects::Irreversible,
        );
    }));
    for (cols, rows) in SIZES {
        let mut dash = dash_of(cols, rows, &events);
        let screen = card(&mut dash, 0).screen();
        let rows =
            ["ch_1", "for you", "undeclared: 20", "undeclared: Eve", "irreversible", "Because."];
        let rows =
            rows.map(|text| screen.lines().position(|row| row.contains(text) && row.contains('║')));
        // At the smallest size the reason may be below, never the arguments.
        assert!(rows[..4].iter().all(Option::is_some), "{screen}");
        let seen: Vec<usize> = rows.into_iter().flatten().collect();
        assert!(seen.is_sorted(), "{screen}");
        assert!(!screen.lines().any(|row| row.contains("undeclared") && row.contains("ch_1")));
    }
}

/// The steps of an agent of another program are among what it did before, each as far as it is.
#[test]
fn card_shows_steps_before() {
    let mut events = asked();
    events.truncate(events.len() - 2);
    let question = events.pop().expect("a question");
    let attempt =
        events.iter().rfind(|event| matches!(event.kind, EventKind::AttemptStarted { .. }));
    let span = attempt.expect("an attempt").span;
    let step = |id: &str, title: &str, state| {
        let (id, title, text) = (id.into(), title.into(), "".into());
        EventKind::AgentStep(Arc::new(AgentStep { id, title, state, text, carried_out: false }))
    };
    let steps = [
        step("s1", "Read main.rs", StepState::Started),
        step("s2", "Run the tests", StepState::Started),
        step("s1", "Read main.rs", StepState::Done),
    ];
    let mut seq = question.seq;
    for kind in steps {
        events.push(Arc::new(Event { seq, at: question.at, span, kind }));
        seq = Seq(seq.0 + 1);
    }
    events.push(Arc::new(Event { seq, ..Event::clone(&question) }));
    let screen = card(&mut dash_of(200, 50, &events), 0).screen();
    assert!(screen.contains("Read main.rs: done"), "{screen}");
    assert!(screen.contains("Run the tests: no result yet"), "{screen}");
    assert!(!screen.contains("Read main.rs: no result yet"), "{screen}");
}

/// Of a heading that is wrapped, the rule is behind its last line.
#[test]
fn rule_follows_wrapped_heading() {
    let mut events = asked();
    events.truncate(events.len() - 2);
    let last = events.pop().expect("a question");
    events.push(with_question(&last, |asked| asked.by = Some("billing ".repeat(12).into())));
    let screen = card(&mut dash_of(80, 24, &events), 0).screen();
    let (first, end) =
        (row_of(&screen, "║ billing billing"), row_of(&screen, "to approve refund."));
    assert!(first < end, "{screen}");
    let has_rule = |row: usize| screen.lines().nth(row).is_some_and(|row| row.contains('─'));
    assert_eq!((has_rule(first), has_rule(end)), (false, true), "{screen}");
}

#[test]
fn long_arguments_are_scrolled_in_full() {
    let note = format!("{}THE-END", "abcdefgh ".repeat(24_000));
    for effects in [Effects::Write, Effects::Irreversible] {
        let subject = call(json!({ "note": note.as_str(), "zz": "last" }), effects);
        let mut dash = dash_of(80, 24, &asked_about(subject));
        card(&mut dash, 0).press("y");
        match effects {
            Effects::Irreversible => shows(&dash, &["! read to the end first"]),
            _ => assert_eq!(answers(&mut dash).len(), 1),
        }
        if effects == Effects::Irreversible {
            dash.press("G PgUp");
            let screen = dash.screen();
            let is_seen =
                screen.contains("THE-END") || dash.press("PgUp").screen().contains("THE-END");
            assert!(is_seen && !screen.contains("not shown"), "{}", dash.screen());
            // The arguments are in view again where the second key approves them.
            shows(dash.press("G y"), &["note       abcdefgh"]);
            dash.after(REPEAT_TIME).press("y");
            assert_eq!(answers(&mut dash), [(QuestionId(1), APPROVE, false)]);
        }
    }
}

#[test]
fn longer_arguments_need_the_editor() {
    let args = json!({ "note": "x".repeat(300_000) });
    for effects in [Effects::Write, Effects::Irreversible] {
        let mut dash = dash_of(80, 24, &asked_about(call(args.clone(), effects)));
        card(&mut dash, 0).press("G y m Space Y");
        shows(&dash, &["E"]);
        assert!(answers(&mut dash).is_empty());
        let text = editor_text(&mut dash);
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), args);
        // An editor that failed has shown nothing.
        edited(&mut dash, Err("the file is gone".to_owned()));
        dash.press("y").after(REPEAT_TIME).press("y");
        assert!(answers(&mut dash).is_empty());
        edited(&mut dash, Ok(text));
        dash.press("y").after(REPEAT_TIME);
        if effects == Effects::Irreversible {
            assert!(answers(&mut dash).is_empty());
            dash.press("y");
        }
        assert_eq!(answers(&mut dash), [(QuestionId(1), APPROVE, false)]);
    }
}

#[test]
fn editor_counts_as_reading() {
    let args = json!({ "note": "Acme\n".repeat(60) });
    let mut dash = dash_of(80, 24, &asked_about(call(args, Effects::Irreversible)));
    card(&mut dash, 0);
    let text = editor_text(&mut dash);
    edited(&mut dash, Ok(text));
    shows(dash.press("y"), &["press y again to approve it"]);
    // Other arguments that were only typed were not read.
    dash.press("Esc")
        .after(Duration::from_millis(400))
        .press("e")
        .press("'Dear you, ' C-s")
        .after(Duration::from_millis(400))
        .press("y");
    shows(&dash, &["! read to the end first"]);
    dash.press("Esc").after(Duration::from_millis(400));
    assert!(answers(&mut dash).is_empty());
}

#[test]
fn refused_edit_is_continued() {
    let args = json!({ "note": "a\u{202e}b\u{e0041}" });
    let mut dash = dash_of(120, 36, &asked_about(call(args.clone(), Effects::Write)));
    card(&mut dash, 0);
    let text = editor_text(&mut dash);
    // Nothing hides in the editor either.
    assert!(text.contains(r"a\u202eb\udb40\udc41"), "{text}");
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), args);
    for (wrong, why) in
        [("{ \"note\": ", "! this is not JSON"), ("{ \"note\": 3 }", "not of type string")]
    {
        edited(&mut dash, Ok(wrong.to_owned()));
        shows(&dash, &[why]);
        assert_eq!(editor_text(&mut dash), wrong);
    }
    edited(&mut dash, Ok("{ \"note\": \"b\" }".to_owned()));
    shows(&dash, &["before: a", "approves exactly these arguments"]);
    dash.press("y");
    let args = Some(json!({ "note": "b" }).into());
    assert_eq!(answers(&mut dash), [(QuestionId(1), Answer::Approve { args }, false)]);
}

/// The question has ended in another way than an answer of a person.
fn withdrawn(dash: &mut Dash, why: Withdrawal) {
    let page = dash.state.run(&RunId::new(RUN)).expect("a run");
    let question = page.world().questions.get(QuestionId(1)).expect("open").clone();
    let (seq, at) = (page.world().progress.next, Elapsed(page.world().progress.at.0 + 1));
    let kind = EventKind::QuestionWithdrawn { id: QuestionId(1), why };
    let event = Event { seq, at, span: question.span, kind };
    dash.send(Msg::Events { run: RunId::new(RUN), events: vec![Arc::new(event)] });
}

#[test]
fn draft_stays_when_question_ends() {
    let deny = Answer::Deny { text: "no".into() };
    let subject = || Subject::Agent { text: "Which order?".into(), choices: [].into() };
    type End<'e> = (&'e str, &'e dyn Fn(&mut Dash));
    let ends: [End<'_>; 4] = [
        ("by manager (anna at laptop)", &|dash| {
            answered(dash, 1, anna(), Answer::Text { text: "x".into() });
        }),
        ("manager did not answer; fallback: it is denied", &|dash| {
            answered(dash, 1, AnsweredBy::Nobody, deny.clone());
        }),
        ("withdrawn: its branch ended", &|dash| withdrawn(dash, Withdrawal::Cancelled)),
        ("withdrawn: the tool has changed", &|dash| withdrawn(dash, Withdrawal::Changed)),
    ];
    for (cols, rows) in SIZES {
        for (how, end) in &ends {
            let mut dash = dash_of(cols, rows, &asked_about(subject()));
            card(&mut dash, 0).press("'my answer'");
            dash.send(Msg::Resize { cols: 60, rows: 16 });
            shows(&dash, &["my answer"]);
            dash.send(Msg::Resize { cols, rows });
            end(&mut dash);
            shows(&dash, &[how, "not sent", "my answer", "nothing was sent"]);
            // Who types on does not press keys of the card or of the page.
            dash.after(Duration::from_secs(1)).press("'quick refund y' Enter Tab C-s");
            shows(&dash, &[how, "my answer"]);
            assert!(answers(&mut dash).is_empty() && has_card(&dash));
            dash.press("Esc");
            assert!(!has_card(&dash));
        }
    }
}

#[test]
fn late_text_is_not_lost() {
    let subject = Subject::Agent { text: "Which order?".into(), choices: [].into() };
    let mut dash = dash_of(120, 36, &asked_about(subject));
    card(&mut dash, 0).press("'my answer' C-s");
    assert_eq!(answers(&mut dash).len(), 1);
    answered(&mut dash, 1, anna(), Answer::Text { text: "hers".into() });
    shows(&dash, &["anna at laptop", "not sent", "my answer"]);
}

#[test]
fn closed_draft_is_told_about() {
    let subject = Subject::Agent { text: "Which order?".into(), choices: [].into() };
    let mut dash = dash_of(120, 36, &asked_about(subject));
    card(&mut dash, 0).press("'my answer' Esc Esc Esc");
    assert!(!has_card(&dash));
    answered(&mut dash, 1, anna(), Answer::Text { text: "hers".into() });
    let said = dash.state.notices.current().expect("a notice").text.clone();
    assert!(said.contains("anna at laptop") && said.contains("my answer"), "{said}");
}

#[test]
fn last_minute_counts_by_tens() {
    let mut dash = dash_of(120, 36, &asked_about(call(json!({ "note": "a" }), Effects::Write)));
    let start = dash.now;
    // The deadline is 610 s after the start.
    for (at, text, wait) in [
        (0, "10m left", 60),
        (551_000, "50s left", 10),
        (569_000, "40s left", 10),
        (605_000, "<10s left", 10),
        (610_000, "due now", 60),
    ] {
        dash.now = start + Duration::from_millis(at);
        dash.send(Msg::Tick).after(Duration::ZERO);
        dash.press("a");
        shows(&dash, &[text]);
        let next = dash.state.next_tick().expect("a tick");
        assert!(next <= Duration::from_secs(wait) + Duration::from_millis(2), "{text}: {next:?}");
        shows(card(&mut dash, 0), &[text]);
        dash.press("Esc Esc Esc");
    }
    assert_eq!(WALL_MS % 1_000, 0);
}

#[test]
fn many_deadlines_wake_once_a_minute() {
    let mut events = asked();
    let first = events.iter().position(|it| matches!(it.kind, EventKind::QuestionAsked(_)));
    let first = events[first.expect("a question")].clone();
    for nth in 4_u32..60 {
        let seq = events.last().expect("an event").seq;
        let mut more = Event::clone(&with_question(&first, |asked| {
            asked.id = QuestionId(nth);
            asked.due_ms = Some(WALL_MS + 700_000 + u64::from(nth) * 1_017);
        }));
        more.seq.0 = seq.0 + 1;
        events.push(Arc::new(more));
    }
    let mut dash = dash_of(120, 36, &events);
    dash.after(Duration::from_secs(30)).send(Msg::Tick);
    let mut ticks = 0;
    let end = dash.now + Duration::from_secs(300);
    while dash.now < end {
        let next = dash.state.next_tick().expect("a tick");
        dash.after(next).send(Msg::Tick);
        ticks += 1;
    }
    assert!(ticks <= 6, "{ticks} ticks in five minutes");
}

/// A swarm whose first agent hands over to a person.
const HANDS_OVER: &str = r#"
title = "Desk"
pattern = "swarm"
goal = "I was charged twice."
[people.manager]
description = "Answers for exceptions"
[swarm]
root = "desk"
[agents.desk]
description = "desk"
members = ["billing", "lead"]
entry = "billing"
[agents.billing]
description = "Refunds"
[agents.lead]
description = "The manager"
person = "manager"
[[script]]
agent = "billing"
text = "Who is responsible is not mine to say."
calls = [{ tool = "transfer_to_agent", args = { agent_name = "lead", message = "Who is responsible?" } }]
"#;

#[test]
fn turn_says_who_handed_over() {
    let scenario =
        load(HANDS_OVER, ScenarioOrigin::File("desk.toml".into()), &[]).expect("a scenario");
    let mut events = facts_of(scenario, &[], Schedule::default());
    events.truncate(until(&events, |kind| matches!(kind, EventKind::QuestionAsked(_))));
    for (cols, rows) in SIZES {
        let mut dash = dash_of(cols, rows, &events);
        shows(dash.press("a"), &["lead → manager"]);
        dash.press("Esc");
        shows(
            card(&mut dash, 0),
            &["billing, which hands over to lead", "message", "Who is responsible?"],
        );
    }
}

#[test]
fn seat_shows_what_a_model_reads() {
    let launch = shipped().iter().find(|it| it.name == "checkout-launch").expect("shipped");
    let (head, rest) = launch.text.split_once("[roles.finance_analyst]").expect("a role");
    let (_, rest) = rest.split_once("[roles.risk_analyst]").expect("a role");
    let seat = "[roles.finance_analyst]\nperson = \"cfo\"\n[roles.risk_analyst]";
    let text = format!("{head}{seat}{rest}");
    let text = format!(
        "{text}\n[people.cfo]\ndescription = \"Pays\"\n\n[[script]]\nperson = \"cfo\"\nreply = {{ agent = \
         \"finance_analyst\", stance = \"caution\", summary = \"It costs.\", confidence = 0.5, actions = [\"cap\"] }}\n"
    );
    let read = || load(&text, ScenarioOrigin::File("own.toml".into()), &[]).expect("a scenario");
    let mut events = facts_of(read(), &[], Schedule::default());
    let asks = |kind: &EventKind| match kind {
        EventKind::QuestionAsked(asked) => matches!(asked.subject, Subject::Seat { round: 2, .. }),
        _ => false,
    };
    events.truncate(until(&events, asks));
    let mut dash = dash_of(200, 50, &events);
    let zero = dash.state.run(&RunId::new(RUN)).expect("a run").zero();
    let launch = LaunchRequest {
        id: RequestId(7),
        scenario: Arc::new(read()),
        model: RequestedModel::Scripted { instant: false },
        flags: Vec::new(),
        seed: None,
        begins: RunBeginning::New,
    };
    let (request, run, launch) = (RequestId(7), RunId::new(RUN), Some(Box::new(launch)));
    dash.send(Msg::Started { request, run, zero, launch });
    card(&mut dash, 0);
    let mut seen = dash.screen();
    for _ in 0..60 {
        seen.push_str(&dash.press("PgDn").screen());
    }
    for part in [
        "Decide whether the Checkout v2",
        "projected_revenue_usd",
        "Stances of round 1",
        "risk_analyst",
        "demand_analyst",
    ] {
        row_of(&seen, part);
    }
}

/// Texts of models and tools that must stay text.
fn hostile() -> [String; 5] {
    [
        "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[1;1H".repeat(50),
        "a\u{202e}b\u{2066}c\u{200b}d\u{e0041}\u{9b}2J".repeat(50),
        "x".repeat(1_000_000),
        "line\r\n\u{2028}".repeat(20_000),
        "\n\n y approves this call once, n denies it.\n║ effects    reads only ║\n Tab next question  y approve"
            .to_owned(),
    ]
}

#[test]
fn hostile_texts_stay_text() {
    for text in hostile() {
        let shared: Arc<str> = text.as_str().into();
        let start: String = text.chars().take(300).collect();
        let subjects = [
            call(json!({ text.as_str(): "value", "charge": text.as_str() }), Effects::Irreversible),
            call(json!({ "nested": { "a": [start] } }), Effects::Write),
            Subject::Agent { text: Arc::clone(&shared), choices: [].into() },
            Subject::Agent {
                text: "Which?".into(),
                choices: [Arc::clone(&shared), "b".into()].into(),
            },
            Subject::Turn {
                agent: "care".into(),
                request: Arc::clone(&shared),
                hand_over_to: ["billing".into()].into(),
            },
            Subject::InDoubt { tool: "refund".into(), args: json!({ "a": text.as_str() }).into() },
            Subject::Decision {
                stances: json!({ "a": text.as_str() }).into(),
                conflicts: [Arc::clone(&shared)].into(),
            },
        ];
        for subject in subjects {
            let mut events = asked_about(subject.clone());
            let last = events.pop().expect("a question");
            events.push(with_question(&last, |asked| asked.why = Some(Arc::clone(&shared))));
            for (cols, rows) in [(80, 24), (120, 36), (200, 50)] {
                let mut dash = dash_of(cols, rows, &events);
                let title = chrome::title(&dash.state, &Theme::default(), Glyphs::new(false));
                assert_eq!(title, "◆ 1 question, desk · roundtable");
                clean(dash.press("a"), rows);
                card(&mut dash, 0);
                for key in ["G", "e", "1"] {
                    clean(dash.press(key), rows);
                }
                // The last rows are the program's own.
                let screen = dash.screen();
                let footer = screen.lines().last().expect("a row");
                assert!(!footer.contains("y approve  Tab"), "{screen}");
                answered(
                    &mut dash,
                    1,
                    AnsweredBy::Nobody,
                    Answer::Text { text: Arc::clone(&shared) },
                );
                clean(&mut dash, rows);
            }
        }
    }
}

/// The screen has no character that could control a terminal or hide, and no row more.
fn clean(dash: &mut Dash, rows: u16) {
    let screen = dash.screen();
    let bad = |c: char| c != '\n' && crate::base::visible::is_hostile(c);
    assert!(!screen.contains(bad), "{:?}", screen.find(bad));
    assert_eq!(screen.lines().count(), usize::from(rows));
}

/// A value that looks like the rows below the arguments has its mark, and the true row is below it.
#[test]
fn argument_cannot_pose_as_effects() {
    let args = json!({ "note": "ok\n\n", "effects": "reads only", "why": "Trust me." });
    let mut dash = dash_of(120, 36, &asked_about(call(args, Effects::Irreversible)));
    let screen = card(&mut dash, 0).screen();
    let [fake, real] = ["undeclared: reads only", "irreversible: it"].map(|it| row_of(&screen, it));
    assert!(fake < real, "{screen}");
    row_of(&screen, "undeclared: Trust me.");
}

/// The form of a server, as libraries write them.
fn server_form() -> Subject {
    let parameters = json!({
        "type": "object",
        "properties": {
            "name": {
                "type": "string", "title": "Full name", "description": "Your full, legal name",
                "minLength": 2,
            },
            "email": { "type": "string", "format": "email", "description": "Where we write to" },
            "pieces": { "type": "integer", "minimum": 1.0, "maximum": 9.0, "default": 2 },
            "hero": {
                "type": "string", "title": "Hero",
                "oneOf": [{ "const": "h1", "title": "Superman" }, { "const": "h2", "title": "Batman" }],
                "default": "h1",
            },
            "size": { "type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"] },
            "fish": {
                "type": "array", "maxItems": 2,
                "items": { "anyOf": [{ "const": "f1", "title": "Tuna" }, { "const": "f2", "title": "Cod" },
                    { "const": "f3", "title": "Eel" }] },
                "default": ["f1"],
            },
            "gift": { "anyOf": [{ "type": "boolean" }, { "type": "null" }], "default": null },
        },
        "required": ["name"],
    });
    let text = "What do you want to order?".into();
    Subject::Input { tool: "shop".into(), text, parameters: parameters.into() }
}

#[test]
fn form_shows_titles_and_choices() {
    for (cols, rows) in SIZES {
        let mut dash = dash_of(cols, rows, &asked_about(server_form()));
        card(&mut dash, 0);
        shows(&dash, &["What do you want to order?", "Full name", "Your full, legal name"]);
        shows(&dash, &["at least 2 characters, required"]);
        shows(dash.press("Tab"), &["email", "Where we write to", "email address"]);
        shows(dash.press("Tab"), &["integer, 1 to 9"]);
        shows(dash.press("Tab"), &["< Superman >"]);
        shows(dash.press("Right Tab"), &["< Batman >", "< not given >"]);
        shows(dash.press("Right Tab"), &["< Small >", "[x] Tuna  [ ] Cod", "at most 2 of them"]);
    }
}

#[test]
fn form_checks_formats_and_bounds() {
    let mut dash = dash_of(120, 36, &asked_about(server_form()));
    card(&mut dash, 0);
    shows(dash.press("C-s"), &["! the field `Full name` is missing"]);
    dash.text("A");
    shows(dash.press("C-s"), &["! the field `Full name` has fewer than 2 characters"]);
    dash.text("nn").press("Tab").text("not an email");
    shows(dash.press("C-s"), &["! the field `email` is no email address"]);
    dash.press(&"Backspace ".repeat(12)).press("Tab Backspace").text("12");
    shows(dash.press("C-s"), &["! the field `pieces` is more than 9"]);
    dash.press("Backspace Backspace").text("3").press("Tab Right Tab Right Right Tab");
    // All three of the fish are too many.
    dash.press("Right Space Right Space");
    shows(dash.press("C-s"), &["! the field `fish` has more than 2 values"]);
    dash.press("Space Tab Right");
    dash.asked();
    dash.press("C-s");
    let sent = json!({
        "name": "Ann", "pieces": 3, "hero": "h2", "size": "l", "fish": ["f1", "f2"], "gift": true,
    });
    let [(_, Answer::Approve { args: Some(args) }, _)] = &answers(&mut dash)[..] else {
        panic!("one answer:\n{}", dash.screen())
    };
    assert_eq!(**args, sent);
}
