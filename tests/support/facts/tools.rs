//! Logs of facts by hand of an orchestrator and of a resilience run: what the gateway's policies do
//! is written as a test wants it, without an engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use roundtable::log::event::{
    AttemptFailed, BreakerCause, BreakerStage, ChatMessage, EventKind, FailureClass, FallbackKind,
    FlagAt, Initiator, MessageRole, Prompt, Purpose, Reply, RunStarted, SpanId, StopReason,
    ToolHead, Usage, WindowCounts,
};
use roundtable::log::facts::orchestrator::{OrchestratorFact, OrchestratorPlan, Task, WorkerHead};
use roundtable::log::facts::{PatternFact, PatternPlan, ResiliencePlan};
use roundtable::scenario::patterns::orchestrator::OrchestratorBudget;
use roundtable::scenario::spec::AlertLimits;
use roundtable::scenario::spec::policy::{Rate, WindowKind, WindowLimits};
use serde_json::{Value, json};

use super::builder::LogBuilder;
use super::head::tool;

/// A log of tools that is being written.
pub type ToolFacts = LogBuilder<ToolStory>;

/// What the builder knows of tools.
pub struct ToolStory {
    /// Open calls by a name of the test's own: call, attempt, number of the attempt, task.
    calls: BTreeMap<String, (SpanId, SpanId, u32)>,
    tasks: Vec<(SpanId, Task)>,
}

fn model() -> ToolHead {
    let mut model = tool("llm", "model", 60_000, false);
    model.limits.safe_mode = None;
    model
}

/// The tasks of the story.
pub fn story() -> Vec<Task> {
    let task = |id: &str, worker: &str, args: Value, critical: bool| Task {
        id: id.into(),
        worker: worker.into(),
        args: Arc::new(args.as_object().cloned().unwrap_or_default()),
        critical,
    };
    vec![
        task("t1", "sales_worker", json!({"region": "us"}), true),
        task("t2", "payments_worker", json!({"region": "us"}), true),
        task("t3", "inventory_worker", json!({"warehouse": "east"}), false),
        task("t4", "weather_worker", json!({}), false),
    ]
}

impl ToolFacts {
    fn begin(title: &str, goal: &str, tools: Vec<ToolHead>, plan: PatternPlan) -> Self {
        let mut facts = Self::new(ToolStory { calls: BTreeMap::new(), tasks: Vec::new() });
        let head = RunStarted {
            title: title.to_owned(),
            goal: goal.to_owned(),
            flags: vec![FlagAt {
                name: "weather".into(),
                label: "the weather in the report".to_owned(),
                on: true,
            }],
            tools,
            alerts: AlertLimits { error_rate: Some(0.5), ..AlertLimits::default() },
            ..super::head::started("r-81c2", plan)
        };
        facts.add(SpanId::RUN, EventKind::RunStarted(Arc::new(head)));
        facts
    }

    /// An orchestrator that has just been started, with these workers at its hand.
    pub fn orchestrator(max_tasks: u32) -> Self {
        let names = ["sales_worker", "payments_worker", "inventory_worker", "weather_worker"];
        let worker = |name: &str| WorkerHead {
            name: name.into(),
            description: format!("what the {} are worth", name.trim_end_matches("_worker")),
            flag: (name == "weather_worker").then(|| "weather".into()),
        };
        let plan = OrchestratorPlan {
            workers: names.iter().map(|name| worker(name)).collect(),
            budget: OrchestratorBudget {
                max_tasks,
                max_parallel: 2,
                max_retries_per_task: 1,
                max_dispatches: 8,
                task_timeout: Duration::from_millis(1_800),
                max_seconds: Duration::from_secs(25),
            },
            sections: vec!["sales".to_owned(), "payments".to_owned(), "inventory".to_owned()],
            level: "health".to_owned(),
        };
        let mut tools = vec![model()];
        tools.extend(names.iter().map(|name| tool(name, "fixture", 1_800, true)));
        let goal = "Write the morning report of the shop.";
        Self::begin("Morning report", goal, tools, PatternPlan::Orchestrator(Arc::new(plan)))
    }

    /// A resilience run that has just been started.
    pub fn storm(guarded: bool) -> Self {
        Self::storm_with(guarded, None)
    }

    /// The same; the vendor's breaker has this window.
    pub fn storm_with(guarded: bool, window: Option<WindowLimits>) -> Self {
        let plan = ResiliencePlan {
            agents: 20,
            turns: 3,
            steps: vec!["vendor".into(), "search".into()],
            pool: 12,
            guarded,
            naive_attempts: 27,
            max_ms: 60_000,
        };
        let mut vendor = tool("vendor", "fixture", 500, guarded);
        if let Some(breaker) = &mut vendor.limits.breaker {
            breaker.window = window;
            breaker.probe_permits = if window.is_some() { 3 } else { 1 };
        }
        let tools = vec![model(), vendor, tool("search", "fixture", 500, guarded)];
        let goal = "Get through while the vendor browns out.";
        Self::begin("A vendor in trouble", goal, tools, PatternPlan::Resilience(Arc::new(plan)))
    }

    /// Something is asked of a tool or the model.
    pub fn asks(
        &mut self,
        key: &str,
        tool: &str,
        parent: SpanId,
        purpose: Purpose,
        args: Option<Value>,
    ) -> &mut Self {
        let messages: Arc<[ChatMessage]> = match args {
            Some(_) => Arc::new([]),
            None => Arc::new([
                ChatMessage::new(MessageRole::System, "You plan the work."),
                ChatMessage::new(MessageRole::User, "{\"max_tasks\":8}"),
            ]),
        };
        let prompt = Prompt::complete(messages);
        let call = self.call_starts(parent, tool, purpose, prompt, args);
        self.calls.insert(key.to_owned(), (call, call, 0));
        self
    }

    /// The next attempt of a call goes out.
    pub fn attempt(&mut self, key: &str) -> &mut Self {
        let (call, _, before) = self.calls[key];
        let span = self.open();
        self.calls.insert(key.to_owned(), (call, span, before + 1));
        let kind = EventKind::AttemptStarted {
            parent: call,
            attempt: before + 1,
            timeout_ms: 1_800,
            waited_ms: 0,
            probe: false,
        };
        self.add(span, kind)
    }

    /// The attempt fails; with a wait another follows.
    pub fn fails(
        &mut self,
        key: &str,
        class: FailureClass,
        status: Option<u16>,
        wait: Option<u64>,
    ) -> &mut Self {
        let (call, span, number) = self.calls[key];
        let mut failed = AttemptFailed::new(class, "The vendor is busy. Try again later.");
        failed.status = status;
        self.add(span, EventKind::AttemptFailed(failed));
        match wait {
            Some(wait_ms) => {
                let kind =
                    EventKind::CallRetried { attempt: number + 1, wait_ms, cause: class, status };
                self.add(call, kind)
            }
            None => self,
        }
    }

    /// The call is answered with a value.
    pub fn answers(&mut self, key: &str, value: Value) -> &mut Self {
        let (call, span, attempts) = self.calls[key];
        self.add(
            span,
            EventKind::AttemptAnswered(Arc::new(Reply::from_tool_result(Arc::new(value)))),
        );
        self.add(call, EventKind::CallAnswered { attempts })
    }

    /// The model answers with a text.
    pub fn says(&mut self, key: &str, text: &str) -> &mut Self {
        let (call, span, attempts) = self.calls[key];
        let reply = Reply {
            text: text.into(),
            usage: Some(Usage::new(412, 88)),
            estimated: false,
            first_token_ms: Some(120),
            ..Reply::from_tool_result(Arc::default())
        };
        let reply = Reply { result: None, ..reply };
        self.add(span, EventKind::AttemptAnswered(Arc::new(reply)));
        self.add(call, EventKind::CallAnswered { attempts })
    }

    /// Policy refuses the next attempt of a call.
    pub fn refused(&mut self, key: &str, reason: &str) -> &mut Self {
        let (call, _, before) = self.calls[key];
        let kind = EventKind::AttemptRefused {
            attempt: before + 1,
            reason: StopReason::from(reason),
            retry_in_ms: None,
        };
        self.add(call, kind)
    }

    /// A fallback replaces the tool's result.
    pub fn degraded(
        &mut self,
        key: &str,
        by: FallbackKind,
        reason: &str,
        value: Option<Value>,
    ) -> &mut Self {
        let (call, _, attempts) = self.calls[key];
        let reason = StopReason::from(reason);
        let value = value.map(Arc::new);
        self.add(call, EventKind::CallDegraded { attempts, reason, by, value })
    }

    /// The call fails for good.
    pub fn gives_up(&mut self, key: &str, reason: &str) -> &mut Self {
        let (call, _, attempts) = self.calls[key];
        self.add(call, EventKind::CallFailed { attempts, reason: StopReason::from(reason) })
    }

    /// The planner is asked, and its plan is taken.
    pub fn plan(&mut self, tasks: Vec<Task>) -> &mut Self {
        self.after(20).asks("plan", "llm", SpanId::RUN, Purpose::Plan, None).attempt("plan");
        self.after(900).says("plan", "{\"kind\":\"plan\",\"tasks\":[]}");
        let call = self.calls["plan"].0;
        self.tasks = tasks.iter().map(|task| (SpanId::RUN, task.clone())).collect();
        self.add(
            call,
            EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::PlanAccepted {
                tasks: tasks.into(),
            })),
        )
    }

    /// A task gets one of the places, and its first attempt goes out.
    pub fn task(&mut self, index: usize) -> &mut Self {
        self.place(index);
        let key = self.tasks[index].1.id.to_string();
        self.attempt(&key)
    }

    /// A task gets one of the places; nothing is asked yet.
    pub fn place(&mut self, index: usize) -> &mut Self {
        let span = self.open();
        self.tasks[index].0 = span;
        let task = self.tasks[index].1.clone();
        let kind = EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskStarted {
            parent: SpanId::RUN,
            task: task.id.clone(),
            index: index as u32,
            worker: task.worker.clone(),
            args_hash: "a1f09c33".to_owned(),
        }));
        self.add(span, kind);
        let purpose = Purpose::Task { task: task.id.clone(), index: index as u32 };
        let args = Value::Object((*task.args).clone());
        self.asks(task.id.as_str(), task.worker.as_str(), span, purpose, Some(args))
    }

    /// A task's result is there, or what stood in for it.
    pub fn done(&mut self, index: usize) -> &mut Self {
        let attempts = self.calls[self.tasks[index].1.id.as_str()].2;
        self.add(
            self.tasks[index].0,
            EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskDone { attempts })),
        )
    }

    /// A task has no result.
    pub fn task_failed(&mut self, index: usize, reason: &str) -> &mut Self {
        let attempts = self.calls[self.tasks[index].1.id.as_str()].2;
        let reason = StopReason::from(reason);
        self.add(
            self.tasks[index].0,
            EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskFailed {
                attempts,
                reason,
            })),
        )
    }

    /// The results are put together, the report is written and the run ends.
    pub fn reported(&mut self, aggregate: Value, text: &str) -> &mut Self {
        let kind =
            EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::ResultsAggregated {
                aggregate: Arc::new(aggregate),
                overwritten: vec![],
                rule: Some(1),
                decided_by: vec!["inventory.low_stock".to_owned()],
            }));
        self.add(SpanId::RUN, kind);
        self.asks("report", "llm", SpanId::RUN, Purpose::Finalize, None).attempt("report");
        self.after(800).says("report", text);
        let call = self.calls["report"].0;
        self.add(
            call,
            EventKind::AnswerComposed { text: text.into(), by: None, end: Default::default() },
        );
        self.ends("success", None)
    }

    /// A step of an agent is asked and its first attempt goes out.
    pub fn step(&mut self, agent: u32, turn: u32, tool: &str) -> String {
        let key = format!("{agent}.{turn}.{tool}");
        let purpose =
            Purpose::AgentStep { agent, turn, step: u16::from(tool != "vendor"), repeat: 0 };
        let args = json!({"agent": agent, "turn": turn});
        self.asks(&key, tool, SpanId::RUN, purpose, Some(args));
        key
    }

    /// A breaker moves.
    pub fn breaker(
        &mut self,
        tool: &str,
        to: BreakerStage,
        why: BreakerCause,
        open_for_ms: Option<u64>,
    ) -> &mut Self {
        self.breaker_with(tool, to, why, open_for_ms, None)
    }

    /// A breaker moves because of what its window has.
    pub fn breaker_with(
        &mut self,
        tool: &str,
        to: BreakerStage,
        cause: BreakerCause,
        open_for_ms: Option<u64>,
        counted: Option<WindowCounts>,
    ) -> &mut Self {
        let by = (cause == BreakerCause::Manual).then_some(Initiator::You);
        let tool = tool.into();
        let kind = EventKind::BreakerChanged { tool, to, cause, open_for_ms, by, counted };
        self.add(SpanId::RUN, kind)
    }

    /// The span of a call.
    pub fn call_of(&self, key: &str) -> SpanId {
        self.calls[key].0
    }
}

/// In the middle of the fan-out: one task is done, one is tried again after a time-out, one goes,
/// one waits for a place.
pub fn working() -> ToolFacts {
    let mut facts = ToolFacts::orchestrator(8);
    facts.plan(story());
    facts.after(10).task(0).task(1);
    facts.after(700).answers("t1", json!({"revenue_usd": 182_400, "orders": 3_120})).done(0);
    facts.after(5).task(2);
    facts.after(1_095).fails("t2", FailureClass::Timeout, None, Some(300));
    facts.after(300).attempt("t2");
    facts.after(400);
    facts
}

/// The same run at its end: the inventory was left to a value of before, the weather failed.
pub fn reported() -> ToolFacts {
    let mut facts = working();
    facts.answers("t2", json!({"failed_rate": 0.021})).done(1);
    facts.after(5).place(3).refused("t4", "worker_denied:weather_worker");
    facts.gives_up("t4", "worker_denied:weather_worker");
    facts.task_failed(3, "worker_denied:weather_worker");
    facts.after(900).fails("t3", FailureClass::Status, Some(503), None);
    let cached = FallbackKind::Cached { age_ms: 41_000 };
    let value = json!({"low_stock": ["mug", "tote"]});
    facts.degraded("t3", cached, "worker_error:inventory_worker", Some(value.clone())).done(2);
    let aggregate = json!({
        "health": "yellow",
        "sales": {"revenue_usd": 182_400, "orders": 3_120},
        "payments": {"failed_rate": 0.021},
        "inventory": value,
        "failed_tasks": [{"task_id": "t4", "stop_reason": "worker_denied:weather_worker"}],
    });
    facts.after(5).reported(aggregate, REPORT);
    facts
}

/// A run that stopped since a task that it needs failed.
pub fn critical() -> ToolFacts {
    let mut facts = working();
    facts.after(1_400).fails("t2", FailureClass::Timeout, None, None);
    facts.gives_up("t2", "task_timeout").task_failed(1, "task_timeout");
    facts.ends("critical_task_failed", Some("dispatch"));
    facts
}

/// The report at the end of the story.
pub const REPORT: &str = "Health is yellow.\n\nSales held at 182 400 USD over 3 120 orders; failed \
payments are at 2.1 %. Mugs and totes run low, by a count that is 41 s old.";

/// Many tasks, the first of them done.
pub fn many(tasks: usize) -> ToolFacts {
    let mut facts = ToolFacts::orchestrator(tasks as u32);
    let planned = (1..=tasks)
        .map(|nth| Task { id: format!("task_{nth}").as_str().into(), ..story()[nth % 4].clone() });
    facts.plan(planned.collect());
    for nth in 0..tasks.min(40) {
        facts.after(20).task(nth);
        facts.after(130).answers(&format!("task_{}", nth + 1), json!({"n": nth})).done(nth);
    }
    facts
}

/// Twenty agents and a vendor in trouble: its breaker is open, calls are refused, some are served
/// by the last good value.
pub fn brownout(guarded: bool) -> ToolFacts {
    let mut facts = ToolFacts::storm(guarded);
    for agent in 1..=6 {
        let vendor = facts.after(20).step(agent, 1, "vendor");
        facts.attempt(&vendor).after(40 * u64::from(agent)).answers(&vendor, json!({"ok": true}));
        let search = facts.step(agent, 1, "search");
        facts.attempt(&search).after(60).answers(&search, json!({"hits": agent}));
    }
    let fault = roundtable::scenario::spec::tool::InjectedFault::Errors {
        percent: 30,
        status: 503,
        times: None,
    };
    facts.add(
        SpanId::RUN,
        EventKind::FaultInjected { tool: "vendor".into(), fault, by: Initiator::You },
    );
    for agent in 7..=9 {
        let vendor = facts.after(90).step(agent, 1, "vendor");
        facts.attempt(&vendor).after(220);
        facts.fails(&vendor, FailureClass::Status, Some(503), Some(200)).after(200);
        facts.attempt(&vendor).after(180);
        facts.fails(&vendor, FailureClass::Status, Some(503), None);
        if agent == 8 && guarded {
            facts.breaker("vendor", BreakerStage::Open, BreakerCause::Failures, Some(3_000));
        }
        let cached = FallbackKind::Cached { age_ms: 2_400 };
        let reason = "tool_error:vendor:http_503";
        facts.degraded(&vendor, cached, reason, Some(json!({"ok": true})));
    }
    for agent in 10..=14 {
        let vendor = facts.after(120).step(agent, 1, "vendor");
        if guarded {
            facts.refused(&vendor, "circuit_open:vendor");
            let instead = FallbackKind::Default;
            facts.degraded(&vendor, instead, "circuit_open:vendor", Some(json!({"ok": false})));
        } else {
            facts.attempt(&vendor);
        }
    }
    for agent in 15..=18 {
        let search = facts.after(30).step(agent, 1, "search");
        facts.attempt(&search);
    }
    let waits = facts.step(19, 1, "search");
    let call = facts.call_of(&waits);
    facts.add(call, EventKind::CallQueued);
    facts.after(250);
    facts
}

/// The window of the vendor's breaker in [`rates`].
pub const WINDOW: WindowLimits = WindowLimits {
    kind: WindowKind::Count,
    size: 20,
    min_calls: 10,
    failure_rate: Rate::ALL,
    slow_call_ms: Some(300),
    slow_rate: Rate::ALL,
};

/// A vendor that fails four calls in five, never five in a row. Its breaker judges rates: it opens at
/// the 24th call; the log ends after so many calls.
pub fn rates(only: usize) -> ToolFacts {
    let window = WindowLimits {
        failure_rate: Rate::from_share(0.7),
        slow_rate: Rate::from_share(0.6),
        ..WINDOW
    };
    let mut facts = ToolFacts::storm_with(true, Some(window));
    for (nth, letter) in (1..).zip("..s..xxxx.xxxx.xxxx.xxxx".chars().take(only)) {
        let vendor = facts.after(60).step(nth, 1, "vendor");
        facts.attempt(&vendor).after(if letter == 's' { 400 } else { 90 });
        match letter {
            'x' => {
                facts.fails(&vendor, FailureClass::Status, Some(503), None);
                if nth == 24 {
                    let counted = Some(WindowCounts { calls: 20, failures: 16, slow: 0 });
                    let why = BreakerCause::FailureRate;
                    facts.breaker_with("vendor", BreakerStage::Open, why, Some(3_000), counted);
                }
                facts.gives_up(&vendor, "tool_error:vendor:http_503");
            }
            _ => {
                let mut reply = Reply::from_tool_result(Arc::new(json!({"ok": true})));
                reply.slow = letter == 's';
                let (call, span, attempts) = facts.calls[&vendor];
                facts.add(span, EventKind::AttemptAnswered(Arc::new(reply)));
                facts.add(call, EventKind::CallAnswered { attempts });
            }
        }
        let search = facts.step(nth, 1, "search");
        facts.attempt(&search).after(60).answers(&search, json!({"hits": nth}));
    }
    facts.after(250);
    facts
}
