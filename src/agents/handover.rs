//! The handoffs of a reply: which one counts, and whether the swarm's limits accept it.

use super::agent_call::Halt;
use super::call_result::{ToolCallResult, is_transfer, listed, visible_name};
use super::policy::{self, Transfer};
use super::runner::AgentRunner;
use super::spec::Swarm;
use super::turn::{AcceptedHandoff, AgentRun, ModelReply};
use crate::agents::facts::{AgentFact, CallFault, HandoffRefusal};
use crate::base::name::{AgentName, ToolName};
use crate::event::kind::ToolCall;
use crate::event::{Boundary, StopReason};

impl AgentRunner<'_> {
    /// Judges the handoffs of a reply: the first one with a valid target counts. The run can pause
    /// before an accepted handoff is carried out.
    pub(super) async fn judge_handoffs(
        &self,
        talk: &AgentRun<'_>,
        name: &AgentName,
        swarm: &Swarm,
        said: ModelReply,
        calls: &[ToolCall],
        results: &mut [Option<ToolCallResult>],
    ) -> Result<Option<AcceptedHandoff>, Box<Halt>> {
        let mut counted = false;
        let (mut handed, mut halt) = (None, None);
        for (index, call) in calls.iter().enumerate().filter(|(_, call)| is_transfer(talk, call)) {
            let transfer = match handoff_target(talk, call, &self.rosters.members(name), counted) {
                Ok(chosen) => chosen,
                Err((why, text)) => {
                    results[index] = Some(self.refuse(talk, said, index, call, why, &text));
                    continue;
                }
            };
            counted = true;
            let (judged, guard, rejections) =
                talk.team_history.with_limits(|limiter, rejections| {
                    let judged = limiter.check_handoff(&transfer.to).map_err(|why| {
                        let members = self.rosters.members(name);
                        let others = members.iter().filter(|member| *member != talk.name);
                        let open =
                            others.filter(|other| limiter.clone().check_handoff(other).is_ok());
                        (why, alternatives(talk, open))
                    });
                    *rejections += u32::from(judged.is_err());
                    (judged, limiter.guard(), *rejections)
                });
            results[index] = Some(match judged {
                Ok(()) => {
                    let to = transfer.to.clone();
                    let (path, handoff) = (talk.team.path.into(), guard.handoffs);
                    let outer = talk.place.outer;
                    self.wait_at_boundary(Boundary::Handoff { path, handoff, to, outer }).await;
                    // The target may have left the swarm during the pause.
                    match handoff_target(talk, call, &self.rosters.members(name), false) {
                        Ok(transfer) => {
                            let text = format!("handed over to {}", transfer.to).into();
                            handed = Some(AcceptedHandoff { transfer, guard });
                            ToolCallResult::of_tool(text)
                        }
                        Err((why, text)) => self.refuse(talk, said, index, call, why, &text),
                    }
                }
                Err((why, instead)) => {
                    let (swarm_name, from) = (name.clone(), talk.name.clone());
                    self.cx.publish(
                        talk.team.span,
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
fn alternatives<'m>(talk: &AgentRun<'_>, open: impl Iterator<Item = &'m AgentName>) -> String {
    let one_of = |verb: &str, names: &[&str]| match names {
        [] => None,
        [one] => Some(format!("{verb} {one}")),
        several => Some(format!("{verb} one of {}", several.join(", "))),
    };
    let tools: Vec<&str> = talk.model.tools.iter().map(ToolName::as_str).collect();
    let open: Vec<&str> = open.map(AgentName::as_str).collect();
    let more = [one_of("call", &tools), one_of("hand over to", &open)];
    let more: String = more.iter().flatten().map(|it| format!(", or {it}")).collect();
    format!("Answer yourself now{more}.")
}

/// The target of a handoff call, or why the call is refused.
fn handoff_target(
    talk: &AgentRun<'_>,
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
        let others = members.iter().filter(|member| *member != talk.name);
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
    if to == talk.name {
        let text = format!("{to} cannot hand over to itself; {}", others());
        return Err((CallFault::HandoffToSelf, text));
    }
    if !members.contains(to) {
        let text = format!("there is no agent {:?}; {}", visible_name(to.as_str()), others());
        return Err((CallFault::UnknownAgent, text));
    }
    Ok(transfer)
}
