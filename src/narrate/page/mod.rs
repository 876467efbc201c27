//! A run as one page of HTML that needs neither a script nor a network: a pure function of its log.
//! Every text goes through `html.rs`; an attribute is made of numbers and words of the program alone.

mod frame;
pub(crate) mod html;
mod outline;
mod story;

use std::io::{self, Write};

use self::outline::Outline;
use crate::event::kind::Purpose;
use crate::event::world::SpanKind;
use crate::event::{Event, SpanId, World};

/// Ends a part.
const END: &str = "</section>\n";

/// A page that is being written. It holds a bounded fold of the log so far, and what concurrent calls
/// have said since the earliest of them began.
pub struct RunPageWriter<'o> {
    out: &'o mut dyn Write,
    world: World,
    outline: Outline,
}

impl<'o> RunPageWriter<'o> {
    /// Begins the page of a run. `whole` is the fold of its whole log.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn begin(out: &'o mut dyn Write, whole: &World) -> io::Result<Self> {
        out.write_all(frame::beginning(whole).as_bytes())?;
        Ok(Self { out, world: World::new(), outline: Outline::new() })
    }

    /// Adds the next event of the log.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        self.world.apply(event);
        let span = event.span;
        let opened = event.kind.opens();
        let heading = opened
            .as_ref()
            .and_then(|(parent, kind)| Some((*parent, story::heading(event, kind, &self.world)?)));
        if let Some((parent, heading)) = heading {
            let parent = self.part_of(parent);
            self.outline.open(parent, span);
            self.outline.add(span, heading);
        }
        let place = self.part_of(span);
        let text = story::part(event, &self.world, self.purpose(span));
        self.outline.add(place, text);
        if event.kind.closes().is_some() && span != SpanId::RUN && self.outline.has(span) {
            self.outline.add(span, END.to_owned());
            self.outline.close(span);
        }
        self.world.forget_old(1);
        self.outline.write(self.out)
    }

    /// Ends the page.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn end(mut self) -> io::Result<()> {
        self.outline.close_all(END);
        self.outline.write(self.out)?;
        self.out.write_all(frame::end(&self.world).as_bytes())
    }

    /// The nearest span above that has an open part of its own.
    fn part_of(&self, span: SpanId) -> SpanId {
        let mut at = span;
        // A log from a file may have a cycle.
        for _ in 0..64 {
            if self.outline.has(at) {
                return at;
            }
            match self.world.spans.get(at) {
                Some(found) if found.parent != at => at = found.parent,
                _ => break,
            }
        }
        SpanId::RUN
    }

    /// The purpose of the call that a span is, or belongs to.
    fn purpose(&self, span: SpanId) -> Option<&Purpose> {
        let found = self.world.spans.get(span)?;
        match (&found.kind, self.world.spans.get(found.parent).map(|above| &above.kind)) {
            (SpanKind::Call(purpose), _) => Some(purpose),
            (SpanKind::Attempt(_), Some(SpanKind::Call(purpose))) => Some(purpose),
            _ => None,
        }
    }
}
