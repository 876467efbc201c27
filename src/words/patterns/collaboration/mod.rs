//! A collaboration in words: sentences for its events, conflicts, decisions and why a
//! round was decided, badges, preview, rounds as Markdown, the effect of a flag change before it is made.
//! The rules of that effect are those of the pattern's roster (collaboration source document: read
//! once a round, right after the boundary `round:N`).

mod rows;

use std::fmt::Write as _;
use std::sync::Arc;

use super::{
    Narrate, PatternPane, PatternTerms, Progress, RunStep, RunStepState, add_end, end_line,
};
use crate::base::name::{FlagName, RoleName};
use crate::log::event::{Event, EventKind, Purpose, RunClosed, StopReason};
use crate::log::facts::PatternFact;
use crate::log::facts::collaboration::{
    CollaborationFact, CollaborationPlan, Conflict, Contribution, DecidedBy, SeatPlan, SeatStatus,
    Stance,
};
use crate::log::world::collaboration::{
    Collaboration, Round, RoundFigures, RoundSeat, SeatState, messages_left,
};
use crate::log::world::{RunFold, RunState};
use crate::scenario::cel::{Condition, ObservedPart};
use crate::scenario::patterns::collaboration::Decision;
use crate::words::glyph::Glyph;
use crate::words::markdown::table_cell;
use crate::words::measure::columns;
use crate::words::sentence::{Sentence, Stated};
use crate::words::styled::{Badge, StyleRole, StyledLine, StyledPart, StyledText};
use crate::words::verdict::RunVerdict;
use crate::words::{badges, format};

impl Narrate for Collaboration {
    fn terms(&self) -> PatternTerms {
        PatternTerms { answer: "launch brief", answer_mark: "brief", has_rounds: true }
    }

    fn progress(&self, _run: &RunFold) -> Progress {
        let round = self.current().map_or(0, |round| round.number);
        let far = format!("{round}/{}", self.plan.budget.max_rounds);
        Progress {
            text: Some(format!("round {far}")),
            short: far,
            budget: Some(("msgs", self.messages.into(), self.plan.budget.max_messages.into())),
            spending: None,
        }
    }

    fn started(&self) -> (String, String) {
        let seats = format::count_noun(self.plan.sequence.len() as u64, "seat");
        let rounds = format::count_noun(self.plan.budget.max_rounds.into(), "round");
        (seats, format!("max {rounds}"))
    }

    fn steps(&self, _run: &RunFold) -> Vec<RunStep> {
        let rounds = self.rounds.iter().map(|round| {
            let decided =
                round.decision.map(|decision| format!(": {}", badges::decision(decision).word));
            let text = format!("round {}{}", round.number, decided.unwrap_or_default());
            let state = match round.closed {
                Some(_) => RunStepState::Ended,
                None => RunStepState::Running,
            };
            RunStep::new(text, state)
        });
        rounds.collect()
    }

    fn tell<'w>(&'w self, event: &'w Event, run: &'w RunFold, it: &mut Sentence<'w>) {
        let EventKind::Pattern(PatternFact::Collaboration(fact)) = &event.kind else { return };
        match fact {
            CollaborationFact::RoundStarted { round, seats, .. } => {
                it.round = Some(*round);
                let text =
                    format!("{round} of {}: {}", self.plan.budget.max_rounds, seats_text(seats));
                it.set(StyleRole::Strong, text).as_run(None, "round");
            }
            CollaborationFact::RoundClosed { round, conflicts, decision, decided_by } => {
                it.round = Some(*round);
                it.stated = Some(Stated::Decision(*decision));
                let next = match (decision, decided_by) {
                    (_, Some(by)) => format!(", {}", decided_by_text(by)),
                    (None, None) if *round < self.plan.budget.max_rounds => {
                        format!(", next: round {}", round + 1)
                    }
                    _ => String::new(),
                };
                it.set(StyleRole::Done, conflict_names(conflicts) + &next).as_run(None, "");
            }
            CollaborationFact::ContributionAccepted {
                round,
                contribution,
                extra_keys,
                extra_actions,
                ..
            } => {
                it.round = Some(*round);
                fill_contribution(it, contribution);
                it.set(StyleRole::Done, &*contribution.summary);
                for (count, what) in [(*extra_keys, "extra key"), (*extra_actions, "extra action")]
                {
                    if count > 0 {
                        let dropped = format::count_noun(count.into(), what);
                        it.text.to_mut().push_str(&format!(" ({dropped} dropped)"));
                    }
                }
            }
            CollaborationFact::ContributionUnused { round, contribution, .. } => {
                it.round = Some(*round);
                fill_contribution(it, contribution);
                it.set(StyleRole::Off, format!("not used: {}", contribution.summary));
            }
            CollaborationFact::ContributionRefused { round, role, reason, .. } => {
                it.round = Some(*round);
                it.about(role.as_str());
                match run.refusal(reason) {
                    // Headless, the line of the refused reply says it.
                    Some(stop) => it.set(StyleRole::Refused, &*stop.refused.detail),
                    None => it
                        .set(StyleRole::Refused, reason.phrase())
                        .as_sign(Glyph::Refused, "refused"),
                };
            }
        }
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
        let by_person = self.decided_by_person.as_ref();
        let decided_by = by_person
            .map(|by| match by.by_fallback {
                true => format!("decided by the fallback: {} did not answer", by.who),
                false => format!("decided by {}: the table did not agree", by.who),
            })
            .or_else(|| {
                let by = round.decided_by.as_ref()?;
                let row = self.plan.row_of(by).map(|row| format!(" ({})", row.when));
                Some(format!("{}{}", decided_by_text(by), row.unwrap_or_default()))
            });
        let round = format!("round {} of {}", round.number, self.plan.budget.max_rounds);
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

    /// Which stances kept the table from a decision: those that are not go by their names.
    fn stop_detail(&self, closed: &RunClosed) -> Option<String> {
        let round = self.current().filter(|_| closed.reason == StopReason::MaxRoundsReached)?;
        let others = round.contributions().filter(|said| said.stance != Stance::Go);
        let others =
            others.map(|said| format!("{} {}", said.agent, badges::stance(said.stance).word));
        let go = round.votes(Stance::Go);
        let go = (go > 0).then(|| format!("{go} {}", badges::stance(Stance::Go).word));
        let stances: Vec<String> = others.chain(go).collect();
        let rounds = format::count_noun(round.number.into(), "round");
        let named = !stances.is_empty();
        named.then(|| format!("no decision in {rounds} ({})", stances.join(", ")))
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
                add_rows(self, *round, by, to);
            }
            _ => {}
        }
    }

    fn preview(&self, run: &RunFold, to: &mut StyledText) {
        add_state(self, run, to);
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

    fn totals(&self) -> Vec<StyledPart> {
        totals(self)
    }

    fn summary(&self, run: &RunFold) -> Vec<StyledPart> {
        summary(self, run)
    }

    fn markdown(&self, out: &mut String) {
        add_rounds(self, out);
    }

    fn if_flag(&self, flag: &FlagName, on: bool, run: &RunFold) -> Vec<String> {
        flag_effects(self, flag, on, run)
    }

    fn rows(&self, pane: PatternPane, _run: &RunFold) -> Option<Vec<String>> {
        match pane {
            PatternPane::First => Some(rows::seats(self)),
            PatternPane::Third => Some(rows::stances(self)),
            PatternPane::Second | PatternPane::Fourth => None,
        }
    }

    fn items(&self) -> Option<Vec<String>> {
        Some(self.plan.sequence.iter().map(ToString::to_string).collect())
    }

    fn said_before(&self) -> Vec<String> {
        rows::said_before(self)
    }

    fn read_before(&self, doc: &mut StyledText, shown: &dyn Fn(&str) -> String) {
        rows::read_before(self, doc, shown);
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

/// How many seats are called in a round, and why the others are not.
fn seats_text(seats: &[SeatPlan]) -> String {
    let asked = seats.iter().filter(|seat| seat.status == SeatStatus::Asked).count() as u64;
    let mut text = format!("{} called", format::count_noun(asked, "seat"));
    for seat in seats {
        let why = match seat.status {
            SeatStatus::Asked => continue,
            SeatStatus::Skipped => "off",
            SeatStatus::Denied => "denied",
            SeatStatus::OverBudget => "over the message limit",
            SeatStatus::NotReached => "not reached",
        };
        text.push_str(&format!(", {} {why}", seat.role));
    }
    text
}

/// Fills who states what in a contribution.
fn fill_contribution<'a>(it: &mut Sentence<'a>, contribution: &'a Contribution) {
    let Contribution { stance, confidence, .. } = contribution;
    it.about(contribution.agent.as_str()).as_sign(badges::stance(*stance).glyph, stance.word());
    it.stated = Some(Stated::Stance(*stance, *confidence));
}

/// The totals for the last line of a run.
pub(crate) fn totals(table: &Collaboration) -> Vec<StyledPart> {
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
pub(crate) fn summary(table: &Collaboration, run: &RunFold) -> Vec<StyledPart> {
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

/// The names of the conflicts, or that there are none.
pub fn conflict_names(found: &[Conflict]) -> String {
    if found.is_empty() {
        return "no conflict".to_owned();
    }
    found.iter().map(|conflict| conflict.phrase()).collect::<Vec<_>>().join(", ")
}

/// What decided a round, in words.
pub fn decided_by_text(by: &DecidedBy) -> String {
    match by {
        DecidedBy::Row(number) => format!("by row {number}"),
        DecidedBy::Veto(role) => format!("by the veto of {role}"),
    }
}

/// The decision of a closed round and what made it, or what follows without one.
pub fn decision_or_next(
    plan: &CollaborationPlan,
    round: u32,
    decision: Option<Decision>,
    by: Option<&DecidedBy>,
) -> String {
    let most = plan.budget.max_rounds;
    match decision {
        Some(decision) => match by {
            Some(by) => format!("{} {}", decision.phrase(), decided_by_text(by)),
            None => decision.phrase().to_owned(),
        },
        None if round < most => format!("no decision, next: round {}", round + 1),
        None => "no decision".to_owned(),
    }
}

/// The number of rounds. For a run that stopped within a round: that round, and how many were
/// closed before it.
pub fn rounds_text(table: &Collaboration) -> String {
    let closed = table.rounds.iter().filter(|round| round.closed.is_some()).count() as u64;
    match table.current() {
        None => "no round".to_owned(),
        Some(round) if round.closed.is_some() => format::count_noun(closed, "round"),
        Some(round) => {
            let closed = if closed == 0 { "none".to_owned() } else { closed.to_string() };
            format!("stopped in round {}, {closed} closed", round.number)
        }
    }
}

/// The most rows that are explained, besides the one that decided.
const MAX_ROWS: usize = 8;

/// Adds the rows up to the one that decided, each with its condition and the values of its parts.
fn add_rows(table: &Collaboration, round: u32, by: Option<&DecidedBy>, to: &mut StyledText) {
    let rows = &table.plan.decide;
    let (Some(closed), false) = (table.round(round), matches!(by, Some(DecidedBy::Veto(_)))) else {
        return;
    };
    let contributions: Vec<Arc<Contribution>> = closed.contributions().map(Arc::clone).collect();
    let shown = RoundFigures::new(&table.plan, round).values(&contributions);
    let decided = match by {
        Some(DecidedBy::Row(row)) => usize::try_from(*row).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let is_told = |nth: usize| nth < MAX_ROWS || nth + 1 == decided;
    for (nth, row) in rows.iter().enumerate().take(decided).filter(|(nth, _)| is_told(*nth)) {
        to.gap();
        let held = if nth + 1 == decided { "held" } else { "did not hold" };
        to.field(&format!("row {}", nth + 1), format!("{held}: {}", row.when.replace('\n', " ")));
        // The condition of a log from elsewhere may not be one.
        let Ok(condition) = Condition::compile(&row.when) else { continue };
        for ObservedPart { part, value } in condition.explain(&shown) {
            to.field("", format!("{part} = {value}"));
        }
    }
    let left_out = (0..rows.len().min(decided)).filter(|nth| !is_told(*nth)).count();
    if left_out > 0 {
        let more = format::count_noun(left_out as u64, "row");
        to.field("", format!("{more} more did not hold"));
    }
}

/// Adds how the run ended, its current round and its messages.
pub(super) fn add_state(table: &Collaboration, run: &RunFold, to: &mut StyledText) {
    if let Some(closed) = &run.progress.closed {
        match table.decision() {
            Some(decision) if closed.reason.is_success() => {
                to.signed("decision", badges::decision(decision), decision.phrase());
            }
            _ => add_end(run, to),
        }
    }
    if let Some(round) = table.current() {
        let text = format!("{} of {}", round.number, table.plan.budget.max_rounds);
        to.item("round", StyleRole::Text, text);
        for seat in &round.seats {
            let (badge, text) = match &seat.contribution {
                Some(said) => {
                    let stated = format::confidence(said.confidence);
                    (badges::stance(said.stance), format!("{} {} {stated}", seat.role, said.stance))
                }
                None => {
                    let badge = seat_badge(seat.state);
                    (badge, format!("{} {}", seat.role, badge.word))
                }
            };
            to.signed("", badge, text);
        }
        if !round.conflicts.is_empty() {
            let words: Vec<_> = round.conflicts.iter().map(|it| it.phrase()).collect();
            to.item("conflicts", StyleRole::Text, words.join(", "));
        }
    }
    let messages = format!("{} of {}", table.messages, table.plan.budget.max_messages);
    to.item("messages", StyleRole::Text, messages);
}

/// The badge of a seat's progress.
pub fn seat_badge(state: SeatState) -> Badge {
    match state {
        SeatState::Waiting => Badge::new(Glyph::Waiting, "waiting", StyleRole::Waiting),
        SeatState::Off => Badge::new(Glyph::Off, "off", StyleRole::Off),
        SeatState::Speaking => Badge::new(Glyph::Running, "speaking", StyleRole::Running),
        SeatState::Retrying => Badge::new(Glyph::Retry, "retrying", StyleRole::Retry),
        SeatState::Answered => Badge::new(Glyph::Running, "answered", StyleRole::Running),
        SeatState::Accepted => Badge::new(Glyph::Done, "accepted", StyleRole::Done),
        SeatState::Refused => Badge::new(Glyph::Refused, "refused", StyleRole::Refused),
        SeatState::Failed => Badge::new(Glyph::Failed, "failed", StyleRole::Failed),
        SeatState::Unused => Badge::new(Glyph::Off, "not used", StyleRole::Off),
        SeatState::Cancelled => Badge::new(Glyph::Off, "cancelled", StyleRole::Off),
    }
}

/// Adds the decision and the rounds.
fn add_rounds(table: &Collaboration, out: &mut String) {
    if let Some(decision) = table.decision() {
        let _ = writeln!(out, "Decision: **{}**.", decision.phrase());
    }
    for round in &table.rounds {
        add_round(&table.plan, round, out);
    }
}

fn add_round(plan: &CollaborationPlan, round: &Round, out: &mut String) {
    let _ = writeln!(out, "\n## Round {}\n", round.number);
    let _ = writeln!(out, "| seat | stance | confidence | summary |\n| --- | --- | --- | --- |");
    for said in round.contributions() {
        let summary = table_cell(&said.summary);
        let _ =
            writeln!(out, "| {} | {} | {} | {summary} |", said.agent, said.stance, said.confidence);
    }
    if round.closed.is_some() {
        let next = decision_or_next(plan, round.number, round.decision, round.decided_by.as_ref());
        let _ = writeln!(out, "\n{}: {next}.", conflict_names(&round.conflicts));
    }
}

/// The effects of switching `flag` to `on` now, one per line; the first says when it takes effect.
pub(crate) fn flag_effects(
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
            (Some(_), _) => "Takes effect at the final answer, the last boundary.".to_owned(),
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
            format!("Takes effect at round {}, or at the final answer.", round.number + 1)
        }
        None => "Takes effect at the final answer, the last boundary.".to_owned(),
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
