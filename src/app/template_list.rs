//! The window in which the template of a new scenario is chosen: its rows and its parts.

use ratatui::layout::Rect;

use super::layout::{Size, centred, inside, keep_in_view};
use crate::scenario::{ScenarioTemplate, templates};

/// Widest size of the window, in columns.
const COLS: u16 = 76;

/// Rows below the list: what choosing does.
const FOOT: u16 = 2;

/// The window in which a template is chosen.
#[derive(Clone, Debug)]
pub struct TemplateList {
    /// The templates, one for each pattern.
    pub templates: &'static [ScenarioTemplate],
    /// Index of the selected one.
    pub selected: usize,
}

/// The parts of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateParts {
    /// All of it, border included.
    pub window: Rect,
    /// The templates.
    pub list: Rect,
    /// What choosing does.
    pub foot: Rect,
    /// The first template in view.
    pub top: usize,
}

impl TemplateList {
    /// The templates of all patterns, the first one selected.
    pub(super) fn new() -> Self {
        Self { templates: templates(), selected: 0 }
    }

    /// The parts of the window at this size.
    pub fn parts(&self, size: Size) -> TemplateParts {
        let wanted = u16::try_from(self.templates.len()).unwrap_or(u16::MAX);
        let window = centred(size.body(), COLS, wanted.saturating_add(FOOT + 2));
        let inner = inside(window);
        let foot = FOOT.min(inner.height.saturating_sub(1));
        let list = Rect { height: inner.height - foot, ..inner };
        TemplateParts {
            window,
            list,
            foot: Rect { y: list.bottom(), height: foot, ..inner },
            top: keep_in_view(0, self.selected, usize::from(list.height), self.templates.len()),
        }
    }

    /// Selects the row on this line of the list; the row `top` is the first in view. Returns whether
    /// it was selected before; `None` if the line has no row.
    pub(super) fn select_line(&mut self, line: usize, top: usize) -> Option<bool> {
        let at = Some(top + line).filter(|at| *at < self.templates.len())?;
        Some(std::mem::replace(&mut self.selected, at) == at)
    }
}
