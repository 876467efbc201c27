//! Whether runs that have ended are as their scenario expects (`[[expect]]`). Events are observed
//! while a run is folded; the conditions are evaluated once, at its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::base::name::ToolName;
use crate::log::event::kind::Purpose;
use crate::log::event::{Event, EventKind, StopReason, World};
use crate::log::world::{Outcome, SessionOutcome};
use crate::scenario::Scenario;
use crate::scenario::cel::{CelBindings, Condition, ObservedPart, RunFacts};
use crate::scenario::spec::Expectation;
use crate::scenario::tools::mcp::split_name;

/// Most bytes of events that conditions can read, as JSON lines.
const MAX_EVENT_BYTES: usize = 32 << 20;

/// What a scenario without expectations expects.
const SUCCEEDS: &str = "status == \"ok\"";

/// Observes the runs of a scenario, one per message, for its expectations.
pub struct RunObserver {
    facts: RunFacts,
    /// Calls of tools of MCP servers in the current run, by name.
    of_servers: BTreeMap<ToolName, u64>,
    /// How often each server has listed its tools in the current run.
    listings: BTreeMap<ToolName, u64>,
    /// The events as JSON, if a condition uses them.
    events: Option<Vec<Value>>,
    event_bytes: usize,
    outcomes: Vec<Outcome>,
    answer: Option<Arc<str>>,
    flags: Map<String, Value>,
    tokens: u64,
    waited_ms: u64,
}

/// The runs of a scenario that have ended.
pub struct ObservedRuns {
    shown: CelBindings,
    too_many_events: bool,
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
    /// Observes the runs of this scenario from their start.
    pub fn new(scenario: &Scenario) -> Self {
        let uses_events = scenario.expectations.iter().any(|it| uses_events(&it.that));
        Self {
            facts: RunFacts::default(),
            of_servers: BTreeMap::new(),
            listings: BTreeMap::new(),
            events: uses_events.then(Vec::new),
            event_bytes: 0,
            outcomes: Vec::new(),
            answer: None,
            flags: Map::new(),
            tokens: 0,
            waited_ms: 0,
        }
    }

    /// Observes an event.
    pub fn event(&mut self, event: &Event) {
        if let EventKind::CallStarted(call) = &event.kind {
            if call.purpose == Purpose::ListTools {
                *self.listings.entry(call.tool.clone()).or_default() += 1;
            } else if split_name(call.tool.as_str()).is_some() {
                *self.of_servers.entry(call.tool.clone()).or_default() += 1;
            }
            let name = match &call.purpose {
                Purpose::Contribution { role, .. } => Some(role.as_str()),
                Purpose::Task { .. } => Some(call.tool.as_str()),
                purpose => purpose.agent().map(|agent| agent.as_str()),
            };
            let last = self.facts.took_control.last().map(String::as_str);
            if let Some(name) = name.filter(|name| last != Some(name)) {
                self.facts.took_control.push(name.to_owned());
            }
        }
        let Some(events) = &mut self.events else { return };
        let Ok(line) = event.to_line() else { return };
        self.event_bytes = self.event_bytes.saturating_add(line.len());
        if self.event_bytes > MAX_EVENT_BYTES {
            events.clear();
        } else if let Ok(value) = serde_json::from_str(&line) {
            events.push(value);
        }
    }

    /// Observes the end of a run. `false`: the run has not ended.
    pub fn end_of_run(&mut self, world: &World) -> bool {
        let Some(outcome) = world.outcome() else { return false };
        for row in world.tools.rows() {
            let listings = self.listings.get(row.name()).copied().unwrap_or_default();
            let calls = row.tally.calls.saturating_sub(listings);
            *self.facts.calls.entry(row.name().to_string()).or_default() += calls;
        }
        // Those that share the limits of their server have no row of their own.
        for (tool, calls) in std::mem::take(&mut self.of_servers) {
            if world.tools.get(tool.as_str()).is_none() {
                *self.facts.calls.entry(tool.to_string()).or_default() += calls;
            }
        }
        self.listings.clear();
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
        self.outcomes.push(outcome);
        true
    }

    /// The runs, after the last of them. `live`: whether a live model was called; `messages`: the
    /// number of messages; a cancelled session has fewer runs. `None`: no run has ended.
    pub fn finish(
        mut self,
        scenario: &Scenario,
        live: bool,
        messages: usize,
    ) -> Option<ObservedRuns> {
        let mut shown = CelBindings::default();
        let outcome = match messages {
            1 => ObservedOutcome::Run(Box::new(self.outcomes.pop()?)),
            _ => {
                let session = SessionOutcome::new(self.outcomes, messages);
                ObservedOutcome::Session(Box::new(session))
            }
        };
        let value = outcome.value();
        self.facts.cited = cited(&value);
        for name in ["status", "stop_reason", "degraded", "elapsed_ms"] {
            shown.bind(name, value.get(name).unwrap_or(&Value::Null));
        }
        let cost = value.pointer("/usage/cost_usd").unwrap_or(&Value::Null);
        shown.bind("cost_usd", cost);
        shown.bind_shared("outcome", Arc::new(value));
        shown.bind("answer", &json!(self.answer));
        shown.bind("tokens", &json!(self.tokens));
        shown.bind("waited_ms", &json!(self.waited_ms));
        shown.bind("live", &json!(live));
        let inputs = scenario.inputs.iter();
        let inputs = inputs.map(|input| (input.name.to_string(), input.value.clone()));
        shown.bind("inputs", &Value::Object(inputs.collect()));
        shown.bind_shared("facts", Arc::clone(&scenario.facts));
        shown.bind_shared("flags", Arc::new(Value::Object(self.flags)));
        if let Some(events) = self.events {
            shown.bind_shared("events", Arc::new(Value::Array(events)));
        }
        shown.set_run_facts(Arc::new(self.facts));
        let too_many_events = self.event_bytes > MAX_EVENT_BYTES;
        Some(ObservedRuns { shown, too_many_events, tokens: self.tokens, outcome })
    }
}

impl ObservedRuns {
    /// Evaluates the expectations of the scenario, in the file's order. If it has none, its runs have
    /// to succeed.
    pub fn judge(&self, scenario: &Scenario) -> Vec<ExpectationResult> {
        if scenario.expectations.is_empty() {
            return Condition::compile(SUCCEEDS)
                .map(|that| self.result(&that, None, None))
                .into_iter()
                .collect();
        }
        let all = scenario.expectations.iter();
        all.map(|Expectation { that, message, line }| {
            self.result(that, message.clone(), Some(*line))
        })
        .collect()
    }

    fn result(
        &self,
        that: &Condition,
        message: Option<String>,
        line: Option<usize>,
    ) -> ExpectationResult {
        let verdict = if self.too_many_events && uses_events(that) {
            let most = MAX_EVENT_BYTES >> 20;
            Verdict::Invalid(format!("`events` are more than {most} MiB; use calls() or outcome"))
        } else {
            match that.holds(&self.shown) {
                Ok(true) => Verdict::Holds,
                Ok(false) => Verdict::Fails,
                Err(error) => Verdict::Invalid(error.to_string()),
            }
        };
        let parts = match verdict {
            Verdict::Holds => Vec::new(),
            Verdict::Fails | Verdict::Invalid(_) => that.explain(&self.shown),
        };
        ExpectationResult { that: that.text().to_owned(), message, line, verdict, parts }
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
        let mut observer = RunObserver::new(&scenario);
        let (mut world, mut reader, mut batch) = (World::new(), run.first_reader(), Vec::new());
        while reader.next_batch(&mut batch, 64).await > 0 {
            for event in batch.drain(..) {
                world.apply(&event);
                observer.event(&event);
            }
        }
        assert!(observer.end_of_run(&world));
        let observed = observer.finish(&scenario, false, 1).expect("an outcome");
        let parts = |it: ExpectationResult| {
            (it.verdict, it.parts.into_iter().map(|it| (it.part, it.value)).collect())
        };
        observed.judge(&scenario).into_iter().map(parts).collect()
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
