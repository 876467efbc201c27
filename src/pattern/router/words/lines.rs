//! Lines of headless text about a router: the claim of the classifier and the decision, then what
//! the agents do.

use super::decision::decision_text;
use super::event_line::claim_text;
use crate::agents::words::lines as agent_lines;
use crate::base::visible::visible_within;
use crate::event::Event;
use crate::event::world::RunFold;
use crate::narrate::glyph::Glyph;
use crate::narrate::line_parts::{signed, with_model};
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::StyledLine;
use crate::pattern::router::facts::RouterFact;
use crate::pattern::router::projection::Router;
use crate::scenario::spec::script::ScriptStep;

/// Length limit of what the classifier says, in characters.
const CLAIM_CHARS: usize = 300;

/// The lines of an event; `None` if another module may show it.
pub(super) fn lines(router: &Router, event: &Event, run: &RunFold) -> Option<Vec<StyledLine>> {
    let decision = || decision_text(router).unwrap_or_default();
    let line = |glyph, word, role, text: String| Some(vec![signed(glyph, word, role).then(text)]);
    match RouterFact::of(&event.kind) {
        Some(RouterFact::RouteProposed(proposed)) => {
            let model = run.models.for_step(ScriptStep::Classify);
            let who = with_model("classifier".to_owned(), model);
            let claim = visible_within(&claim_text(proposed), CLAIM_CHARS);
            line(Glyph::Dot, "says", StyleRole::Text, format!("  {who}  {claim}"))
        }
        Some(RouterFact::RouteChosen { fallback: None, .. }) => {
            line(Glyph::Arrow, "route", StyleRole::Done, format!("  {}", decision()))
        }
        Some(RouterFact::RouteChosen { .. }) => {
            line(Glyph::Alert, "route", StyleRole::Retry, format!("  {}", decision()))
        }
        Some(RouterFact::RouteMissing { .. }) => {
            line(Glyph::Refused, "refused", StyleRole::Refused, format!("  {}", decision()))
        }
        None => agent_lines::lines(&router.agents, router, event, run),
    }
}
