//! Tools: what answers for each, under which policy, and which of them nobody asks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::alert::AlertLimits;
use super::build_answers::{self, Attempts, Declared};
use super::format::{File, Pattern};
use super::format_patterns::WorkerTable;
use super::format_tools::{
    AlertsTable, BreakerTable, BulkheadTable, InjectedTable, InjectedWord, LLM, LlmTable,
    RetriesTable, RetryBudgetTable, SafeModeTable, ToolTable, filled,
};
use super::model::{CallPolicy, RetryOn, SafeMode};
use super::name::ToolName;
use super::named::Entry;
use super::reader::{Reader, among, closest};
use super::resilience::{BreakerLimits, BulkheadLimits, RetryBudgetLimits};
use super::shape::{At, List, Whole};
use super::template::Filling;
use super::tool::{Contract, Fault, ToolOffer, ToolSpec};
use super::tree::Span;

/// The tools of a file, workers first. Problems are told to `cx`.
pub(super) fn tools(
    file: &File,
    pattern: Pattern,
    filling: &Filling<'_>,
    cx: &mut Reader,
) -> BTreeMap<ToolName, ToolSpec> {
    one_name_each(file, cx);
    let mut tools = BTreeMap::new();
    for entry in &file.workers.entries {
        if let Some(spec) = worker(entry, file, filling, cx) {
            tools.insert(spec.name.clone(), spec);
        }
    }
    let named = file.tools.iter().flat_map(|tools| &tools.named.entries);
    for entry in named.filter(|entry| !file.workers.names().any(|name| name == entry.name)) {
        let spec = cx.within(&format!("tools.{}", entry.name), |cx| {
            let spec = tool(entry, pattern, file, filling, cx);
            if !cx.failed_here() {
                idle(entry, spec.as_ref(), pattern, file, cx);
            }
            spec
        });
        if let Some(spec) = spec {
            tools.insert(spec.name.clone(), spec);
        }
    }
    tools
}

/// Roles, workers and tools share one space of names, in which `llm` is the model.
fn one_name_each(file: &File, cx: &mut Reader) {
    let mut taken = |place: &str, name: &str, at: Span| {
        if name == LLM {
            let what = "`llm` is the name of the model's calls";
            cx.within(&format!("{place}.{name}"), |cx| cx.error(at, what, "another name"));
        }
    };
    file.roles.entries.iter().for_each(|it| taken("roles", &it.name, it.at));
    file.workers.entries.iter().for_each(|it| taken("workers", &it.name, it.at));
    for entry in file.tools.iter().flat_map(|tools| &tools.named.entries) {
        if file.roles.names().any(|role| role == entry.name) {
            let what = format!("`{}` is the name of a role", entry.name);
            cx.within(&format!("tools.{}", entry.name), |cx| {
                cx.error(entry.at, what, "another name");
            });
        }
    }
}

fn worker(
    entry: &Entry<WorkerTable>,
    file: &File,
    filling: &Filling<'_>,
    cx: &mut Reader,
) -> Option<ToolSpec> {
    let name = ToolName::from(entry.name.as_str());
    let tools = file.tools.as_ref()?;
    let guarded = tools.named.entries.iter().find(|tool| tool.name == entry.name);
    let limits = match guarded {
        Some(tool) => Some(tool.value.as_ref()?),
        None => None,
    };
    let place = format!("tools.{}", entry.name);
    let policy = match limits {
        Some(table) => cx.within(&place, |cx| tool_policy(table, filling, cx))?,
        None => own_policy(file),
    };
    let attempts = match limits {
        Some(table) => Attempts::of_retries(&place, table.retries.as_ref()?),
        None => Attempts::of_orchestrator(file.budget.as_ref()?),
    };
    let table = entry.value.as_ref()?;
    let answers = Declared::of_worker(table);
    if let Some(second) = limits.map(Declared::of_tool)
        && answers.says_something()
        && let Some(at) = second.first()
    {
        let what = format!("`workers.{}` says already what answers", entry.name);
        cx.within(&place, |cx| cx.error(at, what, "in one of the two places, not in both"));
    }
    let (place, answers) = match limits.map(Declared::of_tool) {
        Some(second) if !answers.says_something() && second.says_something() => {
            (place.clone(), second)
        }
        _ => (format!("workers.{}", entry.name), answers),
    };
    let declared: Vec<&str> =
        table.args.table.entries.iter().map(|(key, _)| key.text.as_str()).collect();
    let args = (!table.args.broken).then_some(&declared[..]);
    let kind =
        cx.within(&place, |cx| build_answers::kind(&answers, args, &attempts, filling, cx))?;
    if kind.is_none() && !cx.within(&place, |cx| cx.failed_here()) {
        cx.within(&format!("workers.{}", entry.name), |cx| {
            let what = format!("nothing does the work of `{}`: worker_missing", entry.name);
            cx.warn(entry.at, what, "one of fixture, http and command");
        });
    }
    Some(ToolSpec {
        name,
        kind,
        policy,
        contract: answers.contract(),
        shared: limits.is_some_and(|table| table.shared),
        faults: match limits {
            Some(table) => {
                cx.within(&format!("tools.{}", entry.name), |cx| faults(&table.faults, cx))?
            }
            None => Vec::new(),
        },
        offer: ToolOffer::bare(&entry.name),
    })
}

fn tool(
    entry: &Entry<ToolTable>,
    pattern: Pattern,
    file: &File,
    filling: &Filling<'_>,
    cx: &mut Reader,
) -> Option<ToolSpec> {
    let table = entry.value.as_ref()?;
    let policy = tool_policy(table, filling, cx);
    let mut attempts =
        Attempts::of_retries(&format!("tools.{}", entry.name), table.retries.as_ref()?);
    if pattern == Pattern::Resilience {
        attempts.or_of_naive(file.resilience.as_ref()?);
    }
    let answers = Declared::of_tool(table);
    let kind = build_answers::kind(&answers, None, &attempts, filling, cx);
    let faults = faults(&table.faults, cx);
    let kind = kind?;
    Some(ToolSpec {
        name: ToolName::from(entry.name.as_str()),
        kind,
        policy: policy?,
        contract: answers.contract(),
        shared: table.shared,
        faults: faults?,
        offer: ToolOffer::bare(&entry.name),
    })
}

/// A tool that the pattern never asks, or would ask in vain.
fn idle(
    entry: &Entry<ToolTable>,
    spec: Option<&ToolSpec>,
    pattern: Pattern,
    file: &File,
    cx: &mut Reader,
) {
    let steps = || file.resilience.iter().flat_map(|it| &it.steps).flat_map(|steps| &steps.0);
    let help = match pattern {
        Pattern::Collaboration => "a collaboration asks only llm".to_owned(),
        Pattern::Orchestrator => match closest(&entry.name, file.workers.names()) {
            Some(_) => among(&entry.name, file.workers.names()),
            None => "an orchestrator asks its workers and llm".to_owned(),
        },
        Pattern::Resilience if steps().any(|step| step.text == entry.name) => {
            if spec.is_some_and(|spec| spec.kind.is_none()) {
                let what = format!("nothing stands behind `{}`", entry.name);
                cx.warn(entry.at, what, "one of fixture, http and command");
            }
            return;
        }
        Pattern::Resilience => "it is not in resilience.steps".to_owned(),
    };
    cx.warn(entry.at, format!("nobody asks `{}`", entry.name), help);
}

/// What the orchestrator of source `001` does with its workers itself: a time-out is followed by
/// another attempt at once, nothing else is.
fn own_policy(file: &File) -> CallPolicy {
    let retries = file.budget.as_ref().map_or(1, |budget| budget.max_retries_per_task.value.0);
    CallPolicy {
        timeout: None,
        max_attempts: retries + 1,
        backoff: [].into(),
        jitter: false,
        idempotent: true,
        retry_on: RetryOn::Timeout,
        retry_budget: None,
        breaker: None,
        bulkhead: None,
        safe_mode: SafeMode::OFF,
    }
}

fn tool_policy(table: &ToolTable, filling: &Filling<'_>, cx: &mut Reader) -> Option<CallPolicy> {
    let safe_mode = safe_mode(table.safe_mode.as_ref()?, filling, cx);
    let limits = Limits {
        retries: table.retries.as_ref()?,
        budget: table.retry_budget.as_ref()?,
        breaker: table.breaker.as_ref()?,
        bulkhead: table.bulkhead.as_ref()?,
        wait: Some(Duration::ZERO),
    };
    Some(CallPolicy {
        timeout: table.timeout_s.map(|seconds| seconds.0),
        idempotent: table.idempotent,
        safe_mode,
        ..limits.policy()
    })
}

/// What the gateway does with the model's calls, and the faults that are injected into them.
pub(super) fn llm(table: &LlmTable, cx: &mut Reader) -> Option<(CallPolicy, Vec<Fault>)> {
    let faults = cx.within("tools.llm", |cx| faults(&table.faults, cx));
    let limits = Limits {
        retries: table.retries.as_ref()?,
        budget: table.retry_budget.as_ref()?,
        breaker: table.breaker.as_ref()?,
        bulkhead: table.bulkhead.as_ref()?,
        wait: None,
    };
    let policy = CallPolicy {
        timeout: table.timeout_s.map(|seconds| seconds.0),
        idempotent: table.idempotent,
        ..limits.policy()
    };
    Some((policy, faults?))
}

/// The part of a policy that model and tools have in common.
struct Limits<'f> {
    retries: &'f RetriesTable,
    budget: &'f RetryBudgetTable,
    breaker: &'f BreakerTable,
    bulkhead: &'f BulkheadTable,
    /// How long an attempt stands in line where the file says nothing.
    wait: Option<Duration>,
}

impl Limits<'_> {
    fn policy(&self) -> CallPolicy {
        let millis = |ms: u32| Duration::from_millis(u64::from(ms));
        let Self { retries, budget, breaker, bulkhead, wait } = self;
        CallPolicy {
            max_attempts: retries.max_attempts.value.0,
            backoff: retries.backoff_ms.0.iter().map(|wait| millis(wait.0)).collect(),
            jitter: retries.jitter,
            retry_budget: Some(RetryBudgetLimits {
                ratio_percent: budget.percent.0,
                min: budget.min.0,
            }),
            breaker: breaker.enabled.then_some(BreakerLimits {
                fail_threshold: breaker.fail_threshold.0,
                open_for: breaker.open_for_s.0,
                probe_permits: breaker.probe_permits.0,
                mode: breaker.mode,
            }),
            bulkhead: bulkhead.enabled.then(|| BulkheadLimits {
                max_in_flight: bulkhead.max_in_flight.0,
                max_wait: bulkhead.max_wait_ms.map_or(*wait, |ms| Some(millis(ms.0))),
            }),
            ..CallPolicy::default()
        }
    }
}

fn safe_mode(table: &SafeModeTable, filling: &Filling<'_>, cx: &mut Reader) -> SafeMode {
    let fallback = table.fallback.as_ref().map(|fallback| {
        cx.within("safe_mode.fallback", |cx| {
            filled(fallback, &mut |text, at| filling.value_of(text, at, cx))
        })
    });
    SafeMode {
        enabled: table.enabled,
        allow_partial: table.allow_partial,
        cache_ttl: table.cache_ttl_s.map(|seconds| seconds.0),
        fallback: fallback.map(|fallback| Arc::new(Value::Object(fallback))),
    }
}

fn faults(tables: &List<At<InjectedTable>, 0, 5>, cx: &mut Reader) -> Option<Vec<Fault>> {
    let mut faults: Vec<Fault> = Vec::new();
    let mut good = true;
    for (index, table) in tables.0.iter().enumerate() {
        cx.within("faults", |cx| {
            cx.item(index, |cx| match injected(&table.value, table.at, cx) {
                Some(fault) if faults.iter().any(|had| had.kind() == fault.kind()) => {
                    let what = format!("there is a fault `{}` already", fault.kind().word());
                    cx.error(table.at, what, "one of each kind");
                    good = false;
                }
                Some(fault) => faults.push(fault),
                None => good = false,
            });
        });
    }
    good.then_some(faults)
}

fn injected(table: &InjectedTable, at: Span, cx: &mut Reader) -> Option<Fault> {
    let kind = table.kind?;
    let of = match kind {
        InjectedWord::Latency => &["ms"][..],
        InjectedWord::Errors => &["percent", "status"],
        InjectedWord::Hang | InjectedWord::Malformed | InjectedWord::Reset => &[],
    };
    let given = [
        ("ms", table.ms.as_ref().map(|ms| ms.at)),
        ("percent", table.percent.as_ref().map(|percent| percent.at)),
        ("status", table.status.as_ref().map(|status| status.at)),
    ];
    for (key, at) in given {
        if let Some(at) = at.filter(|_| !of.contains(&key)) {
            let help = match of {
                [] => "it has nothing to set".to_owned(),
                keys => format!("it has {}", keys.join(" and ")),
            };
            cx.within(key, |cx| {
                cx.error(at, format!("this kind of fault has no `{key}`"), help);
            });
        }
    }
    let needs = |key: &str, help: &str, cx: &mut Reader| {
        if !cx.within(key, |cx| cx.failed_here()) {
            cx.within(key, |cx| cx.error(at, format!("`{key}` is missing"), help));
        }
    };
    let fault = match kind {
        InjectedWord::Latency => match &table.ms {
            Some(At { value: Whole(ms), .. }) => Fault::Latency { ms: u64::from(*ms) },
            None => {
                needs("ms", "ms = 2000", cx);
                return None;
            }
        },
        InjectedWord::Errors => match &table.percent {
            Some(At { value: Whole(percent), .. }) => Fault::Errors {
                percent: u8::try_from(*percent).ok()?,
                status: match &table.status {
                    Some(status) => u16::try_from(status.value.0).ok()?,
                    None => 503,
                },
            },
            None => {
                needs("percent", "percent = 30", cx);
                return None;
            }
        },
        InjectedWord::Hang => Fault::Hang,
        InjectedWord::Malformed => Fault::Malformed,
        InjectedWord::Reset => Fault::Reset,
    };
    Some(fault)
}

/// When a person is alerted.
pub(super) fn alerts(table: &AlertsTable) -> AlertLimits {
    AlertLimits {
        breaker_opens_per_minute: table.breaker_opens_per_minute.map(|opens| opens.0),
        error_rate: table.error_rate.map(|rate| rate.0),
        p95_ms: table.p95_ms.map(|ms| u64::from(ms.0)),
    }
}

impl Declared<'_> {
    fn contract(&self) -> Contract {
        let required = self.contract.entries.iter();
        Contract {
            required: required
                .filter_map(|entry| Some((entry.name.clone(), entry.value?)))
                .collect(),
        }
    }
}
