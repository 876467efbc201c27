//! The outcome of a run that is about its tools: how it ended, and what came of its calls.

use crate::app::run::data::RunData;
use crate::app::run::subject_text::outcome_text;
use crate::app::run::tool_summary::alert_text;
use crate::event::kind::BreakerStage;
use crate::event::world::Projection;
use crate::event::world::tool_row::ToolTally;
use crate::narrate::event_line::took_ms;
use crate::narrate::format;
use crate::narrate::style_role::StyleRole;
use crate::panes::tools::listed::listed_tools;

/// Most alerts that are listed.
const ALERTS: usize = 4;

/// A line of the outcome.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OutcomeLine {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: String,
    /// How the text is painted.
    pub role: StyleRole,
}

/// The lines of the outcome, the most important first; none before the run has ended.
pub(crate) fn outcome_lines(run: &RunData) -> Vec<OutcomeLine> {
    let world = run.shown();
    let (Some(closed), Some(load)) =
        (&world.progress.closed, world.projection().and_then(Projection::tool_load))
    else {
        return Vec::new();
    };
    let tools = listed_tools(world);
    let sum = |count: fn(&ToolTally) -> u64| tools.iter().map(|it| count(&it.tally)).sum::<u64>();
    let marked = |is_marked: bool, role| if is_marked { role } else { StyleRole::Text };
    let mut lines = Vec::new();
    let mut add = |name, text: String, role| lines.push(OutcomeLine { name, text, role });
    if !closed.reason.is_success() {
        let why = outcome_text(run, None).text.replace("\n\n", " ");
        add("why", why, StyleRole::Strong);
    }
    let (calls, answered) = (sum(|it| it.calls), sum(|it| it.answered));
    add("calls", format!("{answered} of {calls} answered"), StyleRole::Text);
    let (cached, default) = (sum(|it| it.cached), sum(|it| it.fallback));
    let omitted = sum(|it| it.omitted);
    let mut fallback = format!("{cached} cached, {default} default");
    if omitted > 0 {
        fallback.push_str(&format!(", {omitted} left out"));
    }
    add("fallback", fallback, marked(cached + default + omitted > 0, StyleRole::Retry));
    let failed = sum(|it| it.failed);
    add("failed", format::count_noun(failed, "call"), marked(failed > 0, StyleRole::Failed));
    if let Some(factor) = world.tools.amplification() {
        let requests =
            format!("{}, {} a call", sum(ToolTally::requests), format::requests_each(factor));
        add("requests", requests, marked(factor > 1.0, StyleRole::Failed));
    }
    let (gateway, client, agent) =
        (sum(|it| it.retries), sum(|it| it.client_retries), sum(|it| it.repeats));
    let retries = format!("{gateway} gateway, {client} client, {agent} agent");
    add("retries", retries, marked(client + agent > 0, StyleRole::Retry));
    if load.naive_attempts.is_some() {
        add("guards", "none: three layers retry".to_owned(), StyleRole::Retry);
    } else {
        let opened = tools.iter().filter(|it| it.tally.openings > 0).map(|it| {
            let times = format::count_noun(it.tally.openings, "time");
            format!("{} opened {times}", it.name())
        });
        let opened: Vec<String> = opened.collect();
        // Coloured is what is not well at the end.
        let is_open = tools.iter().any(|it| {
            matches!(it.breaker, BreakerStage::Open | BreakerStage::Held | BreakerStage::HalfOpen)
        });
        let role = marked(is_open, StyleRole::Refused);
        let opened = if opened.is_empty() { "never opened".to_owned() } else { opened.join(", ") };
        add("breakers", opened, role);
        let (by_breaker, by_bulkhead) = (sum(|it| it.circuit_open), sum(|it| it.bulkhead_full));
        let refused = format!("{by_breaker} breaker, {by_bulkhead} bulkhead");
        add("refused", refused, StyleRole::Text);
    }
    let turns = format::count_noun(load.turns.into(), "turn");
    let agents = format::count_noun(load.agents.len() as u64, "agent");
    add("time", format!("{}, {agents}, {turns}", took_ms(closed.elapsed_ms)), StyleRole::Text);
    let slots = load.slots;
    let peak = format!("peak {} of {}, {} queued", slots.peak, slots.pool, slots.peak_waiting);
    add("slots", peak, StyleRole::Text);
    let alerts = world.alerts.all();
    for (nth, alert) in alerts.iter().take(ALERTS).enumerate() {
        let name = if nth == 0 { "alerts" } else { "" };
        let role = marked(alert.ended.is_none(), StyleRole::Failed);
        add(name, alert_text(alert, &world.progress), role);
    }
    let more = (alerts.len().saturating_sub(ALERTS) as u64).saturating_add(world.alerts.not_kept());
    if more > 0 {
        add("", format!("{more} more"), StyleRole::Dim);
    }
    lines
}

/// The outcome as text, for the clipboard.
pub(crate) fn outcome_as_text(run: &RunData) -> String {
    let reason = run.shown().progress.closed.as_ref().map(|closed| closed.reason.phrase());
    let mut text = format!("{}\n", reason.unwrap_or_default());
    for OutcomeLine { name, text: line, .. } in outcome_lines(run) {
        text.push_str(&format!("{name:<10}{line}\n"));
    }
    text
}
