//! Whether runs that have ended are as their scenario expects (`[[expect]]`). Events are observed
//! while a run is folded; the conditions are evaluated once, at its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::observed_facts::{KnownFacts, has_cut_text, known_facts, reads_texts};
use crate::base::name::ToolName;
use crate::log::event::{
    Asks, CallStarted, Event, EventKind, ModelLabel, Purpose, SpanId, StopReason, World,
};
use crate::log::facts::observed::{SPANS_MISSING, TEXTS_MISSING};
use crate::log::world::{Outcome, SessionOutcome};
use crate::scenario::Scenario;
use crate::scenario::cel::{CelBindings, Condition, Name, ObservedPart, RunFacts};
use crate::scenario::spec::Expectation;
use crate::scenario::tools::mcp::split_name;
use crate::words::format::count_noun;

/// Most bytes of events that conditions can read, as JSON lines.
const MAX_EVENT_BYTES: usize = 32 << 20;

/// What a scenario without expectations expects.
const SUCCEEDS: &str = "status == \"ok\"";

/// Observes runs, one per message of a scenario, for its expectations.
pub struct RunObserver {
    facts: RunFacts,
    /// Calls of tools of MCP servers in the current run, by name.
    of_servers: BTreeMap<ToolName, u64>,
    /// How often each server has listed its tools in the current run.
    listings: BTreeMap<ToolName, u64>,
    /// The open calls of the current run, each with the names under which it counts.
    open: BTreeMap<SpanId, Vec<String>>,
    /// The name of the model, if the run uses only one.
    model: Option<String>,
    /// The events as JSON, if a condition uses them.
    events: Option<Vec<Value>>,
    event_bytes: usize,
    /// Number of events with texts whose ends are missing.
    cut_texts: u64,
    /// The first reason why facts of an observed run are missing.
    warned: Option<Arc<str>>,
    known: KnownFacts,
    inputs: Map<String, Value>,
    is_live: bool,
    is_observed: bool,
    outcomes: Vec<Outcome>,
    answer: Option<Arc<str>>,
    flags: Map<String, Value>,
    tokens: u64,
    waited_ms: u64,
}

/// What the expectations may use besides the runs.
pub struct ExpectedOf {
    /// Number of messages. A session that was cancelled has fewer runs.
    pub messages: usize,
    /// The facts of the scenario, or why they are not known.
    pub facts: Result<Arc<Value>, Arc<str>>,
    /// Whether a live model was called; `None`: as the head of the run says.
    pub live: Option<bool>,
    /// Names of tools and agents that need not occur.
    pub listed: Vec<String>,
    /// Names of tools and agents were checked when the file was read.
    pub is_checked: bool,
}

impl ExpectedOf {
    /// Of a scenario that is run with so many messages.
    pub fn scenario(scenario: &Scenario, live: bool, messages: usize) -> Self {
        let facts = Ok(Arc::clone(&scenario.facts));
        Self { messages, facts, live: Some(live), listed: Vec::new(), is_checked: true }
    }
}

/// Runs that have ended.
pub struct ObservedRuns {
    shown: CelBindings,
    too_many_events: bool,
    /// Why no condition holds, whatever it says.
    nothing: Option<Arc<str>>,
    cut_texts: u64,
    /// Tokens of prompts and replies.
    pub tokens: u64,
    /// The outcome of the run, or of the session if there were several messages.
    pub outcome: ObservedOutcome,
}

/// The outcome of one run, or of a session.
pub enum ObservedOutcome {
    Run(Box<Outcome>),
    Session(Box<SessionOutcome>),
}

/// Whether an expectation holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectationResult {
    /// The condition.
    pub that: String,
    /// What it means, if the file says it.
    pub message: Option<String>,
    /// Its line in the file; `None`: the file expects nothing, so the run has to succeed.
    pub line: Option<usize>,
    /// Whether it holds.
    pub verdict: Verdict,
    /// What its parts are, if it does not hold.
    pub parts: Vec<ObservedPart>,
}

/// The result of an expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Holds,
    /// It is false.
    Fails,
    /// It cannot be evaluated, which fails, too: the reason.
    Invalid(String),
}

impl RunObserver {
    /// Observes runs from their start for these expectations.
    pub fn new(rows: &[Expectation]) -> Self {
        let uses_events = rows.iter().any(|it| uses_events(&it.that));
        Self {
            facts: RunFacts::default(),
            of_servers: BTreeMap::new(),
            listings: BTreeMap::new(),
            open: BTreeMap::new(),
            model: None,
            events: uses_events.then(Vec::new),
            event_bytes: 0,
            cut_texts: 0,
            warned: None,
            known: KnownFacts::default(),
            inputs: Map::new(),
            is_live: false,
            is_observed: false,
            outcomes: Vec::new(),
            answer: None,
            flags: Map::new(),
            tokens: 0,
            waited_ms: 0,
        }
    }

    /// Observes an event.
    pub fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::RunStarted(head) => {
                self.inputs.clone_from(&head.inputs);
                self.is_live = matches!(head.model, ModelLabel::Live { .. });
                self.is_observed = head.model.is_observed();
                self.model = match &head.model {
                    ModelLabel::Live { name, .. } => Some(name.clone()),
                    ModelLabel::Scripted | ModelLabel::Observed { .. } => None,
                };
            }
            EventKind::CallStarted(call) => self.call(event.span, call),
            EventKind::Warning { text } if self.is_observed => {
                let missing = text.strip_prefix(TEXTS_MISSING);
                self.cut_texts += u64::from(missing.is_some());
                if text.starts_with(SPANS_MISSING) {
                    self.lack_spans(text);
                }
            }
            kind if kind.closes().is_some() => self.call_ended(event),
            _ => {}
        }
        let Some(events) = &mut self.events else { return };
        self.cut_texts += u64::from(has_cut_text(&event.kind));
        let Ok(line) = event.to_line() else { return };
        self.event_bytes = self.event_bytes.saturating_add(line.len());
        if self.event_bytes > MAX_EVENT_BYTES {
            events.clear();
        } else if let Ok(value) = serde_json::from_str(&line) {
            events.push(value);
        }
    }

    /// Spans of the observed run are missing, for this reason.
    pub fn lack_spans(&mut self, why: &str) {
        self.warned.get_or_insert_with(|| why.into());
    }

    fn call(&mut self, span: SpanId, call: &CallStarted) {
        if call.purpose == Purpose::ListTools {
            *self.listings.entry(call.tool.clone()).or_default() += 1;
            return;
        }
        if split_name(call.tool.as_str()).is_some() {
            *self.of_servers.entry(call.tool.clone()).or_default() += 1;
        }
        let is_model = call.purpose.asks() == Asks::Model;
        let agent = match &call.purpose {
            Purpose::Contribution { role, .. } => Some(role.as_str()),
            Purpose::Task { .. } => Some(call.tool.as_str()),
            purpose => purpose.agent().map(|agent| agent.as_str()),
        };
        let last = self.facts.took_control.last().map(String::as_str);
        if let Some(name) = agent.filter(|name| last != Some(name)) {
            self.facts.took_control.push(name.to_owned());
        }
        // The calls of tools are those of the fold, which leaves out repeats.
        let mut names = vec![call.tool.to_string(), format!("tool:{}", call.tool)];
        let mut counted = Vec::new();
        if is_model && let Some(model) = call.model.as_deref().or(self.model.as_deref()) {
            counted.push(format!("model:{model}"));
        }
        // What an agent calls is not the agent.
        let is_own = !matches!(call.purpose, Purpose::Tool { .. });
        if let Some(name) = agent.filter(|_| is_own) {
            counted.push(format!("agent:{name}"));
        }
        for name in &counted {
            let calls = self.facts.calls.entry(name.clone()).or_default();
            calls.calls += u64::from(call.repeat == 0);
        }
        names.extend(counted);
        self.open.insert(span, names);
    }

    fn call_ended(&mut self, event: &Event) {
        let Some(names) = self.open.remove(&event.span) else { return };
        let [failed, lost] = match &event.kind {
            EventKind::CallFailed { reason: StopReason::ApprovalDenied(_), .. } => [0, 0],
            EventKind::CallFailed { reason: StopReason::Cancelled, .. } => [0, 1],
            EventKind::CallFailed { .. } | EventKind::CallDegraded { .. } => [1, 0],
            _ => [0, 0],
        };
        self.count_ends(names, failed, lost);
    }

    fn count_ends(&mut self, names: Vec<String>, failed: u64, lost: u64) {
        for name in names.into_iter().filter(|_| failed + lost > 0) {
            let calls = self.facts.calls.entry(name).or_default();
            calls.failed += failed;
            calls.lost += lost;
        }
    }

    /// Observes the end of a run. `false`: the run has not ended.
    pub fn end_of_run(&mut self, world: &World) -> bool {
        let Some(outcome) = world.outcome() else { return false };
        for names in std::mem::take(&mut self.open).into_values() {
            self.count_ends(names, 0, 1);
        }
        for row in world.tools.rows() {
            let listings = self.listings.get(row.name()).copied().unwrap_or_default();
            let calls = row.tally.calls.saturating_sub(listings);
            self.add_calls(row.name(), calls, row.head.is_tool());
        }
        // Those that share the limits of their server have no row of their own.
        for (tool, calls) in std::mem::take(&mut self.of_servers) {
            if world.tools.get(tool.as_str()).is_none() {
                self.add_calls(&tool, calls, true);
            }
        }
        self.listings.clear();
        if let (Some(agents), false) = (world.agents(), self.is_observed) {
            for row in &agents.agents {
                let calls = self.facts.calls.entry(format!("agent:{}", row.name)).or_default();
                calls.calls = row.turns.into();
            }
        }
        for (person, times) in &world.questions.asked_of {
            *self.facts.asked.entry(person.to_string()).or_default() += times;
        }
        self.facts.approved.extend(world.questions.approved.keys().map(ToString::to_string));
        self.waited_ms += world.questions.waited_ms();
        self.answer = world.progress.answer.clone();
        let flags = world.settings.flags.iter();
        self.flags = flags.map(|flag| (flag.name.to_string(), flag.on.into())).collect();
        let used = outcome.usage.tokens;
        self.tokens += used.prompt_tokens + used.completion_tokens;
        if let Some(observed) = world.observed() {
            self.known = known_facts(world, observed, self.warned.clone());
        }
        self.outcomes.push(outcome);
        true
    }

    fn add_calls(&mut self, tool: &ToolName, calls: u64, is_tool: bool) {
        let prefixed = (is_tool && tool.as_str() != "llm").then(|| format!("tool:{tool}"));
        for name in prefixed.into_iter().chain([tool.to_string()]) {
            self.facts.calls.entry(name).or_default().calls += calls;
        }
    }

    /// The runs, after the last of them. `None`: no run has ended.
    pub fn finish(mut self, of: ExpectedOf) -> Option<ObservedRuns> {
        let mut shown = CelBindings::default();
        let outcome = match of.messages {
            1 => ObservedOutcome::Run(Box::new(self.outcomes.pop()?)),
            messages => {
                let session = SessionOutcome::new(self.outcomes, messages);
                ObservedOutcome::Session(Box::new(session))
            }
        };
        let mut value = outcome.value();
        self.facts.cited = cited(&value);
        (self.facts.listed, self.facts.is_checked) = (of.listed, of.is_checked);
        let known = self.known;
        let cost = value.pointer("/usage/cost_usd").cloned().unwrap_or_default();
        let mut bind = |name: &'static str, value: Value| {
            if !known.missing.iter().any(|(missing, _)| *missing == name) {
                shown.bind_shared(name, Arc::new(value));
            }
        };
        for name in ["status", "stop_reason", "elapsed_ms"] {
            bind(name, value.get(name).cloned().unwrap_or_default());
        }
        bind("cost_usd", cost);
        bind("answer", json!(self.answer));
        bind("tokens", json!(self.tokens));
        if let Some(events) = self.events {
            bind("events", Value::Array(events));
        }
        if self.is_observed {
            self.facts.calls = known.calls;
            self.facts.took_control = known.took_control;
            self.facts.incomplete = known.incomplete;
        } else {
            bind("degraded", value.get("degraded").cloned().unwrap_or_default());
            bind("waited_ms", json!(self.waited_ms));
            bind("live", json!(of.live.unwrap_or(self.is_live)));
            bind("inputs", Value::Object(self.inputs));
            bind("flags", Value::Object(self.flags));
            match of.facts {
                Ok(facts) => shown.bind_shared("facts", facts),
                Err(why) => shown.set_missing("facts", why),
            }
        }
        for (path, why) in known.missing {
            if let Some(path) = path.strip_prefix("outcome.") {
                remove(&mut value, path);
            }
            shown.set_missing(path, why);
        }
        shown.bind_shared("outcome", Arc::new(value));
        shown.set_run_facts(Arc::new(self.facts));
        Some(ObservedRuns {
            shown,
            too_many_events: self.event_bytes > MAX_EVENT_BYTES,
            nothing: known.nothing,
            cut_texts: self.cut_texts,
            tokens: self.tokens,
            outcome,
        })
    }
}

/// Removes a field, or one inside a field.
fn remove(from: &mut Value, path: &str) {
    let (first, rest) = path.split_once('.').map_or((path, None), |(a, b)| (a, Some(b)));
    match rest {
        Some(rest) => {
            if let Some(inner) = from.get_mut(first) {
                remove(inner, rest);
            }
        }
        None => {
            from.as_object_mut().and_then(|fields| fields.remove(first));
        }
    }
}

impl ObservedRuns {
    /// Evaluates expectations, in the file's order. If there are none, the runs have to succeed.
    pub fn judge(&self, rows: &[Expectation]) -> Vec<ExpectationResult> {
        if rows.is_empty() {
            return Condition::compile(SUCCEEDS)
                .map(|that| self.result(&that, None, None))
                .into_iter()
                .collect();
        }
        let result = |Expectation { that, message, line }: &Expectation| {
            self.result(that, message.clone(), Some(*line))
        };
        rows.iter().map(result).collect()
    }

    fn result(
        &self,
        that: &Condition,
        message: Option<String>,
        line: Option<usize>,
    ) -> ExpectationResult {
        let verdict = match self.obstacle(that) {
            Some(why) => Verdict::Invalid(why),
            None => match that.holds(&self.shown) {
                Ok(true) => Verdict::Holds,
                Ok(false) => Verdict::Fails,
                Err(error) => Verdict::Invalid(error.to_string()),
            },
        };
        let parts = match verdict {
            Verdict::Fails | Verdict::Invalid(_) if self.nothing.is_none() => {
                that.explain(&self.shown)
            }
            _ => Vec::new(),
        };
        ExpectationResult { that: that.text().to_owned(), message, line, verdict, parts }
    }

    /// Why a condition is not evaluated at all.
    fn obstacle(&self, that: &Condition) -> Option<String> {
        if let Some(why) = &self.nothing {
            return Some(why.to_string());
        }
        if self.too_many_events && uses_events(that) {
            let most = MAX_EVENT_BYTES >> 20;
            return Some(format!("`events` are more than {most} MiB; use calls() or outcome"));
        }
        if self.cut_texts > 0 && uses_events(that) && reads_texts(that) {
            let events = count_noun(self.cut_texts, "event");
            return Some(format!(
                "{events} without the whole text: what was left out is not known"
            ));
        }
        // The whole of something that lacks a part.
        let whole = |name: &Name<'_>| self.shown.missing_inside(&name.path.join(".")).cloned();
        that.names().iter().find_map(whole).map(|why| why.to_string())
    }
}

impl ObservedOutcome {
    /// Why the run ended, or the first stopped run of the session.
    pub fn stop_reason(&self) -> &StopReason {
        match self {
            Self::Run(run) => &run.stop_reason,
            Self::Session(session) => &session.stop_reason,
        }
    }

    /// Milliseconds, pauses not counted.
    pub fn elapsed_ms(&self) -> u64 {
        match self {
            Self::Run(run) => run.elapsed_ms,
            Self::Session(session) => session.elapsed_ms,
        }
    }

    /// The estimated cost in US dollars, if known.
    pub fn cost_usd(&self) -> Option<f64> {
        match self {
            Self::Run(run) => run.usage.cost_usd,
            Self::Session(session) => session.usage.cost_usd,
        }
    }

    /// The outcomes of the runs, in the order of the messages.
    pub fn runs(&self) -> &[Outcome] {
        match self {
            Self::Run(run) => std::slice::from_ref(&**run),
            Self::Session(session) => &session.session,
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Run(run) => serde_json::to_value(run),
            Self::Session(session) => serde_json::to_value(session),
        }
        .unwrap_or_default()
    }
}

/// The addresses of an outcome's citations.
fn cited(outcome: &Value) -> Vec<String> {
    let all = outcome.get("citation_details").and_then(Value::as_array);
    let urls = all.into_iter().flatten().filter_map(|it| it.get("url")?.as_str());
    urls.map(str::to_owned).collect()
}

fn uses_events(condition: &Condition) -> bool {
    condition.names().iter().any(|name| name.path.first() == Some(&"events"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, EngineSettings, Launch};
    use crate::scenario::spec::ScenarioOrigin;
    use crate::scenario::{load, shipped};

    /// The results of these expectations about an undisturbed run of a shipped scenario.
    async fn results(name: &str, rows: &[&str]) -> Vec<(Verdict, Vec<(String, String)>)> {
        let one = shipped().iter().find(|it| it.name == name).expect("shipped");
        let rows = rows.iter().map(|that| format!("\n[[expect]]\nthat = '''{that}'''\n"));
        let text = one.text.split("\n[[expect]]").next().expect("a text").to_owned();
        let text = text + &rows.collect::<String>();
        let origin = ScenarioOrigin::File("it.toml".into());
        let scenario = Arc::new(load(&text, origin, &[]).expect("valid"));
        let engine = Engine::new(EngineSettings::default());
        let run = engine.start(Launch::scripted(Arc::clone(&scenario), false));
        let mut observer = RunObserver::new(&scenario.expectations);
        let (mut world, mut reader, mut batch) = (World::new(), run.first_reader(), Vec::new());
        while reader.next_batch(&mut batch, 64).await > 0 {
            for event in batch.drain(..) {
                world.apply(&event);
                observer.event(&event);
            }
        }
        assert!(observer.end_of_run(&world));
        let of = ExpectedOf::scenario(&scenario, false, 1);
        let observed = observer.finish(of).expect("an outcome");
        let parts = |it: ExpectationResult| {
            (it.verdict, it.parts.into_iter().map(|it| (it.part, it.value)).collect())
        };
        observed.judge(&scenario.expectations).into_iter().map(parts).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_holds_needs_no_explanation() {
        let rows = [
            "stop_reason == 'success' && status == 'ok' && !degraded && !live",
            "outcome.final_decision == 'go' && outcome.rounds_used == 3",
            "calls('llm') >= 10 && calls('llm') <= 20",
            "order('demand_analyst', 'risk_analyst')",
            "events.exists(e, e.kind == 'flag.changed') || flags.legal_analyst == false",
            "answer.contains('GO') && elapsed_ms > 1000 && tokens > 0",
            "inputs.region == 'US' && cost_usd == null",
        ];
        for (row, result) in rows.iter().zip(results("checkout-launch", &rows).await) {
            assert_eq!(result, (Verdict::Holds, Vec::new()), "{row}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn explains_failed_expectation_by_parts() {
        let rows = [
            "outcome.final_decision == 'no_go' && calls('llm') < 3",
            "cost_usd < 0.05",
            "outcome.final_decison == 'go'",
            "outcome.rounds_used",
            "has(outcome.error)",
            "!events.exists(e, e.kind == 'round.closed')",
            "events.all(e, e.kind != 'round.closed')",
            "outcome.history.map(it, it.round) == [1] && events.all(e, e.v == 2)",
            "!events.all(e, e.v == 2)",
        ];
        let results = results("checkout-launch", &rows).await;
        let part = |part: &str, value: &str| (part.to_owned(), value.to_owned());
        assert_eq!(results[0].0, Verdict::Fails);
        assert_eq!(
            results[0].1,
            [part("outcome.final_decision", "\"go\""), part("calls(\"llm\")", "10")]
        );
        assert!(matches!(&results[1].0, Verdict::Invalid(why) if why.contains("null")));
        assert_eq!(results[1].1, [part("cost_usd", "null")]);
        assert!(matches!(&results[2].0, Verdict::Invalid(why) if why.contains("final_decison")));
        assert!(matches!(&results[3].0, Verdict::Invalid(why) if why.contains("int")));
        assert_eq!((&results[4].0, results[4].1[0].1.as_str()), (&Verdict::Fails, "false"));
        // Of a list, the element that decides.
        assert_eq!(results[7].1[0], part("outcome.history.map(…)", "[1,2,3]"));
        assert_eq!(results[8].1, [part("events.all(…)", "true")]);
        for (_, parts) in &results[5..7] {
            let (part, value) = &parts[0];
            assert!(part.starts_with("events[") && value.contains("round.closed"), "{part}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn explains_missing_outcome_of_stopped_run() {
        let results = results("checkout-deadlock", &["outcome.rounds_used == 3"]).await;
        let (part, value) = &results[0].1[0];
        assert_eq!(part, "outcome.rounds_used");
        assert!(value.starts_with("missing in the outcome of a run that was stopped; there are"));
    }

    #[tokio::test(start_paused = true)]
    async fn requires_success_without_expectations() {
        let results = results("ping-pong", &[]).await;
        assert_eq!(results.len(), 1);
        assert_eq!(results[0].0, Verdict::Fails);
    }
}
