//! What counts as a difference, and what does not.

use super::*;
use crate::log::event::Elapsed;

/// A log: each line has the span and the rest of an event.
fn log(lines: &[(u32, &str)]) -> Vec<Arc<Event>> {
    let read = |(at, (span, rest)): (usize, &(u32, &str))| {
        let line = format!(r#"{{"v":2,"seq":{at},"at_us":{},"span":{span},{rest}}}"#, at * 7);
        let event = Event::from_line(&line).expect("an event");
        assert!(!matches!(event.kind, EventKind::Unknown { .. }), "{line}");
        Arc::new(event)
    };
    lines.iter().enumerate().map(read).collect()
}

fn call(path: &str) -> String {
    format!(
        r#""kind":"call.started","parent":0,"tool":"llm","purpose":{{"purpose":"contribution","round":1,"seat":0,"role":"{path}"}},"prompt":{{"messages":[{{"role":"user","content":"say {path}"}}]}}"#
    )
}

fn answer(text: &str) -> String {
    format!(r#""kind":"attempt.answered","text":"{text}","latency_ms":{}"#, text.len())
}

const ATTEMPT: &str = r#""kind":"attempt.started","attempt":1,"timeout_ms":1000"#;

fn attempt(of: u32) -> String {
    format!(r#"{ATTEMPT},"parent":{of}"#)
}

/// Two calls at the same time, in this order of their replies.
fn parallel(first: (u32, &str, &str), second: (u32, &str, &str)) -> Vec<Arc<Event>> {
    let mut lines = Vec::new();
    for (span, path, _) in [first, second] {
        lines.push((span, call(path)));
        lines.push((span + 10, attempt(span)));
    }
    for (span, _, text) in [first, second] {
        lines.push((span + 10, answer(text)));
        lines.push((span, r#""kind":"call.answered","attempts":1"#.to_owned()));
    }
    let lines: Vec<(u32, &str)> = lines.iter().map(|(span, rest)| (*span, rest.as_str())).collect();
    log(&lines)
}

#[test]
fn ignores_call_order_ids_and_times() {
    let left = parallel((1, "risk", "stop"), (2, "demand", "go"));
    let mut right = parallel((5, "demand", "go"), (3, "risk", "stop"));
    for event in &mut right {
        *event = Arc::new(Event { at: Elapsed(event.at.0 + 5_000), ..(**event).clone() });
    }
    let found = compare(&left, &right);
    assert!(found.is_same(), "{found:#?}");
    assert_eq!(found.equal, 8);
}

#[test]
fn finds_different_reply_with_place() {
    let long = "the same words until here, then";
    let (one, other) = (format!("{long} go"), format!("{long} stop"));
    let left = parallel((1, "risk", "stop"), (2, "demand", &one));
    let right = parallel((1, "risk", "stop"), (2, "demand", &other));
    let found = compare(&left, &right);
    let [reply] = &found.differences[..] else { panic!("{found:#?}") };
    assert_eq!(reply.path, ["demand", "attempt 1"]);
    let [text] = &reply.fields[..] else { panic!("{reply:#?}") };
    assert_eq!(text.name, "text");
    assert_eq!(
        (text.left.as_str(), text.right.as_str()),
        ("… words until here, then go", "… words until here, then stop")
    );
    assert_eq!((found.equal, reply.left.is_some(), reply.right.is_some()), (7, true, true));
}

#[test]
fn one_sided_entries_come_first() {
    let flag = r#""kind":"flag.changed","flag":"legal","on":true,"by":"you","boundary":"round:2""#;
    let (round, refused) = (r#""kind":"warning","text":"a""#, r#""kind":"warning","text":"b""#);
    let found = compare(&log(&[(0, round)]), &log(&[(0, flag), (0, refused)]));
    let sides: Vec<_> =
        found.differences.iter().map(|it| (it.left.is_some(), it.right.is_some())).collect();
    assert_eq!(sides, [(false, true), (true, true)]);
    let mirrored = compare(&log(&[(0, flag), (0, refused)]), &log(&[(0, round)]));
    assert!(mirrored.differences[0].left.is_some() && mirrored.differences[0].right.is_none());
    let none = compare(&[], &log(&[(0, round)]));
    assert_eq!((none.equal, none.differences.len()), (0, 1));
}

#[test]
fn long_span_path_keeps_its_end() {
    let nested = |last: &str| {
        let attempt = |span: u32| (span, attempt(span - 1));
        let mut lines: Vec<_> = (1..20_000).map(attempt).collect();
        lines.push((19_999, answer(last)));
        let lines: Vec<_> = lines.iter().map(|(span, line)| (*span, &**line)).collect();
        log(&lines)
    };
    let found = compare(&nested("yes"), &nested("no"));
    assert_eq!((found.equal, found.differences.len()), (19_999, 1));
    let path = &found.differences[0].path;
    assert_eq!((path.len(), &*path[0], &*path[32]), (33, "…", "attempt 1"));
}
