//! The course of an observed run: the turns of its agents, and what happened in each, in its order.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::log::event::{Elapsed, SpanId, World};
use crate::log::facts::observed::{SpanAbout, SpanEnd, SpanRole};
use crate::log::world::observed::{Observed, ObservedSpan};

/// Most spans that are looked through for what is around one.
const MAX_DEPTH: usize = 64;

/// A turn of an agent.
pub struct Turn {
    /// The program's name of it.
    pub name: Arc<str>,
    pub inside: Option<usize>,
    pub about: Arc<SpanAbout>,
    pub end: Option<SpanEnd>,
    pub steps: Vec<Step>,
    pub from: Elapsed,
    pub until: Option<Elapsed>,
}

/// What happened in a turn.
pub enum Step {
    Model(Done),
    Tool(Done),
    /// Another agent was put to work; the call that did it, if it has a span.
    Consult(usize, Option<Done>),
    Handoff(Arc<SpanAbout>),
}

/// A call of a model or a tool.
#[derive(Clone)]
pub struct Done {
    pub about: Arc<SpanAbout>,
    pub end: Option<SpanEnd>,
    /// Without the calls inside of it.
    pub took: Duration,
}

impl Done {
    pub fn failed(&self) -> bool {
        self.end != Some(SpanEnd::Done)
    }

    /// Why it failed.
    pub fn error(&self) -> String {
        let error = self.about.error.as_deref().filter(|error| !error.trim().is_empty());
        let first = error.and_then(|error| error.lines().next());
        first.unwrap_or("it has not ended well").to_owned()
    }
}

/// The turns in the order of their starts, and what has no place in them, one sentence each.
pub fn turns(observed: &Observed, world: &World) -> (Vec<Turn>, Vec<String>) {
    let mut spans: Vec<&ObservedSpan> = observed.spans.iter().collect();
    let times = |span: &ObservedSpan| observed.times(span, &world.run);
    spans.sort_by_key(|span| (times(span).0, span.id));
    let parent = |id: SpanId| world.run.spans.get(id).map(|span| span.parent);
    let around = |id: SpanId| {
        std::iter::successors(parent(id), |at| parent(*at).filter(|next| next != at))
            .take(MAX_DEPTH)
    };
    let is_turn = |span: &ObservedSpan| {
        matches!(span.about.role, SpanRole::Agent | SpanRole::Node) && !span.about.name.is_empty()
    };
    let (mut turns, mut place) = (Vec::new(), HashMap::new());
    for span in spans.iter().filter(|span| is_turn(span)) {
        let (from, until) = times(span);
        place.insert(span.id, turns.len());
        turns.push(Turn {
            name: name_of(&span.about),
            inside: None,
            about: Arc::clone(&span.about),
            end: span.end,
            steps: Vec::new(),
            from,
            until,
        });
    }
    let mut left = Vec::new();
    if turns.is_empty() {
        left.push("no agent was seen: all calls are those of one agent".to_owned());
        turns.push(whole_program());
    }
    let turn_around = |id: SpanId| around(id).find_map(|at| place.get(&at).copied());
    // A tool that puts an agent to work is the consultation of it.
    let mut wrappers: HashMap<SpanId, SpanId> = HashMap::new();
    for span in spans.iter().filter(|span| is_turn(span)) {
        let tools = around(span.id).take_while(|at| !place.contains_key(at));
        let mut tools = tools.filter_map(|at| observed.span(at));
        if let Some(tool) = tools.find(|it| it.about.role == SpanRole::Tool)
            && turn_around(span.id).is_some()
        {
            wrappers.insert(tool.id, span.id);
        }
    }
    let wrapped: HashMap<SpanId, SpanId> =
        wrappers.iter().map(|(tool, turn)| (*turn, *tool)).collect();
    let mut guardrails = BTreeSet::new();
    for span in &spans {
        let done = || Done {
            about: Arc::clone(&span.about),
            end: span.end,
            took: own_time(span, &spans, observed, world),
        };
        let inside = turn_around(span.id);
        let step = match span.about.role {
            SpanRole::Agent | SpanRole::Node => {
                let (Some(own), Some(inside)) = (place.get(&span.id), inside) else { continue };
                if let Some(turn) = turns.get_mut(*own) {
                    turn.inside = Some(inside);
                }
                let by = wrapped.get(&span.id).and_then(|tool| observed.span(*tool));
                let by = by.map(|tool| Done {
                    about: Arc::clone(&tool.about),
                    end: tool.end,
                    took: Duration::ZERO,
                });
                Step::Consult(*own, by)
            }
            SpanRole::Model => Step::Model(done()),
            SpanRole::Tool | SpanRole::Retriever if wrappers.contains_key(&span.id) => continue,
            SpanRole::Tool | SpanRole::Retriever => Step::Tool(done()),
            SpanRole::Handoff => Step::Handoff(Arc::clone(&span.about)),
            SpanRole::Guardrail => {
                guardrails.insert(Arc::clone(&span.about.name));
                continue;
            }
            SpanRole::Step | SpanRole::Embedding => continue,
        };
        // What is outside of all turns belongs to the one before it.
        let (from, _) = times(span);
        let before = || turns.iter().rposition(|turn| turn.from <= from).unwrap_or(0);
        let at = inside.unwrap_or_else(before);
        if let Some(turn) = turns.get_mut(at) {
            turn.steps.push(step);
        }
    }
    for name in guardrails {
        left.push(format!("the guardrail {name} is left out"));
    }
    (turns, left)
}

/// The one turn of a program without agents.
fn whole_program() -> Turn {
    Turn {
        name: "program".into(),
        inside: None,
        about: Arc::default(),
        end: Some(SpanEnd::Done),
        steps: Vec::new(),
        from: Elapsed(0),
        until: None,
    }
}

fn name_of(about: &SpanAbout) -> Arc<str> {
    match (&about.agent, about.role) {
        (Some(agent), SpanRole::Agent) => Arc::clone(agent),
        _ => Arc::clone(&about.name),
    }
}

/// The time of a call without the tools that are reported inside of it.
fn own_time(
    span: &ObservedSpan,
    spans: &[&ObservedSpan],
    observed: &Observed,
    world: &World,
) -> Duration {
    let took = |span: &ObservedSpan| {
        let (from, until) = observed.times(span, &world.run);
        until.map_or(0, |until| until.0.saturating_sub(from.0))
    };
    let is_inside = |other: &&&ObservedSpan| {
        world.run.spans.get(other.id).is_some_and(|it| it.parent == span.id)
    };
    let inner: u64 = match span.about.role {
        SpanRole::Model => spans.iter().filter(is_inside).map(|inner| took(inner)).sum(),
        _ => 0,
    };
    Duration::from_micros(took(span).saturating_sub(inner))
}
