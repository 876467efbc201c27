//! The shape of an observed run: which agents and nodes work when, and what led to each turn. The framework says it:
//! a handoff, a call of a tool, the steps of a graph, a span inside another one. Otherwise the times say it, and the turn is
//! marked as such.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::RunFold;
use super::observed::{Observed, ObservedSpan};
use crate::log::event::{Elapsed, SpanId};
use crate::log::facts::observed::{SpanAbout, SpanRole};

/// The turns of agents and nodes, and a lane for each actor.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// By the start of their first turn; the actors inside another one follow it.
    pub lanes: Vec<Lane>,
    /// In the order of their starts.
    pub turns: Vec<Turn>,
    /// The number of turns beyond the limit.
    pub left_out: usize,
    /// The index of the turn of each span.
    places: HashMap<SpanId, usize>,
}

/// An agent or a node, at one place of the tree.
#[derive(Clone, Debug)]
pub struct Lane {
    pub name: Arc<str>,
    pub role: SpanRole,
    /// The number of actors around it.
    pub depth: u16,
    /// The indexes of its turns.
    pub turns: Vec<usize>,
    /// The lane around it.
    around: Option<usize>,
}

/// A turn of an agent or a node.
#[derive(Clone, Debug)]
pub struct Turn {
    pub span: SpanId,
    /// The index of its lane.
    pub lane: usize,
    /// Its start and its end, in the time of the log.
    pub from: Elapsed,
    pub until: Option<Elapsed>,
    pub led: Led,
    /// The indexes of the turns that led to it, ascending.
    pub before: Arc<[usize]>,
    pub fork: Fork,
    /// Whether its actor has had an earlier turn, which has ended.
    pub is_again: bool,
    /// Whether only the times say what led to it.
    pub by_time: bool,
}

/// What led to a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Led {
    /// Not known, or nothing: it is the first turn of the trace, or inside of another turn.
    Start,
    /// Other turns ended.
    Next,
    /// Another agent handed over to it.
    Handoff,
    /// A tool of another agent called it.
    Consult,
}

/// Whether a turn is one of several that the same turns led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// It is the only one.
    No,
    /// It is the first one of its actor.
    First,
    /// Its actor has an earlier one.
    More,
}

/// Maximum number of turns in the shape.
const MAX_TURNS: usize = 20_000;

/// Maximum number of spans between a turn and the turn around it.
const MAX_DEPTH: usize = 64;

/// The latest turns at one place of the tree that the same turns led to.
#[derive(Default)]
struct Wave {
    turns: Vec<usize>,
    before: Arc<[usize]>,
    /// The step of the graph that they are.
    step: Option<u64>,
    /// When the last of them ends; `None`: one is open.
    until: Option<Elapsed>,
    lanes: HashSet<usize>,
}

impl Wave {
    fn of(before: Arc<[usize]>, step: Option<u64>) -> Self {
        Self { before, step, until: Some(Elapsed(0)), ..Self::default() }
    }

    /// Whether a turn belongs to it: it is of the same step, or begins before the others have ended. By time, the calls
    /// of one actor in a fork belong together, too, though some wait until others have ended.
    fn has(&self, step: Option<u64>, from: Elapsed, lane: usize) -> bool {
        if self.turns.is_empty() {
            return false;
        }
        if step.is_some() && self.step.is_some() {
            return step == self.step;
        }
        let is_call_of_fork = self.turns.len() > 1 && self.lanes.contains(&lane);
        self.until.is_none_or(|until| until > from) || is_call_of_fork
    }

    fn add(&mut self, place: usize, lane: usize, until: Option<Elapsed>) {
        self.until = self.until.zip(until).map(|(one, other)| one.max(other));
        self.turns.push(place);
        self.lanes.insert(lane);
    }
}

impl Shape {
    /// The shape of a run.
    pub fn of(observed: &Observed, run: &RunFold) -> Self {
        let is_turn = |span: &&ObservedSpan| {
            let of_actor = matches!(span.about.role, SpanRole::Agent | SpanRole::Node);
            of_actor && !span.about.name.is_empty()
        };
        let all = observed.spans.iter().filter(is_turn).count();
        let mut spans: Vec<(&ObservedSpan, (Elapsed, Option<Elapsed>))> = observed
            .spans
            .iter()
            .filter(is_turn)
            .take(MAX_TURNS)
            .map(|span| (span, observed.times(span, run)))
            .collect();
        spans.sort_by_key(|(span, (from, _))| (*from, span.id));
        let mut shape = Self { left_out: all - spans.len(), ..Self::default() };
        let mut handoffs = Handoffs::of(observed, run);
        let mut lanes: HashMap<(Option<usize>, Arc<str>), usize> = HashMap::new();
        let mut waves: HashMap<Option<usize>, Wave> = HashMap::new();
        for (span, times) in spans {
            let (around, is_called) = shape.around(span.id, observed, run);
            let lane = shape.lane_of(span, around, &mut lanes);
            let handed = handoffs.take(&actor(span), times.0, &shape);
            let wave = waves.entry(around).or_default();
            shape.add(span, times, lane, (around.filter(|_| is_called), handed), wave);
        }
        shape.sort_lanes();
        shape
    }

    /// The lane of the actor of a span.
    fn lane_of(
        &mut self,
        span: &ObservedSpan,
        around: Option<usize>,
        lanes: &mut HashMap<(Option<usize>, Arc<str>), usize>,
    ) -> usize {
        let around = around.and_then(|at| self.turns.get(at)).map(|turn| turn.lane);
        let name = actor(span);
        *lanes.entry((around, Arc::clone(&name))).or_insert_with(|| {
            let depth = around.and_then(|at| self.lanes.get(at));
            let depth = depth.map_or(0, |around| around.depth.saturating_add(1));
            let (role, turns) = (span.about.role, Vec::new());
            self.lanes.push(Lane { name, role, depth, turns, around });
            self.lanes.len() - 1
        })
    }

    /// Adds the next turn. `caller`: the turn whose tool called this one. `handed`: set after a handoff, with the turn that
    /// handed over, if it is known.
    fn add(
        &mut self,
        span: &ObservedSpan,
        (from, until): (Elapsed, Option<Elapsed>),
        lane: usize,
        (caller, handed): (Option<usize>, Option<Option<usize>>),
        wave: &mut Wave,
    ) {
        let (place, step) = (self.turns.len(), span.about.step);
        let has_steps = step.is_some() && wave.step.is_some();
        let is_more = wave.lanes.contains(&lane);
        let (mut led, mut fork) = (Led::Consult, Fork::No);
        let before: Arc<[usize]> = match (handed, caller) {
            (Some(by), _) => {
                led = Led::Handoff;
                *wave = Wave::of(by.into_iter().collect(), None);
                wave.add(place, lane, until);
                Arc::clone(&wave.before)
            }
            (None, Some(caller)) => [caller].into(),
            (None, None) => {
                match wave.has(step, from, lane) {
                    true => fork = if is_more { Fork::More } else { Fork::First },
                    false => *wave = Wave::of(std::mem::take(&mut wave.turns).into(), step),
                }
                // The first of them was alone until now.
                if let [first] = *wave.turns
                    && let Some(first) = self.turns.get_mut(first)
                {
                    first.fork = Fork::First;
                }
                wave.add(place, lane, until);
                led = if wave.before.is_empty() { Led::Start } else { Led::Next };
                Arc::clone(&wave.before)
            }
        };
        let by_time = led == Led::Next && !has_steps;
        let earlier = self.lanes.get(lane).and_then(|lane| self.turns.get(*lane.turns.last()?));
        let is_again = earlier.is_some_and(|it| it.until.is_some_and(|until| until <= from));
        self.turns.push(Turn {
            span: span.id,
            lane,
            from,
            until,
            led,
            before,
            fork,
            is_again,
            by_time,
        });
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.turns.push(place);
        }
        self.places.insert(span.id, place);
    }

    /// The turn around a span, and whether a tool is between them.
    fn around(&self, span: SpanId, observed: &Observed, run: &RunFold) -> (Option<usize>, bool) {
        let (mut at, mut is_called) = (span, false);
        for _ in 0..MAX_DEPTH {
            at = match run.spans.get(at).map(|span| span.parent) {
                None | Some(SpanId::RUN) => break,
                Some(parent) => parent,
            };
            if let Some(place) = self.places.get(&at) {
                return (Some(*place), is_called);
            }
            is_called |= observed.span(at).is_some_and(|it| it.about.role == SpanRole::Tool);
        }
        (None, false)
    }

    /// Moves the lanes of actors inside another one below it.
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

    /// The index of the turn that a span is, or is inside of.
    pub fn turn_of(&self, span: SpanId, run: &RunFold) -> Option<usize> {
        let parent = |at: &SpanId| run.spans.get(*at).map(|span| span.parent);
        let around = std::iter::successors(Some(span), parent).take(MAX_DEPTH);
        around.take_while(|at| *at != SpanId::RUN).find_map(|at| self.places.get(&at).copied())
    }

    /// Whether the diagram of hops shows it best: the framework reports handoffs, and all turns are one after another.
    pub fn is_of_handoffs(&self) -> bool {
        let has_handoffs = self.turns.iter().any(|turn| turn.led == Led::Handoff);
        has_handoffs && self.turns.iter().all(|turn| turn.led != Led::Next && turn.fork == Fork::No)
    }

    /// The indexes of the turns before and after a turn.
    pub fn neighbours(&self, place: Option<usize>) -> HashSet<usize> {
        let turn = place.and_then(|place| Some((place, self.turns.get(place)?)));
        let Some((place, turn)) = turn else { return HashSet::new() };
        turn.before.iter().copied().chain(self.after(place)).collect()
    }

    /// The indexes of the turns that this one led to.
    pub fn after(&self, place: usize) -> impl Iterator<Item = usize> {
        let turns = self.turns.iter().enumerate().skip(place + 1);
        let is_after = move |(_, turn): &(usize, &Turn)| turn.before.binary_search(&place).is_ok();
        turns.filter(is_after).map(|(at, _)| at)
    }
}

/// The name of who works in a turn.
fn actor(span: &ObservedSpan) -> Arc<str> {
    match (&span.about.agent, span.about.role) {
        (Some(agent), SpanRole::Agent) => Arc::clone(agent),
        _ => Arc::clone(&span.about.name),
    }
}

/// The handoffs that no turn has followed yet: when they were made, by the name of the agent that takes over.
struct Handoffs(HashMap<String, VecDeque<Elapsed>>);

impl Handoffs {
    fn of(observed: &Observed, run: &RunFold) -> Self {
        let mut open: HashMap<String, VecDeque<Elapsed>> = HashMap::new();
        for span in observed.spans.iter() {
            if let Some(to) = handed_to(&span.about) {
                open.entry(plain_name(&to)).or_default().push_back(observed.times(span, run).0);
            }
        }
        Self(open)
    }

    /// The turn that handed over to this agent before this time. `None`: no handoff; `Some(None)`: that turn is not known.
    fn take(&mut self, to: &str, from: Elapsed, shape: &Shape) -> Option<Option<usize>> {
        if self.0.is_empty() {
            return None;
        }
        let open = self.0.get_mut(&plain_name(to))?;
        let at = *open.front().filter(|at| **at <= from)?;
        open.pop_front();
        let is_open = |turn: &Turn| turn.from <= at && turn.until.is_none_or(|until| until >= at);
        let mut latest = shape.turns.iter().enumerate().rev();
        Some(latest.find(|(_, turn)| is_open(turn)).map(|(place, _)| place))
    }
}

/// The name of an agent without what frameworks change in the name of its tool: case, blanks and punctuation.
pub(super) fn plain_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The agent that takes over: a span of a handoff names it, and so does the tool by which frameworks hand over.
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
