//! What a collaboration says about its runs.

use super::event_line::fill_line;
use super::phrases::{conflict_names, decided_by_text, decision_or_next, rounds_text};
use super::{lines, markdown, preview, rows, what_if};
use crate::base::name::FlagName;
use crate::event::contribution::Stance;
use crate::event::kind::{Purpose, RunClosed};
use crate::event::patterns::PatternFact;
use crate::event::world::RunFold;
use crate::event::{Event, EventKind, StopReason};
use crate::narrate::event_line::EventLine;
use crate::narrate::measure::columns;
use crate::narrate::pattern_words::{Narrate, PatternTerms};
use crate::narrate::preview::end_line;
use crate::narrate::progress::Progress;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::{Badge, StyledLine, StyledPart, StyledText};
use crate::narrate::verdict::RunVerdict;
use crate::narrate::{badges, format};
use crate::pattern::collaboration::facts::CollaborationFact;
use crate::pattern::collaboration::projection::{Collaboration, RoundSeat};

impl Narrate for Collaboration {
    fn terms(&self) -> PatternTerms {
        PatternTerms { answer: "launch brief", answer_mark: "brief", has_rounds: true }
    }

    fn progress(&self, _run: &RunFold) -> Progress {
        let round = self.current().map_or(0, |round| round.number);
        let far = format!("{round}/{}", self.plan.max_rounds);
        Progress {
            text: Some(format!("round {far}")),
            short: far,
            budget: Some(("msgs", self.messages.into(), self.plan.max_messages.into())),
            spending: None,
        }
    }

    fn started(&self) -> (String, String) {
        let seats = format::count_noun(self.plan.sequence.len() as u64, "seat");
        let rounds = format::count_noun(self.plan.max_rounds.into(), "round");
        (seats, format!("max {rounds}"))
    }

    fn tell<'w>(&'w self, event: &'w Event, run: &'w RunFold, line: &mut EventLine<'w>) {
        fill_line(&event.kind, (&self.plan, run), line);
    }

    fn call_fields(&self, purpose: &Purpose, _of_event: bool, to: &mut StyledText) {
        match purpose {
            Purpose::Contribution { round, seat, role } => {
                to.field("seat", role.as_str());
                to.field("round", round.to_string());
                if let Some(flag) = self.plan.role_flags.get(role) {
                    to.field("flag", flag.flag.as_str());
                }
                let before = self.seat_before(*round, usize::from(*seat));
                if let Some(before) = before.and_then(|seat| seat.contribution.as_ref()) {
                    let confidence = format::confidence(before.confidence);
                    let before = format!("{} {confidence}", before.stance);
                    to.field(&format!("in R{}", round.saturating_sub(1)), before);
                }
            }
            Purpose::Finalize => to.field("purpose", "final answer"),
            _ => {}
        }
    }

    fn parsed_reply(&self, call: &Purpose, to: &mut StyledText) {
        let seat = self.asked_seat(call);
        let said = |seat: &'_ RoundSeat| seat.contribution.clone().or_else(|| seat.unused.clone());
        let Some((seat, contribution)) = seat.and_then(|it| Some((it, said(it)?))) else {
            return;
        };
        to.gap();
        to.heading("as parsed");
        to.field("stance", contribution.stance.word());
        to.field("confidence", contribution.confidence.to_string());
        to.field("summary", contribution.summary.replace('\n', " "));
        for (nth, action) in contribution.actions.iter().enumerate() {
            to.field(&format!("action {}", nth + 1), action.replace('\n', " "));
        }
        for (dropped, noun) in [(seat.extra_keys, "key"), (seat.extra_actions, "action")] {
            if dropped > 0 {
                let what = format::count_noun(u64::from(dropped), noun);
                to.field("dropped", format!("{what} beyond the contract"));
            }
        }
    }

    fn refusal(&self, call: &Purpose) -> Option<&StopReason> {
        self.asked_seat(call)?.refused.as_ref()
    }

    fn verdict(&self, run: &RunFold, closed: &RunClosed) -> RunVerdict {
        let verdict = RunVerdict::of(run, closed);
        if !closed.reason.is_success() {
            // The phase says in which round.
            return match closed.phase.is_some() || verdict.cause.is_some() {
                true => verdict,
                false => verdict.with(rounds_text(self)),
            };
        }
        let (Some(decision), Some(round)) = (self.decision(), self.current()) else {
            return verdict.with(rounds_text(self));
        };
        let Badge { glyph, word, role } = badges::decision(decision);
        let votes = |stance| (stance, round.votes(stance));
        let votes = Stance::ALL.map(votes).into_iter().filter(|(_, votes)| *votes > 0);
        let votes: Vec<String> = votes
            .map(|(stance, votes)| format!("{votes} {}", badges::stance(stance).word))
            .collect();
        let decided_by = round.decided_by.as_ref().map(decided_by_text);
        let round = format!("round {} of {}", round.number, self.plan.max_rounds);
        RunVerdict {
            glyph,
            word: word.into(),
            role,
            facts: match &decided_by {
                Some(by) => vec![votes.join(", "), by.clone(), round],
                None => vec![votes.join(", "), round],
            },
            ..verdict
        }
    }

    fn reached(&self) -> Option<String> {
        Some(rounds_text(self))
    }

    fn event_fields(&self, event: &Event, _run: &RunFold, to: &mut StyledText) {
        match &event.kind {
            EventKind::Pattern(PatternFact::Collaboration(
                CollaborationFact::ContributionAccepted { contribution, messages, .. },
            )) => {
                let confidence = format::confidence(contribution.confidence);
                to.field("stance", format!("{} {confidence}", contribution.stance));
                to.field("messages", format!("{messages} used"));
            }
            EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundClosed {
                round,
                conflicts,
                decision,
                decided_by,
            })) => {
                to.field("conflicts", conflict_names(conflicts));
                let by = decided_by.as_ref();
                to.field("decision", decision_or_next(&self.plan, *round, *decision, by));
                rows::add_rows(self, *round, by, to);
            }
            _ => {}
        }
    }

    fn preview(&self, run: &RunFold, to: &mut StyledText) {
        preview::add_state(self, run, to);
    }

    fn said(&self, event: &Event) -> Option<String> {
        match &event.kind {
            EventKind::Pattern(PatternFact::Collaboration(
                CollaborationFact::ContributionAccepted { contribution, .. },
            )) => Some(format!("{}: {}", contribution.agent, contribution.summary)),
            _ => None,
        }
    }

    fn result(&self, run: &RunFold) -> StyledLine {
        if let Some(closed) = &run.progress.closed {
            return match self.decision().filter(|_| closed.reason.is_success()) {
                Some(decision) => StyledPart::from(badges::decision(decision)).into(),
                None => end_line(run, closed),
            };
        }
        let mut line = StyledLine::default();
        let Some(round) = self.current() else { return line };
        for stance in Stance::ALL {
            let votes = round.votes(stance);
            let badge = badges::stance(stance);
            let role = if votes == 0 { StyleRole::Dim } else { badge.role };
            line.parts.push(StyledPart::with_glyph(badge.glyph, role, ""));
            line.parts.push(StyledPart::new(role, format!(" {votes}  ")));
        }
        line
    }

    fn lines(&self, event: &Event, run: &RunFold) -> Option<Vec<StyledLine>> {
        lines::lines(self, event, run)
    }

    fn totals(&self) -> Vec<StyledPart> {
        lines::totals(self)
    }

    fn summary(&self, run: &RunFold) -> Vec<StyledPart> {
        lines::summary(self, run)
    }

    fn markdown(&self, out: &mut String) {
        markdown::add_rounds(self, out);
    }

    fn if_flag(&self, flag: &FlagName, on: bool, run: &RunFold) -> Vec<String> {
        what_if::effects(self, flag, on, run)
    }

    fn longest_subject(&self, _run: &RunFold) -> usize {
        let widths = self.plan.sequence.iter().map(|role| {
            // A role behind a flag has a sign after its name.
            let flag = if self.plan.role_flags.contains_key(role) { 2 } else { 0 };
            columns(role.as_str()) + flag
        });
        widths.max().unwrap_or(0)
    }
}
