//! A swarm: its members are in control one after another, until one answers without a handoff.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;

use super::floor::Floor;
use super::gate::{Behind, Halt, Try};
use super::play::{Answer, Play};
use super::policy;
use super::talk::{Place, Role, Talk, TeamPlace, Turned, model_of};
use crate::event::kind::{CallStarted, Prompt, Purpose, Reply};
use crate::event::world::team::HANDED_OVER;
use crate::event::{EventKind, SpanId, StopReason, told};
use crate::run::RunContext;
use crate::scenario::agent::Swarm;
use crate::scenario::name::{AgentName, ToolName};

/// A running swarm.
pub(super) struct Running<'s> {
    pub name: &'s AgentName,
    pub swarm: &'s Swarm,
    pub place: Place<'s>,
    pub floor: &'s Floor,
}

/// A swarm without an answer so far. When it is stopped, by its own limits or from outside
/// (timeout, cancellation), it reports the best partial text.
struct Open<'s> {
    cx: &'s RunContext,
    floor: &'s Floor,
    span: SpanId,
    open: bool,
}

impl Open<'_> {
    /// Reports the best partial text and returns it with its author.
    fn close(&mut self) -> Option<(Arc<str>, AgentName)> {
        self.open = false;
        let (text, by) = self.floor.best()?;
        let text: Arc<str> = text.trim().into();
        let partial = EventKind::AnswerPartial { text: Arc::clone(&text), by: by.clone() };
        self.cx.publish(self.span, partial);
        Some((text, by))
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.open {
            self.close();
        }
    }
}

/// One turn of control: a member and its input.
struct Hop<'h> {
    number: u32,
    holder: &'h AgentName,
    from: Option<&'h AgentName>,
    input: &'h Arc<str>,
}

impl Play<'_> {
    /// Runs a swarm from the member `start` to its answer.
    pub(super) async fn swarm(
        &self,
        running: &Running<'_>,
        start: &AgentName,
        root_input: &Arc<str>,
    ) -> Result<Answer, Box<Halt>> {
        let Running { name, swarm, place, floor } = running;
        let (mut holder, mut from) = (start.clone(), None::<AgentName>);
        let mut input = Arc::clone(root_input);
        floor.give(&holder, None, &input);
        let mut open = Open { cx: self.cx, floor, span: place.span, open: true };
        let mut number = 0;
        loop {
            number += 1;
            let hop = Hop { number, holder: &holder, from: from.as_ref(), input: &input };
            let turned = self.hop(running, &hop).await;
            let (handed, said) = match turned {
                Ok(Turned::HandedOver { handed, said }) => (handed, said),
                Ok(Turned::Answered { text, .. }) => {
                    open.open = false;
                    return Ok(Answer { text, by: holder });
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
                EventKind::HandoffMade {
                    swarm: (*name).clone(),
                    from: holder.clone(),
                    to: to.clone(),
                    message,
                    guard: handed.guard,
                    said,
                },
            );
            floor.give(&to, Some(&holder), &input);
            from = Some(std::mem::replace(&mut holder, to));
        }
    }

    /// Runs one member in control; its run is a call through the gateway.
    async fn hop(&self, running: &Running<'_>, hop: &Hop<'_>) -> Result<Turned, Box<Halt>> {
        let Running { name, swarm, place, floor } = running;
        let Hop { number, holder, from, input } = *hop;
        let Some(agent) = self.spec.agent(holder) else {
            return Err(Halt::of(StopReason::InternalError));
        };
        let Some(model) = model_of(agent) else {
            return Err(Halt::of(StopReason::InternalError));
        };
        if place.outer {
            self.cx.at_phase(holder.to_string());
        }
        let turn = floor.turn_of(holder);
        let path = format!("{}/{holder}.{turn}", place.path);
        let back = floor.mark(holder);
        let turned = Mutex::new(None);
        let draws = format!("{}/{holder}.{turn}", place.draws);
        let attempt = |it: Try| {
            let (path, back, turned) = (&path, &back, &turned);
            let draws = it.draws(&draws);
            let run = async move {
                floor.go_back(holder, back);
                let talk = Talk {
                    name: holder,
                    model,
                    role: Role::Member(name, swarm),
                    place: Place { span: it.span, path, draws: &draws, outer: place.outer },
                    team: TeamPlace { span: place.span, path: place.path },
                    floor,
                    turn,
                    input,
                    from,
                    begun: from.is_some(),
                };
                let ended = self.talk(&talk).await?;
                let reply = match &ended {
                    Turned::Answered { text, .. } => Reply::of_agent(Arc::clone(text)),
                    Turned::HandedOver { .. } => Reply {
                        finish: Some(HANDED_OVER.into()),
                        ..Reply::of_agent(Arc::default())
                    },
                };
                *turned.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
                Ok(reply)
            };
            Box::pin(run) as BoxFuture<'_, Result<Reply, Box<Halt>>>
        };
        let bound = swarm.node_timeout.filter(|_| from.is_some());
        let behind = Behind::new(self.cx, holder, format!("hop:{draws}"), bound, attempt);
        let started = CallStarted {
            parent: place.span,
            tool: ToolName::from(holder.as_str()),
            purpose: Purpose::Hop {
                agent: holder.clone(),
                turn,
                swarm: (*name).clone(),
                hop: number,
                from: from.cloned(),
            },
            prompt: Prompt::default(),
            args: None,
            model: None,
            again: 0,
        };
        match behind.make(started).await {
            Ok(answered) => {
                let ended = turned.lock().unwrap_or_else(PoisonError::into_inner).take();
                match ended.filter(|_| answered.stand_in.is_none()) {
                    Some(ended) => Ok(ended),
                    None => {
                        let text = told::reply(&answered.reply);
                        floor.go_back(holder, &back);
                        floor.stands_in(holder, &text);
                        Ok(Turned::Answered { text, by: None })
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
