//! The loop of the collaboration source document: rounds of contributions until policy decides,
//! then the brief.
//!
//! Within a round no role sees what the others say in it, so all can be called at once. Replies are
//! processed in sequence order, whatever order they arrive in, so acceptance, budget and trace are
//! the same as with sequential calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::detail;
use super::payload::{self, HistoryRow, RECENT_ROUNDS, RecentRound, RoleTexts, TableTexts};
use super::plain;
use super::policy::{self, Accepted, ContributionGateway, RoleSet};
use crate::event::contribution::{Conflict, Contribution, Decision};
use crate::event::kind::{Asked, Purpose, SeatPlan};
use crate::event::{Boundary, EventKind, SpanId, StopReason};
use crate::pattern::asked::{self, value};
use crate::pattern::reply::{Judged, Refusal, ask_plain_json};
use crate::run::{Ask, Crew, Phase, RunContext};
use crate::scenario::Scenario;
use crate::scenario::condition::Shown;
use crate::scenario::model::{CollaborationSpec, Concurrency, Role, WhenOff};
use crate::scenario::name::RoleName;
use crate::tool::CallFailed;

/// Runs a collaboration to its end. The context's phase says how far it got.
///
/// # Errors
/// The stop reason, if the run ends without a decision.
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
        base: asked::base_of(cx, scenario),
        texts: scenario.prepared.get(|| TableTexts::of(scenario, spec)),
    };
    for round in 1..=spec.budget.max_rounds {
        cx.at_phase(Phase::Round(round));
        cx.boundary(Boundary::Round(round)).await?;
        if let Some(decision) = table.round(round).await? {
            return table.finalize(decision).await;
        }
        cx.at_phase(Phase::Round(round));
    }
    Err(StopReason::MaxRoundsReached)
}

/// The judged reply of one seat, or the failed call.
type Said = Result<Judged<Accepted>, Box<CallFailed>>;

/// A seat of a round: its place in the sequence, its role, and its number among the seats of this
/// role.
struct Seat<'a> {
    place: u16,
    role: &'a RoleName,
    nth: u32,
    asked: Asked,
}

/// The state of a run.
struct Table<'a> {
    cx: &'a RunContext,
    scenario: &'a Scenario,
    spec: &'a CollaborationSpec,
    gateway: ContributionGateway,
    history: Vec<HistoryRow>,
    open_conflicts: Vec<Conflict>,
    base: Option<Shown>,
    texts: Arc<TableTexts>,
}

impl<'a> Table<'a> {
    /// Plays one round: the roster, the contribution of every seat, the verdict of policy.
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

    /// The roles that may act in this round, and the status of each seat. Computed once per round,
    /// so a flag that changes during a round takes effect in the next one. Seats after one that is
    /// sure to stop the run are not called.
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
            let ask = self.ask_of(round, span, seat, &recent);
            crew.start(seat.place.into(), said(self.cx, self.scenario, seat.role, allow, ask));
        }
        let mut taken = Vec::with_capacity(seats.len());
        for seat in seats {
            self.cx.at_phase(Phase::Seat { round, role: seat.role.clone() });
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
            self.cx.at_phase(Phase::Seat { round, role: seat.role.clone() });
            let said = match seat.asked {
                Asked::Yes => {
                    self.cx.boundary(message(round, seat)).await?;
                    let ask = self.ask_of(round, span, seat, &recent);
                    Some(said(self.cx, self.scenario, seat.role, allow, ask).await)
                }
                _ => None,
            };
            taken.extend(self.judge(round, span, allow, seat, said)?);
        }
        Ok(taken)
    }

    fn ask_of(&mut self, round: u32, span: SpanId, seat: &Seat<'a>, recent: &[RecentRound]) -> Ask {
        let texts = self.texts.roles.get(seat.role);
        let RoleTexts { instructions, form } =
            texts.cloned().unwrap_or_else(|| RoleTexts::of(seat.role, ""));
        let (goal, facts) = (&self.scenario.goal, &self.texts.facts);
        let shown = self.base.clone().map(|mut shown| {
            shown.set("role", &Value::from(seat.role.as_str()));
            shown.set("round", &Value::from(round));
            shown.set("recent_rounds", &value(&recent));
            shown.set("open_conflicts", &value(&self.open_conflicts));
            shown.set("flags", &value(&self.cx.gate().flags()));
            shown
        });
        let purpose = Purpose::Contribution { round, seat: seat.place, role: seat.role.clone() };
        let path = message(round, seat).text();
        let messages =
            payload::for_role(instructions, goal, seat.role, facts, recent, &self.open_conflicts);
        Ask::once(span, purpose, path, messages, form, shown)
    }

    /// The gateway's verdict on a seat: nothing for a seat that is off, a contribution, or the
    /// reason that stops the run.
    fn judge(
        &mut self,
        round: u32,
        span: SpanId,
        allow: &RoleSet,
        seat: &Seat<'_>,
        said: Option<Said>,
    ) -> Result<Option<Arc<Contribution>>, StopReason> {
        let refuse = |cx: &RunContext, span, reason: StopReason, raw: Option<Value>| {
            cx.publish(
                span,
                EventKind::ContributionRefused {
                    round,
                    seat: seat.place,
                    role: seat.role.clone(),
                    reason: reason.clone(),
                    raw: raw.map(Arc::new),
                },
            );
            Err(reason)
        };
        let Judged { call, text, raw, judged } = match (seat.asked, said) {
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
        match self.gateway.take(seat.role, allow).and(judged) {
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
            Err(reason) => refuse(self.cx, call, reason, Some(raw.of(&text))),
        }
    }

    /// The brief: the final call, whose text is the answer.
    async fn finalize(&mut self, decision: Decision) -> Result<(), StopReason> {
        self.cx.at_phase(Phase::Finalize);
        self.cx.boundary(Boundary::Finalize).await?;
        let shown = self.base.take().map(|mut shown| {
            shown.set("final_decision", &value(&decision));
            shown.set("history", &value(&self.history));
            shown.set("flags", &value(&self.cx.gate().flags()));
            shown
        });
        let (goal, instructions) = (&self.scenario.goal, Arc::clone(&self.texts.finalize));
        let messages = payload::for_brief(instructions, goal, decision, &self.history);
        asked::answer(self.cx, messages, shown).await
    }
}

/// Calls a seat's model until policy accepts the reply or the retries are used up.
fn said<'a>(
    cx: &'a RunContext,
    scenario: &'a Scenario,
    role: &'a RoleName,
    allow: &'a RoleSet,
    ask: Ask,
) -> impl Future<Output = Said> + Send + 'a {
    let wrap = |text: &str| json!({ "invalid": true, "raw": text });
    let plain = move |text: &str| plain::judge(text, role, allow);
    ask_plain_json(cx, &scenario.model, ask, wrap, plain, move |raw, _| {
        policy::judge(raw, role, allow).map_err(|fault| Refusal {
            detail: detail::of(&fault, raw, role, allow),
            reason: StopReason::InvalidContribution(fault),
        })
    })
}

fn message(round: u32, seat: &Seat<'_>) -> Boundary {
    Boundary::Message { round, role: seat.role.clone(), nth: seat.nth }
}
