//! The inspector: one event or one call in full.

pub mod calls;
pub mod cause;
mod inspected;
pub mod prompt;
pub mod raw;
mod reply;
pub mod target;
pub mod timing;
mod tool_calls;

use std::sync::Arc;

use self::calls::{call_of, callee_kind};
pub(crate) use self::inspected::InspectedRun;
use self::prompt::prompt_document;
use self::raw::{call_events, raw_document};
use self::reply::reply_document;
use self::target::{CalleeKind, InspectTarget, Tab};
use self::timing::{summary_document, timing_document};
use super::data::RunData;
use super::scroll::{Scroll, WrappingLines};
use crate::event::Event;
use crate::narrate::measure::row_count;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::{StyledLine, StyledText};

/// The inspector while it is open.
#[derive(Debug)]
pub struct Inspector {
    /// The event or call in it.
    pub target: InspectTarget,
    /// The open tab.
    pub tab: Tab,
    /// Whether the call is one of a model or of a tool.
    pub callee: CalleeKind,
    /// First line and row in view.
    pub(super) scroll: Scroll,
    /// The text of the open tab.
    pub document: StyledText,
    /// The summary at the left of the tabs.
    pub summary: StyledText,
}

impl Inspector {
    /// The inspector on a target, with this tab open.
    pub(crate) fn of_target(run: &RunData, target: InspectTarget, tab: Tab) -> Self {
        let mut inspector = Self {
            target,
            tab,
            callee: CalleeKind::default(),
            scroll: Scroll::default(),
            document: StyledText::default(),
            summary: StyledText::default(),
        };
        inspector.refresh(run);
        inspector
    }

    /// Whether new events may change what is known of the target.
    pub(super) fn concerns(&self, run: &RunData, events: &[Arc<Event>]) -> bool {
        let Some(call) = call_of(run, self.target) else { return false };
        let of_call = |event: &Arc<Event>| {
            event.span == call
                || run.world().spans.get(event.span).is_some_and(|span| span.parent == call)
        };
        events.iter().any(of_call)
    }

    /// Fills the open tab again, after new events.
    pub(crate) fn refresh(&mut self, run: &RunData) {
        let call = call_of(run, self.target);
        let fact = match self.target {
            InspectTarget::Event(seq) => run.event(seq),
            InspectTarget::Call(_) => None,
        };
        if run.is_target_dropped(self.target) {
            self.document = StyledText::default();
            self.document.add(StyleRole::Dim, run.dropped_notice());
            return;
        }
        self.callee = callee_kind(run, call);
        let inspected = InspectedRun::for_target(run, self.target);
        self.summary = summary_document(&inspected, call, fact);
        self.document = match self.tab {
            Tab::Prompt => prompt_document(run, call),
            Tab::Reply => reply_document(&inspected, call),
            Tab::Raw => match (fact, call) {
                (Some(fact), _) => raw_document(&[fact], 0),
                (None, Some(call)) => {
                    let (facts, left_out) = call_events(&inspected, call);
                    raw_document(&facts, left_out)
                }
                (None, None) => StyledText::default(),
            },
            Tab::Timing => timing_document(&inspected, call, fact),
        };
    }

    /// The first line and row in a window of this height, when lines wrap at `width`.
    pub fn top(&self, width: u16, height: u16) -> Scroll {
        self.scroll
            .clamped(&WrappedDocument { document: &self.document, width }, usize::from(height))
    }

    /// Scrolls by this many rows.
    pub(super) fn step(&mut self, by: isize, width: u16, height: u16) {
        let lines = WrappedDocument { document: &self.document, width };
        self.scroll = self.scroll.step(by, &lines, usize::from(height));
    }

    pub(super) fn show_end(&mut self, width: u16, height: u16) {
        let lines = WrappedDocument { document: &self.document, width };
        self.scroll = Scroll::end(&lines, usize::from(height));
    }

    pub(super) fn show_start(&mut self) {
        self.scroll = Scroll::default();
    }

    /// Opens a tab at its start.
    pub(super) fn open(&mut self, tab: Tab) {
        self.tab = tab;
        self.scroll = Scroll::default();
    }

    pub(super) fn next_tab(&mut self, by: usize) {
        self.open(self.tab.next(by));
    }
}

/// Columns for the name of a field.
const FIELD_COLUMNS: u16 = 11;
/// Columns for the glyph of a sign, with a blank.
pub const GLYPH_COLUMNS: u16 = 2;

/// The columns before the text of a line: its label, and the glyph of its sign.
pub fn text_columns(line: &StyledLine) -> u16 {
    let label = if line.label.is_some() { FIELD_COLUMNS } else { 0 };
    label + if line.glyph().is_some() { GLYPH_COLUMNS } else { 0 }
}

/// A document whose lines wrap at a width.
pub struct WrappedDocument<'a> {
    /// The document that wraps.
    pub document: &'a StyledText,
    /// Columns available.
    pub width: u16,
}

impl WrappingLines for WrappedDocument<'_> {
    fn count(&self) -> usize {
        self.document.lines.len()
    }

    fn rows(&self, line: usize) -> usize {
        let Some(line) = self.document.lines.get(line) else { return 1 };
        let width = self.width.saturating_sub(text_columns(line));
        row_count(&line.text(), usize::from(width))
    }
}
