//! The members drawer over a run: the members of each swarm, the agents that could join, and
//! pending changes.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::AppState;
use crate::app::run::RunPage;
use crate::event::world::World;
use crate::narrate::glyph::Glyph;
use crate::panes::agents::draw::agent::state_sign;
use crate::panes::agents::members::{
    MembersDrawer, MembersRow, RosterEntry, is_entry, is_member, member_rows,
};
use crate::ui::cx::DrawContext;
use crate::ui::pane::scroll_arrows;
use crate::ui::text::{Pen, wrap_within};
use crate::ui::theme::StyleRole;
use crate::ui::{format, frame, table};

/// Draws the drawer of a run.
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
    let shown = all.iter().skip(parts.top).take(usize::from(parts.list.height));
    for (row, y) in shown.zip(parts.list.y..) {
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
                let selected = drawer.selected.as_ref() == Some(place);
                agent(page, cx, world, at, place, selected, buf);
            }
        }
    }
    let hidden = [parts.top > 0, parts.top + usize::from(parts.list.height) < all.len()];
    scroll_arrows(cx, parts.window.right().saturating_sub(1), parts.list, hidden, buf);
    if let Some(place) = &drawer.selected {
        draw_member_note(page, cx, world, parts.foot, place, buf);
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
    let mut pen = table::row(cx, area, selected, buf);
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
    let would = if !world.progress.is_live() {
        "The run has ended: its swarms can no longer change.".to_owned()
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
