//! The rows of an orchestrator's waterfall and its time axis: pure geometry, so that a click finds
//! its row.

use std::time::Duration;

use crate::app::run::data::RunData;
use crate::event::kind::FailureClass;
use crate::event::world::{SpanKind, SpanState};
use crate::event::{Elapsed, SpanId};
use crate::pattern::orchestrator::projection::AttemptEnd;

/// Rows of the pane above the waterfall: the axis.
pub const HEAD: u16 = 1;
/// Rows besides tasks: the plan above them, the join and the report below.
const EXTRA_ROWS: usize = 3;
/// Possible ends of the axis of a run that is running, as multiples of a power of ten milliseconds:
/// with so few of them, bars keep their place for long.
const LIVE_ENDS: [u64; 3] = [2, 5, 10];
/// The end of the axis of a run that has just begun, in microseconds.
const FIRST_END: u64 = 1_000_000;
/// Possible intervals between two marks of the axis, in milliseconds.
const STEPS: [u64; 20] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000,
    600_000, 1_200_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 43_200_000,
];
/// Fewest columns between two marks of the axis.
const MIN_MARK_COLUMNS: u64 = 9;

/// A row of the waterfall. A run accepts one plan, so a task keeps its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaterfallRow {
    /// The model call for the plan.
    Plan,
    /// A task, by its index in the plan, from 0.
    Task(usize),
    /// The join: the results combined.
    Join,
    /// The model call for the report.
    Report,
}

impl WaterfallRow {
    /// The row with this index, from 0, in a waterfall of `tasks` tasks.
    pub fn from_index(place: usize, tasks: usize) -> Option<WaterfallRow> {
        match place {
            0 => Some(Self::Plan),
            _ if place <= tasks => Some(Self::Task(place - 1)),
            _ if place == tasks + 1 => Some(Self::Join),
            _ if place == tasks + 2 => Some(Self::Report),
            _ => None,
        }
    }

    /// The index of the row, from 0.
    pub fn index(self, tasks: usize) -> usize {
        match self {
            Self::Plan => 0,
            Self::Task(task) => task + 1,
            Self::Join => tasks + 1,
            Self::Report => tasks + 2,
        }
    }

    /// Number of rows for this many tasks.
    pub fn count(tasks: usize) -> usize {
        tasks + EXTRA_ROWS
    }
}

/// An attempt as a bar in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// When it started.
    pub opened: Elapsed,
    /// When it ended; `None` while it runs.
    pub closed: Option<Elapsed>,
    /// How it ended.
    pub end: AttemptEnd,
}

/// The time axis of a waterfall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Microseconds from the first column to the end of the last.
    pub end: u64,
    /// Microseconds between two marks.
    pub step: u64,
}

impl Axis {
    /// The axis of a run up to `now`, in its own time, on this many columns. That of a run that is
    /// still running ends later, so that its bars keep their place for long.
    pub fn covering(now: Duration, columns: u16, is_live: bool) -> Axis {
        let columns = u64::from(columns.max(1));
        let micros = u64::try_from(now.as_micros()).unwrap_or(u64::MAX).max(1);
        let micros = if is_live { live_end(micros) } else { micros };
        let step = STEPS
            .into_iter()
            .map(|ms| ms * 1_000)
            .find(|step| {
                let end = micros.div_ceil(*step) * step;
                u128::from(*step) * u128::from(columns)
                    >= u128::from(end) * u128::from(MIN_MARK_COLUMNS)
            })
            .unwrap_or(micros);
        Axis { end: micros.div_ceil(step).saturating_mul(step).max(1), step }
    }

    /// The column of a moment of the run's own time.
    pub fn column(&self, at: Duration, columns: u16) -> u16 {
        let micros = at.as_micros().min(u128::from(self.end));
        let nth = micros * u128::from(columns) / u128::from(self.end);
        u16::try_from(nth).unwrap_or(u16::MAX).min(columns.saturating_sub(1))
    }

    /// The moments with a mark.
    pub fn marks(&self) -> impl Iterator<Item = Duration> {
        let (end, step) = (self.end, self.step.max(1));
        (0..end / step).map(move |nth| Duration::from_micros(nth * step))
    }
}

/// The end of the axis of a running run, in microseconds.
fn live_end(micros: u64) -> u64 {
    let mut ten = FIRST_END / 10;
    loop {
        let ends = LIVE_ENDS.into_iter().map(|times| ten.saturating_mul(times));
        if let Some(end) = ends.filter(|end| *end >= FIRST_END).find(|end| *end >= micros) {
            return end;
        }
        ten = ten.saturating_mul(10);
    }
}

/// The attempts of a row's call, in order.
pub fn bars(run: &RunData, row: WaterfallRow) -> Vec<Bar> {
    let world = run.shown();
    let Some(plan) = world.orchestrator() else { return Vec::new() };
    let of_call = |call: Option<SpanId>| {
        let attempts = call.map(|call| world.spans.children(call)).into_iter().flatten();
        let bar = |span: &crate::event::world::Span| Bar {
            opened: span.opened,
            closed: span.closed,
            end: match span.state {
                SpanState::Open => AttemptEnd::InFlight,
                SpanState::Done => AttemptEnd::Answered,
                SpanState::Failed(class) => AttemptEnd::Failed(class.unwrap_or(FailureClass::Tool)),
            },
        };
        attempts.filter(|span| matches!(span.kind, SpanKind::Attempt(_))).map(bar).collect()
    };
    match row {
        WaterfallRow::Plan => of_call(plan.plan_call),
        WaterfallRow::Report => of_call(plan.finalize),
        WaterfallRow::Join => Vec::new(),
        WaterfallRow::Task(task) => {
            let bars = plan.tasks.get(task).map(|row| row.attempts.iter());
            let bar = |it: &crate::pattern::orchestrator::projection::AttemptBar| Bar {
                opened: it.opened,
                closed: it.closed,
                end: it.end,
            };
            bars.into_iter().flatten().map(bar).collect()
        }
    }
}

/// How long a row has taken up to `now`, without pauses; `None` before it begins.
pub fn row_took(run: &RunData, row: WaterfallRow, now: Elapsed) -> Option<Duration> {
    let world = run.shown();
    let plan = world.orchestrator()?;
    let of_call = |call: Option<SpanId>| {
        let span = world.spans.get(call?)?;
        Some(world.progress.active_between(span.opened, span.closed.unwrap_or(now)))
    };
    match row {
        WaterfallRow::Plan => of_call(plan.plan_call),
        WaterfallRow::Report => of_call(plan.finalize),
        WaterfallRow::Join => None,
        WaterfallRow::Task(task) => {
            let row = plan.tasks.get(task)?;
            Some(world.progress.active_between(row.opened?, row.closed.unwrap_or(now)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_one_row() {
        for tasks in [0, 1, 7] {
            for place in 0..WaterfallRow::count(tasks) {
                assert_eq!(
                    WaterfallRow::from_index(place, tasks).map(|row| row.index(tasks)),
                    Some(place)
                );
            }
            assert_eq!(WaterfallRow::from_index(WaterfallRow::count(tasks), tasks), None);
        }
    }

    #[test]
    fn the_axis_grows_by_whole_steps_and_holds_every_moment() {
        for (columns, is_live) in
            [1, 10, 30, 48, 120].into_iter().flat_map(|n| [(n, true), (n, false)])
        {
            let mut before = 0;
            for ms in [1, 40, 260, 999, 1_000, 4_999, 12_345, 61_000, 900_000, 90_000_000] {
                let now = Duration::from_millis(ms);
                let axis = Axis::covering(now, columns, is_live);
                assert!(
                    u128::from(axis.end) >= now.as_micros() && axis.end.is_multiple_of(axis.step)
                );
                assert!(axis.end >= before, "it never shrinks");
                before = axis.end;
                assert!(axis.column(now, columns) < columns);
                assert!(axis.marks().count() as u64 <= u64::from(columns) / MIN_MARK_COLUMNS + 1);
            }
        }
    }

    #[test]
    fn bars_of_a_running_run_keep_their_place_for_long() {
        // A run of 90 s, looked at ten times a second.
        let looks = (1..900).map(|nth| Duration::from_millis(nth * 100));
        let mut ends: Vec<u64> = looks.map(|now| Axis::covering(now, 60, true).end).collect();
        ends.dedup();
        let seconds: Vec<u64> = ends.into_iter().map(|end| end / 1_000_000).collect();
        assert_eq!(seconds, [1, 2, 5, 10, 20, 50, 100]);
    }
}
