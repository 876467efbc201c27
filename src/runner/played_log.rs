//! The log of a run, read before a runner plays it.

use std::sync::Arc;

use crate::cluster::entry::{LogEntry, LogPart};
use crate::cluster::request::RunRequest;
use crate::event::{Event, EventKind, RunId, Seq};

/// The log of a run, read to be played.
pub(super) struct PlayedLog {
    pub request: RunRequest,
    /// The events that are stored.
    pub events: Vec<Arc<Event>>,
    /// The last message.
    pub place: u64,
    /// When the last group was stored, as Unix time in milliseconds of the server.
    pub stored_ms: u64,
    /// How often the run was claimed.
    pub claims: u32,
    /// The runner that has claimed it last.
    pub runner: Option<String>,
}

impl PlayedLog {
    /// Reads the log of a run.
    ///
    /// # Errors
    /// What is wrong with it: nothing of it is executed then.
    pub fn new(run: &RunId, entries: Vec<LogEntry>) -> Result<Self, String> {
        let mut entries = entries.into_iter();
        let first = entries.next().ok_or("the log is empty")?;
        let LogPart::Requested(request) = first.part else {
            return Err("log.broken: the log does not begin with its request".to_owned());
        };
        if request.run != *run {
            return Err("log.broken: its request is that of another run".to_owned());
        }
        let mut log = Self {
            request: *request,
            events: Vec::new(),
            place: first.place,
            stored_ms: first.stored_ms,
            claims: 0,
            runner: None,
        };
        for entry in entries {
            log.place = entry.place;
            match entry.part {
                LogPart::Claimed(claim) => {
                    log.claims += 1;
                    log.runner = Some(claim.runner);
                }
                LogPart::Events(group) => {
                    if group.first() != log.next() {
                        let (found, next) = (group.first().0, log.next().0);
                        return Err(format!(
                            "log.broken: event {found} follows where {next} belongs"
                        ));
                    }
                    let events = group.events(Seq(0));
                    log.events.extend(events.map_err(|error| format!("log.broken: {error}"))?);
                    log.stored_ms = entry.stored_ms;
                }
                LogPart::Requested(_) => {
                    return Err("log.broken: the run was handed over twice".to_owned());
                }
                LogPart::Elsewhere(..) => {
                    return Err("log.broken: a group is not in the object store".to_owned());
                }
            }
        }
        Ok(log)
    }

    /// Sequence number of the next event.
    pub fn next(&self) -> Seq {
        Seq(self.events.len() as u64)
    }

    /// A kind of event that this program does not know, if there is one.
    pub fn unknown_kind(&self) -> Option<&str> {
        self.events.iter().find_map(|event| match &event.kind {
            EventKind::Unknown { kind, .. } => Some(&**kind),
            _ => None,
        })
    }

    /// The stop reason, if the run has ended.
    pub fn reason(&self) -> Option<String> {
        match self.events.last().map(|event| &event.kind) {
            Some(EventKind::RunClosed(closed)) => Some(closed.reason.to_string()),
            _ => None,
        }
    }

    /// The last command that the run has taken.
    pub fn last_command(&self) -> u64 {
        let places = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::CommandTaken { place, .. } => Some(*place),
            _ => None,
        });
        places.max().unwrap_or(0)
    }
}
