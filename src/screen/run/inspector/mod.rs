//! The inspector: one event or one call in full, in tabs, with a summary on the left. It shows the
//! run up to the playhead, or as it is now for an event after it.

pub mod calls;
pub mod documents;

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::calls::{call_of, callee_kind};
use self::documents::{
    call_events, prompt_document, raw_document, reply_document, summary_document, timing_document,
};
use super::RunPage;
use super::data::{EventWindow, RunData};
use super::layout::inspector as areas;
use crate::log::event::{Event, Purpose, Seq, SpanId, World};
use crate::log::world::SpanKind;
use crate::screen::DrawContext;
use crate::screen::frame::Borders;
use crate::screen::layout::{padded, tabs};
use crate::screen::scroll::{Scroll, WrappingLines, draw_line};
use crate::screen::text::{Pen, elide_middle, on_border};
use crate::words::format;
use crate::words::measure::{columns, row_count};
use crate::words::patterns::words_of;
use crate::words::sentence::tool_of_purpose;
use crate::words::styled::{StyleRole, StyledLine, StyledText};

/// The inspector while it is open.
#[derive(Debug)]
pub struct Inspector {
    /// The event or call in it.
    pub target: InspectTarget,
    pub tab: Tab,
    /// Whether the call is one of a model or of a tool.
    pub callee: CalleeKind,
    /// First line and row in view.
    pub(crate) scroll: Scroll,
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

    /// Whether new events may change the data about the target.
    pub(crate) fn concerns(&self, run: &RunData, events: &[Arc<Event>]) -> bool {
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
    pub(crate) fn step(&mut self, by: isize, width: u16, height: u16) {
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
    pub(crate) fn open(&mut self, tab: Tab) {
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
    pub document: &'a StyledText,
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

/// A tab of the inspector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    /// The messages exactly as the model saw them, or a tool's arguments.
    #[default]
    Prompt,
    /// The reply or result, and what the gateway parsed from it.
    Reply,
    /// The events as JSON.
    Raw,
    /// Attempts, waits and tokens.
    Timing,
}

impl Tab {
    /// Every tab, from left to right.
    pub const ALL: [Tab; 4] = [Self::Prompt, Self::Reply, Self::Raw, Self::Timing];

    /// The names of all tabs, for a call of a model or of a tool.
    pub fn names(asks: CalleeKind) -> [&'static str; 4] {
        Self::ALL.map(|tab| tab.name(asks))
    }

    /// The name of the tab, for a call of a model or of a tool.
    pub fn name(self, asks: CalleeKind) -> &'static str {
        match self {
            Self::Prompt => match asks {
                CalleeKind::Model => "Prompt",
                CalleeKind::Tool => "Args",
                CalleeKind::Span => "Input",
            },
            Self::Reply if asks == CalleeKind::Span => "Output",
            Self::Reply => "Reply",
            Self::Raw => "Raw",
            Self::Timing => "Timing",
        }
    }

    /// The tab this many further on; after the last comes the first.
    pub(crate) fn next(self, by: usize) -> Tab {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }
}

/// The callee of the call that is inspected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CalleeKind {
    /// A model, with a prompt.
    #[default]
    Model,
    /// A tool, with arguments.
    Tool,
    /// Another span of a watched program, with an input and an output.
    Span,
}

/// The thing that is inspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InspectTarget {
    /// The event with this number, and the call that it belongs to, if any.
    Event(Seq),
    /// A call, with its attempts.
    Call(SpanId),
}

/// A run up to a moment. Later events are not shown.
#[derive(Clone, Copy)]
pub(crate) struct InspectedRun<'a> {
    pub run: &'a RunData,
    /// The world at that moment.
    pub world: &'a World,
    /// The number of events in memory before that moment.
    pub events: usize,
}

impl<'a> InspectedRun<'a> {
    /// The run for a target: up to the playhead, unless the target is an event after it.
    pub(super) fn for_target(run: &'a RunData, target: InspectTarget) -> Self {
        let is_later = match target {
            InspectTarget::Event(seq) => run.place(seq) >= run.shown_event_count(),
            InspectTarget::Call(call) => run.shown().spans.get(call).is_none(),
        };
        match is_later {
            true => Self { run, world: run.world(), events: run.log().len() },
            false => Self { run, world: run.shown(), events: run.shown_event_count() },
        }
    }

    /// The run's events in memory.
    pub(crate) fn log(&self) -> &'a EventWindow {
        self.run.log()
    }

    /// The event that closed a span, if it is closed at that moment.
    pub(super) fn closing_event(&self, span: SpanId) -> Option<&'a Event> {
        self.run.event(self.world.spans.get(span)?.closed_by?)
    }

    pub(super) fn opening_event(&self, span: SpanId) -> Option<&'a Event> {
        self.run.event(self.world.spans.get(span)?.opened_by)
    }
}

/// Minimum width of a heading after the tabs.
const MIN_HEADING: usize = 8;

/// Draws the inspector into a run's page.
pub fn render(page: &RunPage, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let Some(inspector) = page.inspector() else { return };
    let parts = areas(area);
    let mut borders = Borders::new(area);
    if let Some(beside) = parts.summary {
        borders.frame(beside, StyleRole::Border);
    }
    borders.frame(parts.frame, StyleRole::BorderFocus);
    borders.paint(cx, buf);
    if let Some(beside) = parts.summary {
        draw_summary(page, cx, inspector, beside, buf);
    }
    strip(cx, parts.tabs, inspector, buf);
    if parts.summary.is_none() {
        heading_after_tabs(page, cx, parts.tabs, inspector, buf);
    }
    body(cx, inspector, parts.text, buf);
    foot(cx, inspector, parts.frame, parts.text, buf);
}

/// Draws the summary of the target, and the keys.
fn draw_summary(
    page: &RunPage,
    cx: &DrawContext,
    inspector: &Inspector,
    frame: Rect,
    buf: &mut Buffer,
) {
    let title = Rect {
        x: frame.x + 2,
        width: frame.width.saturating_sub(4),
        height: frame.height.min(1),
        ..frame
    };
    let text = format!(" {} ", heading(page, inspector.target));
    Pen::new(buf, title, cx.glyphs).put(&text, on_border(cx.theme.style(StyleRole::Title)));
    let area = padded(frame);
    let mut row = 0;
    for line in &inspector.summary.lines {
        row = draw_line(cx, area, row, 0, line, buf);
    }
    let keys = [
        ("c", "jump to the cause"),
        (", .", "previous, next event"),
        ("y Y", "copy, as Markdown"),
        ("o", "raw JSON in $PAGER"),
    ];
    if row + keys.len() as u16 + 1 > area.height {
        return;
    }
    for (nth, (key, what)) in keys.into_iter().enumerate() {
        let at = area.bottom() - (keys.len() - nth) as u16;
        let line = Rect { y: at, height: 1, ..area };
        let mut pen = Pen::new(buf, line, cx.glyphs);
        pen.cell(key, 5, cx.theme.style(StyleRole::Key)).put(what, cx.theme.style(StyleRole::Dim));
    }
}

/// A short name of the target.
fn heading(page: &RunPage, target: InspectTarget) -> String {
    match target {
        InspectTarget::Event(seq) => {
            format!(
                "Event {} of {}",
                format::exact(seq.0 + 1),
                format::exact(page.log().len() as u64)
            )
        }
        InspectTarget::Call(call) => match page.world().spans.get(call).map(|span| &span.kind) {
            Some(SpanKind::Call(Purpose::Contribution { round, role, .. })) => {
                format!("{role}, round {round}")
            }
            Some(SpanKind::Call(Purpose::Finalize)) => words_of(page.world())
                .map_or("launch brief", |words| words.terms().answer)
                .to_owned(),
            Some(SpanKind::Call(purpose)) => {
                let who = purpose.label();
                match tool_of_purpose(purpose, page.world()).filter(|tool| *tool != "llm") {
                    Some(tool) => format!("{who}, {tool}"),
                    None => who.into_owned(),
                }
            }
            _ => format!("span {}", call.0),
        },
    }
}

fn strip(cx: &DrawContext, row: Rect, inspector: &Inspector, buf: &mut Buffer) {
    let asks = inspector.callee;
    for (nth, (tab, place)) in Tab::ALL.into_iter().zip(tabs(row, Tab::names(asks))).enumerate() {
        let role = if tab == inspector.tab { StyleRole::Button } else { StyleRole::Dim };
        let text = format!(" {} {} ", nth + 1, tab.name(asks));
        Pen::new(buf, place, cx.glyphs).put(&text, on_border(cx.theme.style(role)));
    }
}

/// Draws the name of the target at the end of the row of tabs, where there is no summary.
fn heading_after_tabs(
    page: &RunPage,
    cx: &DrawContext,
    row: Rect,
    inspector: &Inspector,
    buf: &mut Buffer,
) {
    let names = tabs(row, Tab::names(inspector.callee));
    let start = names.iter().map(|place| place.right()).max().unwrap_or(row.x);
    let room = usize::from(row.right().saturating_sub(start + 4));
    let text = format!(" {} ", elide_middle(&heading(page, inspector.target), room, cx.glyphs));
    let width = columns(&text) as u16;
    if room >= MIN_HEADING {
        let at = Rect { x: row.right() - width - 1, width, height: 1, ..row };
        Pen::new(buf, at, cx.glyphs).put(&text, on_border(cx.theme.style(StyleRole::Title)));
    }
}

fn body(cx: &DrawContext, inspector: &Inspector, area: Rect, buf: &mut Buffer) {
    if area.width == 0 || area.height == 0 {
        return;
    }
    let top = inspector.top(area.width, area.height);
    let mut row = 0;
    for (nth, line) in inspector.document.lines.iter().enumerate().skip(top.line) {
        if row >= area.height {
            break;
        }
        let skip = if nth == top.line { top.row } else { 0 };
        row = draw_line(cx, area, row, skip, line, buf);
    }
    if inspector.document.lines.is_empty() {
        let text = "No text: this tab has nothing about what is selected.";
        Pen::new(buf, area, cx.glyphs).put(text, cx.theme.style(StyleRole::Dim));
    }
}

/// Draws the scroll position into the lower border.
fn foot(cx: &DrawContext, inspector: &Inspector, frame: Rect, area: Rect, buf: &mut Buffer) {
    let lines = inspector.document.lines.len();
    let top = inspector.top(area.width, area.height);
    if frame.height < 2 || lines == 0 {
        return;
    }
    let text = format!(" line {} of {lines} ", top.line + 1);
    let width = columns(&text) as u16;
    if width + 4 > frame.width {
        return;
    }
    let at = Rect { x: frame.right() - width - 2, y: frame.bottom() - 1, width, height: 1 };
    Pen::new(buf, at, cx.glyphs).put(&text, on_border(cx.theme.style(StyleRole::Dim)));
}
