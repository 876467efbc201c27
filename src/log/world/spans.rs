//! The tree of spans, built from the events that open and close them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::log::event::purpose::Purpose;
use crate::log::event::{Elapsed, Event, Seq, SpanId};
use crate::log::facts::observed::SpanRole;

pub use crate::log::event::{SpanKind, SpanState};

/// Rows in one shared chunk. Chunks are copied on write, so a checkpoint of a world shares
/// everything that has not changed since.
const CHUNK: u32 = 64;
/// Rows that a new chunk has room for: most runs open few spans, and a full chunk would be the
/// largest part of such a world.
const FIRST_CAPACITY: usize = 16;

/// Every span that was opened and is not forgotten. Accepts any ids that a file may have.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    chunks: BTreeMap<u32, Arc<Vec<Option<Span>>>>,
    opened: u64,
    open: u64,
    forgotten: u64,
    /// All chunks before this one have nothing left that can ever be forgotten.
    first_forgettable: u32,
}

/// One span.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub id: SpanId,
    /// Its parent; the run's own span is its own parent.
    pub parent: SpanId,
    pub kind: SpanKind,
    pub opened: Elapsed,
    /// When it was closed, if it was.
    pub closed: Option<Elapsed>,
    /// Whether it is open, done or failed.
    pub state: SpanState,
    pub opened_by: Seq,
    pub closed_by: Option<Seq>,
    pub first_child: Option<SpanId>,
    last_child: Option<SpanId>,
    /// The next child of its parent.
    pub next_sibling: Option<SpanId>,
    previous_sibling: Option<SpanId>,
}

impl Span {
    /// How long it took, or has taken until `now`.
    pub fn duration(&self, now: Elapsed) -> std::time::Duration {
        self.closed.unwrap_or(now).since(self.opened)
    }

    /// Whether it is a step of a resilience agent or a model call of a team agent: plans do not limit
    /// their number.
    fn is_endless(&self) -> bool {
        matches!(self.kind, SpanKind::Call(Purpose::AgentStep { .. } | Purpose::ModelCall { .. }))
    }
}

impl Spans {
    /// The event that opened a span.
    pub fn opened_by(&self, span: SpanId) -> Option<Seq> {
        self.get(span).map(|span| span.opened_by)
    }

    /// The event that closed a span.
    pub fn closed_by(&self, span: SpanId) -> Option<Seq> {
        self.get(span)?.closed_by
    }

    /// The span with this id.
    pub fn get(&self, id: SpanId) -> Option<&Span> {
        self.chunks.get(&(id.0 / CHUNK))?.get((id.0 % CHUNK) as usize)?.as_ref()
    }

    /// Number of spans that were opened.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Number of spans that are open now.
    pub fn open(&self) -> u64 {
        self.open
    }

    /// The children of a span in the order they were opened.
    pub fn children(&self, id: SpanId) -> impl Iterator<Item = &Span> {
        let first = self.get(id).and_then(|span| span.first_child);
        std::iter::successors(first.and_then(|first| self.get(first)), |span| {
            span.next_sibling.and_then(|next| self.get(next))
        })
    }

    /// Whether a span is inside another one. A file may have spans that enclose each other.
    pub(super) fn is_within(&self, span: SpanId, outer: SpanId) -> bool {
        let parents = std::iter::successors(self.get(span), |span| self.get(span.parent));
        parents.take(256).any(|span| span.parent == outer)
    }

    /// Whether the spans around a span lead to the run, within a limit.
    fn is_in_run(&self, span: SpanId) -> bool {
        let parents = std::iter::successors(self.get(span), |span| self.get(span.parent));
        span == SpanId::RUN || parents.take(256).any(|span| span.parent == SpanId::RUN)
    }

    /// The child of a span that was opened last.
    pub fn last_child(&self, id: SpanId) -> Option<&Span> {
        self.get(self.get(id)?.last_child?)
    }

    fn get_mut(&mut self, id: SpanId) -> Option<&mut Span> {
        let chunk = self.chunks.get_mut(&(id.0 / CHUNK))?;
        chunk.get((id.0 % CHUNK) as usize)?.as_ref()?;
        Arc::make_mut(chunk).get_mut((id.0 % CHUNK) as usize)?.as_mut()
    }

    /// Processes an event. A span that is opened twice keeps its first opening; an event about an
    /// unknown span is ignored.
    pub(crate) fn apply(&mut self, event: &Event) {
        if let Some((parent, what)) = event.kind.opens() {
            self.open_span(event, parent, what);
        } else if let Some(state) = event.kind.closes() {
            let Some(span) = self.get_mut(event.span).filter(|span| span.closed.is_none()) else {
                return;
            };
            span.closed = Some(event.at);
            span.closed_by = Some(event.seq);
            span.state = state;
            self.open -= 1;
        }
    }

    fn open_span(&mut self, event: &Event, parent: SpanId, what: SpanKind) {
        let id = event.span;
        if let Some(span) = self.get(id) {
            if matches!((&span.kind, &what), (SpanKind::Observed(_), SpanKind::Observed(_))) {
                self.move_into(id, parent, what);
            }
            return;
        }
        self.first_forgettable = self.first_forgettable.min(id.0 / CHUNK);
        let chunk = self.chunks.entry(id.0 / CHUNK);
        let chunk =
            Arc::make_mut(chunk.or_insert_with(|| Arc::new(Vec::with_capacity(FIRST_CAPACITY))));
        let place = (id.0 % CHUNK) as usize;
        let opened = Some(Span {
            id,
            parent,
            kind: what,
            opened: event.at,
            closed: None,
            state: SpanState::Open,
            opened_by: event.seq,
            closed_by: None,
            first_child: None,
            last_child: None,
            next_sibling: None,
            previous_sibling: None,
        });
        match chunk.get_mut(place) {
            Some(slot) => *slot = opened,
            None => {
                chunk.resize(place, None);
                chunk.push(opened);
            }
        }
        self.opened += 1;
        self.open += 1;
        if parent != id {
            self.link(id, parent);
        }
    }

    /// Adds a span as the last child of its parent.
    fn link(&mut self, id: SpanId, parent: SpanId) {
        let Some(above) = self.get_mut(parent) else { return };
        match above.last_child.replace(id) {
            None => above.first_child = Some(id),
            Some(before) => {
                if let Some(before) = self.get_mut(before) {
                    before.next_sibling = Some(id);
                }
                if let Some(span) = self.get_mut(id) {
                    span.previous_sibling = Some(before);
                }
            }
        }
    }

    /// A span of an observed run is in another one than it seemed, or something else.
    fn move_into(&mut self, id: SpanId, parent: SpanId, what: SpanKind) {
        let Some(span) = self.get_mut(id) else { return };
        if what != SpanKind::Observed(SpanRole::Step) {
            span.kind = what;
        }
        let before = span.parent;
        // So that no span encloses itself: the new parent is in the run, and not in this span.
        if before == parent || id == parent || self.is_within(parent, id) || !self.is_in_run(parent)
        {
            return;
        }
        self.unlink(id);
        if let Some(span) = self.get_mut(id) {
            span.parent = parent;
        }
        self.link(id, parent);
    }

    /// Number of forgotten spans.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Forgets spans that closed before this event and that nothing refers to any more, of the kinds
    /// that no plan limits in number: the steps of resilience agents and the model calls of team
    /// agents, with their attempts. Rounds, tasks, sources and the calls of members, hops and tools
    /// stay: a run's outcome needs them.
    pub(crate) fn forget_before(&mut self, fact: Seq) {
        let mut chunks: Vec<u32> = self.chunks_to_look_at(fact).collect();
        // The next call starts with the first chunk after these, or with one of these that is not done.
        let next = chunks.last().map_or(self.first_forgettable, |last| last + 1);
        let next = self.chunks.range(next..).next().map(|(at, _)| *at);
        self.first_forgettable = next.or(chunks.last().copied()).unwrap_or(self.first_forgettable);
        while let Some(at) = chunks.pop() {
            // In reverse order: an attempt has a higher id than its call, and has to go first.
            let (mut slot, mut gone) = (CHUNK as usize, false);
            while let Some(id) = self.last_forgettable(at, slot, fact) {
                slot = (id.0 % CHUNK) as usize;
                gone |= self.remove(id);
            }
            if gone && self.chunks.get(&at).is_some_and(|it| it.iter().all(Option::is_none)) {
                self.chunks.remove(&at);
            } else if self.has_forgettable(at) {
                self.first_forgettable = at;
            }
        }
    }

    /// Whether a chunk has a span that can be forgotten now or later.
    fn has_forgettable(&self, chunk: u32) -> bool {
        let spans = self.chunks.get(&chunk).into_iter().flat_map(|chunk| chunk.iter());
        spans.flatten().any(|span| match &span.kind {
            SpanKind::Attempt(_) => self.get(span.parent).is_some_and(Span::is_endless),
            _ => span.is_endless(),
        })
    }

    /// The chunks that [`forget_before`](Self::forget_before) looks at, which are few, also in a long run.
    /// Chunks with nothing left to forget are skipped. The first chunk without a span from before the event
    /// ends the search: later ones are looked at in a later call.
    pub(crate) fn chunks_to_look_at(&self, fact: Seq) -> impl Iterator<Item = u32> {
        let has_older =
            move |chunk: &[Option<Span>]| chunk.iter().flatten().any(|span| span.opened_by < fact);
        let chunks = self.chunks.range(self.first_forgettable..);
        chunks.take_while(move |(_, chunk)| has_older(chunk)).map(|(at, _)| *at)
    }

    /// Number of spans in all chunks that could be forgotten now.
    #[cfg(test)]
    pub(crate) fn forgettable(&self, fact: Seq) -> usize {
        let spans = self.chunks.values().flat_map(|chunk| chunk.iter().flatten());
        spans.filter(|span| self.can_forget(span, fact)).count()
    }

    fn last_forgettable(&self, chunk: u32, below: usize, fact: Seq) -> Option<SpanId> {
        let spans = self.chunks.get(&chunk)?.get(..below)?;
        spans.iter().rev().flatten().find(|span| self.can_forget(span, fact)).map(|span| span.id)
    }

    fn can_forget(&self, span: &Span, fact: Seq) -> bool {
        let before = |span: &Span| span.closed_by.is_some_and(|by| by < fact);
        before(span)
            && span.first_child.is_none()
            && match &span.kind {
                SpanKind::Call(Purpose::AgentStep { .. }) => true,
                SpanKind::Call(Purpose::ModelCall { .. }) => self.is_superseded(span),
                SpanKind::Attempt(_) => {
                    self.get(span.parent).is_some_and(|call| call.is_endless() && before(call))
                }
                _ => false,
            }
    }

    /// Whether no event refers to this model call any more: its agent has ended, or has called its
    /// model again. Until then its tool calls are carried out, and refused ones belong to it.
    fn is_superseded(&self, say: &Span) -> bool {
        let is_say = |span: &Span| matches!(span.kind, SpanKind::Call(Purpose::ModelCall { .. }));
        let next = |span: &Span| span.next_sibling.and_then(|next| self.get(next));
        self.get(say.parent).is_none_or(|run| run.closed.is_some())
            || std::iter::successors(next(say), |span| next(span)).any(is_say)
    }

    /// Removes a span from the children of its parent.
    fn unlink(&mut self, id: SpanId) {
        let Some(span) = self.get_mut(id) else { return };
        let (before, next) = (span.previous_sibling.take(), span.next_sibling.take());
        let parent = span.parent;
        if let Some(above) = self.get_mut(parent) {
            if above.first_child == Some(id) {
                above.first_child = next;
            }
            if above.last_child == Some(id) {
                above.last_child = before;
            }
        }
        if let Some(span) = before.and_then(|before| self.get_mut(before)) {
            span.next_sibling = next;
        }
        if let Some(span) = next.and_then(|next| self.get_mut(next)) {
            span.previous_sibling = before;
        }
    }

    fn remove(&mut self, id: SpanId) -> bool {
        self.unlink(id);
        let Some(chunk) = self.chunks.get_mut(&(id.0 / CHUNK)) else { return false };
        let gone = Arc::make_mut(chunk).get_mut((id.0 % CHUNK) as usize).and_then(Option::take);
        self.forgotten += u64::from(gone.is_some());
        gone.is_some()
    }
}
