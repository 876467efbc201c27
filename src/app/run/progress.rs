//! The progress of a run in the figures of its pattern: for the header and the list of runs.

use super::RunPage;
use crate::agents::projection::HopKind;
use crate::event::World;
use crate::event::world::SpendingUsed;
use crate::narrate::format;

/// The progress of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Short text: `round 2/3`, `3/4 tasks`.
    pub text: Option<String>,
    /// The budget that the steps use up: name, used, allowed.
    pub budget: Option<(&'static str, u64, u64)>,
    /// The spending limit that is closest to being reached: text, used and allowed, in the same
    /// unit.
    pub spending: Option<(String, u64, u64)>,
}

impl RunPage {
    /// The progress in the world that is shown.
    pub fn progress(&self) -> Progress {
        Progress::from_world(self.shown())
    }
}

impl Progress {
    /// The progress in this world.
    pub fn from_world(world: &World) -> Progress {
        Progress { spending: spending(world), ..Self::pattern_progress(world) }
    }

    fn pattern_progress(world: &World) -> Progress {
        if let Some(table) = world.collaboration() {
            let plan = &*table.plan;
            let round = table.current().map_or(0, |round| round.number);
            return Progress {
                text: Some(format!("round {round}/{}", plan.max_rounds)),
                budget: Some(("msgs", table.messages.into(), plan.max_messages.into())),
                spending: None,
            };
        }
        if let Some(orchestrator) = world.orchestrator() {
            let plan = &*orchestrator.plan;
            let tasks = orchestrator.tasks.len();
            let far = (tasks > 0).then(|| format!("{}/{tasks} tasks", orchestrator.ended()));
            let dispatches = (orchestrator.dispatches.into(), plan.max_dispatches.into());
            return Progress {
                text: far,
                budget: Some(("dispatches", dispatches.0, dispatches.1)),
                ..Progress::default()
            };
        }
        if let Some(team) = world.team() {
            let plan = &*team.plan;
            let message = match plan.session.message {
                0 | 1 => String::new(),
                message => format!("message {message}   "),
            };
            let Some(swarm) = plan.swarm(&plan.root) else {
                let asked = format::count_noun(team.made(HopKind::Consult), "consultation");
                return Progress { text: Some(format!("{message}{asked}")), ..Progress::default() };
            };
            let hops = team.roots.len();
            let far = Some(format!("{message}hop {hops}"));
            let used = team.swarm(&plan.root).map_or(0, |row| row.made());
            let limit = u64::from(swarm.max_handoffs);
            let budget = (limit > 0).then_some(("handoffs", u64::from(used), limit));
            return Progress { text: far, budget, spending: None };
        }
        if let Some(research) = world.research() {
            let plan = &*research.plan;
            let pages = format!("pages {}/{}", research.pages_read(), plan.max_read_pages);
            let notes = research.notes.len() as u64;
            let budget = Some(("notes", notes, u64::from(plan.max_notes)));
            return Progress { text: Some(pages), budget, spending: None };
        }
        if let Some(it) = world.resilience() {
            let plan = &*it.plan;
            // A retry is not a further step, so calls are counted and not attempts.
            let asked: u64 = world.tools.rows().iter().map(|row| row.tally.calls).sum();
            let steps = u64::from(plan.agents)
                .saturating_mul(plan.turns.into())
                .saturating_mul(plan.steps.len() as u64);
            let far = format!("{} agents", plan.agents);
            return Progress {
                text: Some(far),
                budget: Some(("calls", asked, steps)),
                ..Progress::default()
            };
        }
        Progress::default()
    }

    /// The progress in a few columns: `2/3`.
    pub fn short(world: &World) -> String {
        match (world.collaboration(), world.orchestrator(), Self::from_world(world).budget) {
            (Some(table), ..) => {
                let number = table.current().map_or(0, |round| round.number);
                format!("{number}/{}", table.plan.max_rounds)
            }
            (_, Some(it), _) if it.tasks.is_empty() => String::new(),
            _ if world.team().is_some() => {
                let steps = world.team().map_or(0, |team| match team.plan.swarm(&team.plan.root) {
                    Some(_) => team.roots.len() as u64,
                    None => team.made(HopKind::Consult),
                });
                if steps == 0 { String::new() } else { steps.to_string() }
            }
            (_, Some(it), _) => format!("{}/{}", it.ended(), it.tasks.len()),
            _ if world.research().is_some() => world.research().map_or_else(String::new, |it| {
                format!("{}/{}", it.pages_read(), it.plan.max_read_pages)
            }),
            (_, _, Some((_, used, allowed))) if allowed > 0 => {
                format!("{} %", used.saturating_mul(100) / allowed)
            }
            _ => String::new(),
        }
    }
}

/// The spending limit that is closest to being reached.
fn spending(world: &World) -> Option<(String, u64, u64)> {
    let used = world.spending_used().into_iter();
    Some(match used.max_by(|left, right| left.share().total_cmp(&right.share()))? {
        SpendingUsed::Tokens { used, limit } => {
            (format!("tokens {}/{}", format::count(used), format::count(limit)), used, limit)
        }
        SpendingUsed::Cost { used, limit } => {
            // A bar is drawn from integers.
            let micro = |usd: f64| (usd * 1e6) as u64;
            let text = format!("cost {}/{}", format::usd(used), format::usd(limit));
            (text, micro(used), micro(limit))
        }
    })
}
