//! Projection of a collaboration: rounds, seats, contributions, the decision, and its part of the
//! outcome (collaboration source document).

use crate::scenario::cel::CelBindings;
use crate::scenario::patterns::collaboration::{CollaborationBudget, Decision};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::outcome::OutcomeFields;
use super::spans::{SpanKind, Spans};
use super::{EventLog, MarkKind, Projection, RunFold};
use crate::base::name::{PersonName, RoleName};
use crate::log::event::{
    AnsweredBy, Boundary, BoundaryId, Elapsed, Event, EventKind, Purpose, RunStarted, Seq, SpanId,
    StopReason, Usage,
};
use crate::log::facts::PatternFact;
use crate::log::facts::collaboration::{
    CollaborationFact, CollaborationPlan, Conflict, Contribution, DecidedBy, SeatStatus, Stance,
};

/// State of a collaboration run.
#[derive(Clone, Debug)]
pub struct Collaboration {
    pub plan: Arc<CollaborationPlan>,
    /// The rounds in order; copies of the world share closed ones.
    pub rounds: Vec<Arc<Round>>,
    pub messages: u32,
    /// The call that composes the answer, once it is made.
    pub finalize: Option<SpanId>,
    /// The decision of a person, because no round had one.
    pub decided_by_person: Option<PersonDecision>,
}

/// One round.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Number of the round, from 1.
    pub number: u32,
    pub span: SpanId,
    pub opened: Elapsed,
    pub closed: Option<Elapsed>,
    /// The seats of the sequence, including those that are not asked.
    pub seats: Vec<RoundSeat>,
    /// Result of `detect_conflicts`, once the round is closed.
    pub conflicts: Vec<Conflict>,
    /// The decision; `None` while the round is open, or if it made none.
    pub decision: Option<Decision>,
    /// What decided, where it was not the rule of the source document.
    pub decided_by: Option<DecidedBy>,
}

/// A seat in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundSeat {
    pub role: RoleName,
    pub asked: SeatStatus,
    pub state: SeatState,
    /// Its call, once it is made.
    pub call: Option<SpanId>,
    /// Name of its model, in a run that uses more than one.
    pub model: Option<Arc<str>>,
    /// Attempts made; if the model was asked again, those of the last call.
    pub attempts: u32,
    /// Tokens of the last reply, if they are known.
    pub usage: Option<Usage>,
    /// Milliseconds until its first token, if it was streamed.
    pub first_token_ms: Option<u64>,
    /// How often the model was asked again because its reply was refused.
    pub asked_again: u32,
    /// What was wrong with the last refused reply.
    pub detail: Option<Box<str>>,
    /// Its contribution once accepted.
    pub contribution: Option<Arc<Contribution>>,
    /// Its contribution that does not count, because another seat had stopped the run.
    pub unused: Option<Arc<Contribution>>,
    /// Number of keys outside the contract, which were dropped.
    pub extra_keys: u32,
    /// Number of actions after the third, which were dropped.
    pub extra_actions: u32,
    pub refused: Option<StopReason>,
    /// The refused reply.
    pub raw: Option<Value>,
}

/// The decision of a person, because no round had one.
#[derive(Clone, Debug, PartialEq)]
pub struct PersonDecision {
    pub who: PersonName,
    pub decision: Decision,
    /// The reason; may be empty.
    pub reason: Arc<str>,
    /// The person did not answer: it is the fixed answer of the scenario for that case.
    pub by_fallback: bool,
}

/// Progress of a seat in its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeatState {
    /// Its turn has not come.
    Waiting,
    /// Its flag is off, or the run will stop before its turn.
    Off,
    /// Its model call is in flight.
    Speaking,
    /// It waits for the next attempt.
    Retrying,
    /// It has replied and waits for earlier seats.
    Answered,
    /// Its contribution was accepted.
    Accepted,
    /// Its contribution was refused; the run stops.
    Refused,
    /// It got no reply; the run stops.
    Failed,
    /// The run was stopped during its call.
    Cancelled,
    /// Its contribution came after another seat had stopped the run.
    Unused,
}

impl Round {
    /// Number of votes for this stance among the accepted contributions.
    pub fn votes(&self, stance: Stance) -> usize {
        self.contributions().filter(|contribution| contribution.stance == stance).count()
    }

    /// The accepted contributions in the order of the sequence.
    pub fn contributions(&self) -> impl Iterator<Item = &Arc<Contribution>> {
        self.seats.iter().filter_map(|seat| seat.contribution.as_ref())
    }

    /// Number of seats that are asked in this round.
    pub fn asked_seats(&self) -> usize {
        self.seats.iter().filter(|seat| seat.asked == SeatStatus::Asked).count()
    }
}

impl RoundSeat {
    /// The seat's stance in this round, once accepted.
    pub fn stance(&self) -> Option<Stance> {
        self.contribution.as_ref().map(|contribution| contribution.stance)
    }
}

impl Collaboration {
    pub(crate) fn new(plan: Arc<CollaborationPlan>) -> Self {
        Self { plan, rounds: Vec::new(), messages: 0, finalize: None, decided_by_person: None }
    }

    /// The open round, or else the last one.
    pub fn current(&self) -> Option<&Round> {
        self.rounds.last().map(|round| &**round)
    }

    /// The round with this number.
    pub fn round(&self, number: u32) -> Option<&Round> {
        // Its usual index; in a log from a file the order may differ.
        let place = usize::try_from(number.checked_sub(1)?).ok()?;
        let there = self.rounds.get(place).filter(|round| round.number == number);
        let last = self.rounds.last()?.number;
        if there.is_some() || usize::try_from(last).is_ok_and(|last| last == self.rounds.len()) {
            return there.map(|round| &**round);
        }
        self.rounds.iter().rev().find(|round| round.number == number).map(|round| &**round)
    }

    /// The same seat in the previous round.
    pub fn seat_before(&self, round: u32, seat: usize) -> Option<&RoundSeat> {
        self.round(round.checked_sub(1)?)?.seats.get(seat)
    }

    /// Whether a seat's stance differs from the previous round.
    pub fn stance_changed(&self, round: u32, seat: usize) -> bool {
        let now =
            self.round(round).and_then(|round| round.seats.get(seat)).and_then(RoundSeat::stance);
        let before = self.seat_before(round, seat).and_then(RoundSeat::stance);
        matches!((before, now), (Some(before), Some(now)) if before != now)
    }

    /// The decision of the last round, if there is one.
    pub fn decision(&self) -> Option<Decision> {
        let by_person = self.decided_by_person.as_ref().map(|by| by.decision);
        by_person.or_else(|| self.rounds.last()?.decision)
    }

    /// The seat that a call asks for its contribution.
    pub(crate) fn asked_seat(&self, call: &Purpose) -> Option<&RoundSeat> {
        let Purpose::Contribution { round, seat, .. } = call else { return None };
        self.round(*round)?.seats.get(usize::from(*seat))
    }

    fn fold(&mut self, event: &Event, spans: &Spans) {
        match &event.kind {
            EventKind::Pattern(PatternFact::Collaboration(fact)) => self.fold_fact(event, fact),
            EventKind::CallStarted(call) => match &call.purpose {
                Purpose::Contribution { round, seat, .. } => {
                    if let Some(seat) = self.seat_mut(*round, *seat) {
                        seat.call = Some(event.span);
                        seat.model.clone_from(&call.model);
                        seat.state = SeatState::Speaking;
                    }
                }
                Purpose::Finalize => self.finalize = Some(event.span),
                _ => {}
            },
            EventKind::AttemptStarted { parent, attempt, .. } => {
                if let Some(seat) = self.seat_of(*parent, spans) {
                    seat.attempts = *attempt;
                    seat.state = SeatState::Speaking;
                }
            }
            EventKind::AttemptAnswered(reply) => {
                let call = spans.get(event.span).map(|attempt| attempt.parent);
                if let Some(seat) = call.and_then(|call| self.seat_of(call, spans)) {
                    seat.usage = reply.usage;
                    seat.first_token_ms = reply.first_token_ms;
                }
            }
            EventKind::CallRetried { .. } => self.set_state(event.span, spans, SeatState::Retrying),
            EventKind::CallAnswered { .. } => {
                self.set_state(event.span, spans, SeatState::Answered)
            }
            EventKind::CallFailed { reason: StopReason::Cancelled, .. } => {
                self.set_state(event.span, spans, SeatState::Cancelled);
            }
            EventKind::CallFailed { .. } => self.set_state(event.span, spans, SeatState::Failed),
            EventKind::ReplyRefused(refused) => {
                if let Some(seat) = self.seat_of(event.span, spans) {
                    seat.asked_again = refused.repeat.unwrap_or(seat.asked_again);
                    seat.detail = Some(refused.detail.clone());
                    // Shown now: its turn may never come, since another seat may stop the run
                    // first.
                    if refused.repeat.is_none() {
                        seat.state = SeatState::Refused;
                    }
                }
            }
            _ => {}
        }
    }

    fn fold_fact(&mut self, event: &Event, fact: &CollaborationFact) {
        match fact {
            CollaborationFact::RoundStarted { round, seats, .. } => {
                self.rounds.push(Arc::new(Round {
                    number: *round,
                    span: event.span,
                    opened: event.at,
                    closed: None,
                    seats: seats
                        .iter()
                        .map(|plan| RoundSeat {
                            role: plan.role.clone(),
                            asked: plan.status,
                            state: match plan.status {
                                SeatStatus::Skipped | SeatStatus::NotReached => SeatState::Off,
                                SeatStatus::Asked | SeatStatus::Denied | SeatStatus::OverBudget => {
                                    SeatState::Waiting
                                }
                            },
                            call: None,
                            model: None,
                            attempts: 0,
                            usage: None,
                            first_token_ms: None,
                            asked_again: 0,
                            detail: None,
                            contribution: None,
                            unused: None,
                            extra_keys: 0,
                            extra_actions: 0,
                            refused: None,
                            raw: None,
                        })
                        .collect(),
                    conflicts: Vec::new(),
                    decision: None,
                    decided_by: None,
                }))
            }
            CollaborationFact::RoundClosed { round, conflicts, decision, decided_by } => {
                if let Some(row) = self.round_mut(*round) {
                    row.closed = Some(event.at);
                    row.conflicts.clone_from(conflicts);
                    row.decision = *decision;
                    row.decided_by.clone_from(decided_by);
                }
            }
            CollaborationFact::ContributionAccepted {
                round,
                seat,
                contribution,
                extra_keys,
                extra_actions,
                messages,
            } => {
                self.messages = *messages;
                if let Some(seat) = self.seat_mut(*round, *seat) {
                    seat.state = SeatState::Accepted;
                    seat.contribution = Some(Arc::clone(contribution));
                    seat.extra_keys = *extra_keys;
                    seat.extra_actions = *extra_actions;
                }
            }
            CollaborationFact::ContributionUnused { round, seat, contribution } => {
                if let Some(seat) = self.seat_mut(*round, *seat) {
                    seat.state = SeatState::Unused;
                    seat.unused = Some(Arc::clone(contribution));
                }
            }
            CollaborationFact::ContributionRefused { round, seat, reason, raw, .. } => {
                if let Some(seat) = self.seat_mut(*round, *seat) {
                    seat.state = SeatState::Refused;
                    seat.refused = Some(reason.clone());
                    seat.raw = raw.as_deref().cloned();
                }
            }
        }
    }

    fn round_mut(&mut self, number: u32) -> Option<&mut Round> {
        self.rounds.iter_mut().rev().find(|round| round.number == number).map(Arc::make_mut)
    }

    fn seat_mut(&mut self, round: u32, seat: u16) -> Option<&mut RoundSeat> {
        self.round_mut(round)?.seats.get_mut(usize::from(seat))
    }

    fn seat_of(&mut self, call: SpanId, spans: &Spans) -> Option<&mut RoundSeat> {
        match &spans.get(call)?.kind {
            SpanKind::Call(Purpose::Contribution { round, seat, .. }) => {
                self.seat_mut(*round, *seat)
            }
            _ => None,
        }
    }

    fn set_state(&mut self, call: SpanId, spans: &Spans, state: SeatState) {
        if let Some(seat) = self.seat_of(call, spans) {
            seat.state = state;
        }
    }
}

/// Messages left before a round starts.
pub fn messages_left(plan: &CollaborationPlan, used: u32) -> u32 {
    plan.budget.max_messages.saturating_sub(used)
}

impl Collaboration {
    fn seat_call(&self, round: u32, seat: u16) -> Option<SpanId> {
        self.round(round)?.seats.get(usize::from(seat))?.call
    }

    /// The verdict on the last contribution of a round.
    fn last_verdict(&self, round: u32, closed: Seq, log: &dyn EventLog) -> Option<Seq> {
        let seats = &self.round(round)?.seats;
        let last = seats.iter().rposition(|seat| seat.contribution.is_some())?;
        log.find_before(closed, &|event| match CollaborationFact::of(&event.kind) {
            Some(
                CollaborationFact::ContributionAccepted { round: of, seat, .. }
                | CollaborationFact::ContributionRefused { round: of, seat, .. },
            ) => *of == round && usize::from(*seat) == last,
            _ => false,
        })
    }

    fn cause_of_fact(&self, event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
        match CollaborationFact::of(&event.kind)? {
            CollaborationFact::ContributionAccepted { round, seat, .. }
            | CollaborationFact::ContributionRefused { round, seat, .. }
            | CollaborationFact::ContributionUnused { round, seat, .. } => {
                run.spans.opened_by(self.seat_call(*round, *seat)?)
            }
            CollaborationFact::RoundClosed { round, .. } => {
                self.last_verdict(*round, event.seq, log)
            }
            CollaborationFact::RoundStarted { round, .. } => {
                run.spans.closed_by(self.round(round.checked_sub(1)?)?.span)
            }
        }
    }
}

impl Projection for Collaboration {
    fn apply(&mut self, event: &Event, run: &RunFold) {
        self.fold(event, &run.spans);
        if let EventKind::QuestionAnswered(answered) = &event.kind
            && let Some((who, decision, reason)) = run.questions.decision_of(answered)
        {
            let (who, reason) = (who.clone(), reason.into());
            let by_fallback = answered.by == AnsweredBy::Nobody;
            let decided = PersonDecision { who, decision, reason, by_fallback };
            self.decided_by_person = Some(decided);
        }
    }

    fn outcome(&self, run: &RunFold, fields: &mut OutcomeFields) {
        self.outcome_fields(run, fields);
    }

    fn mark(&self, event: &Event) -> Option<MarkKind> {
        match CollaborationFact::of(&event.kind)? {
            CollaborationFact::RoundStarted { round, .. } => Some(MarkKind::Round(*round)),
            CollaborationFact::ContributionRefused { .. } => Some(MarkKind::Failed),
            _ => None,
        }
    }

    fn call_of(&self, event: &Event, _run: &RunFold) -> Option<SpanId> {
        match (&event.kind, CollaborationFact::of(&event.kind)) {
            (
                _,
                Some(
                    CollaborationFact::ContributionAccepted { round, seat, .. }
                    | CollaborationFact::ContributionRefused { round, seat, .. }
                    | CollaborationFact::ContributionUnused { round, seat, .. },
                ),
            ) => self.seat_call(*round, *seat),
            (EventKind::AnswerComposed { .. }, _) => self.finalize,
            _ => None,
        }
    }

    fn cause_of(&self, event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
        match &event.kind {
            EventKind::Pattern(_) => self.cause_of_fact(event, run, log),
            EventKind::AnswerComposed { .. } => run.spans.opened_by(self.finalize?),
            EventKind::CallStarted(call) => match &call.purpose {
                Purpose::Contribution { .. } => run.spans.opened_by(call.parent),
                Purpose::Finalize => run.spans.closed_by(self.current()?.span),
                _ => None,
            },
            _ => None,
        }
    }

    fn next_breakpoint(&self, _run: &RunFold) -> Result<BoundaryId, &'static str> {
        let next = self.current().map_or(1, |round| round.number.saturating_add(1));
        let finalizes = next > self.plan.budget.max_rounds;
        Ok(if finalizes { Boundary::Finalize } else { Boundary::Round(next) }.id())
    }

    fn decides(&self) -> bool {
        true
    }

    fn decision(&self) -> Option<Decision> {
        self.rounds.last().and_then(|round| round.decision)
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum TraceRow<'a> {
    Seat(SeatRow<'a>),
    Round(RoundRow<'a>),
}

#[derive(Serialize)]
struct SeatRow<'a> {
    round: u32,
    agent: &'a RoleName,
    stance: Stance,
    confidence: f64,
    accepted: bool,
}

#[derive(Serialize)]
struct RoundRow<'a> {
    round: u32,
    conflicts: &'a [Conflict],
    decision: &'static str,
}

#[derive(Serialize)]
struct RoundHistoryRow<'a> {
    round: u32,
    contributions: Vec<&'a Contribution>,
    conflicts: &'a [Conflict],
    decision: Option<Decision>,
}

#[derive(Serialize)]
struct StanceRow<'a> {
    agent: &'a RoleName,
    stance: Stance,
    confidence: f64,
}

/// The inputs that the plan names, then the last round.
#[derive(Serialize)]
struct Summary<'a> {
    #[serde(flatten, serialize_with = "map")]
    inputs: Vec<(&'a str, &'a Value)>,
    #[serde(flatten)]
    last: Option<LastRound<'a>>,
}

#[derive(Serialize)]
struct LastRound<'a> {
    stances: Vec<StanceRow<'a>>,
    conflicts: &'a [Conflict],
}

fn map<S: Serializer>(rows: &[(&str, &Value)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(rows.iter().copied())
}

impl<'a> Summary<'a> {
    fn new(head: &'a RunStarted, plan: &'a CollaborationPlan, last: Option<&'a Round>) -> Self {
        let names = plan.summary_inputs.iter().map(|name| name.as_str());
        let own = |name: &str| last.is_some() && matches!(name, "stances" | "conflicts");
        let inputs = names
            .filter(|name| !own(name))
            .map(|name| (name, head.inputs.get(name).unwrap_or(&Value::Null)));
        let last = last.map(|round| LastRound {
            stances: round
                .contributions()
                .map(|from| StanceRow {
                    agent: &from.agent,
                    stance: from.stance,
                    confidence: from.confidence,
                })
                .collect(),
            conflicts: &round.conflicts,
        });
        Self { inputs: inputs.collect(), last }
    }
}

/// What decided a round.
#[derive(Serialize)]
struct DecidedByRow<'a> {
    #[serde(flatten)]
    by: &'a DecidedBy,
    /// The condition of the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    when: Option<&'a str>,
}

impl Collaboration {
    fn decided_by<'a>(&'a self, round: &'a Round) -> Option<DecidedByRow<'a>> {
        let by = round.decided_by.as_ref()?;
        Some(DecidedByRow { by, when: self.plan.row_of(by).map(|row| &*row.when) })
    }

    /// Adds the fields that the source document defines.
    pub(super) fn outcome_fields(&self, run: &RunFold, fields: &mut OutcomeFields) {
        let success = run.progress.closed.as_ref().is_some_and(|closed| closed.reason.is_success());
        let closed_rounds = || self.rounds.iter().filter(|round| round.closed.is_some());
        if success {
            fields.add("answer", &run.progress.answer);
            fields.add("final_decision", &self.decision());
            if let Some(PersonDecision { who, reason, by_fallback, .. }) = &self.decided_by_person {
                let by = match by_fallback {
                    true => json!({ "fallback_of": who }),
                    false => json!({ "person": who, "reason": reason }),
                };
                fields.add("decided_by", &by);
            } else if let Some(by) = self.current().and_then(|round| self.decided_by(round)) {
                fields.add("decided_by", &by);
            }
            fields.add("rounds_used", &closed_rounds().count());
            let last = closed_rounds().next_back().map(|round| &**round);
            fields.add(
                "team_summary",
                &run.head.as_ref().map(|head| Summary::new(head, &self.plan, last)),
            );
        } else {
            let seats = || self.current().map_or(&[][..], |round| &round.seats).iter();
            if let Some(refused) = seats().find(|seat| seat.refused.is_some()) {
                fields.add("raw_contribution", &refused.raw);
            }
            let unused: Vec<&Contribution> =
                seats().filter_map(|it| it.unused.as_deref()).collect();
            if !unused.is_empty() {
                fields.add("unused_contributions", &unused);
            }
            if run.progress.answer.is_some() {
                fields.add("brief", &run.progress.answer);
            }
        }
        let mut trace = Vec::new();
        for round in &self.rounds {
            trace.extend(round.contributions().map(|from| {
                TraceRow::Seat(SeatRow {
                    round: round.number,
                    agent: &from.agent,
                    stance: from.stance,
                    confidence: from.confidence,
                    accepted: true,
                })
            }));
            if round.closed.is_some() {
                trace.push(TraceRow::Round(RoundRow {
                    round: round.number,
                    conflicts: &round.conflicts,
                    decision: round.decision.map_or("next_round", Decision::word),
                }));
            }
        }
        fields.add("trace", &trace);
        let history: Vec<_> = closed_rounds()
            .map(|round| RoundHistoryRow {
                round: round.number,
                contributions: round.contributions().map(|from| &**from).collect(),
                conflicts: &round.conflicts,
                decision: round.decision,
            })
            .collect();
        fields.add("history", &history);
    }
}

/// `round(x, 3)` of the source document: uses the exact binary value and rounds a true tie to the
/// even digit, as Rust does when it prints a float with three decimals.
pub(crate) fn round_to_thousandths(x: f64) -> f64 {
    // Fast path: a value with at most three decimals, as nearly all have, equals the rounded
    // quotient and stays as it is.
    if (x * 1000.0).round() / 1000.0 == x {
        return x;
    }
    format!("{x:.3}").parse().unwrap_or(x)
}

/// A round as the rows of a scenario see it.
#[derive(Clone, Copy, Debug)]
pub struct RoundFigures<'a> {
    /// Number of the round, from 1.
    pub round: u32,
    /// The limit of rounds.
    pub max_rounds: u32,
    /// The votes for go that the source document needs.
    pub min_go_votes: u32,
    /// The weights of the roles that have another one than 1.
    pub weights: &'a BTreeMap<RoleName, f64>,
}

impl<'a> RoundFigures<'a> {
    /// Those of a round of this run.
    pub fn new(plan: &'a CollaborationPlan, round: u32) -> Self {
        let CollaborationBudget { max_rounds, min_go_votes, .. } = plan.budget;
        let weights = &plan.weights;
        Self { round, max_rounds, min_go_votes, weights }
    }

    /// The values that a row may use: `stances` has the roles of each stance, `weight` the sum of
    /// their weights, `confidences` the confidence of each role, `seats` the roles that contributed.
    pub fn values(&self, contributions: &[Arc<Contribution>]) -> CelBindings {
        let by_stance = |stance| contributions.iter().filter(move |it| it.stance == stance);
        let weight = |role: &RoleName| self.weights.get(role).copied().unwrap_or(1.0);
        let roles = |stance: Stance| {
            let roles: Vec<&str> = by_stance(stance).map(|it| it.agent.as_str()).collect();
            (stance.word().to_owned(), json!(roles))
        };
        let sum = |stance: Stance| {
            // From 0.0, because the sum of nothing is -0.0; rounded, because 0.7 + 0.1 is not 0.8.
            let sum = by_stance(stance).fold(0.0, |sum, it| sum + weight(&it.agent));
            (stance.word().to_owned(), json!(round_to_thousandths(sum)))
        };
        let confidence =
            |it: &Arc<Contribution>| (it.agent.to_string(), Value::from(it.confidence));
        let seats: Vec<&str> = contributions.iter().map(|it| it.agent.as_str()).collect();
        let mut shown = CelBindings::default();
        shown.bind("stances", &Value::Object(Stance::ALL.map(roles).into_iter().collect()));
        shown.bind("weight", &Value::Object(Stance::ALL.map(sum).into_iter().collect()));
        shown.bind("confidences", &Value::Object(contributions.iter().map(confidence).collect()));
        shown.bind("seats", &json!(seats));
        shown.bind("round", &self.round.into());
        shown.bind("max_rounds", &self.max_rounds.into());
        shown.bind("min_go_votes", &self.min_go_votes.into());
        shown
    }
}
