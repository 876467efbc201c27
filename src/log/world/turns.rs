//! The shape of an observed run: who works when, and what led to it. The framework says it: a handoff, a call of a
//! tool, the steps of a graph, a span inside another one. Where it says nothing, the times say it, and that is marked.

use std::collections::HashMap;
use std::sync::Arc;

use super::RunFold;
use super::observed::{Observed, ObservedSpan};
use crate::log::event::{Elapsed, SpanId};
use crate::log::facts::observed::{SpanAbout, SpanRole};

/// The turns of agents and nodes, and a lane for each actor.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// In the order of the tree: what runs inside of an actor follows it. Else by their first starts.
    pub lanes: Vec<Lane>,
    /// In the order of their starts.
    pub turns: Vec<Turn>,
    /// Turns beyond the limit.
    pub left_out: usize,
}

/// An agent or a node, in one place of the tree.
#[derive(Clone, Debug)]
pub struct Lane {
    pub name: Arc<str>,
    pub role: SpanRole,
    /// How many actors are around it.
    pub depth: u16,
    /// Its turns, by index.
    pub turns: Vec<usize>,
    /// The lane around it.
    pub around: Option<usize>,
}

/// A turn of an agent or a node.
#[derive(Clone, Debug)]
pub struct Turn {
    pub span: SpanId,
    pub lane: usize,
    /// When it began and ended, in the time of the log.
    pub from: Elapsed,
    pub until: Option<Elapsed>,
    pub led: Led,
    /// The turns that led to it, by index.
    pub before: Vec<usize>,
    /// Whether others began beside it, for the same reason.
    pub is_fork: bool,
    /// Whether only the times say what led to it.
    pub by_time: bool,
}

/// What led to a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Led {
    /// Nothing that is known: it begins the trace, or the work inside of another turn.
    Start,
    /// Others had ended.
    Next,
    /// Another agent handed over to it.
    Handoff,
    /// Another agent called it, as a tool.
    Consult,
}

/// Most turns with a place in the shape.
const MAX_TURNS: usize = 20_000;

/// Deepest spans that are looked through for the turn around one.
const MAX_DEPTH: usize = 64;

/// The actors that work beside each other in a place of the tree.
#[derive(Default)]
struct Wave {
    turns: Vec<usize>,
    /// Those that led to them.
    before: Vec<usize>,
    /// The step of the graph that they are.
    step: Option<u64>,
}

impl Shape {
    /// The shape of a run, as far as it is known.
    pub fn of(observed: &Observed, run: &RunFold) -> Self {
        let is_turn = |span: &&ObservedSpan| {
            let of_actor = matches!(span.about.role, SpanRole::Agent | SpanRole::Node);
            of_actor && !span.about.name.is_empty()
        };
        let mut spans: Vec<(&ObservedSpan, (Elapsed, Option<Elapsed>))> = observed
            .spans
            .iter()
            .filter(is_turn)
            .take(MAX_TURNS)
            .map(|span| (span, observed.times(span, run)))
            .collect();
        let all = observed.spans.iter().filter(is_turn).count();
        spans.sort_by_key(|(span, (from, _))| (*from, span.id));
        let mut shape = Self { left_out: all - spans.len(), ..Self::default() };
        let mut handoffs = Handoffs::of(observed, run);
        let mut places: HashMap<SpanId, usize> = HashMap::new();
        let mut lanes: HashMap<(Option<usize>, Arc<str>), usize> = HashMap::new();
        let mut waves: HashMap<Option<usize>, Wave> = HashMap::new();
        for (span, (from, until)) in spans {
            let (around, called) = around(span.id, observed, run, &places);
            let around_lane = around.and_then(|at| shape.turns.get(at)).map(|turn| turn.lane);
            let name = actor(span);
            let lane = *lanes.entry((around_lane, Arc::clone(&name))).or_insert_with(|| {
                let around = around_lane.and_then(|at| shape.lanes.get(at));
                let depth = around.map_or(0, |around| around.depth.saturating_add(1));
                let (role, turns) = (span.about.role, Vec::new());
                shape.lanes.push(Lane {
                    name: Arc::clone(&name),
                    role,
                    depth,
                    turns,
                    around: around_lane,
                });
                shape.lanes.len() - 1
            });
            let place = shape.turns.len();
            let handed = handoffs.take(&name, from, &shape);
            let wave = waves.entry(around).or_default();
            let is_beside = |at: &usize| {
                let of = shape.turns.get(*at);
                of.is_some_and(|of| {
                    of.until.is_none_or(|until| until > from)
                        || of.lane == lane && is_twin(of, from)
                })
            };
            let has_steps = span.about.step.is_some() && wave.step.is_some();
            let is_same = match has_steps {
                true => span.about.step == wave.step,
                false => wave.turns.iter().any(is_beside),
            };
            let (led, before) = if let Some(by) = handed {
                *wave = Wave { turns: vec![place], before: by.into_iter().collect(), step: None };
                (Led::Handoff, wave.before.clone())
            } else if called {
                (Led::Consult, around.into_iter().collect())
            } else if is_same && !wave.turns.is_empty() {
                wave.turns.push(place);
                let led = if wave.before.is_empty() { Led::Start } else { Led::Next };
                (led, wave.before.clone())
            } else {
                let before = std::mem::take(&mut wave.turns);
                let led = if before.is_empty() { Led::Start } else { Led::Next };
                *wave = Wave { turns: vec![place], before, step: span.about.step };
                (led, wave.before.clone())
            };
            let by_time = led == Led::Next && !has_steps;
            let is_fork = !called && wave.turns.len() > 1;
            let beside = wave.turns.clone();
            let turn = Turn { span: span.id, lane, from, until, led, before, is_fork, by_time };
            shape.turns.push(turn);
            if is_fork {
                for at in beside {
                    shape.turns.get_mut(at).into_iter().for_each(|turn| turn.is_fork = true);
                }
            }
            if let Some(lane) = shape.lanes.get_mut(lane) {
                lane.turns.push(place);
            }
            places.insert(span.id, place);
        }
        shape.sort_lanes();
        shape
    }

    /// Puts what runs inside of an actor after it.
    fn sort_lanes(&mut self) {
        let mut inside: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for (at, lane) in self.lanes.iter().enumerate() {
            inside.entry(lane.around).or_default().push(at);
        }
        let mut next: Vec<usize> = inside.remove(&None).unwrap_or_default();
        next.reverse();
        let mut order = Vec::with_capacity(self.lanes.len());
        while let Some(at) = next.pop() {
            order.push(at);
            next.extend(inside.remove(&Some(at)).unwrap_or_default().into_iter().rev());
        }
        let mut places = vec![0; self.lanes.len()];
        for (place, at) in order.iter().enumerate() {
            if let Some(known) = places.get_mut(*at) {
                *known = place;
            }
        }
        let place_of = |at: usize| places.get(at).copied().unwrap_or(at);
        self.turns.iter_mut().for_each(|turn| turn.lane = place_of(turn.lane));
        let lanes = order.iter().filter_map(|at| self.lanes.get(*at).cloned());
        self.lanes = lanes.map(|lane| Lane { around: lane.around.map(place_of), ..lane }).collect();
    }

    /// Whether the diagram of handoffs says it best: the framework reports them, and nothing runs beside anything else.
    pub fn is_of_handoffs(&self) -> bool {
        let is_of_control =
            |turn: &Turn| matches!(turn.led, Led::Start | Led::Handoff | Led::Consult);
        self.turns.iter().any(|turn| turn.led == Led::Handoff)
            && self.turns.iter().all(|turn| is_of_control(turn) && !turn.is_fork)
    }

    /// Whether an earlier turn in the same lane has ended: the work goes round.
    pub fn is_again(&self, place: usize) -> bool {
        let Some(turn) = self.turns.get(place) else { return false };
        let before = self.lanes.get(turn.lane).and_then(|lane| {
            lane.turns.iter().rev().find(|at| **at < place).and_then(|at| self.turns.get(*at))
        });
        before.is_some_and(|before| before.until.is_some_and(|until| until <= turn.from))
    }

    /// The turns that this one led to.
    pub fn after(&self, place: usize) -> impl Iterator<Item = usize> {
        let turns = self.turns.iter().enumerate().skip(place + 1);
        turns.filter(move |(_, turn)| turn.before.contains(&place)).map(|(at, _)| at)
    }
}

/// Calls of one actor that begin this soon after each other are one fork, though one has ended: of thirty that
/// wait for few slots.
fn is_twin(before: &Turn, from: Elapsed) -> bool {
    before.is_fork && before.until.is_some_and(|until| until <= from)
}

/// The name of who works in a turn.
fn actor(span: &ObservedSpan) -> Arc<str> {
    match (&span.about.agent, span.about.role) {
        (Some(agent), SpanRole::Agent) => Arc::clone(agent),
        _ => Arc::clone(&span.about.name),
    }
}

/// The turn around a span, and whether a tool is between them.
fn around(
    span: SpanId,
    observed: &Observed,
    run: &RunFold,
    places: &HashMap<SpanId, usize>,
) -> (Option<usize>, bool) {
    let (mut at, mut called) = (span, false);
    for _ in 0..MAX_DEPTH {
        at = match run.spans.get(at).map(|span| span.parent) {
            None | Some(SpanId::RUN) => break,
            Some(parent) => parent,
        };
        if let Some(place) = places.get(&at) {
            return (Some(*place), called);
        }
        called |= observed.span(at).is_some_and(|it| it.about.role == SpanRole::Tool);
    }
    (None, false)
}

/// The handoffs that no turn has followed yet.
struct Handoffs {
    /// The agents that take over, and when; the latest last.
    open: Vec<(Arc<str>, Elapsed)>,
}

impl Handoffs {
    fn of(observed: &Observed, run: &RunFold) -> Self {
        let found = observed.spans.iter().filter_map(|span| {
            let to = handed_to(&span.about)?;
            Some((to, observed.times(span, run).0))
        });
        Self { open: found.collect() }
    }

    /// The turn that handed over to this actor before this time. `Some(None)`: who did is not known.
    fn take(&mut self, to: &str, from: Elapsed, shape: &Shape) -> Option<Option<usize>> {
        let place =
            self.open.iter().position(|(name, at)| is_same_name(name, to) && *at <= from)?;
        let (_, at) = self.open.remove(place);
        // The latest turn that was open then.
        let by = shape.turns.iter().enumerate().rev();
        let is_open = |turn: &Turn| turn.from <= at && turn.until.is_none_or(|until| until >= at);
        Some(by.into_iter().find(|(_, turn)| is_open(turn)).map(|(place, _)| place))
    }
}

/// Frameworks name a tool for each handoff after the agent, in their own spelling.
pub(super) fn is_same_name(one: &str, other: &str) -> bool {
    let plain = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    one == other || plain(one) == plain(other)
}

/// The agent that a span hands over to: it says so, or it is the tool by which frameworks do it.
pub(super) fn handed_to(about: &SpanAbout) -> Option<Arc<str>> {
    if about.role == SpanRole::Handoff {
        return about.to.clone();
    }
    let to = about.name.strip_prefix("transfer_to_").filter(|_| about.role == SpanRole::Tool)?;
    if to != "agent" {
        return Some(to.into());
    }
    let args: serde_json::Value = serde_json::from_str(about.input.as_deref()?).ok()?;
    args.get("agent_name")?.as_str().map(Into::into)
}
