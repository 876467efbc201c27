//! The drawing of each view.

use super::collaboration::draw::view::CollaborationDrawing;
use super::orchestrator::draw::view::OrchestratorDrawing;
use super::research::draw::view::ResearchDrawing;
use super::team::draw::view::TeamDrawing;
use super::tools::draw::view::ToolsDrawing;
use crate::app::run::View;
use crate::ui::run::draw_view::DrawView;

/// The drawing of this view.
pub(crate) fn draw_view(view: View) -> &'static dyn DrawView {
    match view {
        View::Collaboration => &CollaborationDrawing,
        View::Orchestrator => &OrchestratorDrawing,
        View::Team => &TeamDrawing,
        View::Research => &ResearchDrawing,
        View::Tools => &ToolsDrawing,
    }
}
