//! Which boundaries a run of a router can reach.

use crate::agents::spec::AgentsSpec;
use crate::agents::spec::boundary::{self, TeamAgents};
use crate::base::name::AgentName;

/// The step in which the classifier is asked; also its boundary.
pub(crate) const CLASSIFY: &str = "classify";
/// The step in which the route is chosen; also its boundary.
pub(crate) const ROUTE: &str = "route";
/// The first step of the paths of a router's agents: `router/billing.1`.
pub(crate) const CALLER: &str = "router";

/// Checks `classify`, `route`, and the boundaries of the agent behind a route, whose path begins
/// with `router/ROUTE.1`.
pub(super) fn check(routes: &[&AgentName], agents: &AgentsSpec, at: &str) -> Result<(), String> {
    let examples = || {
        let first = routes.first().map_or("AGENT", |route| route.as_str());
        format!("{CLASSIFY}, {ROUTE}, ask:1:{CALLER}/{first}.1")
    };
    if matches!(at, CLASSIFY | ROUTE) {
        return Ok(());
    }
    let mut parts = at.splitn(3, ':');
    let (word, nth) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let path = parts.next().unwrap_or_default();
    let below = path.strip_prefix(CALLER).and_then(|rest| rest.strip_prefix('/'));
    let (first, rest) = match below.map(|below| below.split_once('/').unwrap_or((below, ""))) {
        Some(steps) if matches!(word, "ask" | "handoff") => steps,
        _ => return Err(format!("never reached here; use {}", examples())),
    };
    let route = first.strip_suffix(".1").map(AgentName::from);
    let route = route.filter(|name| routes.contains(&name));
    let Some(route) = route else {
        return Err(format!("never reached here: {first} is not a route; use {}", examples()));
    };
    // The agent behind the route is the outermost one of its own team or swarm.
    let inner = match (word, rest) {
        (_, "") => route.to_string(),
        ("handoff", to) if !to.contains('/') => to.to_owned(),
        (_, below) => format!("{route}/{below}"),
    };
    let team = TeamAgents { root: &route, all: agents };
    boundary::check(team, &format!("{word}:{nth}:{inner}"), &examples)
}
