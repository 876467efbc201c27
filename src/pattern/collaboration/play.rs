//! The loop of source `000`: rounds of contributions until policy decides, then the brief.
//!
//! Within a round no role sees what the others say in it, so all may be asked at once. Whatever
//! order the replies come in, they are taken in the order of the sequence: acceptance, budget and
//! trace are the same as with one after another.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::payload::{self, HistoryRow, RECENT_ROUNDS, RecentRound};
use super::policy::{self, Accepted, ContributionGateway, RoleSet};
use crate::event::contribution::{Conflict, Contribution, Decision};
use crate::event::kind::{Asked, Purpose, Reply, SeatPlan};
use crate::event::{Boundary, EventKind, SpanId, StopReason};
use crate::run::{Ask, Crew, RunContext, Stop};
use crate::scenario::Scenario;
use crate::scenario::condition::Shown;
use crate::scenario::model::{CollaborationSpec, Concurrency, Repair, Role, WhenOff};
use crate::scenario::name::RoleName;
use crate::tool::CallFailed;

impl From<Stop> for StopReason {
    fn from(Stop(reason): Stop) -> Self {
        reason
    }
}

/// Plays a collaboration to its end. Where it stopped is what the context's phase says.
///
/// # Errors
/// The stop reason of a run that came to no decision.
pub async fn play(
    cx: &RunContext,
    scenario: &Scenario,
    spec: &CollaborationSpec,
) -> Result<(), StopReason> {
    let mut table = Table {
        cx,
        scenario,
        spec,
        gateway: ContributionGateway::new(spec.budget.max_messages),
        history: Vec::new(),
        open_conflicts: Vec::new(),
        base: base_of(cx, scenario),
    };
    for round in 1..=spec.budget.max_rounds {
        cx.at_phase(format!("round_{round}"));
        cx.boundary(Boundary::Round(round)).await?;
        if let Some(decision) = table.round(round).await? {
            return table.finalize(decision).await;
        }
        cx.at_phase(format!("round_{round}"));
    }
    Err(StopReason::MaxRoundsReached)
}

/// What conditions see in the whole run; nothing where no condition is there to look.
fn base_of(cx: &RunContext, scenario: &Scenario) -> Option<Shown> {
    cx.reads_conditions().then(|| {
        let mut shown = Shown::default();
        shown.set("facts", &Value::Object(scenario.facts.clone()));
        let inputs =
            scenario.inputs.iter().map(|input| (input.name.to_string(), input.value.clone()));
        shown.set("inputs", &Value::Object(inputs.collect()));
        shown.set("goal", &Value::from(scenario.goal.as_str()));
        shown
    })
}

fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

/// The reply of one seat's call.
type Said = Result<(SpanId, Reply), Box<CallFailed>>;

/// A seat that is asked in a round: its place in the sequence, who sits there, and which of this
/// role's seats it is.
struct Seat<'a> {
    place: u16,
    role: &'a RoleName,
    nth: u32,
    asked: Asked,
}

/// The state board of a run.
struct Table<'a> {
    cx: &'a RunContext,
    scenario: &'a Scenario,
    spec: &'a CollaborationSpec,
    gateway: ContributionGateway,
    history: Vec<HistoryRow>,
    open_conflicts: Vec<Conflict>,
    base: Option<Shown>,
}

impl<'a> Table<'a> {
    /// One round: the roster, every seat's contribution, what policy says of them.
    async fn round(&mut self, round: u32) -> Result<Option<Decision>, StopReason> {
        let (allow, seats) = self.roster();
        let span = self.cx.open(EventKind::RoundStarted {
            parent: SpanId::RUN,
            round,
            seats: seats
                .iter()
                .map(|seat| SeatPlan { role: seat.role.clone(), asked: seat.asked })
                .collect(),
        });
        let contributions = match self.spec.concurrency {
            Concurrency::Parallel => self.all_at_once(round, span, &allow, &seats).await?,
            Concurrency::Sequential => self.one_by_one(round, span, &allow, &seats).await?,
        };
        let stances = || contributions.iter().map(|from| from.stance);
        let conflicts = policy::detect_conflicts(stances());
        let decision = policy::decide_round_outcome(stances(), self.spec.budget.min_go_votes);
        self.cx.publish(
            span,
            EventKind::RoundClosed { round, conflicts: conflicts.clone(), decision },
        );
        self.history.push(HistoryRow {
            round,
            contributions,
            conflicts: conflicts.clone(),
            decision,
        });
        self.open_conflicts = conflicts;
        Ok(decision)
    }

    /// Who may act in this round and who is asked. Taken once, so that a flag turned in the middle
    /// of a round counts from the next. After a seat that is sure to stop the run nobody is asked.
    fn roster(&self) -> (RoleSet, Vec<Seat<'a>>) {
        let on = |role: &Role| role.behind.as_ref().is_none_or(|behind| self.cx.flag(&behind.flag));
        let allow: RoleSet = self
            .spec
            .roles
            .iter()
            .filter(|(_, role)| on(role))
            .map(|(name, _)| name.clone())
            .collect();
        let mut seats = Vec::with_capacity(self.spec.sequence.len());
        let mut seen: BTreeMap<&RoleName, u32> = BTreeMap::new();
        let (mut ahead, mut over) = (0, false);
        for (place, role) in (0u16..).zip(&self.spec.sequence) {
            let nth = seen.entry(role).and_modify(|nth| *nth += 1).or_insert(1);
            let skips = self.spec.roles.get(role).is_some_and(|role| {
                !on(role) && role.behind.as_ref().is_some_and(|it| it.when_off == WhenOff::Skip)
            });
            let asked = if skips {
                Asked::Off
            } else if over {
                Asked::NotReached
            } else {
                match self.gateway.may_ask(role, &allow, ahead) {
                    Ok(()) => Asked::Yes,
                    Err(StopReason::AgentDenied(_)) => Asked::Denied,
                    Err(_) => Asked::Unaffordable,
                }
            };
            ahead += u32::from(asked == Asked::Yes);
            over |= matches!(asked, Asked::Denied | Asked::Unaffordable);
            seats.push(Seat { place, role, nth: *nth, asked });
        }
        (allow, seats)
    }

    async fn all_at_once(
        &mut self,
        round: u32,
        span: SpanId,
        allow: &RoleSet,
        seats: &[Seat<'a>],
    ) -> Result<Vec<Arc<Contribution>>, StopReason> {
        let recent = payload::recent_rounds(&self.history, RECENT_ROUNDS);
        let mut crew = Crew::default();
        for seat in seats.iter().filter(|seat| seat.asked == Asked::Yes) {
            crew.meanwhile(self.cx.boundary(message(round, seat))).await?;
            crew.start(seat.place.into(), self.cx.ask(self.ask_of(round, span, seat, &recent)));
        }
        let mut taken = Vec::with_capacity(seats.len());
        for seat in seats {
            self.cx.at_phase(format!("round_{round}:{}", seat.role));
            let said = match seat.asked {
                Asked::Yes => crew.take(seat.place.into()).await,
                _ => None,
            };
            taken.extend(self.judge(round, span, allow, seat, said)?);
        }
        Ok(taken)
    }

    async fn one_by_one(
        &mut self,
        round: u32,
        span: SpanId,
        allow: &RoleSet,
        seats: &[Seat<'a>],
    ) -> Result<Vec<Arc<Contribution>>, StopReason> {
        let recent = payload::recent_rounds(&self.history, RECENT_ROUNDS);
        let mut taken = Vec::with_capacity(seats.len());
        for seat in seats {
            self.cx.at_phase(format!("round_{round}:{}", seat.role));
            let said = match seat.asked {
                Asked::Yes => {
                    self.cx.boundary(message(round, seat)).await?;
                    Some(self.cx.ask(self.ask_of(round, span, seat, &recent)).await)
                }
                _ => None,
            };
            taken.extend(self.judge(round, span, allow, seat, said)?);
        }
        Ok(taken)
    }

    fn ask_of(&self, round: u32, span: SpanId, seat: &Seat<'_>, recent: &[RecentRound]) -> Ask {
        let prompt = self.spec.roles.get(seat.role).map_or("", |role| &role.prompt);
        let (goal, facts) = (&self.scenario.goal, &self.scenario.facts);
        let shown = self.base.clone().map(|mut shown| {
            shown.set("role", &Value::from(seat.role.as_str()));
            shown.set("round", &Value::from(round));
            shown.set("recent_rounds", &value(&recent));
            shown.set("open_conflicts", &value(&self.open_conflicts));
            shown.set("flags", &value(&self.cx.gate().flags()));
            shown
        });
        Ask {
            parent: span,
            purpose: Purpose::Contribution { round, seat: seat.place, role: seat.role.clone() },
            path: message(round, seat).id().to_string(),
            messages: payload::for_role(
                prompt,
                goal,
                seat.role,
                facts,
                recent,
                &self.open_conflicts,
            ),
            json: true,
            shown: Arc::new(shown.unwrap_or_default()),
        }
    }

    /// What the gateway makes of a seat: nothing of one that is off, a contribution, or the reason
    /// that stops the run.
    fn judge(
        &mut self,
        round: u32,
        span: SpanId,
        allow: &RoleSet,
        seat: &Seat<'_>,
        said: Option<Said>,
    ) -> Result<Option<Arc<Contribution>>, StopReason> {
        let refuse = |cx: &RunContext, span, reason: StopReason, raw| {
            cx.publish(
                span,
                EventKind::ContributionRefused {
                    round,
                    seat: seat.place,
                    role: seat.role.clone(),
                    reason: reason.clone(),
                    raw,
                },
            );
            Err(reason)
        };
        let (call, reply) = match (seat.asked, said) {
            (Asked::Off, _) => return Ok(None),
            (_, Some(Ok(said))) => said,
            (_, Some(Err(failed))) => return Err(failed.reason),
            (_, None) => {
                return match self.gateway.may_ask(seat.role, allow, 0) {
                    Err(reason) => refuse(self.cx, span, reason, None),
                    Ok(()) => Err(StopReason::InternalError),
                };
            }
        };
        let raw = self.parse(call, &reply.text);
        match self.gateway.accept(&raw, seat.role, allow) {
            Ok(Accepted { contribution, extra_keys, extra_actions }) => {
                let contribution = Arc::new(contribution);
                self.cx.publish(
                    call,
                    EventKind::ContributionAccepted {
                        round,
                        seat: seat.place,
                        contribution: Arc::clone(&contribution),
                        extra_keys,
                        extra_actions,
                        messages: self.gateway.messages(),
                    },
                );
                Ok(Some(contribution))
            }
            Err(reason) => refuse(self.cx, call, reason, Some(raw)),
        }
    }

    /// The reply as data. An empty one is an empty object and one that is not JSON is handed to
    /// the validator in a wrapper, both as the source does.
    fn parse(&self, call: SpanId, text: &str) -> Value {
        let text = if text.is_empty() { "{}" } else { text };
        if let Ok(value) = serde_json::from_str(text) {
            return value;
        }
        if self.scenario.model.repair == Repair::Fences
            && let Some(Ok(value)) = without_fences(text).map(serde_json::from_str)
        {
            self.cx.publish(call, EventKind::ReplyRepaired { repair: "fences".to_owned() });
            return value;
        }
        json!({ "invalid": true, "raw": text })
    }

    /// The brief: one more call, whose text is the answer.
    async fn finalize(&mut self, decision: Decision) -> Result<(), StopReason> {
        self.cx.at_phase("finalize".to_owned());
        self.cx.boundary(Boundary::Finalize).await?;
        let shown = self.base.take().map(|mut shown| {
            shown.set("final_decision", &value(&decision));
            shown.set("history", &value(&self.history));
            shown.set("flags", &value(&self.cx.gate().flags()));
            shown
        });
        let (goal, prompt) = (&self.scenario.goal, &self.spec.finalize_prompt);
        let ask = Ask {
            parent: SpanId::RUN,
            purpose: Purpose::Finalize,
            path: Boundary::Finalize.id().to_string(),
            messages: payload::for_brief(prompt, goal, decision, &self.history),
            json: false,
            shown: Arc::new(shown.unwrap_or_default()),
        };
        let (call, reply) = self.cx.ask(ask).await.map_err(|failed| failed.reason)?;
        let text = reply.text.trim();
        if text.is_empty() {
            return Err(StopReason::LlmEmpty);
        }
        self.cx.publish(call, EventKind::AnswerComposed { text: text.into() });
        Ok(())
    }
}

fn message(round: u32, seat: &Seat<'_>) -> Boundary {
    Boundary::Message { round, role: seat.role.clone(), nth: seat.nth }
}

/// The inside of a Markdown code fence that is all there is, its language tag left out.
fn without_fences(text: &str) -> Option<&str> {
    let inside = text.trim().strip_prefix("```")?.strip_suffix("```")?;
    let (tag, body) = inside.split_once('\n')?;
    tag.trim().chars().all(|c| c.is_ascii_alphanumeric()).then_some(body)
}

#[cfg(test)]
mod tests {
    use super::without_fences;

    #[test]
    fn only_a_fence_around_everything_is_taken_off() {
        assert_eq!(without_fences("```json\n{}\n```"), Some("{}\n"));
        assert_eq!(without_fences("  ```\n{}\n```\n"), Some("{}\n"));
        assert_eq!(without_fences("Here it is: ```json\n{}\n```"), None);
        assert_eq!(without_fences("```json {} ```"), None);
        assert_eq!(without_fences("{}"), None);
    }
}
