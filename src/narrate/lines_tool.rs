//! Lines of headless text about plans, tools and their breakers and limits.

use super::event_line::EventLine;
use super::format;
use super::glyph::Glyph;
use super::line_parts::{signed, with_model};
use super::pattern_words::Narrate;
use super::style_role::StyleRole;
use super::styled::StyledLine;
use super::tell::line_of;
use crate::base::visible::visible;
use crate::event::kind::BreakerStage;
use crate::event::world::RunFold;
use crate::event::world::alerts::{Alert, AlertKind};
use crate::event::{Event, EventKind};
use crate::scenario::spec::script::ScriptStep;

/// The line of a plan or of a tool's event; `None` if it is not shown.
pub(super) fn line(
    event: &Event,
    run: &RunFold,
    words: Option<&dyn Narrate>,
) -> Option<StyledLine> {
    let described: EventLine = line_of(event, run, words);
    let line = |glyph: Glyph, word: &'static str, role: StyleRole, who: &str| {
        signed(glyph, word, role).then(format!("  {}  {}", visible(who), visible(&described.text)))
    };
    Some(match &event.kind {
        EventKind::PlanRefused { .. } => {
            let who = with_model("plan".to_owned(), run.models.for_step(ScriptStep::Plan));
            line(Glyph::Refused, "refused", StyleRole::Refused, &who)
        }
        EventKind::CallDegraded { .. } => {
            run.spans.get(event.span)?;
            line(Glyph::Alert, "degraded", StyleRole::Flag, &described.subject)
        }
        EventKind::ConcurrencyChanged { .. } => {
            StyledLine::default().then(described.text.into_owned())
        }
        EventKind::BreakerChanged { to, .. } => {
            let (glyph, role) = match to {
                BreakerStage::Open | BreakerStage::Held => (Glyph::Refused, StyleRole::Refused),
                BreakerStage::HalfOpen | BreakerStage::Disabled => (Glyph::Alert, StyleRole::Flag),
                BreakerStage::Closed => (Glyph::Done, StyleRole::Done),
            };
            line(glyph, "breaker", role, &described.subject)
        }
        EventKind::FaultInjected { .. } => {
            line(Glyph::Alert, "fault", StyleRole::Flag, &described.subject)
        }
        EventKind::FaultRemoved { .. } => {
            line(Glyph::Done, "fault", StyleRole::Done, &described.subject)
        }
        EventKind::LimitsChanged { .. } => {
            line(Glyph::Alert, "limits", StyleRole::Flag, &described.subject)
        }
        _ => return None,
    })
}

/// The line of an alert.
pub(super) fn alert(alert: &Alert) -> StyledLine {
    let what = match alert.what {
        AlertKind::BreakerOpens(times) => {
            let times = format::count_noun(times.into(), "time");
            let why = alert.opened_by_window().map(|why| format!("; last: {why}"));
            format!("breaker opened {times} in a minute{}", why.unwrap_or_default())
        }
        AlertKind::ErrorRate(rate) => {
            format!("{:.0} % errors in the last minute", rate * 100.0)
        }
        AlertKind::P95(took) => format!("p95 {}", format::duration_text(took)),
        AlertKind::TokensUsed(share) => {
            format!("{:.0} % of budget.max_total_tokens used", share * 100.0)
        }
        AlertKind::CostUsed(share) => {
            format!("{:.0} % of budget.max_cost_usd used", share * 100.0)
        }
    };
    signed(Glyph::Alert, "alert", StyleRole::Flag).then(format!("  {}  {what}", alert.tool))
}
