//! What pane 2 of a team is about: the agents, the selected hop, or the outcome of the run.

use super::sequence::{Sequence, SequenceRow};
use super::view::TeamView;
use crate::agents::projection::{HopKind, HopRow, HopState};
use crate::app::run::data::RunData;
use crate::event::world::{RunState, World};
use crate::narrate::format;
use crate::narrate::glyph::Glyph;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::{Badge, StyledText};
use crate::panes::agents::outcome_text::add_outcome;

/// The subject of pane 2.
#[derive(Clone, Copy, Debug)]
pub enum TeamSubject<'a> {
    /// All agents.
    Agents,
    /// A hop, with its index.
    Hop(usize, &'a HopRow),
    /// The outcome of the run.
    Outcome,
}

impl TeamView {
    /// The subject in the world that is shown.
    pub fn subject<'a>(&self, run: &'a RunData) -> TeamSubject<'a> {
        let ended = run.shown().progress.stage == RunState::Closed;
        if self.selected_agent().is_some() {
            return TeamSubject::Agents;
        }
        match self.selected_row(run) {
            Some(SequenceRow::Hop(at, hop)) => TeamSubject::Hop(at, hop),
            Some(SequenceRow::Asked(_)) => TeamSubject::Agents,
            Some(SequenceRow::Ended(_)) => TeamSubject::Outcome,
            None if ended => TeamSubject::Outcome,
            None => TeamSubject::Agents,
        }
    }

    /// Whether the subject is the outcome of the run.
    pub(super) fn is_about_outcome(&self, run: &RunData) -> bool {
        matches!(self.subject(run), TeamSubject::Outcome)
    }

    fn selected_row<'a>(&self, run: &'a RunData) -> Option<SequenceRow<'a>> {
        let sequence = Sequence::of(run)?;
        sequence.row(self.hops.cursor.and(self.hops.row(sequence.len()))?)
    }

    /// The outcome of the run.
    pub(super) fn outcome_document(&self, run: &RunData) -> StyledText {
        let mut text = StyledText::default();
        add_outcome(run, self.holder_call(run), &mut text);
        text
    }

    /// The text of pane 2; `None`: it shows the agents.
    pub fn document(&self, run: &RunData) -> Option<StyledText> {
        let mut text = StyledText::default();
        match self.subject(run) {
            TeamSubject::Agents => return None,
            TeamSubject::Hop(at, hop) => add_hop(run.shown(), at, hop, &mut text),
            TeamSubject::Outcome => add_outcome(run, self.holder_call(run), &mut text),
        }
        Some(text)
    }
}

/// Adds what a hop is.
fn add_hop(world: &World, at: usize, hop: &HopRow, text: &mut StyledText) {
    text.field("hop", (at + 1).to_string());
    let from = match (&hop.from, hop.depth) {
        (Some(from), _) => from.as_str(),
        (None, 0) => "you",
        (None, _) => hop.team.as_str(),
    };
    text.field("from", from);
    text.field("to", hop.to.as_str());
    let how = match (&hop.state, hop.kind) {
        (HopState::Refused(_), _) => "hands over: refused",
        (_, HopKind::Start) => "starts with it",
        (_, HopKind::Handoff) => "hands over: control is passed",
        (_, HopKind::Consult) => "consults: control returns",
    };
    text.field("how", how);
    let badge = |glyph, role| Badge::new(glyph, "", role);
    match &hop.state {
        HopState::Running if world.progress.is_live() => {
            text.signed("state", badge(Glyph::Running, StyleRole::Running), "working");
        }
        HopState::Running => text.signed("state", badge(Glyph::Off, StyleRole::Off), "stopped"),
        HopState::Done => text.signed("state", badge(Glyph::Done, StyleRole::Done), "replied"),
        HopState::HandedOver => {
            text.signed("state", badge(Glyph::Done, StyleRole::Done), "handed over");
        }
        HopState::Degraded { by, reason } => {
            text.warning("state", format!("{}; {}", reason.phrase(), by.word()));
        }
        HopState::Failed(reason) => text.error("state", reason.phrase()),
        HopState::Refused(why) => {
            text.signed("state", badge(Glyph::Refused, StyleRole::Refused), why.to_string());
        }
    }
    text.field("at", format::time_in_run(world.progress.run_time(hop.at)));
    if let Some(until) = hop.until.filter(|until| *until > hop.at) {
        let took = world.progress.active_between(hop.at, until);
        text.field("took", format::duration_text(took));
    }
    if let Some(tokens) = hop.context_tokens {
        text.field("context", format!("{} tokens", format::exact(tokens)));
    }
    if let Some(message) = hop.message.as_deref().filter(|message| !message.is_empty()) {
        text.gap();
        text.text(StyleRole::Text, message);
    }
}
