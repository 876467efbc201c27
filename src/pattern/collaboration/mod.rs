//! The collaboration pattern (collaboration source document): roles contribute in rounds until
//! policy reaches a decision; then comes the brief.
//!
//! Within a round no role sees what the others say in it, so all can be called at once. Replies are
//! processed in sequence order, not in the order of their arrival, so acceptance, budget and trace
//! are the same as with sequential calls.

pub mod payload;
pub mod policy;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::Either;
use serde_json::{Map, Value, json};

use self::payload::{
    ClosedRound, CollaborationTexts, RECENT_ROUNDS, RecentRound, RoleTexts, RoundState,
};
use self::policy::{AcceptedContribution, ContributionGateway, RoleSet};
use crate::base::name::{PersonName, RoleName};
use crate::gateway::CallFailed;
use crate::log::event::{
    Answer, AnsweredBy, Boundary, ChatMessage, EventKind, Purpose, SpanId, StopReason, Subject,
};
use crate::log::facts::PatternPlan;
use crate::log::facts::collaboration::{
    CollaborationFact, CollaborationPlan, Conflict, Contribution, DecidedBy, SeatPlan, SeatStatus,
};
use crate::log::world::collaboration::RoundFigures;
use crate::pattern::people::{PersonReply, PersonRequest, call_person};
use crate::pattern::prompting;
use crate::pattern::prompting::to_json;
use crate::pattern::reply::{JudgedReply, Refusal, request_json};
use crate::run::questions::Question;
use crate::run::{ModelRequest, OrderedJoinSet, Phase, RunContext};
use crate::scenario::Scenario;
use crate::scenario::cel::decision::{ConditionDecision, decide};
use crate::scenario::cel::{CelBindings, ConditionError, EvalBudget};
use crate::scenario::patterns::collaboration::{
    CollaborationSpec, Concurrency, DecideRow, Decision, RoleSpec, WhenOff,
};
use crate::scenario::people::Otherwise;
use crate::scenario::spec::FILLED_AGENT;
use crate::scenario::spec::script::{PromptTemplate, ReplyEnd};

/// Runs a collaboration to its end. The context's phase says how far it got.
///
/// # Errors
/// The stop reason, if the run ends without a decision.
pub async fn play(
    cx: &RunContext,
    scenario: &Scenario,
    spec: &CollaborationSpec,
) -> Result<(), StopReason> {
    let PatternPlan::Collaboration(plan) = cx.plan() else { return Err(StopReason::InternalError) };
    let mut table = CollaborationRun {
        cx,
        scenario,
        spec,
        plan,
        gateway: ContributionGateway::new(spec.budget.max_messages),
        history: Vec::new(),
        open_conflicts: Vec::new(),
        base: prompting::run_conditions(cx, scenario),
        texts: scenario.prepared.get(|| CollaborationTexts::from_scenario(scenario, spec)),
    };
    for round in 1..=spec.budget.max_rounds {
        cx.set_phase(Phase::Round(round));
        cx.boundary(Boundary::Round(round)).await?;
        if let Some(decision) = table.round(round).await? {
            return table.finalize(decision).await;
        }
        cx.set_phase(Phase::Round(round));
    }
    if let Some(person) = &spec.on_no_decision
        && let Some(decision) = table.ask_for_decision(person).await?
    {
        return table.finalize(decision).await;
    }
    let reason = StopReason::MaxRoundsReached;
    if plan.live_rules {
        // The run ends for this reason, even if the brief fails.
        cx.control().settle(reason.clone());
        table.brief_without_decision().await?;
    }
    Err(reason)
}

/// The judged reply of one seat, or the failed call.
type SeatReply = Result<JudgedReply<AcceptedContribution>, Box<CallFailed>>;

/// A seat of a round: its place in the sequence, its role, and its number among the seats of this
/// role.
struct SeatCall<'a> {
    place: u16,
    role: &'a RoleName,
    nth: u32,
    asked: SeatStatus,
}

/// The state of a run.
struct CollaborationRun<'a> {
    cx: &'a RunContext,
    scenario: &'a Scenario,
    spec: &'a CollaborationSpec,
    /// The setup that is in force, as the head of the log has it.
    plan: &'a CollaborationPlan,
    gateway: ContributionGateway,
    history: Vec<ClosedRound>,
    open_conflicts: Vec<Conflict>,
    base: Option<CelBindings>,
    texts: Arc<CollaborationTexts>,
}

impl<'a> CollaborationRun<'a> {
    /// Plays one round: the roster, the contribution of every seat, the verdict of policy.
    async fn round(&mut self, round: u32) -> Result<Option<Decision>, StopReason> {
        let (allow, seats) = self.roster();
        let span = self.cx.open_span(CollaborationFact::RoundStarted {
            parent: SpanId::RUN,
            round,
            seats: seats
                .iter()
                .map(|seat| SeatPlan { role: seat.role.clone(), status: seat.asked })
                .collect(),
        });
        let contributions = match self.spec.concurrency {
            Concurrency::Parallel => {
                self.call_seats_in_parallel(round, span, &allow, &seats).await?
            }
            Concurrency::Sequential => {
                self.call_seats_in_sequence(round, span, &allow, &seats).await?
            }
        };
        let stances = || contributions.iter().map(|from| from.stance);
        let conflicts = policy::detect_conflicts(stances());
        let (decision, decided_by) = self.decide(round, span, &contributions).await;
        let closed = conflicts.clone();
        self.cx.publish(
            span,
            CollaborationFact::RoundClosed { round, conflicts: closed, decision, decided_by },
        );
        self.history.push(ClosedRound {
            round,
            contributions,
            conflicts: conflicts.clone(),
            decision,
        });
        self.open_conflicts = conflicts;
        Ok(decision)
    }

    /// Asks a person to decide, because no round did.
    async fn ask_for_decision(&self, person: &PersonName) -> Result<Option<Decision>, StopReason> {
        let last = self.history.last();
        let contributions = last.map_or(&[][..], |round| &round.contributions);
        let stances: Map<String, Value> = contributions
            .iter()
            .map(|from| (from.agent.to_string(), Value::from(from.stance.word())))
            .collect();
        let conflicts = self.open_conflicts.iter().map(|conflict| conflict.phrase().into());
        let question = Question {
            span: SpanId::RUN,
            inside: SpanId::RUN,
            by: None,
            why: None,
            subject: Subject::Decision {
                stances: Arc::new(Value::Object(stances)),
                conflicts: conflicts.collect(),
            },
            asking: self.cx.asking(person, Otherwise::Stop),
            rule: None,
        };
        let ended = self.cx.questions().ask(question).await?;
        Ok(match &ended.answered.answer {
            Answer::Choose { choice, .. } => {
                Decision::ALL.into_iter().find(|decision| decision.word() == &**choice)
            }
            _ => None,
        })
    }

    /// The decision of a round: a veto, then the rows of the scenario, or those of the source
    /// document.
    async fn decide(
        &self,
        round: u32,
        span: SpanId,
        contributions: &[Arc<Contribution>],
    ) -> (Option<Decision>, Option<DecidedBy>) {
        if let Some(role) = policy::veto_of(&self.plan.vetoes, contributions) {
            return (Some(Decision::NoGo), Some(DecidedBy::Veto(role.clone())));
        }
        // Without a contribution there is no decision, also where "all of none" would hold.
        if contributions.is_empty() {
            return (None, None);
        }
        let rows = &self.spec.decide;
        if rows.is_empty() {
            let stances = contributions.iter().map(|from| from.stance);
            return (policy::decide_round_outcome(stances, self.plan.budget.min_go_votes), None);
        }
        let shown = RoundFigures::new(self.plan, round).values(contributions);
        // The rows may be evaluated on another thread.
        let outside = self.cx.bus().clock().outside();
        let (row, failed) = decide(&RowDecision { rows: Arc::clone(rows), shown }).await;
        drop(outside);
        for (place, error) in failed {
            let (place, text) = (format!("collaboration.decide[{place}].when"), error.to_string());
            self.cx.publish(span, EventKind::ConditionFailed { place, text });
        }
        let decision = row.and_then(|row| rows.get(row)).map(|row| row.decision);
        let number = row.and_then(|row| u32::try_from(row + 1).ok());
        (decision, number.map(DecidedBy::Row))
    }

    /// The roles that may act in this round, and the status of each seat. Computed once per round,
    /// so a flag that changes during a round takes effect in the next one. Seats after one that is
    /// sure to stop the run are not called.
    fn roster(&self) -> (RoleSet, Vec<SeatCall<'a>>) {
        let on = |role: &RoleSpec| {
            role.role_flag.as_ref().is_none_or(|behind| self.cx.flag(&behind.flag))
        };
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
                !on(role) && role.role_flag.as_ref().is_some_and(|it| it.when_off == WhenOff::Skip)
            });
            let asked = if skips {
                SeatStatus::Skipped
            } else if over {
                SeatStatus::NotReached
            } else {
                match self.gateway.check_call(role, &allow, ahead) {
                    Ok(()) => SeatStatus::Asked,
                    Err(StopReason::AgentDenied(_)) => SeatStatus::Denied,
                    Err(_) => SeatStatus::OverBudget,
                }
            };
            ahead += u32::from(asked == SeatStatus::Asked);
            over |= matches!(asked, SeatStatus::Denied | SeatStatus::OverBudget);
            seats.push(SeatCall { place, role, nth: *nth, asked });
        }
        (allow, seats)
    }

    async fn call_seats_in_parallel(
        &mut self,
        round: u32,
        span: SpanId,
        allow: &RoleSet,
        seats: &[SeatCall<'a>],
    ) -> Result<Vec<Arc<Contribution>>, StopReason> {
        let recent = payload::recent_rounds(&self.history, RECENT_ROUNDS, self.plan.share);
        let mut calls = OrderedJoinSet::default();
        for seat in seats.iter().filter(|seat| seat.asked == SeatStatus::Asked) {
            calls.run_while(self.cx.boundary(message_boundary(round, seat))).await?;
            let ask = self.build_seat_call(round, span, seat, &recent);
            // Each seat is a branch from now on, not only from its first poll: a pause waits for all of
            // them, and one that waits for a person does not hold up the others.
            let branch = self.cx.control().branch();
            let reply = match self.person_of(seat) {
                None => Either::Left(request_contribution(self, seat.role, allow, ask)),
                Some(person) => Either::Right(ask_seat(self, person, seat, allow, ask)),
            };
            calls.spawn(seat.place.into(), async move {
                let _branch = branch;
                reply.await
            });
        }
        let mut taken = Vec::with_capacity(seats.len());
        for seat in seats {
            self.cx.set_phase(Phase::Seat { round, role: seat.role.clone() });
            let said = match seat.asked {
                SeatStatus::Asked => {
                    // This branch only waits for those of the seats.
                    let _waits = self.cx.control().mark_waiting();
                    calls.take(seat.place.into()).await
                }
                _ => None,
            };
            match self.record_contribution(round, span, allow, seat, said) {
                Ok(contribution) => taken.extend(contribution),
                Err(reason) => {
                    if self.plan.live_rules {
                        self.finish_others(round, &mut calls, &reason).await;
                    }
                    return Err(reason);
                }
            }
        }
        Ok(taken)
    }

    /// Lets the seats whose reply is arriving finish it: it is paid for. What they say does not
    /// count; no seat is asked again, and no call is repeated.
    async fn finish_others(
        &self,
        round: u32,
        calls: &mut OrderedJoinSet<'_, SeatReply>,
        reason: &StopReason,
    ) {
        self.cx.control().settle(reason.clone());
        self.cx.control().finish_only();
        while let Some((place, said)) = calls.take_any(|| self.cx.in_flight() > 0).await {
            if let Ok(said) = said
                && let Ok(AcceptedContribution { contribution, .. }) = said.judged
                && let Ok(seat) = u16::try_from(place)
            {
                let contribution = Arc::new(Contribution { end: said.end, ..contribution });
                let unused = CollaborationFact::ContributionUnused { round, seat, contribution };
                self.cx.publish(said.call, unused);
            }
        }
    }

    async fn call_seats_in_sequence(
        &mut self,
        round: u32,
        span: SpanId,
        allow: &RoleSet,
        seats: &[SeatCall<'a>],
    ) -> Result<Vec<Arc<Contribution>>, StopReason> {
        let recent = payload::recent_rounds(&self.history, RECENT_ROUNDS, self.plan.share);
        let mut taken = Vec::with_capacity(seats.len());
        for seat in seats {
            self.cx.set_phase(Phase::Seat { round, role: seat.role.clone() });
            let said = match seat.asked {
                SeatStatus::Asked => {
                    self.cx.boundary(message_boundary(round, seat)).await?;
                    let ask = self.build_seat_call(round, span, seat, &recent);
                    Some(match self.person_of(seat) {
                        None => request_contribution(self, seat.role, allow, ask).await,
                        Some(person) => ask_seat(self, person, seat, allow, ask).await,
                    })
                }
                _ => None,
            };
            taken.extend(self.record_contribution(round, span, allow, seat, said)?);
        }
        Ok(taken)
    }

    /// The person who has a seat; `None`: a model.
    fn person_of(&self, seat: &SeatCall<'_>) -> Option<&'a PersonName> {
        self.spec.roles.get(seat.role)?.person.as_ref()
    }

    fn build_seat_call(
        &mut self,
        round: u32,
        span: SpanId,
        seat: &SeatCall<'a>,
        recent: &[RecentRound],
    ) -> ModelRequest {
        let (goal, facts) = (&*self.scenario.goal, &*self.texts.facts);
        let texts = self.texts.roles.get(seat.role).map_or_else(
            || {
                Cow::Owned(RoleTexts::from_prompt(
                    seat.role,
                    &PromptTemplate::default(),
                    goal,
                    facts,
                ))
            },
            Cow::Borrowed,
        );
        let shown = self.base.clone().map(|mut shown| {
            shown.bind("role", &Value::from(seat.role.as_str()));
            shown.bind("round", &Value::from(round));
            shown.bind("recent_rounds", &to_json(&recent));
            shown.bind("open_conflicts", &to_json(&self.open_conflicts));
            shown.bind("flags", &to_json(&self.cx.control().flags()));
            shown
        });
        let purpose = Purpose::Contribution { round, seat: seat.place, role: seat.role.clone() };
        let path = message_boundary(round, seat).text();
        let (flags, open_conflicts) = (&self.cx.shown_flags(), &*self.open_conflicts);
        let share = self.plan.share;
        let state = RoundState { goal, facts, recent, open_conflicts, flags, share };
        let messages = texts.messages(seat.role, state);
        ModelRequest::single(span, purpose, path, messages, texts.form.clone(), shown)
    }

    /// The gateway's verdict on a seat: nothing for a seat that is off, a contribution, or the
    /// reason that stops the run.
    fn record_contribution(
        &mut self,
        round: u32,
        span: SpanId,
        allow: &RoleSet,
        seat: &SeatCall<'_>,
        said: Option<SeatReply>,
    ) -> Result<Option<Arc<Contribution>>, StopReason> {
        let refuse = |cx: &RunContext, span, reason: StopReason, raw: Option<Value>| {
            cx.publish(
                span,
                CollaborationFact::ContributionRefused {
                    round,
                    seat: seat.place,
                    role: seat.role.clone(),
                    reason: reason.clone(),
                    raw: raw.map(Arc::new),
                },
            );
            Err(reason)
        };
        let JudgedReply { call, raw, end, judged, .. } = match (seat.asked, said) {
            (SeatStatus::Skipped, _) => return Ok(None),
            (_, Some(Ok(said))) => said,
            (_, Some(Err(failed))) => return Err(failed.reason),
            (_, None) => {
                return match self.gateway.check_call(seat.role, allow, 0) {
                    Err(reason) => refuse(self.cx, span, reason, None),
                    Ok(()) => Err(StopReason::InternalError),
                };
            }
        };
        match self.gateway.use_message(seat.role, allow).and(judged) {
            Ok(AcceptedContribution { contribution, extra_keys, extra_actions }) => {
                let contribution = Arc::new(Contribution { end, ..contribution });
                self.cx.publish(
                    call,
                    CollaborationFact::ContributionAccepted {
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

    /// The brief: the final call, whose text is the answer.
    async fn finalize(&mut self, decision: Decision) -> Result<(), StopReason> {
        self.cx.set_phase(Phase::Finalize);
        self.cx.boundary(Boundary::Finalize).await?;
        let (messages, shown) = self.brief(Some(decision));
        prompting::request_final_answer(self.cx, &self.scenario.model, messages, shown).await
    }

    /// The brief of a table that did not decide: what keeps the seats apart. The run ends in any
    /// case, so a failed brief changes nothing.
    async fn brief_without_decision(&mut self) -> Result<(), StopReason> {
        self.cx.boundary(Boundary::Finalize).await?;
        let (messages, shown) = self.brief(None);
        let settings = &self.scenario.model;
        let _ = prompting::request_final_answer(self.cx, settings, messages, shown).await;
        Ok(())
    }

    fn brief(&mut self, decision: Option<Decision>) -> (Arc<[ChatMessage]>, Option<CelBindings>) {
        let shown = self.base.take().map(|mut shown| {
            shown.bind("final_decision", &to_json(&decision));
            shown.bind("history", &to_json(&self.history));
            shown.bind("flags", &to_json(&self.cx.control().flags()));
            shown
        });
        let (prompt, flags) = (&self.spec.finalize_prompt, self.cx.shown_flags());
        let goal = &self.scenario.goal;
        (payload::brief_messages(prompt, goal, decision, &self.history, &flags), shown)
    }
}

/// Calls a seat's model until policy accepts the reply or the retries are used up.
fn request_contribution<'a>(
    table: &CollaborationRun<'a>,
    role: &'a RoleName,
    allow: &'a RoleSet,
    ask: ModelRequest,
) -> impl Future<Output = SeatReply> + Send + use<'a> {
    let wrap = |text: &str| json!({ "invalid": true, "raw": text });
    let fill = table.plan.live_rules.then(|| (FILLED_AGENT, role.as_str()));
    let settings = &table.scenario.model;
    request_json(table.cx, settings, ask, wrap, fill, move |raw, _| {
        policy::judge(raw, role, allow).map_err(|fault| Refusal {
            detail: policy::describe_contribution_fault(&fault, raw, role),
            reason: StopReason::InvalidContribution(fault),
        })
    })
}

/// Asks the person who has a seat until policy accepts the contribution. `ask` is what a model in this
/// seat would be asked.
fn ask_seat<'a>(
    table: &CollaborationRun<'a>,
    person: &'a PersonName,
    seat: &SeatCall<'a>,
    allow: &'a RoleSet,
    ask: ModelRequest,
) -> impl Future<Output = SeatReply> + Send + use<'a> {
    let (cx, role) = (table.cx, seat.role);
    async move {
        let round = ask.purpose.round().unwrap_or_default();
        let mut why = None;
        loop {
            let request = PersonRequest {
                who: person,
                parent: ask.parent,
                purpose: ask.purpose.clone(),
                args: None,
                by: Some(role.as_str().into()),
                why: why.take(),
                subject: Subject::Seat { round, role: role.clone() },
            };
            let PersonReply { call, answered } = call_person(cx, request).await?;
            let mut raw = match &answered.answer {
                Answer::Contribute { contribution } => Value::clone(contribution),
                other => Value::from(other.phrase()),
            };
            if let Value::Object(fields) = &mut raw {
                fields.entry("agent").or_insert_with(|| role.as_str().into());
            }
            let judged = policy::judge(&raw, role, allow);
            let by_person = matches!(answered.by, AnsweredBy::Person { .. });
            if let (Err(fault), true) = (&judged, by_person) {
                why = Some(policy::describe_contribution_fault(fault, &raw, role).what.into());
                continue;
            }
            let text = raw.to_string().into();
            let judged = judged.map_err(StopReason::InvalidContribution);
            return Ok(JudgedReply { call, text, raw, end: ReplyEnd::Stop, judged });
        }
    }
}

fn message_boundary(round: u32, seat: &SeatCall<'_>) -> Boundary {
    Boundary::Message { round, role: seat.role.clone(), nth: seat.nth }
}

/// Decides which row of a scenario decides a round: the first one whose condition holds.
#[derive(Clone)]
struct RowDecision {
    rows: Arc<[DecideRow]>,
    shown: CelBindings,
}

impl ConditionDecision for RowDecision {
    /// The index of the row, and the rows that could not be evaluated, which count as false.
    type DecisionResult = (Option<usize>, Vec<(usize, ConditionError)>);

    fn evaluate(&self, budget: &mut EvalBudget) -> Self::DecisionResult {
        let mut failed = Vec::new();
        let found = self.rows.iter().enumerate().position(|(place, row)| {
            row.when.holds_within(&self.shown, budget).unwrap_or_else(|error| {
                failed.push((place, error));
                false
            })
        });
        (found, failed)
    }
}
