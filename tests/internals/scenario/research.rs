//! Good files of research and their result, and bad ones and their reports.
use std::time::Duration;

use crate::scenario::patterns::PatternSpec;
use crate::scenario::patterns::research::{MisquotePolicy, ResearchSpec, SourceRule, StepMode};
use crate::scenario::spec::script::ScriptStep;
use crate::scenario::tools::ToolKind;
use crate::scenario::tools::documents::{PrivateHosts, ReadSpec};
use crate::scenario::{Scenario, ScenarioOrigin, load};

use super::{judge, read, told};

const WHOLE: &str = r#"title = "A question"
pattern = "research"
goal = "Find {{what}} out."
[inputs]
what = { value = "it" }
day = { value = "2026-03-07", kind = "date" }
[flags.vendor]
default = true
[budget]
max_seconds = 9
max_steps = 6
max_urls = 4
max_read_pages = 2
max_notes = 5
max_answer_chars = 300
[research]
question = "What of {{what}}?"
echo = ["day"]
allowed_domains_policy = [" Status.Example.com", "vendor.example.com", "wiki.corp:8080"]
allowed_domains_execution = ["status.example.com", "vendor.example.com"]
plan = "rule"
notes = "model_when_live"
answer = "model"
notes_prompt = "Note {{what}}."
page_chars = 9000
notes_per_page = 2
misquotes = "refuse"
min_independent_sources = 2
max_age_days = 30
as_of = "{{day}}"
[sources."Vendor.example.com"]
trust = 0.5
flag = "vendor"
[tools.search_sources]
search = { folder = "" }
[tools.read_source]
read = { web = true }
[[script]]
step = "synthesize"
when = "size(notes) > 0 && question != ''"
reply = { answer = "So.", citations = ["n1"] }
[[script]]
step = "synthesize"
text = "Nothing."
"#;

const SHORT: &str = r#"title = "A question"
pattern = "research"
goal = "Find it out."
[research]
question = "What of it?"
allowed_domains_policy = ["a.example"]
allowed_domains_execution = ["a.example"]
[tools.search_sources.fixture]
rows = [{ result = {} }]
[tools.read_source.http]
url = "https://reader.example/{url}"
[[script]]
step = "plan"
when = "max_steps > 4 && question != ''"
raw = "1"
[[script]]
step = "notes"
when = "url == '' && domain != title && body != published_at && size(notes) == 0"
raw = "2"
[[script]]
step = "synthesize"
raw = "3"
"#;

fn spec(scenario: &Scenario) -> &ResearchSpec {
    let PatternSpec::Research(spec) = &scenario.pattern else { panic!("research") };
    spec
}

#[test]
fn reads_research_domains_limits_and_steps() {
    let scenario = read(WHOLE, &[]);
    let spec = spec(&scenario);
    let budget = &spec.budget;
    assert_eq!((budget.max_steps, budget.max_urls, budget.max_read_pages), (6, 4, 2));
    assert_eq!((budget.max_notes, budget.max_answer_chars), (5, 300));
    assert_eq!(budget.max_seconds, Duration::from_secs(9));
    assert_eq!(spec.question, "What of it?");
    assert_eq!(spec.echo.iter().map(|it| it.as_str()).collect::<Vec<_>>(), ["day"]);
    assert_eq!(
        spec.allowed_domains_policy,
        ["status.example.com", "vendor.example.com", "wiki.corp:8080"]
    );
    assert_eq!(spec.allowed_domains_execution, ["status.example.com", "vendor.example.com"]);
    let vendor = "vendor.example.com".to_owned();
    let rule = SourceRule { domain: vendor, trust: 0.5, flag: Some("vendor".into()) };
    assert_eq!(spec.sources, [rule]);
    assert_eq!((spec.plan.by, spec.notes.by), (StepMode::Rule, StepMode::ModelWhenLive));
    assert_eq!((spec.answer.by, &*spec.notes.prompt.written()), (StepMode::Model, "Note it."));
    assert_eq!((spec.page_chars, spec.notes_per_page, spec.notes_by_rule), (9_000, 2, 2));
    assert_eq!((spec.misquotes, spec.min_independent_sources), (MisquotePolicy::Refuse, 2));
    assert_eq!((spec.max_age_days, spec.as_of.as_deref()), (Some(30), Some("2026-03-07")));
    let steps: Vec<Option<ScriptStep>> = scenario.script.rows.iter().map(|row| row.step).collect();
    assert_eq!(steps, [Some(ScriptStep::Synthesize); 2]);
    assert!(matches!(scenario.tools["search_sources"].kind, Some(ToolKind::Search(_))));
    assert!(matches!(scenario.tools["read_source"].kind, Some(ToolKind::Read(_))));
}

#[test]
fn omitted_keys_match_source_defaults() {
    let scenario = read(SHORT, &[]);
    let spec = spec(&scenario);
    let budget = &spec.budget;
    assert_eq!((budget.max_steps, budget.max_urls, budget.max_read_pages), (8, 6, 3));
    assert_eq!((budget.max_notes, budget.max_answer_chars), (6, 850));
    assert_eq!(budget.max_seconds, Duration::from_secs(25));
    assert_eq!(
        (spec.plan.by, spec.notes.by, spec.answer.by),
        (StepMode::Model, StepMode::Model, StepMode::Model)
    );
    assert_eq!((spec.misquotes, spec.min_independent_sources), (MisquotePolicy::Stop, 1));
    assert_eq!((&spec.max_age_days, &spec.as_of), (&None, &None));
    assert_eq!((spec.preface.as_str(), spec.closing.as_str()), ("", ""));
    assert_eq!(spec.trust("a.example"), 1.0);
    assert_eq!((spec.notes_per_page, spec.notes_by_rule), (20, 3));
    for done in [&spec.plan, &spec.notes, &spec.answer] {
        assert!(done.prompt.written().len() > 100, "a prompt of ours: {:?}", done.prompt);
    }
}

/// A host in Unicode and its form in ASCII are one host, wherever it is written.
#[test]
fn unicode_and_ascii_hosts_are_equal() {
    let lists = "allowed_domains_policy = [\"Bücher.example\", \"xn--r8jz45g.xn--zckzah:8080\"]\n\
                 allowed_domains_execution = [\"xn--bcher-kva.example\", \"例え.テスト:8080\"]\n";
    let text = SHORT
        .replacen("allowed_domains_policy = [\"a.example\"]\n", "", 1)
        .replacen("allowed_domains_execution = [\"a.example\"]\n", lists, 1)
        .replacen("[tools.", "[sources.\"bücher.example\"]\ntrust = 0.5\n[tools.", 1);
    let scenario = read(&text, &[]);
    let spec = spec(&scenario);
    let hosts = ["xn--bcher-kva.example", "xn--r8jz45g.xn--zckzah:8080"];
    assert_eq!(spec.allowed_domains_policy, hosts);
    assert_eq!(spec.allowed_domains_execution, hosts);
    assert_eq!(spec.trust("xn--bcher-kva.example"), 0.5);
    assert!(scenario.warnings.every_run.is_empty(), "{:?}", scenario.warnings.every_run);
}

/// Many hosts stand behind the web: a few that are down say nothing of the others.
#[test]
fn web_breaker_needs_configuration() {
    let threshold = |text: &str, set: &[&str], tool: &str| {
        let breaker = read(text, set).tools[tool].policy.breaker;
        breaker.map(|breaker| breaker.fail_threshold)
    };
    assert_eq!(threshold(WHOLE, &[], "read_source"), None);
    assert_eq!(threshold(WHOLE, &[], "search_sources"), Some(5));
    assert_eq!(threshold(SHORT, &[], "read_source"), Some(5));
    let on = WHOLE.replacen("[tools.read_source]", "[tools.read_source]\nbreaker = {}", 1);
    assert_eq!(threshold(&on, &[], "read_source"), Some(5));
    let set = ["tools.read_source.breaker.fail_threshold=2"];
    assert_eq!(threshold(WHOLE, &set, "read_source"), Some(2));
    let files = ["tools.read_source.read={ folder = \"\" }"];
    assert_eq!(threshold(WHOLE, &files, "read_source"), Some(5));
}

#[test]
fn private_hosts_match_request_form() {
    let hosts = |list: &str| {
        let set = format!("tools.read_source.read.allow_private={list}");
        told(WHOLE, &[&set])
    };
    let set =
        r#"tools.read_source.read.allow_private=["Wiki.corp:80", "10.0.0.7:8080", "[::1]:443"]"#;
    let scenario = read(WHOLE, &[set]);
    let Some(ToolKind::Read(spec)) = &scenario.tools["read_source"].kind else { panic!("read") };
    let ReadSpec::Web(web) = &**spec else { panic!("the web") };
    let named = ["wiki.corp", "10.0.0.7:8080", "[::1]"].map(str::to_owned);
    assert_eq!(web.allow_private, PrivateHosts::These(named.into()));
    for (list, help) in [
        (r#"["http://wiki.corp:8080/x"]"#, r#"write "wiki.corp:8080""#),
        (r#"["*.corp"]"#, "list every host, such as vendor.example.com"),
        (r#"["10.0.0.0/8"]"#, r#"write "10.0.0.0""#),
        (r#"["wiki.corp:http"]"#, "a port is a number from 1 to 65535"),
        (r#"["{{what}}"]"#, "write the domain itself"),
    ] {
        let told = hosts(list).join("\n");
        assert!(told.contains("error: tools.read_source.read.allow_private[0]: "), "{told}");
        assert!(told.ends_with(&format!("({help})")), "{told}");
    }
}

#[test]
fn hanging_pages_get_share_of_run() {
    for (seconds, pages, part_ms) in
        [(25, 3, 5_000), (25, 1, 8_333), (90, 3, 10_000), (9, 10, 2_000), (9, 2, 2_250)]
    {
        let seconds = format!("budget.max_seconds={seconds}");
        let set = [seconds, format!("budget.max_read_pages={pages}")];
        let scenario = read(WHOLE, &set.each_ref().map(String::as_str));
        assert_eq!(spec(&scenario).budget.read_timeout().as_millis(), part_ms, "{set:?}");
    }
    let slow = |set: &[&str]| {
        told(WHOLE, set).iter().any(|line| line.contains("one page that hangs can take"))
    };
    assert!(!slow(&["tools.read_source.timeout_s=2"]));
    assert!(slow(&["tools.read_source.timeout_s=3"]), "3 s twice, of 9 s");
    assert!(!slow(&["tools.read_source.timeout_s=3", "tools.read_source.retries.max_attempts=1"]));
    assert!(slow(&["tools.read_source.retries.max_attempts=3"]));
    assert!(!slow(&["tools.read_source.timeout_s=3", "tools.read_source.read={ folder = \"\" }"]));
    assert_eq!(
        told(WHOLE, &["tools.read_source.timeout_s=3"]),
        [
            "36:8: warning: tools.read_source: one page that hangs can take 6 s of the run's 9 s (lower timeout_s or retries.max_attempts, or raise budget.max_seconds)"
        ],
    );
}

#[test]
fn clamps_limits_and_warns() {
    for (key, given, taken, range) in [
        ("max_urls", 21, 20, "1 to 20"),
        ("max_urls", -3, 1, "1 to 20"),
        ("max_read_pages", 11, 10, "1 to 10"),
        ("max_notes", 0, 1, "1 to 20"),
        ("max_answer_chars", 119, 120, "120 to 2000"),
        ("max_answer_chars", 2_001, 2_000, "120 to 2000"),
    ] {
        let text =
            SHORT.replacen("[research]", &format!("[budget]\n{key} = {given}\n[research]"), 1);
        let at = key.len() + 4;
        let expected = format!(
            "5:{at}: warning: budget.{key}: {given} is out of range and is clamped to {taken} ({range})"
        );
        assert_eq!(told(&text, &[]), [expected]);
        let scenario =
            load(&text, ScenarioOrigin::File("a.toml".into()), &[]).expect("a warning alone");
        let budget = spec(&scenario).budget;
        let value = match key {
            "max_urls" => budget.max_urls,
            "max_read_pages" => budget.max_read_pages,
            "max_notes" => budget.max_notes,
            _ => budget.max_answer_chars,
        };
        assert_eq!(value, taken, "{key}");
    }
}

/// All reports on each mistake, with its place and its fix.
#[test]
fn mistakes_are_told_where_they_are() {
    judge(
        SHORT,
        r#"
- policy = ["a.example"]
+ policy = ["https://A.example/x", "a.example/", "*.example", "{{host}}", "a b", "a.example:0", "bü_ch!.example", ""]
6:27: error: research.allowed_domains_policy[0]: "https://A.example/x" is a URL, not a domain (write "a.example")
6:50: error: research.allowed_domains_policy[1]: "a.example/" is a URL, not a domain (write "a.example")
6:64: error: research.allowed_domains_policy[2]: "*.example" is not a domain: wildcards are not allowed (list every host, such as vendor.example.com)
6:77: error: research.allowed_domains_policy[3]: an input cannot choose a domain (write the domain itself)
6:89: error: research.allowed_domains_policy[4]: "a b" is not a domain (write a host such as vendor.example.com)
6:96: error: research.allowed_domains_policy[5]: "a.example:0" is not a domain (a port is a number from 1 to 65535)
6:111: error: research.allowed_domains_policy[6]: "bü_ch!.example" is not a domain (write a host such as vendor.example.com)
6:129: error: research.allowed_domains_policy[7]: the string is empty (write something, or remove the key)

- execution = ["a.example"]
+ execution = ["a.example", "b.example", "A.example "]
7:43: warning: research.allowed_domains_execution[1]: `b.example` is still denied by policy (add it to allowed_domains_policy)
7:56: warning: research.allowed_domains_execution[2]: `a.example` is already in the list

- execution = ["a.example"]
+ execution = []
7:29: warning: research.allowed_domains_execution: every source will be denied: no domain is switched on

- policy = ["a.example"]
+ policy = []
6:26: warning: research.allowed_domains_policy: every source will be denied: no domain may be read

- policy = ["a.example"]
+ policy = "a.example"
6:26: error: research.allowed_domains_policy: expected a list, found the string "a.example"

- question = "What of it?"
-
4:1: error: research.question: `question` is missing (The question to answer. `{{input}}` is filled in.)

- question = "What of it?"
+ question = "{{what}}"
5:13: error: research.question: `{{what}}` is not an input (the scenario has no inputs)

- [[script]]
+ [tools.extract_notes]
+ fixture = { rows = [{ raw = "1" }] }
+ [[script]]
12:8: warning: tools.extract_notes: `extract_notes` is never called (research calls search_sources, read_source and llm)

- {url}
+ {address}
11:31: error: tools.read_source.http.url: `{address}` is not an argument of this tool (the only one is url)

- step = "plan"
-
12:1: error: script[0]: `step` is missing: research has no roles (step = "plan" or step = "notes" or step = "synthesize")

- step = "plan"
+ step = "finalize"
13:8: error: script[0].step: the pattern has no step finalize (step = "plan" or step = "notes" or step = "synthesize")

- step = "plan"
+ step = "plan"
+ role = "x"
+ round = 1
+ agent = "y"
14:8: error: script[0].role: a step of the pattern is not a role's turn (remove `role` or `step`)
15:9: error: script[0].round: the step plan belongs to no round (remove `round`)
16:9: error: script[0].agent: `agent` is for replies of agents (step = "plan" or step = "notes" or step = "synthesize")

- when = "max_steps
+ when = "url == '' && max_steps
14:9: error: script[0].when: `url` is not available in this condition (one of facts, inputs, goal, attempt, flags, question, max_steps)

- [[script]]
- step = "synthesize"
- raw = "3"
-
5:12: warning: research.answer: there is no scripted answer for offline runs (add a row in [[script]] with step = "synthesize")

- question = "What of it?"
+ question = "What of it?"
+ notes = "rule"
18:8: warning: script[1]: this row can never be used (research.notes: a rule does it in an offline run)

- pattern = "research"
+ pattern = "orchestrator"
1:1: error: orchestrator.plan_prompt: `plan_prompt` is missing (System prompt of the planner; the required reply format is appended. `{{input}}` is filled in.)
1:1: error: orchestrator.finalize_prompt: `finalize_prompt` is missing (System prompt of the report at the end. `{{input}}` is filled in.)
1:1: error: orchestrator.level: `level` is missing (The level of the aggregate: [orchestrator.level] with name = "health" and otherwise = "green", or other words.)
1:1: error: workers: there are no workers (add [workers.NAME])
4:2: error: research: `research` belongs to the pattern research (this scenario has pattern = "orchestrator")
8:8: warning: tools.search_sources: `search_sources` is never called (an orchestrator calls its workers and llm)
10:8: warning: tools.read_source: `read_source` is never called (an orchestrator calls its workers and llm)
14:9: error: script[0].when: `max_steps` is not available in this condition (one of facts, inputs, goal, attempt, flags, max_tasks, available_workers)
14:26: error: script[0].when: `question` is not available in this condition (one of facts, inputs, goal, attempt, flags, max_tasks, available_workers)
17:8: error: script[1].step: the pattern has no step notes (step = "plan" or step = "finalize")
21:8: error: script[2].step: the pattern has no step synthesize (step = "plan" or step = "finalize")

- [research]
+ [roles.x]
+ prompt = "y"
+ [research]
4:2: error: roles: `roles` belongs to the pattern collaboration (this scenario has pattern = "research")
"#,
    );
    judge(
        WHOLE,
        r#"
- as_of = "{{day}}"
+ as_of = "7 March"
30:9: error: research.as_of: "7 March" is not a date (write a date as YYYY-MM-DD)

- as_of = "{{day}}"
+ as_of = 2026-03-07T10:00:00
30:9: error: research.as_of: "2026-03-07T10:00:00" is not a date (write a date as YYYY-MM-DD)

- value = "2026-03-07"
+ value = "2026-02-30"
6:17: error: inputs.day.value: the string "2026-02-30" is not a date (write a date as YYYY-MM-DD, such as 2026-03-02)

- echo = ["day"]
+ echo = ["days", "region"]
18:9: error: research.echo[0]: `days` is not an input of this scenario (did you mean `day`?)
18:17: error: research.echo[1]: `region` is not an input of this scenario (one of what, day)

- min_independent_sources = 2
+ min_independent_sources = 4
28:27: warning: research.min_independent_sources: no claim can be confirmed: it needs 4 domains (domains in allowed_domains_policy: 3)

- max_steps = 6
+ max_steps = 4
11:13: warning: budget.max_steps: every plan will be refused: a plan has 5 steps (set it to at least 5)

- max_steps = 6
+ max_step = 6
11:1: error: budget.max_step: unknown key `max_step` (did you mean `max_steps`?)

- max_urls = 4
+ max_urls = "4"
12:12: error: budget.max_urls: expected a whole number from 1 to 20, found the string "4"

- max_urls = 4
+ max_tasks = 4
12:1: error: budget.max_tasks: `max_tasks` belongs to the pattern orchestrator (this scenario has pattern = "research")

- [sources."Vendor.example.com"]
+ [sources."https://vendor.example.com"]
31:10: error: sources.https://vendor.example.com: "https://vendor.example.com" is a URL, not a domain (write "vendor.example.com")

- [sources."Vendor.example.com"]
+ [sources."other.example"]
31:10: warning: sources.other.example: `other.example` is never read (add it to both allowlists)

- [sources."Vendor.example.com"]
+ [sources."vendor.example.com"]
+ trust = 0.7
+ [sources."Vendor.example.com"]
33:10: error: sources.Vendor.example.com: `vendor.example.com` already has a table (write one table for each domain)

- [sources."Vendor.example.com"]
+ [sources."wiki.corp:8080"]
33:8: warning: sources.wiki.corp:8080.flag: the flag has no effect: `wiki.corp:8080` is not in the execution allowlist (add it to allowed_domains_execution)

- trust = 0.5
+ trust = 1.5
32:9: error: sources.Vendor.example.com.trust: 1.5 is out of range (0 to 1)

- flag = "vendor"
+ flag = "vendors"
33:8: error: sources.Vendor.example.com.flag: `vendors` is not a flag of this scenario (did you mean `vendor`?)

- plan = "rule"
+ plan = "rules"
21:8: error: research.plan: `rules` is not allowed here (did you mean `rule`?)

- plan = "rule"
+ plan = "rule"
+ plan_prompt = "Plan."
+ preface = "So:"
22:15: warning: research.plan_prompt: this prompt is not used (a rule does this step)
23:11: warning: research.preface: the model writes the answer (it is only used with an answer by rule)

- plan = "rule"
+ plan = "model"
21:8: warning: research.plan: there is no scripted plan for offline runs (add a row in [[script]] with step = "plan")

- misquotes = "refuse"
+ misquotes = "repair"
27:13: error: research.misquotes: `repair` is not allowed here (one of stop, refuse)

- [tools.search_sources]
- search = { folder = "" }
-
1:1: error: tools.search_sources: research has no search tool (add [tools.search_sources] with one of search, fixture, http or command)

- read = { web = true }
+ timeout_s = 3
36:8: error: tools.read_source: research has no tool that reads pages (add one of read, fixture, http or command)

- search = { folder = "" }
+ read = { folder = "" }
34:8: error: tools.search_sources: research has no search tool: `read` only reads one page (use one of search, fixture, http or command)

- read = { web = true }
+ search = { folder = "" }
36:8: error: tools.read_source: research has no tool that reads pages: `search` only finds URLs (use one of read, fixture, http or command)

- read = { web = true }
+ search = { folder = "" }
+ read = { web = true }
38:8: error: tools.read_source: the tool has two implementations (keep one of fixture, http, command, search, read and mcp)

- [tools.read_source]
+ [tools.read_sources]
1:1: error: tools.read_source: research has no tool that reads pages (add [tools.read_source] with one of read, fixture, http or command)
36:8: warning: tools.read_sources: `read_sources` is never called (did you mean `read_source`?)
"#,
    );
}

#[test]
fn reports_empty_question() {
    let text = WHOLE.replacen("What of {{what}}?", " {{what}} ", 1);
    assert_eq!(
        told(&text, &["inputs.what=\"\""]),
        ["17:12: error: research.question: the question is empty (give its inputs a value)"]
    );
    let day = told(WHOLE, &["research.as_of=\"{{what}}\""]);
    assert_eq!(
        day,
        [
            "--set research.as_of=\"{{what}}\": error: research.as_of: \"it\" is not a date (write a date as YYYY-MM-DD)"
        ]
    );
    assert_eq!(
        spec(&read(WHOLE, &["research.as_of=2026-03-09"])).as_of.as_deref(),
        Some("2026-03-09")
    );
}
