//! Every glyph with its ASCII twin. A glyph has no colour and no meaning of its own:
//! a theme assigns glyphs to states.

/// A glyph. Each is one column wide in both sets, except those that [`Glyphs::symbol`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Glyph {
    /// Finished successfully.
    Done,
    Running,
    /// Waiting for its turn.
    Waiting,
    /// Paused at a boundary.
    Paused,
    /// A retry follows.
    Retry,
    /// Failed, with no more retries.
    Failed,
    /// Refused by a policy, a limit or an open breaker.
    Refused,
    /// Needs the operator.
    NeedsYou,
    /// Switched off.
    Off,
    /// Stance `go`.
    Go,
    /// Stance `caution`.
    Caution,
    /// Stance `block`.
    Block,
    /// Changed since the last round.
    Changed,
    /// Depends on a flag.
    Flag,
    /// Nothing yet.
    NotYet,
    /// A conflict or a warning.
    Alert,
    /// A bar's full cell.
    BarFull,
    /// A bar's empty cell.
    BarEmpty,
    /// The finished part of a track.
    TrackFull,
    /// The tip of the finished part.
    TrackTip,
    /// The remaining part of a track.
    TrackEmpty,
    /// An attempt on a time axis.
    Segment,
    /// A slot in use.
    SlotFull,
    /// A free slot.
    SlotEmpty,
    /// Answered slowly.
    Slow,
    /// A half-open breaker.
    HalfOpen,
    /// The reader's position in time.
    Playhead,
    /// The end of text that is still streaming, or of text that is typed.
    Cursor,
    /// The selected row.
    Selected,
    /// Text was left out.
    Ellipsis,
    /// Before an estimated amount.
    Estimate,
    /// An arrow to the right: control went there.
    Arrow,
    /// An arrow to the left: control went back.
    ArrowBack,
    /// A call that returns control to the caller.
    Consults,
    /// The agent in control.
    Holder,
    /// A nested call.
    Within,
    /// Nested calls are folded away.
    Folded,
    /// Nested calls are listed below.
    Unfolded,
    /// More above.
    Up,
    /// More below.
    Down,
    Left,
    Right,
    /// Separates two parts of a line.
    Dot,
    Breakpoint,
    /// The line of a waiting time.
    Wait,
    /// Horizontal line.
    Horizontal,
    /// Vertical line.
    Vertical,
    /// Upper left corner.
    TopLeft,
    /// Upper right corner.
    TopRight,
    /// Lower left corner.
    BottomLeft,
    /// Lower right corner.
    BottomRight,
    /// Upper left corner of the round table.
    RoundTopLeft,
    /// Upper right corner of the round table.
    RoundTopRight,
    /// Lower left corner of the round table.
    RoundBottomLeft,
    /// Lower right corner of the round table.
    RoundBottomRight,
    /// Junction with three lines: all but the left one.
    TeeRight,
    /// Junction with three lines: all but the right one.
    TeeLeft,
    /// Junction with three lines: all but the upper one.
    TeeDown,
    /// Junction with three lines: all but the lower one.
    TeeUp,
    /// Junction with four lines.
    Cross,
    /// The lane of an agent in a diagram.
    Lane,
    /// The lane of the agent in control.
    LaneInControl,
    /// When a running attempt times out.
    Timeout,
    /// The first turn of an actor in a fork.
    Fork,
    /// A turn that began after several others had ended: a join.
    Join,
    /// A turn to which another agent handed over.
    HandedOver,
    /// A turn that was started by a tool of another agent.
    Called,
}

impl Glyph {
    /// Every glyph.
    #[cfg(test)]
    pub const ALL: [Glyph; 67] = [
        Self::Done,
        Self::Running,
        Self::Waiting,
        Self::Paused,
        Self::Retry,
        Self::Failed,
        Self::Refused,
        Self::NeedsYou,
        Self::Off,
        Self::Go,
        Self::Caution,
        Self::Block,
        Self::Changed,
        Self::Flag,
        Self::NotYet,
        Self::Alert,
        Self::BarFull,
        Self::BarEmpty,
        Self::TrackFull,
        Self::TrackTip,
        Self::TrackEmpty,
        Self::Segment,
        Self::SlotFull,
        Self::SlotEmpty,
        Self::Slow,
        Self::HalfOpen,
        Self::Playhead,
        Self::Cursor,
        Self::Selected,
        Self::Ellipsis,
        Self::Estimate,
        Self::Arrow,
        Self::ArrowBack,
        Self::Consults,
        Self::Holder,
        Self::Within,
        Self::Folded,
        Self::Unfolded,
        Self::Up,
        Self::Down,
        Self::Left,
        Self::Right,
        Self::Dot,
        Self::Breakpoint,
        Self::Wait,
        Self::Horizontal,
        Self::Vertical,
        Self::TopLeft,
        Self::TopRight,
        Self::BottomLeft,
        Self::BottomRight,
        Self::RoundTopLeft,
        Self::RoundTopRight,
        Self::RoundBottomLeft,
        Self::RoundBottomRight,
        Self::TeeRight,
        Self::TeeLeft,
        Self::TeeDown,
        Self::TeeUp,
        Self::Cross,
        Self::Lane,
        Self::LaneInControl,
        Self::Timeout,
        Self::Fork,
        Self::Join,
        Self::HandedOver,
        Self::Called,
    ];

    /// The glyph and its ASCII twin.
    fn pair(self) -> (&'static str, &'static str) {
        match self {
            Self::Done => ("✓", "+"),
            Self::Running => ("●", "*"),
            Self::Waiting => ("○", "o"),
            Self::Paused => ("‖", "="),
            Self::Retry => ("↻", "@"),
            Self::Failed => ("✗", "x"),
            Self::Refused => ("⊘", "/"),
            Self::NeedsYou => ("◆", "?"),
            Self::Off => ("–", "-"),
            Self::Go => ("▲", "^"),
            Self::Caution => ("◇", "~"),
            Self::Block => ("▼", "v"),
            // Not `%`: it follows a number.
            Self::Changed => ("Δ", "c"),
            Self::Flag => ("⚑", "P"),
            Self::NotYet => ("·", "."),
            Self::Alert => ("!", "!"),
            Self::BarFull => ("▰", "#"),
            Self::BarEmpty => ("▱", "."),
            Self::TrackFull => ("━", "="),
            Self::TrackTip => ("╸", ">"),
            Self::TrackEmpty => ("╌", "."),
            Self::Segment => ("▇", "="),
            Self::SlotFull => ("■", "#"),
            Self::SlotEmpty => ("□", "."),
            Self::Slow => ("s", "s"),
            Self::HalfOpen => ("◐", "h"),
            Self::Playhead => ("┃", "|"),
            Self::Cursor => ("▌", "_"),
            Self::Selected => (">", ">"),
            Self::Ellipsis => ("…", ".."),
            Self::Estimate => ("≈", "~"),
            Self::Arrow => ("→", "->"),
            Self::ArrowBack => ("←", "<-"),
            Self::Consults => ("⇄", "<>"),
            Self::Holder => ("◂", "<"),
            Self::Within => ("↳", ">"),
            Self::Folded => ("▸", ")"),
            Self::Unfolded => ("▾", "v"),
            Self::Up => ("↑", "^"),
            Self::Down => ("↓", "v"),
            Self::Left => ("‹", "<"),
            Self::Right => ("›", ">"),
            Self::Dot => ("·", "."),
            Self::Breakpoint => ("◉", "b"),
            Self::Wait => ("─", "-"),
            Self::Horizontal => ("─", "-"),
            Self::Vertical => ("│", "|"),
            Self::TopLeft => ("┌", "+"),
            Self::TopRight => ("┐", "+"),
            Self::BottomLeft => ("└", "+"),
            Self::BottomRight => ("┘", "+"),
            Self::RoundTopLeft => ("╭", "."),
            Self::RoundTopRight => ("╮", "."),
            Self::RoundBottomLeft => ("╰", "'"),
            Self::RoundBottomRight => ("╯", "'"),
            Self::TeeRight => ("├", "+"),
            Self::TeeLeft => ("┤", "+"),
            Self::TeeDown => ("┬", "+"),
            Self::TeeUp => ("┴", "+"),
            Self::Cross => ("┼", "+"),
            Self::Lane => ("┊", "|"),
            Self::LaneInControl => ("┃", "#"),
            Self::Timeout => ("╎", "!"),
            Self::Fork => ("⑂", "<"),
            Self::Join => ("⑃", ">"),
            Self::HandedOver => ("▸", "^"),
            Self::Called => ("⇄", "c"),
        }
    }
}

/// Cells of a sparkline, from empty to full.
/// A full block is not among them: it would touch the row above.
const RAMP: [&str; 8] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇"];
/// The same for ASCII.
const ASCII_RAMP: [&str; 8] = [" ", ".", ":", "-", "=", "+", "*", "#"];

/// A set of glyphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Glyphs {
    /// Box drawing, arrows and shapes.
    #[default]
    Unicode,
    /// 7-bit ASCII only (`--ascii`).
    Ascii,
}

impl Glyphs {
    /// The set for the `ascii` setting.
    pub fn new(ascii: bool) -> Self {
        if ascii { Self::Ascii } else { Self::Unicode }
    }

    /// The text of a glyph: one column wide, except [`Glyph::Ellipsis`], [`Glyph::Arrow`],
    /// [`Glyph::ArrowBack`] and [`Glyph::Consults`] (two columns in ASCII).
    pub fn symbol(self, glyph: Glyph) -> &'static str {
        let (unicode, ascii) = glyph.pair();
        match self {
            Self::Unicode => unicode,
            Self::Ascii => ascii,
        }
    }

    /// The cell of a sparkline for `value` on a scale up to `most`. Only zero is blank.
    pub fn spark(self, value: u32, most: u32) -> &'static str {
        let step = match (value, most) {
            (0, _) | (_, 0) => 0,
            _ => (u64::from(value.min(most)) * 7).div_ceil(u64::from(most)).clamp(1, 7) as usize,
        };
        match self {
            Self::Unicode => RAMP[step],
            Self::Ascii => ASCII_RAMP[step],
        }
    }

    /// A cell of a graph with two columns of at most four dots each, counted from its bottom.
    pub fn dots(self, left: u8, right: u8) -> char {
        const LEFT: [u32; 5] = [0, 0x40, 0x44, 0x46, 0x47];
        const RIGHT: [u32; 5] = [0, 0x80, 0xa0, 0xb0, 0xb8];
        const ASCII: [char; 5] = [' ', '.', '-', '+', '#'];
        let (left, right) = (usize::from(left.min(4)), usize::from(right.min(4)));
        match self {
            _ if left + right == 0 => ' ',
            Self::Unicode => char::from_u32(0x2800 + LEFT[left] + RIGHT[right]).unwrap_or(' '),
            Self::Ascii => ASCII[left.max(right)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::measure::columns;

    #[test]
    fn glyph_keeps_column_and_ascii_twin() {
        for glyph in Glyph::ALL {
            assert_eq!(columns(Glyphs::Unicode.symbol(glyph)), 1, "{glyph:?}");
            let twin = Glyphs::Ascii.symbol(glyph);
            assert!(twin.is_ascii(), "{glyph:?}");
            let wide = matches!(
                glyph,
                Glyph::Ellipsis | Glyph::Arrow | Glyph::ArrowBack | Glyph::Consults
            );
            assert_eq!(columns(twin) == 1, !wide, "{glyph:?}");
        }
        for set in [Glyphs::Unicode, Glyphs::Ascii] {
            for value in 0..=9 {
                assert_eq!(columns(set.spark(value, 8)), 1);
            }
        }
    }

    #[test]
    fn dots_keep_column_and_ascii_twin() {
        for (left, right) in (0..=5).flat_map(|left| (0..=5).map(move |right| (left, right))) {
            for set in [Glyphs::Unicode, Glyphs::Ascii] {
                let cell = set.dots(left, right);
                assert_eq!(columns(&cell.to_string()), 1, "{left} {right}");
                assert_eq!(cell == ' ', left + right == 0, "{left} {right}");
            }
            assert!(Glyphs::Ascii.dots(left, right).is_ascii());
        }
        assert_eq!((Glyphs::Unicode.dots(4, 4), Glyphs::Unicode.dots(1, 0)), ('⣿', '⡀'));
    }

    #[test]
    fn states_differ_in_ascii() {
        use Glyph::*;
        for group in [
            &[
                Done, Running, Waiting, Paused, Retry, Failed, Refused, NeedsYou, Off, Alert,
                HalfOpen,
            ][..],
            &[Go, Caution, Block, Changed, Off, NotYet, Running, Retry, Failed, Refused],
        ] {
            for (at, one) in group.iter().enumerate() {
                for other in &group[at + 1..] {
                    let (one, other) = (Glyphs::Ascii.symbol(*one), Glyphs::Ascii.symbol(*other));
                    assert_ne!(one, other);
                }
            }
        }
    }

    #[test]
    fn a_sparkline_hides_nothing_that_happened() {
        assert_eq!(Glyphs::Unicode.spark(0, 1000), " ");
        assert_eq!(Glyphs::Unicode.spark(1, 1000), "▁");
        assert_eq!(Glyphs::Unicode.spark(1000, 1000), "▇", "no full block");
        assert_eq!(Glyphs::Unicode.spark(7, 0), " ");
    }
}
