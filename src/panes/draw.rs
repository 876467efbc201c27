//! The drawing of each view.

use super::View;
use crate::app::run::RunPage;
use crate::ui::run::draw_view::DrawView;

/// The drawing of the view that fills a page's panes.
pub(crate) fn draw_view(page: &RunPage) -> &dyn DrawView {
    match &page.views.own {
        _ if page.views.shows_tools() => &page.views.tools,
        View::Collaboration(view) => view,
        View::Orchestrator(view) => view,
        View::Team(view) => view,
        View::Research(view) => view,
        View::Router(view) => view,
        View::Tools => &page.views.tools,
    }
}
