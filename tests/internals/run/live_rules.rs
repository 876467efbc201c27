//! What a live run of collaboration does beyond the source document, what its rows and vetoes decide,
//! and what a run that is continued keeps of the rules that it began with.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::engine::{Launch, ModelChoice, Resumption};
use crate::log::bus::Recording;
use crate::log::event::{
    AttemptFailed, Event, EventKind, FailureClass, Initiator, ModelLabel, Purpose, Reply, World,
};
use crate::model::{ChatModel, ChatRequest, Listener, failure};
use crate::scenario::spec::InDoubt;
use crate::scenario::{Scenario, load, shipped};
use crate::support::table;
use crate::support::table::{BRIEF, engine, facts, outcome, says};

/// How long a reply takes, and its text; `None`: the endpoint fails.
type Said = (u64, Option<String>);

type Answers = dyn Fn(&Purpose, &Value) -> Said + Send + Sync;

/// A model of a live run that says what a function of the purpose and the payload returns.
struct Speaker {
    say: Box<Answers>,
    /// The system prompt and the payload of each request.
    asked: Mutex<Vec<(String, Value)>>,
}

impl ChatModel for Speaker {
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        _: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<AttemptFailed>>> {
        let messages: Vec<_> = request.messages.iter().collect();
        let payload: Value = serde_json::from_str(&messages[1].content).expect("a payload");
        let (takes_ms, text) = (self.say)(&request.purpose, &payload);
        self.asked.lock().expect("a lock").push((messages[0].content.to_string(), payload));
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(takes_ms)).await;
            match text {
                Some(text) => Ok(Reply::from_agent_text(text.into())),
                None => Err(failure(FailureClass::Reset, "gone")),
            }
        })
    }

    fn label(&self) -> ModelLabel {
        ModelLabel::Live { name: "speaker".to_owned(), host: "localhost".to_owned() }
    }
}

fn speaker(say: impl Fn(&Purpose, &Value) -> Said + Send + Sync + 'static) -> Arc<Speaker> {
    Arc::new(Speaker { say: Box::new(say), asked: Mutex::default() })
}

fn live(scenario: &Arc<Scenario>, model: &Arc<Speaker>) -> Launch {
    let model: Arc<dyn ChatModel> = Arc::clone(model) as Arc<dyn ChatModel>;
    let model = ModelChoice::Live(model.into(), Duration::from_secs(60));
    Launch { model, ..Launch::scripted(Arc::clone(scenario), false) }
}

fn contribution(role: &str, stance: &str) -> Value {
    json!({
        "agent": role,
        "stance": stance,
        "summary": format!("{role} argues {stance}"),
        "confidence": 0.8,
        "actions": [format!("act of {role}")],
    })
}

/// The role of a seat that is asked; `None`: it is the brief.
fn role(purpose: &Purpose) -> Option<String> {
    match purpose {
        Purpose::Contribution { role, .. } => Some(role.to_string()),
        _ => None,
    }
}

/// All say go at once, and the brief follows.
fn agree(purpose: &Purpose) -> Said {
    match role(purpose) {
        Some(role) => (10, Some(contribution(&role, "go").to_string())),
        None => (10, Some("The brief.".to_owned())),
    }
}

#[tokio::test(start_paused = true)]
async fn seats_read_previous_round_arguments() {
    let found = shipped().iter().find(|it| it.name == "checkout-launch").expect("shipped");
    let scenario = Arc::new(load(found.text, found.origin(), &[]).expect("a good scenario"));
    let model = speaker(|purpose, _| match purpose {
        Purpose::Contribution { round: 1, role, .. } if role.as_str() == "risk_analyst" => {
            (10, Some(contribution("risk_analyst", "block").to_string()))
        }
        _ => agree(purpose),
    });
    let decided = outcome(live(&scenario, &model)).await;
    assert_eq!(decided["rounds_used"], 2, "{decided}");
    let asked = model.asked.lock().expect("a lock").clone();
    let second = asked.iter().find(|(_, payload)| {
        payload["role"] == "demand_analyst" && payload["recent_rounds"] != json!([])
    });
    let (system, payload) = second.expect("demand is asked in round 2");
    let risk = &payload["recent_rounds"][0]["stances"][2];
    assert_eq!(risk["summary"], "risk_analyst argues block");
    assert_eq!(risk["actions"], json!(["act of risk_analyst"]));
    assert!(system.contains("never an instruction"), "{system}");
    assert_eq!(payload["flags"], json!({ "legal_analyst": false }));
}

#[tokio::test(start_paused = true)]
async fn a_missing_agent_is_filled_in() {
    let scenario = table::scenario(BRIEF, &[]);
    let mut short = contribution("a", "go");
    short.as_object_mut().expect("an object").remove("agent");
    let model = speaker(move |purpose, _| match role(purpose).as_deref() {
        Some("a") => (10, Some(short.to_string())),
        _ => agree(purpose),
    });
    let log = facts(&engine().start(live(&scenario, &model))).await;
    let repairs: Vec<_> = log
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ReplyRepaired { repair, changed } => Some((&**repair, &**changed)),
            _ => None,
        })
        .collect();
    assert_eq!(repairs, [("agent", "agent: a")]);
    let decided = outcome(live(&scenario, &model)).await;
    assert_eq!(decided["final_decision"], "go");
    assert_eq!(decided["history"][0]["contributions"][0]["agent"], "a");

    let wrong = speaker(|purpose, _| match role(purpose).as_deref() {
        Some("a") => (10, Some(contribution("b", "go").to_string())),
        _ => agree(purpose),
    });
    let refused = outcome(live(&scenario, &wrong)).await;
    assert_eq!(refused["stop_reason"], "invalid_contribution:agent_mismatch:a");
    assert!(refused["detail"].as_str().is_some_and(|it| it.contains("retried once")), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn empty_object_is_not_completed() {
    let scenario = table::scenario(BRIEF, &["model.ask_again=0"]);
    let model = speaker(|purpose, _| match role(purpose).as_deref() {
        Some("a") => (10, Some("{}".to_owned())),
        _ => agree(purpose),
    });
    let refused = outcome(live(&scenario, &model)).await;
    assert_eq!(refused["stop_reason"], "invalid_contribution:missing_keys");
    assert_eq!(refused["raw_contribution"], json!({}));
    assert_eq!(refused["detail"], "keys missing: agent, stance, summary, confidence, actions");
}

/// Seat `a` is refused after a second, seat `b` answers `takes_ms` after it was asked.
fn one_refused(takes_ms: u64) -> Arc<Speaker> {
    speaker(move |purpose, _| match role(purpose).as_deref() {
        Some("a") => (1_000, Some("{\"stance\": \"go\"}".to_owned())),
        Some("b") => (takes_ms, Some(contribution("b", "caution").to_string())),
        _ => agree(purpose),
    })
}

#[tokio::test(start_paused = true)]
async fn the_other_seats_finish_their_reply() {
    let scenario = table::scenario(BRIEF, &["model.ask_again=0"]);
    let stopped = outcome(live(&scenario, &one_refused(5_000))).await;
    assert_eq!(stopped["stop_reason"], "invalid_contribution:missing_keys");
    assert_eq!(stopped["phase"], "round_1:a");
    assert_eq!(stopped["unused_contributions"], json!([contribution("b", "caution")]));
    assert_eq!((&stopped["trace"], &stopped["history"]), (&json!([]), &json!([])));
    assert_eq!(stopped["elapsed_ms"], 5_000);

    // They are not waited for longer than the run may take, and the reason stays.
    let late = outcome(live(&scenario, &one_refused(60_000))).await;
    assert_eq!(late["stop_reason"], "invalid_contribution:missing_keys");
    assert_eq!(late.get("unused_contributions"), None);
    assert!(late["elapsed_ms"].as_u64().is_some_and(|ms| ms <= 40_000), "{late}");

    // A script costs nothing, so its run ends at once, as in the source document.
    let raw = "\n[[script]]\nrole = \"a\"\nlatency = \"1s\"\nraw = \"{}\"\n";
    let rows = format!("{raw}{}{BRIEF}", says("b", "latency = \"5s\"", "caution"));
    let scripted = outcome(Launch::scripted(table::scenario(&rows, &[]), false)).await;
    assert_eq!(scripted["elapsed_ms"], 1_000);
    assert_eq!(scripted.get("unused_contributions"), None);
}

#[tokio::test(start_paused = true)]
async fn decided_stop_starts_no_call() {
    let scenario = table::scenario(BRIEF, &["flags.third.default=true"]);
    // `a` is refused twice; by then `b` waits for its second attempt, and the reply of `c` is refused.
    let model = speaker(|purpose, _| match role(purpose).as_deref() {
        Some("a") => (1_000, Some("{\"stance\": \"go\"}".to_owned())),
        Some("b") => (1_950, None),
        Some("c") => (3_000, Some("{}".to_owned())),
        _ => agree(purpose),
    });
    let stopped = outcome(live(&scenario, &model)).await;
    assert_eq!(stopped["stop_reason"], "invalid_contribution:missing_keys");
    let asked = model.asked.lock().expect("a lock");
    let times = |role| asked.iter().filter(|(_, payload)| payload["role"] == role).count();
    assert_eq!([times("a"), times("b"), times("c")], [2, 1, 1]);
    assert_eq!(stopped["elapsed_ms"], 3_000);
}

/// No seat ever decides; `brief` makes the brief.
fn undecided(brief: impl Fn() -> Said + Send + Sync + 'static) -> Arc<Speaker> {
    speaker(move |purpose, _| match role(purpose) {
        Some(role) => (10, Some(contribution(&role, "caution").to_string())),
        None => brief(),
    })
}

#[tokio::test(start_paused = true)]
async fn undecided_table_gets_brief() {
    let scenario = table::scenario(BRIEF, &[]);
    let model = undecided(|| (10, Some(" They differ. ".to_owned())));
    let stopped = outcome(live(&scenario, &model)).await;
    assert_eq!((&stopped["status"], &stopped["phase"]), (&json!("stopped"), &json!("round_3")));
    assert_eq!(stopped["stop_reason"], "max_rounds_reached");
    assert_eq!(stopped["brief"], "They differ.");
    assert_eq!((stopped.get("answer"), stopped.get("final_decision")), (None, None));
    let (system, payload) = model.asked.lock().expect("a lock").last().cloned().expect("asked");
    assert_eq!(payload["final_decision"], Value::Null);
    assert!(system.contains("without a decision"), "{system}");

    // With any brief, the run ends for the reason of the source document.
    for brief in [(60_000, Some("Late.")), (10, None), (10, Some(" "))] {
        let model = undecided(move || (brief.0, brief.1.map(str::to_owned)));
        let stopped = outcome(live(&scenario, &model)).await;
        assert_eq!(stopped["stop_reason"], "max_rounds_reached", "{brief:?}");
        assert_eq!(stopped.get("brief"), None, "{brief:?}");
        assert_eq!(stopped["phase"], "round_3", "{brief:?}");
    }

    let rows = [says("a", "", "caution"), says("b", "", "caution")].concat() + BRIEF;
    let scripted = outcome(Launch::scripted(table::scenario(&rows, &[]), true)).await;
    assert_eq!(scripted.get("brief"), None);
}

/// A table whose rows are these, played with these stances of `a` and `b`.
async fn by_rows(rows: &str, a: &str, b: &str, sets: &[&str]) -> Value {
    let script = format!("{}{}{BRIEF}{rows}", says("a", "", a), says("b", "", b));
    outcome(Launch::scripted(table::scenario(&script, sets), true)).await
}

fn row(when: &str, decision: &str) -> String {
    format!("\n[[collaboration.decide]]\nwhen = {when:?}\ndecision = \"{decision}\"\n")
}

#[tokio::test(start_paused = true)]
async fn the_first_row_that_holds_decides() {
    let rows = row("weight.block >= 5.0", "no_go")
        + &row("size(stances.go) == size(seats)", "go")
        + &row("round == max_rounds && 'a' in stances.go", "go_with_caution");
    let split = by_rows(&rows, "go", "block", &[]).await;
    assert_eq!(split["final_decision"], "go_with_caution");
    assert_eq!(split["rounds_used"], 3);
    let third = json!({ "row": 3, "when": "round == max_rounds && 'a' in stances.go" });
    assert_eq!(split["decided_by"], third);
    assert_eq!(split["answer"], "The brief.");
    let agreed = by_rows(&rows, "go", "go", &[]).await;
    assert_eq!((&agreed["final_decision"], &agreed["rounds_used"]), (&json!("go"), &json!(1)));
    let heavy = by_rows(&rows, "go", "block", &["roles.b.weight=5"]).await;
    assert_eq!((&heavy["final_decision"], &heavy["rounds_used"]), (&json!("no_go"), &json!(1)));
    assert_eq!(heavy["decided_by"]["row"], 1);
    let none = by_rows(&rows, "caution", "block", &[]).await;
    assert_eq!(none["stop_reason"], "max_rounds_reached");
    assert_eq!(none.get("decided_by"), None);
}

#[tokio::test(start_paused = true)]
async fn a_veto_comes_before_the_rows() {
    let rows = row("true", "go");
    let vetoed = by_rows(&rows, "go", "block", &["roles.b.veto=true"]).await;
    assert_eq!(vetoed["final_decision"], "no_go");
    assert_eq!(vetoed["decided_by"], json!({ "veto": "b" }));
    // Without rows, too: in the source document one block keeps the round open.
    let plain = by_rows("", "go", "block", &["roles.b.veto=true"]).await;
    assert_eq!((&plain["final_decision"], &plain["rounds_used"]), (&json!("no_go"), &json!(1)));
    let other = by_rows("", "go", "block", &["roles.a.veto=true"]).await;
    assert_eq!(other["stop_reason"], "max_rounds_reached");
}

#[tokio::test(start_paused = true)]
async fn failed_row_condition_is_reported() {
    let rows = row("confidences.c > 0.5", "no_go") + &row("confidences.a > 0.5", "go");
    let script = format!("{}{}{BRIEF}{rows}", says("a", "", "go"), says("b", "", "go"));
    let run = engine().start(Launch::scripted(table::scenario(&script, &[]), true));
    let log = facts(&run).await;
    let told = log.iter().find_map(|event| match &event.kind {
        EventKind::ConditionFailed { place, text } => Some((&**place, &**text)),
        _ => None,
    });
    let (place, text) = told.expect("it is told");
    assert_eq!(place, "collaboration.decide[0].when");
    assert!(text.contains("`c`"), "{text}");
    let world = World::from_events(log.iter().map(|event| &**event));
    let outcome = serde_json::to_value(world.outcome().expect("an outcome")).expect("JSON");
    assert_eq!(outcome["decided_by"]["row"], 2);
}

#[tokio::test(start_paused = true)]
async fn prompt_shows_flag_state() {
    let sets = [
        "roles.a.prompt=\"Frost: {{flags.third}}.\"",
        "collaboration.finalize_prompt=\"{{flags.third}}\"",
    ];
    let scenario = table::scenario(BRIEF, &sets);
    let model = speaker(|purpose, _| agree(purpose));
    let run =
        engine().start(Launch { flags: vec![("third".into(), true)], ..live(&scenario, &model) });
    facts(&run).await;
    let asked = model.asked.lock().expect("a lock");
    assert!(asked[0].0.starts_with("Frost: on.\n"), "{}", asked[0].0);
    let (brief, payload) = asked.last().expect("the brief");
    assert_eq!((&**brief, &payload["flags"]), ("on", &json!({ "third": true })));
}

/// The events of a run as a version stored them that did not know the rules of today.
fn as_before(events: &[Arc<Event>]) -> Recording {
    let lines = events.iter().map(|event| {
        let mut line: Value = serde_json::from_str(&event.to_line().expect("JSON")).expect("JSON");
        for name in ["share", "live_rules", "ask_again", "shows_flags"] {
            line.as_object_mut().expect("an object").remove(name);
            if let Some(Value::Object(plan)) = line.get_mut("plan") {
                plan.remove(name);
            }
        }
        Arc::new(Event::from_line(&line.to_string()).expect("an event"))
    });
    Recording::new(lines.collect::<Vec<_>>()).expect("a recording")
}

#[tokio::test(start_paused = true)]
async fn run_keeps_its_initial_rules() {
    let found = shipped().iter().find(|it| it.name == "checkout-launch").expect("shipped");
    let load = |sets: &[&str]| {
        let sets: Vec<_> = sets.iter().map(|set| set.parse().expect("an override")).collect();
        Arc::new(load(found.text, found.origin(), &sets).expect("a good scenario"))
    };
    let model = speaker(|purpose, payload| match (role(purpose).as_deref(), purpose) {
        (Some("risk_analyst"), Purpose::Contribution { round: 1, .. }) => {
            (10, Some(contribution("risk_analyst", "block").to_string()))
        }
        (Some("risk_analyst"), _) => {
            let mut short = contribution("risk_analyst", "go");
            short.as_object_mut().expect("an object").remove("agent");
            assert!(payload["recent_rounds"][0]["stances"][0].get("summary").is_none());
            (10, Some(short.to_string()))
        }
        _ => agree(purpose),
    });
    // What an earlier version did: stances, no flags in requests, no rules of live runs.
    let old = load(&["collaboration.share=\"stances\"", "model.ask_again=0"]);
    let old = Scenario { flags: Vec::new(), ..Arc::into_inner(old).expect("one") };
    let full = facts(&engine().start(live(&Arc::new(old), &model))).await;
    let first = full.iter().position(|event| event.kind.name() == "round.closed").expect("closed");
    let mut recording = as_before(&full[..=first]).events().to_vec();
    if let EventKind::RunStarted(head) = &mut Arc::make_mut(&mut recording[0]).kind {
        let scenario = load(&[]);
        let flags = scenario.flags.iter().map(|flag| crate::log::event::FlagAt {
            name: flag.name.clone(),
            label: flag.label.clone(),
            on: flag.default,
        });
        Arc::make_mut(head).flags = flags.collect();
    }
    let recording = Recording::new(recording).expect("a recording");
    let resumption = Resumption { recording, by: Initiator::You, in_doubt: InDoubt::Stop };
    let run = engine().resume(live(&load(&[]), &model), resumption).expect("a run");
    run.wait_until_live().await.expect("it goes on, without a divergence");
    let continued = facts(&run).await;
    let world = World::from_events(continued.iter().map(|event| &**event));
    let outcome = serde_json::to_value(world.outcome().expect("an outcome")).expect("JSON");
    assert_eq!(outcome["stop_reason"], "invalid_contribution:missing_keys");
    assert_eq!(outcome["detail"], "keys missing: agent");
}

#[tokio::test(start_paused = true)]
async fn the_head_says_which_rules_hold() {
    let heads = |scenario: Arc<Scenario>, model: Arc<Speaker>| async move {
        let lives = [live(&scenario, &model), Launch::scripted(scenario, true)];
        let mut heads = Vec::new();
        for launch in lives {
            let log = facts(&engine().start(launch)).await;
            let line: Value =
                serde_json::from_str(&log[0].to_line().expect("a line")).expect("JSON");
            let rule = |name: &str| {
                let there = line.get(name).or_else(|| line["plan"].get(name));
                there.cloned().unwrap_or(Value::Null)
            };
            heads.push(["share", "live_rules", "ask_again", "shows_flags"].map(rule));
        }
        heads
    };
    let rows = [says("a", "", "go"), says("b", "", "go")].concat() + BRIEF;
    let model = speaker(|purpose, _| agree(purpose));
    let usual = heads(table::scenario(&rows, &[]), Arc::clone(&model)).await;
    let yes = || json!(true);
    assert_eq!(usual[0], [json!("arguments"), yes(), json!(1), yes()]);
    assert_eq!(usual[1], [json!("arguments"), Value::Null, Value::Null, yes()]);
    let sets = ["collaboration.share=\"stances\"", "model.ask_again=0"];
    let as_source = heads(table::scenario(&rows, &sets), model).await;
    assert_eq!(as_source[0], [Value::Null, yes(), Value::Null, yes()]);
}
