//! The window in which the template of a new scenario is chosen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::scenario::{ScenarioTemplate, templates};
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::layout::{DrawerParts, Size, centred, inside};
use crate::screen::list::{ListState, keep_in_view};
use crate::screen::widgets::{paragraph, scroll_arrows};
use crate::screen::{DrawContext, frame, list};
use crate::words::styled::StyleRole;

/// Maximum width of the window, in columns.
const COLS: u16 = 76;

/// Rows below the list: the effect of a choice.
const FOOT: u16 = 2;

/// The window in which a template is chosen.
#[derive(Clone, Debug)]
pub struct TemplateList {
    /// The templates, one for each pattern.
    pub templates: &'static [ScenarioTemplate],
    pub list: ListState,
}

impl TemplateList {
    /// The templates of all patterns, the first one selected.
    pub(crate) fn new() -> Self {
        Self { templates: templates(), list: ListState::default() }
    }

    /// The parts of the window at this size.
    pub fn parts(&self, size: Size) -> DrawerParts {
        let len = self.templates.len();
        let wanted = u16::try_from(len).unwrap_or(u16::MAX);
        let window = centred(size.body(), COLS, wanted.saturating_add(FOOT + 2));
        let inner = inside(window);
        let foot = FOOT.min(inner.height.saturating_sub(1));
        let list = Rect { height: inner.height - foot, ..inner };
        let note = Rect { y: list.bottom(), height: foot, ..inner };
        let top = keep_in_view(0, self.list.selected, usize::from(list.height), len);
        DrawerParts { window, list, note, top }
    }
}

/// Columns of a pattern's name.
const NAME: u16 = 15;

pub fn render(list: &TemplateList, cx: &DrawContext, size: Size, buf: &mut Buffer) {
    let parts = list.parts(size);
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    frame::window("New scenario from a template", "", cx, parts.window, buf);
    let shown = list.templates.iter().enumerate().skip(parts.top);
    for ((at, template), y) in shown.zip(parts.list.y..parts.list.bottom()) {
        let area = Rect { y, height: 1, ..parts.list };
        let mut pen = list::row(cx, area, at == list.list.selected, buf);
        pen.cell(&template.pattern, NAME, plain).put(&template.about, dim);
    }
    let hidden = [parts.top > 0, parts.top + usize::from(parts.list.height) < list.templates.len()];
    scroll_arrows(cx, parts.window.right().saturating_sub(1), parts.list, hidden, buf);
    if let Some(template) = list.templates.get(list.list.selected) {
        let text = format!(
            "{} writes scenarios/my-{}.toml; it runs without a model.",
            key_of(Action::WriteTemplate),
            template.pattern
        );
        let area = Rect {
            x: parts.note.x + 1,
            y: parts.note.y + parts.note.height.min(1),
            width: parts.note.width.saturating_sub(2),
            height: parts.note.height.saturating_sub(1),
        };
        paragraph(cx, area, &text, dim, buf);
    }
}
