//! The view of research: the selections in its panes, and what they show. Keys and the mouse change
//! them in `moves`.

mod answer;
mod items;
mod moves;
mod notes;
mod page;
mod sources;
mod steps;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::answer::answer_items;
use self::items::{ItemList, ItemSubject};
use self::moves::research_call;
use self::notes::{Notes, note_items};
use self::page as page_pane;
use self::page::PageLayout;
use self::sources::source_parts;
use super::{Jumped, PaneAt, PaneTitle, TrackRow, View, follow_note, pane_title};
use crate::log::event::SpanId;
use crate::log::event::id::SourceNo;
use crate::log::facts::research::NoteId;
use crate::log::world::research::{NoteRow, Research, SourceState};
use crate::scenario::spec::script::ScriptStep;
use crate::screen::DrawContext;
use crate::screen::action::Action;
use crate::screen::key_hints::Why;
use crate::screen::list::{ListCursor, ListPane};
use crate::screen::run::data::RunData;
use crate::screen::run::inspector::InspectTarget;
use crate::screen::run::layout::{Pane, PaneSizes, RowSize, inner_columns};
use crate::screen::scroll::{Scroll, WrappingLines};
use crate::screen::text::elide_middle;
use crate::words::format;
use crate::words::glyph::Glyph;

/// Selections and scroll positions in the panes of research.
#[derive(Debug, Default)]
pub struct ResearchView {
    pub(crate) about: PageSubject,
    /// First row in view of the page; `None`: where its quote is, else at its start.
    pub(crate) top: Option<Scroll>,
    pub(crate) answer: ListCursor,
    pub(crate) notes: ListCursor,
    /// Items above the first note at the time of the selection.
    pub(super) items_above: usize,
    /// The origin of the last jump to the page.
    pub(crate) jump: Option<JumpOrigin>,
    /// The layout of the page that is shown.
    pub(crate) layout: Option<PageLayout>,
}

/// The subject of the page's pane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum PageSubject {
    /// The source that is being read.
    #[default]
    Follow,
    /// A selected source.
    Source(SourceNo),
    /// The quote of a note, on its page.
    Note(NoteId),
}

impl ResearchView {
    pub(super) fn set_subject(&mut self, about: PageSubject) {
        if self.about != about {
            self.about = about;
            self.top = None;
        }
        self.jump = None;
    }
}

impl ResearchView {
    /// The source whose page is shown.
    pub fn page_source(&self, run: &RunData) -> Option<SourceNo> {
        let research = run.shown().research()?;
        match &self.about {
            PageSubject::Source(no) => research.source(*no).map(|row| row.no),
            PageSubject::Note(id) => research.note(id).map(|row| row.source),
            PageSubject::Follow => match first_cited(research) {
                Some(row) => Some(row.source),
                None => current_source(research, run.shown().progress.is_live()),
            },
        }
    }

    /// The note whose quote the page's pane shows, if any.
    pub fn page_note<'a>(&self, run: &'a RunData) -> Option<&'a NoteId> {
        let research = run.shown().research()?;
        match &self.about {
            PageSubject::Note(id) => research.note(id).map(|row| &row.note.id),
            PageSubject::Source(_) => None,
            PageSubject::Follow => {
                if let Some(row) = first_cited(research) {
                    return Some(&row.note.id);
                }
                let no = self.page_source(run)?;
                let of = |row: &&NoteRow| row.source == no;
                research.notes.iter().rfind(of).map(|row| &row.note.id)
            }
        }
    }

    /// Whether a pane follows the run.
    pub fn follows(&self, pane: Pane) -> bool {
        match pane {
            Pane::First | Pane::Second => self.about == PageSubject::Follow,
            Pane::Third => self.answer.line.is_none(),
            Pane::Fourth => self.notes.line.is_none(),
            Pane::Events => false,
        }
    }

    /// The list of the sources in pane 1, and the one that the operator selected.
    pub fn source_list(&self, run: &RunData, area: Rect) -> (ListPane, Option<usize>) {
        let len = run.shown().research().map_or(0, |research| research.sources.len());
        let at = self.page_source(run).and_then(SourceNo::index);
        let by_hand = self.about != PageSubject::Follow;
        let list = ListPane::new(source_parts(area).rows, len, at.unwrap_or(0));
        (list, at.filter(|_| by_hand))
    }

    /// The layout of the page that is shown, and its text.
    pub fn page_layout<'a>(&'a self, run: &'a RunData) -> Option<(&'a PageLayout, &'a str)> {
        let no = self.page_source(run)?;
        let research = run.shown().research()?;
        let made = PageLayout::key_for(research, no)?;
        let reading = self.layout.as_ref().filter(|reading| reading.has_key(made))?;
        Some((reading, research.source(no)?.page.as_ref()?.text()))
    }

    /// The first row of the page in view, in a window of this width and height.
    pub fn page_top(&self, run: &RunData, width: u16, height: usize) -> Scroll {
        let Some((reading, text)) = self.page_layout(run) else { return Scroll::default() };
        let lines = reading.wrapped_at(text, width);
        let shown = || lines.scroll_to_quote(self.page_note(run)?, height);
        match self.top {
            Some(top) => top.clamped(&lines, height),
            None => shown().unwrap_or_default(),
        }
    }

    /// The first row of the answer in view, and the selected sentence.
    pub fn answer_at(
        &self,
        run: &RunData,
        lines: &impl WrappingLines,
        height: usize,
    ) -> (Scroll, Option<usize>) {
        list_window(self.answer, is_answer_growing(run), lines, height)
    }

    /// The first row of the notes in view, and the selected item.
    pub fn notes_at(
        &self,
        run: &RunData,
        lines: &impl WrappingLines,
        height: usize,
    ) -> (Scroll, Option<usize>) {
        let Some(items) = note_items(run) else { return (Scroll::default(), None) };
        let picked = self.notes_picked(&items);
        let failed = run.shown().research().and_then(failed_note).filter(|_| picked.line.is_none());
        if let Some(failed) = failed {
            // The note that stopped the run is in view.
            let is_it = |at: &usize| {
                items
                    .item(*at)
                    .is_some_and(|item| item.subject == ItemSubject::Note(failed.clone()))
            };
            let line = (0..items.count()).find(is_it).unwrap_or_default();
            return (Scroll { line, ..Scroll::default() }.clamped(lines, height), None);
        }
        list_window(picked, run.shown().progress.is_live(), lines, height)
    }

    /// The selection among the notes, moved down by the items that were added above them since.
    pub(super) fn notes_picked(&self, items: &Notes<'_>) -> ListCursor {
        let (then, now) = (self.items_above, items.above());
        let moved = |line: usize| if line < then { line } else { line - then + now };
        let picked = self.notes;
        let top = Scroll { line: moved(picked.top.line), ..picked.top };
        ListCursor { line: picked.line.map(moved), top }
    }

    /// The index of the selected item among the notes.
    pub(super) fn picked_note(&self, run: &RunData) -> Option<usize> {
        note_items(run).and_then(|items| self.notes_picked(&items).line)
    }
}

/// Whether the answer's pane is still growing.
pub(super) fn is_answer_growing(run: &RunData) -> bool {
    run.shown().progress.is_live() && run.shown().progress.answer.is_none()
}

/// The window of a list: at its end while the list grows, else at its start.
fn list_window(
    picked: ListCursor,
    comes: bool,
    lines: &impl WrappingLines,
    height: usize,
) -> (Scroll, Option<usize>) {
    match picked.line {
        None if !comes => (Scroll::default(), None),
        _ => picked.position(lines, height),
    }
}

/// The first note that the answer cites, or that stopped the run.
fn first_cited(research: &Research) -> Option<&NoteRow> {
    research.note(research.citations.first().or_else(|| failed_note(research))?)
}

/// The first note that cannot support an answer.
fn failed_note(research: &Research) -> Option<&NoteId> {
    research.verified.as_ref()?.issues.first().map(|issue| &issue.note)
}

/// The source that is being read, or was read last; once the run has ended, the last source with a page
/// that was read, if there is one.
fn current_source(research: &Research, live: bool) -> Option<SourceNo> {
    let latest = |so: &dyn Fn(&SourceState) -> bool| {
        let opened = research.kept().filter(|row| row.opened.is_some() && so(&row.state));
        opened.max_by_key(|row| (row.opened, row.span)).map(|row| row.no)
    };
    let read = |state: &SourceState| matches!(state, SourceState::Read { .. });
    let read = (!live).then(|| latest(&read)).flatten();
    read.or_else(|| latest(&|_| true))
}

/// The origin of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JumpOrigin {
    /// A sentence of the answer, and which of its citations is shown; both from 0.
    Sentence(usize, usize),
    /// The notes pane.
    Notes,
}

impl View for ResearchView {
    fn tabs(&self) -> [&'static str; 4] {
        ["Sources", "Page", "Answer", "Notes"]
    }

    fn answer_pane(&self) -> Pane {
        Pane::Third
    }

    fn layout(&self, _run: &RunData, page: Rect) -> PaneSizes {
        // The rows of sources are wide; the answer and the notes get nearly equal shares.
        let inner = inner_columns(page);
        PaneSizes {
            rows: RowSize::Texts,
            first: inner.saturating_mul(62) / 100,
            third: inner.saturating_mul(48) / 100,
            ended: None,
        }
    }

    fn on_move(&mut self, run: &RunData, at: PaneAt<'_>, action: Action) {
        self.move_in(run, at, action);
    }

    fn on_wheel(&mut self, run: &RunData, at: PaneAt<'_>, by: isize) -> bool {
        self.wheel(run, at.pane, by, at.areas);
        true
    }

    fn on_click(&mut self, run: &RunData, at: PaneAt<'_>, _col: u16, row: u16) {
        if let Some(area) = at.area() {
            self.click(run, at, area, row);
        }
    }

    fn on_cause(&mut self, run: &RunData, focus: Pane) -> Jumped {
        self.jump_from(run, focus)
    }

    fn clear_selection(&mut self, with_tool: bool) -> bool {
        let any = self.about != PageSubject::Follow
            || self.top.is_some()
            || self.answer.line.is_some()
            || self.notes.line.is_some();
        if with_tool || !any {
            return false;
        }
        *self = Self { layout: self.layout.take(), ..Self::default() };
        true
    }

    // Drawing a frame never lays out a page.
    fn refresh(&mut self, run: &RunData) {
        let Some(no) = self.page_source(run) else { return };
        let Some(research) = run.shown().research() else { return };
        let stands = match (&self.layout, PageLayout::key_for(research, no)) {
            (_, None) => true,
            (Some(reading), Some(made)) => reading.has_key(made),
            (None, Some(_)) => false,
        };
        if !stands {
            self.layout = PageLayout::lay_out(research, no);
        }
    }

    fn target(&self, run: &RunData, focus: Pane) -> Option<InspectTarget> {
        let target = self.pane_target(run, focus);
        target.or_else(|| self.subject_call(run).map(InspectTarget::Call))
    }

    fn subject_call(&self, run: &RunData) -> Option<SpanId> {
        research_call(run)
    }

    fn text(&self, run: &RunData, focus: Pane) -> Option<String> {
        self.pane_text(run, focus)
    }

    fn available(&self, run: &RunData, focus: Pane, action: Action) -> Result<(), Why> {
        Why::unless(action == Action::Cause && self.can_jump(run, focus))
    }

    fn rank(&self, _run: &RunData, action: Action) -> Option<u8> {
        // An answer is read together with its pages and notes.
        match action {
            Action::NextPane => Some(3),
            Action::NewRun => Some(6),
            _ => None,
        }
    }

    fn pane(&self, data: &RunData, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => sources::render(self, data, cx, area, buf),
            Pane::Second => page_pane::render(self, data, cx, area, buf),
            Pane::Third => items::answer(self, data, cx, area, buf),
            Pane::Fourth => items::notes(self, data, cx, area, buf),
            Pane::Events => {}
        }
    }

    fn title(&self, data: &RunData, pane: Pane, cx: &DrawContext, inside: Rect) -> PaneTitle {
        let aside = aside(self, data, pane, inside);
        match pane {
            Pane::Second => {
                PaneTitle { aside, ..PaneTitle::with_sign(page_pane::title(self, data, cx)) }
            }
            _ => {
                let notes = vec![model(data, cx, pane), follows(self, data, cx, pane)];
                PaneTitle { notes, aside, ..PaneTitle::plain(pane_title(self.titles(), pane)) }
            }
        }
    }

    fn track(&self, data: &RunData, cx: &DrawContext, row: TrackRow, buf: &mut Buffer) {
        steps::render(data, cx, row.area, buf);
    }

    fn track_columns(&self, _data: &RunData) -> (u16, u16) {
        (58, 58)
    }

    fn advice_pane(&self) -> Pane {
        Pane::Third
    }
}

/// Width limit of a model's name after a title.
const MODEL: usize = 24;

/// The model that wrote the pane's content, after its title; empty if the run uses one model.
pub(crate) fn model(data: &RunData, cx: &DrawContext, pane: Pane) -> String {
    let models = &data.shown().models;
    let model = match pane {
        Pane::Third => models.for_step(ScriptStep::Synthesize),
        Pane::Fourth => models.for_step(ScriptStep::Notes),
        _ => None,
    };
    let Some(model) = model else { return String::new() };
    format!(" {} {}", cx.glyphs.symbol(Glyph::Dot), elide_middle(model, MODEL, cx.glyphs))
}

/// Whether the pane follows the run, after its title.
pub(crate) fn follows(view: &ResearchView, data: &RunData, cx: &DrawContext, pane: Pane) -> String {
    // Only a live run can be followed.
    let live = data.shown().progress.is_live() && !data.is_scrubbed();
    if !live || pane == Pane::Second {
        return String::new();
    }
    follow_note(cx, view.follows(pane))
}

/// The end of a pane's title: the range of rows in view if they do not all fit, and totals.
pub(crate) fn aside(view: &ResearchView, data: &RunData, pane: Pane, area: Rect) -> String {
    let Some(research) = data.shown().research() else { return String::new() };
    match pane {
        Pane::First => view.source_list(data, area).0.range_text(),
        Pane::Third => match answer_items(data) {
            Some(_) if research.sentences.is_empty() => String::new(),
            Some(_) => {
                let all = research.sentences.len();
                let cited = research.sentences.iter().filter(|it| !it.citations.is_empty()).count();
                format!("{cited} of {} cited", format::count_noun(all as u64, "sentence"))
            }
            None => String::new(),
        },
        Pane::Fourth => {
            let mut parts = Vec::new();
            for (count, word) in [
                (research.compared.conflicts.len(), "in conflict"),
                (research.refused.len(), "refused"),
                (research.compared.unconfirmed.len(), "unconfirmed"),
            ] {
                let piece = format!("{count} {word}");
                let taken: usize = parts.iter().map(|part: &String| part.len() + 2).sum();
                if count > 0 && taken + piece.len() + 30 <= usize::from(area.width) {
                    parts.push(piece);
                }
            }
            parts.join(", ")
        }
        Pane::Second | Pane::Events => String::new(),
    }
}
