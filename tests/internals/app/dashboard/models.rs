//! The model field of the launch form, and the window in which a model is chosen.

use std::sync::Arc;

use crate::log::event::RunId;
use crate::scenario;
use crate::scenario::catalogue::{LiveOffer, RequestedModel};
use crate::screen::effect::{LaunchRequest, RequestId, RunBeginning};
use crate::screen::form::models::OfferedModels;
use crate::screen::form::{FieldId, LaunchForm};
use crate::screen::keymap::Context;
use crate::screen::state::DisplaySettings;
use crate::screen::{Effect, Msg};

use super::command_line::of_command_line;
use super::form::{form, goto};
use crate::support::screen::{Dash, answer, listing, lists_wanted, own, place, ready, with_key};

/// The form of a person's own file.
fn open() -> Dash {
    let text = scenario::shipped()[0].text;
    let mut dash = Dash::over(120, 36, vec![own("mine.toml", text)], DisplaySettings::default());
    dash.text("n");
    dash
}

/// The same, with live chosen and the offer of its provider there.
fn live() -> Dash {
    let mut dash = open();
    goto(&mut dash, &FieldId::Model);
    dash.press("Left");
    answer(&mut dash, ready("small-1"), vec![with_key("example", "small-1")]);
    dash
}

/// The same, with its list.
fn with_list(names: &[&str]) -> Dash {
    let mut dash = live();
    let [(form, place)] = &lists_wanted(&mut dash)[..] else { panic!("one list") };
    dash.send(Msg::ModelsListed { form: *form, place: place.clone(), list: listing(names) });
    dash
}

/// The window opens over the model field.
fn choose(dash: &mut Dash) -> &mut Dash {
    goto(dash, &FieldId::ModelName);
    dash.press("Enter");
    assert_eq!(dash.state.context(), Context::Models);
    dash
}

fn model(form: &LaunchForm) -> Option<String> {
    form.fields.chosen_model().map(|model| model.to_string())
}

#[test]
fn live_choice_triggers_each_request_once() {
    let mut dash = open();
    for _ in 0..40 {
        dash.press("Tab");
        assert_ne!(form(&dash).fields.focus, FieldId::ModelName, "no model is asked offline");
    }
    assert!(dash.asked().is_empty());
    assert!(!dash.screen().contains("the default of Example"), "{}", dash.screen());
    goto(&mut dash, &FieldId::Model);
    dash.press("Left");
    assert!(dash.screen().contains("small-1  the default of Example"), "{}", dash.screen());
    match &dash.effects[..] {
        [Effect::FindLive(query), Effect::FindOllama { form }] => {
            assert_eq!((query.form, &query.model), (*form, &None));
        }
        other => panic!("{other:?}"),
    }
    answer(&mut dash, ready("small-1"), Vec::new());
    let [(_, asked)] = &lists_wanted(&mut dash)[..] else { panic!("one list") };
    assert_eq!(*asked, place("example"));
    // Away and back: nothing is asked again.
    goto(&mut dash, &FieldId::Model);
    dash.press("Right Left");
    assert!(dash.asked().is_empty());
}

#[test]
fn listed_model_starts_run() {
    let mut dash = with_list(&["big-2", "small-1", "small-2"]);
    choose(&mut dash).text("SMALL 2");
    assert!(!dash.screen().contains("big-2"), "{}", dash.screen());
    dash.press("Enter");
    assert_eq!(dash.state.context(), Context::Form);
    assert_eq!(model(form(&dash)).as_deref(), Some("example/small-2"));
    assert!(dash.screen().contains("example/small-2  chosen here"), "{}", dash.screen());
    assert!(!dash.screen().contains("key from the environment"), "that was said of another model");
    answer(&mut dash, ready("small-2"), Vec::new());
    assert!(lists_wanted(&mut dash).is_empty(), "the list is there");
    assert!(form(&dash).command_line().ends_with("mine.toml --live --model example/small-2"));
    dash.press("C-s");
    let request = dash.launch();
    assert_eq!(request.model, RequestedModel::Live(Some("example/small-2".into())));
}

#[test]
fn command_line_names_model() {
    let mut dash = Dash::new(120, 36);
    dash.text("n");
    goto(&mut dash, &FieldId::Model);
    dash.press("Left");
    for name in ["anthropic/claude haiku's", "-dashed"] {
        answer(&mut dash, ready("small-1"), Vec::new());
        choose(&mut dash).text(name).press("Enter");
        let (_, args) = of_command_line(&form(&dash).command_words());
        assert!(args.live);
        assert_eq!(args.model.as_deref(), Some(name));
    }
}

#[test]
fn typed_model_name_wins() {
    let mut dash = with_list(&["gpt-4", "gpt-4-turbo"]);
    choose(&mut dash).press("other/model Enter");
    assert_eq!(model(form(&dash)).as_deref(), Some("other/model"));
    answer(&mut dash, ready("model"), Vec::new());
    choose(&mut dash).press("gpt-4 Enter");
    assert_eq!(model(form(&dash)).as_deref(), Some("example/gpt-4"));
    answer(&mut dash, ready("gpt-4"), Vec::new());
    choose(&mut dash).press("turbo End Enter");
    assert_eq!(model(form(&dash)).as_deref(), Some("turbo"), "as it is typed");
    answer(&mut dash, ready("turbo"), Vec::new());
    // The first row takes the choice back.
    choose(&mut dash).press("Home Enter");
    assert_eq!(model(form(&dash)), None);
    assert!(!form(&dash).fields.get(&FieldId::ModelName).expect("a field").changed());
}

#[test]
fn late_list_keeps_selection() {
    let mut dash = live();
    choose(&mut dash).text("small");
    assert!(dash.screen().contains("loading the list"), "{}", dash.screen());
    let [(form_id, place)] = &lists_wanted(&mut dash)[..] else { panic!("one list") };
    let list = listing(&["a-small", "small-1"]);
    dash.send(Msg::ModelsListed { form: *form_id, place: place.clone(), list });
    assert!(dash.redraw && dash.screen().contains("a-small"), "{}", dash.screen());
    dash.press("Enter");
    assert_eq!(model(form(&dash)).as_deref(), Some("small"), "what was typed when Enter was meant");
}

#[test]
fn retries_only_failed_model_list() {
    let mut dash = live();
    let [(form_id, place)] = &lists_wanted(&mut dash)[..] else { panic!("one list") };
    let tell = |dash: &mut Dash, list| {
        dash.send(Msg::ModelsListed { form: *form_id, place: place.clone(), list });
    };
    tell(&mut dash, OfferedModels::NotGiven { status: 404 });
    choose(&mut dash);
    assert!(dash.screen().contains("gives no list (status 404): type a name"), "{}", dash.screen());
    dash.press("own Enter");
    assert_eq!(model(form(&dash)).as_deref(), Some("own"));
    answer(&mut dash, ready("own"), Vec::new());
    assert!(form(&dash).is_startable() && lists_wanted(&mut dash).is_empty());
    tell(
        &mut dash,
        OfferedModels::Failed { why: "401: the key is not taken. Check it.".to_owned() },
    );
    choose(&mut dash);
    let [(_, again)] = &lists_wanted(&mut dash)[..] else { panic!("asked again") };
    assert_eq!(again, place);
    tell(
        &mut dash,
        OfferedModels::Failed { why: "401: the key is not taken. Check it.".to_owned() },
    );
    let screen = dash.screen();
    assert!(screen.contains("the list could not be loaded"), "{screen}");
    assert!(screen.contains("401: the key is not taken. Check it."), "{screen}");
    assert!(form(&dash).is_startable(), "a run can be started all the same");
}

#[test]
fn several_keys_require_choice() {
    let mut dash = open();
    goto(&mut dash, &FieldId::Model);
    dash.press("Left");
    let providers = || vec![with_key("alpha", "a-1"), with_key("beta", "b-1")];
    answer(&mut dash, LiveOffer::Choose { why: "two keys".to_owned() }, providers());
    assert!(lists_wanted(&mut dash).is_empty(), "nobody is asked before one is chosen");
    let screen = dash.screen();
    assert!(screen.contains("several providers have a key"), "{screen}");
    dash.press("C-s");
    assert!(dash.asked().is_empty(), "nothing starts");
    assert_eq!(form(&dash).fields.focus, FieldId::ModelName, "the field that is to be filled");
    choose(&mut dash);
    let screen = dash.screen();
    for row in ["alpha/a-1", "beta/b-1", "with their default models", "key from the shell"] {
        assert!(screen.contains(row), "{row}: {screen}");
    }
    dash.press("Down Enter");
    assert_eq!(model(form(&dash)).as_deref(), Some("beta/b-1"));
    answer(&mut dash, ready("b-1"), providers());
    assert!(form(&dash).is_startable());
    dash.asked();
    dash.press("C-s");
    assert_eq!(dash.launch().model, RequestedModel::Live(Some("beta/b-1".into())));
}

#[test]
fn unusable_model_blocks_start() {
    let mut dash = live();
    choose(&mut dash).press("beta/b-1 Enter");
    let why = "no key for api.beta.com: BETA_KEY is not set";
    answer(&mut dash, LiveOffer::Missing { why: why.to_owned() }, Vec::new());
    assert!(dash.screen().contains(why), "{}", dash.screen());
    dash.press("C-s");
    assert!(dash.asked().is_empty());
    assert_eq!(form(&dash).fields.focus, FieldId::ModelName);
}

#[test]
fn shows_whole_missing_key_advice() {
    let why = "no key for api.openai.com: OPENAI_API_KEY is not set. export OPENAI_API_KEY=… (or \
               ANTHROPIC_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY), or put it into a .env file \
               here. An endpoint on this machine needs none: export \
               OPENAI_BASE_URL=http://localhost:…/v1. Without --live the scenario's script answers.";
    let mut dash = live();
    choose(&mut dash).press("beta/b-1 Enter");
    dash.send(Msg::Resize { cols: 80, rows: 24 });
    answer(&mut dash, LiveOffer::Missing { why: why.to_owned() }, Vec::new());
    let screen = dash.screen();
    let shown: Vec<&str> = screen.lines().map(|row| row.trim_matches(['║', ' '])).collect();
    let shown = shown.join(" ");
    assert!(shown.contains("scenario's script answers."), "{screen}");
    assert!(shown.contains("[ Start ]"), "{screen}");
    let short = screen.lines().find(|row| row.contains("Replies")).expect("a row");
    assert!(short.contains("no key for api.openai.com "), "{short}");
}

#[test]
fn available_key_replaces_missing_key() {
    let mut dash = open();
    goto(&mut dash, &FieldId::Model);
    dash.press("Left");
    let why = "roles.legal.model asks for beta/b-1: no key for api.beta.com";
    let missing = LiveOffer::Missing { why: why.to_owned() };
    answer(&mut dash, missing, vec![with_key("alpha", "a-1")]);
    assert!(!form(&dash).is_startable());
    choose(&mut dash).press("Enter");
    assert_eq!(model(form(&dash)).as_deref(), Some("alpha/a-1"));
    answer(&mut dash, ready("a-1"), Vec::new());
    assert!(form(&dash).is_startable());
}

#[test]
fn ignores_stale_model_replies() {
    let mut dash = live();
    let [(form_id, place)] = &lists_wanted(&mut dash)[..] else { panic!("one list") };
    let other = RequestId(form_id.0 + 1000);
    let before = dash.screen();
    dash.send(Msg::ModelsListed {
        form: other,
        place: place.clone(),
        list: OfferedModels::Failed { why: "of another form".to_owned() },
    });
    assert!(!dash.redraw);
    choose(&mut dash).press("new/model Enter");
    let late = crate::screen::form::models::LiveQueryResult {
        offer: LiveOffer::Missing { why: "of the model before".to_owned() },
        providers: Vec::new(),
    };
    dash.send(Msg::LiveFound { form: *form_id, model: None, found: Box::new(late) });
    assert!(!dash.redraw && !dash.screen().contains("of the model before"), "{before}");
    // A closed form ignores the answer.
    let mut dash = live();
    dash.press("Esc y");
    dash.asked();
    dash.send(Msg::ModelsListed { form: *form_id, place: place.clone(), list: listing(&["a"]) });
    assert!(!dash.redraw && dash.asked().is_empty());
}

#[test]
fn offers_local_ollama_beside_provider() {
    let mut dash = with_list(&["small-1"]);
    let (ollama, list) = (place("ollama"), listing(&["llama3.2"]));
    dash.send(Msg::ModelsListed { form: RequestId(1), place: ollama, list });
    choose(&mut dash).press("llama Enter");
    assert_eq!(model(form(&dash)).as_deref(), Some("ollama/llama3.2"));
}

#[test]
fn current_provider_lists_first() {
    let mut dash = live();
    let [(form, at)] = &lists_wanted(&mut dash)[..] else { panic!("one list") };
    let (form, at) = (*form, at.clone());
    dash.send(Msg::ModelsListed { form, place: place("ollama"), list: listing(&["of-ollama"]) });
    dash.send(Msg::ModelsListed { form, place: at, list: listing(&["of-example"]) });
    let screen = choose(&mut dash).screen();
    let line = |text: &str| screen.lines().position(|line| line.contains(text)).expect("shown");
    assert!(line("of-example") < line("of-ollama"), "{screen}");
}

#[test]
fn field_starts_with_requested_model() {
    let mut dash = Dash::new(120, 36);
    dash.state.model = Some("alpha/a-1".into());
    dash.text("n");
    assert_eq!(model(form(&dash)).as_deref(), Some("alpha/a-1"));
    assert!(!form(&dash).fields.changed());
    assert_eq!(form(&dash).command_line(), "roundtable run checkout-launch", "offline: no model");
    goto(&mut dash, &FieldId::Model);
    dash.press("Left");
    assert!(dash.screen().contains("alpha/a-1  from the command line"), "{}", dash.screen());
    answer(&mut dash, ready("a-1"), Vec::new());
    assert!(form(&dash).command_line().ends_with("--live --model alpha/a-1"));
    choose(&mut dash).press("beta/b-1 Enter");
    answer(&mut dash, ready("b-1"), Vec::new());
    dash.asked();
    dash.press("C-s");
    let request = dash.launch();
    // The run has started; n on its screen launches it again.
    let facts = crate::support::screen::facts("checkout-launch", &[], &[], Default::default());
    let run = RunId::new("r-0001");
    let (id, zero) = (request.id, dash.now);
    dash.send(Msg::Started { request: id, run: run.clone(), zero, launch: Some(request) });
    dash.send(Msg::Events { run, events: facts });
    dash.text("n");
    assert_eq!(model(form(&dash)).as_deref(), Some("beta/b-1"));
    assert_eq!(form(&dash).command_line(), "roundtable run checkout-launch", "live is asked anew");
    goto(&mut dash, &FieldId::Model);
    dash.press("Left");
    assert!(dash.screen().contains("beta/b-1  as in r-0001"), "{}", dash.screen());
}

#[test]
fn paste_becomes_one_visible_line() {
    let mut dash = live();
    goto(&mut dash, &FieldId::ModelName);
    dash.send(Msg::Paste("\n  o\u{1b}[2Jther/model  \nsecond".to_owned()));
    assert_eq!(dash.state.context(), Context::Models);
    dash.press("Enter");
    assert_eq!(model(form(&dash)).as_deref(), Some("o␛[2Jther/model"));
    choose(&mut dash).send(Msg::Paste("m".repeat(5_000)));
    dash.press("Enter");
    assert_eq!(model(form(&dash)).map(|name| name.len()), Some(200));
}

#[test]
fn model_list_scrolls_and_takes_clicks() {
    let names: Vec<String> = (0..300).map(|nth| format!("model-{nth:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut dash = with_list(&names);
    choose(&mut dash).press("End");
    let screen = dash.screen();
    assert!(screen.contains("model-299") && screen.contains("300 models"), "{screen}");
    dash.press("PgUp PgUp Home");
    assert!(dash.screen().contains("model-000"));
    dash.text("-2");
    assert!(dash.screen().contains("100 of 300 models"), "{}", dash.screen());
    let row = dash.screen().lines().position(|line| line.contains("model-203")).expect("a row");
    let row = u16::try_from(row).expect("small");
    dash.click(40, row);
    assert_eq!(dash.state.context(), Context::Models, "a click selects");
    dash.click(40, row);
    assert_eq!(model(form(&dash)).as_deref(), Some("example/model-203"));
    choose(&mut dash).click(1, 1);
    assert_eq!(dash.state.context(), Context::Form, "a click beside it closes it");
}

#[test]
fn next_message_keeps_model() {
    let scenario = scenario::shipped().iter().find(|one| one.name == "support-swarm").expect("it");
    let scenario = scenario::load(scenario.text, scenario.origin(), &[]).expect("good");
    let request = LaunchRequest {
        id: RequestId(900),
        scenario: Arc::new(scenario),
        model: RequestedModel::Live(Some("beta/b-1".into())),
        flags: Vec::new(),
        seed: None,
        begins: RunBeginning::New,
    };
    let mut dash = Dash::new(120, 36);
    let run = RunId::new("r-0001");
    let (id, zero) = (request.id, dash.now);
    let launch = Some(Box::new(request));
    dash.send(Msg::Started { request: id, run: run.clone(), zero, launch });
    let events = crate::support::screen::facts("support-swarm", &[], &[], Default::default());
    dash.send(Msg::Events { run, events });
    dash.press("i 'And now?' C-s");
    let next = dash.launch();
    assert_eq!(next.model, RequestedModel::Live(Some("beta/b-1".into())));
}
