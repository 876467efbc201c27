//! The order of a page: what belongs to a span stands together, in the order in which the spans began,
//! although concurrent calls end in any order. Only what has to wait for an earlier span is held.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};

use crate::event::SpanId;

enum OutlinePiece {
    Text(String),
    Child(SpanId),
}

struct OutlineNode {
    pieces: VecDeque<OutlinePiece>,
    is_open: bool,
}

/// The parts of a page that are not written yet.
pub(super) struct Outline {
    nodes: HashMap<SpanId, OutlineNode>,
    /// From the run to the span that is being written.
    path: Vec<SpanId>,
}

impl Outline {
    /// An outline of the run alone.
    pub(super) fn new() -> Self {
        let root = OutlineNode { pieces: VecDeque::new(), is_open: true };
        Self { nodes: HashMap::from([(SpanId::RUN, root)]), path: vec![SpanId::RUN] }
    }

    /// Whether this span has a part of its own that is still open.
    pub(super) fn has(&self, span: SpanId) -> bool {
        self.nodes.get(&span).is_some_and(|node| node.is_open)
    }

    /// Adds a part for a span below this one.
    pub(super) fn open(&mut self, parent: SpanId, span: SpanId) {
        if self.nodes.contains_key(&span) {
            return;
        }
        if let Some(node) = self.nodes.get_mut(&parent) {
            node.pieces.push_back(OutlinePiece::Child(span));
            self.nodes.insert(span, OutlineNode { pieces: VecDeque::new(), is_open: true });
        }
    }

    /// Adds a text to the part of this span.
    pub(super) fn add(&mut self, span: SpanId, text: String) {
        if let Some(node) = self.nodes.get_mut(&span) {
            node.pieces.push_back(OutlinePiece::Text(text));
        }
    }

    /// Closes the part of this span.
    pub(super) fn close(&mut self, span: SpanId) {
        if let Some(node) = self.nodes.get_mut(&span) {
            node.is_open = false;
        }
    }

    /// Closes the parts that are still open: the log ends before they do.
    pub(super) fn close_all(&mut self, end: &str) {
        for (span, node) in self.nodes.iter_mut().filter(|(_, node)| node.is_open) {
            if *span != SpanId::RUN {
                node.pieces.push_back(OutlinePiece::Text(end.to_owned()));
            }
            node.is_open = false;
        }
    }

    /// Writes what nothing earlier holds up.
    ///
    /// # Errors
    /// Those of `out`.
    pub(super) fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        while let Some(span) = self.path.last() {
            let Some(node) = self.nodes.get_mut(span) else {
                self.path.pop();
                continue;
            };
            match node.pieces.pop_front() {
                Some(OutlinePiece::Text(text)) => out.write_all(text.as_bytes())?,
                Some(OutlinePiece::Child(child)) => self.path.push(child),
                None if node.is_open => break,
                None => {
                    self.nodes.remove(span);
                    self.path.pop();
                }
            }
        }
        Ok(())
    }
}
