//! Places in logs where something was said: the text, who said it and when.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::StoreError;
use super::numbers::as_integer;
use super::said::SaidIndex;
use crate::event::said_part::SaidPart;
use crate::event::{Event, EventKind, RunId, Seq, SpanId};

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
            Ok(Some(SaidPlace { seq, at_ms, what: said.word(), who, text }))
        })
    }
}

/// The groups of a log that were read, the last one first.
struct LogBackwards<'c> {
    connection: &'c Connection,
    run: &'c RunId,
    groups: Vec<(i64, Vec<u8>)>,
}

impl LogBackwards<'_> {
    /// Reads the group that has an event, or the one before those that were read.
    fn read(&mut self, seq: Option<Seq>) -> rusqlite::Result<bool> {
        let last = match (seq, self.groups.last()) {
            (Some(seq), _) => as_integer(seq.0),
            (None, Some((first, _))) => first - 1,
            (None, None) => return Ok(false),
        };
        let group = self
            .connection
            .prepare_cached(
                "SELECT first, bytes FROM log WHERE run = ?1 AND first <= ?2
                 ORDER BY first DESC LIMIT 1",
            )?
            .query_row(params![self.run.as_str(), last], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let found = group.is_some();
        self.groups.extend(group);
        Ok(found)
    }

    fn event(&mut self, seq: Seq) -> rusqlite::Result<Option<Event>> {
        self.read(Some(seq))?;
        let Some((first, lines)) = self.groups.last() else { return Ok(None) };
        let at = usize::try_from(as_integer(seq.0) - first).unwrap_or(usize::MAX);
        Ok(lines_of(lines).nth(at).and_then(event_of))
    }

    /// Who made the call that an event belongs to: of a model the seat, agent or step, of a tool its
    /// name.
    fn caller(&mut self, event: &Event) -> rusqlite::Result<Option<String>> {
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
    fn opening(&mut self, span: SpanId) -> rusqlite::Result<Option<Event>> {
        // Lines are as this program writes them: who said something is left out of others.
        let kinds = ["call.started", "attempt.started"];
        let marks = kinds.map(|kind| format!("\"span\":{},\"kind\":\"{kind}\"", span.0));
        let mut at = 0;
        loop {
            while let Some((_, lines)) = self.groups.get(at) {
                let text = String::from_utf8_lossy(lines);
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

fn lines_of(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

fn event_of(line: &[u8]) -> Option<Event> {
    Event::from_line(std::str::from_utf8(line).ok()?).ok()
}
