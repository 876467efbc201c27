//! The members drawer of a team: the members of each swarm, the agents that could join, and pending
//! changes.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Overlay;
use crate::base::name::AgentName;
use crate::log::event::{Command, Initiator, RunId};
use crate::log::facts::agents::{RosterChange, RosterCommand};
use crate::log::world::World;
use crate::log::world::available::{RunPart, available, can_change};
use crate::screen::effect::Update;
use crate::screen::layout::{DrawerParts, Size};
use crate::screen::list::ListState;
use crate::screen::notice::NoticeKind;
use crate::screen::run::RunPage;
use crate::screen::run::views::agents::state_sign;
use crate::screen::text::Pen;
use crate::screen::widgets::scroll_arrows;
use crate::screen::{AppState, DrawContext, frame, list};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::wrap_within;
use crate::words::styled::StyleRole;

/// Rows below the list: a description of the selected agent, and the effect of a change. A
/// longer list covers the last of them, which are rarely needed.
const FOOT: u16 = 6;

/// A line of the drawer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembersRow {
    Swarm(AgentName),
    /// An agent that is a member, or could become one.
    Agent(RosterEntry),
}

/// An agent, seen as a possible member of a swarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RosterEntry {
    pub swarm: AgentName,
    pub agent: AgentName,
}

impl RosterEntry {
    /// Whether a change of this member is pending: `true` to join, `false` to leave.
    pub fn pending(&self, page: &RunPage) -> Option<bool> {
        let mut changes = page.pending_changes().members();
        let own = changes.find(|it| it.swarm == self.swarm && it.agent == self.agent)?;
        Some(own.joins)
    }
}

/// The drawer over a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersDrawer {
    pub run: RunId,
    pub list: ListState,
}

/// The lines of the drawer: each swarm with its first members, then the agents that could join it.
pub fn member_rows(world: &World) -> Vec<MembersRow> {
    let Some(team) = world.agents() else { return Vec::new() };
    let plan = &team.plan;
    let mut rows = Vec::new();
    for swarm in &team.swarms {
        rows.push(MembersRow::Swarm(swarm.name.clone()));
        // The order is that of the plan, so that a row never moves when an agent joins.
        let start = plan.agent(&swarm.name).map(|head| head.members.as_slice()).unwrap_or_default();
        let others = plan.agents.iter().filter(|head| head.kind == "agent");
        let others = others.map(|head| &head.name).filter(|name| !start.contains(name));
        for agent in start.iter().chain(others) {
            let place = RosterEntry { swarm: swarm.name.clone(), agent: agent.clone() };
            rows.push(MembersRow::Agent(place));
        }
    }
    rows
}

/// Whether an agent is a member of a swarm now.
pub fn is_member(world: &World, place: &RosterEntry) -> bool {
    let swarm = world.agents().and_then(|team| team.swarm(&place.swarm));
    swarm.is_some_and(|swarm| swarm.members.contains(&place.agent))
}

/// Whether an agent is the entry of a swarm, which cannot leave.
pub fn is_entry(world: &World, place: &RosterEntry) -> bool {
    let swarm = world.agents().and_then(|it| it.plan.swarm(&place.swarm));
    swarm.is_some_and(|swarm| swarm.entry == place.agent)
}

impl MembersDrawer {
    /// The drawer of a run, with the first member selected.
    pub fn new(run: RunId, world: &World) -> Self {
        let first = member_rows(world).iter().position(|row| matches!(row, MembersRow::Agent(_)));
        Self { run, list: ListState { selected: first.unwrap_or(0), top: 0 } }
    }

    /// The parts of its window at this size.
    pub fn parts(&self, size: Size, world: &World) -> DrawerParts {
        DrawerParts::split(size.body(), self.list, member_rows(world).len(), 1, FOOT)
    }

    /// The selected agent.
    pub fn selected(&self, world: &World) -> Option<RosterEntry> {
        match member_rows(world).into_iter().nth(self.list.selected)? {
            MembersRow::Agent(place) => Some(place),
            MembersRow::Swarm(_) => None,
        }
    }

    /// The command for a switch of the selected agent, or why there is none.
    pub(crate) fn command(&self, page: &RunPage) -> Result<Command, String> {
        let world = page.world();
        let Some(place) = &self.selected(world) else {
            return Err("This run has no swarm.".to_owned());
        };
        let RosterEntry { swarm, agent } = place.clone();
        let joined = place.pending(page).unwrap_or(is_member(world, place));
        let change = match joined {
            true => RosterChange::Remove { agent },
            false => RosterChange::Add { agent },
        };
        let command = Command::Roster(RosterCommand { swarm, change, by: Initiator::You });
        available(&command, world).map_err(|why| why.sentence())?;
        Ok(command)
    }
}

/// Opens the drawer of the run on the screen.
pub(crate) fn open(state: &mut AppState) -> Update {
    let Some(page) = state.visible_run() else { return Update::idle() };
    let swarms = page.world().agents().is_some_and(|team| !team.swarms.is_empty());
    if !swarms {
        let why = "No swarm in this run: only members of a swarm join or leave.";
        state.notify(NoticeKind::Info, why);
        return Update::redraw();
    }
    let drawer = MembersDrawer::new(page.id().clone(), page.world());
    state.overlays.push(Overlay::Members(drawer));
    Update::redraw()
}

pub fn render(
    drawer: &MembersDrawer,
    page: &RunPage,
    state: &AppState,
    cx: &DrawContext,
    buf: &mut Buffer,
) {
    let world = page.world();
    let parts = drawer.parts(state.size, world);
    let title = frame::live_title("Members", page.id().as_str(), world.progress.is_live());
    let all = member_rows(world);
    let swarms = all.iter().filter(|row| matches!(row, MembersRow::Swarm(_))).count();
    let foot = format::count_noun(swarms as u64, "swarm");
    frame::window(&title, &foot, cx, parts.window, buf);
    let shown = all.iter().enumerate().skip(parts.top);
    for ((nth, row), y) in shown.zip(parts.list.y..parts.list.bottom()) {
        let at = Rect { y, height: 1, ..parts.list };
        match row {
            MembersRow::Swarm(name) => {
                let count = world.agents().and_then(|team| team.swarm(name));
                let count = count.map_or(0, |swarm| swarm.members.len());
                let text = format!("{name}, {}", format::count_noun(count as u64, "member"));
                let mut pen = Pen::new(buf, at, cx.glyphs);
                pen.space(1).put(&text, cx.theme.style(StyleRole::Title)).space(1);
                let rest = pen.left();
                pen.glyphs(Glyph::Horizontal, rest, cx.theme.style(StyleRole::Border));
            }
            MembersRow::Agent(place) => {
                agent(page, cx, world, at, place, nth == drawer.list.selected, buf);
            }
        }
    }
    let hidden = [parts.top > 0, parts.top + usize::from(parts.list.height) < all.len()];
    scroll_arrows(cx, parts.window.right().saturating_sub(1), parts.list, hidden, buf);
    if let Some(place) = &drawer.selected(world) {
        draw_member_note(page, cx, world, parts.note, place, buf);
    }
}

fn agent(
    page: &RunPage,
    cx: &DrawContext,
    world: &World,
    area: Rect,
    place: &RosterEntry,
    selected: bool,
    buf: &mut Buffer,
) {
    let theme = cx.theme;
    let (plain, dim) = (theme.style(StyleRole::Text), theme.style(StyleRole::Dim));
    let mut pen = list::row(cx, area, selected, buf);
    let member = is_member(world, place);
    let (mark, word, role) = if member {
        ("[x] ", "member", StyleRole::Flag)
    } else {
        ("[ ] ", "bench", StyleRole::Off)
    };
    let name = pen.left().saturating_sub(30).clamp(6, 24);
    pen.put(mark, theme.style(role)).name(place.agent.as_str(), name, plain).space(1);
    pen.cell(word, 8, theme.style(role));
    if is_entry(world, place) {
        pen.put("entry: must stay", dim);
        return;
    }
    match place.pending(page) {
        Some(joins) => {
            let text = if joins { "pending: join" } else { "pending: leave" };
            pen.glyph(Glyph::Waiting, theme.style(StyleRole::NeedsYou)).space(1);
            pen.put(text, theme.style(StyleRole::Notice));
        }
        None => {
            let row = world.agents().and_then(|team| team.agent(&place.agent));
            if let Some(row) = row.filter(|row| row.turns > 0) {
                let sign = state_sign(theme, row.state);
                pen.glyph(sign.glyph, sign.style).space(1).put(sign.word, dim);
            }
        }
    }
}

/// Draws the description of the selected agent, and the effect of a switch.
fn draw_member_note(
    page: &RunPage,
    cx: &DrawContext,
    world: &World,
    area: Rect,
    place: &RosterEntry,
    buf: &mut Buffer,
) {
    let Some(team) = world.agents() else { return };
    let plan = &team.plan;
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let about = plan.agent(&place.agent).map_or("", |head| head.description.as_str());
    let joined = place.pending(page);
    let joined = joined.unwrap_or(is_member(world, place));
    let (agent, swarm) = (&place.agent, &place.swarm);
    let holds = team.in_control.as_ref() == Some(agent);
    let would = if let Err(why) = can_change(RunPart::Swarms, world) {
        why.sentence()
    } else if is_entry(world, place) {
        format!("{swarm} starts with it, so it cannot leave.")
    } else if joined && holds {
        format!(
            "If it leaves, its current work continues; no agent hands over to {agent} after that."
        )
    } else if joined {
        format!("If it leaves, no agent hands over to {agent} from the next call on.")
    } else {
        format!("If it joins, the others may hand over to {agent} from their next call on.")
    };
    let line = |nth: u16| {
        let row = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
        Rect { y: area.y + nth, height: u16::from(nth < area.height), ..row }
    };
    let mut pen = Pen::new(buf, line(0), cx.glyphs);
    let width = pen.left();
    pen.glyphs(Glyph::Horizontal, width, cx.theme.style(StyleRole::Border));
    let mut at = 1;
    for (text, style) in [(about, dim), (would.as_str(), plain)] {
        let room = usize::from(area.height.saturating_sub(at));
        let (rows, _) = wrap_within(text, usize::from(width).max(1), room.min(2));
        for row in rows.iter().filter(|_| !text.is_empty()) {
            Pen::new(buf, line(at), cx.glyphs).put(row, style);
            at += 1;
        }
    }
}
