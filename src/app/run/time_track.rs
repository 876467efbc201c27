//! The time axis of a run's page: which column shows which moment. The scrubber, its mouse and the
//! graphs of the tools have the same one. It is an axis of run time: a pause takes only the columns of
//! its label, and so does an idle time that is longer than all the rest.

use std::time::Duration;

use ratatui::layout::Rect;

use super::data::RunData;
use crate::event::Elapsed;
use crate::event::world::World;
use crate::narrate::format;

/// Shortest pause with a label.
const LEAST_LABELLED: Duration = Duration::from_secs(1);
/// Columns of a label besides its text: a dash on either side.
const LABEL_DASHES: u16 = 2;

/// The time range of a track of columns.
#[derive(Clone, Debug)]
pub(crate) struct TimeTrack {
    /// The columns.
    pub track: Rect,
    /// The start of the first column.
    pub from: Elapsed,
    /// The end of the last column.
    pub end: Elapsed,
    /// Contiguous, in order; never empty.
    parts: Vec<TrackPart>,
}

/// A part of the time, and the columns that it takes.
#[derive(Clone, Debug)]
struct TrackPart {
    from: Elapsed,
    until: Elapsed,
    /// Counted from the start of the track.
    first_column: u16,
    end_column: u16,
    is_folded: bool,
}

/// A part of the time that is folded: it takes only the columns of its label.
struct FoldedTime {
    from: Elapsed,
    until: Elapsed,
    width: u16,
}

impl TimeTrack {
    /// The time of a run up to `head` in these columns.
    pub(crate) fn new(data: &RunData, head: Elapsed, track: Rect) -> Self {
        Self::of_world(data.world(), data.scrubber_start(), head, track, &[])
    }

    /// The same, with these times folded too: nothing that matters happened in them.
    pub(crate) fn with_quiet(
        data: &RunData,
        head: Elapsed,
        track: Rect,
        quiet: &[(Elapsed, Elapsed)],
    ) -> Self {
        Self::of_world(data.world(), data.scrubber_start(), head, track, quiet)
    }

    fn of_world(
        world: &World,
        from: Elapsed,
        head: Elapsed,
        track: Rect,
        quiet: &[(Elapsed, Elapsed)],
    ) -> Self {
        let end = head.max(from);
        let folds = folds(world, from, end, track.width / 3, quiet);
        let in_labels: u16 = folds.iter().map(|fold| fold.width).sum();
        let folded: u64 = folds.iter().map(|fold| fold.until.0 - fold.from.0).sum();
        let plain = track.width - in_labels;
        let total = u128::from((end.0 - from.0).saturating_sub(folded).max(1));
        let mut parts = Vec::with_capacity(folds.len() * 2 + 1);
        let (mut at, mut shown, mut labels) = (from, 0u64, 0u16);
        // The last of the columns is never beyond the track: `shown` does not exceed `total`.
        let column = |shown: u64, labels: u16| {
            let nth = u128::from(shown) * u128::from(plain) / total;
            labels + u16::try_from(nth).unwrap_or(plain).min(plain)
        };
        for fold in folds.into_iter().chain([FoldedTime { from: end, until: end, width: 0 }]) {
            let first_column = column(shown, labels);
            shown += fold.from.0 - at.0;
            let next = column(shown, labels);
            labels += fold.width;
            let (start, middle) = ((at, first_column), (fold.from, next));
            let last = (fold.until, next + fold.width);
            for ((from, first_column), (until, end_column), is_folded) in
                [(start, middle, false), (middle, last, true)]
            {
                if from < until || parts.is_empty() {
                    parts.push(TrackPart { from, until, first_column, end_column, is_folded });
                }
            }
            at = fold.until;
        }
        Self { track, from, end, parts }
    }

    /// The same time in two columns for each one, the first of them 0.
    pub(crate) fn halves(&self) -> Self {
        let mut halves = self.clone();
        halves.track = Rect { x: 0, width: self.track.width.saturating_mul(2), ..self.track };
        for part in &mut halves.parts {
            part.first_column = part.first_column.saturating_mul(2);
            part.end_column = part.end_column.saturating_mul(2);
        }
        halves
    }

    /// The column of a moment.
    pub(crate) fn column(&self, at: Elapsed) -> u16 {
        let at = at.clamp(self.from, self.end);
        let nth = self.parts.partition_point(|part| part.from <= at).saturating_sub(1);
        let column = self.parts.get(nth).map_or(0, |part| {
            let columns = part.end_column - part.first_column;
            let into = u128::from(at.0 - part.from.0) * u128::from(columns);
            let into = into / u128::from((part.until.0 - part.from.0).max(1));
            part.first_column + u16::try_from(into).unwrap_or(columns).min(columns)
        });
        self.track.x + column.min(self.track.width.saturating_sub(1))
    }

    /// The end of the column with this index.
    pub(crate) fn column_end(&self, nth: u16) -> Elapsed {
        if nth.saturating_add(1) >= self.track.width {
            return self.end;
        }
        let place = self.parts.partition_point(|part| part.end_column <= nth);
        self.parts.get(place).map_or(self.end, |part| {
            let columns = u128::from((part.end_column - part.first_column).max(1));
            let into = u128::from(part.until.0 - part.from.0);
            let into = into * u128::from(nth + 1 - part.first_column) / columns;
            Elapsed(part.from.0 + u64::try_from(into).unwrap_or(0))
        })
    }

    /// The columns of each label, counted from the start of the track, and the folded time.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (std::ops::Range<u16>, Duration)> {
        let labelled = |part: &&TrackPart| part.is_folded && part.end_column > part.first_column;
        self.parts
            .iter()
            .filter(labelled)
            .map(|part| (part.first_column..part.end_column, part.until.since(part.from)))
    }
}

/// The folded times between two moments, in order. Labels take at most `room` columns; the longest
/// times get theirs first.
fn folds(
    world: &World,
    from: Elapsed,
    end: Elapsed,
    room: u16,
    quiet: &[(Elapsed, Elapsed)],
) -> Vec<FoldedTime> {
    let progress = &world.progress;
    let pauses = progress.pauses().iter();
    // The present pause has no label: it is still growing, and the header shows it.
    let open =
        progress.stopped_since().map(|since| FoldedTime { from: since, until: end, width: 0 });
    let idle = world.over_time.idle.folded(progress.active_between(from, end), from);
    let mut folds: Vec<FoldedTime> = pauses
        .chain(idle)
        .chain(quiet.iter().copied())
        .map(|(from, until)| FoldedTime { from, until, width: 0 })
        .chain(open)
        .map(|it| FoldedTime { from: it.from.max(from), until: it.until.min(end), ..it })
        .filter(|it| it.from < it.until)
        .collect();
    folds.sort_by_key(|it| it.from);
    // The time between two processes of a run is idle and a pause.
    let mut before = from;
    folds.retain_mut(|it| {
        it.from = it.from.max(before);
        before = before.max(it.until);
        it.from < it.until
    });
    let is_open = |it: &FoldedTime| progress.stopped_since().is_some() && it.until == end;
    let mut by_length: Vec<usize> = (0..folds.len()).filter(|nth| !is_open(&folds[*nth])).collect();
    by_length.sort_by_key(|nth| std::cmp::Reverse(folds[*nth].until.since(folds[*nth].from)));
    let mut left = room;
    for nth in by_length {
        let fold = &mut folds[nth];
        let length = fold.until.since(fold.from);
        let text = format::duration_text(length).len();
        let width = u16::try_from(text).unwrap_or(u16::MAX).saturating_add(LABEL_DASHES);
        if length < LEAST_LABELLED || width > left {
            break;
        }
        (fold.width, left) = (width, left - width);
    }
    folds
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::kind::Initiator;
    use crate::event::{Boundary, Event, EventKind, Seq, SpanId, World};
    use crate::support::facts;

    /// A world of events at these times, in seconds, with pauses between two times each.
    fn world(events: &[u64], pauses: &[(u64, u64)]) -> World {
        let second = |at: u64| Elapsed(at * 1_000_000);
        let mut timed: Vec<(u64, EventKind)> = Vec::new();
        let warning = || EventKind::Warning { text: String::new() };
        timed.extend(events.iter().map(|at| (*at, warning())));
        for (from, until) in pauses {
            timed.push((*from, EventKind::Paused { at: vec![Boundary::Finalize.id()] }));
            let paused_ms = (until - from) * 1_000;
            timed.push((*until, EventKind::Resumed { by: Initiator::You, paused_ms }));
        }
        timed.sort_by_key(|(at, _)| *at);
        let mut world = World::new();
        let head = facts::waiting().log[0].kind.clone();
        timed.insert(0, (0, head));
        for (seq, (at, kind)) in (0..).zip(timed) {
            world.apply(&Event { seq: Seq(seq), at: second(at), span: SpanId::RUN, kind });
        }
        world
    }

    fn track(world: &World, width: u16) -> TimeTrack {
        let head = world.progress.at;
        TimeTrack::of_world(world, Elapsed(0), head, Rect::new(3, 0, width, 1), &[])
    }

    fn labels(track: &TimeTrack) -> Vec<(u16, u16, u64)> {
        track.labels().map(|(at, time)| (at.start, at.end, time.as_secs())).collect()
    }

    #[test]
    fn a_pause_takes_only_the_columns_of_its_label() {
        // Ten seconds of work and a pause of 111 s after the first four.
        let world = world(&[0, 1, 2, 3, 4, 115, 116, 119, 121], &[(4, 115)]);
        let track = track(&world, 107);
        // `-1m51s-` has seven columns; the hundred others are ten to the second.
        assert_eq!(labels(&track), [(40, 47, 111)]);
        assert_eq!(track.column(Elapsed(2_000_000)), 3 + 20);
        assert_eq!(track.column(Elapsed(116_000_000)), 3 + 57);
        assert_eq!(track.column_end(19), Elapsed(2_000_000));
        assert_eq!(track.column_end(106), Elapsed(121_000_000));
    }

    #[test]
    fn idle_times_are_folded_where_they_are_longer_than_all_the_rest() {
        // One wait of 4 min in a run of 5.
        let one = world(&[0, 20, 40, 280, 290, 300], &[]);
        assert_eq!(labels(&track(&one, 100)).len(), 1);
        // Three calls of 60 s: that is what the run is made of.
        let calls = world(&[0, 60, 120, 180], &[]);
        assert_eq!(labels(&track(&calls, 100)), []);
        // Less than half a minute is looked at.
        let short = world(&[0, 1, 29, 30], &[]);
        assert_eq!(labels(&track(&short, 100)), []);
    }

    #[test]
    fn a_time_that_is_idle_and_a_pause_is_folded_once() {
        // The process died at 10 s, and the run was continued 200 s later.
        let mut world = world(&[0, 5, 10], &[]);
        let (seq, at, span) = (Seq(9), Elapsed(210_000_000), SpanId::RUN);
        let kind = EventKind::Resumed { by: Initiator::You, paused_ms: 200_000 };
        world.apply(&Event { seq, at, span, kind });
        let track = track(&world, 100);
        assert_eq!(labels(&track).len(), 1);
        assert_eq!(track.column(Elapsed(5_000_000)), 3 + 46);
    }

    #[test]
    fn a_run_that_is_paused_has_no_label_for_the_present_pause() {
        let mut world = world(&[0, 5, 10], &[]);
        let at = vec![Boundary::Finalize.id()];
        let (seq, span) = (Seq(9), SpanId::RUN);
        let paused = EventKind::Paused { at };
        world.apply(&Event { seq, at: Elapsed(10_000_000), span, kind: paused });
        let head = Elapsed(500_000_000);
        let track = TimeTrack::of_world(&world, Elapsed(0), head, Rect::new(0, 0, 100, 1), &[]);
        assert_eq!(labels(&track), []);
        assert_eq!(track.column(Elapsed(5_000_000)), 50);
    }

    proptest! {
        #[test]
        fn columns_and_moments_are_in_the_same_order(
            events in prop::collection::vec(0u64..2_000, 1..40),
            cuts in prop::collection::btree_set(0u64..2_000, 0..20),
            width in 1u16..200,
        ) {
            let cuts: Vec<u64> = cuts.into_iter().collect();
            let pauses: Vec<(u64, u64)> = cuts.chunks_exact(2).map(|it| (it[0], it[1])).collect();
            let world = world(&events, &pauses);
            let track = track(&world, width);
            let ends: Vec<Elapsed> = (0..width).map(|nth| track.column_end(nth)).collect();
            prop_assert!(ends.is_sorted(), "{ends:?}");
            prop_assert_eq!(ends.last(), Some(&track.end));
            let columns: Vec<u16> =
                (0..=track.end.0 / 500_000).map(|at| track.column(Elapsed(at * 500_000))).collect();
            prop_assert!(columns.is_sorted(), "{columns:?}");
            prop_assert!(columns.iter().all(|column| (3..3 + width).contains(column)));
            let halves = track.halves();
            for (nth, end) in (0..).zip(&ends) {
                // A moment before the end of a column is in that column or before it.
                let before = Elapsed(end.0.saturating_sub(1));
                prop_assert!(track.column(before) <= 3 + nth, "{nth} {end:?} {track:?}");
                prop_assert_eq!(halves.column_end(nth * 2 + 1), *end);
            }
            let labels = labels(&track);
            prop_assert!(labels.windows(2).all(|two| two[0].1 <= two[1].0), "{labels:?}");
            let in_labels: u16 = labels.iter().map(|(from, end, _)| end - from).sum();
            prop_assert!(in_labels <= width / 3);
        }
    }

    #[test]
    fn quiet_times_take_only_their_label() {
        let world = world(&[0, 19, 30, 40, 50, 60, 70, 80, 85], &[]);
        let second = |at: u64| Elapsed(at * 1_000_000);
        let quiet = [(second(20), second(84))];
        let place = Rect::new(0, 0, 60, 1);
        let track = TimeTrack::of_world(&world, Elapsed(0), second(85), place, &quiet);
        let labels: Vec<_> = track.labels().collect();
        assert_eq!(labels.len(), 1, "{labels:?}");
        assert_eq!(labels[0].1, Duration::from_secs(64));
        assert!(track.column(second(19)) > 40, "what mattered has the columns");
    }
}
