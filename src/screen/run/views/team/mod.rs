//! The view of a coordinator team or a swarm: the sequence diagram, and in pane 2 the agents, the
//! selected hop or question, or the outcome of the run.

mod agents;
mod chain;
mod lanes;
mod sequence;

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::agents::AgentList;
use self::sequence::{Diagram, Sequence, SequenceRow, hop_sign, question_sign, question_words};
use super::agents::{LowerPanes, add_outcome, agents_in_picture, calls, transcript};
use super::{PaneAt, PaneTitle, TrackRow, View, follow_note, has_swarms, pane_title};
use crate::base::name::AgentName;
use crate::base::time;
use crate::log::event::{Answer, QuestionId, SpanId};
use crate::log::world::agents::{HopKind, HopRow, HopState};
use crate::log::world::questions::{QuestionEnd, QuestionRow};
use crate::log::world::{RunState, World};
use crate::screen::DrawContext;
use crate::screen::action::Action;
use crate::screen::key_hints::Why;
use crate::screen::list::{RowCursor, part_in_view, stepped_index};
use crate::screen::run::data::RunData;
use crate::screen::run::inspector::{InspectTarget, WrappedDocument};
use crate::screen::run::layout::{EndedSize, Pane, PaneSizes, RowSize, inner_columns};
use crate::screen::run::pane_text::{MAX_ROWS, rows_scrolled, text_area};
use crate::screen::scroll::{Scroll, WrappingLines, draw_scrolled};
use crate::screen::theme::StateSign;
use crate::screen::windows::card::add_subject;
use crate::words::glyph::Glyph;
use crate::words::question::{asker, row_end_text};
use crate::words::styled::{Badge, StyleRole, StyledText};
use crate::words::{badges, format};

/// Selections and scroll positions in the panes of a team.
#[derive(Debug, Default)]
pub struct TeamView {
    pub(crate) agent: Option<AgentName>,
    pub(crate) hops: RowCursor,
    /// The first row in view of the text in pane 2.
    scroll: Scroll,
    pub(crate) lower: LowerPanes,
}

impl TeamView {
    pub fn selected_agent(&self) -> Option<&AgentName> {
        self.agent.as_ref()
    }

    /// The rows of the diagram in view in a window of this height, and the selected one.
    pub fn hop_rows(&self, run: &RunData, height: usize) -> (Range<usize>, Option<usize>) {
        let len = Sequence::of(run).map_or(0, |sequence| sequence.len());
        let rows = self.hops;
        let selected = rows.cursor.and(rows.row(len)).filter(|_| self.agent.is_none());
        (rows.window(len, height), selected)
    }

    /// Whether the hops follow the newest one.
    pub fn follows_hops(&self) -> bool {
        self.hops.cursor.is_none()
    }

    /// The call tree and the transcript.
    pub fn lower(&self) -> &LowerPanes {
        &self.lower
    }

    fn select_agent(&mut self, agent: Option<AgentName>) {
        self.agent = agent;
        self.scroll.reset();
    }

    fn select_hops(&mut self, hops: RowCursor) {
        self.hops = hops;
        self.select_agent(None);
    }

    fn move_among_agents(&mut self, run: &RunData, action: Action) {
        let Some(team) = run.shown().agents() else { return };
        let all: Vec<&AgentName> = agents_in_picture(&team.plan).collect();
        let at = self.agent.as_ref().and_then(|name| all.iter().position(|it| *it == name));
        let holder = team.in_control.as_ref();
        // The first step selects the agent in control.
        let first = holder.and_then(|it| all.iter().position(|name| *name == it)).unwrap_or(0);
        if let Some(to) = stepped_index(action, at, first, all.len()) {
            self.select_agent(all.get(to).map(|name| (*name).clone()));
        }
    }

    fn move_among_hops(&mut self, run: &RunData, at: PaneAt<'_>, action: Action) {
        let Some(sequence) = Sequence::of(run) else { return };
        let diagram = at.area().and_then(|area| Diagram::of(run, area));
        let rows = diagram.map_or(1, |diagram| usize::from(diagram.rows.height)).max(1);
        self.select_hops(self.hops.after_action(action, sequence.len(), rows));
    }

    fn scroll_text(&mut self, run: &RunData, area: Option<Rect>, by: isize) {
        if let Some((area, document)) = area.zip(self.document(run)) {
            self.scroll = self.scroll.step_in(by, &document, area);
        }
    }
}

impl View for TeamView {
    fn tabs(&self) -> [&'static str; 4] {
        ["Hops", "Agents", "Calls", "Transcript"]
    }

    fn asking_pane(&self) -> Pane {
        Pane::Fourth
    }

    fn titles(&self) -> [&'static str; 4] {
        ["Hops", "Agents", "Call tree", "Transcript"]
    }

    fn shows_outcome(&self, run: &RunData) -> bool {
        self.is_about_outcome(run)
    }

    fn layout(&self, run: &RunData, page: Rect) -> PaneSizes {
        // The diagram needs the width; the texts below have theirs at the right.
        let inner = inner_columns(page);
        let share = |percent: u16| inner.saturating_mul(percent) / 100;
        let ended = Sequence::of(run).filter(|_| run.shown().progress.closed.is_some());
        let ended = ended.map(|sequence| {
            let left = share(56);
            let document = self.outcome_document(run);
            let width = (inner - left).saturating_sub(2);
            let lines = WrappedDocument { document: &document, width };
            let area = Rect { width: left, ..page };
            let head = Diagram::of(run, area).map_or(1, |diagram| diagram.head.height);
            let rows = sequence.len().min(usize::from(MAX_ROWS)) as u16;
            // A blank row before the legend.
            EndedSize {
                left,
                picture: head + rows + 2,
                outcome: lines.rows_within(MAX_ROWS),
                rows: u16::MAX,
            }
        });
        PaneSizes { rows: RowSize::Texts, first: share(64), third: share(43), ended }
    }

    fn on_move(&mut self, run: &RunData, at: PaneAt<'_>, action: Action) {
        match (at.pane, rows_scrolled(action, at.area())) {
            (Pane::First, _) if matches!(action, Action::Left | Action::Right) => {
                self.move_among_agents(run, action);
            }
            (Pane::First, _) => self.move_among_hops(run, at, action),
            (Pane::Second, Some(by)) if self.document(run).is_some() => {
                self.scroll_text(run, at.area(), by);
            }
            (Pane::Second, _) => self.move_among_agents(run, action),
            (Pane::Third | Pane::Fourth, _) => self.lower.on_move(run, at, action),
            (Pane::Events, _) => {}
        }
    }

    fn on_wheel(&mut self, run: &RunData, at: PaneAt<'_>, by: isize) -> bool {
        let Some(area) = at.area() else { return true };
        match at.pane {
            Pane::First => {
                let len = Sequence::of(run).map_or(0, |sequence| sequence.len());
                let rows = Diagram::of(run, area).map_or(1, |diagram| diagram.rows.height).max(1);
                self.select_hops(self.hops.after_wheel(by, len, usize::from(rows)));
            }
            Pane::Second if self.document(run).is_some() => {
                self.scroll_text(run, Some(area), by);
            }
            Pane::Second => self.move_among_agents(run, Action::of_wheel(by)),
            Pane::Third | Pane::Fourth => self.lower.on_wheel(run, at.pane, area, by),
            Pane::Events => {}
        }
        true
    }

    fn on_click(&mut self, run: &RunData, at: PaneAt<'_>, col: u16, row: u16) {
        let (pane, Some(area)) = (at.pane, at.area()) else { return };
        match pane {
            Pane::First => {
                let Some(diagram) = Diagram::of(run, area) else { return };
                if let Some(agent) = diagram.named_at(col, row) {
                    return self.select_agent(Some(agent.clone()));
                }
                let height = usize::from(diagram.rows.height);
                let (window, _) = self.hop_rows(run, height);
                let Some(line) = row.checked_sub(diagram.rows.y).map(usize::from) else { return };
                if line < window.len() {
                    let len = Sequence::of(run).map_or(0, |sequence| sequence.len());
                    self.select_hops(self.hops.select(window.start + line, len, height));
                }
            }
            Pane::Second if self.document(run).is_none() => {
                let Some(team) = run.shown().agents() else { return };
                let list = AgentList::of(&team.plan, self.selected_agent(), area);
                if let Some(agent) = list.agent_at(&team.plan, row) {
                    self.select_agent(Some(agent.clone()));
                }
            }
            Pane::Third | Pane::Fourth => {
                self.lower.on_click(run, pane, area, usize::from(row - area.y));
            }
            Pane::Second | Pane::Events => {}
        }
    }

    fn clear_selection(&mut self, with_tool: bool) -> bool {
        let any = self.agent.is_some() || self.hops.cursor.is_some() || self.lower.has_selection();
        if with_tool || !any {
            return false;
        }
        let mut lower = std::mem::take(&mut self.lower);
        lower.clear_selection();
        *self = Self { lower, ..Self::default() };
        true
    }

    fn reset_scroll(&mut self) -> bool {
        self.scroll.reset()
    }

    fn target(&self, run: &RunData, focus: Pane) -> Option<InspectTarget> {
        let target = self.pane_target(run, focus);
        target.or_else(|| self.subject_call(run).map(InspectTarget::Call))
    }

    fn question(&self, run: &RunData, focus: Pane) -> Option<QuestionId> {
        let TeamSubject::Question(row) = self.subject(run) else { return None };
        let world = run.world();
        let id = row.question.asked.id;
        let is_open = world.progress.is_live() && world.questions.get(id).is_some();
        (matches!(focus, Pane::First | Pane::Second) && is_open).then_some(id)
    }

    fn subject_call(&self, run: &RunData) -> Option<SpanId> {
        self.holder_call(run)
    }

    fn text(&self, run: &RunData, focus: Pane) -> Option<String> {
        self.pane_text(run, focus)
    }

    fn available(&self, run: &RunData, _focus: Pane, action: Action) -> Result<(), Why> {
        Why::unless(match action {
            Action::Message => true,
            Action::Members => has_swarms(run),
            _ => false,
        })
    }

    fn rank(&self, run: &RunData, action: Action) -> Option<u8> {
        if !run.world().progress.is_live() {
            return None;
        }
        // A team at work is watched, sent messages and changed: a new run can wait.
        match action {
            Action::NextPane | Action::Message | Action::Members => Some(3),
            Action::NewRun => Some(6),
            _ => None,
        }
    }

    fn pane(&self, data: &RunData, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => sequence::render(self, data, cx, area, buf),
            Pane::Second => match self.document(data) {
                Some(text) => draw_scrolled(cx, text_area(area), &text, self.scroll, buf),
                None => agents::render(self, data, cx, area, buf),
            },
            Pane::Third => calls::render(self.lower(), data, cx, area, buf),
            Pane::Fourth => transcript::render(self.lower(), data, cx, area, buf),
            Pane::Events => {}
        }
    }

    fn title(&self, data: &RunData, pane: Pane, cx: &DrawContext, inside: Rect) -> PaneTitle {
        let notes = vec![follows(self, data, cx, pane)];
        let aside = rows_in_view(self, data, pane, inside);
        PaneTitle { notes, aside, ..PaneTitle::with_sign(title(self, data, cx, pane)) }
    }

    fn track(&self, data: &RunData, cx: &DrawContext, row: TrackRow, buf: &mut Buffer) {
        chain::render(data, cx, row.area, buf);
    }

    fn track_columns(&self, _data: &RunData) -> (u16, u16) {
        (48, u16::MAX)
    }
}

/// The subject of pane 2.
#[derive(Clone, Copy, Debug)]
pub enum TeamSubject<'a> {
    Agents,
    /// A hop, with its index.
    Hop(usize, &'a HopRow),
    Question(&'a QuestionRow),
    Outcome,
}

impl TeamView {
    /// The subject in the world that is shown.
    pub fn subject<'a>(&self, run: &'a RunData) -> TeamSubject<'a> {
        let ended = run.shown().progress.stage == RunState::Closed;
        if self.selected_agent().is_some() {
            return TeamSubject::Agents;
        }
        match self.selected_row(run) {
            Some(SequenceRow::Hop(at, hop)) => TeamSubject::Hop(at, hop),
            Some(SequenceRow::Question(_, row)) => TeamSubject::Question(row),
            Some(SequenceRow::Asked(_)) => TeamSubject::Agents,
            Some(SequenceRow::Ended(_)) => TeamSubject::Outcome,
            None if ended => TeamSubject::Outcome,
            None => TeamSubject::Agents,
        }
    }

    fn is_about_outcome(&self, run: &RunData) -> bool {
        matches!(self.subject(run), TeamSubject::Outcome)
    }

    fn selected_row<'a>(&self, run: &'a RunData) -> Option<SequenceRow<'a>> {
        let sequence = Sequence::of(run)?;
        sequence.row(self.hops.cursor.and(self.hops.row(sequence.len()))?)
    }

    fn outcome_document(&self, run: &RunData) -> StyledText {
        let mut text = StyledText::default();
        add_outcome(run, self.holder_call(run), &mut text);
        text
    }

    /// The text of pane 2; `None`: it shows the agents.
    pub fn document(&self, run: &RunData) -> Option<StyledText> {
        let mut text = StyledText::default();
        match self.subject(run) {
            TeamSubject::Agents => return None,
            TeamSubject::Hop(at, hop) => add_hop(run.shown(), at, hop, &mut text),
            TeamSubject::Question(row) => add_question(run.shown(), row, &mut text),
            TeamSubject::Outcome => add_outcome(run, self.holder_call(run), &mut text),
        }
        Some(text)
    }
}

fn add_hop(world: &World, at: usize, hop: &HopRow, text: &mut StyledText) {
    text.field("hop", (at + 1).to_string());
    let from = match (&hop.from, hop.depth) {
        (Some(from), _) => from.as_str(),
        (None, 0) => "you",
        (None, _) => hop.team.as_str(),
    };
    text.field("from", from);
    text.field("to", hop.to.as_str());
    let how = match (&hop.state, hop.kind) {
        (HopState::Refused(_), _) => "hands over: refused",
        (_, HopKind::Start) => "starts with it",
        (_, HopKind::Handoff) => "hands over: control is passed",
        (_, HopKind::Consult) => "consults: control returns",
        (_, HopKind::Next) => "follows, or works beside others",
    };
    text.field("how", how);
    let badge = |glyph, role| Badge::new(glyph, "", role);
    match &hop.state {
        HopState::Running => match world.question_within(hop.span) {
            Some(question) => {
                let badge = badge(Glyph::NeedsYou, StyleRole::NeedsYou);
                text.signed("state", badge, format!("waits for {}", question.asked.who));
            }
            None if world.progress.is_live() => {
                text.signed("state", badge(Glyph::Running, StyleRole::Running), "working");
            }
            None => text.signed("state", badge(Glyph::Off, StyleRole::Off), "stopped"),
        },
        HopState::Done => text.signed("state", badge(Glyph::Done, StyleRole::Done), "replied"),
        HopState::HandedOver => {
            text.signed("state", badge(Glyph::Done, StyleRole::Done), "handed over");
        }
        HopState::Degraded { by, reason } => {
            text.warning("state", format!("{}; {}", reason.phrase(), by.word()));
        }
        HopState::Failed(reason) => text.error("state", reason.phrase()),
        HopState::Refused(why) => {
            text.signed("state", badge(Glyph::Refused, StyleRole::Refused), why.to_string());
        }
    }
    text.field("at", format::time_in_run(world.progress.run_time(hop.at)));
    if let Some(until) = hop.until.filter(|until| *until > hop.at) {
        let took = world.progress.active_between(hop.at, until);
        text.field("took", time::duration_text(took));
    }
    if let Some(tokens) = hop.context_tokens {
        text.field("context", format!("{} tokens", format::exact(tokens)));
    }
    if let Some(message) = hop.message.as_deref().filter(|message| !message.is_empty()) {
        text.gap();
        text.text(StyleRole::Text, message);
    }
}

fn add_question(world: &World, row: &QuestionRow, text: &mut StyledText) {
    let asked = &*row.question.asked;
    text.field("from", asker(&row.question, world));
    text.field("to", asked.who.as_str());
    let badge = badges::question(row, world.progress.is_live());
    let state = match row_end_text(row) {
        Some(end) => end,
        None if world.progress.is_live() => format!("waits for {}", asked.who),
        None => badge.word.to_owned(),
    };
    text.signed("state", Badge { word: "", ..badge }, state);
    text.field("at", format::time_in_run(world.progress.run_time(row.question.at)));
    let answer = match &row.ended {
        Some((_, QuestionEnd::Answered(answered))) => Some(&answered.answer),
        _ => None,
    };
    if let Some(said) = answer.and_then(Answer::text) {
        text.paragraph("answer", said);
    }
    text.gap();
    let changed = match answer {
        Some(Answer::Approve { args }) => args.as_ref(),
        _ => None,
    };
    add_subject(text, asked, changed, world);
    if let Some(why) = asked.why.as_deref().filter(|why| !why.trim().is_empty()) {
        text.paragraph("why", why.trim());
    }
    if let Some(rule) = &asked.rule {
        text.field("rule", rule);
    }
}

impl TeamView {
    /// The last call of the agent that answered, or that is in control.
    fn holder_call(&self, run: &RunData) -> Option<SpanId> {
        let team = run.shown().agents()?;
        let holder = team.answered_by.as_ref().or(team.in_control.as_ref());
        team.agent(holder.or(team.plan.root.as_ref())?)?.last_call
    }

    /// The selected row of the diagram; the newest one if none is selected.
    fn row<'a>(&self, sequence: Sequence<'a>) -> Option<SequenceRow<'a>> {
        sequence.row(self.hops.row(sequence.len())?)
    }

    /// The target that Enter inspects in the panes of a team.
    pub(super) fn pane_target(&self, run: &RunData, focus: Pane) -> Option<InspectTarget> {
        let world = run.shown();
        let team = world.agents()?;
        let holder = || self.holder_call(run).map(InspectTarget::Call);
        match focus {
            Pane::First | Pane::Second => {
                if let Some(agent) = &self.agent {
                    return team.agent(agent)?.last_call.map(InspectTarget::Call);
                }
                let selected = focus == Pane::First || self.hops.cursor.is_some();
                let call = Sequence::of(run)
                    .filter(|_| selected)
                    .and_then(|sequence| sequence.call(self.row(sequence)?));
                call.map(InspectTarget::Call).or_else(holder)
            }
            Pane::Third => match self.lower.call(run) {
                Some(SpanId::RUN) => {
                    team.agent(team.plan.coordinator()?)?.last_call.map(InspectTarget::Call)
                }
                Some(call) => Some(InspectTarget::Call(call)),
                None => holder(),
            },
            Pane::Fourth => self.lower.transcript_target(run),
            Pane::Events => None,
        }
    }

    /// The text that is copied from the focused pane of a team.
    pub(crate) fn pane_text(&self, run: &RunData, focus: Pane) -> Option<String> {
        let world = run.shown();
        let team = world.agents()?;
        if let (Pane::Fourth, Some(text)) = (focus, self.lower.line_text(run)) {
            return Some(text);
        }
        if focus == Pane::First && self.agent.is_none() {
            let row = Sequence::of(run).and_then(|sequence| self.row(sequence));
            if let Some(SequenceRow::Hop(_, hop)) = row {
                let from = hop.from.as_ref().map_or("you", |from| from.as_str());
                let message = hop.message.as_deref().unwrap_or_default();
                return Some(format!("{from} -> {}  {message}", hop.to).trim_end().to_owned());
            }
            if let Some(SequenceRow::Question(_, row)) = row {
                let (by, who) = (asker(&row.question, world), &row.question.asked.who);
                return Some(format!("{by} -> {who}  {}", question_words(row)));
            }
        }
        if let (Pane::Second, TeamSubject::Hop(..) | TeamSubject::Question(_)) =
            (focus, self.subject(run))
        {
            return self.document(run).map(|document| document.to_plain());
        }
        let partial = || team.partial.as_ref().map(|(text, _)| text.to_string());
        let outcome = || match self.subject(run) {
            TeamSubject::Outcome => self.document(run).map(|document| document.to_plain()),
            _ => None,
        };
        let answer = world.progress.answer.as_ref().map(|answer| answer.to_string());
        answer.or_else(partial).or_else(outcome)
    }
}

/// The title of a pane and the state of what it shows.
pub(crate) fn title(
    view: &TeamView,
    data: &RunData,
    cx: &DrawContext,
    pane: Pane,
) -> (String, Option<StateSign>) {
    let plain = pane_title(view.titles(), pane).to_owned();
    if pane != Pane::Second {
        return (plain, None);
    }
    match view.subject(data) {
        TeamSubject::Agents => (plain, None),
        TeamSubject::Hop(at, hop) => {
            (format!("Hop {}", at + 1), Some(hop_sign(cx.theme, data.shown(), hop)))
        }
        TeamSubject::Question(row) => {
            let sign = question_sign(cx.theme, data.shown(), row);
            (format!("Question {}", row.question.asked.id), Some(sign))
        }
        TeamSubject::Outcome => ("Outcome".to_owned(), Some(cx.theme.run(data.shown()))),
    }
}

/// Whether the pane follows the run, after its title.
pub(crate) fn follows(view: &TeamView, data: &RunData, cx: &DrawContext, pane: Pane) -> String {
    let follows = match pane {
        Pane::First => view.follows_hops(),
        Pane::Fourth => view.lower().follows_transcript(),
        _ => return String::new(),
    };
    match data.shown().agents() {
        Some(_) => follow_note(cx, follows),
        None => String::new(),
    }
}

/// The range of rows in view, such as `1-11 of 12`; empty if all fit.
fn rows_in_view(view: &TeamView, data: &RunData, pane: Pane, area: Rect) -> String {
    let Some(team) = data.shown().agents() else { return String::new() };
    match pane {
        Pane::First => {
            let (Some(diagram), Some(sequence)) = (Diagram::of(data, area), Sequence::of(data))
            else {
                return String::new();
            };
            let (window, _) = view.hop_rows(data, usize::from(diagram.rows.height));
            part_in_view(&window, sequence.len())
        }
        Pane::Second if matches!(view.subject(data), TeamSubject::Agents) => {
            AgentList::of(&team.plan, view.selected_agent(), area).agents.range_text()
        }
        Pane::Third => view.lower().calls_in_view(data, area),
        _ => String::new(),
    }
}
