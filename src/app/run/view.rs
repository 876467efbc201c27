//! What a page shows of its run: each pattern has its own view, and the view of the tools can be
//! opened over any of them. All views use the same five panes.

use ratatui::layout::Rect;

use super::RunPage;
use super::layout::{self, Areas, LayoutInput, Pane};
use crate::app::layout::Size;
use crate::event::kind::CollaborationPlan;
use crate::event::world::{PatternWorld, World};
use crate::narrate::measure::columns;

/// The view that fills the five panes of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum View {
    /// The seats around their table (collaboration source document).
    #[default]
    Collaboration,
    /// The tasks of a plan and their workers (orchestrator source document).
    Orchestrator,
    /// The agents' calls and handoffs (teams source document).
    Team,
    /// Sources, the page being read, notes and the answer (research source document).
    Research,
    /// Breakers, bulkheads and retries of the tools (cascading failures source document).
    Tools,
}

impl View {
    /// Every view.
    pub const ALL: [View; 5] =
        [Self::Collaboration, Self::Orchestrator, Self::Team, Self::Research, Self::Tools];

    /// The view of a run's own pattern.
    pub fn of_world(world: &World) -> View {
        match world.pattern {
            PatternWorld::None | PatternWorld::Collaboration(_) => Self::Collaboration,
            PatternWorld::Orchestrator(_) => Self::Orchestrator,
            PatternWorld::Team(_) => Self::Team,
            PatternWorld::Research(_) => Self::Research,
            PatternWorld::Resilience(_) => Self::Tools,
        }
    }

    /// The name on a pane's tab.
    pub fn tab(self, pane: Pane) -> &'static str {
        match (self, pane) {
            (_, Pane::Events) => "Events",
            (Self::Collaboration, Pane::First) => "Round table",
            (Self::Collaboration, Pane::Second) => "Speaker",
            (Self::Collaboration, Pane::Third) => "Stances",
            (Self::Collaboration, Pane::Fourth) => "Gateway",
            (Self::Orchestrator, Pane::First) => "Waterfall",
            (Self::Orchestrator, Pane::Second) => "Task",
            (Self::Orchestrator, Pane::Third) => "Results",
            (Self::Orchestrator, Pane::Fourth) => "Slots",
            (Self::Team, Pane::First) => "Handoffs",
            (Self::Team, Pane::Second) => "Hops",
            (Self::Team, Pane::Third) => "Calls",
            (Self::Team, Pane::Fourth) => "Transcript",
            (Self::Research, Pane::First) => "Sources",
            (Self::Research, Pane::Second) => "Page",
            (Self::Research, Pane::Third) => "Answer",
            (Self::Research, Pane::Fourth) => "Notes",
            (Self::Tools, Pane::First) => "Breakers",
            (Self::Tools, Pane::Second) => "Tool",
            (Self::Tools, Pane::Third) => "Bulkheads",
            (Self::Tools, Pane::Fourth) => "Retries",
        }
    }

    /// The title of a pane, unless it depends on what is selected.
    pub fn title(self, pane: Pane) -> &'static str {
        match (self, pane) {
            (Self::Collaboration, Pane::Third) => "Stances by round",
            (Self::Orchestrator, Pane::Third) => "Results so far",
            (Self::Orchestrator, Pane::Fourth) => "Slots and budgets",
            (Self::Team, Pane::First) => "Handoffs",
            (Self::Team, Pane::Second) => "Hops",
            (Self::Team, Pane::Third) => "Call tree",
            (Self::Tools, Pane::First) => "Circuit breakers",
            (Self::Tools, Pane::Fourth) => "Retries and amplification",
            _ => self.tab(pane),
        }
    }
}

impl RunPage {
    /// The areas of everything on a page of this size.
    pub fn areas(&self, page: Rect) -> Areas {
        let plan = self.run.world().collaboration().map(|it| &*it.plan);
        let name = |plan: &CollaborationPlan| {
            let widths = plan.sequence.iter().map(|role| {
                let flag = if plan.role_flags.contains_key(role) { 2 } else { 0 };
                columns(role.as_str()) + flag
            });
            widths.max().unwrap_or(0)
        };
        let face = self.view();
        Areas::for_page(
            page,
            LayoutInput {
                face,
                rows: match face {
                    View::Collaboration => plan.map_or(0, |plan| plan.sequence.len()),
                    View::Orchestrator | View::Team | View::Research => 6,
                    View::Tools => self.run.world().tools.rows().len().clamp(5, 8),
                },
                names: plan.map_or(0, name),
                rounds: plan.map_or(0, |plan| plan.max_rounds),
                focus: self.panes.focus,
                zoom: self.panes.zoom,
                upper: self.panes.upper,
                middle: self.panes.middle,
            },
        )
    }

    pub(super) fn areas_in(&self, size: Size) -> Areas {
        self.areas(layout::page(size))
    }
}
