//! Pane 1 of a team: the sequence diagram, with a lane for each agent and each person, and a row for the
//! operator's message to a coordinator, each hop, each question to a person and the end of the run. Only
//! the rows in view are read.

use std::borrow::Cow;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::TeamView;
use super::lanes::{CLOCK, CONTEXT, HopArrow, LaneCell, LaneEnd, Lanes, MIN_TEXT};
use crate::base::name::{AgentName, PersonName};
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::log::event::{RunClosed, SpanId, StopReason};
use crate::log::world::agents::{AgentsFold, HopKind, HopRow, HopState};
use crate::log::world::questions::QuestionRow;
use crate::log::world::{SpanKind, World};
use crate::scenario::people::OPERATOR;
use crate::screen::layout::line;
use crate::screen::run::data::RunData;
use crate::screen::run::views::agents::{
    agent_sign, agents_in_picture, is_active_agent, is_on_bench,
};
use crate::screen::text::{Pen, on_border};
use crate::screen::theme::{StateSign, Theme};
use crate::screen::widgets::empty;
use crate::screen::{DrawContext, list};
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::question::{inbox_text, row_end_text};
use crate::words::styled::StyleRole;
use crate::words::verdict::stop_line;
use crate::words::{badges, format};

/// A row of the diagram.
#[derive(Clone, Copy, Debug)]
pub enum SequenceRow<'a> {
    /// The operator's message to a coordinator. That to a swarm is its first hop.
    Asked(&'a AgentName),
    /// A hop, with its index.
    Hop(usize, &'a HopRow),
    /// A question to a person, with the number of hops above it.
    Question(usize, &'a QuestionRow),
    Ended(&'a RunClosed),
}

/// An end of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowEnd<'a> {
    /// The operator.
    You,
    Agent(&'a AgentName),
    Person(&'a PersonName),
}

impl<'a> RowEnd<'a> {
    pub fn name(self) -> &'a str {
        match self {
            Self::You => "you",
            Self::Agent(name) => name.as_str(),
            Self::Person(name) => name.as_str(),
        }
    }
}

/// The rows of the diagram of a world.
#[derive(Clone, Copy, Debug)]
pub struct Sequence<'a> {
    world: &'a World,
    team: &'a AgentsFold,
}

impl<'a> Sequence<'a> {
    /// The rows of the world that is shown.
    pub fn of(run: &'a RunData) -> Option<Self> {
        let world = run.shown();
        Some(Self { world, team: world.agents()? })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        let ended = usize::from(self.world.progress.closed.is_some());
        self.asked() + self.team.hops.len() + self.world.questions.rows().len() + ended
    }

    fn asked(&self) -> usize {
        usize::from(self.team.plan.coordinator().is_some())
    }

    /// The row with this index.
    pub fn row(&self, at: usize) -> Option<SequenceRow<'a>> {
        let Some(at) = at.checked_sub(self.asked()) else {
            return self.team.plan.coordinator().map(SequenceRow::Asked);
        };
        let (hops, questions) = (&self.team.hops, self.world.questions.rows());
        let above = self.hops_above(at);
        match (hops.get(above), questions.get(at - above)) {
            (Some(hop), Some(row)) if row.question.seq < hop.seq => {
                Some(SequenceRow::Question(above, row))
            }
            (Some(hop), _) => Some(SequenceRow::Hop(above, hop)),
            (None, Some(row)) => Some(SequenceRow::Question(above, row)),
            (None, None) if at == hops.len() + questions.len() => {
                self.world.progress.closed.as_deref().map(SequenceRow::Ended)
            }
            (None, None) => None,
        }
    }

    /// How many of the first `at` hops and questions are hops. Both lists have the order of the log.
    fn hops_above(&self, at: usize) -> usize {
        let (hops, questions) = (&self.team.hops, self.world.questions.rows());
        let (mut low, mut high) = (at.saturating_sub(questions.len()), at.min(hops.len()));
        while low < high {
            let middle = low.midpoint(high);
            let hop = hops.get(middle).map(|hop| hop.seq);
            match hop < questions.get(at - middle - 1).map(|row| row.question.seq) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// The call behind a row.
    pub fn call(&self, row: SequenceRow<'a>) -> Option<SpanId> {
        match row {
            SequenceRow::Asked(agent) => self.team.agent(agent)?.last_call,
            SequenceRow::Hop(_, hop) => Some(hop.span),
            SequenceRow::Question(_, row) => {
                let span = self.world.spans.get(row.question.span)?;
                match span.kind {
                    SpanKind::Call(_) => Some(span.id),
                    SpanKind::Attempt(_) => Some(span.parent),
                    _ => None,
                }
            }
            SequenceRow::Ended(_) => self.team.agent(self.team.answered_by.as_ref()?)?.last_call,
        }
    }

    /// Who gave and who got the work of a row, or who asked whom.
    pub fn ends_of(&self, row: SequenceRow<'a>) -> Option<(RowEnd<'a>, RowEnd<'a>)> {
        match row {
            SequenceRow::Asked(agent) => Some((RowEnd::You, RowEnd::Agent(agent))),
            SequenceRow::Hop(_, hop) => {
                // A swarm within a team starts its first member itself.
                let from = hop.from.as_ref().or((hop.depth > 0).then_some(&hop.team));
                Some((from.map_or(RowEnd::You, RowEnd::Agent), RowEnd::Agent(&hop.to)))
            }
            SequenceRow::Question(_, question) => {
                let asked = &question.question.asked;
                let mut agents = self.team.plan.agents.iter().map(|agent| &agent.name);
                let by = agents.find(|name| Some(name.as_str()) == asked.by.as_deref())?;
                Some((RowEnd::Agent(by), self.person(&asked.who, self.in_control(row))))
            }
            SequenceRow::Ended(closed) => {
                let by = self.team.answered_by.as_ref().filter(|_| closed.reason.is_success())?;
                Some((RowEnd::Agent(by), RowEnd::You))
            }
        }
    }

    /// The end of a question to this person: the operator, the agent that the person is, or else the
    /// person. A person who is several agents is the one in control.
    fn person(&self, who: &'a PersonName, in_control: Option<&AgentName>) -> RowEnd<'a> {
        if who.as_str() == OPERATOR {
            return RowEnd::You;
        }
        let plan = &self.team.plan;
        let is_one = |name: &&AgentName| {
            plan.agent(name).is_some_and(|agent| agent.person.as_ref() == Some(who))
        };
        let mut played = agents_in_picture(plan).filter(is_one);
        let first = played.next();
        let agent = played.find(|name| Some(*name) == in_control).or(first);
        agent.map_or(RowEnd::Person(who), RowEnd::Agent)
    }

    /// The people with a lane of their own: those who are no agent in the picture.
    fn people(&self) -> Vec<PersonName> {
        let mut people = self.world.head.as_ref().map(|head| head.people()).unwrap_or_default();
        let is_agent = |name: &str| self.team.plan.agents.iter().any(|it| it.name.as_str() == name);
        people.retain(|who| {
            !is_agent(who.as_str()) && matches!(self.person(who, None), RowEnd::Person(_))
        });
        people
    }

    /// The agent in control after a row.
    pub fn in_control(&self, row: SequenceRow<'a>) -> Option<&'a AgentName> {
        match row {
            SequenceRow::Asked(agent) => Some(agent),
            SequenceRow::Hop(_, hop) => hop.in_control.as_ref(),
            SequenceRow::Question(above, _) => match above.checked_sub(1) {
                Some(hop) => self.team.hops.get(hop)?.in_control.as_ref(),
                None => self.team.plan.coordinator(),
            },
            SequenceRow::Ended(_) => None,
        }
    }
}

/// How a row is drawn.
pub fn arrow_of(row: SequenceRow<'_>) -> HopArrow {
    match row {
        SequenceRow::Hop(_, HopRow { state: HopState::Refused(_), .. }) => HopArrow::Refused,
        SequenceRow::Hop(_, HopRow { kind: HopKind::Consult, .. }) | SequenceRow::Question(..) => {
            HopArrow::Consults
        }
        _ => HopArrow::Passes,
    }
}

/// The diagram in an area: the lanes, if they fit, and the areas of its parts.
#[derive(Clone, Debug)]
pub struct Diagram<'a> {
    /// The agents of the lanes, from left to right.
    pub agents: Vec<&'a AgentName>,
    /// The people of the lanes at their right; none if there is room for the agents only.
    pub people: Vec<PersonName>,
    /// Their lanes; `None` if there is no room: the rows then name the agents.
    pub lanes: Option<Lanes>,
    /// The rows above the hops: the names of the lanes.
    pub head: Rect,
    /// The rows of the hops.
    pub rows: Rect,
    /// The row below them, if there is room: the selected or newest hop in words, or the legend.
    pub foot: Rect,
}

impl<'a> Diagram<'a> {
    /// The diagram of the shown world.
    pub fn of(run: &'a RunData, area: Rect) -> Option<Self> {
        let team = run.shown().agents()?;
        let agents: Vec<&AgentName> = agents_in_picture(&team.plan).collect();
        let mut people = Sequence::of(run)?.people();
        let width = |name: &str| u16::try_from(columns(name)).unwrap_or(u16::MAX);
        let mut names: Vec<u16> = agents.iter().map(|name| width(name.as_str())).collect();
        names.extend(people.iter().map(|name| width(name.as_str())));
        let foot_rows = u16::from(area.height >= 7);
        let fit = |names: &[u16]| Lanes::fit(area.width, area.height - foot_rows, names);
        let lanes = fit(&names).or_else(|| {
            people.clear();
            fit(&names[..agents.len()])
        });
        let foot_rows = if lanes.is_some() { foot_rows } else { 0 };
        let head_rows = lanes.as_ref().map_or(1, |lanes| lanes.name_rows).min(area.height);
        let head = Rect { height: head_rows, ..area };
        let rows = area.height - head_rows - foot_rows.min(area.height - head_rows);
        let rows = Rect { y: head.bottom(), height: rows, ..area };
        let foot = Rect { y: rows.bottom(), height: foot_rows, ..area };
        Some(Self { agents, people, lanes, head, rows, foot })
    }

    /// The lane of an end of a row.
    pub fn lane_end(&self, end: RowEnd<'_>) -> Option<LaneEnd> {
        let lane = match end {
            RowEnd::You => return Some(LaneEnd::You),
            RowEnd::Agent(name) => self.agents.iter().position(|it| *it == name)?,
            RowEnd::Person(name) => {
                self.agents.len() + self.people.iter().position(|it| it == name)?
            }
        };
        Some(LaneEnd::Named(lane))
    }

    /// The agent whose name is at this cell.
    pub fn named_at(&self, col: u16, row: u16) -> Option<&'a AgentName> {
        let row = row.checked_sub(self.head.y).filter(|row| *row < self.head.height)?;
        let at = self.lanes.as_ref()?.named_at(col.checked_sub(self.head.x)?, row)?;
        self.agents.get(at).copied()
    }
}

/// Fewest bytes that messages have to begin with in common, so that they are left out.
const MIN_SHARED: usize = 24;
/// Width of a hop's number, with a blank.
const NUMBER: u16 = 5;

pub(crate) fn render(
    view: &TeamView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let (Some(sequence), Some(diagram)) = (Sequence::of(data), Diagram::of(data, area)) else {
        return empty(cx, area, "No hops yet: the run is starting.", buf);
    };
    let drawn = Drawn { cx, world: data.shown(), sequence, diagram: &diagram };
    drawn.head(view, buf);
    let (window, selected) = view.hop_rows(data, usize::from(diagram.rows.height));
    if sequence.len() == 0 {
        let text = match data.shown().progress.is_live() {
            true => "No hops yet: each agent that takes control is drawn here.",
            false => "No hops: no agent was called. Pane 5 has what happened.",
        };
        return empty(cx, diagram.rows, text, buf);
    }
    let ends = window.end;
    let mut below = diagram.rows;
    for (at, here) in window.zip(diagram.rows.rows()) {
        let Some(row) = sequence.row(at) else { break };
        drawn.row(row, here, selected == Some(at), buf);
        below = Rect { y: here.bottom(), height: diagram.rows.bottom() - here.bottom(), ..below };
    }
    // The lanes of a live run continue.
    if data.shown().progress.is_live() && ends == sequence.len() {
        drawn.open_lanes(sequence.row(ends.saturating_sub(1)), below, buf);
    }
    let current = selected.or_else(|| sequence.len().checked_sub(1));
    drawn.foot(current.and_then(|at| sequence.row(at)), buf);
}

/// What the parts of the diagram are drawn from.
struct Drawn<'a> {
    cx: &'a DrawContext<'a>,
    world: &'a World,
    sequence: Sequence<'a>,
    diagram: &'a Diagram<'a>,
}

impl Drawn<'_> {
    /// Draws the names above the lanes, with the state of each agent and the mark of control.
    fn head(&self, view: &TeamView, buf: &mut Buffer) {
        let (cx, head) = (self.cx, self.diagram.head);
        let dim = cx.theme.style(StyleRole::Dim);
        if head.height == 0 {
            return;
        }
        let last = line(head, head.height - 1);
        let Some(lanes) = &self.diagram.lanes else {
            let mut pen = Pen::new(buf, last, cx.glyphs);
            pen.space(2).right_aligned("#", NUMBER - 1, dim).space(1).cell("when", CLOCK, dim);
            pen.put("hop", dim);
            return;
        };
        let mut pen = Pen::new(buf, last, cx.glyphs);
        pen.space(2).right_aligned("#", NUMBER - 1, dim).space(1);
        if lanes.has_clock {
            pen.cell("when", CLOCK, dim);
        }
        pen.put("you", dim);
        if lanes.has_context {
            let at = Rect { x: last.right().saturating_sub(CONTEXT), width: CONTEXT, ..last };
            Pen::new(buf, at, cx.glyphs).right_aligned("context", CONTEXT - 1, dim);
        }
        // Each lane begins below its name.
        for lane in &lanes.named {
            for row in lane.name_row + 1..head.height {
                let at = Rect { x: head.x + lane.x, width: 1, ..line(head, row) };
                Pen::new(buf, at.intersection(head), cx.glyphs).glyph(Glyph::Lane, dim);
            }
        }
        let mut lanes = lanes.named.iter().map(|lane| {
            let row = line(head, lane.name_row);
            let at = Rect { x: row.x + lane.x, width: lane.name + 3, ..row };
            (at.intersection(head), lane.name)
        });
        for (name, (at, width)) in self.diagram.agents.iter().zip(&mut lanes) {
            self.name(view, name, width, at, buf);
        }
        for (who, (at, width)) in self.diagram.people.iter().zip(lanes) {
            self.person_name(who, width, at, buf);
        }
    }

    /// Draws the name of a person, with the sign of an open question.
    fn person_name(&self, who: &PersonName, width: u16, at: Rect, buf: &mut Buffer) {
        let (cx, questions) = (self.cx, &self.world.questions);
        let mut pen = Pen::new(buf, at, cx.glyphs);
        let asked = questions.asked_of.contains_key(who);
        let role = if asked { StyleRole::Text } else { StyleRole::Dim };
        let style = on_border(cx.theme.style(role));
        match questions.open().any(|question| question.asked.who == *who) {
            true => pen.glyph(cx.theme.waits().glyph, cx.theme.waits().style),
            false => pen.put(" ", style),
        };
        pen.put(" ", style).name(who.as_str(), width, style).put(" ", style);
    }

    fn name(&self, view: &TeamView, name: &AgentName, width: u16, at: Rect, buf: &mut Buffer) {
        let (cx, world) = (self.cx, self.world);
        let theme = cx.theme;
        let Some(team) = world.agents() else { return };
        let Some(row) = team.agent(name) else { return };
        let sign = agent_sign(cx, world, row);
        let active = row.turns > 0 && is_active_agent(world, team, row);
        let style = match (row.turns, active) {
            (_, true) => theme.style(StyleRole::Strong),
            (0, _) => theme.style(StyleRole::Dim),
            _ if is_on_bench(team, &team.plan, name) => theme.style(StyleRole::Dim),
            _ => theme.style(StyleRole::Text),
        };
        let selected = view.selected_agent() == Some(name);
        list::row_style(cx, at, selected, buf);
        let mut pen = Pen::new(buf, at, cx.glyphs);
        match selected {
            true => pen.glyph(Glyph::Selected, theme.style(StyleRole::Key)),
            false => pen.glyph(sign.glyph, sign.style),
        };
        // A name covers the lanes that begin above it.
        let style = on_border(style);
        pen.put(" ", style).name(name.as_str(), width, style);
        match active {
            true => pen.glyph(Glyph::Holder, on_border(theme.style(StyleRole::Strong))),
            false => pen.put(" ", style),
        };
    }

    /// Draws a row: state, number and time, the hop between its lanes, and its text.
    fn row(&self, row: SequenceRow<'_>, at: Rect, selected: bool, buf: &mut Buffer) {
        let (cx, theme) = (self.cx, self.cx.theme);
        let dim = theme.style(StyleRole::Dim);
        let sign = self.sign(row);
        let lanes = self.diagram.lanes.as_ref();
        let mut pen = list::row_or_blank(cx, at, selected, buf);
        pen.glyph(sign.glyph, sign.style);
        let progress = &self.world.progress;
        let (number, when) = match row {
            SequenceRow::Asked(_) => (String::new(), Duration::ZERO),
            SequenceRow::Hop(nth, hop) => ((nth + 1).to_string(), progress.run_time(hop.at)),
            SequenceRow::Question(_, QuestionRow { question, .. }) => {
                (question.asked.id.to_string(), progress.run_time(question.at))
            }
            SequenceRow::Ended(_) => (String::new(), progress.run_time(progress.at)),
        };
        pen.right_aligned(&number, NUMBER - 1, dim).space(1);
        if lanes.is_none_or(|lanes| lanes.has_clock) {
            pen.cell(&format::clock(when), CLOCK, dim);
        }
        let (words, role) = self.words(row);
        let style = theme.style(role);
        let Some(lanes) = lanes else {
            // The longest names fill two fifths of the row.
            let (agents, people) = (&self.diagram.agents, &self.diagram.people);
            let names = agents.iter().map(|name| name.as_str());
            let names = names.chain(people.iter().map(|name| name.as_str()));
            let longest = names.map(columns).max();
            let longest = u16::try_from(longest.unwrap_or(0)).unwrap_or(u16::MAX);
            let width = longest.saturating_mul(2).saturating_add(4).min(at.width * 2 / 5);
            pen.cell(&self.names(row), width, theme.style(StyleRole::Text)).space(2);
            pen.put(&words, style);
            return;
        };
        let reached = self.lanes_of(row, lanes, at, buf);
        let (x, width) = lanes.text;
        let text = Rect { x: at.x + x, width, ..at }.intersection(at);
        let mut pen = Pen::new(buf, text, cx.glyphs);
        if width >= MIN_TEXT {
            pen.space(1);
            if !reached {
                let names = self.names(row);
                pen.put(&names, theme.style(StyleRole::Text)).space(2);
            }
            pen.put(&words, style);
        }
        if lanes.has_context
            && let SequenceRow::Hop(_, hop) = row
        {
            let tokens = hop.context_tokens.map_or_else(String::new, format::count);
            let at = Rect { x: at.right().saturating_sub(CONTEXT), width: CONTEXT, ..at };
            Pen::new(buf, at, cx.glyphs).right_aligned(&tokens, CONTEXT - 1, dim);
        }
    }

    /// Draws the lanes of a row and its hop; returns whether both ends of the hop have a lane.
    fn lanes_of(&self, row: SequenceRow<'_>, lanes: &Lanes, at: Rect, buf: &mut Buffer) -> bool {
        let (cx, theme) = (self.cx, self.cx.theme);
        let end = |end| self.diagram.lane_end(end);
        let ends = self.sequence.ends_of(row);
        let lane = ends.map(|(from, to)| (end(from), end(to)));
        let arrow = arrow_of(row);
        let hop = match lane {
            Some((Some(from), Some(to))) => Some((from, to, arrow)),
            _ => None,
        };
        let control = self.control(row);
        // Hops within a consulted team are dimmed.
        let nested = matches!(row, SequenceRow::Hop(_, hop) if hop.depth > 0);
        let of_hop: Style = match (arrow, self.sign(row).glyph) {
            (HopArrow::Refused, _) => theme.style(StyleRole::Refused),
            (_, Glyph::Running | Glyph::NeedsYou) => theme.style(StyleRole::Running),
            (_, Glyph::Failed) => theme.style(StyleRole::Failed),
            _ if nested => theme.style(StyleRole::Dim),
            _ => theme.style(StyleRole::Text),
        };
        for (x, cell) in lanes.cells(control, hop) {
            let cell_at = Rect { x: at.x + x, width: cell.width(), ..at }.intersection(at);
            let mut pen = Pen::new(buf, cell_at, cx.glyphs);
            match cell {
                LaneCell::Waits | LaneCell::Controls => draw_lane(cx, &mut pen, cell),
                LaneCell::Line => pen.glyph(Glyph::Horizontal, of_hop),
                LaneCell::Tip { right, arrow } => {
                    let glyph = match (arrow, right) {
                        (HopArrow::Passes, true) => Glyph::Arrow,
                        (HopArrow::Passes, false) => Glyph::ArrowBack,
                        (HopArrow::Consults, _) => Glyph::Consults,
                        (HopArrow::Refused, _) => Glyph::Refused,
                    };
                    // An arrow of one column has a piece of line next to it.
                    let line = columns(cx.glyphs.symbol(glyph)) < 2;
                    if line && right {
                        pen.glyph(Glyph::Horizontal, of_hop);
                    }
                    pen.glyph(glyph, of_hop);
                    if line && !right {
                        pen.glyph(Glyph::Horizontal, of_hop);
                    }
                    &mut pen
                }
            };
        }
        ends.is_none() || hop.is_some()
    }

    /// Draws the lanes below the last row.
    fn open_lanes(&self, last: Option<SequenceRow<'_>>, area: Rect, buf: &mut Buffer) {
        let (Some(lanes), Some(last)) = (&self.diagram.lanes, last) else { return };
        for row in area.rows() {
            for (x, cell) in lanes.cells(self.control(last), None) {
                let at = Rect { x: row.x + x, width: 1, ..row }.intersection(row);
                draw_lane(self.cx, &mut Pen::new(buf, at, self.cx.glyphs), cell);
            }
        }
    }

    /// The lane of the agent in control after a row.
    fn control(&self, row: SequenceRow<'_>) -> Option<usize> {
        let control = self.sequence.in_control(row)?;
        self.diagram.agents.iter().position(|it| *it == control)
    }

    fn sign(&self, row: SequenceRow<'_>) -> StateSign {
        let theme = self.cx.theme;
        match row {
            SequenceRow::Asked(_) => theme.sign(Glyph::Right, "asked", StyleRole::Dim),
            SequenceRow::Hop(_, hop) => hop_sign(theme, self.world, hop),
            SequenceRow::Question(_, row) => question_sign(theme, self.world, row),
            SequenceRow::Ended(closed) => theme.ended(closed.reason.class()),
        }
    }

    fn words<'r>(&self, row: SequenceRow<'r>) -> (Cow<'r, str>, StyleRole)
    where
        Self: 'r,
    {
        match row {
            SequenceRow::Asked(_) => ("start".into(), StyleRole::Dim),
            SequenceRow::Hop(nth, hop) => match hop_words(self.world, hop) {
                (text, StyleRole::Text) => (self.own_part(nth, text), StyleRole::Text),
                words => words,
            },
            SequenceRow::Question(_, row) => (question_words(row).into(), StyleRole::Text),
            SequenceRow::Ended(closed) => match closed.reason.is_success() {
                true => ("answers".into(), StyleRole::Done),
                false => (stop_line(self.world, closed).into(), StyleRole::Failed),
            },
        }
    }

    /// A message without the words with which the message of the row above or below begins too.
    fn own_part<'r>(&self, nth: usize, text: Cow<'r, str>) -> Cow<'r, str> {
        let hops = &self.sequence.team.hops;
        let beside = [nth.checked_sub(1), Some(nth + 1)].into_iter().flatten();
        let shared = beside.filter_map(|at| hops.get(at)).map(|hop| {
            let other = message(hop).0;
            let both = text.chars().zip(other.chars()).take_while(|(one, two)| one == two);
            let end: usize = both.map(|(one, _)| one.len_utf8()).sum();
            text[..end].rfind(' ').map_or(0, |blank| blank + 1)
        });
        match shared.max() {
            Some(end) if end >= MIN_SHARED => {
                format!("{} {}", self.cx.glyphs.symbol(Glyph::Ellipsis), &text[end..]).into()
            }
            _ => text,
        }
    }

    /// The ends of a row by name, such as `triage → billing`; empty for the end of a stopped run.
    fn names(&self, row: SequenceRow<'_>) -> String {
        let Some((from, to)) = self.sequence.ends_of(row) else { return String::new() };
        let glyph = match arrow_of(row) {
            HopArrow::Passes => Glyph::Arrow,
            HopArrow::Consults => Glyph::Consults,
            HopArrow::Refused => Glyph::Refused,
        };
        format!("{} {} {}", from.name(), self.cx.glyphs.symbol(glyph), to.name())
    }

    /// Draws the row below the hops: one hop in words if the rows have no room for them, else the
    /// meaning of the arrows.
    fn foot(&self, current: Option<SequenceRow<'_>>, buf: &mut Buffer) {
        let (cx, theme) = (self.cx, self.cx.theme);
        let dim = theme.style(StyleRole::Dim);
        let foot = self.diagram.foot;
        let narrow = self.diagram.lanes.as_ref().is_some_and(|it| it.text.1 < MIN_TEXT);
        let mut pen = Pen::new(buf, foot, cx.glyphs);
        pen.space(1);
        if narrow && let Some(row) = current {
            let (words, role) = self.words(row);
            let sign = self.sign(row);
            pen.glyph(sign.glyph, sign.style).space(1);
            pen.put(&self.names(row), theme.style(StyleRole::Text)).space(2);
            pen.put(&words, theme.style(role));
            return;
        }
        let glyph = |glyph: Glyph| cx.glyphs.symbol(glyph);
        let passes = format!("{}{} hands over", glyph(Glyph::Horizontal), glyph(Glyph::Arrow));
        let consults = format!("{} consults", glyph(Glyph::Consults));
        let refused = format!("{} refused", glyph(Glyph::Refused));
        let control = format!("{} in control", glyph(Glyph::LaneInControl));
        for text in [passes, consults, refused, control] {
            if pen.fits(columns(&text)) {
                pen.put(&text, dim).space(3);
            }
        }
    }
}

fn draw_lane<'p, 'b>(cx: &DrawContext, pen: &'p mut Pen<'b>, cell: LaneCell) -> &'p mut Pen<'b> {
    match cell {
        LaneCell::Controls => pen.glyph(Glyph::LaneInControl, cx.theme.style(StyleRole::Strong)),
        _ => pen.glyph(Glyph::Lane, cx.theme.style(StyleRole::Dim)),
    }
}

/// The state of a hop. After the run's end none is running.
pub(super) fn hop_sign(theme: &Theme, world: &World, hop: &HopRow) -> StateSign {
    match &hop.state {
        HopState::Running if !world.progress.is_live() => {
            theme.sign(Glyph::Off, "stopped", StyleRole::Off)
        }
        HopState::Running if world.question_within(hop.span).is_some() => theme.waits(),
        HopState::Running => theme.sign(Glyph::Running, "working", StyleRole::Running),
        HopState::Done => theme.sign(Glyph::Done, "done", StyleRole::Done),
        HopState::HandedOver => theme.sign(Glyph::Done, "handed over", StyleRole::Done),
        HopState::Failed(StopReason::Cancelled) => {
            theme.sign(Glyph::Off, "cancelled", StyleRole::Off)
        }
        HopState::Degraded { .. } => theme.sign(Glyph::Alert, "degraded", StyleRole::Retry),
        HopState::Failed(_) => theme.sign(Glyph::Failed, "failed", StyleRole::Failed),
        HopState::Refused(_) => theme.sign(Glyph::Refused, "refused", StyleRole::Refused),
    }
}

/// The state of a question.
pub(super) fn question_sign(theme: &Theme, world: &World, row: &QuestionRow) -> StateSign {
    let is_live = world.progress.is_live();
    match row.ended {
        None if is_live => theme.waits(),
        _ => theme.badge(badges::question(row, is_live)),
    }
}

/// What a question is about, and how it ended.
pub(super) fn question_words(row: &QuestionRow) -> String {
    let about = inbox_text(&row.question.asked.subject);
    let about = visible_within(&about, 2 * REASON_CHARS);
    match row_end_text(row) {
        Some(end) => format!("{about}: {}", visible_within(&end, 2 * REASON_CHARS)),
        None => about.to_string(),
    }
}

/// The text of a hop: why it failed or was refused, else the message with it. The last row says why the
/// run stopped, so that its hop keeps its message.
fn hop_words<'a>(world: &World, hop: &'a HopRow) -> (Cow<'a, str>, StyleRole) {
    let stop = world.progress.closed.as_ref().map(|closed| &closed.reason);
    match &hop.state {
        HopState::Failed(reason) if stop == Some(reason) => message(hop),
        HopState::Refused(why) => (format!("refused: {why}").into(), StyleRole::Refused),
        HopState::Failed(reason) => {
            let role = match reason {
                StopReason::Cancelled => StyleRole::Off,
                _ => StyleRole::Failed,
            };
            (reason.phrase().into_owned().into(), role)
        }
        HopState::Degraded { by, reason } => {
            (format!("{}; {}", reason.phrase(), by.word()).into(), StyleRole::Retry)
        }
        HopState::Running | HopState::Done | HopState::HandedOver => message(hop),
    }
}

fn message(hop: &HopRow) -> (Cow<'_, str>, StyleRole) {
    match (hop.message.as_deref(), hop.kind) {
        (Some(text), _) if !text.is_empty() => {
            (start_of(text).replace(['\n', '\r', '\t'], " ").into(), StyleRole::Text)
        }
        (_, HopKind::Start) => ("start".into(), StyleRole::Dim),
        (_, HopKind::Handoff) => ("without a message".into(), StyleRole::Dim),
        (_, HopKind::Consult | HopKind::Next) => ("".into(), StyleRole::Dim),
    }
}

/// The start of a text, which fills any row.
fn start_of(text: &str) -> &str {
    let end = (0..=text.len().min(1024)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;
    use crate::log::event::{Event, EventKind, QuestionAsked, QuestionId, RunId, Seq, Subject};
    use crate::scenario::people::Otherwise;
    use crate::support::facts::team;

    fn asked(number: usize, who: &str) -> EventKind {
        EventKind::QuestionAsked(Arc::new(QuestionAsked {
            id: QuestionId(number as u32),
            who: who.into(),
            by: Some("triage".into()),
            why: None,
            subject: Subject::Agent { text: "May I?".into(), choices: [].into() },
            digest: "d".into(),
            rule: None,
            by_rule: false,
            due_ms: None,
            otherwise: Otherwise::Stop,
        }))
    }

    proptest! {
        #[test]
        fn rows_have_the_order_of_log(places in proptest::collection::vec(any::<Index>(), 0..40)) {
            let mut events: Vec<Event> =
                team::desks(5, 9).log.iter().map(|event| Event::clone(event)).collect();
            for (number, place) in places.iter().enumerate() {
                let at = 1 + place.index(events.len());
                let kind = asked(number + 1, "manager");
                events.insert(at, Event { kind, ..events[at - 1].clone() });
            }
            for (seq, event) in (0..).map(Seq).zip(&mut events) {
                event.seq = seq;
            }
            let events: Vec<Arc<Event>> = events.into_iter().map(Arc::new).collect();
            let mut run = RunData::new(RunId::new("r-90de"), Duration::ZERO);
            run.apply(&events);
            let sequence = Sequence::of(&run).expect("agents");
            let rows: Vec<Seq> = (0..sequence.len())
                .filter_map(|at| match sequence.row(at)? {
                    SequenceRow::Hop(_, hop) => Some(hop.seq),
                    SequenceRow::Question(_, row) => Some(row.question.seq),
                    SequenceRow::Asked(_) | SequenceRow::Ended(_) => None,
                })
                .collect();
            let hops = sequence.team.hops.iter().map(|hop| hop.seq);
            let questions = sequence.world.questions.rows().iter().map(|row| row.question.seq);
            let mut sorted: Vec<Seq> = hops.chain(questions).collect();
            sorted.sort();
            prop_assert_eq!(sequence.world.questions.rows().len(), places.len());
            prop_assert_eq!(rows, sorted);
        }
    }
}
