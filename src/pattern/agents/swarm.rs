//! A swarm: its members are in control one after another, until one answers without a handoff. Also
//! which handoff of a reply counts, whether the swarm's limits accept it, and its members, which
//! can change while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;

use super::agent_call::{AgentCall, AttemptId, Halt};
use super::policy::Transfer;
use super::shared_history::SharedHistory;
use super::tool_calls::{ToolCallResult, is_transfer, listed, visible_name};
use super::{
    AcceptedHandoff, AgentAnswer, AgentPosition, AgentReply, AgentRole, AgentRun, AgentRunner,
    ModelReply, TeamPosition, policy,
};
use crate::base::name::{AgentName, PersonName, ToolName};
use crate::log::bus::Bus;
use crate::log::event::{
    Answer, Boundary, CallStarted, Command, EventKind, Prompt, Purpose, Reply, SpanId, StopReason,
    result_text,
};
use crate::log::facts::agents::{
    AgentFact, CallFault, HandoffRefusal, RosterChange, RosterCommand,
};
use crate::log::world::agents::HANDED_OVER;
use crate::pattern::people::answer_text;
use crate::pattern::reply;
use crate::run::{LiveControl, RunContext};
use crate::scenario::patterns::agents::{AgentKind, AgentsSpec, Swarm, check_names};
use crate::scenario::spec::ModelSettings;
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::spec::tool::ToolCall;

/// A running swarm.
pub(crate) struct RunningSwarm<'s> {
    pub name: &'s AgentName,
    pub swarm: &'s Swarm,
    pub place: AgentPosition<'s>,
    pub history: &'s SharedHistory,
}

/// A swarm without an answer so far. When it is stopped, by its own limits or from outside
/// (timeout, cancellation), it reports the best partial text.
struct OpenSwarm<'s> {
    cx: &'s RunContext,
    settings: &'s ModelSettings,
    history: &'s SharedHistory,
    span: SpanId,
    open: bool,
}

impl OpenSwarm<'_> {
    /// Reports the best partial text and returns it with its author.
    fn close(&mut self) -> Option<(Arc<str>, AgentName)> {
        self.open = false;
        let (text, by) = self.history.best_partial()?;
        let text = reply::final_text(self.cx, self.settings, self.span, &text);
        let text: Arc<str> = text.trim().into();
        let partial = AgentFact::AnswerPartial { text: Arc::clone(&text), by: by.clone() };
        self.cx.publish(self.span, partial);
        Some((text, by))
    }
}

impl Drop for OpenSwarm<'_> {
    fn drop(&mut self) {
        if self.open {
            self.close();
        }
    }
}

/// One turn of control: a member and its input.
struct SwarmHop<'h> {
    number: u32,
    holder: &'h AgentName,
    from: Option<&'h AgentName>,
    input: &'h Arc<str>,
}

impl AgentRunner<'_> {
    /// Runs a swarm from the member `start` to its answer.
    pub(super) async fn run_swarm(
        &self,
        running: &RunningSwarm<'_>,
        start: &AgentName,
        root_input: &Arc<str>,
    ) -> Result<AgentAnswer, Box<Halt>> {
        let RunningSwarm { name, swarm, place, history } = running;
        let (mut holder, mut from) = (start.clone(), None::<AgentName>);
        let mut input = Arc::clone(root_input);
        history.record_input(&holder, None, &input);
        let settings = &self.scenario.model;
        let mut open = OpenSwarm { cx: self.cx, settings, history, span: place.span, open: true };
        let mut number = 0;
        loop {
            number += 1;
            let hop = SwarmHop { number, holder: &holder, from: from.as_ref(), input: &input };
            let turned = self.run_hop(running, &hop).await;
            let (handed, said) = match turned {
                Ok(AgentReply::HandedOver { handed, said }) => (handed, said),
                Ok(AgentReply::Answered { text, end, .. }) => {
                    open.open = false;
                    return Ok(AgentAnswer { text, by: holder, end });
                }
                Err(mut halt) => {
                    halt.partial = open.close();
                    return Err(halt);
                }
            };
            let policy::Transfer { to, message } = handed.transfer;
            input = policy::handoff_input(
                swarm.handoff_input.as_ref(),
                root_input,
                &input,
                &holder,
                &to,
                message.as_ref(),
            );
            input = bounded(input);
            self.cx.publish(
                place.span,
                AgentFact::HandoffMade {
                    swarm: (*name).clone(),
                    from: holder.clone(),
                    to: to.clone(),
                    message,
                    guard: handed.guard,
                    requested_by: said,
                },
            );
            history.record_input(&to, Some(&holder), &input);
            from = Some(std::mem::replace(&mut holder, to));
        }
    }

    /// Runs one member in control; its run is a call through the gateway.
    async fn run_hop(
        &self,
        running: &RunningSwarm<'_>,
        hop: &SwarmHop<'_>,
    ) -> Result<AgentReply, Box<Halt>> {
        let RunningSwarm { name, swarm, place, history } = running;
        let SwarmHop { number, holder, from, input } = *hop;
        let Some(agent) = self.agents.get(holder) else {
            return Err(Halt::by_limit(StopReason::InternalError));
        };
        if place.outer {
            self.cx.set_phase(holder.to_string());
        }
        let turn = history.next_turn(holder);
        let path = format!("{}/{holder}.{turn}", place.path);
        let back = history.history_mark(holder);
        let turned = Mutex::new(None);
        let draws = format!("{}/{holder}.{turn}", place.seed_path);
        let attempt = |it: AttemptId| {
            let (path, back, turned) = (&path, &back, &turned);
            let draws = it.attempt_seed_path(&draws);
            let attempt = async move {
                history.restore_mark(holder, back);
                let model = match (&agent.kind, agent.kind.model()) {
                    (AgentKind::Person(person), _) => {
                        let ended = self.person_hop(running, hop, person, it.span).await?;
                        return Ok(keep_turn(ended, turned));
                    }
                    (_, Some(model)) => model,
                    (_, None) => return Err(Halt::by_limit(StopReason::InternalError)),
                };
                let run = AgentRun {
                    name: holder,
                    model,
                    role: AgentRole::Member(name, swarm),
                    place: AgentPosition {
                        span: it.span,
                        path,
                        seed_path: &draws,
                        outer: place.outer,
                    },
                    team: TeamPosition { span: place.span, path: place.path },
                    team_history: history,
                    turn,
                    input,
                    from,
                    begun: from.is_some(),
                };
                Ok(keep_turn(self.run_agent_turn(&run).await?, turned))
            };
            Box::pin(attempt) as BoxFuture<'_, Result<Reply, Box<Halt>>>
        };
        let bound = swarm.node_timeout.filter(|_| from.is_some());
        let behind = AgentCall::new(self.cx, holder, format!("hop:{draws}"), bound, attempt);
        let started = CallStarted {
            parent: place.span,
            tool: ToolName::from(holder.as_str()),
            purpose: Purpose::SwarmTurn {
                agent: holder.clone(),
                turn,
                swarm: (*name).clone(),
                hop: number,
                from: from.cloned(),
            },
            prompt: Prompt::default(),
            args: None,
            model: None,
            repeat: 0,
        };
        match behind.make(started).await {
            Ok(answered) => {
                let ended = turned.lock().unwrap_or_else(PoisonError::into_inner).take();
                match ended.filter(|_| answered.fallback.is_none()) {
                    Some(ended) => Ok(ended),
                    None => {
                        let text = result_text::reply_text(&answered.reply);
                        history.restore_mark(holder, &back);
                        history.record_fallback(holder, &text);
                        Ok(AgentReply::Answered { text, by: None, end: ReplyEnd::Stop })
                    }
                }
            }
            Err((_, halt)) => Err(halt),
        }
    }
}

/// Keeps how a turn ended, and returns it as the reply of its call.
fn keep_turn(ended: AgentReply, turned: &Mutex<Option<AgentReply>>) -> Reply {
    let reply = match &ended {
        AgentReply::Answered { text, end, .. } => {
            Reply { end: *end, ..Reply::from_agent_text(Arc::clone(text)) }
        }
        AgentReply::HandedOver { .. } => {
            Reply { finish: Some(HANDED_OVER.into()), ..Reply::from_agent_text(Arc::default()) }
        }
    };
    *turned.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
    reply
}

impl AgentRunner<'_> {
    /// The turn of a person who is a member of a swarm: an answer, or a handoff that the limits
    /// accept. The person is asked again if the chosen member has left meanwhile.
    async fn person_hop(
        &self,
        running: &RunningSwarm<'_>,
        hop: &SwarmHop<'_>,
        person: &PersonName,
        attempt: SpanId,
    ) -> Result<AgentReply, Box<Halt>> {
        let RunningSwarm { name, place, history, .. } = running;
        let holder = hop.holder;
        loop {
            let members = self.rosters.members(name);
            let open = members.iter().filter(|to| *to != holder).filter(|to| {
                history.with_limits(|limiter, _| limiter.clone().check_handoff(to).is_ok())
            });
            let open = open.cloned().collect();
            let answered = self.ask_for_turn(person, holder, attempt, hop.input, open).await?;
            let Answer::HandOver { to, text } = &answered.answer else {
                let text = answer_text(&answered.answer);
                history.record_fallback(holder, &text);
                return Ok(AgentReply::Answered { text, by: None, end: ReplyEnd::Stop });
            };
            let accepted = history.with_limits(|limiter, _| {
                let judged = limiter.check_handoff(to);
                judged.is_ok().then(|| limiter.guard())
            });
            let Some(guard) = accepted.filter(|_| self.rosters.members(name).contains(to)) else {
                continue;
            };
            let (path, handoff) = (place.path.into(), guard.handoffs);
            let at = Boundary::Handoff { path, handoff, to: to.clone(), outer: place.outer };
            self.wait_at_boundary(at).await;
            let message = Some(Arc::clone(text)).filter(|text| !text.is_empty());
            let transfer = policy::Transfer { to: to.clone(), message };
            let handed = AcceptedHandoff { transfer, guard };
            return Ok(AgentReply::HandedOver { handed, said: attempt });
        }
    }
}

/// The most bytes of a handoff target's input. A template can repeat the previous input, so it
/// could grow with each hop.
const INPUT_CAP: usize = 64 << 10;

fn bounded(input: Arc<str>) -> Arc<str> {
    if input.len() <= INPUT_CAP {
        return input;
    }
    let end = (0..=INPUT_CAP).rev().find(|end| input.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &input[..end]).into()
}

impl AgentRunner<'_> {
    /// Judges the handoffs of a reply: the first one with a valid target counts. The run can pause
    /// before an accepted handoff is carried out.
    pub(super) async fn judge_handoffs(
        &self,
        run: &AgentRun<'_>,
        name: &AgentName,
        swarm: &Swarm,
        said: ModelReply<'_>,
        calls: &[ToolCall],
        results: &mut [Option<ToolCallResult>],
    ) -> Result<Option<AcceptedHandoff>, Box<Halt>> {
        let mut counted = false;
        let (mut handed, mut halt) = (None, None);
        for (index, call) in calls.iter().enumerate().filter(|(_, call)| is_transfer(run, call)) {
            let transfer = match handoff_target(run, call, &self.rosters.members(name), counted) {
                Ok(chosen) => chosen,
                Err((why, text)) => {
                    results[index] = Some(self.refuse(run, said, index, call, why, &text));
                    continue;
                }
            };
            counted = true;
            let (judged, guard, rejections) =
                run.team_history.with_limits(|limiter, rejections| {
                    let judged = limiter.check_handoff(&transfer.to).map_err(|why| {
                        let members = self.rosters.members(name);
                        let others = members.iter().filter(|member| *member != run.name);
                        let open =
                            others.filter(|other| limiter.clone().check_handoff(other).is_ok());
                        (why, alternatives(run, open))
                    });
                    *rejections += u32::from(judged.is_err());
                    (judged, limiter.guard(), *rejections)
                });
            results[index] = Some(match judged {
                Ok(()) => {
                    let to = transfer.to.clone();
                    let (path, handoff) = (run.team.path.into(), guard.handoffs);
                    let outer = run.place.outer;
                    self.wait_at_boundary(Boundary::Handoff { path, handoff, to, outer }).await;
                    // The target may have left the swarm during the pause.
                    match handoff_target(run, call, &self.rosters.members(name), false) {
                        Ok(transfer) => {
                            let text = format!("handed over to {}", transfer.to).into();
                            handed = Some(AcceptedHandoff { transfer, guard });
                            ToolCallResult::of_tool(text)
                        }
                        Err((why, text)) => self.refuse(run, said, index, call, why, &text),
                    }
                }
                Err((why, instead)) => {
                    let (swarm_name, from) = (name.clone(), run.name.clone());
                    self.cx.publish(
                        run.team.span,
                        AgentFact::HandoffRefused {
                            swarm: swarm_name,
                            from,
                            to: transfer.to,
                            reason: why,
                            guard,
                            rejections,
                            requested_by: said.call,
                        },
                    );
                    if swarm.max_rejections > 0 && rejections >= swarm.max_rejections {
                        halt = Some(Halt::by_limit(match why {
                            HandoffRefusal::MaxHandoffs(_) => StopReason::MaxHandoffs,
                            HandoffRefusal::Repetitive => StopReason::RepetitiveHandoff,
                        }));
                    }
                    ToolCallResult::error(format_args!("{why}. {instead}"))
                }
            });
        }
        match halt {
            Some(halt) => Err(halt),
            None => Ok(handed),
        }
    }
}

/// A sentence for the model: what the agent can do after the limits refused its handoff. `open`:
/// the members that the limits would accept now.
fn alternatives<'m>(run: &AgentRun<'_>, open: impl Iterator<Item = &'m AgentName>) -> String {
    let one_of = |verb: &str, names: &[&str]| match names {
        [] => None,
        [one] => Some(format!("{verb} {one}")),
        several => Some(format!("{verb} one of {}", several.join(", "))),
    };
    let tools: Vec<&str> = run.model.tools.iter().map(ToolName::as_str).collect();
    let open: Vec<&str> = open.map(AgentName::as_str).collect();
    let more = [one_of("call", &tools), one_of("hand over to", &open)];
    let more: String = more.iter().flatten().map(|it| format!(", or {it}")).collect();
    format!("Answer yourself now{more}.")
}

/// The target of a handoff call, or why the call is refused.
fn handoff_target(
    run: &AgentRun<'_>,
    call: &ToolCall,
    members: &[AgentName],
    counted: bool,
) -> Result<Transfer, (CallFault, String)> {
    if counted {
        let text = "only the first handoff of a reply counts; hand over to one agent at a time";
        let text = text.to_owned();
        return Err((CallFault::SecondHandoff, text));
    }
    let others = || {
        let others = members.iter().filter(|member| *member != run.name);
        let names: Vec<&str> = others.map(AgentName::as_str).collect();
        if names.is_empty() {
            "there is nobody else: answer yourself".to_owned()
        } else {
            listed("there are", &names)
        }
    };
    let transfer = policy::parse_transfer(call)
        .map_err(|wrong| (CallFault::BadArguments, format!("{wrong}; {}", others())))?;
    let to = &transfer.to;
    if to == run.name {
        let text = format!("{to} cannot hand over to itself; {}", others());
        return Err((CallFault::HandoffToSelf, text));
    }
    if !members.contains(to) {
        let text = format!("there is no agent {:?}; {}", visible_name(to.as_str()), others());
        return Err((CallFault::UnknownAgent, text));
    }
    Ok(transfer)
}

/// The members of each swarm.
pub struct Rosters {
    bus: Bus,
    state: Mutex<RosterState>,
    /// Agents that may join: only model agents can hand over.
    may_join: BTreeSet<AgentName>,
}

struct RosterState {
    swarms: BTreeMap<AgentName, Roster>,
    closed: bool,
}

struct Roster {
    entry: AgentName,
    at_start: Arc<[AgentName]>,
    members: Arc<[AgentName]>,
}

impl Rosters {
    /// The swarms of these agents. `left` has the members that earlier runs of the session changed.
    pub fn new(
        bus: Bus,
        agents: &AgentsSpec,
        left: &BTreeMap<AgentName, Arc<[AgentName]>>,
    ) -> Self {
        let swarms = agents.values().filter_map(|agent| {
            let AgentKind::Swarm(swarm) = &agent.kind else { return None };
            let at_start: Arc<[AgentName]> = swarm.members.clone().into();
            let members = left.get(&agent.name).unwrap_or(&at_start);
            let (entry, members) = (swarm.entry.clone(), Arc::clone(members));
            Some((agent.name.clone(), Roster { entry, at_start, members }))
        });
        let able = agents
            .values()
            .filter(|it| matches!(it.kind, AgentKind::Model(_) | AgentKind::Person(_)));
        Self {
            bus,
            may_join: able.map(|agent| agent.name.clone()).collect(),
            state: Mutex::new(RosterState { swarms: swarms.collect(), closed: false }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, RosterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current members of a swarm; empty if there is no such swarm.
    pub fn members(&self, swarm: &AgentName) -> Arc<[AgentName]> {
        self.lock().swarms.get(swarm).map_or_else(|| [].into(), |it| Arc::clone(&it.members))
    }

    /// The swarms whose members differ from those at the start.
    pub fn changed(&self) -> BTreeMap<AgentName, Arc<[AgentName]>> {
        let state = self.lock();
        let changed = state.swarms.iter().filter(|(_, it)| it.members != it.at_start);
        changed.map(|(name, roster)| (name.clone(), Arc::clone(&roster.members))).collect()
    }

    /// Changes the members of a swarm and publishes it. An impossible change is ignored: the entry
    /// agent cannot leave, and only the scenario's model agents can join.
    fn change(&self, command: RosterCommand) {
        let RosterCommand { swarm, change, by } = command;
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let Some(roster) = state.swarms.get_mut(&swarm) else { return };
        let mut members: Vec<AgentName> = roster.members.to_vec();
        match &change {
            RosterChange::Add { agent } => members.push(agent.clone()),
            RosterChange::Remove { agent } => members.retain(|member| member != agent),
            RosterChange::Replace { members: others } => members.clone_from(others),
        }
        let names: Vec<&str> = members.iter().map(AgentName::as_str).collect();
        let good = check_names(None, Some(roster.entry.as_str()), &names).is_ok()
            && members.iter().all(|member| self.may_join.contains(member));
        if !good || *members == *roster.members {
            return;
        }
        roster.members = members.into();
        let members = Arc::clone(&roster.members);
        let changed = AgentFact::RosterChanged { swarm, members, change, by };
        self.bus.publish(SpanId::RUN, EventKind::from(changed));
    }
}

impl LiveControl for Rosters {
    fn take(&self, command: Command) -> Option<Command> {
        match command {
            Command::Roster(command) => {
                self.change(command);
                None
            }
            other => Some(other),
        }
    }

    fn end(&self) {
        self.lock().closed = true;
    }
}
