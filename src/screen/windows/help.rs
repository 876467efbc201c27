//! The help: every row of the binding table once, with a search.
//!
//! The help over a screen: the binding table with a search line.

use std::fmt::Write as _;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::screen::action::Action;
use crate::screen::key::KeyPress;
use crate::screen::keymap::{BINDINGS, Binding, Context, Group};
use crate::screen::layout::{ScreenParts, Size, centred, inside};
use crate::screen::list::moved_index;
use crate::screen::text::Pen;
use crate::screen::{DrawContext, frame, list};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::styled::StyleRole;

/// The help over a screen.
#[derive(Clone, Debug)]
pub struct Help {
    /// The context that it was opened over: rows valid there can be run.
    pub context: Context,
    /// The search text.
    pub query: String,
    /// Action of the selected row.
    pub selected: Option<Action>,
    /// The first line in view.
    pub top: usize,
}

/// One line of the help.
#[derive(Clone, Copy, Debug)]
pub enum HelpLine {
    /// A heading.
    Heading(Group),
    /// A row of the table.
    Row(&'static Binding),
    /// An empty line.
    Blank,
}

impl Group {
    /// Every group in the order of the help.
    pub const ALL: [Group; 5] = [Group::Watch, Group::Look, Group::Move, Group::Change, Group::App];

    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Move => "Move",
            Self::Look => "Look (never changes a run)",
            Self::Watch => "Start, pause, step, switch",
            Self::Change => "Change: ends a run, spends money, overrides a breaker",
            Self::App => "Program",
        }
    }
}

impl Help {
    /// The help, opened over a context.
    pub fn open(over: Context) -> Self {
        let mut help = Self { context: over, query: String::new(), selected: None, top: 0 };
        help.select_first();
        help
    }

    /// The lines that match the search: under each heading first the rows that can be run here.
    pub fn lines(&self) -> Vec<HelpLine> {
        let mut lines = Vec::new();
        for group in Group::ALL {
            let of_group = || {
                BINDINGS
                    .iter()
                    .filter(move |row| row.group == group && matches_query(row, &self.query))
            };
            if of_group().next().is_none() {
                continue;
            }
            if !lines.is_empty() {
                lines.push(HelpLine::Blank);
            }
            lines.push(HelpLine::Heading(group));
            lines.extend(of_group().filter(|row| self.is_available(row)).map(HelpLine::Row));
            lines.extend(of_group().filter(|row| !self.is_available(row)).map(HelpLine::Row));
        }
        lines
    }

    /// Whether a row can be run from here.
    pub fn is_available(&self, row: &Binding) -> bool {
        row.contexts.contains(&self.context)
    }

    fn rows(&self) -> Vec<&'static Binding> {
        let row = |line| match line {
            HelpLine::Row(row) => Some(row),
            HelpLine::Heading(_) | HelpLine::Blank => None,
        };
        self.lines().into_iter().filter_map(row).collect()
    }

    fn select_first(&mut self) {
        let rows = self.rows();
        let first = rows.iter().find(|row| self.is_available(row)).or_else(|| rows.first());
        self.selected = first.map(|row| row.action);
        self.top = 0;
    }

    /// Takes a typed key; returns whether the key was text.
    pub fn on_key(&mut self, key: KeyPress) -> bool {
        match (key.typed_char(), key.code) {
            (Some(c), _) => self.query.push(c),
            (None, crate::screen::key::KeyCode::Backspace) => {
                self.query.pop();
            }
            _ => return false,
        }
        self.select_first();
        true
    }

    /// Takes the first line of pasted text.
    pub fn on_paste(&mut self, text: &str) {
        self.query.push_str(text.lines().next().unwrap_or_default());
        self.select_first();
    }

    /// Moves the selection; `page` is the number of lines in view. Returns whether it was a
    /// movement.
    pub fn on_move(&mut self, action: Action, page: usize) -> bool {
        let rows = self.rows();
        let at = rows.iter().position(|row| Some(row.action) == self.selected);
        let Some(row) = moved_index(action, at, rows.len(), page).and_then(|at| rows.get(at))
        else {
            return false;
        };
        self.selected = Some(row.action);
        self.arrange(page);
        true
    }

    /// Selects the row on a line of the window; returns its action.
    pub fn select_line(&mut self, line: usize) -> Option<Action> {
        match self.lines().get(self.top + line) {
            Some(HelpLine::Row(row)) => {
                self.selected = Some(row.action);
                Some(row.action)
            }
            _ => None,
        }
    }

    /// Scrolls by one line.
    pub fn scroll(&mut self, up: bool, page: usize) {
        let last = self.lines().len().saturating_sub(page);
        self.top = if up { self.top.saturating_sub(1) } else { (self.top + 1).min(last) };
    }

    /// Keeps the selected row in view, and its heading if the row is the first under it.
    pub fn arrange(&mut self, page: usize) {
        let lines = self.lines();
        let at = lines
            .iter()
            .position(
                |line| matches!(line, HelpLine::Row(row) if Some(row.action) == self.selected),
            )
            .unwrap_or(0);
        self.top = crate::screen::layout::keep_in_view(self.top, at, page, lines.len());
        if at > 0 && at == self.top && matches!(lines.get(at - 1), Some(HelpLine::Heading(_))) {
            self.top = at - 1;
        }
    }

    /// The selected row. The caller checks [`is_available`](Self::is_available) before it runs it.
    pub fn selected_binding(&self) -> Option<&'static Binding> {
        self.rows().into_iter().find(|row| Some(row.action) == self.selected)
    }
}

/// Whether every typed word occurs in the row's keys, word, help line or contexts.
fn matches_query(row: &Binding, query: &str) -> bool {
    let mut text = format!("{} {} {}", row.word, row.help, row.action.name());
    for context in row.contexts {
        let _ = write!(text, " {}", context.word());
    }
    let text = text.to_lowercase();
    query.split_whitespace().all(|word| {
        text.contains(&word.to_lowercase())
            || row.keys_in_use().iter().any(|key| {
                key.label(false).eq_ignore_ascii_case(word)
                    || key.label(true).eq_ignore_ascii_case(word)
            })
    })
}

/// The keys of a row for display: `j ↓`. Nine digits become a range.
pub fn keys_of(row: &Binding, ascii: bool) -> String {
    match (row.action, row.keys_in_use()) {
        (Action::Pane(_), keys @ [first, .., last]) if keys == row.keys => {
            format!("{}-{}", first.label(ascii), last.label(ascii))
        }
        (_, keys) => keys.iter().map(|key| key.label(ascii)).collect::<Vec<_>>().join(" "),
    }
}

/// The whole table in Markdown, for `docs/keys.md`; a test compares the two.
pub fn keys_markdown() -> String {
    let mut out = String::new();
    for group in Group::ALL {
        let _ = writeln!(out, "**{}**\n", group.title());
        out.push_str("| keys | action | what | where |\n| --- | --- | --- | --- |\n");
        for row in BINDINGS.iter().filter(|row| row.group == group) {
            let keys: Vec<_> = match row.action {
                Action::Pane(_) => vec!["`1`-`9`".to_owned()],
                _ => row.keys.iter().map(|key| code(&key.label(false))).collect(),
            };
            let (keys, name) = (keys.join(" "), row.action.name());
            let _ = writeln!(out, "| {keys} | `{name}` | {} | {} |", row.help, row.places());
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// A key as code in a cell of a Markdown table.
fn code(label: &str) -> String {
    match label {
        "|" => "`\\|`".to_owned(),
        "`" => "`` ` ``".to_owned(),
        label => format!("`{label}`"),
    }
}

/// The window of the help at this size.
pub fn help_window(size: Size) -> Rect {
    centred(ScreenParts::split(size.area()).body, 100, 40)
}

/// Rows of the help's list: its window without border, search line and legend.
pub fn help_rows(size: Size) -> usize {
    usize::from(inside(help_window(size)).height.saturating_sub(4)).max(1)
}

/// Columns of the keys.
const KEYS: u16 = 14;

/// Draws the help.
pub fn render(help: &Help, cx: &DrawContext, size: Size, ascii: bool, buf: &mut Buffer) {
    let title = format!("Help for {}", help.context.word());
    let lines = help.lines();
    let count = lines.iter().filter(|line| matches!(line, HelpLine::Row(_))).count();
    let foot = format::count_noun(count as u64, "row");
    let inner = frame::window(&title, &foot, cx, help_window(size), buf);
    let row = |y: u16| {
        Rect { x: inner.x + 1, y, width: inner.width.saturating_sub(2), height: 1 }
            .intersection(inner)
    };
    let (dim, plain) = (cx.theme.style(StyleRole::Dim), cx.theme.style(StyleRole::Text));
    let mut pen = Pen::new(buf, row(inner.y), cx.glyphs);
    if help.query.is_empty() {
        pen.glyph(Glyph::Cursor, cx.theme.style(StyleRole::Cursor));
        pen.put(" type to search keys and words", dim);
    } else {
        pen.put(&help.query, plain).glyph(Glyph::Cursor, cx.theme.style(StyleRole::Cursor));
    }
    let list =
        Rect { y: inner.y + inner.height.min(2), height: inner.height.saturating_sub(4), ..inner };
    if lines.is_empty() {
        Pen::new(buf, row(list.y), cx.glyphs).put("No match (Backspace to widen).", dim);
    }
    for (line, y) in lines.iter().skip(help.top).zip(list.y..list.bottom()) {
        match line {
            HelpLine::Blank => {}
            HelpLine::Heading(group) => {
                Pen::new(buf, row(y), cx.glyphs)
                    .put(group.title(), cx.theme.style(StyleRole::Title));
            }
            HelpLine::Row(binding) => {
                let selected = help.selected == Some(binding.action);
                let here = help.is_available(binding);
                let mut pen = list::row(cx, row(y), selected, buf);
                let key = if here { cx.theme.style(StyleRole::Key) } else { dim };
                pen.space(1).cell(&keys_of(binding, ascii), KEYS, key);
                if here {
                    pen.put(binding.help, plain);
                } else {
                    pen.put(&format!("{}  ({})", binding.help, binding.places()), dim);
                }
            }
        }
    }
    let bottom = inner.bottom();
    legend(cx, [row(bottom.saturating_sub(2)), row(bottom.saturating_sub(1))], buf);
}

/// Meanings of the glyphs.
const LEGEND: [(Glyph, StyleRole, &str); 12] = [
    (Glyph::Done, StyleRole::Done, "done"),
    (Glyph::Running, StyleRole::Running, "running"),
    (Glyph::Waiting, StyleRole::Waiting, "waiting"),
    (Glyph::Paused, StyleRole::Paused, "paused"),
    (Glyph::Retry, StyleRole::Retry, "retry"),
    (Glyph::Failed, StyleRole::Failed, "failed"),
    (Glyph::Off, StyleRole::Off, "off"),
    (Glyph::Go, StyleRole::Go, "go"),
    (Glyph::Caution, StyleRole::Caution, "caution"),
    (Glyph::Block, StyleRole::Block, "block"),
    (Glyph::Changed, StyleRole::Changed, "changed"),
    (Glyph::Flag, StyleRole::Flag, "flag"),
];

/// Draws the legend into the lower row, or into both if one is too short.
fn legend(cx: &DrawContext, rows: [Rect; 2], buf: &mut Buffer) {
    let [upper, lower] = rows;
    let width = |gap: usize| LEGEND.iter().map(|(.., word)| 2 + word.len() + gap).sum::<usize>();
    let room = usize::from(lower.width);
    // The last entry of a row needs no gap after it.
    let whole = width(2) <= room + 2;
    let gap: u16 = if whole || width(2) + 12 <= room * 2 { 2 } else { 1 };
    let mut pen = Pen::new(buf, if whole { lower } else { upper }, cx.glyphs);
    let mut wrapped = whole;
    for (glyph, role, word) in LEGEND {
        if !pen.fits(word.len() + 2) {
            if wrapped {
                break;
            }
            wrapped = true;
            pen = Pen::new(buf, lower, cx.glyphs);
        }
        pen.glyph(glyph, cx.theme.style(role)).space(1).put(word, cx.theme.style(StyleRole::Dim));
        pen.space(gap);
    }
}
