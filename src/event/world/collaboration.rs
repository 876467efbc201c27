//! Projection of pattern `000`: rounds, seats, contributions, and what the table decided.

use std::sync::Arc;

use serde_json::Value;

use crate::event::contribution::{Conflict, Contribution, Decision, Stance};
use crate::event::kind::{Asked, CollaborationPlan, Purpose};
use crate::event::{Elapsed, Event, EventKind, SpanId, StopReason};
use crate::scenario::name::RoleName;

use super::spans::{SpanKind, Spans};

/// A collaboration run as its log tells it.
#[derive(Clone, Debug, Default)]
pub struct Collaboration {
    /// The rounds in order; a closed one is shared between copies of the world.
    pub rounds: Vec<Arc<Round>>,
    /// Messages used.
    pub messages: u32,
    /// The call that puts the answer together, once it is made.
    pub finalize: Option<SpanId>,
}

/// One round.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// From 1.
    pub number: u32,
    /// Its span.
    pub span: SpanId,
    /// When it was opened.
    pub opened: Elapsed,
    /// When it was closed.
    pub closed: Option<Elapsed>,
    /// The seats of the sequence, taken or not.
    pub seats: Vec<Seat>,
    /// What `detect_conflicts` found, once the round is closed.
    pub conflicts: Vec<Conflict>,
    /// What was decided; `None` while open and where another round follows.
    pub decision: Option<Decision>,
}

/// A seat in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Seat {
    /// Who sits there.
    pub role: RoleName,
    /// Whether it is asked.
    pub asked: Asked,
    /// How far it is.
    pub state: SeatState,
    /// Its call, once it is made.
    pub call: Option<SpanId>,
    /// The model that it asks, in a run that asks more than one.
    pub model: Option<Arc<str>>,
    /// Attempts made; of the last call, where the model was asked again.
    pub attempts: u32,
    /// How often the model was asked again because its reply was refused.
    pub asked_again: u32,
    /// What was wrong with the last reply that was refused.
    pub detail: Option<Box<str>>,
    /// Its contribution once accepted.
    pub contribution: Option<Arc<Contribution>>,
    /// Keys beyond the contract that were dropped from it.
    pub extra_keys: u32,
    /// Actions beyond the third that were dropped from it.
    pub extra_actions: u32,
    /// Why it was refused, if it was.
    pub refused: Option<StopReason>,
    /// What the model gave where it was refused.
    pub raw: Option<Value>,
}

/// How far a seat is in its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeatState {
    /// Its turn has not come.
    Waiting,
    /// Its flag is off, or the run is sure to stop before it.
    Off,
    /// The model is asked.
    Speaking,
    /// The next attempt waits.
    Retrying,
    /// The reply is there and waits for the seats before it to be accepted.
    Answered,
    /// The gateway took its contribution.
    Accepted,
    /// The gateway refused it; the run stops.
    Refused,
    /// The model could not be had; the run stops.
    Failed,
    /// The run was stopped while it spoke.
    Cancelled,
}

impl Round {
    /// The votes for this stance among the accepted contributions.
    pub fn votes(&self, stance: Stance) -> usize {
        self.contributions().filter(|contribution| contribution.stance == stance).count()
    }

    /// The accepted contributions in the order of the sequence.
    pub fn contributions(&self) -> impl Iterator<Item = &Arc<Contribution>> {
        self.seats.iter().filter_map(|seat| seat.contribution.as_ref())
    }

    /// Seats that are asked in this round.
    pub fn asked(&self) -> usize {
        self.seats.iter().filter(|seat| seat.asked == Asked::Yes).count()
    }
}

impl Seat {
    /// Its stance in this round, once accepted.
    pub fn stance(&self) -> Option<Stance> {
        self.contribution.as_ref().map(|contribution| contribution.stance)
    }
}

impl Collaboration {
    /// The round that is open, else the last.
    pub fn current(&self) -> Option<&Round> {
        self.rounds.last().map(|round| &**round)
    }

    /// The round of this number.
    pub fn round(&self, number: u32) -> Option<&Round> {
        // Where it stands in every log of ours; a file may hold any order.
        let place = usize::try_from(number.checked_sub(1)?).ok()?;
        let there = self.rounds.get(place).filter(|round| round.number == number);
        let last = self.rounds.last()?.number;
        if there.is_some() || usize::try_from(last).is_ok_and(|last| last == self.rounds.len()) {
            return there.map(|round| &**round);
        }
        self.rounds.iter().rev().find(|round| round.number == number).map(|round| &**round)
    }

    /// The same seat one round before.
    pub fn before(&self, round: u32, seat: usize) -> Option<&Seat> {
        self.round(round.checked_sub(1)?)?.seats.get(seat)
    }

    /// Whether a seat's stance is another than in the round before.
    pub fn changed(&self, round: u32, seat: usize) -> bool {
        let now = self.round(round).and_then(|round| round.seats.get(seat)).and_then(Seat::stance);
        let before = self.before(round, seat).and_then(Seat::stance);
        matches!((before, now), (Some(before), Some(now)) if before != now)
    }

    /// What was decided, if it was.
    pub fn decision(&self) -> Option<Decision> {
        self.rounds.last().and_then(|round| round.decision)
    }

    pub(super) fn apply(&mut self, event: &Event, spans: &Spans) {
        match &event.kind {
            EventKind::RoundStarted { round, seats, .. } => self.rounds.push(Arc::new(Round {
                number: *round,
                span: event.span,
                opened: event.at,
                closed: None,
                seats: seats
                    .iter()
                    .map(|plan| Seat {
                        role: plan.role.clone(),
                        asked: plan.asked,
                        state: match plan.asked {
                            Asked::Off | Asked::NotReached => SeatState::Off,
                            Asked::Yes | Asked::Denied | Asked::Unaffordable => SeatState::Waiting,
                        },
                        call: None,
                        model: None,
                        attempts: 0,
                        asked_again: 0,
                        detail: None,
                        contribution: None,
                        extra_keys: 0,
                        extra_actions: 0,
                        refused: None,
                        raw: None,
                    })
                    .collect(),
                conflicts: Vec::new(),
                decision: None,
            })),
            EventKind::RoundClosed { round, conflicts, decision } => {
                if let Some(row) = self.round_mut(*round) {
                    row.closed = Some(event.at);
                    row.conflicts.clone_from(conflicts);
                    row.decision = *decision;
                }
            }
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
                    seat.asked_again = refused.again.unwrap_or(seat.asked_again);
                    seat.detail = Some(refused.detail.clone());
                    // Its turn may never come: another seat may stop the run first.
                    if refused.again.is_none() {
                        seat.state = SeatState::Refused;
                    }
                }
            }
            EventKind::ContributionAccepted {
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
            EventKind::ContributionRefused { round, seat, reason, raw, .. } => {
                if let Some(seat) = self.seat_mut(*round, *seat) {
                    seat.state = SeatState::Refused;
                    seat.refused = Some(reason.clone());
                    seat.raw = raw.as_deref().cloned();
                }
            }
            _ => {}
        }
    }

    fn round_mut(&mut self, number: u32) -> Option<&mut Round> {
        self.rounds.iter_mut().rev().find(|round| round.number == number).map(Arc::make_mut)
    }

    fn seat_mut(&mut self, round: u32, seat: u16) -> Option<&mut Seat> {
        self.round_mut(round)?.seats.get_mut(usize::from(seat))
    }

    fn seat_of(&mut self, call: SpanId, spans: &Spans) -> Option<&mut Seat> {
        match &spans.get(call)?.what {
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

/// What a round may still cost before it starts: the messages that remain.
pub fn messages_left(plan: &CollaborationPlan, used: u32) -> u32 {
    plan.max_messages.saturating_sub(used)
}
