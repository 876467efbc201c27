//! Exports what is on the screen.

use super::DashboardLoop;
use crate::app::Action;
use crate::app::effect::{Contents, Export};
use crate::narrate::format::time_in_run;
use crate::shell::console::Console;
use crate::ui::cx::DrawContext;
use crate::ui::picture::{cells, svg, text};

impl<C: Console> DashboardLoop<C> {
    /// Exports the screen as an SVG and as text. It is drawn again: what is in the terminal may be older.
    pub(super) fn export_picture(&self) {
        let (now, theme) = (self.now(), self.themes.current());
        let cells = cells(&self.state, &DrawContext { now, theme, glyphs: self.glyphs });
        let page = self.state.visible_run();
        let name = page.map_or("home", |page| page.id().as_str());
        let title = match page.and_then(|page| Some((page, page.world().head.as_ref()?))) {
            Some((page, head)) => {
                let time = page.shown().progress.run_time(page.time(now));
                format!("A run of {} in the dashboard, at {}", head.scenario, time_in_run(time))
            }
            None => "The first screen of the dashboard".to_owned(),
        };
        let file = |end, text| Export {
            file: format!("roundtable-{name}.{end}"),
            contents: Contents::Text(text),
        };
        let svg = svg(&cells, theme, &title);
        self.services.export(vec![file("svg", svg), file("txt", text(&cells))], Action::Picture);
    }
}
