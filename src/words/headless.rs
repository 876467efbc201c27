//! Headless text: the first and the last line of a run, the sentence of each important event as a
//! line, and alerts. Texts of models are untrusted, so terminal control sequences in them are
//! escaped.

use std::time::Duration;

use super::glyph::Glyph;
use super::patterns::{Narrate, words_of};
use super::question::tally_text;
use super::sentence::{HeadlessForm, Sentence, Stated, round_and_purpose, sentence, subject_of};
use super::styled::{StyleRole, StyledLine, StyledPart};
use super::verdict::{reason_id, stop_lead};
use super::{badges, format};
use crate::base::time;
use crate::base::visible::{visible, visible_within};
use crate::log::event::{Event, EventKind, RunClosed, RunStarted, Usage, World};
use crate::log::world::alerts::{Alert, AlertKind};
use crate::log::world::{RunFold, Tally};

/// Length limit of a subject and of what a model, a tool or a page says, in characters; the answer
/// at the end is complete.
pub const SAID_CHARS: usize = 200;

/// Length limit of other texts, in characters.
const TEXT_CHARS: usize = 1_000;

/// The lines of an event, without its time; none if it is not shown. `world` already includes the
/// event.
pub fn lines(event: &Event, world: &World) -> Vec<StyledLine> {
    let words = words_of(world);
    let sentence = sentence(event, world);
    let mut lines = words.map(|words| words.transcript(event, world)).unwrap_or_default();
    match &event.kind {
        EventKind::RunStarted(head) => lines.insert(0, start_line(head, &sentence.text)),
        EventKind::RunClosed(closed) => lines.push(end_line(closed, world, words)),
        // What is said in an event says what happened.
        _ if !lines.is_empty() => {}
        _ => lines.extend(sentence_line(&sentence, event, world, words)),
    }
    // The alert that this event raised.
    let alert = world.alerts.all().last().filter(|alert| alert.seq == event.seq);
    lines.extend(alert.map(alert_line));
    lines
}

/// The sentence as a line. Its texts are untrusted: escaped here.
fn sentence_line(
    it: &Sentence<'_>,
    event: &Event,
    run: &RunFold,
    words: Option<&dyn Narrate>,
) -> Option<StyledLine> {
    let (_, purpose) = round_and_purpose(event.span, run);
    let model = purpose.and_then(|purpose| run.models.for_purpose(purpose));
    // A contribution is shown whole.
    let chars = if it.stated.is_some() { usize::MAX } else { TEXT_CHARS };
    let text = visible_within(it.brief.as_deref().unwrap_or(&it.text), chars);
    let error = match &event.kind {
        EventKind::CallFailed { .. } if it.detail.is_empty() => run.last_failed_call(event.span),
        _ => None,
    };
    let text = match visible_within(error.unwrap_or(it.detail.trim()), SAID_CHARS) {
        detail if detail.is_empty() => text,
        detail if text.is_empty() => detail,
        detail => format!("{text}: {detail}"),
    };
    let line = StyledLine::default();
    Some(match it.headless {
        HeadlessForm::Hidden => return None,
        HeadlessForm::Run(glyph, word) => match (it.stated, glyph, word) {
            (Some(stated), ..) => line.with(stated.badge()).then(format!("  {text}")),
            (None, None, "") => line.then(text),
            (None, ..) => line
                .with(StyledPart { glyph, ..StyledPart::new(it.role, word) })
                .then(format!(" {text}")),
        },
        HeadlessForm::Step(word) => StyledLine::new(StyleRole::Strong, format!("{word:<8}"))
            .then(format!("  {}", with_model(text, model))),
        HeadlessForm::Sign(glyph, word) => {
            let sign = match it.stated {
                Some(stated) => stated_part(stated, it.role),
                None => StyledPart::with_glyph(glyph, it.role, word),
            };
            // A caller or a task has room for its full name here.
            let is_own = it.subject == subject_of(event.span, purpose, run, words);
            let full = words.filter(|_| is_own).and_then(|words| words.full_subject(event, run));
            let name = visible_within(full.as_deref().unwrap_or(&it.subject), SAID_CHARS);
            signed_line(sign, &with_model(name, model.filter(|_| is_own)), 0, &text)
        }
    })
}

/// A stance with its confidence, or a decision, as the sign of a line.
fn stated_part(stated: Stated, role: StyleRole) -> StyledPart {
    let badge = stated.badge();
    match stated {
        Stated::Stance(_, confidence) => {
            let word = format!("{:<8}{}", badge.word, format::confidence(confidence));
            // What is not used is not painted as a stance.
            let role = if role == StyleRole::Off { role } else { badge.role };
            StyledPart::with_glyph(badge.glyph, role, word)
        }
        Stated::Decision(_) => badge.into(),
    }
}

/// The first line of a run.
fn start_line(head: &RunStarted, text: &str) -> StyledLine {
    let pattern = head.plan.name();
    StyledLine::new(StyleRole::Strong, head.run.as_str().to_owned())
        .then(format!("  {pattern}  {}", visible(text)))
}

fn end_line(closed: &RunClosed, world: &World, words: Option<&dyn Narrate>) -> StyledLine {
    let mut line = StyledLine::from(StyledPart::from(badges::ended(closed.reason.class())));
    if !closed.reason.is_success() {
        line.push(format!("  {}", visible(&stop_lead(world, closed))));
        if let Some(id) = reason_id(closed) {
            line.parts.push(StyledPart::new(StyleRole::Dim, format!(" ({id})")));
        }
    }
    if let Some(phase) = &closed.phase {
        line.push(format!(" in {phase}"));
    }
    line.parts.extend(words.map(|words| words.totals()).unwrap_or_default());
    if world.is_degraded() {
        line.push("  ");
        line.parts.push(StyledPart { glyph: Some(Glyph::Alert), ..StyledPart::plain("degraded") });
    }
    let calls = format::count_noun(world.tally.calls, "call");
    let time = time::duration_text(Duration::from_millis(closed.elapsed_ms));
    line.push(format!(", {calls}, {time}"));
    if closed.paused_ms > 0 {
        let rest = time::duration_text(Duration::from_millis(closed.paused_ms));
        line.push(format!(" and {rest} paused"));
    }
    line.push(tokens(&world.tally));
    if let Some(cost) = world.cost_usd() {
        line.push(", ");
        line.parts.push(cost_part(cost));
    } else if let Some(cost) = format::cost_at_least(world) {
        line.push(format!(", {cost}"));
    }
    if let Some(questions) = tally_text(&world.questions) {
        line.push(format!("; questions: {questions}"));
    }
    line
}

/// The run's tokens; empty if there was no reply.
fn tokens(tally: &Tally) -> String {
    let replies = |count| match count {
        1 => "1 reply".to_owned(),
        several => format!("{several} replies"),
    };
    match (tally.usage == Usage::default(), tally.uncounted, tally.estimated) {
        (true, 0, _) => String::new(),
        (true, ..) => ", tokens not counted".to_owned(),
        (false, 0, 0) => format!(", tokens {}", format::tokens(tally.usage)),
        (false, 0, estimated) => {
            format!(", tokens {} ({} estimated)", format::tokens(tally.usage), replies(estimated))
        }
        (false, uncounted, _) => {
            format!(", tokens {} ({} not counted)", format::tokens(tally.usage), replies(uncounted))
        }
    }
}

/// The line of an alert.
fn alert_line(alert: &Alert) -> StyledLine {
    let what = match alert.what {
        AlertKind::BreakerOpens(times) => {
            let times = format::count_noun(times.into(), "time");
            let why = alert.opened_by_window().map(|why| format!("; last: {why}"));
            format!("breaker opened {times} in a minute{}", why.unwrap_or_default())
        }
        AlertKind::ErrorRate(rate) => {
            format!("{:.0} % errors in the last minute", rate * 100.0)
        }
        AlertKind::P95(took) => format!("p95 {}", time::duration_text(took)),
        AlertKind::TokensUsed(share) => {
            format!("{:.0} % of budget.max_total_tokens used", share * 100.0)
        }
        AlertKind::CostUsed(share) => {
            format!("{:.0} % of budget.max_cost_usd used", share * 100.0)
        }
    };
    let sign = StyledPart::with_glyph(Glyph::Alert, StyleRole::Flag, "alert");
    signed_line(sign, alert.tool.as_str(), 0, &what)
}

/// Width in columns of the glyph and the word before a name.
const SIGN_COLUMNS: u16 = 13;

/// A line that begins with a sign: then a name, indented by how deep it is nested, and a text.
pub fn signed_line(sign: StyledPart, name: &str, depth: u16, text: &str) -> StyledLine {
    let inward = "  ".repeat(depth.into());
    let name = if name.is_empty() { String::new() } else { format!("  {inward}{name}") };
    let rest = format!("{name}  {text}").trim_end().to_owned();
    StyledLine::default().then("  ").with(sign.padded(SIGN_COLUMNS)).then(rest)
}

/// The estimated cost of a run: `≈ $0.0052`.
pub fn cost_part(cost: f64) -> StyledPart {
    StyledPart { glyph: Some(Glyph::Estimate), ..StyledPart::plain(format::usd(cost)) }
}

/// A name with its model in parentheses, if there is one.
pub fn with_model(who: String, model: Option<&str>) -> String {
    match model {
        Some(model) => format!("{who} ({})", visible(model)),
        None => who,
    }
}
