//! The effect of a flag change in a router, shown before it is made.

use crate::base::name::FlagName;
use crate::event::world::{RunFold, RunState};
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
    let names = routes.join(", ");
    if on {
        lines.push(format!("{names} can be chosen again."));
        return lines;
    }
    let fallback = router.plan.fallback.as_ref();
    lines.push(match fallback {
        Some(route) if routes.contains(&route.as_str()) => {
            format!("{names} could not be chosen, and the fallback would be off.")
        }
        Some(route) => format!("{names} could not be chosen: {route} would answer instead."),
        None => format!("{names} could not be chosen: the run would stop with no_route."),
    });
    lines
}
