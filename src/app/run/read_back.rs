//! What a page does with events that left memory and are read back: it takes over the log that was
//! folded from the store, shows what the operator wanted to see, and lets the events go again.

use super::data::RunData;
use super::earlier::{EarlierWish, ReadLog};
use super::inspect::target::InspectTarget;
use super::list::EventList;
use super::{EventWindow, InputOutcome, Pane, RunPage};
use crate::app::action::Action;
use crate::app::layout::Size;
use crate::narrate::format;

/// All that the store has was read, up to what is in memory: the page takes it over and shows what the
/// operator wanted to see.
///
/// # Errors
/// Events are missing between the two.
pub(in crate::app) fn end_reading_back(page: &mut RunPage, size: Size) -> Result<(), String> {
    let data = &mut page.run;
    let Some(mut read) = data.earlier.end_reading() else { return Ok(()) };
    data.log.iter().for_each(|event| read.apply(event));
    let events = usize::try_from(data.world.tally.events).unwrap_or(usize::MAX);
    if read.log.len() < data.log.len().max(events) {
        let missing = format::exact(read.log.len() as u64 + 1);
        return Err(format!("the store has no event {missing}"));
    }
    let first = data.log.first().map(|event| event.seq);
    let playhead = data.past.event_count();
    let ReadLog { log, world, past, wish, .. } = read;
    (data.log, data.world, data.past) = (log, world, past);
    data.earlier.arrive(first);
    if let Some(events) = playhead {
        data.past.seek(events, &data.log);
    }
    page.list.on_read_back();
    show_wish(page, wish, size);
    Ok(())
}

/// Shows what the operator wanted to see before the events were read.
fn show_wish(page: &mut RunPage, wish: EarlierWish, size: Size) {
    match wish {
        EarlierWish::Inspected | EarlierWish::All => {}
        EarlierWish::Playhead(events) => drop(page.seek(events, size)),
        EarlierWish::Event(seq) => {
            page.views.panes.focus_on(Pane::Events);
            let height = page.list_height(&page.areas_in(size));
            page.list.select(page.run.place(seq), page.run.log(), height);
        }
    }
    page.views.own.follow(&page.run.world().pattern);
    page.refresh_inspector();
    page.views.refresh(&page.run);
}

/// The events that were read back leave memory again unless the operator looks at them: where the page
/// is not on the screen, or shows the newest events. Returns whether they left.
pub(in crate::app) fn let_earlier_go(page: &mut RunPage, on_screen: bool) -> bool {
    let Some(before) = page.run.earlier.leaving() else { return false };
    let at_end = !page.is_scrubbed() && page.list.follows() && page.inspector.is_none();
    if on_screen && (!at_end || before.is_none()) {
        return false;
    }
    page.run.earlier.leave();
    match before {
        Some(before) => drop(page.drop_before(before)),
        None => page.drop_log(),
    }
    true
}

/// Requests the events of what is inspected, if they left memory.
pub(super) fn read_inspected(run: &RunData, target: InspectTarget) -> InputOutcome {
    if run.is_target_dropped(target) && run.earlier.is_stored() {
        return InputOutcome::Earlier(EarlierWish::Inspected);
    }
    InputOutcome::redraw()
}

/// Where an action selects an event in the list that left memory: its place. With a filter only what is
/// in memory is walked through.
pub(super) fn moves_before(
    list: &EventList,
    action: Action,
    log: &EventWindow,
    height: usize,
) -> Option<usize> {
    let first = log.dropped_count();
    if first == 0 || list.is_filtered() {
        return None;
    }
    let page = height.saturating_sub(1).max(1);
    let at = list.selected(log).unwrap_or(first);
    let to = match action {
        Action::Up => at.checked_sub(1)?,
        Action::PageUp if at == first => at.saturating_sub(page),
        Action::Top => 0,
        _ => return None,
    };
    (to < first).then_some(to)
}
