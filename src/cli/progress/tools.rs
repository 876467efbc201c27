//! Lines of plans, tasks, tools and their breakers and limits.

use std::fmt::Write as _;
use std::time::Duration;

use super::with_model;
use crate::base::name::{TaskId, ToolName};
use crate::base::visible::{REASON_CHARS, visible, visible_within};
use crate::cli::stream_style::StreamStyle;
use crate::event::kind::{BreakerStage, FallbackKind, OrchestratorFact, PatternFact, Task};
use crate::event::world::alerts::{Alert, AlertKind};
use crate::event::world::latency::MIN_SAMPLES;
use crate::event::world::{Outcome, SpanKind};
use crate::event::{Event, EventKind, SpanId, World};
use crate::narrate::event_line;
use crate::ui::format;
use crate::ui::glyph::Glyph;
use crate::ui::theme::StyleRole;

/// Number of a plan's tasks that are named; the others are only counted.
const MAX_NAMED_TASKS: usize = 8;
/// Length limit of a failed attempt's error, in characters.
const ERROR_CHARS: usize = 200;

/// The line of a plan, task or tool event; `None` if it is not shown.
pub(super) fn line(event: &Event, world: &World, paint: &StreamStyle) -> Option<String> {
    let told = event_line::event_line(event, world);
    let signed = |glyph: Glyph, word: &str, role: StyleRole, who: &str| {
        let word = paint.role(role, &format!("{} {word:<11}", paint.glyph(glyph)));
        format!("  {word}  {}  {}", visible(who), visible(&told.text))
    };
    Some(match &event.kind {
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::PlanAccepted { tasks })) => {
            with_model(plan(tasks), world.models.plan())
        }
        EventKind::PlanRefused { .. } => {
            let who = with_model("plan".to_owned(), world.models.plan());
            signed(Glyph::Refused, "refused", StyleRole::Refused, &who)
        }
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskDone { .. })) => {
            let (task, degraded) = task_of_event(event, world)?;
            if degraded {
                return None;
            }
            signed(Glyph::Done, "done", StyleRole::Done, &task)
        }
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskFailed { .. })) => {
            let line =
                signed(Glyph::Failed, "failed", StyleRole::Failed, &task_of_event(event, world)?.0);
            match error(event, world) {
                Some(text) => format!("{line}: {}", visible_within(text, ERROR_CHARS)),
                None => line,
            }
        }
        // A task whose result is omitted also fails; that line reports it.
        EventKind::CallDegraded { by: FallbackKind::Omitted, .. }
            if world.orchestrator().is_some() =>
        {
            return None;
        }
        EventKind::CallDegraded { .. } => {
            let call = world.spans.get(event.span)?;
            let task = task_of_span(call.parent, world)
                .map_or_else(|| told.subject.to_string(), |it| it.0);
            signed(Glyph::Alert, "degraded", StyleRole::Flag, &task)
        }
        EventKind::ConcurrencyChanged { .. } => told.text.to_string(),
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::ResultsAggregated {
            aggregate,
            ..
        })) => {
            let level = world.orchestrator().map(|it| it.plan.level.as_str())?;
            let value = aggregate.get(level).and_then(|level| level.as_str()).unwrap_or("none");
            format!("{} {}", visible(level), paint.role(StyleRole::Strong, &visible(value)))
        }
        EventKind::BreakerChanged { to, .. } => {
            let (glyph, role) = match to {
                BreakerStage::Open | BreakerStage::Held => (Glyph::Refused, StyleRole::Refused),
                BreakerStage::HalfOpen | BreakerStage::Disabled => (Glyph::Alert, StyleRole::Flag),
                BreakerStage::Closed => (Glyph::Done, StyleRole::Done),
            };
            signed(glyph, "breaker", role, &told.subject)
        }
        EventKind::FaultInjected { .. } => {
            signed(Glyph::Alert, "fault", StyleRole::Flag, &told.subject)
        }
        EventKind::FaultRemoved { .. } => {
            signed(Glyph::Done, "fault", StyleRole::Done, &told.subject)
        }
        EventKind::LimitsChanged { .. } => {
            signed(Glyph::Alert, "limits", StyleRole::Flag, &told.subject)
        }
        _ => return None,
    })
}

/// The line of a plan, with its first tasks.
fn plan(tasks: &[Task]) -> String {
    let names: Vec<String> = tasks.iter().take(MAX_NAMED_TASKS).map(task_label).collect();
    let mut line = format!("plan  {}", format::count_noun(tasks.len() as u64, "task"));
    let _ = write!(line, ": {}", names.join(", "));
    if let Some(more) = tasks.len().checked_sub(MAX_NAMED_TASKS + 1) {
        let _ = write!(line, " and {} more", more + 1);
    }
    line
}

/// A task's id and worker.
fn task_label(task: &Task) -> String {
    format!("{} {}", id(&task.id), task.worker)
}

fn id(task: &TaskId) -> String {
    visible_within(task.as_str(), REASON_CHARS)
}

/// The last attempt's error of the task that this event closes.
fn error<'w>(event: &Event, world: &'w World) -> Option<&'w str> {
    let SpanKind::Task { index } = world.spans.get(event.span)?.kind else { return None };
    let orchestrator = world.orchestrator()?;
    orchestrator.tasks.get(usize::try_from(index).ok()?)?.error.as_deref()
}

/// A task's id and worker, looked up by id.
pub(super) fn task_label_by_id(task: &TaskId, world: &World) -> String {
    let row = world.orchestrator().and_then(|world| world.task(task.as_str()));
    row.map_or_else(|| id(task), |(_, row)| task_label(&row.task))
}

/// The task that this event closes, and whether a fallback replaced its result.
fn task_of_event(event: &Event, world: &World) -> Option<(String, bool)> {
    task_of_span(event.span, world)
}

fn task_of_span(span: SpanId, world: &World) -> Option<(String, bool)> {
    let orchestrator = world.orchestrator()?;
    let SpanKind::Task { index } = world.spans.get(span)?.kind else { return None };
    let row = orchestrator.tasks.get(usize::try_from(index).ok()?)?;
    Some((task_label(&row.task), row.fallback.is_some()))
}

/// The line of an alert.
pub(super) fn alert(alert: &Alert, paint: &StreamStyle) -> String {
    let what = match alert.what {
        AlertKind::BreakerOpens(times) => {
            format!("breaker opened {} in a minute", format::count_noun(times.into(), "time"))
        }
        AlertKind::ErrorRate(rate) => {
            format!("{:.0} % errors in the last minute", rate * 100.0)
        }
        AlertKind::P95(took) => format!("p95 {}", format::duration_text(took)),
        AlertKind::TokensUsed(share) => {
            format!("{:.0} % of budget.max_total_tokens used", share * 100.0)
        }
        AlertKind::CostUsed(share) => {
            format!("{:.0} % of budget.max_cost_usd used", share * 100.0)
        }
    };
    let word =
        paint.role(StyleRole::Flag, &format!("{} {:<11}", paint.glyph(Glyph::Alert), "alert"));
    format!("  {word}  {}  {what}", alert.tool)
}

/// The text below the last line: the fallbacks used, the agents' turns, and the load on each tool.
pub(super) fn closing(outcome: &Outcome, world: &World) -> String {
    let mut out = String::new();
    for it in &outcome.replaced {
        let whose = match &it.task_id {
            Some(task) => format!("{} of {}", it.tool, id(task)),
            None => format!("{}, {}", it.tool, format::count_noun(it.times.unwrap_or(1), "time")),
        };
        let by = match it.by {
            FallbackKind::Cached { age_ms } => {
                let age = format::duration_text(Duration::from_millis(age_ms));
                format!("fallback: cached value, at most {age} old")
            }
            FallbackKind::Default => "fallback: default value".to_owned(),
            FallbackKind::Omitted => "omitted".to_owned(),
        };
        let _ = write!(out, "\n{whose}: {by}");
        if let Some(reason) = &it.reason {
            let _ = write!(out, " ({})", reason.phrase());
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    if let Some(team) = world.team() {
        let plan = &*team.plan;
        out.push_str(&super::team::turns(team, plan));
    }
    let is_agent = |name: &ToolName| {
        world.tools.rows().iter().any(|row| row.name() == name && row.head.is_agent())
    };
    let tools = || outcome.tools.iter().filter(|it| !is_agent(&it.tool));
    if tools().next().is_none() {
        return out;
    }
    let width = tools().map(|it| it.tool.as_str().len()).max().unwrap_or(0).max(4);
    let _ = writeln!(
        out,
        "\n{:<width$}  {:>6}  {:>8}  {:>6}  {:>8}  {:>7}  {:>7}  {:>7}",
        "tool", "calls", "requests", "each", "answered", "refused", "p50", "p95"
    );
    let took = |ms: Option<u64>| {
        ms.map_or_else(|| "-".to_owned(), |ms| format::duration_text(Duration::from_millis(ms)))
    };
    for it in tools() {
        let each = it.amplification.map_or_else(|| "-".to_owned(), |each| format!("{each:.2}"));
        let _ = writeln!(
            out,
            "{:<width$}  {:>6}  {:>8}  {:>6}  {:>8}  {:>7}  {:>7}  {:>7}",
            it.tool,
            it.calls,
            it.requests,
            each,
            it.answered,
            it.circuit_open + it.bulkhead_full,
            took(it.p50_ms),
            took(it.p95_ms),
        );
    }
    if tools().any(|it| it.p50_ms.is_none() || it.p95_ms.is_none()) {
        out.push_str(&format!("p50, p95: - means fewer than {MIN_SAMPLES} answered calls\n"));
    }
    out
}
