//! The lines of a run's latest events, for two readers that write the same ones: the output of a headless
//! run, and its store. The one that is ahead makes a line, the other copies it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::log::event::{Event, RunId, Seq};

/// Size of a piece in bytes from which it gets no more lines.
const PIECE_BYTES: usize = 64 << 10;

/// Most bytes that are kept, besides the last piece. A reader that is further behind makes its lines itself.
const MAX_BYTES: usize = 4 << 20;

/// Most empty pieces that are kept for further lines: to free and allocate their memory again is slower.
const MAX_EMPTY: usize = 8;

/// The lines of the latest events, if two readers share them.
#[derive(Default)]
pub(crate) struct SharedLines(OnceLock<Mutex<LinePieces>>);

/// Consecutive lines, in pieces.
#[derive(Default)]
struct LinePieces {
    kept: VecDeque<LinePiece>,
    empty: Vec<LinePiece>,
}

/// Consecutive lines.
#[derive(Default)]
struct LinePiece {
    /// Sequence number of the first event.
    first: u64,
    /// Where each line ends in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl LinePiece {
    fn next(&self) -> u64 {
        self.first + self.ends.len() as u64
    }

    fn line(&self, seq: u64) -> Option<&[u8]> {
        let nth = usize::try_from(seq.checked_sub(self.first)?).ok()?;
        let start = nth.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.bytes.get(start..*self.ends.get(nth)?)
    }
}

impl LinePieces {
    /// Appends the line of this event to `out`, if it is there. The other reader, which made it, does not
    /// need it again: pieces that were copied to their end are dropped.
    fn copy(&mut self, seq: u64, out: &mut Vec<u8>) -> bool {
        let after = self.kept.partition_point(|piece| piece.first <= seq);
        let Some(nth) = after.checked_sub(1) else { return false };
        let Some(piece) = self.kept.get(nth) else { return false };
        let Some(line) = piece.line(seq) else { return false };
        out.extend_from_slice(line);
        let is_last = seq + 1 == piece.next() && piece.bytes.len() >= PIECE_BYTES;
        self.drop_first(nth + usize::from(is_last));
        true
    }

    fn drop_first(&mut self, count: usize) {
        for mut piece in self.kept.drain(..count) {
            // A long line has made some of them larger.
            if self.empty.len() < MAX_EMPTY && piece.bytes.capacity() <= 2 * PIECE_BYTES {
                piece.bytes.clear();
                piece.ends.clear();
                self.empty.push(piece);
            }
        }
    }

    /// Adds the line of this event, if it comes next. Lines that it does not continue are of no use any
    /// more.
    fn add(&mut self, seq: u64, line: &[u8]) {
        match self.kept.back().map(LinePiece::next) {
            Some(next) if seq < next => return,
            Some(next) if seq > next => self.drop_first(self.kept.len()),
            _ => {}
        }
        if self.kept.back().is_none_or(|last| last.bytes.len() >= PIECE_BYTES) {
            let mut kept: usize = self.kept.iter().map(|piece| piece.bytes.len()).sum();
            while kept > MAX_BYTES
                && let Some(oldest) = self.kept.front()
            {
                kept -= oldest.bytes.len();
                self.drop_first(1);
            }
            let piece = self.empty.pop().unwrap_or_else(|| LinePiece {
                bytes: Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 16),
                ..LinePiece::default()
            });
            self.kept.push_back(LinePiece { first: seq, ..piece });
        }
        if let Some(last) = self.kept.back_mut() {
            last.bytes.extend_from_slice(line);
            last.ends.push(last.bytes.len());
        }
    }
}

impl SharedLines {
    /// Keeps the lines for another reader from now on.
    pub(crate) fn share(&self) {
        self.0.get_or_init(Mutex::default);
    }

    /// Appends the line of an event, as [`Event::append_line`] does.
    pub(crate) fn append(
        &self,
        event: &Event,
        run: &RunId,
        out: &mut Vec<u8>,
    ) -> Result<(), serde_json::Error> {
        let Seq(seq) = event.seq;
        let Some(mut pieces) = self.pieces() else { return event.append_line(Some(run), out) };
        if pieces.copy(seq, out) {
            return Ok(());
        }
        // The other reader does not wait while the line is made.
        drop(pieces);
        let start = out.len();
        event.append_line(Some(run), out)?;
        if let Some(mut pieces) = self.pieces() {
            pieces.add(seq, out.get(start..).unwrap_or_default());
        }
        Ok(())
    }

    /// Whether lines are shared and none of the two readers has made this one yet.
    pub(crate) fn lacks(&self, Seq(seq): Seq) -> bool {
        self.pieces().is_some_and(|pieces| pieces.kept.back().is_none_or(|last| last.next() <= seq))
    }

    /// What is shared; `None` if nothing is.
    fn pieces(&self) -> Option<MutexGuard<'_, LinePieces>> {
        Some(self.0.get()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::log::event::{Elapsed, EventKind, SpanId};

    fn event(seq: u64) -> Event {
        // Some are larger than a piece.
        let length = if seq % 100 == 7 { PIECE_BYTES + 1 } else { (seq as usize * 7) % 3_000 };
        let text = format!("{seq} {}", "x".repeat(length));
        Event {
            seq: Seq(seq),
            at: Elapsed(seq),
            span: SpanId::RUN,
            kind: EventKind::Warning { text },
        }
    }

    /// All that is kept, and a last piece that one long line has made larger.
    const MOST: usize = MAX_BYTES + 3 * PIECE_BYTES;

    fn kept_bytes(lines: &SharedLines) -> usize {
        let pieces = lines.pieces().expect("shared");
        pieces.kept.iter().map(|piece| piece.bytes.len()).sum()
    }

    fn line(event: &Event, run: &RunId) -> Vec<u8> {
        let mut line = Vec::new();
        event.append_line(Some(run), &mut line).expect("a line");
        line
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Two readers in any order, each of which may leave out events.
        #[test]
        fn every_line_is_that_of_its_event(
            steps in prop::collection::vec((0..2_usize, 1..40_u64, prop::bool::weighted(0.05)), 1..40)
        ) {
            let (lines, run) = (SharedLines::default(), RunId::new("r-1"));
            lines.share();
            let mut next = [0_u64; 2];
            for (reader, count, leaves_out) in steps {
                if leaves_out {
                    next[reader] += count;
                    continue;
                }
                for _ in 0..count {
                    let event = event(next[reader]);
                    next[reader] += 1;
                    let mut out = b"before".to_vec();
                    lines.append(&event, &run, &mut out).expect("a line");
                    prop_assert_eq!(&out[6..], line(&event, &run));
                    prop_assert!(kept_bytes(&lines) <= MOST);
                }
            }
        }
    }

    #[test]
    fn a_line_is_made_once_and_dropped_when_both_have_it() {
        let (lines, run) = (SharedLines::default(), RunId::new("r-1"));
        lines.share();
        let pieces = || {
            let shared = lines.pieces().expect("shared");
            shared.kept.iter().map(|piece| (piece.first, piece.next())).collect::<Vec<_>>()
        };
        let made = |seq| lines.append(&event(seq), &run, &mut Vec::new()).expect("a line");
        (0..200).for_each(made);
        let kept = pieces();
        assert!(kept[0].0 == 0 && kept.len() > 3, "{kept:?}");
        // A copy is what is there, whatever the event says.
        let other = Event { seq: Seq(3), ..event(4) };
        let mut copied = Vec::new();
        lines.append(&other, &run, &mut copied).expect("a line");
        assert_eq!(copied, line(&event(3), &run));
        (4..200).for_each(made);
        assert_eq!(pieces().iter().map(|(_, next)| *next).collect::<Vec<_>>(), [200]);
    }

    #[test]
    fn the_lines_of_a_reader_that_is_far_ahead_are_bounded() {
        let (lines, run) = (SharedLines::default(), RunId::new("r-1"));
        lines.share();
        for seq in 0..6_000 {
            lines.append(&event(seq), &run, &mut Vec::new()).expect("a line");
        }
        let kept = kept_bytes(&lines);
        assert!((MAX_BYTES / 2..=MOST).contains(&kept), "{kept}");
    }
}
