//! The `text` format: one line for each important event. Texts of models are untrusted, so terminal
//! control sequences in them are escaped.

mod research;
mod team;
mod tools;

use std::fmt::Write as _;
use std::time::Duration;

use super::stream_style::StreamStyle;
use crate::base::visible::{REASON_CHARS, visible, visible_within};
use crate::event::kind::{
    CollaborationFact, FailureClass, Initiator, ModelLabel, PatternFact, Purpose, ReplyRefused,
    RunClosed, RunStarted, Usage,
};
use crate::event::world::{Outcome, SessionOutcome, SpanKind, Tally};
use crate::event::{BoundaryId, Event, EventKind, World};
use crate::narrate::event_line::rounds_text;
use crate::scenario::spec::repair::Repair;
use crate::ui::format;
use crate::ui::glyph::Glyph;
use crate::ui::theme::StyleRole;

/// Width in columns of the word before a seat's name.
const WORD: usize = 13;

/// The lines of an event; `None` if it is not shown. `world` already includes the event.
pub fn lines(event: &Event, world: &World, paint: &StreamStyle) -> Option<String> {
    let mut lines = team::lines(event, world, paint)
        .unwrap_or_else(|| common_line(event, world, paint).into_iter().collect());
    if let EventKind::RunStarted(head) = &event.kind {
        lines.insert(0, start_line(head, paint));
    }
    let lines = lines.iter().map(|text| with_time(event, text, paint));
    let lines: Vec<String> = lines.chain(alert(event, world, paint)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The line of an event that looks the same in every pattern, or belongs to a collaboration or an
/// orchestrator.
fn common_line(event: &Event, world: &World, paint: &StreamStyle) -> Option<String> {
    Some(match &event.kind {
        EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundStarted {
            round,
            ..
        })) => {
            let most = world.collaboration().map_or(0, |it| it.plan.max_rounds);
            paint.role(StyleRole::Strong, &format!("round {round} of {most}"))
        }
        EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundClosed {
            round,
            conflicts,
            decision,
        })) => {
            let words: Vec<&str> = conflicts.iter().map(|conflict| conflict.phrase()).collect();
            let found = if words.is_empty() { String::new() } else { words.join(", ") + ": " };
            let outcome = match decision {
                Some(decision) => paint.sign(paint.theme().decision(*decision)),
                None => "no decision".to_owned(),
            };
            format!("round {round} closed, {found}{outcome}")
        }
        EventKind::Pattern(PatternFact::Collaboration(
            CollaborationFact::ContributionAccepted {
                contribution, extra_keys, extra_actions, ..
            },
        )) => {
            let sign = paint.theme().stance(contribution.stance);
            let word = format!(
                "{} {:<8}{}",
                paint.glyph(sign.glyph),
                sign.word,
                format::confidence(contribution.confidence)
            );
            let mut line = format!(
                "  {}  {}  {}",
                paint.with(sign.style, &format!("{word:<WORD$}")),
                caller_name(event, world),
                visible(&contribution.summary)
            );
            for (count, what) in [(*extra_keys, "extra key"), (*extra_actions, "extra action")] {
                if count > 0 {
                    let _ = write!(line, " ({} dropped)", format::count_noun(count.into(), what));
                }
            }
            line
        }
        EventKind::Pattern(PatternFact::Collaboration(
            CollaborationFact::ContributionRefused { role, reason, .. },
        )) => {
            // If the seat's model was not called, the event belongs to no call.
            let who = with_model(role.to_string(), model_of(event, world));
            let word = format!("{} {:<11}", paint.glyph(Glyph::Refused), "refused");
            format!("  {}  {who}  {}", paint.role(StyleRole::Refused, &word), reason.phrase())
        }
        kind if is_only_counted(kind, world) => return None,
        _ if research::is_failed_read(event, world) => return None,
        EventKind::CallRetried { attempt, wait_ms, cause: after, status } => {
            let word = format!("{} {:<11}", paint.glyph(Glyph::Retry), "retry");
            let wait = format::duration_text(Duration::from_millis(*wait_ms));
            let what = what_failed(*after, *status);
            let who = caller_name(event, world);
            format!(
                "  {}  {who}  {what}, attempt {attempt} in {wait}",
                paint.role(StyleRole::Retry, &word)
            )
        }
        EventKind::RetryRefused { limit, .. } => {
            let word = format!("{} {:<11}", paint.glyph(Glyph::Failed), "no retry");
            let row = world.tools.for_call(event.span)?;
            let why = limit.sentence(row.name());
            format!(
                "  {}  {}  {why}",
                paint.role(StyleRole::Failed, &word),
                caller_name(event, world)
            )
        }
        // The task's own line reports it.
        EventKind::CallFailed { .. } if is_task(event, world) => return None,
        EventKind::CallFailed { reason, .. } => {
            let word = format!("{} {:<11}", paint.glyph(Glyph::Failed), "failed");
            let who = caller_name(event, world);
            format!("  {}  {who}  {}", paint.role(StyleRole::Failed, &word), reason.phrase())
        }
        EventKind::FlagChanged { flag, on, by, boundary } => {
            let position = if *on { "on" } else { "off" };
            let word = paint.role(StyleRole::Flag, paint.glyph(Glyph::Flag));
            format!("{word} {flag} {position} from {}{}", place(boundary), cause_suffix(*by))
        }
        EventKind::Paused { at } => {
            let word =
                paint.role(StyleRole::Paused, &format!("{} paused", paint.glyph(Glyph::Paused)));
            format!("{word} before {}", places(at))
        }
        EventKind::Resumed { paused_ms, by } => {
            let rest = format::duration_text(Duration::from_millis(*paused_ms));
            format!("resumed after {rest}{}", cause_suffix(*by))
        }
        EventKind::RequestAdapted { model, parameter } => {
            let (model, parameter) = (visible(model), visible(parameter));
            format!("  {model} does not accept {parameter}; retried without it")
        }
        EventKind::ReplyRepaired { repair, changed: what } => {
            let what = if what.is_empty() { String::new() } else { format!(" ({what})") };
            format!(
                "  {}  reply repaired: {}{}",
                caller_name(event, world),
                visible(Repair::phrase(repair)),
                visible(&what)
            )
        }
        EventKind::BudgetReached(reached) => {
            let word = paint.role(StyleRole::Failed, paint.glyph(Glyph::Failed));
            format!("{word} {}", reached.sentence())
        }
        EventKind::ReplyRefused(refused) => refused_reply(event, refused, world, paint),
        EventKind::ConditionFailed { place, text } => {
            format!("{} {}: {}", paint.glyph(Glyph::Alert), visible(place), visible(text))
        }
        // Printed on standard error, in every format.
        EventKind::Warning { .. } => return None,
        EventKind::RunClosed(closed) => end_line(closed, world, paint),
        _ => {
            return research::line(event, world, paint)
                .or_else(|| tools::line(event, world, paint));
        }
    })
}

fn with_time(event: &Event, text: &str, paint: &StreamStyle) -> String {
    let moment = paint.role(StyleRole::Dim, &format::time_in_run(event.at));
    format!("{moment}  {text}")
}

/// The line of the alert that this event raised, if any.
fn alert(event: &Event, world: &World, paint: &StreamStyle) -> Option<String> {
    let alert = world.alerts.all().last().filter(|alert| alert.seq == event.seq)?;
    Some(with_time(event, &tools::alert(alert, paint), paint))
}

/// Whether events of this kind are so frequent in this run that only totals are shown.
fn is_only_counted(kind: &EventKind, world: &World) -> bool {
    let of_call = matches!(
        kind,
        EventKind::CallRetried { .. }
            | EventKind::RetryRefused { .. }
            | EventKind::CallFailed { .. }
            | EventKind::CallDegraded { .. }
    );
    of_call && world.resilience().is_some()
}

/// The line of a refused reply: what is wrong with it, and how it begins.
fn refused_reply(
    event: &Event,
    refused: &ReplyRefused,
    world: &World,
    paint: &StreamStyle,
) -> String {
    let word = format!("{} {:<11}", paint.glyph(Glyph::Refused), "refused");
    let who = caller_name(event, world);
    let mut line = format!("  {}  {who}  ", paint.role(StyleRole::Refused, &word));
    let _ = write!(line, "{}", visible(&refused.detail));
    if let Some(nth) = refused.repeat {
        let _ = write!(line, "; retry {nth}");
    }
    if !refused.preview.is_empty() {
        let _ = write!(line, ": {}", paint.role(StyleRole::Dim, &visible(&refused.preview)));
    }
    line
}

/// Whether the event's call executes a task.
fn is_task(event: &Event, world: &World) -> bool {
    let what = world.spans.get(event.span).map(|span| &span.kind);
    matches!(what, Some(SpanKind::Call(Purpose::Task { .. })))
}

/// The text below the last line: the answer, or what to do about a stop.
pub fn closing(outcome: &Outcome, world: &World) -> String {
    let mut out = String::new();
    let cited = world.research().and_then(research::answer);
    if let Some(cited) = cited {
        out.push('\n');
        out.push_str(&cited);
    } else if let Some(answer) = &world.answer {
        out.push('\n');
        for line in answer.lines() {
            out.push_str(&visible(line));
            out.push('\n');
        }
    }
    out.push_str(&tools::closing(outcome, world));
    for said in [outcome.error.as_deref(), world.stop_advice()].into_iter().flatten() {
        out.push_str(&visible(said));
        out.push('\n');
    }
    out
}

/// The summary line below the last run of a session.
pub fn session(outcome: &SessionOutcome, paint: &StreamStyle) -> String {
    let messages = format::count_noun(outcome.messages as u64, "message");
    let calls = format::count_noun(outcome.usage.calls, "call");
    let took = format::duration_text(Duration::from_millis(outcome.elapsed_ms));
    let mut line = format!("session  {} of {messages} answered, {calls}, {took}", outcome.answered);
    if outcome.usage.tokens != Usage::default() {
        let _ = write!(line, ", tokens {}", format::tokens(outcome.usage.tokens));
    }
    if let Some(cost) = outcome.usage.cost_usd {
        let _ = write!(line, ", {}", format::estimate(cost, paint.glyphs()));
    }
    line + "\n"
}

fn start_line(head: &RunStarted, paint: &StreamStyle) -> String {
    let model = match &head.model {
        ModelLabel::Scripted => "scripted".to_owned(),
        ModelLabel::Live { name, host } => format!("live {} at {}", visible(name), visible(host)),
    };
    let run = paint.role(StyleRole::Strong, head.run.as_str());
    format!("{run}  {}  \"{}\"  {model}", head.plan.name(), visible(&head.title))
}

fn end_line(closed: &RunClosed, world: &World, paint: &StreamStyle) -> String {
    let mut line = paint.sign(paint.theme().ended(closed.reason.class()));
    let _ = write!(line, "  {}", closed.reason.phrase_and_id());
    if let Some(phase) = &closed.phase {
        let _ = write!(line, " in {phase}");
    }
    if let Some(table) = world.collaboration() {
        if let Some(decision) = table.decision() {
            let _ = write!(line, "  {}", paint.sign(paint.theme().decision(decision)));
        }
        let rounds = rounds_text(table);
        let messages = format::count_noun(table.messages.into(), "message");
        let _ = write!(line, "  {rounds}, {messages}");
    }
    if let Some(orchestrator) = world.orchestrator() {
        let tasks = format::count_noun(orchestrator.tasks.len() as u64, "task");
        let _ = write!(line, "  {tasks}");
    }
    if let Some(team) = world.team() {
        line.push_str(&team::team_totals(team));
    }
    if let Some(research) = world.research() {
        line.push_str(&research::research_totals(research));
    }
    if world.is_degraded() {
        let _ = write!(line, "  {} degraded", paint.glyph(Glyph::Alert));
    }
    let calls = format::count_noun(world.tally.calls, "call");
    let time = format::duration_text(Duration::from_millis(closed.elapsed_ms));
    let _ = write!(line, ", {calls}, {time}");
    if closed.paused_ms > 0 {
        let rest = format::duration_text(Duration::from_millis(closed.paused_ms));
        let _ = write!(line, " and {rest} paused");
    }
    line.push_str(&tokens(&world.tally));
    if let Some(cost) = world.cost_usd() {
        let _ = write!(line, ", {}", format::estimate(cost, paint.glyphs()));
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
fn caller_name(event: &Event, world: &World) -> String {
    let what = world.spans.get(event.span).map(|span| &span.kind);
    with_model(call_name(what, world), model_of(event, world))
}

/// The model of an event's call, if the run uses several.
fn model_of<'w>(event: &Event, world: &'w World) -> Option<&'w str> {
    match &world.spans.get(event.span)?.kind {
        SpanKind::Call(purpose) => world.models.for_purpose(purpose),
        _ => None,
    }
}

/// A name with its model in parentheses, if there is one.
fn with_model(who: String, model: Option<&str>) -> String {
    match model {
        Some(model) => format!("{who} ({})", visible(model)),
        None => who,
    }
}

fn call_name(what: Option<&SpanKind>, world: &World) -> String {
    match what {
        Some(SpanKind::Call(Purpose::Contribution { role, .. })) => role.to_string(),
        Some(SpanKind::Call(Purpose::Finalize)) => "finalize".to_owned(),
        Some(SpanKind::Call(Purpose::Plan)) => "plan".to_owned(),
        Some(SpanKind::Call(Purpose::Task { task, .. })) => tools::task_label_by_id(task, world),
        Some(SpanKind::Call(purpose)) => {
            let agent = || purpose.agent().map(ToString::to_string);
            research::call_label(purpose, world)
                .or_else(agent)
                .unwrap_or_else(|| "the model".to_owned())
        }
        _ => "the model".to_owned(),
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
    }
}

fn places(at: &[BoundaryId]) -> String {
    at.iter().map(place).collect::<Vec<_>>().join(", ")
}

/// A boundary as it is shown. It may contain a task's id, which a planner wrote: escaped.
fn place(at: &BoundaryId) -> String {
    visible_within(&at.display_name(), REASON_CHARS)
}
