//! Headless text: the lines of each important event, with those of tools, breakers and limits.
//! Texts of models are untrusted, so terminal control sequences in them are escaped.

use std::time::Duration;

use super::glyph::Glyph;
use super::patterns::{Narrate, words_of};
use super::sentence::{EventLine, command_words, line_of};
use super::styled::{StyleRole, StyledLine, StyledPart};
use super::verdict::{reason_id, stop_lead};
use super::{badges, format};
use crate::base::time;
use crate::base::visible::{REASON_CHARS, visible, visible_within};
use crate::log::event::kind::{
    BreakerStage, FailureClass, Initiator, ModelLabel, Purpose, ReplyRefused, RunClosed,
    RunStarted, Usage,
};
use crate::log::event::{BoundaryId, Event, EventKind, World};
use crate::log::world::alerts::{Alert, AlertKind};
use crate::log::world::{RunFold, SpanKind, Tally};
use crate::scenario::spec::Repair;
use crate::scenario::spec::script::ScriptStep;

/// The lines of an event, without its time; none if it is not shown. `world` already includes the
/// event.
pub fn lines(event: &Event, world: &World) -> Vec<StyledLine> {
    let words = words_of(world);
    let own = words.and_then(|words| words.lines(event, world));
    let mut lines = own.unwrap_or_else(|| shared_line(event, world, words).into_iter().collect());
    if let EventKind::RunStarted(head) = &event.kind {
        lines.insert(0, start_line(head));
    }
    // The alert that this event raised.
    let alert = world.alerts.all().last().filter(|alert| alert.seq == event.seq);
    lines.extend(alert.map(alert_line));
    lines
}

/// The line that the list of events shows for an event of this pattern.
pub fn event_words<'w>(
    words: &'w dyn Narrate,
    event: &'w Event,
    run: &'w RunFold,
) -> EventLine<'w> {
    line_of(event, run, Some(words))
}

/// The line of an event that looks the same in every pattern.
fn shared_line(event: &Event, world: &World, words: Option<&dyn Narrate>) -> Option<StyledLine> {
    let plain = |text: String| StyledLine::default().then(text);
    let who = || caller_of(event, world, words);
    Some(match &event.kind {
        EventKind::CallRetried { attempt, wait_ms, cause: after, status } => {
            let wait = time::duration_text(Duration::from_millis(*wait_ms));
            let what = what_failed(*after, *status);
            signed_line(Glyph::Retry, "retry", StyleRole::Retry)
                .then(format!("  {}  {what}, attempt {attempt} in {wait}", who()))
        }
        EventKind::RetryRefused { limit, .. } => {
            let why = limit.sentence(world.tools.for_call(event.span)?.name());
            signed_line(Glyph::Failed, "no retry", StyleRole::Failed)
                .then(format!("  {}  {why}", who()))
        }
        EventKind::CallFailed { reason, .. } => signed_line(
            Glyph::Failed,
            "failed",
            StyleRole::Failed,
        )
        .then(format!("  {}  {}", who(), reason.phrase())),
        EventKind::FlagChanged { flag, on, by, boundary } => {
            let position = if *on { "on" } else { "off" };
            let text = format!(" {flag} {position} from {}{}", place(boundary), cause_suffix(*by));
            StyledLine::from(StyledPart::with_glyph(Glyph::Flag, StyleRole::Flag, "")).then(text)
        }
        EventKind::RunForked { parent, at, .. } => {
            let reused = world.tally.reused.map_or_else(String::new, |reused| {
                format!(": its first {} are reused", format::count_noun(reused.events, "event"))
            });
            plain(format!("forked from {} before {}{reused}", visible(parent.as_str()), place(at)))
        }
        EventKind::RunResumed { events, downtime_ms, by } => {
            let stood = time::duration_text(Duration::from_millis(*downtime_ms));
            let stored = format::count_noun(*events, "stored event");
            plain(format!("resumed from {stored}, stopped for {stood}{}", cause_suffix(*by)))
        }
        EventKind::CommandTaken { command, by, .. } => {
            plain(format!("{} {}", visible(by), command_words(command)))
        }
        EventKind::Paused { at } => {
            StyledLine::from(StyledPart::with_glyph(Glyph::Paused, StyleRole::Paused, "paused"))
                .then(format!(" before {}", places(at)))
        }
        EventKind::Resumed { paused_ms, by } => {
            let rest = time::duration_text(Duration::from_millis(*paused_ms));
            plain(format!("resumed after {rest}{}", cause_suffix(*by)))
        }
        EventKind::RequestAdapted { model, parameter } => {
            let (model, parameter) = (visible(model), visible(parameter));
            plain(format!("  {model} does not accept {parameter}; retried without it"))
        }
        EventKind::ReplyRepaired { repair, changed: what } => {
            let what = if what.is_empty() { String::new() } else { format!(" ({what})") };
            let repair = visible(Repair::phrase(repair));
            plain(format!("  {}  reply repaired: {repair}{}", who(), visible(&what)))
        }
        EventKind::BudgetReached(reached) => {
            StyledLine::from(StyledPart::with_glyph(Glyph::Failed, StyleRole::Failed, ""))
                .then(format!(" {}", reached.sentence()))
        }
        EventKind::ReplyRefused(refused) => refused_reply(refused, &who()),
        EventKind::ConditionFailed { place, text } => {
            let part = StyledPart { glyph: Some(Glyph::Alert), ..StyledPart::plain("") };
            StyledLine::from(part).then(format!(" {}: {}", visible(place), visible(text)))
        }
        // Printed on standard error, in every format.
        EventKind::Warning { .. } => return None,
        EventKind::RunClosed(closed) => end_line(closed, world, words),
        _ => return tool_line(event, world, words),
    })
}

/// The line of a refused reply: what is wrong with it, and how it begins.
fn refused_reply(refused: &ReplyRefused, who: &str) -> StyledLine {
    let mut text = format!("  {who}  {}", visible(&refused.detail));
    if let Some(nth) = refused.repeat {
        text.push_str(&format!("; retry {nth}"));
    }
    let line = signed_line(Glyph::Refused, "refused", StyleRole::Refused);
    if refused.preview.is_empty() {
        return line.then(text);
    }
    let preview = StyledPart::new(StyleRole::Dim, visible(&refused.preview).into_owned());
    line.then(text + ": ").with(preview)
}

fn start_line(head: &RunStarted) -> StyledLine {
    let model = match &head.model {
        ModelLabel::Scripted => "scripted".to_owned(),
        ModelLabel::Live { name, host } => format!("live {} at {}", visible(name), visible(host)),
    };
    StyledLine::new(StyleRole::Strong, head.run.as_str().to_owned()).then(format!(
        "  {}  \"{}\"  {model}",
        head.plan.name(),
        visible(&head.title)
    ))
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

/// The caller of an event's call, with the model if the run uses several.
pub fn caller_name(event: &Event, run: &RunFold, words: &dyn Narrate) -> String {
    caller_of(event, run, Some(words))
}

fn caller_of(event: &Event, run: &RunFold, words: Option<&dyn Narrate>) -> String {
    let name = match run.spans.get(event.span).map(|span| &span.kind) {
        Some(SpanKind::Call(purpose)) => call_name(purpose, words),
        _ => "the model".to_owned(),
    };
    with_model(name, model_of(event, run))
}

fn call_name(purpose: &Purpose, words: Option<&dyn Narrate>) -> String {
    match purpose {
        Purpose::Contribution { role, .. } => role.to_string(),
        Purpose::Finalize => "finalize".to_owned(),
        Purpose::Plan => "plan".to_owned(),
        purpose => words
            .and_then(|words| words.caller_name(purpose))
            .or_else(|| purpose.agent().map(ToString::to_string))
            .unwrap_or_else(|| "the model".to_owned()),
    }
}

fn what_failed(class: FailureClass, status: Option<u16>) -> String {
    status.map_or_else(|| class.phrase().to_owned(), |status| status.to_string())
}

fn cause_suffix(by: Initiator) -> &'static str {
    match by {
        Initiator::You => ", by you",
        Initiator::Schedule => ", from the command line",
        Initiator::Breakpoint => ", by a breakpoint",
        Initiator::Suspend => ", after a suspend",
        Initiator::Store => ", by the store",
        Initiator::Remote => ", from another machine",
        Initiator::Runner => ", by the runner",
    }
}

fn places(at: &[BoundaryId]) -> String {
    at.iter().map(place).collect::<Vec<_>>().join(", ")
}

/// A boundary as it is shown. It may contain a task's id, which a planner wrote: escaped.
fn place(at: &BoundaryId) -> String {
    visible_within(&at.display_name(), REASON_CHARS)
}

/// The line of a plan or of a tool's event; `None` if it is not shown.
fn tool_line(event: &Event, run: &RunFold, words: Option<&dyn Narrate>) -> Option<StyledLine> {
    let described: EventLine = line_of(event, run, words);
    let line = |glyph: Glyph, word: &'static str, role: StyleRole, who: &str| {
        signed_line(glyph, word, role).then(format!(
            "  {}  {}",
            visible(who),
            visible(&described.text)
        ))
    };
    Some(match &event.kind {
        EventKind::PlanRefused { .. } => {
            let who = with_model("plan".to_owned(), run.models.for_step(ScriptStep::Plan));
            line(Glyph::Refused, "refused", StyleRole::Refused, &who)
        }
        EventKind::CallDegraded { .. } => {
            run.spans.get(event.span)?;
            line(Glyph::Alert, "degraded", StyleRole::Flag, &described.subject)
        }
        EventKind::ConcurrencyChanged { .. } => {
            StyledLine::default().then(described.text.into_owned())
        }
        EventKind::BreakerChanged { to, .. } => {
            let (glyph, role) = match to {
                BreakerStage::Open | BreakerStage::Held => (Glyph::Refused, StyleRole::Refused),
                BreakerStage::HalfOpen | BreakerStage::Disabled => (Glyph::Alert, StyleRole::Flag),
                BreakerStage::Closed => (Glyph::Done, StyleRole::Done),
            };
            line(glyph, "breaker", role, &described.subject)
        }
        EventKind::FaultInjected { .. } => {
            line(Glyph::Alert, "fault", StyleRole::Flag, &described.subject)
        }
        EventKind::FaultRemoved { .. } => {
            line(Glyph::Done, "fault", StyleRole::Done, &described.subject)
        }
        EventKind::LimitsChanged { .. } => {
            line(Glyph::Alert, "limits", StyleRole::Flag, &described.subject)
        }
        _ => return None,
    })
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
    signed_line(Glyph::Alert, "alert", StyleRole::Flag).then(format!("  {}  {what}", alert.tool))
}

/// Width in columns of the glyph and the word before a name.
pub const WORD_COLUMNS: u16 = 13;

/// A line that begins with a glyph and a word.
pub fn signed_line(glyph: Glyph, word: &'static str, role: StyleRole) -> StyledLine {
    let part = StyledPart::with_glyph(glyph, role, word).padded(WORD_COLUMNS);
    StyledLine::default().then("  ").with(part)
}

/// The estimated cost of a run: `≈ $0.0052`.
pub fn cost_part(cost: f64) -> StyledPart {
    StyledPart { glyph: Some(Glyph::Estimate), ..StyledPart::plain(format::usd(cost)) }
}

/// The model of an event's call, if the run uses several.
pub fn model_of<'w>(event: &Event, run: &'w RunFold) -> Option<&'w str> {
    match &run.spans.get(event.span)?.kind {
        SpanKind::Call(purpose) => run.models.for_purpose(purpose),
        _ => None,
    }
}

/// A name with its model in parentheses, if there is one.
pub fn with_model(who: String, model: Option<&str>) -> String {
    match model {
        Some(model) => format!("{who} ({})", visible(model)),
        None => who,
    }
}
