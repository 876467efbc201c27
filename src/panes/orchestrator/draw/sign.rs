//! The states of an orchestrator's rows and tasks.

use crate::event::world::{RunState, World};
use crate::narrate::glyph::Glyph;
use crate::narrate::style_role::StyleRole;
use crate::panes::orchestrator::waterfall::WaterfallRow;
use crate::pattern::orchestrator::projection::{Orchestrator, TaskRow, TaskState};
use crate::pattern::orchestrator::words::results::state_word;
use crate::ui::cx::DrawContext;
use crate::ui::sign::StateSign;
use crate::ui::theme::Theme;

/// The state of a row.
pub(crate) fn row_sign(
    cx: &DrawContext,
    world: &World,
    orchestrator: &Orchestrator,
    row: WaterfallRow,
) -> StateSign {
    let live = world.progress.is_live();
    let of = |glyph, word, role| StateSign { glyph, word, style: cx.theme.style(role) };
    let waiting = |live: bool| match live {
        true => of(Glyph::Waiting, "waiting", StyleRole::Waiting),
        false => of(Glyph::Off, "not reached", StyleRole::Off),
    };
    let going = |live: bool, word| match live {
        true => of(Glyph::Running, word, StyleRole::Running),
        false => of(Glyph::Failed, "stopped", StyleRole::Failed),
    };
    match row {
        WaterfallRow::Plan => match (&orchestrator.refused, orchestrator.plan_call) {
            (Some(_), _) => of(Glyph::Refused, "refused", StyleRole::Refused),
            _ if !orchestrator.tasks.is_empty() => of(Glyph::Done, "accepted", StyleRole::Done),
            (None, Some(_)) => going(live, "planning"),
            (None, None) => waiting(live),
        },
        WaterfallRow::Task(task) => match orchestrator.tasks.get(task) {
            Some(row) => task_sign(cx, world, row),
            None => waiting(live),
        },
        WaterfallRow::Join => match orchestrator.aggregate {
            Some(_) => of(Glyph::Done, "joined", StyleRole::Done),
            None => waiting(live),
        },
        WaterfallRow::Report => match (&world.progress.answer, orchestrator.finalize) {
            (Some(_), _) if !world.progress.answer_end.is_whole() => {
                of(Glyph::Alert, "cut", StyleRole::Retry)
            }
            (Some(_), _) => of(Glyph::Done, "composed", StyleRole::Done),
            (None, Some(_)) => going(live, "writing"),
            (None, None) => waiting(live),
        },
    }
}

/// The state of a task. After the run's end no task is waiting or running.
pub(crate) fn task_sign(cx: &DrawContext, world: &World, row: &TaskRow) -> StateSign {
    match (&world.progress.stage, row.state) {
        (RunState::Closed, TaskState::Waiting) => {
            StateSign { word: "not started", ..state_sign(cx.theme, TaskState::Cancelled) }
        }
        (RunState::Closed, TaskState::Running | TaskState::Retrying) => {
            state_sign(cx.theme, TaskState::Cancelled)
        }
        (_, state) => state_sign(cx.theme, state),
    }
}

/// The sign of a task's progress.
pub(crate) fn state_sign(theme: &Theme, state: TaskState) -> StateSign {
    let (glyph, role) = match state {
        TaskState::Waiting => (Glyph::Waiting, StyleRole::Waiting),
        TaskState::Running => (Glyph::Running, StyleRole::Running),
        TaskState::Retrying => (Glyph::Retry, StyleRole::Retry),
        TaskState::Done => (Glyph::Done, StyleRole::Done),
        TaskState::Degraded => (Glyph::Alert, StyleRole::Retry),
        TaskState::Failed => (Glyph::Failed, StyleRole::Failed),
        TaskState::Cancelled => (Glyph::Off, StyleRole::Off),
    };
    theme.sign(glyph, state_word(state), role)
}
