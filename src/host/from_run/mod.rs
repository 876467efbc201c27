//! A scenario from a run (`roundtable new --from-run`): it plays what was said in that run, without a model
//! and without the tools that were asked. Exact for our own runs; of a run of another program as far as its
//! spans tell it. What is not known is a comment.

mod calls;
mod course;
mod fixtures;
mod observed;
mod own;
mod values;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::refused::Refused;
use crate::log::event::{Event, EventKind, ModelLabel, World};
use crate::scenario;
use crate::scenario::{ScenarioOrigin, Severity};

/// The name of a scenario that was made from a run: no name of the run comes into a path.
pub const NAME: &str = "from-run";

/// Most comments about what is not known.
const MAX_LEFT: usize = 50;

/// The text of a scenario that plays what was said in the run with these events.
///
/// # Errors
/// The log has no head or holes, its texts are redacted, or no scenario says it.
pub fn scenario_of_run(events: &[Arc<Event>]) -> Result<String, Refused> {
    let world = World::from_events(events.iter().map(|event| &**event));
    let Some(head) = world.head.clone() else {
        return Err(Refused::new("the log has no head"));
    };
    let refused = |why: &str| Refused::new(format!("{} gives no scenario", head.run)).because(why);
    if head.redacted {
        let why = refused("the texts of its log are redacted");
        return Err(why.help("take the log from where the run was played"));
    }
    let has_hole = |pair: &[Arc<Event>]| pair[1].seq.0 != pair[0].seq.0 + 1;
    let dropped = events.iter().any(|it| matches!(it.kind, EventKind::EventsDropped { .. }));
    if dropped || events.windows(2).any(has_hole) || events.first().is_some_and(|it| it.seq.0 > 0) {
        let why = refused("events are missing in its log");
        return Err(why.help("take a run whose whole log is kept (`roundtable runs`)"));
    }
    let (text, mut left) = match (&head.model, &head.launch) {
        (ModelLabel::Observed { .. }, _) => observed::scenario_of(&head, &world)?,
        (_, None) => return Err(refused("its log does not have the text of its scenario")),
        (_, Some(record)) => own::scenario_of(&head, record, events, &world)?,
    };
    if world.progress.closed.is_none() {
        left.insert(0, "the log has no end: what the run would have done next is not known".into());
    }
    let text = with_head(&head.scenario.to_string(), &head.run.to_string(), &left, &text);
    let origin = ScenarioOrigin::File(format!("{NAME}.toml").into());
    let problems = scenario::check(&text, origin, &[]).problems;
    match problems.iter().find(|it| it.severity == Severity::Error) {
        Some(first) => Err(refused(&problems.line(first))),
        None => Ok(text),
    }
}

/// The text with comments before it: what it is, and what it does not say.
fn with_head(scenario: &str, run: &str, left: &[String], text: &str) -> String {
    let (scenario, run) = (values::comment(scenario), values::comment(run));
    let mut whole = format!("# What was said in {run}, a run of {scenario}.\n");
    let mut told = BTreeSet::new();
    for what in left.iter().filter(|what| told.insert(what.as_str())).take(MAX_LEFT) {
        whole.push_str(&format!("# TODO: {}.\n", values::comment(what)));
    }
    whole.push('\n');
    whole.push_str(text);
    whole
}
