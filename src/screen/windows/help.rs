//! The help over a screen: every row of the binding table once, with a search.

use std::fmt::Write as _;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::screen::key::KeyPress;
use crate::screen::keymap::{BINDINGS, Binding, Context, Group};
use crate::screen::layout::{SearchParts, Size, centred, line};
use crate::screen::list::ListState;
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
    pub list: ListState,
}

/// One line of the help.
#[derive(Clone, Copy, Debug)]
pub enum HelpLine {
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
        let mut help = Self { context: over, query: String::new(), list: ListState::default() };
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

    fn select_first(&mut self) {
        let lines = self.lines();
        let mut rows = choices(&lines).into_iter().filter_map(|at| Some((at, lines[at].row()?)));
        let first = rows.find(|(_, row)| self.is_available(row)).map(|(at, _)| at);
        let selected = first.or_else(|| choices(&lines).first().copied()).unwrap_or(0);
        self.list = ListState { selected, top: 0 };
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

    /// Keeps the selected row in view, and its heading if the row is the first under it.
    pub fn arrange(&mut self, page: usize) {
        let (lines, at) = (self.lines(), self.list.selected);
        self.list.arrange(lines.len(), page);
        if at > 0 && at == self.list.top && matches!(lines.get(at - 1), Some(HelpLine::Heading(_)))
        {
            self.list.top = at - 1;
        }
    }

    /// The selected row. The caller checks [`is_available`](Self::is_available) before it runs it.
    pub fn selected_binding(&self) -> Option<&'static Binding> {
        self.lines().get(self.list.selected)?.row()
    }
}

impl HelpLine {
    fn row(self) -> Option<&'static Binding> {
        match self {
            HelpLine::Row(row) => Some(row),
            HelpLine::Heading(_) | HelpLine::Blank => None,
        }
    }
}

/// The lines that can be selected.
pub(super) fn choices(lines: &[HelpLine]) -> Vec<usize> {
    (0..lines.len()).filter(|at| lines[*at].row().is_some()).collect()
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
        (action, keys @ [first, .., last]) if action.is_numbered() && keys == row.keys => {
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
                action if action.is_numbered() => vec!["`1`-`9`".to_owned()],
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

pub fn help_window(size: Size) -> Rect {
    centred(size.body(), 100, 40)
}

/// Rows of the help's list: its window without border, search line and legend.
pub fn help_rows(size: Size) -> usize {
    usize::from(SearchParts::split(help_window(size)).list.height).max(1)
}

/// Columns of the keys.
const KEYS: u16 = 14;

pub fn render(help: &Help, cx: &DrawContext, size: Size, ascii: bool, buf: &mut Buffer) {
    let title = format!("Help for {}", help.context.word());
    let lines = help.lines();
    let count = lines.iter().filter(|line| matches!(line, HelpLine::Row(_))).count();
    let foot = format::count_noun(count as u64, "row");
    let SearchParts { window, query, list, note } = SearchParts::split(help_window(size));
    frame::window(&title, &foot, cx, window, buf);
    let (dim, plain) = (cx.theme.style(StyleRole::Dim), cx.theme.style(StyleRole::Text));
    let mut pen = Pen::new(buf, query, cx.glyphs);
    if help.query.is_empty() {
        pen.glyph(Glyph::Cursor, cx.theme.style(StyleRole::Cursor));
        pen.put(" type to search keys and words", dim);
    } else {
        pen.put(&help.query, plain).glyph(Glyph::Cursor, cx.theme.style(StyleRole::Cursor));
    }
    if lines.is_empty() {
        Pen::new(buf, line(list, 0), cx.glyphs)
            .put("No key matches the search. Backspace widens it.", dim);
    }
    let shown = lines.iter().enumerate().skip(help.list.top);
    for ((at, help_line), y) in shown.zip(list.y..list.bottom()) {
        let row = Rect { y, height: 1, ..list };
        match help_line {
            HelpLine::Blank => {}
            HelpLine::Heading(group) => {
                Pen::new(buf, row, cx.glyphs).put(group.title(), cx.theme.style(StyleRole::Title));
            }
            HelpLine::Row(binding) => {
                let here = help.is_available(binding);
                let mut pen = list::row(cx, row, at == help.list.selected, buf);
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
    legend(cx, [line(note, 0), line(note, 1)], buf);
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
