//! The inbox: the open questions of all runs, the interrupted runs that wait for people, and the
//! approvals that runs remember.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{Overlay, card};
use crate::log::event::{Command, Initiator, RunId};
use crate::log::world::questions::RememberedApproval;
use crate::log::world::run_row::RunRow;
use crate::screen::action::Action;
use crate::screen::effect::{Effect, Update};
use crate::screen::home::history::RunList;
use crate::screen::home::kept;
use crate::screen::keymap::key_of;
use crate::screen::layout::{DrawerParts, Size, centred, inside};
use crate::screen::list::{Column, ListState, heads, keep_in_view, row};
use crate::screen::questions::{ListedQuestion, approve_marked, mark, open_questions};
use crate::screen::run::RunPage;
use crate::screen::state::{ActiveScreen, AppState};
use crate::screen::text::Pen;
use crate::screen::widgets::{empty, scroll_arrows};
use crate::screen::{DrawContext, frame};
use crate::words::format::count_noun;
use crate::words::glyph::Glyph;
use crate::words::measure::single_line;
use crate::words::question::{
    age_text, asker, inbox_text, left_text, remembered_text, shortened_waits, waits_text,
};
use crate::words::styled::StyleRole;

/// Maximum size of the window.
const MAX_SIZE: (u16, u16) = (120, 30);
/// Columns of the run, of who asks whom, of the age and of the deadline.
const RUN: u16 = 8;
const NAMES: u16 = 26;
const AGE: u16 = 8;
const LEFT: u16 = 11;

/// The inbox over a screen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inbox {
    pub list: ListState,
}

/// A line of the inbox.
#[derive(Clone, Copy, Debug)]
pub(super) enum InboxLine<'a> {
    Question(ListedQuestion<'a>),
    /// A kept run that was interrupted while it waited.
    Interrupted(&'a RunRow),
    /// The heading of a group.
    Heading(&'static str),
    Approval(&'a RunPage, &'a RememberedApproval),
}

/// The lines of the inbox: the questions, the interrupted runs that wait, the approvals.
pub(super) fn lines(list: RunList<'_>) -> Vec<InboxLine<'_>> {
    let RunList { runs, history } = list;
    let mut lines: Vec<InboxLine<'_>> = open_questions(runs).map(InboxLine::Question).collect();
    let mut waiting = history.waiting(runs).map(InboxLine::Interrupted).peekable();
    if waiting.peek().is_some() {
        lines.push(InboxLine::Heading("Interrupted runs"));
        lines.extend(waiting);
    }
    let live = runs.iter().filter(|page| page.world().progress.is_live());
    let approvals: Vec<InboxLine<'_>> = live
        .flat_map(|page| {
            let remembered = page.world().questions.remembered().iter();
            remembered.map(move |approval| InboxLine::Approval(page, approval))
        })
        .collect();
    if !approvals.is_empty() {
        lines.push(InboxLine::Heading("Remembered approvals"));
        lines.extend(approvals);
    }
    lines
}

/// The lines that can be selected.
pub(super) fn choices(lines: &[InboxLine<'_>]) -> Vec<usize> {
    (0..lines.len()).filter(|at| !matches!(lines[*at], InboxLine::Heading(_))).collect()
}

impl Inbox {
    /// The window, its list and the row of column heads above the list.
    pub(super) fn parts(&self, size: Size, lines: usize) -> DrawerParts {
        let (cols, rows) = MAX_SIZE;
        let wanted = u16::try_from(lines.max(1)).unwrap_or(u16::MAX).saturating_add(3);
        let window = centred(size.body(), cols, wanted.clamp(4, rows));
        let inner = inside(window);
        let head = inner.height.min(1);
        let list = Rect { y: inner.y + head, height: inner.height - head, ..inner };
        let note = Rect { height: head, ..inner };
        let shown = usize::from(list.height);
        let top = keep_in_view(self.list.top, self.list.selected, shown, lines);
        DrawerParts { window, list, note, top }
    }
}

/// Opens the inbox.
pub(crate) fn open(state: &mut AppState) -> Update {
    let run = shown_run(state);
    let is_of_run = |line: &InboxLine<'_>| match line {
        InboxLine::Question(question) => run.as_ref() == Some(question.page.id()),
        InboxLine::Interrupted(row) => run.as_ref() == Some(&row.id),
        InboxLine::Heading(_) | InboxLine::Approval(..) => false,
    };
    let mut inbox = Inbox::default();
    inbox.list.selected = lines(state.listed()).iter().position(is_of_run).unwrap_or_default();
    state.overlays.push(Overlay::Inbox(inbox));
    settle(state);
    Update::redraw()
}

/// The run on the screen, else the selected one.
fn shown_run(state: &AppState) -> Option<RunId> {
    match &state.screen {
        ActiveScreen::Run(id) => Some(id.clone()),
        ActiveScreen::Home => state.selected_run().map(|run| run.id().clone()),
    }
}

/// What the selected line is; the last line that can be selected if the list has become shorter.
fn selected<'a>(inbox: &Inbox, list: RunList<'a>) -> Option<InboxLine<'a>> {
    let lines = lines(list);
    let choices = choices(&lines);
    let at = choices.iter().rfind(|at| **at <= inbox.list.selected).or(choices.first())?;
    lines.get(*at).copied()
}

/// Whether an action does something in the inbox now.
pub(crate) fn offers(inbox: &Inbox, state: &AppState, action: Action) -> bool {
    let line = selected(inbox, state.listed());
    match action {
        Action::OpenCard => {
            matches!(line, Some(InboxLine::Question(_) | InboxLine::Interrupted(_)))
        }
        Action::Mark => matches!(line, Some(InboxLine::Question(_))),
        Action::WithdrawApproval => matches!(line, Some(InboxLine::Approval(..))),
        Action::ApproveMarked => !state.inbox.marked(&state.runs).is_empty(),
        Action::Up | Action::Down => choices(&lines(state.listed())).len() > 1,
        _ => true,
    }
}

/// Handles an action in the inbox.
pub(crate) fn on_action(state: &mut AppState, action: Action) -> Update {
    let Some(Overlay::Inbox(inbox)) = state.overlays.last() else { return Update::idle() };
    let line = selected(inbox, state.listed());
    match (action, line) {
        (Action::Cancel | Action::Back, _) => {
            state.overlays.pop();
            Update::redraw()
        }
        (Action::OpenCard, Some(InboxLine::Question(question))) => {
            let key = question.key();
            card::open(state, &key)
        }
        (Action::OpenCard, Some(InboxLine::Interrupted(row))) => {
            let row = row.clone();
            state.overlays.clear();
            kept::open(state, row)
        }
        (Action::Mark, Some(InboxLine::Question(question))) => {
            let key = question.key();
            mark(state, &key)
        }
        (Action::ApproveMarked, _) => approve_marked(state),
        (Action::WithdrawApproval, Some(InboxLine::Approval(page, approval))) => {
            let command = Command::WithdrawApproval { id: approval.id, by: Initiator::You };
            Update::effect(Effect::Command { run: page.id().clone(), command })
        }
        (action, _) => super::move_in_list(state, action),
    }
}

/// Keeps the selection on a line that exists.
pub(crate) fn settle(state: &mut AppState) {
    let AppState { overlays, runs, history, .. } = state;
    for overlay in overlays.iter_mut() {
        let Overlay::Inbox(inbox) = overlay else { continue };
        let lines = lines(RunList { runs, history });
        let choices = choices(&lines);
        let at = choices.iter().rfind(|at| **at <= inbox.list.selected).or(choices.first());
        inbox.list.selected = at.copied().unwrap_or_default();
    }
}

/// Draws the inbox.
pub fn render(inbox: &Inbox, state: &AppState, cx: &DrawContext, buf: &mut Buffer) {
    let lines = lines(state.listed());
    let parts = inbox.parts(state.size, lines.len());
    let count = open_questions(&state.runs).count();
    let foot = count_noun(count as u64, "open question");
    frame::window("Inbox", &foot, cx, parts.window, buf);
    if lines.is_empty() {
        let area = Rect { height: parts.list.height, ..parts.list };
        let text = "No questions: an agent or a tool that needs a person asks here.";
        return empty(cx, area, text, buf);
    }
    if count > 0 {
        let all = [
            Column::left("run", RUN),
            Column::left("asks", names(parts.list.width)),
            Column::left("about", rest(parts.list.width)),
            Column::right("open for", AGE),
            Column::right("deadline", LEFT),
        ];
        heads(cx, Pen::new(buf, parts.note, cx.glyphs).space(3), &all);
    }
    let shown = lines.iter().enumerate().skip(parts.top);
    for ((at, line), y) in shown.zip(parts.list.y..parts.list.bottom()) {
        let area = Rect { y, height: 1, ..parts.list };
        let is_selected = at == inbox.list.selected;
        match line {
            InboxLine::Question(question) => {
                question_row(question, state, cx, area, is_selected, buf);
            }
            InboxLine::Interrupted(run) => interrupted_row(run, cx, area, is_selected, buf),
            InboxLine::Heading(text) => {
                let mut pen = Pen::new(buf, area, cx.glyphs);
                pen.space(1).put(text, cx.theme.style(StyleRole::Title)).space(1);
                let width = pen.left();
                pen.glyphs(Glyph::Horizontal, width, cx.theme.style(StyleRole::Border));
            }
            InboxLine::Approval(page, approval) => {
                approval_row(page.id(), approval, cx, area, is_selected, buf);
            }
        }
    }
    let hidden = [parts.top > 0, parts.top + usize::from(parts.list.height) < lines.len()];
    scroll_arrows(cx, parts.window.right().saturating_sub(1), parts.list, hidden, buf);
}

/// Columns of what a question is about.
fn rest(width: u16) -> u16 {
    width.saturating_sub(3 + RUN + names(width) + AGE + LEFT + 1).max(8)
}

/// Columns of who asks whom.
fn names(width: u16) -> u16 {
    if width < 100 { NAMES - 6 } else { NAMES }
}

fn question_row(
    listed: &ListedQuestion<'_>,
    state: &AppState,
    cx: &DrawContext,
    area: Rect,
    is_selected: bool,
    buf: &mut Buffer,
) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let asked = &listed.question.asked;
    let width = area.width;
    let mut pen = row(cx, area, is_selected, buf);
    let is_marked = state.inbox.is_marked(&listed.key());
    match is_marked {
        true => pen.glyph(Glyph::SlotFull, cx.theme.style(StyleRole::Notice)),
        false => pen.glyph(Glyph::NeedsYou, cx.theme.waiting_style()),
    };
    pen.space(1);
    pen.cell(listed.page.id().as_str(), RUN - 1, plain).space(1);
    let by = asker(listed.question, listed.page.world());
    let names_text = format!("{by} {} {}", cx.glyphs.symbol(Glyph::Arrow), asked.who);
    pen.name(&names_text, names(width) - 1, plain).space(1);
    let about_columns = rest(width);
    let about_end = pen.x() + about_columns;
    if state.screen == ActiveScreen::Run(listed.page.id().clone()) {
        pen.put("this run: ", cx.theme.style(StyleRole::Strong));
    }
    let room = |pen: &Pen<'_>| about_end.saturating_sub(pen.x() + 1);
    let columns = room(&pen);
    pen.put_within(&single_line(&inbox_text(&asked.subject)), columns, plain);
    if let Some(head) = &listed.page.world().head {
        let (columns, dot) = (room(&pen), cx.glyphs.symbol(Glyph::Dot));
        let run = single_line(&format!(" {dot} {}: {}", head.scenario, head.goal));
        pen.put_within(&run, columns, dim);
    }
    pen.advance_to(about_end);
    let age = age_text(listed.question, state.elapsed(listed.page));
    pen.right_aligned(&age, AGE, dim);
    let left = left_text(asked, state.inbox.wall_ms(state.now));
    let left = left.unwrap_or_else(|| if asked.due_ms.is_some() { "" } else { "none" }.to_owned());
    pen.right_aligned(&left, LEFT, dim);
}

fn interrupted_row(
    run: &RunRow,
    cx: &DrawContext,
    area: Rect,
    is_selected: bool,
    buf: &mut Buffer,
) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let mut pen = row(cx, area, is_selected, buf);
    pen.glyph(Glyph::NeedsYou, cx.theme.waiting_style()).space(1);
    pen.cell(run.id.as_str(), RUN - 1, plain).space(1);
    let waits = waits_text(run.waits_for.iter()).unwrap_or_default();
    let width = names(area.width) - 1;
    pen.name(shortened_waits(&waits, width), width, plain).space(1);
    let (open, resume) = (key_of(Action::OpenCard), key_of(Action::PauseResume));
    let left = pen.left();
    let text = format!("{}: {open} opens it; there {resume} continues", run.scenario);
    pen.put_within(&text, left, dim);
}

fn approval_row(
    run: &RunId,
    approval: &RememberedApproval,
    cx: &DrawContext,
    area: Rect,
    is_selected: bool,
    buf: &mut Buffer,
) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let mut pen = row(cx, area, is_selected, buf);
    pen.glyph(Glyph::Done, cx.theme.style(StyleRole::Done)).space(1);
    pen.cell(run.as_str(), RUN - 1, plain).space(1);
    let uses = count_noun(approval.uses, "use");
    let width = pen.left().saturating_sub(LEFT + 1);
    let text = remembered_text(approval.tool.as_str(), approval.agent.as_deref());
    pen.cell(&text, width, plain).right_aligned(&uses, LEFT, dim);
}
