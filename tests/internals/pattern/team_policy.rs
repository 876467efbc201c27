//! The rules of the teams source document as tables: the limits of a swarm, names, arguments of calls.

use std::sync::Arc;

use crate::base::name::AgentName;
use crate::log::facts::agents::HandoffRefusal;
use crate::pattern::agents::policy::{
    HandoffLimiter, RepeatDetector, Transfer, arguments, handoff_input, is_written_call,
    member_request, parse_transfer,
};
use crate::scenario::patterns::agents::{SwarmLimits, check_names};
use crate::scenario::spec::handoff_template::HandoffTemplate;
use crate::scenario::spec::tool::{ToolCall, ToolOffer};
use crate::support::vectors;
use proptest::prelude::*;
use serde_json::Value;

fn ask(limiter: &mut HandoffLimiter, to: &str) -> String {
    limiter
        .check_handoff(&AgentName::from(to))
        .map_or_else(|why| why.to_string(), |()| "ok".to_owned())
}

/// A limit of the table; the source takes a negative one for off, which a scenario cannot say.
fn limit(limits: &Value, name: &str) -> u32 {
    u32::try_from(limits[name].as_i64().expect("a number")).unwrap_or(0)
}

#[test]
fn handoff_limits_follow_source_order() {
    let (_, cases) = vectors::table(include_str!("../../vectors/swarm_limits.json"));
    assert_eq!(cases.len(), 60);
    for case in cases {
        let limits = &case["limits"];
        let mut limiter = HandoffLimiter::new(SwarmLimits {
            max_handoffs: limit(limits, "max_handoffs"),
            repetitive_handoff_window: limit(limits, "repetitive_handoff_window"),
            repetitive_handoff_min_unique: limit(limits, "repetitive_handoff_min_unique"),
        });
        let targets = case["targets"].as_array().expect("targets");
        let results: Vec<Value> = targets
            .iter()
            .map(|to| ask(&mut limiter, to.as_str().expect("a name")).into())
            .collect();
        assert_eq!(Value::from(results), case["results"], "{}", case["name"]);
        assert_eq!(limiter.guard().handoffs, case["handoffs_after"], "{}", case["name"]);
        let window: Vec<&str> = limiter.window().map(AgentName::as_str).collect();
        assert_eq!(serde_json::json!(window), case["window_after"], "{}", case["name"]);
    }
}

proptest! {
    #[test]
    fn limits_match_plain_reference(
        max in 0_u32..12, window in 0_u32..6, unique in 0_u32..5,
        targets in prop::collection::vec("[a-d]", 0..40),
    ) {
        let limits = SwarmLimits {
            max_handoffs: max,
            repetitive_handoff_window: window,
            repetitive_handoff_min_unique: unique,
        };
        let mut limiter = HandoffLimiter::new(limits);
        // All targets that came to the window, the whole of them.
        let mut seen: Vec<&str> = Vec::new();
        for (place, to) in targets.iter().enumerate() {
            let count = place as u32 + 1;
            let expected = if max > 0 && count > max {
                Err(HandoffRefusal::MaxHandoffs(max))
            } else if window > 0 && unique > 0 {
                seen.push(to);
                let last = &seen[seen.len().saturating_sub(window as usize)..];
                let mut names = last.to_vec();
                names.sort_unstable();
                names.dedup();
                if last.len() == window as usize && names.len() < unique as usize {
                    Err(HandoffRefusal::Repetitive)
                } else {
                    Ok(())
                }
            } else {
                Ok(())
            };
            prop_assert_eq!(limiter.check_handoff(&AgentName::from(to.as_str())), expected);
            prop_assert_eq!(limiter.guard().handoffs, count);
        }
    }
}

#[test]
fn refused_names_are_reported() {
    type Case<'c> = (Option<&'c str>, Option<&'c str>, &'c [&'c str], &'c str);
    let table: [Case<'_>; 9] = [
        (Some("t"), None, &[], "members is empty"),
        (None, Some("a"), &[], "members is empty"),
        (Some("t"), None, &["a", ""], "member name is empty"),
        (Some("t"), None, &["a", "t"], "member name \"t\" conflicts with coordinator"),
        (Some("t"), None, &["a", "b", "a"], "duplicate member name \"a\""),
        (None, Some(""), &["a"], "entry member name is empty"),
        (None, Some("z"), &["a", "b"], "entry member \"z\" not found"),
        (Some("t"), None, &["a b"], "member name \"a b\" does not match ^[a-zA-Z0-9_-]+$"),
        (Some("t"), None, &["größe"], "member name \"größe\" does not match ^[a-zA-Z0-9_-]+$"),
    ];
    for (coordinator, entry, members, text) in table {
        let fault = check_names(coordinator, entry, members).expect_err(text);
        assert_eq!(fault.to_string(), text);
    }
    assert_eq!(check_names(Some("t"), None, &["A-1", "b_2"]), Ok(()));
    assert_eq!(check_names(None, Some("b"), &["a", "b"]), Ok(()));
}

fn call(name: &str, said: &str) -> ToolCall {
    ToolCall { id: "1".into(), name: name.into(), arguments: said.into() }
}

#[test]
fn third_identical_call_is_stuck() {
    let calls = |said: &[(&str, &str)]| -> Vec<bool> {
        let mut repeats = RepeatDetector::default();
        said.iter().map(|(name, said)| repeats.is_stuck(&call(name, said))).collect()
    };
    assert_eq!(calls(&[("x", "{}"), ("x", "{}"), ("x", "{}")]), [false, false, true]);
    // The same in other words: arguments are compared as values.
    let same =
        [("x", r#"{"a":1,"b":2}"#), ("x", r#"{ "b": 2, "a": 1 }"#), ("x", r#"{"a":1,"b":2}"#)];
    assert_eq!(calls(&same), [false, false, true]);
    assert_eq!(calls(&[("x", "{}"), ("y", "{}"), ("x", "{}"), ("x", "{}")]), [false; 4]);
    assert_eq!(calls(&[("x", "{}"), ("x", r#"{"a":1}"#), ("x", "{}")]), [false; 3]);
    assert_eq!(calls(&[("x", "no"), ("x", "no"), ("x", "no")]), [false, false, true]);
}

#[test]
fn call_arguments_must_be_object() {
    assert!(arguments(&call("x", " ")).expect("nothing is an empty object").is_empty());
    assert_eq!(arguments(&call("x", r#"{"a":1}"#)).expect("an object")["a"], 1);
    assert_eq!(
        arguments(&call("x", "[1]")),
        Err("the arguments of x are not a JSON object".into())
    );
    let text = arguments(&call("x", "{a")).expect_err("no JSON");
    assert!(text.starts_with("the arguments of x are not JSON: "), "{text}");
    assert_eq!(member_request(&call("m", r#"{"request":"go"}"#)).as_deref(), Ok("go"));
    assert_eq!(member_request(&call("m", "{}")), Err("`request` of m is missing".into()));
    assert_eq!(
        member_request(&call("m", r#"{"request":1}"#)),
        Err("`request` of m is not a text".into())
    );
}

#[test]
fn transfer_names_target_and_optional_message() {
    let to = |said| parse_transfer(&call("transfer_to_agent", said));
    let b = |message: Option<&str>| Transfer { to: "b".into(), message: message.map(Arc::from) };
    assert_eq!(to(r#"{"agent_name":"b"}"#), Ok(b(None)));
    assert_eq!(to(r#"{"agent_name":"b","message":null}"#), Ok(b(None)));
    assert_eq!(to(r#"{"agent_name":"b","message":" "}"#), Ok(b(None)));
    assert_eq!(to(r#"{"agent_name":"b","message":"go"}"#), Ok(b(Some("go"))));
    assert!(to("{}").is_err() && to(r#"{"agent_name":2}"#).is_err());
    assert!(to(r#"{"agent_name":"b","message":[]}"#).is_err());
}

#[test]
fn target_input_uses_template_or_message() {
    let (parent, message): (Arc<str>, Arc<str>) = ("parent".into(), "{to} {root_input}".into());
    let (a, b) = (AgentName::from("a"), AgentName::from("b"));
    let input = |template: Option<&str>, message| {
        handoff_input(
            template.map(HandoffTemplate::parse_template).as_ref(),
            "root",
            &parent,
            &a,
            &b,
            message,
        )
        .to_string()
    };
    assert_eq!(input(None, Some(&message)), "{to} {root_input}");
    assert_eq!(input(None, None), "parent");
    let all = "{root_input}|{parent_input}|{from}|{to}|{message}|{other}|{";
    // What an agent said is put in as it is, never read as a template.
    let filled = "root|parent|a|b|{to} {root_input}|{other}|{";
    assert_eq!(input(Some(all), Some(&message)), filled);
    assert_eq!(input(Some(all), None), "root|parent|a|b||{other}|{");
}

#[test]
fn a_reply_is_a_written_call() {
    let offered = [ToolOffer::bare("stock"), ToolOffer::bare("transfer_to_agent")];
    let json = r#"{"name": "stock", "arguments": {"item": "x"}}"#;
    let written = [
        format!("<tool_call>\n{json}\n</tool_call>"),
        format!("<tool_call>{json}</tool_call>\n<tool_call>{json}</tool_call>"),
        format!("<tool_call>{json}"),
        "<tool_call>stock\n<arg_key>item</arg_key>\n<arg_value>x</arg_value>\n</tool_call>".to_owned(),
        "<think>I must look.</think>\n\n<function=stock>{\"item\": \"x\"}</function>".to_owned(),
        "<function=stock><parameter=item>x</parameter></function>".to_owned(),
        format!("<|tool_call|>[{json}]"),
        format!("<|python_tag|>{json}"),
        format!("[TOOL_CALLS][{json}]"),
        "[TOOL_CALLS]stock[ARGS]{\"item\": \"x\"}".to_owned(),
        "<|channel|>commentary to=functions.stock <|constrain|>json<|message|>{\"item\":\"x\"}<|call|>".to_owned(),
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.stock:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>".to_owned(),
        "```tool_code\nprint(stock(item=\"x\"))\n```".to_owned(),
        json.to_owned(),
        format!("```json\n{json}\n```"),
        format!("```\n[{json}]\n```"),
        r#"{"type": "function", "function": {"name": "stock", "parameters": {}}}"#.to_owned(),
        format!(r#"{{"tool_calls": [{json}]}}"#),
        r#"{"tool": "stock", "args": {"item": "x"}}"#.to_owned(),
        "stock(item=\"x (y)\")".to_owned(),
        "[transfer_to_agent(agent_name='billing')]".to_owned(),
    ];
    for text in written {
        assert!(is_written_call(&text, &offered), "{text}");
        assert!(is_written_call(&format!("\n {text}\n"), &offered), "{text}");
        assert!(!is_written_call(&text, &[]), "an agent without tools: {text}");
        // A call on a line of its own at the end counts, whatever is said before it.
        let is_apart = ["\n<tool_call>", "\n<function="].iter().any(|open| text.contains(open));
        let said = format!("I call it: {text}");
        assert_eq!(is_written_call(&said, &offered), is_apart, "{text}");
        assert!(!is_written_call(&format!("{text} That is all."), &offered), "{text}");
    }
    let call = "<tool_call>\n{\"name\": \"stock\", \"arguments\": {}}\n</tool_call>";
    for text in [
        format!("I look it up.\n</think>\n\n{call}"),
        format!("Let me look that up.\n\n{call}"),
        format!("Two of them.\n{call}\n{call}"),
    ] {
        assert!(is_written_call(&text, &offered), "{text}");
    }
    for text in [
        "",
        "This is how:\n<tool_call>\n{\"name\": \"other\"}\n</tool_call>",
        "Seven.",
        "stock",
        "stock()s are things",
        "stock(x) or stock(y)",
        "Use <tool_call> to call.",
        "<tool_call> is how a call begins.",
        "<b>Seven.</b>",
        "[1]",
        "{}",
        "[]",
        r#"{"name": "stock"}"#,
        r#"{"name": "other", "arguments": {}}"#,
        r#"{"name": "stock", "arguments": {}, "comment": "as asked"}"#,
        r#"{"name": "Ann", "input": "x", "stock": 7}"#,
        "```json\n{\"items\": 7}\n```",
        "other(item='x')",
    ] {
        assert!(!is_written_call(text, &offered), "{text}");
    }
}
