//! Starts a run or continues a recorded one: makes its log, tools and context, publishes its first
//! event, which has the setup, and plays it in its own task.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use super::handle::{ReplayEnd, RunEnd, RunHandle};
use super::launch::{Launch, ModelChoice, Replayed, Schedule};
use super::{Engine, Toolbox};
use crate::base::catch_panic::CatchPanic;
use crate::base::name::FlagName;
use crate::base::time::{self, Day, millis};
use crate::log::bus::{Bus, LogLimits, Recording};
use crate::log::event::head::{ForkOrigin, LaunchRecord};
use crate::log::event::{
    Command, EventKind, FlagAt, Initiator, ModelLabel, ModelPriceHead, PricesHead, RunClosed,
    RunId, RunStarted, Seq, SpanId, StopReason, ToolHead, Withdrawal,
};
use crate::log::facts::PatternPlan;
use crate::model::script::ScriptedModel;
use crate::model::{Models, endpoint};
use crate::pattern;
use crate::pattern::PatternLive;
use crate::run::{AskingRules, LLM, RunContext, RunSettings, Session, model_tool, replay};
use crate::scenario::Scenario;
use crate::scenario::check::instant;
use crate::scenario::spec::policy::CallPolicy;
use crate::scenario::spec::{InDoubt, Price};

impl Engine {
    /// Starts a run, continues a recorded one, or forks it. `id`: that of a new run, if it has one
    /// already. `is_kept`: whether the keeper keeps it.
    pub(crate) fn begin(
        &self,
        launch: Launch,
        replayed: Option<Replayed>,
        id: Option<RunId>,
        is_kept: bool,
    ) -> RunHandle {
        let Launch {
            scenario,
            model,
            tools,
            flags,
            schedule,
            seed,
            requested_model,
            session,
            people,
        } = launch;
        let in_doubt = replayed.as_ref().map_or(InDoubt::Stop, |it| it.in_doubt);
        let fork = replayed.as_ref().and_then(|it| it.fork.clone());
        let (recording, by) = replayed.map(|it| (it.recording, it.by)).unzip();
        let recorded = recording.as_ref().map(|it| it.head().clone());
        let session = session.unwrap_or_else(|| Session::first(Arc::clone(&scenario.goal)));
        let seed = recorded.as_ref().map(|it| it.seed).or(seed).unwrap_or(scenario.seed);
        let instant = matches!(model, ModelChoice::Scripted { instant: true });
        let answered_by = match &model {
            ModelChoice::Recorded(_, head) => Some(Arc::clone(head)),
            _ => None,
        };
        let tools = tools.unwrap_or_else(|| Toolbox::offline(&scenario, instant));
        let (models, llm, default_timeout) = chosen_models(model, &scenario, &tools);
        let is_observed = scenario.pattern.get().is_observed();
        let label = match is_observed {
            true => ModelLabel::Observed { guarded: scenario.pattern.get().is_guarded() },
            false => models.label(),
        };
        let live = matches!(label, ModelLabel::Live { .. });
        let one_price = scenario.model.prices.map(|prices| {
            Price::new(prices.prompt_usd_per_million, prices.completion_usd_per_million)
        });
        let models = models.at_one_price(one_price);
        let positions = match &recorded {
            Some(head) if fork.is_none() => head.flags.clone(),
            Some(head) => {
                let of_parent = head.flags.iter().map(|flag| (flag.name.clone(), flag.on));
                flag_positions(&scenario, of_parent.collect())
            }
            None => flag_positions(&scenario, flags),
        };
        // A fork plays by the rules of its parent, and a replay by those of the run that answers it.
        let before = recorded.as_ref().or(answered_by.as_deref());
        let asking = AskingRules::new(&scenario, live, before);
        let bounds = self.shared.settings.log;
        let (bus, stored) = opened_log(recording, fork.as_ref(), bounds);
        // Both readers begin before a window can drop what a resumed log begins with.
        let first = (bounds != LogLimits::default()).then(|| bus.reader(Seq(0)));
        let keeper = self.shared.keeper.as_ref().filter(|_| is_kept);
        let keeper = keeper.map(|keeper| (keeper, bus.reader(Seq(0))));
        bus.set_limits(bounds);
        let now_ms = time::now_ms();
        let started_ms = recorded.as_ref().map_or(now_ms, |head| head.wall_ms);
        let plan = pattern::plan(&scenario.pattern, &session, live, started_ms, before);
        let seen_tools = tools.seen_tools();
        let faults = scenario.llm_faults.clone();
        let mut guarded = vec![model_tool(LLM.into(), llm, default_timeout, faults, bus.clock())];
        guarded.extend(self.shared.build_tools(&scenario, tools, &bus));
        let (end, end_later) = RunEnd::new();
        // A run that was started has nothing to replay.
        let (replayed, replayed_later) =
            recorded.as_ref().map(|_| watch::channel(ReplayEnd::Open)).unzip();
        let changes = PatternLive::new(&scenario.pattern, &bus, &session);
        let answerers = people.choice();
        let context;
        let handle = {
            let id = match &recorded {
                Some(head) if fork.is_none() => head.run.clone(),
                _ => id.unwrap_or_else(|| self.next_id()),
            };
            let mut runs = self.shared.runs();
            runs.starting.remove(&id);
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
                today: Day::from_unix_ms(started_ms),
                spending: scenario.spending,
                // A scripted reply costs nothing. A guarded program has its own account.
                day: self.shared.day.get().filter(|_| live).cloned(),
                in_doubt: scenario.in_doubt.unwrap_or(in_doubt),
                plan: plan.clone(),
                asking,
                scenario: Arc::clone(&scenario),
                people,
                wall: self.shared.wall(),
                seen_tools,
            });
            let handle = RunHandle {
                id: id.clone(),
                bus: bus.clone(),
                control: Arc::clone(context.control()),
                tools: Arc::clone(context.tools()),
                questions: Arc::clone(context.questions()),
                live: changes.control(),
                session: session.clone(),
                end: end_later,
                replayed: replayed_later,
                taking: Arc::default(),
                first: first.map(|first| Arc::new(Mutex::new(Some(first)))),
            };
            runs.by_id.insert(id, handle.clone());
            self.shared.divide_window(&runs, None);
            handle
        };
        if let Some((keeper, reader)) = keeper {
            keeper.keep(&handle, reader, stored);
        }
        // Those of an observed run are in its program.
        let tools = context.tools().all();
        let tools = tools.iter().filter(|_| !is_observed).map(|tool| tool.head());
        let begun = RunSetup {
            run: &handle.id,
            model: label,
            model_prices: models.prices().to_vec(),
            flags: positions,
            tools: tools.collect(),
            seed,
            launch: (!is_observed).then(|| LaunchRecord {
                answerers,
                source: Arc::clone(&scenario.source),
                instant,
                model: requested_model,
                flags: schedule.flags.clone(),
                pauses: schedule.breaks.clone(),
                forked: fork.clone(),
                answered_by: answered_by.as_ref().map(|head| head.run.clone()),
            }),
            wall_ms: started_ms,
            plan,
            asking,
        };
        let head = build_head(&scenario, begun);
        bus.publish(SpanId::RUN, EventKind::RunStarted(Arc::new(head)));
        context.tools().watch(&bus);
        let mut warnings = warnings(&scenario, live, instant.then_some(default_timeout));
        if recorded.is_some() {
            warnings.extend(own_limits(&context));
        }
        for text in warnings {
            bus.publish(SpanId::RUN, EventKind::Warning { text });
        }
        apply_schedule(&context, schedule, recorded.is_some());
        self.shared.log.publish(
            SpanId::RUN,
            EventKind::SessionRunStarted {
                run: handle.id.clone(),
                scenario: scenario.name.clone(),
            },
        );
        let (shared, run) = (Arc::clone(&self.shared), handle.clone());
        let task = async move {
            // Marks the run as over when its task ends, for any reason.
            let _end = end;
            let playing = play(&context, &scenario, &changes);
            let reason = match by.zip(replayed) {
                None => Some(playing.await),
                Some((by, replayed)) => {
                    let begins =
                        ContinuedRun { by, now_ms, fork, prices: models.prices().to_vec() };
                    // Boxed because it is rare: otherwise the future of every run would be larger.
                    Box::pin(resume(&context, &run, begins, &replayed, playing)).await
                }
            };
            bus.close();
            match reason {
                Some(reason) => shared.keep_finished(&run.id, &bus, reason),
                None => shared.forget(&run.id),
            }
        };
        // A runtime moves the future of a task several times, and this one is large.
        tokio::spawn(Box::pin(task));
        handle
    }
}

/// The models of a run, and the tool that calls them: its limits, and its timeout where it has none.
fn chosen_models(
    model: ModelChoice,
    scenario: &Arc<Scenario>,
    tools: &Toolbox,
) -> (Models, Arc<CallPolicy>, Duration) {
    let scripted = |instant| Arc::new(ScriptedModel::new(Arc::clone(scenario), instant)).into();
    let (scripted_limits, timeout) = (Arc::clone(&scenario.llm), endpoint::DEFAULT_TIMEOUT);
    match model {
        ModelChoice::Scripted { instant } => (scripted(instant), scripted_limits, timeout),
        ModelChoice::Recorded(recorded, _) => (recorded.into(), scripted_limits, timeout),
        ModelChoice::Live(models, timeout) => {
            (models.with_own(tools.agents()), scenario.llm_live(), timeout)
        }
        ModelChoice::Agents => {
            let models = match tools.agents() {
                [] => scripted(false),
                [(_, first), ..] => Models::from(Arc::clone(first)).with_own(tools.agents()),
            };
            (models, scenario.llm_live(), timeout)
        }
    }
}

/// The log of a run, and the first of its events that is not stored yet: a resumed run begins with stored ones.
fn opened_log(
    recording: Option<Recording>,
    fork: Option<&ForkOrigin>,
    bounds: LogLimits,
) -> (Bus, Seq) {
    match (recording, fork) {
        (Some(recording), Some(fork)) => (Bus::forked(recording, fork.at.clone()), Seq(0)),
        (Some(recording), None) => {
            let stored = Seq(recording.events().len() as u64);
            (Bus::resumed(recording), stored)
        }
        (None, _) => (Bus::with_limits(bounds), Seq(0)),
    }
}

/// A warning for each tool that other runs share, and a continued run does not.
fn own_limits(context: &RunContext) -> impl Iterator<Item = String> {
    let shared = context.tools().all().into_iter().filter(|tool| tool.shared);
    shared.map(|tool| {
        format!(
            "the tool {} is shared by runs; this run, which continues a recorded one, has a breaker, a queue \
             and limits of its own",
            tool.guard.name()
        )
    })
}

/// The positions of the flags at the start.
fn flag_positions(scenario: &Scenario, set: Vec<(FlagName, bool)>) -> Vec<FlagAt> {
    let flags = scenario.flags.iter().map(|flag| FlagAt {
        name: flag.name.clone(),
        label: flag.label.clone(),
        on: flag.default,
    });
    let mut positions: Vec<FlagAt> = flags.collect();
    for (name, on) in set {
        if let Some(flag) = positions.iter_mut().find(|flag| flag.name == name) {
            flag.on = on;
        }
    }
    positions
}

/// The warnings that a run starts with. `instant`: the timeout of an attempt of an instant run.
fn warnings(scenario: &Scenario, live: bool, instant: Option<Duration>) -> Vec<String> {
    let mut texts: Vec<String> = scenario.run_warnings(live).cloned().collect();
    let is_observed = scenario.pattern.get().is_observed();
    let has_prices = live || is_observed || scenario.model.prices.is_some();
    if scenario.spending.max_cost_usd.is_some() && !has_prices {
        let text = "budget.max_cost_usd has no effect here: scripted replies have no price; set \
                    [model.prices] to try it";
        texts.push(text.to_owned());
    }
    texts.extend(instant.and_then(|timeout| instant::instant_warning(scenario, timeout)));
    texts
}

/// Schedules the flags and pauses that the command line sets. A resumed run began in its recording,
/// so it does not pause at its start again.
fn apply_schedule(context: &RunContext, schedule: Schedule, resumed: bool) {
    for (at, flag, on) in schedule.flags {
        context.control().schedule(at, flag, on, Initiator::Schedule);
    }
    for at in schedule.breaks {
        context.control().pause_at(at);
    }
    if schedule.start_paused && !resumed {
        context.control().command(Command::Pause { by: Initiator::Schedule });
    }
}

/// What the scenario does not know about the start of a run.
pub(crate) struct RunSetup<'a> {
    pub run: &'a RunId,
    pub model: ModelLabel,
    pub model_prices: Vec<ModelPriceHead>,
    pub flags: Vec<FlagAt>,
    pub tools: Vec<ToolHead>,
    pub seed: u64,
    pub launch: Option<LaunchRecord>,
    /// Unix time in milliseconds.
    pub wall_ms: u64,
    pub plan: PatternPlan,
    pub asking: AskingRules,
}

fn build_head(scenario: &Scenario, begun: RunSetup<'_>) -> RunStarted {
    let RunSetup { run, model, model_prices, flags, tools, seed, launch, wall_ms, plan, asking } =
        begun;
    RunStarted {
        run: run.clone(),
        wall_ms,
        model,
        scenario: scenario.name.clone(),
        title: scenario.title.clone(),
        goal: scenario.goal.to_string(),
        inputs: scenario
            .inputs
            .iter()
            .map(|input| (input.name.to_string(), input.value.clone()))
            .collect(),
        flags,
        seed,
        prices: scenario.model.prices.map(|prices| PricesHead {
            prompt_usd_per_million: prices.prompt_usd_per_million,
            completion_usd_per_million: prices.completion_usd_per_million,
        }),
        model_prices,
        tools,
        people: scenario.people.named.keys().cloned().collect(),
        ask_again: asking.ask_again,
        shows_flags: asking.shows_flags,
        alerts: scenario.alerts,
        spending: scenario.spending,
        launch,
        redacted: false,
        plan,
    }
}

/// How a recorded run is continued.
pub(crate) struct ContinuedRun {
    pub by: Initiator,
    /// The present time of the wall, as Unix time in milliseconds.
    pub now_ms: u64,
    /// `None`: in the same log.
    pub fork: Option<ForkOrigin>,
    /// Prices of the models that the run calls.
    pub prices: Vec<ModelPriceHead>,
}

impl ContinuedRun {
    /// The first event after the recorded ones.
    fn first_event(&self, recording: &Recording) -> EventKind {
        if let Some(fork) = &self.fork {
            let (parent, at) = (fork.parent.clone(), fork.at.clone());
            let prices = self.prices.clone();
            return EventKind::RunForked { by: self.by, parent, at, prices };
        }
        let stored_ms =
            recording.head().wall_ms.saturating_add(millis(recording.last_at().duration()));
        EventKind::RunResumed {
            by: self.by,
            downtime_ms: self.now_ms.saturating_sub(stored_ms),
            events: recording.events().len() as u64,
        }
    }
}

/// Executes a recorded run again and continues it. Returns `None` if the run cannot be continued: its
/// log stays as it is.
pub(crate) async fn resume(
    context: &RunContext,
    run: &RunHandle,
    begins: ContinuedRun,
    replayed: &watch::Sender<ReplayEnd>,
    playing: impl Future<Output = StopReason>,
) -> Option<StopReason> {
    let steps = replay::RunInputs {
        bus: context.bus(),
        control: context.control(),
        send: &|command| run.deliver(command),
        withdraw: &|question| context.questions().withdraw(question, Withdrawal::Changed),
        first: &|recording| begins.first_event(recording),
        flags: begins.fork.as_ref().map_or(&[], |fork| &fork.flags),
        live: &|| {
            context.questions().go_live();
            drop(replayed.send(ReplayEnd::Live));
        },
    };
    match replay::execute_again(&steps, playing).await {
        Ok(reason) => Some(reason),
        Err(error) => {
            let _ = replayed.send(ReplayEnd::Failed(error));
            None
        }
    }
}

/// Plays a run to its end and publishes its last event.
pub(crate) async fn play(
    context: &RunContext,
    scenario: &Scenario,
    live: &PatternLive,
) -> StopReason {
    let ended = {
        let played = CatchPanic::new(Box::pin(async {
            context.list_server_tools(scenario).await?;
            pattern::play(context, scenario, live).await
        }));
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
            elapsed_ms: millis(context.elapsed().unwrap_or(elapsed)),
            paused_ms: millis(paused),
            in_flight: context.in_flight(),
        })),
    );
    reason
}
