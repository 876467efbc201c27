//! Why a request took its route, in words.

use crate::base::name::AgentName;
use crate::event::world::RunFold;
use crate::narrate::format;
use crate::pattern::router::facts::FallbackCause;
use crate::pattern::router::projection::Router;

/// The confidence that is claimed and the one that is needed. They are written out where two
/// decimals would make them look equal.
pub(crate) fn compared(router: &Router) -> Option<(String, String)> {
    let (claimed, least) = (router.proposed.as_ref()?.confidence, router.plan.min_confidence);
    let short = (format::confidence(claimed), format::confidence(least));
    let equal = short.0 == short.1 && claimed != least;
    Some(if equal { (claimed.to_string(), least.to_string()) } else { short })
}

/// Why the classifier's route is not taken.
pub(crate) fn cause_text(router: &Router, cause: FallbackCause) -> String {
    let Some(proposed) = &router.proposed else { return String::new() };
    match cause {
        FallbackCause::RouteOff => format!("{} is off", proposed.route),
        FallbackCause::LowConfidence => {
            let (claimed, least) = compared(router).unwrap_or_default();
            format!("the confidence {claimed} is below {least}")
        }
    }
}

/// Why the fallback cannot be taken either.
pub(crate) fn no_fallback_text(router: &Router) -> String {
    match &router.plan.fallback {
        None => "there is no fallback".to_owned(),
        Some(route) => format!("the fallback {route} is off"),
    }
}

/// The decision with its reason; `None` before there is one.
pub(crate) fn decision_text(router: &Router) -> Option<String> {
    Some(match router.chosen.as_ref()? {
        Ok(choice) => match choice.fallback {
            None => format!("{}, as proposed", choice.route),
            Some(cause) => {
                format!("fallback {}: {}", choice.route, cause_text(router, cause))
            }
        },
        Err(cause) => {
            format!("no route: {}, and {}", cause_text(router, *cause), no_fallback_text(router))
        }
    })
}

/// What a route is to the run, in a few words: chosen, proposed, off. Empty for all other routes.
pub(crate) fn standing(router: &Router, route: &AgentName, run: &RunFold) -> String {
    let proposed = router.proposed.as_ref().is_some_and(|it| it.route == *route);
    let off = router.flag_off(route, run);
    match (router.chosen.as_ref(), off) {
        (Some(Ok(choice)), _) if choice.route == *route => match choice.fallback {
            Some(_) => "chosen as the fallback".to_owned(),
            None => "chosen".to_owned(),
        },
        (Some(_), _) if proposed => match router.cause() {
            Some(FallbackCause::LowConfidence) => {
                format!("proposed, below {}", compared(router).unwrap_or_default().1)
            }
            Some(FallbackCause::RouteOff) | None => "proposed, but off".to_owned(),
        },
        (None, Some(flag)) if proposed => format!("proposed, but {flag} is off"),
        (_, Some(flag)) => format!("off: flag {flag}"),
        (None, None) if proposed => "proposed".to_owned(),
        (_, None) if router.plan.fallback.as_ref() == Some(route) => "fallback".to_owned(),
        (_, None) => String::new(),
    }
}
