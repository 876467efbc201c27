//! An item of a pane of research: a few texts below one another that wrap, each in a look of its own.

use std::borrow::Cow;

use super::reading::solids;
use crate::app::measure::wrap_within;
use crate::app::run::scroll::Lines;
use crate::event::kind::NoteId;

/// The most bytes of one text that are looked at.
const LOOKED_AT: usize = 8 * 1024;

/// How a text is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Words of the run.
    Said,
    /// What a page says, word for word.
    Quoted,
    /// A note of ours about the state.
    Note,
    /// A word of ours that stands out.
    Strong,
    /// What is on its way.
    Running,
    /// What came out well.
    Good,
    /// What wants a look.
    Alert,
    /// What was refused.
    Refused,
    /// What failed.
    Failed,
}

/// The sign at the start of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead {
    /// None.
    None,
    /// It came out well.
    Done,
    /// It is on.
    Running,
    /// Its turn has not come.
    Waiting,
    /// It wants a look.
    Alert,
    /// It was refused.
    Refused,
    /// It failed.
    Failed,
    /// It was not taken further.
    Off,
}

/// What an item is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// Nothing that can be looked at.
    Text,
    /// A sentence of the answer, from 0.
    Sentence(usize),
    /// A note.
    Note(NoteId),
    /// Two notes that are held against each other.
    Pair(NoteId, NoteId),
}

/// A text of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct Part<'a> {
    /// The text.
    pub text: Cow<'a, str>,
    /// How it is to be taken.
    pub how: How,
    /// What follows it in the same line, and how that is to be taken.
    pub tail: Vec<(String, How)>,
    /// What stands beside it, in the other half.
    pub beside: Option<Cow<'a, str>>,
    /// Rows at most.
    pub most: usize,
    /// Whether its end is what counts, as while it still comes.
    pub coming: bool,
}

impl<'a> Part<'a> {
    /// A text of at most so many rows.
    pub fn of(text: impl Into<Cow<'a, str>>, how: How, most: usize) -> Self {
        let text = text.into();
        Self { text, how, tail: Vec::new(), beside: None, most, coming: false }
    }
}

/// A row of a part.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its text.
    pub text: String,
    /// Solids of the part before it.
    pub solids: usize,
    /// What stands in the other half.
    pub beside: Option<String>,
    /// Whether more of it is left out after it.
    pub cut: bool,
}

impl Part<'_> {
    /// Whether two texts stand beside each other at this width.
    pub fn is_halved(&self, width: u16) -> bool {
        /// The least columns of a half that can be read.
        const HALF: u16 = 22;
        self.beside.is_some() && width >= 2 * HALF + GAP
    }

    /// Columns of a half.
    pub fn half(width: u16) -> u16 {
        width.saturating_sub(GAP) / 2
    }

    /// The text with what follows it.
    fn whole(&self) -> Cow<'_, str> {
        if self.tail.is_empty() {
            return Cow::Borrowed(looked_at(&self.text));
        }
        let mut text = looked_at(&self.text).to_owned();
        for (tail, _) in &self.tail {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(tail);
        }
        Cow::Owned(text)
    }

    /// The looks of the whole: how each goes on until which solid.
    pub fn looks(&self) -> Vec<(usize, How)> {
        let mut until = solids(looked_at(&self.text));
        let mut looks = vec![(until, self.how)];
        for (tail, how) in &self.tail {
            until += solids(tail);
            looks.push((until, *how));
        }
        looks
    }

    /// Its rows in a window of this width.
    pub fn rows(&self, width: u16) -> Vec<Row> {
        if self.coming {
            let (rows, _) =
                crate::app::measure::wrap_end(&self.text, usize::from(width.max(1)), self.most);
            let row = |text| Row { text, solids: 0, beside: None, cut: false };
            return rows.into_iter().map(row).collect();
        }
        if self.is_halved(width) {
            let half = usize::from(Self::half(width));
            let (left, cut_left) = wrap_within(looked_at(&self.text), half, self.most);
            let other = self.beside.as_deref().unwrap_or_default();
            let (right, cut_right) = wrap_within(looked_at(other), half, self.most);
            let count = left.len().max(right.len());
            let row = |nth: usize| Row {
                text: left.get(nth).cloned().unwrap_or_default(),
                solids: 0,
                beside: right.get(nth).cloned(),
                cut: (cut_left || cut_right) && nth + 1 == count,
            };
            return (0..count).map(row).collect();
        }
        let mut rows = whole_rows(&self.whole(), width, self.most);
        if let Some(other) = &self.beside {
            rows.extend(whole_rows(looked_at(other), width, self.most));
        }
        rows
    }
}

/// Columns between two halves.
const GAP: u16 = 3;

fn whole_rows(text: &str, width: u16, most: usize) -> Vec<Row> {
    let (rows, cut) = wrap_within(text, usize::from(width.max(1)), most);
    let count = rows.len();
    let mut before = 0;
    let told = rows.into_iter().enumerate().map(|(nth, text)| {
        let from = before;
        before += solids(&text);
        Row { text, solids: from, beside: None, cut: cut && nth + 1 == count }
    });
    told.collect()
}

/// As much of a text as is looked at, each run of white space one blank.
pub fn flat(text: &str) -> String {
    looked_at(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As much of a text as is looked at.
fn looked_at(text: &str) -> &str {
    let end = (0..=LOOKED_AT.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// An item.
#[derive(Clone, Debug, PartialEq)]
pub struct Item<'a> {
    /// What it is about.
    pub about: About,
    /// Its name before its texts; may be empty.
    pub name: Cow<'a, str>,
    /// Its sign.
    pub lead: Lead,
    /// Its texts.
    pub parts: Vec<Part<'a>>,
}

impl<'a> Item<'a> {
    /// An item that is one text of ours.
    pub fn text(lead: Lead, part: Part<'a>) -> Self {
        Self { about: About::Text, name: "".into(), lead, parts: vec![part] }
    }

    /// A blank row.
    pub fn gap() -> Self {
        Self::text(Lead::None, Part::of("", How::Note, 1))
    }
}

/// A list of items, each made when it is looked at.
pub trait Items {
    /// How many there are.
    fn count(&self) -> usize;
    /// One of them.
    fn item(&self, at: usize) -> Option<Item<'_>>;
    /// Columns of the names before the texts.
    fn names(&self) -> u16;
}

/// Columns before the names: the mark of the selection, the sign, a blank.
pub const SIGN: u16 = 3;

/// A list of items as lines that wrap.
pub struct Wrapped<'a, I> {
    /// The list.
    pub items: &'a I,
    /// The columns of the pane.
    pub width: u16,
}

impl<I: Items> Wrapped<'_, I> {
    /// Columns that the texts have.
    pub fn room(&self) -> u16 {
        self.width.saturating_sub(SIGN + self.items.names() + 1).max(1)
    }
}

impl<I: Items> Lines for Wrapped<'_, I> {
    fn count(&self) -> usize {
        self.items.count()
    }

    fn rows(&self, line: usize) -> usize {
        let Some(item) = self.items.item(line) else { return 1 };
        let rows: usize = item.parts.iter().map(|part| part.rows(self.room()).len()).sum();
        rows.max(1)
    }
}
