//! The rounds of a collaboration as Markdown.

use std::fmt::Write as _;

use super::phrases::{conflict_names, decision_or_next};
use crate::pattern::collaboration::plan::CollaborationPlan;
use crate::pattern::collaboration::projection::{Collaboration, Round};

/// Adds the decision and the rounds.
pub(super) fn add_rounds(table: &Collaboration, out: &mut String) {
    if let Some(decision) = table.decision() {
        let _ = writeln!(out, "Decision: **{}**.", decision.phrase());
    }
    for round in &table.rounds {
        add_round(&table.plan, round, out);
    }
}

fn add_round(plan: &CollaborationPlan, round: &Round, out: &mut String) {
    let _ = writeln!(out, "\n## Round {}\n", round.number);
    let _ = writeln!(out, "| seat | stance | confidence | summary |\n| --- | --- | --- | --- |");
    for said in round.contributions() {
        let summary = said.summary.replace('|', "\\|").replace(['\n', '\r'], " ");
        let _ =
            writeln!(out, "| {} | {} | {} | {summary} |", said.agent, said.stance, said.confidence);
    }
    if round.closed.is_some() {
        let next = decision_or_next(plan, round.number, round.decision, round.decided_by.as_ref());
        let _ = writeln!(out, "\n{}: {next}.", conflict_names(&round.conflicts));
    }
}
