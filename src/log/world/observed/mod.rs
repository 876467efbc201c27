//! Projection of an observed run: the spans of another program, its agents and what they pass to each other,
//! its tools and models.
//!
//! The fields of its outcome are those of roundtable (docs/watch.md).

mod requests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::agents::{AgentsFold, HopKind, HopRow, HopState, LineKind, ResultEnd, TranscriptLine};
use super::chunked::Chunked;
use super::outcome::OutcomeFields;
use super::turns::{handed_to, plain_name};
use super::{EventLog, MarkKind, Projection, RunFold};
use crate::base::name::AgentName;
use crate::log::event::{
    Asks, Boundary, BoundaryId, Elapsed, Event, EventKind, Seq, SpanId, StopReason,
};
use crate::log::facts::agents::AgentsPlan;
use crate::log::facts::observed::{
    ObservedFact, ObservedPlan, SpanAbout, SpanEnd, SpanRole, TextStream, TraceAbout,
};
use crate::scenario::spec::tool::ToolCall;

/// State of an observed run.
#[derive(Clone, Debug)]
pub struct Observed {
    pub plan: Arc<ObservedPlan>,
    /// Its agents: nodes of a graph count as agents.
    pub agents: AgentsFold,
    /// Its spans, in the order in which they became known.
    pub spans: Chunked<ObservedSpan>,
    /// Its tools, in the order of their first calls.
    pub tools: Vec<CallTotals>,
    /// Its models, in the order of their first calls.
    pub models: Vec<CallTotals>,
    /// Spans that failed.
    pub failed: u64,
    /// Spans without a reported end.
    pub lost: u64,
    /// Spans that have ended.
    pub ended: u64,
    /// What its trace is about.
    pub named: Arc<TraceAbout>,
    /// The exit code of the program, or of the part that made the trace.
    pub exit_code: Option<i32>,
    /// How often a known span was reported again, perhaps in another place. While this number stays the same, the tree
    /// of spans only grows.
    pub moved: u64,
    /// The least and the greatest time of spans by the clock of the program, in microseconds.
    clock_range_us: Option<(u64, u64)>,
    /// The first and the last arrival of spans without times.
    seen_range: Option<(Elapsed, Elapsed)>,
    /// The least difference that was seen between the time of the log and the clock of the program, in
    /// microseconds: a message arrives later than it happens.
    clock_us: Option<i64>,
    /// The agent of the last turn outside of other agents.
    last_turn: Option<AgentName>,
    /// The handoffs with their messages, by the agent that has not begun its turn yet.
    handed: BTreeMap<String, Option<Arc<str>>>,
    /// Turns inside of a span that is not known yet: who called the agent is not known either.
    held: BTreeMap<SpanId, Vec<SpanId>>,
    /// The attempts of a guarded program.
    pub requests: u64,
}

/// A span of the program.
#[derive(Clone, Debug)]
pub struct ObservedSpan {
    /// Its id in the log.
    pub id: SpanId,
    /// What is known of it.
    pub about: Arc<SpanAbout>,
    /// How it ended; `None`: it is open.
    pub end: Option<SpanEnd>,
    /// Whether another span reports the same call, which is counted there.
    pub repeats_call: bool,
    /// The call in the log, if a prompt or a reply of this model was reported.
    pub call: Option<SpanId>,
    /// Its turn among those of agents, if it is one.
    hop: Option<usize>,
    /// Whether it is among the open calls of a tool or model.
    is_counted: bool,
    /// Whether it is a turn that waits for a span around it.
    is_held: bool,
    /// Whether it is a request that the span of the model around it shows.
    pub is_joined: bool,
    /// Whether the transcript has its reply.
    is_said: bool,
}

/// Whether an event is the start of a call of a model, and not of a tool.
fn is_model_call(event: &Event) -> bool {
    matches!(&event.kind, EventKind::CallStarted(it) if it.purpose.asks() == Asks::Model)
}

/// The calls of a tool or a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallTotals {
    pub name: Arc<str>,
    pub calls: u64,
    pub failed: u64,
    /// Those that have not ended.
    pub open: u64,
    /// Time of those that have ended, in microseconds.
    pub took_us: u64,
    /// Tokens of the prompts.
    pub tokens_in: u64,
    /// Tokens of the replies.
    pub tokens_out: u64,
}

impl Observed {
    /// The state at the start of a run of this program; `goal`: what it was started with.
    pub fn new(plan: Arc<ObservedPlan>, goal: &Arc<str>) -> Self {
        let agents = AgentsPlan { root: None, agents: Arc::default() };
        Self {
            agents: AgentsFold::new(agents, goal),
            plan,
            spans: Chunked::default(),
            tools: Vec::new(),
            models: Vec::new(),
            failed: 0,
            lost: 0,
            ended: 0,
            named: Arc::default(),
            exit_code: None,
            moved: 0,
            clock_range_us: None,
            seen_range: None,
            clock_us: None,
            last_turn: None,
            handed: BTreeMap::new(),
            held: BTreeMap::new(),
            requests: 0,
        }
    }

    /// The span with this id.
    pub fn span(&self, id: SpanId) -> Option<&ObservedSpan> {
        self.spans.get(self.place(id)).filter(|span| span.id == id)
    }

    /// Calls of agents, tools and models that have not ended.
    pub fn open_calls(&self) -> u64 {
        let agents = self.agents.agents.iter().map(|row| u64::from(row.running));
        agents.chain(self.tools.iter().chain(&self.models).map(|row| row.open)).sum()
    }

    /// Ids are given in the order in which spans are opened, without gaps but in a damaged log.
    fn place(&self, id: SpanId) -> usize {
        let dense = (id.0 as usize).saturating_sub(1);
        match self.spans.get(dense).is_some_and(|span| span.id == id) {
            true => dense,
            false => self.spans.partition_point(|span| span.id < id),
        }
    }

    /// The agent of the turn that contains the span.
    fn agent_of(&self, id: SpanId, about: &SpanAbout, run: &RunFold) -> AgentName {
        if let Some(agent) = &about.agent {
            return AgentName::new(short(agent));
        }
        match self.turn_around(id, run) {
            Some(turn) => turn_name(&turn.about),
            None => AgentName::new(short(&about.name)),
        }
    }

    /// The turn of an agent that a span is in.
    fn turn_around(&self, id: SpanId, run: &RunFold) -> Option<&ObservedSpan> {
        let mut at = run.spans.get(id)?.parent;
        // A file may have spans that enclose each other.
        for _ in 0..MAX_DEPTH {
            if at == SpanId::RUN {
                return None;
            }
            if let Some(turn) = self.span(at).filter(|span| span.hop.is_some() || span.is_held) {
                return Some(turn);
            }
            at = run.spans.get(at)?.parent;
        }
        None
    }

    /// Whether a tool of a turn has called what is in it.
    fn is_called(&self, id: SpanId, turn: SpanId, run: &RunFold) -> bool {
        let parent = |at: SpanId| run.spans.get(at).map(|span| span.parent);
        let inside = std::iter::successors(parent(id), |at| parent(*at)).take(MAX_DEPTH);
        let mut inside = inside.take_while(|at| *at != turn && *at != SpanId::RUN);
        inside.any(|at| self.span(at).is_some_and(|it| it.about.role == SpanRole::Tool))
    }

    /// The nearest span around this one that is open, and that only its children have named.
    fn unknown_around(&self, id: SpanId, run: &RunFold) -> Option<SpanId> {
        let mut at = id;
        for _ in 0..MAX_DEPTH {
            at = match run.spans.get(at).map(|span| span.parent) {
                None | Some(SpanId::RUN) => return None,
                Some(parent) => parent,
            };
            if self.span(at).is_some_and(|span| span.about.name.is_empty() && span.end.is_none()) {
                return Some(at);
            }
        }
        None
    }

    /// A span has become known: the turns inside of it follow.
    fn release_turns(&mut self, of: SpanId, event: &Event, run: &RunFold) {
        if let Some(held) = self.held.remove(&of) {
            let begin = |fold: &mut Self, span: &ObservedSpan| {
                fold.begin_or_hold(span.id, &span.about, event, run)
            };
            self.begin_held(held, event, begin, run);
        }
    }

    /// Begins turns in the order of their starts, and ends those that have ended in that of their ends.
    fn begin_held(
        &mut self,
        held: Vec<SpanId>,
        event: &Event,
        begin: impl Fn(&mut Self, &ObservedSpan) -> Option<usize>,
        run: &RunFold,
    ) {
        let mut turns: Vec<ObservedSpan> =
            held.into_iter().filter_map(|id| self.span(id).cloned()).collect();
        turns.sort_by_key(|span| (span.about.from_us, span.id));
        let mut ended = Vec::new();
        for span in turns {
            let hop = begin(self, &span);
            ended.extend(hop.zip(span.end).map(|(hop, end)| (hop, end, span.about)));
        }
        // Of those that end at the same time the inner one comes first.
        ended.sort_by_key(|(hop, _, about)| (about.until_us, std::cmp::Reverse(*hop)));
        for (hop, end, about) in ended {
            self.end_turn(event, hop, end, &about, run);
        }
    }

    fn open(&mut self, event: &Event, about: &Arc<SpanAbout>, at_end: bool, run: &RunFold) {
        self.see_time(event, about.from_us);
        let place = self.place(event.span);
        let known = self.spans.get(place).filter(|span| span.id == event.span);
        let before = known.map(|span| Arc::clone(&span.about));
        let is_known = before.is_some();
        self.moved += u64::from(is_known);
        let span = match is_known {
            true => {
                let Some(span) = self.spans.get_mut(place) else { return };
                Arc::make_mut(&mut span.about).add(about);
                span.clone()
            }
            // Of a damaged log: spans come in the order of their ids.
            false if place < self.spans.len() => return,
            false => {
                let about = Arc::clone(about);
                let span = ObservedSpan {
                    id: event.span,
                    about,
                    end: None,
                    repeats_call: false,
                    call: None,
                    hop: None,
                    is_counted: false,
                    is_held: false,
                    is_joined: false,
                    is_said: false,
                };
                self.spans.push(span.clone());
                span
            }
        };
        let (about, is_new) = (span.about, span.hop.is_none() && !span.is_held);
        // What it is may be reported after a child has named it.
        let is_first = match &before {
            Some(before) => before.name.is_empty() || before.role != about.role,
            None => true,
        };
        match about.role {
            SpanRole::Agent | SpanRole::Node if is_new && !about.name.is_empty() => {
                if at_end {
                    self.begin_or_hold(event.span, &about, event, run);
                } else {
                    // A parent that is not known at a start belongs to another program.
                    self.begin_turn(event.span, &about, event, run);
                }
            }
            SpanRole::Tool | SpanRole::Retriever if is_first => {
                self.set_counted(place);
                totals(&mut self.tools, &about.name).open += 1;
                let author = self.agent_of(event.span, &about, run);
                let arguments = about.input.clone().unwrap_or_default();
                let call =
                    ToolCall { id: Arc::default(), name: Arc::clone(&about.name), arguments };
                self.say(event, Some(author), LineKind::Called(call));
            }
            SpanRole::Model if is_first && self.waits_for_model(event.span, &about, run) => {}
            SpanRole::Model if is_first => {
                self.set_counted(place);
                totals(&mut self.models, about.model.as_ref().unwrap_or(&about.name)).open += 1;
                let author = self.agent_of(event.span, &about, run);
                if let Some(row) = self.agents.row(&author) {
                    row.calls += 1;
                    row.last_call = Some(event.span);
                }
            }
            SpanRole::Embedding if is_first => {
                self.set_counted(place);
                totals(&mut self.models, about.model.as_ref().unwrap_or(&about.name)).open += 1;
            }
            // Some name the other agent at the end.
            SpanRole::Handoff if is_first && about.to.is_some() => {
                self.hand_over(event, &about, run);
            }
            _ => {}
        }
        if about.guarded {
            self.join(event.span, run);
        }
        if before.is_some_and(|before| before.name.is_empty()) {
            let requests: Vec<SpanId> =
                run.spans.children(event.span).map(|child| child.id).take(MAX_DEPTH).collect();
            for request in requests {
                self.join(request, run);
                self.say_reply(event, request, run);
            }
            self.release_turns(event.span, event, run);
        }
    }

    /// Compares the clock of the program with the time of the log.
    fn see_time(&mut self, event: &Event, time_us: Option<u64>) {
        let Some(time) = time_us else {
            let (from, until) = self.seen_range.unwrap_or((event.at, event.at));
            self.seen_range = Some((from.min(event.at), until.max(event.at)));
            return;
        };
        let (from, until) = self.clock_range_us.unwrap_or((time, time));
        self.clock_range_us = Some((from.min(time), until.max(time)));
        let later = event.at.0.cast_signed().saturating_sub(time.cast_signed());
        self.clock_us = Some(self.clock_us.map_or(later, |least| least.min(later)));
    }

    fn hand_over(&mut self, event: &Event, about: &SpanAbout, run: &RunFold) {
        let author = self.agent_of(event.span, about, run);
        let to = about.to.clone().unwrap_or_else(|| short(&about.name));
        let message = about.input.clone().filter(|text| !text.is_empty());
        if self.handed.len() < MAX_AGENTS {
            self.handed.insert(plain_name(&to), message.clone());
        }
        self.say(event, Some(author), LineKind::HandedOver { to: AgentName::new(to), message });
    }

    /// Begins the turn of an agent, or holds it while its caller is not known.
    fn begin_or_hold(
        &mut self,
        span: SpanId,
        about: &SpanAbout,
        event: &Event,
        run: &RunFold,
    ) -> Option<usize> {
        let Some(unknown) = self.unknown_around(span, run) else {
            return self.begin_turn(span, about, event, run);
        };
        self.held.entry(unknown).or_default().push(span);
        let place = self.place(span);
        if let Some(span) = self.spans.get_mut(place) {
            span.is_held = true;
        }
        None
    }

    /// Begins the turn of an agent, which is this span, and returns its index. `None`: there are too many agents.
    fn begin_turn(
        &mut self,
        span: SpanId,
        about: &SpanAbout,
        event: &Event,
        run: &RunFold,
    ) -> Option<usize> {
        let name = turn_name(about);
        if self.agents.agent(&name).is_none() && !self.agents.add_agent(&name, MAX_AGENTS) {
            return None;
        }
        let outer = self.turn_around(span, run).map(|turn| (turn_name(&turn.about), turn.id));
        let is_called = outer.as_ref().is_some_and(|(_, turn)| self.is_called(span, *turn, run));
        let handed = self.handed.remove(&plain_name(name.as_str()));
        let (kind, from) = match (&outer, &handed, &self.last_turn) {
            (Some((outer, _)), None, _) if is_called => (HopKind::Consult, Some(outer.clone())),
            (Some((outer, _)), Some(_), _) => (HopKind::Handoff, Some(outer.clone())),
            (Some((outer, _)), None, _) => (HopKind::Next, Some(outer.clone())),
            (None, Some(_), last) => (HopKind::Handoff, last.clone()),
            (None, None, None) => (HopKind::Start, None),
            _ => (HopKind::Next, None),
        };
        let is_inner = outer.is_some();
        if !is_inner || kind == HopKind::Handoff {
            self.last_turn = Some(name.clone());
            self.agents.in_control = (kind != HopKind::Next).then(|| name.clone());
        }
        if kind != HopKind::Next {
            self.agents.edge(from.as_ref(), &name, kind == HopKind::Consult).count += 1;
        }
        self.agents.begins(&name, event.at);
        let message = handed.flatten();
        let hop = self.agents.add_hop(HopRow {
            at: event.at,
            until: None,
            kind,
            from,
            to: name.clone(),
            team: AgentName::new(""),
            message,
            context_tokens: None,
            state: HopState::Running,
            span,
            requested_by: None,
            depth: u16::from(is_inner && kind != HopKind::Handoff),
            in_control: self.agents.in_control.clone(),
            seq: event.seq,
        });
        let place = self.place(span);
        if let Some(span) = self.spans.get_mut(place) {
            span.hop = Some(hop);
        }
        Some(hop)
    }

    fn close(
        &mut self,
        event: &Event,
        end: SpanEnd,
        [repeats_call, repeats_tokens]: [bool; 2],
        about: &SpanAbout,
        run: &RunFold,
    ) {
        self.see_time(event, about.until_us);
        let place = self.place(event.span);
        let Some(span) = self.spans.get_mut(place).filter(|span| span.id == event.span) else {
            return;
        };
        let (was_open, before) = (span.end.is_none(), Arc::clone(&span.about));
        if !was_open {
            return;
        }
        Arc::make_mut(&mut span.about).add(about);
        (span.end, span.repeats_call) = (Some(end), repeats_call);
        let (about, hop, was_counted) = (Arc::clone(&span.about), span.hop, span.is_counted);
        let is_held = span.is_held;
        self.failed += u64::from(end == SpanEnd::Failed);
        self.lost += u64::from(end == SpanEnd::Lost);
        self.ended += 1;
        // What it is was not known at its start.
        let is_late = before.name.is_empty() || before.role != about.role;
        match about.role {
            SpanRole::Agent | SpanRole::Node => {
                let hop = match hop {
                    None if !about.name.is_empty() && !is_held => {
                        self.begin_or_hold(event.span, &about, event, run)
                    }
                    hop => hop,
                };
                self.release_turns(event.span, event, run);
                if let Some(hop) = hop {
                    self.end_turn(event, hop, end, &about, run);
                }
            }
            SpanRole::Tool | SpanRole::Retriever => {
                totals(&mut self.tools, &about.name).count(end, &about);
                let author = self.agent_of(event.span, &about, run);
                if is_late {
                    let arguments = about.input.clone().unwrap_or_default();
                    let name = Arc::clone(&about.name);
                    let call = ToolCall { id: Arc::default(), name, arguments };
                    self.say(event, Some(author.clone()), LineKind::Called(call));
                }
                let end = match end {
                    SpanEnd::Done | SpanEnd::Interrupted | SpanEnd::Tripped => ResultEnd::Answered,
                    SpanEnd::Failed => ResultEnd::Failed,
                    SpanEnd::Lost => ResultEnd::Cancelled,
                };
                if let Some(to) = handed_to(&about).filter(|_| self.handed.len() < MAX_AGENTS) {
                    self.handed.insert(plain_name(&to), None);
                }
                let text = about.error.as_ref().or(about.output.as_ref()).cloned();
                let (of, text) = (Arc::clone(&about.name), text.unwrap_or_default());
                self.say(event, Some(author), LineKind::Result { of, text, end });
            }
            SpanRole::Embedding => self.count_model(end, &about, false, repeats_tokens),
            SpanRole::Model => {
                // The call of a request counts in the log, and here.
                let repeats = |is_so: bool| is_so && !about.guarded;
                self.count_model(end, &about, repeats(repeats_call), repeats(repeats_tokens));
                self.say_reply(event, event.span, run);
            }
            SpanRole::Handoff if is_late || before.to.is_none() => {
                self.hand_over(event, &about, run);
            }
            SpanRole::Guardrail | SpanRole::Step if end == SpanEnd::Failed => {
                if let Some(error) = &about.error {
                    // The span has the rest.
                    let first = error.lines().next().unwrap_or_default();
                    let author = AgentName::new(short(&about.name));
                    self.say(event, Some(author), LineKind::Said(first.into()));
                }
            }
            _ => {}
        }
        if before.name.is_empty() {
            self.release_turns(event.span, event, run);
        }
        if was_counted {
            self.end_call_of(&before);
        }
    }

    fn count_model(
        &mut self,
        end: SpanEnd,
        about: &SpanAbout,
        repeats_call: bool,
        repeats_tokens: bool,
    ) {
        let row = totals(&mut self.models, about.model.as_ref().unwrap_or(&about.name));
        if !repeats_call {
            row.count(end, about);
        }
        if !repeats_tokens {
            row.count_tokens(about);
        }
    }

    fn set_counted(&mut self, place: usize) {
        if let Some(span) = self.spans.get_mut(place) {
            span.is_counted = true;
        }
    }

    /// A call is not open any more, under the name that it had at its start.
    fn end_call_of(&mut self, before: &SpanAbout) {
        let (rows, name) = match before.role {
            SpanRole::Tool | SpanRole::Retriever => (&mut self.tools, &before.name),
            SpanRole::Model | SpanRole::Embedding => {
                (&mut self.models, before.model.as_ref().unwrap_or(&before.name))
            }
            _ => return,
        };
        let row = totals(rows, name);
        row.open = row.open.saturating_sub(1);
        // It has another name now.
        rows.retain(|row| row.calls + row.open > 0);
    }

    fn end_turn(
        &mut self,
        event: &Event,
        hop: usize,
        end: SpanEnd,
        about: &SpanAbout,
        run: &RunFold,
    ) {
        let failed = match end {
            SpanEnd::Done | SpanEnd::Interrupted | SpanEnd::Tripped => None,
            SpanEnd::Failed => {
                let why = about.error.as_deref().unwrap_or("failed");
                let line = why.lines().next().unwrap_or(why);
                Some(StopReason::Other(line.chars().take(80).collect::<String>().into()))
            }
            SpanEnd::Lost => Some(StopReason::Cancelled),
        };
        let Some(row) = self.agents.hops.get_mut(hop) else { return };
        row.until = Some(event.at);
        row.state = failed.clone().map_or(HopState::Done, HopState::Failed);
        let (at, name) = (row.at, row.to.clone());
        self.agents.over(&name, at, event.at, failed.as_ref(), run.progress.pauses());
        if end == SpanEnd::Done && about.role == SpanRole::Agent {
            self.agents.answered_by = Some(name);
        }
    }

    fn say(&mut self, event: &Event, author: Option<AgentName>, what: LineKind) {
        let (at, seq, span) = (event.at, event.seq, event.span);
        self.agents.lines.push(TranscriptLine { at, seq, span, author, depth: 0, what });
    }

    /// When the first span began, and the last one began or ended, in the time of the log.
    pub fn range(&self) -> (Elapsed, Elapsed) {
        let by_clock = self
            .clock_range_us
            .and_then(|(from, until)| Some((self.in_log(from)?, self.in_log(until)?)));
        match (by_clock, self.seen_range) {
            (Some(one), Some(other)) => (one.0.min(other.0), one.1.max(other.1)),
            (one, other) => one.or(other).unwrap_or_default(),
        }
    }

    /// A time of the program's clock as a time of the log; `None`: not known. If the first span began before the log, as in
    /// programs that report only ends, all times are moved so that it begins with the log.
    fn in_log(&self, time_us: u64) -> Option<Elapsed> {
        let (first, _) = self.clock_range_us?;
        let shift = self.clock_us?.max(first.cast_signed().saturating_neg());
        let time = time_us.cast_signed().saturating_add(shift);
        Some(Elapsed(time.max(0).cast_unsigned()))
    }

    /// When a span began and, if it has, ended, in the time of the log: by the clock of the program where that
    /// is known, else as it arrived.
    pub fn times(&self, span: &ObservedSpan, run: &RunFold) -> (Elapsed, Option<Elapsed>) {
        let seen = run.spans.get(span.id);
        let in_log = |time_us: Option<u64>| self.in_log(time_us?);
        let from = in_log(span.about.from_us).or(seen.map(|seen| seen.opened)).unwrap_or_default();
        let until = span
            .end
            .and_then(|_| in_log(span.about.until_us).or(seen.and_then(|seen| seen.closed)));
        (from, until.map(|until| until.max(from)))
    }
}

impl CallTotals {
    /// All tokens.
    pub fn tokens(&self) -> u64 {
        self.tokens_in.saturating_add(self.tokens_out)
    }

    fn count(&mut self, end: SpanEnd, about: &SpanAbout) {
        self.calls += 1;
        self.failed += u64::from(end == SpanEnd::Failed);
        self.took_us = self.took_us.saturating_add(about.took_us().unwrap_or(0));
    }

    fn count_tokens(&mut self, about: &SpanAbout) {
        self.tokens_in = self.tokens_in.saturating_add(about.tokens_in.unwrap_or(0));
        self.tokens_out = self.tokens_out.saturating_add(about.tokens_out.unwrap_or(0));
    }
}

/// Most agents, tools and models with a row of their own.
pub(crate) const MAX_AGENTS: usize = 64;

/// Most spans that are looked through for the agent around one.
const MAX_DEPTH: usize = 64;

/// Longest name of an agent in a diagram, in characters.
const NAME_CHARS: usize = 40;

fn short(name: &Arc<str>) -> Arc<str> {
    match name.char_indices().nth(NAME_CHARS) {
        Some((at, _)) => name.get(..at).unwrap_or_default().into(),
        None => Arc::clone(name),
    }
}

fn turn_name(about: &SpanAbout) -> AgentName {
    let name = match (&about.agent, about.role) {
        (Some(agent), SpanRole::Agent) => agent,
        _ => &about.name,
    };
    AgentName::new(short(name))
}

/// The row of a tool or model; beyond a limit that of all others.
fn totals<'r>(rows: &'r mut Vec<CallTotals>, name: &Arc<str>) -> &'r mut CallTotals {
    let place = rows.iter().position(|row| row.name == *name).unwrap_or(rows.len());
    if place == rows.len() && place <= MAX_AGENTS {
        let name = if place < MAX_AGENTS { Arc::clone(name) } else { "others".into() };
        rows.push(CallTotals { name, ..CallTotals::default() });
    }
    let last = rows.len() - 1;
    &mut rows[place.min(last)]
}

impl Projection for Observed {
    fn apply(&mut self, event: &Event, run: &RunFold) {
        match ObservedFact::of(&event.kind) {
            Some(ObservedFact::Opened { about, at_end, .. }) => {
                self.open(event, about, *at_end, run)
            }
            Some(ObservedFact::Closed { end, repeats_call, repeats_tokens, about }) => {
                self.close(event, *end, [*repeats_call, *repeats_tokens], about, run);
            }
            Some(ObservedFact::Text { stream, text }) => {
                let author = match stream {
                    TextStream::Log => {
                        self.turn_around(event.span, run).map(|it| turn_name(&it.about))
                    }
                    _ => None,
                };
                let author = author.unwrap_or_else(|| AgentName::new(stream.word()));
                self.say(event, Some(author), LineKind::Said(Arc::clone(text)));
            }
            Some(ObservedFact::Recorded { .. }) => {}
            Some(ObservedFact::Named { about }) => self.named = Arc::clone(about),
            Some(ObservedFact::Ended { exit_code, .. }) => self.exit_code = Some(*exit_code),
            Some(ObservedFact::Note { text }) => {
                let about = self.span(event.span).map(|span| Arc::clone(&span.about));
                let author = about.map(|about| self.agent_of(event.span, &about, run));
                self.say(event, author, LineKind::Said(Arc::clone(text)));
            }
            None if matches!(&event.kind, EventKind::CallRetried { .. }) => self.requests += 1,
            None if matches!(&event.kind, EventKind::CallStarted(_)) => {
                self.requests += u64::from(is_model_call(event));
                let around = run.spans.get(event.span).map(|call| call.parent);
                let place = around.map(|around| self.place(around));
                if let Some(span) = place.and_then(|place| self.spans.get_mut(place)) {
                    span.call = Some(event.span);
                }
                around.inspect(|around| self.join(*around, run));
            }
            // A cancelled run ends before its spans.
            None if matches!(event.kind, EventKind::RunClosed(_)) => {
                let held = std::mem::take(&mut self.held).into_values().flatten().collect();
                let begin = |fold: &mut Self, span: &ObservedSpan| {
                    fold.begin_turn(span.id, &span.about, event, run)
                };
                self.begin_held(held, event, begin, run);
            }
            None => {}
        }
    }

    fn outcome(&self, run: &RunFold, fields: &mut OutcomeFields) {
        let mut add = |name: &'static str, value: Value| fields.add(name, &value);
        add("command", json!(self.plan.command));
        if let Some(answer) = &run.progress.answer {
            add("answer", (**answer).into());
        }
        if let Some(thread) = &self.named.thread {
            add("thread", (**thread).into());
        }
        for (name, run) in [("after_run", &self.named.after), ("before_run", &self.named.before)] {
            run.iter().for_each(|run| add(name, run.as_str().into()));
        }
        if let Some(code) = self.exit_code {
            add("exit_code", code.into());
        }
        add("spans", self.spans.len().into());
        add("failed_spans", self.failed.into());
        add("lost_spans", self.lost.into());
        let turns = self.agents.agents.iter();
        add("agents", turns.map(|row| json!({ "agent": row.name, "turns": row.turns })).collect());
        let rows = |rows: &[CallTotals], is_model: bool| -> Value {
            let row = |row: &CallTotals| {
                let mut value = json!({ "name": row.name, "calls": row.calls, "failed": row.failed, "took_ms": row.took_us / 1_000 });
                if is_model && row.tokens() > 0 {
                    value["tokens_in"] = row.tokens_in.into();
                    value["tokens_out"] = row.tokens_out.into();
                }
                value
            };
            rows.iter().map(row).collect()
        };
        add("tool_calls", rows(&self.tools, false));
        add("model_calls", rows(&self.models, true));
        let hops = self.agents.hops.iter().filter(|hop| hop.depth == 0);
        add("path", hops.map(|hop| Value::from(hop.to.as_str())).collect());
    }

    fn mark(&self, event: &Event) -> Option<MarkKind> {
        match ObservedFact::of(&event.kind)? {
            ObservedFact::Closed { end: SpanEnd::Failed, .. } => Some(MarkKind::Failed),
            _ => {
                let hop = self.agents.hops.last().filter(|hop| hop.seq == event.seq)?;
                Some(match hop.kind {
                    HopKind::Next | HopKind::Start => MarkKind::Part(hop.to.as_str().into()),
                    HopKind::Handoff => MarkKind::Handoff(hop.to.clone()),
                    HopKind::Consult => MarkKind::Consulted(hop.to.clone()),
                })
            }
        }
    }

    fn call_of(&self, event: &Event, _run: &RunFold) -> Option<SpanId> {
        self.span(event.span).map(|span| span.call.unwrap_or(span.id))
    }

    fn cause_of(&self, event: &Event, run: &RunFold, _log: &dyn EventLog) -> Option<Seq> {
        let span = run.spans.get(event.span)?;
        match span.opened_by == event.seq {
            true => run.spans.opened_by(span.parent),
            false => Some(span.opened_by),
        }
    }

    fn next_breakpoint(&self, run: &RunFold) -> Result<BoundaryId, &'static str> {
        if run.head.as_ref().is_some_and(|head| head.model.is_steered()) {
            return Ok(Boundary::Call(self.requests + 1).id());
        }
        Err("No breakpoint here: another program plays this run.")
    }

    fn agents(&self) -> Option<&AgentsFold> {
        Some(&self.agents)
    }
}
