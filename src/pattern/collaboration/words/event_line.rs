//! The lines of the events of a collaboration (collaboration source document).

use super::phrases::{conflict_names, decision_or_next};
use crate::event::EventKind;
use crate::event::contribution::Contribution;
use crate::event::patterns::PatternFact;
use crate::event::world::RunFold;
use crate::narrate::event_line::EventLine;
use crate::narrate::format;
use crate::narrate::style_role::StyleRole;
use crate::pattern::collaboration::facts::{CollaborationFact, SeatStatus};
use crate::pattern::collaboration::plan::CollaborationPlan;

/// Fills the line of such an event; leaves other events alone.
pub(super) fn fill_line<'a>(
    kind: &'a EventKind,
    (plan, run): (&CollaborationPlan, &'a RunFold),
    line: &mut EventLine<'a>,
) {
    match kind {
        EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundStarted {
            round,
            seats,
            ..
        })) => {
            line.round = Some(*round);
            let asked = seats.iter().filter(|seat| seat.status == SeatStatus::Asked).count() as u64;
            let mut what = format!("{} called", format::count_noun(asked, "seat"));
            for seat in seats {
                let why = match seat.status {
                    SeatStatus::Asked => continue,
                    SeatStatus::Skipped => "off",
                    SeatStatus::Denied => "denied",
                    SeatStatus::OverBudget => "over the message limit",
                    SeatStatus::NotReached => "not reached",
                };
                what.push_str(&format!(", {} {why}", seat.role));
            }
            line.text = what.into();
        }
        EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundClosed {
            round,
            conflicts: found,
            decision,
            decided_by,
        })) => {
            line.round = Some(*round);
            let next = decision_or_next(plan, *round, *decision, decided_by.as_ref());
            line.text = format!("{}: {next}", conflict_names(found)).into();
            line.tone = StyleRole::Done;
        }
        EventKind::Pattern(PatternFact::Collaboration(
            CollaborationFact::ContributionAccepted { round, contribution, extra_keys, .. },
        )) => {
            line.round = Some(*round);
            fill_accepted(line, contribution, *extra_keys);
        }
        EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::ContributionUnused {
            round,
            contribution,
            ..
        })) => {
            line.round = Some(*round);
            fill_accepted(line, contribution, 0);
            line.text = format!("not used: {}", contribution.summary).into();
            line.tone = StyleRole::Off;
        }
        EventKind::Pattern(PatternFact::Collaboration(
            CollaborationFact::ContributionRefused { round, role, reason, .. },
        )) => {
            line.round = Some(*round);
            line.subject = role.as_str().into();
            line.text = match run.refusal(reason) {
                Some(stop) => stop.refused.detail.as_ref().into(),
                None => reason.phrase(),
            };
            line.tone = StyleRole::Refused;
        }
        _ => {}
    }
}

fn fill_accepted<'a>(line: &mut EventLine<'a>, contribution: &'a Contribution, extra_keys: u32) {
    line.subject = contribution.agent.as_str().into();
    line.stance = Some((contribution.stance, contribution.confidence));
    line.text = if extra_keys == 0 {
        contribution.summary.as_ref().into()
    } else {
        let dropped = format::count_noun(u64::from(extra_keys), "key");
        format!("{} ({dropped} dropped)", contribution.summary).into()
    };
    line.tone = StyleRole::Done;
}
