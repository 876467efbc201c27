//! Events of a run of this session that left memory, while they are read back from the store. The whole
//! log is folded again beside the page, which then takes it over.

use std::sync::Arc;

use super::RunPage;
use super::data::RunData;
use super::event_window::EventWindow;
use super::timeline::Timeline;
use crate::app::layout::Size;
use crate::app::request::RequestId;
use crate::event::{Event, Seq, World};
use crate::narrate::format;

/// What the operator wants to see once the events are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierWish {
    /// The run after this many events.
    Playhead(usize),
    /// This event in the list of events.
    Event(Seq),
    /// What the inspector shows.
    Inspected,
    /// The run, none of whose events is in memory.
    All,
}

/// Where the events are that left memory.
#[derive(Debug, Default)]
pub struct EarlierEvents {
    /// Whether the store may have them.
    is_stored: bool,
    place: Place,
}

#[derive(Debug, Default)]
enum Place {
    /// Not in memory, if any left it.
    #[default]
    Away,
    /// They are being read.
    Reading(Box<ReadLog>),
    /// They are in memory, until nobody looks at them any more.
    Here {
        /// The events before this one leave memory then; `None`: all.
        before: Option<Seq>,
    },
}

/// A log while it is read back.
#[derive(Debug)]
struct ReadLog {
    request: RequestId,
    wish: EarlierWish,
    log: EventWindow,
    world: World,
    past: Timeline,
}

impl ReadLog {
    fn apply(&mut self, event: &Arc<Event>) {
        if event.seq.0 == self.log.len() as u64 {
            self.world.apply(event);
            self.log.push(event);
            self.past.record(self.log.len(), &self.world);
        }
    }
}

impl EarlierEvents {
    /// Whether the store may have the events that left memory.
    pub fn is_stored(&self) -> bool {
        self.is_stored
    }

    /// Events leave memory; whether the store may have them.
    pub(in crate::app) fn set_stored(&mut self, is_stored: bool) {
        self.is_stored = is_stored;
    }

    /// Whether they are being read.
    pub fn is_reading(&self) -> bool {
        matches!(self.place, Place::Reading(_))
    }

    /// They cannot be read.
    pub(in crate::app) fn give_up(&mut self) {
        *self = Self::default();
    }

    /// They are requested from the store.
    pub(in crate::app) fn begin(&mut self, request: RequestId, wish: EarlierWish) {
        self.place = Place::Reading(Box::new(ReadLog {
            request,
            wish,
            log: EventWindow::default(),
            world: World::new(),
            past: Timeline::default(),
        }));
    }

    /// The operator wants to see something else, while they are read.
    pub(in crate::app) fn set_wish(&mut self, new: EarlierWish) {
        if let Place::Reading(read) = &mut self.place {
            read.wish = new;
        }
    }

    /// Whether they are read by this request.
    pub(in crate::app) fn is_answered_by(&self, request: RequestId) -> bool {
        matches!(&self.place, Place::Reading(read) if read.request == request)
    }

    /// Takes events that were read.
    pub(in crate::app) fn take(&mut self, events: &[Arc<Event>]) {
        if let Place::Reading(read) = &mut self.place {
            events.iter().for_each(|event| read.apply(event));
        }
    }

    /// Events before this one, or all, are to leave memory. Returns whether they stay for now.
    pub(super) fn hold(&mut self, drop_before: Option<Seq>) -> bool {
        let Place::Here { before } = &mut self.place else { return false };
        *before = drop_before;
        true
    }
}

/// All that the store has was read, up to what is in memory: the page takes it over and shows what the
/// operator asked for.
///
/// # Errors
/// Events are missing between the two.
pub(in crate::app) fn end_reading_back(page: &mut RunPage, size: Size) -> Result<(), String> {
    let data = &mut page.run;
    let Place::Reading(mut read) = std::mem::take(&mut data.earlier.place) else { return Ok(()) };
    data.log.iter().for_each(|event| read.apply(event));
    if read.log.len() < data.log.len().max(events_of(data)) {
        let missing = format::exact(read.log.len() as u64 + 1);
        return Err(format!("the store has no event {missing}"));
    }
    let first = data.log.first().map(|event| event.seq);
    let playhead = data.past.event_count();
    let ReadLog { log, world, past, wish, .. } = *read;
    (data.log, data.world, data.past) = (log, world, past);
    data.earlier.place = Place::Here { before: first };
    if let Some(events) = playhead {
        data.past.seek(events, &data.log);
    }
    page.list.on_read_back();
    page.show_wish(wish, size);
    Ok(())
}

fn events_of(data: &RunData) -> usize {
    usize::try_from(data.world.tally.events).unwrap_or(usize::MAX)
}

/// The events that were read back leave memory again where nobody looks at them: the page is not on the
/// screen, or shows the newest events. Returns whether they left.
pub(in crate::app) fn let_earlier_go(page: &mut RunPage, on_screen: bool) -> bool {
    let Place::Here { before } = page.run.earlier.place else { return false };
    let at_end = !page.is_scrubbed() && page.list.follows() && page.inspector.is_none();
    match before {
        _ if on_screen && (!at_end || before.is_none()) => return false,
        Some(before) => {
            page.run.earlier.place = Place::Away;
            page.drop_before(before);
        }
        None => {
            page.run.earlier.place = Place::Away;
            page.drop_log();
        }
    }
    true
}
