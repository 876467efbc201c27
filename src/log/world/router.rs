//! Projection of a router: what the classifier says, the route, and the agents behind it.
//!
//! The fields of a router's outcome (docs/rules/patterns.md, "Router").

use std::sync::Arc;

use serde_json::Value;

use super::agents::AgentsFold;
use super::outcome::{OutcomeFields, to_value};
use super::{EventLog, MarkKind, Projection, RunFold};
use crate::base::name::{AgentName, FlagName};
use crate::log::event::{Boundary, BoundaryId, Event, EventKind, Purpose, Seq, SpanId};
use crate::log::facts::router::{Classification, FallbackCause, RouterFact, RouterPlan};
use crate::scenario::patterns::router::{CLASSIFY, ROUTE};

/// State of a run of a router.
#[derive(Clone, Debug)]
pub struct Router {
    pub plan: Arc<RouterPlan>,
    pub agents: AgentsFold,
    /// The last call of the classifier.
    pub classify: Option<SpanId>,
    /// What is wrong with its last refused reply.
    pub refused: Option<Box<str>>,
    /// What it says.
    pub proposed: Option<Arc<Classification>>,
    /// The route that the request takes, or why there is none.
    pub chosen: Option<Result<RouteChoice, FallbackCause>>,
}

impl Router {
    /// The state at the start of a run.
    pub fn new(plan: Arc<RouterPlan>) -> Self {
        Self {
            agents: AgentsFold::new(plan.agents_plan(), &plan.request),
            plan,
            classify: None,
            refused: None,
            proposed: None,
            chosen: None,
        }
    }

    /// The route that the request takes.
    pub fn route(&self) -> Option<&RouteChoice> {
        self.chosen.as_ref()?.as_ref().ok()
    }

    /// Why the classifier's route is not taken; `None`: it is, or nothing is decided yet.
    pub fn cause(&self) -> Option<FallbackCause> {
        match self.chosen.as_ref()? {
            Ok(choice) => choice.fallback,
            Err(cause) => Some(*cause),
        }
    }

    /// The routes whose flag is not off: the execution list.
    pub fn execution_list(&self, run: &RunFold) -> Vec<AgentName> {
        let names = self.plan.routes.iter().map(|route| &route.agent);
        names.filter(|name| self.flag_off(name, run).is_none()).cloned().collect()
    }

    /// The flag that has taken a route off the execution list, if it is off.
    pub fn flag_off<'p>(&'p self, route: &AgentName, run: &RunFold) -> Option<&'p FlagName> {
        let flag = self.plan.route(route)?.flag.as_ref()?;
        run.settings.flags.iter().any(|row| row.name == *flag && !row.on).then_some(flag)
    }
}

impl Projection for Router {
    fn apply(&mut self, event: &Event, run: &RunFold) {
        self.agents.fold(event, run);
        match &event.kind {
            EventKind::CallStarted(call) if call.purpose == Purpose::Classify => {
                self.classify = Some(event.span);
            }
            EventKind::ReplyRefused(refused) if self.classify == Some(event.span) => {
                self.refused = Some(refused.detail.clone());
            }
            kind => match RouterFact::of(kind) {
                Some(RouterFact::RouteProposed(proposed)) => {
                    self.proposed = Some(Arc::clone(proposed));
                    self.refused = None;
                }
                Some(RouterFact::RouteChosen { route, fallback }) => {
                    let choice = RouteChoice { route: route.clone(), fallback: *fallback };
                    self.chosen = Some(Ok(choice));
                }
                Some(RouterFact::RouteMissing { cause }) => self.chosen = Some(Err(*cause)),
                None => {}
            },
        }
    }

    fn outcome(&self, run: &RunFold, fields: &mut OutcomeFields) {
        self.outcome_fields(run, fields);
    }

    fn is_degraded(&self) -> bool {
        self.agents.is_degraded()
    }

    fn mark(&self, event: &Event) -> Option<MarkKind> {
        match RouterFact::of(&event.kind) {
            Some(RouterFact::RouteMissing { .. }) => Some(MarkKind::Refused),
            Some(_) => None,
            None => self.agents.mark(event),
        }
    }

    fn call_of(&self, event: &Event, _run: &RunFold) -> Option<SpanId> {
        match RouterFact::of(&event.kind) {
            Some(_) => self.classify,
            None => self.agents.call_of(event),
        }
    }

    fn cause_of(&self, event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
        match RouterFact::of(&event.kind) {
            Some(RouterFact::RouteProposed(_)) => run.spans.closed_by(event.span),
            Some(RouterFact::RouteChosen { .. } | RouterFact::RouteMissing { .. }) => log
                .last_before(event.seq, &|it| {
                    matches!(RouterFact::of(&it.kind), Some(RouterFact::RouteProposed(_)))
                }),
            None if is_routed(event) => log.last_before(event.seq, &|it| {
                matches!(RouterFact::of(&it.kind), Some(RouterFact::RouteChosen { .. }))
            }),
            None => self.agents.cause_of(event, run, log),
        }
    }

    fn next_breakpoint(&self, _run: &RunFold) -> Result<BoundaryId, &'static str> {
        match (self.classify, &self.chosen) {
            (None, None) => Ok(Boundary::Step(CLASSIFY).id()),
            (Some(_), None) => Ok(Boundary::Step(ROUTE).id()),
            (_, Some(_)) => Err("No breakpoint here: the next agent is not known yet."),
        }
    }

    fn agents(&self) -> Option<&AgentsFold> {
        Some(&self.agents)
    }
}

/// Whether the event starts the call of the agent behind the route.
fn is_routed(event: &Event) -> bool {
    matches!(
        &event.kind,
        EventKind::CallStarted(call)
            if call.parent == SpanId::RUN && matches!(call.purpose, Purpose::Member { .. })
    )
}

impl Router {
    /// Adds the fields of the steps that the run reached.
    pub(super) fn outcome_fields(&self, run: &RunFold, fields: &mut OutcomeFields) {
        let mut add = |name: &'static str, value: Value| fields.add(name, &value);
        if let Some(choice) = self.route() {
            add("route", to_value(&choice.route));
        }
        if let Some(proposed) = &self.proposed {
            add("proposed_route", to_value(&proposed.route));
            add("confidence", proposed.confidence.into());
            add("reason", (*proposed.reason).into());
            add("alternatives", to_value(&proposed.alternatives));
        }
        if let Some(chosen) = &self.chosen {
            add("fallback_used", chosen.as_ref().is_ok_and(|it| it.fallback.is_some()).into());
            if let Some(cause) = self.cause() {
                add("fallback_cause", to_value(&cause));
            }
        }
        if run.progress.closed.as_ref().is_some_and(|closed| closed.reason.is_success()) {
            add("answer", run.progress.answer.as_deref().map_or(Value::Null, Value::from));
            add("final_agent", to_value(&self.agents.answered_by));
            if !self.agents.written_calls.is_empty() {
                add("written_calls", self.agents.written_call_rows());
            }
        }
    }
}

/// The route that a request takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteChoice {
    pub route: AgentName,
    /// Why it is the fallback; `None` if it is the route of the classifier.
    pub fallback: Option<FallbackCause>,
}

/// Chooses the route: that of the classifier if it is on the execution list and its confidence is at
/// least `min_confidence`, else the fallback, if it is on the execution list.
///
/// # Errors
/// Why the classifier's route is not taken, if there is no fallback either.
pub fn choose_route(
    proposed: &Classification,
    execution_list: &[AgentName],
    min_confidence: f64,
    fallback: Option<&AgentName>,
) -> Result<RouteChoice, FallbackCause> {
    let cause = if !execution_list.contains(&proposed.route) {
        FallbackCause::RouteOff
    } else if proposed.confidence < min_confidence {
        FallbackCause::LowConfidence
    } else {
        return Ok(RouteChoice { route: proposed.route.clone(), fallback: None });
    };
    match fallback.filter(|route| execution_list.contains(route)) {
        Some(route) => Ok(RouteChoice { route: route.clone(), fallback: Some(cause) }),
        None => Err(cause),
    }
}
