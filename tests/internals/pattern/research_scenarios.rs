//! The shipped scenarios of the pattern research, each to its end: what the research source document
//! shows and what it proposes to try, and the answers from documents and from the web.

use std::sync::Arc;

use crate::base::name::FlagName;
use crate::engine::{Launch, Toolbox};
use crate::scenario;
use crate::scenario::{Override, Scenario, ScenarioOrigin};
use crate::support::plan::{outcome, played};
use crate::support::wire::{Server, answer};
use serde_json::{Value, json};

fn shipped(name: &str, sets: &[(&str, &str)]) -> Arc<Scenario> {
    let shipped = scenario::shipped().iter().find(|it| it.name == name);
    let shipped = shipped.unwrap_or_else(|| panic!("{name} is shipped"));
    let sets: Vec<Override> =
        sets.iter().map(|(path, to)| Override::new(path, to).expect("an override")).collect();
    match scenario::load(shipped.text, ScenarioOrigin::Shipped(shipped.path), &sets) {
        Ok(scenario) => Arc::new(scenario),
        Err(problems) => panic!("{}", problems.pretty(false)),
    }
}

/// The outcome of a shipped scenario with these flags and overrides, latencies left out.
async fn came(name: &str, flags: &[(&str, bool)], sets: &[(&str, &str)]) -> Value {
    let flags = flags.iter().map(|(flag, on)| (FlagName::from(*flag), *on)).collect();
    let scenario = shipped(name, sets);
    // Offline nothing goes to the network; and nothing of folders is to be kept on the disk.
    let online = (name == "web-status")
        .then(|| Toolbox::make(&scenario, true, &|_| None).expect("nothing of the environment"));
    outcome(Launch { flags, tools: online, ..Launch::scripted(scenario, true) }).await
}

/// Ours has all fields of the source with the same values; ours may have more, times are its own.
#[track_caller]
fn holds(ours: &Value, theirs: &Value, path: &str) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in theirs.iter().filter(|(key, _)| *key != "elapsed_ms") {
                let path = format!("{path}.{key}");
                holds(ours.get(key).unwrap_or_else(|| panic!("{path} is missing")), value, &path);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            assert_eq!(ours.len(), theirs.len(), "{path}");
            for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                holds(ours, theirs, &format!("{path}[{at}]"));
            }
        }
        _ => assert_eq!(ours, theirs, "{path}"),
    }
}

const QUERY: &str = "What is the current US payments incident status and what enterprise SLA \
    commitments apply for uptime and P1 response time?";
const STATUS: &str = "https://official-status.example.com/incidents/payments-2026-03-07";
const SLA: &str = "https://vendor.example.com/policies/enterprise-sla";
const REGULATOR: &str = "https://regulator.example.org/guidance/customer-communications";
const RUMOUR: &str = "https://community-rumors.example.net/thread/payment-outage";

/// The source's own example output, and the history that its program writes with it.
#[tokio::test(start_paused = true)]
async fn payments_incident_matches_source() {
    let ours = played(&shipped("payments-incident", &[])).await;
    let denied = json!([
        { "url": REGULATOR, "reason": "source_denied_execution" },
        { "url": RUMOUR, "reason": "source_denied_policy" },
    ]);
    let theirs = json!({
        "status": "ok",
        "stop_reason": "success",
        "outcome": "grounded_research_answer",
        "answer": "Research brief: US payments incident is P1 with failed payment rate 3.4%, 5 chargeback alerts, and ETA about 45 minutes. Enterprise SLA includes 99.95% monthly uptime and a 15-minute first response target for P1 incidents (24/7). Timeline values are estimates and may change.",
        "citations": ["n1", "n2"],
        "citation_details": [
            { "id": "n1", "url": STATUS, "title": "Payments Incident Update", "published_at": "2026-03-07" },
            { "id": "n2", "url": SLA, "title": "Enterprise SLA", "published_at": "2026-01-15" },
        ],
        "aggregate": {
            "query": QUERY,
            "urls_found": 6,
            "urls_after_dedupe": 4,
            "pages_read": 2,
            "notes_count": 2,
            "citations_count": 2,
            "denied_sources": denied,
            "verified_notes": 2,
        },
        "trace": [
            { "step": 1, "phase": "plan", "steps": 5, "ok": true },
            { "step": 2, "phase": "search", "query": QUERY, "candidates": 6, "ok": true },
            { "step": 3, "phase": "dedupe", "urls_after_dedupe": 4, "ok": true },
            { "step": 4, "phase": "read_extract", "pages_read": 2, "notes": 2, "denied_sources": 2, "ok": true },
            { "step": 5, "phase": "verify", "checked_notes": 2, "issues": 0, "ok": true },
            { "step": 6, "phase": "synthesize", "answer_chars": 275, "citations": 2, "ok": true },
        ],
        "history": [
            { "step": 1, "action": "propose_research_plan", "step_ids": ["r1", "r2", "r3", "r4", "r5"] },
            { "step": 2, "action": "search_sources", "query": QUERY, "candidates": 6 },
            { "step": 3, "action": "dedupe_urls", "urls_after_dedupe": 4 },
            { "step": 4, "action": "read_extract_notes", "pages_read": 2, "denied_sources": denied },
            { "step": 5, "action": "verify_notes", "checked_notes": 2 },
            { "step": 6, "action": "synthesize_answer", "citations": ["n1", "n2"] },
        ],
    });
    holds(&ours, &theirs, "outcome");
    for line in ours["trace"].as_array().expect("a trace") {
        assert!(line["elapsed_ms"].as_u64().is_some_and(|ms| ms >= 1), "{line}");
    }
}

/// What the source proposes to try first: the vendor off the execution allowlist.
#[tokio::test(start_paused = true)]
async fn denied_vendor_leaves_one_note() {
    let ours = came("payments-incident", &[("vendor_runtime", false)], &[]).await;
    assert_eq!((&ours["stop_reason"], &ours["citations"]), (&json!("success"), &json!(["n1"])));
    let denied: Vec<&Value> = ours["aggregate"]["denied_sources"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| &it["url"])
        .collect();
    assert_eq!(denied, [SLA, REGULATOR, RUMOUR]);
    let answer = ours["answer"].as_str().expect("an answer");
    assert!(!answer.contains("99.95%"), "{answer}");
}

/// Then: one page alone.
#[tokio::test(start_paused = true)]
async fn one_page_gives_one_citation() {
    let ours = came("payments-incident", &[], &[("budget.max_read_pages", "1")]).await;
    assert_eq!(ours["aggregate"]["pages_read"], 1);
    assert_eq!(ours["aggregate"]["citations_count"], 1);
    // Of what comes after the budget nothing is asked: the source breaks there too.
    assert_eq!(ours["aggregate"]["denied_sources"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn other_region_notes_only_general_claims() {
    let ours = came("payments-incident", &[], &[("inputs.region", "EU")]).await;
    assert_eq!(ours["aggregate"]["pages_read"], 2);
    assert_eq!(ours["citation_details"][0]["url"], SLA);
    assert_eq!(ours["citations"], json!(["n1"]));
    let query = ours["aggregate"]["query"].as_str().expect("a query");
    assert!(query.contains("current EU payments"), "{query}");
}

/// What the source proposes to try last, and the rest of what a model can make up.
#[tokio::test(start_paused = true)]
async fn catches_fabrications() {
    for (wrong, reason, phase) in [
        ("quote", "verification_failed:quote_not_in_source", "verify"),
        ("citation", "invalid_answer:citation_unknown", "synthesize"),
        ("short_quote", "invalid_notes:quote", "read_extract"),
    ] {
        let ours = came("fabricated-quote", &[], &[("inputs.goes_wrong", wrong)]).await;
        assert_eq!(
            (&ours["status"], &ours["stop_reason"], &ours["phase"]),
            (&json!("stopped"), &json!(reason), &json!(phase)),
            "{wrong}"
        );
        assert_eq!(ours.get("answer"), None, "{wrong}");
    }
    let ours = came("fabricated-quote", &[], &[("inputs.goes_wrong", "nothing")]).await;
    assert_eq!((&ours["citations"], &ours["unconfirmed"]), (&json!(["n1", "n2"]), &json!([])));
}

#[tokio::test(start_paused = true)]
async fn refused_fabricated_quote_continues_run() {
    let ours = came("fabricated-quote", &[], &[("research.misquotes", "refuse")]).await;
    assert_eq!(ours["stop_reason"], "success");
    assert_eq!(ours["refused_notes"][0]["reason"], "quote_not_in_source");
    assert_eq!(ours["notes"].as_array().map(Vec::len), Some(2), "none is made up");
    // No other source says it now.
    assert_eq!(ours["unconfirmed"], json!(["n1", "n2"]));
}

/// The reasons of a list, each once, with how often it is there.
fn reasons(rows: &Value) -> Vec<(&str, usize)> {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for row in rows.as_array().into_iter().flatten() {
        let reason = row["reason"].as_str().expect("a reason");
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, times)) => *times += 1,
            None => reasons.push((reason, 1)),
        }
    }
    reasons.sort_unstable();
    reasons
}

#[tokio::test]
async fn rumour_mill_has_no_reliable_sources() {
    let ours = came("rumour-mill", &[], &[]).await;
    assert_eq!(
        (&ours["stop_reason"], &ours["phase"]),
        (&json!("no_reliable_sources"), &json!("read_extract"))
    );
    let denied = reasons(&ours["denied_sources"]);
    let [(execution, some), (policy, few)] = denied[..] else { panic!("{denied:?}") };
    assert_eq!((execution, policy), ("source_denied_execution", "source_denied_policy"));
    let skipped = reasons(&ours["skipped_sources"]);
    let [("stale", old)] = skipped[..] else { panic!("{skipped:?}") };
    assert!(some > 0 && few > 0 && old > 0);
    assert_eq!(some + few + old, 12, "every source has its reason");
}

#[tokio::test]
async fn status_page_gives_unconfirmed_answer() {
    let ours = came("rumour-mill", &[("status_page", true)], &[]).await;
    assert_eq!(ours["stop_reason"], "success");
    for cited in ours["citation_details"].as_array().expect("a list") {
        let url = cited["url"].as_str().expect("an address");
        assert!(url.starts_with("https://official-status.example.com/"), "{url}");
        assert!(cited["published_at"].as_str() >= Some("2026-02-10"), "{cited}");
    }
    for sentence in ours["sentences"].as_array().expect("a list") {
        assert_eq!(sentence["unconfirmed"], true, "{sentence}");
    }
}

/// A person's own folder, and the corpus where none is named.
#[tokio::test]
async fn own_notes_answer_in_their_words() {
    let ours = came("own-notes", &[], &[]).await;
    assert_eq!(ours["stop_reason"], "success");
    assert!(ours["conflicts"].as_array().is_some_and(|it| !it.is_empty()), "two say other figures");

    let folder = tempfile::tempdir().expect("a folder");
    let text = "# The flat\n\nThe lease of the flat ends on 30 September 2027. The rent is paid monthly.\n";
    std::fs::write(folder.path().join("flat & garden.md"), text).expect("written");
    let path = folder.path().to_str().expect("a path");
    let sets = [("inputs.folder", path), ("inputs.question", "When does the lease end?")];
    let ours = came("own-notes", &[], &sets).await;
    assert_eq!(ours["answer"], "The lease of the flat ends on 30 September 2027.");
    assert_eq!(
        ours["citation_details"][0]["url"], "https://notes.local/flat%20%26%20garden.md",
        "under the made-up host, none of the folder's path"
    );
    assert!(!ours.to_string().contains(path));

    let sets = [("inputs.folder", path), ("inputs.question", "Who won the regatta?")];
    let ours = came("own-notes", &[], &sets).await;
    assert_eq!(ours["status"], "stopped", "{ours}");
}

/// The settings of a scenario that replace the web's hosts with these.
fn on_this_machine(hosts: &[&str]) -> Vec<(String, String)> {
    let list = json!(hosts).to_string();
    let urls: Vec<String> = hosts
        .iter()
        .map(|host| format!(r#"{{ url = "http://{host}/", title = "Status", score = 0.9 }}"#))
        .collect();
    let read = "tools.read_source.read";
    [
        ("research.allowed_domains_policy".to_owned(), list.clone()),
        ("research.allowed_domains_execution".to_owned(), list),
        (
            "tools.search_sources.fixture.rows[0].result.data.results".to_owned(),
            format!("[{}]", urls.join(", ")),
        ),
        (format!("{read}.allow_private"), "true".to_owned()),
        (format!("{read}.cache_ttl_s"), "0".to_owned()),
        (format!("{read}.pace_ms"), "0".to_owned()),
    ]
    .into()
}

#[tokio::test]
async fn web_status_skips_unavailable_pages() {
    let server = Server::start().await;
    let host = server.host();
    // A host without a listener: its socket is closed again.
    let gone = Server::start().await.host();
    tokio::spawn(async move {
        loop {
            let mut connection = server.accept().await;
            let head = connection.request().await.head;
            let (status, body) = match head.starts_with("GET / ") {
                true => (
                    "200 OK",
                    "<title>Our status</title><script>var x = 'All is lost';</script>\
                     <p>All systems are operational. There is no incident and no outage.",
                ),
                false => ("404 Not Found", "<p>Not here."),
            };
            connection.send(answer(status, &["content-type: text/html"], body)).await;
        }
    });
    let sets = on_this_machine(&[&host, &gone]);
    let sets: Vec<(&str, &str)> = sets.iter().map(|(path, to)| (&**path, &**to)).collect();
    let ours = came("web-status", &[], &sets).await;
    assert_eq!(ours["stop_reason"], "success", "{ours}");
    let text = ours["answer"].as_str().expect("an answer");
    assert!(text.starts_with("As the status pages say: "), "{text}");
    assert!(text.contains("All systems are operational.") && !text.contains("lost"), "{text}");
    assert_eq!(ours["citation_details"][0]["title"], "Our status");
    assert_eq!(reasons(&ours["skipped_sources"]), [("connect", 1)]);
}

#[tokio::test]
async fn offline_web_status_reports_every_source() {
    let (one, other) = (Server::start().await.host(), Server::start().await.host());
    let sets = on_this_machine(&[&one, &other]);
    let sets: Vec<(&str, &str)> = sets.iter().map(|(path, to)| (&**path, &**to)).collect();
    let ours = came("web-status", &[], &sets).await;
    assert_eq!(ours["stop_reason"], "no_reliable_sources");
    assert_eq!(reasons(&ours["skipped_sources"]), [("connect", 2)]);
    for row in ours["skipped_sources"].as_array().expect("a list") {
        assert!(row["text"].as_str().is_some_and(|text| !text.is_empty()), "{row}");
    }
}
