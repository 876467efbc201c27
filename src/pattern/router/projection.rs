//! Projection of a router: what the classifier says, the route, and the agents behind it.

use std::sync::Arc;

use super::facts::{Classification, FallbackCause, RouterFact};
use super::plan::RouterPlan;
use super::policy::RouteChoice;
use super::spec::boundary::{CLASSIFY, ROUTE};
use crate::agents::projection::AgentsFold;
use crate::base::name::{AgentName, FlagName};
use crate::event::kind::Purpose;
use crate::event::world::outcome::OutcomeFields;
use crate::event::world::{EventLog, MarkKind, Projection, RunFold};
use crate::event::{Boundary, BoundaryId, Event, EventKind, Seq, SpanId};

/// State of a run of a router.
#[derive(Clone, Debug)]
pub struct Router {
    /// The setup of the run.
    pub plan: Arc<RouterPlan>,
    /// The agents.
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
        self.agents.fold(event, &run.spans, run.progress.pauses());
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
