//! The panes of a run's page: a folder for each pattern, for what all agents share, and for the tools.

pub mod agents;
pub mod collaboration;
pub(crate) mod draw;
pub mod orchestrator;
pub mod research;
pub mod router;
pub mod team;
pub mod tools;

use self::collaboration::view::CollaborationView;
use self::orchestrator::view::OrchestratorView;
use self::research::selection::ResearchView;
use self::router::view::RouterView;
use self::team::view::TeamView;
use self::tools::view::ToolsView;
use crate::app::run::run_view::RunView;
use crate::event::world::PatternWorld;

/// The view that fills the first four panes of a page.
#[derive(Debug)]
pub enum View {
    /// The seats around their table (collaboration source document).
    Collaboration(CollaborationView),
    /// The tasks of a plan and their workers (orchestrator source document).
    Orchestrator(OrchestratorView),
    /// The agents' calls and handoffs (teams source document).
    Team(TeamView),
    /// Sources, the page being read, notes and the answer (research source document).
    Research(ResearchView),
    /// The routes of a router, and the agent that answers.
    Router(RouterView),
    /// The tools of the page, which a run about them shows (cascading failures source document).
    Tools,
}

impl Default for View {
    /// The view before the first event.
    fn default() -> Self {
        Self::Collaboration(CollaborationView::default())
    }
}

impl View {
    /// Becomes the view of this pattern, with nothing selected, unless it is that already.
    pub fn follow(&mut self, pattern: &PatternWorld) {
        *self = match (&self, pattern) {
            (Self::Collaboration(_), PatternWorld::None | PatternWorld::Collaboration(_))
            | (Self::Orchestrator(_), PatternWorld::Orchestrator(_))
            | (Self::Team(_), PatternWorld::Team(_))
            | (Self::Research(_), PatternWorld::Research(_))
            | (Self::Router(_), PatternWorld::Router(_))
            | (Self::Tools, PatternWorld::Resilience(_)) => return,
            (_, PatternWorld::None | PatternWorld::Collaboration(_)) => Self::default(),
            (_, PatternWorld::Orchestrator(_)) => Self::Orchestrator(OrchestratorView::default()),
            (_, PatternWorld::Team(_)) => Self::Team(TeamView::default()),
            (_, PatternWorld::Research(_)) => Self::Research(ResearchView::default()),
            (_, PatternWorld::Router(_)) => Self::Router(RouterView::default()),
            (_, PatternWorld::Resilience(_)) => Self::Tools,
        };
    }

    /// Whether the run is about its tools, so that they are its own view.
    pub fn is_about_tools(&self) -> bool {
        matches!(self, Self::Tools)
    }

    /// The view as its page asks it; `tools` are those of the page.
    pub fn get<'a>(&'a self, tools: &'a ToolsView) -> &'a dyn RunView {
        match self {
            Self::Collaboration(view) => view,
            Self::Orchestrator(view) => view,
            Self::Team(view) => view,
            Self::Research(view) => view,
            Self::Router(view) => view,
            Self::Tools => tools,
        }
    }

    /// The view for changes.
    pub fn get_mut<'a>(&'a mut self, tools: &'a mut ToolsView) -> &'a mut dyn RunView {
        match self {
            Self::Collaboration(view) => view,
            Self::Orchestrator(view) => view,
            Self::Team(view) => view,
            Self::Research(view) => view,
            Self::Router(view) => view,
            Self::Tools => tools,
        }
    }
}
