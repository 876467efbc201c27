//! Brings what the doors say to the runs: one for each trace. The first one waits for the first trace, so that a
//! program is shown from its start.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::{Door, Said, SpanSaid};
use crate::base::time::now_ms;
use crate::engine::RunHandle;
use crate::log::facts::observed::{SpanAbout, TextStream};
use crate::pattern::observed::{MAX_SPANS, Observation, ObservationSender, ObservedEnd, scenario};
use crate::scenario::Scenario;

/// How long a trace whose outermost spans have ended must be quiet until its run ends.
const QUIET: Duration = Duration::from_secs(10);

/// The same where a parent was named and not said: it may be a span of another program.
const PARENT: Duration = Duration::from_secs(300);

/// Most traces with an open run: the one that is silent for the longest time makes room.
const MAX_RUNS: usize = 64;

/// A time of a span that differs by more from the time of this machine is left out.
const MAX_SKEW_US: u64 = 24 * 3_600 * 1_000_000;

/// What reaches the hub.
pub enum HubInput {
    Said(Vec<Said>),
    /// A line of the output of the program.
    Line(TextStream, String),
    /// Something that the operator should know of the receiver.
    Warning(String),
    /// The program has ended, with this exit code. Nothing follows.
    Ended(i32),
}

/// Starts a run of a scenario; `None`: it cannot be started.
pub type StartRun = Box<dyn Fn(Scenario) -> Option<RunHandle> + Send>;

/// What happened, for the end of the program.
#[derive(Debug, Default)]
pub struct HubReport {
    /// The runs, in the order of their start.
    pub runs: Vec<RunHandle>,
    /// What came after the end of its run, or of a trace without spans.
    pub late: u64,
    /// What doors said of a framework for which another one counts.
    pub ignored: BTreeMap<(&'static str, &'static str), u64>,
}

impl std::fmt::Debug for RunHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.id().fmt(f)
    }
}

struct TraceRun {
    run: RunHandle,
    say: ObservationSender,
    /// The spans that have begun and not ended.
    open: HashSet<Arc<str>>,
    /// Those that have ended: what is said at the end may arrive before the start.
    closed: HashSet<Arc<str>>,
    /// Those that only their children have named.
    named: HashSet<Arc<str>>,
    /// When something was said last.
    last: Instant,
    has_spans: bool,
}

/// The traces of a program.
pub struct Hub {
    name: String,
    command: Vec<String>,
    start: StartRun,
    traces: HashMap<Arc<str>, TraceRun>,
    /// A run that waits for its trace.
    waiting: Option<TraceRun>,
    over: HashSet<Arc<str>>,
    doors: HashMap<&'static str, Door>,
    report: HubReport,
}

impl Hub {
    /// A hub for a program of this name.
    pub fn new(name: String, command: Vec<String>, start: StartRun) -> Self {
        Self {
            name,
            command,
            start,
            traces: HashMap::new(),
            waiting: None,
            over: HashSet::new(),
            doors: HashMap::new(),
            report: HubReport::default(),
        }
    }

    /// Starts the run that waits for the first trace.
    pub fn wait_for_trace(&mut self) {
        self.waiting = self.begin();
    }

    /// Brings everything to its run, until the program has ended or nothing can be said any more.
    pub async fn run(mut self, mut inputs: mpsc::Receiver<HubInput>) -> HubReport {
        loop {
            let quiet = self.next_quiet();
            let input = tokio::select! {
                input = inputs.recv() => input,
                () = sleep_until(quiet.unwrap_or_else(Instant::now)), if quiet.is_some() => {
                    self.end_quiet().await;
                    continue;
                }
            };
            match input {
                Some(HubInput::Said(said)) => {
                    for said in said {
                        self.hear(said).await;
                    }
                }
                Some(HubInput::Line(stream, text)) => {
                    let (span, text) = (Arc::default(), super::texts::text(&text));
                    self.tell_current(Observation::Text { span, stream, text }).await;
                }
                Some(HubInput::Warning(text)) => {
                    self.tell_current(Observation::Warning(text)).await;
                }
                Some(HubInput::Ended(code)) => break self.end(ObservedEnd::Program(code)).await,
                None => break self.end(ObservedEnd::Spans).await,
            }
        }
    }

    fn begin(&mut self) -> Option<TraceRun> {
        let (scenario, say) = scenario(&self.name, self.command.clone())?;
        let run = (self.start)(scenario)?;
        self.report.runs.push(run.clone());
        let last = Instant::now();
        let [open, closed, named] = [HashSet::new(), HashSet::new(), HashSet::new()];
        Some(TraceRun { run, say, open, closed, named, last, has_spans: false })
    }

    async fn hear(&mut self, said: Said) {
        let Said { door, framework, trace, what } = said;
        if !framework.is_empty() {
            let first = *self.doors.entry(framework).or_insert(door);
            // A door that speaks first may be followed by a better one: its spans stay.
            if door > first {
                *self.report.ignored.entry((door.name(), framework)).or_default() += 1;
                return;
            }
            self.doors.insert(framework, door);
        }
        if self.over.contains(&trace) {
            self.report.late += 1;
            return;
        }
        let is_of_span = matches!(what, SpanSaid::Opened { .. } | SpanSaid::Closed { .. });
        if !self.traces.contains_key(&trace) {
            if self.traces.len() >= MAX_RUNS && is_of_span {
                self.end_silent().await;
            }
            let waiting = self.waiting.take_if(|waiting| is_of_span || waiting.say.is_closed());
            let begun = match waiting.filter(|waiting| !waiting.say.is_closed()) {
                Some(waiting) => Some(waiting),
                None if is_of_span => self.begin(),
                // A log record begins no run.
                None => None,
            };
            let Some(begun) = begun else {
                self.report.late += 1;
                return;
            };
            self.traces.insert(Arc::clone(&trace), begun);
        }
        let Some(of) = self.traces.get_mut(&trace) else { return };
        of.last = Instant::now();
        let said = match what {
            SpanSaid::Opened { parent, about } => {
                of.opened(&about.id);
                Observation::Opened { parent, about: plausible(about) }
            }
            SpanSaid::Closed { parent, end, about } => {
                of.closed(&about.id, &parent);
                Observation::Closed { parent, end, about: plausible(about) }
            }
            SpanSaid::Text { span, text } => {
                Observation::Text { span, stream: TextStream::Log, text }
            }
            SpanSaid::Note { span, text } => Observation::Note { span, text },
        };
        let is_gone = of.say.send(said).await.is_err();
        if is_gone {
            self.traces.remove(&trace);
            self.over.insert(trace);
        }
    }

    /// Says something to the run that is current: the one that waits, else the one of which was spoken last.
    async fn tell_current(&mut self, said: Observation) {
        let last = self.traces.values().max_by_key(|of| of.last);
        if let Some(of) = self.waiting.as_ref().or(last) {
            let _ = of.say.send(said).await;
        }
    }

    /// When the next run ends if nothing more is said.
    fn next_quiet(&self) -> Option<Instant> {
        self.traces.values().filter_map(TraceRun::ends_at).min()
    }

    async fn end_quiet(&mut self) {
        let now = Instant::now();
        let is_over = |of: &TraceRun| of.ends_at().is_some_and(|at| at <= now);
        let over: Vec<Arc<str>> = self
            .traces
            .iter()
            .filter(|(_, of)| is_over(of))
            .map(|(id, _)| Arc::clone(id))
            .collect();
        for trace in over {
            if let Some(of) = self.traces.remove(&trace) {
                let _ = of.say.send(Observation::Over(ObservedEnd::Spans)).await;
            }
            self.over.insert(trace);
        }
    }

    /// Ends the run of which nothing was said for the longest time.
    async fn end_silent(&mut self) {
        let oldest = self.traces.iter().min_by_key(|(_, of)| of.last);
        let Some(trace) = oldest.map(|(trace, _)| Arc::clone(trace)) else { return };
        if let Some(of) = self.traces.remove(&trace) {
            let _ = of.say.send(Observation::Over(ObservedEnd::Spans)).await;
        }
        self.over.insert(trace);
    }

    async fn end(mut self, end: ObservedEnd) -> HubReport {
        for of in self.traces.into_values().chain(self.waiting.take()) {
            let _ = of.say.send(Observation::Over(end)).await;
            of.run.wait_until_finished().await;
        }
        self.report
    }
}

impl TraceRun {
    fn opened(&mut self, id: &Arc<str>) {
        self.has_spans = true;
        self.named.remove(id);
        if !self.closed.contains(id) && self.open.len() < MAX_SPANS {
            self.open.insert(Arc::clone(id));
        }
    }

    fn closed(&mut self, id: &Arc<str>, parent: &Arc<str>) {
        self.has_spans = true;
        self.open.remove(id);
        self.named.remove(id);
        if self.closed.len() >= MAX_SPANS {
            return;
        }
        self.closed.insert(Arc::clone(id));
        if !parent.is_empty() && !self.closed.contains(parent) && !self.open.contains(parent) {
            self.named.insert(Arc::clone(parent));
        }
    }

    /// When the run ends if nothing more is said; `None`: a span is open.
    fn ends_at(&self) -> Option<Instant> {
        let silence = if self.named.is_empty() { QUIET } else { PARENT };
        (self.has_spans && self.open.is_empty()).then(|| self.last + silence)
    }
}

/// Leaves out times that cannot be: clocks differ by minutes, not by years.
fn plausible(mut about: SpanAbout) -> SpanAbout {
    let now_us = now_ms().saturating_mul(1_000);
    let fits = |time: &u64| time.abs_diff(now_us) < MAX_SKEW_US;
    about.from_us = about.from_us.filter(fits);
    about.until_us = about.until_us.filter(fits);
    about
}
