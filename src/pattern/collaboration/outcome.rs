//! The fields of a collaboration's outcome (collaboration source document).

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::base::name::RoleName;
use crate::event::contribution::{Conflict, Contribution, Decision, Stance};
use crate::event::kind::RunStarted;
use crate::event::world::RunFold;
use crate::event::world::outcome::OutcomeFields;
use crate::pattern::collaboration::facts::DecidedBy;
use crate::pattern::collaboration::plan::CollaborationPlan;
use crate::pattern::collaboration::projection::{Collaboration, Round};

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
            if let Some(by) = self.current().and_then(|round| self.decided_by(round)) {
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
