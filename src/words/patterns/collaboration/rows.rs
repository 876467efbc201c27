//! What the panes of a collaboration show, a line for each row, and what somebody reads who has a seat.

use std::sync::Arc;

use super::{decision_or_next, seat_badge};
use crate::log::facts::collaboration::Contribution;
use crate::log::world::collaboration::{Collaboration, Round};
use crate::words::styled::StyledText;

/// The seats in the current round, and how far it is.
pub(super) fn seats(table: &Collaboration) -> Vec<String> {
    let Some(round) = table.current() else {
        return table.plan.sequence.iter().map(|role| format!("{role}: not asked yet")).collect();
    };
    let mut lines: Vec<String> = round
        .seats
        .iter()
        .enumerate()
        .map(|(seat, it)| {
            let state = match (&it.contribution, seat_badge(it.state).word) {
                (Some(said), "accepted") => stance_text(said),
                (Some(said), state) => format!("{state}, {}", stance_text(said)),
                (None, state) => state.to_owned(),
            };
            let before = table.seat_before(round.number, seat);
            let before = before.and_then(|it| it.contribution.as_ref());
            let before = before
                .filter(|_| table.stance_changed(round.number, seat))
                .map(|it| format!(" (was {})", it.stance.word()));
            let said = it.contribution.as_ref().map(|it| format!(". {}", it.summary));
            let detail = it.detail.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
            format!(
                "{}, round {}: {state}{}{detail}{}",
                it.role,
                round.number,
                before.unwrap_or_default(),
                said.unwrap_or_default(),
            )
        })
        .collect();
    let conflicts: Vec<_> = round.conflicts.iter().map(|it| it.phrase()).collect();
    let conflicts = if conflicts.is_empty() {
        String::new()
    } else {
        format!("; conflicts: {}", conflicts.join(", "))
    };
    let state = match round.closed {
        Some(_) => {
            let by = round.decided_by.as_ref();
            decision_or_next(&table.plan, round.number, round.decision, by)
        }
        None => format!("{} of {} accepted", round.contributions().count(), round.asked_seats()),
    };
    let most = table.plan.budget.max_rounds;
    lines.push(format!("round {} of {most}: {state}{conflicts}", round.number));
    lines
}

/// What each seat said, round by round.
pub(super) fn stances(table: &Collaboration) -> Vec<String> {
    let seats = table.plan.sequence.iter().enumerate();
    seats
        .map(|(seat, role)| {
            let rounds = table.rounds.iter().filter_map(|round| {
                let it = round.seats.get(seat)?;
                let text = match &it.contribution {
                    Some(said) => stance_text(said),
                    None => seat_badge(it.state).word.to_owned(),
                };
                Some(format!("round {} {text}", round.number))
            });
            let rounds: Vec<String> = rounds.collect();
            let said =
                if rounds.is_empty() { "not asked yet".to_owned() } else { rounds.join("; ") };
            format!("{role}: {said}")
        })
        .collect()
}

/// A contribution in one sentence.
fn stance_text(contribution: &Contribution) -> String {
    format!("{}, confidence {}", contribution.stance.word(), contribution.confidence)
}

/// Most rounds that a seat reads of, as in the request to a model.
const SHOWN_ROUNDS: usize = 2;

/// The rounds that a seat reads: the last ones that have closed, as a model does.
fn last_closed(table: &Collaboration) -> impl Iterator<Item = &Arc<Round>> {
    let closed = table.rounds.iter().filter(|round| round.closed.is_some());
    let first = closed.clone().count().saturating_sub(SHOWN_ROUNDS);
    closed.skip(first)
}

/// What the others said in the rounds that have closed, the last one last.
pub(super) fn said_before(table: &Collaboration) -> Vec<String> {
    let mut lines = Vec::new();
    for round in last_closed(table) {
        for from in round.contributions() {
            let is_brief = table.plan.share.is_stances();
            let said = if is_brief { String::new() } else { format!(". {}", from.summary) };
            let (round, who, stance) = (round.number, &from.agent, from.stance.word());
            let sure = from.confidence;
            lines.push(format!("round {round}, {who}: {stance}, confidence {sure}{said}"));
            let actions = from.actions.iter().filter(|_| !is_brief);
            lines.extend(actions.map(|action| format!("  proposes: {action}")));
        }
        let conflicts: Vec<_> = round.conflicts.iter().map(|it| it.phrase()).collect();
        if !conflicts.is_empty() {
            lines.push(format!("round {}, conflicts: {}", round.number, conflicts.join("; ")));
        }
    }
    if lines.is_empty() {
        lines.push("what others say in a round is shown when the round closes".to_owned());
    }
    lines
}

/// The same as a part of a document.
pub(super) fn read_before(
    table: &Collaboration,
    doc: &mut StyledText,
    shown: &dyn Fn(&str) -> String,
) {
    for round in last_closed(table) {
        doc.heading(format!("Stances of round {}", round.number));
        for from in round.contributions() {
            let stance = format!("{}, confidence {}", from.stance.word(), from.confidence);
            let is_brief = table.plan.share.is_stances();
            let said = if is_brief { String::new() } else { format!(": {}", from.summary) };
            doc.paragraph(from.agent.as_str(), &shown(&format!("{stance}{said}")));
            let actions = from.actions.iter().filter(|_| !is_brief);
            doc.list("", actions.map(|action| shown(&format!("- {action}"))));
        }
        doc.list("conflicts", round.conflicts.iter().map(|it| it.phrase().to_owned()));
    }
    doc.gap();
}
