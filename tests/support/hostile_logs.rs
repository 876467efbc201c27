//! Logs from elsewhere that no run has written, made from one that a run has.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::binary::Home;

/// A log from elsewhere.
pub struct HostileLog {
    /// The name of its fault.
    pub name: &'static str,
    /// The content of its file.
    pub bytes: Vec<u8>,
    /// What `import` says; `None`: it takes the log as it is.
    pub import: Option<&'static str>,
    /// What `resume` says of it then.
    pub resume: &'static str,
}

/// The lines of a run: its head, its events, and its last event.
struct Lines {
    head: Value,
    events: Vec<Value>,
    end: Value,
}

const OTHER: &str = "but the run has round.started there";
const HAS_ENDED: &str = "there is nothing to continue";
const NO_SPAN: &str = "cannot be continued\n  cause: event 1 belongs to no span of the run";

/// Hostile logs, those with many spans with so many, and one with a text of so many words.
pub fn hostile_logs(spans: u32, words: usize) -> Vec<HostileLog> {
    let args = ["run", "checkout-unanimous", "--instant", "--no-store", "--format", "jsonl"];
    let mut lines = Home::new().run(&args).lines();
    lines.pop().expect("an outcome");
    let end = lines.pop().expect("an end");
    let head = lines.remove(0);
    let lines = Lines { head, events: lines, end };
    let log = |name, bytes, import, resume| HostileLog { name, bytes, import, resume };
    let mut logs = vec![
        log("siblings", lines.spans(spans, |_| 0), None, OTHER),
        log("nested", lines.spans(spans, |span| span - 1), None, OTHER),
        log("cycles", lines.cycles(), None, NO_SPAN),
        log("no parents", lines.spans(50, |span| span + 1_000), None, NO_SPAN),
        log("warnings", lines.warnings(spans), None, "warning: w"),
        log("huge text", lines.huge(words), None, HAS_ENDED),
    ];
    let mut shuffled: Vec<&Value> = lines.events.iter().collect();
    shuffled.reverse();
    logs.push(log("backwards", lines.of(shuffled, false), Some("has the number"), NO_SPAN));
    let twice = lines.events.iter().flat_map(|line| [line, line]).collect();
    logs.push(log("doubled", lines.of(twice, true), Some("has the number 1, not 2"), HAS_ENDED));
    let largest = |field: &str| {
        let change = |line: &Value| with(line, field, u64::MAX.into());
        let events: Vec<Value> = lines.events.iter().map(change).collect();
        lines.of(events.iter().collect(), true)
    };
    let numbers = Some("has the number 18446744073709551615, not 1");
    logs.push(log("largest numbers", largest("seq"), numbers, HAS_ENDED));
    logs.push(log("largest times", largest("at_us"), None, HAS_ENDED));
    logs.push(log("largest timeouts", largest("timeout_ms"), None, HAS_ENDED));
    let refused = [
        ("largest spans", largest("span"), "expected u32"),
        ("nothing", Vec::new(), "does not begin with run.started"),
        ("no head", lines_of([&lines.end]), "does not begin with run.started"),
        ("two runs", lines_of([&lines.head, &lines.head]), "a second run begins here"),
        ("depth", lines.deep(), "recursion limit exceeded"),
        ("no text", [vec![0xff; 100_000], vec![b'\n']].concat(), "invalid utf-8"),
    ];
    let whole = packed(&lines.of(lines.events.iter().collect(), true));
    let cut = whole[..whole.len() / 8].to_vec();
    // Each packed part is a thousandth of what it becomes.
    let long =
        [packed(&lines_of([&lines.head])), packed(&vec![b'x'; 1 << 20]).repeat(200)].concat();
    let empty = [packed(&lines_of([&lines.head])), packed(&[b'\n'; 1 << 20]).repeat(200)].concat();
    let packed = [
        ("cut off", cut, "cut off in its first line"),
        ("a line without end", long, "its line is longer than 67108864 bytes"),
        ("lines without end", empty, "the log is too long: at most 5000000 lines"),
    ];
    let refused = refused.into_iter().chain(packed);
    logs.extend(refused.map(|(name, bytes, says)| log(name, bytes, Some(says), "")));
    logs
}

impl Lines {
    /// The head, these events, and the end.
    fn of(&self, events: Vec<&Value>, ended: bool) -> Vec<u8> {
        let end = ended.then_some(&self.end);
        lines_of([&self.head].into_iter().chain(events).chain(end))
    }

    fn first(&self, kind: &str) -> &Value {
        self.events.iter().find(|line| line["kind"] == kind).expect("an event of this kind")
    }

    /// Calls that never end, within the span that this says.
    fn spans(&self, spans: u32, parent: impl Fn(u32) -> u32) -> Vec<u8> {
        let prompt = json!({ "messages": [{ "role": "user", "content": "Say yes." }] });
        let call = with(self.first("call.started"), "prompt", prompt);
        let calls: Vec<Value> = (1..=spans).map(|span| opens(&call, span, parent(span))).collect();
        self.of(calls.iter().collect(), false)
    }

    /// Spans that are within themselves, and prompts that continue themselves.
    fn cycles(&self) -> Vec<u8> {
        let prompt = |after: u32| json!({ "after": after, "messages": [] });
        let call = |span, after, parent| {
            opens(&with(self.first("call.started"), "prompt", prompt(after)), span, parent)
        };
        let attempt = |span, parent| opens(self.first("attempt.started"), span, parent);
        let answer = |span: u32| with(self.first("attempt.answered"), "span", span.into());
        let events = [
            call(1, 2, 2),
            call(2, 1, 1),
            call(3, 3, 3),
            attempt(4, 5),
            attempt(5, 4),
            attempt(6, 6),
            attempt(7, 1),
            answer(4),
            answer(6),
            answer(7),
        ];
        let number = |(at, line): (usize, &Value)| with(line, "seq", (at + 1).into());
        let events: Vec<Value> = events.iter().enumerate().map(number).collect();
        self.of(events.iter().collect(), false)
    }

    fn warnings(&self, warnings: u32) -> Vec<u8> {
        let warning = |at: u32| json!({ "v": 2, "seq": at, "at_us": at, "span": 0, "kind": "warning", "text": "w" });
        let warnings: Vec<Value> = (1..=warnings).map(warning).collect();
        self.of(warnings.iter().collect(), false)
    }

    /// A reply of so many words.
    fn huge(&self, words: usize) -> Vec<u8> {
        let mut events = self.events.clone();
        let reply = events.iter_mut().find(|line| line["kind"] == "attempt.answered");
        reply.expect("a reply")["text"] = "word ".repeat(words).into();
        self.of(events.iter().collect(), true)
    }

    /// Arguments of a tool that are nested 100,000 deep.
    fn deep(&self) -> Vec<u8> {
        let call = with(self.first("call.started"), "args", "@".into());
        let args = ["[".repeat(100_000), "]".repeat(100_000)].concat();
        let text = String::from_utf8(self.of(vec![&call], false)).expect("UTF-8");
        text.replace("\"@\"", &args).into_bytes()
    }
}

fn opens(line: &Value, span: u32, parent: u32) -> Value {
    let line = with(&with(line, "span", span.into()), "parent", parent.into());
    with(&with(&line, "seq", span.into()), "at_us", span.into())
}

/// The line with another value, where it has this field, or where each call may have it.
fn with(line: &Value, field: &str, value: Value) -> Value {
    let mut line = line.clone();
    if line.get(field).is_some() || field == "args" {
        line[field] = value;
    }
    line
}

fn lines_of<'a>(lines: impl IntoIterator<Item = &'a Value>) -> Vec<u8> {
    lines.into_iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("packed");
    encoder.finish().expect("packed")
}
