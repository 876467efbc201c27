//! What an observed run tells of what expectations ask, and what it does not tell: a fact that is
//! missing has a reason, and a row that needs it fails with that reason.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::log::event::{EventKind, SpanId, StopReason, World};
use crate::log::facts::PatternFact;
use crate::log::facts::observed::{ObservedFact, SpanAbout, SpanEnd, SpanRole, is_cut};
use crate::log::world::observed::{MAX_AGENTS, Observed, ObservedSpan};
use crate::scenario::cel::{CallFacts, Condition, RunFunction};
use crate::scenario::read::closest_name;
use crate::scenario::spec::Expectation;
use crate::words::format::count_noun;

/// The names of expectations that another program has nothing of, each with what to do.
const OF_OUR_RUNS: [(&str, &str); 14] = [
    ("degraded", "ask `!failed(\"tool:NAME\")`"),
    ("outcome.degraded", "ask `!failed(\"tool:NAME\")`"),
    ("outcome.replaced", "ask `!failed(\"tool:NAME\")`"),
    ("outcome.tools", "it has outcome.tool_calls"),
    ("outcome.cut", "remove it"),
    ("outcome.questions", "remove it"),
    ("outcome.alerts", "remove it"),
    ("outcome.usage.attempts", "it has outcome.usage.calls"),
    ("outcome.usage.retries", "it has outcome.usage.calls"),
    ("live", "remove it"),
    ("inputs", "remove it"),
    ("facts", "remove it"),
    ("flags", "remove it"),
    ("waited_ms", "remove it"),
];

/// The events that an observed run may have, besides its facts.
const SHARED_KINDS: [&str; 5] =
    ["run.started", "run.closed", "warning", "answer.composed", "command.taken"];

/// The texts of events that may be cut.
const TEXT_FIELDS: [&str; 4] = ["input", "output", "error", "text"];

/// Why a row has no meaning about a run of another program, and what to do. `None`: it has one.
pub(crate) fn unfit_for_observed(row: &Expectation) -> Option<(String, String)> {
    let of_program = |name: &str| format!("`{name}` has no meaning for a run of another program");
    for name in row.that.names() {
        let path = name.path.join(".");
        let is_part = |known: &str| {
            path.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if let Some((known, help)) = OF_OUR_RUNS.iter().find(|(known, _)| is_part(known)) {
            return Some((of_program(known), (*help).to_owned()));
        }
    }
    for (function, _) in row.that.run_names() {
        let help = match function {
            RunFunction::Calls | RunFunction::Failed | RunFunction::Order => continue,
            RunFunction::Cites => "look for the address in `answer`",
            RunFunction::Asked | RunFunction::Approved => "remove it",
        };
        return Some((of_program(function.name()), help.to_owned()));
    }
    let has = |kind: &&str| SHARED_KINDS.contains(kind) || ObservedFact::NAMES.contains(kind);
    let kind = kinds(&row.that).into_iter().find(|kind| !has(kind))?;
    let kinds: Vec<&str> = ObservedFact::NAMES.iter().chain(&SHARED_KINDS).copied().collect();
    let help = format!("it has {}", kinds.join(", "));
    Some((format!("a run of another program has no event `{kind}`"), help))
}

/// A kind of event that a row asks for and that no run has. `None`: each of them exists.
pub(crate) fn unknown_kind(row: &Expectation) -> Option<(String, String)> {
    let all = || EventKind::NAMES.iter().chain(PatternFact::NAMES.into_iter().flatten()).copied();
    let kind = kinds(&row.that).into_iter().find(|kind| !all().any(|known| known == *kind))?;
    let near = closest_name(kind, all()).map(|near| format!("did you mean `{near}`?"));
    Some((format!("there is no event `{kind}`"), near.unwrap_or_default()))
}

/// The kinds of events that a condition asks for.
fn kinds(that: &Condition) -> Vec<&str> {
    let uses_events = that.names().iter().any(|name| name.path.first() == Some(&"events"));
    if uses_events { that.texts_equal_to("kind") } else { Vec::new() }
}

/// Whether the end of a text of this event is missing.
pub(super) fn has_cut_text(kind: &EventKind) -> bool {
    let of_span = |about: &SpanAbout| {
        let texts = [&about.input, &about.output, &about.error];
        texts.into_iter().flatten().any(|text| is_cut(text))
    };
    match ObservedFact::of(kind) {
        Some(ObservedFact::Opened { about, .. } | ObservedFact::Closed { about, .. }) => {
            of_span(about)
        }
        Some(ObservedFact::Text { text, .. } | ObservedFact::Note { text }) => is_cut(text),
        Some(
            ObservedFact::Named { .. } | ObservedFact::Ended { .. } | ObservedFact::Recorded { .. },
        )
        | None => false,
    }
}

/// Whether a condition may read the texts of events.
pub(super) fn reads_texts(that: &Condition) -> bool {
    that.may_read_field(&TEXT_FIELDS)
}

/// What is known of an observed run that has ended.
#[derive(Default)]
pub(super) struct KnownFacts {
    pub calls: BTreeMap<String, CallFacts>,
    /// The agents in the order of their turns.
    pub took_control: Vec<String>,
    /// Why spans may be missing.
    pub incomplete: Option<Arc<str>>,
    /// Why names and fields have no value. The first reason of a name is the one that is shown.
    pub missing: Vec<(&'static str, Arc<str>)>,
    /// Why nothing at all is known.
    pub nothing: Option<Arc<str>>,
}

impl KnownFacts {
    fn lack(&mut self, fields: &[&'static str], why: Option<Arc<str>>) {
        if let Some(why) = why {
            self.missing.extend(fields.iter().map(|field| (*field, Arc::clone(&why))));
        }
    }
}

/// What depends on all spans of a run.
const OF_ALL_SPANS: [&str; 16] = [
    "answer",
    "tokens",
    "cost_usd",
    "events",
    "outcome.answer",
    "outcome.spans",
    "outcome.failed_spans",
    "outcome.lost_spans",
    "outcome.agents",
    "outcome.tool_calls",
    "outcome.model_calls",
    "outcome.path",
    "outcome.usage.calls",
    "outcome.usage.prompt_tokens",
    "outcome.usage.completion_tokens",
    "outcome.usage.cost_usd",
];

/// What depends on the tokens of each call of a model.
const OF_TOKENS: [&str; 3] =
    ["tokens", "outcome.usage.prompt_tokens", "outcome.usage.completion_tokens"];

/// How the run ended.
const OF_END: [&str; 4] = ["status", "stop_reason", "outcome.status", "outcome.stop_reason"];

/// Looks through the spans of a run. `warned`: why spans are missing, as its log and the receiver
/// say.
pub(super) fn known_facts(
    world: &World,
    observed: &Observed,
    warned: Option<Arc<str>>,
) -> KnownFacts {
    let mut known = KnownFacts::default();
    if observed.spans.iter().next().is_none() {
        known.nothing = Some("the program reported nothing: the run has no span".into());
        return known;
    }
    let spans = SpanCounts::of(world, observed);
    let incomplete = warned.or_else(|| spans.incomplete(world));
    for turn in observed.agents.hops.iter().filter_map(|hop| observed.span(hop.span)) {
        let name = agent_name(&turn.about);
        if known.took_control.last() != Some(&name) {
            known.took_control.push(name);
        }
    }
    known.lack(&OF_ALL_SPANS, incomplete.clone());
    let root = spans.lost_root.as_ref().map(|name| {
        Arc::<str>::from(format!("the end of the outermost span `{name}` was not reported"))
    });
    // The outermost span may have failed, and its output is the answer.
    if world.progress.closed.as_ref().is_some_and(|closed| closed.reason.is_success()) {
        known.lack(&OF_END, incomplete.clone().or_else(|| root.clone()));
    }
    known.lack(&["answer", "outcome.answer"], root);
    let answer = match &world.progress.answer {
        None => Some("no span reported an output that could be the answer"),
        Some(answer) if is_cut(answer) => {
            Some("the answer is longer than 32 KiB, and its end was left out")
        }
        Some(_) => None,
    };
    known.lack(&["answer", "outcome.answer"], answer.map(Arc::from));
    let models = &spans.models;
    known.lack(&OF_TOKENS, models.why_unknown(models.without_tokens, "tokens"));
    let cost = models.why_unknown(models.without_cost, "a cost");
    known.lack(&["cost_usd", "outcome.usage.cost_usd"], cost);
    let lost = |count: u64, noun: &str| -> Option<Arc<str>> {
        let why = || format!("the end of {} was not reported", counted(count, noun));
        (count > 0).then(|| why().into())
    };
    known.lack(&["outcome.tool_calls"], lost(spans.lost_tools, "call of a tool"));
    known.lack(&["outcome.model_calls"], lost(models.lost, "call of a model"));
    known.lack(&["outcome.failed_spans", "events"], lost(spans.lost, "span"));
    // The fold has no turns of the others.
    let many = (spans.agents.len() > MAX_AGENTS)
        .then(|| Arc::<str>::from(format!("the run has more than {MAX_AGENTS} agents")));
    known.lack(&["outcome.agents", "outcome.path"], many.clone());
    known.incomplete = incomplete.or(many);
    known.calls = spans.calls;
    known
}

/// The calls of models.
#[derive(Default)]
struct ModelCounts {
    calls: u64,
    lost: u64,
    without_tokens: u64,
    without_cost: u64,
}

impl ModelCounts {
    /// Why a sum over the calls is not known, of which so many have no value.
    fn why_unknown(&self, without: u64, what: &str) -> Option<Arc<str>> {
        if self.calls == 0 {
            return Some("no call of a model was reported".into());
        }
        let calls = counted(self.calls, "call of a model");
        (without > 0).then(|| format!("{without} of {calls} came without {what}").into())
    }
}

/// What the spans of a run are.
#[derive(Default)]
struct SpanCounts {
    calls: BTreeMap<String, CallFacts>,
    agents: BTreeSet<String>,
    models: ModelCounts,
    /// Spans without a reported end, and those of them that are calls of tools.
    lost: u64,
    lost_tools: u64,
    /// Spans that only others have named.
    unnamed: u64,
    /// An outermost span whose end was not reported.
    lost_root: Option<String>,
}

impl SpanCounts {
    fn of(world: &World, observed: &Observed) -> Self {
        let mut counts = Self::default();
        let mut others: BTreeMap<String, CallFacts> = BTreeMap::new();
        for span in observed.spans.iter() {
            counts.add(span, &mut others);
            let is_named = !span.about.name.is_empty();
            if is_named && is_lost(span) && is_outermost(span, world, observed) {
                counts.lost_root = Some(span.about.name.to_string());
            }
        }
        // A name without a prefix is that of a tool or an agent, else of any other span.
        let keys: Vec<String> = counts.calls.keys().cloned().collect();
        for key in &keys {
            let Some(("tool" | "agent", bare)) = key.split_once(':') else { continue };
            let found = |prefix: &str| counts.calls.get(&format!("{prefix}{bare}")).copied();
            let (tool, agent) = (found("tool:"), found("agent:"));
            let is_ambiguous = tool.is_some() && agent.is_some();
            if let Some(calls) = tool.or(agent) {
                counts.calls.insert(bare.to_owned(), CallFacts { is_ambiguous, ..calls });
            }
        }
        for (name, calls) in others {
            counts.calls.entry(name).or_insert(calls);
        }
        counts
    }

    fn add(&mut self, span: &ObservedSpan, others: &mut BTreeMap<String, CallFacts>) {
        let about = &span.about;
        let lost = u64::from(is_lost(span));
        self.lost += lost;
        if about.name.is_empty() && about.role == SpanRole::Step {
            self.unnamed += 1;
            return;
        }
        let count = |calls: &mut CallFacts| {
            calls.calls += 1;
            calls.failed += u64::from(span.end == Some(SpanEnd::Failed));
            calls.lost += lost;
        };
        match about.role {
            SpanRole::Tool | SpanRole::Retriever => {
                self.lost_tools += lost;
                count(self.calls.entry(format!("tool:{}", about.name)).or_default());
            }
            SpanRole::Agent | SpanRole::Node => {
                let name = agent_name(about);
                count(self.calls.entry(format!("agent:{name}")).or_default());
                self.agents.insert(name);
            }
            // It repeats a call that another span reports.
            SpanRole::Model if span.repeats_call => {}
            SpanRole::Embedding => {
                let name = about.model.as_ref().unwrap_or(&about.name);
                count(self.calls.entry(format!("model:{name}")).or_default());
            }
            SpanRole::Model => {
                let name = about.model.as_ref().unwrap_or(&about.name);
                count(self.calls.entry(format!("model:{name}")).or_default());
                count(self.calls.entry("llm".to_owned()).or_default());
                self.models.calls += 1;
                self.models.lost += lost;
                let has_tokens = about.tokens_in.is_some() && about.tokens_out.is_some();
                self.models.without_tokens += u64::from(!has_tokens);
                self.models.without_cost += u64::from(about.cost_usd.is_none());
            }
            SpanRole::Step | SpanRole::Handoff | SpanRole::Guardrail => {
                count(others.entry(about.name.to_string()).or_default());
            }
        }
    }

    /// Why spans may be missing, as the run itself shows.
    fn incomplete(&self, world: &World) -> Option<Arc<str>> {
        match &world.progress.closed.as_ref()?.reason {
            StopReason::Success
            | StopReason::ProgramFailed
            | StopReason::SpanFailed
            | StopReason::WaitsForInput
            | StopReason::GuardrailTripped
            | StopReason::NothingReported => {}
            other => {
                let why = format!("the run ended with {other}, and the program may have continued");
                return Some(why.into());
            }
        }
        (self.unnamed > 0).then(|| {
            let spans = counted(self.unnamed, "span");
            format!("{spans} named by others and never reported: what it was is not known").into()
        })
    }
}

fn is_lost(span: &ObservedSpan) -> bool {
    matches!(span.end, None | Some(SpanEnd::Lost))
}

/// Whether no span around this one is known.
fn is_outermost(span: &ObservedSpan, world: &World, observed: &Observed) -> bool {
    match world.spans.get(span.id).map(|it| it.parent) {
        None | Some(SpanId::RUN) => true,
        Some(parent) => observed.span(parent).is_none_or(|it| it.about.name.is_empty()),
    }
}

/// The agent of a turn.
fn agent_name(about: &SpanAbout) -> String {
    match (&about.agent, about.role) {
        (Some(agent), SpanRole::Agent) => agent.to_string(),
        _ => about.name.to_string(),
    }
}

/// A number of a noun such as `call of a tool`.
fn counted(count: u64, noun: &str) -> String {
    match noun.split_once(' ') {
        Some((first, rest)) => format!("{} {rest}", count_noun(count, first)),
        None => count_noun(count, noun),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::engine::expectations::{ExpectedOf, RunObserver, Verdict};
    use crate::log::event::Event;
    use crate::scenario::ScenarioOrigin;
    use crate::scenario::rows::{Rows, check_rows};

    /// A run of two agents, a model and a tool.
    fn whole() -> Vec<Value> {
        vec![
            json!({"span": 1, "kind": "span.opened", "parent": 0, "id": "a", "name": "desk", "role": "agent", "input": "I was charged twice."}),
            json!({"span": 2, "kind": "span.opened", "parent": 1, "id": "b", "name": "chat", "role": "model", "model": "gpt-4o"}),
            json!({"span": 2, "kind": "span.closed", "end": "done", "role": "model", "model": "gpt-4o", "tokens_in": 100, "tokens_out": 20, "cost_usd": 0.01, "output": "Refund it."}),
            json!({"span": 3, "kind": "span.opened", "parent": 1, "id": "c", "name": "refund", "role": "tool"}),
            json!({"span": 3, "kind": "span.closed", "end": "done", "role": "tool", "output": "re_31"}),
            json!({"span": 4, "kind": "span.opened", "parent": 1, "id": "d", "name": "billing", "role": "agent"}),
            json!({"span": 4, "kind": "span.closed", "end": "done", "role": "agent"}),
            json!({"span": 1, "kind": "span.closed", "end": "done", "role": "agent", "output": "Done."}),
            json!({"span": 0, "kind": "answer.composed", "text": "Done."}),
            json!({"span": 0, "kind": "run.closed", "reason": "success", "phase": null, "boundary": null, "elapsed_ms": 2925, "paused_ms": 0, "in_flight": 0}),
        ]
    }

    /// The same with a change of one event.
    fn with(at: usize, change: Value) -> Vec<Value> {
        let mut events = whole();
        let fields = events[at].as_object_mut().expect("an object");
        for (key, value) in change.as_object().expect("an object").clone() {
            match value.is_null() && key != "phase" {
                true => drop(fields.remove(&key)),
                false => drop(fields.insert(key, value)),
            }
        }
        events
    }

    /// The same with further events before its end.
    fn and(more: Vec<Value>) -> Vec<Value> {
        let mut events = whole();
        let end = events.len() - 1;
        events.splice(end..end, more);
        events
    }

    fn warned(text: &str) -> Vec<Value> {
        and(vec![json!({"span": 0, "kind": "warning", "text": text})])
    }

    /// A span whose end was not reported.
    fn lost(at: usize) -> Vec<Value> {
        let nothing = json!({"end": "lost", "output": null, "tokens_in": null, "tokens_out": null, "cost_usd": null});
        with(at, nothing)
    }

    fn cancelled() -> Vec<Value> {
        with(9, json!({"reason": "cancelled"}))
    }

    fn rows(that: &str, names: &str) -> Rows {
        let text = format!("names = [{names}]\n[[expect]]\nthat = '''{that}'''\n");
        let origin = ScenarioOrigin::File("rows.toml".into());
        check_rows(&text, &origin).unwrap_or_else(|why| panic!("{that}: {why:?}")).0
    }

    fn judge(events: &[Value], that: &str, names: &str) -> Verdict {
        let rows = rows(that, names);
        let mut observer = RunObserver::new(rows.expectations());
        let mut world = World::new();
        let head = include_str!("../../tests/vectors/watch/langgraph_desk.jsonl");
        let head = Event::from_line(head.lines().next().expect("a head")).expect("an event");
        let events = events.iter().zip(1..).map(|(event, seq)| {
            let mut event = event.clone();
            event["v"] = json!(2);
            (event["seq"], event["at_us"]) = (json!(seq), json!(seq * 1_000));
            Event::from_line(&event.to_string()).unwrap_or_else(|why| panic!("{event}: {why}"))
        });
        for event in std::iter::once(head).chain(events) {
            world.apply(&event);
            observer.event(&event);
        }
        assert!(observer.end_of_run(&world), "it has ended");
        let facts = Err("no facts".into());
        let listed = rows.names.clone();
        let of = ExpectedOf { messages: 1, facts, live: None, listed, is_checked: false };
        let runs = observer.finish(of).expect("a run");
        runs.judge(rows.expectations()).remove(0).verdict
    }

    #[test]
    fn rows_hold_where_facts_are_known() {
        for that in [
            "status == 'ok' && stop_reason == 'success' && elapsed_ms == 2925",
            "calls('tool:refund') == 1 && calls('refund') == 1 && calls('llm') == 1",
            "calls('model:gpt-4o') == 1 && calls('agent:billing') == 1 && calls('billing') == 1",
            "order('desk', 'billing') && !order('billing', 'desk')",
            "order('agent:desk', 'agent:billing')",
            "!failed('tool:refund') && !failed('refund') && !failed('desk') && !failed('llm')",
            "tokens == 120 && cost_usd == 0.01 && answer == 'Done.'",
            "outcome.spans == 4 && outcome.usage.prompt_tokens == 100 && outcome.path == ['desk']",
            "outcome.tool_calls.all(t, t.failed == 0) && size(outcome) > 3",
            "events.exists(e, e.kind == 'span.closed' && e.span == 3 && e.output == 're_31')",
        ] {
            assert_eq!(judge(&whole(), that, ""), Verdict::Holds, "{that}");
        }
        for (that, names) in [
            ("calls('tool:delete') == 0 && !failed('tool:delete')", "'tool:delete'"),
            ("calls('delete') == 0", "'tool:delete'"),
            ("calls('tool:delete') == 0", "'delete'"),
            ("!order('desk', 'fraud')", "'agent:fraud'"),
        ] {
            assert_eq!(judge(&whole(), that, names), Verdict::Holds, "{that}");
        }
        let failed = with(4, json!({"end": "failed", "error": "declined", "output": null}));
        for that in [
            "failed('refund') && failed('tool:refund') && !failed('billing')",
            "outcome.tool_calls.exists(t, t.failed == 1) && outcome.failed_spans == 1",
        ] {
            assert_eq!(judge(&failed, that, ""), Verdict::Holds, "{that}");
        }
        assert_eq!(judge(&failed, "!failed('tool:refund')", ""), Verdict::Fails);
        assert_eq!(judge(&whole(), "calls('tool:refund') == 0", ""), Verdict::Fails);
        // One failure is enough, whatever is missing, and another side may decide.
        let missing = warned("some spans are missing: a request was not read");
        assert_eq!(judge(&lost(2), "status == 'ok' || tokens < 5", ""), Verdict::Holds);
        assert_eq!(judge(&missing, "elapsed_ms > 5 || calls('refund') == 0", ""), Verdict::Holds);
        assert_eq!(
            judge(&lost(2), "outcome.lost_spans == 1 && calls('llm') == 1", ""),
            Verdict::Holds
        );
        let mut both = failed;
        both.insert(9, json!({"span": 0, "kind": "warning", "text": "some spans are missing: x"}));
        assert_eq!(judge(&both, "failed('refund')", ""), Verdict::Holds);
    }

    #[test]
    fn missing_facts_fail_with_reason() {
        let long = format!("{}…", "a".repeat((32 << 10) - 3));
        let gap = "some spans are missing: 5 spans beyond 1000000 are left out";
        let unnamed = and(vec![json!({"span": 5, "kind": "span.opened", "parent": 0, "id": "e"})]);
        let agents = (5..75).map(|id| json!({"span": id, "kind": "span.opened", "parent": 0, "id": id.to_string(), "name": format!("a{id}"), "role": "agent"}));
        let ends = (5..75)
            .map(|id| json!({"span": id, "kind": "span.closed", "end": "done", "role": "agent"}));
        let no_model: Vec<Value> = with(1, json!({"role": "step"}));
        let no_model = no_model.into_iter().enumerate().filter(|(at, _)| *at != 2);
        let no_model: Vec<Value> = no_model.map(|(_, event)| event).collect();
        let no_answer: Vec<Value> =
            whole().into_iter().filter(|it| it["kind"] != "answer.composed").collect();
        let nothing: Vec<Value> = whole().split_off(9);
        let twin = with(5, json!({"name": "refund"}));
        for (events, that, reason) in [
            (
                with(2, json!({"tokens_in": null})),
                "tokens < 20000",
                "1 of 1 call of a model came without tokens",
            ),
            (with(2, json!({"tokens_out": null})), "tokens < 20000", "came without tokens"),
            (
                with(2, json!({"tokens_out": null})),
                "outcome.usage.completion_tokens == 0",
                "came without tokens",
            ),
            (
                with(2, json!({"cost_usd": null})),
                "cost_usd < 0.05",
                "1 of 1 call of a model came without a cost",
            ),
            (with(2, json!({"cost_usd": null})), "cost_usd == null", "came without a cost"),
            (
                with(2, json!({"cost_usd": null})),
                "!has(outcome.usage.cost_usd)",
                "came without a cost",
            ),
            (no_model.clone(), "tokens < 20000", "no call of a model was reported"),
            (no_model, "cost_usd < 0.05", "no call of a model was reported"),
            (no_answer, "!answer.contains('sorry')", "no span reported an output"),
            (with(8, json!({"text": long})), "!answer.contains('sorry')", "longer than 32 KiB"),
            (
                lost(7),
                "!answer.contains('sorry')",
                "the end of the outermost span `desk` was not reported",
            ),
            (lost(7), "status == 'ok'", "the end of the outermost span `desk`"),
            (lost(7), "stop_reason != 'span_failed'", "the end of the outermost span `desk`"),
            (lost(4), "!failed('tool:refund')", "the end of 1 call of `tool:refund` is not known"),
            (lost(4), "!failed('refund')", "the end of 1 call of `refund` is not known"),
            (lost(6), "!failed('agent:billing')", "the end of 1 call of `agent:billing`"),
            (lost(4), "outcome.tool_calls.all(t, t.failed == 0)", "the end of 1 call of a tool"),
            (lost(2), "outcome.model_calls.all(t, t.failed == 0)", "the end of 1 call of a model"),
            (lost(4), "outcome.failed_spans == 0", "the end of 1 span"),
            (
                lost(4),
                "events.all(e, e.kind != 'span.closed' || e.end != 'failed')",
                "the end of 1 span",
            ),
            (lost(4), "!(\"error\" in outcome)", "the end of 1 call of a tool"),
            (lost(2), "tokens < 20000", "came without tokens"),
            (
                whole(),
                "calls('tool:refnd') <= 1",
                "the run has no tool `refnd`; did you mean `tool:refund`?",
            ),
            (whole(), "calls('refnd') <= 1", "list it in `names` at the top of the file"),
            (whole(), "!failed('tool:refnd')", "the run has no tool `refnd`"),
            (
                whole(),
                "calls('model:gpt-4') <= 1",
                "the run has no model `gpt-4`; did you mean `model:gpt-4o`?",
            ),
            (whole(), "!order('desk', 'biling')", "the run has no role, worker or agent `biling`"),
            (twin, "calls('refund') == 1", "write tool:refund or agent:refund"),
            (warned(gap), "calls('tool:refund') <= 1", gap),
            (warned(gap), "!failed('tool:refund')", gap),
            (warned(gap), "!order('billing', 'desk')", gap),
            (warned(gap), "status == 'ok'", gap),
            (warned(gap), "tokens < 20000", gap),
            (warned(gap), "cost_usd < 0.05", gap),
            (warned(gap), "!answer.contains('sorry')", gap),
            (warned(gap), "events.all(e, e.kind != 'span.note')", gap),
            (warned(gap), "outcome.spans < 10", gap),
            (warned(gap), "outcome.path.all(a, a != 'fraud')", gap),
            (
                unnamed.clone(),
                "calls('tool:refund') <= 1",
                "1 span named by others and never reported",
            ),
            (unnamed, "status == 'ok'", "1 span named by others"),
            (cancelled(), "calls('tool:refund') <= 1", "the run ended with cancelled"),
            (cancelled(), "tokens < 20000", "the run ended with cancelled"),
            (
                with(2, json!({"output": long})),
                "!events.exists(e, has(e.output) && e.output.contains('x'))",
                "1 event without the whole text",
            ),
            (
                with(2, json!({"output": long})),
                "!events.exists(e, 'output' in e && e['output'] == 'x')",
                "1 event without the whole text",
            ),
            (
                warned("some texts are missing: 3 lines"),
                "!events.exists(e, has(e.text) && e.text == 'x')",
                "without the whole text",
            ),
            (
                and(agents.chain(ends).collect()),
                "outcome.agents.all(a, a.turns == 1)",
                "more than 64 agents",
            ),
            (nothing.clone(), "status == 'ok'", "the program reported nothing"),
            (nothing, "true", "the program reported nothing"),
        ] {
            let verdict = judge(&events, that, "");
            let is_right = matches!(&verdict, Verdict::Invalid(why) if why.contains(reason));
            assert!(is_right, "{that}: {verdict:?}");
        }
    }

    #[test]
    fn rows_without_meaning_are_refused() {
        for (that, what, help) in [
            ("!degraded", "`degraded` has no meaning", "failed("),
            ("!outcome.degraded", "`outcome.degraded` has no meaning", "failed("),
            ("outcome.tools.all(t, t.answered == t.calls)", "`outcome.tools`", "tool_calls"),
            ("outcome.usage.attempts < 3", "`outcome.usage.attempts`", "usage.calls"),
            ("!live", "`live`", ""),
            ("inputs.region == 'EU'", "`inputs`", ""),
            ("facts.alerts == 3", "`facts`", ""),
            ("flags.slow", "`flags`", ""),
            ("waited_ms < 3", "`waited_ms`", ""),
            ("cites('example.com')", "`cites`", "answer"),
            ("asked('manager') == 1", "`asked`", ""),
            ("approved('refund')", "`approved`", ""),
            (
                "events.exists(e, e.kind == 'round.closed')",
                "has no event `round.closed`",
                "span.closed",
            ),
            (
                "!events.exists(e, 'call.failed' == e.kind)",
                "has no event `call.failed`",
                "span.opened",
            ),
        ] {
            let rows = rows(that, "");
            let (found, advice) = unfit_for_observed(&rows.expectations()[0]).expect("refused");
            assert!(found.contains(what) && advice.contains(help), "{that}: {found}; {advice}");
            assert_eq!(unknown_kind(&rows.expectations()[0]), None, "{that}");
        }
        let wrong = rows("events.exists(e, e.kind == 'span.closd')", "");
        let (what, help) = unknown_kind(&wrong.expectations()[0]).expect("refused");
        assert_eq!(
            (&*what, &*help),
            ("there is no event `span.closd`", "did you mean `span.closed`?")
        );
        let good = rows("events.exists(e, e.kind == 'span.note') && outcome.usage.calls < 3", "");
        assert_eq!(unfit_for_observed(&good.expectations()[0]), None);
    }
}
