//! Lines of headless text about a collaboration: its rounds and contributions.

use super::phrases::{decided_by_text, rounds_text};
use crate::base::visible::visible;
use crate::event::patterns::PatternFact;
use crate::event::world::RunFold;
use crate::event::{Event, EventKind};
use crate::narrate::glyph::Glyph;
use crate::narrate::line_parts::{WORD, model_of, signed, with_model};
use crate::narrate::lines::caller_name;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::{StyledLine, StyledPart};
use crate::narrate::{badges, format};
use crate::pattern::collaboration::facts::CollaborationFact;
use crate::pattern::collaboration::projection::Collaboration;

/// The lines of an event; `None` if it does not belong to a collaboration.
pub(super) fn lines(
    table: &Collaboration,
    event: &Event,
    run: &RunFold,
) -> Option<Vec<StyledLine>> {
    let line = match &event.kind {
        EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundStarted {
            round,
            ..
        })) => StyledLine::new(
            StyleRole::Strong,
            format!("round {round} of {}", table.plan.max_rounds),
        ),
        EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundClosed {
            round,
            conflicts,
            decision,
            decided_by,
        })) => {
            let words: Vec<&str> = conflicts.iter().map(|conflict| conflict.phrase()).collect();
            let found = if words.is_empty() { String::new() } else { words.join(", ") + ": " };
            let line = StyledLine::default().then(format!("round {round} closed, {found}"));
            match decision {
                Some(decision) => {
                    let line = line.with(badges::decision(*decision));
                    match decided_by {
                        Some(by) => line.then(format!("  {}", decided_by_text(by))),
                        None => line,
                    }
                }
                None => line.with(badges::UNDECIDED),
            }
        }
        EventKind::Pattern(PatternFact::Collaboration(
            CollaborationFact::ContributionAccepted {
                contribution, extra_keys, extra_actions, ..
            },
        )) => {
            let badge = badges::stance(contribution.stance);
            let confidence = format::confidence(contribution.confidence);
            let word = format!("{:<8}{confidence}", badge.word);
            let part = StyledPart::with_glyph(badge.glyph, badge.role, word).padded(WORD);
            let mut line = StyledLine::default().then("  ").with(part).then(format!(
                "  {}  {}",
                caller_name(event, run, table),
                visible(&contribution.summary)
            ));
            for (count, what) in [(*extra_keys, "extra key"), (*extra_actions, "extra action")] {
                if count > 0 {
                    line.push(format!(" ({} dropped)", format::count_noun(count.into(), what)));
                }
            }
            line
        }
        EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::ContributionUnused {
            contribution,
            ..
        })) => signed(Glyph::Off, "not used", StyleRole::Off).then(format!(
            "  {}  {}: {}",
            caller_name(event, run, table),
            contribution.stance,
            visible(&contribution.summary)
        )),
        EventKind::Pattern(PatternFact::Collaboration(
            CollaborationFact::ContributionRefused { role, reason, .. },
        )) => {
            if run.refusal(reason).is_some() {
                // The line of the refused reply says it.
                return Some(Vec::new());
            }
            // If the seat's model was not called, the event belongs to no call.
            let who = with_model(role.to_string(), model_of(event, run));
            signed(Glyph::Refused, "refused", StyleRole::Refused)
                .then(format!("  {who}  {}", reason.phrase()))
        }
        _ => return None,
    };
    Some(vec![line])
}

/// The totals for the last line of a run.
pub(super) fn totals(table: &Collaboration) -> Vec<StyledPart> {
    let mut parts = Vec::new();
    if let Some(decision) = table.decision() {
        parts.push(StyledPart::plain("  "));
        parts.push(badges::decision(decision).into());
    }
    let messages = format::count_noun(table.messages.into(), "message");
    parts.push(StyledPart::plain(format!("  {}, {messages}", rounds_text(table))));
    parts
}

/// The rounds and the decision, for the line that the dashboard leaves behind.
pub(super) fn summary(table: &Collaboration, run: &RunFold) -> Vec<StyledPart> {
    let rounds = match run.progress.is_live() {
        true => format::count_noun(table.rounds.len() as u64, "round"),
        false => rounds_text(table),
    };
    let mut parts = vec![StyledPart::plain(format!("  {rounds}"))];
    if let Some(decision) = table.decision() {
        parts.push(StyledPart::plain("  "));
        parts.push(badges::decision(decision).into());
    }
    parts
}
