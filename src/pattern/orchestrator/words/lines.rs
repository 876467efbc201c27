//! Lines of headless text about an orchestrator: its plan, its tasks and their results.

use std::fmt::Write as _;

use super::results::{level_evidence, task_at};
use crate::base::name::TaskId;
use crate::base::visible::{REASON_CHARS, visible, visible_within};
use crate::event::kind::{FallbackKind, Purpose};
use crate::event::patterns::PatternFact;
use crate::event::world::{RunFold, SpanKind};
use crate::event::{Event, EventKind, SpanId};
use crate::narrate::event_line::EventLine;
use crate::narrate::format;
use crate::narrate::glyph::Glyph;
use crate::narrate::line_parts::{signed, with_model};
use crate::narrate::lines::described;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::{StyledLine, StyledPart};
use crate::pattern::orchestrator::facts::{OrchestratorFact, Task};
use crate::pattern::orchestrator::projection::{Orchestrator, TaskRow};
use crate::scenario::spec::script::ScriptStep;

/// Number of a plan's tasks that are named; the others are only counted.
const MAX_NAMED_TASKS: usize = 8;
/// Length limit of a failed attempt's error, in characters.
const ERROR_CHARS: usize = 200;

/// The lines of an event; `None` if another module may show it.
pub(super) fn lines(
    orchestrator: &Orchestrator,
    event: &Event,
    run: &RunFold,
) -> Option<Vec<StyledLine>> {
    let line = |glyph: Glyph, word: &'static str, role: StyleRole, who: &str| {
        let described: EventLine = described(orchestrator, event, run);
        signed(glyph, word, role).then(format!("  {}  {}", visible(who), visible(&described.text)))
    };
    let shown = match &event.kind {
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::PlanAccepted { tasks })) => {
            Some(
                StyledLine::default()
                    .then(with_model(plan(tasks), run.models.for_step(ScriptStep::Plan))),
            )
        }
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskDone { .. })) => {
            let row = task_of_span(orchestrator, event.span, run);
            let row = row.filter(|row| row.fallback.is_none());
            row.map(|row| line(Glyph::Done, "done", StyleRole::Done, &label(&row.task)))
        }
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskFailed { .. })) => {
            task_of_span(orchestrator, event.span, run).map(|row| {
                let who = label(&row.task);
                let line = line(Glyph::Failed, "failed", StyleRole::Failed, &who);
                match &row.error {
                    Some(text) => line.then(format!(": {}", visible_within(text, ERROR_CHARS))),
                    None => line,
                }
            })
        }
        // The task's own line reports it.
        EventKind::CallFailed { .. } if is_task_call(event.span, run) => None,
        // A task whose result is omitted also fails; that line reports it.
        EventKind::CallDegraded { by: FallbackKind::Omitted, .. } => None,
        EventKind::CallDegraded { .. } => {
            let call = run.spans.get(event.span)?;
            let row = task_of_span(orchestrator, call.parent, run)?;
            Some(line(Glyph::Alert, "degraded", StyleRole::Flag, &label(&row.task)))
        }
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::ResultsAggregated {
            aggregate,
            ..
        })) => {
            let level = orchestrator.plan.level.as_str();
            let value = aggregate.get(level).and_then(|level| level.as_str()).unwrap_or("none");
            let value = StyledPart::new(StyleRole::Strong, visible(value).to_string());
            let line = StyledLine::default().then(format!("{} ", visible(level))).with(value);
            Some(match level_evidence(orchestrator) {
                Some(why) => line.then(format!("  {}", visible(&why))),
                None => line,
            })
        }
        _ => return None,
    };
    Some(shown.into_iter().collect())
}

/// The line of a plan, with its first tasks.
fn plan(tasks: &[Task]) -> String {
    let names: Vec<String> = tasks.iter().take(MAX_NAMED_TASKS).map(label).collect();
    let mut line = format!("plan  {}", format::count_noun(tasks.len() as u64, "task"));
    let _ = write!(line, ": {}", names.join(", "));
    if let Some(more) = tasks.len().checked_sub(MAX_NAMED_TASKS + 1) {
        let _ = write!(line, " and {} more", more + 1);
    }
    line
}

/// A task's id and worker.
fn label(task: &Task) -> String {
    format!("{} {}", visible_id(&task.id), task.worker)
}

fn visible_id(task: &TaskId) -> String {
    visible_within(task.as_str(), REASON_CHARS)
}

/// A task's id and worker, looked up by id.
pub(super) fn label_of(orchestrator: &Orchestrator, task: &TaskId) -> String {
    let row = orchestrator.task(task.as_str());
    row.map_or_else(|| visible_id(task), |(_, row)| label(&row.task))
}

/// The task of this span, if it is the span of a task.
fn task_of_span<'w>(
    orchestrator: &'w Orchestrator,
    span: SpanId,
    run: &RunFold,
) -> Option<&'w TaskRow> {
    match run.spans.get(span)?.kind {
        SpanKind::Task { index } => task_at(orchestrator, index),
        _ => None,
    }
}

/// Whether the call executes a task.
fn is_task_call(span: SpanId, run: &RunFold) -> bool {
    let what = run.spans.get(span).map(|span| &span.kind);
    matches!(what, Some(SpanKind::Call(Purpose::Task { .. })))
}
