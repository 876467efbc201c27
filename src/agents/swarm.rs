//! A swarm: its members are in control one after another, until one answers without a handoff.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;

use super::agent_call::{AgentCall, AttemptId, Halt};
use super::agent_run::agent_model;
use super::policy;
use super::projection::HANDED_OVER;
use super::runner::{AgentAnswer, AgentRunner};
use super::shared_history::SharedHistory;
use super::spec::Swarm;
use super::turn::{AgentPosition, AgentReply, AgentRole, AgentRun, TeamPosition};
use crate::agents::facts::AgentFact;
use crate::base::name::{AgentName, ToolName};
use crate::event::kind::{CallStarted, Prompt, Purpose, Reply, ReplyEnd};
use crate::event::{SpanId, StopReason, result_text};
use crate::pattern::reply;
use crate::run::RunContext;
use crate::scenario::spec::model::ModelSettings;

/// A running swarm.
pub(crate) struct RunningSwarm<'s> {
    pub name: &'s AgentName,
    pub swarm: &'s Swarm,
    pub place: AgentPosition<'s>,
    pub floor: &'s SharedHistory,
}

/// A swarm without an answer so far. When it is stopped, by its own limits or from outside
/// (timeout, cancellation), it reports the best partial text.
struct OpenSwarm<'s> {
    cx: &'s RunContext,
    settings: &'s ModelSettings,
    floor: &'s SharedHistory,
    span: SpanId,
    open: bool,
}

impl OpenSwarm<'_> {
    /// Reports the best partial text and returns it with its author.
    fn close(&mut self) -> Option<(Arc<str>, AgentName)> {
        self.open = false;
        let (text, by) = self.floor.best_partial()?;
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
    pub(crate) async fn run_swarm(
        &self,
        running: &RunningSwarm<'_>,
        start: &AgentName,
        root_input: &Arc<str>,
    ) -> Result<AgentAnswer, Box<Halt>> {
        let RunningSwarm { name, swarm, place, floor } = running;
        let (mut holder, mut from) = (start.clone(), None::<AgentName>);
        let mut input = Arc::clone(root_input);
        floor.record_input(&holder, None, &input);
        let settings = &self.scenario.model;
        let mut open = OpenSwarm { cx: self.cx, settings, floor, span: place.span, open: true };
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
            floor.record_input(&to, Some(&holder), &input);
            from = Some(std::mem::replace(&mut holder, to));
        }
    }

    /// Runs one member in control; its run is a call through the gateway.
    async fn run_hop(
        &self,
        running: &RunningSwarm<'_>,
        hop: &SwarmHop<'_>,
    ) -> Result<AgentReply, Box<Halt>> {
        let RunningSwarm { name, swarm, place, floor } = running;
        let SwarmHop { number, holder, from, input } = *hop;
        let Some(agent) = self.agents.get(holder) else {
            return Err(Halt::by_limit(StopReason::InternalError));
        };
        let Some(model) = agent_model(agent) else {
            return Err(Halt::by_limit(StopReason::InternalError));
        };
        if place.outer {
            self.cx.set_phase(holder.to_string());
        }
        let turn = floor.next_turn(holder);
        let path = format!("{}/{holder}.{turn}", place.path);
        let back = floor.history_mark(holder);
        let turned = Mutex::new(None);
        let draws = format!("{}/{holder}.{turn}", place.seed_path);
        let attempt = |it: AttemptId| {
            let (path, back, turned) = (&path, &back, &turned);
            let draws = it.attempt_seed_path(&draws);
            let run = async move {
                floor.restore_mark(holder, back);
                let talk = AgentRun {
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
                    team_history: floor,
                    turn,
                    input,
                    from,
                    begun: from.is_some(),
                };
                let ended = self.run_agent_turn(&talk).await?;
                let reply = match &ended {
                    AgentReply::Answered { text, end, .. } => {
                        Reply { end: *end, ..Reply::from_agent_text(Arc::clone(text)) }
                    }
                    AgentReply::HandedOver { .. } => Reply {
                        finish: Some(HANDED_OVER.into()),
                        ..Reply::from_agent_text(Arc::default())
                    },
                };
                *turned.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
                Ok(reply)
            };
            Box::pin(run) as BoxFuture<'_, Result<Reply, Box<Halt>>>
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
                        floor.restore_mark(holder, &back);
                        floor.record_fallback(holder, &text);
                        Ok(AgentReply::Answered { text, by: None, end: ReplyEnd::Stop })
                    }
                }
            }
            Err((_, halt)) => Err(halt),
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
