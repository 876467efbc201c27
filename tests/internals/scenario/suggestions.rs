//! The suggestion for a mistake, and its place in the report.

use super::{Mistake, mistakes, told};

fn problems(text: &str) -> Vec<String> {
    told(text, &[])
}

/// The reports of each mistake are among those that are told.
#[track_caller]
fn judge(good: &str, table: &str) {
    assert_eq!(problems(good), Vec::<String>::new());
    for Mistake { from, to, reports } in mistakes(table) {
        assert!(good.contains(&from), "{from} is not in the scenario");
        let found = problems(&good.replacen(&from, &to, 1));
        assert!(reports.iter().all(|line| found.contains(line)), "{to}: {found:#?}");
    }
}

const TABLE: &str = r#"title = "A launch"
pattern = "collaboration"
goal = "May {{what}} start?"
[inputs]
what = { value = "it" }
[flags.lawyer]
[budget]
max_rounds = 3
max_seconds = 90
min_go_votes = 1
[facts]
limits = { block = 0.03 }
[collaboration]
sequence = ["ann"]
finalize_prompt = "Sum up."
[roles.ann]
prompt = """
You are Ann.
"""
[model]
stream = true
[[script]]
role = "ann"
when = "goal.contains('it') && round >= 1"
latency = "500ms..900ms"
[script.reply]
stance = "go"
summary = "Below {{facts.limits.block}}."
confidence = 1
actions = ["Go"]
[[script]]
text = "Whatever."
[[script]]
step = "finalize"
text = "Done: {{what}}."
[[expect]]
that = 'outcome.rounds_used <= 3 && (live || calls("llm") == 2)'
"#;

#[test]
fn misplaced_top_key_suggests_top() {
    judge(
        TABLE,
        r#"
- [budget]
+ [budget]
+ seed = 7
8:1: error: budget.seed: unknown key `seed` (move it to the top of the file, above the first [table])

- [inputs]
+ [inputs]
+ about = "x"
5:9: error: inputs.about: expected a table, found the string "x" (move it to the top of the file, above the first [table])
"#,
    );
}

#[test]
fn names_duplicate_key_or_table() {
    judge(
        TABLE,
        r#"
- max_rounds = 3
+ max_rounds = 3
+ max_rounds = 4
9:1: error: not TOML: duplicate key `max_rounds` (keep one of the two)

- [facts]
+ [budget]
+ [facts]
11:2: error: not TOML: duplicate key `budget` (put the keys of both tables under one header)
"#,
    );
}

#[test]
fn reports_misspelt_list_table_header() {
    let text =
        TABLE.replacen("[[script]]\ntext", "[script.reply]\nstance = \"go\"\n[[script]]\ntext", 1);
    let text = text.replacen("actions = [\"Go\"]\n", "actions = [\"Go\"]\n[[sceipt]]\n", 1);
    assert_eq!(problems(&text), ["31:3: error: unknown key `sceipt` (did you mean `script`?)"]);
}

#[test]
fn unclosed_text_is_reported_at_start() {
    judge(
        TABLE,
        r#"
- title = "A launch"
+ title = "A launch
1:9: error: not TOML: the string is not closed (add `"`)

- sequence = ["ann"]
+ sequence = ["ann"
14:12: error: not TOML: `[` is not closed (add `]`)

- { block = 0.03 }
+ { block = 0.03
12:10: error: not TOML: `{` is not closed (add `}`)

- [[script]]
+ [[script]
22:1: error: not TOML: `[[` is not closed (add `]]`)

- Ann.
- """
+ Ann.
+
17:10: error: not TOML: the string is not closed (add `"""`)
"#,
    );
    let both = TABLE.replacen("= 3\n", "= nothing\n", 1).replacen("[\"ann\"]", "[\"ann\"", 1);
    assert_eq!(
        problems(&both),
        [
            "8:14: error: not TOML: string values must be quoted (write \"nothing\")",
            "14:12: error: not TOML: `[` is not closed (add `]`)",
        ],
        "an error on an earlier line is reported, too"
    );
}

#[test]
fn a_word_without_quotes_gets_them() {
    judge(
        TABLE,
        r#"
- "collaboration"
+ collaboration
2:11: error: not TOML: string values must be quoted, expected literal string (write "collaboration")

- "collaboration"
+ team
2:11: error: not TOML: string values must be quoted (write "team")

- "500ms..900ms"
+ 500ms
25:11: error: not TOML: string values must be quoted, expected literal string (write "500ms")

- stream = true
+ stream = True
21:10: error: not TOML: invalid boolean, expected `true` (write true)
"#,
    );
}

#[test]
fn reports_single_brace_placeholder() {
    judge(
        TABLE,
        r#"
- {{what}} start
+ {what} start
3:13: warning: goal: `{what}` is not replaced (write `{{what}}`)

- {{what}} start
+ {{what}} and ${ what } start
3:26: warning: goal: `${ what }` is not replaced (write `{{what}}`)

- {{facts.limits.block}}
+ {facts.limits.block}
28:18: warning: script[0].reply: `{facts.limits.block}` is not replaced (write `{{facts.limits.block}}`)

- {{what}} start
+ {{what} start
3:13: error: goal: `{{what}` is not closed (write `{{what}}`)
"#,
    );
    // Only a name of the scenario can be meant.
    let text = TABLE.replacen("start?", "start in {this} {\\\"place\\\": 1}?", 1);
    assert_eq!(problems(&text), Vec::<String>::new());
}

#[test]
fn suggests_supported_duration_form() {
    judge(
        TABLE,
        r#"
- max_seconds = 90
+ max_seconds = "1m30"
9:15: error: budget.max_seconds: "1m30" is not a duration (write 90s)

- 500ms..900ms
+ 500-900 msec
25:11: error: script[0].latency: "500-900 msec" is not a duration (write 500ms..900ms)

- 500ms..900ms
+ 2 hours
25:11: error: script[0].latency: "2 hours" is not a duration (such as 900ms, 1.5s, or 900ms..1.8s, at most 60m)
"#,
    );
}

#[test]
fn misspelt_reply_key_is_reported() {
    judge(
        TABLE,
        r#"
- summary =
+ sumary =
28:1: warning: script[0].reply.summary: `summary` is missing: the run stops with invalid_contribution:missing_keys (rename `sumary`)
"#,
    );
}

#[test]
fn suggests_cel_for_foreign_syntax() {
    let help = "(write a CEL condition such as facts.alerts >= 3 && inputs.region == 'EU')";
    for (from, to, place, what) in [
        (
            ".contains(",
            ".includes(",
            "24:22: error: script[0].when",
            "there is no function `includes`; did you mean `contains`?",
        ),
        (
            ".contains(",
            ".contain(",
            "24:21: error: script[0].when",
            "there is no function `contain`; did you mean `contains`?",
        ),
        ("&&", "and", "24:29: error: script[0].when", "unexpected `and`; write `&&`"),
        (">=", "=>", "24:38: error: script[0].when", "unexpected `=>`; write `>=`"),
        (
            "calls(",
            "call(",
            "37:50: error: expect[0].that",
            "there is no function `call`; did you mean `calls`?",
        ),
        ("||", "or", "37:43: error: expect[0].that", "unexpected `or`; write `||`"),
    ] {
        let found = problems(&TABLE.replacen(from, to, 1));
        assert_eq!(found, [format!("{place}: not a condition: {what} {help}")], "{to}");
    }
    // Only an expectation can call `calls`.
    let found = problems(&TABLE.replacen("goal.contains('it')", "call('llm') == 1", 1));
    assert!(found[0].contains("there is no function `call`; did you mean `all`?"), "{found:#?}");
}

#[test]
fn suggests_underscore_for_minus() {
    judge(
        TABLE,
        r#"
- outcome.rounds_used
+ outcome.rounds-used
37:24: error: expect[0].that: `used` is not available in this condition (`-` subtracts: did you mean `rounds_used`?)
"#,
    );
}

#[test]
fn reports_unknown_stop_reason() {
    judge(
        TABLE,
        r#"
- calls("llm") == 2
+ stop_reason == "sucess"
37:8: warning: expect[0].that: `sucess` is not a stop reason (did you mean `success`?)

- calls("llm") == 2
+ "agent_denyed:ann" != stop_reason
37:8: warning: expect[0].that: `agent_denyed` is not a stop reason (did you mean `agent_denied`?)
"#,
    );
}

#[test]
fn reports_unknown_outcome_field() {
    judge(
        TABLE,
        r#"
- outcome.rounds_used
+ outcome.rounds_use
37:9: warning: expect[0].that: outcomes of the pattern collaboration have no field `rounds_use` (did you mean `rounds_used`?)

- outcome.rounds_used
+ outcome.handoffs
37:9: warning: expect[0].that: outcomes of the pattern collaboration have no field `handoffs` (one of answer, final_decision, decided_by, rounds_used, team_summary, raw_contribution, unused_contributions, brief, trace, history, status, stop_reason, phase, detail, error, run_id, … (26 in all))
"#,
    );
    let guarded = TABLE.replacen("outcome.rounds_used <= 3", "!has(outcome.refusals)", 1);
    assert_eq!(problems(&guarded), Vec::<String>::new(), "has() asks whether there is one");
}

const REPORT: &str = r#"title = "A report"
pattern = "orchestrator"
goal = "Report."
[orchestrator]
plan_prompt = "Plan."
finalize_prompt = "Report."
[orchestrator.sections]
sales = "seller"
[orchestrator.level]
name = "health"
otherwise = "green"
[workers.seller]
description = "Sells"
[[workers.seller.fixture.rows]]
result = { orders = 1 }
[[script]]
step = "plan"
reply = { kind = "plan", tasks = [{ id = "a", worker = "seller", args = {}, critical = true }] }
[[script]]
step = "finalize"
when = "aggregate.health == 'green' && aggregate.sales.orders > 0"
text = "Good."
[[script]]
step = "finalize"
text = "Bad."
"#;

#[test]
fn misspelt_plan_kind_is_reported() {
    judge(
        REPORT,
        r#"
- kind =
+ knd =
18:11: warning: script[0].reply.kind: a plan needs kind = "plan": the run stops with invalid_plan:kind (rename `knd`)
"#,
    );
}

#[test]
fn shared_key_suggests_one_table() {
    judge(
        REPORT,
        r#"
- goal =
+ pointer = "/a"
+ goal =
3:1: error: pointer: unknown key `pointer` (did you mean `workers.NAME.http.pointer` or `tools.NAME.http.pointer`?)

- goal =
+ flag = "a"
+ goal =
3:1: error: flag: unknown key `flag` (did you mean `flags`, `roles.NAME.flag`, `workers.NAME.flag`, `router.routes.NAME.flag` or `sources.NAME.flag`?)
"#,
    );
}

#[test]
fn reports_unknown_aggregate_field() {
    judge(
        REPORT,
        r#"
- aggregate.sales
+ aggregate.sale
21:40: warning: script[1].when: the aggregate has no field `sale` (did you mean `sales`?)

- aggregate.health
+ aggregate.level
21:9: warning: script[1].when: the aggregate has no field `level` (one of sales, health, failed_tasks)
"#,
    );
}

const RESEARCH: &str = r#"title = "Research"
pattern = "research"
goal = "Answer."
[research]
question = "Why?"
allowed_domains_policy = ["docs.example.org"]
allowed_domains_execution = ["docs.example.org"]
plan = "rule"
notes = "rule"
answer = "rule"
[tools.search_sources.search]
folder = ""
base_url = "https://docs.example.org/"
[tools.read_source.read]
folder = ""
base_url = "https://docs.example.org/"
[[expect]]
that = 'cites("docs.example.org") && cites("example.org") && !cites("rumours.example.net")'
"#;

#[test]
fn reports_almost_allowed_cited_host() {
    judge(
        RESEARCH,
        r#"
- cites("docs.
+ cites("dosc.
18:8: warning: expect[0].that: `dosc.example.org` is not in research.allowed_domains_policy (did you mean `docs.example.org`?)
"#,
    );
}

#[test]
fn reports_disallowed_private_host() {
    let text = include_str!("../../../assets/templates/orchestrator.toml");
    let (before, rest) = text.split_once("[[workers.traffic_worker.fixture.rows]]").expect("rows");
    let (_, after) = rest.split_once("\n\n").expect("another worker");
    let retried = "[tools.traffic_worker]\nretries = { max_attempts = 2 }";
    let with = |table: &str| {
        problems(&format!("{before}[workers.traffic_worker.http]\n{table}\n\n{retried}\n\n{after}"))
    };
    let url = "url = \"http://127.0.0.1:9000/traffic/{day}\"";
    let found = with(url);
    let said = "warning: workers.traffic_worker.http.url: requests to this host are refused: it is \
                this machine, or on a private network (write allow_private = true below it, if you \
                mean this host)";
    assert!(found.len() == 1 && found[0].ends_with(said), "{found:#?}");
    assert_eq!(with(&format!("{url}\nallow_private = true")), Vec::<String>::new());
    assert_eq!(with("url = \"https://api.example.com/{day}\""), Vec::<String>::new());
    // A request that has none of the arguments does something else than was approved.
    let post = "url = \"https://api.example.com/traffic\"\nmethod = \"POST\"";
    let found = with(post);
    let said = "warning: workers.traffic_worker.http.url: this worker does not send `";
    assert!(
        found.len() == 1 && found[0].contains(said) && found[0].contains("`day`"),
        "{found:#?}"
    );
    assert_eq!(with(&format!("{post}\nsend_args = true")), Vec::<String>::new());
    let bare = format!(
        "{before}[workers.traffic_worker.http]\nurl = \"https://api.example.com/{{day}}\"\n\n{after}"
    );
    let found = problems(&bare);
    let said = "only timeouts of this worker are retried, as in the source document (add \
                [tools.traffic_worker] with retries = { max_attempts = 2 })";
    assert!(found.len() == 1 && found[0].ends_with(said), "{found:#?}");
}
