//! The text of pane 2: how the route was decided, or what a selected route is.

use crate::app::run::data::RunData;
use crate::base::name::AgentName;
use crate::event::world::{RunState, SpanState};
use crate::narrate::format;
use crate::narrate::glyph::Glyph;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::{Badge, StyledText};
use crate::panes::agents::outcome_text::add_outcome;
use crate::pattern::router::facts::FallbackCause;
use crate::pattern::router::projection::Router;
use crate::pattern::router::words::decision::{
    compared, decision_text, no_fallback_text, standing,
};

/// The glyphs of a check that holds, and of one that does not.
const HOLDS: Badge = Badge::new(Glyph::Done, "", StyleRole::Done);
const FAILS: Badge = Badge::new(Glyph::Refused, "", StyleRole::Refused);

/// The text for the selected route or, without one, for the decision.
pub fn document(run: &RunData, selected: Option<&AgentName>) -> StyledText {
    let mut text = StyledText::default();
    let Some(router) = run.shown().router() else { return text };
    match selected {
        Some(route) => add_route(router, route, run, &mut text),
        None => add_decision(router, run, &mut text),
    }
    text
}

fn add_decision(router: &Router, run: &RunData, text: &mut StyledText) {
    let world = run.shown();
    if world.progress.stage == RunState::Closed {
        let by = router.agents.answered_by.as_ref().or(router.route().map(|choice| &choice.route));
        let call = by.and_then(|name| router.agents.agent(name)?.last_call).or(router.classify);
        add_outcome(run, call, text);
        text.gap();
    }
    match (&router.proposed, router.classify) {
        (Some(proposed), _) => {
            text.field("proposed", proposed.route.as_str());
            let claimed = format::confidence(proposed.confidence);
            text.field("confidence", format!("{claimed} claimed"));
            text.paragraph("reason", &proposed.reason);
        }
        (None, Some(call)) => {
            let open = world.spans.get(call).is_some_and(|span| span.state == SpanState::Open);
            if open && world.progress.is_live() {
                text.item("", StyleRole::Running, "The classifier reads the request.");
            }
            if let Some(refused) = &router.refused {
                text.error("refused", &**refused);
            }
        }
        (None, None) if world.progress.stage == RunState::Closed => {}
        (None, None) => text.item("", StyleRole::Dim, "The classifier has not been called yet."),
    }
    if router.chosen.is_some() {
        add_checks(router, text);
        if let Some(decision) = decision_text(router) {
            let role =
                if router.route().is_some() { StyleRole::Strong } else { StyleRole::Refused };
            text.item("route", role, decision);
        }
    }
}

/// Adds the checks of policy in their order, up to the first that does not hold.
fn add_checks(router: &Router, text: &mut StyledText) {
    let (Some(proposed), Some(chosen)) = (&router.proposed, &router.chosen) else { return };
    let cause = router.cause();
    let route = &proposed.route;
    let count = format::count_noun(router.plan.routes.len() as u64, "route");
    text.signed("checks", HOLDS, format!("{route} is on the policy list of {count}"));
    if cause == Some(FallbackCause::RouteOff) {
        let flag = router.plan.route(route).and_then(|it| it.flag.as_ref());
        let flag = flag.map_or_else(String::new, |flag| format!(": the flag {flag} was off"));
        text.signed("", FAILS, format!("{route} is not on the execution list{flag}"));
    } else {
        text.signed("", HOLDS, format!("{route} is on the execution list"));
        let (claimed, least) = compared(router).unwrap_or_default();
        match cause {
            None => text.signed("", HOLDS, format!("{claimed} is at least {least}")),
            Some(_) => text.signed("", FAILS, format!("{claimed} is below {least}")),
        }
    }
    if chosen.is_err() {
        text.signed("", FAILS, no_fallback_text(router));
    }
}

fn add_route(router: &Router, route: &AgentName, run: &RunData, text: &mut StyledText) {
    let world = run.shown();
    text.field("route", route.as_str());
    let claimed = router.proposed.as_ref().and_then(|proposed| proposed.confidence_in(route));
    if let Some(claimed) = claimed {
        text.field("confidence", format!("{} claimed", format::confidence(claimed)));
    }
    let standing = standing(router, route, &world.run);
    if !standing.is_empty() {
        text.field("state", standing);
    }
    let Some(head) = router.agents.plan.agent(route) else { return };
    text.field("agent", &head.kind);
    text.field("does", &head.description);
    if !head.members.is_empty() {
        let members: Vec<&str> = head.members.iter().map(AgentName::as_str).collect();
        text.field("members", members.join(", "));
    }
    if let Some(flag) = router.plan.route(route).and_then(|route| route.flag.as_ref()) {
        let on = router.flag_off(route, &world.run).is_none();
        text.field("flag", format!("{flag} is {}", if on { "on" } else { "off" }));
    }
    if let Some(row) = router.agents.agent(route).filter(|row| row.turns > 0) {
        text.field("turns", row.turns.to_string());
    }
}
