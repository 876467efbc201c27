//! Brings what a program reports to the runs: one for each trace. The first run waits for the first trace, so
//! that a program is shown from its start.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::callers::Caller;
use super::{PartMessage, Protocol, SpanMessage, TraceMessage};
use crate::base::time::now_ms;
use crate::engine::RunHandle;
use crate::log::event::RunId;
use crate::log::facts::observed::{SPANS_MISSING, SpanAbout, TextStream};
use crate::pattern::observed::{
    GuardAccount, MAX_SPANS, Observation, ObservationSender, ObservedEnd, PriceOf, scenario,
};
use crate::scenario::Scenario;
use crate::scenario::patterns::observed::ObservedProgram;

/// How long a trace whose spans have all ended must be quiet until its run ends.
const QUIET: Duration = Duration::from_secs(10);

/// The same where more may come from elsewhere: a parent was named and not reported, or the program is at an address.
const ELSEWHERE: Duration = Duration::from_secs(300);

/// How often the hub checks whether programs of a listening proxy have ended.
const ALIVE: Duration = Duration::from_secs(1);

/// Most traces with an open run: the one that is silent for the longest time makes room.
const MAX_RUNS: usize = 64;

/// Most lines and warnings that wait for the next run while none is open.
const MAX_UNSENT: usize = 1_000;

/// Most traces that are known to have ended: a message of an older one begins a run.
const MAX_ENDED: usize = 10_000;

/// Most different reasons for missing spans that a run has.
const MAX_MISSING: usize = 20;

/// A time of a span that differs by more from the time of this machine is left out.
const MAX_SKEW_US: u64 = 24 * 3_600 * 1_000_000;

/// What reaches the hub.
pub enum HubInput {
    /// Reports of a program; with several programs, of this one.
    Messages(Option<Arc<Caller>>, Vec<TraceMessage>),
    Part(PartMessage),
    /// A line of the output of the program.
    Line(TextStream, String),
    /// Something that the operator should know of the receiver.
    Warning(String),
    /// Why spans did not come in. It concerns each run that is open.
    Missing(String),
    /// A guarded program asks whether a request may be sent, or a tool executed; with several programs, this one.
    Guarded(Option<Arc<Caller>>, Box<Observation>),
    /// The program has ended, with this exit code. Nothing follows.
    Ended(i32),
}

/// Starts a run of a scenario; `None`: it cannot be started.
pub type StartRun = Box<dyn Fn(Scenario) -> Option<RunHandle> + Send>;

/// What happened, for the end of the program.
#[derive(Default)]
pub struct HubReport {
    /// Messages for runs that had ended, and those of traces without spans.
    pub late: u64,
    /// Those that were about spans, by run.
    pub late_of: HashMap<RunId, u64>,
    /// Messages that are ignored because another protocol reports the framework.
    pub ignored: BTreeMap<(&'static str, &'static str), u64>,
    /// Warnings that are in no run.
    pub warnings: Vec<String>,
    /// Lines of the output that are in no run.
    pub lost_lines: u64,
}

impl HubReport {
    fn add_unsent(&mut self, unsent: Observation) {
        match unsent {
            Observation::Warning(text) => self.warnings.push(text),
            _ => self.lost_lines += 1,
        }
    }
}

/// Traces whose run has ended: the latest ones.
#[derive(Default)]
struct EndedTraces {
    known: HashMap<Arc<str>, RunId>,
    order: VecDeque<Arc<str>>,
}

impl EndedTraces {
    fn run_of(&self, trace: &Arc<str>) -> Option<&RunId> {
        self.known.get(trace)
    }

    fn insert(&mut self, trace: Arc<str>, run: RunId) {
        if self.known.insert(Arc::clone(&trace), run).is_none() {
            self.order.push_back(trace);
        }
        if self.order.len() > MAX_ENDED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

struct TraceRun {
    run: RunHandle,
    sender: ObservationSender,
    /// The spans that have begun and not ended.
    open: HashSet<Arc<str>>,
    /// Those that have ended: their end may arrive before their start.
    closed: HashSet<Arc<str>>,
    /// Those that only their children have named.
    named: HashSet<Arc<str>>,
    /// When the last message came.
    last: Instant,
    has_spans: bool,
    /// When its first span began, by the clock of the program.
    from_us: Option<u64>,
    /// The test or cell that it belongs to, once that is known.
    part: Option<Arc<str>>,
    thread: Option<Arc<str>>,
    /// Why spans of it are missing.
    missing: HashSet<String>,
    /// Of a program that a listening proxy serves.
    caller: Option<Arc<Caller>>,
}

/// The traces of a program.
pub struct Hub {
    program: ObservedProgram,
    price_of: PriceOf,
    /// What guarded programs may use.
    account: Option<Arc<GuardAccount>>,
    /// The token of the proxy, which programs print with its address.
    token: String,
    /// When it checks next whether programs of a listening proxy have ended.
    look_at: Instant,
    start: StartRun,
    traces: HashMap<Arc<str>, TraceRun>,
    /// A run that waits for its trace.
    waiting: Option<TraceRun>,
    over: EndedTraces,
    /// The protocol that counts for a framework.
    protocols: HashMap<&'static str, Protocol>,
    /// The latest tests or cells.
    parts: VecDeque<Part>,
    /// The last run of each thread.
    threads: HashMap<Arc<str>, RunId>,
    /// Lines and warnings that came while no run was open.
    unsent: VecDeque<Observation>,
    /// Partial replies that the tap sent before LangSmith's tracer sent the start of the call.
    early: HashMap<Arc<str>, Arc<str>>,
    report: HubReport,
}

impl Hub {
    /// A hub for a program. `account`: what it may use, if it is guarded.
    pub fn new(
        program: ObservedProgram,
        price_of: PriceOf,
        account: Option<Arc<GuardAccount>>,
        start: StartRun,
    ) -> Self {
        Self {
            program,
            price_of,
            account,
            token: String::new(),
            look_at: Instant::now(),
            start,
            traces: HashMap::new(),
            waiting: None,
            over: EndedTraces::default(),
            protocols: HashMap::new(),
            parts: VecDeque::new(),
            threads: HashMap::new(),
            unsent: VecDeque::new(),
            early: HashMap::new(),
            report: HubReport::default(),
        }
    }

    /// The same, for programs that print the address of a proxy with this token.
    pub fn hiding(self, token: &str) -> Self {
        Self { token: token.to_owned(), ..self }
    }

    /// Starts the run that waits for the first trace.
    pub async fn wait_for_trace(&mut self) {
        self.waiting = self.begin(None).await;
    }

    /// Brings everything to its run, until the program has ended or nothing more can come.
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
                Some(HubInput::Messages(caller, messages)) => {
                    for message in messages {
                        self.receive(caller.as_ref(), message).await;
                    }
                }
                Some(HubInput::Part(part)) => self.take_part(part).await,
                Some(HubInput::Line(stream, text)) => {
                    let text = match self.token.is_empty() {
                        true => text,
                        false => text.replace(&self.token, "***"),
                    };
                    let (span, text) = (Arc::default(), super::texts::text(&text));
                    self.send_to_current(Observation::Text { span, stream, text }).await;
                }
                Some(HubInput::Warning(text)) => {
                    self.send_to_current(Observation::Warning(text)).await;
                }
                Some(HubInput::Missing(why)) => self.add_missing(&why).await,
                Some(HubInput::Guarded(caller, asked)) => {
                    let of = match &caller {
                        Some(caller) => self.run_of(caller).await,
                        // The run of the program is open until it ends.
                        None => self.waiting.as_mut().or(self.traces.values_mut().next()),
                    };
                    if let Some(of) = of {
                        let _ = of.sender.send(*asked).await;
                    }
                }
                Some(HubInput::Ended(code)) => break self.end(ObservedEnd::Program(code)).await,
                None => break self.end(ObservedEnd::Spans).await,
            }
        }
    }

    /// The run of a program that a listening proxy serves.
    async fn run_of(&mut self, caller: &Arc<Caller>) -> Option<&mut TraceRun> {
        if self.traces.get(&caller.key).is_some_and(|of| of.sender.is_closed()) {
            self.traces.remove(&caller.key);
        }
        if !self.traces.contains_key(&caller.key) {
            if self.traces.len() >= MAX_RUNS {
                self.end_silent().await;
            }
            let begun = self.begin(Some(caller)).await?;
            self.traces.insert(Arc::clone(&caller.key), begun);
        }
        let of = self.traces.get_mut(&caller.key)?;
        of.last = Instant::now();
        Some(of)
    }

    async fn begin(&mut self, caller: Option<&Arc<Caller>>) -> Option<TraceRun> {
        let mut program = self.program.clone();
        if let Some(caller) = caller {
            program.name.clone_from(&caller.name);
        }
        let (price_of, account) = (Arc::clone(&self.price_of), self.account.clone());
        let (scenario, sender) = scenario(&program, price_of, account)?;
        let run = (self.start)(scenario)?;
        for unsent in self.unsent.drain(..) {
            let _ = sender.send(unsent).await;
        }
        let last = Instant::now();
        let [open, closed, named] = [HashSet::new(), HashSet::new(), HashSet::new()];
        let missing = HashSet::new();
        Some(TraceRun {
            run,
            sender,
            open,
            closed,
            named,
            last,
            has_spans: false,
            from_us: None,
            part: None,
            thread: None,
            missing,
            caller: caller.cloned(),
        })
    }

    async fn receive(&mut self, caller: Option<&Arc<Caller>>, message: TraceMessage) {
        let TraceMessage { protocol, framework, mut trace, what } = message;
        // A start of a guarded program is one run.
        if self.program.guard.is_some() {
            trace = caller.map(|caller| Arc::clone(&caller.key)).unwrap_or_default();
        }
        if let SpanMessage::Partial { span, text } = &what {
            let is_open = self.traces.get(&trace).is_some_and(|of| of.open.contains(span));
            if !is_open {
                if self.early.len() >= MAX_EARLY {
                    self.early.clear();
                }
                self.early.insert(Arc::clone(span), Arc::clone(text));
                return;
            }
        }
        if !framework.is_empty() {
            let first = *self.protocols.entry(framework).or_insert(protocol);
            // A better protocol may follow the first one, whose spans stay.
            if protocol > first {
                *self.report.ignored.entry((protocol.name(), framework)).or_default() += 1;
                return;
            }
            self.protocols.insert(framework, protocol);
        }
        let is_of_span = matches!(what, SpanMessage::Opened { .. } | SpanMessage::Closed { .. });
        if let Some(run) = self.over.run_of(&trace) {
            self.report.late += 1;
            if is_of_span {
                *self.report.late_of.entry(run.clone()).or_default() += 1;
            }
            return;
        }
        if !self.traces.contains_key(&trace) {
            if self.traces.len() >= MAX_RUNS && is_of_span {
                self.end_silent().await;
            }
            let waiting = self.waiting.take_if(|waiting| is_of_span || waiting.sender.is_closed());
            let begun = match waiting.filter(|waiting| !waiting.sender.is_closed()) {
                Some(waiting) => Some(waiting),
                None if is_of_span => self.begin(caller).await,
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
        let (mut thread, mut early) = (None, None);
        if let SpanMessage::Opened { about, .. } | SpanMessage::Closed { about, .. } = &what {
            early = self.early.remove(&about.id).map(|text| (Arc::clone(&about.id), text));
            of.from_us = of.from_us.into_iter().chain(about.from_us).min();
            thread = about.thread.clone().filter(|_| of.thread.is_none());
        }
        let observed = match what {
            SpanMessage::Opened { parent, about, call } => {
                of.opened(&about.id);
                Observation::Opened { parent, about: plausible(about), call }
            }
            SpanMessage::Closed { parent, end, about, call, notes } => {
                of.closed(&about.id, &parent);
                Observation::Closed { parent, end, about: plausible(about), call, notes }
            }
            SpanMessage::Text { span, text } => {
                Observation::Text { span, stream: TextStream::Log, text }
            }
            SpanMessage::Partial { span, text } => Observation::Partial { span, text },
        };
        let is_gone = of.sender.send(observed).await.is_err();
        if let Some((span, text)) = early {
            let _ = of.sender.send(Observation::Partial { span, text }).await;
        }
        if is_gone {
            let run = of.run.id().clone();
            self.traces.remove(&trace);
            self.over.insert(trace, run);
            return;
        }
        if let Some(part) = self.parts.iter().rev().find(|part| part.surely_has(of)) {
            part.tell(of).await;
        }
        if let Some(thread) = thread {
            self.join_thread(&trace, thread).await;
        }
    }

    /// Links the run of a trace with the previous run of its thread, in both logs if that run is still open.
    async fn join_thread(&mut self, trace: &Arc<str>, thread: Arc<str>) {
        let Some(of) = self.traces.get_mut(trace) else { return };
        of.thread = Some(Arc::clone(&thread));
        let own = of.run.id().clone();
        let known = self.threads.len() < MAX_ENDED || self.threads.contains_key(&thread);
        let after = known.then(|| self.threads.insert(thread, own.clone())).flatten();
        let Some(after) = after.filter(|after| *after != own) else { return };
        let link = Observation::Neighbour { after: Some(after.clone()), before: None };
        let _ = of.sender.send(link).await;
        if let Some(of) = self.traces.values().find(|of| *of.run.id() == after) {
            let link = Observation::Neighbour { after: None, before: Some(own) };
            let _ = of.sender.send(link).await;
        }
    }

    /// A test or a cell begins, or has ended.
    async fn take_part(&mut self, message: PartMessage) {
        let PartMessage { name, at_us, end } = message;
        let Some(end) = end else {
            if self.parts.len() >= MAX_ENDED {
                self.parts.pop_front();
            }
            self.parts.push_back(Part { name, from_us: at_us, end: None });
            return;
        };
        let mut open = self.parts.iter_mut().rev();
        let Some(part) = open.find(|part| part.name == name && part.end.is_none()) else { return };
        part.end = Some((at_us, end));
        let part = part.clone();
        for of in self.traces.values_mut() {
            if of.part.is_none() && part.has(of) || of.part.as_ref() == Some(&part.name) {
                part.tell(of).await;
            }
        }
    }

    /// Tells each open run why spans of it may be missing, or else the next one.
    async fn add_missing(&mut self, why: &str) {
        let text = format!("{SPANS_MISSING}{why}");
        if self.waiting.is_none() && self.traces.is_empty() {
            self.send_to_current(Observation::Warning(text)).await;
            return;
        }
        for of in self.waiting.iter_mut().chain(self.traces.values_mut()) {
            if of.missing.len() < MAX_MISSING && of.missing.insert(text.clone()) {
                let _ = of.sender.send(Observation::Warning(text.clone())).await;
            }
        }
    }

    /// Sends it to the current run: the one that waits, else the one of the last message. While none is open it
    /// waits for the next one.
    async fn send_to_current(&mut self, observed: Observation) {
        let last = self.traces.values().max_by_key(|of| of.last);
        let unsent = match self.waiting.as_ref().or(last) {
            Some(of) => of.sender.send(observed).await.err().map(|error| error.0),
            None => Some(observed),
        };
        match unsent {
            Some(unsent) if self.unsent.len() < MAX_UNSENT => self.unsent.push_back(unsent),
            Some(unsent) => self.report.add_unsent(unsent),
            None => {}
        }
    }

    /// When the next run ends if nothing more comes.
    fn next_quiet(&self) -> Option<Instant> {
        if self.program.guard.is_some() {
            let is_open = self.traces.values().any(|of| of.caller.is_some());
            return is_open.then_some(self.look_at);
        }
        self.traces.values().filter_map(TraceRun::ends_at).min()
    }

    async fn end_quiet(&mut self) {
        let now = Instant::now();
        self.look_at = now + ALIVE;
        let is_over = |of: &TraceRun| match &of.caller {
            // A client at an address may connect again.
            Some(caller) => {
                let silence = if caller.is_process() { QUIET } else { ELSEWHERE };
                !caller.is_alive(1) && of.last + silence <= now
            }
            None => of.ends_at().is_some_and(|at| at <= now),
        };
        let traces = self.traces.iter().filter(|(_, of)| is_over(of));
        let over: Vec<Arc<str>> = traces.map(|(id, _)| Arc::clone(id)).collect();
        for trace in over {
            self.end_trace(trace).await;
        }
    }

    /// Ends the run that has had no message for the longest time.
    async fn end_silent(&mut self) {
        let oldest = self.traces.iter().min_by_key(|(_, of)| of.last);
        if let Some(trace) = oldest.map(|(trace, _)| Arc::clone(trace)) {
            self.end_trace(trace).await;
        }
    }

    async fn end_trace(&mut self, trace: Arc<str>) {
        if let Some(of) = self.traces.remove(&trace) {
            let end = match &of.caller {
                Some(_) => ObservedEnd::Program(0),
                None => ObservedEnd::Spans,
            };
            let _ = of.sender.send(Observation::Over(end)).await;
            if of.caller.is_none() {
                self.over.insert(trace, of.run.id().clone());
            }
        }
    }

    async fn end(mut self, end: ObservedEnd) -> HubReport {
        for of in self.traces.into_values().chain(self.waiting.take()) {
            let _ = of.sender.send(Observation::Over(end)).await;
            of.run.wait_until_finished().await;
        }
        self.unsent.into_iter().for_each(|unsent| self.report.add_unsent(unsent));
        self.report
    }
}

/// Maximum number of partial replies without a call.
const MAX_EARLY: usize = 64;

/// A test or a cell of the program.
#[derive(Clone)]
struct Part {
    name: Arc<str>,
    from_us: u64,
    /// When it ended, and the error if it failed.
    end: Option<(u64, Option<Arc<str>>)>,
}

/// Maximum delay of the message that a test begins, after messages about spans in it, in microseconds.
const PART_DELAY_US: u64 = 500_000;

impl Part {
    /// Whether the trace began during it.
    fn has(&self, of: &TraceRun) -> bool {
        let until = self.end.as_ref().map_or(u64::MAX, |(until, _)| *until);
        of.from_us.is_some_and(|from| (self.from_us..=until).contains(&from))
    }

    /// The same, if no message about a later test can be missing.
    fn surely_has(&self, of: &TraceRun) -> bool {
        let is_past = || {
            let now_us = now_ms().saturating_mul(1_000);
            of.from_us.is_some_and(|from| from.saturating_add(PART_DELAY_US) < now_us)
        };
        of.part.is_none() && self.has(of) && (self.end.is_some() || is_past())
    }

    /// Tells the run of a trace its test or cell, and how that has ended.
    async fn tell(&self, of: &mut TraceRun) {
        if of.part.is_none() {
            of.part = Some(Arc::clone(&self.name));
            let _ = of.sender.send(Observation::Part(Arc::clone(&self.name))).await;
        }
        if let Some((_, error)) = &self.end {
            let ended = Observation::PartEnded(Arc::clone(&self.name), error.clone());
            let _ = of.sender.send(ended).await;
        }
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

    /// When the run ends if nothing more comes; `None`: a span is open.
    fn ends_at(&self) -> Option<Instant> {
        let silence = if self.named.is_empty() { QUIET } else { ELSEWHERE };
        (self.has_spans && self.open.is_empty()).then(|| self.last + silence)
    }
}

/// Removes impossible times, because clocks differ by minutes, not by years, and includes the cached tokens in the
/// prompt.
fn plausible(mut about: SpanAbout) -> SpanAbout {
    about.include_cache();
    let now_us = now_ms().saturating_mul(1_000);
    let fits = |time: &u64| time.abs_diff(now_us) < MAX_SKEW_US;
    about.from_us = about.from_us.filter(fits);
    about.until_us = about.until_us.filter(fits);
    about
}
