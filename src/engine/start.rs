//! Starts a run, or continues a recorded one: makes its log, its tools and its context, publishes
//! the head, and starts its task.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use super::handle::{ReplayEnd, RunEnd, RunHandle};
use super::launch::{Launch, ModelChoice, Replayed, Schedule};
use super::play::{ContinuedRun, play, resume};
use super::{Engine, Toolbox, head};
use crate::base::day::Day;
use crate::base::name::FlagName;
use crate::bus::{Bus, LogLimits};
use crate::event::id::millis;
use crate::event::kind::{FlagAt, Initiator, ModelLabel};
use crate::event::launch::LaunchRecord;
use crate::event::{Command, EventKind, RunId, Seq, SpanId};
use crate::llm::prices::Price;
use crate::llm::scripted::Scripted;
use crate::llm::{Models, endpoint};
use crate::pattern::{self, PatternLive};
use crate::run::{AskingRules, RunContext, RunSettings, Session, model_tool};
use crate::scenario::Scenario;
use crate::scenario::check::instant_warning;
use crate::scenario::spec::in_doubt::InDoubt;

impl Engine {
    /// Starts a run, continues a recorded one, or forks it. `id`: that of a new run, if it has one
    /// already.
    pub(super) fn begin(
        &self,
        launch: Launch,
        replayed: Option<Replayed>,
        id: Option<RunId>,
    ) -> RunHandle {
        let Launch { scenario, model, tools, flags, schedule, seed, requested_model, session } =
            launch;
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
        let (models, llm, default_timeout): (Models, _, _) = match model {
            ModelChoice::Scripted { instant } => {
                let scripted = Scripted::new(Arc::clone(&scenario), instant);
                (Arc::new(scripted).into(), Arc::clone(&scenario.llm), endpoint::DEFAULT_TIMEOUT)
            }
            ModelChoice::Recorded(recorded, _) => {
                (recorded.into(), Arc::clone(&scenario.llm), endpoint::DEFAULT_TIMEOUT)
            }
            ModelChoice::Live(models, timeout) => (models, scenario.llm_live(), timeout),
        };
        let label = models.label();
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
        // What a resumed run begins with is stored already.
        let mut stored = Seq(0);
        let bus = match (recording, &fork) {
            (Some(recording), Some(fork)) => Bus::forked(recording, fork.at.clone()),
            (Some(recording), None) => {
                stored = Seq(recording.events().len() as u64);
                Bus::resumed(recording)
            }
            (None, _) => Bus::with_limits(bounds),
        };
        // Both readers begin before a window can drop what a resumed log begins with.
        let first = (bounds != LogLimits::default()).then(|| bus.reader(Seq(0)));
        let keeper = self.shared.keeper.as_ref().map(|keeper| (keeper, bus.reader(Seq(0))));
        bus.set_limits(bounds);
        let now_ms = millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        let wall_ms = recorded.as_ref().map_or(now_ms, |head| head.wall_ms);
        let plan = pattern::plan(&scenario.pattern, &session, live, wall_ms, before);
        let tools = tools.unwrap_or_else(|| Toolbox::offline(&scenario, instant));
        let faults = scenario.llm_faults.clone();
        let mut guarded = vec![model_tool(llm, default_timeout, faults, bus.clock())];
        guarded.extend(self.shared.build_tools(&scenario, tools, &bus));
        let (end, end_later) = RunEnd::new();
        // A run that was started has nothing to replay.
        let (replayed, replayed_later) =
            recorded.as_ref().map(|_| watch::channel(ReplayEnd::Open)).unzip();
        let changes = PatternLive::new(&scenario.pattern, &bus, &session);
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
                today: Day::from_unix_ms(wall_ms),
                spending: scenario.spending,
                in_doubt: scenario.in_doubt.unwrap_or(in_doubt),
                plan: plan.clone(),
                asking,
            });
            let handle = RunHandle {
                id: id.clone(),
                bus: bus.clone(),
                control: Arc::clone(context.control()),
                tools: Arc::clone(context.tools()),
                live: changes.control(),
                session: session.clone(),
                end: end_later,
                replayed: replayed_later,
                first: first.map(|first| Arc::new(Mutex::new(Some(first)))),
            };
            runs.by_id.insert(id, handle.clone());
            self.shared.divide_window(&runs, None);
            handle
        };
        if let Some((keeper, reader)) = keeper {
            keeper.keep(&handle, reader, stored);
        }
        let tools = context.tools().iter().map(|tool| tool.head()).collect();
        let begun = head::RunSetup {
            run: &handle.id,
            model: label,
            model_prices: models.prices().to_vec(),
            flags: positions,
            tools,
            seed,
            launch: LaunchRecord {
                source: Arc::clone(&scenario.source),
                instant,
                model: requested_model,
                flags: schedule.flags.clone(),
                pauses: schedule.breaks.clone(),
                forked: fork.clone(),
                answered_by: answered_by.as_ref().map(|head| head.run.clone()),
            },
            wall_ms,
            plan,
            asking,
        };
        let head = head::build_head(&scenario, begun);
        bus.publish(SpanId::RUN, EventKind::RunStarted(Arc::new(head)));
        context.tools().watch(&bus);
        for text in warnings(&scenario, live, instant.then_some(default_timeout)) {
            bus.publish(SpanId::RUN, EventKind::Warning { text });
        }
        for tool in context.tools().iter().filter(|it| it.shared && recorded.is_some()) {
            let text = format!(
                "the tool {} is shared by runs; this run, which continues a recorded one, has \
                 a breaker, a queue and limits of its own",
                tool.guard.name()
            );
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
            // The run is over when the task is gone, however that came about.
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

/// What is said of a run when it starts. `instant`: the timeout of an attempt of an instant run.
fn warnings(scenario: &Scenario, live: bool, instant: Option<Duration>) -> Vec<String> {
    let mut texts: Vec<String> = scenario.run_warnings(live).cloned().collect();
    if scenario.spending.max_cost_usd.is_some() && !live && scenario.model.prices.is_none() {
        let text = "budget.max_cost_usd has no effect here: scripted replies have no price; set \
                    [model.prices] to try it";
        texts.push(text.to_owned());
    }
    texts.extend(instant.and_then(|timeout| instant_warning::warning(scenario, timeout)));
    texts
}

/// Schedules what the command line says. A run that is resumed began in its recording, so it does not
/// begin with a pause again.
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
