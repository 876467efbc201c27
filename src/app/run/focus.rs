//! The focused pane, and which panes are on top where two share a place.

use super::layout::Pane;

/// The focus on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaneFocus {
    /// The focused pane.
    pub focus: Pane,
    /// Whether the focused pane is zoomed, that is shown alone.
    pub zoom: bool,
    /// The first or the second pane, whichever was focused last.
    pub upper: Pane,
    /// The third or the fourth pane, whichever was focused last.
    pub middle: Pane,
    /// Whether the operator is dragging, from the scrubber.
    pub(super) dragging: bool,
}

impl Default for PaneFocus {
    fn default() -> Self {
        let (upper, middle) = (Pane::First, Pane::Third);
        Self { focus: upper, zoom: false, upper, middle, dragging: false }
    }
}

impl PaneFocus {
    /// Focuses a pane; returns whether another one was focused.
    pub(super) fn focus_on(&mut self, pane: Pane) -> bool {
        let changed = self.focus != pane;
        self.focus = pane;
        match pane {
            Pane::First | Pane::Second => self.upper = pane,
            Pane::Third | Pane::Fourth => self.middle = pane,
            Pane::Events => {}
        }
        changed
    }
}
