//! A router in words: sentences for its events, why a request took its route, the
//! effect of a flag, routes as Markdown.

use std::fmt::Write as _;

use super::agents::add_hops;
use super::{Closing, Narrate, PatternPane, PatternTerms, Progress, add_end, agents, end_line};
use crate::base::name::{AgentName, FlagName};
use crate::log::event::{Event, Purpose, RunClosed};
use crate::log::facts::router::{Classification, FallbackCause, RouterFact};
use crate::log::world::router::{RouteChoice, Router, choose_route};
use crate::log::world::{RunFold, RunState};
use crate::scenario::patterns::router::CLASSIFY;
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::markdown::table_cell;
use crate::words::measure::columns;
use crate::words::sentence::{Sentence, round_and_purpose};
use crate::words::styled::{StyleRole, StyledLine, StyledPart, StyledText};
use crate::words::verdict::RunVerdict;

impl Narrate for Router {
    fn terms(&self) -> PatternTerms {
        PatternTerms { answer: "answer", answer_mark: "answer", has_rounds: false }
    }

    fn progress(&self, _run: &RunFold) -> Progress {
        let text = match (&self.chosen, self.classify) {
            (Some(Ok(choice)), _) => {
                let consulted = self.agents.hop_counts.consultations;
                let consulted = match consulted {
                    0 => String::new(),
                    count => format!(", {}", format::count_noun(count, "consultation")),
                };
                format!("route {}{consulted}", choice.route)
            }
            (Some(Err(_)), _) => "no route".to_owned(),
            (None, Some(_)) => match &self.proposed {
                Some(proposed) => format!("{} proposed", proposed.route),
                None => "classifying".to_owned(),
            },
            (None, None) => String::new(),
        };
        Progress { text: (!text.is_empty()).then_some(text), ..Progress::default() }
    }

    fn started(&self) -> (String, String) {
        let routes = format::count_noun(self.plan.routes.len() as u64, "route");
        let least = format::confidence(self.plan.min_confidence);
        (routes, format!("min confidence {least}"))
    }

    fn tell<'w>(&'w self, event: &'w Event, run: &'w RunFold, it: &mut Sentence<'w>) {
        match RouterFact::of(&event.kind) {
            Some(RouterFact::RouteProposed(proposed)) => {
                it.set(StyleRole::Text, claim_text(proposed))
                    .about(CLASSIFY)
                    .with_detail(&*proposed.reason)
                    .as_sign(Glyph::Dot, "says");
            }
            Some(RouterFact::RouteChosen { route, fallback }) => {
                match fallback {
                    None => it.set(StyleRole::Done, "as proposed").as_sign(Glyph::Arrow, "route"),
                    Some(cause) => it
                        .set(StyleRole::Retry, format!("fallback: {}", cause_text(self, *cause)))
                        .as_sign(Glyph::Alert, "route"),
                }
                .about(route.as_str());
            }
            Some(RouterFact::RouteMissing { .. }) => {
                it.set(StyleRole::Refused, decision_text(self).unwrap_or_default())
                    .as_sign(Glyph::Refused, "refused");
            }
            None => agents::fill(it, event, run),
        }
    }

    fn call_fields(&self, purpose: &Purpose, _of_event: bool, to: &mut StyledText) {
        match purpose {
            Purpose::Classify => to.field("purpose", CLASSIFY),
            other => agents::add_call(other, to),
        }
    }

    fn event_fields(&self, event: &Event, _run: &RunFold, to: &mut StyledText) {
        match RouterFact::of(&event.kind) {
            Some(RouterFact::RouteProposed(proposed)) => {
                to.field("route", proposed.route.as_str());
                to.field("confidence", format::confidence(proposed.confidence));
                to.field("reason", &*proposed.reason);
                for score in &proposed.alternatives {
                    let claim = format::confidence(score.confidence);
                    to.field("alternative", format!("{} {claim}", score.route));
                }
            }
            Some(RouterFact::RouteChosen { route, fallback }) => {
                to.field("route", route.as_str());
                if let Some(cause) = fallback {
                    to.field("fallback", cause_text(self, *cause));
                }
            }
            Some(RouterFact::RouteMissing { .. }) => {
                to.field("decision", decision_text(self).unwrap_or_default());
            }
            None => agents::add_event(&event.kind, to),
        }
    }

    fn preview(&self, run: &RunFold, to: &mut StyledText) {
        add_end(run, to);
        if let Some(proposed) = &self.proposed {
            let claim = format::confidence(proposed.confidence);
            to.item("proposed", StyleRole::Text, format!("{} {claim}", proposed.route));
        }
        if let Some(decision) = decision_text(self) {
            to.item("route", StyleRole::Text, decision);
        }
        let agents = self.agents.assignable_agents().filter(|row| row.turns > 0);
        let turns = agents
            .map(|row| format!("{} {}", row.name, format::count_noun(row.turns.into(), "turn")));
        to.list("agents", turns);
    }

    fn result(&self, run: &RunFold) -> StyledLine {
        let Some(closed) = &run.progress.closed else { return StyledLine::default() };
        let line = end_line(run, closed);
        match self.route() {
            Some(choice) => {
                let role =
                    if choice.fallback.is_some() { StyleRole::Retry } else { StyleRole::Text };
                line.with(StyledPart::new(role, format!(", {}", choice.route)))
            }
            None => line,
        }
    }

    fn verdict(&self, run: &RunFold, closed: &RunClosed) -> RunVerdict {
        let mut verdict = RunVerdict::of(run, closed);
        if let Some(choice) = self.route() {
            if closed.reason.is_success() {
                verdict.word = "answered".into();
            }
            verdict.facts.push(format!("routed to {}", choice.route));
        }
        verdict
    }

    fn transcript(&self, event: &Event, run: &RunFold) -> Vec<StyledLine> {
        agents::transcript(&self.agents, event, run)
    }

    fn full_subject(&self, event: &Event, run: &RunFold) -> Option<String> {
        let (_, purpose) = round_and_purpose(event.span, run);
        (purpose == Some(&Purpose::Classify)).then(|| "classifier".to_owned())
    }

    fn totals(&self) -> Vec<StyledPart> {
        let route = self.route().map(|it| format!("  route {}", it.route)).unwrap_or_default();
        vec![StyledPart::plain(route + &agents::totals(&self.agents))]
    }

    fn closing(&self) -> Closing {
        Closing { answer: None, table: agents::turns(&self.agents) }
    }

    fn markdown(&self, out: &mut String) {
        add_routes(self, out);
    }

    fn if_flag(&self, flag: &FlagName, on: bool, run: &RunFold) -> Vec<String> {
        effects(self, flag, on, run)
    }

    fn rows(&self, pane: PatternPane, run: &RunFold) -> Option<Vec<String>> {
        (pane == PatternPane::First).then(|| route_rows(self, run))
    }

    fn items(&self) -> Option<Vec<String>> {
        Some(self.plan.routes.iter().map(|route| route.agent.to_string()).collect())
    }

    fn longest_subject(&self, _run: &RunFold) -> usize {
        let agents = self.plan.agents.iter().take(64).map(|agent| columns(agent.name.as_str()));
        agents.chain([columns(CLASSIFY)]).max().unwrap_or(0)
    }
}

/// What the classifier proposes, without its reason.
fn claim_text(proposed: &Classification) -> String {
    let mut text =
        format!("{}, confidence {}", proposed.route, format::confidence(proposed.confidence));
    for score in &proposed.alternatives {
        text.push_str(&format!(", {} {}", score.route, format::confidence(score.confidence)));
    }
    text
}

/// The confidence that is claimed and the one that is needed. They are written out where two
/// decimals would make them look equal.
pub(crate) fn confidence_compared(router: &Router) -> Option<(String, String)> {
    let (claimed, least) = (router.proposed.as_ref()?.confidence, router.plan.min_confidence);
    let short = (format::confidence(claimed), format::confidence(least));
    let equal = short.0 == short.1 && claimed != least;
    Some(if equal { (claimed.to_string(), least.to_string()) } else { short })
}

/// Why the classifier's route is not taken.
fn cause_text(router: &Router, cause: FallbackCause) -> String {
    let Some(proposed) = &router.proposed else { return String::new() };
    match cause {
        FallbackCause::RouteOff => format!("{} is off", proposed.route),
        FallbackCause::LowConfidence => {
            let (claimed, least) = confidence_compared(router).unwrap_or_default();
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
pub(crate) fn route_state(router: &Router, route: &AgentName, run: &RunFold) -> String {
    let proposed = router.proposed.as_ref().is_some_and(|it| it.route == *route);
    let off = router.flag_off(route, run);
    match (router.chosen.as_ref(), off) {
        (Some(Ok(choice)), _) if choice.route == *route => match choice.fallback {
            Some(_) => "chosen as the fallback".to_owned(),
            None => "chosen".to_owned(),
        },
        (Some(_), _) if proposed => match router.cause() {
            Some(FallbackCause::LowConfidence) => {
                format!("proposed, below {}", confidence_compared(router).unwrap_or_default().1)
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

/// The effects of switching `flag` to `on` now, one per line: flags are read when the route is
/// chosen.
pub(crate) fn effects(router: &Router, flag: &FlagName, on: bool, run: &RunFold) -> Vec<String> {
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

/// The routes, a line for each.
fn route_rows(router: &Router, run: &RunFold) -> Vec<String> {
    let routes = router.plan.routes.iter();
    routes
        .map(|route| {
            let claimed = router.proposed.as_ref().and_then(|it| it.confidence_in(&route.agent));
            let claimed = claimed.map(|it| format!("confidence {it} claimed"));
            let state = route_state(router, &route.agent, run);
            let parts: Vec<String> =
                claimed.into_iter().chain((!state.is_empty()).then(|| state.to_string())).collect();
            match parts.is_empty() {
                true => format!("{}: no claim", route.agent),
                false => format!("{}: {}", route.agent, parts.join(", ")),
            }
        })
        .collect()
}

/// Adds the routes with the confidence that the classifier claims, the decision, and what the agents did.
fn add_routes(router: &Router, out: &mut String) {
    let _ = writeln!(out, "\n## Routes\n\n| route | confidence | |");
    let _ = writeln!(out, "| --- | --- | --- |");
    let chosen = router.route().map(|choice| &choice.route);
    for route in &router.plan.routes {
        let claimed = router.proposed.as_ref().and_then(|it| it.confidence_in(&route.agent));
        let claimed = claimed.map_or_else(String::new, format::confidence);
        let mark = if chosen == Some(&route.agent) { "chosen" } else { "" };
        let _ = writeln!(out, "| {} | {claimed} | {mark} |", route.agent);
    }
    if let Some(proposed) = &router.proposed {
        let _ = writeln!(out, "\nThe classifier's reason: {}", table_cell(&proposed.reason));
    }
    if let Some(decision) = decision_text(router) {
        let _ = writeln!(out, "\nDecision: {decision}.");
    }
    add_hops(&router.agents, out);
}
