//! The verdict of a run that has ended: what its screen says first.

use std::borrow::Cow;

use super::badges;
use super::glyph::Glyph;
use super::patterns::words;
use super::style_role::StyleRole;
use super::styled::Badge;
use crate::event::World;
use crate::event::kind::RunClosed;

/// How a run ended, and the figures behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunVerdict {
    /// Its glyph.
    pub glyph: Glyph,
    /// The result in a few words, such as `go` or `time limit`.
    pub word: Cow<'static, str>,
    /// How it is painted.
    pub role: StyleRole,
    /// The figures behind it, the most important first.
    pub facts: Vec<String>,
    /// Why the run was stopped, if the pattern knows more than the stop reason.
    pub cause: Option<String>,
}

impl RunVerdict {
    /// The verdict that a stop reason gives, without any facts.
    pub fn of(closed: &RunClosed) -> Self {
        let Badge { glyph, word, role } = badges::ended(closed.reason.class());
        let word = match closed.reason.is_success() {
            true => word.into(),
            false => closed.reason.phrase().into_owned().into(),
        };
        Self { glyph, word, role, facts: Vec::new(), cause: None }
    }

    /// The verdict of a run: that of its pattern, and which of its replies are cut.
    pub fn of_run(world: &World, closed: &RunClosed) -> Self {
        let mut verdict = match words(world) {
            Some(words) => words.verdict(world, closed),
            None => Self::of(closed),
        };
        let answer = world.progress.answer_end.mark().map(|mark| format!("answer {mark}"));
        let cut = match world.cut_replies().len() {
            0 => None,
            1 => Some("1 reply cut".to_owned()),
            several => Some(format!("{several} replies cut")),
        };
        if let Some(fact) = answer.or(cut) {
            verdict.facts.insert(0, fact);
        }
        verdict
    }

    /// The verdict in one line: the result and its figures, or why the run was stopped.
    pub fn text(&self) -> String {
        let facts = self.facts.iter().map(String::as_str).chain(self.cause.as_deref());
        let facts: Vec<&str> = facts.collect();
        match facts.is_empty() {
            true => self.word.clone().into_owned(),
            false => format!("{}: {}", self.word, facts.join(", ")),
        }
    }

    /// Adds a fact.
    pub fn with(mut self, fact: impl Into<String>) -> Self {
        self.facts.push(fact.into());
        self
    }
}
