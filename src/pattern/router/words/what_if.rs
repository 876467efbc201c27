//! The effect of a flag change in a router, shown before it is made.

use crate::base::name::{AgentName, FlagName};
use crate::event::world::{RunFold, RunState};
use crate::pattern::router::facts::Classification;
use crate::pattern::router::policy::{RouteChoice, choose_route};
use crate::pattern::router::projection::Router;

/// The effects of switching `flag` to `on` now, one per line: flags are read when the route is
/// chosen.
pub(super) fn effects(router: &Router, flag: &FlagName, on: bool, run: &RunFold) -> Vec<String> {
    let routes = router.plan.routes.iter().filter(|route| route.flag.as_ref() == Some(flag));
    let routes: Vec<&str> = routes.map(|route| route.agent.as_str()).collect();
    let mut lines = vec![match &run.progress.stage {
        _ if router.chosen.is_some() && !routes.is_empty() => {
            "Too late: the route is chosen.".to_owned()
        }
        RunState::Paused { at, .. } if !at.is_empty() => {
            format!("Takes effect when the run resumes, at {}.", at[0].display_name())
        }
        _ if router.chosen.is_some() => "Takes effect at the next boundary.".to_owned(),
        _ => "Takes effect when the route is chosen.".to_owned(),
    }];
    if routes.is_empty() {
        lines.push("No route depends on it: only the script reads it.".to_owned());
        return lines;
    }
    if router.chosen.is_some() {
        return lines;
    }
    lines.push(match &router.proposed {
        Some(proposed) => after_proposal(router, proposed, &routes, on, run),
        None => before_proposal(router, &routes, on, run),
    });
    lines
}

/// The effect where the classifier has replied: the choice as policy would make it.
fn after_proposal(
    router: &Router,
    proposed: &Classification,
    routes: &[&str],
    on: bool,
    run: &RunFold,
) -> String {
    let (needed, fallback) = (router.plan.min_confidence, router.plan.fallback.as_ref());
    let now = router.execution_list(run);
    let names = router.plan.routes.iter().map(|route| &route.agent);
    let then: Vec<AgentName> = names
        .filter(|name| match routes.contains(&name.as_str()) {
            true => on,
            false => now.contains(name),
        })
        .cloned()
        .collect();
    let choose = |list: &[AgentName]| choose_route(proposed, list, needed, fallback);
    let route = |choice: RouteChoice| choice.route;
    match (choose(&now).map(route), choose(&then).map(route)) {
        (Ok(now), Ok(then)) if now == then => {
            format!("{then} would answer, as without the switch.")
        }
        (Err(_), Err(_)) => "The run would stop with no_route, as without the switch.".to_owned(),
        (_, Ok(then)) => format!("{then} would answer."),
        (_, Err(_)) => "The run would stop with no_route.".to_owned(),
    }
}

/// The effect where it is not known yet which route the classifier proposes.
fn before_proposal(router: &Router, routes: &[&str], on: bool, run: &RunFold) -> String {
    let names = routes.join(", ");
    if on {
        return format!("{names} can be chosen again.");
    }
    let fallback =
        router.plan.fallback.as_ref().filter(|name| router.flag_off(name, run).is_none());
    match fallback {
        Some(route) if routes.contains(&route.as_str()) => {
            format!("{names} could not be chosen, and the fallback would be off.")
        }
        Some(route) => format!("{names} could not be chosen: {route} would answer instead."),
        None => format!("{names} could not be chosen: the run would stop with no_route."),
    }
}
