//! The inspector: one event or one call in full.

use super::RunPage;
use super::cause::cause_of_event;
use super::document::{LineStyle, TextDocument};
use super::scroll::{Scroll, WrappingLines};
use crate::event::kind::Purpose;
use crate::event::world::SpanKind;
use crate::event::{Event, EventKind, Seq, SpanId};
use crate::narrate::measure::row_count;

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
            Self::Prompt if asks == CalleeKind::Tool => "Args",
            Self::Prompt => "Prompt",
            Self::Reply => "Reply",
            Self::Raw => "Raw",
            Self::Timing => "Timing",
        }
    }

    /// The tab this many further on; after the last comes the first.
    fn next(self, by: usize) -> Tab {
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
}

/// The thing that is inspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InspectTarget {
    /// The event with this number, and the call that it belongs to, if any.
    Event(Seq),
    /// A call, with its attempts.
    Call(SpanId),
}

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
    pub document: TextDocument,
    /// The summary at the left of the tabs.
    pub summary: TextDocument,
}

impl Inspector {
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
pub const FIELD_COLUMNS: u16 = 11;

/// A document whose lines wrap at a width.
pub struct WrappedDocument<'a> {
    /// The document that wraps.
    pub document: &'a TextDocument,
    /// Columns available.
    pub width: u16,
}

impl WrappingLines for WrappedDocument<'_> {
    fn count(&self) -> usize {
        self.document.lines.len()
    }

    fn rows(&self, line: usize) -> usize {
        let Some(line) = self.document.lines.get(line) else { return 1 };
        let (text, width) = match (line.style, line.text.split_once('\t')) {
            (LineStyle::Field, Some((_, value))) => {
                (value, self.width.saturating_sub(FIELD_COLUMNS))
            }
            _ => (line.text.as_str(), self.width),
        };
        row_count(text, usize::from(width))
    }
}

impl RunPage {
    /// The call that a target belongs to, if any.
    pub fn call_of(&self, target: InspectTarget) -> Option<SpanId> {
        match target {
            InspectTarget::Call(call) => Some(call),
            InspectTarget::Event(seq) => self.call_of_event(self.event(seq)?),
        }
    }

    pub(super) fn call_of_event(&self, event: &Event) -> Option<SpanId> {
        let world = self.world();
        if let Some(call) = world.projection().and_then(|it| it.call_of(event, world)) {
            return Some(call);
        }
        let span = world.spans.get(event.span)?;
        match span.kind {
            SpanKind::Call(_) => Some(span.id),
            SpanKind::Attempt(_) => Some(span.parent),
            _ => None,
        }
    }

    /// Opens the inspector, or points it at another target.
    pub(super) fn inspect(&mut self, target: InspectTarget, tab: Tab) {
        let mut inspector = Inspector {
            target,
            tab,
            callee: CalleeKind::default(),
            scroll: Scroll::default(),
            document: TextDocument::default(),
            summary: TextDocument::default(),
        };
        self.fill(&mut inspector);
        self.inspector = Some(inspector);
    }

    /// Fills the open tab again, after new events.
    pub(super) fn refresh_inspector(&mut self) {
        if let Some(mut inspector) = self.inspector.take() {
            self.fill(&mut inspector);
            self.inspector = Some(inspector);
        }
    }

    fn fill(&self, inspector: &mut Inspector) {
        let call = self.call_of(inspector.target);
        let fact = match inspector.target {
            InspectTarget::Event(seq) => self.event(seq),
            InspectTarget::Call(_) => None,
        };
        if self.is_target_dropped(inspector.target) {
            inspector.document = TextDocument::default();
            inspector.document.add(LineStyle::Dim, self.dropped_notice());
            return;
        }
        inspector.callee = self.callee_kind(call);
        inspector.summary = self.summary_document(call, fact);
        inspector.document = match inspector.tab {
            Tab::Prompt => self.prompt_document(call),
            Tab::Reply => self.reply_document(call),
            Tab::Raw => match (fact, call) {
                (Some(fact), _) => self.raw_document(&[fact], 0),
                (None, Some(call)) => {
                    let (facts, left_out) = self.call_events(call);
                    self.raw_document(&facts, left_out)
                }
                (None, None) => TextDocument::default(),
            },
            Tab::Timing => self.timing_document(call, fact),
        };
    }

    /// Whether a call is one of a model or of a tool.
    pub(super) fn callee_kind(&self, call: Option<SpanId>) -> CalleeKind {
        match call.and_then(|call| self.opening_event(call)).map(|event| &event.kind) {
            Some(EventKind::CallStarted(started)) if started.args.is_some() => CalleeKind::Tool,
            _ => CalleeKind::Model,
        }
    }

    /// What Enter inspects.
    pub(super) fn target(&self) -> Option<InspectTarget> {
        if self.focus() == super::Pane::Events {
            let place = self.list.selected(&self.log)?;
            return self.log.get(place).map(|event| InspectTarget::Event(event.seq));
        }
        if self.view() == super::View::Team
            && let Some(target) = self.team_target()
        {
            return Some(target);
        }
        if self.view() == super::View::Research
            && let Some(target) = self.research_target()
        {
            return Some(target);
        }
        let call = match self.view() {
            super::View::Tools => self.latest_call(),
            _ => self.subject_call(),
        };
        if let Some(call) = call {
            return Some(InspectTarget::Call(call));
        }
        self.shown_event_count()
            .checked_sub(1)
            .and_then(|last| self.log.get(last))
            .map(|event| InspectTarget::Event(event.seq))
    }

    /// The tab that opens first for a target.
    pub(super) fn first_tab(&self, target: InspectTarget) -> Tab {
        match target {
            InspectTarget::Call(_) => Tab::Reply,
            InspectTarget::Event(seq) => match self.event(seq).map(|event| &event.kind) {
                Some(EventKind::CallStarted(_)) => Tab::Prompt,
                Some(
                    EventKind::AttemptAnswered(_)
                    | EventKind::AttemptFailed(_)
                    | EventKind::AttemptRefused { .. }
                    | EventKind::CallAnswered { .. }
                    | EventKind::CallDegraded { .. }
                    | EventKind::ReplyRefused(_)
                    | EventKind::AnswerComposed { .. },
                ) => Tab::Reply,
                Some(EventKind::Pattern(fact)) if fact.get().shows_reply() => Tab::Reply,
                Some(
                    EventKind::CallRetried { .. }
                    | EventKind::RetryRefused { .. }
                    | EventKind::AttemptStarted { .. },
                ) => Tab::Timing,
                _ => Tab::Raw,
            },
        }
    }

    /// The event that caused what is inspected or selected.
    pub(super) fn cause_of(&self, target: InspectTarget) -> Option<Seq> {
        match target {
            InspectTarget::Event(seq) => cause_of_event(self, self.event(seq)?),
            InspectTarget::Call(call) => {
                let call = self.opening_event(call)?;
                match &call.kind {
                    EventKind::CallStarted(started)
                        if matches!(started.purpose, Purpose::Finalize) =>
                    {
                        cause_of_event(self, call)
                    }
                    _ => Some(call.seq),
                }
            }
        }
    }
}
