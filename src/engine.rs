//! Starts runs, keeps their handles and takes commands. Each run is one task and owns everything
//! that belongs to it, so nothing is left when the task ends.

mod handle;
mod head;
mod launch;
mod toolbox;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use crate::base::contained::Contained;
use crate::base::day::Day;
use crate::base::seeded_random::random_u64;
use crate::bus::{Bus, LogLimits};
use crate::clock::Clock;
use crate::event::id::millis;
use crate::event::kind::{FlagAt, ModelLabel, RunClosed};
use crate::event::{Command, EventKind, RunId, Seq, SpanId, StopReason};
use crate::gateway::GuardedTool;
use crate::llm::prices::Price;
use crate::llm::scripted::Scripted;
use crate::llm::{Models, endpoint};
use crate::pattern::{self, PatternLive};
use crate::run::{RunContext, RunSettings, Session, model_tool};
use crate::scenario::Scenario;
use crate::scenario::check::instant_warning;

pub use handle::RunHandle;
pub use launch::{Launch, ModelChoice, Schedule};
pub use toolbox::{ToolNotReady, Toolbox};

/// Limits of the engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineSettings {
    /// Approximate bytes of finished runs' logs to keep. The runs that finished first are dropped
    /// first.
    pub finished_bytes: u64,
    /// Limits for the log of a running run. Runs at the same time share the window.
    pub log: LogLimits,
}

/// Smallest window of one run, in bytes, no matter how many runs share it.
const MIN_WINDOW: u64 = 4 << 20;

impl Default for EngineSettings {
    fn default() -> Self {
        Self { finished_bytes: 256 << 20, log: LogLimits::default() }
    }
}

/// The engine of one process.
pub struct Engine {
    shared: Arc<EngineShared>,
}

struct EngineShared {
    settings: EngineSettings,
    log: Bus,
    nonce: u64,
    runs: Mutex<Runs>,
    /// Tools that runs share, by the hash of the scenario file and the tool's fingerprint (its
    /// whole definition). A run with another policy gets its own tool.
    tools: Mutex<BTreeMap<(String, String), Arc<GuardedTool>>>,
}

#[derive(Default)]
struct Runs {
    started: u32,
    by_id: HashMap<RunId, RunHandle>,
    finished: VecDeque<(RunId, u64)>,
    finished_bytes: u64,
}

impl EngineShared {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tools of a run with this clock. A shared tool is created once and then reused.
    fn build_tools(
        &self,
        scenario: &Scenario,
        toolbox: Toolbox,
        clock: &Clock,
    ) -> Vec<Arc<GuardedTool>> {
        let mut shared = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let made = toolbox.into_makings().into_iter().map(|making| {
            if !making.shared {
                return GuardedTool::new(making, clock.clone());
            }
            let key = (scenario.hash.clone(), making.fingerprint.clone());
            Arc::clone(shared.entry(key).or_insert_with(|| {
                let tool = GuardedTool::new(making, Clock::real());
                let _ = tool.guard.watch(&self.log);
                tool
            }))
        });
        made.collect()
    }

    /// Divides the window among the live runs. `ended` no longer counts as one.
    fn divide_window(&self, runs: &Runs, ended: Option<&RunId>) {
        let LogLimits { window, ahead } = self.settings.log;
        if window == 0 || window == u64::MAX {
            return;
        }
        let live = runs.by_id.values().filter(|run| !run.is_over() && Some(&run.id) != ended);
        let live: Vec<&RunHandle> = live.collect();
        let each = window / (live.len() as u64).max(1);
        let window = each.max(MIN_WINDOW.min(window));
        for run in live {
            run.bus.set_limits(LogLimits { window, ahead });
        }
    }

    /// Keeps the log of a finished run, and drops the oldest finished runs above the limit.
    fn keep_finished(&self, run: &RunId, bus: &Bus, reason: StopReason) {
        self.log.publish(SpanId::RUN, EventKind::SessionRunClosed { run: run.clone(), reason });
        // Freeing a log walks through cold memory: do it after the lock is released, so others who
        // start a run need not wait.
        let mut forgotten = Vec::new();
        let mut runs = self.runs();
        self.divide_window(&runs, Some(run));
        // A smaller share of the window may have dropped a part of the log.
        let weight = bus.weight();
        runs.finished_bytes += weight;
        runs.finished.push_back((run.clone(), weight));
        while runs.finished_bytes > self.settings.finished_bytes && runs.finished.len() > 1 {
            let Some((oldest, bytes)) = runs.finished.pop_front() else { break };
            runs.finished_bytes -= bytes;
            if let Some(handle) = runs.by_id.remove(&oldest) {
                let facts = handle.bus().len();
                self.log.publish(
                    SpanId::RUN,
                    EventKind::SessionRunDropped { run: oldest, events: facts },
                );
                // Usually there is one.
                forgotten.reserve_exact(1);
                forgotten.push(handle);
            }
        }
        drop(runs);
    }
}

impl Engine {
    /// An engine without runs.
    pub fn new(settings: EngineSettings) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nonce = since.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(32);
        let runs = Mutex::default();
        let tools = Mutex::default();
        Self { shared: Arc::new(EngineShared { settings, log: Bus::new(), nonce, runs, tools }) }
    }

    /// Log of the engine: which runs were started, closed and forgotten.
    pub fn log(&self) -> &Bus {
        &self.shared.log
    }

    /// The run with this id, if it is not forgotten.
    pub fn run(&self, id: &RunId) -> Option<RunHandle> {
        self.shared.runs().by_id.get(id).cloned()
    }

    /// The runs that are not forgotten, ordered by id.
    pub fn runs(&self) -> Vec<RunHandle> {
        let mut runs: Vec<_> = self.shared.runs().by_id.values().cloned().collect();
        runs.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        runs
    }

    /// Number of attempts in flight, of all runs.
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
        let bus = Bus::with_limits(bounds);
        let first = (bounds != LogLimits::default()).then(|| bus.reader(Seq(0)));
        let wall_ms = millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        let tools = tools.unwrap_or_else(|| Toolbox::offline(&scenario, instant));
        let mut guarded =
            vec![model_tool(llm, default_timeout, scenario.llm_faults.clone(), bus.clock())];
        guarded.extend(self.shared.build_tools(&scenario, tools, bus.clock()));
        let (done, done_later) = watch::channel(false);
        let changes = PatternLive::new(&scenario.pattern, &bus, &session);
        let context;
        let handle = {
            let mut runs = self.shared.runs();
            let id = self.next_id(&mut runs);
            context = RunContext::new(RunSettings {
                id: id.clone(),
                bus: bus.clone(),
                max: scenario.pattern.get().max_time(),
                flags: positions.iter().map(|flag| (flag.name.clone(), flag.on)).collect(),
                seed,
                models: models.clone(),
                tools: guarded,
                session: session.clone(),
                instant,
                today: Day::from_unix_ms(wall_ms),
                spending: scenario.spending,
            });
            let handle = RunHandle {
                id: id.clone(),
                bus: bus.clone(),
                control: Arc::clone(context.control()),
                tools: Arc::clone(context.tools()),
                live: changes.control(),
                session: session.clone(),
                in_flight: context.in_flight_counter(),
                done: done_later,
                first: first.map(|first| Arc::new(Mutex::new(Some(first)))),
            };
            runs.by_id.insert(id, handle.clone());
            self.shared.divide_window(&runs, None);
            handle
        };
        let tools = context.tools().iter().map(|tool| tool.head()).collect();
        let label = models.label();
        let live = matches!(label, ModelLabel::Live { .. });
        let begun = head::RunSetup {
            run: &handle.id,
            model: label,
            model_prices: models.prices().to_vec(),
            flags: positions,
            tools,
            seed,
            session: &session,
            wall_ms,
        };
        let head = head::build_head(&scenario, begun);
        bus.publish(SpanId::RUN, EventKind::RunStarted(Arc::new(head)));
        context.tools().watch(&bus);
        for warning in scenario.run_warnings(live) {
            bus.publish(SpanId::RUN, EventKind::Warning { text: warning.clone() });
        }
        if scenario.spending.max_cost_usd.is_some() && !live && scenario.model.prices.is_none() {
            let text =
                "budget.max_cost_usd has no effect here: scripted replies have no price; set \
                        [model.prices] to try it"
                    .to_owned();
            bus.publish(SpanId::RUN, EventKind::Warning { text });
        }
        let lost = instant.then(|| instant_warning::warning(&scenario, default_timeout)).flatten();
        if let Some(text) = lost {
            bus.publish(SpanId::RUN, EventKind::Warning { text });
        }
        for (at, flag, on) in schedule.flags {
            context.control().schedule(at, flag, on);
        }
        for at in schedule.breaks {
            context.control().pause_at(at);
        }
        if schedule.start_paused {
            context
                .control()
                .command(Command::Pause { by: crate::event::kind::Initiator::Schedule });
        }
        self.shared.log.publish(
            SpanId::RUN,
            EventKind::SessionRunStarted {
                run: handle.id.clone(),
                scenario: scenario.name.clone(),
            },
        );
        let (shared, id) = (Arc::clone(&self.shared), handle.id.clone());
        tokio::spawn(async move {
            let reason = play(&context, &scenario, &changes).await;
            bus.close();
            shared.keep_finished(&id, &bus, reason);
            let _ = done.send(true);
        });
        handle
    }

    /// Cancels every run and waits until all have ended.
    pub async fn shutdown(&self) {
        let runs = self.runs();
        for run in &runs {
            run.send(Command::Cancel);
        }
        for run in &runs {
            run.wait_until_finished().await;
        }
    }

    fn next_id(&self, runs: &mut Runs) -> RunId {
        loop {
            runs.started += 1;
            let number = random_u64(self.shared.nonce, "run", runs.started, "id");
            // Four digits are easy to say aloud; after 4,096 runs the ids get longer.
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

/// Plays a run to its end and publishes its last event.
async fn play(context: &RunContext, scenario: &Scenario, live: &PatternLive) -> StopReason {
    let ended = {
        let played = pattern::play(context, scenario, live);
        let played = Contained::new(Box::pin(played));
        tokio::select! {
            biased;
            over = context.control().wait_until_over() => Err(over),
            ended = played => ended.unwrap_or_else(|panic| {
                tracing::error!(%panic, "a pattern panicked; its run is closed");
                let text = format!("a bug in roundtable ended the run: {panic}");
                context.publish(SpanId::RUN, EventKind::Warning { text });
                Err(StopReason::InternalError)
            }),
        }
    };
    // No call and no change may come after this, so that `run.closed` is the last event.
    context.tools().release();
    if let Some(live) = live.control() {
        live.end();
    }
    // After a cancel it is obvious that later boundaries were not reached.
    if !matches!(ended, Err(StopReason::Cancelled)) {
        for text in context.control().unreached() {
            context.publish(SpanId::RUN, EventKind::Warning { text });
        }
    }
    let (elapsed, paused, boundary) = context.control().close();
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
