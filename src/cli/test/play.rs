//! Plays the runs of tested scenarios: those in simulated time on threads, each with a clock of its
//! own; the others concurrently in one runtime.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::{io, thread};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

use super::result::{CaseResult, NO_WARNINGS, TrialResult};
use super::{TestOptions, Vary};
use crate::cli::headless::InterruptTarget;
use crate::cli::launch::{CannotRun, PreparedSessions, StoreOfCommand, engine_settings};
use crate::cli::run::RunArgs;
use crate::engine::expectations::{ExpectationResult, ExpectedOf, RunObserver, Verdict};
use crate::engine::{Launch, RunHandle, RunKeeper};
use crate::host::day_account::user_engine;
use crate::host::program_log;
use crate::log::event::{Event, EventKind, World};
use crate::scenario::Scenario;
use crate::scenario::spec::tool::ToolSpec;
use crate::screen::form::quoted;
use crate::words::{closing, format};

/// A scenario to test.
pub struct TestCase {
    pub scenario: Arc<Scenario>,
    /// The arguments of `roundtable run` that run it again, without its seed.
    pub words: String,
    /// Whether a live model answers.
    pub is_live: bool,
    /// Whether the runs ask something outside of this program: a live model, or tools.
    pub is_outside: bool,
    /// Whether the runs take simulated time, which costs nothing.
    pub is_simulated: bool,
    /// Whether the runs are kept in the store. What can be repeated at will is not.
    pub is_kept: bool,
    /// The runs to make.
    pub trials: Vec<Trial>,
}

/// One execution of a scenario: one run, or the runs of a session.
pub struct Trial {
    /// The messages, each with the launch of the run that answers it.
    pub launches: Vec<(Arc<str>, Launch)>,
    /// Seed of its random numbers.
    pub seed: u64,
    /// Whether a warning fails it.
    pub denies_warnings: bool,
}

impl TestCase {
    /// Prepares the runs of a scenario.
    ///
    /// # Errors
    /// They cannot be made.
    pub fn prepare(
        args: RunArgs,
        scenario: Arc<Scenario>,
        options: &TestOptions,
        in_real_time: bool,
    ) -> Result<Self, CannotRun> {
        let times = options.times.unwrap_or(1) as usize;
        let mut sessions = PreparedSessions::prepare(&scenario, &args, times)?;
        let first_seed = args.seed.unwrap_or(scenario.seed);
        let trials = (0..times).map(|nth| {
            let seed = match options.vary {
                Some(Vary::Seed) => first_seed.wrapping_add(nth as u64),
                None => first_seed,
            };
            let launches = sessions.next_session(Some(seed));
            Trial { launches, seed, denies_warnings: options.deny_warnings }
        });
        let trials = trials.collect();
        let is_outside = args.live || scenario.tools.values().any(ToolSpec::is_outside);
        Ok(Self {
            is_live: args.live,
            is_outside,
            is_simulated: !in_real_time && !is_outside,
            is_kept: is_outside || in_real_time,
            words: words(&args),
            scenario,
            trials,
        })
    }
}

/// The arguments of `roundtable run` that say the same.
fn words(args: &RunArgs) -> String {
    let mut words = vec![quoted(&args.scenario)];
    for set in &args.set {
        words.push(format!("--set {}", quoted(set)));
    }
    for flag in &args.flags {
        words.push(format!("--flag {}", quoted(&flag.to_string())));
    }
    words.join(" ")
}

/// Number of events that are read at a time.
const BATCH: usize = 256;

/// Receives the results of scenarios as they are done, in their order.
pub trait CaseListener {
    /// A scenario is done.
    fn case_done(&mut self, case: &CaseResult) -> io::Result<()>;
}

/// A trial with the place of its scenario and its own.
struct PlacedTrial {
    case: usize,
    nth: usize,
    scenario: Arc<Scenario>,
    is_live: bool,
    trial: Trial,
}

/// The end of a trial; no result if it was cancelled.
type Ended = (usize, usize, Option<TrialResult>);

/// Makes all runs, at most `jobs` at the same time, and returns the results in order.
pub fn play_all(
    cases: Vec<TestCase>,
    runtime: &Runtime,
    jobs: Option<u16>,
    stored: &StoreOfCommand,
    interrupt: &Arc<InterruptTarget>,
    progress: &mut impl CaseListener,
) -> Vec<CaseResult> {
    let jobs = jobs.map_or_else(processors, usize::from);
    let (send, ended) = mpsc::channel::<Ended>();
    let (mut simulated, mut results) = (VecDeque::new(), Vec::new());
    let slots = Arc::new(Semaphore::new(jobs));
    for (place, case) in cases.into_iter().enumerate() {
        let keeper = stored.keeper().filter(|_| case.is_kept);
        let planned = case.trials.len();
        for (nth, trial) in case.trials.into_iter().enumerate() {
            let scenario = Arc::clone(&case.scenario);
            let placed = PlacedTrial { case: place, nth, scenario, is_live: case.is_live, trial };
            if case.is_simulated {
                simulated.push_back(placed);
                continue;
            }
            let (send, slots) = (send.clone(), Arc::clone(&slots));
            let (keeper, interrupt) = (keeper.clone(), Arc::clone(interrupt));
            runtime.spawn(async move {
                // The semaphore is never closed.
                let _slot = slots.acquire().await;
                let _ = send.send(play(placed, keeper, &interrupt).await);
            });
        }
        results.push(CaseResult {
            name: case.scenario.name.to_string(),
            words: case.words,
            own_seed: case.scenario.seed,
            file: case.scenario.origin.to_string(),
            is_live: case.is_live,
            is_outside: case.is_outside,
            is_kept: keeper.is_some(),
            planned,
            trials: Vec::new(),
        });
    }
    let simulated = Mutex::new(simulated);
    thread::scope(|scope| {
        for _ in 0..jobs.min(simulated.lock().unwrap_or_else(PoisonError::into_inner).len()) {
            let send = send.clone();
            let (simulated, interrupt) = (&simulated, &**interrupt);
            scope.spawn(move || play_simulated(simulated, interrupt, &send));
        }
        drop(send);
        collect(&ended, &mut results, interrupt, progress);
    });
    results
}

/// Collects the ends of trials until all have ended, and reports scenarios in their order.
fn collect(
    ended: &mpsc::Receiver<Ended>,
    results: &mut [CaseResult],
    interrupt: &InterruptTarget,
    progress: &mut impl CaseListener,
) {
    let mut open: Vec<usize> = results.iter().map(|case| case.planned).collect();
    let mut arrived: Vec<Vec<(usize, TrialResult)>> = results.iter().map(|_| Vec::new()).collect();
    let mut next = 0;
    while let Ok((case, nth, result)) = ended.recv() {
        arrived[case].extend(result.map(|result| (nth, result)));
        open[case] -= 1;
        while next < open.len() && open[next] == 0 {
            let mut trials = std::mem::take(&mut arrived[next]);
            trials.sort_by_key(|(nth, _)| *nth);
            results[next].trials = trials.into_iter().map(|(_, trial)| trial).collect();
            if progress.case_done(&results[next]).is_err() {
                // The reader of the output is gone, so more runs only cost.
                interrupt.cancel();
            }
            next += 1;
        }
    }
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Makes trials in simulated time until none is left. The clock jumps to the next timer whenever
/// nothing else is to be done, so waiting takes no time, and results do not depend on the machine.
fn play_simulated(
    trials: &Mutex<VecDeque<PlacedTrial>>,
    interrupt: &InterruptTarget,
    send: &mpsc::Sender<Ended>,
) {
    loop {
        let next = trials.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(placed) = next else { return };
        let (case, nth) = (placed.case, placed.nth);
        let ended = match Builder::new_current_thread().enable_all().start_paused(true).build() {
            Ok(runtime) => {
                let ended = runtime.block_on(play(placed, None, interrupt));
                runtime.shutdown_background();
                ended
            }
            Err(error) => {
                tracing::error!("cannot start a run: {error}");
                (case, nth, None)
            }
        };
        let _ = send.send(ended);
    }
}

/// Makes a trial.
async fn play(
    placed: PlacedTrial,
    keeper: Option<Arc<dyn RunKeeper>>,
    interrupt: &InterruptTarget,
) -> Ended {
    let PlacedTrial { case, nth, scenario, is_live, trial } = placed;
    let engine = user_engine(engine_settings(0), keeper);
    let mut observer = RunObserver::new(&scenario.expectations);
    let messages = trial.launches.len();
    let (mut runs, mut before) = (Vec::new(), None::<RunHandle>);
    let mut notes = Vec::new();
    let mut warnings: Vec<String> = scenario.run_warnings(is_live).cloned().collect();
    for (text, mut launch) in trial.launches {
        if interrupt.is_cancelled() {
            return (case, nth, None);
        }
        launch.answer(text, before.as_ref());
        let run = engine.start(launch);
        interrupt.watch(&run);
        let mut reader = run.first_reader();
        let (mut world, mut batch) = (World::new(), Vec::new());
        while reader.next_batch(&mut batch, BATCH).await > 0 {
            let taken = batch.len();
            for event in batch.drain(..) {
                world.apply(&event);
                add_failed_condition(&event, &mut warnings);
                program_log::log_event(&event, &world);
                observer.event(&event);
            }
            world.forget_old(taken);
        }
        run.wait_until_finished().await;
        interrupt.unwatch(&run);
        runs.push(run.id().clone());
        if !observer.end_of_run(&world) || interrupt.is_cancelled() {
            return (case, nth, None);
        }
        notes.extend(notes_on(&world));
        before = Some(run);
    }
    let Some(observed) = observer.finish(ExpectedOf::scenario(&scenario, is_live, messages)) else {
        return (case, nth, None);
    };
    let stopped = observed.outcome.runs().iter().find(|run| !run.stop_reason.is_success());
    let mut expectations = observed.judge(&scenario.expectations);
    if trial.denies_warnings {
        expectations.push(no_warnings(&warnings));
    }
    let result = TrialResult {
        trace: None,
        seed: trial.seed,
        runs,
        stop_reason: observed.outcome.stop_reason().clone(),
        error: stopped.and_then(|run| run.error.clone()),
        warnings,
        notes,
        elapsed_ms: observed.outcome.elapsed_ms(),
        tokens: observed.tokens,
        cost_usd: observed.outcome.cost_usd(),
        expectations,
    };
    (case, nth, Some(result))
}

/// The result of `--deny-warnings`.
pub(super) fn no_warnings(warnings: &[String]) -> ExpectationResult {
    ExpectationResult {
        that: NO_WARNINGS.to_owned(),
        message: Some("There is no warning.".to_owned()),
        line: None,
        verdict: if warnings.is_empty() { Verdict::Holds } else { Verdict::Fails },
        parts: Vec::new(),
    }
}

/// Adds a condition that could not be evaluated, once for each place, or a value that a text lacks.
pub(super) fn add_failed_condition(event: &Event, warnings: &mut Vec<String>) {
    /// Most of them; a loop may have a new error in each round.
    const MAX_WARNINGS: usize = 20;
    if let EventKind::ConditionFailed { place, text } = &event.kind {
        // A text has several values, each of which may be missing.
        let (start, effect) = match place.ends_with(".text") {
            true => (format!("{place}: {text}"), "it is left out"),
            false => (format!("{place}: "), "it counts as false"),
        };
        if warnings.len() < MAX_WARNINGS
            && !warnings.iter().any(|warning| warning.starts_with(&start))
        {
            warnings.push(format!("{place}: {text}; {effect}"));
        }
    }
}

/// The tools of a run that failed, whether or not a fallback replaced their results, the replies that
/// were used though they are not whole, and what to do about its stop.
pub(super) fn notes_on(world: &World) -> Vec<String> {
    let tools = world.tools.rows().iter().filter(|row| row.head.is_tool());
    let cause = world.stop_cause();
    let is_said = |why: &str| cause.as_ref().is_some_and(|cause| cause.contains(why));
    let failed = tools.filter_map(|row| {
        let tally = &row.tally;
        let failed = tally.failed + tally.cached + tally.fallback + tally.omitted;
        let calls = format::count_noun(tally.calls, "call");
        let why = row.last_failure.as_ref().filter(|why| !is_said(why));
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        (failed > 0).then(|| format!("{} failed {failed} of {calls}{why}", row.name()))
    });
    failed
        .chain(closing::cut_replies(world))
        .chain(cause.as_ref().map(|cause| cause.to_string()))
        .chain(world.stop_advice().map(str::to_owned))
        .collect()
}
