//! The outcome of a run of agents: the answer and who gave it, or why the run was stopped and what
//! to do; then what it took.

use crate::agents::projection::AgentsFold;
use crate::app::run::data::RunData;
use crate::app::run::subject_text::{TextState, outcome_text};
use crate::event::SpanId;
use crate::event::kind::RunClosed;
use crate::event::world::World;
use crate::narrate::badges;
use crate::narrate::event_line::took_ms;
use crate::narrate::format;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::{StyledLine, StyledPart, StyledText};
use crate::narrate::verdict::{place_after, reason_id, stop_lead};

/// Adds the outcome. `call` is the last one of the agent that answered, or that was in control.
pub(crate) fn add_outcome(run: &RunData, call: Option<SpanId>, text: &mut StyledText) {
    let world = run.shown();
    let words = outcome_text(run, call);
    let Some((team, closed)) = world.agents().zip(world.progress.closed.as_ref()) else {
        return text.text(StyleRole::Dim, &words.text);
    };
    let badge = badges::ended(closed.reason.class());
    let part = StyledPart::with_glyph(badge.glyph, badge.role, head(world, team, closed));
    text.lines.push(StyledLine { label: None, parts: vec![part] });
    if let Some(id) = reason_id(closed) {
        text.add(StyleRole::Dim, id);
    }
    if !words.text.trim().is_empty() {
        text.gap();
        let role = match words.state {
            TextState::Note => StyleRole::Dim,
            TextState::Problem | TextState::Streaming | TextState::Complete => StyleRole::Text,
        };
        text.text(role, words.text.trim_end());
        if words.left_out > 0 {
            let size = format::bytes(words.left_out as u64);
            text.text(StyleRole::Dim, &format!("{size} more: inspect the answer"));
        }
    }
    if let Some((partial, by)) = team.partial.as_ref().filter(|_| !closed.reason.is_success()) {
        text.gap();
        text.text(StyleRole::Dim, &format!("best partial answer ({by})"));
        text.text(StyleRole::Text, partial);
    }
    text.gap();
    for missing in team.missing.iter() {
        text.warning("lacks", format!("{}: {}", missing.name, missing.text));
    }
    for (who, call) in &team.written_calls {
        text.warning("uncalled", format!("{who} wrote a tool call as text: {call}"));
    }
    add_figures(world, team, closed, text);
}

/// How the run ended, in one line.
fn head(world: &World, team: &AgentsFold, closed: &RunClosed) -> String {
    let lead = || stop_lead(world, closed);
    match (closed.reason.is_success(), &team.answered_by) {
        (true, Some(by)) => format!("answered by {by}"),
        (true, None) => lead(),
        (false, _) => format!("{}{}", lead(), place_after(&lead(), closed)),
    }
}

fn add_figures(world: &World, team: &AgentsFold, closed: &RunClosed, text: &mut StyledText) {
    if let Some(session) = world.session().filter(|session| session.message > 1) {
        text.field("message", format!("{} of this conversation", session.message));
    }
    let counts = team.hop_counts;
    let made = counts.starts + counts.handoffs + counts.consultations;
    let nouns = [
        (counts.starts, "start"),
        (counts.handoffs, "handoff"),
        (counts.consultations, "consultation"),
    ];
    let parts: Vec<String> = nouns
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, noun)| format::count_noun(count, noun))
        .collect();
    let parts = match made > counts.starts {
        true => format!(": {}", parts.join(", ")),
        false => String::new(),
    };
    text.field("hops", format!("{made}{parts}"));
    if counts.refused > 0 {
        let refused = format::count_noun(counts.refused, "handoff");
        text.item("refused", StyleRole::Refused, refused);
    }
    let calls = format::calls(&world.tally);
    let attempts = match world.tally.attempts {
        attempts if attempts == world.tally.calls => String::new(),
        attempts => format!(", {}", format::count_noun(attempts, "attempt")),
    };
    text.field("time", format!("{}, {calls}{attempts}", took_ms(closed.elapsed_ms)));
    text.field("tokens", format::tokens(world.tally.usage));
    if let Some(cost) = world.cost_usd().filter(|cost| *cost > 0.0) {
        text.field("cost", format!("{} (estimated)", format::usd(cost)));
    }
}
