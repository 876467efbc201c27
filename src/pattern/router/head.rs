//! The setup of a router, for the head of its log.

use std::sync::Arc;

use super::plan::{RouteHead, RouterPlan};
use super::spec::RouterSpec;
use crate::agents::head::agent_heads;
use crate::event::id::millis;
use crate::run::Session;

/// The setup of a run that routes the request of this session.
pub(crate) fn setup(spec: &RouterSpec, session: &Session) -> RouterPlan {
    let routes = spec.routes.iter();
    RouterPlan {
        request: Arc::clone(&session.text),
        routes: routes
            .map(|route| RouteHead { agent: route.agent.clone(), flag: route.flag.clone() })
            .collect(),
        fallback: spec.fallback.clone(),
        min_confidence: spec.min_confidence,
        agents: agent_heads(&spec.agents, spec.routes.iter().map(|it| &it.agent), session),
        max_ms: millis(spec.max_seconds),
    }
}
