//! Research without the dashboard: its lines, its answer as Markdown, and the permissions that a foreign
//! scenario needs before it searches.

use crate::support::binary::{Ended, Home, end};

fn run(home: &Home, args: &[&str]) -> Ended {
    let args: Vec<&str> = ["run"].into_iter().chain(args.iter().copied()).collect();
    end(&mut home.command(&args))
}

/// The lines of a run, their times left out.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.split_once("  ").map_or(line, |(_, rest)| rest)).collect()
}

#[test]
fn shows_each_step_and_source_outcome() {
    let home = Home::new();
    let ended = run(&home, &["payments-incident", "--instant", "--format", "text", "--ascii"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines = lines(&ended.out);
    for said in [
        "plan      5 steps: search_sources, dedupe_urls, read_extract_notes, verify_notes, synthesize_answer",
        "search    6 sources: What is the current US payments incident status and what enterprise SLA commitments apply for uptime and P1 response time?",
        "dedupe    4 kept, #4 duplicate of #1, #5 duplicate of #2",
        "  + read         #2 https://vendor.example.com/policies/enterprise-sla  1 note",
        "verify    2 notes, no issue",
    ] {
        assert!(lines.contains(&said), "{said:?} is not in\n{}", ended.out);
    }
    for (word, url, reason) in [
        ("denied", "https://regulator.example.org/guidance/", "switched off"),
        ("denied", "https://community-rumors.example.net/", "not on the allowlist"),
    ] {
        let mut said = lines.iter().filter(|line| line.contains(url) && line.contains(word));
        assert!(said.next().is_some_and(|line| line.ends_with(reason)), "{}", ended.out);
        assert_eq!(said.next(), None, "{url} is told of once");
    }
    let end = "5 chargeback alerts, and ETA about 45 minutes. [n1]\nEnterprise SLA includes 99.95% monthly uptime and a 15-minute first response target for P1 incidents (24/7). [n2]\nTimeline values are estimates and may change. (uncited)\n\n[n1] Payments Incident Update, 2026-03-07, https://official-status.example.com/incidents/payments-2026-03-07\n[n2] Enterprise SLA, 2026-01-15, https://vendor.example.com/policies/enterprise-sla\n";
    assert!(ended.out.contains(end), "{}", ended.out);
}

#[test]
fn reports_skips_and_conflicts_calmly() {
    let home = Home::new();
    let ended = run(&home, &["rumour-mill", "--instant", "--format", "text", "--ascii"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let stale = "! skipped      #5 https://docs.example.org/handbook/enterprise-terms  stale: 38 days old; research.max_age_days is 30";
    assert!(ended.out.contains(stale), "{}", ended.out);
    assert!(
        ended.out.contains("no usable sources (no_reliable_sources) in read_extract"),
        "{}",
        ended.out
    );
    assert!(!ended.out.contains("x failed"), "nothing has failed: {}", ended.out);

    let ended = run(&home, &["own-notes", "--instant", "--format", "text", "--ascii"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("! compared"), "{}", ended.out);
}

#[test]
fn flag_and_pause_use_research_boundaries() {
    let home = Home::new();
    let flag = "vendor_runtime=off@source:2";
    let args = ["payments-incident", "--instant", "--format", "json", "--flag", flag];
    let outcome = run(&home, &args).json();
    assert_eq!(outcome["citations"], serde_json::json!(["n1"]), "{outcome}");
    let flag = "vendor_runtime=off@source:3";
    let args = ["payments-incident", "--instant", "--format", "json", "--flag", flag];
    let outcome = run(&home, &args).json();
    assert_eq!(outcome["citations"], serde_json::json!(["n1", "n2"]), "it was read before");

    let args = ["payments-incident", "--instant", "--format", "text", "--pause-at", "verify=1ms"];
    let ended = run(&home, &args);
    assert!(ended.out.contains("paused before verify"), "{}", ended.out);
    for (at, why) in [
        ("source:7", "never reached: budget.max_urls is 6"),
        ("source:0", "is not a boundary"),
        ("round:1", "never reached here; use plan, search"),
    ] {
        let ended = run(&home, &["payments-incident", "--headless", "--pause-at", at]);
        assert_eq!(ended.code, Some(2), "{at}");
        assert!(ended.err.contains(why), "{at}: {}", ended.err);
    }
}

#[test]
fn markdown_answer_footnotes_quotes() {
    let home = Home::new();
    let ended = run(&home, &["payments-incident", "--instant", "--format", "markdown"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    let expected = r#"# Payments incident: an answer with citations

**Question:** What is the current US payments incident status and what enterprise SLA commitments apply for uptime and P1 response time?

As of 2026-03-07.

## Answer

Research brief: US payments incident is P1 with failed payment rate 3.4%, 5 chargeback alerts, and ETA about 45 minutes.[^n1] Enterprise SLA includes 99.95% monthly uptime and a 15-minute first response target for P1 incidents (24/7).[^n2] Timeline values are estimates and may change. *(uncited)*

[^n1]: [Payments Incident Update](https://official-status.example.com/incidents/payments-2026-03-07), published 2026-03-07: "US payment gateway is in P1 degraded mode. Failed payment rate is 3.4%. Chargeback alerts observed: 5. Estimated time to recovery: 45 minutes, subject to change."
[^n2]: [Enterprise SLA](https://vendor.example.com/policies/enterprise-sla), published 2026-01-15: "Enterprise monthly uptime SLA is 99.95%. For P1 incidents, first response target is 15 minutes, available 24/7."

## Not used

- `https://regulator.example.org/guidance/customer-communications`: switched off
- `https://official-status.example.com/incidents/payments-2026-03-07#latest`: duplicate of `https://official-status.example.com/incidents/payments-2026-03-07`
- `https://vendor.example.com/policies/enterprise-sla?ref=search`: duplicate of `https://vendor.example.com/policies/enterprise-sla`
- `https://community-rumors.example.net/thread/payment-outage`: not on the allowlist
"#;
    assert_eq!(ended.out, expected);
}

#[test]
fn markdown_reports_conflicts_and_missing_answer() {
    let home = Home::new();
    let markdown = |args: &[&str]| {
        let all = [args, &["--instant", "--format", "markdown"]].concat();
        run(&home, &all)
    };
    let ended = markdown(&["own-notes"]);
    let said = "\n## Contradictions\n\n- Retrying Payments says **5**[^n1], Retry Budgets for Payments says **2**[^n2]\n";
    assert!(ended.out.contains(said), "{}", ended.out);

    let ended = markdown(&["rumour-mill", "--flag", "status_page=on"]);
    assert!(ended.out.contains("[^n1] *(unconfirmed)* "), "{}", ended.out);

    let ended = markdown(&["fabricated-quote"]);
    assert_eq!(ended.code, Some(1), "the ending is that of the run");
    let said = "## Answer\n\nNo answer: verification failed: quote not on page (`verification_failed:quote_not_in_source`).\n";
    assert!(ended.out.contains(said), "{}", ended.out);
    let said = "- note n3 of `https://docs.example.org/handbook/enterprise-terms`: quote not on page, \"A first response after more than 15 minutes is compensated with 25% of the monthly fee.\"\n";
    assert!(ended.out.contains(said), "{}", ended.out);

    let ended = markdown(&["fabricated-quote", "--set", "research.misquotes=refuse"]);
    let said =
        "- a note of `https://docs.example.org/handbook/enterprise-terms`: quote not on page";
    assert!(ended.out.contains(said), "{}", ended.out);

    let ended = markdown(&["checkout-launch"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""));
    let why =
        "--format markdown: only research has it, not the pattern collaboration\n  help: use text";
    assert!(ended.err.contains(why), "{}", ended.err);
}

/// A search that lies, pages that would rather be something else, a model that writes Markdown.
const HOSTILE: &str = r##"title = "Hostile"
pattern = "research"
goal = "See."
[research]
question = "What of the rate?"
allowed_domains_policy = ["a.example"]
allowed_domains_execution = ["a.example"]
plan = "rule"
as_of = "2026-03-07"
[tools.search_sources.fixture]
rows = [{ result = { status = "ok", data = { results = [
  { url = "https://a.example/x?(y)=`z`&lt=1", title = "found", score = 0.9 },
  { url = "javascript:alert(1)", title = "[click](javascript:alert(1))", score = 0.8 },
  { url = "https://b.example/`\u001b[2J`", title = "x", score = 0.7 },
] } } }]
[tools.read_source.fixture]
rows = [{ result = { status = "ok", data = { url = "https://a.example/x?(y)=`z`&lt=1", title = "T](https://evil.example) [^n9]: \u001b[2J<img src=x>\n# H", published_at = "*soon*", body = "The rate is 3.4% [^n9] ](javascript:alert(1)) <script>x</script> | `so`." } } }]
[[script]]
step = "notes"
reply = { notes = [{ claim = "- The rate is *3.4%*.", quote = "The rate is 3.4% [^n9] ](javascript:alert(1)) <script>x</script> | `so`." }] }
[[script]]
step = "synthesize"
reply = { sentences = [{ text = "# The rate is **3.4%**, see https://evil.example\n\n[^x]: y", citations = ["n1"] }] }
"##;

#[test]
fn escapes_page_and_model_text() {
    let home = Home::new();
    home.write("hostile.toml", HOSTILE);
    let ended = run(&home, &["hostile.toml", "--instant", "--format", "markdown"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let expected = r#"## Answer

\# The rate is \*\*3.4%\*\*, see https\://evil.example \[\^x\]: y[^n1]

[^n1]: [T\](https\://evil.example) \[\^n9\]: ␛\[2J&lt;img src=x&gt; # H](https://a.example/x?%28y%29=%60z%60&amp;lt=1), published \*soon\*: "The rate is 3.4% \[\^n9\] \](javascript:alert(1)) &lt;script&gt;x&lt;/script&gt; \| \`so\`."

## Not used

- `javascript:alert(1)`: invalid address
- `` https://b.example/`␛[2J` ``: invalid address
"#;
    let (_, said) = ended.out.split_once("As of 2026-03-07.\n\n").expect("a head");
    assert_eq!(said, expected);
    let text = run(&home, &["hostile.toml", "--instant", "--format", "text"]).out;
    assert!(!text.contains('\u{1b}'), "{text}");
}

/// Answers a question from two notes about a house.
fn ask_of_house(home: &Home, question: &str, format: &str) -> Ended {
    home.write(
        "notes/car.md",
        "# Notes on car insurance\n\nThe excess is 250 EUR for each claim.\n",
    );
    home.write("notes/heating.md", "# Heating\n\nThe boiler was repaired by Mrs. Patel in May.\n");
    let (folder, question) = ("inputs.folder=notes", format!("inputs.question={question}"));
    run(home, &["own-notes", "--set", folder, "--set", &question, "--trust", "--format", format])
}

#[test]
fn lists_part_without_note_as_unanswered() {
    let home = Home::new();
    let question = "What is the excess of the car insurance and who owns the lawnmower?";
    let outcome = ask_of_house(&home, question, "json").json();
    assert_eq!(outcome["answer"], "The excess is 250 EUR for each claim.", "{outcome}");
    assert_eq!(outcome["unanswered"], serde_json::json!(["who owns the lawnmower?"]));
    let text = ask_of_house(&home, question, "text").out;
    assert!(text.contains("\nUnanswered: who owns the lawnmower?\n"), "{text}");
    let markdown = ask_of_house(&home, question, "markdown").out;
    assert!(markdown.contains("\n## Unanswered\n\n- who owns the lawnmower?\n"), "{markdown}");
    let page = home.run(&["export", "last", "--html"]).out;
    assert!(page.contains("Unanswered: who owns the lawnmower?"), "{page}");
    // Both parts have a note.
    let question = "What is the excess of the car insurance and who repaired the boiler?";
    let outcome = ask_of_house(&home, question, "json").json();
    assert_eq!(outcome.get("unanswered"), None, "{outcome}");
    let answer = outcome["answer"].as_str().unwrap_or_default();
    assert!(answer.contains("The boiler was repaired by Mrs. Patel in May."), "{outcome}");
}

#[test]
fn empty_search_advises_next_steps() {
    let home = Home::new();
    let advice = "No answer: the search found nothing. Try other words in the question, or check where it searches.";
    let ended = ask_of_house(&home, "Where is the zebra?", "text");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.out.contains(advice), "{}", ended.out);
    let markdown = ask_of_house(&home, "Where is the zebra?", "markdown").out;
    let said = format!("## Answer\n\n{advice} (`no_sources_after_dedupe`)\n");
    assert!(markdown.contains(&said), "{markdown}");
}

/// Values that become a folder, a program or an address ask like a file from elsewhere, also where the scenario
/// was shipped: at each door of the command line, once for each value. The refusal has the line that allows it.
#[test]
fn reaching_values_ask_at_each_door() {
    let home = Home::new();
    home.write("notes/car.md", "# Car\n\nThe excess is 250 EUR for each claim.\n");
    home.write("other/car.md", "# Car\n\nThe excess is 300 EUR for each claim.\n");
    for (scenario, set, would) in [
        ("own-notes", "inputs.folder=notes", "  read the documents in /"),
        ("own-notes", "tools.search_sources.search.folder=notes", "  read the documents in /"),
        ("real-services", "workers.disk_worker.command.program=./mine", "  run ./mine -c"),
        (
            "real-services",
            "workers.orders_worker.http.url=http://a.example/x",
            "  send GET requests to a.example",
        ),
    ] {
        let on = "--on=nats://127.0.0.1:1";
        for (door, more) in [
            ("run", &[][..]),
            ("run", &[on]),
            ("test", &[]),
            ("tools", &[]),
            ("picture", &["--text"]),
        ] {
            if door == "picture" && scenario != "own-notes" {
                continue;
            }
            let refused = home.run(&[&[door, scenario, "--set", set][..], more].concat());
            assert_ne!(refused.code, Some(0), "{door} {set}: {refused:?}");
            assert!(refused.err.contains(would), "{door} {set}: {refused:?}");
            let more = more.iter().map(|word| format!(" {word}")).collect::<String>();
            let line = format!("roundtable {door} {scenario} --set {set}{more} --trust");
            assert!(door == "picture" || refused.err.contains(&line), "{line}\n{}", refused.err);
        }
    }
    let run = |folder: &str, trust: &[&str]| {
        let set = format!("inputs.folder={folder}");
        let question = "inputs.question=What is the excess of the car insurance?";
        let args = ["own-notes", "--set", &set, "--set", question, "--format", "json"];
        run(&home, &[&args[..], trust].concat())
    };
    assert_eq!(run("notes", &["--trust"]).code, Some(0));
    assert!(run("notes", &[]).json()["answer"].as_str().is_some_and(|it| it.contains("250")));
    assert_eq!(run("other", &[]).code, Some(2), "another value");
    // The same folder by another name, and a fork with another folder.
    assert_eq!(run("./notes", &[]).code, Some(0));
    let fork = home.run(&["fork", "last@search", "--instant", "--set", "inputs.folder=other"]);
    assert_ne!(fork.code, Some(0), "{fork:?}");
}
