//! Pane 1 of the first screen: the scenarios, the user's own ones first, then those that are
//! shipped, in groups by pattern; a new one from a template, the selected one in the editor.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{HomePane, arrange_home};
use crate::scenario::catalogue::{ScenarioEntry, ScenarioGroup, sort_in_groups};
use crate::screen::action::Action;
use crate::screen::effect::{Effect, Update};
use crate::screen::keymap::key_of;
use crate::screen::list::Column;
use crate::screen::notice::NoticeKind;
use crate::screen::run::events::filter_text;
use crate::screen::text::{Pen, on_border};
use crate::screen::widgets::{empty, paragraph};
use crate::screen::windows::Overlay;
use crate::screen::windows::move_in_list;
use crate::screen::windows::templates::TemplateList;
use crate::screen::{AppState, DrawContext, list};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::styled::StyleRole;

/// A line of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScenarioLine {
    /// The head of a group.
    Group(ScenarioGroup),
    /// A scenario, by its index.
    Entry(usize),
}

/// The lines of the list.
#[derive(Clone, Debug, Default)]
pub struct ScenarioLines(Vec<ScenarioLine>);

impl ScenarioLines {
    /// The lines of the scenarios that have each word of a filter; they are in the order of their
    /// groups.
    pub fn new(scenarios: &[ScenarioEntry], filter: &str) -> Self {
        let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
        let mut lines = Vec::with_capacity(scenarios.len() + 8);
        let mut before = None;
        for (index, entry) in scenarios.iter().enumerate() {
            let group = entry.group();
            if !words.is_empty() && !has_words(entry, &words) {
                continue;
            }
            if before != Some(group) {
                lines.push(ScenarioLine::Group(group));
            }
            before = Some(group);
            lines.push(ScenarioLine::Entry(index));
        }
        Self(lines)
    }

    /// The indices of the listed scenarios.
    pub fn entries(&self) -> Vec<usize> {
        (0..self.0.len()).filter_map(|line| self.entry_on(line)).collect()
    }

    /// Number of lines.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub fn from(&self, line: usize) -> impl Iterator<Item = ScenarioLine> + '_ {
        self.0.iter().skip(line).copied()
    }

    /// How many scenarios are above this line.
    pub fn entries_above(&self, line: usize) -> usize {
        let above = self.0.iter().take(line);
        above.filter(|line| matches!(line, ScenarioLine::Entry(_))).count()
    }

    /// The index of the scenario on this line.
    pub fn entry_on(&self, line: usize) -> Option<usize> {
        match self.0.get(line)? {
            ScenarioLine::Entry(index) => Some(*index),
            ScenarioLine::Group(_) => None,
        }
    }

    /// The line of a scenario, by its index.
    pub fn line_of(&self, index: usize) -> Option<usize> {
        self.0.iter().position(|line| *line == ScenarioLine::Entry(index))
    }

    /// The first line that has to be in view with this one: the head of a group with its first row.
    pub fn first_with(&self, line: usize) -> usize {
        match line.checked_sub(1).and_then(|above| self.0.get(above)) {
            Some(ScenarioLine::Group(_)) => line - 1,
            _ => line,
        }
    }
}

/// Whether each of these words occurs in the texts of a scenario that the list shows; case is ignored.
fn has_words(entry: &ScenarioEntry, words: &[String]) -> bool {
    let group = entry.group().title();
    let said = match &entry.loaded {
        Ok(scenario) => {
            let pattern = scenario.pattern.get().name();
            format!("{} {group} {pattern} {} {}", entry.name, scenario.title, scenario.about)
        }
        Err(_) => format!("{} {group} {}", entry.name, entry.first_error().unwrap_or_default()),
    };
    let said = said.to_lowercase();
    words.iter().all(|word| said.contains(word.as_str()))
}

/// Opens the list of templates.
pub(crate) fn new_scenario(state: &mut AppState) -> Update {
    state.overlays.push(Overlay::Templates(TemplateList::new()));
    Update::redraw()
}

/// An action in the list of templates.
pub(crate) fn on_templates(state: &mut AppState, action: Action) -> Update {
    let Some(Overlay::Templates(list)) = state.overlays.last_mut() else { return Update::idle() };
    match action {
        Action::Cancel | Action::Back => {
            state.overlays.pop();
            Update::redraw()
        }
        Action::WriteTemplate => {
            let pattern = list.templates.get(list.list.selected).map(|it| it.pattern.clone());
            state.overlays.pop();
            let effects = pattern.map(|pattern| Effect::NewScenario { pattern });
            Update { redraw: true, effects: effects.into_iter().collect() }
        }
        action => move_in_list(state, action),
    }
}

/// Opens the file of the selected scenario in the editor.
pub(crate) fn edit(state: &mut AppState) -> Update {
    let entry = state.home.selected_scenario(&state.scenarios);
    match entry.filter(|_| state.home.preview_source == HomePane::Scenarios) {
        Some(entry) => Update::effect(Effect::Edit(entry.origin.clone())),
        None => {
            let said = format!("Select a scenario first: {} edits its file.", key_of(Action::Edit));
            state.notify(NoticeKind::Info, said);
            Update::redraw()
        }
    }
}

/// A new file was written: selects it.
pub(crate) fn on_written(state: &mut AppState, path: &str) -> Update {
    if let Some(entry) = state.scenarios.iter().find(|entry| entry.path == path) {
        state.home.select_scenario(entry);
        state.home.focus(HomePane::Scenarios);
    }
    arrange_home(state);
    let (open, edit) = (key_of(Action::Open), key_of(Action::Edit));
    state.notify(NoticeKind::Info, format!("{path} is written: {open} runs it, {edit} edits it."));
    Update::redraw()
}

/// The scenarios were read: shows them, and says which files changed.
pub(crate) fn on_scenarios(state: &mut AppState, mut scenarios: Vec<ScenarioEntry>) -> Update {
    sort_in_groups(&mut scenarios);
    state.home.is_read = true;
    let before = std::mem::replace(&mut state.scenarios, scenarios);
    // The selected scenario stays selected, even if a file now replaces a shipped one.
    let was = before.iter().find(|entry| Some(&entry.path) == state.home.scenario.as_ref());
    let is_gone = state.home.selected_scenario(&state.scenarios).is_none();
    if let Some(was) = was.filter(|_| is_gone)
        && let Some(now) = state.scenarios.iter().find(|entry| entry.name == was.name)
    {
        state.home.select_scenario(now);
    }
    arrange_home(state);
    let changed: Vec<&ScenarioEntry> = state
        .scenarios
        .iter()
        .filter(|now| {
            let was = before.iter().find(|was| was.path == now.path);
            was.is_some_and(|was| was.text != now.text)
        })
        .collect();
    let notice = match changed[..] {
        [] => None,
        [one] => Some(match one.first_error() {
            Some(error) => (NoticeKind::Error, format!("{}: {error}", one.path)),
            None => (NoticeKind::Info, format!("{} was reloaded.", one.path)),
        }),
        _ => Some((NoticeKind::Info, format!("{} scenario files were reloaded.", changed.len()))),
    };
    if let Some((kind, text)) = notice {
        state.notify(kind, text);
    }
    if std::mem::take(&mut state.is_rescanning) {
        let broken = state.scenarios.iter().filter(|entry| entry.loaded.is_err()).count();
        let read = format::count_noun(state.scenarios.len() as u64, "scenario");
        let broken = if broken == 0 { String::new() } else { format!(", {broken} broken") };
        state.notify(NoticeKind::Info, format!("{read} read{broken}."));
    }
    Update::redraw()
}

/// Columns of a pattern's name, which is shown where the group does not say it.
const PATTERN: u16 = 15;

/// The width of a name and of a title, with the blanks after them.
struct ScenarioColumns {
    name: u16,
    title: u16,
}

/// Draws the rows and the heads above them.
pub(crate) fn render(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    if state.scenarios.is_empty() {
        let text = match state.home.is_read {
            true => format!(
                "No scenarios yet: put a file into ./scenarios and press {}, or name one on the command line.",
                key_of(Action::Rescan)
            ),
            false => "Reading the scenarios.".to_owned(),
        };
        return empty(cx, list::head_row(area).union(area), &text, buf);
    }
    let longest = state.scenarios.iter().map(|entry| columns(entry.name.as_str())).max();
    let name = u16::try_from(longest.unwrap_or(0)).unwrap_or(u16::MAX).clamp(8, 28) + 2;
    // A whole title is more important: the preview also has what the scenario is about.
    let title = if area.width >= 110 { 52 } else { area.width };
    let heads =
        [Column::left("scenario", name), Column::left("title", title), Column::rest("about")];
    list::heads(cx, Pen::new(buf, list::head_row(area), cx.glyphs).space(5), &heads);

    let focused = state.home.focus == HomePane::Scenarios;
    let widths = ScenarioColumns { name, title };
    let lines = state.home.lines(&state.scenarios);
    if lines.count() == 0 {
        let text = "No scenario matches the filter. Esc removes it.";
        return empty(cx, area, text, buf);
    }
    for (line, y) in lines.from(state.home.scenarios_top).zip(area.top()..area.bottom()) {
        match line {
            ScenarioLine::Group(group) => {
                let row = Rect { y, height: 1, ..area };
                let mut pen = Pen::new(buf, row, cx.glyphs);
                pen.space(1).put(group.title(), cx.theme.style(StyleRole::Title)).space(2);
                let room = pen.left().saturating_sub(1);
                pen.put_within(group.about(), room, cx.theme.style(StyleRole::Dim));
            }
            ScenarioLine::Entry(index) => {
                let Some(entry) = state.scenarios.get(index) else { continue };
                let selected = state.home.scenario.as_ref() == Some(&entry.path);
                let mut pen = list::pane_row(cx, area, y, selected, focused, buf);
                pen.space(2);
                scenario_row(entry, cx, pen, &widths);
            }
        }
    }
}

/// Draws the filter into the upper border of the pane, after its title.
pub(super) fn filter_line(
    state: &AppState,
    cx: &DrawContext,
    area: Rect,
    taken: u16,
    buf: &mut Buffer,
) {
    let Some(filter) = state.home.filter.status() else { return };
    let start = area.x.saturating_add(taken);
    let row =
        Rect { x: start, y: area.y, width: area.right().saturating_sub(start + 2), height: 1 };
    let mut pen = Pen::new(buf, row.intersection(area), cx.glyphs);
    if pen.left() < 14 {
        return;
    }
    let dim = on_border(cx.theme.style(StyleRole::Dim));
    pen.put("  filter: ", dim);
    let room = pen.left().saturating_sub(1);
    filter_text(cx, &mut pen, filter, room, " words of a name, title or pattern");
    pen.put(" ", dim);
}

fn scenario_row(entry: &ScenarioEntry, cx: &DrawContext, mut pen: Pen, widths: &ScenarioColumns) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let name = widths.name;
    match &entry.loaded {
        Ok(scenario) => {
            if scenario.run_warnings(false).next().is_none() {
                pen.space(2);
            } else {
                pen.glyph(Glyph::Alert, cx.theme.style(StyleRole::Retry)).space(1);
            }
            pen.name(entry.name.as_str(), name - 2, plain).space(2);
            let mut title = widths.title;
            if entry.group() == ScenarioGroup::Own && pen.left() > 2 * PATTERN {
                pen.cell(scenario.pattern.get().name(), PATTERN, dim);
                title = title.saturating_sub(PATTERN);
            }
            let width = title.saturating_sub(2).min(pen.left().saturating_sub(1));
            pen.cell(&scenario.title, width, plain).space(2).put(&scenario.about, dim);
        }
        Err(_) => {
            let bad = cx.theme.style(StyleRole::Failed);
            pen.glyph(Glyph::Failed, bad).space(1);
            pen.name(entry.name.as_str(), name - 2, bad).space(2);
            pen.put(&entry.first_error().unwrap_or_default(), bad);
        }
    }
}

/// The description of the selected scenario, below the list.
pub(crate) fn about(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let Some(entry) = state.home.selected_scenario(&state.scenarios) else { return };
    if area.height < 3 {
        return;
    }
    let line = Rect { height: 1, ..area };
    Pen::new(buf, line, cx.glyphs).glyphs(
        Glyph::Horizontal,
        area.width,
        cx.theme.style(StyleRole::Border),
    );
    let (text, role) = match &entry.loaded {
        Ok(scenario) => (scenario.about.clone(), StyleRole::Dim),
        Err(_) => {
            let text = entry.first_error().unwrap_or_default();
            (format!("{text}. {} edits the file.", key_of(Action::Edit)), StyleRole::Failed)
        }
    };
    let text_area = Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(2),
        height: (area.height - 1).min(2),
    };
    paragraph(cx, text_area, &text, cx.theme.style(role), buf);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::catalogue::{LiveOffer, sort_in_groups};
    use crate::scenario::{ScenarioOrigin, shipped};

    #[test]
    fn sorts_own_scenarios_first_then_pattern() {
        let offer = || LiveOffer::Missing { why: String::new() };
        let mut entries: Vec<ScenarioEntry> = shipped()
            .iter()
            .map(|one| {
                ScenarioEntry::from_text(one.path.into(), one.origin(), one.text.into(), offer())
            })
            .collect();
        let own = ScenarioOrigin::File("zoo.toml".into());
        entries.push(ScenarioEntry::from_text("zoo.toml".into(), own, "title = 3".into(), offer()));
        sort_in_groups(&mut entries);
        let lines = ScenarioLines::new(&entries, "");
        let word = |line| match line {
            ScenarioLine::Group(group) => format!("- {}", group.title()),
            ScenarioLine::Entry(index) => entries[index].name.to_string(),
        };
        let words: Vec<String> = lines.from(0).map(word).collect();
        assert_eq!(words[..4], ["- yours", "zoo", "- collaboration", "checkout-launch"]);
        let heads = words.iter().filter(|word| word.starts_with("- ")).count();
        assert_eq!(heads, 8, "{words:?}");
        assert_eq!(lines.count(), entries.len() + heads);
        for index in 0..entries.len() {
            let line = lines.line_of(index).expect("a line");
            assert_eq!(lines.entry_on(line), Some(index));
        }
        let filtered = ScenarioLines::new(&entries, "SWARM ping").entries();
        let names: Vec<&str> = filtered.iter().map(|at| entries[*at].name.as_str()).collect();
        assert!(!names.is_empty() && names.len() < 8, "{names:?}");
        assert_eq!(ScenarioLines::new(&entries, "no such words").count(), 0);
        assert_eq!((lines.entries_above(1), lines.entries_above(4)), (0, 2));
        assert_eq!((lines.entry_on(0), lines.first_with(1), lines.first_with(4)), (None, 0, 4));
    }
}
