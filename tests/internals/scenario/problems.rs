//! A problem of a scenario is reported with its line, its column and its fix.
use crate::scenario::{Problems, ScenarioOrigin, check};

use super::{judge, overrides, told};

const GOOD: &str = r#"title = "A launch"
pattern = "collaboration"
goal = "May {{what}} start on {{day}}?"
[inputs]
what = { value = "it" }
day = { value = "2026-03-02", kind = "date" }
size = { value = "big", choices = ["big", "small"] }
[flags.lawyer]
label = "A lawyer"
[budget]
max_rounds = 3
[facts]
rate = 0.02
limits = { block = 0.03 }
[collaboration]
sequence = ["ann", "bob"]
finalize_prompt = "Sum up."
[roles.ann]
prompt = "You are Ann."
[roles.bob]
prompt = "You are Bob."
flag = "lawyer"
[[script]]
role = "ann"
when = "facts.rate < facts.limits.block"
reply = { stance = "go", summary = "Fine.", confidence = 1, actions = ["Go"] }
[[script]]
text = "Whatever."
[[script]]
step = "finalize"
text = "Done: {{what}}."
"#;

fn problems(text: &str, set: &[&str]) -> Problems {
    check(text, ScenarioOrigin::File("a.toml".into()), &overrides(set)).problems
}

#[test]
fn a_good_scenario_has_no_problems() {
    assert_eq!(told(GOOD, &[]), Vec::<String>::new());
}

#[test]
fn limits_are_numbers_within_their_range() {
    judge(
        GOOD,
        r#"
- max_rounds = 3
+ max_round = 3
11:1: error: budget.max_round: unknown key `max_round` (did you mean `max_rounds`?)

- max_rounds = 3
+ max_rounds = "3"
11:14: error: budget.max_rounds: expected a whole number from 1 to 1000, found the string "3"

- max_rounds = 3
+ max_rounds = 3.5
11:14: error: budget.max_rounds: expected a whole number from 1 to 1000, found the number 3.5

- max_rounds = 3
+ max_rounds = 0
11:14: error: budget.max_rounds: 0 is out of range (1 to 1000)

- max_rounds = 3
+ max_rounds = 99999999999999999999
11:14: error: budget.max_rounds: a number beyond 64 bits is out of range (1 to 1000)

- max_rounds = 3
+ min_go_votes = 0
11:16: error: budget.min_go_votes: 0 is out of range (1 to 64)

- max_rounds = 3
+ min_go_votes = 3
11:16: warning: budget.min_go_votes: 3 votes for go are needed, but there are fewer seats (seats in collaboration.sequence: 2)

- max_rounds = 3
+ max_messages = 1
11:16: warning: budget.max_messages: 1 is too few messages for one round (seats in collaboration.sequence: 2)

- max_rounds = 3
+ max_messages = 5
11:16: warning: budget.max_messages: 5 messages are too few for 3 rounds of 2 seats (set budget.max_messages to 6, or fewer rounds)

- max_rounds = 3
+ max_seconds = -1
11:15: error: budget.max_seconds: -1 is out of range (1 to 86400)

- max_rounds = 3
+ max_rounds = 3 4
11:14: error: not TOML: string values must be quoted, expected literal string
"#,
    );
    let missing = GOOD.replacen("max_rounds = 3", "max_rounds = ", 1);
    assert_eq!(told(&missing, &[]), ["11:14: error: not TOML: a value is missing"]);
}

#[test]
fn required_keys_must_have_content() {
    judge(
        GOOD,
        r#"
- title = "A launch"
-
1:1: error: title: `title` is missing (Title in one line, for lists and headers.)

- title = "A launch"
+ title = " "
1:9: error: title: the string is empty (write something, or remove the key)

- title = "A launch"
+ title = 7
1:9: error: title: expected a string, found the number 7

- title = "A launch"
+ title = "A launch"
+ title = "B"
2:1: error: not TOML: duplicate key `title` (keep one of the two)

- pattern = "collaboration"
+ pattern = "colaboration"
2:11: error: pattern: `colaboration` is not allowed here (did you mean `collaboration`?)

- pattern = "collaboration"
+ pattern = "committee"
2:11: error: pattern: `committee` is not allowed here (one of collaboration, orchestrator, team, swarm, resilience, research, router)
"#,
    );
}

#[test]
fn unknown_input_reports_no_inputs() {
    let text = r#"title = "A launch"
pattern = "collaboration"
goal = "May {{what}} start?"
[collaboration]
sequence = ["ann"]
finalize_prompt = "Sum up."
[roles.ann]
prompt = "You are Ann."
[[script]]
when = "inputs.size > 3 && flags.lawyer"
text = "Whatever."
"#;
    let told = told(text, &["inputs.region=EU"]);
    for expected in [
        "3:13: error: goal: `{{what}}` is not an input (the scenario has no inputs)",
        "`size` is not an input (the scenario has no inputs)",
        "`lawyer` is not a flag (the scenario has no flags)",
        "`region` is not an input of this scenario (the scenario has no inputs)",
    ] {
        assert!(told.iter().any(|line| line.ends_with(expected)), "no {expected} in {told:#?}");
    }
}

#[test]
fn a_template_names_an_input() {
    judge(
        GOOD,
        r#"
- {{day}}
+ {{dya}}
3:31: error: goal: `{{dya}}` is not an input (did you mean `day`?)

- {{day}}
+ {{day
3:31: error: goal: `{{` is not closed (close it with `}}`, or write `\{{` for two braces)

- {{day}}
+ {{}}
3:31: error: goal: `{{}}` is not an input (one of what, day, size)

- {{day}}
+ {{facts.rate}}
3:31: error: goal: `{{facts.rate}}` is not an input (one of what, day, size)

- goal = "May
+ goal = "\u00e4\n {{x}} May
3:18: error: goal: `{{x}}` is not an input (one of what, day, size)

- prompt = "You are Ann."
+ prompt = """
+   ä {{x}}
+  \
+    {{y}} """
20:5: error: roles.ann.prompt: `{{x}}` is not an input (one of what, day, size)
22:4: error: roles.ann.prompt: `{{y}}` is not an input (one of what, day, size)

- Done: {{what}}.
+ Done: {{facts.limits.blok}}.
31:15: error: script[2].text: `{{facts.limits.blok}}` is not an input (did you mean `block`?)

- Done: {{what}}.
+ Done: {{recent_rounds}}.
31:15: error: script[2].text: `{{recent_rounds}}` is not an input (`recent_rounds` has a value only in `when`, `text` and `raw` of rows for its calls)
"#,
    );
}

#[test]
fn inputs_match_declared_type() {
    judge(
        GOOD,
        r#"
- what = { value = "it" }
+ what = { label = "it" }
5:8: error: inputs.what.value: `value` is missing (Its default value.)

- what = { value = "it" }
+ what = { value = [1] }
5:18: error: inputs.what.value: expected a string, a number, a date, true or false, found a list

- what = { value = "it" }
+ what = "it"
5:8: error: inputs.what: expected a table, found the string "it" (write what = { value = "it" })

- what = { value = "it" }
+ what = { value = 3, kind = "text" }
5:18: error: inputs.what.value: expected a string, found the number 3

- what = { value = "it" }
+ what = { value = 3.5, kind = "integer" }
5:18: error: inputs.what.value: expected a whole number, found the number 3.5

- what = { value = "it" }
+ what = { value = "it", kind = "choice" }
5:31: error: inputs.what.kind: kind = "choice" needs `choices` (add choices = ["one", "other"])

- what = { value = "it" }
+ what = { value = "it", kind = "txt" }
5:31: error: inputs.what.kind: `txt` is not allowed here (did you mean `text`?)

- what = { value = "it" }
+ "wh at" = { value = "it" }
3:13: error: goal: `{{what}}` is not an input (did you mean `wh at`?)
5:1: error: inputs.wh at: `wh at` is not a valid name (use letters, digits and _, no digit first, at most 64)
31:15: error: script[2].text: `{{what}}` is not an input (did you mean `wh at`?)

- 2026-03-02
+ 2026-02-29
6:17: error: inputs.day.value: the string "2026-02-29" is not a date (write a date as YYYY-MM-DD, such as 2026-03-02)

- "2026-03-02"
+ "soon"
6:17: error: inputs.day.value: the string "soon" is not a date (write a date as YYYY-MM-DD, such as 2026-03-02)

- "2026-03-02"
+ 2026-03-02

- value = "big"
+ value = "bgi"
7:18: error: inputs.size.value: `bgi` is not one of the choices (did you mean `big`?)

- value = "big", choices
+ kind = "text", value = "big", choices
7:17: error: inputs.size.kind: `choices` is only for kind = "choice" (remove `choices`, or set kind = "choice")

- choices = ["big", "small"]
+ choices = []
7:35: error: inputs.size.choices: the list is empty (at least 1)
"#,
    );
}

#[test]
fn facts_are_what_json_can_say() {
    judge(
        GOOD,
        r#"
- rate = 0.02
+ rate = nan
13:8: error: facts: this number cannot be sent to a model (use a finite number of at most 64 bits)

- rate = 0.02
+ rate = 0.02
+ day = "{{dya}}"
14:8: error: facts: `{{dya}}` is not an input (did you mean `day`?)

- [facts]
+ [fact]
12:2: error: fact: unknown key `fact` (did you mean `facts`?)
25:9: warning: script[0].when: there is no fact `facts.rate` (there are none)
25:22: warning: script[0].when: there is no fact `facts.limits.block` (there are none)

- [facts]
+ [[facts]]
12:1: error: facts: expected a table, found a list
"#,
    );
}

#[test]
fn seats_name_existing_roles() {
    judge(
        GOOD,
        r#"
- sequence = ["ann", "bob"]
+ sequence = []
16:12: error: collaboration.sequence: the list is empty (at least 1)

- sequence = ["ann", "bob"]
+ sequence = ["ann", "bbo"]
16:20: error: collaboration.sequence[1]: `bbo` is not a role of this scenario (did you mean `bob`?)
20:8: warning: roles.bob: `bob` has no seat (add it to collaboration.sequence)

- sequence = ["ann", "bob"]
+ sequence = ["ann", "bob", "ann"]
16:27: warning: collaboration.sequence[2]: `ann` has two seats, so it votes twice

- sequence = ["ann", "bob"]
+ sequence = ["ann"]
16:12: warning: budget.min_go_votes: 2 votes for go are needed, but there are fewer seats (seats in collaboration.sequence: 1)
20:8: warning: roles.bob: `bob` has no seat (add it to collaboration.sequence)

- sequence = ["ann", "bob"]
+ sequence = "ann"
16:12: error: collaboration.sequence: expected a list, found the string "ann"

- sequence = ["ann", "bob"]
+ sequence = ["ann", "bob"]
+ concurrency = "paralel"
17:15: error: collaboration.concurrency: `paralel` is not allowed here (did you mean `parallel`?)

- sequence = ["ann", "bob"]
+ sequence = ["ann", "bob"]
+ on_no_decision = { ask = "chair" }
17:26: error: collaboration.on_no_decision.ask: `chair` is not a person of this scenario (there are none)

- sequence = ["ann", "bob"]
+ sequence = ["ann", "bob"]
+ summary = ["dya"]
17:12: error: collaboration.summary[0]: `dya` is not an input of this scenario (did you mean `day`?)

- finalize_prompt = "Sum up."
-
15:1: error: collaboration.finalize_prompt: `finalize_prompt` is missing (System prompt of the launch brief at the end.)
"#,
    );
}

#[test]
fn roles_and_flags_know_each_other() {
    judge(
        GOOD,
        r#"
- flag = "lawyer"
+ flag = "lawer"
22:8: error: roles.bob.flag: `lawer` is not a flag of this scenario (did you mean `lawyer`?)

- flag = "lawyer"
+ when_off = "skip"
22:12: error: roles.bob.when_off: `when_off` has no effect without a flag (add `flag`, or remove `when_off`)

- flag = "lawyer"
+ flag = "lawyer"
+ when_off = "stop"
23:12: error: roles.bob.when_off: `stop` is not allowed here (one of skip, deny)

- label = "A lawyer"
+ default = "on"
9:11: error: flags.lawyer.default: expected true or false, found the string "on"

- [roles.ann]
+ [roles."an n"]
16:13: error: collaboration.sequence[0]: `ann` is not a role of this scenario (did you mean `an n`?)
18:8: error: roles.an n: `an n` is not a valid name (use letters, digits, _ and -, at most 64)
18:8: warning: roles.an n: `an n` has no seat (add it to collaboration.sequence)
24:8: error: script[0].role: `ann` is not a role of this scenario (did you mean `an n`?)

- [roles.ann]
- prompt = "You are Ann."
+ [roles.ann]
18:1: error: roles.ann.prompt: `prompt` is missing (Its system prompt; the required reply format is appended. `{{input}}` is filled in.)

- role = "ann"
- when
+ role = "an"
+ when
24:8: error: script[0].role: `an` is not a role of this scenario (did you mean `ann`?)
"#,
    );
}

#[test]
fn conditions_are_cel_over_context() {
    judge(
        GOOD,
        r#"
- facts.rate < facts.limits.block
+ facts.rate <
25:21: error: script[0].when: not a condition: it ends too early (write a CEL condition such as facts.alerts >= 3 && inputs.region == 'EU')

- facts.rate < facts.limits.block
+ facts.rte < facts.limits.block
25:9: warning: script[0].when: there is no fact `facts.rte` (did you mean `rate`?)

- facts.rate < facts.limits.block
+ fact.rate < 3
25:9: error: script[0].when: `fact` is not available in this condition (did you mean `facts`?)

- facts.rate < facts.limits.block
+ final_decision == 'go'
25:9: error: script[0].when: `final_decision` is not available in this condition (one of facts, inputs, goal, role, round, attempt, flags, recent_rounds, open_conflicts)

- facts.rate < facts.limits.block
+ inputs.dya == 'x'
25:9: error: script[0].when: `dya` is not an input (did you mean `day`?)

- facts.rate < facts.limits.block
+ flags.lawer
25:9: error: script[0].when: `lawer` is not a flag (did you mean `lawyer`?)

- "facts.rate < facts.limits.block"
+ '''
+ facts.rate < 1
+   && $'''
27:6: error: script[0].when: not a condition: unexpected '$' (write a CEL condition such as facts.alerts >= 3 && inputs.region == 'EU')

- step = "finalize"
+ step = "finalize"
+ when = "round == 1"
31:9: error: script[2].when: `round` is not available in this condition (one of facts, inputs, goal, attempt, flags, final_decision, history)
"#,
    );
}

#[test]
fn warns_of_unreachable_rows_and_silence() {
    judge(
        GOOD,
        r#"
- role = "ann"
- when
+ role = "ann"
+ round = 4
+ when
25:9: warning: script[0]: this row can never be used (budget.max_rounds is 3)

- role = "ann"
- when
+ role = "ann"
+ attempt = 3
+ when
25:11: warning: script[0]: this row can never be used (tools.llm.retries.max_attempts is 2)

- text = "Whatever."
+ text = "Whatever."
+ [[script]]
+ role = "bob"
+ text = "x"
29:1: warning: script[2]: this row can never be used (script[1] comes first and matches every call of this row)

- [[script]]
- text = "Whatever."
-
20:8: warning: roles.bob: `bob` has no scripted reply for offline runs (add a row in [[script]] for it)

- [[script]]
- step = "finalize"
- text = "Done: {{what}}."
-
17:19: warning: collaboration.finalize_prompt: there is no scripted launch brief for offline runs (add a row in [[script]] with step = "finalize")
"#,
    );
}

#[test]
fn rejects_impossible_times_and_faults() {
    judge(
        GOOD,
        r#"
- role = "ann"
- when
+ role = "ann"
+ round = 0
+ when
25:9: error: script[0].round: 0 is out of range (1 to 1000)

- role = "ann"
- when
+ role = "ann"
+ latency = "1h"
+ when
25:11: error: script[0].latency: "1h" is not a duration (write 60m)

- role = "ann"
- when
+ role = "ann"
+ latency = "2s..1s"
+ when
25:11: error: script[0].latency: "2s..1s" has its longer time first (write the shorter time first)

- role = "ann"
- when
+ role = "ann"
+ latency = true
+ when
25:11: error: script[0].latency: expected a duration such as "900ms" or "900ms..1.8s", found true

- role = "ann"
- when
+ role = "ann"
+ fault = { }
+ when
25:9: error: script[0].fault: the fault has no status and no kind (write status = 503, or kind = "hang")

- role = "ann"
- when
+ role = "ann"
+ fault = { status = 503, kind = "hang" }
+ when
25:9: error: script[0].fault: a fault has a status or a kind, not both (write status = 503, or kind = "hang")

- role = "ann"
- when
+ role = "ann"
+ fault = { status = 200 }
+ when
25:20: error: script[0].fault.status: 200 is out of range (400 to 599)

- role = "ann"
- when
+ role = "ann"
+ fault = { kind = "rest" }
+ when
25:18: error: script[0].fault.kind: `rest` is not allowed here (did you mean `reset`?)

- role = "ann"
- when
+ role = "ann"
+ fault = { kind = "hang", retry_after_s = 1 }
+ when
25:42: error: script[0].fault.retry_after_s: only a failure with a status can have a Retry-After (add `status`, such as 429)
"#,
    );
}

#[test]
fn a_row_says_exactly_one_thing() {
    judge(
        GOOD,
        r#"
- role = "ann"
- when
+ role = "ann"
+ raw = "x"
+ when
23:1: error: script[0]: the row has more than one reply (keep one of `reply`, `raw` and `text`)

- text = "Whatever."
+ round = 1
27:1: error: script[1]: the row has no reply (write one of `reply`, `raw` and `text`)
"#,
    );
}

#[test]
fn step_excludes_role_and_round() {
    judge(
        GOOD,
        r#"
- step = "finalize"
+ step = "finalise"
30:8: error: script[2].step: `finalise` is not allowed here (did you mean `finalize`?)

- step = "finalize"
+ step = "finalize"
+ role = "ann"
+ round = 1
31:8: error: script[2].role: a step of the pattern is not a role's turn (remove `role` or `step`)
32:9: error: script[2].round: the step finalize belongs to no round (remove `round`)
"#,
    );
}

#[test]
fn validates_model_and_tool_settings() {
    judge(
        GOOD,
        r#"
- [[script]]
- role
+ [model]
+ repair = "fence"
+ prices = { prompt_usd_per_million = -1 }
+ [tools.llm]
+ timeout_s = 0
+ retries = { max_attempts = 0, backoff_ms = [1, -1] }
+ [tools.http]
+ [[script]]
+ role
24:10: error: model.repair: `fence` is not allowed here (did you mean `fences`?)
25:10: error: model.prices.completion_usd_per_million: `completion_usd_per_million` is missing (Tokens of the reply.)
25:37: error: model.prices.prompt_usd_per_million: -1 is out of range (0 to 1000000)
27:13: error: tools.llm.timeout_s: 0 is out of range (0.001 to 86400)
28:28: error: tools.llm.retries.max_attempts: 0 is out of range (1 to 20)
28:48: error: tools.llm.retries.backoff_ms[1]: -1 is out of range (0 to 600000)
29:8: warning: tools.http: `http` is never called (a collaboration calls only llm)
"#,
    );
}

#[test]
fn override_errors_name_override() {
    // An override, then the reports on it.
    let sets = r#"
budget.max_rounds=x
--set budget.max_rounds=x: error: budget.max_rounds: expected a whole number from 1 to 1000, found the string "x"

budget.max_rounds=0
--set budget.max_rounds=0: error: budget.max_rounds: 0 is out of range (1 to 1000)

inputs.size=medium
--set inputs.size=medium: error: inputs.size.value: `medium` is not one of the choices (one of big, small)

inputs.siz=big
--set inputs.siz=big: error: `siz` is not an input of this scenario (did you mean `size`?)

inputs.day=2026-02-30
--set inputs.day=2026-02-30: error: inputs.day.value: the string "2026-02-30" is not a date (write a date as YYYY-MM-DD, such as 2026-03-02)

inputs.day=2026-02-28

facts.rate=0.5

facts.rate=low
--set facts.rate=low: error: "low" replaces a number (write a number, or change the file)

facts.rate=true
--set facts.rate=true: error: true replaces a number (write a number, or change the file)

facts.rate=[1]
--set facts.rate=[1]: error: [1] replaces a number (write a number, or change the file)

roles.ann.prompt=Hi {{who}}
--set roles.ann.prompt=Hi {{who}}: error: roles.ann.prompt: `{{who}}` is not an input (one of what, day, size)

roles.cy.prompt=x
--set roles.cy.prompt=x: warning: roles.cy: `cy` has no seat (add it to collaboration.sequence)

script[9].text=x
--set script[9].text=x: error: `script[9]` is not in the list (script[0] to script[2])

script[1].text=x

script.text=x
--set script.text=x: error: `script` is a list (set an item: script[0])

title.x=1
--set title.x=1: error: `title` is not a table and has no fields to set

tools.llm.timeout_s=5

tools.llm.timeout_s=-5
--set tools.llm.timeout_s=-5: error: tools.llm.timeout_s: -5 is out of range (0.001 to 86400)

goal={{day}}

script[0].when=facts.rate <
--set script[0].when=facts.rate <: error: script[0].when: not a condition: it ends too early (write a CEL condition such as facts.alerts >= 3 && inputs.region == 'EU')

script[0].when="facts.rate <"
--set script[0].when="facts.rate <": error: script[0].when: not a condition: it ends too early (write a CEL condition such as facts.alerts >= 3 && inputs.region == 'EU')

inputs.what=2026

budget={max_rounds=1,max_round=2}
--set budget={max_rounds=1,max_round=2}: error: budget.max_round: unknown key `max_round` (did you mean `max_rounds`?)

flags.lawyer.default=on
--set flags.lawyer.default=on: error: flags.lawyer.default: expected true or false, found the string "on"

a.b.c=1
--set a.b.c=1: error: a: unknown key `a` (one of title, pattern, about, goal, seed, in_doubt, people, approve, inputs, flags, budget, facts, collaboration, roles, orchestrator, workers, … (29 in all))

roles.ann=1
--set roles.ann=1: error: roles.ann: expected a table, found the number 1

inputs.what={value=1}

facts=1
--set facts=1: error: facts: expected a table, found the number 1

collaboration.sequence=["ann","bo"]
20:8: warning: roles.bob: `bob` has no seat (add it to collaboration.sequence)
--set collaboration.sequence=["ann","bo"]: error: collaboration.sequence[1]: `bo` is not a role of this scenario (did you mean `bob`?)

collaboration.sequence[0]="x"
18:8: warning: roles.ann: `ann` has no seat (add it to collaboration.sequence)
24:8: warning: script[0]: this row can never be used (`ann` is not in collaboration.sequence)
--set collaboration.sequence[0]="x": error: collaboration.sequence[0]: `x` is not a role of this scenario (one of ann, bob)
"#;
    for case in sets.trim_matches('\n').split("\n\n") {
        let (set, reports) = case.split_once('\n').unwrap_or((case, ""));
        assert_eq!(told(GOOD, &[set]), reports.lines().collect::<Vec<_>>(), "{set}");
    }
}

#[test]
fn reports_ten_mistakes_with_position() {
    let text = r#"titel = "Launch"
pattern = "colaboration"
goal = "May {{campain}} start?"
[inputs]
campaign = { value = "it", kind = "date" }
[budget]
max_rounds = 0
min_go_votes = "two"
[collaboration]
sequence = ["ann", "bob"]
finalize_prompt = "Sum up."
[roles.ann]
prompt = "Who?\u202e"
flag = "lawyer"
[[script]]
role = "ann"
when = "facts.rate >= "
latency = "fast"
text = "Hm."
[[script]]
step = "finalize"
"#;
    let problems = problems(text, &["budget.max_seconds=soon", "inputs.kampaign=x"]);
    assert_eq!((problems.errors(), problems.warnings()), (14, 0));
    insta::assert_snapshot!(problems.pretty(false));
}

#[test]
fn long_line_shows_part_around_mistake() {
    let long = format!("goal = \"{} {{{{nobody}}}} {}\"\n", "lead ".repeat(60), "tail ".repeat(60));
    let text = GOOD.replacen("goal = \"May {{what}} start on {{day}}?\"\n", &long, 1);
    insta::assert_snapshot!(problems(&text, &[]).pretty(false));
}

#[test]
fn colours_appear_only_on_request() {
    let problems = problems("", &[]);
    assert!(!problems.pretty(false).contains('\u{1b}'));
    assert!(problems.pretty(true).contains("\u{1b}[1;31merror\u{1b}[0m"));
}

#[test]
fn refuses_unrelated_file_within_bounds() {
    let text: String = (0..5_000).map(|line| format!("key{line} = {line}\n")).collect();
    let problems = problems(&text, &["inputs.x=1"]);
    assert!(problems.errors() > 5_000, "{}", problems.count());
    assert_eq!(problems.iter().count(), 200);
    assert_eq!(problems.more(), problems.errors() - 200);
    assert!(problems.pretty(false).contains(&format!("… and {} more", problems.more())));
}

#[test]
fn rows_that_decide_name_what_exists() {
    const WHOLE: &str = "sequence = [\"ann\", \"bob\"]";
    let with = |row: &str| GOOD.replacen(WHOLE, &format!("{WHOLE}\ndecide = [{row}]"), 1);
    let table = [
        (
            r#"{ when = "size(stances.goo) > 1", decision = "go" }"#,
            "17:34: error: collaboration.decide[0].when: `goo` is not a stance (did you mean `go`?)",
        ),
        (
            r#"{ when = "weight.blocked > 1.0", decision = "go" }"#,
            "17:28: error: collaboration.decide[0].when: `blocked` is not a stance (one of go, caution, block)",
        ),
        (
            r#"{ when = "confidences.anne > 0.5", decision = "go" }"#,
            "17:33: error: collaboration.decide[0].when: `anne` is not a role in collaboration.sequence (did you mean `ann`?)",
        ),
        (
            r#"{ when = "'bobb' in stances.block", decision = "go" }"#,
            "17:22: error: collaboration.decide[0].when: `bobb` is not a role in collaboration.sequence (did you mean `bob`?)",
        ),
        (
            r#"{ when = "rounds == 1", decision = "go" }"#,
            "17:21: error: collaboration.decide[0].when: `rounds` is not available in this condition (did you mean `round`?)",
        ),
        (
            r#"{ when = "round ==", decision = "go" }"#,
            "error: collaboration.decide[0].when: not a condition:",
        ),
        (
            r#"{ when = "round == 1", decision = "nogo" }"#,
            "error: collaboration.decide[0].decision: ",
        ),
        (
            r#"{ when = "stances.go >= 2", decision = "go" }"#,
            "error: collaboration.decide[0].when: ",
        ),
        (
            r#"{ when = "size(stances.go)", decision = "go" }"#,
            "error: collaboration.decide[0].when: ",
        ),
        (
            r#"{ when = "size(stances['goo']) > 0", decision = "go" }"#,
            "error: collaboration.decide[0].when: ",
        ),
        (
            r#"{ when = "confidences['zz'] > 0.5", decision = "go" }"#,
            "error: collaboration.decide[0].when: ",
        ),
        (
            r#"{ when = "true", decision = "go" }, { when = "round == 1", decision = "no_go" }"#,
            "warning: collaboration.decide[1].when: row 1 of the table always holds: this one is never reached (move it before that row, or remove it)",
        ),
    ];
    for (row, expected) in table {
        let told = told(&with(row), &[]);
        assert!(told.len() == 1 && told[0].contains(expected), "{row}: {told:#?}");
    }
    let row = r#"{ when = "round == 1", decision = "go" }"#;
    let votes = with(row).replacen("max_rounds = 3", "min_go_votes = 1", 1);
    assert_eq!(
        told(&votes, &[]),
        [
            "11:16: warning: budget.min_go_votes: no row of collaboration.decide reads it, so it has no effect (read `min_go_votes` in a condition, or remove it)"
        ]
    );
    let heavy =
        with(row).replacen("prompt = \"You are Ann.\"", "prompt = \"You are Ann.\"\nweight = 2", 1);
    let said = &told(&heavy, &[])[0];
    assert!(
        said.contains("warning: roles.ann.weight: the weight of `ann` has no effect"),
        "{said}"
    );
}

#[test]
fn a_prompt_may_say_a_flag() {
    judge(
        GOOD,
        r#"
- You are Ann.
+ Lawyer: {{flags.lawyer}}.

- You are Ann.
+ Lawyer: {{flags.lawyr}}.
19:19: error: roles.ann.prompt: `lawyr` is not a flag (did you mean `lawyer`?)

- May {{what}} start
+ May {{flags.lawyer}} start
3:13: error: goal: `{{flags.lawyer}}` is not replaced here (a flag may change during a run: only prompts say its position)
"#,
    );
}
