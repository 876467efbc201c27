//! Starts runs, holds their handles, takes commands. One task per run; everything of a run lives
//! in that task, so when it ends nothing of the run is left.

mod head;
mod toolbox;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use crate::bus::{Bounds, Bus, Reader};
use crate::event::id::millis;
use crate::event::kind::{FlagAt, ModelLabel, RunClosed};
use crate::event::{BoundaryId, Command, EventKind, RunId, Seq, SpanId, StopReason};
use crate::llm::prices::Price;
use crate::llm::scripted::Scripted;
use crate::llm::{Models, endpoint};
use crate::pattern::{collaboration, orchestrator, research, resilience, team};
use crate::run::{Gate, Lanes, Rosters, RunContext, RunSettings, Session, model_tool};
use crate::scenario::day::Day;
use crate::scenario::draw::draw;
use crate::scenario::model::PatternSpec;
use crate::scenario::name::FlagName;
use crate::scenario::{Scenario, untimed};
use crate::tool::contained::Contained;
use crate::tool::{Belt, GuardSnapshot, GuardedTool};

pub use toolbox::{ToolTrouble, Toolbox};

/// What a run is started with.
pub struct Launch {
    /// What is asked.
    pub scenario: Arc<Scenario>,
    /// Who answers.
    pub model: ModelChoice,
    /// What answers for its tools; `None`: what can be had without looking at the environment.
    pub tools: Option<Toolbox>,
    /// Positions of flags at the start that differ from the scenario's.
    pub flags: Vec<(FlagName, bool)>,
    /// What is to happen at which boundary.
    pub schedule: Schedule,
    /// Start of every random number, in place of the scenario's.
    pub seed: Option<u64>,
    /// Where it stands in its session; `None`: it begins one, with the scenario's goal.
    pub session: Option<Session>,
}

impl Launch {
    /// The scenario as it stands, offline.
    pub fn scripted(scenario: Arc<Scenario>, instant: bool) -> Self {
        Self {
            scenario,
            model: ModelChoice::Scripted { instant },
            tools: None,
            flags: Vec::new(),
            schedule: Schedule::default(),
            seed: None,
            session: None,
        }
    }
}

/// Who answers a run's model calls.
#[derive(Clone)]
pub enum ModelChoice {
    /// The scenario's script.
    Scripted {
        /// Leaves out its latencies.
        instant: bool,
    },
    /// Models, with the bound of one attempt where the scenario sets none.
    Live(Models, Duration),
}

/// What the command line asks to happen at boundaries.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// Flags to turn.
    pub flags: Vec<(BoundaryId, FlagName, bool)>,
    /// Where to rest.
    pub breaks: Vec<BoundaryId>,
    /// Whether to rest at the first boundary.
    pub start_paused: bool,
}

/// Limits of the engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineSettings {
    /// About how many bytes of finished runs' logs are kept; the oldest finished go first.
    pub finished_bytes: u64,
    /// What the log of one run holds while it goes on. Runs that go on at once share the window.
    pub log: Bounds,
}

/// The least window of one run, in bytes, however many share it.
const LEAST_WINDOW: u64 = 4 << 20;

impl Default for EngineSettings {
    fn default() -> Self {
        Self { finished_bytes: 256 << 20, log: Bounds::default() }
    }
}

/// The engine of one session.
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    settings: EngineSettings,
    session: Bus,
    nonce: u64,
    runs: Mutex<Runs>,
    /// Tools that runs have in common, by the hash of their scenario's file and by all that was
    /// asked of them: a run that asks for another policy has a tool of its own.
    tools: Mutex<BTreeMap<(String, String), Arc<GuardedTool>>>,
}

#[derive(Default)]
struct Runs {
    started: u32,
    by_id: HashMap<RunId, RunHandle>,
    finished: VecDeque<(RunId, u64)>,
    finished_bytes: u64,
}

impl Shared {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tools of a run; one that is shared is made once and then had by all.
    fn guarded(&self, scenario: &Scenario, toolbox: Toolbox) -> Vec<Arc<GuardedTool>> {
        let mut shared = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let made = toolbox.into_makings().into_iter().map(|making| {
            if !making.shared {
                return GuardedTool::new(making);
            }
            let key = (scenario.hash.clone(), making.fingerprint.clone());
            Arc::clone(shared.entry(key).or_insert_with(|| {
                let tool = GuardedTool::new(making);
                let _ = tool.guard.watch(&self.session);
                tool
            }))
        });
        made.collect()
    }

    /// Shares the window among the runs that go on; `ended` does not any more.
    fn share(&self, runs: &Runs, ended: Option<&RunId>) {
        let Bounds { window, ahead } = self.settings.log;
        if window == 0 || window == u64::MAX {
            return;
        }
        let live = runs.by_id.values().filter(|run| !run.is_over() && Some(&run.id) != ended);
        let live: Vec<&RunHandle> = live.collect();
        let each = window / (live.len() as u64).max(1);
        let window = each.max(LEAST_WINDOW.min(window));
        for run in live {
            run.bus.bound(Bounds { window, ahead });
        }
    }

    /// Keeps the log of a finished run, and drops the oldest finished ones above the cap.
    fn finished(&self, run: &RunId, bus: &Bus, reason: StopReason) {
        self.session.publish(SpanId::RUN, EventKind::SessionRunClosed { run: run.clone(), reason });
        // Taking a log apart is a walk through memory that nobody has looked at for long: not while
        // others wait to start a run.
        let mut forgotten = Vec::new();
        let mut runs = self.runs();
        self.share(&runs, Some(run));
        // A smaller share may have let go of a part of the log.
        let weight = bus.weight();
        runs.finished_bytes += weight;
        runs.finished.push_back((run.clone(), weight));
        while runs.finished_bytes > self.settings.finished_bytes && runs.finished.len() > 1 {
            let Some((oldest, bytes)) = runs.finished.pop_front() else { break };
            runs.finished_bytes -= bytes;
            if let Some(handle) = runs.by_id.remove(&oldest) {
                let facts = handle.bus().len();
                self.session
                    .publish(SpanId::RUN, EventKind::SessionRunForgotten { run: oldest, facts });
                // Mostly one.
                forgotten.reserve_exact(1);
                forgotten.push(handle);
            }
        }
        drop(runs);
    }
}

/// A run that was started. Cheap to clone.
#[derive(Clone)]
pub struct RunHandle {
    id: RunId,
    bus: Bus,
    gate: Arc<Gate>,
    belt: Arc<Belt>,
    lanes: Arc<Lanes>,
    rosters: Arc<Rosters>,
    session: Session,
    in_flight: Arc<AtomicU32>,
    done: watch::Receiver<bool>,
    /// Of a log that does not keep all of its facts.
    first: Option<Arc<Mutex<Option<Reader>>>>,
}

impl RunHandle {
    /// Its id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Its log.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// The reader that was there before the first fact, for the one who shows the run: it misses
    /// nothing, however small the log's window is. The run waits for it once it is too far behind.
    /// Whoever asks later gets a reader of what the log still holds.
    pub fn follow(&self) -> Reader {
        let first = self.first.as_ref();
        let first =
            first.and_then(|first| first.lock().unwrap_or_else(PoisonError::into_inner).take());
        first.unwrap_or_else(|| self.bus.reader(Seq(0)))
    }

    fn is_over(&self) -> bool {
        *self.done.borrow()
    }

    /// Asks something of the run; it becomes facts in the log when it takes effect.
    pub fn send(&self, command: Command) {
        if self.is_over() {
            return;
        }
        match self.belt.command(command) {
            Some(Command::SetParallel { max_parallel, by }) => self.lanes.set(max_parallel, by),
            Some(Command::Roster { swarm, change, by }) => {
                self.rosters.change(&self.bus, &swarm, change, by);
            }
            Some(command) => self.gate.command(command),
            None => {}
        }
    }

    /// Everything of every tool's guard, each at one moment: where tools are shared, of all runs of
    /// the session together.
    pub fn tools(&self) -> Vec<GuardSnapshot> {
        self.belt.snapshots()
    }

    /// The same session's next message, answered with what this run leaves. `None` while it goes on,
    /// and of a pattern without sessions.
    pub fn follow_up(&self, text: impl Into<Arc<str>>) -> Option<Session> {
        self.session.next(self.id.clone(), text)
    }

    /// Calls that are out now.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Waits until the run has ended and its log is closed.
    pub async fn finished(&self) {
        // An error means that the run's task is gone, which is as finished as it gets.
        let _ = self.done.clone().wait_for(|done| *done).await;
    }
}

impl Engine {
    /// An engine with no runs.
    pub fn new(settings: EngineSettings) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nonce = since.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(32);
        let runs = Mutex::default();
        let tools = Mutex::default();
        Self { shared: Arc::new(Shared { settings, session: Bus::new(), nonce, runs, tools }) }
    }

    /// The session's log: which runs were started, closed and forgotten.
    pub fn session(&self) -> &Bus {
        &self.shared.session
    }

    /// A run of this session that is not forgotten.
    pub fn run(&self, id: &RunId) -> Option<RunHandle> {
        self.shared.runs().by_id.get(id).cloned()
    }

    /// The runs of this session that are not forgotten, by their ids.
    pub fn runs(&self) -> Vec<RunHandle> {
        let mut runs: Vec<_> = self.shared.runs().by_id.values().cloned().collect();
        runs.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        runs
    }

    /// Calls of all runs that are out now.
    pub fn in_flight(&self) -> u32 {
        self.runs().iter().map(RunHandle::in_flight).sum()
    }

    /// Starts a run. Must be called within a tokio runtime.
    pub fn start(&self, launch: Launch) -> RunHandle {
        let Launch { scenario, model, tools, flags, schedule, seed, session } = launch;
        let session = session.unwrap_or_else(|| Session::first(scenario.goal.as_str()));
        let seed = seed.unwrap_or(scenario.seed);
        let instant = matches!(model, ModelChoice::Scripted { instant: true });
        let (models, llm, default_timeout): (Models, _, _) = match model {
            ModelChoice::Scripted { instant } => {
                let scripted = Scripted::new(Arc::clone(&scenario), instant);
                (Arc::new(scripted).into(), scenario.llm.clone(), endpoint::DEFAULT_TIMEOUT)
            }
            ModelChoice::Live(models, timeout) => (models, scenario.llm_live(), timeout),
        };
        let one_price = scenario.model.prices.map(|prices| {
            Price::new(prices.prompt_usd_per_million, prices.completion_usd_per_million)
        });
        let models = models.at_one_price(one_price);
        let mut positions: Vec<FlagAt> = scenario
            .flags
            .iter()
            .map(|flag| FlagAt {
                name: flag.name.clone(),
                label: flag.label.clone(),
                on: flag.default,
            })
            .collect();
        for (name, on) in flags {
            if let Some(flag) = positions.iter_mut().find(|flag| flag.name == name) {
                flag.on = on;
            }
        }
        let bounds = self.shared.settings.log;
        let bus = Bus::bounded(bounds);
        let first = (bounds != Bounds::default()).then(|| bus.reader(Seq(0)));
        let wall_ms = millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        let tools = tools.unwrap_or_else(|| Toolbox::offline(&scenario, instant));
        let mut guarded = vec![model_tool(llm, default_timeout, scenario.llm_faults.clone())];
        guarded.extend(self.shared.guarded(&scenario, tools));
        let (done, done_later) = watch::channel(false);
        let context;
        let handle = {
            let mut runs = self.shared.runs();
            let id = self.next_id(&mut runs);
            context = RunContext::new(RunSettings {
                id: id.clone(),
                bus: bus.clone(),
                max: scenario.pattern.max_seconds(),
                flags: positions.iter().map(|flag| (flag.name.clone(), flag.on)).collect(),
                seed,
                models: models.clone(),
                tools: guarded,
                max_parallel: match &scenario.pattern {
                    PatternSpec::Orchestrator(spec) => Some(spec.budget.max_parallel),
                    PatternSpec::Collaboration(_)
                    | PatternSpec::Team(_)
                    | PatternSpec::Resilience(_)
                    | PatternSpec::Research(_) => None,
                },
                rosters: match &scenario.pattern {
                    PatternSpec::Team(spec) => Rosters::of(spec, &session.before.rosters),
                    PatternSpec::Collaboration(_)
                    | PatternSpec::Orchestrator(_)
                    | PatternSpec::Resilience(_)
                    | PatternSpec::Research(_) => Rosters::default(),
                },
                session: session.clone(),
                instant,
                today: Day::at(wall_ms),
                spending: scenario.spending,
            });
            let handle = RunHandle {
                id: id.clone(),
                bus: bus.clone(),
                gate: Arc::clone(context.gate()),
                belt: Arc::clone(context.belt()),
                lanes: Arc::clone(context.lanes()),
                rosters: Arc::clone(context.rosters()),
                session: session.clone(),
                in_flight: context.flight(),
                done: done_later,
                first: first.map(|first| Arc::new(Mutex::new(Some(first)))),
            };
            runs.by_id.insert(id, handle.clone());
            self.shared.share(&runs, None);
            handle
        };
        let tools = context.belt().iter().map(|tool| tool.head()).collect();
        let label = models.label();
        let begun = head::Begun {
            run: &handle.id,
            model: label.clone(),
            model_prices: models.prices().to_vec(),
            flags: positions,
            tools,
            seed,
            session: &session,
            wall_ms,
        };
        let head = head::of(&scenario, begun);
        bus.publish(SpanId::RUN, EventKind::RunStarted(Arc::new(head)));
        context.belt().watch(&bus);
        let live = matches!(label, ModelLabel::Live { .. });
        for warning in scenario.warnings_of(live) {
            bus.publish(SpanId::RUN, EventKind::Warning { text: warning.clone() });
        }
        if scenario.spending.max_cost_usd.is_some() && !live && scenario.model.prices.is_none() {
            let text = "budget.max_cost_usd counts nothing here: a script has no price; set \
                        [model.prices] to try it"
                .to_owned();
            bus.publish(SpanId::RUN, EventKind::Warning { text });
        }
        let lost = instant.then(|| untimed::warning(&scenario, default_timeout)).flatten();
        if let Some(text) = lost {
            bus.publish(SpanId::RUN, EventKind::Warning { text });
        }
        for (at, flag, on) in schedule.flags {
            context.gate().schedule(at, flag, on);
        }
        for at in schedule.breaks {
            context.gate().rest_at(at);
        }
        if schedule.start_paused {
            context.gate().command(Command::Pause { by: crate::event::kind::By::Schedule });
        }
        self.shared.session.publish(
            SpanId::RUN,
            EventKind::SessionRunStarted {
                run: handle.id.clone(),
                scenario: scenario.name.clone(),
            },
        );
        let (shared, id) = (Arc::clone(&self.shared), handle.id.clone());
        tokio::spawn(async move {
            let reason = play(&context, &scenario).await;
            bus.close();
            shared.finished(&id, &bus, reason);
            let _ = done.send(true);
        });
        handle
    }

    /// Cancels every run and waits until each has ended.
    pub async fn shutdown(&self) {
        let runs = self.runs();
        for run in &runs {
            run.send(Command::Cancel);
        }
        for run in &runs {
            run.finished().await;
        }
    }

    fn next_id(&self, runs: &mut Runs) -> RunId {
        loop {
            runs.started += 1;
            let number = draw(self.shared.nonce, "run", runs.started, "id");
            // Four digits are easy to say; a session with thousands of runs gets longer ones.
            let id = if runs.by_id.len() < 4096 {
                format!("r-{:04x}", number & 0xffff)
            } else {
                format!("r-{:08x}", number & 0xffff_ffff)
            };
            let id = RunId::new(id);
            if !runs.by_id.contains_key(&id) {
                return id;
            }
        }
    }
}

/// Plays a run to its end and writes its last fact.
async fn play(context: &RunContext, scenario: &Scenario) -> StopReason {
    let ended = {
        let pattern = async {
            match &scenario.pattern {
                PatternSpec::Collaboration(spec) => {
                    collaboration::play::play(context, scenario, spec).await
                }
                PatternSpec::Orchestrator(spec) => {
                    orchestrator::play::play(context, scenario, spec).await
                }
                PatternSpec::Team(spec) => team::play::play(context, scenario, spec).await,
                PatternSpec::Resilience(spec) => resilience::play::play(context, spec).await,
                PatternSpec::Research(spec) => research::play::play(context, scenario, spec).await,
            }
        };
        let pattern = Contained::new(Box::pin(pattern));
        tokio::select! {
            biased;
            over = context.gate().over_now() => Err(over),
            ended = pattern => ended.unwrap_or_else(|panic| {
                tracing::error!(%panic, "a pattern panicked; its run is closed");
                let text = format!("a bug of ours ended the run: {panic}");
                context.publish(SpanId::RUN, EventKind::Warning { text });
                Err(StopReason::InternalError)
            }),
        }
    };
    // Nothing is asked or changed any more: the last fact is the last.
    context.belt().release();
    context.lanes().end();
    context.rosters().close();
    // Whoever cancels a run knows that the rest of it did not come.
    if !matches!(ended, Err(StopReason::Cancelled)) {
        for text in context.gate().not_come() {
            context.publish(SpanId::RUN, EventKind::Warning { text });
        }
    }
    let (elapsed, paused, boundary) = context.gate().close();
    let (reason, phase) = match ended {
        Ok(()) => (StopReason::Success, None),
        Err(reason) => (reason, context.phase()),
    };
    context.publish(
        SpanId::RUN,
        EventKind::RunClosed(Box::new(RunClosed {
            reason: reason.clone(),
            phase,
            boundary,
            elapsed_ms: millis(elapsed),
            paused_ms: millis(paused),
            in_flight: context.in_flight(),
        })),
    );
    reason
}
