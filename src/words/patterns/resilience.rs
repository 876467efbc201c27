//! A resilience run in words.

use super::{Narrate, PatternTerms, Progress, add_end, end_line};
use crate::log::event::{Event, EventKind, Purpose, RunClosed};
use crate::log::world::resilience::Resilience;
use crate::log::world::{Projection, RunFold};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::readable::top_text;
use crate::words::sentence::{HeadlessForm, Sentence};
use crate::words::styled::{StyleRole, StyledLine, StyledPart, StyledText};
use crate::words::verdict::RunVerdict;

/// Columns of the agent before the name of a tool.
const AGENT_COLUMNS: usize = 9;

impl Narrate for Resilience {
    fn terms(&self) -> PatternTerms {
        PatternTerms { answer: "launch brief", answer_mark: "brief", has_rounds: false }
    }

    fn progress(&self, run: &RunFold) -> Progress {
        // A retry is not a further step, so calls are counted and not attempts.
        let made: u64 = run.tools.rows().iter().map(|row| row.tally.calls).sum();
        let steps = u64::from(self.plan.agents)
            .saturating_mul(self.plan.turns.into())
            .saturating_mul(self.plan.steps.len() as u64);
        let percent = made.saturating_mul(100).checked_div(steps);
        Progress {
            text: Some(format!("{} agents", self.plan.agents)),
            short: percent.map_or_else(String::new, |percent| format!("{percent} %")),
            budget: Some(("calls", made, steps)),
            spending: None,
        }
    }

    fn started(&self) -> (String, String) {
        let how = if self.plan.guarded { "guards on" } else { "no guards" };
        let turns = format::count_noun(self.plan.turns.into(), "turn");
        (format::count_noun(self.plan.agents.into(), "agent"), format!("{turns} each, {how}"))
    }

    fn tell<'w>(&'w self, event: &'w Event, _run: &'w RunFold, it: &mut Sentence<'w>) {
        match &event.kind {
            EventKind::CallStarted(call) => {
                if let Purpose::AgentStep { repeat: repeat @ 1.., .. } = call.purpose
                    && let Some(args) = &call.args
                {
                    let args = top_text(args);
                    it.text = format!("calls {} (repeat {repeat}) with {args}", call.tool).into();
                }
            }
            // So frequent that headless text has only the totals.
            EventKind::CallRetried { .. }
            | EventKind::RetryRefused { .. }
            | EventKind::CallFailed { .. }
            | EventKind::CallDegraded { .. } => it.headless = HeadlessForm::Hidden,
            _ => {}
        }
    }

    fn call_fields(&self, purpose: &Purpose, _of_event: bool, to: &mut StyledText) {
        if let Purpose::AgentStep { agent, turn, repeat, .. } = purpose {
            to.field("agent", agent.to_string());
            if let Some(tool) = self.tool_of(purpose) {
                to.field("tool", tool);
            }
            to.field("turn", turn.to_string());
            if *repeat > 0 {
                to.field("repeat", repeat.to_string());
            }
        }
    }

    fn preview(&self, run: &RunFold, to: &mut StyledText) {
        add_end(run, to);
    }

    fn result(&self, run: &RunFold) -> StyledLine {
        let Some(closed) = &run.progress.closed else { return StyledLine::default() };
        let line = end_line(run, closed);
        match run.tools.amplification() {
            Some(factor) => {
                let factor = format!(", {}", format::requests_a_call(factor));
                line.with(StyledPart::new(StyleRole::Text, factor))
            }
            None => line,
        }
    }

    fn verdict(&self, run: &RunFold, closed: &RunClosed) -> RunVerdict {
        let mut verdict = RunVerdict::of(run, closed);
        let (calls, degraded) = (run.tally.calls, run.tally.degraded);
        if degraded == 0 || !closed.reason.is_success() {
            verdict.facts.push(format::count_noun(calls, "call"));
        } else {
            verdict.facts.push(format!("{degraded} of {calls} calls from fallback"));
            (verdict.glyph, verdict.role) = (Glyph::Alert, StyleRole::Retry);
        }
        let opened = run.tools.rows().iter().filter(|tool| tool.tally.openings > 0);
        verdict.facts.extend(opened.map(|tool| {
            format!("{} opened {}", tool.name(), format::count_noun(tool.tally.openings, "time"))
        }));
        if let Some(factor) = run.tools.amplification() {
            verdict.facts.push(format::requests_a_call(factor));
        }
        verdict
    }

    fn longest_subject(&self, run: &RunFold) -> usize {
        let tools = run.tools.rows().iter().map(|tool| columns(tool.name().as_str()));
        tools.max().unwrap_or(0) + AGENT_COLUMNS
    }
}
