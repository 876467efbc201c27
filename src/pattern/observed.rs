//! An observed run: what another program reports becomes the facts of a log. Spans come in any order: a parent
//! that only its children have named is open until it is reported.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::log::event::{EventKind, SpanId, StopReason};
use crate::log::facts::observed::{
    ObservedFact, SPANS_MISSING, SpanAbout, SpanEnd, SpanRole, TEXTS_MISSING, TextStream,
};
use crate::run::RunContext;
use crate::scenario::Scenario;
use crate::scenario::patterns::observed;
use crate::scenario::patterns::observed::ObservedSpec;
use crate::scenario::spec::Price;
use crate::scenario::spec::script::ReplyEnd;

/// What is observed of a program that is watched.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    /// A span began. `parent`: the id of the span around it; empty: the run.
    Opened { parent: Arc<str>, about: SpanAbout },
    /// A span ended, whether or not its start was reported.
    Closed { parent: Arc<str>, end: SpanEnd, about: SpanAbout },
    /// A line of the output (`span` is empty), or a log record.
    Text { span: Arc<str>, stream: TextStream, text: Arc<str> },
    /// What happened in a span; `span` is empty: in the run.
    Note { span: Arc<str>, text: Arc<str> },
    /// Something that the operator should know of the receiver.
    Warning(String),
    /// Nothing more comes for the run.
    Over(ObservedEnd),
}

/// How an observed run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservedEnd {
    Spans,
    /// The program has ended, with this exit code.
    Program(i32),
}

/// Sends what happens in the program; it may wait for the run to read it.
pub type ObservationSender = mpsc::Sender<Observation>;

/// Observations that the run has not read yet: more make the sender wait.
const QUEUED: usize = 1_024;

/// The price of a model with this name; `None`: it is not known.
pub type PriceOf = Arc<dyn Fn(&str) -> Option<Price> + Send + Sync>;

/// What a run reads.
struct Source {
    observed: mpsc::Receiver<Observation>,
    price_of: PriceOf,
}

/// The scenario of one observed run of a program, and the sender of its observations. `name`: of the program, for
/// lists; `command`: the program and its arguments, empty if it was not started here; `price_of`: the prices of its
/// models.
pub fn scenario(
    name: &str,
    command: Vec<String>,
    price_of: PriceOf,
) -> Option<(Scenario, ObservationSender)> {
    let (sender, observed) = mpsc::channel::<Observation>(QUEUED);
    let source = Box::new(Source { observed, price_of });
    Some((observed::scenario(name, command, source)?, sender))
}

/// Most spans of a run; more are counted. The dashboard needs about 1 KiB for each.
pub const MAX_SPANS: usize = 200_000;

/// Most lines of output, log records and notes of a run; more are counted.
const MAX_TEXTS: u64 = MAX_SPANS as u64;

/// Reads what is observed of the program until it is over.
///
/// # Errors
/// The program, or its outermost span, failed.
pub async fn play(cx: &RunContext, spec: &ObservedSpec) -> Result<(), StopReason> {
    let source = spec.source().and_then(|it| it.downcast::<Source>().ok());
    let Some(mut source) = source else { return Err(StopReason::InternalError) };
    cx.set_phase("program".to_owned());
    let mut run = ObservedRun::new(cx, source.price_of);
    let end = loop {
        // A reader of the log, or the store, may be behind.
        if !cx.bus().is_within_limits() {
            cx.bus().wait_for_room().await;
        }
        match source.observed.recv().await {
            Some(Observation::Over(end)) => break end,
            Some(observed) => run.receive(observed),
            // The receiver has ended.
            None => break ObservedEnd::Spans,
        }
    };
    run.end(end)
}

/// A span whose id is known.
struct KnownSpan {
    id: SpanId,
    parent: SpanId,
    /// Whether only its children have named it.
    is_named_only: bool,
    is_open: bool,
    /// The model, of a call of one.
    model: Option<Arc<str>>,
}

struct ObservedRun<'a> {
    cx: &'a RunContext,
    price_of: PriceOf,
    spans: HashMap<Arc<str>, KnownSpan>,
    /// Spans beyond the limit.
    left_out: u64,
    /// Lines, records and notes, also those beyond the limit.
    texts: u64,
    /// The outermost span that ended last: its output is the answer.
    root: Option<(SpanEnd, Arc<SpanAbout>)>,
    /// The last reply of a model: the answer where the outermost span has no output.
    last_reply: Option<Arc<str>>,
}

impl<'a> ObservedRun<'a> {
    fn new(cx: &'a RunContext, price_of: PriceOf) -> Self {
        let spans = HashMap::new();
        Self { cx, price_of, spans, left_out: 0, texts: 0, root: None, last_reply: None }
    }

    fn receive(&mut self, observed: Observation) {
        match observed {
            Observation::Opened { parent, about } => {
                self.open(&parent, about, false);
            }
            Observation::Closed { parent, end, about } => self.close(&parent, end, about),
            Observation::Text { span, stream, text } => {
                self.add_text(&span, ObservedFact::Text { stream, text });
            }
            Observation::Note { span, text } => self.add_text(&span, ObservedFact::Note { text }),
            Observation::Warning(text) => {
                self.cx.publish(SpanId::RUN, EventKind::Warning { text });
            }
            Observation::Over(_) => {}
        }
    }

    fn add_text(&mut self, span: &str, fact: ObservedFact) {
        self.texts += 1;
        if self.texts <= MAX_TEXTS {
            self.cx.publish(self.span_of(span), fact);
        }
    }

    /// The span with this id; the run, if it has none.
    fn span_of(&self, id: &str) -> SpanId {
        if id.is_empty() {
            return SpanId::RUN;
        }
        self.spans.get(id).map_or(SpanId::RUN, |known| known.id)
    }

    /// The parent with this id, which is opened if it was never reported; the run, if the id is empty.
    fn parent_of(&mut self, id: &Arc<str>, of: &SpanAbout) -> SpanId {
        if id.is_empty() || *id == of.id {
            return SpanId::RUN;
        }
        if let Some(known) = self.spans.get(id) {
            return known.id;
        }
        if self.spans.len() >= MAX_SPANS {
            return SpanId::RUN;
        }
        let about = SpanAbout { id: Arc::clone(id), from_us: of.from_us, ..SpanAbout::default() };
        self.add(SpanId::RUN, about, (true, false))
    }

    fn add(
        &mut self,
        parent: SpanId,
        about: SpanAbout,
        (is_named_only, at_end): (bool, bool),
    ) -> SpanId {
        let (key, model, about) = (Arc::clone(&about.id), about.model.clone(), Arc::new(about));
        let id = self.cx.open_span(ObservedFact::Opened { parent, at_end, about });
        self.spans.insert(key, KnownSpan { id, parent, is_named_only, is_open: true, model });
        id
    }

    /// Opens a span, or adds to an open one. `None`: there are too many.
    fn open(&mut self, parent: &Arc<str>, about: SpanAbout, at_end: bool) -> Option<SpanId> {
        if let Some(known) = self.spans.get(&about.id) {
            let (id, was_named_only) = (known.id, known.is_named_only);
            if !known.is_open {
                return Some(id);
            }
            let parent = self.parent_of(parent, &about);
            let known = self.spans.get_mut(&about.id)?;
            if was_named_only || known.parent != parent {
                (known.is_named_only, known.parent) = (false, parent);
                let about = Arc::new(about);
                self.cx.publish(id, ObservedFact::Opened { parent, at_end, about });
            }
            return Some(id);
        }
        if self.spans.len() >= MAX_SPANS {
            if self.left_out == 0 {
                let text = format!(
                    "{SPANS_MISSING}the limit of {MAX_SPANS} spans is reached: later ones are only counted"
                );
                self.cx.publish(SpanId::RUN, EventKind::Warning { text });
            }
            self.left_out += 1;
            return None;
        }
        let parent = self.parent_of(parent, &about);
        Some(self.add(parent, about, (false, at_end)))
    }

    fn close(&mut self, parent: &Arc<str>, end: SpanEnd, mut about: SpanAbout) {
        let start = SpanAbout { output: None, error: None, until_us: None, ..about.clone() };
        let Some(id) = self.open(parent, start, true) else { return };
        let Some(known) = self.spans.get_mut(&about.id).filter(|known| known.is_open) else {
            return;
        };
        known.is_open = false;
        if let (Some(usage), None) = (about.usage(), about.cost_usd) {
            let model = about.model.as_ref().or(known.model.as_ref());
            let price = model.and_then(|model| (self.price_of)(model));
            about.cost_usd = price.map(|price| price.cost(&usage));
        }
        if about.role == SpanRole::Model && about.output.is_some() {
            self.last_reply.clone_from(&about.output);
        }
        let (about, around) = (Arc::new(about), known.parent);
        // A parent of another program is named, and never reported.
        let is_unreported = self.spans.get(parent).is_some_and(|known| known.is_named_only);
        if around == SpanId::RUN || is_unreported {
            self.root = Some((end, Arc::clone(&about)));
        }
        self.cx.publish(id, ObservedFact::Closed { end, about });
    }

    fn end(mut self, end: ObservedEnd) -> Result<(), StopReason> {
        let mut open: Vec<_> = self.spans.values().filter(|known| known.is_open).collect();
        // Children first.
        open.sort_unstable_by_key(|known| std::cmp::Reverse(known.id));
        for known in open {
            let about = Arc::default();
            let lost = ObservedFact::Closed { end: SpanEnd::Lost, about };
            self.cx.publish(known.id, lost);
        }
        let left_out = [
            (self.left_out, SPANS_MISSING, format!("spans beyond {MAX_SPANS}")),
            (
                self.texts.saturating_sub(MAX_TEXTS),
                TEXTS_MISSING,
                format!("lines and notes beyond {MAX_TEXTS}"),
            ),
        ];
        for (count, missing, what) in left_out.into_iter().filter(|(count, ..)| *count > 0) {
            let text = format!("{missing}{count} {what} are left out");
            self.cx.publish(SpanId::RUN, EventKind::Warning { text });
        }
        let root = self.root.take();
        let answer = root.as_ref().and_then(|(_, about)| about.output.clone()).or(self.last_reply);
        if let Some(answer) = answer {
            let end = ReplyEnd::default();
            self.cx.publish(SpanId::RUN, EventKind::AnswerComposed { text: answer, by: None, end });
        }
        match (end, root) {
            (ObservedEnd::Program(code), _) if code != 0 => Err(StopReason::ProgramFailed),
            (_, Some((SpanEnd::Failed, _))) => Err(StopReason::SpanFailed),
            _ => Ok(()),
        }
    }
}
