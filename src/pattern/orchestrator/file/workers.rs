//! Builds the tools that implement the workers.

use crate::base::name::ToolName;
use crate::pattern::orchestrator::file::table::WorkerTable;
use crate::scenario::check::build_implementation::{self, AttemptLimit, DeclaredImplementation};
use crate::scenario::check::build_policy::{faults, tool_policy};
use crate::scenario::check::fixture_contract::KnownArguments;
use crate::scenario::file::format::ScenarioFile;
use crate::scenario::file::format_budget::BudgetTable;
use crate::scenario::file::named::NamedEntry;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::template::TemplateScope;
use crate::scenario::spec::policy::{CallPolicy, RetryOn, SafeMode};
use crate::scenario::spec::tool::{ToolOffer, ToolSpec};

/// The tools of the workers. Problems are reported to `cx`.
pub(super) fn tools(
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Vec<ToolSpec> {
    let workers = file.workers.entries.iter();
    workers.filter_map(|entry| worker(entry, file, filling, cx)).collect()
}

fn worker(
    entry: &NamedEntry<WorkerTable>,
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
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
        Some(table) => cx.at_key(&place, |cx| tool_policy(table, file, filling, cx))?,
        None => own_policy(file),
    };
    let attempts = match limits {
        Some(table) => AttemptLimit::from_retries(&place, table.retries.as_ref()?),
        None => task_attempts(file.budget.as_ref()?),
    };
    let table = entry.value.as_ref()?;
    let answers = declared(table);
    if let Some(second) = limits.map(DeclaredImplementation::from_tool)
        && answers.has_implementation()
        && let Some(at) = second.first()
    {
        let what = format!("`workers.{}` already has an implementation", entry.name);
        cx.at_key(&place, |cx| cx.error(at, what, "remove one of the two"));
    }
    let (place, answers) = match limits.map(DeclaredImplementation::from_tool) {
        Some(second) if !answers.has_implementation() && second.has_implementation() => {
            (place.clone(), second)
        }
        _ => (format!("workers.{}", entry.name), answers),
    };
    let declared: Vec<&str> =
        table.args.table.entries.iter().map(|(key, _)| key.text.as_str()).collect();
    let args = (!table.args.broken).then_some(&declared[..]);
    let args = KnownArguments { names: args, certain: true };
    let kind = cx
        .at_key(&place, |cx| build_implementation::kind(&answers, &args, &attempts, filling, cx))?;
    if kind.is_none() && !cx.at_key(&place, |cx| cx.has_error_here()) {
        cx.at_key(&format!("workers.{}", entry.name), |cx| {
            let what = format!(
                "`{}` has no implementation: its tasks fail with worker_missing",
                entry.name
            );
            cx.warn(entry.at, what, "add one of fixture, http and command");
        });
    }
    if limits.is_none()
        && let (Some(http), Some(_)) = (&table.http, &kind)
    {
        cx.at_key(&format!("workers.{}.http", entry.name), |cx| {
            let what = "only timeouts of this worker are retried, as in the source document";
            let help = format!("add [tools.{}] with retries = {{ max_attempts = 2 }}", entry.name);
            cx.warn(http.at, what, help);
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
                cx.at_key(&format!("tools.{}", entry.name), |cx| faults(&table.faults, cx))?
            }
            None => Vec::new(),
        },
        offer: ToolOffer::bare(&entry.name),
    })
}

/// The implementations that the table of a worker declares.
fn declared(table: &WorkerTable) -> DeclaredImplementation<'_> {
    DeclaredImplementation {
        fixture: table.fixture.as_ref(),
        http: table.http.as_ref(),
        command: table.command.as_ref(),
        search: None,
        read: None,
        what: "worker",
        contract: &table.contract,
    }
}

/// How many attempts a task may have.
fn task_attempts(budget: &BudgetTable) -> AttemptLimit {
    let limit = &budget.max_retries_per_task;
    let of = format!("budget.max_retries_per_task is {}", limit.value.0);
    AttemptLimit { most: limit.value.0 + 1, set: limit.at.text > 0, of }
}

/// The orchestrator's own policy for its workers (orchestrator source document): it retries a
/// timeout without a wait, and nothing else.
fn own_policy(file: &ScenarioFile) -> CallPolicy {
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
