//! The lines of the events of a router.

use super::decision::decision_text;
use crate::event::EventKind;
use crate::narrate::event_line::EventLine;
use crate::narrate::format;
use crate::narrate::style_role::StyleRole;
use crate::pattern::router::facts::{Classification, RouterFact};
use crate::pattern::router::projection::Router;
use crate::pattern::router::spec::boundary::CLASSIFY;

/// What the classifier says, in one line.
pub(super) fn claim_text(proposed: &Classification) -> String {
    let mut text =
        format!("{}, confidence {}", proposed.route, format::confidence(proposed.confidence));
    for score in &proposed.alternatives {
        text.push_str(&format!(", {} {}", score.route, format::confidence(score.confidence)));
    }
    format!("{text}: {}", proposed.reason)
}

/// Fills the line of such an event; leaves other events alone.
pub(super) fn fill_line<'a>(router: &'a Router, kind: &'a EventKind, line: &mut EventLine<'a>) {
    match RouterFact::of(kind) {
        Some(RouterFact::RouteProposed(proposed)) => {
            line.subject = CLASSIFY.into();
            line.text = claim_text(proposed).into();
        }
        Some(RouterFact::RouteChosen { route, fallback }) => {
            line.subject = route.as_str().into();
            line.text = decision_text(router).unwrap_or_default().into();
            line.tone = if fallback.is_some() { StyleRole::Retry } else { StyleRole::Done };
        }
        Some(RouterFact::RouteMissing { .. }) => {
            line.text = decision_text(router).unwrap_or_default().into();
            line.tone = StyleRole::Refused;
        }
        None => {}
    }
}
