//! Projection of pattern `002`: who is in control, who was asked by whom, what was said, how the
//! limits of each swarm stand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

mod rows;

pub use self::rows::{
    AgentRow, AgentState, Edge, HopKind, HopRow, HopState, Line, LineKind, SwarmRow,
};

use super::chunked::Chunked;
use super::rests::Rests;
use super::spans::{SpanKind, Spans};
use crate::event::kind::{CallStarted, Inner, LoopGuard, Purpose, Reply, TeamPlan};
use crate::event::{Elapsed, Event, EventKind, Seq, SpanId, StopReason};
use crate::scenario::name::AgentName;

/// A run of a team or a swarm as its log tells it.
#[derive(Clone, Debug, Default)]
pub struct Team {
    /// The agents, in the order of the plan.
    pub agents: Vec<AgentRow>,
    /// Every time that an agent was put to work: a swarm's hops, a coordinator's consultations, and
    /// the hand-offs that were refused, in the order in which they began.
    pub hops: Chunked<HopRow>,
    /// Who passed work to whom, each pair once, in the order of the first time.
    pub edges: Vec<Edge>,
    /// The calls of hops, consultations and tools that stand in no other of them, in the order in
    /// which they began: the roots of the tree of calls.
    pub roots: Chunked<SpanId>,
    /// What was said, as far as it is shown: the transcript.
    pub lines: Chunked<Line>,
    /// The swarms, in the order of the plan.
    pub swarms: Vec<SwarmRow>,
    /// The agent that is in control for the person: the holder of the outermost swarm, or the
    /// coordinator.
    pub holder: Option<AgentName>,
    /// Whose reply is the answer.
    pub answered_by: Option<AgentName>,
    /// The best text that there was when the run was stopped, and whose.
    pub partial: Option<(Arc<str>, AgentName)>,
    /// Model calls that are open, by their span: whose, and the attempt that speaks.
    says: BTreeMap<SpanId, AgentName>,
    /// Rows that have not ended, by the span of their call.
    open: BTreeMap<SpanId, usize>,
    /// What is handed over, until the target's hop begins; by the swarm's span.
    passing: BTreeMap<SpanId, Passing>,
    root: Option<AgentName>,
}

#[derive(Clone, Debug)]
struct Passing {
    message: Option<Arc<str>>,
    said: SpanId,
}

/// Where a span stands among the teams.
struct Place {
    depth: u16,
    inner: Inner,
}

impl Team {
    /// A run that has just begun.
    pub fn new(plan: &TeamPlan) -> Self {
        let agents = plan.agents.iter().map(|agent| AgentRow {
            name: agent.name.clone(),
            state: AgentState::Idle,
            turns: 0,
            calls: 0,
            dwell: Duration::ZERO,
            since: None,
            speaking: None,
            said: None,
            running: 0,
        });
        let swarms = plan.agents.iter().filter(|agent| agent.swarm.is_some());
        let mut team = Self {
            agents: agents.collect(),
            swarms: swarms
                .map(|agent| SwarmRow {
                    name: agent.name.clone(),
                    members: agent.members.clone().into(),
                    span: None,
                    guard: LoopGuard::default(),
                    rejections: 0,
                    refused: None,
                })
                .collect(),
            root: Some(plan.root.clone()),
            ..Self::default()
        };
        team.lines.push(Line {
            at: Elapsed(0),
            seq: Seq(0),
            span: SpanId::RUN,
            author: None,
            depth: 0,
            what: LineKind::Message(Arc::clone(&plan.session.text)),
        });
        if plan.swarm(&plan.root).is_none() {
            team.begins(&plan.root, Elapsed(0));
            team.holder = Some(plan.root.clone());
        }
        team
    }

    /// The agent of this name.
    pub fn agent(&self, name: &AgentName) -> Option<&AgentRow> {
        self.agents.iter().find(|row| row.name == *name)
    }

    /// The swarm of this name.
    pub fn swarm(&self, name: &AgentName) -> Option<&SwarmRow> {
        self.swarms.iter().find(|row| row.name == *name)
    }

    /// Rows that have not ended, in the order in which they began.
    pub fn running(&self) -> impl Iterator<Item = &HopRow> {
        let mut places: Vec<usize> = self.open.values().copied().collect();
        places.sort_unstable();
        places.into_iter().filter_map(|place| self.hops.get(place))
    }

    pub(super) fn apply(&mut self, event: &Event, spans: &Spans, rests: &Rests) {
        match &event.kind {
            EventKind::CallStarted(call) => self.call(event, call, spans),
            EventKind::AttemptStarted { parent, .. } => {
                if let Some(row) = self.says.get(parent).cloned().and_then(|it| self.row(&it)) {
                    row.speaking = Some(event.span);
                }
            }
            EventKind::AttemptAnswered(reply) => self.answered(event, reply, spans),
            EventKind::AttemptFailed(_) => {
                let call = spans.get(event.span).map(|span| span.parent);
                if let Some(by) = call.and_then(|call| self.says.get(&call)).cloned()
                    && let Some(row) = self.row(&by)
                {
                    row.speaking = None;
                }
            }
            EventKind::CallAnswered { .. } => self.ends(event, None, spans, rests),
            EventKind::CallDegraded { reason, .. } | EventKind::CallFailed { reason, .. } => {
                self.ends(event, Some(reason), spans, rests);
            }
            EventKind::HandoffMade { swarm, from, to, message, guard, said } => {
                let passing = Passing { message: message.clone(), said: *said };
                self.passing.insert(event.span, passing);
                if let Some(row) = self.swarms.iter_mut().find(|row| row.name == *swarm) {
                    row.guard = *guard;
                }
                let what = LineKind::HandedOver { to: to.clone(), message: message.clone() };
                self.line(event, *said, from, what, spans);
            }
            EventKind::HandoffRefused { swarm, from, to, why, guard, rejections, said } => {
                if let Some(row) = self.swarms.iter_mut().find(|row| row.name == *swarm) {
                    row.guard = *guard;
                    row.rejections = *rejections;
                    row.refused = Some(*why);
                }
                self.edge(Some(from), to, false).refused += 1;
                self.hops.push(HopRow {
                    at: event.at,
                    until: Some(event.at),
                    kind: HopKind::Handoff,
                    from: Some(from.clone()),
                    to: to.clone(),
                    team: swarm.clone(),
                    message: None,
                    context: None,
                    state: HopState::Refused(*why),
                    span: *said,
                    said: Some(*said),
                    depth: place(*said, spans).depth,
                    seq: event.seq,
                });
                self.line(
                    event,
                    *said,
                    from,
                    LineKind::Refused { to: to.clone(), why: *why },
                    spans,
                );
            }
            EventKind::ToolCallRefused { agent, tool, text, .. } => {
                let what = LineKind::NotCalled { tool: tool.clone(), text: text.clone() };
                self.line(event, event.span, agent, what, spans);
            }
            EventKind::RosterChanged { swarm, members, .. } => {
                if let Some(row) = self.swarms.iter_mut().find(|row| row.name == *swarm) {
                    row.members = Arc::clone(members);
                }
            }
            EventKind::AnswerComposed { by: Some(by), .. } => self.answered_by = Some(by.clone()),
            EventKind::AnswerPartial { text, by } if event.span == SpanId::RUN => {
                self.partial = Some((Arc::clone(text), by.clone()));
            }
            EventKind::RunClosed(closed) => {
                if let Some(root) = self.root.clone() {
                    let failed = !closed.reason.is_success();
                    let now = event.at;
                    self.over(&root, Elapsed(0), now, failed, rests);
                }
            }
            _ => {}
        }
    }

    fn row(&mut self, name: &AgentName) -> Option<&mut AgentRow> {
        self.agents.iter_mut().find(|row| row.name == *name)
    }

    fn edge(&mut self, from: Option<&AgentName>, to: &AgentName, consults: bool) -> &mut Edge {
        let place = self.edges.iter().position(|edge| {
            edge.from.as_ref() == from && edge.to == *to && edge.consults == consults
        });
        let place = place.unwrap_or_else(|| {
            let (from, to) = (from.cloned(), to.clone());
            self.edges.push(Edge { from, to, consults, count: 0, refused: 0 });
            self.edges.len() - 1
        });
        &mut self.edges[place]
    }

    fn begins(&mut self, name: &AgentName, at: Elapsed) {
        if let Some(row) = self.row(name) {
            row.turns += 1;
            row.running += 1;
            row.since = row.since.or(Some(at));
            row.state = AgentState::Running;
        }
    }

    fn over(&mut self, name: &AgentName, from: Elapsed, at: Elapsed, failed: bool, rests: &Rests) {
        let Some(row) = self.row(name).filter(|row| row.running > 0) else { return };
        row.running -= 1;
        row.dwell += at.since(from).saturating_sub(rests.between(from, at));
        if row.running == 0 {
            row.since = None;
            row.state = if failed { AgentState::Failed } else { AgentState::Done };
        }
    }

    fn call(&mut self, event: &Event, call: &CallStarted, spans: &Spans) {
        if call.parent == SpanId::RUN && !matches!(call.purpose, Purpose::Say { .. }) {
            self.roots.push(event.span);
        }
        let (team, from, kind) = match &call.purpose {
            Purpose::Say { agent, .. } => {
                self.says.insert(event.span, agent.clone());
                if let Some(row) = self.row(agent) {
                    row.calls += 1;
                    row.said = Some(event.span);
                }
                return;
            }
            Purpose::Member { by, .. } => (by, Some(by), HopKind::Consult),
            Purpose::Hop { swarm, from: Some(from), .. } => (swarm, Some(from), HopKind::Handoff),
            Purpose::Hop { swarm, from: None, .. } => {
                if let Some(row) = self.swarms.iter_mut().find(|row| row.name == *swarm) {
                    // Limits are a swarm's own, afresh each time that it is put to work.
                    let (guard, span) = (LoopGuard::default(), Some(call.parent));
                    *row = SwarmRow { span, guard, rejections: 0, refused: None, ..row.clone() };
                }
                (swarm, None, HopKind::Start)
            }
            _ => return,
        };
        let Some(to) = call.purpose.agent() else { return };
        let passing = self.passing.remove(&call.parent).filter(|_| kind == HopKind::Handoff);
        let message = match &call.args {
            Some(args) => args.get("request").and_then(Value::as_str).map(Arc::from),
            None => passing.as_ref().and_then(|it| it.message.clone()),
        };
        let said = match &call.purpose {
            Purpose::Member { said, .. } => Some(*said),
            _ => passing.map(|it| it.said),
        };
        // A swarm within a team is asked by whoever consults it, and puts its first member to work.
        let nested = kind == HopKind::Start && call.parent != SpanId::RUN;
        let passer = if nested { Some(team) } else { from };
        self.edge(passer, to, nested || kind == HopKind::Consult).count += 1;
        self.begins(to, event.at);
        if kind != HopKind::Consult && call.parent == SpanId::RUN {
            self.holder = Some(to.clone());
        }
        let row = HopRow {
            at: event.at,
            until: None,
            kind,
            from: from.cloned(),
            to: to.clone(),
            team: team.clone(),
            message,
            context: None,
            state: HopState::Running,
            span: event.span,
            said,
            depth: place(call.parent, spans).depth,
            seq: event.seq,
        };
        let at = self.hops.push(row);
        self.open.insert(event.span, at);
    }

    fn answered(&mut self, event: &Event, reply: &Reply, spans: &Spans) {
        let Some(call) = spans.get(event.span).map(|span| span.parent) else { return };
        let Some(SpanKind::Call(purpose)) = spans.get(call).map(|span| &span.what) else { return };
        match purpose {
            Purpose::Say { agent, round, .. } => {
                if let Some(row) = self.row(agent) {
                    row.speaking = None;
                }
                if *round == 1
                    && let Some(usage) = reply.usage
                {
                    let attempt = spans.get(call).map(|span| span.parent);
                    let hop = attempt.and_then(|it| spans.get(it)).map(|span| span.parent);
                    let place = hop.and_then(|hop| self.open.get(&hop)).copied();
                    if let Some(row) = place.and_then(|place| self.hops.get_mut(place)) {
                        row.context = Some(usage.prompt_tokens);
                    }
                }
                if !reply.text.is_empty() {
                    let what = LineKind::Said(Arc::clone(&reply.text));
                    self.line(event, call, agent, what, spans);
                }
                // A hand-off has a line of its own, made or refused.
                for made in reply.tool_calls.iter().filter(|made| *made.name != *TRANSFER) {
                    self.line(event, call, agent, LineKind::Called(made.clone()), spans);
                }
            }
            Purpose::Member { agent, .. } => {
                let text = Arc::clone(&reply.text);
                let what = LineKind::Result { of: agent.as_str().into(), text, ok: true };
                self.result(event, call, purpose, what, spans);
            }
            Purpose::Tool { tool, .. } => {
                let tool = tool.as_str().into();
                let text = reply.result.as_ref().map_or_else(String::new, ToString::to_string);
                let what = LineKind::Result { of: tool, text: text.into(), ok: true };
                self.result(event, call, purpose, what, spans);
            }
            Purpose::Hop { .. } => {
                let place = self.open.get(&call).copied();
                if let Some(row) = place.and_then(|place| self.hops.get_mut(place))
                    && reply.finish.as_deref() == Some(HANDED_OVER)
                {
                    row.state = HopState::HandedOver;
                }
            }
            _ => {}
        }
    }

    fn ends(&mut self, event: &Event, failed: Option<&StopReason>, spans: &Spans, rests: &Rests) {
        if let Some(by) = self.says.remove(&event.span) {
            if let Some(row) = self.row(&by) {
                row.speaking = None;
            }
            return;
        }
        let purpose = match spans.get(event.span).map(|span| &span.what) {
            Some(SpanKind::Call(purpose)) => purpose,
            _ => return,
        };
        if let Some(place) = self.open.remove(&event.span)
            && let Some(row) = self.hops.get_mut(place)
        {
            row.until = Some(event.at);
            match failed {
                Some(reason) => row.state = HopState::Failed(reason.clone()),
                None if row.state == HopState::Running => row.state = HopState::Done,
                None => {}
            }
            let (to, from) = (row.to.clone(), row.at);
            self.over(&to, from, event.at, failed.is_some(), rests);
        }
        let of: Arc<str> = match purpose {
            Purpose::Member { agent, .. } => agent.as_str().into(),
            Purpose::Tool { tool, .. } => tool.as_str().into(),
            _ => return,
        };
        if let Some(reason) = failed {
            let text = reason.to_string().into();
            let what = LineKind::Result { of, text, ok: false };
            self.result(event, event.span, purpose, what, spans);
        }
    }

    /// A result stands with the one who called.
    fn result(
        &mut self,
        event: &Event,
        call: SpanId,
        purpose: &Purpose,
        what: LineKind,
        spans: &Spans,
    ) {
        let by = match purpose {
            Purpose::Member { by, .. } => by,
            Purpose::Tool { agent, .. } => agent,
            _ => return,
        };
        let parent = spans.get(call).map_or(SpanId::RUN, |span| span.parent);
        let by = by.clone();
        self.line_at(event, call, place(parent, spans), &by, what);
    }

    fn line(
        &mut self,
        event: &Event,
        span: SpanId,
        author: &AgentName,
        what: LineKind,
        spans: &Spans,
    ) {
        self.line_at(event, span, place(span, spans), author, what);
    }

    /// Adds a line where it is shown: of what stands in a member those that its team shows.
    fn line_at(
        &mut self,
        event: &Event,
        span: SpanId,
        place: Place,
        author: &AgentName,
        what: LineKind,
    ) {
        let shown = match place.inner {
            Inner::Text => true,
            Inner::Progress => !matches!(what, LineKind::Said(_)),
            Inner::Hidden => false,
        };
        if shown {
            let (at, seq, depth) = (event.at, event.seq, place.depth);
            let author = Some(author.clone());
            self.lines.push(Line { at, seq, span, author, depth, what });
        }
    }
}

/// The tool that a swarm's members hand over with.
pub const TRANSFER: &str = "transfer_to_agent";

/// How the reply of a hop ends that handed over: `finish` of the fact.
pub const HANDED_OVER: &str = "handoff";

/// In how many teams a span stands, and how much of it they show: the least of all that are around
/// it.
fn place(span: SpanId, spans: &Spans) -> Place {
    let mut found = Place { depth: 0, inner: Inner::Text };
    let mut at = spans.get(span);
    // A file may hold spans that stand in each other.
    let mut left = 256;
    while let Some(span) = at.filter(|span| span.id != SpanId::RUN && left > 0) {
        left -= 1;
        if let SpanKind::Call(Purpose::Member { inner, .. }) = &span.what {
            found.depth += 1;
            found.inner = least(found.inner, *inner);
        }
        at = spans.get(span.parent);
    }
    found
}

fn least(one: Inner, other: Inner) -> Inner {
    match (one, other) {
        (Inner::Hidden, _) | (_, Inner::Hidden) => Inner::Hidden,
        (Inner::Progress, _) | (_, Inner::Progress) => Inner::Progress,
        (Inner::Text, Inner::Text) => Inner::Text,
    }
}

/// How much of a span's live text is shown: of what an agent says while it says it.
pub fn shown(span: SpanId, spans: &Spans) -> Inner {
    place(span, spans).inner
}
