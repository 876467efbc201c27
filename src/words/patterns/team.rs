//! A team or a swarm in words. What is about its agents is in [`agents`].

use super::{Closing, Narrate, PatternPane, PatternTerms, Progress, add_end, agents, end_line};
use crate::log::event::{Event, Purpose, RunClosed};
use crate::log::world::RunFold;
use crate::log::world::team::Team;
use crate::words::format;
use crate::words::measure::columns;
use crate::words::sentence::Sentence;
use crate::words::styled::{StyleRole, StyledLine, StyledPart, StyledText};
use crate::words::verdict::RunVerdict;

impl Narrate for Team {
    fn terms(&self) -> PatternTerms {
        PatternTerms { answer: "launch brief", answer_mark: "brief", has_rounds: false }
    }

    fn progress(&self, _run: &RunFold) -> Progress {
        let message = match self.plan.session.message {
            0 | 1 => String::new(),
            message => format!("message {message}   "),
        };
        let steps = |count: u64| if count == 0 { String::new() } else { count.to_string() };
        let agents = &self.agents;
        let Some(swarm) = agents.plan.outer_swarm() else {
            let consulted = agents.hop_counts.consultations;
            let text = format!("{message}{}", format::count_noun(consulted, "consultation"));
            return Progress { text: Some(text), short: steps(consulted), ..Progress::default() };
        };
        let hops = agents.roots.len();
        let used = agents.outer_swarm().map_or(0, |row| row.made());
        let limit = u64::from(swarm.max_handoffs);
        Progress {
            text: Some(format!("{message}hop {hops}")),
            short: steps(hops as u64),
            budget: (limit > 0).then_some(("handoffs", u64::from(used), limit)),
            spending: None,
        }
    }

    fn started(&self) -> (String, String) {
        let agents = format::count_noun(self.agents.assignable_agents().count() as u64, "agent");
        (agents, format!("message {}", self.plan.session.message))
    }

    fn tell<'w>(&'w self, event: &'w Event, run: &'w RunFold, it: &mut Sentence<'w>) {
        agents::fill(it, event, run);
    }

    fn call_fields(&self, purpose: &Purpose, _of_event: bool, to: &mut StyledText) {
        agents::add_call(purpose, to);
    }

    fn event_fields(&self, event: &Event, _run: &RunFold, to: &mut StyledText) {
        agents::add_event(&event.kind, to);
    }

    fn preview(&self, run: &RunFold, to: &mut StyledText) {
        add_end(run, to);
        let session = &self.plan.session;
        if session.message > 1 {
            to.paragraph(&format!("message {}", session.message), &session.text);
            if let Some(after) = &session.previous_run {
                to.item("after", StyleRole::Dim, after.as_str());
            }
        }
        let agents = self.agents.assignable_agents();
        to.list(
            "agents",
            agents.map(|row| {
                format!("{} {}", row.name, format::count_noun(row.turns.into(), "turn"))
            }),
        );
    }

    fn result(&self, run: &RunFold) -> StyledLine {
        let Some(closed) = &run.progress.closed else { return StyledLine::default() };
        let line = end_line(run, closed);
        match agents::answerer(&self.agents) {
            Some(by) => line.with(StyledPart::new(StyleRole::Text, format!(", {by}"))),
            None => line,
        }
    }

    fn verdict(&self, run: &RunFold, closed: &RunClosed) -> RunVerdict {
        let mut verdict = RunVerdict::of(run, closed);
        if let Some(by) = agents::answerer(&self.agents).filter(|_| closed.reason.is_success()) {
            verdict.word = "answered".into();
            verdict.facts.push(format!("by {by}"));
        }
        verdict.facts.extend(self.reached());
        verdict
    }

    fn transcript(&self, event: &Event, run: &RunFold) -> Vec<StyledLine> {
        agents::transcript(&self.agents, event, run)
    }

    fn totals(&self) -> Vec<StyledPart> {
        vec![StyledPart::plain(agents::totals(&self.agents))]
    }

    fn closing(&self) -> Closing {
        Closing { answer: None, table: agents::turns(&self.agents) }
    }

    fn markdown(&self, out: &mut String) {
        agents::add_hops(&self.agents, out);
    }

    fn rows(&self, pane: PatternPane, run: &RunFold) -> Option<Vec<String>> {
        match pane {
            PatternPane::First => Some(agents::hop_rows(&self.agents, run)),
            PatternPane::Second => Some(agents::agent_rows(&self.agents)),
            PatternPane::Third | PatternPane::Fourth => None,
        }
    }

    fn longest_subject(&self, _run: &RunFold) -> usize {
        let agents = self.plan.agents.iter().take(64);
        agents.map(|agent| columns(agent.name.as_str())).max().unwrap_or(0)
    }
}
