//! `roundtable mcp`, as its clients see it: lines over pipes, and the official SDK.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::binary::{Home, end, without_times};
use crate::support::mcp::{McpClient, sdk_python};
use crate::support::people::DESK;

/// A scenario whose worker starts a program.
pub const WORKER: &str = r#"
title = "Worker"
pattern = "orchestrator"
goal = "Report."
[orchestrator]
plan_prompt = "Plan."
finalize_prompt = "Write."
level = { name = "health", otherwise = "green" }
sections = { disk = "disk_worker" }
[workers.disk_worker]
description = "Measures the disk"
args = {}
contract = { used = "number" }
command = { program = "echo", args = ['{"used": 12}'] }
[[script]]
step = "plan"
reply = { kind = "plan", tasks = [{ id = "disk", worker = "disk_worker", args = {}, critical = false }] }
[[script]]
step = "finalize"
text = "There is room."
"#;

fn desk() -> Home {
    let home = Home::new();
    home.write("scenarios/desk.toml", DESK);
    home
}

/// Starts the desk, which asks people, and waits until it asks.
fn begin_desk(client: &mut McpClient) -> u64 {
    let id = client.begin("run_scenario", json!({ "scenario": "desk", "people": "wait" }));
    while !client.note()["message"].as_str().is_some_and(|text| text.contains("operator")) {}
    id
}

fn questions(client: &mut McpClient) -> Vec<Value> {
    let read = client.data("read_run", json!({ "run": "last", "what": "questions" }));
    read["questions"].as_array().expect("a list").clone()
}

#[test]
fn tools_have_schemas() {
    let home = Home::new();
    let names = |options: &[&str]| {
        let tools = McpClient::start(&home, options).request("tools/list", json!({}));
        let tools = tools["result"]["tools"].as_array().expect("a list").clone();
        for tool in &tools {
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object", "{tool}");
            assert_eq!(schema["additionalProperties"], false, "{tool}");
            // Endpoints of models refuse a tool without it.
            for (name, property) in schema["properties"].as_object().expect("properties") {
                assert!(property["description"].is_string(), "{name}: {tool}");
                assert!(property["type"].is_string(), "{name}: {tool}");
            }
        }
        tools
            .iter()
            .map(|tool| tool["name"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    let usual = ["list_scenarios", "run_scenario", "list_runs", "read_run"];
    assert_eq!(names(&[]), usual);
    assert_eq!(names(&["--allow-answers"]), [&usual[..], &["answer_question"]].concat());
}

#[test]
fn scenarios_are_those_offered() {
    let home = desk();
    home.write("other/worker.toml", WORKER);
    home.write("other/broken.toml", "title = 3");
    let listed = |options: &[&str]| {
        let listed = McpClient::start(&home, options).data("list_scenarios", json!({}));
        listed["scenarios"].as_array().expect("a list").clone()
    };
    let all = listed(&[]);
    let of = |name: &str| all.iter().find(|row| row["name"] == name).expect("listed").clone();
    assert_eq!(of("desk")["pattern"], "swarm");
    let launch = of("checkout-launch");
    let region = &launch["inputs"].as_array().expect("inputs")[2];
    assert_eq!((&region["type"], &region["default"]), (&json!("choice"), &json!("US")));
    assert_eq!(region["choices"], json!(["US", "EU"]));
    assert_eq!(launch["flags"][0]["name"], "legal_analyst");
    assert_eq!((&launch["outside"], &launch["needs_permission"]), (&json!([]), &json!(false)));
    let own = listed(&["other", "checkout-launch"]);
    let names: Vec<&Value> = own.iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["broken", "worker", "checkout-launch"]);
    assert!(own[0]["problem"].is_string(), "{own:?}");
    assert_eq!(
        (&own[1]["needs_permission"], &own[1]["outside"][0]),
        (&json!(true), &json!("run echo {\"used\": 12}"))
    );
    for (args, wrong) in [
        (&["mcp", "-"][..], "standard input has the messages"),
        (&["mcp", "no-such"], "there is no file no-such"),
        (&["mcp", "other/worker.toml", "other"], "two scenarios have the name worker"),
    ] {
        let ended = home.run(args);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.err.contains(wrong), "{args:?}: {ended:?}");
    }
}

#[test]
fn outcome_equals_headless_run() {
    let home = desk();
    let mut client = McpClient::start(&home, &[]);
    for (args, command) in [
        (
            json!({
                "scenario": "checkout-launch", "inputs": { "region": "EU" }, "seed": 7,
                "flags": { "legal_analyst": "on@round:2" }, "instant": true,
            }),
            &[
                "checkout-launch",
                "--set",
                "inputs.region=EU",
                "--seed",
                "7",
                "--flag",
                "legal_analyst=on@round:2",
            ][..],
        ),
        (json!({ "scenario": "support-swarm", "instant": true }), &["support-swarm"]),
        (
            json!({ "scenario": "support-swarm", "goal": "Where is it?", "instant": true }),
            &["support-swarm", "--message", "Where is it?"],
        ),
        (
            json!({ "scenario": "checkout-blocked", "goal": "Say \"no\"\n= 5", "instant": true }),
            &["checkout-blocked", "--set", "goal=\"Say \\\"no\\\"\\n= 5\""],
        ),
        (json!({ "scenario": "desk" }), &["desk"]),
    ] {
        let result = client.call("run_scenario", args.clone());
        let ran = home.run(&[&["run", "--instant", "--format", "json"], command].concat());
        let (here, there) =
            (without_times(&result["structuredContent"]), without_times(&ran.json()));
        assert_eq!(here, there, "{args}");
        let text = result["content"][0]["text"].as_str().expect("a text");
        let reason = there["stop_reason"].as_str().expect("one");
        assert!(text.contains(&format!("({reason}); run r-")), "{text}");
    }
    let rows = home.run(&["runs", "--json"]).json();
    let last = client.data("read_run", json!({ "run": "last" }));
    assert!(rows.as_array().expect("rows").iter().any(|row| row["id"] == last["run_id"]), "kept");
}

#[test]
fn progress_is_in_words() {
    let home = desk();
    let mut client = McpClient::start(&home, &["--allow-answers"]);
    begin_desk(&mut client);
    let answer = json!({ "run": "last", "question": "q1", "deny": true, "reason": "Late." });
    let answered = client.call("answer_question", answer);
    let text = answered["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("q1: denied by"), "{text}");
    while !client.note()["message"].as_str().is_some_and(|text| text.contains("manager")) {}
    let numbers = client.notes.iter().map(|note| note["progress"].as_f64().expect("a number"));
    assert!(numbers.is_sorted_by(|a, b| a < b), "{:?}", client.notes);
    assert!(client.notes.iter().all(|note| note["progressToken"] == "p"), "{:?}", client.notes);
}

#[test]
fn cancel_ends_the_run() {
    let home = desk();
    let mut client = McpClient::start(&home, &["--allow-answers"]);
    let id = begin_desk(&mut client);
    let cancelled = json!({ "requestId": id, "reason": "changed my mind" });
    client.write(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled })
            .to_string(),
    );
    let row = client.wait_for_run(|row| row["status"] == "ended");
    assert_eq!(row["stop_reason"], "cancelled");
    assert_eq!(client.end().0.code(), Some(0));
    assert_eq!(home.run(&["runs", "--json"]).json()[0]["stop_reason"], "cancelled");
}

#[test]
fn end_of_server_cancels_runs() {
    for signal in [None, Some("TERM"), Some("INT")] {
        let home = desk();
        let mut client = McpClient::start(&home, &["--allow-answers"]);
        begin_desk(&mut client);
        let (status, _, err) = match signal {
            None => client.end(),
            Some(signal) => {
                client.server().signal(signal);
                client.wait()
            }
        };
        assert_eq!(status.code(), Some(0), "{signal:?}: {err}");
        assert_eq!(
            home.run(&["runs", "--json"]).json()[0]["stop_reason"],
            "cancelled",
            "{signal:?}"
        );
    }
}

#[test]
fn refusals_say_what_to_do() {
    let home = desk();
    home.write("elsewhere.toml", DESK);
    let mut client = McpClient::start(&home, &[]);
    for (args, why) in [
        (
            json!({ "scenario": "checkout-lunch" }),
            "no scenario checkout-lunch is offered; list_scenarios has the names (did you mean checkout-launch?)",
        ),
        (json!({ "scenario": "elsewhere.toml" }), "only the operator names files"),
        (json!({ "scenario": "../x" }), "only the operator names files"),
        (json!({ "scenario": "elsewhere" }), "list_scenarios has the names"),
        (json!({ "scenario": "desk", "live": true }), "`roundtable mcp --allow-live`"),
        (json!({ "scenario": "desk", "model": "gpt-5" }), "a model needs live: true"),
        (json!({ "scenario": "desk", "people": "wait" }), "`roundtable mcp --allow-answers`"),
        (
            json!({ "scenario": "checkout-launch", "inputs": { "regoin": "EU" } }),
            "the scenario has: campaign, report_date, region",
        ),
        (json!({ "scenario": "checkout-launch", "inputs": { "region": "XX" } }), "region"),
        (
            json!({ "scenario": "checkout-launch", "flags": { "legal": true } }),
            "the scenario has: legal_analyst",
        ),
        (
            json!({ "scenario": "checkout-launch", "flags": { "legal_analyst": "maybe" } }),
            "expected NAME=on",
        ),
    ] {
        let refusal = client.refusal("run_scenario", args.clone());
        assert!(refusal.contains(why), "{args}: {refusal}");
    }
    for (tool, args, why) in [
        ("run", json!({}), "unknown tool"),
        ("answer_question", json!({ "run": "last", "question": "q1" }), "unknown tool"),
        ("run_scenario", json!({}), "missing field `scenario`"),
        ("run_scenario", json!({ "scenario": "desk", "trust": true }), "unknown field `trust`"),
        ("read_run", json!({ "run": "last", "what": "secrets" }), "unknown variant `secrets`"),
    ] {
        let reply = client.request("tools/call", json!({ "name": tool, "arguments": args }));
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
        assert!(reply["error"]["message"].as_str().expect("a text").contains(why), "{reply}");
    }
    assert_eq!(client.data("list_runs", json!({})), json!({ "runs": [], "found": 0 }));
}

#[test]
fn programs_start_only_with_permission() {
    let home = Home::new();
    home.write("scenarios/worker.toml", WORKER);
    let mut client = McpClient::start(&home, &[]);
    let refusal = client.refusal("run_scenario", json!({ "scenario": "worker" }));
    assert!(refusal.contains("run echo"), "{refusal}");
    assert!(refusal.contains("roundtable run scenarios/worker.toml --trust"), "{refusal}");
    assert_eq!(home.run(&["run", "scenarios/worker.toml", "--trust"]).code, Some(0));
    let outcome = client.data("run_scenario", json!({ "scenario": "worker" }));
    assert_eq!(outcome["status"], "ok", "{outcome}");
}

/// A client chooses values of inputs. One that becomes a folder is the operator's to allow, also of a shipped
/// scenario.
#[test]
fn folders_need_permission() {
    let home = Home::new();
    home.write("notes/car.md", "# Car\n\nThe excess is 250 EUR for each claim.\n");
    let mut client = McpClient::start(&home, &[]);
    let listed = client.data("list_scenarios", json!({}));
    let listed = listed["scenarios"].as_array().expect("a list").clone();
    let notes = listed.iter().find(|it| it["name"] == "own-notes").expect("shipped");
    assert_eq!(notes["needs_permission"], false, "{notes}");
    let inputs = notes["inputs"].as_array().expect("a list");
    let marked: Vec<&Value> =
        inputs.iter().filter(|it| it["needs_permission"] == true).map(|it| &it["name"]).collect();
    assert_eq!(marked, ["folder"], "{notes}");
    let ask = |folder: &str| {
        let question = "What is the excess of the car insurance?";
        let inputs = json!({ "folder": folder, "question": question });
        json!({ "scenario": "own-notes", "instant": true, "inputs": inputs })
    };
    for folder in ["notes", "/", "~", "..", "\"notes\"", "{ value = 'notes' }"] {
        let refusal = client.refusal("run_scenario", ask(folder));
        assert!(refusal.contains("read the documents in /"), "{folder}: {refusal}");
        assert!(refusal.contains("roundtable run own-notes --set"), "{folder}: {refusal}");
    }
    let question = "inputs.question=\"What is the excess of the car insurance?\"";
    let folder = "inputs.folder=\"notes\"";
    let allowed = ["run", "own-notes", "--instant", "--trust", "--set", folder, "--set", question];
    assert_eq!(home.run(&allowed).code, Some(0));
    let outcome = client.data("run_scenario", ask("notes"));
    assert!(outcome["answer"].as_str().is_some_and(|it| it.contains("250")), "{outcome}");
    let refusal = client.refusal("run_scenario", ask("/etc"));
    assert!(refusal.contains("read the documents in /etc"), "{refusal}");
    // A client gives an input a value, and no other choices.
    let args = json!({ "scenario": "checkout-launch", "inputs": { "region": "{ value = 'XX' }" } });
    assert!(client.refusal("run_scenario", args).contains("choices"));
}

#[test]
fn clients_answer_if_allowed() {
    let home = desk();
    let mut client = McpClient::start(&home, &["--allow-answers"]);
    let run = client.send(
        "tools/call",
        json!({ "name": "run_scenario", "arguments": { "scenario": "desk", "people": "wait" } }),
    );
    client.wait_for_run(|row| row["waits_for"] == json!(["operator"]));
    let open = questions(&mut client);
    assert_eq!((&open[0]["id"], &open[0]["kind"]), (&json!("q1"), &json!("approval")));
    assert_eq!(open[0]["expected"], "approve it or deny it");
    assert!(open[0]["text"].as_str().is_some_and(|text| text.contains("149.9")), "{open:?}");
    assert!(open[0]["age_ms"].is_u64(), "{open:?}");
    let answer = |fields: Value| {
        let mut args = json!({ "run": "last", "question": "q1" });
        args.as_object_mut().expect("one").extend(fields.as_object().expect("one").clone());
        args
    };
    for (fields, why) in [
        (json!({}), "there is no answer"),
        (json!({ "approve": true, "deny": true }), "it is approved and denied"),
        (json!({ "approve": true, "choice": "go" }), "more than one answer"),
        (json!({ "text": "fine" }), "approve it or deny it"),
        (json!({ "args": { "charge": "ch_2" } }), "the argument `amount_usd` is missing"),
        (json!({ "approve": true, "digest": "0" }), "the digest is not that of q1"),
        (json!({ "question": "q2", "approve": true }), "q2 is not open"),
        (json!({ "run": "r-x", "approve": true }), "r-x is no run of this server"),
    ] {
        let refusal = client.refusal("answer_question", answer(fields.clone()));
        assert!(refusal.contains(why), "{fields}: {refusal}");
    }
    let digest = &open[0]["digest"];
    let other = json!({ "digest": digest, "args": { "charge": "ch_2", "amount_usd": 99.5 } });
    let answered = client.call("answer_question", answer(other));
    let text = answered["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("q1: approved with other arguments by"), "{text}");
    assert!(text.contains("(MCP client lines)"), "{text}");
    client.wait_for_run(|row| row["waits_for"] == json!(["manager"]));
    let late = client.refusal("answer_question", answer(json!({ "deny": true })));
    assert!(late.contains("q1 is not open any more: approved"), "{late}");
    let id = client.send("tools/call", json!({ "name": "answer_question", "arguments": { "run": "last", "question": "q2", "text": "We are." } }));
    // The run ends with this answer: either reply may come first.
    let mut replies = [client.read().expect("one"), client.read().expect("one")];
    replies.sort_by_key(|reply| reply["id"] == id);
    let outcome = &replies[0]["result"]["structuredContent"];
    assert_eq!((&replies[0]["id"], &outcome["answer"]), (&json!(run), &json!("We are.")));
    assert_eq!(outcome["questions"]["by_person"], 2);
}

#[test]
fn nobody_answers_without_permission() {
    let home = desk();
    let mut client = McpClient::start_with(&home, &[], json!({ "elicitation": {} }));
    let outcome = client.data("run_scenario", json!({ "scenario": "desk", "people": "nobody" }));
    assert_eq!(outcome["stop_reason"], "no_answer:manager");
}

/// A user who is asked by the client answers there; one who declines leaves the question open.
#[test]
fn client_puts_questions_to_user() {
    let home = desk();
    let capabilities = json!({ "elicitation": {} });
    let mut client = McpClient::start_with(&home, &["--allow-answers"], capabilities);
    let args =
        json!({ "name": "run_scenario", "arguments": { "scenario": "desk", "people": "wait" } });
    let run = client.send("tools/call", args);
    let form = client.read().expect("a request");
    assert_eq!(form["method"], "elicitation/create", "{form}");
    let schema = &form["params"]["requestedSchema"];
    assert_eq!(schema["required"], json!(["approve"]), "{form}");
    assert!(
        form["params"]["message"].as_str().is_some_and(|text| text.contains("149.9")),
        "{form}"
    );
    let content = json!({ "approve": false, "reason": "Too late." });
    let accepted = json!({ "action": "accept", "content": content });
    client.write(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": accepted }).to_string());
    let form = client.read().expect("a request");
    assert_eq!(form["params"]["requestedSchema"]["required"], json!(["text"]), "{form}");
    let declined = json!({ "action": "decline" });
    client.write(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": declined }).to_string());
    let open = questions(&mut client);
    assert_eq!(open.len(), 1, "{open:?}");
    let text = client.data("read_run", json!({ "run": "last", "what": "events", "limit": 500 }));
    let answered = text["events"]
        .as_array()
        .expect("events")
        .iter()
        .find(|it| it["kind"] == "question.answered");
    let answered = answered.expect("answered");
    assert_eq!((&answered["answer"], &answered["text"]), (&json!("deny"), &json!("Too late.")));
    let answer = json!({ "run": "last", "question": "q2", "text": "We are." });
    client.send("tools/call", json!({ "name": "answer_question", "arguments": answer }));
    let replies = [client.read().expect("one"), client.read().expect("one")];
    let outcome = replies.iter().find(|reply| reply["id"] == run).expect("the outcome");
    assert_eq!(outcome["result"]["structuredContent"]["answer"], "We are.");
}

/// An answer that is none is requested again with the reason, and after three the call is denied.
#[test]
fn malformed_answers_do_not_hang_calls() {
    let home = desk();
    let capabilities = json!({ "elicitation": {} });
    let mut client = McpClient::start_with(&home, &["--allow-answers"], capabilities);
    let run = json!({ "scenario": "desk", "people": "wait" });
    client.send("tools/call", json!({ "name": "run_scenario", "arguments": run }));
    for (nth, (malformed, why)) in [
        (json!({}), None),
        (json!({ "action": "accept", "content": "yes" }), Some("it is no answer to a form")),
        (json!({ "action": "accept", "content": {} }), Some("its content is no object")),
    ]
    .into_iter()
    .enumerate()
    {
        let form = client.read().expect("a request");
        assert_eq!(form["method"], "elicitation/create", "{nth}: {form}");
        let message = form["params"]["message"].as_str().expect("a text");
        let last =
            message.lines().find_map(|line| line.strip_prefix("The last answer was not taken: "));
        assert_eq!(last, why, "{nth}: {message}");
        client.respond(&form, malformed);
    }
    let form = client.read().expect("the next question");
    assert_eq!(form["params"]["requestedSchema"]["required"], json!(["text"]), "{form}");
    client.respond(&form, json!({ "action": "accept", "content": { "text": "We are." } }));
    let ended = client.read().expect("the outcome");
    let outcome = &ended["result"]["structuredContent"];
    assert_eq!(outcome["answer"], "We are.", "{ended}");
    let read = json!({ "run": "last", "what": "text" });
    let text = client.call("read_run", read)["content"][0]["text"].clone();
    let text = text.as_str().expect("a text");
    assert!(text.contains("the answers of the client could not be taken"), "{text}");
}

/// A form of a server that the run calls reaches the user of the client as it is.
#[test]
fn client_gets_forms_of_servers() {
    let Some(python) = sdk_python() else { return };
    let home = Home::new();
    home.write("fake.py", include_str!("../support/mcp_fake.py"));
    let script = home.path().join("fake.py").display().to_string();
    home.write(
        "scenarios/asking.toml",
        &format!(
            "title = \"T\"\npattern = \"swarm\"\ngoal = \"G\"\n[swarm]\nroot = \"desk\"\n\
             [mcp.shop]\ncommand = {{ program = {:?}, args = [{script:?}] }}\n\
             [tools.ask]\ndescription = \"T\"\nmcp = {{ server = \"shop\", tool = \"ask\" }}\napprove = false\n\
             [agents.desk]\ndescription = \"D\"\nmembers = [\"clerk\", \"other\"]\nentry = \"clerk\"\n\
             [agents.clerk]\ndescription = \"C\"\ntools = [\"ask\"]\n\
             [agents.other]\ndescription = \"O\"\n\
             [[script]]\nagent = \"clerk\"\nround = 1\ncalls = [{{ tool = \"ask\", args = {{}} }}]\n\
             [[script]]\nagent = \"clerk\"\ntext = \"{{{{results.0.text}}}}\"\n",
            python.display().to_string()
        ),
    );
    let allowed = home.run(&["run", "scenarios/asking.toml", "--trust", "--people", "nobody"]);
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    let capabilities = json!({ "elicitation": {} });
    let mut client = McpClient::start_with(&home, &["--allow-answers"], capabilities);
    let run = client.send(
        "tools/call",
        json!({ "name": "run_scenario", "arguments": { "scenario": "asking", "people": "wait" } }),
    );
    let form = client.read().expect("a request");
    let asked = &form["params"]["requestedSchema"];
    assert_eq!(asked["properties"], json!({ "name": { "type": "string" } }), "{form}");
    assert_eq!(asked["required"], json!(["name"]), "{form}");
    let accepted = json!({ "action": "accept", "content": { "name": "Ada" } });
    client.write(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": accepted }).to_string());
    let ended = client.read().expect("the outcome");
    assert_eq!(ended["id"], run, "{ended}");
    let answer = ended["result"]["structuredContent"]["answer"].as_str().expect("a text");
    assert!(answer.contains(r#""content":{"name":"Ada"}"#), "{answer}");
}

#[test]
fn other_runs_need_permission() {
    let home = desk();
    let before = home.run(&["run", "checkout-launch", "--instant", "--format", "json"]).json();
    let id = before["run_id"].clone();
    let mut client = McpClient::start(&home, &[]);
    assert_eq!(client.data("list_runs", json!({}))["runs"], json!([]));
    for name in [&id, &json!("last"), &json!("")] {
        let refusal = client.refusal("read_run", json!({ "run": name }));
        assert!(refusal.contains("`roundtable mcp --allow-runs`"), "{refusal}");
    }
    client.data("run_scenario", json!({ "scenario": "desk" }));
    let own = client.data("list_runs", json!({}));
    assert_eq!((&own["found"], &own["runs"][0]["scenario"]), (&json!(1), &json!("desk")));
    let mut client = McpClient::start(&home, &["--allow-runs"]);
    let all = client.data("list_runs", json!({}));
    let rows = home.run(&["runs", "--json"]).json();
    assert_eq!(all["runs"], rows);
    let ended = client.data("list_runs", json!({ "limit": 1, "status": "success" }));
    assert_eq!((&ended["runs"][0]["id"], &ended["found"]), (&id, &json!(1)));
    assert!(client.refusal("list_runs", json!({ "status": "happy" })).contains("it is one of"));
    assert_eq!(client.data("read_run", json!({ "run": id })), before);
    assert!(
        client.refusal("read_run", json!({ "run": "r-none" })).contains("no kept run is called")
    );
}

#[test]
fn events_come_in_pages() {
    let home = Home::new();
    for options in [&[][..], &["--no-store"]] {
        let mut client = McpClient::start(&home, options);
        let run = json!({ "scenario": "checkout-launch", "instant": true });
        let id = client.data("run_scenario", run)["run_id"].clone();
        let (mut from, mut seqs) = (json!(0), Vec::new());
        let total = loop {
            let page = json!({ "run": id, "what": "events", "from": from, "limit": 25 });
            let page = client.data("read_run", page);
            let events = page["events"].as_array().expect("events");
            assert!(events.len() <= 25 && events.iter().all(|event| event["run"] == id));
            seqs.extend(events.iter().map(|event| event["seq"].as_u64().expect("a number")));
            from = page["next"].clone();
            if from.is_null() {
                break page["total"].as_u64().expect("a number");
            }
        };
        assert_eq!(seqs, (0..total).collect::<Vec<_>>(), "{options:?}");
        let page = client.call("read_run", json!({ "run": id, "what": "text", "limit": 2 }));
        let first = page["content"][0]["text"].as_str().expect("a text");
        assert_eq!(first.lines().count(), 2);
        assert!(
            page["content"][1]["text"].as_str().is_some_and(|text| text.contains("from = 2 has")),
            "{page}"
        );
        let all = client.call("read_run", json!({ "run": id, "what": "text" }));
        let text = all["content"][0]["text"].as_str().expect("a text");
        assert!(text.starts_with(first) && all["content"][1].is_null(), "{all}");
        if options.is_empty() {
            let id = id.as_str().expect("an id");
            assert_eq!(text, home.run(&["show", id, "--format", "text"]).out);
        }
        let refusal = client.refusal("read_run", json!({ "run": id, "what": "markdown" }));
        assert!(refusal.contains("only research writes it"), "{refusal}");
    }
}

/// An event that is longer than a page is named, and a long line is cut.
#[test]
fn long_answers_are_cut() {
    let home = Home::new();
    let long = "x".repeat(300_000);
    home.write(
        "scenarios/long.toml",
        &DESK.replace("It was charged twice.", &long).replace("I was charged twice.", &long),
    );
    let mut client = McpClient::start(&home, &[]);
    let result = client.call("run_scenario", json!({ "scenario": "long", "people": "nobody" }));
    assert!(result.to_string().len() < 500_000);
    let page = client.data("read_run", json!({ "run": "last", "what": "events", "limit": 500 }));
    let cut = page["events"]
        .as_array()
        .expect("events")
        .iter()
        .find(|event| event["left_out_bytes"].is_u64());
    assert_eq!(cut.expect("one")["kind"], "run.started", "{cut:?}");
    let text = client.call("read_run", json!({ "run": "last", "what": "text" }));
    assert!(text.to_string().len() < 500_000);
}

#[test]
fn ninth_run_is_refused() {
    let home = desk();
    let mut client = McpClient::start(&home, &["--allow-answers"]);
    for _ in 0..8 {
        client.send("tools/call", json!({ "name": "run_scenario", "arguments": { "scenario": "desk", "people": "wait" } }));
    }
    // Requests are served at the same time: any of nine could be the one too many.
    while client.data("list_runs", json!({}))["found"] != 8 {}
    let refusal = client.refusal("run_scenario", json!({ "scenario": "desk" }));
    assert!(refusal.contains("8 runs are played already"), "{refusal}");
}

#[test]
fn garbage_does_not_end_it() {
    let home = Home::new();
    let mut client = McpClient::start(&home, &[]);
    for line in ["", "garbage", "{", "[1]", "{\"jsonrpc\":\"2.0\"}", "\u{1b}[2J\u{feff}"] {
        client.write(line);
    }
    let id = client.send("tools/call", json!({ "name": "list_runs" }));
    loop {
        let message = client.read().expect("a message");
        if message["id"] == id {
            assert_eq!(message["result"]["isError"], false, "{message}");
            break;
        }
        assert_eq!(message["error"]["code"], -32600, "{message}");
    }
    let (status, out, err) = client.end();
    assert_eq!((status.code(), &*out, &*err), (Some(0), "", ""));
}

#[test]
fn odd_requests_are_read_or_explained() {
    let home = desk();
    let mut client = McpClient::connect(&home, &[]);
    let hello = |capabilities: Value| {
        let client = json!({ "name": "lines", "version": "1" });
        json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client })
    };
    for odd in [hello(json!({ "sampling": [] })), json!({ "protocolVersion": 1 }), json!({})] {
        let refused = client.request("initialize", odd.clone());
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let why = refused["error"]["message"].as_str().expect("a text");
        assert!(why.starts_with("the params of initialize cannot be read: "), "{odd}: {why}");
    }
    let opened = client.request("initialize", hello(json!({})));
    assert_eq!(opened["result"]["serverInfo"]["name"], "roundtable", "{opened}");
    let text = json!({ "name": "list_runs", "arguments": "{}" });
    let refused = client.request("tools/call", text);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(client.request("no/such", json!({}))["error"]["code"], -32601);
    // Models write null for what they leave out.
    let args = json!({
        "scenario": "desk", "inputs": null, "flags": { "x": null }, "goal": null, "seed": null,
        "instant": true, "live": null, "model": null, "people": "nobody",
    });
    client.data("run_scenario", args);
    client.data("list_runs", json!({ "limit": null, "status": null }));
    // Half of an emoji, and a number that JSON does not have.
    let half = r#"{"jsonrpc":"2.0","id":"half","method":"tools/call","params":{"name":"read_run","arguments":{"run":"\ud83d"},"_meta":{"x":NaN}}}"#;
    client.write(half);
    let answer = client.read().expect("an answer");
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!("half"), &json!(true)));
}

#[test]
fn huge_line_ends_the_connection() {
    let home = Home::new();
    let mut client = McpClient::start(&home, &[]);
    client.write(&"x".repeat((4 << 20) + 1));
    let (status, _, err) = client.wait();
    assert_eq!(status.code(), Some(1), "{err}");
    assert!(err.contains("a message of the client has more than 4 MB"), "{err}");
}

#[test]
fn another_protocol_is_refused() {
    let home = Home::new();
    let mut client = McpClient::connect(&home, &[]);
    client.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let (status, out, err) = client.wait();
    assert_eq!((status.code(), &*out), (Some(1), ""), "{err}");
    assert!(err.contains("the client does not speak MCP"), "{err}");
}

#[test]
fn texts_of_models_are_harmless() {
    let home = Home::new();
    home.write(
        "scenarios/evil.toml",
        &DESK.replace("It was charged twice.", "\\u001b[2J\\u202eEvil"),
    );
    let mut client = McpClient::start(&home, &[]);
    client.data("run_scenario", json!({ "scenario": "evil", "people": "nobody" }));
    let id = client.send("tools/call", json!({ "name": "read_run", "arguments": { "run": "last", "what": "events", "limit": 500 } }));
    let line = client.line();
    assert!(line.contains(&format!("\"id\":{id}")) && line.contains("Evil"), "{line}");
    assert!(line.contains("\\u202e") && !line.contains(['\u{202e}', '\u{1b}']), "{line}");
}

/// A part of the official conformance suite; CONTRIBUTING.md has the command that runs all of it.
#[test]
fn conformance_suite_is_passed() {
    let Some(python) = sdk_python() else { return };
    let folder = Path::new(&std::env::var_os("ROUNDTABLE_MCP").expect("set")).join("npm");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/senders/mcp_conformance.py");
    let mut command = std::process::Command::new(&python);
    command.arg(&script).arg(folder).args(["tools_call", "tools-list"]);
    command.env("ROUNDTABLE", env!("CARGO_BIN_EXE_roundtable"));
    let ended = end(&mut command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// The official SDK, in both eras of the protocol.
#[test]
fn official_sdk_is_a_client() {
    let Some(python) = sdk_python() else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/senders/mcp_client.py");
    for (mode, version) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        let home = Home::new();
        home.write("desk.toml", DESK);
        let mut command = std::process::Command::new(&python);
        command.arg(&script).arg(env!("CARGO_BIN_EXE_roundtable")).arg(mode);
        command.current_dir(home.path()).env_clear().envs(home.env());
        let ended = end(&mut command);
        assert_eq!(ended.code, Some(0), "{mode}: {ended:?}");
        let told = ended.json();
        assert_eq!(told["version"], version);
        assert_eq!(told["tools"].as_array().map(Vec::len), Some(5));
        assert_eq!(told["names"], json!(["desk", "checkout-launch"]));
        let ran = home.run(&[
            "run",
            "checkout-launch",
            "--instant",
            "--set",
            "inputs.region=EU",
            "--format",
            "json",
        ]);
        assert_eq!(without_times(&told["run"]), without_times(&ran.json()), "{mode}");
        assert_eq!(told["desk"]["answer"], "We are.", "{mode}: {}", told["desk"]);
        assert_eq!(told["desk"]["questions"]["by_person"], 2, "{mode}");
        assert_eq!(told["asked"].as_array().map(Vec::len), Some(2), "{mode}");
        assert!(told["notes"].as_array().is_some_and(|notes| !notes.is_empty()), "{mode}");
        assert_eq!(told["events"], json!([0, 1, 2]), "{mode}");
        assert_eq!(told["refused"][0], true, "{mode}");
    }
}
