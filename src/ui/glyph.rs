//! Every glyph of the screen with its ASCII twin. No colour, no meaning: [`theme`](super::theme)
//! says which state wears which glyph.

/// A glyph of ours. Each is one column wide in both sets, but for those that [`Glyphs::of`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Glyph {
    /// Closed well.
    Done,
    /// On its way.
    Running,
    /// Its turn has not come.
    Waiting,
    /// Standing at a boundary.
    Paused,
    /// Another attempt follows.
    Retry,
    /// Failed for good.
    Failed,
    /// Refused.
    Refused,
    /// Waits for a person.
    NeedsYou,
    /// Switched off.
    Off,
    /// Stance `go`.
    Go,
    /// Stance `caution`.
    Caution,
    /// Stance `block`.
    Block,
    /// Another than before.
    Changed,
    /// Behind a flag.
    Flag,
    /// Not yet.
    NotYet,
    /// A conflict, a warning.
    Alert,
    /// A bar's full cell.
    BarFull,
    /// A bar's empty cell.
    BarEmpty,
    /// A track's part that is done.
    TrackFull,
    /// The tip of a track's done part.
    TrackTip,
    /// A track's part that is to come.
    TrackEmpty,
    /// An attempt on an axis of time.
    Segment,
    /// A place that is taken.
    SlotFull,
    /// A place that is free.
    SlotEmpty,
    /// Answered, but late.
    Slow,
    /// A breaker that lets a few calls through.
    HalfOpen,
    /// Where the reader stands in time.
    Playhead,
    /// The end of text that still comes.
    Cursor,
    /// The row that is selected.
    Selected,
    /// Something was left out.
    Ellipsis,
    /// Before an amount that is estimated.
    Estimate,
    /// Leads to.
    Arrow,
    /// Work went there, to the left.
    ArrowBack,
    /// Asks, and control comes back.
    Consults,
    /// Who is in control.
    Holder,
    /// What is called from within.
    Within,
    /// There is more within, folded away.
    Folded,
    /// What is within stands below.
    Unfolded,
    /// More of it upwards.
    Up,
    /// More of it downwards.
    Down,
    /// More of it to the left.
    Left,
    /// More of it to the right.
    Right,
    /// Between two parts of a line.
    Dot,
    /// The Enter key.
    Enter,
    /// A breakpoint.
    Breakpoint,
    /// The line through a wait.
    Wait,
    /// Horizontal line.
    Horizontal,
    /// Vertical line.
    Vertical,
    /// Corner.
    TopLeft,
    /// Corner.
    TopRight,
    /// Corner.
    BottomLeft,
    /// Corner.
    BottomRight,
    /// Corner of the table.
    RoundTopLeft,
    /// Corner of the table.
    RoundTopRight,
    /// Corner of the table.
    RoundBottomLeft,
    /// Corner of the table.
    RoundBottomRight,
    /// Lines that meet: all but the left one.
    TeeRight,
    /// Lines that meet: all but the right one.
    TeeLeft,
    /// Lines that meet: all but the upper one.
    TeeDown,
    /// Lines that meet: all but the lower one.
    TeeUp,
    /// Lines that meet: all four.
    Cross,
}

impl Glyph {
    /// Every glyph.
    pub const ALL: [Glyph; 61] = [
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
        Self::Enter,
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
            Self::Changed => ("Δ", "%"),
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
            Self::Enter => ("⏎", "Enter"),
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
        }
    }
}

/// The heights of a sparkline, from nothing to full.
const RAMP: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
/// The same in ASCII.
const ASCII_RAMP: [&str; 9] = [" ", ".", ".", ":", "-", "=", "+", "*", "#"];

/// Which set of glyphs is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Glyphs {
    /// Box drawing, arrows and shapes.
    #[default]
    Unicode,
    /// Seven bits only (`--ascii`).
    Ascii,
}

impl Glyphs {
    /// The set for this answer to "ASCII only?".
    pub fn new(ascii: bool) -> Self {
        if ascii { Self::Ascii } else { Self::Unicode }
    }

    /// What is drawn. One column wide, but for [`Glyph::Ellipsis`], [`Glyph::Arrow`],
    /// [`Glyph::ArrowBack`] and [`Glyph::Consults`] (two columns in ASCII) and [`Glyph::Enter`] (five).
    pub fn of(self, glyph: Glyph) -> &'static str {
        let (unicode, ascii) = glyph.pair();
        match self {
            Self::Unicode => unicode,
            Self::Ascii => ascii,
        }
    }

    /// The cell of a sparkline for `value` of `most`. Only zero is drawn as nothing.
    pub fn spark(self, value: u32, most: u32) -> &'static str {
        let step = match (value, most) {
            (0, _) | (_, 0) => 0,
            _ => (u64::from(value.min(most)) * 8).div_ceil(u64::from(most)).clamp(1, 8) as usize,
        };
        match self {
            Self::Unicode => RAMP[step],
            Self::Ascii => ASCII_RAMP[step],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::text::columns;

    #[test]
    fn each_glyph_keeps_its_column_and_has_a_twin_in_seven_bits() {
        for glyph in Glyph::ALL {
            assert_eq!(columns(Glyphs::Unicode.of(glyph)), 1, "{glyph:?}");
            let twin = Glyphs::Ascii.of(glyph);
            assert!(twin.is_ascii(), "{glyph:?}");
            let wide = matches!(
                glyph,
                Glyph::Ellipsis | Glyph::Arrow | Glyph::ArrowBack | Glyph::Consults | Glyph::Enter
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
    fn states_are_told_apart_in_ascii_too() {
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
                    let (one, other) = (Glyphs::Ascii.of(*one), Glyphs::Ascii.of(*other));
                    assert_ne!(one, other);
                }
            }
        }
    }

    #[test]
    fn a_sparkline_hides_nothing_that_happened() {
        assert_eq!(Glyphs::Unicode.spark(0, 1000), " ");
        assert_eq!(Glyphs::Unicode.spark(1, 1000), "▁");
        assert_eq!(Glyphs::Unicode.spark(1000, 1000), "█");
        assert_eq!(Glyphs::Unicode.spark(7, 0), " ");
    }
}
