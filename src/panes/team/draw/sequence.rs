//! Pane 1 of a team: the sequence diagram, with a lane for each agent and a row for each hop. Only
//! the rows in view are read.

use std::borrow::Cow;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::hop::{hop_sign, hop_words};
use crate::app::layout::line;
use crate::app::run::data::RunData;
use crate::base::name::AgentName;
use crate::event::world::World;
use crate::narrate::glyph::Glyph;
use crate::narrate::verdict::stop_lead;
use crate::panes::agents::draw::agent::{agent_sign, is_active_agent};
use crate::panes::agents::picture::is_on_bench;
use crate::panes::team::lanes::{CLOCK, CONTEXT, HopArrow, LEAST_TEXT, LaneCell, Lanes};
use crate::panes::team::sequence::{Diagram, Sequence, SequenceRow, arrow_of};
use crate::panes::team::view::TeamView;
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::pane::empty;
use crate::ui::sign::StateSign;
use crate::ui::table;
use crate::ui::text::{Pen, columns, on_border};
use crate::ui::theme::StyleRole;

/// Width of a hop's number, with a blank.
const NUMBER: u16 = 5;

/// Draws the pane.
pub(crate) fn render(
    view: &TeamView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let (Some(sequence), Some(diagram)) = (Sequence::of(data), Diagram::of(data, area)) else {
        return empty(cx, area, "The run is starting.", buf);
    };
    let drawn = Drawn { cx, world: data.shown(), sequence, diagram: &diagram };
    drawn.head(view, buf);
    let (window, selected) = view.hop_rows(data, usize::from(diagram.rows.height));
    if sequence.len() == 0 {
        let text = match data.shown().progress.is_live() {
            true => "No agent is in control yet.",
            false => "No agent was called. 5 shows what happened.",
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
            Pen::new(buf, at, cx.glyphs).right_aligned("ctx", CONTEXT, dim);
        }
        // Each lane begins below its name.
        for lane in &lanes.agents {
            for row in lane.name_row + 1..head.height {
                let at = Rect { x: head.x + lane.x, width: 1, ..line(head, row) };
                Pen::new(buf, at.intersection(head), cx.glyphs).glyph(Glyph::Lane, dim);
            }
        }
        for (lane, name) in lanes.agents.iter().zip(&self.diagram.agents) {
            let row = line(head, lane.name_row);
            let at = Rect { x: row.x + lane.x, width: lane.name + 3, ..row };
            self.name(view, name, lane.name, at.intersection(head), buf);
        }
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
        table::row_style(cx, at, selected, buf);
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
        let mut pen = table::row_or_blank(cx, at, selected, buf);
        pen.glyph(sign.glyph, sign.style);
        let progress = &self.world.progress;
        let (number, when) = match row {
            SequenceRow::Asked(_) => (String::new(), Duration::ZERO),
            SequenceRow::Hop(nth, hop) => ((nth + 1).to_string(), progress.run_time(hop.at)),
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
            let longest = self.diagram.agents.iter().map(|name| columns(name.as_str())).max();
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
        if width >= LEAST_TEXT {
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
            Pen::new(buf, at, cx.glyphs).right_aligned(&tokens, CONTEXT, dim);
        }
    }

    /// Draws the lanes of a row and its hop; returns whether both ends of the hop have a lane.
    fn lanes_of(&self, row: SequenceRow<'_>, lanes: &Lanes, at: Rect, buf: &mut Buffer) -> bool {
        let (cx, theme) = (self.cx, self.cx.theme);
        let end = |agent| self.diagram.lane_end(agent);
        let ends = self.sequence.agents_of(row);
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
            (_, Glyph::Running) => theme.style(StyleRole::Running),
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
            SequenceRow::Ended(closed) => theme.ended(closed.reason.class()),
        }
    }

    fn words<'r>(&self, row: SequenceRow<'r>) -> (Cow<'r, str>, StyleRole)
    where
        Self: 'r,
    {
        match row {
            SequenceRow::Asked(_) => ("start".into(), StyleRole::Dim),
            SequenceRow::Hop(_, hop) => hop_words(self.world, hop),
            SequenceRow::Ended(closed) => match closed.reason.is_success() {
                true => ("answers".into(), StyleRole::Done),
                false => (stop_lead(self.world, closed).into(), StyleRole::Failed),
            },
        }
    }

    /// The ends of a row by name, such as `triage → billing`; empty for the end of a stopped run.
    fn names(&self, row: SequenceRow<'_>) -> String {
        let Some((from, to)) = self.sequence.agents_of(row) else { return String::new() };
        let glyph = match arrow_of(row) {
            HopArrow::Passes => Glyph::Arrow,
            HopArrow::Consults => Glyph::Consults,
            HopArrow::Refused => Glyph::Refused,
        };
        let name =
            |agent: Option<&AgentName>| agent.map_or_else(|| "you".to_owned(), ToString::to_string);
        format!("{} {} {}", name(from), self.cx.glyphs.symbol(glyph), name(to))
    }

    /// Draws the row below the hops: one hop in words if the rows have no room for them, else the
    /// meaning of the arrows.
    fn foot(&self, current: Option<SequenceRow<'_>>, buf: &mut Buffer) {
        let (cx, theme) = (self.cx, self.cx.theme);
        let dim = theme.style(StyleRole::Dim);
        let foot = self.diagram.foot;
        let narrow = self.diagram.lanes.as_ref().is_some_and(|it| it.text.1 < LEAST_TEXT);
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

/// Draws a cell of a lane.
fn draw_lane<'p, 'b>(cx: &DrawContext, pen: &'p mut Pen<'b>, cell: LaneCell) -> &'p mut Pen<'b> {
    match cell {
        LaneCell::Controls => pen.glyph(Glyph::LaneInControl, cx.theme.style(StyleRole::Strong)),
        _ => pen.glyph(Glyph::Lane, cx.theme.style(StyleRole::Dim)),
    }
}
