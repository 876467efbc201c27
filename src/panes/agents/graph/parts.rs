//! The parts of a team's picture: boxes, lines, labels, and their sizes.

use ratatui::layout::Rect;

use crate::app::layout::hits;
use crate::base::name::AgentName;
use crate::narrate::measure::columns;

/// Rows of a box.
pub(super) const BOX_ROWS: u16 = 3;

/// Columns between two boxes of a row.
pub(super) const GAP: u16 = 2;

/// Fewest and most columns of a name in a box.
pub(super) const NAMES: (u16, u16) = (5, 20);

/// Columns of a box besides its name: frame, state, mark of control.
pub(super) const BOX_EXTRA: u16 = 6;

/// Columns before the first agent, for the caller.
pub const CALLER_COLUMNS: u16 = 7;

/// The picture of a team.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The boxes of the agents, in the order in which the plan names them.
    pub boxes: Vec<AgentBox>,
    /// Whether neighbouring boxes share a side.
    pub shared: bool,
    /// Whether the lines are handoffs rather than the members of coordinators.
    pub lifelines: bool,
    /// The lines, each as its corners.
    pub wires: Vec<Vec<(u16, u16)>>,
    /// The labels of the lines.
    pub labels: Vec<Label>,
    /// Where the operator's message enters.
    pub start: Option<(u16, u16)>,
    /// Work without a line, as indices of the team's edges.
    pub unlined: Vec<usize>,
    /// The rows that list it in words.
    pub unlined_area: Rect,
    /// Agents without a box: none of them is a member of a swarm at present.
    pub bench: Vec<AgentName>,
    /// The row of the legend.
    pub legend: Rect,
}

/// An agent's box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentBox {
    /// The agent in it.
    pub agent: AgentName,
    /// Its frame.
    pub frame: Rect,
}

/// The label of the work between two agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where it begins.
    pub at: (u16, u16),
    /// Whether it is drawn on a line, with blanks around it.
    pub on_line: bool,
    /// The end of the line, if it has an arrow.
    pub end: Option<(u16, u16)>,
    /// Whether that arrow points left.
    pub left: bool,
    /// The work that it shows.
    pub work: EdgeWork,
}

/// The work that one agent gave to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeWork {
    /// Whether it was a consultation, so that control returns.
    pub consults: bool,
    /// Number of handoffs or consultations.
    pub count: u32,
    /// Number of refused ones.
    pub refused: u32,
}

impl EdgeWork {
    /// Columns of the label, if every glyph is one column wide.
    pub fn width(self) -> u16 {
        let digits = |number: u32| columns(&number.to_string()) as u16;
        let refused = if self.refused > 0 { digits(self.refused) + 1 } else { 0 };
        let there = if self.count > 0 { digits(self.count) } else { 0 };
        let apart = u16::from(refused > 0 && there > 0);
        let consults = if self.consults { 3 } else { 0 };
        consults + there + apart + refused
    }
}

impl Graph {
    /// The agent whose box is at this cell.
    pub fn agent_at_cell(&self, col: u16, row: u16) -> Option<&AgentName> {
        self.boxes.iter().find(|boxed| hits(boxed.frame, col, row)).map(|boxed| &boxed.agent)
    }
}
