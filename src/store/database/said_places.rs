//! Places in logs where something was said: the text, who said it and when.

use rusqlite::Connection;

use super::StoreError;
use super::read::group_before;
use super::said::SaidIndex;
use crate::event::said_part::SaidPart;
use crate::event::{Event, EventKind, RunId, Seq, SpanId};
use crate::store::EventGroup;

/// Groups before that of a reply in which its call is looked for.
const GROUPS_BACK: u32 = 64;

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidPlace {
    /// Sequence number of the event.
    pub seq: Seq,
    /// When, in milliseconds since the start of the run.
    pub at_ms: u64,
    /// In which way: [`SaidPart::word`].
    pub what: &'static str,
    /// The seat, the agent, the step or the tool; empty if that is not known.
    pub who: String,
    /// The text; parts of it are separated by ` · `.
    pub text: String,
}

impl SaidIndex<'_> {
    /// What was said in an event of a run; `None` if it cannot be read. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn said_at(&self, run: &RunId, seq: Seq) -> Result<Option<SaidPlace>, StoreError> {
        self.0.reading(|connection| {
            let mut log = LogBackwards { connection, run, groups: Vec::new() };
            let Some(event) = log.event(seq)? else { return Ok(None) };
            let Some(said) = SaidPart::of(&event.kind) else { return Ok(None) };
            let mut texts = Vec::new();
            said.each_text(&mut |text| texts.push(text.to_owned()));
            let who = match &event.kind {
                EventKind::RunStarted(_) => String::new(),
                EventKind::Pattern(fact) => fact.get().about().agent.unwrap_or_default().to_owned(),
                EventKind::AnswerComposed { by, .. } => {
                    by.as_ref().map(|by| by.to_string()).unwrap_or_default()
                }
                _ => log.caller(&event)?.unwrap_or_default(),
            };
            let (at_ms, text) = (event.at.0 / 1_000, texts.join(" · "));
            Ok::<_, StoreError>(Some(SaidPlace { seq, at_ms, what: said.word(), who, text }))
        })
    }
}

/// The groups of a log that were read, the last one first.
struct LogBackwards<'c> {
    connection: &'c Connection,
    run: &'c RunId,
    groups: Vec<EventGroup>,
}

impl LogBackwards<'_> {
    /// Reads the group that has an event, or the one before those that were read.
    fn read(&mut self, seq: Option<Seq>) -> Result<bool, StoreError> {
        let last = match (seq, self.groups.last()) {
            (Some(seq), _) => seq,
            (None, Some(group)) if group.first() > Seq(0) => Seq(group.first().0 - 1),
            (None, _) => return Ok(false),
        };
        let group = group_before(self.connection, self.run, last)?;
        let found = group.is_some();
        self.groups.extend(group);
        Ok(found)
    }

    fn event(&mut self, seq: Seq) -> Result<Option<Event>, StoreError> {
        self.read(Some(seq))?;
        let Some(group) = self.groups.last() else { return Ok(None) };
        let events = group.events(seq)?;
        Ok(events.first().filter(|event| event.seq == seq).map(|event| Event::clone(event)))
    }

    /// Who made the call that an event belongs to: of a model the seat, agent or step, of a tool its
    /// name.
    fn caller(&mut self, event: &Event) -> Result<Option<String>, StoreError> {
        if let Some(name) = name_of_call(&event.kind) {
            return Ok(Some(name));
        }
        let mut span = event.span;
        // The span of an attempt, then that of its call.
        for _ in 0..2 {
            let Some(opening) = self.opening(span)? else { return Ok(None) };
            if let Some(name) = name_of_call(&opening.kind) {
                return Ok(Some(name));
            }
            let EventKind::AttemptStarted { parent, .. } = opening.kind else { return Ok(None) };
            span = parent;
        }
        Ok(None)
    }

    /// The event that opened a span of a call or of an attempt.
    fn opening(&mut self, span: SpanId) -> Result<Option<Event>, StoreError> {
        // Lines are as this program writes them: who said something is left out of others.
        let kinds = ["call.started", "attempt.started"];
        let marks = kinds.map(|kind| format!("\"span\":{},\"kind\":\"{kind}\"", span.0));
        let mut at = 0;
        loop {
            while let Some(group) = self.groups.get(at) {
                let text = String::from_utf8_lossy(group.lines());
                let line = text.lines().find(|line| marks.iter().any(|mark| line.contains(mark)));
                if let Some(line) = line {
                    return Ok(event_of(line.as_bytes()));
                }
                at += 1;
            }
            if at > GROUPS_BACK as usize || !self.read(None)? {
                return Ok(None);
            }
        }
    }
}

fn name_of_call(kind: &EventKind) -> Option<String> {
    let EventKind::CallStarted(call) = kind else { return None };
    let of_model = !call.prompt.is_empty();
    Some(if of_model { call.purpose.label().into_owned() } else { call.tool.to_string() })
}

fn event_of(line: &[u8]) -> Option<Event> {
    Event::from_line(std::str::from_utf8(line).ok()?).ok()
}
