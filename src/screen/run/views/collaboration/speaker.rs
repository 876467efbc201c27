//! Pane 2 of a collaboration: a contribution while it is streamed or once it is accepted, the
//! brief, or why there is none. [`speech`](crate::screen::run::speech) draws the text.

use std::fmt::Write as _;

use super::CollaborationView;
use super::seat::{SeatSubject, has_failed_seat, seat_sign};
use crate::base::json_text::read_start;
use crate::log::event::SpanId;
use crate::log::facts::collaboration::Contribution;
use crate::log::world::collaboration::{Collaboration, RoundSeat, SeatState};
use crate::screen::DrawContext;
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::run::data::RunData;
use crate::screen::run::pane_text::{
    PaneText, TextPane, TextState, call_text, call_text_as, outcome_text, run_text,
};
use crate::screen::scroll::Scroll;
use crate::screen::theme::StateSign;
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::markdown::{model_markdown, text};
use crate::words::styled::StyleRole;
use crate::words::verdict::reply_text;

/// The text about this subject; `call` is its call.
pub(crate) fn text_pane(
    run: &RunData,
    subject: SeatSubject,
    call: Option<SpanId>,
    scroll: Option<Scroll>,
) -> TextPane<'_> {
    let is_outcome = subject == SeatSubject::Outcome;
    let table = run.shown().collaboration();
    let brief = table.is_some_and(|table| table.finalize.is_some());
    let prompt = match subject {
        SeatSubject::Outcome | SeatSubject::Finalize if brief => " view the brief's prompt",
        SeatSubject::Outcome if table.is_some_and(has_failed_seat) => {
            " view the failed call's prompt"
        }
        SeatSubject::Outcome => " view the cancelled call's prompt",
        _ => " view prompt",
    };
    let words = match table {
        Some(table) => words(run, table, subject, call),
        None => run_text(run, call),
    };
    TextPane { words, call, is_outcome, prompt, scroll }
}

fn words<'a>(
    run: &'a RunData,
    table: &'a Collaboration,
    subject: SeatSubject,
    call: Option<SpanId>,
) -> PaneText<'a> {
    match subject {
        SeatSubject::None => {
            PaneText::note("No replies yet: what a seat says is shown here, word by word.")
        }
        SeatSubject::Outcome => outcome_text(run, call),
        SeatSubject::Finalize => match (&run.shown().progress.answer, table.finalize) {
            (Some(answer), _) => PaneText::complete(answer.as_ref()),
            (None, Some(call)) => call_text(run, call),
            (None, None) => PaneText::note("No brief yet: it is written after the last round."),
        },
        SeatSubject::Seat { round, seat } => {
            match table.round(round).and_then(|round| round.seats.get(seat)) {
                Some(seat) => seat_text(run, table, seat),
                None => PaneText::note("No reply: this seat is not in this round."),
            }
        }
    }
}

fn seat_text<'a>(run: &'a RunData, table: &'a Collaboration, seat: &'a RoundSeat) -> PaneText<'a> {
    if let Some(taken) = seat.contribution.as_ref().or(seat.unused.as_ref()) {
        let actions = taken.actions.iter().map(|said| said.as_ref().into());
        return PaneText::new(taken.summary.as_ref(), TextState::Complete, actions.collect());
    }
    if let Some(reason) = &seat.refused {
        let lead = match &seat.detail {
            Some(detail) => reply_text(seat.role.as_str(), detail),
            None => reason.phrase().into_owned(),
        };
        let mut text = format!("{lead}.\nStop reason: {reason}");
        if let Some(advice) = reason.advice() {
            text.push_str(&format!("\n{advice}"));
        }
        return PaneText::problem(text);
    }
    match (seat.state, seat.call) {
        (SeatState::Off, _) if table.plan.role_flags.contains_key(&seat.role) => {
            let key = key_of(Action::Flags);
            PaneText::note(format!(
                "Its flag is off, so its seat is empty in this round. {key} opens the flags."
            ))
        }
        (SeatState::Off, _) => PaneText::note("The run stops before its turn."),
        (SeatState::Cancelled, _) => PaneText::note("The run was stopped during this call."),
        (_, Some(call)) => reply_of_seat(run, call),
        (_, None) if !run.shown().progress.is_live() => {
            PaneText::note("The run ended before this seat was called.")
        }
        (_, None) => PaneText::note("Waiting for its turn."),
    }
}

/// The reply of a seat's call that has no verdict yet.
pub(super) fn reply_of_seat(run: &RunData, call: SpanId) -> PaneText<'_> {
    call_text_as(run, call, readable_reply)
}

/// Longest part of a reply that is read, in bytes.
const MAX_READ: usize = 64 * 1024;

/// A contribution as readable text: its summary and its actions. A reply without a summary is shown as it is once it
/// is complete, and one without an object always.
fn readable_reply(text: &str, state: TextState) -> PaneText<'_> {
    // A model may write something before the object: a code fence, a preface.
    let object = text.find('{').and_then(|at| text.get(at..)).filter(|object| {
        let after = object[1..].trim_start();
        after.is_empty() || after.starts_with(['"', '}'])
    });
    let Some(object) = object else { return PaneText::new(text, state, Vec::new()) };
    let end = (0..=object.len().min(MAX_READ)).rev().find(|end| object.is_char_boundary(*end));
    let said = read_start(&object[..end.unwrap_or(0)]).unwrap_or_default();
    let Some(summary) = said["summary"].as_str() else {
        return match state {
            TextState::Streaming => PaneText::note("Its reply has begun; its summary follows."),
            _ => PaneText::new(text, state, Vec::new()),
        };
    };
    let actions = said["actions"].as_array().into_iter().flatten();
    let actions = actions.filter_map(|action| Some(action.as_str()?.to_owned().into()));
    PaneText::new(summary.to_owned(), state, actions.collect())
}

pub(super) fn seat_markdown(round: u32, said: &Contribution) -> String {
    let confidence = format::confidence(said.confidence);
    let mut out = format!(
        "**{}**, round {round}: **{}** {confidence}\n\n> {}\n",
        said.agent,
        said.stance,
        model_markdown(&said.summary).replace('\n', "\n> ")
    );
    for action in &said.actions {
        let _ = write!(out, "\n- {}", text(action));
    }
    out.push('\n');
    out
}

/// Title and state of the speaker's pane.
pub(crate) fn title(
    view: &CollaborationView,
    data: &RunData,
    cx: &DrawContext,
) -> (String, Option<StateSign>) {
    let world = data.shown();
    match (view.subject(data), world.collaboration()) {
        (SeatSubject::Seat { round, seat }, Some(table)) => {
            let seat = table.round(round).and_then(|round| round.seats.get(seat));
            let who = seat.map_or("", |seat| seat.role.as_str());
            (
                format!("{who} {} round {round}", cx.glyphs.symbol(Glyph::Dot)),
                seat.map(|seat| seat_sign(cx, world, Some(seat))),
            )
        }
        (SeatSubject::Finalize, _) => {
            let (glyph, word, role) = match (&world.progress.answer, world.progress.is_live()) {
                (Some(_), _) => (Glyph::Done, "composed", StyleRole::Done),
                (None, true) => (Glyph::Running, "writing", StyleRole::Running),
                (None, false) => (Glyph::Failed, "not written", StyleRole::Failed),
            };
            let style = cx.theme.style(role);
            ("launch brief".to_owned(), Some(StateSign { glyph, word, style }))
        }
        (SeatSubject::Outcome, _) => ("Outcome".to_owned(), Some(cx.theme.run(world))),
        _ => ("Speaker".to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"agent": "risk_analyst", "confidence": 0.7, "extra": {"a": [1, "}"]},
        "stance": "caution", "summary": "Thin \"margin\"\nunder 3 %. \ud83d\ude80",
        "actions": ["Rehearse fail-over", "Alert"]}"#;

    #[test]
    fn a_whole_reply_is_read_whole() {
        for reply in [WHOLE.to_owned(), format!("```json\n{WHOLE}\n```")] {
            let said = readable_reply(&reply, TextState::Complete);
            assert_eq!(said.text, "Thin \"margin\"\nunder 3 %. 🚀");
            assert_eq!(said.actions, ["Rehearse fail-over", "Alert"]);
        }
    }

    #[test]
    fn words_grow_and_are_never_json() {
        let mut before = 0;
        for end in (1..=WHOLE.len()).filter(|end| WHOLE.is_char_boundary(*end)) {
            let said = readable_reply(&WHOLE[..end], TextState::Streaming);
            assert!(!said.text.contains('{'), "at {end}: {}", said.text);
            if said.state == TextState::Streaming {
                assert!(said.text.len() >= before, "at {end}");
                before = said.text.len();
            }
        }
        assert!(before > 0);
    }

    #[test]
    fn other_text_is_shown_as_is() {
        for text in ["The launch may go.", "A set {a, b}."] {
            let said = readable_reply(text, TextState::Streaming);
            assert_eq!((&*said.text, said.state), (text, TextState::Streaming));
        }
        let said = readable_reply(r#"{"stance": "go"}"#, TextState::Complete);
        assert_eq!(said.text, r#"{"stance": "go"}"#);
    }
}
