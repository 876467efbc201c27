//! The launch form.

use crate::scenario;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::patterns::PatternSpec;
use crate::scenario::{Consent, ConsentAbout};
use crate::screen::form::{FieldId, FieldValue, LaunchForm};
use crate::screen::keymap::Context;
use crate::screen::state::DisplaySettings;
use crate::screen::windows::Overlay;
use crate::screen::{Effect, Msg};

use super::command_line::of_command_line;
use crate::support::screen::{Dash, own};

pub fn form(dash: &Dash) -> &LaunchForm {
    match dash.state.overlays.last() {
        Some(Overlay::Form(form)) => form,
        other => panic!("no form: {other:?}"),
    }
}

pub fn goto(dash: &mut Dash, id: &FieldId) {
    for _ in 0..form(dash).fields.list.len() {
        if form(dash).fields.focus == *id {
            return;
        }
        dash.press("Tab");
    }
    panic!("no field {id:?}");
}

/// Empties the focused text and types another.
pub fn retype(dash: &mut Dash, text: &str) {
    dash.press("Home C-k").text(text);
}

#[test]
fn prefilled_form_starts_on_enter() {
    let mut dash = Dash::new(80, 24);
    dash.text("n");
    assert_eq!(form(&dash).fields.focus, FieldId::Start);
    assert_eq!(form(&dash).command_line(), "roundtable run checkout-launch");
    dash.press("Enter");
    let request = dash.launch();
    assert_eq!(request.model, RequestedModel::Scripted { instant: false });
    assert_eq!(request.scenario.name.as_str(), "checkout-launch");
    assert!(request.flags.is_empty() && request.seed.is_none());
    assert!(dash.state.overlays.is_empty(), "the form is gone");
}

#[test]
fn forty_pasted_lines_go_in_whole() {
    let mut dash = Dash::new(80, 24);
    dash.text("n");
    goto(&mut dash, &FieldId::Goal);
    let lines: Vec<String> =
        (1..=40).map(|line| format!("line {line}: is it 宽 \"safe\"?")).collect();
    dash.press("Enter");
    dash.send(Msg::Paste(lines.join("\n")));
    assert!(dash.effects.is_empty(), "a paste presses nothing");
    dash.press("C-s");
    let request = dash.launch();
    assert!(request.scenario.goal.ends_with(&lines.join("\n")));
    assert_eq!(request.scenario.goal.lines().count(), 41);
}

/// Joiners stay where they join letters or pictures.
#[test]
fn paste_escapes_control_characters() {
    for (pasted, written, said) in [
        ("go\u{1b}[2J\u{202e}now\ttab", "go␛[2J\u{fffd}now    tab", "2 control characters"),
        (
            "می\u{200c}خواهم 👩\u{200d}🚀 ad\u{200d}min",
            "می\u{200c}خواهم 👩\u{200d}🚀 ad\u{fffd}min",
            "1 control character",
        ),
    ] {
        let mut dash = Dash::new(80, 24);
        dash.text("n");
        goto(&mut dash, &FieldId::Goal);
        dash.send(Msg::Paste(pasted.to_owned()));
        let goal = form(&dash).fields.get(&FieldId::Goal).expect("a goal").text();
        assert!(goal.ends_with(written), "{goal}");
        assert!(dash.state.notices.current().expect("said").text.contains(said), "{pasted}");
    }
}

#[test]
fn refuses_oversized_paste() {
    let mut dash = Dash::new(80, 24);
    dash.text("n");
    goto(&mut dash, &FieldId::Goal);
    let before = form(&dash).fields.get(&FieldId::Goal).expect("a goal").text();
    dash.send(Msg::Paste("x".repeat(300 * 1024)));
    assert_eq!(form(&dash).fields.get(&FieldId::Goal).expect("a goal").text(), before);
    assert!(dash.state.notices.current().expect("said").text.contains("nothing was inserted"));
}

#[test]
fn enter_breaks_text_and_leaves_number() {
    let mut dash = Dash::new(120, 36);
    dash.text("n");
    goto(&mut dash, &FieldId::Goal);
    assert_eq!(dash.state.context(), Context::FormText);
    dash.press("Enter 'and q ? n'");
    let goal = form(&dash).fields.get(&FieldId::Goal).expect("a goal").text();
    assert!(goal.ends_with("\nand q ? n"), "{goal}");
    goto(&mut dash, &FieldId::Limit("budget.max_rounds"));
    dash.press("Enter");
    assert_eq!(form(&dash).fields.focus, FieldId::Limit("budget.max_messages"));
}

#[test]
fn field_error_blocks_start() {
    let mut dash = Dash::new(120, 36);
    dash.text("n");
    let rounds = FieldId::Limit("budget.max_rounds");
    goto(&mut dash, &rounds);
    retype(&mut dash, "0");
    let fault = form(&dash).problem_of(&rounds).expect("a fault").clone();
    assert!(fault.error, "{fault:?}");
    assert!(dash.screen().contains(&fault.text[..20]), "{}", dash.screen());
    goto(&mut dash, &FieldId::Start);
    dash.press("Enter");
    assert!(dash.asked().is_empty(), "nothing is started");
    assert!(dash.screen().contains("Not started"), "{}", dash.screen());
    assert_eq!(form(&dash).fields.focus, rounds, "the field has the keys");
    retype(&mut dash, "2");
    assert!(form(&dash).is_startable(), "{:?}", form(&dash).problems);
    dash.press("C-s");
    let request = dash.launch();
    let PatternSpec::Collaboration(spec) = &request.scenario.pattern else {
        panic!("a collaboration");
    };
    assert_eq!(spec.budget.max_rounds, 2);
}

#[test]
fn limits_and_seed_report_errors() {
    let mut dash = Dash::new(120, 36);
    dash.text("n");
    let limits =
        ["budget.max_rounds", "budget.max_messages", "budget.max_seconds", "budget.min_go_votes"];
    let limits = limits.into_iter().map(FieldId::Limit);
    for id in limits.chain([FieldId::Seed]) {
        for wrong in ["", "-1", "many", "1.5", "99999999999999999999"] {
            goto(&mut dash, &id);
            retype(&mut dash, wrong);
            assert!(
                form(&dash).problem_of(&id).is_some_and(|fault| fault.error),
                "{id:?}={wrong:?}"
            );
        }
        retype(&mut dash, "2");
        assert!(form(&dash).problem_of(&id).is_none_or(|fault| !fault.error), "{id:?}=2");
    }
}

#[test]
fn unedited_goal_follows_inputs() {
    let mut dash = Dash::new(120, 36);
    dash.text("n");
    let region = FieldId::Input("region".into());
    goto(&mut dash, &region);
    dash.press("Right");
    let goal = form(&dash).fields.get(&FieldId::Goal).expect("a goal");
    assert!(goal.text().contains("in EU"), "{}", goal.text());
    assert!(!goal.changed());
    assert_eq!(form(&dash).command_line(), "roundtable run checkout-launch --set inputs.region=EU");
    dash.press("Right");
    assert_eq!(form(&dash).command_line(), "roundtable run checkout-launch", "back as it was");
    // An edited one is the person's own.
    goto(&mut dash, &FieldId::Goal);
    dash.text("!");
    goto(&mut dash, &region);
    dash.press("Right");
    assert!(form(&dash).fields.get(&FieldId::Goal).expect("a goal").text().contains("in US"));
}

#[test]
fn command_line_shows_flags_and_model() {
    let mut dash = Dash::new(120, 36);
    dash.text("n");
    goto(&mut dash, &FieldId::Flag("legal_analyst".into()));
    dash.press("Space");
    goto(&mut dash, &FieldId::Model);
    dash.press("Right");
    let line = form(&dash).command_line();
    assert_eq!(line, "roundtable run checkout-launch --flag legal_analyst=on --instant");
    let (_, args) = of_command_line(&form(&dash).command_words());
    assert!(args.instant && args.flags[0].on && args.flags[0].name.as_str() == "legal_analyst");
    dash.text("y");
    assert!(matches!(&dash.asked()[..], [Effect::Copy(text)] if *text == line));
    goto(&mut dash, &FieldId::Start);
    dash.press("Enter");
    let request = dash.launch();
    assert_eq!(request.model, RequestedModel::Scripted { instant: true });
    assert_eq!(request.flags, [("legal_analyst".into(), true)]);
}

#[test]
fn missing_key_blocks_live_start() {
    let mut dash = Dash::new(120, 36);
    dash.text("n");
    goto(&mut dash, &FieldId::Model);
    dash.press("Left");
    assert!(dash.screen().contains("set OPENAI_API_KEY"));
    dash.asked();
    dash.press("C-s");
    assert!(dash.asked().is_empty());
    assert_eq!(form(&dash).fields.focus, FieldId::Model);
}

#[test]
fn live_start_asks_about_foreign_file() {
    let text = scenario::shipped()[0].text;
    let mut dash = Dash::over(120, 36, vec![own("mine.toml", text)], DisplaySettings::default());
    dash.text("n");
    goto(&mut dash, &FieldId::Model);
    dash.press("Left");
    let screen = dash.screen();
    assert!(screen.contains("at api.example.com, key from the environment"), "{screen}");
    assert!(screen.contains("small-1  the default of Example"), "{screen}");
    dash.asked();
    assert!(form(&dash).command_line().ends_with("mine.toml --live"));
    dash.press("C-s");
    let request = dash.launch();
    assert_eq!(request.model, RequestedModel::Live(None));
    let would = vec!["It sends its goal and facts to api.example.com.".to_owned()];
    let consent = consent(&would);
    dash.send(Msg::Untrusted { request: request.clone(), consent: consent.clone() });
    assert!(dash.screen().contains(&would[0]));
    dash.text("n");
    assert!(dash.asked().is_empty() && dash.state.starting.is_empty(), "no is no");
    dash.send(Msg::Untrusted { request: request.clone(), consent: consent.clone() });
    dash.text("y");
    match &dash.asked()[..] {
        [Effect::Trust { digests, .. }, Effect::Start(again)] => {
            assert_eq!(*digests, consent.digests, "what was shown is what is allowed");
            assert_eq!(again.id, request.id);
        }
        other => panic!("{other:?}"),
    }
}

/// A question about these actions.
fn consent(would: &[String]) -> Consent {
    Consent {
        about: ConsentAbout::Scenario,
        digests: vec!["of the file".to_owned(), "of a value".to_owned()],
        scope: "this version of the file",
        is_of_file: true,
        would: would.to_vec(),
        not_kept: None,
    }
}

/// A dashboard of this size that asks whether a foreign file may do this.
fn asking(cols: u16, rows: u16, would: &[&str]) -> Dash {
    let text = scenario::shipped()[0].text;
    let mut dash = Dash::over(80, 24, vec![own("mine.toml", text)], DisplaySettings::default());
    dash.press("Enter").send(Msg::Resize { cols, rows });
    let request = dash.launch();
    let would: Vec<String> = would.iter().map(|line| (*line).to_owned()).collect();
    let consent = consent(&would);
    dash.send(Msg::Untrusted { request, consent });
    dash
}

#[test]
fn consent_says_why_not_kept() {
    let mut dash = asking(80, 24, &["run sh -c true"]);
    let screen = dash.screen();
    assert!(screen.contains("Remembered for this version of the file."), "{screen}");
    dash.press("n Enter");
    let request = dash.launch();
    let scope = "this version of the file and of its programs";
    let consent = Consent { scope, ..consent(&["run ./x.sh".to_owned()]) };
    dash.send(Msg::Untrusted { request: request.clone(), consent: consent.clone() });
    let screen = dash.screen();
    assert!(screen.contains("this version of the file and of its programs."), "{screen}");
    let not_kept = Some("trusted is not used: others can write to it".to_owned());
    dash.text("n").send(Msg::Untrusted { request, consent: Consent { not_kept, ..consent } });
    assert!(dash.screen().contains("Remembered until you quit: trusted is not used"));
}

#[test]
fn consent_requires_reading_to_end() {
    let long = format!("run sh -c echo harmless {}; rm -rf everything", "; true ".repeat(400));
    for (cols, rows) in [(60, 16), (80, 24), (120, 36)] {
        let mut dash = asking(cols, rows, &[&long]);
        let said = |dash: &Dash| dash.state.notices.current().map(|it| it.text.clone());
        assert!(!dash.screen().contains("everything"), "its end is out of view");
        assert!(dash.screen().contains("below: j, PgDn, G"), "{}", dash.screen());
        dash.text("y");
        assert!(dash.asked().is_empty(), "nothing is allowed unseen");
        assert!(
            said(&dash).is_some_and(|it| it.starts_with("Read to the end first: ")),
            "{:?}",
            said(&dash)
        );
        dash.press("jj PgDn G");
        assert!(dash.screen().contains("everything"), "{}", dash.screen());
        assert!(dash.screen().contains("above: k"), "{}", dash.screen());
        dash.press("Enter");
        assert!(dash.asked().is_empty(), "Enter is no yes");
        dash.text("gy");
        assert!(matches!(&dash.asked()[..], [Effect::Trust { .. }, Effect::Start(_)]));
    }
}

#[test]
fn tiny_screen_accepts_no_consent() {
    let mut dash = asking(20, 5, &["run sh -c true"]);
    dash.text("y");
    assert!(dash.asked().is_empty(), "a screen that shows nothing answers nothing");
    dash.send(Msg::Resize { cols: 80, rows: 24 }).text("y");
    assert!(matches!(&dash.asked()[..], [Effect::Trust { .. }, Effect::Start(_)]));
}

#[test]
fn escape_asks_before_discarding_changes() {
    let mut dash = Dash::new(80, 24);
    dash.press("n Esc");
    assert_eq!(dash.state.context(), Context::Home);
    dash.text("n");
    goto(&mut dash, &FieldId::Goal);
    dash.press("x Esc");
    assert_eq!(dash.state.context(), Context::Form, "out of the text first");
    dash.press("Esc");
    assert_eq!(dash.state.context(), Context::Confirm);
    dash.press("Esc");
    assert_eq!(dash.state.context(), Context::Form, "no: the form is as it was");
    dash.press("Esc y");
    assert_eq!(dash.state.context(), Context::Home);
}

#[test]
fn focused_field_stays_visible() {
    for (cols, rows) in [(60, 16), (80, 24), (120, 36), (200, 50)] {
        let mut dash = Dash::new(cols, rows);
        dash.text("n");
        for _ in 0..form(&dash).fields.list.len() {
            dash.press("Tab");
            let field = form(&dash).fields.get(&form(&dash).fields.focus).expect("a field");
            let label = match field.value {
                FieldValue::Button => format!("[ {} ]", field.label),
                _ => format!(">{}", field.label),
            };
            assert!(dash.screen().contains(&label), "{label} at {cols}x{rows}\n{}", dash.screen());
        }
    }
}

#[test]
fn arrows_leave_text_at_ends() {
    let mut dash = Dash::new(120, 36);
    dash.text("n");
    goto(&mut dash, &FieldId::Limit("budget.max_rounds"));
    dash.press("Down");
    assert_eq!(form(&dash).fields.focus, FieldId::Limit("budget.max_messages"));
    dash.press("Up Up");
    assert_eq!(form(&dash).fields.focus, FieldId::Flag("legal_analyst".into()));
}

#[test]
fn a_broken_scenario_has_no_form() {
    let entry = own("broken.toml", "title = 1\npattern = \"none\"\n");
    let mut dash = Dash::over(120, 36, vec![entry], DisplaySettings::default());
    dash.text("n");
    assert!(dash.state.overlays.is_empty());
    assert!(dash.state.notices.current().is_some());
    dash.press("Enter");
    assert!(dash.asked().is_empty(), "nor does it start");
}

#[test]
fn form_escapes_file_text() {
    let text =
        scenario::shipped().iter().find(|one| one.name == "checkout-launch").expect("it").text;
    let text = text.replace("Decide whether", "\\u202eDecide\\u001b[31m\\U000E0041 whether");
    let mut dash = Dash::over(120, 36, vec![own("mine.toml", &text)], DisplaySettings::default());
    dash.text("n");
    let hostile = |symbol: &str| symbol.chars().any(crate::base::visible::is_hostile);
    assert!(
        form(&dash)
            .fields
            .get(&FieldId::Goal)
            .expect("a goal")
            .text()
            .chars()
            .any(|c| c == '\u{202e}')
    );
    assert!(!dash.draw().content().iter().any(|cell| hostile(cell.symbol())));
    assert!(!form(&dash).fields.changed(), "what is shown changes nothing");
    let screen = dash.screen();
    assert!(screen.contains("Goal: contains 3 invisible characters"), "{screen}");
}

#[test]
fn start_refusal_closes_with_form() {
    let refused = |dash: &mut Dash| {
        dash.text("n");
        goto(dash, &FieldId::Limit("budget.max_rounds"));
        retype(dash, "0");
        dash.press("C-s");
        let said = &dash.state.notices.current().expect("said").text;
        assert!(said.starts_with("Not started: 1 problem"), "{said}");
    };
    // Closed.
    let mut dash = Dash::new(80, 24);
    refused(&mut dash);
    dash.press("Esc Esc");
    assert!(dash.state.notices.current().is_some(), "the form is still there behind the question");
    dash.text("y");
    assert!(dash.state.notices.current().is_none());
    // Edited.
    refused(&mut dash);
    dash.text("1");
    assert!(dash.state.notices.current().is_none());
    // Started.
    refused(&mut dash);
    retype(&mut dash, "2");
    dash.press("C-s");
    dash.launch();
    assert!(dash.state.notices.current().is_none() && dash.state.overlays.is_empty());
}

#[test]
fn navigation_types_nothing() {
    let mut dash = Dash::new(80, 24);
    dash.text("n").text("jjjjkkkkkkjG");
    assert!(!form(&dash).fields.changed(), "{}", form(&dash).command_line());
    dash.text("g");
    assert_eq!(form(&dash).fields.focus, FieldId::Goal);
    assert_eq!(dash.state.context(), Context::Form);
    let row = dash.screen().lines().last().expect("a key row").to_owned();
    assert!(row.contains("move") && row.contains("edit"), "{row}");
    dash.text("Z");
    assert!(!form(&dash).fields.changed());
    let said = &dash.state.notices.current().expect("said").text;
    assert_eq!(said, "Press Enter to edit this field.");
    dash.press("Enter jk");
    assert_eq!(dash.state.context(), Context::FormText);
    assert!(form(&dash).fields.get(&FieldId::Goal).expect("a goal").text().ends_with("jk"));
    let row = dash.screen().lines().last().expect("a key row").to_owned();
    assert!(!row.contains("move") && row.contains("Esc leave text"), "{row}");
    dash.press("Esc jk");
    assert_eq!(form(&dash).fields.focus, FieldId::Goal, "down and up again");
    assert!(
        form(&dash)
            .fields
            .get(&FieldId::Goal)
            .expect("a goal")
            .text()
            .ends_with("stands behind.jk")
    );
    // A paste needs no Enter.
    dash.send(Msg::Paste("pasted".to_owned()));
    assert!(form(&dash).fields.get(&FieldId::Goal).expect("a goal").text().ends_with("jkpasted"));
}

#[test]
fn single_line_field_pastes_first_line() {
    let lines: Vec<String> = (1..=40).map(|line| format!("{line}")).collect();
    for id in
        [FieldId::Input("campaign".into()), FieldId::Limit("budget.max_rounds"), FieldId::Seed]
    {
        let mut dash = Dash::new(80, 24);
        dash.text("n");
        goto(&mut dash, &id);
        retype(&mut dash, "");
        dash.send(Msg::Paste(lines.join("\n")));
        assert_eq!(form(&dash).fields.get(&id).expect("it").text(), "1", "{id:?}");
        let said = &dash.state.notices.current().expect("said").text;
        assert_eq!(said, "This field has one line: 39 more pasted lines left out.");
    }
    // A line end behind the one line is nothing to speak of.
    let mut dash = Dash::new(80, 24);
    dash.text("n");
    goto(&mut dash, &FieldId::Seed);
    retype(&mut dash, "");
    dash.send(Msg::Paste("12\n".to_owned()));
    assert_eq!(form(&dash).fields.get(&FieldId::Seed).expect("a seed").text(), "12");
    assert!(dash.state.notices.current().is_none());
}

#[test]
fn small_screen_names_hidden_fields() {
    let entries = scenario::shipped().len();
    for at in 0..entries {
        let mut dash = Dash::new(80, 24);
        dash.text("g").text(&"j".repeat(at)).text("n");
        let screen = dash.screen();
        assert!(screen.contains("Replies") && screen.contains("scripted"), "{screen}");
        let (form, size) = (form(&dash), dash.state.size);
        let layout = form.layout(size);
        let [above, below] = layout.hidden();
        assert!(above.is_empty());
        if let Some(first) = below.first().and_then(|id| form.fields.get(id)) {
            let first = &first.label;
            let said = format!("↓ {} more: {first}", below.len());
            assert!(screen.contains(&said), "{said}\n{screen}");
        }
    }
    let mut dash = Dash::new(80, 24);
    dash.text("n");
    let said = "↓ 3 more: Max messages, Max seconds, Go votes needed";
    assert!(dash.screen().contains(said), "{}", dash.screen());
    goto(&mut dash, &FieldId::Limit("budget.min_go_votes"));
    assert!(dash.screen().contains("↑ 1 more: Goal"), "{}", dash.screen());
}
