//! The other things that ask: agents, people as agents and seats, a table without a decision, budgets.

use super::*;
use crate::log::event::question::Subject;
use crate::run::questions::fixed_answer;
use crate::words::format;

/// The desk whose agent asks the manager in its first round.
fn asks(choices: &str) -> Arc<Scenario> {
    let row = format!(
        "[[script]]\nagent = \"billing\"\nround = 1\ncalls = [{{ tool = \"ask_manager\", args = {{ question = \"Refund?\"{choices} }} }}]\n[[script]]\nagent = \"boss\"\nround = 1"
    );
    let text = DESK.replace("APPROVE", "");
    read(&text.replacen("[[script]]\nagent = \"boss\"\nround = 1", &row, 1), &[])
}

#[tokio::test(start_paused = true)]
async fn agent_gets_the_answer() {
    for (choices, given, reads) in [
        ("", Answer::Text { text: "Yes, all of it.".into() }, "Yes, all of it."),
        (", choices = [\"all\", \"half\"]", choose("half"), "half"),
        (
            ", choices = [\"all\", \"half\"]",
            Answer::Choose { choice: "all".into(), text: "It is our fault.".into() },
            "all: It is our fault.",
        ),
    ] {
        let (run, _) = start(&asks(choices));
        let question = asked(&run, 1).await;
        assert_eq!(question.who.as_str(), "manager");
        answer(&run, &question, given);
        let events = facts(&run).await;
        assert_eq!(said(&events), reads);
        assert_eq!(stop_reason(&events), "success");
        let calls = format::calls(&world(&events).tally);
        assert_eq!(calls, "4 model, 1 agent, 1 person calls");
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_arguments_ask_nobody() {
    let (run, _) = start(&asks(", choices = \"all\""));
    let events = facts(&run).await;
    assert!(kinds(&events, &["question."]).is_empty());
    assert!(said(&events).contains("`choices` of ask_manager is not a list"), "{}", said(&events));
}

/// A question of an agent inside a team inside a swarm is open like any other.
#[tokio::test(start_paused = true)]
async fn nested_questions_reach_people() {
    let (run, _) = start(&asks(""));
    asked(&run, 1).await;
    let mut reader = run.bus().reader(crate::log::event::Seq(0));
    let mut events = Vec::new();
    reader.next_batch(&mut events, 1_024).await;
    let world = world(&events);
    let open: Vec<_> = world.questions.open().map(|open| open.asked.who.to_string()).collect();
    assert_eq!(open, ["manager"]);
    assert!(world.progress.waits_since.is_some());
    run.send(Command::Cancel);
    facts(&run).await;
}

const SWARM: &str = r#"
title = "A swarm"
pattern = "swarm"
goal = "Help."
[swarm]
root = "desk"
[people.manager]
description = "Decides."
OTHERWISE
[agents.desk]
description = "A desk."
members = ["a", "lead"]
entry = "a"
node_timeout_s = 5
[agents.a]
description = "A model."
[agents.lead]
description = "A person."
person = "manager"
[[script]]
agent = "a"
turn = 1
calls = [{ tool = "transfer_to_agent", args = { agent_name = "lead", message = "Please." } }]
[[script]]
agent = "a"
text = "A says: {{input}}"
"#;

#[tokio::test(start_paused = true)]
async fn person_answers_or_hands_over() {
    for (given, by, text) in [
        (Answer::Text { text: "No.".into() }, "lead", "No."),
        (Answer::HandOver { to: "a".into(), text: "Do it.".into() }, "a", "A says: Do it."),
    ] {
        let (run, _) = start(&read(&SWARM.replace("OTHERWISE", ""), &[]));
        let question = asked(&run, 1).await;
        // The timeout of a member's turn does not count the wait.
        tokio::time::advance(std::time::Duration::from_secs(3_600)).await;
        answer(&run, &question, given);
        let events = facts(&run).await;
        let outcome = world(&events).outcome().expect("an outcome");
        assert_eq!(outcome.fields.get("answer"), Some(Value::from(text)));
        assert_eq!(outcome.fields.get("final_agent"), Some(Value::from(by)));
        assert!(outcome.elapsed_ms < 1_000, "{}", outcome.elapsed_ms);
    }
}

#[tokio::test(start_paused = true)]
async fn unanswered_question_ends_as_it_says() {
    for (otherwise, reason, answer) in [
        ("", "no_answer:manager", None),
        ("timeout = \"1m\"\notherwise = \"stop\"", "no_answer:manager", None),
        ("otherwise = { answer = \"Later.\" }", "success", Some("Later.")),
    ] {
        let scenario = read(&SWARM.replace("OTHERWISE", otherwise), &[]);
        let run = engine().start(launch(&scenario, &Recorder::default(), PeopleMode::Nobody));
        let events = facts(&run).await;
        assert_eq!(stop_reason(&events), reason, "{otherwise}");
        let said = world(&events).progress.answer.clone();
        assert_eq!(said.as_deref(), answer, "{otherwise}");
        assert_eq!(answers(&events)[0].by, AnsweredBy::Nobody);
    }
}

/// The answer of a scenario for the case that nobody answers is never shown as the words of the person.
#[tokio::test(start_paused = true)]
async fn fallback_is_no_persons_word() {
    let otherwise = "timeout = \"10m\"\notherwise = { answer = \"Admit nothing.\" }";
    let asks = format!(
        "title = \"T\"\npattern = \"team\"\ngoal = \"G\"\n[team]\nroot = \"billing\"\n\
         [people.manager]\ndescription = \"Decides.\"\n{otherwise}\n\
         [agents.billing]\ndescription = \"Refunds.\"\npeople = [\"manager\"]\n\
         members = [\"clerk\"]\n[agents.clerk]\ndescription = \"Files.\"\n\
         [[script]]\nagent = \"billing\"\nround = 1\n\
         calls = [{{ tool = \"ask_manager\", args = {{ question = \"Refund?\" }} }}]\n\
         [[script]]\nagent = \"billing\"\ntext = \"Done.\"\n"
    );
    let turn = SWARM.replace("OTHERWISE", otherwise);
    for (scenario, about) in [(asks, "ask_manager"), (turn, "lead")] {
        let (run, _) = start(&read(&scenario, &[]));
        asked(&run, 1).await;
        let events = facts(&run).await;
        let lines = headless_text(&events);
        let said: Vec<&String> = lines.iter().filter(|it| it.contains("Admit nothing.")).collect();
        assert!(said.iter().all(|it| it.contains("fallback: Admit nothing.")), "{said:?}");
        assert!(said.iter().all(|it| !it.contains("DONE")), "{said:?}");
        let of = said.iter().any(|it| it.contains("no answer") && it.contains(about));
        assert!(of, "{about}: {lines:#?}");
        let lead = about == "lead";
        let within = "manager did not answer within 10m00s; fallback: Admit nothing.";
        assert!(lead || said.iter().any(|it| it.contains(within)), "{said:?}");
        let outcome = world(&events).outcome().expect("an outcome");
        let history = outcome.fields.get("history").map(|it| it.to_string()).unwrap_or_default();
        assert!(history.contains("\"fallback\":true"), "{history}");
        let agents = world(&events).agents().expect("agents").is_fallback;
        assert_eq!(agents, lead, "{about}: whether the answer of the run is the fallback");
    }
}

/// A table of a model and a person.
const SEATS: &str = r#"
title = "A table"
pattern = "collaboration"
goal = "Decide."
[budget]
max_rounds = ROUNDS
max_seconds = 5
[people.chief]
description = "Decides."
[collaboration]
sequence = ["a", "cfo"]
finalize_prompt = "Write."
NO_DECISION
[roles.a]
prompt = "You are a."
[roles.cfo]
person = "chief"
[[script]]
role = "a"
reply = { stance = "STANCE", summary = "a", confidence = 0.8, actions = ["act"] }
[[script]]
step = "finalize"
text = "The brief."
"#;

fn seats(stance: &str, rounds: &str, no_decision: &str) -> Arc<Scenario> {
    let text = SEATS.replace("STANCE", stance).replace("ROUNDS", rounds);
    read(&text.replace("NO_DECISION", no_decision), &[])
}

fn contribution(stance: &str) -> Answer {
    Answer::Contribute {
        contribution: Arc::new(json!({
            "agent": "cfo", "stance": stance, "summary": "cfo", "confidence": 0.9, "actions": ["pay"],
        })),
    }
}

#[tokio::test(start_paused = true)]
async fn person_has_a_seat() {
    let (run, _) = start(&seats("go", "1", ""));
    let question = asked(&run, 1).await;
    assert_eq!(question.by.as_deref(), Some("cfo"));
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    // What policy refuses is asked about again.
    let wrong = Answer::Contribute { contribution: Arc::new(json!({ "stance": "go" })) };
    answer(&run, &question, wrong);
    let again = asked(&run, 2).await;
    assert!(again.why.is_some());
    answer(&run, &again, contribution("go"));
    let events = facts(&run).await;
    assert_eq!(stop_reason(&events), "success");
    let world = world(&events);
    assert_eq!(world.tally.uncounted, 0, "a person uses no tokens");
    assert_eq!(world.collaboration().expect("a table").rounds[0].contributions().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn person_decides_for_the_table() {
    let (run, _) = start(&seats("block", "1", "on_no_decision = { ask = \"chief\" }"));
    let seat = asked(&run, 1).await;
    answer(&run, &seat, contribution("go"));
    let question = asked(&run, 2).await;
    answer(&run, &question, Answer::Choose { choice: "no_go".into(), text: "Too early.".into() });
    let events = facts(&run).await;
    let outcome = world(&events).outcome().expect("an outcome");
    assert_eq!(outcome.stop_reason.to_string(), "success");
    assert_eq!(outcome.fields.get("final_decision"), Some("no_go".into()));
    let by = json!({ "person": "chief", "reason": "Too early." });
    assert_eq!(outcome.fields.get("decided_by"), Some(by));
}

#[tokio::test(start_paused = true)]
async fn fallback_decides_for_no_person() {
    let text = SEATS.replace("STANCE", "block").replace("ROUNDS", "1");
    let text = text.replace("NO_DECISION", "on_no_decision = { ask = \"chief\" }");
    let fallback = "[people.chief]\notherwise = { answer = \"no_go\" }";
    let (run, _) = start(&read(&text.replace("[people.chief]", fallback), &[]));
    answer(&run, &*asked(&run, 1).await, contribution("go"));
    asked(&run, 2).await;
    run.nobody_answers();
    let events = facts(&run).await;
    let outcome = world(&events).outcome().expect("an outcome");
    assert_eq!(outcome.fields.get("final_decision"), Some("no_go".into()));
    assert_eq!(outcome.fields.get("decided_by"), Some(json!({ "fallback_of": "chief" })));
}

#[tokio::test(start_paused = true)]
async fn budget_is_extended_or_stops() {
    for (choice, reason) in [("extend", "success"), ("stop", "max_tokens_budget")] {
        let text = DESK.replace("APPROVE", "");
        let sets = ["budget.max_total_tokens=4200", "budget.on_limit=ask"];
        let run =
            engine().start(launch(&read(&text, &sets), &Recorder::default(), PeopleMode::Wait));
        let first = asked(&run, 1).await;
        assert_eq!(first.who.as_str(), "operator");
        answer(&run, &first, choose(choice));
        let events = facts(&run).await;
        assert_eq!(stop_reason(&events), reason);
        assert_eq!(world(&events).questions.extended.0, u32::from(choice == "extend"));
    }
}

#[tokio::test(start_paused = true)]
async fn suggestion_leaves_no_event() {
    let rows = "\n[[script]]\nperson = \"operator\"\nwhen = \"args.missing > 1\"\napprove = true\n\
                [[script]]\nperson = \"operator\"\napprove = false\ntext = \"no\"\n";
    let (run, _) = start(&desk("approve = true", rows));
    let question = asked(&run, 1).await;
    assert_eq!(run.suggested_answer(question.id), Some(deny("no")));
    answer(&run, &question, approve());
    let wrong = kinds(&facts(&run).await, &["warning", "condition"]).len();
    assert_eq!(wrong, 0, "a look at the script is no event of the run");
}

#[tokio::test(start_paused = true)]
async fn too_many_questions_stop_the_run() {
    let tasks: Vec<String> = (0..110)
        .map(|nth| format!("{{ id = \"t{nth}\", worker = \"w\", args = {{}}, critical = false }}"))
        .collect();
    let text = format!(
        "title = \"T\"\npattern = \"orchestrator\"\ngoal = \"G\"\n[budget]\nmax_tasks = 200\n\
         max_parallel = 3\nmax_dispatches = 500\n[orchestrator]\nplan_prompt = \"P\"\n\
         finalize_prompt = \"F\"\nlevel = {{ name = \"l\", otherwise = \"low\" }}\n[workers.w]\n\
         description = \"W\"\napprove = true\nfixture = {{ rows = [{{ result = {{}} }}] }}\n\
         [[script]]\nstep = \"plan\"\nreply = {{ kind = \"plan\", tasks = [{}] }}\n\
         [[script]]\nstep = \"finalize\"\ntext = \"R\"\n",
        tasks.join(", ")
    );
    let run = engine().start(launch(&read(&text, &[]), &Recorder::default(), PeopleMode::Wait));
    // Each task that waits for a person gives its slot to the next one.
    let events = facts(&run).await;
    assert_eq!(stop_reason(&events), "too_many_questions");
    assert_eq!(kinds(&events, &["question.asked"]).len(), 100);
    assert_eq!(kinds(&events, &["question.withdrawn"]).len(), 100);
}

#[test]
fn fixed_answers_repeat_no_call() {
    let again: Arc<str> = "again".into();
    let doubt = Subject::InDoubt { tool: "refund".into(), args: Arc::new(json!({})) };
    assert_eq!(fixed_answer(&doubt, &again), Answer::Stop);
    let choices: Arc<[Arc<str>]> = Arc::from([Arc::clone(&again)]);
    let asks = Subject::Agent { text: "Once more?".into(), choices };
    let chosen = Answer::Choose { choice: Arc::clone(&again), text: Arc::default() };
    assert_eq!(fixed_answer(&asks, &again), chosen);
    let other: Arc<str> = "Leave it.".into();
    assert_eq!(fixed_answer(&asks, &other), Answer::Text { text: Arc::clone(&other) });
}
