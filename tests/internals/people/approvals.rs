//! Approvals of tool calls.

use super::*;
use crate::log::event::{Elapsed, Seq, SpanId};
use crate::log::world::agents::{LineKind, ResultEnd};
use crate::words::format;

/// With each setting and answer: how often the tool is called, with what, and what the agent reads.
#[tokio::test(start_paused = true)]
async fn tool_runs_only_as_approved() {
    let no_way = "Do not try to reach the same result in another way.";
    for (setting, given, called, reads) in [
        (
            "approve = true",
            Some(approve()),
            json!([{ "amount_usd": 150 }]),
            r#"{"ok":true}"#.into(),
        ),
        (
            "approve = true",
            Some(Answer::Approve { args: Some(Arc::new(json!({ "amount_usd": 50 }))) }),
            json!([{ "amount_usd": 50 }]),
            "{\"ok\":true}\n\n\
             [operator approved this call with other arguments: {\"amount_usd\":50}]"
                .to_owned(),
        ),
        (
            "approve = { who = \"manager\" }",
            Some(deny("Too much.")),
            json!([]),
            format!("error: manager denied this call: Too much. {no_way}"),
        ),
        (
            "approve = true",
            Some(deny("")),
            json!([]),
            format!("error: operator denied this call. {no_way}"),
        ),
        (
            "approve = { who = \"manager\", timeout = \"10m\" }",
            None,
            json!([]),
            format!("error: manager was asked to approve this call and did not answer. {no_way}"),
        ),
        (
            "approve = { when = \"args.amount_usd > 1000.0\" }",
            None,
            json!([{ "amount_usd": 150 }]),
            r#"{"ok":true}"#.to_owned(),
        ),
    ] {
        let (run, tool) = start(&desk(setting, ""));
        if let Some(given) = given {
            let question = asked(&run, 1).await;
            answer(&run, &question, given);
        }
        let events = facts(&run).await;
        assert_eq!(Value::from(tool.calls()), called, "{setting}");
        assert_eq!(said(&events), reads, "{setting}");
        assert_eq!(stop_reason(&events), "success", "{setting}");
    }
}

/// The transcript has the text that the agent reads, and how the call ended.
#[tokio::test(start_paused = true)]
async fn transcript_shows_what_agents_read() {
    let changed = Arc::new(json!({ "charge": "ch_2", "amount_usd": 50 }));
    let note = "{\"ok\":true}\n\n[operator approved this call with other arguments: \
                {\"charge\":\"ch_2\",\"amount_usd\":50}]";
    let denied = "error: operator denied this call: no. \
                  Do not try to reach the same result in another way.";
    for (given, reads, end) in [
        (approve(), "{\"ok\":true}", ResultEnd::Answered),
        (Answer::Approve { args: Some(changed) }, note, ResultEnd::Answered),
        (deny("no"), denied, ResultEnd::Denied),
    ] {
        let (run, _) = start(&read(include_str!("../../../scenarios/refund-desk.toml"), &[]));
        answer(&run, &*asked(&run, 1).await, given.clone());
        if given != deny("no") {
            answer(&run, &*asked(&run, 2).await, Answer::Text { text: "We are.".into() });
        }
        let events = facts(&run).await;
        let world = world(&events);
        let result = world.agents().expect("a swarm").lines.iter().find_map(|it| match &it.what {
            LineKind::Result { of, text, end } if **of == *"refund" => Some((&**text, *end)),
            _ => None,
        });
        assert_eq!(result, Some((reads, end)));
        let lines = events.iter().map(|event| event.to_line().expect("JSON"));
        let prompt = json!({ "content": reads }).to_string();
        let prompt = prompt.trim_matches(['{', '}']);
        assert!(lines.filter(|line| line.contains(prompt)).count() == 1, "{prompt}");
    }
}

#[tokio::test(start_paused = true)]
async fn rules_bind_changed_arguments() {
    let rule = "[[approve]]\ntool = \"refund\"\nwhen = \"args.amount_usd > 1000.0\"\n\
                do = \"deny\"\n";
    let (run, tool) = start(&desk("approve = true", rule));
    let question = asked(&run, 1).await;
    let with = |usd| Answer::Approve { args: Some(Arc::new(json!({ "amount_usd": usd }))) };
    answer(&run, &question, with(5_000));
    answer(&run, &question, with(500));
    let events = facts(&run).await;
    assert_eq!(tool.calls(), [json!({ "amount_usd": 500 })]);
    let warned = events.iter().any(|event| {
        matches!(&event.kind, EventKind::Warning { text }
            if text.contains("does not allow these arguments"))
    });
    assert!(warned);
}

/// Conditions are written for arguments that fit: others may not slip through.
#[tokio::test(start_paused = true)]
async fn unfit_arguments_are_asked_about() {
    let when = "has(args.amount_usd) && args.amount_usd > 100.0";
    for (args, asks) in [("Amount = 5000", 1), ("amount_usd = 50", 0), ("amount_usd = 150", 1)] {
        let text = DESK
            .replace("APPROVE", &format!("approve = {{ when = \"{when}\" }}"))
            .replace("amount_usd = 150", args);
        let run =
            engine().start(launch(&read(&text, &[]), &Recorder::default(), PeopleMode::Nobody));
        let events = facts(&run).await;
        assert_eq!(kinds(&events, &["question.asked"]).len(), asks, "{args}");
    }
}

#[test]
fn recorded_answers_follow_their_questions() {
    let answered = |id, answer| {
        let answered = QuestionAnswered::new(QuestionId(id), "d".into(), ann(), answer);
        let kind = EventKind::QuestionAnswered(Arc::new(answered));
        Event { seq: Seq(0), at: Elapsed(0), span: SpanId::RUN, kind }
    };
    let events = [answered(2, approve()), answered(1, deny(""))];
    let PeopleMode::Recorded(answers) = PeopleMode::recorded(&events) else { panic!("recorded") };
    assert_eq!(answers.iter().map(|it| it.id.0).collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn denied_call_has_not_failed() {
    let (run, _) = start(&desk("approve = true", ""));
    answer(&run, &*asked(&run, 1).await, deny("no"));
    let world = world(&facts(&run).await);
    let tally = &world.tally;
    assert_eq!((tally.failed, tally.denied, tally.open()), (0, 1, 0));
    let row = world.tools.get("refund").expect("a tool");
    assert_eq!((row.tally.failed, row.tally.denied), (0, 1));
    assert!(row.last_failure.is_none());
    assert_eq!(format::calls(tally), "4 model, 1 tool, 1 agent calls");
}

#[tokio::test(start_paused = true)]
async fn log_has_approval_before_attempt() {
    let (run, _) = start(&desk("approve = true", ""));
    let question = asked(&run, 1).await;
    assert_eq!(question.why.as_deref(), Some("Charged twice."));
    assert_eq!(question.by.as_deref(), Some("billing"));
    answer(&run, &question, approve());
    let events = facts(&run).await;
    let call = events.iter().find_map(|event| match &event.kind {
        EventKind::QuestionAsked(_) => Some(event.span),
        _ => None,
    });
    let call = call.expect("a question");
    let of_call = events.iter().filter(|event| match &event.kind {
        EventKind::AttemptStarted { parent, .. } => *parent == call,
        _ => event.span == call,
    });
    let kinds: Vec<&str> = of_call.map(|event| event.kind.name()).collect();
    assert_eq!(
        kinds,
        ["call.started", "question.asked", "question.answered", "attempt.started", "call.answered"]
    );
}

#[tokio::test(start_paused = true)]
async fn answer_names_question_and_digest() {
    let (run, tool) = start(&desk("approve = true", ""));
    let question = asked(&run, 1).await;
    // About other arguments, another question, and a form that it does not take.
    let stale = QuestionAsked { digest: "0".into(), ..QuestionAsked::clone(&question) };
    answer(&run, &stale, approve());
    let other = QuestionAsked { id: QuestionId(2), ..QuestionAsked::clone(&question) };
    answer(&run, &other, approve());
    answer(&run, &question, Answer::Text { text: "yes".into() });
    let wrong = Arc::new(json!({ "amount_usd": "all" }));
    answer(&run, &question, Answer::Approve { args: Some(wrong) });
    assert_eq!(tool.calls().len(), 0);
    answer(&run, &question, deny(""));
    let events = facts(&run).await;
    assert_eq!(tool.calls().len(), 0);
    assert_eq!(
        kinds(&events, &["question.", "warning"]),
        ["question.asked", "warning", "warning", "warning", "question.answered"]
    );
}

#[tokio::test(start_paused = true)]
async fn first_of_two_answers_counts() {
    let (run, tool) = start(&desk("approve = true", ""));
    let question = asked(&run, 1).await;
    answer(&run, &question, deny("no"));
    answer(&run, &question, approve());
    let events = facts(&run).await;
    assert_eq!(tool.calls().len(), 0);
    let answers = answers(&events);
    assert_eq!(answers.len(), 1);
    assert_eq!((&answers[0].by, &answers[0].answer), (&ann(), &deny("no")));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_not_a_person() {
    for (people, who) in
        [(PeopleMode::Nobody, AnsweredBy::Nobody), (PeopleMode::Script, AnsweredBy::Script)]
    {
        let scenario =
            desk("approve = true", "[[script]]\nperson = \"operator\"\napprove = false\n");
        let run = engine().start(launch(&scenario, &Recorder::default(), people));
        let events = facts(&run).await;
        assert_eq!(answers(&events)[0].by, who);
        assert_eq!(answers(&events)[0].answer, deny(""));
    }
}

/// Two agents with the same tool, which each call it twice.
pub(super) const TWO: &str = r#"
title = "Two"
pattern = "team"
goal = "Refund."
[team]
root = "boss"
[agents.boss]
description = "The coordinator."
members = ["a", "b"]
[agents.a]
description = "A."
tools = ["refund"]
[agents.b]
description = "B."
tools = ["refund"]
[tools.refund]
description = "Refunds."
args = { amount_usd = { type = "number" } }
approve = true
EFFECTS
fixture = { rows = [{ result = { ok = true } }] }
[[script]]
agent = "boss"
round = 1
calls = [{ tool = "a", args = { request = "x" } }, { tool = "b", args = { request = "x" } }]
[[script]]
agent = "boss"
text = "Done."
[[script]]
agent = "a"
round = 1
calls = [{ tool = "refund", args = { amount_usd = 1 } }]
[[script]]
agent = "a"
round = 2
calls = [{ tool = "refund", args = { amount_usd = 2 } }]
[[script]]
agent = "a"
text = "A done."
[[script]]
agent = "b"
round = 1
calls = [{ tool = "refund", args = { amount_usd = 3 } }]
[[script]]
agent = "b"
text = "B done."
"#;

fn remembered(asked: &QuestionAsked) -> Command {
    let answered = QuestionAnswered::new(asked.id, Arc::clone(&asked.digest), ann(), approve());
    Command::Answer(Box::new(QuestionAnswered { remember: true, ..answered }))
}

#[tokio::test(start_paused = true)]
async fn remembered_approval_is_for_one_agent() {
    let (run, tool) = start(&read(&TWO.replace("EFFECTS", ""), &[]));
    let first = asked(&run, 1).await;
    run.send(remembered(&first));
    // The second call of `a` is decided by what the run remembers, that of `b` is asked about.
    let of_b = asked(&run, 3).await;
    assert_eq!(of_b.by.as_deref(), Some("b"));
    answer(&run, &of_b, deny(""));
    let events = facts(&run).await;
    assert_eq!(tool.calls().len(), 2);
    let by: Vec<_> = answers(&events).iter().map(|it| it.by.clone()).collect();
    assert_eq!(by, [ann(), AnsweredBy::Rule, ann()]);
    let world = world(&events);
    assert_eq!(world.questions.remembered()[0].uses, 1);
    assert_eq!((world.questions.tally.asked, world.questions.tally.by_rule), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn irreversible_calls_are_never_remembered() {
    let scenario = read(&TWO.replace("EFFECTS", "effects = \"irreversible\""), &[]);
    let (run, tool) = start(&scenario);
    run.send(remembered(&*asked(&run, 1).await));
    for number in [2, 3] {
        let question = asked(&run, number).await;
        answer(&run, &question, deny(""));
    }
    let events = facts(&run).await;
    assert_eq!(tool.calls().len(), 1);
    assert!(answers(&events).iter().all(|it| !it.remember && it.by == ann()));
}

#[tokio::test(start_paused = true)]
async fn withdrawn_approval_asks_again() {
    let (run, tool) = start(&read(&TWO.replace("EFFECTS", ""), &[]));
    let first = asked(&run, 1).await;
    run.send(remembered(&first));
    run.send(Command::WithdrawApproval { id: first.id, by: crate::log::event::Initiator::You });
    for number in [2, 3] {
        let question = asked(&run, number).await;
        answer(&run, &question, deny(""));
    }
    let events = facts(&run).await;
    assert_eq!(tool.calls().len(), 1);
    assert_eq!(kinds(&events, &["approval."]), ["approval.withdrawn"]);
    assert!(world(&events).questions.remembered().is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_approval_for_all_attempts() {
    let scenario = desk("approve = true\nidempotent = true\nretries = { max_attempts = 3 }", "");
    let tool = Recorder { fails: 2, ..Recorder::default() };
    let run = engine().start(launch(&scenario, &tool, PeopleMode::Wait));
    let question = asked(&run, 1).await;
    let args = Some(Arc::new(json!({ "amount_usd": 7 })));
    answer(&run, &question, Answer::Approve { args });
    let events = facts(&run).await;
    assert_eq!(tool.calls(), vec![json!({ "amount_usd": 7 }); 3]);
    assert_eq!(kinds(&events, &["question.asked"]).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn approval_makes_calls_not_idempotent() {
    let tool = Recorder { fails: 1, ..Recorder::default() };
    let scenario = desk("approve = true\nretries = { max_attempts = 3 }", "");
    let run = engine().start(launch(&scenario, &tool, PeopleMode::Wait));
    answer(&run, &*asked(&run, 1).await, approve());
    facts(&run).await;
    assert_eq!(tool.calls().len(), 1);
}

/// The same for a rule that asks, and for a worker whose limits are in `[tools]`.
#[test]
fn rules_and_workers_are_not_idempotent() {
    let rule = "[[approve]]\ntool = \"ref*\"\ndo = \"ask\"\n";
    let worker = |approve: &str, limits: &str| {
        let text = format!(
            "title = \"T\"\npattern = \"orchestrator\"\ngoal = \"G\"\n[orchestrator]\n\
             plan_prompt = \"P\"\nfinalize_prompt = \"F\"\n\
             level = {{ name = \"l\", otherwise = \"low\" }}\n[workers.refund]\n\
             description = \"W\"\n{approve}\nfixture = {{ rows = [{{ result = {{}} }}] }}\n\
             [tools.refund]\nretries = {{ max_attempts = 3 }}\n{limits}\n\
             [[script]]\nstep = \"finalize\"\ntext = \"R\"\n\
             [[script]]\nstep = \"plan\"\nreply = {{ kind = \"plan\", tasks = [] }}\n"
        );
        read(&text, &[])
    };
    for (scenario, idempotent) in [
        (desk("", rule), false),
        (desk("idempotent = true", rule), true),
        (worker("", ""), true),
        (worker("approve = true", ""), false),
        (worker("approve = true", "idempotent = true"), true),
        (worker("", rule), false),
    ] {
        assert_eq!(scenario.tools["refund"].policy.idempotent, idempotent, "{scenario:?}");
    }
    let args = worker("approve = true\nargs = { day = \"2026-03-02\", request_id = \"\" }", "");
    let parameters = &args.tools["refund"].offer.parameters;
    assert_eq!(parameters["required"], json!(["day"]), "the engine gives the id of the request");
}

#[tokio::test(start_paused = true)]
async fn open_breaker_refuses_unasked() {
    let scenario = desk("approve = true", "");
    let (run, tool) = start(&scenario);
    run.send(Command::Breaker {
        tool: "refund".into(),
        action: crate::log::event::command::BreakerOverride::Hold,
        by: crate::log::event::Initiator::You,
    });
    let events = facts(&run).await;
    assert_eq!(tool.calls().len(), 0);
    assert!(kinds(&events, &["question."]).is_empty());
    assert!(said(&events).contains("circuit_open:refund"), "{}", said(&events));
}

#[tokio::test(start_paused = true)]
async fn denial_is_no_failure_of_tool() {
    let fallback = "safe_mode = { fallback = { ok = false } }\nbreaker = { fail_threshold = 1 }";
    let (run, _) = start(&desk(&format!("approve = true\n{fallback}"), ""));
    answer(&run, &*asked(&run, 1).await, deny("no"));
    let events = facts(&run).await;
    assert!(kinds(&events, &["breaker.", "call.degraded", "call.retried"]).is_empty());
    assert!(said(&events).starts_with("error: operator denied this call: no."));
}

#[tokio::test(start_paused = true)]
async fn rules_decide_without_a_person() {
    for (rules, calls, asks) in [
        ("[[approve]]\ntool = \"refund\"\ndo = \"deny\"\n", 0, 0),
        ("[[approve]]\ntool = \"ref*\"\ndo = \"allow\"\n", 1, 0),
        ("[[approve]]\ntool = \"*\"\nagent = \"boss\"\ndo = \"deny\"\n", 1, 0),
        ("[[approve]]\ntool = \"*\"\nwhen = \"args.amount_usd > 100\"\ndo = \"ask\"\n", 1, 1),
    ] {
        let tool = Recorder::default();
        let script = "[[script]]\nperson = \"operator\"\napprove = true\n";
        let scenario = desk("", &format!("{rules}{script}"));
        let run = engine().start(launch(&scenario, &tool, PeopleMode::Script));
        let events = facts(&run).await;
        assert_eq!(tool.calls().len(), calls, "{rules}");
        assert_eq!(world(&events).questions.tally.asked, asks, "{rules}");
    }
}

/// A thousand calls that a rule decides: nobody is asked.
#[tokio::test(start_paused = true)]
async fn rule_decides_a_thousand_calls() {
    let row = |round: u32| {
        let calls = (0..50).map(|nth| {
            let amount = round * 50 + nth;
            format!("{{ tool = \"refund\", args = {{ amount_usd = {amount} }} }},")
        });
        let calls: String = calls.collect();
        format!("[[script]]\nagent = \"billing\"\nround = {round}\ncalls = [{calls}]\n")
    };
    let rows: String = (1..=20).map(row).collect();
    let rule = "[[approve]]\ntool = \"refund\"\ndo = \"allow\"\n";
    let text =
        DESK.replace("APPROVE", "").replace("people = [", "max_tool_rounds = 50\npeople = [");
    let (head, script) = text.split_once("[[script]]").expect("a script");
    let scenario = read(&format!("{head}{rule}{rows}[[script]]{script}"), &[]);
    let tool = Recorder::default();
    let run = engine().start(launch(&scenario, &tool, PeopleMode::Nobody));
    let world = world(&facts(&run).await);
    assert_eq!(tool.calls().len(), 1_000);
    assert_eq!(world.questions.tally.by_rule, 1_000);
    assert_eq!((world.questions.tally.asked, world.questions.open().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn denied_task_fails_with_its_reason() {
    let text = include_str!("../../../scenarios/morning-report.toml");
    let rule = "\n[[approve]]\ntool = \"*\"\nwhen = \"agent == ''\"\ndo = \"deny\"\n";
    let scenario = read(&format!("{text}{rule}"), &[]);
    let run = engine().start(Launch::scripted(scenario, true));
    let events = facts(&run).await;
    let failed = events.iter().filter(|event| event.kind.name() == "task.failed").count();
    assert!(failed > 0);
    let line = events.iter().find(|event| event.kind.name() == "task.failed").expect("a task");
    assert!(line.to_line().expect("JSON").contains("approval_denied:"), "{line:?}");
}

/// Decisions of rules are no questions to the person: they do not count for the script.
#[tokio::test(start_paused = true)]
async fn rules_do_not_count_as_asked() {
    let rows = "[[approve]]\ntool = \"refund\"\nagent = \"billing\"\nwhen = \"args.amount_usd < 100\"\n\
                do = \"allow\"\n[[script]]\nperson = \"operator\"\nwhen = \"nth == 1\"\napprove = true\n";
    let text = format!("{}{rows}", DESK.replace("APPROVE", "")).replace(
        "calls = [{ tool = \"refund\", args = { amount_usd = 150 } }]",
        "calls = [{ tool = \"refund\", args = { amount_usd = 50 } }, \
         { tool = \"refund\", args = { amount_usd = 150 } }]",
    );
    let rule = "[[approve]]\ntool = \"refund\"\nwhen = \"args.amount_usd >= 100\"\ndo = \"ask\"\n";
    let tool = Recorder::default();
    let scenario = read(&format!("{text}{rule}"), &[]);
    let run = engine().start(launch(&scenario, &tool, PeopleMode::Script));
    let events = facts(&run).await;
    assert_eq!(tool.calls().len(), 2, "{:?}", answers(&events));
}

/// An agent that retries on its own, and a client that does.
const NAIVE: &str = r#"
title = "Naive"
pattern = "resilience"
goal = "Refund."
[budget]
max_seconds = 60
[resilience]
agents = 1
turns = 1
steps = ["refund"]
pool = 1
guarded = false
naive = { client_retries = 2, tool_retries = 0, agent_retries = 2 }
[tools.refund]
approve = true
fixture = { rows = [{ result = { ok = true } }] }
"#;

#[tokio::test(start_paused = true)]
async fn naive_retries_need_their_own_approval() {
    let tool = Recorder { fails: 9, ..Recorder::default() };
    let run = engine().start(launch(&read(NAIVE, &[]), &tool, PeopleMode::Wait));
    answer(&run, &*asked(&run, 1).await, approve());
    // The client does not send the request again, and the agent asks before it does.
    let second = asked(&run, 2).await;
    assert_eq!(tool.calls().len(), 1);
    // After a denial it does not ask.
    answer(&run, &second, deny("no"));
    let events = facts(&run).await;
    assert_eq!(kinds(&events, &["question.asked"]).len(), 2);
    assert_eq!(tool.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn remembered_approval_ends_when_irreversible() {
    let (run, _) = start(&read(&TWO.replace("EFFECTS", ""), &[]));
    run.send(remembered(&*asked(&run, 1).await));
    let other = asked(&run, 3).await;
    answer(&run, &other, deny(""));
    let full = facts(&run).await;
    // Up to the decision by the remembered approval.
    let by_rule = full
        .iter()
        .position(|event| matches!(&event.kind, EventKind::QuestionAsked(asked) if asked.by_rule));
    let recording = continued::stored(&full[..by_rule.expect("a decision by rule")]);
    let resumption = crate::engine::Resumption {
        recording,
        by: crate::log::event::Initiator::You,
        in_doubt: crate::scenario::spec::InDoubt::Stop,
    };
    let changed = read(&TWO.replace("EFFECTS", "effects = \"irreversible\""), &[]);
    let people = PeopleMode::Nobody;
    let run =
        engine().resume(launch(&changed, &Recorder::default(), people), resumption).expect("a run");
    let events = facts(&run).await;
    assert!(!answers(&events).iter().any(|it| it.by == AnsweredBy::Rule), "nothing is remembered");
}
