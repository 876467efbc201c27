//! The routes of a router as Markdown.

use std::fmt::Write as _;

use super::decision::decision_text;
use crate::agents::words::markdown::add_hops;
use crate::narrate::export::escape::table_cell;
use crate::narrate::format;
use crate::pattern::router::projection::Router;

/// Adds the routes with the confidence that the classifier claims, the decision, and what the agents did.
pub(super) fn add_routes(router: &Router, out: &mut String) {
    let _ = writeln!(out, "\n## Routes\n\n| route | confidence | |");
    let _ = writeln!(out, "| --- | --- | --- |");
    let chosen = router.route().map(|choice| &choice.route);
    for route in &router.plan.routes {
        let claimed = router.proposed.as_ref().and_then(|it| it.confidence_in(&route.agent));
        let claimed = claimed.map_or_else(String::new, format::confidence);
        let mark = if chosen == Some(&route.agent) { "chosen" } else { "" };
        let _ = writeln!(out, "| {} | {claimed} | {mark} |", route.agent);
    }
    if let Some(proposed) = &router.proposed {
        let _ = writeln!(out, "\nThe classifier's reason: {}", table_cell(&proposed.reason));
    }
    if let Some(decision) = decision_text(router) {
        let _ = writeln!(out, "\nDecision: {decision}.");
    }
    add_hops(&router.agents, out);
}
