//! Events of a run of this session that left memory, while they are read back from the store. The whole
//! log is folded again on its own; the page takes it over (`read_back.rs`).

use std::sync::Arc;

use super::event_window::EventWindow;
use super::timeline::Timeline;
use crate::app::request::RequestId;
use crate::event::{Event, Seq, World};

/// What the operator wants to see once the events are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierWish {
    /// The run after this many events.
    Playhead(usize),
    /// This event in the list of events.
    Event(Seq),
    /// What the inspector shows.
    Inspected,
    /// The whole run: all of its events left memory.
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
    /// They are in memory, as long as the operator looks at them.
    Here {
        /// The events before this one leave memory then; `None`: all.
        before: Option<Seq>,
    },
}

/// A log while it is read back.
#[derive(Debug)]
pub(super) struct ReadLog {
    request: RequestId,
    pub wish: EarlierWish,
    pub log: EventWindow,
    pub world: World,
    pub past: Timeline,
}

impl ReadLog {
    /// Takes the next event of the log; ignores any other one.
    pub fn apply(&mut self, event: &Arc<Event>) {
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

    /// Ends the reading; `None`: nothing is being read.
    pub(super) fn end_reading(&mut self) -> Option<ReadLog> {
        match std::mem::take(&mut self.place) {
            Place::Reading(read) => Some(*read),
            place => {
                self.place = place;
                None
            }
        }
    }

    /// They are in memory. The events before this one, or all, are to leave it again.
    pub(super) fn arrive(&mut self, before: Option<Seq>) {
        self.place = Place::Here { before };
    }

    /// What is to leave memory again: the events before the first one, or all; `None`: nothing.
    pub(super) fn leaving(&self) -> Option<Option<Seq>> {
        match self.place {
            Place::Here { before } => Some(before),
            _ => None,
        }
    }

    /// They leave memory again.
    pub(super) fn leave(&mut self) {
        self.place = Place::Away;
    }
}
