//! What a good file of a team or swarm comes to, and what is told of a bad one.
use std::time::Duration;

use roundtable::scenario::agent::{
    AgentKind, CoordinatorTeam, HistoryScope, InnerText, MemberTools, Swarm, SwarmLimits, TeamSpec,
};
use roundtable::scenario::model::PatternSpec;
use roundtable::scenario::{Origin, Override, Scenario, check, load};
use serde_json::json;

const TEAM: &str = r#"title = "A team"
pattern = "team"
goal = "Build {{what}}."
[inputs]
what = { value = "it" }
parallel = { value = true }
[team]
root = "pm"
follow_ups = ["And {{what}} again?", "Thanks."]
[agents.pm]
description = "Manages {{what}}"
instruction = "You manage {{what}}."
members = ["devs", "writer", "desk"]
tools = ["tickets"]
max_tool_rounds = 4
parallel_tools = "{{parallel}}"
[agents.pm.member_tools]
stream_inner = true
inner_text = "exclude"
history_scope = "isolated"
skip_summarization = true
[agents.devs]
description = "Builds"
members = ["coder"]
[agents.coder]
description = "Codes"
tools = ["tickets", "build"]
[agents.writer]
description = "Writes"
[agents.desk]
description = "Supports"
members = ["front", "back"]
entry = "front"
max_handoffs = 5
repetitive_handoff_window = 0
repetitive_handoff_min_unique = 2
max_rejections = 0
node_timeout_s = 1.5
cross_request_transfer = true
independent_history = true
handoff_input = "{from} to {to} about {{what}}: {message}; {root_input} {parent_input}"
[agents.front]
description = "Greets"
[agents.back]
description = "Digs"
[agents.bench]
description = "Waits"
[tools.tickets]
description = "Finds tickets of {{what}}"
args = { query = "What to look for in {{what}}", limit = { type = "integer", minimum = 1 } }
fixture = { rows = [{ result = { found = 0 } }] }
[tools.build]
description = "Builds"
http = { url = "https://ci.example/builds" }
[tools.devs]
timeout_s = 20
[tools.writer]
retries = { max_attempts = 3 }
[[script]]
agent = "pm"
round = 1
message = 2
turn = 3
when = "handoffs == 0 && size(results) == 0 && input != '' && from == '' && message == 2 && 'devs' in members"
calls = [
  { tool = "devs", args = { request = "Build {{what}}." } },
  { tool = "tickets", raw = "not json" },
  { tool = "tickets" },
]
[[script]]
agent = "front"
text = "One moment."
calls = [{ tool = "transfer_to_agent", args = { agent_name = "back", message = "Look." } }]
[[script]]
text = "Done."
"#;

const SWARM: &str = r#"title = "A swarm"
pattern = "swarm"
goal = "Help."
[swarm]
root = "desk"
[agents.desk]
description = "Supports"
members = ["front", "back"]
entry = "front"
[agents.front]
description = "Greets"
[agents.back]
description = "Digs"
[[script]]
text = "Done."
"#;

fn read(text: &str, set: &[&str]) -> Scenario {
    let set: Vec<Override> = set.iter().map(|set| set.parse().expect("an override")).collect();
    let scenario = load(text, Origin::File("a.toml".into()), &set)
        .unwrap_or_else(|problems| panic!("{}", problems.pretty(false)));
    assert_eq!(scenario.warnings, Vec::<String>::new());
    scenario
}

fn spec(scenario: &Scenario) -> &TeamSpec {
    let PatternSpec::Team(spec) = &scenario.pattern else { panic!("a team") };
    spec
}

fn coordinator<'s>(spec: &'s TeamSpec, name: &str) -> &'s CoordinatorTeam {
    let AgentKind::Team(team) = &spec.agents[name].kind else { panic!("{name} is no team") };
    team
}

fn swarm<'s>(spec: &'s TeamSpec, name: &str) -> &'s Swarm {
    let AgentKind::Swarm(swarm) = &spec.agents[name].kind else { panic!("{name} is no swarm") };
    swarm
}

/// What is told of a text, without the name of its file.
fn told(text: &str) -> Vec<String> {
    let all = check(text, Origin::File("a.toml".into()), &[]).problems.to_string();
    all.lines().map(|line| line.strip_prefix("a.toml:").unwrap_or(line).to_owned()).collect()
}

/// A mistake, made by putting one text in place of another, and all that must be told of it.
type Mistake = (&'static str, &'static str, &'static [&'static str]);

#[track_caller]
fn judge(good: &str, mistakes: &[Mistake]) {
    for (from, to, expected) in mistakes {
        assert!(good.contains(from), "{from} is not in the scenario");
        assert_eq!(&told(&good.replacen(from, to, 1)), expected, "{to}");
    }
}

#[test]
fn a_team_is_read_with_all_that_its_file_says() {
    let scenario = read(TEAM, &[]);
    let team = spec(&scenario);
    assert_eq!((scenario.pattern.name(), team.root.as_str()), ("team", "pm"));
    assert_eq!(scenario.pattern.max_seconds(), Duration::from_secs(60));
    let follow_ups: Vec<&str> = team.follow_ups.iter().map(|text| &**text).collect();
    assert_eq!(follow_ups, ["And it again?", "Thanks."]);
    assert_eq!(team.agents.len(), 8);
    let pm = coordinator(team, "pm");
    assert_eq!(&*team.agents["pm"].description, "Manages it");
    assert_eq!(&*pm.coordinator.instruction, "You manage it.");
    assert_eq!((pm.coordinator.max_tool_rounds, pm.parallel_tools), (4, true));
    assert_eq!(
        pm.members.iter().map(|it| it.as_str()).collect::<Vec<_>>(),
        ["devs", "writer", "desk"]
    );
    let shown = MemberTools {
        stream_inner: true,
        inner_text: InnerText::Exclude,
        history_scope: HistoryScope::Isolated,
        skip_summarization: true,
    };
    assert_eq!(pm.member_tools, shown);
    let devs = coordinator(team, "devs");
    assert_eq!((devs.coordinator.max_tool_rounds, devs.parallel_tools), (16, false));
    assert_eq!(devs.member_tools, MemberTools::default());
    let AgentKind::Model(coder) = &team.agents["coder"].kind else { panic!("a model agent") };
    assert_eq!(coder.tools.iter().map(|it| it.as_str()).collect::<Vec<_>>(), ["tickets", "build"]);
    assert!(!coordinator(spec(&read(TEAM, &["inputs.parallel=false"])), "pm").parallel_tools);
}

#[test]
fn a_swarm_is_read_with_its_limits_and_without_any_the_source_s_hold() {
    let scenario = read(TEAM, &[]);
    let desk = swarm(spec(&scenario), "desk");
    assert_eq!(
        desk.limits,
        SwarmLimits {
            max_handoffs: 5,
            repetitive_handoff_window: 0,
            repetitive_handoff_min_unique: 2,
        }
    );
    assert_eq!((desk.entry.as_str(), desk.max_rejections), ("front", 0));
    assert_eq!(desk.node_timeout, Some(Duration::from_millis(1_500)));
    assert!(desk.cross_request_transfer && desk.independent_history);
    let handed = "{from} to {to} about it: {message}; {root_input} {parent_input}";
    assert_eq!(desk.handoff_input.as_deref(), Some(handed));
    for text in [SWARM.to_owned(), SWARM.replace("entry =", "node_timeout_s = 0\nentry =")] {
        let scenario = read(&text, &[]);
        assert_eq!(scenario.pattern.name(), "swarm");
        let desk = swarm(spec(&scenario), "desk");
        assert_eq!(
            desk.limits,
            SwarmLimits {
                max_handoffs: 20,
                repetitive_handoff_window: 8,
                repetitive_handoff_min_unique: 3,
            }
        );
        assert_eq!((desk.max_rejections, desk.node_timeout), (3, None));
        assert!(!desk.cross_request_transfer && !desk.independent_history);
        assert_eq!(desk.handoff_input, None);
    }
}

#[test]
fn a_tool_is_offered_with_what_is_said_of_it_and_its_arguments_as_a_json_schema() {
    let scenario = read(TEAM, &[]);
    let offer = &scenario.tools["tickets"].offer;
    assert_eq!((&*offer.name, &*offer.description), ("tickets", "Finds tickets of it"));
    assert_eq!(
        *offer.parameters,
        json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "What to look for in it" },
                "limit": { "type": "integer", "minimum": 1 },
            },
            "required": ["query", "limit"],
        })
    );
    assert_eq!(
        *scenario.tools["build"].offer.parameters,
        json!({ "type": "object", "properties": {}, "required": [] })
    );
}

/// What a member did in a failed attempt was done, and its own calls are retried by themselves.
#[test]
fn a_member_is_asked_once_unless_its_table_says_more() {
    let scenario = read(TEAM, &[]);
    let policy = |name: &str| &scenario.tools[name].policy;
    assert_eq!((policy("devs").max_attempts, policy("writer").max_attempts), (1, 3));
    assert_eq!(policy("devs").timeout, Some(Duration::from_secs(20)));
    assert!(scenario.tools["devs"].kind.is_none(), "the agent answers for itself");
    assert_eq!(policy("tickets").max_attempts, 2);
}

#[test]
fn the_rows_of_agents_say_whose_they_are_and_what_is_called() {
    let scenario = read(TEAM, &[]);
    let [first, hands_over, last] = &scenario.script.rows[..] else { panic!("three rows") };
    assert_eq!(first.agent.as_ref().map(|it| it.as_str()), Some("pm"));
    assert_eq!((first.message, first.turn, first.round), (Some(2), Some(3), Some(1)));
    assert_eq!(&*first.answer, "");
    let calls: Vec<(&str, &str, &str)> =
        first.calls.iter().map(|call| (&*call.id, &*call.name, &*call.arguments)).collect();
    assert_eq!(
        calls,
        [
            ("", "devs", r#"{"request":"Build it."}"#),
            ("", "tickets", "not json"),
            ("", "tickets", "{}"),
        ]
    );
    assert_eq!((&*hands_over.answer, hands_over.calls.len()), ("One moment.", 1));
    assert_eq!(&*hands_over.calls[0].arguments, r#"{"agent_name":"back","message":"Look."}"#);
    assert_eq!((&last.agent, last.calls.len()), (&None, 0));
}

/// The texts are the source's, to the letter.
#[test]
fn the_names_of_a_team_are_judged_in_the_words_of_the_source() {
    judge(
        SWARM,
        &[
            (
                r#"members = ["front", "back"]"#,
                "members = []",
                &["8:11: error: agents.desk.members: members is empty (name at least one agent)"],
            ),
            (
                r#"members = ["front", "back"]"#,
                "",
                &["6:9: error: agents.desk.members: members is empty (name at least one agent)"],
            ),
            (
                r#"["front", "back"]"#,
                r#"["front", "", "back"]"#,
                &[
                    "8:21: error: agents.desk.members[1]: member name is empty (the name of an agent)",
                ],
            ),
            (
                r#"["front", "back"]"#,
                r#"["front", "back", "front"]"#,
                &[
                    r#"8:29: error: agents.desk.members[2]: duplicate member name "front" (once is enough)"#,
                ],
            ),
            (
                r#"["front", "back"]"#,
                r#"["front", "back office"]"#,
                &[
                    r#"8:21: error: agents.desk.members[1]: member name "back office" does not match ^[a-zA-Z0-9_-]+$ (letters, digits, _ and -)"#,
                ],
            ),
            (
                r#"entry = "front""#,
                r#"entry = """#,
                &[
                    "9:9: error: agents.desk.entry: entry member name is empty (the name of an agent)",
                ],
            ),
            (
                r#"entry = "front""#,
                r#"entry = "fron""#,
                &[
                    r#"9:9: error: agents.desk.entry: entry member "fron" not found (did you mean `front`?)"#,
                ],
            ),
            (
                r#"["front", "back"]"#,
                r#"["front", "bak"]"#,
                &[
                    "8:21: error: agents.desk.members[1]: `bak` is not an agent of this scenario (did you mean `back`?)",
                ],
            ),
        ],
    );
    judge(
        TEAM,
        &[(
            r#"["devs", "writer", "desk"]"#,
            r#"["devs", "writer", "desk", "pm"]"#,
            &[
                r#"13:38: error: agents.pm.members[3]: member name "pm" conflicts with coordinator (the coordinator has the name of its team)"#,
            ],
        )],
    );
}
