//! The panes of a run's page, and which of them is focused.

/// The panes of a run's page, in the order of their numbers. The view of the page says what each shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pane {
    /// The overview: the seats, the waterfall, the breakers.
    First,
    /// What is selected, or what runs just now; after the end, the outcome of the run.
    Second,
    /// Lower left: stances, results, bulkheads.
    Third,
    /// Lower right: the gateway, the slots, the retries.
    Fourth,
    /// The log of events.
    Events,
}

impl Pane {
    /// Every pane, in the order of their numbers.
    pub const ALL: [Pane; 5] = [Self::First, Self::Second, Self::Third, Self::Fourth, Self::Events];

    /// Its number on screen, from 1.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The pane with this number.
    pub fn from_number(number: u8) -> Option<Pane> {
        Self::ALL.into_iter().find(|pane| pane.number() == number)
    }

    /// The pane this many further on; after the last comes the first.
    pub fn next(self, by: usize) -> Pane {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }
}

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
    /// Whether the operator has moved the focus.
    pub(super) is_moved: bool,
}

impl Default for PaneFocus {
    fn default() -> Self {
        let (upper, middle) = (Pane::First, Pane::Third);
        Self { focus: upper, zoom: false, upper, middle, dragging: false, is_moved: false }
    }
}

impl PaneFocus {
    /// Focuses a pane; returns whether another one was focused.
    pub(super) fn focus_on(&mut self, pane: Pane) -> bool {
        let changed = self.focus != pane;
        self.is_moved = true;
        self.focus = pane;
        match pane {
            Pane::First | Pane::Second => self.upper = pane,
            Pane::Third | Pane::Fourth => self.middle = pane,
            Pane::Events => {}
        }
        changed
    }
}
