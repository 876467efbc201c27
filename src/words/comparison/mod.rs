//! Two runs compared: what they were started with, and where they first did something else. Events
//! are matched by what they belong to (the span's path and the place among its like), never by
//! numbers, ids or times, so it makes no difference which of two concurrent calls ended first.

pub mod runs;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::sentence::{model_text, sentence};
use crate::log::event::{Event, EventKind, RunStarted, SpanId, TextPart, World};
use crate::log::facts::observed::{ObservedFact, SpanAbout};
use crate::log::world::SpanKind;

/// Characters of a text that are shown before the place where it differs.
const CONTEXT_CHARS: usize = 24;

/// What two runs have in common, and what not.
#[derive(Clone, Debug, PartialEq)]
pub struct LogComparison {
    /// What they were started with, where that differs.
    pub setup: Vec<SetupDifference>,
    /// Events that are equal but for ids and times.
    pub equal: usize,
    /// The events that differ, the first one first.
    pub differences: Vec<EventDifference>,
}

/// A place of a comparison, in the order of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonRow {
    /// The thing at this place of the setup.
    Setup(usize),
    /// So many equal events one after the other.
    Equal(usize),
    Difference(usize),
}

impl LogComparison {
    /// Whether nothing differs but ids and times.
    pub fn is_same(&self) -> bool {
        self.setup.is_empty() && self.differences.is_empty()
    }

    /// Everything in order: the setup, then the differences with the equal events between them.
    pub fn rows(&self) -> Vec<ComparisonRow> {
        let mut rows: Vec<_> = (0..self.setup.len()).map(ComparisonRow::Setup).collect();
        let mut left = self.equal;
        for (at, difference) in self.differences.iter().enumerate() {
            let equal = difference.equal_before.min(left);
            left -= equal;
            rows.extend((equal > 0).then_some(ComparisonRow::Equal(equal)));
            rows.push(ComparisonRow::Difference(at));
        }
        rows.extend((left > 0).then_some(ComparisonRow::Equal(left)));
        rows
    }
}

/// An event that differs, or that one run alone has.
#[derive(Clone, Debug, PartialEq)]
pub struct EventDifference {
    /// What it belongs to, from the run inwards: `round 2`, `risk_analyst`, `attempt 1`.
    pub path: Vec<String>,
    /// The equal events between the previous difference and this one.
    pub equal_before: usize,
    /// The fields that differ; empty if one run alone has the event.
    pub fields: Vec<FieldDifference>,
    pub left: Option<DifferentEvent>,
    pub right: Option<DifferentEvent>,
}

/// A field of an event that differs: its first value that does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDifference {
    /// The path of the value: `prompt.messages[1].content`.
    pub name: String,
    /// The value of the left run as text, from shortly before the place where it differs; empty if it
    /// has none.
    pub left: String,
    pub right: String,
    /// The number of characters at the start of `left` and `right` that are equal.
    pub same: usize,
}

/// One side of a difference.
#[derive(Clone, Debug, PartialEq)]
pub struct DifferentEvent {
    pub event: Arc<Event>,
    /// Its line, as the list of events shows it.
    pub line: String,
}

/// Compares two logs.
pub fn compare(left: &[Arc<Event>], right: &[Arc<Event>]) -> LogComparison {
    let mut paths = SpanPaths::default();
    let [left, right] = [left, right].map(|events| ComparedLog::new(events, &mut paths));
    let mut equal: Vec<usize> = Vec::new();
    let mut found: Vec<(usize, EventDifference)> = Vec::new();
    for (place, (key, event)) in left.entries.iter().enumerate() {
        let Some(&other) = right.by_key.get(key) else {
            found.push((place, left.difference(&paths, place, None, Vec::new())));
            continue;
        };
        let fields = different_fields(event, &right.entries[other].1);
        // An event of one run alone that is at the same place of its log came before.
        let last = place.max(other);
        if fields.is_empty() {
            equal.push(last);
        } else {
            found.push((last, left.difference(&paths, place, Some((&right, other)), fields)));
        }
    }
    let pairs = found.len();
    for (place, (key, _)) in right.entries.iter().enumerate() {
        if !left.by_key.contains_key(key) {
            let only = right.difference(&paths, place, None, Vec::new());
            let only = EventDifference { left: None, right: only.left, ..only };
            found.push((place, only));
        }
    }
    // What happened first in either run comes first; what one run alone has, before what follows.
    found.rotate_left(pairs);
    found.sort_by_key(|(place, _)| *place);
    let setup = match (left.head(), right.head()) {
        (Some(left), Some(right)) => setup_differences(left, right),
        _ => Vec::new(),
    };
    equal.sort_unstable();
    let mut before = 0;
    let count_equal = |(place, difference): (usize, EventDifference)| {
        let until = equal.partition_point(|it| *it < place);
        let equal_before = until.saturating_sub(before);
        before = until;
        EventDifference { equal_before, ..difference }
    };
    let differences = found.into_iter().map(count_equal).collect();
    LogComparison { setup, equal: equal.len(), differences }
}

/// What an event is matched by: the path of its span, its kind, and its number among those.
type ComparedKey = (PathId, String, usize);

struct ComparedLog<'a> {
    events: &'a [Arc<Event>],
    entries: Vec<(ComparedKey, Arc<Event>)>,
    by_key: HashMap<ComparedKey, usize>,
    /// The line of each entry.
    lines: Vec<String>,
}

impl<'a> ComparedLog<'a> {
    fn new(events: &'a [Arc<Event>], paths: &mut SpanPaths) -> Self {
        let mut log =
            Self { events, entries: Vec::new(), by_key: HashMap::new(), lines: Vec::new() };
        let mut of_span: BTreeMap<SpanId, PathId> = BTreeMap::from([(SpanId::RUN, PathId::RUN)]);
        let path_of = |of_span: &BTreeMap<SpanId, PathId>, span: SpanId| {
            of_span.get(&span).copied().unwrap_or(PathId::RUN)
        };
        let mut seen: HashMap<(PathId, String), usize> = HashMap::new();
        let mut opened: HashMap<(PathId, String), usize> = HashMap::new();
        let mut world = World::new();
        let observed = observed_spans(events);
        for event in events {
            world.apply(event);
            // A span of another program may be reported several times.
            let is_again = observed.contains_key(&event.span) && of_span.contains_key(&event.span);
            let opens = event.kind.opens().filter(|_| event.span != SpanId::RUN && !is_again);
            if let Some((parent, kind)) = opens {
                let (parent, name) = match observed.get(&event.span) {
                    Some((parent, name)) => (*parent, name.clone()),
                    None => (parent, span_name(&kind)),
                };
                let outer = path_of(&of_span, parent);
                let nth = opened.entry((outer, name.clone())).or_default();
                *nth += 1;
                let name = if *nth == 1 { name } else { format!("{name} ({nth})") };
                of_span.insert(event.span, paths.within(outer, name));
            }
            if is_about_the_log(&event.kind) {
                continue;
            }
            let path = path_of(&of_span, event.span);
            let name = matched_name(&event.kind);
            let nth = seen.entry((path, name.clone())).or_default();
            let key = (path, name, *nth);
            *nth += 1;
            log.by_key.insert(key.clone(), log.entries.len());
            log.entries.push((key, Arc::clone(event)));
            log.lines.push(sentence(event, &world).line());
        }
        log
    }

    fn head(&self) -> Option<&'a RunStarted> {
        self.events.iter().find_map(|event| match &event.kind {
            EventKind::RunStarted(head) => Some(&**head),
            _ => None,
        })
    }

    fn side(&self, place: usize) -> Option<DifferentEvent> {
        let (event, line) = (&self.entries.get(place)?.1, self.lines.get(place)?);
        Some(DifferentEvent { event: Arc::clone(event), line: line.clone() })
    }

    fn difference(
        &self,
        paths: &SpanPaths,
        place: usize,
        other: Option<(&ComparedLog<'_>, usize)>,
        fields: Vec<FieldDifference>,
    ) -> EventDifference {
        let path = self.entries.get(place).map(|((path, ..), _)| paths.names(*path));
        EventDifference {
            path: path.unwrap_or_default(),
            equal_before: 0,
            fields,
            left: self.side(place),
            right: other.and_then(|(log, place)| log.side(place)),
        }
    }
}

/// The spans of another program: the span around each and the words for it, as they are known at the end.
/// Parents are often reported after their children.
fn observed_spans(events: &[Arc<Event>]) -> BTreeMap<SpanId, (SpanId, String)> {
    let mut known: BTreeMap<SpanId, (SpanId, SpanAbout)> = BTreeMap::new();
    for event in events {
        match ObservedFact::of(&event.kind) {
            Some(ObservedFact::Opened { parent, about, .. }) => {
                let span = known.entry(event.span).or_default();
                span.0 = *parent;
                span.1.add(about);
            }
            Some(ObservedFact::Closed { about, .. }) => {
                known.entry(event.span).or_default().1.add(about);
            }
            _ => {}
        }
    }
    let name = |about: SpanAbout| format!("{} {}", about.role.word(), about.name);
    known.into_iter().map(|(id, (parent, about))| (id, (parent, name(about)))).collect()
}

/// The words for a span in a path.
fn span_name(kind: &SpanKind) -> String {
    match kind {
        SpanKind::Run => "run".to_owned(),
        SpanKind::Round(round) => format!("round {round}"),
        SpanKind::Task { index } => format!("task {}", index.saturating_add(1)),
        SpanKind::Source(number) => format!("source {}", number.0),
        SpanKind::Call(purpose) => purpose.label().into_owned(),
        SpanKind::Attempt(number) => format!("attempt {number}"),
        SpanKind::Observed(role) => role.word().to_owned(),
    }
}

/// The kind of an event, with what tells it from others of its kind on the same span.
fn matched_name(kind: &EventKind) -> String {
    let name = kind.name();
    match kind {
        EventKind::BreakerChanged { tool, .. }
        | EventKind::LimitsChanged { tool, .. }
        | EventKind::FaultInjected { tool, .. }
        | EventKind::FaultRemoved { tool, .. } => format!("{name} {tool}"),
        EventKind::FlagChanged { flag, .. } => format!("{name} {flag}"),
        _ => name.to_owned(),
    }
}

/// The head is compared field by field, and events about the log itself say nothing of the run.
fn is_about_the_log(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::RunStarted(_)
            | EventKind::RunResumed { .. }
            | EventKind::RunForked { .. }
            | EventKind::CommandTaken { .. }
            | EventKind::EventsDropped { .. }
    )
}

/// The fields of two events that differ, ids and times aside.
fn different_fields(left: &Event, right: &Event) -> Vec<FieldDifference> {
    if left.kind == right.kind {
        return Vec::new();
    }
    let (left, right) = (fields_of(left), fields_of(right));
    let names = left.keys().chain(right.keys().filter(|key| !left.contains_key(*key)));
    names.filter_map(|key| first_difference(key.clone(), left.get(key), right.get(key))).collect()
}

/// The first value within a field that differs.
fn first_difference(
    name: String,
    left: Option<&Value>,
    right: Option<&Value>,
) -> Option<FieldDifference> {
    match (left, right) {
        (left, right) if left == right => None,
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let names = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
            names.into_iter().find_map(|key| {
                first_difference(format!("{name}.{key}"), one.get(key), other.get(key))
            })
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => (0..one.len().max(other.len()))
            .find_map(|at| first_difference(format!("{name}[{at}]"), one.get(at), other.get(at))),
        (left, right) => {
            let text = |value: Option<&Value>| value.map(plain_text).unwrap_or_default();
            let (left, right) = (text(left), text(right));
            let same = left.chars().zip(right.chars()).take_while(|(a, b)| a == b).count();
            let (left, right) = (excerpt(&left, same), excerpt(&right, same));
            let same = left.chars().zip(right.chars()).take_while(|(a, b)| a == b).count();
            Some(FieldDifference { name, left, right, same })
        }
    }
}

/// A text from shortly before the character `at`.
fn excerpt(text: &str, at: usize) -> String {
    match at.checked_sub(CONTEXT_CHARS).filter(|skipped| *skipped > 0) {
        Some(skipped) => format!("…{}", text.chars().skip(skipped).collect::<String>()),
        None => text.to_owned(),
    }
}

fn fields_of(event: &Event) -> Map<String, Value> {
    let line = event.to_line().unwrap_or_default();
    match serde_json::from_str(&line) {
        Ok(Value::Object(mut fields)) => {
            for key in ["v", "seq", "at_us", "span", "kind"] {
                fields.shift_remove(key);
            }
            // Its id in the other program.
            if ObservedFact::of(&event.kind).is_some() {
                fields.shift_remove("id");
            }
            fields.into_iter().filter(|(key, _)| !is_measured(key)).map(comparable).collect()
        }
        _ => Map::new(),
    }
}

impl DifferentEvent {
    /// Its line, the prompt of a call, and what was said in it, each with the word for it.
    pub fn texts(&self) -> Vec<(String, String)> {
        let mut found = vec![("event".to_owned(), self.line.clone())];
        if let EventKind::CallStarted(call) = &self.event.kind {
            let messages = call.prompt.messages.iter();
            found.extend(
                messages.map(|it| (format!("prompt, {}", it.role.word()), it.content.to_string())),
            );
        }
        let said = TextPart::of(&self.event.kind);
        found.extend(said.map(|said| (said.word().to_owned(), said.text())));
        found
    }
}

/// Ids of spans and runs, and times, differ between any two runs.
fn is_measured(key: &str) -> bool {
    key.ends_with("_ms")
        || matches!(key, "from_us" | "until_us")
        || matches!(key, "parent" | "run" | "after" | "previous_run" | "first_run" | "span")
}

fn comparable((key, value): (String, Value)) -> (String, Value) {
    (key, without_measures(value))
}

fn without_measures(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(key, _)| !is_measured(key));
            Value::Object(kept.map(comparable).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_measures).collect()),
        plain => plain,
    }
}

/// One thing that the runs were started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupDifference {
    /// What it is: `scenario`, `flag legal_analyst`, `override budget.max_rounds`, …
    pub what: String,
    /// What the left run has; empty for nothing.
    pub left: String,
    pub right: String,
}

/// What two runs were started with, where that differs.
fn setup_differences(left: &RunStarted, right: &RunStarted) -> Vec<SetupDifference> {
    let mut found = Vec::new();
    let mut note = |what: String, left: String, right: String| {
        if left != right {
            found.push(SetupDifference { what, left, right });
        }
    };
    note("scenario".to_owned(), left.scenario.to_string(), right.scenario.to_string());
    note("goal".to_owned(), left.goal.clone(), right.goal.clone());
    let model = |head: &RunStarted| model_text(&head.model);
    note("model".to_owned(), model(left), model(right));
    note("seed".to_owned(), left.seed.to_string(), right.seed.to_string());
    let flags = |head: &RunStarted| -> BTreeMap<String, String> {
        let on = |on| if on { "on" } else { "off" };
        head.flags.iter().map(|it| (it.name.to_string(), on(it.on).to_owned())).collect()
    };
    note_each("flag", &flags(left), &flags(right), &mut note);
    let inputs = |head: &RunStarted| -> BTreeMap<String, String> {
        head.inputs.iter().map(|(name, value)| (name.clone(), plain_text(value))).collect()
    };
    note_each("input", &inputs(left), &inputs(right), &mut note);
    let set = |head: &RunStarted| -> BTreeMap<String, String> {
        let set = head.launch.iter().flat_map(|launch| &launch.source.set);
        set.filter_map(|it| it.split_once('='))
            .map(|(path, value)| (path.to_owned(), value.to_owned()))
            .collect()
    };
    note_each("override", &set(left), &set(right), &mut note);
    let files = |head: &RunStarted| -> BTreeMap<String, String> {
        let files = head.launch.iter().flat_map(|launch| &launch.source.prompt_files);
        files.map(|(path, text)| (path.clone(), lines_of(text))).collect()
    };
    if left.scenario == right.scenario {
        note_each("prompt file", &files(left), &files(right), &mut note);
    }
    let text = |head: &RunStarted| head.launch.as_ref().map(|it| Arc::clone(&it.source.text));
    if let (Some(one), Some(other)) = (text(left), text(right))
        && left.scenario == right.scenario
        && one != other
    {
        note("text of the scenario".to_owned(), lines_of(&one), lines_of(&other));
    }
    found
}

fn note_each(
    what: &str,
    left: &BTreeMap<String, String>,
    right: &BTreeMap<String, String>,
    note: &mut impl FnMut(String, String, String),
) {
    let names: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    for name in names {
        let of = |side: &BTreeMap<String, String>| side.get(name).cloned().unwrap_or_default();
        note(format!("{what} {name}"), of(left), of(right));
    }
}

fn lines_of(text: &str) -> String {
    let digest = crate::base::sha256_of_text(text);
    format!("{} lines, {}", text.lines().count(), digest.get(..8).unwrap_or_default())
}

/// A value as a text: a text as it is, anything else as JSON.
pub(crate) fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The innermost names of a path that are shown.
const MAX_NAMES: usize = 32;

/// A path; 0 is the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PathId(usize);

impl PathId {
    /// The run.
    pub const RUN: Self = Self(0);
}

/// All paths: each is a name within another one.
#[derive(Debug, Default)]
pub(crate) struct SpanPaths {
    steps: Vec<(PathId, String)>,
    by_step: HashMap<(PathId, String), PathId>,
}

impl SpanPaths {
    /// The path of this name within `outer`.
    pub fn within(&mut self, outer: PathId, name: String) -> PathId {
        let steps = &mut self.steps;
        *self.by_step.entry((outer, name)).or_insert_with_key(|step| {
            steps.push(step.clone());
            PathId(steps.len())
        })
    }

    /// The names of a path, from the run inwards; a long path without its first names.
    pub fn names(&self, path: PathId) -> Vec<String> {
        let step = |PathId(at): PathId| self.steps.get(at.checked_sub(1)?);
        let steps = std::iter::successors(step(path), |(outer, _)| step(*outer));
        let mut names: Vec<_> = steps.take(MAX_NAMES + 1).map(|(_, name)| name.clone()).collect();
        if let Some(first) = names.get_mut(MAX_NAMES) {
            "…".clone_into(first);
        }
        names.reverse();
        names
    }
}

#[cfg(test)]
mod tests {
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
        let lines: Vec<(u32, &str)> =
            lines.iter().map(|(span, rest)| (*span, rest.as_str())).collect();
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

    /// A trace of another program: its tool was called so often, at this time, with ids of its own.
    fn observed(calls: u32, from_us: u64) -> Vec<Arc<Event>> {
        let span = |id: u32, parent: u32, about: &str| {
            let (from, until) = (from_us + u64::from(id), from_us + u64::from(id) + 9);
            let id = format!(r#""id":"{from_us}-{id}""#);
            let opened = format!(
                r#""kind":"span.opened","parent":{parent},"at_end":true,{id},{about},"from_us":{from}"#
            );
            let closed = format!(
                r#""kind":"span.closed","end":"done",{id},{about},"from_us":{from},"until_us":{until}"#
            );
            [opened, closed]
        };
        let mut lines = Vec::new();
        for nth in 0..calls {
            let about = r#""name":"refund","role":"tool""#;
            lines.extend(span(2 + nth, 1, about).map(|line| (2 + nth, line)));
        }
        // A child names its parent first.
        let unknown =
            format!(r#""kind":"span.opened","parent":0,"id":"{from_us}-1","role":"step""#);
        lines.insert(0, (1, unknown));
        let [opened, closed] = span(1, 0, r#""name":"billing","role":"agent""#);
        lines.extend([(1, opened), (1, closed)]);
        let lines: Vec<_> = lines.iter().map(|(span, line)| (*span, line.as_str())).collect();
        log(&lines)
    }

    #[test]
    fn observed_runs_differ_by_what_happened() {
        let found = compare(&observed(1, 5_000), &observed(1, 900_000));
        assert!(found.is_same(), "{found:#?}");
        let found = compare(&observed(2, 5_000), &observed(1, 900_000));
        let paths: Vec<_> = found.differences.iter().map(|it| it.path.join(" / ")).collect();
        assert_eq!(paths, ["agent billing / tool refund (2)"; 2]);
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
        let flag =
            r#""kind":"flag.changed","flag":"legal","on":true,"by":"you","boundary":"round:2""#;
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
}
