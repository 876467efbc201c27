//! Good files of a team or swarm and their result, and bad ones and their reports.
use std::time::Duration;

use crate::scenario::Scenario;
use crate::scenario::patterns::PatternSpec;
use crate::scenario::patterns::agents::{
    AgentKind, CoordinatorTeam, HistoryScope, InnerText, MemberTools, Swarm, SwarmLimits,
};
use crate::scenario::patterns::team::TeamSpec;
use crate::scenario::spec::handoff_template::{HandoffPiece, HandoffTemplate};
use serde_json::json;

use super::{judge, read};

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
cross_request_transfer = false
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

fn told(text: &str) -> Vec<String> {
    super::told(text, &[])
}

#[test]
fn reads_complete_team() {
    let scenario = read(TEAM, &[]);
    let team = spec(&scenario);
    assert_eq!((scenario.pattern.get().name(), team.root.as_str()), ("team", "pm"));
    assert_eq!(scenario.pattern.get().max_time(), Duration::from_secs(60));
    let follow_ups: Vec<&str> = team.follow_ups.iter().map(|text| &**text).collect();
    assert_eq!(follow_ups, ["And it again?", "Thanks."]);
    assert_eq!(team.agents.len(), 8);
    let pm = coordinator(team, "pm");
    assert_eq!(&*team.agents["pm"].description, "Manages it");
    assert_eq!(&*pm.coordinator.instruction.written(), "You manage it.");
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
fn reads_swarm_with_default_limits() {
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
    assert!(!desk.cross_request_transfer && desk.independent_history);
    let handed = "{from} to {to} about it: {message}; {root_input} {parent_input}";
    assert_eq!(desk.handoff_input, Some(HandoffTemplate::parse_template(handed)));
    for text in [SWARM.to_owned(), SWARM.replace("entry =", "node_timeout_s = 0\nentry =")] {
        let scenario = read(&text, &[]);
        assert_eq!(scenario.pattern.get().name(), "swarm");
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
fn inputs_cannot_extend_handoff_template() {
    let text = TEAM.replace(r#"value = "it""#, r#"value = "{message} of {from}""#);
    let line = text.lines().find(|line| line.starts_with("handoff_input")).expect("the template");
    let text = text.replace(line, r"handoff_input = '\{{to}} {to}: {{what}}, {message}{'");
    let scenario = read(&text, &[]);
    let template = swarm(spec(&scenario), "desk").handoff_input.clone().expect("a template");
    let (a, b) = ("a".into(), "b".into());
    let filled = template.fill("root", "parent", &a, &b, Some("m"));
    assert_eq!(filled, "{{to}} b: {message} of {from}, m{");
    let pieces = [
        HandoffPiece::Literal("{{to}} ".to_owned()),
        HandoffPiece::To,
        HandoffPiece::Literal(": {message} of {from}, ".to_owned()),
        HandoffPiece::Message,
        HandoffPiece::Literal("{".to_owned()),
    ];
    assert_eq!(template.pieces(), pieces);
}

#[test]
fn tool_is_offered_with_json_schema() {
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
fn members_are_not_retried_by_default() {
    let scenario = read(TEAM, &[]);
    let policy = |name: &str| &scenario.tools[name].policy;
    assert_eq!((policy("devs").max_attempts, policy("writer").max_attempts), (1, 3));
    assert_eq!(policy("devs").timeout, Some(Duration::from_secs(20)));
    assert!(scenario.tools["devs"].kind.is_none(), "the agent answers for itself");
    assert_eq!(policy("tickets").max_attempts, 2);
}

#[test]
fn agent_rows_name_agent_and_call() {
    let scenario = read(TEAM, &[]);
    let [first, hands_over, last] = &scenario.script.rows[..] else { panic!("three rows") };
    assert_eq!(first.agent.as_ref().map(|it| it.as_str()), Some("pm"));
    assert_eq!((first.message, first.turn, first.round), (Some(2), Some(3), Some(1)));
    assert_eq!(&*first.reply_text, "");
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
    assert_eq!((&*hands_over.reply_text, hands_over.calls.len()), ("One moment.", 1));
    assert_eq!(&*hands_over.calls[0].arguments, r#"{"agent_name":"back","message":"Look."}"#);
    assert_eq!((&last.agent, last.calls.len()), (&None, 0));
}

/// The texts are the source's, to the letter.
#[test]
fn team_name_errors_match_source() {
    judge(
        SWARM,
        r#"
- members = ["front", "back"]
+ members = []
8:11: error: agents.desk.members: members is empty (add the name of at least one agent)

- members = ["front", "back"]
6:9: error: agents.desk.members: members is empty (add the name of at least one agent)

- ["front", "back"]
+ ["front", "", "back"]
8:21: error: agents.desk.members[1]: member name is empty (write the name of an agent)

- ["front", "back"]
+ ["front", "back", "front"]
8:29: error: agents.desk.members[2]: duplicate member name "front" (remove one of the two)

- ["front", "back"]
+ ["front", "back office"]
8:21: error: agents.desk.members[1]: member name "back office" does not match ^[a-zA-Z0-9_-]+$ (use letters, digits, _ and -)

- entry = "front"
+ entry = ""
9:9: error: agents.desk.entry: entry member name is empty (write the name of an agent)

- entry = "front"
+ entry = "fron"
9:9: error: agents.desk.entry: entry member "fron" not found (did you mean `front`?)

- ["front", "back"]
+ ["front", "bak"]
8:21: error: agents.desk.members[1]: `bak` is not an agent of this scenario (did you mean `back`?)
"#,
    );
    judge(
        TEAM,
        r#"
- ["devs", "writer", "desk"]
+ ["devs", "writer", "desk", "pm"]
13:38: error: agents.pm.members[3]: member name "pm" conflicts with coordinator (the coordinator already has the name of its team)
"#,
    );
}

#[test]
fn reports_all_member_errors_together() {
    judge(
        TEAM,
        r#"
- ["devs", "writer", "desk"]
+ ["devs", "ghost", "", "writer", "desk", "pm", "devs", "spectre"]
13:20: error: agents.pm.members[1]: `ghost` is not an agent of this scenario (one of pm, devs, coder, writer, desk, front, back, bench)
13:29: error: agents.pm.members[2]: member name is empty (write the name of an agent)
13:51: error: agents.pm.members[5]: member name "pm" conflicts with coordinator (the coordinator already has the name of its team)
13:57: error: agents.pm.members[6]: duplicate member name "devs" (remove one of the two)
13:65: error: agents.pm.members[7]: `spectre` is not an agent of this scenario (one of pm, devs, coder, writer, desk, front, back, bench)
"#,
    );
    // The suggested entry is a member that can be one.
    judge(
        SWARM,
        r#"
- members = ["front", "back"]
- entry = "front"
+ members = ["front", "desk", "ghost", "back"]
+ entry = "zoe"
8:21: error: agents.desk.members[1]: `desk` is a swarm and cannot be a member of a swarm (only model agents can; teams and swarms can be members of a coordinator)
8:29: error: agents.desk.members[2]: `ghost` is not an agent of this scenario (one of desk, front, back)
9:9: error: agents.desk.entry: entry member "zoe" not found (one of front, back)
"#,
    );
}

#[test]
fn misplaced_agent_limit_suggests_agent() {
    let keys = |pattern: &str, key: &str| {
        pattern.replacen("[agents.", &format!("[budget]\n{key}\n[agents."), 1)
    };
    for (key, whose) in [
        ("max_handoffs = 3", "the swarm's agent"),
        ("node_timeout_s = 3", "the swarm's agent"),
        ("parallel_tools = true", "the coordinator's agent"),
        ("max_tool_rounds = 3", "an agent"),
        ("entry = \"front\"", "an agent"),
    ] {
        let name = key.split(' ').next().expect("a key");
        for text in [TEAM, SWARM] {
            let told = told(&keys(text, key));
            let [told] = told.as_slice() else { panic!("{key}: {told:#?}") };
            let end = format!(
                "error: budget.{name}: `{name}` is not a limit of the run (move it to {whose}: [agents.NAME])"
            );
            assert!(told.ends_with(&end), "{told}");
        }
    }
    let [told] = &told(&keys(SWARM, "max_hands = 3"))[..] else { panic!("one mistake") };
    assert!(told.contains("unknown key `max_hands`"), "{told}");
}

#[test]
fn swarm_members_are_model_agents() {
    judge(
        TEAM,
        r#"
- members = ["front", "back"]
+ members = ["front", "devs"]
32:21: error: agents.desk.members[1]: `devs` is a coordinator team and cannot be a member of a swarm (only model agents can; teams and swarms can be members of a coordinator)

- members = ["coder"]
+ members = ["coder", "pm"]
24:21: error: agents.devs.members[1]: `pm` contains itself: pm > devs > pm (a team cannot have itself as a member)

- members = ["coder"]
+ members = ["coder", "desk"]
"#,
    );
    let towers = |deep: usize| {
        let teams = (1..=deep).map(|at| {
            let inner = if at == deep { "coder".to_owned() } else { format!("t{}", at + 1) };
            format!("[agents.t{at}]\ndescription = \"T\"\nmembers = [\"{inner}\"]\n")
        });
        TEAM.replace(r#"members = ["coder"]"#, r#"members = ["t1"]"#)
            .replace("[tools.tickets]", &(teams.collect::<String>() + "[tools.tickets]"))
    };
    // The root and its member stand above them.
    assert_eq!(told(&towers(14)), Vec::<String>::new());
    assert_eq!(
        told(&towers(15)),
        ["10:9: error: agents.pm: teams are nested 17 deep here (at most 16)"]
    );
}

#[test]
fn agent_keys_determine_its_kind() {
    judge(
        SWARM,
        r#"
- entry = "front"
+ entry = "front"
+ instruction = "Hi."
10:15: error: agents.desk.instruction: a swarm has no `instruction` (set it on the members, which call the model)

- entry = "front"
+ entry = "front"
+ tools = []
10:9: error: agents.desk.tools: a swarm has no `tools` (set it on the members, which call the model)

- entry = "front"
+ entry = "front"
+ parallel_tools = true
10:18: error: agents.desk.parallel_tools: a swarm has no `parallel_tools` (remove it: a swarm has no coordinator)

- description = "Greets"
+ description = "Greets"
+ max_handoffs = 3
12:16: error: agents.front.max_handoffs: a model agent has no `max_handoffs` (add `members` and `entry`, or remove it)

- description = "Greets"
+ description = "Greets"
+ member_tools = {}
12:16: error: agents.front.member_tools: a model agent has no `member_tools` (add `members`, or remove it)

- entry = "front"
+ max_rejections = 3
5:8: error: swarm.root: `desk` is a coordinator team (the root of a swarm has `members` and `entry`)
9:18: error: agents.desk.max_rejections: a coordinator team has no `max_rejections` (add `entry`, or remove it)

- entry = "front"
+ entry = 3
9:9: error: agents.desk.entry: expected a string, found the number 3

- entry = "front"
+ entry = "front"
+ max_handoffs = -1
10:16: error: agents.desk.max_handoffs: -1 is out of range (0 to 1000000)

- entry = "front"
+ entry = "front"
+ repetitive_handoff_window = -1
10:29: error: agents.desk.repetitive_handoff_window: -1 is out of range (0 to 10000)

- entry = "front"
+ entry = "front"
+ repetitive_handoff_min_unique = -1
10:33: error: agents.desk.repetitive_handoff_min_unique: -1 is out of range (0 to 10000)

- entry = "front"
+ entry = "front"
+ max_rejections = -1
10:18: error: agents.desk.max_rejections: -1 is out of range (0 to 10000)

- entry = "front"
+ entry = "front"
+ node_timeout_s = -1
10:18: error: agents.desk.node_timeout_s: -1 is out of range (0 to 86400)

- description = "Greets"
+ max_tool_rounds = -1
10:1: error: agents.front.description: `description` is missing (What it does, shown to the operator and to the agents that may consult it or hand over to it.)
11:19: error: agents.front.max_tool_rounds: -1 is out of range (1 to 10000)

- entry = "front"
+ entry = "front"
+ handoff_input = "{form}: {message}"
10:18: error: agents.desk.handoff_input: `{form}` is not a placeholder of a handoff (did you mean `from`?)

- entry = "front"
+ entry = "front"
+ handoff_input = '{"a": {message}}'
"#,
    );
    judge(
        TEAM,
        r#"
- inner_text = "exclude"
+ inner_text = "exlude"
19:14: error: agents.pm.member_tools.inner_text: `exlude` is not allowed here (did you mean `exclude`?)

- history_scope = "isolated"
+ history_scope = "all"
20:17: error: agents.pm.member_tools.history_scope: `all` is not allowed here (one of parent_branch, isolated)

- "{{parallel}}"
+ "{{what}}"
16:18: error: agents.pm.parallel_tools: this is not a boolean (write true, false, or "{{input}}" with a boolean input)

- "{{parallel}}"
+ 1
16:18: error: agents.pm.parallel_tools: expected true, false, or "{{input}}", found the number 1
"#,
    );
}

#[test]
fn root_matches_pattern() {
    judge(
        SWARM,
        r#"
- root = "desk"
+ root = "front"
5:8: error: swarm.root: `front` is a model agent (the root of a swarm has `members` and `entry`)

- root = "desk"
+ root = "dsk"
5:8: error: swarm.root: `dsk` is not an agent of this scenario (did you mean `desk`?)

- root = "desk"
4:1: error: swarm.root: `root` is missing (The agent that the user talks to: of a team a coordinator (an agent with members), of a swarm an agent with members and an entry.)

- entry = "front"
5:8: error: swarm.root: `desk` is a coordinator team (the root of a swarm has `members` and `entry`)

- pattern = "swarm"
+ pattern = "team"
1:1: error: team.root: `root` is missing (The agent that the user talks to: of a team a coordinator (an agent with members), of a swarm an agent with members and an entry.)
4:2: error: swarm: `swarm` belongs to the pattern swarm (this scenario has pattern = "team")

- [swarm]
+ [budget]
+ max_rounds = 3
+ [swarm]
5:1: error: budget.max_rounds: `max_rounds` belongs to the pattern collaboration (this scenario has pattern = "swarm")

- [swarm]
+ [team]
+ root = "desk"
+ [swarm]
4:2: error: team: `team` belongs to the pattern team (this scenario has pattern = "swarm")

- [swarm]
+ [roles]
+ [swarm]
4:2: error: roles: `roles` belongs to the pattern collaboration (this scenario has pattern = "swarm")
"#,
    );
    judge(
        TEAM,
        r#"
- root = "pm"
+ root = "desk"
8:8: error: team.root: `desk` is a swarm (the root of a team has `members` and no `entry`)

- root = "pm"
+ root = "devs"
10:9: warning: agents.pm: `pm` is not a member of any team (name it in the `members` of an agent)
55:8: warning: tools.devs: `devs` is never called (only the user talks to the root agent)
"#,
    );
}

#[test]
fn warns_of_useless_settings() {
    judge(
        SWARM,
        r#"
- entry = "front"
+ entry = "front"
+ repetitive_handoff_window = 2
+ repetitive_handoff_min_unique = 3
11:33: warning: agents.desk.repetitive_handoff_min_unique: 2 targets cannot have 3 different names: every handoff is refused once the window is full (set it to at most the window, or 0 for no check)

- entry = "front"
+ entry = "front"
+ repetitive_handoff_window = 2
10:29: warning: agents.desk.repetitive_handoff_window: 2 targets cannot have 3 different names: every handoff is refused once the window is full (set it to at least `repetitive_handoff_min_unique` (3), or 0 for no check)

- entry = "front"
+ entry = "front"
+ repetitive_handoff_window = 2
+ repetitive_handoff_min_unique = 2

- entry = "front"
+ entry = "front"
+ repetitive_handoff_window = 2
+ repetitive_handoff_min_unique = 0
"#,
    );
    judge(
        TEAM,
        r#"
- [tools.writer]
+ [tools.writer]
+ safe_mode = { enabled = true, cache_ttl_s = 60, fallback = { a = 1 } }
58:45: warning: tools.writer.safe_mode.cache_ttl_s: replies of an agent are not cached (a reply depends on the conversation; set `fallback` instead)

- [tools.tickets]
+ [tools.tickets]
+ safe_mode = { enabled = true, cache_ttl_s = 60 }
"#,
    );
}

#[test]
fn warns_of_unreachable_agents() {
    judge(
        TEAM,
        r#"
- members = ["devs", "writer", "desk"]
+ members = ["devs", "desk"]

- members = ["devs", "writer", "desk"]
+ members = ["devs", "writer"]
30:9: warning: agents.desk: `desk` is not a member of any team (name it in the `members` of an agent)

- [[script]]
- text = "Done."
-
22:9: warning: agents.devs: `devs` has no scripted reply for offline runs (add a row in [[script]] for it)
25:9: warning: agents.coder: `coder` has no scripted reply for offline runs (add a row in [[script]] for it)
28:9: warning: agents.writer: `writer` has no scripted reply for offline runs (add a row in [[script]] for it)
44:9: warning: agents.back: `back` has no scripted reply for offline runs (add a row in [[script]] for it)
46:9: warning: agents.bench: `bench` has no scripted reply for offline runs (add a row in [[script]] for it)
"#,
    );
    let alone = "title = \"A\"\npattern = \"team\"\ngoal = \"G\"\n[team]\nroot = \"a\"\n\
                 [agents.a]\ndescription = \"A\"\nmembers = [\"b\"]\n[agents.b]\n\
                 description = \"B\"\n[agents.c]\ndescription = \"C\"\n[[script]]\ntext = \"Done.\"\n";
    let help = "name it in the `members` of an agent";
    let what = format!("11:9: warning: agents.c: `c` is not a member of any team ({help})");
    assert_eq!(told(alone), [what], "there is no swarm that it could join");
    let empty = "title = \"A\"\npattern = \"team\"\ngoal = \"G\"\n[team]\nroot = \"a\"\n";
    assert_eq!(
        told(empty),
        [
            "1:1: error: agents: there are no agents (add [agents.NAME])",
            "5:8: error: team.root: `a` is not an agent of this scenario (there are none)",
        ]
    );
}

#[test]
fn tool_and_agent_names_are_unique() {
    judge(
        TEAM,
        r#"
- tools = ["tickets"]
+ tools = ["ticket"]
14:10: error: agents.pm.tools[0]: `ticket` is not a tool of this scenario (did you mean `tickets`?)

- tools = ["tickets"]
+ tools = ["writer"]
14:10: error: agents.pm.tools[0]: `writer` is an agent, not a tool (name it in `members` instead)
67:12: warning: script[0].calls[1].tool: `pm` cannot call `tickets` (one of writer, devs, writer, desk)
68:12: warning: script[0].calls[2].tool: `pm` cannot call `tickets` (one of writer, devs, writer, desk)

- tools = ["tickets"]
+ tools = ["tickets", "tickets"]
14:21: error: agents.pm.tools[1]: `tickets` is listed twice (remove one of the two)

- tools = ["tickets", "build"]
+ tools = ["tickets"]
52:8: warning: tools.build: `build` is never called (add it to the `tools` of an agent)

- http = { url = "https://ci.example/builds" }
52:8: warning: tools.build: `build` has no implementation (add one of fixture, http, command and mcp)

- description = "Finds tickets of {{what}}"
48:8: warning: tools.tickets: `tickets` has no description for agents (add `description`)

- https://ci.example/builds
+ https://ci.example/{branch}
54:36: error: tools.build.http.url: `{branch}` is not an argument of this tool (there are none)

- limit = { type = "integer", minimum = 1 }
+ limit = 3
50:58: error: tools.tickets.args.limit: expected a string or a table, found the number 3

- [tools.devs]
- timeout_s = 20
+ [tools.devs]
+ fixture = { rows = [{ result = {} }] }
56:11: error: tools.devs: `devs` is an agent and needs no implementation (remove it, or choose another name)

- [tools.devs]
- timeout_s = 20
+ [tools.devs]
+ description = "Builds"
56:15: error: tools.devs.description: `devs` is an agent and has no `description` here (move it to [agents])

- [tools.devs]
+ [tools.pm]
55:8: warning: tools.pm: `pm` is never called (only the user talks to the root agent)

- [agents.bench]
+ [agents.llm]
46:9: error: agents.llm: `llm` is reserved for calls of the model (choose another name)

- [agents.bench]
+ [agents.transfer_to_agent]
46:9: error: agents.transfer_to_agent: `transfer_to_agent` is reserved for the tool that hands over (choose another name)

- [tools.devs]
+ [tools.transfer_to_agent]
55:8: error: tools.transfer_to_agent: `transfer_to_agent` is reserved for the tool that hands over (choose another name)

- [agents.bench]
+ [agents."the bench"]
46:9: error: agents.the bench: `the bench` is not a valid name (use letters, digits, _ and -, at most 64)
"#,
    );
}

#[test]
fn agent_rows_are_checked() {
    judge(
        TEAM,
        r#"
- agent = "front"
+ agent = "fron"
71:9: error: script[1].agent: `fron` is not an agent of this scenario (did you mean `front`?)

- agent = "front"
+ agent = "desk"
71:9: error: script[1].agent: `desk` is a swarm and has no replies of its own (write the name of a member)

- agent = "front"
+ role = "front"
71:8: error: script[1].role: a team has agents, not roles (write agent = "NAME")

- agent = "front"
+ agent = "front"
+ step = "finalize"
72:8: error: script[1].step: a reply of an agent has no step (remove `step`)

- agent = "front"
+ agent = "front"
+ turn = 0
72:8: error: script[1].turn: 0 is out of range (1 to 100000)

- agent = "front"
+ agent = "front"
+ when = "role == 'front'"
72:9: error: script[1].when: `role` is not available in this condition (one of facts, inputs, goal, attempt, flags, agent, input, message, turn, round, results, handoffs, refused, from, members)

- agent = "front"
+ agent = "coder"
73:19: warning: script[1].calls[0].tool: `coder` cannot call `transfer_to_agent` (one of tickets, build)

- agent = "front"
+ agent = "devs"
73:19: warning: script[1].calls[0].tool: `devs` cannot call `transfer_to_agent` (the only one is coder)

- agent = "front"
-
73:1: warning: script[2]: this row can never be used (script[1] comes first and matches every call of this row)

- agent_name = "back"
+ agent_name = "bck"
73:19: warning: script[1].calls[0].args: there is no agent "bck" to hand over to (did you mean `back`?)

- { tool = "tickets" }
+ { tool = "ticket" }
68:12: warning: script[0].calls[2].tool: `pm` cannot call `ticket` (did you mean `tickets`?)

- { tool = "tickets" }
+ { tool = "tickets", raw = "1", args = {} }
68:3: error: script[0].calls[2]: the call has two sets of arguments (keep one of `args` and `raw`)

- { tool = "tickets" }
+ { }
68:3: error: script[0].calls[2].tool: `tool` is missing (Name of the tool: a tool's, a consulted member's, or transfer_to_agent.)

- text = "Done."
74:1: error: script[2]: the row has no reply (write one of `reply`, `raw` and `text`, or `calls`)

- text = "Done."
+ calls = []
75:9: error: script[2].calls: the list is empty (at least 1)

- text = "One moment."
+ text = "One moment."
+ raw = "Two."
70:1: error: script[1]: the row has more than one reply (keep one of `reply`, `raw` and `text`)

- text = "Done."
+ text = "Done."
+ [[script]]
+ agent = "pm"
+ text = "More."
76:1: warning: script[3]: this row can never be used (script[2] comes first and matches every call of this row)
"#,
    );
}
