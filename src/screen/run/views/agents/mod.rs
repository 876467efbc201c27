//! What the panes of all agents share: the selections in the two lower panes (the tree of calls,
//! the transcript), which the view of a pattern owns; an agent's state, and the outcome of a run.

pub mod calls;
pub mod transcript;

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use ratatui::layout::Rect;
use ratatui::style::Style;

use self::calls::{CallTree, Fold, call_tree};
use self::transcript::Transcript;
use super::PaneAt;
use crate::base::name::AgentName;
use crate::base::time::duration_text;
use crate::log::event::{Elapsed, RunClosed, SpanId};
use crate::log::facts::agents::AgentsPlan;
use crate::log::world::World;
use crate::log::world::agents::{AgentRow, AgentState, AgentsFold};
use crate::screen::DrawContext;
use crate::screen::action::Action;
use crate::screen::list::{ListCursor, RowCursor, part_in_view};
use crate::screen::run::data::RunData;
use crate::screen::run::inspector::InspectTarget;
use crate::screen::run::layout::Pane;
use crate::screen::run::pane_text::{TextState, outcome_text};
use crate::screen::scroll::{Scroll, WrappingLines};
use crate::screen::text::{Pen, elide, elide_middle};
use crate::screen::theme::{StateSign, Theme};
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::patterns::agents::answerer;
use crate::words::question::tally_text;
use crate::words::sentence::took_ms;
use crate::words::styled::{StyleRole, StyledLine, StyledPart, StyledText};
use crate::words::verdict::{place_after, reason_id, stop_lead};
use crate::words::{badges, format};

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

/// Minimum rows of a pane in which the root stays in view above its calls.
const MIN_WITH_ROOT: usize = 4;

/// The rows of the call tree in view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallWindow {
    /// The row of the root, above the others, if it would be out of view.
    pub root: Option<usize>,
    /// The rows below it.
    pub rows: Range<usize>,
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
    match tree.len() > height && height >= MIN_WITH_ROOT {
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
        match root.filter(|_| height >= MIN_WITH_ROOT) {
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
                self.call = rows.cursor.and_then(|row| tree.row(row)).map(|node| node.span);
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

    /// The target that Enter inspects in the transcript.
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

    /// The rows of the call tree in view in an area, such as `1-11 of 12`; empty if all are.
    pub fn calls_in_view(&self, run: &RunData, area: Rect) -> String {
        let Some(tree) = call_tree(run, &self.closed) else { return String::new() };
        part_in_view(&self.call_rows(&tree, usize::from(area.height)).rows, tree.len())
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
                self.call = moved.cursor.and_then(|row| tree.row(row)).map(|node| node.span);
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

/// The agents in the picture: all but the swarm that the operator talks to, whose members speak for
/// it, and agents that no one can ever call. It depends on the plan alone.
pub fn agents_in_picture(plan: &AgentsPlan) -> impl Iterator<Item = &AgentName> {
    let swarm = plan.outer_swarm().is_some();
    let rosters = plan.agents.iter().any(|agent| agent.swarm.is_some());
    plan.agents.iter().map(|agent| &agent.name).filter(move |name| {
        if plan.root.is_none() {
            return true;
        }
        let member = || plan.agents.iter().any(|agent| agent.members.contains(name));
        if plan.is_root(name) { !swarm } else { rosters || member() }
    })
}

/// Whether no one can call an agent at present: it is in no team, and in no swarm's current
/// members.
pub fn is_on_bench(team: &AgentsFold, plan: &AgentsPlan, name: &AgentName) -> bool {
    let teams = plan.agents.iter().filter(|agent| agent.swarm.is_none());
    !plan.is_root(name)
        && !teams.flat_map(|agent| &agent.members).any(|member| member == name)
        && !team.swarms.iter().any(|swarm| swarm.members.contains(name))
}

/// Adds the outcome. `call` is the last one of the agent that answered, or that was in control.
pub(super) fn add_outcome(run: &RunData, call: Option<SpanId>, text: &mut StyledText) {
    let world = run.shown();
    let words = outcome_text(run, call);
    let Some((team, closed)) = world.agents().zip(world.progress.closed.as_ref()) else {
        return text.text(StyleRole::Dim, &words.text);
    };
    let badge = badges::ended(closed.reason.class());
    let part = StyledPart::with_glyph(badge.glyph, badge.role, head(world, team, closed));
    text.lines.push(StyledLine { label: None, parts: vec![part] });
    if let Some(id) = reason_id(closed) {
        text.add(StyleRole::Dim, id);
    }
    if !words.text.trim().is_empty() {
        text.gap();
        let role = match words.state {
            TextState::Note => StyleRole::Dim,
            TextState::Problem | TextState::Streaming | TextState::Complete => StyleRole::Text,
        };
        text.text(role, words.text.trim_end());
        if words.left_out > 0 {
            let size = format::bytes(words.left_out as u64);
            text.text(StyleRole::Dim, &format!("{size} more: inspect the answer"));
        }
    }
    if let Some((partial, by)) = team.partial.as_ref().filter(|_| !closed.reason.is_success()) {
        text.gap();
        text.text(StyleRole::Dim, &format!("best partial answer ({by})"));
        text.text(StyleRole::Text, partial);
    }
    text.gap();
    for missing in team.missing.iter() {
        text.warning("lacks", format!("{}: {}", missing.name, missing.text));
    }
    for (who, call) in &team.written_calls {
        text.warning("uncalled", format!("{who} wrote a tool call as text: {call}"));
    }
    add_figures(world, team, closed, text);
}

/// How the run ended, in one line.
fn head(world: &World, team: &AgentsFold, closed: &RunClosed) -> String {
    let lead = || stop_lead(world, closed);
    match (closed.reason.is_success(), answerer(team)) {
        (true, Some(by)) if world.progress.answer.is_some() => format!("answered by {by}"),
        (true, _) => lead(),
        (false, _) => format!("{}{}", lead(), place_after(&lead(), closed)),
    }
}

fn add_figures(world: &World, team: &AgentsFold, closed: &RunClosed, text: &mut StyledText) {
    if let Some(session) = world.session().filter(|session| session.message > 1) {
        text.field("message", format!("{} of this conversation", session.message));
    }
    let counts = team.hop_counts;
    let made = counts.starts + counts.handoffs + counts.consultations;
    let nouns = [
        (counts.starts, "start"),
        (counts.handoffs, "handoff"),
        (counts.consultations, "consultation"),
    ];
    let parts: Vec<String> = nouns
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, noun)| match (count, noun) {
            (1, "start") => "the start".to_owned(),
            _ => format::count_noun(count, noun),
        })
        .collect();
    let parts = match made > counts.starts {
        true => format!(": {}", parts.join(", ")),
        false => String::new(),
    };
    // Without handoffs and consultations they are no hops.
    let label = if parts.is_empty() && world.observed().is_some() { "turns" } else { "hops" };
    if world.observed().is_none() || made > 0 {
        text.field(label, format!("{made}{parts}"));
    }
    if counts.refused > 0 {
        let refused = format::count_noun(counts.refused, "handoff");
        text.item("refused", StyleRole::Refused, refused);
    }
    if let Some(questions) = tally_text(&world.questions) {
        text.field("questions", questions);
    }
    let calls = format::calls(&world.tally);
    let attempts = match world.tally.attempts {
        // Another program does not say its attempts.
        0 => String::new(),
        attempts if attempts == world.tally.calls => String::new(),
        attempts => format!(", {}", format::count_noun(attempts, "attempt")),
    };
    text.field("time", format!("{}, {calls}{attempts}", took_ms(closed.elapsed_ms)));
    // What another program does not say is not shown.
    if world.observed().is_none() || world.tally.usage.total() > 0 {
        text.field("tokens", format::tokens(world.tally.usage));
    }
    if let Some(cost) = world.cost_usd().filter(|cost| *cost > 0.0) {
        text.field("cost", format!("{} (estimated)", format::usd(cost)));
    } else if let Some(cost) = format::cost_at_least(world) {
        text.field("cost", cost);
    }
    // An observed run lists its agents itself.
    let agents = team.assignable_agents().filter(|row| row.turns > 0 && world.observed().is_none());
    let turns = agents.map(|row| {
        let turns = format::count_noun(row.turns.into(), "turn");
        let held = duration_text(time_held(world, row, world.progress.at));
        format!("{} {turns}, {held}", row.name)
    });
    text.list("agents", turns);
}

/// Width limit of a model's name, in a run with several models.
pub(crate) const MODEL: u16 = 18;

/// Draws a model's name in exactly `width` columns. A narrow column keeps the start of the name; a
/// wide one also its end, which tells versions apart.
pub(super) fn put_model(cx: &DrawContext, pen: &mut Pen, name: &str, width: u16, style: Style) {
    let start = pen.x();
    let columns = usize::from(width);
    let text = match width {
        0..12 => elide(name, columns, cx.glyphs),
        _ => elide_middle(name, columns, cx.glyphs),
    };
    pen.put_within(&text, width, style).advance_to(start + width);
}

/// Width of the longest agent name.
pub(crate) fn names(plan: &AgentsPlan) -> u16 {
    let longest = plan.agents.iter().map(|agent| columns(agent.name.as_str())).max();
    u16::try_from(longest.unwrap_or(0)).unwrap_or(u16::MAX)
}

/// The state of an agent. After the run's end no agent is running.
pub(super) fn agent_sign(cx: &DrawContext, world: &World, row: &AgentRow) -> StateSign {
    match row.state {
        AgentState::Running if !world.progress.is_live() => {
            StateSign { glyph: Glyph::Off, word: "stopped", style: cx.theme.style(StyleRole::Off) }
        }
        AgentState::Running if world.questions.asks_for(row.name.as_str()) => cx.theme.waits(),
        state => state_sign(cx.theme, state),
    }
}

/// Total time that an agent was active, including the current turn.
pub(super) fn time_held(world: &World, row: &AgentRow, now: Elapsed) -> Duration {
    let going =
        row.since.map(|since| world.progress.active_between(since, now)).unwrap_or_default();
    row.work_time + going
}

/// Whether this agent is in control, or gave the answer of a run that has ended.
pub(super) fn is_active_agent(world: &World, team: &AgentsFold, row: &AgentRow) -> bool {
    let whom = if world.progress.is_live() { &team.in_control } else { &team.answered_by };
    whom.as_ref().or(team.in_control.as_ref()) == Some(&row.name)
}

/// The end of an arriving text, in one row.
pub(crate) fn tail(text: &str, width: usize) -> String {
    let mut from = text.len().saturating_sub(width.saturating_mul(4));
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let flat = text[from..].replace(['\n', '\r', '\t'], " ");
    let mut start = 0;
    while columns(&flat[start..]) > width {
        start += flat[start..].chars().next().map_or(1, char::len_utf8);
    }
    flat[start..].to_owned()
}

/// The sign of an agent in a team.
pub(crate) fn state_sign(theme: &Theme, state: AgentState) -> StateSign {
    match state {
        AgentState::Idle => theme.sign(Glyph::Off, "not used", StyleRole::Off),
        AgentState::Running => theme.sign(Glyph::Running, "working", StyleRole::Running),
        AgentState::Done => theme.sign(Glyph::Done, "done", StyleRole::Done),
        AgentState::Failed => theme.sign(Glyph::Failed, "failed", StyleRole::Failed),
        AgentState::Cancelled => theme.sign(Glyph::Off, "cancelled", StyleRole::Off),
    }
}
