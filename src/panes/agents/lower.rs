//! The selections in the two lower panes of a run with agents: pane 3 has the tree of calls, pane 4
//! the transcript. The view of a pattern owns one, and passes on what is meant for these panes.

use std::collections::BTreeSet;
use std::ops::Range;

use ratatui::layout::Rect;

use super::call_tree::{CallTree, Fold, call_tree};
use super::row_cursor::RowCursor;
use super::transcript::Transcript;
use crate::app::action::Action;
use crate::app::run::data::RunData;
use crate::app::run::inspect::target::InspectTarget;
use crate::app::run::layout::Pane;
use crate::app::run::list_cursor::ListCursor;
use crate::app::run::run_view::PaneAt;
use crate::app::run::scroll::{Scroll, WrappingLines};
use crate::event::SpanId;

/// Selections and scroll positions in the call tree and the transcript.
#[derive(Debug, Default)]
pub struct LowerPanes {
    /// The selected call of the tree.
    call: Option<SpanId>,
    calls_top: usize,
    /// The calls that the operator has folded.
    closed: BTreeSet<SpanId>,
    /// The selected line of the transcript.
    line: ListCursor,
}

/// Fewest rows of a tree above which its root stays in view.
const LEAST_WITH_ROOT: usize = 4;

/// The rows of the call tree in view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallWindow {
    /// The row of the root, above the others, if it would be out of view.
    pub root: Option<usize>,
    /// The rows below it.
    pub rows: Range<usize>,
    /// The selected row.
    pub selected: Option<usize>,
}

impl CallWindow {
    /// The rows from the top.
    pub fn shown(&self) -> impl Iterator<Item = usize> {
        self.root.into_iter().chain(self.rows.clone())
    }

    fn row_at(&self, line: usize) -> Option<usize> {
        self.shown().nth(line)
    }
}

/// Rows of the tree that follow the selection: one is left for the root where not all are in view.
fn calls_height(tree: &CallTree<'_>, height: usize) -> usize {
    match tree.len() > height && height >= LEAST_WITH_ROOT {
        true => height - 1,
        false => height,
    }
}

impl LowerPanes {
    /// Whether the transcript follows its end.
    pub fn follows_transcript(&self) -> bool {
        self.line.line.is_none()
    }

    /// The calls that the operator has folded.
    pub fn folded(&self) -> &BTreeSet<SpanId> {
        &self.closed
    }

    /// The calls in view in a window of this height, and the selected one. The root of the first of them
    /// stays in view above them.
    pub fn call_rows(&self, tree: &CallTree<'_>, height: usize) -> CallWindow {
        let rows = self.call_cursor(tree);
        let below = rows.window(tree.len(), calls_height(tree, height));
        let root = tree.root_of_row(below.start).filter(|root| *root < below.start);
        match root.filter(|_| height >= LEAST_WITH_ROOT) {
            Some(root) => CallWindow { root: Some(root), rows: below, selected: rows.cursor },
            None => {
                let rows_of = rows.window(tree.len(), height);
                // Without a root above them there is room for one row more.
                let end = (below.start + height).min(tree.len());
                let shown = if tree.len() > height { below.start..end } else { rows_of };
                CallWindow { root: None, rows: shown, selected: rows.cursor }
            }
        }
    }

    /// The first line and row of the transcript in view, and the selected line.
    pub fn transcript_position(
        &self,
        lines: &Transcript<'_>,
        height: usize,
    ) -> (Scroll, Option<usize>) {
        self.line.position(lines, height)
    }

    /// Moves the selection in one of the two panes.
    pub fn on_move(&mut self, run: &RunData, at: PaneAt<'_>, action: Action) {
        match at.pane {
            Pane::Third => self.move_in_tree(run, action, at.height()),
            Pane::Fourth => {
                let Some(lines) = at.area().and_then(|it| Transcript::of_run(run, it.width)) else {
                    return;
                };
                self.line = self.line.after_action(action, &lines, at.height());
            }
            Pane::First | Pane::Second | Pane::Events => {}
        }
    }

    /// Scrolls one of the two panes by rows, with the wheel.
    pub fn on_wheel(&mut self, run: &RunData, pane: Pane, area: Rect, by: isize) {
        let height = usize::from(area.height).max(1);
        match pane {
            Pane::Third => {
                let Some(tree) = call_tree(run, &self.closed) else { return };
                let height = calls_height(&tree, height);
                let rows = self.call_cursor(&tree).after_wheel(by, tree.len(), height);
                let call = rows.cursor.and_then(|row| tree.row(row)).map(|node| node.span);
                self.call = call;
                self.calls_top = rows.top;
            }
            Pane::Fourth => {
                let Some(lines) = Transcript::of_run(run, area.width) else { return };
                self.line = self.line.after_wheel(by, &lines, height);
            }
            Pane::First | Pane::Second | Pane::Events => {}
        }
    }

    /// Selects the row of one of the two panes that is this many rows below its upper edge; a
    /// selected call is folded or unfolded.
    pub fn on_click(&mut self, run: &RunData, pane: Pane, area: Rect, line: usize) {
        let height = usize::from(area.height);
        match pane {
            Pane::Third => {
                let Some(tree) = call_tree(run, &self.closed) else { return };
                let Some(row) = self.call_rows(&tree, height).row_at(line) else { return };
                let Some(node) = tree.row(row) else { return };
                let selected = self.call == Some(node.span);
                if selected && matches!(node.fold, Fold::Open | Fold::Closed) {
                    self.toggle_fold(node.span);
                }
                self.select_call(run, node.span, height.max(1));
            }
            Pane::Fourth => {
                let Some(lines) = Transcript::of_run(run, area.width) else { return };
                self.line = self.line.after_click(line, &lines, height);
            }
            Pane::First | Pane::Second | Pane::Events => {}
        }
    }

    /// Whether a call or a line is selected.
    pub fn has_selection(&self) -> bool {
        self.call.is_some() || self.line.line.is_some()
    }

    /// Clears the selections. Folded calls stay folded.
    pub fn clear_selection(&mut self) {
        let closed = std::mem::take(&mut self.closed);
        *self = Self { closed, ..Self::default() };
    }

    /// The selected call of the tree, or the one in the first row; the run's own span for the
    /// coordinator that the operator talks to.
    pub fn call(&self, run: &RunData) -> Option<SpanId> {
        let tree = call_tree(run, &self.closed)?;
        let row = self.call_cursor(&tree).row(tree.len())?;
        tree.row(row).map(|node| node.span)
    }

    /// What Enter inspects in the transcript.
    pub fn transcript_target(&self, run: &RunData) -> Option<InspectTarget> {
        let lines = Transcript::of_run(run, 80)?;
        let last = lines.count().checked_sub(1)?;
        let (seq, call) = lines.event_of_line(self.line.line.unwrap_or(last).min(last))?;
        Some(call.map_or(InspectTarget::Event(seq), InspectTarget::Call))
    }

    /// The text of the selected line of the transcript.
    pub fn line_text(&self, run: &RunData) -> Option<String> {
        let line = self.line.line?;
        Transcript::of_run(run, 80)?.text_of_line(line)
    }

    /// The rows of the call tree in view in an area, and how many there are.
    pub fn calls_in_view(&self, run: &RunData, area: Rect) -> Option<(Range<usize>, usize)> {
        let tree = call_tree(run, &self.closed)?;
        Some((self.call_rows(&tree, usize::from(area.height)).rows, tree.len()))
    }

    fn call_cursor(&self, tree: &CallTree<'_>) -> RowCursor {
        let cursor = self.call.and_then(|call| tree.place(call));
        RowCursor { cursor, top: self.calls_top }
    }

    /// Folds or unfolds a call.
    fn toggle_fold(&mut self, call: SpanId) {
        if !self.closed.remove(&call) {
            self.closed.insert(call);
        }
    }

    fn move_in_tree(&mut self, run: &RunData, action: Action, height: usize) {
        let Some(tree) = call_tree(run, &self.closed) else { return };
        let rows = self.call_cursor(&tree);
        let Some(node) = rows.row(tree.len()).and_then(|row| tree.row(row)) else { return };
        match action {
            // Right unfolds a call, left folds it; left on a folded call selects its parent.
            Action::Left | Action::Right => {
                let open = action == Action::Right;
                let turns = if open { node.fold == Fold::Closed } else { node.fold == Fold::Open };
                let above = tree.parent(node.span).unwrap_or(node.span);
                let select = if turns || open { node.span } else { above };
                if turns {
                    self.toggle_fold(node.span);
                }
                self.select_call(run, select, height);
            }
            action => {
                let moved = rows.after_action(action, tree.len(), calls_height(&tree, height));
                let call = moved.cursor.and_then(|row| tree.row(row)).map(|node| node.span);
                self.call = call;
                self.calls_top = moved.top;
            }
        }
    }

    fn select_call(&mut self, run: &RunData, call: SpanId, height: usize) {
        let Some(tree) = call_tree(run, &self.closed) else { return };
        let Some(row) = tree.place(call) else { return };
        let height = calls_height(&tree, height);
        let rows = self.call_cursor(&tree).select(row, tree.len(), height);
        self.call = Some(call);
        self.calls_top = rows.top;
    }
}
