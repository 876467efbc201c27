//! What a router says about its runs.

use super::decision::{cause_text, decision_text};
use super::{event_line, lines, markdown, what_if};
use crate::agents::words::{event_line as agent_event_line, fields, lines as agent_lines};
use crate::base::name::FlagName;
use crate::event::Event;
use crate::event::kind::{Purpose, RunClosed};
use crate::event::world::RunFold;
use crate::narrate::event_line::EventLine;
use crate::narrate::format;
use crate::narrate::measure::columns;
use crate::narrate::pattern_words::{Closing, Narrate, PatternTerms};
use crate::narrate::preview::{add_end, end_line};
use crate::narrate::progress::Progress;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::{StyledLine, StyledPart, StyledText};
use crate::narrate::verdict::RunVerdict;
use crate::pattern::router::facts::RouterFact;
use crate::pattern::router::projection::Router;
use crate::pattern::router::spec::boundary::CLASSIFY;

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

    fn tell<'w>(&'w self, event: &'w Event, _run: &'w RunFold, line: &mut EventLine<'w>) {
        match RouterFact::of(&event.kind) {
            Some(_) => event_line::fill_line(self, &event.kind, line),
            None => agent_event_line::fill_line(line, &event.kind),
        }
    }

    fn call_fields(&self, purpose: &Purpose, _of_event: bool, to: &mut StyledText) {
        match purpose {
            Purpose::Classify => to.field("purpose", CLASSIFY),
            other => fields::add_call(other, to),
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
            None => fields::add_event(&event.kind, to),
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

    fn lines(&self, event: &Event, run: &RunFold) -> Option<Vec<StyledLine>> {
        lines::lines(self, event, run)
    }

    fn caller_name(&self, purpose: &Purpose) -> Option<String> {
        (*purpose == Purpose::Classify).then(|| "classifier".to_owned())
    }

    fn totals(&self) -> Vec<StyledPart> {
        let route = self.route().map(|it| format!("  route {}", it.route)).unwrap_or_default();
        vec![StyledPart::plain(route + &agent_lines::totals(&self.agents))]
    }

    fn closing(&self) -> Closing {
        Closing { answer: None, table: agent_lines::turns(&self.agents) }
    }

    fn markdown(&self, out: &mut String) {
        markdown::add_routes(self, out);
    }

    fn if_flag(&self, flag: &FlagName, on: bool, run: &RunFold) -> Vec<String> {
        what_if::effects(self, flag, on, run)
    }

    fn longest_subject(&self, _run: &RunFold) -> usize {
        let agents = self.plan.agents.iter().take(64).map(|agent| columns(agent.name.as_str()));
        agents.chain([columns(CLASSIFY)]).max().unwrap_or(0)
    }
}
