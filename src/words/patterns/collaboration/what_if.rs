//! The effect of a flag change, shown before it is made: at which boundary it takes effect, and who
//! joins, leaves or stops the run. A pure function of the run's state. The rules are those
//! of the pattern's roster (collaboration source document: read once a round, right after the
//! boundary `round:N`).

use crate::base::name::{FlagName, RoleName};
use crate::log::facts::collaboration::{CollaborationPlan, SeatStatus};
use crate::log::world::collaboration::{Collaboration, SeatState, messages_left};
use crate::log::world::{RunFold, RunState};

/// The effects of switching `flag` to `on` now, one per line; the first says when it takes effect.
pub(crate) fn effects(
    table: &Collaboration,
    flag: &FlagName,
    on: bool,
    run: &RunFold,
) -> Vec<String> {
    let plan = &*table.plan;
    let mut lines = vec![when_effective(run, table, plan)];
    let roles: Vec<&RoleName> = plan
        .role_flags
        .iter()
        .filter(|(role, behind)| behind.flag == *flag && plan.sequence.contains(role))
        .map(|(role, _)| role)
        .collect();
    if roles.is_empty() {
        let shown = run.head.as_ref().is_some_and(|head| head.shows_flags);
        lines.push(match shown {
            true => "No seat depends on it: requests say its position from then on.".into(),
            false => "No seat depends on it: only the script reads it.".into(),
        });
        return lines;
    }
    let Some(next) = next_round(table, plan) else {
        lines.push("No further round is possible: no seat changes.".to_owned());
        return lines;
    };
    let unless = match next.unless_decided {
        Some(round) => format!(" unless round {round} decides"),
        None => String::new(),
    };
    let number = next.number;
    let mut denied = false;
    for role in &roles {
        let deny = plan.role_flags.get(*role).is_some_and(|behind| behind.deny);
        lines.push(match (on, deny) {
            (true, false) => format!("{role} joins at round {number}{unless}."),
            (true, true) => format!("{role} may speak from round {number} on{unless}."),
            (false, false) => format!("{role} leaves at round {number}{unless}."),
            (false, true) => {
                denied = true;
                format!("With {role} denied, the run would stop at round {number}{unless}.")
            }
        });
    }
    if let Some(round) = table.current().filter(|round| round.closed.is_none()) {
        let speaking = round
            .seats
            .iter()
            .any(|seat| roles.contains(&&seat.role) && seat.asked == SeatStatus::Asked);
        if !on && speaking {
            lines.push(format!("Its contribution to round {} still counts.", round.number));
        }
    }
    if !denied {
        lines.push(seats_after(run, plan, flag, on, next));
    }
    lines
}

/// When a flag that is switched now takes effect.
fn when_effective(run: &RunFold, table: &Collaboration, plan: &CollaborationPlan) -> String {
    if let RunState::Paused { at, .. } = &run.progress.stage
        && let Some(first) = at.first()
    {
        return format!("Takes effect when the run resumes, at {}.", first.display_name());
    }
    let Some(round) = table.current() else {
        return "Takes effect at round 1.".to_owned();
    };
    if table.finalize.is_some() {
        return "Too late: nothing left for it to affect.".to_owned();
    }
    if round.closed.is_some() {
        return match (round.decision, round.number < plan.budget.max_rounds) {
            (Some(_), _) => "Takes effect at finalize, the last boundary.".to_owned(),
            (None, true) => format!("Takes effect at round {}.", round.number + 1),
            (None, false) => "Too late: nothing left for it to affect.".to_owned(),
        };
    }
    let turn = round.seats.iter().find(|seat| {
        seat.asked == SeatStatus::Asked && seat.state == SeatState::Waiting && seat.call.is_none()
    });
    match turn {
        Some(seat) => {
            format!("Takes effect before {} in round {}.", seat.role, round.number)
        }
        None if round.number < plan.budget.max_rounds => {
            format!("Takes effect at round {}, or at finalize.", round.number + 1)
        }
        None => "Takes effect at finalize, the last boundary.".to_owned(),
    }
}

/// The next round whose roster reads the flag.
#[derive(Clone, Copy)]
struct NextRound {
    number: u32,
    /// The round that is still open: this one follows only if that one reaches no decision.
    unless_decided: Option<u32>,
    /// Messages used before it starts, as far as known.
    used: u32,
}

fn next_round(table: &Collaboration, plan: &CollaborationPlan) -> Option<NextRound> {
    let next = match table.current() {
        None => NextRound { number: 1, unless_decided: None, used: 0 },
        Some(round) if round.closed.is_some() => {
            if round.decision.is_some() {
                return None;
            }
            let number = round.number.saturating_add(1);
            NextRound { number, unless_decided: None, used: table.messages }
        }
        Some(round) => {
            let to_come = round
                .seats
                .iter()
                .filter(|seat| seat.asked == SeatStatus::Asked && seat.contribution.is_none())
                .count();
            NextRound {
                number: round.number.saturating_add(1),
                unless_decided: Some(round.number),
                used: table.messages.saturating_add(u32::try_from(to_come).unwrap_or(u32::MAX)),
            }
        }
    };
    (next.number <= plan.budget.max_rounds).then_some(next)
}

/// How many seats the next round would have, and whether enough messages are left for them.
fn seats_after(
    run: &RunFold,
    plan: &CollaborationPlan,
    flag: &FlagName,
    on: bool,
    next: NextRound,
) -> String {
    let is_on = |name: &FlagName| {
        if name == flag {
            return on;
        }
        run.settings.flags.iter().any(|row| row.name == *name && row.on)
    };
    let seats = plan
        .sequence
        .iter()
        .filter(|role| plan.role_flags.get(*role).is_none_or(|behind| is_on(&behind.flag)))
        .count();
    let seats = u32::try_from(seats).unwrap_or(u32::MAX);
    let left = messages_left(plan, next.used);
    let plural = if seats == 1 { "" } else { "s" };
    let of = plan.budget.max_messages;
    if seats > left {
        format!(
            "Then {seats} seat{plural} and {left} of {of} messages left: the run would stop at the \
             message limit in round {}.",
            next.number
        )
    } else {
        format!("Then {seats} seat{plural}, messages left {left} of {of} before they speak.")
    }
}
